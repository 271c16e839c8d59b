/* Shared by the files of the agent engine.
 *
 *   call ── reply ──► task ── turns ──► handler
 *                      ├─ history, artifacts, status      (visible to clients)
 *                      ├─ events   (the newest ones, for subscribers and clients that reconnect)
 *                      └─ configs  (webhooks)
 *
 * - Every change of a task takes the next number of its `revision`; an event's sequence is the
 *   revision of its change. `kept` is the revision that the persister has stored. Nothing newer is
 *   sent.
 * - Every call into the engine runs between agent_enter and agent_leave. Changes only mark their
 *   task; the outermost leave flushes the marked tasks: puts, answers, events, deliveries, next
 *   turns. So an answer never leaves while its turn is still inside the handler, and callbacks may
 *   call in.
 * - A task is *open* when others may know of it. Before, it is only an id for a turn, which may
 *   still be answered with a message.
 * - A reply is in its call's arena: it is freed when the call is ended. */
#ifndef A2A_AGENT_INTERNAL_H
#define A2A_AGENT_INTERNAL_H

#include "a2a/agent.h"
#include "base/list.h"
#include "base/map.h"

enum {
    AGENT_ID_BYTES = 256,       /* of the id of a task, context, message or configuration */
    AGENT_PAGE_BYTES = 4 << 20, /* of one page of ListTasks, but at least one task */
    AGENT_CURSOR_MS = 3600000,  /* validity of a page token */
    AGENT_RETRY_MS = 1000,      /* after a task could not be stored */
    AGENT_FINAL_STATUS_BYTES = 64 << 10, /* allowed above task_bytes for a terminal status */
    AGENT_EXTENSIONS = 64,               /* required by a card */
    AGENT_MODES = 256,                   /* media types in a card, of all skills */
    AGENT_RANDOM_BYTES = 1024,           /* read from the kernel at one time */
    AGENT_BUFFER_KEPT = 64 << 10,        /* of the buffer that answers are written into */
    AGENT_ORDER_PER_MS = 1024,           /* changes that one millisecond can distinguish */
    AGENT_TIME_BYTES = 24,               /* 2026-01-31T23:59:59.123Z */
    AGENT_OVERFLOW_BYTES = 2 << 10, /* added parts in the row, before they are moved to a block */
    AGENT_FIRST_BYTES = 4 << 10,    /* a task's first message that is shorter stays in the row */
    AGENT_ROW_BYTES = 16 << 10, /* of artifacts in the row: above it, smaller ones move, too … */
    AGENT_OVERFLOW_LEAST = 256, /* … down to these */
    AGENT_PUT_BLOCKS = 2048,    /* in one put; and overflows that are removed with one */
};

/* What the persister has beside the task's row, in blocks: all but the newest part of a long
 * artifact, or texts in one block. It belongs to that artifact or these texts; when it is not
 * referenced any more, the next put removes its blocks. */
typedef struct agent_overflow {
    list_link link;          /* of its task's overflows, or of those being removed */
    struct agent_task *task; /* NULL: removed */
    uint32_t refs;
    uint32_t blocks; /* including those of the current put; 0: nothing is outside the row */
    uint32_t kept_blocks;
    bool is_going; /* removed by the current put */
    size_t cut;    /* bytes of an artifact's parts that are in blocks */
    size_t kept_cut;
    uint64_t number;
} agent_overflow;

/* Shared JSON: a message in the history and in the status. */
typedef struct agent_text {
    uint32_t refs : 31;
    uint32_t is_inside : 1; /* in its task's memory */
    uint32_t len;
    agent_overflow *overflow; /* NULL: none */
    size_t place;             /* in the overflow's block; its size leaves no gap before `at` */
    char at[];
} agent_text;

typedef struct agent_artifact {
    bay_str id; /* decoded, after `head` */
    char *head; /* its members except parts: "artifactId":… */
    size_t head_len;
    buf parts;                /* elements with their commas */
    agent_overflow *overflow; /* NULL: none */
    bool is_complete;
} agent_artifact;

/* One stored event; in its task's list and, when it may be dropped, in the agent's. */
typedef struct agent_event {
    list_link in_task;
    list_link in_agent;
    struct agent_task *task;
    a2a_event *event;
    size_t bytes; /* as they were counted */
} agent_event;

typedef struct agent_config {
    list_link link;
    json_doc *config; /* TaskPushNotificationConfig; wiped */
    a2a_form form;
    bay_str id; /* after this struct */
} agent_config;

