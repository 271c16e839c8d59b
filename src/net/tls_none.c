/* Replaces tls.c, tls_context.c and socket_tls.c in a library without TLS: no context can be made,
 * so no socket ever has a TLS session and the other functions are never called. */
#include "base/check.h"
#include "base/err.h"
#include "net/socket_internal.h"
#include "net/tls.h"

static bay_err tls_refuse(bay_diag *diag)
{
    return diag_set(diag, BAY_ERR_UNSUPPORTED,
                    "this libpatchbay was built without TLS: https cannot be served or reached");
}

bay_err tls_server_new(const tls_options *options, tls_context **out, bay_diag *diag)
{
    (void)options;
    (void)out;
    return tls_refuse(diag);
}

bay_err tls_client_new(const tls_options *options, tls_context **out, bay_diag *diag)
{
    (void)options;
    (void)out;
    return tls_refuse(diag);
}

tls_context *tls_ref(tls_context *self)
{
    return self;
}

void tls_free(tls_context *self)
{
    (void)self; /* always NULL */
}

bay_err socket_tls_new(net_socket *self, tls_context *context, bay_str server_name, bay_diag *diag)
{
    (void)self;
    (void)context;
    (void)server_name;
    return tls_refuse(diag);
}

void socket_tls_free(net_socket *self)
{
    CHECK(self->tls == NULL);
}

/* Only a TLS session calls these: nothing is sent in clear text by mistake. */

void socket_tls_start(net_socket *self)
{
    CHECK(self == NULL);
}

void socket_tls_input(net_socket *self, bay_str bytes)
{
    (void)bytes;
    CHECK(self == NULL);
}

void socket_tls_resume(net_socket *self)
{
    CHECK(self == NULL);
}

bay_err socket_tls_write(net_socket *self, const bay_str *spans, size_t count)
{
    (void)spans;
    (void)count;
    CHECK(self == NULL);
    return BAY_ERR_INTERNAL;
}

void socket_tls_end(net_socket *self)
{
    CHECK(self == NULL);
}

size_t socket_tls_certificate(const net_socket *self, tls_certificate_part part, char *out,
                              size_t cap)
{
    (void)part;
    (void)out;
    (void)cap;
    CHECK(self == NULL);
    return 0;
}

bool socket_tls_is_http2(const net_socket *self)
{
    CHECK(self == NULL);
    return false;
}

void socket_tls_offer_http2(net_socket *self)
{
    CHECK(self == NULL);
}
