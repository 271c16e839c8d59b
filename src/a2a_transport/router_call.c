/* One operation over HTTP: the request is read into a call, and the events of its service become a
 * whole answer or an event stream.
 *
 *   read ──admitted──► WAITING ──result, fail──► over
 *                         └──event──► STREAMING ──end, fail──► over
 *
 * (The peer may disconnect in both states: the service is notified, and still ends the call.)
 *
 * Invariants
 * - The call's views point into the exchange; when that has ended or has freed its memory (streams,
 *   with their first event), the views are empty. The JSON-RPC id is stored separately. */
#include "a2a_transport/router_internal.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/build.h"

enum {
    ID_BYTES = 40,
    MOST_SPARE = 64,
    ANSWER_KEPT_BYTES = 64 * 1024,
    ANSWER_MAX_BYTES = 512 << 20
};

typedef struct http_operation {
    a2a_call call; /* first */
    http_reply reply;
    list_link link;
    a2a_http_router *router; /* NULL: freed */
    a2a_service *service;
    a2a_inbound inbound;
    bay_str media;      /* static */
    bay_str extensions; /* extensions to echo; in the arena */
    http_field stream_fields[1];
    char *long_id;
    char id[ID_BYTES];
} http_operation;

static http_operation *of_call(a2a_call *call)
{
    return CONTAINER_OF(call, http_operation, call);
}

static http_operation *of_reply(http_reply *reply)
{
    return CONTAINER_OF(reply, http_operation, reply);
}

/* ---- life ------------------------------------------------------------------------------------ */

static http_operation *operation_new(a2a_http_router *router)
{
    list_link *link = list_pop(&router->spare);
    http_operation *self;
    if (link != NULL) {
        self = CONTAINER_OF(link, http_operation, link);
        router->spare_count--;
    } else {
        self = mem_alloc(sizeof(*self));
    }
    if (self != NULL) {
        memset(self, 0, sizeof(*self));
        self->router = router;
        list_push(&router->calls, &self->link);
    }
    return self;
}

static void operation_free(http_operation *self)
{
    principal_unref(self->call.principal);
    self->call.principal = NULL;
    a2a_http_router *router = self->router;
    mem_free(self->long_id);
    list_remove(&self->link);
    if (router != NULL && router->spare_count < MOST_SPARE) {
        list_push(&router->spare, &self->link);
        router->spare_count++;
    } else {
        mem_free(self);
    }
}

void a2a_http_router_forget_calls(a2a_http_router *self)
{
    list_link *link;
    while ((link = list_pop(&self->calls)) != NULL) {
        CONTAINER_OF(link, http_operation, link)->router = NULL;
    }
    while ((link = list_pop(&self->spare)) != NULL) {
        mem_free(CONTAINER_OF(link, http_operation, link));
    }
}

/* The exchange's memory is freed. */
static void drop_views(http_operation *self)
{
    self->call.params = JSON_NONE;
    self->call.tenant = STR("");
    self->call.extensions = self->call.traceparent = STR("");
    self->call.memory = NULL;
    self->inbound.params = JSON_NONE;
    self->inbound.tenant = STR("");
    self->extensions = STR("");
}

static bool keep_id(http_operation *self)
{
    bay_str id = self->inbound.rpc_id;
    char *kept = self->id;
    if (id.len > sizeof(self->id)) {
        kept = self->long_id = mem_dup(id.at, id.len);
        if (kept == NULL) {
            return false;
        }
    } else if (id.len > 0) {
        memcpy(kept, id.at, id.len);
    }
    self->inbound.rpc_id = (bay_str){kept, id.len};
    return true;
}

/* ---- from the service ------------------------------------------------------------------------ */

static void trim(a2a_http_router *router)
{
    if (router->answer.cap > ANSWER_KEPT_BYTES) {
        buf_fini(&router->answer);
        buf_init(&router->answer, ANSWER_MAX_BYTES);
    }
}

