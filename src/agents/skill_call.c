/* One call of a skill: a message to the agent through its relay, as any caller's, and what comes of
 * it as the result of a tool.
 *
 *   tools/call ─► SendStreamingMessage (SendMessage, where the agent has no streams)
 *     task, statusUpdate ─► progress          artifactUpdate ─► content
 *     COMPLETED ─► the result                 FAILED, REJECTED, CANCELED ─► isError
 *     INPUT_REQUIRED ─► input_required, answered by the next round; a client that cannot be asked
 *                       gets isError, with the id of the task to go on with
 *
 * Invariants
 * - The call's end (result, end, fail) comes exactly once, and answers the request.
 * - A request that is cancelled ends its call, and the task behind it is cancelled, too. */
#include <stdio.h>
#include <string.h>

#include "agents/skills_parts.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "mcp/inputs.h"

/* The cancel of a task nobody waits for. */
typedef struct silent_cancel {
    a2a_call call; /* first */
    arena memory;
} silent_cancel;

static bay_str no_field(a2a_call *call, bay_str name)
{
    (void)call;
    (void)name;
    return (bay_str){NULL, 0};
}

bay_err skill_call_write_id(const char *task, arena *memory, json_val *out)
{
    json_builder made;
    json_writer *to = json_builder_init(&made, memory, SKILL_ID_BYTES + 16);
    json_open_object(to);
    json_key_lit(to, "id");
    json_put_raw(to, str_of(task));
    json_close_object(to);
    return json_builder_end(&made, out);
}

/* ---- cancelling ------------------------------------------------------------------------------ */

static void silent_free(a2a_call *call)
{
    silent_cancel *self = CONTAINER_OF(call, silent_cancel, call);
    arena_fini(&self->memory);
    principal_unref(self->call.principal);
    mem_free(self);
}

static void silent_result(a2a_call *call, bay_str json)
{
    (void)json;
    silent_free(call);
}

static void silent_fail(a2a_call *call, const a2a_fault *fault)
{
    (void)fault;
    silent_free(call);
}

static bay_err silent_event(a2a_call *call, a2a_event *event)
{
    (void)call;
    (void)event;
    return BAY_OK;
}

static const a2a_call_ops silent_ops = {silent_result, silent_event, silent_free, silent_fail,
                                        no_field};

static void cancel_task(a2a_service *service, const char *task, const auth_principal *principal)
{
    silent_cancel *made = task[0] != '\0' ? mem_zalloc(sizeof(*made)) : NULL;
    if (made == NULL) {
        return;
    }
    arena_init(&made->memory, 1 << 16);
    json_val params;
    if (skill_call_write_id(task, &made->memory, &params) != BAY_OK) {
        silent_free(&made->call);
        return;
    }
    made->call = (a2a_call){.ops = &silent_ops,
                            .method = A2A_CANCEL_TASK,
                            .version = A2A_1_0,
                            .params = params,
                            .tenant = STR(""),
                            .principal = principal_ref(principal),
                            .extensions = STR(""),
                            .traceparent = STR(""),
                            .memory = &made->memory};
    a2a_service_call(service, &made->call);
}

/* ---- ending ---------------------------------------------------------------------------------- */

void skill_call_free(skill_call *self)
{
    list_remove(&self->link);
    skill_content_fini(&self->content);
    mem_free(self->status);
    arena_fini(&self->memory);
    principal_unref(self->principal);
    mem_free(self);
}

mcp_request *skill_call_part(skill_call *self)
{
    mcp_request *request = self->request;
    self->request = NULL;
    request->user = NULL;
    return request;
}

static void put_raw_id(json_writer *to, bay_str key, const char *id)
{
    if (id[0] != '\0') {
        json_key(to, key);
        json_put_raw(to, str_of(id));
    }
}

static void write_meta(const skill_call *self, json_writer *to)
{
    if (self->task[0] == '\0' && self->context[0] == '\0') {
        return;
    }
    json_key_lit(to, "_meta");
    json_open_object(to);
    json_key_lit(to, "patchbay/a2a");
    json_open_object(to);
    put_raw_id(to, STR("taskId"), self->task);
    put_raw_id(to, STR("contextId"), self->context);
    json_key_lit(to, "state");
    json_put_str(to, a2a_state_names[self->state]);
    json_close_object(to);
    json_close_object(to);
}

