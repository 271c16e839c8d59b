/* A server connection that uses HTTP/2: its session, the cost of its frames, its iterations, its
 * end. Invariants: http2.h. */
#include "base/log.h"
#include "base/mem.h"
#include "http/http2.h"
#include "http/pace.h"

enum {
    SOCKET_SLACK = 1 << 20, /* above the mark, before the socket gives up */
};

const bool http2_is_built = true;

bay_err http2_preface(bay_str bytes)
{
    size_t len = bytes.len < NGHTTP2_CLIENT_MAGIC_LEN ? bytes.len : NGHTTP2_CLIENT_MAGIC_LEN;
    if (memcmp(bytes.at, NGHTTP2_CLIENT_MAGIC, len) != 0) {
        return BAY_ERR_NOT_FOUND;
    }
    return len == NGHTTP2_CLIENT_MAGIC_LEN ? BAY_OK : BAY_ERR_AGAIN;
}

uint64_t http2_now(const http2_connection *self)
{
    return loop_now_ms(self->connection->server->loop);
}

static const http_server_limits *limits_of(const http2_connection *self)
{
    return &self->connection->server->options.limits;
}

/* --- streams ---------------------------------------------------------------------------------- */

static void stream_free(http2_stream *self)
{
    http2_fields_fini(&self->trailers);
    buf_fini(&self->trailer_bytes);
    buf_fini(&self->out);
    mem_free(self);
}

/* A new stream, with the buffers of an ended one. */
static http2_stream *stream_take(http2_connection *http2)
{
    list_link *link = list_pop(&http2->spare);
    http2_stream *self = NULL;
    if (link == NULL) {
        self = mem_zalloc(sizeof(http2_stream));
        if (self != NULL) {
            buf_init(&self->out, SIZE_MAX / 2); /* http2_stream_write bounds it */
            buf_init(&self->trailer_bytes, limits_of(http2)->head_bytes);
            http2_fields_init(&self->trailers);
        }
        return self;
    }
    http2->spare_count--;
    self = CONTAINER_OF(link, http2_stream, turn);
    buf out = self->out;
    buf trailer_bytes = self->trailer_bytes;
    http2_fields trailers = self->trailers;
    memset(self, 0, sizeof(*self));
    self->out = out;
    self->trailer_bytes = trailer_bytes;
    self->trailers = trailers;
    buf_clear(&self->out);
    buf_clear(&self->trailer_bytes);
    http2_fields_clear(&self->trailers);
    return self;
}

http2_stream *http2_stream_new(http2_connection *http2, int32_t id)
{
    http_server *server = http2->connection->server;
    http2_stream *self = stream_take(http2);
    http_memory *memory = self != NULL ? server_memory_take(server) : NULL;
    if (memory == NULL) {
        if (self != NULL) {
            stream_free(self);
        }
        return NULL;
    }
    memory->head_len = 0;
    memory->head = (http1_head){.fields = memory->fields, .minor = 1};
    if (!buf_reserve(&memory->input, 512)) { /* so that no view of it is NULL */
        server_memory_give(server, memory);
        stream_free(self);
        return NULL;
    }
    self->exchange.memory = memory;
    self->exchange.is_http2 = true;
    self->connection = http2->connection;
    self->id = id;
    self->state = HTTP_HEAD;
    list_push(&http2->streams, &self->link);
    http2->connection->deadline_ms = 0;
    return self;
}

/* Removes it from all lists; its memory is freed later. */
static void http2_stream_forget(http2_stream *self)
{
    http2_connection *http2 = self->connection->http2;
    if (self->state != HTTP_DEAD) {
        http2_stream_set_state(self, HTTP_DEAD);
    }
    http2->queued -= self->out.len - self->out_from;
    self->out_from = 0;
    if (self->out.cap > HTTP2_SPARE_BYTES) {
        buf_fini(&self->out);
        buf_init(&self->out, SIZE_MAX / 2);
    }
    buf_clear(&self->out);
    exchange_release_memory(&self->exchange);
    list_remove(&self->link);
    list_remove(&self->turn);
    list_push(&http2->gone, &self->turn);
    if (list_is_empty(&http2->streams) && http2->is_open) {
        uint32_t idle = limits_of(http2)->idle_timeout_ms;
        http2->connection->deadline_ms = idle > 0 ? http2_now(http2) + idle : 0;
    }
}

