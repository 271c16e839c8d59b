/* The same after the first token, and without a browser: refresh, scopes, other grants, tokens that
 * are bound to a key, the end. */
#include "oauth_rig.h"

#include <openssl/evp.h> /* a build without it signs no proofs */

/* ---- refresh --------------------------------------------------------------------------------- */

static void tokens_are_renewed_early(void **state)
{
    (void)state;
    walk it;
    oauth_settings settings = code_settings();
    walk_init(&it, &settings);
    to_ready(&it, TOKEN ",\"refresh_token\":\"rt-1\",\"scope\":\"a b\"}");
    it.now += 3600000 - 360000 - 1;
    sends(&it, "Bearer at-1");
    it.now += 1; /* a tenth of its time is left */
    needs(&it, OAUTH_REREAD);
    oauth_client_reread(it.client, it.now);
    asks(&it, "https://a/.well-known/oauth-authorization-server"); /* not older than ten minutes */
    answer(&it, 200, SERVER);
    asks(&it, "https://a/token");
    has(&it,
        "grant_type=refresh_token&refresh_token=rt-1&resource=https%3A%2F%2Fh%2Fmcp&client_id=c-1");
    lacks(&it, "scope");
    answer(&it, 200, "{\"access_token\":\"at-2\",\"token_type\":\"Bearer\"}");
    sends(&it, "Bearer at-2");
    const oauth_record *record = oauth_client_record(it.client);
    assert_true(
        str_eq(buf_view(&record->refresh), STR("rt-1"))); /* nothing new: the old one stays */
    assert_true(str_eq(buf_view(&record->scope), STR("a b")));
    walk_fini(&it);
}

static void another_process_renewed_it(void **state)
{
    (void)state;
    walk it, other;
    buf kept;
    oauth_settings settings = code_settings();
    buf_init(&kept, ROOM);
    walk_init(&it, &settings);
    walk_init(&other, &settings);
    to_ready(&it, TOKEN ",\"refresh_token\":\"rt-1\"}");
    to_ready(&other, "{\"access_token\":\"at-9\",\"token_type\":\"Bearer\",\"expires_in\":9999}");
    assert_int_equal(oauth_record_write(oauth_client_record(other.client), &kept), BAY_OK);
    it.now += 3600000;
    needs(&it, OAUTH_REREAD);
    assert_int_equal(oauth_client_load(it.client, buf_view(&kept)), BAY_OK);
    oauth_client_reread(it.client, it.now);
    sends(&it, "Bearer at-9");
    walk_fini(&it);
    walk_fini(&other);
    buf_fini(&kept);
}

/* A program may have one store for all that it calls. */
static void a_record_is_for_one_target(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        bool is_kept;
    } rows[] = {
        {"https://h/mcp", true},    {"https://h/mcp/deeper", true}, {"https://h/mcp2", false},
        {"https://h/", false},      {"https://h:444/mcp", false},   {"https://other/mcp", false},
        {"https://h/a/mcp", false},
    };
    walk it;
    buf kept;
    oauth_settings settings = code_settings();
    buf_init(&kept, ROOM);
    walk_init(&it, &settings);
    to_ready(&it, TOKEN ",\"refresh_token\":\"rt-1\"}");
    assert_int_equal(oauth_record_write(oauth_client_record(it.client), &kept), BAY_OK);
    walk_fini(&it);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        settings.url = str_of(rows[i].url);
        walk_init(&it, &settings);
        assert_int_equal(oauth_client_load(it.client, buf_view(&kept)), BAY_OK);
        const oauth_record *record = oauth_client_record(it.client);
        if ((record->access.len > 0) != rows[i].is_kept ||
            (record->refresh.len > 0) != rows[i].is_kept) {
            fail_msg("%s", rows[i].url);
        }
        walk_fini(&it);
    }
    buf_fini(&kept);
}

