/* The map: its maximum, collisions and gaps against a naive model, lack of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/map.h"
#include "base/str.h"
#include "support/failing_memory.h"

enum { KEYS = 200 };

static char names[KEYS][8];

static int name_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < KEYS; i++) {
        snprintf(names[i], sizeof(names[i]), "key%zu", i);
    }
    return 0;
}

static void an_empty_map_answers_nothing(void **state)
{
    (void)state;
    map table;
    map_init(&table, 10);
    size_t cursor = 0;
    bay_str key;
    void *value;
    map_warm(&table, map_hash(&table, STR("a")));
    assert_null(map_get(&table, STR("a")));
    assert_null(map_remove(&table, STR("a")));
    assert_false(map_next(&table, &cursor, &key, &value));
    map_fini(&table);
    map_fini(&table); /* twice is harmless */
}

static void refuses_one_entry_over_the_maximum(void **state)
{
    (void)state;
    for (size_t max = 0; max < 30; max++) {
        map table;
        map_init(&table, max);
        for (size_t i = 0; i < max; i++) {
            map_warm(&table, map_hash(&table, str_of(names[i]))); /* changes nothing */
            assert_int_equal(map_put(&table, str_of(names[i]), names[i], NULL), BAY_OK);
        }
        size_t cap = table.cap;
        void *old = names[1];
        assert_int_equal(map_put(&table, STR("other"), names[0], &old), BAY_ERR_LIMIT);
        assert_ptr_equal(old, names[1]); /* untouched */
        assert_int_equal(table.cap, cap);
        assert_int_equal(table.len, max);
        assert_null(map_get(&table, STR("other")));
        if (max > 0) { /* replacing is no new entry */
            assert_int_equal(map_put(&table, str_of(names[0]), names[9], &old), BAY_OK);
            assert_ptr_equal(old, names[0]);
            assert_ptr_equal(map_get(&table, str_of(names[0])), names[9]);
        }
        map_fini(&table);
    }
}

static void keys_are_bytes(void **state)
{
    (void)state;
    map table;
    map_init(&table, 10);
    assert_int_equal(map_put(&table, STR("a\0b"), names[0], NULL), BAY_OK);
    assert_int_equal(map_put(&table, STR("a\0c"), names[1], NULL), BAY_OK);
    assert_int_equal(map_put(&table, (bay_str){NULL, 0}, names[2], NULL), BAY_OK);
    assert_ptr_equal(map_get(&table, STR("a\0b")), names[0]);
    assert_ptr_equal(map_get(&table, STR("a\0c")), names[1]);
    assert_ptr_equal(map_get(&table, STR("")), names[2]);
    assert_null(map_get(&table, STR("a")));
    map_fini(&table);
}

static void agrees_with_a_naive_model(void **state)
{
    (void)state;
    map table;
    map_init(&table, KEYS);
    table.seed = 1; /* the same run each time */
    char *model[KEYS] = {0};
    size_t count = 0;
    uint32_t random = 12345;
    for (int step = 0; step < 20000; step++) {
        random = random * 1664525 + 1013904223;
        size_t i = (random >> 8) % KEYS;
        bay_str key = str_of(names[i]);
        if ((random >> 28) < 8) {
            void *old = &table;
            char *value = names[(random >> 16) % KEYS];
            assert_int_equal(step % 2 == 0
                                 ? map_put(&table, key, value, &old)
                                 : map_put_hashed(&table, key, map_hash(&table, key), value, &old),
                             BAY_OK);
            assert_ptr_equal(old, model[i]);
            count += model[i] == NULL;
            model[i] = value;
        } else {
            void *removed = step % 2 == 0 ? map_remove(&table, key)
                                          : map_remove_hashed(&table, key, map_hash(&table, key));
            assert_ptr_equal(removed, model[i]);
            count -= model[i] != NULL;
            model[i] = NULL;
        }
        assert_int_equal(table.len, count);
        if (step % 100 == 0) {
            for (size_t j = 0; j < KEYS; j++) {
                bay_str name = str_of(names[j]);
                map_warm(&table, map_hash(&table, name));
                assert_ptr_equal(map_get(&table, name), model[j]);
                assert_ptr_equal(map_get_hashed(&table, name, map_hash(&table, name)), model[j]);
            }
        }
    }
    size_t cursor = 0;
    size_t seen = 0;
    bay_str key;
    void *value;
    while (map_next(&table, &cursor, &key, &value)) {
        assert_ptr_equal(map_get(&table, key), value);
        seen++;
    }
    assert_int_equal(seen, count);
    map_fini(&table);
}

static void survives_every_lack_of_memory(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        map table;
        map_init(&table, KEYS);
        size_t len = 0;
        for (size_t i = 0; i < KEYS; i++) {
            bay_err err = map_put(&table, str_of(names[i]), names[i], NULL);
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
            len += err == BAY_OK;
            if (err == BAY_ERR_NOMEM) { /* what is in stays, and may be replaced */
                assert_null(map_get(&table, str_of(names[i])));
                if (len > 0) {
                    assert_int_equal(map_put(&table, str_of(names[0]), names[0], NULL), BAY_OK);
                }
            }
        }
        assert_int_equal(table.len, len);
        for (size_t i = 0; i < len; i++) {
            assert_ptr_equal(map_get(&table, str_of(names[i])), names[i]);
        }
        map_fini(&table);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_answers_nothing),
        cmocka_unit_test(refuses_one_entry_over_the_maximum),
        cmocka_unit_test(keys_are_bytes),
        cmocka_unit_test(agrees_with_a_naive_model),
        cmocka_unit_test(survives_every_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, name_keys, NULL);
}
