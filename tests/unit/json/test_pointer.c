/* RFC 6901: where pointers lead, and where they lead nowhere. */
#include "case.h"

static const char document[] =
    "{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,\"i\\\\j\":5,"
    "\"k\\\"l\":6,\" \":7,\"m~n\":8,\"o\\u002fp\":9,\"~01\":10,\"-\":11,\"0\":12,"
    "\"deep\":{\"list\":[[],{\"x\":[1,2,3]}]},\"\\ud800~\":13}";

static void leads_nowhere(void **state)
{
    (void)state;
    static const char *const nowhere[] = {
        "foo",
        "#/foo",
        "/nope",
        "/foo/2",
        "/foo/-",
        "/foo/00",
        "/foo/01",
        "/foo/-1",
        "/foo/1.0",
        "/foo/",
        "/foo/bar",
        "/foo/ 1",
        "/foo/+1",
        "/foo/0/0",
        "/m~n",
        "/m~2n",
        "/m~",
        "/m~0",
        "/m~0nn",
        "/deep/list/1/y",
        "/a~1",
        "/foo/18446744073709551616",
        "//",
        "/foo//0",
        "/\xed\xa0\x80~0",
        "/deep/list/2",
        "/deep/list/1/x/3",
        "/m~01n",
    };
    parsed p;
    json_val root = must_parse(&p, document);
    for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
        if (json_kind_of(json_pointer(root, str_of(nowhere[i]))) != JSON_MISSING) {
            print_error("%s leads somewhere\n", nowhere[i]);
        }
        assert_int_equal(json_kind_of(json_pointer(root, str_of(nowhere[i]))), JSON_MISSING);
    }
    forget(&p);
}

static void leads_to_the_value(void **state)
{
    (void)state;
    static const char *const somewhere[][2] = {
        {"/foo", "[\"bar\",\"baz\"]"},
        {"/foo/0", "\"bar\""},
        {"/foo/1", "\"baz\""},
        {"/", "0"},
        {"/a~1b", "1"},
        {"/c%d", "2"},
        {"/e^f", "3"},
        {"/g|h", "4"},
        {"/i\\j", "5"},
        {"/k\"l", "6"},
        {"/ ", "7"},
        {"/m~0n", "8"},
        {"/o~1p", "9"},
        {"/~001", "10"},
        {"/-", "11"},
        {"/0", "12"},
        {"/deep/list/0", "[]"},
        {"/deep/list/1/x/2", "3"},
    };
    parsed p;
    json_val root = must_parse(&p, document);
    assert_str(json_raw(json_pointer(root, STR(""))), document);
    for (size_t i = 0; i < sizeof(somewhere) / sizeof(somewhere[0]); i++) {
        bay_str raw = json_raw(json_pointer(root, str_of(somewhere[i][0])));
        assert_true(str_eq(raw, str_of(somewhere[i][1])));
    }
    forget(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leads_nowhere),
        cmocka_unit_test(leads_to_the_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
