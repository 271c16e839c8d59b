/* Who comes in: each kind of credential, good, bad, doubled, in the wrong place, in floods; what is
 * remembered, for whom, and until when; and what requests do that have to wait. */
#include "guard_rig.h"
#include <openssl/evp.h> /* not in a build without it: its tokens are signed */

#define MINE "\"sub\":\"ann\",\"aud\":\"" RESOURCE "/mcp\""
#define CHALLENGE(members)                                                                         \
    "WWW-Authenticate: Bearer " members "resource_metadata=\"https://rs.example/meta\"\r\n"
#define INVALID CHALLENGE("error=\"invalid_token\", ")

static void expect(const answer *got, int status, const char *head)
{
    if (got->status != status || (head != NULL && strstr(got->head, head) == NULL)) {
        fail_msg("%d %s%s", got->status, got->head, got->body);
    }
    /* nothing of what was sent comes back, whatever it was */
    assert_null(strstr(got->head, "eyJ"));
    assert_true(got->status == 200 || strcmp(got->body, "refused") == 0);
}

/* ---- what a request brings ------------------------------------------------------------------- */

static void nothing_is_asked_for_without_an_error(void **state)
{
    (void)state;
    static const char *const nothing[] = {"", "Authorization: Basic YTpi\r\n",
                                          "Authorization: Bear x\r\n", "X-API-Key: pbk_a_b\r\n",
                                          "DPoP: x.y.z\r\n"};
    guard_rig self;
    begin_with_tokens(&self);
    for (size_t i = 0; i < ARRAY_LEN(nothing); i++) {
        answer got = rig_ask(&self, "/mcp", nothing[i]);
        expect(&got, 401, CHALLENGE(""));
        assert_null(strstr(got.head, "error"));
        assert_null(strstr(got.head, "Retry-After"));
    }
    rig_end(&self);
}

static void what_can_be_read_in_two_ways_is_refused(void **state)
{
    (void)state;
    guard_rig self;
    rig_begin(&self);
    oauth_guard_options options = {.has_keys = true, .dpop = OAUTH_DPOP_ACCEPTED};
    oauth_guard_issuer issuer = rig_issuer();
    rig_guard(&self, &options, &issuer);
    static const struct {
        const char *target;
        const char *fields;
    } rows[] = {
        {"/mcp", "Authorization: Bearer a\r\nAuthorization: Bearer a\r\n"},
        {"/mcp", "Authorization: Basic a\r\nauthorization: Bearer a\r\n"},
        {"/mcp", "Authorization: Bearer\r\n"},
        {"/mcp", "Authorization: Bearer \r\n"},
        {"/mcp", "Authorization: Bearer a b\r\n"},
        {"/mcp", "Authorization: Bearer a, Bearer b\r\n"},
        {"/mcp", "Authorization: Bearer ==\r\n"},
        {"/mcp", "Authorization: Bearer \xc3\xa9\r\n"},
        {"/mcp", "Authorization: DPoP \"a\"\r\n"},
        {"/mcp", "Authorization: Bearer a\r\nX-API-Key: pbk_a_b\r\n"},
        {"/mcp", "X-API-Key: pbk_a_b\r\nX-API-Key: pbk_a_b\r\n"},
        {"/mcp?access_token=a", ""},
        {"/mcp?x=1&Access_Token=a", "Authorization: Bearer a\r\n"},
        {"/mcp?access_token", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        answer got = rig_ask(&self, rows[i].target, rows[i].fields);
        expect(&got, 400, NULL);
        assert_null(strstr(got.head, "WWW-Authenticate"));
    }
    assert_int_equal(self.asked.count, 0);
    assert_int_equal(oauth_state_tokens(self.state), 0);
    rig_end(&self);
}

static void a_token_makes_a_principal_and_is_remembered(void **state)
{
    (void)state;
    static const char *const schemes[] = {"Bearer", "bearer", "BEARER", "Bearer  "};
    guard_rig self;
    begin_with_tokens(&self);
    const char *token = rig_bearer(&self, ISSUER, MINE ",\"scope\":\"read write\"");
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        answer got = rig_ask_with(&self, "/mcp", schemes[i], token, "");
        expect(&got, 200, NULL);
        assert_string_equal(got.body, "token|ann|read write");
        assert_int_equal(oauth_state_tokens(self.state), 1);
    }
    /* until its time is over, skew included */
    wall_ms = 1000100 * UINT64_C(1000) + SKEW_MS - 1;
    answer got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
    expect(&got, 200, NULL);
    wall_ms++;
    got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
    expect(&got, 401, INVALID);
    rig_end(&self);
}

