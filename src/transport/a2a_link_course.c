/* The course of a call over its attempts: what is told, when it ends, and how a stream that was cut
 * is taken up.
 *
 *   1.0 (or events had ids):  SubscribeToTask, with Last-Event-ID where there is one
 *   before 1.0, without ids:  GetTask (a resubscribe there begins without the task), then
 *                             SubscribeToTask, and GetTask once more before the end
 *   agents that refuse it:    GetTask again and again
 *
 * A task that comes back is told as what is new of it (a2a_link_seen.h). */
#include "base/err.h"
#include "base/rand.h"
#include "base/str.h"
#include "transport/a2a_link_internal.h"

static void course_ask(a2a_link_call *self, a2a_method method);

/* ---- ends ------------------------------------------------------------------------------------ */

static bool is_stream(const a2a_link_call *self)
{
    return (a2a_methods[self->method].flags & A2A_METHOD_STREAM) != 0;
}

/* Nothing more is expected, however the stream ends. */
static bool is_done(const a2a_link_call *self)
{
    return self->is_finished || (self->seen.state == A2A_INPUT_REQUIRED && self->has_told &&
                                 self->method == A2A_SEND_STREAMING_MESSAGE);
}

static void course_fail(a2a_link_call *self, bay_err err, const a2a_fault *fault, bool was_sent)
{
    a2a_fault told = *fault;
    if (told.text[0] == '\0') {
        (void)a2a_fault_set(&told, fault->error, "%s", bay_err_text(err));
    }
    a2a_link_drop(self);
    self->events->failed(self->user, err, &told, was_sent);
}

static void course_end(a2a_link_call *self)
{
    if (self->lacks_snapshot && !self->is_checking) {
        self->is_checking = true; /* was anything missed between the cut and the stream? */
        course_ask(self, A2A_GET_TASK);
        return;
    }
    a2a_link_drop(self);
    self->events->end(self->user);
}

/* ---- telling --------------------------------------------------------------------------------- */

typedef struct waiting_event {
    size_t len;
    uint64_t id;
    bool is_last;
} waiting_event;

static bay_err course_wait(a2a_link_call *self, bay_str json, uint64_t id, bool is_last)
{
    waiting_event head = {.len = json.len, .id = id, .is_last = is_last};
    buf_append(&self->waiting, &head, sizeof(head));
    buf_str(&self->waiting, json);
    return self->waiting.err;
}

/* BAY_CANCELLED: the call is over, by its receiver. */
static bay_err course_emit(a2a_link_call *self, json_val event, uint64_t id, bool is_last)
{
    self->has_told = true;
    self->delay_ms = self->owner->limits.first_delay_ms;
    if (self->is_paused || self->waiting.len > 0) {
        return course_wait(self, json_raw(event), id, is_last);
    }
    self->events->event(self->user, event, id, is_last);
    return self->phase == A2A_LINK_OVER ? BAY_CANCELLED : BAY_OK;
}

static void course_broke(a2a_link_call *self, bay_err err)
{
    a2a_fault fault;
    if (err == BAY_CANCELLED || self->phase == A2A_LINK_OVER) {
        return;
    }
    (void)a2a_fault_set(&fault, A2A_E_INTERNAL, "an event of the agent's stream: %s",
                        bay_err_text(err));
    course_fail(self, err, &fault, true);
}

/* An event that has been text. */
static bay_err tell_text(a2a_link_call *self, bay_str json, uint64_t id, bool is_last)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, A2A_LINK_MEMORY);
    bay_err err = json_parse(&doc, json, &a2a_json_limits, &memory, NULL);
    if (err == BAY_OK) {
        self->events->event(self->user, json_root(&doc), id, is_last);
    }
    arena_fini(&memory);
    return err;
}

bool a2a_course_tell(a2a_link_call *self)
{
    buf batch = self->waiting;
    size_t at = 0;
    buf_init(&self->waiting, A2A_LINK_HELD_BYTES);
    while (at < batch.len && !self->is_paused && self->phase != A2A_LINK_OVER) {
        waiting_event head;
        memcpy(&head, batch.at + at, sizeof(head));
        at += sizeof(head) + head.len;
        bay_err err =
            tell_text(self, (bay_str){batch.at + at - head.len, head.len}, head.id, head.is_last);
        if (err != BAY_OK) {
            course_broke(self, err);
        }
    }
    if (at < batch.len && self->phase != A2A_LINK_OVER) {
        buf_consume(&batch, at);
        self->waiting = batch;
        return false;
    }
    buf_fini(&batch);
    return self->phase != A2A_LINK_OVER;
}

