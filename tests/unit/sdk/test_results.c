/* Results as each revision knows them: bytes embedded, annotations, _meta, hints for caches,
 * completions of which there are more. */
#include "unit/sdk/sdk_bench.h"

static bay_server *server_of(bay_handler_fn handler)
{
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, handler, NULL);
    bay_server_prompt(server, "p", NULL, NULL, handler, NULL);
    bay_server_resource(server, "x:a", "a", NULL, NULL, handler, NULL);
    bay_server_completion(server, handler, NULL);
    return server;
}

static const char *get_prompt(rig *on)
{
    return rig_ask(on, "prompts/get", "\"name\":\"p\"");
}

static const char *read(rig *on)
{
    return rig_ask(on, "resources/read", "\"uri\":\"x:a\"");
}

static const char *complete(rig *on)
{
    return rig_ask(on, "completion/complete",
                   "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"p\"},\"argument\":{\"name\":\"a\","
                   "\"value\":\"\"}");
}

#define ERROR_WITH(text) "\"error\":{\"code\":-32603,\"message\":\"" text

/* ---- what cannot be */

static void say_wrong_annotations(bay_call *call, void *user)
{
    static int turn;
    (void)user;
    bay_result *result = bay_result_new(call);
    switch (turn++) {
    case 0:
        bay_result_annotate(result, "{}");
        break;
    case 1:
        bay_result_text(result, "a");
        bay_result_annotate(result, "{}");
        bay_result_annotate(result, "{}");
        break;
    case 2:
        bay_result_text(result, "a");
        bay_result_annotate(result, "{\"priority\":2}");
        break;
    case 3:
        bay_result_text(result, "a");
        bay_result_annotate(result, "[]");
        break;
    case 4:
        bay_result_text(result, "a");
        bay_result_annotate(result, NULL);
        break;
    case 5:
        bay_result_meta(result, "[]");
        break;
    case 6:
        bay_result_cache(result, 1, true);
        break;
    case 7:
        bay_result_more(result, 1);
        break;
    case 8:
        bay_result_item_meta(result, "{}");
        break;
    case 9:
        bay_result_text(result, "a");
        bay_result_item_meta(result, "{}");
        bay_result_item_meta(result, "{}");
        break;
    case 10:
        bay_result_text(result, "a");
        bay_result_item_meta(result, "7");
        break;
    default:
        break;
    }
    bay_call_finish(call, result);
}

static void mistakes_are_told(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        ERROR_WITH("The handler annotated nothing"), ERROR_WITH("The handler annotated nothing"),
        ERROR_WITH("the annotation priority"),       ERROR_WITH("The handler's annotations"),
        ERROR_WITH("The handler's annotations"),     ERROR_WITH("The handler's _meta"),
        ERROR_WITH("The handler answered with"),     ERROR_WITH("The handler answered with"),
        ERROR_WITH("The handler gave _meta to no"),  ERROR_WITH("The handler gave _meta to no"),
        ERROR_WITH("The handler's _meta of content")};
    rig on;
    rig_start(&on, server_of(say_wrong_annotations));
    rig_client(&on, "2025-11-25");
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_has(rig_call(&on, "t"), wanted[i]);
    }
    rig_stop(&on);
    bay_result_annotate(NULL, "{}");
    bay_result_item_meta(NULL, "{}");
    bay_result_meta(NULL, "{}");
    bay_result_cache(NULL, 1, true);
    bay_result_more(NULL, 1);
    bay_result_resource_blob(NULL, "x:a", NULL, "", 0);
}

static void annotate_anything(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "a");
    bay_result_annotate(result, "{}");
    bay_call_finish(call, result);
}

static void contents_of_resources_have_none(void **state)
{
    (void)state;
    rig on;
    rig_start(&on, server_of(annotate_anything));
    rig_client(&on, "2025-11-25");
    assert_has(read(&on), ERROR_WITH("The handler answered with"));
    rig_stop(&on);
}

/* ---- content */

#define NOTES "{\"audience\":[\"user\"],\"priority\":0.5,\"lastModified\":\"2025-01-12\"}"
#define OLD_NOTES "{\"audience\":[\"user\"],\"priority\":0.5}"

static void answer_annotated(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_message(result, "assistant");
    bay_result_text(result, "a");
    bay_result_annotate(result, NOTES);
    bay_result_resource_blob(result, "x:b", "image/png", "\1\2\3", 3);
    bay_result_annotate(result, "{\"priority\":1}");
    bay_result_link(result, "x:c", "c", NULL);
    bay_result_annotate(result, "{}");
    bay_result_text(result, "z");
    bay_call_finish(call, result);
}

static void content_is_annotated(void **state)
{
    (void)state;
    rig on;
    rig_start(&on, server_of(answer_annotated));
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client(&on, all_revisions[i]);
        char wanted[1024];
        const char *notes = i < 2 ? OLD_NOTES : NOTES;
        const char *link =
            i < 2
                ? "{\"type\":\"resource\",\"resource\":{\"uri\":\"x:c\",\"mimeType\":\"text/"
                  "plain\","
                  "\"text\":\"c\\nx:c\"},\"name\":\"c\",\"annotations\":{}}"
                : "{\"type\":\"resource_link\",\"uri\":\"x:c\",\"name\":\"c\",\"annotations\":{}}";
        (void)snprintf(wanted, sizeof(wanted),
                       "\"content\":[{\"type\":\"text\",\"text\":\"a\",\"annotations\":%s},"
                       "{\"type\":\"resource\",\"resource\":{\"uri\":\"x:b\",\"mimeType\":"
                       "\"image/png\",\"blob\":\"AQID\"},\"annotations\":{\"priority\":1}},%s,"
                       "{\"type\":\"text\",\"text\":\"z\"}]",
                       notes, link);
        assert_has(rig_call(&on, "t"), wanted);
        (void)snprintf(wanted, sizeof(wanted),
                       "\"messages\":[{\"role\":\"assistant\",\"content\":{\"type\":\"text\","
                       "\"text\":\"a\",\"annotations\":%s}},{\"role\":\"assistant\",\"content\":{"
                       "\"type\":\"resource\",",
                       notes);
        assert_has(get_prompt(&on), wanted);
    }
    rig_stop(&on);
}

