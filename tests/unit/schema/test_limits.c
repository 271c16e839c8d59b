/* Malicious schemas, malicious instances, and each bound: an error that names it, at once. Nothing
 * here may take long; ctest's own limit is the judge of that. */
#include "case.h"

#include "base/buf.h"

static void expect_refusal(const buf *text, const schema_limits *limits, bay_err err,
                           const char *says)
{
    schema *compiled = NULL;
    bay_diag diag;
    const schema_options options = {.limits = limits};
    assert_int_equal(text->err, BAY_OK);
    bay_err got = compile_within(text->at, &options, &compiled, &diag);
    if (got != err || strstr(diag.text, says) == NULL) {
        print_error("%d: %s\n", (int)got, diag.text);
    }
    assert_int_equal(got, err);
    assert_non_null(strstr(diag.text, says));
    assert_null(compiled);
}

static void expect_limit(const char *text, const char *instance, const char *bound)
{
    schema_failures failures;
    assert_int_equal(check_once(text, instance, &failures), BAY_ERR_LIMIT);
    assert_int_equal(failures.count, 1);
    if (strstr(failures.item[0].text.at, bound) == NULL) {
        print_error("%s\n", failures.item[0].text.at);
    }
    assert_non_null(strstr(failures.item[0].text.at, bound));
}

static void repeat(buf *out, const char *text, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        buf_str(out, str_of(text));
    }
}

static void ten_megabytes(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 32U << 20);
    buf_lit(&text, "{\"description\":\"");
    repeat(&text, "0123456789abcdef", (10U << 20) / 16);
    buf_lit(&text, "\"}");
    buf_char(&text, '\0');
    expect_refusal(&text, NULL, BAY_ERR_LIMIT, "max_bytes");
    /* and one that is let in */
    const schema_limits limits = {.max_bytes = 16U << 20};
    const schema_options options = {.limits = &limits};
    schema *compiled = NULL;
    bay_diag diag;
    assert_int_equal(compile_within(text.at, &options, &compiled, &diag), BAY_OK);
    schema_free(compiled);
    buf_fini(&text);
}

static void too_many_values(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 32U << 20);
    buf_lit(&text, "{\"enum\":[0");
    repeat(&text, ",1", 300000);
    buf_lit(&text, "]}");
    buf_char(&text, '\0');
    expect_refusal(&text, NULL, BAY_ERR_LIMIT, "max_values");
    buf_fini(&text);
}

static void too_deep(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 1U << 20);
    repeat(&text, "{\"not\":", 200);
    buf_lit(&text, "{}");
    repeat(&text, "}", 200);
    buf_char(&text, '\0');
    expect_refusal(&text, NULL, BAY_ERR_DEPTH, "max_depth");
    buf_fini(&text);
}

static void too_long_uris(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 1U << 20);
    buf_lit(&text, "{\"$id\":\"http://x/");
    repeat(&text, "a/", 2500);
    buf_lit(&text, "\"}");
    buf_char(&text, '\0');
    expect_refusal(&text, NULL, BAY_ERR_LIMIT, "max_uri_bytes");
    buf_fini(&text);
}

/* Many references into a large map: each is a search. */
static void references_that_cost(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 16U << 20);
    buf_lit(&text, "{\"$defs\":{");
    for (int i = 0; i < 20000; i++) {
        buf_printf(&text, "\"d%d\":{},", i);
    }
    buf_lit(&text, "\"z\":{}},\"allOf\":[true");
    repeat(&text, ",{\"$ref\":\"#/$defs/z\"}", 20000);
    buf_lit(&text, "]}");
    buf_char(&text, '\0');
    expect_refusal(&text, NULL, BAY_ERR_LIMIT, "max_lookups");
    buf_fini(&text);
}

