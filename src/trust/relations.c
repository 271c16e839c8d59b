/* Names are compared by their skeletons (scan_name_skeleton). Two that are one edit apart have the
 * same text once a character is left out of one or of both, at the same place: each name is entered
 * under its skeleton and, unless it is too short or too long, under each text with one character
 * left out. Equal texts stand together when sorted, those with the same gap next to each other, and
 * within them those of the first server first. So a name is compared with two others a text, however
 * many have the same. */
#include "trust/relations.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

enum {
    SKELETON_BYTES = 256, /* as scan_names_alike, and the two below */
    SHORTENED_LEAST = 8,
    SHORTENED_MOST = 64,
    NO_GAP = 0,
    TEXT_BYTES = 256 << 20,
    WORDS_BYTES = 200,
};

typedef struct named {
    bay_str text; /* the skeleton, or what is left of it */
    size_t gap;   /* what was left out of it, counted from 1; NO_GAP: nothing */
    const trust_item *item;
    size_t server;
    size_t number; /* of the item */
} named;

typedef struct names {
    named *at;
    size_t count;
    size_t cap;
    arena memory;
} names;

static bay_err push(names *self, named one)
{
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 256 : self->cap * 2;
        named *at = mem_resize(self->at, cap * sizeof(*at));
        if (at == NULL) {
            return BAY_ERR_NOMEM;
        }
        self->at = at;
        self->cap = cap;
    }
    self->at[self->count++] = one;
    return BAY_OK;
}

static bay_err enter(names *self, const trust_item *item, size_t server, size_t number)
{
    char bytes[SKELETON_BYTES];
    buf skeleton = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    named one = {.item = item, .server = server, .number = number, .gap = NO_GAP};
    scan_name_skeleton(item->name, &skeleton);
    if (skeleton.err != BAY_OK) {
        return BAY_OK; /* longer than any name that is looked at */
    }
    bay_err err = arena_dup(&self->memory, buf_view(&skeleton), &one.text);
    err = err == BAY_OK ? push(self, one) : err;
    bay_str whole = one.text;
    bool is_shortened = whole.len >= SHORTENED_LEAST && whole.len <= SHORTENED_MOST;
    for (size_t i = 0; err == BAY_OK && is_shortened && i < whole.len; i++) {
        char *shorter = arena_alloc(&self->memory, whole.len);
        if (shorter == NULL) {
            return self->memory.is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
        }
        memcpy(shorter, whole.at, i);
        memcpy(shorter + i, whole.at + i + 1, whole.len - i - 1);
        one.text = (bay_str){shorter, whole.len - 1};
        one.gap = i + 1;
        err = push(self, one);
    }
    return err;
}

static int compare_texts(const named *a, const named *b)
{
    int order = (int)a->item->kind - (int)b->item->kind;
    return order != 0 ? order : str_cmp(a->text, b->text);
}

static int compare(const void *a, const void *b)
{
    const named *left = a;
    const named *right = b;
    int order = compare_texts(left, right);
    order = order != 0 ? order : (left->gap > right->gap) - (left->gap < right->gap);
    order = order != 0 ? order : (left->server > right->server) - (left->server < right->server);
    return order != 0 ? order : str_cmp(left->item->name, right->item->name);
}

static bay_err report(trust_findings *self, const trust_definitions *const *servers,
                      const named *of, const named *other, trust_silences *silences)
{
    char words[WORDS_BYTES];
    bool is_same = str_eq(of->item->name, other->item->name);
    scan_rule rule = is_same ? SCAN_SHADOW : SCAN_LOOKALIKE;
    (void)snprintf(words, sizeof(words), "%.*s of %.*s",
                   (int)(other->item->name.len < 80 ? other->item->name.len : 80),
                   other->item->name.at, BAY_STR(servers[other->server]->server));
    trust_finding finding = {
        .source = TRUST_BY_SCAN,
        .severity = scan_rules[rule].severity,
        .rule = str_of(scan_rules[rule].id),
        .server = servers[of->server]->server,
        .kind = of->item->kind,
        .item = of->item->name,
        .pointer = STR("/name"),
        .excerpt = str_of(words),
        .why = str_of(scan_rules[rule].why),
        .remedy = str_of(scan_rules[rule].remedy),
    };
    return trust_findings_add(self, &finding, silences);
}

