#include "cli/definitions.h"

#include "base/check.h"
#include "base/str.h"
#include "cli/agent.h"
#include "cli/commands.h"
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
    return err == BAY_OK ? CLI_EXIT_OK : cli_fail(err);
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

/* Its card, as it was fetched. */
static cli_exit load_agent(cli_definitions *self, const cli_arguments *arguments)
{
    cli_agent *agent = NULL;
    cli_arguments to = *arguments;
    bay_str card;
    to.target_kind = str_find(to.target, ':') < to.target.len ? CLI_TARGET_URL : CLI_TARGET_NAME;
    cli_exit code = cli_agent_open(&to, &agent);
    if (code == CLI_EXIT_OK) {
        bay_err err =
            arena_dup(&self->memory, bay_caller_card_source(cli_agent_caller(agent)), &card);
        err = err == BAY_OK ? json_parse(&self->recording, card, NULL, &self->memory, NULL) : err;
        err = err == BAY_OK ? trust_definitions_add_card(&self->all, json_root(&self->recording))
                            : err;
        code = err == BAY_OK ? CLI_EXIT_OK : cli_fail(err);
    }
    return cli_agent_close(agent, code);
}

/* ---- files ----------------------------------------------------------------------------------- */

cli_exit cli_definitions_load_pinned(cli_definitions *self, const trust_lock *lock, bay_str name,
                                     bool is_agent)
{
    const trust_pinned *pinned = trust_lock_find(lock, name, is_agent);
    bay_err err = pinned != NULL ? trust_pinned_definitions(pinned, &self->all) : BAY_OK;
    return err == BAY_OK ? CLI_EXIT_OK : cli_fail(err);
}

/* The section that the command names, else the only one. */
static cli_exit load_lock(cli_definitions *self, const char *name, bay_str text)
{
    bay_diag diag = {0};
    bay_err err = trust_lock_read(&self->lock, text, &diag);
    if (err != BAY_OK) {
        cli_say("%s:%u: %s", name, diag.line, diag.text);
        return err == BAY_ERR_NOMEM ? CLI_EXIT_FAILED : CLI_EXIT_USAGE;
    }
    const trust_pinned *pinned = NULL;
    if (self->pin.len > 0) {
        pinned = trust_lock_find(&self->lock, self->pin, false);
        pinned = pinned != NULL ? pinned : trust_lock_find(&self->lock, self->pin, true);
    } else if (self->lock.count == 1) {
        pinned = &self->lock.servers[0];
    }
    if (pinned == NULL) {
        cli_say(self->pin.len > 0 ? "%s has no server and no agent \"%.*s\""
                                  : "%s has several servers: choose one with --name%.*s",
                name, BAY_STR(self->pin));
        return CLI_EXIT_USAGE;
    }
    self->is_agent = pinned->is_agent;
    return cli_definitions_load_pinned(self, &self->lock, pinned->name, pinned->is_agent);
}

