/* Reads answers of agents: a JSON-RPC envelope or a body without one, results, errors in every form
 * that agents are known to send, events. */
#include "a2a/outbound.h"

#include "a2a/dialect_walk.h"

/* ---- errors ------------------------------------------------------------------------------------
 */

static bay_err no_answer(a2a_fault *fault, const char *what)
{
    return a2a_fault_set(fault, A2A_E_INVALID_AGENT_RESPONSE, "the agent's answer %s", what);
}

/* By the HTTP status alone, for answers without further information. */
static a2a_error error_of_status(int status)
{
    switch (status) {
    case 400:
    case 422:
        return A2A_E_INVALID_PARAMS;
    case 401:
    case 407:
        return A2A_E_UNAUTHENTICATED;
    case 403:
        return A2A_E_FORBIDDEN;
    case 404:
    case 405:
    case 501:
        return A2A_E_METHOD_NOT_FOUND;
    case 415:
        return A2A_E_CONTENT_TYPE_NOT_SUPPORTED;
    case 429:
    case 503:
        return A2A_E_BUSY;
    case 502:
        return A2A_E_UNAVAILABLE;
    case 504:
        return A2A_E_DEADLINE;
    default:
        return A2A_E_INTERNAL;
    }
}

/* Control characters are replaced in this library's texts. */
static void make_printable(char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        *text = c < 0x20 || c == 0x7f ? ' ' : *text;
    }
}

static bay_err remote(a2a_fault *fault, a2a_error error, json_val message, arena *memory)
{
    bay_str text;
    if (json_str(message, memory, &text) != BAY_OK || text.len == 0) {
        text = a2a_errors[error].text;
    }
    /* A NUL in it would hide the rest. */
    (void)a2a_fault_set(fault, error, "%.*s", (int)(text.len < 1024 ? text.len : 1024), text.at);
    if (fault != NULL) {
        make_printable(fault->text);
    }
    return BAY_ERR_REMOTE;
}

/* The reason in an ErrorInfo among the details; A2A_NO_ERROR: none that is known. */
static a2a_error error_of_details(json_val details)
{
    json_iter iter = json_iter_of(details);
    while (json_next(&iter)) {
        json_val reason = json_get(iter.value, STR("reason"));
        for (size_t i = A2A_NO_ERROR + 1; json_is(reason, JSON_STRING) && i < A2A_ERRORS; i++) {
            if (a2a_errors[i].reason.len > 0 && json_str_eq(reason, a2a_errors[i].reason)) {
                return (a2a_error)i;
            }
        }
    }
    return A2A_NO_ERROR;
}

/* {code, message, data} of JSON-RPC. */
static bay_err rpc_error(const a2a_interface *from, json_val error, arena *memory, a2a_fault *fault)
{
    int64_t code = 0;
    (void)!json_int64(json_get(error, STR("code")), &code);
    a2a_error found = error_of_details(json_get(error, STR("data")));
    if (found == A2A_NO_ERROR) {
        found = a2a_error_of_code(from->version, code);
    }
    return remote(fault, found, json_get(error, STR("message")), memory);
}

/* {"error":{code,status,message,details}} of 1.0; {code,message} and {message} of 0.3. */
static bay_err rest_error(const a2a_interface *from, int status, json_val body, arena *memory,
                          a2a_fault *fault)
{
    json_val inside = json_get(body, STR("error"));
    json_val error = json_is(inside, JSON_OBJECT) ? inside : body;
    int64_t code = 0;
    bool has_code = json_int64(json_get(error, STR("code")), &code) == BAY_OK;
    a2a_error found = error_of_details(json_get(error, STR("details")));
    if (found == A2A_NO_ERROR) {
        found = has_code && code < 0 ? a2a_error_of_code(from->version, code)
                                     : error_of_status(status >= 400 ? status : (int)code);
    }
    json_val message = json_get(error, STR("message"));
    return remote(fault, found, json_is(message, JSON_STRING) ? message : inside, memory);
}