static void free_spare(http2_connection *self)
{
    for (list_link *link; (link = list_pop(&self->spare)) != NULL;) {
        stream_free(CONTAINER_OF(link, http2_stream, turn));
    }
    self->spare_count = 0;
}

static void free_gone(http2_connection *self)
{
    for (list_link *link; (link = list_pop(&self->gone)) != NULL;) {
        http2_stream *stream = CONTAINER_OF(link, http2_stream, turn);
        if (self->spare_count < HTTP2_SPARE && stream->trailer_bytes.cap <= HTTP2_SPARE_BYTES &&
            stream->trailers.values.cap <= HTTP2_SPARE_BYTES) {
            list_push(&self->spare, &stream->turn);
            self->spare_count++;
        } else {
            stream_free(stream);
        }
    }
}

/* --- what frames cost ------------------------------------------------------------------------- */

static void http2_server_fail(http2_connection *self, uint32_t code)
{
    if (!self->is_failing) {
        self->is_failing = true;
        self->code = code;
    }
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)session;
    http2_connection *self = user;
    if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) {
        http2_request_frame(self, frame);
    } else if (frame->hd.type == NGHTTP2_SETTINGS && !self->is_open) {
        self->is_open = true;
    }
    return 0;
}

/* A reply was passed to the socket, or this side reset a stream because of the peer. */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    http2_connection *self = user;
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        uint32_t code = frame->rst_stream.error_code;
        if (code != NGHTTP2_NO_ERROR && code != NGHTTP2_CANCEL && code != NGHTTP2_INTERNAL_ERROR) {
            self->meter.resets++;
        }
        return 0;
    }
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) {
        return 0;
    }
    http2_meter_earn(&self->meter);
    http2_stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (stream == NULL || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) {
        return 0;
    }
    stream->exchange.outcome = HTTP_COMPLETE;
    self->meter.resets -= self->meter.resets > 0 && stream->exchange.is_given ? 1 : 0;
    if (!stream->is_whole) {
        /* RFC 9113 section 8.1: the rest of the request is not needed. */
        return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id,
                                         NGHTTP2_NO_ERROR) == NGHTTP2_ERR_NOMEM
                   ? NGHTTP2_ERR_CALLBACK_FAILURE
                   : 0;
    }
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    (void)code;
    http2_connection *self = user;
    http2_stream *stream = nghttp2_session_get_stream_user_data(session, id);
    if (stream == NULL) {
        return 0;
    }
    (void)nghttp2_session_set_stream_user_data(session, id, NULL);
    stream->is_gone = true;
    list_remove(&stream->turn);
    if (!stream->exchange.is_given) {
        http2_stream_forget(stream);
        return 0;
    }
    if (stream->exchange.outcome == HTTP_UNDECIDED) {
        stream->exchange.outcome = HTTP_CUT;
    }
    list_push(&self->over, &stream->turn);
    return 0;
}

/* --- telling the handler's owner -------------------------------------------------------------- */

static void say_closed(http2_stream *stream)
{
    http_server *server = stream->connection->server;
    if (!stream->exchange.is_given) {
        return;
    }
    stream->exchange.is_given = false;
    server->options.handler->closed(server->options.user, &stream->exchange,
                                    stream->exchange.outcome == HTTP_COMPLETE);
}

static void dispatch(http2_stream *stream)
{
    http_server *server = stream->connection->server;
    http_exchange *exchange = &stream->exchange;
    http2_stream_set_state(stream, HTTP_PENDING);
    exchange->user = NULL;
    exchange->outcome = HTTP_UNDECIDED;
    exchange->minor = 1;
    exchange->is_given = true;
    stream->is_bare = str_eq(exchange->memory->head.method, STR("HEAD"));
    exchange->is_head_method = stream->is_bare;
    server->options.handler->request(server->options.user, exchange);
}

/* No new work for a peer that does not read its replies, and little for one whose windows are
 * closed: a handler on another thread could make all replies before the first one waits. While
 * peers that do not read hold half of what may wait in this process, a request whose reply could
 * not be sent either waits for its window: making its reply would take time from peers that read,
 * and end another stream. */
