/* One call of a handler: what it carries, how long it lasts, how it ends. A call ends exactly once;
 * ending it from another thread posts the finished bytes to the server's loop. */
#include "sdk/server_parts.h"

#include <stdarg.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/uri.h"
#include "json/build.h"

enum { CALL_MEMORY = 64 << 20, MOST_IDLE = 64 };

static void call_woken(void *argument);

static bay_call *call_make(void)
{
    bay_call *self = mem_zalloc(sizeof(*self));
    if (self != NULL) {
        arena_init(&self->memory, CALL_MEMORY);
        list_init(&self->asked);
        list_init(&self->questions);
        list_init(&self->answering);
        list_init(&self->keys);
        buf_init(&self->state, CALL_MAX_STATE);
        buf_init(&self->answered, CALL_MAX_ANSWER);
        self->wake = (loop_message){.function = call_woken, .argument = self};
    }
    return self;
}

/* Calls are made on the loop, and mostly end there: those are used again. What only few calls have
 * (questions, a timer, state) was put back when the last one ended. */
bay_err sdk_call_new(bay_server *server, const entry *item, mcp_request *request, bay_call **out)
{
    bay_call *self = server->idle_calls;
    if (self != NULL) {
        server->idle_calls = self->next_idle;
        server->idle_count--;
    } else {
        self = call_make();
        if (self == NULL) {
            return BAY_ERR_NOMEM;
        }
    }
    atomic_init(&self->references, 1);
    atomic_init(&self->is_finished, false);
    atomic_init(&self->is_cancelled, request->is_cancelled);
    atomic_init(&self->is_slow, false);
    atomic_init(&self->is_deferred, false);
    atomic_init(&self->is_task, false);
    atomic_init(&self->is_becoming, false);
    atomic_init(&self->notes, 0);
    atomic_init(&self->note_bytes, 0);
    self->is_delivered = self->is_parted = self->is_running = false;
    self->server = server;
    self->entry = item;
    self->sink = &sdk_request_sink;
    self->request = request;
    self->arguments = JSON_NONE;
    self->started_ms = loop_now_ms(server->loop);
    self->round = NULL;
    self->task = NULL;
    self->task_id[0] = '\0';
    self->document.memory = NULL;
    request->user = self;
    server->calls_under_way++;
    *out = self;
    return BAY_OK;
}

void sdk_call_unref(bay_call *self)
{
    if (atomic_fetch_sub(&self->references, 1) != 1) {
        return;
    }
    bay_server *server = self->server;
    arena_fini(&self->memory);
    buf_fini(&self->state);
    buf_fini(&self->answered);
    if (sdk_call_on_loop(self) && server->idle_count < MOST_IDLE) {
        self->next_idle = server->idle_calls;
        server->idle_calls = self;
        server->idle_count++;
        return;
    }
    mem_free(self);
}

void sdk_calls_free(bay_server *server)
{
    while (server->idle_calls != NULL) {
        bay_call *next = server->idle_calls->next_idle;
        mem_free(server->idle_calls);
        server->idle_calls = next;
    }
}

bool sdk_call_on_loop(const bay_call *self)
{
    return loop_is_here(self->server->loop);
}

/* ---- running */

/* A handler that neither answers nor defers would leave its client waiting for ever. */
static void call_end_unanswered(bay_call *self)
{
    if (!self->is_parted) {
        LOG(LOG_ERROR, "server", "the handler of \"%.*s\" returned without an answer",
            BAY_STR(self->entry->key));
    }
    bay_call_error(self, RPC_INTERNAL_ERROR, "The handler returned without an answer");
}

static void call_settle(bay_call *self)
{
    self->is_running = false;
    if (atomic_load(&self->is_finished)) {
        if (self->is_delivered) {
            sdk_call_questions_forget(self);
        } /* else its answer is on its way to the loop */
    } else if (self->is_short && !self->is_parted) {
        sdk_call_give_up(self, &(call_note){.kind = NOTE_ERROR,
                                            .code = RPC_INTERNAL_ERROR,
                                            .text = STR("Out of memory for a question")});
    } else if (sdk_call_questions_has(self, QUESTION_OPEN) && !self->is_parted) {
        self->sink->pause(self);
    } else if (atomic_load(&self->is_deferred) || sdk_call_questions_has(self, QUESTION_ASKED)) {
        sdk_deadline_start(self);
    } else {
        call_end_unanswered(self);
    }
}

