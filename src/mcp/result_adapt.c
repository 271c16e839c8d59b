/* Adapts results and errors. A result is copied unchanged; only the members that this file owns
 * (resultType, ttlMs, cacheScope, and serverInfo inside _meta) are added or omitted, and content
 * that the client's revision does not have is converted. */
#include "mcp/result_adapt.h"

#include "base/check.h"

enum { AT_TYPE, AT_TTL, AT_SCOPE, AT_META, AT_COUNT };

static const bay_str dressing[AT_COUNT] = {
    [AT_TYPE] = STR_INIT("resultType"),
    [AT_TTL] = STR_INIT("ttlMs"),
    [AT_SCOPE] = STR_INIT("cacheScope"),
    [AT_META] = STR_INIT("_meta"),
};

static void open_response(buf *out, const request *to)
{
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_str(out, to->shown.message.id);
    buf_lit(out, ",\"result\":");
}

static bool is_cacheable(const request *to)
{
    return to->shown.method != NULL && (to->shown.method->flags & MCP_FLAG_CACHEABLE) != 0;
}

static void put_hints(json_writer *writer, const request *to, json_val ttl, json_val scope)
{
    json_key_lit(writer, "ttlMs");
    if (json_is(ttl, JSON_MISSING)) {
        json_put_uint(writer, to->shown.ttl_ms);
    } else {
        json_put_val(writer, ttl);
    }
    json_key_lit(writer, "cacheScope");
    if (json_is(scope, JSON_MISSING) || to->shown.is_cache_private) {
        json_put_str(writer, to->shown.is_cache_public ? STR("public") : STR("private"));
    } else {
        json_put_val(writer, scope);
    }
}

static void put_meta(json_writer *writer, const request *to, json_val meta)
{
    json_key_lit(writer, "_meta");
    if (!json_is(meta, JSON_MISSING) && !json_is(meta, JSON_OBJECT)) {
        json_put_val(writer, meta);
        return;
    }
    json_open_object(writer);
    if (json_is(json_get(meta, STR(MCP_META_SERVER_INFO)), JSON_MISSING)) {
        json_key_lit(writer, MCP_META_SERVER_INFO);
        json_put_raw(writer, server_info(to->shown.server, to->shown.revision));
    }
    json_put_members(writer, meta, NULL, 0);
    json_close_object(writer);
}

/* A task's ttlMs belongs to the task and is not a cache hint. */
static bool is_task(const request *to, json_val type)
{
    const mcp_method *method = to->shown.method;
    return json_str_eq(type, STR("task")) || (method != NULL && method->id == MCP_TASKS_GET);
}

static void result_adapt_modern(buf *out, const request *to, json_val result, const json_val *at)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "resultType");
    bool is_typed = !json_is(at[AT_TYPE], JSON_MISSING);
    if (is_typed) {
        json_put_val(&writer, at[AT_TYPE]);
    } else {
        json_put_str(&writer, STR("complete"));
    }
    /* mcp 2026-07-28 server/utilities/caching: hints on complete results of cacheable methods,
     * none on interim ones. */
    bool is_complete = !is_typed || json_str_eq(at[AT_TYPE], STR("complete"));
    if (is_complete && is_cacheable(to)) {
        put_hints(&writer, to, at[AT_TTL], at[AT_SCOPE]);
    }
    if (is_task(to, at[AT_TYPE])) {
        static const bay_str replaced[] = {STR_INIT("resultType"), STR_INIT("_meta")};
        json_put_members(&writer, result, replaced, ARRAY_LEN(replaced));
    } else {
        json_put_members(&writer, result, dressing, AT_COUNT);
    }
    put_meta(&writer, to, at[AT_META]);
    json_close_object(&writer);
}

bay_err mcp_result_adapt(buf *out, const request *to, json_val result)
{
    json_val at[AT_COUNT];
    bay_err err = json_pick(result, dressing, AT_COUNT, at, NULL);
    if (err != BAY_OK) {
        return BAY_ERR_PROTOCOL;
    }
    bool is_modern = to->shown.revision->era == MCP_MODERN;
    if (!is_modern && json_str_eq(at[AT_TYPE], STR("input_required"))) {
        return BAY_ERR_PROTOCOL;
    }
    result_adapt_newer newer = result_adapt_newer_content(to, result);
    bool is_changed = newer.content.len > 0 || newer.is_no_object;
    open_response(out, to);
    if (is_modern) {
        result_adapt_modern(out, to, result, at);
    } else if (!is_changed && json_is(at[AT_TYPE], JSON_MISSING) &&
               json_is(at[AT_TTL], JSON_MISSING) && json_is(at[AT_SCOPE], JSON_MISSING)) {
        buf_str(out, json_raw(result));
    } else {
        json_writer writer;
        json_writer_init(&writer, out);
        json_open_object(&writer);
        bay_str replaced[] = {
            dressing[AT_TYPE], dressing[AT_TTL], dressing[AT_SCOPE], {NULL, 0}, {NULL, 0}};
        size_t count = 3;
        if (newer.content.len > 0) {
            replaced[count++] = newer.content;
        }
        if (newer.is_no_object) {
            replaced[count++] = STR("structuredContent");
        }
        json_put_members(&writer, result, replaced, count);
        if (newer.content.len > 0) {
            result_adapt_put_content(&writer, to, &newer, result);
        }
        json_close_object(&writer);
    }
    buf_char(out, '}');
    return BAY_OK;
}

