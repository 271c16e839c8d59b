/* One call and its connection: sending, the reply, the end. States and invariants:
 * http_client_internal.h. */
#include "base/mem.h"
#include "base/str.h"
#include "http/http_client_internal.h"
#include "http/pace.h"
#include "wire/header.h"

enum { INTERIM_MAX = 16 };

static const socket_events channel_events;
static void on_resume(void *argument);

/* --- channels --------------------------------------------------------------------------------- */

void channel_free(http_channel *self)
{
    buf_fini(&self->held);
    mem_free(self);
}

/* Removes it from the pool and all lists; the socket ends by itself. The call, if any, is not
 * affected. */
void channel_drop(http_channel *self)
{
    if (self->is_dropped) {
        return;
    }
    http_client *client = self->client;
    self->is_dropped = true;
    loop_undefer(client->loop, &self->task);
    if (self->socket != NULL) {
        socket_set_events(self->socket, NULL, NULL);
        socket_abort(self->socket);
        self->socket = NULL;
    }
    if (self->call != NULL) {
        self->call->channel = NULL;
        self->call = NULL;
    }
    client_reader_give(client, self->reader);
    self->reader = NULL;
    list_remove(&self->link);
    list_push(&client->dead_channels, &self->link);
    self->origin->channels--;
    origin_kick(client, self->origin);
    origin_release(client, self->origin);
}

/* After a reply: serves the next waiting call, or returns to the pool. */
static void channel_rest(http_channel *self)
{
    http_client *client = self->client;
    http_origin *origin = self->origin;
    list_remove(&self->link);
    list_push(&origin->idle, &self->link);
    self->idle_since_ms = loop_now_ms(client->loop);
    if (!list_is_empty(&origin->queue)) {
        origin_kick(client, origin);
    } else {
        client_arm_sweep(client);
    }
}

static bay_err channel_open(http_call *call, http_channel **out)
{
    http_client *client = call->client;
    http_origin *origin = call->origin;
    http_channel *self = mem_zalloc(sizeof(http_channel));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err =
        socket_connect(client->loop, origin->host, origin->port,
                       origin->is_tls ? client->tls : NULL, (bay_str){NULL, 0},
                       client->limits.connect_timeout_ms, &channel_events, self, &self->socket);
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    if (client->permit != NULL) {
        socket_set_permit(self->socket, client->permit, client->permit_user);
    }
    self->client = client;
    self->origin = origin;
    self->task = (loop_task){.function = on_resume, .argument = self};
    buf_init(&self->held, SIZE_MAX / 2);
    origin->channels++;
    origin->users++;
    list_push(&client->busy, &self->link);
    *out = self;
    return BAY_OK;
}

/* --- starting --------------------------------------------------------------------------------- */

bool call_send_on(http_call *self, http_channel *channel)
{
    bay_err err = socket_write_one(channel->socket, buf_view(&self->request));
    if (err != BAY_OK && err != BAY_ERR_AGAIN) {
        channel_drop(channel);
        return false;
    }
    self->was_sent = true;
    self->state = CALL_WAITING;
    channel->has_reply_bytes = false;
    return true;
}

static void attach(http_call *self, http_channel *channel)
{
    self->channel = channel;
    channel->call = self;
    list_remove(&channel->link);
    list_push(&self->client->busy, &channel->link);
}

bay_err call_connect(http_call *self)
{
    http_channel *channel = NULL;
    bay_err err = channel_open(self, &channel);
    if (err == BAY_OK) {
        attach(self, channel);
        self->state = CALL_CONNECTING;
    }
    return err;
}

bay_err http_call_start(http_call *self)
{
    http_client *client = self->client;
    http_origin *origin = self->origin;
    if (origin->is_http2) {
        return http2_call_start(self);
    }
    while (!list_is_empty(&origin->idle)) {
        http_channel *channel = CONTAINER_OF(origin->idle.head.prev, http_channel, link);
        channel->is_reused = true;
        attach(self, channel);
        if (call_send_on(self, channel)) {
            return BAY_OK;
        }
    }
    if (origin->channels < client->limits.connections_per_origin) {
        return call_connect(self);
    }
    if (origin->queued >= client->limits.queue_per_origin) {
        return BAY_ERR_BUSY;
    }
    list_push(&origin->queue, &self->queue_link);
    origin->queued++;
    self->state = CALL_QUEUED;
    return BAY_OK;
}

