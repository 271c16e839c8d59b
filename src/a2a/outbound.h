/* Writing requests to an agent and reading its answers, for the two JSON bindings, without HTTP.
 * (gRPC: a2a_transport/grpc_link.) */
#ifndef A2A_OUTBOUND_H
#define A2A_OUTBOUND_H

#include "a2a/dialect.h"
#include "wire/field.h"

/* An address of an agent, from its card. */
typedef struct a2a_interface {
    bay_str url;
    bay_str tenant; /* "": none; sent back exactly */
    a2a_binding binding;
    a2a_version version;
} a2a_interface;

/* The interfaces of a card (1.0, normal form) that this library supports, in the card's order: at
 * most `max`, in the arena. A duplicate URL of an older version comes later: the first entry is the
 * best. Errors: BAY_ERR_VERSION with `fault`: none is supported; BAY_ERR_NOMEM. Source: A2A 1.0.1
 * section 4.4.6, 8. */
bay_err a2a_interfaces_of(json_val card, arena *memory, a2a_interface *out, size_t max,
                          size_t *out_count, a2a_fault *fault) BAY_MUST_CHECK;

enum { A2A_OUTBOUND_FIELDS = 8 };

/* One HTTP request. Views into `memory`, the body into the writer's buffer. */
typedef struct a2a_outbound {
    bay_str verb;
    bay_str url;
    bay_str body;
    bool has_body;
    http_field fields[A2A_OUTBOUND_FIELDS]; /* Content-Type, Accept, A2A-Version */
    size_t field_count;
} a2a_outbound;

/* The body is written to `body`, which is empty. `params`: 1.0. `rpc_id`: raw JSON, for JSON-RPC.
 * `is_second_try`: a REST subscribe by GET, after POST was answered with 405. Errors:
 * BAY_ERR_UNSUPPORTED with `fault` (the form has no such method), BAY_ERR_NOMEM, BAY_ERR_LIMIT. */
bay_err a2a_request_write(const a2a_interface *to, a2a_method method, json_val params,
                          bay_str rpc_id, bool is_second_try, arena *memory, buf *body,
                          a2a_outbound *out, a2a_fault *fault) BAY_MUST_CHECK;

/* A whole answer (also in place of a stream): the 1.0 result, in `body` if nothing of it had to
 * change, otherwise in `memory`; valid as long as both. An error of the agent is BAY_ERR_REMOTE
 * with `fault`, an invalid answer BAY_ERR_PROTOCOL (A2A_E_INVALID_AGENT_RESPONSE). */
bay_err a2a_response_read(const a2a_interface *from, a2a_method method, int status, bay_str body,
                          bay_str rpc_id, arena *memory, json_val *out,
                          a2a_fault *fault) BAY_MUST_CHECK;
/* The data of one SSE event: the 1.0 StreamResponse, in `data` if nothing of it had to change,
 * otherwise in `memory`; valid as long as both. `name`: the event's name. */
bay_err a2a_stream_read(const a2a_interface *from, bay_str name, bay_str data, bay_str rpc_id,
                        arena *memory, json_val *out, bool *out_is_last,
                        a2a_fault *fault) BAY_MUST_CHECK;

#endif
