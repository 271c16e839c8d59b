/* Shared by the files of this module. Three layers:
 *
 *     store.c   front: checks inputs, copies them into an operation, counts, completes
 *     back      runs operations in order: at once on the loop (memory.c), on a thread (sqlite.c)
 *     rules.c   implements operations over an engine: an ordered set of cells
 *
 * A back end that keeps the rules elsewhere (a script on a server) implements store_back alone.
 *
 * Rows, parts, leases and events are all cells, named by (space, scope, key). The scope is the
 * table or the stream. The key of an event is its sequence, big endian; that of a part is the
 * length of its row's key (2 bytes, big endian), that key, and the part's name. A stream with
 * events has one further cell, in SPACE_STREAM, with their number and bytes; it does not count
 * towards the limits. */
#ifndef STORE_BACK_H
#define STORE_BACK_H

#include <stddef.h>

#include "base/arena.h"
#include "base/list.h"
#include "store/store.h"

/* These numbers are stored in files. */
typedef enum store_space {
    SPACE_ROW = 1,
    SPACE_LEASE = 2,
    SPACE_EVENT = 3,
    SPACE_STREAM = 4,
    SPACE_PART = 5,
} store_space;

typedef enum store_kind {
    STORE_GET,
    STORE_PUT,
    STORE_REMOVE,
    STORE_SCAN,
    STORE_CLAIM,
    STORE_RENEW,
    STORE_RELEASE,
    STORE_APPEND,
    STORE_READ,
    STORE_SWEEP,
    STORE_PARTS,
} store_kind;

enum { STORE_CELL_KEY_BYTES = 2 + STORE_KEY_BYTES + STORE_PART_BYTES };

/* An operation. The loop owns it until it is passed to the back end; the back end owns it until it
 * calls store_op_done. */
typedef struct store_op {
    list_link link;        /* of store.open; used by the front */
    struct store_op *next; /* used by the back end */
    store_kind kind;
    bool is_relaxed;
    uint64_t now_ms;
    bay_str scope;
    bay_str key;   /* of a scan: the prefix */
    bay_str value; /* of a lease: the owner; of a scan or of parts: where to start after */
    uint64_t expires_at_ms;
    uint64_t expected;
    uint64_t after; /* of a read */
    uint64_t keep_events;
    uint64_t keep_bytes;
    size_t limit;
    const store_part *parts; /* of a put; in `bytes`, like everything below */
    size_t part_count;
    const bay_str *dropped;
    size_t dropped_count;
    store_done done;
    void *user;
    store_result result;
    store_row one; /* `result.rows` points here if it is a single row */
    arena memory;  /* of the result */
    size_t len;    /* of names and values */
    _Alignas(max_align_t) char bytes[];
} store_op;

typedef struct store_bounds {
    uint64_t rows;
    uint64_t value_bytes;
    uint64_t total_bytes;
} store_bounds;

/* --- back ends -------------------------------------------------------------------------------- */

typedef struct store_back {
    void (*start)(store *self, store_op *op); /* completes it by store_op_done, not inside */
    void (*close)(store *self); /* drops what was started; then store_back_closed, not inside */
    void (*free)(store *self);
} store_back;

/* The first member of every back end. */
struct store {
    const store_back *back;
    loop *loop;
    store_options options; /* with the defaults filled in */
    list open;             /* store_op in the order in which they were started */
    uint32_t pending;
    uint64_t pending_bytes;
    uint64_t written_bytes;
    loop_timer sweep_timer;
    bool is_sweeping;
    bool is_closing;
    bool is_closed;
    void (*closed)(void *user);
    void *closed_user;
};

/* Sets what all back ends share and starts the sweeps; the last step of opening. */
bay_err store_init(store *self, const store_back *back, loop *on_loop,
                   const store_options *options) BAY_MUST_CHECK;
store_options store_options_of(const store_options *options); /* with the defaults filled in */
store_bounds store_bounds_of(const store *self);

/* On the loop: completes `op` and frees it. While the store is closing it does nothing:
 * store_back_closed then completes all open operations at once, in order. */
void store_op_done(store *self, store_op *op);
void store_back_closed(store *self); /* the last call of a back end; `self` may be freed in it */

bool store_op_writes(const store_op *op);

/* --- engines ---------------------------------------------------------------------------------- */

typedef struct store_cell {
    store_space space;
    bay_str scope;
    bay_str key;
    bay_str value;
    uint64_t version;
    uint64_t expires_at_ms;
} store_cell;

typedef struct store_engine store_engine;

/* False ends the walk. */
typedef bool (*store_visit)(void *user, const store_cell *cell);

/* The results of `find`, `scan` and `soonest` are valid until the next call of the engine; a
 * visitor must not call the engine. */
typedef struct store_engine_calls {
    bay_err (*find)(store_engine *self, store_space space, bay_str scope, bay_str key,
                    store_cell *out); /* BAY_ERR_NOT_FOUND */
    /* Adds or replaces. Replacing a value by one of the same length needs no memory. */
    bay_err (*write)(store_engine *self, const store_cell *cell);
    bay_err (*erase)(store_engine *self, store_space space, bay_str scope, bay_str key);
    /* Every cell of the scope from the key `from` on, in order. */
    bay_err (*scan)(store_engine *self, store_space space, bay_str scope, bay_str from,
                    store_visit visit, void *user);
    /* The cell that expires first; BAY_ERR_NOT_FOUND: no cell expires. */
    bay_err (*soonest)(store_engine *self, store_cell *out);
} store_engine_calls;

typedef struct store_totals {
    uint64_t counter; /* the last version, token or sequence that was assigned */
    uint64_t rows;
    uint64_t bytes;
} store_totals;

struct store_engine {
    const store_engine_calls *calls;
    store_bounds bounds;
    store_totals totals;
};

/* Runs an operation: sets its result. Discards the result of an earlier attempt. */
void store_rules_run(store_engine *engine, store_op *op);

/* Replaces the result by `err`: a group that was not committed has no effect. */
void store_rules_fail(store_op *op, bay_err err);

#endif
