/* Lines for a person on stderr. */
#ifndef CLI_SAY_H
#define CLI_SAY_H

#include "base/buf.h"
#include "cli/arguments.h"
#include "patchbay/types.h"

/* "patchbay: …" and a line end. The text may hold a peer's: what a terminal would obey is replaced,
 * and it stays one line. */
void cli_say(const char *format, ...) BAY_PRINTF(1, 2);

/* Why something failed and what to do about it: "`where`: `text`. `hint`." `text` NULL or empty:
 * that of the error. */
void cli_say_failure(const char *where, bool is_process, bay_err err, const char *text);

/* Says the error of no particular place; returns the exit code: CLI_EXIT_PROTOCOL where a maximum was exceeded, else
 * CLI_EXIT_FAILED. */
cli_exit cli_fail(bay_err err);

/* Appends "1,234,567". */
void cli_put_count(buf *out, uint64_t count);

#endif
