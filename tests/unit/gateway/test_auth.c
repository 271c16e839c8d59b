/* Who comes in to a gateway whose configuration says `auth`: tokens of an issuer with fixed keys,
 * API keys of its store, profiles with an `auth` of their own; what those who may not come in are
 * told; and a reload. */
#include <openssl/evp.h> /* without it there is nothing to verify with */
#include <sqlite3.h>     /* and nowhere to keep keys */

#include "unit/auth/jose_rig.h" /* before what takes the word "fail" */

#include "auth/api_key.h"
#include "auth/block.h"
#include "store/store.h"
#include "support/gateway_rig.h"
#include "support/store_row.h"

#define ISSUER "https://issuer.example"
#define KEYS "/tmp/rig.auth.%d.jwks"

enum { TEXT_BYTES = 16 << 10 };

static char keys_path[64];
static char store_path[64];

/* ---- what clients bring ---------------------------------------------------------------------- */

static const char *token_with(const char *audience, const char *more, int64_t expires_in_s)
{
    static char text[TEXT_BYTES];
    char payload[1000];
    EVP_PKEY *key = rig_ec_key();
    buf token;
    int64_t now = (int64_t)(loop_time_ms() / 1000);
    buf_init(&token, RIG_TEXT);
    (void)snprintf(payload, sizeof(payload),
                   "{\"iss\":\"" ISSUER "\",\"sub\":\"ann\",\"aud\":\"%s\",\"iat\":%lld,"
                   "\"exp\":%lld,\"client_id\":\"c1\",\"jti\":\"1\"%s}",
                   audience, (long long)now - 10, (long long)(now + expires_in_s), more);
    rig_token(key, "{\"alg\":\"ES256\",\"kid\":\"k1\",\"typ\":\"at+jwt\"}", payload, &token);
    (void)snprintf(text, sizeof(text), "Authorization: Bearer %.*s\r\n", (int)token.len, token.at);
    buf_fini(&token);
    EVP_PKEY_free(key);
    return text;
}

/* A token for what stands at that path of this gateway. */
static const char *token_for(const gateway_rig *self, const char *path, const char *more)
{
    char audience[200];
    (void)snprintf(audience, sizeof(audience), "http://127.0.0.1:%u%s", gateway_port(self->gateway),
                   path);
    return token_with(audience, more, 60);
}

typedef struct said {
    int status;
    char text[TEXT_BYTES];
} said;

static said ask(const gateway_rig *self, const char *method, const char *path, const char *fields)
{
    said out = {.status = 0};
    client one;
    char request[TEXT_BYTES];
    client_open(&one, self);
    (void)snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s\r\n",
                   method, path, gateway_port(self->gateway), fields);
    (void)client_send(&one, request);
    out.status = client_reply(&one);
    (void)snprintf(out.text, sizeof(out.text), "%.*s", (int)one.got.len, one.got.at);
    client_close(&one);
    return out;
}

/* A call of a tool at that path. */
static said call(const gateway_rig *self, const char *path, const char *tool, const char *more)
{
    said out = {.status = 0};
    client one;
    char fields[TEXT_BYTES];
    char body[600];
    client_open(&one, self);
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                   "Mcp-Name: %s\r\n%s",
                   tool, more);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'%s'," RIG_META
                   "}}}",
                   tool);
    client_post(&one, path, fields, body);
    out.status = client_reply(&one);
    (void)snprintf(out.text, sizeof(out.text), "%.*s", (int)one.got.len, one.got.at);
    client_close(&one);
    return out;
}

static void expect(const said *it, int status, const char *part)
{
    if (it->status != status || strstr(it->text, part) == NULL) {
        print_error("wanted: %d %s\ncame: %s\n", status, part, it->text);
    }
    assert_int_equal(it->status, status);
    assert_non_null(strstr(it->text, part));
}

static void expect_without(const said *it, const char *part)
{
    if (strstr(it->text, part) != NULL) {
        print_error("not wanted: %s\ncame: %s\n", part, it->text);
    }
    assert_null(strstr(it->text, part));
}

/* ---- the gateway ----------------------------------------------------------------------------- */

