/* What is no schema, what is one of another dialect, and what reaches beyond its document: refused,
 * with the place and the reason. */
#include "case.h"

typedef struct refusal {
    const char *text;
    bay_err err;
    const char *says;
} refusal;

static const refusal refusals[] = {
    /* no schema at all */
    {"7", BAY_SYNTAX, "a schema is an object, true or false"},
    {"\"string\"", BAY_SYNTAX, "a schema is an object"},
    {"[]", BAY_SYNTAX, "a schema is an object"},
    {"{\"properties\":{\"a\":1}}", BAY_SYNTAX, "/properties/a: a schema is an object"},
    {"{\"items\":\"x\"}", BAY_SYNTAX, "/items: a schema is an object"},
    /* keywords of the wrong form */
    {"{\"type\":\"strng\"}", BAY_SYNTAX, "/type: must be one of null, boolean"},
    {"{\"type\":[\"string\",7]}", BAY_SYNTAX, "/type: must be one of"},
    {"{\"type\":[]}", BAY_SYNTAX, "/type: must be one of"},
    {"{\"type\":7}", BAY_SYNTAX, "/type: must be one of"},
    {"{\"properties\":[]}", BAY_SYNTAX, "/properties: must be an object of schemas"},
    {"{\"patternProperties\":7}", BAY_SYNTAX, "/patternProperties: must be an object of schemas"},
    {"{\"required\":\"a\"}", BAY_SYNTAX, "/required: must be a list of strings"},
    {"{\"required\":[1]}", BAY_SYNTAX, "/required: must be a list of strings"},
    {"{\"dependentRequired\":{\"a\":\"b\"}}", BAY_SYNTAX, "must hold lists of strings"},
    {"{\"dependentRequired\":{\"a\":[1]}}", BAY_SYNTAX, "must hold lists of strings"},
    {"{\"dependentSchemas\":[]}", BAY_SYNTAX, "/dependentSchemas: must be an object"},
    {"{\"minLength\":-1}", BAY_SYNTAX, "/minLength: must be an integer that is not below 0"},
    {"{\"maxItems\":1.5}", BAY_SYNTAX, "/maxItems: must be an integer"},
    {"{\"minProperties\":\"1\"}", BAY_SYNTAX, "/minProperties: must be an integer"},
    {"{\"contains\":{},\"minContains\":-1}", BAY_SYNTAX, "/minContains: must be an integer"},
    {"{\"minimum\":\"0\"}", BAY_SYNTAX, "/minimum: must be a number"},
    {"{\"multipleOf\":0}", BAY_SYNTAX, "/multipleOf: must be above 0"},
    {"{\"multipleOf\":-2}", BAY_SYNTAX, "/multipleOf: must be above 0"},
    {"{\"multipleOf\":1.234567890123456789}", BAY_SYNTAX, "at most 18 digits"},
    {"{\"uniqueItems\":1}", BAY_SYNTAX, "/uniqueItems: must be true or false"},
    {"{\"enum\":\"a\"}", BAY_SYNTAX, "/enum: must be a list of values"},
    {"{\"allOf\":[]}", BAY_SYNTAX, "/allOf: must be a list of at least one schema"},
    {"{\"anyOf\":{}}", BAY_SYNTAX, "/anyOf: must be a list of at least one schema"},
    {"{\"prefixItems\":[]}", BAY_SYNTAX, "/prefixItems: must be a list of at least one schema"},
    {"{\"items\":[{}]}", BAY_SYNTAX, "a list of them is prefixItems"},
    {"{\"format\":7}", BAY_SYNTAX, "/format: must be a string"},
    {"{\"pattern\":7}", BAY_SYNTAX, "/pattern: a pattern is a string"},
    {"{\"pattern\":\"(\"}", BAY_SYNTAX, "a group is not closed"},
    {"{\"pattern\":\"(*ACCEPT)a\"}", BAY_SYNTAX, "nothing to repeat"},
    {"{\"pattern\":\"a(?R)\"}", BAY_SYNTAX, "no such group"},
    {"{\"pattern\":\"(?i)a\"}", BAY_SYNTAX, "no such group"},
    {"{\"pattern\":\"a++\"}", BAY_SYNTAX, "nothing to repeat"},
    {"{\"pattern\":\"\\\\Qa\\\\E\"}", BAY_SYNTAX, "no such escape"},
    {"{\"pattern\":\"\\\\K\"}", BAY_SYNTAX, "no such escape"},
    {"{\"pattern\":\"[b-a]\"}", BAY_SYNTAX, "a range that runs backwards"},
    {"{\"pattern\":\"a{3,2}\"}", BAY_SYNTAX, "a count that runs backwards"},
    {"{\"pattern\":\"(?<=a+)b\"}", BAY_UNSUPPORTED, "PCRE2 cannot compile"},
    {"{\"patternProperties\":{\"[\":true}}", BAY_SYNTAX, "this bracket is not closed"},
    {"{\"type\":\"object\",\"type\":\"array\"}", BAY_DUPLICATE, "stands twice"},
    /* names */
    {"{\"$id\":7}", BAY_SYNTAX, "/$id: $id must be a string"},
    {"{\"$id\":\"http://x/#a\"}", BAY_SYNTAX, "/$id: $id has a fragment"},
    {"{\"$anchor\":\"1a\"}", BAY_SYNTAX, "/$anchor: an anchor is a string"},
    {"{\"$dynamicAnchor\":\"\"}", BAY_SYNTAX, "/$dynamicAnchor: an anchor is a string"},
    {"{\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"}}}", BAY_DUPLICATE,
     "/$defs/b/$anchor: a second schema is named #x"},
    {"{\"$defs\":{\"a\":{\"$id\":\"http://x/\"},\"b\":{\"$id\":\"http://x/\"}}}", BAY_DUPLICATE,
     "a second schema is named http://x/"},
    /* references */
    {"{\"$ref\":7}", BAY_SYNTAX, "/$ref: a reference is a string"},
    {"{\"$ref\":\"#/$defs/a\"}", BAY_NOTFOUND, "/$ref: #/$defs/a leads nowhere"},
    {"{\"$ref\":\"#a\"}", BAY_NOTFOUND, "#a leads nowhere"},
    {"{\"$ref\":\"#/properties/~2\"}", BAY_NOTFOUND, "leads nowhere"},
    {"{\"$ref\":\"#/%zz\"}", BAY_SYNTAX, "fragment of this reference is broken"},
    {"{\"$ref\":\"#/type\",\"type\":\"string\"}", BAY_SYNTAX, "/type: a schema is an object"},
    {"{\"allOf\":[{\"$ref\":\"#/allOf/7\"}]}", BAY_NOTFOUND, "leads nowhere"},
    {"{\"allOf\":[{\"$ref\":\"#/allOf/00\"}]}", BAY_NOTFOUND, "leads nowhere"},
    {"{\"$dynamicRef\":\"#node\"}", BAY_NOTFOUND, "#node leads nowhere"},
    {"{\"$ref\":\"https://example.com/schema\"}", BAY_NOTFOUND,
     "https://example.com/schema is not in this document, and nothing is ever fetched"},
    {"{\"$ref\":\"file:///etc/passwd\"}", BAY_NOTFOUND, "nothing is ever fetched"},
    {"{\"$ref\":\"other.json#/a\"}", BAY_NOTFOUND, "nothing is ever fetched"},
    /* dialects */
    {"{\"$schema\":7}", BAY_SYNTAX, "/$schema: $schema must be a string"},
    {"{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\"}", BAY_UNSUPPORTED,
     "the dialect https://json-schema.org/draft/2019-09/schema is not supported; 2020-12 and "
     "draft-07 are"},
    {"{\"$schema\":\"http://json-schema.org/draft-04/schema#\"}", BAY_UNSUPPORTED,
     "the dialect http://json-schema.org/draft-04/schema# is not supported"},
    {"{\"$schema\":\"http://json-schema.org/schema#\"}", BAY_UNSUPPORTED, "is not supported"},
    {"{\"$schema\":\"https://example.com/mine\"}", BAY_UNSUPPORTED, "https://example.com/mine"},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        schema *compiled = NULL;
        bay_diag diag;
        bay_err err = compile_within(refusals[i].text, NULL, &compiled, &diag);
        if (err != refusals[i].err || strstr(diag.text, refusals[i].says) == NULL) {
            print_error("%s\n%d: %s\n", refusals[i].text, (int)err, diag.text);
        }
        assert_int_equal(err, refusals[i].err);
        assert_int_equal(diag.code, refusals[i].err);
        assert_non_null(strstr(diag.text, refusals[i].says));
        assert_null(compiled);
    }
}

