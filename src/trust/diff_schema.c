/* Two schemas: does the one admit less than the other, or more? What a caller gives may be admitted
 * more widely, what it gets more narrowly; the other way round calls that were good fail. */
#include "base/check.h"
#include "base/str.h"
#include "trust/diff_walk.h"

typedef enum keyword_how {
    KEYWORD_LEAST,
    KEYWORD_MOST,
    KEYWORD_PRESENT,
    KEYWORD_FLAG,
    KEYWORD_TYPES,
    KEYWORD_VALUES,
    KEYWORD_NAMES,
    KEYWORD_SCHEMA,
    KEYWORD_SCHEMAS,
    KEYWORD_LIST,
    KEYWORD_NOT,
    KEYWORD_MEMBERS,
    KEYWORD_TEXT,
    KEYWORD_ASIDE,
    KEYWORD_REFERENCE,
    KEYWORD_UNKNOWN,
} keyword_how;

static const struct {
    bay_str name;
    keyword_how how;
} keywords[] = {
#define DIFF_KEYWORD(name, how) {STR_INIT(name), KEYWORD_##how},
#include "trust/diff_schema.def"
};

static keyword_how how_of(bay_str name)
{
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
        if (str_eq(keywords[i].name, name)) {
            return keywords[i].how;
        }
    }
    return KEYWORD_UNKNOWN;
}

static void narrower(diff_walk *self, diff_side side, const diff_pair *pair)
{
    diff_note(self, side == DIFF_INPUT ? TRUST_BREAKING : TRUST_COMPATIBLE, pair->before,
              pair->after, "the schema accepts less than before");
}

static void wider(diff_walk *self, diff_side side, const diff_pair *pair)
{
    diff_note(self, side == DIFF_INPUT ? TRUST_COMPATIBLE : TRUST_BREAKING, pair->before,
              pair->after, "the schema accepts more than before");
}

static void other(diff_walk *self, const diff_pair *pair)
{
    diff_note(self, TRUST_BREAKING, pair->before, pair->after, "the schema accepts other values");
}

/* What is absent admits everything. */
static void diff_presence(diff_walk *self, diff_side side, const diff_pair *pair)
{
    if (json_is(pair->before, JSON_MISSING)) {
        narrower(self, side, pair);
    } else if (json_is(pair->after, JSON_MISSING)) {
        wider(self, side, pair);
    } else {
        other(self, pair);
    }
}

static void diff_number(diff_walk *self, diff_side side, const diff_pair *pair, int narrow)
{
    if (!json_is(pair->before, JSON_NUMBER) || !json_is(pair->after, JSON_NUMBER)) {
        diff_presence(self, side, pair);
        return;
    }
    int order = json_number_cmp(json_raw(pair->after), json_raw(pair->before));
    if (order != 0 && (order > 0) == (narrow > 0)) {
        narrower(self, side, pair);
    } else if (order != 0) {
        wider(self, side, pair);
    }
}

/* ---- sets ------------------------------------------------------------------------------------ */

typedef struct set_change {
    size_t gone;
    size_t new;
} set_change;

static set_change compare_sets(diff_walk *self, json_val before, json_val after)
{
    set_change out = {0, 0};
    diff_pair *pairs;
    size_t count = diff_set(self, before, after, &pairs);
    for (size_t i = 0; i < count; i++) {
        out.gone += json_is(pairs[i].after, JSON_MISSING) ? 1 : 0;
        out.new += json_is(pairs[i].before, JSON_MISSING) ? 1 : 0;
    }
    return out;
}

/* `more_narrows`: each element demands something. */
static void diff_list(diff_walk *self, diff_side side, const diff_pair *pair, bool more_narrows)
{
    bool is_absent_empty = more_narrows;
    if (!is_absent_empty &&
        (!json_is(pair->before, JSON_ARRAY) || !json_is(pair->after, JSON_ARRAY))) {
        diff_presence(self, side, pair);
        return;
    }
    set_change change = compare_sets(self, pair->before, pair->after);
    if (change.gone > 0 && change.new > 0) {
        other(self, pair);
    } else if (change.gone > 0 || change.new > 0) {
        bool is_narrower = (change.new > 0) == more_narrows;
        (is_narrower ? narrower : wider)(self, side, pair);
    }
}

