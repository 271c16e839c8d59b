/* MCP over HTTP: finds the loop that owns an exchange, and passes the exchange to the engine there.
 */
#include "mcp_transport/http_router.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "mcp_transport/session_forward.h"
#include "mcp_transport/sse_2024.h"

enum { KEEP_ALIVE_MS = 15000 };

/* ---- one call at an endpoint ----------------------------------------------------------------- */

static bool is_messages(const mcp_http_router *self, bay_str path)
{
    return self->messages_path.len > 0 && str_eq(path, self->messages_path);
}

static mcp_server *engine_of(mcp_http_router *self, const router_call *call)
{
    return call->engine != NULL ? call->engine
                                : self->options.engine(self->options.user, call->path);
}

void router_serve_now(mcp_http_router *self, const router_call *call, mcp_http_exchange *back)
{
    mcp_server *engine = engine_of(self, call);
    if (engine == NULL) {
        back->carrier.ops->answer(&back->carrier, 404, STR(""), STR(""), STR(""));
        return;
    }
    back->engine = engine;
    mcp_server_http(engine, &call->http, &back->carrier, loop_now_ms(self->loop));
}

void router_serve(mcp_http_router *self, const router_call *call, mcp_http_exchange *back)
{
    if (is_messages(self, call->path)) {
        sse_2024_receive(self, call, &back->carrier);
        return;
    }
    mcp_server *engine = engine_of(self, call);
    if (engine == NULL || !mcp_session_wait_begin(self, call, engine, back)) {
        router_serve_now(self, call, back);
    }
}

/* NULL: this loop, or none. */
static loop_mailbox *peer_at(const mcp_http_router *self, uint32_t worker)
{
    return worker != self->options.worker && worker < self->peer_count ? self->peers[worker] : NULL;
}

/* The mailbox of the loop that owns the session. */
static loop_mailbox *owner_of(const mcp_http_router *self, bay_str session_id)
{
    uint32_t worker = 0;
    if (self->peer_count < 2 || session_id.len == 0 || !mcp_session_worker(session_id, &worker)) {
        return NULL;
    }
    /* the id may be from a time with more loops */
    return peer_at(self, worker % (uint32_t)self->peer_count);
}

/* The mailbox of the loop that issued the requestState or task id in the message. */
static loop_mailbox *giver_of(const mcp_http_router *self, json_val params, arena *memory)
{
    static const bay_str names[] = {STR_INIT("requestState"), STR_INIT("taskId")};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        bay_str token;
        uint32_t worker = 0;
        if (json_str(json_get(params, names[i]), memory, &token) == BAY_OK &&
            self->options.home(self->options.user, token, &worker)) {
            return peer_at(self, worker);
        }
    }
    return NULL;
}

static bool forward(const mcp_http_request *http, mcp_carrier *carrier, json_val params)
{
    mcp_http_router *self = CONTAINER_OF(http_carrier_home(carrier), mcp_http_router, carriers);
    loop_mailbox *giver = giver_of(self, params, http->memory);
    if (giver == NULL) {
        return false;
    }
    session_forward_exchange(self, http_carrier_take(carrier), giver, http->principal);
    return true;
}

void router_read_address(const mcp_http_router *self, const http_exchange *exchange,
                         mcp_http_request *out)
{
    out->has_address = self->options.address != NULL &&
                       self->options.address(self->options.user, exchange, &out->address);
}

static void http_router_serve(mcp_http_router *self, http_exchange *exchange, mcp_server *engine,
                              bay_str session_id, const auth_principal *principal)
{
    loop_mailbox *owner = owner_of(self, session_id);
    if (owner != NULL) {
        session_forward_exchange(self, exchange, owner, principal);
        return;
    }
    bool may_return = session_id.len == 0 && self->peer_count > 1 && self->options.home != NULL;
    http_carrier *carrier = http_carrier_new(&self->carriers, exchange, principal);
    if (carrier == NULL) {
        http_exchange_reply(exchange, 503, NULL, 0, STR(""));
        return;
    }
    size_t field_count;
    const http_field *fields = http_exchange_fields(exchange, &field_count);
    router_call call = {.path = http_exchange_path(exchange),
                        .query = http_exchange_query(exchange),
                        .engine = engine,
                        .http = {.verb = http_exchange_method(exchange),
                                 .body = http_exchange_body(exchange),
                                 .fields = fields,
                                 .field_count = field_count,
                                 .forward = may_return ? forward : NULL,
                                 .memory = http_exchange_arena(exchange),
                                 .principal = principal}};
    router_read_address(self, exchange, &call.http);
    router_serve(self, &call, &carrier->back);
}

/* ---- from the front -------------------------------------------------------------------------- */

#define CORS_FIELDS                                                                                \
    STR_INIT("accept, authorization, content-type, dpop, last-event-id, mcp-method, mcp-name, "    \
             "mcp-protocol-version, mcp-session-id, x-api-key")
