/* Sealed session ids, the keys they are sealed with, and sessions in a store's file that engines
 * take up one after the other. */
#include "support/server_rig.h"

#if !defined(BAY_NO_TLS) && !defined(BAY_NO_SQLITE)
#include <sqlite3.h>
#endif

#include "sessions/keys.h"
#include "sessions/persister.h"
#include "support/people.h"

enum { ID_BYTES = 256 };

#define KEY_ONE "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define KEY_TWO "101112131415161718191a1b1c1d1e1f000102030405060708090a0b0c0d0e0f"

static const config *load(const char *text)
{
    const config *made = NULL;
    config_report *report = calloc(1, sizeof(*report));
    bay_err err = config_load_text(str_of(text), STR("t.yaml"), NULL, NULL, &made, report);
    if (err != BAY_OK) {
        fail_msg("%s", report->count > 0 ? report->messages[0].text : bay_err_text(err));
    }
    free(report);
    return made;
}

/* ---- keys */

static void a_bad_key_is_not_told_to_anybody(void **state)
{
    (void)state;
    const config *made = NULL;
    config_report *report = calloc(1, sizeof(*report));
    assert_int_equal(config_load_text(STR("keys: [" KEY_ONE ", hunter2]\nmcpServers: {}\n"),
                                      STR("t.yaml"), NULL, NULL, &made, report),
                     BAY_ERR_SYNTAX);
    assert_int_equal(report->errors, 1);
    assert_null(strstr(report->messages[0].text, "hunter2"));
    assert_non_null(strstr(report->messages[0].text, "number 2"));
    free(report);
}

#if !defined(BAY_NO_TLS) && !defined(BAY_NO_SQLITE)

static void expect_opens(const seal_ring *by, const seal_ring *sealed_by, bool opens)
{
    buf text;
    buf plain;
    buf_init(&text, 1024);
    buf_init(&plain, 1024);
    assert_int_equal(seal_value(sealed_by, STR("x"), STR("y"), 0, &text), BAY_OK);
    assert_int_equal(seal_open(by, buf_view(&text), STR("y"), 0, &plain),
                     opens ? BAY_OK : BAY_ERR_DENIED);
    buf_fini(&text);
    buf_fini(&plain);
}

