#include "cli/inventory.h"

#include "base/str.h"
#include "cli/say.h"
#include "cli/tokens.h"
#include "json/writer.h"

enum { TEXT_MEMORY = 64 << 20 };

static const struct {
    mcp_method_id method;
    bay_str capability;
    bay_str member;
    const char *one;
    const char *many;
} kinds[CLI_LIST_COUNT] = {
    [CLI_LIST_TOOLS] = {MCP_TOOLS_LIST, STR_INIT("tools"), STR_INIT("tools"), "tool", "tools"},
    [CLI_LIST_RESOURCES] = {MCP_RESOURCES_LIST, STR_INIT("resources"), STR_INIT("resources"),
                            "resource", "resources"},
    [CLI_LIST_TEMPLATES] = {MCP_RESOURCES_TEMPLATES_LIST, STR_INIT("resources"),
                            STR_INIT("resourceTemplates"), "template", "templates"},
    [CLI_LIST_PROMPTS] = {MCP_PROMPTS_LIST, STR_INIT("prompts"), STR_INIT("prompts"), "prompt",
                          "prompts"},
};

void cli_inventory_init(cli_inventory *self)
{
    *self = (cli_inventory){.transport = ""};
    for (size_t i = 0; i < CLI_LIST_COUNT; i++) {
        cli_pages_init(&self->lists[i]);
    }
}

void cli_inventory_fini(cli_inventory *self)
{
    for (size_t i = 0; i < CLI_LIST_COUNT; i++) {
        cli_pages_fini(&self->lists[i]);
    }
}

/* ---- fetching -------------------------------------------------------------------------------- */

typedef struct fetcher {
    cli_session *session;
    mcp_method_id method;
} fetcher;

static cli_exit fetch(void *user, json_val params, cli_answer *out)
{
    fetcher *self = user;
    cli_request request = {.method = self->method, .params = params};
    return cli_session_call(self->session, &request, out);
}

cli_exit cli_inventory_fetch_one(cli_inventory *self, cli_session *session, cli_list which)
{
    cli_pages *pages = &self->lists[which];
    fetcher user = {session, kinds[which].method};
    self->has[which] = mcp_client_has(cli_session_client(session), kinds[which].capability);
    if (!self->has[which]) {
        return CLI_EXIT_OK;
    }
    cli_exit code = cli_pages_fetch(pages, kinds[which].member, fetch, &user);
    if (pages->error_code == RPC_METHOD_NOT_FOUND && pages->count == 0) {
        self->has[which] = false; /* many servers have resources but no templates */
        return CLI_EXIT_OK;
    }
    if (pages->error[0] != '\0') {
        cli_say("%s: %.*s: %s", cli_session_target(session),
                BAY_STR(mcp_method_of(user.method)->text), pages->error);
    }
    return code;
}

static bool is_worth_going_on(cli_exit code)
{
    return code == CLI_EXIT_OK || code == CLI_EXIT_REMOTE;
}

cli_exit cli_inventory_fetch(cli_inventory *self, cli_session *session)
{
    mcp_client *client = cli_session_client(session);
    cli_exit first = CLI_EXIT_OK;
    for (size_t i = 0; i < CLI_LIST_COUNT; i++) {
        cli_exit code = cli_inventory_fetch_one(self, session, (cli_list)i);
        first = first == CLI_EXIT_OK ? code : first;
        bool is_ours = self->lists[i].error[0] != '\0'; /* the session itself is well */
        if (!is_worth_going_on(code) && !is_ours) {
            break;
        }
    }
    const mcp_revision *revision = mcp_client_revision(client);
    self->revision = revision != NULL ? revision->text : (bay_str){0};
    self->transport = cli_session_transport(session);
    self->server_info = mcp_client_server_info(client);
    self->capabilities = mcp_client_server_capabilities(client);
    self->instructions = mcp_client_instructions(client);
    return first;
}

