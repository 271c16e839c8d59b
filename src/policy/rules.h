/* Rules: whether a principal may make a call, and what it may know of. One table for tools, prompts,
 * resources, skills and agents, and for the methods that name none of them (lists, tasks).
 *
 * A rule allows, denies or wants an approval. It says what it is about by patterns of shown names,
 * and when it holds by conditions on the principal, the origin of the call and its arguments. A
 * condition is *three-valued*: yes, no, or unknown where what it reads is missing, twice there or of
 * another type.
 *
 *     deny      counts if it holds or is unknown
 *     approve   counts if it holds or is unknown; it grants nothing
 *     allow     counts if it holds
 *     the order of rules says nothing: deny > approve > allow > the default
 *
 * One function decides for lists and for calls. Without arguments it answers what some arguments
 * could be allowed, so a thing that is not shown cannot be called whatever the arguments are:
 *
 *     HIDDEN     no arguments could be allowed: it does not exist for this principal
 *     LOCKED     the same, but scopes that the principal's token lacks would change it
 *     DENIED     it exists, and these arguments are refused
 *     APPROVAL   it exists, and a person has to agree
 *     ALLOWED
 *
 * A set of rules is immutable once it is built, and counted; any thread may hold and read it.
 * Rules read a principal by the functions of auth/principal alone: what it has there is known. */
#ifndef POLICY_RULES_H
#define POLICY_RULES_H

#include "auth/principal.h"
#include "net/address.h"
#include "wire/http1.h"

enum {
    POLICY_RULES = 4096,           /* of one set */
    POLICY_PATTERN_BYTES = 1024,   /* of one pattern */
    POLICY_CONDITIONS = 64,        /* of one rule or group */
    POLICY_RULES_BYTES = 32 << 20, /* a set as it is in memory */
    POLICY_REGEX_BYTES = 4096,     /* of one regular expression */
    POLICY_REGEX_STEPS = 100000,   /* of matching one; beyond: unknown */
    POLICY_TEXT_BYTES = 1 << 20,   /* of a text that a condition reads; beyond: unknown */
    POLICY_HEADERS = 16,           /* header fields that the rules of one set name */
    POLICY_HEADER_BYTES = 4096,    /* of the value of one; beyond: unknown */
    POLICY_TARGETS = 100000,       /* that an index keeps; others are looked up each time */
};

typedef enum policy_effect { POLICY_ALLOW, POLICY_DENY, POLICY_APPROVE } policy_effect;

typedef enum policy_kind {
    POLICY_TOOL,
    POLICY_PROMPT,
    POLICY_RESOURCE,
    POLICY_TEMPLATE, /* of resources: listed if a resource that it expands to could be allowed */
    POLICY_SKILL,
    POLICY_AGENT,
    POLICY_METHOD, /* none of them: what only a rule with `method` decides */
    POLICY_KINDS,
} policy_kind;

typedef enum policy_truth {
    POLICY_NO,
    POLICY_UNKNOWN,
    POLICY_YES,
    POLICY_MAYBE, /* depends on the arguments, which are not there yet */
} policy_truth;

/* What a condition reads. */
typedef enum policy_field {
    POLICY_SUBJECT,
    POLICY_ISSUER,
    POLICY_CLIENT,
    POLICY_SCOPES,      /* all of the values; no operator */
    POLICY_CLAIM,       /* key: a JSON pointer */
    POLICY_CERTIFICATE, /* what the client certificate is for: its URI or subject */
    POLICY_ADDRESS,     /* of the client; the values are networks; no operator */
    POLICY_HEADER,      /* key: the field's name */
    POLICY_ARGUMENT,    /* key: a JSON pointer */
    POLICY_GROUP,       /* a member of one of the values; no operator */
} policy_field;

typedef struct policy_rules policy_rules;
typedef struct policy_rule policy_rule;
typedef struct policy_group policy_group;

/* ---- building -------------------------------------------------------------------------------- */

/* `fallback`: what holds where no rule counts, POLICY_ALLOW or POLICY_DENY. `hides_locked`: HIDDEN in
 * place of LOCKED.
 * Owns: the caller holds one reference. Errors: BAY_ERR_NOMEM. */
bay_err policy_rules_new(policy_effect fallback, bool hides_locked,
                         policy_rules **out) BAY_MUST_CHECK;
policy_rules *policy_rules_ref(policy_rules *self); /* both accept NULL; any thread */
void policy_rules_unref(policy_rules *self);

/* A further rule. `line`: of the file, for people. `by`: who approves, "" for nobody in particular.
 * Everything is copied. Errors of this and what follows: BAY_ERR_SYNTAX, what is wrong is in
 * `diag`; BAY_ERR_LIMIT; BAY_ERR_NOMEM. */
bay_err policy_rules_add(policy_rules *self, policy_effect effect, uint32_t line, bay_str by,
                         policy_rule **out) BAY_MUST_CHECK;
/* What it is about: a glob over tools as `/mcp` shows them, or over what follows "prompt:",
 * "resource:", "skill:", "agent:" or "tool:". `separator`: of the configuration. */
