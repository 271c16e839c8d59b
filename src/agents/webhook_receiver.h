/* Where agents tell the gateway's webhooks (agents/webhook): POST /a2a/NAME/push/SEALED, on one
 * loop.
 *
 *   POST ─► address and token open? ─► read ─► is the whole task needed? ─► letter ─► 200
 *              └ 404, 401               └ 400       └─ GetTask ─┘            └ 503
 *
 * A notification is answered by 2xx once it cannot get lost (agents/push_queue), and not before:
 * whoever told it may tell it again, and a receiver may get it twice. Webhooks of older versions
 * are sent the task as it is, which an event of 1.0 does not have; then the agent is asked for it.
 */
#ifndef AGENTS_WEBHOOK_RECEIVER_H
#define AGENTS_WEBHOOK_RECEIVER_H

#include "agents/aliases.h"
#include "agents/push_queue.h"
#include "agents/remote.h"
#include "agents/webhook.h"
#include "http/http_server.h"

enum {
    AGENTS_WEBHOOK_RECEIVER_OPEN = 1000,     /* notifications of one loop that are worked on */
    AGENTS_WEBHOOK_RECEIVER_LOOKS = 250,     /* of these, tasks that one agent is being asked for */
    AGENTS_WEBHOOK_RECEIVER_BYTES = 8 << 20, /* of one, as it comes and as it is passed on */
    AGENTS_WEBHOOK_RECEIVER_HELD_BYTES = 64 << 20, /* of those that are on their way to the post */
};

/* Of one loop; everything is borrowed. */
struct agents_webhook_receiver {
    loop *loop;
    loop_mailbox *port;
    const seal_ring *const *ring; /* the keys as they are at the time; NULL, or of NULL: none */
    agents_push_queue *post;      /* NULL: nothing is taken */
    agents_aliases *aliases;      /* NULL: no ids are translated */
    size_t open;
    size_t held_bytes;
};

/* Can webhooks be sealed and told here at all? */
bool agents_webhook_receiver_works(const agents_webhook_receiver *self);

/* Is it the last part of an address that was given for this agent? False also without memory. */
bool agents_webhook_receiver_knows(const agents_webhook_receiver *self, bay_str agent,
                                   bay_str sealed);

/* Answers the exchange, now or later; `sealed` is the last part of its path. `receiver_of` finds
 * this again by the home of its mailbox. */
void agents_webhook_receiver_take(agents_webhook_receiver *self,
                                  agents_webhook_receiver *(*receiver_of)(void *home),
                                  agents_remote *from, bay_str sealed, http_exchange *exchange);

#endif
