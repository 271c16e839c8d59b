/* Sealed values: whatever was changed, cut, borrowed or kept too long is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "auth/seal.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "support/failing_memory.h"
#include "wire/base64.h"

#define NOW 1700000000000U
#define LATER (NOW + 60000)

static const bay_str key_one = STR_INIT("0123456789abcdef0123456789abcdef");
static const bay_str key_two = STR_INIT("the second key, of 32 bytes too.");
static const bay_str plain = STR_INIT("{\"step\":2,\"answers\":[true,null]}");
static const bay_str associated = STR_INIT("principal\0tools/call\0deploy");

static seal_ring *ring_of(bay_str key)
{
    seal_ring *ring;
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_add(ring, key), BAY_OK);
    return ring;
}

static buf sealed(const seal_ring *ring, bay_str text, bay_str bound_to, uint64_t expires_at_ms)
{
    buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(seal_value(ring, text, bound_to, expires_at_ms, &out), BAY_OK);
    return out;
}

/* Opens into a buffer that holds something already, and checks that a refusal leaves it alone. */
static bay_err opened(const seal_ring *ring, bay_str text, bay_str bound_to, uint64_t now_ms,
                      bay_str expected)
{
    buf out;
    buf_init(&out, 1 << 20);
    buf_lit(&out, "before");
    bay_err err = seal_open(ring, text, bound_to, now_ms, &out);
    assert_true(str_starts(buf_view(&out), STR("before")));
    bay_str found = str_from(buf_view(&out), 6);
    assert_true(err == BAY_OK ? str_eq(found, expected) : found.len == 0);
    buf_fini(&out);
    return err;
}

/* --- forged ----------------------------------------------------------------------------------- */

static void a_text_with_any_character_changed_is_denied(void **state)
{
    (void)state;
    static const char others[] = "AQgw_-9=+/ \n";
    seal_ring *ring = ring_of(key_one);
    for (size_t cut = 0; cut < 3; cut++) { /* every rest that base64 knows */
        buf text = sealed(ring, str_head(plain, plain.len - cut), associated, LATER);
        for (size_t i = 0; i < text.len; i++) {
            char was = text.at[i];
            for (size_t j = 0; j < sizeof(others); j++) { /* the NUL too */
                if (others[j] != was) {
                    text.at[i] = others[j];
                    assert_int_equal(opened(ring, buf_view(&text), associated, NOW, plain),
                                     BAY_ERR_DENIED);
                }
            }
            text.at[i] = was;
        }
        buf_fini(&text);
    }
    seal_ring_free(ring);
}

static void any_bit_flipped_is_denied(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    buf text = sealed(ring, plain, associated, LATER);
    buf bytes;
    buf_init(&bytes, 4096);
    assert_int_equal(base64_decode(&bytes, buf_view(&text), BASE64_URL), BAY_OK);
    assert_int_equal(bytes.len, plain.len + SEAL_OVERHEAD_BYTES);
    for (size_t bit = 0; bit < bytes.len * 8; bit++) {
        bytes.at[bit / 8] ^= (char)(1 << bit % 8);
        buf_clear(&text);
        base64_encode(&text, buf_view(&bytes), BASE64_URL);
        assert_int_equal(opened(ring, buf_view(&text), associated, NOW, plain), BAY_ERR_DENIED);
        bytes.at[bit / 8] ^= (char)(1 << bit % 8);
    }
    buf_fini(&bytes);
    buf_fini(&text);
    seal_ring_free(ring);
}

static void a_text_cut_or_prolonged_anywhere_is_denied(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    buf text = sealed(ring, plain, associated, LATER);
    for (size_t len = 0; len < text.len; len++) {
        assert_int_equal(opened(ring, str_head(buf_view(&text), len), associated, NOW, plain),
                         BAY_ERR_DENIED);
        assert_int_equal(opened(ring, str_from(buf_view(&text), len + 1), associated, NOW, plain),
                         BAY_ERR_DENIED);
    }
    for (int i = 0; i < 8; i++) {
        buf_char(&text, 'A');
        assert_int_equal(opened(ring, buf_view(&text), associated, NOW, plain), BAY_ERR_DENIED);
    }
    buf_fini(&text);
    seal_ring_free(ring);
}

