/* What a child process may not do: files by Landlock, system calls and sockets by seccomp, amounts
 * by resource limits; bubblewrap's namespaces around all that where it is installed. What each part
 * holds back, and what it does not, is written in docs/guide/sandbox.md.
 *
 *   sandbox_options --sandbox_prepare (before the fork)--> plan --sandbox_enter (in the child)-->
 * exec
 *
 * Nothing is weakened in silence: what this kernel lacks is an error of the start, unless
 * is_best_effort, and then sandbox_missing has the words for the log. */
#ifndef NET_SANDBOX_H
#define NET_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patchbay/types.h"

typedef struct sandbox_path {
    const char *path; /* absolute; it must exist */
    bool is_writable; /* else it is read, listed and executed from */
} sandbox_path;

typedef enum sandbox_bubblewrap {
    SANDBOX_BUBBLEWRAP_AUTO, /* where it is installed and works */
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
    uint32_t cpu_seconds;  /* of each process; 0: no bound */
    uint32_t processes;    /* with threads; 0: no bound */
    uint32_t files;        /* open descriptors of each process; 0: as inherited */
    const char *user;      /* to become, when we are root; NULL: ours */
    sandbox_bubblewrap bubblewrap;
    bool is_best_effort;
} sandbox_options;

/* What this machine can do; found out once. */
typedef struct sandbox_facts {
    int landlock_abi; /* 0: none */
    bool has_seccomp;
    bool has_user_namespaces;
    char bubblewrap[256]; /* its path; "" when it is not there or does not work */
} sandbox_facts;

enum { SANDBOX_TEXT_BYTES = 400, SANDBOX_PATHS = 256 };

const sandbox_facts *sandbox_facts_of_machine(void);
/* Tests only: act as if the machine were like that; NULL: as it is. Borrowed. */
void sandbox_pretend(const sandbox_facts *facts);

/* What the options ask for and this machine cannot do, in words; empty when there is nothing. */
void sandbox_missing(const sandbox_options *self, char out[SANDBOX_TEXT_BYTES]);
/* What holds the child: "Landlock 7, seccomp, bubblewrap". */
void sandbox_describe(const sandbox_options *self, char out[SANDBOX_TEXT_BYTES]);

/* A copy in one piece of memory, for mem_free. NULL when there is none. */
sandbox_options *sandbox_options_dup(const sandbox_options *self);

#endif
