/* Reads HTTP+JSON: a path, a verb, a query and a body become the params of a method. The path has
 * precedence over the body.
 *
 * Paths under /v1 belong to 0.3, unless the request says 1.0: then "v1" is a tenant. */
#include "a2a/inbound_internal.h"

#include "wire/uri.h"
#include "json/build.h"

enum {
    SEGMENTS = 6,             /* of the longest path, with tenant or version */
    SEGMENT_BYTES = 8192,     /* decoded */
    PARAMS_BYTES = 128 << 20, /* of params from path and body */
    QUERY_PARAMETERS = 64,
};

/* ---- paths -------------------------------------------------------------------------------------
 */

typedef enum resource {
    SENDING,
    STREAMING,
    TASKS,
    TASK,
    CANCELING,
    SUBSCRIBING,
    CONFIGS,
    CONFIG,
    CARD,
    RESOURCES
} resource;

static const struct {
    resource resource;
    bay_str verb;
    a2a_method method;
} routes[] = {
    {SENDING, STR_INIT("POST"), A2A_SEND_MESSAGE},
    {STREAMING, STR_INIT("POST"), A2A_SEND_STREAMING_MESSAGE},
    {TASKS, STR_INIT("GET"), A2A_LIST_TASKS},
    {TASK, STR_INIT("GET"), A2A_GET_TASK},
    {CANCELING, STR_INIT("POST"), A2A_CANCEL_TASK},
    {SUBSCRIBING, STR_INIT("GET"), A2A_SUBSCRIBE_TO_TASK},
    {SUBSCRIBING, STR_INIT("POST"), A2A_SUBSCRIBE_TO_TASK},
    {CONFIGS, STR_INIT("GET"), A2A_LIST_PUSH_CONFIGS},
    {CONFIGS, STR_INIT("POST"), A2A_CREATE_PUSH_CONFIG},
    {CONFIG, STR_INIT("GET"), A2A_GET_PUSH_CONFIG},
    {CONFIG, STR_INIT("DELETE"), A2A_DELETE_PUSH_CONFIG},
    {CARD, STR_INIT("GET"), A2A_GET_EXTENDED_CARD},
};
enum { ROUTES = sizeof(routes) / sizeof(routes[0]) };

static const bay_str allowed[RESOURCES] = {
    [SENDING] = STR_INIT("POST"),
    [STREAMING] = STR_INIT("POST"),
    [TASKS] = STR_INIT("GET, HEAD"),
    [TASK] = STR_INIT("GET, HEAD"),
    [CANCELING] = STR_INIT("POST"),
    [SUBSCRIBING] = STR_INIT("GET, POST"),
    [CONFIGS] = STR_INIT("GET, HEAD, POST"),
    [CONFIG] = STR_INIT("GET, HEAD, DELETE"),
    [CARD] = STR_INIT("GET, HEAD"),
};

typedef struct place {
    resource resource;
    bay_str task; /* encoded */
    bay_str config;
    bay_str tenant;
    bool is_old;
} place;

/* Splits at slashes; 0: too many, or the path does not begin with one. */
static size_t split(bay_str path, bay_str out[SEGMENTS])
{
    size_t count = 0;
    while (path.len > 0) {
        if (path.at[0] != '/' || count == SEGMENTS) {
            return 0;
        }
        path = str_from(path, 1);
        size_t len = str_find(path, '/');
        out[count++] = str_head(path, len);
        path = str_from(path, len);
    }
    return count;
}

static bool take_suffix(bay_str *text, bay_str suffix)
{
    if (text->len <= suffix.len || !str_ends(*text, suffix)) {
        return false;
    }
    text->len -= suffix.len;
    return true;
}

static bool is_tasks(const bay_str *segments, size_t count, bool is_old)
{
    /* a2a.proto of 0.3 has "task" in one path instead of "tasks". */
    return str_eq(segments[0], STR("tasks")) ||
           (is_old && count == 3 && str_eq(segments[0], STR("task")));
}

static bool find_resource(const bay_str *segments, size_t count, place *out)
{
    bay_str card = out->is_old ? STR("card") : STR("extendedAgentCard");
    if (count == 1) {
        static const bay_str names[] = {STR_INIT("message:send"), STR_INIT("message:stream"),
                                        STR_INIT("tasks")};
        for (size_t i = 0; i < 3; i++) {
            if (str_eq(segments[0], names[i])) {
                out->resource = (resource)(SENDING + i);
                return true;
            }
        }
        out->resource = CARD;
        return str_eq(segments[0], card);
    }
    if (count < 2 || count > 4 || !is_tasks(segments, count, out->is_old) || segments[1].len == 0) {
        return false;
    }
    out->task = segments[1];
    if (count == 2) {
        out->resource = take_suffix(&out->task, STR(":cancel"))      ? CANCELING
                        : take_suffix(&out->task, STR(":subscribe")) ? SUBSCRIBING
                                                                     : TASK;
        return true;
    }
    if (!str_eq(segments[2], STR("pushNotificationConfigs"))) {
        return false;
    }
    out->resource = count == 3 ? CONFIGS : CONFIG;
    out->config = count == 4 ? segments[3] : STR("");
    return count == 3 || segments[3].len > 0;
}

