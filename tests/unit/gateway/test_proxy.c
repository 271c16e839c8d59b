/* The gateway as an authorization server: each published attack on such a proxy, by name; then what it is
 * for. Clients, people and the provider are the test's. */
#include <openssl/evp.h> /* without it there are no logins */

#include "support/login_scene.h" /* before what takes the word "fail" */

#include "oauth/proxy_client.h"

/* RFC 7636 appendix B. */
#define VERIFIER "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
#define CHALLENGE "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
#define PROXY SCENE_LOGIN ",'proxy':{'enabled':true,'scopes':['read','write']}"
#define CALLBACK "https://client.example/cb"

enum { CLIENT_ID = 1100, TEXT = 16 << 10 };

static void open_proxy(scene *self)
{
    open_with(self, PROXY, "");
}

/* ---- a client -------------------------------------------------------------------------------- */

static int post(scene *self, browser *by, const char *path, const char *format, ...)
    BAY_PRINTF(4, 5);
static int post(scene *self, browser *by, const char *path, const char *format, ...)
{
    char url[200], body[TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(body, sizeof(body), format, arguments);
    va_end(arguments);
    snprintf(url, sizeof(url), "%s%s", self->base, path);
    return browser_send(by, url, body);
}

static void member(const browser *of, const char *name, char *out, size_t size)
{
    char mark[100];
    snprintf(mark, sizeof(mark), "\"%s\":\"", name);
    const char *at = strstr(of->reply, mark);
    at = at != NULL ? at + strlen(mark) : "";
    snprintf(out, size, "%.*s", (int)strcspn(at, "\""), at);
}

static void register_as(scene *self, const char *name, const char *redirect, char *out_id)
{
    browser program = {.origin = "https://client.example"}; /* also from a page elsewhere */
    assert_int_equal(post(self, &program, "/oauth/register",
                          "{\"client_name\":\"%s\",\"redirect_uris\":[\"%s\"]}", name, redirect),
                     201);
    assert_true(browser_sees(&program, "Access-Control-Allow-Origin: *"));
    assert_false(
        browser_sees(&program, "secret-")); /* punkpeye/fastmcp#201: the provider's secret */
    member(&program, "client_id", out_id, CLIENT_ID);
    assert_true(out_id[0] != '\0');
}

#define GOOD                                                                                       \
    "response_type=code&redirect_uri=https%%3A%%2F%%2Fclient.example%%2Fcb&code_"                  \
    "challenge=" CHALLENGE "&code_challenge_method=S256&state=s1"

/* Opens a request of that client. */
static int asks(scene *self, browser *by, const char *client_id, const char *format, ...)
    BAY_PRINTF(4, 5);
static int asks(scene *self, browser *by, const char *client_id, const char *format, ...)
{
    char query[TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(query, sizeof(query), format, arguments);
    va_end(arguments);
    return browser_get(by, "%s/oauth/authorize?client_id=%s&%s", self->base, client_id, query);
}

/* The form of the page that is open, as it would be sent. */
static void form_of(const browser *by, const char *decision, char *out, size_t size)
{
    char token[100], request[BROWSER_URL];
    buf form;
    browser_field(by, "token", token, sizeof(token));
    browser_field(by, "request", request, sizeof(request));
    buf_init(&form, TEXT);
    oauth_form_put(&form, 0, STR("token"), str_of(token));
    oauth_form_put(&form, 0, STR("request"), str_of(request));
    oauth_form_put(&form, 0, STR("decision"), str_of(decision));
    snprintf(out, size, "%.*s", BAY_STR(buf_view(&form)));
    buf_fini(&form);
}

static int answers(scene *self, browser *by, const char *decision)
{
    char form[TEXT];
    form_of(by, decision, form, sizeof(form));
    return post(self, by, "/oauth/authorize", "%s", form);
}

/* A person allows it: the code. */
static void allow(scene *self, browser *by, const char *client_id, const char *more, char *out_code)
{
    assert_true(browser_get(by,
                            "%s/oauth/authorize?client_id=%s&response_type=code&redirect_uri="
                            "https%%3A%%2F%%2Fclient.example%%2Fcb&code_challenge=" CHALLENGE
                            "&code_challenge_method=S256&state=s1%s",
                            self->base, client_id, more) > 0);
    (void)browser_follow(by);
    sees(by, 200, "Allow access?");
    assert_int_equal(answers(self, by, "allow"), 303);
    browser_parameter(by, "code", out_code, 100);
    assert_true(str_starts(str_of(out_code), STR("pbo_")));
}

static int redeems(scene *self, browser *program, const char *client_id, const char *code,
                   const char *more)
{
    return post(self, program, "/oauth/token",
                "grant_type=authorization_code&client_id=%s&code=%s&redirect_uri="
                "https%%3A%%2F%%2Fclient.example%%2Fcb%s",
                client_id, code, more);
}

static int lists(scene *self, const char *path, const char *token)
{
    client one;
    char fields[1000];
    client_open(&one, &self->gateway);
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n"
                   "Authorization: Bearer %s\r\n",
                   token);
    client_post(&one, path, fields,
                "{'jsonrpc':'2.0','id':1,'method':'tools/list','params':{" RIG_META "}}}");
    int status = client_reply(&one);
    client_close(&one);
    return status;
}

/* ---- consent --------------------------------------------------------------------------------- */

/* cloudflare/ai#51, PrefectHQ/fastmcp#2056 and #3201, GHSA-6x8h-498w-gv8c: whoever is known to the
 * provider, or allowed this client or another before, is asked again, also after a link from another site. */
static void consent_is_asked_each_time(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0};
    char first[CLIENT_ID], second[CLIENT_ID], code[100];
    open_proxy(&self);
    register_as(&self, "one", CALLBACK, first);
    register_as(&self, "two", CALLBACK, second);
    allow(&self, &ann, first, "", code);
    for (int i = 0; i < 3; i++) {
        const char *id = i == 0 ? second : first;
        assert_int_equal(asks(&self, &ann, id, GOOD "%s", i == 2 ? "&prompt=none" : ""), 200);
        sees(&ann, 200, "Allow access?");
        assert_true(browser_sees(&ann, i == 0 ? "<dd>two</dd>" : "<dd>one</dd>"));
        assert_true(browser_sees(&ann, "<dd>client.example</dd>"));
        assert_int_equal(ann.location[0], '\0');
    }
    close_scene(&self);
}

