/* Users log in at a server from within a call: who is led where, in which words of the protocol, and
 * everything that a page which fills the vault must refuse. */
#include <openssl/evp.h> /* not in a build without it: rows are sealed */
#include <sqlite3.h>     /* and nowhere to keep them */

#include "support/login_scene.h" /* before what takes the word "fail" */

#include "support/login_server.h"
#include "support/store_row.h"
#include "support/token_callers.h"

#define KEYS "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define URL_CLIENT "'elicitation':{'url':{}}"
#define ACCEPTED ",'inputResponses':{'patchbay-login-1':{'action':'accept'}}"

#define PUBLIC "https://tools.example"

enum { TEXT = 8192 };

typedef struct world {
    scene at;
    login_server server;
    char store[64];
} world;

static void open_at(world *self, bool is_modern, const char *more, const char *top)
{
    char settings[TEXT];
    int before = rig_descriptors();
    *self = (world){.server = {.is_modern = is_modern, .asks_only_for_calls = true}};
    self->server.document = strstr(top, PUBLIC) != NULL ? PUBLIC "/oauth/client.json" : NULL;
    (void)snprintf(self->store, sizeof(self->store), "/tmp/bay-connect.%d", (int)getpid());
    store_row_remove_files(self->store);
    provider_start(&self->at.idp);
    login_server_start(&self->server);
    (void)snprintf(
        settings, sizeof(settings),
        "{" SCENE_TIMES "%s"
        "'auth':{'apiKeys':true,'issuers':{'idp':{'url':'%s','audience':['gateway']}}%s},"
        "'store':'%s','keys':['" KEYS "'],"
        "'agents':{'desk':{'tools':['s.who']},"
        "'r':{'url':'%s','credentials':{'grant':'user'}}},"
        "'mcpServers':{'s':{'url':'%s','credentials':{'grant':'user'}},"
        "'other':{'url':'%s','credentials':{'grant':'user'}}}}",
        top, self->at.idp.issuer, more, self->store, self->server.agent_url, self->server.url,
        self->server.url);
    rig_open(&self->at.gateway, settings, 2);
    self->at.gateway.descriptors = before;
    wait_until(atomic_load(&self->at.gateway.started) == 1);
    (void)snprintf(self->at.base, sizeof(self->at.base), "http://127.0.0.1:%u",
                   gateway_port(self->at.gateway.gateway));
}

static void open_world(world *self, bool is_modern, const char *more)
{
    open_at(self, is_modern, more, "");
}

static void close_world(world *self)
{
    login_server_stop(&self->server);
    close_scene(&self->at);
    store_row_remove_files(self->store);
    assert_int_equal(self->server.strangers, 0);
    assert_int_equal(self->at.idp.strangers, 0);
}

static const char *token_for(const world *self, const char *user)
{
    return token_by(self->at.idp.issuer, user, "");
}

/* ---- clients --------------------------------------------------------------------------------- */

/* A call of 2026-07-28, on a connection that stays open. */
static void post_call(client *one, const world *to, const char *token, const char *capabilities,
                      const char *more)
{
    char fields[4096], body[TEXT];
    client_open(one, &to->at.gateway);
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                   "Mcp-Name: s.who\r\nAuthorization: Bearer %s\r\n",
                   token);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'s.who'%s,"
                   "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"
                   "'io.modelcontextprotocol/clientInfo':{'name':'c','version':'1'},"
                   "'io.modelcontextprotocol/clientCapabilities':{%s}}}}",
                   more, capabilities);
    client_post(one, "/mcp", fields, body);
}

static void expect(const world *to, const char *token, const char *capabilities, const char *more,
                   const char *part)
{
    client one;
    post_call(&one, to, token, capabilities, more);
    assert_int_equal(client_reply(&one), 200);
    if (client_find(&one, part) == NULL) {
        print_error("wanted %s\ncame: %.*s\n", part, (int)one.got.len, one.got.at);
    }
    assert_non_null(client_find(&one, part));
    assert_null(client_find(&one, "secret-"));
    client_close(&one);
}

