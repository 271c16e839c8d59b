/* Output of HTTP/2 streams: replies, streams, trailers, resets. Everything here only queues;
 * http2_turn writes. */
#include "base/mem.h"
#include "http/http2.h"

enum { KEPT_OUT = 16 * 1024 };

void http2_stream_set_state(http2_stream *self, http_state state)
{
#define TO(name) (1u << HTTP_##name)
    static const unsigned allowed[] = {
        [HTTP_IDLE] = 0,
        [HTTP_HEAD] = TO(BODY) | TO(REPLYING) | TO(DEAD),
        [HTTP_BODY] = TO(PENDING) | TO(REPLYING) | TO(DEAD),
        [HTTP_PENDING] = TO(STREAMING) | TO(REPLYING) | TO(CLOSING) | TO(DEAD),
        [HTTP_STREAMING] = TO(REPLYING) | TO(CLOSING) | TO(DEAD),
        [HTTP_REPLYING] = TO(CLOSING) | TO(DEAD),
        [HTTP_SHARED] = 0,
        [HTTP_CLOSING] = TO(DEAD),
        [HTTP_DEAD] = 0,
    };
#undef TO
    CHECK((allowed[self->state] >> state & 1u) != 0);
    http2_connection *http2 = self->connection->http2;
    http2->pending += state == HTTP_PENDING ? 1 : 0;
    http2->pending -= self->state == HTTP_PENDING ? 1 : 0;
    self->state = (uint8_t)state;
    self->deadline_ms = 0;
}

static http2_stream *stream_of(http_exchange *exchange)
{
    return CONTAINER_OF(exchange, http2_stream, exchange);
}

http_connection *http2_exchange_connection(const http_exchange *exchange)
{
    return ((const http2_stream *)(const void *)exchange)->connection;
}

static void write_later(http2_stream *self)
{
    loop_defer(self->connection->server->loop, &self->connection->task);
}

/* Whether the connection still accepts output. */
static bool is_served(const http2_stream *self)
{
    return self->exchange.is_given && !self->is_gone && self->connection->state == HTTP_SHARED &&
           !self->connection->http2->is_failing && !self->connection->http2->heap.has_failed;
}

void http2_stream_reset(http2_stream *self, uint32_t code)
{
    http2_connection *http2 = self->connection->http2;
    if (self->exchange.outcome == HTTP_UNDECIDED) {
        self->exchange.outcome = HTTP_CUT;
    }
    http2_stream_set_state(self, HTTP_CLOSING);
    if (!http2->heap.has_failed) {
        /* Fails only for lack of memory, which ends the connection. */
        (void)nghttp2_submit_rst_stream(http2->session, NGHTTP2_FLAG_NONE, self->id, code);
    }
    write_later(self);
}

void http2_abort(http_exchange *exchange)
{
    http2_stream *self = stream_of(exchange);
    if (is_served(self) && self->state < HTTP_CLOSING) {
        http2_stream_reset(self, NGHTTP2_CANCEL);
    }
}

/* --- what nghttp2 takes ----------------------------------------------------------------------- */

static size_t queued_of(const http2_stream *self)
{
    return self->out.len - self->out_from;
}

static void took_out(http2_stream *self, size_t len)
{
    self->out_from += len;
    self->connection->http2->queued -= len;
    self->connection->http2->sent += len;
    self->sent_at = self->connection->http2->sent;
    self->moved += len;
    if (queued_of(self) > 0) {
        return;
    }
    self->out_from = 0;
    if (self->out.cap > (self->is_ended ? HTTP2_SPARE_BYTES : KEPT_OUT)) {
        buf_fini(&self->out);
        buf_init(&self->out, SIZE_MAX / 2);
    } else {
        buf_clear(&self->out);
    }
}

int http2_on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                       size_t len, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)frame;
    http2_stream *self = source->ptr;
    http2_connection *http2 = user;
    http_server *server = self->connection->server;
    if (server->head.len >= HTTP2_BATCH_BYTES) {
        return NGHTTP2_ERR_WOULDBLOCK; /* until the socket has it */
    }
    if (queued_of(self) < len) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    buf_append(&server->head, head, HTTP2_FRAME_HEAD);
    buf_append(&server->head, self->out.at + self->out_from, len);
    if (server->head.err != BAY_OK) {
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (len > 0) {
        took_out(self, len);
    }
    uint32_t high = server->options.limits.stream_high_bytes;
    if (self->exchange.wants_drained && queued_of(self) <= high / 2 && !list_holds(&self->turn)) {
        list_push(&http2->thirsty, &self->turn);
    }
    return 0;
}

/* nghttp2 asks for the next bytes of a body: returns their number; http2_on_send_data sends them.
 */
