/* Reads and writes JSON-RPC envelopes. Reading finds the envelope's members in one pass, refuses
 * duplicates, and tells the kind of message by `method`, `result` and `error`. Only a method name
 * with escapes is copied. */
#include "rpc/message.h"

#include "base/check.h"
#include "rpc/outline.h"

enum { AT_VERSION, AT_ID, AT_METHOD, AT_PARAMS, AT_RESULT, AT_ERROR, AT_COUNT };

static const bay_str member_names[AT_COUNT] = {
    [AT_VERSION] = STR_INIT("jsonrpc"), [AT_ID] = STR_INIT("id"),
    [AT_METHOD] = STR_INIT("method"),   [AT_PARAMS] = STR_INIT("params"),
    [AT_RESULT] = STR_INIT("result"),   [AT_ERROR] = STR_INIT("error"),
};

static bay_err message_refuse(rpc_fault *fault, int code, bay_str id, const char *text)
{
    *fault = (rpc_fault){.code = code, .id = id.len > 0 ? id : STR("null"), .text = text};
    return BAY_ERR_PROTOCOL;
}

/* The raw id if MCP allows it, otherwise empty. */
static bay_str id_of(json_val id)
{
    bay_str raw = json_raw(id);
    if (raw.len > RPC_MAX_ID_BYTES) {
        return STR("");
    }
    if (json_is(id, JSON_STRING) || (json_is(id, JSON_NUMBER) && json_is_integer(id))) {
        return raw;
    }
    return STR("");
}

static bay_err read_call(rpc_message *out, const json_val *at, arena *memory, rpc_fault *fault)
{
    bay_str id = out->id;
    if (!json_is(at[AT_RESULT], JSON_MISSING) || !json_is(at[AT_ERROR], JSON_MISSING)) {
        return message_refuse(fault, RPC_INVALID_REQUEST, id,
                              "A message has either a method or a result or an error");
    }
    if (!json_is(at[AT_METHOD], JSON_STRING)) {
        return message_refuse(fault, RPC_INVALID_REQUEST, id, "The method is not a string");
    }
    if (json_raw(at[AT_METHOD]).len > RPC_MAX_METHOD_BYTES + 2) {
        return message_refuse(fault, RPC_INVALID_REQUEST, id, "The method's name is too long");
    }
    if (!json_is(at[AT_ID], JSON_MISSING) && id.len == 0) {
        return message_refuse(fault, RPC_INVALID_REQUEST, id,
                              "The id is not a string or an integer");
    }
    if (!json_is(at[AT_PARAMS], JSON_MISSING) && !json_is(at[AT_PARAMS], JSON_OBJECT)) {
        return message_refuse(fault, RPC_INVALID_REQUEST, id, "The params are not an object");
    }
    bay_err err = json_str(at[AT_METHOD], memory, &out->method);
    if (err != BAY_OK) {
        return BAY_ERR_NOMEM;
    }
    out->kind = id.len > 0 ? RPC_REQUEST : RPC_NOTIFICATION;
    out->params = at[AT_PARAMS];
    return BAY_OK;
}

/* An invalid response is not answered with its id, because this process has issued that id. */
static bay_err read_response(rpc_message *out, const json_val *at, rpc_fault *fault)
{
    bool has_result = !json_is(at[AT_RESULT], JSON_MISSING);
    bool has_error = !json_is(at[AT_ERROR], JSON_MISSING);
    if (has_result == has_error) {
        bool is_nothing = !has_result;
        return message_refuse(fault, RPC_INVALID_REQUEST, is_nothing ? out->id : STR(""),
                              is_nothing ? "A message needs a method, a result or an error"
                                         : "A response has either a result or an error");
    }
    if (has_result) {
        if (out->id.len == 0) {
            return message_refuse(fault, RPC_INVALID_REQUEST, STR(""), "A result needs an id");
        }
        if (!json_is(at[AT_RESULT], JSON_OBJECT)) {
            return message_refuse(fault, RPC_INVALID_REQUEST, STR(""),
                                  "The result is not an object");
        }
        out->kind = RPC_RESULT;
        out->result = at[AT_RESULT];
        return BAY_OK;
    }
    bool has_bad_id =
        out->id.len == 0 && !json_is(at[AT_ID], JSON_MISSING) && !json_is(at[AT_ID], JSON_NULL);
    int64_t code = 0;
    if (has_bad_id || !json_is(at[AT_ERROR], JSON_OBJECT) ||
        json_int64(json_get(at[AT_ERROR], STR("code")), &code) != BAY_OK ||
        !json_is(json_get(at[AT_ERROR], STR("message")), JSON_STRING)) {
        return message_refuse(fault, RPC_INVALID_REQUEST, STR(""),
                              "An error needs an integer code and a message");
    }
    out->kind = RPC_ERROR;
    out->error = at[AT_ERROR];
    return BAY_OK;
}