void sdk_call_returned(bay_call *self)
{
    sdk_task_become(self); /* the pool's word may come before what its thread posted */
    while (!atomic_load(&self->is_finished) && sdk_call_questions_pending(self)) {
        if (!sdk_call_questions_answer(self)) {
            return; /* the pool has the run's reference now */
        }
    }
    call_settle(self);
    sdk_call_unref(self);
}

static void call_work(void *argument)
{
    bay_call *self = argument;
    self->entry->handler(self, self->entry->user);
}

static void call_worked(void *argument)
{
    sdk_call_returned(argument);
}

void sdk_call_run(bay_call *self)
{
    atomic_fetch_add(&self->references, 1); /* the run's, until it has settled */
    self->is_running = true;
    if (!self->entry->is_blocking) {
        self->entry->handler(self, self->entry->user);
        sdk_call_returned(self);
        return;
    }
    sdk_deadline_start(self);
    bay_err err = loop_work(self->server->loop, call_work, call_worked, self);
    if (err != BAY_OK) {
        LOG(LOG_ERROR, "server", "\"%.*s\" cannot be run: %s", BAY_STR(self->entry->key),
            bay_err_text(err));
        self->is_running = false;
        bay_call_error(self, RPC_INTERNAL_ERROR, "The server has no room for the call now");
        sdk_call_unref(self);
    }
}

/* Something was asked while no run of the handler was there to see to it. */
static void call_woken(void *argument)
{
    bay_call *self = argument;
    pthread_mutex_lock(&self->server->asking);
    self->is_woken = false;
    pthread_mutex_unlock(&self->server->asking);
    if (self->is_running) {
        sdk_call_unref(self); /* the run sees it */
        return;
    }
    self->is_running = true;
    sdk_call_returned(self);
}

bay_call *bay_call_defer(bay_call *self)
{
    if (self != NULL) {
        atomic_store(&self->is_deferred, true);
    }
    return self;
}

bool bay_call_is_cancelled(const bay_call *self)
{
    return self == NULL || atomic_load(&self->is_cancelled);
}

/* ---- what it carries */

static json_val call_argument(const bay_call *self, const char *name)
{
    return self != NULL ? json_get(self->arguments, str_of(name)) : JSON_NONE;
}

bay_str bay_call_str(bay_call *self, const char *name)
{
    return bay_value_str(bay_call_value(self, name != NULL ? name : ""));
}

bay_err bay_call_int(bay_call *self, const char *name, int64_t *out)
{
    return bay_value_int(bay_call_value(self, name != NULL ? name : ""), out);
}

bay_err bay_call_double(bay_call *self, const char *name, double *out)
{
    return bay_value_double(bay_call_value(self, name != NULL ? name : ""), out);
}

bay_err bay_call_bool(bay_call *self, const char *name, bool *out)
{
    return bay_value_bool(bay_call_value(self, name != NULL ? name : ""), out);
}

bay_str bay_call_str_or(bay_call *self, const char *name, const char *fallback)
{
    return bay_value_str_or(bay_call_value(self, name != NULL ? name : ""), fallback);
}

int64_t bay_call_int_or(bay_call *self, const char *name, int64_t fallback)
{
    return bay_value_int_or(bay_call_value(self, name != NULL ? name : ""), fallback);
}

double bay_call_double_or(bay_call *self, const char *name, double fallback)
{
    return bay_value_double_or(bay_call_value(self, name != NULL ? name : ""), fallback);
}

bool bay_call_bool_or(bay_call *self, const char *name, bool fallback)
{
    return bay_value_bool_or(bay_call_value(self, name != NULL ? name : ""), fallback);
}

/* Without arguments there is an object all the same, as for bay_call_arguments. */
bay_value bay_call_value(bay_call *self, const char *name)
{
    if (self == NULL) {
        return (bay_value){NULL, 0};
    }
    json_val all = json_is(self->arguments, JSON_MISSING) ? json_empty_object() : self->arguments;
    if (self->document.memory == NULL) {
        self->document = (bay_document){.doc = *all.doc, .memory = &self->memory};
    }
    return sdk_value(&self->document, name != NULL ? json_get(all, str_of(name)) : all);
}

bool bay_call_has(bay_call *self, const char *name)
{
    return !json_is(call_argument(self, name), JSON_MISSING);
}

