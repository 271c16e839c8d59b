/* Rounds for clients of the session revisions: a server of the stateless revision answers
 * `input_required`, and such a client knows no such answer. So what is asked goes out to it as
 * requests on the call's own stream, several at once; with the answers the call is sent again, and
 * with the server's requestState, byte for byte, until the server has all it wants.
 *
 *   sent --input_required--> asking --all answered--> sent again
 *               \--requestState alone--> waiting --its time has come--> sent again
 *
 * The client ends the call when it refuses to answer; so do input it has not declared, too many
 * rounds and silence. Each of these has one outcome, which says why (docs/guide/eras.md). */
#ifndef ENDPOINT_MRTR_LOOP_H
#define ENDPOINT_MRTR_LOOP_H

#include "json/json.h"

enum {
    MRTR_MOST = 32,            /* of one call */
    MRTR_REQUESTS = 64,        /* in one round */
    MRTR_BYTES = 16 << 20,     /* of what is asked and answered in one round */
    MRTR_MAX_BYTES = 64 << 20, /* of what is asked just now, of one endpoint */
    MRTR_WAIT_MS = 100,        /* before the second try without anything asked; doubled each time */
    MRTR_WAIT_MOST_MS = 10000,
};

struct route;

typedef struct mrtr_loop mrtr_loop;

/* The server's result asks for input. The call has ended or goes on when this returns, and the
 * route with it. */
void mrtr_take(struct route *of, json_val result);
/* What is open is taken back. NULL is fine. */
void mrtr_free(mrtr_loop *self);

#endif
