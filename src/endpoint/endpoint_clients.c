/* Who a call is for, as the servers' sessions are told apart by it, and what a client says outside
 * of any call that matters to them. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "endpoint/endpoint_parts.h"

/* A session without an id, of a connection: it has a number, and no later one has the same. A
 * server may stand behind several endpoints, so the endpoint's own mark goes before it. */
typedef struct numbered {
    mcp_session *session; /* the key */
    size_t len;
    char text[64];
} numbered;

/* A URL that the client of a session was asked to open: whom to tell when it is done. */
typedef struct elicited {
    list_link link; /* in endpoint.elicited, oldest first */
    mcp_session *session;
    size_t len;
    char key[]; /* the server's name, NUL, the raw id */
} elicited;

static bay_str name_of(const numbered *self)
{
    return (bay_str){self->text, self->len};
}

static bay_str key_of(mcp_session *const *session)
{
    return (bay_str){(const char *)session, sizeof(*session)};
}

void endpoint_clients_init(endpoint *self)
{
    map_init(&self->numbered, SIZE_MAX / 2);
    map_init(&self->by_name, SIZE_MAX / 2);
    list_init(&self->client_questions);
    map_init(&self->elicitations, ENDPOINT_ELICITATIONS + 1);
    list_init(&self->elicited);
}

static void forget_elicited(endpoint *self, elicited *one)
{
    (void)map_remove(&self->elicitations, (bay_str){one->key, one->len});
    list_remove(&one->link);
    mem_free(one);
}

void endpoint_clients_fini(endpoint *self)
{
    size_t cursor = 0;
    bay_str key;
    void *one;
    while (self->elicited.head.next != NULL && !list_is_empty(&self->elicited)) {
        forget_elicited(self, CONTAINER_OF(list_first(&self->elicited), elicited, link));
    }
    map_fini(&self->elicitations);
    map_fini(&self->by_name);
    while (map_next(&self->numbered, &cursor, &key, &one)) {
        mem_free(one);
    }
    map_fini(&self->numbered);
}

static void forget_number(endpoint *self, mcp_session *session)
{
    numbered *one = map_remove(&self->numbered, key_of(&session));
    if (one != NULL) {
        (void)map_remove(&self->by_name, name_of(one));
        mem_free(one);
    }
}

static bay_err number(endpoint *self, mcp_session *session, bay_str *out)
{
    numbered *one = map_get(&self->numbered, key_of(&session));
    if (one == NULL) {
        one = mem_zalloc(sizeof(*one));
        if (one == NULL) {
            return BAY_ERR_NOMEM;
        }
        buf text = {.at = one->text, .cap = sizeof(one->text), .max = sizeof(one->text)};
        buf_printf(&text, "connection %x-%llx-", self->worker,
                   (unsigned long long)self->suspended.instance);
        buf_uint(&text, ++self->last_number);
        one->len = text.len;
        one->session = session;
        if (map_put(&self->numbered, key_of(&one->session), one, NULL) != BAY_OK) {
            mem_free(one);
            return BAY_ERR_NOMEM;
        }
        if (map_put(&self->by_name, name_of(one), one, NULL) != BAY_OK) {
            forget_number(self, session);
            return BAY_ERR_NOMEM;
        }
    }
    *out = name_of(one);
    return BAY_OK;
}

bay_str endpoint_conversation(const endpoint *self, const mcp_request *request)
{
    bay_str key = self->config->conversation;
    if (key.len == 0 || request->session != NULL || request->principal == NULL) {
        return (bay_str){NULL, 0};
    }
    json_val named = json_get(request->meta, key);
    bay_str raw = json_raw(named);
    bool is_name =
        json_is(named, JSON_STRING) && raw.len > 2 && raw.len <= ENDPOINT_CONVERSATION_BYTES;
    return is_name ? raw : (bay_str){NULL, 0};
}

bay_err endpoint_session_identity(endpoint *self, mcp_session *session, bay_str *out)
{
    bay_str id = mcp_session_id(session);
    if (id.len > 0) {
        *out = id;
        return BAY_OK;
    }
    return number(self, session, out);
}

bay_err endpoint_identity(endpoint *self, const mcp_request *request, bay_str *out)
{
    if (request->session != NULL) {
        return endpoint_session_identity(self, request->session, out);
    }
    bay_str id = principal_binding(request->principal);
    bay_str conversation = endpoint_conversation(self, request);
    if (conversation.len > 0) { /* a binding says how long each part of it is */
        char *text = arena_alloc(request->memory, id.len + conversation.len);
        if (text == NULL) {
            return BAY_ERR_NOMEM;
        }
        *out = (bay_str){text, id.len + conversation.len};
        (void)str_put(&text, id);
        (void)str_put(&text, conversation);
        return BAY_OK;
    }
    *out = id;
    return BAY_OK;
}

