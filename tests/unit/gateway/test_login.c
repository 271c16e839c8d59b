/* People who log in with a browser: what is refused and not, where browsers are sent, what a session
 * is and when it ends. */
#include <openssl/evp.h> /* without it there are no logins */
#include <sqlite3.h>     /* and without it nobody is blocked */

#include "support/login_scene.h" /* before what takes the word "fail" */

#include "auth/block.h"
#include "support/store_row.h"

/* ---- what there is --------------------------------------------------------------------------- */

static void without_a_login_there_are_no_pages(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0};
    static const char *const paths[] = {"/login", "/login/callback?code=a&state=b", "/logout"};
    open_with(&self, "'apiKeys':false", "");
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        assert_int_equal(browser_get(&ann, "%s%s", self.base, paths[i]), 404);
    }
    assert_int_equal(ann.cookie_count, 0);
    close_scene(&self);
}

static void a_person_logs_in_and_out(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0};
    char name[100], token[100], body[200];
    open_scene(&self);
    session_name(&self, name);
    assert_int_equal(browser_get(&ann, "%s/login", self.base), 303);
    assert_true(str_starts(str_of(ann.location), str_of(self.idp.issuer)));
    assert_non_null(strstr(ann.location, "/authorize?response_type=code&client_id=web&"));
    assert_non_null(strstr(ann.location, "&code_challenge_method=S256"));
    assert_non_null(strstr(ann.location, "&scope=openid&nonce="));
    assert_null(strstr(ann.location, "resource="));
    assert_null(browser_cookie_of(&ann, name)); /* nothing is given before */
    (void)browser_get(&ann, "%s", ann.location);
    assert_int_equal(browser_get(&ann, "%s", ann.location), 303); /* the callback */
    assert_true(browser_sees(&ann, "HttpOnly; SameSite=Lax"));
    assert_non_null(browser_cookie_of(&ann, name));
    assert_int_equal(ann.cookie_count, 1); /* the attempt's is gone */
    (void)browser_follow(&ann);
    sees(&ann, 200, "<dd>ann</dd>");
    assert_true(browser_sees(&ann, "frame-ancestors 'none'"));
    assert_true(browser_sees(&ann, "default-src 'none'"));
    assert_true(browser_sees(&ann, "Cache-Control: no-store"));
    /* out again: not by a link, not by another page */
    assert_int_equal(browser_get(&ann, "%s/logout", self.base), 200);
    browser_field(&ann, "token", token, sizeof(token));
    assert_int_equal(strlen(token), 43);
    (void)snprintf(body, sizeof(body), "%s/logout", self.base);
    assert_int_equal(browser_send(&ann, body, ""), 403);
    assert_int_equal(browser_send(&ann, body, "token=x"), 403);
    char form[200];
    (void)snprintf(form, sizeof(form), "token=%s", token);
    ann.origin = "https://evil.example";
    assert_int_equal(browser_send(&ann, body, form), 403);
    ann.origin = NULL;
    browser stolen = ann; /* who kept a copy of the cookie */
    assert_int_equal(browser_send(&ann, body, form), 200);
    assert_int_equal(ann.cookie_count, 0);
    assert_int_equal(browser_get(&stolen, "%s/login", self.base), 303);
    assert_true(str_starts(str_of(stolen.location), str_of(self.idp.issuer)));
    assert_int_equal(self.idp.keys, 1);
    close_scene(&self);
}

/* ---- redirects that nobody asked for --------------------------------------------------------- */

