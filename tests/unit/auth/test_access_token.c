/* Access tokens: everything that must keep one from being believed, though a genuine key signed it;
 * and whom a good one makes of its bearer. */
#include "jose_rig.h"

#include "auth/access_token.h"
#include "base/check.h"
#include "support/failing_memory.h"

enum { NOW_S = 1000000 };
#define GOOD                                                                                       \
    "{\"iss\":\"https://i.example\",\"sub\":\"ann\",\"aud\":\"https://gw/mcp\",\"exp\":1000010}"
#define WITH(more)                                                                                 \
    "{\"iss\":\"https://i.example\",\"sub\":\"ann\",\"aud\":\"https://gw/mcp\"," more "}"
#define UNTIL "\"exp\":1000010"

static const bay_str audiences[] = {STR_INIT("https://gw/mcp"), STR_INIT("api://gw")};

static const access_rules strict = {
    .issuer = STR_INIT("https://i.example"),
    .audiences = audiences,
    .audience_count = 2,
    .now_ms = (uint64_t)NOW_S * 1000,
    .skew_ms = 5000,
};

typedef struct court {
    EVP_PKEY *key;
    jose_keys *keys;
    buf token;
    arena memory;
    access_claims claims;
    bay_diag diag;
} court;

static void court_init(court *self)
{
    *self = (court){.key = rig_ec_key(), .keys = rig_keys(RIG_EC_JWK)};
    buf_init(&self->token, RIG_TEXT);
    arena_init(&self->memory, RIG_TEXT);
}

static void court_fini(court *self)
{
    arena_fini(&self->memory);
    buf_fini(&self->token);
    jose_keys_free(self->keys);
    EVP_PKEY_free(self->key);
}

static bay_err judge(court *self, bay_str text, const access_rules *rules)
{
    access_token token;
    arena_reset(&self->memory);
    self->diag = (bay_diag){.code = BAY_OK};
    bay_err err = access_token_read(text, &self->memory, &token, &self->diag);
    if (err == BAY_OK) {
        err = access_token_check(&token, rules, &self->memory, &self->claims, &self->diag);
    }
    if (err == BAY_OK) {
        err = access_token_verify(&token, self->keys, &self->diag);
    }
    if (err != BAY_OK) {
        assert_int_equal(self->diag.code, err);
        assert_null(strstr(self->diag.text, "ann"));
    }
    return err;
}

