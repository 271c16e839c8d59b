/* Legacy sessions: the table of those over HTTP, their ids, their end. Internal to the server
 * engine. */
#ifndef MCP_SESSION_H
#define MCP_SESSION_H

#include "mcp/server_internal.h"

/* Longest clientInfo with capabilities that is kept. */
enum { SESSION_MAX_CLIENT = 64 * 1024 };

/* What a session is made of; copied. */
typedef struct session_about {
    bay_str id; /* empty: on a connection */
    const auth_principal *principal;
    bay_str client;
    const mcp_revision *revision;
    unsigned inputs;
} session_about;

/* A session that nobody has heard of yet: session_began follows, or
 * session_undo. BAY_ERR_BUSY,
 * BAY_ERR_LIMIT, BAY_ERR_NOMEM. */
bay_err session_make(mcp_server *server, mcp_connection *connection, const session_about *about,
                     mcp_session **out) BAY_MUST_CHECK;
void session_began(mcp_session *self);
/* Frees one that nobody has heard of. */
void session_undo(mcp_session *self);

/* What is to be kept of it changed; see mcp_persistence.changed. */
bool session_changed(mcp_session *self, mcp_keep how);

/* A session for this client. `connection` NULL: over HTTP, it gets an id and joins the table.
 * BAY_ERR_BUSY: as many as there may be; BAY_ERR_LIMIT: what the client says of itself is too long;
 * BAY_ERR_NOMEM. */
bay_err session_new(mcp_server *server, mcp_connection *connection, const mcp_revision *revision,
                    json_val client_info, json_val capabilities, const auth_principal *principal,
                    mcp_session **out) BAY_MUST_CHECK;

/* Ends it: its requests get an error and are cancelled, its streams end, the service hears of it.
 */
void session_end(mcp_session *self);

/* The session of that id if it is this caller's; NULL otherwise: an id alone is no right. */
mcp_session *session_find(mcp_server *server, bay_str id, const auth_principal *principal);

void session_touch(mcp_session *self);
/* Requests under way or a client that listens: not idle, however long it says nothing. */
bool session_is_busy(const mcp_session *self);
/* Ends those idle for too long; when the next one may be. */
uint64_t sessions_tick(mcp_server *server);

peer *session_peer(mcp_session *self);

/* Fills in what a request of this session knows of its client. BAY_ERR_NOMEM. */
bay_err session_introduce(mcp_session *self, request *to) BAY_MUST_CHECK;

/* A notification that belongs to no request: on the GET stream or the connection; dropped when the
 * client never listened. */
void session_notify(mcp_session *self, buf *json);
/* Where it has no standing stream: that of a request under way, which is one the client listens to.
 * NULL: there is none, or the standing one or a connection does. */
response_channel *session_channel(mcp_session *self);

#endif