/* CVE-2026-27124: who consents is who completes. The form of one browser is good in no other, and the
 * login of one ends in no other. */
static void consent_is_of_one_browser(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0}, eve = {.status = 0};
    char id[CLIENT_ID], form[TEXT], code[100];
    open_proxy(&self);
    register_as(&self, "one", CALLBACK, id);
    allow(&self, &ann, id, "", code);
    allow(&self, &eve, id, "", code);
    (void)asks(&self, &eve, id, GOOD);
    form_of(&eve, "allow", form, sizeof(form));
    /* eve's page submitted by ann's browser (CSRF), by one without a session, from another site */
    assert_int_equal(post(&self, &ann, "/oauth/authorize", "%s", form), 403);
    assert_int_equal(ann.location[0], '\0');
    browser nobody = {.status = 0};
    assert_int_equal(post(&self, &nobody, "/oauth/authorize", "%s", form), 403);
    eve.origin = "https://evil.example";
    assert_int_equal(post(&self, &eve, "/oauth/authorize", "%s", form), 403);
    eve.origin = NULL;
    /* the provider's redirect of a login that eve began for this request, in ann's browser */
    browser other = {.status = 0};
    (void)asks(&self, &other, id, GOOD);
    (void)browser_get(&other, "%s", other.location);
    assert_int_equal(browser_get(&ann, "%s", other.location), 403);
    /* it was good all the time */
    assert_int_equal(post(&self, &eve, "/oauth/authorize", "%s", form), 303);
    close_scene(&self);
}

