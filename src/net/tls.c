/* TLS sessions over a BIO of their own: reads come directly from the borrowed ciphertext, writes go
 * directly to the owner, so neither is copied to an intermediate memory BIO and an idle session
 * keeps no buffers (SSL_MODE_RELEASE_BUFFERS).
 *
 * OpenSSL's error queue belongs to the thread: it is emptied before each call and read after a
 * failure, so that one connection's error is never reported for another. */
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "net/tls_session.h"
#include "wire/base64.h"

#define NAME_BYTES_MAX 253 /* RFC 1035 section 2.3.4, without the root's dot */

struct tls_session {
    SSL *ssl;
    bay_str in;
    tls_emit emit;
    void *user;
};

/* --- the BIO ---------------------------------------------------------------------------------- */

static BIO_METHOD *bio_method;
static uv_once_t bio_once = UV_ONCE_INIT;

static int bio_read(BIO *bio, char *at, size_t cap, size_t *out_len)
{
    tls_session *self = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (self->in.len == 0) {
        BIO_set_retry_read(bio);
        *out_len = 0;
        return -1;
    }
    size_t len = cap < self->in.len ? cap : self->in.len;
    memcpy(at, self->in.at, len);
    self->in.at += len;
    self->in.len -= len;
    *out_len = len;
    return 1;
}

static int bio_write(BIO *bio, const char *at, size_t len, size_t *out_len)
{
    tls_session *self = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (!self->emit(self->user, (bay_str){at, len})) {
        *out_len = 0;
        return 0;
    }
    *out_len = len;
    return 1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static void make_bio_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "patchbay");
    if (method == NULL || BIO_meth_set_read_ex(method, bio_read) != 1 ||
        BIO_meth_set_write_ex(method, bio_write) != 1 ||
        BIO_meth_set_ctrl(method, bio_control) != 1) {
        BIO_meth_free(method);
        return;
    }
    bio_method = method;
}

static bay_err attach_bio(tls_session *self)
{
    uv_once(&bio_once, make_bio_method);
    BIO *bio = bio_method != NULL ? BIO_new(bio_method) : NULL;
    if (bio == NULL) {
        return BAY_ERR_NOMEM;
    }
    BIO_set_data(bio, self);
    BIO_set_init(bio, 1);
    SSL_set_bio(self->ssl, bio, bio); /* takes it */
    return BAY_OK;
}

/* --- making ----------------------------------------------------------------------------------- */

/* RFC 6125: the requested name must be in the certificate. An address is compared with the
 * certificate's addresses, and RFC 6066 section 3 keeps it out of SNI. */
static bay_err expect_name(tls_session *self, bay_str server_name, bay_diag *diag)
{
    char name[NAME_BYTES_MAX + 1];
    if (server_name.len > 0 && server_name.at[server_name.len - 1] == '.') {
        server_name.len--;
    }
    if (server_name.len == 0 || server_name.len > NAME_BYTES_MAX ||
        memchr(server_name.at, '\0', server_name.len) != NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "\"%.*s\" cannot be the name of a TLS server",
                        BAY_STR(server_name));
    }
    memcpy(name, server_name.at, server_name.len);
    name[server_name.len] = '\0';
    unsigned char address[16];
    bool is_address =
        uv_inet_pton(AF_INET, name, address) == 0 || uv_inet_pton(AF_INET6, name, address) == 0;
    if (is_address) {
        X509_VERIFY_PARAM *parameters = SSL_get0_param(self->ssl);
        return X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1 ? BAY_OK : BAY_ERR_NOMEM;
    }
    SSL_set_hostflags(self->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (SSL_set1_host(self->ssl, name) != 1 || SSL_set_tlsext_host_name(self->ssl, name) != 1) {
        return BAY_ERR_NOMEM;
    }
    return BAY_OK;
}

bay_err tls_session_new(const tls_context *context, bay_str server_name, tls_emit emit, void *user,
                        tls_session **out, bay_diag *diag)
{
    bay_err err = BAY_ERR_NOMEM;
    tls_session *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory for a TLS connection");
    }
    self->emit = emit;
    self->user = user;
    ERR_clear_error();
    self->ssl = SSL_new(context->ssl);
    if (self->ssl == NULL || attach_bio(self) != BAY_OK) {
        (void)diag_set(diag, BAY_ERR_NOMEM, "out of memory for a TLS connection");
        goto failed;
    }
    if (context->is_server) {
        SSL_set_accept_state(self->ssl);
    } else {
        SSL_set_connect_state(self->ssl);
        err = expect_name(self, server_name, diag);
        if (err != BAY_OK) {
            goto failed;
        }
    }
    *out = self;
    return BAY_OK;

failed:
    tls_session_free(self);
    ERR_clear_error();
    return err;
}

void tls_session_free(tls_session *self)
{
    if (self == NULL) {
        return;
    }
    SSL_free(self->ssl);
    mem_free(self);
}

void tls_session_give(tls_session *self, bay_str ciphertext)
{
    self->in = ciphertext;
}

bay_str tls_session_left(const tls_session *self)
{
    return self->in;
}