void result_adapt_members(buf *out, const request *to, bay_str members)
{
    open_response(out, to);
    buf_char(out, '{');
    buf_str(out, members);
    const char *gap = members.len > 0 ? "," : "";
    if (to->shown.revision->era == MCP_MODERN) {
        buf_str(out, str_of(gap));
        buf_lit(out, "\"resultType\":\"complete\"");
        if (is_cacheable(to)) {
            buf_lit(out, ",\"ttlMs\":");
            buf_uint(out, to->shown.ttl_ms);
            buf_lit(out, ",\"cacheScope\":");
            buf_str(out, to->shown.is_cache_public ? STR("\"public\"") : STR("\"private\""));
        }
        buf_lit(out, ",\"_meta\":{\"" MCP_META_SERVER_INFO "\":");
        buf_str(out, server_info(to->shown.server, to->shown.revision));
        if (to->shown.result_meta.len > 0) {
            buf_char(out, ',');
            buf_str(out, to->shown.result_meta);
        }
        buf_char(out, '}');
    } else if (to->shown.result_meta.len > 0) {
        buf_str(out, str_of(gap));
        buf_lit(out, "\"_meta\":{");
        buf_str(out, to->shown.result_meta);
        buf_char(out, '}');
    }
    buf_lit(out, "}}");
}

int mcp_error_code_adapt(const mcp_revision *revision, int code)
{
    bool is_modern = revision != NULL && revision->era == MCP_MODERN;
    bool is_reserved = code <= MCP_HEADER_MISMATCH && code >= -32099;
    if (!is_modern) {
        /* These codes have no meaning for a legacy client. */
        return is_reserved && code >= MCP_UNSUPPORTED_VERSION ? RPC_INVALID_REQUEST : code;
    }
    /* mcp 2026-07-28 basic/index, Error Codes: retired codes and undefined ones of the reserved
     * range must not be emitted. */
    if (code == MCP_RESOURCE_NOT_FOUND) {
        return RPC_INVALID_PARAMS;
    }
    if (is_reserved && code < MCP_UNSUPPORTED_VERSION) {
        return RPC_INTERNAL_ERROR;
    }
    return code;
}

/* A resource that does not exist: -32602 with its URI in data since 2026-07-28, -32002 before. */
static bool is_missing_resource(const request *to, json_val error, int64_t code)
{
    return code == RPC_INVALID_PARAMS && to->shown.method != NULL &&
           to->shown.method->id == MCP_RESOURCES_READ &&
           json_is(json_get(json_get(error, STR("data")), STR("uri")), JSON_STRING);
}

bay_err mcp_error_adapt(buf *out, const request *to, json_val error, int *out_code)
{
    int64_t code = 0;
    if (json_int64(json_get(error, STR("code")), &code) != BAY_OK || code < INT32_MIN ||
        code > INT32_MAX || !json_is(json_get(error, STR("message")), JSON_STRING)) {
        return BAY_ERR_PROTOCOL;
    }
    int dressed = mcp_error_code_adapt(to->shown.revision, (int)code);
    if (to->shown.revision->era != MCP_MODERN && is_missing_resource(to, error, code)) {
        dressed = MCP_RESOURCE_NOT_FOUND;
    }
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_str(out, to->shown.message.id);
    buf_lit(out, ",\"error\":");
    if (dressed == code) {
        buf_str(out, json_raw(error));
    } else {
        static const bay_str replaced[] = {STR_INIT("code")};
        json_writer writer;
        json_writer_init(&writer, out);
        json_open_object(&writer);
        json_key_lit(&writer, "code");
        json_put_int(&writer, dressed);
        json_put_members(&writer, error, replaced, ARRAY_LEN(replaced));
        json_close_object(&writer);
    }
    buf_char(out, '}');
    *out_code = dressed;
    return BAY_OK;
}

int mcp_status_adapt(const mcp_revision *revision, int code)
{
    if (revision == NULL || revision->era != MCP_MODERN) {
        return 200;
    }
    switch (code) {
    case RPC_METHOD_NOT_FOUND:
        return 404;
    case RPC_PARSE_ERROR:
    case RPC_INVALID_REQUEST:
    case MCP_HEADER_MISMATCH:
    case MCP_MISSING_CAPABILITY:
    case MCP_UNSUPPORTED_VERSION:
        return 400;
    default:
        return 200;
    }
}
