/* Where cards may lead: by what the agent itself was seen at, and by what the configuration says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "agents/address_filter.h" /* cmocka takes the word "fail" */

#include <cmocka.h>

#include "base/check.h"

static bool may(agents_address_filter *self, const char *host, const char *address)
{
    net_address parsed;
    assert_int_equal(address_parse(str_of(address), &parsed), BAY_OK);
    return agents_address_filter_permit(self, str_of(host), &parsed);
}

static agents_address_filter seen_at(const agents_settings *settings, const char *host,
                                     const char *address)
{
    agents_address_filter self;
    bay_diag diag = {0};
    assert_int_equal(agents_address_filter_init(&self, settings, &diag), BAY_OK);
    if (address != NULL) {
        assert_true(may(&self, host, address)); /* it is what was configured */
    }
    return self;
}

static const char *const inside[] = {"127.0.0.1", "::1", "0.0.0.0", "::ffff:127.0.0.1"};
static const char *const network[] = {"10.1.2.3",   "192.168.0.1", "fd00::1",
                                      "100.64.0.1", "169.254.1.1", "64:ff9b::a00:1"};
static const char *const metadata[] = {"169.254.169.254", "fd00:ec2::254"};

static void check(agents_address_filter *self, bool may_inside, bool may_network)
{
    for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
        assert_int_equal(may(self, "other", inside[i]), may_inside);
    }
    for (size_t i = 0; i < ARRAY_LEN(network); i++) {
        assert_int_equal(may(self, "other", network[i]), may_network);
    }
    for (size_t i = 0; i < ARRAY_LEN(metadata); i++) {
        assert_false(may(self, "other", metadata[i]));
    }
    assert_true(may(self, "other", "8.8.8.8"));
    assert_true(may(self, "other", "2600::1"));
}

static void a_card_leads_no_nearer_than_its_own_host(void **state)
{
    (void)state;
    agents_settings settings = {.name = STR("far"), .url = STR("https://agent.example/x")};
    agents_address_filter self = seen_at(&settings, "AGENT.example", "9.9.9.9");
    check(&self, false, false);
    /* once far, always far: what its name resolves to is not for it to choose */
    assert_true(may(&self, "agent.example", "127.0.0.1"));
    check(&self, false, false);
    self = seen_at(&settings, "agent.example", "10.0.0.1");
    check(&self, false, true);
    self = seen_at(&settings, "agent.example", "127.0.0.1");
    check(&self, true, true);
    self = seen_at(&settings, NULL, NULL); /* never seen */
    check(&self, false, false);
    agents_address_filter_fini(&self);
}

/* What is known of an agent that stands on this machine holds until it is seen elsewhere. */
static void who_is_here(void **state)
{
    (void)state;
    agents_settings settings = {.name = STR("far"), .url = STR("https://agent.example/x")};
    agents_address_filter self = seen_at(&settings, NULL, NULL);
    assert_false(address_guard_is_here(&self.guard)); /* never seen */
    assert_true(may(&self, "agent.example", "127.0.0.1"));
    assert_true(address_guard_is_here(&self.guard));
    assert_true(may(&self, "agent.example", "10.0.0.1"));
    assert_false(address_guard_is_here(&self.guard));
    assert_true(may(&self, "agent.example", "::1"));
    assert_false(address_guard_is_here(&self.guard));
    agents_address_filter_fini(&self);
}

static void the_configuration_may_say_more(void **state)
{
    (void)state;
    static const bay_str allow[] = {STR_INIT("10.0.0.0/8"), STR_INIT("*.internal")};
    static const bay_str jku[] = {STR_INIT("https://keys.example/set.json")};
    agents_settings settings = {.name = STR("far"),
                                .url = STR("https://agent.example"),
                                .allow = allow,
                                .allow_count = ARRAY_LEN(allow),
                                .verify = {.jku = jku, .jku_count = ARRAY_LEN(jku)}};
    agents_address_filter self = seen_at(&settings, "agent.example", "9.9.9.9");
    assert_true(may(&self, "other", "10.1.2.3"));
    assert_true(may(&self, "a.internal", "192.168.0.1"));
    /* where keys are is where keys are fetched from, nowhere that a card may lead */
    assert_false(may(&self, "keys.example", "192.168.0.1"));
    net_address near;
    assert_int_equal(address_parse(STR("192.168.0.1"), &near), BAY_OK);
    assert_true(agents_address_filter_permit_keys(&self, STR("Keys.example"), &near));
    assert_false(agents_address_filter_permit_keys(&self, STR("keys.example."), &near));
    assert_false(agents_address_filter_permit_keys(&self, STR("other"), &near));
    assert_false(agents_address_filter_permit_keys(&self, STR("agent.example"), &near));
    assert_false(may(&self, "other", "192.168.0.1"));
    assert_false(may(&self, "a.internal", "169.254.169.254"));
    agents_address_filter_fini(&self);
    static const bay_str wrong[] = {STR_INIT("10.0.0.0/99")};
    bay_diag diag = {0};
    settings.allow = wrong;
    settings.allow_count = 1;
    assert_int_equal(agents_address_filter_init(&self, &settings, &diag), BAY_ERR_SYNTAX);
    agents_address_filter_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_leads_no_nearer_than_its_own_host),
        cmocka_unit_test(who_is_here),
        cmocka_unit_test(the_configuration_may_say_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