static void answer_fault(http_operation *self, const a2a_fault *fault,
                         const front_challenge *challenge)
{
    http_exchange *exchange = http_reply_take(&self->reply);
    if (exchange != NULL) {
        a2a_http_router_reply_fault(self->router, exchange, &self->inbound, fault, challenge);
    }
    operation_free(self);
}

static void on_result(a2a_call *call, bay_str json)
{
    http_operation *self = of_call(call);
    if (self->router == NULL || self->reply.exchange == NULL) {
        operation_free(self);
        return;
    }
    buf *body = &self->router->answer;
    buf_clear(body);
    bay_err err = a2a_write_result(&self->inbound, json, call->answer, body);
    if (err != BAY_OK || body->err != BAY_OK) {
        a2a_fault fault = {A2A_E_INTERNAL, "the answer could not be written"};
        answer_fault(self, &fault, NULL);
        return;
    }
    a2a_head head = {.media = self->media, .extensions = self->extensions};
    a2a_http_router_reply(http_reply_take(&self->reply), 200, &head, buf_view(body));
    trim(self->router);
    operation_free(self);
}

/* A lost event must be visible: the stream breaks, and the peer notices. */
static bay_err break_off(http_operation *self)
{
    http_reply_abort(&self->reply);
    drop_views(self);
    self->call.is_gone = true;
    return BAY_ERR_CLOSED;
}

static bay_err write_event(http_operation *self, bay_str name, bay_str data, uint64_t sequence)
{
    char digits[24];
    buf id = {.at = digits, .cap = sizeof(digits), .max = sizeof(digits)};
    if (sequence > 0) {
        buf_uint(&id, sequence);
    }
    bool is_first = !self->reply.is_streaming;
    if (is_first && !keep_id(self)) {
        return break_off(self);
    }
    if (is_first && self->extensions.len > 0) {
        self->stream_fields[0] = (http_field){STR("A2A-Extensions"), self->extensions};
        self->reply.fields = self->stream_fields;
        self->reply.field_count = 1;
    }
    bay_err err = http_reply_event(&self->reply, name, data, buf_view(&id));
    if (is_first) {
        drop_views(self);
    }
    trim(self->router);
    return err == BAY_ERR_CANCELLED ? BAY_ERR_CLOSED : err;
}

static bay_err on_event(a2a_call *call, a2a_event *event)
{
    http_operation *self = of_call(call);
    if (call->is_gone || self->router == NULL || self->reply.exchange == NULL) {
        return BAY_ERR_CLOSED;
    }
    bay_str rendered;
    buf *data = &self->router->answer;
    buf_clear(data);
    if (a2a_event_in(event, self->inbound.form, false, &rendered) != BAY_OK) {
        return break_off(self);
    }
    if (self->inbound.binding == A2A_JSONRPC) {
        a2a_write_event(&self->inbound, rendered, data);
        if (data->err != BAY_OK) {
            return break_off(self);
        }
        rendered = buf_view(data);
    }
    return write_event(self, (bay_str){NULL, 0}, rendered, a2a_event_sequence(event));
}

static void router_call_on_end(a2a_call *call)
{
    http_operation *self = of_call(call);
    if (self->reply.exchange != NULL) {
        if (!self->reply.is_streaming) { /* a stream without an event is still a stream */
            (void)http_reply_event(&self->reply, (bay_str){NULL, 0}, STR(""), STR(""));
        }
        http_reply_end(&self->reply);
    }
    operation_free(self);
}

static void on_fail(a2a_call *call, const a2a_fault *fault)
{
    http_operation *self = of_call(call);
    if (self->router == NULL || self->reply.exchange == NULL) {
        operation_free(self);
        return;
    }
    if (!self->reply.is_streaming) {
        answer_fault(self, fault, NULL);
        return;
    }
    int status;
    buf *data = &self->router->answer;
    buf_clear(data);
    a2a_write_fault(&self->inbound, fault, data, &status);
    if (data->err == BAY_OK) {
        bool is_rest = self->inbound.binding == A2A_HTTP_JSON;
        (void)write_event(self, is_rest ? STR("error") : (bay_str){NULL, 0}, buf_view(data), 0);
    }
    http_reply_end(&self->reply);
    operation_free(self);
}

