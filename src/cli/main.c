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

int cmd_help(const cli_arguments *arguments)
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

int cmd_version(const cli_arguments *arguments)
{
    printf(arguments->is_json ? "{\"version\":\"%s\"}\n" : "patchbay %s\n", bay_version());
    return CLI_EXIT_OK;
}

static const struct {
    int (*run)(const cli_arguments *arguments);
    bool starts_servers;
} commands[CLI_COMMAND_COUNT] = {
#define CLI_COMMAND(symbol, name, run, starts_servers, operands, summary, detail)                  \
    [CLI_##symbol] = {run, starts_servers},
#define CLI_OPTION(symbol, letter, name, argument, commands, doc)
#define CLI_EXIT(symbol, code, doc)
#include "cli/commands.def"
};

int main(int argc, char **argv)
{
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
    if (!arguments.wants_help && commands[arguments.command].starts_servers &&
        descendants_watch() != BAY_OK) {
        cli_say("no process can be started that ends the servers after kill -9");
        return CLI_EXIT_FAILED;
    }
    return arguments.wants_help ? cmd_help(&arguments)
                                : commands[arguments.command].run(&arguments);
}
