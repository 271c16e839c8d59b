/* What a row has beside its value, in every store: parts come with a put and go with the row, in
 * the same moment. */
#include "support/store_rig.h"

#include "base/str.h"

#define T STR("t")

/* Puts a row with those parts, "name=value name=value …", and drops those of `dropped`. */
static bay_err put_parts(store_rig *rig, answer *a, const char *key, const char *parts,
                         const char *dropped, uint64_t expected)
{
    store_part list[8];
    bay_str gone = str_of(dropped);
    size_t count = 0;
    for (const char *at = parts; *at != '\0'; count++) {
        size_t name = strcspn(at, "=");
        size_t value = strcspn(at + name + 1, " ");
        assert_true(count < ARRAY_LEN(list));
        list[count] = (store_part){{at, name}, {at + name + 1, value}};
        at += name + 1 + value;
        at += *at == ' ';
    }
    store_put_request put = {.table = T,
                             .key = str_of(key),
                             .value = STR("row"),
                             .expected = expected,
                             .parts = list,
                             .part_count = count,
                             .dropped = &gone,
                             .dropped_count = gone.len > 0};
    return ask(rig, a, put, &put);
}

static void parts_come_and_go_with_their_row(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    bay_str k = STR("k");
    bay_str none = STR("");
    assert_int_equal(ask(rig, &a, parts, T, k, none, 10), BAY_ERR_NOT_FOUND);
    assert_int_equal(put_parts(rig, &a, "k", "b=2 a=1 ab=3", "", STORE_ANY), BAY_OK);
    assert_int_equal(a.held_rows, 4);
    assert_int_equal(put_parts(rig, &a, "kk", "a=other", "", STORE_ANY), BAY_OK);
    assert_int_equal(ask(rig, &a, parts, T, k, none, 10), BAY_OK);
    assert_true(answer_is(&a, "a=1 ab=3 b=2 "));
    assert_int_equal(ask(rig, &a, parts, STR("u"), k, none, 10), BAY_ERR_NOT_FOUND);
    answer_clear(&a);
}

static void parts_are_read_in_pages(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    bay_str k = STR("k");
    assert_int_equal(put_parts(rig, &a, "k", "a=1 b=2 c=3 d=4", "", STORE_ABSENT), BAY_OK);
    assert_int_equal(ask(rig, &a, parts, T, k, STR(""), 3), BAY_OK);
    assert_true(answer_is(&a, "a=1 b=2 c=3 "));
    assert_true(a.has_more);
    assert_int_equal(ask(rig, &a, parts, T, k, STR("c"), 3), BAY_OK);
    assert_true(answer_is(&a, "d=4 "));
    assert_false(a.has_more);
    assert_int_equal(ask(rig, &a, parts, T, k, STR("bb"), 1), BAY_OK);
    assert_true(answer_is(&a, "c=3 "));
    assert_true(a.has_more);
    assert_int_equal(ask(rig, &a, parts, T, k, STR("d"), 1), BAY_OK);
    assert_true(answer_is(&a, ""));
    answer_clear(&a);
}

static void parts_are_dropped_by_the_beginning_of_their_names(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    assert_int_equal(put_parts(rig, &a, "k", "aa=1 ab=2 b=3", "", STORE_ANY), BAY_OK);
    assert_int_equal(put_parts(rig, &a, "ka", "aa=1", "", STORE_ANY), BAY_OK);
    assert_int_equal(put_parts(rig, &a, "k", "c=4 b=33", "a", STORE_ANY), BAY_OK);
    assert_int_equal(a.held_rows, 5);
    assert_int_equal(ask(rig, &a, parts, T, STR("k"), STR(""), 10), BAY_OK);
    assert_true(answer_is(&a, "b=33 c=4 "));
    assert_int_equal(ask(rig, &a, parts, T, STR("ka"), STR(""), 10), BAY_OK);
    assert_true(answer_is(&a, "aa=1 "));
    assert_int_equal(put_parts(rig, &a, "k", "", "nothing", STORE_ANY), BAY_OK);
    assert_int_equal(ask(rig, &a, remove, T, STR("k"), STORE_ANY), BAY_OK);
    assert_int_equal(a.held_rows, 2);
    assert_int_equal(ask(rig, &a, parts, T, STR("k"), STR(""), 10), BAY_ERR_NOT_FOUND);
    rig_set(rig, "k", "anew");
    assert_int_equal(ask(rig, &a, parts, T, STR("k"), STR(""), 10), BAY_OK);
    assert_true(answer_is(&a, ""));
    assert_int_equal(ask(rig, &a, parts, T, STR("ka"), STR(""), 10), BAY_OK);
    assert_true(answer_is(&a, "aa=1 "));
    answer_clear(&a);
}

