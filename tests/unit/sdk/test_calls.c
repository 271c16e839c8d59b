/* Calls through the engine, each in every revision: how a call ends, what it says meanwhile, and
 * what its arguments have to be. */
#include <math.h>

#include "unit/sdk/sdk_bench.h"

#define TEXT(text) "\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]"
#define RESULT_HAS(on, name, part) assert_has(rig_call(on, name), part)

static bay_server *new_server(void)
{
    bay_server *server = bay_server_new("s", "1");
    assert_non_null(server);
    return server;
}

static void add(bay_server *server, const char *name, bay_handler_fn handler)
{
    bay_server_tool_schema(server, name, NULL, NULL, handler, NULL);
}

/* ---- how a call ends */

static void reply_long(bay_call *call, void *user)
{
    (void)user;
    char text[3001];
    memset(text, 'x', 3000);
    text[3000] = '\0';
    bay_call_replyf(call, "%s %d \"%s\"", text, 42, "end");
}

static void reply_null(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, NULL);
}

static void fail_formatted(bay_call *call, void *user)
{
    (void)user;
    bay_call_failf(call, "no %s", "luck");
}

static void fail_null(bay_call *call, void *user)
{
    (void)user;
    bay_call_fail(call, NULL);
}

static void be_wrong(bay_call *call, void *user)
{
    (void)user;
    bay_call_error(call, -32001, "wrong \"call\"");
}

static void be_silent(bay_call *call, void *user)
{
    (void)call;
    (void)user;
}

static void answer_twice(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "first");
    bay_call_reply(call, "second");
    bay_call_error(call, 1, "third");
    bay_call_not_found(call);
    bay_call_progress(call, 1, 2, "late");
    bay_call_log(call, "emergency", "late");
}

static void not_found(bay_call *call, void *user)
{
    (void)user;
    bay_call_not_found(call);
}

static void finish_nothing(bay_call *call, void *user)
{
    (void)user;
    bay_call_finish(call, NULL);
}

static void a_call_ends_in_every_way(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    add(server, "ok", reply_ok);
    add(server, "long", reply_long);
    add(server, "null", reply_null);
    add(server, "fail", fail_formatted);
    add(server, "fail_null", fail_null);
    add(server, "wrong", be_wrong);
    add(server, "silent", be_silent);
    add(server, "twice", answer_twice);
    add(server, "missing", not_found);
    add(server, "nothing", finish_nothing);
    rig_start(&on, server);
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client(&on, all_revisions[i]);
        RESULT_HAS(&on, "ok", TEXT("ok"));
        assert_lacks(last_event(&on.way), "isError");
        RESULT_HAS(&on, "long", "xx 42 \\\"end\\\"\"}]");
        RESULT_HAS(&on, "null", TEXT(""));
        RESULT_HAS(&on, "fail", TEXT("no luck") ",\"isError\":true");
        RESULT_HAS(&on, "fail_null", TEXT("") ",\"isError\":true");
        RESULT_HAS(&on, "wrong", "\"error\":{\"code\":-32001,\"message\":\"wrong \\\"call\\\"\"}");
        RESULT_HAS(&on, "silent", "{\"code\":-32603,\"message\":\"The handler returned without");
        RESULT_HAS(&on, "missing", "{\"code\":-32602,\"message\":\"Not found\"}");
        RESULT_HAS(&on, "nothing", "{\"code\":-32603,");
        RESULT_HAS(&on, "absent", "{\"code\":-32602,\"message\":\"Unknown tool: absent\"}");
        int before = on.way.events;
        RESULT_HAS(&on, "twice", TEXT("first"));
        assert_int_equal(on.way.events, before + 1);
        assert_int_equal(server->calls_under_way, 0);
    }
    rig_stop(&on);
}

/* ---- content */

static void answer_everything(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "t");
    bay_result_textf(result, "%d", 7);
    bay_result_text_str(result, (bay_str){"a\0b", 3});
    bay_result_image(result, "\x01\x02\x03", 3, "image/png");
    bay_result_image(result, NULL, 0, NULL);
    bay_result_audio(result, "\x01\x02\x03", 3, "audio/wav");
    bay_result_resource(result, "x:a", "text/plain", "in");
    bay_result_resource(result, "x:b", NULL, NULL);
    bay_result_link(result, "x:c", "see", "text/html");
    bay_result_link(result, "x:d", NULL, NULL);
    bay_result_structured(result, " {\"n\":1.00} ");
    bay_result_error(result);
    bay_call_finish(call, result);
}

