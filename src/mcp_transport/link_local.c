/* A client link to a server engine of the same loop: two queues of whole messages.
 *
 *   client engine --send--> to_server --a later iteration--> connection
 *   client engine <--a later iteration-- to_client <--event-- connection
 *
 * Invariants
 * - Only the pump passes messages on, so neither engine runs inside the other.
 * - An empty queue takes one message of any size, otherwise up to its limit; above the high-water
 *   mark its sender gets BAY_ERR_AGAIN and, at half of it, `drained`.
 * - While the client's queue is above the mark, the server gets no more messages.
 * - The link ticks the server: its owner may not know that it is used. */
#include "base/check.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "mcp_transport/link_internal.h"

enum { MESSAGES_PER_TURN = 64 };

typedef struct local_message {
    list_link link;
    const auth_principal *principal; /* counted: the sender; to the client: NULL */
    size_t len;
    char bytes[];
} local_message;

typedef struct local_queue {
    list messages;
    size_t bytes;
    size_t max_bytes;
    bool is_above_high; /* since a sender got BAY_ERR_AGAIN */
} local_queue;

typedef struct local_link {
    mcp_link base;
    mcp_carrier carrier;
    mcp_server *server;
    mcp_connection *connection; /* NULL: closed, or the server was freed */
    local_queue to_server;
    local_queue to_client;
    loop_task pump;
    loop_timer server_timer;
    const auth_principal *principal; /* counted: of messages for no particular caller */
    bool is_paused;
    bool is_overrun; /* the server sent more than fits */
} local_link;

static local_link *local_of(mcp_link *base)
{
    return CONTAINER_OF(base, local_link, base);
}

/* ---- queues ------------------------------------------------------------------------------------
 */

static void queue_init(local_queue *self, size_t max_bytes)
{
    list_init(&self->messages);
    self->max_bytes = max_bytes;
}

static bay_err queue_put(local_queue *self, bay_str message, const auth_principal *principal)
{
    size_t cost = message.len + sizeof(local_message);
    if (self->bytes > 0 && (cost > self->max_bytes || self->bytes > self->max_bytes - cost)) {
        return BAY_ERR_LIMIT;
    }
    local_message *copy = mem_alloc(sizeof(*copy) + message.len);
    if (copy == NULL) {
        return BAY_ERR_NOMEM;
    }
    *copy = (local_message){.principal = principal_ref(principal), .len = message.len};
    if (message.len > 0) {
        memcpy(copy->bytes, message.at, message.len);
    }
    list_push(&self->messages, &copy->link);
    self->bytes += cost;
    if (self->bytes > LINK_HIGH_BYTES) {
        self->is_above_high = true;
        return BAY_ERR_AGAIN;
    }
    return BAY_OK;
}

static local_message *queue_take(local_queue *self)
{
    list_link *link = list_pop(&self->messages);
    if (link == NULL) {
        return NULL;
    }
    local_message *message = CONTAINER_OF(link, local_message, link);
    self->bytes -= message->len + sizeof(*message);
    return message;
}

/* True once, when the queue has fallen to half of the mark after BAY_ERR_AGAIN. */
static bool queue_take_drained(local_queue *self)
{
    bool has_drained = self->is_above_high && self->bytes <= LINK_HIGH_BYTES / 2;
    self->is_above_high = self->is_above_high && !has_drained;
    return has_drained;
}

static void message_free(local_message *message)
{
    principal_unref(message->principal);
    mem_free(message);
}

static void queue_clear(local_queue *self)
{
    local_message *message;
    while ((message = queue_take(self)) != NULL) {
        message_free(message);
    }
}

/* ---- the pump ----------------------------------------------------------------------------------
 */

static bool may_serve(const local_link *self)
{
    return self->connection != NULL && !self->to_client.is_above_high;
}

static bool may_answer(const local_link *self)
{
    return !self->is_paused;
}

static void link_local_serve(local_link *self)
{
    for (int i = 0; i < MESSAGES_PER_TURN && may_serve(self); i++) {
        local_message *message = queue_take(&self->to_server);
        if (message == NULL) {
            break;
        }
        bay_str text = {message->bytes, message->len};
        mcp_connection_identify(self->connection, message->principal);
        mcp_connection_receive(self->connection, text, link_now(&self->base));
        message_free(message);
    }
    if (!self->base.is_freed && queue_take_drained(&self->to_server)) {
        self->base.is_clogged = false;
        mcp_client_drained(self->base.client);
    }
}

static void link_local_answer(local_link *self)
{
    for (int i = 0; i < MESSAGES_PER_TURN && !self->base.is_freed && may_answer(self); i++) {
        local_message *message = queue_take(&self->to_client);
        if (message == NULL) {
            break;
        }
        bay_str text = {message->bytes, message->len};
        mcp_client_receive(self->base.client, 0, text, (bay_str){0}, link_now(&self->base));
        message_free(message);
    }
    if (self->connection != NULL && queue_take_drained(&self->to_client)) {
        mcp_connection_drained(self->connection);
    }
}

static void tick_server(local_link *self)
{
    uint64_t now = link_now(&self->base);
    uint64_t next = mcp_server_tick(self->server, now);
    if (self->connection == NULL || next == UINT64_MAX) {
        loop_timer_stop(self->base.loop, &self->server_timer);
        return;
    }
    if (loop_timer_start(self->base.loop, &self->server_timer, next > now ? next - now : 1) !=
        BAY_OK) {
        LOG(LOG_WARN, "mcp", "no memory for a server's timer");
    }
}

