#include "schema/keywords.h"

#include "base/check.h"
#include "base/str.h"
#include "schema/compile.h"

enum { MOST_WORDS = 8, MOST_DEPTH = 96 };

/* Annotations, which no check looks at; the last four are of mcp (enumNames: client/elicitation,
 * 2025-06-18) and of OpenAPI, which schemas are often copied from. */
static const bay_str annotations[] = {
    STR_INIT("title"),           STR_INIT("description"),      STR_INIT("default"),
    STR_INIT("examples"),        STR_INIT("deprecated"),       STR_INIT("readOnly"),
    STR_INIT("writeOnly"),       STR_INIT("$comment"),         STR_INIT("$vocabulary"),
    STR_INIT("contentEncoding"), STR_INIT("contentMediaType"), STR_INIT("$recursiveRef"),
    STR_INIT("enumNames"),       STR_INIT("example"),          STR_INIT("discriminator"),
    STR_INIT("nullable"),
};

typedef struct search {
    buf path;
    buf *out;
    size_t found;
} search;

static const keyword *keyword_of(bay_str word)
{
    for (size_t i = 0; i < KEYWORD_COUNT; i++) {
        if (str_eq(compile_keyword_table[i].text, word)) {
            return &compile_keyword_table[i];
        }
    }
    return NULL;
}

static bool is_annotation(bay_str word)
{
    for (size_t i = 0; i < ARRAY_LEN(annotations); i++) {
        if (str_eq(annotations[i], word)) {
            return true;
        }
    }
    return str_starts(word, STR("x-"));
}

static void nearest(bay_str word, bay_str one, bay_str *best, size_t *edits)
{
    size_t distance = word.len <= 64 ? str_distance(word, one) : SIZE_MAX;
    if (distance < *edits) {
        *edits = distance;
        *best = one;
    }
}

static void tell(search *self, bay_str word)
{
    if (self->found++ >= MOST_WORDS) {
        return;
    }
    bay_str best = {NULL, 0};
    size_t edits = word.len / 3 + 1; /* more would be another word */
    for (size_t i = 0; i < KEYWORD_COUNT; i++) {
        nearest(word, compile_keyword_table[i].text, &best, &edits);
    }
    for (size_t i = 0; i < ARRAY_LEN(annotations); i++) {
        nearest(word, annotations[i], &best, &edits);
    }
    buf_printf(self->out, "%s%.*s has the unknown word \"%.*s\"", self->found > 1 ? "\n" : "",
               BAY_STR(self->path.len > 0 ? str_head(buf_view(&self->path), 120) : STR("it")),
               BAY_STR(str_head(word, 64)));
    if (best.len > 0) {
        buf_printf(self->out, "; did you mean \"%.*s\"?", BAY_STR(best));
    }
}

static void search_schema(search *self, json_val root, size_t depth);

/* The schemas under a keyword: one, a list, or a map of them. */
static void search_below(search *self, const json_iter *member, uint8_t shape, size_t depth)
{
    bool is_map = shape == SHAPE_MAP && json_is(member->value, JSON_OBJECT);
    bool is_list = (shape == SHAPE_LIST || shape == SHAPE_SCHEMA_OR_LIST) &&
                   json_is(member->value, JSON_ARRAY);
    if (!is_map && !is_list) {
        if (shape == SHAPE_SCHEMA || shape == SHAPE_SCHEMA_OR_LIST) {
            search_schema(self, member->value, depth);
        }
        return;
    }
    size_t len = self->path.len;
    size_t index = 0;
    json_iter each = json_iter_of(member->value);
    while (json_next(&each)) {
        bay_str name = json_raw(each.key);
        if (is_map) {
            buf_printf(&self->path, "/%.*s", BAY_STR(str_head(str_from(name, 1), name.len - 2)));
        } else {
            buf_printf(&self->path, "/%zu", index++);
        }
        search_schema(self, each.value, depth);
        self->path.len = len;
    }
}

static void search_schema(search *self, json_val root, size_t depth)
{
    if (!json_is(root, JSON_OBJECT) || depth >= MOST_DEPTH) {
        return;
    }
    size_t len = self->path.len;
    json_iter each = json_iter_of(root);
    while (json_next(&each)) {
        bay_str word;
        const keyword *known = NULL;
        if (json_str_plain(each.key, &word)) {
            known = keyword_of(word);
        } else {
            word = json_raw(each.key);
        }
        if (known == NULL) {
            if (!is_annotation(word)) {
                tell(self, word);
            }
            continue;
        }
        buf_printf(&self->path, "/%.*s", BAY_STR(word));
        search_below(self, &each, known->shape, depth + 1);
        self->path.len = len;
    }
}

size_t schema_unknown_words(json_val root, buf *out)
{
    search self = {.out = out};
    buf_init(&self.path, 16 << 10);
    search_schema(&self, root, 0);
    buf_fini(&self.path);
    return self.found;
}
