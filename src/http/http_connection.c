/* One server connection, from its first byte to its end: reads requests one at a time, passes them
 * on, waits for their replies, and ends on any error. States and invariants: http_internal.h. */
#include "base/mem.h"
#include "http/http_internal.h"
#include "http/pace.h"

enum { LINGER_MS = 3000, CORK_KEPT = 32 * 1024 };

/* --- states ----------------------------------------------------------------------------------- */

void connection_set_state(http_connection *self, http_state state)
{
#define TO(name) (1u << HTTP_##name)
    static const unsigned allowed[] = {
        [HTTP_IDLE] = TO(HEAD) | TO(SHARED) | TO(CLOSING) | TO(DEAD),
        [HTTP_HEAD] = TO(BODY) | TO(PENDING) | TO(SHARED) | TO(CLOSING) | TO(DEAD),
        [HTTP_BODY] = TO(PENDING) | TO(CLOSING) | TO(DEAD),
        [HTTP_PENDING] = TO(STREAMING) | TO(REPLYING) | TO(CLOSING) | TO(DEAD),
        [HTTP_STREAMING] = TO(REPLYING) | TO(CLOSING) | TO(DEAD),
        [HTTP_REPLYING] = TO(IDLE) | TO(CLOSING) | TO(DEAD),
        [HTTP_SHARED] = TO(CLOSING) | TO(DEAD),
        [HTTP_CLOSING] = TO(CLOSING) | TO(DEAD),
        [HTTP_DEAD] = 0,
    };
#undef TO
    CHECK((allowed[self->state] >> state & 1u) != 0);
    self->state = state;
    if (state > HTTP_BODY) {
        self->deadline_ms = 0;
    }
}

static uint64_t now_ms(const http_connection *self)
{
    return loop_now_ms(self->server->loop);
}

static void set_deadline(http_connection *self, uint32_t after_ms)
{
    self->deadline_ms = after_ms > 0 ? now_ms(self) + after_ms : 0;
}

static const http_server_limits *limits_of(const http_connection *self)
{
    return &self->server->options.limits;
}

