/* A protected server, the authorization server of its tokens, and raw requests: all on one loop of
 * the test. The wall clock is the test's. */
#ifndef TESTS_GUARD_RIG_H
#define TESTS_GUARD_RIG_H

#include "unit/auth/jose_rig.h" /* before what takes the word "fail" */

#include "oauth/guard.h"
#include "unit/http/http_rig.h"

enum { WALL_S = 1000000, GUARD_TEXT = 16 << 10 };
#define RESOURCE "https://rs.example"
#define ISSUER "https://issuer.example"
#define SKEW_MS 5000

static uint64_t wall_ms = WALL_S * UINT64_C(1000);

static inline uint64_t test_wall(void)
{
    return wall_ms;
}

/* Who asks for a key, when it is not answered at once. */
typedef struct key_asked {
    oauth_key_done done;
    void *argument;
    int count;
} key_asked;

typedef struct guard_rig {
    rig http;               /* whose server is the resource */
    http_server *authority; /* the authorization server */
    char authority_url[64];
    oauth_state *state;
    oauth_guard *guard;
    oauth_guard_link *link;
    EVP_PKEY *key;
    bay_str bases[2];
    size_t base_count;
    bool is_part;
    bool is_by_proxy;
    const char *address;
    seal_ring *ring;
    /* what the authority does */
    int introspected;
    http_exchange *asking; /* that got no answer, the last one */
    int given_up;          /* requests to it that ended without an answer */
    int introspect_status; /* 0: no answer */
    const char *introspect_body;
    char last_form[GUARD_TEXT];
    char last_authorization[256];
    bool is_silent;
    /* API keys */
    key_asked asked;
    bool is_key_later;
    bay_err key_err;
    api_key stored;
    const char *stored_id;
    /* who waits */
    oauth_check *check;
    http_exchange *waiting;
    int waits;
    int ends; /* of those */
    buf token;
} guard_rig;

static inline void rig_answer(guard_rig *self, http_exchange *exchange, guard_verdict verdict,
                              const auth_principal *principal, const oauth_refusal *refusal)
{
    http_field fields[4];
    size_t count = 0;
    buf challenges;
    buf body;
    char retry[16];
    buf_init(&challenges, OAUTH_CHALLENGE_BYTES);
    buf_init(&body, GUARD_TEXT);
    if (verdict == GUARD_GOOD) {
        bay_str scopes = principal_scopes(principal);
        assert_false(principal_is_expired(principal, wall_ms));
        buf_printf(&body, "%s|%.*s|%.*s", principal_proof_name(principal),
                   BAY_STR(principal_subject(principal)), BAY_STR(scopes));
        http_exchange_reply(exchange, 200, NULL, 0, buf_view(&body));
    } else {
        size_t written = oauth_challenges_write(self->guard, refusal, STR(""),
                                                STR("https://rs.example/meta"), &challenges);
        const char *at = challenges.at;
        for (size_t i = 0; i < written; i++) {
            fields[count++] = (http_field){STR("WWW-Authenticate"), str_of(at)};
            at += strlen(at) + 1;
        }
        if (refusal->nonce[0] != '\0') {
            fields[count++] = (http_field){STR("DPoP-Nonce"), str_of(refusal->nonce)};
        }
        if (refusal->retry_s > 0) {
            snprintf(retry, sizeof(retry), "%u", refusal->retry_s);
            fields[count++] = (http_field){STR("Retry-After"), str_of(retry)};
        }
        assert_null(principal);
        http_exchange_reply(exchange, refusal->status, fields, count, STR("refused"));
    }
    buf_fini(&challenges);
    buf_fini(&body);
}

static inline void rig_checked(void *user, guard_verdict verdict, const auth_principal *principal,
                               const oauth_refusal *refusal)
{
    guard_rig *self = user;
    http_exchange *exchange = self->waiting;
    assert_true(verdict != GUARD_WAIT);
    self->waiting = NULL;
    self->check = NULL;
    self->ends++;
    if (exchange != NULL) {
        rig_answer(self, exchange, verdict, principal, refusal);
    }
}

static inline void rig_resource(void *user, http_exchange *exchange)
{
    guard_rig *self = user;
    const auth_principal *principal = NULL;
    oauth_refusal refusal;
    oauth_check *check = NULL;
    oauth_place place = {.bases = self->bases,
                         .base_count = self->base_count,
                         .endpoint = http_exchange_path(exchange),
                         .is_part = self->is_part,
                         .address = str_of(self->address),
                         .is_by_proxy = self->is_by_proxy,
                         .ring = self->ring};
    guard_verdict verdict =
        oauth_guard_check(self->link, exchange, &place, &principal, &refusal, &check);
    if (verdict == GUARD_WAIT) {
        self->waits++;
        self->waiting = exchange;
        self->check = check;
        oauth_check_wait(check, rig_checked, self);
        return;
    }
    rig_answer(self, exchange, verdict, principal, &refusal);
    principal_unref(principal);
}

