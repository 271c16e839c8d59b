/* A call whose session is not held here: it waits, with its exchange, until the session was looked
 * up in the store; then its engine gets it, which now has the session or answers 404.
 *
 * The router, the exchange and the look-up end in any order: the look-up owns the wait and ends
 * exactly once; the other two only detach from it. */
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "mcp/persistence.h"
#include "mcp_transport/http_router_internal.h"
#include "wire/http1.h"

struct mcp_session_wait {
    list_link link;          /* in router->waits */
    mcp_http_router *router; /* NULL: it is gone */
    mcp_http_exchange *back; /* NULL: the exchange has ended */
    router_call call;
};

static void answer_busy(mcp_http_exchange *back)
{
    back->carrier.ops->answer(&back->carrier, 503, STR(""), STR(""), STR(""));
}

static void on_recalled(void *user, bay_err err)
{
    mcp_session_wait *self = user;
    mcp_http_exchange *back = self->back;
    mcp_http_router *router = self->router;
    router_call call = self->call;
    list_remove(&self->link);
    mem_free(self);
    if (back == NULL || router == NULL) {
        principal_unref(call.http.principal);
        return;
    }
    void (*served)(mcp_http_exchange * back) = back->served;
    back->wait = NULL;
    if (err == BAY_OK || err == BAY_ERR_NOT_FOUND) {
        router_serve_now(router, &call, back);
    } else {
        answer_busy(back);
    }
    principal_unref(call.http.principal);
    if (served != NULL) {
        served(back);
    }
}

bool mcp_session_wait_begin(mcp_http_router *router, const router_call *call, mcp_server *engine,
                            mcp_http_exchange *back)
{
    static const bay_str name = STR_INIT("Mcp-Session-Id");
    const mcp_http_request *http = &call->http;
    bay_str id = http1_field_find(http->fields, http->field_count, name);
    if (router->options.session_lookup == NULL || id.len == 0 || mcp_server_holds(engine, id) ||
        http1_field_count(http->fields, http->field_count, name) != 1) {
        return false;
    }
    mcp_session_wait *self = mem_zalloc(sizeof(*self));
    bay_err err = self == NULL ? BAY_ERR_NOMEM : BAY_OK;
    if (err == BAY_OK) {
        *self = (mcp_session_wait){.router = router, .back = back, .call = *call};
        self->call.engine = NULL; /* the path may have another engine by then */
        self->call.http.principal = principal_ref(http->principal);
        err = router->options.session_lookup(router->options.user, engine, id, http->principal,
                                             on_recalled, self);
    }
    if (err != BAY_OK) {
        principal_unref(self != NULL ? self->call.http.principal : NULL);
        mem_free(self);
        if (err == BAY_ERR_NOT_FOUND) {
            return false;
        }
        answer_busy(back);
        return true;
    }
    back->wait = self;
    list_push(&router->waits, &self->link);
    return true;
}

void mcp_session_waits_end(mcp_http_router *router)
{
    list_link *link;
    while ((link = list_pop(&router->waits)) != NULL) {
        CONTAINER_OF(link, mcp_session_wait, link)->router = NULL;
    }
}

void mcp_http_exchange_gone(mcp_http_exchange *back, uint64_t now_ms)
{
    if (back->wait != NULL) {
        back->wait->back = NULL;
        back->wait = NULL;
    } else if (back->engine != NULL) {
        mcp_server_gone(back->engine, &back->carrier, now_ms);
    }
}
