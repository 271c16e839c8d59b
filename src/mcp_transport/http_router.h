/* MCP over HTTP, behind a front (front/front.h), which has guarded the exchange and knows its
 * caller: Streamable HTTP, and the deprecated HTTP+SSE pair. One per loop.
 *
 * It keeps streams alive by comments, and hands a legacy session's exchange to the loop that owns
 * the session when it arrived on another one. */
#ifndef MCP_TRANSPORT_HTTP_ROUTER_H
#define MCP_TRANSPORT_HTTP_ROUTER_H

#include "front/origin_check.h"
#include "http/http_server.h"
#include "mcp/server.h"

typedef struct mcp_http_router mcp_http_router;
struct front_challenge; /* front/front.h */

typedef struct mcp_http_router_options {
    uint32_t keep_alive_ms;   /* comment on quiet streams; 0: 15,000; UINT32_MAX: none */
    uint32_t stream_idle_ms;  /* a stream without an event ends; 0: no bound */
    uint32_t stream_total_ms; /* a stream ends, whatever it says; 0: no bound */
    uint32_t worker; /* this loop's number; equals mcp_server_options.worker of its engines */
    /* The engine for a path such as "/mcp" or "/mcp/files", of an exchange that another loop handed
     * over or that has waited; NULL: 404. */
    mcp_server *(*engine)(void *user, bay_str path);
    /* Asked for what a POST without a session brings back (its params' requestState and taskId):
     * which loop of the array gave it away. The exchange is relayed there as it is; false, this
     * loop's own number or one that no router has: it is dealt with here. NULL: always here. */
    bool (*home)(void *user, bay_str token, uint32_t *out_worker);
    /* Asked for a session that `engine` does not hold, on the loop that its id names (by the number
     * of loops there are): looks for it where sessions are kept. BAY_OK: `done` follows exactly
     * once, never inside this call, with BAY_OK, BAY_ERR_NOT_FOUND, or what kept it from looking
     * (the client is told to come back). Or at once BAY_ERR_NOT_FOUND, BAY_ERR_BUSY, BAY_ERR_NOMEM.
     * NULL: there are no others. */
    bay_err (*session_lookup)(void *user, mcp_server *engine, bay_str session_id,
                              const auth_principal *principal,
                              void (*done)(void *done_user, bay_err err), void *done_user);
    /* As http_replies.challenge; NULL: nobody knows. */
    void (*challenge)(void *user, http_exchange *exchange, bay_str scopes,
                      struct front_challenge *out);
    void *user;
    /* "/messages": where messages of HTTP+SSE are sent; static. NULL: it is not served. */
    const char *messages_path;
} mcp_http_router_options;

/* Free it after its http_server and before its engines and loop;
 * other loops' routers may live on. */
bay_err mcp_http_router_new(loop *loop, const mcp_http_router_options *options,
                            mcp_http_router **out) BAY_MUST_CHECK;
void mcp_http_router_free(mcp_http_router *self);

/* What a preflight is answered: of an endpoint, of a path where streams of HTTP+SSE begin, of the
 * one where their messages are sent. */
extern const http_cors mcp_http_router_cors;
extern const http_cors mcp_http_router_sse_cors;
extern const http_cors mcp_http_router_message_cors;

/* An exchange at an endpoint, of that engine; it is answered in any case. `principal` is who sent
 * it (NULL: nobody in particular), borrowed. */
void mcp_http_router_serve(mcp_http_router *self, http_exchange *exchange, mcp_server *engine,
                           const auth_principal *principal);
/* The same where streams of HTTP+SSE begin … */
void mcp_http_router_serve_sse(mcp_http_router *self, http_exchange *exchange, mcp_server *engine,
                               const auth_principal *principal);
/* … and where their messages are sent. */
void mcp_http_router_serve_message(mcp_http_router *self, http_exchange *exchange,
                                   const auth_principal *principal);

/* Lets routers of several loops hand over exchanges; the array outlives them all. */
void mcp_http_router_set_peers(mcp_http_router *self, mcp_http_router *const *routers,
                               size_t count);

/* Open streams get their graceful end (before a drain). */
void mcp_http_router_close_streams(mcp_http_router *self);

#endif