#define TIMES "'timeouts':{'drain':'50ms','terminate':'50ms','kill':'50ms'},"
#define SERVERS "'mcpServers':{" RIG_SERVER("a", "stdio", "good", "") "}"
#define ONE_ISSUER(more) "'issuers':{'acme':{'url':'" ISSUER "','keys':'%s'" more "}}"

static void open_gateway(gateway_rig *self, const char *format, ...)
{
    char settings[4000];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(settings, sizeof(settings), format, arguments);
    va_end(arguments);
    rig_open(self, settings, 2);
    wait_until(atomic_load(&self->started) == 1);
}

static void reload(gateway_rig *self, const char *format, ...)
{
    char settings[4000];
    int before = atomic_load(&self->reloaded);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(settings, sizeof(settings), format, arguments);
    va_end(arguments);
    rig_configure(self, settings);
    rig_ask_reload(self);
    wait_until(atomic_load(&self->reloaded) == before + 1);
}

#define ISSUER_KEYS                                                                                \
    "{\"keys\":[{\"kid\":\"k1\",\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X                \
    "\",\"y\":\"" RIG_EC_Y "\"}]}"

static int write_keys(void **state)
{
    (void)state;
    (void)snprintf(keys_path, sizeof(keys_path), KEYS, (int)getpid());
    (void)snprintf(store_path, sizeof(store_path), "/tmp/rig.auth.%d.db", (int)getpid());
    FILE *file = fopen(keys_path, "w");
    assert_non_null(file);
    fputs(ISSUER_KEYS, file);
    fclose(file);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    (void)unlink(keys_path);
    store_row_remove_files(store_path);
    return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void who_brings_nothing_is_told_where_to_log_in(void **state)
{
    (void)state;
    gateway_rig self;
    char url[200];
    open_gateway(&self, "{" TIMES "'auth':{" ONE_ISSUER("") "}," SERVERS "}", keys_path);
    unsigned port = gateway_port(self.gateway);
    said it = call(&self, "/mcp", "a.echo", "");
    (void)snprintf(url, sizeof(url),
                   "resource_metadata=\"http://127.0.0.1:%u/.well-known/oauth-protected-resource/"
                   "mcp\"",
                   port);
    expect(&it, 401, url);
    expect(&it, 401, "WWW-Authenticate: Bearer ");
    expect(&it, 401, "Cache-Control: no-store");
    expect_without(&it, "error=");
    it = call(&self, "/mcp/a", "echo", "");
    expect(&it, 401, "/.well-known/oauth-protected-resource/mcp/a\"");
    it = ask(&self, "GET", "/sse", "Accept: text/event-stream\r\n");
    expect(&it, 401, "/.well-known/oauth-protected-resource\"");
    it = ask(&self, "GET", "/mcp/a/sse", "Accept: text/event-stream\r\n");
    expect(&it, 401, "/.well-known/oauth-protected-resource\"");
    it = call(&self, "/mcp/none", "echo", ""); /* what there is not looks the same */
    expect(&it, 401, "/.well-known/oauth-protected-resource/mcp/none\"");
    it = ask(&self, "GET", "/healthz", "");
    expect(&it, 200, "");
    rig_close(&self);
}

static void metadata_is_at_each_endpoint(void **state)
{
    static const char *const places[] = {"", "/mcp", "/mcp/a", "/mcp/none", "/a2a/x"};
    static const char *const nowhere[] = {"/mcp/", "/mcp/a/b", "/mcpx", "/other", "/healthz"};
    (void)state;
    gateway_rig self;
    open_gateway(&self,
                 "{" TIMES
                 "'auth':{" ONE_ISSUER("") ",'scopes':['use']},'profiles':{"
                                           "'open':{'servers':['a'],'auth':{'none':true}}}," SERVERS
                                           "}",
                 keys_path);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char path[200], wanted[200];
        (void)snprintf(path, sizeof(path), "/.well-known/oauth-protected-resource%s", places[i]);
        (void)snprintf(wanted, sizeof(wanted), "{\"resource\":\"http://127.0.0.1:%u%s\",",
                       gateway_port(self.gateway), places[i]);
        said it = ask(&self, "GET", path, "Origin: https://anywhere.example\r\n");
        expect(&it, 200, wanted);
        expect(&it, 200, "\"authorization_servers\":[\"" ISSUER "\"]");
        expect(&it, 200, "\"scopes_supported\":[\"use\"]");
        expect(&it, 200, "Access-Control-Allow-Origin: *");
        expect(&it, 200, "Content-Type: application/json");
    }
    for (size_t i = 0; i < ARRAY_LEN(nowhere); i++) {
        char path[200];
        (void)snprintf(path, sizeof(path), "/.well-known/oauth-protected-resource%s", nowhere[i]);
        said it = ask(&self, "GET", path, "");
        expect(&it, 404, "");
        expect_without(&it, ISSUER);
    }
    said it = ask(&self, "GET", "/.well-known/oauth-protected-resource/mcp/@open", "");
    expect(&it, 404, "");
    it = ask(&self, "POST", "/.well-known/oauth-protected-resource/mcp", "Content-Length: 0\r\n");
    expect(&it, 404, "");
    /* neither a prefix nor a suffix of a public path opens anything */
    it = ask(&self, "GET", "/mcp/.well-known/oauth-protected-resource", "");
    expect(&it, 404, "");
    it = ask(&self, "GET", "/a2a/x/.well-known/oauth-protected-resource", "");
    expect(&it, 401, "");
    rig_close(&self);
}

