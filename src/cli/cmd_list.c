/* list: what a server offers, and what its tools cost a model. */
#include "cli/commands.h"
#include "cli/inventory.h"
#include "cli/print.h"

static cli_exit run(const cli_arguments *arguments, cli_session *session)
{
    cli_inventory inventory;
    output device;
    buf text;
    cli_inventory_init(&inventory);
    cli_print_init(&device, &text, arguments);
    cli_exit code = cli_inventory_fetch(&inventory, session);
    bool has_anything = code == CLI_EXIT_OK || code == CLI_EXIT_REMOTE || code == CLI_EXIT_PROTOCOL;
    if (has_anything) {
        if (arguments->is_json) {
            cli_inventory_write_json(&inventory, &text);
        } else {
            cli_inventory_write(&inventory, &device, &text);
        }
        code = arguments->is_json ? cli_print_json(&device, buf_view(&text), code)
                                  : cli_print(&device, &text, code);
    }
    buf_fini(&text);
    cli_inventory_fini(&inventory);
    return code;
}

int cmd_list(const cli_arguments *arguments)
{
    cli_session *session = NULL;
    cli_exit code = cli_session_open(arguments, NULL, &session);
    if (code == CLI_EXIT_OK) {
        code = run(arguments, session);
    }
    return (int)cli_session_close(session, code);
}
