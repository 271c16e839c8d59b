/* A message to an agent made of tools, and the call of a tool that it becomes.
 *
 *   turn ─► WAITING (the tools are not known) ─► CALLING ─► ended
 *                                                   └─ a question: INPUT_REQUIRED, for a page that
 *                                                      the user is to open AUTH_REQUIRED, ended; what
 *                                                      the tool was called with is remembered with
 *                                                      the task, and the next turn calls it again
 *
 * Invariants
 * - A turn is in `waiting` or in `turns` from its begin to its end, and has one reference.
 * - What a task remembers is {"tool", "arguments", "state", "requests"}: raw JSON of the question.
 */
#include <stdio.h>
#include <string.h>

#include "agents/proxy_params.h"
#include "agents/tool_agent_parts.h"
#include "base/err.h"
#include "base/mem.h"

typedef struct tool_agent_turn {
    list_link link;
    agents_tool_agent *made;
    a2a_turn *turn;
    mcp_call *call;
    json_val kept; /* what the task remembers of it, in `memory` */
    arena memory;
} tool_agent_turn;

/* ---- telling the task ------------------------------------------------------------------------ */

/* Moves the task; a move that is refused is one that came too late. */
static void move(tool_agent_turn *self, a2a_state state)
{
    err_ignore(a2a_turn_status(self->turn, state, JSON_NONE, JSON_NONE));
}

static json_writer *open_parts(json_builder *message)
{
    json_writer *to = json_builder_init(message, NULL, TOOL_AGENT_MESSAGE_BYTES);
    json_open_object(to);
    json_key_lit(to, "parts");
    json_open_array(to);
    return to;
}

/* Moves the task with the message whose parts were written; without it, where it is too large. */
static void move_parts(tool_agent_turn *self, a2a_state state, json_builder *message)
{
    json_val value = JSON_NONE;
    json_close_array(&message->writer);
    json_close_object(&message->writer);
    err_ignore(json_builder_view(message, &value));
    err_ignore(a2a_turn_status(self->turn, state, value, JSON_NONE));
    json_builder_drop(message);
}

static void move_text(tool_agent_turn *self, a2a_state state, bay_str text)
{
    err_ignore(
        a2a_turn_status_text(self->turn, state, text.len > 0 ? text : STR("no reason was given")));
}

static void tool_turn_finish(tool_agent_turn *self)
{
    a2a_turn *turn = self->turn;
    self->made->turn_count--;
    list_remove(&self->link);
    arena_fini(&self->memory);
    mem_free(self);
    a2a_turn_end(turn);
    a2a_turn_unref(turn);
}

static void finish_with(tool_agent_turn *self, a2a_state state, bay_str text)
{
    move_text(self, state, text);
    tool_turn_finish(self);
}

/* ---- what the tool says ---------------------------------------------------------------------- */

static void complete(tool_agent_turn *self, json_val result)
{
    json_builder made;
    json_val artifact;
    json_writer *to = json_builder_init(&made, NULL, TOOL_AGENT_MESSAGE_BYTES);
    json_open_object(to);
    json_key_lit(to, "artifactId");
    json_put_str(to, STR("result"));
    json_key_lit(to, "name");
    json_put_str(to, STR("result"));
    json_key_lit(to, "parts");
    json_open_array(to);
    bool has_parts = tool_agent_put_parts(to, result);
    json_close_array(to);
    json_close_object(to);
    bay_err err = json_builder_view(&made, &artifact);
    if (err == BAY_OK && has_parts) {
        err = a2a_turn_artifact(self->turn, artifact, false, true);
    }
    json_builder_drop(&made);
    if (err != BAY_OK && err != BAY_ERR_STATE && err != BAY_ERR_CLOSED) {
        finish_with(self, A2A_FAILED, STR("what the tool gave cannot be carried"));
        return;
    }
    move(self, A2A_COMPLETED);
    tool_turn_finish(self);
}

static void tool_turn_fail(tool_agent_turn *self, json_val result)
{
    json_builder message;
    json_writer *to = open_parts(&message);
    if (tool_agent_put_parts(to, result) && message.text.err == BAY_OK) {
        move_parts(self, A2A_FAILED, &message);
    } else {
        json_builder_drop(&message);
        move_text(self, A2A_FAILED, STR("the tool failed"));
    }
    tool_turn_finish(self);
}

