/* The two documents from which a client learns how to be authorized: the protected resource's
 * metadata (RFC 9728) names authorization servers, an authorization server's metadata (RFC 8414,
 * OpenID Connect Discovery) names its endpoints. Both come from strangers: what they say is checked
 * before any of it is used. */
#ifndef AUTH_OAUTH_METADATA_H
#define AUTH_OAUTH_METADATA_H

#include "base/arena.h"
#include "base/buf.h"
#include "patchbay/types.h"

enum {
    OAUTH_METADATA_BYTES = 64 << 10, /* of one metadata document, or answer of an endpoint */
    OAUTH_URL_MOST = 2048,           /* of a URL in them */
    OAUTH_SCOPE_BYTES = 4096,        /* of a list of scopes */
    OAUTH_SERVERS = 16,              /* authorization servers of one resource that are looked at */
    OAUTH_CANDIDATES = 3,            /* URLs at which one document is looked for */
};

/* How the client proves to the token endpoint who it is; bits. */
typedef enum oauth_method {
    OAUTH_NONE = 1,
    OAUTH_BASIC = 2,       /* client_secret_basic */
    OAUTH_POST = 4,        /* client_secret_post */
    OAUTH_PRIVATE_KEY = 8, /* private_key_jwt */
} oauth_method;

/* The method of that name (`none`, `client_secret_basic` …), or 0. */
unsigned oauth_method_find(bay_str name);

/* True for a URL that may be fetched, posted to or shown to a browser: https, or http to a loopback
 * host if `may_be_loopback`; with a host, without user information and fragment, at most
 * OAUTH_URL_MOST. Where the host's name leads is checked when it is connected to. */
bool oauth_url_is_usable(bay_str url, bool may_be_loopback);
/* Its host is this machine. */
bool oauth_url_is_loopback(bay_str url);

typedef struct oauth_candidates {
    bay_str urls[OAUTH_CANDIDATES];
    size_t count;
} oauth_candidates;

/* Where the metadata of a resource is looked for if no challenge names it, in this order.
 * BAY_ERR_SYNTAX, BAY_ERR_NOMEM. Source: RFC 9728 section 3.1; mcp 2025-11-25
 * basic/authorization. */
bay_err oauth_resource_urls(bay_str resource_url, arena *memory,
                            oauth_candidates *out) BAY_MUST_CHECK;
/* The same for an issuer. Source: RFC 8414 section 3.1, OpenID Connect Discovery 1.0 section 4;
 * mcp 2025-11-25 basic/authorization, Authorization Server Metadata Discovery. */
bay_err oauth_server_urls(bay_str issuer, arena *memory, oauth_candidates *out) BAY_MUST_CHECK;

typedef struct oauth_resource {
    bay_str resource; /* byte for byte as it was received */
    bay_str servers[OAUTH_SERVERS];
    size_t server_count;
    bay_str scopes; /* scopes_supported, separated by spaces; "": not said */
    bool is_dpop_required;
} oauth_resource;

/* Is `url` that resource, or of its origin with a path that the resource's contains segment by
 * segment? */
bool oauth_resource_covers(bay_str resource, bay_str url);
/* Reads and checks a resource's metadata. `url` is what the client calls: `resource` must cover it.
 * Owns: texts in `memory`, which `text` need not outlive. Errors: BAY_ERR_SYNTAX; BAY_ERR_DENIED:
 * it is another resource's, or names no usable authorization server; BAY_ERR_NOMEM; all with
 * `diag`. */
bay_err oauth_resource_read(bay_str text, bay_str url, arena *memory, oauth_resource *out,
                            bay_diag *diag) BAY_MUST_CHECK;

typedef struct oauth_server {
    bay_str issuer;
    bay_str authorization_endpoint; /* each empty if the server has none */
    bay_str token_endpoint;
    bay_str registration_endpoint;
    bay_str device_endpoint;
    bay_str revocation_endpoint;
    bay_str scopes;   /* scopes_supported; "": not said */
    unsigned methods; /* oauth_method bits of the token endpoint */
    bool has_code;
    bool has_s256;
    bool sends_issuer;    /* authorization_response_iss_parameter_supported */
    bool takes_documents; /* client_id_metadata_document_supported */
    bool has_dpop;        /* with ES256 */
    bool has_pushed_only; /* require_pushed_authorization_requests */
    bool is_assumed;      /* no metadata: the defaults of 2025-03-26 */
    bay_str grants;       /* grant_types_supported, separated by spaces; "": not said */
    bay_str signing;      /* token_endpoint_auth_signing_alg_values_supported; "": not said */
} oauth_server;

/* Reads and checks an authorization server's metadata. Its `issuer` must be `issuer`, byte for byte
 * (RFC 8414 section 3.3), and every endpoint usable. If `is_origin`, nobody has named an issuer,
 * and any of that origin is one (mcp 2025-03-26).
 * Owns and errors: as oauth_resource_read. */
bay_err oauth_server_read(bay_str text, bay_str issuer, bool is_origin, bool may_be_loopback,
                          arena *memory, oauth_server *out, bay_diag *diag) BAY_MUST_CHECK;
/* The server that a resource of 2025-03-26 without metadata has: endpoints at its own origin.
 * BAY_ERR_NOMEM. Source: mcp 2025-03-26 basic/authorization, Fallbacks. */
bay_err oauth_server_assume(bay_str origin, arena *memory, oauth_server *out) BAY_MUST_CHECK;
/* Does it grant this type? Absent metadata means authorization_code and implicit. */
bool oauth_server_grants(const oauth_server *self, bay_str grant);

/* `scheme://host[:port]` of a URL that oauth_url_is_usable. */
bay_str oauth_url_origin(bay_str url);

/* Appends each scope of `more` that is not in `out` yet. Errors stick in `out`. */
void oauth_scopes_join(buf *out, bay_str more);
/* Does `scopes` have each scope of `wanted`? */
bool oauth_scopes_cover(bay_str scopes, bay_str wanted);

#endif
