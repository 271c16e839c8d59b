/* The client's state machine, message by message: what it sends where, and what makes it stop. */
#include "oauth_rig.h"

#include <openssl/evp.h>

/* ---- the way through ------------------------------------------------------------------------- */

static void a_login_in_the_browser(void **state)
{
    (void)state;
    walk it;
    arena memory;
    oauth_settings settings = code_settings();
    arena_init(&memory, ROOM);
    walk_init(&it, &settings);
    sends(&it, ""); /* a server may not ask */
    to_browser(&it, "Bearer scope=\"mcp:basic\"", SERVER);
    assert_true(str_starts(it.action.url, STR("https://a/authorize?x=1&response_type=code&")));
    assert_true(str_eq(shown_param(&it, &memory, "client_id"), STR("c-1")));
    assert_true(str_eq(shown_param(&it, &memory, "resource"), STR("https://h/mcp")));
    assert_true(str_eq(shown_param(&it, &memory, "scope"), STR("mcp:basic")));
    assert_true(str_eq(shown_param(&it, &memory, "code_challenge_method"), STR("S256")));
    bay_str challenge;
    assert_int_equal(arena_dup(&memory, shown_param(&it, &memory, "code_challenge"), &challenge),
                     BAY_OK);
    assert_int_equal(redirect(&it, "code=k%%2F1&state=%.*s"), BAY_OK);
    asks(&it, "https://a/token");
    has(&it, "grant_type=authorization_code&code=k%2F1&redirect_uri=http%3A%2F%2F127.0.0.1%3A7%"
             "2Fcallback&code_verifier=");
    has(&it, "&resource=https%3A%2F%2Fh%2Fmcp&client_id=c-1");
    lacks(&it, "scope=");
    lacks(&it, "Authorization");
    /* RFC 7636: the challenge is of the verifier */
    oauth_form form;
    unsigned char digest[32];
    buf text;
    assert_int_equal(oauth_form_read(it.action.body, &memory, &form), BAY_OK);
    bay_str verifier = oauth_form_get(&form, STR("code_verifier"));
    assert_int_equal(verifier.len, 43);
    EVP_Digest(verifier.at, verifier.len, digest, NULL, EVP_sha256(), NULL);
    buf_init(&text, 64);
    base64_encode(&text, (bay_str){(char *)digest, 32}, BASE64_URL);
    assert_true(str_eq(buf_view(&text), challenge));
    buf_fini(&text);
    answer(&it, 200, TOKEN ",\"refresh_token\":\"rt-1\"}");
    assert_true(oauth_client_take_change(it.client));
    assert_false(oauth_client_take_change(it.client));
    sends(&it, "Bearer at-1");
    const oauth_record *record = oauth_client_record(it.client);
    assert_true(
        str_eq(buf_view(&record->scope), STR("mcp:basic"))); /* as asked: nothing was said */
    assert_int_equal(record->expires_at_ms, NOW + 3600000);
    walk_fini(&it);
    arena_fini(&memory);
}

static void the_token_goes_nowhere_else(void **state)
{
    (void)state;
    static const char *const urls[] = {"https://h:444/mcp",  "http://h/mcp", "https://evil/mcp",
                                       "https://h@evil/mcp", "/mcp",         ""};
    walk it;
    oauth_settings settings = code_settings();
    walk_init(&it, &settings);
    to_ready(&it, TOKEN "}");
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        buf out, proof;
        buf_init(&out, ROOM);
        buf_init(&proof, ROOM);
        assert_int_equal(oauth_client_authorize(it.client, &it.one, STR("POST"), str_of(urls[i]),
                                                it.now, &out, &proof),
                         BAY_ERR_DENIED);
        assert_int_equal(out.len + proof.len, 0);
        buf_fini(&out);
        buf_fini(&proof);
    }
    walk_fini(&it);
}

/* ---- discovery ------------------------------------------------------------------------------- */

static void where_metadata_is_looked_for(void **state)
{
    (void)state;
    walk it;
    oauth_settings settings = code_settings();
    walk_init(&it, &settings);
    assert_int_equal(replied(&it, 401, "Bearer"), OAUTH_AGAIN);
    asks(&it, "https://h/.well-known/oauth-protected-resource/mcp");
    answer(&it, 404, "");
    asks(&it, "https://h/.well-known/oauth-protected-resource");
    answer(&it, 200, "{\"resource\":\"https://h\",\"authorization_servers\":[\"https://a/t1\"]}");
    asks(&it, "https://a/.well-known/oauth-authorization-server/t1");
    answer(&it, 404, "");
    asks(&it, "https://a/.well-known/openid-configuration/t1");
    answer(&it, 405, "");
    asks(&it, "https://a/t1/.well-known/openid-configuration");
    answer(&it, 404, "");
    fails(&it, "publishes no metadata");
    walk_fini(&it);
}

