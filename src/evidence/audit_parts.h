/* The parts of an audit file in its folder, by the number of their first line. */
#ifndef EVIDENCE_AUDIT_PARTS_H
#define EVIDENCE_AUDIT_PARTS_H

#include "patchbay/types.h"

enum {
    AUDIT_PATH_BYTES = 4096,
    AUDIT_SEQ_DIGITS = 16, /* of the number in a part's name */
    AUDIT_PARTS = 100000,  /* of one file that are looked at; further ones are left alone */
};

typedef struct audit_parts {
    uint64_t *at; /* oldest first */
    size_t count;
} audit_parts;

/* Errors: BAY_ERR_IO: the folder cannot be read; BAY_ERR_LIMIT: the path is too long;
 * BAY_ERR_NOMEM. */
bay_err audit_parts_list(const char *path, audit_parts *out) BAY_MUST_CHECK;
void audit_parts_free(audit_parts *self);

/* The name of the part that begins with line `seq`. False: too long. */
bool audit_part_name(const char *path, uint64_t seq, char out[AUDIT_PATH_BYTES]);

#endif
