/* The cells of metrics: what metrics.c counts in and metrics_text.c writes. */
#ifndef EVIDENCE_METRICS_TABLE_H
#define EVIDENCE_METRICS_TABLE_H

#include <pthread.h>

#include "base/list.h"
#include "base/map.h"
#include "evidence/metrics.h"

/* The calls of a cell that ended in one way. */
typedef struct metrics_end {
    call_outcome outcome;
    char reason[RECORD_REASON_BYTES]; /* "": a result; else a reason, a code, "tool_error", … */
    uint64_t buckets[METRICS_BUCKETS + 1];
    uint64_t sum_ns;
    uint64_t count;
} metrics_end;

typedef struct metrics_cell {
    list_link link; /* in metrics_table.changed */
    bool is_changed;
    bool is_other;
    call_protocol protocol;
    call_kind kind;
    bay_str key; /* server, target and method, in `text` */
    bay_str server;
    bay_str target;
    bay_str method;
    metrics_end results;
    metrics_end *errors; /* METRICS_ERRORS + 1, from the first one on; the last one is `_other` */
    size_t error_count;
    char text[];
} metrics_cell;

typedef struct metrics_table {
    map cells;
    metrics_cell *other; /* of what is above METRICS_CELLS */
    list changed;
    uint64_t dropped; /* of the sum: calls that `other` counts */
    uint64_t refused[CALL_REASONS];
} metrics_table;

struct metrics {
    pthread_mutex_t lock; /* of `table` */
    metrics_table *table;
};

/* The upper bounds, in ns; as the conventions say. */
extern const uint64_t metrics_bounds_ns[METRICS_BUCKETS];

#endif
