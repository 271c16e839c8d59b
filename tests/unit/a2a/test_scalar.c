/* Times: whether one is written as we would is told from where its signs stand, and that is what
 * reading and writing it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "a2a/scalar.h"

static size_t normal_ones;
static size_t other_ones;

static void check(bay_str text)
{
    int64_t seconds;
    int32_t nanos;
    char written[A2A_TIME_BYTES];
    if (!a2a_time_read(text, &seconds, &nanos)) {
        return; /* nobody asks */
    }
    assert_true(a2a_time_write(seconds, nanos, written));
    bool is_same = str_eq(text, (bay_str){written, sizeof(written)});
    if (a2a_time_is_normal(text) != is_same) {
        fail_msg("%.*s is %s", BAY_STR(text), is_same ? "normal" : "not normal");
    }
    *(is_same ? &normal_ones : &other_ones) += 1;
}

static void normal_is_what_would_be_written(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "2026-01-31T23:59:59.123Z",       "0001-01-01T00:00:00.000Z",
        "9999-12-31T23:59:59.999Z",       "2024-02-29T12:00:00.5Z",
        "2026-01-31T23:59:59Z",           "2026-01-31T23:59:59.Z",
        "2026-01-31T23:59:59.123456789Z", "2026-01-31T23:59:59.1234567891Z",
        "2026-01-31T23:59:59+00:00",      "2026-01-31T23:59:59.123+01:30",
        "2026-01-31T23:59:59-0:100Z",
    };
    static const char marks[] = "0129Tt.:-+Zz ,";
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char text[40];
        size_t len = strlen(texts[i]);
        for (size_t cut = 0; cut <= len; cut++) {
            check((bay_str){texts[i], cut});
        }
        for (size_t at = 0; at < len * len; at++) { /* one or two of its signs are others */
            for (size_t a = 0; a < sizeof(marks) - 1; a++) {
                for (size_t b = 0; b < sizeof(marks) - 1; b++) {
                    memcpy(text, texts[i], len);
                    text[at / len] = marks[a];
                    text[at % len] = marks[b];
                    check((bay_str){text, len});
                }
            }
        }
    }
    assert_true(normal_ones > 1000);
    assert_true(other_ones > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_is_what_would_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
