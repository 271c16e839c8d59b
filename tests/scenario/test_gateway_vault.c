/* The gateway calls a server as each of its users, by what that user granted it there: rows of the
 * vault. Nothing of one user with another, whatever happens to the store. */
#include <openssl/evp.h> /* not in a build without it: its rows are sealed */
#include <sqlite3.h>     /* and nowhere to keep them */

#include "unit/auth/jose_rig.h" /* before what takes the word "fail" */

#include "auth/oauth_record.h"
#include "auth/vault.h"
#include "store/store.h"
#include "support/gateway_rig.h"

#include "support/login_server.h"
#include "support/token_callers.h"

#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define OTHER_KEY "f00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

enum { TEXT_BYTES = 16 << 10 };

static int baseline; /* descriptors before all */
static char store_path[64];

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct vault {
    loop *loop;
    store *rows;
    seal_ring *ring, *keys;
    bool is_done;
    bay_err err;
} vault;

static void on_done(void *user, const store_result *result)
{
    vault *self = user;
    self->is_done = true;
    self->err = result->err;
}

static void on_closed(void *user)
{
    ((vault *)user)->is_done = true;
}

static void await(vault *self)
{
    while (!self->is_done) {
        (void)loop_turn(self->loop, 20);
    }
    self->is_done = false;
}

static void vault_begin(vault *self, const char *key)
{
    unsigned char bytes[SEAL_KEY_BYTES];
    *self = (vault){0};
    assert_true(seal_key_read(str_of(key), bytes));
    assert_int_equal(seal_ring_new(&self->ring), BAY_OK);
    assert_int_equal(seal_ring_add(self->ring, (bay_str){(char *)bytes, sizeof(bytes)}), BAY_OK);
    assert_int_equal(vault_keys_new(self->ring, &self->keys), BAY_OK);
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    assert_int_equal(store_open_sqlite(self->loop, str_of(store_path), NULL, &self->rows, NULL),
                     BAY_OK);
}

static void vault_end(vault *self)
{
    store_close(self->rows, on_closed, self);
    await(self);
    store_free(self->rows);
    loop_free(self->loop);
    seal_ring_free(self->keys);
    seal_ring_free(self->ring);
}

static bay_str identity_of(const char *user, char out[200])
{
    principal_parts parts = {
        .proof = PRINCIPAL_TOKEN, .issuer = STR(CALLERS_ISSUER), .subject = str_of(user)};
    const auth_principal *who = NULL;
    assert_int_equal(principal_new(&parts, &who), BAY_OK);
    (void)snprintf(out, 200, "%.*s", BAY_STR(principal_identity(who)));
    principal_unref(who);
    return str_of(out);
}

/* What `user` granted at the server, in the row of `owner`. */
static void grant_in(vault *self, const login_server *at, const char *user, const char *owner,
                     bool is_due)
{
    char text[200], claims[100], token[400], refresh[64], name[VAULT_NAME_BYTES];
    char theirs[VAULT_NAME_BYTES];
    oauth_record record;
    buf payload, written, value;
    oauth_record_init(&record);
    buf_init(&payload, 1000);
    buf_init(&written, OAUTH_RECORD_BYTES);
    buf_init(&value, 2 * VAULT_PLAIN_BYTES);
    (void)snprintf(claims, sizeof(claims), "{\"sub\":\"%s\",\"epoch\":%d,\"n\":0}", user,
                   (int)at->epoch);
    base64_encode(&payload, str_of(claims), BASE64_URL);
    (void)snprintf(token, sizeof(token), "secret-access.%.*s.x", BAY_STR(buf_view(&payload)));
    (void)snprintf(refresh, sizeof(refresh), "secret-refresh-%s-1", user);
    assert_int_equal(oauth_text_set(&record.issuer, str_of(at->origin)), BAY_OK);
    assert_int_equal(oauth_text_set(&record.resource, str_of(at->url)), BAY_OK);
    assert_int_equal(oauth_text_set(&record.client_id, STR("client-1")), BAY_OK);
    assert_int_equal(oauth_text_set(&record.access, str_of(token)), BAY_OK);
    assert_int_equal(oauth_text_set(&record.refresh, str_of(refresh)), BAY_OK);
    record.is_registered = true;
    record.obtained_at_ms = loop_time_ms() - 10000;
    record.expires_at_ms = loop_time_ms() + (is_due ? 0 : 3600000);
    assert_int_equal(oauth_record_write(&record, &written), BAY_OK);
    vault_row row = {identity_of(user, text), STR("s"), buf_view(&written)};
    assert_int_equal(vault_name(self->keys, 0, row.identity, STR("s"), name), BAY_OK);
    assert_int_equal(vault_seal(self->keys, (bay_str){name, sizeof(name)}, &row, &value), BAY_OK);
    assert_int_equal(vault_name(self->keys, 0, identity_of(owner, text), STR("s"), theirs), BAY_OK);
    store_put_request request = {.table = STR(VAULT_TABLE),
                                 .key = {theirs, sizeof(theirs)},
                                 .value = buf_view(&value),
                                 .expected = STORE_ANY};
    assert_int_equal(store_put(self->rows, &request, on_done, self), BAY_OK);
    await(self);
    assert_int_equal(self->err, BAY_OK);
    buf_fini(&payload);
    buf_fini(&written);
    buf_fini(&value);
    oauth_record_fini(&record);
}