/* Tasks of one caller, newest change last. An entry whose task has moved is NULL until the next
 * compaction. */
typedef struct agent_entry {
    uint64_t order;
    struct agent_task *task;
} agent_entry;

typedef struct agent_owner {
    agent_entry *entries;
    size_t len;
    size_t cap;
    uint32_t counts[A2A_STATES];
    uint32_t live;
    uint32_t refs; /* contexts */
    size_t head;   /* only holes before it */
    bool is_sorted;
    bay_str name; /* after this struct */
} agent_owner;

/* Most contexts have only the task that began them: then the context is part of that task, its id
 * is derived from the task's, and it is in no map until another task joins. */
typedef struct agent_context {
    agent_owner *owner;
    list tasks;
    bay_str id;
    bay_str key; /* length of the principal, principal, id; `at` NULL: part of its task */
    uint32_t refs;
} agent_context;

typedef struct agent_task {
    a2a_agent *of; /* NULL: the agent is freed, only its persister still refers to it */
    agent_context *context;
    list_link in_agent;
    list_link in_context;
    list_link in_terminal; /* of the agent's, the next to be removed first */
    list_link in_work;
    list_link in_failed; /* the last put failed */
    bay_str id;          /* after this struct, like the next one */
    bay_str ids;         /* "taskId":"…","contextId":"…" */
    uint64_t hash;       /* of the id, in the agent's map */
    uint32_t context_at; /* where "contextId" begins in `ids` */
    uint32_t room;       /* bytes for a text after this struct; 0: none, or used */
    a2a_state state;
    a2a_state placed_state; /* as counted by its owner */
    uint64_t status_ms;
    uint64_t order; /* 0: not in the order */
    uint64_t revision;
    uint64_t kept;
    uint64_t putting; /* revision of the current put; 0: none */
    uint64_t put;     /* revision of the last put that succeeded or is under way */
    uint64_t pushed;  /* events up to here were passed to the push sender */
    uint64_t dropped; /* events up to here cannot be replayed */
    agent_text *status;
    agent_text *memory;   /* the handler's own bytes; NULL: none */
    agent_text **history; /* first_texts, or an allocation */
    uint32_t history_count;
    uint32_t history_cap;
    agent_text *first_texts[2];
    agent_artifact *artifacts;
    uint32_t artifact_count;
    uint32_t artifact_cap;
    uint32_t config_count;
    uint32_t event_count;
    uint32_t subscriber_count;
    uint32_t waiting_count;
    uint32_t pins; /* callbacks on the stack that use it */
    size_t event_bytes;
    size_t bytes;
    list configs;
    list events; /* oldest first */
    list replies;
    list subscribers;
    a2a_turn *turn; /* the turn that the handler has */
    list waiting;   /* turns */
    list overflows;
    list gone; /* unreferenced overflows, until the persister has removed them */
    uint64_t last_overflow;
    agent_text *answer; /* the message that was sent instead of a task */
    uint32_t pass;      /* of a walk over replies or subscribers */
    a2a_event *snapshot;
    uint64_t snapshot_at; /* revision */
    bool is_open;
    bool has_streams; /* a client may reconnect for its events */
    bool is_placed_stale;
    bool is_removed;
    bool is_restored;  /* its turn is to be given to the handler again, or to fail */
    bool is_restoring; /* its stored content is restored regardless of the current limits */
    bool may_resume;
    agent_context own;
} agent_task;

/* A revision of a task that must be stored before a reply may be sent. */
typedef struct agent_wait {
    bay_str id;
    uint64_t revision;
} agent_wait;

/* The engine's state of a call that has not ended. */
typedef struct agent_reply {
    list_link link; /* replies or subscribers of its task */
    a2a_call *call;
    agent_task *task;
    a2a_turn *turn; /* until that has ended or asked for input; NULL: it has */
    /* A result. */
    char *held; /* written, and waits for `waits` */
    size_t held_len;
    agent_wait *waits;
    size_t wait_count;
    int64_t history_length; /* < 0: all */
    bool returns_at_once;
    /* A stream. */
    a2a_event *first; /* to be sent before anything else, once `first_at` is stored */
    uint64_t first_at;
    uint64_t sent; /* sequence */
    uint32_t pass;
    bool is_stream;
    bool is_send;         /* of a message: it may be repeated */
    bool ends_with_first; /* it comes after the question, which is all that can be sent */
    bool is_blocked;
    bool is_awaiting_task; /* nothing to read before its turn has opened the task */
    bool has_told;         /* the caller has received something */
    /* For deduplication. */
    struct agent_dedup_entry *seen;
} agent_reply;

