/* Writes requests: selects an interface of an agent, and converts the request for it. */
#include "a2a/outbound.h"

#include "a2a/dialect_walk.h"
#include "rpc/message.h"
#include "wire/uri.h"
#include "json/writer.h"

enum {
    URL_BYTES = 16 * 1024, /* of a request, with its query */
};

/* ---- interfaces --------------------------------------------------------------------------------
 */

static bool read_interface(json_val value, arena *memory, a2a_interface *out, bay_err *err)
{
    bay_str binding;
    bay_str version;
    json_val tenant = json_get(value, STR("tenant"));
    a2a_interface made = {.tenant = STR(""), .binding = A2A_BINDINGS};
    if (!json_str_plain(json_get(value, STR("protocolBinding")), &binding) ||
        !json_str_plain(json_get(value, STR("protocolVersion")), &version)) {
        return false;
    }
    for (size_t i = 0; i < A2A_BINDINGS; i++) {
        made.binding = str_eq_nocase(a2a_binding_names[i], binding) ? (a2a_binding)i : made.binding;
    }
    made.version = a2a_version_of(version);
    if (made.binding == A2A_BINDINGS || made.version == A2A_VERSIONS ||
        (made.version == A2A_0_1 && made.binding != A2A_JSONRPC)) {
        return false;
    }
    *err = json_str(json_get(value, STR("url")), memory, &made.url);
    if (*err == BAY_OK && dialect_is_there(tenant)) {
        *err = json_str(tenant, memory, &made.tenant);
    }
    *out = made;
    return *err == BAY_OK;
}

/* A URL that is listed for several versions is used with the newest, at the position of the first.
 */
static bool merge(a2a_interface *list, size_t count, const a2a_interface *found)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].binding == found->binding && str_eq(list[i].url, found->url) &&
            str_eq(list[i].tenant, found->tenant)) {
            list[i].version = found->version > list[i].version ? found->version : list[i].version;
            return true;
        }
    }
    return false;
}

bay_err a2a_interfaces_of(json_val card, arena *memory, a2a_interface *out, size_t max,
                          size_t *out_count, a2a_fault *fault)
{
    size_t count = 0;
    json_iter iter = json_iter_of(json_get(card, STR("supportedInterfaces")));
    while (json_next(&iter)) {
        a2a_interface found;
        bay_err err = BAY_OK;
        if (!read_interface(iter.value, memory, &found, &err)) {
            if (err == BAY_ERR_NOMEM) {
                return err;
            }
            continue;
        }
        if (!merge(out, count, &found) && count < max) {
            out[count++] = found;
        }
    }
    if (count == 0) {
        (void)a2a_fault_set(fault, A2A_E_VERSION_NOT_SUPPORTED,
                            "the card has no interface that we can speak to: JSONRPC, HTTP+JSON or "
                            "GRPC in 1.0, 0.3, 0.2 or 0.1");
        return BAY_ERR_VERSION;
    }
    *out_count = count;
    return BAY_OK;
}

/* ---- params ------------------------------------------------------------------------------------
 */

/* Replaces the params' tenant by the interface's. */
static void put_params(json_writer *to, json_val params, bay_str tenant)
{
    const bay_str except[] = {STR("tenant")};
    json_open_object(to);
    if (tenant.len > 0) {
        json_key_lit(to, "tenant");
        json_put_str(to, tenant);
    }
    json_put_members(to, params, except, 1);
    json_close_object(to);
}

static bay_err params_in_form(const a2a_interface *to, a2a_method method, json_val params, buf *out,
                              a2a_fault *fault)
{
    a2a_form form = a2a_form_of(to->version, to->binding);
    if (form != A2A_FORM_1_0) {
        return a2a_params_write(form, method, params, out, fault);
    }
    json_writer writer;
    json_writer_init(&writer, out);
    put_params(&writer, params, to->binding == A2A_JSONRPC ? to->tenant : STR(""));
    return out->err;
}

/* ---- JSON-RPC ----------------------------------------------------------------------------------
 */

static bay_str method_name(a2a_version version, a2a_method method)
{
    const a2a_method_row *row = &a2a_methods[method];
    return version == A2A_1_0 ? row->name : version == A2A_0_1 ? row->name_0_1 : row->name_0_3;
}

static bay_err outbound_refuse(a2a_fault *fault, const a2a_interface *to, a2a_method method)
{
    (void)a2a_fault_set(fault, A2A_E_UNSUPPORTED_OPERATION,
                        "the agent speaks %.*s, which has no %.*s",
                        BAY_STR(a2a_version_names[to->version]), BAY_STR(a2a_methods[method].name));
    return BAY_ERR_UNSUPPORTED;
}

static bay_err write_rpc(const a2a_interface *to, a2a_method method, json_val params,
                         bay_str rpc_id, buf *out, a2a_fault *fault)
{
    bay_str name = method_name(to->version, method);
    if (name.len == 0) {
        return outbound_refuse(fault, to, method);
    }
    rpc_open_request(out, rpc_id, name);
    bay_err err = params_in_form(to, method, params, out, fault);
    buf_char(out, '}');
    return err == BAY_OK ? out->err : err;
}