static void revoke_in(vault *self, const char *user)
{
    char text[200], name[VAULT_NAME_BYTES];
    assert_int_equal(vault_name(self->keys, 0, identity_of(user, text), STR("s"), name), BAY_OK);
    assert_int_equal(store_remove(self->rows, STR(VAULT_TABLE), (bay_str){name, sizeof(name)},
                                  STORE_ANY, on_done, self),
                     BAY_OK);
    await(self);
    assert_int_equal(self->err, BAY_OK);
}

/* ---- the gateway ----------------------------------------------------------------------------- */

typedef struct rig {
    gateway_rig gateway;
    login_server server;
} rig;

static void remove_store(void)
{
    char path[96];
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", store_path, ends[i]);
        unlink(path);
    }
}

static void begin(rig *self)
{
    (void)snprintf(store_path, sizeof(store_path), "/tmp/bay-vault.%d", (int)getpid());
    remove_store();
    callers_begin();
    baseline = rig_descriptors();
    self->server.asks_only_for_calls = true;
    login_server_start(&self->server);
}

static void open_gateway(rig *self, const char *keys, unsigned workers)
{
    char text[TEXT_BYTES];
    (void)snprintf(text, sizeof(text),
                   "{" CALLERS_AUTH "'store':'%s','keys':[%s],'timeouts':{'drain':'50ms'},"
                   "'mcpServers':{'s':{'url':'%s','credentials':{'grant':'user'}}}}",
                   callers_keys, store_path, keys, self->server.url);
    rig_open(&self->gateway, text, workers);
}

static void end(rig *self)
{
    login_server_stop(&self->server);
    self->gateway.descriptors = baseline;
    rig_close(&self->gateway);
    callers_end();
    remove_store();
    assert_int_equal(self->server.mixed, 0);
    assert_int_equal(self->server.leaks, 0);
    assert_int_equal(rig_log_count("secret-"), 0);
    assert_int_equal(rig_log_count("eyJ"), 0);
}

/* Does a call answer with `part`? */
static bool answers(const gateway_rig *to, const char *token, const char *part)
{
    client one;
    char fields[4096];
    client_open(&one, to);
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                   "Mcp-Name: s.who\r\nAuthorization: Bearer %s\r\n",
                   token);
    client_post(&one, "/mcp", fields,
                "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'s.who'," RIG_META
                "}}}");
    (void)client_reply(&one);
    bool has = client_find(&one, part) != NULL;
    client_close(&one);
    return has;
}

static void test_each_user_by_what_he_granted(void **state)
{
    (void)state;
    rig self = {.server = {.is_modern = true}};
    vault rows;
    const char *ann = token_of("ann", "");
    const char *bob = token_of("bob", "");
    self.server.secrets[0] = ann;
    self.server.secrets[1] = bob;
    begin(&self);
    vault_begin(&rows, KEY);
    grant_in(&rows, &self.server, "ann", "ann", false);
    open_gateway(&self, "'" KEY "'", 1);
    call_as(&self.gateway, ann, "you are ann");
    call_as(&self.gateway, bob, "\"patchbay/reason\":\"auth_expired\"");
    call_as(&self.gateway, bob, "patchbay login --for");
    grant_in(&rows, &self.server, "bob", "bob", false); /* he logs in */
    wait_until(answers(&self.gateway, bob, "you are bob"));
    call_as(&self.gateway, ann, "you are ann");
    assert_int_equal(call_at(&self.gateway, "/mcp", NULL, "WWW-Authenticate"), 401);
    vault_end(&rows);
    end(&self);
}

static void test_sessions_are_of_one_user(void **state)
{
    (void)state;
    rig self = {.server = {.expires_s = 3600}};
    vault rows;
    begin(&self);
    vault_begin(&rows, KEY);
    grant_in(&rows, &self.server, "ann", "ann", false);
    grant_in(&rows, &self.server, "bob", "bob", false);
    open_gateway(&self, "'" KEY "'", 1);
    call_as(&self.gateway, token_of("ann", ""), "you are ann");
    call_as(&self.gateway, token_of("bob", ""), "you are bob");
    call_as(&self.gateway, token_of("ann", ""), "you are ann");
    assert_int_equal(self.server.sessions, 3);
    vault_end(&rows);
    end(&self);
}

