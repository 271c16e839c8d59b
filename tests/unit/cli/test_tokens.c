/* The estimate of tokens: its rules one by one, and real definitions against counts of a real
 * encoding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "cli/tokens.h"

static void every_rule_counts(void **state)
{
    (void)state;
    static const struct {
        bay_str raw;
        size_t tokens;
    } cases[] = {
        {STR_INIT(""), 0},
        {STR_INIT("  \n\t "), 0},
        {STR_INIT("true"), 1},
        {STR_INIT("123"), 1},
        {STR_INIT("1234"), 2},
        {STR_INIT("\"\""), 1},
        {STR_INIT("\"word\""), 3},
        {STR_INIT("\"two words\""), 4},
        {STR_INIT("\"two  words\""), 5},            /* a run of spaces is a token of its own */
        {STR_INIT("\"camelCase\""), 4},             /* quote camel Case quote */
        {STR_INIT("\"abcdefghijkl\""), 3},          /* twelve letters */
        {STR_INIT("\"abcdefghijklm\""), 4},         /* thirteen */
        {STR_INIT("{\"a\":{\"b\":1}}"), 7},         /* {"  a  ":{"  b  ":  1  }} */
        {STR_INIT("{ \"a\" : { \"b\" : 1 } }"), 7}, /* the same, with white space */
        {STR_INIT("\"\xc3\xa9\""), 3},
        {STR_INIT("\"\xe6\xbc\xa2\xe5\xad\x97\""), 5},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(cli_tokens_of_json(cases[i].raw), cases[i].tokens);
    }
}

/* A quote behind a backslash does not end the string, so the spaces behind it count. */
static void escapes_do_not_end_a_string(void **state)
{
    (void)state;
    assert_int_equal(cli_tokens_of_json(STR("\"\\\"  a\"")), 4);
    assert_int_equal(cli_tokens_of_json(STR("\"\\\\\"  ")), 1);
    assert_int_equal(cli_tokens_of_json(STR("\"\\")), 1); /* cut anywhere: nothing is overrun */
}

static size_t tokens_of(const char *text)
{
    json_doc doc;
    arena memory;
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(text), NULL, &memory, NULL), BAY_OK);
    size_t tokens = cli_tokens_of_tool(json_root(&doc));
    arena_fini(&memory);
    return tokens;
}

static void only_what_a_model_sees_is_counted(void **state)
{
    (void)state;
    size_t plain = tokens_of("{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}}");
    assert_int_equal(plain,
                     tokens_of("{\"inputSchema\":{\"type\":\"object\"},\"annotations\":"
                               "{\"readOnlyHint\":true},\"name\":\"a\",\"outputSchema\":{}}"));
    assert_int_equal(
        plain, tokens_of("{ \"name\" : \"a\",\n \"inputSchema\":\n{ \"type\": \"object\" }}"));
    assert_true(plain < tokens_of("{\"name\":\"a\",\"description\":\"more\",\"inputSchema\":"
                                  "{\"type\":\"object\"}}"));
    assert_int_equal(tokens_of("{}"), 1);
    assert_int_equal(tokens_of("7"), 1); /* no definition at all */
}

/* Counts of the o200k encoding for the compact objects. */
static void real_definitions_come_near(void **state)
{
    (void)state;
    static const struct {
        const char *tool;
        size_t counted;
    } cases[] = {
        {"{\"name\":\"get_weather\",\"description\":\"Typical weather of a city.\",\"inputSchema\":"
         "{\"type\":\"object\",\"properties\":{\"location\":{\"type\":\"string\",\"description\":"
         "\"Name of the city\"}},\"required\":[\"location\"]}}",
         42},
        {"{\"name\":\"list_cities\",\"description\":\"The cities that get_weather knows.\","
         "\"inputSchema\":{\"type\":\"object\"}}",
         23},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t tokens = tokens_of(cases[i].tool);
        assert_in_range(tokens * 100, cases[i].counted * 85, cases[i].counted * 115);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_counts),
        cmocka_unit_test(escapes_do_not_end_a_string),
        cmocka_unit_test(only_what_a_model_sees_is_counted),
        cmocka_unit_test(real_definitions_come_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
