/* `credentials` of servers and agents, and secrets from files and programs: what is refused and in
 * which words, that no message shows a value, and what comes of those that are good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "config_testing.h"

typedef struct mistake {
    const char *text;
    const char *report; /* a part of it */
} mistake;

#define SERVER "mcpServers:\n  a: {url: 'https://x/mcp', "
#define GOOD "clientId: gw, clientSecret: canary-s"
#define AT "issuer: 'https://as.example'"
#define IDP "idp: {issuer: 'https://idp.example', clientId: a, clientSecret: canary-i}"
#define CALLERS "auth: {issuers: {i: {url: 'https://i.example'}}}\n"

static const mistake mistakes[] = {
    {SERVER "credentials: {}}\n", ":2: mcpServers.a.credentials: clientId is missing"},
    {SERVER "credentials: exchange}\n", ":2: mcpServers.a.credentials needs a map of keys"},
    {SERVER "credentials: {clientSecret: canary-s}}\n", "clientId is missing"},
    {SERVER "credentials: {clientId: gw}}\n", "neither clientSecret nor key"},
    {SERVER "credentials: {" GOOD ", key: canary-k}}\n", "both clientSecret and key"},
    {SERVER "credentials: {clientId: gw, key: canary-k}}\n",
     ":2: mcpServers.a.credentials.key: it is no private key"},
    {SERVER "credentials: {" GOOD ", tokenFile: /t}}\n", "tokenFile is of grant: workload"},
    {SERVER "credentials: {grant: workload}}\n", "workload needs tokenFile"},
    {SERVER "credentials: {grant: workload, tokenFile: /t, clientId: a, clientSecret: canary-s}}\n",
     "the platform's token authenticates the gateway"},
    {SERVER "credentials: {grant: code, " GOOD "}}\n",
     "credentials.grant needs one of client, workload"},
    {SERVER "credentials: {" GOOD ", issuer: 'http://i.example'}}\n",
     ":2: mcpServers.a.credentials.issuer: write the issuer as https://host"},
    {SERVER "credentials: {" GOOD ", issuer: 'https://u:canary@i.example'}}\n",
     "credentials.issuer: write the issuer"},
    {SERVER "credentials: {" GOOD ", allow: ['10.0.0.0/99']}}\n", "credentials.allow: "},
    {SERVER "credentials: {" GOOD ", secret: x}}\n",
     "unknown key \"secret\" in mcpServers.a.credentials"},
    {SERVER "headers: {authorization: canary-h}, credentials: {" GOOD "}}\n",
     "headers have an Authorization, too"},
    {"mcpServers: {a: {command: x, credentials: {" GOOD "}}}\n", "for a server with a url"},
    {"mcpServers: {a: {url: 'http://x/mcp', credentials: {" GOOD "}}}\n", "in clear text"},
    {"agents: {a: {url: 'http://x/', credentials: {" GOOD "}}}\n",
     "agents.a.credentials: a token would go to the server in clear text"},
    {"agents: {a: {url: 'https://x/', credentials: {clientId: gw}}}\n",
     "agents.a.credentials: neither clientSecret nor key"},
    /* a token of each caller */
    {CALLERS SERVER "credentials: {grant: exchange, " GOOD "}}\n",
     ":3: mcpServers.a.credentials: issuer is missing"},
    {SERVER "credentials: {grant: exchange, " GOOD ", " AT "}}\n",
     ":2: mcpServers.a.credentials: no caller brings a token that could be exchanged"},
    {"agents: {a: {url: 'https://x/', credentials: {grant: exchange, " GOOD ", " AT "}}}\n",
     "agents.a.credentials: no caller brings a token"},
    {CALLERS SERVER "credentials: {grant: exchange, clientId: gw, " AT "}}\n",
     "neither clientSecret nor key"},
    {CALLERS SERVER "credentials: {grant: exchange, " GOOD ", " AT ", tokenFile: /t}}\n",
     "tokenFile is of grant: workload"},
    {CALLERS SERVER "credentials: {grant: exchange, " GOOD ", " AT ", " IDP "}}\n",
     "idp is of grant: idJag"},
    {SERVER "credentials: {" GOOD ", " IDP "}}\n", "idp is of grant: idJag"},
    {CALLERS SERVER "share: always, credentials: {grant: exchange, " GOOD ", " AT "}}\n",
     "mcpServers.a.share: always: callers with credentials of their own share no session"},
    {CALLERS SERVER "credentials: {grant: idJag, " GOOD ", " AT "}}\n", "idp.issuer is missing"},
    {CALLERS SERVER "credentials: {grant: idJag, " GOOD ", " AT
                    ", idp: {issuer: 'https://idp.example'}}}\n",
     "idp.clientId is missing"},
    {CALLERS SERVER "credentials: {grant: idJag, " GOOD ", " AT
                    ", idp: {issuer: 'https://idp.example', clientId: a}}}\n",
     "give idp either a clientSecret or a key"},
    {CALLERS SERVER
     "credentials: {grant: idJag, " GOOD ", " AT
     ", idp: {issuer: 'http://idp.example', clientId: a, clientSecret: canary-i}}}\n",
     "credentials.idp.issuer: write the issuer as https://host"},
    {CALLERS SERVER "credentials: {grant: idJag, " GOOD ", " AT
                    ", idp: {issuer: 'https://idp.example', clientId: a, key: canary-i}}}\n",
     "credentials.idp.key: it is no private key"},
    /* the vault */
    {SERVER "credentials: {grant: user}}\n",
     ":2: mcpServers.a.credentials: users' tokens are sealed with `keys`, and there are none"},
    {"store: /s\n" SERVER "credentials: {grant: user}}\n", "users' tokens are sealed with `keys`"},
    {"keys: [000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f]\n" SERVER
     "credentials: {grant: user}}\n",
     "users' tokens are kept in a store"},
    {"agents: {a: {url: 'https://x/', credentials: {grant: user}}}\n",
     "agents.a.credentials: users' tokens are sealed with `keys`"},
    {SERVER "credentials: {grant: user, clientSecret: canary-s}}\n", "clientId is missing"},
    {SERVER "credentials: {grant: user, " GOOD ", key: canary-k}}\n", "both clientSecret and key"},
    {SERVER "credentials: {grant: user, tokenFile: /t}}\n", "tokenFile is of grant: workload"},
    {SERVER "credentials: {grant: user, " IDP "}}\n", "idp is of grant: idJag"},
    /* secrets */
    {SERVER "credentials: {clientId: gw, clientSecret: '${file:secret}'}}\n",
     ":2: mcpServers.a.credentials.clientSecret: ${file:secret}: write the whole path"},
    {SERVER "credentials: {clientId: gw, clientSecret: '${file:}'}}\n", "write the whole path"},
    {SERVER "credentials: {clientId: gw, clientSecret: '${file:/nowhere/s}'}}\n",
     "${file:/nowhere/s}: No such file"},
    {SERVER "credentials: {clientId: gw, clientSecret: '${file:/dev/null}'}}\n", "it is empty"},
    {SERVER "credentials: {clientId: gw, clientSecret: '${file:/dev/zero}'}}\n", "it is too long"},
    {SERVER "credentials: {clientId: gw, clientSecret: '${file:/dev}'}}\n", "Is a directory"},
    {SERVER "credentials: {clientId: gw, clientSecret: '${exec:false}'}}\n",
     "write the whole path"},
    {SERVER "credentials: {clientId: gw, clientSecret: '${exec:/bin/false}'}}\n", "it failed"},
    {SERVER "credentials: {clientId: gw, clientSecret: '${exec:/nowhere/p}'}}\n",
     "${exec:/nowhere/p}: "},
    {SERVER "credentials: {clientId: gw, clientSecret: '${exec:/bin/true}'}}\n", "it is empty"},
    {SERVER "credentials: {clientId: gw, clientSecret: '${exec:/bin/cat /dev/zero}'}}\n",
     "it is too long"},
    {SERVER
     "credentials: {clientId: gw, clientSecret: '${exec:/bin/echo 1 2 3 4 5 6 7 8 9 10 11 12 "
     "13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32}'}}\n",
     "more than 32 words"},
    {SERVER "credentials: {clientId: gw, clientSecret: '${command:x}'}}\n",
     "must name an environment variable"},
    {SERVER "credentials: {clientId: gw, clientSecret: '${input:x}'}}\n",
     "must name an environment variable"},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        config_report report;
        const config *loaded = NULL;
        buf text;
        buf_init(&text, 1 << 16);
        bay_err err =
            config_load_text(str_of(mistakes[i].text), STR("f"), NULL, NULL, &loaded, &report);
        config_report_write(&report, &text);
        buf_char(&text, '\0');
        if (err != BAY_ERR_SYNTAX || strstr(text.at, mistakes[i].report) == NULL ||
            strstr(text.at, "canary") != NULL) {
            fail_msg("%s: %d %s", mistakes[i].text, (int)err, text.at);
        }
        buf_fini(&text);
        config_free(loaded);
    }
}