/* A page that the user is to open: what he does there is between him and its server. */
static bool is_page(json_val question)
{
    return json_str_eq(json_get(question, STR("mode")), STR("url")) &&
           json_is(json_get(question, STR("url")), JSON_STRING);
}

/* The first question of the round; a client of ours can be asked for forms and pages alone. */
static json_val first_question(json_val requests)
{
    json_iter at = json_iter_of(requests);
    return json_next(&at) ? json_get(at.value, STR("params")) : JSON_NONE;
}

/* Puts the question to what the tool was called with. BAY_ERR_STATE: that was too long to be
 * kept. */
static bay_err remember_question(tool_agent_turn *self, json_val requests, json_val state)
{
    static const bay_str ours[] = {STR_INIT("state"), STR_INIT("requests")};
    buf text;
    json_writer writer;
    if (!json_is(self->kept, JSON_OBJECT)) {
        return BAY_ERR_STATE;
    }
    buf_init(&text, A2A_TURN_MEMORY_BYTES);
    json_writer_init(&writer, &text);
    json_open_object(&writer);
    json_put_members(&writer, self->kept, ours, ARRAY_LEN(ours));
    if (json_is(state, JSON_STRING)) {
        json_key(&writer, ours[0]);
        json_put_val(&writer, state);
    }
    json_key(&writer, ours[1]);
    json_put_raw(&writer, json_is(requests, JSON_OBJECT) ? json_raw(requests) : STR("{}"));
    json_close_object(&writer);
    bay_err err = text.err == BAY_OK ? a2a_turn_remember(self->turn, buf_view(&text)) : text.err;
    buf_fini(&text);
    return err;
}

static void write_question(json_writer *to, json_val question)
{
    json_val words = json_get(question, STR("message"));
    json_val schema = json_get(question, STR("requestedSchema"));
    json_open_object(to);
    json_key_lit(to, "text");
    if (json_is(words, JSON_STRING)) {
        json_put_val(to, words);
    } else {
        json_put_str(to, STR("the tool needs input"));
    }
    json_close_object(to);
    bool is_form = json_is(schema, JSON_OBJECT);
    if (is_form || is_page(question)) {
        json_open_object(to);
        json_key_lit(to, "data");
        json_open_object(to);
        json_key(to, is_form ? STR("requestedSchema") : STR("url"));
        json_put_val(to, is_form ? schema : json_get(question, STR("url")));
        json_close_object(to);
        json_close_object(to);
    }
}

static void tool_turn_ask(tool_agent_turn *self, json_val result)
{
    json_val requests = json_get(result, STR("inputRequests"));
    json_val question = first_question(requests);
    json_val state = json_get(result, STR("requestState"));
    bay_err err = remember_question(self, requests, state);
    if (err == BAY_OK) {
        json_builder message;
        write_question(open_parts(&message), question);
        move_parts(self, is_page(question) ? A2A_AUTH_REQUIRED : A2A_INPUT_REQUIRED, &message);
        tool_turn_finish(self);
    } else {
        finish_with(self, A2A_FAILED, STR("what the tool asks cannot be kept"));
    }
}

static void on_notified(void *user, mcp_call *call, const mcp_method *method, json_val params)
{
    tool_agent_turn *self = user;
    bay_str text;
    (void)call;
    json_val words = json_get(params, STR("message"));
    if (method->id == MCP_N_PROGRESS && json_is(words, JSON_STRING) &&
        json_str(words, &self->memory, &text) == BAY_OK) {
        move_text(self, A2A_WORKING, text);
    }
}

static void on_done(void *user, mcp_call *call, const mcp_outcome *outcome)
{
    tool_agent_turn *self = user;
    (void)call;
    self->call = NULL;
    if (outcome->kind == MCP_OUTCOME_FAILED) {
        finish_with(self, A2A_FAILED, str_of(outcome->text));
        return;
    }
    if (outcome->kind == MCP_OUTCOME_ERROR) {
        bay_str text = STR("the tool answered with an error");
        json_val words = json_get(outcome->error, STR("message"));
        if (json_is(words, JSON_STRING) && json_str(words, &self->memory, &text) != BAY_OK) {
            text = STR("out of memory");
        }
        finish_with(self, A2A_FAILED, text);
        return;
    }
    if (json_str_eq(json_get(outcome->result, STR("resultType")), STR("input_required"))) {
        tool_turn_ask(self, outcome->result);
    } else if (json_true(json_get(outcome->result, STR("isError")))) {
        tool_turn_fail(self, outcome->result);
    } else {
        complete(self, outcome->result);
    }
}