static bay_err tell_difference(void *user, bay_str event)
{
    a2a_link_call *self = user;
    arena memory;
    json_doc doc;
    arena_init(&memory, A2A_LINK_MEMORY);
    bay_err err = json_parse(&doc, event, &a2a_json_limits, &memory, NULL);
    if (err == BAY_OK) {
        bool is_last = a2a_state_is_terminal(self->seen.state);
        err = course_emit(self, json_root(&doc), 0, is_last);
    }
    arena_fini(&memory);
    return err;
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
        buf_str(&self->last_id, id); /* one that is too long is not given back */
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
        return a2a_seen_difference(&self->seen, task, tell_difference, self);
    }
    bay_err err = a2a_seen_note(&self->seen, event);
    if (err != BAY_OK) {
        return err;
    }
    bool ends = is_last || self->seen.is_message || a2a_state_is_terminal(self->seen.state);
    return course_emit(self, event, number, ends && !self->lacks_snapshot);
}

/* The timer of the wait for the first event goes; that of the wait for the end may come. */
static void watch(a2a_link_call *self)
{
    loop_timer_stop(self->owner->loop, &self->timer);
    if (is_done(self)) {
        /* without memory for a timer the agent ends the stream, or its silence does */
        err_ignore(loop_timer_start(self->owner->loop, &self->timer, A2A_LINK_GRACE_MS));
    }
}

void a2a_course_event(a2a_link_call *self, json_val event, bay_str id, bool is_last)
{
    self->events_read++;
    self->failures = 0;
    bay_err err = take_event(self, event, id, is_last);
    if (self->phase == A2A_LINK_OVER) {
        return;
    }
    if (err != BAY_OK) {
        course_broke(self, err);
        return;
    }
    self->is_finished = self->is_finished || is_last || self->seen.is_message ||
                        a2a_state_is_terminal(self->seen.state);
    if (self->method != A2A_SUBSCRIBE_TO_TASK) { /* it is not sent again */
        buf_fini(&self->params);
        buf_init(&self->params, A2A_LINK_PARAMS_BYTES);
    }
    watch(self);
}

void a2a_course_answer(a2a_link_call *self, bay_str json)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, A2A_LINK_MEMORY);
    bay_err err = json_parse(&doc, json, &a2a_json_limits, &memory, NULL);
    if (err == BAY_OK) {
        a2a_course_event(self, json_root(&doc), (bay_str){NULL, 0}, false);
    } else {
        course_broke(self, err);
    }
    arena_fini(&memory);
}

/* ---- cuts ------------------------------------------------------------------------------------ */

