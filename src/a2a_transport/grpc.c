/* A2A over gRPC, server side: a request is read into a call, and the events of its service become
 * messages and a status.
 *
 *   read ──admitted──► WAITING ──result, fail──► over
 *                         └──event──► STREAMING ──end, fail──► over
 *
 * (The deadline, the peer's reset and the end of the router detach the exchange from either state:
 * the service gets `gone`, and the call is freed when the service ends it.)
 *
 * Invariants
 * - The call's views point into the exchange; when that has ended or has freed its memory (with the
 *   first event), the views are empty.
 * - Nothing of an operation is used after its service has ended it: the exchange's user pointer is
 *   NULL by then. */
#include "a2a_transport/grpc.h"

#include "a2a_transport/grpc_status.h"
#include "a2a_transport/router_internal.h"
#include "base/check.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "wire/header.h"

enum { ANSWER_KEPT_BYTES = 64 * 1024, ANSWER_BYTES = 512 << 20, STATUS_BYTES = 16 * 1024 };

struct a2a_grpc {
    loop *loop;
    const a2a_http_router_options *options;
    list operations;
    buf answer;   /* one message with its head */
    arena memory; /* … and its index */
    buf text;     /* grpc-message … */
    buf details;
};

typedef struct grpc_operation {
    const a2a_exchange_ops *owner; /* first */
    a2a_call call;
    list_link link;
    a2a_grpc *router; /* NULL: freed */
    a2a_service *service;
    http_exchange *exchange; /* NULL: ended, or answered */
    bay_str extensions;      /* extensions to echo; in the exchange's arena */
    loop_timer deadline;
    a2a_form form;
    bool is_streaming;
} grpc_operation;

static grpc_operation *of_call(a2a_call *call)
{
    return CONTAINER_OF(call, grpc_operation, call);
}

/* --- answers ---------------------------------------------------------------------------------- */

static const http_field media = {STR_INIT("content-type"), STR_INIT("application/grpc")};

/* A status without a message, as one head. */
static void refuse_with(http_exchange *exchange, int code, const a2a_fault *fault,
                        const front_challenge *challenge)
{
    buf text;
    buf details;
    buf_init(&text, STATUS_BYTES);
    buf_init(&details, STATUS_BYTES);
    a2a_grpc_trailers trailers;
    a2a_grpc_trailers_write(fault, code, &text, &details, &trailers);
    http_field fields[HTTP_REPLY_FIELDS] = {media};
    size_t count = 1;
    for (size_t i = 0; i < trailers.count; i++) {
        fields[count++] = trailers.fields[i];
    }
    if (challenge != NULL) {
        count = front_challenge_put(challenge, fields, count);
    }
    if (code == GRPC_UNIMPLEMENTED) {
        fields[count++] = (http_field){STR("grpc-accept-encoding"), STR("identity")};
    }
    http_exchange_reply(exchange, 200, fields, count, STR(""));
    buf_fini(&text);
    buf_fini(&details);
}

void a2a_grpc_refuse(http_exchange *exchange, const a2a_fault *fault,
                     const front_challenge *challenge)
{
    refuse_with(exchange, a2a_errors[fault->error].grpc, fault, challenge);
}

/* For an error of gRPC, not of A2A: only the text of the fault is used. */
static void refuse_code(http_exchange *exchange, int code, const char *text)
{
    a2a_fault fault;
    (void)a2a_fault_set(&fault, A2A_E_INVALID_REQUEST, "%s", text);
    refuse_with(exchange, code, &fault, NULL);
}

void a2a_grpc_refuse_path(http_exchange *exchange)
{
    refuse_code(exchange, GRPC_UNIMPLEMENTED, "there is no such service or method");
}

/* --- the life of an operation ----------------------------------------------------------------- */

static void drop_views(grpc_operation *self)
{
    self->call.params = JSON_NONE;
    self->call.tenant = STR("");
    self->call.extensions = self->call.traceparent = STR("");
    self->call.memory = NULL;
    self->extensions = STR("");
}

/* Detaches the exchange and returns it. */
static http_exchange *let_go(grpc_operation *self)
{
    http_exchange *exchange = self->exchange;
    self->exchange = NULL;
    if (exchange != NULL) {
        http_exchange_set_user(exchange, NULL);
    }
    if (self->router != NULL) {
        loop_timer_stop(self->router->loop, &self->deadline);
    }
    return exchange;
}

