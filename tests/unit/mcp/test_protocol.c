/* The tables of the protocol: look-ups by name, revision and sender, and that the rows hold
 * together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "mcp/protocol.h"

static void unknown_names_are_not_found(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        "tools",
        "tools/calls",
        "Tools/call",
        "tools/call ",
        "unknown/method",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_null(mcp_method_find(str_of(names[i]), MCP_REV_2025_11_25, MCP_SENDER_EITHER));
    }
    assert_null(mcp_revision_find(STR("")));
    assert_null(mcp_revision_find(STR("2024-11-0")));
    assert_null(mcp_revision_find(STR("DRAFT-2026-v1")));
    mcp_log_level level = MCP_LOG_NONE;
    assert_false(mcp_log_level_find(STR("none"), &level));
    assert_false(mcp_log_level_find(STR("Debug"), &level));
    assert_int_equal(level, MCP_LOG_NONE);
}

static void methods_have_a_life(void **state)
{
    (void)state;
    assert_non_null(mcp_method_find(STR("initialize"), MCP_REV_2025_11_25, MCP_SENDER_CLIENT));
    assert_null(mcp_method_find(STR("initialize"), MCP_REV_2026_07_28, MCP_SENDER_CLIENT));
    assert_null(mcp_method_find(STR("server/discover"), MCP_REV_2025_11_25, MCP_SENDER_CLIENT));
    assert_non_null(mcp_method_find(STR("server/discover"), MCP_REV_2026_07_28, MCP_SENDER_CLIENT));
    assert_null(mcp_method_find(STR("elicitation/create"), MCP_REV_2025_03_26, MCP_SENDER_SERVER));
    assert_non_null(
        mcp_method_find(STR("elicitation/create"), MCP_REV_2025_06_18, MCP_SENDER_SERVER));
}

/* One text, two meanings: tasks of the core of 2025-11-25, and of the extension since. */
static void one_text_may_be_two_methods(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        mcp_revision_id revision;
        int id; /* -1: none */
    } rows[] = {
        {"tasks/get", MCP_REV_2025_06_18, -1},
        {"tasks/get", MCP_REV_2025_11_25, MCP_TASKS_LEGACY_GET},
        {"tasks/get", MCP_REV_2026_07_28, MCP_TASKS_GET},
        {"tasks/cancel", MCP_REV_2025_11_25, MCP_TASKS_LEGACY_CANCEL},
        {"tasks/cancel", MCP_REV_2026_07_28, MCP_TASKS_CANCEL},
        {"tasks/update", MCP_REV_2025_11_25, -1},
        {"tasks/update", MCP_REV_2026_07_28, MCP_TASKS_UPDATE},
        {"tasks/result", MCP_REV_2025_11_25, MCP_TASKS_RESULT},
        {"tasks/result", MCP_REV_2026_07_28, -1},
        {"tasks/list", MCP_REV_2025_11_25, MCP_TASKS_LIST},
        {"tasks/list", MCP_REV_2026_07_28, -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const mcp_method *found =
            mcp_method_find(str_of(rows[i].text), rows[i].revision, MCP_SENDER_CLIENT);
        assert_int_equal(found != NULL ? (int)found->id : -1, rows[i].id);
        assert_null(mcp_method_find(str_of(rows[i].text), rows[i].revision, MCP_SENDER_SERVER));
    }
}

static void methods_have_a_sender(void **state)
{
    (void)state;
    assert_null(mcp_method_find(STR("tools/call"), MCP_REV_2025_11_25, MCP_SENDER_SERVER));
    assert_null(mcp_method_find(STR("roots/list"), MCP_REV_2025_11_25, MCP_SENDER_CLIENT));
    assert_non_null(mcp_method_find(STR("ping"), MCP_REV_2024_11_05, MCP_SENDER_CLIENT));
    assert_non_null(mcp_method_find(STR("ping"), MCP_REV_2024_11_05, MCP_SENDER_SERVER));
}

static void every_row_is_found_by_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < MCP_METHOD_COUNT; i++) {
        const mcp_method *method = mcp_method_of((mcp_method_id)i);
        assert_int_equal(method->id, i);
        assert_true(method->since <= method->until);
        assert_ptr_equal(mcp_method_find(method->text, method->since, method->sender), method);
        assert_ptr_equal(mcp_method_find(method->text, method->until, method->sender), method);
        assert_int_equal(method->is_notification, str_starts(method->text, STR("notifications/")));
        for (int j = 0; j < i; j++) {
            const mcp_method *other = mcp_method_of((mcp_method_id)j);
            bool is_apart = method->since > other->until || method->until < other->since;
            assert_true(is_apart || !str_eq(method->text, other->text));
        }
    }
}

static void revisions_are_in_order(void **state)
{
    (void)state;
    for (int i = 0; i < MCP_REVISION_COUNT; i++) {
        const mcp_revision *revision = mcp_revision_of((mcp_revision_id)i);
        assert_ptr_equal(mcp_revision_find(revision->text), revision);
        assert_int_equal(revision->id, i);
        if (i > 0) {
            assert_true(str_cmp(mcp_revision_of((mcp_revision_id)(i - 1))->text, revision->text) <
                        0);
        }
    }
    assert_int_equal(mcp_revision_of(MCP_LATEST)->era, MCP_MODERN);
    assert_int_equal(mcp_revision_of(MCP_LATEST_LEGACY)->era, MCP_LEGACY);
    assert_true(mcp_revision_of(MCP_REV_2025_03_26)->batches);
}

static void levels_read_back(void **state)
{
    (void)state;
    for (int i = 0; i < MCP_LOG_NONE; i++) {
        mcp_log_level level = MCP_LOG_NONE;
        assert_true(mcp_log_level_find(mcp_log_level_text((mcp_log_level)i), &level));
        assert_int_equal(level, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_names_are_not_found),
        cmocka_unit_test(methods_have_a_life),
        cmocka_unit_test(one_text_may_be_two_methods),
        cmocka_unit_test(methods_have_a_sender),
        cmocka_unit_test(every_row_is_found_by_its_name),
        cmocka_unit_test(revisions_are_in_order),
        cmocka_unit_test(levels_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