static void a_put_that_fails_leaves_no_parts(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    reopen_with(rig, (store_options){.rows = 4, .total_bytes = 100});
    assert_int_equal(put_parts(rig, &a, "k", "a=1", "", STORE_ANY), BAY_OK);
    assert_int_equal(put_parts(rig, &a, "k", "b=2", "a", STORE_ABSENT), BAY_ERR_DUPLICATE);
    assert_int_equal(put_parts(rig, &a, "k", "b=2 c=3 d=4", "a", STORE_ANY), BAY_ERR_LIMIT);
    assert_int_equal(a.held_rows, 2);
    assert_int_equal(put_parts(rig, &a, "new", "b=2 c=3", "", STORE_ANY), BAY_ERR_LIMIT);
    assert_int_equal(a.held_rows, 2);
    uint64_t before = a.held_bytes;
    static const char large[] = "b=0123456789012345678901234567890123456789"
                                " c=0123456789012345678901234567890123456789";
    assert_int_equal(put_parts(rig, &a, "k", large, "", STORE_ANY), BAY_ERR_LIMIT);
    assert_int_equal(a.held_bytes, before);
    assert_int_equal(ask(rig, &a, parts, T, STR("k"), STR(""), 10), BAY_OK);
    assert_true(answer_is(&a, "a=1 "));
    assert_int_equal(ask(rig, &a, parts, T, STR("new"), STR(""), 10), BAY_ERR_NOT_FOUND);
    assert_int_equal(put_parts(rig, &a, "k", "b=2 c=3", "a", STORE_ANY), BAY_OK);
    assert_int_equal(a.held_rows, 3);
    answer_clear(&a);
}

/* Swept, or in the way of a new row: a row that has expired takes its parts along. */
static void expired_rows_take_their_parts_along(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    reopen_with(rig, (store_options){.rows = 6});
    store_part part = {STR("p"), STR("1")};
    store_put_request put = {.table = T,
                             .key = STR("k"),
                             .value = STR("v"),
                             .expected = STORE_ANY,
                             .expires_at_ms = RIG_NOW + 10,
                             .parts = &part,
                             .part_count = 1};
    assert_int_equal(ask(rig, &a, put, &put), BAY_OK);
    put.key = STR("l");
    assert_int_equal(ask(rig, &a, put, &put), BAY_OK);
    rig->now_ms += 10;
    assert_int_equal(ask(rig, &a, parts, T, STR("k"), STR(""), 10), BAY_ERR_NOT_FOUND);
    rig_set(rig, "k", "new");
    assert_int_equal(ask(rig, &a, parts, T, STR("k"), STR(""), 10), BAY_OK);
    assert_true(answer_is(&a, ""));
    assert_int_equal(a.held_rows, 3); /* of "l" both are still there */
    assert_int_equal(put_parts(rig, &a, "m", "a=1 b=2 c=3", "", STORE_ANY), BAY_OK);
    assert_int_equal(a.held_rows, 5); /* they went for it */
    answer_clear(&a);
}

