/* What commands print of a server's words: content, lists, log messages, steps. Nothing that a
 * terminal would obey, no secret, and for programs every byte as it came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "cli/content.h"
#include "cli/inventory.h"
#include "cli/notice.h"
#include "cli/say.h"
#include "cli/steps.h"

static const output terminal = {.is_terminal = true, .columns = 60};
static const output file = {.is_terminal = false};

/* One document at a time. */
static arena memory;
static json_doc doc;

static json_val parse(const char *text)
{
    arena_fini(&memory);
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(text), NULL, &memory, NULL), BAY_OK);
    return json_root(&doc);
}

static int forget(void **state)
{
    (void)state;
    arena_fini(&memory);
    return 0;
}

#define assert_buf(text, expected)                                                                 \
    do {                                                                                           \
        buf_char(&(text), '\0');                                                                   \
        assert_int_equal((text).err, BAY_OK);                                                      \
        assert_string_equal((text).at, expected);                                                  \
        buf_clear(&(text));                                                                        \
    } while (0)

static void content_is_text_or_a_line_about_it(void **state)
{
    (void)state;
    static const struct {
        const char *block;
        const char *shown;
    } cases[] = {
        {"7", "[unknown content: without a type]\n"},
        {"{\"type\":\"text\"}", "[unknown content: text]\n"},
        {"{\"type\":\"\\u001b[2J\"}", "[unknown content: \\u{1b}[2J]\n"},
        {"{\"type\":\"text\",\"text\":\"a\\nb\\u001b[31m\\u0000\\u009b\"}",
         "a\nb\\u{1b}[31m\\u{0}\\u{9b}\n"},
        {"{\"type\":\"text\",\"text\":\"ends\\n\"}", "ends\n"},
        {"{\"type\":\"text\",\"text\":\"\"}", "\n"},
        {"{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"image/png\"}",
         "[image/png, 3 bytes]\n"},
        {"{\"type\":\"audio\",\"data\":\"AA==\"}", "[application/octet-stream, 1 byte]\n"},
        {"{\"type\":\"image\",\"mimeType\":\"a\\nb\\u0007\"}", "[a b\\u{7}]\n"},
        {"{\"type\":\"resource\",\"resource\":{\"uri\":\"x:y\",\"text\":\"t\\u0007\"}}",
         "t\\u{7}\n"},
        {"{\"type\":\"resource\",\"resource\":{\"uri\":\"x:\\u001b\",\"blob\":\"AAA=\"}}",
         "[application/octet-stream, 2 bytes] x:\\u{1b}\n"},
        {"{\"type\":\"resource\"}", "[application/octet-stream] \n"},
        {"{\"type\":\"resource_link\",\"uri\":\"x:y\",\"name\":\"n\\r\"}", "[link] x:y (n)\n"},
    };
    buf out;
    buf_init(&out, 1 << 16);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(cli_content_write(&terminal, &out, parse(cases[i].block)), BAY_OK);
        assert_buf(out, cases[i].shown);
    }
    json_val text = parse("{\"type\":\"text\",\"text\":\"\\u001b[1m\"}");
    assert_int_equal(cli_content_write(&file, &out, text), BAY_OK);
    assert_buf(out, "\x1b[1m\n"); /* data for a program */
    assert_int_equal(
        cli_content_write_message(
            &terminal, &out,
            parse("{\"role\":\"us\\ner\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}")),
        BAY_OK);
    assert_buf(out, "us er: hi\n");
    buf_fini(&out);
}

static void resources_come_out_decoded(void **state)
{
    (void)state;
    bool is_hidden = false;
    buf out;
    buf_init(&out, 1 << 16);
    static const char *const bad[] = {
        "7", "{}", "{\"blob\":7}", "{\"text\":null}", "{\"blob\":\"A\"}", "{\"blob\":\"AA A\"}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(cli_content_write_resource(&file, &out, parse(bad[i]), &is_hidden),
                         BAY_ERR_PROTOCOL);
        assert_int_equal(out.len, 0);
    }
    json_val blob = parse("{\"blob\":\"AP8K\"}");
    assert_int_equal(cli_content_write_resource(&file, &out, blob, &is_hidden), BAY_OK);
    assert_true(str_eq(buf_view(&out), STR("\0\xff\n")));
    assert_false(is_hidden);
    buf_clear(&out);
    assert_int_equal(cli_content_write_resource(&terminal, &out, blob, &is_hidden), BAY_OK);
    assert_buf(out, "[application/octet-stream, 3 bytes]\n");
    assert_true(is_hidden);
    assert_int_equal(
        cli_content_write_resource(&file, &out, parse("{\"text\":\"a\\u0000b\"}"), &is_hidden),
        BAY_OK);
    assert_true(str_eq(buf_view(&out), STR("a\0b")));
    buf_fini(&out);
}

