/* What comes in over the clients' listeners: the table of paths, what each needs to know of the
 * caller, and who serves it. Everything else is answered by unknown.c. */
#include "base/err.h"
#include "base/str.h"
#include "gateway/connect.h"
#include "gateway/login.h"
#include "gateway/proxy.h"
#include "gateway/worker.h"
#include "oauth/gate.h"

/* ---- MCP ------------------------------------------------------------------------------------- */

static bool serve_endpoint(void *user, const front_request *request)
{
    worker *self = user;
    mcp_server *engine = worker_engine(self, request->path);
    if (engine != NULL) {
        mcp_http_router_serve(self->mcp_http_router, request->exchange, engine, request->principal);
    }
    return engine != NULL;
}

/* "/sse" belongs to "/mcp", "/mcp/files/sse" to "/mcp/files". Its messages come to one address, behind
 * the file's guard, so what is behind another has no HTTP+SSE. */
static bool serve_sse(void *user, const front_request *request)
{
    worker *self = user;
    static const bay_str last = STR_INIT("/sse");
    bay_str path = str_head(request->path, request->path.len - last.len);
    bool is_apart = self->auth != NULL && worker_auth_is_apart(self->auth, path);
    mcp_server *engine = is_apart ? NULL : worker_engine(self, path.len > 0 ? path : STR("/mcp"));
    if (engine != NULL) {
        mcp_http_router_serve_sse(self->mcp_http_router, request->exchange, engine,
                                  request->principal);
    }
    return engine != NULL;
}

static bool serve_message(void *user, const front_request *request)
{
    worker *self = user;
    mcp_http_router_serve_message(self->mcp_http_router, request->exchange, request->principal);
    return true;
}

/* ---- A2A ------------------------------------------------------------------------------------- */

static bool serve_agent(void *user, const front_request *request)
{
    worker *self = user;
    return agents_serve(self->agents, request->exchange, request->name, request->rest,
                        request->principal);
}

static bool serve_grpc(void *user, const front_request *request)
{
    worker *self = user;
    return agents_serve_grpc(self->agents, request->exchange, request->principal);
}

static bool serve_card(void *user, const front_request *request)
{
    worker *self = user;
    return agents_serve_card(self->agents, request->exchange, request->name, request->rest);
}

static bool serve_webhook(void *user, const front_request *request)
{
    worker *self = user;
    bay_str sealed = str_from(request->rest, STR("/push/").len);
    return agents_serve_webhook(self->agents, request->exchange, request->name, sealed);
}

static bool serve_index(void *user, const front_request *request)
{
    worker *self = user;
    return agents_serve_index(self->agents, request->exchange, request->principal);
}

static bool serve_keys(void *user, const front_request *request)
{
    worker *self = user;
    return agents_serve_keys(self->agents, request->exchange);
}

static void refuse_agent(void *user, const front_request *request, const front_refusal *refusal)
{
    worker *self = user;
    agents_refuse(self->agents, request->exchange, request->rest, refusal);
}

/* ---- the gateway's own ----------------------------------------------------------------------- */

static bool serve_health(void *user, const front_request *request)
{
    (void)user;
    health_serve(request->exchange);
    return true;
}

static bool serve_ready(void *user, const front_request *request)
{
    health_serve_ready(user, request->exchange);
    return true;
}

/* For a person who opened the address of the gateway to see what it is. */
static bool serve_greeting(void *user, const front_request *request)
{
    (void)user;
    health_greet(request->exchange);
    return true;
}

static bool serve_metadata(void *user, const front_request *request)
{
    const worker *self = user;
    return self->auth != NULL && worker_auth_serve_metadata(self->auth, request);
}