bay_str bay_call_arguments(bay_call *self)
{
    bool has_none = self == NULL || json_is(self->arguments, JSON_MISSING);
    return has_none ? STR("{}") : json_raw(self->arguments);
}

bay_str bay_call_name(bay_call *self)
{
    return self != NULL ? self->request->name : (bay_str){NULL, 0};
}

bay_str bay_call_revision(bay_call *self)
{
    return self != NULL ? self->request->revision->text : (bay_str){NULL, 0};
}

bay_str bay_call_issuer(bay_call *self)
{
    return self != NULL ? principal_issuer(self->request->principal) : (bay_str){NULL, 0};
}

bay_str bay_call_client(bay_call *self)
{
    return self != NULL ? principal_client(self->request->principal) : (bay_str){NULL, 0};
}

bay_str bay_call_scopes(bay_call *self)
{
    return self != NULL ? principal_scopes(self->request->principal) : (bay_str){NULL, 0};
}

bool bay_call_has_scope(bay_call *self, const char *scope)
{
    return self != NULL && principal_has_scopes(self->request->principal, str_of(scope));
}

bay_str bay_call_claim(bay_call *self, const char *pointer)
{
    json_val claim =
        self != NULL ? principal_claim(self->request->principal, str_of(pointer)) : JSON_NONE;
    return json_is(claim, JSON_MISSING) ? STR("") : json_raw(claim);
}

bay_str bay_call_context(bay_call *self, const char *name)
{
    bay_str value = {NULL, 0};
    if (self != NULL && self->entry->kind == ENTRY_COMPLETION) {
        json_val context = sdk_completion_context(self->request);
        err_ignore(json_str(json_get(context, str_of(name)), &self->memory, &value));
    }
    return value;
}

bay_str bay_call_principal(bay_call *self)
{
    return self != NULL ? principal_subject(self->request->principal) : (bay_str){NULL, 0};
}

bool bay_call_client_has(bay_call *self, const char *capability)
{
    return self != NULL &&
           json_is(mcp_capability(self->request->client_capabilities, str_of(capability)),
                   JSON_OBJECT);
}

bay_str bay_call_client_info(bay_call *self)
{
    return self != NULL ? json_raw(self->request->client_info) : (bay_str){NULL, 0};
}

bay_str bay_call_meta(bay_call *self)
{
    return self != NULL ? json_raw(self->request->meta) : (bay_str){NULL, 0};
}

/* Where `literal` stands in `text`, leaving at least one byte before it; text.len: nowhere. */
static size_t find_after_value(bay_str text, bay_str literal)
{
    for (size_t i = 1; i + literal.len <= text.len; i++) {
        if (str_starts(str_from(text, i), literal)) {
            return i;
        }
    }
    return text.len;
}

/* The part of `read` that stands for {variable}. A value holds no '/', so that the first place
 * where the literal after it fits is the right one; the last literal stands at the end. */
static bay_str variable_raw(bay_str template, bay_str read, bay_str variable)
{
    size_t begin = str_find(template, '{');
    read = str_from(read, begin);
    template = str_from(template, begin);
    while (template.len > 0) {
        size_t end = str_find(template, '}');
        bay_str name = str_from(str_head(template, end), 1);
        bay_str rest = str_from(template, end + 1);
        bay_str literal = str_head(rest, str_find(rest, '{'));
        bool is_last = literal.len == rest.len && literal.len <= read.len;
        size_t len = is_last ? read.len - literal.len : find_after_value(read, literal);
        if (str_eq(name, variable)) {
            return str_head(read, len);
        }
        read = str_from(read, len + literal.len);
        template = str_from(rest, literal.len);
    }
    return (bay_str){NULL, 0};
}

bay_str bay_call_variable(bay_call *self, const char *variable)
{
    bay_str value = {NULL, 0};
    if (self == NULL || self->entry->kind != ENTRY_TEMPLATE) {
        return value;
    }
    bay_str raw = variable_raw(self->entry->key, self->request->name, str_of(variable));
    buf decoded;
    buf_init(&decoded, URI_TEMPLATE_URI_BYTES);
    if (raw.at != NULL && (uri_decode(&decoded, raw) != BAY_OK ||
                           arena_dup(&self->memory, buf_view(&decoded), &value) != BAY_OK)) {
        value = (bay_str){NULL, 0};
    }
    buf_fini(&decoded);
    return value;
}

