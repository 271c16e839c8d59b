/* Findings about definitions, from whatever found them: the scanner, lint, the protocol's checks,
 * contracts. Kept with their texts, silenced where a person gave a reason, written for people and
 * for programs. */
#ifndef TRUST_FINDINGS_H
#define TRUST_FINDINGS_H

#include "base/buf.h"
#include "policy/scan.h"
#include "trust/definitions.h"

enum {
    TRUST_FINDINGS = 10000, /* kept; more are counted */
    TRUST_SILENCES = 1000,
};

/* What looked. */
typedef enum trust_source {
    TRUST_BY_SCAN,
    TRUST_BY_LINT,
    TRUST_BY_PROTOCOL,
    TRUST_BY_CONTRACT,
    TRUST_BY_PINS,
    TRUST_BY_OBSERVATION,
    TRUST_SOURCES
} trust_source;

const char *trust_source_text(trust_source source);

typedef struct trust_finding {
    trust_source source;
    scan_severity severity;
    bay_str rule;    /* its id */
    bay_str server;  /* "" where there is one only */
    trust_kind kind; /* of the item; TRUST_KINDS: the server itself */
    bay_str item;
    bay_str pointer; /* in the item's definition; "" is the whole */
    size_t start;    /* of the text there, in bytes … */
    size_t len;      /* … 0: the place itself */
    bay_str excerpt; /* shown already: harmless on a terminal */
    bay_str why;
    bay_str remedy;
    bay_str silenced; /* the reason; "": it counts */
} trust_finding;

typedef struct trust_findings {
    arena memory;
    trust_finding *at;
    size_t count;
    size_t cap;
    size_t dropped;                /* beyond TRUST_FINDINGS */
    size_t counts[SCAN_ERROR + 1]; /* by severity, of those that count */
    size_t silenced;
} trust_findings;

/* A person's "this is right": RULE, or RULE and ITEM, as patterns; ITEM is SERVER.NAME or NAME. */
typedef struct trust_silence {
    bay_str rule;
    bay_str item; /* "": every item */
    bay_str reason;
    unsigned used; /* findings that it silenced */
} trust_silence;

typedef struct trust_silences {
    trust_silence at[TRUST_SILENCES];
    size_t count;
} trust_silences;

/* `key`: "RULE" or "RULE ITEM". Views are borrowed. BAY_ERR_SYNTAX (no rule, or no reason),
 * BAY_ERR_LIMIT, with `diag`. */
bay_err trust_silences_add(trust_silences *self, bay_str key, bay_str reason,
                           bay_diag *diag) BAY_MUST_CHECK;

/* The one that silences it; NULL: none. */
trust_silence *trust_silences_find(trust_silences *self, bay_str rule, bay_str server,
                                   bay_str item);

void trust_findings_init(trust_findings *self);
void trust_findings_fini(trust_findings *self);

/* Copies the finding's texts. `silences` may be NULL. BAY_ERR_NOMEM. */
bay_err trust_findings_add(trust_findings *self, const trust_finding *finding,
                           trust_silences *silences) BAY_MUST_CHECK;
/* Of a scan: one each. `server` and `item` name what was scanned. */
bay_err trust_findings_add_scan(trust_findings *self, const scan_report *report, bay_str server,
                                const trust_item *item, trust_silences *silences) BAY_MUST_CHECK;
/* By server, kind, item, place and rule. */
void trust_findings_sort(trust_findings *self);

/* findings_write.c; errors stick in `out`. */
void trust_findings_write_text(const trust_findings *self, buf *out);
void trust_findings_write_json(const trust_findings *self, buf *out);
/* SARIF 2.1.0. `version`: of this program. */
void trust_findings_write_sarif(const trust_findings *self, bay_str version, buf *out);
/* JUnit: a test case an item that was looked at, failed where it has a warning or an error. */
void trust_findings_write_junit(const trust_findings *self,
                                const trust_definitions *const *looked_at, size_t count, buf *out);

#endif