/* ---- results -----------------------------------------------------------------------------------
 */

static bool is_stream(a2a_method method)
{
    return (a2a_methods[method].flags & A2A_METHOD_STREAM) != 0;
}

/* Errors other than memory are the agent's. */
static bay_err judged(bay_err err, a2a_fault *fault)
{
    if (err == BAY_OK || err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT) {
        return err;
    }
    char what[A2A_FAULT_BYTES] = "";
    if (fault != NULL && err == BAY_ERR_PROTOCOL) {
        memcpy(what, fault->text, sizeof(what));
    }
    return a2a_fault_set(fault, A2A_E_INVALID_AGENT_RESPONSE, "the agent's answer is not valid%s%s",
                         what[0] != '\0' ? ": " : "", what);
}

static bay_err read_result(const a2a_interface *from, a2a_method method, json_val result,
                           arena *memory, json_val *out, a2a_fault *fault)
{
    a2a_form form = a2a_form_of(from->version, from->binding);
    bool is_last;
    if (from->version == A2A_0_2 && method == A2A_GET_EXTENDED_CARD) {
        form = A2A_FORM_0_3;
    }
    bay_err err = is_stream(method) ? a2a_event_view(form, result, memory, out, &is_last, fault)
                                    : a2a_result_view(form, method, result, memory, out, fault);
    return judged(err, fault);
}

/* Some servers answer a number as a string, or null to a request that they could not read. */
static bool is_answer_to(json_val id, bay_str rpc_id, bool is_error)
{
    bay_str raw = json_raw(id);
    bay_str inside = json_is(id, JSON_STRING) ? (bay_str){raw.at + 1, raw.len - 2} : raw;
    bay_str asked =
        rpc_id.len >= 2 && rpc_id.at[0] == '"' ? (bay_str){rpc_id.at + 1, rpc_id.len - 2} : rpc_id;
    return str_eq(inside, asked) || (is_error && !dialect_is_there(id));
}

typedef struct envelope {
    json_val result;
    json_val error;
} envelope;

/* `may_be_bare`: the result may be missing if it would be empty. */
static bay_err read_envelope(json_val root, bay_str rpc_id, bool may_be_bare, envelope *out,
                             a2a_fault *fault)
{
    enum { AT_VERSION, AT_ID, AT_RESULT, AT_ERROR, AT_COUNT };
    static const bay_str names[] = {STR_INIT("jsonrpc"), STR_INIT("id"), STR_INIT("result"),
                                    STR_INIT("error")};
    json_val at[AT_COUNT];
    bay_err err = json_pick(root, names, AT_COUNT, at, NULL);
    if (err != BAY_OK) {
        return no_answer(fault, err == BAY_ERR_DUPLICATE ? "has a member of its envelope twice"
                                                         : "is not JSON-RPC");
    }
    bool has_error = dialect_is_there(at[AT_ERROR]);
    bool has_result = !json_is(at[AT_RESULT], JSON_MISSING);
    if (!json_str_eq(at[AT_VERSION], STR("2.0"))) {
        return no_answer(fault, "is not JSON-RPC 2.0");
    }
    /* Either may be null beside the other; a deletion's result is null itself. */
    if (has_error ? dialect_is_there(at[AT_RESULT]) : !has_result && !may_be_bare) {
        return no_answer(fault, "has neither a result nor an error, or both");
    }
    if (!is_answer_to(at[AT_ID], rpc_id, has_error)) {
        return no_answer(fault, "belongs to another request");
    }
    if (has_error && !json_is(at[AT_ERROR], JSON_OBJECT)) {
        return no_answer(fault, "has an error that is no object");
    }
    out->error = has_error ? at[AT_ERROR] : JSON_NONE;
    out->result = at[AT_RESULT];
    return BAY_OK;
}

/* Whether the request had no envelope. */
static bool is_bare(const a2a_interface *from, a2a_method method)
{
    return from->binding == A2A_HTTP_JSON ||
           (from->version == A2A_0_2 && method == A2A_GET_EXTENDED_CARD);
}