static void operation_free(grpc_operation *self)
{
    principal_unref(self->call.principal);
    (void)let_go(self);
    list_remove(&self->link);
    mem_free(self);
}

/* Tells the service that the caller has disconnected; the service may end the call inside. */
static void say_gone(grpc_operation *self)
{
    drop_views(self);
    self->call.is_gone = true;
    a2a_service_gone(self->service, &self->call);
}

static void grpc_on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    grpc_operation *self = user;
    (void)exchange;
    (void)is_complete;
    (void)let_go(self);
    say_gone(self);
}

static void on_drained(void *user, http_exchange *exchange)
{
    grpc_operation *self = user;
    (void)exchange;
    self->service->drained(self->service, &self->call);
}

static const a2a_exchange_ops owner_ops = {.closed = grpc_on_closed, .drained = on_drained};

static bay_err open_stream(grpc_operation *self)
{
    if (self->is_streaming) {
        return BAY_OK;
    }
    http_field fields[2] = {media, {STR("a2a-extensions"), self->extensions}};
    bay_err err =
        http_stream_open(self->exchange, 200, fields, self->extensions.len > 0 ? 2 : 1, true);
    if (err == BAY_OK) {
        self->is_streaming = true;
        drop_views(self);
    }
    return err;
}

/* Ends the exchange with this status; `fault` NULL: OK. */
static void conclude(grpc_operation *self, const a2a_fault *fault, const front_challenge *challenge)
{
    bool was_streaming = self->is_streaming;
    a2a_grpc *router = self->router;
    http_exchange *exchange = let_go(self);
    if (exchange == NULL) {
        return;
    }
    int code = fault != NULL ? a2a_errors[fault->error].grpc : GRPC_OK;
    if (!was_streaming) {
        refuse_with(exchange, code, fault, challenge);
        return;
    }
    a2a_grpc_trailers trailers;
    a2a_grpc_trailers_write(fault, code, &router->text, &router->details, &trailers);
    http_stream_end_with(exchange, trailers.fields, trailers.count);
}

static void on_deadline(void *argument)
{
    grpc_operation *self = argument;
    a2a_fault fault = {A2A_E_DEADLINE, ""};
    conclude(self, &fault, NULL);
    say_gone(self);
}

/* --- from the service ------------------------------------------------------------------------- */

static bool is_heard(const grpc_operation *self)
{
    return self->router != NULL && self->exchange != NULL;
}

/* The message of a result, in the request's form, with its head. */
static bay_err write_result(grpc_operation *self, bay_str json, buf *out)
{
    a2a_type type = a2a_grpc_response_type(self->form, self->call.method);
    a2a_fault fault;
    json_val value;
    arena *memory = &self->router->memory;
    bay_err err = a2a_text_view(json, self->call.answer, memory, &value);
    if (err == BAY_OK) {
        err = a2a_result_in_form(self->form, self->call.method, value, memory, &value);
    }
    buf_clear(out);
    buf_append(out, "\0\0\0\0", GRPC_FRAME_HEAD);
    if (err == BAY_OK) {
        err = a2a_to_protobuf(type, value, out, &fault);
    }
    if (err == BAY_OK && out->err == BAY_OK &&
        !grpc_frame_head(out->at, out->len - GRPC_FRAME_HEAD)) {
        err = BAY_ERR_LIMIT;
    }
    return err != BAY_OK ? err : out->err;
}

static void trim_one(buf *scratch)
{
    if (scratch->cap > ANSWER_KEPT_BYTES) {
        buf_fini(scratch);
        buf_init(scratch, ANSWER_BYTES);
    }
}

/* Frees scratch memory that is much larger than usual. */
static void trim(a2a_grpc *router)
{
    trim_one(&router->answer);
    arena_reset(&router->memory);
}

static void on_result(a2a_call *call, bay_str json)
{
    grpc_operation *self = of_call(call);
    if (is_heard(self)) {
        a2a_grpc *router = self->router;
        bay_err err = write_result(self, json, &router->answer);
        if (err == BAY_OK) {
            err = open_stream(self);
        }
        if (err == BAY_OK) {
            err = http_stream_write(self->exchange, buf_view(&router->answer));
        }
        a2a_fault fault = {A2A_E_INTERNAL, "the answer could not be written"};
        conclude(self, err == BAY_OK || err == BAY_ERR_AGAIN ? NULL : &fault, NULL);
        trim(router);
    }
    operation_free(self);
}

