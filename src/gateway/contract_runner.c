#include "gateway/contract_runner.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"
#include "gateway/grader.h"

enum { CALL_MEMORY = 64 << 20, FAILURE_BYTES = 64 << 10 };

struct contract_runner {
    worker_upstream *of;
    gateway_contracts *contracts; /* a reference */
    bool is_due;
    bool is_over;
    bool has_broken; /* the server ended during the last run: it is not tried at once again */
    loop_timer timer;
    /* The run under way. */
    listing *tools; /* NULL: none is */
    size_t at;
    const listing_item *tool; /* called; NULL: nothing is */
    bool is_sending;
    upstream_call call;
    arena memory;             /* of its params */
    uint64_t began_ms;        /* the call */
    contract_verdict verdict; /* being made */
    uint64_t run_ms;          /* when the last run began; 0: there was none */
};

static bay_str name_of(const contract_runner *self)
{
    return upstream_name(self->of->upstream);
}

static const contract_set *set_of(const contract_runner *self)
{
    return gateway_contracts_of(self->contracts, name_of(self));
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static void run_after(contract_runner *self, uint64_t wait_ms)
{
    loop *on = self->of->worker->loop;
    loop_timer_stop(on, &self->timer);
    if (wait_ms > 0 && loop_timer_start(on, &self->timer, wait_ms) != BAY_OK) {
        LOG(LOG_ERROR, "contract",
            "%.*s: out of memory: its contracts run again when it reconnects",
            BAY_STR(name_of(self)));
    }
}

static void plan_next(contract_runner *self, bool has_failed)
{
    uint64_t every = gateway_contracts_settings(self->contracts).every_ms;
    every = every > 0 && every < CONTRACT_LEAST_MS ? CONTRACT_LEAST_MS : every;
    bool is_retry = has_failed && (every == 0 || every > CONTRACT_RETRY_MS);
    run_after(self, self->is_due ? CONTRACT_LEAST_MS : is_retry ? CONTRACT_RETRY_MS : every);
}

static void tell(const contract_runner *self, const contract_verdict *before)
{
    const contract_verdict *now = &self->verdict;
    bool holds = gateway_contracts_settings(self->contracts).mode == CONFIG_CONTRACTS_HOLD;
    bool is_same = before->is_judged && before->failing == now->failing &&
                   before->holding == now->holding &&
                   str_eq(str_of(before->text), str_of(now->text));
    if (is_same) {
        return;
    }
    if (now->failing > 0) {
        LOG(LOG_WARN, "contract", "%.*s: %zu of %zu contracts fail: %s%s", BAY_STR(name_of(self)),
            now->failing, now->failing + now->holding, now->text,
            holds ? "; all its items are held until they hold" : "");
    } else {
        LOG(LOG_INFO, "contract", "%.*s: all %zu contracts hold", BAY_STR(name_of(self)),
            now->holding);
    }
}

static void judge_run(contract_runner *self)
{
    gateway *owner = self->of->worker->gateway;
    self->verdict.is_judged = true;
    contract_verdict before =
        gateway_contracts_set_verdict(self->contracts, name_of(self), &self->verdict);
    tell(self, &before);
    plan_next(self, self->verdict.failing > 0);
    worker_upstream_quarantine(self->of);
    grader_run(self->of->grader);
    if (!before.is_judged && !atomic_load(&owner->is_over)) {
        gateway_pins_changed(owner); /* lists that waited for it go out */
    }
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void note(contract_runner *self, const trust_contract *contract, bay_str failures)
{
    if (failures.len == 0) {
        self->verdict.holding++;
        return;
    }
    if (self->verdict.failing++ == 0) {
        char name[CONTRACT_NAME_BYTES];
        buf shown = {.at = name, .cap = sizeof(name), .max = sizeof(name)};
        shown_append(&shown, str_head(contract->name, 100), SHOWN_LINE);
        (void)snprintf(self->verdict.text, CONTRACT_VERDICT_BYTES, "\"%.*s\": %.*s",
                       BAY_STR(buf_view(&shown)),
                       BAY_STR(str_head(failures, str_find(failures, '\n'))));
    }
}

static void end_run(contract_runner *self)
{
    listing_unref(self->tools);
    self->tools = NULL;
    judge_run(self);
}

static const listing_item *find_tool(const listing *tools, bay_str name)
{
    for (size_t i = 0; i < tools->count; i++) {
        if (str_eq(tools->items[i].key, name)) {
            return &tools->items[i];
        }
    }
    return NULL;
}

/* False: the contract was judged without a call. */
static bool send_call(contract_runner *self, const trust_contract *contract)
{
    char bytes[512];
    buf failures = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    const config_server *server = upstream_config(self->of->upstream);
    const listing_item *tool = find_tool(self->tools, contract->tool);
    json_val params = JSON_NONE;
    bool may_call =
        trust_contract_may_call(contract, tool != NULL ? tool->value : JSON_NONE, &failures);
    arena_reset(&self->memory);
    if (may_call && trust_contract_params(contract, &self->memory, &params) != BAY_OK) {
        buf_lit(&failures, "there is no memory for the call\n");
        may_call = false;
    }
    if (!may_call) {
        note(self, contract, buf_view(&failures));
        return false;
    }
    self->tool = tool;
    self->began_ms = loop_now_ms(self->of->worker->loop);
    self->call.spec = (mcp_call_spec){
        .method = mcp_method_of(MCP_TOOLS_CALL)->text,
        .params = params,
        .log_level = MCP_LOG_NONE,
        .param_table = tool->params.count > 0 ? &tool->params : NULL,
        .timeout_ms = server->timeout_ms > 0 ? server->timeout_ms
                                             : self->of->worker->config->timeouts.call_ms};
    self->is_sending = true;
    upstream_send(self->of->upstream, &self->call); /* `done` may run in here */
    self->is_sending = false;
    return true;
}

static void go_on(contract_runner *self)
{
    const contract_set *set = set_of(self);
    while (self->tools != NULL && self->tool == NULL) {
        if (set == NULL || self->at >= set->count) {
            end_run(self);
            return;
        }
        if (!send_call(self, set->at[self->at])) {
            self->at++;
        }
    }
}

static void judge(contract_runner *self, const trust_contract *contract, const mcp_outcome *outcome)
{
    buf failures;
    trust_outcome came = {.latency_ms = loop_now_ms(self->of->worker->loop) - self->began_ms};
    buf_init(&failures, FAILURE_BYTES);
    if (outcome->kind == MCP_OUTCOME_RESULT) {
        came.result = outcome->result;
    } else {
        came.failure = outcome->kind == MCP_OUTCOME_ERROR ? STR("the server answered with an error")
                                                          : str_of(outcome->text);
    }
    bay_err err = trust_contract_judge(contract, &came,
                                       json_get(self->tool->value, STR("outputSchema")), &failures);
    note(self, contract,
         err == BAY_OK ? buf_view(&failures) : STR("there is no memory to judge the result"));
    buf_fini(&failures);
}

static void call_done(void *user, const mcp_outcome *outcome)
{
    contract_runner *self = user;
    const contract_set *set = set_of(self);
    judge(self, set->at[self->at], outcome);
    self->tool = NULL;
    self->at++;
    if (!self->is_sending) {
        go_on(self);
    }
}

static void call_notified(void *user, mcp_method_id method, json_val params)
{
    (void)user;
    (void)method;
    (void)params;
}

static const upstream_call_events call_events = {.notified = call_notified, .done = call_done};

static void cancel_run(contract_runner *self)
{
    upstream_call_cancel(&self->call, STR("the contracts are run anew"));
    self->tool = NULL;
    listing_unref(self->tools);
    self->tools = NULL;
}

/* Begins the run that is due, anew if one is under way. */
static void begin(contract_runner *self)
{
    listing *tools = self->of->fetches[LISTING_TOOLS].current;
    if (self->is_over || tools == NULL || upstream_state_of(self->of->upstream) != UPSTREAM_READY) {
        return;
    }
    cancel_run(self);
    loop_timer_stop(self->of->worker->loop, &self->timer);
    self->is_due = false;
    self->has_broken = false;
    self->run_ms = loop_now_ms(self->of->worker->loop);
    self->at = 0;
    self->verdict = (contract_verdict){0};
    self->tools = listing_ref(tools);
    go_on(self);
}

static void on_timer(void *argument)
{
    contract_runner *self = argument;
    self->is_due = true;
    begin(self); /* where it cannot, the server's next session does */
}

/* ---- what makes a run due -------------------------------------------------------------------- */

bay_err contract_runner_new(worker_upstream *of, gateway_contracts *contracts,
                            contract_runner **out)
{
    contract_runner *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->of = of;
    self->contracts = gateway_contracts_ref(contracts);
    self->is_due = true;
    arena_init(&self->memory, CALL_MEMORY);
    loop_timer_init(&self->timer, on_timer, self);
    self->call.events = &call_events;
    self->call.user = self;
    *out = self;
    return BAY_OK;
}

void contract_runner_stop(contract_runner *self)
{
    if (self != NULL) {
        self->is_over = true;
        cancel_run(self);
        loop_timer_stop(self->of->worker->loop, &self->timer);
    }
}

void contract_runner_free(contract_runner *self)
{
    if (self != NULL) {
        contract_runner_stop(self);
        gateway_contracts_unref(self->contracts);
        arena_fini(&self->memory);
        mem_free(self);
    }
}

void contract_runner_set(contract_runner *self, gateway_contracts *contracts)
{
    cancel_run(self);
    gateway_contracts_unref(self->contracts);
    self->contracts = gateway_contracts_ref(contracts);
    self->is_due = true;
    begin(self);
}

void contract_runner_state(contract_runner *self, upstream_state state)
{
    if (state == UPSTREAM_READY) {
        self->is_due = self->is_due || !self->has_broken;
    } else if (self->tools != NULL) {
        /* a contract that ends the server must not restart it again and again */
        upstream_call_cancel(&self->call, STR("the server has ended"));
        self->tool = NULL;
        self->has_broken = true;
        if (self->verdict.failing == 0) {
            self->verdict.failing = 1;
            (void)snprintf(self->verdict.text, sizeof(self->verdict.text), "%s",
                           "the server ended while they were run");
        }
        end_run(self);
    }
}

void contract_runner_listed(contract_runner *self, bool is_good, bool is_changed)
{
    uint64_t now = loop_now_ms(self->of->worker->loop);
    if (!is_good && self->is_due && self->tools == NULL) {
        self->verdict = (contract_verdict){.failing = 1};
        (void)snprintf(self->verdict.text, sizeof(self->verdict.text), "%s",
                       "its list of tools could not be read");
        judge_run(self);
        return;
    }
    if (!is_good || (!self->is_due && !is_changed)) {
        return;
    }
    if (self->run_ms != 0 && now - self->run_ms < CONTRACT_LEAST_MS) {
        self->is_due =
            true; /* the calls of a run may change the list: runs have a pause between them */
        run_after(self, CONTRACT_LEAST_MS);
        return;
    }
    begin(self);
}

/* ---- those of a worker ----------------------------------------------------------------------- */

static void set_runner(worker_upstream *at, gateway_contracts *contracts)
{
    bay_str name = upstream_name(at->upstream);
    bool has_any = gateway_contracts_of(contracts, name) != NULL;
    if (!has_any) {
        contract_runner_free(at->contracts);
        at->contracts = NULL;
    } else if (at->contracts != NULL) {
        contract_runner_set(at->contracts, contracts);
    } else {
        /* another program or address: what the contracts said of the one before it does not count */
        contract_verdict unknown = {0};
        (void)gateway_contracts_set_verdict(contracts, name, &unknown);
        if (contract_runner_new(at, contracts, &at->contracts) != BAY_OK) {
            LOG(LOG_ERROR, "contract", "%.*s: out of memory: its contracts are not run",
                BAY_STR(name));
        } else {
            contract_runner_listed(at->contracts, true, false);
        }
    }
    worker_upstream_quarantine(at);
}

void worker_contracts_set(worker *self, gateway_contracts *contracts)
{
    gateway_contracts *before = self->contracts;
    self->contracts = gateway_contracts_ref(contracts);
    for (size_t i = 0; i < self->upstream_count; i++) {
        worker_upstream *at = self->upstreams[i];
        if (worker_of_server(self->gateway, upstream_name(at->upstream)) == self->index) {
            set_runner(at, contracts);
        }
    }
    gateway_contracts_unref(before);
}
