/* Texts of servers and agents as an attack on the model that reads them: orders hidden in a
 * description, a schema, an enum, a result. Offline, deterministic, in one pass over each text.
 *
 *   definition ─ every text in it ─► normalised (scan_text) ─► words of a lexicon, each a set of
 *                                                              concepts (scan_words)
 *        │                                 │                       └─► patterns: concepts close to
 *        │                                 └─► structure: what does not show or is encoded   each
 *        └─► structure: schema and annotations (scan_schema)                                 other
 *
 * Rules are data: scan_rules.def says what there is, scan_patterns.def which concepts make a rule,
 * scan_words*.def which words are a concept, in fourteen languages. A text costs time in proportion
 * to its bytes; nothing backtracks. What cannot be scanned whole is a finding of its own. */
#ifndef POLICY_SCAN_H
#define POLICY_SCAN_H

#include "base/arena.h"
#include "base/buf.h"
#include "patchbay/types.h"
#include "json/json.h"

enum {
    SCAN_BYTES = 1 << 20,     /* of the texts of one definition; more is a finding */
    SCAN_FINDINGS = 32,       /* kept of one definition; more are counted */
    SCAN_POINTER_BYTES = 200, /* of a place */
    SCAN_EXCERPT_BYTES = 160, /* of the text that a finding is about */
    SCAN_DEPTH = 128,         /* of a definition */
    SCAN_USER_RULES = 64,
    SCAN_USER_GROUPS = 4, /* of one user's rule */
    SCAN_USER_WORDS = 32, /* alternatives of one group */
    SCAN_USER_TEXT_BYTES = 1024,
    SCAN_RESULT_BYTES = 64 << 10, /* scanned of one result's or message's texts: of longer ones half
                                   * of it at their beginning and half at their end */
};

typedef enum scan_tier { SCAN_STRUCTURE, SCAN_WORDS, SCAN_RELATION } scan_tier;

/* NOTE is for people to look at; from WARNING on the definition counts as suspicious. */
typedef enum scan_severity { SCAN_NOTE, SCAN_WARNING, SCAN_ERROR } scan_severity;

typedef enum scan_rule {
#define SCAN_RULE(symbol, id, tier, severity, why, remedy) SCAN_##symbol,
#include "policy/scan_rules.def"
    SCAN_RULES
} scan_rule;

typedef struct scan_rule_row {
    const char *id;
    scan_tier tier;
    scan_severity severity;
    const char *why;
    const char *remedy;
} scan_rule_row;

extern const scan_rule_row scan_rules[SCAN_RULES];
const char *scan_tier_text(scan_tier tier);
const char *scan_severity_text(scan_severity severity);

typedef enum scan_kind {
    SCAN_TOOL,
    SCAN_PROMPT,
    SCAN_RESOURCE,
    SCAN_TEMPLATE,
    SCAN_INSTRUCTIONS, /* a JSON string */
    SCAN_CARD,
    SCAN_SKILL,
    SCAN_CONTENT, /* a result, a message of a prompt or an agent: its texts are data */
    SCAN_KINDS
} scan_kind;

typedef struct scan_finding {
    scan_rule rule; /* SCAN_USER: `user_rule` says which */
    scan_severity severity;
    char id[48];
    char pointer[SCAN_POINTER_BYTES]; /* RFC 6901 in the definition; cut ones end in … */
    size_t start;                     /* of the text there, decoded, in bytes; at the end of a long
                                       * result as it is written */
    size_t len;
    char excerpt[SCAN_EXCERPT_BYTES]; /* shown: harmless on a terminal */
    char why[160];
    const char *encoding; /* the text was written in this; NULL: plainly */
} scan_finding;

typedef struct scan_report {
    size_t count;
    size_t total; /* also those that were not kept */
    scan_severity worst;
    bool is_cut; /* the definition was not scanned whole */
    scan_finding findings[SCAN_FINDINGS];
} scan_report;

static inline bool scan_is_suspicious(const scan_report *self)
{
    return self->total > 0 && self->worst >= SCAN_WARNING;
}

/* Names that a definition may speak of. Both may be NULL; keys only count. */
typedef struct scan_names {
    const struct map *own; /* of the same server */
    const struct map
        *others; /* of other servers: the value is the server's name, a `const char *` */
} scan_names;

typedef struct scan_rule_set scan_rule_set; /* what a user adds */

/* A rule of a user's: "SEVERITY: GROUP GROUP … : WHY", where a GROUP is words with | between them,
 * `_` standing for a space and a final * for any ending. It is found where a word of each group
 * stands within twelve words. SEVERITY and WHY may be left out. */
bay_err scan_rule_set_new(scan_rule_set **out) BAY_MUST_CHECK;
void scan_rule_set_free(scan_rule_set *self); /* NULL is fine */
/* BAY_ERR_SYNTAX, BAY_ERR_LIMIT, BAY_ERR_DUPLICATE, with `diag`; BAY_ERR_NOMEM. */
bay_err scan_rule_set_add(scan_rule_set *self, bay_str id, bay_str text,
                          bay_diag *diag) BAY_MUST_CHECK;

/* What scanning writes on; one thread's. Some 40 KB. */
typedef struct scanner scanner;
bay_err scanner_new(scanner **out) BAY_MUST_CHECK;
void scanner_free(scanner *self); /* NULL is fine */
/* Borrowed until it is set anew. NULL: none. */
void scanner_set_rules(scanner *self, const scan_rule_set *rules);

/* Scans a definition as its server sent it, or content. `names` may be NULL. `out` is overwritten.
 * Errors: BAY_ERR_NOMEM: then `out` says that it was not scanned whole (is_cut). Time: in
 * proportion to its size, up to SCAN_BYTES. */
bay_err scan_definition(scanner *self, scan_kind kind, json_val definition, const scan_names *names,
                        scan_report *out) BAY_MUST_CHECK;

/* Does content look like an order to the model? Looks at SCAN_RESULT_BYTES of its texts and stops at
 * the first finding that makes it suspicious. Images and the like in base64 are no texts. `out` may be
 * NULL; out->is_cut: not all of it was looked at. */
bool scan_content(scanner *self, json_val content, scan_report *out);

/* Is the shown name of one server's item so like another's that a reader takes one for the other?
 * Equal after folding look-alike characters and separators, or one edit apart in eight bytes. */
bool scan_names_alike(bay_str a, bay_str b);
/* The name without what does not tell two apart: case, separators, look-alike characters. Appends;
 * two names are alike if this is equal. */
void scan_name_skeleton(bay_str name, buf *out);

#endif
