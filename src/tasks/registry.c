#include "tasks/registry.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

static bool has_anything(const task_registry *self)
{
    return !list_is_empty(&self->by_age) || self->result_requests.len > 0;
}

static void registry_tick(void *argument)
{
    task_registry *self = argument;
    task_registry_expire(self, loop_time_ms());
    task_result_requests_expire(self, loop_now_ms(self->loop));
    if (has_anything(self)) {
        err_ignore(loop_timer_start(self->loop, &self->tick, TASK_TICK_MS)); /* or the next call */
    }
}

void task_registry_wake(task_registry *self)
{
    if (self->loop != NULL && self->tick.heap_index == 0) {
        err_ignore(loop_timer_start(self->loop, &self->tick, TASK_TICK_MS)); /* likewise */
    }
}

bay_err task_registry_new(loop *on, uint32_t answer_ms, task_registry **out)
{
    task_registry *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = on;
    self->answer_ms = answer_ms;
    map_init(&self->entries, TASK_ENTRIES);
    map_init(&self->owners, TASK_ENTRIES);
    map_init(&self->result_requests, TASK_RESULT_REQUESTS);
    list_init(&self->by_age);
    list_init(&self->cancels);
    loop_timer_init(&self->tick, registry_tick, self);
    *out = self;
    return BAY_OK;
}

void task_registry_free(task_registry *self)
{
    if (self == NULL) {
        return;
    }
    if (self->loop != NULL) {
        loop_timer_stop(self->loop, &self->tick);
    }
    task_result_requests_expire(self, UINT64_MAX);
    task_registry_expire(self, UINT64_MAX);
    task_cancels_end(self);
    map_fini(&self->entries);
    map_fini(&self->owners);
    map_fini(&self->result_requests);
    mem_free(self);
}

/* ---- entries --------------------------------------------------------------------------------- */

static bay_str identity_of(const task_owner *owner)
{
    return (bay_str){owner->identity, owner->len};
}

static void owner_leave(task_registry *self, task_owner *owner)
{
    if (owner->count == 0) {
        map_remove(&self->owners, identity_of(owner));
        mem_free(owner);
    }
}

static void entry_drop_kept(task_registry *self, task_entry *entry)
{
    self->kept_bytes -= entry->kept_bytes;
    entry->owner->kept_bytes -= entry->kept_bytes;
    mem_free(entry->kept);
    entry->kept = NULL;
    entry->kept_bytes = 0;
}

void task_entry_remove(task_registry *self, task_entry *entry)
{
    task_owner *owner = entry->owner;
    map_remove(&self->entries, entry->token);
    list_remove(&entry->by_owner);
    list_remove(&entry->by_age);
    entry_drop_kept(self, entry);
    owner->count--;
    mem_free(entry->shown);
    mem_free(entry->progress_token);
    mem_free(entry);
    owner_leave(self, owner);
}

static task_entry *oldest_of(const task_owner *owner)
{
    return CONTAINER_OF(list_first(&owner->entries), task_entry, by_owner);
}

static bay_err owner_get(task_registry *self, bay_str identity, task_owner **out)
{
    task_owner *owner = map_get(&self->owners, identity);
    if (owner != NULL) {
        *out = owner;
        return BAY_OK;
    }
    owner = mem_zalloc(sizeof(*owner) + identity.len);
    if (owner == NULL) {
        return BAY_ERR_NOMEM;
    }
    list_init(&owner->entries);
    owner->len = identity.len;
    if (identity.len > 0) {
        memcpy(owner->identity, identity.at, identity.len);
    }
    bay_err err = map_put(&self->owners, identity_of(owner), owner, NULL);
    if (err != BAY_OK) {
        mem_free(owner);
        return err;
    }
    *out = owner;
    return BAY_OK;
}

bay_err task_entry_add(task_registry *self, bay_str identity, bay_str token, uint64_t ttl_ms,
                       uint64_t now_ms, task_entry **out)
{
    task_owner *owner = NULL;
    task_registry_expire(self, now_ms);
    bay_err err = owner_get(self, identity, &owner);
    if (err != BAY_OK) {
        return err;
    }
    task_entry *entry = mem_zalloc(sizeof(*entry) + token.len);
    if (entry == NULL) {
        owner_leave(self, owner);
        return BAY_ERR_NOMEM;
    }
    char *bytes = (char *)(entry + 1);
    memcpy(bytes, token.at, token.len);
    entry->token = (bay_str){bytes, token.len};
    err = map_put(&self->entries, entry->token, entry, NULL);
    if (err != BAY_OK) {
        mem_free(entry);
        owner_leave(self, owner);
        return err;
    }
    entry->number = ++self->last_entry;
    entry->owner = owner;
    entry->expires_at_ms = now_ms + (ttl_ms < TASK_MAX_TTL_MS ? ttl_ms : TASK_MAX_TTL_MS);
    list_push(&owner->entries, &entry->by_owner);
    list_push(&self->by_age, &entry->by_age);
    owner->count++;
    if (owner->count > TASK_ENTRIES_EACH) {
        task_entry_remove(self, oldest_of(owner));
    }
    task_registry_wake(self);
    *out = entry;
    return BAY_OK;
}

