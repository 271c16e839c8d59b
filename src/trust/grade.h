/* The grade of a server or agent, A to F: named and weighted checks (grade_checks.def), each with the reason for its
 * points and what would raise them. Who has looked at the server gives the facts; the same facts give the same grade. */
#ifndef TRUST_GRADE_H
#define TRUST_GRADE_H

#include "base/buf.h"
#include "trust/findings.h"
#include "trust/lock.h"

enum { GRADE_TEXT_BYTES = 160 };

typedef enum grade_check {
#define GRADE_CHECK(symbol, id, weight) GRADE_##symbol,
#include "trust/grade_checks.def"
    GRADE_CHECKS
} grade_check;

typedef enum grade_transport {
    GRADE_PROCESS,  /* a pipe of this machine */
    GRADE_LOOPBACK, /* a URL of this machine */
    GRADE_TLS,
    GRADE_PLAIN, /* a URL of another machine, without TLS */
} grade_transport;

typedef struct grade_facts {
    const trust_definitions *definitions; /* sorted */
    const trust_findings *scan; /* of the scanner, of these definitions; not silenced ones count */
    const trust_pinned *pinned; /* NULL: the lock has nothing of it */
    bay_str identity;           /* as it is now; "": not known */
    bool is_agent;
    grade_transport transport;
    bool has_sandbox;
    bool has_credentials; /* it is reached with credentials, or its card asks for them */
    size_t contracts;     /* that were run; 0: there are none */
    size_t held;          /* of these */
    size_t contradicted;  /* claims that a contract contradicts */
} grade_facts;

typedef struct grade_row {
    bool applies;
    unsigned weight;
    unsigned points;               /* up to `weight` */
    char reason[GRADE_TEXT_BYTES]; /* harmless on a terminal */
    char raise[GRADE_TEXT_BYTES];  /* what would raise it; "": it has all points */
} grade_row;

typedef struct trust_grade {
    grade_row rows[GRADE_CHECKS];
    unsigned points; /* of 100 */
    char
        letter; /* A from 90, B from 80, C from 65, D from 50, E from 35, F; with an error of the scanner at most D */
} trust_grade;

const char *grade_check_text(grade_check check);

/* The scanner's findings of all definitions, without the names of other servers. `rules` (NULL: none) is borrowed.
 * BAY_ERR_NOMEM. */
bay_err trust_grade_scan(const trust_definitions *definitions, scan_rule_set *rules,
                         trust_silences *silences, trust_findings *out) BAY_MUST_CHECK;
/* Of a URL. */
grade_transport trust_grade_transport(bay_str url);

/* BAY_ERR_NOMEM, BAY_ERR_UNSUPPORTED (no digests in this build: pins do not apply). */
bay_err trust_grade_run(const grade_facts *facts, trust_grade *out) BAY_MUST_CHECK;

/* Errors stick in `out`. */
void trust_grade_write_text(const trust_grade *self, bay_str name, buf *out);
void trust_grade_write_json(const trust_grade *self, bay_str name, buf *out);

#endif
