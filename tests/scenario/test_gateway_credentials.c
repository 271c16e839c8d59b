/* The gateway in front of a server and an agent that ask for authorization: as whom it calls them, what
 * it does when a token is refused, what callers hear when it gets none, and that neither a secret
 * of its own nor a credential of a caller ever goes where it does not belong. */
#include <openssl/evp.h> /* not in a build without it: its logins have no digests */

#include "http/http_server.h" /* cmocka takes the word "fail" */
#include "support/gateway_rig.h"

#include "support/login_server.h"

enum { SETTINGS_BYTES = 2048 };

static int baseline; /* descriptors before all */

#define CALLER_FIELDS                                                                              \
    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: s.who\r\n"            \
    "Authorization: Bearer canary-caller\r\n"

/* A call with a credential of the caller's own, which the gateway was not told to look at. */
static void expect(const gateway_rig *to, const char *part)
{
    client one;
    client_open(&one, to);
    client_post(&one, "/mcp", CALLER_FIELDS,
                "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'s.who'," RIG_META
                "}}}");
    (void)client_reply(&one);
    if (client_find(&one, part) == NULL) {
        print_error("wanted %s\ncame: %.*s\n", part, (int)one.got.len, one.got.at);
    }
    assert_non_null(client_find(&one, part));
    assert_null(client_find(&one, "secret-"));
    client_close(&one);
}

static void end(gateway_rig *rig, login_server *server)
{
    login_server_stop(server); /* with its connections, which are of this process, too */
    rig->descriptors = baseline;
    rig_close(rig);
    assert_int_equal(server->strangers, 0);
    assert_int_equal(rig_log_count("secret-"), 0);
    assert_int_equal(rig_log_count("canary"), 0);
}

/* One new token for the request, and no third: the caller is told who has to act, and never gets the
 * 401, which would say that his own credentials are bad. */
static void test_a_token_that_is_refused_anew(void **state)
{
    (void)state;
    gateway_rig rig;
    login_server server = {.wants_secret = true};
    char text[SETTINGS_BYTES];
    baseline = rig_descriptors();
    login_server_start(&server);
    snprintf(text, sizeof(text),
             "{'mcpServers':{'s':{'url':'%s','credentials':{'clientId':'gw','clientSecret':"
             "'secret-client'}}}}",
             server.url);
    rig_open(&rig, text, 1);
    expect(&rig, "you are gw");
    server.refuses_calls = 1;
    expect(&rig, "\"patchbay/reason\":\"auth_expired\"");
    assert_int_equal(server.clients, 2);
    expect(&rig, "The operator of the gateway has to renew them");
    assert_int_equal(server.clients, 2);
    assert_int_equal(server.calls, 1);
    end(&rig, &server);
}

