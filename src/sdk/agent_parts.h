/* The inside of a bay_agent: what was registered, its rendered cards, and its serving. Shared by
 * the sdk's agent files only.
 *
 *   bay_agent ── host ── serving (engine, store, push_sender) ──────── bay_task: one turn
 *      ├─ abilities, schemes                                        ├─ moves, in order
 *      ├─ cards (pure, hybrid, 0.3; signed)                         └─ artifacts being made
 *      └─ pool of threads for handlers */
#ifndef SDK_AGENT_PARTS_H
#define SDK_AGENT_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "a2a/agent.h"
#include "a2a/dialect.h"
#include "a2a/security.h"
#include "a2a_transport/router.h"
#include "auth/access_token.h"
#include "auth/card_signature.h"
#include "auth/jose.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "net/loop.h"
#include "patchbay/agent.h"
#include "sdk/host.h"
#include "sdk/message_parts.h"
#include "sdk/registration.h"
#include "store/store.h"
#include "json/build.h"

enum {
    AGENT_SETTINGS = 24,           /* room for bay_agent_setting */
    AGENT_ABILITIES = 1000,        /* of one agent */
    AGENT_SCHEMES = 32,            /* of one agent */
    AGENT_KEYS = 10000,            /* of one API key scheme */
    AGENT_CARD_BYTES = 4 << 20,    /* of one rendered card */
    AGENT_MEMORY_BYTES = 64 << 20, /* of everything registered */
    AGENT_GRANT_BYTES = 4096,      /* of a principal, and of its scopes */
    AGENT_TAG_BYTES = 40,          /* of an ETag */
};

/* One element of a list in the card; of the agent's memory. */
typedef struct agent_value {
    list_link link;
    json_val value;
} agent_value;

struct bay_skill {
    bay_agent *agent;
    struct bay_skill *next;
    bay_str id;
    bay_str name;
    bay_str description;
    list tags; /* agent_values, like all below */
    list examples;
    list inputs;
    list outputs;
    list requirements;
    bay_str scopes; /* of a guard's callers; "": none */
    bay_task_handler_fn handler;
    void *user;
    bool is_listed; /* false: a bad one, kept for its setters */
};

typedef struct agent_key {
    struct agent_key *next;
    char *text; /* wiped */
    size_t len;
    bay_str principal;
    bay_str scopes;
} agent_key;

typedef struct agent_scheme {
    struct agent_scheme *next;
    bay_str name;
    json_val value; /* as the card has it */
    bay_verify_fn verify;
    void *user;
    agent_key *keys;
    size_t key_count;
    jose_keys *trusted;
    bay_str issuer;
    bay_str audience;
    bay_str like; /* whose verification it shares; "": its own */
    bool is_api_key;
    bool is_mtls;
} agent_scheme;

typedef struct agent_cards {
    json_doc *plain; /* 1.0, without signatures; owned, like all below */
    bay_str pure;
    bay_str hybrid;
    bay_str old;
    bay_str extended;
    char pure_tag[AGENT_TAG_BYTES];
    char hybrid_tag[AGENT_TAG_BYTES];
    char old_tag[AGENT_TAG_BYTES];
    a2a_security *security;
} agent_cards;

typedef struct agent_serving agent_serving;
typedef struct agent_pool agent_pool;

struct bay_agent {
    arena memory; /* everything that was registered, but secrets */
    bay_str name;
    bay_str version;
    bay_str description;
    bay_str organization;
    bay_str organization_url;
    bay_str documentation;
    bay_str icon;
    bay_str url;  /* without a '/' at its end */
    bay_str path; /* "" or "/…" */
    bool has_path;
    json_val extended; /* members of the extended card; JSON_NONE: there is none */
    list inputs;       /* agent_values */
    list outputs;
    list extensions;
    list requirements;
    buf extension_uris;   /* separated by commas */
    bay_skill *abilities; /* in the order they were registered */
    size_t ability_count;
    map abilities_by_id;
    bay_task_handler_fn handler; /* for messages that name no skill */
    void *handler_user;
    agent_scheme *schemes;
    struct bay_guard *guard; /* NULL: none; one reference */
    struct sdk_gate *gate;   /* of the guard, while it serves */
    size_t scheme_count;
    host_texts targets; /* of webhooks */
    jose_key *signing_key;
    bay_str jku;
    bay_str store_path; /* "": memory */
    /* NULL: memory. Named only where it is asked for, so that a program without it need not hold
     * SQLite. */
    bay_err (*open_store)(loop *on_loop, bay_str path, const store_options *options, store **out,
                          bay_diag *diag);
    int64_t settings[AGENT_SETTINGS];
    bool is_hybrid;
    bool is_lenient;
    bool is_resumable;
    bool is_on_loop;
    bool has_push;
    bool requires_any; /* bay_agent_require or bay_skill_require was said */
    bool is_out_of_memory;
    registration_errors errors;
    log_target log; /* no sink: the process's */
    agent_cards cards;
    agent_serving *serving; /* NULL: not being served */
    sdk_host host;          /* what serves it */
};

