/* MCP over HTTP, behind a front (front/front.h), which has checked the exchange and identified its
 * caller: Streamable HTTP, and the deprecated HTTP+SSE. One per loop.
 *
 * It keeps streams alive by comments, and passes an exchange of a legacy session to the loop that
 * owns the session if it arrived on another one. */
#ifndef MCP_TRANSPORT_HTTP_ROUTER_H
#define MCP_TRANSPORT_HTTP_ROUTER_H

#include "front/origin_check.h"
#include "http/http_server.h"
#include "mcp/server.h"

typedef struct mcp_http_router mcp_http_router;
struct front_challenge; /* front/front.h */

typedef struct mcp_http_router_options {
    uint32_t keep_alive_ms;   /* comment on quiet streams; 0: 15,000; UINT32_MAX: none */
    uint32_t stream_idle_ms;  /* a stream without an event for this time ends; 0: no limit */
    uint32_t stream_total_ms; /* a stream ends after this time; 0: no limit */
    uint32_t worker; /* this loop's number; equals mcp_server_options.worker of its engines */
    /* The engine for a path such as "/mcp" or "/mcp/files", for an exchange that another loop
     * forwarded or that has waited; NULL: 404. */
    mcp_server *(*engine)(void *user, bay_str path);
    /* Called with the requestState or taskId in the params of a POST without a session: which loop
     * of the array issued it? The exchange is forwarded there unchanged. If it returns false, this
     * loop's own number or one without a router, the exchange is served here. NULL: always here. */
    bool (*home)(void *user, bay_str token, uint32_t *out_worker);
    /* Called for a session that `engine` does not hold, on the loop that its id names (modulo the
     * number of loops): looks for it in the store. BAY_OK: `done` follows exactly once, never
     * inside this call, with BAY_OK, BAY_ERR_NOT_FOUND, or the error of the search (the client is
     * told to retry). Otherwise at once BAY_ERR_NOT_FOUND, BAY_ERR_BUSY, BAY_ERR_NOMEM. NULL: there
     * are no other sessions. */
    bay_err (*session_lookup)(void *user, mcp_server *engine, bay_str session_id,
                              const auth_principal *principal,
                              void (*done)(void *done_user, bay_err err), void *done_user);
    /* As http_replies.challenge; NULL: nobody knows. */
    void (*challenge)(void *user, http_exchange *exchange, bay_str scopes,
                      struct front_challenge *out);
    /* The client's address, if something reads it; false: nothing does, or it is unknown. NULL:
     * nothing does. */
    bool (*address)(void *user, const http_exchange *exchange, net_address *out);
    void *user;
    /* "/messages": the path of HTTP+SSE messages; static. NULL: not served. */
    const char *messages_path;
} mcp_http_router_options;

/* Free it after its http_server and before its engines and loop; other loops' routers may live on.
 */
bay_err mcp_http_router_new(loop *loop, const mcp_http_router_options *options,
                            mcp_http_router **out) BAY_MUST_CHECK;
void mcp_http_router_free(mcp_http_router *self);

/* The answers to preflights: of an endpoint, of the path of HTTP+SSE streams, of the path of their
 * messages. */
extern const http_cors mcp_http_router_cors;
extern const http_cors mcp_http_router_sse_cors;
extern const http_cors mcp_http_router_message_cors;

/* An exchange at an endpoint, for this engine; it is always answered. `principal` is the caller
 * (NULL: anonymous), borrowed. */
void mcp_http_router_serve(mcp_http_router *self, http_exchange *exchange, mcp_server *engine,
                           const auth_principal *principal);
/* The same for the path of HTTP+SSE streams … */
void mcp_http_router_serve_sse(mcp_http_router *self, http_exchange *exchange, mcp_server *engine,
                               const auth_principal *principal);
/* … and for the path of their messages. */
void mcp_http_router_serve_message(mcp_http_router *self, http_exchange *exchange,
                                   const auth_principal *principal);

/* Lets routers of several loops forward exchanges; the array outlives them all. */
void mcp_http_router_set_peers(mcp_http_router *self, mcp_http_router *const *routers,
                               size_t count);

/* Ends the open streams of callers of whom this says true. Calls under way go on. */
void mcp_http_router_end_streams(mcp_http_router *self, principal_test is_over, void *user);
/* Ends open streams cleanly (before a drain). */
void mcp_http_router_close_streams(mcp_http_router *self);

#endif