static const mcp_call_events call_events = {.notified = on_notified, .done = on_done};

/* ---- what the message says ------------------------------------------------------------------- */

static bool has_skill(const agents_tool_agent *self, json_val name)
{
    json_iter at = json_iter_of(json_get(agents_card_source(self->card), STR("skills")));
    while (json_next(&at)) {
        if (json_str_same(json_get(at.value, STR("id")), name)) {
            return true;
        }
    }
    return false;
}

/* The tool that a message names, and its arguments; JSON_NONE: none. */
typedef struct wanted {
    json_val tool;
    json_val arguments;
} wanted;

static wanted read_message(json_val request)
{
    json_val message = json_get(request, STR("message"));
    json_val named = agents_proxy_skill_of(request);
    wanted found = {.tool = named, .arguments = JSON_NONE};
    for (json_iter at = json_iter_of(json_get(message, STR("parts"))); json_next(&at);) {
        json_val data = json_get(at.value, STR("data"));
        json_val text = json_get(at.value, STR("text"));
        if (json_is(json_get(data, STR("tool")), JSON_STRING)) {
            return (wanted){json_get(data, STR("tool")), json_get(data, STR("arguments"))};
        }
        if (json_is(data, JSON_OBJECT) && json_is(named, JSON_STRING)) {
            json_val inner = json_get(data, STR("arguments"));
            found.arguments = json_is(inner, JSON_OBJECT) ? inner : data;
        } else if (json_is(text, JSON_STRING) && !json_is(found.tool, JSON_STRING)) {
            found.tool = text; /* the id of a skill, or nothing */
        }
    }
    return found;
}

static void reject(tool_agent_turn *self)
{
    buf text;
    buf_init(&text, 8192);
    buf_lit(&text, "say which tool to call by a data part {\"tool\": …, \"arguments\": {…}}, or by "
                   "its id as text. There are: ");
    agents_card_write_skills(self->made->card, &text);
    finish_with(self, A2A_REJECTED, buf_view(&text));
    buf_fini(&text);
}

/* ---- answers to questions -------------------------------------------------------------------- */

/* The one property of a form that has a single one: what a plain text answers. */
static json_val only_property(json_val question)
{
    json_val properties = json_get(json_get(question, STR("requestedSchema")), STR("properties"));
    json_iter at = json_iter_of(properties);
    return json_count(properties) == 1 && json_next(&at) ? at.key : JSON_NONE;
}

/* {"action":…,"content":…} for one question, out of the message. */
static void put_response(json_writer *writer, json_val question, json_val request, arena *memory)
{
    json_val parts = json_get(json_get(request, STR("message")), STR("parts"));
    for (json_iter at = json_iter_of(parts); json_next(&at);) {
        json_val data = json_get(at.value, STR("data"));
        json_val text = json_get(at.value, STR("text"));
        json_val property = only_property(question);
        json_val action = json_get(data, STR("action"));
        if (json_str_eq(action, STR("decline")) || json_str_eq(action, STR("cancel"))) {
            json_put_val(writer, data);
            return;
        }
        bool is_text = json_is(text, JSON_STRING) && json_is(property, JSON_STRING);
        bool is_opened = is_page(question); /* whatever is said: he has been there */
        if (!is_text && !is_opened && !json_is(data, JSON_OBJECT)) {
            continue;
        }
        json_open_object(writer);
        if (is_opened) {
            json_key_lit(writer, "action");
            json_put_str(writer, STR("accept"));
            json_close_object(writer);
            return;
        }
        json_key_lit(writer, "action");
        json_put_str(writer, STR("accept"));
        json_key_lit(writer, "content");
        json_val inner = json_get(data, STR("content"));
        bay_str name;
        if (is_text && json_str(property, memory, &name) == BAY_OK) {
            json_open_object(writer);
            json_key(writer, name);
            json_put_val(writer, text);
            json_close_object(writer);
        } else if (is_text) {
            json_put_val(writer, JSON_NONE); /* the error sticks */
        } else {
            json_put_val(writer, json_is(inner, JSON_OBJECT) ? inner : data);
        }
        json_close_object(writer);
        return;
    }
    json_open_object(writer);
    json_key_lit(writer, "action");
    json_put_str(writer, STR("cancel"));
    json_close_object(writer);
}

