/* JSON Schema: compiled once, checked many times. A compiled schema is immutable, owns everything
 * it needs and may be used by any number of threads at once. What a check writes is in a
 * schema_state, one per thread. A successful check allocates nothing once its state has grown.
 *
 * Dialects: 2020-12 (also without $schema) and draft-07 (by $schema); others are refused by name. A
 * $ref never leaves the document, except to documents that the caller supplies and to the built-in
 * meta-schemas of the two dialects: nothing is ever fetched. All limits are in schema_limits.
 * docs/schema.md has the details, with every known difference. */
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

/* For compiling (the first seven) and for one check. 0: the default. */
typedef struct schema_limits {
    size_t max_bytes;         /* the schema and the documents it reaches: 4 MiB */
    uint32_t max_depth;       /* its nesting: 96 */
    uint32_t max_values;      /* its JSON values, keys counted: 262,144 */
    uint32_t max_patterns;    /* different regular expressions: 1,024 */
    size_t max_pattern_bytes; /* of one of them: 4,096 */
    size_t max_uri_bytes;     /* of one $id or $ref, resolved: 4,096 */
    uint64_t max_lookups;     /* work to resolve references, in members compared: 2^26 */
    uint32_t max_levels;      /* schemas applied within each other: 400 */
    uint64_t max_steps;       /* work of one check, in schemas applied to values: 2^22 */
    size_t max_scratch_bytes; /* memory of one check: 16 MiB */
} schema_limits;

/* A document that a $ref (or a $schema, for its $vocabulary) may name. */
typedef struct schema_document {
    bay_str uri; /* absolute, without fragment */
    json_val root;
} schema_document;

typedef struct schema_options {
    schema_dialect dialect; /* for a document without $schema */
    bool ignores_format;    /* `format` is an annotation; otherwise it is asserted */
    const schema_limits *limits;
    const schema_document *documents;
    size_t document_count;
    bay_str uri; /* address of the schema: the base of its relative $id and $ref; may be empty */
} schema_options;

extern const schema_limits schema_default_limits;

/* Compiles `root`. options NULL: 2020-12, formats asserted, default limits, no other documents.
 * Owns: copies what it keeps; `*out` is the caller's (schema_free).
 * Errors: BAY_ERR_SYNTAX (not a valid schema), BAY_ERR_DUPLICATE (a key twice), BAY_ERR_UNSUPPORTED
 * (another dialect or vocabulary, a regular expression beyond PCRE2), BAY_ERR_NOT_FOUND (a
 * reference that finds nothing or leaves the document), BAY_ERR_LIMIT and BAY_ERR_DEPTH (the text
 * names the limit), BAY_ERR_NOMEM; `diag` has the place as a JSON pointer, and as an offset into
 * the text of `root`'s document.
 * Units: bytes.
 * Threads: any.
 * Source: draft-bhutton-json-schema-01, -validation-01; draft-handrews-json-schema-01,
 * -validation-01. */
bay_err schema_compile(json_val root, const schema_options *options, schema **out,
                       bay_diag *diag) BAY_MUST_CHECK;

/* Owns: takes `self`, which may be NULL. Threads: any, when no other thread uses it. */
void schema_free(schema *self);

/* The memory of a check. For any schema, one check at a time; may be kept. */
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

/* Owns: the caller's storage; memory is allocated when it is needed. Threads: one at a time. */
void schema_state_init(schema_state *self);
void schema_state_fini(schema_state *self);

enum { SCHEMA_MAX_FAILURES = 8, SCHEMA_FAILURE_BYTES = 4096 };

/* One rule that the instance violates. All three texts end in a NUL that is not counted. */
typedef struct schema_failure {
    bay_str path; /* JSON pointer to the value; escapes as in the instance */
    bay_str rule; /* JSON pointer to the keyword, after its document's URI and '#' if it has one */
    bay_str text; /* a sentence: /limit must be an integer, got a string ("ten") */
} schema_failure;

/* The first failures, with room for their texts; about 4.5 KB, the caller's storage. */
typedef struct schema_failures {
    size_t count;
    bool is_cut; /* there were more failures, or no more room */
    schema_failure item[SCHEMA_MAX_FAILURES];
    size_t used;
    char text[SCHEMA_FAILURE_BYTES];
} schema_failures;

/* Checks the instance against the schema. scratch NULL: the call uses its own. out NULL: only the
 * result is returned.
 * Owns: `out` is filled in on every error except BAY_ERR_NOMEM, and refers only to itself.
 * Errors: BAY_ERR_INVALID: not valid; BAY_ERR_LIMIT: a limit was reached before there was a result
 * (`out` says which); BAY_ERR_NOMEM.
 * Threads: any, each with its own scratch.
 * Source: as for schema_compile. */
bay_err schema_check(const schema *self, json_val instance, schema_state *scratch,
                     schema_failures *out) BAY_MUST_CHECK;

/* Appends the sentences, one per line. Errors: stick in `out`. Threads: any. */
void schema_failures_print(const schema_failures *self, buf *out);

#endif
