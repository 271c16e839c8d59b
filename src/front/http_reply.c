/* Answers and event streams on exchanges of the HTTP server. */
#include "front/http_reply.h"

#include "front/front.h"

#include "base/check.h"
#include "base/log.h"
#include "wire/sse.h"

enum {
    EVENT_MAX_BYTES = 512 * 1024 * 1024,
    EVENT_KEPT_BYTES = 64 * 1024, /* a larger buffer is given back after use */
};

/* ---- keep-alive, idling, ageing -------------------------------------------------------------- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* How long a stream may be left alone; 0: for ever. */
static uint32_t quiet_ms(const http_replies *self)
{
    uint32_t idle = self->limits.stream_idle_ms;
    uint32_t alive = self->limits.keep_alive_ms;
    return alive == 0 || (idle != 0 && idle < alive) ? idle : alive;
}

static uint64_t due_ms(const http_replies *self)
{
    uint64_t due = UINT64_MAX;
    list_link *link = list_first(&self->waiting);
    if (link != NULL && self->limits.keep_alive_ms > 0) {
        due = CONTAINER_OF(link, http_reply, link)->written_ms + self->limits.keep_alive_ms;
    }
    link = list_first(&self->streaming);
    if (link != NULL && quiet_ms(self) > 0) {
        due = earlier(due, CONTAINER_OF(link, http_reply, link)->written_ms + quiet_ms(self));
    }
    link = list_first(&self->opened);
    if (link != NULL && self->limits.stream_total_ms > 0) {
        due = earlier(due, CONTAINER_OF(link, http_reply, opened_link)->opened_ms +
                               self->limits.stream_total_ms);
    }
    return due;
}

/* A timer that runs already may run too early, never too late: every reply is put at the end. */
static void arm(http_replies *self)
{
    if (self->timer.heap_index != 0) {
        return;
    }
    uint64_t due = due_ms(self);
    uint64_t now = loop_now_ms(self->loop);
    if (due != UINT64_MAX &&
        loop_timer_start(self->loop, &self->timer, due > now ? due - now : 0) != BAY_OK) {
        LOG(LOG_WARN, "http", "no memory for a timer: quiet streams are not kept alive");
    }
}

static void touch(http_reply *self)
{
    self->written_ms = loop_now_ms(self->among->loop);
    list_remove(&self->link);
    list_push(&self->among->streaming, &self->link);
}

static void look_at_waiting(http_replies *self, uint64_t now)
{
    list_link *link;
    while (self->limits.keep_alive_ms > 0 && (link = list_first(&self->waiting)) != NULL) {
        http_reply *one = CONTAINER_OF(link, http_reply, link);
        if (one->written_ms + self->limits.keep_alive_ms > now) {
            return;
        }
        one->written_ms = now;
        list_remove(link);
        list_push(&self->waiting, link);
        if (one->ops->quiet != NULL) {
            one->ops->quiet(one);
        }
    }
}

static void look_at_quiet(http_replies *self, uint64_t now)
{
    list_link *link;
    while (quiet_ms(self) > 0 && (link = list_first(&self->streaming)) != NULL) {
        http_reply *one = CONTAINER_OF(link, http_reply, link);
        if (one->written_ms + quiet_ms(self) > now) {
            return;
        }
        uint32_t idle = self->limits.stream_idle_ms;
        if (self->limits.keep_alive_ms > 0) {
            /* A peer that takes nothing is ended by the server's write time-out. */
            (void)http_stream_write(one->exchange, STR(":\n\n"));
        }
        touch(one);
        if (idle > 0 && one->spoke_ms + idle <= now) {
            one->ops->expired(one);
        }
    }
}

static void look_at_old(http_replies *self, uint64_t now)
{
    list_link *link;
    while (self->limits.stream_total_ms > 0 && (link = list_first(&self->opened)) != NULL) {
        http_reply *one = CONTAINER_OF(link, http_reply, opened_link);
        if (one->opened_ms + self->limits.stream_total_ms > now) {
            return;
        }
        list_remove(link);
        one->ops->expired(one);
    }
}

static void on_timer(void *argument)
{
    http_replies *self = argument;
    uint64_t now = loop_now_ms(self->loop);
    look_at_waiting(self, now);
    look_at_quiet(self, now);
    look_at_old(self, now);
    arm(self);
}

/* ---- all of a router ------------------------------------------------------------------------- */

void http_replies_init(http_replies *self, loop *runs_on, const http_reply_limits *limits)
{
    *self = (http_replies){.loop = runs_on, .limits = *limits};
    list_init(&self->waiting);
    list_init(&self->streaming);
    list_init(&self->opened);
    loop_timer_init(&self->timer, on_timer, self);
    buf_init(&self->text, EVENT_MAX_BYTES);
}

