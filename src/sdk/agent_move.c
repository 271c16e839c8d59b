/* Moves of a task: queued by any thread, made by the loop, in order. */
#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/agent_task.h"

/* ---- making, on the loop --------------------------------------------------------------------- */

static bay_err make(bay_task *self, const move_request *move)
{
    bool is_text = move->text.at != NULL;
    switch (move->kind) {
    case MOVE_REMEMBER:
        return a2a_turn_remember(self->turn, move->text);
    case MOVE_ARTIFACT:
        return a2a_turn_artifact(self->turn, move->value, move->is_append, move->is_last);
    case MOVE_REPLY:
        return is_text ? a2a_turn_reply_text(self->turn, move->text)
                       : a2a_turn_reply(self->turn, move->value);
    case MOVE_STATUS:
        break;
    }
    return is_text ? a2a_turn_status_text(self->turn, move->state, move->text)
                   : a2a_turn_status(self->turn, move->state, move->value, JSON_NONE);
}

static void end_turn(bay_task *self)
{
    if (!self->is_ended) {
        self->is_ended = true;
        sdk_turn_over(self);
        a2a_turn_end(self->turn);
    }
}

/* What cannot be kept cannot be left out either: the task says so, and ends. */
static void fail_turn(bay_task *self, bay_err why)
{
    char text[256];
    buf words = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    buf_lit(&words, "the task cannot go on: ");
    buf_str(&words, str_of(bay_err_text(why)));
    LOG(LOG_WARN, "agent", "task %.*s fails: %s", BAY_STR(a2a_turn_task_id(self->turn)),
        bay_err_text(why));
    if (a2a_turn_status_text(self->turn, A2A_FAILED, buf_view(&words)) != BAY_OK) {
        (void)0; /* its end makes it fail all the same */
    }
    pthread_mutex_lock(&self->lock);
    self->is_answered = true;
    pthread_mutex_unlock(&self->lock);
    end_turn(self);
}

static void make_and_settle(bay_task *self, const move_request *move)
{
    if (self->is_ended) {
        self->result = BAY_ERR_STATE;
        return;
    }
    self->result = make(self, move);
    bool is_hopeless = self->result != BAY_OK && self->result != BAY_ERR_STATE &&
                       self->result != BAY_ERR_CLOSED && move->kind != MOVE_REMEMBER;
    if (is_hopeless) {
        fail_turn(self, self->result);
    } else if (move->ends) {
        end_turn(self);
    }
}

/* Of a copy. */
static size_t bytes_of(const move_request *request)
{
    return request->value.doc != NULL ? json_clone_bytes(request->value) : request->text.len;
}

static task_move *pop(bay_task *self)
{
    pthread_mutex_lock(&self->lock);
    task_move *move = self->first;
    if (move != NULL) {
        self->first = move->next;
        self->last = self->first != NULL ? self->last : NULL;
        if (move->request.artifact != NULL && move->request.artifact->waiting == move) {
            move->request.artifact->waiting = NULL;
        }
        self->waiting_bytes -= bytes_of(&move->request);
    }
    pthread_mutex_unlock(&self->lock);
    return move;
}

static void on_message(void *argument);

void sdk_turn_post(bay_task *self)
{
    if (!self->is_posted) {
        self->message_to_loop = (loop_message){.function = on_message, .argument = self};
        self->is_posted =
            loop_post_message(sdk_agent_loop(self->serving), &self->message_to_loop) == BAY_OK;
    }
}

/* At most so many bytes; none: nothing waits any more. */
static void make_some(bay_task *self, size_t most)
{
    size_t bytes = 0;
    task_move *move;
    while (bytes < most && (move = pop(self)) != NULL) {
        bytes += sizeof(*move) + bytes_of(&move->request);
        make_and_settle(self, &move->request);
        mem_free(move);
    }
}

/* Under the lock, which it gives back. What is left beyond `most` comes in a later turn of the
 * loop, or, when that takes nothing more, now. */
static void drain_locked(bay_task *self, size_t most)
{
    if (self->is_draining) {
        pthread_mutex_unlock(&self->lock);
        return; /* the one under way will see it */
    }
    self->is_draining = true;
    bool is_done = self->first == NULL;
    while (!is_done) {
        pthread_mutex_unlock(&self->lock);
        make_some(self, most);
        pthread_mutex_lock(&self->lock);
        if (self->first != NULL) {
            sdk_turn_post(self);
        }
        is_done = self->first == NULL || self->is_posted;
    }
    self->is_draining = false;
    bool is_over = self->holders == 0 && !self->is_posted;
    bool is_closed = self->is_closed;
    pthread_mutex_unlock(&self->lock);
    if (is_over) {
        if (!is_closed) { /* else it is left to the next process, as it stands */
            end_turn(self);
        }
        sdk_turn_free(self);
    }
}

static void drain(bay_task *self, size_t most)
{
    pthread_mutex_lock(&self->lock);
    drain_locked(self, most);
}

