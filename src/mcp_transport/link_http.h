/* A client link by URL, for src/mcp_transport/link_{http,exchange,sse_2024}.c only.
 *
 * One struct for two transports: Streamable HTTP (one exchange per message) and, from the start or
 * after fall_back, the deprecated HTTP+SSE (one GET stream for all input, one POST per message).
 *
 * An exchange: KEPT (behind the gate) --> UNDER WAY (call != NULL) --> dropped
 * - The engine names exchanges by number; `exchanges` finds them, so the number of an ended one
 *   finds nothing.
 * - A dropped exchange has no HTTP call and gets no events; its memory stays until no event handler
 *   of the link is on the stack (`depth`).
 * - An exchange that the engine named (`id` not 0) ends by mcp_client_ended exactly once, unless
 *   the engine abandoned it or the link was freed.
 * - The gate: notifications/initialized is an exchange of its own, and a server may refuse what
 *   overtakes it; so later messages wait until its reply has begun. */
#ifndef MCP_TRANSPORT_LINK_HTTP_H
#define MCP_TRANSPORT_LINK_HTTP_H

#include "base/list.h"
#include "base/map.h"
#include "mcp_transport/link_internal.h"
#include "wire/sse.h"
#include "wire/uri.h"

enum {
    LINK_MAX_EXCHANGES = 1 << 16,
    LINK_MAX_UNNAMED = 4096,        /* notifications and answers under way */
    LINK_MAX_IGNORED_BYTES = 65536, /* of a body that is ignored; above it, the exchange is cut */
    LINK_MAX_HELD_BYTES = 1 << 20,  /* of a paused stream; one read in practice */
    LINK_MAX_USER_FIELD_BYTES = 1 << 16,
    LINK_MAX_USER_FIELDS = 256,
    LINK_MAX_URL_BYTES = 8192,
    LINK_SLACK_MS = 1000, /* so that the engine's own time-outs come first */
    LINK_GATE_MS = 10000, /* longest wait behind notifications/initialized */
    LINK_DELETE_MS = 2000,
    LINK_ENDPOINT_MS = 10000, /* HTTP+SSE: until the endpoint event */
    LINK_TEXT = 200,
};

typedef enum exchange_kind {
    EXCHANGE_POST,
    EXCHANGE_LISTEN, /* GET stream of Streamable HTTP */
    EXCHANGE_DELETE,
    EXCHANGE_STREAM, /* the GET of HTTP+SSE */
} exchange_kind;

typedef enum reply_kind { REPLY_IGNORED, REPLY_JSON, REPLY_EVENTS } reply_kind;

typedef struct http_link http_link;

typedef struct link_exchange {
    list_link link; /* in `open` or `dropped` */
    list_link wait; /* in `waiting` */
    http_link *owner;
    uint64_t id; /* 0: not an exchange of the engine */
    exchange_kind kind;
    http_authority *authority;
    http_call *call;
    buf kept; /* behind the gate: message, then "Name\0value\0" each */
    size_t kept_message;
    size_t kept_fields;
    uint32_t timeout_ms;
    int status;
    reply_kind reply;
    buf body;
    size_t ignored_bytes;
    sse_decoder decoder;
    buf held; /* of a paused stream, not yet decoded */
    bay_err end_err;
    bool end_was_sent;
    bool is_over; /* its end came while bytes were held */
    bool is_paused;
    bool is_duplex; /* HTTP+SSE: messages go to the engine without an exchange */
    bool is_dropped;
    bool is_held; /* the engine knows that it waits for its authorization */
} link_exchange;

struct http_link {
    mcp_link base;
    http_client *http;
    http_authority *(*authority)(void *user, const auth_principal *principal);
    void *authority_user;
    char *url;
    size_t url_len;
    uri parts;     /* of `url` */
    char *secrets; /* the bytes of the owner's fields */
    size_t secret_bytes;
    http_field *fields; /* the owner's, then room for those of one request */
    size_t field_count;
    list open;
    list dropped;
    list waiting;
    map exchanges;
    size_t unnamed_count;
    unsigned depth;
    link_exchange *gate;
    loop_timer gate_timer;
    loop_task resume;
    bool is_sse_2024;
    link_exchange *stream;
    buf endpoint;
    loop_timer endpoint_timer;
};

static inline bay_str http_link_url(const http_link *self)
{
    return (bay_str){self->url, self->url_len};
}

/* ---- link_exchange.c: one exchange from its making to its end */

void http_link_enter(http_link *self);
void http_link_leave(http_link *self);

/* Creates an exchange and, unless the gate is closed, sends it. BAY_OK, or an error: nothing was
 * sent. */
bay_err exchange_begin(http_link *self, exchange_kind kind, uint64_t id, bay_str message,
                       const mcp_field *fields, size_t count, uint32_t timeout_ms,
                       link_exchange **out) BAY_MUST_CHECK;
link_exchange *exchange_find(http_link *self, uint64_t id);
void exchange_pause(link_exchange *self, bool is_paused);
/* Without an event. */
void exchange_drop(link_exchange *self);
/* Reports the end to the engine (or other owner) and drops it. `text` is borrowed. */
void exchange_conclude(link_exchange *self, bay_err err, bool was_sent, const char *text);
/* Processes the held bytes; for the link's `resume` task. */
void exchange_resume_all(void *argument);
/* Sends what waited behind the gate. */
void http_link_open_gate(http_link *self);

/* ---- link_sse_2024.c */

/* Opens the stream; the engine gets mcp_client_relinked when the endpoint is known. */
void sse_2024_begin(http_link *self);
void sse_2024_late(void *argument); /* for the timer */
void sse_2024_head(link_exchange *stream, int status, bool is_events);
void sse_2024_event(link_exchange *stream, const sse_block *block);
void sse_2024_ended(http_link *self, bay_err err, const char *text);
void sse_2024_stop(http_link *self);

#endif
