/* The tables of A2A: versions, bindings, forms, methods, states, errors. All code inside uses one
 * model, the ProtoJSON of 1.0; the others are forms of it, converted at the edge.
 *
 *   binding (transport):  JSON-RPC │ HTTP+JSON │ gRPC
 *   form (notation):      1.0 │ 0.3 (also 0.2) │ 0.3's protobuf (REST and gRPC) │ 0.1 */
#ifndef A2A_PROTOCOL_H
#define A2A_PROTOCOL_H

#include "base/str.h"
#include "call/kind.h"
#include "patchbay/types.h"

typedef enum a2a_version { A2A_0_1, A2A_0_2, A2A_0_3, A2A_1_0, A2A_VERSIONS } a2a_version;
typedef enum a2a_binding { A2A_JSONRPC, A2A_HTTP_JSON, A2A_GRPC, A2A_BINDINGS } a2a_binding;

/* The notation of a message. gRPC carries the protobuf encoding of A2A_FORM_1_0 or
 * A2A_FORM_0_3_PROTO. */
typedef enum a2a_form {
    A2A_FORM_1_0,       /* the model itself: package lf.a2a.v1 */
    A2A_FORM_0_3,       /* `kind`, results without a wrapper: JSON-RPC of 0.2 and 0.3 */
    A2A_FORM_0_3_PROTO, /* package a2a.v1: `content`, names "tasks/ID"; REST and gRPC of 0.3 */
    A2A_FORM_0_1,       /* `type`, task ids made by clients, sessionId */
    A2A_FORMS
} a2a_form;

static inline a2a_form a2a_form_of(a2a_version version, a2a_binding binding)
{
    return version == A2A_1_0       ? A2A_FORM_1_0
           : version == A2A_0_1     ? A2A_FORM_0_1
           : binding == A2A_JSONRPC ? A2A_FORM_0_3
                                    : A2A_FORM_0_3_PROTO;
}

typedef enum a2a_method {
#define A2A_METHOD(symbol, name, name_0_3, name_0_1, request, response, flags, call) A2A_##symbol,
#include "a2a/methods.def"
#undef A2A_METHOD
    A2A_METHODS
} a2a_method;

enum { A2A_METHOD_STREAM = 1, A2A_METHOD_SAFE = 2, A2A_METHOD_PUSH = 4 };

typedef struct a2a_method_row {
    bay_str name;
    bay_str name_0_3;
    bay_str name_0_1;
    int request;  /* a2a_type */
    int response; /* a2a_type */
    unsigned flags;
    call_kind call;
} a2a_method_row;

extern const a2a_method_row a2a_methods[A2A_METHODS];

/* TaskState, by its numbers in 1.0. */
typedef enum a2a_state {
    A2A_STATE_UNSPECIFIED,
    A2A_SUBMITTED,
    A2A_WORKING,
    A2A_COMPLETED,
    A2A_FAILED,
    A2A_CANCELED,
    A2A_INPUT_REQUIRED,
    A2A_REJECTED,
    A2A_AUTH_REQUIRED,
    A2A_STATES
} a2a_state;

extern const bay_str a2a_state_names[A2A_STATES]; /* "TASK_STATE_SUBMITTED" … */
static inline bool a2a_state_is_terminal(a2a_state state)
{
    return state == A2A_COMPLETED || state == A2A_FAILED || state == A2A_CANCELED ||
           state == A2A_REJECTED;
}
static inline bool a2a_state_is_interrupted(a2a_state state)
{
    return state == A2A_INPUT_REQUIRED || state == A2A_AUTH_REQUIRED;
}
/* By its 1.0 name; A2A_STATE_UNSPECIFIED: unknown. */
a2a_state a2a_state_of(bay_str name);

typedef enum a2a_error {
    A2A_NO_ERROR,
#define A2A_ERROR(symbol, code, http, grpc, reason, text) A2A_E_##symbol,
#include "a2a/errors.def"
#undef A2A_ERROR
    A2A_ERRORS
} a2a_error;

typedef struct a2a_error_row {
    int code;
    int http;
    int grpc; /* number of the status code */
    bay_str grpc_name;
    bay_str reason;
    bay_str text;
} a2a_error_row;

extern const a2a_error_row a2a_errors[A2A_ERRORS];

/* The error with this JSON-RPC code in this version (0.1 uses some numbers differently);
 * A2A_E_INTERNAL: unknown. */
a2a_error a2a_error_of_code(a2a_version version, int64_t code);
/* The JSON-RPC code of the error for a peer of this version. */
int a2a_error_code(a2a_version version, a2a_error error);

enum { A2A_FAULT_BYTES = 240 };

/* A failure: its error, and a text with what, where and what to do, which ends in NUL. */
typedef struct a2a_fault {
    a2a_error error;
    char text[A2A_FAULT_BYTES];
} a2a_fault;

/* Sets it (NULL is allowed) and returns BAY_ERR_PROTOCOL, so that `return a2a_fault_set(…)` is one
 * statement. A text that is too long is cut between characters. */
bay_err a2a_fault_set(a2a_fault *fault, a2a_error error, const char *format, ...) BAY_PRINTF(3, 4);

/* The version that a request names by header, otherwise by query parameter; both may be empty (`at`
 * NULL). Reduced to Major.Minor; empty means 0.3. A2A_VERSIONS: unknown. Source: A2A 1.0.1 section
 * 3.6. */
a2a_version a2a_version_of(bay_str text);
extern const bay_str a2a_version_names[A2A_VERSIONS]; /* "0.1" … "1.0" */
extern const bay_str a2a_binding_names[A2A_BINDINGS]; /* "JSONRPC" "HTTP+JSON" "GRPC" */

#endif