static void a_token_is_good_where_it_is_for(void **state)
{
    (void)state;
    gateway_rig self;
    open_gateway(&self, "{" TIMES "'auth':{" ONE_ISSUER(",'skew':'2s'") "}," SERVERS "}",
                 keys_path);
    for (int i = 0; i < 6; i++) { /* both workers, and what they remember */
        said it = call(&self, "/mcp", "a.echo", token_for(&self, "/mcp", ""));
        expect(&it, 200, "good");
    }
    said it = call(&self, "/mcp/a", "echo", token_for(&self, "/mcp/a", ""));
    expect(&it, 200, "good");
    it = call(&self, "/mcp/a", "echo", token_for(&self, "", "")); /* for all of it */
    expect(&it, 200, "good");
    static const char *const others[] = {"/mcp/a", "/mcp/", "/mc", "/mcpx", "/MCP", "/a2a/a"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        it = call(&self, "/mcp", "a.echo", token_for(&self, others[i], ""));
        expect(&it, 401, "error=\"invalid_token\"");
        expect_without(&it, "audience");
    }
    it = call(&self, "/mcp", "a.echo", token_with("https://other.example/mcp", "", 60));
    expect(&it, 401, "error=\"invalid_token\"");
    char late[200];
    (void)snprintf(late, sizeof(late), "http://127.0.0.1:%u/mcp", gateway_port(self.gateway));
    it = call(&self, "/mcp", "a.echo", token_with(late, "", -4));
    expect(&it, 401, "error=\"invalid_token\"");
    it = call(&self, "/mcp", "a.echo", "Authorization: Bearer x.y.z\r\n");
    expect(&it, 401, "error=\"invalid_token\"");
    it = call(&self, "/mcp", "a.echo", "Authorization: Basic YTpi\r\n");
    expect(&it, 401, "WWW-Authenticate: Bearer ");
    rig_close(&self);
}

static void a_token_that_can_be_read_in_two_ways_is_none(void **state)
{
    (void)state;
    gateway_rig self;
    char twice[TEXT_BYTES];
    open_gateway(&self, "{" TIMES "'auth':{" ONE_ISSUER("") "}," SERVERS "}", keys_path);
    const char *good = token_for(&self, "/mcp", "");
    (void)snprintf(twice, sizeof(twice), "%s%s", good, good);
    said it = call(&self, "/mcp", "a.echo", twice);
    expect(&it, 400, "");
    it = call(&self, "/mcp?access_token=secret", "a.echo", good);
    expect(&it, 400, "");
    assert_int_equal(rig_log_count("secret"), 0);
    rig_close(&self);
}

