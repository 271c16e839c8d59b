/* Reads JSON-RPC, and writes the bodies of answers for both JSON bindings. A request of 1.0 in
 * normal form is indexed once and used in place; others are converted into the arena. */
#include "a2a/inbound_internal.h"

#include "rpc/message.h"
#include "json/build.h"

enum {
    PARAMS_BYTES = 192 << 20, /* of converted params */
    ANSWER_BYTES = 256 << 20, /* of one converted result */
};

/* ---- params ------------------------------------------------------------------------------------
 */

bay_err a2a_inbound_params(a2a_inbound *self, json_val params, arena *memory, a2a_fault *fault)
{
    bay_err err = BAY_OK;
    if (self->form == A2A_FORM_1_0) {
        a2a_type type = (a2a_type)a2a_methods[self->method].request;
        params = json_is(params, JSON_MISSING) ? json_empty_object() : params;
        err = a2a_normal_view(type, params, PARAMS_BYTES, memory, &params, fault);
    } else {
        err = a2a_params_view(self->form, self->method, params, memory, &params, fault);
    }
    if (err != BAY_OK) {
        return err;
    }
    self->params = params;
    json_val tenant = json_get(params, STR("tenant"));
    if (json_is(tenant, JSON_STRING)) {
        err = json_str(tenant, memory, &self->tenant);
    }
    return err;
}

/* An error that is not the peer's is reported as internal; a limit as a limit. */
bay_err a2a_inbound_failed(bay_err err, a2a_fault *fault)
{
    if (err == BAY_OK || err == BAY_ERR_PROTOCOL || err == BAY_ERR_NOMEM) {
        return err;
    }
    return a2a_fault_set(fault, A2A_E_INVALID_PARAMS, "the parameters: %s", bay_err_text(err));
}

/* ---- methods -----------------------------------------------------------------------------------
 */

/* The versions that have a method of this name, and the method. */
typedef struct named {
    a2a_method method;
    bool is_1_0;
    bool is_0_3;
    bool is_0_1;
} named;

static named method_named(bay_str name)
{
    for (size_t i = 0; name.len > 0 && i < A2A_METHODS; i++) {
        named found = {.method = (a2a_method)i,
                       .is_1_0 = str_eq(a2a_methods[i].name, name),
                       .is_0_3 = str_eq(a2a_methods[i].name_0_3, name),
                       .is_0_1 = str_eq(a2a_methods[i].name_0_1, name)};
        if (found.is_1_0 || found.is_0_3 || found.is_0_1) {
            return found; /* no other version has this name for another method */
        }
    }
    return (named){.method = A2A_METHODS};
}

/* The effective version: the given one, if it has the method; if none was given, the one that has
 * it. A2A_VERSIONS: they disagree. */
static a2a_version version_that_counts(const named *method, a2a_version said, bool is_said,
                                       bool is_lenient)
{
    bool agrees = said == A2A_1_0   ? method->is_1_0
                  : said == A2A_0_1 ? method->is_0_1
                                    : method->is_0_3;
    if (agrees) {
        return said;
    }
    if (!is_said && method->is_0_1) {
        return A2A_0_1;
    }
    return !is_said && method->is_1_0 && is_lenient ? A2A_1_0 : A2A_VERSIONS;
}

static bay_err choose_version(a2a_inbound *out, bay_str name, bay_str version,
                              const a2a_inbound_settings *settings, a2a_fault *fault)
{
    a2a_version said = a2a_version_of(version);
    if (said == A2A_VERSIONS) {
        bay_str shown = str_head(str_trim(version), 32);
        return a2a_fault_set(fault, A2A_E_VERSION_NOT_SUPPORTED,
                             "version %.*s is not supported; 1.0, 0.3, 0.2 and 0.1 are",
                             BAY_STR(shown));
    }
    named method = method_named(name);
    bay_str shown = str_head(name, 64);
    if (method.method == A2A_METHODS) {
        return a2a_fault_set(fault, A2A_E_METHOD_NOT_FOUND, "there is no method %.*s",
                             BAY_STR(shown));
    }
    bool is_said = str_trim(version).len > 0;
    a2a_version counts = version_that_counts(&method, said, is_said, settings->is_lenient);
    if (counts == A2A_VERSIONS) {
        return a2a_fault_set(fault, A2A_E_METHOD_NOT_FOUND,
                             is_said ? "version %.*s has no method %.*s"
                                     : "without A2A-Version this is version %.*s, which has no "
                                       "method %.*s",
                             BAY_STR(a2a_version_names[said]), BAY_STR(shown));
    }
    out->version = counts;
    out->form = a2a_form_of(counts, A2A_JSONRPC);
    out->method = method.method;
    return BAY_OK;
}

