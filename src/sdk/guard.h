/* A bay_guard as servers have it: what was registered, and while it serves its link to that loop. */
#ifndef SDK_GUARD_H
#define SDK_GUARD_H

#include "oauth/gate.h"
#include "patchbay/guard.h"
#include "sdk/host.h"

enum {
    SDK_GUARD_KEYS = 1024,             /* API keys of one guard */
    SDK_GUARD_MEMORY_BYTES = 16 << 20, /* everything that is registered */
    SDK_GUARD_FAILURES = 300,          /* of one address, in a minute */
    SDK_GUARD_SECRET_BYTES = 16,       /* of an API key, at least */
};

bay_guard *sdk_guard_ref(bay_guard *self);
/* Nothing can be registered any more. Why it cannot serve; NULL: it can. */
const char *sdk_guard_seal(bay_guard *self);
/* As listen_policy.missing_url; NULL of NULL. */
const char *sdk_guard_missing_url(const bay_guard *self);

/* The text of a key set: itself, or what is in the file of that name. */
bay_err sdk_keys_read(const char *keys, buf *out, bay_diag *diag) BAY_MUST_CHECK;

/* ---- while it serves, on one loop ------------------------------------------------------------ */

typedef struct sdk_gate sdk_gate;

/* `agent`: the path of an agent, which is its one endpoint; NULL: an MCP server.
 * Owns: the caller. Errors: with `diag`. */
bay_err sdk_gate_open(bay_guard *guard, const sdk_host *host, loop *on, const bay_str *agent,
                      sdk_gate **out, bay_diag *diag) BAY_MUST_CHECK;
void sdk_gate_close(sdk_gate *self); /* NULL is fine */
/* As front_options.identify. */
front_verdict sdk_gate_identify(sdk_gate *self, const front_request *request,
                                const auth_principal **out_principal, front_refusal *out);
/* As http_replies.challenge. */
void sdk_gate_challenge(sdk_gate *self, http_exchange *exchange, bay_str scopes,
                        front_challenge *out);
/* As front_row.serve. */
bool sdk_gate_serve_metadata(sdk_gate *self, const front_request *request);

#endif
