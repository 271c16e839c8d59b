/* The lock as text. A definition is broken into lines where a reviewer would: one a member or
 * element of a container that does not fit into one, and within texts behind each line end of
 * theirs. */
#include <string.h>

#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"
#include "trust/lock.h"
#include "json/writer.h"

enum { INLINE_BYTES = 72, INDENT = 6, MOST_DEPTH = 60 };

typedef struct layout {
    buf *out;
    bay_str text;
    uint32_t *lengths; /* of the containers of `text`, in the order in which they open */
    size_t next;
    size_t depth;
    uint64_t is_broken; /* one bit a level, the innermost the lowest */
    bool is_as_written;
} layout;

static void put_margin(buf *out, size_t spaces)
{
    static const char blanks[] = "                                                                ";
    while (spaces > 0) {
        size_t len = spaces < sizeof(blanks) - 1 ? spaces : sizeof(blanks) - 1;
        buf_append(out, blanks, len);
        spaces -= len;
    }
}

static void begin_line(layout *self)
{
    put_margin(self->out, INDENT);
    buf_lit(self->out, "| ");
    put_margin(self->out, 2 * (self->depth < MOST_DEPTH ? self->depth : MOST_DEPTH));
}

static void break_line(layout *self)
{
    buf_char(self->out, '\n');
    begin_line(self);
}

/* The bytes of each container, in one pass. False: out of memory. */
static bool measure(layout *self)
{
    size_t count = 0;
    bool is_text = false;
    for (size_t i = 0; i < self->text.len; i++) {
        char c = self->text.at[i];
        if (is_text && c == '\\') {
            i++;
        } else if (c == '"') {
            is_text = !is_text;
        } else if (!is_text && (c == '{' || c == '[')) {
            count++;
        }
    }
    self->lengths = mem_array(2 * count + 1, sizeof(*self->lengths));
    if (self->lengths == NULL) {
        return false;
    }
    uint32_t *stack = self->lengths + count; /* of those that are open */
    size_t depth = 0;
    size_t number = 0;
    uint32_t *starts = mem_array(count + 1, sizeof(*starts));
    for (size_t i = 0; starts != NULL && i < self->text.len; i++) {
        char c = self->text.at[i];
        if (is_text && c == '\\') {
            i++;
        } else if (c == '"') {
            is_text = !is_text;
        } else if (!is_text && (c == '{' || c == '[')) {
            starts[number] = (uint32_t)i;
            stack[depth++] = (uint32_t)number++;
        } else if (!is_text && (c == '}' || c == ']') && depth > 0) {
            uint32_t opened = stack[--depth];
            self->lengths[opened] = (uint32_t)i - starts[opened] + 1;
        }
    }
    bool is_good = starts != NULL;
    mem_free(starts);
    return is_good;
}

/* Text of a JSON string; a character that does not show as its escape, which the canonical form
 * never has. */
static void put_shown(buf *out, bay_str text)
{
    size_t start = 0;
    for (size_t at = 0; at < text.len;) {
        uint32_t code = (unsigned char)text.at[at];
        size_t len = code < 0x80 ? 1 : shown_decode(str_from(text, at), &code);
        if (code >= 0x80 && shown_is_hidden(code)) {
            buf_append(out, text.at + start, at - start);
            if (code > 0xffff) {
                buf_printf(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
                           0xdc00 + ((code - 0x10000) & 0x3ff));
            } else {
                buf_printf(out, "\\u%04x", code);
            }
            start = at + len;
        }
        at += len;
    }
    buf_append(out, text.at + start, text.len - start);
}

static void put_quoted(buf *out, bay_str text)
{
    buf quoted;
    buf_init(&quoted, 6 * text.len + 2);
    json_quote(&quoted, text);
    if (quoted.err != BAY_OK) {
        out->err = quoted.err;
    } else {
        put_shown(out, buf_view(&quoted));
    }
    buf_fini(&quoted);
}

static void put_piece(layout *self, size_t from, size_t to)
{
    bay_str piece = str_head(str_from(self->text, from), to - from);
    if (self->is_as_written) {
        buf_str(self->out, piece);
    } else {
        put_shown(self->out, piece);
    }
}

/* The text at `at`, with its quotes; broken behind each \n in it. Returns where it ends. */
static size_t put_text(layout *self, size_t at)
{
    size_t start = at++;
    while (at < self->text.len && self->text.at[at] != '"') {
        if (self->text.at[at] != '\\') {
            at++;
            continue;
        }
        bool is_line_end = at + 1 < self->text.len && self->text.at[at + 1] == 'n';
        bool is_last = at + 2 < self->text.len && self->text.at[at + 2] == '"';
        at += 2;
        if (is_line_end && !is_last) {
            put_piece(self, start, at);
            buf_char(self->out, '\n');
            put_margin(self->out, INDENT);
            buf_lit(self->out, "|>");
            start = at;
        }
    }
    at = at < self->text.len ? at + 1 : at;
    put_piece(self, start, at);
    return at;
}

