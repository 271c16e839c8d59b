/* Base64: the vectors of RFC 4648, and everything a lenient decoder would let through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/str.h"
#include "wire/base64.h"

typedef struct bad_case {
    base64_form form;
    bay_str text;
} bad_case;

static const bad_case bad_cases[] = {
    {BASE64_STANDARD, STR_INIT("Zg")},
    {BASE64_STANDARD, STR_INIT("Zg=")},
    {BASE64_STANDARD, STR_INIT("Zg===")},
    {BASE64_STANDARD, STR_INIT("Zg==Zg==")},
    {BASE64_STANDARD, STR_INIT("=")},
    {BASE64_STANDARD, STR_INIT("====")},
    {BASE64_STANDARD, STR_INIT("Z===")},
    {BASE64_STANDARD, STR_INIT("Zh==")},
    {BASE64_STANDARD, STR_INIT("Zm9=")},
    {BASE64_STANDARD, STR_INIT("Zm 9v")},
    {BASE64_STANDARD, STR_INIT("Zm9v\n")},
    {BASE64_STANDARD, STR_INIT("Zm9-")},
    {BASE64_STANDARD, STR_INIT("Zm9_")},
    {BASE64_STANDARD, STR_INIT("Zm9\0")},
    {BASE64_STANDARD, STR_INIT("Zm9\xc3")},
    {BASE64_STANDARD, STR_INIT("Zm9vY")},
    {BASE64_STANDARD, STR_INIT("Z=9v")},
    {BASE64_URL, STR_INIT("Zg==")},
    {BASE64_URL, STR_INIT("Zm9+")},
    {BASE64_URL, STR_INIT("Zm9/")},
    {BASE64_URL, STR_INIT("Z")},
    {BASE64_URL, STR_INIT("Zh")},
    {BASE64_URL_PADDED, STR_INIT("Zg")},
    {BASE64_URL_LOOSE, STR_INIT("Zg=")},
    {BASE64_STANDARD_LOOSE, STR_INIT("Zg=")},
    {BASE64_STANDARD_LOOSE, STR_INIT("Zm9v=")},
    {BASE64_STANDARD_LOOSE, STR_INIT("Zm8==")},
    {BASE64_STANDARD_LOOSE, STR_INIT("Zm8=v")},
};

static void bad_text_is_refused(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 100);
    buf_lit(&out, "kept");
    for (size_t i = 0; i < sizeof(bad_cases) / sizeof(bad_cases[0]); i++) {
        if (base64_decode(&out, bad_cases[i].text, bad_cases[i].form) != BAY_ERR_SYNTAX ||
            !str_eq(buf_view(&out), STR("kept"))) {
            fail_msg("case %zu: %s", i, bad_cases[i].text.at);
        }
    }
    buf_fini(&out);
}

typedef struct good_case {
    bay_str bytes;
    const char *standard;
    const char *url;
} good_case;

static const good_case good_cases[] = {
    {STR_INIT(""), "", ""},
    {STR_INIT("f"), "Zg==", "Zg"},
    {STR_INIT("fo"), "Zm8=", "Zm8"},
    {STR_INIT("foo"), "Zm9v", "Zm9v"},
    {STR_INIT("foob"), "Zm9vYg==", "Zm9vYg"},
    {STR_INIT("fooba"), "Zm9vYmE=", "Zm9vYmE"},
    {STR_INIT("foobar"), "Zm9vYmFy", "Zm9vYmFy"},
    {STR_INIT("\xff\xef\xbe\0"), "/+++AA==", "_---AA"},
};

static void good_text_goes_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good_cases) / sizeof(good_cases[0]); i++) {
        const good_case *good = &good_cases[i];
        for (base64_form form = BASE64_STANDARD; form <= BASE64_URL_LOOSE; form++) {
            bool is_url = form != BASE64_STANDARD && form != BASE64_STANDARD_LOOSE;
            buf text;
            buf bytes;
            buf_init(&text, 100);
            buf_init(&bytes, good->bytes.len);
            base64_encode(&text, good->bytes, form);
            assert_int_equal(text.len, base64_encoded_len(good->bytes.len, form));
            if (form != BASE64_URL_PADDED) {
                assert_true(str_eq(buf_view(&text), str_of(is_url ? good->url : good->standard)));
            }
            assert_int_equal(base64_decode(&bytes, buf_view(&text), form), BAY_OK);
            assert_true(str_eq(buf_view(&bytes), good->bytes));
            buf_fini(&text);
            buf_fini(&bytes);
        }
    }
}

static void loose_forms_take_both(void **state)
{
    (void)state;
    static const bad_case both[] = {{BASE64_STANDARD_LOOSE, STR_INIT("Zg")},
                                    {BASE64_STANDARD_LOOSE, STR_INIT("Zg==")},
                                    {BASE64_URL_LOOSE, STR_INIT("Zg")},
                                    {BASE64_URL_LOOSE, STR_INIT("Zg==")}};
    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
        buf out;
        buf_init(&out, 1);
        assert_int_equal(base64_decode(&out, both[i].text, both[i].form), BAY_OK);
        assert_true(str_eq(buf_view(&out), STR("f")));
        buf_fini(&out);
    }
}

static void a_full_buffer_says_so(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 7);
    base64_encode(&out, STR("abcd"), BASE64_STANDARD);
    assert_int_equal(out.err, BAY_ERR_LIMIT);
    assert_int_equal(out.len, 0);
    buf_fini(&out);
    buf_init(&out, 5);
    assert_int_equal(base64_decode(&out, STR("Zm9vYmFy"), BASE64_STANDARD), BAY_ERR_LIMIT);
    assert_int_equal(out.len, 0);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_text_is_refused),
        cmocka_unit_test(good_text_goes_both_ways),
        cmocka_unit_test(loose_forms_take_both),
        cmocka_unit_test(a_full_buffer_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
