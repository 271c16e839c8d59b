/* Requests and answers of the two JSON bindings, without HTTP. (gRPC: a2a_transport/grpc.)
 *
 * One address serves all versions: the version is the header A2A-Version, otherwise the query's,
 * otherwise 0.3; the names of JSON-RPC methods must agree with it; for REST the path decides
 * (`/v1/…` is 0.3). */
#ifndef A2A_INBOUND_H
#define A2A_INBOUND_H

#include "a2a/dialect.h"
#include "wire/field.h"

typedef struct a2a_inbound_settings {
    /* A PascalCase method without a version is served as 1.0; false: -32601. */
    bool is_lenient;
} a2a_inbound_settings;

/* A parsed request. Views into the arena, or static. */
typedef struct a2a_inbound {
    a2a_binding binding;
    a2a_version version;
    a2a_form form;
    a2a_method method;
    bay_str rpc_id;  /* raw JSON; empty: REST; "null": it could not be read */
    json_val params; /* 1.0, normal form */
    bay_str tenant;  /* of the path or of params; "" */
} a2a_inbound;

/* `version`: the text of the header or the query; `at` NULL: neither. On BAY_ERR_PROTOCOL `out` has
 * binding, version (1.0 if unknown) and rpc_id, which the answer needs, and `fault` is set. Batches
 * and notifications are refused. Errors: also BAY_ERR_NOMEM. Source: A2A 1.0.1 sections 3.6 and 9;
 * 0.3.0 section 6.11; JSON-RPC 2.0. */
bay_err a2a_jsonrpc_read(bay_str body, bay_str version, const a2a_inbound_settings *settings,
                         arena *memory, a2a_inbound *out, a2a_fault *fault) BAY_MUST_CHECK;

/* `path`: the part after the agent's own, with its leading '/' ("/message:send",
 * "/TENANT/tasks/ID:cancel", "/v1/tasks/ID"), still percent-encoded. *out_allow: the verbs of a
 * path that exists, for a 405. BAY_ERR_NOT_FOUND: no such path. Source: A2A 1.0.1 section 11.3;
 * 0.3.0 section 3.5.3. */
bay_err a2a_rest_read(bay_str verb, bay_str path, bay_str query, bay_str body, bay_str version,
                      arena *memory, a2a_inbound *out, bay_str *out_allow,
                      a2a_fault *fault) BAY_MUST_CHECK;

/* Appends bodies of answers: JSON-RPC wraps the result, REST does not. `result`: 1.0; `value`: the
 * same as a value if it is known, for older forms. */
bay_err a2a_write_result(const a2a_inbound *request, bay_str result, json_val value,
                         buf *out) BAY_MUST_CHECK;
/* *out_status: HTTP status (JSON-RPC: 200, except for refusals of the transport). */
void a2a_write_fault(const a2a_inbound *request, const a2a_fault *fault, buf *out, int *out_status);
/* The data of one SSE event, from the event's shared rendering in the request's form. */
void a2a_write_event(const a2a_inbound *request, bay_str rendered, buf *out);
/* The media type of answers: application/json; REST 1.0: application/a2a+json unless the request's
 * Accept or Content-Type has application/json. Static. */
bay_str a2a_media_type(const a2a_inbound *request, bay_str accept, bay_str content_type);

#endif
