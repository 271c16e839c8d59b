#include "tasks/book.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

static bool has_anything(const task_book *self)
{
    return !list_is_empty(&self->by_age) || self->holders.len > 0;
}

static void book_tick(void *argument)
{
    task_book *self = argument;
    task_book_expire(self, loop_time_ms());
    task_holders_expire(self, loop_now_ms(self->loop));
    if (has_anything(self)) {
        err_ignore(loop_timer_start(self->loop, &self->tick, TASK_TICK_MS)); /* the next one does */
    }
}

void task_book_wake(task_book *self)
{
    if (self->loop != NULL && self->tick.heap_index == 0) {
        err_ignore(loop_timer_start(self->loop, &self->tick, TASK_TICK_MS)); /* as above */
    }
}

bay_err task_book_new(loop *on, uint32_t answer_ms, task_book **out)
{
    task_book *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    self->loop = on;
    self->answer_ms = answer_ms;
    map_init(&self->notes, TASK_NOTES);
    map_init(&self->owners, TASK_NOTES);
    map_init(&self->holders, TASK_HOLDERS);
    list_init(&self->by_age);
    list_init(&self->farewells);
    loop_timer_init(&self->tick, book_tick, self);
    *out = self;
    return BAY_OK;
}

void task_book_free(task_book *self)
{
    if (self == NULL) {
        return;
    }
    if (self->loop != NULL) {
        loop_timer_stop(self->loop, &self->tick);
    }
    task_holders_expire(self, UINT64_MAX);
    task_book_expire(self, UINT64_MAX);
    task_farewells_end(self);
    map_fini(&self->notes);
    map_fini(&self->owners);
    map_fini(&self->holders);
    mem_free(self);
}

/* ---- notes ----------------------------------------------------------------------------------- */

static bay_str identity_of(const task_owner *owner)
{
    return (bay_str){owner->identity, owner->len};
}

static void owner_leave(task_book *self, task_owner *owner)
{
    if (owner->count == 0) {
        map_remove(&self->owners, identity_of(owner));
        mem_free(owner);
    }
}

static void note_drop_kept(task_book *self, task_note *note)
{
    self->kept_bytes -= note->kept_len;
    note->owner->kept_bytes -= note->kept_len;
    mem_free(note->kept);
    note->kept = NULL;
    note->kept_len = 0;
}

void task_note_remove(task_book *self, task_note *note)
{
    task_owner *owner = note->owner;
    map_remove(&self->notes, note->token);
    list_remove(&note->by_owner);
    list_remove(&note->by_age);
    note_drop_kept(self, note);
    owner->count--;
    mem_free(note->shown);
    mem_free(note->progress_token);
    mem_free(note);
    owner_leave(self, owner);
}

static task_note *oldest_of(const task_owner *owner)
{
    return CONTAINER_OF(list_first(&owner->notes), task_note, by_owner);
}