bay_err rpc_message_read(rpc_message *out, json_val root, arena *memory, rpc_fault *fault)
{
    if (!json_is(root, JSON_OBJECT)) {
        return message_refuse(fault, RPC_INVALID_REQUEST, STR(""), "The message is not an object");
    }
    json_val at[AT_COUNT];
    size_t duplicate = 0;
    bay_err err = json_pick(root, member_names, AT_COUNT, at, &duplicate);
    if (err == BAY_ERR_DUPLICATE) {
        bay_str id = duplicate == AT_ID ? STR("") : id_of(json_get(root, STR("id")));
        bool is_answer = json_is(json_get(root, STR("method")), JSON_MISSING);
        err =
            message_refuse(fault, RPC_INVALID_REQUEST, id, "A member of the envelope stands twice");
        fault->answers = is_answer ? id : STR("");
        return err;
    }
    if (err != BAY_OK) {
        return BAY_ERR_NOMEM;
    }
    rpc_message message = {.root = root, .id = id_of(at[AT_ID])};
    bool is_call = !json_is(at[AT_METHOD], JSON_MISSING);
    if (!json_str_eq(at[AT_VERSION], STR("2.0"))) {
        err = message_refuse(fault, RPC_INVALID_REQUEST, is_call ? message.id : STR(""),
                             "jsonrpc must be \"2.0\"");
    } else {
        err = is_call ? read_call(&message, at, memory, fault) : read_response(&message, at, fault);
    }
    if (err == BAY_OK) {
        *out = message;
    } else if (err == BAY_ERR_PROTOCOL && !is_call) {
        fault->answers = message.id;
    }
    return err;
}

void rpc_message_outline(bay_str text, rpc_fault *out)
{
    rpc_outline outline;
    rpc_outline_init(&outline);
    rpc_outline_feed(&outline, text);
    bay_str id = {text.at + outline.id_at, outline.id_len}; /* the outline goes */
    *out = (rpc_fault){.id = STR("null")};
    if (rpc_outline_request(&outline).len > 0) {
        out->id = id;
    } else if (rpc_outline_answer(&outline).len > 0) {
        out->answers = id;
    }
}

/* What is wrong with the text, and what it shows all the same. */
__attribute__((cold, noinline)) static bay_err refuse_text(rpc_fault *fault, bay_str text, int code,
                                                           const char *why, size_t offset)
{
    rpc_message_outline(text, fault);
    fault->code = code;
    fault->text = why;
    fault->offset = offset;
    return BAY_ERR_PROTOCOL;
}

bay_err rpc_message_parse(rpc_message *out, json_doc *doc, bay_str text, const json_limits *limits,
                          arena *memory, rpc_fault *fault)
{
    bay_diag diag = {0};
    bay_err err = json_parse(doc, text, limits, memory, &diag);
    switch (err) {
    case BAY_OK:
        break;
    case BAY_ERR_SYNTAX:
        return refuse_text(fault, text, RPC_PARSE_ERROR, "The message is not valid JSON",
                           diag.offset);
    case BAY_ERR_UTF8:
        return refuse_text(fault, text, RPC_PARSE_ERROR, "The message is not valid UTF-8",
                           diag.offset);
    case BAY_ERR_DEPTH:
        return refuse_text(fault, text, RPC_PARSE_ERROR, "The message is nested too deeply",
                           diag.offset);
    case BAY_ERR_LIMIT:
        return refuse_text(fault, text, RPC_INVALID_REQUEST, "The message is too large",
                           diag.offset);
    default:
        return err;
    }
    json_val root = json_root(doc);
    if (json_is(root, JSON_ARRAY)) {
        *out = (rpc_message){.root = root};
        return BAY_ERR_UNSUPPORTED;
    }
    return rpc_message_read(out, root, memory, fault);
}

static void open_request(buf *out, bay_str id, bay_str method)
{
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_str(out, id);
    buf_lit(out, ",\"method\":");
    json_quote(out, method);
}

void rpc_open_request(buf *out, bay_str id, bay_str method)
{
    open_request(out, id, method);
    buf_lit(out, ",\"params\":");
}

void rpc_write_request(buf *out, bay_str id, bay_str method, bay_str params)
{
    open_request(out, id, method);
    if (params.len > 0) {
        buf_lit(out, ",\"params\":");
        buf_str(out, params);
    }
    buf_char(out, '}');
}

void rpc_write_notification(buf *out, bay_str method, bay_str params)
{
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"method\":");
    json_quote(out, method);
    if (params.len > 0) {
        buf_lit(out, ",\"params\":");
        buf_str(out, params);
    }
    buf_char(out, '}');
}

void rpc_write_result(buf *out, bay_str id, bay_str result)
{
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_str(out, id);
    buf_lit(out, ",\"result\":");
    buf_str(out, result);
    buf_char(out, '}');
}

void rpc_write_error(buf *out, bay_str id, int code, bay_str message, bay_str data)
{
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_str(out, id.len > 0 ? id : STR("null"));
    buf_lit(out, ",\"error\":{\"code\":");
    buf_int(out, code);
    buf_lit(out, ",\"message\":");
    json_quote(out, message);
    if (data.len > 0) {
        buf_lit(out, ",\"data\":");
        buf_str(out, data);
    }
    buf_lit(out, "}}");
}
