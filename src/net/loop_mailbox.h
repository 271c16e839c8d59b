/* The address of a loop for other threads. A mailbox is counted, so a sender may keep it longer
 * than the loop exists; posting to a closed mailbox fails and has no other effect.
 *
 * Threads: any, except where a function says "the loop's thread". */
#ifndef NET_LOOP_MAILBOX_H
#define NET_LOOP_MAILBOX_H

#include "net/loop.h"

typedef struct loop_mailbox loop_mailbox;

/* `user`: what messages get from loop_mailbox_user. The caller owns one reference, and closes the
 * mailbox before the loop or `user` is freed. Errors: BAY_ERR_NOMEM. Threads: the loop's thread. */
bay_err loop_mailbox_new(loop *loop, void *user, loop_mailbox **out) BAY_MUST_CHECK;
loop_mailbox *loop_mailbox_ref(loop_mailbox *self);
void loop_mailbox_unref(loop_mailbox *self); /* NULL: no effect */

/* Runs `message` on the mailbox's loop: once, in the order posted, also if the mailbox is closed
 * before it runs. Owns: the sender keeps the message and must not free it before it has run.
 * Errors: false: the mailbox is closed, and the message does not run. Allocates nothing. */
bool loop_mailbox_post(loop_mailbox *self, loop_message *message);

/* NULL after loop_mailbox_close. Threads: the loop's thread. */
void *loop_mailbox_user(const loop_mailbox *self);
/* From now on posting fails. Threads: the loop's thread, or any once the loop does not run. */
void loop_mailbox_close(loop_mailbox *self);

#endif