static bay_err on_event(a2a_call *call, a2a_event *event)
{
    grpc_operation *self = of_call(call);
    bay_str message;
    char head[GRPC_FRAME_HEAD];
    if (!is_heard(self) || call->is_gone) {
        return BAY_ERR_CLOSED;
    }
    bay_err err = a2a_event_in(event, self->form, true, &message);
    if (err == BAY_OK && !grpc_frame_head(head, message.len)) {
        err = BAY_ERR_LIMIT;
    }
    if (err == BAY_OK) {
        err = open_stream(self);
    }
    if (err == BAY_OK) {
        err = http_stream_write(self->exchange, (bay_str){head, sizeof(head)});
    }
    if ((err == BAY_OK || err == BAY_ERR_AGAIN) && message.len > 0) {
        err = http_stream_write(self->exchange, message);
    }
    if (err != BAY_OK && err != BAY_ERR_AGAIN && self->exchange != NULL) {
        /* A lost message must be visible to the caller. */
        http_exchange *exchange = let_go(self);
        http_exchange_abort(exchange);
        drop_views(self);
        call->is_gone = true;
        return BAY_ERR_CLOSED;
    }
    return err;
}

static void grpc_on_end(a2a_call *call)
{
    grpc_operation *self = of_call(call);
    if (is_heard(self)) {
        if (open_stream(self) == BAY_OK) {
            conclude(self, NULL, NULL);
        } else {
            a2a_fault fault = {A2A_E_BUSY, ""};
            conclude(self, &fault, NULL);
        }
    }
    operation_free(self);
}

static void on_fail(a2a_call *call, const a2a_fault *fault)
{
    grpc_operation *self = of_call(call);
    if (is_heard(self)) {
        conclude(self, fault, NULL);
    }
    operation_free(self);
}

static bay_str on_field(a2a_call *call, bay_str name)
{
    grpc_operation *self = of_call(call);
    bool is_there = self->exchange != NULL && !self->is_streaming;
    return is_there ? http_exchange_field(self->exchange, name) : (bay_str){NULL, 0};
}

static const a2a_call_ops call_ops = {
    .result = on_result, .event = on_event, .end = grpc_on_end, .fail = on_fail, .field = on_field};

/* --- reading ---------------------------------------------------------------------------------- */

/* The parts of a request, before its service is known. */
typedef struct grpc_inbound {
    a2a_form form;
    a2a_method method;
    a2a_version version;
    json_val params;
    bay_str tenant;
    uint32_t timeout_ms; /* 0: none */
} grpc_inbound;

/* "application/grpc", optionally "+FORMAT" and parameters. */
static bool is_grpc(bay_str type)
{
    static const bay_str base = STR_INIT("application/grpc");
    if (!str_eq_nocase(str_head(type, base.len), base)) {
        return false;
    }
    return type.len == base.len || type.at[base.len] == '+' || type.at[base.len] == ';';
}

bool a2a_grpc_is_request(const http_exchange *exchange)
{
    return http_exchange_is_http2(exchange) &&
           str_eq(http_exchange_method(exchange), STR("POST")) &&
           is_grpc(http_exchange_field(exchange, STR("content-type")));
}

static bool is_protobuf(bay_str type)
{
    type = str_trim(str_head(type, str_find(type, ';')));
    return str_eq_nocase(type, STR("application/grpc")) ||
           str_eq_nocase(type, STR("application/grpc+proto"));
}

/* Answers and returns false if the server does not support the request. */
static bool check_words(http_exchange *exchange, grpc_inbound *out)
{
    bay_str encoding = http_exchange_field(exchange, STR("grpc-encoding"));
    bay_str timeout = http_exchange_field(exchange, STR("grpc-timeout"));
    if (!is_protobuf(http_exchange_field(exchange, STR("content-type")))) {
        refuse_code(exchange, GRPC_UNIMPLEMENTED, "messages are protobuf: application/grpc+proto");
    } else if (a2a_grpc_path_read(http_exchange_path(exchange), &out->form, &out->method) !=
               BAY_OK) {
        a2a_grpc_refuse_path(exchange);
    } else if (encoding.len > 0 && !str_eq_nocase(encoding, STR("identity"))) {
        refuse_code(exchange, GRPC_UNIMPLEMENTED, "compressed messages are not read");
    } else if (timeout.at != NULL && grpc_timeout_read(timeout, &out->timeout_ms) != BAY_OK) {
        refuse_code(exchange, GRPC_INTERNAL, "grpc-timeout is not valid");
    } else {
        return true;
    }
    return false;
}

