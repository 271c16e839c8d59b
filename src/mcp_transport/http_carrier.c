/* Connects an engine's carrier with the reply of an exchange. */
#include "mcp_transport/http_carrier.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"

enum { MOST_SPARE = 64 };

static http_carrier *of_carrier(mcp_carrier *carrier)
{
    return CONTAINER_OF(carrier, http_carrier, back.carrier);
}

static http_carrier *of_reply(http_reply *reply)
{
    return CONTAINER_OF(reply, http_carrier, reply);
}

static void recycle(http_carrier *self)
{
    http_carriers *home = self->home;
    if (home->spare_count < MOST_SPARE) {
        list_push(&home->spare, &self->reply.link);
        home->spare_count++;
    } else {
        mem_free(self);
    }
}

/* ---- from the engine */

static void on_answer(mcp_carrier *carrier, int status, bay_str json, bay_str session,
                      bay_str detail)
{
    http_carrier *self = of_carrier(carrier);
    http_reply_answer(&self->reply, status, json, session, detail);
    recycle(self);
}

static bay_err on_event(mcp_carrier *carrier, bay_str json, bay_str event_id)
{
    return http_reply_event(&of_carrier(carrier)->reply, (bay_str){NULL, 0}, json, event_id);
}

static void http_carrier_on_end(mcp_carrier *carrier)
{
    http_carrier *self = of_carrier(carrier);
    http_reply_end(&self->reply);
    recycle(self);
}

/* If the exchange breaks off first, its end is reported all the same: the engine has released it.
 */
static void on_release(mcp_carrier *carrier, uint32_t retry_ms)
{
    http_carrier *self = of_carrier(carrier);
    (void)http_reply_retry(&self->reply, retry_ms);
    http_carrier_on_end(carrier);
}

static const mcp_carrier_ops carrier_ops = {
    .answer = on_answer, .event = on_event, .end = http_carrier_on_end, .release = on_release};

/* ---- from the exchange */

static void on_gone(http_reply *reply)
{
    http_carrier *self = of_reply(reply);
    mcp_http_exchange_gone(&self->back, loop_now_ms(reply->among->loop));
    recycle(self);
}

static void on_drained(http_reply *reply)
{
    http_carrier *self = of_reply(reply);
    if (self->back.engine != NULL) {
        mcp_server_drained(self->back.engine, &self->back.carrier);
    }
}

static void on_close(http_reply *reply)
{
    http_carrier *self = of_reply(reply);
    http_carriers *home = self->home;
    mcp_server *engine = self->back.engine;
    if (engine != NULL && engine != home->closed_last) {
        home->closed_last = engine;
        mcp_server_close_streams(engine);
    }
}

static void on_quiet(http_reply *reply)
{
    mcp_http_exchange *back = &of_reply(reply)->back;
    if (back->engine != NULL) {
        mcp_server_quiet(back->engine, &back->carrier, loop_now_ms(reply->among->loop));
    }
}

static void on_expired(http_reply *reply)
{
    mcp_http_exchange *back = &of_reply(reply)->back;
    if (back->engine != NULL) {
        mcp_server_end_stream(back->engine, &back->carrier, loop_now_ms(reply->among->loop));
    }
}

static const http_reply_ops reply_ops = {.gone = on_gone,
                                         .drained = on_drained,
                                         .close = on_close,
                                         .quiet = on_quiet,
                                         .expired = on_expired};

/* ---- making them */

void http_carriers_init(http_carriers *self, http_replies *replies)
{
    *self = (http_carriers){.replies = replies};
    list_init(&self->spare);
}

void http_carriers_fini(http_carriers *self)
{
    list_link *link;
    while ((link = list_pop(&self->spare)) != NULL) {
        mem_free(CONTAINER_OF(link, http_carrier, reply.link));
    }
}

http_carrier *http_carrier_new(http_carriers *home, http_exchange *exchange,
                               const auth_principal *principal)
{
    list_link *link = list_pop(&home->spare);
    http_carrier *self;
    if (link != NULL) {
        self = CONTAINER_OF(link, http_carrier, reply.link);
        home->spare_count--;
    } else {
        self = mem_alloc(sizeof(*self));
    }
    if (self != NULL) {
        *self = (http_carrier){.back.carrier.ops = &carrier_ops, .home = home};
        http_reply_begin(&self->reply, home->replies, &reply_ops, exchange, principal);
    }
    return self;
}

http_carriers *http_carrier_home(mcp_carrier *carrier)
{
    return of_carrier(carrier)->home;
}

http_exchange *http_carrier_take(mcp_carrier *carrier)
{
    http_carrier *self = of_carrier(carrier);
    http_exchange *exchange = http_reply_take(&self->reply);
    recycle(self);
    return exchange;
}
