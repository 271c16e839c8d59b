/* contract: calls tools and compares their results with what a file expects; writes a first file. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/contract_run.h"
#include "cli/definitions.h"
#include "cli/print.h"
#include "cli/say.h"
#include "trust/findings.h"
#include "json/build.h"

enum { SERVERS = 1000, SCRATCH_BYTES = 64 };

typedef struct contractor {
    const cli_arguments *arguments;
    trust_findings findings;               /* a contract that fails is one */
    trust_definitions *looked_at[SERVERS]; /* of each file: an item for each contract */
    const trust_definitions *shown_to[SERVERS];
    size_t files;
    size_t held;
    size_t failed;
    buf text; /* of the report for people */
    buf json;
    json_writer writer;
} contractor;

/* ---- the report ------------------------------------------------------------------------------ */

static void put_text(json_writer *out, const char *key, bay_str text)
{
    json_key(out, str_of(key));
    json_put_str(out, text);
}

static void put_failures(buf *out, bay_str failures)
{
    while (failures.len > 0) {
        bay_str line = str_head(failures, str_find(failures, '\n'));
        failures = str_from(failures, line.len + 1);
        buf_lit(out, "            ");
        shown_append(out, line, SHOWN_LINE);
        buf_char(out, '\n');
    }
}

static void put_json(json_writer *out, const trust_contract *contract,
                     const cli_contract_outcome *outcome)
{
    bay_str failures = buf_view(&outcome->failures);
    json_open_object(out);
    put_text(out, "name", contract->name);
    put_text(out, "tool", contract->tool);
    json_key_lit(out, "holds");
    json_put_bool(out, outcome->holds);
    json_key_lit(out, "latencyMs");
    json_put_uint(out, outcome->latency_ms);
    json_key_lit(out, "failures");
    json_open_array(out);
    while (failures.len > 0) {
        bay_str line = str_head(failures, str_find(failures, '\n'));
        failures = str_from(failures, line.len + 1);
        json_put_str(out, line);
    }
    json_close_array(out);
    json_close_object(out);
}

static bay_err add_finding(contractor *self, const trust_contract *contract, bay_str server,
                           const char *rule, bay_str why, const char *remedy)
{
    trust_finding found = {
        .source = TRUST_BY_CONTRACT,
        .severity = SCAN_ERROR,
        .rule = str_of(rule),
        .server = server,
        .kind = TRUST_TOOL,
        .item = contract->name,
        .pointer = {"", 0},
        .why = why,
        .remedy = str_of(remedy),
    };
    return trust_findings_add(&self->findings, &found, NULL);
}

static bay_err report(contractor *self, const cli_contract_run *run, bay_str server)
{
    trust_definitions *of = self->looked_at[self->files - 1];
    bay_err err = BAY_OK;
    for (size_t i = 0; err == BAY_OK && i < run->contracts->count; i++) {
        const trust_contract *contract = &run->contracts->at[i];
        const cli_contract_outcome *outcome = &run->outcomes[i];
        self->held += outcome->holds;
        self->failed += !outcome->holds;
        buf_printf(&self->text, "  %-8s  ", outcome->holds ? "holds" : "fails");
        shown_append(&self->text, contract->name, SHOWN_LINE);
        buf_printf(&self->text, ", %llu ms\n", (unsigned long long)outcome->latency_ms);
        put_failures(&self->text, buf_view(&outcome->failures));
        put_json(&self->writer, contract, outcome);
        bay_str name; /* outlives the file's contracts */
        err = arena_dup(&of->memory, contract->name, &name);
        err =
            err == BAY_OK ? trust_definitions_add(of, TRUST_TOOL, name, json_empty_object()) : err;
        if (err == BAY_OK && !outcome->holds) {
            err = add_finding(self, contract, server, "contract",
                              str_trim(buf_view(&outcome->failures)),
                              "correct the server, or the contract");
        }
    }
    trust_definitions_sort(of);
    return err;
}

/* ---- claims ---------------------------------------------------------------------------------- */