/* a2a 1.0.1 section 3.6: the package names the version; a version field must agree */
static bool check_version(http_exchange *exchange, grpc_inbound *out)
{
    bay_str text = http_exchange_field(exchange, STR("a2a-version"));
    a2a_version named = a2a_version_of(text);
    bool is_1_0 = out->form == A2A_FORM_1_0;
    out->version = is_1_0 ? A2A_1_0 : A2A_0_3;
    bool agrees = text.len == 0 || (is_1_0 ? named == A2A_1_0 : named < A2A_1_0);
    if (!agrees) {
        a2a_fault fault;
        (void)a2a_fault_set(&fault, A2A_E_VERSION_NOT_SUPPORTED,
                            "this service speaks A2A %.*s, not %.*s",
                            BAY_STR(a2a_version_names[out->version]), BAY_STR(str_head(text, 20)));
        a2a_grpc_refuse(exchange, &fault, NULL);
    }
    return agrees;
}

/* The one message of the body. */
static bool take_message(http_exchange *exchange, bay_str *out)
{
    bay_str body = http_exchange_body(exchange);
    grpc_reader reader;
    size_t used = 0;
    grpc_reader_init(&reader, body.len);
    bay_err err = grpc_reader_next(&reader, body, &used, out);
    grpc_reader_fini(&reader);
    if (err == BAY_ERR_UNSUPPORTED) {
        refuse_code(exchange, GRPC_UNIMPLEMENTED, "compressed messages are not read");
    } else if (err != BAY_OK) {
        refuse_code(exchange, GRPC_INVALID_ARGUMENT,
                    "the request holds no whole message, or says a wrong length of it");
    } else if (used < body.len) {
        refuse_code(exchange, GRPC_INVALID_ARGUMENT, "the request holds more than one message");
        err = BAY_ERR_PROTOCOL;
    }
    return err == BAY_OK;
}

static bay_err read_params(http_exchange *exchange, bay_str message, grpc_inbound *out,
                           a2a_fault *fault)
{
    arena *memory = http_exchange_arena(exchange);
    a2a_type type = a2a_grpc_request_type(out->form, out->method);
    json_val params;
    bay_err err = a2a_protobuf_view(type, message, ANSWER_BYTES, memory, &params, fault);
    if (err == BAY_OK && out->form != A2A_FORM_1_0) {
        err = a2a_params_view(out->form, out->method, params, memory, &params, fault);
    }
    if (err == BAY_OK) {
        out->params = params;
    }
    return err;
}

static void read_tenant(http_exchange *exchange, grpc_inbound *out)
{
    json_val member = json_get(out->params, STR("tenant"));
    out->tenant = STR("");
    if (json_is(member, JSON_STRING)) {
        err_ignore(json_str(member, http_exchange_arena(exchange), &out->tenant));
    }
    if (out->tenant.len == 0) {
        bay_str named = http_exchange_field(exchange, STR("a2a-tenant"));
        out->tenant = named.at != NULL ? named : STR("");
    }
}

/* True: `out` is complete; false: the request was answered. */
static bool read_request(http_exchange *exchange, grpc_inbound *out)
{
    bay_str message;
    a2a_fault fault = {A2A_E_BUSY, "the request could not be read for lack of memory"};
    *out = (grpc_inbound){.timeout_ms = 0};
    if (!check_words(exchange, out) || !check_version(exchange, out) ||
        !take_message(exchange, &message)) {
        return false;
    }
    bay_err err = read_params(exchange, message, out, &fault);
    if (err != BAY_OK) {
        if (err != BAY_ERR_PROTOCOL) {
            fault = (a2a_fault){A2A_E_BUSY, "the request could not be read for lack of memory"};
        }
        a2a_grpc_refuse(exchange, &fault, NULL);
        return false;
    }
    read_tenant(exchange, out);
    return true;
}

/* --- handing over ----------------------------------------------------------------------------- */

