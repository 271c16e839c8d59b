/* TLS contexts: a server's certificate and a client's trust. Only file names of them are logged.
 *
 * Choices: TLS 1.2 at least, no renegotiation (clients could make a server work for free), no
 * compression, only forward-secret AEAD suites under 1.2, and keys with a passphrase refused
 * instead of asking on a terminal. */
#include <openssl/err.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/tls_session.h"

static const unsigned char alpn_offer[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
#ifdef BAY_NO_HTTP2
#define ALPN_OURS alpn_offer
#else
static const unsigned char alpn_both[] = {2, 'h', '2', 8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
#define ALPN_OURS alpn_both
#endif

/* RFC 7301 section 3.2: a client that offers protocols, but none that is supported, is refused. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *offered, unsigned int offered_len, void *argument)
{
    (void)ssl;
    (void)argument;
    unsigned char *chosen = NULL;
    if (SSL_select_next_proto(&chosen, out_len, ALPN_OURS, sizeof(ALPN_OURS), offered,
                              offered_len) != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int no_passphrase(char *at, int cap, int is_writing, void *argument)
{
    (void)at;
    (void)cap;
    (void)is_writing;
    (void)argument;
    return 0;
}

static bay_err complain(bay_diag *diag, const char *what, const char *file)
{
    unsigned long code = ERR_peek_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    bay_err err =
        diag_set(diag, BAY_ERR_TLS, "%s %s: %s", what, file, reason != NULL ? reason : "unusable");
    ERR_clear_error();
    return err;
}

static bay_err load_identity(SSL_CTX *ssl, const tls_options *options, bay_diag *diag)
{
    if (options->certificate_file == NULL && options->key_file == NULL) {
        return BAY_OK;
    }
    if (options->certificate_file == NULL || options->key_file == NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "a TLS certificate and its key belong together");
    }
    if (SSL_CTX_use_certificate_chain_file(ssl, options->certificate_file) != 1) {
        return complain(diag, "the TLS certificate", options->certificate_file);
    }
    if (SSL_CTX_use_PrivateKey_file(ssl, options->key_file, SSL_FILETYPE_PEM) != 1) {
        return complain(diag, "the TLS key", options->key_file);
    }
    if (SSL_CTX_check_private_key(ssl) != 1) {
        return complain(diag, "the TLS key does not belong to the certificate:", options->key_file);
    }
    return BAY_OK;
}

static SSL_CTX *new_ssl(const SSL_METHOD *method)
{
    SSL_CTX *ssl = SSL_CTX_new(method);
    if (ssl == NULL) {
        return NULL;
    }
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_default_passwd_cb(ssl, no_passphrase);
    if (SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(ssl, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
        SSL_CTX_free(ssl);
        return NULL;
    }
    return ssl;
}

static bay_err new_context(SSL_CTX *ssl, bool is_server, bool verifies, tls_context **out,
                           bay_diag *diag)
{
    tls_context *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory for a TLS context");
    }
    self->ssl = ssl;
    self->is_server = is_server;
    self->verifies = verifies;
    atomic_init(&self->references, 1);
    *out = self;
    return BAY_OK;
}

static bay_err trust_clients(SSL_CTX *ssl, const tls_options *options, bay_diag *diag)
{
    if (options->ca_file == NULL) {
        if (options->require_client_certificate) {
            return diag_set(diag, BAY_ERR_INVALID,
                            "client certificates are required, but no ca_file says whose");
        }
        return BAY_OK;
    }
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(options->ca_file);
    if (names == NULL || SSL_CTX_load_verify_file(ssl, options->ca_file) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return complain(diag, "the TLS authorities in", options->ca_file);
    }
    SSL_CTX_set_client_CA_list(ssl, names); /* takes them */
    int mode = SSL_VERIFY_PEER;
    if (options->require_client_certificate) {
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    }
    SSL_CTX_set_verify(ssl, mode, NULL);
    static const unsigned char session_name[] = "patchbay";
    SSL_CTX_set_session_id_context(ssl, session_name, sizeof(session_name) - 1);
    return BAY_OK;
}

bay_err tls_server_new(const tls_options *options, tls_context **out, bay_diag *diag)
{
    if (options->certificate_file == NULL || options->key_file == NULL) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "a TLS server needs a certificate file and a key file");
    }
    ERR_clear_error();
    SSL_CTX *ssl = new_ssl(TLS_server_method());
    if (ssl == NULL) {
        ERR_clear_error();
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory for a TLS context");
    }
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    bay_err err = load_identity(ssl, options, diag);
    if (err == BAY_OK) {
        err = trust_clients(ssl, options, diag);
    }
    if (err == BAY_OK) {
        err = new_context(ssl, true, false, out, diag);
    }
    if (err != BAY_OK) {
        SSL_CTX_free(ssl);
    }
    return err;
}

static bay_err trust_servers(SSL_CTX *ssl, const tls_options *options, bay_diag *diag)
{
    if (options->insecure_no_verify) {
        LOG(LOG_WARN, "tls",
            "insecure: certificates of servers are not verified: whoever is on the way can read "
            "and change everything, credentials included; use this in tests only");
        SSL_CTX_set_verify(ssl, SSL_VERIFY_NONE, NULL);
        return BAY_OK;
    }
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    if (options->ca_file != NULL) {
        return SSL_CTX_load_verify_file(ssl, options->ca_file) == 1
                   ? BAY_OK
                   : complain(diag, "the TLS authorities in", options->ca_file);
    }
    return SSL_CTX_set_default_verify_paths(ssl) == 1
               ? BAY_OK
               : complain(diag, "the system's TLS authorities:", "default paths");
}

bay_err tls_client_new(const tls_options *options, tls_context **out, bay_diag *diag)
{
    ERR_clear_error();
    SSL_CTX *ssl = new_ssl(TLS_client_method());
    if (ssl == NULL) {
        ERR_clear_error();
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory for a TLS context");
    }
    /* Zero is success here, unlike everywhere else in OpenSSL. */
    bay_err err = SSL_CTX_set_alpn_protos(ssl, alpn_offer, sizeof(alpn_offer)) == 0
                      ? BAY_OK
                      : diag_set(diag, BAY_ERR_NOMEM, "out of memory for a TLS context");
    if (err == BAY_OK) {
        err = load_identity(ssl, options, diag);
    }
    if (err == BAY_OK) {
        err = trust_servers(ssl, options, diag);
    }
    if (err == BAY_OK) {
        err = new_context(ssl, false, !options->insecure_no_verify, out, diag);
    }
    if (err != BAY_OK) {
        SSL_CTX_free(ssl);
    }
    return err;
}

tls_context *tls_ref(tls_context *self)
{
    atomic_fetch_add(&self->references, 1);
    return self;
}

void tls_free(tls_context *self)
{
    if (self == NULL || atomic_fetch_sub(&self->references, 1) > 1) {
        return;
    }
    SSL_CTX_free(self->ssl); /* connections hold references of their own */
    mem_free(self);
}