bay_err policy_rule_about(policy_rules *self, policy_rule *rule, bay_str about, bay_str separator,
                          bay_diag *diag) BAY_MUST_CHECK;
/* Only what this server or agent has. */
bay_err policy_rule_server(policy_rules *self, policy_rule *rule, bay_str name) BAY_MUST_CHECK;
/* Only this method, a glob. */
bay_err policy_rule_method(policy_rules *self, policy_rule *rule, bay_str glob) BAY_MUST_CHECK;

typedef struct policy_test {
    policy_field field;
    bay_str key;
    bay_str op; /* "": one of the values */
    const bay_str *values;
    size_t count;
} policy_test;

bay_err policy_rule_if(policy_rules *self, policy_rule *rule, const policy_test *test,
                       bay_diag *diag) BAY_MUST_CHECK;
/* A group of principals; rules that are added later may name it. */
bay_err policy_rules_group(policy_rules *self, bay_str name, policy_group **out) BAY_MUST_CHECK;
bay_err policy_group_if(policy_rules *self, policy_group *group, const policy_test *test,
                        bay_diag *diag) BAY_MUST_CHECK;

/* The operators, for documents: NULL past the last. */
const char *policy_operator_name(size_t index);

/* ---- asking ---------------------------------------------------------------------------------- */

typedef struct policy_name {
    policy_kind kind;
    bay_str server; /* or agent; "": none */
    bay_str name;   /* as rules name it: the server's name, the separator, the shown name; a URI */
    /* Only the client says that there is such a thing: an index does not keep it. */
    bool is_unlisted;
} policy_name;

/* Where a call comes from. Views live as long as it. */
typedef struct policy_header {
    bay_str name; /* lower case */
    bay_str value;
    bool is_twice;
} policy_header;

typedef struct policy_origin {
    bool has_address;
    net_address address;
    const policy_header *headers;
    size_t header_count;
} policy_origin;

typedef struct policy_question {
    policy_name about;
    bay_str method;
    const auth_principal *principal;
    const policy_origin *origin; /* NULL: unknown */
    json_val params;             /* with `arguments` */
    bool is_listing;             /* the arguments are to come: HIDDEN, LOCKED or ALLOWED */
} policy_question;

typedef enum policy_outcome {
    POLICY_HIDDEN,
    POLICY_LOCKED,
    POLICY_DENIED,
    POLICY_APPROVAL,
    POLICY_ALLOWED,
} policy_outcome;

typedef struct policy_decision {
    policy_outcome outcome;
    const policy_rule *rule; /* that decided; NULL: the default, or no rules */
    bay_str scopes; /* LOCKED: the fewest that would do, separated by spaces; of the rules */
    uint32_t line;  /* of `rule` */
} policy_decision;

/* One loop's rules, with the targets that it has asked for. Embedded in its owner. It brings the
 * functions along: a library without rules does not link them. */
typedef struct policy_index policy_index;

struct policy_index {
    policy_rules *rules; /* NULL: everything is allowed, and nothing is looked at */
    policy_decision (*decide)(policy_index *self, const policy_question *question);
    const policy_origin *(*origin)(const policy_rules *rules, const net_address *address,
                                   const http_field *fields, size_t count, arena *memory);
    struct policy_index_map *targets;
};

/* Takes a reference of its own. `rules` may be NULL. */
void policy_index_set(policy_index *self, policy_rules *rules);
void policy_index_fini(policy_index *self);

/* Of an index with rules. Threads: the index's loop. Out of memory: HIDDEN. */
static inline policy_decision policy_ask(policy_index *self, const policy_question *question)
{
    return self->decide(self, question);
}
policy_decision policy_decide(policy_index *self, const policy_question *question);

/* Do the rules read where a call comes from? */
bool policy_rules_read_origin(const policy_rules *self);
/* What they read of it, in `memory`: the address (NULL: unknown) and the header fields that some
 * rule names. `rules` NULL: the address alone. NULL where there is nothing of it, or no memory: then it is
 * unknown. */
const policy_origin *policy_origin_new(const policy_rules *rules, const net_address *address,
                                       const http_field *fields, size_t count, arena *memory);

/* ---- explaining ------------------------------------------------------------------------------ */

/* Two sets that may decide otherwise differ in it. `self` may be NULL. */
uint64_t policy_rules_hash(const policy_rules *self);
size_t policy_rules_count(const policy_rules *self);
const policy_rule *policy_rules_at(const policy_rules *self, size_t index);
policy_effect policy_rule_effect(const policy_rule *self);
uint32_t policy_rule_line(const policy_rule *self);
bay_str policy_rule_by(const policy_rule *self);
/* Does it hold? POLICY_NO also where it is about something else; `out_is_about` says which. */
policy_truth policy_rule_holds(const policy_rules *rules, const policy_rule *self,
                               const policy_question *question, bool *out_is_about);
const char *policy_outcome_text(policy_outcome outcome);

#endif
