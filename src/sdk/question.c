/* Questions of a handler to its client: asked on any thread, placed on the loop, answered where the
 * handler runs. Each is answered once: by the client, by the lack of one, or not at all when the
 * run of the handler ended meanwhile.
 *
 *   new ──ask──► asked (a session's client works on it) ──► ready ──`answered` runs──► gone
 *          ├───► open (a client that is asked by rounds: this run ends with it)
 *          └───► ready (it was answered before, or cannot be asked) */
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "schema/defaults.h"
#include "sdk/server_parts.h"

/* What `answered` is given: lives as long as it runs. */
struct bay_answer {
    question *about;
    bay_err err;
    bay_action action;
    json_val result;       /* missing: there is none */
    bay_document document; /* of the result, once it is read as values */
};

/* ---- asking: the handler's thread */

static question *question_new(bay_call *call, question_kind kind, json_val params)
{
    question *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->call = call;
    self->kind = kind;
    arena_init(&self->memory, CALL_MAX_ANSWER);
    if (json_clone_in(params, &self->memory, &self->params) != BAY_OK) {
        arena_fini(&self->memory);
        mem_free(self);
        return NULL;
    }
    return self;
}

/* With the lock held. One that is never asked: its `answered` still has to run. NULL: those are in
 * use, too. */
static question *take_spare(bay_call *call, question_kind kind)
{
    question *one = call->free_list[0].call == NULL ? &call->free_list[0] : &call->free_list[1];
    if (one->call != NULL) {
        return NULL;
    }
    *one = (question){.call = call, .kind = kind, .err = BAY_ERR_NOMEM};
    arena_init(&one->memory, CALL_MAX_ANSWER);
    return one;
}

static bool is_spare(const question *self)
{
    return self == &self->call->free_list[0] || self == &self->call->free_list[1];
}

static void question_free(question *self)
{
    bay_call *call = self->call;
    schema_free(self->form);
    arena_fini(&self->memory);
    pthread_mutex_lock(&call->server->asking);
    list_remove(&self->link);
    call->open_count--;
    bool is_heap = !is_spare(self);
    if (!is_heap) {
        self->call = NULL;
    }
    pthread_mutex_unlock(&call->server->asking);
    if (is_heap) {
        mem_free(self);
    }
}

static bool key_is_taken(const bay_call *call, bay_str key)
{
    LIST_EACH(link, &call->keys)
    {
        if (str_eq(CONTAINER_OF(link, question_key, link)->text, key)) {
            return true;
        }
    }
    return false;
}

/* The key that was said, or the question's number in the order of this run. Kept for as long as the
 * run lasts: what was answered is found by it. */
static bay_err take_key(bay_call *call, question *one)
{
    char number[16];
    buf digits = {.at = number, .cap = sizeof(number), .max = sizeof(number)};
    buf_uint(&digits, ++call->asked_count);
    bay_str text = call->next_key.len > 0 ? call->next_key : buf_view(&digits);
    call->next_key = (bay_str){NULL, 0};
    if (key_is_taken(call, text)) {
        SERVER_LOG(call->server, LOG_ERROR, "server",
                   "\"%.*s\" asks two questions under the key \"%.*s\"", BAY_STR(call->entry->key),
                   BAY_STR(text));
        return BAY_ERR_DUPLICATE;
    }
    question_key *kept = mem_alloc(sizeof(*kept) + text.len);
    if (kept == NULL) {
        return BAY_ERR_NOMEM;
    }
    memcpy(kept->bytes, text.at, text.len);
    kept->text = (bay_str){kept->bytes, text.len};
    list_push(&call->keys, &kept->link);
    one->key = kept->text;
    return BAY_OK;
}

