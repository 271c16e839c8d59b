/* Calls without an answer: results that wait for a turn or for the persistence, and streams. */
#include <stdarg.h>
#include <stdio.h>

#include "a2a/agent_internal.h"
#include "base/err.h"
#include "base/mem.h"

/* ---- failing */

void agent_fail(a2a_call *call, a2a_error error, const char *format, ...)
{
    char text[A2A_FAULT_BYTES];
    a2a_fault fault;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    err_ignore(a2a_fault_set(&fault, error, "%s", text));
    a2a_call_fail(call, &fault);
}

void agent_fault_of(a2a_fault *fault, bay_err err)
{
    bool is_full = err == BAY_ERR_BUSY || err == BAY_ERR_LIMIT;
    err_ignore(a2a_fault_set(fault, is_full ? A2A_E_BUSY : A2A_E_INTERNAL,
                             is_full ? "too many or too large tasks (%s); try again later"
                                     : "the agent could not do it: %s",
                             bay_err_text(err)));
}

void agent_fail_err(a2a_call *call, bay_err err)
{
    a2a_fault fault;
    agent_fault_of(&fault, err);
    a2a_call_fail(call, &fault);
}

void agent_result(a2a_call *call, buf *out)
{
    if (out->err == BAY_OK) {
        a2a_call_result(call, buf_view(out));
    } else {
        agent_fail_err(call, out->err);
    }
}

/* a2a 1.0 section 3.2.4; unset: -1 */
bay_err agent_history_length(json_val value, const char *place, int64_t *out, a2a_fault *fault)
{
    int64_t length = -1;
    if (json_kind_of(value) > JSON_NULL && (json_int64(value, &length) != BAY_OK || length < 0)) {
        return a2a_fault_set(fault, A2A_E_INVALID_PARAMS, "%s: must not be negative", place);
    }
    *out = length;
    return BAY_OK;
}

/* ---- replies */

agent_reply *agent_reply_new(a2a_call *call, agent_task *task)
{
    /* the call's memory is freed with a stream's first event */
    bool is_stream = (a2a_methods[call->method].flags & A2A_METHOD_STREAM) != 0;
    agent_reply *self =
        is_stream ? mem_zalloc(sizeof(*self)) : arena_zalloc(call->memory, sizeof(*self));
    if (self == NULL) {
        agent_fail_err(call, BAY_ERR_NOMEM);
        return NULL;
    }
    self->call = call;
    self->task = task;
    self->history_length = -1;
    self->is_stream = is_stream;
    call->user = self;
    return self;
}

void agent_reply_join(agent_reply *self)
{
    list_push(self->is_stream ? &self->task->subscribers : &self->task->replies, &self->link);
    self->task->subscriber_count += self->is_stream;
    agent_task_touch(self->task);
}

/* Removes it from everything; the call is ended next. */
static a2a_call *detach(agent_reply *self, bool is_answered)
{
    a2a_call *call = self->call;
    agent_task *task = self->task;
    if (self->is_stream && list_holds(&self->link)) {
        task->subscriber_count--;
        if (task->subscriber_count == 0) {
            agent_event_forget_snapshot(task);
        }
    }
    list_remove(&self->link);
    agent_dedup_leave(task->of, self, is_answered && !call->is_gone);
    a2a_event_unref(self->first);
    mem_free(self->held);
    call->user = NULL;
    if (self->is_stream) {
        mem_free(self);
    }
    return call;
}

void agent_reply_fail(agent_reply *self, const a2a_fault *fault)
{
    a2a_call_fail(detach(self, true), fault);
}

void agent_reply_fail_err(agent_reply *self, bay_err err)
{
    agent_fail_err(detach(self, true), err);
}

static void agent_stream_end(agent_reply *self)
{
    a2a_call_end(detach(self, self->has_told));
}

static void write_result(const agent_reply *self, buf *out)
{
    const agent_task *task = self->task;
    bool is_wrapped = self->call->method == A2A_SEND_MESSAGE;
    if (is_wrapped && task->answer != NULL) {
        buf_lit(out, "{\"message\":");
        buf_str(out, agent_text_view(task->answer));
        buf_char(out, '}');
        return;
    }
    if (is_wrapped) {
        buf_lit(out, "{\"task\":");
    }
    agent_write_task(task, self->history_length, true, out);
    if (is_wrapped) {
        buf_char(out, '}');
    }
}

void agent_reply_with_task(agent_reply *self)
{
    agent_task *task = self->task;
    a2a_agent *of = task->of;
    buf out = agent_buffer(of);
    write_result(self, &out);
    if (out.err != BAY_OK || task->answer != NULL || agent_task_is_kept(task, task->revision)) {
        agent_result(detach(self, true), &out);
    } else {
        agent_wait *wait = arena_zalloc(self->call->memory, sizeof(*wait));
        if (wait == NULL) {
            agent_reply_fail_err(self, BAY_ERR_NOMEM);
        } else {
            *wait = (agent_wait){task->id, task->revision};
            if (arena_dup(self->call->memory, task->id, &wait->id) != BAY_OK) {
                agent_reply_fail_err(self, BAY_ERR_NOMEM);
            } else {
                agent_reply_hold(self, &out, wait, 1);
            }
        }
    }
    agent_buffer_back(of, &out);
}

