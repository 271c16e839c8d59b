/* What the files of the diff share: the walk through two values at once. */
#ifndef TRUST_DIFF_WALK_H
#define TRUST_DIFF_WALK_H

#include "trust/diff.h"

typedef struct diff_walk {
    trust_diff *out;
    arena scratch; /* of one item */
    trust_kind kind;
    bay_str item;
    buf pointer;
    unsigned depth;
    bay_err err;
} diff_walk;

/* Notes a change at the place where the walk is. */
void diff_note(diff_walk *self, trust_class class, json_val before, json_val after,
               const char *why);

/* One member of two objects, or one element of two lists. */
typedef struct diff_pair {
    bay_str key;
    json_val before;
    json_val after;
} diff_pair;

/* Goes one level down and back; false: too deep, what is there has been noted. */
bool diff_enter(diff_walk *self, const diff_pair *pair, size_t *out_mark);
void diff_leave(diff_walk *self, size_t mark);

/* The members of two objects, by name: in `*out`, of the scratch. A name that stands twice: its first. */
size_t diff_members(diff_walk *self, json_val before, json_val after, diff_pair **out);
/* The elements of two lists by what `key` of each says; those without it are left out. */
size_t diff_keyed(diff_walk *self, json_val before, json_val after, bay_str key, diff_pair **out);
/* The elements as a set: by their canonical form. */
size_t diff_set(diff_walk *self, json_val before, json_val after, diff_pair **out);

bool diff_is_same(diff_walk *self, json_val before, json_val after);
/* Whatever is below, as REVIEW. */
void diff_any(diff_walk *self, json_val before, json_val after, const char *why);
/* Calls `each` for all pairs that are not the same, one level down. */
void diff_each(diff_walk *self, diff_pair *pairs, size_t count,
               void (*each)(diff_walk *self, const diff_pair *pair, void *context), void *context);

/* diff_schema.c */
typedef enum diff_side { DIFF_INPUT, DIFF_OUTPUT } diff_side;
void diff_schema(diff_walk *self, diff_side side, json_val before, json_val after);

/* diff_card.c */
void diff_card(diff_walk *self, json_val before, json_val after);

#endif
