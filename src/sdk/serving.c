/* A server's engine and what carries it: Streamable HTTP, the deprecated pair of addresses, and
 * lines on descriptors. Listening, pipes and their end are the host's. */
#include "sdk/serving.h"

#include "base/err.h"
#include "base/str.h"
#include "mcp_transport/http_router.h"
#include "mcp_transport/stdio.h"
#include "sdk/guard.h"
#include "sdk/server_parts.h"

enum { LINGER_MS = 60000, TICK_MS = 1000 };

/* ---- the engine ------------------------------------------------------------------------------ */

static void tick(void *argument)
{
    bay_server *self = argument;
    uint64_t now = loop_now_ms(self->loop);
    uint64_t due = mcp_server_tick(self->engine, now);
    uint64_t after = due > now && due - now < TICK_MS ? due - now : due <= now ? 1 : TICK_MS;
    err_ignore(loop_timer_start(self->loop, &self->tick, after)); /* it has room: it was armed */
}

static bay_err open_engine(bay_server *server)
{
    uint64_t body = sdk_server_setting(server, BAY_SERVER_SETTING_MAX_BODY_BYTES);
    server->host.door.timeout_ms =
        (uint32_t)sdk_server_setting(server, BAY_SERVER_SETTING_CALL_TIMEOUT_MS);
    mcp_server_options options = {
        .name = str_of(server->name),
        .title = str_of(server->title),
        .version = str_of(server->version),
        .instructions = str_of(server->instructions),
        .website = str_of(server->website),
        .icons = server->icons,
        .oldest = server->oldest,
        .newest = server->newest,
        .max_sessions = (uint32_t)sdk_server_setting(server, BAY_SERVER_SETTING_MAX_SESSIONS),
        .session_idle_ms = (uint32_t)sdk_server_setting(server, BAY_SERVER_SETTING_SESSION_IDLE_MS),
        .max_requests = (uint32_t)sdk_server_setting(server, BAY_SERVER_SETTING_MAX_REQUESTS),
        .ask_timeout_ms =
            (uint32_t)sdk_server_setting(server, BAY_SERVER_SETTING_QUESTION_TIMEOUT_MS),
        .door = &server->host.door,
        .json = {body > 64 << 20 ? body : 64 << 20, 64, 1 << 20},
    };
    return mcp_server_new(&options, &sdk_server_service, server, &server->engine);
}

static bay_err server_open(void *object, loop *on, bay_diag *diag)
{
    bay_server *self = object;
    self->loop = on;
    loop_timer_init(&self->tick, tick, self);
    bay_err err = sdk_server_render(self);
    if (err == BAY_OK) {
        err = open_engine(self);
    }
    if (err == BAY_OK) {
        err = loop_timer_start(on, &self->tick, TICK_MS);
    }
    if (err == BAY_OK) {
        err = sdk_tasks_open(self, diag);
    }
    if (err == BAY_OK && self->guard != NULL) {
        err = sdk_gate_open(self->guard, &self->host, on, NULL, &self->gate, diag);
    }
    if (err == BAY_OK) {
        sdk_announcements_open(self, on);
    }
    return err;
}

static void server_close(void *object)
{
    bay_server *self = object;
    sdk_gate_close(self->gate);
    self->gate = NULL;
    sdk_tasks_free(self);
    sdk_announcements_close(self);
    loop_timer_stop(self->loop, &self->tick);
    mcp_server_free(self->engine);
    self->engine = NULL;
}

static void server_release(void *object)
{
    bay_server *self = object;
    self->loop = NULL;
}

static void server_end(void *object)
{
    sdk_tasks_stop(object);
}

/* Who asks its client asks no more. */
static void server_cut(void *object)
{
    bay_server *self = object;
    if (self->engine != NULL) {
        mcp_server_end_http_sessions(self->engine);
    }
}

static bool server_is_busy(const void *object)
{
    const bay_server *self = object;
    return self->calls_under_way > 0;
}

