/* What replies hold in memory because their peers have not read them: one account for all HTTP
 * servers of the process, on all loops.
 *
 * A connection's *debt* is what waits for its peer: the queues of its streams, its own, and its
 * socket's (including TLS records), without what the kernel has. It is set whenever it may have
 * changed, which costs nothing while nothing waits.
 *
 * The rule, when the account exceeds `most` because a debt has grown:
 * - The connection whose peer has made no step for the longest time ends first, whichever server
 *   and loop it belongs to, until the account is within its limit. A *step* is REPLY_STEP_BYTES
 *   that the peer's kernel has acknowledged: single bytes are not a step.
 * - A peer that has made a step within REPLY_STEP_MS reads: it is spared until the account is
 *   REPLY_READERS times the limit. So is a debt of less than REPLY_SMALL_BYTES, whose end would
 *   free little. Steps within REPLY_GRACE_MS of the debt's beginning prove nothing: they may fill
 *   the kernel's buffers of a peer that never reads. A debt as young as that is spared until the
 *   account is a quarter above the limit.
 * - No connection ends because of its own reply's size: others must hold at least half of the
 *   limit. One large reply is delivered to a peer that reads it, whatever the limit is.
 * - The connection that grew last is checked last: its peer may read what it requested.
 *
 * So at most `most` waits for peers that do not read, temporarily a quarter more, and one reply
 * above that; REPLY_READERS times `most` waits for peers that read, or for small debts.
 *
 * Invariants
 * - A book belongs to one loop; its debts are used on that loop's thread only. Other threads read
 *   the two times that it publishes, and post its message.
 * - `end` frees what waits and calls no owner: it may run inside any call of the server.
 * - A debt is in one list of its book exactly while its `bytes` are not 0. */
#ifndef HTTP_REPLY_ACCOUNT_H
#define HTTP_REPLY_ACCOUNT_H

#include "base/list.h"
#include "net/loop.h"
#include "net/reply_room.h" /* reply_account_bytes */

enum {
    REPLY_STEP_BYTES = 16 * 1024,
    REPLY_STEP_MS = 1000,
    REPLY_GRACE_MS = 250,
    REPLY_SMALL_BYTES = 32 * 1024,
    REPLY_READERS = 4,
};

typedef struct reply_book reply_book; /* the debts of one server */

typedef struct reply_debt {
    list_link link;
    size_t bytes;
    uint64_t began_ms; /* since when bytes wait */
    uint64_t since_ms; /* of the last step; before the first: as began_ms */
    uint64_t taken;    /* what the peer had acknowledged then */
    bool has_stepped;
} reply_debt;

typedef struct reply_book_ops {
    /* The bytes that its peer has acknowledged so far. */
    uint64_t (*taken)(const reply_debt *debt);
    /* Ends its connection, frees what waits, and sets the debt to 0. */
    void (*end)(reply_debt *debt);
} reply_book_ops;

/* Errors: BAY_ERR_NOMEM. Units: bytes. Threads: the loop's, as of all below but
 * reply_account_bytes. */
bay_err reply_book_new(loop *loop, size_t most, const reply_book_ops *ops,
                       reply_book **out) BAY_MUST_CHECK;
void reply_book_free(reply_book *self); /* its debts are 0; NULL is allowed */

/* Sets what waits. May end connections, also this one: then the debt is 0 afterwards. `now_ms` is
 * the loop's time. */
void reply_debt_set(reply_book *book, reply_debt *self, size_t bytes, uint64_t now_ms);

/* Whether its peer has made a step within REPLY_STEP_MS. */
bool reply_debt_is_read(reply_book *book, reply_debt *self, uint64_t now_ms);

#endif
