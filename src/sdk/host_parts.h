/* The inside of a host while its object is served: shared by host*.c only. */
#ifndef SDK_HOST_PARTS_H
#define SDK_HOST_PARTS_H

#include "sdk/host.h"

enum { HOST_BASE_BYTES = 512 };

typedef enum host_phase { HOST_SERVING, HOST_DRAINING, HOST_ENDING } host_phase;

/* Two descriptors of the caller's. */
typedef struct host_pair {
    struct host_pair *next;
    host_serving *of;
    void *pipe; /* the kind's; NULL: over */
    int descriptors[2];
    int flags[2]; /* to be set back: -1 nothing */
} host_pair;

struct host_serving {
    sdk_host *host;
    loop *loop;
    uint32_t users;
    bool is_own_user; /* the object itself is one of them */
    bool is_ready;    /* the object is open */
    bool is_turning;
    bool had_ways; /* something was listened on, or piped */
    bool is_cut;   /* listeners and pipes are gone */
    host_phase phase;
    host_listener listeners[2]; /* [1]: loopback addresses */
    listen_names names;         /* of loopback addresses */
    uint16_t port;
    char base[HOST_BASE_BYTES]; /* how callers reach it: "https://127.0.0.1:8443"; or "" */
    host_pair *pairs;
    size_t pair_count;
    size_t open_pairs;
    loop_timer patience; /* of HOST_DRAINING, then of HOST_ENDING */
    bool is_impatient;   /* it ran out */
};

/* A line that may be said outside a turn of the loop, on whatever thread. */
#define HOST_LOG(host, level, ...)                                                                 \
    do {                                                                                           \
        const log_target *log_before =                                                             \
            log_direct((host)->owner.log->sink != NULL ? (host)->owner.log : NULL);                \
        LOG(level, (host)->kind->noun, __VA_ARGS__);                                               \
        log_direct(log_before);                                                                    \
    } while (0)

/* ---- host.c */

/* The object's own serving becomes a user. BAY_ERR_STATE: it is being stopped. */
bay_err host_open_own(sdk_host *self, bay_diag *diag) BAY_MUST_CHECK;
/* Undoes host_open_own when it was for nothing. */
void host_close_own_if_idle(sdk_host *self);
/* There is something to serve on: at the end of what succeeded. */
void host_has_way(sdk_host *self);

/* ---- host_listen.c: of all listeners */

bool host_listeners_are_open(const host_serving *self);
void host_listeners_drain(host_serving *self);
void host_listeners_free(host_serving *self); /* not inside a turn */

/* ---- host_pipe.c: of all pipes */

void host_pipes_end(host_serving *self);
void host_pipes_cut(host_serving *self);  /* not inside a turn */
void host_pipes_free(host_serving *self); /* after the loop: descriptors are as they were */

#endif