static void a_scope_that_everybody_needs_is_named(void **state)
{
    (void)state;
    gateway_rig self;
    open_gateway(&self,
                 "{" TIMES
                 "'auth':{" ONE_ISSUER("") ",'scopes':['notes.read','use'],"
                                           "'implies':{'notes.write':'notes.read'}}," SERVERS "}",
                 keys_path);
    said it = call(&self, "/mcp", "a.echo",
                   token_for(&self, "/mcp", ",\"scope\":\"notes.readonly use\""));
    expect(&it, 403, "error=\"insufficient_scope\"");
    expect(&it, 403, "scope=\"notes.read use\"");
    it = call(&self, "/mcp", "a.echo", token_for(&self, "/mcp", ",\"scope\":\"use notes.write\""));
    expect(&it, 200, "good");
    it = call(&self, "/mcp", "a.echo", "");
    expect(&it, 401, "scope=\"notes.read use\"");
    rig_close(&self);
}

static bool lacks_a_scope(void *user, const call_context *call, call_refusal *out)
{
    (void)user;
    (void)call;
    out->reason = CALL_SCOPE;
    out->scopes = STR("weather:read");
    return false;
}

/* Whoever decides in the door that only a scope is lacking: its client can ask for it. */
static void a_scope_that_one_call_needs_is_named(void **state)
{
    (void)state;
    gateway_rig self;
    bay_diag diag = {.text = ""};
    char settings[2000];
    gateway_options asked = {.workers = 2, .listen = STR("127.0.0.1:0")};
    (void)snprintf(settings, sizeof(settings), "{" TIMES "'auth':{" ONE_ISSUER("") "}," SERVERS "}",
                   keys_path);
    assert_int_equal(rig_make(&self, settings, &asked, &diag), BAY_OK);
    for (uint32_t i = 0; i < asked.workers; i++) {
        self.gateway->workers[i].door.guard = lacks_a_scope;
    }
    rig_start(&self);
    wait_until(atomic_load(&self.started) == 1);
    said it = call(&self, "/mcp/a", "echo", token_for(&self, "/mcp/a", ""));
    expect(&it, 403,
           "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"weather:read\", "
           "resource_metadata=\"http://127.0.0.1:");
    expect(&it, 403, "/.well-known/oauth-protected-resource/mcp/a\"");
    expect(&it, 403, "\"patchbay/reason\":\"insufficient_scope\"");
    rig_close(&self);
}

static void a_profile_may_demand_other_things(void **state)
{
    (void)state;
    gateway_rig self;
    open_gateway(&self,
                 "{" TIMES "'store':'%s','auth':{" ONE_ISSUER(
                     "") "},'profiles':{"
                         "'open':{'servers':['a'],'auth':{'none':true}},"
                         "'keys':{'servers':['a'],'auth':{'apiKeys':true}},'same':{'servers':['a']}"
                         "}," SERVERS "}",
                 store_path, keys_path);
    said it = call(&self, "/mcp/@open", "a.echo", "");
    expect(&it, 200, "good");
    it = call(&self, "/mcp/@keys", "a.echo", token_for(&self, "/mcp/@keys", ""));
    expect(&it, 401, "WWW-Authenticate: Bearer");
    expect_without(&it, "resource_metadata");
    it = call(&self, "/mcp/@same", "a.echo", "");
    expect(&it, 401, "/.well-known/oauth-protected-resource/mcp/@same\"");
    it = call(&self, "/mcp/@same", "a.echo", token_for(&self, "/mcp/@same", ""));
    expect(&it, 200, "good");
    it = call(&self, "/mcp/%40same", "a.echo", token_for(&self, "/mcp/%40same", ""));
    expect(&it, 200, "good");
    it = ask(&self, "GET", "/mcp/@keys/sse", token_for(&self, "", ""));
    expect(&it, 401, "WWW-Authenticate: Bearer");
    it = ask(&self, "GET", "/mcp/@open/sse", "Accept: text/event-stream\r\n");
    expect(&it, 404, "");
    it = call(&self, "/mcp/%40keys", "a.echo", token_for(&self, "", ""));
    expect(&it, 401, "WWW-Authenticate: Bearer");
    rig_close(&self);
}

/* ---- API keys -------------------------------------------------------------------------------- */

