/* A protected MCP server, a protected agent and their authorization server, small, real, and on a thread
 * of its own: what a client of OAuth meets, with a count of everything it does. It registers any client, lets
 * everybody in as the user that the request's `login_hint` names (else "ann"), and checks what a
 * careful server checks: redirect URI, PKCE, resource, client, that a code and a refresh token are used
 * once. */
#ifndef SUPPORT_LOGIN_SERVER_H
#define SUPPORT_LOGIN_SERVER_H

#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "auth/oauth_form.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/str.h"
#include "http/http_server.h"
#include "net/thread.h"
#include "wire/base64.h"

enum { LOGIN_TEXT = 2048, LOGIN_CODES = 64 };

typedef struct login_code {
    char code[32];
    char challenge[64];
    char redirect[256];
    char user[32];
    bool is_used;
} login_code;

typedef struct login_server {
    loop *loop;
    http_server *server;
    net_thread thread;
    char origin[64];
    char url[96];       /* of the MCP server */
    char agent_url[96]; /* of the agent */
    /* settings, before the first request */
    int expires_s;
    bool has_device, asks_only_for_calls, wants_secret;
    const char *document;        /* the URL of the client's own description; NULL: they register */
    const char *refuses_scope;   /* what tools/call wants and nobody is granted; NULL: nothing */
    const char *agent_elsewhere; /* where the agent's card leads; NULL: here */
    const char *issuer;          /* whose tokens the server and the agent take; NULL: its own */
    const char *_Atomic secrets[4]; /* what nobody may send here; NULL: nothing */
    bool is_modern;                 /* the MCP server speaks 2026-07-28 */
    /* what happened */
    atomic_int registrations, pages, codes, refreshes, reuses, revocations, clients, exchanges;
    atomic_int calls, refused, assertions;
    atomic_int leaks;         /* requests with one of `secrets` anywhere in them */
    atomic_int sessions;      /* of the MCP server */
    atomic_int mixed;         /* requests in the session of another user */
    atomic_int strangers;     /* requests that bring a credential of somebody else ("canary") */
    atomic_int refuses_calls; /* whatever they bring: turned by the test */
    atomic_int refuses_exchanges;
    atomic_int epoch; /* tokens of earlier epochs are refused: turned by the test */
    /* its own */
    login_code table[LOGIN_CODES];
    int made, refresh_number, device_polls;
} login_server;

static inline void login_reply(http_exchange *exchange, int status, const char *format, ...)
    BAY_PRINTF(3, 4);
static inline void login_reply(http_exchange *exchange, int status, const char *format, ...)
{
    char text[2 * LOGIN_TEXT];
    va_list arguments;
    const http_field type = {STR("Content-Type"), STR("application/json")};
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    http_exchange_reply(exchange, status, &type, 1, str_of(text));
}

static inline void login_text(char *out, size_t size, bay_str text)
{
    snprintf(out, size, "%.*s", BAY_STR(text));
}

/* ---- the authorization server ---------------------------------------------------------------- */

static inline void login_metadata(login_server *self, http_exchange *exchange)
{
    const char *o = self->origin;
    login_reply(exchange, 200,
                "{\"issuer\":\"%s\",\"authorization_endpoint\":\"%s/authorize\",\"token_endpoint\":"
                "\"%s/token\",\"registration_endpoint\":\"%s/register\",\"revocation_endpoint\":"
                "\"%s/revoke\"%s%s%s,\"response_types_supported\":[\"code\"],"
                "\"code_challenge_methods_supported\":[\"S256\"],"
                "\"token_endpoint_auth_methods_supported\":[%s],"
                "\"client_id_metadata_document_supported\":%s,"
                "\"authorization_response_iss_parameter_supported\":true}",
                o, o, o, o, o, self->has_device ? ",\"device_authorization_endpoint\":\"" : "",
                self->has_device ? o : "", self->has_device ? "/device\"" : "",
                self->wants_secret ? "\"client_secret_basic\"" : "\"none\"",
                self->document != NULL ? "true" : "false");
}

