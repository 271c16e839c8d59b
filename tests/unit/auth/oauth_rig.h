/* The client's state machine as tests drive it: what it asks for next, what came back, what is sent. The
 * hosts: h is the resource, a and b are authorization servers, i is an identity provider. */
#ifndef TESTS_OAUTH_RIG_H
#define TESTS_OAUTH_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "auth/oauth_client.h"
#include "auth/oauth_form.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "support/failing_memory.h"
#include "wire/base64.h"

enum { ROOM = 1 << 20, NOW = 1000000 };

#define RESOURCE                                                                                   \
    "{\"resource\":\"https://h/mcp\",\"authorization_servers\":[\"https://a\"],"                   \
    "\"scopes_supported\":[\"read\"]}"
#define SERVER_OF(host, more)                                                                      \
    "{\"issuer\":\"https://" host "\",\"authorization_endpoint\":\"https://" host                  \
    "/authorize?x=1\",\"token_endpoint\":\"https://" host                                          \
    "/token\",\"response_types_supported\":[\"code\"],\"code_challenge_methods_supported\":["      \
    "\"S256\"]" more "}"
#define PUBLIC ",\"token_endpoint_auth_methods_supported\":[\"none\"]"
#define REGISTERS(host) ",\"registration_endpoint\":\"https://" host "/register\""
#define SERVER SERVER_OF("a", PUBLIC REGISTERS("a"))
#define TOKEN "{\"access_token\":\"at-1\",\"token_type\":\"bearer\",\"expires_in\":3600"
#define CLIENT "{\"client_id\":\"c-1\"}"

typedef struct walk {
    oauth_client *client;
    oauth_action action;
    oauth_try one;
    uint64_t now;
    char shown[65536]; /* of the request: body, fields */
} walk;

static inline oauth_settings code_settings(void)
{
    return (oauth_settings){.grant = OAUTH_CODE, .url = STR("https://h/mcp")};
}

static inline void walk_init(walk *self, const oauth_settings *settings)
{
    bay_diag diag = {0};
    *self = (walk){.now = NOW};
    if (oauth_client_new(settings, &self->client, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
}

static inline void walk_fini(walk *self)
{
    oauth_client_free(self->client);
}

#define needs(self, need) needs_at(self, need, __LINE__)
static inline void needs_at(walk *self, oauth_need need, int line)
{
    assert_int_equal(oauth_client_next(self->client, self->now, &self->action), BAY_OK);
    if (self->action.need != need) {
        fail_msg("line %d: need %d instead of %d: %s", line, (int)self->action.need, (int)need,
                 oauth_client_fault(self->client)->text);
    }
}

/* The next request is that one. */
#define asks(self, url) asks_at(self, url, __LINE__)
static inline void asks_at(walk *self, const char *url, int line)
{
    needs_at(self, OAUTH_REQUEST, line);
    if (!str_eq(self->action.url, str_of(url))) {
        fail_msg("line %d: %.*s instead of %s", line, BAY_STR(self->action.url), url);
    }
    int len = snprintf(self->shown, sizeof(self->shown), "%.*s", BAY_STR(self->action.body));
    for (size_t i = 0; i < self->action.field_count; i++) {
        len +=
            snprintf(self->shown + len, sizeof(self->shown) - (size_t)len, "\n%.*s: %.*s",
                     BAY_STR(self->action.fields[i].name), BAY_STR(self->action.fields[i].value));
    }
}

static inline void answer(walk *self, int status, const char *body)
{
    oauth_client_answered(self->client, status, (bay_str){"", 0}, str_of(body), self->now);
}

#define has(self, text) has_at(self, text, __LINE__)
static inline void has_at(const walk *self, const char *text, int line)
{
    if (strstr(self->shown, text) == NULL) {
        fail_msg("line %d: no \"%s\" in \"%s\"", line, text, self->shown);
    }
}

static inline void lacks(const walk *self, const char *text)
{
    if (strstr(self->shown, text) != NULL) {
        fail_msg("\"%s\" in \"%s\"", text, self->shown);
    }
}

/* The reply to a request that was made with what there is. */
static inline oauth_verdict replied(walk *self, int status, const char *challenge)
{
    buf authorization, proof;
    const http_field field = {STR("WWW-Authenticate"), str_of(challenge)};
    buf_init(&authorization, ROOM);
    buf_init(&proof, ROOM);
    assert_int_equal(oauth_client_authorize(self->client, &self->one, STR("POST"),
                                            STR("https://h/mcp"), self->now, &authorization,
                                            &proof),
                     BAY_OK);
    buf_fini(&authorization);
    buf_fini(&proof);
    return oauth_client_replied(self->client, &self->one, status, &field, 1, self->now);
}

static inline void sends(walk *self, const char *authorization)
{
    buf out, proof;
    needs(self, OAUTH_GO);
    buf_init(&out, ROOM);
    buf_init(&proof, ROOM);
    assert_int_equal(oauth_client_authorize(self->client, &self->one, STR("POST"),
                                            STR("https://h/mcp"), self->now, &out, &proof),
                     BAY_OK);
    assert_true(str_eq(buf_view(&out), str_of(authorization)));
    buf_fini(&out);
    buf_fini(&proof);
}

#define fails(self, text) fails_at(self, text, __LINE__)
static inline void fails_at(walk *self, const char *text, int line)
{
    needs_at(self, OAUTH_FAILED, line);
    const char *why = oauth_client_fault(self->client)->text;
    if (strstr(why, text) == NULL) {
        fail_msg("line %d: \"%s\" does not say \"%s\"", line, why, text);
    }
}

/* A parameter of the URL that the person is shown. */
static inline bay_str shown_param(walk *self, arena *memory, const char *name)
{
    oauth_form form;
    bay_str url = self->action.url;
    bay_str query = str_from(url, str_find(url, '?') + 1);
    assert_int_equal(oauth_form_read(query, memory, &form), BAY_OK);
    return oauth_form_get(&form, str_of(name));
}

static inline bay_err redirect(walk *self, const char *format)
{
    arena memory;
    char query[4096];
    arena_init(&memory, ROOM);
    needs(self, OAUTH_BROWSER);
    bay_str state = shown_param(self, &memory, "state");
    snprintf(query, sizeof(query), format, BAY_STR(state));
    arena_fini(&memory);
    return oauth_client_redirected(self->client, str_of(query), self->now);
}

/* From a 401 to the browser, by registration. */
static inline void to_browser(walk *self, const char *challenge, const char *server)
{
    assert_int_equal(replied(self, 401, challenge), OAUTH_AGAIN);
    asks(self, "https://h/.well-known/oauth-protected-resource/mcp");
    answer(self, 200, RESOURCE);
    asks(self, "https://a/.well-known/oauth-authorization-server");
    answer(self, 200, server);
    needs(self, OAUTH_LISTEN);
    oauth_client_listens(self->client, STR("http://127.0.0.1:7/callback"), self->now);
    asks(self, "https://a/register");
    has(self, "\"application_type\":\"native\"");
    has(self, "\"grant_types\":[\"authorization_code\",\"refresh_token\"]");
    answer(self, 201, CLIENT);
    needs(self, OAUTH_BROWSER);
}

static inline void to_token(walk *self)
{
    to_browser(self, "Bearer", SERVER);
    assert_int_equal(redirect(self, "code=code-k-1&state=%.*s"), BAY_OK);
    asks(self, "https://a/token");
}

static inline void to_ready(walk *self, const char *token)
{
    to_token(self);
    answer(self, 200, token);
    needs(self, OAUTH_GO);
}

#endif
