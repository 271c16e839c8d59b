#include "cli/silences.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/agent.h"
#include "cli/say.h"

enum { SILENCE_BYTES = 1 << 20 };

/* "RULE ITEM: REASON", one a line; what follows # at a line's start is a comment. */
static cli_exit take_file(cli_silences *self, const char *name)
{
    cli_exit code = cli_agent_read_file(name, "--silence", &self->text);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    bay_str rest = buf_view(&self->text);
    for (unsigned line = 1; rest.len > 0; line++) {
        bay_str text = str_head(rest, str_find(rest, '\n'));
        bay_diag diag = {0};
        rest = str_from(rest, text.len + 1);
        text = str_ends(text, STR("\r")) ? str_head(text, text.len - 1) : text;
        text = str_trim(text);
        if (text.len == 0 || text.at[0] == '#') {
            continue;
        }
        size_t colon = str_find(text, ':');
        while (colon + 1 < text.len && text.at[colon + 1] != ' ') { /* one of a URI */
            colon += 1 + str_find(str_from(text, colon + 1), ':');
        }
        if (trust_silences_add(&self->all, str_head(text, colon), str_from(text, colon + 1),
                               &diag) != BAY_OK) {
            cli_say("%s:%u: %s", name, line, diag.text);
            return CLI_EXIT_USAGE;
        }
    }
    return CLI_EXIT_OK;
}

cli_exit cli_silences_load(const cli_arguments *arguments, const config *settings,
                           cli_silences **out)
{
    cli_silences *self = mem_zalloc(sizeof(*self));
    *out = self;
    if (self == NULL) {
        cli_say("%s", bay_err_text(BAY_ERR_NOMEM));
        return CLI_EXIT_FAILED;
    }
    buf_init(&self->text, SILENCE_BYTES);
    for (size_t i = 0; settings != NULL && i < settings->silence.count; i++) {
        const config_pair *pair = &settings->silence.at[i];
        bay_diag diag = {0};
        if (trust_silences_add(&self->all, pair->name, pair->value, &diag) != BAY_OK) {
            cli_say("silence: %s", diag.text);
            return CLI_EXIT_CONFIG;
        }
    }
    return arguments->silence_file != NULL ? take_file(self, arguments->silence_file) : CLI_EXIT_OK;
}

void cli_silences_free(cli_silences *self)
{
    if (self != NULL) {
        buf_fini(&self->text);
        mem_free(self);
    }
}
