/* What the files of the HTTP router share. Internal to the transport floor. */
#ifndef MCP_TRANSPORT_HTTP_ROUTER_INTERNAL_H
#define MCP_TRANSPORT_HTTP_ROUTER_INTERNAL_H

#include "base/map.h"
#include "mcp_transport/http_carrier.h"
#include "mcp_transport/http_exchange_reply.h"
#include "mcp_transport/http_router.h"
#include "net/loop_mailbox.h"

struct mcp_http_router {
    loop *loop;
    mcp_http_router_options options;
    bay_str messages_path; /* empty: HTTP+SSE is not served */
    http_replies replies;
    http_carriers carriers;
    map connections; /* HTTP+SSE, by id */
    list leaving;    /* of them: end once their last answer is sent */
    loop_task leave_task;
    loop_mailbox *mailbox;
    list forwarded; /* exchanges of other loops that our engines deal with */
    list waits;     /* calls whose session is being looked for */
    loop_mailbox **peers;
    size_t peer_count;
};

/* One request at an endpoint, of this loop or another. */
typedef struct router_call {
    bay_str path;
    bay_str query;
    mcp_server *engine; /* of the path; NULL: not looked up yet */
    mcp_http_request http;
} router_call;

/* Gives the call to its engine, or to the HTTP+SSE connection it names. `back->engine` is set
 * before the carrier hears anything. When `back->wait` is set afterwards, what the call points to
 * must stay until `back->served` or mcp_http_exchange_gone. */
void router_serve(mcp_http_router *self, const router_call *call, mcp_http_exchange *back);
/* The rest of it, once there is nothing to wait for. */
void router_serve_now(mcp_http_router *self, const router_call *call, mcp_http_exchange *back);

/* Does the call wait for its session, or was it answered because it cannot? */
bool mcp_session_wait_begin(mcp_http_router *self, const router_call *call, mcp_server *engine,
                            mcp_http_exchange *back);
/* The router goes: nobody waits any more. */
void mcp_session_waits_end(mcp_http_router *self);

#endif
