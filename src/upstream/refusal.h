/* An authority that gives no fields: each request with it fails, in a later turn, with one error and its
 * text. It stands where a caller has no credential, so that his call is not sent without one. */
#ifndef UPSTREAM_REFUSAL_H
#define UPSTREAM_REFUSAL_H

#include "http/http_client.h"

typedef struct refusal {
    http_authority http; /* first: http_authority functions get it */
    loop *loop;
    loop_task task;
    list waiting;
    bay_err err;
    const char *text; /* static */
} refusal;

void refusal_init(refusal *self, loop *loop, bay_err err, const char *text);
void refusal_fini(refusal *self); /* after the requests */

#endif
