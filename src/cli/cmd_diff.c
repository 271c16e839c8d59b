/* diff: compares two sets of definitions. */
#include "base/err.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/definitions.h"
#include "cli/print.h"
#include "cli/say.h"
#include "trust/diff.h"

typedef struct differ {
    const cli_arguments *arguments;
    const config *settings; /* NULL: none is needed */
    trust_lock lock;
    cli_definitions sets[2];
    size_t count; /* of sets that were begun */
    scanner *scan;
    trust_diff diff;
} differ;

cli_exit cli_exit_of_class(trust_class class)
{
    return class == TRUST_SAME         ? CLI_EXIT_OK
           : class == TRUST_COMPATIBLE ? CLI_EXIT_COMPATIBLE
           : class == TRUST_REVIEW     ? CLI_EXIT_REVIEW
                                       : CLI_EXIT_BREAKING;
}

/* What the lock has of the other set. */
static cli_exit load_from_lock(differ *self, cli_definitions *out, const cli_definitions *of)
{
    const char *path;
    cli_exit code = cli_lock_load(self->arguments, self->settings, &self->lock, &path);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    if (of->pin.len == 0) {
        cli_say("--name is missing: the name of this server in %s", path);
        return CLI_EXIT_USAGE;
    }
    if (trust_lock_find(&self->lock, of->pin, of->is_agent) == NULL) {
        cli_say("%s has no %s \"%.*s\": patchbay pin record puts it in", path,
                of->is_agent ? "agent" : "server", BAY_STR(of->pin));
        return CLI_EXIT_CONFIG;
    }
    return cli_definitions_load_pinned(out, &self->lock, of->pin, of->is_agent);
}

static cli_exit load(differ *self)
{
    cli_arguments before = *self->arguments;
    const char *path = NULL;
    if (cli_definitions_need_config(self->arguments) &&
        cli_load_config(self->arguments, false, &path, &self->settings) != BAY_OK) {
        return CLI_EXIT_CONFIG;
    }
    bool is_other_client = self->arguments->client_name != NULL;
    if (is_other_client && self->arguments->before_kind != CLI_TARGET_NONE) {
        cli_say("--as-client compares TARGET with itself: leave BEFORE out");
        return CLI_EXIT_USAGE;
    }
    if (is_other_client) {
        before.client_name = NULL;
    } else {
        before.target_kind = self->arguments->before_kind;
        before.target = self->arguments->before;
    }
    self->count = 1;
    cli_exit code = cli_definitions_load(&self->sets[0], &before);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    self->count = 2;
    code = cli_definitions_load(&self->sets[1], self->arguments);
    if (code == CLI_EXIT_OK && before.target_kind == CLI_TARGET_NONE) {
        code = load_from_lock(self, &self->sets[0], &self->sets[1]);
    }
    return code;
}

static cli_exit print(differ *self)
{
    output device;
    buf text;
    bool is_json = self->arguments->is_json;
    cli_exit code = cli_exit_of_class(self->diff.worst);
    cli_print_init(&device, &text, self->arguments);
    if (is_json) {
        trust_diff_write_json(&self->diff, &self->sets[0].all, &self->sets[1].all, &text);
        bay_err err = text.err;
        code = err == BAY_OK ? cli_print_json(&device, buf_view(&text), code) : cli_fail(err);
    } else {
        trust_diff_write_text(&self->diff, &text);
        code = cli_print(&device, &text, code);
    }
    buf_fini(&text);
    return code;
}

static cli_exit run(differ *self)
{
    cli_exit code = load(self);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    bay_err err = scanner_new(&self->scan);
    err = err == BAY_OK
              ? trust_diff_run(&self->diff, &self->sets[0].all, &self->sets[1].all, self->scan)
              : err;
    return err == BAY_OK ? print(self) : cli_fail(err);
}

int cmd_diff(const cli_arguments *arguments)
{
    differ self = {.arguments = arguments};
    trust_lock_init(&self.lock);
    trust_diff_init(&self.diff);
    cli_exit code = run(&self);
    trust_diff_fini(&self.diff);
    for (size_t i = 0; i < self.count; i++) {
        cli_definitions_fini(&self.sets[i]);
    }
    trust_lock_fini(&self.lock);
    scanner_free(self.scan);
    config_free(self.settings);
    return (int)code;
}