/* ---- JSON-RPC ----------------------------------------------------------------------------------
 */

static a2a_error error_of_rpc(int code)
{
    return code == RPC_PARSE_ERROR      ? A2A_E_PARSE_ERROR
           : code == RPC_INVALID_PARAMS ? A2A_E_INVALID_PARAMS
                                        : A2A_E_INVALID_REQUEST;
}

/* The envelope; the kind of its params is not checked yet. */
static bay_err read_envelope(bay_str body, arena *memory, rpc_message *message, a2a_inbound *out,
                             a2a_fault *fault)
{
    json_doc *doc = arena_alloc(memory, sizeof(*doc));
    if (doc == NULL) {
        return BAY_ERR_NOMEM;
    }
    rpc_fault rpc = {0};
    bay_err err = rpc_message_parse(message, doc, body, &a2a_json_limits, memory, &rpc);
    if (err == BAY_ERR_UNSUPPORTED) {
        return a2a_fault_set(fault, A2A_E_INVALID_REQUEST, "batches are not supported");
    }
    if (err == BAY_ERR_PROTOCOL) {
        /* JSON-RPC 2.0, Response object: null where the request could not be parsed */
        out->rpc_id = rpc.id.len > 0 && rpc.code != RPC_PARSE_ERROR ? rpc.id : STR("null");
        json_val params =
            rpc.code == RPC_INVALID_REQUEST ? json_get(json_root(doc), STR("params")) : JSON_NONE;
        bool has_bad_params = !json_is(params, JSON_MISSING) && !json_is(params, JSON_OBJECT) &&
                              !str_eq(out->rpc_id, STR("null"));
        return a2a_fault_set(fault, has_bad_params ? A2A_E_INVALID_PARAMS : error_of_rpc(rpc.code),
                             "%s", rpc.text != NULL ? rpc.text : "the message is not valid");
    }
    if (err != BAY_OK) {
        return err;
    }
    if (message->kind != RPC_REQUEST) {
        out->rpc_id = message->kind == RPC_NOTIFICATION ? STR("null") : out->rpc_id;
        return a2a_fault_set(fault, A2A_E_INVALID_REQUEST,
                             message->kind == RPC_NOTIFICATION ? "a request needs an id"
                                                               : "a request needs a method");
    }
    out->rpc_id = message->id;
    return BAY_OK;
}

bay_err a2a_jsonrpc_read(bay_str body, bay_str version, const a2a_inbound_settings *settings,
                         arena *memory, a2a_inbound *out, a2a_fault *fault)
{
    a2a_version said = a2a_version_of(version);
    said = said == A2A_VERSIONS ? A2A_1_0 : said;
    *out = (a2a_inbound){.binding = A2A_JSONRPC,
                         .version = said,
                         .form = a2a_form_of(said, A2A_JSONRPC),
                         .rpc_id = STR("null"),
                         .params = JSON_NONE,
                         .tenant = STR("")};
    rpc_message message;
    bay_err err = read_envelope(body, memory, &message, out, fault);
    if (err == BAY_OK) {
        err = choose_version(out, message.method, version, settings, fault);
    }
    if (err == BAY_OK) {
        err = a2a_inbound_params(out, message.params, memory, fault);
    }
    return a2a_inbound_failed(err, fault);
}

/* ---- answers -----------------------------------------------------------------------------------
 */

/* 0.1 has no answer without a task: it is the task of the request. */
static bay_str task_of_request(const a2a_inbound *request, arena *memory)
{
    bay_str id;
    json_val task = json_get(json_get(request->params, STR("message")), STR("taskId"));
    return request->form == A2A_FORM_0_1 && json_str(task, memory, &id) == BAY_OK ? id : STR("");
}

static bay_err write_translated(const a2a_inbound *request, bay_str result, json_val value,
                                buf *out)
{
    arena memory;
    arena_init(&memory, ANSWER_BYTES);
    bay_err err = a2a_text_view(result, value, &memory, &value);
    if (err == BAY_OK) {
        err = dialect_result_write(request->form, request->method, value,
                                   task_of_request(request, &memory), out);
    }
    arena_fini(&memory);
    return err;
}

