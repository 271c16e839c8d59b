/* A message to an agent made of tools, and the call of a tool that it becomes.
 *
 *   turn ─► WAITING (the tools are not known) ─► CALLING ─► ended
 *                                                   └─ a question: INPUT_REQUIRED, ended; what the
 *                                                      tool was called with is remembered with the
 *                                                      task, and the next turn calls it again
 *
 * Invariants
 * - A turn is in `waiting` or in `turns` from its begin to its end, and has one reference.
 * - What a task remembers is {"tool", "arguments", "state", "requests"}: raw JSON of the question.
 */
#include <stdio.h>
#include <string.h>

#include "agents/made_parts.h"
#include "agents/relay_params.h"
#include "base/err.h"
#include "base/mem.h"

typedef struct made_turn {
    list_link link;
    agents_made *made;
    a2a_turn *turn;
    mcp_call *call;
    arena memory;
} made_turn;

/* ---- telling the task ------------------------------------------------------------------------ */

/* Moves the task with a message of these parts (raw elements); a move that is refused is one that
 * came too late. */
static void move(made_turn *self, a2a_state state, bay_str parts)
{
    json_doc doc;
    json_val message = JSON_NONE;
    buf text;
    arena memory;
    buf_init(&text, MADE_MESSAGE_BYTES);
    arena_init(&memory, 4 * (size_t)MADE_MESSAGE_BYTES);
    if (parts.len > 0) {
        buf_lit(&text, "{\"parts\":[");
        buf_str(&text, parts);
        buf_lit(&text, "]}");
        if (text.err == BAY_OK &&
            json_parse(&doc, buf_view(&text), &a2a_json_limits, &memory, NULL) == BAY_OK) {
            message = json_root(&doc);
        }
    }
    err_ignore(a2a_turn_status(self->turn, state, message, JSON_NONE));
    arena_fini(&memory);
    buf_fini(&text);
}

static void move_text(made_turn *self, a2a_state state, bay_str text)
{
    buf parts;
    buf_init(&parts, MADE_MESSAGE_BYTES);
    buf_lit(&parts, "{\"text\":");
    json_quote(&parts, text.len > 0 ? text : STR("no reason was given"));
    buf_char(&parts, '}');
    move(self, state, parts.err == BAY_OK ? buf_view(&parts) : STR(""));
    buf_fini(&parts);
}

static void finish(made_turn *self)
{
    a2a_turn *turn = self->turn;
    self->made->turn_count--;
    list_remove(&self->link);
    arena_fini(&self->memory);
    mem_free(self);
    a2a_turn_end(turn);
    a2a_turn_unref(turn);
}

static void finish_with(made_turn *self, a2a_state state, bay_str text)
{
    move_text(self, state, text);
    finish(self);
}

/* ---- content of a result as parts ------------------------------------------------------------ */

static void put_member(buf *out, const char *key, json_val value)
{
    if (json_is(value, JSON_STRING) && json_raw(value).len > 2) {
        buf_printf(out, ",\"%s\":", key);
        buf_str(out, json_raw(value));
    }
}

static void put_resource(buf *out, json_val resource)
{
    json_val text = json_get(resource, STR("text"));
    json_val blob = json_get(resource, STR("blob"));
    bool is_text = json_is(text, JSON_STRING);
    buf_str(out, is_text ? STR("{\"text\":") : STR("{\"raw\":"));
    buf_str(out, is_text ? json_raw(text) : json_raw(blob));
    put_member(out, "filename", json_get(resource, STR("uri")));
    put_member(out, "mediaType", json_get(resource, STR("mimeType")));
    buf_char(out, '}');
}