static bay_str on_field(a2a_call *call, bay_str name)
{
    http_operation *self = of_call(call);
    bool is_there = self->reply.exchange != NULL && !self->reply.is_streaming;
    return is_there ? http_exchange_field(self->reply.exchange, name) : (bay_str){NULL, 0};
}

static const a2a_call_ops call_ops = {.result = on_result,
                                      .event = on_event,
                                      .end = router_call_on_end,
                                      .fail = on_fail,
                                      .field = on_field};

/* ---- from the exchange ----------------------------------------------------------------------- */

static void on_gone(http_reply *reply)
{
    http_operation *self = of_reply(reply);
    if (self->call.is_gone) {
        return;
    }
    drop_views(self);
    self->call.is_gone = true;
    a2a_service_gone(self->service, &self->call);
}

static void on_drained(http_reply *reply)
{
    http_operation *self = of_reply(reply);
    self->service->drained(self->service, &self->call);
}

static void on_close(http_reply *reply)
{
    http_reply_end(reply);
    on_gone(reply);
}

static void on_expired(http_reply *reply)
{
    on_close(reply);
}

static const http_reply_ops reply_ops = {
    .gone = on_gone, .drained = on_drained, .close = on_close, .expired = on_expired};

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_rpc_path(bay_str path)
{
    return path.len == 0 || str_eq(path, STR("/"));
}

a2a_inbound a2a_http_router_unread(const http_exchange *exchange, bay_str path)
{
    bool is_rpc = is_rpc_path(path);
    a2a_version version = a2a_version_of(a2a_http_router_version(exchange));
    bool is_old_path = str_starts(path, STR("/v1/"));
    if (!is_rpc) {
        version = is_old_path ? A2A_0_3 : A2A_1_0;
    } else if (version >= A2A_VERSIONS) {
        version = A2A_1_0;
    }
    a2a_binding binding = is_rpc ? A2A_JSONRPC : A2A_HTTP_JSON;
    return (a2a_inbound){.binding = binding,
                         .version = version,
                         .form = a2a_form_of(version, binding),
                         .rpc_id = is_rpc ? STR("null") : STR(""),
                         .tenant = STR("")};
}

/* Of 0.2: the extended card beside the agent's URL, by GET and without an envelope. Source: A2A
 * 0.2.5 section 7.10. */
static bay_err read_old_extended_card(http_exchange *exchange, bay_str path, a2a_inbound *out)
{
    bay_str verb = http_exchange_method(exchange);
    if (!str_eq(path, STR("/agent/authenticatedExtendedCard")) ||
        (!str_eq(verb, STR("GET")) && !str_eq(verb, STR("HEAD")))) {
        return BAY_ERR_NOT_FOUND;
    }
    *out = (a2a_inbound){.binding = A2A_HTTP_JSON,
                         .version = A2A_0_2,
                         .form = A2A_FORM_0_3,
                         .method = A2A_GET_EXTENDED_CARD,
                         .rpc_id = STR(""),
                         .params = json_empty_object(),
                         .tenant = STR("")};
    return BAY_OK;
}

static bay_err read_rest(http_exchange *exchange, bay_str path, bay_str version, a2a_inbound *out,
                         bay_str *out_allow, a2a_fault *fault)
{
    bay_err err = a2a_rest_read(http_exchange_method(exchange), path, http_exchange_query(exchange),
                                http_exchange_body(exchange), version,
                                http_exchange_arena(exchange), out, out_allow, fault);
    return err == BAY_ERR_NOT_FOUND && out_allow->len == 0
               ? read_old_extended_card(exchange, path, out)
               : err;
}

