/* card: what an agent says of itself. */
#include "base/str.h"
#include "cli/agent.h"
#include "cli/commands.h"
#include "cli/print.h"

static void put_heading(const output *device, buf *out, bay_caller *caller)
{
    output_color(device, out, OUTPUT_BOLD);
    output_line(out, bay_caller_name(caller));
    output_color(device, out, OUTPUT_PLAIN);
    buf_lit(out, " · ");
    output_line(out, bay_caller_version(caller));
    buf_lit(out, ", ");
    output_line(out, bay_caller_binding(caller));
    buf_lit(out, ", ");
    output_line(out, bay_caller_url(caller));
    buf_str(out, bay_caller_is_verified(caller) ? STR(" · signed by a known key") : STR(""));
    buf_char(out, '\n');
    if (bay_caller_description(caller).len > 0) {
        output_line(out, bay_caller_description(caller));
        buf_char(out, '\n');
    }
}

static void put_skills(const output *device, buf *out, bay_caller *caller)
{
    output_table table;
    size_t count = bay_caller_skill_count(caller);
    output_table_init(&table, 3);
    for (size_t i = 0; i < count; i++) {
        output_table_cell(&table, bay_caller_skill(caller, i));
        output_table_cell(&table, bay_caller_skill_name(caller, i));
        output_table_cell(&table, bay_caller_skill_description(caller, i));
    }
    if (count > 0) {
        buf_char(out, '\n');
        output_table_write(&table, device, out);
    }
    if (table.err != BAY_OK && out->err == BAY_OK) {
        out->err = table.err;
    }
    output_table_fini(&table);
}

static void put_capabilities(buf *out, bay_caller *caller)
{
    static const char *const names[][2] = {
        {"streaming", "streams"},
        {"pushNotifications", "push notifications"},
        {"extendedAgentCard", "extended card"},
    };
    bool is_first = true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (bay_caller_has(caller, names[i][0])) {
            buf_str(out, is_first ? STR("\n") : STR(", "));
            buf_str(out, str_of(names[i][1]));
            is_first = false;
        }
    }
    buf_str(out, is_first ? STR("") : STR("\n"));
}

static cli_exit show(const cli_arguments *arguments, cli_agent *agent)
{
    output device;
    buf text;
    bay_caller_reply *response = NULL;
    bay_caller *caller = cli_agent_caller(agent);
    cli_exit code = CLI_EXIT_OK;
    if (arguments->is_extended) {
        code = cli_agent_run(agent, bay_caller_request_new(caller, "GetExtendedAgentCard", NULL),
                             &response);
    }
    cli_print_init(&device, &text, arguments);
    if (code == CLI_EXIT_OK && (arguments->is_json || response != NULL)) {
        bay_str json = response != NULL ? bay_caller_reply_json(response) : bay_caller_card(caller);
        code = cli_print_json(&device, json, CLI_EXIT_OK);
    } else if (code == CLI_EXIT_OK) {
        put_heading(&device, &text, caller);
        put_capabilities(&text, caller);
        put_skills(&device, &text, caller);
        code = cli_print(&device, &text, CLI_EXIT_OK);
    }
    bay_caller_reply_free(response);
    buf_fini(&text);
    return code;
}

int cmd_card(const cli_arguments *arguments)
{
    cli_agent *agent = NULL;
    cli_exit code = cli_agent_open(arguments, &agent);
    if (code == CLI_EXIT_OK) {
        code = show(arguments, agent);
    }
    return (int)cli_agent_close(agent, code);
}
