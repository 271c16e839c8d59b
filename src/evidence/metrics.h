/* Counters and histograms of calls, for Prometheus and what reads its formats.
 *
 *   loop ─► metrics_lane (its own cells) ──each second, a lock──► metrics (the sum of all) ─► text
 *
 * A call costs its loop one look-up and no lock; a lane adds what it has counted to the sum and
 * begins at zero. Names of series come from the catalog and the configuration, never from a caller:
 * a name that was not resolved has none. There are at most METRICS_CELLS of them, then `_other`.
 *
 * Source: OpenTelemetry semantic conventions for MCP (mcp.server.operation.duration); Prometheus
 * text format 0.0.4; OpenMetrics 1.0. */
#ifndef EVIDENCE_METRICS_H
#define EVIDENCE_METRICS_H

#include "evidence/record.h"

enum {
    METRICS_CELLS = 2000,     /* of what is called and how: server, target, method */
    METRICS_ERRORS = 8,       /* ways in which one of these fails; then `_other` */
    METRICS_BUCKETS = 14,     /* of a duration, and one above them */
    METRICS_NAME_BYTES = 256, /* of a label's value: cut */
    METRICS_TEXT_BYTES = 64 << 20,
};

typedef struct metrics metrics;

/* Owns: the caller. Errors: BAY_ERR_NOMEM. */
bay_err metrics_new(metrics **out) BAY_MUST_CHECK;
void metrics_free(metrics *self); /* NULL is fine */

/* What else is shown; any number that is not known is 0. */
typedef struct metrics_process {
    uint64_t audit_dropped;
    uint64_t wall_started_ms;
} metrics_process;

/* Appends all of it. `is_open`: as OpenMetrics, else as the classic text. Any thread. Errors: those of
 * `out`. */
void metrics_write(metrics *self, const metrics_process *process, bool is_open, buf *out);

/* One loop's part. Embedded in its owner. */
typedef struct metrics_lane {
    metrics *of; /* NULL: not open */
    struct metrics_table *table;
} metrics_lane;

/* Errors: BAY_ERR_NOMEM. */
bay_err metrics_lane_open(metrics_lane *self, metrics *of) BAY_MUST_CHECK;
void metrics_lane_close(metrics_lane *self);
/* Both have no effect if it is not open. */
void metrics_lane_add(metrics_lane *self, const evidence_record *record);
void metrics_lane_flush(metrics_lane *self);

#endif