static inline void login_authorize(login_server *self, http_exchange *exchange,
                                   const oauth_form *form)
{
    char target[LOGIN_TEXT];
    self->pages++;
    login_code *one = &self->table[self->made++ % LOGIN_CODES];
    *one = (login_code){.is_used = false};
    snprintf(one->code, sizeof(one->code), "secret-code-%d", self->made);
    login_text(one->challenge, sizeof(one->challenge), oauth_form_get(form, STR("code_challenge")));
    login_text(one->redirect, sizeof(one->redirect), oauth_form_get(form, STR("redirect_uri")));
    bay_str hint = oauth_form_get(form, STR("login_hint"));
    login_text(one->user, sizeof(one->user), hint.len > 0 ? hint : STR("ann"));
    buf state;
    buf_init(&state, LOGIN_TEXT);
    oauth_form_encode(&state, oauth_form_get(form, STR("state")));
    buf_lit(&state, "&iss=");
    oauth_form_encode(&state, str_of(self->origin));
    snprintf(target, sizeof(target), "%s%ccode=%s&state=%.*s", one->redirect,
             strchr(one->redirect, '?') != NULL ? '&' : '?', one->code, BAY_STR(buf_view(&state)));
    buf_fini(&state);
    const http_field location = {STR("Location"), str_of(target)};
    http_exchange_reply(exchange, 302, &location, 1, STR(""));
}

static inline void login_issue(login_server *self, http_exchange *exchange, const char *user,
                               bool has_refresh)
{
    char claims[256], refresh[128] = "";
    buf payload;
    snprintf(claims, sizeof(claims), "{\"sub\":\"%s\",\"epoch\":%d,\"n\":%d}", user, self->epoch,
             self->made++);
    buf_init(&payload, 1024);
    base64_encode(&payload, str_of(claims), BASE64_URL);
    if (has_refresh) {
        snprintf(refresh, sizeof(refresh), ",\"refresh_token\":\"secret-refresh-%s-%d\"", user,
                 ++self->refresh_number);
    }
    login_reply(exchange, 200,
                "{\"access_token\":\"secret-access.%.*s.x\",\"token_type\":\"Bearer\","
                "\"scope\":\"read\",\"expires_in\":%d%s}",
                BAY_STR(buf_view(&payload)), self->expires_s, refresh);
    buf_fini(&payload);
}

static inline void login_take_code(login_server *self, http_exchange *exchange,
                                   const oauth_form *form)
{
    bay_str code = oauth_form_get(form, STR("code"));
    bay_str verifier = oauth_form_get(form, STR("code_verifier"));
    unsigned char digest[32];
    buf challenge;
    self->codes++;
    EVP_Digest(verifier.at, verifier.len, digest, NULL, EVP_sha256(), NULL);
    buf_init(&challenge, 64);
    base64_encode(&challenge, (bay_str){(char *)digest, 32}, BASE64_URL);
    for (size_t i = 0; i < LOGIN_CODES; i++) {
        login_code *one = &self->table[i];
        bool is_good = code.len > 0 && str_eq(code, str_of(one->code)) && !one->is_used &&
                       str_eq(buf_view(&challenge), str_of(one->challenge)) &&
                       str_eq(oauth_form_get(form, STR("redirect_uri")), str_of(one->redirect)) &&
                       (str_eq(oauth_form_get(form, STR("resource")), str_of(self->url)) ||
                        str_eq(oauth_form_get(form, STR("resource")), str_of(self->agent_url)));
        if (is_good) {
            one->is_used = true;
            buf_fini(&challenge);
            login_issue(self, exchange, one->user, true);
            return;
        }
    }
    buf_fini(&challenge);
    login_reply(exchange, 400, "{\"error\":\"invalid_grant\"}");
}

/* The newest one alone is good: an older one is a theft, or two processes that refreshed at once. */
static inline void login_refresh(login_server *self, http_exchange *exchange,
                                 const oauth_form *form)
{
    char user[32] = "";
    int number = 0;
    char given[LOGIN_TEXT];
    login_text(given, sizeof(given), oauth_form_get(form, STR("refresh_token")));
    self->refreshes++;
    if (sscanf(given, "secret-refresh-%31[a-z]-%d", user, &number) != 2 ||
        number != self->refresh_number) {
        self->reuses++;
        login_reply(exchange, 400, "{\"error\":\"invalid_grant\"}");
        return;
    }
    login_issue(self, exchange, user, true);
}