static void answer_structure(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    bay_result_structured(result, user);
    bay_call_finish(call, result);
}

static void free_then_reply(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "unused");
    bay_result_free(result);
    bay_call_reply(call, "used");
}

static void content_is_what_the_revision_has(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    static char object[] = "{\"a\":\"\\u00e9\"}";
    static char array[] = "[1]";
    static char broken[] = "{\"a\":1}}";
    add(server, "all", answer_everything);
    add(server, "free", free_then_reply);
    bay_server_tool_schema(server, "object", NULL, NULL, answer_structure, object);
    bay_server_tool_schema(server, "array", NULL, NULL, answer_structure, array);
    bay_server_tool_schema(server, "broken", NULL, NULL, answer_structure, broken);
    bay_server_tool_schema(server, "none", NULL, NULL, answer_structure, NULL);
    rig_start(&on, server);
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client(&on, all_revisions[i]);
        const char *said = rig_call(&on, "all");
        assert_has(said, "{\"type\":\"text\",\"text\":\"t\"},{\"type\":\"text\",\"text\":\"7\"},"
                         "{\"type\":\"text\",\"text\":\"a\\u0000b\"}");
        assert_has(said, "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"AQID\"}");
        assert_has(said, "{\"type\":\"image\",\"mimeType\":\"application/octet-stream\","
                         "\"data\":\"\"}");
        assert_has(said, i >= 1
                             ? "{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"AQID\"}"
                             : "{\"type\":\"resource\",\"resource\":{\"uri\":\"cid:audio-6@patchbay"
                               "\",\"mimeType\":\"audio/wav\",\"blob\":\"AQID\"}}");
        assert_has(said, "{\"type\":\"resource\",\"resource\":{\"uri\":\"x:a\",\"mimeType\":"
                         "\"text/plain\",\"text\":\"in\"}}");
        assert_has(said, "{\"uri\":\"x:b\",\"text\":\"\"}");
        assert_has(said, i >= 2
                             ? "{\"type\":\"resource_link\",\"uri\":\"x:c\",\"name\":\"see\","
                               "\"mimeType\":\"text/html\"},{\"type\":\"resource_link\",\"uri\":"
                               "\"x:d\",\"name\":\"x:d\"}"
                             : "{\"type\":\"resource\",\"resource\":{\"uri\":\"x:c\",\"mimeType\":"
                               "\"text/plain\",\"text\":\"see\\nx:c, text/html\"},\"name\":"
                               "\"see\",\"mimeType\":\"text/html\"},{\"type\":\"resource\","
                               "\"resource\":{\"uri\":\"x:d\",\"mimeType\":\"text/plain\","
                               "\"text\":\"x:d\\nx:d\"},\"name\":\"x:d\"}");
        if (i >= 2) {
            assert_has(said, "\"structuredContent\":{\"n\":1.00}");
        } else {
            assert_lacks(said, "structuredContent");
        }
        assert_has(said, "\"isError\":true");
        /* Alone it comes as text too, byte for byte. */
        RESULT_HAS(&on, "object", TEXT("{\\\"a\\\":\\\"\\\\u00e9\\\"}"));
        RESULT_HAS(&on, "array", TEXT("[1]"));
        RESULT_HAS(&on, "broken", "{\"code\":-32603,\"message\":\"The handler's structured");
        RESULT_HAS(&on, "none", "{\"code\":-32603,\"message\":\"The handler's structured");
        RESULT_HAS(&on, "free", TEXT("used"));
    }
    rig_stop(&on);
}

static void mix_up(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_str uri = bay_call_name(call);
    if (uri.at[0] == 'x' || uri.at[0] == 'p') {
        bay_result_image(result, "", 0, "image/png");
        bay_result_value(result, "v");
    } else {
        bay_result_blob(result, "", 0);
    }
    bay_call_finish(call, result);
}

