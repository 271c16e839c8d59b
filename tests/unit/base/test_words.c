/* A command line that is one text: white space, quotes, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/words.h"

enum { MOST = 3 };

static bay_err split(char *text, size_t size, const char *from, char **words, size_t *count)
{
    (void)snprintf(text, size, "%s", from);
    return words_split(text, words, MOST, count);
}

static void a_text_that_is_no_command_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bay_err err;
    } cases[] = {
        {"'", BAY_ERR_SYNTAX},           {"a \"b", BAY_ERR_SYNTAX},  {"a 'b\"", BAY_ERR_SYNTAX},
        {"a 'b' 'c' 'd", BAY_ERR_LIMIT}, {"a b c d", BAY_ERR_LIMIT}, {"'' '' '' ''", BAY_ERR_LIMIT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[64];
        char *words[MOST + 1];
        size_t count = 0;
        if (split(text, sizeof(text), cases[i].text, words, &count) != cases[i].err) {
            fail_msg("%s is taken", cases[i].text);
        }
    }
}

static void words_lose_their_quotes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *words[MOST + 1];
    } cases[] = {
        {"", {NULL}},
        {" \t\r\n", {NULL}},
        {"./weather --units=c", {"./weather", "--units=c", NULL}},
        {"  a\tb\n", {"a", "b", NULL}},
        {"'a b' \"c'd\" e\"f g\"h", {"a b", "c'd", "ef gh", NULL}},
        {"a '' b", {"a", "", "b", NULL}},
        {"a\\ b", {"a\\", "b", NULL}}, /* no shell */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[64];
        char *words[MOST + 1];
        size_t count = 0;
        assert_int_equal(split(text, sizeof(text), cases[i].text, words, &count), BAY_OK);
        for (size_t k = 0; k < count; k++) {
            assert_non_null(cases[i].words[k]);
            assert_string_equal(words[k], cases[i].words[k]);
        }
        assert_null(cases[i].words[count]);
        assert_null(words[count]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_that_is_no_command_is_refused),
        cmocka_unit_test(words_lose_their_quotes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
