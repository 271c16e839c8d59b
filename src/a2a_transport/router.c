/* A2A over HTTP: answers that belong to no operation, and the functions for the front. */
#include "a2a_transport/router.h"

#include "a2a_transport/router_internal.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/uri.h"
#include "json/writer.h"

enum { KEEP_ALIVE_MS = 15000, ANSWER_MAX_BYTES = 512 << 20, ERROR_BYTES = 1024 };

/* ---- answers --------------------------------------------------------------------------------- */

void a2a_http_router_reply(http_exchange *exchange, int status, const a2a_head *head, bay_str body)
{
    http_field fields[HTTP_REPLY_FIELDS];
    size_t count = 0;
    if (body.len > 0) {
        fields[count++] = (http_field){STR("Content-Type"), head->media};
    }
    bool has_retry = head->challenge != NULL && head->challenge->retry.len > 0;
    if (head->challenge != NULL) {
        count = front_challenge_put(head->challenge, fields, count);
    }
    if (head->allow.len > 0) {
        fields[count++] = (http_field){STR("Allow"), head->allow};
    }
    if (head->extensions.len > 0) {
        fields[count++] = (http_field){STR("A2A-Extensions"), head->extensions};
    }
    if (status == 503 && !has_retry) {
        fields[count++] = (http_field){STR("Retry-After"), STR("1")};
    }
    if (!str_eq(http_exchange_method(exchange), STR("POST"))) {
        /* RFC 9111 section 3: a cache may store the answer to a GET, and knows no credentials
         * except Authorization; cards name others, and the version selects the form */
        fields[count++] = (http_field){STR("Cache-Control"), STR("no-store")};
    }
    count = http_reply_cors(exchange, fields, count);
    http_exchange_reply(exchange, status, fields, count, body);
}

/* google.rpc.Status, like every error over HTTP; a2a 1.0.1 section 11.6 */
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

void a2a_http_router_reply_error(http_exchange *exchange, int status, bay_str allow,
                                 const char *text)
{
    char bytes[ERROR_BYTES];
    buf body = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    a2a_http_router_reply(exchange, status,
                          &(a2a_head){.media = STR("application/json"), .allow = allow},
                          error_body(&body, status, text));
}

void a2a_http_router_reply_fault(a2a_http_router *self, http_exchange *exchange,
                                 const a2a_inbound *request, const a2a_fault *fault,
                                 const front_challenge *challenge)
{
    int status = 500;
    buf_clear(&self->answer);
    a2a_write_fault(request, fault, &self->answer, &status);
    a2a_head head = {.media = a2a_media_type(request, http_exchange_field(exchange, STR("Accept")),
                                             http_exchange_field(exchange, STR("Content-Type"))),
                     .challenge = challenge};
    a2a_http_router_reply(exchange, status, &head,
                          self->answer.err == BAY_OK ? buf_view(&self->answer) : STR(""));
}

/* ---- from the front -------------------------------------------------------------------------- */

/* Cards may choose any names for fields with credentials, so an allowed origin may send any. */
const http_cors a2a_http_router_cors = {
    .verbs = STR_INIT("GET, HEAD, POST, DELETE, OPTIONS"),
    .fields = STR_INIT("accept, authorization, content-type, a2a-extensions, a2a-version, "
                       "last-event-id, traceparent"),
    .further = STR_INIT(""),
};

static a2a_error error_of(const front_refusal *refusal)
{
    return refusal->status == 401   ? A2A_E_UNAUTHENTICATED
           : refusal->status == 403 ? A2A_E_FORBIDDEN
                                    : A2A_E_BUSY;
}

void a2a_http_router_refuse(a2a_http_router *self, http_exchange *exchange, bay_str path,
                            const front_refusal *refusal)
{
    bool is_grpc = a2a_grpc_is_request(exchange);
    a2a_fault fault;
    (void)a2a_fault_set(&fault, error_of(refusal), "%s", refusal->text);
    if (refusal->cause == FRONT_LOOP) {
        front_refuse(exchange, refusal);
    } else if (is_grpc) {
        a2a_grpc_refuse(exchange, &fault, &refusal->challenge);
    } else if (refusal->cause == FRONT_GUARD) {
        static const http_field fields[] = {
            {STR_INIT("Content-Type"), STR_INIT("application/json")}};
        char bytes[ERROR_BYTES];
        buf body = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
        http_exchange_reply(exchange, refusal->status, fields, ARRAY_LEN(fields),
                            error_body(&body, refusal->status, refusal->text));
    } else {
        a2a_inbound unread = a2a_http_router_unread(exchange, path);
        a2a_http_router_reply_fault(self, exchange, &unread, &fault, &refusal->challenge);
    }
}

