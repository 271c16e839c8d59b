#include "mcp/shape.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "json/walk.h"

/* ---- the tables ------------------------------------------------------------------------------ */

enum {
    Z = 1 << JSON_NULL,
    B = 1 << JSON_FALSE | 1 << JSON_TRUE,
    N = 1 << JSON_NUMBER,
    S = 1 << JSON_STRING,
    A = 1 << JSON_ARRAY,
    O = 1 << JSON_OBJECT,
};

/* Kinds of values beside the shapes. */
enum {
    MCP_SHAPE_CONTENT = MCP_SHAPE_COUNT, /* by its `type` */
    MCP_SHAPE_TEXTS,                     /* strings */
    MCP_SHAPE_VALUES_INPUT_REQUEST,      /* each member has that shape */
};

typedef struct member {
    const char *name;
    uint8_t len;
    uint8_t kinds;
    uint8_t shape;
    uint8_t since;
    uint8_t until;
    bool is_deep; /* its kind does not decide */
    const char *words;
} member;

/* The shapes' members one after the other; a row without a name begins a shape: its first `kinds`
 * members are required, and one of the next `shape`. */
static const member rows[] = {
#define SHAPE(symbol, needed, any) {NULL, 0, needed, any, 0, 0, false, NULL},
#define MEMBER(name, kinds, shape, words, since, until)                                            \
    {name,                                                                                         \
     sizeof(name) - 1,                                                                             \
     kinds,                                                                                        \
     MCP_SHAPE_##shape,                                                                            \
     MCP_REV_##since,                                                                              \
     MCP_REV_##until,                                                                              \
     (int)MCP_SHAPE_##shape != 0 || sizeof(words) > 1,                                             \
     words},
#define KIND(type, symbol)
#define RESULT(method, symbol)
#include "mcp/shapes.def"
#undef SHAPE
#undef MEMBER
#undef KIND
#undef RESULT
    {NULL, 0, 0, 0, 0, 0, false, NULL},
};

#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)

/* Where each shape begins in `rows`. */
enum {
#define SHAPE(symbol, needed, any) ROW_##symbol,
#define MEMBER(name, kinds, shape, words, since, until) JOIN(ROW_OF_LINE_, __LINE__),
#define KIND(type, symbol)
#define RESULT(method, symbol)
#include "mcp/shapes.def"
#undef SHAPE
#undef MEMBER
#undef KIND
#undef RESULT
};

static const uint8_t starts[MCP_SHAPE_COUNT] = {
#define SHAPE(symbol, needed, any) [MCP_SHAPE_##symbol] = ROW_##symbol,
#define MEMBER(name, kinds, shape, words, since, until)
#define KIND(type, symbol)
#define RESULT(method, symbol)
#include "mcp/shapes.def"
#undef SHAPE
#undef KIND
#undef RESULT
#define SHAPE(symbol, needed, any)
#define RESULT(method, symbol)
};

static const struct {
    bay_str type;
    uint8_t shape;
} content_kinds[] = {
#define KIND(type, symbol) {STR_INIT(type), MCP_SHAPE_##symbol},
#include "mcp/shapes.def"
#undef KIND
#undef RESULT
#define KIND(type, symbol)
};

static const uint8_t results[MCP_METHOD_COUNT] = {
#define RESULT(method, symbol) [MCP_##method] = MCP_SHAPE_##symbol,
#include "mcp/shapes.def"
#undef SHAPE
#undef MEMBER
#undef KIND
#undef RESULT
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) < 256, "a row's number fits a byte");

/* ---- faults ---------------------------------------------------------------------------------- */

/* The path to a value, from the inside out; on the stack of the walk. */
typedef struct step {
    const struct step *up; /* NULL: the value that was checked */
    uint32_t key;          /* place of a member's name in an object; 0: an array's element */
    uint32_t index;
} step;

typedef struct walk {
    const json_doc *doc;
    mcp_revision_id revision;
    mcp_shape_fault *fault;
} walk;