static void says_where_in_the_text(void **state)
{
    (void)state;
    static const char text[] = "{\"tool\":{\"inputSchema\":{\"properties\":{\"a\":{\"type\":7}}}}}";
    arena memory;
    json_doc doc;
    schema *compiled = NULL;
    bay_diag diag = {0};
    arena_init(&memory, 1U << 20);
    assert_int_equal(json_parse(&doc, str_of(text), NULL, &memory, NULL), BAY_OK);
    json_val inner = json_pointer(json_root(&doc), STR("/tool/inputSchema"));
    assert_int_equal(schema_compile(inner, NULL, &compiled, &diag), BAY_SYNTAX);
    assert_int_equal(diag.offset, strchr(text, '7') - text);
    assert_int_equal(schema_compile(JSON_NONE, NULL, &compiled, &diag), BAY_INVALID);
    assert_null(compiled);
    arena_fini(&memory);
}

static void other_dialects_are_other(void **state)
{
    (void)state;
    /* draft-07 by $schema: everything beside a $ref is ignored, and items may be a list */
    static const char draft_07[] =
        "{\"$schema\":\"http://json-schema.org/draft-07/"
        "schema#\",\"items\":[{\"type\":\"string\"}],"
        "\"additionalItems\":{\"$ref\":\"#/definitions/n\",\"maximum\":1},"
        "\"definitions\":{\"n\":{\"type\":\"number\"}}}";
    assert_int_equal(check_once(draft_07, "[7]", NULL), BAY_INVALID);
    assert_int_equal(check_once(draft_07, "[\"a\",\"b\"]", NULL), BAY_INVALID);
    assert_int_equal(check_once(draft_07, "[\"a\",2]", NULL), BAY_OK);
    /* by the options, where the schema does not say */
    schema *compiled = NULL;
    bay_diag diag;
    const schema_options options = {.dialect = SCHEMA_DRAFT_07};
    assert_int_equal(
        compile_within("{\"items\":[{\"type\":\"string\"}]}", &options, &compiled, &diag), BAY_OK);
    assert_int_equal(check_text_of(compiled, "[7]", NULL), BAY_INVALID);
    schema_free(compiled);
}

