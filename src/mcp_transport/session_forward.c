/* Forwarded exchanges.
 *
 * Invariants
 * - The near end is open while the reply has an exchange; the far end while the engine, or a call
 *   that waits for its session, may use the carrier.
 * - Output for which there is no memory, or too much of it, cuts the exchange: a stream must not
 *   have gaps. */
#include "mcp_transport/session_forward.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/loop_pair.h"

enum {
    FORWARD_WINDOW_BYTES = 256 * 1024,    /* under way; above it: BAY_ERR_AGAIN */
    FORWARD_MOST_BYTES = 8 * 1024 * 1024, /* … and above this the exchange is cut */
    EVENT_COST = 128,                     /* the cost of an event besides its text */
};

typedef struct session_forward {
    loop_pair pair;
    http_reply reply; /* the exchange's loop */
    struct {          /* the owner's loop */
        mcp_http_exchange way;
        mcp_http_router *router;
        list_link link; /* in router->forwarded while the far end is open */
    } far;
    bool is_cut;      /* the owner's loop; the exchange's once the far end is closed */
    router_call call; /* views into `request`, until the owner has read it */
    char *request;
    http_field *fields;
} session_forward;

enum { SIGNAL_QUIET = 1, SIGNAL_EXPIRED = 2, /* to the owner */ SIGNAL_CUT = 4 };

/* The engine's output to the exchange: events, and an answer as the last word. */
typedef struct output {
    loop_pair_message message;
    int status;
    uint32_t retry_ms;
    bool is_retry;
    bay_str json;
    bay_str id; /* of the event, or the session */
    bay_str detail;
    char bytes[];
} output;

static session_forward *of_pair(loop_pair *pair)
{
    return CONTAINER_OF(pair, session_forward, pair);
}

static void drop_request(session_forward *self)
{
    principal_unref(self->call.http.principal);
    mem_free(self->request);
    mem_free(self->fields);
    self->call = (router_call){0};
    self->request = NULL;
    self->fields = NULL;
}

static void forward_release(loop_pair *pair)
{
    drop_request(of_pair(pair));
    mem_free(of_pair(pair));
}

/* ---- the owner's loop ------------------------------------------------------------------------ */

static session_forward *of_carrier(mcp_carrier *carrier)
{
    return CONTAINER_OF(carrier, session_forward, far.way.carrier);
}

/* The engine does not use the carrier any more. Without a last word, and not cut, the stream ends
 * normally. */
static void far_leave(session_forward *self, output *last)
{
    list_remove(&self->far.link);
    loop_pair_close(&self->pair, LOOP_PAIR_FAR, last != NULL ? &last->message : NULL);
}

/* The engine keeps the carrier until the near end is closed. */
static void far_cut(session_forward *self)
{
    self->is_cut = true;
    loop_pair_signal(&self->pair, LOOP_PAIR_NEAR, SIGNAL_CUT);
}

/* NULL: out of memory. */
static output *output_new(bay_str json, bay_str id, bay_str detail)
{
    output *made = mem_alloc(sizeof(*made) + json.len + id.len + detail.len);
    if (made != NULL) {
        char *at = made->bytes;
        *made = (output){0};
        made->json = str_put(&at, json);
        made->id = str_put(&at, id);
        made->detail = str_put(&at, detail);
    }
    return made;
}

static void far_answer(mcp_carrier *carrier, int status, bay_str json, bay_str session,
                       bay_str detail)
{
    session_forward *self = of_carrier(carrier);
    output *last = self->is_cut ? NULL : output_new(json, session, detail);
    if (last == NULL) {
        self->is_cut = true;
    } else {
        last->status = status;
    }
    far_leave(self, last);
}

/* Takes `made`; NULL: there was no memory for it. */
static bay_err far_post(session_forward *self, output *made, size_t cost)
{
    bay_err err = BAY_ERR_NOMEM;
    if (made != NULL) {
        err = loop_pair_post(&self->pair, LOOP_PAIR_NEAR, &made->message, cost);
    }
    if (err == BAY_OK || err == BAY_ERR_AGAIN) {
        return err;
    }
    far_cut(self);
    return BAY_ERR_CANCELLED;
}

static bay_err far_event(mcp_carrier *carrier, bay_str json, bay_str event_id)
{
    session_forward *self = of_carrier(carrier);
    size_t cost = json.len + event_id.len + EVENT_COST;
    if (self->is_cut) {
        return BAY_ERR_CANCELLED;
    }
    bool has_room = loop_pair_has_room(&self->pair, LOOP_PAIR_NEAR, cost);
    return far_post(self, has_room ? output_new(json, event_id, STR("")) : NULL, cost);
}