bay_err a2a_write_result(const a2a_inbound *request, bay_str result, json_val value, buf *out)
{
    bool is_rpc = request->binding == A2A_JSONRPC;
    size_t before = out->len;
    bay_err err = BAY_OK;
    if (is_rpc) {
        buf_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
        buf_str(out, request->rpc_id);
        buf_lit(out, ",\"result\":");
    }
    if (request->form == A2A_FORM_1_0) {
        buf_str(out, result);
    } else {
        err = write_translated(request, result, value, out);
    }
    if (is_rpc) {
        buf_char(out, '}');
    }
    err = err != BAY_OK ? err : out->err;
    if (err != BAY_OK) {
        out->len = before;
    }
    return err;
}

void a2a_write_event(const a2a_inbound *request, bay_str rendered, buf *out)
{
    if (request->binding == A2A_JSONRPC) {
        rpc_write_result(out, request->rpc_id, rendered);
    } else {
        buf_str(out, rendered);
    }
}

/* Whether the transport itself refuses the request with this error. */
static bool is_of_transport(a2a_error error)
{
    return error >= A2A_E_UNAUTHENTICATED;
}

static void put_error_info(const a2a_error_row *row, buf *out)
{
    buf_lit(out, "[{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":\"");
    buf_str(out, row->reason);
    buf_lit(out, "\",\"domain\":\"a2a-protocol.org\",\"metadata\":{}}]");
}

static void write_rest_fault(const a2a_inbound *request, a2a_error error, bay_str text, buf *out)
{
    const a2a_error_row *row = &a2a_errors[error];
    if (request->form != A2A_FORM_1_0) { /* as in implementations of 0.3 */
        buf_lit(out, "{\"code\":");
        buf_int(out, a2a_error_code(request->version, error));
        buf_lit(out, ",\"message\":");
        json_quote(out, text);
        buf_char(out, '}');
        return;
    }
    buf_lit(out, "{\"error\":{\"code\":");
    buf_int(out, row->http);
    buf_lit(out, ",\"status\":\"");
    buf_str(out, row->grpc_name);
    buf_lit(out, "\",\"message\":");
    json_quote(out, text);
    buf_lit(out, ",\"details\":");
    if (row->reason.len > 0) {
        put_error_info(row, out);
    } else {
        buf_lit(out, "[]");
    }
    buf_lit(out, "}}");
}

void a2a_write_fault(const a2a_inbound *request, const a2a_fault *fault, buf *out, int *out_status)
{
    bool is_known = fault->error > A2A_NO_ERROR && fault->error < A2A_ERRORS;
    a2a_error error = is_known ? fault->error : A2A_E_INTERNAL;
    const a2a_error_row *row = &a2a_errors[error];
    bay_str text = fault->text[0] != '\0' ? str_of(fault->text) : row->text;
    if (request->binding != A2A_JSONRPC) {
        write_rest_fault(request, error, text, out);
        *out_status = row->http;
        return;
    }
    bool has_info = request->form == A2A_FORM_1_0 && row->reason.len > 0;
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_str(out, request->rpc_id.len > 0 ? request->rpc_id : STR("null"));
    buf_lit(out, ",\"error\":{\"code\":");
    buf_int(out, a2a_error_code(request->version, error));
    buf_lit(out, ",\"message\":");
    json_quote(out, text);
    if (has_info) {
        buf_lit(out, ",\"data\":");
        put_error_info(row, out);
    }
    buf_lit(out, "}}");
    *out_status = is_of_transport(error) ? row->http : 200;
}

static bool names(bay_str list, bay_str type)
{
    for (size_t i = 0; i + type.len <= list.len; i++) {
        if (str_eq_nocase(str_head(str_from(list, i), type.len), type)) {
            return true;
        }
    }
    return false;
}

bay_str a2a_media_type(const a2a_inbound *request, bay_str accept, bay_str content_type)
{
    bay_str plain = STR("application/json");
    bay_str own = STR("application/a2a+json");
    if (request->binding == A2A_JSONRPC || request->form != A2A_FORM_1_0) {
        return plain;
    }
    if (names(accept, own)) {
        return own;
    }
    return names(accept, plain) || (names(content_type, plain) && !names(content_type, own)) ? plain
                                                                                             : own;
}
