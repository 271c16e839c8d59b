/* The front matter of a SKILL.md: the YAML between two lines of "---", read into a tree, compared
 * with the JSON that a manifest holds, or written as that JSON.
 *
 * What skills use of YAML is read: mappings and sequences in blocks and in flow, plain, quoted and
 * block scalars, comments. Anchors, tags, directives, complex keys and tabs as indentation are not:
 * such a file is refused, never guessed at. A plain scalar keeps its text; what type it has is
 * decided by YAML 1.2's core schema when it is written, and by the JSON value when it is compared
 * (so a date is the same whether a server's reader made it a string or not). */
#ifndef SDK_FRONT_MATTER_H
#define SDK_FRONT_MATTER_H

#include "base/arena.h"
#include "json/writer.h"

enum {
    MATTER_MAX_BYTES = 64 * 1024, /* of front matter */
    MATTER_MAX_NODES = 4096,
    MATTER_MAX_DEPTH = 16,
};

typedef enum matter_kind { MATTER_PLAIN, MATTER_TEXT, MATTER_MAPPING, MATTER_SEQUENCE } matter_kind;

/* Views into the file or the arena it was read with. */
typedef struct matter {
    matter_kind kind;
    bay_str key;  /* in a mapping */
    bay_str text; /* of a scalar */
    struct matter *first;
    struct matter *next;
} matter;

/* Reads the front matter at the beginning of `file`: a mapping.
 * Errors: BAY_ERR_SYNTAX (no front matter, or no YAML), BAY_ERR_UNSUPPORTED (YAML beyond the
 * above), BAY_ERR_DUPLICATE (a key twice), BAY_ERR_LIMIT, BAY_ERR_NOMEM; `diag` has the offset. */
bay_err matter_read(bay_str file, arena *memory, const matter **out, bay_diag *diag) BAY_MUST_CHECK;

/* Is it the same as `value`, field by field? `out_field` (may be NULL): the key at the top that
 * differs, or is on one side only. BAY_ERR_DENIED when not. */
bay_err matter_compare(const matter *self, json_val value, bay_str *out_field) BAY_MUST_CHECK;

/* The member of a mapping, or NULL. */
const matter *matter_get(const matter *self, bay_str key);

/* As JSON; errors stick in the writer's buf. */
void matter_write(const matter *self, json_writer *out);

#endif