static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *at, size_t cap,
                        uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)at;
    (void)user;
    http2_stream *self = source->ptr;
    size_t len = queued_of(self) < cap ? queued_of(self) : cap;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (queued_of(self) > len) {
        return (ssize_t)len;
    }
    if (!self->is_ended) {
        return len > 0 ? (ssize_t)len : NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    size_t count = http2_fields_count(&self->trailers);
    if (count > 0) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(session, id, http2_fields_at(&self->trailers), count) != 0) {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
    }
    return (ssize_t)len;
}

static bay_str date_of(http_connection *connection)
{
    bay_str line = server_date(connection->server);
    size_t name = sizeof("Date: ") - 1;
    return (bay_str){line.at + name, line.len - name - 2};
}

/* Queues the head. */
static bay_err submit(http2_stream *self, int status, const http_field *fields, size_t count,
                      int64_t content_length, bool has_body)
{
    http2_connection *http2 = self->connection->http2;
    http2_fields *out = &http2->fields;
    char code[4] = {(char)('0' + status / 100 % 10), (char)('0' + status / 10 % 10),
                    (char)('0' + status % 10), '\0'};
    char digits[24];
    http2_fields_clear(out);
    http2_fields_add(out, STR(":status"), (bay_str){code, 3});
    bay_err err =
        status < 200 || status > 999 ? BAY_ERR_INVALID : http2_fields_add_all(out, fields, count);
    if (err != BAY_OK) {
        return err;
    }
    if (content_length >= 0) {
        buf text;
        buf_init(&text, sizeof(digits));
        text.at = digits;
        text.cap = sizeof(digits);
        buf_uint(&text, (uint64_t)content_length);
        http2_fields_add(out, STR("content-length"), buf_view(&text));
    }
    http2_fields_add(out, STR("date"), date_of(self->connection));
    if (out->values.err != BAY_OK) {
        return out->values.err;
    }
    nghttp2_data_provider body = {.source = {.ptr = self}, .read_callback = read_out};
    int failure = nghttp2_submit_response(http2->session, self->id, http2_fields_at(out),
                                          http2_fields_count(out), has_body ? &body : NULL);
    return failure == 0 ? BAY_OK : BAY_ERR_NOMEM;
}

/* --- replies ---------------------------------------------------------------------------------- */

static bool has_no_body(int status)
{
    return status == 204 || status == 304;
}

/* Reserves exactly the size of a large reply: doubling would hold up to twice as much. */
static bool reserve_large(buf *out, size_t bytes)
{
    char *at = out->cap < bytes ? mem_resize(out->at, bytes) : out->at;
    if (at == NULL) {
        out->err = BAY_ERR_NOMEM;
        return false;
    }
    out->cap = out->cap < bytes ? bytes : out->cap;
    out->at = at;
    return true;
}

static bay_err queue(http2_stream *self, bay_str bytes)
{
    if (bytes.len > HTTP2_LARGE_BYTES && self->out.len == 0) {
        (void)reserve_large(&self->out, bytes.len); /* the error sticks */
    }
    buf_str(&self->out, bytes);
    if (self->out.err == BAY_OK) {
        self->connection->http2->queued += bytes.len;
    }
    return self->out.err;
}

static bay_err reply(http2_stream *self, int status, const http_field *fields, size_t count,
                     bay_str body)
{
    bool is_bare = self->is_bare || has_no_body(status) || body.len == 0;
    int64_t length = has_no_body(status) || body.len == 0 ? -1 : (int64_t)body.len;
    bay_err err = submit(self, status, fields, count, length, !is_bare);
    if (err == BAY_OK && !is_bare) {
        err = queue(self, body);
    }
    return err;
}

/* Whether enough waits on the connection already and its peer does not read. */
static bool is_beyond(const http2_stream *self, size_t bytes)
{
    size_t queued = self->connection->http2->queued;
    http_backlog *backlog = self->connection->backlog;
    return queued > 0 && (queued > HTTP2_QUEUED_BYTES || bytes > HTTP2_QUEUED_BYTES - queued) &&
           (backlog == NULL || !reply_debt_is_read(self->connection->server->book, &backlog->debt,
                                                   http2_now(self->connection->http2)));
}

void http2_reply(http_exchange *exchange, int status, const http_field *fields, size_t count,
                 bay_str body)
{
    http2_stream *self = stream_of(exchange);
    if (!is_served(self) || self->state != HTTP_PENDING) {
        return;
    }
    if (is_beyond(self, body.len)) {
        http2_stream_reset(self, NGHTTP2_CANCEL);
        return;
    }
    bay_err err = reply(self, status, fields, count, body);
    if (err == BAY_ERR_INVALID) {
        err = reply(self, 500, NULL, 0, STR("the reply's header fields were not valid\n"));
    }
    if (err != BAY_OK) {
        http2_stream_reset(self, NGHTTP2_INTERNAL_ERROR);
        return;
    }
    self->is_ended = true;
    http2_stream_set_state(self, HTTP_REPLYING);
    write_later(self);
    if (body.len > HTTP2_LARGE_BYTES) {
        (void)connection_account(self->connection);
    }
}

