/* Who owns what: a gateway passes callers' messages on to remote agents, which know one caller, the
 * gateway. So it remembers itself whose each task and each context of an agent is, by the caller's
 * key (auth/principal_key.h), for all its loops. Everybody but the owner is told that there is no
 * such task.
 *
 * An agent that no identified caller has used is *open*: nothing is remembered and nothing is
 * checked, all its callers are anonymous and share what it has. The first identified caller ends
 * that for good. From then on anonymous callers are one owner like others, and what has no owner
 * here belongs to nobody: what was begun before, and what was forgotten.
 *
 * What is remembered is bounded, per agent and per owner; the least recently used goes. With a
 * store each entry is a row, which the next process reads at its start. Rows are written behind the
 * answer: what a crash swallows belongs to nobody. Any thread, unless it says otherwise. */
#ifndef AGENTS_OWNERS_H
#define AGENTS_OWNERS_H

#include "auth/principal_key.h"
#include "base/buf.h"
#include "net/loop.h"

enum {
    AGENTS_OWNED = 50000,        /* tasks and contexts of one agent */
    AGENTS_OWNED_BY_ONE = 5000,  /* of these, of one owner */
    AGENTS_OWNED_ID_BYTES = 400, /* of a task's or a context's id; a longer one is not kept */
    AGENTS_OWNED_DAYS = 30,      /* since it was last used */
    AGENTS_OWNED_CHANGES = 4096, /* that wait to be written; further ones are not */
};

typedef struct agents_owners agents_owners;
typedef struct agents_owned agents_owned; /* of one agent */

typedef enum owned_kind {
    OWNED_TASK = 't',
    OWNED_CONTEXT = 'c',
} owned_kind;

/* Who asks. Views and borrowed; `key` is key number 0 of `ring`, or was when the call began. */
typedef struct agents_caller {
    const auth_principal *principal;
    const seal_ring *ring;
    bay_str key;
} agents_caller;

/* `path`: of an SQLite file, "" for none. Blocks while it reads the rows.
 * Errors, with `diag`: those of store_open_sqlite, BAY_ERR_NOMEM. */
bay_err agents_owners_new(bay_str path, agents_owners **out, bay_diag *diag) BAY_MUST_CHECK;
/* From now on rows are written on `home`, which is borrowed until agents_owners_close. Before any
 * loop runs. Errors: BAY_ERR_NOMEM. */
bay_err agents_owners_write_on(agents_owners *self, loop *home) BAY_MUST_CHECK;
/* Writes what waits and closes the store; turns `home` until that is done. NULL is fine. Threads:
 * home's, when nobody claims any more. */
void agents_owners_close(agents_owners *self);
/* After agents_owners_close, and after whoever asks. NULL is fine. */
void agents_owners_free(agents_owners *self);

/* Of the agent of that name; lives as long as `self`. NULL: out of memory. */
agents_owned *agents_owners_of(agents_owners *self, bay_str agent);

bool agents_owned_is_open(const agents_owned *self);
/* An identified caller is about to use the agent. */
void agents_owned_close(agents_owned *self);

/* Is it the caller's? Being asked for is being used. */
bool agents_owned_is(agents_owned *self, owned_kind kind, bay_str id, const agents_caller *caller);
/* It is the caller's from now on. Errors: BAY_ERR_DENIED: it is another's, and stays that;
 * BAY_ERR_LIMIT: its id is too long or empty; BAY_ERR_NOMEM. After the last two it is nobody's. */
bay_err agents_owned_claim(agents_owned *self, owned_kind kind, bay_str id,
                           const agents_caller *caller) BAY_MUST_CHECK;
/* How many tasks of the caller are known. */
size_t agents_owned_count(agents_owned *self, const agents_caller *caller);

#endif