static void write_step(buf *out, bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        buf_str(out, c == '~' ? STR("~0") : c == '/' ? STR("~1") : (bay_str){&c, 1});
    }
}

static void write_place(const walk *self, buf *out, const step *at)
{
    bay_str name;
    if (at->up == NULL) {
        return;
    }
    write_place(self, out, at->up);
    buf_char(out, '/');
    if (at->key != 0) {
        (void)json_walk_text(self->doc, at->key, &name);
        write_step(out, name); /* escapes are kept */
    } else {
        buf_uint(out, at->index);
    }
}

/* `name`: of a member of the value at `at`, or "". Always returns false. */
__attribute__((cold, noinline)) static bool shape_fails(const walk *self, const step *at,
                                                        bay_str name, const char *text)
{
    mcp_shape_fault *out = self->fault;
    buf place = {.at = out->place, .cap = MCP_PLACE_BYTES - 1, .max = MCP_PLACE_BYTES - 1};
    write_place(self, &place, at);
    if (name.len > 0) {
        buf_char(&place, '/');
        write_step(&place, name);
    }
    out->place[place.len] = '\0';
    (void)snprintf(out->text, sizeof(out->text), "%s", text);
    return false;
}

__attribute__((cold, noinline)) static bool kind_fails(const walk *self, const step *up,
                                                       uint32_t key, unsigned kinds)
{
    static const struct {
        unsigned kinds;
        const char *text;
    } texts[] = {
        {S, "must be a string"}, {B, "must be true or false"},
        {N, "must be a number"}, {N | Z, "must be a number or null"},
        {A, "must be an array"}, {O | A, "must be an object or an array"},
    };
    const step at = {.up = up, .key = key};
    const char *text = "must be an object";
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        text = texts[i].kinds == kinds ? texts[i].text : text;
    }
    return shape_fails(self, key != 0 ? &at : up, STR(""), text);
}

/* ---- the walk --------------------------------------------------------------------------------
 * Places instead of values, and a step only where the walk descends or fails: every result of every
 * call goes through here. */

static json_val value_at(const walk *self, uint32_t place)
{
    return (json_val){self->doc, place};
}

static inline bool is_of(const walk *self, uint32_t place, unsigned kinds)
{
    return (1u << json_walk_kind(self->doc, place) & kinds) != 0;
}

static bool is_word(json_val value, const char *words)
{
    bay_str rest = str_of(words);
    while (rest.len > 0) {
        size_t len = str_find(rest, '|');
        if (json_str_eq(value, str_head(rest, len))) {
            return true;
        }
        rest = str_from(rest, len + 1);
    }
    return words[0] == '\0';
}

static bool object_holds(const walk *self, unsigned shape, uint32_t place, const step *at);

static unsigned shape_of_content(const walk *self, uint32_t place)
{
    bay_str text;
    uint32_t end = json_walk_after(self->doc, place);
    uint32_t at = place + 1;
    while (at < end && !(json_walk_text(self->doc, at, &text) && json_walk_same(text, "type", 4))) {
        at = json_walk_after(self->doc, at + 1);
    }
    /* a type or text with escapes matches no type; anything but a string fails there */
    if (at >= end || !is_of(self, at + 1, S) || !json_walk_text(self->doc, at + 1, &text)) {
        return MCP_SHAPE_ANY_CONTENT;
    }
    for (size_t i = 0; i < ARRAY_LEN(content_kinds); i++) {
        if (json_walk_same(text, content_kinds[i].type.at, content_kinds[i].type.len)) {
            return content_kinds[i].shape;
        }
    }
    return MCP_SHAPE_ANY_CONTENT;
}

/* {"type":"text","text":…}, the form of nearly all content: it satisfies its row. */
static inline bool is_bare_text(const walk *self, uint32_t place)
{
    const json_doc *doc = self->doc;
    bay_str type, name, key;
    return json_walk_after(doc, place) == place + 5 &&
           json_walk_kind(doc, place + 4) == JSON_STRING && json_walk_text(doc, place + 1, &type) &&
           json_walk_same(type, "type", 4) && json_walk_kind(doc, place + 2) == JSON_STRING &&
           json_walk_text(doc, place + 2, &name) && json_walk_same(name, "text", 4) &&
           json_walk_text(doc, place + 3, &key) && json_walk_same(key, "text", 4);
}

