/* JSON Schema: compiled once, checked many times. A compiled schema is immutable, owns everything
 * it needs and may be used by any number of threads at once; what a check needs to write lies in a
 * schema_state, one for each thread. A check that succeeds allocates nothing once its state is
 * warm.
 *
 * Dialects: 2020-12 (also without $schema) and draft-07 (by $schema); any other is refused by name.
 * A $ref never leaves the document, except to documents that the caller hands over and to the two
 * dialects' own meta-schemas, which are built in: nothing is ever fetched. Every bound is in
 * schema_limits. docs/schema.md has the details, among them every known difference. */
#ifndef SCHEMA_SCHEMA_H
#define SCHEMA_SCHEMA_H

#include "base/arena.h"
#include "base/buf.h"
#include "patchbay/types.h"
#include "json/json.h"

typedef struct schema schema;

typedef enum schema_dialect {
    SCHEMA_2020_12,
    SCHEMA_DRAFT_07,
} schema_dialect;

/* Of compiling (the first seven) and of one check. 0 means the default. */
typedef struct schema_limits {
    size_t max_bytes;         /* the schema and the documents it reaches: 4 MiB */
    uint32_t max_depth;       /* its nesting: 96 */
    uint32_t max_values;      /* its JSON values, keys counted: 262,144 */
    uint32_t max_patterns;    /* different regular expressions: 1,024 */
    size_t max_pattern_bytes; /* of one of them: 4,096 */
    size_t max_uri_bytes;     /* of one $id or $ref, resolved: 4,096 */
    uint64_t max_lookups;     /* work to resolve references, in members looked at: 2^26 */
    uint32_t max_levels;      /* schemas applied inside each other: 400 */
    uint64_t max_steps;       /* work of one check, in schemas applied to values: 2^22 */
    size_t max_scratch_bytes; /* memory of one check: 16 MiB */
} schema_limits;

/* A document that a $ref (or a $schema, for its $vocabulary) may name. */
typedef struct schema_document {
    bay_str uri; /* absolute, without fragment */
    json_val root;
} schema_document;

typedef struct schema_options {
    schema_dialect dialect; /* of a document without $schema */
    bool ignores_format;    /* `format` is an annotation; else it is asserted */
    const schema_limits *limits;
    const schema_document *documents;
    size_t document_count;
    bay_str
        uri; /* where the schema came from: the base of its relative $id and $ref; may be empty */
} schema_options;

extern const schema_limits schema_default_limits;

/* Compiles `root`. options NULL: 2020-12, formats asserted, default limits, no other documents.
 * Owns: copies what it keeps; `*out` is the caller's (schema_free).
 * Errors: BAY_ERR_SYNTAX (no valid schema), BAY_ERR_DUPLICATE (a key twice), BAY_ERR_UNSUPPORTED
 * (another dialect or vocabulary, a regular expression beyond PCRE2), BAY_ERR_NOT_FOUND (a
 * reference that leads nowhere or leaves the document), BAY_ERR_LIMIT and BAY_ERR_DEPTH (the text
 * names the bound), BAY_ERR_NOMEM; `diag` has the place as a JSON pointer, and as an offset into
 * the text of `root`'s document.
 * Units: bytes. Threads: any. Source: draft-bhutton-json-schema-01, -validation-01;
 * draft-handrews-json-schema-01, -validation-01. */
bay_err schema_compile(json_val root, const schema_options *options, schema **out,
                       bay_diag *diag) BAY_MUST_CHECK;

/* Owns: takes `self`, which may be NULL. Threads: when no other uses it. */
void schema_free(schema *self);

/* What a check writes on. Serves any schema, one check at a time; may be kept for ever. */
typedef struct schema_state {
    arena text;      /* decoded strings */
    uint64_t *words; /* sets of members and items already evaluated: a stack */
    size_t words_len;
    size_t words_cap;
    uint32_t *slots; /* hash table of uniqueItems */
    size_t slots_cap;
    void *match; /* PCRE2's match data */
    size_t max_bytes;
} schema_state;

/* Owns: the caller's storage; nothing is taken before it is needed. Threads: one at a time. */
void schema_state_init(schema_state *self);
void schema_state_fini(schema_state *self);

enum { SCHEMA_MAX_FAILURES = 8, SCHEMA_FAILURE_BYTES = 4096 };

/* One rule that the instance breaks. All three end in a NUL that is not counted. */
typedef struct schema_failure {
    bay_str path; /* JSON pointer to the value; escapes stay as the instance writes them */
    bay_str
        rule; /* JSON pointer to the keyword, with its document's URI before '#' if it has one */
    bay_str text; /* a sentence: /limit must be an integer, got a string ("ten") */
} schema_failure;

/* The first few failures, with room for their texts; about 4.5 KB, the caller's storage. */
typedef struct schema_failures {
    size_t count;
    bool is_cut; /* there were more, or there was no more room */
    schema_failure item[SCHEMA_MAX_FAILURES];
    size_t used;
    char text[SCHEMA_FAILURE_BYTES];
} schema_failures;

/* Does the instance satisfy the schema? scratch NULL: the call makes its own. out NULL: only the
 * verdict.
 * Owns: `out` is filled in on every error but BAY_ERR_NOMEM, and refers only to itself. Errors:
 * BAY_ERR_INVALID: it does not; BAY_ERR_LIMIT: a bound of the schema's limits was reached before
 * there was a verdict (`out` says which); BAY_ERR_NOMEM. Threads: any, each with its own scratch.
 * Source: as for schema_compile. */
bay_err schema_check(const schema *self, json_val instance, schema_state *scratch,
                     schema_failures *out) BAY_MUST_CHECK;

/* Appends the sentences, one a line. Owns: nothing. Errors: stick in `out`. Threads: any. */
void schema_failures_print(const schema_failures *self, buf *out);

#endif