static void a_token_is_for_one_resource(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_tokens(&self);
    static const char *const others[] = {
        "\"sub\":\"ann\"",
        "\"sub\":\"ann\",\"aud\":\"" RESOURCE "\"",
        "\"sub\":\"ann\",\"aud\":\"" RESOURCE "/mcp/\"",
        "\"sub\":\"ann\",\"aud\":\"" RESOURCE "/mc\"",
        "\"sub\":\"ann\",\"aud\":\"" RESOURCE "/mcp/github\"",
        "\"sub\":\"ann\",\"aud\":\"http://rs.example/mcp\"",
        "\"sub\":\"ann\",\"aud\":\"http://127.0.0.1/mcp\"",
        "\"sub\":\"ann\",\"aud\":[\"https://other.example/mcp\"]",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        self.address = i % 2 == 0 ? "192.0.2.1" : "192.0.2.2";
        answer got =
            rig_ask_with(&self, "/mcp", "Bearer", rig_bearer(&self, ISSUER, others[i]), "");
        expect(&got, 401, INVALID);
    }
    /* what is remembered as good at one endpoint is not good at its neighbour */
    self.address = "192.0.2.3";
    const char *token = rig_bearer(&self, ISSUER, MINE);
    answer got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
    expect(&got, 200, NULL);
    got = rig_ask_with(&self, "/mcp/github", "Bearer", token, "");
    expect(&got, 401, INVALID);
    /* a part is reached with a token for the whole */
    self.is_part = true;
    token = rig_bearer(&self, ISSUER, "\"sub\":\"ann\",\"aud\":\"" RESOURCE "\"");
    got = rig_ask_with(&self, "/mcp/x", "Bearer", token, "");
    expect(&got, 200, NULL);
    /* by each of its names */
    self.base_count = 2;
    token = rig_bearer(&self, ISSUER, "\"sub\":\"ann\",\"aud\":\"http://127.0.0.1/mcp/y\"");
    got = rig_ask_with(&self, "/mcp/y", "Bearer", token, "");
    expect(&got, 200, NULL);
    rig_end(&self);
}

static void of_another_issuer_or_key(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_tokens(&self);
    static const char *const issuers[] = {ISSUER "/", "https://ISSUER.example", "", "joe"};
    for (size_t i = 0; i < ARRAY_LEN(issuers); i++) {
        answer got = rig_ask_with(&self, "/mcp", "Bearer", rig_bearer(&self, issuers[i], MINE), "");
        expect(&got, 401, INVALID);
    }
    self.address = "192.0.2.2";
    char forged[4096];
    snprintf(forged, sizeof(forged), "%s", rig_bearer(&self, ISSUER, MINE));
    char *signature = strrchr(forged, '.') + 10;
    *signature = *signature == 'A' ? 'B' : 'A';
    answer got = rig_ask_with(&self, "/mcp", "Bearer", forged, "");
    expect(&got, 401, INVALID);
    got = rig_ask_with(&self, "/mcp", "Bearer", "opaque", "");
    expect(&got, 401, INVALID);
    static char large[ACCESS_TOKEN_BYTES + 2];
    memset(large, 'a', sizeof(large) - 1);
    got = rig_ask_with(&self, "/mcp", "Bearer", large, "");
    expect(&got, 401, INVALID);
    rig_end(&self);
}

/* ---- everybody's scopes ---------------------------------------------------------------------- */

static void everybody_needs_these_scopes(void **state)
{
    (void)state;
    guard_rig self;
    rig_begin(&self);
    access_implied implied[] = {{STR("all"), STR("read mcp")}};
    oauth_guard_options options = {
        .scopes = STR("mcp read"), .implied = implied, .implied_count = 1};
    oauth_guard_issuer issuer = rig_issuer();
    rig_guard(&self, &options, &issuer);
    static const struct {
        const char *claims;
        int status;
    } rows[] = {
        {MINE, 403},
        {MINE ",\"scope\":\"mcp\"", 403},
        {MINE ",\"scope\":\"mcp.read\"", 403},
        {MINE ",\"scope\":\"mcpread\"", 403},
        {MINE ",\"scope\":\"read mcp x\"", 200},
        {MINE ",\"scope\":\"all\"", 200},
    };
    answer got = rig_ask(&self, "/mcp", "");
    expect(&got, 401, CHALLENGE("scope=\"mcp read\", "));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *token = rig_bearer(&self, ISSUER, rows[i].claims);
        for (int again = 0; again < 2; again++) { /* also remembered */
            got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
            expect(&got, rows[i].status,
                   rows[i].status == 403
                       ? CHALLENGE("error=\"insufficient_scope\", scope=\"mcp read\", ")
                       : NULL);
        }
    }
    rig_end(&self);
}

/* ---- API keys -------------------------------------------------------------------------------- */

static void begin_with_keys(guard_rig *self)
{
    rig_begin(self);
    oauth_guard_options options = {.has_keys = true};
    rig_guard(self, &options, NULL);
    self->stored_id = "k1";
    self->stored = (api_key){.name = STR("ci"), .scopes = STR("read")};
    assert_int_equal(digest_bytes(STR("pbk_k1_secret"), self->stored.digest), BAY_OK);
}