/* Loop only: makes what waits; frees the task when nobody holds it. */
static void sdk_turn_drain(bay_task *self)
{
    drain(self, SIZE_MAX);
}

static void on_message(void *argument)
{
    bay_task *self = argument;
    pthread_mutex_lock(&self->lock);
    self->is_posted = false;
    drain_locked(self, TASK_DRAIN_BYTES);
}

/* ---- taking, on any thread ------------------------------------------------------------------- */

static bay_err refusal(const bay_task *self, const move_request *request)
{
    if (self->is_closed) {
        return BAY_ERR_CLOSED;
    }
    if (self->is_answered || atomic_load(&self->is_cancelled)) {
        return BAY_ERR_STATE;
    }
    if (request->kind == MOVE_REPLY && self->is_moved) {
        return BAY_ERR_STATE;
    }
    bool is_large = request->text.len + json_raw(request->value).len > TASK_MOVE_BYTES;
    bool is_full =
        self->waiting_bytes > 0 && self->waiting_bytes + bytes_of(request) > TASK_WAITING_BYTES;
    return is_large || is_full ? BAY_ERR_LIMIT : BAY_OK;
}

/* Taken: what comes later has to reckon with it. */
static void note(bay_task *self, const move_request *request)
{
    self->is_answered = self->is_answered || request->ends;
    self->is_moved = self->is_moved || request->kind != MOVE_REMEMBER;
}

static task_move *move_new(const move_request *request)
{
    size_t bytes = bytes_of(request);
    task_move *self = mem_alloc(sizeof(*self) + bytes);
    if (self == NULL) {
        return NULL;
    }
    *self = (task_move){.request = *request};
    if (request->value.doc != NULL) {
        self->request.value = json_root(json_clone_at(request->value, self + 1));
    } else if (request->text.at != NULL) {
        self->request.text.at = memcpy(self + 1, request->text.at, bytes);
    }
    return self;
}

bay_err sdk_turn_queue(bay_task *self, const move_request *request)
{
    bay_err err = refusal(self, request);
    if (err == BAY_OK && request->ends) {
        err = sdk_artifacts_close(self);
    }
    if (err != BAY_OK) {
        return err;
    }
    task_move *move = move_new(request);
    if (move == NULL) {
        return BAY_ERR_NOMEM;
    }
    task_move **place = self->last != NULL ? &self->last->next : &self->first;
    *place = move;
    self->last = move;
    if (request->artifact != NULL) {
        request->artifact->waiting = move;
    }
    self->waiting_bytes += bytes_of(request);
    note(self, request);
    return BAY_OK;
}

/* On the loop's thread, and nothing of this task is being made just now? */
static bool may_make(const bay_task *self)
{
    loop *of_agent = sdk_agent_loop(self->serving);
    return loop_is_here(of_agent) && loop_is_turning(of_agent) && !self->is_draining;
}

bay_err sdk_turn_make(bay_task *self)
{
    if (!may_make(self)) {
        return BAY_OK;
    }
    self->result = BAY_OK;
    sdk_turn_drain(self); /* its caller holds it: it is still there */
    return self->result;
}

bay_err sdk_turn_kick(bay_task *self)
{
    if (may_make(self)) {
        return sdk_turn_make(self);
    }
    pthread_mutex_lock(&self->lock);
    sdk_turn_post(self);
    pthread_mutex_unlock(&self->lock);
    return BAY_OK;
}

bay_err sdk_turn_move(bay_task *self, const move_request *request)
{
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    bool may_be_made = may_make(self);
    pthread_mutex_lock(&self->lock);
    /* Where nothing is to be made before it, it need not be queued. */
    bool is_next =
        may_be_made && self->first == NULL && (!request->ends || self->artifacts == NULL);
    bay_err err = is_next ? refusal(self, request) : sdk_turn_queue(self, request);
    if (err == BAY_OK && is_next) {
        note(self, request);
    }
    pthread_mutex_unlock(&self->lock);
    if (err != BAY_OK || !is_next) {
        return err == BAY_OK ? sdk_turn_kick(self) : err;
    }
    self->is_draining = true;
    make_and_settle(self, request);
    self->is_draining = false;
    err = self->result;
    sdk_turn_drain(self); /* what came meanwhile; its caller holds it */
    return err;
}

bay_task *bay_task_defer(bay_task *task)
{
    if (task != NULL) {
        pthread_mutex_lock(&task->lock);
        task->holders++;
        pthread_mutex_unlock(&task->lock);
    }
    return task;
}

void bay_task_release(bay_task *task)
{
    if (task == NULL) {
        return;
    }
    loop *of_agent = sdk_agent_loop(task->serving);
    bool is_here = loop_is_here(of_agent) && loop_is_turning(of_agent);
    pthread_mutex_lock(&task->lock);
    bool is_last = --task->holders == 0;
    if (is_last && is_here) {
        drain_locked(task, SIZE_MAX);
        return;
    }
    if (is_last) {
        sdk_turn_post(task);
    }
    pthread_mutex_unlock(&task->lock);
}
