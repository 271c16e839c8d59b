/* What is wrong with definitions besides attacks: names, descriptions, schemas, annotations, powers without bounds,
 * the budget of a view. Rules are rows of lint_rules.def. */
#ifndef TRUST_LINT_H
#define TRUST_LINT_H

#include "trust/findings.h"

enum {
    LINT_TOOLS = 12,    /* of a view … */
    LINT_TOKENS = 8000, /* … and of their definitions: more is a note */
    LINT_NAME_BYTES = 128,
    LINT_DESCRIPTION_CHARACTERS = 1500,
};

typedef enum lint_rule {
#define LINT_RULE(symbol, id, severity, why, remedy) LINT_##symbol,
#include "trust/lint_rules.def"
    LINT_RULES
} lint_rule;

typedef struct lint_rule_row {
    const char *id;
    scan_severity severity;
    const char *why;
    const char *remedy;
} lint_rule_row;

extern const lint_rule_row lint_rules[LINT_RULES];

/* Adds what is found in one server's or agent's definitions, which are sorted. `silences` may be NULL. BAY_ERR_NOMEM,
 * BAY_ERR_LIMIT. */
bay_err trust_lint_run(trust_findings *out, const trust_definitions *of,
                       trust_silences *silences) BAY_MUST_CHECK;
/* Adds what a view costs: one server's tools, or ("" as `server`) those of a whole configuration. */
bay_err trust_lint_budget(trust_findings *out, bay_str server, size_t tools, size_t tokens,
                          trust_silences *silences) BAY_MUST_CHECK;

#endif