static json_val status_parts(const skill_call *self)
{
    return self->status != NULL ? json_root(self->status) : JSON_NONE;
}

/* The text of the agent's last word, for a person. */
void skill_call_write_words(const skill_call *self, buf *out)
{
    arena memory;
    arena_init(&memory, SKILL_PARAMS_BYTES);
    for (json_iter at = json_iter_of(status_parts(self)); json_next(&at);) {
        bay_str text;
        json_val value = json_get(at.value, STR("text"));
        if (json_is(value, JSON_STRING) && json_str(value, &memory, &text) == BAY_OK) {
            buf_str(out, out->len > 0 ? STR("\n") : STR(""));
            buf_str(out, text);
        }
    }
    arena_fini(&memory);
}

static void add_status(skill_call *self)
{
    if (self->status != NULL) {
        skill_content_parts(&self->content, json_root(self->status));
    }
}

bay_err skill_call_write(skill_call *self, bool is_error, json_writer *to)
{
    json_key_lit(to, "content");
    json_open_array(to);
    skill_content_write(&self->content, to);
    json_close_array(to);
    if (self->content.structured != NULL) {
        json_key_lit(to, "structuredContent");
        json_put_val(to, json_root(self->content.structured));
    }
    if (is_error) {
        json_key_lit(to, "isError");
        json_put_bool(to, true);
    }
    write_meta(self, to);
    return self->content.err != BAY_OK ? self->content.err : to->out->err;
}

void skill_call_reply(skill_call *self, bay_err err, json_builder *whole)
{
    json_val result;
    mcp_request *request = skill_call_part(self);
    err = err == BAY_OK ? json_builder_view(whole, &result) : err;
    if (err == BAY_OK) {
        mcp_request_result(request, result);
    } else {
        mcp_request_error(request, RPC_INTERNAL_ERROR,
                          err == BAY_ERR_LIMIT ? STR("The agent's answer is too long")
                                               : STR("The agent's answer does not fit into memory"),
                          STR(""));
    }
    json_builder_drop(whole);
    skill_call_free(self);
}

static void skill_call_answer(skill_call *self, bool is_error)
{
    json_builder whole;
    if (self->mode == SKILL_GET) {
        skill_task_show(self, is_error);
        return;
    }
    json_writer *to = json_builder_init(&whole, NULL, 2 * SKILL_CONTENT_BYTES);
    json_open_object(to);
    bay_err err = skill_call_write(self, is_error, to);
    json_close_object(to);
    skill_call_reply(self, err, &whole);
}

static void answer_error(skill_call *self, bay_str text)
{
    skill_content_text(&self->content, text);
    skill_call_answer(self, true);
}

static bool can_ask(const mcp_request *request)
{
    return (mcp_inputs_of(request->revision, request->client_capabilities) & MCP_INPUT_FORM) != 0;
}

/* The client is asked what the agent wants to know. The state is the task's id: nothing that a
 * caller could not say by `taskId` as well. */
static void ask_client(skill_call *self, bay_str words)
{
    json_builder whole;
    char state[2 * SKILL_ID_BYTES + 8];
    json_writer *to = json_builder_init(&whole, NULL, 8 << 20);
    json_open_object(to);
    json_key_lit(to, "resultType");
    json_put_str(to, STR("input_required"));
    json_key_lit(to, "inputRequests");
    skill_task_write_question(words, to);
    json_key_lit(to, "requestState");
    (void)snprintf(state, sizeof(state), "[%s,%s]", self->task,
                   self->context[0] != '\0' ? self->context : "\"\"");
    json_put_str(to, str_of(state));
    json_close_object(to);
    skill_call_reply(self, BAY_OK, &whole);
}

