/* One function per command; each returns the exit status and prints for itself. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/arguments.h"
#include "cli/output.h"

#define CLI_COMMAND(symbol, name, run, starts_servers, operands, summary, detail)                  \
    int run(const cli_arguments *arguments);
#define CLI_OPTION(symbol, letter, name, argument, commands, doc)
#define CLI_EXIT(symbol, code, doc)
#include "cli/commands.def"

/* log_sink.c: the log on stderr, as text or JSON lines. */
void cli_log_open(log_level level, config_log_format format);

/* config_file.c: the configuration named on the command line, or patchbay.yaml; its complaints go
 * to stderr. Errors: as config_load_file. */
bay_err cli_load_config(const cli_arguments *arguments, bool is_served, const char **out_path,
                        const config **out) BAY_MUST_CHECK;
const char *cli_config_path(const cli_arguments *arguments);

#endif