/* The "sub" of what looks like a JWT; "": it has none. */
static inline void login_subject(bay_str token, char user[32])
{
    buf claims;
    bay_str payload = str_from(token, str_find(token, '.') + 1);
    payload = str_head(payload, str_find(payload, '.'));
    user[0] = '\0';
    buf_init(&claims, LOGIN_TEXT);
    if (base64_decode(&claims, payload, BASE64_URL) == BAY_OK) {
        buf_char(&claims, '\0');
        const char *at = strstr(claims.at, "\"sub\":\"");
        (void)(at != NULL && sscanf(at, "\"sub\":\"%31[a-z]\"", user));
    }
    buf_fini(&claims);
}

/* RFC 8693: a token of the subject; or his assertion, which another server takes for one. */
static inline void login_exchange(login_server *self, http_exchange *exchange,
                                  const oauth_form *form)
{
    char user[32];
    buf claims;
    self->exchanges++;
    login_subject(oauth_form_get(form, STR("subject_token")), user);
    if (user[0] == '\0' || self->refuses_exchanges != 0) {
        login_reply(exchange, 400, "{\"error\":\"invalid_grant\"}");
        return;
    }
    if (!str_ends(oauth_form_get(form, STR("requested_token_type")), STR(":id-jag"))) {
        login_issue(self, exchange, user, false);
        return;
    }
    buf_init(&claims, LOGIN_TEXT);
    char text[64];
    snprintf(text, sizeof(text), "{\"sub\":\"%s\"}", user);
    base64_encode(&claims, str_of(text), BASE64_URL);
    login_reply(exchange, 200,
                "{\"access_token\":\"secret-jag.%.*s.x\",\"token_type\":\"N_A\","
                "\"issued_token_type\":\"urn:ietf:params:oauth:token-type:id-jag\"}",
                BAY_STR(buf_view(&claims)));
    buf_fini(&claims);
}

static inline void login_take_assertion(login_server *self, http_exchange *exchange,
                                        const oauth_form *form)
{
    char user[32] = "pod";
    bay_str assertion = oauth_form_get(form, STR("assertion"));
    self->assertions++;
    if (str_starts(assertion, STR("secret-jag."))) {
        login_subject(assertion, user);
    } else if (!str_eq(assertion, STR("secret-workload"))) {
        login_reply(exchange, 400, "{\"error\":\"invalid_grant\"}");
        return;
    }
    login_issue(self, exchange, user, false);
}

static inline void login_token(login_server *self, http_exchange *exchange, const oauth_form *form)
{
    bay_str grant = oauth_form_get(form, STR("grant_type"));
    bay_str client_id = oauth_form_get(form, STR("client_id"));
    if (self->document != NULL && !str_eq(client_id, str_of(self->document))) {
        login_reply(exchange, 401, "{\"error\":\"invalid_client\"}");
    } else if (str_eq(grant, STR("authorization_code"))) {
        login_take_code(self, exchange, form);
    } else if (str_eq(grant, STR("refresh_token"))) {
        login_refresh(self, exchange, form);
    } else if (str_eq(grant, STR("client_credentials"))) {
        self->clients++;
        bay_str basic = http_exchange_field(exchange, STR("Authorization"));
        if (str_eq(basic, STR("Basic Z3c6c2VjcmV0LWNsaWVudA=="))) { /* gw:secret-client */
            login_issue(self, exchange, "gw", false);
        } else {
            login_reply(exchange, 401, "{\"error\":\"invalid_client\"}");
        }
    } else if (str_ends(grant, STR(":jwt-bearer"))) {
        login_take_assertion(self, exchange, form);
    } else if (str_ends(grant, STR(":token-exchange"))) {
        login_exchange(self, exchange, form);
    } else if (str_ends(grant, STR(":device_code"))) {
        if (self->device_polls++ == 0) {
            login_reply(exchange, 400, "{\"error\":\"authorization_pending\"}");
        } else {
            login_issue(self, exchange, "ann", true);
        }
    } else {
        login_reply(exchange, 400, "{\"error\":\"unsupported_grant_type\"}");
    }
}