/* The first that matches counts; what is asked for most comes first. */
static const front_row rows[] = {
    {STR_INIT("/mcp"), false, FRONT_CALLER, &mcp_http_router_cors, serve_endpoint, NULL},
    {STR_INIT("/mcp/*"), false, FRONT_CALLER, &mcp_http_router_cors, serve_endpoint, NULL},
    {STR_INIT("/a2a/keys.json"), false, FRONT_PUBLIC, NULL, serve_keys, refuse_agent},
    {STR_INIT("/a2a/*"), false, FRONT_CALLER, &a2a_http_router_cors, serve_agent, refuse_agent},
    {STR_INIT("/lf.a2a.v1.**"), false, FRONT_CALLER, NULL, serve_grpc, refuse_agent},
    {STR_INIT("/a2a.v1.**"), false, FRONT_CALLER, NULL, serve_grpc, refuse_agent},
    {STR_INIT("/a2a/*/.well-known/agent-card.json"), false, FRONT_PUBLIC, &a2a_http_router_cors,
     serve_card, refuse_agent},
    {STR_INIT("/a2a/*/.well-known/agent.json"), false, FRONT_PUBLIC, &a2a_http_router_cors,
     serve_card, refuse_agent},
    {STR_INIT("/a2a/*/push/*"), false, FRONT_PROVEN, NULL, serve_webhook, refuse_agent},
    {STR_INIT("/a2a/*/**"), false, FRONT_CALLER, &a2a_http_router_cors, serve_agent, refuse_agent},
    {STR_INIT("/a2a"), false, FRONT_CALLER, NULL, serve_index, refuse_agent},
    {STR_INIT("/a2a/"), false, FRONT_CALLER, NULL, serve_index, refuse_agent},
    {STR_INIT("/sse"), false, FRONT_CALLER, &mcp_http_router_sse_cors, serve_sse, NULL},
    {STR_INIT("/mcp/*/sse"), false, FRONT_CALLER, &mcp_http_router_sse_cors, serve_sse, NULL},
    {STR_INIT(WORKER_MESSAGES), false, FRONT_CALLER, &mcp_http_router_message_cors, serve_message,
     NULL},
    {STR_INIT(OAUTH_METADATA_PATH), false, FRONT_SHARED, &oauth_metadata_cors, serve_metadata,
     NULL},
    {STR_INIT(OAUTH_METADATA_PATH "/**"), false, FRONT_SHARED, &oauth_metadata_cors, serve_metadata,
     NULL},
    {STR_INIT(PROXY_METADATA_PATH), false, FRONT_SHARED, &worker_proxy_cors, worker_proxy_metadata,
     NULL},
    {STR_INIT(PROXY_METADATA_PATH "/**"), false, FRONT_SHARED, &worker_proxy_cors,
     worker_proxy_metadata, NULL},
    /* programs in pages of any origin may be clients: they bring what they need, and no cookie counts */
    {STR_INIT("/oauth/register"), false, FRONT_SHARED, &worker_proxy_cors, worker_proxy_register,
     NULL},
    {STR_INIT("/oauth/token"), false, FRONT_SHARED, &worker_proxy_cors, worker_proxy_token, NULL},
    {STR_INIT("/oauth/revoke"), false, FRONT_SHARED, &worker_proxy_cors, worker_proxy_revoke, NULL},
    {STR_INIT("/oauth/authorize"), false, FRONT_PUBLIC, NULL, worker_proxy_authorize, NULL},
    {STR_INIT(CONNECT_DOCUMENT_PATH), false, FRONT_SHARED, &worker_proxy_cors,
     worker_connect_document, NULL},
    {STR_INIT("/connect"), false, FRONT_PUBLIC, NULL, worker_connect_serve, NULL},
    {STR_INIT("/connect/*"), false, FRONT_PUBLIC, NULL, worker_connect_serve, NULL},
    {STR_INIT("/login"), false, FRONT_PUBLIC, NULL, worker_login_serve, NULL},
    {STR_INIT("/login/callback"), false, FRONT_PUBLIC, NULL, worker_login_serve, NULL},
    {STR_INIT("/logout"), false, FRONT_PUBLIC, NULL, worker_login_serve, NULL},
    {STR_INIT("/"), false, FRONT_PUBLIC, NULL, serve_greeting, NULL},
    {STR_INIT("/healthz"), false, FRONT_PUBLIC, NULL, serve_health, NULL},
    {STR_INIT("/readyz"), false, FRONT_PUBLIC, NULL, serve_ready, NULL},
};

/* False: too many requests came from there. */
static bool admits_address(worker *self, const front_request *request, front_refusal *out)
{
    net_address address;
    policy_excess excess;
    char seconds[16];
    arena *memory = http_exchange_arena(request->exchange);
    bay_str text = {"", 0};
    if (self->door.limits == NULL || address_parse(request->from.address, &address) != BAY_OK ||
        policy_limits_admits(self->door.limits, &address, loop_now_ms(self->loop), &excess)) {
        return true;
    }
    (void)snprintf(seconds, sizeof(seconds), "%u", (excess.retry_after_ms + 999) / 1000);
    err_ignore(arena_dup(memory, str_of(seconds), &out->challenge.retry));
    err_ignore(arena_dup(memory, (bay_str){excess.text, strlen(excess.text) + 1}, &text));
    out->status = 429;
    out->text = text.len > 0 ? text.at : "too many requests";
    return false;
}

static front_verdict identify_caller(void *user, const front_request *request,
                                     const auth_principal **out_principal, front_refusal *out)
{
    worker *self = user;
    const gateway_options *options = &self->gateway->options;
    if (!admits_address(self, request, out)) {
        return FRONT_REFUSE;
    }
    if (options->identify != NULL) {
        return options->identify(options->user, request, out_principal, out);
    }
    if (self->auth == NULL) { /* a reload could not set it up */
        out->status = 503;
        out->text = "who calls cannot be checked now; the gateway's log says why";
        return FRONT_REFUSE;
    }
    return worker_auth_identify(self->auth, request, out_principal, out);
}

bay_err worker_front_open(worker *self)
{
    const config *settings = self->config;
    config_list proxies = settings->trusted_proxies;
    bay_err err = forwarded_proxies_set(&self->proxies, proxies.at, proxies.count);
    if (err != BAY_OK) {
        return err;
    }
    front_options options = {
        .rows = rows,
        .row_count = ARRAY_LEN(rows),
        .hosts = settings->allowed_hosts.at,
        .host_count = settings->allowed_hosts.count,
        .origins = settings->allowed_origins.at,
        .origin_count = settings->allowed_origins.count,
        .is_loopback = self->gateway->is_local,
        .names = &self->gateway->names,
        .proxies = &self->proxies,
        .via = str_of(self->gateway->via),
        .identify = identify_caller,
        .unknown = worker_unknown_path,
        .user = self,
    };
    return front_new(&options, &self->front);
}