static bay_err judge_claims(court *self, const char *claims, const access_rules *rules)
{
    rig_token(self->key, "{\"alg\":\"ES256\"}", claims, &self->token);
    return judge(self, buf_view(&self->token), rules);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void what_is_no_token(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    static const char *const texts[] = {"", ".", "a", "a.b", "..", "a.b.c", "e30.e30.",
                                        "eyJhbGciOiJub25lIn0.e30.",
                                        /* encrypted, and more than that */
                                        "a.b.c.d", "a.b.c.d.e"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_int_equal(judge(&self, str_of(texts[i]), &strict), BAY_ERR_DENIED);
    }
    char *endless = malloc(ACCESS_TOKEN_BYTES + 1);
    memset(endless, 'a', ACCESS_TOKEN_BYTES + 1);
    assert_int_equal(judge(&self, (bay_str){endless, ACCESS_TOKEN_BYTES + 1}, &strict),
                     BAY_ERR_DENIED);
    free(endless);
    assert_true(access_token_is_jwt(STR("eyJ.e30.x")));
    assert_false(access_token_is_jwt(STR("eyJ.e30")));
    assert_false(access_token_is_jwt(STR("opaque")));
    assert_false(access_token_is_jwt(STR("v2.local.x")));
    assert_false(access_token_is_jwt(STR("")));
    court_fini(&self);
}

static void headers_that_are_refused(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    static const char *const headers[] = {
        "{\"alg\":\"none\"}",
        "{\"alg\":\"None\"}",
        "{\"alg\":\"nOnE\"}",
        "{\"alg\":\"\"}",
        "{}",
        "{\"alg\":\"HS256\"}",
        "{\"alg\":\"RS256\"}",
        "{\"alg\":\"ES384\"}",
        "{\"alg\":\"EdDSA\"}",
        "{\"alg\":\"es256\"}",
        "{\"alg\":[\"ES256\"]}",
        "{\"alg\":\"ES256\",\"crit\":[\"x\"],\"x\":1}",
        "{\"alg\":\"ES256\",\"b64\":false,\"crit\":[\"b64\"]}",
        "{\"alg\":\"ES256\",\"b64\":false}",
        "{\"alg\":\"ES256\",\"typ\":\"JOSE\"}",
        "{\"alg\":\"ES256\",\"typ\":\"dpop+jwt\"}",
        "{\"alg\":\"ES256\",\"typ\":\"oauth-id-jag+jwt\"}",
        "{\"alg\":\"ES256\",\"typ\":\"logout+jwt\"}",
        "{\"alg\":\"ES256\",\"typ\":\"token-introspection+jwt\"}",
        "{\"alg\":\"ES256\",\"typ\":1}",
        "{\"alg\":\"ES256\",\"kid\":7}",
        "{\"alg\":\"ES256\",\"typ\":\"JWT\",\"typ\":\"JWT\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        rig_token(self.key, headers[i], GOOD, &self.token);
        if (judge(&self, buf_view(&self.token), &strict) == BAY_OK) {
            fail_msg("believed: %s", headers[i]);
        }
    }
    rig_token(NULL, "{\"alg\":\"none\"}", GOOD, &self.token);
    assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_ERR_DENIED);
    rig_token(NULL, "{\"alg\":\"ES256\"}", GOOD, &self.token);
    assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_ERR_DENIED);
    EVP_PKEY *other = EVP_EC_gen("P-256");
    rig_token(other, "{\"alg\":\"ES256\"}", GOOD, &self.token);
    assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_ERR_DENIED);
    EVP_PKEY_free(other);
    court_fini(&self);
}

/* The key in the header, and where it says that its key is, are the forger's. */
static void a_header_chooses_no_key(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    EVP_PKEY *forger = EVP_EC_gen("P-256");
    static const char *const headers[] = {
        "{\"alg\":\"ES256\",\"jwk\":" RIG_EC_JWK "}",
        "{\"alg\":\"ES256\",\"jku\":\"https://evil.example/keys\"}",
        "{\"alg\":\"ES256\",\"x5u\":\"https://evil.example/chain\"}",
        "{\"alg\":\"ES256\",\"x5c\":[\"MIIB\"]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        rig_token(forger, headers[i], GOOD, &self.token);
        assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_ERR_DENIED);
        /* they change nothing of a token that a known key signed */
        rig_token(self.key, headers[i], GOOD, &self.token);
        assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_OK);
    }
    EVP_PKEY_free(forger);
    court_fini(&self);
}

static void which_key_is_meant(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    jose_keys *one = self.keys;
    EVP_PKEY *other = EVP_EC_gen("P-256");
    /* two of the algorithm: which is not said */
    self.keys =
        rig_keys("{\"keys\":[{\"kid\":\"a\",\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X
                 "\",\"y\":\"" RIG_EC_Y "\"}," RIG_EC_JWK "," RIG_RSA_JWK "]}");
    assert_int_equal(judge_claims(&self, GOOD, &strict), BAY_ERR_DENIED);
    rig_token(self.key, "{\"alg\":\"ES256\",\"kid\":\"a\"}", GOOD, &self.token);
    assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_OK);
    /* names that no key has: long, odd, or like another's */
    static const char *const names[] = {"b",        "A",        "a ", "../../dev/null",
                                        "' OR 1=1", "\\u0000a", ""};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char header[80];
        snprintf(header, sizeof(header), "{\"alg\":\"ES256\",\"kid\":\"%s\"}", names[i]);
        rig_token(self.key, header, GOOD, &self.token);
        bay_err err = judge(&self, buf_view(&self.token), &strict);
        assert_true(err == BAY_ERR_NOT_FOUND || (names[i][0] == '\0' && err == BAY_ERR_DENIED));
    }
    /* one key of the algorithm beside another's: no name is needed */
    jose_keys_free(self.keys);
    self.keys = rig_keys("{\"keys\":[" RIG_RSA_JWK "," RIG_EC_JWK "]}");
    assert_int_equal(judge_claims(&self, GOOD, &strict), BAY_OK);
    jose_keys_free(self.keys);
    self.keys = one;
    EVP_PKEY_free(other);
    court_fini(&self);
}

