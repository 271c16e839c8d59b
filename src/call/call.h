/* A call of any protocol, and the door: the one place that every call passes.
 *
 *   engine: call_begin ─► service: resolve ─► call_admit ─► GO: dispatch ─► engine: call_over
 *                                                 │└────► REFUSED: the refusal is the answer
 *                                                 └─────► WAITS: `resume` runs later, and the
 *                                                         service resolves and admits again
 *
 * The engine of a protocol embeds a call_context in its request and begins and ends it. The service
 * behind the engine resolves the name without side effects and calls call_admit before it does
 * anything else. A column of the protocol's table of methods says which methods are calls, and of
 * which kind (mcp/methods.def, a2a/methods.def). If a call was not admitted, the engine sends an
 * error in place of a result, so a method that omits call_admit cannot answer.
 *
 * States:
 *   NEW ─admit─► ADMITTED ─over─► OVER
 *    │   └─────► WAITING ─admit─► ADMITTED, REFUSED
 *    └─over───► OVER ◄─over── WAITING, REFUSED
 *
 * A call belongs to one loop. Other threads call only call_door.wake. */
#ifndef CALL_CALL_H
#define CALL_CALL_H

#include "auth/principal.h"
#include "base/list.h"
#include "call/kind.h"
#include "policy/limits.h"
#include "policy/outcomes.h"
#include "policy/rules.h"
#include "policy/tools.h"

typedef struct call_context call_context;
typedef struct call_door call_door;
typedef struct call_target call_target; /* call/target.h */
typedef struct call_once call_once;     /* call/once.h */

typedef enum call_protocol { CALL_MCP, CALL_A2A } call_protocol;

typedef enum call_state {
    CALL_NEW,
    CALL_WAITING,
    CALL_ADMITTED,
    CALL_REFUSED,
    CALL_OVER,
} call_state;

/* How a call ended. */
typedef enum call_outcome {
    CALL_RESULT,
    CALL_TOOL_ERROR,  /* the result of a tool that says that it failed (`isError`) */
    CALL_ERROR,       /* an error, also one that the server returned */
    CALL_TURNED_AWAY, /* refused by the door */
    CALL_CANCELLED,   /* the caller cancelled the call or disconnected */
} call_outcome;

/* What an answer is to a model that reads it: bits. */
typedef enum call_labels {
    CALL_UNLABELLED = 0,
    CALL_UNTRUSTED = 1,  /* nobody can say that it holds no orders */
    CALL_SUSPICIOUS = 2, /* it looks as if it did; never without CALL_UNTRUSTED */
} call_labels;

/* Why the door refuses a call: reasons.def. */
typedef enum call_reason {
#define CALL_REASON(symbol, text, code) CALL_##symbol,
#include "call/reasons.def"
#undef CALL_REASON
    CALL_REASONS
} call_reason;

typedef struct call_refusal {
    call_reason reason;
    char text[256]; /* for people and models: what, why, and what to do */
    bay_str
        scopes; /* CALL_SCOPE: those that the call needs; a view that lives as long as the call */
    uint32_t retry_after_ms; /* when it may be worth trying again; 0: not known */
    uint32_t rule_line;      /* of the rule that decided; 0: none did */
    bool may_have_run;       /* an equal call */
} call_refusal;

const char *call_reason_text(call_reason reason);
/* The JSON-RPC error code, for refusals that are not a tool's result. */
int call_reason_code(call_reason reason);

struct call_context {
    /* Set by call_begin. Views live until call_over. */
    call_door *door;
    const auth_principal *principal; /* borrowed; NULL: anonymous */
    call_protocol protocol;
    call_kind kind;
    bay_str method;
    bay_str revision;                   /* of the protocol; "": unknown */
    bay_str shown;                      /* the name or URI as the caller wrote it; "": none */
    json_val params;                    /* the request's params as the protocol defines them; may be
                                  * missing */
    uint64_t began_ms;                  /* time of the loop's clock; 0: call_begin reads it from the
                                  * door */
    const policy_origin *origin;        /* where it comes from; NULL: unknown */
    void (*resume)(call_context *self); /* the call's turn has come; NULL: the call cannot wait */
    arena *memory;                      /* of the request; NULL: there is none */
    const policy_tool_field *fields;    /* header fields that settings of tools name */
    size_t field_count;
    /* Set by the service before call_admit. */
    uint32_t timeout_ms; /* of the server or of one tool; 0: the door's */
    /* All that the principal must have been granted, separated by single spaces; "": none. The user
     * of this process has every scope. */
    bay_str scopes;
    policy_name about;   /* what rules decide on; without a name: an agent, or the method */
    bool is_repeatable;  /* it may be carried out twice: a hint of a server that is trusted */
    int error_code;      /* JSON-RPC, of a call that ends with CALL_ERROR; 0: unknown */
    size_t result_bytes; /* of its result's text; 0: unknown, or nothing measures it */
    /* By the service, once the call was admitted. */
    bool is_sent;    /* the call is on its way to the server: it may be carried out */
    unsigned labels; /* call_labels of what it was answered so far */
    /* For the service to read. */
    bay_str upstream_key; /* idempotency key for the server, hexadecimal digits; "": none */
    bay_str meta_name;    /* the further member of `_meta` that may have the caller's; "": none */
    outcome_view answer;  /* after CALL_ANSWER */
    /* For the record. */
    uint64_t began_ns;       /* of door.clock_ns; 0 without one */
    call_reason refused_for; /* of a call that ends with CALL_TURNED_AWAY, like the next one */
    uint32_t rule_line;
    /* Private to the door. */
    call_target *target; /* counted; NULL: the service itself */
    call_state state;
    bool has_slot;   /* counted by its target */
    bool is_late;    /* its deadline passed while it waited */
    bool has_queued; /* it has been in its target's queue */
    bool has_waited; /* it may be in door.granted */
    bool has_paid;   /* of its principal's bucket */
    bool has_spent;  /* of those of its tool and server */
    bool has_claim;  /* `claim` has a part in the outcome of equal calls */
    bool may_repeat; /* the settings of its tool say so */
    outcome_claim claim;
    bay_str arguments_digest; /* "": not made yet */
    list_link target_link;    /* in the target's queue or, once granted, in the door's */
    list_link door_link;      /* in door.waiting */
};