#define CORS_FURTHER STR_INIT("mcp-param-") /* fields named after tool parameters */

const http_cors mcp_http_router_cors = {STR_INIT("GET, HEAD, POST, DELETE, OPTIONS"), CORS_FIELDS,
                                        CORS_FURTHER};
const http_cors mcp_http_router_sse_cors = {STR_INIT("GET, HEAD, OPTIONS"), CORS_FIELDS,
                                            CORS_FURTHER};
const http_cors mcp_http_router_message_cors = {STR_INIT("POST, OPTIONS"), CORS_FIELDS,
                                                CORS_FURTHER};

void mcp_http_router_serve(mcp_http_router *self, http_exchange *exchange, mcp_server *engine,
                           const auth_principal *principal)
{
    http_router_serve(self, exchange, engine, http_exchange_field(exchange, STR("Mcp-Session-Id")),
                      principal);
}

void mcp_http_router_serve_message(mcp_http_router *self, http_exchange *exchange,
                                   const auth_principal *principal)
{
    http_router_serve(self, exchange, NULL, sse_2024_session_id(http_exchange_query(exchange)),
                      principal);
}

void mcp_http_router_serve_sse(mcp_http_router *self, http_exchange *exchange, mcp_server *engine,
                               const auth_principal *principal)
{
    if (str_eq(http_exchange_method(exchange), STR("GET"))) {
        sse_2024_open(self, engine, exchange, principal);
    } else if (str_eq(http_exchange_method(exchange), STR("HEAD"))) {
        http_reply_show_stream(exchange); /* and no connection is opened */
    } else {
        /* A client of both transports tries Streamable HTTP first and reads this as a refusal. */
        http_field fields[HTTP_REPLY_FIELDS] = {{STR("Allow"), STR("GET, HEAD")}};
        size_t count = http_reply_cors(exchange, fields, 1);
        http_exchange_reply(exchange, 405, fields, count, STR(""));
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

bay_err mcp_http_router_new(loop *runs_on, const mcp_http_router_options *options,
                            mcp_http_router **out)
{
    if (options->engine == NULL) {
        return BAY_ERR_INVALID;
    }
    mcp_http_router *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = runs_on;
    self->options = *options;
    list_init(&self->forwarded);
    list_init(&self->waits);
    http_reply_limits limits = {
        .keep_alive_ms = options->keep_alive_ms > 0 ? options->keep_alive_ms : KEEP_ALIVE_MS,
        .stream_idle_ms = options->stream_idle_ms,
        .stream_total_ms = options->stream_total_ms,
    };
    limits.keep_alive_ms = limits.keep_alive_ms == UINT32_MAX ? 0 : limits.keep_alive_ms;
    http_replies_init(&self->replies, runs_on, &limits);
    self->replies.challenge = options->challenge;
    self->replies.challenge_user = options->user;
    http_carriers_init(&self->carriers, &self->replies);
    sse_2024_init(self);
    self->messages_path = str_of(options->messages_path);
    bay_err err = loop_mailbox_new(runs_on, self, &self->mailbox);
    if (err != BAY_OK) {
        mcp_http_router_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

static void forget_peers(mcp_http_router *self)
{
    for (size_t i = 0; i < self->peer_count; i++) {
        loop_mailbox_unref(self->peers[i]);
    }
    mem_free(self->peers);
    self->peers = NULL;
    self->peer_count = 0;
}

void mcp_http_router_free(mcp_http_router *self)
{
    if (self == NULL) {
        return;
    }
    session_forwards_end(self);
    http_replies_fini(&self->replies);
    mcp_session_waits_end(self);
    if (self->mailbox != NULL) {
        loop_mailbox_close(self->mailbox);
        loop_mailbox_unref(self->mailbox);
    }
    forget_peers(self);
    sse_2024_fini(self);
    http_carriers_fini(&self->carriers);
    mem_free(self);
}

void mcp_http_router_set_peers(mcp_http_router *self, mcp_http_router *const *routers, size_t count)
{
    forget_peers(self);
    self->peers = mem_array(count, sizeof(*self->peers));
    if (self->peers == NULL) {
        return; /* sessions of other loops are then unknown here */
    }
    for (size_t i = 0; i < count; i++) {
        self->peers[i] = loop_mailbox_ref(routers[i]->mailbox);
    }
    self->peer_count = count;
}

void mcp_http_router_end_streams(mcp_http_router *self, principal_test is_over, void *user)
{
    http_replies_end(&self->replies, is_over, user);
}

void mcp_http_router_close_streams(mcp_http_router *self)
{
    self->carriers.closed_last = NULL;
    http_replies_close(&self->replies);
    self->carriers.closed_last = NULL;
    session_forwards_close_streams(self);
}
