/* The HTTP face: who may come in, which path is whose, and whose loop an exchange belongs to. */
#include "transport/mcp_http_face.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "transport/mcp_sse_2024.h"
#include "transport/relay.h"
#include "json/writer.h"

enum { KEEP_ALIVE_MS = 15000 };

/* ---- one call at an endpoint ----------------------------------------------------------------- */

static bool is_messages(const http_face *self, bay_str path)
{
    return self->messages_path.len > 0 && str_eq(path, self->messages_path);
}

static mcp_server *engine_of(http_face *self, const face_call *call)
{
    return call->engine != NULL ? call->engine
                                : self->options.engine(self->options.user, call->path);
}

void face_serve_now(http_face *self, const face_call *call, face_back *back)
{
    mcp_server *engine = engine_of(self, call);
    if (engine == NULL) {
        back->carrier.ops->answer(&back->carrier, 404, STR(""), STR(""), STR(""));
        return;
    }
    back->engine = engine;
    mcp_server_http(engine, &call->http, &back->carrier, loop_now_ms(self->loop));
}

void face_serve(http_face *self, const face_call *call, face_back *back)
{
    if (is_messages(self, call->path)) {
        sse_2024_receive(self, call, &back->carrier);
        return;
    }
    mcp_server *engine = engine_of(self, call);
    if (engine == NULL || !face_wait_begin(self, call, engine, back)) {
        face_serve_now(self, call, back);
    }
}

static bay_str field_of(void *context, bay_str name)
{
    return http_exchange_field(context, name);
}

static size_t count_of(void *context, bay_str name)
{
    return http_exchange_field_count(context, name);
}

static bool field_at(void *context, size_t index, bay_str *out_name, bay_str *out_value)
{
    size_t count;
    const http_field *fields = http_exchange_fields(context, &count);
    if (index >= count) {
        return false;
    }
    *out_name = fields[index].name;
    *out_value = fields[index].value;
    return true;
}

/* The port of the loop that owns the session the exchange names, or that what it brings back came
 * from; NULL: ours, or nobody's. */
static relay_port *owner_of(const http_face *self, const http_exchange *exchange,
                            bay_str session_id)
{
    uint32_t worker = 0;
    bool is_known = false;
    if (session_id.len > 0) {
        is_known = mcp_session_worker(session_id, &worker);
        /* it may be from a time when there were more of us */
        worker = is_known && self->peer_count > 0 ? worker % (uint32_t)self->peer_count : 0;
    } else if (self->options.home != NULL && str_eq(http_exchange_method(exchange), STR("POST"))) {
        is_known = self->options.home(self->options.user, http_exchange_body(exchange), &worker);
    }
    if (!is_known || worker == self->options.worker || worker >= self->peer_count) {
        return NULL;
    }
    return self->peers[worker];
}

static void serve(http_face *self, http_exchange *exchange, mcp_server *engine, bay_str session_id,
                  const auth_principal *principal)
{
    relay_port *owner = owner_of(self, exchange, session_id);
    if (owner != NULL) {
        relay_exchange(self, exchange, owner, principal);
        return;
    }
    http_carrier *carrier = http_carrier_new(&self->carriers, exchange);
    if (carrier == NULL) {
        http_exchange_reply(exchange, 503, NULL, 0, STR(""));
        return;
    }
    face_call call = {.path = http_exchange_path(exchange),
                      .query = http_exchange_query(exchange),
                      .engine = engine,
                      .http = {.verb = http_exchange_method(exchange),
                               .body = http_exchange_body(exchange),
                               .field = field_of,
                               .field_count = count_of,
                               .field_at = field_at,
                               .context = exchange,
                               .memory = http_exchange_arena(exchange),
                               .principal = principal}};
    face_serve(self, &call, &carrier->back);
}

/* ---- routing --------------------------------------------------------------------------------- */

mcp_server *face_sse_engine(http_face *self, bay_str path)
{
    if (self->sse_path.len == 0 || !str_ends(path, self->sse_path)) {
        return NULL;
    }
    /* "/sse" belongs to "/mcp", "/mcp/files/sse" to "/mcp/files". */
    bay_str endpoint = str_head(path, path.len - self->sse_path.len);
    return self->options.engine(self->options.user, endpoint.len > 0 ? endpoint : STR("/mcp"));
}

