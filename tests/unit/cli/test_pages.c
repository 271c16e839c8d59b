/* Lists of several pages, from servers that page well, badly and for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/pages.h"

/* Answers from a script; the last answer is repeated. */
typedef struct script {
    const char *const *results; /* "!" before an error object */
    size_t count;
    size_t asked;
    char params[4][80]; /* of the first requests */
} script;

static void answer_with(cli_answer *out, bay_str text, mcp_outcome_kind kind)
{
    json_doc doc;
    arena memory;
    arena_init(&memory, 64 << 20);
    assert_int_equal(json_parse(&doc, text, NULL, &memory, NULL), BAY_OK);
    mcp_outcome outcome = {.kind = kind};
    outcome.result = outcome.error = json_root(&doc);
    int64_t code = 0;
    if (json_int64(json_get(json_root(&doc), STR("code")), &code) == BAY_OK) {
        outcome.error_code = (int)code;
    }
    cli_answer_keep(out, &outcome);
    arena_fini(&memory);
}

static cli_exit fetch(void *user, json_val params, cli_answer *out)
{
    script *self = user;
    size_t at = self->asked < self->count ? self->asked : self->count - 1;
    bay_str text = str_of(self->results[at]);
    if (self->asked < 4) {
        snprintf(self->params[self->asked], sizeof(self->params[0]), "%.*s",
                 BAY_STR(json_raw(params)));
    }
    self->asked++;
    if (str_eq(text, STR("lost"))) {
        return CLI_EXIT_TIMEOUT;
    }
    bool is_error = text.at[0] == '!';
    answer_with(out, is_error ? str_from(text, 1) : text,
                is_error ? MCP_OUTCOME_ERROR : MCP_OUTCOME_RESULT);
    return CLI_EXIT_OK;
}

typedef struct expected {
    cli_exit code;
    const char *items;
    const char *error; /* "": none */
    size_t asked;
} expected;

static void check(const char *const *results, size_t count, const expected *wanted)
{
    script user = {.results = results, .count = count};
    cli_pages pages;
    cli_pages_init(&pages);
    assert_int_equal(cli_pages_fetch(&pages, STR("tools"), fetch, &user), wanted->code);
    bay_str raw = json_raw(pages.items);
    assert_int_equal(raw.len, strlen(wanted->items));
    assert_memory_equal(raw.at, wanted->items, raw.len);
    assert_int_equal(json_count(pages.items), pages.count);
    assert_string_equal(pages.error, wanted->error);
    assert_int_equal(user.asked, wanted->asked);
    assert_string_equal(user.params[0], "{}");
    cli_pages_fini(&pages);
}

#define CHECK_PAGES(code, items, error, asked, ...)                                                \
    do {                                                                                           \
        static const char *const results[] = {__VA_ARGS__};                                        \
        expected wanted = {code, items, error, asked};                                             \
        check(results, sizeof(results) / sizeof(results[0]), &wanted);                             \
    } while (0)

static void bad_pages_end_the_list(void **state)
{
    (void)state;
    CHECK_PAGES(CLI_EXIT_PROTOCOL, "[]", "the result has no list \"tools\"", 1, "{}");
    CHECK_PAGES(CLI_EXIT_PROTOCOL, "[]", "the result has no list \"tools\"", 1, "{\"tools\":{}}");
    CHECK_PAGES(CLI_EXIT_PROTOCOL, "[1]", "nextCursor is no string", 1,
                "{\"tools\":[1],\"nextCursor\":7}");
    CHECK_PAGES(CLI_EXIT_PROTOCOL, "[1,2]", "page 2 names the cursor that led to it", 2,
                "{\"tools\":[1],\"nextCursor\":\"a\"}", "{\"tools\":[2],\"nextCursor\":\"a\"}");
    CHECK_PAGES(CLI_EXIT_PROTOCOL, "[1]", "the result has no list \"tools\"", 2,
                "{\"tools\":[1],\"nextCursor\":\"a\"}", "{\"tools\":null}");
    CHECK_PAGES(CLI_EXIT_TIMEOUT, "[1]", "", 2, "{\"tools\":[1],\"nextCursor\":\"a\"}", "lost");
    CHECK_PAGES(CLI_EXIT_REMOTE, "[1]", "error -32602: \"no such cursor\"", 2,
                "{\"tools\":[1],\"nextCursor\":\"a\"}",
                "!{\"code\":-32602,\"message\":\"no such cursor\"}");
}

