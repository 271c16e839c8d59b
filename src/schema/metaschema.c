/* The meta-schemas of the two dialects, so that a $ref to them needs no document. They have the
 * same content as the published ones in one document: 2020-12's vocabularies are not separate here.
 * Sources: draft-bhutton-json-schema-01 and -validation-01; draft-handrews-json-schema-01 and
 * -validation-01. */
#include "base/str.h"
#include "schema/compile.h"

const char schema_uri_2020_12[] = "https://json-schema.org/draft/2020-12/schema";
const char schema_uri_draft_07[] = "http://json-schema.org/draft-07/schema";

#define ONE "{\"$dynamicRef\":\"#meta\"}"
#define MAP_OF_ONE "{\"type\":\"object\",\"additionalProperties\":" ONE "}"
#define LIST_OF_ONE "{\"type\":\"array\",\"minItems\":1,\"items\":" ONE "}"
#define COUNT "{\"type\":\"integer\",\"minimum\":0}"
#define NUMBER "{\"type\":\"number\"}"
#define TEXT "{\"type\":\"string\"}"
#define YES_OR_NO "{\"type\":\"boolean\"}"
#define TEXTS "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"string\"}}"
#define ANCHOR "{\"type\":\"string\",\"pattern\":\"^[A-Za-z_][-A-Za-z0-9._]*$\"}"
#define REFERENCE "{\"type\":\"string\",\"format\":\"uri-reference\"}"
#define TYPE                                                                                       \
    "{\"enum\":[\"array\",\"boolean\",\"integer\",\"null\",\"number\",\"object\",\"string\"]}"
#define TYPES                                                                                      \
    "{\"anyOf\":[" TYPE ",{\"type\":\"array\",\"minItems\":1,\"uniqueItems\":true,"                \
    "\"items\":" TYPE "}]}"

/* Keywords with the same meta-schema in both dialects. */
#define COMMON                                                                                     \
    "\"$comment\":" TEXT ",\"title\":" TEXT ",\"description\":" TEXT ",\"default\":true,"          \
    "\"readOnly\":" YES_OR_NO ",\"writeOnly\":" YES_OR_NO ",\"examples\":{\"type\":\"array\"},"    \
    "\"multipleOf\":{\"type\":\"number\",\"exclusiveMinimum\":0},\"maximum\":" NUMBER ","          \
    "\"exclusiveMaximum\":" NUMBER ",\"minimum\":" NUMBER ",\"exclusiveMinimum\":" NUMBER ","      \
    "\"maxLength\":" COUNT ",\"minLength\":" COUNT ","                                             \
    "\"pattern\":{\"type\":\"string\",\"format\":\"regex\"},\"maxItems\":" COUNT ","               \
    "\"minItems\":" COUNT ",\"uniqueItems\":" YES_OR_NO ",\"maxProperties\":" COUNT ","            \
    "\"minProperties\":" COUNT ",\"required\":" TEXTS ",\"const\":true,"                           \
    "\"enum\":{\"type\":\"array\"},\"type\":" TYPES ",\"format\":" TEXT ","                        \
    "\"contentMediaType\":" TEXT ",\"contentEncoding\":" TEXT

static const char text_2020_12[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
    "\"$id\":\"https://json-schema.org/draft/2020-12/schema\",\"$dynamicAnchor\":\"meta\","
    "\"title\":\"JSON Schema 2020-12\",\"type\":[\"object\",\"boolean\"],\"properties\":{"
    "\"$id\":{\"type\":\"string\",\"format\":\"uri-reference\",\"pattern\":\"^[^#]*#?$\"},"
    "\"$schema\":{\"type\":\"string\",\"format\":\"uri\"},\"$ref\":" REFERENCE ","
    "\"$anchor\":" ANCHOR ",\"$dynamicRef\":" REFERENCE ",\"$dynamicAnchor\":" ANCHOR ","
    "\"$vocabulary\":{\"type\":\"object\",\"propertyNames\":{\"type\":\"string\","
    "\"format\":\"uri\"},\"additionalProperties\":{\"type\":\"boolean\"}},"
    "\"$defs\":" MAP_OF_ONE ",\"definitions\":" MAP_OF_ONE ","
    "\"prefixItems\":" LIST_OF_ONE ",\"items\":" ONE ",\"contains\":" ONE ","
    "\"additionalProperties\":" ONE ",\"properties\":" MAP_OF_ONE ","
    "\"patternProperties\":{\"type\":\"object\",\"additionalProperties\":" ONE ","
    "\"propertyNames\":{\"format\":\"regex\"}},\"dependentSchemas\":" MAP_OF_ONE ","
    "\"propertyNames\":" ONE ",\"if\":" ONE ",\"then\":" ONE ",\"else\":" ONE ","
    "\"allOf\":" LIST_OF_ONE ",\"anyOf\":" LIST_OF_ONE ",\"oneOf\":" LIST_OF_ONE ",\"not\":" ONE ","
    "\"unevaluatedItems\":" ONE ",\"unevaluatedProperties\":" ONE ","
    "\"maxContains\":" COUNT ",\"minContains\":" COUNT ","
    "\"dependentRequired\":{\"type\":\"object\",\"additionalProperties\":" TEXTS "},"
    "\"dependencies\":{\"type\":\"object\",\"additionalProperties\":{\"anyOf\":[" ONE "," TEXTS
    "]}},\"deprecated\":" YES_OR_NO ",\"contentSchema\":" ONE "," COMMON "}}";

#undef ONE
#define ONE "{\"$ref\":\"#\"}"

static const char text_draft_07[] =
    "{\"$schema\":\"http://json-schema.org/draft-07/schema#\","
    "\"$id\":\"http://json-schema.org/draft-07/schema#\",\"title\":\"JSON Schema draft-07\","
    "\"type\":[\"object\",\"boolean\"],\"properties\":{"
    "\"$id\":" REFERENCE ",\"$schema\":{\"type\":\"string\",\"format\":\"uri\"},"
    "\"$ref\":" REFERENCE ",\"definitions\":" MAP_OF_ONE ","
    "\"items\":{\"anyOf\":[" ONE "," LIST_OF_ONE "]},\"additionalItems\":" ONE ","
    "\"contains\":" ONE ",\"additionalProperties\":" ONE ",\"properties\":" MAP_OF_ONE ","
    "\"patternProperties\":{\"type\":\"object\",\"additionalProperties\":" ONE ","
    "\"propertyNames\":{\"format\":\"regex\"}},"
    "\"dependencies\":{\"type\":\"object\",\"additionalProperties\":{\"anyOf\":[" ONE "," TEXTS
    "]}},\"propertyNames\":" ONE ",\"if\":" ONE ",\"then\":" ONE ",\"else\":" ONE ","
    "\"allOf\":" LIST_OF_ONE ",\"anyOf\":" LIST_OF_ONE ",\"oneOf\":" LIST_OF_ONE ",\"not\":" ONE
    "," COMMON "}}";

bay_str schema_metaschema(bay_str uri, schema_dialect *out)
{
    if (str_eq(uri, str_of(schema_uri_2020_12))) {
        *out = SCHEMA_2020_12;
        return str_of(text_2020_12);
    }
    if (str_eq(uri, str_of(schema_uri_draft_07))) {
        *out = SCHEMA_DRAFT_07;
        return str_of(text_draft_07);
    }
    return (bay_str){"", 0};
}