static inline void rig_resource_closed(void *user, http_exchange *exchange, bool is_complete)
{
    guard_rig *self = user;
    (void)is_complete;
    if (exchange == self->waiting) {
        self->waiting = NULL;
        oauth_check_cancel(self->check);
        self->check = NULL;
        self->ends++;
    }
}

static const http_field rig_json = {STR_INIT("Content-Type"), STR_INIT("application/json")};

static inline void rig_authority(void *user, http_exchange *exchange)
{
    guard_rig *self = user;
    bay_str path = http_exchange_path(exchange);
    char text[1024];
    if (self->is_silent) {
        return;
    }
    if (str_eq(path, STR("/introspect"))) {
        self->introspected++;
        snprintf(self->last_form, sizeof(self->last_form), "%.*s",
                 BAY_STR(http_exchange_body(exchange)));
        snprintf(self->last_authorization, sizeof(self->last_authorization), "%.*s",
                 BAY_STR(http_exchange_field(exchange, STR("Authorization"))));
        if (self->introspect_status == 0) {
            self->asking = exchange;
            return;
        }
        http_exchange_reply(exchange, self->introspect_status, &rig_json, 1,
                            str_of(self->introspect_body));
    } else if (str_eq(path, STR("/jwks"))) {
        http_exchange_reply(exchange, 200, &rig_json, 1, STR("{\"keys\":[" RIG_EC_JWK "]}"));
    } else {
        snprintf(text, sizeof(text),
                 "{\"issuer\":\"%s\",\"jwks_uri\":\"%s/jwks\",\"introspection_endpoint\":"
                 "\"%s/introspect\"}",
                 self->authority_url, self->authority_url, self->authority_url);
        http_exchange_reply(exchange, 200, &rig_json, 1, str_of(text));
    }
}

static inline void rig_authority_closed(void *user, http_exchange *exchange, bool is_complete)
{
    guard_rig *self = user;
    (void)exchange;
    self->given_up += is_complete ? 0 : 1;
}

static const http_handler resource_handler = {.request = rig_resource,
                                              .closed = rig_resource_closed};
static const http_handler authority_handler = {.request = rig_authority,
                                               .closed = rig_authority_closed};

static inline void rig_find_key(void *user, bay_str id, oauth_key_done done, void *argument)
{
    guard_rig *self = user;
    self->asked.count++;
    if (self->is_key_later) {
        self->asked.done = done;
        self->asked.argument = argument;
        return;
    }
    bool is_there = self->stored_id != NULL && str_eq(id, str_of(self->stored_id));
    bay_err err = self->key_err != BAY_OK ? self->key_err : is_there ? BAY_OK : BAY_ERR_NOT_FOUND;
    done(argument, err, err == BAY_OK ? &self->stored : NULL);
}

static inline http_server *rig_listen(loop *on, const http_handler *handler, guard_rig *self)
{
    http_server *made = NULL;
    http_server_options options = {
        .limits = http_server_default_limits, .handler = handler, .user = self};
    assert_int_equal(http_server_new(on, &options, &made), BAY_OK);
    assert_int_equal(http_server_listen(made, STR("127.0.0.1:0"), NULL), BAY_OK);
    return made;
}

/* Both servers are there; no guard yet. */
static inline void rig_begin(guard_rig *self)
{
    oauth_state_options state = {.tokens = 64, .failures = 6, .proofs = 100, .wall = test_wall};
    *self = (guard_rig){.bases = {STR(RESOURCE), STR("http://127.0.0.1")},
                        .base_count = 1,
                        .address = "192.0.2.1",
                        .introspect_status = 200,
                        .introspect_body = "{}"};
    wall_ms = WALL_S * UINT64_C(1000);
    assert_int_equal(loop_new(&self->http.loop), BAY_OK);
    self->http.server = rig_listen(self->http.loop, &resource_handler, self);
    self->authority = rig_listen(self->http.loop, &authority_handler, self);
    snprintf(self->authority_url, sizeof(self->authority_url), "http://127.0.0.1:%u",
             http_server_port(self->authority));
    self->key = rig_ec_key();
    assert_int_equal(oauth_state_new(&state, &self->state), BAY_OK);
    assert_int_equal(seal_ring_new(&self->ring), BAY_OK);
    assert_int_equal(seal_ring_generate(self->ring), BAY_OK);
    buf_init(&self->token, RIG_TEXT);
}