/* True: `out` is a request; else it was answered, or *out_is_ours is false. */
static bool read_request(a2a_http_router *self, http_exchange *exchange,
                         const a2a_http_router_fields *fields, bay_str path, a2a_inbound *out,
                         bool *out_is_ours)
{
    a2a_fault fault = {A2A_E_INTERNAL, ""};
    bay_str allow = STR("");
    bool is_rpc = is_rpc_path(path);
    *out_is_ours = true;
    if (is_rpc && !str_eq(http_exchange_method(exchange), STR("POST"))) {
        a2a_http_router_reply_error(exchange, 405, STR("POST, OPTIONS"),
                                    "JSON-RPC is sent by POST");
        return false;
    }
    bay_err err;
    if (http_exchange_body(exchange).len > 0 && !a2a_http_router_is_json(fields->content_type)) {
        *out = a2a_http_router_unread(exchange, path);
        err = a2a_fault_set(&fault, A2A_E_CONTENT_TYPE_NOT_SUPPORTED,
                            "a body is application/json or application/a2a+json");
    } else if (is_rpc) {
        err = a2a_jsonrpc_read(http_exchange_body(exchange), fields->version,
                               &self->options.inbound, http_exchange_arena(exchange), out, &fault);
    } else {
        *out = a2a_http_router_unread(exchange, path);
        err = read_rest(exchange, path, fields->version, out, &allow, &fault);
    }
    if (err == BAY_OK) {
        return true;
    }
    if (allow.len > 0) {
        a2a_http_router_reply_error(exchange, 405, allow, "this path is there with other verbs");
    } else if (err == BAY_ERR_NOT_FOUND) {
        *out_is_ours = false;
    } else {
        if (err != BAY_ERR_PROTOCOL) {
            fault = (a2a_fault){A2A_E_BUSY, "the request could not be read for lack of memory"};
        }
        a2a_http_router_reply_fault(self, exchange, out, &fault, NULL);
    }
    return false;
}

static void fill(http_operation *self, http_exchange *exchange,
                 const a2a_http_router_fields *fields, const a2a_http_agent *agent,
                 const a2a_inbound *inbound, const auth_principal *principal)
{
    bay_str asked = fields->has_extensions ? a2a_http_router_extensions(exchange) : STR("");
    self->service = agent->service;
    self->inbound = *inbound;
    self->media = a2a_media_type(inbound, fields->accept, fields->content_type);
    self->extensions =
        a2a_http_router_activated(asked, agent->extensions, http_exchange_arena(exchange));
    self->call = (a2a_call){.ops = &call_ops,
                            .method = inbound->method,
                            .version = inbound->version,
                            .binding = inbound->binding,
                            .params = inbound->params,
                            .tenant = inbound->tenant,
                            .principal = principal_ref(principal),
                            .extensions = asked,
                            .traceparent = fields->traceparent,
                            .last_event_id = fields->last_event_id,
                            .memory = http_exchange_arena(exchange)};
}

bool a2a_http_router_call(a2a_http_router *self, http_exchange *exchange,
                          const a2a_http_agent *agent, bay_str path,
                          const auth_principal *principal)
{
    a2a_inbound inbound;
    a2a_http_router_fields fields;
    bool is_ours;
    a2a_http_router_fields_read(exchange, &fields);
    if (!read_request(self, exchange, &fields, path, &inbound, &is_ours)) {
        return is_ours;
    }
    http_operation *operation = operation_new(self);
    if (operation == NULL) {
        a2a_fault fault = {A2A_E_BUSY, "out of memory; try again later"};
        a2a_http_router_reply_fault(self, exchange, &inbound, &fault, NULL);
        return true;
    }
    fill(operation, exchange, &fields, agent, &inbound, principal);
    if (self->options.origin != NULL) {
        operation->call.origin = self->options.origin(self->options.user, exchange);
    }
    http_reply_begin(&operation->reply, &self->replies, &reply_ops, exchange, principal);
    a2a_fault fault = {A2A_E_FORBIDDEN, ""};
    front_challenge challenge = {.retry = STR("")};
    if (self->options.admit != NULL &&
        self->options.admit(self->options.user, agent, exchange, &operation->call, &challenge,
                            &fault) != BAY_OK) {
        answer_fault(operation, &fault, &challenge);
        return true;
    }
    a2a_service_call(operation->service, &operation->call);
    return true;
}