static void an_api_key_is_looked_up_by_its_public_part(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_keys(&self);
    static const char *const ways[] = {"Authorization: Bearer pbk_k1_secret\r\n",
                                       "X-API-Key: pbk_k1_secret\r\n"};
    for (size_t i = 0; i < 4; i++) {
        answer got = rig_ask(&self, "/mcp", ways[i % 2]);
        expect(&got, 200, NULL);
        assert_string_equal(got.body, "key|ci|read");
    }
    assert_int_equal(self.asked.count, 1); /* remembered */
    static const char *const bad[] = {"pbk_k1_secreT", "pbk_k1_secret_", "pbk_k2_secret",
                                      "PBK_k1_secret", "opaque"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        answer got = rig_ask_with(&self, "/mcp", "Bearer", bad[i], "");
        expect(&got, 401, INVALID);
    }
    rig_end(&self);
}

static void a_revoked_key_is_seen_in_seconds(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_keys(&self);
    answer got = rig_ask(&self, "/mcp", "X-API-Key: pbk_k1_secret\r\n");
    expect(&got, 200, NULL);
    self.stored_id = NULL;
    got = rig_ask(&self, "/mcp", "X-API-Key: pbk_k1_secret\r\n");
    expect(&got, 200, NULL);
    wall_ms += 10000;
    got = rig_ask(&self, "/mcp", "X-API-Key: pbk_k1_secret\r\n");
    expect(&got, 401, INVALID);
    rig_end(&self);
}

static void a_key_whose_time_is_over_or_that_cannot_be_looked_up(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_keys(&self);
    self.stored.expires_at_ms = wall_ms + 1000;
    answer got = rig_ask(&self, "/mcp", "X-API-Key: pbk_k1_secret\r\n");
    expect(&got, 200, NULL);
    wall_ms += 1000;
    got = rig_ask(&self, "/mcp", "X-API-Key: pbk_k1_secret\r\n");
    expect(&got, 401, INVALID);
    self.key_err = BAY_ERR_IO;
    got = rig_ask(&self, "/mcp", "X-API-Key: pbk_k1_other\r\n");
    expect(&got, 503, "Retry-After: ");
    rig_end(&self);
}

/* Looked up later: the request waits; it may be gone by then, or the link. */
static void a_key_that_is_looked_up_later(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_keys(&self);
    self.is_key_later = true;
    raw client;
    rig_send(&self, &client, "/mcp", "X-API-Key: pbk_k1_secret\r\n");
    RIG_UNTIL(&self.http, self.waits == 1);
    self.asked.done(self.asked.argument, BAY_OK, &self.stored);
    answer got = rig_read(&self, &client);
    expect(&got, 200, NULL);
    assert_string_equal(got.body, "key|ci|read");
    wall_ms += 10000; /* it is not remembered any more */
    rig_send(&self, &client, "/mcp", "X-API-Key: pbk_k1_secret\r\n");
    RIG_UNTIL(&self.http, self.waits == 2);
    raw_close(&client);
    RIG_UNTIL(&self.http, self.ends == 2);
    self.asked.done(self.asked.argument, BAY_OK, &self.stored);
    rig_end(&self);
}

/* ---- a proxy's field ------------------------------------------------------------------------- */

static void a_field_counts_only_from_a_proxy(void **state)
{
    (void)state;
    guard_rig self;
    rig_begin(&self);
    oauth_guard_options options = {.has_keys = false};
    oauth_guard_issuer issuer = rig_issuer();
    issuer.field = STR("X-Identity");
    rig_guard(&self, &options, &issuer);
    char field[2048];
    const char *token = rig_bearer(&self, ISSUER, MINE);
    snprintf(field, sizeof(field), "X-Identity: %s\r\n", token);
    answer got = rig_ask(&self, "/mcp", field);
    expect(&got, 401, CHALLENGE(""));
    self.is_by_proxy = true;
    got = rig_ask(&self, "/mcp", field);
    expect(&got, 200, NULL);
    assert_string_equal(got.body, "token|ann|");
    /* it is no token of anybody else's, also while it is remembered */
    got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
    expect(&got, 401, INVALID);
    self.is_by_proxy = false;
    got = rig_ask(&self, "/mcp", field);
    expect(&got, 401, CHALLENGE(""));
    got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
    expect(&got, 401, INVALID);
    self.is_by_proxy = true;
    char both[4096];
    snprintf(both, sizeof(both), "%s%s", field, field);
    got = rig_ask(&self, "/mcp", both);
    expect(&got, 400, NULL);
    snprintf(both, sizeof(both), "%sAuthorization: Bearer x\r\n", field);
    got = rig_ask(&self, "/mcp", both);
    expect(&got, 400, NULL);
    rig_end(&self);
}