static void far_end(mcp_carrier *carrier)
{
    far_leave(of_carrier(carrier), NULL);
}

static void far_retry_end(mcp_carrier *carrier, uint32_t retry_ms)
{
    session_forward *self = of_carrier(carrier);
    output *made = self->is_cut ? NULL : output_new(STR(""), STR(""), STR(""));
    if (made != NULL) {
        made->is_retry = true;
        made->retry_ms = retry_ms;
    }
    (void)far_post(self, made, 0);
    far_end(carrier);
}

static const mcp_carrier_ops far_ops = {
    .answer = far_answer, .event = far_event, .end = far_end, .release = far_retry_end};

/* The request was needed while the call waited for its session. */
static void far_served(mcp_http_exchange *way)
{
    session_forward *self = of_carrier(&way->carrier);
    drop_request(self);
    loop_pair_unref(&self->pair);
}

static void far_begun(loop_pair *pair)
{
    session_forward *self = of_pair(pair);
    mcp_http_router *router = loop_pair_user(pair, LOOP_PAIR_FAR);
    if (router == NULL) {
        self->is_cut = true;
        loop_pair_close(pair, LOOP_PAIR_FAR, NULL);
        return;
    }
    self->far.way.carrier.ops = &far_ops;
    self->far.way.served = far_served;
    self->far.router = router;
    list_push(&router->forwarded, &self->far.link);
    router_serve(router, &self->call, &self->far.way);
    if (self->far.way.wait != NULL) {
        loop_pair_ref(pair); /* until it was served, or has ended */
    } else {
        drop_request(self);
    }
}

/* Detaches the carrier from the engine; further output is dropped. */
static void far_abandon(session_forward *self)
{
    bool has_waited = self->far.way.wait != NULL;
    self->is_cut = true;
    mcp_http_exchange_gone(&self->far.way, loop_now_ms(self->far.router->loop));
    far_leave(self, NULL);
    if (has_waited) {
        far_served(&self->far.way);
    }
}

static void far_closed(loop_pair *pair, loop_pair_message *last)
{
    (void)last;
    far_abandon(of_pair(pair));
}

static void far_drained(loop_pair *pair)
{
    mcp_http_exchange *way = &of_pair(pair)->far.way;
    mcp_server_drained(way->engine, &way->carrier);
}

static void far_signalled(loop_pair *pair, unsigned signals)
{
    session_forward *self = of_pair(pair);
    mcp_http_exchange *way = &self->far.way;
    uint64_t now_ms = loop_now_ms(self->far.router->loop);
    if ((signals & SIGNAL_QUIET) != 0 && way->engine != NULL) {
        mcp_server_quiet(way->engine, &way->carrier, now_ms);
    }
    bool is_open = list_holds(&self->far.link); /* still */
    if ((signals & SIGNAL_EXPIRED) != 0 && is_open && way->engine != NULL) {
        mcp_server_end_stream(way->engine, &way->carrier, now_ms);
    }
}

static const loop_pair_events far_events = {
    .begun = far_begun, .signalled = far_signalled, .drained = far_drained, .closed = far_closed};

void session_forwards_end(mcp_http_router *self)
{
    list_link *link;
    while ((link = list_first(&self->forwarded)) != NULL) {
        far_abandon(CONTAINER_OF(link, session_forward, far.link));
    }
}

void session_forwards_close_streams(mcp_http_router *self)
{
    list asked;
    list_init(&asked);
    mcp_server *last = NULL;
    list_link *link;
    while ((link = list_pop(&self->forwarded)) != NULL) {
        list_push(&asked, link);
        mcp_server *engine = CONTAINER_OF(link, session_forward, far.link)->far.way.engine;
        if (engine != NULL && engine != last) {
            last = engine;
            mcp_server_close_streams(engine);
        }
    }
    while ((link = list_pop(&asked)) != NULL) {
        list_push(&self->forwarded, link);
    }
}

/* ---- the exchange's loop --------------------------------------------------------------------- */

static session_forward *of_reply(http_reply *reply)
{
    return CONTAINER_OF(reply, session_forward, reply);
}

static void reply_gone(http_reply *reply)
{
    loop_pair_close(&of_reply(reply)->pair, LOOP_PAIR_NEAR, NULL);
}

static void reply_drained(http_reply *reply)
{
    loop_pair_resume(&of_reply(reply)->pair, LOOP_PAIR_NEAR);
}