size_t cli_inventory_tokens(const cli_inventory *self)
{
    size_t tokens = 0;
    json_iter tools = json_iter_of(self->lists[CLI_LIST_TOOLS].items);
    while (json_next(&tools)) {
        tokens += cli_tokens_of_tool(tools.value);
    }
    return tokens;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void put_summary(const cli_inventory *self, const output *device, buf *out)
{
    output_color(device, out, OUTPUT_BOLD);
    for (size_t i = 0; i < CLI_LIST_COUNT; i++) {
        size_t count = self->lists[i].count;
        bool is_shown = self->has[i] && (i != CLI_LIST_TEMPLATES || count > 0);
        if (!is_shown) {
            continue;
        }
        cli_put_count(out, count);
        buf_printf(out, " %s", count == 1 ? kinds[i].one : kinds[i].many);
        if (i == CLI_LIST_TOOLS) {
            size_t tokens = cli_inventory_tokens(self);
            buf_lit(out, ", ");
            cli_put_count(out, tokens);
            buf_str(out, tokens == 1 ? STR(" token") : STR(" tokens"));
        }
        buf_lit(out, " · ");
    }
    buf_str(out, self->revision);
    buf_printf(out, ", %s", self->transport);
    output_color(device, out, OUTPUT_PLAIN);
    buf_char(out, '\n');
}

/* A member's text in one cell; empty when it is no string. */
static void put_cell(output_table *table, json_val value)
{
    arena memory;
    bay_str text = {0};
    arena_init(&memory, TEXT_MEMORY);
    if (json_is(value, JSON_STRING)) {
        bay_err err = json_str(value, &memory, &text);
        table->err = table->err == BAY_OK ? err : table->err;
    }
    output_table_cell(table, text);
    arena_fini(&memory);
}

static json_val description_of(json_val item)
{
    json_val description = json_get(item, STR("description"));
    return json_is(description, JSON_STRING) ? description : json_get(item, STR("title"));
}

static void put_tool(output_table *table, json_val tool)
{
    char bytes[40];
    buf cost = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    put_cell(table, json_get(tool, STR("name")));
    cli_put_count(&cost, cli_tokens_of_tool(tool));
    buf_lit(&cost, " tok");
    output_table_cell(table, buf_view(&cost));
    put_cell(table, description_of(tool));
}

/* "city, [country]": in brackets what may be left out. */
static void put_arguments(output_table *table, json_val prompt)
{
    buf text;
    json_iter arguments = json_iter_of(json_get(prompt, STR("arguments")));
    arena memory;
    buf_init(&text, TEXT_MEMORY);
    arena_init(&memory, TEXT_MEMORY);
    while (json_next(&arguments)) {
        bay_str name;
        bool is_required = json_true(json_get(arguments.value, STR("required")));
        bay_err err = json_str(json_get(arguments.value, STR("name")), &memory, &name);
        if (err == BAY_ERR_TYPE) {
            continue; /* no argument at all */
        }
        if (err != BAY_OK) {
            text.err = err;
            break;
        }
        buf_str(&text, text.len > 0 ? STR(", ") : STR(""));
        buf_str(&text, is_required ? STR("") : STR("["));
        buf_str(&text, name);
        buf_str(&text, is_required ? STR("") : STR("]"));
    }
    table->err = table->err == BAY_OK ? text.err : table->err;
    output_table_cell(table, buf_view(&text));
    arena_fini(&memory);
    buf_fini(&text);
}

static void put_row(output_table *table, cli_list which, json_val item)
{
    switch (which) {
    case CLI_LIST_TOOLS:
        put_tool(table, item);
        return;
    case CLI_LIST_RESOURCES:
        put_cell(table, json_get(item, STR("uri")));
        put_cell(table, json_get(item, STR("mimeType")));
        break;
    case CLI_LIST_TEMPLATES:
        put_cell(table, json_get(item, STR("uriTemplate")));
        put_cell(table, json_get(item, STR("mimeType")));
        break;
    default:
        put_cell(table, json_get(item, STR("name")));
        put_arguments(table, item);
        break;
    }
    json_val description = description_of(item);
    bool has_text = json_is(description, JSON_STRING);
    put_cell(table, has_text ? description : json_get(item, STR("name")));
}

static void put_list(const cli_inventory *self, cli_list which, const output *device, buf *out)
{
    output_table table;
    output_table_init(&table, 3);
    table.is_right[1] = which == CLI_LIST_TOOLS;
    json_iter items = json_iter_of(self->lists[which].items);
    while (json_next(&items)) {
        put_row(&table, which, items.value);
    }
    buf_char(out, '\n');
    if (which != CLI_LIST_TOOLS) {
        output_color(device, out, OUTPUT_BOLD);
        buf_printf(out, "%s", kinds[which].many);
        output_color(device, out, OUTPUT_PLAIN);
        buf_char(out, '\n');
    }
    output_table_write(&table, device, out);
    output_table_fini(&table);
}

void cli_inventory_write(const cli_inventory *self, const output *device, buf *out)
{
    put_summary(self, device, out);
    for (size_t i = 0; i < CLI_LIST_COUNT; i++) {
        if (self->has[i] && self->lists[i].count > 0) {
            put_list(self, (cli_list)i, device, out);
        }
    }
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void put_token_counts(json_writer *writer, const cli_inventory *self)
{
    json_iter tools = json_iter_of(self->lists[CLI_LIST_TOOLS].items);
    json_key_lit(writer, "tokens");
    json_put_uint(writer, cli_inventory_tokens(self));
    json_key_lit(writer, "toolTokens");
    json_open_array(writer);
    while (json_next(&tools)) {
        json_put_uint(writer, cli_tokens_of_tool(tools.value));
    }
    json_close_array(writer);
}

void cli_inventory_write_json(const cli_inventory *self, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "protocolVersion");
    json_put_str(&writer, self->revision);
    json_key_lit(&writer, "transport");
    json_put_str(&writer, str_of(self->transport));
    if (!json_is(self->server_info, JSON_MISSING)) {
        json_key_lit(&writer, "serverInfo");
        json_put_val(&writer, self->server_info);
    }
    if (!json_is(self->capabilities, JSON_MISSING)) {
        json_key_lit(&writer, "capabilities");
        json_put_val(&writer, self->capabilities);
    }
    if (self->instructions.len > 0) {
        json_key_lit(&writer, "instructions");
        json_put_str(&writer, self->instructions);
    }
    for (size_t i = 0; i < CLI_LIST_COUNT; i++) {
        if (self->has[i]) {
            json_key(&writer, kinds[i].member);
            json_put_raw(&writer, json_is(self->lists[i].items, JSON_ARRAY)
                                      ? json_raw(self->lists[i].items)
                                      : STR("[]"));
        }
    }
    if (self->has[CLI_LIST_TOOLS]) {
        put_token_counts(&writer, self);
    }
    json_close_object(&writer);
}
