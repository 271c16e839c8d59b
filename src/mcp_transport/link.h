/* A client engine on a carrier: one link to one server, by URL, by command or in process. A link is
 * used once: if its client breaks, the owner frees it and opens another. */
#ifndef MCP_TRANSPORT_LINK_H
#define MCP_TRANSPORT_LINK_H

#include "http/http_client.h"
#include "mcp/client.h"
#include "mcp/server.h"
#include "net/process.h"

typedef struct mcp_link mcp_link;

/* Options of every kind. The opener sets `client.link_kind`. */
typedef struct mcp_link_options {
    mcp_client_options client;
    const mcp_client_events *events;
    void *user;
    uint32_t term_ms; /* stdio, on close: from closing its stdin to SIGTERM; 0: 2,000 … */
    uint32_t kill_ms; /* … and from there to SIGKILL; 0: 3,000 */
    /* In process: the principal of messages that are sent for no particular caller. The link takes
     * a reference. */
    const auth_principal *principal;
    /* By a URL: what authorizes the requests that are made for this principal; asked with `user`.
     * NULL, or an answer of NULL: nothing. What it answers outlives the link. */
    http_authority *(*authority)(void *user, const auth_principal *principal);
} mcp_link_options;

/* Streamable HTTP, with HTTP+SSE if the server has only that; `is_sse_2024` starts with it.
 * `fields` (Authorization …) are sent with every request; copied, and wiped at the end; fields that
 * the protocol sets itself are omitted. `http` outlives the link. */
bay_err mcp_link_open_http(loop *loop, http_client *http, bay_str url, const http_field *fields,
                           size_t count, bool is_sse_2024, const mcp_link_options *options,
                           mcp_link **out, bay_diag *diag) BAY_MUST_CHECK;

/* Starts the process and exchanges lines. Its stderr is written to the log at debug level, line by
 * line, as component `name`. A server that exits on server/discover is started once more; what that
 * needs is copied. */
bay_err mcp_link_open_stdio(loop *loop, const process_options *process, bay_str name,
                            const mcp_link_options *options, mcp_link **out,
                            bay_diag *diag) BAY_MUST_CHECK;

/* To a server engine of the same loop, without a carrier. Each message is passed as a whole in a
 * later loop iteration, so neither engine re-enters the other. The link ticks the server. A server
 * that is freed first breaks the link. */
bay_err mcp_link_open_local(loop *loop, mcp_server *server, const mcp_link_options *options,
                            mcp_link **out) BAY_MUST_CHECK;

/* For a process that ended by itself: logs the last lines of its stderr as warnings, if they may
 * give the reason and are not in the log already. NULL is allowed. */
void mcp_link_log_last_lines(const mcp_link *self);

mcp_client *mcp_link_client(mcp_link *self);
int mcp_link_process_id(const mcp_link *self); /* 0: there is none (any more) */

/* Ends cleanly (DELETE, close stdin, SIGTERM, SIGKILL). `done` runs once, in a later loop
 * iteration, when everything has ended (the child is reaped); then free it. Open calls fail at
 * once. Called again, the newer `done` replaces the older one. */
void mcp_link_close(mcp_link *self, void (*done)(void *user), void *user);
/* Ends at once: kills the process. Open calls fail with BAY_ERR_CANCELLED before it returns, and no
 * callback runs after it. May be called from any callback. NULL is allowed. */
void mcp_link_free(mcp_link *self);

#endif