static void content_of_another_kind_is_refused(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    add(server, "t", mix_up);
    bay_server_resource(server, "x:a", "a", NULL, NULL, mix_up, NULL);
    bay_server_prompt(server, "p", NULL, NULL, mix_up, NULL);
    bay_server_prompt(server, "q", NULL, NULL, reply_ok, NULL);
    bay_server_completion(server, reply_ok, NULL);
    rig_start(&on, server);
    rig_client(&on, "2025-11-25");
    const char *refusal = "{\"code\":-32603,\"message\":\"The handler answered with content that";
    RESULT_HAS(&on, "t", refusal);
    assert_has(rig_ask(&on, "resources/read", "\"uri\":\"x:a\""), refusal);
    assert_has(rig_ask(&on, "prompts/get", "\"name\":\"p\""), refusal);
    assert_has(rig_ask(&on, "completion/complete",
                       "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"q\"},"
                       "\"argument\":{\"name\":\"a\",\"value\":\"\"}"),
               refusal);
    rig_stop(&on);
}

/* ---- while it lasts */

static void talk(bay_call *call, void *user)
{
    (void)user;
    bay_call_progress(call, 1, 4, "one");
    bay_call_progress(call, 1, 4, "again: not more than before");
    bay_call_progress(call, (double)NAN, 4, NULL);
    bay_call_progress(call, 2, (double)INFINITY, NULL);
    bay_call_progress(call, 2.5, -1, NULL);
    bay_call_log(call, "debug", "fine");
    bay_call_log(call, "warning", "take \"care\"");
    bay_call_log(call, "loud", "no such level");
    bay_call_log(call, NULL, NULL);
    bay_call_reply(call, "said");
}

static void progress_and_log_go_to_who_asked(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    add(server, "talk", talk);
    rig_start(&on, server);
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        bool is_modern = i == 4;
        rig_client(&on, all_revisions[i]);
        if (!is_modern) {
            assert_has(rig_ask(&on, "logging/setLevel", "\"level\":\"warning\""), "\"result\":{");
        }
        int at = on.way.events;
        assert_has(rig_ask_meta(&on, "tools/call", "\"name\":\"talk\"",
                                is_modern ? "\"progressToken\":\"k\","
                                            "\"io.modelcontextprotocol/logLevel\":\"warning\""
                                          : "\"progressToken\":\"k\""),
                   TEXT("said"));
        assert_int_equal(on.way.events, at + 5);
        assert_has(on.way.event[at], i >= 1
                                         ? "\"progressToken\":\"k\",\"progress\":1,\"total\":4,"
                                           "\"message\":\"one\"}"
                                         : "\"progressToken\":\"k\",\"progress\":1,\"total\":4}");
        assert_has(on.way.event[at + 1], "\"progress\":2}");
        assert_has(on.way.event[at + 2], "\"progress\":2.5}");
        assert_has(on.way.event[at + 3], "\"params\":{\"level\":\"warning\",\"logger\":\"talk\","
                                         "\"data\":\"take \\\"care\\\"\"}");
        /* Nobody asked. */
        if (!is_modern) {
            rig_ask(&on, "logging/setLevel", "\"level\":\"emergency\"");
        }
        at = on.way.events;
        RESULT_HAS(&on, "talk", TEXT("said"));
        assert_int_equal(on.way.events, at + 1);
    }
    rig_stop(&on);
}

static void flood(bay_call *call, void *user)
{
    (void)user;
    for (int i = 1; i <= 50; i++) {
        bay_call_progress(call, i, 50, NULL);
        bay_call_log(call, "error", "x");
    }
    bay_call_reply(call, "done");
}

/* A client that does not read gets the answer, not what it would have to be kept for. */
static void a_slow_client_gets_the_answer_only(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    add(server, "flood", flood);
    rig_start(&on, server);
    rig_client(&on, "2025-06-18");
    on.way.event_err = BAY_ERR_AGAIN;
    int at = on.way.events;
    rig_ask_meta(&on, "tools/call", "\"name\":\"flood\"", "\"progressToken\":1");
    assert_int_equal(on.way.events, at + 2);
    rig_stop(&on);
}

/* ---- what a call carries */

static bay_call *kept;

static void keep(bay_call *call, void *user)
{
    (void)user;
    kept = bay_call_defer(call);
}

