/* Shared by the files of the HTTP router. Internal to the module. */
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
    list leaving;    /* of them: those that end after their last answer */
    loop_task leave_task;
    loop_mailbox *mailbox;
    list forwarded; /* exchanges of other loops that this loop's engines serve */
    list waits;     /* calls whose session is being looked up */
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

/* Passes the call to its engine, or to the HTTP+SSE connection that it names. `back->engine` is set
 * before the carrier gets any output. If `back->wait` is set afterwards, what the call points to
 * must live until `back->served` or mcp_http_exchange_gone. */
void router_serve(mcp_http_router *self, const router_call *call, mcp_http_exchange *back);
/* The client's address, where rules read it. */
void router_read_address(const mcp_http_router *self, const http_exchange *exchange,
                         mcp_http_request *out);
/* The second half, when nothing has to be waited for. */
void router_serve_now(mcp_http_router *self, const router_call *call, mcp_http_exchange *back);

/* Whether the call waits for its session, or was answered because it cannot. */
bool mcp_session_wait_begin(mcp_http_router *self, const router_call *call, mcp_server *engine,
                            mcp_http_exchange *back);
/* The router is freed: no call waits any more. */
void mcp_session_waits_end(mcp_http_router *self);

#endif
