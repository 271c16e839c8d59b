/* Rates as they are written, and whose buckets a call fills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "policy/limits.h"

enum { HOUR = 3600 * 1000, NOW = 5 * HOUR };

static policy_rate rate(const char *text)
{
    policy_rate made = {0};
    bay_diag diag = {0};
    if (policy_rate_parse(str_of(text), &made, &diag) != BAY_OK) {
        fail_msg("%s: %s", text, diag.text);
    }
    return made;
}

static void rates_are_read(void **state)
{
    static const char *const wrong[] = {
        "",
        "60",
        "60/",
        "/min",
        "0/min",
        "-1/min",
        "60/m",
        "60/minute",
        "abc/min",
        "60/min burst",
        "60/min burst 0",
        "60/min burst 1x",
        "1.5/s",
        "60 / min",
        "60/min 20",
        "1000001/s",
        "99999999999/s",
        "60/min burst 1000001",
        "60/min burst 20 30",
    };
    char text[POLICY_RATE_TEXT];
    (void)state;
    policy_rate plain = rate("60/min");
    assert_int_equal(plain.count, 60);
    assert_int_equal(plain.burst, 60);
    assert_int_equal(plain.period_ms, 60000);
    policy_rate burst = rate(" 5/d burst  10 ");
    assert_int_equal(burst.count, 5);
    assert_int_equal(burst.burst, 10);
    assert_int_equal(burst.period_ms, 24 * HOUR);
    policy_rate_text(&burst, text);
    assert_string_equal(text, "5 a day and 10 at once");
    policy_rate_text(&plain, text);
    assert_string_equal(text, "60 a minute");
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        policy_rate made = {7, 7, 7};
        bay_diag diag = {0};
        if (policy_rate_parse(str_of(wrong[i]), &made, &diag) != BAY_ERR_SYNTAX) {
            fail_msg("\"%s\" was read", wrong[i]);
        }
        assert_int_equal(made.count, 7); /* as it was */
        assert_non_null(strstr(diag.text, "60/min burst 20"));
    }
}

static const auth_principal *user(const char *subject)
{
    const auth_principal *made = NULL;
    principal_parts parts = {.proof = PRINCIPAL_TOKEN,
                             .issuer = STR("https://login.example"),
                             .subject = str_of(subject)};
    assert_int_equal(principal_new(&parts, &made), BAY_OK);
    return made;
}

static bool spends(policy_limits *self, const auth_principal *who, const char *name,
                   const policy_tool *tool, policy_excess *out)
{
    policy_payer payer = {who, NULL};
    policy_name about = {.kind = POLICY_TOOL, .server = STR("s"), .name = str_of(name)};
    return policy_limits_spend(self, &payer, &about, tool, NOW, out);
}

static void each_has_buckets_of_its_own(void **state)
{
    policy_limits self = {0};
    policy_rates rates = {.server = rate("10/h"), .tool = rate("7/h")};
    policy_tool tool = {.rate = rate("3/h")};
    policy_excess why = {0};
    buckets *table = NULL;
    const auth_principal *ann = user("ann");
    const auth_principal *bob = user("bob");
    (void)state;
    assert_int_equal(buckets_new(POLICY_BUCKETS, &table), BAY_OK);
    policy_limits_set(&self, table, &rates);
    for (int i = 0; i < 3; i++) {
        assert_true(spends(&self, ann, "s.a", &tool, &why));
    }
    for (int i = 0; i < 100; i++) { /* refusals drain nothing */
        assert_false(spends(&self, ann, "s.a", &tool, &why));
    }
    assert_non_null(strstr(why.text, "one caller may call this at most 3 a hour"));
    assert_true(why.retry_after_ms > 0 && why.retry_after_ms <= HOUR);
    for (int i = 0; i < 3; i++) {
        assert_true(spends(&self, bob, "s.a", &tool, &why));
    }
    policy_tool total = {.total = rate("9/h")}; /* in place of rates.tool, which has 7 */
    assert_true(spends(&self, NULL, "s.a", &total, &why));
    assert_true(spends(&self, NULL, "s.a", &(policy_tool){0}, &why) == false);
    assert_non_null(strstr(why.text, "all callers together may call this at most 7 a hour"));
    for (int i = 0; i < 3; i++) {
        assert_true(spends(&self, ann, "s.b", &tool, &why));
    }
    assert_false(spends(&self, bob, "s.c", &tool, &why));
    assert_non_null(strstr(why.text, "this server at most 10 a hour"));
    /* a reload changes rates, not buckets */
    rates.server = rate("10/h burst 12");
    policy_limits_set(&self, table, &rates);
    policy_tool dear = {.cost = 3};
    assert_false(spends(&self, bob, "s.c", &dear, &why));
    dear.cost = 1;
    assert_true(spends(&self, bob, "s.c", &dear, &why));
    policy_limits_fini(&self);
    buckets_unref(table);
    principal_unref(ann);
    principal_unref(bob);
}

static void two_payers_never_share_a_bucket(void **state)
{
    policy_limits self = {0};
    policy_rates rates = {.principal = rate("1/h")};
    policy_excess why = {0};
    buckets *table = NULL;
    (void)state;
    static const char *const subjects[] = {"a", "ab", "b", "192.0.2.1", " a", "A"};
    assert_int_equal(buckets_new(POLICY_BUCKETS, &table), BAY_OK);
    policy_limits_set(&self, table, &rates);
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        const auth_principal *one = user(subjects[i]);
        policy_payer payer = {one, NULL};
        assert_true(policy_limits_enter(&self, &payer, NOW, &why));
        assert_false(policy_limits_enter(&self, &payer, NOW, &why));
        principal_unref(one);
    }
    static const char *const addresses[] = {"192.0.2.1", "192.0.2.2", "2001:db8:0:1::1",
                                            "2001:db8:0:2::1"};
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        policy_origin origin = {.has_address = true};
        policy_payer payer = {NULL, &origin};
        assert_int_equal(address_parse(str_of(addresses[i]), &origin.address), BAY_OK);
        assert_true(policy_limits_enter(&self, &payer, NOW, &why));
        assert_false(policy_limits_enter(&self, &payer, NOW, &why));
        /* a bucket of requests is none of calls */
        assert_true(policy_limits_admits(&self, &origin.address, NOW, &why));
    }
    policy_limits_fini(&self);
    buckets_unref(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_read),
        cmocka_unit_test(each_has_buckets_of_its_own),
        cmocka_unit_test(two_payers_never_share_a_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
