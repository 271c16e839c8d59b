/* Calls over HTTP/2: few connections ("lines") per origin, many calls on each.
 *
 * As on the server's side, nghttp2's callbacks only note what arrived; each call has its pending
 * events (head, body, trailers, end) and joins the line's `due`. Owners are called when nghttp2 has
 * returned. Data of a paused call is kept, and its stream's window is not opened again; the other
 * calls of the line continue, because the connection's window is opened at once.
 *
 * A call that its peer refused (REFUSED_STREAM, or above the last stream of a GOAWAY) was not
 * processed, and is sent again on another line, at most HTTP2_TRIES times. If its line broke, a
 * call is sent again under the rule of HTTP/1.1: the line had served before, no byte of a reply was
 * received, and the call may run twice. */
#include "base/err.h"
#include "base/mem.h"
#include "http/http2.h"
#include "http/http2_line.h"

static const socket_events line_events;
static void line_task(void *argument);

/* --- lines ------------------------------------------------------------------------------------ */

static void hang_up(http2_line *self)
{
    if (self->socket == NULL) {
        return;
    }
    if (self->is_connected) {
        http2_write_goaway(self->socket, 0, NGHTTP2_NO_ERROR);
    }
    socket_set_events(self->socket, NULL, NULL);
    socket_close(self->socket, 0);
    self->socket = NULL;
    self->is_connected = false;
}

static void line_drop(http2_line *self)
{
    if (self->is_dropped) {
        return;
    }
    self->is_dropped = true;
    self->is_ending = true;
    loop_undefer(self->client->loop, &self->task);
    hang_up(self);
    list_remove(&self->link);
    list_push(&self->client->dead_lines, &self->link);
    self->origin->channels--;
    origin_kick(self->client, self->origin);
    origin_release(self->client, self->origin);
}

void http2_lines_free(http_client *client)
{
    for (list_link *link; (link = list_pop(&client->dead_lines)) != NULL;) {
        http2_line *line = CONTAINER_OF(link, http2_line, link);
        http2_heap_fini(&line->heap, line->session);
        buf_fini(&line->scratch);
        mem_free(line);
    }
}

/* The connection has ended: decides for each of its calls. */
static void line_end(http2_line *self, bay_err err, const char *text)
{
    bool may_be_stale = self->has_served && err == BAY_ERR_CLOSED;
    list calls;
    list_init(&calls);
    self->is_ending = self->is_over = true;
    for (list_link *link; (link = list_pop(&self->calls)) != NULL;) {
        list_push(&calls, link);
    }
    for (list_link *link; (link = list_pop(&calls)) != NULL;) {
        http2_call *more = CONTAINER_OF(link, http2_call, link);
        http_call *call = more->call;
        list_push(&self->calls, link);
        more->has_stream = false;
        bool is_unheard = !call->was_sent || (may_be_stale && call->may_run_twice);
        if (http2_call_is_whole(more)) {
            http2_call_due(self, more); /* its owner is told later */
        } else if (self->has_served && !more->has_head && more->tries < HTTP2_TRIES && is_unheard) {
            http2_call_send_again(more);
        } else {
            http_call_fail(call, err, text);
        }
    }
    if (list_is_empty(&self->calls)) {
        line_drop(self);
    } else if (!self->is_dropped) {
        hang_up(self);
        loop_defer(self->client->loop, &self->task);
    }
}

static bay_err new_session(http2_line *self)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    bay_err err = BAY_ERR_NOMEM;
    if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0) {
        goto end;
    }
    http2_client_callbacks(callbacks);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_no_auto_window_update(option, 1);
    if (nghttp2_session_client_new3(&self->session, callbacks, self, option, &self->heap.mem) ==
        0) {
        err = BAY_OK;
    }

end:
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return err;
}

static bay_err introduce(http2_line *self)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)self->client->limits.head_bytes},
    };
    bool is_said = nghttp2_submit_settings(self->session, NGHTTP2_FLAG_NONE, settings,
                                           ARRAY_LEN(settings)) == 0 &&
                   nghttp2_session_set_local_window_size(self->session, NGHTTP2_FLAG_NONE, 0,
                                                         HTTP2_WINDOW) == 0;
    return is_said ? BAY_OK : BAY_ERR_NOMEM;
}

