/* The metadata of an authorization server, by its issuer identifier (RFC 8414, OpenID Connect
 * Discovery): up to three addresses are asked in order, and what comes back must name the issuer
 * byte for byte.
 *
 * For the whole header: Threads: the loop's, but for oauth_metadata_url. */
#ifndef OAUTH_METADATA_H
#define OAUTH_METADATA_H

#include "oauth/document.h"

enum { OAUTH_METADATA_URLS = 3 };

/* Appends the address number `nth` for that issuer: with a path the well-known path inserted before
 * it (oauth-authorization-server, then openid-configuration), then openid-configuration behind it;
 * without a path the first two. False: there is no such address, or the issuer is no URL that may
 * be one. Source: RFC 8414 section 3.1, OpenID Connect Discovery section 4. */
bool oauth_metadata_url(bay_str issuer, size_t nth, buf *out);

/* `root`: the metadata, missing when there is none; then `text` says why, for a person. `err`:
 * BAY_OK; BAY_ERR_NOT_FOUND: no address has it; BAY_ERR_DENIED: it is another issuer's, or may not
 * be fetched; else why it could not be had. Views live until the next start or fini. */
typedef void (*oauth_metadata_done)(void *user, bay_err err, json_val root, const char *text);

/* Embedded in its owner. */
typedef struct oauth_metadata {
    oauth_document document;
    buf issuer;
    buf url;
    size_t next;
    oauth_metadata_done done;
    void *user;
    char text[200];
} oauth_metadata;

void oauth_metadata_init(oauth_metadata *self, oauth_source *source);
void oauth_metadata_fini(oauth_metadata *self); /* cancels */

/* Nothing may be under way. `done` is called exactly once, unless fini came first, and never inside
 * this call. Errors: BAY_ERR_INVALID: no issuer; as oauth_document_start. */
bay_err oauth_metadata_start(oauth_metadata *self, bay_str issuer, oauth_metadata_done done,
                             void *user, bay_diag *diag) BAY_MUST_CHECK;

#endif
