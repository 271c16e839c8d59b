/* An OpenID provider, small, real, and on a thread of its own: it logs in whoever comes as "ann", with
 * code, PKCE and nonce, to one client ("web", with a secret), and signs ID tokens with the key of
 * unit/auth/jose_rig.h. What is wrong with them is the test's to say. */
#ifndef SUPPORT_PROVIDER_H
#define SUPPORT_PROVIDER_H

#include "unit/auth/jose_rig.h" /* before what takes the word "fail" */

#include <stdatomic.h>

#include "auth/oauth_form.h"
#include "http/http_server.h"
#include "net/thread.h"

enum { PROVIDER_TEXT = 4096, PROVIDER_CODES = 64 };
#define PROVIDER_SECRET "secret-of-web"

typedef struct provider_code {
    char code[32];
    char challenge[64];
    char redirect[512];
    char nonce[128];
    char user[32];
    bool is_used;
} provider_code;

typedef struct provider {
    loop *loop;
    http_server *server;
    net_thread thread;
    char issuer[64];
    /* what is wrong, changed by the test between two logins */
    _Atomic(const char *) user;     /* NULL: ann */
    _Atomic(const char *) nonce;    /* NULL: as it was sent */
    _Atomic(const char *) audience; /* JSON; NULL: "web" */
    _Atomic(const char *) from;     /* `iss` of the ID token; NULL: the issuer */
    _Atomic(const char *) more;     /* further claims, with a comma before them */
    _Atomic(const char *) header;   /* NULL: a good one */
    _Atomic(const char *) refuses;  /* an error in place of a code */
    _Atomic(const char *) document; /* at /client.json; NULL: 404 */
    atomic_int document_status;     /* 0: 200 */
    atomic_int expires_s;           /* 0: 60 */
    atomic_bool has_no_token, is_down, is_silent;
    /* what happened */
    atomic_int requests, metadata, pages, tokens, keys, refused;
    atomic_int strangers; /* requests with a text that is none of its business ("canary") */
    char last_authorization[PROVIDER_TEXT]; /* the query of the last page */
    provider_code table[PROVIDER_CODES];
    int made;
} provider;

static inline void provider_reply(http_exchange *exchange, int status, const char *format, ...)
    BAY_PRINTF(3, 4);
static inline void provider_reply(http_exchange *exchange, int status, const char *format, ...)
{
    char text[2 * PROVIDER_TEXT];
    va_list arguments;
    const http_field type = {STR("Content-Type"), STR("application/json")};
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    http_exchange_reply(exchange, status, &type, 1, str_of(text));
}

static inline void provider_text(char *out, size_t size, bay_str text)
{
    snprintf(out, size, "%.*s", BAY_STR(text));
}

static inline void provider_authorize(provider *self, http_exchange *exchange,
                                      const oauth_form *form)
{
    char target[PROVIDER_TEXT];
    self->pages++;
    provider_text(self->last_authorization, sizeof(self->last_authorization),
                  http_exchange_query(exchange));
    provider_code *one = &self->table[self->made++ % PROVIDER_CODES];
    *one = (provider_code){.is_used = false};
    snprintf(one->code, sizeof(one->code), "secret-code-%d", self->made);
    provider_text(one->challenge, sizeof(one->challenge),
                  oauth_form_get(form, STR("code_challenge")));
    provider_text(one->redirect, sizeof(one->redirect), oauth_form_get(form, STR("redirect_uri")));
    provider_text(one->nonce, sizeof(one->nonce), oauth_form_get(form, STR("nonce")));
    snprintf(one->user, sizeof(one->user), "%s", self->user != NULL ? self->user : "ann");
    buf more;
    buf_init(&more, PROVIDER_TEXT);
    oauth_form_put(&more, 0, STR("state"), oauth_form_get(form, STR("state")));
    oauth_form_put(&more, 0, STR("iss"), str_of(self->issuer));
    if (self->refuses != NULL) {
        oauth_form_put(&more, 0, STR("error"), str_of(self->refuses));
    } else {
        oauth_form_put(&more, 0, STR("code"), str_of(one->code));
    }
    snprintf(target, sizeof(target), "%s?%.*s", one->redirect, BAY_STR(buf_view(&more)));
    buf_fini(&more);
    const http_field location = {STR("Location"), str_of(target)};
    http_exchange_reply(exchange, 302, &location, 1, STR(""));
}

static inline void provider_issue(provider *self, http_exchange *exchange, const provider_code *of)
{
    char payload[PROVIDER_TEXT], audience[256];
    buf token;
    EVP_PKEY *key = rig_ec_key();
    int64_t now = (int64_t)(loop_time_ms() / 1000);
    int expires_s = self->expires_s != 0 ? self->expires_s : 60;
    snprintf(audience, sizeof(audience), "%s", self->audience != NULL ? self->audience : "\"web\"");
    snprintf(payload, sizeof(payload),
             "{\"iss\":\"%s\",\"sub\":\"%s\",\"aud\":%s,\"iat\":%lld,\"exp\":%lld,\"nonce\":"
             "\"%s\",\"groups\":[\"ops\"]%s}",
             self->from != NULL ? self->from : self->issuer, of->user, audience, (long long)now - 1,
             (long long)now + expires_s, self->nonce != NULL ? self->nonce : of->nonce,
             self->more != NULL ? self->more : "");
    buf_init(&token, RIG_TEXT);
    rig_token(key, self->header != NULL ? self->header : "{\"alg\":\"ES256\",\"kid\":\"k1\"}",
              payload, &token);
    EVP_PKEY_free(key);
    bool is_left_out = self->has_no_token;
    provider_reply(exchange, 200,
                   "{\"access_token\":\"secret-upstream-access\",\"token_type\":\"Bearer\","
                   "\"refresh_token\":\"secret-upstream-refresh\",\"expires_in\":60%s%.*s%s}",
                   is_left_out ? "" : ",\"id_token\":\"", is_left_out ? 0 : (int)token.len,
                   token.at, is_left_out ? "" : "\"");
    buf_fini(&token);
}

