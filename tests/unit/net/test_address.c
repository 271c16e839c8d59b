/* Which addresses are what, and which rules let them through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/str.h"
#include "net/address.h"
#include "support/failing_memory.h"

static void no_addresses(void **state)
{
    (void)state;
    const char *const texts[] = {
        "",          "1",         "127.1",      "0x7f.0.0.1",   "127.0.0.1 ",
        "256.0.0.1", "1.2.3.",    "1.2.3.4/32", "fe80::1%eth0", "[::1]",
        "::1::",     "localhost", "1:2:3",      "017700000001", "::ffff:1.2.3",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        net_address address;
        assert_int_equal(address_parse(str_of(texts[i]), &address), BAY_ERR_SYNTAX);
    }
    net_address address;
    assert_int_equal(address_parse((bay_str){"127.0.0.1\0x", 11}, &address), BAY_ERR_SYNTAX);
}

static void classes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        address_class kind;
    } rows[] = {
        {"0.0.0.0", ADDRESS_UNSPECIFIED},
        {"0.255.255.255", ADDRESS_UNSPECIFIED},
        {"::", ADDRESS_UNSPECIFIED},
        {"127.0.0.1", ADDRESS_LOOPBACK},
        {"127.255.255.255", ADDRESS_LOOPBACK},
        {"::1", ADDRESS_LOOPBACK},
        {"::ffff:127.0.0.1", ADDRESS_LOOPBACK},
        {"::127.0.0.1", ADDRESS_LOOPBACK},
        {"64:ff9b::7f00:1", ADDRESS_LOOPBACK},
        {"2002:7f00:1::", ADDRESS_LOOPBACK},
        {"2a00:1450::5efe:127.0.0.1", ADDRESS_LOOPBACK},
        {"2a00:1450::200:5efe:10.0.0.1", ADDRESS_PRIVATE},
        {"10.0.0.0", ADDRESS_PRIVATE},
        {"10.255.255.255", ADDRESS_PRIVATE},
        {"172.16.0.0", ADDRESS_PRIVATE},
        {"172.31.255.255", ADDRESS_PRIVATE},
        {"192.168.0.0", ADDRESS_PRIVATE},
        {"192.168.255.255", ADDRESS_PRIVATE},
        {"::ffff:192.168.1.1", ADDRESS_PRIVATE},
        {"2002:c0a8:101::1", ADDRESS_PRIVATE},
        {"64:ff9b::10.0.0.1", ADDRESS_PRIVATE},
        {"64:ff9b:1::1", ADDRESS_PRIVATE},
        {"fc00::1", ADDRESS_PRIVATE},
        {"fdff::1", ADDRESS_PRIVATE},
        {"fec0::1", ADDRESS_PRIVATE},
        {"100.64.0.0", ADDRESS_SHARED},
        {"100.127.255.255", ADDRESS_SHARED},
        {"169.254.0.1", ADDRESS_LINK_LOCAL},
        {"fe80::1", ADDRESS_LINK_LOCAL},
        {"febf::1", ADDRESS_LINK_LOCAL},
        {"169.254.169.254", ADDRESS_METADATA},
        {"::ffff:169.254.169.254", ADDRESS_METADATA},
        {"64:ff9b::169.254.169.254", ADDRESS_METADATA},
        {"169.254.170.2", ADDRESS_METADATA},
        {"100.100.100.200", ADDRESS_METADATA},
        {"168.63.129.16", ADDRESS_METADATA},
        {"fd00:ec2::254", ADDRESS_METADATA},
        {"224.0.0.1", ADDRESS_MULTICAST},
        {"239.255.255.255", ADDRESS_MULTICAST},
        {"ff02::1", ADDRESS_MULTICAST},
        {"192.0.2.1", ADDRESS_DOCUMENTATION},
        {"198.51.100.1", ADDRESS_DOCUMENTATION},
        {"203.0.113.255", ADDRESS_DOCUMENTATION},
        {"198.18.0.1", ADDRESS_DOCUMENTATION},
        {"198.19.255.255", ADDRESS_DOCUMENTATION},
        {"2001:db8::1", ADDRESS_DOCUMENTATION},
        {"3fff::1", ADDRESS_DOCUMENTATION},
        {"192.0.0.1", ADDRESS_RESERVED},
        {"192.88.99.1", ADDRESS_RESERVED},
        {"240.0.0.1", ADDRESS_RESERVED},
        {"255.255.255.255", ADDRESS_RESERVED},
        {"2001::1", ADDRESS_RESERVED},
        {"100::1", ADDRESS_RESERVED},
        {"5f00::1", ADDRESS_RESERVED},
        {"4000::1", ADDRESS_RESERVED},
        {"1.0.0.0", ADDRESS_GLOBAL},
        {"9.255.255.255", ADDRESS_GLOBAL},
        {"11.0.0.0", ADDRESS_GLOBAL},
        {"100.63.255.255", ADDRESS_GLOBAL},
        {"100.128.0.0", ADDRESS_GLOBAL},
        {"126.255.255.255", ADDRESS_GLOBAL},
        {"128.0.0.0", ADDRESS_GLOBAL},
        {"172.15.255.255", ADDRESS_GLOBAL},
        {"172.32.0.0", ADDRESS_GLOBAL},
        {"192.167.255.255", ADDRESS_GLOBAL},
        {"198.20.0.0", ADDRESS_GLOBAL},
        {"223.255.255.255", ADDRESS_GLOBAL},
        {"2a00:1450::1", ADDRESS_GLOBAL},
        {"2001:200::1", ADDRESS_GLOBAL},
        {"2002:808:808::1", ADDRESS_GLOBAL},
        {"64:ff9b::8.8.8.8", ADDRESS_GLOBAL},
        {"2a00:1450::5efe:8.8.8.8", ADDRESS_GLOBAL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        net_address address;
        assert_int_equal(address_parse(str_of(rows[i].text), &address), BAY_OK);
        if (address_class_of(&address) != rows[i].kind) {
            fail_msg("%s is %s", rows[i].text, address_class_text(address_class_of(&address)));
        }
    }
}

static void rules_that_are_none(void **state)
{
    (void)state;
    const char *const texts[] = {"",          "*",           "*.",   "10.0.0.0/33", "::1/129",
                                 "10.0.0",    "a..b",        ".a",   "a/8",         "10.0.0.0/",
                                 "a b",       "*.10",        "1234", "10.0.0.0/-1", "http://a",
                                 "[::1]/128", "127.0.0.1:80"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        bay_str text = str_of(texts[i]);
        address_rules *rules = NULL;
        bay_diag diag = {.code = BAY_OK};
        if (address_rules_new(&text, 1, &rules, &diag) != BAY_ERR_SYNTAX) {
            fail_msg("\"%s\" is taken for a rule", texts[i]);
        }
        assert_int_equal(diag.code, BAY_ERR_SYNTAX);
    }
    bay_str many[ADDRESS_RULES + 1];
    for (size_t i = 0; i <= ADDRESS_RULES; i++) {
        many[i] = STR("10.0.0.1");
    }
    address_rules *rules = NULL;
    assert_int_equal(address_rules_new(many, ADDRESS_RULES + 1, &rules, NULL), BAY_ERR_LIMIT);
    assert_int_equal(address_rules_new(many, ADDRESS_RULES, &rules, NULL), BAY_OK);
    address_rules_free(rules);
    address_rules_free(NULL);
}

static void rules(void **state)
{
    (void)state;
    const bay_str texts[] = {STR("127.0.0.1"),      STR("10.1.0.0/16"), STR("fd00::/8"),
                             STR("Hooks.Internal"), STR("*.lan"),       STR("169.254.170.2")};
    address_rules *made = NULL;
    assert_int_equal(address_rules_new(texts, 6, &made, NULL), BAY_OK);
    static const struct {
        const char *host;
        const char *address;
        bool is_permitted;
    } rows[] = {
        {"x", "127.0.0.2", false},
        {"x", "10.2.0.0", false},
        {"x", "10.0.255.255", false},
        {"x", "fc00::1", false},
        {"x.hooks.internal", "10.9.9.9", false},
        {"hooks.internal.evil", "10.9.9.9", false},
        {"lan", "10.9.9.9", false},
        {"evillan", "10.9.9.9", false},
        {"hooks.internal", "169.254.169.254", false}, /* never by name */
        {"", "10.9.9.9", false},
        {"x", "127.0.0.1", true},
        {"x", "10.1.255.255", true},
        {"x", "fdab::1", true},
        {"hooks.INTERNAL", "10.9.9.9", true},
        {"hooks.internal.", "127.0.0.9", true},
        {"a.lan", "192.168.0.1", true},
        {"x", "169.254.170.2", true},
        {"x", "8.8.8.8", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        net_address address;
        assert_int_equal(address_parse(str_of(rows[i].address), &address), BAY_OK);
        if (address_rules_permit(made, str_of(rows[i].host), &address) != rows[i].is_permitted) {
            fail_msg("%s at %s", rows[i].host, rows[i].address);
        }
    }
    address_rules_free(made);
    net_address address;
    assert_int_equal(address_parse(STR("127.0.0.1"), &address), BAY_OK);
    assert_false(address_rules_permit(NULL, STR("localhost"), &address));
}

static void without_memory(void **state)
{
    (void)state;
    const bay_str texts[] = {STR("127.0.0.1"), STR("a.b")};
    for (size_t at = 0; failing_memory_start(at); at++) {
        address_rules *made = NULL;
        bay_err err = address_rules_new(texts, 2, &made, NULL);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        address_rules_free(made);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_addresses),        cmocka_unit_test(classes),
        cmocka_unit_test(rules_that_are_none), cmocka_unit_test(rules),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