static void open_container(layout *self, char c)
{
    bool is_long = self->lengths[self->next++] > INLINE_BYTES && self->depth < MOST_DEPTH;
    buf_char(self->out, c);
    self->is_broken = self->is_broken << 1 | is_long;
    self->depth++;
    if (is_long) {
        break_line(self);
    }
}

static void close_container(layout *self, char c)
{
    bool was_broken = (self->is_broken & 1) != 0;
    self->is_broken >>= 1;
    self->depth = self->depth > 0 ? self->depth - 1 : 0;
    if (was_broken) {
        break_line(self);
    }
    buf_char(self->out, c);
}

/* Levels beyond what the bits hold stay in the line of the level above them. */
static void put_definition(buf *out, bay_str text, bool is_as_written)
{
    layout self = {.out = out, .text = text, .is_as_written = is_as_written};
    size_t beyond = 0;
    if (!measure(&self)) {
        out->err = BAY_ERR_NOMEM;
        mem_free(self.lengths);
        return;
    }
    begin_line(&self);
    for (size_t at = 0; at < text.len;) {
        char c = text.at[at];
        if (c == '"') {
            at = put_text(&self, at);
            continue;
        }
        if ((c == '{' || c == '[') && self.depth >= MOST_DEPTH) {
            beyond++;
            self.next++;
            buf_char(out, c);
        } else if (c == '{' || c == '[') {
            open_container(&self, c);
        } else if ((c == '}' || c == ']') && beyond > 0) {
            beyond--;
            buf_char(out, c);
        } else if (c == '}' || c == ']') {
            close_container(&self, c);
        } else {
            buf_char(out, c);
            if (c == ',' && beyond == 0 && (self.is_broken & 1) != 0) {
                break_line(&self);
            }
        }
        at++;
    }
    buf_char(out, '\n');
    mem_free(self.lengths);
}

static void put_approval(buf *out, const char *margin, bay_str seen, bay_str approved, bay_str by)
{
    if (seen.len > 0) {
        buf_printf(out, "%sseen %.*s\n", margin, BAY_STR(seen));
    }
    if (approved.len > 0) {
        buf_printf(out, "%sapproved %.*s by ", margin, BAY_STR(approved));
        put_quoted(out, by);
        buf_char(out, '\n');
    }
}

/* Escapes that the canonical form has not: it has none, and the text counts as it is written. */
static bool has_escapes(bay_str text)
{
    for (size_t i = 0; i + 5 < text.len; i++) {
        if (text.at[i] != '\\') {
            continue;
        }
        i++;
        if (text.at[i] == 'u' && !(text.at[i + 1] == '0' && text.at[i + 2] == '0')) {
            return true;
        }
        if (text.at[i] == 'u' && text.at[i + 3] > '7') {
            return true;
        }
    }
    return false;
}

static void put_item(buf *out, const trust_pin *pin)
{
    bool is_named = pin->kind != TRUST_INSTRUCTIONS && pin->kind != TRUST_CARD;
    bool is_as_written = has_escapes(pin->canon);
    buf_printf(out, "\n  %s ", trust_kind_text(pin->kind));
    if (is_named) {
        put_quoted(out, pin->name);
        buf_char(out, ' ');
    }
    buf_printf(out, "%s%s\n", pin->digest, is_as_written ? " as-written" : "");
    put_approval(out, "    ", pin->seen, pin->approved, pin->by);
    put_definition(out, pin->canon, is_as_written);
}

void trust_lock_write(const trust_lock *self, buf *out)
{
    buf_printf(out, "patchbay.lock %d\n", TRUST_LOCK_VERSION);
    buf_lit(out, "# What servers and agents said of themselves when it was recorded or approved.\n"
                 "# `patchbay pin review` changes it; see guide/trust.md.\n");
    for (size_t i = 0; i < self->count; i++) {
        const trust_pinned *server = &self->servers[i];
        buf_printf(out, "\n%s ", server->is_agent ? "agent" : "server");
        put_quoted(out, server->name);
        buf_char(out, '\n');
        if (server->identity.len > 0) {
            buf_lit(out, "  identity ");
            put_quoted(out, server->identity);
            buf_char(out, '\n');
        }
        put_approval(out, "  ", server->seen, server->approved, server->by);
        for (size_t k = 0; k < server->count && out->err == BAY_OK; k++) {
            put_item(out, &server->items[k]);
        }
    }
}