static void claims_that_are_refused(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    static const char *const denied[] = {
        WITH("\"x\":1"),
        WITH("\"exp\":\"1000010\""),
        WITH("\"exp\":null"),
        WITH("\"exp\":-1"),
        WITH("\"exp\":1e300"),
        WITH("\"exp\":1e400"),
        WITH("\"exp\":1000010.5"),
        WITH("\"exp\":999995"),
        WITH("\"exp\":999994"),
        WITH("\"exp\":0"),
        WITH(UNTIL ",\"nbf\":1000006"),
        WITH(UNTIL ",\"nbf\":\"0\""),
        WITH(UNTIL ",\"iat\":1000006"),
        WITH(UNTIL ",\"iat\":{}"),
        WITH(UNTIL ",\"scope\":1"),
        WITH(UNTIL ",\"scope\":\"a\\nb\""),
        WITH(UNTIL ",\"scope\":\"a\\u00e9\""),
        WITH(UNTIL ",\"scp\":[1]"),
        WITH(UNTIL ",\"scp\":[\"a b\"]"),
        WITH(UNTIL ",\"scp\":[\"\"]"),
        WITH(UNTIL ",\"scp\":{}"),
        /* other tokens of the same issuer */
        WITH(UNTIL ",\"nonce\":\"n\""),
        WITH(UNTIL ",\"at_hash\":\"h\""),
        WITH(UNTIL ",\"c_hash\":\"h\""),
        WITH(UNTIL ",\"events\":{}"),
        WITH(UNTIL ",\"typ\":\"Refresh\""),
        WITH(UNTIL ",\"typ\":\"ID\""),
        WITH(UNTIL ",\"token_use\":\"id\""),
        /* bound to what nobody here can check */
        WITH(UNTIL ",\"cnf\":{}"),
        WITH(UNTIL ",\"cnf\":\"x\""),
        WITH(UNTIL ",\"cnf\":{\"jkt\":1}"),
        WITH(UNTIL ",\"cnf\":{\"jkt\":\"\"}"),
        WITH(UNTIL ",\"cnf\":{\"kid\":\"k\"}"),
        WITH(UNTIL ",\"cnf\":{\"jkt\":\"t\",\"jwe\":\"x\"}"),
        "{\"iss\":\"https://i.example\",\"sub\":\"ann\"," UNTIL "}",
#define FOR(audience)                                                                              \
    "{\"iss\":\"https://i.example\",\"sub\":\"ann\",\"aud\":" audience "," UNTIL "}"
        FOR("\"https://gw/other\""),
        FOR("\"https://gw/mc\""),
        FOR("\"https://gw/mcp/\""),
        FOR("\"https://gw/mcp2\""),
        FOR("\"https://gw\""),
        FOR("\"HTTPS://gw/mcp\""),
        FOR("\"\""),
        FOR("[]"),
        FOR("[\"you\",[\"https://gw/mcp\"]]"),
        FOR("{\"https://gw/mcp\":\"https://gw/mcp\"}"),
        FOR("null"),
        "{\"sub\":\"ann\",\"aud\":\"https://gw/mcp\"," UNTIL "}",
#define BY(issuer) "{\"iss\":" issuer ",\"sub\":\"ann\",\"aud\":\"https://gw/mcp\"," UNTIL "}"
        BY("\"https://i.example/\""),
        BY("\"https://I.example\""),
        BY("[\"https://i.example\"]"),
        BY("\"https:\\/\\/i.example\""),
#define OF(subject)                                                                                \
    "{\"iss\":\"https://i.example\"," subject "\"aud\":\"https://gw/mcp\"," UNTIL "}"
        OF("\"sub\":1,"),
        OF("\"sub\":\"a\\u0000b\","),
        OF("\"sub\":\"\","),
        OF(""),
        /* no object, or one that reads in two ways */
        "",
        "[]",
        "x",
        WITH(UNTIL "," UNTIL),
        WITH(UNTIL ",\"aud\":\"you\""),
        WITH(UNTIL ",\"x\":{\"a\":1,\"a\":1}"),
        WITH(UNTIL ",\"x\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]"),
    };
    for (size_t i = 0; i < ARRAY_LEN(denied); i++) {
        if (judge_claims(&self, denied[i], &strict) != BAY_ERR_DENIED) {
            fail_msg("believed: %s", denied[i]);
        }
    }
    /* Who expects no audience takes no token at all. */
    access_rules loose = strict;
    loose.audience_count = 0;
    assert_int_equal(judge_claims(&self, GOOD, &loose), BAY_ERR_DENIED);
    buf many;
    buf_init(&many, RIG_TEXT);
    buf_lit(&many, "{\"iss\":\"https://i.example\",\"sub\":\"a\"," UNTIL ",\"aud\":[\"x\"");
    for (int i = 1; i < ACCESS_TOKEN_AUDIENCES; i++) {
        buf_lit(&many, ",\"x\"");
    }
    buf_lit(&many, ",\"https://gw/mcp\"]}");
    buf_char(&many, '\0');
    assert_int_equal(judge_claims(&self, many.at, &strict), BAY_ERR_DENIED);
    buf_fini(&many);
    court_fini(&self);
}

