/* The parts of the compiler: compile.c begins and ends, compile_index.c finds documents, resources
 * and anchors, compile_node.c turns keywords into rules. Errors stick: after the first one the
 * compiler does nothing more. Private to schema/. */
#ifndef SCHEMA_COMPILE_H
#define SCHEMA_COMPILE_H

#include "schema/program.h"

typedef struct place {
    uint32_t document;
    uint32_t at;
    bool is_dynamic; /* a $dynamicAnchor */
} place;

/* What compiling knows of a document's places: by place; 0: nothing. */
typedef struct source {
    uint32_t *node_of;
    uint32_t *resource_of; /* its number + 1 */
} source;

typedef struct dynamic_place {
    struct dynamic_place *next;
    uint32_t resource;
    uint32_t document;
    uint32_t at;
} dynamic_place;

typedef struct dynamic_name {
    struct dynamic_name *next;
    dynamic_place *places;
    bool is_used;
    size_t from; /* in the schema's dynamic targets, at the end */
    size_t count;
} dynamic_name;

typedef struct compiler {
    schema *self;
    const schema_options *options;
    const schema_limits *limits;
    bay_diag *diag;
    bay_err err;
    size_t root_offset; /* the schema's offset in the caller's text */
    source *sources;
    size_t source_cap;
    size_t bytes;
    size_t values;
    uint64_t lookups;
    bool is_late;            /* indexing a schema that only a reference showed to be one */
    map places;              /* "uri" and "uri#anchor" -> place */
    map pattern_of;          /* text -> its pattern's address in self->patterns */
    map dynamic_of;          /* name -> dynamic_name */
    dynamic_name *dynamic;   /* all of them */
    uint32_t *dynamic_rules; /* rules whose b is not yet filled in */
    dynamic_name **dynamic_rule_names;
    size_t dynamic_rule_count, dynamic_rule_cap, dynamic_rule_name_cap;
} compiler;

/* Notes the first error, with its place (UINT32_MAX: none), and returns it. */
bay_err compile_fail(compiler *self, bay_err err, json_val where, const char *format, ...)
    BAY_PRINTF(4, 5);

/* Room for one more item in an array of the schema or the compiler. */
bool compile_grow(compiler *self, void *array, size_t *cap, size_t count, size_t item);

/* A copy of a string value's text that lives as long as the schema. */
bool compile_text(compiler *self, json_val value, bay_str *out);

/* Copies a document; returns its number, or UINT32_MAX. */
uint32_t compile_document(compiler *self, bay_str uri, json_val from, schema_dialect dialect);

/* The place that `reference`, in a resource, refers to; false (and an error) if there is none. */
bool compile_resolve(compiler *self, uint32_t resource, json_val reference, place *out,
                     bay_str *out_anchor);

/* The node of a place; created and queued for compiling if there is none. NODE_NONE on error. */
uint32_t compile_node_at(compiler *self, uint32_t document, uint32_t at);

void compile_node(compiler *self, uint32_t number);

dynamic_name *compile_dynamic_name(compiler *self, bay_str name);

/* The keywords, and what they contain. */
typedef enum keyword_shape {
    SHAPE_VALUE,
    SHAPE_SCHEMA,
    SHAPE_SCHEMA_OR_LIST,
    SHAPE_LIST,
    SHAPE_MAP,
} keyword_shape;

typedef enum keyword_vocabulary {
    VOCABULARY_CORE,
    VOCABULARY_APPLICATOR,
    VOCABULARY_VALIDATION,
    VOCABULARY_UNEVALUATED,
    VOCABULARY_FORMAT,
} keyword_vocabulary;

enum { IN_2020_12 = 1 << SCHEMA_2020_12, IN_DRAFT_07 = 1 << SCHEMA_DRAFT_07, IN_BOTH = 3 };