/* A message that may be repeated. */
typedef struct agent_dedup_entry {
    list_link link;         /* of those that expire, the next first */
    uint64_t expires_at_ms; /* 0: while its call waits */
    uint64_t content;       /* hash; 0: any */
    uint32_t calls;         /* waiting for its answer */
    bool is_answered;
    bay_str task_id;
    bay_str key;
    char text[];
} agent_dedup_entry;

struct a2a_turn {
    uint32_t refs;
    a2a_agent *of;    /* NULL: freed */
    agent_task *task; /* NULL: removed, or never opened */
    list_link link;   /* of its task's waiting ones */
    list_link in_agent;
    json_doc *request;        /* after this struct, like the texts */
    agent_overflow *overflow; /* of the request; NULL: none */
    json_val message;
    bay_str task_id;
    bay_str context_id;
    const auth_principal *principal; /* counted */
    bay_str traceparent;
    bay_str tracestate;
    bay_str via; /* empty for a restored turn */
    bay_str extensions;
    bool is_new;
    bool is_resumed;
    bool is_canceled;
    bool is_begun;
    bool is_ended;
};

typedef struct agent_card {
    bay_str extended;
    arena memory;
    bool can_stream;
    bool can_push;
    bool has_extended;
    size_t extension_count;
    size_t mode_count;
    bay_str extensions[AGENT_EXTENSIONS];
    bay_str modes[AGENT_MODES]; /* accepted as input; none: any */
} agent_card;

struct a2a_agent {
    a2a_service service;
    a2a_agent_options options;
    a2a_agent_limits limits;
    agent_card card;
    map tasks;    /* by id */
    map contexts; /* by agent_context.key */
    map owners;   /* by name */
    map seen;     /* by agent_dedup_entry.key */
    list all;     /* tasks */
    list turns;   /* all that are referenced */
    list work;    /* marked tasks */
    list terminal;
    list failed;
    list events;   /* agent_event.in_agent, of all tasks, oldest first */
    list expiring; /* agent_dedup_entry */
    size_t event_bytes;
    size_t bytes;
    uint32_t task_count;
    uint32_t running;
    uint32_t depth;
    uint64_t last_ms;
    uint64_t last_order;
    uint64_t woken_at_ms; /* 0: no wake-up requested */
    uint64_t retry_at_ms;
    bool is_terminal_sorted;
    uint64_t cursor_seed[2];
    buf buffer;
    uint64_t told_ms; /* of told_time */
    char told_time[AGENT_TIME_BYTES];
    agent_owner *last_owner; /* the owner that was looked up last; NULL: none, or freed */
    char next_id[37];        /* of a task; "": none yet */
    uint64_t next_hash;
    size_t random_left;
    unsigned char random[AGENT_RANDOM_BYTES];
};

/* ---- agent.c */

void agent_enter(a2a_agent *self);
void agent_leave(a2a_agent *self);
uint64_t agent_now(a2a_agent *self);
void agent_wake_at(a2a_agent *self, uint64_t at_ms);
void agent_make_id(a2a_agent *self, char out[37]);
/* Of a task; returns its hash in the map. */
uint64_t agent_make_task_id(a2a_agent *self, char out[37]);
/* A buffer for writing an answer; return it soon. */
buf agent_buffer(a2a_agent *self);
void agent_buffer_back(a2a_agent *self, buf *buffer);

/* ---- agent_card.c */

bay_err agent_card_read(agent_card *self, json_val card, bay_str extended_card);
void agent_card_fini(agent_card *self);
/* BAY_OK or BAY_ERR_PROTOCOL with `fault`. */
bay_err agent_card_check_extensions(const agent_card *self, bay_str sent, a2a_fault *fault);
bay_err agent_card_check_parts(const agent_card *self, json_val parts, arena *memory,
                               a2a_fault *fault);

/* ---- agent_task.c */

/* The origin of the id of a new task's context. */
typedef enum agent_naming {
    AGENT_CONTEXT_GIVEN, /* a context with this id may exist */
    AGENT_CONTEXT_NEW,   /* it was just made */
    AGENT_CONTEXT_OWN,   /* … of the task's */
} agent_naming;

/* A task that is not open yet. `hash`: of its id, in the agent's map. `room`: bytes in its memory
 * for the message that begins it, as agent_task_receive needs them. BAY_ERR_BUSY: too many;
 * BAY_ERR_NOMEM. */
