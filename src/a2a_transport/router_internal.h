/* Shared by the files of A2A's HTTP router. Internal to the module. */
#ifndef A2A_TRANSPORT_ROUTER_INTERNAL_H
#define A2A_TRANSPORT_ROUTER_INTERNAL_H

#include "a2a_transport/grpc.h"
#include "a2a_transport/router.h"
#include "base/list.h"
#include "front/http_reply.h"

struct a2a_http_router {
    loop *loop;
    a2a_http_router_options options;
    http_replies replies;
    a2a_grpc *grpc;
    list calls; /* those that their services have not ended */
    list spare; /* kept for reuse, bounded */
    uint32_t spare_count;
    buf answer; /* one body, while it is passed to its exchange */
};

/* The fields of a whole answer beside status and body; empty: omitted. */
typedef struct a2a_head {
    bay_str media;
    bay_str allow;                    /* Allow */
    bay_str extensions;               /* A2A-Extensions */
    const front_challenge *challenge; /* NULL: none */
} a2a_head;

/* router.c */
void a2a_http_router_reply(http_exchange *exchange, int status, const a2a_head *head, bay_str body);
/* An error that belongs to no operation: {"error":{"code":…,"message":…}}. */
void a2a_http_router_reply_error(http_exchange *exchange, int status, bay_str allow,
                                 const char *text);
void a2a_http_router_reply_fault(a2a_http_router *self, http_exchange *exchange,
                                 const a2a_inbound *request, const a2a_fault *fault,
                                 const front_challenge *challenge);

/* router_call.c: an operation, by JSON-RPC (path "" or "/") or HTTP+JSON. False: an unknown path.
 * The call takes a reference of its own. */
bool a2a_http_router_call(a2a_http_router *self, http_exchange *exchange,
                          const a2a_http_agent *agent, bay_str path,
                          const auth_principal *principal);
/* The request in the form that its errors get, before anything of it is read. */
a2a_inbound a2a_http_router_unread(const http_exchange *exchange, bay_str path);
/* The router is freed; calls that have not ended are freed at their end. */
void a2a_http_router_forget_calls(a2a_http_router *self);

/* router_fields.c: header fields and the query. Views into the exchange or its arena. */
/* Those that every call needs, from one walk over the fields. */
typedef struct a2a_http_router_fields {
    bay_str version;      /* as a2a_http_router_version */
    bay_str content_type; /* `at` NULL: absent; likewise accept */
    bay_str accept;
    bay_str traceparent; /* as a2a_http_router_traceparent */
    uint64_t last_event_id;
    bool has_extensions; /* it may have some: a2a_http_router_extensions decides */
} a2a_http_router_fields;
void a2a_http_router_fields_read(const http_exchange *exchange, a2a_http_router_fields *out);
/* The version's text: from the header, otherwise the query; `at` NULL: neither. */
bay_str a2a_http_router_version(const http_exchange *exchange);
/* A2A-Extensions, or X-A2A-Extensions of 0.3: all such fields, joined. */
bay_str a2a_http_router_extensions(http_exchange *exchange);
/* Those of `asked` that are in `known`, both separated by commas, in the arena; "": none. */
bay_str a2a_http_router_activated(bay_str asked, bay_str known, arena *memory);
/* W3C trace context: the field if it is valid, otherwise "". */
bay_str a2a_http_router_traceparent(const http_exchange *exchange);
uint64_t a2a_http_router_last_event_id(const http_exchange *exchange);
/* Whether a body of this Content-Type may be JSON. Absent: yes. */
bool a2a_http_router_is_json(bay_str content_type);

#endif