/* Takes the reference to the issuer; its guard. */
static inline void rig_guard(guard_rig *self, oauth_guard_options *options,
                             oauth_guard_issuer *issuer)
{
    bay_diag diag = {.text = ""};
    options->state = self->state;
    if (issuer != NULL) {
        options->issuers = issuer;
        options->issuer_count = 1;
        issuer->skew_ms = SKEW_MS;
    }
    if (oauth_guard_new(options, &self->guard, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    if (issuer != NULL) {
        oauth_issuer_unref(issuer->issuer);
    }
    if (oauth_guard_link_new(self->http.loop, self->guard, rig_find_key, self, &self->link,
                             &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
}

/* An issuer whose keys are given: nothing is fetched. */
static inline oauth_guard_issuer rig_issuer(void)
{
    bay_diag diag = {.text = ""};
    oauth_guard_issuer made = {.issuer = NULL};
    oauth_issuer_options options = {.url = STR(ISSUER), .keys = STR("{\"keys\":[" RIG_EC_JWK "]}")};
    assert_int_equal(oauth_issuer_new(&options, &made.issuer, &diag), BAY_OK);
    return made;
}

/* The authority of the rig, found by its metadata. */
static inline oauth_guard_issuer rig_authority_issuer(guard_rig *self)
{
    bay_diag diag = {.text = ""};
    oauth_guard_issuer made = {.issuer = NULL};
    oauth_issuer_options options = {.url = str_of(self->authority_url)};
    assert_int_equal(oauth_issuer_new(&options, &made.issuer, &diag), BAY_OK);
    return made;
}

static inline void rig_end(guard_rig *self)
{
    oauth_guard_link_free(self->link);
    oauth_guard_unref(self->guard);
    oauth_state_unref(self->state);
    http_server_free(self->http.server);
    http_server_free(self->authority);
    loop_free(self->http.loop);
    seal_ring_free(self->ring);
    EVP_PKEY_free(self->key);
    buf_fini(&self->token);
}

/* A token with these claims behind iss and exp. */
static inline const char *rig_bearer(guard_rig *self, const char *issuer, const char *more)
{
    char claims[1024];
    snprintf(claims, sizeof(claims), "{\"iss\":\"%s\",\"exp\":1000100,%s}", issuer, more);
    rig_token(self->key, "{\"alg\":\"ES256\",\"typ\":\"at+jwt\"}", claims, &self->token);
    buf_char(&self->token, '\0');
    return self->token.at;
}

typedef struct answer {
    int status;
    char head[4096];
    char body[512];
} answer;

static inline answer rig_read(guard_rig *self, raw *client)
{
    answer got = {.status = 0};
    raw_until(client, &self->http, NULL);
    buf_char(&client->got, '\0');
    assert_int_equal(sscanf(client->got.at, "HTTP/1.1 %d", &got.status), 1);
    const char *body = strstr(client->got.at, "\r\n\r\n");
    assert_non_null(body);
    snprintf(got.head, sizeof(got.head), "%.*s", (int)(body + 2 - client->got.at), client->got.at);
    snprintf(got.body, sizeof(got.body), "%s", body + 4);
    raw_close(client);
    return got;
}

static inline void rig_send(guard_rig *self, raw *client, const char *target, const char *fields)
{
    static char text[GUARD_TEXT];
    snprintf(text, sizeof(text),
             "POST %s HTTP/1.1\r\nHost: rs.example\r\nConnection: close\r\nContent-Length: "
             "0\r\n%s\r\n",
             target, fields);
    raw_open(client, &self->http);
    assert_true(raw_say(client, &self->http, text));
}

static inline answer rig_ask(guard_rig *self, const char *target, const char *fields)
{
    raw client;
    rig_send(self, &client, target, fields);
    return rig_read(self, &client);
}

static inline answer rig_ask_with(guard_rig *self, const char *target, const char *scheme,
                                  const char *token, const char *more)
{
    char fields[GUARD_TEXT];
    snprintf(fields, sizeof(fields), "Authorization: %s %s\r\n%s", scheme, token, more);
    return rig_ask(self, target, fields);
}

/* With tokens of one issuer, and nothing else. */
static inline void begin_with_tokens(guard_rig *self)
{
    rig_begin(self);
    oauth_guard_options options = {.has_keys = false};
    oauth_guard_issuer issuer = rig_issuer();
    rig_guard(self, &options, &issuer);
}

#endif