static void arguments_are_read_as_they_are(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    add(server, "keep", keep);
    rig_start(&on, server);
    rig_client(&on, "2025-03-26");
    rig_send(&on, "tools/call",
             "\"name\":\"keep\",\"arguments\":{\"s\":\"a\\u00e9\",\"i\":42,\"f\":2.5,\"one\":1.0,"
             "\"big\":18446744073709551616,\"t\":true,\"n\":null,\"o\":{\"k\": [1]}}",
             "");
    int64_t integer = -1;
    double number = -1;
    assert_true(str_eq(bay_call_name(kept), STR("keep")));
    assert_true(str_eq(bay_call_revision(kept), STR("2025-03-26")));
    assert_true(str_eq(bay_call_str(kept, "s"), STR("a\xc3\xa9")));
    assert_ptr_equal(bay_call_str(kept, "s").at, bay_call_str(kept, "s").at); /* decoded once */
    assert_true(str_eq(bay_call_str(kept, "o"), STR("{\"k\": [1]}")));
    assert_true(str_eq(bay_call_str(kept, "n"), STR("null")));
    assert_null(bay_call_str(kept, "absent").at);
    assert_null(bay_call_str(kept, NULL).at);
    assert_int_equal(bay_call_int(kept, "absent", &integer), BAY_ERR_NOT_FOUND);
    assert_int_equal(bay_call_int(kept, "s", &integer), BAY_ERR_TYPE);
    assert_int_equal(bay_call_int(kept, "f", &integer), BAY_ERR_RANGE);
    assert_int_equal(bay_call_int(kept, "big", &integer), BAY_ERR_RANGE);
    assert_int_equal(integer, -1);
    assert_int_equal(bay_call_int(kept, "one", &integer), BAY_OK);
    assert_int_equal(integer, 1);
    assert_int_equal(bay_call_double(kept, "absent", &number), BAY_ERR_NOT_FOUND);
    assert_int_equal(bay_call_double(kept, "t", &number), BAY_ERR_TYPE);
    assert_int_equal(bay_call_double(kept, "f", &number), BAY_OK);
    assert_true(number > 2.4 && number < 2.6);
    assert_true(bay_call_bool_or(kept, "t", false));
    assert_false(bay_call_bool_or(kept, "i", false));
    assert_true(bay_call_has(kept, "n"));
    assert_false(bay_call_has(kept, "absent"));
    assert_true(str_starts(bay_call_arguments(kept), STR("{\"s\":")));
    assert_null(bay_call_variable(kept, "s").at);
    assert_false(bay_call_is_cancelled(kept));
    bay_call_reply(kept, "done");
    assert_has(last_event(&on.way), TEXT("done"));
    rig_send(&on, "tools/call", "\"name\":\"keep\"", "");
    assert_true(str_eq(bay_call_arguments(kept), STR("{}")));
    assert_false(bay_call_has(kept, "s"));
    bay_call_reply(kept, "done");
    rig_stop(&on);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    bay_server_tool_schema(
        server, "t", NULL,
        "{\"type\":\"object\",\"required\":[\"s\",\"caf\\u00e9\"],\"properties\":{"
        "\"s\":{\"type\":\"string\"},\"i\":{\"type\":\"integer\"},\"n\":{\"type\":"
        "\"number\"},\"b\":{\"type\":\"boolean\"},\"a\":{\"type\":\"array\"},\"o\":{"
        "\"type\":\"object\"},\"z\":{\"type\":\"null\"},\"u\":{\"type\":[\"integer\","
        "\"null\"]},\"w\":{\"type\":[\"integer\",\"number\"]},\"x\":true}}",
        reply_ok, NULL);
    rig_start(&on, server);
    static const struct {
        const char *arguments; /* besides the required ones; NULL: none at all */
        const char *complaint; /* NULL: taken */
    } cases[] = {
        {NULL, "The arguments do not fit the input schema of \\\"t\\\":\\n"},
        {NULL, "\\\"s\\\""},
        {NULL, "caf\xc3\xa9"},
        {",\"i\":1", NULL},
        {",\"i\":1.0", NULL},
        {",\"i\":10e-1", NULL},
        {",\"i\":1.5", "/i must be an integer"},
        {",\"i\":\"1\"", "/i must be"},
        {",\"i\":null", "/i must be"},
        {",\"n\":1.5", NULL},
        {",\"n\":true", "/n must be"},
        {",\"b\":true", NULL},
        {",\"b\":false", NULL},
        {",\"b\":0", "/b must be"},
        {",\"a\":[]", NULL},
        {",\"a\":{}", "/a must be"},
        {",\"o\":{}", NULL},
        {",\"o\":[]", "/o must be"},
        {",\"z\":null", NULL},
        {",\"z\":0", "/z must be"},
        {",\"u\":null", NULL},
        {",\"u\":1", NULL},
        {",\"u\":1.5", "/u must be"},
        {",\"w\":1.5", NULL},
        {",\"x\":{},\"unknown\":null", NULL},
    };
    rig_client(&on, "2025-11-25");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char params[256];
        (void)snprintf(params, sizeof(params), "\"name\":\"t\",\"arguments\":{%s%s}",
                       cases[i].arguments != NULL ? "\"s\":\"\",\"caf\xc3\xa9\":1" : "",
                       cases[i].arguments != NULL ? cases[i].arguments : "");
        const char *said = rig_ask(&on, "tools/call", params);
        assert_has(said, cases[i].complaint != NULL ? cases[i].complaint : TEXT("ok"));
        assert_has(said, cases[i].complaint != NULL ? "\"isError\":true" : "\"content\"");
    }
    assert_has(rig_ask(&on, "tools/call", "\"name\":\"t\",\"arguments\":[]"),
               "{\"code\":-32602,\"message\":\"The arguments must be an object; tool: t\"}");
    rig_stop(&on);
}

