/* Envelopes: what is refused and with which code and id, what is read, and that what is written
 * reads back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "rpc/message.h"

static void assert_text(bay_str actual, const char *expected)
{
    assert_int_equal(actual.len, strlen(expected));
    assert_memory_equal(actual.at, expected, actual.len);
}

typedef struct refusal {
    const char *text;
    int code;
    const char *id;
} refusal;

static const refusal refusals[] = {
    {"", RPC_PARSE_ERROR, "null"},
    {"{", RPC_PARSE_ERROR, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"} x", RPC_PARSE_ERROR, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{?}}", RPC_PARSE_ERROR, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{?}}", RPC_PARSE_ERROR, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"a\"}", RPC_PARSE_ERROR, "null"},
    {"1", RPC_INVALID_REQUEST, "null"},
    {"\"a\"", RPC_INVALID_REQUEST, "null"},
    {"null", RPC_INVALID_REQUEST, "null"},
    {"{}", RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\"}", RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":7}", RPC_INVALID_REQUEST, "7"},
    {"{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"a\"}", RPC_INVALID_REQUEST, "7"},
    {"{\"jsonrpc\":2.0,\"id\":7,\"method\":\"a\"}", RPC_INVALID_REQUEST, "7"},
    {"{\"id\":\"x\",\"method\":\"a\"}", RPC_INVALID_REQUEST, "\"x\""},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}", RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}", RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"a\"}", RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"a\"}", RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"a\"}", RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":1}", RPC_INVALID_REQUEST, "3"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":null}", RPC_INVALID_REQUEST, "3"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"a\",\"params\":[]}", RPC_INVALID_REQUEST, "3"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"a\",\"params\":1}", RPC_INVALID_REQUEST, "3"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"a\",\"params\":null}", RPC_INVALID_REQUEST, "3"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"a\",\"result\":{}}", RPC_INVALID_REQUEST, "3"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"a\",\"error\":{}}", RPC_INVALID_REQUEST, "3"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"a\",\"method\":\"b\"}", RPC_INVALID_REQUEST, "3"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"id\":4,\"method\":\"a\"}", RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"\\u006dethod\":\"a\",\"method\":\"b\"}", RPC_INVALID_REQUEST,
     "3"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"a\",\"params\":{},\"params\":{}}",
     RPC_INVALID_REQUEST, "3"},
    {"{\"jsonrpc\":\"2.0\",\"result\":{}}", RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}", RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":[]}", RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}}",
     RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{}}", RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":\"1\",\"message\":\"\"}}",
     RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":1.5,\"message\":\"\"}}",
     RPC_INVALID_REQUEST, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{\"code\":1,\"message\":\"\"}}", RPC_INVALID_REQUEST,
     "null"},
};

static void what_breaks_the_envelope_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        arena memory;
        arena_init(&memory, 1 << 16);
        json_doc doc;
        rpc_message message;
        rpc_fault fault = {0};
        bay_err err =
            rpc_message_parse(&message, &doc, str_of(refusals[i].text), NULL, &memory, &fault);
        if (err != BAY_ERR_PROTOCOL || fault.code != refusals[i].code) {
            fail_msg("%s: err %d, code %d", refusals[i].text, err, fault.code);
        }
        assert_text(fault.id, refusals[i].id);
        assert_non_null(fault.text);
        arena_fini(&memory);
    }
}

/* The id is a view of the text, wherever it stands; that of an answer is not answered. */
static void a_text_that_cannot_be_read_shows_its_id(void **state)
{
    (void)state;
    static const json_limits shallow = {1 << 16, 4, 100};
    static const json_limits few = {1 << 16, 64, 8};
    static const char calls[] =
        "{\"method\":\"a\",\"params\":{\"x\":[[[[1]]],2,3,4]},\"id\":\"q\"}";
    static const char answers[] =
        "{\"jsonrpc\":\"2.0\",\"result\":{\"x\":[[[[1]]],2,3,4]},\"id\":7}";
    const json_limits *const limits[] = {&shallow, &few};
    for (size_t i = 0; i < 2 * ARRAY_LEN(limits); i++) {
        arena memory;
        json_doc doc;
        rpc_message message;
        rpc_fault fault = {0};
        bool is_call = i % 2 == 0;
        bay_str text = str_of(is_call ? calls : answers);
        arena_init(&memory, 1 << 16);
        assert_int_equal(rpc_message_parse(&message, &doc, text, limits[i / 2], &memory, &fault),
                         BAY_ERR_PROTOCOL);
        assert_int_equal(fault.code, i < 2 ? RPC_PARSE_ERROR : RPC_INVALID_REQUEST);
        assert_text(fault.id, is_call ? "\"q\"" : "null");
        assert_text(fault.answers, is_call ? "" : "7");
        bay_str id = is_call ? fault.id : fault.answers;
        assert_true(id.at > text.at && id.at < text.at + text.len);
        arena_fini(&memory);
    }
}

static void a_parse_error_says_where(void **state)
{
    (void)state;
    arena memory;
    arena_init(&memory, 1 << 16);
    json_doc doc;
    rpc_message message;
    rpc_fault fault = {0};
    assert_int_equal(rpc_message_parse(&message, &doc, STR("{\"a\":?}"), NULL, &memory, &fault),
                     BAY_ERR_PROTOCOL);
    assert_int_equal(fault.offset, 5);
    arena_fini(&memory);
}

