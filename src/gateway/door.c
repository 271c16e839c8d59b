/* The door of one loop: what every call on it passes (call/call.h), and the line that each leaves.
 */
#include <stdio.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "call/target.h"
#include "gateway/once.h"
#include "gateway/worker.h"

static void door_run(void *argument)
{
    worker *self = argument;
    call_door_run(&self->door);
}

/* Any thread. Once the loop is closed nobody waits on it any more. */
static void door_wake(void *user)
{
    worker *self = user;
    err_ignore(loop_post_message(self->loop, &self->door_wake));
}

static uint64_t door_now_ms(void *user)
{
    return loop_now_ms(((worker *)user)->loop);
}

/* What may change something is refused while no record of it can be kept. */
static bool door_guard(void *user, const call_context *call, call_refusal *out)
{
    const worker *self = user;
    if (worker_evidence_admits(&self->evidence, call)) {
        return true;
    }
    out->reason = CALL_UNAVAILABLE;
    out->retry_after_ms = EVIDENCE_RETRY_MS;
    (void)snprintf(out->text, sizeof(out->text),
                   "The gateway cannot keep a record of this call, so it was not carried out. Try "
                   "again in %d s.",
                   EVIDENCE_RETRY_MS / 1000);
    return false;
}

/* ---- labels ---------------------------------------------------------------------------------- */

static bool is_marked(const config *settings, config_scan_results own)
{
    return (own == CONFIG_RESULTS_AUTO ? settings->scan.results : own) == CONFIG_RESULTS_MARK;
}

static bool has_marks(const config *settings)
{
    bool has = is_marked(settings, CONFIG_RESULTS_AUTO);
    for (size_t i = 0; i < settings->server_count; i++) {
        has = has || is_marked(settings, settings->servers[i].scan.results);
    }
    for (size_t i = 0; i < settings->agent_count; i++) {
        has = has || is_marked(settings, settings->agents[i].scan.results);
    }
    return has;
}

static bool is_looked_at(const config *settings, bay_str name)
{
    /* the skills of an agent stand for a server of the same name */
    const config_agent *agent = config_agent_find(settings, name);
    const config_server *server = agent == NULL ? config_server_find(settings, name) : NULL;
    return is_marked(settings, server != NULL  ? server->scan.results
                               : agent != NULL ? agent->scan.results
                                               : CONFIG_RESULTS_AUTO);
}

static const scan_finding *worst_of(const scan_report *report)
{
    const scan_finding *worst = &report->findings[0];
    for (size_t i = 1; i < report->count; i++) {
        worst = report->findings[i].severity > worst->severity ? &report->findings[i] : worst;
    }
    return worst;
}

/* What was not looked at whole counts as untrusted. */
static call_labels door_label(void *user, const call_target *of, json_val answer)
{
    worker *self = user;
    scan_report report;
    bay_str name = call_target_name(of);
    if (!is_looked_at(self->config, name)) {
        return CALL_UNLABELLED;
    }
    if (self->scan == NULL) {
        return CALL_UNTRUSTED;
    }
    if (!scan_content(self->scan, answer, &report)) {
        return report.is_cut ? CALL_UNTRUSTED : CALL_UNLABELLED;
    }
    const scan_finding *worst = worst_of(&report);
    (void)log_write_paced(&self->suspected, loop_now_ms(self->loop), LOG_WARN, "scan",
                          "%.*s: a result reads like an attack on the model: %s at %s: %s: %s",
                          BAY_STR(name), worst->id, worst->pointer, worst->why, worst->excerpt);
    return CALL_UNTRUSTED | CALL_SUSPICIOUS;
}

/* Without memory there is no scanner, and all results are untrusted. */
static void set_scanner(worker *self, const config *settings)
{
    self->door.label = has_marks(settings) ? door_label : NULL;
    scanner_free(self->scan);
    scan_rule_set_free(self->scan_rules);
    self->scan = NULL;
    self->scan_rules = NULL;
    if (self->door.label == NULL) {
        return;
    }
    scanner *made = NULL;
    bay_err err = config_scan_rules(settings, &self->scan_rules);
    err = err == BAY_OK ? scanner_new(&made) : err;
    if (err == BAY_OK) {
        scanner_set_rules(made, self->scan_rules);
        self->scan = made;
    } else {
        LOG(LOG_ERROR, "scan", "no memory for the scanner of results: all count as untrusted");
    }
}

/* ---- the door -------------------------------------------------------------------------------- */