void http_face_reply_error(http_exchange *exchange, int status, int code, const char *text)
{
    char json[1024];
    buf body = {.at = json, .cap = sizeof(json), .max = sizeof(json)};
    http_field fields[HTTP_REPLY_FIELDS] = {{STR("Content-Type"), STR("application/json")}};
    size_t count = http_reply_cors(exchange, fields, 1);
    buf_printf(&body, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":%d,\"message\":", code);
    json_quote(&body, str_of(text));
    buf_lit(&body, "}}");
    http_exchange_reply(exchange, status, fields, count,
                        body.err == BAY_OK ? buf_view(&body) : STR(""));
}

/* mcp 2026-07-28 basic/transports/streamable-http, Security Warning: 403, and the body may be an
 * error response that has no id. */
static void refuse(http_exchange *exchange, const char *text)
{
    static const http_field fields[] = {{STR_INIT("Content-Type"), STR_INIT("application/json")}};
    char json[256];
    buf body = {.at = json, .cap = sizeof(json), .max = sizeof(json)};
    buf_printf(&body, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":%d,\"message\":\"%s\"}}",
               RPC_INVALID_REQUEST, text);
    http_exchange_reply(exchange, 403, fields, 1, body.err == BAY_OK ? buf_view(&body) : STR(""));
}

static void reply_empty(http_exchange *exchange, int status, bay_str allow)
{
    http_field fields[HTTP_REPLY_FIELDS] = {{STR("Allow"), allow}};
    size_t count = http_reply_cors(exchange, fields, allow.len > 0 ? 1 : 0);
    http_exchange_reply(exchange, status, fields, count, STR(""));
}

static void reply_unknown(http_exchange *exchange, bay_str challenge)
{
    http_field fields[HTTP_REPLY_FIELDS] = {{STR("WWW-Authenticate"), challenge}};
    size_t count = http_reply_cors(exchange, fields, challenge.len > 0 ? 1 : 0);
    http_exchange_reply(exchange, 401, fields, count, STR(""));
}

static void open_sse(http_face *self, mcp_server *engine, http_exchange *exchange,
                     const auth_principal *principal)
{
    if (str_eq(http_exchange_method(exchange), STR("GET"))) {
        sse_2024_open(self, engine, exchange, principal);
    } else if (str_eq(http_exchange_method(exchange), STR("HEAD"))) {
        http_reply_show_stream(exchange); /* and no connection behind it */
    } else {
        /* A client that speaks both tries Streamable HTTP first and reads this as "no". */
        reply_empty(exchange, 405, STR("GET, HEAD"));
    }
}

/* Whose path it is, once Host, Origin and Via are in order and the caller is known. */
static void route(http_face *self, http_exchange *exchange, const auth_principal *principal)
{
    bay_str path = http_exchange_path(exchange);
    bool is_preflight = str_eq(http_exchange_method(exchange), STR("OPTIONS"));
    bool has_messages = is_messages(self, path);
    mcp_server *engine = has_messages ? NULL : self->options.engine(self->options.user, path);
    if (has_messages || engine != NULL) {
        if (is_preflight) {
            http_guard_preflight(exchange, has_messages ? STR("POST, OPTIONS")
                                                        : STR("GET, HEAD, POST, DELETE, OPTIONS"));
            return;
        }
        serve(self, exchange, engine,
              has_messages ? sse_2024_session_id(http_exchange_query(exchange))
                           : http_exchange_field(exchange, STR("Mcp-Session-Id")),
              principal);
        return;
    }
    mcp_server *sse = face_sse_engine(self, path);
    if (sse != NULL && is_preflight) {
        http_guard_preflight(exchange, STR("GET, HEAD, OPTIONS"));
    } else if (sse != NULL) {
        open_sse(self, sse, exchange, principal);
    } else if (self->options.plain == NULL || !self->options.plain(self->options.user, exchange)) {
        reply_empty(exchange, 404, STR(""));
    }
}

