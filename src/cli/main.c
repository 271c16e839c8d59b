/* patchbay: one binary, one command each. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "net/descendants.h"

static void print(const buf *text)
{
    fwrite(text->at, 1, text->len, stdout);
}

static int help(const cli_arguments *arguments)
{
    buf text;
    buf_init(&text, 1 << 20);
    if (arguments->has_topic || arguments->command != CLI_HELP) {
        cli_write_help(arguments->command, &text);
    } else {
        cli_write_usage(&text);
    }
    print(&text);
    buf_fini(&text);
    return CLI_EXIT_OK;
}

static int version(const cli_arguments *arguments)
{
    printf(arguments->is_json ? "{\"version\":\"%s\"}\n" : "patchbay %s\n", bay_version());
    return CLI_EXIT_OK;
}

static bool starts_servers(cli_command command)
{
    return command == CLI_SERVE || command == CLI_STDIO || command == CLI_LIST ||
           command == CLI_CALL || command == CLI_READ || command == CLI_PROMPT ||
           command == CLI_STEP || command == CLI_LINT || command == CLI_DIFF || command == CLI_PIN;
}

int main(int argc, char **argv)
{
    static int (*const commands[CLI_COMMAND_COUNT])(const cli_arguments *arguments) = {
        [CLI_SERVE] = cmd_serve,   [CLI_STDIO] = cmd_stdio,       [CLI_LIST] = cmd_list,
        [CLI_CALL] = cmd_call,     [CLI_READ] = cmd_read,         [CLI_PROMPT] = cmd_prompt,
        [CLI_STEP] = cmd_step,     [CLI_CARD] = cmd_card,         [CLI_SEND] = cmd_send,
        [CLI_TASK] = cmd_task,     [CLI_CANCEL] = cmd_cancel,     [CLI_STATUS] = cmd_status,
        [CLI_RELOAD] = cmd_reload, [CLI_DRAIN] = cmd_drain,       [CLI_VERSION] = version,
        [CLI_HELP] = help,         [CLI_LOGIN] = cmd_login,       [CLI_LOGOUT] = cmd_logout,
        [CLI_WHOAMI] = cmd_whoami, [CLI_LINT] = cmd_lint,         [CLI_DIFF] = cmd_diff,
        [CLI_PIN] = cmd_pin,       [CLI_CONTRACT] = cmd_contract, [CLI_GRADE] = cmd_grade,
        [CLI_KEY] = cmd_key,       [CLI_BLOCK] = cmd_block,
    };
    cli_arguments arguments;
    bay_diag diag = {0};
    signal(SIGPIPE, SIG_IGN);
    mem_trim_large();
    prctl(PR_SET_DUMPABLE,
          0); /* configurations hold secrets: no core file, no reader of our memory */
    if (cli_parse(argc, argv, &arguments, &diag) != BAY_OK) {
        cli_say("%s", diag.text);
        return CLI_EXIT_USAGE;
    }
    if (!arguments.wants_help && starts_servers(arguments.command) &&
        descendants_watch() != BAY_OK) {
        cli_say("no process can be started that ends the servers after kill -9");
        return CLI_EXIT_FAILED;
    }
    return arguments.wants_help ? help(&arguments) : commands[arguments.command](&arguments);
}