/* What was shown is what is allowed: another client, redirect, scope or state needs a page of its own. */
static void consent_is_for_one_request(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0};
    char mine[CLIENT_ID], evil[CLIENT_ID], code[100], token[100], request[BROWSER_URL];
    open_proxy(&self);
    register_as(&self, "one", CALLBACK, mine);
    register_as(&self, "two", CALLBACK, evil);
    allow(&self, &ann, mine, "", code);
    (void)asks(&self, &ann, mine, GOOD "&scope=read");
    browser_field(&ann, "token", token, sizeof(token));
    browser_field(&ann, "request", request, sizeof(request));
    for (int i = 0; i < 4; i++) {
        char query[BROWSER_URL];
        buf form;
        snprintf(query, sizeof(query),
                 "client_id=%s&response_type=code&redirect_uri=%s"
                 "&code_challenge=%s&code_challenge_method=S256&state=%s&scope=%s",
                 i == 0 ? evil : mine, "https%3A%2F%2Fclient.example%2Fcb",
                 i == 1 ? "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" : CHALLENGE,
                 i == 2 ? "s2" : "s1", i == 3 ? "write" : "read");
        buf_init(&form, TEXT);
        oauth_form_put(&form, 0, STR("token"), str_of(token));
        oauth_form_put(&form, 0, STR("request"), str_of(query));
        oauth_form_put(&form, 0, STR("decision"), STR("allow"));
        assert_int_equal(post(&self, &ann, "/oauth/authorize", "%.*s", BAY_STR(buf_view(&form))),
                         403);
        assert_int_equal(ann.location[0], '\0');
        buf_fini(&form);
    }
    /* and a GET allows nothing */
    assert_int_equal(browser_get(&ann, "%s/oauth/authorize?%s&token=%s&decision=allow", self.base,
                                 request, token),
                     200);
    assert_int_equal(ann.location[0], '\0');
    close_scene(&self);
}

static void who_denies_is_believed(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0};
    char id[CLIENT_ID], code[100], text[200];
    open_proxy(&self);
    register_as(&self, "one", CALLBACK, id);
    allow(&self, &ann, id, "", code);
    static const char *const decisions[] = {"deny", "", "Allow"};
    for (size_t i = 0; i < ARRAY_LEN(decisions); i++) {
        (void)asks(&self, &ann, id, GOOD);
        assert_int_equal(answers(&self, &ann, decisions[i]), 303);
        browser_parameter(&ann, "error", text, sizeof(text));
        assert_string_equal(text, "access_denied");
        browser_parameter(&ann, "iss", text, sizeof(text)); /* MCP#1721: also in errors */
        assert_string_equal(text, self.base);
        browser_parameter(&ann, "code", text, sizeof(text));
        assert_string_equal(text, "");
    }
    close_scene(&self);
}

/* CVE-2025-58444, clickjacking: names and addresses of clients are text, and the page is in no frame. */
static void a_client_writes_nothing_on_the_page(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0};
    char id[CLIENT_ID], code[100];
    open_proxy(&self);
    register_as(&self, "<script>alert(1)</script>\\\" onload=x", CALLBACK, id);
    allow(&self, &ann, id, "", code);
    (void)asks(&self, &ann, id, GOOD "&x=%%22%%3E%%3Cscript%%3E");
    sees(&ann, 200, "&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=x");
    assert_false(browser_sees(&ann, "<script"));
    assert_true(browser_sees(&ann, "frame-ancestors 'none'"));
    assert_true(browser_sees(&ann, "X-Frame-Options: DENY"));
    assert_true(browser_sees(&ann, "default-src 'none'"));
    close_scene(&self);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* CVE-2025-4143, GHSA-wx5f-576r-gpcx, CVE-2025-4144: who is not registered, wants the answer elsewhere, or
 * leaves PKCE out. Each is a page: nobody is redirected, nobody is asked to log in. */