/* One item of content; nothing for kinds that nobody knows. */
static bool put_part(buf *out, json_val item, bool is_first)
{
    json_val type = json_get(item, STR("type"));
    json_val value = JSON_NONE;
    const char *key = NULL;
    json_val resource = json_get(item, STR("resource"));
    bool is_embedded = json_str_eq(type, STR("resource")) &&
                       (json_is(json_get(resource, STR("text")), JSON_STRING) ||
                        json_is(json_get(resource, STR("blob")), JSON_STRING));
    if (json_str_eq(type, STR("text"))) {
        key = "text";
        value = json_get(item, STR("text"));
    } else if (json_str_eq(type, STR("image")) || json_str_eq(type, STR("audio"))) {
        key = "raw";
        value = json_get(item, STR("data"));
    } else if (json_str_eq(type, STR("resource_link"))) {
        key = "url";
        value = json_get(item, STR("uri"));
    }
    if (!is_embedded && !json_is(value, JSON_STRING)) {
        return false;
    }
    buf_str(out, is_first ? STR("") : STR(","));
    if (is_embedded) {
        put_resource(out, resource);
        return true;
    }
    buf_printf(out, "{\"%s\":", key);
    buf_str(out, json_raw(value));
    put_member(out, "filename", json_get(item, STR("name")));
    put_member(out, "mediaType", json_get(item, STR("mimeType")));
    buf_char(out, '}');
    return true;
}

static void put_parts(buf *out, json_val result)
{
    bool is_first = true;
    for (json_iter at = json_iter_of(json_get(result, STR("content"))); json_next(&at);) {
        is_first = !put_part(out, at.value, is_first) && is_first;
    }
    json_val structured = json_get(result, STR("structuredContent"));
    if (!json_is(structured, JSON_MISSING)) {
        buf_str(out, is_first ? STR("{\"data\":") : STR(",{\"data\":"));
        buf_str(out, json_raw(structured));
        buf_lit(out, ",\"mediaType\":\"application/json\"}");
    }
}

/* ---- what the tool says ---------------------------------------------------------------------- */

static void complete(made_turn *self, json_val result)
{
    json_doc doc;
    buf parts, text;
    arena memory;
    buf_init(&parts, MADE_MESSAGE_BYTES);
    buf_init(&text, MADE_MESSAGE_BYTES);
    arena_init(&memory, 4 * (size_t)MADE_MESSAGE_BYTES);
    put_parts(&parts, result);
    bay_err err = parts.err;
    if (parts.len > 0 && err == BAY_OK) {
        buf_lit(&text, "{\"artifactId\":\"result\",\"name\":\"result\",\"parts\":[");
        buf_str(&text, buf_view(&parts));
        buf_lit(&text, "]}");
        err = text.err == BAY_OK
                  ? json_parse(&doc, buf_view(&text), &a2a_json_limits, &memory, NULL)
                  : text.err;
        err = err == BAY_OK ? a2a_turn_artifact(self->turn, json_root(&doc), false, true) : err;
    }
    arena_fini(&memory);
    buf_fini(&parts);
    buf_fini(&text);
    if (err != BAY_OK && err != BAY_STATE && err != BAY_CLOSED) {
        finish_with(self, A2A_FAILED, STR("what the tool gave cannot be carried"));
        return;
    }
    move(self, A2A_COMPLETED, STR(""));
    finish(self);
}

static void fail(made_turn *self, json_val result)
{
    buf parts;
    buf_init(&parts, MADE_MESSAGE_BYTES);
    put_parts(&parts, result);
    if (parts.len > 0 && parts.err == BAY_OK) {
        move(self, A2A_FAILED, buf_view(&parts));
    } else {
        move_text(self, A2A_FAILED, STR("the tool failed"));
    }
    buf_fini(&parts);
    finish(self);
}

/* The first question of the round; a client of ours can be asked for forms alone. */
static json_val first_question(json_val requests)
{
    json_iter at = json_iter_of(requests);
    return json_next(&at) ? json_get(at.value, STR("params")) : JSON_NONE;
}

