/* The compiled form: flat arrays, created once. Private to schema/.
 *
 * The schema's text (and the text of every document it refers to) is copied with its index, so that
 * a place in it is a json_val; constants, limits and names are read there. A node is a schema at
 * one place, applied to one value. Its rules are adjacent, and those for each kind of value are a
 * range. What a report names is found from the place when it is needed. */
#ifndef SCHEMA_PROGRAM_H
#define SCHEMA_PROGRAM_H

#include "base/map.h"
#include "schema/format.h"
#include "schema/pattern.h"
#include "schema/schema.h"

/* The values that a rule applies to. A node's rules are sorted by it; RULES_LAST run after all
 * others, because they need to know what the others have evaluated. */
typedef enum rule_group {
    RULES_NUMBER,
    RULES_STRING,
    RULES_ARRAY,
    RULES_OBJECT,
    RULES_ANY,
    RULES_LAST,
    RULE_GROUPS,
} rule_group;

/* kind, group, keyword */
#define RULE_KINDS(X)                                                                              \
    X(MULTIPLE_OF, NUMBER, "multipleOf")                                                           \
    X(MINIMUM, NUMBER, "minimum")                                                                  \
    X(MAXIMUM, NUMBER, "maximum")                                                                  \
    X(EXCLUSIVE_MINIMUM, NUMBER, "exclusiveMinimum")                                               \
    X(EXCLUSIVE_MAXIMUM, NUMBER, "exclusiveMaximum")                                               \
    X(MIN_LENGTH, STRING, "minLength")                                                             \
    X(MAX_LENGTH, STRING, "maxLength")                                                             \
    X(PATTERN, STRING, "pattern")                                                                  \
    X(FORMAT, STRING, "format")                                                                    \
    X(MIN_ITEMS, ARRAY, "minItems")                                                                \
    X(MAX_ITEMS, ARRAY, "maxItems")                                                                \
    X(UNIQUE_ITEMS, ARRAY, "uniqueItems")                                                          \
    X(CONTAINS, ARRAY, "contains")                                                                 \
    X(ITEMS, ARRAY, "items")                                                                       \
    X(MIN_PROPERTIES, OBJECT, "minProperties")                                                     \
    X(MAX_PROPERTIES, OBJECT, "maxProperties")                                                     \
    X(MEMBERS, OBJECT, "properties")                                                               \
    X(PROPERTY_NAMES, OBJECT, "propertyNames")                                                     \
    X(DEPENDENT_REQUIRED, OBJECT, "dependentRequired")                                             \
    X(DEPENDENT_SCHEMA, OBJECT, "dependentSchemas")                                                \
    X(ENUM, ANY, "enum")                                                                           \
    X(CONST, ANY, "const")                                                                         \
    X(REF, ANY, "$ref")                                                                            \
    X(DYNAMIC_REF, ANY, "$dynamicRef")                                                             \
    X(ALL_OF, ANY, "allOf")                                                                        \
    X(ANY_OF, ANY, "anyOf")                                                                        \
    X(ONE_OF, ANY, "oneOf")                                                                        \
    X(NOT, ANY, "not")                                                                             \
    X(IF, ANY, "if")                                                                               \
    X(UNEVALUATED_ITEMS, LAST, "unevaluatedItems")                                                 \
    X(UNEVALUATED_PROPERTIES, LAST, "unevaluatedProperties")

typedef enum rule_kind {
#define RULE_ENUM(name, group, keyword) RULE_##name,
    RULE_KINDS(RULE_ENUM)
#undef RULE_ENUM
} rule_kind;

enum { NODE_NONE = 0 }; /* node 0 is unused */

/* a and b are a node; or the start and the length of a list of nodes; or an index. */
typedef struct program_rule {
    uint8_t kind;     /* rule_kind */
    bool is_small;    /* of a number: its value is `small` */
    bool is_assumed;  /* minContains: 0 */
    uint32_t keyword; /* its value's place in the node's document */
    uint32_t a;
    uint32_t b;
    uint64_t most; /* a count */
    int64_t small; /* a limit, or the least count */
} program_rule;

enum {
    TYPE_NULL = 1 << 0,
    TYPE_BOOLEAN = 1 << 1,
    TYPE_NUMBER = 1 << 2,
    TYPE_STRING = 1 << 3,
    TYPE_ARRAY = 1 << 4,
    TYPE_OBJECT = 1 << 5,
    TYPE_INTEGER = 1 << 6, /* integers only */
    TYPE_ANY = TYPE_NULL | TYPE_BOOLEAN | TYPE_NUMBER | TYPE_STRING | TYPE_ARRAY | TYPE_OBJECT,
};

typedef struct program_node {
    uint32_t document;
    uint32_t at;
    uint32_t resource;   /* for the dynamic scope */
    uint8_t types;       /* 0: nothing is valid (false) */
    uint8_t busy;        /* the types of value that a rule applies to */
    bool sees_evaluated; /* has a rule of RULES_LAST */
    uint32_t from;       /* its rules */
    uint32_t ends[RULE_GROUPS];
} program_node;

