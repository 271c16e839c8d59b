/* lint: attacks and mistakes in definitions. */
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/agent.h"
#include "cli/commands.h"
#include "cli/conformance.h"
#include "cli/definitions.h"
#include "cli/print.h"
#include "cli/say.h"
#include "cli/silences.h"
#include "cli/tokens.h"
#include "trust/lint.h"
#include "trust/relations.h"

enum { NAMES = 1000000 };

typedef struct linter {
    const cli_arguments *arguments;
    const config *settings; /* NULL: none is needed */
    scanner *scan;
    scan_rule_set *rules;
    cli_silences *silences;
    cli_definitions *servers;
    size_t count;
    const trust_definitions **looked_at; /* those of the servers */
    trust_findings findings;
    scan_report report;
} linter;

/* ---- what to look for ------------------------------------------------------------------------ */

static cli_exit take_rules(linter *self)
{
    bay_err err = scanner_new(&self->scan);
    if (err == BAY_OK && self->settings != NULL) {
        err = config_scan_rules(self->settings, &self->rules);
    }
    if (err != BAY_OK) {
        return cli_fail(err);
    }
    scanner_set_rules(self->scan, self->rules);
    return CLI_EXIT_OK;
}

static void say_unused(const linter *self)
{
    for (size_t i = 0; i < self->silences->all.count; i++) {
        const trust_silence *silence = &self->silences->all.at[i];
        if (silence->used == 0 && self->arguments->target_kind == CLI_TARGET_NONE) {
            cli_say("no finding matches the silence \"%.*s %.*s\": remove it",
                    BAY_STR(silence->rule), BAY_STR(silence->item));
        }
    }
}

/* ---- what to look at ------------------------------------------------------------------------- */

static cli_exit load_all(linter *self)
{
    cli_arguments one;
    cli_exit first = CLI_EXIT_OK;
    for (size_t at = 0; cli_definitions_next(self->settings, self->arguments, &at, &one);) {
        cli_exit code = cli_definitions_load(&self->servers[self->count++], &one);
        first = first == CLI_EXIT_OK ? code : first;
        if (code >= 128) {
            return code; /* a signal */
        }
    }
    return first;
}

