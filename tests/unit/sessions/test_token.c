/* Tokens: whatever is not ours is refused, and the loop's number is read from what looks like one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/str.h"
#include "sessions/token.h"

static void refuses_what_it_did_not_seal(void **state)
{
    (void)state;
    seal_ring *ring;
    seal_ring *other;
    buf token;
    buf out;
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_new(&other), BAY_OK);
    assert_int_equal(seal_ring_generate(ring), BAY_OK);
    assert_int_equal(seal_ring_generate(other), BAY_OK);
    buf_init(&token, 4096);
    buf_init(&out, 4096);
    assert_int_equal(token_seal(ring, "call", 18, STR("ann"), STR("seven"), 1000, &token), BAY_OK);
    assert_int_equal(token_open(ring, "task", STR("ann"), buf_view(&token), 1, &out),
                     BAY_ERR_DENIED);
    assert_int_equal(token_open(ring, "call", STR("bob"), buf_view(&token), 1, &out),
                     BAY_ERR_DENIED);
    assert_int_equal(token_open(other, "call", STR("ann"), buf_view(&token), 1, &out),
                     BAY_ERR_DENIED);
    assert_int_equal(token_open(ring, "call", STR("ann"), buf_view(&token), 1000, &out),
                     BAY_ERR_TIMEOUT);
    for (size_t i = 0; i < token.len; i++) {
        assert_int_equal(token_open(ring, "call", STR("ann"), (bay_str){token.at, i}, 1, &out),
                         BAY_ERR_DENIED);
    }
    assert_int_equal(out.len, 0);
    assert_int_equal(token_open(ring, "call", STR("ann"), buf_view(&token), 1, &out), BAY_OK);
    assert_true(str_eq(buf_view(&out), STR("seven")));
    uint32_t worker = 0;
    assert_true(token_worker(buf_view(&token), &worker));
    assert_int_equal(worker, 18);
    buf_fini(&token);
    buf_fini(&out);
    seal_ring_free(ring);
    seal_ring_free(other);
}

static void tells_the_loop_of_what_looks_like_a_token(void **state)
{
    (void)state;
    static const char *const strangers[] = {"", "pb", "pb.x", "pb123456789.x", "pbG.x", "xpb1.x"};
    uint32_t worker = 99;
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
        assert_false(token_worker(str_of(strangers[i]), &worker));
    }
    assert_int_equal(worker, 99);
    assert_true(token_worker(STR("pb1f.x"), &worker));
    assert_int_equal(worker, 31);
    assert_true(token_worker(STR("pb0."), &worker));
    assert_int_equal(worker, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_it_did_not_seal),
        cmocka_unit_test(tells_the_loop_of_what_looks_like_a_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
