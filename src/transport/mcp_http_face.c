/* MCP over HTTP: whose loop an exchange belongs to, and its way to the engine there. */
#include "transport/mcp_http_face.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "transport/mcp_sse_2024.h"
#include "transport/relay.h"

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
    if (self->peer_count < 2) {
        return NULL;
    }
    if (session_id.len > 0) {
        is_known = mcp_session_worker(session_id, &worker);
        /* it may be from a time when there were more of us */
        worker = is_known ? worker % (uint32_t)self->peer_count : 0;
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

/* ---- from the front -------------------------------------------------------------------------- */

#define CORS_FIELDS                                                                                \
    STR_INIT("accept, authorization, content-type, last-event-id, mcp-method, mcp-name, "          \
             "mcp-protocol-version, mcp-session-id")
#define CORS_FURTHER STR_INIT("mcp-param-") /* fields named after tool parameters */

const http_cors http_face_cors = {STR_INIT("GET, HEAD, POST, DELETE, OPTIONS"), CORS_FIELDS,
                                  CORS_FURTHER};
const http_cors http_face_sse_cors = {STR_INIT("GET, HEAD, OPTIONS"), CORS_FIELDS, CORS_FURTHER};
const http_cors http_face_message_cors = {STR_INIT("POST, OPTIONS"), CORS_FIELDS, CORS_FURTHER};

void http_face_serve(http_face *self, http_exchange *exchange, mcp_server *engine,
                     const auth_principal *principal)
{
    serve(self, exchange, engine, http_exchange_field(exchange, STR("Mcp-Session-Id")), principal);
}

void http_face_serve_message(http_face *self, http_exchange *exchange,
                             const auth_principal *principal)
{
    serve(self, exchange, NULL, sse_2024_session_id(http_exchange_query(exchange)), principal);
}

void http_face_serve_sse(http_face *self, http_exchange *exchange, mcp_server *engine,
                         const auth_principal *principal)
{
    if (str_eq(http_exchange_method(exchange), STR("GET"))) {
        sse_2024_open(self, engine, exchange, principal);
    } else if (str_eq(http_exchange_method(exchange), STR("HEAD"))) {
        http_reply_show_stream(exchange); /* and no connection behind it */
    } else {
        /* A client that speaks both tries Streamable HTTP first and reads this as "no". */
        http_field fields[HTTP_REPLY_FIELDS] = {{STR("Allow"), STR("GET, HEAD")}};
        size_t count = http_reply_cors(exchange, fields, 1);
        http_exchange_reply(exchange, 405, fields, count, STR(""));
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

bay_err http_face_new(loop *runs_on, const http_face_options *options, http_face **out)
{
    if (options->engine == NULL) {
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
    self->messages_path = str_of(options->messages_path);
    bay_err err = relay_port_new(runs_on, self, &self->port);
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
