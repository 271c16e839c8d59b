/* The digests of FIPS 180-4's examples, as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/skipped.h"

#include <string.h>

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
    assert_int_equal(digest_sha256(STR("abc"), text), BAY_ERR_UNSUPPORTED);
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

#ifndef BAY_NO_TLS
static void digest_of(const char *json, char out[DIGEST_TEXT_BYTES + 1])
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 16);
    assert_int_equal(json_parse(&doc, str_of(json), NULL, &memory, NULL), BAY_OK);
    assert_int_equal(digest_json(json_root(&doc), out), BAY_OK);
    arena_fini(&memory);
}

static void test_spellings_of_a_value(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool is_same;
    } cases[] = {
        {"{\"a\":1,\"b\":2}", "{\"b\":3,\"a\":1}", false},
        {"{\"a\":[]}", "{\"a\":{}}", false},
        {"[1]", "[2]", false},
        {"{\"a\":1e999}", "{\"a\":1e998}", false}, /* beyond doubles: byte for byte */
        {"{\"a\":1e999}", "{ \"a\":1e999}", false},
        {"{\"a\":1e999}", "{\"a\":1e999}", true},
        {"{\"a\":1,\"b\":2}", "{ \"b\" : 2.0, \"\\u0061\" : 1e0 }", true},
    };
    char a[DIGEST_TEXT_BYTES + 1];
    char b[DIGEST_TEXT_BYTES + 1];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        digest_of(cases[i].a, a);
        digest_of(cases[i].b, b);
        assert_int_equal(strcmp(a, b) == 0, cases[i].is_same);
    }
    digest_of("{}", a);
    assert_int_equal(digest_json(JSON_NONE, b), BAY_OK);
    assert_string_equal(a, b);
}
#else
SKIPPED(test_spellings_of_a_value, "this build has no OpenSSL, which makes digests")
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_digests),
        cmocka_unit_test(test_spellings_of_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
