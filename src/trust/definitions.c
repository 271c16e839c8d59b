#include "trust/definitions.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/build.h"

static const struct {
    const char *text;
    scan_kind scanned;
    bay_str list; /* the member of a recording that holds them; empty: one value */
    bay_str name; /* the member of an item that names it */
} kinds[TRUST_KINDS] = {
    [TRUST_INSTRUCTIONS] = {"instructions", SCAN_INSTRUCTIONS, STR_INIT(""), STR_INIT("")},
    [TRUST_CARD] = {"card", SCAN_CARD, STR_INIT(""), STR_INIT("")},
    [TRUST_PROMPT] = {"prompt", SCAN_PROMPT, STR_INIT("prompts"), STR_INIT("name")},
    [TRUST_RESOURCE] = {"resource", SCAN_RESOURCE, STR_INIT("resources"), STR_INIT("uri")},
    [TRUST_TEMPLATE] = {"template", SCAN_TEMPLATE, STR_INIT("resourceTemplates"),
                        STR_INIT("uriTemplate")},
    [TRUST_TOOL] = {"tool", SCAN_TOOL, STR_INIT("tools"), STR_INIT("name")},
};

const char *trust_kind_text(trust_kind kind)
{
    return kinds[kind].text;
}

bool trust_kind_find(bay_str text, trust_kind *out)
{
    for (trust_kind kind = 0; kind < TRUST_KINDS; kind++) {
        if (str_eq(text, str_of(kinds[kind].text))) {
            *out = kind;
            return true;
        }
    }
    return false;
}

scan_kind trust_kind_scanned(trust_kind kind)
{
    return kinds[kind].scanned;
}

void trust_definitions_init(trust_definitions *self, bay_str server)
{
    *self = (trust_definitions){0};
    arena_init(&self->memory, TRUST_TEXT_BYTES);
    if (arena_dup(&self->memory, server, &self->server) != BAY_OK) {
        self->server = (bay_str){"", 0}; /* what is added next says that there is no memory */
    }
}

void trust_definitions_fini(trust_definitions *self)
{
    mem_free(self->items);
    arena_fini(&self->memory);
    *self = (trust_definitions){0};
}

bay_err trust_definitions_add(trust_definitions *self, trust_kind kind, bay_str name,
                              json_val value)
{
    if (self->count >= TRUST_ITEMS) {
        return BAY_ERR_LIMIT;
    }
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 32 : self->cap * 2;
        trust_item *items = mem_resize(self->items, cap * sizeof(*items));
        if (items == NULL) {
            return BAY_ERR_NOMEM;
        }
        self->items = items;
        self->cap = cap;
    }
    self->items[self->count++] = (trust_item){kind, name, value};
    self->is_sorted = false;
    return BAY_OK;
}

bay_err trust_definitions_add_list(trust_definitions *self, trust_kind kind, json_val list)
{
    json_iter iter = json_iter_of(list);
    while (json_next(&iter)) {
        bay_str name;
        bay_err err = json_str(json_get(iter.value, kinds[kind].name), &self->memory, &name);
        if (err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT) {
            return err;
        }
        if (err != BAY_OK) {
            self->left_out++;
            continue;
        }
        err = trust_definitions_add(self, kind, name, iter.value);
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

bay_err trust_definitions_add_card(trust_definitions *self, json_val card)
{
    return trust_definitions_add(self, TRUST_CARD, (bay_str){"", 0}, card);
}

bay_err trust_definitions_add_text(trust_definitions *self, trust_kind kind, bay_str text)
{
    json_builder made;
    json_val value;
    json_put_str(json_builder_init(&made, &self->memory, 6 * text.len + 16), text);
    bay_err err = json_builder_end(&made, &value);
    return err == BAY_OK ? trust_definitions_add(self, kind, (bay_str){"", 0}, value) : err;
}

static bool is_card(json_val object)
{
    return json_is(json_get(object, STR("skills")), JSON_ARRAY) ||
           json_is(json_get(object, STR("protocolVersion")), JSON_STRING);
}

bay_err trust_definitions_add_object(trust_definitions *self, json_val object, bay_diag *diag)
{
    json_val inner = json_get(object, STR("result")); /* a response that was kept whole */
    object = json_is(inner, JSON_OBJECT) ? inner : object;
    bool has_any = false;
    for (trust_kind kind = 0; kind < TRUST_KINDS; kind++) {
        json_val list = json_get(object, kinds[kind].list);
        if (kinds[kind].list.len > 0 && json_is(list, JSON_ARRAY)) {
            bay_err err = trust_definitions_add_list(self, kind, list);
            if (err != BAY_OK) {
                return diag_set(diag, err, "%s", bay_err_text(err));
            }
            has_any = true;
        }
    }
    json_val text = json_get(object, STR("instructions"));
    if (json_is(text, JSON_STRING)) {
        has_any = true;
        bay_err err = trust_definitions_add(self, TRUST_INSTRUCTIONS, (bay_str){"", 0}, text);
        if (err != BAY_OK) {
            return diag_set(diag, err, "%s", bay_err_text(err));
        }
    }
    if (!has_any && is_card(object)) {
        return trust_definitions_add_card(self, object);
    }
    return has_any ? BAY_OK
                   : diag_set(diag, BAY_ERR_INVALID,
                              "it has no tools, resources, resourceTemplates, prompts or "
                              "instructions, and is no agent card");
}

/* ---- order ----------------------------------------------------------------------------------- */

static int compare(trust_kind kind, bay_str name, const trust_item *item)
{
    return kind != item->kind ? (int)kind - (int)item->kind : str_cmp(name, item->name);
}

int trust_item_compare(const trust_item *a, const trust_item *b)
{
    return a == NULL ? 1 : b == NULL ? -1 : compare(a->kind, a->name, b);
}

/* Equal ones in the order in which they came. */
static int compare_items(const void *a, const void *b)
{
    const trust_item *left = a;
    const trust_item *right = b;
    int order = compare(left->kind, left->name, right);
    if (order != 0) {
        return order;
    }
    size_t first = json_offset(left->value);
    size_t second = json_offset(right->value);
    return first < second ? -1 : first > second;
}

void trust_definitions_sort(trust_definitions *self)
{
    size_t kept = 0;
    if (self->is_sorted || self->count == 0) {
        self->is_sorted = true;
        return;
    }
    qsort(self->items, self->count, sizeof(*self->items), compare_items);
    for (size_t i = 0; i < self->count; i++) {
        const trust_item *item = &self->items[i];
        if (kept > 0 && compare(item->kind, item->name, &self->items[kept - 1]) == 0) {
            self->left_out++;
        } else {
            self->items[kept++] = *item;
        }
    }
    self->count = kept;
    self->is_sorted = true;
}

const trust_item *trust_definitions_find(const trust_definitions *self, trust_kind kind,
                                         bay_str name)
{
    size_t low = 0;
    size_t high = self->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare(kind, name, &self->items[middle]);
        if (order == 0) {
            return &self->items[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}
