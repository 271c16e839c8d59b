/* Who a call is for, as the servers' sessions are told apart by it, and what a client says outside
 * of any call that matters to them. */
#include "base/mem.h"
#include "base/str.h"
#include "gateway/face_parts.h"

/* A session without an id, of a connection: it has a number, and no later one has the same. */
typedef struct numbered {
    const mcp_session *session; /* the key */
    size_t len;
    char text[32];
} numbered;

static bay_str key_of(const mcp_session *const *session)
{
    return (bay_str){(const char *)session, sizeof(*session)};
}

void face_clients_init(face *self)
{
    map_init(&self->numbered, SIZE_MAX / 2);
}

void face_clients_fini(face *self)
{
    size_t cursor = 0;
    bay_str key;
    void *one;
    while (map_next(&self->numbered, &cursor, &key, &one)) {
        mem_free(one);
    }
    map_fini(&self->numbered);
}

static bay_err number(face *self, const mcp_session *session, bay_str *out)
{
    numbered *one = map_get(&self->numbered, key_of(&session));
    if (one == NULL) {
        one = mem_zalloc(sizeof(*one));
        if (one == NULL) {
            return BAY_NOMEM;
        }
        buf text = {.at = one->text, .cap = sizeof(one->text), .max = sizeof(one->text)};
        buf_printf(&text, "connection %x-", self->worker);
        buf_uint(&text, ++self->last_number);
        one->len = text.len;
        one->session = session;
        if (map_put(&self->numbered, key_of(&one->session), one, NULL) != BAY_OK) {
            mem_free(one);
            return BAY_NOMEM;
        }
    }
    *out = (bay_str){one->text, one->len};
    return BAY_OK;
}

bay_err face_identity(face *self, const mcp_request *request, bay_str *out)
{
    const mcp_session *session = request->session;
    bay_str id = session != NULL ? mcp_session_id(session) : request->principal;
    if (session == NULL || id.len > 0) {
        *out = id;
        return BAY_OK;
    }
    return number(self, session, out);
}

/* False: no server has heard of it. */
static bool identity_of_session(const face *self, const mcp_session *session, bay_str *out)
{
    const numbered *one = map_get(&self->numbered, key_of(&session));
    *out = one != NULL ? (bay_str){one->text, one->len} : mcp_session_id(session);
    return out->len > 0;
}

void face_session_changed(void *user, mcp_session *session, bool is_open)
{
    face *self = user;
    bay_str identity;
    if (is_open || !identity_of_session(self, session, &identity)) {
        return;
    }
    for (size_t i = 0; i < self->roster.count; i++) {
        upstream_identity_gone(self->roster.sources[i].upstream, identity);
    }
    mem_free(map_remove(&self->numbered, key_of((const mcp_session *const *)&session)));
}

/* Roots are all that a client may tell of: a server that was told them keeps them, in a session
 * that serves this client alone. */
void face_notified(void *user, mcp_session *session, const rpc_message *message)
{
    face *self = user;
    bay_str identity;
    if (session == NULL || !str_eq(message->method, mcp_method_of(MCP_N_ROOTS_CHANGED)->text) ||
        !identity_of_session(self, session, &identity)) {
        return;
    }
    for (size_t i = 0; i < self->roster.count; i++) {
        upstream *server = self->roster.sources[i].upstream;
        if (upstream_state_of(server) == UPSTREAM_READY) {
            upstream_tell(server, identity, message->method, json_raw(message->params));
        }
    }
}
