/* A call over its attempts: what is reported, when it ends, and how an interrupted stream is
 * resumed.
 *
 *   1.0 (or events had ids):  SubscribeToTask, with Last-Event-ID if there is one
 *   before 1.0, without ids:  GetTask (a resubscribe there begins without the task), then
 *                             SubscribeToTask, and GetTask once more before the end
 *   agents that refuse it:    GetTask repeatedly
 *
 * Of a task that is received again, only what is new is reported (link_stream_state.h). */
#include "a2a_transport/link_internal.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "json/build.h"

static void link_retry_ask(a2a_link_call *self, a2a_method method);

/* ---- ends ------------------------------------------------------------------------------------ */

static bool is_stream(const a2a_link_call *self)
{
    return (a2a_methods[self->method].flags & A2A_METHOD_STREAM) != 0;
}

/* No more events are expected, however the stream ends. */
static bool is_done(const a2a_link_call *self)
{
    return self->is_finished || (self->seen.state == A2A_INPUT_REQUIRED && self->has_told &&
                                 self->method == A2A_SEND_STREAMING_MESSAGE);
}

static void link_retry_fail(a2a_link_call *self, bay_err err, const a2a_fault *fault, bool was_sent)
{
    a2a_fault told = *fault;
    if (told.text[0] == '\0') {
        (void)a2a_fault_set(&told, fault->error, "%s", bay_err_text(err));
    }
    a2a_link_drop(self);
    self->events->failed(self->user, err, &told, was_sent);
}

static void link_retry_end(a2a_link_call *self)
{
    if (self->lacks_snapshot && !self->is_checking) {
        self->is_checking = true; /* were events missed before the new stream began? */
        link_retry_ask(self, A2A_GET_TASK);
        return;
    }
    a2a_link_drop(self);
    self->events->end(self->user);
}

/* ---- telling --------------------------------------------------------------------------------- */

typedef struct waiting_event {
    json_doc *event;
    uint64_t id;
    bool is_last;
} waiting_event;

static bay_err link_retry_wait(a2a_link_call *self, json_val event, uint64_t id, bool is_last)
{
    size_t bytes = json_clone_bytes(event) + sizeof(waiting_event);
    waiting_event made = {.id = id, .is_last = is_last};
    if (bytes > A2A_LINK_HELD_BYTES - self->waiting_bytes) {
        return BAY_ERR_LIMIT;
    }
    if (!buf_reserve(&self->waiting, sizeof(made))) {
        return self->waiting.err;
    }
    bay_err err = json_clone(event, &made.event);
    if (err == BAY_OK) {
        buf_append(&self->waiting, &made, sizeof(made));
        self->waiting_bytes += bytes;
    }
    return err;
}

static void free_events(const buf *waiting, size_t at)
{
    for (; at < waiting->len; at += sizeof(waiting_event)) {
        waiting_event one;
        memcpy(&one, waiting->at + at, sizeof(one));
        mem_free(one.event);
    }
}

void a2a_link_retry_forget(a2a_link_call *self)
{
    free_events(&self->waiting, 0);
    buf_clear(&self->waiting);
    self->waiting_bytes = 0;
}

/* BAY_ERR_CANCELLED: the receiver has ended the call. */
static bay_err link_retry_emit(a2a_link_call *self, json_val event, uint64_t id, bool is_last)
{
    self->has_told = true;
    self->delay_ms = self->owner->limits.first_delay_ms;
    if (self->is_paused || self->waiting.len > 0) {
        return link_retry_wait(self, event, id, is_last);
    }
    self->events->event(self->user, event, id, is_last);
    return self->phase == A2A_LINK_OVER ? BAY_ERR_CANCELLED : BAY_OK;
}

static void link_retry_broke(a2a_link_call *self, bay_err err)
{
    a2a_fault fault;
    if (err == BAY_ERR_CANCELLED || self->phase == A2A_LINK_OVER) {
        return;
    }
    (void)a2a_fault_set(&fault, A2A_E_INTERNAL, "an event of the agent's stream: %s",
                        bay_err_text(err));
    link_retry_fail(self, err, &fault, true);
}

