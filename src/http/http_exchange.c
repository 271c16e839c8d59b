/* One request and its reply, for the handler's owner: views of the request, whole replies, streams.
 */
#include "base/mem.h"
#include "http/http_internal.h"

enum { CORK_BYTES = 16 * 1024, JOINED_BYTES = 1024 };

http_connection *exchange_connection(const http_exchange *self)
{
    return self->is_http2 ? http2_exchange_connection(self)
                          : CONTAINER_OF(self, http_connection, exchange);
}

bool http_exchange_is_http2(const http_exchange *self)
{
    return self->is_http2;
}

/* --- the request ------------------------------------------------------------------------------ */

static const http1_head *head_of(const http_exchange *self)
{
    static const http1_head none;
    return self->memory != NULL ? &self->memory->head : &none;
}

bay_str http_exchange_method(const http_exchange *self)
{
    return head_of(self)->method;
}

bay_str http_exchange_path(const http_exchange *self)
{
    return head_of(self)->path;
}

bay_str http_exchange_query(const http_exchange *self)
{
    return head_of(self)->query;
}

bay_str http_exchange_body(const http_exchange *self)
{
    const http_memory *memory = self->memory;
    if (memory == NULL) {
        return (bay_str){NULL, 0};
    }
    return str_from(buf_view(&memory->input), memory->head_len);
}

bay_str http_exchange_field(const http_exchange *self, bay_str name)
{
    const http1_head *head = head_of(self);
    return http1_field_find(head->fields, head->field_count, name);
}

size_t http_exchange_field_count(const http_exchange *self, bay_str name)
{
    const http1_head *head = head_of(self);
    return http1_field_count(head->fields, head->field_count, name);
}

const http_field *http_exchange_fields(const http_exchange *self, size_t *out_count)
{
    const http1_head *head = head_of(self);
    *out_count = head->field_count;
    return head->fields;
}

arena *http_exchange_arena(http_exchange *self)
{
    return self->memory != NULL ? &self->memory->arena : NULL;
}

bay_str http_exchange_peer(const http_exchange *self)
{
    return str_of(exchange_connection(self)->peer);
}

bay_str http_exchange_client_certificate(http_exchange *self, tls_certificate_part part)
{
    char text[TLS_PART_BYTES];
    net_socket *socket = exchange_connection(self)->socket;
    arena *memory = http_exchange_arena(self);
    bay_str copy = {"", 0};
    if (socket != NULL && memory != NULL) {
        size_t len = socket_peer_certificate(socket, part, text);
        if (len > 0 && arena_dup(memory, (bay_str){text, len}, &copy) != BAY_OK) {
            copy = (bay_str){"", 0}; /* treated as absent: refused where one is needed */
        }
    }
    return copy;
}

loop *http_exchange_loop(const http_exchange *self)
{
    return exchange_connection(self)->server->loop;
}

void http_exchange_set_user(http_exchange *self, void *user)
{
    self->user = user;
}

void *http_exchange_user(const http_exchange *self)
{
    return self->user;
}

void exchange_release_memory(http_exchange *self)
{
    server_memory_give(exchange_connection(self)->server, self->memory);
    self->memory = NULL;
}

/* --- heads ------------------------------------------------------------------------------------ */

/* Fields about message framing are set here. */
bool exchange_field_is_ours(bay_str name)
{
    switch (name.len) {
    case 4:
        return str_eq_nocase(name, STR("date"));
    case 10:
        return str_eq_nocase(name, STR("connection")) || str_eq_nocase(name, STR("keep-alive"));
    case 14:
        return str_eq_nocase(name, STR("content-length"));
    case 17:
        return str_eq_nocase(name, STR("transfer-encoding"));
    default:
        return false;
    }
}

bay_err exchange_write_head(http_connection *connection, int status, const http_field *fields,
                            size_t count, int64_t content_length, bool is_chunked, bool will_close)
{
    buf *out = &connection->server->head;
    buf_clear(out);
    bay_err err = http1_write_status_line(out, status, (bay_str){NULL, 0});
    for (size_t i = 0; i < count && err == BAY_OK; i++) {
        if (!exchange_field_is_ours(fields[i].name)) {
            err = http1_write_fields(out, &fields[i], 1);
        }
    }
    if (err != BAY_OK) {
        return err;
    }
    if (content_length >= 0) {
        err = http1_write_content_length(out, (uint64_t)content_length);
    }
    if (is_chunked) {
        buf_lit(out, "Transfer-Encoding: chunked\r\n");
    }
    if (will_close) {
        buf_lit(out, "Connection: close\r\n");
    } else if (connection->exchange.minor == 0) {
        buf_lit(out, "Connection: keep-alive\r\n");
    }
    buf_str(out, server_date(connection->server));
    buf_lit(out, "\r\n");
    return err != BAY_OK ? err : out->err;
}

