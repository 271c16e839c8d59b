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

/* The subject is the identity of a principal, never a credential. */
static void door_record(void *user, const call_context *call, call_outcome how)
{
    worker *self = user;
    bay_str server = call_target_name(call->target);
    bay_str subject = principal_subject(call->principal);
    LOG(LOG_DEBUG, "call", "%.*s \"%.*s\" of \"%.*s\" by \"%.*s\": %s, %llu ms",
        BAY_STR(call->method), BAY_STR(str_head(call->shown, 256)), BAY_STR(server),
        BAY_STR(str_head(subject, 256)), evidence_outcome_text(how),
        (unsigned long long)(loop_now_ms(self->loop) - call->began_ms));
    if (self->evidence.of != NULL) {
        worker_evidence_record(&self->evidence, call, how);
    }
}

bool worker_client_address(void *user, const http_exchange *exchange, net_address *out)
{
    const worker *self = user;
    if (!policy_rules_read_origin(self->door.policy.rules)) {
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

void worker_door_set(worker *self, const config *settings)
{
    self->door.timeout_ms = settings->timeouts.call_ms;
    policy_index_set(&self->door.policy, settings->rules);
    policy_tools_index_set(&self->door.tools, settings->tools);
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
    outcomes_store_free(self->once.store);
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