static void format_may_be_an_annotation(void **state)
{
    (void)state;
    schema *compiled = NULL;
    bay_diag diag;
    const schema_options options = {.ignores_format = true};
    assert_int_equal(check_once("{\"format\":\"date\"}", "\"today\"", NULL), BAY_INVALID);
    assert_int_equal(compile_within("{\"format\":\"date\"}", &options, &compiled, &diag), BAY_OK);
    assert_int_equal(check_text_of(compiled, "\"today\"", NULL), BAY_OK);
    schema_free(compiled);
    assert_int_equal(check_once("{\"format\":\"shoe-size\"}", "\"today\"", NULL), BAY_OK);
}

static void documents_come_from_the_caller_only(void **state)
{
    (void)state;
    arena memory;
    json_doc doc;
    schema *compiled = NULL;
    bay_diag diag;
    arena_init(&memory, 1U << 20);
    assert_int_equal(
        json_parse(&doc,
                   STR("{\"$defs\":{\"n\":{\"$ref\":\"more#n\"}},"
                       "\"a\":{\"$id\":\"more\",\"$anchor\":\"n\",\"type\":\"null\"}}"),
                   NULL, &memory, NULL),
        BAY_OK);
    const schema_document documents[] = {{STR("https://example.com/lib"), json_root(&doc)}};
    const schema_options options = {
        .documents = documents, .document_count = 1, .uri = STR("https://example.com/tool")};
    /* under the unknown keyword "a", the $id names nothing */
    assert_int_equal(compile_within("{\"$ref\":\"lib#/$defs/n\"}", &options, &compiled, &diag),
                     BAY_NOTFOUND);
    assert_non_null(strstr(diag.text, "https://example.com/more is not in this document"));
    assert_int_equal(compile_within("{\"$ref\":\"lib#/a\"}", &options, &compiled, &diag), BAY_OK);
    arena_fini(&memory); /* what it needs, it has copied */
    assert_int_equal(check_text_of(compiled, "null", NULL), BAY_OK);
    schema_failures failures;
    assert_int_equal(check_text_of(compiled, "7", &failures), BAY_INVALID);
    assert_string_equal(failures.item[0].rule.at, "https://example.com/lib#/a/type");
    schema_free(compiled);
}