static void answer_with_item_meta(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "a");
    if (user != NULL) {
        bay_result_annotate(result, "{\"priority\":1}");
    }
    bay_result_item_meta(result, " {\"x/y\" : 1.0} ");
    bay_result_text(result, "b");
    bay_result_item_meta(result, "{}");
    bay_call_finish(call, result);
}

/* Each element has its own, also behind its annotations. */
static void content_has_its_meta(void **state)
{
    (void)state;
    rig on;
    static bool is_annotated = true;
    bay_server *server = server_of(answer_with_item_meta);
    bay_server_tool_schema(server, "noted", NULL, NULL, answer_with_item_meta, &is_annotated);
    rig_start(&on, server);
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client(&on, all_revisions[i]);
        const char *said = rig_call(&on, "noted");
        assert_has(said, i < 2 ? "[{\"type\":\"text\",\"text\":\"a\",\"annotations\":{"
                                 "\"priority\":1}},{\"type\":\"text\",\"text\":\"b\"}]"
                               : "[{\"type\":\"text\",\"text\":\"a\",\"annotations\":{"
                                 "\"priority\":1},\"_meta\":{\"x/y\" : 1.0}},{\"type\":\"text\","
                                 "\"text\":\"b\",\"_meta\":{}}]");
        assert_has(read(&on),
                   i < 2 ? "\"text\":\"a\"},{" : "\"text\":\"a\",\"_meta\":{\"x/y\" : 1.0}},{");
        assert_has(get_prompt(&on),
                   i < 2 ? "\"text\":\"a\"}}," : "\"text\":\"a\",\"_meta\":{\"x/y\" : 1.0}}},");
    }
    rig_stop(&on);
}

/* ---- the result */

static void answer_with_meta(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "a");
    bay_result_meta(result, "{\"x.example/old\":1}");
    bay_result_meta(result, " { \"x.example/a\" : {\"b\": 1.0},\n"
                            "\"io.modelcontextprotocol/serverInfo\":7 } ");
    bay_call_finish(call, result);
}

static void answer_with_empty_meta(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "a");
    bay_result_meta(result, "{ }");
    bay_call_finish(call, result);
}

static void results_carry_meta(void **state)
{
    (void)state;
    rig on;
    rig_start(&on, server_of(answer_with_meta));
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client(&on, all_revisions[i]);
        const char *wanted =
            rig_is_modern(&on)
                ? ",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"s\",\"version\":"
                  "\"1\"},\"x.example/a\":{\"b\": 1.0}}}}"
                : ",\"_meta\":{\"x.example/a\":{\"b\": 1.0}}}}";
        assert_has(rig_call(&on, "t"), wanted);
        assert_has(get_prompt(&on), wanted);
        assert_has(read(&on), wanted);
    }
    rig_stop(&on);
    rig_start(&on, server_of(answer_with_empty_meta));
    rig_client(&on, "2025-11-25");
    assert_null(strstr(rig_call(&on, "t"), "_meta"));
    rig_stop(&on);
}

static void answer_cacheable(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "a");
    bay_result_cache(result, 1234, true);
    bay_call_finish(call, result);
}

static void resources_say_how_long_they_keep(void **state)
{
    (void)state;
    rig on;
    rig_start(&on, server_of(answer_cacheable));
    rig_client(&on, "2026-07-28");
    assert_has(read(&on), "\"ttlMs\":1234,\"cacheScope\":\"public\"");
    rig_client(&on, "2025-11-25");
    assert_null(strstr(read(&on), "ttlMs"));
    rig_stop(&on);
    rig_start(&on, server_of(reply_ok));
    rig_client(&on, "2026-07-28");
    assert_has(read(&on), "\"ttlMs\":0,\"cacheScope\":\"private\"");
    rig_stop(&on);
}

static void answer_more(bay_call *call, void *user)
{
    static const size_t totals[] = {0, 1, 2, 300};
    static int turn;
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_value(result, "a");
    bay_result_value(result, "b");
    bay_result_more(result, totals[turn++ % 4]);
    bay_call_finish(call, result);
}

static void completions_say_that_there_are_more(void **state)
{
    (void)state;
    rig on;
    rig_start(&on, server_of(answer_more));
    rig_client(&on, "2025-11-25");
#define VALUES "\"completion\":{\"values\":[\"a\",\"b\"],"
    for (int i = 0; i < 3; i++) { /* fewer than there are is a mistake that does no harm */
        assert_has(complete(&on), VALUES "\"total\":2,\"hasMore\":false}");
    }
    assert_has(complete(&on), VALUES "\"total\":300,\"hasMore\":true}");
    rig_stop(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(contents_of_resources_have_none),
        cmocka_unit_test(content_is_annotated),
        cmocka_unit_test(content_has_its_meta),
        cmocka_unit_test(results_carry_meta),
        cmocka_unit_test(resources_say_how_long_they_keep),
        cmocka_unit_test(completions_say_that_there_are_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