/* --- ending ----------------------------------------------------------------------------------- */

/* Removes the call from everything; afterwards only its owner may be told. */
void call_leave(http_call *self)
{
    http_client *client = self->client;
    self->state = CALL_OVER;
    if (self->draft != NULL) {
        call_draft_leave(self);
    }
    loop_timer_stop(client->loop, &self->timer);
    if (list_holds(&self->queue_link)) {
        list_remove(&self->queue_link);
        self->origin->queued--;
    }
    list_remove(&self->link);
    list_push(&client->dead_calls, &self->link);
    if (self->channel != NULL) {
        channel_drop(self->channel);
    }
    if (self->http2 != NULL) {
        http2_call_leave(self);
    }
    reply_room_release(&self->room, loop_now_ms(self->client->loop));
    origin_release(client, self->origin);
}

void http_call_fail(http_call *self, bay_err err, const char *text)
{
    call_leave(self);
    if (self->events->failed != NULL) {
        self->events->failed(self->user, err, self->was_sent, text);
    }
}

void http_call_cancel(http_call *self)
{
    if (self->state == CALL_OVER) {
        return; /* inside its own last event */
    }
    http_client *client = self->client;
    http_client_enter(client);
    call_leave(self);
    http_client_leave(client);
}

/* The reply is complete. */
static void http_call_finish(http_channel *channel, bool is_reusable)
{
    http_call *call = channel->call;
    bool goes_on = is_reusable && channel->keep_alive && channel->end == BAY_OK &&
                   !channel->client->is_freed && socket_is_connected(channel->socket) &&
                   socket_queued_bytes(channel->socket) == 0;
    if (goes_on) {
        channel->call = NULL;
        call->channel = NULL;
        call_leave(call);
        channel_rest(channel);
    } else {
        call_leave(call);
    }
    if (call->events->end != NULL) {
        call->events->end(call->user);
    }
}

/* The connection ended under the call. */
static void channel_end(http_channel *self, bay_err reason, const char *text)
{
    http_call *call = self->call;
    if (call == NULL) {
        channel_drop(self);
        return;
    }
    if (call->state == CALL_BODY) {
        if (reason == BAY_ERR_EOF && http1_body_finish(&self->body) == BAY_OK) {
            http_call_finish(self, false);
        } else {
            http_call_fail(call, BAY_ERR_CLOSED, "the connection ended inside the reply");
        }
        return;
    }
    bool is_stale = self->is_reused && !self->has_reply_bytes && call->state == CALL_WAITING &&
                    call->may_run_twice;
    if (is_stale) {
        self->call = NULL;
        bay_err err = call_connect(call); /* before the drop gives the slot to another call */
        channel_drop(self);
        if (err != BAY_OK) {
            call->channel = NULL;
            http_call_fail(call, err, bay_err_text(err));
        }
        return;
    }
    if (reason == BAY_ERR_EOF) {
        reason = BAY_ERR_CLOSED;
        text = "the peer closed the connection before a whole reply";
    }
    http_call_fail(call, reason, text);
}

/* --- time ------------------------------------------------------------------------------------- */

/* Without memory for a timer the call continues without its time-out. */
static void arm(http_call *self, uint64_t at_ms)
{
    loop *on = self->client->loop;
    uint64_t now = loop_now_ms(on);
    if (at_ms == 0 || loop_timer_start(on, &self->timer, at_ms > now ? at_ms - now : 0) != BAY_OK) {
        loop_timer_stop(on, &self->timer);
    }
}

void call_begin_head(http_call *self)
{
    uint32_t most = self->client->limits.head_timeout_ms;
    if (most == 0 || self->is_in_head) {
        return;
    }
    uint64_t end = loop_now_ms(self->client->loop) + most;
    self->is_in_head = true;
    arm(self, self->head_end_ms > 0 && self->head_end_ms < end ? self->head_end_ms : end);
}

void call_end_head(http_call *self)
{
    if (self->is_in_head) {
        self->is_in_head = false;
        arm(self, self->head_end_ms);
    }
}