static uint64_t shorter(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void course_send(a2a_link_call *self, a2a_method method, uint64_t within_ms)
{
    a2a_fault fault = {A2A_E_UNAVAILABLE, ""};
    a2a_attempt_stop(self);
    self->asking = method;
    bay_err err = a2a_attempt_start(self, &fault);
    if (err == BAY_OK) {
        err = loop_timer_start(self->owner->loop, &self->timer, within_ms);
    }
    if (err != BAY_OK) {
        a2a_attempt_stop(self);
        a2a_course_failed(self, err, &fault, true, err == BAY_BUSY);
    }
}

/* … for what is missing of the stream. */
static void course_ask(a2a_link_call *self, a2a_method method)
{
    const a2a_link_limits *limits = &self->owner->limits;
    self->is_resumed = true;
    course_send(self, method, shorter(limits->timeout_ms, limits->idle_ms));
}

static void course_rest(a2a_link_call *self)
{
    a2a_link *owner = self->owner;
    uint32_t half = self->delay_ms / 2;
    uint64_t pause = half + rand_u64() % (half + 1U);
    a2a_attempt_stop(self);
    self->phase = A2A_LINK_RESTING;
    self->delay_ms = self->delay_ms < A2A_LINK_LONGEST_DELAY_MS / 2 ? self->delay_ms * 2
                                                                    : A2A_LINK_LONGEST_DELAY_MS;
    if (loop_timer_start(owner->loop, &self->timer, pause) != BAY_OK) {
        course_broke(self, BAY_NOMEM);
    }
}

/* Before 1.0 a stream that is taken up begins with the next event, without the task. */
static bool begins_without_task(const a2a_link_call *self)
{
    return self->owner->at.version != A2A_1_0 && self->last_id.len == 0;
}

static void take_up(a2a_link_call *self)
{
    course_ask(self,
               self->polls || begins_without_task(self) ? A2A_GET_TASK : A2A_SUBSCRIBE_TO_TASK);
}

void a2a_course_retry_hint(a2a_link_call *self, int64_t ms)
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

/* It has no streams, whatever its card says; the message was refused, so it may be sent again. */
static bool refuses_streams(const a2a_link_call *self, bay_err err, const a2a_fault *fault)
{
    return self->asking == A2A_SEND_STREAMING_MESSAGE && !self->has_told && err == BAY_REMOTE &&
           (fault->error == A2A_E_UNSUPPORTED_OPERATION || fault->error == A2A_E_METHOD_NOT_FOUND);
}

void a2a_course_failed(a2a_link_call *self, bay_err err, const a2a_fault *fault, bool was_sent,
                       bool is_passing)
{
    if (is_stream(self) && (is_done(self) || self->is_checking)) {
        self->lacks_snapshot = false; /* what was told is all there is to know */
        course_end(self);
    } else if (refuses_streams(self, err, fault)) {
        self->has_no_stream = true;
        course_send(self, A2A_SEND_MESSAGE, self->owner->limits.timeout_ms);
    } else if (self->asking == A2A_SUBSCRIBE_TO_TASK && self->is_resumed && err == BAY_REMOTE &&
               !is_passing && self->events_read == 0) {
        self->polls = true;
        self->lacks_snapshot = false;
        course_ask(self, A2A_GET_TASK);
    } else if (!can_be_taken_up(self) || !is_passing ||
               self->failures >= self->owner->limits.resumes) {
        course_fail(self, err, fault, was_sent || self->has_told);
    } else {
        self->failures++;
        course_rest(self);
    }
}

void a2a_course_ended(a2a_link_call *self)
{
    if (is_done(self) || (self->has_told && a2a_state_is_interrupted(self->seen.state))) {
        course_end(self);
        return;
    }
    a2a_fault fault;
    (void)a2a_fault_set(&fault, A2A_E_UNAVAILABLE, "%s",
                        self->has_told ? "the agent's stream ended before its task did"
                                       : "the agent's stream ended without an event");
    a2a_course_failed(self, BAY_CLOSED, &fault, true, true);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Looks at the task take the place of the stream, or there is nothing more to see. */
static void go_on_looking(a2a_link_call *self)
{
    if (self->is_checking || is_done(self)) {
        self->lacks_snapshot = false;
        self->is_finished = true;
        if (self->waiting.len > 0) {
            self->is_over = true; /* the receiver pauses: the end comes behind what waits */
            self->over_err = BAY_OK;
        } else {
            course_end(self);
        }
    } else if (self->polls) {
        course_rest(self);
    } else {
        self->lacks_snapshot = true;
        course_ask(self, A2A_SUBSCRIBE_TO_TASK);
    }
}

/* A look at the task of a stream that was cut. */
static void take_look(a2a_link_call *self, bay_str json)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, A2A_LINK_MEMORY);
    bay_err err = json_parse(&doc, json, &a2a_json_limits, &memory, NULL);
    if (err == BAY_OK) {
        err = a2a_seen_difference(&self->seen, json_root(&doc), tell_difference, self);
    }
    arena_fini(&memory);
    if (self->phase == A2A_LINK_OVER) {
        return;
    }
    if (err != BAY_OK) {
        course_broke(self, err);
        return;
    }
    self->failures = 0;
    self->is_finished = self->is_finished || a2a_state_is_terminal(self->seen.state);
    go_on_looking(self);
}

/* The first answer of an agent without streams: what its first event would be. */
static void take_first_answer(a2a_link_call *self, bay_str json)
{
    buf event;
    buf_init(&event, A2A_LINK_HELD_BYTES);
    if (self->asking == A2A_GET_TASK) {
        buf_lit(&event, "{\"task\":");
        buf_str(&event, json);
        buf_char(&event, '}');
    } else {
        buf_str(&event, json);
    }
    self->polls = true;
    if (event.err != BAY_OK) {
        course_broke(self, event.err);
    } else {
        a2a_course_answer(self, buf_view(&event));
        if (self->phase != A2A_LINK_OVER) {
            go_on_looking(self);
        }
    }
    buf_fini(&event);
}

void a2a_course_result(a2a_link_call *self, bay_str json)
{
    if (is_stream(self) && !self->is_resumed) {
        take_first_answer(self, json);
        return;
    }
    if (is_stream(self)) {
        take_look(self, json);
        return;
    }
    a2a_link_drop(self);
    self->events->result(self->user, json);
}

/* ---- time ------------------------------------------------------------------------------------ */

void a2a_course_on_timer(void *argument)
{
    a2a_link_call *self = argument;
    a2a_link *owner = self->owner;
    a2a_link_enter(owner);
    if (self->phase == A2A_LINK_RESTING) {
        take_up(self);
    } else if (self->is_paused && is_stream(self)) {
        if (loop_timer_start(owner->loop, &self->timer, A2A_LINK_GRACE_MS) != BAY_OK) {
            course_broke(self, BAY_NOMEM);
        }
    } else if (is_done(self)) {
        a2a_attempt_stop(self);
        course_end(self);
    } else {
        a2a_fault fault;
        (void)a2a_fault_set(&fault, A2A_E_DEADLINE, "the agent did not answer in time");
        a2a_attempt_stop(self);
        a2a_course_failed(self, BAY_TIMEOUT, &fault, true, true);
    }
    a2a_link_leave(owner);
}
