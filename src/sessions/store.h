/* The sessions of one loop in the store: a row for each, and a stream of its events. A worker has a
 * handle of its own on the file; endpoints of the worker share it.
 *
 *   clean ──changed──► due ──turn's end, or a second later──► being written ──► clean (or due
 * again)
 *
 * Rows and events are relaxed writes: they survive the death of the process, and a loss of power
 * once a later durable write has completed. A store that fails keeps nobody from being served: it
 * is said once, and what was to be kept is not. */
#ifndef SESSIONS_STORE_H
#define SESSIONS_STORE_H

#include "base/list.h"
#include "config/config.h"
#include "mcp/persistence.h"
#include "net/loop.h"
#include "store/store.h"

typedef struct session_store session_store;

/* What the store has to say about one session; a word of the engine's session. */
typedef struct kept_session {
    list_link link; /* in due or later; in ended when it is over for good */
    session_store *store;
    mcp_session *session; /* NULL: it ended */
    uint64_t number;
    uint32_t shown;     /* streams up to this one stand in the row that is being written */
    bool is_writing;    /* and is freed by the end of that, when the session ended */
    bool is_awaited;    /* a stream waits for the next row … */
    bool is_promised;   /* … and one for this */
    list_link awaiting; /* in awaited while either is so */
    uint64_t since_ms;
    bool has_events;
    bool is_gone;     /* over for good, and its row may still be there */
    bool is_removing; /* that row is being removed */
    uint64_t until_ms;
} kept_session;

/* Opens the configuration's store for this loop. *out is NULL where none is configured.
 * Errors: as store_open_sqlite. */
bay_err session_store_open(loop *loop, const config *settings, session_store **out,
                           bay_diag *diag) BAY_MUST_CHECK;
/* The store itself, for what else is in it; NULL of NULL. It lives as long as the sessions do. */
store *session_store_rows(const session_store *self);
/* The same over a store that is open; it is taken, also on failure. BAY_ERR_NOMEM. */
bay_err session_store_new(loop *loop, const config *settings, store *file,
                          session_store **out) BAY_MUST_CHECK;
/* Writes what is due, and waits until everything under way is written, at most so long. The loop
 * is not turning. */
void session_store_flush(session_store *self, uint32_t within_ms);
/* Closes and frees it, and turns the loop for that; no kept session is left. NULL is fine. */
void session_store_free(session_store *self);

/* NULL: no memory. */
kept_session *kept_session_new(session_store *self, uint64_t number);
/* The session ended: for good, and row and events go; or here alone, and they stay as they are. */
void kept_session_end(kept_session *self, bool is_for_good);
/* What mcp_persistence.changed says. */
bool kept_session_changed(kept_session *self, mcp_keep how);
void kept_session_logged(kept_session *self, uint32_t stream, uint32_t seq, bool is_last,
                         bay_str text);

/* ---- finding one again */

typedef struct found_session {
    bay_str written; /* as mcp_session_write did */
    const mcp_kept_event *events;
    size_t count;
} found_session;

/* Looks for the row and the events of a session. BAY_OK: `done` follows exactly once, never inside
 * this call; `found` is there with BAY_OK alone, and until `done` returns. Otherwise nothing was
 * started: BAY_ERR_NOT_FOUND: it is over; BAY_ERR_BUSY, BAY_ERR_NOMEM, BAY_ERR_CLOSED. */
typedef void (*session_found)(void *user, bay_err err, const found_session *found);
bay_err session_store_find(session_store *self, uint64_t number, session_found done,
                           void *user) BAY_MUST_CHECK;

#endif
