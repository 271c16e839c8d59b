/* The inside of a bay_call: what it holds, whom it answers to, what it asks. Shared by the sdk's
 * server files only.
 *
 *   started ──ended by its handler──► delivered: the request is gone, the call soon is
 *      │  └──deferred, or questions open──► waiting ──ended, or every `answered` has run──► …
 *      └──parted: the client has its answer (time ran out, another round is needed, …), while the
 *         handler still owns the call; what it does from then on reaches nobody
 *
 * A call is counted: the engine's side holds one reference until the call is delivered, a turn of
 * its handler or of its answers holds one. The request behind it lives until the call is delivered,
 * so its views stay good while any thread still works on the call. */
#ifndef SDK_CALL_PARTS_H
#define SDK_CALL_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "mcp/server.h"
#include "net/loop.h"
#include "patchbay/server.h"
#include "schema/schema.h"
#include "sdk/format.h"
#include "sdk/json_parts.h"

enum {
    CALL_MAX_NOTES = 1024,         /* messages of one call on their way to the loop ... */
    CALL_MAX_NOTE_BYTES = 4 << 20, /* ... and their bytes; what is above is dropped */
    CALL_MAX_QUESTIONS = 64,       /* open at once; further ones are not asked */
    CALL_MAX_KEY = 128,            /* bytes of a question's key */
    CALL_MAX_STATE = 16 << 10,     /* bytes of bay_call_remember */
    CALL_MAX_ANSWER = 64 << 20,    /* memory of one question and its answer */
    CALL_MAX_QUESTION = 4 << 20,   /* bytes of the params of one question */
};

typedef enum note_kind {
    NOTE_RESULT, /* members of the result */
    NOTE_OBJECT, /* the whole result */
    NOTE_ERROR,
    NOTE_NOT_FOUND,
    NOTE_PROGRESS,
    NOTE_LOG,
    NOTE_ELICITATION_COMPLETE,
    NOTE_TASK_STATUS, /* words on what it is doing */
    NOTE_RELEASE,     /* of the stream */
} note_kind;

/* How a call ended, or a message of it. Views; those of an answer stand in the call or are lent. */
typedef struct call_note {
    note_kind kind;
    int code;        /* NOTE_ERROR */
    double progress; /* NOTE_PROGRESS; NOTE_RELEASE: ms */
    bay_str text;    /* members, an error's message, a notification's members or params */
    bay_str meta;    /* NOTE_RESULT: members of its _meta */
    json_val value;  /* NOTE_OBJECT: an object; NOTE_ERROR: its data, or missing */
} call_note;

typedef enum question_kind {
    QUESTION_FORM,
    QUESTION_URL,
    QUESTION_SAMPLE,
    QUESTION_ROOTS,
} question_kind;

typedef enum question_state {
    QUESTION_NEW,   /* nobody looked at it yet */
    QUESTION_OPEN,  /* without an answer, and the client can only be asked by rounds */
    QUESTION_ASKED, /* the client works on it */
    QUESTION_READY, /* its `answered` may run */
} question_state;

typedef struct question {
    list_link link;
    bay_call *call;
    question_kind kind;
    question_state state; /* loop only, once it is no longer new */
    bay_err err;          /* READY: why there is no answer; BAY_OK: `answer` is one */
    bay_str key;
    json_val params;
    json_val wanted; /* FORM: the requestedSchema; missing before it is compiled */
    schema *form;    /* FORM: its requestedSchema */
    bool has_table;  /* FORM: of a table, whose defaults are applied */
    json_val answer; /* the client's result */
    bay_answered_fn answered;
    void *user;
    arena memory; /* of all of the above */
} question;

typedef struct question_key {
    list_link link;
    bay_str text;
    char bytes[];
} question_key;

/* Where a call's answer, messages and questions go: to the request that it serves. Loop only. */
typedef struct call_sink {
    /* The last word: the request is gone afterwards. */
    void (*answer)(bay_call *call, const call_note *note);
    /* The same while the call is still somebody's: its request stays, cancelled. */
    void (*part)(bay_call *call, const call_note *note);
    /* BAY_ERR_AGAIN: taken, and the client is slow. */
    bay_err (*message)(bay_call *call, const call_note *note);
    /* Finds an answer to a new question, or somebody to give one: sets its state. */
    void (*ask)(bay_call *call, question *one);
    /* The handler and what was answered have run, and questions are OPEN: ends this run. */
    void (*pause)(bay_call *call);
} call_sink;

extern const call_sink sdk_request_sink; /* delivery.c */

