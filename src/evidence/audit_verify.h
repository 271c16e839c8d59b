/* Reads an audit, its parts in order and then the file itself, and says whether its chain is whole. */
#ifndef EVIDENCE_AUDIT_VERIFY_H
#define EVIDENCE_AUDIT_VERIFY_H

#include "evidence/chain.h"

typedef struct audit_verdict {
    audit_chain chain;   /* at the end of what is good */
    uint64_t first_seq;  /* of the first line there is; 1: from the begin */
    uint64_t lines;      /* good ones */
    uint64_t calls;      /* of which are records of calls */
    uint64_t crashes;    /* openings after an end out of order */
    uint64_t torn_bytes; /* that these found at the end, and that are there now */
    uint64_t dropped;    /* records that lines tell were lost */
    bool is_closed;      /* the last line is a closing: nothing was cut off behind it */
    bool has_head;       /* the head that was asked for is one of the chain's */
    /* What is wrong first; AUDIT_GOOD: nothing. */
    audit_fault fault;
    char file[512]; /* where */
    uint64_t line;  /* counted from 1 */
} audit_verdict;

/* `head`: 64 digits of a hash that was kept elsewhere, or "".
 * Errors: BAY_ERR_NOT_FOUND: there is no such file; BAY_ERR_IO; BAY_ERR_NOMEM; as digest_bytes; with
 * `diag`. What is wrong with the chain is no error. */
bay_err audit_verify(const char *path, bay_str head, audit_verdict *out,
                     bay_diag *diag) BAY_MUST_CHECK;

#endif
