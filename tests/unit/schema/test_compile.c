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
    {"7", BAY_ERR_SYNTAX, "a schema is an object, true or false"},
    {"\"string\"", BAY_ERR_SYNTAX, "a schema is an object"},
    {"[]", BAY_ERR_SYNTAX, "a schema is an object"},
    {"{\"properties\":{\"a\":1}}", BAY_ERR_SYNTAX, "/properties/a: a schema is an object"},
    {"{\"items\":\"x\"}", BAY_ERR_SYNTAX, "/items: a schema is an object"},
    /* keywords of the wrong form */
    {"{\"type\":\"strng\"}", BAY_ERR_SYNTAX, "/type: must be one of null, boolean"},
    {"{\"type\":[\"string\",7]}", BAY_ERR_SYNTAX, "/type: must be one of"},
    {"{\"type\":[]}", BAY_ERR_SYNTAX, "/type: must be one of"},
    {"{\"type\":7}", BAY_ERR_SYNTAX, "/type: must be one of"},
    {"{\"properties\":[]}", BAY_ERR_SYNTAX, "/properties: must be an object of schemas"},
    {"{\"patternProperties\":7}", BAY_ERR_SYNTAX,
     "/patternProperties: must be an object of schemas"},
    {"{\"required\":\"a\"}", BAY_ERR_SYNTAX, "/required: must be a list of strings"},
    {"{\"required\":[1]}", BAY_ERR_SYNTAX, "/required: must be a list of strings"},
    {"{\"dependentRequired\":{\"a\":\"b\"}}", BAY_ERR_SYNTAX, "must hold lists of strings"},
    {"{\"dependentRequired\":{\"a\":[1]}}", BAY_ERR_SYNTAX, "must hold lists of strings"},
    {"{\"dependentSchemas\":[]}", BAY_ERR_SYNTAX, "/dependentSchemas: must be an object"},
    {"{\"minLength\":-1}", BAY_ERR_SYNTAX, "/minLength: must be an integer that is not below 0"},
    {"{\"maxItems\":1.5}", BAY_ERR_SYNTAX, "/maxItems: must be an integer"},
    {"{\"minProperties\":\"1\"}", BAY_ERR_SYNTAX, "/minProperties: must be an integer"},
    {"{\"contains\":{},\"minContains\":-1}", BAY_ERR_SYNTAX, "/minContains: must be an integer"},
    {"{\"minimum\":\"0\"}", BAY_ERR_SYNTAX, "/minimum: must be a number"},
    {"{\"multipleOf\":0}", BAY_ERR_SYNTAX, "/multipleOf: must be above 0"},
    {"{\"multipleOf\":-2}", BAY_ERR_SYNTAX, "/multipleOf: must be above 0"},
    {"{\"multipleOf\":1.234567890123456789}", BAY_ERR_SYNTAX, "at most 18 digits"},
    {"{\"uniqueItems\":1}", BAY_ERR_SYNTAX, "/uniqueItems: must be true or false"},
    {"{\"enum\":\"a\"}", BAY_ERR_SYNTAX, "/enum: must be a list of values"},
    {"{\"allOf\":[]}", BAY_ERR_SYNTAX, "/allOf: must be a list of at least one schema"},
    {"{\"anyOf\":{}}", BAY_ERR_SYNTAX, "/anyOf: must be a list of at least one schema"},
    {"{\"prefixItems\":[]}", BAY_ERR_SYNTAX, "/prefixItems: must be a list of at least one schema"},
    {"{\"items\":[{}]}", BAY_ERR_SYNTAX, "a list of them is prefixItems"},
    {"{\"format\":7}", BAY_ERR_SYNTAX, "/format: must be a string"},
    {"{\"pattern\":7}", BAY_ERR_SYNTAX, "/pattern: a pattern is a string"},
    {"{\"pattern\":\"(\"}", BAY_ERR_SYNTAX, "a group is not closed"},
    {"{\"pattern\":\"(*ACCEPT)a\"}", BAY_ERR_SYNTAX, "nothing to repeat"},
    {"{\"pattern\":\"a(?R)\"}", BAY_ERR_SYNTAX, "no such group"},
    {"{\"pattern\":\"(?i)a\"}", BAY_ERR_SYNTAX, "no such group"},
    {"{\"pattern\":\"a++\"}", BAY_ERR_SYNTAX, "nothing to repeat"},
    {"{\"pattern\":\"\\\\Qa\\\\E\"}", BAY_ERR_SYNTAX, "no such escape"},
    {"{\"pattern\":\"\\\\K\"}", BAY_ERR_SYNTAX, "no such escape"},
    {"{\"pattern\":\"[b-a]\"}", BAY_ERR_SYNTAX, "a range that runs backwards"},
    {"{\"pattern\":\"a{3,2}\"}", BAY_ERR_SYNTAX, "a count that runs backwards"},
    {"{\"pattern\":\"(?<=a+)b\"}", BAY_ERR_UNSUPPORTED, "PCRE2 cannot compile"},
    {"{\"patternProperties\":{\"[\":true}}", BAY_ERR_SYNTAX, "this bracket is not closed"},
    {"{\"type\":\"object\",\"type\":\"array\"}", BAY_ERR_DUPLICATE, "stands twice"},
    /* names */
    {"{\"$id\":7}", BAY_ERR_SYNTAX, "/$id: $id must be a string"},
    {"{\"$id\":\"http://x/#a\"}", BAY_ERR_SYNTAX, "/$id: $id has a fragment"},
    {"{\"$anchor\":\"1a\"}", BAY_ERR_SYNTAX, "/$anchor: an anchor is a string"},
    {"{\"$dynamicAnchor\":\"\"}", BAY_ERR_SYNTAX, "/$dynamicAnchor: an anchor is a string"},
    {"{\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"}}}", BAY_ERR_DUPLICATE,
     "/$defs/b/$anchor: a second schema is named #x"},
    {"{\"$defs\":{\"a\":{\"$id\":\"http://x/\"},\"b\":{\"$id\":\"http://x/\"}}}", BAY_ERR_DUPLICATE,
     "a second schema is named http://x/"},
    /* references */
    {"{\"$ref\":7}", BAY_ERR_SYNTAX, "/$ref: a reference is a string"},
    {"{\"$ref\":\"#/$defs/a\"}", BAY_ERR_NOT_FOUND, "/$ref: #/$defs/a leads nowhere"},
    {"{\"$ref\":\"#a\"}", BAY_ERR_NOT_FOUND, "#a leads nowhere"},
    {"{\"$ref\":\"#/properties/~2\"}", BAY_ERR_NOT_FOUND, "leads nowhere"},
    {"{\"$ref\":\"#/%zz\"}", BAY_ERR_SYNTAX, "fragment of this reference is broken"},
    {"{\"$ref\":\"#/type\",\"type\":\"string\"}", BAY_ERR_SYNTAX, "/type: a schema is an object"},
    {"{\"allOf\":[{\"$ref\":\"#/allOf/7\"}]}", BAY_ERR_NOT_FOUND, "leads nowhere"},
    {"{\"allOf\":[{\"$ref\":\"#/allOf/00\"}]}", BAY_ERR_NOT_FOUND, "leads nowhere"},
    {"{\"$dynamicRef\":\"#node\"}", BAY_ERR_NOT_FOUND, "#node leads nowhere"},
    {"{\"$ref\":\"https://example.com/schema\"}", BAY_ERR_NOT_FOUND,
     "https://example.com/schema is not in this document, and nothing is ever fetched"},
    {"{\"$ref\":\"file:///etc/passwd\"}", BAY_ERR_NOT_FOUND, "nothing is ever fetched"},
    {"{\"$ref\":\"other.json#/a\"}", BAY_ERR_NOT_FOUND, "nothing is ever fetched"},
    /* dialects */
    {"{\"$schema\":7}", BAY_ERR_SYNTAX, "/$schema: $schema must be a string"},
    {"{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\"}", BAY_ERR_UNSUPPORTED,
     "the dialect https://json-schema.org/draft/2019-09/schema is not supported; 2020-12 and "
     "draft-07 are"},
    {"{\"$schema\":\"http://json-schema.org/draft-04/schema#\"}", BAY_ERR_UNSUPPORTED,
     "the dialect http://json-schema.org/draft-04/schema# is not supported"},
    {"{\"$schema\":\"http://json-schema.org/schema#\"}", BAY_ERR_UNSUPPORTED, "is not supported"},
    {"{\"$schema\":\"https://example.com/mine\"}", BAY_ERR_UNSUPPORTED, "https://example.com/mine"},
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
    assert_int_equal(schema_compile(inner, NULL, &compiled, &diag), BAY_ERR_SYNTAX);
    assert_int_equal(diag.offset, strchr(text, '7') - text);
    assert_int_equal(schema_compile(JSON_NONE, NULL, &compiled, &diag), BAY_ERR_INVALID);
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
    assert_int_equal(check_once(draft_07, "[7]", NULL), BAY_ERR_INVALID);
    assert_int_equal(check_once(draft_07, "[\"a\",\"b\"]", NULL), BAY_ERR_INVALID);
    assert_int_equal(check_once(draft_07, "[\"a\",2]", NULL), BAY_OK);
    /* by the options, where the schema does not say */
    schema *compiled = NULL;
    bay_diag diag;
    const schema_options options = {.dialect = SCHEMA_DRAFT_07};
    assert_int_equal(
        compile_within("{\"items\":[{\"type\":\"string\"}]}", &options, &compiled, &diag), BAY_OK);
    assert_int_equal(check_text_of(compiled, "[7]", NULL), BAY_ERR_INVALID);
    schema_free(compiled);
}

