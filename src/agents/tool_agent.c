/* An agent made of tools: its engine, its link to the tools, its card. */
#include <string.h>

#include "agents/tool_agent_parts.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

enum { AGAIN_MS = 1000, SCRATCH_BYTES = 256 << 20, MOST_CALLS = 10000 };

static void list_tools(agents_tool_agent *self, json_val cursor);

static uint64_t wall_clock(void *user)
{
    (void)user;
    return loop_time_ms();
}

/* ---- the card -------------------------------------------------------------------------------- */

static bool is_one_of_ours(const agents_tool_agent *self, bay_str name)
{
    for (size_t i = 0; i < self->settings->tool_count; i++) {
        if (str_glob(self->settings->tools[i], name)) {
            return true;
        }
    }
    return false;
}

static void put_skill(agents_tool_agent *self, json_val tool)
{
    json_writer *to = &self->skills.writer;
    bay_str name;
    json_val title = json_get(tool, STR("title"));
    json_val about = json_get(tool, STR("description"));
    if (!json_str_plain(json_get(tool, STR("name")), &name) || !is_one_of_ours(self, name) ||
        self->found == TOOL_AGENT_SKILLS) {
        return;
    }
    self->found++;
    json_open_object(to);
    json_key_lit(to, "id");
    json_put_str(to, name);
    json_key_lit(to, "name");
    json_put_val(to, json_is(title, JSON_STRING) && json_raw(title).len > 2
                         ? title
                         : json_get(tool, STR("name")));
    json_key_lit(to, "description"); /* a card needs one */
    json_put_val(to, json_is(about, JSON_STRING) && json_raw(about).len > 2
                         ? about
                         : json_get(tool, STR("name")));
    json_key_lit(to, "tags");
    json_open_array(to);
    json_put_str(to, STR("tool"));
    json_close_array(to);
    json_key_lit(to, "examples");
    json_open_array(to);
    buf example;
    buf_init(&example, 4096);
    buf_lit(&example, "{\"tool\":");
    json_quote(&example, name);
    buf_lit(&example, ",\"arguments\":{}}");
    json_put_str(to, buf_view(&example));
    buf_fini(&example);
    json_close_array(to);
    json_close_object(to);
}

static void put_modes(json_writer *to, bay_str key)
{
    json_key(to, key);
    json_open_array(to);
    json_put_str(to, STR("application/json"));
    json_put_str(to, STR("text/plain"));
    json_close_array(to);
}

/* `skills`: an array; JSON_NONE: none yet. */
static void write_card(const agents_tool_agent *self, json_val skills, json_writer *to)
{
    const agents_settings *settings = self->settings;
    json_open_object(to);
    json_key_lit(to, "name");
    json_put_str(to, settings->title.len > 0 ? settings->title : settings->name);
    json_key_lit(to, "description");
    json_put_str(to,
                 settings->description.len > 0 ? settings->description : STR("Tools of a gateway"));
    json_key_lit(to, "supportedInterfaces"); /* replaced when it is shown */
    json_open_array(to);
    json_close_array(to);
    json_key_lit(to, "version");
    json_put_str(to, str_of(bay_version()));
    json_key_lit(to, "capabilities");
    json_open_object(to);
    json_key_lit(to, "streaming");
    json_put_bool(to, true);
    json_key_lit(to, "pushNotifications");
    json_put_bool(to, false);
    json_close_object(to);
    put_modes(to, STR("defaultInputModes"));
    put_modes(to, STR("defaultOutputModes"));
    json_key_lit(to, "skills");
    if (json_is(skills, JSON_ARRAY)) {
        json_put_val(to, skills);
    } else {
        json_open_array(to);
        json_close_array(to);
    }
    json_close_object(to);
}

static void tool_agent_tell(agents_tool_agent *self)
{
    self->is_learning = false;
    LIST_EACH(at, &self->watches)
    {
        agents_watch *watch = CONTAINER_OF(at, agents_watch, link);
        watch->told(watch->user);
    }
}

/* The whole list was read. */
static void take_list(agents_tool_agent *self)
{
    json_builder made;
    json_val skills = JSON_NONE;
    json_val shown = JSON_NONE;
    agents_card *card = NULL;
    json_close_array(&self->skills.writer);
    bay_err err = json_builder_view(&self->skills, &skills);
    write_card(self, skills, json_builder_init(&made, NULL, 2 * TOOL_AGENT_LIST_BYTES));
    err = err == BAY_OK ? json_builder_view(&made, &shown) : err;
    if (err == BAY_OK) {
        err =
            agents_card_new(self->settings->name, shown, self->public, AGENTS_WEBHOOKS_ALL, &card);
    }
    if (err == BAY_OK) {
        err = a2a_agent_set_card(self->engine, shown, STR(""));
    }
    json_builder_drop(&made);
    json_builder_drop(&self->skills);
    if (err != BAY_OK) {
        LOG(LOG_WARN, "agents", "the card of \"%.*s\" could not be made: %s",
            BAY_STR(self->settings->name), bay_err_text(err));
        agents_card_free(card);
    } else {
        agents_card_free(self->card);
        self->card = card;
        self->skill_count = self->found;
        tool_agent_turns_begin(self);
    }
    tool_agent_tell(self);
}

