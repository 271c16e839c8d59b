/* A command line while it is read: arguments_options.c takes the options, arguments.c the operands. */
#ifndef CLI_ARGUMENTS_PARSER_H
#define CLI_ARGUMENTS_PARSER_H

#include "cli/arguments.h"

typedef struct cli_parser {
    cli_arguments *out;
    bay_diag *diag;
    char **operands; /* argv[1..], compacted */
    size_t operand_count;
    uint64_t given; /* options, one bit each */
} cli_parser;

/* Takes the options, and gathers the operands. Errors: BAY_ERR_INVALID, with `diag`. */
bay_err cli_take_options(cli_parser *self, int argc, char **argv) BAY_MUST_CHECK;

#endif