static void refreshes_that_fail(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        walk it;
        oauth_settings settings = code_settings();
        walk_init(&it, &settings);
        to_ready(&it, TOKEN ",\"refresh_token\":\"rt-1\"}");
        it.now += way < 2 ? 3300000 : 3600000; /* the old token still does, or not */
        needs(&it, OAUTH_REREAD);
        oauth_client_reread(it.client, it.now);
        needs(&it, OAUTH_REQUEST);
        answer(&it, 200, SERVER);
        asks(&it, "https://a/token");
        switch (way) {
        case 0: /* a reason that may pass: the old one goes on */
            answer(&it, 503, "");
            sends(&it, "Bearer at-1");
            break;
        case 1: /* the family of tokens was revoked: nothing of it is used any more */
            answer(&it, 400, "{\"error\":\"invalid_grant\"}");
            sends(&it, "");
            assert_int_equal(oauth_client_record(it.client)->refresh.len, 0);
            break;
        case 2:
            oauth_client_unanswered(it.client, BAY_ERR_CONNECT, "refused", it.now);
            fails(&it, "cannot be reached: refused");
            assert_true(oauth_client_record(it.client)->refresh.len > 0); /* kept: it may pass */
            it.now += OAUTH_PAUSE_MS;
            needs(&it, OAUTH_REREAD);
            break;
        default: /* the client is not known there any more: it registers anew */
            answer(&it, 401, "{\"error\":\"invalid_client\"}");
            sends(&it, "");
            assert_false(oauth_client_record(it.client)->is_registered);
            break;
        }
        walk_fini(&it);
    }
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static void which_scope_is_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *challenge, *configured, *server, *scope; /* NULL: none */
    } cases[] = {
        {"Bearer scope=\"x\"", "", SERVER, "x"},
        {"Bearer", "", SERVER, "read"},
        {"Bearer scope=\"x\"", "y z", SERVER, "y z"},
        {"Bearer", "",
         SERVER_OF("a", PUBLIC REGISTERS("a") ",\"scopes_supported\":[\"offline_access\",\"q\"]"),
         "read offline_access"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        walk it;
        arena memory;
        oauth_settings settings = code_settings();
        arena_init(&memory, ROOM);
        settings.scope = str_of(cases[i].configured);
        walk_init(&it, &settings);
        to_browser(&it, cases[i].challenge, cases[i].server);
        assert_true(str_eq(shown_param(&it, &memory, "scope"), str_of(cases[i].scope)));
        walk_fini(&it);
        arena_fini(&memory);
    }
}

static void a_scope_is_lacking(void **state)
{
    (void)state;
    walk it;
    arena memory;
    oauth_settings settings = code_settings();
    arena_init(&memory, ROOM);
    walk_init(&it, &settings);
    to_ready(&it, TOKEN ",\"refresh_token\":\"rt\"}");
    const char *write = "Bearer error=\"insufficient_scope\", scope=\"write\"";
    assert_int_equal(replied(&it, 403, "Bearer error=\"x\", scope=\"write\""), OAUTH_PASS);
    assert_int_equal(replied(&it, 403, ""), OAUTH_PASS);
    assert_int_equal(replied(&it, 403, write), OAUTH_AGAIN);
    needs(&it, OAUTH_LISTEN); /* a person again, and no refresh: that cannot widen anything */
    oauth_client_listens(it.client, STR("http://127.0.0.1:7/callback"), it.now);
    needs(&it, OAUTH_BROWSER);
    assert_true(str_eq(shown_param(&it, &memory, "scope"), STR("read write"))); /* the union */
    assert_int_equal(redirect(&it, "code=k&state=%.*s"), BAY_OK);
    asks(&it, "https://a/token");
    has(&it, "grant_type=authorization_code");
    answer(&it, 200, "{\"access_token\":\"at-2\",\"token_type\":\"Bearer\",\"scope\":\"read\"}");
    needs(&it, OAUTH_GO);
    assert_int_equal(replied(&it, 403, write), OAUTH_REFUSE); /* asked for, and not granted */
    assert_non_null(
        strstr(oauth_client_fault(it.client)->text, "\"write\", which was not granted"));
    sends(&it, "Bearer at-2"); /* other requests go on */
    assert_int_equal(replied(&it, 403, "Bearer error=\"insufficient_scope\", scope=\"read\""),
                     OAUTH_REFUSE); /* it has that */
    walk_fini(&it);
    arena_fini(&memory);
}