/* A run of the handler sees to what is asked in it; otherwise the loop has to be told. */
static void wake(bay_call *call)
{
    if (call->is_woken || (sdk_call_on_loop(call) && call->is_running)) {
        return;
    }
    atomic_fetch_add(&call->references, 1);
    call->is_woken = loop_post_message(call->server->loop, &call->wake) == BAY_OK;
    if (!call->is_woken) {
        atomic_fetch_sub(&call->references, 1); /* the loop has ended, and so will the call */
    }
}

void sdk_call_ask(bay_call *call, const call_question *what, json_builder *made, bay_err err)
{
    json_val params = json_empty_object();
    err = err == BAY_OK ? json_builder_view(made, &params) : err;
    question *one = question_new(call, what->kind, params);
    json_builder_drop(made);
    pthread_mutex_lock(&call->server->asking);
    if (one != NULL) {
        bay_err key_err = take_key(call, one);
        err = err == BAY_OK ? key_err : err;
        one->err = call->open_count >= CALL_MAX_QUESTIONS ? BAY_ERR_LIMIT : err;
    } else {
        one = take_spare(call, what->kind);
    }
    if (one != NULL) {
        one->answered = what->answered;
        one->user = what->user;
        one->has_table = what->has_table;
        call->open_count++;
        list_push(&call->asked, &one->link);
    } else {
        call->has_lost = true;
    }
    wake(call);
    pthread_mutex_unlock(&call->server->asking);
}

/* ---- placing: the loop */

const mcp_method *sdk_call_question_method(const question *self)
{
    static const mcp_method_id methods[] = {[QUESTION_FORM] = MCP_ELICITATION,
                                            [QUESTION_URL] = MCP_ELICITATION,
                                            [QUESTION_SAMPLE] = MCP_SAMPLING,
                                            [QUESTION_ROOTS] = MCP_ROOTS_LIST};
    return mcp_method_of(methods[self->kind]);
}

void sdk_call_question_put(const question *self, json_writer *out)
{
    json_key(out, self->key);
    json_open_object(out);
    json_key_lit(out, "method");
    json_put_str(out, sdk_call_question_method(self)->text);
    json_key_lit(out, "params");
    json_put_val(out, self->params);
    json_close_object(out);
}

/* Sampling with tools is a capability of its own (mcp 2025-11-25 client/sampling). */
static bool wants_tools(json_val params)
{
    return !json_is(json_get(params, STR("tools")), JSON_MISSING) ||
           !json_is(json_get(params, STR("toolChoice")), JSON_MISSING);
}

/* mcp 2025-11-25 client/elicitation, Capabilities: an empty object stands for forms alone. */
static bool question_is_supported(question *self)
{
    const mcp_request *request = self->call->request;
    mcp_revision_id revision = request->revision->id;
    json_val has = request->client_capabilities;
    json_val elicitation = mcp_capability(has, STR("elicitation"));
    bool has_url = json_is(json_get(elicitation, STR("url")), JSON_OBJECT);
    switch (self->kind) {
    case QUESTION_FORM:
        return revision >= MCP_REV_2025_06_18 && json_is(elicitation, JSON_OBJECT) &&
               (!has_url || json_is(json_get(elicitation, STR("form")), JSON_OBJECT));
    case QUESTION_URL:
        return revision >= MCP_REV_2025_11_25 && has_url;
    case QUESTION_SAMPLE:
        return json_is(mcp_capability(has, STR("sampling")), JSON_OBJECT) &&
               (!wants_tools(self->params) ||
                (revision >= MCP_REV_2025_11_25 &&
                 json_is(mcp_capability(has, STR("sampling.tools")), JSON_OBJECT)));
    default:
        return json_is(mcp_capability(has, STR("roots")), JSON_OBJECT);
    }
}

/* What the client fills in is held against the form; a form that is none is the handler's mistake.
 */