/* A line that may be said outside a turn of the agent's loop, on whatever thread. */
#define AGENT_LOG(agent, level, ...)                                                               \
    do {                                                                                           \
        const log_target *log_before =                                                             \
            log_direct((agent)->log.sink != NULL ? &(agent)->log : NULL);                          \
        LOG(level, "agent", __VA_ARGS__);                                                          \
        log_direct(log_before);                                                                    \
    } while (0)

/* ---- agent.c */

void sdk_agent_error(bay_agent *self, const char *format, ...) BAY_PRINTF(2, 3);
/* A copy in the agent's memory; empty on failure, which is remembered. */
bay_str sdk_agent_keep(bay_agent *self, const char *text);
/* The program's JSON in the agent's memory; JSON_NONE: it is no object, or out of memory. */
json_val sdk_agent_keep_object(bay_agent *self, const char *text);
/* Begins a value in the agent's memory; … and ends it as one more element of a list. */
json_writer *sdk_agent_build(bay_agent *self, json_builder *made);
void sdk_agent_add(bay_agent *self, list *among, json_builder *made);
void sdk_agent_add_text(bay_agent *self, list *among, const char *text);
uint64_t sdk_agent_setting(const bay_agent *self, bay_agent_setting setting);
/* Who answers messages that name this skill; "": none. NULL: there is no such skill. */
const bay_skill *sdk_agent_ability(const bay_agent *self, bay_str id);

/* ---- agent_security.c */

agent_scheme *sdk_agent_scheme_find(const bay_agent *self, bay_str name);
/* Declares {"KIND":{"NAME_1":"VALUE_1","NAME_2":"VALUE_2"}}, for `function`. NULL: it is refused, or
 * there is no memory. */
agent_scheme *sdk_agent_scheme_simple(bay_agent *self, const char *function, const char *scheme,
                                      const char *kind, const char *const members[4]);
/* {"schemes":{NAME:{"list":[…]}}}, one more element. */
void sdk_agent_requirement(bay_agent *self, list *among, const char *scheme, const char *scopes);
/* For front_options.identify and a2a_http_router_options.admit. */
front_verdict sdk_agent_identify(bay_agent *self, const front_request *request,
                                 const auth_principal **out_principal, front_refusal *out);
/* agent_guard.c: has this caller the scopes of the skill? */
bay_err sdk_agent_guard_admits(const bay_agent *self, http_exchange *exchange,
                               const auth_principal *who, const bay_skill *skill,
                               front_challenge *out_challenge, a2a_fault *fault) BAY_MUST_CHECK;
bay_err sdk_agent_admit(bay_agent *self, http_exchange *exchange, const a2a_call *call,
                        front_challenge *out_challenge, a2a_fault *fault);
/* What a request asks for by name, of which `message` is part; "": nothing; in `memory`. */
bay_str sdk_agent_skill_of(json_val request, json_val message, arena *memory);
void sdk_agent_schemes_free(bay_agent *self);

/* ---- agent_card.c */

/* Renders all forms anew, with interfaces at `base` ("http://127.0.0.1:8080"). On failure they are
 * as they were. BAY_ERR_INVALID with `diag`. */
bay_err sdk_agent_render(bay_agent *self, bay_str base, bay_diag *diag) BAY_MUST_CHECK;
void sdk_agent_cards_free(agent_cards *self);
/* Does nothing in its card keep strangers out? */
bool sdk_agent_is_open(const bay_agent *self);
/* Of the card that was rendered last. */
listen_policy sdk_agent_policy(const bay_agent *self);

/* ---- agent_serving.c */

loop *sdk_agent_loop(const agent_serving *self);
a2a_agent *sdk_agent_engine(const agent_serving *self);
agent_pool *sdk_agent_pool(const agent_serving *self); /* NULL: handlers run on the loop */
/* Handlers of that many tasks still have them. */
void sdk_agent_count(agent_serving *self, int change);
map *sdk_agent_running(agent_serving *self); /* bay_task by id; the loop's */
extern const host_kind sdk_agent_kind;

/* ---- agent_task.c */

/* The skill that answers a message which names the skill `named` ("": none), given what the
 * handler of its task remembers ("": nothing, or there is no task). NULL: the agent's own handler.
 */
const bay_skill *sdk_agent_answerer(const bay_agent *self, bay_str record, bay_str named);
/* For an a2a_handler whose user is the agent. */
void sdk_turn_begin(void *user, a2a_turn *turn);
void sdk_turn_canceled(void *user, a2a_turn *turn);
/* The agent ends: handlers learn of it. */
void sdk_agent_cancel_tasks(agent_serving *self);

/* ---- agent_pool.c: a bounded set of threads */

typedef struct agent_job {
    list_link link;
    void (*run)(void *argument);
    void *argument;
} agent_job;

bay_err agent_pool_new(uint32_t threads, const log_target *log, agent_pool **out) BAY_MUST_CHECK;
/* Waits for what is running and what is queued. */
void agent_pool_free(agent_pool *self);
/* Runs it on one of the threads, in the order given. BAY_ERR_NOMEM: there is not even one
 * thread. */
bay_err agent_pool_run(agent_pool *self, agent_job *job) BAY_MUST_CHECK;

#endif
