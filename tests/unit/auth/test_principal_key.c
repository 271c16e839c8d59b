/* The key of a principal: equal for equal identities alone, different under every key and purpose,
 * and found again when a newer key came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "auth/principal_key.h"
#include "base/check.h"
#include "support/failing_memory.h"

static const auth_principal *made(principal_proof proof, const char *issuer, const char *subject,
                                  const char *client)
{
    const auth_principal *self = NULL;
    principal_parts parts = {.proof = proof,
                             .issuer = str_of(issuer),
                             .subject = str_of(subject),
                             .client = str_of(client)};
    assert_int_equal(principal_new(&parts, &self), BAY_OK);
    return self;
}

static void write_key(const auth_principal *of, const seal_ring *ring, size_t nth, char out[64])
{
    buf text = {.at = out, .cap = 64, .max = 63};
    assert_int_equal(principal_key(of, ring, nth, &text), BAY_OK);
    out[text.len] = '\0';
}

static bool has(const auth_principal *of, const seal_ring *ring, const char *key)
{
    bool is_its = false;
    assert_int_equal(principal_has_key(of, ring, str_of(key), &is_its), BAY_OK);
    return is_its;
}

#ifndef BAY_NO_TLS

static const bay_str key_one = STR_INIT("0123456789abcdef0123456789abcdef");
static const bay_str key_two = STR_INIT("the second key, of 32 bytes too.");

static seal_ring *ring_of(bay_str one)
{
    seal_ring *ring = NULL;
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_add(ring, one), BAY_OK);
    return ring;
}

/* Each of these pairs has equal bytes if its parts are put together without their lengths. */
static void principals_that_differ_have_different_keys(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    const auth_principal *all[] = {
        made(PRINCIPAL_TOKEN, "a", "bc", ""),     made(PRINCIPAL_TOKEN, "ab", "c", ""),
        made(PRINCIPAL_TOKEN, "", "abc", ""),     made(PRINCIPAL_KEY, "", "abc", ""),
        made(PRINCIPAL_TOKEN, "1:a", "bc", ""),   made(PRINCIPAL_TOKEN, "a:2:bc", "d", ""),
        made(PRINCIPAL_TOKEN, "a", "bc:1:d", ""),
    };
    char keys[ARRAY_LEN(all)][64];
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        write_key(all[i], ring, 0, keys[i]);
        assert_int_equal(strlen(keys[i]), 2 * SEAL_DIGEST_BYTES);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(keys[i], keys[k]);
            assert_false(has(all[i], ring, keys[k]));
        }
        assert_false(has(NULL, ring, keys[i]));
        assert_false(has(all[i], ring, ""));
    }
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        principal_unref(all[i]);
    }
    seal_ring_free(ring);
}

static void a_key_says_nothing_of_another_ring_or_purpose(void **state)
{
    (void)state;
    seal_ring *rings[] = {ring_of(key_one), ring_of(key_two)};
    const auth_principal *ann = made(PRINCIPAL_TOKEN, "https://issuer", "ann", "");
    char keys[2][64];
    unsigned char digests[SEAL_PURPOSES][SEAL_DIGEST_BYTES];
    for (size_t i = 0; i < 2; i++) {
        write_key(ann, rings[i], 0, keys[i]);
        assert_null(strstr(keys[i], "ann"));
    }
    assert_string_not_equal(keys[0], keys[1]);
    assert_false(has(ann, rings[0], keys[1]));
    for (int i = 0; i < SEAL_PURPOSES; i++) {
        assert_int_equal(seal_digest(rings[0], 0, (seal_purpose)i, STR("ann"), digests[i]), BAY_OK);
    }
    assert_memory_not_equal(digests[SEAL_PRINCIPAL], digests[SEAL_PROXY], SEAL_DIGEST_BYTES);
    assert_int_equal(seal_digest(rings[0], 1, SEAL_PROXY, STR("ann"), digests[0]), BAY_ERR_STATE);
    principal_unref(ann);
    seal_ring_free(rings[0]);
    seal_ring_free(rings[1]);
}

/* The expected digits were computed by another implementation of RFC 2104 and RFC 5869 (Python's
 * hmac). */
static void the_key_is_what_the_standards_say(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    const auth_principal *ann = made(PRINCIPAL_TOKEN, "https://issuer", "ann", "");
    char key[64];
    write_key(ann, ring, 0, key);
    assert_string_equal(key, "08290074cb7d64d1625dda8cfd6079df");
    principal_unref(ann);
    seal_ring_free(ring);
}