static void a_redirect_is_for_the_browser_that_asked(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0}, eve = {.status = 0};
    char name[100], callback[BROWSER_URL];
    open_scene(&self);
    login_name(&self, name);
    browser_get(&ann, "%s/login", self.base);
    browser_get(&ann, "%s", ann.location);
    (void)snprintf(callback, sizeof(callback), "%s", ann.location);
    /* login CSRF: eve's browser has no attempt, then one of its own */
    sees(&eve, browser_get(&eve, "%s", callback), "not begun in this browser");
    assert_int_equal(eve.status, 403);
    browser_get(&eve, "%s/login", self.base);
    assert_int_equal(browser_get(&eve, "%s", callback), 403);
    /* another state, none, two; a cookie that was changed */
    assert_int_equal(browser_get(&ann, "%s/login/callback?code=c&state=x", self.base), 403);
    assert_int_equal(browser_get(&ann, "%s/login/callback?code=c", self.base), 403);
    assert_int_equal(browser_get(&ann, "%s&state=y", callback), 403);
    assert_int_equal(self.idp.tokens, 0); /* nothing was fetched for any of them */
    browser forged = ann;
    browser_cookie_of(&forged, name)->value[60] ^= 1;
    assert_int_equal(browser_get(&forged, "%s", callback), 403);
    /* the issuer is another one's, or the code: nobody is logged in */
    browser mixed = ann;
    char *iss = strstr(callback, "&iss=");
    assert_non_null(iss);
    assert_int_equal(browser_get(&mixed, "%.*s&iss=https%%3A%%2F%%2Fevil.example%s",
                                 (int)(iss - callback), callback, strstr(iss + 1, "&")),
                     403);
    assert_int_equal(self.idp.tokens, 0);
    browser injected = ann;
    char *code = strstr(callback, "&code=");
    assert_int_equal(browser_get(&injected, "%.*s&code=injected", (int)(code - callback), callback),
                     403);
    assert_int_equal(self.idp.tokens, 1);
    assert_int_equal(self.idp.refused, 1);
    session_name(&self, name);
    assert_null(browser_cookie_of(&injected, name));
    /* the honest one goes on */
    assert_int_equal(browser_get(&ann, "%s", callback), 303);
    assert_non_null(browser_cookie_of(&ann, name));
    /* once */
    assert_int_equal(browser_get(&ann, "%s", callback), 403);
    close_scene(&self);
}

static void a_session_is_never_the_browsers_to_choose(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0}, eve = {.status = 0};
    char name[100];
    open_scene(&self);
    session_name(&self, name);
    /* fixation: what was there before the login is not what is there after it */
    eve.cookie_count = 1;
    (void)snprintf(eve.cookies[0].name, sizeof(eve.cookies[0].name), "%s", name);
    (void)memset(eve.cookies[0].value, 'A', 43);
    log_in(&self, &eve);
    assert_int_not_equal(browser_cookie_of(&eve, name)->value[0], 'A');
    log_in(&self, &ann);
    assert_string_not_equal(browser_cookie_of(&eve, name)->value,
                            browser_cookie_of(&ann, name)->value);
    /* two cookies of one name: another program of this machine may have set one */
    browser both = ann;
    both.cookies[both.cookie_count++] = both.cookies[0];
    assert_int_equal(browser_get(&both, "%s/login", self.base), 303);
    assert_true(str_starts(str_of(both.location), str_of(self.idp.issuer)));
    close_scene(&self);
}

static void nobody_is_led_elsewhere(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0};
    static const char *const bad[] = {
        "https://evil.example/", "//evil.example", "/%5cevil.example",   "evil",   "/a%0d%0aX:y",
        "javascript:alert(1)",   "/a%09b",         "%2f%2fevil.example", "/a%23b", "",
    };
    open_scene(&self);
    log_in(&self, &ann);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        browser_get(&ann, "%s/login?return=%s", self.base, bad[i]);
        if (ann.status != 200 || ann.location[0] != '\0') {
            fail_msg("led to %s by %s", ann.location, bad[i]);
        }
    }
    char wanted[100];
    browser_get(&ann, "%s/login?return=%%2Fhealthz%%3Fa%%3D1", self.base);
    (void)snprintf(wanted, sizeof(wanted), "%s/healthz?a=1", self.base);
    assert_int_equal(ann.status, 303);
    assert_string_equal(ann.location, wanted);
    /* and through the provider */
    browser bob = {.status = 0};
    browser_get(&bob, "%s/login?return=%%2Fhealthz%%3Fa%%3D1", self.base);
    for (int i = 0; i < 3; i++) { /* the provider, the callback, the page that was asked for */
        browser_get(&bob, "%s", bob.location);
    }
    assert_string_equal(bob.location, wanted);
    close_scene(&self);
}