/* ---- DPoP ------------------------------------------------------------------------------------ */

#define THUMBPRINT "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U"
#define BOUND MINE ",\"cnf\":{\"jkt\":\"" THUMBPRINT "\"}"

static const char *proof_field(guard_rig *self, const char *token, const char *id, const char *url,
                               const char *nonce)
{
    static char field[4096];
    char claims[1024];
    char ath[64];
    unsigned char digest[DIGEST_BYTES];
    buf text = {.at = ath, .cap = sizeof(ath) - 1, .max = sizeof(ath) - 1};
    buf proof;
    assert_int_equal(digest_bytes(str_of(token), digest), BAY_OK);
    rig_encode(&text, (bay_str){(const char *)digest, sizeof(digest)});
    ath[text.len] = '\0';
    snprintf(claims, sizeof(claims),
             "{\"jti\":\"%s\",\"htm\":\"POST\",\"htu\":\"%s\",\"iat\":%d,\"ath\":\"%s\"%s%s%s}", id,
             url, WALL_S, ath, nonce != NULL ? ",\"nonce\":\"" : "", nonce != NULL ? nonce : "",
             nonce != NULL ? "\"" : "");
    buf_init(&proof, RIG_TEXT);
    rig_token(self->key, "{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"jwk\":" RIG_EC_JWK "}", claims,
              &proof);
    snprintf(field, sizeof(field), "DPoP: %.*s\r\n", BAY_STR(buf_view(&proof)));
    buf_fini(&proof);
    return field;
}

#define ALGORITHMS "algs=\"ES256 EdDSA ES384 ES512 PS256 RS256\"\r\n"
#define DPOP(error)                                                                                \
    "WWW-Authenticate: DPoP error=\"" error                                                        \
    "\", resource_metadata=\"https://rs.example/meta\", " ALGORITHMS

static void a_bound_token_needs_its_proof(void **state)
{
    (void)state;
    guard_rig self;
    rig_begin(&self);
    oauth_guard_options options = {.dpop = OAUTH_DPOP_ACCEPTED};
    oauth_guard_issuer issuer = rig_issuer();
    rig_guard(&self, &options, &issuer);
    char token[2048];
    snprintf(token, sizeof(token), "%s", rig_bearer(&self, ISSUER, BOUND));
    for (int again = 0; again < 2; again++) { /* the second time it is remembered */
        answer got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
        expect(&got, 401, DPOP("invalid_token"));
        got = rig_ask_with(&self, "/mcp", "DPoP", token, "");
        expect(&got, 401, DPOP("invalid_dpop_proof"));
    }
    self.address = "192.0.2.2";
    const char *proof = proof_field(&self, token, "j1", RESOURCE "/mcp", NULL);
    answer got = rig_ask_with(&self, "/mcp", "DPoP", token, proof);
    expect(&got, 200, NULL);
    got = rig_ask_with(&self, "/mcp", "DPoP", token, proof);
    expect(&got, 401, DPOP("invalid_dpop_proof"));
    proof = proof_field(&self, token, "j2", RESOURCE "/mcp/other", NULL);
    got = rig_ask_with(&self, "/mcp", "DPoP", token, proof);
    expect(&got, 401, DPOP("invalid_dpop_proof"));
    self.address = "192.0.2.4";
    char twice[8192];
    proof = proof_field(&self, token, "j3", RESOURCE "/mcp", NULL);
    snprintf(twice, sizeof(twice), "%s%s", proof, proof);
    got = rig_ask_with(&self, "/mcp", "DPoP", token, twice);
    expect(&got, 401, DPOP("invalid_dpop_proof"));
    /* a token that is bound to nothing, as if it were */
    self.address = "192.0.2.3";
    const char *bare = rig_bearer(&self, ISSUER, MINE);
    got = rig_ask_with(&self, "/mcp", "DPoP", bare, proof);
    expect(&got, 401, DPOP("invalid_token"));
    got = rig_ask_with(&self, "/mcp", "Bearer", bare, "");
    expect(&got, 200, NULL);
    /* both schemes are named to who brings nothing */
    got = rig_ask(&self, "/mcp", "");
    expect(&got, 401, CHALLENGE(""));
    expect(&got, 401,
           "WWW-Authenticate: DPoP resource_metadata=\"https://rs.example/meta\", " ALGORITHMS);
    rig_end(&self);
}