static void a_text_too_long_to_be_ours_is_denied(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    size_t len = base64_encoded_len(SEAL_PLAIN_BYTES + SEAL_OVERHEAD_BYTES, BASE64_URL) + 1;
    char *text = mem_zalloc(len);
    assert_non_null(text);
    memset(text, 'A', len);
    assert_int_equal(opened(ring, (bay_str){text, len}, associated, NOW, plain), BAY_ERR_DENIED);
    mem_free(text);
    seal_ring_free(ring);
}

static void other_associated_data_is_denied(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    buf text = sealed(ring, plain, associated, LATER);
    char other[64];
    for (size_t i = 0; i < associated.len; i++) {
        memcpy(other, associated.at, associated.len);
        other[i] ^= 1;
        assert_int_equal(
            opened(ring, buf_view(&text), (bay_str){other, associated.len}, NOW, plain),
            BAY_ERR_DENIED);
        assert_int_equal(opened(ring, buf_view(&text), str_head(associated, i), NOW, plain),
                         BAY_ERR_DENIED);
    }
    memcpy(other, associated.at, associated.len);
    other[associated.len] = '\0';
    assert_int_equal(
        opened(ring, buf_view(&text), (bay_str){other, associated.len + 1}, NOW, plain),
        BAY_ERR_DENIED);
    buf_fini(&text);
    text = sealed(ring, plain, (bay_str){0}, LATER);
    assert_int_equal(opened(ring, buf_view(&text), associated, NOW, plain), BAY_ERR_DENIED);
    buf_fini(&text);
    seal_ring_free(ring);
}

/* --- expired ---------------------------------------------------------------------------------- */

static void a_value_ends_at_its_expiry(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    buf text = sealed(ring, plain, associated, LATER);
    assert_int_equal(opened(ring, buf_view(&text), associated, LATER - 1, plain), BAY_OK);
    assert_int_equal(opened(ring, buf_view(&text), associated, LATER, plain), BAY_ERR_TIMEOUT);
    assert_int_equal(opened(ring, buf_view(&text), associated, UINT64_MAX, plain), BAY_ERR_TIMEOUT);
    /* Who may not have it is not told that it is old either. */
    assert_int_equal(opened(ring, buf_view(&text), STR("other"), LATER, plain), BAY_ERR_DENIED);
    buf_fini(&text);
    text = sealed(ring, plain, associated, 0);
    assert_int_equal(opened(ring, buf_view(&text), associated, UINT64_MAX, plain), BAY_OK);
    buf_fini(&text);
    text = sealed(ring, plain, associated, UINT64_MAX);
    assert_int_equal(opened(ring, buf_view(&text), associated, UINT64_MAX - 1, plain), BAY_OK);
    buf_fini(&text);
    seal_ring_free(ring);
}

/* --- keys ------------------------------------------------------------------------------------- */

static void a_key_of_another_length_is_refused(void **state)
{
    (void)state;
    seal_ring *ring;
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_add(ring, (bay_str){0}), BAY_ERR_INVALID);
    assert_int_equal(seal_ring_add(ring, str_head(key_one, SEAL_KEY_BYTES - 1)), BAY_ERR_INVALID);
    assert_int_equal(seal_ring_add(ring, STR("0123456789abcdef0123456789abcdef+")),
                     BAY_ERR_INVALID);
    buf out;
    buf_init(&out, 1024);
    assert_int_equal(seal_value(ring, plain, associated, 0, &out), BAY_ERR_STATE);
    assert_int_equal(out.len, 0);
    buf_fini(&out);
    seal_ring_free(ring);
    seal_ring_free(NULL);
}

static void an_unknown_key_is_denied(void **state)
{
    (void)state;
    seal_ring *one = ring_of(key_one);
    seal_ring *two = ring_of(key_two);
    seal_ring *none;
    assert_int_equal(seal_ring_new(&none), BAY_OK);
    buf text = sealed(one, plain, associated, LATER);
    assert_int_equal(opened(two, buf_view(&text), associated, NOW, plain), BAY_ERR_DENIED);
    assert_int_equal(opened(none, buf_view(&text), associated, NOW, plain), BAY_ERR_DENIED);
    buf_fini(&text);
    seal_ring_free(none);
    seal_ring_free(two);
    seal_ring_free(one);
}