bool a2a_link_retry_tell(a2a_link_call *self)
{
    buf batch = self->waiting;
    size_t at = 0;
    buf_init(&self->waiting, A2A_LINK_HELD_BYTES);
    while (at < batch.len && !self->is_paused && self->phase != A2A_LINK_OVER) {
        waiting_event one;
        memcpy(&one, batch.at + at, sizeof(one));
        at += sizeof(one);
        self->waiting_bytes -= json_clone_bytes(json_root(one.event)) + sizeof(one);
        self->events->event(self->user, json_root(one.event), one.id, one.is_last);
        mem_free(one.event);
    }
    if (at < batch.len && self->phase != A2A_LINK_OVER) {
        buf_consume(&batch, at);
        self->waiting = batch;
        return false;
    }
    free_events(&batch, at);
    buf_fini(&batch);
    return self->phase != A2A_LINK_OVER;
}

static bay_err tell_difference(void *user, json_val event)
{
    a2a_link_call *self = user;
    return link_retry_emit(self, event, 0, a2a_state_is_terminal(self->seen.state));
}

/* ---- events ---------------------------------------------------------------------------------- */

static uint64_t event_number(bay_str id)
{
    uint64_t number = 0;
    return str_uint(id, &number) ? number : 0;
}

static void note_event_id(a2a_link_call *self, bay_str id)
{
    if (id.len > 0) {
        buf_clear(&self->last_id);
        buf_str(&self->last_id, id); /* an id that is too long is not sent back */
        if (self->last_id.err != BAY_OK) {
            buf_clear(&self->last_id);
        }
        self->last_number = event_number(id);
    }
}

static bay_err take_event(a2a_link_call *self, json_val event, bay_str id, bool is_last)
{
    json_val task = json_get(event, STR("task"));
    uint64_t number = event_number(id);
    bool is_snapshot = !json_is(task, JSON_MISSING);
    bool was_told = self->is_resumed && !is_snapshot && number != 0 && number <= self->last_number;
    if (was_told) {
        return BAY_OK;
    }
    if (self->is_resumed && self->events_read == 1 && !is_snapshot && number == 0) {
        self->lacks_snapshot = true;
    }
    note_event_id(self, id);
    if (self->is_resumed && is_snapshot) {
        return a2a_stream_state_difference(&self->seen, task, tell_difference, self);
    }
    if (self->is_resumed && !is_last && number == 0 &&
        a2a_stream_state_was_told(&self->seen, event)) {
        return BAY_OK;
    }
    bay_err err = a2a_stream_state_note(&self->seen, event);
    if (err != BAY_OK) {
        return err;
    }
    bool ends = is_last || self->seen.is_message || a2a_state_is_terminal(self->seen.state);
    return link_retry_emit(self, event, number, ends && !self->lacks_snapshot);
}

/* Ends the timer of the first event; may start that of the end. */
static void watch(a2a_link_call *self)
{
    loop_timer_stop(self->owner->loop, &self->timer);
    if (is_done(self)) {
        /* without a timer the stream ends when the agent ends it, or by its idle time */
        err_ignore(loop_timer_start(self->owner->loop, &self->timer, A2A_LINK_GRACE_MS));
    }
}

void a2a_link_retry_event(a2a_link_call *self, json_val event, bay_str id, bool is_last)
{
    self->events_read++;
    self->failures = 0;
    bay_err err = take_event(self, event, id, is_last);
    if (self->phase == A2A_LINK_OVER) {
        return;
    }
    if (err != BAY_OK) {
        link_retry_broke(self, err);
        return;
    }
    self->is_finished = self->is_finished || is_last || self->seen.is_message ||
                        a2a_state_is_terminal(self->seen.state);
    if (self->method != A2A_SUBSCRIBE_TO_TASK) { /* it is not sent again */
        mem_free(self->params);
        self->params = NULL;
    }
    watch(self);
}