/* Its owner gets bytes as they arrive, and silence is normal. */
static bool is_stream(const http_field *fields, size_t count)
{
    bay_str type = http1_field_find(fields, count, STR("content-type"));
    const bay_str grpc = STR("application/grpc");
    return header_content_type_is(type, STR("text/event-stream")) ||
           str_eq_nocase(str_head(type, grpc.len), grpc);
}

void call_begin_body(http_call *self, const http_field *fields, size_t count)
{
    uint32_t most = self->client->limits.body_timeout_ms;
    self->state = CALL_BODY;
    self->is_stream = is_stream(fields, count);
    if (self->idle_ms == 0 && !self->is_stream && most > 0) {
        self->idle_ms = self->timeout_ms > most ? self->timeout_ms : most;
    }
    self->last_ms = loop_now_ms(self->client->loop);
    self->until_ms = self->idle_ms > 0 ? self->last_ms + self->idle_ms : 0;
    arm(self, self->until_ms);
}

void call_moved(http_call *self, size_t bytes)
{
    uint64_t now = loop_now_ms(self->client->loop);
    self->last_ms = now;
    self->until_ms = self->is_stream ? now + self->idle_ms
                                     : pace_until(self->until_ms, now, self->idle_ms, bytes, 1);
}

void call_on_timer(void *argument)
{
    http_call *self = argument;
    http_client *client = self->client;
    uint64_t now = loop_now_ms(client->loop);
    if (self->state == CALL_BODY) {
        if (call_rests(self) || self->until_ms == 0) {
            self->until_ms = now + self->idle_ms;
        }
        if (now < self->until_ms) {
            arm(self, self->until_ms);
            return;
        }
    }
    http_client_enter(client);
    http_call_fail(self, BAY_ERR_TIMEOUT,
                   self->state == CALL_BODY ? "the reply stopped coming, or comes too slowly"
                   : self->is_in_head       ? "the reply's head comes too slowly"
                                            : "no reply in time");
    http_client_leave(client);
}

/* --- the reply -------------------------------------------------------------------------------- */

static void hold(http_channel *self, bay_str bytes)
{
    buf_append(&self->held, bytes.at, bytes.len);
    if (self->socket != NULL) {
        socket_read_stop(self->socket);
    }
    if (self->held.err != BAY_OK) {
        http_call_fail(self->call, BAY_ERR_NOMEM, bay_err_text(BAY_ERR_NOMEM));
    }
}

/* Bytes of a body, from its first one to its end. */
static void read_body(http_channel *self, bay_str bytes)
{
    http_call *call = self->call;
    uint64_t now = loop_now_ms(self->client->loop);
    if (now - call->last_ms >= self->client->limits.framing_rest_ms) {
        http1_body_rest(&self->body);
    }
    call_moved(call, 0);
    for (;;) {
        if (call_rests(call)) {
            hold(self, bytes);
            return;
        }
        size_t consumed = 0;
        bay_str data = {NULL, 0};
        http1_body_event event;
        bay_err err = http1_body_feed(&self->body, bytes, &consumed, &data, &event);
        if (err != BAY_OK) {
            http_call_fail(call, err == BAY_ERR_LIMIT ? BAY_ERR_LIMIT : BAY_ERR_PROTOCOL,
                           self->body.refusal.text);
            return;
        }
        bytes = str_from(bytes, consumed);
        if (event == HTTP1_BODY_END) {
            http_call_finish(self, bytes.len == 0);
            return;
        }
        if (event == HTTP1_BODY_MORE) {
            return;
        }
        call_moved(call, data.len);
        if (call->events->body != NULL) {
            call->events->body(call->user, data);
        }
        if (self->call != call) {
            return; /* it was ended inside */
        }
        call_ask(call, self->body.total, self->body.remaining);
    }
}

