#ifndef GATEWAY_WORKER_H
#define GATEWAY_WORKER_H

#include <stdatomic.h>

#include "agents/agents.h"
#include "call/once.h"
#include "catalog/freshness.h"
#include "endpoint/endpoint.h"
#include "front/front.h"
#include "gateway/auth.h"
#include "gateway/blocks.h"
#include "gateway/contracts.h"
#include "gateway/evidence.h"
#include "gateway/gateway.h"
#include "gateway/vault.h"
#include "mcp_transport/http_router.h"
#include "mcp_transport/stdio.h"
#include "net/thread.h"
#include "tasks/task.h"

typedef struct worker worker;
typedef struct gateway_metrics gateway_metrics;

/* What a reading brought that answers an announcement; of two the greater counts. */
typedef enum worker_upstream_answer {
    ANSWER_NONE,
    ANSWER_FAILED,
    ANSWER_SAME,
    ANSWER_CHANGED
} worker_upstream_answer;

/* A server as one loop sees it. */
typedef struct worker_upstream {
    worker *worker;
    const config *config; /* a reference: the upstream reads from it */
    upstream *upstream;
    bool is_proxy;
    listing_fetch fetches[LISTING_KINDS];
    unsigned fetched; /* one bit a kind: it has been tried */
    bool is_searched; /* the configuration, for entries that match nothing */
    worker_upstream_answer
        first_answers[MCP_CHANGE_RESOURCES + 1]; /* by mcp_change: of two lists that answer
                                                            one announcement, the first */
    freshness freshness;
    trust_checked about;               /* its instructions, held against the pins */
    struct contract_runner *contracts; /* NULL: it has none, or another loop runs them */
    struct grader *grader;             /* NULL: no grade is asked for, or another loop gives it */
    uint64_t identity_stamp;           /* of the program that was found out last; 0: none was */
    upstream_state shown_state;        /* what it was at `state_ms`, when it last changed */
    uint64_t state_ms;
    endpoint *endpoint; /* "/mcp/NAME"; NULL once retired */
    list_link link;     /* in worker.retired or worker.leaving */
    uint64_t retired_until_ms;
    bool is_leaving; /* another has taken its place, or none */
    bool is_closing;
} worker_upstream;

struct worker {
    gateway *gateway;
    uint32_t index;
    loop *loop;
    net_thread thread;
    const config *config;
    const seal_ring *ring;        /* the gateway's, or what a reload brings */
    session_store *sessions;      /* NULL: none is kept */
    trust_pins *pins;             /* a reference; NULL: nothing is held against a lock or scanned */
    gateway_contracts *contracts; /* a reference; NULL: none are run */
    call_door door;               /* what calls of this loop pass: door.c */
    policy_limits limits;         /* of the door, where rates are configured */
    call_once once;               /* of the door, once some tool has such settings */
    worker_evidence evidence;     /* what is told of calls of this loop */
    scanner *scan;                /* of results; NULL: none is asked for, or there was no memory */
    scan_rule_set *scan_rules;    /* of `scan` */
    log_pace suspected;           /* of results that look like an attack */
    loop_message door_wake;       /* posted by door.wake, once until it has run */
    http_client *http;
    http_server *server;
    http_front *front; /* what comes in by `server` */
    forwarded_proxies proxies;
    gateway_blocks *blocks;         /* NULL: there is no store */
    gateway_vault *vault;           /* likewise */
    worker_auth *auth;              /* who comes in; NULL: nobody, or stdin alone is served */
    endpoint_user_login user_login; /* for its endpoints */
    mcp_http_router *mcp_http_router;
    mcp_stdio *stdio;
    agents *agents;              /* NULL: nothing is listened on */
    const config *agents_config; /* of which these agents are; NULL: there were none yet */
    uint64_t *agents_files;      /* of each agent in it: what the files it names were */
    endpoint *all;
    endpoint **profiles; /* "/mcp/@NAME", in the order of the configuration */
    size_t profile_count;
    list retiring_endpoint; /* endpoints of profiles that are gone, while their last calls last */
    loop_timer part;
    worker_upstream **upstreams;
    size_t upstream_count;
    bool is_settled; /* every server has been heard of, or given up on for now */
    bool is_ending;
    uint32_t waited_ms;     /* for servers to be heard of, when `patience` is over */
    bool is_introduced;     /* the one client has said what it can be asked … */
    unsigned client_inputs; /* … namely this: mcp_inputs */
    loop_timer tick;
    unsigned ticks;
    loop_timer patience;
    loop_timer last_words; /* the time to drain is over */
    list retired;          /* upstreams that wait for their last calls */
    list leaving;          /* owners of processes that wait for their proxies to leave */
    loop_timer retire;
};

