/* Notifications that the gateway passes on: one courier for all loops (sdk/agent_push), on one of
 * them, because its rows belong to one. Whoever received a notification sends a letter; its end
 * comes when the notification cannot get lost any more: queued, and kept where there is a store.
 *
 *   a loop ── letter ──► home: courier ── kept, queued ──► done, on the loop it came from
 */
#ifndef AGENTS_POST_H
#define AGENTS_POST_H

#include "a2a/push.h"
#include "transport/relay_port.h"

typedef struct agents_post agents_post;

/* `store`: the path of an SQLite file, "" for none; copied. Nothing is opened before
 * agents_post_open. Threads, here and below unless it says otherwise: `home`'s.
 * Errors: BAY_NOMEM. */
bay_err agents_post_new(loop *home, bay_str store, agents_post **out) BAY_MUST_CHECK;
/* After whoever sends letters, before the loop; turns the loop until its store is closed. What was
 * not delivered stays in the store. NULL is fine. */
void agents_post_free(agents_post *self);

/* Opens the courier, which takes up what an earlier process left in the store; from the second time
 * on only sets what webhooks may reach beside global addresses (rules of net/address).
 * Errors, with `diag`: BAY_SYNTAX, BAY_NOMEM, those of store_open_sqlite. */
bay_err agents_post_open(agents_post *self, const bay_str *allow, size_t count,
                         bay_diag *diag) BAY_MUST_CHECK;
bool agents_post_is_home(const agents_post *self, const loop *on); /* any thread */

typedef struct agents_letter agents_letter;
struct agents_letter {
    loop_message message;
    relay_port *home;
    relay_port *back;
    a2a_push_item *item;
    bay_err err;
    /* Exactly once, on the loop of `back` with its face; or, when that has closed, anywhere, with
     * NULL: nobody waits for the answer. `err`: BAY_OK, else as agent_push_take and BAY_CLOSED. */
    void (*done)(agents_letter *self, void *face);
};

/* Owns: takes `item`; borrows the letter until `done`. `back` is counted by the letter meanwhile.
 * Threads: any; `done` may run inside. */
void agents_letter_send(agents_letter *self, agents_post *to, a2a_push_item *item,
                        relay_port *back);

#endif