static bool find_place(bay_str path, bool says_1_0, place *out)
{
    bay_str segments[SEGMENTS];
    size_t count = split(path, segments);
    bool is_old = count > 1 && str_eq(segments[0], STR("v1")) && !says_1_0;
    *out = (place){.is_old = is_old, .tenant = STR(""), .task = STR(""), .config = STR("")};
    if (is_old) {
        return find_resource(segments + 1, count - 1, out);
    }
    if (count > 0 && find_resource(segments, count, out)) {
        return true;
    }
    if (count < 2 || segments[0].len == 0) {
        return false;
    }
    out->tenant = segments[0];
    return find_resource(segments + 1, count - 1, out);
}

/* ---- params ------------------------------------------------------------------------------------
 */

typedef struct making {
    const place *at;
    a2a_method method;
    bay_str query;
    json_val body; /* missing: none */
    json_writer *to;
    a2a_fault *fault;
    bay_err err;
} making;

static void inbound_rest_fail(making *self, bay_err err)
{
    self->err = self->err != BAY_OK ? self->err : err;
}

static void put_decoded(making *self, bay_str prefix, bay_str a, bay_str infix, bay_str b)
{
    buf text;
    buf_init(&text, SEGMENT_BYTES);
    buf_str(&text, prefix);
    bay_err err = uri_decode(&text, a);
    buf_str(&text, infix);
    if (err == BAY_OK && b.len > 0) {
        err = uri_decode(&text, b);
    }
    err = err != BAY_OK ? err : text.err;
    if (err == BAY_OK) {
        json_put_str(self->to, buf_view(&text));
    } else {
        json_put_null(self->to);
        inbound_rest_fail(self, err == BAY_ERR_NOMEM
                                    ? err
                                    : a2a_fault_set(self->fault, A2A_E_INVALID_PARAMS,
                                                    "the path has a part that cannot be decoded"));
    }
    buf_fini(&text);
}

static void put_segment(making *self, bay_str name, bay_str segment)
{
    json_key(self->to, name);
    put_decoded(self, STR(""), segment, STR(""), STR(""));
}

/* Members of queries. Numbers may be strings; other values must be literals. */
static const struct {
    bay_str name;
    bay_str snake;
    bool is_literal; /* true, false, or an enum's number */
} parameters[] = {
    {STR_INIT("historyLength"), STR_INIT("history_length"), false},
    {STR_INIT("contextId"), STR_INIT("context_id"), false},
    {STR_INIT("status"), STR_INIT("status"), true},
    {STR_INIT("pageSize"), STR_INIT("page_size"), false},
    {STR_INIT("pageToken"), STR_INIT("page_token"), false},
    {STR_INIT("statusTimestampAfter"), STR_INIT("status_timestamp_after"), false},
    {STR_INIT("includeArtifacts"), STR_INIT("include_artifacts"), true},
    {STR_INIT("tenant"), STR_INIT("tenant"), false},
};
enum { PARAMETERS = sizeof(parameters) / sizeof(parameters[0]), TENANT = PARAMETERS - 1 };

static bool is_literal(bay_str text)
{
    uint64_t number;
    return str_eq(text, STR("true")) || str_eq(text, STR("false")) ||
           (text.len < 10 && str_uint(text, &number) && (text.len == 1 || text.at[0] != '0'));
}

/* '+' is a space, as HTML forms write it. */
static bay_err decode_value(bay_str raw, buf *out)
{
    bay_err err = BAY_OK;
    while (err == BAY_OK && raw.len > 0) {
        size_t plus = str_find(raw, '+');
        err = plus > 0 ? uri_decode(out, str_head(raw, plus)) : BAY_OK;
        if (plus < raw.len) {
            buf_char(out, ' ');
        }
        raw = str_from(raw, plus + 1);
    }
    return err != BAY_OK ? err : out->err;
}