front_verdict a2a_http_router_refused(http_exchange *exchange, const a2a_fault *fault,
                                      const front_challenge *challenge, front_refusal *out)
{
    bay_str text;
    bool is_kept = arena_dup(http_exchange_arena(exchange), str_of(fault->text), &text) == BAY_OK;
    out->status = fault->error == A2A_E_UNAUTHENTICATED ? 401
                  : fault->error == A2A_E_FORBIDDEN     ? 403
                                                        : 503;
    out->text = is_kept ? text.at : "";
    out->challenge = *challenge;
    return FRONT_REFUSE;
}

void a2a_http_router_serve_nothing(http_exchange *exchange)
{
    if (a2a_grpc_is_request(exchange)) {
        a2a_grpc_refuse_path(exchange);
        return;
    }
    a2a_http_router_reply_error(exchange, 404, STR(""), "there is nothing at this path");
}

void a2a_http_router_serve(a2a_http_router *self, http_exchange *exchange,
                           const a2a_http_agent *agent, bay_str path,
                           const auth_principal *principal)
{
    if (a2a_grpc_is_request(exchange)) {
        a2a_grpc_request(self->grpc, exchange, principal);
    } else if (!a2a_http_router_call(self, exchange, agent, path, principal)) {
        a2a_http_router_serve_nothing(exchange);
    }
}

bool a2a_http_router_serve_grpc(a2a_http_router *self, http_exchange *exchange,
                                const auth_principal *principal)
{
    if (!a2a_grpc_is_request(exchange)) {
        return false;
    }
    a2a_grpc_request(self->grpc, exchange, principal);
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

bay_err a2a_http_router_new(loop *runs_on, const a2a_http_router_options *options,
                            a2a_http_router **out)
{
    if (options->agent == NULL) {
        return BAY_ERR_INVALID;
    }
    a2a_http_router *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = runs_on;
    self->options = *options;
    list_init(&self->calls);
    list_init(&self->spare);
    buf_init(&self->answer, ANSWER_MAX_BYTES);
    uint32_t alive = options->keep_alive_ms > 0 ? options->keep_alive_ms : KEEP_ALIVE_MS;
    http_replies_init(&self->replies, runs_on, &(http_reply_limits){.keep_alive_ms = alive});
    bay_err err = a2a_grpc_new(runs_on, &self->options, &self->grpc);
    if (err != BAY_OK) {
        a2a_http_router_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void a2a_http_router_free(a2a_http_router *self)
{
    if (self == NULL) {
        return;
    }
    http_replies_fini(&self->replies);
    a2a_http_router_forget_calls(self);
    if (self->grpc != NULL) {
        a2a_grpc_free(self->grpc);
    }
    buf_fini(&self->answer);
    mem_free(self);
}

void a2a_http_router_end_streams(a2a_http_router *self, principal_test is_over, void *user)
{
    http_replies_end(&self->replies, is_over, user);
    a2a_grpc_end_streams(self->grpc, is_over, user);
}

void a2a_http_router_close_streams(a2a_http_router *self)
{
    http_replies_close(&self->replies);
    a2a_grpc_end_streams(self->grpc, NULL, NULL);
}

bool a2a_http_router_has_grpc(void)
{
    return http_server_speaks_http2();
}

void a2a_http_router_write_grpc(bay_str base, buf *out)
{
    uri parts;
    if (!a2a_http_router_has_grpc() || uri_parse(&parts, base) != BAY_OK) {
        return;
    }
    bool is_tls = str_eq_nocase(parts.scheme, STR("https"));
    if (is_tls != (uri_port(&parts) == 443)) {
        buf_str(out, is_tls ? STR("https://") : STR("http://"));
    }
    buf_str(out, parts.is_ip_literal ? STR("[") : STR(""));
    buf_str(out, parts.host);
    buf_str(out, parts.is_ip_literal ? STR("]:") : STR(":"));
    buf_uint(out, uri_port(&parts));
}