static bay_err line_open(http_client *client, http_origin *origin, http2_line **out)
{
    http2_line *self = mem_zalloc(sizeof(http2_line));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->client = client;
    self->origin = origin;
    self->task = (loop_task){.function = line_task, .argument = self};
    list_init(&self->calls);
    list_init(&self->due);
    http2_meter_init(&self->meter, false);
    http2_heap_init(&self->heap);
    buf_init(&self->scratch, SIZE_MAX / 2);
    bay_err err = new_session(self);
    if (err == BAY_OK) {
        err = introduce(self);
    }
    if (err == BAY_OK) {
        err = socket_connect(client->loop, origin->host, origin->port,
                             origin->is_tls ? client->tls : NULL, (bay_str){NULL, 0},
                             client->limits.connect_timeout_ms, &line_events, self, &self->socket);
    }
    if (err != BAY_OK) {
        http2_heap_fini(&self->heap, self->session);
        mem_free(self);
        return err;
    }
    socket_offer_http2(self->socket);
    if (client->permit != NULL) {
        socket_set_permit(self->socket, client->permit, client->permit_user);
    }
    origin->channels++;
    origin->users++;
    list_push(&origin->lines, &self->link);
    *out = self;
    return BAY_OK;
}

static bool line_has_room(http2_line *self)
{
    if (self->is_ending || self->is_failing || self->heap.has_failed) {
        return false;
    }
    uint32_t most = self->client->limits.streams_per_connection;
    uint32_t theirs =
        nghttp2_session_get_remote_settings(self->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    return self->call_count < (theirs < most ? theirs : most) &&
           nghttp2_session_check_request_allowed(self->session);
}

static http2_line *line_with_room(http_origin *origin)
{
    LIST_EACH(link, &origin->lines)
    {
        http2_line *line = CONTAINER_OF(link, http2_line, link);
        if (line_has_room(line)) {
            return line;
        }
    }
    return NULL;
}

bool http2_origin_has_room(http_client *client, http_origin *origin)
{
    return origin->channels < client->limits.http2_connections || line_with_room(origin) != NULL;
}

bay_err http2_call_start(http_call *self)
{
    http_client *client = self->client;
    http_origin *origin = self->origin;
    http2_call *more = self->http2;
    http2_line *line = line_with_room(origin);
    if (line == NULL && origin->channels < client->limits.http2_connections) {
        bay_err err = line_open(client, origin, &line);
        if (err != BAY_OK) {
            return err;
        }
    }
    if (line == NULL) {
        if (origin->queued >= client->limits.queue_per_origin) {
            return BAY_ERR_BUSY;
        }
        list_push(&origin->queue, &self->queue_link);
        origin->queued++;
        self->state = CALL_QUEUED;
        return BAY_OK;
    }
    bay_err err = http2_call_submit(line, more);
    if (line->heap.has_failed) {
        loop_defer(client->loop, &line->task);
        more->has_stream = false;
        return BAY_ERR_NOMEM;
    }
    if (err != BAY_OK) {
        return err;
    }
    more->line = line;
    line->call_count++;
    list_push(&line->calls, &more->link);
    self->was_sent = false;
    self->state = line->is_connected ? CALL_WAITING : CALL_CONNECTING;
    if (line->is_connected) {
        loop_defer(client->loop, &line->task);
    }
    return BAY_OK;
}

/* --- turns ------------------------------------------------------------------------------------ */

static void tell_all(http2_line *self)
{
    /* One round: a call that is paused or sent again does not return in it. */
    list round;
    list_init(&round);
    for (list_link *link; (link = list_pop(&self->due)) != NULL;) {
        list_push(&round, link);
    }
    for (list_link *link; (link = list_pop(&round)) != NULL;) {
        http2_call_tell(CONTAINER_OF(link, http2_call, turn));
    }
}

/* False: the line is freed. */
static bool write_out(http2_line *self)
{
    if (!self->is_connected || self->is_blocked || self->is_dropped) {
        return !self->is_dropped;
    }
    bay_err err = self->heap.has_failed
                      ? BAY_ERR_NOMEM
                      : http2_pump(self->session, self->socket, &self->scratch, &self->written);
    if (err == BAY_OK && self->scratch.cap > HTTP2_HIGH_BYTES) {
        buf_fini(&self->scratch);
        buf_init(&self->scratch, SIZE_MAX / 2);
    }
    if (err == BAY_ERR_AGAIN) {
        self->is_blocked = true;
    } else if (err != BAY_OK) {
        line_end(self, err, bay_err_text(err));
        return false;
    }
    return true;
}

/* nghttp2 needs nothing more of this connection. */
static bool is_finished(const http2_line *self)
{
    return self->is_connected && !nghttp2_session_want_read(self->session) &&
           !nghttp2_session_want_write(self->session);
}

static void line_turn(http2_line *self)
{
    do {
        tell_all(self);
        if (!write_out(self)) {
            return;
        }
    } while (!list_is_empty(&self->due) && !self->heap.has_failed);
    if (self->is_over) {
        if (list_is_empty(&self->calls)) {
            line_drop(self);
        }
    } else if (self->heap.has_failed) {
        line_end(self, BAY_ERR_NOMEM, bay_err_text(BAY_ERR_NOMEM));
    } else if (self->is_failing || (!list_is_empty(&self->calls) && is_finished(self))) {
        line_end(self, BAY_ERR_PROTOCOL, "the peer does not speak HTTP/2 as it should");
    } else if ((self->is_ending || is_finished(self)) && list_is_empty(&self->calls)) {
        line_drop(self);
    } else {
        origin_kick(self->client, self->origin);
        client_arm_sweep(self->client);
    }
}

static void line_task(void *argument)
{
    http2_line *self = argument;
    http_client *client = self->client;
    http_client_enter(client);
    if (!self->is_dropped) {
        line_turn(self);
    }
    http_client_leave(client);
}

bool http2_origin_sweep(http_client *client, http_origin *origin, uint64_t now)
{
    LIST_EACH(link, &origin->lines)
    {
        http2_line *line = CONTAINER_OF(link, http2_line, link);
        if (line->is_connected && list_is_empty(&line->calls) &&
            now - line->idle_since_ms >= client->limits.idle_timeout_ms) {
            line_drop(line);
        }
    }
    return !list_is_empty(&origin->lines);
}

void http2_origin_drop(http_origin *origin)
{
    for (list_link *link; (link = list_first(&origin->lines)) != NULL;) {
        line_drop(CONTAINER_OF(link, http2_line, link));
    }
}

/* --- events of the socket --------------------------------------------------------------------- */

static void on_connected(void *user)
{
    http2_line *self = user;
    http_client *client = self->client;
    http_client_enter(client);
    if (socket_is_tls(self->socket) && !socket_is_http2(self->socket)) {
        line_end(self, BAY_ERR_PROTOCOL, "the server does not offer HTTP/2");
        http_client_leave(client);
        return;
    }
    self->is_connected = true;
    self->idle_since_ms = loop_now_ms(client->loop);
    LIST_EACH(link, &self->calls)
    {
        CONTAINER_OF(link, http2_call, link)->call->state = CALL_WAITING;
    }
    socket_set_limits(self->socket, HTTP2_HIGH_BYTES, 2 * HTTP2_HIGH_BYTES + HTTP2_WINDOW);
    socket_read_start(self->socket);
    line_turn(self);
    http_client_leave(client);
}

static void on_failed(void *user, bay_err err, const char *text)
{
    http2_line *self = user;
    http_client *client = self->client;
    http_client_enter(client);
    line_end(self, err, text != NULL ? text : bay_err_text(err));
    http_client_leave(client);
}

static void on_data(void *user, bay_str bytes)
{
    http2_line *self = user;
    http_client *client = self->client;
    http_client_enter(client);
    if (!self->heap.has_failed && !self->is_failing) {
        http2_meter_read(&self->meter, bytes, loop_now_ms(client->loop), USELESS_WINDOW_MS);
        self->is_failing =
            nghttp2_session_mem_recv(self->session, (const uint8_t *)bytes.at, bytes.len) < 0 ||
            self->meter.useless > USELESS_MAX;
        if (self->in_head != NULL) {
            call_begin_head(self->in_head->call);
        }
    }
    line_turn(self);
    http_client_leave(client);
}

static void on_drained(void *user)
{
    http2_line *self = user;
    http_client *client = self->client;
    http_client_enter(client);
    self->is_blocked = false;
    line_turn(self);
    http_client_leave(client);
}

static void on_eof(void *user)
{
    http2_line *self = user;
    http_client *client = self->client;
    http_client_enter(client);
    line_end(self, BAY_ERR_CLOSED, "the peer closed the connection");
    http_client_leave(client);
}

static void http2_client_on_closed(void *user, bay_err reason, const char *text)
{
    http2_line *self = user;
    http_client *client = self->client;
    http_client_enter(client);
    self->socket = NULL;
    reason = reason == BAY_OK ? BAY_ERR_CLOSED : reason;
    line_end(self, reason, text != NULL ? text : bay_err_text(reason));
    http_client_leave(client);
}

static const socket_events line_events = {
    .connected = on_connected,
    .failed = on_failed,
    .data = on_data,
    .eof = on_eof,
    .drained = on_drained,
    .closed = http2_client_on_closed,
};
