#include "trust/diff.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "trust/diff_walk.h"
#include "json/canon.h"

enum { POINTER_BYTES = 1 << 20, CANON_BYTES = 64 << 20 };

static const char *const classes[TRUST_CLASSES] = {
    [TRUST_SAME] = "same", [TRUST_COMPATIBLE] = "compatible", [TRUST_REVIEW] = "review",
    [TRUST_RISK] = "risk", [TRUST_BREAKING] = "breaking",
};

const char *trust_class_text(trust_class class)
{
    return classes[class];
}

void trust_diff_init(trust_diff *self)
{
    *self = (trust_diff){0};
    arena_init(&self->memory, TRUST_TEXT_BYTES);
}

void trust_diff_fini(trust_diff *self)
{
    mem_free(self->changes);
    arena_fini(&self->memory);
    *self = (trust_diff){0};
}

static bay_err keep(trust_diff *self, const trust_change *change)
{
    self->counts[change->class]++;
    self->worst = change->class > self->worst ? change->class : self->worst;
    if (self->count >= TRUST_CHANGES) {
        self->dropped++;
        return BAY_OK;
    }
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 16 : self->cap * 2;
        trust_change *changes = mem_resize(self->changes, cap * sizeof(*changes));
        if (changes == NULL) {
            return BAY_ERR_NOMEM;
        }
        self->changes = changes;
        self->cap = cap;
    }
    self->changes[self->count++] = *change;
    return BAY_OK;
}

void diff_note(diff_walk *self, trust_class class, json_val before, json_val after, const char *why)
{
    trust_change change = {
        .class = class,
        .how = json_is(before, JSON_MISSING)  ? TRUST_ADDED
               : json_is(after, JSON_MISSING) ? TRUST_REMOVED
                                              : TRUST_CHANGED,
        .kind = self->kind,
        .item = self->item,
        .before = before,
        .after = after,
        .why = str_of(why),
    };
    bay_err err = self->pointer.err;
    err = err == BAY_OK ? arena_dup(&self->out->memory, buf_view(&self->pointer), &change.pointer)
                        : err;
    err = err == BAY_OK ? keep(self->out, &change) : err;
    self->err = self->err == BAY_OK ? err : self->err;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

bool diff_enter(diff_walk *self, const diff_pair *pair, size_t *out_mark)
{
    *out_mark = self->pointer.len;
    buf_char(&self->pointer, '/');
    for (size_t i = 0; i < pair->key.len; i++) {
        char byte = pair->key.at[i];
        buf_str(&self->pointer, byte == '~'   ? STR("~0")
                                : byte == '/' ? STR("~1")
                                              : (bay_str){&pair->key.at[i], 1});
    }
    if (++self->depth > TRUST_DIFF_DEPTH) {
        diff_note(self, TRUST_REVIEW, pair->before, pair->after,
                  "a value changed below the depth that is compared");
        return false;
    }
    return self->err == BAY_OK;
}

void diff_leave(diff_walk *self, size_t mark)
{
    self->depth--;
    if (self->pointer.err == BAY_OK) {
        self->pointer.len = mark;
    }
}

typedef struct half {
    bay_str key;
    json_val value;
    size_t order;
} half;

static int compare_halves(const void *a, const void *b)
{
    const half *left = a;
    const half *right = b;
    int order = str_cmp(left->key, right->key);
    return order != 0 ? order : left->order < right->order ? -1 : left->order > right->order;
}

/* How an element is told from others; false: it is left out. */
typedef bool (*namer)(diff_walk *self, const json_iter *at, bay_str key, bay_str *out);

static bool take_err(diff_walk *self, bay_err err)
{
    if (err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT) {
        self->err = self->err == BAY_OK ? err : self->err;
    }
    return err == BAY_OK;
}

static bool name_member(diff_walk *self, const json_iter *at, bay_str key, bay_str *out)
{
    (void)key;
    if (json_str(at->key, &self->scratch, out) != BAY_OK) {
        *out = json_raw(at->key);
    }
    return true;
}

static bool name_by_key(diff_walk *self, const json_iter *at, bay_str key, bay_str *out)
{
    return take_err(self, json_str(json_get(at->value, key), &self->scratch, out));
}

static bool canonical(diff_walk *self, json_val value, bay_str *out)
{
    buf text;
    buf_init(&text, CANON_BYTES);
    bay_err err = json_canon(&text, value, &self->scratch, NULL);
    if (err != BAY_OK && err != BAY_ERR_NOMEM && err != BAY_ERR_LIMIT) {
        err = BAY_OK; /* it has none, and counts as it is written */
        buf_str(&text, json_raw(value));
    }
    err = err == BAY_OK ? arena_dup(&self->scratch, buf_view(&text), out) : err;
    buf_fini(&text);
    return take_err(self, err);
}

static bool name_by_value(diff_walk *self, const json_iter *at, bay_str key, bay_str *out)
{
    (void)key;
    return canonical(self, at->value, out);
}

/* Sorted, each name once. */
static half *halves_of(diff_walk *self, json_val of, namer name, bay_str key, size_t *out_count)
{
    size_t kept = 0;
    size_t count = 0;
    half *all = arena_array(&self->scratch, json_count(of) + 1, sizeof(*all));
    json_iter at = json_iter_of(of);
    if (all == NULL) {
        self->err = BAY_ERR_NOMEM;
    }
    while (all != NULL && json_next(&at)) {
        all[count] = (half){.value = at.value, .order = count};
        count += name(self, &at, key, &all[count].key) ? 1 : 0;
    }
    if (count > 1) {
        qsort(all, count, sizeof(*all), compare_halves);
    }
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || !str_eq(all[kept - 1].key, all[i].key)) {
            all[kept++] = all[i];
        }
    }
    *out_count = kept;
    return all;
}