static seal_ring *ring_of(const char *text)
{
    seal_ring *ring = NULL;
    bay_diag diag;
    const config *made = load(text);
    bay_err err = session_keys_open(made, &ring, &diag);
    if (err != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    config_free(made);
    return ring;
}

static void the_first_key_seals_and_all_open(void **state)
{
    (void)state;
    seal_ring *one = ring_of("keys: [" KEY_ONE "]\nmcpServers: {}\n");
    seal_ring *two = ring_of("keys: [" KEY_TWO "]\nmcpServers: {}\n");
    seal_ring *both = ring_of("keys: [" KEY_TWO ", " KEY_ONE "]\nmcpServers: {}\n");
    seal_ring *own = ring_of("mcpServers: {}\n");
    expect_opens(one, two, false);
    expect_opens(both, one, true);
    expect_opens(two, both, true);
    expect_opens(one, both, false);
    expect_opens(both, own, false);
    expect_opens(own, own, true);
    seal_ring_free(one);
    seal_ring_free(two);
    seal_ring_free(both);
    seal_ring_free(own);
}

/* ---- an endpoint's worth of gateway on a store ------------------------------------------------
 */

typedef struct bench {
    server_rig rig; /* first: its router's callbacks get it */
    const config *config;
    seal_ring *ring;
    session_store *store;
    session_persister *persister;
    uint32_t busy_ms; /* of the store; 0: the usual */
    char folder[64];
    char path[96];
} bench;

static front_verdict identify(void *user, const front_request *request,
                              const auth_principal **out_principal, front_refusal *out)
{
    bay_str who = http_exchange_field(request->exchange, STR("X-Who"));
    (void)user;
    (void)out;
    *out_principal = principal_ref(person_of(who));
    return FRONT_GO;
}

static bay_err session_lookup(void *user, mcp_server *engine, bay_str id,
                              const auth_principal *principal,
                              void (*done)(void *done_user, bay_err err), void *done_user)
{
    return session_persister_find(((bench *)user)->persister, engine, id, principal, done,
                                  done_user);
}

static void open_bench(bench *self, const char *endpoint)
{
    char text[512];
    bay_diag diag;
    if (self->folder[0] == '\0') {
        (void)snprintf(self->folder, sizeof(self->folder), "/tmp/patchbay-persister-XXXXXX");
        assert_non_null(mkdtemp(self->folder));
        (void)snprintf(self->path, sizeof(self->path), "%s/store", self->folder);
    }
    (void)snprintf(text, sizeof(text), "store: %s\nmcpServers: {}\n", self->path);
    self->config = load(text);
    assert_int_equal(session_keys_open(self->config, &self->ring, &diag), BAY_OK);
    rig_options options = {.front.is_loopback = true,
                           .router.session_lookup = session_lookup,
                           .front.identify = identify};
    rig_open(&self->rig, &options, 0);
    store *file = NULL;
    store_options patient = {.busy_ms = self->busy_ms};
    assert_int_equal(store_open_sqlite(self->rig.loop, str_of(self->path), &patient, &file, &diag),
                     BAY_OK);
    assert_int_equal(session_store_new(self->rig.loop, self->config, file, &self->store), BAY_OK);
    session_persister_options persister = {.endpoint = str_of(endpoint),
                                           .loop = self->rig.loop,
                                           .ring = self->ring,
                                           .store = self->store};
    assert_int_equal(session_persister_new(&persister, &self->persister), BAY_OK);
    mcp_server_free(self->rig.service.engine);
    mcp_server_options engine = {.name = STR("test"),
                                 .version = STR("1"),
                                 .oldest = MCP_REV_2024_11_05,
                                 .newest = MCP_LATEST,
                                 .persistence = &session_persister_ops,
                                 .persistence_user = self->persister};
    assert_int_equal(
        mcp_server_new(&engine, &test_service_table, &self->rig.service, &self->rig.service.engine),
        BAY_OK);
}

/* As a worker ends: what is written is waited for, then everything goes. */
static void close_bench(bench *self)
{
    server_rig *rig = &self->rig;
    session_store_flush(self->store, 10000);
    http_server_free(rig->http);
    front_free(rig->front);
    mcp_http_router_free(rig->router);
    while (rig->service.held_count > 0) {
        service_finish(&rig->service);
    }
    mcp_server_free(rig->service.engine);
    session_persister_free(self->persister);
    session_store_free(self->store);
    loop_free(rig->loop);
    seal_ring_free(self->ring);
    config_free(self->config);
}

static void forget_bench(bench *self)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), "%s%s", self->path, suffixes[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(self->folder), 0);
}

static uint16_t port_of(const bench *self)
{
    return http_server_port(self->rig.http);
}

static void begin(bench *self, const char *who, char id[ID_BYTES])
{
    wire_client client;
    char fields[256];
    (void)snprintf(fields, sizeof(fields), WIRE_JSON "X-Who: %s\r\n", who);
    wire_exchange(&client, self->rig.loop, port_of(self), "POST", "/mcp", fields, WIRE_INITIALIZE);
    assert_int_equal(client.status, 200);
    const char *at = strstr(client.head.at, "Mcp-Session-Id: ");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 16, "%255[0-9A-Za-z_-]", id), 1);
    assert_true(strlen(id) < 80);
    wire_close(&client);
}