static void what_an_issuer_promises(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    access_rules rules = strict;
    /* only what it signs with */
    rules.algorithms = access_algorithm(STR("RS256")) | access_algorithm(STR("PS256"));
    assert_int_equal(judge_claims(&self, GOOD, &rules), BAY_ERR_DENIED);
    rules.algorithms |= access_algorithm(STR("ES256"));
    assert_int_equal(judge_claims(&self, GOOD, &rules), BAY_OK);
    assert_int_equal(access_algorithm(STR("HS256")), 0);
    assert_int_equal(access_algorithm(STR("none")), 0);
    /* clients that may come */
    const bay_str clients[] = {STR("web"), STR("cli")};
    rules.clients = clients;
    rules.client_count = 2;
    assert_int_equal(judge_claims(&self, GOOD, &rules), BAY_ERR_DENIED);
    assert_int_equal(judge_claims(&self, WITH(UNTIL ",\"azp\":\"other\""), &rules), BAY_ERR_DENIED);
    assert_int_equal(judge_claims(&self, WITH(UNTIL ",\"azp\":\"cli\""), &rules), BAY_OK);
    assert_int_equal(
        judge_claims(&self, WITH(UNTIL ",\"azp\":\"cli\",\"client_id\":\"other\""), &rules),
        BAY_ERR_DENIED);
    /* for how long */
    rules = strict;
    rules.lifetime_ms = 60000;
    assert_int_equal(judge_claims(&self, GOOD, &rules), BAY_ERR_DENIED);
    assert_int_equal(judge_claims(&self, WITH(UNTIL ",\"iat\":999900"), &rules), BAY_ERR_DENIED);
    assert_int_equal(judge_claims(&self, WITH(UNTIL ",\"iat\":999951"), &rules), BAY_OK);
    /* RFC 9068 */
    rules = strict;
    rules.is_typed = true;
    static const char whole[] = WITH(UNTIL ",\"iat\":1,\"jti\":\"j\",\"client_id\":\"c\"");
    assert_int_equal(judge_claims(&self, whole, &rules), BAY_ERR_DENIED);
    rig_token(self.key, "{\"alg\":\"ES256\",\"typ\":\"AT+jwt\"}", whole, &self.token);
    assert_int_equal(judge(&self, buf_view(&self.token), &rules), BAY_OK);
    rig_token(self.key, "{\"alg\":\"ES256\",\"typ\":\"at+jwt\"}", GOOD, &self.token);
    assert_int_equal(judge(&self, buf_view(&self.token), &rules), BAY_ERR_DENIED);
    court_fini(&self);
}

