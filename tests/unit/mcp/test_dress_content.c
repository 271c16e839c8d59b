/* Content of kinds that came later, for clients of earlier revisions. */
#include "server_bench.h"

#define AUDIO                                                                                      \
    "{\"type\":\"audio\",\"mimeType\":\"audio\\/wav\",\"data\":\"AQ==\",\"annotations\":{}}"
#define LINK                                                                                       \
    "{\"uri\":\"x:\\u0061\",\"type\":\"resource_link\",\"name\":\"a \\\"b\\\"\",\"size\":1.0}"
#define OLD_AUDIO                                                                                  \
    "{\"type\":\"resource\",\"resource\":{\"uri\":\"data:audio\",\"mimeType\":\"audio\\/wav\","    \
    "\"blob\":\"AQ==\"},\"annotations\":{}}"
#define OLD_LINK "{\"type\":\"text\",\"text\":\"a \\\"b\\\": x:\\u0061\",\"size\":1.0}"
#define PLAIN "{ \"type\":\"text\",\"text\":\"t\" }"

/* What a client of `revision` gets for `result`. */
static void expect(const char *revision, const char *method, const char *result,
                   const char *expected)
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
                   "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"%s\",\"params\":{\"name\":\"t\"}}",
                   method);
    duplex_say(&self, &way, text);
    bench_answer(&self, bench_take(&self));
    (void)snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":%s}", expected);
    assert_string_equal(last_event(&way), text);
    duplex_close(&way);
    wire_fini(&way);
    bench_fini(&self);
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
           "{\"_meta\":{},\"n\":1.0,\"content\":[" PLAIN "," OLD_AUDIO "," OLD_LINK "]}");
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
           "},{\"role\":\"user\",\"content\":" OLD_AUDIO "}]}");
    expect("2025-03-26", "prompts/get", "{\"messages\":[{\"role\":\"user\",\"content\":" LINK "}]}",
           "{\"messages\":[{\"role\":\"user\",\"content\":" OLD_LINK "}]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_read_stays_as_it_is),
        cmocka_unit_test(each_revision_gets_kinds_that_it_knows),
        cmocka_unit_test(messages_of_prompts_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