static void requests_that_are_not_shown(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "response_type=code&code_challenge=" CHALLENGE "&code_challenge_method=S256",
        "response_type=code&redirect_uri=https%%3A%%2F%%2Fevil.example%%2Fcb&code_"
        "challenge=" CHALLENGE "&code_challenge_method=S256",
        "response_type=code&redirect_uri=https%%3A%%2F%%2Fclient.example%%2Fcb%%2F&code_"
        "challenge=" CHALLENGE "&code_challenge_method=S256",
        "response_type=code&redirect_uri=javascript%%3Aalert(1)&code_challenge=" CHALLENGE
        "&code_challenge_method=S256",
        "response_type=code&redirect_uri=https%%3A%%2F%%2Fclient.example%%2Fcb",
        "response_type=code&redirect_uri=https%%3A%%2F%%2Fclient.example%%2Fcb&code_"
        "challenge=" CHALLENGE,
        "response_type=code&redirect_uri=https%%3A%%2F%%2Fclient.example%%2Fcb&code_"
        "challenge=" CHALLENGE "&code_challenge_method=plain",
        "response_type=code&redirect_uri=https%%3A%%2F%%2Fclient.example%%2Fcb&code_challenge=short"
        "&code_challenge_method=S256",
        "response_type=token&redirect_uri=https%%3A%%2F%%2Fclient.example%%2Fcb&code_"
        "challenge=" CHALLENGE "&code_challenge_method=S256",
        GOOD "&response_mode=fragment",
        GOOD "&request=eyJ",
        GOOD "&request_uri=https%%3A%%2F%%2Fevil.example",
        GOOD "&redirect_uri=https%%3A%%2F%%2Fevil.example%%2Fcb",
        GOOD "&state=s2",
        GOOD "&resource=https%%3A%%2F%%2Fother.example%%2Fmcp",
        GOOD "&client_id=other",
    };
    scene self;
    browser ann = {.status = 0};
    char id[CLIENT_ID], longer[3000];
    open_proxy(&self);
    register_as(&self, "one", CALLBACK, id);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char query[2000];
        snprintf(query, sizeof(query), "%s", bad[i]);
        for (char *at = query; (at = strstr(at, "%%")) != NULL; at++) { /* as the format would */
            memmove(at, at + 1, strlen(at));
        }
        if (asks(&self, &ann, id, "%s", query) != 400 || ann.location[0] != '\0') {
            fail_msg("%d to %s: %s", ann.status, ann.location, query);
        }
    }
    static const char *const ids[] = {"", "web", "pbc_AAAA", "https%3A%2F%2Fc.example%2F"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        assert_int_equal(asks(&self, &ann, ids[i], GOOD), 400);
        assert_int_equal(ann.location[0], '\0');
    }
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(asks(&self, &ann, id, GOOD "&x=%s", longer), 400);
    assert_int_equal(self.idp.requests, 0);
    assert_int_equal(ann.cookie_count, 0);
    close_scene(&self);
}

/* A client that is described at a URL: read once the person is known, and shown with that URL. Whatever the
 * document is, nobody is redirected before the person allowed it. */
static void a_client_may_be_described_elsewhere(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0}, program = {.status = 0};
    char id[300], url[200], text[PROVIDER_TEXT], code[100];
    static char longer[PROVIDER_TEXT * 2];
    open_proxy(&self);
    snprintf(url, sizeof(url), "%s/client.json", self.idp.issuer);
    buf encoded;
    buf_init(&encoded, sizeof(id));
    oauth_form_encode(&encoded, str_of(url));
    snprintf(id, sizeof(id), "%.*s", BAY_STR(buf_view(&encoded)));
    buf_fini(&encoded);
    snprintf(text, sizeof(text),
             "{\"client_id\":\"%s\",\"client_name\":\"far\",\"redirect_uris\":[\"" CALLBACK "\"]}",
             url);
    self.idp.document = text;
    /* nothing is fetched for somebody who is nobody */
    assert_int_equal(asks(&self, &ann, id, GOOD), 303);
    assert_true(strstr(ann.location, "/authorize?") != NULL);
    assert_int_equal(self.idp.requests, self.idp.metadata + 1); /* the two places of metadata */
    allow(&self, &ann, id, "", code);
    assert_int_equal(redeems(&self, &program, id, code, "&code_verifier=" VERIFIER), 200);
    (void)asks(&self, &ann, id, GOOD);
    sees(&ann, 200, "<dd>far</dd>");
    sees(&ann, 200, url);
    /* another redirect than the described one */
    assert_int_equal(browser_get(&ann,
                                 "%s/oauth/authorize?client_id=%s&response_type=code&redirect_uri="
                                 "https%%3A%%2F%%2Fevil.example%%2Fcb&code_challenge=" CHALLENGE
                                 "&code_challenge_method=S256",
                                 self.base, id),
                     400);
    assert_int_equal(ann.location[0], '\0');
    /* documents that are none */
    memset(longer, ' ', OAUTH_PROXY_DOCUMENT_BYTES + 1); /* good, but for its length */
    memcpy(longer, text, strlen(text));
    const char *const bad[] = {
        NULL,   "{}",
        "x",    "[]",
        longer, "{\"client_id\":\"https://other.example/x\",\"redirect_uris\":[\"" CALLBACK "\"]}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        self.idp.document = bad[i];
        assert_int_equal(asks(&self, &ann, id, GOOD), 400);
        assert_int_equal(ann.location[0], '\0');
    }
    self.idp.document = text;
    self.idp.document_status = 404; /* whatever it says */
    assert_int_equal(asks(&self, &ann, id, GOOD), 400);
    /* addresses that nobody is asked for */
    static const char *const elsewhere[] = {"http%3A%2F%2F10.0.0.1%2Fclient.json",
                                            "http%3A%2F%2Fc.example%2Fclient.json"};
    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++) {
        assert_int_equal(asks(&self, &ann, elsewhere[i], GOOD), 400);
        assert_int_equal(ann.location[0], '\0');
    }
    close_scene(&self);
}

