#include "cli/wire.h"

#include <signal.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/say.h"
#include "http/http_client.h"
#include "net/process.h"
#include "wire/header.h"
#include "wire/sse.h"

enum { TERM_MS = 500, KILL_MS = 500 };

struct cli_wire {
    const cli_target *target;
    bay_str url;
    loop *loop;
    tls_context *tls;
    http_client *http; /* NULL: it is a process */
    process *child;    /* NULL: it has ended */
    loop_timer timer;
    arena memory;
    int signal;
    /* of the request under way */
    http_call *call;
    bay_str id;
    cli_wire_reply *reply;
    bool is_over;
    bool is_stream;
    buf body;
    sse_decoder events;
};

static void over(cli_wire *self, cli_wire_end end)
{
    self->reply->end = end;
    self->is_over = true;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* A copy that lives as long as the wire, and its index. */
static json_val keep(cli_wire *self, bay_str text, bay_str *out)
{
    json_doc *doc = arena_alloc(&self->memory, sizeof(*doc));
    *out = (bay_str){"", 0};
    if (doc == NULL || arena_dup(&self->memory, text, out) != BAY_OK ||
        json_parse(doc, *out, NULL, &self->memory, NULL) != BAY_OK) {
        return JSON_NONE;
    }
    return json_root(doc);
}

static bool is_answer(json_val message)
{
    return json_get(message, STR("method")).doc == NULL &&
           (json_get(message, STR("result")).doc != NULL ||
            json_get(message, STR("error")).doc != NULL);
}

/* Is it the answer that is awaited? An error without an id may answer a message that could not be read. */
static bool is_awaited(const cli_wire *self, json_val message)
{
    json_val id = json_get(message, STR("id"));
    return self->id.len > 0 && is_answer(message) && id.doc != NULL &&
           str_eq(json_raw(id), self->id);
}

static void take_message(cli_wire *self, bay_str text)
{
    bay_str kept;
    json_val message = keep(self, text, &kept);
    if (self->reply == NULL || self->is_over) {
        return;
    }
    if (is_awaited(self, message)) {
        self->reply->message = message;
        self->reply->text = kept;
        over(self, CLI_WIRE_ANSWERED);
    } else if (json_kind_of(message) != JSON_OBJECT || is_answer(message)) {
        self->reply->stranger = self->reply->strangers == 0 ? kept : self->reply->stranger;
        self->reply->strangers++;
    }
}

/* ---- a process ------------------------------------------------------------------------------- */

static void on_line(void *user, bay_str line)
{
    if (str_trim(line).len > 0) {
        take_message(user, line);
    }
}

static void on_exited(void *user, int status, int number)
{
    cli_wire *self = user;
    (void)status;
    (void)number;
    process_free(self->child);
    self->child = NULL;
    if (self->reply != NULL && !self->is_over) {
        over(self, CLI_WIRE_CLOSED);
    }
}

static const process_events child_events = {.line = on_line, .exited = on_exited};

static void send_line(cli_wire *self, const cli_wire_request *request)
{
    bay_err err = self->child != NULL ? process_write(self->child, request->text) : BAY_ERR_CLOSED;
    if (err != BAY_OK && err != BAY_ERR_AGAIN) {
        over(self, CLI_WIRE_CLOSED);
    }
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static bay_str kept_field(cli_wire *self, const http_field *fields, size_t count, bay_str name)
{
    bay_str kept = {"", 0};
    for (size_t i = 0; i < count; i++) {
        if (str_eq_nocase(fields[i].name, name)) {
            err_ignore(arena_dup(&self->memory, fields[i].value, &kept));
            break;
        }
    }
    return kept;
}

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    cli_wire *self = user;
    self->reply->status = status;
    self->reply->content_type = kept_field(self, fields, count, STR("Content-Type"));
    self->reply->session = kept_field(self, fields, count, STR("Mcp-Session-Id"));
    self->is_stream = header_content_type_is(self->reply->content_type, STR("text/event-stream"));
    if (self->is_stream && self->id.len == 0) { /* it would stay open */
        http_call_cancel(self->call);
        self->call = NULL;
        over(self, CLI_WIRE_ANSWERED);
    }
}

static void read_events(cli_wire *self, bay_str bytes)
{
    while (!self->is_over && bytes.len > 0) {
        sse_block block;
        size_t used = 0;
        if (sse_decoder_feed(&self->events, bytes, &used, &block) != BAY_OK) {
            break;
        }
        if (block.kind == SSE_EVENT && block.data.len > 0) {
            take_message(self, block.data);
        }
        if (used == 0 && block.kind == SSE_MORE) {
            break;
        }
        bytes = str_from(bytes, used);
    }
}

static void on_body(void *user, bay_str bytes)
{
    cli_wire *self = user;
    if (!self->is_stream) {
        buf_str(&self->body, bytes); /* its error is looked at when it ends */
        return;
    }
    read_events(self, bytes);
    if (self->is_over) {
        http_call_cancel(self->call);
        self->call = NULL;
    }
}

static void on_end(void *user)
{
    cli_wire *self = user;
    self->call = NULL;
    if (!self->is_stream) {
        self->reply->message = keep(self, buf_view(&self->body), &self->reply->text);
    }
    over(self, CLI_WIRE_ANSWERED);
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    cli_wire *self = user;
    (void)was_sent;
    (void)text;
    self->call = NULL;
    over(self, err == BAY_ERR_TIMEOUT ? CLI_WIRE_SILENT : CLI_WIRE_CLOSED);
}

static const http_call_events reply_events = {
    .head = on_head, .body = on_body, .end = on_end, .failed = on_failed};

static void send_http(cli_wire *self, const cli_wire_request *request)
{
    size_t own = request->field_count;
    size_t count = own + self->target->field_count;
    http_field *fields = arena_array(&self->memory, count + 1, sizeof(*fields));
    if (fields == NULL) {
        over(self, CLI_WIRE_CLOSED);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        fields[i] = i < own ? request->fields[i] : self->target->fields[i - own];
    }
    http_call_spec spec = {
        .method = request->http_method.len > 0 ? request->http_method : STR("POST"),
        .url = self->url,
        .fields = fields,
        .field_count = count,
        .body = request->text,
        .has_body = request->text.len > 0,
    };
    bay_diag diag = {0};
    if (http_client_call(self->http, &spec, &reply_events, self, &self->call, &diag) != BAY_OK) {
        over(self, CLI_WIRE_CLOSED);
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

static void on_signal(void *user, int number)
{
    cli_wire *self = user;
    self->signal = number;
}

static void on_timeout(void *user)
{
    cli_wire *self = user;
    if (!self->is_over) {
        over(self, CLI_WIRE_SILENT);
    }
}

static bay_err open_carrier(cli_wire *self, bay_diag *diag)
{
    const cli_target *target = self->target;
    if (target->is_process) {
        process_options options = {.argv = target->argv,
                                   .env = target->env,
                                   .cwd = target->cwd,
                                   .line_bytes = CLI_WIRE_BYTES,
                                   .sandbox = target->sandbox};
        return process_start(self->loop, &options, &child_events, self, &self->child, diag);
    }
    http_client_options http = {.limits = http_client_default_limits};
    bay_err err = BAY_OK;
    http.limits.connect_timeout_ms = target->connect_ms;
    if (tls_client_has_own(&target->tls)) {
        err = tls_client_new(&target->tls, &self->tls, diag);
        http.tls = self->tls;
    }
    return err == BAY_OK ? http_client_new(self->loop, &http, &self->http) : err;
}

cli_exit cli_wire_open(const cli_target *target, bay_str url, cli_wire **out)
{
    bay_diag diag = {0};
    cli_wire *self = mem_zalloc(sizeof(*self));
    *out = self;
    if (self == NULL) {
        return cli_fail(BAY_ERR_NOMEM);
    }
    self->target = target;
    self->url = url.len > 0 ? url : target->url;
    arena_init(&self->memory, CLI_WIRE_MEMORY);
    buf_init(&self->body, CLI_WIRE_BYTES);
    loop_timer_init(&self->timer, on_timeout, self);
    bay_err err = loop_new(&self->loop);
    err = err == BAY_OK ? loop_on_signal(self->loop, SIGINT, on_signal, self) : err;
    err = err == BAY_OK ? loop_on_signal(self->loop, SIGTERM, on_signal, self) : err;
    err = err == BAY_OK ? open_carrier(self, &diag) : err;
    if (err != BAY_OK) {
        cli_say_failure(target->shown, target->is_process, err, diag.text);
        return CLI_EXIT_CONNECT;
    }
    return CLI_EXIT_OK;
}

void cli_wire_close(cli_wire *self)
{
    if (self == NULL) {
        return;
    }
    self->reply = NULL;
    if (self->child != NULL) {
        process_close(self->child, TERM_MS, KILL_MS);
    }
    while (self->child != NULL && loop_turn(self->loop, -1)) {
    }
    process_free(self->child);
    http_client_free(self->http);
    tls_free(self->tls);
    loop_free(self->loop);
    buf_fini(&self->body);
    arena_fini(&self->memory);
    mem_free(self);
}

/* ---- asking ---------------------------------------------------------------------------------- */

cli_exit cli_wire_ask(cli_wire *self, const cli_wire_request *request, cli_wire_reply *out)
{
    *out = (cli_wire_reply){.message = JSON_NONE};
    self->reply = out;
    self->id = request->id;
    self->is_over = false;
    self->is_stream = false;
    buf_clear(&self->body);
    sse_decoder_init(&self->events, CLI_WIRE_BYTES);
    uint32_t wait_ms = request->wait_ms > 0 ? request->wait_ms : CLI_WIRE_MS;
    wait_ms = self->target->timeout_ms < wait_ms ? self->target->timeout_ms : wait_ms;
    bay_err err = loop_timer_start(self->loop, &self->timer, wait_ms);
    if (err == BAY_OK && self->http != NULL) {
        send_http(self, request);
    } else if (err == BAY_OK) {
        send_line(self, request);
    }
    while (err == BAY_OK && !self->is_over && self->signal == 0 && loop_turn(self->loop, -1)) {
    }
    loop_timer_stop(self->loop, &self->timer);
    if (self->call != NULL) {
        http_call_cancel(self->call);
        self->call = NULL;
    }
    sse_decoder_fini(&self->events);
    self->reply = NULL;
    if (self->signal != 0) {
        return (cli_exit)(128 + self->signal);
    }
    return err == BAY_OK ? CLI_EXIT_OK : cli_fail(err);
}
