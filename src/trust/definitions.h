/* What a server or an agent says of itself, from wherever it comes: a session, a recording (the
 * output of `patchbay list --json` or a list's result), a lock file, an agent's card. */
#ifndef TRUST_DEFINITIONS_H
#define TRUST_DEFINITIONS_H

#include "base/arena.h"
#include "patchbay/types.h"
#include "policy/scan.h"
#include "json/json.h"

enum {
    TRUST_ITEMS = 400000, /* of one server, all kinds together */
    TRUST_TEXT_BYTES = 1 << 30,
};

/* In the order in which they are listed, compared and stored. */
typedef enum trust_kind {
    TRUST_INSTRUCTIONS, /* one, without a name */
    TRUST_CARD,         /* one, without a name */
    TRUST_PROMPT,
    TRUST_RESOURCE,
    TRUST_TEMPLATE,
    TRUST_TOOL,
    TRUST_KINDS
} trust_kind;

const char *trust_kind_text(trust_kind kind); /* "tool" */
bool trust_kind_find(bay_str text, trust_kind *out);
scan_kind trust_kind_scanned(trust_kind kind);

typedef struct trust_item {
    trust_kind kind;
    bay_str name; /* decoded: name, URI or template; "" where there is one */
    json_val value;
} trust_item;

typedef struct trust_definitions {
    arena memory;
    bay_str server; /* its name for people */
    trust_item *items;
    size_t count;
    size_t cap;
    size_t left_out; /* items without a name, or with one that came before */
    bool is_sorted;
} trust_definitions;

/* `server` is copied when the first item is added. */
void trust_definitions_init(trust_definitions *self, bay_str server);
void trust_definitions_fini(trust_definitions *self);

/* One item, which stays where it is. BAY_ERR_LIMIT, BAY_ERR_NOMEM. */
bay_err trust_definitions_add(trust_definitions *self, trust_kind kind, bay_str name,
                              json_val value) BAY_MUST_CHECK;
/* The items of a list, which stays where it is. BAY_ERR_LIMIT, BAY_ERR_NOMEM. */
bay_err trust_definitions_add_list(trust_definitions *self, trust_kind kind,
                                   json_val list) BAY_MUST_CHECK;
/* One value: a card, or the instructions as a text; the text is copied. */
bay_err trust_definitions_add_card(trust_definitions *self, json_val card) BAY_MUST_CHECK;
bay_err trust_definitions_add_text(trust_definitions *self, trust_kind kind,
                                   bay_str text) BAY_MUST_CHECK;
/* Everything that a recorded object has: tools, resources, resourceTemplates, prompts,
 * instructions; or it is a card. BAY_ERR_INVALID: it has none of these, and `diag` says so. */
bay_err trust_definitions_add_object(trust_definitions *self, json_val object,
                                     bay_diag *diag) BAY_MUST_CHECK;

/* By kind, then by name; two of one name: the first stays. */
void trust_definitions_sort(trust_definitions *self);
/* The order of the two; one that is missing (NULL) comes last. */
int trust_item_compare(const trust_item *a, const trust_item *b);
/* NULL: there is none. Sorted before. */
const trust_item *trust_definitions_find(const trust_definitions *self, trust_kind kind,
                                         bay_str name);

#endif