/* It belongs to nobody's list and exchange from here on. */
static http_exchange *detach(http_reply *self)
{
    http_exchange *exchange = self->exchange;
    list_remove(&self->link);
    list_remove(&self->opened_link);
    http_exchange_set_user(exchange, NULL);
    self->exchange = NULL;
    principal_unref(self->principal);
    self->principal = NULL;
    return exchange;
}

static void cut_all(list *of)
{
    list_link *link;
    while ((link = list_first(of)) != NULL) {
        http_reply *one = CONTAINER_OF(link, http_reply, link);
        http_exchange_abort(detach(one));
        one->ops->gone(one);
    }
}

void http_replies_fini(http_replies *self)
{
    cut_all(&self->waiting);
    cut_all(&self->streaming);
    loop_timer_stop(self->loop, &self->timer);
    buf_fini(&self->text);
}

void http_replies_close(http_replies *self)
{
    /* Closing one may end others: what has been asked waits aside. */
    list asked;
    list_init(&asked);
    list_link *link;
    while ((link = list_pop(&self->streaming)) != NULL) {
        list_push(&asked, link);
        http_reply *one = CONTAINER_OF(link, http_reply, link);
        one->ops->close(one);
    }
    while ((link = list_pop(&asked)) != NULL) {
        list_push(&self->streaming, link);
    }
}

void http_replies_end(http_replies *self, principal_test is_over, void *user)
{
    list asked; /* as above */
    list_init(&asked);
    list_link *link;
    while ((link = list_pop(&self->streaming)) != NULL) {
        list_push(&asked, link);
        http_reply *one = CONTAINER_OF(link, http_reply, link);
        if (is_over(user, one->principal)) {
            one->ops->expired(one);
        }
    }
    while ((link = list_pop(&asked)) != NULL) {
        list_push(&self->streaming, link);
    }
}

/* ---- one ------------------------------------------------------------------------------------- */

static void http_reply_on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    http_reply *self = user;
    (void)exchange;
    (void)is_complete;
    (void)detach(self);
    self->ops->gone(self);
}

static void on_drained(void *user, http_exchange *exchange)
{
    http_reply *self = user;
    (void)exchange;
    self->ops->drained(self);
}

static const http_owner_ops reply_owner = {.closed = http_reply_on_closed, .drained = on_drained};

void http_reply_begin(http_reply *self, http_replies *among, const http_reply_ops *ops,
                      http_exchange *exchange, const auth_principal *principal)
{
    *self = (http_reply){.owner = &reply_owner,
                         .among = among,
                         .ops = ops,
                         .exchange = exchange,
                         .principal = principal_ref(principal),
                         .written_ms = loop_now_ms(among->loop)};
    list_push(&among->waiting, &self->link);
    http_exchange_set_user(exchange, self);
    arm(among);
}

size_t http_reply_cors(const http_exchange *exchange, http_field *fields, size_t count)
{
    bay_str origin = http_exchange_field(exchange, STR("Origin"));
    if (origin.at == NULL) {
        return count;
    }
    fields[count++] = (http_field){STR("Access-Control-Allow-Origin"), origin};
    fields[count++] = (http_field){STR("Access-Control-Expose-Headers"),
                                   STR("Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce")};
    fields[count++] = (http_field){STR("Vary"), STR("Origin")};
    return count;
}

void http_reply_answer(http_reply *self, int status, bay_str json, bay_str session, bay_str detail)
{
    CHECK(!self->is_streaming);
    if (self->exchange == NULL) {
        return;
    }
    http_exchange *exchange = detach(self);
    http_field fields[HTTP_REPLY_FIELDS];
    size_t count = 0;
    if (json.len > 0) {
        fields[count++] = (http_field){STR("Content-Type"), STR("application/json")};
    }
    if (session.len > 0) {
        fields[count++] = (http_field){STR("Mcp-Session-Id"), session};
    }
    if (detail.len > 0 && status != 403) {
        fields[count++] = (http_field){status == 429 ? STR("Retry-After") : STR("Allow"), detail};
    } else if (detail.len > 0 && self->among->challenge != NULL) {
        front_challenge challenge = {.retry = STR("")};
        self->among->challenge(self->among->challenge_user, exchange, detail, &challenge);
        count = front_challenge_put(&challenge, fields, count);
    }
    if (status == 503) {
        fields[count++] = (http_field){STR("Retry-After"), STR("1")};
    }
    count = http_reply_cors(exchange, fields, count);
    http_exchange_reply(exchange, status, fields, count, json);
}

