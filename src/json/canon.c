/* RFC 8785, without recursion. Two numbers belong to each entry of the tape. `after`: of a key, the
 * next key in sorted order (0: none); of an object, its first key in that order. `parent`: where
 * writing continues after a value: of a member's value its key, of an element its array. */
#include "json/canon.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "json/tape.h"

typedef struct named {
    bay_str name;
    uint32_t at;
} named;

typedef struct canon {
    buf *out;
    const json_doc *doc;
    uint32_t root;
    uint32_t *after; /* both indexed from the root */
    uint32_t *parent;
    arena *memory;
    bay_diag *diag;
} canon;

/* UTF-16 order equals UTF-8 order except for surrogate pairs: characters that need a pair (f0 to
 * f4) precede U+E000 to U+FFFF (ee, ef). */
static int utf16_rank(unsigned char c)
{
    if (c >= 0xf0) {
        return c - 2;
    }
    return c >= 0xee ? c + 7 : c;
}

static int compare_names(const void *a, const void *b)
{
    bay_str left = ((const named *)a)->name;
    bay_str right = ((const named *)b)->name;
    size_t len = left.len < right.len ? left.len : right.len;
    for (size_t i = 0; i < len; i++) {
        if (left.at[i] != right.at[i]) {
            return utf16_rank((unsigned char)left.at[i]) - utf16_rank((unsigned char)right.at[i]);
        }
    }
    return left.len < right.len ? -1 : left.len > right.len;
}

static bay_err fail_at(const canon *self, bay_err err, uint32_t at)
{
    return diag_at(self->diag, err, self->doc->tape[at].start, "not canonical: %s",
                   bay_err_text(err));
}

/* Chains the members of an object in the order of their names. */
static bay_err sort_members(canon *self, uint32_t object)
{
    size_t count = json_count((json_val){self->doc, object});
    self->after[object - self->root] = 0;
    if (count == 0) {
        return BAY_OK;
    }
    named *members = arena_array(self->memory, count, sizeof(*members));
    if (members == NULL) {
        return fail_at(self, self->memory->is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM, object);
    }
    size_t i = 0;
    for (json_iter it = json_iter_of((json_val){self->doc, object}); json_next(&it); i++) {
        members[i].at = it.key.at;
        bay_err err = json_str(it.key, self->memory, &members[i].name);
        if (err != BAY_OK) {
            return fail_at(self, err, it.key.at);
        }
    }
    qsort(members, count, sizeof(*members), compare_names);
    uint32_t before = object;
    for (i = 0; i < count; i++) {
        if (i > 0 && str_eq(members[i].name, members[i - 1].name)) {
            uint32_t second = members[i].at > before ? members[i].at : before;
            return fail_at(self, BAY_ERR_DUPLICATE, second);
        }
        self->after[before - self->root] = members[i].at;
        before = members[i].at;
    }
    self->after[before - self->root] = 0;
    return BAY_OK;
}

static bay_err put_string(canon *self, uint32_t at)
{
    bay_str text;
    bay_err err = json_str((json_val){self->doc, at}, self->memory, &text);
    if (err != BAY_OK) {
        return fail_at(self, err, at);
    }
    json_quote(self->out, text);
    return BAY_OK;
}

static bay_err put_number(canon *self, uint32_t at)
{
    double number;
    bay_err err = json_double((json_val){self->doc, at}, &number);
    if (err != BAY_OK) {
        return fail_at(self, err, at);
    }
    json_writer writer;
    json_writer_init(&writer, self->out);
    json_put_double(&writer, number == 0 ? 0 : number); /* -0 is written 0 */
    return BAY_OK;
}

/* Writes a key and its colon; its value is next. */
static bay_err put_key(canon *self, uint32_t key, uint32_t *out_value)
{
    bay_err err = put_string(self, key);
    buf_char(self->out, ':');
    self->parent[key + 1 - self->root] = key;
    *out_value = key + 1;
    return err;
}

/* Writes a scalar, or the beginning of a container. *out_next: the value to continue with, or `at`
 * itself if this value is complete. */
static bay_err put_value(canon *self, uint32_t at, uint32_t *out_next)
{
    const json_tape *entry = &self->doc->tape[at];
    json_kind kind = tape_kind(entry);
    *out_next = at;
    if (kind == JSON_STRING) {
        return put_string(self, at);
    }
    if (kind == JSON_NUMBER) {
        return put_number(self, at);
    }
    if (kind == JSON_ARRAY && entry->next > at + 1) {
        buf_char(self->out, '[');
        self->parent[at + 1 - self->root] = at;
        *out_next = at + 1;
        return BAY_OK;
    }
    if (kind != JSON_OBJECT) {
        buf_str(self->out, kind == JSON_ARRAY ? STR("[]") : json_raw((json_val){self->doc, at}));
        return BAY_OK;
    }
    bay_err err = sort_members(self, at);
    uint32_t first = self->after[at - self->root];
    buf_char(self->out, '{');
    if (err != BAY_OK || first == 0) {
        buf_char(self->out, '}');
        return err;
    }
    self->parent[first - self->root] = at; /* hence every sorted key finds its object */
    return put_key(self, first, out_next);
}

/* After the complete value `at`: continues with its next sibling, or closes containers until one
 * has more. *out_next is the root at the end. */
static bay_err go_on(canon *self, uint32_t at, uint32_t *out_next)
{
    const json_tape *tape = self->doc->tape;
    while (at != self->root) {
        uint32_t above = self->parent[at - self->root];
        if (tape_kind(&tape[above]) == JSON_ARRAY) {
            if (tape[at].next < tape[above].next) {
                buf_char(self->out, ',');
                self->parent[tape[at].next - self->root] = above;
                *out_next = tape[at].next;
                return BAY_OK;
            }
            buf_char(self->out, ']');
            at = above;
            continue;
        }
        uint32_t key = self->after[above - self->root];
        uint32_t object = self->parent[above - self->root];
        if (key != 0) {
            buf_char(self->out, ',');
            self->parent[key - self->root] = object;
            return put_key(self, key, out_next);
        }
        buf_char(self->out, '}');
        at = object;
    }
    *out_next = self->root;
    return BAY_OK;
}

static bay_err put_all(canon *self)
{
    uint32_t at = self->root;
    for (;;) {
        uint32_t next;
        bay_err err = put_value(self, at, &next);
        if (err == BAY_OK && next == at) {
            err = go_on(self, at, &next);
            if (err == BAY_OK && next == self->root) {
                return self->out->err;
            }
        }
        if (err != BAY_OK || self->out->err != BAY_OK) {
            return err != BAY_OK ? err : self->out->err;
        }
        at = next;
    }
}

bay_err json_canon(buf *out, json_val value, arena *memory, bay_diag *diag)
{
    if (value.doc == NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "there is no value");
    }
    if (out->err != BAY_OK) {
        return out->err;
    }
    size_t count = value.doc->tape[value.at].next - value.at;
    size_t len = out->len;
    canon self = {.out = out, .doc = value.doc, .root = value.at, .memory = memory, .diag = diag};
    self.after = arena_array(memory, count, sizeof(uint32_t));
    self.parent = arena_array(memory, count, sizeof(uint32_t));
    if (self.after == NULL || self.parent == NULL) {
        return diag_set(diag, memory->is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM,
                        "no memory to sort members");
    }
    bay_err err = put_all(&self);
    if (err != BAY_OK) {
        out->len = len;
    }
    return err;
}
