/* Every store keeps the same promises: each case runs in memory and on SQLite. */
#include "support/store_rig.h"

#include "base/str.h"
#include "support/failing_memory.h"

#define T STR("t")

/* --- the start -------------------------------------------------------------------------------- */

static void what_is_out_of_bounds_is_refused_at_the_start(void **state)
{
    store_rig *rig = *state;
    store *self = rig->store;
    answer a = {0};
    static char many[STORE_VALUE_BYTES + 1];
    bay_str none = {0};
    bay_str long_table = {many, STORE_TABLE_BYTES + 1};
    bay_str long_key = {many, STORE_KEY_BYTES + 1};
    bay_str long_owner = {many, STORE_OWNER_BYTES + 1};
    bay_str large = {many, sizeof(many)};
    bay_str k = STR("k");
    assert_int_equal(store_get(self, none, k, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_get(self, long_table, k, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_get(self, T, none, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_get(self, T, long_key, on_answer, &a), BAY_ERR_INVALID);
    store_put_request put = {.table = T, .key = k, .value = large};
    assert_int_equal(store_put(self, &put, on_answer, &a), BAY_ERR_LIMIT);
    put.value.len--;
    put.key = none;
    assert_int_equal(store_put(self, &put, on_answer, &a), BAY_ERR_INVALID);
    store_part part = {.name = k, .value = large};
    put = (store_put_request){.table = T, .key = k, .parts = &part, .part_count = 1};
    assert_int_equal(store_put(self, &put, on_answer, &a), BAY_ERR_LIMIT);
    part = (store_part){.name = {many, STORE_PART_BYTES + 1}};
    assert_int_equal(store_put(self, &put, on_answer, &a), BAY_ERR_INVALID);
    part.name = none;
    assert_int_equal(store_put(self, &put, on_answer, &a), BAY_ERR_INVALID);
    put.part_count = STORE_PUT_PARTS + 1;
    assert_int_equal(store_put(self, &put, on_answer, &a), BAY_ERR_INVALID);
    put = (store_put_request){.table = T, .key = k, .dropped = &none, .dropped_count = 1};
    assert_int_equal(store_put(self, &put, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_parts(self, T, none, none, 1, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_parts(self, T, k, none, 0, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(
        store_parts(self, T, k, (bay_str){many, STORE_PART_BYTES + 1}, 1, on_answer, &a),
        BAY_ERR_INVALID);
    assert_int_equal(store_remove(self, T, k, STORE_ABSENT, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_remove(self, T, none, STORE_ANY, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_scan(self, none, none, none, 1, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_scan(self, T, long_key, none, 1, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_scan(self, T, none, long_key, 1, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_scan(self, T, none, none, 0, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_scan(self, T, none, none, STORE_READ_ROWS + 1, on_answer, &a),
                     BAY_ERR_INVALID);
    assert_int_equal(store_claim(self, T, k, none, 1, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_claim(self, T, k, long_owner, 1, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_claim(self, T, k, k, 0, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_renew(self, T, k, k, 0, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_release(self, T, none, k, on_answer, &a), BAY_ERR_INVALID);
    store_append_request append = {.stream = T, .value = large};
    assert_int_equal(store_append(self, &append, on_answer, &a), BAY_ERR_LIMIT);
    append = (store_append_request){.stream = T, .value = STR("abc"), .keep_bytes = 2};
    assert_int_equal(store_append(self, &append, on_answer, &a), BAY_ERR_LIMIT);
    append = (store_append_request){.stream = none, .value = k};
    assert_int_equal(store_append(self, &append, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_read(self, long_table, 0, 1, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_read(self, T, 0, 0, on_answer, &a), BAY_ERR_INVALID);
    assert_int_equal(store_read(self, T, 0, STORE_READ_ROWS + 1, on_answer, &a), BAY_ERR_INVALID);
    answer last = {0};
    assert_int_equal(ask(rig, &last, get, T, k), BAY_ERR_NOT_FOUND);
    assert_int_equal(a.calls, 0); /* a refusal is all that comes of it */
    answer_clear(&last);
}

static void too_many_at_once_are_refused_until_some_are_done(void **state)
{
    store_rig *rig = *state;
    reopen_with(rig, (store_options){.pending = 3});
    answer a[4] = {0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(store_get(rig->store, T, STR("k"), on_answer, &a[i]), BAY_OK);
    }
    assert_int_equal(store_get(rig->store, T, STR("k"), on_answer, &a[3]), BAY_ERR_BUSY);
    rig_turn_until(rig, a[2].calls == 1);
    assert_int_equal(a[0].calls + a[1].calls + a[3].calls, 2);
    assert_int_equal(ask(rig, &a[3], get, T, STR("k")), BAY_ERR_NOT_FOUND);

    reopen_with(rig, (store_options){.pending_bytes = 100});
    static char value[100];
    store_put_request put = {.table = T, .key = STR("k"), .value = {value, sizeof(value)}};
    for (int i = 0; i < 4; i++) {
        answer_clear(&a[i]);
    }
    /* One larger than all that may wait is taken when nothing waits. */
    assert_int_equal(store_put(rig->store, &put, on_answer, &a[0]), BAY_OK);
    assert_int_equal(store_get(rig->store, T, STR("k"), on_answer, &a[1]), BAY_ERR_BUSY);
    rig_turn_until(rig, a[0].calls == 1);
    put.value.len = 96;
    assert_int_equal(store_put(rig->store, &put, on_answer, &a[1]), BAY_OK);
    assert_int_equal(store_get(rig->store, T, STR("k"), on_answer, &a[2]), BAY_OK);
    assert_int_equal(store_get(rig->store, T, STR("k"), on_answer, &a[3]), BAY_ERR_BUSY);
    rig_turn_until(rig, a[2].calls == 1);
    for (int i = 0; i < 4; i++) {
        answer_clear(&a[i]);
    }
}

static void operations_complete_in_the_order_of_their_start(void **state)
{
    store_rig *rig = *state;
    answer a[6] = {0};
    int order = 0;
    for (int i = 0; i < 6; i++) {
        a[i].order = &order;
    }
    store_put_request put = {.table = T, .key = STR("k"), .value = STR("1"), .expected = STORE_ANY};
    char text[] = "2"; /* inputs are copied */
    assert_int_equal(store_get(rig->store, T, STR("k"), on_answer, &a[0]), BAY_OK);
    assert_int_equal(store_put(rig->store, &put, on_answer, &a[1]), BAY_OK);
    assert_int_equal(store_get(rig->store, T, STR("k"), on_answer, &a[2]), BAY_OK);
    put.value.at = text;
    assert_int_equal(store_put(rig->store, &put, on_answer, &a[3]), BAY_OK);
    text[0] = '3';
    assert_int_equal(store_get(rig->store, T, STR("k"), on_answer, &a[4]), BAY_OK);
    assert_int_equal(store_remove(rig->store, T, STR("k"), STORE_ANY, on_answer, &a[5]), BAY_OK);
    assert_int_equal(order, 0);
    rig_turn_until(rig, order == 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(a[i].place, i);
        assert_int_equal(a[i].calls, 1);
        assert_int_equal(a[i].err, i == 0 ? BAY_ERR_NOT_FOUND : BAY_OK);
    }
    assert_true(answer_is(&a[2], "k=1 "));
    assert_true(answer_is(&a[4], "k=2 "));
    for (int i = 0; i < 6; i++) {
        answer_clear(&a[i]);
    }
}

/* --- rows ------------------------------------------------------------------------------------- */

static void what_is_not_there_is_not_found(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    assert_int_equal(ask(rig, &a, get, T, STR("k")), BAY_ERR_NOT_FOUND);
    assert_int_equal(a.count, 0);
    assert_int_equal(ask(rig, &a, remove, T, STR("k"), STORE_ANY), BAY_ERR_NOT_FOUND);
    assert_int_equal(ask(rig, &a, remove, T, STR("k"), 7), BAY_ERR_STATE);
    assert_int_equal(a.version, 0);
    assert_int_equal(rig_put(rig, &a, "k", "v", 7, 0), BAY_ERR_STATE);
    assert_int_equal(a.version, 0);
    rig_set(rig, "k", "v");
    assert_int_equal(ask(rig, &a, get, STR("other"), STR("k")), BAY_ERR_NOT_FOUND);
    assert_int_equal(ask(rig, &a, get, T, STR("kk")), BAY_ERR_NOT_FOUND);
    answer_clear(&a);
}

static void a_put_holds_to_what_was_expected(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    assert_int_equal(rig_put(rig, &a, "k", "one", STORE_ABSENT, 0), BAY_OK);
    uint64_t one = a.version;
    assert_true(one > 0);
    assert_int_equal(rig_put(rig, &a, "k", "two", STORE_ABSENT, 0), BAY_ERR_DUPLICATE);
    assert_int_equal(a.version, one);
    assert_int_equal(rig_put(rig, &a, "k", "two", one + 1, 0), BAY_ERR_STATE);
    assert_int_equal(a.version, one);
    assert_int_equal(ask(rig, &a, get, T, STR("k")), BAY_OK);
    assert_true(answer_is(&a, "k=one "));
    assert_int_equal(a.version, one);
    assert_int_equal(rig_put(rig, &a, "k", "two", one, 0), BAY_OK);
    uint64_t two = a.version;
    assert_true(two > one);
    assert_int_equal(rig_put(rig, &a, "k", "lost", one, 0), BAY_ERR_STATE);
    assert_int_equal(a.version, two);
    assert_int_equal(ask(rig, &a, remove, T, STR("k"), one), BAY_ERR_STATE);
    assert_int_equal(a.version, two);
    assert_int_equal(ask(rig, &a, remove, T, STR("k"), two), BAY_OK);
    assert_int_equal(a.held_rows, 0);
    assert_int_equal(a.held_bytes, 0);
    /* What comes after has no version that was used before. */
    assert_true(rig_set(rig, "k", "three") > two);
    assert_int_equal(rig_put(rig, &a, "k", "lost", two, 0), BAY_ERR_STATE);
    answer_clear(&a);
}

static void keys_and_values_are_opaque_bytes(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    static char key[STORE_KEY_BYTES];
    static char value[STORE_VALUE_BYTES];
    for (size_t i = 0; i < sizeof(key); i++) {
        key[i] = (char)(i * 7);
    }
    for (size_t i = 0; i < sizeof(value); i++) {
        value[i] = (char)(i * 31 >> 3);
    }
    static const size_t sizes[] = {0, 1, 4096, sizeof(value), 5, 0};
    bay_str table = {"\0\xff'\"", 4};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        store_put_request put = {.table = table,
                                 .key = {key, sizeof(key)},
                                 .value = {sizes[i] > 0 ? value : NULL, sizes[i]},
                                 .expected = STORE_ANY};
        assert_int_equal(ask(rig, &a, put, &put), BAY_OK);
        assert_int_equal(a.held_rows, 1);
        assert_int_equal(a.held_bytes, 4 + sizeof(key) + sizes[i]);
        assert_int_equal(ask(rig, &a, get, table, (bay_str){key, sizeof(key)}), BAY_OK);
        assert_int_equal(a.text.len, sizeof(key) + sizes[i] + 2);
        assert_memory_equal(a.text.at, key, sizeof(key));
        assert_memory_equal(a.text.at + sizeof(key) + 1, value, sizes[i]);
    }
    answer_clear(&a);
}

/* --- expiry ----------------------------------------------------------------------------------- */

static void an_expired_row_is_gone_at_that_millisecond(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    assert_int_equal(rig_put(rig, &a, "k", "v", STORE_ABSENT, RIG_NOW + 100), BAY_OK);
    uint64_t version = a.version;
    assert_int_equal(rig_put(rig, &a, "l", "w", STORE_ABSENT, 0), BAY_OK);
    rig->now_ms += 99;
    assert_int_equal(ask(rig, &a, get, T, STR("k")), BAY_OK);
    assert_int_equal(a.expires_at_ms, RIG_NOW + 100);
    rig->now_ms += 1;
    assert_int_equal(ask(rig, &a, get, T, STR("k")), BAY_ERR_NOT_FOUND);
    assert_int_equal(ask(rig, &a, scan, T, STR(""), STR(""), 10), BAY_OK);
    assert_true(answer_is(&a, "l=w "));
    assert_int_equal(ask(rig, &a, remove, T, STR("k"), STORE_ANY), BAY_ERR_NOT_FOUND);
    assert_int_equal(ask(rig, &a, remove, T, STR("k"), version), BAY_ERR_STATE);
    assert_int_equal(rig_put(rig, &a, "k", "x", version, 0), BAY_ERR_STATE);
    assert_int_equal(rig_put(rig, &a, "k", "x", STORE_ABSENT, 0), BAY_OK);
    assert_true(a.version > version);
    assert_int_equal(a.held_rows, 2); /* it took the place of what had expired */
    rig->now_ms += 1000000;
    assert_int_equal(ask(rig, &a, get, T, STR("k")), BAY_OK);
    assert_int_equal(a.expires_at_ms, 0);
    /* An expiry is set anew by each put, and may lie beyond all clocks. */
    assert_int_equal(rig_put(rig, &a, "k", "y", STORE_ANY, UINT64_MAX), BAY_OK);
    assert_int_equal(ask(rig, &a, get, T, STR("k")), BAY_OK);
    assert_int_equal(a.expires_at_ms, INT64_MAX);
    answer_clear(&a);
}

static void what_expired_is_swept(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    reopen_with(rig, (store_options){.sweep_ms = 1});
    for (int i = 0; i < 1500; i++) { /* more than one sweep takes */
        char key[16];
        snprintf(key, sizeof(key), "%04d", i);
        store_put_request put = {.table = T,
                                 .key = {key, 4},
                                 .expected = STORE_ABSENT,
                                 .expires_at_ms = RIG_NOW + 1 + (uint64_t)(i * 7 % 100),
                                 .is_relaxed = true};
        assert_int_equal(ask(rig, &a, put, &put), BAY_OK);
    }
    assert_int_equal(ask(rig, &a, claim, T, STR("lease"), STR("me"), 50), BAY_OK);
    store_append_request append = {.stream = T, .value = STR("e"), .expires_at_ms = RIG_NOW + 50};
    assert_int_equal(ask(rig, &a, append, &append), BAY_OK);
    rig_set(rig, "stays", "v");
    assert_int_equal(ask(rig, &a, get, T, STR("stays")), BAY_OK);
    assert_int_equal(a.held_rows, 1503);
    rig->now_ms += 100;
    for (int turns = 0; turns < RIG_TURNS && a.held_rows > 1; turns++) {
        loop_turn(rig->loop, 5);
        assert_int_equal(ask(rig, &a, get, T, STR("stays")), BAY_OK);
    }
    assert_int_equal(a.held_rows, 1);
    assert_int_equal(a.held_bytes, 7);
    answer_clear(&a);
}

/* --- scans ------------------------------------------------------------------------------------ */

static void a_scan_goes_by_the_bytes_of_the_keys(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    static const bay_str keys[] = {/* in order */
                                   {"\0", 1}, {"\0\0", 2}, {"a", 1},    {"a\0", 2},  {"a\xff", 2},
                                   {"ab", 2}, {"b", 1},    {"\x80", 1}, {"\xff", 1}, {"\xff\0", 2}};
    static const size_t order[] = {7, 2, 9, 0, 5, 3, 8, 1, 6, 4};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        char value = (char)('0' + order[i]);
        store_put_request put = {
            .table = T, .key = keys[order[i]], .value = {&value, 1}, .expected = STORE_ABSENT};
        assert_int_equal(ask(rig, &a, put, &put), BAY_OK);
        put.table = STR("s"); /* neighbours on both sides */
        assert_int_equal(ask(rig, &a, put, &put), BAY_OK);
        put.table = STR("t\0x");
        assert_int_equal(ask(rig, &a, put, &put), BAY_OK);
    }
    /* One after the other, each from where the one before ended. */
    bay_str after = {0};
    static const size_t sorted[] = {0, 1, 2, 3, 5, 4, 6, 7, 8, 9}; /* "ab" is before "a\xff" */
    for (size_t i = 0; i < ARRAY_LEN(sorted); i++) {
        assert_int_equal(ask(rig, &a, scan, T, STR(""), after, 1), BAY_OK);
        assert_int_equal(a.count, 1);
        assert_int_equal(a.has_more, i + 1 < ARRAY_LEN(sorted));
        assert_int_equal(a.text.at[a.text.len - 2], (char)('0' + sorted[i]));
        after = keys[sorted[i]];
    }
    assert_int_equal(ask(rig, &a, scan, T, STR(""), after, 1), BAY_OK);
    assert_int_equal(a.count, 0);
    assert_false(a.has_more);
    answer_clear(&a);
}

static void a_scan_keeps_to_its_prefix_and_its_start(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    static const char *const keys[] = {"a", "b", "b.1", "b.2", "b.3", "b0", "c"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        rig_set(rig, keys[i], "v");
    }
    static const struct {
        const char *prefix;
        const char *after;
        size_t limit;
        const char *found;
        bool has_more;
    } cases[] = {
        {"b.", "", 10, "b.1=v b.2=v b.3=v ", false},
        {"b.", "", 3, "b.1=v b.2=v b.3=v ", false},
        {"b.", "", 2, "b.1=v b.2=v ", true},
        {"b.", "b.1", 10, "b.2=v b.3=v ", false},
        {"b.", "b.11", 10, "b.2=v b.3=v ", false},
        {"b.", "b.3", 10, "", false},
        {"b.", "c", 10, "", false},
        {"b.", "a", 10, "b.1=v b.2=v b.3=v ", false},
        {"b.", "b.", 10, "b.1=v b.2=v b.3=v ", false},
        {"b", "", 1, "b=v ", true},
        {"b", "b", 10, "b.1=v b.2=v b.3=v b0=v ", false},
        {"x", "", 10, "", false},
        {"", "b0", 10, "c=v ", false},
        {"", "c", 10, "", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(
            ask(rig, &a, scan, T, str_of(cases[i].prefix), str_of(cases[i].after), cases[i].limit),
            BAY_OK);
        assert_true(answer_is(&a, cases[i].found));
        assert_int_equal(a.has_more, cases[i].has_more);
    }
    answer_clear(&a);
}

static void a_scan_is_cut_when_it_becomes_large(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    static char value[STORE_VALUE_BYTES];
    for (int i = 0; i < 5; i++) {
        char key = (char)('a' + i);
        store_put_request put = {
            .table = T, .key = {&key, 1}, .value = {value, sizeof(value)}, .is_relaxed = true};
        assert_int_equal(ask(rig, &a, put, &put), BAY_OK);
    }
    assert_int_equal(ask(rig, &a, scan, T, STR(""), STR(""), 10), BAY_OK);
    assert_int_equal(a.count, 3); /* 4 MiB of values and the keys are too much */
    assert_true(a.has_more);
    assert_int_equal(ask(rig, &a, scan, T, STR(""), STR("c"), 10), BAY_OK);
    assert_int_equal(a.count, 2);
    assert_false(a.has_more);
    answer_clear(&a);
}

/* --- leases ----------------------------------------------------------------------------------- */

static void a_lease_has_one_owner(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    bay_str k = STR("work");
    assert_int_equal(ask(rig, &a, renew, T, k, STR("one"), 100), BAY_ERR_STATE);
    assert_int_equal(ask(rig, &a, release, T, k, STR("one")), BAY_ERR_STATE);
    assert_int_equal(ask(rig, &a, claim, T, k, STR("one"), 100), BAY_OK);
    uint64_t token = a.version;
    assert_true(token > 0);
    assert_int_equal(a.expires_at_ms, RIG_NOW + 100);
    assert_true(answer_is(&a, "work=one "));
    assert_int_equal(ask(rig, &a, claim, T, k, STR("two"), 100), BAY_ERR_BUSY);
    assert_true(answer_is(&a, "work=one "));
    assert_int_equal(a.expires_at_ms, RIG_NOW + 100);
    assert_int_equal(a.version, token);
    assert_int_equal(ask(rig, &a, renew, T, k, STR("two"), 100), BAY_ERR_STATE);
    assert_int_equal(ask(rig, &a, release, T, k, STR("two")), BAY_ERR_STATE);
    assert_int_equal(ask(rig, &a, release, T, k, STR("on")), BAY_ERR_STATE);
    rig->now_ms += 60;
    assert_int_equal(ask(rig, &a, renew, T, k, STR("one"), 100), BAY_OK);
    assert_int_equal(a.expires_at_ms, RIG_NOW + 160);
    assert_int_equal(a.version, token);
    assert_int_equal(ask(rig, &a, claim, T, k, STR("one"), 200), BAY_OK); /* its own: longer */
    assert_int_equal(a.version, token);
    assert_int_equal(a.expires_at_ms, RIG_NOW + 260);
    assert_int_equal(ask(rig, &a, release, T, k, STR("one")), BAY_OK);
    assert_int_equal(a.held_rows, 0);
    assert_int_equal(ask(rig, &a, claim, T, k, STR("two"), 100), BAY_OK);
    assert_true(a.version > token);
    /* Rows and leases of one name do not meet. */
    assert_int_equal(ask(rig, &a, get, T, k), BAY_ERR_NOT_FOUND);
    rig_set(rig, "work", "row");
    assert_int_equal(ask(rig, &a, release, T, k, STR("two")), BAY_OK);
    assert_int_equal(ask(rig, &a, get, T, k), BAY_OK);
    assert_true(answer_is(&a, "work=row "));
    answer_clear(&a);
}

static void a_version_is_never_given_twice(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    assert_int_equal(ask(rig, &a, claim, T, STR("work"), STR("one"), 100), BAY_OK);
    uint64_t last = a.version;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rig_put(rig, &a, "k", "v", STORE_ANY, 0), BAY_OK);
        assert_true(a.version > last);
        last = a.version;
        assert_int_equal(ask(rig, &a, renew, T, STR("work"), STR("one"), 100), BAY_OK);
        assert_int_equal(rig_append(rig, &a, "s", "e", 1, 0), BAY_OK);
        assert_true(a.version > last);
        last = a.version;
        assert_int_equal(rig_put(rig, &a, "k", "v", STORE_ABSENT, 0), BAY_ERR_DUPLICATE);
        assert_int_equal(ask(rig, &a, remove, T, STR("k"), STORE_ANY), BAY_OK);
    }
    answer_clear(&a);
}

static void a_lease_that_expired_is_anybodys(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    bay_str k = STR("work");
    assert_int_equal(ask(rig, &a, claim, T, k, STR("one"), 100), BAY_OK);
    uint64_t token = a.version;
    rig->now_ms += 99;
    assert_int_equal(ask(rig, &a, claim, T, k, STR("two"), 100), BAY_ERR_BUSY);
    rig->now_ms += 1;
    assert_int_equal(ask(rig, &a, renew, T, k, STR("one"), 100), BAY_ERR_STATE);
    assert_int_equal(a.count, 0);
    assert_int_equal(ask(rig, &a, release, T, k, STR("one")), BAY_ERR_STATE);
    assert_int_equal(ask(rig, &a, claim, T, k, STR("two"), UINT64_MAX), BAY_OK);
    assert_true(a.version > token);
    assert_int_equal(a.expires_at_ms, INT64_MAX);
    assert_int_equal(ask(rig, &a, renew, T, k, STR("one"), 100), BAY_ERR_STATE);
    assert_true(answer_is(&a, "work=two "));
    answer_clear(&a);
}

/* --- streams ---------------------------------------------------------------------------------- */

static void events_come_in_order_and_pages(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    uint64_t sequences[6];
    assert_int_equal(ask(rig, &a, read, STR("s"), 0, 10), BAY_OK);
    assert_int_equal(a.count, 0);
    for (int i = 0; i < 6; i++) {
        char value[] = {(char)('a' + i), '\0'};
        assert_int_equal(rig_append(rig, &a, "s", value, 0, 0), BAY_OK);
        sequences[i] = a.version;
        assert_true(i == 0 || sequences[i] > sequences[i - 1]);
        assert_int_equal(rig_append(rig, &a, i % 2 == 0 ? "r" : "s\x01", "other", 0, 0), BAY_OK);
    }
    assert_int_equal(ask(rig, &a, read, STR("s"), 0, 6), BAY_OK);
    assert_true(answer_is(&a, "=a =b =c =d =e =f "));
    assert_false(a.has_more);
    assert_int_equal(a.last_version, sequences[5]);
    assert_int_equal(ask(rig, &a, read, STR("s"), 0, 4), BAY_OK);
    assert_true(answer_is(&a, "=a =b =c =d "));
    assert_true(a.has_more);
    assert_int_equal(ask(rig, &a, read, STR("s"), sequences[3], 4), BAY_OK);
    assert_true(answer_is(&a, "=e =f "));
    assert_int_equal(ask(rig, &a, read, STR("s"), sequences[2] - 1, 1), BAY_OK);
    assert_true(answer_is(&a, "=c ")); /* it is still there: nothing was lost */
    assert_int_equal(ask(rig, &a, read, STR("s"), sequences[5], 4), BAY_OK);
    assert_int_equal(a.count, 0);
    assert_int_equal(ask(rig, &a, read, STR("s"), UINT64_MAX, 4), BAY_OK);
    assert_int_equal(a.count, 0);
    answer_clear(&a);
}

static void the_oldest_events_go(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    for (int i = 0; i < 6; i++) {
        char value[] = {(char)('a' + i), '\0'};
        assert_int_equal(rig_append(rig, &a, "s", value, 3, 0), BAY_OK);
    }
    assert_int_equal(a.held_rows, 3);
    assert_int_equal(ask(rig, &a, read, STR("s"), 0, 10), BAY_OK);
    assert_true(answer_is(&a, "=d =e =f "));
    assert_int_equal(rig_append(rig, &a, "s", "ghij", 0, 6), BAY_OK);
    assert_int_equal(ask(rig, &a, read, STR("s"), 0, 10), BAY_OK);
    assert_true(answer_is(&a, "=e =f =ghij "));
    assert_int_equal(rig_append(rig, &a, "s", "klmnop", 0, 6), BAY_OK);
    assert_int_equal(ask(rig, &a, read, STR("s"), 0, 10), BAY_OK);
    assert_true(answer_is(&a, "=klmnop "));
    assert_int_equal(rig_append(rig, &a, "s", "", 1, 0), BAY_OK);
    assert_int_equal(ask(rig, &a, read, STR("s"), 0, 10), BAY_OK);
    assert_true(answer_is(&a, "= "));
    assert_int_equal(a.held_rows, 1);
    answer_clear(&a);
}

static void expired_events_are_not_read(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    static const uint64_t after_ms[] = {10, 5, 0, 20}; /* 0: never */
    for (size_t i = 0; i < ARRAY_LEN(after_ms); i++) {
        char value = (char)('a' + i);
        store_append_request append = {.stream = STR("s"),
                                       .value = {&value, 1},
                                       .expires_at_ms =
                                           after_ms[i] > 0 ? RIG_NOW + after_ms[i] : 0};
        assert_int_equal(ask(rig, &a, append, &append), BAY_OK);
    }
    rig->now_ms += 5;
    assert_int_equal(ask(rig, &a, read, STR("s"), 0, 10), BAY_OK);
    assert_true(answer_is(&a, "=a =c =d "));
    rig->now_ms += 5;
    assert_int_equal(ask(rig, &a, read, STR("s"), 0, 1), BAY_OK);
    assert_true(answer_is(&a, "=c "));
    assert_true(a.has_more);
    rig->now_ms += 10;
    assert_int_equal(ask(rig, &a, read, STR("s"), 0, 1), BAY_OK);
    assert_true(answer_is(&a, "=c "));
    assert_false(a.has_more);
    answer_clear(&a);
}

/* --- bounds ----------------------------------------------------------------------------------- */

static void a_full_store_says_so_until_something_goes(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    reopen_with(rig, (store_options){.rows = 3});
    rig_set(rig, "a", "1");
    assert_int_equal(rig_put(rig, &a, "b", "2", STORE_ANY, RIG_NOW + 10), BAY_OK);
    assert_int_equal(ask(rig, &a, claim, T, STR("work"), STR("me"), 1000), BAY_OK);
    assert_int_equal(rig_put(rig, &a, "c", "3", STORE_ANY, 0), BAY_ERR_LIMIT);
    assert_int_equal(a.version, 0);
    assert_int_equal(a.held_rows, 3);
    assert_int_equal(ask(rig, &a, claim, T, STR("more"), STR("me"), 1000), BAY_ERR_LIMIT);
    assert_int_equal(rig_append(rig, &a, "s", "e", 0, 0), BAY_ERR_LIMIT);
    assert_int_equal(ask(rig, &a, get, T, STR("c")), BAY_ERR_NOT_FOUND);
    assert_int_equal(rig_put(rig, &a, "a", "10", STORE_ANY, 0), BAY_OK); /* takes its own place */
    assert_int_equal(ask(rig, &a, renew, T, STR("work"), STR("me"), 1000), BAY_OK);
    rig->now_ms += 10; /* "b" makes room */
    assert_int_equal(rig_append(rig, &a, "s", "e", 0, 0), BAY_OK);
    assert_int_equal(rig_append(rig, &a, "s", "f", 0, 0), BAY_ERR_LIMIT);
    assert_int_equal(rig_append(rig, &a, "s", "g", 1, 0), BAY_OK); /* trims first */
    assert_int_equal(a.held_rows, 3);
    assert_int_equal(ask(rig, &a, remove, T, STR("a"), STORE_ANY), BAY_OK);
    assert_int_equal(rig_put(rig, &a, "c", "3", STORE_ANY, 0), BAY_OK);
    answer_clear(&a);
}

static void bytes_are_counted(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    reopen_with(rig, (store_options){.total_bytes = 20});
    assert_int_equal(rig_put(rig, &a, "k", "0123456789", STORE_ANY, RIG_NOW + 10), BAY_OK);
    assert_int_equal(a.held_bytes, 12); /* table, key, value */
    assert_int_equal(rig_put(rig, &a, "l", "0123456", STORE_ANY, 0), BAY_ERR_LIMIT);
    assert_int_equal(rig_put(rig, &a, "l", "012345", STORE_ANY, 0), BAY_OK);
    assert_int_equal(a.held_bytes, 20);
    assert_int_equal(rig_put(rig, &a, "l", "0123456", STORE_ANY, 0), BAY_ERR_LIMIT);
    assert_int_equal(ask(rig, &a, get, T, STR("l")), BAY_OK);
    assert_true(answer_is(&a, "l=012345 "));
    assert_int_equal(rig_put(rig, &a, "l", "01", STORE_ANY, 0), BAY_OK);
    assert_int_equal(a.held_bytes, 16);
    rig->now_ms += 10;
    /* What expired may be what is replaced. */
    assert_int_equal(rig_put(rig, &a, "k", "0123456789abcd", STORE_ANY, 0), BAY_OK);
    assert_int_equal(a.held_bytes, 20);
    assert_int_equal(a.held_rows, 2);
    answer_clear(&a);
}

/* --- closing ---------------------------------------------------------------------------------- */

typedef struct closing {
    store_rig *rig;
    answer *answers;
    int count;
    int seen;
    bool is_free;
} closing;

static void free_when_closed(void *user)
{
    closing *self = user;
    for (int i = 0; i < self->count; i++) {
        self->seen += self->answers[i].calls;
    }
    store_free(self->rig->store); /* also inside this call */
    self->rig->store = NULL;
    self->is_free = true;
}

static void closing_cancels_what_is_open_once_and_in_order(void **state)
{
    store_rig *rig = *state;
    enum { COUNT = 60 };
    answer a[COUNT] = {0};
    int order = 0;
    for (int i = 0; i < COUNT; i++) {
        store_put_request put = {.table = T, .key = STR("k"), .expected = STORE_ANY};
        a[i].order = &order;
        assert_int_equal(i % 2 == 0
                             ? store_put(rig->store, &put, on_answer, &a[i])
                             : store_scan(rig->store, T, STR(""), STR(""), 10, on_answer, &a[i]),
                         BAY_OK);
    }
    closing end = {.rig = rig, .answers = a, .count = COUNT};
    store_close(rig->store, free_when_closed, &end);
    assert_int_equal(order, 0);
    answer late = {0};
    assert_int_equal(store_get(rig->store, T, STR("k"), on_answer, &late), BAY_ERR_CLOSED);
    store_close(rig->store, rig_on_closed, rig); /* the first one counts */
    rig_turn_until(rig, end.is_free);
    assert_int_equal(end.seen, COUNT);
    assert_int_equal(late.calls + rig->closed, 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(a[i].calls, 1);
        assert_int_equal(a[i].place, i);
        assert_int_equal(a[i].err, BAY_ERR_CANCELLED);
        assert_int_equal(a[i].count, 0);
        answer_clear(&a[i]);
    }
}

typedef struct closer {
    answer answer; /* first: what on_answer fills in */
    store_rig *rig;
    answer *late;
    bay_err late_err;
} closer;

static void close_from_a_completion(void *user, const store_result *result)
{
    closer *self = user;
    on_answer(&self->answer, result);
    store_close(self->rig->store, rig_on_closed, self->rig);
    self->late_err = store_get(self->rig->store, T, STR("k"), on_answer, self->late);
}

static void a_completion_may_close(void **state)
{
    store_rig *rig = *state;
    answer late = {0};
    answer after = {0};
    closer self = {.rig = rig, .late = &late};
    assert_int_equal(store_get(rig->store, T, STR("k"), close_from_a_completion, &self), BAY_OK);
    assert_int_equal(store_get(rig->store, T, STR("k"), on_answer, &after), BAY_OK);
    rig_turn_until(rig, rig->closed == 1);
    assert_int_equal(self.answer.err, BAY_ERR_NOT_FOUND);
    assert_int_equal(after.calls, 1);
    assert_int_equal(after.err, BAY_ERR_CANCELLED);
    assert_int_equal(self.late_err, BAY_ERR_CLOSED);
    assert_int_equal(late.calls, 0);
    store_free(rig->store);
    rig->store = NULL;
    answer_clear(&self.answer);
    answer_clear(&after);
}

static void the_loop_waits_for_what_is_open(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    assert_int_equal(store_get(rig->store, T, STR("k"), on_answer, &a), BAY_OK);
    while (a.calls == 0) { /* without a time-out: it must hear of it */
        assert_true(loop_turn(rig->loop, -1));
    }
    store_close(rig->store, rig_on_closed, rig);
    loop_run(rig->loop); /* ends when nothing is left */
    assert_int_equal(rig->closed, 1);
    store_free(rig->store);
    rig->store = NULL;
    store_free(NULL);
    answer_clear(&a);
}

/* --- lack of memory --------------------------------------------------------------------------- */

static bay_err sweep_step(store_rig *rig, int step, answer *a)
{
    store_put_request put = {.table = T,
                             .key = STR("k"),
                             .value = STR("value"),
                             .expected = STORE_ANY,
                             .expires_at_ms = RIG_NOW + 1000};
    store_append_request append = {
        .stream = STR("s"), .value = STR("event"), .keep_events = 1, .expires_at_ms = RIG_NOW + 9};
    const store_part parts[] = {{STR_INIT("p"), STR_INIT("1")}, {STR_INIT("q"), STR_INIT("2")}};
    switch (step) {
    case 1:
        put.parts = parts;
        put.part_count = ARRAY_LEN(parts);
        return store_put(rig->store, &put, on_answer, a);
    case 0:
        return store_put(rig->store, &put, on_answer, a);
    case 9:
        return store_parts(rig->store, T, STR("k"), STR(""), 10, on_answer, a);
    case 2:
        return store_get(rig->store, T, STR("k"), on_answer, a);
    case 3:
        return store_claim(rig->store, T, STR("l"), STR("me"), 10, on_answer, a);
    case 4:
    case 5:
        return store_append(rig->store, &append, on_answer, a);
    case 6:
        return store_read(rig->store, STR("s"), 0, 1000, on_answer, a);
    case 7:
        return store_scan(rig->store, T, STR(""), STR(""), 1000, on_answer, a);
    default:
        return store_remove(rig->store, T, STR("k"), STORE_ANY, on_answer, a);
    }
}

/* Runs every kind of operation; what fails must fail for lack of memory and leave the totals true.
 */
static void sweep_once(store_rig *rig)
{
    bay_diag diag;
    bay_err err = rig_try_open(rig, &diag);
    if (err != BAY_OK) {
        assert_int_equal(err, BAY_ERR_NOMEM);
        rig->store = NULL;
        return;
    }
    uint64_t rows = 0;
    static const int order[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 8};
    static const int growth[] = {1, 0, 0, 1, 1, 0, 0, 0, -1, 0};
    bool is_there[4] = {false, false, false, false}; /* row, lease, event, parts */
    static const int kinds[] = {0, 0, -1, 1, 2, 2, -1, -1, 0, -1};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        int step = order[i];
        answer a = {0};
        err = sweep_step(rig, step, &a);
        if (err == BAY_OK) {
            rig_turn_until(rig, a.calls == 1);
            err = a.err;
            bool is_gone = err == BAY_ERR_NOT_FOUND && !is_there[0];
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM || is_gone);
            if (err == BAY_OK && kinds[step] >= 0) {
                is_there[kinds[step]] = growth[step] >= 0;
                is_there[3] = (is_there[3] || step == 1) && is_there[0];
            }
            rows = (uint64_t)is_there[0] + is_there[1] + is_there[2] + (is_there[3] ? 2 : 0);
            /* An append that failed may have trimmed already. */
            if (err == BAY_ERR_NOMEM && kinds[step] == 2 && a.held_rows < rows) {
                is_there[2] = false;
                rows--;
            }
            assert_true(a.held_rows == rows || (err != BAY_OK && a.held_rows == 0));
        } else {
            assert_int_equal(err, BAY_ERR_NOMEM);
            assert_int_equal(a.calls, 0);
        }
        answer_clear(&a);
    }
    rig_close(rig);
}

static void every_lack_of_memory_is_an_error(void **state)
{
    store_rig *rig = *state;
    rig_close(rig);
    loop_free(rig->loop);
    for (size_t at = 0; failing_memory_start(at); at++) {
        rig_remove_file(rig);
        rig->closed = 0;
        bay_err err = loop_new(&rig->loop);
        if (err == BAY_OK) {
            sweep_once(rig);
            loop_free(rig->loop);
        }
        failing_memory_check();
    }
    assert_int_equal(loop_new(&rig->loop), BAY_OK);
}

/* Every case, once for each store. */
#define CASES(X)                                                                                   \
    X(what_is_out_of_bounds_is_refused_at_the_start)                                               \
    X(too_many_at_once_are_refused_until_some_are_done)                                            \
    X(operations_complete_in_the_order_of_their_start)                                             \
    X(what_is_not_there_is_not_found)                                                              \
    X(a_put_holds_to_what_was_expected)                                                            \
    X(keys_and_values_are_opaque_bytes)                                                            \
    X(an_expired_row_is_gone_at_that_millisecond)                                                  \
    X(what_expired_is_swept)                                                                       \
    X(a_scan_goes_by_the_bytes_of_the_keys)                                                        \
    X(a_scan_keeps_to_its_prefix_and_its_start)                                                    \
    X(a_scan_is_cut_when_it_becomes_large)                                                         \
    X(a_lease_has_one_owner)                                                                       \
    X(a_version_is_never_given_twice)                                                              \
    X(a_lease_that_expired_is_anybodys)                                                            \
    X(events_come_in_order_and_pages)                                                              \
    X(the_oldest_events_go)                                                                        \
    X(expired_events_are_not_read)                                                                 \
    X(a_full_store_says_so_until_something_goes)                                                   \
    X(bytes_are_counted)                                                                           \
    X(closing_cancels_what_is_open_once_and_in_order)                                              \
    X(a_completion_may_close)                                                                      \
    X(the_loop_waits_for_what_is_open)                                                             \
    X(every_lack_of_memory_is_an_error)

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