/* The head that was read last is final: reports it; false: the call ended meanwhile. */
static bool begin_reply(http_channel *self, const http1_head *head)
{
    http_call *call = self->call;
    http_reader *reader = self->reader;
    self->reader = NULL; /* kept until the views are not used any more */
    self->keep_alive = head->keep_alive;
    bay_diag diag = {0};
    if (call->draft != NULL &&
        call_is_refused(call, head->status, head->fields, head->field_count, &diag)) {
        client_reader_give(self->client, reader);
        channel_drop(self); /* with the rest of the reply */
        call_again(call, &diag);
        return false;
    }
    http1_body_init(&self->body, HTTP1_RESPONSE, head, &self->client->wire_limits);
    call_begin_body(call, head->fields, head->field_count);
    if (call->events->head != NULL) {
        call->events->head(call->user, head->status, head->fields, head->field_count);
    }
    client_reader_give(self->client, reader);
    if (self->call == call) {
        call_ask(call, 0, self->body.remaining);
    }
    return self->call == call;
}

static bool need_reader(http_channel *self)
{
    if (self->reader != NULL) {
        return true;
    }
    self->reader = client_reader_take(self->client);
    if (self->reader == NULL) {
        http_call_fail(self->call, BAY_ERR_NOMEM, bay_err_text(BAY_ERR_NOMEM));
        return false;
    }
    http1_parser_init(&self->reader->parser, HTTP1_RESPONSE, &self->client->wire_limits,
                      self->reader->fields, self->call->is_head_method);
    return true;
}

/* Reads one head, in place if one read has all of it. BAY_ERR_AGAIN: all bytes are consumed. */
static bay_err read_head(http_channel *self, bay_str bytes, http1_head *out, size_t *out_used)
{
    http_reader *reader = self->reader;
    size_t before = reader->input.len;
    bay_str run = bytes;
    if (before > 0) {
        buf_str(&reader->input, bytes);
        run = buf_view(&reader->input);
    }
    size_t consumed = 0;
    bay_err err = reader->input.err;
    if (err == BAY_OK) {
        err = http1_head_parse(&reader->parser, run, out, &consumed);
    }
    if (err == BAY_OK) {
        *out_used = consumed - before;
    } else if (err == BAY_ERR_AGAIN && before == 0) {
        buf_str(&reader->input, bytes);
        err = reader->input.err == BAY_OK ? BAY_ERR_AGAIN : reader->input.err;
    }
    return err;
}

static void http_call_refuse(http_channel *self, bay_err err)
{
    if (err == BAY_ERR_NOMEM) {
        http_call_fail(self->call, err, bay_err_text(err));
        return;
    }
    const char *text = self->reader->parser.refusal.text;
    http_call_fail(self->call, err == BAY_ERR_LIMIT ? BAY_ERR_LIMIT : BAY_ERR_PROTOCOL, text);
}

static void feed(http_channel *self, bay_str bytes)
{
    http_call *call = self->call;
    if (call == NULL) {
        channel_drop(self); /* a reply without a request */
        return;
    }
    self->has_reply_bytes = true;
    while (call->state == CALL_WAITING) {
        http1_head head;
        size_t used = 0;
        if (!need_reader(self)) {
            return;
        }
        bay_err err = read_head(self, bytes, &head, &used);
        if (err == BAY_ERR_AGAIN) {
            call_begin_head(call);
            return;
        }
        if (err != BAY_OK) {
            http_call_refuse(self, err);
            return;
        }
        bytes = str_from(bytes, used);
        if (head.status >= 200) {
            if (!begin_reply(self, &head)) {
                return;
            }
            break;
        }
        client_reader_give(self->client, self->reader);
        self->reader = NULL;
        call_end_head(call);
        if (head.status == 101 || ++call->interim > INTERIM_MAX) {
            http_call_fail(call, BAY_ERR_PROTOCOL, "an interim reply that was not asked for");
            return;
        }
        if (bytes.len == 0) {
            return;
        }
    }
    read_body(self, bytes);
}

/* --- events of the socket --------------------------------------------------------------------- */

static void on_connected(void *user)
{
    http_channel *self = user;
    http_client *client = self->client;
    http_client_enter(client);
    http_call *call = self->call;
    socket_read_start(self->socket);
    if (!call_send_on(call, self)) {
        http_call_fail(call, BAY_ERR_CLOSED, "the connection ended before the request was sent");
    }
    http_client_leave(client);
}

static void on_failed(void *user, bay_err err, const char *text)
{
    http_channel *self = user;
    http_client *client = self->client;
    http_client_enter(client);
    http_call_fail(self->call, err, text != NULL ? text : bay_err_text(err));
    http_client_leave(client);
}