static bay_err compile_form(question *self)
{
    bay_diag diag = {0};
    json_val wanted = json_get(self->params, STR("requestedSchema"));
    bay_err err = schema_compile(wanted, NULL, &self->form, &diag);
    self->wanted = err == BAY_OK ? wanted : JSON_NONE;
    if (err != BAY_OK && err != BAY_ERR_NOMEM) {
        SERVER_LOG(self->call->server, LOG_ERROR, "server",
                   "\"%.*s\": the requestedSchema of a question: %s",
                   BAY_STR(self->call->entry->key), diag.text);
        return BAY_ERR_INVALID;
    }
    return err;
}

static void place(bay_call *call, question *one)
{
    bay_err err = one->err;
    if (err == BAY_OK && one->kind == QUESTION_FORM) {
        err = compile_form(one);
    }
    if (err == BAY_OK && (call->is_parted || atomic_load(&call->is_cancelled))) {
        err = BAY_ERR_CANCELLED;
    } else if (err == BAY_OK && !question_is_supported(one)) {
        err = BAY_ERR_UNSUPPORTED;
    }
    if (err != BAY_OK) {
        sdk_call_question_answered(one, err, JSON_NONE);
    } else {
        call->sink->ask(call, one);
    }
}

static void collect(bay_call *call)
{
    list_link *link;
    pthread_mutex_lock(&call->server->asking);
    call->is_short = call->is_short || call->has_lost;
    while ((link = list_pop(&call->asked)) != NULL) {
        list_push(&call->questions, link);
    }
    pthread_mutex_unlock(&call->server->asking);
}

static question *find(const bay_call *call, question_state state)
{
    LIST_EACH(link, &call->questions)
    {
        question *one = CONTAINER_OF(link, question, link);
        if (one->state == state) {
            return one;
        }
    }
    return NULL;
}

bool sdk_call_questions_has(const bay_call *call, question_state state)
{
    return find(call, state) != NULL;
}

bool sdk_call_questions_pending(bay_call *call)
{
    question *one;
    collect(call);
    while ((one = find(call, QUESTION_NEW)) != NULL) {
        place(call, one);
    }
    return sdk_call_questions_has(call, QUESTION_READY);
}

void sdk_call_questions_cancel(bay_call *call)
{
    question *one;
    while ((one = find(call, QUESTION_OPEN)) != NULL) {
        one->state = QUESTION_READY;
        one->err = BAY_ERR_CANCELLED;
    }
}

void sdk_call_questions_forget(bay_call *call)
{
    list_link *link;
    if (call->asked_count + call->open_count == 0 && !call->has_lost) {
        return; /* as nearly every call */
    }
    collect(call);
    while ((link = list_first(&call->questions)) != NULL) {
        question_free(CONTAINER_OF(link, question, link));
    }
    while ((link = list_pop(&call->keys)) != NULL) {
        mem_free(CONTAINER_OF(link, question_key, link));
    }
    call->asked_count = 0;
    call->has_lost = call->is_short = false;
    call->next_key = (bay_str){NULL, 0};
}

/* ---- answers: the loop takes them … */

static bool is_action(json_val action)
{
    return json_str_eq(action, STR("accept")) || json_str_eq(action, STR("decline")) ||
           json_str_eq(action, STR("cancel"));
}

static bool are_roots(json_val roots)
{
    json_iter each = json_iter_of(roots);
    while (json_next(&each)) {
        if (!json_is(json_get(each.value, STR("uri")), JSON_STRING)) {
            return false;
        }
    }
    return json_is(roots, JSON_ARRAY);
}

/* An accepted form without content has nothing filled in. */
static bay_err check_form(question *self, json_val action, json_val content)
{
    bay_server *server = self->call->server;
    schema_failures failures;
    if (!is_action(action) || (!json_is(content, JSON_MISSING) && !json_is(content, JSON_OBJECT))) {
        return BAY_ERR_PROTOCOL;
    }
    if (!json_str_eq(action, STR("accept"))) {
        return BAY_OK;
    }
    content = json_is(content, JSON_MISSING) ? json_empty_object() : content;
    bay_err err = schema_check(self->form, content, &server->checks, &failures);
    if (err == BAY_OK || err == BAY_ERR_NOMEM) {
        return err;
    }
    LOG(LOG_WARN, "server", "a form that \"%.*s\" asked for came back wrong: %.*s",
        BAY_STR(self->call->entry->key),
        BAY_STR(failures.count > 0 ? failures.item[0].rule : STR("")));
    return BAY_ERR_PROTOCOL;
}