/* An object of one shape, however the shape is selected. */
static bool one_holds(const walk *self, unsigned shape, uint32_t place, const step *at)
{
    if (!is_of(self, place, O)) {
        return kind_fails(self, at, 0, O);
    }
    if (shape == MCP_SHAPE_CONTENT && is_bare_text(self, place)) {
        return true;
    }
    return object_holds(self, shape == MCP_SHAPE_CONTENT ? shape_of_content(self, place) : shape,
                        place, at);
}

static bool texts_hold(const walk *self, const char *words, uint32_t place, const step *at)
{
    uint32_t end = json_walk_after(self->doc, place);
    step next = {.up = at};
    for (uint32_t one = place + 1; one < end; one++, next.index++) {
        if (!is_of(self, one, S)) {
            return kind_fails(self, &next, 0, S);
        }
        if (!is_word(value_at(self, one), words)) {
            return shape_fails(self, &next, STR(""), "is none of the values it may have");
        }
    }
    return true;
}

/* The elements of an array, or the values of an object. */
static bool each_holds(const walk *self, unsigned shape, uint32_t place, const step *at)
{
    uint32_t end = json_walk_after(self->doc, place);
    bool is_object = is_of(self, place, O);
    step next = {.up = at};
    for (uint32_t one = place + 1; one < end; one = json_walk_after(self->doc, one)) {
        if (is_object) {
            next.key = one++;
        }
        if (!one_holds(self, shape, one, &next)) {
            return false;
        }
        next.index++;
    }
    return true;
}

/* Checks that the kind does not decide: the content, or one of several words. */
__attribute__((noinline)) static bool inside_holds(const walk *self, const member *row,
                                                   uint32_t key, const step *up)
{
    uint32_t place = key + 1;
    step at = {.up = up, .key = key};
    switch (row->shape) {
    case MCP_SHAPE_NONE:
        return is_word(value_at(self, place), row->words) ||
               shape_fails(self, &at, STR(""), "is none of the values it may have");
    case MCP_SHAPE_TEXTS:
        return texts_hold(self, row->words, place, &at);
    case MCP_SHAPE_VALUES_INPUT_REQUEST:
        return each_holds(self, MCP_SHAPE_INPUT_REQUEST, place, &at);
    default:
        return is_of(self, place, A) ? each_holds(self, row->shape, place, &at)
                                     : one_holds(self, row->shape, place, &at);
    }
}

/* A name with escapes, which is rare. */
__attribute__((cold, noinline)) static const member *row_of_escaped(const walk *self,
                                                                    const member *row, uint32_t key)
{
    while (row->name != NULL && !json_str_eq(value_at(self, key), (bay_str){row->name, row->len})) {
        row++;
    }
    return row;
}

/* The row of the member whose name is at `key`, or the row after the last. */
static inline const member *row_of(const walk *self, const member *row, uint32_t key)
{
    bay_str name;
    if (!json_walk_text(self->doc, key, &name)) {
        return row_of_escaped(self, row, key);
    }
    while (row->name != NULL && !json_walk_same(name, row->name, row->len)) {
        row++;
    }
    return row;
}

/* Reports a required member that is missing. */
__attribute__((cold, noinline)) static bool lacks(const walk *self, const member *head,
                                                  uint32_t seen, const step *at)
{
    const member *first = head + 1;
    for (size_t i = 0; i < head->kinds; i++) {
        bool is_due = first[i].since <= self->revision && first[i].until >= self->revision;
        if (is_due && (seen & 1u << i) == 0) {
            return !shape_fails(self, at, (bay_str){first[i].name, first[i].len}, "is missing");
        }
    }
    uint32_t any = ((1u << head->shape) - 1) << head->kinds;
    if (any != 0 && (seen & any) == 0) {
        char text[MCP_SHAPE_TEXT_BYTES];
        (void)snprintf(text, sizeof(text), "has neither %s nor %s", first[head->kinds].name,
                       first[head->kinds + 1].name);
        return !shape_fails(self, at, STR(""), text);
    }
    return false;
}

