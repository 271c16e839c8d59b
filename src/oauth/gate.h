/* A guard in front of a front's rows: who sends a request, what he is told when he may not come in,
 * and the metadata of endpoints. One gate per loop and kind of listener; it holds the requests whose
 * check waits.
 *
 * For the whole header: Threads: the loop's. */
#ifndef OAUTH_GATE_H
#define OAUTH_GATE_H

#include "base/list.h"
#include "front/front.h"
#include "oauth/guard.h"

enum { OAUTH_BASES = 8 }; /* of one place; further ones are left out */

typedef struct oauth_gate {
    list waiting;
    /* True: whoever proved who he is does not come in, as `out` says. NULL: everybody does. */
    bool (*turns_away)(void *user, const auth_principal *who, front_refusal *out);
    void *user;
} oauth_gate;

void oauth_gate_init(oauth_gate *self);
/* Requests that wait are answered 503. Before the links of their guards. */
void oauth_gate_fini(oauth_gate *self);

/* As front_options.identify, at that place; its bases are copied, what they view is not. */
front_verdict oauth_gate_identify(oauth_gate *self, oauth_guard_link *link,
                                  const front_request *request, const oauth_place *place,
                                  const auth_principal **out_principal, front_refusal *out);
/* The challenge to a principal that lacks these scopes. Views live as long as the exchange. Source:
 * RFC 6750 section 3.1. */
void oauth_gate_needs(const oauth_guard *guard, bay_str base, bay_str endpoint, bay_str scopes,
                      arena *memory, front_challenge *out);

/* The base that the request was sent to comes first, by its Host: its client knows no other. Only
 * these are named, whatever Host says. */
void oauth_bases_order(bay_str *bases, size_t count, bay_str host);

/* What stands behind OAUTH_METADATA_PATH in a path, without the path of the base: the endpoint,
 * which may be "". */
bay_str oauth_metadata_endpoint(bay_str base, bay_str path);
/* Answers GET and HEAD with the metadata; pages of any origin may read it. False: another verb, or
 * the guard has no issuer: there is no such thing. */
bool oauth_metadata_serve(const oauth_guard *guard, http_exchange *exchange, bay_str base,
                          bay_str endpoint, bay_str name);
extern const http_cors oauth_metadata_cors;

#endif