static const char *labels_text(unsigned labels)
{
    return (labels & CALL_SUSPICIOUS) != 0  ? ", suspicious"
           : (labels & CALL_UNTRUSTED) != 0 ? ", untrusted"
                                            : "";
}

/* The subject is the identity of a principal, never a credential. */
static void door_record(void *user, const call_context *call, call_outcome how)
{
    worker *self = user;
    bay_str server = call_target_name(call->target);
    bay_str subject = principal_subject(call->principal);
    LOG(LOG_DEBUG, "call", "%.*s \"%.*s\" of \"%.*s\" by \"%.*s\": %s%s, %llu ms",
        BAY_STR(call->method), BAY_STR(str_head(call->shown, 256)), BAY_STR(server),
        BAY_STR(str_head(subject, 256)), evidence_outcome_text(how), labels_text(call->labels),
        (unsigned long long)(loop_now_ms(self->loop) - call->began_ms));
    if (self->evidence.of != NULL) {
        worker_evidence_record(&self->evidence, call, how);
    }
}

bool worker_client_address(void *user, const http_exchange *exchange, net_address *out)
{
    const worker *self = user;
    if (self->door.limits == NULL && !policy_rules_read_origin(self->door.policy.rules)) {
        return false;
    }
    forwarded_request from = {.address = http_exchange_peer(exchange)};
    forwarded_read(&self->proxies, exchange, &from);
    return address_parse(from.address, out) == BAY_OK;
}

const policy_origin *worker_origin(void *user, http_exchange *exchange)
{
    const worker *self = user;
    net_address address;
    size_t count;
    const http_field *fields = http_exchange_fields(exchange, &count);
    bool has_address = worker_client_address(user, exchange, &address);
    return policy_origin_new(self->door.policy.rules, has_address ? &address : NULL, fields, count,
                             http_exchange_arena(exchange));
}

/* Made by the first loop that needs it, and shared; NULL: there is no memory. */
static buckets *buckets_of(gateway *self)
{
    buckets *found = atomic_load(&self->buckets);
    buckets *made = NULL;
    if (found != NULL || buckets_new(POLICY_BUCKETS, &made) != BAY_OK) {
        return found;
    }
    if (atomic_compare_exchange_strong(&self->buckets, &found, made)) {
        return made;
    }
    buckets_unref(made); /* another loop was first */
    return found;
}

void worker_door_set(worker *self, const config *settings)
{
    self->door.timeout_ms = settings->timeouts.call_ms;
    policy_index_set(&self->door.policy, settings->rules);
    policy_tools_index_set(&self->door.tools, settings->tools);
    set_scanner(self, settings);
    if (settings->has_rates) {
        policy_limits_set(&self->limits, buckets_of(self->gateway), &settings->rates);
    }
    self->door.limits = settings->has_rates ? &self->limits : NULL;
    if (settings->tools != NULL) {
        self->door.once = &self->once; /* it stays: calls may be under way when settings go */
    }
}

bay_err worker_door_keep(worker *self)
{
    return outcomes_store_new(self->gateway->outcomes, session_store_rows(self->sessions),
                              self->ring, &self->once.store);
}

void worker_door_set_ring(worker *self, const seal_ring *ring)
{
    self->once.ring = ring;
    if (self->once.store != NULL) {
        outcomes_store_set_ring(self->once.store, ring);
    }
}

/* Its store is closed. */
void worker_door_fini(worker *self)
{
    policy_index_fini(&self->door.policy);
    policy_tools_index_fini(&self->door.tools);
    policy_limits_fini(&self->limits);
    outcomes_store_free(self->once.store);
    scanner_free(self->scan);
    scan_rule_set_free(self->scan_rules);
}

void worker_door_init(worker *self)
{
    call_door_init(&self->door);
    gateway_once_init(&self->once);
    self->once.table = self->gateway->outcomes;
    self->once.ring = self->ring;
    self->once.is_local = self->gateway->is_local;
    worker_door_set(self, self->config);
    self->door.now_ms = door_now_ms;
    self->door.wall_ms = loop_time_ms;
    self->door.wake = door_wake;
    self->door.record = door_record;
    self->door.clock_ns = worker_evidence_clock(self->gateway->evidence);
    self->door.guard = gateway_evidence_refuses(self->gateway->evidence) ? door_guard : NULL;
    self->door.user = self;
    self->door_wake = (loop_message){.function = door_run, .argument = self};
}
