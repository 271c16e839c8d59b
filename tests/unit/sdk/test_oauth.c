/* The settings of <patchbay/oauth.h> at a client and at a caller: what is sent with the requests of a
 * real protected server and a real protected agent, and what the errors say. The test is the browser. */
#include <openssl/evp.h> /* not in a build without it: its logins have no digests */
#include <string.h>

#include "sdk/caller_parts.h" /* before cmocka, which has a macro "fail" */
#include "sdk/client_parts.h"
#include "sdk/server_parts.h"

#include "support/login_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/browse.h"

enum { TEXT_BYTES = 4096 };

typedef struct rig {
    login_server server;
    char kept[TEXT_BYTES]; /* what the program stores */
    int opened, loads, saves;
    bool declines;
} rig;

static void rig_start(rig *self)
{
    login_server_start(&self->server);
}

static bay_oauth *by_secret(const char *secret)
{
    bay_oauth *oauth = bay_oauth_new(BAY_OAUTH_GRANT_CLIENT);
    bay_oauth_client(oauth, "gw", secret);
    return oauth;
}

/* ---- what the program does ------------------------------------------------------------------- */

static void show_page(bay_login *login, const char *url, void *user)
{
    rig *self = user;
    char back[TEXT_BYTES];
    self->opened++;
    if (self->declines) {
        bay_login_decline(login, "the person said no");
        return;
    }
    browse(url, back, sizeof(back));
    assert_false(bay_login_redirected(login, "http://127.0.0.1:1/cb?code=x&state=made-up"));
    assert_true(bay_login_redirected(login, back));
    assert_false(bay_login_redirected(login, back)); /* once */
}

static void load(bay_login *login, void *user)
{
    rig *self = user;
    self->loads++;
    bay_login_loaded(login, str_of(self->kept));
}

static bay_err save(bay_login *login, bay_str record, void *user)
{
    rig *self = user;
    (void)login;
    self->saves++;
    snprintf(self->kept, sizeof(self->kept), "%.*s", BAY_STR(record));
    return BAY_OK;
}

static bay_oauth *by_browser(rig *self)
{
    bay_oauth *oauth = bay_oauth_new(BAY_OAUTH_GRANT_BROWSER);
    bay_oauth_redirect(oauth, "http://127.0.0.1:1/cb");
    bay_oauth_on_open(oauth, show_page, self);
    bay_oauth_on_store(oauth, load, save, self);
    return oauth;
}

/* Takes `oauth`. "" or what went wrong. */
static bay_err call_server(rig *self, bay_oauth *oauth, char out[TEXT_BYTES])
{
    bay_client *client = NULL;
    bay_reply *reply = NULL;
    bay_diag diag = {0};
    bay_client_options *options = bay_client_options_new();
    bay_client_options_oauth(options, oauth);
    bay_oauth_free(oauth);
    bay_err err = bay_client_connect(self->server.url, options, &client, &diag);
    bay_client_options_free(options);
    if (err == BAY_OK) {
        err = bay_client_call(client, "who", "{}", &reply, &diag);
    }
    snprintf(out, TEXT_BYTES, "%s", diag.text);
    if (err == BAY_OK) {
        snprintf(out, TEXT_BYTES, "%.*s", BAY_STR(bay_reply_text(reply, 0)));
    }
    bay_reply_free(reply);
    bay_client_close(client);
    assert_null(strstr(out, "secret-"));
    return err;
}