bay_err agent_task_new(a2a_agent *of, bay_str id, uint64_t hash, bay_str principal,
                       bay_str context_id, agent_naming naming, size_t room, agent_task **out);
/* The open task with this id, if it belongs to this principal; NULL otherwise. */
agent_task *agent_task_find(const a2a_agent *of, bay_str id, bay_str principal);
/* Removes it from everything; freed when the persister does not refer to it any more. Waiting calls
 * get `fault` (NULL: that it was removed). `is_for_good`: also from the persistence. */
void agent_task_remove(agent_task *self, const a2a_fault *fault, bool is_for_good);
static inline void agent_task_pin(agent_task *self)
{
    self->pins++;
}
void agent_task_unpin(agent_task *self); /* may free it, if it was removed meanwhile */
void agent_task_touch(agent_task *self); /* marks it for flushing */
/* Bytes that it may have. */
static inline size_t agent_task_most(const agent_task *self)
{
    return self->is_restoring ? SIZE_MAX / 4 : self->of->limits.task_bytes;
}
/* Reserves that many bytes, in the task and in all. Old tasks may be removed. BAY_ERR_LIMIT. */
bay_err agent_task_room(agent_task *self, size_t bytes);
void agent_task_count(agent_task *self, size_t more, size_t less);
/* Takes `text`, also on failure. */
bay_err agent_task_remember(agent_task *self, agent_text *text);
/* Adds a client's message, in normal form, to the history with the task's ids. `has_ids`: it may
 * have ids already. */
bay_err agent_task_receive(agent_task *self, json_val message, bool has_ids);
/* The only function that changes a state. `message` (may be NULL) is taken, also on failure. */
bay_err agent_task_set_state(agent_task *self, a2a_state state, agent_text *message,
                             bay_str metadata);
/* From now on others may know of it. */
bay_err agent_task_open(agent_task *self);
void agent_task_evict(a2a_agent *of, uint64_t now_ms);
bool agent_state_may_follow(a2a_state from, a2a_state to);

/* ---- agent_artifact.c */

bay_err agent_artifact_add(agent_task *self, json_val artifact, bool append, bool is_last_chunk);
void agent_artifact_fini(agent_artifact *self);

/* ---- agent_order.c: tasks by caller, by context, by time of change */

/* The id of the context that a task begins: another UUID, derived from the task's. False: the
 * task's id is not a UUID. */
bool agent_context_name(bay_str task_id, char out[36]);
/* The task's context, with this id and caller. BAY_ERR_NOMEM. */
bay_err agent_context_join(agent_task *task, bay_str principal, bay_str id, agent_naming naming);
agent_context *agent_context_find(a2a_agent *of, bay_str principal, bay_str id); /* no reference */
agent_owner *agent_owner_find(a2a_agent *of, bay_str principal);
void agent_context_drop(a2a_agent *of, agent_context *self);
/* Reserves a place for one more task, so that placing cannot fail. */
bay_err agent_order_reserve(agent_owner *self);
/* As the newest of its owner and context. `order` 0: by its time. */
void agent_order_place(agent_task *self, uint64_t order);
void agent_order_leave(agent_task *self);
void agent_order_sort(agent_owner *self);
/* Index of the first entry with this order or a later one. */
size_t agent_order_seek(const agent_owner *self, uint64_t order);

static inline bool agent_task_is_kept(const agent_task *self, uint64_t revision)
{
    return self->of->options.persistence == NULL || self->kept >= revision;
}
/* Whether its events have readers. */
static inline bool agent_task_has_readers(const agent_task *self)
{
    return self->has_streams || self->config_count > 0;
}

agent_text *agent_text_new(bay_str json);
agent_text *agent_text_ref(agent_text *self);
void agent_text_unref(agent_text *self);
static inline bay_str agent_text_view(const agent_text *self)
{
    return self != NULL ? (bay_str){self->at, self->len} : (bay_str){"", 0};
}

/* ---- agent_event.c */

/* Adds the newest event of a task, from its StreamResponse; its sequence is the task's revision. */
bay_err agent_event_add(agent_task *self, bay_str json, bool is_last);
void agent_event_take(agent_task *self, agent_event *event); /* in order, counted */
void agent_event_drop(agent_event *self);
/* It is stored and stays only for clients that reconnect: the oldest of these are dropped first. */
void agent_event_release(agent_task *self);
/* The first event after `sequence`; NULL: none. */
agent_event *agent_event_after(const agent_task *self, uint64_t sequence);
/* The current task, as the first event of a stream; made once and shared by all that want the whole
 * history. The caller's reference. NULL: out of memory. */
