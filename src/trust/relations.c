/* Names are compared by their skeletons (scan_name_skeleton). Two that are one edit apart have the
 * same text once a character is left out of one or of both: each name is entered under its skeleton
 * and, if it is long enough, under each text with one character left out. Equal texts stand
 * together when sorted. */
#include "trust/relations.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

enum {
    SKELETON_BYTES = 64, /* longer names are compared by their beginning and their length */
    SHORTENED_LEAST = 8, /* as scan_names_alike */
    TEXT_BYTES = 256 << 20,
    WORDS_BYTES = 200,
};

typedef struct named {
    bay_str text; /* the skeleton, or what is left of it */
    const trust_item *item;
    size_t server;
    bool is_whole;
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

static bay_err enter(names *self, const trust_item *item, size_t server)
{
    char bytes[SKELETON_BYTES];
    buf skeleton = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    named one = {.item = item, .server = server, .is_whole = true};
    scan_name_skeleton(item->name, &skeleton); /* what does not fit is left off */
    bay_err err = arena_dup(&self->memory, buf_view(&skeleton), &one.text);
    err = err == BAY_OK ? push(self, one) : err;
    bay_str whole = one.text;
    one.is_whole = false;
    for (size_t i = 0; err == BAY_OK && whole.len > SHORTENED_LEAST && i < whole.len; i++) {
        char *shorter = arena_alloc(&self->memory, whole.len);
        if (shorter == NULL) {
            return self->memory.is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
        }
        memcpy(shorter, whole.at, i);
        memcpy(shorter + i, whole.at + i + 1, whole.len - i - 1);
        one.text = (bay_str){shorter, whole.len - 1};
        err = push(self, one);
    }
    return err;
}

static int compare(const void *a, const void *b)
{
    const named *left = a;
    const named *right = b;
    int order = str_cmp(left->text, right->text);
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

/* An item is reported once, with the first that it was like. */
static bool is_reported(const trust_findings *self, size_t from, const named *of, bay_str server)
{
    for (size_t i = self->count; i > from; i--) {
        const trust_finding *known = &self->at[i - 1];
        if (known->kind == of->item->kind && str_eq(known->item, of->item->name) &&
            str_eq(known->server, server)) {
            return true;
        }
    }
    return false;
}

static bay_err compare_all(trust_findings *self, const trust_definitions *const *servers,
                           const names *all, trust_silences *silences)
{
    size_t before = self->count;
    size_t first = 0; /* of those with one text */
    bay_err err = BAY_OK;
    for (size_t i = 1; err == BAY_OK && i < all->count; i++) {
        const named *of = &all->at[i];
        if (!str_eq(of->text, all->at[first].text)) {
            first = i;
            continue;
        }
        for (size_t k = first; k < i; k++) {
            const named *other = &all->at[k];
            if (other->server < of->server && other->item->kind == of->item->kind &&
                scan_names_alike(other->item->name, of->item->name) &&
                !is_reported(self, before, of, servers[of->server]->server)) {
                err = report(self, servers, of, other, silences);
                break;
            }
        }
    }
    return err;
}

bay_err trust_relations_add(trust_findings *self, const trust_definitions *const *servers,
                            size_t count, trust_silences *silences)
{
    names all = {0};
    size_t entered = 0;
    bay_err err = BAY_OK;
    arena_init(&all.memory, TEXT_BYTES);
    for (size_t i = 0; err == BAY_OK && i < count; i++) {
        for (size_t k = 0; err == BAY_OK && k < servers[i]->count; k++) {
            const trust_item *item = &servers[i]->items[k];
            if (item->kind == TRUST_TOOL || item->kind == TRUST_PROMPT) {
                err = ++entered <= TRUST_RELATED_NAMES ? enter(&all, item, i) : BAY_ERR_LIMIT;
            }
        }
    }
    if (err == BAY_OK && all.count > 0) {
        qsort(all.at, all.count, sizeof(*all.at), compare);
        err = compare_all(self, servers, &all, silences);
    }
    mem_free(all.at);
    arena_fini(&all.memory);
    return err;
}
