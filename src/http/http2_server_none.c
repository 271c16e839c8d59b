/* Replaces http2_server.c in a library without HTTP/2: nothing begins a session, so nothing else is
 * called. */
#include "base/check.h"
#include "http/http_internal.h"

const bool http2_is_built = false;

bay_err http2_preface(bay_str bytes)
{
    (void)bytes;
    return BAY_ERR_NOT_FOUND;
}

void http2_begin(http_connection *connection, bay_str bytes)
{
    (void)bytes;
    CHECK(connection == NULL);
}

void http2_turn(http_connection *connection)
{
    CHECK(connection == NULL);
}

void http2_sweep(http_connection *connection, uint64_t now)
{
    (void)now;
    CHECK(connection == NULL);
}

void http2_warn(http_connection *connection)
{
    CHECK(connection->http2 == NULL);
}

void http2_drain(http_connection *connection)
{
    CHECK(connection == NULL);
}

void http2_end(http_connection *connection)
{
    CHECK(connection == NULL);
}

void http2_free(http_connection *connection)
{
    CHECK(connection->http2 == NULL);
}

size_t http2_queued_bytes(const http_connection *connection)
{
    CHECK(connection == NULL);
    return 0;
}

uint64_t http2_sent_bytes(const http_connection *connection)
{
    CHECK(connection == NULL);
    return 0;
}

void http2_drop_queued(http_connection *connection)
{
    CHECK(connection == NULL);
}

http_connection *http2_exchange_connection(const http_exchange *exchange)
{
    CHECK(exchange == NULL);
    return NULL;
}

void http2_reply(http_exchange *exchange, int status, const http_field *fields, size_t count,
                 bay_str body)
{
    (void)status;
    (void)fields;
    (void)count;
    (void)body;
    CHECK(exchange == NULL);
}

bay_err http2_stream_open(http_exchange *exchange, int status, const http_field *fields,
                          size_t count, bool release_request)
{
    (void)status;
    (void)fields;
    (void)count;
    (void)release_request;
    CHECK(exchange == NULL);
    return BAY_ERR_INTERNAL;
}

bay_err http2_stream_write(http_exchange *exchange, bay_str bytes)
{
    (void)bytes;
    CHECK(exchange == NULL);
    return BAY_ERR_INTERNAL;
}

void http2_stream_end(http_exchange *exchange, const http_field *trailers, size_t count)
{
    (void)trailers;
    (void)count;
    CHECK(exchange == NULL);
}

void http2_abort(http_exchange *exchange)
{
    CHECK(exchange == NULL);
}

bool http_server_speaks_http2(void)
{
    return false;
}