static void on_request(void *user, http_exchange *exchange)
{
    http_face *self = user;
    bool is_preflight = str_eq(http_exchange_method(exchange), STR("OPTIONS"));
    const char *refusal = http_guard_refusal(&self->guard, exchange);
    if (refusal != NULL) {
        refuse(exchange, refusal);
        return;
    }
    if (face_via_refuses(self, exchange)) {
        return;
    }
    http_identity who = {NULL, STR("")};
    if (!is_preflight && self->options.identify != NULL &&
        !self->options.identify(self->options.user, exchange, &who)) {
        reply_unknown(exchange, who.challenge);
    } else {
        route(self, exchange, who.principal);
    }
    principal_unref(who.principal);
}

const http_handler http_face_handler = {
    .request = on_request, .closed = http_owner_closed, .drained = http_owner_drained};

/* ---- life ------------------------------------------------------------------------------------ */

/* The guard's lists and the paths. */
static bay_err keep_texts(http_face *self, const http_face_options *options)
{
    http_guard lists = {.hosts = options->hosts,
                        .host_count = options->host_count,
                        .origins = options->origins,
                        .origin_count = options->origin_count,
                        .is_loopback = options->is_loopback,
                        .names = options->names};
    arena_init(&self->memory, TEXTS_MAX_BYTES);
    bay_err err = http_guard_copy(&self->guard, &lists, &self->memory);
    if (err == BAY_OK) {
        err = arena_dup(&self->memory, options->via, &self->via);
    }
    if (err == BAY_OK && options->sse_path != NULL) {
        err = arena_dup(&self->memory, str_of(options->sse_path), &self->sse_path);
        if (err == BAY_OK) {
            err = arena_dup(&self->memory, str_of(options->messages_path), &self->messages_path);
        }
    }
    return err;
}

bay_err http_face_new(loop *runs_on, const http_face_options *options, http_face **out)
{
    if (options->engine == NULL || (options->sse_path != NULL && options->messages_path == NULL)) {
        return BAY_INVALID;
    }
    http_face *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    self->loop = runs_on;
    self->options = *options;
    list_init(&self->relayed);
    list_init(&self->waits);
    http_reply_limits limits = {
        .keep_alive_ms = options->keep_alive_ms > 0 ? options->keep_alive_ms : KEEP_ALIVE_MS,
        .stream_idle_ms = options->stream_idle_ms,
        .stream_total_ms = options->stream_total_ms,
    };
    limits.keep_alive_ms = limits.keep_alive_ms == UINT32_MAX ? 0 : limits.keep_alive_ms;
    http_replies_init(&self->replies, runs_on, &limits);
    http_carriers_init(&self->carriers, &self->replies);
    sse_2024_init(self);
    bay_err err = keep_texts(self, options);
    if (err == BAY_OK) {
        err = relay_port_new(runs_on, self, &self->port);
    }
    if (err != BAY_OK) {
        http_face_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

static void forget_peers(http_face *self)
{
    for (size_t i = 0; i < self->peer_count; i++) {
        relay_port_unref(self->peers[i]);
    }
    mem_free(self->peers);
    self->peers = NULL;
    self->peer_count = 0;
}

void http_face_free(http_face *self)
{
    if (self == NULL) {
        return;
    }
    relays_end(self);
    http_replies_fini(&self->replies);
    face_waits_end(self);
    if (self->port != NULL) {
        relay_port_close(self->port);
        relay_port_unref(self->port);
    }
    forget_peers(self);
    sse_2024_fini(self);
    http_carriers_fini(&self->carriers);
    arena_fini(&self->memory);
    mem_free(self);
}

void http_face_set_peers(http_face *self, http_face *const *faces, size_t count)
{
    forget_peers(self);
    self->peers = mem_array(count, sizeof(*self->peers));
    if (self->peers == NULL) {
        return; /* sessions of other loops are then unknown here */
    }
    for (size_t i = 0; i < count; i++) {
        self->peers[i] = relay_port_ref(faces[i]->port);
    }
    self->peer_count = count;
}

void http_face_close_streams(http_face *self)
{
    self->carriers.closed_last = NULL;
    http_replies_close(&self->replies);
    self->carriers.closed_last = NULL;
    relays_close_streams(self);
}
