/* Writes a document together with its index. The entry of an open container has the same meaning as
 * in the reader: its `end` counts members, its `next` is the container around it. */
#include "json/build.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/index.h"
#include "json/tape.h"

enum { FIRST_ENTRIES = 64 };
static const uint32_t no_parent = UINT32_MAX;

json_writer *json_builder_init(json_builder *self, arena *memory, size_t max_bytes)
{
    *self = (json_builder){.index = {.parent = no_parent}, .memory = memory};
    buf_init(&self->text, max_bytes < UINT32_MAX ? max_bytes : UINT32_MAX - 1U);
    json_writer_init(&self->writer, &self->text);
    self->writer.index = &self->index;
    return &self->writer;
}

json_writer *json_builder_init_secret(json_builder *self, arena *memory, size_t max_bytes)
{
    (void)json_builder_init(self, memory, max_bytes);
    buf_init_secret(&self->text, self->text.max);
    json_writer_init(&self->writer, &self->text);
    self->writer.index = &self->index;
    return &self->writer;
}

static void note_error(buf *out, bay_err err)
{
    out->err = out->err == BAY_OK ? err : out->err;
}

/* Room for `more` entries; NULL without memory, or if the text has failed before. */
static json_tape *make_room(json_index *self, buf *out, size_t more)
{
    if (out->err != BAY_OK) {
        return NULL;
    }
    size_t most = json_default_limits.max_values;
    if (more > most - self->count) {
        note_error(out, BAY_ERR_LIMIT);
        return NULL;
    }
    if (self->count + more > self->cap) {
        size_t cap = self->cap > 0 ? self->cap : FIRST_ENTRIES;
        while (cap < self->count + more) {
            cap *= 2;
        }
        cap = cap < most ? cap : most;
        json_tape *tape = mem_resize(self->tape, cap * sizeof(*tape));
        if (tape == NULL) {
            note_error(out, BAY_ERR_NOMEM);
            return NULL;
        }
        self->tape = tape;
        self->cap = (uint32_t)cap;
    }
    return &self->tape[self->count];
}

/* Notes that the text from `start` to `end` is a token. Everything before it except a comma must
 * have been noted: text that bypasses the writer would make the index wrong. */
static void advance(json_index *self, size_t start, size_t end)
{
    CHECK(start >= self->at && start - self->at <= 1);
    self->at = end;
}

static void count_member(json_index *self)
{
    if (self->parent != no_parent) {
        self->tape[self->parent].end++;
    }
}

static json_kind kind_of(char first)
{
    switch (first) {
    case '"':
        return JSON_STRING;
    case 't':
        return JSON_TRUE;
    case 'f':
        return JSON_FALSE;
    case 'n':
        return JSON_NULL;
    default:
        return JSON_NUMBER;
    }
}

static void add_written(json_index *self, buf *out, size_t start)
{
    json_tape *entry = make_room(self, out, 1);
    if (entry == NULL) {
        return;
    }
    const char *at = out->at + start;
    uint32_t head = (uint32_t)kind_of(*at);
    if (head == JSON_STRING && memchr(at, '\\', out->len - start) != NULL) {
        head |= TAPE_ESCAPED;
    }
    advance(self, start, out->len);
    *entry = (json_tape){head, (uint32_t)start, (uint32_t)out->len, self->count + 1};
    self->count++;
}

void json_index_key(json_index *self, buf *out, size_t start)
{
    add_written(self, out, start);
    self->at++; /* the colon */
}

void json_index_value(json_index *self, buf *out, size_t start)
{
    add_written(self, out, start);
    count_member(self);
}

void json_index_open(json_index *self, buf *out, json_kind kind)
{
    json_tape *entry = make_room(self, out, 1);
    if (entry == NULL) {
        return;
    }
    advance(self, out->len, out->len + 1);
    *entry = (json_tape){(uint32_t)kind, (uint32_t)out->len, 0, self->parent};
    self->parent = self->count++;
}

void json_index_close(json_index *self, buf *out)
{
    if (out->err != BAY_OK) {
        return;
    }
    CHECK(self->parent != no_parent);
    advance(self, out->len - 1, out->len);
    json_tape *entry = &self->tape[self->parent];
    self->parent = json_tape_close(entry, (uint32_t)out->len, self->count);
    count_member(self);
}