/* ---- other grants ---------------------------------------------------------------------------- */

static void to_server(walk *self, const char *server)
{
    assert_int_equal(replied(self, 401, "Bearer"), OAUTH_AGAIN);
    needs(self, OAUTH_REQUEST);
    answer(self, 200, RESOURCE);
    needs(self, OAUTH_REQUEST);
    answer(self, 200, server);
}

static void client_credentials(void **state)
{
    (void)state;
    static const struct {
        const char *methods, *has, *lacks;
    } cases[] = {
        {",\"token_endpoint_auth_methods_supported\":[\"client_secret_post\","
         "\"client_secret_basic\"]",
         "Authorization: Basic aWQ6c2VjcmV0", "client_secret="},
        {",\"token_endpoint_auth_methods_supported\":[\"client_secret_post\"]",
         "client_id=id&client_secret=secret", "Authorization"},
        {PUBLIC, "client_id=id", "secret"},
        {"", "Authorization: Basic aWQ6c2VjcmV0", "client_secret="},
    };
    oauth_settings settings = {.grant = OAUTH_CLIENT,
                               .url = STR("https://h/mcp"),
                               .identity = {.id = STR("id"), .secret = STR("secret")}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        walk it;
        char server[1024];
        snprintf(server, sizeof(server),
                 "{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/token\"%s}",
                 cases[i].methods);
        walk_init(&it, &settings);
        to_server(&it, server);
        asks(&it, "https://a/token");
        has(&it, "grant_type=client_credentials&resource=https%3A%2F%2Fh%2Fmcp&scope=read");
        has(&it, cases[i].has);
        lacks(&it, cases[i].lacks);
        answer(&it, 200, TOKEN "}");
        sends(&it, "Bearer at-1");
        it.now += 3600000; /* no refresh token: asked for again */
        needs(&it, OAUTH_REQUEST);
        walk_fini(&it);
    }
    walk it;
    walk_init(&it, &settings);
    to_server(&it, "{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/"
                   "token\",\"token_endpoint_auth_methods_supported\":[\"private_key_jwt\"]}");
    fails(&it, "none of the ways");
    walk_fini(&it);
    walk_init(&it, &settings);
    to_server(&it, "{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/"
                   "token\",\"grant_types_supported\":[\"authorization_code\"]}");
    fails(&it, "does not list the grant client_credentials");
    walk_fini(&it);
}

static void workload_identity(void **state)
{
    (void)state;
    walk it;
    oauth_settings settings = {.grant = OAUTH_ASSERTION, .url = STR("https://h/mcp")};
    const char *server = "{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/token\"}";
    walk_init(&it, &settings);
    to_server(&it, server);
    needs(&it, OAUTH_SUBJECT);
    oauth_client_subject(it.client, STR("head.w.t\n"), it.now);
    asks(&it, "https://a/token");
    has(&it, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=head.w.t&"
             "resource=");
    lacks(&it, "client_id");
    answer(&it, 400, "{\"error\":\"invalid_grant\",\"error_description\":\"bad head.w.t here\"}");
    fails(&it, "invalid_grant");
    assert_null(strstr(oauth_client_fault(it.client)->text, "head.w.t"));
    walk_fini(&it);
    walk_init(&it, &settings);
    to_server(&it, server);
    needs(&it, OAUTH_SUBJECT);
    oauth_client_subject(it.client, STR("a b"), it.now);
    fails(&it, "no token has");
    walk_fini(&it);
}

