/* The effects of a task's changes, after the outermost call has left the engine: the persister gets
 * the task, and confirmed changes are sent. */
#include "a2a/agent_internal.h"
#include "base/err.h"
#include "base/mem.h"

enum { PUT_EVENTS = 64 }; /* without an allocation of their own */

/* ---- keeping */

static void put_failed(agent_task *self, bay_err err)
{
    a2a_agent *of = self->of;
    a2a_fault fault;
    agent_fault_of(&fault, err);
    if (fault.error == A2A_E_INTERNAL) {
        err_ignore(a2a_fault_set(&fault, A2A_E_INTERNAL,
                                 "the task cannot be stored just now (%s); try again later",
                                 bay_err_text(err)));
    }
    if (self->kept == 0) {
        agent_task_remove(self, &fault, true);
        return;
    }
    self->put = self->kept;
    agent_replies_fail_unkept(self, &fault);
    if (!self->is_removed && !list_holds(&self->in_failed)) {
        list_push(&of->failed, &self->in_failed);
        of->retry_at_ms = agent_now(of) + AGENT_RETRY_MS;
        agent_wake_at(of, of->retry_at_ms);
    }
}

static void kept(void *user, bay_err err)
{
    agent_task *self = user;
    a2a_agent *of = self->of;
    uint64_t revision = self->putting;
    self->putting = 0;
    if (of == NULL) {
        mem_free(self);
        return;
    }
    agent_enter(of);
    agent_task_pin(self);
    if (!self->is_removed) {
        agent_cut_flush(self, err == BAY_OK);
    }
    if (!self->is_removed && err == BAY_OK) {
        self->kept = revision;
        agent_task_touch(self);
    } else if (!self->is_removed) {
        put_failed(self, err);
    }
    agent_task_unpin(self);
    agent_leave(of);
}

/* The events that the persister does not have, in order. */
static bay_err collect(const agent_task *self, a2a_event **small, a2a_event ***out, size_t *count)
{
    size_t len = 0;
    agent_event *first = agent_event_after(self, self->put);
    for (list_link *link = first != NULL ? &first->in_task : NULL;
         link != NULL && link != &self->events.head; link = link->next) {
        len++;
    }
    a2a_event **events = len <= PUT_EVENTS ? small : mem_array(len, sizeof(a2a_event *));
    if (events == NULL) {
        return BAY_ERR_NOMEM;
    }
    list_link *link = first != NULL ? &first->in_task : NULL;
    for (size_t i = 0; i < len; i++, link = link->next) {
        events[i] = CONTAINER_OF(link, agent_event, in_task)->event;
    }
    *out = events;
    *count = len;
    return BAY_OK;
}

static void put(agent_task *self)
{
    a2a_agent *of = self->of;
    a2a_persistence *persistence = of->options.persistence;
    if (persistence == NULL || !self->is_open || self->putting != 0 ||
        self->put == self->revision || list_holds(&self->in_failed)) {
        return;
    }
    a2a_event *small[PUT_EVENTS];
    a2a_event **events = small;
    size_t count = 0;
    agent_cut cut;
    agent_cut_make(self, &cut);
    buf row = agent_buffer(of);
    agent_write_row(self, &row);
    bay_err err = row.err == BAY_OK ? collect(self, small, &events, &count) : row.err;
    if (err == BAY_OK) {
        const a2a_put all = {.id = self->id,
                             .row = buf_view(&row),
                             .blocks = cut.blocks,
                             .block_count = cut.count,
                             .gone = cut.gone,
                             .gone_count = cut.gone_count,
                             .events = events,
                             .event_count = count,
                             .has_events = agent_task_has_readers(self),
                             .has_blocks = agent_overflow_are_apart(self)};
        self->putting = self->put = self->revision;
        err = persistence->ops->put(persistence, &all, kept, self);
        if (err != BAY_OK) {
            self->putting = 0;
        }
    }
    if (err != BAY_OK) {
        agent_cut_flush(self, false);
    }
    if (events != small) {
        mem_free(events);
    }
    agent_cut_fini(&cut);
    agent_buffer_back(of, &row);
    if (err != BAY_OK && !self->is_removed) {
        put_failed(self, err);
    }
}