static void what_ends_discovery(void **state)
{
    (void)state;
    static const struct {
        const char *challenge;
        int status; /* of the resource's metadata; 0: it is not asked for */
        const char *body, *why;
    } cases[] = {
        {"Bearer", 500, "", "HTTP status 500"}, /* no weaker way is opened by a fault */
        {"Bearer", 302, "", "HTTP status 302"},
        {"Bearer", 200, "<html>", "not a JSON object"},
        {"Bearer", 200,
         "{\"resource\":\"https://evil/mcp\",\"authorization_servers\":[\"https://a\"]}",
         "not of the server that was called"},
        {"Bearer resource_metadata=\"https://h/x\"", 404, "", "is not there"},
        {"Bearer resource_metadata=\"http://10.0.0.1/\"", 0, NULL, "not usable"},
        {"Bearer resource_metadata=\"file:///etc/passwd\"", 0, NULL, "not usable"},
        {"Bearer resource_metadata=\"http://127.0.0.1/\"", 0, NULL, "not usable"},
        {"Bearer resource_metadata=\"https://good@evil/\"", 0, NULL, "not usable"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        walk it;
        oauth_settings settings = code_settings();
        walk_init(&it, &settings);
        assert_int_equal(replied(&it, 401, cases[i].challenge), OAUTH_AGAIN);
        if (cases[i].status != 0) {
            needs(&it, OAUTH_REQUEST);
            answer(&it, cases[i].status, cases[i].body);
        }
        fails(&it, cases[i].why);
        walk_fini(&it);
    }
}

static void servers_that_will_not_do(void **state)
{
    (void)state;
    static const struct {
        const char *server, *why;
    } cases[] = {
        {SERVER_OF("evil", PUBLIC), "not of \"https://a\""},
        {"{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/t\"}",
         "no authorization_endpoint"},
        {"{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/t\",\"authorization_endpoint\":"
         "\"https://a/z\"}",
         "code flow"},
        {"{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/t\",\"authorization_endpoint\":"
         "\"https://a/z\",\"response_types_supported\":[\"code\"]" REGISTERS("a") "}",
         "PKCE"},
        {"{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/t\",\"authorization_endpoint\":"
         "\"https://a/z\",\"response_types_supported\":[\"code\"],\"code_challenge_methods_"
         "supported\":[\"plain\"]" REGISTERS("a") "}",
         "PKCE"},
        {SERVER_OF("a", PUBLIC REGISTERS("a") ",\"require_pushed_authorization_requests\":true"),
         "pushed"},
        {SERVER_OF("a", PUBLIC), "registers no clients"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        walk it;
        oauth_settings settings = code_settings();
        settings.redirect_uri = STR("https://me/cb");
        walk_init(&it, &settings);
        assert_int_equal(replied(&it, 401, "Bearer"), OAUTH_AGAIN);
        needs(&it, OAUTH_REQUEST);
        answer(&it, 200, RESOURCE);
        needs(&it, OAUTH_REQUEST);
        answer(&it, 200, cases[i].server);
        fails(&it, cases[i].why);
        walk_fini(&it);
    }
}

static void servers_of_2025_03_26(void **state)
{
    (void)state;
    for (int has_metadata = 0; has_metadata < 2; has_metadata++) {
        walk it;
        arena memory;
        oauth_settings settings = code_settings();
        arena_init(&memory, ROOM);
        settings.redirect_uri = STR("http://localhost:1/cb");
        walk_init(&it, &settings);
        assert_int_equal(replied(&it, 401, ""), OAUTH_AGAIN);
        asks(&it, "https://h/.well-known/oauth-protected-resource/mcp");
        answer(&it, 404, "");
        asks(&it, "https://h/.well-known/oauth-protected-resource");
        answer(&it, 404, "");
        asks(&it, "https://h/.well-known/oauth-authorization-server");
        has(&it, "MCP-Protocol-Version: 2025-03-26");
        answer(&it, has_metadata ? 200 : 404,
               has_metadata ? SERVER_OF("h", PUBLIC REGISTERS("h")) : "");
        asks(&it, "https://h/register");
        answer(&it, 200, CLIENT);
        needs(&it, OAUTH_BROWSER);
        assert_null(shown_param(&it, &memory, "resource").at);
        assert_int_equal(shown_param(&it, &memory, "code_challenge").len, 43);
        assert_int_equal(redirect(&it, "code=k&state=%.*s"), BAY_OK);
        asks(&it, "https://h/token");
        answer(&it, 200, TOKEN ",\"refresh_token\":\"rt\"}");
        sends(&it, "Bearer at-1");
        /* the same way back for a refresh, after a restart */
        it.now += 3600000;
        needs(&it, OAUTH_REREAD);
        oauth_client_reread(it.client, it.now);
        asks(&it, "https://h/.well-known/oauth-authorization-server");
        walk_fini(&it);
        arena_fini(&memory);
    }
    /* an agent, or a configured server, has no such history */
    walk it;
    oauth_settings settings = code_settings();
    settings.is_modern_only = true;
    walk_init(&it, &settings);
    assert_int_equal(replied(&it, 401, ""), OAUTH_AGAIN);
    needs(&it, OAUTH_REQUEST);
    answer(&it, 404, "");
    needs(&it, OAUTH_REQUEST);
    answer(&it, 404, "");
    fails(&it, "publishes no metadata");
    walk_fini(&it);
}

/* ---- registration ---------------------------------------------------------------------------- */

static void clients_that_we_cannot_be(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *body, *why;
    } cases[] = {
        {400, "{\"error\":\"invalid_redirect_uri\",\"error_description\":\"no\\u0007 loopback\"}",
         "invalid_redirect_uri (no\\u{7} loopback)"},
        {403, "<html>", "HTTP status 403"},
        {201, "[]", "no client_id"},
        {201, "{\"client_id\":\"\"}", "no client_id"},
        {201, "{\"client_id\":\"c\",\"client_id\":\"d\"}", "not a JSON object"},
        {201, "{\"client_id\":\"c\",\"token_endpoint_auth_method\":\"client_secret_basic\"}",
         "gives none"},
        {201, "{\"client_id\":\"c\",\"token_endpoint_auth_method\":\"private_key_jwt\"}",
         "there is no key"},
        {201, "{\"client_id\":\"c\",\"token_endpoint_auth_method\":\"tls_client_auth\"}",
         "not supported"},
        {201, "{\"client_id\":\"c\",\"redirect_uris\":[\"https://evil/cb\"]}",
         "other redirect URIs"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        walk it;
        oauth_settings settings = code_settings();
        settings.redirect_uri = STR("https://me/cb");
        walk_init(&it, &settings);
        assert_int_equal(replied(&it, 401, "Bearer scope=\"read\""), OAUTH_AGAIN);
        needs(&it, OAUTH_REQUEST);
        answer(&it, 200, RESOURCE);
        needs(&it, OAUTH_REQUEST);
        answer(&it, 200, SERVER);
        asks(&it, "https://a/register");
        has(&it, "\"application_type\":\"web\"");
        lacks(&it, "\"scope\""); /* it may want more of them one day */
        answer(&it, cases[i].status, cases[i].body);
        fails(&it, cases[i].why);
        walk_fini(&it);
    }
}

static void which_client_we_are(void **state)
{
    (void)state;
    /* registered beforehand, then by a document, then dynamically */
    for (int way = 0; way < 2; way++) {
        walk it;
        arena memory;
        oauth_settings settings = code_settings();
        arena_init(&memory, ROOM);
        settings.redirect_uri = STR("https://me/cb");
        settings.document_url = STR("https://me/client.json");
        if (way == 0) {
            settings.identity = (oauth_identity){.id = STR("pre"), .secret = STR("s:e c")};
        }
        walk_init(&it, &settings);
        assert_int_equal(replied(&it, 401, "Bearer"), OAUTH_AGAIN);
        needs(&it, OAUTH_REQUEST);
        answer(&it, 200, RESOURCE);
        needs(&it, OAUTH_REQUEST);
        answer(&it, 200,
               way == 0
                   ? SERVER_OF("a", REGISTERS("a") ",\"client_id_metadata_document_supported\":"
                                                   "true")
                   : SERVER_OF("a", PUBLIC REGISTERS(
                                        "a") ",\"client_id_metadata_document_supported\":true"));
        needs(&it, OAUTH_BROWSER);
        assert_true(str_eq(shown_param(&it, &memory, "client_id"),
                           way == 0 ? STR("pre") : STR("https://me/client.json")));
        assert_int_equal(redirect(&it, "code=k&state=%.*s"), BAY_OK);
        asks(&it, "https://a/token");
        if (way == 0) { /* absent metadata means Basic; id and secret as forms have them */
            has(&it, "Authorization: Basic cHJlOnMlM0FlK2M=");
            lacks(&it, "client_id=");
        } else {
            has(&it, "client_id=https%3A%2F%2Fme%2Fclient.json");
        }
        walk_fini(&it);
        arena_fini(&memory);
    }
}

/* AS1's client, secret and tokens are nothing to AS2. */
static void another_authorization_server(void **state)
{
    (void)state;
    walk it;
    oauth_settings settings = code_settings();
    walk_init(&it, &settings);
    to_ready(&it, TOKEN ",\"refresh_token\":\"rt-1\"}");
    it.one = (oauth_try){0};
    assert_int_equal(replied(&it, 401, "Bearer"), OAUTH_AGAIN);
    asks(&it, "https://h/.well-known/oauth-protected-resource/mcp");
    answer(&it, 200, "{\"resource\":\"https://h/mcp\",\"authorization_servers\":[\"https://b\"]}");
    asks(&it, "https://b/.well-known/oauth-authorization-server");
    answer(&it, 200, SERVER_OF("b", PUBLIC REGISTERS("b")));
    needs(&it, OAUTH_LISTEN);
    oauth_client_listens(it.client, STR("http://127.0.0.1:7/callback"), it.now);
    asks(&it, "https://b/register");
    lacks(&it, "c-1");
    answer(&it, 201, "{\"client_id\":\"c-2\"}");
    needs(&it, OAUTH_BROWSER);
    assert_int_equal(oauth_client_record(it.client)->refresh.len, 0);
    walk_fini(&it);
    /* a client that was registered by hand is bound to the first issuer */
    settings.identity.id = STR("pre");
    settings.redirect_uri = STR("https://me/cb");
    walk_init(&it, &settings);
    assert_int_equal(replied(&it, 401, "Bearer"), OAUTH_AGAIN);
    needs(&it, OAUTH_REQUEST);
    answer(&it, 200, RESOURCE);
    needs(&it, OAUTH_REQUEST);
    answer(&it, 200, SERVER);
    assert_int_equal(redirect(&it, "code=k&state=%.*s"), BAY_OK);
    asks(&it, "https://a/token");
    answer(&it, 200, TOKEN "}");
    it.one = (oauth_try){0};
    needs(&it, OAUTH_GO);
    assert_int_equal(replied(&it, 401, "Bearer"), OAUTH_AGAIN);
    needs(&it, OAUTH_REQUEST);
    answer(&it, 200, "{\"resource\":\"https://h/mcp\",\"authorization_servers\":[\"https://b\"]}");
    fails(&it, "configure the issuer");
    walk_fini(&it);
    /* and to the configured one from the start */
    settings.issuer = STR("https://c");
    walk_init(&it, &settings);
    assert_int_equal(replied(&it, 401, "Bearer"), OAUTH_AGAIN);
    needs(&it, OAUTH_REQUEST);
    answer(&it, 200, RESOURCE);
    fails(&it, "not the configured issuer");
    walk_fini(&it);
}

/* ---- redirects ------------------------------------------------------------------------------- */

static void redirects_that_nobody_asked_for(void **state)
{
    (void)state;
    static const char *const formats[] = {
        "code=k",
        "code=k&state=",
        "code=k&state=x%.*s",
        "code=k&state=%.*s&state=x",
        "code=k&code=l&state=%.*s",
        "code=k&state=%.*s&iss=a&iss=b",
        "code=k%%0a&state=%.*s",
        "code=k&state=%.*s%%",
    };
    walk it;
    oauth_settings settings = code_settings();
    walk_init(&it, &settings);
    assert_int_equal(oauth_client_redirected(it.client, STR("code=k&state="), it.now),
                     BAY_ERR_NOT_FOUND);
    to_browser(&it, "Bearer", SERVER);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (redirect(&it, formats[i]) != BAY_ERR_NOT_FOUND) {
            fail_msg("%s", formats[i]);
        }
        needs(&it, OAUTH_BROWSER); /* it changes nothing */
    }
    char old[256];
    bay_str state_now = oauth_client_state(it.client);
    snprintf(old, sizeof(old), "code=k&state=%.*s", BAY_STR(state_now));
    assert_int_equal(redirect(&it, "code=k&state=%.*s"), BAY_OK);
    assert_int_equal(oauth_client_redirected(it.client, str_of(old), it.now),
                     BAY_ERR_NOT_FOUND); /* once */
    asks(&it, "https://a/token");
    walk_fini(&it);
    /* and not after its time */
    walk_init(&it, &settings);
    to_browser(&it, "Bearer", SERVER);
    it.now += OAUTH_ATTEMPT_MS;
    assert_int_equal(oauth_client_redirected(it.client, str_of(old), it.now), BAY_ERR_NOT_FOUND);
    fails(&it, "nobody has logged in");
    walk_fini(&it);
}

static void issuers_of_redirects(void **state)
{
    (void)state;
    static const struct {
        bool is_advertised;
        const char *format;
        const char *why; /* NULL: it goes on */
    } cases[] = {
        {true, "code=k&state=%.*s&iss=https%%3A%%2F%%2Fa", NULL},
        {false, "code=k&state=%.*s&iss=https://a", NULL},
        {false, "code=k&state=%.*s", NULL},
        {true, "code=k&state=%.*s", "does not say"},
        {true, "code=k&state=%.*s&iss=", "another issuer"},
        {true, "code=k&state=%.*s&iss=https://evil", "another issuer"},
        {false, "code=k&state=%.*s&iss=https://evil", "another issuer"},
        {true, "code=k&state=%.*s&iss=https://a/", "another issuer"},
        {true, "code=k&state=%.*s&iss=https://A", "another issuer"},
        {true, "code=k&state=%.*s&iss=https://a:443", "another issuer"},
        /* an error of another issuer is not believed, nor shown */
        {true, "error=access_denied&error_description=call+555&state=%.*s&iss=https://evil",
         "another issuer"},
        {true, "error=access_denied&state=%.*s", "does not say"},
        {false, "error=access_denied&error_description=call+555&state=%.*s",
         "the login was refused: access_denied"},
        {false, "error=<b>&state=%.*s", "the login was refused: "},
        {false, "state=%.*s", "no code"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        walk it;
        oauth_settings settings = code_settings();
        walk_init(&it, &settings);
        to_browser(&it, "Bearer",
                   cases[i].is_advertised
                       ? SERVER_OF("a",
                                   PUBLIC REGISTERS(
                                       "a") ",\"authorization_response_iss_parameter_supported\":"
                                            "true")
                       : SERVER);
        assert_int_equal(redirect(&it, cases[i].format), BAY_OK);
        if (cases[i].why == NULL) {
            asks(&it, "https://a/token");
        } else {
            fails(&it, cases[i].why);
            assert_null(strstr(oauth_client_fault(it.client)->text, "555"));
            assert_null(strchr(oauth_client_fault(it.client)->text, '<'));
        }
        walk_fini(&it);
    }
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void tokens_that_are_none(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *body, *why;
    } cases[] = {
        {200, "", "not a JSON object"},
        {200, "{}", "no token of a known type"},
        {200, "{\"access_token\":\"a\"}", "no token of a known type"},
        {200, "{\"access_token\":\"a\",\"token_type\":\"mac\"}", "no token of a known type"},
        {200, "{\"access_token\":\"\",\"token_type\":\"Bearer\"}", "no token of a known type"},
        {200, "{\"access_token\":\"a b\",\"token_type\":\"Bearer\"}", "no token of a known type"},
        {200, "{\"access_token\":\"a\\r\\nX: y\",\"token_type\":\"Bearer\"}",
         "no token of a known type"},
        {200, "{\"access_token\":\"a\",\"access_token\":\"b\",\"token_type\":\"Bearer\"}",
         "not a JSON object"},
        {200, "{\"access_token\":\"a\",\"token_type\":\"Bearer\",\"refresh_token\":\"r\\n\"}",
         "refresh token that is none"},
        {200, "{\"access_token\":\"a\",\"token_type\":\"N_A\"}", "cannot be used"},
        {200, "{\"access_token\":\"a\",\"token_type\":\"DPoP\"}", "bound to a key"},
        {302, "", "HTTP status 302"}, /* a redirect takes no secret along */
        {307, "", "HTTP status 307"},
        {400, "{\"error\":\"invalid_grant\"}", "the token request was refused: invalid_grant"},
        {400, "{\"error\":\"invalid_grant\",\"error_description\":\"code-k-1 is old\"}",
         "the token request was refused: invalid_grant"},
        {500, "oops", "HTTP status 500"},
        {400, "{\"error\":\"use_dpop_nonce\"}", "use_dpop_nonce"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        walk it;
        oauth_settings settings = code_settings();
        walk_init(&it, &settings);
        to_token(&it);
        answer(&it, cases[i].status, cases[i].body);
        fails(&it, cases[i].why);
        /* what we sent does not come back in words */
        assert_null(strstr(oauth_client_fault(it.client)->text, "k-1"));
        walk_fini(&it);
    }
}

static void what_a_token_says(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        uint64_t lifetime_s;
        const char *scope;
    } cases[] = {
        {",\"expires_in\":60", 60, "read"},
        {",\"expires_in\":\"60\"", 60, "read"},
        {",\"expires_in\":60.9", 60, "read"},
        {",\"expires_in\":-1", 0, "read"},
        {",\"expires_in\":1e400", 0, "read"},
        {",\"expires_in\":null", 0, "read"},
        {"", 0, "read"},
        {",\"scope\":\"a  b a\"", 0, "a b"},
        {",\"scope\":\"\"", 0, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        walk it;
        char text[256];
        oauth_settings settings = code_settings();
        walk_init(&it, &settings);
        snprintf(text, sizeof(text), "{\"access_token\":\"x\",\"token_type\":\"BEARER\"%s}",
                 cases[i].more);
        to_ready(&it, text);
        const oauth_record *record = oauth_client_record(it.client);
        assert_int_equal(record->expires_at_ms,
                         cases[i].lifetime_s > 0 ? NOW + cases[i].lifetime_s * 1000 : 0);
        assert_true(str_eq(buf_view(&record->scope), str_of(cases[i].scope)));
        walk_fini(&it);
    }
}

static void a_fault_is_kept_for_a_while(void **state)
{
    (void)state;
    walk it;
    oauth_settings settings = code_settings();
    walk_init(&it, &settings);
    to_token(&it);
    answer(&it, 400, "{\"error\":\"invalid_grant\"}");
    fails(&it, "invalid_grant");
    it.now += OAUTH_REST_MS - 1;
    it.one = (oauth_try){0};
    assert_int_equal(replied(&it, 401, "Bearer"), OAUTH_AGAIN); /* no new flow for each request */
    fails(&it, "invalid_grant");
    it.now += 1;
    needs(&it, OAUTH_GO);
    walk_fini(&it);
}

static void refused_tokens_end_it(void **state)
{
    (void)state;
    walk it;
    oauth_settings settings = code_settings();
    walk_init(&it, &settings);
    to_ready(&it, TOKEN "}");
    assert_int_equal(replied(&it, 401, "Bearer"), OAUTH_AGAIN); /* a second time: all anew, once */
    needs(&it, OAUTH_REQUEST);
    answer(&it, 200, RESOURCE);
    needs(&it, OAUTH_REQUEST);
    answer(&it, 200, SERVER);
    needs(&it, OAUTH_LISTEN);
    oauth_client_listens(it.client, STR("http://127.0.0.1:7/callback"), it.now);
    assert_int_equal(redirect(&it, "code=k&state=%.*s"), BAY_OK); /* the same client goes on */
    asks(&it, "https://a/token");
    answer(&it, 200, TOKEN "}");
    needs(&it, OAUTH_GO);
    assert_int_equal(replied(&it, 401, "Bearer"), OAUTH_AGAIN);
    fails(&it, "refuses the token");
    walk_fini(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_login_in_the_browser),
        cmocka_unit_test(the_token_goes_nowhere_else),
        cmocka_unit_test(where_metadata_is_looked_for),
        cmocka_unit_test(what_ends_discovery),
        cmocka_unit_test(servers_that_will_not_do),
        cmocka_unit_test(servers_of_2025_03_26),
        cmocka_unit_test(clients_that_we_cannot_be),
        cmocka_unit_test(which_client_we_are),
        cmocka_unit_test(another_authorization_server),
        cmocka_unit_test(redirects_that_nobody_asked_for),
        cmocka_unit_test(issuers_of_redirects),
        cmocka_unit_test(tokens_that_are_none),
        cmocka_unit_test(what_a_token_says),
        cmocka_unit_test(a_fault_is_kept_for_a_while),
        cmocka_unit_test(refused_tokens_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