static void enterprise(void **state)
{
    (void)state;
    walk it;
    oauth_settings settings = {.grant = OAUTH_ID_JAG,
                               .url = STR("https://h/mcp"),
                               .identity = {.id = STR("me"), .secret = STR("s")},
                               .idp = {.id = STR("at-idp")},
                               .idp_issuer = STR("https://i")};
    walk_init(&it, &settings);
    to_server(&it, "{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/token\"}");
    needs(&it, OAUTH_SUBJECT);
    oauth_client_subject(it.client, STR("id.to.ken"), it.now);
    asks(&it, "https://i/.well-known/oauth-authorization-server");
    answer(&it, 200, SERVER_OF("i", PUBLIC));
    asks(&it, "https://i/token");
    has(&it, "requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid-jag");
    has(&it, "subject_token=id.to.ken&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%"
             "3Aid_token&audience=https%3A%2F%2Fa&resource=https%3A%2F%2Fh%2Fmcp&scope=read&client_"
             "id=at-idp");
    lacks(&it, "client_id=me");
    answer(&it, 200,
           "{\"access_token\":\"jag\",\"token_type\":\"N_A\",\"issued_token_type\":"
           "\"urn:ietf:params:oauth:token-type:id-jag\"}");
    asks(&it, "https://a/token");
    has(&it, "jwt-bearer&assertion=jag\n");
    has(&it, "Authorization: Basic bWU6cw==");
    lacks(&it, "at-idp");
    lacks(&it, "id.to.ken");
    answer(&it, 200, TOKEN "}");
    sends(&it, "Bearer at-1");
    walk_fini(&it);
    /* something else than the assertion that was asked for */
    settings.idp_issuer = STR("");
    settings.idp_token_endpoint = STR("https://i/t");
    walk_init(&it, &settings);
    to_server(&it, "{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/token\"}");
    needs(&it, OAUTH_SUBJECT);
    oauth_client_subject(it.client, STR("id.to.ken"), it.now);
    asks(&it, "https://i/t");
    answer(&it, 200,
           "{\"access_token\":\"x\",\"token_type\":\"Bearer\",\"issued_token_type\":"
           "\"urn:ietf:params:oauth:token-type:access_token\"}");
    fails(&it, "something other");
    walk_fini(&it);
}

static void exchange(void **state)
{
    (void)state;
    walk it;
    oauth_settings settings = {.grant = OAUTH_EXCHANGE,
                               .url = STR("https://h/mcp"),
                               .extra = STR("audience=api"),
                               .identity = {.id = STR("gw"), .secret = STR("s")}};
    walk_init(&it, &settings);
    to_server(&it, "{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/token\"}");
    needs(&it, OAUTH_SUBJECT);
    oauth_client_subject(it.client, STR("caller-token"), it.now);
    asks(&it, "https://a/token");
    has(&it,
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&requested_token_"
        "type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&subject_token=caller-token"
        "&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"
        "&resource=https%3A%2F%2Fh%2Fmcp&scope=read&audience=api");
    answer(&it, 200,
           "{\"access_token\":\"x\",\"token_type\":\"Bearer\",\"issued_token_type\":"
           "\"urn:ietf:params:oauth:token-type:id_token\"}");
    fails(&it, "something other than an access token");
    walk_fini(&it);
}

