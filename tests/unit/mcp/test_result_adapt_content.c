/* Content of kinds and codes of errors that came later, for clients of earlier revisions. */
#include "server_bench.h"

#define AUDIO                                                                                      \
    "{\"type\":\"audio\",\"mimeType\":\"audio\\/wav\",\"data\":\"AQ==\",\"annotations\":{}}"
#define LINK                                                                                       \
    "{\"uri\":\"x:\\u0061\",\"type\":\"resource_link\",\"name\":\"a \\\"b\\\"\",\"size\":1.0}"
#define OLD_AUDIO(number)                                                                          \
    "{\"type\":\"resource\",\"resource\":{\"uri\":\"cid:audio-" number                             \
    "@patchbay\",\"mimeType\":\"audio\\/wav\",\"blob\":\"AQ==\"},\"annotations\":{}}"
#define OLD_LINK                                                                                   \
    "{\"type\":\"resource\",\"resource\":{\"uri\":\"x:\\u0061\",\"mimeType\":\"text/plain\","      \
    "\"text\":\"a \\\"b\\\"\\nx:\\u0061, 1.0 bytes\"},\"name\":\"a \\\"b\\\"\",\"size\":1.0}"
#define PLAIN "{ \"type\":\"text\",\"text\":\"t\" }"

static void answer_error(bench *self, mcp_request *request, const char *error)
{
    (void)self;
    arena memory;
    arena_init(&memory, 1 << 20);
    json_doc doc;
    assert_int_equal(json_parse(&doc, str_of(error), NULL, &memory, NULL), BAY_OK);
    mcp_request_error_object(request, json_root(&doc));
    arena_fini(&memory);
}

/* What a client of `revision` gets, of `member`: a result or an error. */
static void expect_member(const char *revision, const char *method, const char *member,
                          const char *result, const char *expected)
{
    bench self;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    self.result = result;
    wire way;
    duplex_open(&self, &way);
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                   "\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\","
                   "\"version\":\"1\"}}}",
                   revision);
    duplex_say(&self, &way, text);
    (void)snprintf(text, sizeof(text),
                   "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"%s\",\"params\":{\"name\":\"t\","
                   "\"uri\":\"x:y\"}}",
                   method);
    duplex_say(&self, &way, text);
    if (strcmp(member, "error") == 0) {
        answer_error(&self, bench_take(&self), result);
    } else {
        bench_answer(&self, bench_take(&self));
    }
    (void)snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":2,\"%s\":%s}", member,
                   expected);
    assert_string_equal(last_event(&way), text);
    duplex_close(&way);
    wire_fini(&way);
    bench_fini(&self);
}

static void expect(const char *revision, const char *method, const char *result,
                   const char *expected)
{
    expect_member(revision, method, "result", result, expected);
}

static void what_cannot_be_read_stays_as_it_is(void **state)
{
    (void)state;
    static const char *const results[] = {
        "{\"content\":7}",
        "{\"content\":{\"type\":\"audio\"}}",
        "{\"content\":[{\"type\":\"audio\"},{\"type\":\"resource_link\"}]}",
        "{\"content\":[{\"type\":\"audio\",\"data\":1,\"mimeType\":2},7,[]]}",
        "{\"messages\":[" AUDIO "]}",
        "{ \"content\" : [ " PLAIN " ] }",
    };
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        expect("2024-11-05", "tools/call", results[i], results[i]);
    }
    static const char message[] =
        "{\"messages\":[7,{\"role\":\"user\"},{\"content\":[" AUDIO "]}]}";
    expect("2024-11-05", "prompts/get", message, message);
}

static void each_revision_gets_kinds_that_it_knows(void **state)
{
    (void)state;
    static const char all[] = "{\"_meta\":{},\"content\":[" PLAIN "," AUDIO "," LINK "],\"n\":1.0}";
    expect("2024-11-05", "tools/call", all,
           "{\"_meta\":{},\"n\":1.0,\"content\":[" PLAIN "," OLD_AUDIO("2") "," OLD_LINK "]}");
    expect("2025-03-26", "tools/call", all,
           "{\"_meta\":{},\"n\":1.0,\"content\":[" PLAIN "," AUDIO "," OLD_LINK "]}");
    expect("2025-06-18", "tools/call", all, all);
    expect("2025-11-25", "tools/call", all, all);
    expect("2024-11-05", "completion/complete", all, all);
}

static void messages_of_prompts_too(void **state)
{
    (void)state;
    expect("2024-11-05", "prompts/get",
           "{\"resultType\":\"complete\",\"messages\":[7,{\"role\":\"user\"},{\"role\":\"user\","
           "\"content\":" PLAIN "},{\"content\":" AUDIO ",\"role\":\"user\"}]}",
           "{\"messages\":[7,{\"role\":\"user\"},{\"role\":\"user\",\"content\":" PLAIN
           "},{\"role\":\"user\",\"content\":" OLD_AUDIO("4") "}]}");
    expect("2025-03-26", "prompts/get", "{\"messages\":[{\"role\":\"user\",\"content\":" LINK "}]}",
           "{\"messages\":[{\"role\":\"user\",\"content\":" OLD_LINK "}]}");
}