static size_t pairs_of(diff_walk *self, json_val before, json_val after, namer name, bay_str key,
                       diff_pair **out)
{
    size_t left_count = 0;
    size_t right_count = 0;
    size_t count = 0;
    const half *left = halves_of(self, before, name, key, &left_count);
    const half *right = halves_of(self, after, name, key, &right_count);
    diff_pair *pairs = arena_array(&self->scratch, left_count + right_count + 1, sizeof(*pairs));
    if (left == NULL || right == NULL || pairs == NULL) {
        self->err = BAY_ERR_NOMEM;
        return 0;
    }
    for (size_t i = 0, k = 0; i < left_count || k < right_count;) {
        int order = i == left_count    ? 1
                    : k == right_count ? -1
                                       : str_cmp(left[i].key, right[k].key);
        diff_pair pair = {.key = order <= 0 ? left[i].key : right[k].key};
        if (order <= 0) {
            pair.before = left[i++].value;
        }
        if (order >= 0) {
            pair.after = right[k++].value;
        }
        pairs[count++] = pair;
    }
    *out = pairs;
    return count;
}

size_t diff_members(diff_walk *self, json_val before, json_val after, diff_pair **out)
{
    return pairs_of(self, json_is(before, JSON_OBJECT) ? before : JSON_NONE,
                    json_is(after, JSON_OBJECT) ? after : JSON_NONE, name_member, (bay_str){"", 0},
                    out);
}

size_t diff_keyed(diff_walk *self, json_val before, json_val after, bay_str key, diff_pair **out)
{
    return pairs_of(self, json_is(before, JSON_ARRAY) ? before : JSON_NONE,
                    json_is(after, JSON_ARRAY) ? after : JSON_NONE, name_by_key, key, out);
}

size_t diff_set(diff_walk *self, json_val before, json_val after, diff_pair **out)
{
    return pairs_of(self, json_is(before, JSON_ARRAY) ? before : JSON_NONE,
                    json_is(after, JSON_ARRAY) ? after : JSON_NONE, name_by_value, (bay_str){"", 0},
                    out);
}

bool diff_is_same(diff_walk *self, json_val before, json_val after)
{
    bay_str left;
    bay_str right;
    if (json_is(before, JSON_MISSING) || json_is(after, JSON_MISSING)) {
        return json_is(before, JSON_MISSING) && json_is(after, JSON_MISSING);
    }
    if (str_eq(json_raw(before), json_raw(after))) {
        return true;
    }
    return canonical(self, before, &left) && canonical(self, after, &right) && str_eq(left, right);
}