static void long_ids_and_names_are_refused(void **state)
{
    (void)state;
    for (size_t extra = 0; extra < 2; extra++) {
        for (int is_id = 0; is_id < 2; is_id++) {
            buf text;
            buf_init(&text, 4096);
            buf_lit(&text, "{\"jsonrpc\":\"2.0\",\"id\":\"");
            for (size_t i = 0; i < (is_id ? RPC_MAX_ID_BYTES - 2 + extra : 1); i++) {
                buf_char(&text, 'i');
            }
            buf_lit(&text, "\",\"method\":\"");
            for (size_t i = 0; i < (is_id ? 1 : RPC_MAX_METHOD_BYTES + extra); i++) {
                buf_char(&text, 'm');
            }
            buf_lit(&text, "\"}");
            arena memory;
            arena_init(&memory, 1 << 16);
            json_doc doc;
            rpc_message message;
            rpc_fault fault = {0};
            bay_err err = rpc_message_parse(&message, &doc, buf_view(&text), NULL, &memory, &fault);
            assert_int_equal(err, extra == 0 ? BAY_OK : BAY_ERR_PROTOCOL);
            arena_fini(&memory);
            buf_fini(&text);
        }
    }
}

static void depth_and_size_are_bounded(void **state)
{
    (void)state;
    enum { BRACKETS = 100000 };
    buf text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < BRACKETS; i++) {
        buf_char(&text, '[');
    }
    arena memory;
    arena_init(&memory, 1 << 20);
    json_doc doc;
    rpc_message message;
    rpc_fault fault = {0};
    json_limits limits = {1 << 20, 64, 1000};
    assert_int_equal(rpc_message_parse(&message, &doc, buf_view(&text), &limits, &memory, &fault),
                     BAY_ERR_PROTOCOL);
    assert_int_equal(fault.code, RPC_PARSE_ERROR);
    limits.max_bytes = 10;
    assert_int_equal(rpc_message_parse(&message, &doc, buf_view(&text), &limits, &memory, &fault),
                     BAY_ERR_PROTOCOL);
    assert_int_equal(fault.code, RPC_INVALID_REQUEST);
    arena_fini(&memory);
    buf_fini(&text);
}

static void a_batch_is_told_apart(void **state)
{
    (void)state;
    arena memory;
    arena_init(&memory, 1 << 16);
    json_doc doc;
    rpc_message message;
    rpc_fault fault = {0};
    assert_int_equal(rpc_message_parse(&message, &doc, STR("[1,2]"), NULL, &memory, &fault),
                     BAY_ERR_UNSUPPORTED);
    assert_int_equal(json_count(message.root), 2);
    arena_fini(&memory);
}

static void messages_are_read(void **state)
{
    (void)state;
    arena memory;
    arena_init(&memory, 1 << 16);
    json_doc doc;
    rpc_message message;
    rpc_fault fault = {0};
    assert_int_equal(rpc_message_parse(&message, &doc,
                                       STR("{\"method\":\"tools\\/call\",\"params\":{\"a\":1},"
                                           "\"id\":1.0,\"jsonrpc\":\"2.0\",\"extra\":[]}"),
                                       NULL, &memory, &fault),
                     BAY_OK);
    assert_int_equal(message.kind, RPC_REQUEST);
    assert_text(message.id, "1.0");
    assert_text(message.method, "tools/call");
    assert_text(json_raw(message.params), "{\"a\":1}");

    assert_int_equal(rpc_message_parse(&message, &doc,
                                       STR("{\"jsonrpc\":\"2.0\",\"method\":\"n\"}"), NULL, &memory,
                                       &fault),
                     BAY_OK);
    assert_int_equal(message.kind, RPC_NOTIFICATION);
    assert_int_equal(message.id.len, 0);
    assert_true(json_is(message.params, JSON_MISSING));

    assert_int_equal(rpc_message_parse(&message, &doc,
                                       STR("{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}"),
                                       NULL, &memory, &fault),
                     BAY_OK);
    assert_int_equal(message.kind, RPC_RESULT);
    assert_text(message.id, "\"1\"");

    assert_int_equal(
        rpc_message_parse(&message, &doc,
                          STR("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-1,"
                              "\"message\":\"m\",\"data\":null}}"),
                          NULL, &memory, &fault),
        BAY_OK);
    assert_int_equal(message.kind, RPC_ERROR);
    assert_int_equal(message.id.len, 0);
    arena_fini(&memory);
}

static void written_messages_read_back(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 4096);
    rpc_write_request(&out, STR("\"a\""), STR("x/\"y"), STR("{\"k\":1}"));
    assert_text(buf_view(&out),
                "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"x/\\\"y\",\"params\":{\"k\":1}}");
    buf_clear(&out);
    rpc_write_notification(&out, STR("n"), STR(""));
    assert_text(buf_view(&out), "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}");
    buf_clear(&out);
    rpc_write_result(&out, STR("1.0"), STR("{}"));
    assert_text(buf_view(&out), "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":{}}");
    buf_clear(&out);
    rpc_write_error(&out, STR(""), -32700, STR("no"), STR("[1]"));
    assert_text(buf_view(&out), "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
                                "\"message\":\"no\",\"data\":[1]}}");
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_breaks_the_envelope_is_refused),
        cmocka_unit_test(a_text_that_cannot_be_read_shows_its_id),
        cmocka_unit_test(a_parse_error_says_where),
        cmocka_unit_test(long_ids_and_names_are_refused),
        cmocka_unit_test(depth_and_size_are_bounded),
        cmocka_unit_test(a_batch_is_told_apart),
        cmocka_unit_test(messages_are_read),
        cmocka_unit_test(written_messages_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
