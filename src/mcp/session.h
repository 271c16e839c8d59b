/* Legacy sessions: the table of those over HTTP, their ids, their end. Internal to the server
 * engine. */
#ifndef MCP_SESSION_H
#define MCP_SESSION_H

#include "mcp/server_internal.h"

/* Longest clientInfo with capabilities that is stored. */
enum { SESSION_MAX_CLIENT = 64 * 1024 };

/* The parts of a session; copied. */
typedef struct session_about {
    bay_str id; /* empty: on a connection */
    const auth_principal *principal;
    bay_str client;
    const mcp_revision *revision;
    unsigned inputs;
} session_about;

/* Creates a session without notifying anyone: session_began follows, or session_undo. BAY_ERR_BUSY,
 * BAY_ERR_LIMIT, BAY_ERR_NOMEM. */
bay_err session_make(mcp_server *server, mcp_connection *connection, const session_about *about,
                     mcp_session **out) BAY_MUST_CHECK;
void session_began(mcp_session *self);
/* Frees a session that session_began was not called for. */
void session_undo(mcp_session *self);

/* What is stored of it changed; see mcp_persistence.changed. */
bool session_changed(mcp_session *self, mcp_keep how);

/* A session for this client. `connection` NULL: over HTTP, it gets an id and joins the table.
 * BAY_ERR_BUSY: at the limit of sessions; BAY_ERR_LIMIT: the client's description is too long;
 * BAY_ERR_NOMEM. */
bay_err session_new(mcp_server *server, mcp_connection *connection, const mcp_revision *revision,
                    json_val client_info, json_val capabilities, const auth_principal *principal,
                    mcp_session **out) BAY_MUST_CHECK;

/* Ends it: its requests get an error and are cancelled, its streams end, the service is notified.
 */
void session_end(mcp_session *self);

/* The session of this id if it belongs to this principal; otherwise NULL: an id alone gives no
 * access. */
mcp_session *session_find(mcp_server *server, bay_str id, const auth_principal *principal);

void session_touch(mcp_session *self);
/* It has open requests or a client that reads: not idle. */
bool session_is_busy(const mcp_session *self);
/* Ends those idle for too long; returns when the next may be. */
uint64_t sessions_tick(mcp_server *server);

peer *session_peer(mcp_session *self);

/* Sets what a request of this session knows of its client. BAY_ERR_NOMEM. */
bay_err session_introduce(mcp_session *self, request *to) BAY_MUST_CHECK;

/* A notification that belongs to no request: on the GET stream or the connection; dropped if the
 * client never opened one. */
void session_notify(mcp_session *self, buf *json);
/* Where it has no standing stream: that of a request under way, which is one the client listens to.
 * NULL: there is none, or the standing one or a connection does. */
response_channel *session_channel(mcp_session *self);

#endif