static void dpop_alone_with_nonces(void **state)
{
    (void)state;
    guard_rig self;
    rig_begin(&self);
    oauth_guard_options options = {.dpop = OAUTH_DPOP_REQUIRED, .has_nonces = true};
    oauth_guard_issuer issuer = rig_issuer();
    rig_guard(&self, &options, &issuer);
    char token[2048];
    answer got = rig_ask_with(&self, "/mcp", "Bearer", rig_bearer(&self, ISSUER, MINE), "");
    expect(&got, 401, DPOP("invalid_token"));
    assert_null(strstr(got.head, "Bearer"));
    snprintf(token, sizeof(token), "%s", rig_bearer(&self, ISSUER, BOUND));
    got = rig_ask_with(&self, "/mcp", "DPoP", token,
                       proof_field(&self, token, "j1", RESOURCE "/mcp", NULL));
    expect(&got, 401, DPOP("use_dpop_nonce"));
    const char *at = strstr(got.head, "DPoP-Nonce: ");
    assert_non_null(at);
    char nonce[DPOP_NONCE_BYTES];
    snprintf(nonce, sizeof(nonce), "%.*s", (int)strcspn(at + 12, "\r"), at + 12);
    got = rig_ask_with(&self, "/mcp", "DPoP", token,
                       proof_field(&self, token, "j2", RESOURCE "/mcp", nonce));
    expect(&got, 200, NULL);
    got = rig_ask_with(&self, "/mcp", "DPoP", token,
                       proof_field(&self, token, "j3", RESOURCE "/mcp", "stale"));
    expect(&got, 401, DPOP("use_dpop_nonce"));
    rig_end(&self);
}

static void a_bound_token_where_dpop_is_off_and_one_of_a_certificate(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_tokens(&self);
    answer got = rig_ask_with(&self, "/mcp", "Bearer", rig_bearer(&self, ISSUER, BOUND), "");
    expect(&got, 401, INVALID);
    const char *token =
        rig_bearer(&self, ISSUER,
                   MINE ",\"cnf\":{\"x5t#S256\":\"bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2\"}");
    for (int again = 0; again < 2; again++) {
        got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
        expect(&got, 401, INVALID);
    }
    rig_end(&self);
}

/* ---- introspection --------------------------------------------------------------------------- */

#define ACTIVE(more)                                                                               \
    "{\"active\":true,\"sub\":\"bea\",\"aud\":\"" RESOURCE "/mcp\",\"exp\":1000300" more "}"

static void begin_with_introspection(guard_rig *self, bool of_all, oauth_dpop dpop)
{
    rig_begin(self);
    oauth_guard_options options = {.dpop = dpop};
    oauth_guard_issuer issuer = rig_authority_issuer(self);
    issuer.client_id = STR("rs:1");
    issuer.client_secret = STR("s&cret");
    issuer.introspects_all = of_all;
    rig_guard(self, &options, &issuer);
}

static void an_opaque_token_is_asked_about(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_introspection(&self, false, OAUTH_DPOP_OFF);
    self.introspect_body = ACTIVE(",\"scope\":\"read\"");
    answer got = rig_ask_with(&self, "/mcp", "Bearer", "op+que/1==", "");
    expect(&got, 200, NULL);
    assert_string_equal(got.body, "token|bea|read");
    assert_string_equal(self.last_form, "token_type_hint=access_token&token=op%2Bque%2F1%3D%3D");
    assert_string_equal(self.last_authorization, "Basic cnMlM0ExOnMlMjZjcmV0");
    got = rig_ask_with(&self, "/mcp", "Bearer", "op+que/1==", "");
    expect(&got, 200, NULL);
    assert_int_equal(self.introspected, 1);
    /* remembered for a minute at most */
    self.introspect_body = "{\"active\":false}";
    wall_ms += OAUTH_INTROSPECTED_MS - 1;
    got = rig_ask_with(&self, "/mcp", "Bearer", "op+que/1==", "");
    expect(&got, 200, NULL);
    wall_ms++;
    got = rig_ask_with(&self, "/mcp", "Bearer", "op+que/1==", "");
    expect(&got, 401, INVALID);
    assert_int_equal(self.introspected, 2);
    /* and that it is not good for seconds */
    self.introspect_body = ACTIVE("");
    got = rig_ask_with(&self, "/mcp", "Bearer", "op+que/1==", "");
    expect(&got, 401, INVALID);
    assert_int_equal(self.introspected, 2);
    wall_ms += TOKEN_MEMORY_REFUSED_MS;
    got = rig_ask_with(&self, "/mcp", "Bearer", "op+que/1==", "");
    expect(&got, 200, NULL);
    rig_end(&self);
}

