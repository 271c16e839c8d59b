/* Finds a link for a call that needs another than the main one: an idle one of its kind, a new one,
 * the room of one that idles and is of another kind; or the call waits.
 *
 * Who waits stands in one of UPSTREAM_FAIR_QUEUES queues, by the hash of its identity, and the
 * queues take turns: a client with a thousand calls delays another's by few. A call waits for as
 * long as it might have taken, then it fails and was certainly not executed. */
#include <stdio.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "upstream/local.h"

share_key pool_key(const local *self, const upstream_call *call)
{
    bool is_http = self->kind == MCP_LINK_HTTP;
    share_server server = {.share = self->base.server->share,
                           .revision = self->base.revision,
                           .are_callers =
                               config_credentials_are_callers(&self->base.server->credentials),
                           .ties = is_http && !self->sends_unattributed,
                           .has_one_client = self->has_one_client,
                           .main_inputs = self->main.inputs};
    return upstream_share_key(&server, &call->spec, &call->affinity);
}

/* ---- the queue ------------------------------------------------------------------------------- */

static uint64_t first_deadline(const local *self)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < UPSTREAM_FAIR_QUEUES; i++) {
        list_link *link = list_first(&self->fair_queues[i]);
        if (link != NULL) {
            uint64_t until = CONTAINER_OF(link, upstream_call, link)->until_ms;
            first = until < first ? until : first;
        }
    }
    return first;
}

static bay_err pool_arm(local *self)
{
    uint64_t now = loop_now_ms(self->base.loop);
    uint64_t due = first_deadline(self);
    if (self->queued_count == 0) {
        loop_timer_stop(self->base.loop, &self->queue);
        return BAY_OK;
    }
    if (self->session_after_ms > now && self->session_after_ms < due) {
        due = self->session_after_ms;
    }
    return loop_timer_start(self->base.loop, &self->queue, due > now ? due - now : 1);
}

void pool_remove(local *self, upstream_call *call)
{
    list_remove(&call->link);
    call->is_queued = false;
    self->queued_count--;
    local_tally(self);
}

void pool_wait(local *self, upstream_call *call)
{
    const config *settings = self->base.config;
    uint32_t own = self->base.server->timeout_ms;
    uint32_t timeout_ms = own > 0 ? own : settings->timeouts.call_ms;
    if (call->spec.timeout_ms > 0) {
        timeout_ms = call->spec.timeout_ms;
    }
    call->until_ms = loop_now_ms(self->base.loop) + timeout_ms;
    call->is_queued = true;
    list_push(&self->fair_queues[str_hash(call->affinity.identity, 1) % UPSTREAM_FAIR_QUEUES],
              &call->link);
    self->queued_count++;
    local_tally(self);
    if (pool_arm(self) != BAY_OK) {
        pool_remove(self, call);
        upstream_call_fail(call, BAY_ERR_NOMEM, false, "no memory to wait for a session");
    }
}

void pool_fail(local *self, bay_err err, const char *text)
{
    /* only what waits now: whoever hears of a failure may send again */
    list now;
    list_link *link;
    list_init(&now);
    for (size_t i = 0; i < UPSTREAM_FAIR_QUEUES; i++) {
        while ((link = list_pop(&self->fair_queues[i])) != NULL) {
            list_push(&now, link);
        }
    }
    while ((link = list_first(&now)) != NULL) {
        upstream_call *call = CONTAINER_OF(link, upstream_call, link);
        pool_remove(self, call);
        upstream_call_fail(call, err, false, text);
    }
}

static void fail_late(local *self)
{
    uint64_t now = loop_now_ms(self->base.loop);
    for (size_t i = 0; i < UPSTREAM_FAIR_QUEUES; i++) {
        list_link *link;
        while ((link = list_first(&self->fair_queues[i])) != NULL) {
            upstream_call *call = CONTAINER_OF(link, upstream_call, link);
            if (call->until_ms > now) {
                break;
            }
            pool_remove(self, call);
            upstream_call_fail(call, BAY_ERR_BUSY, false, "all sessions of this server are in use");
        }
    }
}

void pool_timer(void *argument)
{
    local *self = argument;
    fail_late(self);
    pool_serve(self);
}

/* ---- choosing -------------------------------------------------------------------------------- */

static size_t bound_of(const local *self, const share_key *key)
{
    const config_server *server = self->base.server;
    bool ties = self->kind == MCP_LINK_HTTP && !self->sends_unattributed;
    bool is_scarce = local_is_process(self) || (key->kind == SHARE_EXCLUSIVE && !ties);
    return is_scarce ? server->processes : server->sessions;
}

