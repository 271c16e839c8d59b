/* The reader: one pass over the text validates it and writes the tape. No recursion: the entry of
 * an open container holds the container around it.
 *
 * The UTF-8 of the whole text is validated first. If it is ill-formed somewhere, the part before is
 * still read, so that the earlier of two errors is reported.
 *
 * The tape grows outside the arena (first on the stack, then on the heap, by doubling) and is
 * copied to the arena with its exact size: the arena's maximum counts only what the document needs.
 */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "json/json.h"
#include "json/scan.h"
#include "json/tape.h"

const json_limits json_default_limits = {64U << 20, 128, 4U << 20};
const json_limits json_any_depth = {64U << 20, 128 | JSON_MARK_DEPTH, 4U << 20};

enum { SCRATCH_ENTRIES = 128 };
static const uint32_t no_parent = UINT32_MAX;

typedef unsigned char byte;

typedef struct indexer {
    const byte *begin;
    const byte *end;
    const json_scan *scan;
    json_tape *tape;
    json_tape *heap; /* NULL while the tape is on the stack */
    uint32_t count;
    uint32_t cap;
    uint32_t max_values;
    uint32_t max_depth;
    bool marks_depth;
    bool is_deep;
    bay_err err;
    const char *what;
    const byte *where;
} indexer;

/* Notes the error; returns NULL, so that `return fail(…)` is one statement. */
__attribute__((cold, noinline)) static const byte *fail(indexer *self, bay_err err,
                                                        const byte *where, const char *what)
{
    self->err = err;
    self->where = where;
    self->what = what;
    return NULL;
}

static const byte *fail_end(indexer *self)
{
    return fail(self, BAY_ERR_SYNTAX, self->end, "the text ends too early");
}

/* Makes room for `needed` entries, of which `count` are filled in. */
__attribute__((cold, noinline)) static bool grow(indexer *self, uint32_t count, uint32_t needed,
                                                 const byte *at)
{
    if (needed > self->max_values) {
        fail(self, BAY_ERR_LIMIT, at, "too many values");
        return false;
    }
    uint64_t cap = (uint64_t)self->cap * 2;
    if (cap > self->max_values) {
        cap = self->max_values;
    }
    json_tape *heap = cap <= SIZE_MAX / sizeof(*heap)
                          ? mem_resize(self->heap, (size_t)cap * sizeof(*heap))
                          : NULL;
    if (heap == NULL) {
        fail(self, BAY_ERR_NOMEM, at, "no memory for the index");
        return false;
    }
    if (self->heap == NULL) {
        memcpy(heap, self->tape, count * sizeof(*heap));
    }
    self->tape = self->heap = heap;
    self->cap = (uint32_t)cap;
    return true;
}

static inline const byte *skip_space(const byte *at, const byte *end)
{
    if (at<end && * at> ' ') {
        return at;
    }
    for (;;) {
        while (end - at >= 8 && scan_load(at) == 0x2020202020202020U) {
            at += 8; /* indentation */
        }
        if (at == end || (*at != ' ' && *at != '\n' && *at != '\r' && *at != '\t')) {
            return at;
        }
        at++;
    }
}