static void too_many_patterns(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 1U << 20);
    buf_lit(&text, "{\"patternProperties\":{\"x\":{}");
    for (int i = 0; i < 1100; i++) {
        buf_printf(&text, ",\"^p%d$\":{}", i);
    }
    buf_lit(&text, "}}");
    buf_char(&text, '\0');
    expect_refusal(&text, NULL, BAY_ERR_LIMIT, "max_patterns");
    buf_clear(&text);
    buf_lit(&text, "{\"pattern\":\"");
    repeat(&text, "ab", 3000);
    buf_lit(&text, "\"}");
    buf_char(&text, '\0');
    expect_refusal(&text, NULL, BAY_ERR_LIMIT, "max_pattern_bytes");
    buf_clear(&text);
    buf_lit(&text, "{\"pattern\":\"");
    repeat(&text, "(", 300);
    repeat(&text, ")", 300);
    buf_lit(&text, "\"}");
    buf_char(&text, '\0');
    expect_refusal(&text, NULL, BAY_ERR_LIMIT, "groups nest too deeply");
    buf_clear(&text);
    buf_lit(&text, "{\"pattern\":\"(((a{1000}){1000}){1000})\"}");
    buf_char(&text, '\0');
    expect_refusal(&text, NULL, BAY_ERR_UNSUPPORTED, "PCRE2 cannot compile");
    buf_fini(&text);
}

static void references_that_turn_in_circles(void **state)
{
    (void)state;
    static const char *const circles[] = {
        "{\"$ref\":\"#\"}",
        "{\"allOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}",
        "{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}",
        "{\"not\":{\"$ref\":\"#\"}}",
        "{\"if\":{\"$ref\":\"#\"},\"then\":true}",
        "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":"
        "\"#/$defs/a\"}}}",
        "{\"$dynamicAnchor\":\"x\",\"$dynamicRef\":\"#x\"}",
        "{\"dependentSchemas\":{\"a\":{\"$ref\":\"#\"}}}",
    };
    for (size_t i = 0; i < sizeof(circles) / sizeof(circles[0]); i++) {
        expect_limit(circles[i], "{\"a\":1}", "max_levels");
    }
}

/* Each level applies the next one twice: 2^40 steps. */
static void composition_that_doubles(void **state)
{
    (void)state;
    static const char *const words[] = {"allOf", "anyOf", "oneOf"};
    buf text;
    buf_init(&text, 1U << 20);
    for (size_t w = 0; w < 3; w++) {
        buf_clear(&text);
        buf_lit(&text, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
        for (int i = 0; i < 40; i++) {
            buf_printf(&text,
                       "\"d%d\":{\"%s\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/$defs/d%d\"}]},",
                       i, words[w], i + 1, i + 1);
        }
        buf_printf(&text, "\"d40\":%s}}", w == 0 ? "true" : "false");
        buf_char(&text, '\0');
        expect_limit(text.at, "1", "max_steps");
    }
    buf_fini(&text);
}

static void telling_is_bounded_too(void **state)
{
    (void)state;
    /* the verdict comes at once; the reasons would fill the world */
    buf text;
    buf_init(&text, 1U << 20);
    buf_lit(&text, "{\"allOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/d0\"}],\"$defs\":{");
    for (int i = 0; i < 40; i++) {
        buf_printf(&text,
                   "\"d%d\":{\"allOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/$defs/d%d\"}]},",
                   i, i + 1, i + 1);
    }
    buf_lit(&text, "\"d40\":true}}");
    buf_char(&text, '\0');
    schema_failures failures;
    assert_int_equal(check_once(text.at, "1", &failures), BAY_ERR_INVALID);
    assert_int_equal(failures.count, 1);
    assert_true(failures.is_cut);
    assert_string_equal(failures.item[0].text.at, "the value must be null, got an integer (1)");
    buf_fini(&text);
}

static void regular_expressions_that_explode(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "^(a+)+$", "^(a|aa)+$", "^(a|a?)+$", "(.*)*x", "^((a+)*)*$", "(a*)*b", "(?=(a+)+b)",
    };
    buf text;
    buf instance;
    buf_init(&text, 1U << 20);
    buf_init(&instance, 1U << 20);
    buf_char(&instance, '"');
    repeat(&instance, "a", 60);
    buf_lit(&instance, "!\"");
    buf_char(&instance, '\0');
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        buf_clear(&text);
        buf_printf(&text, "{\"pattern\":\"%s\"}", patterns[i]);
        buf_char(&text, '\0');
        schema_failures failures;
        bay_err err = check_once(text.at, instance.at, &failures);
        assert_true(err == BAY_ERR_LIMIT || err == BAY_ERR_INVALID); /* PCRE2 sees through some */
        if (i == 0) {
            assert_int_equal(err, BAY_ERR_LIMIT);
            assert_non_null(strstr(failures.item[0].text.at, "by a pattern"));
        }
    }
    buf_fini(&text);
    buf_fini(&instance);
}

