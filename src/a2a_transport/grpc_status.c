/* Tables between A2A and gRPC. */
#include "a2a_transport/grpc_status.h"

#include "base/check.h"

enum { STATUS_MEMORY = 64 * 1024 };

/* Package a2a.v1 has other names for some methods, and other messages. */
static const struct {
    bay_str name;
    a2a_type request;
    a2a_type response;
} older[A2A_METHODS] = {
    [A2A_SEND_MESSAGE] = {STR_INIT("SendMessage"), A2A_TYPE_V1_SEND_MESSAGE_REQUEST,
                          A2A_TYPE_V1_SEND_MESSAGE_RESPONSE},
    [A2A_SEND_STREAMING_MESSAGE] = {STR_INIT("SendStreamingMessage"),
                                    A2A_TYPE_V1_SEND_MESSAGE_REQUEST, A2A_TYPE_V1_STREAM_RESPONSE},
    [A2A_GET_TASK] = {STR_INIT("GetTask"), A2A_TYPE_V1_GET_TASK_REQUEST, A2A_TYPE_V1_TASK},
    [A2A_CANCEL_TASK] = {STR_INIT("CancelTask"), A2A_TYPE_V1_CANCEL_TASK_REQUEST, A2A_TYPE_V1_TASK},
    [A2A_SUBSCRIBE_TO_TASK] = {STR_INIT("TaskSubscription"), A2A_TYPE_V1_TASK_SUBSCRIPTION_REQUEST,
                               A2A_TYPE_V1_STREAM_RESPONSE},
    [A2A_CREATE_PUSH_CONFIG] = {STR_INIT("CreateTaskPushNotificationConfig"),
                                A2A_TYPE_V1_CREATE_PUSH_CONFIG_REQUEST,
                                A2A_TYPE_V1_TASK_PUSH_NOTIFICATION_CONFIG},
    [A2A_GET_PUSH_CONFIG] = {STR_INIT("GetTaskPushNotificationConfig"),
                             A2A_TYPE_V1_GET_PUSH_CONFIG_REQUEST,
                             A2A_TYPE_V1_TASK_PUSH_NOTIFICATION_CONFIG},
    [A2A_LIST_PUSH_CONFIGS] = {STR_INIT("ListTaskPushNotificationConfig"),
                               A2A_TYPE_V1_LIST_PUSH_CONFIGS_REQUEST,
                               A2A_TYPE_V1_LIST_PUSH_CONFIGS_RESPONSE},
    [A2A_DELETE_PUSH_CONFIG] = {STR_INIT("DeleteTaskPushNotificationConfig"),
                                A2A_TYPE_V1_DELETE_PUSH_CONFIG_REQUEST, A2A_TYPE_V1_EMPTY},
    [A2A_GET_EXTENDED_CARD] = {STR_INIT("GetAgentCard"), A2A_TYPE_V1_GET_AGENT_CARD_REQUEST,
                               A2A_TYPE_V1_AGENT_CARD},
};

bay_str a2a_grpc_method_name(a2a_form form, a2a_method method)
{
    return form == A2A_FORM_1_0 ? a2a_methods[method].name : older[method].name;
}

a2a_type a2a_grpc_request_type(a2a_form form, a2a_method method)
{
    return form == A2A_FORM_1_0 ? (a2a_type)a2a_methods[method].request : older[method].request;
}

a2a_type a2a_grpc_response_type(a2a_form form, a2a_method method)
{
    return form == A2A_FORM_1_0 ? (a2a_type)a2a_methods[method].response : older[method].response;
}

bay_err a2a_grpc_path_read(bay_str path, a2a_form *out_form, a2a_method *out_method)
{
    a2a_form form;
    bay_str name;
    if (str_starts(path, STR(A2A_GRPC_1_0))) {
        form = A2A_FORM_1_0;
        name = str_from(path, sizeof(A2A_GRPC_1_0) - 1);
    } else if (str_starts(path, STR(A2A_GRPC_0_3))) {
        form = A2A_FORM_0_3_PROTO;
        name = str_from(path, sizeof(A2A_GRPC_0_3) - 1);
    } else {
        return BAY_ERR_NOT_FOUND;
    }
    for (int i = 0; i < A2A_METHODS && name.len > 0; i++) {
        if (str_eq(name, a2a_grpc_method_name(form, (a2a_method)i))) {
            *out_form = form;
            *out_method = (a2a_method)i;
            return BAY_OK;
        }
    }
    return BAY_ERR_NOT_FOUND;
}