static void answer_interrupted(skill_call *self)
{
    buf words;
    if (self->mode == SKILL_GET && self->state == A2A_INPUT_REQUIRED) {
        skill_task_show(self, false);
        return;
    }
    buf_init(&words, 4 << 20);
    skill_call_write_words(self, &words);
    bool is_input = self->state == A2A_INPUT_REQUIRED;
    if (is_input && self->task[0] != '\0' && can_ask(self->request)) {
        ask_client(self, words.len > 0 ? buf_view(&words) : STR("The agent needs more input."));
        buf_fini(&words);
        return;
    }
    buf text;
    buf_init(&text, 4 << 20);
    buf_str(&text, is_input ? STR("The agent needs input") : STR("The agent needs authentication"));
    if (words.len > 0) {
        buf_lit(&text, ": ");
        buf_str(&text, buf_view(&words));
    }
    if (self->task[0] != '\0') {
        buf_printf(&text,
                   "\nTo go on, call this tool again with taskId %s and the answer as "
                   "message.",
                   self->task);
    }
    answer_error(self, buf_view(&text));
    buf_fini(&text);
    buf_fini(&words);
}

/* Nothing more comes. */
static void conclude(skill_call *self)
{
    bool is_over = a2a_state_is_terminal(self->state);
    if (self->mode == SKILL_UPDATE || self->mode == SKILL_CANCEL) {
        skill_task_acknowledge(self);
        return;
    }
    if (!is_over && self->task[0] != '\0' && self->mode == SKILL_BEGIN) {
        skill_task_announce(self);
        return;
    }
    if (self->mode == SKILL_GET && !is_over && !a2a_state_is_interrupted(self->state)) {
        skill_task_show(self, false);
        return;
    }
    switch (self->state) {
    case A2A_COMPLETED:
        add_status(self);
        skill_call_answer(self, false);
        return;
    case A2A_INPUT_REQUIRED:
    case A2A_AUTH_REQUIRED:
        answer_interrupted(self);
        return;
    case A2A_FAILED:
    case A2A_REJECTED:
    case A2A_CANCELED:
        add_status(self);
        if (self->status == NULL) {
            skill_content_text(&self->content, self->state == A2A_FAILED ? STR("The task failed.")
                                               : self->state == A2A_REJECTED
                                                   ? STR("The agent rejected the task.")
                                                   : STR("The task was canceled."));
        }
        skill_call_answer(self, true);
        return;
    default:
        answer_error(self, STR("The agent ended its stream before the task was done."));
        return;
    }
}

/* ---- what the agent says --------------------------------------------------------------------- */

static void keep_id(char out[SKILL_ID_BYTES], json_val id)
{
    bay_str raw = json_raw(id);
    if (json_is(id, JSON_STRING) && raw.len > 2 && raw.len < SKILL_ID_BYTES) {
        memcpy(out, raw.at, raw.len);
        out[raw.len] = '\0';
    }
}

static void take_status(skill_call *self, json_val status)
{
    bay_str name;
    if (json_str_plain(json_get(status, STR("state")), &name)) {
        self->state = a2a_state_of(name);
    }
    json_val parts = json_get(json_get(status, STR("message")), STR("parts"));
    mem_free(self->status);
    self->status = NULL;
    if (json_is(parts, JSON_ARRAY) && json_clone(parts, &self->status) != BAY_OK) {
        self->content.err = BAY_ERR_NOMEM;
    }
}

static void take_task(skill_call *self, json_val task)
{
    keep_id(self->task, json_get(task, STR("id")));
    keep_id(self->context, json_get(task, STR("contextId")));
    json_val status = json_get(task, STR("status"));
    take_status(self, status);
    keep_id(self->updated, json_get(status, STR("timestamp")));
    for (json_iter at = json_iter_of(json_get(task, STR("artifacts"))); json_next(&at);) {
        skill_content_add(&self->content, at.value, false);
    }
}

static void tell_progress(skill_call *self)
{
    buf words, members;
    if (self->request == NULL || self->request->progress_token.len == 0) {
        return;
    }
    buf_init(&words, 64 << 10);
    buf_init(&members, 256 << 10);
    skill_call_write_words(self, &words);
    self->progress += 1;
    buf_printf(&members, "\"progress\":%.0f", self->progress);
    if (words.len > 0 && words.err == BAY_OK) {
        buf_lit(&members, ",\"message\":");
        json_quote(&members, buf_view(&words));
    }
    if (members.err == BAY_OK) {
        err_ignore(mcp_request_progress(self->request, self->progress, buf_view(&members)));
    }
    buf_fini(&words);
    buf_fini(&members);
}

