/* The state of a client besides its calls: working memory, the server's description of itself, and
 * what the owner wants to be notified of. */
#include "base/mem.h"
#include "mcp/client_internal.h"

/* ---- working memory -------------------------------------------------------------------------- */

void mcp_client_scratch_init(const mcp_client *self, client_scratch *scratch)
{
    size_t max = 2 * self->max_message_bytes + CLIENT_MAX_OPTION_BYTES;
    buf_init(&scratch->message, max);
    buf_init(&scratch->name, max);
    arena_init(&scratch->memory, 32 * max);
}

void mcp_client_scratch_fini(client_scratch *scratch)
{
    buf_fini(&scratch->message);
    buf_fini(&scratch->name);
    arena_fini(&scratch->memory);
}

client_scratch mcp_client_scratch_take(const mcp_client *self, client_scratch *slot)
{
    client_scratch scratch = *slot;
    mcp_client_scratch_init(self, slot);
    return scratch;
}

static void scratch_trim(buf *one)
{
    buf_clear(one);
    if (one->cap > CLIENT_MAX_SCRATCH_BYTES) { /* large buffers are not kept for small messages */
        buf_fini(one);
    }
}

void mcp_client_scratch_put(client_scratch *slot, client_scratch *scratch)
{
    scratch_trim(&scratch->message);
    scratch_trim(&scratch->name);
    arena_reset(&scratch->memory);
    mcp_client_scratch_fini(slot); /* a buffer that a callback used meanwhile */
    *slot = *scratch;
}

/* ---- what the server is ---------------------------------------------------------------------- */

void mcp_client_unlearn(mcp_client *self)
{
    self->is_about_known = false;
    self->instructions = (bay_str){0};
    self->about = JSON_NONE;
    arena_reset(&self->about_memory);
}

bay_err mcp_client_learn(mcp_client *self, json_val result)
{
    mcp_client_unlearn(self);
    bay_err err = json_clone_in(result, &self->about_memory, &self->about);
    if (err != BAY_OK) {
        return err;
    }
    json_val instructions = json_get(self->about, STR("instructions"));
    if (json_is(instructions, JSON_STRING)) {
        err = json_str(instructions, &self->about_memory, &self->instructions);
    }
    self->is_about_known = err == BAY_OK;
    return err;
}

static json_val about_root(const mcp_client *self)
{
    return self->is_about_known ? self->about : JSON_NONE;
}

json_val mcp_client_server_info(const mcp_client *self)
{
    json_val meta = json_get(about_root(self), STR("_meta"));
    json_val info = json_get(meta, STR(MCP_META_SERVER_INFO));
    return json_is(info, JSON_OBJECT) ? info : json_get(about_root(self), STR("serverInfo"));
}

json_val mcp_client_server_capabilities(const mcp_client *self)
{
    return json_get(about_root(self), STR("capabilities"));
}

bay_str mcp_client_instructions(const mcp_client *self)
{
    return self->instructions;
}

bool mcp_client_has(const mcp_client *self, bay_str capability)
{
    if (!self->is_about_known) {
        /* A remembered server was not asked yet: it refuses by itself if it lacks the capability.
         */
        return self->state == MCP_CLIENT_READY;
    }
    json_kind kind = json_kind_of(mcp_capability(mcp_client_server_capabilities(self), capability));
    return kind != JSON_MISSING && kind != JSON_FALSE && kind != JSON_NULL;
}

mcp_client_state mcp_client_state_of(const mcp_client *self)
{
    return self->state;
}

mcp_link_kind mcp_client_link_kind(const mcp_client *self)
{
    return self->kind;
}

const mcp_revision *mcp_client_revision(const mcp_client *self)
{
    return self->state == MCP_CLIENT_READY ? self->revision : NULL;
}

size_t mcp_client_open_calls(const mcp_client *self)
{
    return self->user_count;
}

bool mcp_client_is_http(const mcp_client *self)
{
    return self->kind == MCP_LINK_HTTP;
}

bool mcp_client_is_modern(const mcp_client *self)
{
    return self->revision != NULL && self->revision->era == MCP_MODERN;
}

/* ---- subscriptions and levels ---------------------------------------------------------------- */

bay_err mcp_client_subscribe(mcp_client *self, bay_str uri, bool is_wanted, uint64_t now_ms)
{
    if (uri.len == 0 || uri.len > CLIENT_MAX_URI) {
        return uri.len == 0 ? BAY_ERR_INVALID : BAY_ERR_LIMIT;
    }
    bool is_ready = self->state == MCP_CLIENT_READY;
    if (is_wanted && is_ready && !mcp_client_has(self, STR("resources.subscribe"))) {
        return BAY_ERR_UNSUPPORTED;
    }
    char *known = map_get(&self->subscriptions, uri);
    if ((known != NULL) == is_wanted) {
        return BAY_OK;
    }
    if (is_wanted) {
        known = mem_dup(uri.at, uri.len);
        if (known == NULL) {
            return BAY_ERR_NOMEM;
        }
        bay_err err = map_put(&self->subscriptions, (bay_str){known, uri.len}, known, NULL);
        if (err != BAY_OK) {
            mem_free(known);
            return err == BAY_ERR_LIMIT ? BAY_ERR_BUSY : err;
        }
    } else {
        map_remove(&self->subscriptions, uri);
    }
    mcp_client_enter(self, now_ms);
    if (is_ready && mcp_client_is_modern(self)) {
        mcp_client_modern_listen_due(self);
    } else if (is_ready) {
        mcp_client_legacy_subscribe(self, uri, is_wanted);
    }
    if (!is_wanted) {
        mem_free(known); /* last: `uri` may be a view of it */
    }
    mcp_client_leave(self);
    return BAY_OK;
}

void mcp_client_set_level(mcp_client *self, mcp_log_level level, uint64_t now_ms)
{
    mcp_client_enter(self, now_ms);
    self->level = level;
    if (self->state == MCP_CLIENT_READY && !mcp_client_is_modern(self)) {
        mcp_client_legacy_send_level(self);
    }
    mcp_client_leave(self);
}