/* Names so long that the complaint does not fit must not make bad arguments good. */
static void a_complaint_too_long_is_still_one(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    buf text;
    buf_init(&text, 1 << 20);
    buf_lit(&text, "{\"type\":\"object\",\"required\":[\"");
    for (int i = 0; i < 5000; i++) {
        buf_char(&text, 'n');
    }
    buf_lit(&text, "\"]}");
    buf_char(&text, '\0');
    bay_server_tool_schema(server, "t", NULL, text.at, reply_ok, NULL);
    buf_fini(&text);
    rig_start(&on, server);
    rig_client(&on, "2025-11-25");
    const char *said = rig_call(&on, "t");
    assert_has(said, "\\nthe value lacks the required property \\\"nnnn");
    assert_has(said, "...\\\"\"}],\"isError\":true");
    assert_true(strlen(said) < SCHEMA_FAILURE_BYTES);
    rig_stop(&on);
}

/* ---- what leaves */

static void answer_broken(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "t");
    if (user != NULL) {
        bay_result_structured(result, user);
    }
    if (bay_call_bool_or(call, "fails", false)) {
        bay_result_error(result);
    }
    bay_call_finish(call, result);
}

static void say_arguments(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply_str(call, bay_call_arguments(call));
}

static void null_stands_for_no_arguments(void **state)
{
    (void)state;
    static const char strict[] = "{\"type\":\"object\",\"required\":[\"s\"]}";
    rig on;
    bay_server *server = new_server();
    bay_server_tool_schema(server, "t", NULL, NULL, say_arguments, NULL);
    bay_server_tool_schema(server, "strict", NULL, strict, say_arguments, NULL);
    bay_server_prompt(server, "p", NULL, NULL, reply_ok, NULL);
    bay_server_prompt(
        server, "strict", NULL,
        (const bay_field[]){{.name = "a", .type = BAY_TYPE_STRING, .is_required = true}, {0}},
        reply_ok, NULL);
    rig_start(&on, server);
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client(&on, all_revisions[i]);
        assert_has(rig_ask(&on, "tools/call", "\"name\":\"t\",\"arguments\":null"), TEXT("{}"));
        assert_has(rig_ask(&on, "tools/call", "\"name\":\"strict\",\"arguments\":null"),
                   "\"isError\":true");
        assert_has(rig_ask(&on, "prompts/get", "\"name\":\"p\",\"arguments\":null"),
                   "\"text\":\"ok\"");
        assert_has(rig_ask(&on, "prompts/get", "\"name\":\"strict\",\"arguments\":null"),
                   "\"code\":-32602");
        static const char *const none[] = {"0", "false", "\"\"", "[]", "[null]"};
        for (size_t k = 0; k < ARRAY_LEN(none); k++) {
            char params[64];
            (void)snprintf(params, sizeof(params), "\"name\":\"t\",\"arguments\":%s", none[k]);
            assert_has(rig_ask(&on, "tools/call", params), "\"code\":-32602");
        }
    }
    rig_stop(&on);
}