static void vocabularies_switch_keywords(void **state)
{
    (void)state;
    arena memory;
    json_doc doc[2];
    schema *compiled = NULL;
    bay_diag diag;
    arena_init(&memory, 1U << 20);
#define VOCABULARY "https://json-schema.org/draft/2020-12/vocab/"
#define META "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$vocabulary\":{"
    assert_int_equal(json_parse(&doc[0],
                                STR(META "\"" VOCABULARY "core\":true,\"" VOCABULARY
                                         "applicator\":true,\"https://x/own\":false}}"),
                                NULL, &memory, NULL),
                     BAY_OK);
    assert_int_equal(json_parse(&doc[1], STR(META "\"https://x/own\":true}}"), NULL, &memory, NULL),
                     BAY_OK);
    const schema_document documents[] = {{STR("https://x/a"), json_root(&doc[0])},
                                         {STR("https://x/b"), json_root(&doc[1])}};
    const schema_options options = {.documents = documents, .document_count = 2};
    assert_int_equal(compile_within("{\"$schema\":\"https://x/b\"}", &options, &compiled, &diag),
                     BAY_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "the vocabulary \"https://x/own\" is not supported"));
    assert_int_equal(
        compile_within(
            "{\"$schema\":\"https://x/a\",\"type\":\"null\",\"properties\":{\"a\":false}}",
            &options, &compiled, &diag),
        BAY_OK);
    assert_int_equal(check_text_of(compiled, "{\"a\":1}", NULL), BAY_INVALID);
    assert_int_equal(check_text_of(compiled, "{}", NULL), BAY_OK); /* type says nothing here */
    schema_free(compiled);
    arena_fini(&memory);
}

/* The published dialects, by the schemas that are built in. */
static void schemas_are_instances_too(void **state)
{
    (void)state;
    static const char *const dialects[] = {
        "{\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}",
        "{\"$ref\":\"http://json-schema.org/draft-07/schema#\"}"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(check_once(dialects[i], "{\"type\":\"strng\"}", NULL), BAY_INVALID);
        assert_int_equal(check_once(dialects[i], "{\"not\":{\"minLength\":-1}}", NULL),
                         BAY_INVALID);
        assert_int_equal(check_once(dialects[i], "{\"pattern\":\"(\"}", NULL), BAY_INVALID);
        assert_int_equal(check_once(dialects[i], "{\"properties\":{\"a\":7}}", NULL), BAY_INVALID);
        assert_int_equal(
            check_once(dialects[i], "{\"properties\":{\"a\":{\"type\":\"null\"}}}", NULL), BAY_OK);
    }
    assert_int_equal(check_once(dialects[0], "{\"prefixItems\":[]}", NULL), BAY_INVALID);
    assert_int_equal(check_once(dialects[1], "{\"prefixItems\":[]}", NULL), BAY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses),
        cmocka_unit_test(says_where_in_the_text),
        cmocka_unit_test(other_dialects_are_other),
        cmocka_unit_test(format_may_be_an_annotation),
        cmocka_unit_test(documents_come_from_the_caller_only),
        cmocka_unit_test(vocabularies_switch_keywords),
        cmocka_unit_test(schemas_are_instances_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