static void a_code_on_another_device(void **state)
{
    (void)state;
    walk it;
    oauth_settings settings = code_settings();
    settings.grant = OAUTH_DEVICE;
    settings.identity.id = STR("tv");
    walk_init(&it, &settings);
    to_server(&it,
              SERVER_OF("a", PUBLIC ",\"device_authorization_endpoint\":\"https://a/device\""));
    asks(&it, "https://a/device");
    has(&it, "client_id=tv&scope=read&resource=");
    answer(&it, 200,
           "{\"device_code\":\"d-1\",\"user_code\":\"WDJB\",\"verification_uri\":\"https://a/d\","
           "\"expires_in\":100,\"interval\":7}");
    needs(&it, OAUTH_SHOW);
    assert_true(str_eq(it.action.code, STR("WDJB")));
    assert_true(str_eq(it.action.url, STR("https://a/d")));
    needs(&it, OAUTH_WAIT);
    assert_int_equal(it.action.at_ms, NOW + 7000);
    it.now += 7000;
    asks(&it, "https://a/token");
    has(&it, "device_code&device_code=d-1&resource=");
    answer(&it, 400, "{\"error\":\"authorization_pending\"}");
    needs(&it, OAUTH_WAIT);
    it.now += 7000;
    asks(&it, "https://a/token");
    answer(&it, 400, "{\"error\":\"slow_down\"}");
    needs(&it, OAUTH_WAIT);
    assert_int_equal(it.action.at_ms, it.now + 12000);
    it.now += 12000;
    asks(&it, "https://a/token");
    answer(&it, 200, TOKEN "}");
    sends(&it, "Bearer at-1");
    walk_fini(&it);
    static const struct {
        const char *device, *token, *why;
    } ends[] = {
        {"{\"device_code\":\"d\",\"user_code\":\"W\",\"verification_uri\":\"javascript:x\"}", NULL,
         "no usable code"},
        {"{\"device_code\":\"d\",\"verification_uri\":\"https://a/d\"}", NULL, "no usable code"},
        {"{\"device_code\":\"d\",\"user_code\":\"W\\u001b[2J\",\"verification_uri\":\"https://a/"
         "d\"}",
         NULL, "no usable code"},
        {"{\"device_code\":\"d\",\"user_code\":\"W\",\"verification_uri\":\"https://a/d\"}",
         "{\"error\":\"access_denied\"}", "access_denied"},
        {"{\"device_code\":\"d\",\"user_code\":\"W\",\"verification_uri\":\"https://a/d\"}",
         "{\"error\":\"expired_token\"}", "expired_token"},
        {"{\"device_code\":\"d\",\"user_code\":\"W\",\"verification_uri\":\"https://a/d\","
         "\"expires_in\":6}",
         "{\"error\":\"authorization_pending\"}", "nobody has entered the code"},
    };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        walk_init(&it, &settings);
        to_server(&it,
                  SERVER_OF("a", PUBLIC ",\"device_authorization_endpoint\":\"https://a/device\""));
        asks(&it, "https://a/device");
        answer(&it, 200, ends[i].device);
        if (ends[i].token != NULL) {
            needs(&it, OAUTH_SHOW);
            it.now += 5000;
            asks(&it, "https://a/token");
            answer(&it, 400, ends[i].token);
        }
        fails(&it, ends[i].why);
        walk_fini(&it);
    }
    walk_init(&it, &settings);
    to_server(&it, SERVER);
    fails(&it, "no login by a code");
    walk_fini(&it);
    /* a server that does not answer is not asked beyond the end of the code */
    walk_init(&it, &settings);
    to_server(&it,
              SERVER_OF("a", PUBLIC ",\"device_authorization_endpoint\":\"https://a/device\""));
    asks(&it, "https://a/device");
    answer(&it, 200,
           "{\"device_code\":\"d\",\"user_code\":\"W\",\"verification_uri\":\"https://a/d\","
           "\"expires_in\":30,\"interval\":5}");
    needs(&it, OAUTH_SHOW);
    it.now += 5000;
    asks(&it, "https://a/token");
    oauth_client_unanswered(it.client, BAY_ERR_TIMEOUT, "late", it.now);
    it.now += 10000;
    asks(&it, "https://a/token");
    oauth_client_unanswered(it.client, BAY_ERR_TIMEOUT, "late", it.now);
    fails(&it, "nobody has entered the code");
    walk_fini(&it);
}

/* ---- possession ------------------------------------------------------------------------------ */

#define DPOP_SERVER                                                                                \
    SERVER_OF("a", PUBLIC REGISTERS("a") ",\"dpop_signing_alg_values_supported\":[\"ES256\"]")

