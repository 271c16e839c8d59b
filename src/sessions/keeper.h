/* The keeper of one face's sessions: gives them ids that only this gateway can have made, has them
 * kept in the store where there is one, and finds there what the face's engine does not hold.
 *
 * An id reads "<loop, hexadecimal>-<sealed>": sealed are the session's number and its revision,
 * bound to the face and to the principal. One that was made up, cut, or brought by somebody else
 * never gets as far as the store. */
#ifndef SESSIONS_KEEPER_H
#define SESSIONS_KEEPER_H

#include "auth/seal.h"
#include "mcp/keeper.h"
#include "sessions/store.h"

typedef struct session_keeper session_keeper;

typedef struct session_keeper_options {
    bay_str face; /* as in its path after /mcp/; empty: all. Copied */
    uint32_t worker;
    loop *loop;
    const seal_ring *ring; /* borrowed */
    session_store *store;  /* borrowed; NULL: nothing is kept */
} session_keeper_options;

bay_err session_keeper_new(const session_keeper_options *options,
                           session_keeper **out) BAY_MUST_CHECK;
/* After its engine; NULL is fine. Whoever still waits for a session hears BAY_CANCELLED. */
void session_keeper_free(session_keeper *self);

/* For mcp_server_options; its user is the keeper. */
extern const mcp_keeper session_keeper_ops;

/* Other keys from now on: sessions whose ids none of them opens end. */
void session_keeper_set_ring(session_keeper *self, const seal_ring *ring, mcp_server *engine);

/* As http_face_options.recall. BAY_NOTFOUND at once for an id that was not made here, for this face
 * and principal. */
bay_err session_keeper_recall(session_keeper *self, mcp_server *engine, bay_str id,
                              const auth_principal *principal,
                              void (*done)(void *user, bay_err err), void *user) BAY_MUST_CHECK;

/* How often the store was asked. */
uint64_t session_keeper_searches(const session_keeper *self);

#endif