void http2_refuse(http2_stream *self, int status, const char *text)
{
    static const http_field plain[] = {
        {STR_INIT("content-type"), STR_INIT("text/plain; charset=utf-8")},
        {STR_INIT("retry-after"), STR_INIT("1")}};
    exchange_release_memory(&self->exchange);
    http2_stream_set_state(self, HTTP_REPLYING);
    self->is_ended = true;
    bay_err err = reply(self, status, plain, status == 503 ? 2 : 1, str_of(text));
    if (err != BAY_OK) {
        http2_stream_reset(self, NGHTTP2_INTERNAL_ERROR);
        return;
    }
    write_later(self);
}

/* --- streams ---------------------------------------------------------------------------------- */

bay_err http2_stream_open(http_exchange *exchange, int status, const http_field *fields,
                          size_t count, bool release_request)
{
    http2_stream *self = stream_of(exchange);
    if (!is_served(self) || self->state >= HTTP_CLOSING) {
        return BAY_ERR_CLOSED;
    }
    if (self->state != HTTP_PENDING) {
        return BAY_ERR_STATE;
    }
    bay_err err = submit(self, status, fields, count, -1, true);
    if (err != BAY_OK) {
        return err;
    }
    self->is_bare = self->is_bare || has_no_body(status);
    http2_stream_set_state(self, HTTP_STREAMING);
    write_later(self);
    if (release_request) {
        exchange_release_memory(exchange);
    }
    return BAY_OK;
}

/* Bytes are ready, or none will follow. */
static void resume(http2_stream *self)
{
    /* Fails if nghttp2 does not wait for it, or has not sent the head yet: then it will ask. */
    (void)nghttp2_session_resume_data(self->connection->http2->session, self->id);
    write_later(self);
}

bay_err http2_stream_write(http_exchange *exchange, bay_str bytes)
{
    http2_stream *self = stream_of(exchange);
    if (!is_served(self) || self->state != HTTP_STREAMING) {
        return BAY_ERR_CLOSED;
    }
    if (bytes.len == 0 || self->is_bare) {
        return BAY_OK;
    }
    const http_server_limits *limits = &self->connection->server->options.limits;
    size_t before = queued_of(self);
    bool is_full = (before > 0 && (bytes.len > limits->stream_max_bytes ||
                                   before > limits->stream_max_bytes - bytes.len)) ||
                   is_beyond(self, bytes.len);
    if (is_full || queue(self, bytes) != BAY_OK) {
        http2_stream_reset(self, is_full ? NGHTTP2_CANCEL : NGHTTP2_INTERNAL_ERROR);
        return BAY_ERR_CLOSED;
    }
    resume(self);
    if (bytes.len > HTTP2_LARGE_BYTES && !connection_account(self->connection)) {
        return BAY_ERR_CLOSED;
    }
    if (queued_of(self) <= limits->stream_high_bytes) {
        return BAY_OK;
    }
    exchange->wants_drained = true;
    return BAY_ERR_AGAIN;
}

/* The fields are valid during the call only: copied, and pointed to when they do not move any more.
 */
static bay_err keep_trailers(http2_stream *self, const http_field *trailers, size_t count)
{
    buf *bytes = &self->trailer_bytes;
    http_field kept[HTTP2_TRAILERS];
    if (count > HTTP2_TRAILERS) {
        return BAY_ERR_LIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        buf_str(bytes, trailers[i].name);
        buf_str(bytes, trailers[i].value);
    }
    if (bytes->err != BAY_OK) {
        return bytes->err;
    }
    const char *at = bytes->at;
    for (size_t i = 0; i < count; i++) {
        kept[i].name = (bay_str){at, trailers[i].name.len};
        at += trailers[i].name.len;
        kept[i].value = (bay_str){at, trailers[i].value.len};
        at += trailers[i].value.len;
    }
    return http2_fields_add_all(&self->trailers, kept, count);
}

void http2_stream_end(http_exchange *exchange, const http_field *trailers, size_t count)
{
    http2_stream *self = stream_of(exchange);
    if (!is_served(self) || self->state != HTTP_STREAMING) {
        return;
    }
    if (count > 0 && keep_trailers(self, trailers, count) != BAY_OK) {
        http2_stream_reset(self, NGHTTP2_INTERNAL_ERROR);
        return;
    }
    self->is_ended = true;
    http2_stream_set_state(self, HTTP_REPLYING);
    exchange->wants_drained = false;
    resume(self);
}