void a2a_link_retry_answer(a2a_link_call *self, json_val event)
{
    a2a_link_retry_event(self, event, (bay_str){NULL, 0}, false);
}

/* ---- cuts ------------------------------------------------------------------------------------ */

static uint64_t shorter(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void link_retry_send(a2a_link_call *self, a2a_method method, uint64_t within_ms)
{
    a2a_fault fault = {A2A_E_UNAVAILABLE, ""};
    a2a_attempt_stop(self);
    self->asking = method;
    bay_err err = a2a_attempt_start(self, &fault);
    if (err == BAY_OK) {
        err = a2a_attempt_limit(self, within_ms);
    }
    if (err != BAY_OK) {
        a2a_attempt_stop(self);
        a2a_link_retry_failed(self, err, &fault, true, err == BAY_ERR_BUSY);
    }
}

/* … for what is missing of the stream. */
static void link_retry_ask(a2a_link_call *self, a2a_method method)
{
    const a2a_link_limits *limits = &self->owner->limits;
    self->is_resumed = true;
    link_retry_send(self, method, shorter(limits->timeout_ms, limits->idle_ms));
}

static void link_retry_rest(a2a_link_call *self)
{
    a2a_link *owner = self->owner;
    uint32_t half = self->delay_ms / 2;
    uint64_t pause = half + rand_u64() % (half + 1U);
    a2a_attempt_stop(self);
    self->phase = A2A_LINK_RESTING;
    self->delay_ms = self->delay_ms < A2A_LINK_LONGEST_DELAY_MS / 2 ? self->delay_ms * 2
                                                                    : A2A_LINK_LONGEST_DELAY_MS;
    if (loop_timer_start(owner->loop, &self->timer, pause) != BAY_OK) {
        link_retry_broke(self, BAY_ERR_NOMEM);
    }
}

/* Before 1.0 a resumed stream begins with the next event, without the task. */
static bool begins_without_task(const a2a_link_call *self)
{
    return self->owner->at.version != A2A_1_0 && self->last_id.len == 0;
}

static void take_up(a2a_link_call *self)
{
    link_retry_ask(self,
                   self->polls || begins_without_task(self) ? A2A_GET_TASK : A2A_SUBSCRIBE_TO_TASK);
}

void a2a_link_retry_retry_hint(a2a_link_call *self, int64_t ms)
{
    if (ms > 0) {
        self->delay_ms = ms < A2A_LINK_LONGEST_DELAY_MS ? (uint32_t)ms : A2A_LINK_LONGEST_DELAY_MS;
    }
}

static bool can_be_taken_up(const a2a_link_call *self)
{
    return is_stream(self) && self->seen.task_id.len > 0 && !self->seen.is_message &&
           (self->has_told || self->last_id.len > 0);
}

/* The agent has no streams, whatever its card says; it refused the message, so it may be sent
 * again. */
static bool refuses_streams(const a2a_link_call *self, bay_err err, const a2a_fault *fault)
{
    return self->asking == A2A_SEND_STREAMING_MESSAGE && !self->has_told && err == BAY_ERR_REMOTE &&
           (fault->error == A2A_E_UNSUPPORTED_OPERATION || fault->error == A2A_E_METHOD_NOT_FOUND);
}

void a2a_link_retry_failed(a2a_link_call *self, bay_err err, const a2a_fault *fault, bool was_sent,
                           bool is_passing)
{
    if (is_stream(self) && (is_done(self) || self->is_checking)) {
        self->lacks_snapshot = false; /* nothing more can be known */
        link_retry_end(self);
    } else if (refuses_streams(self, err, fault)) {
        self->has_no_stream = true;
        link_retry_send(self, A2A_SEND_MESSAGE, self->owner->limits.timeout_ms);
    } else if (self->asking == A2A_SUBSCRIBE_TO_TASK && self->is_resumed && err == BAY_ERR_REMOTE &&
               !is_passing && self->events_read == 0) {
        self->polls = true;
        self->lacks_snapshot = false;
        link_retry_ask(self, A2A_GET_TASK);
    } else if (!can_be_taken_up(self) || !is_passing ||
               self->failures >= self->owner->limits.resumes) {
        link_retry_fail(self, err, fault, was_sent || self->has_told);
    } else {
        self->failures++;
        link_retry_rest(self);
    }
}

void a2a_link_retry_ended(a2a_link_call *self)
{
    if (is_done(self) || (self->has_told && a2a_state_is_interrupted(self->seen.state))) {
        link_retry_end(self);
        return;
    }
    a2a_fault fault;
    (void)a2a_fault_set(&fault, A2A_E_UNAVAILABLE, "%s",
                        self->has_told ? "the agent's stream ended before its task did"
                                       : "the agent's stream ended without an event");
    a2a_link_retry_failed(self, BAY_ERR_CLOSED, &fault, true, true);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Polling replaces the stream, or there is nothing more to get. */
static void go_on_looking(a2a_link_call *self)
{
    if (self->is_checking || is_done(self)) {
        self->lacks_snapshot = false;
        self->is_finished = true;
        if (self->waiting.len > 0) {
            self->is_over = true; /* the receiver pauses: the end follows the waiting events */
            self->over_err = BAY_OK;
        } else {
            link_retry_end(self);
        }
    } else if (self->polls) {
        link_retry_rest(self);
    } else {
        self->lacks_snapshot = true;
        link_retry_ask(self, A2A_SUBSCRIBE_TO_TASK);
    }
}

/* The task of an interrupted stream. */
static void take_look(a2a_link_call *self, json_val task)
{
    bay_err err = a2a_stream_state_difference(&self->seen, task, tell_difference, self);
    if (self->phase == A2A_LINK_OVER) {
        return;
    }
    if (err != BAY_OK) {
        link_retry_broke(self, err);
        return;
    }
    self->failures = 0;
    self->is_finished = self->is_finished || a2a_state_is_terminal(self->seen.state);
    go_on_looking(self);
}

/* The first answer of an agent without streams, as its first event. */
static void take_first_answer(a2a_link_call *self, json_val result)
{
    json_builder made;
    json_writer *to = json_builder_init(&made, NULL, A2A_LINK_HELD_BYTES);
    json_val event = result;
    bay_err err = BAY_OK;
    if (self->asking == A2A_GET_TASK) {
        json_open_object(to);
        json_key_lit(to, "task");
        json_put_val(to, result);
        json_close_object(to);
        err = json_builder_view(&made, &event);
    }
    self->polls = true;
    if (err != BAY_OK) {
        link_retry_broke(self, err);
    } else {
        a2a_link_retry_answer(self, event);
        if (self->phase != A2A_LINK_OVER) {
            go_on_looking(self);
        }
    }
    json_builder_drop(&made);
}

void a2a_link_retry_result(a2a_link_call *self, json_val result)
{
    if (is_stream(self) && !self->is_resumed) {
        take_first_answer(self, result);
        return;
    }
    if (is_stream(self)) {
        take_look(self, result);
        return;
    }
    a2a_link_drop(self);
    self->events->result(self->user, result);
}

/* ---- time ------------------------------------------------------------------------------------ */

void a2a_link_retry_on_timer(void *argument)
{
    a2a_link_call *self = argument;
    a2a_link *owner = self->owner;
    a2a_link_enter(owner);
    if (self->phase == A2A_LINK_RESTING) {
        take_up(self);
    } else if (self->is_paused && is_stream(self)) {
        if (loop_timer_start(owner->loop, &self->timer, A2A_LINK_GRACE_MS) != BAY_OK) {
            link_retry_broke(self, BAY_ERR_NOMEM);
        }
    } else if (is_done(self)) {
        a2a_attempt_stop(self);
        link_retry_end(self);
    } else {
        a2a_fault fault;
        (void)a2a_fault_set(&fault, A2A_E_DEADLINE, "the agent did not answer in time");
        a2a_attempt_stop(self);
        a2a_link_retry_failed(self, BAY_ERR_TIMEOUT, &fault, true, true);
    }
    a2a_link_leave(owner);
}