static void format_may_be_an_annotation(void **state)
{
    (void)state;
    schema *compiled = NULL;
    bay_diag diag;
    const schema_options options = {.ignores_format = true};
    assert_int_equal(check_once("{\"format\":\"date\"}", "\"today\"", NULL), BAY_ERR_INVALID);
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
                     BAY_ERR_NOT_FOUND);
    assert_non_null(strstr(diag.text, "https://example.com/more is not in this document"));
    assert_int_equal(compile_within("{\"$ref\":\"lib#/a\"}", &options, &compiled, &diag), BAY_OK);
    arena_fini(&memory); /* what it needs, it has copied */
    assert_int_equal(check_text_of(compiled, "null", NULL), BAY_OK);
    schema_failures failures;
    assert_int_equal(check_text_of(compiled, "7", &failures), BAY_ERR_INVALID);
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
                     BAY_ERR_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "the vocabulary \"https://x/own\" is not supported"));
    assert_int_equal(
        compile_within(
            "{\"$schema\":\"https://x/a\",\"type\":\"null\",\"properties\":{\"a\":false}}",
            &options, &compiled, &diag),
        BAY_OK);
    assert_int_equal(check_text_of(compiled, "{\"a\":1}", NULL), BAY_ERR_INVALID);
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
        assert_int_equal(check_once(dialects[i], "{\"type\":\"strng\"}", NULL), BAY_ERR_INVALID);
        assert_int_equal(check_once(dialects[i], "{\"not\":{\"minLength\":-1}}", NULL),
                         BAY_ERR_INVALID);
        assert_int_equal(check_once(dialects[i], "{\"pattern\":\"(\"}", NULL), BAY_ERR_INVALID);
        assert_int_equal(check_once(dialects[i], "{\"properties\":{\"a\":7}}", NULL),
                         BAY_ERR_INVALID);
        assert_int_equal(
            check_once(dialects[i], "{\"properties\":{\"a\":{\"type\":\"null\"}}}", NULL), BAY_OK);
    }
    assert_int_equal(check_once(dialects[0], "{\"prefixItems\":[]}", NULL), BAY_ERR_INVALID);
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
