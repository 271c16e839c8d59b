/* Replaces http2_client.c in a library without HTTP/2: calls that need it are refused, so nothing
 * else of it is called. */
#include "base/check.h"
#include "http/http_client_internal.h"

bay_err http2_call_prepare(http_call *self, const http_call_spec *spec, const uri *url, bool is_tls)
{
    (void)self;
    (void)spec;
    (void)url;
    (void)is_tls;
    return BAY_ERR_UNSUPPORTED;
}

bay_err http2_call_start(http_call *self)
{
    CHECK(self == NULL);
    return BAY_ERR_INTERNAL;
}

void http2_call_leave(http_call *self)
{
    CHECK(self == NULL);
}

void http2_call_free(http_call *self)
{
    CHECK(self->http2 == NULL);
}

void http2_call_resume(http_call *self)
{
    CHECK(self == NULL);
}

bool http2_origin_has_room(http_client *client, http_origin *origin)
{
    (void)client;
    (void)origin;
    return false;
}

bool http2_origin_sweep(http_client *client, http_origin *origin, uint64_t now)
{
    (void)client;
    (void)origin;
    (void)now;
    return false;
}

void http2_origin_drop(http_origin *origin)
{
    CHECK(list_is_empty(&origin->lines));
}

void http2_lines_free(http_client *client)
{
    CHECK(list_is_empty(&client->dead_lines));
}