static bool is_hex(byte c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* `at` is a backslash; returns the byte after the escape, or NULL. */
static inline const byte *skip_escape(indexer *self, const byte *at)
{
    if (self->end - at < 2) {
        return fail_end(self);
    }
    switch (at[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return at + 2;
    case 'u':
        break;
    default:
        return fail(self, BAY_ERR_SYNTAX, at + 1, "no such escape");
    }
    for (size_t i = 2; i < 6; i++) {
        if (at + i == self->end) {
            return fail_end(self);
        }
        if (!is_hex(at[i])) {
            return fail(self, BAY_ERR_SYNTAX, at + i, "a hexadecimal digit was expected");
        }
    }
    return at + 6;
}

/* Most keys and words end within sixteen bytes, which are searched before the vector loop is
 * called. */
static inline const byte *string_stop(const indexer *self, const byte *at)
{
    if (self->end - at >= 16) {
        unsigned stop = scan_stop_in_16(at);
        if (stop < 16) {
            return at + stop;
        }
        at += 16;
    }
    return self->scan->string(at, self->end);
}

/* `at` is the opening quote. Fills in the entry; returns the byte after the closing quote, or NULL.
 */
static inline const byte *index_string(indexer *self, const byte *at, json_tape *slot,
                                       uint32_t index)
{
    uint32_t head = JSON_STRING;
    const byte *stop = string_stop(self, at + 1);
    for (;;) {
        if (stop == self->end) {
            return fail_end(self);
        }
        if (*stop == '"') {
            break;
        }
        if (*stop != '\\') {
            return fail(self, BAY_ERR_SYNTAX, stop, "a control character inside a string");
        }
        stop = skip_escape(self, stop);
        if (stop == NULL) {
            return NULL;
        }
        head |= TAPE_ESCAPED;
        stop = self->scan->string(stop, self->end);
    }
    *slot = (json_tape){head, (uint32_t)(at - self->begin), (uint32_t)(stop + 1 - self->begin),
                        index + 1};
    return stop + 1;
}

static inline bool is_digit(const byte *at, const byte *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

static inline const byte *skip_digits(indexer *self, const byte *at)
{
    if (!is_digit(at, self->end)) {
        return at == self->end ? fail_end(self)
                               : fail(self, BAY_ERR_SYNTAX, at, "a digit was expected");
    }
    do {
        at++;
    } while (is_digit(at, self->end));
    return at;
}

/* The byte after the number at `at`, or NULL. */
static inline const byte *skip_number(indexer *self, const byte *at)
{
    if (*at == '-') {
        at++;
    }
    if (at < self->end && *at == '0') {
        at++;
        if (is_digit(at, self->end)) {
            return fail(self, BAY_ERR_SYNTAX, at, "a number with a leading zero");
        }
    } else {
        at = skip_digits(self, at);
    }
    if (at != NULL && at < self->end && *at == '.') {
        at = skip_digits(self, at + 1);
    }
    if (at != NULL && at < self->end && (*at | 0x20) == 'e') {
        at++;
        if (at < self->end && (*at == '+' || *at == '-')) {
            at++;
        }
        at = skip_digits(self, at);
    }
    return at;
}

static inline const byte *skip_word(indexer *self, const byte *at, const char *word, size_t len)
{
    if ((size_t)(self->end - at) >= len && memcmp(at, word, len) == 0) {
        return at + len;
    }
    size_t i = 0;
    while (at + i < self->end && at[i] == (byte)word[i]) {
        i++;
    }
    return at + i == self->end ? fail_end(self)
                               : fail(self, BAY_ERR_SYNTAX, at + i, "a value was expected");
}

/* A scalar. Fills in the entry; returns the byte after the value, or NULL. */
static inline const byte *index_scalar(indexer *self, const byte *at, json_tape *slot,
                                       uint32_t index)
{
    const byte *stop;
    json_kind kind;
    switch (*at) {
    case '"':
        return index_string(self, at, slot, index);
    case 't':
        kind = JSON_TRUE;
        stop = skip_word(self, at, "true", 4);
        break;
    case 'f':
        kind = JSON_FALSE;
        stop = skip_word(self, at, "false", 5);
        break;
    case 'n':
        kind = JSON_NULL;
        stop = skip_word(self, at, "null", 4);
        break;
    default:
        if (*at != '-' && !is_digit(at, self->end)) {
            return fail(self, BAY_ERR_SYNTAX, at, "a value was expected");
        }
        kind = JSON_NUMBER;
        stop = skip_number(self, at);
    }
    *slot = (json_tape){kind, (uint32_t)(at - self->begin),
                        stop != NULL ? (uint32_t)(stop - self->begin) : 0, index + 1};
    return stop;
}

/* The byte after the key's colon and the white space around it, or NULL. */
static inline const byte *index_key(indexer *self, const byte *at, json_tape *slot, uint32_t index)
{
    if (at == self->end) {
        return fail_end(self);
    }
    if (*at != '"') {
        return fail(self, BAY_ERR_SYNTAX, at, "a member's name was expected");
    }
    at = index_string(self, at, slot, index);
    if (at == NULL) {
        return NULL;
    }
    at = skip_space(at, self->end);
    if (at == self->end) {
        return fail_end(self);
    }
    if (*at != ':') {
        return fail(self, BAY_ERR_SYNTAX, at, "a colon was expected");
    }
    return skip_space(at + 1, self->end);
}

/* Reads one value at `at`; returns the byte after it, or NULL. */
static const byte *index_value(indexer *self, const byte *at)
{
    const byte *end = self->end;
    json_tape *tape = self->tape;
    uint32_t cap = self->cap;
    uint32_t count = 0;
    uint32_t depth = 0;
    uint32_t parent = no_parent;
    bool is_object = false;

    for (;;) {
        /* a member is next: in an object its name comes first */
        if (count + is_object >= cap) {
            if (!grow(self, count, count + is_object + 1, at)) {
                return NULL;
            }
            tape = self->tape;
            cap = self->cap;
        }
        if (is_object) {
            at = index_key(self, at, &tape[count], count);
            if (at == NULL) {
                return NULL;
            }
            count++;
        }
        if (at == end) {
            return fail_end(self);
        }
        if (*at == '{' || *at == '[') {
            if (depth >= self->max_depth) {
                self->is_deep = true;
                if (!self->marks_depth) {
                    return fail(self, BAY_ERR_DEPTH, at, "nested too deeply");
                }
            }
            depth++;
            is_object = *at == '{';
            tape[count] = (json_tape){is_object ? JSON_OBJECT : JSON_ARRAY,
                                      (uint32_t)(at - self->begin), 0, parent};
            parent = count++;
            at = skip_space(at + 1, end);
            if (at == end || *at != (is_object ? '}' : ']')) {
                continue;
            }
        } else {
            at = index_scalar(self, at, &tape[count], count);
            if (at == NULL) {
                return NULL;
            }
            count++;
            if (parent == no_parent) {
                break;
            }
            tape[parent].end++;
            at = skip_space(at, end);
        }
        /* after a member: every container that ends here, then a comma */
        while (at != end && *at == (is_object ? '}' : ']')) {
            at++;
            depth--;
            parent = json_tape_close(&tape[parent], (uint32_t)(at - self->begin), count);
            if (parent == no_parent) {
                self->count = count;
                return at;
            }
            tape[parent].end++;
            is_object = tape_kind(&tape[parent]) == JSON_OBJECT;
            at = skip_space(at, end);
        }
        if (at == end) {
            return fail_end(self);
        }
        if (*at != ',') {
            return fail(self, BAY_ERR_SYNTAX, at, "a comma or the container's end was expected");
        }
        at = skip_space(at + 1, end);
    }
    self->count = count;
    return at;
}

static bay_err index_text(indexer *self)
{
    const byte *at = index_value(self, skip_space(self->begin, self->end));
    if (at != NULL) {
        at = skip_space(at, self->end);
        if (at != self->end) {
            at = fail(self, BAY_ERR_SYNTAX, at, "something follows the value");
        }
    }
    return at != NULL ? BAY_OK : self->err;
}

/* Copies the index, with its exact size, to where the document lives. */
static bay_err reader_keep(const indexer *self, bay_str text, arena *memory, json_doc *out)
{
    size_t bytes = self->count * sizeof(json_tape);
    json_tape *tape = arena_alloc(memory, bytes);
    if (tape == NULL) {
        return memory->is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
    }
    memcpy(tape, self->tape, bytes);
    *out = (json_doc){text, tape, self->count, self->is_deep};
    return BAY_OK;
}

bay_err json_parse(json_doc *out, bay_str text, const json_limits *limits, arena *memory,
                   bay_diag *diag)
{
    if (limits == NULL) {
        limits = &json_default_limits;
    }
    if (text.len > limits->max_bytes || text.len >= UINT32_MAX) {
        size_t most = limits->max_bytes < UINT32_MAX ? limits->max_bytes : UINT32_MAX - 1U;
        return diag_at(diag, BAY_ERR_LIMIT, most, "the text is longer than %zu bytes", most);
    }
    json_tape scratch[SCRATCH_ENTRIES];
    const byte *begin = text.len > 0 ? (const byte *)text.at : (const byte *)"";
    const byte *end = begin + text.len;
    const json_scan *scan = json_scan_current();
    const byte *valid = scan->utf8(begin, end);
    indexer self = {
        .begin = begin,
        .end = valid,
        .scan = scan,
        .tape = scratch,
        .cap = limits->max_values < SCRATCH_ENTRIES ? limits->max_values : SCRATCH_ENTRIES,
        .max_values = limits->max_values,
        .max_depth = limits->max_depth & ~JSON_MARK_DEPTH,
        .marks_depth = (limits->max_depth & JSON_MARK_DEPTH) != 0,
    };
    bay_err err = index_text(&self);
    if (valid != end && (err == BAY_OK || (err == BAY_ERR_SYNTAX && self.where == valid))) {
        fail(&self, BAY_ERR_UTF8, valid, "invalid UTF-8");
        err = BAY_ERR_UTF8;
    }
    if (err != BAY_OK) {
        diag_at(diag, err, (size_t)(self.where - begin), "%s", self.what);
    } else {
        err = reader_keep(&self, text, memory, out);
        if (err != BAY_OK) {
            diag_at(diag, err, text.len, "no room for the index");
        }
    }
    mem_free(self.heap);
    return err;
}