/* ---- REST --------------------------------------------------------------------------------------
 */

/* Ids are encoded as a whole: one segment each. */
static void put_segment(buf *url, json_val value, arena *memory, bay_err *err)
{
    bay_str text;
    bay_err here = json_str(value, memory, &text);
    if (here == BAY_OK) {
        buf_char(url, '/');
        uri_encode(url, text);
    }
    *err = *err != BAY_OK ? *err : here;
}

static void put_query(buf *url, json_val params, arena *memory, bay_err *err)
{
    static const bay_str names[] = {STR_INIT("historyLength"),   STR_INIT("contextId"),
                                    STR_INIT("status"),          STR_INIT("pageSize"),
                                    STR_INIT("pageToken"),       STR_INIT("statusTimestampAfter"),
                                    STR_INIT("includeArtifacts")};
    char sign = '?';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_val value = json_get(params, names[i]);
        bay_str text = json_raw(value);
        if (!dialect_is_there(value)) {
            continue;
        }
        if (json_is(value, JSON_STRING)) {
            bay_err here = json_str(value, memory, &text);
            *err = *err != BAY_OK ? *err : here;
        }
        if (*err == BAY_OK) {
            buf_char(url, sign);
            buf_str(url, names[i]);
            buf_char(url, '=');
            uri_encode(url, text);
            sign = '&';
        }
    }
}

static bay_err put_path(const a2a_interface *to, a2a_method method, json_val params, arena *memory,
                        buf *url)
{
    bool is_old = to->version != A2A_1_0;
    bay_err err = BAY_OK;
    json_val id = json_get(params, STR("id"));
    json_val task = json_get(params, STR("taskId"));
    if (is_old) {
        buf_lit(url, "/v1");
    } else if (to->tenant.len > 0) {
        buf_char(url, '/');
        uri_encode(url, to->tenant);
    }
    switch (method) {
    case A2A_SEND_MESSAGE:
        buf_lit(url, "/message:send");
        break;
    case A2A_SEND_STREAMING_MESSAGE:
        buf_lit(url, "/message:stream");
        break;
    case A2A_GET_EXTENDED_CARD:
        buf_str(url, is_old ? STR("/card") : STR("/extendedAgentCard"));
        break;
    case A2A_LIST_TASKS:
        buf_lit(url, "/tasks");
        put_query(url, params, memory, &err);
        break;
    case A2A_GET_TASK:
        buf_lit(url, "/tasks");
        put_segment(url, id, memory, &err);
        put_query(url, params, memory, &err);
        break;
    case A2A_CANCEL_TASK:
    case A2A_SUBSCRIBE_TO_TASK:
        buf_lit(url, "/tasks");
        put_segment(url, id, memory, &err);
        buf_str(url, method == A2A_CANCEL_TASK ? STR(":cancel") : STR(":subscribe"));
        break;
    case A2A_CREATE_PUSH_CONFIG:
    case A2A_LIST_PUSH_CONFIGS:
    case A2A_GET_PUSH_CONFIG:
    case A2A_DELETE_PUSH_CONFIG:
        buf_lit(url, "/tasks");
        put_segment(url, task, memory, &err);
        buf_lit(url, "/pushNotificationConfigs");
        if (method == A2A_LIST_PUSH_CONFIGS) {
            put_query(url, params, memory, &err);
        } else if (method != A2A_CREATE_PUSH_CONFIG) {
            put_segment(url, id, memory, &err);
        }
        break;
    case A2A_METHODS:
        break;
    }
    return err != BAY_OK ? err : url->err;
}

/* The body of requests that have one. 0.3 says that a configuration is posted alone; some of its
 * servers read the whole request: that is the second attempt. */
static bay_err put_rest_body(const a2a_interface *to, a2a_method method, json_val params,
                             bool is_second_try, arena *memory, buf *out, a2a_fault *fault)
{
    bool is_old = to->version != A2A_1_0;
    if (method == A2A_CANCEL_TASK) {
        json_writer writer;
        json_writer_init(&writer, out);
        json_open_object(&writer);
        json_val metadata = json_get(params, STR("metadata"));
        if (!is_old && dialect_is_there(metadata)) {
            json_key_lit(&writer, "metadata");
            json_put_val(&writer, metadata);
        }
        json_close_object(&writer);
        return out->err;
    }
    if (!is_old || is_second_try || method != A2A_CREATE_PUSH_CONFIG) {
        return params_in_form(to, method, params, out, fault);
    }
    json_val whole;
    a2a_form form = a2a_form_of(to->version, to->binding);
    bay_err err = a2a_params_in_form(form, method, params, memory, &whole, fault);
    if (err == BAY_OK) {
        buf_str(out, json_raw(json_get(whole, STR("config"))));
        err = out->err;
    }
    return err;
}

/* 1.0 subscribes by POST (its text) or GET (its proto file); 0.3 by GET, in some servers by POST.
 */