static void what_introspection_may_answer(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int answers;
        int status;
    } rows[] = {
        {ACTIVE(""), 200, 200},
        {"{\"active\":true,\"sub\":\"bea\",\"exp\":1000300}", 200, 401},
        {"{\"active\":true,\"sub\":\"bea\",\"aud\":\"https://o.example\",\"exp\":1000300}", 200,
         401},
        {"{\"active\":true,\"sub\":\"bea\",\"aud\":\"" RESOURCE "/mcp\"}", 200, 401},
        {"{\"active\":true,\"sub\":\"bea\",\"aud\":\"" RESOURCE "/mcp\",\"exp\":999000}", 200, 401},
        {ACTIVE(",\"token_type\":\"refresh_token\""), 200, 401},
        {ACTIVE(",\"iss\":\"https://other.example\""), 200, 401},
        {"{\"active\":\"true\",\"sub\":\"bea\",\"aud\":\"" RESOURCE "/mcp\",\"exp\":1000300}", 200,
         401},
        {"{\"active\":true,\"active\":false}", 200, 503},
        {"{}", 200, 401},
        {"[]", 200, 503},
        {"<html>", 200, 503},
        {"", 200, 503},
        {ACTIVE(""), 201, 503},
        {ACTIVE(""), 302, 503},
        {ACTIVE(""), 400, 503},
        {ACTIVE(""), 401, 503},
        {ACTIVE(""), 403, 503},
        {ACTIVE(""), 500, 503},
    };
    guard_rig self;
    begin_with_introspection(&self, false, OAUTH_DPOP_OFF);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char token[16];
        char address[32];
        snprintf(token, sizeof(token), "t%zu", i);
        snprintf(address, sizeof(address), "192.0.2.%zu", i);
        self.address = address;
        self.introspect_body = rows[i].body;
        self.introspect_status = rows[i].answers;
        answer got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
        if (got.status != rows[i].status) {
            fail_msg("%s: %d", rows[i].body, got.status);
        }
        expect(&got, rows[i].status,
               rows[i].status == 401   ? INVALID
               : rows[i].status == 503 ? "Retry-After: "
                                       : NULL);
    }
    rig_end(&self);
}

static void a_jwt_is_verified_and_asked_about(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_introspection(&self, true, OAUTH_DPOP_OFF);
    char token[2048];
    snprintf(token, sizeof(token), "%s", rig_bearer(&self, self.authority_url, MINE));
    self.introspect_body = "{\"active\":false}";
    answer got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
    expect(&got, 401, INVALID);
    wall_ms += TOKEN_MEMORY_REFUSED_MS;
    self.introspect_body = ACTIVE("");
    got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
    expect(&got, 200, NULL);
    assert_int_equal(self.introspected, 2);
    /* a forged one is not even asked about */
    char *signature = strrchr(token, '.') + 10;
    *signature = *signature == 'A' ? 'B' : 'A';
    got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
    expect(&got, 401, INVALID);
    assert_int_equal(self.introspected, 2);
    rig_end(&self);
}

/* An answer that does not repeat what the token is bound to frees it from nothing. */
static void a_bound_jwt_stays_bound_whatever_is_answered(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        const char *error;
    } rows[] = {
        {ACTIVE(""), "invalid_token"},
        {ACTIVE(",\"cnf\":{\"jkt\":\"oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-V\"}"),
         "invalid_token"},
        {ACTIVE(",\"cnf\":{\"x5t#S256\":\"" THUMBPRINT "\"}"), "invalid_token"},
        {ACTIVE(",\"cnf\":{\"jkt\":\"" THUMBPRINT "\"}"), NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        guard_rig self;
        char token[2048];
        begin_with_introspection(&self, true, OAUTH_DPOP_ACCEPTED);
        self.introspect_body = rows[i].answer;
        snprintf(token, sizeof(token), "%s", rig_bearer(&self, self.authority_url, BOUND));
        answer got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
        expect(&got, 401, NULL);
        got = rig_ask_with(&self, "/mcp", "DPoP", token,
                           proof_field(&self, token, "j1", RESOURCE "/mcp", NULL));
        expect(&got, rows[i].error != NULL ? 401 : 200, rows[i].error);
        assert_int_equal(self.introspected, 1);
        rig_end(&self);
    }
}

/* ---- requests that wait ---------------------------------------------------------------------- */

static void begin_with_metadata(guard_rig *self, uint32_t check_ms)
{
    rig_begin(self);
    oauth_guard_options options = {.check_ms = check_ms};
    oauth_guard_issuer issuer = rig_authority_issuer(self);
    rig_guard(self, &options, &issuer);
}

static void keys_are_fetched_while_the_request_waits(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_metadata(&self, 0);
    const char *token = rig_bearer(&self, self.authority_url, MINE);
    answer got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
    expect(&got, 200, NULL);
    assert_int_equal(self.waits, 1);
    assert_int_equal(self.ends, 1);
    got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
    expect(&got, 200, NULL);
    assert_int_equal(self.waits, 1);
    rig_end(&self);
}

static void a_wait_ends_in_time(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_metadata(&self, 20);
    self.is_silent = true;
    const char *token = rig_bearer(&self, self.authority_url, MINE);
    answer got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
    expect(&got, 503, "Retry-After: ");
    assert_int_equal(self.ends, 1);
    rig_end(&self);
}

