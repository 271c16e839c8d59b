/* ListTasks through a relay: what relay_owner.h says of a page. */
#include "agents/relay_owner.h"
#include "base/str.h"
#include "json/writer.h"

enum {
    PAGE_DEFAULT = 50,
    PAGE_MOST = 1000,
    TOKEN_BYTES = 16 << 10,
    TOKEN_MS = 3600 * 1000,
    BOUND_BYTES = PRINCIPAL_KEY_BYTES + 4096,
};

static const bay_str page_size = STR_INIT("pageSize");
static const bay_str page_token = STR_INIT("pageToken");

/* ---- tokens ---------------------------------------------------------------------------------- */

static const seal_ring *ring_of(const relay_owner *self)
{
    return self->ring != NULL ? *self->ring : NULL;
}

/* Whose it is and at which agent. */
static bay_err write_bound(const relay_owner *owner, buf *out)
{
    buf_lit(out, "list-tasks");
    buf_char(out, '\0');
    buf_str(out, owner->agent);
    buf_char(out, '\0');
    buf_str(out, principal_identity(owner->principal));
    return out->err;
}

static bay_err open_token(const relay_owner *owner, bay_str token, buf *out, a2a_fault *fault)
{
    buf bound;
    if (seal_ring_count(ring_of(owner)) == 0) {
        buf_str(out, token);
        return out->err;
    }
    buf_init(&bound, BOUND_BYTES);
    bay_err err = write_bound(owner, &bound);
    if (err == BAY_OK) {
        err = seal_open(ring_of(owner), token, buf_view(&bound), loop_time_ms(), out);
    }
    buf_fini(&bound);
    return err == BAY_OK || err == BAY_NOMEM
               ? err
               : a2a_fault_set(fault, A2A_E_INVALID_PARAMS,
                               "pageToken: not one of this list, or too old; begin again without");
}

static bay_err put_token(const relay_list *self, const relay_owner *owner, json_writer *out)
{
    buf bound, sealed;
    bay_err err = BAY_OK;
    buf_init(&bound, BOUND_BYTES);
    buf_init(&sealed, 2 * TOKEN_BYTES);
    if (self->token.len > 0 && seal_ring_count(ring_of(owner)) == 0) {
        buf_str(&sealed, buf_view(&self->token));
    } else if (self->token.len > 0) {
        err = write_bound(owner, &bound);
        err = err == BAY_OK ? seal_value(ring_of(owner), buf_view(&self->token), buf_view(&bound),
                                         loop_time_ms() + TOKEN_MS, &sealed)
                            : err;
    }
    json_put_str(out, buf_view(&sealed));
    err = err == BAY_OK ? sealed.err : err;
    buf_fini(&bound);
    buf_fini(&sealed);
    return err;
}

/* ---- pages ----------------------------------------------------------------------------------- */

bay_err relay_list_init(relay_list *self, const relay_owner *owner, json_val params, arena *memory,
                        a2a_fault *fault)
{
    int64_t size = 0;
    bay_str token = {"", 0};
    json_val given = json_get(params, page_token);
    *self = (relay_list){0};
    buf_init(&self->tasks, a2a_json_limits.max_bytes);
    buf_init(&self->token, TOKEN_BYTES);
    if (json_int64(json_get(params, page_size), &size) == BAY_OK && size > 0 && size <= PAGE_MOST) {
        self->size = (size_t)size;
    }
    bay_err err = json_is(given, JSON_STRING) ? json_str(given, memory, &token) : BAY_OK;
    self->is_first = token.len == 0;
    return err == BAY_OK && token.len > 0 ? open_token(owner, token, &self->token, fault) : err;
}

void relay_list_fini(relay_list *self)
{
    buf_fini(&self->tasks);
    buf_fini(&self->token);
    *self = (relay_list){0};
}

void relay_list_ask(const relay_list *self, json_val params, buf *out)
{
    const bay_str ours[] = {page_token, page_size};
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    /* a size that is none of ours is the agent's to refuse */
    json_put_members(&writer, params, ours, self->size > 0 ? 2 : 1);
    if (self->size > 0) {
        json_key(&writer, page_size);
        json_put_uint(&writer, self->size - self->count);
    }
    if (self->token.len > 0) {
        json_key(&writer, page_token);
        json_put_str(&writer, buf_view(&self->token));
    }
    json_close_object(&writer);
}

static bool is_own(const relay_owner *owner, json_val task, arena *scratch)
{
    return json_is(json_get(task, STR("id")), JSON_STRING) &&
           relay_owner_admits(owner, A2A_GET_TASK, false, task, scratch);
}

bay_err relay_list_take(relay_list *self, const relay_owner *owner, json_val page, arena *scratch,
                        bool *out_is_done)
{
    int64_t size = 0;
    bay_str token = {"", 0};
    json_val tasks = json_get(page, STR("tasks"));
    json_val next = json_get(page, STR("nextPageToken"));
    if (!json_is(page, JSON_OBJECT)) {
        return BAY_PROTOCOL;
    }
    for (json_iter at = json_iter_of(tasks); json_next(&at);) {
        if (is_own(owner, at.value, scratch)) {
            if (self->tasks.len > 0) {
                buf_char(&self->tasks, ',');
            }
            buf_str(&self->tasks, json_raw(at.value));
            self->count++;
        }
    }
    bay_err err = json_is(next, JSON_STRING) ? json_str(next, scratch, &token) : BAY_OK;
    buf_clear(&self->token);
    buf_str(&self->token, token);
    if (self->size == 0) {
        bool has_size = json_int64(json_get(page, page_size), &size) == BAY_OK && size > 0;
        self->size = has_size && size <= PAGE_MOST ? (size_t)size : PAGE_DEFAULT;
    }
    self->rounds++;
    *out_is_done = token.len == 0 || self->count >= self->size || self->rounds >= RELAY_LIST_ROUNDS;
    err = err == BAY_OK ? self->tasks.err : err;
    return err == BAY_OK ? self->token.err : err;
}

bay_err relay_list_write(const relay_list *self, const relay_owner *owner, buf *out)
{
    json_writer writer;
    size_t known = self->count;
    if (!self->is_first || self->token.len > 0) {
        size_t all = relay_owner_tasks(owner);
        known = all > known ? all : known;
    }
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "tasks");
    json_open_array(&writer);
    if (self->tasks.len > 0) {
        json_put_raw(&writer, buf_view(&self->tasks));
    }
    json_close_array(&writer);
    json_key_lit(&writer, "nextPageToken");
    bay_err err = put_token(self, owner, &writer);
    json_key_lit(&writer, "pageSize");
    json_put_uint(&writer, self->size);
    json_key_lit(&writer, "totalSize");
    json_put_uint(&writer, known);
    json_close_object(&writer);
    return err == BAY_OK ? out->err : err;
}
