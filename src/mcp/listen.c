/* subscriptions/listen (2026-07-28 basic/patterns/subscriptions): first the acknowledgement with
 * the granted filter, then the notifications that it grants, each with the subscription's id, until
 * the client closes the stream (or cancels, on a duplex carrier) or the server ends it. */
#include "base/check.h"
#include "base/mem.h"
#include "mcp/result_adapt.h"
#include "mcp/subscription.h"

typedef struct listen_filter_row {
    bay_str member;
    mcp_change change;
    mcp_method_id method;
} listen_filter_row;

static const listen_filter_row filter_rows[] = {
    {STR_INIT("toolsListChanged"), MCP_CHANGE_TOOLS, MCP_N_TOOLS_CHANGED},
    {STR_INIT("promptsListChanged"), MCP_CHANGE_PROMPTS, MCP_N_PROMPTS_CHANGED},
    {STR_INIT("resourcesListChanged"), MCP_CHANGE_RESOURCES, MCP_N_RESOURCES_CHANGED},
};

static bay_str listen_id(const listen_stream *self)
{
    return (bay_str){self->id, self->id_len};
}

static void mcp_listen_send(listen_stream *self, buf *json)
{
    mcp_carrier *carrier =
        self->connection != NULL ? self->connection->carrier : self->owner.carrier;
    if (carrier != NULL && json->err == BAY_OK) {
        (void)carrier->ops->event(carrier, buf_view(json), STR(""));
    }
}

void listen_send(listen_stream *self, buf *json)
{
    if (self->is_acknowledged) {
        mcp_listen_send(self, json);
    }
}

static void write_meta(buf *out, const listen_stream *self)
{
    buf_lit(out, "\"_meta\":{\"" MCP_META_SUBSCRIPTION "\":");
    buf_str(out, listen_id(self));
}

static listen_stream *listen_new(request *from)
{
    bay_str id = from->shown.message.id;
    mcp_server *server = from->shown.server;
    listen_stream *self = mem_zalloc(sizeof(*self) + id.len);
    if (self == NULL) {
        return NULL;
    }
    self->owner.kind = CARRIER_LISTEN;
    self->server = server;
    self->connection = from->channel->connection;
    self->expires_ms = stream_expiry(server, from->shown.principal);
    self->id_len = (uint32_t)id.len;
    memcpy(self->id, id.at, id.len);
    list_init(&self->subscriptions);
    list_push(&server->listens, &self->server_link);
    server->listen_count++;
    if (self->connection != NULL) {
        list_push(&self->connection->listens, &self->connection_link);
        self->connection->listen_count++;
    }
    return self;
}

void listen_free(listen_stream *self)
{
    subscriptions_end(self->server, &self->subscriptions);
    list_remove(&self->server_link);
    self->server->listen_count--;
    if (self->connection != NULL) {
        list_remove(&self->connection_link);
        self->connection->listen_count--;
    }
    if (self->owner.carrier != NULL) {
        carrier_end(&self->owner);
    }
    mem_free(self);
}

listen_stream *listen_find(mcp_connection *connection, bay_str id)
{
    LIST_EACH(link, &connection->listens)
    {
        listen_stream *one = CONTAINER_OF(link, listen_stream, connection_link);
        if (str_eq(listen_id(one), id)) {
            return one;
        }
    }
    return NULL;
}

/* A filter's members must have their types; otherwise the request is refused. */
static bool is_filter(json_val filter)
{
    if (!json_is(filter, JSON_OBJECT)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(filter_rows); i++) {
        json_kind kind = json_kind_of(json_get(filter, filter_rows[i].member));
        if (kind != JSON_MISSING && kind != JSON_TRUE && kind != JSON_FALSE) {
            return false;
        }
    }
    json_val uris = json_get(filter, STR("resourceSubscriptions"));
    if (!json_is(uris, JSON_MISSING) && !json_is(uris, JSON_ARRAY)) {
        return false;
    }
    json_iter it = json_iter_of(uris);
    while (json_next(&it)) {
        if (!json_is(it.value, JSON_STRING)) {
            return false;
        }
    }
    return true;
}

/* Subscribes to what is available; fails only for lack of memory, and omits everything else. */
static bay_err grant(listen_stream *self, const request *from, json_val filter)
{
    const declared *has = server_declared(self->server, from->shown.revision);
    if (has == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < ARRAY_LEN(filter_rows); i++) {
        if (json_true(json_get(filter, filter_rows[i].member)) &&
            (has->changes & filter_rows[i].change) != 0) {
            self->changes |= filter_rows[i].change;
        }
    }
    subscriber by = {
        .listen = self, .principal = from->shown.principal, .origin = from->shown.call.origin};
    json_iter it = json_iter_of(json_get(filter, STR("resourceSubscriptions")));
    while (has->has_subscribe && json_next(&it)) {
        bay_str uri;
        if (json_str(it.value, from->shown.memory, &uri) != BAY_OK ||
            subscription_add(self->server, uri, &by) == BAY_ERR_NOMEM) {
            return BAY_ERR_NOMEM;
        }
    }
    return BAY_OK;
}

static void write_acknowledgement(buf *out, const listen_stream *self)
{
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","
                 "\"params\":{");
    write_meta(out, self);
    buf_lit(out, "},\"notifications\":");
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    for (size_t i = 0; i < ARRAY_LEN(filter_rows); i++) {
        if ((self->changes & filter_rows[i].change) != 0) {
            json_key(&writer, filter_rows[i].member);
            json_put_bool(&writer, true);
        }
    }
    if (!list_is_empty(&self->subscriptions)) {
        json_key_lit(&writer, "resourceSubscriptions");
        json_open_array(&writer);
        LIST_EACH(link, &self->subscriptions)
        {
            const topic *of = CONTAINER_OF(link, subscription, owner_link)->of;
            json_put_str(&writer, (bay_str){of->uri, of->len});
        }
        json_close_array(&writer);
    }
    json_close_object(&writer);
    buf_lit(out, "}}");
}