static void who_waits_may_leave_and_so_may_the_link(void **state)
{
    (void)state;
    for (int link_first = 0; link_first < 2; link_first++) {
        guard_rig self;
        raw client;
        char fields[4096];
        begin_with_metadata(&self, 0);
        self.is_silent = true;
        snprintf(fields, sizeof(fields), "Authorization: Bearer %s\r\n",
                 rig_bearer(&self, self.authority_url, MINE));
        rig_send(&self, &client, "/mcp", fields);
        RIG_UNTIL(&self.http, self.waits == 1);
        if (link_first) {
            oauth_guard_link_free(self.link);
            self.link = NULL;
            http_exchange *exchange = self.waiting;
            self.waiting = NULL;
            http_exchange_reply(exchange, 503, NULL, 0, STR(""));
        }
        raw_close(&client);
        RIG_UNTIL(&self.http, link_first || self.ends == 1);
        rig_end(&self);
    }
}

/* ---- floods ---------------------------------------------------------------------------------- */

static void an_address_that_guesses_is_turned_away(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_tokens(&self);
    char good[2048];
    snprintf(good, sizeof(good), "%s", rig_bearer(&self, ISSUER, MINE));
    answer got = rig_ask_with(&self, "/mcp", "Bearer", good, "");
    expect(&got, 200, NULL);
    int refused = 0;
    int turned_away = 0;
    for (int i = 0; i < 20; i++) {
        char token[16];
        snprintf(token, sizeof(token), "bad%d", i / 2); /* each twice: once remembered */
        got = rig_ask_with(&self, "/mcp", "Bearer", token, "");
        refused += got.status == 401;
        turned_away += got.status == 429;
        assert_true(got.status == 401 || strstr(got.head, "Retry-After: ") != NULL);
    }
    assert_int_equal(refused, 6);
    assert_int_equal(turned_away, 14);
    got = rig_ask_with(&self, "/mcp", "Bearer", "bad0", ""); /* also what is known to be bad */
    expect(&got, 429, "Retry-After: ");
    /* what is known to be good goes on; what is not known is not looked at; others' is */
    got = rig_ask_with(&self, "/mcp", "Bearer", good, "");
    expect(&got, 200, NULL);
    const char *other = rig_bearer(&self, ISSUER, "\"sub\":\"bob\",\"aud\":\"" RESOURCE "/mcp\"");
    got = rig_ask_with(&self, "/mcp", "Bearer", other, "");
    expect(&got, 429, "Retry-After: ");
    got = rig_ask(&self, "/mcp", "");
    expect(&got, 401, CHALLENGE(""));
    self.address = "192.0.2.2";
    got = rig_ask_with(&self, "/mcp", "Bearer", other, "");
    expect(&got, 200, NULL);
    rig_end(&self);
}

/* Sends a credential and leaves once it is asked about. */
static void ask_and_leave(guard_rig *self, const char *credential, const int *asked)
{
    raw client;
    char fields[64];
    int before = *asked;
    int ends = self->ends;
    snprintf(fields, sizeof(fields), "Authorization: Bearer %s\r\n", credential);
    rig_send(self, &client, "/mcp", fields);
    RIG_UNTIL(&self->http, *asked == before + 1);
    raw_close(&client);
    RIG_UNTIL(&self->http, self->ends == ends + 1);
}

static void leaving_before_the_answer_is_no_way_around(void **state)
{
    (void)state;
    guard_rig self;
    char text[32];
    begin_with_introspection(&self, false, OAUTH_DPOP_OFF);
    self.introspect_status = 0;
    for (int i = 0; i < 6; i++) {
        snprintf(text, sizeof(text), "opaque%d", i);
        ask_and_leave(&self, text, &self.introspected);
        RIG_UNTIL(&self.http, self.given_up == i + 1); /* nobody waits for it */
    }
    answer got = rig_ask_with(&self, "/mcp", "Bearer", "opaque6", "");
    expect(&got, 429, "Retry-After: ");
    assert_int_equal(self.introspected, 6);
    rig_end(&self);
    begin_with_keys(&self);
    self.is_key_later = true;
    for (int i = 0; i < 6; i++) {
        snprintf(text, sizeof(text), "pbk_k%d_guess", i);
        ask_and_leave(&self, text, &self.asked.count);
        self.asked.done(self.asked.argument, BAY_ERR_NOT_FOUND, NULL);
    }
    got = rig_ask_with(&self, "/mcp", "Bearer", "pbk_k6_guess", "");
    expect(&got, 429, "Retry-After: ");
    assert_int_equal(self.asked.count, 6);
    rig_end(&self);
}

