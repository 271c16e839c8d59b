/* read: the bytes of a resource. */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/content.h"
#include "cli/print.h"
#include "cli/say.h"
#include "cli/session.h"
#include "json/build.h"

enum { PARAMS_BYTES = 1 << 20 };

static cli_exit print_contents(const cli_arguments *arguments, json_val result, output *device,
                               buf *text)
{
    json_val contents = json_get(result, STR("contents"));
    bool is_hidden = false;
    if (!json_is(contents, JSON_ARRAY)) {
        cli_say("%s: the answer has no list \"contents\"; --json shows it", arguments->name);
        return CLI_EXIT_PROTOCOL;
    }
    json_iter parts = json_iter_of(contents);
    while (json_next(&parts)) {
        bay_err err = cli_content_write_resource(device, text, parts.value, &is_hidden);
        if (err != BAY_OK) {
            cli_say("%s: %s", arguments->name,
                    err == BAY_ERR_PROTOCOL ? "a part is neither a text nor base64; --json shows it"
                                            : bay_err_text(err));
            return cli_exit_of(err);
        }
    }
    if (json_count(contents) != 1) {
        cli_say("%s: %zu parts%s", arguments->name, json_count(contents),
                json_count(contents) > 1 ? ", one behind the other" : "");
    }
    if (is_hidden) {
        cli_say("%s: not shown on a terminal: redirect the output to a file", arguments->name);
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
        code = print_contents(arguments, result, &device, &text);
    }
    if (is_waiting && code == CLI_EXIT_OK) {
        cli_say("%s: the server asks for input before it answers, which this command cannot give",
                arguments->name);
        code = CLI_EXIT_REMOTE;
    }
    buf_fini(&text);
    return code;
}

int cmd_read(const cli_arguments *arguments)
{
    json_builder made;
    json_val params;
    json_writer *to = json_builder_init(&made, NULL, PARAMS_BYTES);
    json_open_object(to);
    json_key_lit(to, "uri");
    json_put_str(to, str_of(arguments->name));
    json_close_object(to);
    bay_err err = json_builder_view(&made, &params);
    cli_exit code = CLI_EXIT_FAILED;
    if (err == BAY_OK) {
        code = cli_session_once(arguments, MCP_RESOURCES_READ, params, print_result);
    } else {
        cli_say("%s", bay_err_text(err));
    }
    json_builder_drop(&made);
    return (int)code;
}