static void every_byte_counts(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    assert_int_equal(judge_claims(&self, GOOD, &strict), BAY_OK);
    for (size_t i = 0; i < self.token.len; i++) { /* also the signature's last bits */
        for (int bit = 0; bit < 8; bit++) {
            self.token.at[i] ^= (char)(1 << bit);
            assert_int_not_equal(judge(&self, buf_view(&self.token), &strict), BAY_OK);
            self.token.at[i] ^= (char)(1 << bit);
        }
    }
    for (size_t len = 0; len < self.token.len; len++) {
        assert_int_not_equal(judge(&self, str_head(buf_view(&self.token), len), &strict), BAY_OK);
    }
    static const char *const behind[] = {"=", " ", "\n", "A", ".", "AAAA"};
    for (size_t i = 0; i < ARRAY_LEN(behind); i++) {
        buf longer;
        buf_init(&longer, RIG_TEXT);
        buf_str(&longer, buf_view(&self.token));
        buf_str(&longer, str_of(behind[i]));
        assert_int_not_equal(judge(&self, buf_view(&longer), &strict), BAY_OK);
        buf_fini(&longer);
    }
    court_fini(&self);
}

/* ---- what is believed ------------------------------------------------------------------------ */

static void tokens_that_are_believed(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    assert_int_equal(judge_claims(&self, GOOD, &strict), BAY_OK);
    assert_true(str_eq(self.claims.who.subject, STR("ann")));
    assert_true(str_eq(self.claims.who.issuer, STR("https://i.example")));
    assert_int_equal(self.claims.who.scopes.len, 0);
    assert_int_equal(self.claims.who.expires_at_ms, 1000010000);
    assert_true(json_is(json_get(self.claims.all, STR("exp")), JSON_NUMBER));
    /* within the skew, at both ends */
    assert_int_equal(judge_claims(&self, WITH("\"exp\":999996"), &strict), BAY_OK);
    assert_int_equal(judge_claims(&self, WITH(UNTIL ",\"nbf\":1000005,\"iat\":1000004.5"), &strict),
                     BAY_OK);
    static const char *const scoped[] = {
        WITH(UNTIL ",\"scope\":\"a b\""), WITH(UNTIL ",\"scp\":[\"a\",\"b\"]"),
        WITH(UNTIL ",\"scope\":[\"a\",\"b\"]"), WITH(UNTIL ",\"scp\":\"a b\"")};
    for (size_t i = 0; i < ARRAY_LEN(scoped); i++) {
        assert_int_equal(judge_claims(&self, scoped[i], &strict), BAY_OK);
        assert_true(str_eq(self.claims.who.scopes, STR("a b")));
    }
    assert_int_equal(judge_claims(&self, FOR("[\"you\",\"api://gw\"]"), &strict), BAY_OK);
    /* a client's own token, without a subject */
    assert_int_equal(judge_claims(&self, OF("\"client_id\":\"ann\","), &strict), BAY_OK);
    assert_true(str_eq(self.claims.who.subject, STR("client_id:ann")));
    assert_true(str_eq(self.claims.who.client, STR("ann")));
    /* bound tokens: whoever brings one proves more */
    assert_int_equal(
        judge_claims(&self, WITH(UNTIL ",\"cnf\":{\"jkt\":\"J\",\"x5t#S256\":\"X\"}"), &strict),
        BAY_OK);
    assert_true(str_eq(self.claims.dpop_thumbprint, STR("J")));
    assert_true(str_eq(self.claims.certificate_thumbprint, STR("X")));
    static const char *const headers[] = {"{\"alg\":\"ES256\",\"typ\":\"JWT\"}",
                                          "{\"typ\":\"application/at+JWT\",\"alg\":\"ES256\"}"};
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        rig_token(self.key, headers[i], GOOD, &self.token);
        assert_int_equal(judge(&self, buf_view(&self.token), &strict), BAY_OK);
    }
    court_fini(&self);
}

