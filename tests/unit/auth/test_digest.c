/* The digests of FIPS 180-4's examples, as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "auth/digest.h"
#include "base/str.h"
#ifndef BAY_NO_TLS
#include "base/check.h"
#endif

static void test_known_digests(void **state)
{
    (void)state;
    char text[DIGEST_TEXT_BYTES + 1];
#ifdef BAY_NO_TLS
    assert_int_equal(digest_sha256(STR("abc"), text), BAY_UNSUPPORTED);
#else
    static const struct {
        bay_str bytes;
        const char *digest;
    } cases[] = {
        {STR_INIT("abc"),
         "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {STR_INIT(""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {STR_INIT("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
         "sha256:248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {STR_INIT("\0"), "sha256:6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(digest_sha256(cases[i].bytes, text), BAY_OK);
        assert_string_equal(text, cases[i].digest);
    }
    assert_int_equal(digest_sha256((bay_str){0}, text), BAY_OK);
    assert_string_equal(text, cases[1].digest);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_digests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