static void say(bench *self, wire_client *client, const char *verb, const char *who, const char *id,
                const char *body)
{
    char fields[512];
    (void)snprintf(fields, sizeof(fields), "%sX-Who: %s\r\nMcp-Session-Id: %s\r\n",
                   body != NULL ? WIRE_JSON : "Accept: text/event-stream\r\n", who, id);
    wire_request(client, self->rig.loop, port_of(self), verb, "/mcp", fields, body);
}

#define PUMP_UNTIL(self, client, condition)                                                        \
    TURN_UNTIL((self)->rig.loop, wire_pump(client), condition)

static int ping(bench *self, const char *who, const char *id)
{
    wire_client client;
    say(self, &client, "POST", who, id, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}");
    PUMP_UNTIL(self, &client, client.is_complete);
    int status = client.status;
    wire_close(&client);
    return status;
}

static int end_session(bench *self, const char *who, const char *id)
{
    wire_client client;
    say(self, &client, "DELETE", who, id, NULL);
    PUMP_UNTIL(self, &client, client.status != 0);
    int status = client.status;
    wire_close(&client);
    return status;
}

static void nobody_asks_the_store_for_what_was_made_up(void **state)
{
    (void)state;
    bench self = {0};
    char id[ID_BYTES];
    open_bench(&self, "");
    begin(&self, "ann", id);
    close_bench(&self);
    open_bench(&self, "");
    static const char *const made_up[] = {
        "", "0-", "x", "0-AAAA", "ffffffff-AAAA", "0-0123456789abcdef0123456789abcdef"};
    for (size_t i = 0; i < ARRAY_LEN(made_up); i++) {
        int status = ping(&self, "ann", made_up[i]);
        assert_int_equal(status, 404);
    }
    assert_int_equal(ping(&self, "bob", id), 404);
    assert_int_equal(ping(&self, "", id), 404);
    for (size_t i = 2; i < strlen(id); i++) {
        char forged[ID_BYTES];
        memcpy(forged, id, sizeof(forged));
        forged[i] = forged[i] == 'A' ? 'B' : 'A';
        assert_int_equal(ping(&self, "ann", forged), 404);
        memcpy(forged, id, sizeof(forged));
        forged[i] = '\0';
        assert_int_equal(ping(&self, "ann", forged), 404);
    }
    assert_int_equal(session_persister_searches(self.persister), 0);
    close_bench(&self);

    open_bench(&self, "files"); /* the same store, another endpoint */
    assert_int_equal(ping(&self, "ann", id), 404);
    assert_int_equal(session_persister_searches(self.persister), 0);
    close_bench(&self);

    open_bench(&self, "");
    assert_int_equal(ping(&self, "ann", id), 200);
    assert_int_equal(session_persister_searches(self.persister), 1);
    assert_int_equal(ping(&self, "bob", id), 404); /* held, and not his */
    close_bench(&self);
    forget_bench(&self);
}

/* The loop's number stands before the sealed part: another one makes another id, not another copy
 * of the session. */
static void a_session_has_one_id(void **state)
{
    (void)state;
    bench self = {0};
    char id[ID_BYTES];
    char other[ID_BYTES + 8];
    open_bench(&self, "");
    begin(&self, "", id);
    (void)snprintf(other, sizeof(other), "1%s", id);
    assert_int_equal(ping(&self, "", other), 404);
    assert_int_equal(mcp_server_session_count(self.rig.service.engine), 1);
    close_bench(&self);
    open_bench(&self, "");
    assert_int_equal(ping(&self, "", other), 404);
    assert_int_equal(ping(&self, "", id), 200);
    assert_int_equal(mcp_server_session_count(self.rig.service.engine), 1);
    close_bench(&self);
    forget_bench(&self);
}