static void write_again(json_val kept, json_val request, arena *memory, json_writer *to)
{
    json_open_object(to);
    json_key_lit(to, "name");
    json_put_val(to, json_get(kept, STR("tool")));
    json_key_lit(to, "arguments");
    json_put_val(to, json_get(kept, STR("arguments")));
    json_key_lit(to, "inputResponses");
    json_open_object(to);
    json_val requests = json_get(kept, STR("requests"));
    for (json_iter at = json_iter_of(requests); json_next(&at);) {
        bay_str key;
        if (json_str_plain(at.key, &key)) {
            json_key(to, key);
            put_response(to, json_get(at.value, STR("params")), request, memory);
        }
    }
    json_close_object(to);
    json_val state = json_get(kept, STR("state"));
    if (json_is(state, JSON_STRING)) {
        json_key_lit(to, "requestState");
        json_put_val(to, state);
    }
    json_close_object(to);
}

/* ---- calling --------------------------------------------------------------------------------- */

static void put_meta(json_writer *to, bay_str key, bay_str value)
{
    if (value.len > 0) {
        json_key(to, key);
        json_put_str(to, value);
    }
}

/* The trace that the message belongs to goes on in the call, in a span of ours; and so does whom it
 * came through. */
static json_val meta_of(tool_agent_turn *self)
{
    char span[PROXY_TRACE_BYTES];
    bay_str trace = agents_proxy_child_span(a2a_turn_traceparent(self->turn), span);
    json_builder made;
    json_val meta = JSON_NONE;
    json_writer *to = json_builder_init(&made, &self->memory, 16 << 10);
    json_open_object(to);
    put_meta(to, STR("traceparent"), trace);
    if (trace.len > 0) {
        put_meta(to, STR("tracestate"), a2a_turn_tracestate(self->turn));
    }
    put_meta(to, STR(MCP_META_VIA), a2a_turn_via(self->turn));
    json_close_object(to);
    bay_err err = json_builder_end(&made, &meta);
    return err == BAY_OK && json_count(meta) > 0 ? meta : JSON_NONE;
}

static void call_tool(tool_agent_turn *self, json_val params)
{
    bay_diag diag = {0};
    agents_tool_agent *made = self->made;
    bay_err err = made->link != NULL ? BAY_OK : BAY_ERR_CLOSED;
    if (err == BAY_OK) {
        move(self, A2A_WORKING);
        mcp_call_spec spec = {.method = STR("tools/call"),
                              .principal = a2a_turn_principal(self->turn),
                              .params = params,
                              .meta = meta_of(self),
                              .wants_progress = true};
        err = mcp_client_call(mcp_link_client(made->link), &spec, &call_events, self,
                              loop_now_ms(made->loop), &self->call, &diag);
    }
    if (err != BAY_OK) {
        finish_with(self, A2A_FAILED, str_of(diag.text[0] != '\0' ? diag.text : bay_err_text(err)));
    }
}

/* {`key`: the tool, "arguments": …} */
static bay_err write_call(tool_agent_turn *self, bay_str key, json_val tool, json_val arguments,
                          size_t max_bytes, json_val *out)
{
    json_builder made;
    json_writer *to = json_builder_init(&made, &self->memory, max_bytes);
    json_open_object(to);
    json_key(to, key);
    json_put_val(to, tool);
    json_key_lit(to, "arguments");
    json_put_val(to, arguments);
    json_close_object(to);
    return json_builder_end(&made, out);
}