static void output_is_checked(void **state)
{
    (void)state;
    static char good[] = "{\"n\":1}";
    static char bad[] = "{\"n\":\"1\"}";
    char *const outputs[] = {good, bad, NULL};
    for (int blocking = 0; blocking < 2; blocking++) {
        for (size_t i = 0; i < ARRAY_LEN(outputs); i++) {
            rig on;
            bay_server *server = new_server();
            bay_tool *tool =
                bay_server_tool_schema(server, "t", NULL, NULL, answer_broken, outputs[i]);
            bay_tool_output_schema(tool, "{\"type\":\"object\"}");
            bay_tool_output_schema(tool, "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
                                         "\"integer\"}}}"); /* the last one counts */
            if (blocking == 1) {
                bay_tool_blocking(tool);
            }
            rig_start(&on, server);
            rig_client(&on, "2025-11-25");
            int at = on.way.events;
            rig_send(&on, "tools/call", "\"name\":\"t\"", "");
            RIG_UNTIL(&on, on.way.events == at + 1);
            assert_has(last_event(&on.way),
                       i == 0 ? "\"structuredContent\":{\"n\":1}"
                              : "{\"code\":-32603,\"message\":\"The tool's output breaks its "
                                "schema\"}");
            /* What failed has no output to check. */
            rig_send(&on, "tools/call", "\"name\":\"t\",\"arguments\":{\"fails\":true}", "");
            RIG_UNTIL(&on, on.way.events == at + 2);
            assert_has(last_event(&on.way), "\"isError\":true");
            rig_stop(&on);
        }
    }
}

/* ---- capabilities of the client */

static void a_tool_may_require_a_capability(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    bay_tool_requires(bay_server_tool_schema(server, "t", NULL, NULL, reply_ok, NULL), "sampling");
    rig_start(&on, server);
    for (size_t i = 0; i < ARRAY_LEN(legacy_revisions); i++) {
        rig_client(&on, legacy_revisions[i]);
        RESULT_HAS(
            &on, "t",
            TEXT("This tool needs a client with the capability \\\"sampling\\\".") ",\"isError\":"
                                                                                   "true");
        rig_client_with(&on, legacy_revisions[i], "\"sampling\":{}");
        RESULT_HAS(&on, "t", TEXT("ok"));
    }
    rig_client(&on, "2026-07-28");
    RESULT_HAS(&on, "t", "\"error\":{\"code\":-32021,");
    assert_has(last_event(&on.way), "\"data\":{\"requiredCapabilities\":{\"sampling\":{}}}");
    rig_say(&on, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
                 "\"t\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                 "\"io.modelcontextprotocol/clientCapabilities\":{\"sampling\":{}}}}}");
    assert_has(last_event(&on.way), TEXT("ok"));
    rig_stop(&on);
}

/* ---- ends that come from outside */

static void a_cancelled_call_may_still_be_finished(void **state)
{
    (void)state;
    rig on;
    bay_server *server = new_server();
    add(server, "keep", keep);
    rig_start(&on, server);
    rig_client(&on, "2025-11-25");
    rig_send(&on, "tools/call", "\"name\":\"keep\",\"arguments\":{\"a\":\"\\u0041\"}", "");
    rig_say(&on, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                 "\"requestId\":11}}");
    int at = on.way.events;
    assert_true(bay_call_is_cancelled(kept));
    assert_true(str_eq(bay_call_str(kept, "a"), STR("A")));
    bay_call_log(kept, "error", "nobody hears");
    bay_call_reply(kept, "nobody waits");
    assert_int_equal(on.way.events, at);
    /* The peer is gone altogether. */
    rig_send(&on, "tools/call", "\"name\":\"keep\",\"arguments\":{\"a\":\"\\u0041\"}", "");
    rig_hang_up(&on);
    assert_true(bay_call_is_cancelled(kept));
    assert_true(str_eq(bay_call_name(kept), STR("keep")));
    assert_int_equal(server->calls_under_way, 1);
    bay_call_progress(kept, 1, 1, NULL);
    bay_call_failf(kept, "nobody %s", "waits");
    assert_int_equal(server->calls_under_way, 0);
    rig_stop(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_ends_in_every_way),
        cmocka_unit_test(content_is_what_the_revision_has),
        cmocka_unit_test(content_of_another_kind_is_refused),
        cmocka_unit_test(progress_and_log_go_to_who_asked),
        cmocka_unit_test(a_slow_client_gets_the_answer_only),
        cmocka_unit_test(arguments_are_read_as_they_are),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(a_complaint_too_long_is_still_one),
        cmocka_unit_test(null_stands_for_no_arguments),
        cmocka_unit_test(output_is_checked),
        cmocka_unit_test(a_tool_may_require_a_capability),
        cmocka_unit_test(a_cancelled_call_may_still_be_finished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
