/* Options and targets of a client: what is refused, what is copied, what the server is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sdk/client_parts.h"
#include "support/failing_memory.h"

static void assert_refused(bay_client_options *options, const char *text)
{
    bay_client *client = NULL;
    bay_diag diag = {0};
    assert_int_not_equal(bay_client_connect("http://127.0.0.1:1/", options, &client, &diag),
                         BAY_OK);
    assert_null(client);
    if (strstr(diag.text, text) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", diag.text, text);
    }
    bay_client_options_free(options);
}

static void bad_options_are_told_by_the_connect(void **state)
{
    (void)state;
    bay_client_options *options = bay_client_options_new();
    bay_client_options_header(options, "Authorization", "Bearer secret\r\nX: y");
    assert_null(strstr(options->base.fault, "secret"));
    assert_refused(options, "control characters");
    options = bay_client_options_new();
    bay_client_options_header(options, "X Y", "1");
    bay_client_options_header(options, "Fine", "1"); /* the first fault counts */
    assert_refused(options, "a token");
    options = bay_client_options_new();
    bay_client_options_header(options, "", "1");
    assert_refused(options, "a token");
    options = bay_client_options_new();
    bay_client_options_env(options, "NOVALUE");
    assert_refused(options, "NAME=VALUE");
    options = bay_client_options_new();
    bay_client_options_env(options, "=x");
    assert_refused(options, "NAME=VALUE");
    options = bay_client_options_new();
    bay_client_options_revisions(options, "2026-07-28", "2024-11-05");
    assert_refused(options, "2026-07-28");
    options = bay_client_options_new();
    bay_client_options_revisions(options, "yesterday", NULL);
    assert_refused(options, "yesterday");
    options = bay_client_options_new();
    bay_client_options_extension(options, "com.example/x", "{} ,1");
    assert_refused(options, "com.example/x");
    options = bay_client_options_new();
    bay_client_options_extension(options, "", NULL);
    assert_refused(options, "an id");
    options = bay_client_options_new();
    bay_client_options_sampling(options, "[]", NULL, NULL);
    assert_refused(options, "no JSON object");
    options = bay_client_options_new();
    bay_client_options_root(options, NULL, NULL);
    assert_refused(options, "URI");
    options = bay_client_options_new();
    for (int i = 0; i <= CLIENT_MAX_SETTINGS; i++) {
        bay_client_options_header(options, "X", "1");
    }
    assert_refused(options, "1024");
    options = bay_client_options_new();
    char *large = malloc(CLIENT_MAX_TEXT + 2);
    memset(large, 'x', CLIENT_MAX_TEXT + 1);
    large[CLIENT_MAX_TEXT + 1] = '\0';
    bay_client_options_name(options, large, "1");
    free(large);
    assert_refused(options, "more than");
}

static void nothing_happens_without_options(void **state)
{
    (void)state;
    bay_client_options_name(NULL, "a", "b");
    bay_client_options_header(NULL, "a", "b");
    bay_client_options_env(NULL, "a=b");
    bay_client_options_directory(NULL, "/");
    bay_client_options_revisions(NULL, NULL, NULL);
    bay_client_options_transport(NULL, BAY_TRANSPORT_AUTO);
    bay_client_options_timeout(NULL, 1, 1);
    bay_client_options_reconnect(NULL, 1, 1);
    bay_client_options_no_cache(NULL);
    bay_client_options_extension(NULL, "a", NULL);
    bay_client_options_log_to(NULL, BAY_LOG_LEVEL_ERROR, NULL, NULL);
    bay_client_options_elicitation(NULL, 1, NULL, NULL);
    bay_client_options_sampling(NULL, NULL, NULL, NULL);
    bay_client_options_root(NULL, "a", NULL);
    bay_client_options_on_changed(NULL, NULL, NULL);
    bay_client_options_on_updated(NULL, NULL, NULL);
    bay_client_options_on_log(NULL, NULL, NULL);
    bay_client_options_on_message(NULL, NULL, NULL);
    bay_client_options_free(NULL);
}

