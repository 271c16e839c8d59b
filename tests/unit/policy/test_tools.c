/* Settings of tools by patterns: the most specific one counts, those that disagree are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "policy/tools.h"

static bay_err add(policy_tools *to, const char *pattern, const char *argument)
{
    policy_idempotency how = {.argument = str_of(argument)};
    policy_tool settings = {.idempotency = &how};
    size_t other = SIZE_MAX;
    bay_err err = policy_tools_add(to, str_of(pattern), &settings, &other);
    assert_true((err == BAY_ERR_DUPLICATE) == (other != SIZE_MAX));
    return err;
}

static policy_tools *made(void)
{
    policy_tools *self = NULL;
    assert_int_equal(policy_tools_new(&self), BAY_OK);
    return self;
}

static void assert_argument(policy_tools_index *index, const char *name, const char *argument)
{
    for (int times = 0; times < 2; times++) { /* looked up, then remembered */
        const policy_idempotency *found = policy_tools_find(index, str_of(name)).idempotency;
        assert_int_equal(found != NULL, argument != NULL);
        assert_true(found == NULL || str_eq(found->argument, str_of(argument)));
    }
}

static void equally_specific_patterns_that_disagree_are_refused(void **state)
{
    policy_tools *tools = made();
    (void)state;
    assert_int_equal(add(tools, "a.p*", "/x"), BAY_OK);
    assert_int_equal(add(tools, "a.*y", "/y"), BAY_ERR_DUPLICATE); /* a.pay */
    assert_int_equal(add(tools, "a.*y", "/x"), BAY_OK);            /* the same */
    assert_int_equal(add(tools, "b.*y", "/y"), BAY_OK);            /* no name in common */
    assert_int_equal(add(tools, "a.pa*", "/z"), BAY_OK);           /* more specific */
    assert_int_equal(add(tools, "a.pay", "/1"), BAY_OK);
    assert_int_equal(add(tools, "a.pay", "/2"), BAY_ERR_DUPLICATE);
    policy_tools_unref(tools);
}

static void the_most_specific_pattern_counts(void **state)
{
    static const char *const orders[][4] = {{"*", "a.*", "a.p*", "a.pay"},
                                            {"a.pay", "a.p*", "a.*", "*"},
                                            {"a.p*", "*", "a.pay", "a.*"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        policy_tools_index index = {0};
        policy_tools *tools = made();
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(add(tools, orders[i][k], orders[i][k]), BAY_OK);
        }
        policy_tools_index_set(&index, tools);
        policy_tools_unref(tools);
        assert_argument(&index, "a.pay", "a.pay");
        assert_argument(&index, "a.put", "a.p*");
        assert_argument(&index, "a.get", "a.*");
        assert_argument(&index, "b.get", "*");
        policy_tools_index_fini(&index);
    }
}

static void a_pattern_without_a_setting_hides_none(void **state)
{
    policy_tools_index index = {0};
    policy_tools *tools = made();
    policy_tool none = {0};
    size_t other;
    (void)state;
    assert_int_equal(policy_tools_add(tools, STR("a.pay"), &none, &other), BAY_OK);
    assert_int_equal(add(tools, "a.*", "/x"), BAY_OK);
    policy_tools_index_set(&index, tools);
    policy_tools_unref(tools);
    assert_argument(&index, "a.pay", "/x");
    assert_argument(&index, "b.pay", NULL);
    policy_tools_index_set(&index, NULL); /* a reload */
    policy_tools_index_fini(&index);
}