/* Room is made by what expired; the parts of the put itself are not among it. */
static void parts_in_place_of_an_expired_row_stay(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    reopen_with(rig, (store_options){.rows = 4, .total_bytes = 60});
    store_part part = {STR("p"), STR("1")};
    store_put_request put = {.table = T,
                             .key = STR("k"),
                             .value = STR("0123456789012345678901234567890123456789"),
                             .expected = STORE_ANY,
                             .expires_at_ms = RIG_NOW + 10,
                             .parts = &part,
                             .part_count = 1};
    assert_int_equal(ask(rig, &a, put, &put), BAY_OK);
    rig->now_ms += 10;
    assert_int_equal(put_parts(rig, &a, "k", "a=12345 b=12345", "", STORE_ANY), BAY_OK);
    assert_int_equal(a.held_rows, 3);
    assert_int_equal(ask(rig, &a, parts, T, STR("k"), STR(""), 10), BAY_OK);
    assert_true(answer_is(&a, "a=12345 b=12345 "));
    put.key = STR("l");
    put.value = STR("v");
    put.part_count = 0;
    put.expires_at_ms = rig->now_ms + 10;
    assert_int_equal(ask(rig, &a, put, &put), BAY_OK);
    rig->now_ms += 10;
    assert_int_equal(put_parts(rig, &a, "l", "a=1 b=2", "", STORE_ANY), BAY_ERR_LIMIT);
    assert_int_equal(a.held_rows, 3);
    assert_int_equal(put_parts(rig, &a, "k", "c=1", "", STORE_ANY), BAY_OK);
    assert_int_equal(a.held_rows, 4);
    answer_clear(&a);
}

static void all_that_is_written_is_counted(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    uint64_t before = store_written(rig->store);
    assert_int_equal(ask(rig, &a, get, T, STR("k")), BAY_ERR_NOT_FOUND);
    assert_int_equal(ask(rig, &a, scan, T, STR(""), STR(""), 10), BAY_OK);
    assert_int_equal(ask(rig, &a, parts, T, STR("k"), STR(""), 10), BAY_ERR_NOT_FOUND);
    assert_int_equal(store_written(rig->store), before);
    assert_int_equal(put_parts(rig, &a, "key", "a=12 b=345", "cd", STORE_ANY), BAY_OK);
    assert_int_equal(store_written(rig->store), before + 1 + 3 + 3 + 3 + 4 + 2);
    assert_int_equal(ask(rig, &a, remove, T, STR("key"), STORE_ANY), BAY_OK);
    assert_int_equal(rig_append(rig, &a, "s", "event", 1, 0), BAY_OK);
    assert_int_equal(store_written(rig->store), before + 16 + 4 + 6);
    answer_clear(&a);
}

/* Every case, once for each store. */
#define CASES(X)                                                                                   \
    X(parts_come_and_go_with_their_row)                                                            \
    X(parts_are_read_in_pages)                                                                     \
    X(parts_are_dropped_by_the_beginning_of_their_names)                                           \
    X(a_put_that_fails_leaves_no_parts)                                                            \
    X(expired_rows_take_their_parts_along)                                                         \
    X(parts_in_place_of_an_expired_row_stay)                                                       \
    X(all_that_is_written_is_counted)

#define IN_MEMORY(function)                                                                        \
    cmocka_unit_test_setup_teardown(function, rig_setup_memory, rig_teardown),
#define IN_SQLITE(function)                                                                        \
    cmocka_unit_test_setup_teardown(function, rig_setup_sqlite, rig_teardown),

int main(void)
{
    const struct CMUnitTest in_memory[] = {CASES(IN_MEMORY)};
    const struct CMUnitTest in_sqlite[] = {CASES(IN_SQLITE)};
    int failures = cmocka_run_group_tests_name("memory", in_memory, NULL, NULL);
    if (RIG_HAS_SQLITE) {
        failures += cmocka_run_group_tests_name("sqlite", in_sqlite, NULL, NULL);
    }
    return failures;
}
