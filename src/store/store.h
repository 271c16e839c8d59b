/* State that outlives a request or the process: rows, leases and streams behind one asynchronous
 * interface. In memory nothing survives the process; an SQLite file survives it; a store shared by
 * replicas fits the same interface.
 *
 * Three kinds of objects, each in its own name space:
 * - a row: a value under table and key, with a version and an expiry, and any number of parts:
 *   values that are written with their row and removed with it, atomically;
 * - a lease: who owns a piece of work, and for how long;
 * - a stream: events in order; the oldest are removed above the limit.
 *
 * Operations
 * - A function that starts one returns BAY_OK, and then `done` is called exactly once, on the
 *   loop's thread, never inside the starting call; or it returns an error, and then nothing was
 *   started and `done` is never called. Inputs are copied. `user` must live until `done`.
 * - Operations of one store take effect and complete in the order in which they were started.
 * - store_close completes all open operations with BAY_ERR_CANCELLED: these may or may not have
 *   taken effect. To lose nothing, wait for them before closing.
 *
 * Time is the wall clock at the start of each operation: an expired row, lease or event is absent
 * from that millisecond on, and is swept later. Processes that share a store should agree on the
 * time to within a fraction of their shortest lease.
 *
 * Durability (SQLite: WAL): if `done` reports BAY_OK, the change survives a crash of the process.
 * It also survives a power failure (synchronous=FULL), unless it was marked relaxed or belongs to a
 * lease: those survive it once a later durable change has completed. Changes that wait together are
 * committed together, so many concurrent changes cost one flush.
 *
 * Versions, lease tokens and sequences come from one counter of the store, grow with every change
 * and are never reused.
 *
 * Limits count what is stored, including what has expired and was not swept; if one is reached,
 * expired objects are swept first. Names, keys and values are opaque bytes. */
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
    STORE_READ_BYTES = 4 << 20,     /* of one scan or read, but at least one row: cut there */
    STORE_VALUE_MOST = 64 << 20,    /* largest permitted `value_bytes`: reduced to this */
    STORE_ROWS = 1000000,           /* default of `rows` */
    STORE_VALUE_BYTES = 1 << 20,    /* default of `value_bytes` */
    STORE_TOTAL_BYTES = 256 << 20,  /* default of `total_bytes` */
    STORE_PENDING = 4096,           /* default of `pending` */
    STORE_PENDING_BYTES = 64 << 20, /* default of `pending_bytes` */
    STORE_SWEEP_MS = 30000,         /* default of `sweep_ms` */
    STORE_BUSY_MS = 5000,           /* default of `busy_ms` */
};

#define STORE_ABSENT UINT64_C(0) /* as an expected version: the row must not exist */
#define STORE_ANY UINT64_MAX     /* as an expected version: any, or none */

typedef struct store store;

/* Zero means the default. */
typedef struct store_options {
    uint64_t rows;          /* rows, parts, leases and events in all: BAY_ERR_LIMIT from `done` */
    uint64_t value_bytes;   /* of one value, part or event: BAY_ERR_LIMIT at the start */
    uint64_t total_bytes;   /* names, keys and values of all: BAY_ERR_LIMIT from `done` */
    uint32_t pending;       /* operations started and not completed: BAY_ERR_BUSY at the start */
    uint64_t pending_bytes; /* their inputs: BAY_ERR_BUSY at the start */
    uint32_t sweep_ms;      /* between two sweeps of what expired */
    uint32_t busy_ms;       /* a file that another process locks for longer: BAY_ERR_TIMEOUT */
    uint64_t (*now)(void *now_user); /* ms since 1970, on the loop's thread; NULL: loop_time_ms */
    void *now_user;
} store_options;

typedef struct store_row {
    bay_str key;            /* of an event: empty; of a part: its name */
    bay_str value;          /* of a lease: its owner */
    uint64_t version;       /* of a lease: its token; of an event: its sequence */
    uint64_t expires_at_ms; /* 0: never */
} store_row;

/* The result of an operation, valid until `done` returns. `version`: the version that a change
 * created; after BAY_ERR_DUPLICATE and BAY_ERR_STATE the current version, 0: none. */
typedef struct store_result {
    bay_err err;
    bool has_more; /* the result was cut: continue after the last row */
    uint64_t version;
    const store_row *rows; /* get: the row; claim, renew: the current lease, whoever holds it */
    size_t count;
    uint64_t held_rows;  /* in the whole store after this operation */
    uint64_t held_bytes; /* the same */
} store_result;

typedef void (*store_done)(void *user, const store_result *result);

/* --- opening and closing ---------------------------------------------------------------------- */

/* A store in this process's memory. While it is open, the loop keeps running. Owns: the caller,
 * until store_free; `on_loop` must outlive it. Errors: BAY_ERR_NOMEM. Units: see store_options,
 * which may be NULL. Threads: the loop's, like all functions here. */
bay_err store_open_memory(loop *on_loop, const store_options *options, store **out) BAY_MUST_CHECK;

/* A store in an SQLite file, created with mode 0600 if absent; a thread of its own does the work.
 * Blocks while it opens the file. Several processes may have the file open.
 * Owns: as store_open_memory.
 * Errors: BAY_ERR_NOT_FOUND (no such folder), BAY_ERR_DENIED (no permission), BAY_ERR_INVALID (not
 * a file, or another program's database), BAY_ERR_SYNTAX (not a database), BAY_ERR_VERSION (written
 * by a newer release), BAY_ERR_TIMEOUT (locked for busy_ms), BAY_ERR_IO, BAY_ERR_NOMEM; `diag` may
 * be NULL.
 * Units: as store_open_memory.
 * Threads: the loop's. */
bay_err store_open_sqlite(loop *on_loop, bay_str path, const store_options *options, store **out,
                          bay_diag *diag) BAY_MUST_CHECK;

/* Refuses new operations (BAY_ERR_CLOSED), completes the open ones with BAY_ERR_CANCELLED, then
 * calls `closed` (may be NULL), never inside this call. A second call does nothing. Threads: the
 * loop's. */
void store_close(store *self, void (*closed)(void *user), void *user);

/* Frees a store after its `closed` was called (also inside that call). NULL is allowed. Owns: takes
 * `self`. Errors: none; freeing an open store ends the process. Threads: the loop's. */
void store_free(store *self);

bool store_is_closed(const store *self);

/* Bytes of names, keys and values of all changes that were started since it was opened, without
 * what the store itself adds. Threads: the loop's. */
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
    uint64_t expected;       /* STORE_ANY, STORE_ABSENT or the version that the row must have */
    bool is_relaxed;         /* need not survive a power failure */
    const store_part *parts; /* written with the row; its other parts stay */
    size_t part_count;
    const bay_str *dropped; /* removes all parts whose names have one of these prefixes */
    size_t dropped_count;
} store_put_request;

/* Gets the row of a key. Errors, of all functions from here on: BAY_ERR_INVALID (a name out of its
 * limits), BAY_ERR_LIMIT (a value too large), BAY_ERR_BUSY, BAY_ERR_NOMEM, BAY_ERR_CLOSED at the
 * start; BAY_ERR_CANCELLED, BAY_ERR_TIMEOUT, BAY_ERR_IO, BAY_ERR_NOMEM from `done`. Here also
 * BAY_ERR_NOT_FOUND.
 * Threads: the loop's. */
bay_err store_get(store *self, bay_str table, bay_str key, store_done done,
                  void *user) BAY_MUST_CHECK;

/* Writes a row and its parts atomically, if the current version is the expected one. If it fails,
 * the row is unchanged with its parts, except that parts which this put named may be missing.
 * Owns: copies.
 * Errors: also BAY_ERR_DUPLICATE (STORE_ABSENT, and the row exists), BAY_ERR_STATE (another
 * version, or none), BAY_ERR_LIMIT (the store is full).
 * Units: ms.
 * Threads: the loop's. */
bay_err store_put(store *self, const store_put_request *request, store_done done,
                  void *user) BAY_MUST_CHECK;

/* Removes a row with its parts. `expected`: STORE_ANY or a version. Errors: also BAY_ERR_NOT_FOUND
 * (STORE_ANY, and there is no row), BAY_ERR_STATE. Threads: the loop's. */
bay_err store_remove(store *self, bay_str table, bay_str key, uint64_t expected, store_done done,
                     void *user) BAY_MUST_CHECK;

/* The rows of a table whose keys begin with `prefix` and come after `after` (either may be empty),
 * in the order of the keys' bytes, at most `limit` (1 to STORE_READ_ROWS) and STORE_READ_BYTES.
 * Units: rows. Threads: the loop's. */
bay_err store_scan(store *self, bay_str table, bay_str prefix, bay_str after, size_t limit,
                   store_done done, void *user) BAY_MUST_CHECK;

/* The parts of a row whose names come after `after` (may be empty), in the order of the names'
 * bytes, at most `limit` (1 to STORE_READ_ROWS) and STORE_READ_BYTES. Errors: also
 * BAY_ERR_NOT_FOUND: no such row. Units: parts. Threads: the loop's. */
bay_err store_parts(store *self, bay_str table, bay_str key, bay_str after, size_t limit,
                    store_done done, void *user) BAY_MUST_CHECK;

/* --- leases ----------------------------------------------------------------------------------- */

/* Makes `owner` the owner for `ttl_ms` if nobody else is. If it holds the lease already, it keeps
 * its token and gets the new time. An owner is a name that no two processes share.
 * Owns: copies.
 * Errors: also BAY_ERR_BUSY from `done`: another owner holds it (rows[0] says who and until when);
 * BAY_ERR_LIMIT.
 * Units: ms, at least 1.
 * Threads: the loop's. */
bay_err store_claim(store *self, bay_str table, bay_str key, bay_str owner, uint64_t ttl_ms,
                    store_done done, void *user) BAY_MUST_CHECK;

/* Extends the lease to `ttl_ms` from now. Owns: copies. Errors: also BAY_ERR_STATE: it has expired
 * or belongs to another owner; the work must stop. Units: ms, at least 1. Threads: the loop's. */
bay_err store_renew(store *self, bay_str table, bay_str key, bay_str owner, uint64_t ttl_ms,
                    store_done done, void *user) BAY_MUST_CHECK;

/* Releases the lease. Errors: also BAY_ERR_STATE: it does not belong to this owner any more.
 * Threads: the loop's. */
bay_err store_release(store *self, bay_str table, bay_str key, bay_str owner, store_done done,
                      void *user) BAY_MUST_CHECK;

/* --- streams ---------------------------------------------------------------------------------- */

typedef struct store_append_request {
    bay_str stream;
    bay_str value;
    uint64_t expires_at_ms; /* of this event; 0: never */
    uint64_t keep_events;   /* with this one; the oldest are removed. 0: the store's limits only */
    uint64_t keep_bytes;    /* of values, likewise; a larger event is BAY_ERR_LIMIT */
    bool is_relaxed;        /* need not survive a power failure */
} store_append_request;

/* Adds an event; its sequence is greater than that of every earlier event. Sequences are not
 * consecutive. Owns: copies. Errors: also BAY_ERR_LIMIT (the store is full; older events may have
 * been removed). Units: bytes, ms. Threads: the loop's. */
bay_err store_append(store *self, const store_append_request *request, store_done done,
                     void *user) BAY_MUST_CHECK;

/* The events after a sequence (0: all), oldest first, at most `limit` (1 to STORE_READ_ROWS) and
 * STORE_READ_BYTES; none if there is no such stream. To detect lost events, read after `sequence -
 * 1`: if the event itself is not the first, it was removed. Units: events. Threads: the loop's. */
bay_err store_read(store *self, bay_str stream, uint64_t after, size_t limit, store_done done,
                   void *user) BAY_MUST_CHECK;

#endif
