#include "agents/skills.h"

#include <string.h>

#include "agents/skills_parts.h"
#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

enum { AGAIN_MS = 5000, LIST_BYTES = 8 << 20 };

/* A list that waits for the card. */
typedef struct waiting_list {
    list_link link;
    mcp_request *request;
} waiting_list;

/* ---- the list -------------------------------------------------------------------------------- */

static void put_property(json_writer *to, bay_str name, bay_str type, bay_str description)
{
    json_key(to, name);
    json_open_object(to);
    if (type.len > 0) {
        json_key_lit(to, "type");
        json_put_str(to, type);
    }
    json_key_lit(to, "description");
    json_put_str(to, description);
    json_close_object(to);
}

static void put_schema(json_writer *to)
{
    json_open_object(to);
    json_key_lit(to, "type");
    json_put_str(to, STR("object"));
    json_key_lit(to, "properties");
    json_open_object(to);
    put_property(to, STR("message"), STR("string"), STR("What to tell the agent."));
    put_property(to, STR("data"), STR(""), STR("Structured input for the agent: any JSON value."));
    put_property(to, STR("taskId"), STR("string"),
                 STR("To go on with a task that waits for input: its id."));
    put_property(to, STR("contextId"), STR("string"), STR("To go on with a conversation: its id."));
    json_close_object(to);
    json_key_lit(to, "required");
    json_open_array(to);
    json_put_str(to, STR("message"));
    json_close_array(to);
    json_key_lit(to, "additionalProperties");
    json_put_bool(to, false);
    json_close_object(to);
}

static void put_string(json_writer *writer, bay_str key, json_val value)
{
    if (json_is(value, JSON_STRING)) {
        json_key(writer, key);
        json_put_val(writer, value);
    }
}

/* What is escaped in JSON (quotes, control characters) is no name of a tool: hosts show names to
 * people and models. */
static bool is_tool_name(json_val id)
{
    bay_str raw = json_raw(id);
    return json_is(id, JSON_STRING) && raw.len > 2 && raw.len <= SKILL_NAME_BYTES + 2 &&
           str_find(raw, '\\') == raw.len;
}

static void write_tools(const agents_card *card, json_writer *to)
{
    size_t count = 0;
    json_open_object(to);
    json_key_lit(to, "tools");
    json_open_array(to);
    json_iter at = json_iter_of(json_get(agents_card_source(card), STR("skills")));
    while (json_next(&at) && count < AGENTS_SKILLS) {
        json_val id = json_get(at.value, STR("id"));
        if (!is_tool_name(id)) {
            continue;
        }
        count++;
        json_open_object(to);
        put_string(to, STR("name"), id);
        put_string(to, STR("title"), json_get(at.value, STR("name")));
        put_string(to, STR("description"), json_get(at.value, STR("description")));
        json_key_lit(to, "inputSchema");
        put_schema(to);
        json_close_object(to);
    }
    json_close_array(to);
    json_close_object(to);
}

static void answer_list(agents_skills *self, mcp_request *request)
{
    json_builder made;
    json_val tools;
    const agents_card *card = agents_remote_card(self->remote);
    if (card == NULL) {
        agents_remote_state state = agents_remote_state_of(self->remote);
        bay_str why = state.error[0] != '\0' ? str_of(state.error)
                                             : STR("the agent's card cannot be had just now");
        mcp_request_error(request, RPC_INTERNAL_ERROR, why, STR(""));
        return;
    }
    write_tools(card, json_builder_init(&made, NULL, LIST_BYTES));
    if (json_builder_view(&made, &tools) == BAY_OK) {
        mcp_request_result(request, tools);
    } else {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("The list does not fit into memory"),
                          STR(""));
    }
    json_builder_drop(&made);
}

static void list_tools(agents_skills *self, mcp_request *request)
{
    bool is_coming = agents_remote_learn(self->remote);
    waiting_list *made = NULL;
    if (agents_remote_card(self->remote) == NULL && is_coming) {
        made = mem_zalloc(sizeof(*made));
    }
    if (made == NULL) {
        answer_list(self, request);
        return;
    }
    made->request = request;
    request->user = made;
    list_push(&self->lists, &made->link);
}

