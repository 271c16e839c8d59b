#include "trust/lock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/canon.h"

enum { MEMORY_BYTES = 1 << 30 };

void trust_lock_init(trust_lock *self)
{
    *self = (trust_lock){0};
    arena_init(&self->memory, MEMORY_BYTES);
}

void trust_lock_fini(trust_lock *self)
{
    for (size_t i = 0; i < self->count; i++) {
        mem_free(self->servers[i].items);
    }
    mem_free(self->servers);
    arena_fini(&self->memory);
    *self = (trust_lock){0};
}

/* ---- servers --------------------------------------------------------------------------------- */

static int compare_server(bay_str name, bool is_agent, const trust_pinned *other)
{
    return is_agent != other->is_agent ? (int)is_agent - (int)other->is_agent
                                       : str_cmp(name, other->name);
}

/* Where it is, or belongs. */
static size_t place_of_server(const trust_lock *self, bay_str name, bool is_agent,
                              bool *out_is_there)
{
    size_t low = 0;
    size_t high = self->count;
    *out_is_there = false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare_server(name, is_agent, &self->servers[middle]);
        if (order == 0) {
            *out_is_there = true;
            return middle;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

trust_pinned *trust_lock_find(const trust_lock *self, bay_str name, bool is_agent)
{
    bool is_there = false;
    size_t at = place_of_server(self, name, is_agent, &is_there);
    return is_there ? &self->servers[at] : NULL;
}

bay_err trust_lock_enter(trust_lock *self, bay_str name, bool is_agent, trust_pinned **out)
{
    bool is_there = false;
    size_t at = place_of_server(self, name, is_agent, &is_there);
    if (!is_there) {
        trust_pinned made = {.is_agent = is_agent};
        if (self->count >= TRUST_LOCK_SERVERS) {
            return BAY_ERR_LIMIT;
        }
        if (self->count == self->cap) {
            size_t cap = self->cap == 0 ? 16 : 2 * self->cap;
            trust_pinned *servers = mem_resize(self->servers, cap * sizeof(*servers));
            if (servers == NULL) {
                return BAY_ERR_NOMEM;
            }
            self->servers = servers;
            self->cap = cap;
        }
        bay_err err = arena_dup(&self->memory, name, &made.name);
        if (err != BAY_OK) {
            return err;
        }
        memmove(&self->servers[at + 1], &self->servers[at],
                (self->count - at) * sizeof(*self->servers));
        self->servers[at] = made;
        self->count++;
    }
    *out = &self->servers[at];
    return BAY_OK;
}

/* ---- items ----------------------------------------------------------------------------------- */

static int compare_item(trust_kind kind, bay_str name, const trust_pin *other)
{
    return kind != other->kind ? (int)kind - (int)other->kind : str_cmp(name, other->name);
}

static size_t place_of_item(const trust_pinned *self, trust_kind kind, bay_str name,
                            bool *out_is_there)
{
    size_t low = 0;
    size_t high = self->count;
    *out_is_there = false;
    /* in a file they come in order: the end is looked at first */
    if (high > 0 && compare_item(kind, name, &self->items[high - 1]) > 0) {
        return high;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare_item(kind, name, &self->items[middle]);
        if (order == 0) {
            *out_is_there = true;
            return middle;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

trust_pin *trust_pinned_find(const trust_pinned *self, trust_kind kind, bay_str name)
{
    bool is_there = false;
    size_t at = place_of_item(self, kind, name, &is_there);
    return is_there ? &self->items[at] : NULL;
}

static bay_err copy_texts(trust_lock *self, bay_str *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bay_str text = texts[i]->at != NULL ? *texts[i] : (bay_str){"", 0};
        bay_err err = arena_dup(&self->memory, text, texts[i]);
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

static bay_err copy_pin(trust_lock *self, const trust_pin *from, trust_pin *out)
{
    bay_str *const texts[] = {&out->name, &out->canon, &out->seen, &out->approved, &out->by};
    *out = *from;
    return copy_texts(self, texts, ARRAY_LEN(texts));
}

/* Its identity, and who approved it. */
static bay_err copy_head(trust_lock *self, const trust_pinned *from, trust_pinned *out)
{
    bay_str *const texts[] = {&out->identity, &out->seen, &out->approved, &out->by};
    out->identity = from->identity;
    out->seen = from->seen;
    out->approved = from->approved;
    out->by = from->by;
    return copy_texts(self, texts, ARRAY_LEN(texts));
}

bay_err trust_lock_put(trust_lock *self, trust_pinned *server, const trust_pin *pin)
{
    bool is_there = false;
    trust_pin made;
    bay_err err = copy_pin(self, pin, &made);
    if (err != BAY_OK) {
        return err;
    }
    size_t at = place_of_item(server, pin->kind, pin->name, &is_there);
    if (is_there) {
        server->items[at] = made;
        return BAY_OK;
    }
    if (self->items >= TRUST_LOCK_ITEMS) {
        return BAY_ERR_LIMIT;
    }
    if (server->count == server->cap) {
        size_t cap = server->cap == 0 ? 16 : 2 * server->cap;
        trust_pin *items = mem_resize(server->items, cap * sizeof(*items));
        if (items == NULL) {
            return BAY_ERR_NOMEM;
        }
        server->items = items;
        server->cap = cap;
    }
    memmove(&server->items[at + 1], &server->items[at],
            (server->count - at) * sizeof(*server->items));
    server->items[at] = made;
    server->count++;
    self->items++;
    return BAY_OK;
}

void trust_pinned_remove(trust_lock *self, trust_pinned *server, trust_kind kind, bay_str name)
{
    bool is_there = false;
    size_t at = place_of_item(server, kind, name, &is_there);
    if (is_there) {
        memmove(&server->items[at], &server->items[at + 1],
                (server->count - at - 1) * sizeof(*server->items));
        server->count--;
        self->items--;
    }
}

bay_err trust_lock_compact(trust_lock *self)
{
    trust_lock made;
    bay_err err = BAY_OK;
    trust_lock_init(&made);
    made.file = self->file;
    for (size_t i = 0; err == BAY_OK && i < self->count; i++) {
        const trust_pinned *from = &self->servers[i];
        trust_pinned *to;
        err = trust_lock_enter(&made, from->name, from->is_agent, &to);
        err = err == BAY_OK ? copy_head(&made, from, to) : err;
        for (size_t k = 0; err == BAY_OK && k < from->count; k++) {
            err = trust_lock_put(&made, to, &from->items[k]);
        }
    }
    if (err != BAY_OK) {
        trust_lock_fini(&made);
        return err;
    }
    trust_lock_fini(self);
    *self = made;
    return BAY_OK;
}

/* ---- digests and times ----------------------------------------------------------------------- */

/* As it is written, but for the blanks between its tokens. */
static void put_compact(buf *out, bay_str text)
{
    bool is_text = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (is_text && c == '\\') {
            buf_str(out, str_head(str_from(text, i), 2));
            i++;
            continue;
        }
        is_text = c == '"' ? !is_text : is_text;
        if (is_text || (c != ' ' && c != '\t' && c != '\n' && c != '\r')) {
            buf_char(out, c);
        }
    }
}

bay_err trust_canon(json_val value, arena *memory, buf *out, char digest[DIGEST_TEXT_BYTES + 1])
{
    size_t start = out->len;
    arena_reset(memory);
    bay_err err = json_canon(out, value, memory, NULL);
    if (err == BAY_ERR_DUPLICATE || err == BAY_ERR_UTF8 || err == BAY_ERR_RANGE) {
        put_compact(out, json_raw(value));
        err = out->err;
    }
    return err == BAY_OK ? digest_sha256(str_from(buf_view(out), start), digest) : err;
}

void trust_time(int64_t seconds, char out[TRUST_TIME_BYTES + 1])
{
    time_t at = (time_t)seconds;
    struct tm parts;
    if (gmtime_r(&at, &parts) == NULL ||
        strftime(out, TRUST_TIME_BYTES + 1, "%Y-%m-%dT%H:%M:%SZ", &parts) != TRUST_TIME_BYTES) {
        memcpy(out, "1970-01-01T00:00:00Z", TRUST_TIME_BYTES + 1);
    }
}