/* --- status ----------------------------------------------------------------------------------- */

static void put_code(a2a_grpc_trailers *out, int code)
{
    size_t len = code < 10 ? 1 : 2;
    out->code[0] = (char)('0' + (len == 1 ? code : code / 10));
    out->code[1] = (char)('0' + code % 10);
    out->fields[out->count++] = (http_field){STR("grpc-status"), {out->code, len}};
}

void a2a_grpc_trailers_write(const a2a_fault *fault, int code, buf *text, buf *details,
                             a2a_grpc_trailers *out)
{
    out->count = 0;
    put_code(out, code);
    if (fault == NULL) {
        return;
    }
    const a2a_error_row *row = &a2a_errors[fault->error];
    bay_str message = fault->text[0] != '\0' ? str_of(fault->text) : row->text;
    buf_clear(text);
    grpc_message_encode(text, message);
    if (text->err == BAY_OK && text->len > 0) {
        out->fields[out->count++] = (http_field){STR("grpc-message"), buf_view(text)};
    }
    if (row->reason.len == 0) {
        return;
    }
    /* a2a 1.0.1 section 10.6: errors of A2A carry an ErrorInfo. */
    grpc_status status = {
        .code = code, .message = message, .reason = row->reason, .domain = STR(A2A_GRPC_DOMAIN)};
    buf_clear(details);
    grpc_details_write(details, &status);
    if (details->err == BAY_OK) {
        out->fields[out->count++] = (http_field){STR("grpc-status-details-bin"), buf_view(details)};
    }
}

static a2a_error error_of_code(int code)
{
    switch (code) {
    case GRPC_INVALID_ARGUMENT:
    case GRPC_OUT_OF_RANGE:
        return A2A_E_INVALID_PARAMS;
    case GRPC_DEADLINE_EXCEEDED:
        return A2A_E_DEADLINE;
    case GRPC_NOT_FOUND:
        return A2A_E_TASK_NOT_FOUND;
    case GRPC_PERMISSION_DENIED:
        return A2A_E_FORBIDDEN;
    case GRPC_UNAUTHENTICATED:
        return A2A_E_UNAUTHENTICATED;
    case GRPC_RESOURCE_EXHAUSTED:
        return A2A_E_BUSY;
    case GRPC_FAILED_PRECONDITION:
    case GRPC_UNIMPLEMENTED:
        return A2A_E_UNSUPPORTED_OPERATION;
    case GRPC_UNAVAILABLE:
        return A2A_E_UNAVAILABLE;
    default:
        return A2A_E_INTERNAL;
    }
}

static a2a_error error_of_details(bay_str details)
{
    arena memory;
    grpc_status status;
    a2a_error error = A2A_NO_ERROR;
    arena_init(&memory, STATUS_MEMORY);
    if (grpc_details_read(details, &memory, &status) == BAY_OK &&
        str_eq(status.domain, STR(A2A_GRPC_DOMAIN))) {
        for (int i = A2A_NO_ERROR + 1; i < A2A_ERRORS; i++) {
            if (a2a_errors[i].reason.len > 0 && str_eq(a2a_errors[i].reason, status.reason)) {
                error = (a2a_error)i;
            }
        }
    }
    arena_fini(&memory);
    return error;
}

void a2a_grpc_fault_read(int code, bay_str message, bay_str details, a2a_fault *out)
{
    a2a_error error = details.len > 0 ? error_of_details(details) : A2A_NO_ERROR;
    if (error == A2A_NO_ERROR) {
        error = error_of_code(code);
    }
    buf text;
    buf_init(&text, message.len + 1);
    grpc_message_decode(&text, message);
    bay_str said = text.err == BAY_OK ? buf_view(&text) : STR("");
    if (said.len > 0) {
        (void)a2a_fault_set(out, error, "%.*s", BAY_STR(said));
    } else {
        (void)a2a_fault_set(out, error, "the agent says %.*s", BAY_STR(grpc_code_name(code)));
    }
    buf_fini(&text);
}
