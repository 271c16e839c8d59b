/* A library without OpenSSL: nothing is signed, nothing is believed, and it says why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "auth/access_token.h"
#include "auth/card_signature.h"
#include "base/str.h"

static void everything_is_refused(void **state)
{
    (void)state;
    jose_key *key = NULL;
    jose_keys *keys = NULL;
    access_token token;
    bay_diag diag = {.text = ""};
    arena memory;
    json_doc doc;
    buf out;
    arena_init(&memory, 1 << 16);
    buf_init(&out, 1 << 16);
    assert_int_equal(jose_key_new(STR("{}"), STR(""), &key, &diag), BAY_ERR_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "without TLS"));
    assert_int_equal(jose_keys_new(STR("{}"), &keys, &diag), BAY_ERR_UNSUPPORTED);
    assert_int_equal(access_token_read(STR("a.b.c"), &memory, &token, &diag), BAY_ERR_UNSUPPORTED);
    assert_int_equal(json_parse(&doc,
                                STR("{\"signatures\":[{\"protected\":\"e30\","
                                    "\"signature\":\"AA\"}]}"),
                                NULL, &memory, NULL),
                     BAY_OK);
    assert_int_equal(card_verify(json_root(&doc), keys, &diag), BAY_ERR_UNSUPPORTED);
    assert_int_equal(card_sign(json_root(&doc), key, STR(""), &out, &diag), BAY_ERR_UNSUPPORTED);
    assert_int_equal(out.len, 0);
    assert_int_equal(jose_keys_count(keys), 0);
    jose_key_free(key);
    jose_keys_free(keys);
    buf_fini(&out);
    arena_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
