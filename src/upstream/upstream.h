/* One MCP server behind the gateway, as one loop sees it: started when it is needed, restarted with
 * back-off when it breaks, stopped when it idles.
 *
 *   STOPPED --call or start--> STARTING --ready--> READY
 *      ^                          |  broken          | broken
 *      | idle                     v                  v
 *      +------------------ BACKOFF or OPEN <---------+      any --close--> CLOSED
 *   BACKOFF, OPEN --timer--> STARTING
 *
 * The interface has two kinds: the owner (local.c) has the sessions with the server; a proxy
 * (proxy.c) forwards to the owner on another loop. A process has one owner however many
 * loops there are; a URL has an owner on each.
 *
 * Exactly-once: every call ends with one `done`, unless upstream_call_cancel ended it first. */
#ifndef UPSTREAM_UPSTREAM_H
#define UPSTREAM_UPSTREAM_H

#include "auth/principal.h"
#include "base/list.h"
#include "call/target.h"
#include "config/config.h"
#include "http/http_client.h"
#include "mcp/client.h"
#include "mcp/inputs.h"
#include "mcp/server.h"
#include "net/loop.h"

typedef struct upstream upstream;
typedef struct upstream_call upstream_call;
typedef struct upstream_told upstream_told;

typedef enum upstream_state {
    UPSTREAM_STOPPED,
    UPSTREAM_STARTING,
    UPSTREAM_READY,
    UPSTREAM_BACKOFF,
    UPSTREAM_OPEN, /* it crashed too often: left alone for a while, then tried once */
    UPSTREAM_CLOSED,
} upstream_state;

/* What a server of the session revisions tells, outside of any call, the client that one of its
 * sessions serves alone. Views live for the callback only. */
typedef struct upstream_client_message {
    bay_str identity; /* as in upstream_affinity; "": the only client that there is */
    mcp_method_id method;
    bay_str uri;     /* MCP_N_RESOURCE_UPDATED */
    json_val params; /* MCP_N_MESSAGE */
} upstream_client_message;

/* What the owner of an upstream hears. */
typedef struct upstream_events {
    void (*state_changed)(void *user, upstream *self);
    void (*changed)(void *user, upstream *self, mcp_change change);
    void (*updated)(void *user, upstream *self, bay_str uri);
    /* What a URL was for is done: `params` name it, and live for the callback only. May be NULL. */
    void (*elicited)(void *user, upstream *self, json_val params);
    /* A session serves that client alone from now on, or is over: what it lists, and tells by
     * client_told, is that client's. `number`: it is told apart by this from one that follows it.
     * May be NULL, like the next three. */
    void (*own_session)(void *user, upstream *self, bay_str identity, uint64_t number,
                        bool is_open);
    void (*client_told)(void *user, upstream *self, const upstream_client_message *what);
    /* The server asks that client for something outside of any call. True: it is answered once by
     * upstream_client_answer, during the callback or later. False: there is no such client here, or
     * it cannot be asked. */
    bool (*client_asked)(void *user, upstream *self, bay_str identity, uint64_t number,
                         const rpc_message *request);
    /* The server takes it back, or is gone: it is not to be answered any more. */
    void (*client_withdrawn)(void *user, upstream *self, uint64_t number);
} upstream_events;

typedef struct upstream_call_events {
    /* progress or message of this call; `params` lives for the callback only */
    void (*notified)(void *user, mcp_method_id method, json_val params);
    /* The server (a legacy one) asks its client for something during this call: elicitation,
     * sampling, roots. `request` lives for the callback only. Each is answered once by
     * upstream_call_answer, during the callback or later, or the call ends first. NULL: refused. */
    void (*asked)(void *user, const rpc_message *request);
    /* The server takes such a request back: it is not to be answered any more. `id` is raw. May be
     * NULL. */
    void (*withdrawn)(void *user, bay_str id);
    /* views of the outcome live for the callback only */
    void (*done)(void *user, const mcp_outcome *outcome);
} upstream_call_events;

/* Whom a call is for, as far as the choice of the server's session depends on it. A server of the
 * session revisions learns once per session what its client can be asked, and may keep what it was
 * answered: calls share a session only where that makes no difference. */
typedef struct upstream_affinity {
    unsigned inputs;                 /* mcp_inputs: what this client can be asked */
    const auth_principal *principal; /* who makes the call */
    bay_str identity;  /* whose call it is: the client's session, else its principal, with the
                          conversation that it names */
    bool is_own;       /* nobody's: the gateway asks for itself */
    bool is_stateless; /* the next call of that identity may be another client's */
    bool has_session;  /* the client can be told and asked outside of calls, too */
    const void *home;  /* the proxy that the call comes by; NULL: none. For upstreams alone */
} upstream_affinity;

/* One call. The caller gives the memory and keeps it, and every view in `spec` and `affinity`,
 * until `done` or cancel. */
struct upstream_call {
    upstream *upstream;
    mcp_call_spec spec;
    upstream_affinity affinity;
    bay_str task;       /* the server's id of the task that this call waits for, or empty: what the
                           server asks for that task is asked of this call */
    bool is_repeatable; /* may be executed twice: it is tried again also where it was sent */
    const upstream_call_events *events;
    void *user;
    list_link link; /* in one of the upstream's lists */
    /* Of a server where each caller has a credential of his own: what his depends on. */
    unsigned char rights[PRINCIPAL_RIGHTS_BYTES];
    mcp_call *call;                       /* the owner's: while it is with the client engine … */
    struct upstream_session *session;     /* … of this link */
    struct input_request *input_requests; /* of the server about this call, not answered yet */
    uint32_t input_request_count;
    uint64_t until_ms; /* it waits for a link no longer than that */
    void *remote;      /* a proxy's: the loop_call */
    uint8_t attempts;
    bool is_open;
    bool is_queued;    /* waits for one of the links */
    bool may_have_run; /* an earlier attempt was sent */
};