static size_t count_leaving(const local *self)
{
    size_t count = 0;
    LIST_EACH(link, &self->sessions)
    {
        const upstream_session *at = CONTAINER_OF(link, upstream_session, link);
        count += at->is_leaving || at->is_broken;
    }
    return count;
}

/* The most recently used one that serves it, so that the others may idle away. */
static upstream_session *find(const local *self, const share_key *key, const upstream_call *call)
{
    const list_link *end = &self->sessions.head;
    for (list_link *link = end->prev; link != end; link = link->prev) {
        upstream_session *at = CONTAINER_OF(link, upstream_session, link);
        if (upstream_session_serves(at, key, call)) {
            return at;
        }
    }
    return NULL;
}

/* The least recently used of those that nobody uses. */
static upstream_session *find_idle(const local *self)
{
    LIST_EACH(link, &self->sessions)
    {
        upstream_session *at = CONTAINER_OF(link, upstream_session, link);
        if (at->open_count == 0 && upstream_session_is_usable(at)) {
            return at;
        }
    }
    return NULL;
}

/* What became of a try. */
typedef struct attempt {
    upstream_session *at; /* it is for this one */
    bay_err err;          /* or fails of this */
    bay_diag diag;
} attempt;

/* Neither: it waits. `leaving`: sessions whose room nobody who waits has been promised yet. */
static attempt pool_try(local *self, const upstream_call *call, const share_key *key,
                        size_t *leaving)
{
    attempt made = {.at = find(self, key, call)};
    uint64_t now = loop_now_ms(self->base.loop);
    if (made.at != NULL) {
        return made;
    }
    if (self->base.state == UPSTREAM_BACKOFF) {
        if (self->restart_at_ms > now + LOCAL_PATIENCE_MS) {
            made.err = diag_set(&made.diag, BAY_ERR_CLOSED, "%s", self->base.error);
        }
        return made;
    }
    if (self->session_count >= bound_of(self, key)) {
        upstream_session *idle = *leaving == 0 ? find_idle(self) : NULL;
        *leaving -= *leaving > 0;
        if (idle != NULL) {
            upstream_session_close(idle);
        }
        return made;
    }
    if (!circuit_may_start(&self->circuit, now)) {
        char text[UPSTREAM_ERROR_BYTES];
        local_say_circuit(self, text, sizeof(text));
        made.err = diag_set(&made.diag, BAY_ERR_CLOSED, "%s", text);
    } else if (now >= self->session_after_ms) {
        made.err = upstream_session_open(self, key, call, &made.at, &made.diag);
    }
    return made;
}

static void pool_settle(upstream_call *call, const attempt *made)
{
    if (made->at != NULL) {
        upstream_session_take(made->at, call);
    } else {
        const char *text = made->diag.text[0] != '\0' ? made->diag.text : bay_err_text(made->err);
        upstream_call_fail(call, made->err, false, text);
    }
}

void pool_send(local *self, upstream_call *call)
{
    share_key key = pool_key(self, call);
    attempt made = {0};
    if (self->queued_count == 0) {
        size_t leaving = count_leaving(self);
        made = pool_try(self, call, &key, &leaving);
    }
    if (made.at != NULL || made.err != BAY_OK) {
        pool_settle(call, &made);
        return;
    }
    loop_defer(self->base.loop, &self->settle);
    pool_wait(self, call);
}

/* False: it goes on waiting. */
static bool pool_offer(local *self, upstream_call *call, size_t *leaving)
{
    share_key key = pool_key(self, call);
    if (key.kind == SHARE_MAIN) { /* the server turned out to be of another era */
        pool_remove(self, call);
        local_send_main(self, call);
        return true;
    }
    attempt made = pool_try(self, call, &key, leaving);
    if (made.at == NULL && made.err == BAY_OK) {
        return false;
    }
    pool_remove(self, call);
    pool_settle(call, &made);
    return true;
}

void pool_serve(local *self)
{
    size_t leaving = count_leaving(self);
    size_t passed = 0;
    while (self->queued_count > 0 && passed < UPSTREAM_FAIR_QUEUES) {
        size_t fair_queue = (self->next_fair_queue + passed) % UPSTREAM_FAIR_QUEUES;
        list_link *link = list_first(&self->fair_queues[fair_queue]);
        if (link != NULL && pool_offer(self, CONTAINER_OF(link, upstream_call, link), &leaving)) {
            self->next_fair_queue = fair_queue + 1;
            passed = 0;
        } else {
            passed++;
        }
    }
    if (pool_arm(self) != BAY_OK) {
        LOG(LOG_WARN, "upstream", "%s: no memory for a timer", self->base.name);
    }
}