static void put_row(bay_str table, bay_str key, bay_str value)
{
    store_row_put(store_path, table, key, value);
}

/* As `patchbay key new` does it, in a process of its own. */
static void make_key(const char *name, uint64_t expires_at_ms, char out[API_KEY_BYTES])
{
    api_key row = {.name = str_of(name),
                   .scopes = STR("use"),
                   .made_at_ms = 1,
                   .expires_at_ms = expires_at_ms};
    bay_str id;
    buf value;
    buf_init(&value, API_KEY_ROW_BYTES);
    assert_int_equal(api_key_make(&row, out), BAY_OK);
    assert_true(api_key_id(str_of(out), &id));
    api_key_row_write(&row, &value);
    put_row(STR(API_KEY_TABLE), id, buf_view(&value));
    buf_fini(&value);
}

static void an_api_key_is_as_good_as_its_row(void **state)
{
    (void)state;
    gateway_rig self;
    char key[API_KEY_BYTES], old[API_KEY_BYTES], fields[300];
    open_gateway(&self,
                 "{" TIMES "'store':'%s','auth':{'apiKeys':true,'scopes':['use']}," SERVERS "}",
                 store_path);
    make_key("ci", 0, key); /* while the gateway runs */
    make_key("old", 1000, old);
    static const char *const ways[] = {"Authorization: Bearer %s\r\n", "X-API-Key: %s\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        (void)snprintf(fields, sizeof(fields),
                       i == 0 ? "Authorization: Bearer %s\r\n" : "X-API-Key: %s\r\n", key);
        said it = call(&self, "/mcp", "a.echo", fields);
        expect(&it, 200, "good");
    }
    (void)snprintf(fields, sizeof(fields), "X-API-Key: %s\r\n", old);
    said it = call(&self, "/mcp", "a.echo", fields);
    expect(&it, 401, "error=\"invalid_token\"");
    key[strlen(key) - 2] ^= 1; /* another secret */
    (void)snprintf(fields, sizeof(fields), "X-API-Key: %s\r\n", key);
    it = call(&self, "/mcp", "a.echo", fields);
    expect(&it, 401, "error=\"invalid_token\"");
    it = call(&self, "/mcp", "a.echo", "X-API-Key: pbk_0011223344556677_none\r\n");
    expect(&it, 401, "error=\"invalid_token\"");
    assert_int_equal(rig_log_count(key), 0);
    rig_close(&self);
}

static void who_is_blocked_stays_out(void **state)
{
    (void)state;
    gateway_rig self;
    char good[API_KEY_BYTES], bad[API_KEY_BYTES], fields[300], block[DIGEST_TEXT_BYTES + 1];
    assert_int_equal(block_key(STR("mallory"), block), BAY_OK);
    put_row(STR(BLOCK_TABLE), str_of(block), STR("mallory"));
    make_key("alice", 0, good);
    make_key("mallory", 0, bad);
    open_gateway(&self, "{" TIMES "'store':'%s','auth':{'apiKeys':true}," SERVERS "}", store_path);
    for (int i = 0; i < 4; i++) { /* also what is remembered, on both workers */
        (void)snprintf(fields, sizeof(fields), "X-API-Key: %s\r\n", bad);
        said it = call(&self, "/mcp", "a.echo", fields);
        expect(&it, 403, "Cache-Control: no-store");
        expect_without(&it, "WWW-Authenticate");
        (void)snprintf(fields, sizeof(fields), "X-API-Key: %s\r\n", good);
        it = call(&self, "/mcp", "a.echo", fields);
        expect(&it, 200, "good");
    }
    rig_close(&self);
}

/* A stream that says what changes, in the newest revision and over HTTP+SSE. */
static void open_stream(client *one, const gateway_rig *self, bool is_sse, const char *key)
{
    char text[600];
    client_open(one, self);
    if (is_sse) {
        (void)snprintf(text, sizeof(text),
                       "GET /sse HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nX-API-Key: %s\r\n\r\n",
                       gateway_port(self->gateway), key);
        (void)client_send(one, text);
        client_wait_for(one, "event: endpoint");
        return;
    }
    (void)snprintf(text, sizeof(text),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n"
                   "X-API-Key: %s\r\n",
                   key);
    client_post(one, "/mcp", text,
                "{'jsonrpc':'2.0','id':9,'method':'subscriptions/listen','params':{"
                "'notifications':{'toolsListChanged':true}," RIG_META "}}}");
    client_wait_for(one, "notifications/subscriptions/acknowledged");
}

