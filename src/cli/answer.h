/* What a server answered, kept beyond the callback that brought it. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "mcp/client.h"

enum { CLI_ANSWER_TEXT_BYTES = 240 };

/* Values point into the answer itself: it is never copied or moved. */
typedef struct cli_answer {
    mcp_outcome_kind kind;
    bay_err err; /* FAILED */
    int error_code;
    char text[CLI_ANSWER_TEXT_BYTES]; /* FAILED: why; may be empty */
    json_val value;                   /* RESULT: the result; ERROR: the error object */
    arena memory;
} cli_answer;

void cli_answer_init(cli_answer *self);
void cli_answer_fini(cli_answer *self);

/* Replaces what was kept. An outcome too big for memory is kept as FAILED. */
void cli_answer_keep(cli_answer *self, const mcp_outcome *outcome);
void cli_answer_fail(cli_answer *self, bay_err err, const char *text);

#endif