static bool has_room(const http2_connection *self)
{
    const list_link *next = list_first(&self->ready);
    if (next == NULL || self->queued > HTTP2_AHEAD_BYTES) {
        return false;
    }
    bool is_scarce = reply_account_bytes() >= limits_of(self)->reply_bytes / 2;
    if (!is_scarce && self->pending < HTTP2_SHUT_REQUESTS) {
        return true;
    }
    int32_t id = CONTAINER_OF(next, http2_stream, turn)->id;
    int32_t window = nghttp2_session_get_stream_remote_window_size(self->session, id);
    int32_t shared = nghttp2_session_get_remote_window_size(self->session);
    bool is_narrow = (window < shared ? window : shared) < HTTP2_NARROW_BYTES;
    return (self->pending < HTTP2_SHUT_REQUESTS || window > 0) && !(is_scarce && is_narrow);
}

/* Serves one stream with something due; false: none. Any of this may end everything. */
static bool serve_one(http2_connection *self)
{
    list_link *link = list_pop(&self->over);
    if (link != NULL) {
        http2_stream *stream = CONTAINER_OF(link, http2_stream, turn);
        say_closed(stream);
        if (stream->state != HTTP_DEAD) {
            http2_stream_forget(stream);
        }
        return true;
    }
    link = has_room(self) ? list_pop(&self->ready) : NULL;
    if (link != NULL) {
        dispatch(CONTAINER_OF(link, http2_stream, turn));
        return true;
    }
    link = list_pop(&self->thirsty);
    if (link == NULL) {
        return false;
    }
    http2_stream *stream = CONTAINER_OF(link, http2_stream, turn);
    http_server *server = self->connection->server;
    if (stream->exchange.wants_drained && stream->state == HTTP_STREAMING) {
        stream->exchange.wants_drained = false;
        if (server->options.handler->drained != NULL) {
            server->options.handler->drained(server->options.user, &stream->exchange);
        }
    }
    return true;
}

/* --- turns ------------------------------------------------------------------------------------ */

static bool is_live(const http2_connection *self)
{
    return self->connection->state == HTTP_SHARED;
}

/* The rest of the connection is these last bytes. */
static void close_with(http2_connection *self, uint32_t code)
{
    http_connection *connection = self->connection;
    if (code != NGHTTP2_NO_ERROR) {
        http2_write_goaway(connection->socket,
                           nghttp2_session_get_last_proc_stream_id(self->session), code);
    }
    connection_close_gently(connection);
    http2_end(connection);
}

static void write_out(http2_connection *self)
{
    http_connection *connection = self->connection;
    if (self->is_blocked || self->heap.has_failed) {
        return;
    }
    bay_err err = http2_pump(self->session, connection->socket, &connection->server->head,
                             &connection->written);
    if (err == BAY_ERR_AGAIN) {
        self->is_blocked = true;
        socket_read_stop(connection->socket);
    } else if (err != BAY_OK) {
        socket_abort(connection->socket);
        connection_set_state(connection, HTTP_CLOSING);
        http2_end(connection);
    }
}