static void ask(made_turn *self, json_val result)
{
    json_val requests = json_get(result, STR("inputRequests"));
    json_val question = first_question(requests);
    json_val words = json_get(question, STR("message"));
    json_val schema = json_get(question, STR("requestedSchema"));
    json_val state = json_get(result, STR("requestState"));
    json_doc doc; /* of what is remembered now: tool and arguments */
    buf kept, parts;
    buf_init(&kept, A2A_TURN_MEMORY_BYTES);
    buf_init(&parts, MADE_MESSAGE_BYTES);
    bay_err err = json_parse(&doc, a2a_turn_remembered(self->turn), NULL, &self->memory, NULL);
    if (err == BAY_OK) {
        static const bay_str ours[] = {STR_INIT("state"), STR_INIT("requests")};
        json_writer writer;
        json_writer_init(&writer, &kept);
        json_open_object(&writer);
        json_put_members(&writer, json_root(&doc), ours, ARRAY_LEN(ours));
        if (json_is(state, JSON_STRING)) {
            json_key(&writer, ours[0]);
            json_put_val(&writer, state);
        }
        json_key(&writer, ours[1]);
        json_put_raw(&writer, json_is(requests, JSON_OBJECT) ? json_raw(requests) : STR("{}"));
        json_close_object(&writer);
        err = kept.err == BAY_OK ? a2a_turn_remember(self->turn, buf_view(&kept)) : kept.err;
    }
    if (err == BAY_OK) {
        buf_lit(&parts, "{\"text\":");
        buf_str(&parts,
                json_is(words, JSON_STRING) ? json_raw(words) : STR("\"the tool needs input\""));
        buf_char(&parts, '}');
        if (json_is(schema, JSON_OBJECT)) {
            buf_lit(&parts, ",{\"data\":{\"requestedSchema\":");
            buf_str(&parts, json_raw(schema));
            buf_lit(&parts, "}}");
        }
        move(self, A2A_INPUT_REQUIRED, parts.err == BAY_OK ? buf_view(&parts) : STR(""));
    }
    buf_fini(&kept);
    buf_fini(&parts);
    if (err == BAY_OK) {
        finish(self);
    } else {
        finish_with(self, A2A_FAILED, STR("what the tool asks cannot be kept"));
    }
}

static void on_notified(void *user, mcp_call *call, const mcp_method *method, json_val params)
{
    made_turn *self = user;
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
    made_turn *self = user;
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
        ask(self, outcome->result);
    } else if (json_true(json_get(outcome->result, STR("isError")))) {
        fail(self, outcome->result);
    } else {
        complete(self, outcome->result);
    }
}

static const mcp_call_events call_events = {.notified = on_notified, .done = on_done};

/* ---- what the message says ------------------------------------------------------------------- */

static bool has_skill(const agents_made *self, json_val name)
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
    json_val named = relay_skill_of(request);
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

static void reject(made_turn *self)
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
static void put_response(json_writer *writer, json_val question, json_val request)
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
        if (!is_text && !json_is(data, JSON_OBJECT)) {
            continue;
        }
        json_open_object(writer);
        json_key_lit(writer, "action");
        json_put_str(writer, STR("accept"));
        json_key_lit(writer, "content");
        json_val inner = json_get(data, STR("content"));
        if (is_text) {
            buf_char(writer->out, '{');
            buf_str(writer->out, json_raw(property));
            buf_char(writer->out, ':');
            buf_str(writer->out, json_raw(text));
            json_put_raw(writer, STR("}"));
        } else {
            json_put_val(writer, json_is(inner, JSON_OBJECT) ? inner : data);
        }
        json_close_object(writer);
        return;
    }
    json_put_raw(writer, STR("{\"action\":\"cancel\"}"));
}

