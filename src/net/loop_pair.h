/* Two ends of one conversation on two loops. The *near* end begins it. Each end is used by its own
 * loop's thread only, and the ends exchange messages:
 *
 *   near ── begin, messages, signals, last word ──► far
 *   near ◄── messages, signals, last word ───────── far
 *
 * Order. Messages and the last word arrive in the order in which the other end posted them, and
 * nothing arrives at the far end before `begun`. Signals are bits of which several may arrive
 * together, and so before messages that were posted between them.
 *
 * Memory. `begin`, signals and the last word are part of the pair: they never fail for memory.
 * Messages are the sender's allocations.
 *
 * Bounds. An end's events say how much may be under way to it. Above `window` the sender is told to
 * wait for `drained`; above `most` a message is not taken. What was received counts as under way
 * until `received` returns, or, if that returned BAY_ERR_AGAIN, until loop_pair_resume. Messages of
 * cost 0 and the last word are always taken.
 *
 * Ends. Each end is closed exactly once by the code that uses it, at any time, also in a callback
 * of the pair: after that it gets no event, and its reference is given back. The other end then
 * gets `closed` once, unless it was closed before. Whoever closes a mailbox, or frees a loop,
 * closes the ends that use it first.
 *
 * Owns: the pair is part of a struct of its user, and holds a reference to both mailboxes. The two
 * ends and each message under way hold a reference to the pair; `release` runs when the last one is
 * given back, on any thread.
 *
 * Threads: each function is for the thread of the end that it names (or of the sender). */
#ifndef NET_LOOP_PAIR_H
#define NET_LOOP_PAIR_H

#include <stdatomic.h>

#include "net/loop_mailbox.h"

/* An end, as defined in this header. */
typedef enum loop_pair_side { LOOP_PAIR_NEAR, LOOP_PAIR_FAR } loop_pair_side;

typedef struct loop_pair loop_pair;

/* The head of a message: the first member of a struct that was allocated with mem_alloc or a
 * similar function. */
typedef struct loop_pair_message {
    loop_message post;
    loop_pair *pair;
    size_t cost;
    bool is_last;
} loop_pair_message;

/* What one end gets, on its loop. Events of which it gets none are NULL. */
typedef struct loop_pair_events {
    /* The first event of the far end. */
    void (*begun)(loop_pair *self);
    /* The message is valid during the callback only. BAY_OK, or BAY_ERR_AGAIN: this one and later
     * ones count as under way until loop_pair_resume. */
    bay_err (*received)(loop_pair *self, loop_pair_message *message);
    void (*signalled)(loop_pair *self, unsigned signals);
    /* After loop_pair_post returned BAY_ERR_AGAIN: at most `resume` is under way now. */
    void (*drained)(loop_pair *self);
    /* The other end's last word; `last` is NULL if it was closed without one. */
    void (*closed)(loop_pair *self, loop_pair_message *last);
    /* Limits of what is under way to this end, in the senders' unit; 0: none. */
    size_t window;
    size_t resume;
    size_t most;
} loop_pair_events;

/* What goes to one end; for loop_pair.c only. */
typedef struct loop_pair_lane {
    loop_pair *pair;
    loop_mailbox *mailbox;
    const loop_pair_events *events;
    loop_message note; /* signals */
    loop_message last;
    atomic_bool is_noted; /* `note` is posted and has not run */
    atomic_uint signals;
    atomic_size_t under_way;
    atomic_bool is_full;      /* the sender waits for `drained` */
    bool is_sender_listening; /* it used loop_pair_finish; set before that */
    bool has_finished;        /* from here on: this end's thread only */
    bool is_closed;
    bool is_alone; /* there is no other end, or it was closed */
    bool is_slow;
    size_t held; /* received, but not released before loop_pair_resume */
} loop_pair_lane;

struct loop_pair {
    atomic_uint references;
    void (*release)(loop_pair *self);
    loop_pair_lane lanes[2]; /* by loop_pair_side */
};

enum { LOOP_PAIR_SIGNALS = 16 }; /* the lowest bits; users define their meaning */

/* Makes the near end. The events are borrowed as long as the pair lives. */
void loop_pair_init(loop_pair *self, loop_mailbox *near, const loop_pair_events *near_events,
                    loop_mailbox *far, const loop_pair_events *far_events,
                    void (*release)(loop_pair *self));

/* Makes the far end: its loop gets `begun`. Errors: BAY_ERR_CLOSED if the far mailbox is closed;
 * there is no far end then. In either case the near end is still to be closed. */
bay_err loop_pair_begin(loop_pair *self) BAY_MUST_CHECK;

/* Posts `message` to the end `to`. Owns: takes it, and frees it when it was received or could not
 * be. Errors: BAY_ERR_AGAIN: it was taken, and the sender should wait for `drained`; BAY_ERR_LIMIT:
 * it was not taken, because more than `most` would be under way (one message alone may be larger);
 * BAY_ERR_CLOSED: the other end or its mailbox is closed. */
bay_err loop_pair_post(loop_pair *self, loop_pair_side to, loop_pair_message *message,
                       size_t cost) BAY_MUST_CHECK;
/* Would a message of this cost be taken? For senders that look before they copy. */
bool loop_pair_has_room(const loop_pair *self, loop_pair_side to, size_t cost);

/* Has the end `to` get these bits, in one event with others that it did not get yet. */
void loop_pair_signal(loop_pair *self, loop_pair_side to, unsigned signals);

/* The end `side` takes messages at full speed again: what it held counts as received. */
void loop_pair_resume(loop_pair *self, loop_pair_side side);

/* Says the last word of the end `side`, which stays open to get what the other end still posts, up
 * to its `closed`. Errors: false if the other end or its mailbox is closed: nothing comes. */
bool loop_pair_finish(loop_pair *self, loop_pair_side side);

/* Closes the end `side`; the pair may be gone when this returns. `last` (NULL: none) is taken, and
 * the other end gets it with `closed`, whatever is under way. */
void loop_pair_close(loop_pair *self, loop_pair_side side, loop_pair_message *last);

/* Keeps the pair for code that may run after its end was closed. Threads: any. */
void loop_pair_ref(loop_pair *self);
void loop_pair_unref(loop_pair *self);

/* The user of that end's mailbox; NULL once it is closed. */
void *loop_pair_user(const loop_pair *self, loop_pair_side side);

#endif