/* Sends what is held when nothing more is waited for. */
static void agent_reply_go_on(agent_reply *self)
{
    a2a_agent *of = self->task->of;
    for (; self->wait_count > 0; self->wait_count--) {
        const agent_wait *wait = &self->waits[self->wait_count - 1];
        agent_task *task = map_get(&of->tasks, wait->id);
        if (task != NULL && !agent_task_is_kept(task, wait->revision)) {
            list_remove(&self->link);
            self->task = task;
            list_push(&task->replies, &self->link);
            return;
        }
    }
    char *held = self->held;
    size_t len = self->held_len;
    self->held = NULL;
    a2a_call_result(detach(self, true), (bay_str){held, len});
    mem_free(held);
}

void agent_reply_hold(agent_reply *self, buf *out, agent_wait *waits, size_t count)
{
    bay_str text = buf_view(out);
    self->held = out->err == BAY_OK ? mem_dup(text.at, text.len) : NULL;
    if (self->held == NULL) {
        agent_reply_fail_err(self, out->err != BAY_OK ? out->err : BAY_ERR_NOMEM);
        return;
    }
    self->held_len = text.len;
    self->waits = waits;
    self->wait_count = count;
    agent_reply_go_on(self);
}

/* ---- what a turn's caller is told */

/* Whether everything that its caller waits for has happened. */
static bool is_due(const agent_reply *self)
{
    const agent_task *task = self->task;
    return task->answer != NULL || self->turn == NULL || a2a_state_is_terminal(task->state) ||
           (self->returns_at_once && task->is_open) ||
           (a2a_state_is_interrupted(task->state) && self->turn->is_begun);
}

static void flush_one(agent_reply *self)
{
    if (self->held != NULL) {
        agent_reply_go_on(self);
    } else if (is_due(self)) {
        agent_reply_with_task(self);
    } else if (self->is_send && self->seen == NULL) {
        agent_dedup_add(self->task->of, self);
    }
}

void agent_replies_flush(agent_task *task)
{
    uint32_t pass = ++task->pass;
    list_link *link;
    while ((link = list_first(&task->replies)) != NULL) {
        agent_reply *reply = CONTAINER_OF(link, agent_reply, link);
        if (reply->pass == pass) {
            return;
        }
        reply->pass = pass;
        list_remove(link);
        list_push(&task->replies, link);
        flush_one(reply);
    }
}

void agent_replies_release(agent_task *task, const a2a_turn *turn)
{
    LIST_EACH(link, &task->replies)
    {
        agent_reply *reply = CONTAINER_OF(link, agent_reply, link);
        reply->turn = reply->turn == turn ? NULL : reply->turn;
    }
    LIST_EACH(link, &task->subscribers)
    {
        agent_reply *reply = CONTAINER_OF(link, agent_reply, link);
        reply->turn = reply->turn == turn ? NULL : reply->turn;
    }
}

/* One after the other from the start: callbacks may add others. */
static agent_reply *next_of_turn(const list *among, const a2a_turn *turn)
{
    LIST_EACH(link, among)
    {
        agent_reply *reply = CONTAINER_OF(link, agent_reply, link);
        if (reply->turn == turn && reply->held == NULL) {
            return reply;
        }
    }
    return NULL;
}

void agent_replies_fail_turn(agent_task *task, const a2a_turn *turn, const a2a_fault *fault)
{
    for (agent_reply *reply; (reply = next_of_turn(&task->replies, turn)) != NULL;) {
        agent_reply_fail(reply, fault);
    }
}

static bool is_unkept(const agent_reply *self)
{
    const agent_task *task = self->task;
    return self->is_stream ? self->first != NULL || self->sent < task->revision
                           : self->held != NULL;
}

static agent_reply *next_unkept(const list *among)
{
    LIST_EACH(link, among)
    {
        agent_reply *reply = CONTAINER_OF(link, agent_reply, link);
        if (is_unkept(reply)) {
            return reply;
        }
    }
    return NULL;
}

void agent_replies_fail_unkept(agent_task *task, const a2a_fault *fault)
{
    agent_reply *reply;
    while ((reply = next_unkept(&task->replies)) != NULL ||
           (reply = next_unkept(&task->subscribers)) != NULL) {
        agent_reply_fail(reply, fault);
    }
}

/* ---- streams */