void diff_each(diff_walk *self, diff_pair *pairs, size_t count,
               void (*each)(diff_walk *self, const diff_pair *pair, void *context), void *context)
{
    for (size_t i = 0; self->err == BAY_OK && i < count; i++) {
        size_t mark;
        if (str_eq(json_raw(pairs[i].before), json_raw(pairs[i].after)) &&
            !json_is(pairs[i].before, JSON_MISSING)) {
            continue;
        }
        if (diff_enter(self, &pairs[i], &mark)) {
            each(self, &pairs[i], context);
        }
        diff_leave(self, mark);
    }
}

typedef struct reason {
    const char *why;
} reason;

static void any_pair(diff_walk *self, const diff_pair *pair, void *context)
{
    diff_any(self, pair->before, pair->after, ((const reason *)context)->why);
}

void diff_any(diff_walk *self, json_val before, json_val after, const char *why)
{
    if (json_is(before, JSON_OBJECT) && json_is(after, JSON_OBJECT)) {
        diff_pair *pairs;
        reason of = {why};
        size_t count = diff_members(self, before, after, &pairs);
        diff_each(self, pairs, count, any_pair, &of);
    } else if (!diff_is_same(self, before, after)) {
        diff_note(self, TRUST_REVIEW, before, after, why);
    }
}

/* ---- items ----------------------------------------------------------------------------------- */

/* What a tool may do by its own word, and what it means when nothing is said. */
static const struct {
    bay_str name;
    bool fallback;
    bool power; /* the value that claims more */
    const char *more;
    const char *less;
} hints[] = {
    {STR_INIT("readOnlyHint"), false, false, "the tool now may write",
     "the tool now claims to only read"},
    {STR_INIT("destructiveHint"), true, true, "the tool now may destroy data",
     "the tool now claims to destroy nothing"},
    {STR_INIT("idempotentHint"), false, false, "a second call now may have an effect of its own",
     "the tool now claims that a second call has no further effect"},
    {STR_INIT("openWorldHint"), true, true, "the tool now may reach external systems",
     "the tool now claims to reach no external system"},
};

static bool hint_value(json_val value, bool fallback)
{
    return json_is(value, JSON_TRUE) || (!json_is(value, JSON_FALSE) && fallback);
}

static void diff_hint(diff_walk *self, const diff_pair *pair, void *context)
{
    (void)context;
    for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
        if (!str_eq(pair->key, hints[i].name)) {
            continue;
        }
        bool was = hint_value(pair->before, hints[i].fallback);
        bool is = hint_value(pair->after, hints[i].fallback);
        if (was == is) {
            diff_note(self, TRUST_COMPATIBLE, pair->before, pair->after, "the meaning is the same");
        } else if (is == hints[i].power) {
            diff_note(self, TRUST_RISK, pair->before, pair->after, hints[i].more);
        } else {
            diff_note(self, TRUST_REVIEW, pair->before, pair->after, hints[i].less);
        }
        return;
    }
    bool is_figure = str_eq(pair->key, STR("lastModified")) || str_eq(pair->key, STR("priority"));
    diff_note(self, is_figure ? TRUST_COMPATIBLE : TRUST_REVIEW, pair->before, pair->after,
              is_figure ? "a number changed" : "an annotation changed");
}

static void diff_hints(diff_walk *self, json_val before, json_val after)
{
    diff_pair *pairs;
    size_t count = diff_members(self, before, after, &pairs);
    diff_each(self, pairs, count, diff_hint, NULL);
}

static void diff_task_support(diff_walk *self, const diff_pair *pair)
{
    json_val was = json_get(pair->before, STR("taskSupport"));
    json_val is = json_get(pair->after, STR("taskSupport"));
    if (json_str_eq(is, STR("required")) && !json_str_eq(was, STR("required"))) {
        diff_note(self, TRUST_BREAKING, pair->before, pair->after,
                  "the tool now runs as a task only");
    } else {
        diff_note(self, TRUST_COMPATIBLE, pair->before, pair->after,
                  "the way to call the tool changed");
    }
}

