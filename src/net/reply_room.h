/* The account of what replies hold in this process: those that wait for their peers
 * (http/reply_account), and answers that are being received, which this file admits. What a gateway
 * receives from an upstream it will soon owe a client.
 *
 * A receiver asks before an answer takes more than REPLY_ROOM_SMALL bytes. While the account is
 * full it does not read: the answer waits at its source. When answers end, or peers read, waiting
 * receivers continue in the order in which they began to wait, whichever receiver and loop they
 * belong to.
 *
 * One answer always continues, whatever the account holds and whatever its size: so an answer
 * larger than the limit arrives, and incomplete answers never wait for each other. It is the one
 * that has waited longest; the next takes its place when it ends, or has asked for nothing for
 * REPLY_ROOM_TURN_MS.
 *
 * So all answers being received hold what the account has left, one answer above that, and each
 * REPLY_ROOM_SMALL plus one read.
 *
 * Invariants
 * - A room waits exactly while reply_room_ask has returned false and `granted` has not run since.
 * - `granted` runs in an iteration of the receiver's own loop, outside of every call of this file.
 */
#ifndef NET_REPLY_ROOM_H
#define NET_REPLY_ROOM_H

#include "base/list.h"
#include "net/loop.h"

enum {
    REPLY_ROOM_SMALL = 64 * 1024,
    REPLY_ROOM_TURN_MS = 1000,
};

size_t reply_account_bytes(void); /* of the process; any thread, as of these three */
/* The maximum since the last call; from now on counted from the current value. */
size_t reply_account_take_peak(void);
void reply_account_add(size_t bytes);
void reply_account_subtract(size_t bytes);

typedef struct reply_rooms reply_rooms; /* those of one receiver */

typedef struct reply_room {
    list_link link; /* among those that wait, or that are to be notified */
    reply_rooms *of;
    size_t bytes;  /* in the account */
    size_t wanted; /* while it waits */
    bool is_waiting;
} reply_room; /* all 0: nothing is held */

/* `most`: of the account; an answer waits above it. Errors: BAY_ERR_NOMEM. Units: bytes. Threads:
 * the loop's, for all functions below except reply_rooms_wake. */
bay_err reply_rooms_new(loop *loop, size_t most, void (*granted)(reply_room *room),
                        reply_rooms **out) BAY_MUST_CHECK;
void reply_rooms_free(reply_rooms *self); /* its rooms are released; NULL is allowed */

/* The answer takes `bytes` in all, now or soon. False: do not read more of it until `granted`.
 * Never decreases. `now_ms` is the loop's time. */
bool reply_room_ask(reply_rooms *of, reply_room *self, size_t bytes,
                    uint64_t now_ms) BAY_MUST_CHECK;
/* The answer is received, or abandoned. */
void reply_room_release(reply_room *self, uint64_t now_ms);

/* The account has decreased, or time has passed. True: some still wait. Any thread. */
bool reply_rooms_wake(uint64_t now_ms);

#endif
