/* Carries the OAuth client's state machine (auth/oauth_client.h): sends what it wants sent, waits
 * where it wants to wait, and authorizes the requests to one resource for one principal meanwhile.
 *
 * Requests that need a token while one is being obtained wait, all of them for one flow. */
#ifndef OAUTH_AUTHORITY_H
#define OAUTH_AUTHORITY_H

#include "auth/oauth_client.h"
#include "http/http_client.h"
#include "oauth/document.h"

typedef struct oauth_authority oauth_authority;

/* What the owner does for it. Each runs from the loop, never inside a function of this header, and
 * may call any of them. A member that is NULL: it cannot be done, and the flow fails with a text
 * that says so. */
typedef struct oauth_authority_events {
    /* Show the URL to the person. The redirect comes to the receiver, or by
     * oauth_authority_redirected. */
    void (*open)(void *user, oauth_authority *self, bay_str url);
    /* Show the URL, and the code to enter there. */
    void (*show)(void *user, oauth_authority *self, bay_str url, bay_str code);
    /* oauth_authority_subject is to follow, now or later. */
    void (*subject)(void *user, oauth_authority *self);
    /* Keep the record, durably; then oauth_authority_kept, now or later. NULL: kept in memory. */
    void (*keep)(void *user, oauth_authority *self, bay_str record);
    /* Before a refresh: lock what is kept, so that one process refreshes, and read it; then
     * oauth_authority_reread. The lock ends with the next `keep`, or with `settled`. NULL: no other
     * process shares it. */
    void (*reread)(void *user, oauth_authority *self);
    /* A flow has ended; `fault` NULL: well. May be NULL. */
    void (*settled)(void *user, oauth_authority *self, const bay_diag *fault);
} oauth_authority_events;

typedef struct oauth_authority_options {
    oauth_settings client;
    const bay_str *allow; /* addresses that metadata may lead to besides; net/address.h */
    size_t allow_count;
    tls_context *tls;  /* borrowed */
    bool has_receiver; /* redirects are received on a loopback address */
} oauth_authority_options;

bay_err oauth_authority_new(loop *loop, const oauth_authority_options *options,
                            const oauth_authority_events *events, void *user, oauth_authority **out,
                            bay_diag *diag) BAY_MUST_CHECK;
/* Requests that wait must be over. May be called inside an event. NULL is fine. */
void oauth_authority_free(oauth_authority *self);

/* To give to http_call_spec. */
http_authority *oauth_authority_http(oauth_authority *self);
const oauth_client *oauth_authority_client(const oauth_authority *self);

/* What was kept earlier, before the first request. BAY_ERR_NOMEM. */
bay_err oauth_authority_load(oauth_authority *self, bay_str record) BAY_MUST_CHECK;
/* A login now: `settled` tells how it ended. With `anew` also where there are tokens. */
void oauth_authority_begin(oauth_authority *self, bool anew);
void oauth_authority_revoke(oauth_authority *self);
/* Forgets the tokens, and keeps the client: the next request begins a login. */
void oauth_authority_forget(oauth_authority *self);

void oauth_authority_kept(oauth_authority *self);
/* `record` empty: nothing is kept (any more). */
void oauth_authority_reread(oauth_authority *self, bay_str record);
/* An attempt that another authority with the same settings began (oauth_client_attempt_write), with
 * the query of its redirect. `settled` tells how it ended. Errors: as oauth_client_resume. */
bay_err oauth_authority_resume(oauth_authority *self, bay_str attempt,
                               bay_str query) BAY_MUST_CHECK;
/* The flow ends, and nothing is told: as oauth_client_abandon. Nothing may be under way: from `open`
 * or `settled`. */
void oauth_authority_abandon(oauth_authority *self);
/* NULL-like empty `token`: there is none, because of `why`. */
void oauth_authority_subject(oauth_authority *self, bay_str token, const char *why);
/* The query of a redirect. False: nobody waits for it. */
bool oauth_authority_redirected(oauth_authority *self, bay_str query);
/* The person was not shown the URL, or said no. */
void oauth_authority_declined(oauth_authority *self, const char *why);

#endif
