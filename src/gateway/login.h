/* People in browsers, on the gateway's public listener: the OpenID Connect login of `auth.login`, and
 * what pages of the gateway ask about who looks at them.
 *
 *   a page ── worker_login_require ──► the principal
 *                   └ nobody: to the provider ──► /login/callback ──► back to the page
 *   /login     the login by itself; ?return=/PATH: where to afterwards
 *   /logout    GET asks, POST with the form's token logs out
 *
 * A page is a row of the front's table with the need FRONT_PUBLIC. It asks first:
 *
 *   const auth_principal *who = worker_login_require(self, request);
 *   if (who == NULL) {
 *       return true;      // answered: the browser is on its way, or was told why not
 *   }
 *   … principal_unref(who);
 *
 * The principal is the one whose access tokens the issuer gives: same issuer, same subject
 * (principal_is_same). It has no scopes, and the claims of the ID token.
 *
 * GET changes nothing. Whoever changes something takes POST only, with a form that has the field
 * `token` from worker_login_form, and asks worker_login_is_form before anything else.
 *
 * Invariants
 * - A session is 256 random bits in a cookie of this host, whose digest leads to the principal. It
 *   is made at a login, never taken from the browser, and ends at its time, at the logout, at a
 *   restart, and with a reload that changes `auth`.
 * - An attempt is in a sealed cookie of the browser that began it: a redirect with another state, or
 *   in another browser, ends at a page that says so. Nothing is kept here for it.
 * - The browser is sent to the provider's page, or to a path below publicUrl; nowhere else.
 *
 * For the whole header: Threads: the worker's. */
#ifndef GATEWAY_LOGIN_H
#define GATEWAY_LOGIN_H

#include "auth/oauth_form.h"
#include "front/front.h"
#include "gateway/auth.h"

enum {
    LOGIN_SESSIONS = 16384, /* of a process: the one that was not used for longest goes */
    LOGIN_USED = 4096,      /* attempts that came back: above that the oldest may come once more */
    LOGIN_RETURN_BYTES = 2000, /* a path to come back to: of a longer one the login's own page */
    LOGIN_FORM_BYTES = 8 << 10,
};

/* What the workers of a process share of logins. Counted; NULL is fine. */
typedef struct login_sessions login_sessions;
bay_err login_sessions_new(login_sessions **out) BAY_MUST_CHECK;
login_sessions *login_sessions_ref(login_sessions *self);
void login_sessions_unref(login_sessions *self);

typedef struct worker_login worker_login;

/* Owns: the caller, with `out` NULL where the configuration has no login. Errors: with `diag`. */
bay_err worker_login_new(struct worker *of, const gateway_auth *auth, worker_login **out,
                         bay_diag *diag) BAY_MUST_CHECK;
/* Browsers that wait get 503. NULL is fine. */
void worker_login_free(worker_login *self);

/* Does the gateway have logins? Without them a page answers that there is nothing (false). */
bool worker_login_is_on(const struct worker *self);
/* Whose logins they are. */
bay_str worker_login_issuer(const struct worker *self);
/* Who looks at the page, with one reference for the caller. NULL: the exchange was answered, or will
 * be: GET leads to the login and back to the same path and query; other methods get 403. */
const auth_principal *worker_login_require(struct worker *self, const front_request *request);
/* "https://tools.example": what links and forms of a page begin with. Lives as long as the
 * exchange waits in no queue. */
bay_str worker_login_base(struct worker *self, const front_request *request);

/* Appends `<form method="post" action="PATH">` with its token. `path`: of this gateway; `purpose`
 * makes the token good for nothing else. */
void worker_login_form(struct worker *self, const front_request *request, bay_str path,
                       bay_str purpose, buf *out);
/* Is the request a POST of that form, from the same session? `out_body` (may be NULL): its fields,
 * in the exchange's arena. */
bool worker_login_is_form(struct worker *self, const front_request *request, bay_str purpose,
                          oauth_form *out_body);

/* Has this text, sealed for that person, not come back before, on any loop? It counts as come back
 * from now on, for as long as an attempt lasts. False also without memory. */
bool worker_login_is_first(struct worker *self, const auth_principal *who, bay_str sealed);

/* The rows of its own pages. */
bool worker_login_serve(void *user, const front_request *request);

#endif
