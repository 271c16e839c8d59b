/* OpenID Connect logins by the client's machine, and attempts whose redirect another client receives. */
#include "oauth_rig.h"

#include <openssl/evp.h> /* without it there are no verifiers */

#define OPENID                                                                                     \
    "{\"issuer\":\"https://a\",\"authorization_endpoint\":\"https://a/authorize\","                \
    "\"token_endpoint\":\"https://a/token\",\"response_types_supported\":[\"code\"],"              \
    "\"scopes_supported\":[\"openid\",\"offline_access\"]}"

static oauth_settings login_settings(void)
{
    return (oauth_settings){.grant = OAUTH_CODE,
                            .url = STR("https://a"),
                            .issuer = STR("https://a"),
                            .identity = {.id = STR("web"), .secret = STR("s")},
                            .redirect_uri = STR("https://gw/login/callback"),
                            .scope = STR("openid email"),
                            .is_login = true};
}

/* Up to the browser, with what it is shown. */
static void to_login(walk *self)
{
    oauth_client_begin(self->client, true);
    asks(self, "https://a/.well-known/oauth-authorization-server");
    answer(self, 404, "");
    asks(self, "https://a/.well-known/openid-configuration");
    answer(self, 200, OPENID);
    needs(self, OAUTH_BROWSER);
}

static void attempt_of(const walk *self, buf *out)
{
    buf_init_secret(out, OAUTH_ATTEMPT_BYTES);
    assert_int_equal(oauth_client_attempt_write(self->client, out), BAY_OK);
}

static void query_of(const walk *self, const char *code, char *out, size_t size)
{
    snprintf(out, size, "code=%s&state=%.*s", code, BAY_STR(oauth_client_state(self->client)));
}

static void a_login_asks_who_and_not_for_what(void **state)
{
    (void)state;
    walk it;
    char query[200];
    oauth_settings settings = login_settings();
    walk_init(&it, &settings);
    to_login(&it);
    bay_str url = it.action.url;
    assert_null(memmem(url.at, url.len, "resource=", 9));
    assert_null(memmem(url.at, url.len, "offline", 7)); /* nothing is called later */
    assert_non_null(memmem(url.at, url.len, "&scope=openid+email&nonce=", 26));
    assert_int_equal(oauth_client_nonce(it.client).len, 43);
    query_of(&it, "k", query, sizeof(query));
    assert_int_equal(oauth_client_redirected(it.client, str_of(query), it.now), BAY_OK);
    asks(&it, "https://a/token");
    lacks(&it, "resource=");
    answer(&it, 200, TOKEN ",\"id_token\":\"a.b.c\"}");
    needs(&it, OAUTH_GO);
    assert_true(str_eq(oauth_client_id_token(it.client), STR("a.b.c")));
    oauth_client_abandon(it.client);
    needs(&it, OAUTH_GO); /* and nothing begins again by itself */
    assert_int_equal(oauth_client_id_token(it.client).len, 0);
    assert_int_equal(oauth_client_record(it.client)->access.len, 0);
    walk_fini(&it);
}

static void without_an_id_token_nobody_is_known(void **state)
{
    (void)state;
    static const char *const answers[] = {"}", ",\"id_token\":\"\"}", ",\"id_token\":7}",
                                          ",\"id_token\":\"a b\"}"};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        walk it;
        char text[400];
        oauth_settings settings = login_settings();
        walk_init(&it, &settings);
        to_login(&it);
        query_of(&it, "k", text, sizeof(text));
        assert_int_equal(oauth_client_redirected(it.client, str_of(text), it.now), BAY_OK);
        asks(&it, "https://a/token");
        snprintf(text, sizeof(text), TOKEN "%s", answers[i]);
        answer(&it, 200, text);
        fails(&it, "has no ID token");
        walk_fini(&it);
    }
}

/* ---- attempts -------------------------------------------------------------------------------- */

static void another_client_takes_an_attempt_up(void **state)
{
    (void)state;
    walk it, other;
    buf attempt;
    char query[200], nonce[64];
    oauth_settings settings = login_settings();
    walk_init(&it, &settings);
    walk_init(&other, &settings);
    buf_init(&attempt, OAUTH_ATTEMPT_BYTES);
    assert_int_equal(oauth_client_attempt_write(it.client, &attempt), BAY_ERR_STATE);
    to_login(&it);
    attempt_of(&it, &attempt);
    query_of(&it, "k", query, sizeof(query));
    snprintf(nonce, sizeof(nonce), "%.*s", BAY_STR(oauth_client_nonce(it.client)));
    oauth_client_abandon(it.client);
    assert_int_equal(oauth_client_state(it.client).len, 0);
    walk_fini(&it);
    other.now += OAUTH_ATTEMPT_MS - 1;
    assert_int_equal(
        oauth_client_resume(other.client, buf_view(&attempt), str_of(query), other.now), BAY_OK);
    asks(&other, "https://a/.well-known/oauth-authorization-server");
    answer(&other, 200, OPENID);
    asks(&other, "https://a/token");
    has(&other, "&code_verifier=");
    has(&other, "&redirect_uri=https%3A%2F%2Fgw%2Flogin%2Fcallback");
    answer(&other, 200, TOKEN ",\"id_token\":\"a.b.c\"}");
    needs(&other, OAUTH_GO);
    assert_true(str_eq(oauth_client_nonce(other.client), str_of(nonce)));
    walk_fini(&other);
    buf_fini(&attempt);
}