static void put_parameter(making *self, bay_str pair)
{
    size_t sign = str_find(pair, '=');
    bay_str name = str_head(pair, sign);
    size_t i = 0;
    while (i < PARAMETERS && !str_eq(name, parameters[i].name) &&
           !str_eq(name, parameters[i].snake)) {
        i++;
    }
    if (i == PARAMETERS || (i == TENANT && self->at->tenant.len > 0)) {
        return;
    }
    buf value;
    buf_init(&value, SEGMENT_BYTES);
    bay_err err = decode_value(str_from(pair, sign + 1), &value);
    if (err == BAY_OK) {
        json_key(self->to, parameters[i].name);
        bay_str text = buf_view(&value);
        if (parameters[i].is_literal && is_literal(text)) {
            json_put_raw(self->to, text);
        } else {
            json_put_str(self->to, text);
        }
    } else {
        inbound_rest_fail(self, err == BAY_ERR_NOMEM
                                    ? err
                                    : a2a_fault_set(self->fault, A2A_E_INVALID_PARAMS,
                                                    "%.*s: cannot be decoded",
                                                    BAY_STR(parameters[i].name)));
    }
    buf_fini(&value);
}

static void put_query(making *self)
{
    bay_str left = self->query;
    for (size_t i = 0; left.len > 0; i++) {
        if (i == QUERY_PARAMETERS) {
            inbound_rest_fail(self, a2a_fault_set(self->fault, A2A_E_INVALID_PARAMS,
                                                  "the query has more than %d parameters",
                                                  QUERY_PARAMETERS));
            return;
        }
        size_t len = str_find(left, '&');
        put_parameter(self, str_head(left, len));
        left = str_from(left, len + 1);
    }
}

static void put_body(making *self)
{
    static const bay_str from_path[] = {STR_INIT("id"), STR_INIT("taskId"), STR_INIT("task_id"),
                                        STR_INIT("tenant")};
    bool has_tenant = self->at->tenant.len > 0;
    switch (self->method) {
    case A2A_SEND_MESSAGE:
    case A2A_SEND_STREAMING_MESSAGE:
        json_put_members(self->to, self->body, from_path + 3, has_tenant);
        break;
    case A2A_CANCEL_TASK:
        json_put_members(self->to, self->body, from_path, 3U + has_tenant);
        break;
    case A2A_CREATE_PUSH_CONFIG:
        json_put_members(self->to, self->body, from_path + 1, 2U + has_tenant);
        break;
    default:
        break;
    }
}

static void make_params(making *self)
{
    const place *at = self->at;
    bool is_config = at->resource == CONFIG || at->resource == CONFIGS;
    if (at->tenant.len > 0) {
        put_segment(self, STR("tenant"), at->tenant);
    }
    if (at->task.len > 0) {
        put_segment(self, is_config ? STR("taskId") : STR("id"), at->task);
    }
    if (at->config.len > 0) {
        put_segment(self, STR("id"), at->config);
    }
    put_body(self);
    if (json_is(self->body, JSON_MISSING)) {
        put_query(self);
    }
}

/* The body is the configuration, or the whole request. */
static void make_old_config(making *self)
{
    json_val whole = json_get(self->body, STR("config"));
    bool is_whole = json_is(whole, JSON_OBJECT);
    static const bay_str names[] = {STR_INIT("configId"), STR_INIT("config_id")};
    for (size_t i = 0; is_whole && i < 2; i++) {
        json_val id = json_get(self->body, names[i]);
        if (dialect_is_there(id)) {
            json_key(self->to, names[i]);
            json_put_val(self->to, id);
        }
    }
    json_key_lit(self->to, "config");
    json_put_val(self->to, is_whole ? whole : self->body);
}

static void make_old_params(making *self)
{
    const place *at = self->at;
    if (at->task.len == 0) {
        json_put_members(self->to, self->body, NULL, 0);
        return;
    }
    json_key(self->to, at->resource == CONFIGS ? STR("parent") : STR("name"));
    put_decoded(self, STR("tasks/"), at->task,
                at->resource == CONFIG ? STR("/pushNotificationConfigs/") : STR(""), at->config);
    if (self->method == A2A_CREATE_PUSH_CONFIG) {
        make_old_config(self);
    } else {
        put_query(self);
    }
}

/* ---- requests ----------------------------------------------------------------------------------
 */

static bool needs_body(a2a_method method)
{
    return method == A2A_SEND_MESSAGE || method == A2A_SEND_STREAMING_MESSAGE ||
           method == A2A_CREATE_PUSH_CONFIG;
}

