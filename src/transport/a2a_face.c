/* The HTTP face of agents: who may come in, and which path is whose. */
#include "transport/a2a_face.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "transport/a2a_face_internal.h"
#include "wire/header.h"
#include "json/writer.h"

enum { KEEP_ALIVE_MS = 15000, ANSWER_MAX_BYTES = 512 << 20, ERROR_BYTES = 1024 };

/* ---- answers --------------------------------------------------------------------------------- */

void a2a_face_reply(http_exchange *exchange, int status, const a2a_head *head, bay_str body)
{
    http_field fields[HTTP_REPLY_FIELDS];
    size_t count = 0;
    if (body.len > 0) {
        fields[count++] = (http_field){STR("Content-Type"), head->media};
    }
    if (head->challenge.len > 0) {
        fields[count++] = (http_field){STR("WWW-Authenticate"), head->challenge};
    }
    if (head->allow.len > 0) {
        fields[count++] = (http_field){STR("Allow"), head->allow};
    }
    if (head->extensions.len > 0) {
        fields[count++] = (http_field){STR("A2A-Extensions"), head->extensions};
    }
    if (status == 503) {
        fields[count++] = (http_field){STR("Retry-After"), STR("1")};
    }
    if (!str_eq(http_exchange_method(exchange), STR("POST"))) {
        /* RFC 9111 section 3: a cache may keep what a GET brought, and knows no credentials but
         * Authorization; cards name others, and the version chooses the form */
        fields[count++] = (http_field){STR("Cache-Control"), STR("no-store")};
    }
    count = http_reply_cors(exchange, fields, count);
    http_exchange_reply(exchange, status, fields, count, body);
}

/* google.rpc.Status, as every error over HTTP; a2a 1.0.1 section 11.6 */
static bay_str error_body(buf *body, int status, const char *text)
{
    const char *name = status == 403   ? "PERMISSION_DENIED"
                       : status == 404 ? "NOT_FOUND"
                                       : "UNIMPLEMENTED";
    buf_printf(body, "{\"error\":{\"code\":%d,\"status\":\"%s\",\"message\":", status, name);
    json_quote(body, str_of(text));
    buf_lit(body, ",\"details\":[]}}");
    return body->err == BAY_OK ? buf_view(body) : STR("");
}

void a2a_face_reply_error(http_exchange *exchange, int status, bay_str allow, const char *text)
{
    char bytes[ERROR_BYTES];
    buf body = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    a2a_face_reply(exchange, status, &(a2a_head){.media = STR("application/json"), .allow = allow},
                   error_body(&body, status, text));
}

void a2a_face_reply_fault(a2a_face *self, http_exchange *exchange, const a2a_inbound *request,
                          const a2a_fault *fault, bay_str challenge)
{
    int status = 500;
    buf_clear(&self->answer);
    a2a_write_fault(request, fault, &self->answer, &status);
    a2a_head head = {.media = a2a_media_type(request, http_exchange_field(exchange, STR("Accept")),
                                             http_exchange_field(exchange, STR("Content-Type"))),
                     .challenge = challenge};
    a2a_face_reply(exchange, status, &head,
                   self->answer.err == BAY_OK ? buf_view(&self->answer) : STR(""));
}

/* ---- preflight ------------------------------------------------------------------------------- */

/* Header fields that carry credentials have whatever names cards give them, so an allowed origin
 * may use any that is one. */
static void write_names(buf *out, bay_str requested)
{
    while (requested.len > 0) {
        size_t comma = str_find(requested, ',');
        bay_str name = str_trim(str_head(requested, comma));
        if (header_name_is_valid(name)) {
            buf_lit(out, ", ");
            buf_str(out, name);
        }
        requested = str_from(requested, comma + 1);
    }
}

static void reply_preflight(http_exchange *exchange)
{
    bay_str verbs = STR("GET, HEAD, POST, DELETE, OPTIONS");
    bay_str origin = http_exchange_field(exchange, STR("Origin"));
    char text[2 * ERROR_BYTES];
    buf names = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    buf_lit(&names, "accept, authorization, content-type, a2a-extensions, a2a-version, "
                    "last-event-id, traceparent");
    size_t fixed = names.len;
    write_names(&names, http_exchange_field(exchange, STR("Access-Control-Request-Headers")));
    if (names.err != BAY_OK) {
        names.len = fixed;
    }
    http_field fields[] = {
        {STR("Allow"), verbs},
        {STR("Access-Control-Allow-Origin"), origin},
        {STR("Access-Control-Allow-Methods"), verbs},
        {STR("Access-Control-Allow-Headers"), buf_view(&names)},
        {STR("Access-Control-Max-Age"), STR("600")},
        {STR("Vary"), STR("Origin, Access-Control-Request-Headers")},
    };
    http_exchange_reply(exchange, 204, fields, origin.at != NULL ? ARRAY_LEN(fields) : 1, STR(""));
}

/* ---- routing --------------------------------------------------------------------------------- */

static void refuse(http_exchange *exchange, const char *text)
{
    if (a2a_grpc_is_request(exchange)) {
        a2a_fault fault;
        (void)a2a_fault_set(&fault, A2A_E_FORBIDDEN, "%s", text);
        a2a_grpc_refuse(exchange, &fault);
        return;
    }
    http_field fields[HTTP_REPLY_FIELDS] = {{STR("Content-Type"), STR("application/json")}};
    char bytes[ERROR_BYTES];
    buf body = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    http_exchange_reply(exchange, 403, fields, 1, error_body(&body, 403, text));
}