static void test_a_key_that_is_refused(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    login_server server = {.asks_only_for_calls = true};
    char text[SETTINGS_BYTES];
    baseline = rig_descriptors();
    login_server_start(&server);
    snprintf(text, sizeof(text),
             "{'mcpServers':{'s':{'url':'%s','headers':{'Authorization':'Bearer secret-old'}}},"
             "'agents':{'a':{'url':'%s','headers':{'Authorization':'Bearer secret-old'}}}}",
             server.url, server.agent_url);
    rig_open(&rig, text, 1);
    expect(&rig, "\"patchbay/reason\":\"auth_expired\"");
    client_open(&one, &rig);
    client_post(&one, "/a2a/a", "A2A-Version: 1.0\r\n",
                "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId':"
                "'m','role':'ROLE_USER','parts':[{'text':'hello'}]}}}");
    assert_int_not_equal(client_reply(&one), 401);
    assert_non_null(client_find(&one, "auth_expired"));
    assert_null(client_find(&one, "WWW-Authenticate"));
    client_close(&one);
    end(&rig, &server);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_it_calls_a_server_as_itself(void **state)
{
    (void)state;
    gateway_rig rig;
    login_server server = {.wants_secret = true};
    char text[SETTINGS_BYTES];
    baseline = rig_descriptors();
    login_server_start(&server);
    snprintf(text, sizeof(text),
             "{'mcpServers':{'s':{'url':'%s','credentials':{'clientId':'gw','clientSecret':"
             "'secret-client'}}}}",
             server.url);
    rig_open(&rig, text, 1);
    expect(&rig, "you are gw");
    expect(&rig, "you are gw");
    assert_int_equal(server.clients, 1);
    server.epoch++; /* the token is revoked over there: one new one, and no caller notices */
    expect(&rig, "you are gw");
    expect(&rig, "you are gw");
    assert_int_equal(server.clients, 2);
    assert_int_equal(server.registrations, 0);
    end(&rig, &server);
}

static void test_it_calls_an_agent_as_itself(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    login_server server = {.wants_secret = true};
    char text[SETTINGS_BYTES];
    baseline = rig_descriptors();
    login_server_start(&server);
    snprintf(text, sizeof(text),
             "{'agents':{'a':{'url':'%s','credentials':{'clientId':'gw','clientSecret':"
             "'secret-client'}}}}",
             server.agent_url);
    rig_open(&rig, text, 1);
    for (int i = 0; i < 2; i++) {
        client_open(&one, &rig);
        client_post(
            &one, "/a2a/a", "A2A-Version: 1.0\r\nAuthorization: Bearer canary-caller\r\n",
            "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId':"
            "'m','role':'ROLE_USER','parts':[{'text':'hello'}]}}}");
        assert_int_equal(client_reply(&one), 200);
        assert_non_null(client_find(&one, "you are gw"));
        client_close(&one);
    }
    assert_int_equal(server.clients, 1);
    end(&rig, &server);
}

static void test_a_wrong_secret(void **state)
{
    (void)state;
    gateway_rig rig;
    login_server server = {.wants_secret = true};
    char path[64], text[SETTINGS_BYTES];
    snprintf(path, sizeof(path), "/tmp/bay-credentials.%d", (int)getpid());
    write_file(path, "secret-wrong\n");
    baseline = rig_descriptors();
    login_server_start(&server);
    snprintf(text, sizeof(text),
             "{'mcpServers':{'s':{'url':'%s','restart':{'minDelay':'1ms','maxDelay':'20ms'},"
             "'credentials':{'clientId':'gw','clientSecret':'${file:%s}'}}}}",
             server.url, path);
    rig_open(&rig, text, 1);
    wait_until(rig_log_count("invalid_client") > 0);
    wait_until(server.refused >= 1);
    expect(&rig, "server_unavailable");
    assert_int_equal(server.clients, 1); /* however often it was tried: it rests for a minute */
    assert_int_equal(server.calls, 0);
    /* the right one comes into its file: a reload makes another server of it */
    write_file(path, "secret-client\n");
    rig_ask_reload(&rig);
    wait_until(atomic_load(&rig.reloaded) == 1);
    expect(&rig, "you are gw");
    assert_int_equal(server.clients, 2);
    end(&rig, &server);
    unlink(path);
}

static void test_a_workload(void **state)
{
    (void)state;
    gateway_rig rig;
    login_server server = {.wants_secret = true};
    char path[64], text[SETTINGS_BYTES];
    snprintf(path, sizeof(path), "/tmp/bay-credentials.%d", (int)getpid());
    unlink(path);
    baseline = rig_descriptors();
    login_server_start(&server);
    snprintf(
        text, sizeof(text),
        "{'mcpServers':{'s':{'url':'%s','credentials':{'grant':'workload','tokenFile':'%s'}}}}",
        server.url, path);
    rig_open(&rig, text, 1);
    wait_until(rig_log_count("No such file") > 0); /* the platform is late */
    assert_int_equal(server.assertions, 0);
    write_file(path, "secret-workload\n");
    char again[SETTINGS_BYTES];
    snprintf(again, sizeof(again),
             "{'mcpServers':{'s':{'url':'%s','credentials':{'grant':'workload','tokenFile':'%s',"
             "'scope':'read'}}}}",
             server.url, path);
    rig_configure(&rig, again);
    rig_ask_reload(&rig);
    wait_until(atomic_load(&rig.reloaded) == 1);
    expect(&rig, "you are pod");
    assert_int_equal(server.assertions, 1);
    /* rotated: read anew for the next token */
    write_file(path, "secret-late\n");
    server.epoch++;
    expect(&rig, "auth_expired");
    assert_int_equal(server.assertions, 2);
    end(&rig, &server);
    unlink(path);
}

/* The first loop of a process makes descriptors that stay. */
static int make_a_loop(void **state)
{
    loop *first = NULL;
    (void)state;
    if (loop_new(&first) != BAY_OK) {
        return -1;
    }
    loop_free(first);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_calls_a_server_as_itself),
        cmocka_unit_test(test_it_calls_an_agent_as_itself),
        cmocka_unit_test(test_a_token_that_is_refused_anew),
        cmocka_unit_test(test_a_key_that_is_refused),
        cmocka_unit_test(test_a_wrong_secret),
        cmocka_unit_test(test_a_workload),
    };
    return cmocka_run_group_tests(tests, make_a_loop, NULL);
}