/* Each string is just below what one match may cost; together they are too much. */
static void many_dear_matches(void **state)
{
    (void)state;
    buf instance;
    buf_init(&instance, 64U << 20);
    buf_lit(&instance, "[\"!\"");
    for (int i = 0; i < 20000; i++) {
        buf_lit(&instance, ",\"aaaaaaaaaaaaaaaa!\"");
    }
    buf_lit(&instance, "]");
    buf_char(&instance, '\0');
    expect_limit("{\"items\":{\"not\":{\"pattern\":\"^(a+)+$\"}}}", instance.at, "max_steps");
    /* an expression that is tried at every place of a long string */
    buf_clear(&instance);
    buf_char(&instance, '"');
    repeat(&instance, "xxxxxxxx", 1U << 19);
    buf_lit(&instance, "\"");
    buf_char(&instance, '\0');
    expect_limit("{\"pattern\":\"x*y\"}", instance.at, "max_steps");
    assert_int_equal(check_once("{\"pattern\":\"^x*$\"}", instance.at, NULL), BAY_OK);
    buf_fini(&instance);
}

static void large_arrays_without_equals(void **state)
{
    (void)state;
    buf instance;
    buf_init(&instance, 64U << 20);
    buf_lit(&instance, "[\"\"");
    for (int i = 0; i < 50000; i++) {
        buf_printf(&instance, ",%d,\"%d\",{\"k\":%d,\"l\":[%d]}", i, i, i, i);
    }
    size_t len = instance.len;
    buf_lit(&instance, "]");
    buf_char(&instance, '\0');
    assert_int_equal(check_once("{\"uniqueItems\":true}", instance.at, NULL), BAY_OK);
    instance.len = len;
    buf_lit(&instance, ",{\"l\":[49999e0],\"\\u006b\":49999.0}]");
    buf_char(&instance, '\0');
    schema_failures failures;
    assert_int_equal(check_once("{\"uniqueItems\":true}", instance.at, &failures), BAY_ERR_INVALID);
    assert_non_null(strstr(failures.item[0].text.at, "items 150000 and 150001 are equal"));
    /* strings that differ only behind what is hashed */
    buf_clear(&instance);
    buf_lit(&instance, "[0");
    for (int i = 0; i < 20000; i++) {
        buf_lit(&instance, ",\"");
        repeat(&instance, "0123456789abcdef", 16);
        buf_printf(&instance, "%d\"", i);
    }
    buf_lit(&instance, "]");
    buf_char(&instance, '\0');
    expect_limit("{\"uniqueItems\":true}", instance.at, "max_steps");
    buf_fini(&instance);
}

static void deep_instances(void **state)
{
    (void)state;
    buf instance;
    buf_init(&instance, 1U << 20);
    repeat(&instance, "[", 5000);
    repeat(&instance, "]", 5000);
    buf_char(&instance, '\0');
    expect_limit("{\"items\":{\"$ref\":\"#\"}}", instance.at, "max_levels");
    assert_int_equal(check_once("{\"minItems\":1}", instance.at, NULL), BAY_OK);
    buf twice;
    buf_init(&twice, 1U << 20);
    buf_printf(&twice, "[%s,%s]", instance.at, instance.at);
    buf_char(&twice, '\0');
    expect_limit("{\"uniqueItems\":true}", twice.at, "max_steps");
    buf_fini(&twice);
    buf_fini(&instance);
}