/* ---- the provider's answers ------------------------------------------------------------------ */

static void ends_with(scene *self, int status, const char *part, const char *logged)
{
    browser ann = {.status = 0};
    char name[100];
    int before = rig_log_count(logged);
    session_name(self, name);
    browser_get(&ann, "%s/login", self->base);
    (void)browser_follow(&ann);
    sees(&ann, status, part);
    assert_null(browser_cookie_of(&ann, name));
    if (rig_log_count(logged) != before + 1) {
        fail_msg("the log does not say: %s", logged);
    }
}

static void an_id_token_must_be_of_this_login(void **state)
{
    (void)state;
    scene self;
    open_scene(&self);
    self.idp.nonce = "another";
    ends_with(&self, 403, "refused", "its nonce is another one");
    self.idp.nonce = NULL;
    self.idp.audience = "\"other\"";
    ends_with(&self, 403, "refused", "is for another audience");
    self.idp.audience = "[\"web\",\"other\"]"; /* without azp */
    ends_with(&self, 403, "refused", "was given to another client");
    self.idp.audience = NULL;
    self.idp.more = ",\"azp\":\"other\"";
    ends_with(&self, 403, "refused", "was given to another client");
    self.idp.more = ",\"events\":{}"; /* a logout token */
    ends_with(&self, 403, "refused", "is no ID token");
    self.idp.more = NULL;
    self.idp.from = "https://evil.example";
    ends_with(&self, 403, "refused", "is of another issuer");
    self.idp.from = NULL;
    self.idp.expires_s = -120;
    ends_with(&self, 403, "refused", "has expired");
    self.idp.expires_s = 0;
    self.idp.header = "{\"alg\":\"none\"}";
    ends_with(&self, 403, "refused", "has a header that is not understood");
    self.idp.header = "{\"alg\":\"HS256\",\"kid\":\"k1\"}";
    ends_with(&self, 403, "refused", "has a header that is not understood");
    self.idp.header = "{\"alg\":\"ES256\",\"kid\":\"k1\",\"typ\":\"at+jwt\"}";
    ends_with(&self, 403, "refused", "is no ID token");
    self.idp.header = NULL;
    self.idp.has_no_token = true;
    ends_with(&self, 403, "refused", "has no ID token");
    self.idp.has_no_token = false;
    self.idp.refuses = "access_denied";
    ends_with(&self, 403, "refused", "the login was refused: access_denied");
    self.idp.refuses = NULL;
    browser ann = {.status = 0};
    self.idp.audience = "[\"other\",\"web\"]";
    self.idp.more = ",\"azp\":\"web\"";
    log_in(&self, &ann);
    close_scene(&self);
}

static void a_provider_that_is_away(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0};
    open_scene(&self);
    self.idp.is_down = true;
    for (int i = 0; i < 5; i++) {
        browser_get(&ann, "%s/login", self.base);
        sees(&ann, 503, "Try again");
    }
    assert_int_equal(ann.cookie_count, 0);
    assert_in_range(self.idp.requests, 1, 2); /* it is left alone: once for each loop */
    close_scene(&self);
}

