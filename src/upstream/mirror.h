/* The parts of a mirror: what it asks of the owner's loop, and what the owner tells it. */
#ifndef UPSTREAM_MIRROR_H
#define UPSTREAM_MIRROR_H

#include "upstream/parts.h"

typedef struct report report;

typedef struct mirror {
    upstream base;
    upstream *owner;
    struct loop *owner_loop;
    list open; /* calls that have no answer yet */
    loop_message leave;
    report *farewell; /* made in time: the last word of the owner must not fail for memory */
    mcp_log_level level;
    bool is_closed;
    void (*close_done)(void *user);
    void *close_user;
} mirror;

/* watch.c */
bay_err mirror_watch_start(mirror *self) BAY_MUST_CHECK;
/* The owner forgets it; then `close_done`. */
bay_err mirror_watch_stop(mirror *self) BAY_MUST_CHECK;

#endif
