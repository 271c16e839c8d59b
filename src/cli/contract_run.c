#include "cli/contract_run.h"

#include <stdio.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/say.h"
#include "gateway/contract_files.h"

enum { CALL_MEMORY = 64 << 20, FILES_MEMORY = 4 << 20, FILE_MEMORY = 64 << 20 };

typedef struct contract_caller {
    cli_contract_run *run;
    const cli_arguments *arguments;
    cli_session *session; /* NULL: none is open */
    cli_inventory inventory;
} contract_caller;

bay_err cli_contract_run_init(cli_contract_run *self, const trust_contracts *contracts)
{
    self->contracts = contracts;
    self->outcomes = mem_array(contracts->count + 1, sizeof(*self->outcomes));
    if (self->outcomes == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < contracts->count; i++) {
        self->outcomes[i] = (cli_contract_outcome){.is_wanted = true};
        buf_init(&self->outcomes[i].failures, CLI_CONTRACT_TEXT_BYTES);
    }
    return BAY_OK;
}

void cli_contract_run_fini(cli_contract_run *self)
{
    for (size_t i = 0; self->outcomes != NULL && i < self->contracts->count; i++) {
        buf_fini(&self->outcomes[i].failures);
    }
    mem_free(self->outcomes);
    self->outcomes = NULL;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static json_val tool_of(const contract_caller *self, bay_str name)
{
    json_iter tools = json_iter_of(self->inventory.lists[CLI_LIST_TOOLS].items);
    while (json_next(&tools)) {
        if (json_str_eq(json_get(tools.value, STR("name")), name)) {
            return tools.value;
        }
    }
    return JSON_NONE;
}

/* Opens a session where there is none, and reads its tools. */
static cli_exit contract_open(contract_caller *self)
{
    if (self->session != NULL) {
        return CLI_EXIT_OK;
    }
    cli_inventory_init(&self->inventory);
    cli_exit code = cli_session_open(self->arguments, NULL, &self->session);
    if (code == CLI_EXIT_OK) {
        code = cli_inventory_fetch_one(&self->inventory, self->session, CLI_LIST_TOOLS);
    }
    return code;
}

static void contract_close(contract_caller *self, cli_exit code)
{
    (void)cli_session_close(self->session, code);
    if (self->session != NULL) {
        cli_inventory_fini(&self->inventory);
    }
    self->session = NULL;
}

/* Calls the tool; `*out` says what came of it. The exit code: as cli_session_call. */
static cli_exit call(contract_caller *self, const trust_contract *contract, json_val tool,
                     cli_answer *answer, trust_outcome *out)
{
    arena memory;
    mcp_param_table table = {0};
    cli_request request = {.method = MCP_TOOLS_CALL};
    arena_init(&memory, CALL_MEMORY);
    bay_err err = trust_contract_params(contract, &memory, &request.params);
    if (err != BAY_OK) {
        *out = (trust_outcome){.failure = STR("there is no memory for the call")};
        arena_fini(&memory);
        return CLI_EXIT_OK;
    }
    err = mcp_param_table_read(&table, json_get(tool, STR("inputSchema")), &memory, NULL);
    request.param_table = err == BAY_OK && table.count > 0 ? &table : NULL;
    uint64_t start = now_ms();
    cli_exit code = cli_session_call(self->session, &request, answer);
    *out = (trust_outcome){.latency_ms = now_ms() - start};
    if (code != CLI_EXIT_OK) {
        out->failure = STR("there was no answer");
    } else if (answer->kind == MCP_OUTCOME_ERROR) {
        out->failure = STR("the server answered with an error");
        (void)cli_session_refused(self->session, contract->tool, answer);
    } else {
        out->result = answer->value;
    }
    arena_fini(&memory);
    return code;
}

static cli_exit judge(contract_caller *self, const trust_contract *contract, json_val tool,
                      cli_contract_outcome *out)
{
    cli_answer answer;
    trust_outcome outcome;
    cli_answer_init(&answer);
    cli_exit code = call(self, contract, tool, &answer, &outcome);
    out->latency_ms = outcome.latency_ms;
    bay_err err = trust_contract_judge(contract, &outcome, json_get(tool, STR("outputSchema")),
                                       &out->failures);
    if (err == BAY_ERR_NOMEM) {
        buf_lit(&out->failures, "there is no memory to judge the result\n");
    }
    out->holds = err == BAY_OK && out->failures.len == 0 && out->failures.err == BAY_OK;
    cli_answer_fini(&answer);
    return code;
}

static cli_exit run_one(contract_caller *self, size_t at)
{
    const trust_contract *contract = &self->run->contracts->at[at];
    cli_contract_outcome *out = &self->run->outcomes[at];
    json_val tool = tool_of(self, contract->tool);
    json_val hints = json_get(tool, STR("annotations"));
    out->holds = false;
    out->reads_only = json_true(json_get(hints, STR("readOnlyHint")));
    out->is_closed = json_is(json_get(hints, STR("openWorldHint")), JSON_FALSE);
    buf_clear(&out->failures);
    return trust_contract_may_call(contract, tool, &out->failures)
               ? judge(self, contract, tool, out)
               : CLI_EXIT_OK;
}

cli_exit cli_contract_run_all(cli_contract_run *self, const cli_arguments *arguments)
{
    contract_caller caller = {.run = self, .arguments = arguments};
    cli_exit code = CLI_EXIT_OK;
    for (size_t i = 0; i < self->contracts->count && code < 128; i++) {
        if (!self->outcomes[i].is_wanted) {
            continue;
        }
        code = contract_open(&caller);
        if (code != CLI_EXIT_OK) {
            contract_close(&caller, code);
            return code;
        }
        code = run_one(&caller, i);
        if (code != CLI_EXIT_OK) { /* the next contract gets a session of its own */
            contract_close(&caller, code);
            code = code >= 128 ? code : CLI_EXIT_OK;
        }
    }
    contract_close(&caller, code);
    return code;
}

static cli_exit each_of(const char *const *paths, size_t count, cli_contract_file each, void *user)
{
    cli_exit code = CLI_EXIT_OK;
    for (size_t i = 0; code == CLI_EXIT_OK && i < count; i++) {
        arena memory;
        trust_contracts contracts = {0};
        bay_diag diag = {0};
        arena_init(&memory, FILE_MEMORY);
        bay_err err = contract_file_read(paths[i], &memory, &contracts, &diag);
        if (err == BAY_OK) {
            code = each(user, paths[i], &contracts);
        } else {
            cli_say("%s", diag.text);
            code = err == BAY_ERR_INVALID ? CLI_EXIT_CONFIG : CLI_EXIT_FAILED;
        }
        arena_fini(&memory);
    }
    return code;
}

cli_exit cli_contracts_each(const char *path, cli_contract_file each, void *user)
{
    arena memory;
    const char **paths = NULL;
    size_t count = 0;
    bay_diag diag = {0};
    arena_init(&memory, FILES_MEMORY);
    bay_err err = contract_files_list(path, &memory, &paths, &count, &diag);
    if (err != BAY_OK) {
        cli_say("--contracts: %s", diag.text);
    }
    cli_exit code = err == BAY_OK          ? each_of(paths, count, each, user)
                    : err == BAY_ERR_NOMEM ? CLI_EXIT_FAILED
                                           : CLI_EXIT_CONFIG;
    arena_fini(&memory);
    return code;
}
