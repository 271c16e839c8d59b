/* Suspended calls: a server of the session revisions asks for something during the call of a client
 * of the stateless revision, whose answer can only come with another request. The client is
 * answered `input_required`; the call to the server lives on and waits for the retry.
 *
 *   under way --asked, end of the turn--> suspended --retry--> under way --done--> gone
 *       \                                   |--its time is over--> cancelled, gone
 *        \--done--> gone                    \--done--> ended (its outcome waits) --retry--> gone
 *
 * What is asked in one turn of the loop goes out in one result. The retry's requestState is a token
 * (sessions/token.h): it names the loop, the call and its round, and is bound to the principal;
 * method, name and the digest of the canonical arguments must be those of the first request. A
 * state is good once: it is of a round, and the next round has another. Whatever a state is not
 * good for, the call stays as it is.
 *
 * A call that may be suspended has its memory on the heap, apart from any request's: a few hundred
 * bytes and the params of what is asked. What the upstream was sent, the upstream has kept; from
 * the first question on the call is never sent again, so its `spec` is empty from then on. */
#ifndef ENDPOINT_SUSPENDED_CALL_H
#define ENDPOINT_SUSPENDED_CALL_H

#include "base/list.h"
#include "base/map.h"
#include "mcp/client.h"
#include "mcp/server.h"
#include "net/loop.h"

enum {
    SUSPENDED_ROUNDS = 32,              /* of one call; then it is given up */
    SUSPENDED_OUTCOME_BYTES = 1 << 20,  /* of a call that ended while nobody was there */
    SUSPENDED_MAX_BYTES = 64 * 1048576, /* of questions and outcomes of one endpoint */
};

struct endpoint;
struct route;

typedef struct suspended_call suspended_call;

/* Those of one endpoint. */
typedef struct suspended_calls {
    map calls;   /* by number */
    list order;  /* that wait for the client; the first to expire first */
    list asking; /* that have something for it */
    loop_task tell;
    loop_timer expire;
    uint64_t instance; /* tells this endpoint from any other */
    uint64_t last_number;
    size_t bytes;
} suspended_calls;

void suspended_calls_init(struct endpoint *of);
/* Gives up whatever waits. */
void suspended_calls_fini(struct endpoint *of);

/* Can a call of this client be suspended here at all? */
bool suspended_call_is_possible(const struct endpoint *of, const mcp_request *request);
/* A route of its own memory, with copies and a reference of its own. NULL: out of memory. */
struct route *suspended_call_new(struct endpoint *of, const auth_principal *principal,
                                 bay_str identity);
/* Out of every list, and gone: for route_end. */
void suspended_call_free(suspended_call *self);

/* It has questions for the client, who is there. */
void suspended_call_ask(suspended_call *self);
/* Stores the outcome of a call that ended without a client request; the next retry gets it. */
void suspended_call_store_outcome(suspended_call *self, const mcp_outcome *outcome);

/* Takes a request that brings back a state of ours: resumes its call, or refuses it. False: there
 * is none, or it is nobody's we know; nothing was done. */
bool suspended_call_resume(struct endpoint *of, mcp_request *request);

#endif