bay_err sdk_call_question_check(question *self, json_val result)
{
    bool is_good = json_is(result, JSON_OBJECT);
    json_val content = json_get(result, STR("content"));
    switch (self->kind) {
    case QUESTION_FORM:
        return is_good ? check_form(self, json_get(result, STR("action")), content)
                       : BAY_ERR_PROTOCOL;
    case QUESTION_URL:
        is_good = is_good && is_action(json_get(result, STR("action")));
        break;
    case QUESTION_SAMPLE:
        is_good = is_good && json_is(json_get(result, STR("role")), JSON_STRING) &&
                  (json_is(content, JSON_OBJECT) || json_is(content, JSON_ARRAY));
        break;
    default:
        is_good = is_good && are_roots(json_get(result, STR("roots")));
    }
    return is_good ? BAY_OK : BAY_ERR_PROTOCOL;
}

/* The answer, with the defaults that the person left out where a table says which. */
static bay_err keep_answer(question *self, json_val result)
{
    json_val content = json_get(result, STR("content"));
    content = json_is(content, JSON_MISSING) ? json_empty_object() : content;
    if (!self->has_table || !json_str_eq(json_get(result, STR("action")), STR("accept")) ||
        !schema_lacks_default(self->wanted, content, DEFAULTS_OF_OPTIONAL)) {
        return json_clone_in(result, &self->memory, &self->answer);
    }
    static const bay_str replaced[] = {STR_INIT("content")};
    json_builder builder;
    json_writer *writer = json_builder_init(&builder, &self->memory, CALL_MAX_ANSWER);
    json_open_object(writer);
    json_put_members(writer, result, replaced, ARRAY_LEN(replaced));
    json_key_lit(writer, "content");
    schema_put_defaults(self->wanted, content, DEFAULTS_OF_OPTIONAL, writer);
    json_close_object(writer);
    return json_builder_end(&builder, &self->answer);
}

void sdk_call_question_answered(question *self, bay_err err, json_val result)
{
    bay_call *call = self->call;
    if (call->request->is_cancelled && call->task == NULL) { /* a task goes on without its client */
        atomic_store(&call->is_cancelled, true); /* the engine says so after its questions ended */
    }
    if (err == BAY_OK) {
        err = keep_answer(self, result);
    }
    self->err = err;
    self->state = QUESTION_READY;
    if (call->is_running || atomic_load(&call->is_finished)) {
        return; /* the run sees it, or nobody wants it any more */
    }
    atomic_fetch_add(&call->references, 1);
    call->is_running = true;
    sdk_call_returned(call);
}

/* … and where the handler runs, they are given to it. */

static void run_one(question *one)
{
    bay_call *call = one->call;
    bay_answer answer = {.about = one, .err = one->err, .action = BAY_ACTION_NONE};
    if (answer.err == BAY_OK) {
        answer.result = one->answer;
        json_val action = json_get(answer.result, STR("action"));
        answer.action = json_str_eq(action, STR("decline"))  ? BAY_ACTION_DECLINE
                        : json_str_eq(action, STR("cancel")) ? BAY_ACTION_CANCEL
                                                             : BAY_ACTION_ACCEPT;
    }
    if (one->answered != NULL && !atomic_load(&call->is_finished)) {
        one->answered(call, &answer, one->user);
    }
}

static void answer_work(void *argument)
{
    bay_call *call = argument;
    LIST_EACH(link, &call->answering)
    {
        run_one(CONTAINER_OF(link, question, link));
    }
}

static void answered_free(bay_call *call)
{
    list_link *link;
    while ((link = list_first(&call->answering)) != NULL) {
        question_free(CONTAINER_OF(link, question, link));
    }
}