static bay_str rest_verb(const a2a_interface *to, a2a_method method, bool is_second_try)
{
    bool is_old = to->version != A2A_1_0;
    switch (method) {
    case A2A_SEND_MESSAGE:
    case A2A_SEND_STREAMING_MESSAGE:
    case A2A_CANCEL_TASK:
    case A2A_CREATE_PUSH_CONFIG:
        return STR("POST");
    case A2A_SUBSCRIBE_TO_TASK:
        return is_old == is_second_try ? STR("POST") : STR("GET");
    case A2A_DELETE_PUSH_CONFIG:
        return STR("DELETE");
    default:
        return STR("GET");
    }
}

/* ---- requests ----------------------------------------------------------------------------------
 */

static void put_field(a2a_outbound *out, bay_str name, bay_str value)
{
    out->fields[out->field_count++] = (http_field){name, value};
}

/* Servers of 0.2 do not know this field; one that does treats 0.2 and 0.3 alike. */
static void put_fields(const a2a_interface *to, a2a_method method, a2a_outbound *out)
{
    bool is_stream = (a2a_methods[method].flags & A2A_METHOD_STREAM) != 0;
    bool is_own = to->binding == A2A_HTTP_JSON && to->version == A2A_1_0;
    if (out->has_body) {
        put_field(out, STR("Content-Type"),
                  is_own ? STR("application/a2a+json") : STR("application/json"));
    }
    put_field(out, STR("Accept"),
              is_stream ? (is_own ? STR("text/event-stream, application/a2a+json, application/json")
                                  : STR("text/event-stream, application/json"))
              : is_own  ? STR("application/a2a+json, application/json")
                        : STR("application/json"));
    if (to->version != A2A_0_2) {
        put_field(out, STR("A2A-Version"), a2a_version_names[to->version]);
    }
}

/* Moves the text to the arena. */
static bay_err outbound_settle(buf *from, arena *memory, bay_str *out)
{
    return from->err != BAY_OK ? from->err : arena_dup(memory, buf_view(from), out);
}

static bay_str base_of(bay_str url)
{
    while (url.len > 0 && url.at[url.len - 1] == '/') {
        url.len--;
    }
    return url;
}

/* 0.2 has its extended card beside its URL, read without a method. */
static bay_err write_old_card_request(const a2a_interface *to, arena *memory, buf *url,
                                      a2a_outbound *out, a2a_fault *fault)
{
    bay_err err = uri_resolve(url, to->url, STR("agent/authenticatedExtendedCard"), NULL);
    if (err == BAY_ERR_SYNTAX || err == BAY_ERR_RANGE) {
        (void)a2a_fault_set(fault, A2A_E_INVALID_AGENT_RESPONSE,
                            "the agent's address is not a URL");
        return BAY_ERR_UNSUPPORTED;
    }
    out->verb = STR("GET");
    put_fields(to, A2A_GET_EXTENDED_CARD, out);
    return err == BAY_OK ? outbound_settle(url, memory, &out->url) : err;
}

static bay_err write_rest(const a2a_interface *to, a2a_method method, json_val params,
                          bool is_second_try, arena *memory, buf *url, buf *body, a2a_outbound *out,
                          a2a_fault *fault)
{
    if (to->version != A2A_1_0 && a2a_methods[method].name_0_3.len == 0) {
        return outbound_refuse(fault, to, method);
    }
    buf_str(url, base_of(to->url));
    bay_err err = put_path(to, method, params, memory, url);
    if (err != BAY_OK) {
        return err == BAY_ERR_TYPE ? BAY_ERR_INVALID : err;
    }
    out->verb = rest_verb(to, method, is_second_try);
    out->has_body = str_eq(out->verb, STR("POST")) && method != A2A_SUBSCRIBE_TO_TASK;
    if (out->has_body) {
        err = put_rest_body(to, method, params, is_second_try, memory, body, fault);
    }
    put_fields(to, method, out);
    return err == BAY_OK ? outbound_settle(url, memory, &out->url) : err;
}

bay_err a2a_request_write(const a2a_interface *to, a2a_method method, json_val params,
                          bay_str rpc_id, bool is_second_try, arena *memory, buf *body,
                          a2a_outbound *out, a2a_fault *fault)
{
    buf url;
    buf_init(&url, URL_BYTES);
    a2a_outbound made = {.verb = STR("POST"), .url = to->url, .body = STR("")};
    bay_err err;
    if (to->binding == A2A_HTTP_JSON) {
        err = write_rest(to, method, params, is_second_try, memory, &url, body, &made, fault);
    } else if (to->version == A2A_0_2 && method == A2A_GET_EXTENDED_CARD) {
        err = write_old_card_request(to, memory, &url, &made, fault);
    } else {
        made.has_body = true;
        put_fields(to, method, &made);
        err = write_rpc(to, method, params, rpc_id, body, fault);
    }
    if (err == BAY_OK) {
        made.body = made.has_body ? buf_view(body) : made.body;
        *out = made;
    }
    buf_fini(&url);
    return err;
}