/* ---- lists ----------------------------------------------------------------------------------- */

typedef struct one_page {
    const char *result;
} one_page;

static cli_exit fetch(void *user, json_val params, cli_answer *out)
{
    one_page *self = user;
    (void)params;
    mcp_outcome outcome = {.kind = MCP_OUTCOME_RESULT, .result = parse(self->result)};
    cli_answer_keep(out, &outcome);
    return CLI_EXIT_OK;
}

static void fill(cli_inventory *self, cli_list which, const char *member, const char *result)
{
    one_page page = {result};
    self->has[which] = true;
    assert_int_equal(cli_pages_fetch(&self->lists[which], str_of(member), fetch, &page),
                     CLI_EXIT_OK);
}

static void fill_all(cli_inventory *self)
{
    cli_inventory_init(self);
    self->revision = STR("2025-11-25");
    self->transport = "stdio";
    fill(self, CLI_LIST_TOOLS, "tools",
         "{\"tools\":[{\"name\":\"a\\u001b[2J\",\"description\":\"first\\nsecond\\u0007 and so on "
         "and on and on and on and on\",\"n\" : 1.0},{\"name\":\"b\",\"title\":\"B\"},7]}");
    fill(self, CLI_LIST_RESOURCES, "resources",
         "{\"resources\":[{\"uri\":\"x:\\u009b\",\"name\":\"n\",\"mimeType\":\"text/plain\"}]}");
    fill(self, CLI_LIST_TEMPLATES, "resourceTemplates", "{\"resourceTemplates\":[]}");
    fill(self, CLI_LIST_PROMPTS, "prompts",
         "{\"prompts\":[{\"name\":\"p\",\"arguments\":[{\"name\":\"city\",\"required\":true},"
         "{\"name\":\"la\\u001bnd\"},{},7]}]}");
}

static void lists_are_harmless_and_fit(void **state)
{
    (void)state;
    cli_inventory inventory;
    buf out;
    buf_init(&out, 1 << 16);
    fill_all(&inventory);
    cli_inventory_write(&inventory, &terminal, &out);
    assert_buf(out, "3 tools, 39 tokens · 1 resource · 1 prompt · 2025-11-25, stdio\n"
                    "\n"
                    "  a\\u{1b}[2J  33 tok  first second\\u{7} and so on and on an…\n"
                    "  b            5 tok  B\n"
                    "               1 tok\n"
                    "\n"
                    "resources\n"
                    "  x:\\u{9b}  text/plain  n\n"
                    "\n"
                    "prompts\n"
                    "  p  city, [la\\u{1b}nd]  p\n");
    cli_inventory_fini(&inventory);
    buf_fini(&out);
}

static void lists_for_programs_keep_their_bytes(void **state)
{
    (void)state;
    cli_inventory inventory;
    buf out;
    buf_init(&out, 1 << 16);
    fill_all(&inventory);
    cli_inventory_write_json(&inventory, &out);
    buf_char(&out, '\0');
    json_val all = parse(out.at);
    assert_true(str_eq(
        json_raw(json_item(json_get(all, STR("tools")), 0)),
        STR("{\"name\":\"a\\u001b[2J\",\"description\":\"first\\nsecond\\u0007 and so on and on "
            "and on and on and on\",\"n\" : 1.0}")));
    assert_true(str_eq(json_raw(json_get(all, STR("toolTokens"))), STR("[33,5,1]")));
    assert_true(str_eq(json_raw(json_get(all, STR("tokens"))), STR("39")));
    assert_true(str_eq(json_raw(json_get(all, STR("resourceTemplates"))), STR("[]")));
    assert_true(json_str_eq(json_get(all, STR("protocolVersion")), STR("2025-11-25")));
    assert_true(json_is(json_get(all, STR("serverInfo")), JSON_MISSING));
    cli_inventory_fini(&inventory);
    buf_clear(&out);
    cli_inventory_init(&inventory); /* a server that offers nothing */
    inventory.revision = STR("2026-07-28");
    inventory.transport = "http";
    cli_inventory_write_json(&inventory, &out);
    assert_buf(out, "{\"protocolVersion\":\"2026-07-28\",\"transport\":\"http\"}");
    buf_clear(&out);
    cli_inventory_write(&inventory, &file, &out);
    assert_buf(out, "2026-07-28, http\n");
    cli_inventory_fini(&inventory);
    buf_fini(&out);
}