/* ---- what is good ---------------------------------------------------------------------------- */

static const config *load(const char *text)
{
    config_report report;
    const config *loaded = NULL;
    if (config_load_text(str_of(text), STR("f"), NULL, NULL, &loaded, &report) != BAY_OK) {
        fail_msg("%s: %s", text, report.messages[0].text);
    }
    return loaded;
}

static void test_a_secret_of_a_file(void **state)
{
    char path[] = "/tmp/bay-secret-XXXXXX";
    char text[512];
    (void)state;
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, "s3cret \r\n\n", 10), 10);
    close(file);
    snprintf(text, sizeof(text),
             SERVER "credentials: {clientId: gw, clientSecret: '${file:%s}', scope: 'a b', "
                    "issuer: 'https://i.example/t', parameters: {audience: z}, dpop: true}, "
                    "headers: {X-Key: 'k ${file:%s}'}}\n",
             path, path);
    const config *loaded = load(text);
    const config_credentials *credentials = &loaded->servers[0].credentials;
    assert_true(config_credentials_are_given(credentials));
    assert_string_equal(credentials->client_secret.at, "s3cret ");
    assert_string_equal(credentials->scope.at, "a b");
    assert_string_equal(credentials->issuer.at, "https://i.example/t");
    assert_string_equal(credentials->parameters.at[0].value.at, "z");
    assert_true(credentials->dpop);
    assert_string_equal(loaded->servers[0].headers.at[0].value.at, "k s3cret ");
    /* a secret that was rotated makes another server of it */
    assert_int_equal(truncate(path, 3), 0);
    const config *again = load(text);
    assert_string_equal(again->servers[0].credentials.client_secret.at, "s3c");
    assert_false(config_equal_server(&loaded->servers[0], &again->servers[0]));
    config_free(again);
    config_free(loaded);
    unlink(path);
}