/* Whether the peer has sent more frames without effect than it may. */
static void check_meter(http2_connection *self)
{
    const http_server_limits *limits = limits_of(self);
    bool resets = self->meter.resets > limits->resets;
    if (self->meter.is_broken) {
        http2_server_fail(self, NGHTTP2_PROTOCOL_ERROR);
    }
    if (!resets && self->meter.useless <= limits->control_frames) {
        return;
    }
    if (!self->is_failing) { /* one log line per connection, however many frames came at once */
        LOG(LOG_WARN, "http", "connection from %s ended: %s", self->connection->peer,
            resets ? "too many of its streams are reset or no HTTP"
                   : "too many frames of it change nothing");
    }
    http2_server_fail(self, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* Whether it has ended, by its peer's fault or for lack of memory. */
static bool has_failed(http2_connection *self)
{
    if (self->heap.has_failed) {
        http2_server_fail(self, NGHTTP2_INTERNAL_ERROR);
    }
    check_meter(self);
    return self->is_failing;
}

void http2_turn(http_connection *connection)
{
    http2_connection *self = connection->http2;
    while (is_live(self) && !has_failed(self)) {
        while (is_live(self) && serve_one(self)) {
        }
        if (!is_live(self)) {
            break;
        }
        write_out(self);
        bool is_served =
            list_is_empty(&self->over) && list_is_empty(&self->thirsty) && !has_room(self);
        if (is_served || !connection_account(connection)) {
            break;
        }
    }
    (void)connection_account(connection);
    if (is_live(self) && has_failed(self)) {
        close_with(self, self->code);
    } else if (is_live(self) && !self->is_blocked && !nghttp2_session_want_read(self->session) &&
               !nghttp2_session_want_write(self->session)) {
        close_with(self, NGHTTP2_NO_ERROR);
    }
    if (connection->server->depth == 1) {
        free_gone(self);
    }
}

/* --- events of the socket --------------------------------------------------------------------- */

static void receive(http2_connection *self, bay_str bytes)
{
    if (has_failed(self)) {
        return;
    }
    self->heard_ms = http2_now(self);
    self->is_asked = false;
    http2_meter_read(&self->meter, bytes, self->heard_ms, limits_of(self)->flood_window_ms);
    ssize_t used = nghttp2_session_mem_recv(self->session, (const uint8_t *)bytes.at, bytes.len);
    if (used < 0) {
        http2_server_fail(self, http2_code_of((int)used));
    }
}

static void on_data(void *user, bay_str bytes)
{
    http_connection *connection = user;
    http_server *server = connection->server;
    server_enter(server);
    if (is_live(connection->http2)) {
        receive(connection->http2, bytes);
        http2_turn(connection);
    }
    server_leave(server);
}

/* A peer that ends its half sends nothing more, not even acknowledgements. */
static void on_eof(void *user)
{
    http_connection *connection = user;
    http_server *server = connection->server;
    server_enter(server);
    if (is_live(connection->http2)) {
        close_with(connection->http2, NGHTTP2_NO_ERROR);
    }
    server_leave(server);
}

static void on_drained(void *user)
{
    http_connection *connection = user;
    http_server *server = connection->server;
    server_enter(server);
    if (is_live(connection->http2)) {
        connection->http2->is_blocked = false;
        socket_read_start(connection->socket);
        http2_turn(connection);
    }
    server_leave(server);
}

static void http2_server_on_closed(void *user, bay_err reason, const char *text)
{
    http_connection *connection = user;
    http_server *server = connection->server;
    (void)reason;
    (void)text;
    server_enter(server);
    connection_let_go(connection);
    server_leave(server);
}

/* --- making and ending ------------------------------------------------------------------------ */

static bay_err new_session(http2_connection *self)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    bay_err err = BAY_ERR_NOMEM;
    if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0) {
        goto end;
    }
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, http2_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, http2_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, http2_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, http2_on_send_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_deflate_dynamic_table_size(option, HTTP2_DEFLATE_BYTES);
    if (nghttp2_session_server_new3(&self->session, callbacks, self, option, &self->heap.mem) ==
        0) {
        err = BAY_OK;
    }

end:
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return err;
}

static bay_err introduce(http2_connection *self)
{
    const http_server_limits *limits = limits_of(self);
    size_t most = limits->head_bytes < UINT32_MAX ? limits->head_bytes : UINT32_MAX;
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)most},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    if (nghttp2_submit_settings(self->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings)) !=
            0 ||
        nghttp2_session_set_local_window_size(self->session, NGHTTP2_FLAG_NONE, 0, HTTP2_WINDOW) !=
            0) {
        return BAY_ERR_NOMEM;
    }
    return BAY_OK;
}