static void an_attempt_is_for_its_own_redirect(void **state)
{
    (void)state;
    walk it, other;
    buf attempt;
    char good[200];
    oauth_settings settings = login_settings();
    walk_init(&it, &settings);
    to_login(&it);
    attempt_of(&it, &attempt);
    query_of(&it, "k", good, sizeof(good));
    static const char *const bad[] = {
        "", "code=k", "code=k&state=x", "code=k&state=", "state=%", "code=k&code=l&state=x"};
    walk_init(&other, &settings);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(
            oauth_client_resume(other.client, buf_view(&attempt), str_of(bad[i]), other.now),
            BAY_ERR_NOT_FOUND);
        needs(&other, OAUTH_GO); /* nothing was fetched */
    }
    /* not whole, or of another issuer */
    static const char *const attempts[] = {
        "",
        "issuer=https%3A%2F%2Fa&state=s&verifier=v&redirect_uri=r&until=99999999&nonce=",
        "issuer=https%3A%2F%2Fa&state=&verifier=v&redirect_uri=r&until=99999999&nonce=n",
        "issuer=https%3A%2F%2Fa&state=s&verifier=v&redirect_uri=r&until=x&nonce=n",
        "issuer=https%3A%2F%2Fb&state=s&verifier=v&redirect_uri=r&until=99999999&nonce=n",
        "state=s&verifier=v&redirect_uri=r&until=99999999&nonce=n",
    };
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        assert_int_equal(oauth_client_resume(other.client, str_of(attempts[i]),
                                             STR("code=k&state=s"), other.now),
                         BAY_ERR_NOT_FOUND);
        needs(&other, OAUTH_GO);
    }
    /* too late, also while the metadata is read */
    assert_int_equal(oauth_client_resume(other.client, buf_view(&attempt), str_of(good),
                                         other.now + OAUTH_ATTEMPT_MS),
                     BAY_ERR_NOT_FOUND);
    assert_int_equal(oauth_client_resume(other.client, buf_view(&attempt), str_of(good), other.now),
                     BAY_OK);
    asks(&other, "https://a/.well-known/oauth-authorization-server");
    assert_int_equal(oauth_client_resume(other.client, buf_view(&attempt), str_of(good), other.now),
                     BAY_ERR_STATE);
    other.now += OAUTH_ATTEMPT_MS;
    answer(&other, 200, OPENID);
    fails(&other, "took too long");
    walk_fini(&it);
    walk_fini(&other);
    buf_fini(&attempt);
}

/* The issuer of a redirect is compared for an attempt that was taken up as for any other, and the resource
 * is the one that was asked for. */
static void what_is_checked_of_it(void **state)
{
    (void)state;
    walk it, other;
    buf attempt;
    char query[300];
    oauth_settings settings = code_settings();
    walk_init(&it, &settings);
    to_browser(&it, "Bearer",
               SERVER_OF("a", PUBLIC REGISTERS("a") ",\"authorization_response_iss_"
                                                    "parameter_supported\":true"));
    attempt_of(&it, &attempt);
    for (int i = 0; i < 3; i++) {
        static const char *const issuers[] = {"", "&iss=https%3A%2F%2Fb", "&iss=https%3A%2F%2Fa"};
        snprintf(query, sizeof(query), "code=k&state=%.*s%s",
                 BAY_STR(oauth_client_state(it.client)), issuers[i]);
        settings.identity.id = STR("c-1");
        walk_init(&other, &settings);
        assert_int_equal(
            oauth_client_resume(other.client, buf_view(&attempt), str_of(query), other.now),
            BAY_OK);
        asks(&other, "https://a/.well-known/oauth-authorization-server");
        answer(&other, 200,
               SERVER_OF("a", PUBLIC ",\"authorization_response_iss_parameter_supported\":true"));
        if (i < 2) {
            fails(&other, i == 0 ? "does not say which issuer" : "is from another issuer");
        } else {
            asks(&other, "https://a/token");
            has(&other, "&resource=https%3A%2F%2Fh%2Fmcp");
        }
        walk_fini(&other);
    }
    walk_fini(&it);
    buf_fini(&attempt);
}

/* Each step fails in turn: the flow ends with an error, and nothing stays behind. */
static void without_memory(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        oauth_settings settings = login_settings();
        oauth_client *client = NULL;
        oauth_action action;
        buf attempt;
        char query[200] = "";
        buf_init_secret(&attempt, OAUTH_ATTEMPT_BYTES);
        bay_err err = oauth_client_new(&settings, &client, NULL);
        if (err == BAY_OK) {
            oauth_client_begin(client, true);
        }
        while (err == BAY_OK) {
            err = oauth_client_next(client, NOW, &action);
            if (err != BAY_OK || action.need != OAUTH_REQUEST) {
                break;
            }
            oauth_client_answered(client, 200, (bay_str){"", 0}, STR(OPENID), NOW);
        }
        if (err == BAY_OK && action.need == OAUTH_BROWSER) {
            snprintf(query, sizeof(query), "code=k&state=%.*s",
                     BAY_STR(oauth_client_state(client)));
            err = oauth_client_attempt_write(client, &attempt);
        }
        if (err == BAY_OK && query[0] != '\0') {
            oauth_client_abandon(client);
            err = oauth_client_resume(client, buf_view(&attempt), str_of(query), NOW);
        }
        if (err == BAY_OK && query[0] != '\0') {
            err = oauth_client_next(client, NOW, &action);
        }
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        if (!failing_memory.has_failed) {
            assert_int_equal(err, BAY_OK);
            assert_int_equal(action.need, OAUTH_REQUEST);
        }
        oauth_client_free(client);
        buf_fini(&attempt);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_login_asks_who_and_not_for_what),
        cmocka_unit_test(without_an_id_token_nobody_is_known),
        cmocka_unit_test(another_client_takes_an_attempt_up),
        cmocka_unit_test(an_attempt_is_for_its_own_redirect),
        cmocka_unit_test(what_is_checked_of_it),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
