/* policy explain and policy test, as a person or a script runs them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/program.h"

static char folder[] = "/tmp/policy.XXXXXX";
static char settings[64];
static char examples[64];

#define POLICY(...) PATCHBAY("policy", __VA_ARGS__, "--config", settings)

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Lines 8 to 14 are rules. */
static void write_settings(void)
{
    write_file(settings, "mcpServers: {files: {command: x}, billing: {command: x}}\n"
                         "agents: {research: {url: 'http://127.0.0.1:1'}}\n"
                         "groups:\n"
                         "  ops: {claims: {/groups: {has: ops}}}\n"
                         "policy:\n"
                         "  default: deny\n"
                         "  rules:\n"
                         "    - allow: files.read\n"
                         "    - {allow: files.write, who: {scopes: [w]}, "
                         "args: {/path: {prefix: /srv/}}}\n"
                         "    - {allow: ['billing.*', 'agent:research'], who: {group: ops}}\n"
                         "    - {approve: billing.pay, args: {/amount: {gt: 1000}}}\n"
                         "    - {deny: '*.drop_*'}\n"
                         "    - {allow: files.org, who: {header: {X-Org: acme}}}\n"
                         "    - {allow: files.near, who: {address: 10.0.0.0/8}}\n");
}

static void a_wrong_command_line_is_told(void **state)
{
    static const char *const wrong[][4] = {
        {"explain", NULL, NULL, NULL},
        {"test", NULL, NULL, NULL},
        {"tell", "files.read", NULL, NULL},
        {"explain", "files.read", "path", NULL},
        {"test", "a", "b", NULL},
        {"test", "a", "--json", NULL},
        {"test", "a", "--as", "ann"},
        {"explain", "files.read", "--scope", "w"},
        {"explain", "x", "--address", "there"},
        {"explain", "x", "--header", "none"},
    };
    (void)state;
    write_settings();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *argv[9] = {binary, "policy", "--config", settings};
        size_t count = 4;
        for (size_t k = 0; k < 4 && wrong[i][k] != NULL; k++) {
            argv[count++] = wrong[i][k];
        }
        start(&result, argv);
        finish(&result);
        if (result.code != 2 || result.err[0] == '\0') {
            fail_msg("%zu: exit code %d: %s%s", i, result.code, result.out, result.err);
        }
    }
    POLICY("explain", "files.read", "--as", "ann", "--claims", "{");
    assert_int_equal(result.code, 2);
    POLICY("explain", "files.read", "--as", "ann", "--claims", "[]");
    assert_int_equal(result.code, 2);
    write_file(settings, "mcpServers: {files: {command: x}}\n");
    POLICY("explain", "files.read");
    assert_int_equal(result.code, 6);
    assert_has(result.err, "has no policy");
}

#define EXPLAINS(said, ...)                                                                        \
    do {                                                                                           \
        POLICY("explain", __VA_ARGS__);                                                            \
        assert_int_equal(result.code, 0);                                                          \
        assert_has(result.out, said);                                                              \
    } while (0)

static void each_outcome_is_explained(void **state)
{
    (void)state;
    write_settings();
    EXPLAINS("files.read: allowed, by the rule in line 8; it is listed\n"
             "  line 8     allow    yes\n"
             "  6 rules are about something else\n",
             "files.read");
    EXPLAINS("hidden, by policy.default; it is not listed\n", "files.other");
    EXPLAINS("hidden, by the rule in line 12; it is not listed\n", "files.drop_all");
    EXPLAINS("locked, by the rule in line 9; the scopes w would do; it is listed\n", "files.write",
             "--as", "ann", "path=/srv/a");
    EXPLAINS("allowed, by the rule in line 9", "files.write", "--as", "ann", "--scope", "r w",
             "path=/srv/a");
    EXPLAINS("denied, by policy.default; it is listed\n  line 9     allow    no\n", "files.write",
             "--as", "ann", "--scope", "w", "path=/etc/a");
    EXPLAINS("denied, by policy.default; it is listed\n  line 9     allow    unknown: what it "
             "reads is missing or has another type\n",
             "files.write", "--as", "ann", "--scope", "w", "path:=7");
    EXPLAINS("approval needed, by the rule in line 11", "billing.pay", "--as", "ann", "--claims",
             "{\"groups\":[\"ops\"]}", "--arguments", "{\"amount\":1000.5}");
    EXPLAINS("hidden", "billing.pay", "--as", "ann");
    EXPLAINS("allowed", "agent:research", "--as", "ann", "--claims", "{\"groups\":\"ops\"}");
    EXPLAINS("allowed", "files.org", "--header", "x-org: acme");
    EXPLAINS("hidden", "files.org", "--header", "X-Org: acme", "--header", "x-org: acme");
    EXPLAINS("allowed", "files.near", "--address", "10.1.2.3");
    EXPLAINS("hidden", "files.near", "--address", "192.0.2.1");
    EXPLAINS("unknown", "files.near");
    EXPLAINS("{\"name\":\"files.write\",\"outcome\":\"locked\",\"line\":9,\"listed\":true,"
             "\"scopes\":\"w\",\"rules\":[{\"line\":9,\"effect\":\"allow\",\"holds\":\"no\"}]}",
             "files.write", "--as", "ann", "path=/srv/a", "--json");
}