static bay_err read_body(bay_str body, a2a_method method, arena *memory, json_val *out,
                         a2a_fault *fault)
{
    *out = JSON_NONE;
    if (!needs_body(method) && (body.len == 0 || method != A2A_CANCEL_TASK)) {
        return BAY_OK; /* it would not be read */
    }
    json_doc *doc = arena_alloc(memory, sizeof(*doc));
    if (doc == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_diag diag = {0};
    bay_err err = json_parse(doc, body, &a2a_json_limits, memory, &diag);
    if (err == BAY_ERR_NOMEM) {
        return err;
    }
    if (err != BAY_OK) {
        return a2a_fault_set(fault, A2A_E_PARSE_ERROR, "the body is not valid JSON: %s at byte %zu",
                             bay_err_text(err), diag.offset);
    }
    *out = json_root(doc);
    if (json_is(*out, JSON_NULL) && !needs_body(method)) { /* some peers send it for no body */
        *out = JSON_NONE;
        return BAY_OK;
    }
    return json_is(*out, JSON_OBJECT)
               ? BAY_OK
               : a2a_fault_set(fault, A2A_E_INVALID_REQUEST, "the body must be an object");
}

static bay_err read_params(a2a_inbound *out, making *self, arena *memory)
{
    bool is_whole =
        self->at->task.len == 0 && self->at->tenant.len == 0 && !json_is(self->body, JSON_MISSING);
    if (is_whole) {
        return a2a_inbound_params(out, self->body, memory, self->fault);
    }
    json_builder made;
    json_val params;
    self->to = json_builder_init(&made, memory, PARAMS_BYTES);
    json_open_object(self->to);
    if (self->at->is_old) {
        make_old_params(self);
    } else {
        make_params(self);
    }
    if (self->err != BAY_OK) { /* a key may lack its value */
        json_builder_drop(&made);
        return self->err;
    }
    json_close_object(self->to);
    bay_err err = json_builder_end(&made, &params);
    return err == BAY_OK ? a2a_inbound_params(out, params, memory, self->fault) : err;
}

static bay_err check_version(const place *at, a2a_version said, bay_str text, a2a_fault *fault)
{
    bay_str shown = str_head(str_trim(text), 32);
    if (said == A2A_VERSIONS) {
        return a2a_fault_set(fault, A2A_E_VERSION_NOT_SUPPORTED,
                             "version %.*s is not supported; 1.0 and 0.3 are", BAY_STR(shown));
    }
    return !at->is_old && shown.len > 0 && said != A2A_1_0
               ? a2a_fault_set(fault, A2A_E_VERSION_NOT_SUPPORTED,
                               "version %.*s has its paths under /v1; this one is of 1.0",
                               BAY_STR(shown))
               : BAY_OK;
}

bay_err a2a_rest_read(bay_str verb, bay_str path, bay_str query, bay_str body, bay_str version,
                      arena *memory, a2a_inbound *out, bay_str *out_allow, a2a_fault *fault)
{
    place at;
    a2a_version said = a2a_version_of(version);
    *out_allow = STR("");
    if (!find_place(path, said == A2A_1_0, &at)) {
        return BAY_ERR_NOT_FOUND;
    }
    a2a_version counts = at.is_old && said != A2A_VERSIONS ? A2A_0_3 : A2A_1_0;
    *out = (a2a_inbound){.binding = A2A_HTTP_JSON,
                         .version = counts,
                         .form = a2a_form_of(counts, A2A_HTTP_JSON),
                         .method = A2A_METHODS,
                         .rpc_id = STR(""),
                         .params = JSON_NONE,
                         .tenant = STR("")};
    /* RFC 9110 section 9.3.2: HEAD is GET without content, which HTTP omits. Subscribing would have
     * an effect without a reader. */
    if (str_eq(verb, STR("HEAD")) && at.resource != SUBSCRIBING) {
        verb = STR("GET");
    }
    for (size_t i = 0; i < ROUTES; i++) {
        if (routes[i].resource == at.resource && str_eq(routes[i].verb, verb)) {
            out->method = routes[i].method;
        }
    }
    if (out->method == A2A_METHODS) {
        out->method = A2A_SEND_MESSAGE; /* not used, but a valid method */
        *out_allow = allowed[at.resource];
        return a2a_fault_set(fault, A2A_E_METHOD_NOT_FOUND, "this path takes %.*s",
                             BAY_STR(allowed[at.resource]));
    }
    making self = {.at = &at, .method = out->method, .query = query, .fault = fault};
    bay_err err = check_version(&at, said, version, fault);
    if (err == BAY_OK) {
        err = read_body(body, out->method, memory, &self.body, fault);
    }
    if (err == BAY_OK) {
        err = read_params(out, &self, memory);
    }
    return a2a_inbound_failed(err, fault);
}
