/* A client engine on a carrier: one link to one server, by URL, by command or in process. A link
 * lives one life: when its client breaks, the owner frees it and makes another. */
#ifndef MCP_TRANSPORT_LINK_H
#define MCP_TRANSPORT_LINK_H

#include "http/http_client.h"
#include "mcp/client.h"
#include "mcp/server.h"
#include "net/process.h"

typedef struct mcp_link mcp_link;

/* What both kinds need. `client.link_kind` is set by the opener. */
typedef struct mcp_link_options {
    mcp_client_options client;
    const mcp_client_events *events;
    void *user;
    uint32_t term_ms; /* stdio, on close: from the end of its stdin to SIGTERM; 0: 2,000 … */
    uint32_t kill_ms; /* … and from there to SIGKILL; 0: 3,000 */
    /* In process: who speaks where a message is sent for nobody in particular. The link takes a
     * reference of its own. */
    const auth_principal *principal;
    /* By a URL: what authorizes the requests that are made for this principal; asked with `user`.
     * NULL, or an answer of NULL: nothing. What it answers outlives the link. */
    http_authority *(*authority)(void *user, const auth_principal *principal);
} mcp_link_options;

/* Streamable HTTP, falling back to HTTP+SSE where the server has only that; `is_sse_2024` goes
 * there at once. `fields` (Authorization …) go with every request; copied, wiped at the end; those
 * the protocol writes itself are left out. `http` outlives the link. */
bay_err mcp_link_open_http(loop *loop, http_client *http, bay_str url, const http_field *fields,
                           size_t count, bool is_sse_2024, const mcp_link_options *options,
                           mcp_link **out, bay_diag *diag) BAY_MUST_CHECK;

/* Starts the process and speaks lines. Its stderr goes to the log at debug level, line by line, as
 * component `name`. A server that dies of server/discover is started once more; what that needs is
 * copied. */
bay_err mcp_link_open_stdio(loop *loop, const process_options *process, bay_str name,
                            const mcp_link_options *options, mcp_link **out,
                            bay_diag *diag) BAY_MUST_CHECK;

/* To a server engine of the same loop, without a carrier: messages are handed over whole, each in a
 * later turn of the loop, so neither engine re-enters the other. The link ticks the server. A
 * server that is freed first breaks the link. */
bay_err mcp_link_open_local(loop *loop, mcp_server *server, const mcp_link_options *options,
                            mcp_link **out) BAY_MUST_CHECK;

/* Of a process that ended by itself: writes the latest lines of its stderr to the log as warnings,
 * if they may say why and the log does not hold them already. NULL is fine. */
void mcp_link_log_last_lines(const mcp_link *self);

mcp_client *mcp_link_client(mcp_link *self);
int mcp_link_process_id(const mcp_link *self); /* 0 when there is none (any more) */

/* Ends politely (DELETE, close stdin, SIGTERM, SIGKILL); `done` runs once, in a later turn, when
 * nothing is left (the child is reaped). Then free. Open calls fail at once. Called again, the
 * newer `done` takes the older one's place. */
void mcp_link_close(mcp_link *self, void (*done)(void *user), void *user);
/* At once: kills what is left. Open calls fail with BAY_ERR_CANCELLED before it returns, nothing
 * calls back after it. May be called from any callback. NULL is fine. */
void mcp_link_free(mcp_link *self);

#endif