/* ---- the MCP server -------------------------------------------------------------------------- */

static inline bool login_body_has(http_exchange *exchange, const char *text)
{
    bay_str body = http_exchange_body(exchange);
    return memmem(body.at, body.len, text, strlen(text)) != NULL;
}

static inline bool login_is_authorized(login_server *self, http_exchange *exchange, char user[32])
{
    char given[LOGIN_TEXT], epoch[32];
    buf claims;
    user[0] = '\0';
    login_text(given, sizeof(given), http_exchange_field(exchange, STR("Authorization")));
    if (strncmp(given, "Bearer secret-access.", 21) != 0) {
        return false;
    }
    bay_str payload = str_of(given + 21);
    payload = str_head(payload, str_find(payload, '.'));
    buf_init(&claims, LOGIN_TEXT);
    bool is_fine = base64_decode(&claims, payload, BASE64_URL) == BAY_OK;
    buf_char(&claims, '\0');
    snprintf(epoch, sizeof(epoch), "\"epoch\":%d,", self->epoch);
    is_fine = is_fine && strstr(claims.at, epoch) != NULL &&
              sscanf(claims.at, "{\"sub\":\"%31[a-z]\"", user) == 1;
    buf_fini(&claims);
    return is_fine;
}

/* The id of a request, as it stands there. */
static inline bay_str login_id(http_exchange *exchange)
{
    bay_str body = http_exchange_body(exchange);
    const char *at = memmem(body.at, body.len, "\"id\":", 5);
    if (at == NULL) {
        return STR("null");
    }
    bay_str rest = {at + 5, (size_t)(body.at + body.len - at) - 5};
    size_t end = 0;
    while (end < rest.len && rest.at[end] != ',' && rest.at[end] != '}') {
        end++;
    }
    return str_head(rest, end);
}

static inline void login_challenge(login_server *self, http_exchange *exchange)
{
    char challenge[256];
    self->refused++;
    snprintf(challenge, sizeof(challenge),
             "Bearer resource_metadata=\"%s/.well-known/oauth-protected-resource%.*s\"",
             self->origin, BAY_STR(http_exchange_path(exchange)));
    const http_field field = {STR("WWW-Authenticate"), str_of(challenge)};
    http_exchange_reply(exchange, 401, &field, 1, STR(""));
}

/* What results of 2026-07-28 begin with. */
static inline const char *login_modern(const login_server *self)
{
    return self->is_modern ? "\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\","
                           : "";
}

/* A session is of whoever opened it. */
static inline void login_initialize(login_server *self, http_exchange *exchange, const char *user)
{
    char text[LOGIN_TEXT], session[64];
    self->sessions++;
    snprintf(session, sizeof(session), "of-%s-%d", user, (int)self->sessions);
    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"protocolVersion\":\"2025-11-25\","
             "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":"
             "\"1\"}}}",
             BAY_STR(login_id(exchange)));
    const http_field fields[] = {{STR("Content-Type"), STR("application/json")},
                                 {STR("Mcp-Session-Id"), str_of(session)}};
    http_exchange_reply(exchange, 200, fields, ARRAY_LEN(fields), str_of(text));
}

