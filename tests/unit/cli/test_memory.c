/* Every lack of memory: what commands read and write either comes out whole or says that it did
 * not, and everything is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "cli/content.h"
#include "cli/inventory.h"
#include "cli/pairs.h"
#include "cli/steps.h"
#include "support/failing_memory.h"

static const output file = {.is_terminal = false};

static const char expected_list[] = "2 tools, 34 tokens · 1 prompt · 2025-11-25, stdio\n"
                                    "\n"
                                    "  a  17 tok  The first.\n"
                                    "  b  17 tok  The second.\n"
                                    "\n"
                                    "prompts\n"
                                    "  greet  who, [when]  greet\n";

static cli_exit fetch(void *user, json_val params, cli_answer *out)
{
    const char *const *results = user;
    json_doc doc;
    arena memory;
    bool is_first = str_eq(json_raw(params), STR("{}"));
    arena_init(&memory, 1 << 20);
    bay_err err = json_parse(&doc, str_of(results[is_first ? 0 : 1]), NULL, &memory, NULL);
    if (err == BAY_OK) {
        mcp_outcome outcome = {.kind = MCP_OUTCOME_RESULT, .result = json_root(&doc)};
        cli_answer_keep(out, &outcome);
        err = out->err;
    }
    arena_fini(&memory);
    return err == BAY_OK ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

static cli_exit fill(cli_inventory *self)
{
    static const char *tools[] = {
        "{\"tools\":[{\"name\":\"a\",\"description\":\"The first.\",\"inputSchema\":{\"type\":"
        "\"object\"}}],\"nextCursor\":\"next\"}",
        "{\"tools\":[{\"name\":\"b\",\"description\":\"The second.\",\"inputSchema\":{\"type\":"
        "\"object\"},\"x\":[1]}]}"};
    static const char *prompts[] = {
        "{\"prompts\":[{\"name\":\"greet\",\"arguments\":[{\"name\":\"who\",\"required\":true},"
        "{\"name\":\"when\"}]}]}"};
    self->has[CLI_LIST_TOOLS] = self->has[CLI_LIST_PROMPTS] = true;
    self->revision = STR("2025-11-25");
    self->transport = "stdio";
    cli_exit code = cli_pages_fetch(&self->lists[CLI_LIST_TOOLS], STR("tools"), fetch, tools);
    return code != CLI_EXIT_OK
               ? code
               : cli_pages_fetch(&self->lists[CLI_LIST_PROMPTS], STR("prompts"), fetch, prompts);
}

static void lists(void **state)
{
    (void)state;
    bool has_worked = false;
    for (size_t at = 0; failing_memory_start(at); at++) {
        cli_inventory inventory;
        buf out;
        cli_inventory_init(&inventory);
        buf_init(&out, 1 << 16);
        cli_exit code = fill(&inventory);
        assert_true(code == CLI_EXIT_OK || code == CLI_EXIT_FAILED);
        if (code == CLI_EXIT_OK) {
            cli_inventory_write(&inventory, &file, &out);
            if (out.err == BAY_OK) {
                assert_true(str_eq(buf_view(&out), str_of(expected_list)));
                has_worked = true;
            }
        }
        buf_fini(&out);
        cli_inventory_fini(&inventory);
        failing_memory_check();
    }
    assert_true(has_worked);
}

static void arguments(void **state)
{
    (void)state;
    const char *pairs[] = {"a=[1,2]", "b=text", "c:=1.0", "d==1"};
    bool has_worked = false;
    for (size_t at = 0; failing_memory_start(at); at++) {
        buf out;
        bay_diag diag = {0};
        buf_init(&out, 1 << 16);
        json_writer to;
        json_writer_init(&to, &out);
        bay_err err = cli_pairs_write((char *const *)pairs, 4, false, &to, &diag);
        if (err == BAY_OK) {
            assert_true(
                str_eq(buf_view(&out), STR("{\"a\":[1,2],\"b\":\"text\",\"c\":1.0,\"d\":\"1\"}")));
            has_worked = true;
        } else {
            assert_int_equal(err, BAY_ERR_NOMEM);
            assert_true(diag.text[0] != '\0');
        }
        buf_fini(&out);
        failing_memory_check();
    }
    assert_true(has_worked);
}

static void content(void **state)
{
    (void)state;
    json_doc doc;
    arena memory;
    arena_init(&memory, 1 << 20);
    assert_int_equal(
        json_parse(&doc,
                   STR("{\"role\":\"\\u0075\",\"content\":{\"type\":\"resource\",\"resource\":"
                       "{\"uri\":\"x\\u003ay\",\"blob\":\"AAAA\"}}}"),
                   NULL, &memory, NULL),
        BAY_OK);
    /* kept apart from what fails below */
    json_val message = json_root(&doc);
    bool has_worked = false;
    for (size_t at = 0; failing_memory_start(at); at++) {
        buf out;
        buf_init(&out, 1 << 16);
        bay_err err = cli_content_write_message(&file, &out, message);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        if (err == BAY_OK) {
            assert_true(
                str_eq(buf_view(&out), STR("u: [application/octet-stream, 3 bytes] x:y\n")));
            has_worked = true;
        }
        buf_fini(&out);
        failing_memory_check();
    }
    assert_true(has_worked);
    arena_fini(&memory);
}

static void steps(void **state)
{
    (void)state;
    cli_known known = {.state = MCP_CLIENT_READY, .transport = "stdio"};
    known.revision = mcp_revision_of(MCP_REV_2026_07_28);
    known.server_info = STR("{\"name\":\"s\"}");
    mcp_field field = {STR("Mcp-Method"), STR("server/discover")};
    bool has_worked = false;
    for (size_t at = 0; failing_memory_start(at); at++) {
        cli_steps shown;
        cli_steps_init(&shown, &file, true, 0);
        cli_steps_message(&shown, true, STR("{\"id\":1,\"method\":\"server/discover\"}"), &field, 1,
                          1);
        cli_steps_settle(&shown, &known);
        if (shown.text.err == BAY_OK) {
            has_worked = true; /* a lack elsewhere may leave a fact out, never break the text */
            assert_int_equal(shown.text.at[shown.text.len - 1], '}');
        }
        cli_steps_fini(&shown);
        failing_memory_check();
    }
    assert_true(has_worked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(arguments),
        cmocka_unit_test(content),
        cmocka_unit_test(steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