/* The text between `before` and the next quote. */
static void cut_out(const client *from, const char *before, char *out, size_t size)
{
    const char *at = client_find(from, before);
    if (at == NULL) {
        print_error("wanted %s\ncame: %.*s\n", before, (int)from->got.len, from->got.at);
    }
    assert_non_null(at);
    at += strlen(before);
    size_t len = strcspn(at, "\" ");
    assert_true(len < size);
    memcpy(out, at, len);
    out[len] = '\0';
}

/* The page that the client of this token is led to. */
static void link_for(const world *self, const char *token, char link[BROWSER_URL])
{
    client one;
    post_call(&one, self, token, URL_CLIENT, "");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "\"resultType\":\"input_required\""));
    assert_non_null(client_find(&one, "\"patchbay-login-1\":{\"method\":\"elicitation/create\""));
    assert_non_null(client_find(&one, "\"mode\":\"url\""));
    assert_null(client_find(&one, "elicitationId"));
    cut_out(&one, "\"url\":\"", link, BROWSER_URL);
    client_close(&one);
}

/* ---- browsers -------------------------------------------------------------------------------- */

static void log_in_as(world *self, browser *of, const char *user)
{
    char part[64];
    atomic_store(&self->at.idp.user, user);
    browser_get(of, "%s/login", self->at.base);
    (void)browser_follow(of);
    (void)snprintf(part, sizeof(part), "<dd>%s</dd>", user);
    sees(of, 200, part);
}

/* Presses the page's button: the answer leads to the server's own login. (A form's address is of
 * publicUrl; here it is the proxy's.) */
static void press(const world *self, browser *of, const char *server)
{
    char token[100], seal[1000], url[200], body[1500];
    browser_field(of, "token", token, sizeof(token));
    browser_field(of, "for", seal, sizeof(seal));
    (void)snprintf(url, sizeof(url), "%s/connect/%s", self->at.base, server);
    (void)snprintf(body, sizeof(body), "token=%s&for=%s", token, seal);
    browser_send(of, url, body);
}

/* Where the server's login ends: the redirect, not opened yet. */
static void visit_server(browser *of, const char *user)
{
    assert_int_equal(of->status, 303);
    browser_get(of, "%s&login_hint=%s", of->location, user);
    assert_int_equal(of->status, 302);
}

static void connect_as(world *self, browser *of, const char *link, const char *user)
{
    browser_get(of, "%s", link);
    sees(of, 200, "Log in at a server?");
    press(self, of, "s");
    visit_server(of, user);
    browser_get(of, "%s", of->location);
    sees(of, 200, "may use this server in your name now");
}

/* ---- the ways to it -------------------------------------------------------------------------- */

static void a_call_leads_to_the_login(void **state)
{
    (void)state;
    world self;
    browser ann = {.status = 0};
    char link[BROWSER_URL];
    open_world(&self, true, "," SCENE_LOGIN);
    const char *token = token_for(&self, "ann");
    link_for(&self, token, link);
    assert_true(str_starts(str_of(link), str_of(self.at.base)));
    assert_null(strstr(link, "ann")); /* nothing of whose it is can be read */
    /* a browser that nobody is logged in with is led to the login, and comes back */
    atomic_store(&self.at.idp.user, "ann");
    browser_get(&ann, "%s", link);
    assert_true(str_starts(str_of(ann.location), str_of(self.at.idp.issuer)));
    (void)browser_follow(&ann);
    sees(&ann, 200, "Log in at a server?");
    sees(&ann, 200, "frame-ancestors 'none'");
    sees(&ann, 200, "X-Frame-Options: DENY");
    sees(&ann, 200, "<dd>ann</dd>");
    /* GET has changed nothing, here and there */
    browser_get(&ann, "%s", link);
    assert_int_equal(self.server.registrations + self.server.pages + self.server.codes, 0);
    press(&self, &ann, "s");
    visit_server(&ann, "ann");
    browser_get(&ann, "%s", ann.location);
    sees(&ann, 200, "may use this server in your name now");
    assert_null(browser_cookie_of(&ann, "patchbay-connect"));
    assert_int_equal(self.server.codes, 1);
    expect(&self, token, URL_CLIENT, ACCEPTED, "you are ann");
    expect(&self, token, "", "", "you are ann");
    close_world(&self);
}

