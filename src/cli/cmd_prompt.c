/* prompt: the messages that a prompt becomes. */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/content.h"
#include "cli/pairs.h"
#include "cli/print.h"
#include "cli/say.h"
#include "cli/session.h"

static cli_exit print_messages(const cli_arguments *arguments, json_val result, output *device,
                               buf *text)
{
    json_val messages = json_get(result, STR("messages"));
    if (!json_is(messages, JSON_ARRAY)) {
        cli_say("%s: the answer has no list \"messages\"; --json shows it", arguments->name);
        return CLI_EXIT_PROTOCOL;
    }
    json_iter iter = json_iter_of(messages);
    while (json_next(&iter)) {
        bay_err err = cli_content_write_message(device, text, iter.value);
        if (err != BAY_OK) {
            cli_say("%s", bay_err_text(err));
            return cli_exit_of(err);
        }
    }
    return cli_print(device, text, CLI_EXIT_OK);
}

static cli_exit print_result(const cli_arguments *arguments, json_val result)
{
    output device;
    buf text;
    cli_print_init(&device, &text, arguments);
    bool is_waiting = json_str_eq(json_get(result, STR("resultType")), STR("input_required"));
    cli_exit code = CLI_EXIT_OK;
    if (arguments->is_json) {
        code = cli_print_json(&device, json_raw(result), CLI_EXIT_OK);
    } else if (!is_waiting) {
        code = print_messages(arguments, result, &device, &text);
    }
    if (is_waiting && code == CLI_EXIT_OK) {
        cli_say("%s asks for input before it answers, which this command cannot give: use it in a "
                "host",
                arguments->name);
        code = CLI_EXIT_REMOTE;
    }
    buf_fini(&text);
    return code;
}

int cmd_prompt(const cli_arguments *arguments)
{
    json_builder made;
    json_val params;
    cli_exit code = cli_pairs_params(arguments, true, &made, &params);
    if (code == CLI_EXIT_OK) {
        code = cli_session_once(arguments, MCP_PROMPTS_GET, params, print_result);
    }
    json_builder_drop(&made);
    return (int)code;
}