static void on_data(void *user, bay_str bytes)
{
    http_channel *self = user;
    http_client *client = self->client;
    http_client_enter(client);
    feed(self, bytes);
    http_client_leave(client);
}

static bool is_waiting_for_resume(const http_channel *self)
{
    return self->call != NULL && call_rests(self->call) && self->call->state == CALL_BODY;
}

static void on_eof(void *user)
{
    http_channel *self = user;
    http_client *client = self->client;
    http_client_enter(client);
    if (is_waiting_for_resume(self)) {
        self->end = BAY_ERR_EOF;
    } else {
        channel_end(self, BAY_ERR_EOF, NULL);
    }
    http_client_leave(client);
}

static void http_call_on_closed(void *user, bay_err reason, const char *text)
{
    http_channel *self = user;
    http_client *client = self->client;
    http_client_enter(client);
    self->socket = NULL;
    reason = reason == BAY_OK ? BAY_ERR_CLOSED : reason;
    if (is_waiting_for_resume(self)) {
        self->end = self->end == BAY_OK ? reason : self->end;
    } else {
        channel_end(self, reason, text != NULL ? text : bay_err_text(reason));
    }
    http_client_leave(client);
}

static const socket_events channel_events = {
    .connected = on_connected,
    .failed = on_failed,
    .data = on_data,
    .eof = on_eof,
    .closed = http_call_on_closed,
};

/* --- back-pressure ---------------------------------------------------------------------------- */

void http_call_pause(http_call *self)
{
    self->is_paused = true;
    if (self->state == CALL_BODY && self->channel != NULL && self->channel->socket != NULL) {
        socket_read_stop(self->channel->socket);
    }
}

/* Processes held bytes first, then the end of the connection, then reads on. */
static void on_resume(void *argument)
{
    http_channel *self = argument;
    http_client *client = self->client;
    http_client_enter(client);
    if (self->call != NULL && !call_rests(self->call) && self->call->state == CALL_BODY) {
        buf held = self->held;
        buf_init(&self->held, SIZE_MAX / 2);
        read_body(self, buf_view(&held));
        buf_fini(&held);
    }
    if (!self->is_dropped && !is_waiting_for_resume(self)) {
        if (self->end != BAY_OK) {
            channel_end(self, self->end, bay_err_text(self->end));
        } else {
            socket_read_start(self->socket);
        }
    }
    http_client_leave(client);
}

/* Neither its owner nor the account pauses it any more. */
static void call_go_on(http_call *self)
{
    self->until_ms = 0; /* the peer could not make progress */
    if (self->http2 != NULL) {
        http2_call_resume(self);
        return;
    }
    http_channel *channel = self->channel;
    if (self->state == CALL_BODY && channel != NULL) {
        loop_defer(self->client->loop, &channel->task);
    }
}

void http_call_resume(http_call *self)
{
    if (self->is_paused) {
        self->is_paused = false;
        call_go_on(self);
    }
}

/* --- room for what comes ---------------------------------------------------------------------- */

static void http_call_ask(http_call *self, size_t bytes)
{
    if (!reply_room_ask(self->client->rooms, &self->room, bytes, loop_now_ms(self->client->loop))) {
        client_arm_sweep(self->client); /* which checks those that wait for long */
    }
}

void call_ask(http_call *self, uint64_t have, uint64_t promised)
{
    if (have + promised <= REPLY_ROOM_SMALL || self->client->rooms == NULL || self->is_stream) {
        return;
    }
    size_t most = self->client->limits.reply_bytes; /* the largest promise that is believed */
    http_call_ask(self, (size_t)have + (promised < most ? (size_t)promised : most));
}

void http_call_keep(http_call *self, size_t bytes)
{
    bool is_waiting = self->room.is_waiting;
    if (bytes > REPLY_ROOM_SMALL && self->client->rooms != NULL && self->state == CALL_BODY) {
        http_call_ask(self, bytes);
        return;
    }
    reply_room_release(&self->room, loop_now_ms(self->client->loop));
    if (is_waiting) {
        call_go_on(self);
    }
}

void call_granted(reply_room *room)
{
    call_go_on(CONTAINER_OF(room, http_call, room));
}
