/* The hash chain of an audit file. Each line is one JSON object, and its hash covers the line and
 * the hash before it, so that a line that is changed, moved, removed or put between others is found:
 *
 *     {"seq":7,…,"hash":"<64 digits>"}
 *     hash = SHA-256(hash of the line before ‖ length, 8 bytes, big endian ‖ the line up to `,"hash"`)
 *
 * What the chain alone cannot show: that lines at the end are missing, and that all of it was written
 * anew. For that a reader needs a head that was kept elsewhere.
 *
 * The first line after each opening of a file says the hash before it, so that a file can be read
 * alone:
 *
 *     {"seq":8,"previous":"<64 digits>",…
 *
 * Pure: no file, no clock. */
#ifndef EVIDENCE_CHAIN_H
#define EVIDENCE_CHAIN_H

#include "auth/digest.h"
#include "base/buf.h"

enum {
    AUDIT_HASH_DIGITS = 2 * DIGEST_BYTES,
    AUDIT_LINE_BYTES = 64 * 1024, /* of one line, its end included */
};

/* Where a chain stands. Zeroed: before its first line. */
typedef struct audit_chain {
    uint64_t seq; /* of the last line; 0: there is none */
    unsigned char head[DIGEST_BYTES];
} audit_chain;

/* Appends a line with its end. `members`: of the object, without braces, with neither `seq` nor
 * `hash`. `is_opening`: it says the hash before it. On an error the chain and `out` are as before.
 * Errors: BAY_ERR_LIMIT: the line is too long; as digest_bytes, and those of `out`. */
bay_err audit_chain_append(audit_chain *self, bay_str members, bool is_opening,
                           buf *out) BAY_MUST_CHECK;

/* The hash of the last line as 64 digits. */
void audit_chain_head(const audit_chain *self, char out[AUDIT_HASH_DIGITS + 1]);

typedef enum audit_fault {
    AUDIT_GOOD,
    AUDIT_NO_RECORD, /* not a line that audit_chain_append writes */
    AUDIT_GAP,       /* its number or its `previous` is not what follows */
    AUDIT_CHANGED,   /* the hash is another */
} audit_fault;

/* Checks the next line, without its end, and goes on behind it. A zeroed chain takes an opening line
 * of any number for its first. After a fault the chain is as before.
 * Errors: as digest_bytes. */
bay_err audit_chain_check(audit_chain *self, bay_str line, audit_fault *out) BAY_MUST_CHECK;

/* Takes number and hash from a line whose form is right, without checking it: where a file goes on.
 * False: the form is wrong. */
bool audit_chain_read(bay_str line, audit_chain *out);

#endif