static inline void provider_token(provider *self, http_exchange *exchange, const oauth_form *form)
{
    bay_str verifier = oauth_form_get(form, STR("code_verifier"));
    unsigned char digest[32];
    buf challenge;
    /* web:secret-of-web */
    bool is_web = str_eq(http_exchange_field(exchange, STR("Authorization")),
                         STR("Basic d2ViOnNlY3JldC1vZi13ZWI="));
    self->tokens++;
    EVP_Digest(verifier.at, verifier.len, digest, NULL, EVP_sha256(), NULL);
    buf_init(&challenge, 64);
    base64_encode(&challenge, (bay_str){(char *)digest, 32}, BASE64_URL);
    for (size_t i = 0; i < PROVIDER_CODES; i++) {
        provider_code *one = &self->table[i];
        if (is_web && one->code[0] != '\0' && !one->is_used &&
            str_eq(oauth_form_get(form, STR("code")), str_of(one->code)) &&
            str_eq(buf_view(&challenge), str_of(one->challenge)) &&
            str_eq(oauth_form_get(form, STR("redirect_uri")), str_of(one->redirect))) {
            one->is_used = true;
            buf_fini(&challenge);
            provider_issue(self, exchange, one);
            return;
        }
    }
    buf_fini(&challenge);
    self->refused++;
    provider_reply(exchange, 400, "{\"error\":\"invalid_grant\"}");
}

static inline void provider_metadata(provider *self, http_exchange *exchange)
{
    const char *o = self->issuer;
    self->metadata++;
    provider_reply(exchange, 200,
                   "{\"issuer\":\"%s\",\"authorization_endpoint\":\"%s/authorize\","
                   "\"token_endpoint\":\"%s/token\",\"jwks_uri\":\"%s/jwks\","
                   "\"response_types_supported\":[\"code\"],"
                   "\"authorization_response_iss_parameter_supported\":true}",
                   o, o, o, o);
}

static inline void provider_on_request(void *user, http_exchange *exchange)
{
    provider *self = user;
    arena memory;
    oauth_form form = {.count = 0};
    bay_str path = http_exchange_path(exchange);
    bay_str body = http_exchange_body(exchange);
    bool is_token = str_eq(path, STR("/token"));
    bay_str text = is_token ? body : http_exchange_query(exchange);
    size_t count = 0;
    const http_field *fields = http_exchange_fields(exchange, &count);
    for (size_t i = 0; i < count; i++) {
        bay_str value = fields[i].value;
        self->strangers += value.len > 0 && memmem(value.at, value.len, "canary", 6) != NULL;
    }
    self->strangers += text.len > 0 && memmem(text.at, text.len, "canary", 6) != NULL;
    arena_init(&memory, 1 << 20);
    self->requests++;
    if (self->is_silent) {
        /* it never answers */
    } else if (self->is_down || oauth_form_read(text, &memory, &form) != BAY_OK) {
        provider_reply(exchange, 503, "{}");
    } else if (str_eq(path, STR("/.well-known/openid-configuration"))) {
        provider_metadata(self, exchange);
    } else if (str_eq(path, STR("/jwks"))) {
        self->keys++;
        provider_reply(exchange, 200,
                       "{\"keys\":[{\"kid\":\"k1\",\"kty\":\"EC\",\"crv\":"
                       "\"P-256\",\"x\":\"" RIG_EC_X "\",\"y\":\"" RIG_EC_Y "\"}]}");
    } else if (str_eq(path, STR("/authorize"))) {
        provider_authorize(self, exchange, &form);
    } else if (str_eq(path, STR("/client.json")) && self->document != NULL) {
        provider_reply(exchange, self->document_status != 0 ? self->document_status : 200, "%s",
                       self->document);
    } else if (is_token) {
        provider_token(self, exchange, &form);
    } else {
        provider_reply(exchange, 404, "{}");
    }
    arena_fini(&memory);
}

static inline void provider_on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

static inline void provider_run(void *argument)
{
    provider *self = argument;
    loop_run(self->loop);
}

static inline void provider_start(provider *self)
{
    static const http_handler handler = {.request = provider_on_request,
                                         .closed = provider_on_closed};
    bay_diag diag = {0};
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &handler, .user = self};
    CHECK(loop_new(&self->loop) == BAY_OK);
    CHECK(http_server_new(self->loop, &options, &self->server) == BAY_OK);
    CHECK(http_server_listen(self->server, STR("127.0.0.1:0"), &diag) == BAY_OK);
    snprintf(self->issuer, sizeof(self->issuer), "http://127.0.0.1:%u",
             http_server_port(self->server));
    CHECK(net_thread_start(&self->thread, provider_run, self) == BAY_OK);
}

static inline void provider_stop(provider *self)
{
    loop_stop(self->loop);
    net_thread_join(&self->thread);
    http_server_free(self->server);
    loop_free(self->loop);
}

#endif