/* What is kept of a session may be large: it is read once for all who wait for it. */
static void many_who_look_for_one_session_search_once(void **state)
{
    (void)state;
    enum { MANY = 12 };
    bench self = {0};
    char id[ID_BYTES];
    wire_client clients[MANY];
    open_bench(&self, "");
    begin(&self, "", id);
    close_bench(&self);
    open_bench(&self, "");
    for (int i = 0; i < MANY; i++) {
        say(&self, &clients[i], "POST", "", id,
            "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}");
    }
    wire_close(&clients[MANY - 1]); /* may be gone before it is found */
    for (int i = 0; i < MANY - 1; i++) {
        PUMP_UNTIL(&self, &clients[i], clients[i].is_complete);
        assert_int_equal(clients[i].status, 200);
        wire_close(&clients[i]);
    }
    assert_int_equal(mcp_server_session_count(self.rig.service.engine), 1);
    assert_int_equal(session_persister_searches(self.persister), 1);
    close_bench(&self);
    forget_bench(&self);
}

static void what_ended_stays_ended(void **state)
{
    (void)state;
    bench self = {0};
    char held[ID_BYTES];
    char found[ID_BYTES];
    open_bench(&self, "");
    begin(&self, "", held);
    begin(&self, "", found);
    assert_int_equal(end_session(&self, "", held), 204);
    assert_int_equal(ping(&self, "", held), 404);
    close_bench(&self);
    open_bench(&self, "");
    assert_int_equal(ping(&self, "", held), 404);
    assert_int_equal(end_session(&self, "", found), 204); /* recalled to be ended */
    assert_int_equal(session_persister_searches(self.persister), 2);
    close_bench(&self);
    open_bench(&self, "");
    assert_int_equal(ping(&self, "", found), 404);
    close_bench(&self);
    forget_bench(&self);
}

static void other_keys_end_sessions(void **state)
{
    (void)state;
    bench self = {0};
    char id[ID_BYTES];
    seal_ring *other = NULL;
    open_bench(&self, "");
    begin(&self, "", id);
    assert_int_equal(seal_ring_new(&other), BAY_OK);
    assert_int_equal(seal_ring_generate(other), BAY_OK);
    session_persister_set_ring(self.persister, self.ring, self.rig.service.engine);
    assert_int_equal(ping(&self, "", id), 200);
    session_persister_set_ring(self.persister, other, self.rig.service.engine);
    assert_int_equal(ping(&self, "", id), 404);
    assert_int_equal(mcp_server_session_count(self.rig.service.engine), 0);
    assert_int_equal(session_persister_searches(self.persister), 0);
    close_bench(&self);
    seal_ring_free(other);
    open_bench(&self, ""); /* gone from the store, too */
    assert_int_equal(ping(&self, "", id), 404);
    close_bench(&self);
    forget_bench(&self);
}

/* Two requests look for the same session; one of them is there to end it. */
static void a_session_that_ends_while_it_is_looked_for_is_over(void **state)
{
    (void)state;
    bench self = {0};
    char id[ID_BYTES];
    wire_client first;
    wire_client second;
    wire_client third;
    open_bench(&self, "");
    begin(&self, "", id);
    close_bench(&self);
    open_bench(&self, "");
    say(&self, &first, "DELETE", "", id, NULL);
    say(&self, &second, "POST", "", id, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}");
    say(&self, &third, "POST", "", id, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}");
    PUMP_UNTIL(&self, &first, first.status != 0);
    PUMP_UNTIL(&self, &second, second.is_complete);
    PUMP_UNTIL(&self, &third, third.is_complete);
    assert_int_equal(first.status, 204);
    assert_true(second.status == 404 || second.status == 200);
    wire_close(&first);
    wire_close(&second);
    wire_close(&third);
    assert_int_equal(ping(&self, "", id), 404);
    assert_int_equal(mcp_server_session_count(self.rig.service.engine), 0);
    close_bench(&self);
    forget_bench(&self);
}