static bool object_holds(const walk *self, unsigned shape, uint32_t place, const step *at)
{
    const member *head = &rows[starts[shape]];
    uint32_t end = json_walk_after(self->doc, place);
    uint32_t seen = 0;
    for (uint32_t key = place + 1; key < end; key = json_walk_after(self->doc, key + 1)) {
        const member *row = row_of(self, head + 1, key);
        if (row->name == NULL || row->since > self->revision || row->until < self->revision) {
            continue;
        }
        seen |= 1u << (row - head - 1);
        if (!is_of(self, key + 1, row->kinds)) {
            return kind_fails(self, at, key, row->kinds);
        }
        if (row->is_deep && !inside_holds(self, row, key, at)) {
            return false;
        }
    }
    uint32_t needed = (1u << head->kinds) - 1;
    bool is_whole = (seen & needed) == needed && head->shape == 0;
    return is_whole || !lacks(self, head, seen, at);
}

bool mcp_shape_holds(mcp_shape_id shape, mcp_revision_id revision, json_val value,
                     mcp_shape_fault *out)
{
    walk self = {value.doc, revision, out};
    if (value.doc == NULL) { /* it is missing */
        return shape_fails(&self, &(step){.up = NULL}, STR(""), "is missing");
    }
    return one_holds(&self, shape, (uint32_t)value.at, &(step){.up = NULL});
}

bool mcp_shape_item(mcp_shape_id shape, mcp_revision_id revision, json_val value,
                    mcp_shape_fault *out)
{
    if (json_is_deeper(value, MCP_ITEM_DEPTH)) {
        *out = (mcp_shape_fault){.text = "it is nested too deeply"};
        return false;
    }
    return shape == MCP_SHAPE_NONE || mcp_shape_holds(shape, revision, value, out);
}

/* ---- results --------------------------------------------------------------------------------- */

/* mcp 2026-07-28 basic: an unrecognised resultType makes the result invalid; NONE is one. */
static mcp_shape_id shape_by_type(const mcp_method *method, json_val type, mcp_shape_id complete)
{
    if (json_is(type, JSON_MISSING) || json_str_eq(type, STR("complete"))) {
        return complete;
    }
    if (json_str_eq(type, STR("input_required"))) {
        bool may_ask = method == NULL || (method->flags & MCP_FLAG_MRTR) != 0;
        return may_ask ? MCP_SHAPE_INPUT_REQUIRED : MCP_SHAPE_NONE;
    }
    return json_str_eq(type, STR("task")) ? MCP_SHAPE_TASK : MCP_SHAPE_NONE;
}

bool mcp_shape_result(const mcp_method *method, const mcp_revision *revision, json_val result,
                      mcp_shape_fault *out)
{
    mcp_shape_id shape = method != NULL && results[method->id] != MCP_SHAPE_NONE
                             ? (mcp_shape_id)results[method->id]
                             : MCP_SHAPE_META;
    if (revision->era == MCP_MODERN) {
        shape = shape_by_type(method, json_get(result, STR("resultType")), shape);
    }
    if (shape == MCP_SHAPE_NONE) {
        walk self = {result.doc, revision->id, out};
        return shape_fails(&self, &(step){.up = NULL}, STR("resultType"),
                           "is none that such a result may have");
    }
    if (mcp_shape_holds(shape, revision->id, result, out)) {
        return true;
    }
    /* a call that was sent as a task */
    bool may_be_task = shape == MCP_SHAPE_CALL && revision->id == MCP_REV_2025_11_25;
    return may_be_task && !json_is(json_get(result, STR("task")), JSON_MISSING) &&
           mcp_shape_holds(MCP_SHAPE_TASK_CREATED, revision->id, result, out);
}