a2a_event *agent_event_snapshot(agent_task *self, int64_t history_length);
/* A separate one, after which streams end. */
a2a_event *agent_event_last_snapshot(agent_task *self, int64_t history_length);
void agent_event_forget_snapshot(agent_task *self);

/* ---- agent_write.c */

void agent_write_time(buf *out, uint64_t ms);
bool agent_read_time(bay_str text, uint64_t *out_ms);
/* history_length < 0: all. */
void agent_write_task(const agent_task *self, int64_t history_length, bool with_artifacts,
                      buf *out);
/* As in its row: without what is in blocks. */
void agent_write_kept_task(const agent_task *self, buf *out);
void agent_write_status_event(const agent_task *self, bay_str metadata, buf *out);
void agent_write_artifact_event(const agent_task *self, bay_str artifact, bool append,
                                bool is_last_chunk, buf *out);
/* A Message of the agent, from its handler's value. `ids`: the task's, or those after context_at.
 * BAY_ERR_INVALID. */
bay_err agent_write_message(a2a_agent *self, json_val message, bay_str ids, buf *out);
/* The same with one text part. BAY_ERR_INVALID: too long for a part. */
bay_err agent_write_text(a2a_agent *self, bay_str text, bay_str ids, buf *out);
/* A Message of a client, with its new ids in place of its own. */
void agent_write_received(json_val message, bool has_ids, bay_str ids, buf *out);
/* The most bytes that this needs, as an agent_text. */
size_t agent_received_bytes(json_val message, size_t ids_bytes);

/* ---- agent_reply.c: calls */

agent_reply *agent_reply_new(a2a_call *call, agent_task *task); /* NULL: the call has failed */
void agent_fail(a2a_call *call, a2a_error error, const char *format, ...) BAY_PRINTF(3, 4);
void agent_fail_err(a2a_call *call, bay_err err);
void agent_result(a2a_call *call, buf *out); /* or the error in the buffer */
bay_err agent_history_length(json_val value, const char *place, int64_t *out, a2a_fault *fault);
void agent_reply_fail(agent_reply *self, const a2a_fault *fault);
void agent_reply_fail_err(agent_reply *self, bay_err err);
/* Adds it to those that wait for its task, or to its subscribers. */
void agent_reply_join(agent_reply *self);
/* Answers with the current task when that is stored. */
void agent_reply_with_task(agent_reply *self);
/* Sends `out` (cleared) when all that it waits for is stored. */
void agent_reply_hold(agent_reply *self, buf *out, agent_wait *waits, size_t count);
/* Makes the current task its first event. BAY_ERR_NOMEM. */
bay_err agent_stream_snapshot(agent_reply *self);
/* The task was just opened: subscribers that want less of the history get a first event of their
 * own. */
void agent_stream_opened(agent_task *task);
void agent_stream_deliver(agent_task *task);
void agent_reply_gone(a2a_agent *self, a2a_call *call);
void agent_reply_drained(a2a_agent *self, a2a_call *call);

/* Walks the replies that wait for it. */
void agent_replies_flush(agent_task *task);
/* The turn has ended: calls that wait for it are answered. */
void agent_replies_release(agent_task *task, const a2a_turn *turn);
/* The turn will never begin. */
void agent_replies_fail_turn(agent_task *task, const a2a_turn *turn, const a2a_fault *fault);
/* Their next event cannot be stored. */
void agent_replies_fail_unkept(agent_task *task, const a2a_fault *fault);

/* ---- agent_flush.c */

void agent_flush(agent_task *self);
/* The fault of a task that could not be stored. */
void agent_fault_of(a2a_fault *fault, bay_err err);

/* ---- agent_turn.c */

/* Parts of the request beside its params; copied. */
typedef struct agent_turn_fields {
    const auth_principal *principal; /* the turn takes a reference */
    bay_str traceparent;
    bay_str tracestate;
    bay_str extensions;
    bay_str via;
} agent_turn_fields;
bay_err agent_turn_new(a2a_agent *of, agent_task *task, json_val request,
                       const agent_turn_fields *fields, a2a_turn **out);
/* BAY_ERR_NOMEM, BAY_ERR_LIMIT: its task cannot continue; the handler was not called. */
bay_err agent_turn_begin(a2a_turn *self);
void agent_turn_cancel(a2a_turn *self);
/* From now on its moves have no effect. */
void agent_turn_forget(a2a_turn *self);
void agent_turn_close(a2a_turn *self); /* the agent is freed */

