#include "cli/answer.h"

#include <stdio.h>

#include "base/str.h"

enum { MEMORY = 512 << 20 };

void cli_answer_init(cli_answer *self)
{
    *self = (cli_answer){.kind = MCP_OUTCOME_FAILED, .err = BAY_ERR_STATE};
    arena_init(&self->memory, MEMORY);
}

void cli_answer_fini(cli_answer *self)
{
    arena_fini(&self->memory);
    self->value = JSON_NONE;
}

void cli_answer_fail(cli_answer *self, bay_err err, const char *text)
{
    self->kind = MCP_OUTCOME_FAILED;
    self->err = err;
    self->value = JSON_NONE;
    snprintf(self->text, sizeof(self->text), "%s", text != NULL ? text : "");
}

void cli_answer_keep(cli_answer *self, const mcp_outcome *outcome)
{
    if (outcome->kind == MCP_OUTCOME_FAILED) {
        cli_answer_fail(self, outcome->err, outcome->text);
        return;
    }
    json_val value = outcome->kind == MCP_OUTCOME_RESULT ? outcome->result : outcome->error;
    arena_reset(&self->memory);
    bay_err err = json_clone_in(value, &self->memory, &self->value);
    if (err != BAY_OK) {
        cli_answer_fail(self, err, "the answer is too big for this command");
        return;
    }
    self->kind = outcome->kind;
    self->err = BAY_OK;
    self->error_code = outcome->error_code;
    self->text[0] = '\0';
}
