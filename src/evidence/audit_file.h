/* The audit on disk: an append-only file of JSON lines, hash-chained (evidence/chain.h), one line for
 * each call, and a line of each opening and closing of the file.
 *
 *     PATH                     what is written now
 *     PATH.0000000000000042    an earlier part, by the number of its first line
 *
 * A part is closed, and its file renamed, when it has `part_bytes`. Parts that are older than
 * `keep_ms` are deleted, whole ones only; the chain then begins at the first one that is left. If the
 * file was moved or deleted, the next lines go into a new one of the same name. A process that was
 * killed loses what it had not written yet; the next one writes into the file that it found one
 * open, and says how many bytes at its end were no whole line.
 *
 * One process writes to a file: it holds a lock on it. Threads: one at a time. */
#ifndef EVIDENCE_AUDIT_FILE_H
#define EVIDENCE_AUDIT_FILE_H

#include "base/log.h"
#include "evidence/chain.h"

enum {
    AUDIT_CHECK_MS = 1000,    /* between two looks whether the file is still there */
    AUDIT_SWEEP_MS = 3600000, /* between two looks for old parts */
};

typedef struct audit_file_options {
    const char *path;
    bay_str replica; /* who writes, for the lines of openings */
    uint64_t part_bytes;
    uint64_t keep_ms; /* 0: for ever */
    uint64_t (*wall_ms)(void);
} audit_file_options;

typedef struct audit_file audit_file;

/* Opens the file, or makes it, and goes on with its chain. `options->path` is copied.
 * Errors: BAY_ERR_DENIED: another process writes to it; BAY_ERR_SYNTAX: its last line is none of an
 * audit; BAY_ERR_IO; BAY_ERR_NOMEM; as digest_bytes. With `diag`. */
bay_err audit_file_open(const audit_file_options *options, audit_file **out,
                        bay_diag *diag) BAY_MUST_CHECK;
/* Writes what is left and a closing line. NULL is fine. */
void audit_file_close(audit_file *self);

/* Appends members, each followed by a line end, as one line each. `dropped`: lines that were lost
 * before them, which a line says. False: some could not be written; they are kept, and written first
 * next time. */
bool audit_file_write(audit_file *self, bay_str lines, uint64_t dropped);
/* Once a second: has the disk have what was written, and deletes old parts. */
void audit_file_tick(audit_file *self);

#endif
