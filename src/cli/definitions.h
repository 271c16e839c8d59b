/* The definitions of a TARGET, for commands that look at them: of a server or agent that is spoken to, or of a
 * file that was kept (@FILE: the output of list --json, a list's result, an agent's card, a lock file). */
#ifndef CLI_DEFINITIONS_H
#define CLI_DEFINITIONS_H

#include "cli/inventory.h"
#include "trust/diff.h"
#include "trust/identity.h"
#include "trust/lock.h"

enum { CLI_RECORDING_BYTES = 512 << 20 };

typedef struct cli_definitions {
    trust_definitions all; /* sorted */
    bay_str pin;           /* its name in a lock file; "": none is known */
    bool is_agent;
    cli_inventory inventory;
    json_doc recording;
    trust_lock lock; /* where the file was one */
    arena memory;
} cli_definitions;

/* What was read before something failed is there; why was said on stderr. In any case:
 * cli_definitions_fini. */
cli_exit cli_definitions_load(cli_definitions *self, const cli_arguments *arguments);
/* What a lock has of a server or agent; nothing where it has no such section. */
cli_exit cli_definitions_load_pinned(cli_definitions *self, const trust_lock *lock, bay_str name,
                                     bool is_agent);
void cli_definitions_fini(cli_definitions *self);

/* The lock that the command line names; *out_path is where it is. */
cli_exit cli_lock_load(const cli_arguments *arguments, const config *settings, trust_lock *lock,
                       const char **out_path);

/* Appends the identity of the TARGET (trust/identity.h); nothing of a recording, of an agent, whose card says where it
 * is, and of what cannot be read, which is said. */
void cli_identify(const cli_arguments *arguments, buf *out);

/* The enabled servers of the configuration (not those that stand for skills), then its agents that are
 * elsewhere, one after the other: `out` is `arguments` with that TARGET. False: there are no more. */
bool cli_definitions_next(const config *settings, const cli_arguments *arguments, size_t *inout_at,
                          cli_arguments *out);
size_t cli_definitions_most(const config *settings);
/* Does the command need the configuration to know its TARGETs? */
bool cli_definitions_need_config(const cli_arguments *arguments);

/* cmd_diff.c: the exit code that tells of differences. */
cli_exit cli_exit_of_class(trust_class class);

#endif