/* Of the names with one text. */
typedef struct group {
    const named *whole;    /* the first without a gap; NULL: there is none */
    const named *gapped;   /* that of the first server with a gap */
    const named *same_gap; /* the first with the gap of the name under way */
} group;

static void take(group *self, const named *of)
{
    if (of->gap == NO_GAP) {
        self->whole = self->whole != NULL ? self->whole : of;
        return;
    }
    bool is_first = self->gapped == NULL || of->server < self->gapped->server;
    bool is_new_gap = self->same_gap == NULL || self->same_gap->gap != of->gap;
    self->gapped = is_first ? of : self->gapped;
    self->same_gap = is_new_gap ? of : self->same_gap;
}

static bool is_like(const named *of, const named *other)
{
    return other != NULL && other->server < of->server &&
           scan_names_alike(other->item->name, of->item->name);
}

/* The names with one text, from `first` on: of those that are like an earlier server's, each is reported once. */
static bay_err compare_group(trust_findings *self, const trust_definitions *const *servers,
                             const named *first, size_t count, bool *reported,
                             trust_silences *silences)
{
    group all = {NULL, NULL, NULL};
    group before = {NULL, NULL, NULL};
    bay_err err = BAY_OK;
    for (size_t i = 0; i < count; i++) {
        take(&all, &first[i]);
    }
    for (size_t i = 0; err == BAY_OK && i < count; i++) {
        const named *of = &first[i];
        take(&before, of);
        const named *other = is_like(of, all.whole) ? all.whole : NULL;
        const named *edited = of->gap == NO_GAP ? all.gapped : before.same_gap;
        other = other == NULL && is_like(of, edited) ? edited : other;
        if (other != NULL && !reported[of->number]) {
            reported[of->number] = true;
            err = report(self, servers, of, other, silences);
        }
    }
    return err;
}

static bay_err compare_all(trust_findings *self, const trust_definitions *const *servers,
                           const names *all, bool *reported, trust_silences *silences)
{
    bay_err err = BAY_OK;
    for (size_t i = 0, count; err == BAY_OK && i < all->count; i += count) {
        for (count = 1;
             i + count < all->count && compare_texts(&all->at[i], &all->at[i + count]) == 0;) {
            count++;
        }
        err = compare_group(self, servers, &all->at[i], count, reported, silences);
    }
    return err;
}

bay_err trust_relations_add(trust_findings *self, const trust_definitions *const *servers,
                            size_t count, trust_silences *silences)
{
    names all = {0};
    size_t entered = 0;
    bool *reported = NULL;
    bay_err err = BAY_OK;
    arena_init(&all.memory, TEXT_BYTES);
    for (size_t i = 0; err == BAY_OK && i < count; i++) {
        for (size_t k = 0; err == BAY_OK && k < servers[i]->count; k++) {
            const trust_item *item = &servers[i]->items[k];
            if (item->kind == TRUST_TOOL || item->kind == TRUST_PROMPT) {
                err =
                    entered < TRUST_RELATED_NAMES ? enter(&all, item, i, entered++) : BAY_ERR_LIMIT;
            }
        }
    }
    if (err == BAY_OK && all.count > 0) {
        reported = mem_array(entered, sizeof(*reported));
        err = reported != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    if (err == BAY_OK && all.count > 0) {
        qsort(all.at, all.count, sizeof(*all.at), compare);
        err = compare_all(self, servers, &all, reported, silences);
    }
    mem_free(reported);
    mem_free(all.at);
    arena_fini(&all.memory);
    return err;
}