enum { ALL_TYPES = 127 };

/* A number is an integer or another one. */
static unsigned type_of(json_val word)
{
    static const struct {
        bay_str name;
        unsigned types;
    } rows[] = {
        {STR_INIT("integer"), 1}, {STR_INIT("number"), 3},  {STR_INIT("string"), 4},
        {STR_INIT("boolean"), 8}, {STR_INIT("object"), 16}, {STR_INIT("array"), 32},
        {STR_INIT("null"), 64},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (json_str_eq(word, rows[i].name)) {
            return rows[i].types;
        }
    }
    return 0;
}

static unsigned types_of(json_val value)
{
    unsigned found = 0;
    if (json_is(value, JSON_MISSING)) {
        return ALL_TYPES;
    }
    if (json_is(value, JSON_STRING)) {
        return type_of(value);
    }
    json_iter at = json_iter_of(value);
    while (json_next(&at)) {
        found |= type_of(at.value);
    }
    return found;
}

static void diff_types(diff_walk *self, diff_side side, const diff_pair *pair)
{
    unsigned before = types_of(pair->before);
    unsigned after = types_of(pair->after);
    if ((before & ~after) != 0 && (after & ~before) != 0) {
        other(self, pair);
    } else if ((before & ~after) != 0) {
        narrower(self, side, pair);
    } else if ((after & ~before) != 0) {
        wider(self, side, pair);
    }
}

/* ---- schemas below --------------------------------------------------------------------------- */

typedef struct side_of {
    diff_side side;
} side_of;

static void schema_pair(diff_walk *self, const diff_pair *pair, void *context)
{
    diff_schema(self, ((const side_of *)context)->side, pair->before, pair->after);
}

/* A member that comes or goes is one of the object; what it must be is its own affair. */
static void member_pair(diff_walk *self, const diff_pair *pair, void *context)
{
    diff_side side = ((const side_of *)context)->side;
    if (json_is(pair->before, JSON_MISSING)) {
        diff_note(
            self, side == DIFF_INPUT ? TRUST_REVIEW : TRUST_COMPATIBLE, pair->before, pair->after,
            side == DIFF_INPUT ? "a parameter was added" : "a member of the result was added");
    } else if (json_is(pair->after, JSON_MISSING)) {
        diff_note(self, TRUST_BREAKING, pair->before, pair->after,
                  side == DIFF_INPUT ? "the parameter was removed"
                                     : "the member of the result was removed");
    } else {
        diff_schema(self, side, pair->before, pair->after);
    }
}

/* Definitions that nothing names change nothing by coming or going: who names them says so. */
static void definition_pair(diff_walk *self, const diff_pair *pair, void *context)
{
    if (json_is(pair->before, JSON_MISSING) || json_is(pair->after, JSON_MISSING)) {
        diff_note(self, TRUST_REVIEW, pair->before, pair->after,
                  "a schema under $defs was added or removed");
    } else {
        schema_pair(self, pair, context);
    }
}

static size_t elements(diff_walk *self, json_val before, json_val after, diff_pair **out)
{
    size_t left = json_count(before);
    size_t right = json_count(after);
    size_t count = left > right ? left : right;
    json_iter was = json_iter_of(before);
    json_iter is = json_iter_of(after);
    *out = arena_array(&self->scratch, count + 1, sizeof(**out));
    if (*out == NULL) {
        self->err = BAY_ERR_NOMEM;
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        char number[24];
        buf text = {.at = number, .cap = sizeof(number), .max = sizeof(number)};
        buf_printf(&text, "%zu", i);
        (*out)[i] = (diff_pair){.before = json_next(&was) ? was.value : JSON_NONE,
                                .after = json_next(&is) ? is.value : JSON_NONE};
        if (arena_dup(&self->scratch, buf_view(&text), &(*out)[i].key) != BAY_OK) {
            self->err = BAY_ERR_NOMEM;
            return 0;
        }
    }
    return count;
}

