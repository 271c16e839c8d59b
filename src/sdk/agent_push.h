/* The push sender: sends an agent's push notifications. The queue is a2a/push, sans I/O; here are
 * its HTTP client behind the guard (net/address: no loopback, private or link-local webhook unless
 * allowed, looked at in the moment of connecting), its timers, and, in the store, the deliveries
 * that are under way (table "a2a/push") and those that were given up ("a2a/dead").
 *
 * Its two functions for an a2a_handler take the push sender as their `user`. One thread: the
 * loop's. */
#ifndef SDK_AGENT_PUSH_H
#define SDK_AGENT_PUSH_H

#include "a2a/agent.h"
#include "a2a/push.h"
#include "net/loop.h"
#include "net/tls.h"
#include "store/store.h"

typedef struct agent_push agent_push;

enum {
    AGENT_PUSH_DEAD = 10000,               /* dead letters that are kept; the oldest go */
    AGENT_PUSH_DEAD_MS = 7 * 86400 * 1000, /* for so long */
};

typedef struct agent_push_options {
    loop *loop;
    /* NULL: nothing outlives the process; dead letters are then log lines only. Outlives the
     * push_sender. */
    store *store;
    tls_context *tls;              /* for https; NULL: the system's trust; borrowed */
    const a2a_push_limits *limits; /* NULL: the defaults */
    /* What webhooks may reach beside global unicast addresses: addresses, networks ("10.0.0.0/8",
     * "::1/128"), host names ("hooks.internal", "*.internal"). Borrowed for the call. */
    const bay_str *allow;
    size_t allow_count;
} agent_push_options;

/* Takes up what the store has of an earlier process by itself: those deliveries are sent again.
 * Errors: BAY_ERR_SYNTAX with `diag` (a rule of `allow`), BAY_ERR_NOMEM, those of
 * http_client_new. */
bay_err agent_push_new(const agent_push_options *options, agent_push **out,
                       bay_diag *diag) BAY_MUST_CHECK;
/* Before loop and store; deliveries that were not made stay in the store. NULL is fine. */
void agent_push_free(agent_push *self);

/* a2a_handler.push and a2a_handler.push_url. */
void agent_push_event(void *user, bay_str principal, json_val config, a2a_form form,
                      a2a_event *event, bay_str task);
bay_err agent_push_url(void *user, bay_str url, a2a_fault *fault);

/* For whoever passes on what another was told, and answers only once it cannot get lost: the item
 * is kept (where there is a store), then queued, then `done` says so, exactly once and never inside
 * this call; also when the push sender is freed meanwhile (BAY_ERR_CANCELLED). Nobody else is told
 * of a failure, and it may be tried again: BAY_ERR_LIMIT, BAY_ERR_BUSY: too much waits; what a
 * store says.
 * Owns: takes `item`, also on failure. Errors: BAY_ERR_LIMIT, BAY_ERR_BUSY, BAY_ERR_NOMEM: nothing
 * was started and `done` is never called. */
typedef void (*agent_push_done)(void *user, bay_err err);
bay_err agent_push_take(agent_push *self, a2a_push_item *item, agent_push_done done,
                        void *user) BAY_MUST_CHECK;
/* Other rules for what webhooks may reach, from now on. Errors: BAY_ERR_SYNTAX with `diag`,
 * BAY_ERR_LIMIT, BAY_ERR_NOMEM: the earlier ones stay. */
bay_err agent_push_allow(agent_push *self, const bay_str *allow, size_t count,
                         bay_diag *diag) BAY_MUST_CHECK;

/* Deliveries that wait or are under way. */
size_t agent_push_waiting(const agent_push *self);
/* Deliveries given up since the start. */
uint64_t agent_push_dead(const agent_push *self);

#endif
