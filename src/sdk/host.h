/* Serving, for every object of the library that is served: servers and agents. A host belongs to
 * its object and lives as long as it does: what was said about serving (TLS, hosts, origins), and,
 * while the object is served, a loop, listeners for HTTP/1.1 and HTTP/2, pipes, and their end. What
 * objects do differently is in their host_kind.
 *
 *   (nothing) ──listen, pipe──► SERVING ──stop, or nothing left──► DRAINING ──► ENDING ──►
 * (nothing)
 *                                                                      └─ a second stop ─┘
 *
 * DRAINING: no new connections, open streams end, what is under way is answered, for at most
 * drain_ms. ENDING: what is still connected is cut; handlers on other threads let go of their
 * calls, for at most drain_ms again: after that they are given up on (BAY_ERR_TIMEOUT), and the
 * object stays as it is, because they still hold parts of it.
 *
 * Invariants
 * - Loop and engine live while `users` > 0. The object's own serving (listeners, pipes) is one
 *   user, each client in process is one.
 * - Nothing of this is freed inside a turn of the loop.
 *
 * For the whole header: Threads: the one that serves, unless it says otherwise. Functions without
 * an object (NULL) do nothing, or say what BAY_ERR_NOMEM is. */
#ifndef SDK_HOST_H
#define SDK_HOST_H

#include "base/arena.h"
#include "base/log.h"
#include "call/call.h"
#include "front/front.h"
#include "front/listen_address.h"
#include "http/http_server.h"
#include "net/loop.h"
#include "net/tls.h"
#include "net/wakeup.h"
#include "sdk/registration.h"

enum {
    HOST_DRAIN_MS = 10000, /* for what is under way, when an object is stopped */
    HOST_TEXTS = 256,      /* hosts, origins and webhook targets, each */
    HOST_NAMES = 4,        /* that host_kind.names gives */
    HOST_MAX_PIPES = 1024, /* of one object, while it is served */
};

typedef struct sdk_host sdk_host;
typedef struct host_serving host_serving;

/* A list of texts that are given one by one. */
typedef struct host_texts {
    bay_str items[HOST_TEXTS];
    size_t count;
} host_texts;

/* Addresses that are guarded alike. */
typedef struct host_listener {
    sdk_host *of;
    bool is_loopback;
    bool is_drained;
    http_server *http; /* NULL: nothing is listened on */
    http_front *front;
    void *endpoint; /* the kind's */
} host_listener;

typedef struct host_kind {
    const char *noun;                               /* "server" */
    const char *prefix;                             /* of its functions: "bay_server" */
    bay_err (*check)(void *object, bay_diag *diag); /* are all registrations good? */
    listen_policy (*policy)(const void *object);
    void (*limits)(const void *object, http_server_limits *out);
    /* What speaks for the object, on a new loop. `diag` is not NULL. Where it fails, `close` and
     * `release` follow. */
    bay_err (*open)(void *object, loop *on, bay_diag *diag);
    /* Not inside a turn; nothing is listened on any more. May turn the loop. */
    void (*close)(void *object);
    void (*release)(void *object); /* the loop is gone: what is left of `open` */
    /* What answers at a listener, which the rows serve. */
    bay_err (*endpoint_new)(void *object, host_listener *at, loop *on, void **out);
    void (*endpoint_free)(void *endpoint);
    void (*endpoint_close_streams)(void *endpoint);
    /* As front_options; `user` is the listener. */
    const front_row *rows;
    size_t row_count;
    front_identify identify;
    void (*unknown)(void *user, http_exchange *exchange); /* may be NULL */
    const bay_str *(*base)(const void *object);           /* may be NULL */
    /* Hosts that a loopback listener without a list takes beside its own; how many. May be NULL. */
    size_t (*names)(const void *object, bay_str out[HOST_NAMES]);
    /* The first address is listened on: `base` is how callers reach it ("https://127.0.0.1:8443").
     * May be NULL. */
    bay_err (*reached)(void *object, bay_str base, bay_diag *diag);
    void (*drain)(void *object);         /* DRAINING begins; may be NULL */
    void (*end)(void *object);           /* ENDING begins: handlers are told */
    void (*cut)(void *object);           /* all connections are gone; may be NULL */
    bool (*is_busy)(const void *object); /* handlers still hold parts of it */
    /* Two descriptors, which it owns, also on failure. `done` once both have ended. All three are
     * NULL where there are no pipes. */
    bay_err (*pipe_new)(void *object, int in, int out, void (*done)(void *user), void *user,
                        void **out_pipe);
    void (*pipe_end)(void *pipe, uint32_t grace_ms);
    void (*pipe_free)(void *pipe); /* NULL is fine */
} host_kind;

