/* One TLS connection, bytes in and bytes out, without a descriptor. socket_tls.c carries its bytes.
 */
#ifndef NET_TLS_SESSION_H
#define NET_TLS_SESSION_H

#include <openssl/ssl.h>
#include <stdatomic.h>

#include "net/tls.h"

struct tls_context {
    SSL_CTX *ssl;
    atomic_uint references;
    bool is_server;
    bool verifies; /* a client: the peer's certificate and name */
};

typedef struct tls_session tls_session;

/* Takes ciphertext for the peer; false: failed. Runs inside the calls below. */
typedef bool (*tls_emit)(void *user, bay_str ciphertext);

/* `server_name` (client): sent by SNI if it is a name, always verified. Errors: BAY_ERR_NOMEM,
 * BAY_ERR_INVALID (not a valid name). */
bay_err tls_session_new(const tls_context *context, bay_str server_name, tls_emit emit, void *user,
                        tls_session **out, bay_diag *diag) BAY_MUST_CHECK;
void tls_session_free(tls_session *self);

/* Ciphertext from the peer, borrowed until tls_session_left says that nothing of it is left. */
void tls_session_give(tls_session *self, bay_str ciphertext);
bay_str tls_session_left(const tls_session *self);

/* BAY_OK: done; BAY_ERR_AGAIN: needs more ciphertext; BAY_ERR_TLS: failed, `diag` says why. */
bay_err tls_session_handshake(tls_session *self, bay_diag *diag) BAY_MUST_CHECK;
/* BAY_OK with at least one byte; BAY_ERR_AGAIN; BAY_ERR_EOF: close_notify was received;
 * BAY_ERR_TLS. */
bay_err tls_session_read(tls_session *self, char *at, size_t cap, size_t *out_len,
                         bay_diag *diag) BAY_MUST_CHECK;
bay_err tls_session_write(tls_session *self, bay_str bytes, bay_diag *diag) BAY_MUST_CHECK;
void tls_session_end(tls_session *self); /* close_notify */
/* Whether ALPN selected HTTP/2. After the handshake. */
bool tls_session_is_http2(const tls_session *self);
/* For a client, before the handshake: false: out of memory. */
bool tls_session_offer_http2(tls_session *self);

/* A part of the certificate that the peer proved to have and that was verified, NUL ended: its
 * length. 0: none, or one that does not fit (half a name is nobody's). */
size_t tls_session_certificate(const tls_session *self, tls_certificate_part part, char *out,
                               size_t cap);

#endif