/* ---- agent_dedup.c: messages that come again */

agent_dedup_entry *agent_dedup_find(a2a_agent *self, bay_str principal, bay_str message_id,
                                    uint64_t content);
uint64_t agent_dedup_content(json_val message);
void agent_dedup_add(a2a_agent *self, agent_reply *reply);
void agent_dedup_join(agent_reply *reply, agent_dedup_entry *seen);
void agent_dedup_restore(agent_task *task, bay_str message_id);
/* Its call has ended: with an answer, or without one. */
void agent_dedup_leave(a2a_agent *self, agent_reply *reply, bool is_answered);
void agent_dedup_expire(a2a_agent *self, uint64_t now_ms);
void agent_dedup_fini(a2a_agent *self);

/* ---- the methods */

void agent_send(a2a_agent *self, a2a_call *call);
void agent_get(a2a_agent *self, a2a_call *call);
void agent_cancel(a2a_agent *self, a2a_call *call);
void agent_list(a2a_agent *self, a2a_call *call);
void agent_subscribe(a2a_agent *self, a2a_call *call);
void agent_create_config(a2a_agent *self, a2a_call *call);
void agent_get_config(a2a_agent *self, a2a_call *call);
void agent_list_configs(a2a_agent *self, a2a_call *call);
void agent_delete_config(a2a_agent *self, a2a_call *call);
void agent_extended_card(a2a_agent *self, a2a_call *call);

/* ---- agent_push.c */

/* Adds or replaces. BAY_ERR_PROTOCOL with `fault`, BAY_ERR_NOMEM. */
bay_err agent_config_add(agent_task *task, a2a_call *call, json_val config, agent_config **out,
                         a2a_fault *fault);
bay_err agent_config_restore(agent_task *task, json_val config, a2a_form form);
void agent_config_free(agent_config *self);
void agent_push_events(agent_task *task);

/* ---- agent_overflow.c: what is kept apart from the row */

/* A place in the whole text that came from a block. */
typedef struct agent_link {
    size_t at;
    uint64_t overflow;
    size_t place; /* of a text */
    uint32_t blocks;
    size_t cut; /* of an artifact; 0: a text's */
} agent_link;

void agent_overflow_unref(agent_overflow *self); /* NULL is allowed */
/* Whether the row has only its name. */
static inline bool agent_overflow_is_apart(const agent_overflow *self)
{
    return self != NULL && self->blocks > 0;
}
bool agent_overflow_are_apart(const agent_task *self); /* any of them */
/* The changes of the next put: new blocks, removed overflows. */
typedef struct agent_cut {
    a2a_overflow_block *blocks;
    size_t count;
    size_t cap;
    uint64_t *gone;
    size_t gone_count;
    buf texts; /* of the new blocks */
    bay_err err;
} agent_cut;
/* Without memory nothing new is moved to blocks, and the row is longer. */
void agent_cut_make(agent_task *self, agent_cut *out);
void agent_cut_fini(agent_cut *self);
/* The put has ended. */
void agent_cut_flush(agent_task *self, bool is_kept);
void agent_overflow_drop(agent_task *self); /* the task is removed */
/* Restores one that the persister has; the caller's reference. BAY_ERR_SYNTAX: it is used already;
 * BAY_ERR_NOMEM. */
bay_err agent_overflow_restore(agent_task *self, const agent_link *from, agent_overflow **out);
/* Overflows that were not restored are removed with the next put. */
bay_err agent_overflow_forget(agent_task *self, const a2a_overflow_block *blocks, size_t count);

/* ---- agent_row_join.c: a row with its blocks, made whole */

/* Writes the places of what is in blocks. */
void agent_write_parts(const agent_artifact *artifact, buf *out); /* what is in the row */
void agent_write_place(const agent_overflow *overflow, size_t place, uint32_t count, buf *out);

typedef struct agent_row_join {
    buf text; /* empty: the row was whole */
    agent_link *links;
    size_t count;
    size_t cap;
} agent_row_join;
/* BAY_ERR_SYNTAX: a block is missing, or is not what the row refers to. */
bay_err agent_row_join_make(const a2a_kept_task *from, agent_row_join *out);
void agent_row_join_fini(agent_row_join *self);
const agent_link *agent_row_join_find(const agent_row_join *self, const char *at); /* NULL: none */

/* ---- agent_row.c */

void agent_write_row(const agent_task *self, buf *out);
void agent_sort_terminal(a2a_agent *self);

#endif
