/* The tables of the command line as data, --help and docs/cli.md; and which exit code tells what.
 */
#include "base/str.h"
#include "cli/arguments_table.h"

#define CLI_BIT(symbol) CLI_BIT_OF(CLI_##symbol)

const cli_command_row cli_commands[CLI_COMMAND_COUNT] = {
#define CLI_COMMAND(symbol, name, run, starts_servers, operands, summary, detail)                  \
    [CLI_##symbol] = {name, operands, summary, detail},
#define CLI_OPTION(symbol, letter, name, argument, commands, doc)
#define CLI_EXIT(symbol, code, doc)
#include "cli/commands.def"
};

/* The .def drops its own helpers at its end, after the rows that use them. */
const cli_option cli_options[OPTION_COUNT] = {
#define CLI_COMMAND(symbol, name, run, starts_servers, operands, summary, detail)
#define CLI_OPTION(symbol, letter, name, argument, commands, doc)                                  \
    [OPTION_##symbol] = {OPTION_##symbol, letter, name, argument, commands, doc},
#define CLI_EXIT(symbol, code, doc)
#include "cli/commands.def"
};

const cli_exit_row cli_exits[] = {
#define CLI_COMMAND(symbol, name, run, starts_servers, operands, summary, detail)
#define CLI_OPTION(symbol, letter, name, argument, commands, doc)
#define CLI_EXIT(symbol, code, doc) {code, doc},
#include "cli/commands.def"
};

const size_t cli_exit_count = sizeof(cli_exits) / sizeof(cli_exits[0]);

const cli_option *cli_option_find(bay_str name)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (str_eq(str_of(cli_options[i].name), name)) {
            return &cli_options[i];
        }
    }
    return NULL;
}

const cli_option *cli_option_letter(char letter)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (cli_options[i].letter == letter) {
            return &cli_options[i];
        }
    }
    return NULL;
}

const cli_option *cli_option_nearest(bay_str name)
{
    const cli_option *nearest = NULL;
    size_t least = name.len <= 4 ? 2 : 4;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        bay_str known = str_of(cli_options[i].name);
        size_t distance = str_distance(known, name);
        if (name.len >= 3 && str_starts(known, name)) {
            distance = 1;
        }
        if (distance < least) {
            least = distance;
            nearest = &cli_options[i];
        }
    }
    return nearest;
}

const char *cli_command_name(cli_command command)
{
    return cli_commands[command].name;
}

cli_exit cli_exit_of(bay_err err)
{
    switch (err) {
    case BAY_OK:
    case BAY_ERR_EOF:
        return CLI_EXIT_OK;
    case BAY_ERR_INVALID:
        return CLI_EXIT_USAGE;
    case BAY_ERR_CONNECT:
    case BAY_ERR_RESOLVE:
    case BAY_ERR_TLS:
    case BAY_ERR_SPAWN:
    case BAY_ERR_EXITED:
    case BAY_ERR_CLOSED:
    case BAY_ERR_NOT_FOUND:
        return CLI_EXIT_CONNECT;
    case BAY_ERR_TIMEOUT:
        return CLI_EXIT_TIMEOUT;
    case BAY_ERR_CANCELLED:
        return CLI_EXIT_INTERRUPTED;
    case BAY_ERR_DENIED:
    case BAY_ERR_UNSUPPORTED:
    case BAY_ERR_BUSY:
        return CLI_EXIT_REMOTE;
    case BAY_ERR_NOMEM:
    case BAY_ERR_IO:
    case BAY_ERR_STATE:
    case BAY_ERR_AGAIN:
    case BAY_ERR_INTERNAL:
        return CLI_EXIT_FAILED;
    default:
        return CLI_EXIT_PROTOCOL;
    }
}

/* ---- help ------------------------------------------------------------------------------------ */

enum { HELP_COLUMNS = 90 };

/* Words wrapped at the right, indented from the second line on. */
static void write_wrapped(buf *out, const char *text, size_t indent)
{
    bay_str rest = str_of(text);
    size_t column = indent;
    while (rest.len > 0) {
        size_t end = str_find(rest, ' ');
        if (column > indent && column + 1 + end > HELP_COLUMNS) {
            buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            buf_char(out, ' ');
            column++;
        }
        buf_str(out, str_head(rest, end));
        column += end;
        rest = str_from(rest, end + 1);
    }
    buf_char(out, '\n');
}