/* --- the calls -------------------------------------------------------------------------------- */

static bay_err explain(tls_session *self, int kind, bay_diag *diag)
{
    long verdict = SSL_get_verify_result(self->ssl);
    unsigned long code = ERR_peek_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    if (verdict != X509_V_OK) {
        (void)diag_set(diag, BAY_ERR_TLS, "the peer's certificate is not accepted: %s",
                       X509_verify_cert_error_string(verdict));
    } else if (reason != NULL) {
        (void)diag_set(diag, BAY_ERR_TLS, "TLS failed: %s", reason);
    } else {
        (void)diag_set(diag, BAY_ERR_TLS, "TLS failed (%d)", kind);
    }
    ERR_clear_error();
    return BAY_ERR_TLS;
}

static bay_err judge(tls_session *self, int result, bay_diag *diag)
{
    int kind = SSL_get_error(self->ssl, result);
    switch (kind) {
    case SSL_ERROR_NONE:
        return BAY_OK;
    case SSL_ERROR_WANT_READ:
        return BAY_ERR_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return BAY_ERR_EOF;
    default:
        return explain(self, kind, diag);
    }
}

bay_err tls_session_handshake(tls_session *self, bay_diag *diag)
{
    ERR_clear_error();
    return judge(self, SSL_do_handshake(self->ssl), diag);
}

bay_err tls_session_read(tls_session *self, char *at, size_t cap, size_t *out_len, bay_diag *diag)
{
    ERR_clear_error();
    return judge(self, SSL_read_ex(self->ssl, at, cap, out_len), diag);
}

bay_err tls_session_write(tls_session *self, bay_str bytes, bay_diag *diag)
{
    if (bytes.len == 0) {
        return BAY_OK;
    }
    ERR_clear_error();
    size_t written = 0; /* all or nothing: partial writes are not enabled and emit never blocks */
    bay_err err = judge(self, SSL_write_ex(self->ssl, bytes.at, bytes.len, &written), diag);
    return err == BAY_OK ? BAY_OK : BAY_ERR_TLS;
}

void tls_session_end(tls_session *self)
{
    ERR_clear_error();
    (void)SSL_shutdown(self->ssl); /* 0 and 1 both mean that close_notify was emitted */
    ERR_clear_error();
}

/* RFC 2253's flags escape control characters and commas, so that names stay distinct. */
static void write_subject(X509 *certificate, buf *out)
{
    BIO *text = BIO_new(BIO_s_mem());
    char *at = NULL;
    if (text != NULL &&
        X509_NAME_print_ex(text, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0) {
        long len = BIO_get_mem_data(text, &at);
        buf_append(out, at, len > 0 ? (size_t)len : 0);
    }
    BIO_free(text);
}

/* Visible ASCII only: what else is in it could look like another. */
static void write_uri(X509 *certificate, buf *out)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    size_t count = 0;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_URI) {
            const ASN1_IA5STRING *uri = name->d.uniformResourceIdentifier;
            buf_append(out, ASN1_STRING_get0_data(uri), (size_t)ASN1_STRING_length(uri));
            count++;
        }
    }
    for (size_t i = 0; i < out->len; i++) {
        count += out->at[i] <= ' ' || out->at[i] > '~' ? 1 : 0;
    }
    if (count != 1) {
        buf_clear(out);
    }
    GENERAL_NAMES_free(names);
}

static void write_digest(X509 *certificate, buf *out)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int len = 0;
    if (X509_digest(certificate, EVP_sha256(), digest, &len) == 1) {
        base64_encode(out, (bay_str){(const char *)digest, len}, BASE64_URL);
    }
}

size_t tls_session_certificate(const tls_session *self, tls_certificate_part part, char *out,
                               size_t cap)
{
    static void (*const write[])(X509 * certificate, buf * out) = {
        [TLS_SUBJECT] = write_subject, [TLS_URI] = write_uri, [TLS_SHA256] = write_digest};
    X509 *certificate = SSL_get0_peer_certificate(self->ssl);
    bool is_verified = SSL_get_verify_result(self->ssl) == X509_V_OK &&
                       (SSL_get_verify_mode(self->ssl) & SSL_VERIFY_PEER) != 0;
    buf text;
    size_t len = 0;
    buf_init(&text, cap - 1);
    if (certificate != NULL && is_verified) {
        write[part](certificate, &text);
        len = text.err == BAY_OK ? text.len : 0;
    }
    memcpy(out, len > 0 ? text.at : "", len);
    out[len] = '\0';
    buf_fini(&text);
    ERR_clear_error();
    return len;
}

bool tls_session_is_http2(const tls_session *self)
{
    const unsigned char *name = NULL;
    unsigned int len = 0;
    SSL_get0_alpn_selected(self->ssl, &name, &len);
    return len == 2 && memcmp(name, "h2", 2) == 0;
}

bool tls_session_offer_http2(tls_session *self)
{
    static const unsigned char offer[] = {2, 'h', '2'};
    return SSL_set_alpn_protos(self->ssl, offer, sizeof(offer)) == 0; /* zero is success here */
}
