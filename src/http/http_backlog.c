/* What a connection's peer has not read: the rest of an HTTP/1.1 reply that does not fit in the
 * socket, and the debt of either version in the account of the process (http/reply_account.h).
 *
 * A reply is passed to the socket in pieces: the next piece follows when the socket has written the
 * previous one. So a reply waits once, in its original form, and can be dropped at any time; the
 * socket holds one piece of it, encrypted if TLS is used. */
#include "base/log.h"
#include "base/mem.h"
#include "http/http_internal.h"

enum { SPANS = 4, REST_KEPT = 4096 };

static size_t rest_of(const http_backlog *self)
{
    return self != NULL ? self->rest.len - self->from : 0;
}

size_t connection_rest_bytes(const http_connection *self)
{
    return rest_of(self->backlog);
}

static uint64_t taken_bytes(const http_connection *self, uint64_t sent)
{
    size_t left = socket_queued_bytes(self->socket) + socket_unacknowledged_bytes(self->socket);
    return sent > left ? sent - left : 0;
}

uint64_t connection_moved(const http_connection *self, uint64_t sent, uint64_t *taken)
{
    uint64_t now = taken_bytes(self, sent);
    uint64_t moved = now > *taken ? now - *taken : 0; /* TLS increases what remains */
    *taken += moved;
    return moved;
}

/* --- the account ------------------------------------------------------------------------------ */

static uint64_t taken_of(const reply_debt *debt)
{
    const http_connection *self = CONTAINER_OF(debt, http_backlog, debt)->connection;
    return taken_bytes(self, self->http2 != NULL ? http2_sent_bytes(self) : self->written);
}

static void drop_rest(http_backlog *self)
{
    buf_fini(&self->rest);
    self->from = 0;
}

/* Its peer has made no progress for the longest time while too much waits in this process. */
static void end_debt(reply_debt *debt)
{
    http_backlog *self = CONTAINER_OF(debt, http_backlog, debt);
    http_connection *connection = self->connection;
    uint64_t now = loop_now_ms(connection->server->loop);
    LOG(LOG_WARN, "http",
        "connection from %s ended: it has not read %zu bytes of replies for %llu ms, and more than "
        "replyBytes wait in this process",
        connection->peer, debt->bytes, (unsigned long long)(now - debt->since_ms));
    drop_rest(self);
    if (connection->http2 != NULL) {
        http2_drop_queued(connection);
    }
    connection_set_state(connection, HTTP_CLOSING);
    socket_abort(connection->socket);
    reply_debt_set(connection->server->book, debt, 0, now);
}

const reply_book_ops connection_debts = {.taken = taken_of, .end = end_debt};

static http_backlog *need_backlog(http_connection *self)
{
    if (self->backlog == NULL) {
        self->backlog = mem_zalloc(sizeof(http_backlog));
        if (self->backlog != NULL) {
            self->backlog->connection = self;
            buf_init(&self->backlog->rest, SIZE_MAX / 2);
        }
    }
    return self->backlog;
}

void connection_free_backlog(http_connection *self)
{
    if (self->backlog != NULL) {
        reply_debt_set(self->server->book, &self->backlog->debt, 0, 0);
        drop_rest(self->backlog);
        mem_free(self->backlog);
        self->backlog = NULL;
    }
}

bool connection_account(http_connection *self)
{
    if (self->state >= HTTP_CLOSING) {
        return false;
    }
    size_t bytes = socket_queued_bytes(self->socket) + rest_of(self->backlog) +
                   (self->http2 != NULL ? http2_queued_bytes(self) : 0);
    if (bytes == 0) {
        connection_free_backlog(self);
        return true;
    }
    if (need_backlog(self) == NULL) {
        connection_set_state(self, HTTP_CLOSING);
        socket_abort(self->socket);
        return false;
    }
    reply_debt_set(self->server->book, &self->backlog->debt, bytes,
                   loop_now_ms(self->server->loop));
    return self->state < HTTP_CLOSING;
}

/* --- in pieces -------------------------------------------------------------------------------- */

