/* The tables of commands.def as data. */
#ifndef CLI_ARGUMENTS_TABLE_H
#define CLI_ARGUMENTS_TABLE_H

#include "cli/arguments.h"

typedef enum cli_option_id {
#define CLI_COMMAND(symbol, name, run, starts_servers, operands, summary, detail)
#define CLI_OPTION(symbol, letter, name, argument, commands, doc) OPTION_##symbol,
#define CLI_EXIT(symbol, code, doc)
#include "cli/commands.def"
    OPTION_COUNT
} cli_option_id;

#define CLI_BIT_OF(command) (UINT64_C(1) << (command))
_Static_assert(CLI_COMMAND_COUNT <= 64, "each command has a bit");

typedef struct cli_option {
    cli_option_id id;
    char letter; /* 0: none */
    const char *name;
    const char *argument; /* "": a flag */
    uint64_t commands;    /* one bit each: CLI_BIT_OF */
    const char *doc;
} cli_option;

typedef struct cli_command_row {
    const char *name;
    const char *operands;
    const char *summary;
    const char *detail;
} cli_command_row;

typedef struct cli_exit_row {
    int code;
    const char *doc;
} cli_exit_row;

extern const cli_option cli_options[OPTION_COUNT];
extern const cli_command_row cli_commands[CLI_COMMAND_COUNT];
extern const cli_exit_row cli_exits[];
extern const size_t cli_exit_count;

const cli_option *cli_option_find(bay_str name); /* NULL when unknown */
const cli_option *cli_option_letter(char letter);
const cli_option *cli_option_nearest(bay_str name); /* NULL when none is near */

#endif