static void assert_scopes(const char *claims, const access_implied *implied, size_t count,
                          const char *expected)
{
    court self;
    const auth_principal *made = NULL;
    court_init(&self);
    assert_int_equal(judge_claims(&self, claims, &strict), BAY_OK);
    assert_int_equal(access_claims_principal(&self.claims, implied, count, &made, &self.diag),
                     BAY_OK);
    assert_true(str_eq(principal_scopes(made), str_of(expected)));
    principal_unref(made);
    court_fini(&self);
}

static void scopes_include_others(void **state)
{
    (void)state;
    const access_implied implied[] = {{STR("admin"), STR("write audit")},
                                      {STR("write"), STR("read")},
                                      {STR("loop"), STR("pool")},
                                      {STR("pool"), STR("loop")}};
    size_t count = ARRAY_LEN(implied);
    assert_scopes(WITH(UNTIL ",\"scope\":\"admin\""), implied, count, "admin write audit read");
    assert_scopes(WITH(UNTIL ",\"scope\":\"read write\""), implied, count, "read write");
    assert_scopes(WITH(UNTIL ",\"scope\":\"loop\""), implied, count, "loop pool");
    assert_scopes(WITH(UNTIL ",\"scope\":\"administrator\""), implied, count, "administrator");
    assert_scopes(WITH(UNTIL ",\"scope\":\"admin\""), NULL, 0, "admin");
    assert_scopes(GOOD, implied, count, "");
}

static void who_acts_for_whom(void **state)
{
    (void)state;
    court self;
    const auth_principal *made = NULL;
    court_init(&self);
    assert_int_equal(
        judge_claims(&self,
                     WITH(UNTIL ",\"groups\":[\"ops\"],\"act\":{\"sub\":\"agent\",\"act\":{"
                                "\"sub\":\"before\"}}"),
                     &strict),
        BAY_OK);
    assert_int_equal(access_claims_principal(&self.claims, NULL, 0, &made, &self.diag), BAY_OK);
    assert_true(str_eq(principal_subject(made), STR("ann")));
    assert_true(str_eq(principal_subject(principal_actor(made)), STR("agent")));
    assert_null(principal_actor(principal_actor(made)));
    assert_true(json_str_eq(principal_claim(made, STR("/groups/0")), STR("ops")));
    principal_unref(made);
    static const char *const broken[] = {
        WITH(UNTIL ",\"act\":\"agent\""), WITH(UNTIL ",\"act\":{}"),
        WITH(UNTIL ",\"act\":{\"sub\":7}"), WITH(UNTIL ",\"act\":{\"sub\":\"a\",\"iss\":7}")};
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        made = NULL;
        assert_int_equal(judge_claims(&self, broken[i], &strict), BAY_OK);
        assert_int_equal(access_claims_principal(&self.claims, NULL, 0, &made, &self.diag),
                         BAY_ERR_DENIED);
        assert_null(made);
    }
    court_fini(&self);
}

/* ---- introspection --------------------------------------------------------------------------- */

