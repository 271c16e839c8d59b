/* The HTTP face of a server role: routes the paths of one http_server to MCP engines (Streamable
 * HTTP), to the deprecated HTTP+SSE pair, and to plain handlers. One face per loop.
 *
 * The face checks what is the transport's to check: Host and Origin against the allow-lists (DNS
 * rebinding: 403), keeps streams alive by comments, and hands a legacy session's exchange to the
 * loop that owns the session when it arrived on another one. */
#ifndef TRANSPORT_MCP_HTTP_FACE_H
#define TRANSPORT_MCP_HTTP_FACE_H

#include "mcp/server.h"
#include "net/http_server.h"
#include "transport/listen_address.h"

typedef struct http_face http_face;

/* Who sent an exchange. */
typedef struct http_identity {
    const auth_principal *principal; /* one reference, which the face gives back */
    bay_str challenge; /* of a refusal, for WWW-Authenticate; "": none; lives as its arena does */
} http_identity;

typedef struct http_face_options {
    /* Host and Origin that may be named. Empty lists: when the listener is on a loopback address,
     * any loopback name; else Host is free and Origin must be absent or same-origin. Entries are
     * "name" or "name:port" for hosts, whole origins for origins; "*" allows all. */
    const bay_str *hosts;
    size_t host_count;
    const bay_str *origins;
    size_t origin_count;
    bool is_loopback;
    const listen_names *names; /* with is_loopback: other names of it; NULL: none; borrowed */
    uint32_t keep_alive_ms;    /* comment on quiet streams; 0: 15,000; UINT32_MAX: none */
    uint32_t stream_idle_ms;   /* a stream without an event ends; 0: no bound */
    uint32_t stream_total_ms;  /* a stream ends, whatever it says; 0: no bound */
    uint32_t worker; /* this loop's number; equals mcp_server_options.worker of its engines */
    /* The engine for a path such as "/mcp" or "/mcp/files"; NULL: 404. */
    mcp_server *(*engine)(void *user, bay_str path);
    /* Before anything of an exchange is looked at but Host, Origin and whether it is a preflight.
     * False: 401. NULL: everybody is nobody in particular. */
    bool (*identify)(void *user, http_exchange *exchange, http_identity *out);
    /* Any other path; returns false when it is none of its own (404). May be NULL. It answers
     * before it returns, or later without the exchange's user pointer, which the face reads. */
    bool (*plain)(void *user, http_exchange *exchange);
    /* Asked for each POST of an endpoint without a session, its whole body at hand: which loop of
     * the array it has to go to. It is relayed there as it is; false, this loop's own number or one
     * that no face has: it is dealt with here. NULL: always here. */
    bool (*home)(void *user, bay_str body, uint32_t *out_worker);
    /* Asked for a session that `engine` does not hold, on the loop that its id names (by the number
     * of loops there are): looks for it where sessions are kept. BAY_OK: `done` follows exactly
     * once, never inside this call, with BAY_OK, BAY_NOTFOUND, or what kept it from looking (the
     * client is told to come back). Or at once BAY_NOTFOUND, BAY_BUSY, BAY_NOMEM. NULL: there are
     * no others. */
    bay_err (*recall)(void *user, mcp_server *engine, bay_str session_id,
                      const auth_principal *principal, void (*done)(void *done_user, bay_err err),
                      void *done_user);
    void *user;
    /* This gateway's pseudonym: requests whose Via names it, or names too many, are refused with
     * 508; "": Via is not looked at. */
    bay_str via;
    /* "/sse"; NULL: the deprecated transport is not served. Alone it stands for the engine at
     * "/mcp", behind another path ("/mcp/files/sse") for the engine there. */
    const char *sse_path;
    const char *messages_path; /* "/messages" */
} http_face_options;

/* The lists and paths are copied. Free it after its http_server and before its engines and loop;
 * other loops' faces may live on. */
bay_err http_face_new(loop *loop, const http_face_options *options, http_face **out) BAY_MUST_CHECK;
void http_face_free(http_face *self);

/* For http_server_options: handler and user. */
extern const http_handler http_face_handler;

/* A JSON-RPC error without an id, for what no engine answers. */
void http_face_reply_error(http_exchange *exchange, int status, int code, const char *text);

/* Lets faces of several loops hand over exchanges; the array outlives them all. */
void http_face_set_peers(http_face *self, http_face *const *faces, size_t count);

/* Open streams get their graceful end (before a drain). */
void http_face_close_streams(http_face *self);

#endif
