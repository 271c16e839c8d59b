/* What unreadable messages show: whatever the split, and never more than is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "rpc/outline.h"

typedef struct row {
    const char *text;
    const char *request;
    const char *answer;
    bool is_notification;
} row;

static const row rows[] = {
    /* nothing to be read from */
    {"", "", "", false},
    {"hello", "", "", false},
    {"[{\"id\":1,\"method\":\"a\"}]", "", "", false},
    {"\"{\\\"id\\\":1,\\\"method\\\":\\\"a\\\"}\"", "", "", false},
    {"{", "", "", false},
    {"{}", "", "", false},
    {"}}}]]]", "", "", false},
    {"{\"id\":1}", "", "", false},
    /* an id that is cut, or none that MCP allows */
    {"{\"method\":\"a\",\"id\":12", "", "", false},
    {"{\"method\":\"a\",\"id\":\"x", "", "", false},
    {"{\"method\":\"a\",\"id\":1.5}", "", "", false},
    {"{\"method\":\"a\",\"id\":01}", "", "", false},
    {"{\"method\":\"a\",\"id\":-}", "", "", false},
    {"{\"method\":\"a\",\"id\":null}", "", "", false},
    {"{\"method\":\"a\",\"id\":{\"id\":7}}", "", "", false},
    {"{\"method\":\"a\",\"id\":[7]}", "", "", false},
    {"{\"method\":\"a\",\"id\":\"\xff\"}", "", "", false},
    {"{\"method\":\"a\",\"id\":\"a\\\"\"}", "", "", false},
    {"{\"method\":\"a\",\"id\":1,\"id\":2}", "", "", false},
    {"{\"method\":\"a\",\"id\":1,\"id\":2,\"id\":3}", "", "", false},
    /* inside something else it is somebody else's */
    {"{\"method\":\"a\",\"params\":{\"id\":7}}", "", "", true},
    {"{\"params\":{\"id\":7,\"method\":\"a\"}}", "", "", false},
    {"{\"method\":\"a\",\"params\":\"\\\",\\\"id\\\":7\"", "", "", false},
    {"{\"method\":\"\\\\\",\"id\":7}", "7", "", false},
    /* neither, or both */
    {"{\"id\":1,\"method\":\"a\",\"result\":{}}", "", "", false},
    /* what there is */
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"x\":tru}}", "1", "", false},
    {"{\"method\":\"a\",\"params\":{\"x\":[[[{]]]},\"id\":-7}", "", "", false},
    {"{\"method\":\"a\",\"params\":{\"x\":[[[{}]]]},\"id\":-7}", "-7", "", false},
    {" { \"method\" : \"a\" , \"id\" : \"x y\" } trailing", "\"x y\"", "", false},
    {"{\"id\":0,\"result\":{\"id\":2}}", "", "0", false},
    {"{\"error\":{},\"id\":\"bay-7\"}", "", "\"bay-7\"", false},
    {"{\"id\":5,\"method\":\"a\"}{\"id\":6,\"method\":\"a\"}", "5", "", false},
    {"{\"method\":\"notifications/x\"}", "", "", true},
    {"{\"methods\":\"a\",\"idx\":3,\"results\":1}", "", "", false},
};

static void assert_text(const char *of, bay_str actual, const char *expected)
{
    if (actual.len != strlen(expected) || memcmp(actual.at, expected, actual.len) != 0) {
        fail_msg("%s: \"%.*s\", not \"%s\"", of, BAY_STR(actual), expected);
    }
}

static void whatever_the_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bay_str text = str_of(rows[i].text);
        for (size_t split = 0; split <= text.len; split++) {
            rpc_outline outline;
            rpc_outline_init(&outline);
            rpc_outline_feed(&outline, str_head(text, split));
            rpc_outline_feed(&outline, str_from(text, split));
            assert_text(rows[i].text, rpc_outline_request(&outline), rows[i].request);
            assert_text(rows[i].text, rpc_outline_answer(&outline), rows[i].answer);
            assert_int_equal(rpc_outline_is_notification(&outline), rows[i].is_notification);
            bay_str id = rpc_outline_request(&outline);
            if (id.len > 0) {
                assert_memory_equal(text.at + outline.id_at, id.at, id.len);
            }
        }
    }
}

static void a_long_id_is_none(void **state)
{
    (void)state;
    for (size_t extra = 0; extra < 2; extra++) {
        rpc_outline outline;
        rpc_outline_init(&outline);
        rpc_outline_feed(&outline, STR("{\"method\":\"a\",\"id\":\""));
        for (size_t i = 0; i < RPC_MAX_ID_BYTES - 2 + extra; i++) {
            rpc_outline_feed(&outline, STR("i"));
        }
        rpc_outline_feed(&outline, STR("\"}"));
        assert_int_equal(rpc_outline_request(&outline).len, extra == 0 ? RPC_MAX_ID_BYTES : 0);
    }
}

/* Any number of levels costs no memory. */
static void any_depth(void **state)
{
    (void)state;
    enum { LEVELS = 1000000 };
    rpc_outline outline;
    rpc_outline_init(&outline);
    rpc_outline_feed(&outline, STR("{\"method\":\"a\",\"params\":"));
    for (int i = 0; i < LEVELS; i++) {
        rpc_outline_feed(&outline, STR("["));
    }
    for (int i = 0; i < LEVELS; i++) {
        rpc_outline_feed(&outline, STR("]"));
    }
    rpc_outline_feed(&outline, STR(",\"id\":3}"));
    assert_text("deep", rpc_outline_request(&outline), "3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_the_split),
        cmocka_unit_test(a_long_id_is_none),
        cmocka_unit_test(any_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