static cli_exit load(linter *self)
{
    size_t most =
        self->arguments->target_kind == CLI_TARGET_NONE ? cli_definitions_most(self->settings) : 1;
    self->servers = mem_array(most + 1, sizeof(*self->servers));
    self->looked_at = mem_array(most + 1, sizeof(*self->looked_at));
    if (self->servers == NULL || self->looked_at == NULL) {
        return cli_fail(BAY_ERR_NOMEM);
    }
    if (self->arguments->target_kind == CLI_TARGET_NONE) {
        return load_all(self);
    }
    return cli_definitions_load(&self->servers[self->count++], self->arguments);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* The names of tools of this server, and of the others with whose they are. */
static bay_err collect_names(const linter *self, size_t own, map *out_own, map *out_others)
{
    bay_err err = BAY_OK;
    for (size_t i = 0; err == BAY_OK && i < self->count; i++) {
        const trust_definitions *of = &self->servers[i].all;
        for (size_t k = 0; err == BAY_OK && k < of->count; k++) {
            const trust_item *item = &of->items[k];
            if (item->kind == TRUST_TOOL) {
                void *server = (void *)(uintptr_t)of->server.at;
                err = map_put(i == own ? out_own : out_others, item->name, server, NULL);
            }
        }
    }
    return err;
}

static bay_err scan_server(linter *self, size_t which)
{
    const trust_definitions *of = &self->servers[which].all;
    map own;
    map others;
    map_init(&own, NAMES);
    map_init(&others, NAMES);
    scan_names names = {&own, &others};
    bay_err err = collect_names(self, which, &own, &others);
    for (size_t i = 0; err == BAY_OK && i < of->count; i++) {
        const trust_item *item = &of->items[i];
        err = scan_definition(self->scan, trust_kind_scanned(item->kind), item->value, &names,
                              &self->report);
        if (err == BAY_OK) {
            err = trust_findings_add_scan(&self->findings, &self->report, of->server, item,
                                          &self->silences->all);
        }
    }
    map_fini(&own);
    map_fini(&others);
    return err;
}

/* Their form, and what their tools cost. */
static bay_err lint_servers(linter *self)
{
    size_t all_tools = 0;
    size_t all_tokens = 0;
    bay_err err = BAY_OK;
    for (size_t i = 0; err == BAY_OK && i < self->count; i++) {
        const trust_definitions *of = &self->servers[i].all;
        size_t tools = 0;
        size_t tokens = 0;
        for (size_t k = 0; k < of->count; k++) {
            if (of->items[k].kind == TRUST_TOOL) {
                tools++;
                tokens += cli_tokens_of_tool(of->items[k].value);
            }
        }
        err = trust_lint_run(&self->findings, of, &self->silences->all);
        err = err == BAY_OK ? trust_lint_budget(&self->findings, of->server, tools, tokens,
                                                &self->silences->all)
                            : err;
        all_tools += tools;
        all_tokens += tokens;
    }
    return err == BAY_OK && self->count > 1
               ? trust_lint_budget(&self->findings, STR("(all)"), all_tools, all_tokens,
                                   &self->silences->all)
               : err;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static cli_exit print_findings(linter *self, const trust_definitions *const *looked_at,
                               size_t count)
{
    output device;
    buf text;
    trust_findings_sort(&self->findings);
    cli_print_init(&device, &text, self->arguments);
    switch (self->arguments->form) {
    case CLI_FORM_JSON:
        trust_findings_write_json(&self->findings, &text);
        break;
    case CLI_FORM_SARIF:
        trust_findings_write_sarif(&self->findings, str_of(bay_version()), &text);
        break;
    case CLI_FORM_JUNIT:
        trust_findings_write_junit(&self->findings, looked_at, count, &text);
        break;
    default:
        trust_findings_write_text(&self->findings, &text);
        break;
    }
    const size_t *counts = self->findings.counts;
    cli_exit code = counts[SCAN_ERROR] > 0     ? CLI_EXIT_BREAKING
                    : counts[SCAN_WARNING] > 0 ? CLI_EXIT_REVIEW
                                               : CLI_EXIT_OK;
    bool is_json =
        self->arguments->form == CLI_FORM_JSON || self->arguments->form == CLI_FORM_SARIF;
    code =
        is_json ? cli_print_json(&device, buf_view(&text), code) : cli_print(&device, &text, code);
    buf_fini(&text);
    return code;
}

static bool is_examinable(const cli_arguments *arguments)
{
    return arguments->target_kind != CLI_TARGET_NONE && arguments->target_kind != CLI_TARGET_FILE;
}

static cli_exit examine(linter *self)
{
    const cli_arguments *arguments = self->arguments;
    trust_definitions none; /* only its name */
    const trust_definitions *looked_at = &none;
    trust_definitions_init(&none, arguments->target_kind == CLI_TARGET_NAME ? arguments->target
                                                                            : (bay_str){"", 0});
    cli_exit code =
        cli_conformance_run(arguments, none.server, &self->findings, &self->silences->all);
    cli_exit printed = code == CLI_EXIT_OK || self->findings.count > 0
                           ? print_findings(self, &looked_at, 1)
                           : code;
    trust_definitions_fini(&none);
    return code == CLI_EXIT_OK ? printed : code;
}

static cli_exit run(linter *self)
{
    const char *path = NULL;
    if (self->arguments->is_conformance && !is_examinable(self->arguments)) {
        cli_say("--conformance needs a TARGET that answers: a server or an agent");
        return CLI_EXIT_USAGE;
    }
    if (cli_definitions_need_config(self->arguments)) {
        bay_err err = cli_load_config(self->arguments, false, &path, &self->settings);
        if (err != BAY_OK) {
            return err == BAY_ERR_NOMEM ? CLI_EXIT_FAILED : CLI_EXIT_CONFIG;
        }
    }
    cli_exit code = take_rules(self);
    if (code == CLI_EXIT_OK) {
        code = cli_silences_load(self->arguments, self->settings, &self->silences);
    }
    if (code != CLI_EXIT_OK) {
        return code;
    }
    if (self->arguments->is_conformance) {
        return examine(self);
    }
    cli_exit loaded = load(self);
    bay_err err = BAY_OK;
    for (size_t i = 0; err == BAY_OK && i < self->count; i++) {
        self->looked_at[i] = &self->servers[i].all;
        err = scan_server(self, i);
    }
    err = err == BAY_OK ? lint_servers(self) : err;
    if (err == BAY_OK) {
        err = trust_relations_add(&self->findings, self->looked_at, self->count,
                                  &self->silences->all);
    }
    if (err != BAY_OK) {
        return cli_fail(err);
    }
    if (loaded == CLI_EXIT_OK || self->findings.count > 0) {
        code = print_findings(self, self->looked_at, self->count);
    }
    say_unused(self);
    return loaded == CLI_EXIT_OK ? code : loaded; /* a server that was not seen is no good news */
}

int cmd_lint(const cli_arguments *arguments)
{
    linter self = {.arguments = arguments};
    trust_findings_init(&self.findings);
    cli_exit code = run(&self);
    for (size_t i = 0; i < self.count; i++) {
        cli_definitions_fini(&self.servers[i]);
    }
    mem_free(self.servers);
    mem_free(self.looked_at);
    cli_silences_free(self.silences);
    trust_findings_fini(&self.findings);
    scan_rule_set_free(self.rules);
    scanner_free(self.scan);
    config_free(self.settings);
    return (int)code;
}
