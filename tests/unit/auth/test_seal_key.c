/* Keys that seal, as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "auth/seal.h"
#include "base/check.h"
#include "base/str.h"

#define KEY_ONE "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void keys_are_32_bytes_in_two_spellings(void **state)
{
    static const char *const good[] = {
        KEY_ONE,
        "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
    };
    static const char *const bad[] = {
        "",
        "secret",
        KEY_ONE "00",
        "g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8==",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISI=",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8 ",
    };
    unsigned char key[SEAL_KEY_BYTES];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        memset(key, 0xff, sizeof(key));
        assert_true(seal_key_read(str_of(good[i]), key));
        for (size_t k = 0; k < sizeof(key); k++) {
            assert_int_equal(key[k], k);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(seal_key_read(str_of(bad[i]), key));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_32_bytes_in_two_spellings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
