/* Users log in at servers and agents whose `credentials` have `grant: user`: the page that fills the
 * vault.
 *
 *   a call without a login ── link ──► /connect/NAME?for=SEAL     gateway/login.h says who looks
 *        form, POST ──► the server's authorization server ──► /connect?code=…
 *        ──► the user's row of the vault; clients that were asked are told
 *
 * Invariants
 * - The row is that of the user whose browser it is. A link that was made for another user leads to a
 *   page that says so: the login that follows from a link is never of somebody else than its caller.
 * - A link proves nothing, and opening it changes nothing: a login begins with the form's POST.
 * - State and verifier are sealed, for one user and server, in a cookie of the browser that began; the
 *   redirect counts once.
 * - Tokens are in the vault before the page says so, and nowhere else.
 *
 * For the whole header: Threads: the worker's. Source: mcp 2025-11-25 and 2026-07-28
 * client/elicitation, URL Mode; RFC 6749, 7636, 9207. */
#ifndef GATEWAY_CONNECT_H
#define GATEWAY_CONNECT_H

#include "auth/principal.h"
#include "front/front.h"

enum {
    CONNECT_STEPS = 64,        /* of one loop, that wait for a server at one time: 503 */
    CONNECT_MS = 20000,        /* for one step: 503 */
    CONNECT_LINK_MS = 3600000, /* a link is good for */
    CONNECT_ID_BYTES = 64,     /* of an elicitation's id */
};
#define CONNECT_DOCUMENT_PATH "/oauth/client.json"

typedef struct worker_connect worker_connect;
struct worker;

/* Owns: the caller. Errors: BAY_ERR_NOMEM. */
bay_err worker_connect_new(struct worker *of, worker_connect **out) BAY_MUST_CHECK;
/* Browsers that wait get 503. NULL is fine. */
void worker_connect_free(worker_connect *self);

/* Appends the link to the page where `who` logs in at that server or agent; `id`: of an elicitation
 * that is done with the login, or "". As endpoint_login.link; `user` is the worker.
 * Errors: BAY_ERR_UNSUPPORTED: there is no such page; BAY_ERR_DENIED: `who` cannot log in to the
 * gateway with a browser; BAY_ERR_NOMEM. */
bay_err worker_connect_link(void *user, const auth_principal *who, bay_str server, bay_str id,
                            buf *out) BAY_MUST_CHECK;

/* Appends the address of that page, for whoever opens it. False: there is none. As
 * agents_settings.login_page; `user` is the worker. */
bool worker_connect_page(void *user, bay_str server, buf *out);

/* The rows; `user` is the worker. */
bool worker_connect_serve(void *user, const front_request *request);
/* The gateway's own client id metadata document. */
bool worker_connect_document(void *user, const front_request *request);

#endif
