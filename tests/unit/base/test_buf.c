/* The buffer: its maximum to the byte, errors that stick, numbers at their ends, lack of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "support/failing_memory.h"

static void assert_text(const buf *self, const char *expected)
{
    assert_int_equal(self->err, BAY_OK);
    assert_int_equal(self->len, strlen(expected));
    assert_memory_equal(self->at, expected, self->len);
}

static void refuses_one_byte_over_the_maximum(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 10);
    buf_lit(&text, "0123456789");
    assert_text(&text, "0123456789");
    buf_char(&text, 'x');
    assert_int_equal(text.err, BAY_ERR_LIMIT);
    assert_int_equal(text.len, 10);
    buf_fini(&text);
}

static void an_error_sticks_until_cleared(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 8);
    buf_lit(&text, "abc");
    buf_lit(&text, "too long by far");
    assert_int_equal(text.err, BAY_ERR_LIMIT);
    buf_char(&text, 'd'); /* would fit, but the text has a hole by now */
    buf_printf(&text, "%d", 1);
    assert_false(buf_reserve(&text, 0));
    assert_int_equal(text.len, 3);
    buf_clear(&text);
    buf_lit(&text, "12345678");
    assert_text(&text, "12345678");
    buf_fini(&text);
}

static void refuses_sizes_that_overflow(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, SIZE_MAX);
    buf_lit(&text, "abc");
    assert_false(buf_reserve(&text, SIZE_MAX - 1));
    assert_int_equal(text.err, BAY_ERR_LIMIT);
    assert_memory_equal(text.at, "abc", 3);
    buf_fini(&text);
}

static void a_maximum_of_zero_holds_nothing(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 0);
    buf_append(&text, NULL, 0);
    buf_str(&text, (bay_str){NULL, 0});
    buf_printf(&text, "%s", "");
    assert_int_equal(text.err, BAY_OK);
    assert_null(buf_view(&text).at);
    buf_char(&text, 'a');
    assert_int_equal(text.err, BAY_ERR_LIMIT);
    buf_fini(&text);
}

static void prints_up_to_the_last_byte(void **state)
{
    (void)state;
    char expected[401];
    memset(expected, 'x', 400);
    expected[400] = '\0';
    for (size_t len = 0; len <= 400; len++) {
        buf text;
        buf_init(&text, len);
        buf_printf(&text, "%s", expected + 400 - len);
        assert_int_equal(text.err, BAY_OK);
        assert_int_equal(text.len, len);
        if (len > 0) {
            assert_memory_equal(text.at, expected, len);
        }
        buf_fini(&text);
        if (len > 0) {
            buf_init(&text, len - 1);
            buf_printf(&text, "%s", expected + 400 - len);
            assert_int_equal(text.err, BAY_ERR_LIMIT);
            assert_int_equal(text.len, 0);
            buf_fini(&text);
        }
    }
}

static void writes_numbers_to_their_ends(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 1000);
    buf_int(&text, INT64_MIN);
    buf_char(&text, ' ');
    buf_int(&text, INT64_MAX);
    buf_char(&text, ' ');
    buf_uint(&text, UINT64_MAX);
    buf_char(&text, ' ');
    buf_int(&text, 0);
    buf_int(&text, -1);
    assert_text(&text, "-9223372036854775808 9223372036854775807 18446744073709551615 0-1");
    buf_fini(&text);
}

static void consumes_from_the_front(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 100);
    buf_lit(&text, "abcdef");
    buf_consume(&text, 0);
    assert_text(&text, "abcdef");
    buf_consume(&text, 2);
    assert_text(&text, "cdef");
    buf_consume(&text, 1000);
    assert_int_equal(text.len, 0);
    buf_lit(&text, "again");
    assert_text(&text, "again");
    buf_fini(&text);
}

static void take_leaves_it_empty_and_usable(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 5);
    buf_lit(&text, "owned");
    size_t len = 0;
    char *owned = buf_take(&text, &len);
    assert_int_equal(len, 5);
    assert_memory_equal(owned, "owned", 5);
    assert_null(text.at);
    buf_lit(&text, "again");
    assert_text(&text, "again");
    mem_free(owned);
    buf_fini(&text);
    buf_fini(&text); /* twice is harmless */
}

static void grows_without_losing_a_byte(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 100000);
    for (uint32_t i = 0; i < 20000; i++) {
        buf_char(&text, (char)('a' + i % 26));
    }
    assert_int_equal(text.err, BAY_OK);
    assert_int_equal(text.len, 20000);
    for (uint32_t i = 0; i < 20000; i++) {
        assert_int_equal(text.at[i], 'a' + i % 26);
    }
    buf_fini(&text);
}

static void survives_every_lack_of_memory(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        buf text;
        buf_init(&text, 10000);
        buf_lit(&text, "0123456789");
        buf_printf(&text, "%0300d", 7);
        buf_printf(&text, "%d", 7);
        if (failing_memory.has_failed) {
            assert_int_equal(text.err, BAY_ERR_NOMEM);
        } else {
            assert_int_equal(text.err, BAY_OK);
            assert_int_equal(text.len, 311);
        }
        buf_fini(&text);
        failing_memory_check();
    }
}

static const char secret[] = "open sesame";

/* Counts the blocks that come back with the secret still in them. */
static void look_and_release(void *old, void *user)
{
    size_t *found = user;
    if (old != NULL && memmem(old, malloc_usable_size(old), secret, sizeof(secret) - 1) != NULL) {
        (*found)++;
    }
    free(old);
}

static void a_secret_is_wiped_wherever_it_was(void **state)
{
    (void)state;
    size_t found = 0;
    const mem_hooks hooks = {failing_memory_libc_alloc, failing_memory_libc_resize,
                             look_and_release, &found};
    const mem_hooks libc = {failing_memory_libc_alloc, failing_memory_libc_resize,
                            failing_memory_libc_release, NULL};
    buf self, open;
    mem_set_hooks(&hooks);
    buf_init_secret(&self, 1 << 20);
    buf_str(&self, str_of(secret));
    for (int i = 0; i < 1000; i++) {
        buf_str(&self, STR("and so on, until it has moved several times"));
    }
    assert_memory_equal(self.at, secret, sizeof(secret) - 1);
    buf_fini(&self);
    assert_int_equal(found, 0);
    buf_str(&self, str_of(secret)); /* it stays one */
    buf_fini(&self);
    assert_int_equal(found, 0);
    buf_init(&open, 1 << 20); /* the test sees what it looks for */
    buf_str(&open, str_of(secret));
    buf_fini(&open);
    assert_int_equal(found, 1);
    mem_set_hooks(&libc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_one_byte_over_the_maximum),
        cmocka_unit_test(an_error_sticks_until_cleared),
        cmocka_unit_test(refuses_sizes_that_overflow),
        cmocka_unit_test(a_maximum_of_zero_holds_nothing),
        cmocka_unit_test(prints_up_to_the_last_byte),
        cmocka_unit_test(writes_numbers_to_their_ends),
        cmocka_unit_test(consumes_from_the_front),
        cmocka_unit_test(take_leaves_it_empty_and_usable),
        cmocka_unit_test(grows_without_losing_a_byte),
        cmocka_unit_test(a_secret_is_wiped_wherever_it_was),
        cmocka_unit_test(survives_every_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