void http2_begin(http_connection *connection, bay_str bytes)
{
    static const socket_events events = {
        .data = on_data,
        .eof = on_eof,
        .drained = on_drained,
        .closed = http2_server_on_closed,
    };
    http2_connection *self = mem_zalloc(sizeof(http2_connection));
    if (self == NULL) {
        connection_set_state(connection, HTTP_CLOSING);
        socket_abort(connection->socket);
        return;
    }
    self->connection = connection;
    list_init(&self->streams);
    list_init(&self->ready);
    list_init(&self->over);
    list_init(&self->thirsty);
    list_init(&self->gone);
    list_init(&self->spare);
    http2_meter_init(&self->meter, true);
    http2_heap_init(&self->heap);
    http2_fields_init(&self->fields);
    connection->http2 = self;
    connection_set_state(connection, HTTP_SHARED);
    connection->deadline_ms = 0;
    socket_set_events(connection->socket, &events, connection);
    socket_set_limits(connection->socket, HTTP2_HIGH_BYTES, HTTP2_HIGH_BYTES + SOCKET_SLACK);
    connection->deadline_ms = server_first_deadline(connection->server);
    if (new_session(self) != BAY_OK || introduce(self) != BAY_OK) {
        connection_set_state(connection, HTTP_CLOSING);
        socket_abort(connection->socket);
        return;
    }
    socket_read_start(connection->socket);
    if (bytes.len > 0) {
        receive(self, bytes);
    }
    http2_turn(connection);
}

void http2_end(http_connection *connection)
{
    http2_connection *self = connection->http2;
    for (list_link *link; (link = list_first(&self->streams)) != NULL;) {
        http2_stream *stream = CONTAINER_OF(link, http2_stream, link);
        if (!stream->is_gone && !self->heap.has_failed) {
            (void)nghttp2_session_set_stream_user_data(self->session, stream->id, NULL);
        }
        stream->is_gone = true;
        if (stream->exchange.outcome == HTTP_UNDECIDED) {
            stream->exchange.outcome = HTTP_CUT;
        }
        list_remove(&stream->link);
        say_closed(stream);
        http2_stream_forget(stream);
    }
}

size_t http2_queued_bytes(const http_connection *connection)
{
    return connection->http2->queued;
}

uint64_t http2_sent_bytes(const http_connection *connection)
{
    return connection->http2->sent;
}

/* nghttp2 is not called any more: from here on the connection is not HTTP_SHARED. */
void http2_drop_queued(http_connection *connection)
{
    http2_connection *self = connection->http2;
    LIST_EACH(link, &self->streams)
    {
        http2_stream *stream = CONTAINER_OF(link, http2_stream, link);
        buf_fini(&stream->out);
        stream->out_from = 0;
    }
    self->queued = 0;
}

void http2_free(http_connection *connection)
{
    http2_connection *self = connection->http2;
    if (self == NULL) {
        return;
    }
    free_gone(self);
    free_spare(self);
    http2_heap_fini(&self->heap, self->session);
    http2_fields_fini(&self->fields);
    mem_free(self);
    connection->http2 = NULL;
}

/* For walks over the connections, any of which an iteration may end. */
static void turn_later(http2_connection *self)
{
    loop_defer(self->connection->server->loop, &self->connection->task);
}

void http2_warn(http_connection *connection)
{
    if (connection->http2 != NULL && is_live(connection->http2) && !has_failed(connection->http2) &&
        nghttp2_submit_shutdown_notice(connection->http2->session) == 0) {
        turn_later(connection->http2);
    }
}

void http2_drain(http_connection *connection)
{
    http2_connection *self = connection->http2;
    if (!is_live(self) || self->is_ending) {
        return;
    }
    self->is_ending = true;
    if (has_failed(self)) {
        turn_later(self);
        return;
    }
    int32_t last = nghttp2_session_get_last_proc_stream_id(self->session);
    if (nghttp2_submit_goaway(self->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0) !=
        0) {
        http2_server_fail(self, NGHTTP2_NO_ERROR);
    }
    turn_later(self);
}

/* --- limits in time --------------------------------------------------------------------------- */

/* True: the peer was disconnected because it reads too slowly. */
static bool sweep_socket(http2_connection *self, uint64_t now)
{
    http_connection *connection = self->connection;
    uint32_t most = limits_of(self)->write_timeout_ms;
    if (socket_queued_bytes(connection->socket) == 0 || most == 0) {
        self->stall_end_ms = 0;
        return false;
    }
    uint64_t moved = connection_moved(connection, connection->written, &connection->taken);
    self->stall_end_ms = pace_until(self->stall_end_ms, now, most, moved, 1);
    if (now >= self->stall_end_ms) {
        socket_abort(connection->socket);
    }
    return now >= self->stall_end_ms;
}

