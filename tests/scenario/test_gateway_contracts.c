/* Contracts that a gateway runs by itself: when they run, what their failure does, and what it does not. The server is
 * this program (--definitions FILE). */
#include "support/definition_rig.h"

#define TIMES "'timeouts':{'drain':'200ms','terminate':'200ms','kill':'200ms'},"
#define HINTS ",\"annotations\":{\"readOnlyHint\":true}"
#define TOOL(name, more) "{\"name\":\"" name "\"" more "}"
#define TOOLS "\"tools\":[" TOOL("read", HINTS) "," TOOL("tell", "") "," TOOL("end", HINTS) "]"
#define GOOD "{" TOOLS ",\"answers\":{\"read\":\"a good answer\"}}"
#define BAD "{" TOOLS ",\"answers\":{\"read\":\"something else\"}}"
#define CONTRACT "server: d\ncontracts:\n  - {name: one, tool: read, expect: {text: good}}\n"

static char contracts[64];

static void write_contracts(const char *text)
{
    FILE *file = fopen(contracts, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char *settings_of(const char *more)
{
    static char text[8192];
    (void)snprintf(text, sizeof(text),
                   "{'admin':{'listen':['unix:%s']}," TIMES "'contracts':{'path':'%s'%s},"
                   "'mcpServers':{'d':{'command':'%s','args':['--definitions','%s'],"
                   "'restart':{'minDelay':'10ms','maxDelay':'10ms'}}}}",
                   socket_path, contracts, more, self_path, definitions);
    return text;
}

#define HOLD ",'mode':'hold','every':'1s'"
#define WARN ",'mode':'warn','every':'1s'"

static void start(gateway_rig *self, const char *more, uint32_t workers)
{
    rig_open(self, settings_of(more), workers);
    wait_until(atomic_load(&self->started) == 1);
}

static bool is_ready_saying(const gateway_rig *self, const char *part)
{
    client one;
    client_open(&one, self);
    assert_true(client_send(&one, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    (void)client_reply(&one);
    bool says = client_find(&one, part) != NULL;

    client_close(&one);
    return says;
}

#ifndef BAY_NO_TLS
static bool is_status_saying(const char *part)
{
    client one;
    assert_int_equal(ask_admin(&one, "GET", "/v1/status", ""), 200);
    bool says = client_find(&one, part) != NULL;
    client_close(&one);
    return says;
}
#endif

/* ---- what is wrong with the files ------------------------------------------------------------ */

static void a_file_that_is_wrong_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"server: e\ncontracts: []\n", "server must name one of mcpServers"},
        {"contracts: []\n", "server must name one of mcpServers"},
        {"server: d\ncontracts:\n  - {tool: read, expects: {}}\n", ":3: a contract has name"},
        {"server: d\ncontracts: [\n", "not valid YAML"},
    };
    write_definitions(GOOD);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        gateway_rig self;
        bay_diag diag = {0};
        gateway_options asked = {.workers = 1, .listen = STR("127.0.0.1:0")};
        write_contracts(cases[i].text);
        assert_int_equal(rig_make(&self, settings_of(WARN), &asked, &diag), BAY_ERR_INVALID);
        if (strstr(diag.text, cases[i].said) == NULL) {
            fail_msg("%s", diag.text);
        }
    }
    gateway_rig self;
    bay_diag diag = {0};
    gateway_options asked = {.workers = 1, .listen = STR("127.0.0.1:0")};
    (void)unlink(contracts);
    assert_int_equal(rig_make(&self, settings_of(WARN), &asked, &diag), BAY_ERR_IO);
    assert_int_equal(mkfifo(contracts, 0600), 0); /* nobody writes to it */
    assert_int_equal(rig_make(&self, settings_of(WARN), &asked, &diag), BAY_ERR_IO);
    (void)unlink(contracts);
}

