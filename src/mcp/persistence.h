/* What keeps the sessions of an engine beyond the engine: it names them, is told what there is to
 * know of each, and brings one back by mcp_session_restore. Sessions over HTTP only; one on a
 * connection ends with it. Without a persister ids are random bits and nothing survives.
 *
 *   engine ──name, changed, logged, ended──► persister (the gateway's, with a store)
 *   engine ◄──mcp_session_kept, mcp_session_restore── persister
 *
 * None of its functions may call back into the engine, but for mcp_session_write. */
#ifndef MCP_PERSISTENCE_H
#define MCP_PERSISTENCE_H

#include "mcp/server.h"

enum { MCP_SESSION_ID_BYTES = 192 }; /* longest id */

typedef enum mcp_keep {
    MCP_KEEP_LATER,   /* it matters little */
    MCP_KEEP_SOON,    /* the client was told that it is so */
    MCP_KEEP_AWAITED, /* and is told nothing before it is kept */
} mcp_keep;

typedef struct mcp_persistence {
    /* Appends the id of a session that begins: mcp_session_prefix, then any of A-Z a-z 0-9 - _.
     * BAY_ERR_NOMEM, or whatever keeps it from being made. */
    bay_err (*name)(void *user, const mcp_revision *revision, const auth_principal *principal,
                    buf *out);
    /* What mcp_session_write says of it is not what it was. True: it is being kept;
     * mcp_session_kept follows, never inside this call, also when that fails. */
    bool (*changed)(void *user, mcp_session *session, mcp_keep how);
    /* One event of a stream. `is_last`: nothing more comes on this stream. */
    void (*logged)(void *user, mcp_session *session, uint32_t stream, uint32_t seq, bool is_last,
                   bay_str text);
    /* It is over; not for good: here alone, another engine may take it up. */
    void (*ended)(void *user, mcp_session *session, bool is_for_good);
    /* Appends the answer to a request that was under way when its engine died: a whole message. */
    void (*lost)(void *user, bay_str id, bay_str method, buf *out);
} mcp_persistence;

/* "<worker, hexadecimal>-": how every id begins. */
void mcp_session_prefix(uint32_t worker, buf *out);

/* What another engine has to know to go on with it, as one JSON object, appended. Its events are
 * not part of it. */
void mcp_session_write(const mcp_session *self, buf *out);
/* What the persister has to say about a session: one word, NULL at first. */
void *mcp_session_kept_by(const mcp_session *self);
void mcp_session_set_kept_by(mcp_session *self, void *kept);
/* The number of its newest stream. */
uint32_t mcp_session_last_stream(const mcp_session *self);
/* After `changed` said true: streams up to this number begin to speak, if they waited. */
void mcp_session_kept(mcp_session *self, uint32_t through);

typedef struct mcp_kept_event {
    uint32_t stream;
    uint32_t seq;
    bool is_last;
    bay_str text;
} mcp_kept_event;

/* Does it hold a session of that id, whoever asks? */
bool mcp_server_holds(const mcp_server *self, bay_str session_id);

/* Takes up a session that another engine wrote, with its events in their order. Requests that were
 * under way get the persister's answer on their streams. One that it holds already stays as it is.
 * `kept_by`: as by mcp_session_set_kept_by; still the caller's on failure, and when it was held.
 * Errors: BAY_ERR_SYNTAX: not written by mcp_session_write, or by a later release; BAY_ERR_BUSY: as
 * many sessions as there may be; BAY_ERR_NOMEM. */
bay_err mcp_session_restore(mcp_server *server, bay_str id, const auth_principal *principal,
                            bay_str written, const mcp_kept_event *events, size_t count,
                            void *kept_by, uint64_t now_ms) BAY_MUST_CHECK;

#endif
