/* call: a tool, by name, with its arguments. */
#include "base/err.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/content.h"
#include "cli/inventory.h"
#include "cli/pairs.h"
#include "cli/print.h"
#include "cli/say.h"

enum { TABLE_MEMORY = 1 << 20 };

typedef struct calling {
    const cli_arguments *arguments;
    cli_session *session;
    bay_str tool;
    json_builder made; /* params */
    json_val params;
    cli_inventory inventory;
    arena memory;
    mcp_param_table table;
    bool has_table;
} calling;

static cli_exit read_table(calling *self, json_val tool)
{
    bay_diag diag = {0};
    bay_err err = mcp_param_table_read(&self->table, json_get(tool, STR("inputSchema")),
                                       &self->memory, &diag);
    if (err == BAY_OK) {
        self->has_table = self->table.count > 0;
        return CLI_EXIT_OK;
    }
    cli_say("%s: the tool %.*s says wrongly which header fields it wants: %s",
            cli_session_target(self->session), BAY_STR(self->tool), diag.text);
    return cli_exit_of(err);
}

/* Over modern HTTP a tool may want arguments in header fields, and only its definition says so.
 * mcp 2026-07-28 basic/transports/streamable-http: Custom Headers from Tool Parameters */
static cli_exit look_up(calling *self)
{
    mcp_client *client = cli_session_client(self->session);
    const mcp_revision *revision = mcp_client_revision(client);
    bool is_needed = revision != NULL && revision->era == MCP_MODERN &&
                     mcp_client_link_kind(client) == MCP_LINK_HTTP;
    if (!is_needed) {
        return CLI_EXIT_OK;
    }
    cli_exit code = cli_inventory_fetch_one(&self->inventory, self->session, CLI_LIST_TOOLS);
    json_iter tools = json_iter_of(self->inventory.lists[CLI_LIST_TOOLS].items);
    while (json_next(&tools)) {
        if (json_str_eq(json_get(tools.value, STR("name")), self->tool)) {
            return read_table(self, tools.value);
        }
    }
    return code; /* not listed: the server will say what it thinks of the name */
}

/* ---- the answer ------------------------------------------------------------------------------ */

static cli_exit print_content(const calling *self, json_val result, output *device, buf *text)
{
    json_val content = json_get(result, STR("content"));
    json_iter blocks = json_iter_of(content);
    while (json_next(&blocks)) {
        bay_err err = cli_content_write(device, text, blocks.value);
        if (err != BAY_OK) {
            cli_say("%s", bay_err_text(err));
            return cli_exit_of(err);
        }
    }
    if (json_count(content) == 0) {
        bool is_structured = !json_is(json_get(result, STR("structuredContent")), JSON_MISSING);
        cli_say("%.*s answered without content%s", BAY_STR(self->tool),
                is_structured ? "; --json shows its structured answer" : "");
    }
    return cli_print(device, text, CLI_EXIT_OK);
}

static cli_exit print_result(const calling *self, const cli_answer *answer)
{
    json_val result = answer->value;
    bool has_failed = json_true(json_get(result, STR("isError")));
    bool is_waiting = json_str_eq(json_get(result, STR("resultType")), STR("input_required"));
    output device;
    buf text;
    cli_print_init(&device, &text, self->arguments);
    cli_exit code = CLI_EXIT_OK;
    if (self->arguments->is_json) {
        code = cli_print_json(&device, json_raw(result), CLI_EXIT_OK);
    } else if (!is_waiting) {
        code = print_content(self, result, &device, &text);
    }
    buf_fini(&text);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    if (is_waiting) {
        cli_say("%s: %.*s asks for input before it goes on, which this command cannot give: call "
                "it from a host",
                cli_session_target(self->session), BAY_STR(self->tool));
    } else if (has_failed) {
        cli_say("%.*s says that it failed", BAY_STR(self->tool));
    }
    return is_waiting || has_failed ? CLI_EXIT_REMOTE : CLI_EXIT_OK;
}

static cli_exit run(calling *self)
{
    cli_answer answer;
    cli_exit code = cli_session_open(self->arguments, NULL, &self->session);
    code = code == CLI_EXIT_OK ? look_up(self) : code;
    if (code != CLI_EXIT_OK) {
        return code;
    }
    cli_request request = {
        .method = MCP_TOOLS_CALL,
        .params = self->params,
        .param_table = self->has_table ? &self->table : NULL,
        .shows_progress = true,
    };
    cli_answer_init(&answer);
    code = cli_session_call(self->session, &request, &answer);
    if (code == CLI_EXIT_OK && answer.kind == MCP_OUTCOME_ERROR) {
        code = cli_session_refused(self->session, self->tool, &answer);
    } else if (code == CLI_EXIT_OK) {
        code = print_result(self, &answer);
    }
    cli_answer_fini(&answer);
    return code;
}

int cmd_call(const cli_arguments *arguments)
{
    calling self = {.arguments = arguments, .tool = str_of(arguments->name)};
    arena_init(&self.memory, TABLE_MEMORY);
    cli_inventory_init(&self.inventory);
    cli_exit code = cli_pairs_params(arguments, false, &self.made, &self.params);
    if (code == CLI_EXIT_OK) {
        code = run(&self);
    }
    code = cli_session_close(self.session, code);
    cli_inventory_fini(&self.inventory);
    arena_fini(&self.memory);
    json_builder_drop(&self.made);
    return (int)code;
}