/* "accept" comes as soon as the user agrees to open the page: the call waits for what he does there. */
static void a_retry_waits_for_the_user(void **state)
{
    (void)state;
    world self;
    browser ann = {.status = 0};
    char link[BROWSER_URL];
    client one, two;
    open_world(&self, true, "," SCENE_LOGIN);
    const char *token = token_for(&self, "ann");
    link_for(&self, token, link);
    log_in_as(&self, &ann, "ann");
    post_call(&one, &self, token, URL_CLIENT, ACCEPTED);
    post_call(&two, &self, token, URL_CLIENT, ACCEPTED);
    browser_get(&ann, "%s", link);
    press(&self, &ann, "s");
    client_close(&two); /* its client leaves meanwhile */
    visit_server(&ann, "ann");
    assert_int_equal(one.got.len, 0);
    browser_get(&ann, "%s", ann.location);
    sees(&ann, 200, "may use this server in your name now");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "you are ann"));
    client_close(&one);
    close_world(&self);
}

static void a_gateway_ends_while_a_call_waits(void **state)
{
    (void)state;
    world self;
    client one;
    open_world(&self, true, "," SCENE_LOGIN);
    post_call(&one, &self, token_for(&self, "ann"), URL_CLIENT, ACCEPTED);
    self.at.gateway
        .descriptors++; /* its client stays; it has come in, or does while the gateway ends */
    close_world(&self);
    client_close(&one);
}

static void who_does_not_agree_is_believed(void **state)
{
    (void)state;
    world self;
    open_world(&self, true, "," SCENE_LOGIN);
    const char *token = token_for(&self, "ann");
    expect(&self, token, URL_CLIENT, ",'inputResponses':{'patchbay-login-1':{'action':'decline'}}",
           "\"patchbay/reason\":\"declined\"");
    /* the question does not come for ever */
    expect(&self, token, URL_CLIENT, ",'inputResponses':{'patchbay-login-12':{'action':'cancel'}}",
           "\"patchbay/reason\":\"declined\"");
    expect(&self, token, URL_CLIENT, ",'inputResponses':{'patchbay-login-99':{'action':'accept'}}",
           "\"patchbay/reason\":\"auth_expired\"");
    assert_int_equal(self.server.calls, 0);
    close_world(&self);
}

static void clients_that_open_no_pages_are_told_the_address(void **state)
{
    (void)state;
    world self;
    browser ann = {.status = 0};
    client one;
    char link[BROWSER_URL];
    open_world(&self, true, "," SCENE_LOGIN);
    const char *token = token_for(&self, "ann");
    post_call(&one, &self, token, "'elicitation':{}", "");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "\"patchbay/reason\":\"auth_expired\""));
    assert_non_null(client_find(&one, "Its user logs in there at http"));
    cut_out(&one, "\"patchbay/login\":\"", link, sizeof(link));
    client_close(&one);
    log_in_as(&self, &ann, "ann");
    connect_as(&self, &ann, link, "ann");
    expect(&self, token, "", "", "you are ann");
    close_world(&self);
}