static void element_pair(diff_walk *self, const diff_pair *pair, void *context)
{
    if (json_is(pair->before, JSON_MISSING) || json_is(pair->after, JSON_MISSING)) {
        other(self, pair);
    } else {
        schema_pair(self, pair, context);
    }
}

static bool is_elsewhere(json_val reference)
{
    bay_str text;
    return json_str_plain(reference, &text) && text.len > 0 && text.at[0] != '#';
}

static void diff_keyword(diff_walk *self, const diff_pair *pair, void *context)
{
    side_of of = *(const side_of *)context;
    side_of turned = {of.side == DIFF_INPUT ? DIFF_OUTPUT : DIFF_INPUT};
    diff_pair *below;
    size_t count;
    switch (how_of(pair->key)) {
    case KEYWORD_LEAST:
        diff_number(self, of.side, pair, 1);
        return;
    case KEYWORD_MOST:
        diff_number(self, of.side, pair, -1);
        return;
    case KEYWORD_PRESENT:
        if (!diff_is_same(self, pair->before, pair->after)) {
            diff_presence(self, of.side, pair);
        }
        return;
    case KEYWORD_FLAG:
        if (json_true(pair->before) != json_true(pair->after)) {
            (json_true(pair->after) ? narrower : wider)(self, of.side, pair);
        }
        return;
    case KEYWORD_TYPES:
        diff_types(self, of.side, pair);
        return;
    case KEYWORD_VALUES:
        diff_list(self, of.side, pair, false);
        return;
    case KEYWORD_NAMES:
        diff_list(self, of.side, pair, true);
        return;
    case KEYWORD_SCHEMA:
        diff_schema(self, of.side, pair->before, pair->after);
        return;
    case KEYWORD_NOT:
        diff_schema(self, turned.side, pair->before, pair->after);
        return;
    case KEYWORD_MEMBERS:
        count = diff_members(self, pair->before, pair->after, &below);
        diff_each(self, below, count, member_pair, &of);
        return;
    case KEYWORD_SCHEMAS:
        count = diff_members(self, pair->before, pair->after, &below);
        diff_each(self, below, count, definition_pair, &of);
        return;
    case KEYWORD_LIST:
        if (!json_is(pair->before, JSON_ARRAY) || !json_is(pair->after, JSON_ARRAY)) {
            diff_presence(self, of.side, pair);
            return;
        }
        count = elements(self, pair->before, pair->after, &below);
        diff_each(self, below, count, element_pair, &of);
        return;
    case KEYWORD_TEXT:
        diff_any(self, pair->before, pair->after, "a text that the model reads changed");
        return;
    case KEYWORD_REFERENCE:
        diff_note(self, is_elsewhere(pair->after) ? TRUST_RISK : TRUST_REVIEW, pair->before,
                  pair->after,
                  is_elsewhere(pair->after) ? "the schema now refers to a remote document"
                                            : "the schema refers to another schema");
        return;
    default:
        diff_any(self, pair->before, pair->after, "the description of the value changed");
    }
}

/* true, {} and nothing admit everything. */
static bool admits_all(json_val schema)
{
    return json_is(schema, JSON_MISSING) || json_is(schema, JSON_TRUE) ||
           (json_is(schema, JSON_OBJECT) && json_count(schema) == 0);
}

void diff_schema(diff_walk *self, diff_side side, json_val before, json_val after)
{
    diff_pair whole = {.before = before, .after = after};
    if (json_is(before, JSON_OBJECT) && json_is(after, JSON_OBJECT)) {
        side_of of = {side};
        diff_pair *pairs;
        size_t count = diff_members(self, before, after, &pairs);
        diff_each(self, pairs, count, diff_keyword, &of);
    } else if (admits_all(before) && admits_all(after)) {
        diff_note(self, TRUST_COMPATIBLE, before, after, "the meaning is the same");
    } else if (admits_all(before)) {
        narrower(self, side, &whole);
    } else if (admits_all(after)) {
        wider(self, side, &whole);
    } else if (json_is(before, JSON_FALSE)) {
        wider(self, side, &whole);
    } else if (json_is(after, JSON_FALSE)) {
        narrower(self, side, &whole);
    } else if (!diff_is_same(self, before, after)) {
        other(self, &whole);
    }
}