#ifndef BAY_NO_TLS
static void a_reload_with_a_wrong_file_changes_nothing(void **state)
{
    (void)state;
    gateway_rig self;
    write_definitions(BAD);
    write_contracts(CONTRACT);
    start(&self, HOLD, 1);
    assert_false(is_tool(&self, "d.read"));
    write_contracts("server: d\ncontracts: {}\n");
    rig_ask_reload(&self);
    wait_until(rig_log_count("was not reloaded") == 1);
    assert_false(is_tool(&self, "d.read"));
    write_contracts(CONTRACT);
    rig_close(&self);
}
#endif

/* ---- when they run, and what comes of it ----------------------------------------------------- */

#ifndef BAY_NO_TLS
static void a_server_that_fails_is_held_until_it_passes(void **state)
{
    (void)state;
    gateway_rig self;
    write_definitions(BAD);
    write_contracts(CONTRACT);
    start(&self, HOLD, 2); /* lists went out after the first run */
    assert_false(is_tool(&self, "d.read"));
    assert_false(is_tool(&self, "d.tell"));
    expect_call(&self, "d.read", "Unknown tool: d.read");
    assert_int_equal(rig_log_count("d: 1 of 1 contracts fail: \"one\": no text block contains "
                                   "\"good\"; all its items are held until they hold"),
                     1);
    assert_true(is_ready_saying(&self, "\"status\":\"degraded\""));
    assert_true(is_ready_saying(&self, "\"contracts\":{\"holding\":0,\"failing\":1,\"held\":true,"
                                       "\"error\":\"\\\"one\\\": no text"));
    assert_true(is_status_saying("\"contracts\":{\"holding\":0,\"failing\":1,\"held\":true"));
    write_definitions(GOOD);
    wait_until(rig_log_count("d: all 1 contracts hold") == 1);
    wait_once(is_tool(&self, "d.read"));
    wait_once(is_answered(&self, "d.read", "a good answer"));
    wait_until(is_status_saying("\"holding\":1,\"failing\":0,\"held\":false}"));
    write_definitions(BAD);
    wait_until(rig_log_count("d: 1 of 1 contracts fail") == 2);
    wait_once(!is_tool(&self, "d.read"));
    rig_close(&self);
}
#endif

#ifndef BAY_NO_TLS
static void lists_wait_for_the_first_run(void **state)
{
    (void)state;
    gateway_rig self;
    write_definitions(GOOD);
    write_contracts(CONTRACT);
    start(&self, ",'mode':'hold'", 1);
    assert_true(is_tool(&self, "d.read"));
    assert_int_equal(rig_log_count("d: all 1 contracts hold"), 1);
    assert_true(is_ready_saying(&self, "\"status\":\"ready\""));
    rig_close(&self);
}
#endif

static void warn_shows_and_says(void **state)
{
    (void)state;
    gateway_rig self;
    write_definitions(BAD);
    write_contracts("server: d\ncontracts:\n"
                    "  - {name: one, tool: read, expect: {text: good}}\n"
                    "  - {name: two, tool: read, expect: {text: \"\\e[2J\"}}\n"
                    "  - {name: three, tool: tell}\n"
                    "  - {name: four, tool: gone}\n"
                    "  - {name: five, tool: read}\n");
    start(&self, WARN, 1);
    assert_true(is_tool(&self, "d.read"));
    wait_until(rig_log_count("d: 4 of 5 contracts fail: \"one\": no text block") == 1);
    assert_int_equal(rig_log_count("are held"), 0);
    assert_true(is_ready_saying(&self, "\"holding\":1,\"failing\":4,\"held\":false"));
    assert_true(is_ready_saying(&self, "\"status\":\"ready\""));
    expect_call(&self, "d.read", "something else");
    rig_close(&self);
}