/* 2025-11-25: the error with the page, then the notification, to the client that was asked alone. */
static void a_session_is_told_when_it_is_done(void **state)
{
    (void)state;
    static const bool eras[] = {false, true}; /* of the server */
    for (size_t i = 0; i < ARRAY_LEN(eras); i++) {
        world self;
        browser ann = {.status = 0};
        client one, streams[2];
        char fields[2][3000], link[BROWSER_URL], id[100], text[3200], bearer[2200];
        open_world(&self, eras[i], "," SCENE_LOGIN);
        log_in_as(&self, &ann, "ann");
        const char *token = token_for(&self, "ann");
        for (size_t k = 0; k < ARRAY_LEN(streams); k++) {
            client_open(&one, &self.at.gateway);
            (void)snprintf(bearer, sizeof(bearer), "Authorization: Bearer %s\r\n", token);
            client_post(&one, "/mcp", bearer,
                        "{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':"
                        "'2025-11-25','capabilities':{'elicitation':{'url':{}}},'clientInfo':"
                        "{'name':'c','version':'1'}}}");
            assert_int_equal(client_reply(&one), 200);
            const char *session = client_find(&one, "Mcp-Session-Id: ");
            assert_non_null(session);
            (void)snprintf(fields[k], sizeof(fields[k]),
                           "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: %.*s\r\n%s",
                           (int)strcspn(session + 16, "\r"), session + 16, bearer);
            client_close(&one);
            client_open(&streams[k], &self.at.gateway);
            (void)snprintf(text, sizeof(text),
                           "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
                           "%s\r\n",
                           fields[k]);
            assert_true(client_send(&streams[k], text));
            assert_int_equal(client_status(&streams[k]), 200);
        }
        client_open(&one, &self.at.gateway);
        client_post(&one, "/mcp", fields[0],
                    "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'name':'s.who'}}");
        client_wait_for(&one, "\"code\":-32042");
        client_wait_for(&one, "\"elicitations\":[{\"mode\":\"url\"");
        client_wait_for(&one, "\"elicitationId\":\"");
        client_wait_for(&one, "}]}");
        cut_out(&one, "\"url\":\"", link, sizeof(link));
        cut_out(&one, "\"elicitationId\":\"", id, sizeof(id));
        assert_null(strstr(link, id)); /* sealed */
        client_close(&one);
        connect_as(&self, &ann, link, "ann");
        client_wait_for(&streams[0], "notifications/elicitation/complete");
        client_wait_for(&streams[0], id);
        assert_null(client_find(&streams[1], "elicitation"));
        client_open(&one, &self.at.gateway);
        client_post(&one, "/mcp", fields[0],
                    "{'jsonrpc':'2.0','id':3,'method':'tools/call','params':{'name':'s.who'}}");
        client_wait_for(&one, "you are ann");
        client_close(&one);
        client_close(&streams[0]);
        client_close(&streams[1]);
        close_world(&self);
    }
}

static void callers_without_a_browser_are_told_so(void **state)
{
    (void)state;
    world self;
    open_world(&self, true, ""); /* no login at all */
    expect(&self, token_for(&self, "ann"), URL_CLIENT, "", "patchbay login --for");
    browser ann = {.status = 0};
    assert_int_equal(browser_get(&ann, "%s/connect/s", self.at.base), 404);
    assert_int_equal(browser_get(&ann, "%s/connect", self.at.base), 404);
    assert_int_equal(browser_get(&ann, "%s/oauth/client.json", self.at.base), 404);
    close_world(&self);
}

/* ---- agents ---------------------------------------------------------------------------------- */

static void send_message(client *one, const world *to, const char *agent, const char *token,
                         const char *message)
{
    char fields[4096], path[64], body[TEXT];
    client_open(one, &to->at.gateway);
    (void)snprintf(fields, sizeof(fields), "A2A-Version: 1.0\r\nAuthorization: Bearer %s\r\n",
                   token);
    (void)snprintf(path, sizeof(path), "/a2a/%s", agent);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{"
                   "'messageId':'m-%d','role':'ROLE_USER',%s}}}",
                   (int)(loop_time_ms() & 0xffffff), message);
    client_post(one, path, fields, body);
    (void)client_reply(one);
    assert_null(client_find(one, "secret-"));
}

static void has(const client *self, const char *part)
{
    if (client_find(self, part) == NULL) {
        print_error("wanted %s\ncame: %.*s\n", part, (int)self->got.len, self->got.at);
    }
    assert_non_null(client_find(self, part));
}

/* An agent made of tools: the task waits for the login, and goes on with the next message. */
static void a_task_waits_for_the_login(void **state)
{
    (void)state;
    world self;
    browser ann = {.status = 0};
    client one;
    char link[BROWSER_URL], task[200], message[400];
    open_world(&self, true, "," SCENE_LOGIN);
    const char *token = token_for(&self, "ann");
    send_message(&one, &self, "desk", token, "'parts':[{'text':'s.who'}]");
    has(&one, "TASK_STATE_AUTH_REQUIRED");
    cut_out(&one, "\"url\":\"", link, sizeof(link));
    cut_out(&one, "\"task\":{\"id\":\"", task, sizeof(task));
    client_close(&one);
    log_in_as(&self, &ann, "ann");
    connect_as(&self, &ann, link, "ann");
    (void)snprintf(message, sizeof(message), "'taskId':'%s','parts':[{'text':'done'}]", task);
    send_message(&one, &self, "desk", token, message);
    has(&one, "TASK_STATE_COMPLETED");
    has(&one, "you are ann");
    client_close(&one);
    /* who says no is believed */
    const char *bobs = token_for(&self, "bob");
    send_message(&one, &self, "desk", bobs, "'parts':[{'text':'s.who'}]");
    cut_out(&one, "\"task\":{\"id\":\"", task, sizeof(task));
    client_close(&one);
    (void)snprintf(message, sizeof(message),
                   "'taskId':'%s','parts':[{'data':{'action':'decline'}}]", task);
    send_message(&one, &self, "desk", bobs, message);
    has(&one, "TASK_STATE_FAILED");
    has(&one, "did not agree");
    client_close(&one);
    close_world(&self);
}