/* ---- how it ends */

bay_err sdk_call_json(const bay_call *self, const char *what, bay_json *json, json_kind wanted,
                      json_val *out)
{
    bay_err err = sdk_json_val(json, wanted, out);
    if (err != BAY_OK) {
        SERVER_LOG(self->server, LOG_ERROR, "server", "\"%.*s\": %s: %s", BAY_STR(self->entry->key),
                   what, err == BAY_ERR_TYPE ? "it is no JSON object" : sdk_json_fault(json, err));
    }
    return err;
}

void sdk_buf_borrow(bay_call *self, buf *out)
{
    buf *free_list = self->server->free_list;
    buf_init(out, SERVER_MAX_RESULT);
    for (int i = 0; i < 2 && sdk_call_on_loop(self) && out->at == NULL; i++) {
        out->at = free_list[i].at;
        out->cap = free_list[i].cap;
        free_list[i] = (buf){0};
    }
}

void sdk_buf_return(bay_server *self, buf *used)
{
    buf *free_list = self->free_list;
    for (int i = 0; i < 2 && used->at != NULL && used->cap <= SERVER_SPARE_KEEPS; i++) {
        if (free_list[i].at == NULL) {
            free_list[i] = *used;
            *used = (buf){0};
        }
    }
    buf_fini(used);
}

/* The call is gone when its answer is sent; its server is not. */
static void call_reply_text(bay_call *self, bay_str text, bay_err err, bool is_error)
{
    bool is_lent = sdk_call_on_loop(self);
    bay_server *server = self->server;
    bay_result result;
    sdk_result_init(&result, self);
    if (is_lent) {
        sdk_buf_borrow(self, &result.items);
    }
    bay_result_text_str(&result, text);
    result.items.err = err != BAY_OK ? err : result.items.err;
    result.is_error = is_error;
    sdk_call_send(self, &result);
    if (is_lent) {
        sdk_buf_return(server, &result.items);
    }
    sdk_result_fini(&result);
}

void bay_call_reply_str(bay_call *self, bay_str text)
{
    if (self != NULL) {
        call_reply_text(self, text, BAY_OK, false);
    }
}

void bay_call_reply(bay_call *self, const char *text)
{
    bay_call_reply_str(self, str_of(text));
}

void bay_call_reply_json(bay_call *self, bay_json *json)
{
    if (self == NULL) {
        bay_json_free(json);
        return;
    }
    bay_result result;
    sdk_result_init(&result, self);
    sdk_result_json(&result, json);
    sdk_call_send(self, &result);
    sdk_result_fini(&result);
}

static void call_fail(bay_call *self, bay_str text, bay_err err)
{
    if (self->entry->kind == ENTRY_TOOL) {
        call_reply_text(self, text, err, true);
    } else {
        bay_call_error_str(self, RPC_INTERNAL_ERROR, err == BAY_OK ? text : STR("Failed"));
    }
}

/* Texts are formatted whole; past SERVER_MAX_RESULT the call fails. */
static void call_reply_formatted(bay_call *self, bool is_error, const char *format,
                                 va_list arguments)
{
    if (self == NULL) {
        return;
    }
    buf text;
    bool is_lent = sdk_call_on_loop(self);
    bay_server *server = self->server;
    sdk_buf_borrow(self, &text);
    buf_vprintf(&text, format, arguments);
    if (is_error) {
        call_fail(self, buf_view(&text), text.err);
    } else {
        call_reply_text(self, buf_view(&text), text.err, false);
    }
    if (is_lent) {
        sdk_buf_return(server, &text);
    }
    buf_fini(&text);
}

void bay_call_replyf(bay_call *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    call_reply_formatted(self, false, format, arguments);
    va_end(arguments);
}

void bay_call_failf(bay_call *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    call_reply_formatted(self, true, format, arguments);
    va_end(arguments);
}

void bay_call_fail_str(bay_call *self, bay_str text)
{
    if (self != NULL) {
        call_fail(self, text, BAY_OK);
    }
}

void bay_call_fail(bay_call *self, const char *text)
{
    bay_call_fail_str(self, str_of(text));
}

void bay_call_finish(bay_call *self, bay_result *result)
{
    if (self != NULL) {
        sdk_call_send(self, result);
    }
    bay_result_free(result);
}