/* id, text, shape, vocabulary, dialects */
#define KEYWORDS(X)                                                                                \
    X(ID, "$id", VALUE, CORE, IN_BOTH)                                                             \
    X(SCHEMA, "$schema", VALUE, CORE, IN_BOTH)                                                     \
    X(REF, "$ref", VALUE, CORE, IN_BOTH)                                                           \
    X(ANCHOR, "$anchor", VALUE, CORE, IN_2020_12)                                                  \
    X(DYNAMIC_REF, "$dynamicRef", VALUE, CORE, IN_2020_12)                                         \
    X(DYNAMIC_ANCHOR, "$dynamicAnchor", VALUE, CORE, IN_2020_12)                                   \
    X(DEFS, "$defs", MAP, CORE, IN_2020_12)                                                        \
    X(DEFINITIONS, "definitions", MAP, CORE, IN_BOTH)                                              \
    X(ALL_OF, "allOf", LIST, APPLICATOR, IN_BOTH)                                                  \
    X(ANY_OF, "anyOf", LIST, APPLICATOR, IN_BOTH)                                                  \
    X(ONE_OF, "oneOf", LIST, APPLICATOR, IN_BOTH)                                                  \
    X(NOT, "not", SCHEMA, APPLICATOR, IN_BOTH)                                                     \
    X(IF, "if", SCHEMA, APPLICATOR, IN_BOTH)                                                       \
    X(THEN, "then", SCHEMA, APPLICATOR, IN_BOTH)                                                   \
    X(ELSE, "else", SCHEMA, APPLICATOR, IN_BOTH)                                                   \
    X(PREFIX_ITEMS, "prefixItems", LIST, APPLICATOR, IN_2020_12)                                   \
    X(ITEMS, "items", SCHEMA_OR_LIST, APPLICATOR, IN_BOTH)                                         \
    X(ADDITIONAL_ITEMS, "additionalItems", SCHEMA, APPLICATOR, IN_DRAFT_07)                        \
    X(CONTAINS, "contains", SCHEMA, APPLICATOR, IN_BOTH)                                           \
    X(PROPERTIES, "properties", MAP, APPLICATOR, IN_BOTH)                                          \
    X(PATTERN_PROPERTIES, "patternProperties", MAP, APPLICATOR, IN_BOTH)                           \
    X(ADDITIONAL_PROPERTIES, "additionalProperties", SCHEMA, APPLICATOR, IN_BOTH)                  \
    X(PROPERTY_NAMES, "propertyNames", SCHEMA, APPLICATOR, IN_BOTH)                                \
    X(DEPENDENT_SCHEMAS, "dependentSchemas", MAP, APPLICATOR, IN_2020_12)                          \
    X(DEPENDENCIES, "dependencies", MAP, APPLICATOR, IN_BOTH)                                      \
    X(UNEVALUATED_ITEMS, "unevaluatedItems", SCHEMA, UNEVALUATED, IN_2020_12)                      \
    X(UNEVALUATED_PROPERTIES, "unevaluatedProperties", SCHEMA, UNEVALUATED, IN_2020_12)            \
    X(TYPE, "type", VALUE, VALIDATION, IN_BOTH)                                                    \
    X(ENUM, "enum", VALUE, VALIDATION, IN_BOTH)                                                    \
    X(CONST, "const", VALUE, VALIDATION, IN_BOTH)                                                  \
    X(MULTIPLE_OF, "multipleOf", VALUE, VALIDATION, IN_BOTH)                                       \
    X(MINIMUM, "minimum", VALUE, VALIDATION, IN_BOTH)                                              \
    X(MAXIMUM, "maximum", VALUE, VALIDATION, IN_BOTH)                                              \
    X(EXCLUSIVE_MINIMUM, "exclusiveMinimum", VALUE, VALIDATION, IN_BOTH)                           \
    X(EXCLUSIVE_MAXIMUM, "exclusiveMaximum", VALUE, VALIDATION, IN_BOTH)                           \
    X(MIN_LENGTH, "minLength", VALUE, VALIDATION, IN_BOTH)                                         \
    X(MAX_LENGTH, "maxLength", VALUE, VALIDATION, IN_BOTH)                                         \
    X(PATTERN, "pattern", VALUE, VALIDATION, IN_BOTH)                                              \
    X(MIN_ITEMS, "minItems", VALUE, VALIDATION, IN_BOTH)                                           \
    X(MAX_ITEMS, "maxItems", VALUE, VALIDATION, IN_BOTH)                                           \
    X(UNIQUE_ITEMS, "uniqueItems", VALUE, VALIDATION, IN_BOTH)                                     \
    X(MIN_CONTAINS, "minContains", VALUE, VALIDATION, IN_2020_12)                                  \
    X(MAX_CONTAINS, "maxContains", VALUE, VALIDATION, IN_2020_12)                                  \
    X(MIN_PROPERTIES, "minProperties", VALUE, VALIDATION, IN_BOTH)                                 \
    X(MAX_PROPERTIES, "maxProperties", VALUE, VALIDATION, IN_BOTH)                                 \
    X(REQUIRED, "required", VALUE, VALIDATION, IN_BOTH)                                            \
    X(DEPENDENT_REQUIRED, "dependentRequired", VALUE, VALIDATION, IN_2020_12)                      \
    X(FORMAT, "format", VALUE, FORMAT, IN_BOTH)                                                    \
    X(CONTENT_SCHEMA, "contentSchema", SCHEMA, CORE, IN_2020_12)

typedef enum keyword_id {
#define KEYWORD_ENUM(id, text, shape, vocabulary, dialects) KEYWORD_##id,
    KEYWORDS(KEYWORD_ENUM)
#undef KEYWORD_ENUM
        KEYWORD_COUNT
} keyword_id;

typedef struct keyword {
    bay_str text;
    uint8_t shape;      /* keyword_shape */
    uint8_t vocabulary; /* keyword_vocabulary */
    uint8_t dialects;
} keyword;

/* The keywords of `object`, a schema in a resource: out[id] is the value or JSON_NONE. */
void compile_keywords(const program_resource *resource, json_val object,
                      json_val out[KEYWORD_COUNT]);
extern const keyword compile_keyword_table[KEYWORD_COUNT];

/* A built-in meta-schema, or empty. */
bay_str schema_metaschema(bay_str uri, schema_dialect *out);
extern const char schema_uri_2020_12[];
extern const char schema_uri_draft_07[];

#endif
