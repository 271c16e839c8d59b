/* What a server is, apart from what it says: the program and its arguments, or where it is
 * reached. */
#ifndef TRUST_IDENTITY_H
#define TRUST_IDENTITY_H

#include "base/buf.h"
#include "patchbay/types.h"

enum {
    TRUST_IDENTITY_BYTES = 512,
    TRUST_PROGRAM_BYTES = 1 << 30, /* read of one file; a longer one has no digest */
    TRUST_ARGUMENTS = 4096,
};

/* "command sha256:… arguments sha256:…": of the file that argv[0] is found as (by `path`, a list
 * with colons, where it has no slash; NULL: $PATH), and of the other words, each followed by the
 * bytes of the regular file that it names, if it names one (below `cwd`; NULL: the folder of the
 * process). Appends.
 * Errors: BAY_ERR_NOT_FOUND: there is no such program; BAY_ERR_IO, BAY_ERR_LIMIT, with `diag`;
 * BAY_ERR_NOMEM; BAY_ERR_UNSUPPORTED without OpenSSL. Reads files: not on a loop. */
bay_err trust_identity_command(const char *const *argv, const char *cwd, const char *path, buf *out,
                               bay_diag *diag) BAY_MUST_CHECK;
/* A number that is another one when a file of these was written, or another lies in its place: asks
 * for no bytes of them, so that a loop may. 0: there is no such program. */
uint64_t trust_identity_stamp(const char *const *argv, const char *cwd, const char *path);
/* "url https://host:port": without path, query and user. Appends. BAY_ERR_INVALID: it is no http
 * URL. */
bay_err trust_identity_url(bay_str url, buf *out) BAY_MUST_CHECK;

#endif
