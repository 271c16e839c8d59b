/* The deprecated HTTP+SSE transport: GET opens the stream, its first event names the URL for POSTs
 * of messages, and the server sends everything on the stream. Older clients have only this.
 * Internal to the HTTP router. Source: mcp 2024-11-05 basic/transports, HTTP with SSE. */
#ifndef MCP_TRANSPORT_SSE_2024_H
#define MCP_TRANSPORT_SSE_2024_H

#include "mcp_transport/http_router_internal.h"

void sse_2024_init(mcp_http_router *self);
void sse_2024_fini(mcp_http_router *self); /* after the replies have ended */

/* A GET of the stream. The exchange is always answered. */
void sse_2024_open(mcp_http_router *self, mcp_server *engine, http_exchange *exchange,
                   const auth_principal *principal);

/* A POST of one message: 202, or 404 if the connection does not exist. */
void sse_2024_receive(mcp_http_router *self, const router_call *call, mcp_carrier *carrier);

/* The id in a query string `sessionId=…`; empty: none. */
bay_str sse_2024_session_id(bay_str query);

#endif