/* BAY_OK, or refused and answered. */
static bool is_known(a2a_face *self, http_exchange *exchange, const a2a_face_agent *agent,
                     bay_str path, const auth_principal **out_principal)
{
    *out_principal = NULL;
    if (self->options.identify == NULL) {
        return true;
    }
    a2a_face_identity who = {NULL, STR("")};
    a2a_fault fault = {A2A_E_UNAUTHENTICATED, ""};
    if (self->options.identify(self->options.user, agent, exchange, &who, &fault) == BAY_OK) {
        *out_principal = who.principal;
        return true;
    }
    a2a_inbound unread = a2a_face_unread(exchange, path);
    a2a_face_reply_fault(self, exchange, &unread, &fault, who.challenge);
    return false;
}

static void serve(a2a_face *self, http_exchange *exchange, const a2a_face_agent *agent,
                  bay_str path)
{
    const auth_principal *principal;
    if (a2a_face_card(exchange, agent, path) ||
        !is_known(self, exchange, agent, path, &principal)) {
        return;
    }
    if (!a2a_face_call(self, exchange, agent, path, principal)) {
        a2a_face_reply_error(exchange, 404, STR(""), "there is nothing at this path");
    }
    principal_unref(principal);
}

/* The agent whose path the request begins with, and what follows that. */
static bool find_agent(a2a_face *self, const http_exchange *exchange, a2a_face_agent *out,
                       bay_str *out_rest)
{
    bay_str path = http_exchange_path(exchange);
    *out = (a2a_face_agent){.service = NULL};
    if (!self->options.agent(self->options.user, path, STR(""), out) ||
        !str_starts(path, out->path)) {
        return false;
    }
    *out_rest = str_from(path, out->path.len);
    return out_rest->len == 0 || out_rest->at[0] == '/';
}

bool a2a_face_take(a2a_face *self, http_exchange *exchange)
{
    if (a2a_grpc_is_request(exchange)) {
        const char *refusal = http_guard_refusal(&self->guard, exchange);
        if (refusal != NULL) {
            refuse(exchange, refusal);
        } else {
            a2a_grpc_request(self->grpc, exchange);
        }
        return true;
    }
    a2a_face_agent agent;
    bay_str rest;
    if (!find_agent(self, exchange, &agent, &rest)) {
        return false;
    }
    const char *refusal = http_guard_refusal(&self->guard, exchange);
    if (refusal != NULL) {
        refuse(exchange, refusal);
    } else if (str_eq(http_exchange_method(exchange), STR("OPTIONS"))) {
        reply_preflight(exchange);
    } else {
        serve(self, exchange, &agent, rest);
    }
    return true;
}

static void on_request(void *user, http_exchange *exchange)
{
    a2a_face *self = user;
    if (a2a_face_take(self, exchange)) {
        return;
    }
    const char *refusal = http_guard_refusal(&self->guard, exchange);
    if (refusal != NULL) {
        refuse(exchange, refusal);
    } else if (self->options.plain == NULL || !self->options.plain(self->options.user, exchange)) {
        a2a_face_reply_error(exchange, 404, STR(""), "there is nothing at this path");
    }
}

const http_handler a2a_face_handler = {
    .request = on_request, .closed = http_owner_closed, .drained = http_owner_drained};

/* ---- life ------------------------------------------------------------------------------------ */

bay_err a2a_face_new(loop *runs_on, const a2a_face_options *options, a2a_face **out)
{
    if (options->agent == NULL) {
        return BAY_INVALID;
    }
    a2a_face *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    self->loop = runs_on;
    self->options = *options;
    list_init(&self->calls);
    list_init(&self->spare);
    buf_init(&self->answer, ANSWER_MAX_BYTES);
    uint32_t alive = options->keep_alive_ms > 0 ? options->keep_alive_ms : KEEP_ALIVE_MS;
    http_replies_init(&self->replies, runs_on, &(http_reply_limits){.keep_alive_ms = alive});
    arena_init(&self->memory, TEXTS_MAX_BYTES);
    http_guard lists = {.hosts = options->hosts,
                        .host_count = options->host_count,
                        .origins = options->origins,
                        .origin_count = options->origin_count,
                        .is_loopback = options->is_loopback,
                        .names = options->names};
    bay_err err = http_guard_copy(&self->guard, &lists, &self->memory);
    if (err == BAY_OK) {
        err = a2a_grpc_new(runs_on, &self->options, &self->grpc);
    }
    if (err != BAY_OK) {
        a2a_face_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void a2a_face_free(a2a_face *self)
{
    if (self == NULL) {
        return;
    }
    http_replies_fini(&self->replies);
    a2a_face_forget_calls(self);
    if (self->grpc != NULL) {
        a2a_grpc_free(self->grpc);
    }
    buf_fini(&self->answer);
    arena_fini(&self->memory);
    mem_free(self);
}

void a2a_face_close_streams(a2a_face *self)
{
    http_replies_close(&self->replies);
    a2a_grpc_close_streams(self->grpc);
}

bool a2a_face_has_grpc(void)
{
    return http_server_speaks_http2();
}