static void after_a_rotation_the_new_key_seals_and_the_old_one_opens(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    seal_ring *replica = ring_of(key_two);
    buf before = sealed(ring, plain, associated, LATER);
    assert_int_equal(seal_ring_add(ring, key_two), BAY_OK);
    buf after = sealed(ring, plain, associated, LATER);
    assert_int_equal(opened(ring, buf_view(&before), associated, NOW, plain), BAY_OK);
    assert_int_equal(opened(ring, buf_view(&after), associated, NOW, plain), BAY_OK);
    assert_int_equal(opened(replica, buf_view(&after), associated, NOW, plain), BAY_OK);
    assert_int_equal(opened(replica, buf_view(&before), associated, NOW, plain), BAY_ERR_DENIED);
    buf_fini(&after);
    /* A key that is there already comes back to the front. */
    assert_int_equal(seal_ring_add(ring, key_one), BAY_OK);
    after = sealed(ring, plain, associated, LATER);
    assert_int_equal(opened(replica, buf_view(&after), associated, NOW, plain), BAY_ERR_DENIED);
    buf_fini(&before);
    buf_fini(&after);
    seal_ring_free(replica);
    seal_ring_free(ring);
}

static void a_full_ring_forgets_its_oldest_key(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    buf oldest = sealed(ring, plain, associated, LATER);
    assert_int_equal(seal_ring_add(ring, key_two), BAY_OK);
    buf second = sealed(ring, plain, associated, LATER);
    for (int i = 2; i < SEAL_RING_KEYS; i++) {
        assert_int_equal(seal_ring_generate(ring), BAY_OK);
    }
    assert_int_equal(opened(ring, buf_view(&oldest), associated, NOW, plain), BAY_OK);
    assert_int_equal(seal_ring_add(ring, key_two), BAY_OK); /* adds none */
    assert_int_equal(opened(ring, buf_view(&oldest), associated, NOW, plain), BAY_OK);
    assert_int_equal(seal_ring_generate(ring), BAY_OK);
    assert_int_equal(opened(ring, buf_view(&oldest), associated, NOW, plain), BAY_ERR_DENIED);
    assert_int_equal(opened(ring, buf_view(&second), associated, NOW, plain), BAY_OK);
    buf_fini(&oldest);
    buf_fini(&second);
    seal_ring_free(ring);
}

static void generated_keys_differ(void **state)
{
    (void)state;
    seal_ring *one;
    seal_ring *two;
    assert_int_equal(seal_ring_new(&one), BAY_OK);
    assert_int_equal(seal_ring_new(&two), BAY_OK);
    assert_int_equal(seal_ring_generate(one), BAY_OK);
    assert_int_equal(seal_ring_generate(two), BAY_OK);
    buf text = sealed(one, plain, associated, LATER);
    assert_int_equal(opened(one, buf_view(&text), associated, NOW, plain), BAY_OK);
    assert_int_equal(opened(two, buf_view(&text), associated, NOW, plain), BAY_ERR_DENIED);
    buf_fini(&text);
    seal_ring_free(two);
    seal_ring_free(one);
}

/* --- sizes, form, memory ---------------------------------------------------------------------- */

static void values_of_every_size_come_back_and_larger_ones_are_refused(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    char *bytes = mem_zalloc(SEAL_PLAIN_BYTES + 1);
    assert_non_null(bytes);
    static const size_t sizes[] = {0, 1, 2, 3, 15, 16, 17, 4096, SEAL_PLAIN_BYTES};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        bay_str value = {sizes[i] > 0 ? bytes : NULL, sizes[i]};
        buf text = sealed(ring, value, associated, LATER);
        assert_int_equal(text.len, base64_encoded_len(sizes[i] + SEAL_OVERHEAD_BYTES, BASE64_URL));
        assert_int_equal(opened(ring, buf_view(&text), associated, NOW, value), BAY_OK);
        buf_fini(&text);
    }
    buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(seal_value(ring, (bay_str){bytes, SEAL_PLAIN_BYTES + 1}, associated, 0, &out),
                     BAY_ERR_LIMIT);
    assert_int_equal(out.len, 0);
    buf_fini(&out);
    mem_free(bytes);
    /* The caller's own bounds hold too. */
    buf_init(&out, 100);
    assert_int_equal(seal_value(ring, plain, associated, 0, &out), BAY_OK);
    buf small;
    buf_init(&small, plain.len - 1);
    assert_int_equal(seal_open(ring, buf_view(&out), associated, NOW, &small), BAY_ERR_LIMIT);
    assert_int_equal(small.len, 0);
    assert_int_equal(seal_value(ring, plain, associated, 0, &out), BAY_ERR_LIMIT);
    buf_fini(&small);
    buf_fini(&out);
    seal_ring_free(ring);
}

