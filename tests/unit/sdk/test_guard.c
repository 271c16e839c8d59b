/* Who may call a server of the library: tokens by an issuer's keys, API keys, scopes of everybody and of
 * one tool; what handlers learn of the caller; and what a guard does not take. */
#include <openssl/evp.h> /* without it there is nothing to verify with */

#include "unit/auth/jose_rig.h" /* before what takes the word "fail" */

#include "patchbay/guard.h"
#include "sdk/serving.h"
#include "support/server_rig.h"

#define ISSUER "https://issuer.example"
#define PUBLIC "https://rs.example"
#define KEYS                                                                                       \
    "{\"keys\":[{\"kid\":\"k1\",\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X                \
    "\",\"y\":\"" RIG_EC_Y "\"}]}"
#define KEY "pbk_0011223344556677_aSecretOf16BytesAndMore"

enum { FIELDS_BYTES = 16 << 10 };

typedef struct served {
    bay_server *server;
    loop *loop;
    uint16_t port;
} served;

/* ---- the server ------------------------------------------------------------------------------ */

static void tell_who(bay_call *call, void *user)
{
    (void)user;
    bay_call_replyf(call, "%.*s|%.*s|%.*s|%.*s|%.*s|%d", BAY_STR(bay_call_principal(call)),
                    BAY_STR(bay_call_issuer(call)), BAY_STR(bay_call_client(call)),
                    BAY_STR(bay_call_scopes(call)), BAY_STR(bay_call_claim(call, "/email")),
                    bay_call_has_scope(call, "notes.read"));
}

static bool anybody(bay_peer *peer, void *user)
{
    (void)peer;
    (void)user;
    return true;
}

static bay_guard *guard_new(const char *url)
{
    bay_guard *guard = bay_guard_new(url);
    bay_guard_issuer(guard, ISSUER, KEYS);
    bay_guard_audience(guard, ISSUER, "api://other-name");
    bay_guard_api_key(guard, KEY, "ci", "notes.read use");
    return guard;
}

