#include "cli/definitions.h"

#include "base/check.h"
#include "base/str.h"
#include "cli/agent.h"
#include "cli/say.h"

static const struct {
    cli_list list;
    trust_kind kind;
} kinds[] = {
    {CLI_LIST_TOOLS, TRUST_TOOL},
    {CLI_LIST_RESOURCES, TRUST_RESOURCE},
    {CLI_LIST_TEMPLATES, TRUST_TEMPLATE},
    {CLI_LIST_PROMPTS, TRUST_PROMPT},
};

static cli_exit fail(bay_err err)
{
    cli_say("%s", bay_err_text(err));
    return CLI_EXIT_FAILED;
}

static cli_exit take_inventory(cli_definitions *self)
{
    bay_err err = BAY_OK;
    for (size_t i = 0; err == BAY_OK && i < ARRAY_LEN(kinds); i++) {
        err = trust_definitions_add_list(&self->all, kinds[i].kind,
                                         self->inventory.lists[kinds[i].list].items);
    }
    if (err == BAY_OK && self->inventory.instructions.len > 0) {
        err = trust_definitions_add_text(&self->all, TRUST_INSTRUCTIONS,
                                         self->inventory.instructions);
    }
    return err == BAY_OK ? CLI_EXIT_OK : fail(err);
}

static cli_exit load_server(cli_definitions *self, const cli_arguments *arguments)
{
    cli_session *session = NULL;
    cli_exit code = cli_session_open(arguments, NULL, &session);
    if (code == CLI_EXIT_OK) {
        code = cli_inventory_fetch(&self->inventory, session);
        cli_exit taken = take_inventory(self); /* texts of the session are copied */
        code = code == CLI_EXIT_OK ? taken : code;
    }
    return cli_session_close(session, code);
}

static cli_exit load_file(cli_definitions *self, const char *name)
{
    buf text;
    bay_str bytes;
    bay_diag diag = {0};
    buf_init(&text, CLI_RECORDING_BYTES);
    cli_exit code = cli_agent_read_file(name, "TARGET", &text);
    if (code != CLI_EXIT_OK) {
        buf_fini(&text);
        return code;
    }
    bay_err err = arena_dup(&self->memory, buf_view(&text), &bytes);
    buf_fini(&text);
    if (err != BAY_OK) {
        return fail(err);
    }
    err = json_parse(&self->recording, bytes, NULL, &self->memory, &diag);
    if (err != BAY_OK) {
        cli_say("%s: no JSON at byte %zu: %s", name, diag.offset, diag.text);
        return err == BAY_ERR_NOMEM ? CLI_EXIT_FAILED : CLI_EXIT_USAGE;
    }
    err = trust_definitions_add_object(&self->all, json_root(&self->recording), &diag);
    if (err != BAY_OK) {
        cli_say("%s: %s", name, diag.text);
        return err == BAY_ERR_INVALID ? CLI_EXIT_USAGE : CLI_EXIT_FAILED;
    }
    return CLI_EXIT_OK;
}

/* What findings name it by: a name of the configuration, else nothing, as there is only the one. */
static bay_str name_of(const cli_arguments *arguments)
{
    return arguments->target_kind == CLI_TARGET_NAME ? arguments->target : (bay_str){"", 0};
}

cli_exit cli_definitions_load(cli_definitions *self, const cli_arguments *arguments)
{
    *self = (cli_definitions){0};
    arena_init(&self->memory, 2 * (size_t)CLI_RECORDING_BYTES);
    cli_inventory_init(&self->inventory);
    trust_definitions_init(&self->all, name_of(arguments));
    cli_exit code = arguments->target_kind == CLI_TARGET_FILE
                        ? load_file(self, arguments->target.at + 1)
                        : load_server(self, arguments);
    trust_definitions_sort(&self->all);
    return code;
}

void cli_definitions_fini(cli_definitions *self)
{
    trust_definitions_fini(&self->all);
    cli_inventory_fini(&self->inventory);
    arena_fini(&self->memory);
}
