/* Session forwarding. A session lives on one loop, and its client's connections arrive on any. The
 * loop that gets an exchange of another loop's session copies the request there; the owner drives
 * its engine with a carrier whose output travels back over a loop pair.
 *
 *   exchange's loop (near)                              owner's loop (far)
 *   http_reply ◄── answer, events, end, cut ──────────  mcp_carrier ◄── engine
 *              ─── begin, quiet, expired, gone ──────►
 *
 * Above FORWARD_WINDOW_BYTES under way the engine has to wait. */
#ifndef MCP_TRANSPORT_SESSION_FORWARD_H
#define MCP_TRANSPORT_SESSION_FORWARD_H

#include "mcp_transport/http_router_internal.h"

/* Hands the exchange to `owner`'s loop. It is answered in any case: 503 when that cannot be done.
 */
void session_forward_exchange(mcp_http_router *self, http_exchange *exchange, loop_mailbox *owner,
                              const auth_principal *principal);

/* The engines of this router are about to go: every exchange that other loops forwarded is cut. */
void session_forwards_end(mcp_http_router *self);
/* Graceful end of the streams that other loops' clients have open here. */
void session_forwards_close_streams(mcp_http_router *self);

#endif