static void scratch_is_bounded(void **state)
{
    (void)state;
    schema *compiled = NULL;
    bay_diag diag;
    const schema_limits limits = {.max_scratch_bytes = 4096};
    const schema_options options = {.limits = &limits};
    assert_int_equal(
        compile_within("{\"properties\":{\"u\":{\"uniqueItems\":true},\"p\":{\"pattern\":"
                       "\"a\"},\"e\":{\"unevaluatedItems\":true}}}",
                       &options, &compiled, &diag),
        BAY_OK);
    buf instance;
    buf_init(&instance, 1U << 20);
    static const char *const starts[] = {"{\"u\":[0", "{\"e\":[0"};
    schema_failures failures;
    for (int i = 0; i < 2; i++) {
        buf_clear(&instance);
        buf_str(&instance, str_of(starts[i]));
        for (int n = 1; n < 20000; n++) {
            buf_printf(&instance, ",%d", n);
        }
        buf_lit(&instance, "]}");
        buf_char(&instance, '\0');
        assert_int_equal(check_text_of(compiled, instance.at, &failures), BAY_ERR_LIMIT);
        assert_non_null(strstr(failures.item[0].text.at, "max_scratch_bytes"));
    }
    buf_clear(&instance);
    buf_lit(&instance, "{\"p\":\"\\n");
    repeat(&instance, "0123456789abcdef", 1000);
    buf_lit(&instance, "\"}");
    buf_char(&instance, '\0');
    assert_int_equal(check_text_of(compiled, instance.at, &failures), BAY_ERR_LIMIT);
    buf_fini(&instance);
    schema_free(compiled);
}

/* More required names than there are bits for. */
static void a_hundred_required_names(void **state)
{
    (void)state;
    buf text;
    buf instance;
    buf_init(&text, 1U << 20);
    buf_init(&instance, 1U << 20);
    buf_lit(&text, "{\"required\":[\"n0\"");
    buf_lit(&instance, "{\"n0\":0");
    for (int i = 1; i < 100; i++) {
        buf_printf(&text, ",\"n%d\",\"n%d\"", i, i);
        buf_printf(&instance, ",\"n%d\":0", i);
    }
    buf_lit(&text, "]}");
    buf_lit(&instance, "}");
    buf_char(&text, '\0');
    buf_char(&instance, '\0');
    assert_int_equal(check_once(text.at, instance.at, NULL), BAY_OK);
    schema_failures failures;
    memcpy(strstr(instance.at, "n99"), "m99", 3);
    assert_int_equal(check_once(text.at, instance.at, &failures), BAY_ERR_INVALID);
    assert_int_equal(failures.count, 1);
    assert_string_equal(failures.item[0].text.at, "the value lacks the required property \"n99\"");
    buf_fini(&text);
    buf_fini(&instance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_megabytes),
        cmocka_unit_test(too_many_values),
        cmocka_unit_test(too_deep),
        cmocka_unit_test(too_long_uris),
        cmocka_unit_test(references_that_cost),
        cmocka_unit_test(too_many_patterns),
        cmocka_unit_test(references_that_turn_in_circles),
        cmocka_unit_test(composition_that_doubles),
        cmocka_unit_test(telling_is_bounded_too),
        cmocka_unit_test(regular_expressions_that_explode),
        cmocka_unit_test(many_dear_matches),
        cmocka_unit_test(large_arrays_without_equals),
        cmocka_unit_test(deep_instances),
        cmocka_unit_test(scratch_is_bounded),
        cmocka_unit_test(a_hundred_required_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