static cli_exit load_recording(cli_definitions *self, const char *name, bay_str text)
{
    bay_diag diag = {0};
    bay_err err = json_parse(&self->recording, text, NULL, &self->memory, &diag);
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

static cli_exit load_file(cli_definitions *self, const char *name)
{
    buf text;
    bay_str bytes = {"", 0};
    buf_init(&text, CLI_RECORDING_BYTES);
    cli_exit code = cli_agent_read_file(name, "TARGET", &text);
    bay_err err = code == CLI_EXIT_OK ? arena_dup(&self->memory, buf_view(&text), &bytes) : BAY_OK;
    buf_fini(&text);
    if (code != CLI_EXIT_OK || err != BAY_OK) {
        return code != CLI_EXIT_OK ? code : cli_fail(err);
    }
    return str_starts(str_trim(bytes), STR("patchbay.lock ")) ? load_lock(self, name, bytes)
                                                              : load_recording(self, name, bytes);
}

/* What findings name it by: a name of the configuration, else nothing, as there is only the one. */
static bay_str name_of(const cli_arguments *arguments)
{
    bool is_named = arguments->target_kind == CLI_TARGET_NAME ||
                    (arguments->target_kind == CLI_TARGET_AGENT &&
                     str_find(arguments->target, ':') == arguments->target.len);
    return is_named ? arguments->target : (bay_str){"", 0};
}

cli_exit cli_definitions_load(cli_definitions *self, const cli_arguments *arguments)
{
    cli_exit code;
    *self = (cli_definitions){.is_agent = arguments->target_kind == CLI_TARGET_AGENT};
    arena_init(&self->memory, 2 * (size_t)CLI_RECORDING_BYTES);
    trust_lock_init(&self->lock);
    cli_inventory_init(&self->inventory);
    trust_definitions_init(&self->all, name_of(arguments));
    self->pin = arguments->pin_name != NULL ? str_of(arguments->pin_name) : name_of(arguments);
    switch (arguments->target_kind) {
    case CLI_TARGET_NONE:
        return CLI_EXIT_OK;
    case CLI_TARGET_FILE:
        code = load_file(self, arguments->target.at + 1);
        break;
    case CLI_TARGET_AGENT:
        code = load_agent(self, arguments);
        break;
    default:
        code = load_server(self, arguments);
        break;
    }
    trust_definitions_sort(&self->all);
    return code;
}

void cli_definitions_fini(cli_definitions *self)
{
    trust_definitions_fini(&self->all);
    cli_inventory_fini(&self->inventory);
    trust_lock_fini(&self->lock);
    arena_fini(&self->memory);
}

cli_exit cli_lock_load(const cli_arguments *arguments, const config *settings, trust_lock *lock,
                       const char **out_path)
{
    bay_diag diag = {0};
    *out_path = arguments->lock_file != NULL ? arguments->lock_file
                : settings != NULL           ? settings->pins.file.at
                                             : "patchbay.lock";
    bay_err err = trust_lock_load(lock, *out_path, &diag);
    if (err == BAY_OK) {
        return CLI_EXIT_OK;
    }
    if (diag.line > 0) {
        cli_say("%s:%u: %s", *out_path, diag.line, diag.text);
    } else {
        cli_say("%s", diag.text);
    }
    return err == BAY_ERR_IO || err == BAY_ERR_NOMEM ? CLI_EXIT_FAILED : CLI_EXIT_CONFIG;
}

/* ---- what the server is ----------------------------------------------------------------------- */

static const char *path_of(const cli_target *target)
{
    for (size_t i = 0; target->env != NULL && target->env[i] != NULL; i++) {
        if (strncmp(target->env[i], "PATH=", 5) == 0) {
            return target->env[i] + 5;
        }
    }
    return NULL;
}

void cli_identify(const cli_arguments *arguments, buf *out)
{
    cli_target target;
    bay_diag diag = {0};
    bay_err err = BAY_OK;
    if (arguments->target_kind == CLI_TARGET_FILE) {
        return;
    }
    if (arguments->target_kind == CLI_TARGET_AGENT) {
        return; /* its card says where it is, and is pinned whole */
    }
    if (cli_target_resolve(&target, arguments) == CLI_EXIT_OK) {
        err = target.is_process
                  ? trust_identity_command(target.argv, target.cwd, path_of(&target), out, &diag)
                  : trust_identity_url(target.url, out);
    }
    if (err != BAY_OK) {
        cli_say("the identity of the server cannot be determined: %s",
                diag.text[0] != '\0' ? diag.text : bay_err_text(err));
        buf_clear(out);
    }
    cli_target_fini(&target);
}

/* ---- of the configuration -------------------------------------------------------------------- */

bool cli_definitions_need_config(const cli_arguments *arguments)
{
    return arguments->target_kind == CLI_TARGET_NONE || arguments->target_kind == CLI_TARGET_NAME ||
           arguments->config_file != NULL;
}

size_t cli_definitions_most(const config *settings)
{
    return settings->server_count + settings->agent_count;
}

bool cli_definitions_next(const config *settings, const cli_arguments *arguments, size_t *inout_at,
                          cli_arguments *out)
{
    *out = *arguments;
    while (*inout_at < cli_definitions_most(settings)) {
        size_t at = (*inout_at)++;
        if (at < settings->server_count) {
            const config_server *server = &settings->servers[at];
            out->target_kind = CLI_TARGET_NAME;
            out->target = server->name;
            if (!server->is_disabled && server->agent.len == 0) {
                return true;
            }
        } else {
            const config_agent *agent = &settings->agents[at - settings->server_count];
            out->target_kind = CLI_TARGET_AGENT;
            out->target = agent->name;
            if (!agent->is_disabled && agent->tools.at == NULL) {
                return true;
            }
        }
    }
    return false;
}