static bay_err owner_get(task_book *self, bay_str identity, task_owner **out)
{
    task_owner *owner = map_get(&self->owners, identity);
    if (owner != NULL) {
        *out = owner;
        return BAY_OK;
    }
    owner = mem_zalloc(sizeof(*owner) + identity.len);
    if (owner == NULL) {
        return BAY_NOMEM;
    }
    list_init(&owner->notes);
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

bay_err task_note_add(task_book *self, bay_str identity, bay_str token, uint64_t ttl_ms,
                      uint64_t now_ms, task_note **out)
{
    task_owner *owner = NULL;
    task_book_expire(self, now_ms);
    bay_err err = owner_get(self, identity, &owner);
    if (err != BAY_OK) {
        return err;
    }
    task_note *note = mem_zalloc(sizeof(*note) + token.len);
    if (note == NULL) {
        owner_leave(self, owner);
        return BAY_NOMEM;
    }
    char *bytes = (char *)(note + 1);
    memcpy(bytes, token.at, token.len);
    note->token = (bay_str){bytes, token.len};
    err = map_put(&self->notes, note->token, note, NULL);
    if (err != BAY_OK) {
        mem_free(note);
        owner_leave(self, owner);
        return err;
    }
    note->number = ++self->last_note;
    note->owner = owner;
    note->expires_at_ms = now_ms + (ttl_ms < TASK_MAX_TTL_MS ? ttl_ms : TASK_MAX_TTL_MS);
    list_push(&owner->notes, &note->by_owner);
    list_push(&self->by_age, &note->by_age);
    owner->count++;
    if (owner->count > TASK_NOTES_EACH) {
        task_note_remove(self, oldest_of(owner));
    }
    task_book_wake(self);
    *out = note;
    return BAY_OK;
}

bay_err task_note_show(task_note *self, bay_str shown)
{
    if (shown.len > TASK_NOTE_BYTES) {
        return BAY_LIMIT;
    }
    char *copy = mem_dup(shown.at, shown.len);
    if (copy == NULL) {
        return BAY_NOMEM;
    }
    mem_free(self->shown);
    self->shown = copy;
    self->shown_len = (uint32_t)shown.len;
    return BAY_OK;
}

bay_err task_note_follow(task_note *self, uint64_t progress_of, bay_str progress_token)
{
    char *copy = mem_dup(progress_token.at, progress_token.len);
    if (copy == NULL) {
        return BAY_NOMEM;
    }
    mem_free(self->progress_token);
    self->progress_token = copy;
    self->progress_of = progress_of;
    return BAY_OK;
}

bay_err task_note_keep(task_book *self, task_note *note, bay_str kept, bool is_failure)
{
    task_owner *owner = note->owner;
    if (kept.len > TASK_KEPT_EACH || kept.len > TASK_KEPT_BYTES - self->kept_bytes) {
        return BAY_LIMIT;
    }
    char *copy = mem_dup(kept.at, kept.len);
    if (copy == NULL) {
        return BAY_NOMEM;
    }
    /* its own older results make room; nobody else's do */
    while (owner->kept_bytes + kept.len > TASK_KEPT_EACH && oldest_of(owner) != note) {
        task_note_remove(self, oldest_of(owner));
    }
    note_drop_kept(self, note);
    note->kept = copy;
    note->kept_len = kept.len;
    note->is_own = true;
    note->is_failure = is_failure;
    owner->kept_bytes += kept.len;
    self->kept_bytes += kept.len;
    return BAY_OK;
}

task_note *task_note_find(const task_book *self, bay_str identity, bay_str token)
{
    task_note *note = self != NULL ? map_get(&self->notes, token) : NULL;
    return note != NULL && str_eq(identity_of(note->owner), identity) ? note : NULL;
}

void task_book_expire(task_book *self, uint64_t now_ms)
{
    LIST_EACH(link, &self->by_age)
    {
        task_note *note = CONTAINER_OF(link, task_note, by_age);
        if (note->expires_at_ms <= now_ms) {
            task_note_remove(self, note);
        }
    }
}

/* ---- tasks/list ------------------------------------------------------------------------------ */

/* A cursor is the number of the last task shown. */
static bay_err read_cursor(json_val cursor, uint64_t *out)
{
    bay_str text;
    *out = 0;
    if (json_is(cursor, JSON_MISSING)) {
        return BAY_OK;
    }
    bool is_ours = json_str_plain(cursor, &text) && str_starts(text, STR("t")) &&
                   str_uint(str_from(text, 1), out);
    return is_ours ? BAY_OK : BAY_INVALID;
}

bay_err task_book_list(const task_book *self, bay_str identity, json_val cursor, buf *out)
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
    list_link *link = owner != NULL ? list_first(&owner->notes) : NULL;
    for (; link != NULL && link != &owner->notes.head; link = link->next) {
        const task_note *note = CONTAINER_OF(link, task_note, by_owner);
        if (note->number <= after || note->shown_len == 0) {
            continue;
        }
        has_more = count == TASK_LIST_PAGE;
        if (has_more) {
            break;
        }
        if (count++ > 0) {
            buf_char(out, ',');
        }
        buf_append(out, note->shown, note->shown_len);
        after = note->number;
    }
    buf_char(out, ']');
    if (has_more) {
        buf_lit(out, ",\"nextCursor\":\"t");
        buf_uint(out, after);
        buf_char(out, '"');
    }
    return out->err;
}