static inline void login_mcp(login_server *self, http_exchange *exchange)
{
    char user[32], session[40];
    bool is_call = login_body_has(exchange, "\"tools/call\"");
    bool is_public = self->asks_only_for_calls && !is_call;
    bool is_refused = is_call && self->refuses_calls != 0;
    if ((!login_is_authorized(self, exchange, user) && !is_public) || is_refused) {
        login_challenge(self, exchange);
        return;
    }
    bay_str id = login_id(exchange);
    bay_str given = http_exchange_field(exchange, STR("Mcp-Session-Id"));
    snprintf(session, sizeof(session), "of-%s-", user);
    self->mixed += given.len > 0 && !str_starts(given, str_of(session));
    if (!str_eq(http_exchange_method(exchange), STR("POST"))) {
        http_exchange_reply(exchange, 405, NULL, 0, STR(""));
    } else if (self->is_modern && login_body_has(exchange, "\"server/discover\"")) {
        login_reply(exchange, 200,
                    "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"resultType\":\"complete\","
                    "\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},"
                    "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"},\"ttlMs\":0,"
                    "\"cacheScope\":\"private\"}}",
                    BAY_STR(id));
    } else if (!self->is_modern && login_body_has(exchange, "\"initialize\"")) {
        login_initialize(self, exchange, user);
    } else if (login_body_has(exchange, "\"notifications/")) {
        http_exchange_reply(exchange, 202, NULL, 0, STR(""));
    } else if (login_body_has(exchange, "\"tools/list\"")) {
        login_reply(exchange, 200,
                    "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{%s\"tools\":[{\"name\":\"who\","
                    "\"inputSchema\":{\"type\":\"object\"}}]}}",
                    BAY_STR(id), login_modern(self));
    } else if (is_call && self->refuses_scope != NULL) {
        char challenge[256];
        snprintf(challenge, sizeof(challenge), "Bearer error=\"insufficient_scope\", scope=\"%s\"",
                 self->refuses_scope);
        const http_field field = {STR("WWW-Authenticate"), str_of(challenge)};
        http_exchange_reply(exchange, 403, &field, 1, STR(""));
    } else if (is_call) {
        self->calls++;
        login_reply(
            exchange, 200,
            "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{%s\"content\":[{\"type\":\"text\","
            "\"text\":\"you are %s\"}]}}",
            BAY_STR(id), login_modern(self), user);
    } else {
        login_reply(
            exchange, 400,
            "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":-32601,\"message\":\"no\"}}",
            BAY_STR(id));
    }
}

/* ---- the agent ------------------------------------------------------------------------------- */

static inline void login_card(login_server *self, http_exchange *exchange)
{
    login_reply(
        exchange, 200,
        "{\"name\":\"a\",\"description\":\"d\",\"version\":\"1\",\"supportedInterfaces\":[{"
        "\"url\":\"%s\",\"protocolBinding\":\"JSONRPC\",\"protocolVersion\":\"1.0\"}],"
        "\"capabilities\":{},\"defaultInputModes\":[\"text/plain\"],\"defaultOutputModes\":["
        "\"text/plain\"],\"skills\":[]}",
        self->agent_elsewhere != NULL ? self->agent_elsewhere : self->agent_url);
}

static inline void login_agent(login_server *self, http_exchange *exchange)
{
    char user[32];
    if (!login_is_authorized(self, exchange, user) || self->refuses_calls != 0) {
        login_challenge(self, exchange);
        return;
    }
    self->calls++;
    login_reply(exchange, 200,
                "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"message\":{\"messageId\":\"m\","
                "\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"you are %s\"}]}}}",
                BAY_STR(login_id(exchange)), user);
}

/* ---- its life -------------------------------------------------------------------------------- */

static inline bool login_text_has(bay_str text, const char *secret)
{
    return text.len > 0 && memmem(text.at, text.len, secret, strlen(secret)) != NULL;
}

/* Looks through all of the request. */
static inline bool login_leaks(const login_server *self, const http_exchange *exchange)
{
    size_t count = 0;
    const http_field *fields = http_exchange_fields(exchange, &count);
    for (size_t i = 0; i < ARRAY_LEN(self->secrets) && self->secrets[i] != NULL; i++) {
        bool leaks = login_text_has(http_exchange_path(exchange), self->secrets[i]) ||
                     login_text_has(http_exchange_query(exchange), self->secrets[i]) ||
                     login_text_has(http_exchange_body(exchange), self->secrets[i]);
        for (size_t k = 0; k < count; k++) {
            leaks = leaks || login_text_has(fields[k].name, self->secrets[i]) ||
                    login_text_has(fields[k].value, self->secrets[i]);
        }
        if (leaks) {
            return true;
        }
    }
    return false;
}