/* A name of an object's table. */
typedef struct member_name {
    bay_str text;
    uint32_t child;  /* or NODE_NONE */
    uint8_t bit;     /* in the set of required names, if below MOST_BITS */
    bool is_defined; /* in `properties` */
} member_name;

enum { MOST_BITS = 64, NAME_LISTED = 0xfe /* required, but without a bit */, NAME_NO_BIT = 0xff };

/* properties, required, patternProperties and additionalProperties in one walk. */
typedef struct program_members {
    uint32_t names; /* first of `name_count` in the names */
    uint32_t name_count;
    uint32_t slots; /* first of slot_mask + 1 in the slots; each a name's number + 1, or 0 */
    uint32_t slot_mask;
    uint32_t patterns; /* first of pattern_count pairs (pattern, node) in the lists */
    uint32_t pattern_count;
    uint32_t additional;    /* node, or NODE_NONE */
    bool is_closed;         /* additionalProperties: false */
    uint64_t required;      /* bits that must be set */
    uint32_t more_required; /* first of more_count names (numbers) in the lists: without a bit */
    uint32_t more_count;
} program_members;

/* The nodes of a dynamic anchor, one per resource, sorted by resource. */
typedef struct dynamic_target {
    uint32_t resource;
    uint32_t target;
} dynamic_target;

typedef struct program_resource {
    uint32_t document;
    uint32_t at;
    bay_str uri;
    schema_dialect dialect;
    bool has_validation; /* $vocabulary of its meta-schema */
    bool has_applicator;
    bool has_unevaluated;
    bool has_format; /* asserted */
} program_resource;

typedef struct program_document {
    bay_str uri;
    const json_doc *doc;
} program_document;

struct schema {
    arena memory;
    schema_limits limits;
    uint64_t seed;
    program_document *documents;
    size_t document_count, document_cap;
    program_resource *resources;
    size_t resource_count, resource_cap;
    program_node *nodes;
    size_t node_count, node_cap;
    program_rule *rules;
    size_t rule_count, rule_cap;
    uint32_t *lists;
    size_t list_count, list_cap;
    program_members *members;
    size_t members_count, members_cap;
    member_name *names;
    size_t name_count, name_cap;
    uint32_t *slots;
    size_t slot_count, slot_cap;
    dynamic_target *dynamic;
    size_t dynamic_count, dynamic_cap;
    pattern **patterns;
    size_t pattern_count, pattern_cap;
    pattern_engine *engine;     /* NULL: no pattern */
    pattern *idn[IDN_PATTERNS]; /* NULL: no format that needs them */
    uint32_t root;
    bool has_dynamic;
};

static inline json_val schema_place(const schema *self, uint32_t which, uint32_t at)
{
    return (json_val){self->documents[which].doc, at};
}

/* Names are short and usually equal to the expected one: a call of memcmp costs more than this
 * comparison. */
static inline bool schema_name_eq(bay_str a, bay_str b)
{
    if (a.len != b.len) {
        return false;
    }
    uint64_t left[2];
    uint64_t right[2];
    if (a.len >= 8 && a.len <= 16) {
        __builtin_memcpy(&left[0], a.at, 8);
        __builtin_memcpy(&right[0], b.at, 8);
        __builtin_memcpy(&left[1], a.at + a.len - 8, 8);
        __builtin_memcpy(&right[1], b.at + b.len - 8, 8);
        return ((left[0] ^ right[0]) | (left[1] ^ right[1])) == 0;
    }
    if (a.len >= 4 && a.len < 8) {
        uint32_t word[4];
        __builtin_memcpy(&word[0], a.at, 4);
        __builtin_memcpy(&word[1], b.at, 4);
        __builtin_memcpy(&word[2], a.at + a.len - 4, 4);
        __builtin_memcpy(&word[3], b.at + b.len - 4, 4);
        return ((word[0] ^ word[1]) | (word[2] ^ word[3])) == 0;
    }
    if (a.len > 16) {
        return __builtin_memcmp(a.at, b.at, a.len) == 0;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (a.at[i] != b.at[i]) {
            return false;
        }
    }
    return true;
}

/* Keyed: peers choose the names. */
static inline uint64_t schema_name_hash(bay_str name, uint64_t seed)
{
    uint64_t hash = seed ^ (name.len * 0x9e3779b97f4a7c15U);
    size_t i = 0;
    for (; i + 8 <= name.len; i += 8) {
        uint64_t word;
        __builtin_memcpy(&word, name.at + i, sizeof(word));
        unsigned __int128 product = (unsigned __int128)(hash ^ word) * 0xe7037ed1a0b428dbU;
        hash = (uint64_t)product ^ (uint64_t)(product >> 64) ^ seed;
    }
    uint64_t last = 0;
    for (size_t shift = 0; i < name.len; i++, shift += 8) {
        last |= (uint64_t)(unsigned char)name.at[i] << shift;
    }
    unsigned __int128 product = (unsigned __int128)(hash ^ last) * 0xa0761d6478bd642fU;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif
