/* What has to outlive a request or the process: rows, leases and streams behind one asynchronous
 * interface. In memory nothing survives the process; an SQLite file survives it; a store shared
 * by replicas fits the same interface.
 *
 * Three kinds of thing, each in its own name space:
 * - a row: a value under table and key, with a version and an expiry, and with any number of parts:
 *   values that come with a put of their row and go with it, all in the same moment;
 * - a lease: who owns a piece of work, for how long;
 * - a stream: events in order, the oldest of which go when there are too many.
 *
 * Operations
 * - A function that starts one returns BAY_OK, and then `done` is called exactly once, on the
 * loop's thread, never inside the starting call; or it returns an error, and then nothing was
 * started and `done` is never called. Inputs are copied. `user` must live until `done`.
 * - Operations of one store take effect and complete in the order in which they were started.
 * - store_close completes all that are open with BAY_ERR_CANCELLED: such a one may or may not have
 * taken effect. To end without losing anything, wait for them before closing.
 *
 * Time is the wall clock at the start of each operation: an expired row, lease or event is absent
 * from that millisecond on, and is swept later. Processes that share a store should agree on the
 * time to within a fraction of their shortest lease.
 *
 * Durability (SQLite: WAL): when `done` says BAY_OK the change survives the death of the process.
 * It also survives the loss of power (synchronous=FULL), unless it was marked relaxed or was a
 * lease's: those survive it too once a later durable change completed. Changes that wait together
 * are committed together, so many at once cost one flush.
 *
 * Versions, lease tokens and sequences come from one counter of the store, grow with every change
 * and never repeat, also after what they named is gone.
 *
 * Bounds hold for what is stored, including what expired and was not swept; when one is hit, what
 * expired is swept first. Names, keys and values are opaque bytes. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "net/loop.h"
#include "patchbay/types.h"

enum {
    STORE_TABLE_BYTES = 64,         /* of a table's or stream's name, at least 1: BAY_ERR_INVALID */
    STORE_KEY_BYTES = 512,          /* of a key, at least 1: BAY_ERR_INVALID */
    STORE_PART_BYTES = 32,          /* of a part's name, at least 1: BAY_ERR_INVALID */
    STORE_PUT_PARTS = 8192,         /* parts and names dropped of one put: BAY_ERR_INVALID */
    STORE_OWNER_BYTES = 128,        /* of a lease's owner, at least 1: BAY_ERR_INVALID */
    STORE_READ_ROWS = 1000,         /* of one scan or read: cut there */
    STORE_READ_BYTES = 4 << 20,     /* of one scan or read, but always one row: cut there */
    STORE_VALUE_MOST = 64 << 20,    /* largest `value_bytes` that can be asked for: cut there */
    STORE_ROWS = 1000000,           /* default of `rows` */
    STORE_VALUE_BYTES = 1 << 20,    /* default of `value_bytes` */
    STORE_TOTAL_BYTES = 256 << 20,  /* default of `total_bytes` */
    STORE_PENDING = 4096,           /* default of `pending` */
    STORE_PENDING_BYTES = 64 << 20, /* default of `pending_bytes` */
    STORE_SWEEP_MS = 30000,         /* default of `sweep_ms` */
    STORE_BUSY_MS = 5000,           /* default of `busy_ms` */
};

#define STORE_ABSENT UINT64_C(0) /* as an expected version: there must be no such row */
#define STORE_ANY UINT64_MAX     /* as an expected version: whatever is there */

typedef struct store store;

/* Zero means the default. */
typedef struct store_options {
    uint64_t rows;          /* rows, parts, leases and events in all: BAY_ERR_LIMIT from `done` */
    uint64_t value_bytes;   /* of one value, part or event: BAY_ERR_LIMIT at the start */
    uint64_t total_bytes;   /* names, keys and values of all: BAY_ERR_LIMIT from `done` */
    uint32_t pending;       /* operations started and not completed: BAY_ERR_BUSY at the start */
    uint64_t pending_bytes; /* their inputs: BAY_ERR_BUSY at the start */
    uint32_t sweep_ms;      /* between two sweeps of what expired */
    uint32_t busy_ms;       /* a file locked by another process for longer: BAY_ERR_TIMEOUT */
    uint64_t (*now)(void *now_user); /* ms since 1970, on the loop's thread; NULL: loop_time_ms */
    void *now_user;
} store_options;

typedef struct store_row {
    bay_str key;            /* of an event: empty; of a part: its name */
    bay_str value;          /* of a lease: its owner */
    uint64_t version;       /* of a lease: its token; of an event: its sequence */
    uint64_t expires_at_ms; /* 0: never */
} store_row;

/* How an operation ended. Everything in it is valid until `done` returns.
 * `version`: what a change brought about; after BAY_ERR_DUPLICATE and BAY_ERR_STATE the version
 * that is there, 0 for none. */
typedef struct store_result {
    bay_err err;
    bool has_more; /* a scan or read was cut: go on after the last row */
    uint64_t version;
    const store_row *rows; /* get: the row; claim, renew: the lease as it is now, whoever has it */
    size_t count;
    uint64_t held_rows;  /* in the whole store after this operation */
    uint64_t held_bytes; /* the same */
} store_result;

typedef void (*store_done)(void *user, const store_result *result);

/* --- opening and closing ---------------------------------------------------------------------- */

/* A store in this process's memory. While it is open the loop has something to wait for.
 * Owns: the caller, until store_free; `on_loop` must outlive it. Errors: BAY_ERR_NOMEM. Units: see
 * store_options, which may be NULL. Threads: the loop's, as all functions here. */
bay_err store_open_memory(loop *on_loop, const store_options *options, store **out) BAY_MUST_CHECK;

/* A store in an SQLite file, made with mode 0600 when absent; a thread of its own does the work.
 * Blocks while it opens the file. Several processes may have the file open.
 * Owns: as store_open_memory. Errors: BAY_ERR_NOT_FOUND (no such folder), BAY_ERR_DENIED (no
 * permission), BAY_ERR_INVALID (not a file, or another program's database), BAY_ERR_SYNTAX (no
 * database at all), BAY_ERR_VERSION (written by a newer release), BAY_ERR_TIMEOUT (locked for
 * busy_ms), BAY_ERR_IO, BAY_ERR_NOMEM; `diag` may be NULL. Units: as store_open_memory. Threads:
 * the loop's. */
bay_err store_open_sqlite(loop *on_loop, bay_str path, const store_options *options, store **out,
                          bay_diag *diag) BAY_MUST_CHECK;

/* Starts nothing more (BAY_ERR_CLOSED), completes what is open with BAY_ERR_CANCELLED, then calls
 * `closed` (which may be NULL), never inside this call. The second call does nothing.
 * Owns: nothing. Threads: the loop's. */
void store_close(store *self, void (*closed)(void *user), void *user);

/* Frees a store after it said `closed` (also inside that call). NULL is allowed.
 * Owns: takes `self`. Errors: none; a store that is still open is a mistake of the caller's, which
 * ends the process. Threads: the loop's. */
void store_free(store *self);

bool store_is_closed(const store *self);

/* Names, keys and values of all changes that were started since it was opened: what was written,
 * but for what the store itself adds.
 * Owns: nothing. Units: bytes. Threads: the loop's. */
uint64_t store_written(const store *self);

/* --- rows ------------------------------------------------------------------------------------- */

typedef struct store_part {
    bay_str name; /* within its row */
    bay_str value;
} store_part;

typedef struct store_put_request {
    bay_str table;
    bay_str key;
    bay_str value;
    uint64_t expires_at_ms;  /* wall clock; 0: never */
    uint64_t expected;       /* STORE_ANY, STORE_ABSENT or the version that must be there */
    bool is_relaxed;         /* need not survive the loss of power */
    const store_part *parts; /* written with the row; the other parts that it has stay */
    size_t part_count;
    const bay_str *dropped; /* parts whose names begin so go, whoever wrote them */
    size_t dropped_count;
} store_put_request;

/* The row of a key.
 * Owns: nothing. Errors, of all functions from here on: BAY_ERR_INVALID (a name out of its bounds),
 * BAY_ERR_LIMIT (a value too large), BAY_ERR_BUSY, BAY_ERR_NOMEM, BAY_ERR_CLOSED at the start;
 * BAY_ERR_CANCELLED, BAY_ERR_TIMEOUT, BAY_ERR_IO, BAY_ERR_NOMEM from `done`. Here also
 * BAY_ERR_NOT_FOUND. Threads: the loop's. */
bay_err store_get(store *self, bay_str table, bay_str key, store_done done,
                  void *user) BAY_MUST_CHECK;

/* Writes a row when what is there is what was expected, and its parts in the same moment: nobody
 * ever finds the one without the others. When it fails the row is as it was, with the parts that it
 * had, but for those that this put named anew: they may be gone.
 * Owns: copies. Errors: also BAY_ERR_DUPLICATE (STORE_ABSENT, and there is one), BAY_ERR_STATE
 * (another version, or none), BAY_ERR_LIMIT (the store is full). Units: ms. Threads: the loop's. */
bay_err store_put(store *self, const store_put_request *request, store_done done,
                  void *user) BAY_MUST_CHECK;

/* Removes a row, with its parts. `expected`: STORE_ANY or a version.
 * Owns: nothing. Errors: also BAY_ERR_NOT_FOUND (STORE_ANY, and there is none), BAY_ERR_STATE.
 * Threads: the loop's. */
bay_err store_remove(store *self, bay_str table, bay_str key, uint64_t expected, store_done done,
                     void *user) BAY_MUST_CHECK;

/* The rows of a table whose keys begin with `prefix` and come after `after` (either may be empty),
 * in the order of the keys' bytes, at most `limit` (1 to STORE_READ_ROWS) and STORE_READ_BYTES.
 * Owns: nothing. Errors: no others. Units: rows. Threads: the loop's. */
bay_err store_scan(store *self, bay_str table, bay_str prefix, bay_str after, size_t limit,
                   store_done done, void *user) BAY_MUST_CHECK;

/* The parts of a row whose names come after `after` (may be empty), in the order of the names'
 * bytes, at most `limit` (1 to STORE_READ_ROWS) and STORE_READ_BYTES.
 * Owns: nothing. Errors: also BAY_ERR_NOT_FOUND: there is no such row. Units: parts. Threads: the
 * loop's. */
bay_err store_parts(store *self, bay_str table, bay_str key, bay_str after, size_t limit,
                    store_done done, void *user) BAY_MUST_CHECK;

/* --- leases ----------------------------------------------------------------------------------- */

/* Makes `owner` the owner for `ttl_ms`, when nobody else is; whoever has the lease already keeps
 * its token and has it for longer. An owner is a name that no two processes share. Owns: copies.
 * Errors: also BAY_ERR_BUSY from `done`: somebody else has it (rows[0] says who and until when);
 * BAY_ERR_LIMIT. Units: ms, at least 1. Threads: the loop's. */
bay_err store_claim(store *self, bay_str table, bay_str key, bay_str owner, uint64_t ttl_ms,
                    store_done done, void *user) BAY_MUST_CHECK;

/* From now `ttl_ms` more for an owner that still has it.
 * Owns: copies. Errors: also BAY_ERR_STATE: it expired or is another's; the work must stop. Units:
 * ms, at least 1. Threads: the loop's. */
bay_err store_renew(store *self, bay_str table, bay_str key, bay_str owner, uint64_t ttl_ms,
                    store_done done, void *user) BAY_MUST_CHECK;

/* Gives it back.
 * Owns: nothing. Errors: also BAY_ERR_STATE: it was not this owner's any more. Threads: the
 * loop's. */
bay_err store_release(store *self, bay_str table, bay_str key, bay_str owner, store_done done,
                      void *user) BAY_MUST_CHECK;

/* --- streams ---------------------------------------------------------------------------------- */

typedef struct store_append_request {
    bay_str stream;
    bay_str value;
    uint64_t expires_at_ms; /* of this event; 0: never */
    uint64_t keep_events;   /* with this one; the oldest go. 0: no bound but the store's */
    uint64_t keep_bytes;    /* of values, the same; an event larger than this is BAY_ERR_LIMIT */
    bool is_relaxed;        /* need not survive the loss of power */
} store_append_request;

/* Adds an event; its sequence is greater than that of every event before. Sequences are not
 * consecutive.
 * Owns: copies. Errors: also BAY_ERR_LIMIT (the store is full; then older events may have gone
 * already). Units: bytes, ms. Threads: the loop's. */
bay_err store_append(store *self, const store_append_request *request, store_done done,
                     void *user) BAY_MUST_CHECK;

/* The events after a sequence (0: all), the oldest first, at most `limit` (1 to STORE_READ_ROWS)
 * and STORE_READ_BYTES; none when there is no such stream. Whoever must know whether something was
 * lost in between reads after `sequence - 1`: when the event itself is not the first, it is gone.
 * Owns: nothing. Errors: no others. Units: events. Threads: the loop's. */
bay_err store_read(store *self, bay_str stream, uint64_t after, size_t limit, store_done done,
                   void *user) BAY_MUST_CHECK;

#endif
