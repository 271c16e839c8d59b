/* Results of tools as parts of A2A: each kind of content, and structured content once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "agents/tool_agent_parts.h" /* cmocka takes the word "fail" */

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static void expect(const char *result, const char *parts)
{
    arena memory;
    json_doc doc;
    buf out;
    json_writer to;
    arena_init(&memory, 64 << 20);
    buf_init(&out, 64 << 20);
    json_writer_init(&to, &out);
    assert_int_equal(json_parse(&doc, str_of(result), NULL, &memory, NULL), BAY_OK);
    json_open_array(&to);
    assert_int_equal(tool_agent_put_parts(&to, json_root(&doc)), strcmp(parts, "[]") != 0);
    json_close_array(&to);
    if (!str_eq(buf_view(&out), str_of(parts))) {
        fail_msg("%.200s became %.*s", result, BAY_STR(buf_view(&out)));
    }
    buf_fini(&out);
    arena_fini(&memory);
}

#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define RESULT(content, structured)                                                                \
    "{\"content\":[" content "],\"structuredContent\":" structured "}"
#define DATA(data) "{\"data\":" data ",\"mediaType\":\"application/json\"}"

static void nothing_is_no_part(void **state)
{
    (void)state;
    expect("{}", "[]");
    expect("{\"content\":[]}", "[]");
    expect("{\"content\":[{\"type\":\"unknown\",\"text\":\"x\"},7,{\"type\":\"text\"}]}", "[]");
}

static void each_kind_of_content_is_a_part(void **state)
{
    (void)state;
    expect("{\"content\":[" TEXT(
               "a") ",{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":"
                    "\"image/png\"},{\"type\":\"resource_link\",\"uri\":\"u:1\",\"name\":\"n\"}]}",
           "[{\"text\":\"a\"},{\"raw\":\"AAAA\",\"mediaType\":\"image/png\"},"
           "{\"url\":\"u:1\",\"filename\":\"n\"}]");
}

static void a_text_that_repeats_the_structured_content_is_left_out(void **state)
{
    (void)state;
    expect(
        RESULT(TEXT("{\\\"n\\\":1,\\\"s\\\":\\\"\\\\u00e9\\\"}"), "{\"s\":\"\xC3\xA9\",\"n\":1.0}"),
        "[" DATA("{\"s\":\"\xC3\xA9\",\"n\":1.0}") "]");
    expect(RESULT(TEXT("[\\n  1,\\n  2\\n]") "," TEXT("[1,2]"), "[1,2]"), "[" DATA("[1,2]") "]");
}

static void other_texts_stay(void **state)
{
    (void)state;
    static const char *const others[] = {"{}",      "",       "[1,2,3]", "[2,1]",
                                         "[1,2] x", "[1,2,]", "1",       "the list is [1,2]"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        char result[256];
        char parts[256];
        snprintf(result, sizeof(result), RESULT(TEXT("%s"), "[1,2]"), others[i]);
        snprintf(parts, sizeof(parts), "[{\"text\":\"%s\"}," DATA("[1,2]") "]", others[i]);
        expect(result, parts);
    }
    expect(RESULT("{\"type\":\"other\",\"text\":\"1\"}," TEXT("x"), "1"),
           "[{\"text\":\"x\"}," DATA("1") "]");
    /* a member twice has no canonical form: nothing can be said to repeat it */
    expect(RESULT(TEXT("{\\\"a\\\":1,\\\"a\\\":1}"), "{\"a\":1,\"a\":1}"),
           "[{\"text\":\"{\\\"a\\\":1,\\\"a\\\":1}\"}," DATA("{\"a\":1,\"a\":1}") "]");
}

static void what_is_too_long_to_compare_stays(void **state)
{
    (void)state;
    size_t len = TOOL_AGENT_COMPARED_BYTES;
    char *words = mem_alloc(len + 1);
    char *result = mem_alloc(2 * len + 256);
    char *parts = mem_alloc(2 * len + 256);
    assert_true(words != NULL && result != NULL && parts != NULL);
    memset(words, 'x', len);
    words[len] = '\0';
    (void)snprintf(result, 2 * len + 256, RESULT(TEXT("\\\"%s\\\""), "\"%s\""), words, words);
    (void)snprintf(parts, 2 * len + 256, "[{\"text\":\"\\\"%s\\\"\"}," DATA("\"%s\"") "]", words,
                   words);
    expect(result, parts);
    words[100] = '\0';
    (void)snprintf(result, 2 * len + 256, RESULT(TEXT("\\\"%s\\\""), "\"%s\""), words, words);
    (void)snprintf(parts, 2 * len + 256, "[" DATA("\"%s\"") "]", words);
    expect(result, parts);
    mem_free(words);
    mem_free(result);
    mem_free(parts);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_no_part),
        cmocka_unit_test(each_kind_of_content_is_a_part),
        cmocka_unit_test(a_text_that_repeats_the_structured_content_is_left_out),
        cmocka_unit_test(other_texts_stay),
        cmocka_unit_test(what_is_too_long_to_compare_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