static grpc_operation *operation_new(a2a_grpc *router, http_exchange *exchange,
                                     const a2a_http_agent *agent, const grpc_inbound *inbound)
{
    grpc_operation *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    loop_timer_init(&self->deadline, on_deadline, self);
    if (inbound->timeout_ms > 0 &&
        loop_timer_start(router->loop, &self->deadline, inbound->timeout_ms) != BAY_OK) {
        mem_free(self);
        return NULL;
    }
    self->owner = &owner_ops;
    self->router = router;
    self->service = agent->service;
    self->exchange = exchange;
    self->form = inbound->form;
    bay_str asked = a2a_http_router_extensions(exchange);
    self->extensions =
        a2a_http_router_activated(asked, agent->extensions, http_exchange_arena(exchange));
    self->call = (a2a_call){.ops = &call_ops,
                            .method = inbound->method,
                            .version = inbound->version,
                            .binding = A2A_GRPC,
                            .params = inbound->params,
                            .tenant = inbound->tenant,
                            .extensions = asked,
                            .traceparent = a2a_http_router_traceparent(exchange),
                            .last_event_id = a2a_http_router_last_event_id(exchange),
                            .memory = http_exchange_arena(exchange)};
    list_push(&router->operations, &self->link);
    http_exchange_set_user(exchange, self);
    return self;
}

void a2a_grpc_request(a2a_grpc *self, http_exchange *exchange, const auth_principal *principal)
{
    grpc_inbound inbound;
    const a2a_http_router_options *options = self->options;
    a2a_http_agent agent = {.service = NULL};
    http_exchange_set_user(exchange, NULL);
    if (!read_request(exchange, &inbound)) {
        return;
    }
    if (!options->agent(options->user, inbound.tenant, exchange, principal, &agent) ||
        agent.service == NULL) {
        refuse_code(exchange, GRPC_NOT_FOUND, "there is no such agent here");
        return;
    }
    grpc_operation *operation = operation_new(self, exchange, &agent, &inbound);
    if (operation == NULL) {
        a2a_fault fault = {A2A_E_BUSY, "out of memory; try again later"};
        a2a_grpc_refuse(exchange, &fault, NULL);
        return;
    }
    operation->call.principal = principal_ref(principal);
    if (options->origin != NULL) {
        operation->call.origin = options->origin(options->user, exchange);
    }
    a2a_fault fault = {A2A_E_UNAUTHENTICATED, ""};
    front_challenge challenge = {.retry = STR("")}; /* lives as long as the exchange's memory */
    if (options->admit != NULL && options->admit(options->user, &agent, exchange, &operation->call,
                                                 &challenge, &fault) != BAY_OK) {
        conclude(operation, &fault, &challenge);
        operation_free(operation);
        return;
    }
    a2a_service_call(operation->service, &operation->call);
}

/* --- life ------------------------------------------------------------------------------------- */

bay_err a2a_grpc_new(loop *runs_on, const a2a_http_router_options *options, a2a_grpc **out)
{
    a2a_grpc *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = runs_on;
    self->options = options;
    list_init(&self->operations);
    buf_init(&self->answer, ANSWER_BYTES);
    arena_init(&self->memory, ANSWER_BYTES);
    buf_init(&self->text, STATUS_BYTES);
    buf_init(&self->details, STATUS_BYTES);
    *out = self;
    return BAY_OK;
}

void a2a_grpc_free(a2a_grpc *self)
{
    if (self == NULL) {
        return;
    }
    for (list_link *link; (link = list_pop(&self->operations)) != NULL;) {
        grpc_operation *operation = CONTAINER_OF(link, grpc_operation, link);
        (void)let_go(operation);
        operation->router = NULL;
    }
    buf_fini(&self->answer);
    arena_fini(&self->memory);
    buf_fini(&self->text);
    buf_fini(&self->details);
    mem_free(self);
}

void a2a_grpc_end_streams(a2a_grpc *self, principal_test is_over, void *user)
{
    const a2a_fault fault =
        is_over == NULL
            ? (a2a_fault){A2A_E_UNAVAILABLE, "the server is ending; come back"}
            : (a2a_fault){A2A_E_FORBIDDEN, "this caller may not have the stream any more"};
    list open;
    list_init(&open);
    for (list_link *link; (link = list_pop(&self->operations)) != NULL;) {
        list_push(&open, link);
    }
    for (list_link *link; (link = list_pop(&open)) != NULL;) {
        grpc_operation *operation = CONTAINER_OF(link, grpc_operation, link);
        list_push(&self->operations, link);
        if (operation->is_streaming && operation->exchange != NULL &&
            (is_over == NULL || is_over(user, operation->call.principal))) {
            conclude(operation, &fault, NULL);
            say_gone(operation);
        }
    }
}