/* The door of one loop. Embedded in its owner. */
struct call_door {
    uint32_t timeout_ms;            /* for calls without another deadline */
    uint64_t (*now_ms)(void *user); /* the loop's clock; NULL: callers set began_ms */
    /* The wall clock, ms since 1970; NULL: principals do not expire here. */
    uint64_t (*wall_ms)(void);
    /* Any thread: asks for call_door_run on the door's loop. NULL: calls cannot wait here. */
    void (*wake)(void *user);
    /* The clock of a record that measures calls, monotonic; NULL: nothing is measured. */
    uint64_t (*clock_ns)(void);
    /* A call has ended: the only record of it. `call` is valid during the callback only. May be
     * NULL. */
    void (*record)(void *user, const call_context *call, call_outcome how);
    /* Labels what `of` answers, before the caller gets it. NULL: nothing is labelled. */
    call_labels (*label)(void *user, const call_target *of, json_val answer);
    /* A further stage, for tests and for embedding programs: false refuses, with `out` filled in.
     * May be NULL. */
    bool (*guard)(void *user, const call_context *call, call_refusal *out);
    policy_index policy;      /* the rules; without any the stage does nothing */
    policy_tools_index tools; /* how tools are called; without any nothing is looked up */
    policy_limits *limits;    /* of rate; borrowed; NULL: none */
    call_once *once;          /* calls that are carried out once; borrowed; NULL: none are */
    void *user;
    list waiting;  /* calls, by door_link, oldest first */
    list granted;  /* calls whose turn has come; guarded by the lock of call/target.c */
    bool is_awake; /* `wake` was called and call_door_run has not run since; guarded likewise */
};

void call_door_init(call_door *self);

/* Resumes the calls whose turn has come. On the door's loop. */
void call_door_run(call_door *self);
/* Resumes the calls that have waited too long. Once a second, on the door's loop. */
void call_door_tick(call_door *self, uint64_t now_ms);

/* A call arrives. `door` NULL: the call counts as admitted. */
void call_begin(call_context *self, call_door *door);

typedef enum call_verdict {
    CALL_REFUSE,
    CALL_WAIT,
    CALL_GO,
    CALL_ANSWER, /* call.answer is the outcome of an equal call, and of this one */
} call_verdict;

/* Does the call's principal know of it, whatever the arguments are? By the function that admits
 * the call, so that lists show what may be called. POLICY_HIDDEN: it is answered like what there is
 * not. Reads of the call only its door, its principal and its origin. */
static inline policy_outcome call_shows(const call_context *call, const policy_name *about,
                                        bay_str method)
{
    if (call->door == NULL || call->door->policy.rules == NULL) {
        return POLICY_ALLOWED;
    }
    policy_question question = {.about = *about,
                                .method = method,
                                .principal = call->principal,
                                .origin = call->origin,
                                .is_listing = true};
    return policy_ask(&call->door->policy, &question).outcome;
}

/* Asks the stages, cheapest first: expiry of the principal, its rate, its scopes, rules, guard, deadline,
 * equal calls before, concurrency of the target, rates of tool and target. `to`: the server or agent that is meant; NULL: the service itself
 * answers. A call that is admitted already goes if `to` is what it was admitted to, and is refused
 * otherwise. A stage that cannot decide refuses.
 * Owns: the call holds a reference to `to` until call_over. */
call_verdict call_admit(call_context *self, call_target *to, call_refusal *out) BAY_MUST_CHECK;

/* Also true without a door. */
static inline bool call_is_admitted(const call_context *self)
{
    return self->door == NULL || self->state == CALL_ADMITTED;
}

/* The server's answer to a call that was admitted, before the caller gets it: equal calls get the
 * same. Without such calls no effect. */
void call_set_outcome(call_context *self, outcome_kind kind, json_val value);

/* Does somebody want to know how long calls take, and what their results are like? */
static inline bool call_is_measured(const call_context *call)
{
    return call->door != NULL && call->door->clock_ns != NULL;
}

/* The labels of what a server or agent answers; none without one, and without door.label. */
call_labels call_door_label(const call_door *self, const call_target *of, json_val answer);
/* The answer of its target, an error too, before the call ends: the call has its labels from then on.
 * Lists and completions are no answers that a model reads. */
void call_label(call_context *self, json_val answer);

/* Goes on although its caller has left: its outcome is for the calls that repeat it. */
static inline bool call_outlives_caller(const call_context *self)
{
    return self->has_claim && self->is_sent;
}

/* The digest of the canonical form of its arguments, made once for a call. A view that lives as long
 * as the call. Errors: BAY_ERR_NOMEM; BAY_ERR_UNSUPPORTED in a library without OpenSSL. */
bay_err call_arguments_digest(call_context *self, bay_str *out) BAY_MUST_CHECK;

/* A call that waits has its turn: `resume` runs on its door's loop. Any thread, while the call
 * waits. */
void call_ready(call_context *self);

/* Ends the call: releases what the stages reserved and calls `record`. Once for each call_begin. */
void call_over(call_context *self, call_outcome how);

#endif