/* Of two who wait for one answer, one leaves. */
static void who_stays_gets_the_answer_that_another_left(void **state)
{
    (void)state;
    guard_rig self;
    raw first;
    raw second;
    begin_with_introspection(&self, false, OAUTH_DPOP_OFF);
    self.introspect_status = 0;
    rig_send(&self, &first, "/mcp", "Authorization: Bearer shared\r\n");
    RIG_UNTIL(&self.http, self.introspected == 1);
    http_exchange *leaving = self.waiting;
    oauth_check *check = self.check;
    rig_send(&self, &second, "/mcp", "Authorization: Bearer shared\r\n");
    RIG_UNTIL(&self.http, self.waits == 2);
    oauth_check_cancel(check);
    http_exchange_reply(leaving, 503, NULL, 0, STR(""));
    raw_close(&first);
    http_exchange_reply(self.asking, 200, &rig_json, 1, STR(ACTIVE("")));
    answer got = rig_read(&self, &second);
    expect(&got, 200, NULL);
    assert_int_equal(self.introspected, 1);
    rig_end(&self);
}

static void tokens_of_an_issuer_can_be_forgotten(void **state)
{
    (void)state;
    guard_rig self;
    begin_with_tokens(&self);
    answer got = rig_ask_with(&self, "/mcp", "Bearer", rig_bearer(&self, ISSUER, MINE), "");
    expect(&got, 200, NULL);
    oauth_state_forget_issuer(self.state, STR("https://other.example"));
    assert_int_equal(oauth_state_tokens(self.state), 1);
    oauth_state_forget_issuer(self.state, STR(ISSUER));
    assert_int_equal(oauth_state_tokens(self.state), 0);
    rig_end(&self);
}

/* ---- making ---------------------------------------------------------------------------------- */

static void guards_that_cannot_be(void **state)
{
    (void)state;
    bay_diag diag = {.text = ""};
    oauth_guard *made = NULL;
    oauth_state *shared = NULL;
    oauth_state_options options = {.tokens = 16, .proofs = 16};
    assert_int_equal(oauth_state_new(&options, &shared), BAY_OK);
    oauth_guard_options nothing = {.state = shared};
    assert_int_equal(oauth_guard_new(&nothing, &made, &diag), BAY_ERR_INVALID);
    oauth_guard_issuer two[2] = {rig_issuer(), rig_issuer()};
    two[0].client_id = two[1].client_id = STR("x");
    oauth_guard_options both = {.state = shared, .issuers = two, .issuer_count = 2};
    assert_int_equal(oauth_guard_new(&both, &made, &diag), BAY_ERR_INVALID);
    two[1].client_id = STR("");
    two[1].audience_count = OAUTH_AUDIENCES + 1;
    assert_int_equal(oauth_guard_new(&both, &made, &diag), BAY_ERR_LIMIT);
    oauth_issuer_unref(two[0].issuer);
    oauth_issuer_unref(two[1].issuer);
    oauth_guard_options keys = {.state = shared, .has_keys = true};
    assert_int_equal(oauth_guard_new(&keys, &made, &diag), BAY_OK);
    loop *on = NULL;
    oauth_guard_link *link = NULL;
    assert_int_equal(loop_new(&on), BAY_OK);
    assert_int_equal(oauth_guard_link_new(on, made, NULL, NULL, &link, &diag), BAY_ERR_INVALID);
    oauth_guard_unref(made);
    oauth_state_unref(shared);
    loop_free(on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_asked_for_without_an_error),
        cmocka_unit_test(what_can_be_read_in_two_ways_is_refused),
        cmocka_unit_test(a_token_makes_a_principal_and_is_remembered),
        cmocka_unit_test(a_token_is_for_one_resource),
        cmocka_unit_test(of_another_issuer_or_key),
        cmocka_unit_test(everybody_needs_these_scopes),
        cmocka_unit_test(an_api_key_is_looked_up_by_its_public_part),
        cmocka_unit_test(a_revoked_key_is_seen_in_seconds),
        cmocka_unit_test(a_key_whose_time_is_over_or_that_cannot_be_looked_up),
        cmocka_unit_test(a_key_that_is_looked_up_later),
        cmocka_unit_test(a_field_counts_only_from_a_proxy),
        cmocka_unit_test(a_bound_token_needs_its_proof),
        cmocka_unit_test(dpop_alone_with_nonces),
        cmocka_unit_test(a_bound_token_where_dpop_is_off_and_one_of_a_certificate),
        cmocka_unit_test(an_opaque_token_is_asked_about),
        cmocka_unit_test(what_introspection_may_answer),
        cmocka_unit_test(a_jwt_is_verified_and_asked_about),
        cmocka_unit_test(a_bound_jwt_stays_bound_whatever_is_answered),
        cmocka_unit_test(keys_are_fetched_while_the_request_waits),
        cmocka_unit_test(a_wait_ends_in_time),
        cmocka_unit_test(who_waits_may_leave_and_so_may_the_link),
        cmocka_unit_test(an_address_that_guesses_is_turned_away),
        cmocka_unit_test(leaving_before_the_answer_is_no_way_around),
        cmocka_unit_test(who_stays_gets_the_answer_that_another_left),
        cmocka_unit_test(tokens_of_an_issuer_can_be_forgotten),
        cmocka_unit_test(guards_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