static void counts_are_grouped(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 4096);
    static const struct {
        uint64_t count;
        const char *text;
    } cases[] = {{0, "0"},
                 {999, "999"},
                 {1000, "1,000"},
                 {1234567, "1,234,567"},
                 {UINT64_MAX, "18,446,744,073,709,551,615"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cli_put_count(&out, cases[i].count);
        assert_buf(out, cases[i].text);
    }
    buf_fini(&out);
}

static void notices_are_one_harmless_line(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 4096);
    cli_notice_log_text(&out, parse("{\"level\":\"info\",\"logger\":\"a\\u001b\",\"data\":"
                                    "\"x\\ny\\u0007\"}"));
    assert_buf(out, "info a\\u{1b}: x y\\u{7}");
    cli_notice_log_text(&out, parse("{\"level\":\"info\",\"data\":{\"a\":\n1}}"));
    assert_buf(out, "info: {\"a\": 1}");
    cli_notice_log_text(&out, parse("{}"));
    assert_buf(out, ": ");
    cli_notice_progress_text(&out, parse("{\"progress\":1.50,\"total\":10,\"message\":\"m\\r\"}"));
    assert_buf(out, "1.50/10 m");
    cli_notice_progress_text(&out, parse("{\"progress\":3}"));
    assert_buf(out, "3");
    buf_fini(&out);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void secrets_of_header_fields_are_masked(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *value;
        const char *shown;
    } cases[] = {
        {"Mcp-Session-Id", "short", "… (5 bytes)"},
        {"mcp-session-id", "0123456789abcdef0", "0123… (17 bytes)"},
        {"AUTHORIZATION", "Bearer 0123456789", "Bear… (17 bytes)"},
        {"Cookie", "", "… (0 bytes)"},
        {"Mcp-Method", "tools/\x1b", "tools/\\u{1b}"},
    };
    buf out;
    buf_init(&out, 4096);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cli_steps_field_value(&out, str_of(cases[i].name), str_of(cases[i].value));
        assert_buf(out, cases[i].shown);
    }
    buf_fini(&out);
}

static void steps_tell_why_a_server_is_legacy(void **state)
{
    (void)state;
    cli_steps steps;
    cli_known known = {.state = MCP_CLIENT_PROBING, .transport = "http"};
    mcp_field session = {STR("Mcp-Session-Id"), STR("0123456789abcdefghij")};
    for (size_t i = 0; i < 4; i++) {
        known.counts[i] = SIZE_MAX;
    }
    cli_steps_init(&steps, &terminal, false, 1000);
    cli_steps_message(&steps, true, STR("{\"id\":1,\"method\":\"server/discover\"}"), NULL, 0,
                      1001);
    cli_steps_settle(&steps, &known);
    assert_buf(steps.text, "→ 1 server/discover  35 bytes, 1 ms\n"
                           "  {\"id\":1,\"method\":\"server/discover\"}\n\n");
    cli_steps_message(&steps, false,
                      STR("{\"id\":1,\"error\":{\"code\":-32601,\"message\":\"\x1b\"}}"), NULL, 0,
                      1002);
    assert_false(cli_steps_holds_answer(&steps)); /* no JSON: a bare control byte */
    known.state = MCP_CLIENT_INITIALIZING;
    cli_steps_settle(&steps, &known);
    assert_buf(steps.text, "← 2 (unreadable)  46 bytes, 2 ms\n"
                           "  {\"id\":1,\"error\":{\"code\":-32601,\"message\":\"\\u{1b}\"}}\n"
                           "  = era: legacy: it gave server/discover no answer of its own\n\n");
    cli_steps_message(&steps, true, STR("{\"id\":2,\"method\":\"ping\"}"), &session, 1, 1003);
    known.state = MCP_CLIENT_READY;
    known.revision = mcp_revision_of(MCP_REV_2025_11_25);
    known.server_info = STR("{\"name\":\"\\u001b\"}");
    known.counts[0] = 2;
    cli_steps_settle(&steps, &known);
    assert_buf(steps.text, "→ 3 ping  24 bytes, 3 ms\n"
                           "  Mcp-Session-Id: 0123… (20 bytes)\n"
                           "  {\"id\":2,\"method\":\"ping\"}\n"
                           "  = revision: 2025-11-25\n"
                           "  = transport: http\n"
                           "  = serverInfo: {\"name\":\"\\u001b\"}\n"
                           "  = session: true\n"
                           "  = tools: 2\n\n");
    cli_steps_message(&steps, false, STR("{\"id\":2,\"result\":{}}"), NULL, 0, 1003);
    assert_true(cli_steps_holds_answer(&steps));
    cli_steps_settle(&steps, &known);
    assert_buf(steps.text, "← 4 ping: result  20 bytes, 3 ms\n  {\"id\":2,\"result\":{}}\n\n");
    cli_steps_settle(&steps, &known); /* nothing is held back */
    assert_int_equal(steps.text.len, 0);
    cli_steps_fini(&steps);
}

