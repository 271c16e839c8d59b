/* grade: how far a server or agent can be trusted, A to F, with each reason. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/contract_run.h"
#include "cli/definitions.h"
#include "cli/print.h"
#include "cli/say.h"
#include "cli/silences.h"
#include "trust/grade.h"

typedef struct grader {
    const cli_arguments *arguments;
    const config *settings; /* NULL: none is needed */
    cli_definitions definitions;
    trust_findings findings;
    trust_lock lock;
    buf identity;
    grade_facts facts;
    trust_grade grade;
} grader;

/* As lint does, but for the names of other servers. */
static cli_exit scan(grader *self)
{
    scan_rule_set *rules = NULL;
    cli_silences *silences = NULL;
    cli_exit code = cli_silences_load(self->arguments, self->settings, &silences);
    bay_err err = BAY_OK;
    if (code == CLI_EXIT_OK && self->settings != NULL) {
        err = config_scan_rules(self->settings, &rules);
    }
    if (code == CLI_EXIT_OK && err == BAY_OK) {
        err = trust_grade_scan(&self->definitions.all, rules, &silences->all, &self->findings);
    }
    scan_rule_set_free(rules);
    cli_silences_free(silences);
    return err == BAY_OK ? code : cli_fail(err);
}

static cli_exit take_server(grader *self)
{
    cli_target target;
    cli_exit code = cli_target_resolve(&target, self->arguments);
    if (code == CLI_EXIT_OK) {
        self->facts.transport =
            target.is_process ? GRADE_PROCESS : trust_grade_transport(target.url);
        self->facts.has_sandbox = target.sandbox != NULL;
        self->facts.has_credentials = target.field_count > 0 || target.tls.certificate_file != NULL;
    }
    cli_target_fini(&target);
    return code;
}

/* An agent is where its card says. */
static void take_agent(grader *self)
{
    const trust_item *item =
        trust_definitions_find(&self->definitions.all, TRUST_CARD, (bay_str){"", 0});
    json_val card = item != NULL ? item->value : JSON_NONE;
    json_val first = json_item(json_get(card, STR("supportedInterfaces")), 0);
    json_val url = json_get(json_is(first, JSON_OBJECT) ? first : card, STR("url"));
    bay_str text = {"", 0};
    err_ignore(json_str(url, &self->definitions.memory, &text));
    self->facts.is_agent = true;
    self->facts.transport = trust_grade_transport(text);
    self->facts.has_credentials = json_count(json_get(card, STR("securitySchemes"))) > 0 ||
                                  !json_is(json_get(card, STR("authentication")), JSON_MISSING);
}

static cli_exit run_contracts(void *user, const char *path, const trust_contracts *contracts)
{
    grader *self = user;
    cli_contract_run run;
    bool is_its = contracts->server.len == 0 ? self->arguments->contracts != NULL
                                             : str_eq(contracts->server, self->definitions.pin);
    (void)path;
    if (!is_its) {
        return CLI_EXIT_OK;
    }
    bay_err err = cli_contract_run_init(&run, contracts);
    cli_exit code = err == BAY_OK ? cli_contract_run_all(&run, self->arguments) : cli_fail(err);
    for (size_t i = 0; code == CLI_EXIT_OK && i < contracts->count; i++) {
        self->facts.contracts++;
        self->facts.held += run.outcomes[i].holds;
    }
    cli_contract_run_fini(&run);
    return code;
}

static cli_exit take_contracts(grader *self)
{
    struct stat found;
    const char *path = self->arguments->contracts;
    if (self->facts.is_agent || (path == NULL && stat("contracts", &found) != 0)) {
        return CLI_EXIT_OK;
    }
    return cli_contracts_each(path != NULL ? path : "contracts", run_contracts, self);
}

static cli_exit print(grader *self)
{
    output device;
    buf out;
    cli_exit code;
    cli_print_init(&device, &out, self->arguments);
    if (self->arguments->is_json) {
        trust_grade_write_json(&self->grade, self->definitions.pin, &out);
        code = cli_print_json(&device, buf_view(&out), CLI_EXIT_OK);
    } else {
        trust_grade_write_text(&self->grade, self->definitions.pin, &out);
        code = cli_print(&device, &out, CLI_EXIT_OK);
    }
    buf_fini(&out);
    return code;
}

static cli_exit run(grader *self)
{
    const char *path = NULL;
    if (cli_definitions_need_config(self->arguments) &&
        cli_load_config(self->arguments, false, &path, &self->settings) != BAY_OK) {
        return CLI_EXIT_CONFIG;
    }
    cli_exit code = cli_definitions_load(&self->definitions, self->arguments);
    code = code == CLI_EXIT_OK ? cli_lock_load(self->arguments, self->settings, &self->lock, &path)
                               : code;
    if (code == CLI_EXIT_OK && self->definitions.is_agent) {
        take_agent(self);
    } else if (code == CLI_EXIT_OK) {
        code = take_server(self);
        cli_identify(self->arguments, &self->identity);
    }
    code = code == CLI_EXIT_OK ? scan(self) : code;
    code = code == CLI_EXIT_OK ? take_contracts(self) : code;
    if (code != CLI_EXIT_OK) {
        return code;
    }
    self->facts.definitions = &self->definitions.all;
    self->facts.scan = &self->findings;
    self->facts.identity = buf_view(&self->identity);
    self->facts.pinned =
        trust_lock_find(&self->lock, self->definitions.pin, self->definitions.is_agent);
    bay_err err = trust_grade_run(&self->facts, &self->grade);
    return err == BAY_OK ? print(self) : cli_fail(err);
}

int cmd_grade(const cli_arguments *arguments)
{
    grader self = {.arguments = arguments};
    if (arguments->target_kind == CLI_TARGET_FILE) {
        cli_say(
            "grade needs a server or agent that runs: a recording does not say how it is reached");
        return CLI_EXIT_USAGE;
    }
    trust_findings_init(&self.findings);
    trust_lock_init(&self.lock);
    buf_init(&self.identity, TRUST_IDENTITY_BYTES);
    cli_exit code = run(&self);
    buf_fini(&self.identity);
    trust_lock_fini(&self.lock);
    trust_findings_fini(&self.findings);
    cli_definitions_fini(&self.definitions);
    config_free(self.settings);
    return (int)code;
}