static void test_a_secret_of_a_program(void **state)
{
    char folder[] = "/tmp/bay-secret-XXXXXX";
    char script[64], runs[64], text[512];
    struct stat about;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(script, sizeof(script), "%s/script", folder);
    snprintf(runs, sizeof(runs), "%s/runs", folder);
    FILE *file = fopen(script, "w");
    assert_non_null(file);
    fprintf(file, "printf x >>%s\necho \"$1 $2\"\n", runs);
    fclose(file);
    /* once, however often it is named; its words are no shell's */
    snprintf(text, sizeof(text),
             "mcpServers:\n"
             "  a: {command: x, env: {A: '${exec:/bin/sh %s $HOME ;}', B: '-${exec:/bin/sh %s "
             "$HOME ;}-'}}\n"
             "  b: {command: x, env: {A: '${exec:/bin/sh %s $HOME ;}'}}\n",
             script, script, script);
    const config *loaded = load(text);
    assert_string_equal(loaded->servers[0].env.at[0].value.at, "$HOME ;");
    assert_string_equal(loaded->servers[0].env.at[1].value.at, "-$HOME ;-");
    assert_string_equal(loaded->servers[1].env.at[0].value.at, "$HOME ;");
    config_free(loaded);
    assert_int_equal(stat(runs, &about), 0);
    assert_int_equal(about.st_size, 1);
    unlink(runs);
    unlink(script);
    rmdir(folder);
}

/* A server that is left out runs nothing, and its missing files are no mistake. */
static void test_nothing_is_read_for_a_disabled_server(void **state)
{
    char folder[] = "/tmp/bay-secret-XXXXXX";
    char text[256], path[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/ran", folder);
    snprintf(text, sizeof(text),
             SERVER
             "disabled: true, headers: {A: '${file:/nowhere}', B: '${exec:/usr/bin/touch %s}'}}\n",
             path);
    const config *loaded = load(text);
    config_free(loaded);
    assert_int_equal(access(path, F_OK), -1);
    rmdir(folder);
}

static void test_an_agent_and_a_workload(void **state)
{
    (void)state;
    const config *loaded =
        load("agents:\n  a: {url: 'http://127.0.0.1:1/', credentials: {" GOOD "}}\n"
             "  b: {url: 'https://x/', credentials: {grant: workload, tokenFile: "
             "/var/run/t}}\n  c: {url: 'https://x/'}\n");
    assert_true(config_credentials_are_given(&loaded->agents[0].credentials));
    assert_int_equal(loaded->agents[1].credentials.grant, CONFIG_GRANT_WORKLOAD);
    assert_string_equal(loaded->agents[1].credentials.token_file.at, "/var/run/t");
    assert_false(config_credentials_are_given(&loaded->agents[2].credentials));
    config_free(loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_a_secret_of_a_file),
        cmocka_unit_test(test_a_secret_of_a_program),
        cmocka_unit_test(test_nothing_is_read_for_a_disabled_server),
        cmocka_unit_test(test_an_agent_and_a_workload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