static void on_asked(bay_question *question, void *user)
{
    (void)question, (void)user;
}

static void assert_capabilities(const bay_client_options *options, const char *expected)
{
    buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(sdk_options_write_capabilities(options, &out), BAY_OK);
    buf_char(&out, '\0');
    assert_string_equal(out.at, expected);
    buf_fini(&out);
}

#define TASKS "\"io.modelcontextprotocol/tasks\":{}"

static void handlers_declare_capabilities(void **state)
{
    (void)state;
    bay_client_options *options = bay_client_options_new();
    assert_capabilities(options, "{\"extensions\":{" TASKS "}}");
    bay_client_options_elicitation(options, BAY_ELICITATION_FORM, NULL, NULL); /* nobody answers */
    assert_capabilities(options, "{\"extensions\":{" TASKS "}}");
    bay_client_options_elicitation(options, BAY_ELICITATION_FORM | BAY_ELICITATION_URL, on_asked,
                                   NULL);
    bay_client_options_sampling(options, "{\"tools\":{}}", on_asked, NULL);
    bay_client_options_root(options, "file:///a", "a");
    bay_client_options_extension(options, "x/y", "{\"a\":1}");
    bay_client_options_extension(options, "x/y", "{\"a\":2}");
    assert_capabilities(options,
                        "{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{\"tools\":{}},"
                        "\"roots\":{\"listChanged\":true},"
                        "\"extensions\":{" TASKS ",\"x/y\":{\"a\":2}}}");
    bay_client_options_extension(options, "io.modelcontextprotocol/tasks", "{\"b\":1}");
    bay_client_options_elicitation(options, 0, NULL, NULL);
    bay_client_options_sampling(options, NULL, NULL, NULL);
    options->has_roots = false;
    assert_capabilities(options, "{\"extensions\":{\"x/y\":{\"a\":2},"
                                 "\"io.modelcontextprotocol/tasks\":{\"b\":1}}}");
    bay_client_options_free(options);
}

static void fill(bay_client_options *options)
{
    bay_client_options_name(options, "me", "2");
    bay_client_options_name(options, "you", "3");
    bay_client_options_header(options, "Authorization", "Bearer x");
    bay_client_options_header(options, "X-One", "1");
    bay_client_options_env(options, "A=b");
    bay_client_options_directory(options, "/tmp");
    bay_client_options_extension(options, "x/y", NULL);
    bay_client_options_sampling(options, "{}", on_asked, NULL);
    bay_client_options_root(options, "file:///a", NULL);
    bay_client_options_timeout(options, 5, 0);
    bay_client_options_reconnect(options, 0, 7);
}

static void a_copy_stands_for_itself(void **state)
{
    (void)state;
    bay_client_options copy;
    bay_client_options *options = bay_client_options_new();
    fill(options);
    assert_int_equal(sdk_options_copy(&copy, options, NULL), BAY_OK);
    bay_client_options_free(options);
    assert_string_equal(copy.name, "you");
    assert_string_equal(copy.version, "3");
    assert_int_equal(copy.base.headers.count, 2);
    assert_string_equal(copy.base.headers.at[0].value, "Bearer x");
    assert_string_equal(copy.env.at[0].name, "A=b");
    assert_string_equal(copy.directory, "/tmp");
    assert_string_equal(copy.extensions.at[0].value, "{}");
    assert_string_equal(copy.roots.at[0].name, "file:///a");
    assert_null(copy.roots.at[0].value);
    assert_int_equal(copy.idle_ms, 5);
    assert_int_equal(copy.total_ms, CLIENT_TOTAL_MS);
    assert_int_equal(copy.attempts, CLIENT_RECONNECT_ATTEMPTS);
    assert_int_equal(copy.longest_ms, 7);
    sdk_options_fini(&copy);
}

