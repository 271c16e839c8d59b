/* Findings that the configuration and --silence silence. */
#ifndef CLI_SILENCES_H
#define CLI_SILENCES_H

#include "cli/arguments.h"
#include "trust/findings.h"

typedef struct cli_silences {
    trust_silences all;
    buf text; /* of the file */
} cli_silences;

/* `settings` may be NULL. What is wrong is said. `*out` is set in any case, or NULL: cli_silences_free. */
cli_exit cli_silences_load(const cli_arguments *arguments, const config *settings,
                           cli_silences **out);
void cli_silences_free(cli_silences *self); /* NULL is fine */

#endif
