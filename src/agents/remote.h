/* One agent that is elsewhere, as one loop sees it: its card, fetched when it is first needed and
 * refreshed when it is old; a link to the interface of the card that suits; and the service that
 * passes calls on to it.
 *
 *   no card ──first call, a look at the card──► fetching ──► known ──old──► fetching (known
 * meanwhile) └─ failed: whoever waits is told
 *
 * Calls that do not reach the agent are counted: past the bound its circuit opens, and calls fail
 * at once until one that is tried gets through. One agent's failure is its own. */
#ifndef AGENTS_REMOTE_H
#define AGENTS_REMOTE_H

#include "a2a/service.h"
#include "agents/aliases.h"
#include "agents/card.h"
#include "agents/owners.h"
#include "base/list.h"
#include "http/http_client.h"

typedef struct agents_remote agents_remote;
typedef struct agents_webhook_receiver agents_webhook_receiver; /* agents/webhook_receiver.h */

/* Somebody who wants to know of the card: told each time that it was fetched anew, or that fetching
 * failed. May leave from inside. */
typedef struct agents_watch {
    list_link link;
    void (*told)(void *user);
    void *user;
} agents_watch;

/* Everything is borrowed and outlives it; `aliases` may be NULL. A key file that cannot be read is
 * BAY_ERR_INVALID with `diag`.
 */
bay_err agents_remote_new(loop *loop, const agents_settings *settings, const agents_public *public,
                          agents_aliases *aliases, agents_remote **out,
                          bay_diag *diag) BAY_MUST_CHECK;
/* What is open fails with A2A_E_UNAVAILABLE. NULL is fine. */
void agents_remote_free(agents_remote *self);

a2a_service *agents_remote_service(agents_remote *self);
/* Where the agent can tell webhooks in the gateway's place (agents/webhook_receiver); borrowed.
 * Without one, webhooks are registered in the agent's own version or refused. */
void agents_remote_set_webhook_receiver(agents_remote *self,
                                        const agents_webhook_receiver *receiver);
/* Keeps callers apart: whose tasks and contexts of the agent are, and the keys that name callers,
 * as they are at the time; borrowed. Before its first call. Without them all callers are one. */
void agents_remote_set_owners(agents_remote *self, agents_owned *owned,
                              const seal_ring *const *ring);
agents_owned *agents_remote_owned(const agents_remote *self); /* NULL: callers are not kept apart */
/* How many tasks it is being asked for, for its notifications; the receiver counts them here. */
uint32_t *agents_remote_looks(agents_remote *self);
const agents_settings *agents_remote_settings(const agents_remote *self);
/* NULL: not known yet. */
agents_card *agents_remote_card(agents_remote *self);
/* Fetches the card if it is not known or old. False: nothing is under way (it is fresh, or the
 * circuit is open); true: watchers will hear. */
bool agents_remote_learn(agents_remote *self);
void agents_remote_watch(agents_remote *self, agents_watch *watch);
void agents_remote_unwatch(agents_watch *watch); /* harmless when it is gone */

size_t agents_remote_calls(const agents_remote *self); /* open and waiting */

typedef struct agents_remote_state {
    const char *state; /* "unknown", "ready", "failed", "open" */
    const char *error; /* "" */
    const char *circuit;
    bool is_verified;
    bool has_interface;
    a2a_version version;
    a2a_binding binding;
    size_t calls;
} agents_remote_state;
agents_remote_state agents_remote_state_of(const agents_remote *self);

#endif
