/* The client side of the deprecated HTTP+SSE transport: one GET stream names the URL for messages
 * and then carries everything that the server sends; one POST per message.
 *
 * The URL must have the stream's own origin, because the owner's credentials are sent to it.
 * Source: mcp 2024-11-05 basic/transports, HTTP with SSE. */
#include <stdio.h>

#include "base/str.h"
#include "mcp_transport/link_http.h"
#include "wire/uri.h"

static bay_err status_err(int status)
{
    if (status == 401 || status == 403 || status == 407) {
        return BAY_ERR_DENIED;
    }
    if (status == 429 || status == 503) {
        return BAY_ERR_BUSY;
    }
    return status >= 500 ? BAY_ERR_CLOSED : BAY_ERR_PROTOCOL;
}

static void sse_2024_break(http_link *self, bay_err err, const char *text)
{
    sse_2024_stop(self);
    mcp_client_broken(self->base.client, err, text, link_now(&self->base));
}

void sse_2024_late(void *argument)
{
    http_link *self = argument;
    http_link_enter(self);
    sse_2024_break(self, BAY_ERR_TIMEOUT,
                   "the server's event stream did not begin with an endpoint");
    http_link_leave(self);
}

void sse_2024_begin(http_link *self)
{
    self->is_sse_2024 = true;
    http_link_enter(self);
    bay_err err = loop_timer_start(self->base.loop, &self->endpoint_timer, LINK_ENDPOINT_MS);
    if (err == BAY_OK) {
        err = exchange_begin(self, EXCHANGE_STREAM, 0, (bay_str){0}, NULL, 0, 0, &self->stream);
    }
    if (err != BAY_OK) {
        sse_2024_break(self, err, "the event stream could not be opened");
    }
    http_link_leave(self);
}

void sse_2024_stop(http_link *self)
{
    loop_timer_stop(self->base.loop, &self->endpoint_timer);
    if (self->stream != NULL) {
        exchange_drop(self->stream);
    }
}

void sse_2024_head(link_exchange *stream, int status, bool is_events)
{
    char text[LINK_TEXT];
    if (status >= 400) {
        bay_str path = stream->owner->parts.path;
        snprintf(text, sizeof(text),
                 "the server answered HTTP status %d where its event stream "
                 "should be%s",
                 status,
                 status == 404 && !str_ends(path, STR("/mcp"))
                     ? "; most servers are at a path that ends in /mcp, and this URL does not"
                     : "");
        exchange_conclude(stream, status_err(status), true, text);
    } else if (!is_events) {
        exchange_conclude(stream, BAY_ERR_PROTOCOL, true,
                          "the server's answer is not an event stream");
    } else {
        stream->reply = REPLY_EVENTS;
    }
}

static void take_endpoint(http_link *self, bay_str reference)
{
    bool is_same_origin = false;
    buf_clear(&self->endpoint);
    bay_err err =
        uri_resolve(&self->endpoint, http_link_url(self), str_trim(reference), &is_same_origin);
    if (err != BAY_OK || !is_same_origin) {
        buf_clear(&self->endpoint);
        sse_2024_break(self, err != BAY_OK ? BAY_ERR_PROTOCOL : BAY_ERR_DENIED,
                       err != BAY_OK ? "the endpoint that the server names is no URL"
                                     : "the endpoint that the server names is of another origin; "
                                       "credentials are not sent there");
        return;
    }
    loop_timer_stop(self->base.loop, &self->endpoint_timer);
    mcp_client_relinked(self->base.client, MCP_LINK_SSE_2024, link_now(&self->base));
}

void sse_2024_event(link_exchange *stream, const sse_block *block)
{
    http_link *self = stream->owner;
    if (block->kind != SSE_EVENT) {
        return;
    }
    if (self->endpoint.len == 0) {
        if (str_eq(block->name, STR("endpoint"))) {
            take_endpoint(self, block->data);
        }
    } else if (str_eq(block->name, STR("message"))) {
        mcp_client_receive(self->base.client, 0, block->data, (bay_str){0}, link_now(&self->base));
    }
}

void sse_2024_ended(http_link *self, bay_err err, const char *text)
{
    sse_2024_break(self, err != BAY_OK ? err : BAY_ERR_CLOSED,
                   text != NULL ? text : "the server ended its event stream");
}