/* Adds the entries from `at` on, up to the end of that value, for a copy of its text at `start`. */
static void add_copied(json_index *self, buf *out, json_val value, size_t start)
{
    const json_tape *from = &value.doc->tape[value.at];
    size_t count = from->next - value.at;
    size_t len = from->end - from->start;
    if (start > UINT32_MAX - 1 - len) {
        note_error(out, BAY_ERR_LIMIT);
        return;
    }
    json_tape *to = make_room(self, out, count);
    if (to == NULL) {
        return;
    }
    advance(self, start, start + len);
    json_tape_move(to, from, count, from->start - (uint32_t)start,
                   (uint32_t)value.at - self->count);
    self->count += (uint32_t)count;
    self->is_deep |= value.doc->is_deep;
}

void json_index_copy(json_index *self, buf *out, json_val value)
{
    if (value.doc == NULL) {
        note_error(out, BAY_ERR_TYPE);
        return;
    }
    add_copied(self, out, value, out->len);
    count_member(self);
}

void json_index_member(json_index *self, buf *out, json_val key)
{
    size_t value_at = out->len + json_raw(key).len + 1;
    add_copied(self, out, key, out->len);
    self->at++; /* the colon */
    add_copied(self, out, (json_val){key.doc, key.at + 1}, value_at);
    count_member(self);
}

void json_index_raw(json_index *self, buf *out, size_t start)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, SIZE_MAX);
    bay_err err = out->err;
    if (err == BAY_OK) {
        bay_str text = {out->at + start, out->len - start};
        err = json_parse(&doc, text, &json_any_depth, &memory, NULL);
    }
    if (err == BAY_OK) {
        /* includes the white space around the value */
        size_t value_at = start + json_offset(json_root(&doc));
        advance(self, start, value_at);
        add_copied(self, out, json_root(&doc), value_at);
        self->at = out->len;
        count_member(self);
    } else {
        note_error(out, err);
    }
    arena_fini(&memory);
}

void json_builder_drop(json_builder *self)
{
    mem_free(self->index.tape);
    buf_fini(&self->text);
    self->index = (json_index){.parent = no_parent};
}

bay_err json_builder_view(json_builder *self, json_val *out)
{
    const json_index *index = &self->index;
    if (self->text.err != BAY_OK) {
        return self->text.err;
    }
    bool is_whole = index->count > 0 && index->parent == no_parent && !self->writer.after_key &&
                    index->tape[0].next == index->count;
    if (!is_whole) { /* nothing, two values, or an open container */
        return BAY_ERR_SYNTAX;
    }
    self->doc = (json_doc){buf_view(&self->text), index->tape, index->count, index->is_deep};
    *out = json_root(&self->doc);
    return BAY_OK;
}

bay_err json_builder_end(json_builder *self, json_val *out)
{
    json_val made;
    bay_err err = json_builder_view(self, &made);
    if (err == BAY_OK) {
        err = json_clone_in(made, self->memory, out);
        err = err == BAY_ERR_NOMEM && self->memory->is_full ? BAY_ERR_LIMIT : err;
    }
    json_builder_drop(self);
    return err;
}

/* What was written so far, as a document whose containers may be open. */
static json_doc partial(const json_builder *self)
{
    const json_index *index = &self->index;
    return (json_doc){buf_view(&self->text), index->tape, index->count, index->is_deep};
}

void json_put_partial(json_writer *to, const json_builder *from)
{
    const json_doc doc = partial(from);
    uint32_t parent = from->index.parent;
    if (from->text.err != BAY_OK) {
        note_error(to->out, from->text.err);
    }
    if (from->text.err != BAY_OK || parent == no_parent) {
        return;
    }
    uint32_t before = tape_kind(&doc.tape[parent]) == JSON_OBJECT ? 1 : 0; /* the key */
    for (uint32_t at = parent + 1; at < doc.count; at = doc.tape[at + before].next) {
        if (before > 0) {
            json_key_val(to, (json_val){&doc, at});
        }
        json_put_val(to, (json_val){&doc, at + before});
    }
}

size_t json_builder_clone_bytes(const json_builder *self)
{
    return sizeof(json_doc) + self->index.count * sizeof(json_tape) + self->text.len;
}

json_val json_builder_get(json_builder *self, bay_str key)
{
    self->doc = partial(self);
    bool is_open = self->text.err == BAY_OK && self->index.parent != no_parent;
    for (uint32_t at = self->index.parent + 1; is_open && at < self->doc.count;
         at = self->doc.tape[at + 1].next) {
        if (json_str_eq((json_val){&self->doc, at}, key)) {
            return (json_val){&self->doc, at + 1};
        }
    }
    return JSON_NONE;
}

json_val json_empty_object(void)
{
    static const json_tape tape[] = {{JSON_OBJECT, 0, 2, 1}};
    static const json_doc doc = {{"{}", 2}, tape, 1, false};
    return json_root(&doc);
}