bay_err agent_stream_snapshot(agent_reply *self)
{
    a2a_event *snapshot = self->ends_with_first
                              ? agent_event_last_snapshot(self->task, self->history_length)
                              : agent_event_snapshot(self->task, self->history_length);
    if (snapshot == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->first = snapshot;
    self->first_at = self->sent = self->task->revision;
    return BAY_OK;
}

void agent_stream_opened(agent_task *task)
{
    LIST_EACH(link, &task->subscribers)
    {
        agent_reply *reply = CONTAINER_OF(link, agent_reply, link);
        if (reply->history_length >= 0 && reply->history_length < task->history_count) {
            err_ignore(agent_stream_snapshot(reply)); /* otherwise it gets what all others get */
        }
    }
}

/* If a message still waits for its turn, its caller must not see the end of the turn before, which
 * asks for input. */
static bool ends_at_last(const agent_reply *self)
{
    return self->turn == NULL || self->turn->is_begun || a2a_state_is_terminal(self->task->state);
}

/* For a stream that continues after the last event of others: forms of 0.x mark the last event, and
 * their clients disconnect. */
static bay_err send_as_not_last(agent_reply *self, const a2a_event *event)
{
    a2a_event *copy = a2a_event_new(a2a_event_json(event), a2a_event_sequence(event), false);
    bay_err err = copy != NULL ? a2a_call_event(self->call, copy) : BAY_ERR_NOMEM;
    a2a_event_unref(copy);
    return err;
}

/* False: nothing more may be sent, and it may be freed. */
static bool stream_send(agent_reply *self, a2a_event *event)
{
    uint64_t sequence = a2a_event_sequence(event);
    bool is_last = a2a_event_is_last(event) && ends_at_last(self);
    bay_err err = is_last || !a2a_event_is_last(event) ? a2a_call_event(self->call, event)
                                                       : send_as_not_last(self, event);
    if (err == BAY_OK || err == BAY_ERR_AGAIN) {
        self->has_told = true;
        self->sent = sequence > self->sent ? sequence : self->sent;
        self->is_blocked = err == BAY_ERR_AGAIN;
        agent_dedup_leave(self->task->of, self, true);
        if (is_last) {
            agent_stream_end(self);
        }
        return !is_last && err == BAY_OK;
    }
    if (err == BAY_ERR_CLOSED) {
        agent_stream_end(self);
    } else {
        agent_reply_fail_err(self, err);
    }
    return false;
}

static void stream_answer(agent_reply *self)
{
    buf out = agent_buffer(self->task->of);
    buf_lit(&out, "{\"message\":");
    buf_str(&out, agent_text_view(self->task->answer));
    buf_char(&out, '}');
    a2a_event *event = out.err == BAY_OK ? a2a_event_new(buf_view(&out), 0, true) : NULL;
    agent_buffer_back(self->task->of, &out);
    if (event == NULL) {
        agent_reply_fail_err(self, BAY_ERR_NOMEM);
        return;
    }
    stream_send(self, event);
    a2a_event_unref(event);
}

/* Sends its first event, if that is due. False: no further ones yet. */
static bool stream_begin(agent_reply *self)
{
    agent_task *task = self->task;
    if (task->answer != NULL) {
        stream_answer(self);
        return false;
    }
    if (!task->is_open) {
        if (self->seen == NULL && self->is_send) {
            agent_dedup_add(task->of, self);
        }
        return false;
    }
    if (self->first == NULL) {
        return true;
    }
    if (!agent_task_is_kept(task, self->first_at)) {
        return false;
    }
    a2a_event *first = self->first;
    self->first = NULL;
    bool goes_on = stream_send(self, first);
    a2a_event_unref(first);
    return goes_on;
}

static void stream_one(agent_reply *self)
{
    agent_task *task = self->task;
    if (self->is_blocked || !stream_begin(self)) {
        return;
    }
    for (;;) {
        if (self->sent < task->dropped) {
            agent_stream_end(self); /* events were dropped; the client may reconnect */
            return;
        }
        agent_event *next = agent_event_after(task, self->sent);
        if (next == NULL && a2a_state_is_terminal(task->state) &&
            agent_task_is_kept(task, task->revision)) {
            agent_stream_end(self);
            return;
        }
        if (next == NULL || !agent_task_is_kept(task, a2a_event_sequence(next->event)) ||
            !stream_send(self, next->event)) {
            return;
        }
    }
}

void agent_stream_deliver(agent_task *task)
{
    uint32_t pass = ++task->pass;
    list_link *link;
    while ((link = list_first(&task->subscribers)) != NULL) {
        agent_reply *reply = CONTAINER_OF(link, agent_reply, link);
        if (reply->pass == pass) {
            return;
        }
        reply->pass = pass;
        list_remove(link);
        list_push(&task->subscribers, link);
        stream_one(reply);
    }
}

/* ---- what the carrier says */

void agent_reply_gone(a2a_agent *self, a2a_call *call)
{
    agent_reply *reply = call->user;
    (void)self;
    if (reply == NULL) {
        return;
    }
    bool is_stream = reply->is_stream;
    call->is_gone = true;
    detach(reply, reply->has_told);
    if (is_stream) {
        a2a_call_end(call);
    } else {
        agent_fail(call, A2A_E_UNAVAILABLE, "the caller left");
    }
}

void agent_reply_drained(a2a_agent *self, a2a_call *call)
{
    agent_reply *reply = call->user;
    (void)self;
    if (reply != NULL && reply->is_blocked) {
        reply->is_blocked = false;
        agent_task_touch(reply->task);
    }
}
