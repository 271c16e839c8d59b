/* The definitions of a TARGET, for commands that look at them: of a server that is spoken to, or of a file
 * that was kept (@FILE: the output of list --json, a list's result, an agent's card). */
#ifndef CLI_DEFINITIONS_H
#define CLI_DEFINITIONS_H

#include "cli/inventory.h"
#include "trust/definitions.h"

enum { CLI_RECORDING_BYTES = 512 << 20 };

typedef struct cli_definitions {
    trust_definitions all; /* sorted */
    cli_inventory inventory;
    json_doc recording;
    arena memory;
} cli_definitions;

/* What was read before something failed is there; why was said on stderr. In any case:
 * cli_definitions_fini. */
cli_exit cli_definitions_load(cli_definitions *self, const cli_arguments *arguments);
void cli_definitions_fini(cli_definitions *self);

#endif