/* Of the object, for what is registered: all outlive the host. */
typedef struct host_owner {
    void *object;
    arena *memory;
    registration_errors *errors;
    bool *is_out_of_memory;
    const log_target *log; /* no sink: the process's */
} host_owner;

struct sdk_host {
    const host_kind *kind;
    host_owner owner;
    host_texts hosts;
    host_texts origins;
    bay_str certificate_file; /* "": clear text */
    bay_str key_file;
    bay_str ca_file;
    bool is_open; /* anybody may call, on purpose */
    bool has_served;
    uint32_t drain_ms; /* how long an end may take, twice; tests have less patience */
    net_wakeup stop;
    call_door door;        /* what its calls pass; anew each time it is served */
    tls_context *tls;      /* while it is listened on; NULL: clear text */
    host_serving *serving; /* NULL: not being served */
};

/* Without a descriptor for the wakeup: an error of registration. */
void host_init(sdk_host *self, const host_kind *kind, const host_owner *owner);
void host_fini(sdk_host *self); /* after host_abandon */

/* ---- host_setup.c: what is registered */

/* As bay_server_tls and bay_agent_tls. */
void host_tls(sdk_host *self, const char *certificate_file, const char *key_file,
              const char *ca_file);
void host_allow_host(sdk_host *self, const char *name);
void host_allow_origin(sdk_host *self, const char *origin);
/* One more of a list; `function` ("allow_host") is named in errors. */
void host_add_text(sdk_host *self, host_texts *among, const char *function, const char *text);

/* ---- host.c: as the functions of include/patchbay/server.h */

bay_err host_run(sdk_host *self, bay_diag *diag) BAY_MUST_CHECK;
void host_stop(sdk_host *self); /* any thread, and signal handlers */
int host_fd(const sdk_host *self);
int host_wait_ms(const sdk_host *self);
bay_err host_dispatch(sdk_host *self) BAY_MUST_CHECK;

/* One more user, who turns the loop as he likes; made by the first. The errors of `check`;
 * BAY_ERR_NOMEM; BAY_ERR_IO: no loop. */
bay_err host_open(sdk_host *self, bay_diag *diag) BAY_MUST_CHECK;
/* One user less; the last one ends engine and loop, after handlers on other threads let go: they
 * have drain_ms, in which the loop is turned; after that both stay, for host_abandon to try again.
 * Never inside a turn that the last user makes. */
void host_close(sdk_host *self);
loop *host_loop(const sdk_host *self); /* NULL while nobody has it open */
/* Not inside a turn: turns the loop until `is_done`, for at most drain_ms. Was it done? */
bool host_turn_until(sdk_host *self, bool (*is_done)(const void *object));
/* Everything served ends at once. False: clients in process, a turn of the loop that is under way,
 * or handlers that do not end still need it. */
bool host_abandon(sdk_host *self);

/* ---- host_listen.c, host_pipe.c */

bay_err host_listen(sdk_host *self, const char *address, bay_diag *diag) BAY_MUST_CHECK;
uint16_t host_port(const sdk_host *self);
/* How callers reach the first address that is listened on; lives as long as it is served. */
bay_str host_base(const sdk_host *self);
bay_err host_pipe(sdk_host *self, int in, int out, bay_diag *diag) BAY_MUST_CHECK;

#endif