typedef struct claim {
    const char *hint;
    const char *without; /* what is taken away */
    bool (*is_made)(const cli_contract_outcome *outcome);
} claim;

static bool reads_only(const cli_contract_outcome *outcome)
{
    return outcome->reads_only;
}

static bool is_closed(const cli_contract_outcome *outcome)
{
    return outcome->is_closed;
}

static const claim claims[] = {
    {"readOnlyHint", "where nothing but a scratch folder can be written", reads_only},
    {"openWorldHint: false", "without a network", is_closed},
};

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *at)
{
    (void)about;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

/* Runs what holds and makes the claim once more, without what the claim gives up. */
static cli_exit run_held(contractor *self, const cli_contract_run *run,
                         const cli_arguments *arguments, const claim *of,
                         const sandbox_options *sandbox, bay_str server)
{
    cli_contract_run again;
    cli_arguments held = *arguments;
    held.sandbox = sandbox;
    bay_err err = cli_contract_run_init(&again, run->contracts);
    size_t count = 0;
    for (size_t i = 0; err == BAY_OK && i < run->contracts->count; i++) {
        again.outcomes[i].is_wanted = run->outcomes[i].holds && of->is_made(&run->outcomes[i]);
        count += again.outcomes[i].is_wanted;
    }
    cli_exit code = err == BAY_OK && count > 0 ? cli_contract_run_all(&again, &held) : CLI_EXIT_OK;
    if (code != CLI_EXIT_OK && code < 128) {
        buf_printf(&self->text, "  undecided %s: the server does not start %s\n", of->hint,
                   of->without);
        code = CLI_EXIT_OK;
        count = 0;
    }
    for (size_t i = 0; err == BAY_OK && count > 0 && i < run->contracts->count; i++) {
        if (again.outcomes[i].is_wanted && !again.outcomes[i].holds) {
            const trust_contract *contract = &run->contracts->at[i];
            char why[200];
            (void)snprintf(why, sizeof(why), "%s: the contract holds, and fails %s", of->hint,
                           of->without);
            buf_lit(&self->text, "  contradicted ");
            shown_append(&self->text, contract->name, SHOWN_LINE);
            buf_printf(&self->text, ": %s\n", why);
            put_failures(&self->text, buf_view(&again.outcomes[i].failures));
            self->failed++;
            err = add_finding(self, contract, server, "claim-contradicted", str_of(why),
                              "correct the annotation");
        }
    }
    cli_contract_run_fini(&again);
    return err == BAY_OK ? code : cli_fail(err);
}

/* What servers are started with from now on; NULL: nothing. */
static bool set_temporary(const char *folder)
{
    return (folder != NULL ? setenv("TMPDIR", folder, 1) : unsetenv("TMPDIR")) == 0;
}

static cli_exit run_as_declared(contractor *self, const cli_contract_run *run,
                                const cli_arguments *arguments, bay_str server)
{
    char scratch[SCRATCH_BYTES] = "/tmp/patchbay-contract.XXXXXX";
    if (arguments->target_kind == CLI_TARGET_URL) {
        cli_say(
            "--as-declared starts the server without the powers that it gives up; a server at a "
            "URL runs elsewhere");
        return CLI_EXIT_USAGE;
    }
    const char *set = getenv("TMPDIR");
    char *before = set != NULL ? mem_dup(set, strlen(set)) : NULL; /* setenv may free it */
    if ((set != NULL && before == NULL) || mkdtemp(scratch) == NULL || !set_temporary(scratch)) {
        cli_say("a scratch folder in /tmp cannot be made");
        mem_free(before);
        return CLI_EXIT_FAILED;
    }
    const sandbox_path read_only[] = {{"/", false}, {scratch, true}};
    const sandbox_path all[] = {{"/", true}};
    const sandbox_options without_writes = {.paths = read_only,
                                            .path_count = 2,
                                            .has_net = true,
                                            .has_unix_sockets = true,
                                            .bubblewrap = SANDBOX_BUBBLEWRAP_NEVER};
    const sandbox_options without_net = {.paths = all,
                                         .path_count = 1,
                                         .has_attributes = true,
                                         .bubblewrap = SANDBOX_BUBBLEWRAP_NEVER};
    cli_exit code = run_held(self, run, arguments, &claims[0], &without_writes, server);
    if (code == CLI_EXIT_OK) {
        code = run_held(self, run, arguments, &claims[1], &without_net, server);
    }
    if (!set_temporary(before)) {
        cli_say("TMPDIR cannot be set back");
        code = CLI_EXIT_FAILED;
    }
    (void)nftw(scratch, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    mem_free(before);
    return code;
}

/* ---- learning -------------------------------------------------------------------------------- */

static bool all_hold(const cli_contract_run *run)
{
    for (size_t i = 0; i < run->contracts->count; i++) {
        if (!run->outcomes[i].holds) {
            return false;
        }
    }
    return true;
}

/* The tightest of a few sandboxes in which every contract holds, as YAML of the server's configuration. */
static cli_exit learn(contractor *self, const cli_contract_run *run, const cli_arguments *arguments)
{
    static const struct {
        bool has_net;
        bool is_writable;
        const char *yaml;
    } rows[] = {
        {false, false, "sandbox: {fs: [\"/:ro\"]}"},
        {true, false, "sandbox: {fs: [\"/:ro\"], net: true}"},
        {false, true, "sandbox: {fs: [\"/:rw\"]}"},
        {true, true, "sandbox: {fs: [\"/:rw\"], net: true}"},
    };
    if (!all_hold(run)) {
        buf_lit(&self->text, "  no sandbox is proposed: not every contract holds without one\n");
        return CLI_EXIT_OK;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cli_contract_run again;
        cli_arguments held = *arguments;
        const sandbox_path path = {"/", rows[i].is_writable};
        const sandbox_options sandbox = {.paths = &path,
                                         .path_count = 1,
                                         .has_net = rows[i].has_net,
                                         .has_unix_sockets = rows[i].has_net,
                                         .bubblewrap = SANDBOX_BUBBLEWRAP_NEVER};
        held.sandbox = &sandbox;
        bay_err err = cli_contract_run_init(&again, run->contracts);
        cli_exit code = err == BAY_OK ? cli_contract_run_all(&again, &held) : cli_fail(err);
        bool is_enough = code == CLI_EXIT_OK && all_hold(&again);
        cli_contract_run_fini(&again);
        if (is_enough || code >= 128) {
            buf_printf(&self->text, "  every contract holds with %s\n", rows[i].yaml);
            return code;
        }
    }
    buf_lit(&self->text, "  the contracts hold in no sandbox that was tried\n");
    return CLI_EXIT_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

/* The TARGET of a file's contracts; false: the file is about another server. */
static bool take_target(const contractor *self, const trust_contracts *contracts,
                        cli_arguments *out)
{
    *out = *self->arguments;
    if (out->target_kind == CLI_TARGET_NONE) {
        out->target_kind = CLI_TARGET_NAME;
        out->target = contracts->server;
        return true;
    }
    return out->target_kind != CLI_TARGET_NAME || contracts->server.len == 0 ||
           str_eq(contracts->server, out->target);
}

static bay_err begin_file(contractor *self, const char *path, bay_str server)
{
    trust_definitions *of = mem_zalloc(sizeof(*of));
    if (of == NULL || self->files == SERVERS) {
        mem_free(of);
        return self->files == SERVERS ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
    }
    trust_definitions_init(of, server);
    self->looked_at[self->files] = of;
    self->shown_to[self->files++] = of;
    buf_printf(&self->text, "%s\n", path);
    json_open_object(&self->writer);
    put_text(&self->writer, "file", str_of(path));
    put_text(&self->writer, "server", server);
    json_key_lit(&self->writer, "contracts");
    json_open_array(&self->writer);
    return BAY_OK;
}

static cli_exit run_file(void *user, const char *path, const trust_contracts *contracts)
{
    contractor *self = user;
    cli_arguments arguments;
    cli_contract_run run;
    if (!take_target(self, contracts, &arguments)) {
        return CLI_EXIT_OK;
    }
    if (arguments.target_kind == CLI_TARGET_NAME && arguments.target.len == 0) {
        cli_say("%s: server is missing: name one of the configuration, or give a TARGET", path);
        return CLI_EXIT_CONFIG;
    }
    bay_str server =
        arguments.target_kind == CLI_TARGET_NAME ? arguments.target : contracts->server;
    bay_err err = cli_contract_run_init(&run, contracts);
    err = err == BAY_OK ? begin_file(self, path, server) : err;
    cli_exit code = err == BAY_OK ? cli_contract_run_all(&run, &arguments) : cli_fail(err);
    if (code == CLI_EXIT_OK) {
        err = report(self, &run, server);
        code = err == BAY_OK ? CLI_EXIT_OK : cli_fail(err);
    }
    if (err == BAY_OK) {
        json_close_array(&self->writer);
        json_close_object(&self->writer);
    }
    if (code == CLI_EXIT_OK && arguments.is_as_declared) {
        code = run_as_declared(self, &run, &arguments, server);
    }
    if (code == CLI_EXIT_OK && arguments.learns) {
        code = learn(self, &run, &arguments);
    }
    cli_contract_run_fini(&run);
    return code;
}

static cli_exit print(contractor *self)
{
    output device;
    buf out;
    cli_exit code = self->failed > 0 ? CLI_EXIT_BREAKING : CLI_EXIT_OK;
    cli_print_init(&device, &out, self->arguments);
    switch (self->arguments->form) {
    case CLI_FORM_JSON:
        code = cli_print_json(&device, buf_view(&self->json), code);
        break;
    case CLI_FORM_JUNIT:
        trust_findings_write_junit(&self->findings, self->shown_to, self->files, &out);
        code = cli_print(&device, &out, code);
        break;
    default:
        buf_str(&out, buf_view(&self->text));
        buf_printf(&out, "%zu hold, %zu fail\n", self->held, self->failed);
        code = cli_print(&device, &out, code);
        break;
    }
    buf_fini(&out);
    return code;
}

static cli_exit run_all(contractor *self)
{
    const char *path = self->arguments->contracts;
    json_writer_init(&self->writer, &self->json);
    json_open_array(&self->writer);
    cli_exit code = cli_contracts_each(path != NULL ? path : "contracts", run_file, self);
    json_close_array(&self->writer);
    if (code == CLI_EXIT_OK && self->files == 0) {
        cli_say("no file of contracts is about this TARGET");
        return CLI_EXIT_CONFIG;
    }
    trust_findings_sort(&self->findings);
    return code == CLI_EXIT_OK ? print(self) : code;
}

/* ---- a first file ---------------------------------------------------------------------------- */

/* A value that the schema itself gives; JSON_MISSING: none. */
static json_val example_of(json_val schema)
{
    static const bay_str lists[] = {STR_INIT("examples"), STR_INIT("enum")};
    static const bay_str values[] = {STR_INIT("default"), STR_INIT("const"), STR_INIT("example")};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        json_val first = json_item(json_get(schema, lists[i]), 0);
        if (!json_is(first, JSON_MISSING)) {
            return first;
        }
    }
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        json_val value = json_get(schema, values[i]);
        if (!json_is(value, JSON_MISSING)) {
            return value;
        }
    }
    return JSON_NONE;
}

/* False: a required argument has no example. */
static bool put_arguments(json_val input, buf *out)
{
    json_writer writer;
    json_val whole = json_item(json_get(input, STR("examples")), 0);
    json_val properties = json_get(input, STR("properties"));
    if (json_is(whole, JSON_OBJECT)) {
        buf_str(out, json_raw(whole));
        return true;
    }
    json_writer_init(&writer, out);
    json_open_object(&writer);
    bool is_whole = true;
    json_iter names = json_iter_of(json_get(input, STR("required")));
    while (json_next(&names)) {
        arena memory;
        bay_str name;
        arena_init(&memory, 64 << 10);
        bool is_good = json_str(names.value, &memory, &name) == BAY_OK;
        json_val value = is_good ? example_of(json_get(properties, name)) : JSON_NONE;
        if (json_is(value, JSON_MISSING)) {
            is_whole = false;
        } else {
            json_key(&writer, name);
            json_put_raw(&writer, json_raw(value));
        }
        arena_fini(&memory);
    }
    json_close_object(&writer);
    return is_whole;
}

/* A server's JSON in one line, also where YAML or a terminal would see the end of one in it: a comment must not end
 * before the line does. */
static void put_json_line(buf *out, const char *before, const char *key, bay_str json)
{
    buf_printf(out, "  %s%s", before, key);
    output_json_line(out, json);
    buf_char(out, '\n');
}

/* False: it is written as a comment. */
static bool put_new_contract(buf *out, const trust_item *tool)
{
    buf arguments;
    buf name;
    json_val hints = json_get(tool->value, STR("annotations"));
    bool is_read_only = json_true(json_get(hints, STR("readOnlyHint")));
    buf_init(&arguments, 1 << 20);
    buf_init(&name, 1 << 16);
    json_quote(&name, tool->name);
    bool is_whole = put_arguments(json_get(tool->value, STR("inputSchema")), &arguments);
    const char *before = is_read_only && is_whole ? "" : "# ";
    if (!is_read_only) {
        buf_lit(out, "  # the tool does not claim readOnlyHint: only with writes: true\n");
    } else if (!is_whole) {
        buf_lit(out, "  # a required argument has no example: fill it in\n");
    }
    put_json_line(out, before, "- name: ", buf_view(&name));
    put_json_line(out, before, "  tool: ", buf_view(&name));
    put_json_line(out, before, "  arguments: ", buf_view(&arguments));
    if (!is_read_only) {
        buf_printf(out, "  %s  writes: true\n", before);
    }
    buf_printf(out, "  %s  expect: {isError: false}\n", before);
    buf_fini(&arguments);
    buf_fini(&name);
    return is_read_only && is_whole;
}

static cli_exit write_new(contractor *self)
{
    cli_definitions definitions;
    output device;
    buf out;
    buf items;
    if (self->arguments->target_kind == CLI_TARGET_NONE) {
        cli_say("contract new needs a TARGET");
        return CLI_EXIT_USAGE;
    }
    cli_exit code = cli_definitions_load(&definitions, self->arguments);
    cli_print_init(&device, &out, self->arguments);
    buf_init(&items, CLI_PRINT_BYTES);
    if (definitions.pin.len > 0) {
        buf_printf(&out, "server: %.*s\n", BAY_STR(definitions.pin));
    }
    bool has_contracts = false;
    for (size_t i = 0; i < definitions.all.count; i++) {
        if (definitions.all.items[i].kind == TRUST_TOOL) {
            has_contracts = put_new_contract(&items, &definitions.all.items[i]) || has_contracts;
        }
    }
    buf_str(&out, has_contracts ? STR("contracts:\n") : STR("contracts: []\n"));
    buf_str(&out, buf_view(&items));
    buf_fini(&items);
    code = code == CLI_EXIT_OK ? cli_print(&device, &out, code) : code;
    buf_fini(&out);
    cli_definitions_fini(&definitions);
    return code;
}

int cmd_contract(const cli_arguments *arguments)
{
    contractor *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return (int)cli_fail(BAY_ERR_NOMEM);
    }
    self->arguments = arguments;
    trust_findings_init(&self->findings);
    buf_init(&self->text, CLI_PRINT_BYTES);
    buf_init(&self->json, CLI_PRINT_BYTES);
    cli_exit code = strcmp(arguments->name, "new") == 0 ? write_new(self) : run_all(self);
    for (size_t i = 0; i < self->files; i++) {
        trust_definitions_fini(self->looked_at[i]);
        mem_free(self->looked_at[i]);
    }
    trust_findings_fini(&self->findings);
    buf_fini(&self->text);
    buf_fini(&self->json);
    mem_free(self);
    return (int)code;
}
