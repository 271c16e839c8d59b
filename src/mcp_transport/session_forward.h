/* Session forwarding. A session lives on one loop, and its client's connections arrive on any. A
 * loop that gets an exchange of another loop's session copies the request to the owner loop, which
 * runs its engine with a carrier whose output returns over a loop pair.
 *
 *   exchange's loop (near)                              owner's loop (far)
 *   http_reply ◄── answer, events, end, cut ──────────  mcp_carrier ◄── engine
 *              ─── begin, quiet, expired, gone ──────►
 *
 * If more than FORWARD_WINDOW_BYTES are under way, the engine has to wait. */
#ifndef MCP_TRANSPORT_SESSION_FORWARD_H
#define MCP_TRANSPORT_SESSION_FORWARD_H

#include "mcp_transport/http_router_internal.h"

/* Passes the exchange to `owner`'s loop. It is always answered: 503 if that fails. */
void session_forward_exchange(mcp_http_router *self, http_exchange *exchange, loop_mailbox *owner,
                              const auth_principal *principal);

/* The engines of this router are about to be freed: every exchange that other loops forwarded is
 * cut. */
void session_forwards_end(mcp_http_router *self);
/* Ends cleanly the streams that clients of other loops have open here. */
void session_forwards_close_streams(mcp_http_router *self);

#endif