static void diff_argument_member(diff_walk *self, const diff_pair *pair, void *context)
{
    (void)context;
    if (!str_eq(pair->key, STR("required"))) {
        diff_any(self, pair->before, pair->after, "a text that the model reads changed");
    } else if (json_true(pair->after) != json_true(pair->before)) {
        bool is_required = json_true(pair->after);
        diff_note(self, is_required ? TRUST_BREAKING : TRUST_COMPATIBLE, pair->before, pair->after,
                  is_required ? "the argument is now required" : "the argument is now optional");
    }
}

static void diff_argument(diff_walk *self, const diff_pair *pair, void *context)
{
    (void)context;
    if (json_is(pair->before, JSON_MISSING)) {
        bool is_required = json_true(json_get(pair->after, STR("required")));
        diff_note(self, is_required ? TRUST_BREAKING : TRUST_REVIEW, pair->before, pair->after,
                  is_required ? "a required argument was added" : "an optional argument was added");
    } else if (json_is(pair->after, JSON_MISSING)) {
        diff_note(self, TRUST_BREAKING, pair->before, pair->after, "the argument was removed");
    } else {
        diff_pair *pairs;
        size_t count = diff_members(self, pair->before, pair->after, &pairs);
        diff_each(self, pairs, count, diff_argument_member, NULL);
    }
}

static void diff_arguments(diff_walk *self, json_val before, json_val after)
{
    diff_pair *pairs;
    size_t count = diff_keyed(self, before, after, STR("name"), &pairs);
    diff_each(self, pairs, count, diff_argument, NULL);
}

static void diff_mime(diff_walk *self, const diff_pair *pair)
{
    diff_note(self, TRUST_BREAKING, pair->before, pair->after, "the content has another type");
}

static void diff_member(diff_walk *self, const diff_pair *pair, void *context)
{
    (void)context;
    bay_str key = pair->key;
    if (self->kind == TRUST_TOOL && str_eq(key, STR("inputSchema"))) {
        diff_schema(self, DIFF_INPUT, pair->before, pair->after);
    } else if (self->kind == TRUST_TOOL && str_eq(key, STR("outputSchema"))) {
        diff_schema(self, DIFF_OUTPUT, pair->before, pair->after);
    } else if (str_eq(key, STR("annotations"))) {
        diff_hints(self, pair->before, pair->after);
    } else if (self->kind == TRUST_TOOL && str_eq(key, STR("execution"))) {
        diff_task_support(self, pair);
    } else if (self->kind == TRUST_PROMPT && str_eq(key, STR("arguments"))) {
        diff_arguments(self, pair->before, pair->after);
    } else if (self->kind == TRUST_RESOURCE && str_eq(key, STR("size"))) {
        diff_note(self, TRUST_COMPATIBLE, pair->before, pair->after, "the size changed");
    } else if ((self->kind == TRUST_RESOURCE || self->kind == TRUST_TEMPLATE) &&
               str_eq(key, STR("mimeType")) && !json_is(pair->before, JSON_MISSING)) {
        diff_mime(self, pair);
    } else {
        diff_any(self, pair->before, pair->after, "a text that the model reads changed");
    }
}

static void diff_bodies(diff_walk *self, json_val before, json_val after)
{
    if (self->kind == TRUST_CARD) {
        diff_card(self, before, after);
        return;
    }
    if (!json_is(before, JSON_OBJECT) || !json_is(after, JSON_OBJECT)) {
        diff_any(self, before, after, "a text that the model reads changed");
        return;
    }
    diff_pair *pairs;
    size_t count = diff_members(self, before, after, &pairs);
    diff_each(self, pairs, count, diff_member, NULL);
}

/* ---- what it reads like ---------------------------------------------------------------------- */

static bool had_rule(const scan_report *before, const scan_finding *finding)
{
    for (size_t i = 0; i < before->count; i++) {
        if (str_eq(str_of(before->findings[i].id), str_of(finding->id))) {
            return true;
        }
    }
    return false;
}