static bay_err read_root(const a2a_interface *from, a2a_method method, int status, json_val root,
                         bay_str rpc_id, arena *memory, json_val *out, a2a_fault *fault)
{
    if (is_bare(from, method)) {
        return status >= 200 && status < 300 ? read_result(from, method, root, memory, out, fault)
                                             : rest_error(from, status, root, memory, fault);
    }
    envelope answer;
    bool is_deletion = method == A2A_DELETE_PUSH_CONFIG;
    bay_err err = read_envelope(root, rpc_id, is_deletion, &answer, fault);
    if (err != BAY_OK) {
        return status >= 200 && status < 300 ? err : rest_error(from, status, root, memory, fault);
    }
    if (!json_is(answer.error, JSON_MISSING)) {
        return rpc_error(from, answer.error, memory, fault);
    }
    /* older versions answer with nothing, as do servers that serve 1.0 and older versions */
    bool is_nothing = is_deletion && !dialect_is_there(answer.result);
    return read_result(from, method, is_nothing ? JSON_NONE : answer.result, memory, out, fault);
}

bay_err a2a_response_read(const a2a_interface *from, a2a_method method, int status, bay_str body,
                          bay_str rpc_id, arena *memory, json_val *out, a2a_fault *fault)
{
    bool is_good = status >= 200 && status < 300;
    json_doc *doc = arena_alloc(memory, sizeof(*doc));
    if (doc == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err;
    if (body.len == 0 && is_good && is_bare(from, method) && method == A2A_DELETE_PUSH_CONFIG) {
        err = read_result(from, method, JSON_NONE, memory, out, fault); /* 204 */
    } else {
        err = json_parse(doc, body, &a2a_json_limits, memory, NULL);
        if (err == BAY_OK) {
            err = read_root(from, method, status, json_root(doc), rpc_id, memory, out, fault);
        } else if (err != BAY_ERR_NOMEM && !is_good) {
            err = remote(fault, error_of_status(status), JSON_NONE, memory);
        } else if (err != BAY_ERR_NOMEM) {
            err = no_answer(fault, body.len == 0 ? "is empty" : "is not valid JSON");
        }
    }
    return err;
}

/* ---- events ------------------------------------------------------------------------------------
 */

static bay_err read_event(const a2a_interface *from, bay_str name, json_val root, bay_str rpc_id,
                          arena *memory, json_val *out, bool *out_is_last, a2a_fault *fault)
{
    a2a_form form = a2a_form_of(from->version, from->binding);
    bool is_error = str_eq(name, STR("error"));
    json_val event = root;
    if (from->binding == A2A_JSONRPC) {
        envelope answer;
        bay_err err = read_envelope(root, rpc_id, false, &answer, fault);
        if (err != BAY_OK) {
            return is_error ? rest_error(from, 0, root, memory, fault) : err;
        }
        if (!json_is(answer.error, JSON_MISSING)) {
            return rpc_error(from, answer.error, memory, fault);
        }
        event = answer.result;
    } else if (is_error || json_is(json_get(root, STR("error")), JSON_OBJECT)) {
        return rest_error(from, 0, root, memory, fault);
    }
    return judged(a2a_event_view(form, event, memory, out, out_is_last, fault), fault);
}

bay_err a2a_stream_read(const a2a_interface *from, bay_str name, bay_str data, bay_str rpc_id,
                        arena *memory, json_val *out, bool *out_is_last, a2a_fault *fault)
{
    json_doc *doc = arena_alloc(memory, sizeof(*doc));
    if (doc == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = json_parse(doc, data, &a2a_json_limits, memory, NULL);
    if (err == BAY_OK) {
        return read_event(from, name, json_root(doc), rpc_id, memory, out, out_is_last, fault);
    }
    return err == BAY_ERR_NOMEM ? err : no_answer(fault, "has an event that is not valid JSON");
}