struct gateway {
    const config *config;
    const config *started;            /* the first one: listen and tls stay what it says */
    uint16_t ports[CONFIG_ADDRESSES]; /* of its addresses, once they are listened on */
    listen_names names;               /* of local addresses */
    bool is_local;                    /* only this machine reaches what is listened on */
    gateway_options options;
    tls_context *tls;
    seal_ring *ring;              /* of tokens and sessions; NULL in a build without TLS */
    const gateway_auth *auth;     /* NULL: stdin alone is served */
    buckets *_Atomic buckets;     /* of limits of rate, once there are some */
    outcomes *outcomes;           /* of calls that are carried out once */
    gateway_evidence *evidence;   /* NULL: nothing is told of calls */
    agents_aliases *aliases;      /* ids of tasks that clients made */
    agents_owners *owners;        /* whose the tasks of agents are */
    trust_pins *pins;             /* worker 0's; NULL: none are asked for */
    gateway_contracts *contracts; /* worker 0's; NULL: none are run */
    bool is_saving_pins;          /* worker 0's */
    log_pace pins_unsaved;        /* of whoever saves them */
    agents_push_queue *post; /* notifications that are passed on; NULL: nothing is listened on */
    worker *workers;
    mcp_http_router **endpoints; /* of all workers */
    char via[32];                /* this process in Via fields: a name that says nothing of it */
    uint32_t worker_count;
    atomic_uint draining;   /* workers that have not drained yet */
    atomic_bool is_over;    /* the loops stop: no reload goes on */
    atomic_bool is_hurried; /* asked to stop twice: nothing is waited for */
    struct reload *reload;  /* under way, or NULL; worker 0's */
    list reload_waiters;    /* worker 0's: who is told what became of it … */
    list reload_next;       /* … and of the one after it */
    uint64_t started_ms;    /* worker 0's clock, and the next one */
    uint64_t loaded_ms;     /* when the configuration in force was loaded */
    char reload_error[600]; /* why the last reload failed; "": it did not */
    uint64_t reload_failed_ms;
    struct admin *admin;      /* NULL: none is listened on */
    gateway_metrics *metrics; /* NULL: no address of their own is listened on */
    bool is_stopping;         /* worker 0's, and the two below */
    bool is_reload_due;       /* asked for while one was under way */
    bool is_told;             /* "started" */
    bool is_list_due;         /* and "listed" is to follow */
};

/* worker.c */
bay_err worker_init(worker *self, gateway *owner, uint32_t index, bay_diag *diag) BAY_MUST_CHECK;
/* Other keys from now on, for all its endpoints. */
void worker_set_ring(worker *self, const seal_ring *ring);
bay_err worker_listen(worker *self, bay_diag *diag) BAY_MUST_CHECK;
bay_err worker_open_stdio(worker *self, bay_diag *diag) BAY_MUST_CHECK;
void worker_drain(worker *self);
void worker_start_servers(worker *self);
void worker_introduced(void *user, unsigned inputs); /* as in endpoint_options; the worker */

/* The engine of an endpoint, "/mcp" or "/mcp/…"; NULL: there is none. `user` is the worker. */
mcp_server *worker_engine(void *user, bay_str path);

/* front.c: the table of what comes in over HTTP. After the worker's mcp_http_router; it goes
 * before. */
#define WORKER_MESSAGES "/messages"
bay_err worker_front_open(worker *self) BAY_MUST_CHECK;

/* unknown_path.c: answers a request at a path without a row. For front_options. */
void worker_unknown_path(void *user, http_exchange *exchange);

/* listening.c: who may reach the gateway. At its start, before anything is listened on: sets
 * `is_local`. BAY_ERR_DENIED, BAY_ERR_INVALID, BAY_ERR_RESOLVE, with `diag`. */