/* False: no server has heard of it. */
static bool identity_of_session(const endpoint *self, mcp_session *session, bay_str *out)
{
    const numbered *one = map_get(&self->numbered, key_of(&session));
    *out = one != NULL ? name_of(one) : mcp_session_id(session);
    return out->len > 0;
}

mcp_session *endpoint_session_find(const endpoint *self, bay_str identity)
{
    if (identity.len == 0) {
        return self->only_session;
    }
    const numbered *one = map_get(&self->by_name, identity);
    return one != NULL ? one->session : mcp_server_session(self->engine, identity);
}

void endpoint_introduce(endpoint *self, unsigned inputs)
{
    if (self->has_one_client && !self->is_introduced) {
        self->is_introduced = true;
        if (self->introduced != NULL) {
            self->introduced(self->user, inputs);
        }
    }
}

void endpoint_session_changed(void *user, mcp_session *session, bool is_open)
{
    endpoint *self = user;
    bay_str identity;
    if (is_open) {
        self->only_session = self->has_one_client ? session : NULL;
        endpoint_introduce(self, mcp_session_inputs(session));
        return;
    }
    self->only_session = self->only_session != session ? self->only_session : NULL;
    own_lists_forget(self, session);
    LIST_EACH(at, &self->elicited)
    {
        elicited *one = CONTAINER_OF(at, elicited, link);
        if (one->session == session) {
            forget_elicited(self, one);
        }
    }
    if (!identity_of_session(self, session, &identity)) {
        return;
    }
    for (size_t i = 0; i < self->servers.count; i++) {
        upstream_identity_gone(self->servers.sources[i].upstream, identity);
    }
    forget_number(self, session);
}

/* Roots are all that a client may tell of: a server that was told them keeps them, in a session
 * that serves this client alone. */
void endpoint_notified(void *user, mcp_session *session, const rpc_message *message)
{
    endpoint *self = user;
    bay_str identity;
    if (session == NULL || !str_eq(message->method, mcp_method_of(MCP_N_ROOTS_CHANGED)->text) ||
        !identity_of_session(self, session, &identity)) {
        return;
    }
    for (size_t i = 0; i < self->servers.count; i++) {
        upstream_tell(self->servers.sources[i].upstream, identity, message->method,
                      json_raw(message->params));
    }
}

/* ---- URLs to open ---------------------------------------------------------------------------- */

/* False: it names none, or one too long to remember. */
static bool elicitation_key(bay_str server, json_val params, char out[ENDPOINT_ELICITATION_BYTES],
                            bay_str *out_key)
{
    json_val id = json_get(params, STR("elicitationId"));
    buf text = {.at = out, .cap = ENDPOINT_ELICITATION_BYTES, .max = ENDPOINT_ELICITATION_BYTES};
    buf_str(&text, server);
    buf_char(&text, '\0');
    buf_str(&text, json_raw(id));
    *out_key = buf_view(&text);
    return json_is(id, JSON_STRING) && text.err == BAY_OK;
}

/* Without memory, or beyond the bound, a client has to ask its user: it must be able to. */
void endpoint_elicited(endpoint *self, bay_str server, json_val params, mcp_session *session)
{
    char bytes[ENDPOINT_ELICITATION_BYTES];
    bay_str key;
    if (session == NULL || !elicitation_key(server, params, bytes, &key)) {
        return;
    }
    elicited *known = map_get(&self->elicitations, key);
    if (known != NULL) {
        forget_elicited(self, known);
    }
    if (self->elicitations.len >= ENDPOINT_ELICITATIONS) {
        forget_elicited(self, CONTAINER_OF(list_first(&self->elicited), elicited, link));
    }
    elicited *one = mem_zalloc(sizeof(*one) + key.len);
    if (one == NULL) {
        return;
    }
    one->session = session;
    one->len = key.len;
    memcpy(one->key, key.at, key.len);
    if (map_put(&self->elicitations, (bay_str){one->key, one->len}, one, NULL) != BAY_OK) {
        mem_free(one);
        return;
    }
    list_push(&self->elicited, &one->link);
}

/* mcp 2025-11-25 client/elicitation: to the client that was asked, and to no other */
void endpoint_elicitation_done(endpoint *self, bay_str server, json_val params)
{
    char bytes[ENDPOINT_ELICITATION_BYTES];
    bay_str key;
    elicited *one = NULL;
    if (elicitation_key(server, params, bytes, &key)) {
        one = map_get(&self->elicitations, key);
    }
    if (one == NULL) {
        return;
    }
    mcp_session *session = one->session;
    forget_elicited(self, one);
    buf text;
    buf_init(&text, 2 * ENDPOINT_ELICITATION_BYTES);
    buf_lit(&text, "{\"elicitationId\":");
    buf_str(&text, json_raw(json_get(params, STR("elicitationId"))));
    buf_char(&text, '}');
    if (text.err == BAY_OK) {
        mcp_session_notify(session, MCP_N_ELICITATION_COMPLETE, buf_view(&text));
    }
    buf_fini(&text);
}