/* A message is the whole answer; a task or an update of one. False: nothing of the kind. */
static void take_event(skill_call *self, json_val bare)
{
    static const bay_str keys[] = {STR_INIT("task"), STR_INIT("message"), STR_INIT("statusUpdate"),
                                   STR_INIT("artifactUpdate")};
    json_val found[4];
    bay_err err = json_pick(bare, keys, 4, found, NULL);
    if (json_is(json_get(bare, STR("status")), JSON_OBJECT)) {
        take_task(self, bare);
    } else if (err == BAY_OK && json_is(found[0], JSON_OBJECT)) {
        take_task(self, found[0]);
        tell_progress(self);
    } else if (err == BAY_OK && json_is(found[1], JSON_OBJECT)) {
        keep_id(self->context, json_get(found[1], STR("contextId")));
        skill_content_parts(&self->content, json_get(found[1], STR("parts")));
        self->state = A2A_COMPLETED;
    } else if (err == BAY_OK && json_is(found[2], JSON_OBJECT)) {
        keep_id(self->task, json_get(found[2], STR("taskId")));
        keep_id(self->context, json_get(found[2], STR("contextId")));
        take_status(self, json_get(found[2], STR("status")));
        tell_progress(self);
    } else if (err == BAY_OK && json_is(found[3], JSON_OBJECT)) {
        keep_id(self->task, json_get(found[3], STR("taskId")));
        skill_content_add(&self->content, json_get(found[3], STR("artifact")),
                          json_true(json_get(found[3], STR("append"))));
    }
}

static skill_call *skill_call_of(a2a_call *call)
{
    return CONTAINER_OF(call, skill_call, call);
}

/* Nobody waits any more, and now the task has a name: it is cancelled. */
static void cancel_orphan(skill_call *self)
{
    if (self->task[0] != '\0' && !a2a_state_is_terminal(self->state) &&
        (self->mode == SKILL_CALL || self->mode == SKILL_BEGIN)) {
        cancel_task(agents_remote_service(self->skills->remote), self->task, self->principal);
    }
}

static void on_result(a2a_call *call, bay_str json)
{
    skill_call *self = skill_call_of(call);
    arena memory;
    json_val value;
    arena_init(&memory, SKILL_PARAMS_BYTES);
    if (a2a_text_view(json, call->answer, &memory, &value) == BAY_OK) {
        take_event(self, value);
    } else {
        self->content.err = BAY_ERR_NOMEM;
    }
    arena_fini(&memory);
    if (self->request == NULL) {
        cancel_orphan(self);
        skill_call_free(self);
        return;
    }
    conclude(self);
}

static bay_err on_event(a2a_call *call, a2a_event *event)
{
    skill_call *self = skill_call_of(call);
    arena memory;
    json_val value;
    arena_init(&memory, SKILL_PARAMS_BYTES);
    if (a2a_event_value(event, &memory, &value) == BAY_OK) {
        take_event(self, value);
    } else {
        self->content.err = BAY_ERR_NOMEM;
    }
    arena_fini(&memory);
    if (self->request == NULL && self->task[0] != '\0') {
        cancel_orphan(self);
        return BAY_ERR_CLOSED;
    }
    return BAY_OK;
}

static void skill_call_on_end(a2a_call *call)
{
    skill_call *self = skill_call_of(call);
    if (self->request == NULL) {
        skill_call_free(self);
        return;
    }
    conclude(self);
}

static void on_fail(a2a_call *call, const a2a_fault *fault)
{
    skill_call *self = skill_call_of(call);
    if (self->request == NULL) {
        skill_call_free(self);
        return;
    }
    if (self->mode == SKILL_GET || self->mode == SKILL_UPDATE || self->mode == SKILL_CANCEL) {
        skill_task_failed(self, fault);
        return;
    }
    answer_error(self, str_of(fault->text));
}

static bay_str read_meta(a2a_call *call, bay_str name)
{
    const skill_call *self = skill_call_of(call);
    return str_eq(name, STR("tracestate")) ? self->tracestate
           : str_eq(name, STR("via"))      ? self->via
                                           : (bay_str){NULL, 0};
}

static const a2a_call_ops call_ops = {on_result, on_event, skill_call_on_end, on_fail, read_meta};

/* ---- beginning ------------------------------------------------------------------------------- */

/* What the client said to what the agent asked; the task it belongs to is in the state. */
typedef struct round_answer {
    json_val text; /* JSON_STRING: the answer */
    json_val task; /* raw strings */
    json_val context;
    bool is_declined;
} round_answer;

