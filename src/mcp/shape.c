#include "mcp/shape.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"

/* ---- the tables ------------------------------------------------------------------------------ */

enum {
    Z = 1 << JSON_NULL,
    B = 1 << JSON_FALSE | 1 << JSON_TRUE,
    N = 1 << JSON_NUMBER,
    S = 1 << JSON_STRING,
    A = 1 << JSON_ARRAY,
    O = 1 << JSON_OBJECT,
};

/* Beside the shapes: what is not an object of one shape. */
enum {
    MCP_SHAPE_CONTENT = MCP_SHAPE_COUNT, /* by its `type` */
    MCP_SHAPE_TEXTS,                     /* strings */
    MCP_SHAPE_VALUES_INPUT_REQUEST,      /* each member is of that shape */
};

typedef struct member {
    const char *name;
    uint8_t len;
    uint8_t kinds;
    uint8_t shape;
    uint8_t since;
    uint8_t until;
    const char *words;
} member;

/* The shapes' members one after the other; a row without a name begins a shape: `kinds` members
 * are needed, and one of the next `shape`. */
static const member rows[] = {
#define SHAPE(symbol, needed, any) {NULL, 0, needed, any, 0, 0, NULL},
#define MEMBER(name, kinds, shape, words, since, until)                                            \
    {name, sizeof(name) - 1, kinds, MCP_SHAPE_##shape, MCP_REV_##since, MCP_REV_##until, words},
#define KIND(type, symbol)
#define RESULT(method, symbol)
#include "mcp/shapes.def"
#undef SHAPE
#undef MEMBER
#undef KIND
#undef RESULT
    {NULL, 0, 0, 0, 0, 0, NULL},
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

/* The way to a value, from the inside out; on the stack of the walk. */
typedef struct step {
    const struct step *up; /* NULL: the value that was checked */
    json_val key;          /* of an object's member; missing: of an array's element */
    size_t index;
} step;

typedef struct walk {
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

static void write_place(buf *out, const step *at)
{
    if (at->up == NULL) {
        return;
    }
    write_place(out, at->up);
    buf_char(out, '/');
    if (json_is(at->key, JSON_STRING)) {
        bay_str raw = json_raw(at->key);
        write_step(out, (bay_str){raw.at + 1, raw.len - 2}); /* escapes as they stand */
    } else {
        buf_uint(out, at->index);
    }
}

/* `name`: of a member of the value at `at`, or "". Always false. */
__attribute__((cold, noinline)) static bool shape_fails(const walk *self, const step *at,
                                                        bay_str name, const char *text)
{
    mcp_shape_fault *out = self->fault;
    buf place = {.at = out->place, .cap = MCP_PLACE_BYTES - 1, .max = MCP_PLACE_BYTES - 1};
    write_place(&place, at);
    if (name.len > 0) {
        buf_char(&place, '/');
        write_step(&place, name);
    }
    out->place[place.len] = '\0';
    (void)snprintf(out->text, sizeof(out->text), "%s", text);
    return false;
}

__attribute__((cold, noinline)) static bool kind_fails(const walk *self, const step *at,
                                                       unsigned kinds)
{
    static const struct {
        unsigned kinds;
        const char *text;
    } texts[] = {
        {S, "must be a string"}, {B, "must be true or false"},
        {N, "must be a number"}, {N | Z, "must be a number or null"},
        {A, "must be an array"}, {O | A, "must be an object or an array"},
    };
    const char *text = "must be an object";
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        text = texts[i].kinds == kinds ? texts[i].text : text;
    }
    return shape_fails(self, at, STR(""), text);
}

/* ---- the walk -------------------------------------------------------------------------------- */

static inline bool is_of(json_val value, unsigned kinds)
{
    return (1u << json_kind_of(value) & kinds) != 0;
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

static bool object_holds(const walk *self, uint8_t shape, json_val value, const step *at);

static uint8_t shape_of_content(json_val content)
{
    bay_str type;
    if (!json_str_plain(json_get(content, STR("type")), &type)) {
        return MCP_SHAPE_ANY_CONTENT; /* which wants a string; one with escapes is of no type */
    }
    for (size_t i = 0; i < ARRAY_LEN(content_kinds); i++) {
        if (str_eq(content_kinds[i].type, type)) {
            return content_kinds[i].shape;
        }
    }
    return MCP_SHAPE_ANY_CONTENT;
}

/* An object of that shape, whatever decides which. */
static bool one_holds(const walk *self, uint8_t shape, json_val value, const step *at)
{
    if (!json_is(value, JSON_OBJECT)) {
        return kind_fails(self, at, O);
    }
    return object_holds(self, shape == MCP_SHAPE_CONTENT ? shape_of_content(value) : shape, value,
                        at);
}

/* The elements of an array, or the values of an object. */
static bool each_holds(const walk *self, uint8_t shape, const char *words, json_val value,
                       const step *at)
{
    json_iter iter = json_iter_of(value);
    step next = {.up = at};
    for (; json_next(&iter); next.index++) {
        next.key = iter.key;
        if (shape != MCP_SHAPE_TEXTS) {
            if (!one_holds(self, shape, iter.value, &next)) {
                return false;
            }
        } else if (!json_is(iter.value, JSON_STRING)) {
            return kind_fails(self, &next, S);
        } else if (!is_word(iter.value, words)) {
            return shape_fails(self, &next, STR(""), "is none of the values it may have");
        }
    }
    return true;
}

static bool member_holds(const walk *self, const member *row, json_val value, const step *at)
{
    if (!is_of(value, row->kinds)) {
        return kind_fails(self, at, row->kinds);
    }
    if (row->shape == MCP_SHAPE_NONE) {
        return row->words[0] == '\0' || is_word(value, row->words) ||
               shape_fails(self, at, STR(""), "is none of the values it may have");
    }
    if (row->shape == MCP_SHAPE_VALUES_INPUT_REQUEST) {
        return each_holds(self, MCP_SHAPE_INPUT_REQUEST, "", value, at);
    }
    return json_is(value, JSON_ARRAY) ? each_holds(self, row->shape, row->words, value, at)
                                      : one_holds(self, row->shape, value, at);
}

/* The row of a member; NULL: none. */
static const member *row_of(const member *row, json_val key)
{
    bay_str name;
    bool is_plain = json_str_plain(key, &name);
    for (; row->name != NULL; row++) {
        if (is_plain ? row->len == name.len && memcmp(row->name, name.at, name.len) == 0
                     : json_str_eq(key, (bay_str){row->name, row->len})) {
            return row;
        }
    }
    return NULL;
}

static bool object_holds(const walk *self, uint8_t shape, json_val value, const step *at)
{
    const member *head = &rows[starts[shape]];
    const member *first = head + 1;
    uint32_t seen = 0;
    json_iter iter = json_iter_of(value);
    while (json_next(&iter)) {
        const member *row = row_of(first, iter.key);
        if (row == NULL || row->since > self->revision || row->until < self->revision) {
            continue;
        }
        seen |= 1u << (row - first);
        step next = {.up = at, .key = iter.key};
        if (!member_holds(self, row, iter.value, &next)) {
            return false;
        }
    }
    for (size_t i = 0; i < head->kinds; i++) {
        bool is_due = first[i].since <= self->revision && first[i].until >= self->revision;
        if (is_due && (seen & 1u << i) == 0) {
            return shape_fails(self, at, (bay_str){first[i].name, first[i].len}, "is missing");
        }
    }
    uint32_t any = ((1u << head->shape) - 1) << head->kinds;
    if (any != 0 && (seen & any) == 0) {
        char text[MCP_SHAPE_TEXT_BYTES];
        (void)snprintf(text, sizeof(text), "has neither %s nor %s", first[head->kinds].name,
                       first[head->kinds + 1].name);
        return shape_fails(self, at, STR(""), text);
    }
    return true;
}

bool mcp_shape_holds(mcp_shape_id shape, mcp_revision_id revision, json_val value,
                     mcp_shape_fault *out)
{
    walk self = {revision, out};
    step at = {.up = NULL};
    return one_holds(&self, (uint8_t)shape, value, &at);
}

bool mcp_shape_item(mcp_shape_id shape, mcp_revision_id revision, json_val value,
                    mcp_shape_fault *out)
{
    if (value.doc->is_deep && json_is_deeper(value, MCP_ITEM_DEPTH)) {
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
        walk self = {revision->id, out};
        step at = {.up = NULL};
        return shape_fails(&self, &at, STR("resultType"), "is none that such a result may have");
    }
    if (mcp_shape_holds(shape, revision->id, result, out)) {
        return true;
    }
    /* a call that was made as a task */
    bool may_be_task = shape == MCP_SHAPE_CALL && revision->id == MCP_REV_2025_11_25;
    return may_be_task && !json_is(json_get(result, STR("task")), JSON_MISSING) &&
           mcp_shape_holds(MCP_SHAPE_TASK_CREATED, revision->id, result, out);
}
