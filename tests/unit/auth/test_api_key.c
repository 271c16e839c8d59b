/* API keys: what is a key, what is kept of one, and what is no row of one. */
#include <openssl/evp.h> /* without it there are no digests */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "auth/api_key.h"
#include "base/str.h"

static void an_id_is_between_two_marks(void **state)
{
    static const char *const keys[] = {"pbk_a_b", "pbk_0011_x_y", "pbk_a_"};
    static const char *const ids[] = {"a", "0011", NULL};
    static const char *const others[] = {"",    "pbk_",    "pbk__b",  "pbk_a",
                                         "pbk", "PBK_a_b", " pbk_a_b"};
    (void)state;
    bay_str id;
    for (size_t i = 0; ids[i] != NULL; i++) {
        assert_true(api_key_id(str_of(keys[i]), &id));
        assert_true(str_eq(id, str_of(ids[i])));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(api_key_id(str_of(others[i]), &id));
    }
    char text[128] = "pbk_";
    memset(text + 4, 'a', API_KEY_ID_BYTES + 1);
    text[4 + API_KEY_ID_BYTES] = '_';
    assert_true(api_key_id(str_of(text), &id));
    text[4 + API_KEY_ID_BYTES] = 'a';
    text[5 + API_KEY_ID_BYTES] = '_';
    assert_false(api_key_id(str_of(text), &id));
}

static void a_key_is_kept_as_a_digest(void **state)
{
    (void)state;
    char one[API_KEY_BYTES], other[API_KEY_BYTES];
    unsigned char digest[DIGEST_BYTES];
    api_key row = {
        .name = STR("ci"), .scopes = STR("a \"b\""), .made_at_ms = 5, .expires_at_ms = 7};
    api_key again;
    arena memory;
    buf text;
    arena_init(&memory, API_KEY_MEMORY_BYTES);
    buf_init(&text, API_KEY_ROW_BYTES);
    assert_int_equal(api_key_make(&row, other), BAY_OK);
    assert_int_equal(api_key_make(&row, one), BAY_OK);
    assert_string_not_equal(one, other);
    assert_int_equal(digest_bytes(str_of(one), digest), BAY_OK);
    assert_memory_equal(row.digest, digest, DIGEST_BYTES);
    api_key_row_write(&row, &text);
    assert_null(memmem(text.at, text.len, one + 21, strlen(one + 21)));
    assert_int_equal(api_key_row_read(buf_view(&text), &memory, &again), BAY_OK);
    assert_true(str_eq(again.name, row.name) && str_eq(again.scopes, row.scopes));
    assert_int_equal(again.made_at_ms, 5);
    assert_int_equal(again.expires_at_ms, 7);
    assert_memory_equal(again.digest, digest, DIGEST_BYTES);
    buf_fini(&text);
    arena_fini(&memory);
}

#define DIGEST "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static void what_is_no_row_is_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "{}",
        "[]",
        "{\"name\":\"a\",\"scopes\":\"\",\"madeAt\":1,\"expiresAt\":0}",
        "{\"name\":\"a\",\"scopes\":\"\",\"madeAt\":1,\"expiresAt\":0,\"digest\":\"AA\"}",
        "{\"name\":\"a\",\"scopes\":\"\",\"madeAt\":1,\"expiresAt\":0,\"digest\":\"" DIGEST "A\"}",
        "{\"name\":\"a\",\"scopes\":\"\",\"madeAt\":1,\"expiresAt\":0,\"digest\":\"" DIGEST "=\"}",
        "{\"name\":\"a\",\"scopes\":\"\",\"madeAt\":1,\"expiresAt\":-1,\"digest\":\"" DIGEST "\"}",
        "{\"name\":\"a\",\"scopes\":\"\",\"madeAt\":1,\"expiresAt\":\"0\",\"digest\":\"" DIGEST
        "\"}",
        "{\"name\":1,\"scopes\":\"\",\"madeAt\":1,\"expiresAt\":0,\"digest\":\"" DIGEST "\"}",
        "{\"name\":\"a\",\"scopes\":[],\"madeAt\":1,\"expiresAt\":0,\"digest\":\"" DIGEST "\"}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        api_key row;
        arena memory;
        arena_init(&memory, API_KEY_MEMORY_BYTES);
        assert_int_equal(api_key_row_read(str_of(rows[i]), &memory, &row), BAY_ERR_SYNTAX);
        arena_fini(&memory);
    }
    static char large[API_KEY_ROW_BYTES + 2];
    api_key row;
    arena memory;
    arena_init(&memory, API_KEY_MEMORY_BYTES);
    memset(large, ' ', sizeof(large) - 1);
    assert_int_equal(api_key_row_read(str_of(large), &memory, &row), BAY_ERR_SYNTAX);
    arena_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_between_two_marks),
        cmocka_unit_test(a_key_is_kept_as_a_digest),
        cmocka_unit_test(what_is_no_row_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
