/* Words that mean nothing: misspelt keywords are found, what is allowed is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "schema/keywords.h"

/* `told` NULL: nothing is found. */
static void look(const char *text, size_t expected, const char *told)
{
    arena memory;
    json_doc doc;
    buf out;
    arena_init(&memory, 1 << 20);
    buf_init(&out, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(text), NULL, &memory, NULL), BAY_OK);
    assert_int_equal(schema_unknown_words(json_root(&doc), &out), expected);
    assert_int_equal(out.err, BAY_OK);
    if (!str_eq(buf_view(&out), str_of(told))) {
        fail_msg("%.*s is not %s", BAY_STR(buf_view(&out)), told != NULL ? told : "empty");
    }
    buf_fini(&out);
    arena_fini(&memory);
}

static void misspelt_words_are_found(void **state)
{
    (void)state;
    look("{\"propertis\":{}}", 1,
         "it has the unknown word \"propertis\"; did you mean \"properties\"?");
    look("{\"properties\":{\"a\":{\"Type\":\"x\"}}}", 1,
         "/properties/a has the unknown word \"Type\"; did you mean \"type\"?");
    look("{\"items\":{\"anyOf\":[{},{\"colour\":1}]}}", 1,
         "/items/anyOf/1 has the unknown word \"colour\"");
    look("{\"a\\u0062\":1}", 1, "it has the unknown word \"\"a\\u0062\"\"");
    look("{\"a1\":0,\"a2\":0,\"a3\":0,\"a4\":0,\"a5\":0,\"a6\":0,\"a7\":0,\"a8\":0,\"a9\":0}", 9,
         "it has the unknown word \"a1\"\nit has the unknown word \"a2\"\n"
         "it has the unknown word \"a3\"\nit has the unknown word \"a4\"\n"
         "it has the unknown word \"a5\"\nit has the unknown word \"a6\"\n"
         "it has the unknown word \"a7\"\nit has the unknown word \"a8\"");
}

static void what_means_something_is_not(void **state)
{
    (void)state;
    static const char *const good[] = {
        "true",
        "[]",
        "{}",
        "{\"$schema\":\"x\",\"type\":\"object\",\"title\":\"\",\"description\":\"\",\"default\":{}"
        "}",
        "{\"x-mcp-header\":\"A\",\"x-anything\":{\"propertis\":1},\"enumNames\":[]}",
        /* names of members and constants are no keywords */
        "{\"properties\":{\"propertis\":{}},\"enum\":[{\"propertis\":1}],\"const\":{\"a\":1}}",
        "{\"dependentRequired\":{\"a\":[\"b\"]},\"required\":[\"propertis\"]}",
        "{\"definitions\":{\"propertis\":{\"type\":\"string\"}}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        look(good[i], 0, NULL);
    }
}

static void a_deep_schema_ends_the_search(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < 120; i++) {
        buf_lit(&text, "{\"not\":");
    }
    buf_lit(&text, "{\"propertis\":1}");
    for (int i = 0; i < 120; i++) {
        buf_char(&text, '}');
    }
    buf_char(&text, '\0');
    look(text.at, 0, NULL);
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misspelt_words_are_found),
        cmocka_unit_test(what_means_something_is_not),
        cmocka_unit_test(a_deep_schema_ends_the_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