/* ---- codes and tokens ------------------------------------------------------------------------ */

static void a_code_is_for_who_asked(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "&code_verifier=",
        "&code_verifier=" CHALLENGE,
        "&code_verifier=short",
        "&code_verifier=" VERIFIER "&resource=https%3A%2F%2Fother.example",
        "&code_verifier=" VERIFIER "&code=x",
        "&code_verifier=" VERIFIER "&client_secret=s",
    };
    scene self;
    browser ann = {.status = 0}, program = {.status = 0};
    char id[CLIENT_ID], other[CLIENT_ID], code[100];
    open_proxy(&self);
    register_as(&self, "one", CALLBACK, id);
    register_as(&self, "two", CALLBACK, other);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        allow(&self, &ann, id, "", code);
        assert_int_equal(redeems(&self, &program, id, code, bad[i]), 400);
        assert_false(browser_sees(&program, "access_token"));
    }
    allow(&self, &ann, id, "", code);
    assert_int_equal(redeems(&self, &program, other, code, "&code_verifier=" VERIFIER), 400);
    sees(&program, 400, "\"error\":\"invalid_grant\"");
    assert_int_equal(redeems(&self, &program, id, code, "&code_verifier=" VERIFIER), 400);
    assert_int_equal(redeems(&self, &program, "web", code, "&code_verifier=" VERIFIER), 400);
    sees(&program, 400, "\"error\":\"invalid_client\"");
    assert_int_equal(
        post(&self, &program, "/oauth/token", "grant_type=client_credentials&client_id=%s", id),
        400);
    sees(&program, 400, "\"error\":\"unsupported_grant_type\"");
    close_scene(&self);
}

static void a_client_comes_in(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0}, program = {.status = 0};
    char id[CLIENT_ID], code[100], text[200], access[100], refresh[100], more[300];
    open_proxy(&self);
    /* where it learns of all this */
    assert_int_equal(
        browser_get(&program, "%s/.well-known/oauth-protected-resource/mcp", self.base), 200);
    snprintf(text, sizeof(text), "\"authorization_servers\":[\"%s\",\"%s\"]", self.base,
             self.idp.issuer);
    sees(&program, 200, text);
    assert_int_equal(browser_get(&program, "%s/.well-known/oauth-authorization-server", self.base),
                     200);
    snprintf(text, sizeof(text), "{\"issuer\":\"%s\"", self.base);
    sees(&program, 200, text);
    assert_true(browser_sees(&program, "\"code_challenge_methods_supported\":[\"S256\"]"));
    assert_true(browser_sees(&program, "\"authorization_response_iss_parameter_supported\":true"));
    register_as(&self, "one", CALLBACK, id);
    /* the person allows a part of what it wants, for one endpoint */
    snprintf(more, sizeof(more),
             "&scope=read+admin&resource=http%%3A%%2F%%2F127.0.0.1%%3A%u%%2Fmcp",
             gateway_port(self.gateway.gateway));
    allow(&self, &ann, id, more, code);
    assert_true(str_starts(str_of(ann.location), STR(CALLBACK "?code=pbo_")));
    browser_parameter(&ann, "state", text, sizeof(text));
    assert_string_equal(text, "s1");
    browser_parameter(&ann, "iss", text, sizeof(text));
    assert_string_equal(text, self.base);
    assert_int_equal(redeems(&self, &program, id, code, "&code_verifier=" VERIFIER), 200);
    sees(&program, 200, "\"scope\":\"read\"");
    assert_true(browser_sees(&program, "Cache-Control: no-store"));
    assert_false(browser_sees(&program, "upstream")); /* the provider's tokens never leave */
    member(&program, "access_token", access, sizeof(access));
    member(&program, "refresh_token", refresh, sizeof(refresh));
    assert_int_equal(lists(&self, "/mcp", access), 200);
    assert_int_equal(lists(&self, "/mcp/a", access), 401); /* another resource */
    assert_int_equal(lists(&self, "/mcp", refresh), 401);
    assert_int_equal(lists(&self, "/mcp", "secret-upstream-access"), 401);
    /* refresh, once; then the family is over */
    assert_int_equal(post(&self, &program, "/oauth/token",
                          "grant_type=refresh_token&client_id=%s&refresh_token=%s", id, refresh),
                     200);
    member(&program, "access_token", access, sizeof(access));
    assert_int_equal(lists(&self, "/mcp", access), 200);
    assert_int_equal(post(&self, &program, "/oauth/token",
                          "grant_type=refresh_token&client_id=%s&refresh_token=%s", id, refresh),
                     400);
    assert_int_equal(lists(&self, "/mcp", access), 401);
    close_scene(&self);
}