static bay_err introspected(const char *text, access_claims *out, arena *memory)
{
    json_doc doc;
    bay_diag diag = {0};
    assert_int_equal(json_parse(&doc, str_of(text), NULL, memory, NULL), BAY_OK);
    json_doc *kept = arena_alloc(memory, sizeof(*kept));
    *kept = doc;
    return access_introspected_check(json_root(kept), &strict, memory, out, &diag);
}

static void what_an_issuer_says_of_a_token(void **state)
{
    (void)state;
#define SAID(more) "{\"active\":true,\"sub\":\"ann\",\"aud\":\"https://gw/mcp\"," UNTIL more "}"
    static const char *const denied[] = {
        "{}",
        "[]",
        "{\"active\":false}",
        "{\"active\":\"true\",\"sub\":\"ann\",\"aud\":\"https://gw/mcp\"," UNTIL "}",
        "{\"active\":1,\"sub\":\"ann\",\"aud\":\"https://gw/mcp\"," UNTIL "}",
        "{\"active\":true,\"sub\":\"ann\"," UNTIL "}",
        "{\"active\":true,\"sub\":\"ann\",\"aud\":\"other\"," UNTIL "}",
        "{\"active\":true,\"sub\":\"ann\",\"aud\":\"https://gw/mcp\"}",
        "{\"active\":true,\"sub\":\"ann\",\"aud\":\"https://gw/mcp\",\"exp\":1}",
        "{\"active\":true,\"aud\":\"https://gw/mcp\"," UNTIL "}",
        SAID(",\"iss\":\"https://other.example\""),
        SAID(",\"token_type\":\"refresh_token\""),
        SAID(",\"cnf\":{\"x\":1}"),
    };
    access_claims claims;
    arena memory;
    arena_init(&memory, RIG_TEXT);
    for (size_t i = 0; i < ARRAY_LEN(denied); i++) {
        if (introspected(denied[i], &claims, &memory) != BAY_ERR_DENIED) {
            fail_msg("believed: %s", denied[i]);
        }
    }
    assert_int_equal(introspected(SAID(",\"scope\":\"a\",\"client_id\":\"c\",\"token_type\":"
                                       "\"Bearer\""),
                                  &claims, &memory),
                     BAY_OK);
    assert_true(str_eq(claims.who.issuer, STR("https://i.example")));
    assert_true(str_eq(claims.who.scopes, STR("a")));
    assert_true(str_eq(claims.who.client, STR("c")));
    arena_fini(&memory);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void without_memory(void **state)
{
    (void)state;
    court self;
    court_init(&self);
    rig_token(self.key, "{\"alg\":\"ES256\"}",
              WITH(UNTIL ",\"scp\":[\"a\",\"b\"],\"act\":{\"sub\":\"x\"}"), &self.token);
    const access_implied implied = {STR("a"), STR("c")};
    for (size_t at = 0; failing_memory_start(at); at++) {
        arena memory;
        access_token token;
        access_claims claims;
        const auth_principal *made = NULL;
        arena_init(&memory, RIG_TEXT);
        bay_err err = access_token_read(buf_view(&self.token), &memory, &token, NULL);
        err = err == BAY_OK ? access_token_check(&token, &strict, &memory, &claims, NULL) : err;
        err = err == BAY_OK ? access_token_verify(&token, self.keys, NULL) : err;
        err = err == BAY_OK ? access_claims_principal(&claims, &implied, 1, &made, NULL) : err;
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        principal_unref(made);
        arena_fini(&memory);
        failing_memory_check();
    }
    court_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_token),
        cmocka_unit_test(headers_that_are_refused),
        cmocka_unit_test(a_header_chooses_no_key),
        cmocka_unit_test(which_key_is_meant),
        cmocka_unit_test(claims_that_are_refused),
        cmocka_unit_test(what_an_issuer_promises),
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(tokens_that_are_believed),
        cmocka_unit_test(scopes_include_others),
        cmocka_unit_test(who_acts_for_whom),
        cmocka_unit_test(what_an_issuer_says_of_a_token),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