static void answer_lists(agents_skills *self)
{
    list_link *at;
    while ((at = list_pop(&self->lists)) != NULL) {
        waiting_list *waiting = CONTAINER_OF(at, waiting_list, link);
        mcp_request *request = waiting->request;
        mem_free(waiting);
        request->user = NULL;
        answer_list(self, request);
    }
}

static void told(void *user)
{
    agents_skills *self = user;
    answer_lists(self);
    if (agents_remote_card(self->remote) != NULL) {
        loop_timer_stop(self->loop, &self->again);
        mcp_server_changed(self->engine, MCP_CHANGE_TOOLS);
    } else {
        /* without memory the next list tries it */
        err_ignore(loop_timer_start(self->loop, &self->again, AGAIN_MS));
    }
}

static void try_again(void *argument)
{
    agents_skills *self = argument;
    if (!agents_remote_learn(self->remote)) {
        err_ignore(loop_timer_start(self->loop, &self->again, AGAIN_MS)); /* as above */
    }
}

/* ---- the engine ------------------------------------------------------------------------------ */

static void on_request(void *user, mcp_request *request)
{
    agents_skills *self = user;
    request->user = NULL;
    mcp_method_id method = request->method != NULL ? request->method->id : MCP_METHOD_COUNT;
    if (method == MCP_TOOLS_LIST) {
        list_tools(self, request);
    } else if (method == MCP_TOOLS_CALL) {
        skill_call_begin(self, request);
    } else if (method == MCP_TASKS_GET || method == MCP_TASKS_UPDATE ||
               method == MCP_TASKS_CANCEL) {
        skill_task_request(self, request);
    } else {
        mcp_request_error(request, RPC_METHOD_NOT_FOUND, STR("An agent has tools only"), STR(""));
    }
}

static void on_cancelled(void *user, mcp_request *request)
{
    (void)user;
    if (request->method != NULL && request->method->id != MCP_TOOLS_LIST) {
        skill_call_cancelled(request);
    } else if (request->user != NULL) {
        waiting_list *waiting = request->user;
        list_remove(&waiting->link);
        mem_free(waiting);
        request->user = NULL;
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("cancelled"), STR(""));
    }
}

static void write_capabilities(void *user, const mcp_revision *revision, json_writer *out)
{
    (void)user;
    (void)revision;
    json_key_lit(out, "tools");
    json_put_raw(out, STR("{\"listChanged\":true}"));
    json_key_lit(out, "extensions");
    json_put_raw(out, STR("{\"" MCP_EXTENSION_TASKS "\":{}}"));
}

static const mcp_service service = {
    .request = on_request, .cancelled = on_cancelled, .capabilities = write_capabilities};

bay_err agents_skills_new(loop *on, agents_remote *remote, agents_skills **out)
{
    agents_skills *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = on;
    self->remote = remote;
    self->watch = (agents_watch){.told = told, .user = self};
    list_init(&self->lists);
    list_init(&self->calls);
    loop_timer_init(&self->again, try_again, self);
    mcp_server_options options = {.name = agents_remote_settings(remote)->name,
                                  .version = str_of(bay_version()),
                                  .oldest = MCP_LATEST,
                                  .newest = MCP_LATEST};
    bay_err err = mcp_server_new(&options, &service, self, &self->engine);
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    agents_remote_watch(remote, &self->watch);
    *out = self;
    return BAY_OK;
}

void agents_skills_free(agents_skills *self)
{
    if (self == NULL) {
        return;
    }
    agents_remote_unwatch(&self->watch);
    loop_timer_stop(self->loop, &self->again);
    skill_calls_end(self);
    answer_lists(self);
    mcp_server_free(self->engine);
    mem_free(self);
}

mcp_server *agents_skills_engine(agents_skills *self)
{
    return self->engine;
}