static bool read_round(skill_call *self, round_answer *out)
{
    json_val params = self->request->message.params;
    json_val response = json_get(json_get(params, STR("inputResponses")), STR("answer"));
    json_val state = json_get(params, STR("requestState"));
    json_doc *doc = arena_alloc(&self->memory, sizeof(*doc));
    bay_str text;
    *out = (round_answer){.text = JSON_NONE, .task = JSON_NONE, .context = JSON_NONE};
    if (!json_is(response, JSON_OBJECT) || !json_is(state, JSON_STRING) || doc == NULL ||
        json_str(state, &self->memory, &text) != BAY_OK ||
        json_parse(doc, text, NULL, &self->memory, NULL) != BAY_OK) {
        return false;
    }
    out->task = json_item(json_root(doc), 0);
    out->context = json_item(json_root(doc), 1);
    /* from a session's client, or wrapped as a result */
    json_val result = json_get(response, STR("result"));
    response = json_is(result, JSON_OBJECT) ? result : response;
    out->text = json_get(json_get(response, STR("content")), STR("answer"));
    out->is_declined = !json_str_eq(json_get(response, STR("action")), STR("accept")) ||
                       !json_is(out->text, JSON_STRING);
    return json_is(out->task, JSON_STRING);
}

static void put_id(json_writer *writer, bay_str key, json_val id)
{
    if (json_is(id, JSON_STRING) && json_raw(id).len > 2) {
        json_key(writer, key);
        json_put_val(writer, id);
    }
}

static void write_params(const skill_call *self, json_val text, json_val data, json_val task,
                         json_val context, json_writer *out)
{
    char id[37];
    rand_uuid(id);
    json_open_object(out);
    json_key_lit(out, "message");
    json_open_object(out);
    json_key_lit(out, "messageId");
    json_put_str(out, str_of(id));
    put_id(out, STR("contextId"), context);
    put_id(out, STR("taskId"), task);
    json_key_lit(out, "role");
    json_put_str(out, STR("ROLE_USER"));
    json_key_lit(out, "parts");
    json_open_array(out);
    if (json_is(text, JSON_STRING)) {
        json_open_object(out);
        json_key_lit(out, "text");
        json_put_val(out, text);
        json_close_object(out);
    }
    if (!json_is(data, JSON_MISSING)) {
        json_open_object(out);
        json_key_lit(out, "data");
        json_put_val(out, data);
        json_close_object(out);
    }
    json_close_array(out);
    if (self->mode != SKILL_UPDATE) {
        json_key_lit(out, "metadata");
        json_open_object(out);
        json_key_lit(out, "skillId");
        json_put_str(out, self->request->name);
        json_close_object(out);
    }
    json_close_object(out);
    if (self->mode != SKILL_CALL) {
        json_key_lit(out, "configuration");
        json_open_object(out);
        json_key_lit(out, "returnImmediately");
        json_put_bool(out, true);
        json_close_object(out);
    }
    json_close_object(out);
}

bay_err skill_call_build(skill_call *self, json_val text, json_val data, json_val task,
                         json_val context)
{
    json_builder made;
    json_writer *to = json_builder_init(&made, &self->memory, SKILL_PARAMS_BYTES / 2);
    write_params(self, text, data, task, context, to);
    bay_err err = json_builder_end(&made, &self->params);
    bool is_deep = err == BAY_OK && json_is_deeper(self->params, a2a_json_limits.max_depth);
    return is_deep ? BAY_ERR_DEPTH : err;
}

/* A copy of the request's `_meta` member; "" when it is longer than such a thing can be. */
static bay_err copy_meta(skill_call *self, bay_str name, size_t most, bay_str *out)
{
    bay_str text = {"", 0};
    bool is_plain = json_str_plain(json_get(self->request->meta, name), &text);
    return arena_dup(&self->memory, is_plain && text.len <= most ? text : STR(""), out);
}

