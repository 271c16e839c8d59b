/* A diff as text and as JSON. */
#include "base/err.h"
#include "base/shown.h"
#include "base/str.h"
#include "trust/diff.h"
#include "json/writer.h"

enum {
    KEPT_BYTES = 60,    /* shown of a piece that stayed, at either end of it */
    VALUE_BYTES = 300,  /* of a value that is no text */
    SHOWN_PIECES = 400, /* of one text */
};

static void put_line(buf *out, bay_str text)
{
    shown_append(out, text, SHOWN_LINE);
}

/* Cut between two characters. */
static bay_str head(bay_str text, size_t most)
{
    size_t len = text.len < most ? text.len : most;
    while (len > 0 && len < text.len && ((unsigned char)text.at[len] & 0xc0) == 0x80) {
        len--;
    }
    return str_head(text, len);
}

static bay_str tail(bay_str text, size_t most)
{
    size_t at = text.len > most ? text.len - most : 0;
    while (at < text.len && ((unsigned char)text.at[at] & 0xc0) == 0x80) {
        at++;
    }
    return str_from(text, at);
}

static void put_kept(buf *out, bay_str text, bool is_first, bool is_last)
{
    if (text.len <= 2 * KEPT_BYTES + 4) {
        put_line(out, text);
        return;
    }
    if (!is_first) {
        put_line(out, head(text, KEPT_BYTES));
    }
    buf_lit(out, "…");
    if (!is_last) {
        put_line(out, tail(text, KEPT_BYTES));
    }
}

static void put_words(buf *out, json_val before, json_val after, arena *memory)
{
    bay_str was = {"", 0};
    bay_str is = {"", 0};
    trust_piece *pieces;
    size_t count;
    if ((!json_is(before, JSON_MISSING) && json_str(before, memory, &was) != BAY_OK) ||
        (!json_is(after, JSON_MISSING) && json_str(after, memory, &is) != BAY_OK) ||
        trust_words(was, is, memory, &pieces, &count) != BAY_OK) {
        return;
    }
    buf_lit(out, "        ");
    for (size_t i = 0; i < count && i < SHOWN_PIECES; i++) {
        bay_str text = pieces[i].text;
        if (pieces[i].kind == TRUST_KEPT) {
            put_kept(out, text, i == 0, i + 1 == count);
            continue;
        }
        bay_str inner = text;
        while (inner.len > 0 && inner.at[inner.len - 1] == ' ') {
            inner.len--;
        }
        buf_str(out, pieces[i].kind == TRUST_CUT ? STR("[-") : STR("{+"));
        put_line(out, inner);
        buf_str(out, pieces[i].kind == TRUST_CUT ? STR("-]") : STR("+}"));
        buf_str(out, inner.len < text.len ? STR(" ") : STR(""));
    }
    buf_str(out, count > SHOWN_PIECES ? STR("…\n") : STR("\n"));
}

static void put_value(buf *out, const char *before, json_val value)
{
    bay_str raw = json_raw(value);
    if (!json_is(value, JSON_MISSING)) {
        buf_printf(out, "        %s ", before);
        put_line(out, head(raw, VALUE_BYTES));
        buf_str(out, raw.len > VALUE_BYTES ? STR("…\n") : STR("\n"));
    }
}

static bool is_text(json_val value)
{
    return json_is(value, JSON_STRING);
}

static void put_change(buf *out, const trust_change *change, arena *memory)
{
    buf_printf(out, "    %-10s ", trust_class_text(change->class));
    put_line(out, change->pointer.len > 0 ? change->pointer : STR("-"));
    buf_lit(out, ": ");
    put_line(out, change->why);
    buf_char(out, '\n');
    if (change->how == TRUST_CHANGED && is_text(change->before) && is_text(change->after)) {
        put_words(out, change->before, change->after, memory);
    } else if (change->pointer.len > 0) {
        put_value(out, "-", change->before);
        put_value(out, "+", change->after);
    }
}

static bool is_same_item(const trust_change *a, const trust_change *b)
{
    return a->kind == b->kind && str_eq(a->item, b->item);
}

static void put_heading(buf *out, const trust_change *change)
{
    bool is_whole = change->pointer.len == 0;
    buf_printf(out, "%s %s",
               !is_whole || change->how == TRUST_CHANGED ? "~"
               : change->how == TRUST_ADDED              ? "+"
                                                         : "-",
               trust_kind_text(change->kind));
    buf_str(out, change->item.len > 0 ? STR(" ") : STR(""));
    put_line(out, change->item);
    buf_char(out, '\n');
}

void trust_diff_write_changes(const trust_diff *self, buf *out)
{
    arena memory;
    arena_init(&memory, TRUST_TEXT_BYTES);
    for (size_t i = 0; i < self->count; i++) {
        if (i == 0 || !is_same_item(&self->changes[i], &self->changes[i - 1])) {
            put_heading(out, &self->changes[i]);
        }
        put_change(out, &self->changes[i], &memory);
        arena_reset(&memory);
    }
    arena_fini(&memory);
}

