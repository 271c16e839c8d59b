/* Callers of a gateway with `auth`: tokens of an issuer whose keys are in a file, and calls with them. */
#ifndef SUPPORT_TOKEN_CALLERS_H
#define SUPPORT_TOKEN_CALLERS_H

#include "support/gateway_rig.h"
#include "unit/auth/jose_rig.h"

#define CALLERS_ISSUER "https://issuer.example"
/* Of a configuration; its argument is callers_keys. */
#define CALLERS_AUTH                                                                               \
    "'auth':{'issuers':{'acme':{'url':'" CALLERS_ISSUER "','keys':'%s','audience':['gateway']}}},"

static char callers_keys[64];

static inline void callers_begin(void)
{
    (void)snprintf(callers_keys, sizeof(callers_keys), "/tmp/bay-callers.%d", (int)getpid());
    FILE *file = fopen(callers_keys, "w");
    assert_non_null(file);
    fputs("{\"keys\":[{\"kid\":\"k1\",\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X
          "\",\"y\":\"" RIG_EC_Y "\"}]}",
          file);
    fclose(file);
}

static inline void callers_end(void)
{
    unlink(callers_keys);
}

/* A token of that issuer and user; the same for the same arguments, but for its signature. */
static inline const char *token_by(const char *issuer, const char *user, const char *more)
{
    static char texts[8][2048];
    static unsigned next;
    char *text = texts[next++ % ARRAY_LEN(texts)];
    char payload[600];
    EVP_PKEY *key = rig_ec_key();
    buf token;
    long long now = (long long)(loop_time_ms() / 1000);
    buf_init(&token, RIG_TEXT);
    (void)snprintf(payload, sizeof(payload),
                   "{\"iss\":\"%s\",\"sub\":\"%s\",\"aud\":\"gateway\",\"iat\":%lld,"
                   "\"exp\":%lld,\"client_id\":\"c1\",\"jti\":\"1\"%s}",
                   issuer, user, now - 10, now + 600, more);
    rig_token(key, "{\"alg\":\"ES256\",\"kid\":\"k1\",\"typ\":\"at+jwt\"}", payload, &token);
    (void)snprintf(text, sizeof(texts[0]), "%.*s", (int)token.len, token.at);
    buf_fini(&token);
    EVP_PKEY_free(key);
    return text;
}

static inline const char *token_of(const char *user, const char *more)
{
    return token_by(CALLERS_ISSUER, user, more);
}

/* A call of s.who: the status; `part` must be in the reply, and nothing secret. */
static inline int call_at(const gateway_rig *to, const char *path, const char *token,
                          const char *part)
{
    client one;
    char fields[4096];
    client_open(&one, to);
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                   "Mcp-Name: s.who\r\n%s%s%s",
                   token != NULL ? "Authorization: Bearer " : "", token != NULL ? token : "",
                   token != NULL ? "\r\n" : "");
    client_post(&one, path, fields,
                "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'s.who'," RIG_META
                "}}}");
    int status = client_reply(&one);
    if (client_find(&one, part) == NULL) {
        print_error("wanted %s\ncame: %.*s\n", part, (int)one.got.len, one.got.at);
    }
    assert_non_null(client_find(&one, part));
    assert_null(client_find(&one, "secret-"));
    assert_null(client_find(&one, "eyJ"));
    client_close(&one);
    return status;
}

static inline void call_as(const gateway_rig *to, const char *token, const char *part)
{
    assert_int_equal(call_at(to, "/mcp", token, part), 200);
}

#endif