static void callers_of_an_agent_are_told_where(void **state)
{
    (void)state;
    world self;
    browser ann = {.status = 0};
    client one;
    char page[200];
    open_world(&self, true, "," SCENE_LOGIN);
    const char *token = token_for(&self, "ann");
    send_message(&one, &self, "r", token, "'parts':[{'text':'hello'}]");
    has(&one, "auth_expired");
    (void)snprintf(page, sizeof(page), "log in at %s/connect/r and", self.at.base);
    has(&one, page);
    client_close(&one);
    log_in_as(&self, &ann, "ann");
    browser_get(&ann, "%s/connect/r", self.at.base);
    press(&self, &ann, "r");
    visit_server(&ann, "ann");
    browser_get(&ann, "%s", ann.location);
    sees(&ann, 200, "may use this server in your name now");
    send_message(&one, &self, "r", token, "'parts':[{'text':'hello'}]");
    has(&one, "you are ann");
    client_close(&one);
    close_world(&self);
}

/* ---- whose it is ----------------------------------------------------------------------------- */

static void a_link_is_for_one_person_and_server(void **state)
{
    (void)state;
    world self;
    browser bob = {.status = 0}, ann = {.status = 0};
    char link[BROWSER_URL], token[100], body[2000], url[200];
    open_world(&self, true, "," SCENE_LOGIN);
    link_for(&self, token_for(&self, "ann"), link);
    log_in_as(&self, &bob, "bob");
    log_in_as(&self, &ann, "ann");
    const char *seal = strstr(link, "?for=");
    assert_non_null(seal);
    /* ann's link, sent to bob: he is told, and the form is not there */
    browser_get(&bob, "%s", link);
    sees(&bob, 403, "made for somebody else");
    assert_false(browser_sees(&bob, "<form"));
    /* … nor with the form of a link of his own */
    browser_get(&bob, "%s/connect/s", self.at.base);
    browser_field(&bob, "token", token, sizeof(token));
    (void)snprintf(url, sizeof(url), "%s/connect/s", self.at.base);
    (void)snprintf(body, sizeof(body), "token=%s&for=%s", token, seal + 5);
    assert_int_equal(browser_send(&bob, url, body), 403);
    /* ann's, for another server; changed; and a server that there is not */
    browser_get(&ann, "%s/connect/other%s", self.at.base, seal);
    sees(&ann, 403, "made for somebody else");
    browser_get(&ann, "%s/connect/s%s0", self.at.base, seal);
    sees(&ann, 403, "made for somebody else");
    assert_int_equal(browser_get(&ann, "%s/connect/none", self.at.base), 404);
    assert_int_equal(self.server.registrations + self.server.pages, 0);
    close_world(&self);
}

static void a_login_begins_with_the_form_alone(void **state)
{
    (void)state;
    world self;
    browser ann = {.status = 0}, bob = {.status = 0};
    char url[200], token[100], body[300];
    open_world(&self, true, "," SCENE_LOGIN);
    log_in_as(&self, &ann, "ann");
    log_in_as(&self, &bob, "bob");
    (void)snprintf(url, sizeof(url), "%s/connect/s", self.at.base);
    assert_int_equal(browser_send(&ann, url, ""), 403);
    assert_int_equal(browser_send(&ann, url, "token=x&for="), 403);
    browser_get(&bob, "%s", url); /* another session's, and another page's */
    browser_field(&bob, "token", token, sizeof(token));
    (void)snprintf(body, sizeof(body), "token=%s&for=", token);
    assert_int_equal(browser_send(&ann, url, body), 403);
    browser_get(&ann, "%s/connect/other", self.at.base);
    browser_field(&ann, "token", token, sizeof(token));
    (void)snprintf(body, sizeof(body), "token=%s&for=", token);
    assert_int_equal(browser_send(&ann, url, body), 403);
    browser_get(&ann, "%s", url); /* and from another site */
    browser_field(&ann, "token", token, sizeof(token));
    (void)snprintf(body, sizeof(body), "token=%s&for=", token);
    ann.origin = "https://evil.example";
    assert_int_equal(browser_send(&ann, url, body), 403);
    ann.origin = NULL;
    assert_int_equal(self.server.registrations + self.server.pages, 0);
    assert_int_equal(browser_send(&ann, url, body), 303);
    close_world(&self);
}

