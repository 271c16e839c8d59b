/* One document from the web, whole and bounded: a card, a key set. */
#ifndef AGENTS_FETCH_H
#define AGENTS_FETCH_H

#include "base/buf.h"
#include "http/http_client.h"

enum { AGENTS_ETAG_BYTES = 128, AGENTS_FETCH_MS = 15000 };

typedef struct agents_fetch agents_fetch;

/* Said exactly once, unless agents_fetch_fini ended it first; may begin the next one. `err`
 * BAY_OK: an answer came, of whatever status. `text` says why not, for a person. */
typedef void (*agents_fetch_done)(void *user, bay_err err, const char *text);

/* Embedded in its owner; what came may be read from `done` on until the next start. */
struct agents_fetch {
    loop *loop;
    http_call *call; /* NULL: nothing is under way */
    loop_timer timeout_timer;
    agents_fetch_done done;
    void *user;
    int status;
    buf body;
    char etag[AGENTS_ETAG_BYTES]; /* "": none, or a longer one */
    bool may_be_json;             /* its Content-Type does not say otherwise */
    bool has_max_age;
    uint64_t max_age_s;
};

void agents_fetch_init(agents_fetch *self, loop *loop);
void agents_fetch_fini(agents_fetch *self); /* cancels */

/* GET, of at most `max_bytes`. Nothing may be under way. `fields` are borrowed for the call.
 * Redirects are answers like others.
 * Errors: as http_client_call, and `done` is not said then. */
bay_err agents_fetch_start(agents_fetch *self, http_client *http, bay_str url, size_t max_bytes,
                           const http_field *fields, size_t count, agents_fetch_done done,
                           void *user, bay_diag *diag) BAY_MUST_CHECK;

#endif