/* mcp tasks extension, Task Status Notifications: a client that wants them has declared the
 * extension. (This engine sends none for single tasks, as the acknowledgement says: clients poll.)
 */
static bool lacks_tasks(const request *from, json_val filter)
{
    const declared *has = server_declared(from->shown.server, from->shown.revision);
    return !json_is(json_get(filter, STR("taskIds")), JSON_MISSING) && has != NULL &&
           (has->methods >> MCP_TASKS_GET & 1) != 0 &&
           !json_is(mcp_capability(from->shown.client_capabilities,
                                   STR("extensions." MCP_EXTENSION_TASKS)),
                    JSON_OBJECT);
}

void listen_open(request *from)
{
    mcp_server *server = from->shown.server;
    json_val filter = json_get(from->shown.message.params, STR("notifications"));
    if (!is_filter(filter)) {
        request_refuse(from, 400, RPC_INVALID_PARAMS, "notifications is not a valid filter",
                       STR(""));
        return;
    }
    if (lacks_tasks(from, filter)) {
        request_refuse(
            from, 400, MCP_MISSING_CAPABILITY, "Missing required client capability",
            STR("{\"requiredCapabilities\":{\"extensions\":{\"" MCP_EXTENSION_TASKS "\":{}}}}"));
        return;
    }
    request_begin_call(from); /* for the lists; each URI is a call of its own */
    if (!mcp_request_admit(&from->shown, NULL)) {
        return;
    }
    mcp_connection *connection = from->channel->connection;
    uint32_t bound =
        connection != NULL ? server->options.max_subscriptions : server->options.max_sessions;
    uint32_t have = connection != NULL ? connection->listen_count : server->listen_count;
    if (have >= bound || server->is_closing) {
        request_refuse(from, 429, RPC_INTERNAL_ERROR, "Too many subscriptions", STR(""));
        return;
    }
    listen_stream *self = listen_new(from);
    if (self == NULL || grant(self, from, filter) != BAY_OK) {
        if (self != NULL) {
            listen_free(self);
        }
        request_refuse(from, 503, RPC_INTERNAL_ERROR, "Out of memory", STR(""));
        return;
    }
    buf *out = server_out(server);
    write_acknowledgement(out, self);
    if (out->err != BAY_OK) {
        listen_free(self);
        request_refuse(from, 503, RPC_INTERNAL_ERROR, "Out of memory", STR(""));
        return;
    }
    mcp_carrier *carrier = from->channel->owner.carrier;
    from->channel->owner.carrier = NULL;
    if (connection == NULL) {
        carrier_take(&self->owner, carrier);
    }
    self->is_acknowledged = true;
    request_drop(from);
    mcp_listen_send(self, out);
}

void listen_complete(listen_stream *self)
{
    mcp_server *server = self->server;
    subscriptions_end(server, &self->subscriptions);
    buf *out = server_out(server);
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_str(out, listen_id(self));
    buf_lit(out, ",\"result\":{\"resultType\":\"complete\",");
    write_meta(out, self);
    buf_lit(out, ",\"" MCP_META_SERVER_INFO "\":");
    buf_str(out, server_info(server, mcp_revision_of(MCP_LATEST)));
    buf_lit(out, "}}}");
    /* It is removed from every list before anything is sent: sending may report the carrier as
     * closed. */
    mcp_carrier *line = self->connection != NULL ? self->connection->carrier : NULL;
    carrier_owner last_word = {.kind = CARRIER_LAST_WORD};
    if (self->owner.carrier != NULL) {
        line = self->owner.carrier;
        carrier_take(&last_word, line);
        self->owner.carrier = NULL;
    }
    listen_free(self);
    if (line != NULL && out->err == BAY_OK) {
        (void)line->ops->event(line, buf_view(out), STR(""));
    }
    if (last_word.carrier != NULL) {
        carrier_end(&last_word);
    }
}

bool listen_expire(mcp_server *server, uint64_t wall_ms)
{
    LIST_EACH(link, &server->listens)
    {
        listen_stream *one = CONTAINER_OF(link, listen_stream, server_link);
        if (one->expires_ms != 0 && one->expires_ms <= wall_ms) {
            listen_complete(one);
            return true;
        }
    }
    return false;
}

/* Sends list_changed to the listens that asked for it. */
void listens_changed(mcp_server *server, mcp_change change)
{
    for (size_t i = 0; i < ARRAY_LEN(filter_rows); i++) {
        if ((filter_rows[i].change & change) == 0) {
            continue;
        }
        /* Sending may end listens, this one and others: each round starts again. */
        list done;
        list_init(&done);
        list_link *link;
        while ((link = list_pop(&server->listens)) != NULL) {
            list_push(&done, link);
            listen_stream *one = CONTAINER_OF(link, listen_stream, server_link);
            if ((one->changes & filter_rows[i].change) == 0) {
                continue;
            }
            buf *out = server_out(server);
            buf_lit(out, "{\"jsonrpc\":\"2.0\",\"method\":\"");
            buf_str(out, mcp_method_of(filter_rows[i].method)->text);
            buf_lit(out, "\",\"params\":{");
            write_meta(out, one);
            buf_lit(out, "}}}");
            listen_send(one, out);
        }
        while ((link = list_pop(&done)) != NULL) {
            list_push(&server->listens, link);
        }
    }
}