static void a_redirect_is_for_who_began_and_once(void **state)
{
    (void)state;
    world self;
    browser ann = {.status = 0}, bob = {.status = 0};
    char name[100], callback[BROWSER_URL];
    open_world(&self, true, "," SCENE_LOGIN);
    log_in_as(&self, &ann, "ann");
    log_in_as(&self, &bob, "bob");
    (void)snprintf(name, sizeof(name), "patchbay-%u-connect",
                   gateway_port(self.at.gateway.gateway));
    browser_get(&ann, "%s/connect/s", self.at.base);
    press(&self, &ann, "s");
    visit_server(&ann, "ann");
    (void)snprintf(callback, sizeof(callback), "%s", ann.location);
    assert_non_null(browser_cookie_of(&ann, name));
    /* bob's browser, without and with the cookie that was stolen: the victim's grant is not the thief's,
     * and the attacker's grant is not the victim's */
    browser_get(&bob, "%s", callback);
    sees(&bob, 403, "not begun by you in this browser");
    bob.cookies[bob.cookie_count++] = *browser_cookie_of(&ann, name);
    browser_get(&bob, "%s", callback);
    sees(&bob, 403, "not begun by you in this browser");
    /* another state, none, twice; a cookie that was changed */
    browser other = ann;
    assert_int_equal(browser_get(&other, "%s/connect?code=c", self.at.base), 403);
    browser forged = ann;
    browser_cookie_of(&forged, name)->value[60] ^= 1;
    assert_int_equal(browser_get(&forged, "%s", callback), 403);
    assert_int_equal(self.server.codes, 0);
    /* an attempt counts once, also where what came with it was wrong */
    assert_int_equal(browser_get(&ann, "%s", callback), 403);
    assert_int_equal(self.server.codes, 0);
    /* the honest one */
    browser_get(&ann, "%s/connect/s", self.at.base);
    press(&self, &ann, "s");
    visit_server(&ann, "ann");
    browser stolen = ann; /* who kept a copy of all */
    (void)snprintf(callback, sizeof(callback), "%s", ann.location);
    browser_get(&ann, "%s", callback);
    sees(&ann, 200, "may use this server in your name now");
    browser_get(&stolen, "%s", callback);
    sees(&stolen, 403, "not begun by you in this browser");
    assert_int_equal(self.server.codes, 1);
    close_world(&self);
}

/* A login that fails at the server keeps nothing, and says no more than that. */
static void what_a_server_refuses(void **state)
{
    (void)state;
    world self;
    browser ann = {.status = 0};
    open_world(&self, true, "," SCENE_LOGIN);
    log_in_as(&self, &ann, "ann");
    browser_get(&ann, "%s/connect/s", self.at.base);
    press(&self, &ann, "s");
    visit_server(&ann, "ann");
    /* mix-up: another issuer's code (RFC 9207) */
    char *iss = strstr(ann.location, "&iss=");
    assert_non_null(iss);
    *iss = '\0';
    browser_get(&ann, "%s&iss=https%%3A%%2F%%2Fevil.example", ann.location);
    sees(&ann, 403, "could not be verified");
    assert_int_equal(self.server.codes, 0);
    expect(&self, token_for(&self, "ann"), "", "", "auth_expired");
    close_world(&self);
}