void trust_diff_write_text(const trust_diff *self, buf *out)
{
    trust_diff_write_changes(self, out);
    if (self->worst == TRUST_SAME) {
        buf_lit(out, "no difference\n");
    } else {
        buf_printf(out, "%zu breaking, %zu risk, %zu review, %zu compatible",
                   self->counts[TRUST_BREAKING], self->counts[TRUST_RISK],
                   self->counts[TRUST_REVIEW], self->counts[TRUST_COMPATIBLE]);
        if (self->dropped > 0) {
            buf_printf(out, "; %zu are not shown", self->dropped);
        }
        buf_char(out, '\n');
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_text(json_writer *out, const char *key, bay_str text)
{
    json_key(out, str_of(key));
    json_put_str(out, text);
}

static void put_json_words(json_writer *out, const trust_change *change, arena *memory)
{
    static const char *const names[] = {
        [TRUST_KEPT] = "kept", [TRUST_CUT] = "cut", [TRUST_PUT] = "put"};
    bay_str was;
    bay_str is;
    trust_piece *pieces;
    size_t count;
    if (json_str(change->before, memory, &was) != BAY_OK ||
        json_str(change->after, memory, &is) != BAY_OK ||
        trust_words(was, is, memory, &pieces, &count) != BAY_OK) {
        return;
    }
    json_key_lit(out, "words");
    json_open_array(out);
    for (size_t i = 0; i < count; i++) {
        json_open_object(out);
        put_text(out, names[pieces[i].kind], pieces[i].text);
        json_close_object(out);
    }
    json_close_array(out);
}

static void put_json_change(json_writer *out, const trust_change *change, arena *memory)
{
    static const char *const hows[] = {
        [TRUST_ADDED] = "added", [TRUST_REMOVED] = "removed", [TRUST_CHANGED] = "changed"};
    json_open_object(out);
    put_text(out, "class", str_of(trust_class_text(change->class)));
    put_text(out, "how", str_of(hows[change->how]));
    put_text(out, "kind", str_of(trust_kind_text(change->kind)));
    put_text(out, "item", change->item);
    put_text(out, "pointer", change->pointer);
    put_text(out, "why", change->why);
    if (!json_is(change->before, JSON_MISSING)) {
        json_key_lit(out, "before");
        json_put_val(out, change->before);
    }
    if (!json_is(change->after, JSON_MISSING)) {
        json_key_lit(out, "after");
        json_put_val(out, change->after);
    }
    if (is_text(change->before) && is_text(change->after)) {
        put_json_words(out, change, memory);
    }
    json_close_object(out);
}

static void put_patch(json_writer *out, const trust_change *of, const trust_definitions *before,
                      const trust_definitions *after)
{
    const trust_item *was = trust_definitions_find(before, of->kind, of->item);
    const trust_item *is = trust_definitions_find(after, of->kind, of->item);
    if (was == NULL || is == NULL) {
        return; /* the whole of it came or went */
    }
    json_open_object(out);
    put_text(out, "kind", str_of(trust_kind_text(of->kind)));
    put_text(out, "item", of->item);
    json_key_lit(out, "patch");
    bay_err err = trust_patch(was->value, is->value, out);
    if (err != BAY_OK && out->out->err == BAY_OK) {
        out->out->err = err;
    }
    json_close_object(out);
}

void trust_diff_write_json(const trust_diff *self, const trust_definitions *before,
                           const trust_definitions *after, buf *out)
{
    json_writer writer;
    arena memory;
    arena_init(&memory, TRUST_TEXT_BYTES);
    json_writer_init(&writer, out);
    json_open_object(&writer);
    put_text(&writer, "class", str_of(trust_class_text(self->worst)));
    json_key_lit(&writer, "counts");
    json_open_object(&writer);
    for (trust_class class = TRUST_COMPATIBLE; class < TRUST_CLASSES; class ++) {
        json_key(&writer, str_of(trust_class_text(class)));
        json_put_uint(&writer, self->counts[class]);
    }
    json_close_object(&writer);
    json_key_lit(&writer, "changes");
    json_open_array(&writer);
    for (size_t i = 0; i < self->count; i++) {
        put_json_change(&writer, &self->changes[i], &memory);
        arena_reset(&memory);
    }
    json_close_array(&writer);
    json_key_lit(&writer, "patches");
    json_open_array(&writer);
    for (size_t i = 0; i < self->count; i++) {
        if (i == 0 || !is_same_item(&self->changes[i], &self->changes[i - 1])) {
            put_patch(&writer, &self->changes[i], before, after);
        }
    }
    json_close_array(&writer);
    json_close_object(&writer);
    arena_fini(&memory);
}