static void what_is_wrong_with_a_file_is_said(void **state)
{
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"", "a file of examples is a list"},
        {"name: x\n", "a file of examples is a list"},
        {"- [\n", "not valid YAML"},
        {"- 7\n", ":1: an example is a map"},
        {"- expect: hidden\n", ":1: name is missing"},
        {"- name: x\n", ":1: expect is missing"},
        {"- name: x\n  expect: yes\n", "expect needs allowed, approval needed"},
        {"- name: x\n  expcet: hidden\n", ":2: unknown key \"expcet\": did you mean \"expect\"?"},
        {"- name: x\n  expect: hidden\n  args: []\n", ":3: args needs a map"},
        {"- name: x\n  expect: hidden\n  scopes: w\n", "are those of a subject"},
        {"- name: x\n  expect: hidden\n  address: here\n", "the address cannot be read"},
        {"- name: x\n  expect: hidden\n  header: {a: [b]}\n", "header needs a map of texts"},
        {"- name: x\n  name: y\n", "stands twice"},
    };
    (void)state;
    write_settings();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_file(examples, cases[i].text);
        POLICY("test", examples);
        if (result.code != 6 || strstr(result.err, cases[i].said) == NULL) {
            fail_msg("exit code %d, and \"%s\" in: %s", result.code, cases[i].said, result.err);
        }
    }
    POLICY("test", "/no/such/file");
    assert_int_equal(result.code, 6);
    assert_has(result.err, "/no/such/file: ");
}

static void examples_hold_or_fail(void **state)
{
    (void)state;
    write_settings();
    write_file(examples,
               "- {name: files.read, expect: allowed}\n"
               "- {name: files.read, method: tools/list, expect: allowed}\n"
               "- {name: files.write, as: ann, scopes: w, args: {path: /srv/a}, expect: allowed}\n"
               "- {name: files.write, as: ann, expect: locked}\n"
               "- {name: billing.pay, as: bob, claims: {groups: [ops]}, args: {amount: 5000}, "
               "expect: approval needed}\n"
               "- {name: files.write, certificate: 'spiffe://a/b', scopes: w, expect: denied}\n"
               "- {name: files.org, header: {x-org: acme}, expect: allowed}\n"
               "- {name: files.near, address: 10.0.0.7, expect: allowed}\n");
    POLICY("test", examples);
    assert_string_equal(result.err, "");
    assert_ended(0, "8 examples, 0 failed\n");
    write_file(examples, "- {name: files.read, expect: allowed}\n"
                         "- {name: files.drop_all, expect: denied}\n");
    POLICY("test", examples);
    assert_int_equal(result.code, 12);
    assert_has(result.out,
               ":2: expected \"denied\"; files.drop_all: hidden, by the rule in line 12");
    assert_has(result.out, "2 examples, 1 failed\n");
}

static int open_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(settings, sizeof(settings), "%s/patchbay.yaml", folder);
    snprintf(examples, sizeof(examples), "%s/examples.yaml", folder);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    (void)remove(settings);
    (void)remove(examples);
    return rmdir(folder);
}

int main(void)
{
    find_programs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_command_line_is_told),
        cmocka_unit_test(each_outcome_is_explained),
        cmocka_unit_test(what_is_wrong_with_a_file_is_said),
        cmocka_unit_test(examples_hold_or_fail),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
