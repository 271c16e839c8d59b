/* Restrictions of a child process: files by Landlock, system calls and sockets by seccomp, amounts
 * by resource limits; bubblewrap's namespaces around all that if it is installed.
 * docs/guide/sandbox.md says what each part restricts, and what it does not.
 *
 *   sandbox_options --sandbox_prepare (before the fork)--> plan
 *   plan --sandbox_become, sandbox_enter (in the child)--> exec
 *
 * Nothing is weakened silently: what this kernel lacks is an error of the start, unless
 * is_best_effort is set; then sandbox_missing has the text for the log. */
#ifndef NET_SANDBOX_H
#define NET_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patchbay/types.h"

typedef struct sandbox_path {
    const char *path; /* absolute; it must exist */
    bool is_writable; /* otherwise it is read, listed and executed from */
} sandbox_path;

typedef enum sandbox_bubblewrap {
    SANDBOX_BUBBLEWRAP_AUTO, /* if it is installed and works */
    SANDBOX_BUBBLEWRAP_NEVER,
    SANDBOX_BUBBLEWRAP_REQUIRED,
} sandbox_bubblewrap;

typedef struct sandbox_options {
    const sandbox_path *paths;
    size_t path_count;
    bool has_no_defaults; /* not even /usr: only `paths` and the program's own file */
    bool has_net;         /* IPv4 and IPv6 */
    bool has_unix_sockets;
    bool has_attributes;   /* modes, owners, times, extended attributes may be changed */
    uint64_t memory_bytes; /* private writable memory of each process; 0: as inherited */
    uint32_t cpus;         /* cores it runs on; 0: all */
    uint32_t cpu_seconds;  /* of each process; 0: no limit */
    uint32_t processes;    /* including threads; 0: no limit */
    uint32_t files;        /* open descriptors of each process; 0: as inherited */
    const char *user;      /* to switch to, if this is root; NULL: no change */
    sandbox_bubblewrap bubblewrap;
    bool is_best_effort;
} sandbox_options;

/* What this machine supports; detected once. */
typedef struct sandbox_facts {
    int landlock_abi; /* 0: none */
    bool has_seccomp;
    bool has_user_namespaces;
    char bubblewrap[256]; /* its path; "": it is missing or does not work */
} sandbox_facts;

enum { SANDBOX_TEXT_BYTES = 400, SANDBOX_PATHS = 256 };

const sandbox_facts *sandbox_facts_of_machine(void);
/* Tests only: assume these facts; NULL: the real ones. Borrowed. */
void sandbox_pretend(const sandbox_facts *facts);

/* What the options request and this machine does not support, as text; empty: nothing. */
void sandbox_missing(const sandbox_options *self, char out[SANDBOX_TEXT_BYTES]);
/* What restricts the child: "Landlock 7, seccomp, bubblewrap". */
void sandbox_describe(const sandbox_options *self, char out[SANDBOX_TEXT_BYTES]);

/* A copy in one allocation, for mem_free. NULL: out of memory. */
sandbox_options *sandbox_options_dup(const sandbox_options *self);

#endif