bay_err task_entry_show(task_entry *self, bay_str shown)
{
    if (shown.len > TASK_ENTRY_BYTES) {
        return BAY_ERR_LIMIT;
    }
    char *copy = mem_dup(shown.at, shown.len);
    if (copy == NULL) {
        return BAY_ERR_NOMEM;
    }
    mem_free(self->shown);
    self->shown = copy;
    self->shown_len = (uint32_t)shown.len;
    return BAY_OK;
}

bay_err task_entry_follow(task_entry *self, uint64_t progress_of, bay_str progress_token)
{
    char *copy = mem_dup(progress_token.at, progress_token.len);
    if (copy == NULL) {
        return BAY_ERR_NOMEM;
    }
    mem_free(self->progress_token);
    self->progress_token = copy;
    self->progress_of = progress_of;
    return BAY_OK;
}

bay_err task_entry_keep(task_registry *self, task_entry *entry, json_val kept, bool is_failure)
{
    size_t bytes = json_clone_bytes(kept);
    task_owner *owner = entry->owner;
    if (bytes > TASK_KEPT_EACH || bytes > TASK_KEPT_BYTES - self->kept_bytes) {
        return BAY_ERR_LIMIT;
    }
    json_doc *copy = NULL;
    bay_err err = json_clone(kept, &copy);
    if (err != BAY_OK) {
        return err;
    }
    /* its own older results are removed; others' are not */
    while (owner->kept_bytes + bytes > TASK_KEPT_EACH && oldest_of(owner) != entry) {
        task_entry_remove(self, oldest_of(owner));
    }
    entry_drop_kept(self, entry);
    entry->kept = copy;
    entry->kept_bytes = bytes;
    entry->is_own = true;
    entry->is_failure = is_failure;
    owner->kept_bytes += bytes;
    self->kept_bytes += bytes;
    return BAY_OK;
}

task_entry *task_entry_find(const task_registry *self, bay_str identity, bay_str token)
{
    task_entry *entry = self != NULL ? map_get(&self->entries, token) : NULL;
    return entry != NULL && str_eq(identity_of(entry->owner), identity) ? entry : NULL;
}

void task_registry_expire(task_registry *self, uint64_t now_ms)
{
    LIST_EACH(link, &self->by_age)
    {
        task_entry *entry = CONTAINER_OF(link, task_entry, by_age);
        if (entry->expires_at_ms <= now_ms) {
            task_entry_remove(self, entry);
        }
    }
}

/* ---- tasks/list ------------------------------------------------------------------------------ */

/* A cursor is the number of the last listed task. */
static bay_err read_cursor(json_val cursor, uint64_t *out)
{
    bay_str text;
    *out = 0;
    if (json_is(cursor, JSON_MISSING)) {
        return BAY_OK;
    }
    bool is_ours = json_str_plain(cursor, &text) && str_starts(text, STR("t")) &&
                   str_uint(str_from(text, 1), out);
    return is_ours ? BAY_OK : BAY_ERR_INVALID;
}

bay_err task_registry_list(const task_registry *self, bay_str identity, json_val cursor, buf *out)
{
    uint64_t after;
    bay_err err = read_cursor(cursor, &after);
    if (err != BAY_OK) {
        return err;
    }
    task_owner *owner = self != NULL ? map_get(&self->owners, identity) : NULL;
    size_t count = 0;
    bool has_more = false;
    buf_lit(out, "\"tasks\":[");
    list_link *link = owner != NULL ? list_first(&owner->entries) : NULL;
    for (; link != NULL && link != &owner->entries.head; link = link->next) {
        const task_entry *entry = CONTAINER_OF(link, task_entry, by_owner);
        if (entry->number <= after || entry->shown_len == 0) {
            continue;
        }
        has_more = count == TASK_LIST_PAGE;
        if (has_more) {
            break;
        }
        if (count++ > 0) {
            buf_char(out, ',');
        }
        buf_append(out, entry->shown, entry->shown_len);
        after = entry->number;
    }
    buf_char(out, ']');
    if (has_more) {
        buf_lit(out, ",\"nextCursor\":\"t");
        buf_uint(out, after);
        buf_char(out, '"');
    }
    return out->err;
}
