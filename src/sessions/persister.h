/* The persister of one endpoint's sessions: gives them ids that only this gateway can have made,
 * has them kept in the store where there is one, and finds there what the endpoint's engine does
 * not hold.
 *
 * An id reads "<loop, hexadecimal>-<sealed>": sealed are the session's number and its revision,
 * bound to the endpoint and to the principal. One that was made up, cut, or brought by somebody
 * else never gets as far as the store. */
#ifndef SESSIONS_PERSISTER_H
#define SESSIONS_PERSISTER_H

#include "auth/seal.h"
#include "mcp/persistence.h"
#include "sessions/store.h"

typedef struct session_persister session_persister;

typedef struct session_persister_options {
    bay_str endpoint; /* as in its path after /mcp/; empty: all. Copied */
    uint32_t worker;
    loop *loop;
    const seal_ring *ring; /* borrowed */
    session_store *store;  /* borrowed; NULL: nothing is kept */
} session_persister_options;

bay_err session_persister_new(const session_persister_options *options,
                              session_persister **out) BAY_MUST_CHECK;
/* After its engine; NULL is fine. Whoever still waits for a session hears BAY_ERR_CANCELLED. */
void session_persister_free(session_persister *self);

/* For mcp_server_options; its user is the persister. */
extern const mcp_persistence session_persister_ops;

/* Other keys from now on: sessions whose ids none of them opens end. */
void session_persister_set_ring(session_persister *self, const seal_ring *ring, mcp_server *engine);

/* As mcp_http_router_options.session_lookup. BAY_ERR_NOT_FOUND at once for an id that was not made
 * here, for this endpoint and principal. */
bay_err session_persister_find(session_persister *self, mcp_server *engine, bay_str id,
                               const auth_principal *principal,
                               void (*done)(void *user, bay_err err), void *user) BAY_MUST_CHECK;

/* How often the store was asked. */
uint64_t session_persister_searches(const session_persister *self);

#endif
