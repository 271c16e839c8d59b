/* What one face remembers of tasks, all of it bounded.
 *
 *   note    a task of a client of 2025-11-25: what tasks/list shows of it; and the result itself
 *           where its server knows of no tasks, or answered at once
 *   holder  tasks/result of a server of 2025-11-25, kept open because only there it asks: its
 *           questions wait for tasks/get and tasks/update of a stateless client
 *
 * Notes belong to an identity (a session, or a principal without one) and end with their ttl; where
 * an identity has too many, its oldest goes. Nobody's notes make another's go. */
#ifndef TASKS_BOOK_H
#define TASKS_BOOK_H

#include "base/map.h"
#include "net/loop.h"
#include "tasks/shape.h"
#include "upstream/upstream.h"

enum {
    TASK_NOTES = 10000,           /* of a face: a further task is not listed, a result not kept */
    TASK_NOTES_EACH = 256,        /* of one identity: its oldest goes */
    TASK_NOTE_BYTES = 8 * 1024,   /* of a task as it is listed; a longer one is not */
    TASK_KEPT_BYTES = 64 << 20,   /* results kept, of a face */
    TASK_KEPT_EACH = 16 << 20,    /* of one identity: its oldest goes */
    TASK_TTL_MS = 60 * 60 * 1000, /* of a note whose task names none … */
    TASK_MAX_TTL_MS = 24 * 3600 * 1000, /* … and the longest */
    TASK_LIST_PAGE = 100,
    TASK_HOLDERS = 10000,          /* of a face: a further task shows no questions */
    TASK_QUESTIONS = 64,           /* open at once, of one task; further ones are refused */
    TASK_QUESTION_BYTES = 4 << 20, /* of one task's open questions */
    TASK_ANSWER_BYTES = 64 << 20,  /* of one answer: the server hears that it is too long */
    TASK_FAREWELLS = 1024,         /* cancels on their way to servers */
    TASK_TICK_MS = 1000,
};

typedef struct task_owner task_owner;

typedef struct task_note {
    list_link by_owner; /* oldest first */
    list_link by_age;
    task_owner *owner;
    bay_str token;          /* the key; stands behind the struct */
    uint64_t number;        /* in the order of making */
    uint64_t expires_at_ms; /* wall clock */
    char *shown;            /* the Task as 2025-11-25 says it, raw */
    uint32_t shown_len;
    bool is_cancelled; /* told so: it stays so */
    bool is_own;       /* the gateway has the result itself */
    bool is_failure;   /* `kept` is an error object */
    char *kept;
    size_t kept_len;
    uint64_t progress_of; /* the server's token of the call that began it; 0 */
    char *progress_token; /* the client's, raw */
} task_note;

struct task_owner {
    list notes;
    size_t count;
    size_t kept_bytes;
    size_t len;
    char identity[];
};

typedef struct task_question {
    list_link link;
    bay_str key; /* in inputRequests */
    bay_str id;  /* raw, the server's */
    bay_str method;
    bay_str params; /* raw */
    char bytes[];
} task_question;

typedef struct task_book task_book;

/* Somebody who waits for the first question. */
typedef struct task_waiter {
    list_link link;
    uint64_t until_ms;
    void (*wake)(struct task_waiter *self); /* once; it is in no list any more */
} task_waiter;

typedef struct task_holder {
    list_link link;
    task_book *book;
    bay_str token;
    upstream_call call; /* tasks/result */
    arena memory;
    json_doc params_doc;
    unsigned inputs; /* what its client can be asked */
    list questions;
    size_t question_count;
    size_t question_bytes;
    list waiters;
    uint64_t until_ms; /* nobody has looked at it until then: it goes */
    uint64_t salt;     /* keys are never used twice, not even by another holder of the task */
    uint32_t last_key;
    uint32_t hold; /* > 0: somebody still looks at it */
    bool has_ended;
} task_holder;

struct task_book {
    loop *loop; /* may be NULL: nothing is timed */
    uint32_t answer_ms;
    map notes; /* by token */
    map owners;
    map holders; /* by token */
    list by_age;
    list farewells;
    size_t farewell_count;
    size_t kept_bytes;
    uint64_t last_note;
    loop_timer tick;
};

bay_err task_book_new(loop *on, uint32_t answer_ms, task_book **out) BAY_MUST_CHECK;

void task_book_free(task_book *self); /* NULL is fine */

/* Notes. `shown` and `kept` are copied. BAY_LIMIT, BAY_NOMEM. */
bay_err task_note_add(task_book *self, bay_str identity, bay_str token, uint64_t ttl_ms,
                      uint64_t now_ms, task_note **out) BAY_MUST_CHECK;
bay_err task_note_show(task_note *self, bay_str shown) BAY_MUST_CHECK;
bay_err task_note_follow(task_note *self, uint64_t progress_of,
                         bay_str progress_token) BAY_MUST_CHECK;
bay_err task_note_keep(task_book *self, task_note *note, bay_str kept,
                       bool is_failure) BAY_MUST_CHECK;
void task_note_remove(task_book *self, task_note *note);
/* NULL: none of that token that `identity` may see. */
task_note *task_note_find(const task_book *self, bay_str identity, bay_str token);
/* Those whose time is over go. Units: ms since 1970. */
void task_book_expire(task_book *self, uint64_t now_ms);
/* Members of a tasks/list result: the page after `cursor`. BAY_INVALID: no cursor of ours. */
bay_err task_book_list(const task_book *self, bay_str identity, json_val cursor,
                       buf *out) BAY_MUST_CHECK;

/* Its clock runs while there is anything to expire. */
void task_book_wake(task_book *self);

/* holder.c */
task_holder *task_holder_find(const task_book *self, bay_str token); /* NULL: none */
/* Opens tasks/result of the server's task `id`. BAY_LIMIT, BAY_NOMEM; BAY_CLOSED: it ended at once.
 */
bay_err task_holder_open(task_book *self, bay_str token, bay_str id, upstream *to,
                         const upstream_affinity *affinity, uint64_t now_ms,
                         task_holder **out) BAY_MUST_CHECK;
/* A client still comes by. */
void task_holder_look(task_holder *self, unsigned inputs, uint64_t now_ms);
void task_holder_wait(task_holder *self, task_waiter *waiter, uint64_t until_ms);
/* Writes the member inputRequests. */
void task_holder_write(const task_holder *self, json_writer *out);
/* Answers from `responses`; those that fit nothing are ignored. */
void task_holder_answer(task_holder *self, json_val responses);
void task_holders_expire(task_book *self, uint64_t now_ms);

/* tasks/cancel that nobody waits for. */
void task_farewell_send(task_book *self, upstream *to, bay_str id,
                        const upstream_affinity *affinity);
void task_farewells_end(task_book *self);

#endif
