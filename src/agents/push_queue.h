/* Notifications that the gateway passes on: one push sender for all loops (sdk/agent_push), on one
 * of them, because its rows belong to one. Whoever received a notification sends a letter; its end
 * comes when the notification cannot get lost any more: queued, and kept where there is a store.
 *
 *   a loop ── letter ──► home: push_sender ── kept, queued ──► done, on the loop it came from
 */
#ifndef AGENTS_PUSH_QUEUE_H
#define AGENTS_PUSH_QUEUE_H

#include "a2a/push.h"
#include "net/loop_mailbox.h"

typedef struct agents_push_queue agents_push_queue;

/* `store`: the path of an SQLite file, "" for none; copied. Nothing is opened before
 * agents_push_queue_open. Threads, here and below unless it says otherwise: `home`'s.
 * Errors: BAY_ERR_NOMEM. */
bay_err agents_push_queue_new(loop *home, bay_str store, agents_push_queue **out) BAY_MUST_CHECK;
/* After whoever sends letters, before the loop; turns the loop until its store is closed. What was
 * not delivered stays in the store. NULL is fine. */
void agents_push_queue_free(agents_push_queue *self);

/* Opens the push sender, which takes up what an earlier process left in the store; from the second
 * time on only sets what webhooks may reach beside global addresses (rules of net/address). Errors,
 * with `diag`: BAY_ERR_SYNTAX, BAY_ERR_NOMEM, those of store_open_sqlite. */
bay_err agents_push_queue_open(agents_push_queue *self, const bay_str *allow, size_t count,
                               bay_diag *diag) BAY_MUST_CHECK;
bool agents_push_queue_is_home(const agents_push_queue *self, const loop *on); /* any thread */

typedef struct agents_push_request agents_push_request;
struct agents_push_request {
    loop_message message;
    loop_mailbox *home;
    loop_mailbox *back;
    a2a_push_item *item;
    bay_err err;
    /* Exactly once, on the loop of `back` with its home; or, when that has closed, anywhere, with
     * NULL: nobody waits for the answer. `err`: BAY_OK, else as agent_push_take and
     * BAY_ERR_CLOSED. */
    void (*done)(agents_push_request *self, void *home);
};

/* Owns: takes `item`; borrows the letter until `done`. `back` is counted by the letter meanwhile.
 * Threads: any; `done` may run inside. */
void agents_push_request_send(agents_push_request *self, agents_push_queue *to, a2a_push_item *item,
                              loop_mailbox *back);

#endif
