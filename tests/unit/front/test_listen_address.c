/* Who can reach an address, and whether it may be served there: decided by what it resolves to,
 * never by how it is written. And how it is written for people and for cards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "front/listen_address.h"

static const listen_policy nobody_asked = {false, false, "KEYS", "OPENING", NULL};
static const listen_policy authenticated = {true, false, "KEYS", "OPENING", NULL};
static const listen_policy opened = {false, true, "KEYS", "OPENING", NULL};
static const listen_policy unnamed = {true, false, "KEYS", "OPENING", "URL"};
static const listen_policy confused = {true, true, "KEYS", "OPENING", NULL};

static void what_others_reach_is_refused(void **state)
{
    (void)state;
    static const char *const others[] = {
        "0.0.0.0:0",
        ":0",
        "*:0",
        "0:0",
        "[::]:0",
        "[0:0:0:0:0:0:0:0]:0",
        "[::ffff:0.0.0.0]:0",
        "[::ffff:192.0.2.1]:0",
        "192.0.2.1:0",
        "128.0.0.1:0",
        "126.255.255.255:0",
        "2147483649:0", /* 128.0.0.1 */
        "[::2]:0",
        "[::127.0.0.1]:0",
        "[64:ff9b::7f00:1]:0",
        "[fe80::1]:0",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        bay_diag diag = {.code = BAY_OK};
        bool is_local = true;
        if (listen_policy_admit(&nobody_asked, str_of(others[i]), &is_local, &diag) !=
            BAY_ERR_DENIED) {
            fail_msg("%s", others[i]);
        }
        assert_true(is_local); /* untouched */
        assert_non_null(strstr(diag.text, others[i]));
        assert_non_null(strstr(diag.text, "use KEYS, or OPENING if anybody may call"));
        assert_int_equal(listen_policy_admit(&authenticated, str_of(others[i]), &is_local, NULL),
                         BAY_OK);
        assert_false(is_local);
        is_local = true;
        assert_int_equal(listen_policy_admit(&opened, str_of(others[i]), &is_local, NULL), BAY_OK);
        assert_false(is_local);
        assert_int_equal(listen_policy_admit(&unnamed, str_of(others[i]), &is_local, &diag),
                         BAY_ERR_INVALID);
        assert_non_null(strstr(diag.text, "set URL"));
    }
}

static void what_only_this_machine_reaches_is_served(void **state)
{
    (void)state;
    static const char *const own[] = {
        "127.0.0.1:0",       "127.255.255.254:80",        "127.1:0",     "2130706433:0",
        "[::1]:0",           "[0:0:0:0:0:0:0:1]:0",       "localhost:0", "LOCALHOST:0",
        "[::ffff:7f00:1]:0", "[::ffff:127.255.0.1]:8080",
    };
    const listen_policy *const policies[] = {&nobody_asked, &authenticated, &opened, &unnamed};
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        for (size_t k = 0; k < ARRAY_LEN(policies); k++) {
            bool is_local = false;
            if (listen_policy_admit(policies[k], str_of(own[i]), &is_local, NULL) != BAY_OK ||
                !is_local) {
                fail_msg("%s", own[i]);
            }
        }
    }
}

static void what_cannot_be_decided_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",      "127.0.0.1",       "[::1]",         "[::1:0",
                                      "::1:0", "localhost:99999", "127.0.0.1:http"};
    bool is_local = true;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(listen_policy_admit(&opened, str_of(bad[i]), &is_local, NULL),
                         BAY_ERR_INVALID);
    }
    assert_int_equal(listen_policy_admit(&nobody_asked, STR("..:0"), &is_local, NULL),
                     BAY_ERR_RESOLVE);
    assert_true(is_local);
}

static void keys_and_an_open_door_exclude_each_other(void **state)
{
    (void)state;
    bay_diag diag = {.code = BAY_OK};
    bool is_local = false;
    assert_int_equal(listen_policy_check(&confused, &diag), BAY_ERR_INVALID);
    assert_non_null(strstr(diag.text, "KEYS"));
    assert_non_null(strstr(diag.text, "OPENING"));
    assert_int_equal(listen_policy_admit(&confused, STR("127.0.0.1:0"), &is_local, NULL),
                     BAY_ERR_INVALID);
    assert_int_equal(listen_policy_check(&authenticated, &diag), BAY_OK);
    assert_int_equal(listen_policy_check(&opened, &diag), BAY_OK);
    assert_int_equal(listen_policy_check(&nobody_asked, &diag), BAY_OK);
}

static void names_of_this_machine_are_remembered(void **state)
{
    (void)state;
    listen_names names = {.count = 0};
    assert_false(listen_names_have(NULL, STR("machine")));
    assert_false(listen_names_have(&names, STR("")));
    static const char *const addresses[] = {"127.0.0.1:0", "[::1]:80",  "localhost:0", "a b:0",
                                            ":0",          "machine:0", "Machine:1"};
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        listen_names_add(&names, str_of(addresses[i]));
    }
    assert_int_equal(names.count, 1); /* what is loopback by its text is known anyway */
    assert_true(listen_names_have(&names, STR("MACHINE")));
    assert_false(listen_names_have(&names, STR("machine.example")));
    assert_false(listen_names_have(&names, STR("")));
    for (int i = 0; i < 2 * LISTEN_NAMES; i++) {
        char address[32];
        (void)snprintf(address, sizeof(address), "m%d:0", i);
        listen_names_add(&names, str_of(address));
    }
    assert_int_equal(names.count, LISTEN_NAMES);
}

typedef struct written {
    const char *address;
    const char *as_it_is;
    const char *reachable; /* NULL: the machine's name */
} written;

static void an_address_is_written_with_its_port(void **state)
{
    (void)state;
    static const written cases[] = {
        {"127.0.0.1:0", "127.0.0.1:81", "127.0.0.1:81"},
        {"[::1]:8080", "[::1]:81", "[::1]:81"},
        {"gateway.example:0", "gateway.example:81", "gateway.example:81"},
        {"0.0.0.0:0", "0.0.0.0:81", NULL},
        {"[::]:0", "[::]:81", NULL},
        {"[::ffff:0.0.0.0]:0", "[::ffff:0.0.0.0]:81", NULL},
        {":0", "[::]:81", NULL},
        {"*:0", "[::]:81", NULL},
    };
    char machine[256];
    char name[300];
    assert_int_equal(gethostname(machine, sizeof(machine)), 0);
    (void)snprintf(name, sizeof(name), "%.255s:81", machine);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[512];
        buf out = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
        listen_address_write(str_of(cases[i].address), 81, &out);
        assert_true(str_eq(buf_view(&out), str_of(cases[i].as_it_is)));
        buf_clear(&out);
        listen_address_write_reachable(str_of(cases[i].address), 81, &out);
        const char *wanted = cases[i].reachable != NULL ? cases[i].reachable : name;
        assert_true(str_eq(buf_view(&out), str_of(wanted)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_reach_is_refused),
        cmocka_unit_test(what_only_this_machine_reaches_is_served),
        cmocka_unit_test(what_cannot_be_decided_is_refused),
        cmocka_unit_test(keys_and_an_open_door_exclude_each_other),
        cmocka_unit_test(names_of_this_machine_are_remembered),
        cmocka_unit_test(an_address_is_written_with_its_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