/* Whether the connection is closed after this reply. */
static bool will_close(http_connection *connection)
{
    if (connection->server->is_draining) {
        connection->keep_alive = false;
    }
    return !connection->keep_alive;
}

static bool has_no_body(int status)
{
    return status == 204 || status == 304;
}

/* --- whole replies ---------------------------------------------------------------------------- */

/* The last bytes of the reply were passed on. */
static void http_exchange_finish(http_connection *connection, bay_err err)
{
    connection_set_state(connection, HTTP_REPLYING);
    if (err == BAY_OK) {
        connection->exchange.outcome = HTTP_COMPLETE;
        connection_settle_later(connection);
    } else if (err == BAY_ERR_CLOSED) {
        connection->exchange.outcome = HTTP_CUT;
    } else {
        (void)connection_account(connection);
    }
}

void http_exchange_reply(http_exchange *self, int status, const http_field *fields, size_t count,
                         bay_str body)
{
    if (self->is_http2) {
        http2_reply(self, status, fields, count, body);
        return;
    }
    http_connection *connection = exchange_connection(self);
    if (connection->state != HTTP_PENDING || !self->is_given) {
        return;
    }
    int64_t length = has_no_body(status) ? -1 : (int64_t)body.len;
    bool closes = will_close(connection);
    bay_err err = exchange_write_head(connection, status, fields, count, length, false, closes);
    if (err == BAY_ERR_INVALID) {
        body = STR("the reply's header fields were not valid\n");
        err = exchange_write_head(connection, 500, NULL, 0, (int64_t)body.len, false, closes);
    }
    if (err != BAY_OK) {
        http_exchange_abort(self);
        return;
    }
    buf *head = &connection->server->head;
    bool is_bare = self->is_head_method || has_no_body(status) || body.len == 0;
    if (!is_bare && body.len <= JOINED_BYTES && buf_reserve(head, body.len)) {
        buf_str(head, body); /* one span is cheaper than two for the kernel */
        is_bare = true;
    }
    bay_str spans[2] = {buf_view(head), body};
    http_exchange_finish(connection, connection_send(connection, spans, is_bare ? 1 : 2));
}

/* --- streams ---------------------------------------------------------------------------------- */

bay_err http_stream_open(http_exchange *self, int status, const http_field *fields, size_t count,
                         bool release_request)
{
    if (self->is_http2) {
        return http2_stream_open(self, status, fields, count, release_request);
    }
    http_connection *connection = exchange_connection(self);
    if (!self->is_given || connection->state >= HTTP_CLOSING) {
        return BAY_ERR_CLOSED;
    }
    if (connection->state != HTTP_PENDING) {
        return BAY_ERR_STATE;
    }
    bool is_chunked = self->minor >= 1 && !has_no_body(status);
    if (self->minor == 0) {
        connection->keep_alive = false; /* its end is the end of the connection */
    }
    bay_err err = exchange_write_head(connection, status, fields, count, -1, is_chunked,
                                      will_close(connection));
    if (err != BAY_OK) {
        return err;
    }
    http_server *server = connection->server;
    if (connection->cork.cap == 0) {
        connection->cork = server->spare_cork;
        buf_init(&server->spare_cork, SIZE_MAX / 2);
        buf_clear(&connection->cork);
    }
    buf_str(&connection->cork, buf_view(&server->head));
    if (connection->cork.err != BAY_OK) {
        buf_clear(&connection->cork);
        return BAY_ERR_NOMEM;
    }
    self->is_chunked = is_chunked;
    self->is_head_method = self->is_head_method || has_no_body(status);
    connection_set_state(connection, HTTP_STREAMING);
    socket_set_limits(connection->socket, server->options.limits.stream_high_bytes,
                      server->options.limits.stream_max_bytes);
    loop_defer(server->loop, &connection->task); /* sends the head, if nothing else has */
    if (release_request) {
        exchange_release_memory(self);
    }
    return BAY_OK;
}

void exchange_flush(http_exchange *self)
{
    http_connection *connection = exchange_connection(self);
    if (connection->cork.len == 0) {
        return;
    }
    bay_str bytes = buf_view(&connection->cork);
    if (connection_send(connection, &bytes, 1) == BAY_ERR_AGAIN) {
        (void)connection_account(connection);
    }
    buf_clear(&connection->cork);
}

