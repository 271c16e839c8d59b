/* One call of a handler: what it carries, how long it lasts, how it ends. A call ends exactly once;
 * ending it from another thread posts the finished bytes to the server's loop. */
#include "sdk/server_parts.h"

#include <stdarg.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/uri.h"

enum { CALL_MEMORY = 64 << 20, MOST_IDLE = 64 };

/* Calls are made on the loop, and mostly end there: those are used again. */
bay_err sdk_call_new(bay_server *server, const entry *item, mcp_request *request, bay_call **out)
{
    bay_call *self = server->idle_calls;
    if (self != NULL) {
        server->idle_calls = self->next_idle;
        server->idle_count--;
    } else {
        self = mem_zalloc(sizeof(*self));
        if (self == NULL) {
            return BAY_NOMEM;
        }
        arena_init(&self->memory, CALL_MEMORY);
    }
    atomic_init(&self->references, 1);
    atomic_init(&self->is_finished, false);
    atomic_init(&self->is_cancelled, request->is_cancelled);
    atomic_init(&self->is_slow, false);
    atomic_init(&self->notes, 0);
    atomic_init(&self->note_bytes, 0);
    self->is_deferred = false;
    self->is_delivered = false;
    self->server = server;
    self->entry = item;
    self->request = request;
    self->arguments = JSON_NONE;
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

/* A handler that neither answers nor defers would leave its client waiting for ever. */
static void call_settle(bay_call *self)
{
    if (!atomic_load(&self->is_finished) && !self->is_deferred) {
        LOG(LOG_ERROR, "server", "the handler of \"%.*s\" returned without an answer",
            BAY_STR(self->entry->key));
        bay_call_error(self, RPC_INTERNAL_ERROR, "The handler returned without an answer");
    }
    sdk_call_unref(self);
}

static void call_work(void *argument)
{
    bay_call *self = argument;
    self->entry->handler(self, self->entry->user);
    call_settle(self);
}

static void call_worked(void *argument)
{
    (void)argument; /* the worker let go of the call itself */
}

void sdk_call_run(bay_call *self)
{
    atomic_fetch_add(&self->references, 1); /* the handler's, until call_settle */
    if (!self->entry->is_blocking) {
        call_work(self);
        return;
    }
    bay_err err = loop_work(self->server->loop, call_work, call_worked, self);
    if (err != BAY_OK) {
        LOG(LOG_ERROR, "server", "\"%.*s\" cannot be run: %s", BAY_STR(self->entry->key),
            bay_err_text(err));
        bay_call_error(self, RPC_INTERNAL_ERROR, "The server has no room for the call now");
        sdk_call_unref(self);
    }
}

bay_call *bay_call_defer(bay_call *self)
{
    self->is_deferred = true;
    return self;
}

bool bay_call_is_cancelled(const bay_call *self)
{
    return atomic_load(&self->is_cancelled);
}

/* ---- what it carries */

static json_val call_argument(const bay_call *self, const char *name)
{
    return json_get(self->arguments, str_of(name));
}

bay_str bay_call_str(bay_call *self, const char *name)
{
    json_val value = call_argument(self, name);
    bay_str text = {NULL, 0};
    if (!json_is(value, JSON_STRING)) {
        return json_is(value, JSON_MISSING) ? text : json_raw(value);
    }
    return json_str(value, &self->memory, &text) == BAY_OK ? text : (bay_str){NULL, 0};
}

bay_err bay_call_int(bay_call *self, const char *name, int64_t *out)
{
    json_val value = call_argument(self, name);
    return json_is(value, JSON_MISSING) ? BAY_NOTFOUND : json_int64(value, out);
}

bay_err bay_call_double(bay_call *self, const char *name, double *out)
{
    json_val value = call_argument(self, name);
    return json_is(value, JSON_MISSING) ? BAY_NOTFOUND : json_double(value, out);
}

bool bay_call_true(bay_call *self, const char *name)
{
    return json_true(call_argument(self, name));
}

bool bay_call_has(bay_call *self, const char *name)
{
    return !json_is(call_argument(self, name), JSON_MISSING);
}

bay_str bay_call_arguments(bay_call *self)
{
    return json_is(self->arguments, JSON_MISSING) ? STR("{}") : json_raw(self->arguments);
}

bay_str bay_call_name(bay_call *self)
{
    return self->request->name;
}

bay_str bay_call_revision(bay_call *self)
{
    return self->request->revision->text;
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
    if (self->entry->kind != ENTRY_TEMPLATE) {
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

void sdk_buf_borrow(bay_call *self, buf *out)
{
    buf *spares = self->server->spares;
    buf_init(out, SERVER_MAX_RESULT);
    for (int i = 0; i < 2 && sdk_call_on_loop(self) && out->at == NULL; i++) {
        out->at = spares[i].at;
        out->cap = spares[i].cap;
        spares[i] = (buf){0};
    }
}

void sdk_buf_return(bay_server *self, buf *used)
{
    buf *spares = self->spares;
    for (int i = 0; i < 2 && used->at != NULL && used->cap <= SERVER_SPARE_KEEPS; i++) {
        if (spares[i].at == NULL) {
            spares[i] = *used;
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
    call_reply_text(self, text, BAY_OK, false);
}

void bay_call_reply(bay_call *self, const char *text)
{
    bay_call_reply_str(self, str_of(text));
}

/* Texts are formatted whole; past SERVER_MAX_RESULT the call fails. */
static void call_reply_formatted(bay_call *self, bool is_error, const char *format,
                                 va_list arguments)
{
    buf text;
    bool is_lent = sdk_call_on_loop(self);
    bay_server *server = self->server;
    sdk_buf_borrow(self, &text);
    buf_vprintf(&text, format, arguments);
    if (is_error && self->entry->kind != ENTRY_TOOL) {
        buf_char(&text, '\0');
        bay_call_error(self, RPC_INTERNAL_ERROR, text.err == BAY_OK ? text.at : "Failed");
    } else {
        call_reply_text(self, buf_view(&text), text.err, is_error);
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

void bay_call_fail(bay_call *self, const char *text)
{
    bay_call_failf(self, "%s", text != NULL ? text : "");
}

void bay_call_finish(bay_call *self, bay_result *result)
{
    sdk_call_send(self, result);
    bay_result_free(result);
}