static void set_idle_deadline(http_connection *self)
{
    self->is_overdue = false;
    set_deadline(self,
                 self->server->is_draining ? DRAIN_LINGER_MS : limits_of(self)->idle_timeout_ms);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Tells the owner that the exchange is over. Afterwards only the connection's memory and state are
 * valid. */
static void deliver_closed(http_connection *self)
{
    http_exchange *exchange = &self->exchange;
    if (!exchange->is_given) {
        return;
    }
    http_server *server = self->server;
    exchange->is_given = false;
    server->options.handler->closed(server->options.user, exchange,
                                    exchange->outcome == HTTP_COMPLETE);
    exchange_release_memory(exchange);
}

static void give_cork(http_connection *self)
{
    buf *spare = &self->server->spare_cork;
    if (self->cork.cap > spare->cap && self->cork.cap <= CORK_KEPT) {
        buf_fini(spare);
        *spare = self->cork;
        buf_init(&self->cork, SIZE_MAX / 2);
    }
    buf_fini(&self->cork);
}

void connection_let_go(http_connection *self)
{
    loop_undefer(self->server->loop, &self->task);
    self->socket = NULL;
    connection_set_state(self, HTTP_DEAD);
    server_forget(self);
    give_cork(self);
    buf_fini(&self->held);
    connection_free_backlog(self);
    if (self->exchange.outcome == HTTP_UNDECIDED) {
        self->exchange.outcome = HTTP_CUT;
    }
    deliver_closed(self);
    exchange_release_memory(&self->exchange);
    if (self->http2 != NULL) {
        http2_end(self);
    }
}

void connection_cut(http_connection *self)
{
    socket_set_events(self->socket, NULL, NULL);
    socket_abort(self->socket);
    connection_let_go(self);
}

void connection_free(http_connection *self)
{
    http2_free(self);
    mem_free(self);
}

void connection_close_gently(http_connection *self)
{
    connection_set_state(self, HTTP_CLOSING);
    socket_close(self->socket, LINGER_MS);
}

/* The last answer counts as sent and may still wait for a slow peer, for the usual time. */
static void close_after_answer(http_connection *self)
{
    uint32_t most = limits_of(self)->write_timeout_ms;
    connection_set_state(self, HTTP_CLOSING);
    socket_close(self->socket, most > LINGER_MS ? most : LINGER_MS);
}

void connection_refuse(http_connection *self, int status, const char *text)
{
    static const http_field plain[] = {
        {STR_INIT("Content-Type"), STR_INIT("text/plain; charset=utf-8")},
        {STR_INIT("Retry-After"), STR_INIT("1")}};
    bay_str body[3] = {{NULL, 0}, str_of(text), STR("\n")};
    int64_t length = (int64_t)(body[1].len + body[2].len);
    size_t count = status == 503 ? 2 : 1;
    if (exchange_write_head(self, status, plain, count, length, false, true) == BAY_OK) {
        body[0] = buf_view(&self->server->head);
        (void)socket_write(self->socket, body, 3); /* a disconnected peer needs no answer */
    }
    connection_close_gently(self);
    exchange_release_memory(&self->exchange);
}

/* --- handing over ----------------------------------------------------------------------------- */

/* After a complete reply: the next request, or the end. */
static void http_connection_settle(http_connection *self)
{
    if (!self->exchange.is_given || self->exchange.outcome != HTTP_COMPLETE) {
        return;
    }
    loop_undefer(self->server->loop, &self->task);
    deliver_closed(self);
    if (self->state != HTTP_REPLYING) {
        return; /* the server was freed inside */
    }
    give_cork(self);
    if (!self->keep_alive) {
        close_after_answer(self);
        return;
    }
    connection_set_state(self, HTTP_IDLE);
    set_idle_deadline(self);
}

static void dispatch(http_connection *self)
{
    http_server *server = self->server;
    http_exchange *exchange = &self->exchange;
    http1_head *head = &exchange->memory->head;
    connection_set_state(self, HTTP_PENDING);
    self->keep_alive = head->keep_alive;
    exchange->user = NULL;
    exchange->outcome = HTTP_UNDECIDED;
    exchange->is_head_method = str_eq(head->method, STR("HEAD"));
    exchange->is_chunked = false;
    exchange->wants_drained = false;
    exchange->minor = head->minor;
    exchange->is_given = true;
    exchange->is_dispatching = true;
    server->options.handler->request(server->options.user, exchange);
    exchange->is_dispatching = false;
    http_connection_settle(self);
}

void connection_settle_later(http_connection *self)
{
    if (!self->exchange.is_dispatching) {
        loop_defer(self->server->loop, &self->task);
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

static void rebase_view(bay_str *view, const char *from, size_t len, ptrdiff_t by)
{
    if (view->at >= from && view->at <= from + len) {
        view->at += by;
    }
}

void http_memory_rebase(http_memory *memory, const char *from)
{
    ptrdiff_t by = memory->input.at - from;
    size_t len = memory->head_len;
    http1_head *head = &memory->head;
    if (by == 0) {
        return;
    }
    rebase_view(&head->method, from, len, by);
    rebase_view(&head->target, from, len, by);
    rebase_view(&head->path, from, len, by);
    rebase_view(&head->query, from, len, by);
    rebase_view(&head->authority, from, len, by);
    for (uint32_t i = 0; i < head->field_count; i++) {
        rebase_view(&head->fields[i].name, from, len, by);
        rebase_view(&head->fields[i].value, from, len, by);
    }
}

/* `bytes` more of the body have arrived. */
static void set_body_deadline(http_connection *self, size_t bytes)
{
    uint32_t within = limits_of(self)->body_timeout_ms;
    self->deadline_ms = within > 0 ? pace_until(self->deadline_ms, now_ms(self), within, bytes, 1)
                                   : self->body_end_ms;
    if (self->body_end_ms > 0 && self->body_end_ms < self->deadline_ms) {
        self->deadline_ms = self->body_end_ms;
    }
}

/* Each body has its limit, and so have all of them together; false: it was refused. */
static bool admit(http_connection *self, uint64_t more)
{
    if (!server_admits(self->server, more)) {
        connection_refuse(self, 503, "too much is being received at once");
        return false;
    }
    return true;
}

static void charge(http_connection *self)
{
    http_memory_charge(self->server, self->exchange.memory);
}

/* More bytes of the body's buffer; false: the connection was refused. */
static bool body_append(http_connection *self, bay_str bytes)
{
    http_memory *memory = self->exchange.memory;
    const char *before = memory->input.at;
    if (!admit(self, bytes.len)) {
        return false;
    }
    buf_append(&memory->input, bytes.at, bytes.len);
    if (memory->input.err != BAY_OK) {
        connection_refuse(self, 503, "no memory for the request");
        return false;
    }
    http_memory_rebase(memory, before);
    charge(self);
    return true;
}

/* Consumes bytes of the body; returns their number. */
static size_t read_body(http_connection *self, bay_str bytes)
{
    http_memory *memory = self->exchange.memory;
    size_t used = 0;
    size_t before = memory->input.len;
    for (;;) {
        size_t consumed = 0;
        bay_str data = {NULL, 0};
        http1_body_event event;
        if (http1_body_feed(&memory->body, str_from(bytes, used), &consumed, &data, &event) !=
            BAY_OK) {
            connection_refuse(self, memory->body.refusal.status, memory->body.refusal.text);
            return bytes.len;
        }
        used += consumed;
        if (event == HTTP1_BODY_DATA) {
            if (!body_append(self, data)) {
                return bytes.len;
            }
            continue;
        }
        if (event == HTTP1_BODY_END) {
            dispatch(self);
        } else {
            set_body_deadline(self, memory->input.len - before);
        }
        return used;
    }
}

static void expect_body(http_connection *self)
{
    connection_set_state(self, HTTP_BODY);
    uint32_t total = limits_of(self)->body_total_ms;
    self->body_end_ms = total > 0 ? now_ms(self) + total : 0;
    self->deadline_ms = 0;
    set_body_deadline(self, 0);
}

static void invite_body(http_connection *self)
{
    static const char invitation[] = "HTTP/1.1 100 Continue\r\n\r\n";
    (void)socket_write_one(self->socket, (bay_str){invitation, sizeof(invitation) - 1});
}

/* The head ends at `used` in `bytes`; the body follows. */
static size_t begin_body(http_connection *self, bay_str bytes, size_t used)
{
    http_memory *memory = self->exchange.memory;
    http1_head *head = &memory->head;
    if (head->framing == HTTP1_FRAMING_NONE) {
        memory->input.len = memory->head_len;
        dispatch(self);
        return used;
    }
    size_t have = memory->input.len - memory->head_len;
    if (head->framing == HTTP1_FRAMING_LENGTH) {
        if (head->content_length > self->server->limits.body_bytes) {
            connection_refuse(self, 413, "the body is larger than this server takes");
            return bytes.len;
        }
        if (!admit(self, head->content_length)) {
            return bytes.len;
        }
        if (have >= head->content_length) {
            size_t length = (size_t)head->content_length; /* the head is gone after dispatch */
            memory->input.len = memory->head_len + length;
            charge(self);
            dispatch(self);
            return used + length;
        }
    }
    memory->input.len = memory->head_len; /* what follows it is read again from `bytes` */
    http1_body_init(&memory->body, HTTP1_REQUEST, head, &self->server->limits);
    expect_body(self);
    if (head->expects_continue && have == 0) {
        invite_body(self);
    }
    return have > 0 ? used + read_body(self, str_from(bytes, used)) : used;
}

/* The first bytes of a connection may be the preface of HTTP/2: then it is served as such, or more
 * bytes are needed. */
static bool is_http2(http_connection *self, bay_str bytes)
{
    bay_err err = http2_preface(bytes);
    if (err == BAY_OK) {
        http_memory *memory = self->exchange.memory;
        self->exchange.memory = NULL;
        http2_begin(self, bytes);
        server_memory_give(self->server, memory);
    }
    return err != BAY_ERR_NOT_FOUND;
}

/* Consumes bytes of a head and of the body after it; returns their number. */
static size_t read_head(http_connection *self, bay_str bytes)
{
    http_memory *memory = self->exchange.memory;
    size_t before = memory->input.len;
    buf_append(&memory->input, bytes.at, bytes.len);
    if (memory->input.err != BAY_OK) {
        connection_refuse(self, 503, "no memory for the request");
        return bytes.len;
    }
    if (self->written == 0 && is_http2(self, buf_view(&memory->input))) {
        return bytes.len;
    }
    bay_err err = http1_head_parse(&memory->parser, buf_view(&memory->input), &memory->head,
                                   &memory->head_len);
    if (err == BAY_ERR_AGAIN) {
        return bytes.len;
    }
    if (err != BAY_OK) {
        connection_refuse(self, memory->parser.refusal.status, memory->parser.refusal.text);
        return bytes.len;
    }
    return begin_body(self, bytes, memory->head_len - before);
}

static bool begin_request(http_connection *self)
{
    http_memory *memory = server_memory_take(self->server);
    self->exchange.memory = memory;
    connection_set_state(self, HTTP_HEAD);
    if (memory == NULL) {
        connection_refuse(self, 503, "no memory for the request");
        return false;
    }
    http1_parser_init(&memory->parser, HTTP1_REQUEST, &self->server->limits, memory->fields, false);
    set_deadline(self, limits_of(self)->head_timeout_ms);
    return true;
}

/* Keeps bytes that came too early; reading stops, so that this is at most one read. */
static void hold(http_connection *self, bay_str bytes)
{
    buf_append(&self->held, bytes.at, bytes.len);
    if (self->held.err != BAY_OK) {
        socket_abort(self->socket);
        return;
    }
    socket_read_stop(self->socket);
}

static void feed(http_connection *self, bay_str bytes)
{
    while (bytes.len > 0 && self->state <= HTTP_BODY) {
        size_t used = 0;
        if (self->state == HTTP_IDLE && !begin_request(self)) {
            return;
        }
        used = self->state == HTTP_HEAD ? read_head(self, bytes) : read_body(self, bytes);
        bytes = str_from(bytes, used);
    }
    if (bytes.len > 0 && self->state < HTTP_CLOSING) {
        hold(self, bytes);
    }
}

/* Processes held bytes when the exchange before them is over. */
static void feed_held(http_connection *self)
{
    while (self->state == HTTP_IDLE && self->held.len > 0) {
        buf held = self->held;
        buf_init(&self->held, SIZE_MAX / 2);
        feed(self, buf_view(&held));
        buf_fini(&held);
    }
    if (self->state < HTTP_CLOSING && self->held.len == 0) {
        socket_read_start(self->socket);
    }
}

/* --- events ----------------------------------------------------------------------------------- */

static void on_connected(void *user)
{
    http_connection *self = user;
    if (self->state != HTTP_IDLE) {
        return;
    }
    server_enter(self->server);
    if (self->refused != NULL && socket_is_http2(self->socket)) {
        connection_close_gently(self); /* other clients than HTTP/1.1's detect its end */
    } else if (self->refused != NULL) {
        connection_refuse(self, self->refused_status, self->refused);
    } else if (self->server->is_draining && socket_is_http2(self->socket)) {
        connection_close_gently(self);
    } else if (http2_is_built && socket_is_http2(self->socket)) {
        http2_begin(self, (bay_str){NULL, 0});
    } else {
        self->deadline_ms = server_first_deadline(self->server);
        socket_read_start(self->socket);
    }
    server_leave(self->server);
}

static void on_data(void *user, bay_str bytes)
{
    http_connection *self = user;
    http_server *server = self->server;
    server_enter(server);
    feed(self, bytes);
    server_leave(server);
}

/* The peer ended its half. A reply under way is completed. A waiting exchange is over: its peer has
 * probably disconnected, and gets an answer in case it has not. */
static void on_eof(void *user)
{
    http_connection *self = user;
    http_server *server = self->server;
    server_enter(server);
    self->keep_alive = false;
    switch (self->state) {
    case HTTP_IDLE:
        connection_close_gently(self);
        break;
    case HTTP_HEAD:
    case HTTP_BODY:
        connection_refuse(self, 400, "the request ended before it was complete");
        break;
    case HTTP_PENDING:
        self->exchange.outcome = HTTP_CUT;
        connection_set_state(self, HTTP_CLOSING);
        deliver_closed(self);
        if (self->state == HTTP_CLOSING) {
            connection_refuse(self, 400, "the connection was ended before the reply");
        }
        break;
    case HTTP_STREAMING:
        self->exchange.outcome = HTTP_CUT;
        connection_set_state(self, HTTP_CLOSING);
        socket_abort(self->socket);
        deliver_closed(self);
        break;
    case HTTP_REPLYING:
    case HTTP_SHARED:
    case HTTP_CLOSING:
    case HTTP_DEAD:
        break;
    }
    server_leave(server);
}

/* The socket has written enough of the stream's output. */
static void say_drained(http_connection *self)
{
    http_server *server = self->server;
    if (self->exchange.wants_drained) {
        self->exchange.wants_drained = false;
        if (server->options.handler->drained != NULL) {
            server->options.handler->drained(server->options.user, &self->exchange);
        }
    }
}

static void on_drained(void *user)
{
    http_connection *self = user;
    http_server *server = self->server;
    http_exchange *exchange = &self->exchange;
    server_enter(server);
    bay_err err = connection_send_rest(self);
    if (err == BAY_ERR_CLOSED || !connection_account(self)) {
        server_leave(server);
        return;
    }
    if (self->state == HTTP_REPLYING && exchange->outcome == HTTP_UNDECIDED && err == BAY_OK) {
        exchange->outcome = HTTP_COMPLETE;
        http_connection_settle(self);
        feed_held(self);
    } else if (self->state == HTTP_STREAMING && connection_rest_bytes(self) == 0) {
        const http_server_limits *limits = limits_of(self);
        socket_set_limits(self->socket, limits->stream_high_bytes, limits->stream_max_bytes);
        say_drained(self);
    }
    server_leave(server);
}

static void http_connection_on_closed(void *user, bay_err reason, const char *text)
{
    http_connection *self = user;
    http_server *server = self->server;
    (void)reason;
    (void)text;
    server_enter(server);
    connection_let_go(self);
    server_leave(server);
}

/* The end of the loop iteration: sends a corked stream, reports an ended exchange. */
static void on_task(void *argument)
{
    http_connection *self = argument;
    http_server *server = self->server;
    server_enter(server);
    if (self->http2 != NULL) {
        http2_turn(self);
        server_leave(server);
        return;
    }
    if (self->state == HTTP_STREAMING) {
        exchange_flush(&self->exchange);
        give_cork(self);
    }
    http_connection_settle(self);
    feed_held(self);
    server_leave(server);
}

http_connection *connection_new(http_server *server, http_listener *listener, net_socket *socket)
{
    static const socket_events events = {
        .connected = on_connected,
        .data = on_data,
        .eof = on_eof,
        .drained = on_drained,
        .closed = http_connection_on_closed,
    };
    http_connection *self = mem_zalloc(sizeof(http_connection));
    if (self == NULL) {
        return NULL;
    }
    self->server = server;
    self->listener = listener;
    self->socket = socket;
    self->task = (loop_task){.function = on_task, .argument = self};
    buf_init(&self->held, SIZE_MAX / 2);
    buf_init(&self->cork, SIZE_MAX / 2);
    (void)socket_peer(socket, self->peer);
    socket_set_events(socket, &events, self);
    socket_set_limits(socket, 1, limits_of(self)->stream_max_bytes);
    socket_gather(socket);
    return self;
}

/* --- limits in time --------------------------------------------------------------------------- */

/* Disconnects a peer that reads too slowly. */
static void sweep_writing(http_connection *self, uint64_t now)
{
    size_t waiting = connection_rest_bytes(self) + socket_queued_bytes(self->socket);
    uint32_t most = limits_of(self)->write_timeout_ms;
    if (waiting == 0 || most == 0) {
        self->deadline_ms = 0;
    } else {
        uint64_t moved = connection_moved(self, self->written, &self->taken);
        self->deadline_ms = pace_until(self->deadline_ms, now, most, moved, 1);
        if (now >= self->deadline_ms) {
            socket_abort(self->socket);
            return;
        }
    }
    (void)connection_account(self);
}

/* Timers run before sockets are read, and after a long iteration both are due: a request that has
 * arrived is still answered. Extended once: if the unread bytes are still not a request (an
 * incomplete TLS record, for example), the connection is closed. */
static void end_idle(http_connection *self)
{
    if (!self->is_overdue && socket_has_unread(self->socket)) {
        self->is_overdue = true;
        set_deadline(self, DRAIN_LINGER_MS);
    } else {
        close_after_answer(self);
    }
}

void connection_sweep(http_connection *self, uint64_t now)
{
    if (self->http2 != NULL) {
        http2_sweep(self, now);
        return;
    }
    if (self->state == HTTP_STREAMING || self->state == HTTP_REPLYING) {
        sweep_writing(self, now);
        return;
    }
    if (self->deadline_ms == 0 || now < self->deadline_ms) {
        return;
    }
    switch (self->state) {
    case HTTP_IDLE:
        end_idle(self);
        break;
    case HTTP_HEAD:
        connection_refuse(self, 408, "the request's head took too long");
        break;
    case HTTP_BODY:
        connection_refuse(self, 408, "the request's body took too long");
        break;
    default:
        break;
    }
}

void connection_drain(http_connection *self)
{
    if (self->http2 != NULL) {
        http2_drain(self);
    } else if (self->state == HTTP_IDLE) {
        self->is_overdue = false;
        end_idle(self);
    }
}
