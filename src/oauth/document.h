/* JSON documents of authorization servers and of those that name them: metadata, key sets, answers
 * of token and introspection endpoints. Peers name the addresses, so everything is fetched through
 * a *source*: an HTTP client of its own behind a guard (net/address_guard.h).
 *
 * A URL is fetched only if it is https, or http on a loopback host while the source's home is on a
 * loopback host as well. Redirects are not followed; an answer is bounded in bytes and time; only a
 * JSON object, each member once, is read.
 *
 * For the whole header: Threads: the loop's, but for oauth_url_fault. Source: RFC 8414 section 6.2,
 * RFC 9728 section 7.7. */
#ifndef OAUTH_DOCUMENT_H
#define OAUTH_DOCUMENT_H

#include "http/http_document.h"
#include "net/address_guard.h"
#include "json/json.h"

enum {
    OAUTH_DOCUMENT_BYTES = 64 << 10, /* of an answer, unless its request says otherwise */
    OAUTH_DOCUMENT_MOST = 256 << 10, /* that it may say */
    OAUTH_DOCUMENT_MS = 10000,       /* for the whole of it */
    OAUTH_DOCUMENT_DEPTH = 16,
    OAUTH_URL_BYTES = 2048,
    OAUTH_NONCE_BYTES = 256, /* of a DPoP nonce that an answer brings; a longer one is ignored */
};

/* Why a URL that a peer names is not used; NULL: it may be. `home` is what was configured. Static.
 * Threads: any. */
const char *oauth_url_fault(bay_str home, bay_str url);

typedef struct oauth_source oauth_source;

typedef struct oauth_source_options {
    bay_str home;         /* the URL that the configuration names: its host may be anywhere */
    const bay_str *allow; /* where it may lead besides, as address_rules_new takes it */
    size_t allow_count;
    tls_context *tls;            /* NULL: the system's trust; borrowed */
    uint32_t connect_timeout_ms; /* 0: the HTTP client's default */
} oauth_source_options;

/* Owns: the caller; copies all but `tls`. Errors: BAY_ERR_INVALID with `diag` (`home` or one of
 * `allow`), BAY_ERR_LIMIT, BAY_ERR_NOMEM. */
bay_err oauth_source_new(loop *loop, const oauth_source_options *options, oauth_source **out,
                         bay_diag *diag) BAY_MUST_CHECK;
void oauth_source_free(oauth_source *self); /* after its documents; NULL is fine */

/* What came. Views live until the next start, or oauth_document_fini. */
typedef struct oauth_answer {
    bay_err err;      /* BAY_OK: an answer, of whatever status */
    const char *text; /* why there is none, or why `root` is missing, for a person; never a part of
                         what came */
    int status;
    json_val root; /* the object; missing: the answer is none */
    bay_str body;
    bool has_max_age; /* of Cache-Control */
    uint64_t max_age_s;
    bay_str dpop_nonce; /* ""; RFC 9449 section 8 */
} oauth_answer;

/* Called exactly once, unless oauth_document_fini ended it first; may begin the next one. */
typedef void (*oauth_document_done)(void *user, const oauth_answer *answer);

typedef struct oauth_request {
    bay_str url;
    bay_str form;             /* application/x-www-form-urlencoded; "" and no `json`: GET */
    bay_str json;             /* or a JSON body */
    const http_field *fields; /* besides Accept and Content-Type; borrowed for the call */
    size_t field_count;
    size_t max_bytes; /* 0: OAUTH_DOCUMENT_BYTES */
} oauth_request;

enum { OAUTH_REQUEST_FIELDS = 8 }; /* besides */

/* One request at a time. Embedded in its owner. */
typedef struct oauth_document {
    oauth_source *source;
    http_document fetch;
    arena memory;
    json_doc doc;
    char dpop_nonce[OAUTH_NONCE_BYTES + 1];
    oauth_document_done done;
    void *user;
} oauth_document;

void oauth_document_init(oauth_document *self, oauth_source *source);
void oauth_document_fini(oauth_document *self); /* cancels; what came is wiped */
bool oauth_document_is_busy(const oauth_document *self);

/* Nothing may be under way. Errors: BAY_ERR_DENIED with `diag`: the URL may not be fetched;
 * BAY_ERR_LIMIT: too many fields; as http_client_call. `done` is not called then. */
bay_err oauth_document_start(oauth_document *self, const oauth_request *request,
                             oauth_document_done done, void *user, bay_diag *diag) BAY_MUST_CHECK;

#endif