static void write_option_name(const cli_option *option, buf *out)
{
    if (option->letter != 0) {
        buf_printf(out, "-%c, ", option->letter);
    }
    buf_printf(out, "--%s", option->name);
    if (option->argument[0] != '\0') {
        buf_printf(out, " %s", option->argument);
    }
}

void cli_write_usage(buf *out)
{
    buf_lit(out, "usage: patchbay COMMAND [OPTION...]\n\n");
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        const cli_command_row *row = &cli_commands[i];
        buf_printf(out, "  %-7s %-25s %s\n", row->name, row->operands, row->summary);
    }
    buf_lit(out,
            "\nTARGET is a URL, the name of a server in the configuration, `stdio:COMMAND`, or "
            "`-- COMMAND ARGUMENT...`\nat the end of the line. AGENT is the URL of an agent or its "
            "card, "
            "or the name of one in the configuration.\npatchbay help COMMAND lists the "
            "options of a command.\n\nexit codes:\n");
    for (size_t i = 0; i < cli_exit_count; i++) {
        buf_printf(out, "  %3d  %s\n", cli_exits[i].code, cli_exits[i].doc);
    }
}

void cli_write_help(cli_command command, buf *out)
{
    const cli_command_row *row = &cli_commands[command];
    buf_printf(out, "usage: patchbay %s%s%s [OPTION...]\n\n%s\n", row->name,
               row->operands[0] != '\0' ? " " : "", row->operands, row->summary);
    if (row->detail[0] != '\0') {
        write_wrapped(out, row->detail, 0);
    }
    buf_char(out, '\n');
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if ((cli_options[i].commands & CLI_BIT_OF(command)) == 0) {
            continue;
        }
        size_t before = out->len;
        buf_lit(out, "  ");
        write_option_name(&cli_options[i], out);
        size_t width = out->len - before;
        buf_printf(out, "%*s", width < 28 ? (int)(28 - width) : 2, "");
        write_wrapped(out, cli_options[i].doc, 28);
    }
}

static void write_command_section(cli_command command, buf *out)
{
    const cli_command_row *row = &cli_commands[command];
    buf_printf(out, "\n## `patchbay %s%s%s`\n\n%s", row->name, row->operands[0] != '\0' ? " " : "",
               row->operands, row->summary);
    buf_printf(out, "%s%s\n\n| Option | Meaning |\n|---|---|\n", row->detail[0] != '\0' ? " " : "",
               row->detail);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if ((cli_options[i].commands & CLI_BIT_OF(command)) != 0) {
            buf_lit(out, "| `");
            write_option_name(&cli_options[i], out);
            buf_printf(out, "` | %s |\n", cli_options[i].doc);
        }
    }
}

void cli_write_markdown(buf *out)
{
    buf_lit(out,
            "# Command line\n\n"
            "`patchbay COMMAND [OPTION...]`. Data goes to stdout, everything else to stderr; "
            "`--json` prints JSON for programs.\n\n"
            "TARGET is one of\n\n"
            "- a URL: `https://example.com/mcp`;\n"
            "- the name of a server in the configuration: `weather`;\n"
            "- a command in one word, as the library takes it: `'stdio:./weather --units=c'`;\n"
            "- a command, behind `--` at the end of the line: "
            "`patchbay call get_weather city=Tokyo -- ./weather`.\n\n"
            "AGENT is one of\n\n"
            "- the URL of an agent, or of its card: `https://research.example.com`;\n"
            "- the name of an agent in the configuration: `research`.\n\n"
            "Secrets do not belong on a command line, which every process of the machine can read: "
            "name a file (`--header\n"
            "'Authorization: @token'`) or a variable in single quotes (`--header 'Authorization: "
            "Bearer ${TOKEN}'`).\n\n"
            "| Exit code | Meaning |\n|---|---|\n");
    for (size_t i = 0; i < cli_exit_count; i++) {
        buf_printf(out, "| %d | %s |\n", cli_exits[i].code, cli_exits[i].doc);
    }
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        write_command_section((cli_command)i, out);
    }
}