static void each_user_has_his_own(void **state)
{
    (void)state;
    world self;
    browser ann = {.status = 0}, bob = {.status = 0};
    char link[BROWSER_URL];
    open_world(&self, false, "," SCENE_LOGIN);
    const char *anns = token_for(&self, "ann");
    const char *bobs = token_for(&self, "bob");
    self.server.secrets[0] = anns;
    self.server.secrets[1] = bobs;
    log_in_as(&self, &ann, "ann");
    log_in_as(&self, &bob, "bob");
    link_for(&self, anns, link);
    connect_as(&self, &ann, link, "ann");
    expect(&self, anns, "", "", "you are ann");
    link_for(&self, bobs, link); /* ann's login is not his */
    connect_as(&self, &bob, link, "bob");
    expect(&self, bobs, "", "", "you are bob");
    expect(&self, anns, "", "", "you are ann");
    assert_int_equal(self.server.registrations, 1); /* the gateway is one client there */
    assert_int_equal(self.server.mixed, 0);
    assert_int_equal(self.server.leaks, 0);
    close_world(&self);
}

static void the_gateway_describes_itself(void **state)
{
    (void)state;
    world self;
    browser any = {.status = 0};
    open_world(&self, true, "," SCENE_LOGIN);
    assert_int_equal(browser_get(&any, "%s/oauth/client.json", self.at.base), 200);
    assert_true(browser_sees(&any, "Access-Control-Allow-Origin: *"));
    char part[200];
    (void)snprintf(part, sizeof(part), "\"client_id\":\"%s/oauth/client.json\"", self.at.base);
    assert_true(browser_sees(&any, part));
    (void)snprintf(part, sizeof(part), "\"redirect_uris\":[\"%s/connect\"]", self.at.base);
    assert_true(browser_sees(&any, part));
    assert_true(browser_sees(&any, "\"token_endpoint_auth_method\":\"none\""));
    close_world(&self);
}

/* Where a proxy in front of the gateway would send it. */
static void come_through(const world *self, browser *of)
{
    char url[BROWSER_URL];
    assert_true(str_starts(str_of(of->location), STR(PUBLIC)));
    (void)snprintf(url, sizeof(url), "%s%s", self->at.base, of->location + strlen(PUBLIC));
    browser_get(of, "%s", url);
}

/* … and is known by that description where it counts, without a registration; so is the refresh. */
static void a_server_knows_the_gateway_by_its_description(void **state)
{
    (void)state;
    world self;
    browser ann = {.status = 0};
    open_at(&self, true, "," SCENE_LOGIN, "'publicUrl':'" PUBLIC "',");
    self.server.expires_s = 1;
    const char *token = token_for(&self, "ann");
    atomic_store(&self.at.idp.user, "ann");
    browser_get(&ann, "%s/connect/s", self.at.base);
    browser_get(&ann, "%s", ann.location);
    come_through(&self, &ann);
    assert_true(browser_sees(&ann, "__Host-"));
    come_through(&self, &ann);
    sees(&ann, 200, "Log in at a server?");
    press(&self, &ann, "s");
    assert_non_null(
        strstr(ann.location, "client_id=https%3A%2F%2Ftools.example%2Foauth%2Fclient.json&"));
    visit_server(&ann, "ann");
    come_through(&self, &ann);
    sees(&ann, 200, "may use this server in your name now");
    assert_int_equal(self.server.registrations, 0);
    expect(&self, token, "", "", "you are ann");
    self.server.epoch++; /* its tokens are refused: they are refreshed */
    expect(&self, token, "", "", "you are ann");
    assert_int_equal(self.server.reuses, 0);
    assert_true(self.server.refreshes >= 1);
    close_world(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_leads_to_the_login),
        cmocka_unit_test(a_retry_waits_for_the_user),
        cmocka_unit_test(a_gateway_ends_while_a_call_waits),
        cmocka_unit_test(who_does_not_agree_is_believed),
        cmocka_unit_test(clients_that_open_no_pages_are_told_the_address),
        cmocka_unit_test(a_session_is_told_when_it_is_done),
        cmocka_unit_test(callers_without_a_browser_are_told_so),
        cmocka_unit_test(a_task_waits_for_the_login),
        cmocka_unit_test(callers_of_an_agent_are_told_where),
        cmocka_unit_test(a_link_is_for_one_person_and_server),
        cmocka_unit_test(a_login_begins_with_the_form_alone),
        cmocka_unit_test(a_redirect_is_for_who_began_and_once),
        cmocka_unit_test(what_a_server_refuses),
        cmocka_unit_test(each_user_has_his_own),
        cmocka_unit_test(the_gateway_describes_itself),
        cmocka_unit_test(a_server_knows_the_gateway_by_its_description),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