bay_err gateway_check_listening(gateway *self, bay_diag *diag) BAY_MUST_CHECK;
/* May what is listened on go on under `next`, and would `next` be served at the next start? */
bay_err gateway_check_reload(const gateway *self, const config *next,
                             bay_diag *diag) BAY_MUST_CHECK;
config_list gateway_addresses(const gateway *self);
/* gateway.c: the certificate, where there is one. BAY_ERR_TLS and others, with `diag`. */
bay_err gateway_open_tls(gateway *self, bay_diag *diag) BAY_MUST_CHECK;
/* The keys whose values in `next` are used from the next start on. Returns their number. */
enum { GATEWAY_LATER_KEYS = 10 };
size_t gateway_later_keys(const gateway *self, const config *next,
                          const char *out[GATEWAY_LATER_KEYS]);

/* All loops stop; any thread. */
void gateway_stop_loops(gateway *self);
/* Begins to drain, unless it does already. Worker 0's thread. */
void gateway_drain(gateway *self);

/* worker_end.c; each step of the end is taken for all workers before the next one. */
/* On the worker's own thread, after its loop ran: asks its servers to go and gives them the time
 * that the configuration grants. (The kernel kills a child when the thread that started it ends.)
 */
/* What is still under way ends now, and its clients are told so. */
void worker_fail_calls(void *argument); /* a timer's function; the argument is the worker */
void worker_close_servers(worker *self);
/* The rest with no loop running: listeners, streams, endpoints; open requests are cancelled … */
void worker_end_endpoints(worker *self);
/* … proxies leave their owners (`open` counts those that have not) … */
void worker_close_proxies(worker *self, size_t *open);
/* … and what is left goes. */
void worker_upstreams_free(worker *self);
void worker_fini(worker *self);

/* worker_auth.c: streams end whose callers' credentials have expired a while before `wall_ms` (since
 * 1970), if their clients can take them up again; calls go on. */
enum { WORKER_EXPIRY_GRACE_MS = 60000, WORKER_EXPIRY_TICKS = 5 };
void worker_end_expired(worker *self, uint64_t wall_ms);
/* Streams of callers who are blocked meanwhile end. */
void worker_watch_blocks(worker *self);
/* As oauth_gate.turns_away; `user` is the worker. */
bool worker_turns_away(void *user, const auth_principal *who, front_refusal *out);

/* door.c */
void worker_door_init(worker *self);
void worker_door_fini(worker *self);
/* The rules and bounds of that configuration from now on. */
void worker_door_set(worker *self, const config *settings);
/* Its outcomes are kept in the worker's store, which is open. */
bay_err worker_door_keep(worker *self) BAY_MUST_CHECK;
void worker_door_set_ring(worker *self, const seal_ring *ring);
/* Where an exchange comes from, as far as rules read it; `user` is the worker. */
const policy_origin *worker_origin(void *user, http_exchange *exchange);
bool worker_client_address(void *user, const http_exchange *exchange, net_address *out);

/* worker_upstream.c */
/* What the upstreams of a server share. */
typedef struct worker_upstream_origin {
    upstream *owner; /* of the process, on another loop; NULL: this entry is an owner */
    upstream_told *told;
    call_target *target;
} worker_upstream_origin;
bay_err worker_upstream_new(worker *owner, const config *settings, const config_server *server,
                            const worker_upstream_origin *origin,
                            worker_upstream **out) BAY_MUST_CHECK;
void worker_upstream_free(worker_upstream *self);
bool worker_upstream_is_learned(const worker_upstream *self);
/* All endpoints that show it look at its lists again. */
void worker_upstream_show(worker_upstream *self);
/* Its settings became others: when its lists are read anew may differ. */
void worker_upstream_replan(worker_upstream *self);
/* Leaves when its last call has ended: it is in no endpoint any more. */
void worker_upstream_retire(worker_upstream *self);
void worker_retire_step(void *argument);
/* The upstreams became others: rebuild what the endpoints show. */
bay_err worker_upstreams_set(worker *self, worker_upstream **upstreams,
                             size_t count) BAY_MUST_CHECK;
void worker_check_lists_ready(worker *self);

/* pins.c: what is served, held against the lock and the scanner. */
/* What the configuration asks for, at the start and at each reload; the lock is read (anew). Worker
 * 0's thread. On failure everything stays. Errors: as trust_pins_new, with `diag`. */
