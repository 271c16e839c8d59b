/* One function per command; each returns the exit status and prints for itself. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/arguments.h"
#include "cli/output.h"

int cmd_serve(const cli_arguments *arguments);
int cmd_stdio(const cli_arguments *arguments);
int cmd_list(const cli_arguments *arguments);
int cmd_call(const cli_arguments *arguments);
int cmd_read(const cli_arguments *arguments);
int cmd_prompt(const cli_arguments *arguments);
int cmd_step(const cli_arguments *arguments);
int cmd_lint(const cli_arguments *arguments);
int cmd_diff(const cli_arguments *arguments);
int cmd_pin(const cli_arguments *arguments);
int cmd_contract(const cli_arguments *arguments);
int cmd_grade(const cli_arguments *arguments);
int cmd_card(const cli_arguments *arguments);
int cmd_send(const cli_arguments *arguments);
int cmd_task(const cli_arguments *arguments);
int cmd_cancel(const cli_arguments *arguments);
int cmd_login(const cli_arguments *arguments);
int cmd_logout(const cli_arguments *arguments);
int cmd_whoami(const cli_arguments *arguments);
int cmd_status(const cli_arguments *arguments);
int cmd_reload(const cli_arguments *arguments);
int cmd_block(const cli_arguments *arguments);
int cmd_key(const cli_arguments *arguments);
int cmd_drain(const cli_arguments *arguments);

/* log_sink.c: the log on stderr, as text or JSON lines. */
void cli_log_open(log_level level, config_log_format format);

/* config_file.c: the configuration named on the command line, or patchbay.yaml; its complaints go
 * to stderr. Errors: as config_load_file. */
bay_err cli_load_config(const cli_arguments *arguments, const char **out_path,
                        const config **out) BAY_MUST_CHECK;

#endif
