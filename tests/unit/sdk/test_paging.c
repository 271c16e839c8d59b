/* Lists in pages: every entry exactly once, cursors that only the list they were made for takes. */
#include "support/failing_memory.h"
#include "unit/sdk/sdk_bench.h"

enum { TOOLS = 10 };

static bay_tool *tools[TOOLS];

static bay_server *server_of(int count, int64_t page)
{
    bay_server *server = bay_server_new("s", "1");
    for (int i = 0; i < count; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "tool%d", i);
        tools[i] = bay_server_tool_schema(server, name, NULL, NULL, reply_ok, NULL);
    }
    bay_server_set(server, BAY_SERVER_SETTING_PAGE_SIZE, page);
    return server;
}

/* The cursor of an answer; false: it is the last page. */
static bool cursor_of(const char *said, char *into, size_t size)
{
    const char *at = strstr(said, "\"nextCursor\":\"");
    if (at == NULL) {
        return false;
    }
    at += strlen("\"nextCursor\":\"");
    size_t len = strcspn(at, "\"");
    assert_true(len > 0 && len < size);
    memcpy(into, at, len);
    into[len] = '\0';
    return true;
}

static const char *list_from(rig *on, const char *cursor)
{
    char params[128];
    (void)snprintf(params, sizeof(params), "\"cursor\":\"%s\"", cursor);
    return rig_ask(on, "tools/list", params);
}

static void refuse(rig *on, const char *cursor)
{
    assert_has(list_from(on, cursor), "\"error\":{\"code\":-32602,\"message\":\"Invalid cursor");
}

/* Walks all pages; returns their number. */
static int walk(rig *on, int entries)
{
    char cursor[64] = "";
    int seen = 0;
    int pages = 0;
    bool has_more = true;
    while (has_more) {
        const char *said = pages++ == 0 ? rig_ask(on, "tools/list", "") : list_from(on, cursor);
        for (const char *at = said; (at = strstr(at, "\"name\":\"tool")) != NULL; at++) {
            char wanted[32];
            (void)snprintf(wanted, sizeof(wanted), "\"name\":\"tool%d\"", seen++);
            assert_true(strncmp(at, wanted, strlen(wanted)) == 0);
        }
        has_more = cursor_of(said, cursor, sizeof(cursor));
        assert_true(pages <= entries + 1);
    }
    assert_int_equal(seen, entries);
    return pages;
}

static void cursors_of_nobodys_making_are_refused(void **state)
{
    (void)state;
    rig on;
    char cursor[64];
    rig_start(&on, server_of(TOOLS, 3));
    rig_client(&on, "2025-11-25");
    assert_true(cursor_of(rig_ask(&on, "tools/list", ""), cursor, sizeof(cursor)));
    static const char *const bad[] = {"",
                                      "3",
                                      "3-",
                                      "-",
                                      "3-0000000000000000",
                                      "zzz",
                                      "ffffffffff-0000000000000000",
                                      "-0000000000000000"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        refuse(&on, bad[i]);
    }
    for (size_t i = 0; i < strlen(cursor); i++) {
        char other[64];
        memcpy(other, cursor, sizeof(other));
        other[i] = other[i] == '1' ? '2' : '1';
        refuse(&on, other);
    }
    cursor[strlen(cursor) - 1] = '\0';
    refuse(&on, cursor);
    assert_has(rig_ask(&on, "tools/list", "\"cursor\":3"), "\"error\":{\"code\":-32602,");
    assert_has(rig_ask(&on, "tools/list", "\"cursor\":null"), "\"error\":{\"code\":-32602,");
    rig_stop(&on);
}

static void a_cursor_belongs_to_its_list(void **state)
{
    (void)state;
    rig on;
    char cursor[64];
    char params[128];
    bay_server *server = server_of(4, 2);
    for (int i = 0; i < 4; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "p%d", i);
        bay_server_prompt(server, name, NULL, NULL, reply_ok, NULL);
    }
    rig_start(&on, server);
    rig_client(&on, "2025-11-25");
    assert_true(cursor_of(rig_ask(&on, "tools/list", ""), cursor, sizeof(cursor)));
    (void)snprintf(params, sizeof(params), "\"cursor\":\"%s\"", cursor);
    assert_has(rig_ask(&on, "prompts/list", params), "\"error\":{\"code\":-32602,");
    rig_stop(&on);
}

static void pages_hold_everything_once(void **state)
{
    (void)state;
    static const struct {
        int entries;
        int64_t page;
        int pages;
    } cases[] = {{10, 0, 1}, {10, 1, 10}, {10, 3, 4},  {10, 5, 2},
                 {10, 9, 2}, {10, 10, 1}, {10, 11, 1}, {1, 1, 1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rig on;
        rig_start(&on, server_of(cases[i].entries, cases[i].page));
        for (size_t at = 0; at < ARRAY_LEN(all_revisions); at++) {
            rig_client(&on, all_revisions[at]);
            assert_int_equal(walk(&on, cases[i].entries), cases[i].pages);
        }
        rig_stop(&on);
    }
}

static void a_list_that_has_changed_is_begun_again(void **state)
{
    (void)state;
    rig on;
    char cursor[64];
    rig_start(&on, server_of(TOOLS, 3));
    rig_client(&on, "2025-11-25");
    assert_true(cursor_of(rig_ask(&on, "tools/list", ""), cursor, sizeof(cursor)));
    bay_tool_enable(tools[7], false);
    loop_turn(on.loop, 0);
    refuse(&on, cursor);
    assert_null(strstr(rig_ask(&on, "tools/list", ""), "tool7"));
    /* What is as it was before has the cursors that it had. */
    bay_tool_enable(tools[7], true);
    loop_turn(on.loop, 0);
    assert_has(list_from(&on, cursor), "\"name\":\"tool3\"");
    rig_stop(&on);
}

static void servers_with_the_same_registrations_agree(void **state)
{
    (void)state;
    rig on;
    char cursor[64];
    rig_start(&on, server_of(TOOLS, 4));
    rig_client(&on, "2026-07-28");
    assert_true(cursor_of(rig_ask(&on, "tools/list", ""), cursor, sizeof(cursor)));
    rig_stop(&on);
    rig_start(&on, server_of(TOOLS, 4));
    rig_client(&on, "2026-07-28");
    assert_has(list_from(&on, cursor), "\"name\":\"tool4\"");
    rig_stop(&on);
}

static void pages_survive_without_memory(void **state)
{
    (void)state;
    size_t listed = 0;
    for (size_t at = 0; failing_memory_start(at); at++) {
        rig on;
        bay_server *server = server_of(3, 2);
        bay_diag diag = {0};
        if (bay_server_check(server, &diag) != BAY_OK) {
            bay_server_free(server);
        } else if (rig_try_start(&on, server)) {
            wire_init(&on.way, &on.on);
            if (mcp_connection_open(on.server->engine, &on.way.carrier, &on.way.connection) ==
                BAY_OK) {
                on.revision = "2026-07-28";
                rig_send(&on, "tools/list", "", "");
                listed += strstr(last_event(&on.way), "nextCursor") != NULL;
            }
            rig_stop(&on);
        }
        failing_memory_check();
    }
    assert_true(listed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cursors_of_nobodys_making_are_refused),
        cmocka_unit_test(a_cursor_belongs_to_its_list),
        cmocka_unit_test(pages_hold_everything_once),
        cmocka_unit_test(a_list_that_has_changed_is_begun_again),
        cmocka_unit_test(servers_with_the_same_registrations_agree),
        cmocka_unit_test(pages_survive_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
