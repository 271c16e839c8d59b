/* What the files of policy/rules share. */
#ifndef POLICY_RULES_INTERNAL_H
#define POLICY_RULES_INTERNAL_H

#include <stdatomic.h>

#include "base/map.h"
#include "base/str.h"
#include "policy/rules.h"
#include "schema/pattern.h"

typedef enum policy_operator {
    OPERATOR_IN, /* equal to one of the values */
    OPERATOR_ANY,
    OPERATOR_HAS,
    OPERATOR_PREFIX,
    OPERATOR_SUFFIX,
    OPERATOR_GLOB,
    OPERATOR_REGEX,
    OPERATOR_LT,
    OPERATOR_LE,
    OPERATOR_GT,
    OPERATOR_GE,
    OPERATOR_CIDR,
    OPERATOR_HOST,
    OPERATOR_EXISTS,
    OPERATOR_SAME_AS,
    OPERATORS,
} policy_operator;

typedef struct policy_condition {
    struct policy_condition *next;
    policy_field field;
    policy_operator op;
    bay_str key;
    const bay_str *tokens; /* of `key`, a pointer */
    size_t token_count;
    const bay_str *values;
    size_t value_count;
    bay_str joined;              /* SCOPES: the values, separated by spaces */
    bool is_wanted;              /* EXISTS: true */
    bool is_path;                /* a value has a slash: dot segments make it unknown */
    const net_network *networks; /* CIDR, one a value */
    pattern **patterns;          /* REGEX, one a value */
    const policy_group **groups; /* GROUP, one a value */
} policy_condition;

struct policy_group {
    struct policy_group *next;
    bay_str name;
    policy_condition *conditions;
    size_t condition_count;
};

typedef struct policy_text {
    struct policy_text *next;
    bay_str text;
    policy_kind kind; /* of a pattern */
    bay_str plain;    /* of a pattern of URIs: as servers read it */
} policy_text;

struct policy_rule {
    policy_rule *next;
    policy_effect effect;
    uint32_t line;
    bay_str by;
    policy_text *about;
    policy_text *servers;
    policy_text *methods;
    policy_condition *identity; /* of the principal and the origin */
    policy_condition *arguments;
    size_t condition_count;
};

struct policy_rules {
    atomic_uint references;
    policy_effect fallback;
    bool hides_locked;
    bool reads_address;
    policy_rule *first;
    policy_rule *last;
    size_t count;
    policy_group *groups;
    uint64_t hash;          /* of all that was added */
    pattern_engine *engine; /* NULL: no regular expressions */
    struct pattern_link *patterns;
    bay_str headers[POLICY_HEADERS];
    size_t header_count;
    arena memory;
};

/* What a condition compares: a text, or a JSON value. */
typedef struct policy_value {
    enum { VALUE_MISSING, VALUE_UNCLEAR, VALUE_TEXT, VALUE_JSON } kind;
    bay_str text;
    json_val json;
} policy_value;

/* rules_value.c */
/* Where the tokens of a pointer lead; UNCLEAR if a member on the way stands twice, also in another
 * case: which of them a server reads cannot be said. */
policy_value policy_value_at(json_val root, const bay_str *tokens, size_t count);
policy_truth policy_compare(const policy_rules *rules, const policy_condition *condition,
                            policy_value value, const auth_principal *principal);

/* Is it a number as JSON writes it? */
bool policy_is_number(bay_str text);

/* rules.c */
bool policy_rule_is_about(const policy_rule *self, const policy_name *what, bay_str plain,
                          bool *out_is_open);

#endif
