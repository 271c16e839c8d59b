/* The tables of A2A, from the .def files, and look-ups in them. */
#include "a2a/protocol.h"

#include <stdarg.h>
#include <stdio.h>

#include "a2a/types.h"
#include "base/check.h"

/* The words of methods.def. */
enum { STREAM = A2A_METHOD_STREAM, SAFE = A2A_METHOD_SAFE, PUSH = A2A_METHOD_PUSH };

const a2a_method_row a2a_methods[A2A_METHODS] = {
#define A2A_METHOD(symbol, name, name_0_3, name_0_1, request, response, flags, call)               \
    {STR_INIT(name),     STR_INIT(name_0_3),  STR_INIT(name_0_1),                                  \
     A2A_TYPE_##request, A2A_TYPE_##response, flags,                                               \
     CALL_##call},
#include "a2a/methods.def"
#undef A2A_METHOD
};

const bay_str a2a_state_names[A2A_STATES] = {
    STR_INIT("TASK_STATE_UNSPECIFIED"),    STR_INIT("TASK_STATE_SUBMITTED"),
    STR_INIT("TASK_STATE_WORKING"),        STR_INIT("TASK_STATE_COMPLETED"),
    STR_INIT("TASK_STATE_FAILED"),         STR_INIT("TASK_STATE_CANCELED"),
    STR_INIT("TASK_STATE_INPUT_REQUIRED"), STR_INIT("TASK_STATE_REJECTED"),
    STR_INIT("TASK_STATE_AUTH_REQUIRED"),
};

const bay_str a2a_version_names[A2A_VERSIONS] = {
    STR_INIT("0.1"),
    STR_INIT("0.2"),
    STR_INIT("0.3"),
    STR_INIT("1.0"),
};

const bay_str a2a_binding_names[A2A_BINDINGS] = {
    STR_INIT("JSONRPC"),
    STR_INIT("HTTP+JSON"),
    STR_INIT("GRPC"),
};

/* Numbers of the status codes. Source: gRPC, doc/statuscodes.md. */
enum {
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_UNAUTHENTICATED = 16,
};

const a2a_error_row a2a_errors[A2A_ERRORS] = {
    {0, 200, 0, STR_INIT("OK"), STR_INIT(""), STR_INIT("no error")},
#define A2A_ERROR(symbol, code, http, grpc, reason, text)                                          \
    {code, http, GRPC_##grpc, STR_INIT(#grpc), STR_INIT(reason), STR_INIT(text)},
#include "a2a/errors.def"
#undef A2A_ERROR
};

/* Codes that 0.1 has with another meaning. In both directions, the first row of an error is used.
 * Source: A2A 0.1.0 section 8.2. */
static const struct {
    int code;
    a2a_error error;
} codes_0_1[] = {
    {-32006, A2A_E_UNSUPPORTED_OPERATION}, /* streaming is not supported */
    {-32007, A2A_E_UNAUTHENTICATED},
    {-32008, A2A_E_FORBIDDEN},
    {-32009, A2A_E_UNSUPPORTED_OPERATION}, /* not in this state of the task */
    {-32010, A2A_E_BUSY},
    {-32011, A2A_E_UNAVAILABLE},
};

a2a_state a2a_state_of(bay_str name)
{
    for (size_t i = 0; i < A2A_STATES; i++) {
        if (str_eq(a2a_state_names[i], name)) {
            return (a2a_state)i;
        }
    }
    return A2A_STATE_UNSPECIFIED;
}

a2a_error a2a_error_of_code(a2a_version version, int64_t code)
{
    for (size_t i = 0; version == A2A_0_1 && i < ARRAY_LEN(codes_0_1); i++) {
        if (codes_0_1[i].code == code) {
            return codes_0_1[i].error;
        }
    }
    for (size_t i = A2A_NO_ERROR + 1; i < A2A_ERRORS; i++) {
        if (a2a_errors[i].code == code) {
            return (a2a_error)i;
        }
    }
    return A2A_E_INTERNAL;
}

int a2a_error_code(a2a_version version, a2a_error error)
{
    int code = a2a_errors[error].code;
    if (version != A2A_0_1) {
        return code;
    }
    if (error == A2A_E_UNSUPPORTED_OPERATION) {
        return code; /* -32004 means it for every operation */
    }
    for (size_t i = 0; i < ARRAY_LEN(codes_0_1); i++) {
        if (codes_0_1[i].error == error) {
            return codes_0_1[i].code;
        }
    }
    /* Codes that 0.1 reads differently must not be sent to it. */
    for (size_t i = 0; i < ARRAY_LEN(codes_0_1); i++) {
        if (codes_0_1[i].code == code) {
            return error == A2A_E_INVALID_AGENT_RESPONSE
                       ? a2a_errors[A2A_E_INTERNAL].code
                       : a2a_errors[A2A_E_UNSUPPORTED_OPERATION].code;
        }
    }
    return code;
}

bay_err a2a_fault_set(a2a_fault *fault, a2a_error error, const char *format, ...)
{
    if (fault == NULL) {
        return BAY_ERR_PROTOCOL;
    }
    fault->error = error;
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(fault->text, sizeof(fault->text), format, arguments);
    va_end(arguments);
    if (len < 0) {
        fault->text[0] = '\0';
    } else if ((size_t)len >= sizeof(fault->text)) {
        /* A character that was cut is removed as a whole. */
        size_t at = sizeof(fault->text) - 1;
        size_t start = at;
        while (start > 0 && at - start < 4 &&
               ((unsigned char)fault->text[start - 1] & 0xc0) == 0x80) {
            start--;
        }
        unsigned char lead = start > 0 ? (unsigned char)fault->text[start - 1] : 0;
        size_t whole = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
        if (whole > 1 && at - (start - 1) < whole) {
            fault->text[start - 1] = '\0';
        }
    }
    return BAY_ERR_PROTOCOL;
}

static size_t digits_at(bay_str text, size_t from)
{
    size_t at = from;
    while (at < text.len && text.at[at] >= '0' && text.at[at] <= '9') {
        at++;
    }
    return at - from;
}

a2a_version a2a_version_of(bay_str text)
{
    if (str_eq(text, a2a_version_names[A2A_1_0])) { /* the most frequent form */
        return A2A_1_0;
    }
    bay_str name = str_trim(text);
    if (name.len == 0) {
        return A2A_0_3;
    }
    size_t major = digits_at(name, 0);
    if (major == 0 || major == name.len || name.at[major] != '.') {
        return A2A_VERSIONS;
    }
    size_t end = major + 1 + digits_at(name, major + 1);
    size_t at = end;
    while (at < name.len && name.at[at] == '.' && digits_at(name, at + 1) > 0) {
        at += 1 + digits_at(name, at + 1);
    }
    if (at != name.len) {
        return A2A_VERSIONS;
    }
    for (size_t i = 0; i < A2A_VERSIONS; i++) {
        if (str_eq(a2a_version_names[i], str_head(name, end))) {
            return (a2a_version)i;
        }
    }
    return A2A_VERSIONS;
}
