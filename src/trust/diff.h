/* The changes between two sets of definitions, and what they mean for their users: each
 * change with its place, its class and the reason.
 *
 *   compatible  existing calls work as before
 *   review      a text that a model or a person reads changed, or an item was added
 *   risk        more power, another destination, or a text that now reads like an attack
 *   breaking    valid calls fail now, or results have another form
 *
 * Order of members, of items and of lists that are sets (enum, required) is no change. */
#ifndef TRUST_DIFF_H
#define TRUST_DIFF_H

#include "base/buf.h"
#include "trust/definitions.h"
#include "json/writer.h"

enum {
    TRUST_CHANGES = 100000, /* kept; more are counted */
    TRUST_WORDS = 1000,     /* of a text that are compared one by one, apart from equal ends */
    TRUST_DIFF_DEPTH = 128, /* below that a value is the same or another one */
};

typedef enum trust_class {
    TRUST_SAME,
    TRUST_COMPATIBLE,
    TRUST_REVIEW,
    TRUST_RISK,
    TRUST_BREAKING,
    TRUST_CLASSES
} trust_class;

const char *trust_class_text(trust_class class);

typedef enum trust_change_kind { TRUST_ADDED, TRUST_REMOVED, TRUST_CHANGED } trust_change_kind;

typedef struct trust_change {
    trust_class class;
    trust_change_kind how;
    trust_kind kind;
    bay_str item;
    bay_str pointer; /* in the item that has it: `before` where it was removed; "" the whole */
    json_val before; /* JSON_MISSING: added */
    json_val after;  /* JSON_MISSING: removed */
    bay_str why;
} trust_change;

typedef struct trust_diff {
    arena memory;
    trust_change *changes; /* by kind and item, in the order of their places */
    size_t count;
    size_t cap;
    size_t dropped;
    size_t counts[TRUST_CLASSES];
    trust_class worst;
} trust_diff;

void trust_diff_init(trust_diff *self);
void trust_diff_fini(trust_diff *self);

/* Compares two sorted sets, which must outlive the diff. With `scan` (may be NULL) what reads like
 * an attack now and did not before is a risk. Time: n log n of their sizes. BAY_ERR_NOMEM,
 * BAY_ERR_LIMIT. */
bay_err trust_diff_run(trust_diff *self, const trust_definitions *before,
                       const trust_definitions *after, scanner *scan) BAY_MUST_CHECK;
/* The same of two definitions of one item. Either may be missing. */
bay_err trust_diff_item(trust_diff *self, const trust_item *before, const trust_item *after,
                        scanner *scan) BAY_MUST_CHECK;

/* diff_words.c: a piece of two texts. */
typedef enum trust_piece_kind { TRUST_KEPT, TRUST_CUT, TRUST_PUT } trust_piece_kind;
typedef struct trust_piece {
    trust_piece_kind kind;
    bay_str text; /* a view of the text that has it */
} trust_piece;
/* Word by word; the pieces lie in `memory`. BAY_ERR_NOMEM, BAY_ERR_LIMIT. */
bay_err trust_words(bay_str before, bay_str after, arena *memory, trust_piece **out,
                    size_t *out_count) BAY_MUST_CHECK;

/* diff_patch.c: the members of an RFC 6902 patch that makes `after` of `before`, as a JSON array.
 * Errors stick in `out`'s buf; BAY_ERR_NOMEM, BAY_ERR_LIMIT. */
bay_err trust_patch(json_val before, json_val after, json_writer *out) BAY_MUST_CHECK;

/* diff_write.c; errors stick in `out`. Text for people: shown, harmless on a terminal. */
void trust_diff_write_text(const trust_diff *self, buf *out);
/* The same without the count at its end. */
void trust_diff_write_changes(const trust_diff *self, buf *out);
/* {"class", "counts", "changes", "patches"}; the sets are those that were compared. */
void trust_diff_write_json(const trust_diff *self, const trust_definitions *before,
                           const trust_definitions *after, buf *out);

#endif
