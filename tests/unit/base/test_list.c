/* The intrusive list: order, leaving twice, leaving while walking. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"

typedef struct item {
    int number;
    list_link link;
} item;

static item *item_of(list_link *link)
{
    return CONTAINER_OF(link, item, link);
}

static void an_empty_list_gives_nothing(void **state)
{
    (void)state;
    list all;
    list_init(&all);
    assert_true(list_is_empty(&all));
    assert_null(list_first(&all));
    assert_null(list_pop(&all));
    LIST_EACH(link, &all)
    {
        fail();
    }
}

static void removing_is_harmless_twice_and_before_joining(void **state)
{
    (void)state;
    list all;
    list_init(&all);
    item only = {1, {0}};
    list_remove(&only.link);
    assert_false(list_holds(&only.link));
    list_push(&all, &only.link);
    assert_true(list_holds(&only.link));
    list_remove(&only.link);
    list_remove(&only.link);
    assert_false(list_holds(&only.link));
    assert_true(list_is_empty(&all));
    list_push(&all, &only.link); /* and may join again */
    assert_ptr_equal(list_first(&all), &only.link);
}

static void keeps_the_order_of_joining(void **state)
{
    (void)state;
    list all;
    list_init(&all);
    item items[5] = {0};
    for (int i = 0; i < 5; i++) {
        items[i].number = i;
        list_push(&all, &items[i].link);
    }
    list_remove(&items[2].link); /* from the middle */
    static const int expected[] = {0, 1, 3, 4};
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        list_link *link = list_pop(&all);
        assert_non_null(link);
        assert_int_equal(item_of(link)->number, expected[i]);
        assert_false(list_holds(link));
    }
    assert_null(list_pop(&all));
}

static void the_current_one_may_leave_while_walking(void **state)
{
    (void)state;
    list all;
    list_init(&all);
    item items[6] = {0};
    for (int i = 0; i < 6; i++) {
        items[i].number = i;
        list_push(&all, &items[i].link);
    }
    int sum = 0;
    LIST_EACH(link, &all)
    {
        sum += item_of(link)->number;
        if (item_of(link)->number % 2 == 0) {
            list_remove(link);
        }
    }
    assert_int_equal(sum, 15);
    sum = 0;
    LIST_EACH(link, &all)
    {
        sum = sum * 10 + item_of(link)->number;
    }
    assert_int_equal(sum, 135);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_list_gives_nothing),
        cmocka_unit_test(removing_is_harmless_twice_and_before_joining),
        cmocka_unit_test(keeps_the_order_of_joining),
        cmocka_unit_test(the_current_one_may_leave_while_walking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