static void bound_tokens(void **state)
{
    (void)state;
    walk it;
    buf authorization, first, second;
    oauth_settings settings = code_settings();
    buf_init(&authorization, ROOM);
    buf_init(&first, ROOM);
    buf_init(&second, ROOM);
    walk_init(&it, &settings);
    to_browser(&it, "DPoP algs=\"ES256\"", DPOP_SERVER);
    assert_int_equal(redirect(&it, "code=k&state=%.*s"), BAY_OK);
    asks(&it, "https://a/token");
    has(&it, "\nDPoP: eyJ");
    /* the server wants its nonce: the same form once more, with another proof */
    char before[8192];
    snprintf(before, sizeof(before), "%s", strstr(it.shown, "\nDPoP: "));
    oauth_client_answered(it.client, 400, STR("n-1"), STR("{\"error\":\"use_dpop_nonce\"}"),
                          it.now);
    asks(&it, "https://a/token");
    has(&it, "grant_type=authorization_code&code=k&");
    assert_string_not_equal(before, strstr(it.shown, "\nDPoP: "));
    oauth_client_answered(it.client, 200, STR("n-2"),
                          STR("{\"access_token\":\"at-1\",\"token_type\":\"DPoP\"}"), it.now);
    needs(&it, OAUTH_GO);
    assert_int_equal(oauth_client_authorize(it.client, &it.one, STR("POST"), STR("https://h/mcp?x"),
                                            it.now, &authorization, &first),
                     BAY_OK);
    assert_true(str_eq(buf_view(&authorization), STR("DPoP at-1")));
    buf_clear(&authorization);
    assert_int_equal(oauth_client_authorize(it.client, &it.one, STR("POST"), STR("https://h/mcp?x"),
                                            it.now, &authorization, &second),
                     BAY_OK);
    assert_false(str_eq(buf_view(&first), buf_view(&second))); /* one for each attempt */
    bay_str claims = str_from(buf_view(&first), str_find(buf_view(&first), '.') + 1);
    buf decoded;
    buf_init(&decoded, ROOM);
    assert_int_equal(base64_decode(&decoded, str_head(claims, str_find(claims, '.')), BASE64_URL),
                     BAY_OK);
    buf_char(&decoded, '\0');
    assert_non_null(strstr(decoded.at, "\"htm\":\"POST\",\"htu\":\"https://h/mcp\",\"iat\":1000,"));
    assert_non_null(strstr(decoded.at, "\"ath\":\""));
    assert_null(strstr(decoded.at, "nonce")); /* of the other server */
    buf_fini(&decoded);
    /* the resource wants its own: once */
    const http_field wants[] = {{STR("WWW-Authenticate"), STR("DPoP error=\"use_dpop_nonce\"")},
                                {STR("DPoP-Nonce"), STR("r-1")}};
    assert_int_equal(oauth_client_replied(it.client, &it.one, 401, wants, 2, it.now), OAUTH_AGAIN);
    needs(&it, OAUTH_GO);
    assert_int_equal(oauth_client_replied(it.client, &it.one, 401, wants, 2, it.now), OAUTH_PASS);
    buf_fini(&authorization);
    buf_fini(&first);
    buf_fini(&second);
    walk_fini(&it);
}

