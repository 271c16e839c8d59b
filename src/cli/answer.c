#include "cli/answer.h"

#include <stdio.h>

#include "base/str.h"

enum { BYTES = 128 << 20, MEMORY = 512 << 20 };

void cli_answer_init(cli_answer *self)
{
    *self = (cli_answer){.kind = MCP_OUTCOME_FAILED, .err = BAY_STATE};
    buf_init(&self->bytes, BYTES);
    arena_init(&self->memory, MEMORY);
}

void cli_answer_fini(cli_answer *self)
{
    buf_fini(&self->bytes);
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
    buf_clear(&self->bytes);
    arena_reset(&self->memory);
    buf_str(&self->bytes, json_raw(value));
    bay_err err = self->bytes.err;
    if (err == BAY_OK) {
        /* it was parsed before within the limits of its sender: only memory can fail now */
        err = json_parse(&self->doc, buf_view(&self->bytes), NULL, &self->memory, NULL);
    }
    if (err != BAY_OK) {
        cli_answer_fail(self, err, "the answer is too big for this command");
        return;
    }
    self->kind = outcome->kind;
    self->err = BAY_OK;
    self->error_code = outcome->error_code;
    self->text[0] = '\0';
    self->value = json_root(&self->doc);
}