static void streams_of_who_is_blocked_end(void **state)
{
    (void)state;
    gateway_rig self;
    client streams[2][2];
    char keys[2][API_KEY_BYTES], block[DIGEST_TEXT_BYTES + 1];
    assert_int_equal(block_key(STR("mallet"), block), BAY_OK);
    make_key("mallet", 0, keys[0]);
    make_key("alice", 0, keys[1]);
    open_gateway(&self, "{" TIMES "'store':'%s','auth':{'apiKeys':true}," SERVERS "}", store_path);
    for (int i = 0; i < 2; i++) {
        open_stream(&streams[i][0], &self, false, keys[i]);
        open_stream(&streams[i][1], &self, true, keys[i]);
    }
    put_row(STR(BLOCK_TABLE), str_of(block), STR("mallet"));
    for (int k = 0; k < 2; k++) {
        client_wait_for(&streams[0][k], "\r\n0\r\n\r\n"); /* within 5 s */
        assert_null(client_find(&streams[1][k], "\r\n0\r\n\r\n"));
        struct pollfd more = {.fd = streams[1][k].fd, .events = POLLIN};
        assert_int_equal(poll(&more, 1, 0), 0);
    }
    for (int i = 0; i < 2; i++) {
        client_close(&streams[i][0]);
        client_close(&streams[i][1]);
    }
    rig_close(&self);
}

/* ---- more ------------------------------------------------------------------------------------ */

