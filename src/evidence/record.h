/* The record of one call, made at its end (call_door.record). What is told of a call afterwards, the
 * access log, the audit, metrics, is told from it alone, so that they never disagree. */
#ifndef EVIDENCE_RECORD_H
#define EVIDENCE_RECORD_H

#include "call/call.h"
#include "evidence/arguments.h"

enum {
    RECORD_NAME_BYTES = 256,   /* of the name or URI as the caller wrote it */
    RECORD_PERSON_BYTES = 512, /* issuer, subject, client, each */
    RECORD_ID_BYTES = 48,
};

typedef struct evidence_record {
    const call_context *call; /* borrowed */
    call_outcome outcome;
    uint64_t ended_ms;    /* wall clock since 1970 */
    uint64_t duration_ns; /* from its arrival at the door to its end */
    bay_str id;           /* of the call, unique among all gateways */
    /* What it was about, from the catalog or the configuration, never from the caller; "": neither
     * resolved. */
    bay_str server;
    bay_str target; /* as rules name it; "": the method names nothing, or nothing that there is */
} evidence_record;

/* Borrows `call` and `id`. */
void evidence_record_make(const call_context *call, call_outcome outcome, bay_str id,
                          uint64_t ended_ms, uint64_t ended_ns, evidence_record *out);

/* "result", "tool_error", "error", "refused", "cancelled" */
const char *evidence_outcome_text(call_outcome outcome);
/* Why it ended so: the reason of a refusal, the code of an error; "": neither. `room` is for it. */
enum { RECORD_REASON_BYTES = 24 };
bay_str evidence_reason(const evidence_record *self, char room[RECORD_REASON_BYTES]);

/* A time as RFC 3339 has it, in UTC, with milliseconds; 24 bytes are appended. The begin of the same
 * second is kept in `cache`, which is zeroed at first. */
typedef struct record_clock {
    uint64_t second;
    char text[20]; /* up to the seconds */
} record_clock;
void record_put_time(record_clock *cache, uint64_t wall_ms, buf *out);

/* The members of a record in the audit, without braces and line ends. `clock`: of one thread. */
void evidence_write_members(const evidence_record *self, arguments_form form, bay_str digest,
                            const seal_ring *ring, record_clock *clock, buf *out);
/* The same of what was done to the gateway. `kind`, `outcome`: words; `what`: needs no escapes. */
void evidence_write_event(const char *kind, bay_str what, const char *outcome, uint64_t wall_ms,
                          record_clock *clock, buf *out);
/* A line of the access log, without its end: for people, or one JSON object. */
void evidence_write_text(const evidence_record *self, record_clock *clock, buf *out);
void evidence_write_json(const evidence_record *self, record_clock *clock, buf *out);

#endif