static void each_setting_comes_from_the_most_specific_pattern_that_has_it(void **state)
{
    policy_tools_index index = {0};
    policy_tools *tools = made();
    policy_tool small = {.result_bytes = 1024};
    policy_tool large = {.result_bytes = 2048};
    size_t other;
    (void)state;
    assert_int_equal(policy_tools_add(tools, STR("a.*"), &large, &other), BAY_OK);
    assert_int_equal(policy_tools_add(tools, STR("*"), &small, &other), BAY_OK);
    assert_int_equal(add(tools, "a.pay", "/x"), BAY_OK);
    assert_int_equal(policy_tools_add(tools, STR("?.*"), &small, &other), BAY_OK);
    assert_int_equal(policy_tools_add(tools, STR("*.?"), &large, &other), BAY_ERR_DUPLICATE);
    policy_tools_index_set(&index, tools);
    policy_tools_unref(tools);
    assert_argument(&index, "a.pay", "/x");
    assert_int_equal(policy_tools_find(&index, STR("a.pay")).result_bytes, 2048);
    assert_int_equal(policy_tools_find(&index, STR("b")).result_bytes, 1024);
    policy_tools_index_fini(&index);
}

static void a_header_field_that_is_there_twice_has_no_value(void **state)
{
    const http_field fields[] = {{STR_INIT("X-A"), STR_INIT("1")},
                                 {STR_INIT("x-b"), STR_INIT("2")},
                                 {STR_INIT("X-B"), STR_INIT("3")}};
    policy_idempotency how[] = {{.header = STR_INIT("x-a")}, {.header = STR_INIT("X-b")}};
    policy_tools *tools = made();
    arena memory;
    size_t count;
    size_t other;
    (void)state;
    arena_init(&memory, 65536);
    assert_int_equal(
        policy_tools_add(tools, STR("a"), &(policy_tool){.idempotency = &how[0]}, &other), BAY_OK);
    assert_int_equal(
        policy_tools_add(tools, STR("b"), &(policy_tool){.idempotency = &how[1]}, &other), BAY_OK);
    const policy_tool_field *found =
        policy_tools_fields(tools, fields, ARRAY_LEN(fields), &memory, &count);
    assert_int_equal(count, 2);
    assert_true(str_eq(found[0].value, STR("1")));
    assert_true(str_eq(found[1].value, STR("")));
    assert_null(policy_tools_fields(tools, fields, 0, &memory, &count));
    arena_fini(&memory);
    policy_tools_unref(tools);
}

static void each_setting_counts_for_itself(void **state)
{
    policy_tools *tools = made();
    policy_tools_index index = {0};
    const policy_rate five = {5, 5, 60000};
    const policy_rate nine = {9, 9, 60000};
    const policy_tool settings[] = {{.rate = five, .cost = 2}, {.total = nine}, {.rate = nine}};
    static const char *const patterns[] = {"*", "a.*", "a.pay"};
    size_t other;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        assert_int_equal(policy_tools_add(tools, str_of(patterns[i]), &settings[i], &other),
                         BAY_OK);
    }
    assert_int_equal(policy_tools_add(tools, STR("?.pay"), &settings[0], &other), BAY_OK);
    assert_int_equal(policy_tools_add(tools, STR("*.pay"), &settings[2], &other),
                     BAY_ERR_DUPLICATE); /* another rate for the same names */
    policy_tools_index_set(&index, tools);
    policy_tool found = policy_tools_find(&index, STR("a.pay"));
    assert_int_equal(found.rate.count, 9);
    assert_int_equal(found.total.count, 9);
    assert_int_equal(found.cost, 2);
    found = policy_tools_find(&index, STR("b.get"));
    assert_int_equal(found.rate.count, 5);
    assert_int_equal(found.total.count, 0);
    policy_tools_index_fini(&index);
    policy_tools_unref(tools);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equally_specific_patterns_that_disagree_are_refused),
        cmocka_unit_test(the_most_specific_pattern_counts),
        cmocka_unit_test(each_setting_counts_for_itself),
        cmocka_unit_test(a_pattern_without_a_setting_hides_none),
        cmocka_unit_test(each_setting_comes_from_the_most_specific_pattern_that_has_it),
        cmocka_unit_test(a_header_field_that_is_there_twice_has_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