typedef struct upstream_options {
    loop *loop;
    http_client *http;    /* for URLs; borrowed */
    const config *config; /* borrowed: the gateway holds it as long as its upstreams */
    const config_server *server;
    const upstream_events *events;
    void *user;
    /* Of a server that stands for an agent's skills: the engine in this process, looked up for each
     * link; NULL: it is not there. */
    mcp_server *(*engine)(void *engine_user, bay_str agent);
    void *engine_user;
    upstream_told *told; /* shared by all owners of this server; NULL: it has one of its own */
    call_target *target; /* shared by this server's upstreams on all loops; NULL: one of its own */
    const struct upstream_vault *vault; /* of users' tokens, on this loop; NULL: there is none */
    bay_str via; /* Via of requests to URLs: the gateway's name, borrowed; "": none */
} upstream_options;

enum { UPSTREAM_ERROR_BYTES = 240, UPSTREAM_MAX_WAITING = 10000 };

bay_err upstream_new(const upstream_options *options, upstream **out) BAY_MUST_CHECK;
/* A proxy on the loop of `options`; the owner gets to know it by a message. It must have closed
 * (its `done` has run) before it or the owner is freed. */
bay_err upstream_new_proxy(const upstream_options *options, upstream *owner,
                           upstream **out) BAY_MUST_CHECK;

/* Starts it if it is stopped (to learn what it offers). */
void upstream_start(upstream *self);
/* Fails what is open and ends the server; `done` runs once, when nothing of it is left. */
void upstream_close(upstream *self, void (*done)(void *user), void *user);
void upstream_free(upstream *self); /* closed, or at once */

void upstream_send(upstream *self,
                   upstream_call *call); /* a refusal comes by `done`, maybe at once */
void upstream_call_cancel(upstream_call *call, bay_str reason); /* harmless after `done` */
void upstream_call_pause(upstream_call *call, bool is_paused);
/* Answers a request taken by `asked`. `id` is its raw id; `result` a raw object, or empty and an
 * error. Harmless when the call has ended or the server took the request back. */
void upstream_call_answer(upstream_call *call, bay_str id, bay_str result, int code,
                          bay_str message);
/* Answers what client_asked took, as upstream_call_answer. Harmless when the question is over. */
void upstream_client_answer(upstream *self, uint64_t number, bay_str result, int code,
                            bay_str message);
/* Before its first start: it has one client, which can be asked this (mcp_inputs). Its main session
 * is then that client's. */
void upstream_set_client(upstream *self, unsigned inputs);
/* A notification of a client (roots/list_changed), for the sessions that serve its identity alone.
 * `params`: a raw object, or empty. */
void upstream_tell(upstream *self, bay_str identity, bay_str method, bay_str params);
/* That client's session has ended: so do the server's sessions that served it alone, when their
 * last call has. */
void upstream_identity_gone(upstream *self, bay_str identity);
/* Updates of a resource. `identity`: for a client that has, or may come to have, a session of its
 * own with the server: over that; it ends with upstream_identity_gone. "": over the main session. */
void upstream_subscribe(upstream *self, bay_str identity, bay_str uri, bool is_wanted);
void upstream_set_level(upstream *self, mcp_log_level level);

bay_str upstream_name(const upstream *self);
/* What its calls are admitted to. Borrowed. */
call_target *upstream_target(const upstream *self);
const config_server *upstream_config(const upstream *self);
/* A reload found the same server in a newer config. */
void upstream_set_config(upstream *self, const config *config, const config_server *server);
upstream_state upstream_state_of(const upstream *self);
const char *upstream_state_text(upstream_state state);
/* What the log was told of it, on any loop; NULL: nothing is remembered. */
upstream_told *upstream_told_of(const upstream *self);
const char *upstream_error(const upstream *self);            /* why it is not ready; "" */
const mcp_revision *upstream_revision(const upstream *self); /* NULL before it was ready once */
/* By a path as in mcp_capability, as it was last ready. */
bay_str upstream_instructions(const upstream *self); /* as it was last ready */
bool upstream_has(const upstream *self, bay_str capability);
/* It has it, and does not say false. */
bool upstream_admits(const upstream *self, bay_str capability);
/* It is to be started by the first who needs it, and nobody has yet. */
bool upstream_is_asleep(const upstream *self);
/* It failed, and is not being tried just now. */
bool upstream_is_down(const upstream *self);
/* Has it been ready once, or failed? (Before that nothing is known of it.) */
bool upstream_is_settled(const upstream *self);
uint32_t upstream_restarts(const upstream *self);
size_t upstream_open_calls(const upstream *self);
int upstream_process_id(const upstream *self);         /* 0: none */
const char *upstream_last_break(const upstream *self); /* why it was last restarted; "" */

/* What its owner has just now, whichever loop asks. */
typedef struct upstream_count {
    unsigned links;     /* sessions with the server, also those that are starting or ending */
    unsigned processes; /* of them, those with a child */
    unsigned waiting;   /* calls that wait for one */
    unsigned refused_questions; /* of the server, that could not be tied to a call */
    const char *circuit;        /* "closed", "open", "trial" */
} upstream_count;
upstream_count upstream_count_of(const upstream *self);

#endif
