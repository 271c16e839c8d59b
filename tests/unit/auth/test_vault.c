/* Rows of the vault: they open with the keys that sealed them, under their own name, and nowhere
 * else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <openssl/evp.h> /* not in a build without it: nothing is sealed there */

#include <cmocka.h>

#include "auth/vault.h"
#include "base/check.h"
#include "base/str.h"
#include "support/failing_memory.h"

static const vault_row ann = {STR_INIT("token:1:i:3:ann"), STR_INIT("mail"),
                              STR_INIT("{\"access\":\"canary\"}")};

static seal_ring *ring_of(const char *key)
{
    char bytes[SEAL_KEY_BYTES];
    seal_ring *self = NULL;
    memset(bytes, key[0], sizeof(bytes));
    assert_int_equal(seal_ring_new(&self), BAY_OK);
    assert_int_equal(seal_ring_add(self, (bay_str){bytes, sizeof(bytes)}), BAY_OK);
    return self;
}

static seal_ring *keys_of(const char *key)
{
    seal_ring *ring = ring_of(key);
    seal_ring *keys = NULL;
    assert_int_equal(vault_keys_new(ring, &keys), BAY_OK);
    seal_ring_free(ring);
    return keys;
}

static bay_err open_row(const seal_ring *keys, const char *name, bay_str value)
{
    buf plain;
    vault_row out;
    buf_init_secret(&plain, VAULT_PLAIN_BYTES);
    bay_err err = vault_open(keys, str_of(name), value, &plain, &out);
    if (err == BAY_OK) {
        assert_true(str_eq(out.identity, ann.identity));
        assert_true(str_eq(out.server, ann.server));
        assert_true(str_eq(out.record, ann.record));
    }
    buf_fini(&plain);
    return err;
}

static void what_opens_a_row(void **state)
{
    (void)state;
    seal_ring *keys = keys_of("a");
    seal_ring *others = keys_of("b");
    seal_ring *above = ring_of("a"); /* seals what clients are given */
    buf value;
    buf_init(&value, 1 << 16);
    assert_int_equal(vault_seal(keys, STR("n1"), &ann, &value), BAY_OK);
    assert_int_equal(str_find(buf_view(&value), '{'), value.len); /* nothing of it shows */
    assert_int_equal(open_row(keys, "n1", buf_view(&value)), BAY_OK);
    assert_int_equal(open_row(keys, "n2", buf_view(&value)), BAY_ERR_DENIED);
    assert_int_equal(open_row(others, "n1", buf_view(&value)), BAY_ERR_DENIED);
    assert_int_equal(open_row(above, "n1", buf_view(&value)), BAY_ERR_DENIED);
    for (size_t i = 0; i < value.len; i++) {
        char kept = value.at[i];
        value.at[i] = kept == 'A' ? 'B' : 'A';
        assert_int_equal(open_row(keys, "n1", buf_view(&value)), BAY_ERR_DENIED);
        assert_int_equal(open_row(keys, "n1", str_head(buf_view(&value), i)), BAY_ERR_DENIED);
        value.at[i] = kept;
    }
    /* what was sealed for something else, under the same keys and name, is no row */
    static const bay_str plains[] = {STR_INIT(""), STR_INIT("1:a"), STR_INIT("1:a1:b9:c"),
                                     STR_INIT("1:a1:b1:cd"), STR_INIT("x:a1:b1:c")};
    for (size_t i = 0; i < ARRAY_LEN(plains); i++) {
        buf_clear(&value);
        assert_int_equal(seal_value(keys, plains[i], STR("n1"), 0, &value), BAY_OK);
        assert_int_equal(open_row(keys, "n1", buf_view(&value)), BAY_ERR_DENIED);
    }
    buf_fini(&value);
    seal_ring_free(keys);
    seal_ring_free(others);
    seal_ring_free(above);
}

static void names(void **state)
{
    (void)state;
    static const struct {
        bay_str identity, server;
    } rows[] = {{STR_INIT("token:1:i:3:ann"), STR_INIT("mail")},
                {STR_INIT("token:1:i:3:bob"), STR_INIT("mail")},
                {STR_INIT("token:1:i:3:ann"), STR_INIT("mai")},
                {STR_INIT("l4:token:1:i:3:ann"), STR_INIT("mai")}};
    char made[ARRAY_LEN(rows)][VAULT_NAME_BYTES], again[VAULT_NAME_BYTES];
    seal_ring *keys = keys_of("a");
    seal_ring *others = keys_of("b");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(vault_name(keys, 0, rows[i].identity, rows[i].server, made[i]), BAY_OK);
        assert_int_equal(vault_name(others, 0, rows[i].identity, rows[i].server, again), BAY_OK);
        assert_int_not_equal(memcmp(made[i], again, sizeof(again)), 0);
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(memcmp(made[i], made[k], sizeof(made[k])), 0);
        }
    }
    assert_int_equal(vault_name(keys, 1, rows[0].identity, rows[0].server, again), BAY_ERR_STATE);
    seal_ring_free(keys);
    seal_ring_free(others);
}

static void no_keys(void **state)
{
    (void)state;
    seal_ring *empty = NULL, *keys = NULL;
    assert_int_equal(seal_ring_new(&empty), BAY_OK);
    assert_int_equal(vault_keys_new(empty, &keys), BAY_ERR_STATE);
    assert_int_equal(vault_keys_new(NULL, &keys), BAY_ERR_STATE);
    assert_null(keys);
    seal_ring_free(empty);
}

static void no_memory(void **state)
{
    (void)state;
    seal_ring *keys = keys_of("a");
    for (size_t at = 0; failing_memory_start(at); at++) {
        buf value;
        buf_init(&value, 1 << 16);
        bay_err err = vault_seal(keys, STR("n1"), &ann, &value);
        if (err == BAY_OK) {
            err = open_row(keys, "n1", buf_view(&value));
        }
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        buf_fini(&value);
        failing_memory_check();
    }
    seal_ring_free(keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_opens_a_row),
        cmocka_unit_test(names),
        cmocka_unit_test(no_keys),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
