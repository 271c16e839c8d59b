/* One check. check.c walks nodes and composition, check_object.c and check_array.c containers,
 * check_scalar.c numbers and strings; report.c writes the failures. Private to schema/.
 *
 * A check first runs without reports and stops at the first failure. If it fails and the caller
 * wants reports, it runs again and writes them. */
#ifndef SCHEMA_CHECK_H
#define SCHEMA_CHECK_H

#include "schema/place.h"
#include "schema/program.h"

typedef struct check {
    const schema *schema;
    json_val root; /* the instance */
    schema_state *state;
    schema_failures *out; /* NULL: no reports */
    uint64_t steps;       /* left */
    uint32_t levels;      /* left */
    bay_err err;          /* BAY_ERR_LIMIT or BAY_ERR_NOMEM: there is no result */
    const char *bound;    /* the limit that was reached, with BAY_ERR_LIMIT */
    fixed_text sentence;  /* the one being written */
} check;

/* The resources around a node, innermost first; kept only if a dynamic reference may need them. */
typedef struct scope {
    const struct scope *outer;
    uint32_t resource;
} scope;

/* Where a set of evaluated members or items begins in the state's words, plus 1; 0: not needed. */
typedef size_t marks;

/* The context in which one value is checked. */
typedef struct frame {
    const program_node *node;
    json_val value;
    marks marks;
    const scope *scope;
} frame;

/* Whether the value satisfies the node. False also after an error. */
bool check_apply(check *self, uint32_t number, json_val value, marks into, const scope *outer);

/* Like check_apply, without reports. Marks what it evaluates only if the node is satisfied. */
bool check_try(check *self, uint32_t number, json_val value, marks into, const scope *outer);

bool check_number(check *self, const frame *at);
bool check_string(check *self, const frame *at);
bool check_array(check *self, const frame *at);
bool check_object(check *self, const frame *at);
bool check_unevaluated_items(check *self, const frame *at, const program_rule *one);
bool check_unevaluated_members(check *self, const frame *at, const program_rule *one);

/* Equality as JSON Schema defines it: 1 equals 1.0, and the order of members is ignored. */
bool check_equal(check *self, json_val a, json_val b);

bool check_pattern(check *self, uint32_t which, json_val text, bool *out);

/* The decoded text of a string, valid until the next call. False: a lone surrogate, or an error. */
bool check_text(check *self, json_val value, bay_str *out);

/* Subtracts from the remaining steps; false (and an error) if they are not enough. */
bool check_spend(check *self, uint64_t steps);
bool check_fail(check *self, bay_err err, const char *bound); /* false */

/* A new set for `count` members; 0: error. Released by check_pop, in reverse order. */
marks check_push(check *self, size_t count);
void check_pop(check *self, marks set);

static inline void check_mark(check *self, marks set, size_t index)
{
    if (set != 0) {
        self->state->words[set - 1 + index / 64] |= (uint64_t)1 << (index % 64);
    }
}

static inline bool check_is_marked(const check *self, marks set, size_t index)
{
    return (self->state->words[set - 1 + index / 64] >> (index % 64) & 1) != 0;
}

static inline uint8_t check_type(json_kind kind)
{
    static const uint8_t types[] = {
        [JSON_MISSING] = 0,         [JSON_NULL] = TYPE_NULL,     [JSON_FALSE] = TYPE_BOOLEAN,
        [JSON_TRUE] = TYPE_BOOLEAN, [JSON_NUMBER] = TYPE_NUMBER, [JSON_STRING] = TYPE_STRING,
        [JSON_ARRAY] = TYPE_ARRAY,  [JSON_OBJECT] = TYPE_OBJECT,
    };
    return types[kind];
}

/* Whether nothing is reported, so that the first failure ends the check. */
static inline bool check_is_silent(const check *self)
{
    return self->out == NULL;
}

static inline json_val check_keyword(const check *self, const frame *at, const program_rule *one)
{
    return schema_place(self->schema, at->node->document, one->keyword);
}

/* Reporting. These functions do nothing if nothing is reported, and return false. */

/* Begins a failure of `value` by `keyword` (a value of the schema); returns the sink for the rest
 * of the sentence after its subject, or NULL. */
#define REPORT_COLD __attribute__((cold, noinline))
REPORT_COLD fixed_text *report_open(check *self, json_val value, json_val keyword);
REPORT_COLD bool report_close(check *self);
/* A whole sentence: the subject, followed by this text. */
REPORT_COLD bool report(check *self, json_val value, json_val keyword, const char *format, ...)
    BAY_PRINTF(4, 5);
REPORT_COLD bool report_type(check *self, json_val value, json_val keyword, uint8_t types);
REPORT_COLD bool report_enum(check *self, json_val value, json_val keyword);
REPORT_COLD bool report_unknown_member(check *self, const frame *at, const program_members *names,
                                       json_val key);
REPORT_COLD bool report_alternatives(check *self, const frame *at, const program_rule *one);
void report_error(check *self); /* reports which limit was reached */

/* Describes a value: a string ("ten"). */
void report_got(fixed_text *out, json_val value);

#endif