static void items_keep_their_bytes(void **state)
{
    (void)state;
    CHECK_PAGES(CLI_EXIT_OK, "[]", "", 1, "{\"tools\":[]}");
    CHECK_PAGES(CLI_EXIT_OK, "[]", "", 1, "{\"tools\":[],\"nextCursor\":null}");
    CHECK_PAGES(CLI_EXIT_OK, "[{\"a\" : 1.0, \"a\":\"\\u00e9\"},9007199254740993,2]", "", 3,
                "{\"tools\":[ {\"a\" : 1.0, \"a\":\"\\u00e9\"} ],\"nextCursor\":\"x\"}",
                "{\"tools\":[],\"nextCursor\":\"\"}", "{\"tools\":[9007199254740993 , 2]}");
}

static void cursors_go_back_as_they_came(void **state)
{
    (void)state;
    static const char *const results[] = {"{\"tools\":[],\"nextCursor\":\"\\u0041\\/\"}",
                                          "{\"tools\":[],\"nextCursor\":\"A/\"}", "{\"tools\":[]}"};
    script user = {.results = results, .count = 3};
    cli_pages pages;
    cli_pages_init(&pages);
    assert_int_equal(cli_pages_fetch(&pages, STR("tools"), fetch, &user), CLI_EXIT_OK);
    assert_string_equal(user.params[1], "{\"cursor\":\"\\u0041\\/\"}");
    assert_string_equal(user.params[2], "{\"cursor\":\"A/\"}");
    cli_pages_fini(&pages);
}

/* Two cursors that take turns, so none stands still. */
static cli_exit fetch_for_ever(void *user, json_val params, cli_answer *out)
{
    size_t *asked = user;
    (void)params;
    (*asked)++;
    answer_with(out,
                *asked % 2 != 0 ? STR("{\"tools\":[1],\"nextCursor\":\"a\"}")
                                : STR("{\"tools\":[1],\"nextCursor\":\"b\"}"),
                MCP_OUTCOME_RESULT);
    return CLI_EXIT_OK;
}

static void pages_without_end_are_cut(void **state)
{
    (void)state;
    size_t asked = 0;
    cli_pages pages;
    cli_pages_init(&pages);
    assert_int_equal(cli_pages_fetch(&pages, STR("tools"), fetch_for_ever, &asked),
                     CLI_EXIT_PROTOCOL);
    assert_int_equal(asked, CLI_PAGES);
    assert_int_equal(pages.count, CLI_PAGES);
    assert_string_equal(pages.error, "more than 1000 pages");
    cli_pages_fini(&pages);
}

/* One page a little longer than the bound. */
static void items_without_end_are_cut(void **state)
{
    (void)state;
    size_t len = 2 * (size_t)(CLI_PAGE_ITEMS + 5) + 16;
    char *text = mem_zalloc(len + 1);
    assert_non_null(text);
    size_t at = (size_t)snprintf(text, len, "{\"tools\":[1");
    for (size_t i = 1; i < CLI_PAGE_ITEMS + 5; i++) {
        text[at++] = ',';
        text[at++] = '1';
    }
    memcpy(text + at, "]}", 3);
    const char *results[] = {text};
    script user = {.results = results, .count = 1};
    cli_pages pages;
    cli_pages_init(&pages);
    assert_int_equal(cli_pages_fetch(&pages, STR("tools"), fetch, &user), CLI_EXIT_PROTOCOL);
    assert_int_equal(pages.count, CLI_PAGE_ITEMS);
    assert_int_equal(json_count(pages.items), CLI_PAGE_ITEMS);
    assert_string_equal(pages.error, "more than 100000 items");
    cli_pages_fini(&pages);
    mem_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_pages_end_the_list),       cmocka_unit_test(items_keep_their_bytes),
        cmocka_unit_test(cursors_go_back_as_they_came), cmocka_unit_test(pages_without_end_are_cut),
        cmocka_unit_test(items_without_end_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