static void tokens_that_should_be_bound(void **state)
{
    (void)state;
    walk it;
    oauth_settings settings = code_settings();
    settings.wants_dpop = true;
    walk_init(&it, &settings);
    to_browser(&it, "Bearer", DPOP_SERVER);
    assert_int_equal(redirect(&it, "code=k&state=%.*s"), BAY_OK);
    asks(&it, "https://a/token");
    answer(&it, 200, TOKEN "}");
    fails(&it, "not bound to our key");
    walk_fini(&it);
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void logging_out(void **state)
{
    (void)state;
    walk it;
    oauth_settings settings = code_settings();
    for (int has_endpoint = 0; has_endpoint < 2; has_endpoint++) {
        walk_init(&it, &settings);
        to_browser(
            &it, "Bearer",
            has_endpoint
                ? SERVER_OF("a", PUBLIC REGISTERS("a") ",\"revocation_endpoint\":\"https://a/rev\"")
                : SERVER);
        assert_int_equal(redirect(&it, "code=k&state=%.*s"), BAY_OK);
        asks(&it, "https://a/token");
        answer(&it, 200, TOKEN ",\"refresh_token\":\"rt-1\"}");
        needs(&it, OAUTH_GO);
        (void)oauth_client_take_change(it.client);
        oauth_client_revoke(it.client);
        if (has_endpoint) {
            asks(&it, "https://a/rev");
            has(&it, "token=rt-1&token_type_hint=refresh_token&client_id=c-1");
            answer(&it, 500, ""); /* whatever it says, we forget */
        }
        sends(&it, "");
        assert_true(oauth_client_take_change(it.client));
        assert_int_equal(oauth_client_record(it.client)->client_id.len, 0);
        walk_fini(&it);
    }
}

static void settings_that_are_wrong(void **state)
{
    (void)state;
    oauth_settings cases[] = {
        {.url = STR("http://h/mcp")},
        {.url = STR("stdio:x")},
        {.url = STR("https://h"), .issuer = STR("http://a")},
        {.url = STR("https://h"), .idp_token_endpoint = STR("ftp://a")},
        {.url = STR("https://h"), .document_url = STR("http://127.0.0.1/c")},
        {.url = STR("https://h"), .grant = OAUTH_CLIENT},
        {.url = STR("https://h"), .grant = OAUTH_ID_JAG},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        oauth_client *client = NULL;
        bay_diag diag = {0};
        assert_int_equal(oauth_client_new(&cases[i], &client, &diag), BAY_ERR_INVALID);
        assert_int_equal(diag.code, BAY_ERR_INVALID);
        assert_null(client);
    }
}

/* Every allocation of a whole login fails in turn: the flow fails, and nothing is lost or
 * leaked. */
static void without_memory(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        oauth_client *client = NULL;
        oauth_settings settings = code_settings();
        oauth_action action = {0};
        oauth_try one = {0};
        settings.redirect_uri = STR("https://me/cb");
        settings.is_eager = true;
        bay_err err = oauth_client_new(&settings, &client, NULL);
        static const char *const answers[] = {RESOURCE, SERVER, CLIENT, TOKEN "}"};
        for (size_t i = 0; err == BAY_OK && i < sizeof(answers) / sizeof(answers[0]); i++) {
            err = oauth_client_next(client, NOW, &action);
            if (action.need == OAUTH_BROWSER) {
                char query[256];
                snprintf(query, sizeof(query), "code=k&state=%.*s",
                         BAY_STR(oauth_client_state(client)));
                err = oauth_client_redirected(client, str_of(query), NOW);
                err = err == BAY_OK ? oauth_client_next(client, NOW, &action) : err;
            }
            if (action.need != OAUTH_REQUEST) {
                break;
            }
            oauth_client_answered(client, 200, STR(""), str_of(answers[i]), NOW);
        }
        buf out, proof;
        buf_init(&out, ROOM);
        buf_init(&proof, ROOM);
        if (client != NULL) {
            err_ignore(oauth_client_next(client, NOW, &action));
            assert_true(action.need != OAUTH_FAILED ||
                        oauth_client_fault(client)->code == BAY_ERR_NOMEM);
            err = oauth_client_authorize(client, &one, STR("GET"), STR("https://h/mcp"), NOW, &out,
                                         &proof);
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        }
        buf_fini(&out);
        buf_fini(&proof);
        oauth_client_free(client);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_renewed_early),
        cmocka_unit_test(another_process_renewed_it),
        cmocka_unit_test(a_record_is_for_one_target),
        cmocka_unit_test(refreshes_that_fail),
        cmocka_unit_test(which_scope_is_asked_for),
        cmocka_unit_test(a_scope_is_lacking),
        cmocka_unit_test(client_credentials),
        cmocka_unit_test(workload_identity),
        cmocka_unit_test(enterprise),
        cmocka_unit_test(exchange),
        cmocka_unit_test(a_code_on_another_device),
        cmocka_unit_test(bound_tokens),
        cmocka_unit_test(tokens_that_should_be_bound),
        cmocka_unit_test(logging_out),
        cmocka_unit_test(settings_that_are_wrong),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