static bay_err server_check(void *object, bay_diag *diag)
{
    return bay_server_check(object, diag);
}

static listen_policy server_policy(const void *object)
{
    return sdk_server_policy(object);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static void server_limits(const void *object, http_server_limits *out)
{
    const bay_server *self = object;
    out->body_bytes = sdk_server_setting(self, BAY_SERVER_SETTING_MAX_BODY_BYTES);
    out->connections = (uint32_t)sdk_server_setting(self, BAY_SERVER_SETTING_MAX_CONNECTIONS);
    out->reply_bytes = sdk_server_setting(self, BAY_SERVER_SETTING_MAX_REPLY_BYTES);
}

/* Also for a program that sets or removes bay_server_identify while it serves. */
static front_verdict endpoint_identify(void *user, const front_request *request,
                                       const auth_principal **out_principal, front_refusal *out)
{
    const host_listener *self = user;
    const bay_server *server = self->of->owner.object;
    if (server->gate != NULL) {
        return sdk_gate_identify(server->gate, request, out_principal, out);
    }
    if (server->identify != NULL) {
        return sdk_peer_identify(server, request->exchange, out_principal, out);
    }
    return server->host.is_open || self->is_loopback ? FRONT_GO : FRONT_REFUSE;
}

/* Of exchanges that wait or come from another loop: there is one engine, whatever the path. */
static mcp_server *endpoint_engine(void *user, bay_str path)
{
    const host_listener *self = user;
    (void)path;
    return ((const bay_server *)self->of->owner.object)->engine;
}

static bool serve_endpoint(void *user, const front_request *request)
{
    host_listener *self = user;
    mcp_http_router_serve(self->endpoint, request->exchange, endpoint_engine(self, request->path),
                          request->principal);
    return true;
}

static bool serve_sse(void *user, const front_request *request)
{
    host_listener *self = user;
    mcp_http_router_serve_sse(self->endpoint, request->exchange,
                              endpoint_engine(self, request->path), request->principal);
    return true;
}

static bool serve_message(void *user, const front_request *request)
{
    host_listener *self = user;
    mcp_http_router_serve_message(self->endpoint, request->exchange, request->principal);
    return true;
}

static bool serve_metadata(void *user, const front_request *request)
{
    const host_listener *self = user;
    const bay_server *server = self->of->owner.object;
    return server->gate != NULL && sdk_gate_serve_metadata(server->gate, request);
}

static void challenge(void *user, http_exchange *exchange, bay_str scopes, front_challenge *out)
{
    const host_listener *self = user;
    const bay_server *server = self->of->owner.object;
    if (server->gate != NULL) {
        sdk_gate_challenge(server->gate, exchange, scopes, out);
    }
}

#define MESSAGES "/messages"

static const front_row rows[] = {
    {STR_INIT("/mcp"), false, FRONT_CALLER, &mcp_http_router_cors, serve_endpoint, NULL},
    {STR_INIT("/"), false, FRONT_CALLER, &mcp_http_router_cors, serve_endpoint, NULL},
    {STR_INIT("/sse"), false, FRONT_CALLER, &mcp_http_router_sse_cors, serve_sse, NULL},
    {STR_INIT("/mcp/sse"), false, FRONT_CALLER, &mcp_http_router_sse_cors, serve_sse, NULL},
    {STR_INIT(MESSAGES), false, FRONT_CALLER, &mcp_http_router_message_cors, serve_message, NULL},
    {STR_INIT(OAUTH_METADATA_PATH), false, FRONT_SHARED, &oauth_metadata_cors, serve_metadata,
     NULL},
    {STR_INIT(OAUTH_METADATA_PATH "/**"), false, FRONT_SHARED, &oauth_metadata_cors, serve_metadata,
     NULL},
};

static bay_err endpoint_new(void *object, host_listener *at, loop *on, void **out)
{
    mcp_http_router *router = NULL;
    mcp_http_router_options options = {
        .engine = endpoint_engine, .challenge = challenge, .user = at, .messages_path = MESSAGES};
    (void)object;
    bay_err err = mcp_http_router_new(on, &options, &router);
    *out = router;
    return err;
}

static void endpoint_free(void *endpoint)
{
    mcp_http_router_free(endpoint);
}

static void endpoint_close_streams(void *endpoint)
{
    mcp_http_router_close_streams(endpoint);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bay_err pipe_new(void *object, int in, int out, void (*done)(void *user), void *user,
                        void **out_pipe)
{
    const bay_server *self = object;
    mcp_stdio *lines = NULL;
    bay_err err = mcp_stdio_new(self->loop, self->engine, in, out, LINGER_MS, done, user, &lines);
    *out_pipe = lines;
    return err;
}

static void pipe_end(void *pipe, uint32_t grace_ms)
{
    mcp_stdio_end(pipe, grace_ms);
}

static void pipe_free(void *pipe)
{
    mcp_stdio_free(pipe);
}

const host_kind sdk_server_kind = {
    .noun = "server",
    .prefix = "bay_server",
    .check = server_check,
    .policy = server_policy,
    .limits = server_limits,
    .open = server_open,
    .close = server_close,
    .release = server_release,
    .endpoint_new = endpoint_new,
    .endpoint_free = endpoint_free,
    .endpoint_close_streams = endpoint_close_streams,
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .identify = endpoint_identify,
    .drain = server_end,
    .end = server_end,
    .cut = server_cut,
    .is_busy = server_is_busy,
    .pipe_new = pipe_new,
    .pipe_end = pipe_end,
    .pipe_free = pipe_free,
};

/* ---- for clients in process ------------------------------------------------------------------ */

bay_err sdk_serving_open(bay_server *server, bay_diag *diag)
{
    return host_open(&server->host, diag);
}

void sdk_serving_close(bay_server *server)
{
    host_close(&server->host);
}

loop *sdk_serving_loop(bay_server *server)
{
    return server->loop;
}

mcp_server *sdk_serving_engine(bay_server *server)
{
    return server->engine;
}

/* ---- the public functions -------------------------------------------------------------------- */

static sdk_host *host_of(bay_server *server)
{
    return server != NULL ? &server->host : NULL;
}

static const sdk_host *const_host_of(const bay_server *server)
{
    return server != NULL ? &server->host : NULL;
}

void bay_server_tls(bay_server *server, const char *certificate_file, const char *key_file,
                    const char *ca_file)
{
    if (server != NULL) {
        host_tls(&server->host, certificate_file, key_file, ca_file);
    }
}

void bay_server_allow_host(bay_server *server, const char *name)
{
    if (server != NULL) {
        host_allow_host(&server->host, name);
    }
}

void bay_server_allow_origin(bay_server *server, const char *origin)
{
    if (server != NULL) {
        host_allow_origin(&server->host, origin);
    }
}

void bay_server_open_on_purpose(bay_server *server)
{
    if (server != NULL) {
        server->host.is_open = true;
    }
}

bay_err bay_server_listen(bay_server *server, const char *address, bay_diag *diag)
{
    return host_listen(host_of(server), address, diag);
}

bay_err bay_server_pipe(bay_server *server, int in, int out, bay_diag *diag)
{
    return host_pipe(host_of(server), in, out, diag);
}

uint16_t bay_server_port(const bay_server *server)
{
    return host_port(const_host_of(server));
}

bay_err bay_server_run(bay_server *server, bay_diag *diag)
{
    return host_run(host_of(server), diag);
}

void bay_server_stop(bay_server *server)
{
    host_stop(host_of(server));
}

int bay_server_fd(const bay_server *server)
{
    return host_fd(const_host_of(server));
}

int bay_server_wait_ms(const bay_server *server)
{
    return host_wait_ms(const_host_of(server));
}

bay_err bay_server_dispatch(bay_server *server)
{
    return host_dispatch(host_of(server));
}