/* What is demanded is declared: the caller of an agent reads it in the card. */
static void cards_declare_what_callers_bring(void **state)
{
    (void)state;
    gateway_rig self;
    open_gateway(
        &self,
        "{" TIMES "'store':'%s','auth':{" ONE_ISSUER(
            "") ",'apiKeys':true,'scopes':['use']},'agents':{'helper':{'tools':['*']}}," SERVERS
                "}",
        store_path, keys_path);
    said it = ask(&self, "GET", "/a2a/helper/.well-known/agent-card.json", "A2A-Version: 1.0\r\n");
    expect(&it, 200,
           "\"oauth\":{\"openIdConnectSecurityScheme\":{\"openIdConnectUrl\":\"" ISSUER
           "/.well-known/openid-configuration\"}}");
    expect(&it, 200, "\"key\":{\"apiKeySecurityScheme\":{");
    expect(&it, 200, "\"securityRequirements\":[{\"schemes\":{\"oauth\":{\"list\":[\"use\"]}}},");
    it = ask(&self, "POST", "/a2a/helper",
             "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
    expect(&it, 401, "/.well-known/oauth-protected-resource/a2a/helper\"");
    reload(&self, "{" TIMES "'store':'%s','agents':{'helper':{'tools':['*']}}," SERVERS "}",
           store_path);
    it = ask(&self, "GET", "/a2a/helper/.well-known/agent-card.json", "A2A-Version: 1.0\r\n");
    expect(&it, 200, "\"name\":");
    expect_without(&it, "securitySchemes");
    rig_close(&self);
}

static void an_address_that_fails_often_waits(void **state)
{
    (void)state;
    gateway_rig self;
    open_gateway(&self,
                 "{" TIMES "'limits':{'failedCredentials':3},'auth':{" ONE_ISSUER("") "}," SERVERS
                                                                                      "}",
                 keys_path);
    const char *good = token_for(&self, "/mcp", "");
    said it = call(&self, "/mcp", "a.echo", good);
    expect(&it, 200, "good");
    for (int i = 0; i < 3; i++) {
        char bad[100];
        (void)snprintf(bad, sizeof(bad), "Authorization: Bearer bad%d\r\n", i);
        it = call(&self, "/mcp", "a.echo", bad);
        expect(&it, 401, "invalid_token");
    }
    it = call(&self, "/mcp", "a.echo", "Authorization: Bearer bad4\r\n");
    expect(&it, 429, "Retry-After: ");
    it = call(&self, "/mcp", "a.echo", good); /* who is known stays so */
    expect(&it, 200, "good");
    rig_close(&self);
}

static void a_reload_changes_who_comes_in(void **state)
{
    (void)state;
    gateway_rig self;
    open_gateway(&self, "{" TIMES SERVERS "}");
    said it = call(&self, "/mcp", "a.echo", "");
    expect(&it, 200, "good");
    reload(&self, "{" TIMES "'auth':{" ONE_ISSUER("") "}," SERVERS "}", keys_path);
    for (int i = 0; i < 6; i++) {
        it = call(&self, "/mcp", "a.echo", "");
        expect(&it, 401, "resource_metadata");
    }
    it = call(&self, "/mcp", "a.echo", token_for(&self, "/mcp", ""));
    expect(&it, 200, "good");
    reload(&self, "{" TIMES "'auth':{" ONE_ISSUER(",'clients':['c2']") "}," SERVERS "}", keys_path);
    for (int i = 0; i < 6; i++) {
        it = call(&self, "/mcp", "a.echo", token_for(&self, "/mcp", ""));
        expect(&it, 401, "invalid_token");
    }
    /* what cannot be read changes nothing, and opens nothing */
    rig_configure(&self, "{" TIMES "'auth':{'issuers':{'acme':{'url':'" ISSUER
                         "','keys':'/nowhere/keys.json'}}}," SERVERS "}");
    rig_ask_reload(&self);
    wait_until(rig_log_count("auth.issuers.acme.keys: the file \"/nowhere/keys.json\" cannot be "
                             "read") == 1);
    it = call(&self, "/mcp", "a.echo", "");
    expect(&it, 401, "resource_metadata");
    rig_close(&self);
}

/* ---- keys that are rotated while a check waits ----------------------------------------------- */

/* A token that is bound to the rig's key, and the proof for a call. */
static const char *bound_for(const gateway_rig *self)
{
    static char fields[TEXT_BYTES];
    char claims[1000], ath[64];
    unsigned char digest[DIGEST_BYTES];
    buf hash = {.at = ath, .cap = sizeof(ath) - 1, .max = sizeof(ath) - 1};
    buf proof;
    bay_str token = str_from(
        str_of(token_for(self, "/mcp",
                         ",\"cnf\":{\"jkt\":\"oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U\"}")),
        sizeof("Authorization: Bearer ") - 1);
    token = str_head(token, str_find(token, '\r'));
    assert_int_equal(digest_bytes(token, digest), BAY_OK);
    rig_encode(&hash, (bay_str){(const char *)digest, sizeof(digest)});
    (void)snprintf(
        claims, sizeof(claims),
        "{\"jti\":\"j\",\"htm\":\"POST\",\"htu\":\"http://127.0.0.1:%u/mcp\",\"iat\":%lld,"
        "\"ath\":\"%.*s\",\"nonce\":\"stale\"}",
        gateway_port(self->gateway), (long long)(loop_time_ms() / 1000), BAY_STR(buf_view(&hash)));
    EVP_PKEY *key = rig_ec_key();
    buf_init(&proof, RIG_TEXT);
    rig_token(key, "{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"jwk\":" RIG_EC_JWK "}", claims,
              &proof);
    (void)snprintf(fields, sizeof(fields), "Authorization: DPoP %.*s\r\nDPoP: %.*s\r\n",
                   BAY_STR(token), BAY_STR(buf_view(&proof)));
    buf_fini(&proof);
    EVP_PKEY_free(key);
    return fields;
}

#define NONCES(port, key)                                                                          \
    "{" TIMES "'keys':['" key "'],'auth':{'issuers':{'acme':{'url':'" ISSUER                       \
    "','keys':'http://127.0.0.1:%u/jwks'}},'dpop':'accept','dpopNonces':true}," SERVERS "}",       \
        port

static void keys_that_go_take_the_checks_that_need_them_along(void **state)
{
    (void)state;
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                 "Connection: close\r\n\r\n" ISSUER_KEYS;
    gateway_rig self;
    client one;
    char fields[TEXT_BYTES], request[2000];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int issuer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(issuer, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(issuer, 4), 0);
    assert_int_equal(getsockname(issuer, (struct sockaddr *)&at, &len), 0);
    unsigned port = ntohs(at.sin_port);
    open_gateway(&self,
                 NONCES(port, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"));
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n%s",
                   bound_for(&self));
    client_open(&one, &self);
    client_post(&one, "/mcp", fields,
                "{'jsonrpc':'2.0','id':1,'method':'tools/list','params':{" RIG_META "}}}");
    int asks = accept(issuer, NULL, NULL);
    assert_true(recv(asks, request, sizeof(request), 0) > 0);
    reload(&self, NONCES(port, "100102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"));
    (void)send(asks, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
    close(asks);
    assert_int_equal(client_reply(&one), 503);
    client_close(&one);
    rig_close(&self);
    close(issuer); /* it was there when the rig counted descriptors */
}

static void from_elsewhere_the_address_must_be_said(void **state)
{
    (void)state;
    gateway_rig self;
    bay_diag diag = {.text = ""};
    char settings[2000];
    gateway_options asked = {.workers = 1, .listen = STR("0.0.0.0:0")};
    (void)snprintf(settings, sizeof(settings), "{" TIMES "'auth':{" ONE_ISSUER("") "}," SERVERS "}",
                   keys_path);
    assert_int_equal(rig_try(&self, settings, &asked, &diag), BAY_ERR_INVALID);
    assert_non_null(strstr(diag.text, "set publicUrl"));
    (void)snprintf(settings, sizeof(settings),
                   "{" TIMES
                   "'publicUrl':'https://gw.example/x','auth':{" ONE_ISSUER("") "}," SERVERS "}",
                   keys_path);
    assert_int_equal(rig_try(&self, settings, &asked, &diag), BAY_OK);
    wait_until(atomic_load(&self.started) == 1);
    said it = call(&self, "/mcp", "a.echo", token_with("https://gw.example/x/mcp", "", 60));
    expect(&it, 200, "good");
    it = call(&self, "/mcp", "a.echo", token_for(&self, "/mcp", ""));
    expect(&it, 401,
           "resource_metadata=\"https://gw.example/.well-known/oauth-protected-resource/x/"
           "mcp\"");
    static const char *const paths[] = {"/.well-known/oauth-protected-resource/x/mcp",
                                        "/.well-known/oauth-protected-resource/mcp"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        it = ask(&self, "GET", paths[i], "");
        expect(&it, 200, "\"resource\":\"https://gw.example/x/mcp\"");
    }
    rig_close(&self);
    /* a profile that anybody may use is no protection */
    (void)snprintf(settings, sizeof(settings),
                   "{" TIMES "'publicUrl':'https://gw.example','auth':{" ONE_ISSUER(
                       "") "},'profiles':{'p':{'servers':['a'],'auth':{'none':true}}}," SERVERS "}",
                   keys_path);
    assert_int_equal(rig_try(&self, settings, &asked, &diag), BAY_ERR_DENIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_brings_nothing_is_told_where_to_log_in),
        cmocka_unit_test(metadata_is_at_each_endpoint),
        cmocka_unit_test(a_token_is_good_where_it_is_for),
        cmocka_unit_test(a_token_that_can_be_read_in_two_ways_is_none),
        cmocka_unit_test(a_scope_that_everybody_needs_is_named),
        cmocka_unit_test(a_scope_that_one_call_needs_is_named),
        cmocka_unit_test(a_profile_may_demand_other_things),
        cmocka_unit_test(an_api_key_is_as_good_as_its_row),
        cmocka_unit_test(who_is_blocked_stays_out),
        cmocka_unit_test(streams_of_who_is_blocked_end),
        cmocka_unit_test(cards_declare_what_callers_bring),
        cmocka_unit_test(an_address_that_fails_often_waits),
        cmocka_unit_test(a_reload_changes_who_comes_in),
        cmocka_unit_test(keys_that_go_take_the_checks_that_need_them_along),
        cmocka_unit_test(from_elsewhere_the_address_must_be_said),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, write_keys, remove_files);
}
