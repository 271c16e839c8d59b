/* What a client can be asked, by its revision and its own words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/str.h"
#include "mcp/inputs.h"

static unsigned inputs_of(mcp_revision_id revision, const char *capabilities)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 16);
    assert_int_equal(json_parse(&doc, str_of(capabilities), NULL, &memory, NULL), BAY_OK);
    unsigned inputs = mcp_inputs_of(mcp_revision_of(revision), json_root(&doc));
    arena_fini(&memory);
    return inputs;
}

static void reads_what_the_revision_knows(void **state)
{
    (void)state;
    const char *all = "{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{\"tools\":{},"
                      "\"context\":{}},\"roots\":{\"listChanged\":true}}";
    assert_int_equal(inputs_of(MCP_REV_2025_11_25, "{}"), 0);
    assert_int_equal(inputs_of(MCP_REV_2025_11_25, "[]"), 0);
    assert_int_equal(inputs_of(MCP_REV_2025_11_25, "{\"elicitation\":true,\"roots\":null}"), 0);
    assert_int_equal(inputs_of(MCP_REV_2025_11_25, "{\"elicitation\":{}}"), MCP_INPUT_FORM);
    assert_int_equal(inputs_of(MCP_REV_2025_11_25, "{\"elicitation\":{\"url\":{}}}"),
                     MCP_INPUT_URL);
    assert_int_equal(inputs_of(MCP_REV_2026_07_28, all), MCP_INPUT_EVERYTHING);
    assert_int_equal(inputs_of(MCP_REV_2025_06_18, all),
                     MCP_INPUT_FORM | MCP_INPUT_SAMPLING | MCP_INPUT_ROOTS);
    assert_int_equal(inputs_of(MCP_REV_2024_11_05, all), MCP_INPUT_SAMPLING | MCP_INPUT_ROOTS);
}

static unsigned needed(const char *method, const char *params)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 16);
    assert_int_equal(json_parse(&doc, str_of(params), NULL, &memory, NULL), BAY_OK);
    unsigned inputs = mcp_inputs_needed(str_of(method), json_root(&doc));
    arena_fini(&memory);
    return inputs;
}

static void knows_what_a_request_needs(void **state)
{
    (void)state;
    assert_int_equal(needed("tools/call", "{}"), 0);
    assert_int_equal(needed("elicitation/create", "{\"mode\":\"mind\"}"), 0);
    assert_int_equal(needed("elicitation/create", "{\"mode\":7}"), 0);
    assert_int_equal(needed("elicitation/create", "{}"), MCP_INPUT_FORM);
    assert_int_equal(needed("elicitation/create", "{\"mode\":\"url\"}"), MCP_INPUT_URL);
    assert_int_equal(needed("sampling/createMessage", "{}"), MCP_INPUT_SAMPLING);
    assert_int_equal(needed("sampling/createMessage", "{\"tools\":[]}"),
                     MCP_INPUT_SAMPLING | MCP_INPUT_SAMPLING_TOOLS);
    assert_int_equal(needed("roots/list", "{}"), MCP_INPUT_ROOTS);
}

static void writes_what_it_would_read(void **state)
{
    (void)state;
    for (int id = 0; id < MCP_REVISION_COUNT; id++) {
        const mcp_revision *revision = mcp_revision_of((mcp_revision_id)id);
        for (unsigned inputs = 0; inputs <= MCP_INPUT_EVERYTHING; inputs++) {
            json_writer writer;
            buf out;
            buf_init(&out, 4096);
            json_writer_init(&writer, &out);
            json_open_object(&writer);
            mcp_inputs_write(inputs, revision, &writer);
            json_close_object(&writer);
            buf_char(&out, '\0');
            unsigned knows = MCP_INPUT_SAMPLING | MCP_INPUT_ROOTS;
            knows |= id >= MCP_REV_2025_06_18 ? MCP_INPUT_FORM : 0u;
            knows |= id >= MCP_REV_2025_11_25 ? MCP_INPUT_EVERYTHING : 0u;
            unsigned expected = inputs & knows;
            if ((expected & MCP_INPUT_SAMPLING) == 0) {
                expected &= ~(unsigned)(MCP_INPUT_SAMPLING_TOOLS | MCP_INPUT_SAMPLING_CONTEXT);
            }
            assert_int_equal(inputs_of((mcp_revision_id)id, out.at), expected);
            buf_fini(&out);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_the_revision_knows),
        cmocka_unit_test(knows_what_a_request_needs),
        cmocka_unit_test(writes_what_it_would_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