static void who_leaves_is_not_waited_for(void **state)
{
    (void)state;
    scene self;
    client gone[8];
    open_scene(&self);
    self.idp.is_silent = true;
    for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
        client_open(&gone[i], &self.gateway);
        (void)client_send(&gone[i], "GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    }
    for (size_t i = 0; i < ARRAY_LEN(gone) / 2; i++) { /* the others wait until the end */
        client_close(&gone[i]);
    }
    gateway_stop(self.gateway.gateway);
    for (size_t i = ARRAY_LEN(gone) / 2; i < ARRAY_LEN(gone); i++) {
        while (client_read(&gone[i])) { /* to the end of the connection */
        }
        client_close(&gone[i]);
    }
    provider_stop(&self.idp);
    rig_join(&self.gateway);
}

static void a_reload_that_changes_auth_ends_sessions(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0};
    char settings[2000];
    open_scene(&self);
    log_in(&self, &ann);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(settings, sizeof(settings),
                       "{" SCENE_TIMES "'auth':{'issuers':{'idp':{'url':'%s'%s}}," SCENE_LOGIN
                       "},'profiles':{'p%d':{'servers':['a']}}," SCENE_SERVERS "}",
                       self.idp.issuer, i == 0 ? "" : ",'clients':['c']", i);
        rig_configure(&self.gateway, settings);
        rig_ask_reload(&self.gateway);
        wait_until(atomic_load(&self.gateway.reloaded) == i + 1);
        browser_get(&ann, "%s/login", self.base);
        assert_int_equal(ann.status, i == 0 ? 200 : 303);
    }
    close_scene(&self);
}

static void who_is_blocked_has_no_pages(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0};
    char rows[64], more[100], key[DIGEST_TEXT_BYTES + 1], name[100];
    (void)snprintf(rows, sizeof(rows), "/tmp/rig.login.%d.store", (int)getpid());
    (void)snprintf(more, sizeof(more), ",'store':'%s'", rows);
    assert_int_equal(block_key(STR("ann"), key), BAY_OK);
    store_row_put(rows, STR(BLOCK_TABLE), str_of(key), STR("ann"));
    open_with(&self, SCENE_LOGIN, more);
    browser_get(&ann, "%s/login", self.base);
    (void)browser_follow(&ann);
    sees(&ann, 403, "this caller is blocked");
    session_name(&self, name);
    assert_null(browser_cookie_of(&ann, name));
    close_scene(&self);
    store_row_remove_files(rows);
}

static void its_cookies_are_for_one_host(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0};
    open_with(&self, SCENE_LOGIN, ",'publicUrl':'https://gw.example/x'");
    browser_get(&ann, "%s/login", self.base);
    assert_int_equal(ann.status, 303);
    assert_true(browser_sees(&ann, "Set-Cookie: __Host-patchbay-login="));
    assert_true(browser_sees(&ann, "; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=600"));
    assert_non_null(
        strstr(ann.location, "redirect_uri=https%3A%2F%2Fgw.example%2Fx%2Flogin%2Fcallback"));
    close_scene(&self);
}

static void what_other_methods_get(void **state)
{
    (void)state;
    scene self;
    browser ann = {.status = 0};
    char url[100];
    open_scene(&self);
    (void)snprintf(url, sizeof(url), "%s/login", self.base);
    assert_int_equal(browser_send(&ann, url, "a=b"), 405);
    (void)snprintf(url, sizeof(url), "%s/login/callback", self.base);
    assert_int_equal(browser_send(&ann, url, "code=a&state=b"), 405);
    close_scene(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_login_there_are_no_pages),
        cmocka_unit_test(a_person_logs_in_and_out),
        cmocka_unit_test(a_redirect_is_for_the_browser_that_asked),
        cmocka_unit_test(a_session_is_never_the_browsers_to_choose),
        cmocka_unit_test(nobody_is_led_elsewhere),
        cmocka_unit_test(an_id_token_must_be_of_this_login),
        cmocka_unit_test(a_provider_that_is_away),
        cmocka_unit_test(who_leaves_is_not_waited_for),
        cmocka_unit_test(a_reload_that_changes_auth_ends_sessions),
        cmocka_unit_test(who_is_blocked_has_no_pages),
        cmocka_unit_test(its_cookies_are_for_one_host),
        cmocka_unit_test(what_other_methods_get),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