static void associated_data_has_its_bound(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    char *bytes = mem_zalloc(SEAL_ASSOCIATED_BYTES + 1);
    assert_non_null(bytes);
    bay_str most = {bytes, SEAL_ASSOCIATED_BYTES};
    bay_str more = {bytes, SEAL_ASSOCIATED_BYTES + 1};
    buf text = sealed(ring, plain, most, LATER);
    assert_int_equal(opened(ring, buf_view(&text), most, NOW, plain), BAY_OK);
    assert_int_equal(opened(ring, buf_view(&text), more, NOW, plain), BAY_ERR_DENIED);
    assert_int_equal(seal_value(ring, plain, more, LATER, &text), BAY_ERR_LIMIT);
    buf_fini(&text);
    mem_free(bytes);
    seal_ring_free(ring);
}

static void two_seals_of_one_value_differ_and_are_plain_characters(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    buf one = sealed(ring, plain, associated, LATER);
    buf two = sealed(ring, plain, associated, LATER);
    assert_false(str_eq(buf_view(&one), buf_view(&two)));
    for (size_t i = 0; i < one.len; i++) {
        char c = one.at[i];
        assert_true((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_');
    }
    buf_fini(&two);
    buf_fini(&one);
    seal_ring_free(ring);
}

/* Made by another implementation of AES-256-GCM: the form must not drift under replicas that are
 * updated one after the other. */
static void a_text_of_this_version_made_elsewhere_opens(void **state)
{
    (void)state;
    seal_ring *ring = ring_of(key_one);
    bay_str text = STR("ARSvkxYAAAGLz-ZSYHR3ZWx2ZSBieXRlczqbcQW6yNwbxqPaq3PSxE6hNesO"
                       "GykJkqxmfJp78A-9I3pjH6C87nWXC4Zn7dTeCg");
    assert_int_equal(opened(ring, text, associated, NOW, plain), BAY_OK);
    assert_int_equal(opened(ring, text, associated, LATER, plain), BAY_ERR_TIMEOUT);
    seal_ring_free(ring);
}

static void every_lack_of_memory_is_an_error(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        seal_ring *ring = NULL;
        bay_err err = seal_ring_new(&ring);
        buf text;
        buf out;
        buf_init(&text, 4096);
        buf_init(&out, 4096);
        if (err == BAY_OK) {
            assert_int_equal(seal_ring_add(ring, key_one), BAY_OK);
            err = seal_value(ring, plain, associated, LATER, &text);
        }
        if (err == BAY_OK) {
            err = seal_open(ring, buf_view(&text), associated, NOW, &out);
        }
        assert_int_equal(err, failing_memory.has_failed ? BAY_ERR_NOMEM : BAY_OK);
        assert_true(str_eq(buf_view(&out), err == BAY_OK ? plain : (bay_str){0}));
        buf_fini(&text);
        buf_fini(&out);
        seal_ring_free(ring);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_with_any_character_changed_is_denied),
        cmocka_unit_test(any_bit_flipped_is_denied),
        cmocka_unit_test(a_text_cut_or_prolonged_anywhere_is_denied),
        cmocka_unit_test(a_text_too_long_to_be_ours_is_denied),
        cmocka_unit_test(other_associated_data_is_denied),
        cmocka_unit_test(a_value_ends_at_its_expiry),
        cmocka_unit_test(a_key_of_another_length_is_refused),
        cmocka_unit_test(an_unknown_key_is_denied),
        cmocka_unit_test(after_a_rotation_the_new_key_seals_and_the_old_one_opens),
        cmocka_unit_test(a_full_ring_forgets_its_oldest_key),
        cmocka_unit_test(generated_keys_differ),
        cmocka_unit_test(values_of_every_size_come_back_and_larger_ones_are_refused),
        cmocka_unit_test(associated_data_has_its_bound),
        cmocka_unit_test(two_seals_of_one_value_differ_and_are_plain_characters),
        cmocka_unit_test(a_text_of_this_version_made_elsewhere_opens),
        cmocka_unit_test(every_lack_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
