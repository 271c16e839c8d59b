/* HTTP+SSE connections: a duplex engine connection whose output is an event stream and whose input
 * is any number of POSTs. The id is all that authorises a POST, so it has 128 random bits; the
 * worker's number precedes them, so that a POST on another loop is forwarded here. */
#include "mcp_transport/sse_2024.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"

enum { MOST_CONNECTIONS = 10000, ID_BYTES = 8 + 1 + 32, ENDPOINT_BYTES = 1024 };

typedef struct connection {
    mcp_carrier carrier; /* first */
    http_reply reply;
    mcp_http_router *router;
    mcp_connection *engine; /* NULL: the engine ended it */
    list_link leaving_link;
    const auth_principal *principal; /* the principal that opened it; nobody else may use it */
    uint8_t id_len;
    char id[ID_BYTES];
} connection;

static bay_str id_of(const connection *self)
{
    return (bay_str){self->id, self->id_len};
}

static connection *of_carrier(mcp_carrier *carrier)
{
    return CONTAINER_OF(carrier, connection, carrier);
}

static connection *of_reply(http_reply *reply)
{
    return CONTAINER_OF(reply, connection, reply);
}

static void connection_free(connection *self)
{
    (void)map_remove(&self->router->connections, id_of(self));
    list_remove(&self->leaving_link);
    principal_unref(self->principal);
    mem_free(self);
}

/* ---- from the engine */

/* A connection that is to end does so after its last answer; this is called before that is sent. */
static void leave_when_idle(connection *self)
{
    if (list_holds(&self->leaving_link)) {
        loop_defer(self->router->loop, &self->router->leave_task);
    }
}

static bay_err on_event(mcp_carrier *carrier, bay_str json, bay_str event_id)
{
    connection *self = of_carrier(carrier);
    (void)event_id;
    leave_when_idle(self);
    return http_reply_event(&self->reply, STR("message"), json, (bay_str){NULL, 0});
}

/* The engine is being freed. */
static void sse_2024_on_end(mcp_carrier *carrier)
{
    connection *self = of_carrier(carrier);
    self->engine = NULL;
    http_reply_end(&self->reply);
    connection_free(self);
}

static const mcp_carrier_ops carrier_ops = {.event = on_event, .end = sse_2024_on_end};

/* ---- from the exchange */

static void on_gone(http_reply *reply)
{
    connection *self = of_reply(reply);
    mcp_connection_close(self->engine);
    connection_free(self);
}

static void on_drained(http_reply *reply)
{
    mcp_connection_drained(of_reply(reply)->engine);
}

static void on_close(http_reply *reply)
{
    connection *self = of_reply(reply);
    list_remove(&self->leaving_link);
    list_push(&self->router->leaving, &self->leaving_link);
    loop_defer(self->router->loop, &self->router->leave_task);
}

static const http_reply_ops reply_ops = {
    .gone = on_gone, .drained = on_drained, .close = on_close, .expired = on_close};

static void leave(void *argument)
{
    mcp_http_router *router = argument;
    LIST_EACH(link, &router->leaving)
    {
        connection *self = CONTAINER_OF(link, connection, leaving_link);
        if (mcp_connection_pending(self->engine) == 0) {
            mcp_connection_close(self->engine);
            http_reply_end(&self->reply);
            connection_free(self);
        }
    }
}

/* ---- opening */

static void make_id(connection *self, uint32_t worker)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char random[16];
    rand_bytes(random, sizeof(random));
    buf id = {.at = self->id, .cap = sizeof(self->id), .max = sizeof(self->id)};
    buf_printf(&id, "%x-", worker);
    for (size_t i = 0; i < sizeof(random); i++) {
        buf_char(&id, digits[random[i] >> 4]);
        buf_char(&id, digits[random[i] & 15]);
    }
    self->id_len = (uint8_t)id.len;
}

/* mcp 2024-11-05 basic/transports: the server MUST send an endpoint event when a client connects.
 */
static bay_err send_endpoint(connection *self)
{
    char text[ENDPOINT_BYTES];
    buf endpoint = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    buf_str(&endpoint, self->router->messages_path);
    buf_lit(&endpoint, "?sessionId=");
    buf_str(&endpoint, id_of(self));
    if (endpoint.err != BAY_OK) {
        return endpoint.err;
    }
    return http_reply_event(&self->reply, STR("endpoint"), buf_view(&endpoint), (bay_str){NULL, 0});
}

void sse_2024_open(mcp_http_router *router, mcp_server *engine, http_exchange *exchange,
                   const auth_principal *principal)
{
    connection *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        http_exchange_reply(exchange, 503, NULL, 0, STR(""));
        return;
    }
    self->carrier.ops = &carrier_ops;
    self->router = router;
    self->principal = principal_ref(principal);
    make_id(self, router->options.worker);
    bay_err err = map_put(&router->connections, id_of(self), self, NULL);
    if (err == BAY_OK) {
        err = mcp_connection_open(engine, &self->carrier, &self->engine);
    }
    if (err == BAY_OK) {
        mcp_connection_identify(self->engine, self->principal);
    }
    http_reply_begin(&self->reply, &router->replies, &reply_ops, exchange, principal);
    if (err != BAY_OK) {
        http_reply_answer(&self->reply, 503, STR(""), STR(""), STR(""));
        connection_free(self);
        return;
    }
    (void)send_endpoint(self); /* if it fails, the peer has disconnected and `gone` follows */
}

/* ---- receiving */

bay_str sse_2024_session_id(bay_str query)
{
    static const bay_str name = STR_INIT("sessionId=");
    while (query.len > 0) {
        size_t end = str_find(query, '&');
        bay_str one = str_head(query, end);
        if (str_starts(one, name)) {
            return str_from(one, name.len);
        }
        query = str_from(query, end + 1);
    }
    return STR("");
}

void sse_2024_receive(mcp_http_router *router, const router_call *call, mcp_carrier *carrier)
{
    if (!str_eq(call->http.verb, STR("POST"))) {
        carrier->ops->answer(carrier, 405, STR(""), STR(""), STR("POST"));
        return;
    }
    connection *to = map_get(&router->connections, sse_2024_session_id(call->query));
    if (to == NULL ||
        !str_eq_secret(principal_binding(call->http.principal), principal_binding(to->principal))) {
        carrier->ops->answer(carrier, 404, STR(""), STR(""), STR(""));
        return;
    }
    mcp_connection_receive(to->engine, call->http.body, loop_now_ms(router->loop));
    carrier->ops->answer(carrier, 202, STR(""), STR(""), STR(""));
}

void sse_2024_init(mcp_http_router *self)
{
    map_init(&self->connections, MOST_CONNECTIONS);
    list_init(&self->leaving);
    self->leave_task = (loop_task){.function = leave, .argument = self};
}

void sse_2024_fini(mcp_http_router *self)
{
    loop_undefer(self->loop, &self->leave_task);
    map_fini(&self->connections);
}
