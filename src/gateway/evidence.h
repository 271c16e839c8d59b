/* What the gateway tells of calls: the access log, the audit and metrics. Each loop writes into lanes of its
 * own (evidence/journal.h); what is configured counts from the start to the end of the process. */
#ifndef GATEWAY_EVIDENCE_H
#define GATEWAY_EVIDENCE_H

#include "evidence/journal.h"
#include "evidence/metrics.h"
#include "evidence/record.h"
#include "gateway/gateway.h"

enum { EVIDENCE_RETRY_MS = 5000 };

typedef struct gateway_evidence gateway_evidence;

/* `out` is NULL where nothing is configured.
 * Owns: the caller. Errors: as audit_file_open, with `diag`; BAY_ERR_IO: the access log. */
bay_err gateway_evidence_new(const gateway_options *options, gateway_evidence **out,
                             bay_diag *diag) BAY_MUST_CHECK;
/* Once no loop tells of calls any more: writes what is left. NULL is fine. */
void gateway_evidence_free(gateway_evidence *self);
/* Does a failing audit refuse calls? NULL is fine. */
bool gateway_evidence_refuses(const gateway_evidence *self);
/* Appends the metrics; false: nothing is counted. NULL is fine. */
bool gateway_evidence_write_metrics(gateway_evidence *self, bool is_open, buf *out);
/* Do two configurations ask for the same? */
bool gateway_evidence_is_same(const config *one, const config *other);

/* One loop's part. Embedded in its worker. */
typedef struct worker_evidence {
    gateway_evidence *of;         /* NULL: nothing is told */
    const seal_ring *const *ring; /* the worker's, which a reload may exchange */
    uint32_t loop;
    uint64_t number; /* of the last call */
    record_clock clock;
    journal_lane audit;
    journal_lane access;
    metrics_lane metrics;
} worker_evidence;

/* After the loop is made. Errors: BAY_ERR_NOMEM. */
bay_err worker_evidence_open(worker_evidence *self, gateway_evidence *of, uint32_t index, loop *on,
                             const seal_ring *const *ring) BAY_MUST_CHECK;
void worker_evidence_close(worker_evidence *self);
/* Once a second: adds what was counted, and asks how the audit is, so that a loop without calls learns that it can be written again. */
void worker_evidence_tick(worker_evidence *self);
/* For call_door.clock_ns: NULL where nothing is measured. */
uint64_t (*worker_evidence_clock(const gateway_evidence *of))(void);
/* Of a call that has ended; where something is told (`of`). */
void worker_evidence_record(worker_evidence *self, const call_context *call, call_outcome how);
/* What was done to the gateway, for the audit: see evidence_write_event. */
void worker_evidence_event(worker_evidence *self, const char *kind, bay_str what,
                           const char *outcome);
/* False: it may change something, and no record of it can be kept. */
bool worker_evidence_admits(const worker_evidence *self, const call_context *call);

#endif
