/* The parts of an upstream's owner. It has one link that all calls may share and whose life is the
 * upstream's state (`main`), and, for a server of the session revisions, others on demand:
 *
 *   share.c           which kind of link a call uses: a pure decision
 *   local.c           the main link's life, the interface
 *   pool.c            finds a link for a call, opens one, or queues the call
 *   session.c         the life of the other links
 *   client_session.c  the server's messages to the client that a link serves alone
 *   calls.c           a call on a link
 *   input_request.c   the server's input requests during a call
 *   open.c            how a link is opened
 *   notify.c          the server's notifications
 *   subscriptions.c   what is renewed on every new main link */
#ifndef UPSTREAM_LOCAL_H
#define UPSTREAM_LOCAL_H

#include "base/circuit.h"
#include "base/log.h"
#include "base/map.h"
#include "mcp_transport/link.h"
#include "upstream/credentials.h"
#include "upstream/parts.h"
#include "upstream/share.h"

enum {
    LOCAL_PATIENCE_MS = 2000,   /* calls wait for a restart this near; else they fail at once */
    LOCAL_HEALTHY_MS = 10000,   /* ready for so long: the next crash starts with least back-off */
    LOCAL_LAST_MOMENT_MS = 500, /* between a broken stdin and the end of its process */
    LOCAL_SESSION_IDLE_MS = 300000, /* a link that is not the main one is stopped after so long */
    LOCAL_MOST_ATTEMPTS = 2,
    UPSTREAM_FAIR_QUEUES = 64,         /* of the queue: clients whose calls wait take turns */
    UPSTREAM_MAX_INPUT_REQUESTS = 64,  /* open of one call; more are refused */
    UPSTREAM_QUESTION_BYTES = 1 << 20, /* of one that may have to be asked for another call */
    LOCAL_MAX_SUBSCRIPTIONS = 4096,
    LOCAL_MAX_URI_BYTES = 8192,
    UPSTREAM_NOTIFY_MS = 50,      /* between two rounds of telling of changes */
    UPSTREAM_NOTIFY_RATE = 10000, /* updates of resources passed on in a second */
    UPSTREAM_CLIENT_LOGS = 1000,  /* log messages outside of calls passed to a client in a second */
};

/* What a server has told by itself over one link, and what of it is still to be passed on. */
typedef struct upstream_notify {
    unsigned changes; /* mcp_change, not told yet */
    map updates;      /* nor these: uri -> its copy */
    uint64_t after_ms;
    loop_timer timer;
    loop_task task;
    bool is_due;
} upstream_notify;

/* One link to the server. */
typedef struct upstream_session {
    list_link
        link; /* in local.sessions, the least recently used first; the main one is in no list */
    struct local *owner;
    mcp_link *connection; /* NULL: none just now */
    unsigned inputs;      /* what its server was told that it can ask */
    char *identity;       /* whom alone it serves; NULL: anybody */
    size_t identity_len;
    const auth_principal *principal; /* counted; whose credential opened it; NULL: the gateway's */
    unsigned char rights[PRINCIPAL_RIGHTS_BYTES]; /* his */
    const void *home; /* the proxy that its client's calls come by; NULL: none */
    uint64_t number;  /* its client knows it by this; 0: it has not been told of it */
    list open;        /* its calls */
    size_t open_count;
    list input_requests;      /* of the server, not answered yet */
    uint32_t client_requests; /* of them, those that are put to the client outside of any call */
    upstream_notify notify;
    uint64_t logs_ms; /* when the count below began */
    uint32_t logs;    /* passed to the client since then */
    loop_timer idle;
    bool has_session;  /* so has its client: it can be asked outside of its calls, too */
    bool is_exclusive; /* to one call at a time */
    bool is_trial;     /* its start decides on the circuit */
    bool is_ready;
    bool is_broken;          /* to be freed outside its callbacks */
    bool is_leaving;         /* asked to end */
    bool is_unwritable;      /* the process reads no more */
    bool is_draining;        /* takes no more calls, ends with its last */
    uint64_t loose_until_ms; /* the server may still ask for a call that is not waited for */
} upstream_session;

typedef struct local {
    upstream base;
    http_client *http; /* borrowed, or `own_http` */
    http_client *own_http;
    tls_context *tls;                  /* of a server with certificates of its own */
    upstream_credentials *credentials; /* NULL: none are configured */
    const upstream_vault *vault;       /* borrowed */
    upstream_session main;
    mcp_link_kind kind; /* of the main link, since it was ready once */
    list sessions;
    size_t session_count;
    list waiting; /* calls for the main link, or until it says how the server is spoken to */
    size_t waiting_count;
    list fair_queues
        [UPSTREAM_FAIR_QUEUES]; /* calls that wait for one of the sessions, by their identity's hash */
    size_t queued_count;
    size_t next_fair_queue;
    loop_timer queue; /* the first that has waited too long */
    circuit circuit;
    uint32_t failures; /* in a row */
    uint64_t ready_at_ms;
    uint64_t restart_at_ms;
    uint64_t session_after_ms; /* one could not be started: not before then */
    loop_timer restart;
    loop_task settle; /* what must not happen inside the links' own callbacks */
    list subscriptions;
    size_t subscription_count;
    mcp_log_level level;
    uint64_t last_client_request;
    uint64_t last_client_session;
    log_pace session_pace; /* of lines about the other links' ends */
    bool has_dropped_news;
    bool has_one_client; /* the main link is that client's, and declares what it can be asked */
    bool
        sends_unattributed; /* its questions do not come on the stream of the call they are about */
    bool has_complained;    /* of a question that could not be tied to a call */
    bool is_sandbox_told;   /* what holds it is in the log */
    bool is_unreachable;    /* a call found nobody at the URL */
    bool is_closing;
    void (*close_done)(void *user);
    void *close_user;
} local;