/* Small writes of the iteration in which the stream was opened are sent with its head in one piece.
 */
static bool is_corked(http_connection *connection, size_t len)
{
    return connection->cork.len > 0 && connection->cork.len + len <= CORK_BYTES;
}

static size_t waiting_bytes(const http_connection *connection)
{
    return connection_rest_bytes(connection) + socket_queued_bytes(connection->socket);
}

/* One write of any size while nothing waits, otherwise up to the maximum. */
static bool has_room(const http_connection *connection, size_t bytes)
{
    size_t most = connection->server->options.limits.stream_max_bytes;
    size_t waiting = waiting_bytes(connection);
    return waiting == 0 || (waiting <= most && bytes <= most - waiting);
}

/* Output of the stream waits: more is accepted up to the limit. */
static bay_err slow_down(http_exchange *self)
{
    http_connection *connection = exchange_connection(self);
    if (!connection_account(connection)) {
        return BAY_ERR_CLOSED;
    }
    if (waiting_bytes(connection) <= connection->server->options.limits.stream_high_bytes) {
        return BAY_OK;
    }
    self->wants_drained = true;
    return BAY_ERR_AGAIN;
}

bay_err http_stream_write(http_exchange *self, bay_str bytes)
{
    if (self->is_http2) {
        return http2_stream_write(self, bytes);
    }
    http_connection *connection = exchange_connection(self);
    if (!self->is_given || connection->state != HTTP_STREAMING ||
        !socket_is_connected(connection->socket)) {
        return BAY_ERR_CLOSED;
    }
    if (bytes.len == 0 || self->is_head_method) {
        return BAY_OK;
    }
    char prefix[HTTP1_CHUNK_PREFIX_MAX];
    size_t prefix_len = self->is_chunked ? http1_chunk_prefix(prefix, bytes.len) : 0;
    bay_str spans[4] = {{NULL, 0},
                        {prefix, prefix_len},
                        bytes,
                        {HTTP1_CHUNK_END, self->is_chunked ? sizeof(HTTP1_CHUNK_END) - 1 : 0}};
    if (is_corked(connection, bytes.len + sizeof(prefix))) {
        for (size_t i = 1; i < 4; i++) {
            buf_str(&connection->cork, spans[i]);
        }
        if (connection->cork.err != BAY_OK) {
            socket_abort(connection->socket);
            return BAY_ERR_CLOSED;
        }
        return BAY_OK;
    }
    spans[0] = buf_view(&connection->cork);
    if (!has_room(connection, bytes.len)) {
        socket_abort(connection->socket);
        return BAY_ERR_CLOSED;
    }
    bay_err err = connection_send(connection, spans, 4);
    buf_clear(&connection->cork);
    return err == BAY_ERR_AGAIN ? slow_down(self) : err;
}

void http_stream_end_with(http_exchange *self, const http_field *trailers, size_t count)
{
    if (self->is_http2) {
        http2_stream_end(self, trailers, count);
    } else {
        http_stream_end(self);
    }
}

void http_stream_end(http_exchange *self)
{
    if (self->is_http2) {
        http2_stream_end(self, NULL, 0);
        return;
    }
    http_connection *connection = exchange_connection(self);
    if (!self->is_given || connection->state != HTTP_STREAMING) {
        return;
    }
    /* From here on `drained` must mean that the kernel has all of it. */
    socket_set_limits(connection->socket, 1, UINT32_MAX);
    bool has_end = self->is_chunked && !self->is_head_method;
    bay_str spans[2] = {buf_view(&connection->cork),
                        {HTTP1_LAST_CHUNK, has_end ? sizeof(HTTP1_LAST_CHUNK) - 1 : 0}};
    bay_err err = BAY_OK;
    if (spans[0].len + spans[1].len > 0) {
        err = connection_send(connection, spans, 2);
    } else if (waiting_bytes(connection) > 0) {
        err = BAY_ERR_AGAIN;
    }
    buf_clear(&connection->cork);
    http_exchange_finish(connection, err);
}

void http_exchange_abort(http_exchange *self)
{
    if (self->is_http2) {
        http2_abort(self);
        return;
    }
    http_connection *connection = exchange_connection(self);
    if (!self->is_given || connection->state >= HTTP_CLOSING) {
        return;
    }
    self->outcome = HTTP_CUT;
    connection_set_state(connection, HTTP_CLOSING);
    socket_abort(connection->socket);
}
