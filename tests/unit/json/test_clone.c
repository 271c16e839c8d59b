/* A value taken out of its document: the same in every respect, also when the document is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "json/json.h"

#include "support/failing_memory.h"

static const char text[] = " { \"a\" : [ 1, \"\\u00e9x\", null, {\"deep\":[true,[],{}]}], "
                           "\"b\\n\":-1.50e3, \"c\":\"d\" } ";

/* Walks both at once. */
static void assert_same(json_val a, json_val b)
{
    assert_int_equal(json_kind_of(a), json_kind_of(b));
    assert_true(str_eq(json_raw(a), json_raw(b)));
    assert_int_equal(json_count(a), json_count(b));
    json_iter left = json_iter_of(a);
    json_iter right = json_iter_of(b);
    while (json_next(&left)) {
        assert_true(json_next(&right));
        assert_same(left.key, right.key);
        assert_same(left.value, right.value);
    }
    assert_false(json_next(&right));
}

static void refuses_what_is_missing(void **state)
{
    json_doc *none = NULL;
    (void)state;
    assert_int_equal(json_clone(JSON_NONE, &none), BAY_ERR_TYPE);
    assert_null(none);
    json_val nothing = JSON_NONE;
    assert_int_equal(json_clone_in(JSON_NONE, NULL, &nothing), BAY_OK);
    assert_true(json_is(nothing, JSON_MISSING));
}

static void copies_any_value(void **state)
{
    static const bay_str places[] = {STR_INIT(""),          STR_INIT("/a"),   STR_INIT("/a/0"),
                                     STR_INIT("/a/1"),      STR_INIT("/a/2"), STR_INIT("/a/3"),
                                     STR_INIT("/a/3/deep"), STR_INIT("/b\n"), STR_INIT("/c")};
    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        arena memory;
        json_doc doc;
        json_doc *copy = NULL;
        arena_init(&memory, SIZE_MAX);
        assert_int_equal(json_parse(&doc, (bay_str){text, sizeof(text) - 1}, NULL, &memory, NULL),
                         BAY_OK);
        json_val value = json_pointer(json_root(&doc), places[i]);
        assert_int_equal(json_clone(value, &copy), BAY_OK);
        assert_same(value, json_root(copy));
        assert_int_equal(json_offset(json_root(copy)), 0);
        arena_fini(&memory);
        arena other;
        json_val inside = JSON_NONE;
        arena_init(&other, SIZE_MAX);
        assert_int_equal(json_clone_in(json_root(copy), &other, &inside), BAY_OK);
        assert_same(json_root(copy), inside);
        arena_fini(&other);
        json_doc *again = NULL; /* of a copy, without the document */
        assert_int_equal(json_clone(json_root(copy), &again), BAY_OK);
        assert_same(json_root(copy), json_root(again));
        mem_free(copy);
        mem_free(again);
    }
}

static void says_that_memory_lacks(void **state)
{
    arena memory;
    json_doc doc;
    json_doc *copy = NULL;
    (void)state;
    arena_init(&memory, SIZE_MAX);
    assert_int_equal(json_parse(&doc, (bay_str){text, sizeof(text) - 1}, NULL, &memory, NULL),
                     BAY_OK);
    assert_true(failing_memory_start(0));
    assert_int_equal(json_clone(json_root(&doc), &copy), BAY_ERR_NOMEM);
    failing_memory_stop();
    assert_null(copy);
    arena_fini(&memory);
}

/* The index of what is left is that of a text without it. */
static void cuts_what_stands_in_strings(void **state)
{
    static const char marked[] = "{\"a~m\":[\"~m~m\",\"x~my\",{\"k\":\"\\u00e9~m\"} ,1],"
                                 "\"~mb\":\"~\",\"c\":\"~m\"}";
    static const char bare[] = "{\"a\":[\"\",\"xy\",{\"k\":\"\\u00e9\"} ,1],"
                               "\"b\":\"~\",\"c\":\"\"}";
    static const bay_str cuts[] = {STR_INIT("~m"), STR_INIT(""), STR_INIT("not there")};
    (void)state;
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        arena memory;
        json_doc from, wanted;
        json_val made = JSON_NONE;
        arena_init(&memory, SIZE_MAX);
        assert_int_equal(json_parse(&from, str_of(marked), NULL, &memory, NULL), BAY_OK);
        assert_int_equal(json_parse(&wanted, str_of(i == 0 ? bare : marked), NULL, &memory, NULL),
                         BAY_OK);
        assert_int_equal(json_clone_without(json_root(&from), cuts[i], &memory, &made), BAY_OK);
        assert_same(made, json_root(&wanted));
        json_val inside = json_get(json_root(&from), STR("c")); /* not at the text's beginning */
        assert_int_equal(json_clone_without(inside, cuts[i], &memory, &made), BAY_OK);
        assert_true(str_eq(json_raw(made), i == 0 ? STR("\"\"") : STR("\"~m\"")));
        assert_int_equal(json_clone_without(JSON_NONE, cuts[i], &memory, &made), BAY_OK);
        assert_true(json_is(made, JSON_MISSING));
        arena_fini(&memory);
    }
    arena small;
    arena plenty;
    json_doc from;
    json_val made = JSON_NONE;
    arena_init(&plenty, SIZE_MAX);
    arena_init(&small, 16);
    assert_int_equal(json_parse(&from, str_of(marked), NULL, &plenty, NULL), BAY_OK);
    assert_int_not_equal(json_clone_without(json_root(&from), cuts[0], &small, &made), BAY_OK);
    assert_true(json_is(made, JSON_MISSING));
    arena_fini(&small);
    arena_fini(&plenty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_what_stands_in_strings),
        cmocka_unit_test(refuses_what_is_missing),
        cmocka_unit_test(copies_any_value),
        cmocka_unit_test(says_that_memory_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