static void reply_close(http_reply *reply)
{
    (void)reply; /* the owner's router ends it when it closes its own streams */
}

static void reply_quiet(http_reply *reply)
{
    loop_pair_signal(&of_reply(reply)->pair, LOOP_PAIR_FAR, SIGNAL_QUIET);
}

static void reply_expired(http_reply *reply)
{
    loop_pair_signal(&of_reply(reply)->pair, LOOP_PAIR_FAR, SIGNAL_EXPIRED);
}

static const http_reply_ops reply_ops = {.gone = reply_gone,
                                         .drained = reply_drained,
                                         .close = reply_close,
                                         .quiet = reply_quiet,
                                         .expired = reply_expired};

/* After a failed write `gone` follows. */
static bay_err near_received(loop_pair *pair, loop_pair_message *message)
{
    http_reply *reply = &of_pair(pair)->reply;
    const output *what = CONTAINER_OF(message, output, message);
    return what->is_retry ? http_reply_retry(reply, what->retry_ms)
                          : http_reply_event(reply, (bay_str){NULL, 0}, what->json, what->id);
}

static void near_signalled(loop_pair *pair, unsigned signals)
{
    (void)signals; /* SIGNAL_CUT */
    http_reply_abort(&of_pair(pair)->reply);
    loop_pair_close(pair, LOOP_PAIR_NEAR, NULL);
}

static void near_closed(loop_pair *pair, loop_pair_message *last)
{
    session_forward *self = of_pair(pair);
    if (last != NULL) {
        const output *answer = CONTAINER_OF(last, output, message);
        http_reply_answer(&self->reply, answer->status, answer->json, answer->id, answer->detail);
    } else if (self->is_cut) {
        http_reply_abort(&self->reply);
    } else {
        http_reply_end(&self->reply);
    }
    loop_pair_close(pair, LOOP_PAIR_NEAR, NULL);
}

static const loop_pair_events near_events = {.received = near_received,
                                             .signalled = near_signalled,
                                             .closed = near_closed,
                                             .window = FORWARD_WINDOW_BYTES,
                                             .resume = FORWARD_WINDOW_BYTES / 2,
                                             .most = FORWARD_MOST_BYTES};

static bay_err copy_request(session_forward *self, const mcp_http_router *router,
                            const http_exchange *exchange, const auth_principal *principal)
{
    size_t count;
    const http_field *fields = http_exchange_fields(exchange, &count);
    bay_str parts[] = {http_exchange_method(exchange), http_exchange_path(exchange),
                       http_exchange_query(exchange), http_exchange_body(exchange)};
    size_t bytes = 1; /* an empty allocation may return NULL */
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        bytes += parts[i].len;
    }
    for (size_t i = 0; i < count; i++) {
        bytes += fields[i].name.len + fields[i].value.len;
    }
    self->request = mem_alloc(bytes);
    self->fields = mem_array(count + 1, sizeof(*self->fields));
    if (self->request == NULL || self->fields == NULL) {
        return BAY_ERR_NOMEM;
    }
    char *at = self->request;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        parts[i] = str_put(&at, parts[i]);
    }
    for (size_t i = 0; i < count; i++) {
        self->fields[i] = (http_field){str_put(&at, fields[i].name), str_put(&at, fields[i].value)};
    }
    self->call = (router_call){.path = parts[1],
                               .query = parts[2],
                               .http = {.verb = parts[0],
                                        .body = parts[3],
                                        .fields = self->fields,
                                        .field_count = count,
                                        .principal = principal_ref(principal)}};
    router_read_address(router, exchange, &self->call.http);
    return BAY_OK;
}

void session_forward_exchange(mcp_http_router *router, http_exchange *exchange, loop_mailbox *owner,
                              const auth_principal *principal)
{
    session_forward *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        http_exchange_reply(exchange, 503, NULL, 0, STR(""));
        return;
    }
    loop_pair_init(&self->pair, router->mailbox, &near_events, owner, &far_events, forward_release);
    if (copy_request(self, router, exchange, principal) != BAY_OK) {
        http_exchange_reply(exchange, 503, NULL, 0, STR(""));
        loop_pair_close(&self->pair, LOOP_PAIR_NEAR, NULL);
        return;
    }
    http_reply_begin(&self->reply, &router->replies, &reply_ops, exchange, principal);
    if (loop_pair_begin(&self->pair) != BAY_OK) {
        http_reply_answer(&self->reply, 503, STR(""), STR(""), STR(""));
        loop_pair_close(&self->pair, LOOP_PAIR_NEAR, NULL);
    }
}