static void steps_for_programs_are_one_object_each(void **state)
{
    (void)state;
    cli_steps steps;
    cli_known known = {.state = MCP_CLIENT_READY, .transport = "stdio"};
    known.revision = mcp_revision_of(MCP_REV_2026_07_28);
    mcp_field fields[] = {{STR("Mcp-Method"), STR("server/discover")},
                          {STR("Mcp-Session-Id"), STR("secret")}};
    for (size_t i = 0; i < 4; i++) {
        known.counts[i] = SIZE_MAX;
    }
    cli_steps_init(&steps, &file, true, 0);
    cli_steps_message(&steps, true, STR("{\"id\":1, \"method\":\"server/discover\"}"), fields, 2,
                      5);
    cli_known nothing = known;
    nothing.state = MCP_CLIENT_PROBING;
    nothing.revision = NULL;
    cli_steps_settle(&steps, &nothing);
    assert_buf(steps.text,
               "{\"number\":1,\"direction\":\"out\",\"afterMs\":5,\"method\":\"server/discover\","
               "\"fields\":{\"Mcp-Method\":\"server/discover\",\"Mcp-Session-Id\":\"… (6 "
               "bytes)\"},\"message\":{\"id\":1, \"method\":\"server/discover\"},\"knows\":{"
               "\"session\":true}}");
    cli_steps_message(&steps, false, STR("{\"id\":1,\"result\":{}}"), NULL, 0, 6);
    cli_steps_settle(&steps, &known);
    assert_buf(steps.text,
               "{\"number\":2,\"direction\":\"in\",\"afterMs\":6,\"method\":\"server/discover\","
               "\"message\":{\"id\":1,\"result\":{}},\"knows\":{\"era\":\"modern: it answered "
               "server/discover\",\"revision\":\"2026-07-28\",\"transport\":\"stdio\"}}");
    cli_steps_message(&steps, false, STR("no \"json\""), NULL, 0, 7);
    cli_steps_settle(&steps, &known);
    assert_buf(steps.text, "{\"number\":3,\"direction\":\"in\",\"afterMs\":7,\"method\":\"\","
                           "\"text\":\"no \\\"json\\\"\",\"knows\":{}}");
    cli_steps_fini(&steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(content_is_text_or_a_line_about_it, forget),
        cmocka_unit_test_teardown(resources_come_out_decoded, forget),
        cmocka_unit_test_teardown(lists_are_harmless_and_fit, forget),
        cmocka_unit_test_teardown(lists_for_programs_keep_their_bytes, forget),
        cmocka_unit_test(counts_are_grouped),
        cmocka_unit_test_teardown(notices_are_one_harmless_line, forget),
        cmocka_unit_test(secrets_of_header_fields_are_masked),
        cmocka_unit_test(steps_tell_why_a_server_is_legacy),
        cmocka_unit_test(steps_for_programs_are_one_object_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
