/* ListTasks through a relay: what proxy_owner.h says of a page. */
#include "agents/proxy_owner.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    PAGE_DEFAULT = 50,
    PAGE_MOST = 1000,
    TOKEN_BYTES = 16 << 10,
    TOKEN_MS = 3600 * 1000,
    BOUND_BYTES = PRINCIPAL_KEY_BYTES + 4096,
    LIST_BYTES = 256 << 20, /* of the tasks of one page, with their indexes */
};

static const bay_str page_size = STR_INIT("pageSize");
static const bay_str page_token = STR_INIT("pageToken");

/* ---- tokens ---------------------------------------------------------------------------------- */

static const seal_ring *ring_of(const agents_proxy_owner *self)
{
    return self->ring != NULL ? *self->ring : NULL;
}

/* Whose it is and at which agent. */
static bay_err write_bound(const agents_proxy_owner *owner, buf *out)
{
    buf_lit(out, "list-tasks");
    buf_char(out, '\0');
    buf_str(out, owner->agent);
    buf_char(out, '\0');
    buf_str(out, principal_identity(owner->principal));
    return out->err;
}

static bay_err open_token(const agents_proxy_owner *owner, bay_str token, buf *out,
                          a2a_fault *fault)
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
    return err == BAY_OK || err == BAY_ERR_NOMEM
               ? err
               : a2a_fault_set(fault, A2A_E_INVALID_PARAMS,
                               "pageToken: not one of this list, or too old; begin again without");
}

static bay_err put_token(const agents_proxy_list *self, const agents_proxy_owner *owner,
                         json_writer *out)
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

bay_err agents_proxy_list_init(agents_proxy_list *self, const agents_proxy_owner *owner,
                               json_val params, arena *memory, a2a_fault *fault)
{
    int64_t size = 0;
    bay_str token = {"", 0};
    json_val given = json_get(params, page_token);
    *self = (agents_proxy_list){0};
    buf_init(&self->tasks, a2a_json_limits.max_bytes);
    buf_init(&self->token, TOKEN_BYTES);
    if (json_int64(json_get(params, page_size), &size) == BAY_OK && size > 0 && size <= PAGE_MOST) {
        self->size = (size_t)size;
    }
    bay_err err = json_is(given, JSON_STRING) ? json_str(given, memory, &token) : BAY_OK;
    self->is_first = token.len == 0;
    return err == BAY_OK && token.len > 0 ? open_token(owner, token, &self->token, fault) : err;
}

static json_doc *task_at(const agents_proxy_list *self, size_t at)
{
    json_doc *task;
    memcpy(&task, self->tasks.at + at, sizeof(task));
    return task;
}

static bay_err keep_task(agents_proxy_list *self, json_val task)
{
    json_doc *kept;
    size_t bytes = json_clone_bytes(task);
    if (bytes > LIST_BYTES - self->bytes) {
        return BAY_ERR_LIMIT;
    }
    if (!buf_reserve(&self->tasks, sizeof(kept))) {
        return self->tasks.err;
    }
    bay_err err = json_clone(task, &kept);
    if (err == BAY_OK) {
        buf_append(&self->tasks, &kept, sizeof(kept));
        self->bytes += bytes;
        self->count++;
    }
    return err;
}

void agents_proxy_list_fini(agents_proxy_list *self)
{
    for (size_t i = 0; i < self->tasks.len; i += sizeof(json_doc *)) {
        mem_free(task_at(self, i));
    }
    buf_fini(&self->tasks);
    buf_fini(&self->token);
    *self = (agents_proxy_list){0};
}

void agents_proxy_list_ask(const agents_proxy_list *self, json_val params, json_writer *out)
{
    const bay_str ours[] = {page_token, page_size};
    json_open_object(out);
    /* a size that is none of ours is the agent's to refuse */
    json_put_members(out, params, ours, self->size > 0 ? 2 : 1);
    if (self->size > 0) {
        json_key(out, page_size);
        json_put_uint(out, self->size - self->count);
    }
    if (self->token.len > 0) {
        json_key(out, page_token);
        json_put_str(out, buf_view(&self->token));
    }
    json_close_object(out);
}

static bool is_own(const agents_proxy_owner *owner, json_val task, arena *scratch)
{
    return json_is(json_get(task, STR("id")), JSON_STRING) &&
           agents_proxy_owner_admits(owner, A2A_GET_TASK, false, task, scratch);
}

bay_err agents_proxy_list_take(agents_proxy_list *self, const agents_proxy_owner *owner,
                               json_val page, arena *scratch, bool *out_is_done)
{
    int64_t size = 0;
    bay_str token = {"", 0};
    json_val tasks = json_get(page, STR("tasks"));
    json_val next = json_get(page, STR("nextPageToken"));
    if (!json_is(page, JSON_OBJECT)) {
        return BAY_ERR_PROTOCOL;
    }
    bay_err err = json_is(next, JSON_STRING) ? json_str(next, scratch, &token) : BAY_OK;
    for (json_iter at = json_iter_of(tasks); err == BAY_OK && json_next(&at);) {
        err = is_own(owner, at.value, scratch) ? keep_task(self, at.value) : BAY_OK;
    }
    buf_clear(&self->token);
    buf_str(&self->token, token);
    if (self->size == 0) {
        bool has_size = json_int64(json_get(page, page_size), &size) == BAY_OK && size > 0;
        self->size = has_size && size <= PAGE_MOST ? (size_t)size : PAGE_DEFAULT;
    }
    self->rounds++;
    *out_is_done = token.len == 0 || self->count >= self->size || self->rounds >= PROXY_LIST_ROUNDS;
    return err == BAY_OK ? self->token.err : err;
}

bay_err agents_proxy_list_write(const agents_proxy_list *self, const agents_proxy_owner *owner,
                                json_writer *out)
{
    size_t known = self->count;
    if (!self->is_first || self->token.len > 0) {
        size_t all = agents_proxy_owner_tasks(owner);
        known = all > known ? all : known;
    }
    json_open_object(out);
    json_key_lit(out, "tasks");
    json_open_array(out);
    for (size_t i = 0; i < self->tasks.len; i += sizeof(json_doc *)) {
        json_put_val(out, json_root(task_at(self, i)));
    }
    json_close_array(out);
    json_key_lit(out, "nextPageToken");
    bay_err err = put_token(self, owner, out);
    json_key_lit(out, "pageSize");
    json_put_uint(out, self->size);
    json_key_lit(out, "totalSize");
    json_put_uint(out, known);
    json_close_object(out);
    return err == BAY_OK ? out->out->err : err;
}
