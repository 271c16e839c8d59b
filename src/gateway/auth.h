/* Who comes in over HTTP: what `auth` of the configuration demands, and what profiles with an `auth`
 * of their own demand in its place.
 *
 *   gateway_auth ── guards, shared by all workers, counted; a reload makes another
 *        └─ worker_auth ── a worker's links to them, the look-up of API keys, requests that wait
 *
 * The resource of an endpoint is publicUrl and its path; that of HTTP+SSE and gRPC, whose paths
 * name no endpoint, is publicUrl alone. A token for publicUrl is good at every endpoint that the
 * file's `auth` guards. */
#ifndef GATEWAY_AUTH_H
#define GATEWAY_AUTH_H

#include "config/config.h"
#include "front/front.h"
#include "oauth/guard.h"
#include "store/store.h"

typedef struct gateway_auth gateway_auth;

/* `before`: what was in force; it is kept where nothing of it changed, and its memory of verified
 * credentials in any case. NULL: nothing was.
 * Owns: the caller, one reference. Errors: with `diag`. */
bay_err gateway_auth_new(const config *settings, const gateway_auth *before,
                         const gateway_auth **out, bay_diag *diag) BAY_MUST_CHECK;
const gateway_auth *gateway_auth_ref(const gateway_auth *self);
void gateway_auth_unref(const gateway_auth *self); /* NULL is fine */

/* Errors: what of it cannot be used, such as a file of keys that holds none; with `diag`. */
bay_err gateway_auth_check_issuer(const config_issuer *issuer, bay_diag *diag) BAY_MUST_CHECK;

/* What listening.c must know: is every endpoint guarded? */
bool gateway_auth_guards_all(const config *settings);

typedef struct worker_auth worker_auth;
struct worker;

/* `keys`: where API keys are; NULL where there is no store. Both outlive it.
 * Owns: the caller. Errors: with `diag`. */
bay_err worker_auth_new(struct worker *of, const gateway_auth *auth, store *keys, worker_auth **out,
                        bay_diag *diag) BAY_MUST_CHECK;
/* Requests that wait are answered 503. NULL is fine. */
void worker_auth_free(worker_auth *self);
const gateway_auth *worker_auth_of(const worker_auth *self);
/* Is it the path of a profile with an `auth` of its own? */
bool worker_auth_is_apart(const worker_auth *self, bay_str path);
/* As front_options.identify. */
front_verdict worker_auth_identify(worker_auth *self, const front_request *request,
                                   const auth_principal **out_principal, front_refusal *out);
/* How a caller who lacks these scopes asks for them: as http_replies.challenge. */
void worker_auth_challenge(worker_auth *self, http_exchange *exchange, bay_str scopes,
                           front_challenge *out);
/* "https://tools.example": how whoever sent a request to that Host reaches the gateway. Lives as
 * long as `self`. */
bay_str worker_auth_base(worker_auth *self, bay_str host);
/* NULL: nobody logs in here. */
struct worker_login *worker_auth_login(const worker_auth *self);
/* Logins of users at servers; NULL: nobody logs in here. */
struct worker_connect *worker_auth_connect(const worker_auth *self);
/* The place of what fetches documents of clients; NULL in it: nothing was fetched yet. */
struct worker_proxy **worker_auth_proxy(worker_auth *self);
/* Protected resource metadata of the endpoint that the path names. False: nothing is at that
 * address. Source: RFC 9728 section 3. */
bool worker_auth_serve_metadata(worker_auth *self, const front_request *request);

#endif