static void a_token_for_all_and_its_end(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0}, program = {.status = 0};
    char id[CLIENT_ID], code[100], access[100];
    open_proxy(&self);
    register_as(&self, "one", CALLBACK, id);
    allow(&self, &ann, id, "", code);
    assert_int_equal(redeems(&self, &program, id, code, "&code_verifier=" VERIFIER), 200);
    member(&program, "access_token", access, sizeof(access));
    assert_int_equal(lists(&self, "/mcp", access), 200);
    assert_int_equal(lists(&self, "/mcp/a", access), 200);
    /* a logout ends the browser's session, not what was allowed; a revocation does, at once */
    assert_int_equal(post(&self, &program, "/oauth/revoke", "client_id=%s&token=%s", id, access),
                     200);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(lists(&self, "/mcp", access), 401);
    }
    assert_int_equal(rig_log_count("pbt_"), 0);
    assert_int_equal(rig_log_count("pbo_"), 0);
    close_scene(&self);
}

/* ---- registration ---------------------------------------------------------------------------- */

static void registrations_are_bounded(void **state)
{
    (void)state;
    scene self;
    browser program = {.status = 0};
    int status = 201;
    open_proxy(&self);
    assert_int_equal(
        post(&self, &program, "/oauth/register", "{\"redirect_uris\":[\"javascript:alert(1)\"]}"),
        400);
    sees(&program, 400, "\"error\":\"invalid_redirect_uri\"");
    for (int i = 0; i < 200 && status == 201; i++) {
        status = post(&self, &program, "/oauth/register", "{\"redirect_uris\":[\"" CALLBACK "\"]}");
    }
    assert_int_equal(status, 429);
    close_scene(&self);
}

static void without_it_there_is_nothing(void **state)
{
    (void)state;
    static const char *const paths[] = {"/oauth/authorize", "/oauth/token", "/oauth/register",
                                        "/oauth/revoke", "/.well-known/oauth-authorization-server"};
    scene self;
    browser program = {.status = 0};
    open_scene(&self);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        assert_int_equal(browser_get(&program, "%s%s", self.base, paths[i]), 404);
    }
    assert_int_equal(
        lists(&self, "/mcp", "pbt_0000000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        401);
    close_scene(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consent_is_asked_each_time),
        cmocka_unit_test(consent_is_of_one_browser),
        cmocka_unit_test(consent_is_for_one_request),
        cmocka_unit_test(who_denies_is_believed),
        cmocka_unit_test(a_client_writes_nothing_on_the_page),
        cmocka_unit_test(requests_that_are_not_shown),
        cmocka_unit_test(a_client_may_be_described_elsewhere),
        cmocka_unit_test(a_code_is_for_who_asked),
        cmocka_unit_test(a_client_comes_in),
        cmocka_unit_test(a_token_for_all_and_its_end),
        cmocka_unit_test(registrations_are_bounded),
        cmocka_unit_test(without_it_there_is_nothing),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