/* The part of the spans that begins at `from`, at most one piece; returns its bytes. */
static size_t cut(const bay_str *spans, size_t count, size_t from, bay_str out[SPANS])
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        size_t skipped = from < spans[i].len ? from : spans[i].len;
        size_t len = spans[i].len - skipped;
        from -= skipped;
        len = len < HTTP_PIECE_BYTES - bytes ? len : HTTP_PIECE_BYTES - bytes;
        out[i] = (bay_str){spans[i].at + skipped, len};
        bytes += len;
    }
    return bytes;
}

static bay_err hand_over(http_connection *self, const bay_str *spans, size_t count, size_t bytes)
{
    bay_err err = socket_write(self->socket, spans, count);
    if (err != BAY_OK && err != BAY_ERR_AGAIN) {
        socket_abort(self->socket);
        return BAY_ERR_CLOSED;
    }
    self->written += bytes;
    return err;
}

/* Reserves exactly what waits: doubling would hold up to twice as much. */
static bool reserve_rest(buf *rest, size_t bytes)
{
    if (bytes <= rest->cap - rest->len || rest->len + bytes < REST_KEPT) {
        return buf_reserve(rest, bytes);
    }
    size_t cap = rest->len + bytes + (rest->len > 0 ? rest->len / 2 : 0);
    char *at = mem_resize(rest->at, cap);
    if (at != NULL) {
        rest->at = at;
        rest->cap = cap;
    }
    return at != NULL;
}

static bay_err keep_rest(http_connection *self, const bay_str *spans, size_t count, size_t from,
                         size_t bytes)
{
    http_backlog *backlog = need_backlog(self);
    if (backlog == NULL) {
        socket_abort(self->socket);
        return BAY_ERR_CLOSED;
    }
    if (backlog->from > backlog->rest.len / 2) {
        buf_consume(&backlog->rest, backlog->from);
        backlog->from = 0;
    }
    if (!reserve_rest(&backlog->rest, bytes)) {
        socket_abort(self->socket);
        return BAY_ERR_CLOSED;
    }
    for (size_t i = 0; i < count; i++) {
        size_t skipped = from < spans[i].len ? from : spans[i].len;
        from -= skipped;
        buf_str(&backlog->rest, str_from(spans[i], skipped));
    }
    /* `drained` must mean that the socket takes the next piece. */
    socket_set_limits(self->socket, 1, self->server->options.limits.stream_max_bytes);
    return BAY_ERR_AGAIN;
}

bay_err connection_send(http_connection *self, const bay_str *spans, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += spans[i].len;
    }
    size_t rest = connection_rest_bytes(self);
    if (total <= HTTP_PIECE_BYTES && rest == 0) {
        bay_err err = hand_over(self, spans, count, total);
        return err == BAY_OK && socket_queued_bytes(self->socket) > 0 ? BAY_ERR_AGAIN : err;
    }
    size_t sent = 0;
    while (rest == 0 && sent < total && (sent == 0 || socket_queued_bytes(self->socket) == 0)) {
        bay_str piece[SPANS];
        size_t len = cut(spans, count, sent, piece);
        if (hand_over(self, piece, count, len) == BAY_ERR_CLOSED) {
            return BAY_ERR_CLOSED;
        }
        sent += len;
    }
    if (sent < total) {
        return keep_rest(self, spans, count, sent, total - sent);
    }
    return socket_queued_bytes(self->socket) > 0 ? BAY_ERR_AGAIN : BAY_OK;
}

bay_err connection_send_rest(http_connection *self)
{
    http_backlog *backlog = self->backlog;
    bay_err err = BAY_OK;
    while (rest_of(backlog) > 0 && err == BAY_OK) {
        size_t len = rest_of(backlog) < HTTP_PIECE_BYTES ? rest_of(backlog) : HTTP_PIECE_BYTES;
        bay_str piece = {backlog->rest.at + backlog->from, len};
        err = hand_over(self, &piece, 1, len);
        backlog->from += len;
    }
    if (backlog != NULL && rest_of(backlog) == 0) {
        drop_rest(backlog);
    }
    return err == BAY_ERR_CLOSED || rest_of(backlog) == 0 ? err : BAY_ERR_AGAIN;
}
