/* patchbay.lock: what the definitions of each server and agent were when they were recorded or
 * approved. A text for people and for merge requests: sorted, one line a member of a definition.
 *
 *   patchbay.lock 1
 *
 *   server "files"
 *     identity "command sha256:… arguments sha256:…"
 *     seen 2026-11-27T10:00:00Z
 *     approved 2026-11-27T10:05:00Z by "alice"
 *
 *     tool "read_file" sha256:…
 *       seen 2026-11-27T10:00:00Z
 *       approved 2026-11-27T10:05:00Z by "alice"
 *       | {
 *       |   "description":"Reads a file.",
 *       |   "name":"read_file"
 *       | }
 *
 * The lines behind `|`, without the blanks at their beginning, are the canonical form of the
 * definition (RFC 8785), and its SHA-256 is the digest: neither can be changed by hand without the
 * other. A line behind `|>` goes on with a text in which it was broken, blanks included. Characters
 * that do not show are written as escapes; `as-written` behind the digest: the definition has no
 * canonical form, and its escapes are its own. */
#ifndef TRUST_LOCK_H
#define TRUST_LOCK_H

#include <sys/stat.h>

#include "auth/digest.h"
#include "base/arena.h"
#include "base/buf.h"
#include "trust/definitions.h"

enum {
    TRUST_LOCK_VERSION = 1,
    TRUST_LOCK_BYTES = 512 << 20,
    TRUST_LOCK_SERVERS = 4096,
    TRUST_LOCK_ITEMS = 1000000, /* of all servers */
    TRUST_TIME_BYTES = 20,      /* 2026-11-27T10:00:00Z */
    TRUST_BY_BYTES = 256,
};

typedef struct trust_pin {
    trust_kind kind;
    bay_str name;
    char digest[DIGEST_TEXT_BYTES + 1];
    bay_str canon;    /* the definition */
    bay_str seen;     /* when it was recorded */
    bay_str approved; /* when a person did; "": nobody has */
    bay_str by;       /* who */
} trust_pin;

typedef struct trust_pinned {
    bay_str name; /* of the server or agent */
    bool is_agent;
    bay_str identity; /* what it was started or reached as; "": not known */
    bay_str seen;
    bay_str approved;
    bay_str by;
    trust_pin *items; /* sorted by kind and name */
    size_t count;
    size_t cap;
} trust_pinned;

/* The file as it was when it was read or written last; another one in its place differs in one of these. */
typedef struct trust_lock_file {
    bool is_there;
    dev_t device;
    ino_t number;
    off_t bytes;
    struct timespec modified;
} trust_lock_file;

typedef struct trust_lock {
    arena memory;
    trust_lock_file file;  /* trust_lock_load and trust_lock_save */
    trust_pinned *servers; /* servers, then agents, each sorted by name */
    size_t count;
    size_t cap;
    size_t items;
} trust_lock;

void trust_lock_init(trust_lock *self);
void trust_lock_fini(trust_lock *self);

/* Reads a text into an empty lock. An empty text is an empty lock.
 * Errors: BAY_ERR_SYNTAX, BAY_ERR_DUPLICATE, BAY_ERR_VERSION (an older or a newer form),
 * BAY_ERR_DENIED (a digest that is not its definition's), BAY_ERR_LIMIT, each with the line in
 * `diag`; BAY_ERR_NOMEM; BAY_ERR_UNSUPPORTED without OpenSSL. */
bay_err trust_lock_read(trust_lock *self, bay_str text, bay_diag *diag) BAY_MUST_CHECK;
/* The whole text. Errors stick in `out`. */
void trust_lock_write(const trust_lock *self, buf *out);

/* lock_file.c: the same of a file; one that is not there is an empty lock. BAY_ERR_IO, with
 * `diag`. */
bay_err trust_lock_load(trust_lock *self, const char *path, bay_diag *diag) BAY_MUST_CHECK;
/* Whole or not at all: beside it, then in its place; a symbolic link stays one. BAY_ERR_STATE, with `diag`: the file is
 * not the one that was loaded (or saved) last, or another process writes it; it stays as it is. BAY_ERR_IO with `diag`,
 * BAY_ERR_NOMEM. */
bay_err trust_lock_save(trust_lock *self, const char *path, bay_diag *diag) BAY_MUST_CHECK;
/* The same of a text that was written before; *inout_file is the file as it was read, then as it was written. */
bay_err trust_lock_replace(trust_lock_file *inout_file, const char *path, bay_str text,
                           bay_diag *diag) BAY_MUST_CHECK;

/* NULL: there is none. */
trust_pinned *trust_lock_find(const trust_lock *self, bay_str name, bool is_agent);
trust_pin *trust_pinned_find(const trust_pinned *self, trust_kind kind, bay_str name);

/* The server, made when it is absent. BAY_ERR_LIMIT, BAY_ERR_NOMEM. */
bay_err trust_lock_enter(trust_lock *self, bay_str name, bool is_agent,
                         trust_pinned **out) BAY_MUST_CHECK;
/* The item as it is now; `seen` and approval of an earlier one go with it. `canon` and texts are
 * copied. BAY_ERR_LIMIT, BAY_ERR_NOMEM. */
bay_err trust_lock_put(trust_lock *self, trust_pinned *server, const trust_pin *pin) BAY_MUST_CHECK;
/* Its items as definitions to compare, sorted; parsed into `out`, which is initialised and must not
 * outlive the lock. BAY_ERR_LIMIT, BAY_ERR_NOMEM. */
bay_err trust_pinned_definitions(const trust_pinned *self, trust_definitions *out) BAY_MUST_CHECK;
/* Gives back the memory of texts that were replaced. BAY_ERR_NOMEM: it is as it was. */
bay_err trust_lock_compact(trust_lock *self) BAY_MUST_CHECK;
void trust_pinned_remove(trust_lock *self, trust_pinned *server, trust_kind kind, bay_str name);

/* The canonical form of a definition, appended, and its digest. What has none (a number beyond
 * doubles, a member twice) counts as it is written. BAY_ERR_NOMEM, BAY_ERR_LIMIT,
 * BAY_ERR_UNSUPPORTED. `memory` is reset. */
bay_err trust_canon(json_val value, arena *memory, buf *out,
                    char digest[DIGEST_TEXT_BYTES + 1]) BAY_MUST_CHECK;
/* "2026-11-27T10:00:00Z" of seconds since 1970. */
void trust_time(int64_t seconds, char out[TRUST_TIME_BYTES + 1]);

#endif
