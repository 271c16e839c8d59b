/* Every store answers whatever it is asked as the one in memory does. */
#include "support/store_rig.h"

#include "base/str.h"

static uint32_t random_state;

static uint32_t roll(uint32_t below) /* the same in every run */
{
    random_state = random_state * 1664525U + 1013904223U;
    return (uint32_t)(((uint64_t)random_state * below) >> 32);
}

/* One random operation on a few names. */
static bay_err random_step(store *self, uint64_t now_ms, answer *out)
{
    static const char keys[] = "abcde";
    static const char value[] = "some bytes of a value";
    static const char *const owners[] = {"one", "two"};
    bay_str table = {&"uv"[roll(2)], 1};
    bay_str key = {keys + roll(4), 1 + roll(2)};
    uint64_t expires_at_ms = roll(2) == 0 ? now_ms + roll(6) : 0;
    uint64_t version = roll(3) == 0 ? STORE_ANY : roll(3) == 0 ? roll(200) : STORE_ABSENT;
    bay_str owner = str_of(owners[roll(2)]);
    store_part parts[2] = {{{keys, 1 + roll(2)}, {value, roll(9)}},
                           {{keys + roll(3), 1}, {value, roll(9)}}};
    bay_str dropped = {keys + roll(3), 1};
    store_put_request put = {.table = table,
                             .key = key,
                             .value = {value, roll(20)},
                             .expires_at_ms = expires_at_ms,
                             .expected = version,
                             .is_relaxed = roll(2) == 0,
                             .parts = parts,
                             .part_count = roll(3),
                             .dropped = &dropped,
                             .dropped_count = roll(3) == 0};
    store_append_request append = {table,   {value, roll(20)}, expires_at_ms,
                                   roll(8), 20 + roll(60),     true};
    uint32_t kind = roll(13);
    uint32_t number = roll(8);
    switch (kind) {
    case 0:
    case 1:
    case 2:
        return store_put(self, &put, on_answer, out);
    case 3:
        return store_remove(self, table, key, version == 0 ? STORE_ANY : version, on_answer, out);
    case 4:
        return store_scan(self, table, (bay_str){keys, number % 2}, key, 1 + number, on_answer,
                          out);
    case 5:
        return store_claim(self, table, key, owner, 1 + number, on_answer, out);
    case 6:
        return store_renew(self, table, key, owner, 1 + number, on_answer, out);
    case 7:
        return store_release(self, table, key, owner, on_answer, out);
    case 8:
    case 9:
        return store_append(self, &append, on_answer, out);
    case 10:
        return store_read(self, table, number * 40, 1 + number, on_answer, out);
    case 11:
        return store_parts(self, table, key, (bay_str){keys, number % 3}, 1 + number % 3, on_answer,
                           out);
    default:
        return store_get(self, table, key, on_answer, out);
    }
}

/* Whatever is asked, this store answers as the one in memory does. (In memory the test compares two
 * of a kind: that they do not depend on chance.) */
static void every_store_answers_alike(void **state)
{
    store_rig *rig = *state;
    enum { ROUNDS = 150, EACH = 40 };
    store_options options = {.rows = 16, .total_bytes = 250};
    reopen_with(rig, options);
    store_rig *other = rig_new(false);
    other->options = rig->options;
    rig_open(other);
    static answer a[EACH];
    static answer b[EACH];
    int seen[ERR_COUNT] = {0};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        rig->now_ms = other->now_ms = RIG_NOW + round * 3;
        for (uint32_t i = 0; i < EACH; i++) {
            random_state = round * EACH + i;
            bay_err first = random_step(rig->store, rig->now_ms, &a[i]);
            random_state = round * EACH + i;
            assert_int_equal(random_step(other->store, other->now_ms, &b[i]), first);
            assert_int_equal(first, BAY_OK);
        }
        rig_turn_until(rig, a[EACH - 1].calls == 1);
        rig_turn_until(other, b[EACH - 1].calls == 1);
        for (uint32_t i = 0; i < EACH; i++) {
            seen[a[i].err]++;
            assert_int_equal(a[i].err, b[i].err);
            assert_int_equal(a[i].version, b[i].version);
            assert_int_equal(a[i].has_more, b[i].has_more);
            assert_int_equal(a[i].count, b[i].count);
            assert_int_equal(a[i].last_version, b[i].last_version);
            assert_int_equal(a[i].expires_at_ms, b[i].expires_at_ms);
            assert_true(str_eq(buf_view(&a[i].text), buf_view(&b[i].text)));
            assert_int_equal(a[i].held_rows, b[i].held_rows);
            assert_int_equal(a[i].held_bytes, b[i].held_bytes);
            answer_clear(&a[i]);
            answer_clear(&b[i]);
        }
    }
    /* It met everything there is to meet. */
    assert_true(seen[BAY_OK] > 100 && seen[BAY_ERR_NOT_FOUND] > 20 && seen[BAY_ERR_DUPLICATE] > 20);
    assert_true(seen[BAY_ERR_STATE] > 20 && seen[BAY_ERR_LIMIT] > 20 && seen[BAY_ERR_BUSY] > 20);
    rig_free(other);
}

int main(void)
{
    const struct CMUnitTest in_memory[] = {
        cmocka_unit_test_setup_teardown(every_store_answers_alike, rig_setup_memory, rig_teardown)};
    const struct CMUnitTest in_sqlite[] = {
        cmocka_unit_test_setup_teardown(every_store_answers_alike, rig_setup_sqlite, rig_teardown)};
    int failures = cmocka_run_group_tests_name("memory", in_memory, NULL, NULL);
    if (RIG_HAS_SQLITE) {
        failures += cmocka_run_group_tests_name("sqlite", in_sqlite, NULL, NULL);
    }
    return failures;
}