static void a_link_keeps_all_that_it_says(void **state)
{
    (void)state;
    static const char *const links[][2] = {
        {"{\"type\":\"resource_link\",\"uri\":\"x:a\",\"name\":\"n\",\"title\":\"T\","
         "\"description\":"
         "\"two\\nlines\",\"mimeType\":\"a/b\",\"size\":16}",
         "{\"type\":\"resource\",\"resource\":{\"uri\":\"x:a\",\"mimeType\":\"text/"
         "plain\",\"text\":"
         "\"T (n)\\ntwo\\nlines\\nx:a, a/b, 16 bytes\"},\"name\":\"n\",\"title\":\"T\","
         "\"description\":\"two\\nlines\",\"mimeType\":\"a/b\",\"size\":16}"},
        {"{\"type\":\"resource_link\",\"uri\":\"x:a\",\"name\":\"n\",\"title\":\"n\","
         "\"description\":7,"
         "\"mimeType\":null,\"size\":\"16\"}",
         "{\"type\":\"resource\",\"resource\":{\"uri\":\"x:a\",\"mimeType\":\"text/"
         "plain\",\"text\":"
         "\"n\\nx:a\"},\"name\":\"n\",\"title\":\"n\",\"description\":7,\"mimeType\":null,"
         "\"size\":\"16\"}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        char result[512];
        char expected[512];
        (void)snprintf(result, sizeof(result), "{\"content\":[%s]}", links[i][0]);
        (void)snprintf(expected, sizeof(expected), "{\"content\":[%s]}", links[i][1]);
        expect("2025-03-26", "tools/call", result, expected);
    }
}

/* mcp 2025-06-18 server/tools, Structured Content: it SHOULD come as text, too; a server that knows
 * no older client may leave that to others. */
static void structured_content_has_a_text_for_who_cannot_read_it(void **state)
{
    (void)state;
    static const char alone[] = "{\"structuredContent\":{\"n\":1.0},\"content\":[]}";
    static const char told[] =
        "{\"structuredContent\":{\"n\":1.0},\"content\":[{\"type\":\"text\",\"text\":"
        "\"{\\\"n\\\":1.0}\"}]}";
    static const char both[] = "{\"content\":[" PLAIN "],\"structuredContent\":{\"n\":1.0}}";
    static const char *const older[] = {"2024-11-05", "2025-03-26"};
    static const char *const newer[] = {"2025-06-18", "2025-11-25"};
    for (size_t i = 0; i < ARRAY_LEN(older); i++) {
        expect(older[i], "tools/call", alone, told);
        expect(older[i], "tools/call", "{\"structuredContent\":{\"n\":1.0}}", told);
        expect(older[i], "tools/call", both, both);
        expect(older[i], "prompts/get", alone, alone);
        expect(older[i], "tools/call", "{\"content\":7,\"structuredContent\":{}}",
               "{\"content\":7,\"structuredContent\":{}}");
    }
    for (size_t i = 0; i < ARRAY_LEN(newer); i++) {
        expect(newer[i], "tools/call", alone, alone);
        expect(newer[i], "tools/call", both, both);
    }
    expect("2024-11-05", "tools/call", "{\"content\":[" LINK "],\"structuredContent\":{}}",
           "{\"structuredContent\":{},\"content\":[" OLD_LINK
           ",{\"type\":\"text\",\"text\":\"{}\"}]}");
}

/* Since 2026-07-28 it may be anything; before, an object: strict readers refuse all else. */
static void structured_content_is_an_object_in_sessions(void **state)
{
    (void)state;
    static const char *const revisions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
    for (size_t i = 0; i < ARRAY_LEN(revisions); i++) {
        expect(revisions[i], "tools/call",
               "{\"resultType\":\"complete\",\"structuredContent\":[1.0],\"content\":[]}",
               "{\"content\":[{\"type\":\"text\",\"text\":\"[1.0]\"}]}");
        expect(revisions[i], "tools/call",
               "{\"structuredContent\":null,\"content\":[" PLAIN "],\"n\":1.0}",
               "{\"content\":[" PLAIN "],\"n\":1.0}");
    }
}

#define ABSENT(code) "{\"code\":" code ",\"message\":\"m\",\"data\":{\"uri\":\"x:y\",\"n\":1.0}}"

static void a_resource_that_is_not_there_has_its_code(void **state)
{
    (void)state;
    /* Other methods, other data, other codes: what they are. */
    expect_member("2025-11-25", "tools/call", "error", ABSENT("-32602"), ABSENT("-32602"));
    static const char bare[] = "{\"code\":-32602,\"message\":\"m\",\"data\":{\"uri\":7}}";
    expect_member("2025-11-25", "resources/read", "error", bare, bare);
    expect_member("2025-11-25", "resources/read", "error", ABSENT("-32603"), ABSENT("-32603"));
    expect_member("2024-11-05", "resources/read", "error", ABSENT("-32602"), ABSENT("-32002"));
    expect_member("2025-11-25", "resources/read", "error", ABSENT("-32602"), ABSENT("-32002"));
    expect_member("2025-11-25", "resources/read", "error", ABSENT("-32002"), ABSENT("-32002"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_read_stays_as_it_is),
        cmocka_unit_test(each_revision_gets_kinds_that_it_knows),
        cmocka_unit_test(messages_of_prompts_too),
        cmocka_unit_test(a_link_keeps_all_that_it_says),
        cmocka_unit_test(structured_content_has_a_text_for_who_cannot_read_it),
        cmocka_unit_test(structured_content_is_an_object_in_sessions),
        cmocka_unit_test(a_resource_that_is_not_there_has_its_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