static void every_lack_of_memory_is_told(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        bay_client_options copy;
        bay_diag diag = {0};
        bay_client_options *options = bay_client_options_new();
        if (options != NULL) {
            fill(options);
            bay_err err = sdk_options_copy(&copy, options, &diag);
            if (err == BAY_OK) {
                assert_int_equal(copy.base.headers.count, 2);
                sdk_options_fini(&copy);
            } else {
                assert_int_equal(err, BAY_ERR_NOMEM);
                assert_non_null(strstr(diag.text, "out of memory"));
            }
            bay_client_options_free(options);
        }
        failing_memory_check();
    }
}

/* ---- targets ----------------------------------------------------------------------------------
 */

static void assert_words(const char *command, const char *const *expected)
{
    char **words = NULL;
    bay_diag diag = {0};
    assert_int_equal(sdk_target_words(command, &words, &diag), BAY_OK);
    size_t i = 0;
    for (; expected[i] != NULL; i++) {
        assert_non_null(words[i]);
        assert_string_equal(words[i], expected[i]);
        mem_free(words[i]);
    }
    assert_null(words[i]);
    mem_free(words);
}

static void commands_are_words(void **state)
{
    (void)state;
    assert_words("./weather", (const char *[]){"./weather", NULL});
    assert_words("  a\tb  c ", (const char *[]){"a", "b", "c", NULL});
    assert_words("a 'b c' \"d e\"f", (const char *[]){"a", "b c", "d ef", NULL});
    assert_words("a '' \"\"", (const char *[]){"a", "", "", NULL});
    assert_words("a '\"' \"'\" --x='1 2'", (const char *[]){"a", "\"", "'", "--x=1 2", NULL});
    assert_words("a $HOME ; b|c", (const char *[]){"a", "$HOME", ";", "b|c", NULL});
}

static void what_is_no_command_is_refused(void **state)
{
    (void)state;
    const char *const bad[] = {"", "   ", "a 'b", "a \"b' c"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char **words = NULL;
        bay_diag diag = {0};
        assert_int_equal(sdk_target_words(bad[i], &words, &diag), BAY_ERR_INVALID);
        assert_null(words);
        assert_non_null(strstr(diag.text, "stdio:"));
    }
    buf many;
    char **words = NULL;
    bay_diag diag = {0};
    buf_init(&many, 1 << 20);
    for (int i = 0; i <= CLIENT_MAX_WORDS; i++) {
        buf_lit(&many, "a ");
    }
    buf_char(&many, '\0');
    assert_int_equal(sdk_target_words(many.at, &words, &diag), BAY_ERR_LIMIT);
    buf_fini(&many);
}

static void secrets_of_a_target_are_not_shown(void **state)
{
    (void)state;
    char shown[200];
    sdk_target_show("https://user:word@example.com/mcp?key=1#x", NULL, shown, sizeof(shown));
    assert_string_equal(shown, "https://example.com/mcp");
    sdk_target_show("http://example.com", NULL, shown, sizeof(shown));
    assert_string_equal(shown, "http://example.com");
    sdk_target_show(NULL, (const char *[]){"./weather", "--key=1", NULL}, shown, sizeof(shown));
    assert_string_equal(shown, "./weather");
    sdk_target_show(NULL, NULL, shown, sizeof(shown));
    assert_string_equal(shown, "the server in this process");
}

static void words_survive_a_lack_of_memory(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        char **words = NULL;
        bay_err err = sdk_target_words("a 'b c' d", &words, NULL);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
            mem_free(words[i]);
        }
        mem_free(words);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_options_are_told_by_the_connect),
        cmocka_unit_test(nothing_happens_without_options),
        cmocka_unit_test(handlers_declare_capabilities),
        cmocka_unit_test(a_copy_stands_for_itself),
        cmocka_unit_test(every_lack_of_memory_is_told),
        cmocka_unit_test(commands_are_words),
        cmocka_unit_test(what_is_no_command_is_refused),
        cmocka_unit_test(secrets_of_a_target_are_not_shown),
        cmocka_unit_test(words_survive_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