static void answer_worked(void *argument)
{
    answered_free(argument);
    sdk_call_returned(argument);
}

bool sdk_call_questions_answer(bay_call *call)
{
    question *one;
    bool is_blocking = call->entry->is_blocking;
    while ((one = find(call, QUESTION_READY)) != NULL) {
        list_remove(&one->link);
        list_push(&call->answering, &one->link);
    }
    if (is_blocking && loop_work(call->server->loop, answer_work, answer_worked, call) == BAY_OK) {
        return false;
    }
    if (is_blocking) {
        call->is_short = true;
    } else {
        answer_work(call);
    }
    answered_free(call);
    return true;
}

/* ---- what an answer says */

bay_action bay_answer_action(const bay_answer *self)
{
    return self != NULL ? self->action : BAY_ACTION_NONE;
}

bay_err bay_answer_error(const bay_answer *self)
{
    return self != NULL ? self->err : BAY_ERR_INVALID;
}

static bay_str text_of(const bay_answer *self, json_val value)
{
    bay_str text = {NULL, 0};
    if (!json_is(value, JSON_STRING)) {
        return json_is(value, JSON_MISSING) ? text : json_raw(value);
    }
    return json_str(value, &self->about->memory, &text) == BAY_OK ? text : (bay_str){NULL, 0};
}

bay_str bay_answer_str(const bay_answer *self, const char *field)
{
    return bay_value_str(bay_answer_value(self, field != NULL ? field : ""));
}

bay_value bay_answer_value(const bay_answer *answer, const char *field)
{
    bay_answer *self = (bay_answer *)answer; /* the document is only a way to read it */
    if (self == NULL) {
        return (bay_value){NULL, 0};
    }
    json_val form = json_get(self->result, STR("content"));
    if (self->document.memory == NULL && form.doc != NULL) {
        self->document = (bay_document){.doc = *form.doc, .memory = &self->about->memory};
    }
    return sdk_value(&self->document, field != NULL ? json_get(form, str_of(field)) : form);
}

bay_str bay_answer_content(const bay_answer *self)
{
    if (self == NULL || self->about->kind != QUESTION_FORM) {
        return (bay_str){NULL, 0};
    }
    return json_raw(json_get(self->result, STR("content")));
}

static bay_str block_text(const bay_answer *self, json_val block)
{
    return json_str_eq(json_get(block, STR("type")), STR("text"))
               ? text_of(self, json_get(block, STR("text")))
               : (bay_str){NULL, 0};
}

bay_str bay_answer_text(const bay_answer *self)
{
    bay_str text = {NULL, 0};
    if (self == NULL || self->about->kind != QUESTION_SAMPLE) {
        return text;
    }
    json_val content = json_get(self->result, STR("content"));
    if (!json_is(content, JSON_ARRAY)) {
        return block_text(self, content);
    }
    buf all;
    buf_init(&all, CALL_MAX_ANSWER);
    json_iter each = json_iter_of(content);
    while (json_next(&each)) {
        buf_str(&all, block_text(self, each.value));
    }
    if (all.err != BAY_OK || arena_dup(&self->about->memory, buf_view(&all), &text) != BAY_OK) {
        text = (bay_str){NULL, 0};
    }
    buf_fini(&all);
    return text;
}

size_t bay_answer_root_count(const bay_answer *self)
{
    return self != NULL ? json_count(json_get(self->result, STR("roots"))) : 0;
}

bay_str bay_answer_root(const bay_answer *self, size_t index)
{
    if (self == NULL) {
        return (bay_str){NULL, 0};
    }
    json_val root = json_item(json_get(self->result, STR("roots")), index);
    return text_of(self, json_get(root, STR("uri")));
}

bay_str bay_answer_json(const bay_answer *self)
{
    return self != NULL ? json_raw(self->result) : (bay_str){NULL, 0};
}
