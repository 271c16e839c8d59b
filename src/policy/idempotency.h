/* Idempotency: of calls with the same key one is carried out. The key is what the caller gives (in
 * `_meta`, in an HTTP header field, in an argument), or is made of the arguments for tools that are
 * configured so. It is never the JSON-RPC id: a call that is repeated has another one, and ids
 * begin anew in each session.
 *
 * A key counts within a principal, a server and a tool. What the server gets is a keyed digest of
 * these and the key, never the caller's own: two principals that both write "1" must not meet
 * there. */
#ifndef POLICY_IDEMPOTENCY_H
#define POLICY_IDEMPOTENCY_H

#include "auth/principal.h"
#include "auth/seal.h"
#include "policy/outcomes.h"
#include "policy/tools.h"

enum {
    IDEMPOTENCY_KEY_BYTES = 255,             /* of a caller's key; a longer one is refused */
    IDEMPOTENCY_KEEP_MS = 24 * 3600 * 1000,  /* an outcome, by default */
    IDEMPOTENCY_DERIVED_KEEP_MS = 60 * 1000, /* where the key is made of the arguments */
    IDEMPOTENCY_UPSTREAM_BYTES = 2 * SEAL_DIGEST_BYTES, /* hexadecimal digits */
};

typedef struct idempotency_call {
    const policy_idempotency *how;
    const auth_principal *principal; /* NULL: anonymous */
    bay_str server;
    bay_str name; /* of the tool */
    json_val params;
    const policy_tool_field *fields; /* of the HTTP request */
    size_t field_count;
    bay_str arguments_digest; /* of the canonical form */
    const seal_ring *ring;    /* NULL: the server gets no key */
    arena *memory;
} idempotency_call;

/* Out: `out_upstream`: what the server gets as key; "": nothing.
 * Errors: BAY_ERR_NOT_FOUND: the call has no key. BAY_ERR_INVALID: it has one that cannot be used;
 * `diag` says why. BAY_ERR_NOMEM; BAY_ERR_UNSUPPORTED in a library without OpenSSL.
 * Threads: any. */
bay_err idempotency_read(const idempotency_call *self, outcome_key *out, bay_str *out_upstream,
                         bay_diag *diag) BAY_MUST_CHECK;

/* May a call of this tool have a key at all? (Then its arguments' digest is needed.) Cheap. */
bool idempotency_has_key(const idempotency_call *self);

#endif