local *local_of(upstream *self);

/* local.c */
/* STARTING, and what waits goes to the new engine. */
void local_begin(local *self);
/* A link broke that nobody asked to end. */
void local_count_crash(local *self);
/* For whoever looks from outside. */
void local_tally(local *self);
/* All links have ended: says so to whoever closes it. */
void local_check_closed(local *self);
bool local_is_process(const local *self);
/* Why nothing is started now, for a call that fails of it. */
void local_say_circuit(const local *self, char *out, size_t size);

/* calls.c */
void local_send(upstream *base, upstream_call *call);
void local_cancel(upstream_call *call, bay_str reason);
void local_pause(upstream_call *call, bool is_paused);
void local_place_waiting(local *self);
void local_fail_waiting(local *self, bay_err err, const char *text);
void local_arm_idle(local *self);
/* To the main link, once there is one. */
void local_send_main(local *self, upstream_call *call);
void upstream_session_take(upstream_session *self, upstream_call *call);

/* pool.c */
share_key pool_key(const local *self, const upstream_call *call);
void pool_send(local *self, upstream_call *call);
/* Has it wait for its turn. */
void pool_wait(local *self, upstream_call *call);
/* Gives what waits its turn. */
void pool_serve(local *self);
void pool_remove(local *self, upstream_call *call);
void pool_fail(local *self, bay_err err, const char *text);
void pool_timer(void *argument);

/* session.c */
void upstream_session_init(upstream_session *self, local *owner, void (*idle)(void *argument));
/* Of the kind `key`, for the caller of `of`. */
bay_err upstream_session_open(local *owner, const share_key *key, const upstream_call *of,
                              upstream_session **out, bay_diag *diag) BAY_MUST_CHECK;
/* "": anybody's. */
bay_str upstream_session_identity(const upstream_session *self);
/* It serves one client and no other. */
bool upstream_session_is_own(const upstream_session *self);
/* Can it take calls? */
bool upstream_session_is_usable(const upstream_session *self);
bool upstream_session_serves(const upstream_session *self, const share_key *key,
                             const upstream_call *call);
/* A call has left it. */
void upstream_session_rest(upstream_session *self);
/* A call of this client that may still be under way over there is not waited for any more. */
void upstream_session_unbind(upstream_session *self, const upstream_affinity *of);
void upstream_session_close(upstream_session *self);
/* At once: its calls fail. */
void upstream_session_free(upstream_session *self);
void upstream_sessions_close(local *owner);
/* Frees what broke or left. */
void upstream_sessions_reap(local *owner);
void local_tell(upstream *base, bay_str identity, bay_str method, bay_str params);
void local_identity_gone(upstream *base, bay_str identity);

/* input_request.c */
/* A request of the server: tied to `call`, or to none (NULL). False: the engine refuses it. */
bool upstream_session_asked(upstream_session *self, upstream_call *call,
                            const rpc_message *request);
void upstream_session_withdrawn(void *user, bay_str id);
void local_answer(upstream_call *call, bay_str id, bay_str result, int code, bay_str message);
/* The call has ended: what is still open of its questions is answered by an error; or the server is
 * gone, and whoever was asked hears that nobody waits any more. */
void upstream_session_end_input_requests(upstream_session *self, upstream_call *call);
void upstream_session_withdraw_input_requests(upstream_call *call);

/* The client that was asked outside of any call answers, or its worker does. Harmless when the
 * question is over. */
void local_client_answer(upstream *base, uint64_t number, bay_str result, int code,
                         bay_str message);

/* client_session.c: to the client that this session serves alone. */
void upstream_session_tell(upstream_session *self, const upstream_client_message *what);
/* A log message that belongs to no call. */
void upstream_session_logged(upstream_session *self, json_val params);
/* Puts the question to the client outside of any call; false: it cannot be asked that way. */
bool upstream_session_ask(upstream_session *self, uint64_t number, const rpc_message *request);
void upstream_session_take_back(upstream_session *self, uint64_t number);
/* The link is gone: what the client was asked over it is over. */
void upstream_session_forget_client(upstream_session *self);
/* The client hears that this session is its own from now on, or is over. */
void upstream_session_introduce(upstream_session *self);
void upstream_session_take_leave(upstream_session *self);

/* open.c: makes `at->connection`. */
bay_err local_open(local *self, upstream_session *at, const mcp_client_events *events,
                   bay_diag *diag) BAY_MUST_CHECK;

/* notify.c */
void upstream_notify_init(upstream_session *at);
void upstream_notify_stop(upstream_session *at);
void upstream_notify_fini(upstream_session *at);
void upstream_notify_changed(upstream_session *at, mcp_change change);
void upstream_notify_updated(upstream_session *at, bay_str uri);

/* subscriptions.c */
void local_subscribe(upstream *base, bay_str identity, bay_str uri, bool is_wanted);
void local_set_level(upstream *base, mcp_log_level level);
/* A link is ready: it is told what there is for it. */
void upstream_subscriptions_renew(upstream_session *at);
/* Is that client to be told of updates over a session of its own? */
bool upstream_subscriptions_has(const local *self, bay_str identity);
/* All of that client; NULL: everybody's. */
void upstream_subscriptions_forget(local *self, const bay_str *identity);

#endif