static void begin_first(tool_agent_turn *self, json_val request)
{
    wanted found = read_message(request);
    if (!json_is(found.tool, JSON_STRING) || !has_skill(self->made, found.tool)) {
        reject(self);
        return;
    }
    json_val params = JSON_NONE;
    json_val kept = JSON_NONE;
    json_val arguments =
        json_is(found.arguments, JSON_OBJECT) ? found.arguments : json_empty_object();
    bay_err err =
        write_call(self, STR("name"), found.tool, arguments, TOOL_AGENT_MESSAGE_BYTES, &params);
    if (err != BAY_OK) {
        finish_with(self, A2A_FAILED, STR("the message does not fit into memory"));
        return;
    }
    /* arguments that are too long for it: the tool is called, but cannot ask */
    if (write_call(self, STR("tool"), found.tool, arguments, A2A_TURN_MEMORY_BYTES, &kept) ==
            BAY_OK &&
        a2a_turn_remember(self->turn, json_raw(kept)) == BAY_OK) {
        self->kept = kept;
    }
    call_tool(self, params);
}

static void begin_again(tool_agent_turn *self, json_val kept, json_val request)
{
    json_builder made;
    json_val params = JSON_NONE;
    self->kept = kept;
    write_again(kept, request, &self->memory,
                json_builder_init(&made, &self->memory, TOOL_AGENT_MESSAGE_BYTES));
    if (json_builder_end(&made, &params) != BAY_OK) {
        finish_with(self, A2A_FAILED, STR("the message does not fit into memory"));
        return;
    }
    call_tool(self, params);
}

static void tool_turn_begin(tool_agent_turn *self)
{
    json_val request = a2a_turn_request(self->turn);
    bay_str remembered = a2a_turn_remembered(self->turn);
    bay_str text;
    json_doc *kept = arena_alloc(&self->memory, sizeof(*kept));
    list_remove(&self->link);
    list_push(&self->made->turns, &self->link);
    if (!a2a_turn_is_new(self->turn) && remembered.len > 0 && kept != NULL &&
        arena_dup(&self->memory, remembered, &text) == BAY_OK &&
        json_parse(kept, text, NULL, &self->memory, NULL) == BAY_OK &&
        json_is(json_get(json_root(kept), STR("requests")), JSON_OBJECT)) {
        begin_again(self, json_root(kept), request);
        return;
    }
    begin_first(self, request);
}

/* ---- for the engine -------------------------------------------------------------------------- */

static void on_turn(void *user, a2a_turn *turn)
{
    agents_tool_agent *made = user;
    tool_agent_turn *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        a2a_turn_end(turn); /* the engine says that it failed */
        return;
    }
    self->made = made;
    self->turn = a2a_turn_ref(turn);
    self->kept = JSON_NONE;
    arena_init(&self->memory, 4 * (size_t)TOOL_AGENT_MESSAGE_BYTES);
    list_push(&made->waiting, &self->link);
    made->turn_count++;
    if (made->card != NULL) {
        tool_turn_begin(self);
    } else {
        agents_tool_agent_learn(made);
    }
}

static tool_agent_turn *find(const list *among, const a2a_turn *turn)
{
    for (list_link *at = among->head.next; at != &among->head; at = at->next) {
        tool_agent_turn *found = CONTAINER_OF(at, tool_agent_turn, link);
        if (found->turn == turn) {
            return found;
        }
    }
    return NULL;
}

static void on_canceled(void *user, a2a_turn *turn)
{
    agents_tool_agent *made = user;
    tool_agent_turn *self = find(&made->turns, turn);
    self = self != NULL ? self : find(&made->waiting, turn);
    if (self == NULL) {
        return; /* it has ended */
    }
    if (self->call != NULL) {
        mcp_call_cancel(self->call, STR("the task was canceled"));
    }
    tool_turn_finish(self);
}

const a2a_handler tool_agent_handler = {.turn = on_turn, .canceled = on_canceled};

void tool_agent_turns_begin(agents_tool_agent *self)
{
    list_link *at;
    while (self->card != NULL && (at = list_first(&self->waiting)) != NULL) {
        tool_turn_begin(CONTAINER_OF(at, tool_agent_turn, link));
    }
}

static void end_all(list *among)
{
    list_link *at;
    while ((at = list_first(among)) != NULL) {
        tool_agent_turn *self = CONTAINER_OF(at, tool_agent_turn, link);
        if (self->call != NULL) {
            mcp_call_cancel(self->call, STR("the agent ends"));
        }
        finish_with(self, A2A_FAILED, STR("the agent leaves the gateway"));
    }
}

void tool_agent_turns_end(agents_tool_agent *self)
{
    end_all(&self->waiting);
    end_all(&self->turns);
}