static inline void login_on_request(void *user, http_exchange *exchange)
{
    login_server *self = user;
    self->leaks += login_leaks(self, exchange);
    arena memory;
    oauth_form form = {.count = 0};
    bay_str path = http_exchange_path(exchange);
    bay_str given = http_exchange_field(exchange, STR("Authorization"));
    self->strangers += given.len > 0 && memmem(given.at, given.len, "canary", 6) != NULL;
    arena_init(&memory, 1 << 20);
    bool is_form =
        str_eq(path, STR("/token")) || str_eq(path, STR("/revoke")) || str_eq(path, STR("/device"));
    bay_str text = is_form                           ? http_exchange_body(exchange)
                   : str_eq(path, STR("/authorize")) ? http_exchange_query(exchange)
                                                     : (bay_str){"", 0};
    if (oauth_form_read(text, &memory, &form) != BAY_OK) {
        login_reply(exchange, 400, "{\"error\":\"invalid_request\"}");
    } else if (str_eq(path, STR("/mcp"))) {
        login_mcp(self, exchange);
    } else if (str_eq(path, STR("/agent"))) {
        login_agent(self, exchange);
    } else if (str_eq(path, STR("/agent/.well-known/agent-card.json"))) {
        login_card(self, exchange);
    } else if (str_starts(path, STR("/.well-known/oauth-protected-resource/"))) {
        bool is_agent = str_ends(path, STR("/agent"));
        login_reply(exchange, 200, "{\"resource\":\"%s\",\"authorization_servers\":[\"%s\"]}",
                    is_agent ? self->agent_url : self->url,
                    self->issuer != NULL ? self->issuer : self->origin);
    } else if (str_eq(path, STR("/.well-known/oauth-authorization-server"))) {
        login_metadata(self, exchange);
    } else if (str_eq(path, STR("/register"))) {
        login_reply(exchange, 201, "{\"client_id\":\"client-%d\"}", ++self->registrations);
    } else if (str_eq(path, STR("/authorize"))) {
        login_authorize(self, exchange, &form);
    } else if (str_eq(path, STR("/token"))) {
        login_token(self, exchange, &form);
    } else if (str_eq(path, STR("/device"))) {
        login_reply(exchange, 200,
                    "{\"device_code\":\"secret-device\",\"user_code\":\"WDJB-MJHT\","
                    "\"verification_uri\":\"%s/d\",\"interval\":1}",
                    self->origin);
    } else if (str_eq(path, STR("/revoke"))) {
        self->revocations++;
        http_exchange_reply(exchange, 200, NULL, 0, STR(""));
    } else {
        login_reply(exchange, 404, "{}");
    }
    arena_fini(&memory);
}

static inline void login_on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

static inline void login_run(void *argument)
{
    login_server *self = argument;
    loop_run(self->loop);
}

static inline void login_server_start(login_server *self)
{
    static const http_handler handler = {.request = login_on_request, .closed = login_on_closed};
    bay_diag diag = {0};
    self->expires_s = self->expires_s != 0 ? self->expires_s : 3600;
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &handler, .user = self};
    CHECK(loop_new(&self->loop) == BAY_OK);
    CHECK(http_server_new(self->loop, &options, &self->server) == BAY_OK);
    CHECK(http_server_listen(self->server, STR("127.0.0.1:0"), &diag) == BAY_OK);
    snprintf(self->origin, sizeof(self->origin), "http://127.0.0.1:%u",
             http_server_port(self->server));
    snprintf(self->url, sizeof(self->url), "%s/mcp", self->origin);
    snprintf(self->agent_url, sizeof(self->agent_url), "%s/agent", self->origin);
    CHECK(net_thread_start(&self->thread, login_run, self) == BAY_OK);
}

static inline void login_server_stop(login_server *self)
{
    loop_stop(self->loop);
    net_thread_join(&self->thread);
    http_server_free(self->server);
    loop_free(self->loop);
}

#endif