/* ---- the list of tools ----------------------------------------------------------------------- */

static void list_failed(agents_tool_agent *self, const char *why)
{
    LOG(LOG_WARN, "agents", "the tools of \"%.*s\" could not be listed: %s",
        BAY_STR(self->settings->name), why);
    tool_agent_tell(self);
    /* without memory the next look at the card tries it */
    err_ignore(loop_timer_start(self->loop, &self->again, AGAIN_MS));
}

static void on_listed(void *user, mcp_call *call, const mcp_outcome *outcome)
{
    agents_tool_agent *self = user;
    (void)call;
    self->listing = NULL;
    if (outcome->kind != MCP_OUTCOME_RESULT) {
        list_failed(self, outcome->kind == MCP_OUTCOME_FAILED ? outcome->text : "an error came");
        return;
    }
    json_iter at = json_iter_of(json_get(outcome->result, STR("tools")));
    while (json_next(&at)) {
        put_skill(self, at.value);
    }
    json_val next = json_get(outcome->result, STR("nextCursor"));
    if (json_is(next, JSON_STRING) && ++self->pages < TOOL_AGENT_PAGES) {
        list_tools(self, next);
        return;
    }
    if (self->is_stale) {
        self->is_stale = false;
        list_tools(self, JSON_NONE);
        return;
    }
    take_list(self);
}

static const mcp_call_events list_events = {.done = on_listed};

static void list_tools(agents_tool_agent *self, json_val cursor)
{
    json_val params = JSON_NONE;
    json_builder made; /* the cursor may live in what ends with this function's caller */
    json_writer *to = json_builder_init(&made, NULL, 1 << 20);
    bay_err err = BAY_OK;
    if (json_is(cursor, JSON_STRING)) {
        json_open_object(to);
        json_key_lit(to, "cursor");
        json_put_val(to, cursor);
        json_close_object(to);
        err = json_builder_view(&made, &params);
    } else {
        json_builder_drop(&self->skills);
        json_open_array(json_builder_init(&self->skills, NULL, TOOL_AGENT_LIST_BYTES));
        self->found = 0;
        self->pages = 0;
    }
    bay_diag diag = {0};
    mcp_call_spec spec = {.method = STR("tools/list"), .params = params};
    if (err == BAY_OK) {
        err = mcp_client_call(mcp_link_client(self->link), &spec, &list_events, self,
                              loop_now_ms(self->loop), &self->listing, &diag);
    }
    json_builder_drop(&made);
    if (err != BAY_OK) {
        self->listing = NULL;
        list_failed(self, diag.text[0] != '\0' ? diag.text : bay_err_text(err));
    }
}

/* ---- the link -------------------------------------------------------------------------------- */

static void on_ready(void *user)
{
    (void)user; /* calls wait by themselves */
}

static void on_broken(void *user, bay_err err, const char *text)
{
    agents_tool_agent *self = user;
    (void)err;
    (void)text;
    loop_defer(self->loop, &self->reconnect_task);
}

static void on_changed(void *user, mcp_change change)
{
    agents_tool_agent *self = user;
    if ((mcp_change_any(change) & MCP_CHANGE_TOOLS) == 0) {
        return;
    }
    if (self->listing != NULL) {
        self->is_stale = true;
    } else if (self->link != NULL) {
        self->is_learning = true;
        list_tools(self, JSON_NONE);
    }
}

static const mcp_client_events client_events = {
    .ready = on_ready, .broken = on_broken, .changed = on_changed};

static bay_err connect(agents_tool_agent *self)
{
    mcp_server *engine = self->tools.engine(self->tools.user);
    if (engine == NULL) {
        return BAY_ERR_NOT_FOUND;
    }
    mcp_link_options options = {.client = {.name = STR("patchbay"),
                                           .title = self->settings->name,
                                           .version = str_of(bay_version()),
                                           .capabilities = STR("{\"elicitation\":{\"form\":{},"
                                                               "\"url\":{}}}"),
                                           .oldest = MCP_LATEST,
                                           .newest = MCP_LATEST,
                                           .call_timeout_ms = self->settings->timeout_ms,
                                           .max_total_ms = self->settings->timeout_ms,
                                           .max_calls = MOST_CALLS,
                                           .wants_changes = true},
                                .events = &client_events,
                                .user = self};
    return mcp_link_open_local(self->loop, engine, &options, &self->link);
}