static bay_err call_agent(const char *url, bay_oauth *oauth, char out[TEXT_BYTES])
{
    bay_caller *caller = NULL;
    bay_caller_reply *reply = NULL;
    bay_diag diag = {0};
    bay_caller_options *options = bay_caller_options_new();
    bay_caller_options_oauth(options, oauth);
    bay_oauth_free(oauth);
    bay_err err = bay_caller_connect(url, options, &caller, &diag);
    bay_caller_options_free(options);
    if (err == BAY_OK) {
        err = bay_caller_send_wait(caller, "hello", &reply, &diag);
    }
    snprintf(out, TEXT_BYTES, "%s", diag.text);
    if (err == BAY_OK) {
        snprintf(out, TEXT_BYTES, "%.*s", BAY_STR(bay_caller_reply_text(reply)));
    }
    bay_caller_reply_free(reply);
    bay_caller_close(caller);
    assert_null(strstr(out, "secret-"));
    return err;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void test_settings_that_are_wrong(void **state)
{
    static rig it;
    char text[TEXT_BYTES];
    (void)state;
    it = (rig){0};
    rig_start(&it);
    bay_oauth *grant = bay_oauth_new((bay_oauth_grant)99);
    assert_int_equal(call_server(&it, grant, text), BAY_ERR_INVALID);
    assert_non_null(strstr(text, "no such grant"));
    bay_oauth *half = bay_oauth_new(BAY_OAUTH_GRANT_BROWSER);
    bay_oauth_on_store(half, load, NULL, &it);
    assert_int_equal(call_server(&it, half, text), BAY_ERR_INVALID);
    assert_non_null(strstr(text, "give both functions"));
    bay_oauth *control = bay_oauth_new(BAY_OAUTH_GRANT_CLIENT);
    bay_oauth_client(control, "a\nb", NULL);
    assert_int_equal(call_agent(it.server.agent_url, control, text), BAY_ERR_INVALID);
    assert_non_null(strstr(text, "control character"));
    bay_oauth *key = bay_oauth_new(BAY_OAUTH_GRANT_CLIENT);
    bay_oauth_key(key, "no key", NULL);
    assert_int_not_equal(call_server(&it, key, text), BAY_OK);
    assert_non_null(strstr(text, "the client's key"));
    assert_int_equal(call_agent("{\"name\":\"a\"}", by_secret("secret-client"), text),
                     BAY_ERR_INVALID);
    assert_non_null(strstr(text, "not its card"));
    assert_int_equal(it.server.refused + it.server.clients, 0); /* nothing was sent */
    login_server_stop(&it.server);
}

static void test_a_field_of_authorization_excludes_it(void **state)
{
    bay_diag diag = {0};
    bay_client *client = NULL;
    (void)state;
    bay_client_options *options = bay_client_options_new();
    bay_oauth *oauth = by_secret("secret-client");
    bay_client_options_header(options, "authorization", "Bearer x");
    bay_client_options_oauth(options, oauth);
    bay_oauth_free(oauth);
    assert_int_equal(bay_client_connect("http://127.0.0.1:1/mcp", options, &client, &diag),
                     BAY_ERR_INVALID);
    assert_non_null(strstr(diag.text, "Authorization"));
    bay_client_options_free(options);
}

static void test_a_secret_that_is_not_good(void **state)
{
    static rig it;
    char text[TEXT_BYTES];
    (void)state;
    it = (rig){.server = {.wants_secret = true}};
    rig_start(&it);
    assert_int_equal(call_server(&it, by_secret("secret-wrong"), text), BAY_ERR_DENIED);
    assert_non_null(strstr(text, "invalid_client"));
    assert_int_equal(call_agent(it.server.agent_url, by_secret("secret-wrong"), text),
                     BAY_ERR_DENIED);
    assert_non_null(strstr(text, "invalid_client"));
    assert_int_equal(it.server.calls, 0);
    login_server_stop(&it.server);
}

static void test_a_person_says_no(void **state)
{
    static rig it;
    char text[TEXT_BYTES];
    (void)state;
    it = (rig){.declines = true};
    rig_start(&it);
    assert_int_equal(call_server(&it, by_browser(&it), text), BAY_ERR_DENIED);
    assert_non_null(strstr(text, "the person said no"));
    assert_int_equal(it.opened, 1); /* and is not asked by each request of a connect */
    assert_int_equal(it.server.calls, 0);
    login_server_stop(&it.server);
}

/* The card leads to another host, which must not get a token of the agent's. */
static void test_an_agent_elsewhere_gets_no_token(void **state)
{
    static rig it, other;
    char text[TEXT_BYTES];
    (void)state;
    it = other = (rig){0};
    rig_start(&other);
    it.server.agent_elsewhere = other.server.agent_url;
    rig_start(&it);
    assert_int_not_equal(call_agent(it.server.agent_url, by_secret("secret-client"), text), BAY_OK);
    assert_non_null(strstr(text, "withheld"));
    assert_int_equal(other.server.calls, 0);
    assert_int_equal(other.server.refused, 1);
    assert_int_equal(it.server.clients + other.server.clients, 0);
    login_server_stop(&it.server);
    login_server_stop(&other.server);
}

/* ---- what works ------------------------------------------------------------------------------ */

static void test_the_program_itself(void **state)
{
    static rig it;
    char text[TEXT_BYTES];
    (void)state;
    it = (rig){.server = {.wants_secret = true}};
    rig_start(&it);
    assert_int_equal(call_server(&it, by_secret("secret-client"), text), BAY_OK);
    assert_string_equal(text, "you are gw");
    assert_int_equal(it.server.clients, 1);
    assert_int_equal(call_agent(it.server.agent_url, by_secret("secret-client"), text), BAY_OK);
    assert_string_equal(text, "you are gw");
    assert_int_equal(it.server.clients, 2);
    assert_int_equal(it.server.calls, 2);
    assert_int_equal(it.server.registrations, 0);
    login_server_stop(&it.server);
}

static void test_a_person_logs_in_once(void **state)
{
    static rig it;
    char text[TEXT_BYTES];
    (void)state;
    it = (rig){0};
    rig_start(&it);
    assert_int_equal(call_server(&it, by_browser(&it), text), BAY_OK);
    assert_string_equal(text, "you are ann");
    assert_int_equal(it.opened, 1);
    assert_int_equal(it.server.registrations, 1);
    assert_true(it.saves > 0);
    assert_int_equal(call_server(&it, by_browser(&it), text), BAY_OK);
    assert_int_equal(it.opened, 1);
    assert_int_equal(it.server.codes, 1);
    it.server.epoch++; /* the token is revoked: a refresh, and no page */
    assert_int_equal(call_server(&it, by_browser(&it), text), BAY_OK);
    assert_int_equal(it.opened, 1);
    assert_int_equal(it.server.refreshes, 1);
    assert_int_equal(it.server.reuses, 0);
    login_server_stop(&it.server);
}

static void test_a_person_logs_in_to_an_agent(void **state)
{
    static rig it;
    char text[TEXT_BYTES];
    char card[TEXT_BYTES];
    (void)state;
    it = (rig){0};
    rig_start(&it);
    assert_int_equal(call_agent(it.server.agent_url, by_browser(&it), text), BAY_OK);
    assert_string_equal(text, "you are ann");
    assert_int_equal(it.opened, 1);
    /* by its card's URL the agent is the same resource */
    snprintf(card, sizeof(card), "%s/.well-known/agent-card.json", it.server.agent_url);
    assert_int_equal(call_agent(card, by_browser(&it), text), BAY_OK);
    assert_int_equal(it.opened, 1);
    assert_int_equal(it.server.codes, 1);
    login_server_stop(&it.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings_that_are_wrong),
        cmocka_unit_test(test_a_field_of_authorization_excludes_it),
        cmocka_unit_test(test_a_secret_that_is_not_good),
        cmocka_unit_test(test_a_person_says_no),
        cmocka_unit_test(test_an_agent_elsewhere_gets_no_token),
        cmocka_unit_test(test_the_program_itself),
        cmocka_unit_test(test_a_person_logs_in_once),
        cmocka_unit_test(test_a_person_logs_in_to_an_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
