/* The gateway as an authorization server (`auth.proxy`), for clients that cannot register at the
 * provider where people log in: a facade that gives out codes and tokens of its own.
 *
 *   client ── register ──► /oauth/register     the client id is the registration, sealed; or it is the
 *                                              URL of a document that says the same
 *   browser ── /oauth/authorize ──► login (gateway/login.h) ──► consent ──► redirect with a code
 *   client ── code, verifier ──► /oauth/token ──► access and refresh token
 *                                /oauth/revoke
 *
 * Invariants
 * - A code exists only after a POST of the consent page, from the session of the browser that saw it,
 *   for exactly the request that it showed. Consent is never remembered, and the provider's own is
 *   never enough.
 * - Without that POST nobody is redirected to a client: what is wrong is shown on a page.
 * - The provider's tokens are dropped at the login. Ours are good at this gateway alone.
 *
 * Threads: the worker's. Source: RFC 6749, 7009, 7591, 7636, 8252, 8414, 8707, 9207, 9700. */
#ifndef GATEWAY_PROXY_H
#define GATEWAY_PROXY_H

#include <stdatomic.h>

#include "auth/failure_limit.h"
#include "front/front.h"
#include "gateway/auth.h"
#include "oauth/grants.h"
#include "oauth/proxy_client.h"

enum {
    PROXY_REGISTRATIONS = 60, /* of one address in a minute; a further one gets 429 */
    PROXY_FORM_BYTES = 16 << 10,
    PROXY_STATE_BYTES = 512,
    PROXY_DOCUMENTS = 16, /* of clients, fetched by one loop at one time; a further one: 503 */
};
#define PROXY_METADATA_PATH "/.well-known/oauth-authorization-server"

/* What the workers of a process share of it. Counted; NULL is fine. */
typedef struct gateway_proxy {
    atomic_uint references;
    oauth_grants *grants;
    failure_limit *registrations;
} gateway_proxy;
bay_err gateway_proxy_new(const config_proxy *settings, gateway_proxy **out) BAY_MUST_CHECK;
gateway_proxy *gateway_proxy_ref(gateway_proxy *self);
void gateway_proxy_unref(gateway_proxy *self);

/* The rows; `user` is the worker. */
bool worker_proxy_metadata(void *user, const front_request *request);
bool worker_proxy_register(void *user, const front_request *request);
bool worker_proxy_authorize(void *user, const front_request *request);
bool worker_proxy_token(void *user, const front_request *request);
bool worker_proxy_revoke(void *user, const front_request *request);
extern const http_cors worker_proxy_cors;

/* Fetches documents that describe clients, on one loop. Made with the first one. NULL is fine. */
typedef struct worker_proxy worker_proxy;
/* Who waits gets 503. */
void worker_proxy_free(worker_proxy *self);
/* `client` NULL: there is no such document, or it says something else; `why` for the person. */
typedef void (*proxy_described)(struct worker *self, const front_request *request,
                                const auth_principal *who, const oauth_proxy_client *client,
                                const char *why);
/* proxy_document.c: for a person who is logged in. `done` answers the exchange, later or at once. */
void proxy_describe(struct worker *self, const front_request *request, const auth_principal *who,
                    bay_str client_id, proxy_described done);

/* Between its files: an origin with a slash behind it, as URL libraries write it, is the origin;
 * and what the configuration says; NULL: it is off. */
bay_str proxy_resource(bay_str base, bay_str resource);
const config_auth *worker_proxy_settings(struct worker *self);

#endif