http_exchange *http_reply_take(http_reply *self)
{
    CHECK(!self->is_streaming);
    return self->exchange != NULL ? detach(self) : NULL;
}

static const http_field stream_fields[] = {
    {STR_INIT("Content-Type"), STR_INIT("text/event-stream")},
    {STR_INIT("Cache-Control"), STR_INIT("no-cache, no-transform")},
    {STR_INIT("X-Accel-Buffering"), STR_INIT("no")}, /* nginx would hold events back */
};

void http_reply_show_stream(http_exchange *exchange)
{
    http_field fields[HTTP_REPLY_FIELDS];
    memcpy(fields, stream_fields, sizeof(stream_fields));
    size_t count = http_reply_cors(exchange, fields, ARRAY_LEN(stream_fields));
    if (http_stream_open(exchange, 200, fields, count, true) == BAY_OK) {
        http_stream_end(exchange);
    } else {
        http_exchange_abort(exchange);
    }
}

static bay_err open_stream(http_reply *self)
{
    http_field fields[HTTP_REPLY_FIELDS];
    size_t count = ARRAY_LEN(stream_fields);
    memcpy(fields, stream_fields, sizeof(stream_fields));
    for (size_t i = 0; i < self->field_count && count < HTTP_REPLY_FIELDS - 3; i++) {
        fields[count++] = self->fields[i];
    }
    count = http_reply_cors(self->exchange, fields, count);
    bay_err err = http_stream_open(self->exchange, 200, fields, count, true);
    if (err == BAY_OK) {
        self->is_streaming = true;
        touch(self);
        self->spoke_ms = self->opened_ms = self->written_ms;
        list_push(&self->among->opened, &self->opened_link);
        arm(self->among);
    }
    return err;
}

/* What cannot be delivered must not be missed silently: the stream breaks, the client sees it. */
static bay_err break_off(http_reply *self)
{
    http_exchange_abort(self->exchange);
    return BAY_ERR_CANCELLED;
}

static bay_err write_event(http_reply *self, const sse_event *event)
{
    buf *text = &self->among->text;
    buf_clear(text);
    bay_err err = sse_write_event(text, event);
    if (err == BAY_OK) {
        err = http_stream_write(self->exchange, buf_view(text));
    }
    if (text->cap > EVENT_KEPT_BYTES) {
        buf_fini(text);
        buf_init(text, EVENT_MAX_BYTES);
    }
    if (err != BAY_OK && err != BAY_ERR_AGAIN) {
        return break_off(self);
    }
    touch(self);
    self->spoke_ms = self->written_ms;
    return err;
}

bay_err http_reply_event(http_reply *self, bay_str name, bay_str data, bay_str id)
{
    if (self->exchange == NULL) {
        return BAY_ERR_CANCELLED;
    }
    if (!self->is_streaming && open_stream(self) != BAY_OK) {
        return break_off(self);
    }
    if (data.len == 0 && id.len == 0) {
        return BAY_OK;
    }
    sse_event event = {.name = name, .data = data, .retry_ms = SSE_NO_RETRY};
    event.data.at = data.at != NULL ? data.at : "";
    event.id = id.len > 0 ? id : (bay_str){NULL, 0};
    return write_event(self, &event);
}

bay_err http_reply_retry(http_reply *self, uint32_t retry_ms)
{
    if (self->exchange == NULL) {
        return BAY_ERR_CANCELLED;
    }
    if (!self->is_streaming && open_stream(self) != BAY_OK) {
        return break_off(self);
    }
    return write_event(self, &(sse_event){.retry_ms = retry_ms});
}

void http_reply_end(http_reply *self)
{
    if (self->exchange == NULL) {
        return;
    }
    http_exchange *exchange = detach(self);
    if (self->is_streaming) {
        http_stream_end(exchange);
    } else {
        http_exchange_abort(exchange);
    }
}

void http_reply_abort(http_reply *self)
{
    if (self->exchange != NULL) {
        http_exchange_abort(detach(self));
    }
}

void http_owner_closed(void *router, http_exchange *exchange, bool is_complete)
{
    (void)router;
    const http_owner_ops **owner = http_exchange_user(exchange);
    if (owner != NULL) {
        (*owner)->closed(owner, exchange, is_complete);
    }
}

void http_owner_drained(void *router, http_exchange *exchange)
{
    (void)router;
    const http_owner_ops **owner = http_exchange_user(exchange);
    if (owner != NULL) {
        (*owner)->drained(owner, exchange);
    }
}