static void diff_scan(diff_walk *self, json_val before, json_val after, scanner *scan)
{
    scan_report *reports = arena_array(&self->scratch, 2, sizeof(*reports));
    scan_kind kind = trust_kind_scanned(self->kind);
    if (reports == NULL) {
        self->err = BAY_ERR_NOMEM;
        return;
    }
    reports[0] = (scan_report){0};
    bay_err err = !json_is(before, JSON_MISSING)
                      ? scan_definition(scan, kind, before, NULL, &reports[0])
                      : BAY_OK;
    err = err == BAY_OK ? scan_definition(scan, kind, after, NULL, &reports[1]) : err;
    self->err = self->err == BAY_OK ? err : self->err;
    for (size_t i = 0; err == BAY_OK && i < reports[1].count; i++) {
        const scan_finding *finding = &reports[1].findings[i];
        bay_str why;
        if (finding->severity < SCAN_WARNING || had_rule(&reports[0], finding) ||
            !take_err(self, arena_dup(&self->out->memory, str_of(finding->why), &why))) {
            continue;
        }
        buf_clear(&self->pointer);
        buf_str(&self->pointer, str_of(finding->pointer));
        diff_note(self, TRUST_RISK, JSON_NONE, JSON_NONE, why.at);
    }
}

/* Whoever compares members sees one of the two. */
static void diff_duplicates(diff_walk *self, json_val before, json_val after)
{
    bay_err err = json_check_duplicates(after, NULL);
    if (err == BAY_ERR_DUPLICATE) {
        buf_clear(&self->pointer);
        diff_note(self, TRUST_RISK, before, after,
                  "a member stands twice: programs differ in which of the two they read");
        return;
    }
    self->err = err;
}

static const char *whole_why(trust_kind kind, bool is_new)
{
    switch (kind) {
    case TRUST_INSTRUCTIONS:
        return is_new ? "instructions were added" : "the instructions were removed";
    case TRUST_CARD:
        return is_new ? "a card was added" : "the card was removed";
    default:
        return is_new ? "the item was added" : "the item was removed";
    }
}

bay_err trust_diff_item(trust_diff *self, const trust_item *before, const trust_item *after,
                        scanner *scan)
{
    const trust_item *any = after != NULL ? after : before;
    json_val was = before != NULL ? before->value : JSON_NONE;
    json_val is = after != NULL ? after->value : JSON_NONE;
    if (any == NULL || str_eq(json_raw(was), json_raw(is))) {
        return BAY_OK;
    }
    diff_walk walk = {.out = self, .kind = any->kind, .item = any->name};
    arena_init(&walk.scratch, TRUST_TEXT_BYTES);
    buf_init(&walk.pointer, POINTER_BYTES);
    if (before == NULL || after == NULL) {
        bool is_text = any->kind == TRUST_INSTRUCTIONS;
        diff_note(&walk, before == NULL || is_text ? TRUST_REVIEW : TRUST_BREAKING, was, is,
                  whole_why(any->kind, before == NULL));
    } else {
        diff_bodies(&walk, was, is);
    }
    if (after != NULL && walk.err == BAY_OK) {
        diff_duplicates(&walk, was, is);
    }
    if (after != NULL && scan != NULL && walk.err == BAY_OK) {
        diff_scan(&walk, was, is, scan);
    }
    arena_fini(&walk.scratch);
    buf_fini(&walk.pointer);
    return walk.err;
}

bay_err trust_diff_run(trust_diff *self, const trust_definitions *before,
                       const trust_definitions *after, scanner *scan)
{
    bay_err err = BAY_OK;
    for (size_t i = 0, k = 0; err == BAY_OK && (i < before->count || k < after->count);) {
        const trust_item *left = i < before->count ? &before->items[i] : NULL;
        const trust_item *right = k < after->count ? &after->items[k] : NULL;
        int order = trust_item_compare(left, right);
        i += order <= 0 ? 1 : 0;
        k += order >= 0 ? 1 : 0;
        err = trust_diff_item(self, order <= 0 ? left : NULL, order >= 0 ? right : NULL, scan);
    }
    return err;
}