static void close_connection(local_link *self)
{
    mcp_connection *connection = self->connection;
    self->connection = NULL;
    if (connection != NULL) {
        mcp_connection_close(connection);
    }
}

static void pump(void *argument)
{
    local_link *self = argument;
    if (self->is_overrun) {
        close_connection(self);
        mcp_client_broken(self->base.client, BAY_ERR_LIMIT, "the server says more than is taken",
                          link_now(&self->base));
        return;
    }
    link_local_serve(self);
    if (!self->base.is_freed) {
        link_local_answer(self);
    }
    if (self->connection != NULL) {
        tick_server(self);
    }
    if (self->base.is_freed) {
        return;
    }
    bool has_more = (may_serve(self) && !list_is_empty(&self->to_server.messages)) ||
                    (may_answer(self) && !list_is_empty(&self->to_client.messages));
    if (has_more || self->is_overrun) {
        loop_defer(self->base.loop, &self->pump);
    } else if (self->connection == NULL && list_is_empty(&self->to_client.messages)) {
        mcp_client_broken(self->base.client, BAY_ERR_CLOSED, "the server was closed",
                          link_now(&self->base));
    }
    link_touch(&self->base);
}

static void on_server_timer(void *argument)
{
    local_link *self = argument;
    loop_defer(self->base.loop, &self->pump);
}

/* ---- towards the engines -----------------------------------------------------------------------
 */

static bay_err local_send(void *link, uint64_t exchange, bay_str message, const mcp_field *fields,
                          size_t count, uint32_t timeout_ms)
{
    (void)exchange;
    (void)fields;
    (void)count;
    (void)timeout_ms;
    local_link *self = link;
    if (self->base.is_freed || self->connection == NULL) {
        return BAY_ERR_CLOSED;
    }
    const auth_principal *principal = mcp_client_sends_for(self->base.client);
    bay_err err =
        queue_put(&self->to_server, message, principal != NULL ? principal : self->principal);
    self->base.is_clogged = self->base.is_clogged || err == BAY_ERR_AGAIN;
    loop_defer(self->base.loop, &self->pump);
    link_touch(&self->base);
    return err;
}

static void local_pause(void *link, uint64_t exchange, bool is_paused)
{
    (void)exchange;
    local_link *self = link;
    self->is_paused = is_paused;
    if (!is_paused && !self->base.is_freed) {
        loop_defer(self->base.loop, &self->pump);
    }
}

static const mcp_link_ops local_ops = {.send = local_send, .pause = local_pause};

static bay_err on_event(mcp_carrier *carrier, bay_str json, bay_str event_id)
{
    local_link *self = CONTAINER_OF(carrier, local_link, carrier);
    (void)event_id;
    if (json.len == 0 || self->base.is_freed || self->is_overrun) {
        return json.len == 0 ? BAY_OK : BAY_ERR_CANCELLED;
    }
    bay_err err = queue_put(&self->to_client, json, NULL);
    loop_defer(self->base.loop, &self->pump);
    if (err != BAY_OK && err != BAY_ERR_AGAIN) {
        self->is_overrun = true; /* a message is lost: later ones would be inconsistent */
        return BAY_ERR_CANCELLED;
    }
    return err;
}

/* The server is being freed; its earlier messages are still passed on. */
static void link_local_on_end(mcp_carrier *carrier)
{
    local_link *self = CONTAINER_OF(carrier, local_link, carrier);
    self->connection = NULL;
    if (!self->base.is_freed) {
        loop_defer(self->base.loop, &self->pump);
    }
}

static const mcp_carrier_ops carrier_ops = {.event = on_event, .end = link_local_on_end};

/* ---- the link's life ---------------------------------------------------------------------------
 */

static void local_begin(mcp_link *base)
{
    mcp_client_opened(base->client, link_now(base));
}

static void local_stop(mcp_link *base)
{
    local_link *self = local_of(base);
    loop_undefer(base->loop, &self->pump);
    loop_timer_stop(base->loop, &self->server_timer);
    close_connection(self);
}

static void local_close(mcp_link *base)
{
    local_stop(base);
    link_closed(base);
}

static void local_release(mcp_link *base)
{
    local_link *self = local_of(base);
    queue_clear(&self->to_server);
    queue_clear(&self->to_client);
    principal_unref(self->principal);
    mem_free(self);
}

static const link_carrier local_carrier = {
    .begin = local_begin,
    .close = local_close,
    .stop = local_stop,
    .release = local_release,
};

bay_err mcp_link_open_local(loop *runs_on, mcp_server *server, const mcp_link_options *options,
                            mcp_link **out)
{
    local_link *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->carrier.ops = &carrier_ops;
    self->server = server;
    self->principal = principal_ref(options->principal);
    self->pump = (loop_task){.function = pump, .argument = self};
    loop_timer_init(&self->server_timer, on_server_timer, self);
    queue_init(&self->to_server, 0);
    queue_init(&self->to_client, 0);
    bay_err err =
        link_init(&self->base, &local_carrier, runs_on, options, MCP_LINK_DUPLEX, &local_ops);
    if (err != BAY_OK) {
        local_release(&self->base);
        return err;
    }
    self->to_server.max_bytes = self->to_client.max_bytes = self->base.max_message_bytes;
    err = mcp_connection_open(server, &self->carrier, &self->connection);
    if (err != BAY_OK) {
        mcp_link_free(&self->base);
        return err;
    }
    *out = &self->base;
    return BAY_OK;
}