bool agents_tool_agent_learn(agents_tool_agent *self)
{
    if (self->card != NULL || self->is_learning) {
        return self->is_learning;
    }
    self->is_learning = true;
    bay_err err = self->link == NULL ? connect(self) : BAY_OK;
    if (err == BAY_OK) {
        list_tools(self, JSON_NONE);
    } else {
        list_failed(self, bay_err_text(err));
    }
    return self->is_learning;
}

static void learn_again(void *argument)
{
    agents_tool_agent *self = argument;
    if (self->card == NULL) {
        agents_tool_agent_learn(self);
    }
}

/* A link lives one life. */
static void reconnect(void *argument)
{
    agents_tool_agent *self = argument;
    mcp_link *broken = self->link;
    self->link = NULL;
    self->listing = NULL;
    mcp_link_free(broken);
    self->is_learning = false;
    if (connect(self) == BAY_OK) {
        self->is_learning = true;
        list_tools(self, JSON_NONE);
    } else {
        err_ignore(loop_timer_start(self->loop, &self->again, AGAIN_MS)); /* as in list_failed */
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static void tick(void *argument)
{
    agents_tool_agent *self = argument;
    a2a_agent_tick(self->engine);
}

static void wake(void *user, uint64_t at_ms)
{
    agents_tool_agent *self = user;
    uint64_t now = loop_time_ms();
    if (loop_timer_start(self->loop, &self->tick, at_ms > now ? at_ms - now : 1) != BAY_OK) {
        LOG(LOG_WARN, "agents", "no memory for an agent's timer");
    }
}

bay_err agents_tool_agent_new(loop *on, const agents_tools *tools, const agents_settings *settings,
                              const agents_public *public, agents_tool_agent **out, bay_diag *diag)
{
    agents_tool_agent *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->loop = on;
    self->tools = *tools;
    self->settings = settings;
    self->public = public;
    self->reconnect_task = (loop_task){.function = reconnect, .argument = self};
    loop_timer_init(&self->tick, tick, self);
    loop_timer_init(&self->again, learn_again, self);
    list_init(&self->watches);
    list_init(&self->turns);
    list_init(&self->waiting);
    json_open_array(json_builder_init(&self->skills, NULL, TOOL_AGENT_LIST_BYTES));
    arena_init(&self->scratch, SCRATCH_BYTES);
    json_builder made;
    json_val card = JSON_NONE;
    write_card(self, JSON_NONE, json_builder_init(&made, NULL, TOOL_AGENT_LIST_BYTES));
    bay_err err = json_builder_view(&made, &card);
    a2a_agent_options options = {.handler = &tool_agent_handler,
                                 .user = self,
                                 .card = card,
                                 .extended_card = STR(""),
                                 .now = wall_clock,
                                 .wake = wake};
    if (err == BAY_OK) {
        err = a2a_agent_new(&options, &self->engine);
    }
    json_builder_drop(&made);
    if (err == BAY_OK) {
        err = loop_timer_start(on, &self->again, 1);
    }
    if (err != BAY_OK) {
        agents_tool_agent_free(self);
        return diag_set(diag, err, "agents.%.*s: %s", BAY_STR(settings->name), bay_err_text(err));
    }
    *out = self;
    return BAY_OK;
}

void agents_tool_agent_free(agents_tool_agent *self)
{
    if (self == NULL) {
        return;
    }
    loop_timer_stop(self->loop, &self->again);
    loop_undefer(self->loop, &self->reconnect_task);
    tool_agent_turns_end(self);
    if (self->engine != NULL) {
        a2a_agent_free(self->engine);
    }
    loop_timer_stop(self->loop, &self->tick);
    if (self->listing != NULL) {
        mcp_call_cancel(self->listing, STR("the agent ends"));
    }
    mcp_link_free(self->link);
    agents_card_free(self->card);
    json_builder_drop(&self->skills);
    arena_fini(&self->scratch);
    mem_free(self);
}

a2a_service *agents_tool_agent_service(agents_tool_agent *self)
{
    return a2a_agent_service(self->engine);
}

agents_card *agents_tool_agent_card(agents_tool_agent *self)
{
    return self->card;
}

void agents_tool_agent_watch(agents_tool_agent *self, agents_watch *watch)
{
    list_push(&self->watches, &watch->link);
}

size_t agents_tool_agent_calls(const agents_tool_agent *self)
{
    return self->turn_count;
}

size_t agents_tool_agent_skills(const agents_tool_agent *self)
{
    return self->skill_count;
}