struct bay_call {
    atomic_int references;
    atomic_bool is_cancelled;
    atomic_bool is_finished; /* ended; earlier messages may still be on their way to the loop */
    atomic_bool is_slow;     /* the client does not keep up: nothing but the answer is sent */
    atomic_bool is_deferred;
    atomic_bool is_task;     /* or is becoming one: it has a task's time */
    atomic_bool is_becoming; /* one, as soon as the loop hears of it */
    atomic_size_t notes;     /* on their way to the loop */
    atomic_size_t note_bytes;
    bool is_delivered; /* loop only: the answer is with the sink, the request is gone */
    bool is_parted;    /* loop only: see above */
    bool is_running;   /* loop only: its handler or an answer is being run, or will be */
    bay_call *next_idle;
    bay_server *server;
    const struct bay_tool *entry;
    const call_sink *sink;
    mcp_request *request;
    json_val arguments;
    arena memory;          /* decoded strings: the thread that has the call */
    bay_document document; /* of the arguments, once they are read as values */
    /* Time: see deadline.c. */
    uint64_t started_ms;
    loop_timer timer;
    /* Questions: see question.c. Those just asked, counts and flags are guarded by the server's
     * lock; `questions` is the loop's, or that of the answers while they run. */
    list asked;
    list questions;
    list answering;       /* READY ones whose `answered` is being run */
    list keys;            /* of all questions of this run */
    uint32_t asked_count; /* in all: the number of the next one */
    uint32_t open_count;
    question free_list[2]; /* without memory: one being answered, and one that asks in its place */
    bool is_woken;         /* `wake` is on its way */
    bool has_lost;         /* a question, for lack of memory */
    bool is_short;         /* loop only: the same */
    loop_message wake;
    bay_str next_key; /* in key_bytes */
    char key_bytes[CALL_MAX_KEY];
    /* Rounds: see mrtr_state.c. NULL: neither answers nor state came with the request. */
    struct call_round *round;
    buf answered; /* "key":answer,… of this run: they travel with the next round */
    buf state;    /* the handler's own bytes: its thread's; the server's lock guards writing them */
    /* Tasks: see task_parts.h. The id is the handler's thread's, the rest the loop's. */
    char task_id[36]; /* "": none */
    struct task *task;
    loop_message begin_task;
    /* The answer of another thread, on its way to the loop without allocating. */
    loop_message message;
    call_note answer;
    buf answer_bytes;       /* what `answer` points into, unless that is static … */
    json_doc *answer_value; /* … and its value; NULL: none */
};

/* call.c */
bay_err sdk_call_new(bay_server *server, const struct bay_tool *entry, mcp_request *request,
                     bay_call **out) BAY_MUST_CHECK;
void sdk_call_run(bay_call *self);
void sdk_call_unref(bay_call *self);
void sdk_calls_free(bay_server *server);
bool sdk_call_on_loop(const bay_call *self);
/* Loop only: the handler or an answer has returned; takes the run's reference. Runs what was
 * answered, and settles the call when nothing is left to run. */
void sdk_call_returned(bay_call *self);

/* An empty buffer: on the loop with memory that was used before, which is returned there. */
void sdk_buf_borrow(bay_call *call, buf *out);
void sdk_buf_return(bay_server *server, buf *used); /* on the loop only */

/* call.c: what the handler gives as JSON. Otherwise the log says what is wrong with `what`, and of
 * which tool. Errors: as sdk_json_val. */
bay_err sdk_call_json(const bay_call *call, const char *what, bay_json *json, json_kind wanted,
                      json_val *out) BAY_MUST_CHECK;

/* delivery.c */
/* Sends it, from any thread, exactly once; the call is gone afterwards, and a large result is empty.
 * NULL: no memory. */
void sdk_call_send(bay_call *call, bay_result *result);
/* Loop only: the client gets this instead of what the handler may still say; what it was asked is
 * answered by nobody. The caller holds a reference, or the call may be gone afterwards. */
void sdk_call_give_up(bay_call *call, const call_note *note);
/* Loop only: it is the client's turn, and this run is over. Ends the call, or parts it from the
 * thread that it was deferred to. */
void sdk_call_pass(bay_call *call, const call_note *note);

/* What is asked, and who gets the answer. */
typedef struct call_question {
    question_kind kind;
    bool has_table; /* of a form: its defaults are applied */
    bay_answered_fn answered;
    void *user;
} call_question;
/* question.c: from a handler's thread, with the params in `made`, which is dropped. `err`: why it
 * cannot be asked; its `answered` runs all the same. */
void sdk_call_ask(bay_call *call, const call_question *what, json_builder *made, bay_err err);

/* question.c: loop only. */
/* Collects what was asked, and finds answers or somebody to give them; is anything READY? */
bool sdk_call_questions_pending(bay_call *call);
/* Runs `answered` of all that is READY. False: on the pool, and sdk_call_returned follows. */
bool sdk_call_questions_answer(bay_call *call);
/* What is OPEN is answered by nobody: READY. */
void sdk_call_questions_cancel(bay_call *call);
void sdk_call_questions_forget(bay_call *call); /* the call has ended */
bool sdk_call_questions_has(const bay_call *call, question_state state);
/* Does this result fit the question? BAY_OK; BAY_ERR_PROTOCOL: no. BAY_ERR_NOMEM. */
bay_err sdk_call_question_check(question *one, json_val result) BAY_MUST_CHECK;
/* The client's result, which has been checked, or why there is none, to a question of whatever
 * state. */
void sdk_call_question_answered(question *self, bay_err err, json_val result);
const mcp_method *sdk_call_question_method(const question *one);
/* "KEY":{"method":…,"params":…}, into an open object. */
void sdk_call_question_put(const question *self, json_writer *out);

/* mrtr_state.c: loop only. What travels with a client between two rounds. */
/* Reads inputResponses and requestState of a request; on false it was refused. */
bool sdk_call_round_open(bay_call *call);
/* Answers the question with what came in this round or an earlier one; else it is OPEN. */
void sdk_call_round_ask(bay_call *call, question *one);
/* The input_required result for all open questions, appended. BAY_ERR_LIMIT: too many rounds or too
 * much to carry; BAY_ERR_UNSUPPORTED: nothing can be sealed; BAY_ERR_NOMEM. */
bay_err sdk_call_round_write(bay_call *call, json_writer *out) BAY_MUST_CHECK;
struct rounds;
void sdk_mrtr_state_free(struct rounds *self);

/* deadline.c: loop only. */
void sdk_deadline_start(bay_call *call);
void sdk_deadline_stop(bay_call *call);

#endif