/* A row that was copied to another user's place, and one of keys that are gone, open nothing. */
static void test_rows_that_are_not_ours(void **state)
{
    (void)state;
    rig self = {.server = {.is_modern = true}};
    vault rows, others;
    begin(&self);
    vault_begin(&rows, KEY);
    vault_begin(&others, OTHER_KEY);
    grant_in(&rows, &self.server, "ann", "bob", false);
    grant_in(&others, &self.server, "ann", "ann", false);
    open_gateway(&self, "'" KEY "'", 1);
    call_as(&self.gateway, token_of("bob", ""), "auth_expired");
    call_as(&self.gateway, token_of("ann", ""), "auth_expired");
    assert_int_equal(self.server.calls, 0);
    vault_end(&rows);
    vault_end(&others);
    end(&self);
}

static void test_keys_are_rotated(void **state)
{
    (void)state;
    rig self = {.server = {.is_modern = true}};
    vault rows;
    begin(&self);
    vault_begin(&rows, KEY);
    grant_in(&rows, &self.server, "ann", "ann", true);
    self.server.refresh_number = 1;
    open_gateway(&self, "'" OTHER_KEY "','" KEY "'", 1);
    call_as(&self.gateway, token_of("ann", ""), "you are ann"); /* refreshed: sealed anew */
    assert_int_equal(self.server.refreshes, 1);
    vault_end(&rows);
    end(&self);
}

/* Each refresh token is good once: whoever needs the next one waits for the one who fetches it. */
static void test_one_refresh_for_all_workers(void **state)
{
    (void)state;
    rig self = {.server = {.is_modern = true}};
    vault rows;
    begin(&self);
    vault_begin(&rows, KEY);
    grant_in(&rows, &self.server, "ann", "ann", true);
    self.server.refresh_number = 1;
    open_gateway(&self, "'" KEY "'", 4);
    client ones[8];
    char fields[4096];
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                   "Mcp-Name: s.who\r\nAuthorization: Bearer %s\r\n",
                   token_of("ann", ""));
    for (size_t i = 0; i < ARRAY_LEN(ones); i++) {
        client_open(&ones[i], &self.gateway);
        client_post(
            &ones[i], "/mcp", fields,
            "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'s.who'," RIG_META
            "}}}");
    }
    for (size_t i = 0; i < ARRAY_LEN(ones); i++) {
        assert_int_equal(client_reply(&ones[i]), 200);
        assert_non_null(client_find(&ones[i], "you are ann"));
        client_close(&ones[i]);
    }
    assert_int_equal(self.server.refreshes, 1);
    assert_int_equal(self.server.reuses, 0);
    vault_end(&rows);
    end(&self);
}

static void test_what_is_revoked_ends(void **state)
{
    (void)state;
    rig self = {.server = {.is_modern = true}};
    vault rows;
    begin(&self);
    vault_begin(&rows, KEY);
    grant_in(&rows, &self.server, "ann", "ann", false);
    self.server.refresh_number = 1;
    open_gateway(&self, "'" KEY "'", 1);
    call_as(&self.gateway, token_of("ann", ""), "you are ann");
    /* at the server: one refresh, and no caller notices */
    self.server.epoch++;
    call_as(&self.gateway, token_of("ann", ""), "you are ann");
    assert_int_equal(self.server.refreshes, 1);
    /* … and once that is refused as well, within this request */
    self.server.epoch++;
    self.server.refresh_number = 100;
    call_as(&self.gateway, token_of("ann", ""), "auth_expired");
    /* in the vault: within VAULT_READ_MS */
    grant_in(&rows, &self.server, "bob", "bob", false);
    call_as(&self.gateway, token_of("bob", ""), "you are bob");
    revoke_in(&rows, "bob");
    wait_until(answers(&self.gateway, token_of("bob", ""), "auth_expired"));
    vault_end(&rows);
    end(&self);
}

/* The first loop of a process makes descriptors that stay. */
static int make_a_loop(void **state)
{
    loop *first = NULL;
    (void)state;
    if (loop_new(&first) != BAY_OK) {
        return -1;
    }
    loop_free(first);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_user_by_what_he_granted),
        cmocka_unit_test(test_sessions_are_of_one_user),
        cmocka_unit_test(test_rows_that_are_not_ours),
        cmocka_unit_test(test_keys_are_rotated),
        cmocka_unit_test(test_one_refresh_for_all_workers),
        cmocka_unit_test(test_what_is_revoked_ends),
    };
    return cmocka_run_group_tests(tests, make_a_loop, NULL);
}
