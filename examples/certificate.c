/* Looks at the TLS certificate of a host: who issued it, for which names, for how long. */
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <patchbay/server.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { SECONDS = 10, MAX_NAMES = 50 };

/* A connected descriptor whose reads and writes give up after SECONDS, or -1 with a reason. */
static int connect_to(const char *host, const char *port, const char **why)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct timeval patience = {.tv_sec = SECONDS};
    int status = getaddrinfo(host, port, &hints, &found);
    int fd = -1;
    *why = status != 0 ? gai_strerror(status) : "nothing answers";
    for (struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        if (connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    return fd;
}

static void put_name(bay_json *json, const char *what, const X509_NAME *name)
{
    char text[512] = "";
    BIO *out = BIO_new(BIO_s_mem());
    if (out != NULL && X509_NAME_print_ex(out, name, 0, XN_FLAG_RFC2253) >= 0) {
        int len = BIO_read(out, text, sizeof(text) - 1);
        text[len > 0 ? len : 0] = '\0';
    }
    BIO_free(out);
    bay_json_text(json, what, text);
}

static void put_time(bay_json *json, const char *what, const ASN1_TIME *time)
{
    struct tm at;
    char text[64] = "unreadable";
    if (ASN1_TIME_to_tm(time, &at) == 1) {
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &at);
    }
    bay_json_text(json, what, text);
}

static void put_alternative_names(bay_json *json, X509 *certificate)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    bay_json_array(json, "names");
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && i < MAX_NAMES; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_DNS) { /* whatever the certificate says, it is a text */
            const char *text = (const char *)ASN1_STRING_get0_data(name->d.dNSName);
            size_t len = (size_t)ASN1_STRING_length(name->d.dNSName);
            bay_json_text_str(json, NULL, (bay_str){text, len});
        }
    }
    bay_json_end(json);
    GENERAL_NAMES_free(names);
}

static void report(bay_call *call, SSL *tls)
{
    X509 *certificate = SSL_get0_peer_certificate(tls); /* never NULL: no suite without one */
    long verdict = SSL_get_verify_result(tls);
    int days = 0, seconds = 0;
    ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate));
    bay_json *json = bay_json_new();
    bay_json_object(json, NULL);
    bay_json_bool(json, "valid", verdict == X509_V_OK);
    bay_json_text(json, "verdict", X509_verify_cert_error_string(verdict));
    put_name(json, "subject", X509_get_subject_name(certificate));
    put_name(json, "issuer", X509_get_issuer_name(certificate));
    put_time(json, "notBefore", X509_get0_notBefore(certificate));
    put_time(json, "notAfter", X509_get0_notAfter(certificate));
    bay_json_int(json, "daysLeft", days);
    put_alternative_names(json, certificate);
    bay_json_text(json, "protocol", SSL_get_version(tls));
    bay_json_end(json);
    bay_call_reply_json(call, json);
}

static void check_ssl_certificate(bay_call *call, void *user)
{
    char host[256];
    char port[8];
    const char *why = "";
    if (!bay_str_copy(bay_call_str(call, "host"), host, sizeof(host)) ||
        !bay_str_copy(bay_call_str(call, "port"), port, sizeof(port))) {
        bay_call_fail(call, "The host must be a name or an address.");
        return;
    }
    int fd = connect_to(host, port, &why);
    if (fd < 0) {
        bay_call_failf(call, "%s port %s: %s", host, port, why);
        return;
    }
    SSL *tls = SSL_new(user);
    SSL_set_fd(tls, fd);
    SSL_set_tlsext_host_name(tls, host);
    SSL_set1_host(tls, host);
    if (SSL_connect(tls) == 1) {
        report(call, tls);
        SSL_shutdown(tls);
    } else {
        const char *reason = ERR_reason_error_string(ERR_peek_last_error());
        bay_call_failf(call, "%s port %s speaks no TLS: %s", host, port,
                       reason != NULL ? reason : "the handshake was cut or took too long");
    }
    ERR_clear_error();
    SSL_free(tls);
    close(fd);
}

static const bay_field input[] = {
    {"host", BAY_TYPE_STRING, "Name or address", .is_required = true, .min = "1", .max = "255"},
    {"port", BAY_TYPE_INTEGER, .min = "1", .max = "65535", .default_value = "443"},
    {0},
};

int main(int argc, char **argv)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_default_verify_paths(context);
    bay_server *server = bay_server_new("certificate", "1.0.0");
    bay_tool *tool = bay_server_tool(server, "check_ssl_certificate",
                                     "Validity, issuer and names of a host's TLS certificate.",
                                     input, check_ssl_certificate, context);
    bay_tool_annotations(tool, "{\"readOnlyHint\":true,\"openWorldHint\":true}");
    bay_tool_blocking(tool);
    int status = bay_server_main(server, argc, argv);
    SSL_CTX_free(context);
    return status;
}