/* Checks that the peer is there. */
static void sweep_silence(http2_connection *self, uint64_t now)
{
    uint32_t most = limits_of(self)->write_timeout_ms;
    if (most == 0 || self->is_blocked || list_is_empty(&self->streams)) {
        self->heard_ms = now;
        self->is_asked = false;
    } else if (now - self->heard_ms >= most) {
        socket_abort(self->connection->socket);
    } else if (now - self->heard_ms >= most / 3 && !self->is_asked && !self->heap.has_failed) {
        self->is_asked = true;
        (void)nghttp2_submit_ping(self->session, NGHTTP2_FLAG_NONE, NULL);
        turn_later(self);
    }
}

/* An end waits for the window, too: nghttp2 sends it in a DATA frame, which may be empty. */
static bool waits_for_peer(const http2_stream *stream)
{
    return stream->state == HTTP_REPLYING ||
           (stream->state == HTTP_STREAMING && stream->out.len > stream->out_from);
}

/* The peer's progress for this stream: while bytes are under way, what the peer has acknowledged of
 * the connection, otherwise how far it opens the window. */
static uint64_t moved_for(const http2_stream *stream, uint64_t acknowledged)
{
    const http2_connection *self = stream->connection->http2;
    bool is_on_its_way =
        stream->sent_at > self->taken ||
        nghttp2_session_get_stream_remote_window_size(self->session, stream->id) > 0;
    return is_on_its_way ? acknowledged : stream->moved;
}

/* One stream: a body that does not arrive, a window that stays closed. `sharers`: streams that
 * wait. */
static void sweep_stream(http2_stream *stream, uint64_t now, uint64_t acknowledged,
                         uint32_t sharers)
{
    http2_connection *self = stream->connection->http2;
    uint32_t most = limits_of(self)->write_timeout_ms;
    if (stream->state == HTTP_BODY && stream->deadline_ms > 0 && now >= stream->deadline_ms &&
        !list_holds(&stream->turn)) {
        http2_refuse(stream, 408, "the request's body took too long\n");
        return;
    }
    if (stream->state != HTTP_STREAMING && stream->state != HTTP_REPLYING) {
        return;
    }
    if (!waits_for_peer(stream) || most == 0) {
        stream->deadline_ms = 0;
    } else {
        stream->deadline_ms =
            pace_until(stream->deadline_ms, now, most, moved_for(stream, acknowledged), sharers);
        if (now >= stream->deadline_ms) {
            http2_stream_reset(stream, NGHTTP2_CANCEL);
        }
    }
    stream->moved = 0;
}

static void sweep_streams(http2_connection *self, uint64_t now)
{
    uint32_t waiting = 0;
    LIST_EACH(link, &self->streams)
    {
        waiting += waits_for_peer(CONTAINER_OF(link, http2_stream, link)) ? 1 : 0;
    }
    uint64_t acknowledged =
        waiting > 0 ? connection_moved(self->connection, self->sent, &self->taken) : 0;
    LIST_EACH(link, &self->streams)
    {
        sweep_stream(CONTAINER_OF(link, http2_stream, link), now, acknowledged, waiting);
    }
}

void http2_sweep(http_connection *connection, uint64_t now)
{
    http2_connection *self = connection->http2;
    if (!is_live(self) || sweep_socket(self, now)) {
        return;
    }
    sweep_silence(self, now);
    if (self->head_end_ms > 0 && now >= self->head_end_ms) {
        http2_server_fail(self, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    if (connection->deadline_ms > 0 && now >= connection->deadline_ms &&
        list_is_empty(&self->streams)) {
        connection->deadline_ms = 0;
        if (self->is_open) {
            http2_drain(connection);
        } else {
            http2_server_fail(self, NGHTTP2_SETTINGS_TIMEOUT);
        }
    }
    if (list_is_empty(&self->streams)) {
        free_spare(self); /* an idle connection keeps no buffers */
        http2_fields_fini(&self->fields);
        http2_fields_init(&self->fields);
    }
    sweep_streams(self, now);
    (void)connection_account(connection);
    if (self->is_failing ||
        (!self->heap.has_failed && has_room(self))) { /* others have read, or ended */
        turn_later(self);
    }
}

bool http_server_speaks_http2(void)
{
    return true;
}
