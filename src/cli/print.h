/* Data on stdout, with what may go wrong there. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include "cli/arguments.h"
#include "cli/output.h"

enum { CLI_PRINT_BYTES = 1024 * 1024 * 1024 };

void cli_print_init(output *device, buf *text, const cli_arguments *arguments);

/* Writes and empties `text`. Returns `code`, or CLI_EXIT_FAILED after saying why. */
cli_exit cli_print(output *device, buf *text, cli_exit code);

/* One line of JSON. */
cli_exit cli_print_json(output *device, bay_str raw, cli_exit code);

#endif