static void a_row_of_an_older_key_is_found_until_the_key_goes(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    const auth_principal *ann = made(PRINCIPAL_TOKEN, "https://issuer", "ann", "");
    const auth_principal *other_client = made(PRINCIPAL_TOKEN, "https://issuer", "ann", "app");
    char old[64], fresh[64];
    write_key(ann, ring, 0, old);
    assert_int_equal(seal_ring_add(ring, key_two), BAY_OK);
    write_key(ann, ring, 0, fresh);
    assert_string_not_equal(old, fresh);
    assert_int_equal(principal_key_count(ring), 2);
    assert_true(has(ann, ring, old));
    assert_true(has(ann, ring, fresh));
    assert_true(has(other_client, ring, old)); /* what is kept belongs to issuer and subject */
    for (char n = 0; n < SEAL_RING_KEYS; n++) {
        char bytes[SEAL_KEY_BYTES] = {(char)(n + 1)};
        assert_int_equal(seal_ring_add(ring, (bay_str){bytes, sizeof(bytes)}), BAY_OK);
    }
    assert_int_equal(principal_key_count(ring), SEAL_RING_KEYS);
    assert_false(has(ann, ring, old));
    principal_unref(ann);
    principal_unref(other_client);
    seal_ring_free(ring);
}

#endif

static void an_identity_of_a_row_is_its_own_as_text_without_keys(void **state)
{
    (void)state;
    static const char *const given[] = {"", "token:0::3:ann", PRINCIPAL_ROW_OF_NOBODY};
    for (size_t i = 0; i < ARRAY_LEN(given); i++) {
        char text[64];
        buf out = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
        assert_int_equal(principal_row_write(str_of(given[i]), NULL, STR("r"), &out), BAY_OK);
        assert_true(str_eq(buf_view(&out), str_of(given[i])));
        buf_clear(&out);
        assert_int_equal(principal_row_read(str_of(given[i]), NULL, STR("r"), &out), BAY_OK);
        assert_true(str_eq(buf_view(&out), str_of(given[i])));
    }
}

static void without_a_ring_the_key_is_the_identity(void **state)
{
    (void)state;
    const auth_principal *ann = made(PRINCIPAL_TOKEN, "", "ann", "");
    const auth_principal *bob = made(PRINCIPAL_TOKEN, "", "bob", "");
    char key[64];
    write_key(ann, NULL, 0, key);
    assert_string_equal(key, "746f6b656e3a303a3a333a616e6e"); /* token:0::3:ann */
    assert_true(has(ann, NULL, key));
    assert_false(has(bob, NULL, key));
    assert_int_equal(principal_key_count(NULL), 1);
    principal_unref(ann);
    principal_unref(bob);
}

static void nobody_has_the_empty_key(void **state)
{
    (void)state;
    char key[64];
    write_key(NULL, NULL, 0, key);
    assert_string_equal(key, "");
    assert_true(has(NULL, NULL, ""));
    assert_false(has(NULL, NULL, "00"));
}

static void without_memory_nothing_is_decided(void **state)
{
    (void)state;
    const auth_principal *ann = made(PRINCIPAL_TOKEN, "", "ann", "");
    bay_err last = BAY_OK;
    for (size_t at = 0; failing_memory_start(at); at++) {
        bool is_its = false;
        last = principal_has_key(ann, NULL, STR("746f6b656e3a303a3a333a616e6e"), &is_its);
        assert_true(last == BAY_OK ? is_its : last == BAY_ERR_NOMEM && !is_its);
        failing_memory_check();
    }
    assert_int_equal(last, BAY_OK);
    principal_unref(ann);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifndef BAY_NO_TLS
        cmocka_unit_test(principals_that_differ_have_different_keys),
        cmocka_unit_test(a_key_says_nothing_of_another_ring_or_purpose),
        cmocka_unit_test(the_key_is_what_the_standards_say),
        cmocka_unit_test(a_row_of_an_older_key_is_found_until_the_key_goes),
#endif
        cmocka_unit_test(an_identity_of_a_row_is_its_own_as_text_without_keys),
        cmocka_unit_test(without_a_ring_the_key_is_the_identity),
        cmocka_unit_test(nobody_has_the_empty_key),
        cmocka_unit_test(without_memory_nothing_is_decided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