/* A new session with the server, and a list of tools that changed: no timer is set. */
static void a_reconnect_and_a_change_run_them(void **state)
{
    (void)state;
    gateway_rig self;
    write_definitions(GOOD);
    write_contracts(CONTRACT);
    start(&self, ",'mode':'warn'", 1);
    wait_until(rig_log_count("d: all 1 contracts hold") == 1);
    write_definitions(BAD);
    (void)is_answered(&self, "d.end", ""); /* it ends during the call */
    wait_until(rig_log_count("d: 1 of 1 contracts fail") == 1);
    write_definitions("{\"tools\":[" TOOL("read", HINTS) "," TOOL("tell", "") "]}");
    tell(&self);
    wait_until(rig_log_count("no text block contains") == 1);
    write_definitions("{\"tools\":[" TOOL("tell", "") "]}");
    tell(&self);
    wait_until(rig_log_count("d: 1 of 1 contracts fail: \"one\": the server does not list") == 1);
    rig_close(&self);
}

/* It is not started again and again for the contract that ends it. */
static void a_contract_that_ends_the_server(void **state)
{
    (void)state;
    gateway_rig self;
    write_definitions(GOOD);
    write_contracts("server: d\ncontracts:\n  - {tool: end}\n  - {tool: read}\n");
    start(&self, ",'mode':'warn'", 1);
    wait_until(rig_log_count("d: 1 of 1 contracts fail: \"end\":") == 1);
    wait_until(is_ready_saying(&self, "\"restarts\":1"));
    wait_until(is_answered(&self, "d.read", "a good answer"));
    assert_true(is_ready_saying(&self, "\"restarts\":1"));
    rig_close(&self);
}

#ifndef BAY_NO_TLS
static void they_come_and_go_with_a_reload(void **state)
{
    (void)state;
    gateway_rig self;
    write_definitions(BAD);
    write_contracts(CONTRACT);
    start(&self, "", 2);
    wait_once(is_tool(&self, "d.read"));
    assert_int_equal(rig_log_count("contract:"), 0);
    reload(&self, settings_of(",'mode':'hold'"));
    wait_until(rig_log_count("d: 1 of 1 contracts fail") == 1);
    wait_once(!is_tool(&self, "d.read"));
    write_contracts("server: d\ncontracts:\n  - {name: one, tool: read, expect: {text: else}}\n");
    reload(&self, settings_of(",'mode':'hold'"));
    wait_until(rig_log_count("d: all 1 contracts hold") == 1);
    wait_once(is_tool(&self, "d.read"));
    write_contracts(CONTRACT);
    reload(&self, settings_of(",'mode':'hold'"));
    wait_once(!is_tool(&self, "d.read"));
    reload(&self, settings_of(",'mode':'off'"));
    wait_once(is_tool(&self, "d.read"));
    rig_close(&self);
}
#endif

#ifdef BAY_NO_TLS
/* What is held is compared by digests. */
static void to_hold_needs_digests(void **state)
{
    (void)state;
    gateway_rig self;
    bay_diag diag = {0};
    gateway_options asked = {.workers = 1, .listen = STR("127.0.0.1:0")};
    write_definitions(GOOD);
    write_contracts(CONTRACT);
    assert_int_equal(rig_make(&self, settings_of(HOLD), &asked, &diag), BAY_ERR_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "built without OpenSSL"));
}
#endif

static int open_folder(void **state)
{
    (void)state;
    rig_folder_open();
    (void)snprintf(contracts, sizeof(contracts), "%s/contracts.yaml", folder);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    (void)unlink(contracts);
    return rig_folder_close();
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--definitions") == 0) {
        return definition_server_run(argv[2]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_wrong_is_refused),
        cmocka_unit_test(warn_shows_and_says),
        cmocka_unit_test(a_reconnect_and_a_change_run_them),
        cmocka_unit_test(a_contract_that_ends_the_server),
#ifdef BAY_NO_TLS
        cmocka_unit_test(to_hold_needs_digests),
#else
        cmocka_unit_test(a_reload_with_a_wrong_file_changes_nothing),
        cmocka_unit_test(a_server_that_fails_is_held_until_it_passes),
        cmocka_unit_test(lists_wait_for_the_first_run),
        cmocka_unit_test(they_come_and_go_with_a_reload),
#endif
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
