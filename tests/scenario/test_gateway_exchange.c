/* The gateway calls servers and agents as each of its callers, by a token that was exchanged for the
 * caller's own: nothing of one caller with another, no call without its caller's credential, and
 * not a byte of a caller's token to a server. */
#include <openssl/evp.h> /* not in a build without it: its tokens are signed */

#include "unit/auth/jose_rig.h" /* before what takes the word "fail" */

#include "http/http_server.h"
#include "support/gateway_rig.h"

#include "support/login_server.h"
#include "support/token_callers.h"

enum { TEXT_BYTES = 16 << 10 };

static int baseline; /* descriptors before all */

/* ---- a gateway, a server, and who exchanges -------------------------------------------------- */

typedef struct rig {
    gateway_rig gateway;
    login_server server;  /* the MCP server and the agent */
    login_server issuer;  /* its authorization server, at another origin */
    login_server company; /* the identity provider of id-jag */
} rig;

#define EXCHANGE "{'grant':'exchange','clientId':'gw','clientSecret':'secret-client','issuer':'%s'}"

static void servers_start(rig *self)
{
    callers_begin();
    baseline = rig_descriptors();
    self->issuer.wants_secret = true;
    login_server_start(&self->issuer);
    self->server.issuer = self->issuer.origin;
    login_server_start(&self->server);
}

static void end(rig *self)
{
    login_server_stop(&self->server);
    login_server_stop(&self->issuer);
    self->gateway.descriptors = baseline;
    rig_close(&self->gateway);
    assert_int_equal(self->server.leaks, 0);
    assert_int_equal(self->server.mixed, 0);
    assert_int_equal(rig_log_count("secret-"), 0);
    assert_int_equal(rig_log_count("eyJ"), 0);
    callers_end();
}

static void exchange(bool is_modern, int sessions)
{
    rig self = {.server = {.is_modern = is_modern}};
    char text[TEXT_BYTES];
    const char *ann = token_of("ann", "");
    const char *bob = token_of("bob", "");
    self.server.secrets[0] = ann;
    self.server.secrets[1] = bob;
    servers_start(&self);
    (void)snprintf(text, sizeof(text),
                   "{" CALLERS_AUTH "'mcpServers':{'s':{'url':'%s','credentials':" EXCHANGE "}}}",
                   callers_keys, self.server.url, self.issuer.origin);
    rig_open(&self.gateway, text, 1);
    call_as(&self.gateway, ann, "you are ann");
    call_as(&self.gateway, bob, "you are bob");
    call_as(&self.gateway, ann, "you are ann");
    assert_int_equal(self.issuer.exchanges, 2);
    assert_int_equal(self.issuer.clients, 1); /* lists */
    assert_int_equal(self.server.sessions, sessions);
    assert_int_equal(call_at(&self.gateway, "/mcp", NULL, "WWW-Authenticate"), 401);
    assert_int_equal(self.server.calls, 3);
    end(&self);
}

static void test_each_caller_is_who_he_is(void **state)
{
    (void)state;
    exchange(true, 0);
}

/* … and no session of one serves another. */
static void test_each_caller_has_sessions_of_his_own(void **state)
{
    (void)state;
    exchange(false, 3);
}

/* A token that grants more must not lend its power to one of the same user that grants less. */
static void test_other_scopes_are_other_credentials(void **state)
{
    (void)state;
    rig self = {.server = {.is_modern = true}};
    char text[TEXT_BYTES];
    servers_start(&self);
    (void)snprintf(text, sizeof(text),
                   "{" CALLERS_AUTH "'mcpServers':{'s':{'url':'%s','credentials':" EXCHANGE "}}}",
                   callers_keys, self.server.url, self.issuer.origin);
    rig_open(&self.gateway, text, 1);
    call_as(&self.gateway, token_of("ann", ",\"scope\":\"read write\""), "you are ann");
    assert_int_equal(self.issuer.exchanges, 1);
    call_as(&self.gateway, token_of("ann", ",\"scope\":\"read\""), "you are ann");
    assert_int_equal(self.issuer.exchanges, 2);
    /* another token that grants the same is the same */
    call_as(&self.gateway, token_of("ann", ",\"scope\":\"read\",\"n\":1"), "you are ann");
    assert_int_equal(self.issuer.exchanges, 2);
    end(&self);
}