void skill_call_send(skill_call *self)
{
    /* copies: the request may be answered before the agent is reached */
    bay_str trace = {"", 0};
    if (copy_meta(self, STR("traceparent"), HEADER_TRACESTATE_BYTES, &trace) != BAY_OK ||
        copy_meta(self, STR("tracestate"), HEADER_TRACESTATE_BYTES, &self->tracestate) != BAY_OK ||
        copy_meta(self, STR(MCP_META_VIA), VIA_BYTES, &self->via) != BAY_OK) {
        trace = STR("");
    }
    a2a_service *service = agents_remote_service(self->skills->remote);
    self->call = (a2a_call){
        .ops = &call_ops,
        .method = self->mode == SKILL_GET      ? A2A_GET_TASK
                  : self->mode == SKILL_CANCEL ? A2A_CANCEL_TASK
                  : self->mode == SKILL_CALL   ? A2A_SEND_STREAMING_MESSAGE
                                               : A2A_SEND_MESSAGE,
        .takes_result = true, /* whether there are streams says the card, which may not be here */
        .version = A2A_1_0,
        .binding = A2A_JSONRPC,
        .params = self->params,
        .tenant = STR(""),
        .principal = self->principal,
        .extensions = STR(""),
        .traceparent = trace,
        .memory = &self->memory,
    };
    a2a_service_call(service, &self->call);
}

skill_call *skill_call_new(agents_skills *skills, mcp_request *request, skill_mode mode)
{
    skill_call *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("out of memory"), STR(""));
        return NULL;
    }
    self->skills = skills;
    self->request = request;
    self->principal = principal_ref(request->principal);
    self->mode = mode;
    request->user = self;
    arena_init(&self->memory, 2 * SKILL_PARAMS_BYTES);
    skill_content_init(&self->content, agents_remote_settings(skills->remote)->name);
    list_push(&skills->calls, &self->link);
    return self;
}

void skill_call_begin(agents_skills *skills, mcp_request *request)
{
    skill_call *self =
        skill_call_new(skills, request, skill_task_is_wanted(request) ? SKILL_BEGIN : SKILL_CALL);
    if (self == NULL) {
        return;
    }
    json_val arguments = json_get(request->message.params, STR("arguments"));
    json_val text = json_get(arguments, STR("message"));
    json_val data = json_get(arguments, STR("data"));
    json_val task = json_get(arguments, STR("taskId"));
    json_val context = json_get(arguments, STR("contextId"));
    round_answer round;
    if (read_round(self, &round)) {
        if (round.is_declined) {
            keep_id(self->task, round.task);
            cancel_task(agents_remote_service(skills->remote), self->task, self->principal);
            answer_error(self, STR("The user did not answer what the agent asked."));
            return;
        }
        text = round.text;
        data = JSON_NONE;
        task = round.task;
        context = round.context;
    }
    if (!json_is(text, JSON_STRING)) {
        answer_error(self, STR("\"message\" is missing: say what the agent is to be told"));
        return;
    }
    bay_err err = skill_call_build(self, text, data, task, context);
    if (err != BAY_OK) {
        answer_error(self, err == BAY_ERR_DEPTH ? STR("\"data\" is nested too deeply")
                                                : STR("The message does not fit into memory"));
        return;
    }
    skill_call_send(self);
}

void skill_call_cancelled(mcp_request *request)
{
    skill_call *self = request->user;
    if (self == NULL) {
        return;
    }
    a2a_service *service = agents_remote_service(self->skills->remote);
    char task[SKILL_ID_BYTES];
    const auth_principal *principal = principal_ref(self->principal);
    bool begins = self->mode == SKILL_CALL || self->mode == SKILL_BEGIN;
    memcpy(task, self->task, sizeof(task));
    mcp_request_error(skill_call_part(self), RPC_INTERNAL_ERROR, STR("cancelled"), STR(""));
    if (begins && task[0] == '\0') {
        principal_unref(principal);
        return; /* the agent has not named the task yet: see cancel_orphan */
    }
    self->call.is_gone = true;
    a2a_service_gone(service, &self->call); /* frees it */
    if (begins) {
        cancel_task(service, task, principal);
    }
    principal_unref(principal);
}

void skill_calls_end(agents_skills *skills)
{
    list_link *at;
    while ((at = list_first(&skills->calls)) != NULL) {
        skill_call *self = CONTAINER_OF(at, skill_call, link);
        a2a_service *service = agents_remote_service(skills->remote);
        self->call.is_gone = true;
        a2a_service_gone(service, &self->call); /* fails, and answers so */
    }
}
