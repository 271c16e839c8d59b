/* TLS by OpenSSL: one context for a server or a client role, shared by the connections of all
 * loops. TLS 1.2 at least. A library without TLS (tls_none.c) makes no context:
 * BAY_ERR_UNSUPPORTED. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "patchbay/types.h"

typedef struct tls_context tls_context;

typedef struct tls_options {
    const char
        *certificate_file; /* PEM chain; a server needs it, a client may have one (mutual TLS) */
    const char *key_file;
    const char *ca_file; /* trust; NULL: the system's store (client), no client certs (server) */
    bool require_client_certificate; /* server */
    bool insecure_no_verify;         /* client, for tests only: a warning is logged */
} tls_options;

#define TLS_PART_BYTES 1024 /* of one of them, with a NUL */

/* What of a certificate is asked for, as text. */
typedef enum tls_certificate_part {
    TLS_SUBJECT, /* "CN=client,O=Example", as RFC 2253 writes it */
    TLS_URI,     /* the one URI among its alternative names (a SPIFFE id); several are none */
    TLS_SHA256,  /* of the whole, base64url: RFC 8705 section 3.1 */
} tls_certificate_part;

bay_err tls_server_new(const tls_options *options, tls_context **out,
                       bay_diag *diag) BAY_MUST_CHECK;
bay_err tls_client_new(const tls_options *options, tls_context **out,
                       bay_diag *diag) BAY_MUST_CHECK;
/* Whether a client needs a context of its own for these, and not the shared one: the system's
 * authorities, no certificate. A key without its certificate counts: tls_client_new refuses it. */
static inline bool tls_client_has_own(const tls_options *options)
{
    return options->ca_file != NULL || options->certificate_file != NULL ||
           options->key_file != NULL || options->insecure_no_verify;
}
/* Shared between loops: each reference ends with tls_free. Any thread. */
tls_context *tls_ref(tls_context *self);
void tls_free(tls_context *self); /* connections made from it continue */

#endif