static void serve(served *self, bay_guard *guard)
{
    bay_diag diag = {.text = ""};
    self->server = bay_server_new("s", "1");
    bay_server_tool_schema(self->server, "who", NULL, NULL, tell_who, NULL);
    bay_tool *notes = bay_server_tool_schema(self->server, "notes", NULL, NULL, tell_who, NULL);
    bay_tool_scope(notes, "notes.read notes.list");
    bay_server_guard(self->server, guard);
    bay_guard_free(guard);
    if (bay_server_listen(self->server, "127.0.0.1:0", &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    self->loop = sdk_serving_loop(self->server);
    self->port = bay_server_port(self->server);
}

/* ---- clients --------------------------------------------------------------------------------- */

static const char *bearer(const char *audience, const char *more)
{
    static char text[FIELDS_BYTES];
    char payload[1000];
    EVP_PKEY *key = rig_ec_key();
    buf token;
    long long now = (long long)(loop_time_ms() / 1000);
    buf_init(&token, RIG_TEXT);
    snprintf(payload, sizeof(payload),
             "{\"iss\":\"" ISSUER "\",\"sub\":\"ann\",\"aud\":\"%s\",\"iat\":%lld,\"exp\":%lld,"
             "\"client_id\":\"c1\",\"email\":\"ann@x.example\"%s}",
             audience, now - 10, now + 60, more);
    rig_token(key, "{\"alg\":\"ES256\",\"kid\":\"k1\"}", payload, &token);
    snprintf(text, sizeof(text), "Authorization: Bearer %.*s\r\n", (int)token.len, token.at);
    buf_fini(&token);
    EVP_PKEY_free(key);
    return text;
}

static void call(served *self, wire_client *client, const char *path, const char *tool,
                 const char *fields)
{
    char all[FIELDS_BYTES];
    char body[600];
    snprintf(all, sizeof(all),
             WIRE_JSON "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                       "Mcp-Name: %s\r\n%s",
             tool, fields);
    snprintf(body, sizeof(body),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
             "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
             "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"c\",\"version\":\"1\"},"
             "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
             tool);
    wire_exchange(client, self->loop, self->port, "POST", path, all, body);
}

static void expect_body(wire_client *client, int status, const char *part)
{
    if (client->status != status || !wire_body_has(client, part)) {
        print_error("wanted %d %s\ncame %d %.*s\n%.*s\n", status, part, client->status,
                    (int)client->head.len, client->head.at, (int)client->body.len, client->body.at);
    }
    assert_int_equal(client->status, status);
    assert_true(wire_body_has(client, part));
    wire_close(client);
}

static void expect_head(wire_client *client, int status, const char *part)
{
    if (client->status != status || !wire_head_has(client, part)) {
        print_error("wanted %d %s\ncame %d %.*s\n", status, part, client->status,
                    (int)client->head.len, client->head.at);
    }
    assert_int_equal(client->status, status);
    assert_true(wire_head_has(client, part));
    wire_close(client);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void who_may_not_come_in_is_told_how(void **state)
{
    (void)state;
    served self;
    wire_client client;
    serve(&self, guard_new(PUBLIC));
    call(&self, &client, "/mcp", "who", "");
    expect_head(&client, 401,
                "WWW-Authenticate: Bearer resource_metadata=\"" PUBLIC
                "/.well-known/oauth-protected-resource/mcp\"\r\n");
    call(&self, &client, "/", "who", "");
    expect_head(&client, 401,
                "resource_metadata=\"" PUBLIC "/.well-known/oauth-protected-resource\"\r\n");
    call(&self, &client, "/mcp", "who", "Authorization: Bearer a.b.c\r\n");
    expect_head(&client, 401, "error=\"invalid_token\"");
    call(&self, &client, "/mcp", "who", bearer("https://other.example/mcp", ""));
    expect_head(&client, 401, "error=\"invalid_token\"");
    call(&self, &client, "/mcp", "who", "X-API-Key: pbk_0011223344556677_anotherSecretOfMine\r\n");
    expect_head(&client, 401, "error=\"invalid_token\"");
    wire_exchange(&client, self.loop, self.port, "GET", "/sse", "Accept: text/event-stream\r\n",
                  NULL);
    expect_head(&client, 401, "WWW-Authenticate: Bearer ");
    wire_exchange(&client, self.loop, self.port, "GET", "/.well-known/oauth-protected-resource/mcp",
                  "", NULL);
    expect_body(&client, 200,
                "{\"resource\":\"" PUBLIC "/mcp\",\"authorization_servers\":[\"" ISSUER "\"]");
    wire_exchange(&client, self.loop, self.port, "GET", "/.well-known/oauth-protected-resource", "",
                  NULL);
    expect_body(&client, 200, "{\"resource\":\"" PUBLIC "\",");
    wire_exchange(&client, self.loop, self.port, "GET",
                  "/.well-known/oauth-protected-resource/other", "", NULL);
    expect_head(&client, 404, "HTTP/1.1 404");
    bay_server_free(self.server);
}

static void handlers_learn_who_calls(void **state)
{
    (void)state;
    served self;
    wire_client client;
    serve(&self, guard_new(PUBLIC));
    call(&self, &client, "/mcp", "who", bearer(PUBLIC "/mcp", ",\"scope\":\"use notes.read\""));
    expect_body(&client, 200, "ann|" ISSUER "|c1|use notes.read|\\\"ann@x.example\\\"|1");
    call(&self, &client, "/mcp", "who", bearer("api://other-name", ""));
    expect_body(&client, 200, "ann|" ISSUER "|c1||\\\"ann@x.example\\\"|0");
    call(&self, &client, "/mcp", "who", bearer(PUBLIC, ""));
    expect_body(&client, 200, "ann|" ISSUER);
    call(&self, &client, "/mcp", "who", "X-API-Key: " KEY "\r\n");
    expect_body(&client, 200, "ci|||notes.read use||1");
    call(&self, &client, "/mcp", "who", "Authorization: bearer " KEY "\r\n");
    expect_body(&client, 200, "ci|||notes.read use||1");
    bay_server_free(self.server);
}

static void a_tool_needs_its_scopes(void **state)
{
    static const char *const lacking[] = {"", ",\"scope\":\"notes.read\"",
                                          ",\"scope\":\"notes.readonly notes.list\"",
                                          ",\"scope\":\"notes.read notes.lists\""};
    (void)state;
    served self;
    wire_client client;
    serve(&self, guard_new(PUBLIC));
    for (size_t i = 0; i < ARRAY_LEN(lacking); i++) {
        call(&self, &client, "/mcp", "notes", bearer(PUBLIC "/mcp", lacking[i]));
        assert_true(wire_body_has(&client, "\"patchbay/reason\":\"insufficient_scope\""));
        assert_false(wire_head_has(&client, "\r\nAllow:"));
        expect_head(&client, 403,
                    "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"notes.read "
                    "notes.list\", resource_metadata=\"" PUBLIC
                    "/.well-known/oauth-protected-resource/mcp\"\r\n");
    }
    call(&self, &client, "/mcp", "notes",
         bearer(PUBLIC "/mcp", ",\"scope\":\"notes.list notes.read\""));
    expect_body(&client, 200, "ann|");
    bay_server_free(self.server);
}

/* A scope of a session's client is looked at call by call. */
static void clients_of_sessions_are_challenged_as_well(void **state)
{
    (void)state;
    served self;
    wire_client client;
    char fields[FIELDS_BYTES];
    serve(&self, guard_new(PUBLIC));
    snprintf(fields, sizeof(fields), WIRE_JSON "%s", bearer(PUBLIC "/mcp", ""));
    wire_exchange(&client, self.loop, self.port, "POST", "/mcp", fields,
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                  "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":"
                  "\"c\",\"version\":\"1\"}}}");
    assert_int_equal(client.status, 200);
    char *at = memmem(client.head.at, client.head.len, "Mcp-Session-Id: ", 16);
    assert_non_null(at);
    snprintf(fields, sizeof(fields), WIRE_JSON "MCP-Protocol-Version: 2025-11-25\r\n%.*s\r\n%s",
             (int)strcspn(at, "\r"), at, bearer(PUBLIC "/mcp", ""));
    wire_close(&client);
    wire_exchange(&client, self.loop, self.port, "POST", "/mcp", fields,
                  "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"
                  "\"notes\"}}");
    expect_head(&client, 403, "error=\"insufficient_scope\"");
    bay_server_free(self.server);
}

static void the_addresses_listened_on_will_do(void **state)
{
    (void)state;
    served self;
    wire_client client;
    char audience[100];
    serve(&self, guard_new(NULL));
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(audience, sizeof(audience), "http://%s:%u/mcp", names[i], self.port);
        call(&self, &client, "/mcp", "who", bearer(audience, ""));
        expect_body(&client, 200, "ann|");
    }
    call(&self, &client, "/mcp", "who", bearer("http://127.0.0.1:1/mcp", ""));
    expect_head(&client, 401, "invalid_token");
    bay_server_free(self.server);
}

/* A token for "localhost" of another machine would be one for this one. */
static void from_elsewhere_the_address_must_be_said(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bay_diag diag = {.text = ""};
        bay_server *server = bay_server_new("s", "1");
        bay_guard *guard = i == 3 ? bay_guard_new(NULL) : guard_new(i == 0 ? NULL : PUBLIC);
        if (i == 3) { /* keys are for no address */
            bay_guard_api_key(guard, KEY, "ci", NULL);
        }
        bay_server_guard(server, guard);
        bay_guard_free(guard);
        assert_int_equal(bay_server_listen(server, i == 1 ? "127.0.0.1:0" : "0.0.0.0:0", &diag),
                         i == 0 ? BAY_ERR_INVALID : BAY_OK);
        assert_true(i != 0 || strstr(diag.text, "set bay_guard_new's public_url") != NULL);
        bay_server_free(server);
    }
}

static void everybody_may_need_a_scope(void **state)
{
    (void)state;
    served self;
    wire_client client;
    bay_guard *guard = guard_new(PUBLIC);
    bay_guard_scopes(guard, "use");
    serve(&self, guard);
    call(&self, &client, "/mcp", "who", bearer(PUBLIC "/mcp", ""));
    expect_head(&client, 403, "error=\"insufficient_scope\", scope=\"use\"");
    call(&self, &client, "/mcp", "who", bearer(PUBLIC "/mcp", ",\"scope\":\"use\""));
    expect_body(&client, 200, "ann|");
    bay_server_free(self.server);
}

/* Nothing serves with a guard that is not as it was meant. */
static void mistakes_keep_a_server_from_serving(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        static const char *const texts[] = {
            "bay_guard: ",
            "https://host",
            "the issuer was named before",
            "no such issuer",
            "a key is pbk_ID_SECRET",
            "the key has no name",
            "there is a key with that ID",
            "cannot be read",
            "client id and client secret are wanted",
            "bay_server_guard and bay_server_identify",
            "the server has a guard",
            "\"/dev/zero\" cannot be read: it is too long",
        };
        bay_diag diag = {.text = ""};
        bay_server *server = bay_server_new("s", "1");
        bay_guard *guard = i == 1 ? bay_guard_new("https://rs.example/") : bay_guard_new(PUBLIC);
        bay_guard_issuer(guard, i == 0 ? "no address" : ISSUER, i == 0 ? NULL : KEYS);
        if (i == 2) {
            bay_guard_issuer(guard, ISSUER, KEYS);
        } else if (i == 3) {
            bay_guard_audience(guard, "https://x.example", "a");
        } else if (i == 4) {
            bay_guard_api_key(guard, "pbk_1_short", "n", NULL);
        } else if (i == 5) {
            bay_guard_api_key(guard, KEY, "", NULL);
        } else if (i == 6) {
            bay_guard_api_key(guard, KEY, "a", NULL);
            bay_guard_api_key(guard, KEY, "b", NULL);
        } else if (i == 7) {
            bay_guard_issuer(guard, "https://x.example", "/nowhere/keys.json");
        } else if (i == 8) {
            bay_guard_introspection(guard, ISSUER, "a", "");
        } else if (i == 11) {
            bay_guard_issuer(guard, "https://x.example", "/dev/zero");
        }
        if (i == 9) {
            bay_server_identify(server, anybody, NULL);
        }
        bay_server_guard(server, guard);
        if (i == 10) {
            bay_server_guard(server, guard);
        }
        bay_guard_free(guard);
        assert_int_equal(bay_server_check(server, &diag), BAY_ERR_INVALID);
        if (strstr(diag.text, texts[i]) == NULL) {
            fail_msg("%d: wanted %s, came %s", i, texts[i], diag.text);
        }
        bay_server_free(server);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_not_come_in_is_told_how),
        cmocka_unit_test(handlers_learn_who_calls),
        cmocka_unit_test(a_tool_needs_its_scopes),
        cmocka_unit_test(clients_of_sessions_are_challenged_as_well),
        cmocka_unit_test(the_addresses_listened_on_will_do),
        cmocka_unit_test(from_elsewhere_the_address_must_be_said),
        cmocka_unit_test(everybody_may_need_a_scope),
        cmocka_unit_test(mistakes_keep_a_server_from_serving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