static void write_again(json_val kept, json_val request, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "name");
    json_put_val(&writer, json_get(kept, STR("tool")));
    json_key_lit(&writer, "arguments");
    json_put_val(&writer, json_get(kept, STR("arguments")));
    json_key_lit(&writer, "inputResponses");
    json_open_object(&writer);
    json_val requests = json_get(kept, STR("requests"));
    for (json_iter at = json_iter_of(requests); json_next(&at);) {
        bay_str key;
        if (json_str_plain(at.key, &key)) {
            json_key(&writer, key);
            put_response(&writer, json_get(at.value, STR("params")), request);
        }
    }
    json_close_object(&writer);
    json_val state = json_get(kept, STR("state"));
    if (json_is(state, JSON_STRING)) {
        json_key_lit(&writer, "requestState");
        json_put_val(&writer, state);
    }
    json_close_object(&writer);
}

/* ---- calling --------------------------------------------------------------------------------- */

static void put_meta(buf *out, const char *key, bay_str value)
{
    if (value.len > 0) {
        buf_printf(out, "%s\"%s\":", out->len > 1 ? "," : "", key);
        json_quote(out, value);
    }
}

/* The trace that the message belongs to goes on in the call, in a span of ours; and so does whom it
 * came through. */
static json_val meta_of(made_turn *self, json_doc *doc)
{
    char span[RELAY_TRACE_BYTES];
    bay_str trace = relay_child_span(a2a_turn_traceparent(self->turn), span);
    bay_str text;
    buf out;
    json_val meta = JSON_NONE;
    buf_init(&out, 16 << 10);
    buf_char(&out, '{');
    put_meta(&out, "traceparent", trace);
    if (trace.len > 0) {
        put_meta(&out, "tracestate", a2a_turn_tracestate(self->turn));
    }
    put_meta(&out, MCP_META_VIA, a2a_turn_via(self->turn));
    bool is_empty = out.len == 1;
    buf_char(&out, '}');
    if (!is_empty && out.err == BAY_OK &&
        arena_dup(&self->memory, buf_view(&out), &text) == BAY_OK &&
        json_parse(doc, text, NULL, &self->memory, NULL) == BAY_OK) {
        meta = json_root(doc);
    }
    buf_fini(&out);
    return meta;
}

static void call_tool(made_turn *self, bay_str params)
{
    json_doc doc, meta;
    bay_diag diag = {0};
    agents_made *made = self->made;
    bay_err err = made->link != NULL ? BAY_OK : BAY_CLOSED;
    if (err == BAY_OK) {
        err = json_parse(&doc, params, &a2a_json_limits, &self->memory, NULL);
    }
    if (err == BAY_OK) {
        move(self, A2A_WORKING, STR(""));
        mcp_call_spec spec = {.method = STR("tools/call"),
                              .principal = a2a_turn_principal(self->turn),
                              .params = json_root(&doc),
                              .meta = meta_of(self, &meta),
                              .wants_progress = true};
        err = mcp_client_call(mcp_link_client(made->link), &spec, &call_events, self,
                              loop_now_ms(made->loop), &self->call, &diag);
    }
    if (err != BAY_OK) {
        finish_with(self, A2A_FAILED, str_of(diag.text[0] != '\0' ? diag.text : bay_err_text(err)));
    }
}

static void begin_first(made_turn *self, json_val request)
{
    wanted found = read_message(request);
    if (!json_is(found.tool, JSON_STRING) || !has_skill(self->made, found.tool)) {
        reject(self);
        return;
    }
    buf params, kept;
    buf_init(&params, MADE_MESSAGE_BYTES);
    buf_init(&kept, A2A_TURN_MEMORY_BYTES);
    bay_str arguments =
        json_is(found.arguments, JSON_OBJECT) ? json_raw(found.arguments) : STR("{}");
    buf_lit(&params, "{\"name\":");
    buf_str(&params, json_raw(found.tool));
    buf_lit(&params, ",\"arguments\":");
    buf_str(&params, arguments);
    buf_char(&params, '}');
    buf_lit(&kept, "{\"tool\":");
    buf_str(&kept, json_raw(found.tool));
    buf_lit(&kept, ",\"arguments\":");
    buf_str(&kept, arguments);
    buf_char(&kept, '}');
    bay_str text = {"", 0};
    bay_err err = params.err;
    err = err == BAY_OK ? arena_dup(&self->memory, buf_view(&params), &text) : err;
    if (err == BAY_OK && kept.err == BAY_OK) {
        /* arguments that are too long for it: the tool is called, but cannot ask */
        err_ignore(a2a_turn_remember(self->turn, buf_view(&kept)));
    }
    buf_fini(&params);
    buf_fini(&kept);
    if (err != BAY_OK) {
        finish_with(self, A2A_FAILED, STR("the message does not fit into memory"));
        return;
    }
    call_tool(self, text);
}