static void test_a_token_that_is_not_exchanged(void **state)
{
    (void)state;
    rig self = {.server = {.is_modern = true}};
    char text[TEXT_BYTES];
    const char *ann = token_of("ann", "");
    servers_start(&self);
    (void)snprintf(text, sizeof(text),
                   "{" CALLERS_AUTH "'mcpServers':{'s':{'url':'%s','credentials':" EXCHANGE "}}}",
                   callers_keys, self.server.url, self.issuer.origin);
    rig_open(&self.gateway, text, 1);
    self.issuer.refuses_exchanges = 1;
    call_as(&self.gateway, ann, "\"patchbay/reason\":\"auth_expired\"");
    call_as(&self.gateway, ann, "Log in to the gateway again");
    assert_int_equal(self.issuer.exchanges, 1); /* with the same token it is not tried again */
    assert_int_equal(self.server.calls, 0);
    self.issuer.refuses_exchanges = 0;
    call_as(&self.gateway, token_of("ann", ",\"n\":1"), "you are ann"); /* he logged in again */
    assert_int_equal(self.issuer.exchanges, 2);
    /* the server does not take what was issued any more: one new token, no caller notices */
    self.server.epoch++;
    self.issuer.epoch++;
    call_as(&self.gateway, token_of("ann", ",\"n\":1"), "you are ann");
    assert_int_equal(self.issuer.exchanges, 3);
    end(&self);
}

/* The gateway's own credential is not for those who bring none. */
static void test_who_brings_no_token(void **state)
{
    (void)state;
    rig self = {.server = {.is_modern = true}};
    char text[TEXT_BYTES];
    servers_start(&self);
    (void)snprintf(text, sizeof(text),
                   "{" CALLERS_AUTH "'profiles':{'all':{'servers':['s'],'auth':{'none':true}}},"
                   "'mcpServers':{'s':{'url':'%s','credentials':" EXCHANGE "}}}",
                   callers_keys, self.server.url, self.issuer.origin);
    rig_open(&self.gateway, text, 1);
    assert_int_equal(call_at(&self.gateway, "/mcp/@all", NULL, "auth_expired"), 200);
    assert_int_equal(self.server.calls, 0);
    call_as(&self.gateway, token_of("ann", ""), "you are ann");
    assert_int_equal(call_at(&self.gateway, "/mcp/@all", NULL, "auth_expired"), 200);
    assert_int_equal(self.server.calls, 1);
    end(&self);
}

static void test_an_assertion_of_the_identity_provider(void **state)
{
    (void)state;
    rig self = {.server = {.is_modern = true}, .company = {.wants_secret = true}};
    char text[TEXT_BYTES];
    const char *ann = token_of("ann", "");
    self.server.secrets[0] = ann;
    self.issuer.secrets[0] = ann; /* what it gets is the assertion alone */
    servers_start(&self);
    login_server_start(&self.company);
    (void)snprintf(text, sizeof(text),
                   "{" CALLERS_AUTH "'mcpServers':{'s':{'url':'%s','credentials':{'grant':'idJag',"
                   "'clientId':'gw','clientSecret':'secret-client','issuer':'%s','idp':{"
                   "'issuer':'%s','clientId':'gw','clientSecret':'secret-client'}}}}}",
                   callers_keys, self.server.url, self.issuer.origin, self.company.origin);
    rig_open(&self.gateway, text, 1);
    call_as(&self.gateway, ann, "you are ann");
    call_as(&self.gateway, token_of("bob", ""), "you are bob");
    call_as(&self.gateway, ann, "you are ann");
    assert_int_equal(self.company.exchanges, 2);
    assert_int_equal(self.issuer.assertions, 2);
    assert_int_equal(self.issuer.leaks, 0);
    login_server_stop(&self.company);
    end(&self);
}

static void test_agents(void **state)
{
    (void)state;
    rig self = {.server = {.is_modern = true}};
    static const char *const users[] = {"ann", "bob", "ann"};
    char text[TEXT_BYTES], fields[4096], wanted[32];
    self.server.secrets[0] = token_of("ann", "");
    servers_start(&self);
    (void)snprintf(text, sizeof(text),
                   "{" CALLERS_AUTH "'agents':{'a':{'url':'%s','credentials':" EXCHANGE "}}}",
                   callers_keys, self.server.agent_url, self.issuer.origin);
    rig_open(&self.gateway, text, 1);
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        client one;
        client_open(&one, &self.gateway);
        (void)snprintf(fields, sizeof(fields), "A2A-Version: 1.0\r\nAuthorization: Bearer %s\r\n",
                       token_of(users[i], ""));
        client_post(&one, "/a2a/a", fields,
                    "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{"
                    "'messageId':'m','role':'ROLE_USER','parts':[{'text':'hello'}]}}}");
        assert_int_equal(client_reply(&one), 200);
        (void)snprintf(wanted, sizeof(wanted), "you are %s", users[i]);
        assert_non_null(client_find(&one, wanted));
        client_close(&one);
    }
    assert_int_equal(self.issuer.exchanges, 2);
    end(&self);
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
        cmocka_unit_test(test_each_caller_is_who_he_is),
        cmocka_unit_test(test_each_caller_has_sessions_of_his_own),
        cmocka_unit_test(test_other_scopes_are_other_credentials),
        cmocka_unit_test(test_a_token_that_is_not_exchanged),
        cmocka_unit_test(test_who_brings_no_token),
        cmocka_unit_test(test_an_assertion_of_the_identity_provider),
        cmocka_unit_test(test_agents),
    };
    return cmocka_run_group_tests(tests, make_a_loop, NULL);
}