/* Another process holds the file: streams begin all the same. */
static void a_locked_store_keeps_no_stream_waiting(void **state)
{
    (void)state;
    bench self = {.busy_ms = 600000};
    char id[ID_BYTES];
    wire_client call;
    sqlite3 *other = NULL;
    open_bench(&self, "");
    begin(&self, "", id);
    session_store_flush(self.store, 10000);
    assert_int_equal(sqlite3_open(self.path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    say(&self, &call, "POST", "", id,
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":"
        "\"progress\",\"_meta\":{\"progressToken\":1}}}");
    PUMP_UNTIL(&self, &call, call.is_complete);
    assert_int_equal(call.status, 200);
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    wire_close(&call);
    close_bench(&self);
    forget_bench(&self);
}

static void a_search_may_outlive_everything(void **state)
{
    (void)state;
    bench self = {0};
    char id[ID_BYTES];
    wire_client client;
    open_bench(&self, "");
    begin(&self, "", id);
    close_bench(&self);
    open_bench(&self, "");
    say(&self, &client, "POST", "", id, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}");
    PUMP_UNTIL(&self, &client, session_persister_searches(self.persister) == 1);
    http_server_free(self.rig.http);
    front_free(self.rig.front);
    mcp_http_router_free(self.rig.router);
    mcp_server_free(self.rig.service.engine);
    session_persister_free(self.persister);
    session_store_free(self.store);
    loop_free(self.rig.loop);
    seal_ring_free(self.ring);
    config_free(self.config);
    wire_close(&client);
    forget_bench(&self);
}

static void the_stores_key_is_made_once(void **state)
{
    (void)state;
    bench self = {0};
    open_bench(&self, "");
    seal_ring *again = NULL;
    bay_diag diag;
    assert_int_equal(session_keys_open(self.config, &again, &diag), BAY_OK);
    expect_opens(again, self.ring, true);
    seal_ring_free(again);
    close_bench(&self);
    forget_bench(&self);
}

static void a_store_that_cannot_be_is_said(void **state)
{
    (void)state;
    bay_diag diag = {0};
    seal_ring *ring = NULL;
    const config *made = load("store: /no/such/folder/store\nmcpServers: {}\n");
    assert_int_equal(session_keys_open(made, &ring, &diag), BAY_ERR_NOT_FOUND);
    assert_int_not_equal(diag.text[0], '\0');
    assert_null(ring);
    config_free(made);
}

#else

static void what_cannot_be_kept_is_refused(void **state)
{
    (void)state;
    seal_ring *ring = NULL;
    session_store *kept = NULL;
    bay_diag diag = {0};
    loop *on;
    assert_int_equal(loop_new(&on), BAY_OK);
    const config *made = load("store: /tmp/patchbay-never\nmcpServers: {}\n");
    bay_err keys = session_keys_open(made, &ring, &diag);
    bay_err rows = session_store_open(on, made, &kept, &diag);
    assert_true(keys == BAY_ERR_UNSUPPORTED || rows == BAY_ERR_UNSUPPORTED);
    assert_int_not_equal(diag.text[0], '\0');
    session_store_free(kept);
    seal_ring_free(ring);
    config_free(made);
    loop_free(on);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_key_is_not_told_to_anybody),
#if !defined(BAY_NO_TLS) && !defined(BAY_NO_SQLITE)
        cmocka_unit_test(the_first_key_seals_and_all_open),
        cmocka_unit_test(nobody_asks_the_store_for_what_was_made_up),
        cmocka_unit_test(a_session_has_one_id),
        cmocka_unit_test(many_who_look_for_one_session_search_once),
        cmocka_unit_test(what_ended_stays_ended),
        cmocka_unit_test(other_keys_end_sessions),
        cmocka_unit_test(a_session_that_ends_while_it_is_looked_for_is_over),
        cmocka_unit_test(a_locked_store_keeps_no_stream_waiting),
        cmocka_unit_test(a_search_may_outlive_everything),
        cmocka_unit_test(the_stores_key_is_made_once),
        cmocka_unit_test(a_store_that_cannot_be_is_said),
#else
        cmocka_unit_test(what_cannot_be_kept_is_refused),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