static void begin_again(made_turn *self, json_val kept, json_val request)
{
    buf params;
    bay_str text = {"", 0};
    buf_init(&params, MADE_MESSAGE_BYTES);
    write_again(kept, request, &params);
    bay_err err = params.err;
    err = err == BAY_OK ? arena_dup(&self->memory, buf_view(&params), &text) : err;
    buf_fini(&params);
    if (err != BAY_OK) {
        finish_with(self, A2A_FAILED, STR("the message does not fit into memory"));
        return;
    }
    call_tool(self, text);
}

static void begin(made_turn *self)
{
    json_doc doc;
    json_val request = a2a_turn_request(self->turn);
    bay_str remembered = a2a_turn_remembered(self->turn);
    bay_str kept;
    list_remove(&self->link);
    list_push(&self->made->turns, &self->link);
    if (!a2a_turn_is_new(self->turn) && remembered.len > 0 &&
        arena_dup(&self->memory, remembered, &kept) == BAY_OK &&
        json_parse(&doc, kept, NULL, &self->memory, NULL) == BAY_OK &&
        json_is(json_get(json_root(&doc), STR("requests")), JSON_OBJECT)) {
        begin_again(self, json_root(&doc), request);
        return;
    }
    begin_first(self, request);
}

/* ---- for the engine -------------------------------------------------------------------------- */

static void on_turn(void *user, a2a_turn *turn)
{
    agents_made *made = user;
    made_turn *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        a2a_turn_end(turn); /* the engine says that it failed */
        return;
    }
    self->made = made;
    self->turn = a2a_turn_ref(turn);
    arena_init(&self->memory, 4 * (size_t)MADE_MESSAGE_BYTES);
    list_push(&made->waiting, &self->link);
    made->turn_count++;
    if (made->card != NULL) {
        begin(self);
    } else {
        agents_made_learn(made);
    }
}

static made_turn *find(const list *among, const a2a_turn *turn)
{
    for (list_link *at = among->head.next; at != &among->head; at = at->next) {
        made_turn *found = CONTAINER_OF(at, made_turn, link);
        if (found->turn == turn) {
            return found;
        }
    }
    return NULL;
}

static void on_canceled(void *user, a2a_turn *turn)
{
    agents_made *made = user;
    made_turn *self = find(&made->turns, turn);
    self = self != NULL ? self : find(&made->waiting, turn);
    if (self == NULL) {
        return; /* it has ended */
    }
    if (self->call != NULL) {
        mcp_call_cancel(self->call, STR("the task was canceled"));
    }
    finish(self);
}

const a2a_handler made_handler = {.turn = on_turn, .canceled = on_canceled};

void made_turns_begin(agents_made *self)
{
    list_link *at;
    while (self->card != NULL && (at = list_first(&self->waiting)) != NULL) {
        begin(CONTAINER_OF(at, made_turn, link));
    }
}

static void end_all(list *among)
{
    list_link *at;
    while ((at = list_first(among)) != NULL) {
        made_turn *self = CONTAINER_OF(at, made_turn, link);
        if (self->call != NULL) {
            mcp_call_cancel(self->call, STR("the agent ends"));
        }
        finish_with(self, A2A_FAILED, STR("the agent leaves the gateway"));
    }
}

void made_turns_end(agents_made *self)
{
    end_all(&self->waiting);
    end_all(&self->turns);
}