bay_err gateway_pins_configure(gateway *self, const config *next, bay_diag *diag) BAY_MUST_CHECK;
/* Once a second, worker 0's thread: writes what was recorded. At the end: with no loop running. */
void gateway_pins_tick(gateway *self);
void gateway_pins_close(gateway *self);
/* All loops look again at what passes. Any thread. */
void gateway_pins_changed(gateway *self);
/* Do two configurations ask for the same of a server or agent with these values of `pin`? */
bool gateway_pins_same_policy(const config *old, config_pin before, const config *next,
                              config_pin now);
/* On its loop: takes a reference to the gateway's pins, which a reload may have opened. */
void worker_pins_take(worker *self);
/* On its loop: checks what is listed against the pins, and shows what passes. */
void worker_pins_refresh(worker *self);
/* It starts, or is ready: what it is, and what it says of itself. */
void worker_upstream_pin(worker_upstream *self);
bool worker_upstream_is_held(const worker_upstream *self);
/* Holds all that the server lists, or releases it, by what its contracts said. */
void worker_upstream_quarantine(worker_upstream *self);

/* What `silence` says. NULL: out of memory. */
trust_silences *gateway_silences(const config *settings);
/* contract_runner.c, on each worker's loop: the contracts of a configuration from now on. */
void worker_contracts_set(worker *self, gateway_contracts *contracts);

/* profile.c */
void worker_profiles_init(worker *self);
/* Other keys for all of them, those that part included. */
void worker_profiles_set_ring(worker *self, const seal_ring *ring);
/* The endpoints of the configuration's profiles, of these servers; those of profiles that are gone
 * part from their clients. */
bay_err worker_set_profiles(worker *self, const catalog_source *sources,
                            size_t count) BAY_MUST_CHECK;
endpoint *worker_profile(const worker *self, bay_str name); /* NULL: there is none */
void worker_free_profiles(worker *self);

/* To whoever is to tell a person; worker 0's thread. */
void gateway_tell(gateway *self, const char *what);
/* Lists go out from now on, whoever has not been heard of. */
void worker_lists_ready(worker *self);
/* Which worker owns the process of a server. */
uint32_t worker_of_server(const gateway *self, bay_str name);

/* metrics.c: the address of metrics, where one is configured; sets gateway.metrics. Before any loop
 * runs, and after. */
bay_err gateway_metrics_open(gateway *self, bay_diag *diag) BAY_MUST_CHECK;
uint16_t gateway_metrics_port(const gateway *self); /* 0: there is none */
void gateway_metrics_close(gateway_metrics *self);  /* NULL is fine */

/* health.c: GET /healthz and /readyz. */
void health_serve(http_exchange *exchange);
/* GET /: what this is, in two lines. */
void health_greet(http_exchange *exchange);
void health_serve_ready(worker *self, http_exchange *exchange);

/* reload.c */
void reload_proxy_left(gateway *self); /* any worker's thread */
void gateway_reload(gateway *self);

/* What became of a reload. Views and pointers live for the callback only. */
typedef struct reload_outcome {
    bay_err err;                 /* BAY_OK: the configuration is in force */
    const char *text;            /* else why it is not; "": the report says */
    const config_report *report; /* of the file; NULL: it was not read */
    const config *before;        /* what was in force; NULL unless BAY_OK, like the next one */
    const config *now;
    unsigned failures; /* servers, agents and endpoints that could not be set up */
} reload_outcome;

/* Waits for the end of a reload: until `done`, or until its owner takes it out of its list. */
typedef struct reload_waiter {
    list_link link;
    void (*done)(void *user, const reload_outcome *outcome); /* once; it is in no list any more */
    void *user;
} reload_waiter;
/* The same as gateway_reload; `done` may run in here. Worker 0's thread. */
void gateway_reload_for(gateway *self, reload_waiter *waiter);
/* At the end: what a reload had made but not yet put in place retires; then, when no loop is left,
 * its memory goes. */
void reload_abandon(gateway *self);
void reload_free(struct reload *self);
/* Builds the upstreams of every worker from the configuration, before any loop runs. */
bay_err gateway_build(gateway *self) BAY_MUST_CHECK;

#endif
