/* Stores the sessions of an engine beyond the engine's life: the persister makes their ids, is
 * notified of each change, and restores one with mcp_session_restore. For sessions over HTTP only;
 * a session on a connection ends with it. Without a persister ids are random bits and no session
 * survives.
 *
 *   engine ──name, changed, logged, ended──► persister (the gateway's, with a store)
 *   engine ◄──mcp_session_kept, mcp_session_restore── persister
 *
 * None of its functions may call back into the engine, except mcp_session_write. */
#ifndef MCP_PERSISTENCE_H
#define MCP_PERSISTENCE_H

#include "mcp/server.h"

enum { MCP_SESSION_ID_BYTES = 192 }; /* longest id */

typedef enum mcp_keep {
    MCP_KEEP_LATER,   /* may be stored late */
    MCP_KEEP_SOON,    /* the client knows of the change */
    MCP_KEEP_AWAITED, /* the client is not answered before it is stored */
} mcp_keep;

typedef struct mcp_persistence {
    /* Appends the id of a new session: mcp_session_prefix, then any of A-Z a-z 0-9 - _.
     * BAY_ERR_NOMEM, or another error that prevents it. */
    bay_err (*name)(void *user, const mcp_revision *revision, const auth_principal *principal,
                    buf *out);
    /* What mcp_session_write writes has changed. True: it is being stored; mcp_session_kept
     * follows, never inside this call, also if storing fails. */
    bool (*changed)(void *user, mcp_session *session, mcp_keep how);
    /* One event of a stream. `is_last`: the stream's last. */
    void (*logged)(void *user, mcp_session *session, uint32_t stream, uint32_t seq, bool is_last,
                   bay_str text);
    /* The session has ended; `is_for_good` false: only in this engine, another may restore it. */
    void (*ended)(void *user, mcp_session *session, bool is_for_good);
    /* Appends the answer to a request that was under way when its engine ended: a whole message. */
    void (*lost)(void *user, bay_str id, bay_str method, buf *out);
} mcp_persistence;

/* "<worker, hexadecimal>-": the prefix of every id. */
void mcp_session_prefix(uint32_t worker, buf *out);

/* Appends, as one JSON object, what another engine needs to continue the session, without its
 * events. */
void mcp_session_write(const mcp_session *self, buf *out);
/* The persister's pointer for a session, NULL at first. */
void *mcp_session_kept_by(const mcp_session *self);
void mcp_session_set_kept_by(mcp_session *self, void *kept);
/* The number of its newest stream. */
uint32_t mcp_session_last_stream(const mcp_session *self);
/* After `changed` returned true: streams up to this number may send. */
void mcp_session_kept(mcp_session *self, uint32_t through);

typedef struct mcp_kept_event {
    uint32_t stream;
    uint32_t seq;
    bool is_last;
    bay_str text;
} mcp_kept_event;

/* Whether it holds a session with this id, of any principal. */
bool mcp_server_holds(const mcp_server *self, bay_str session_id);

/* Restores a session that another engine wrote, with its events in their order. Requests that were
 * under way get the persister's answer on their streams. A session that it holds already stays
 * unchanged. `kept_by`: as for mcp_session_set_kept_by; the caller keeps it on failure, and if the
 * session was held. Errors: BAY_ERR_SYNTAX: not written by mcp_session_write, or by a later
 * release; BAY_ERR_BUSY: at the limit of sessions; BAY_ERR_NOMEM. */
bay_err mcp_session_restore(mcp_server *server, bay_str id, const auth_principal *principal,
                            bay_str written, const mcp_kept_event *events, size_t count,
                            void *kept_by, uint64_t now_ms) BAY_MUST_CHECK;

#endif