/* ---- what the task itself needs */

/* The rest of its turn cannot be processed now; the next tick tries again. */
static void try_later(agent_task *self)
{
    a2a_agent *of = self->of;
    if (!list_holds(&self->in_failed)) {
        list_push(&of->failed, &self->in_failed);
        of->retry_at_ms = agent_now(of) + AGENT_RETRY_MS;
        agent_wake_at(of, of->retry_at_ms);
    }
}

static agent_text *say(agent_task *self, const char *words)
{
    buf out = agent_buffer(self->of);
    bay_err err = agent_write_text(self->of, str_of(words), self->ids, &out);
    agent_text *text = err == BAY_OK ? agent_text_new(buf_view(&out)) : NULL;
    agent_buffer_back(self->of, &out);
    return text;
}

/* No turn and no open question: without this the task would never end. */
static void agent_flush_give_up(agent_task *self)
{
    const char *words = self->is_restored ? "the agent was stopped while it worked on this task"
                                          : "the handler ended without an answer";
    agent_text *text = NULL;
    bay_err err = agent_task_open(self);
    if (err == BAY_OK) {
        text = say(self, words);
        err = text != NULL ? agent_task_set_state(self, A2A_FAILED, text, (bay_str){NULL, 0})
                           : BAY_ERR_NOMEM;
    }
    if (err != BAY_OK && self->is_open) {
        try_later(self);
    } else if (err != BAY_OK) {
        a2a_fault fault;
        agent_fault_of(&fault, err);
        agent_task_remove(self, &fault, true);
    }
}

static void begin_next(agent_task *self)
{
    a2a_turn *next = CONTAINER_OF(list_first(&self->waiting), a2a_turn, link);
    bay_err err = agent_turn_begin(next);
    if (err != BAY_OK) {
        a2a_fault fault;
        agent_fault_of(&fault, err);
        agent_replies_fail_turn(self, next, &fault);
        agent_turn_forget(next);
        agent_task_touch(self);
    }
}

static void drop_waiting(agent_task *self)
{
    if (list_is_empty(&self->waiting)) {
        return;
    }
    a2a_fault fault;
    err_ignore(a2a_fault_set(&fault, A2A_E_UNSUPPORTED_OPERATION,
                             "the task ended before this message was read"));
    for (list_link *link; (link = list_first(&self->waiting)) != NULL;) {
        a2a_turn *turn = CONTAINER_OF(link, a2a_turn, link);
        agent_replies_fail_turn(self, turn, &fault);
        agent_turn_forget(turn);
    }
}

static bool wants_opening(const agent_task *self)
{
    LIST_EACH(link, &self->replies)
    {
        if (CONTAINER_OF(link, agent_reply, link)->returns_at_once) {
            return true;
        }
    }
    return false;
}

static void flush_turns(agent_task *self)
{
    bool is_idle = self->turn == NULL && self->answer == NULL;
    if (a2a_state_is_terminal(self->state)) {
        drop_waiting(self);
    } else if (is_idle && !list_is_empty(&self->waiting)) {
        begin_next(self);
    } else if (is_idle && !a2a_state_is_interrupted(self->state)) {
        agent_flush_give_up(self);
    } else if (!self->is_open && self->answer == NULL && wants_opening(self) &&
               agent_task_open(self) != BAY_OK) {
        a2a_fault fault;
        agent_fault_of(&fault, BAY_ERR_NOMEM);
        agent_task_remove(self, &fault, true);
    }
}

void agent_flush(agent_task *self)
{
    agent_task_pin(self);
    flush_turns(self);
    if (!self->is_removed && self->is_placed_stale) {
        agent_order_place(self, 0);
    }
    if (!self->is_removed) {
        put(self);
    }
    if (!self->is_removed) {
        agent_replies_flush(self);
    }
    if (!self->is_removed) {
        agent_stream_deliver(self);
    }
    if (!self->is_removed) {
        agent_push_events(self);
    }
    if (!self->is_removed) {
        agent_event_release(self);
        if (self->answer != NULL && self->turn == NULL && list_is_empty(&self->subscribers)) {
            agent_task_remove(self, NULL, true);
        }
    }
    agent_task_unpin(self);
}
