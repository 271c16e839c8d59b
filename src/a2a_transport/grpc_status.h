/* A2A's names in gRPC, for both sides: services and methods, the types of their messages, status
 * codes of faults. Internal to the module. */
#ifndef A2A_TRANSPORT_GRPC_STATUS_H
#define A2A_TRANSPORT_GRPC_STATUS_H

#include "a2a/dialect.h"
#include "wire/grpc_frame.h"

#define A2A_GRPC_1_0 "/lf.a2a.v1.A2AService/"
#define A2A_GRPC_0_3 "/a2a.v1.A2AService/"
#define A2A_GRPC_DOMAIN "a2a-protocol.org"

enum { A2A_GRPC_PARAMS_BYTES = 64 << 20 /* of one message, as JSON */ };

/* The form and method of a path. BAY_ERR_NOT_FOUND: unknown. Source: A2A 1.0.1 and 0.3.0,
 * a2a.proto. */
bay_err a2a_grpc_path_read(bay_str path, a2a_form *out_form, a2a_method *out_method) BAY_MUST_CHECK;
/* The name of the method in that form's service; "": it has none. */
bay_str a2a_grpc_method_name(a2a_form form, a2a_method method);
a2a_type a2a_grpc_request_type(a2a_form form, a2a_method method);
a2a_type a2a_grpc_response_type(a2a_form form, a2a_method method);

/* The parts of a fault's status; `text` and `details` are cleared and hold the values. */
typedef struct a2a_grpc_trailers {
    http_field fields[4];
    size_t count;
    char code[3];
} a2a_grpc_trailers;
/* BAY_ERR_NOMEM: the status alone. `fault` NULL: OK. */
void a2a_grpc_trailers_write(const a2a_fault *fault, int code, buf *text, buf *details,
                             a2a_grpc_trailers *out);

/* The fault of a status; `details` is the value of grpc-status-details-bin or "". */
void a2a_grpc_fault_read(int code, bay_str message, bay_str details, a2a_fault *out);

#endif
