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
        self->waiting_bytes -= bytes_of(&move->request);
    }
    pthread_mutex_unlock(&self->lock);
    return move;
}

static void on_message(void *argument);

/* Under the lock. */
static void post(bay_task *self)
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
            post(self);
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

bay_err sdk_turn_kick(bay_task *self)
{
    if (may_make(self)) {
        self->result = BAY_OK;
        sdk_turn_drain(self); /* its caller holds it: it is still there */
        return self->result;
    }
    pthread_mutex_lock(&self->lock);
    post(self);
    pthread_mutex_unlock(&self->lock);
    return BAY_OK;
}

/* Takes a move, and makes it at once on the loop's thread. */
static bay_err sdk_turn_move(bay_task *self, const move_request *request)
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
        post(task);
    }
    pthread_mutex_unlock(&task->lock);
}

/* ---- the public moves ------------------------------------------------------------------------ */

static a2a_state state_of(bay_task_state state)
{
    return state > BAY_TASK_STATE_UNKNOWN && state <= BAY_TASK_STATE_AUTH_REQUIRED
               ? (a2a_state)state
               : A2A_STATE_UNSPECIFIED;
}

static bay_err move_text(bay_task *task, move_kind kind, a2a_state state, bool ends, bay_str text)
{
    move_request request = {.kind = kind, .state = state, .ends = ends, .text = text};
    return sdk_turn_move(task, &request);
}

static bay_err move_message(bay_task *task, move_kind kind, a2a_state state, bool ends,
                            const bay_message *message)
{
    if (message == NULL) {
        return BAY_ERR_NOMEM;
    }
    json_builder made;
    move_request request = {.kind = kind, .state = state, .ends = ends};
    json_writer *to = json_builder_init(&made, NULL, TASK_MOVE_BYTES);
    json_open_object(to);
    bay_err err = sdk_message_write(message, to);
    if (err == BAY_OK) {
        json_close_object(to);
        err = json_builder_view(&made, &request.value);
        err = err == BAY_OK ? sdk_turn_move(task, &request) : err;
    } else if (err != BAY_ERR_NOMEM && err != BAY_ERR_LIMIT) {
        err = BAY_ERR_INVALID;
    }
    json_builder_drop(&made);
    return err;
}

/* Does a task in that state wait for nobody but its caller? */
static bool is_end(a2a_state state)
{
    return a2a_state_is_terminal(state) || state == A2A_INPUT_REQUIRED;
}

bay_err bay_task_status(bay_task *task, bay_task_state state, const char *text)
{
    a2a_state to = state_of(state);
    return to == A2A_STATE_UNSPECIFIED ? BAY_ERR_INVALID
                                       : move_text(task, MOVE_STATUS, to, is_end(to), str_of(text));
}

bay_err bay_task_status_message(bay_task *task, bay_task_state state, const bay_message *message)
{
    a2a_state to = state_of(state);
    return to == A2A_STATE_UNSPECIFIED ? BAY_ERR_INVALID
                                       : move_message(task, MOVE_STATUS, to, is_end(to), message);
}

static bay_err vmove(bay_task *task, move_kind kind, a2a_state state, const char *format,
                     va_list arguments)
{
    buf text;
    buf_init(&text, TASK_MOVE_BYTES);
    buf_vprintf(&text, format, arguments);
    bay_str view = text.len > 0 ? buf_view(&text) : STR("");
    bay_err err = text.err != BAY_OK ? text.err : move_text(task, kind, state, true, view);
    buf_fini(&text);
    return err;
}

bay_err bay_task_complete(bay_task *task, const char *text)
{
    return move_text(task, MOVE_STATUS, A2A_COMPLETED, true, str_of(text));
}

bay_err bay_task_completef(bay_task *task, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bay_err err = vmove(task, MOVE_STATUS, A2A_COMPLETED, format, arguments);
    va_end(arguments);
    return err;
}

bay_err bay_task_fail(bay_task *task, const char *text)
{
    return move_text(task, MOVE_STATUS, A2A_FAILED, true, str_of(text));
}

bay_err bay_task_failf(bay_task *task, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bay_err err = vmove(task, MOVE_STATUS, A2A_FAILED, format, arguments);
    va_end(arguments);
    return err;
}

bay_err bay_task_reject(bay_task *task, const char *text)
{
    return move_text(task, MOVE_STATUS, A2A_REJECTED, true, str_of(text));
}

bay_err bay_task_ask(bay_task *task, const char *text)
{
    return move_text(task, MOVE_STATUS, A2A_INPUT_REQUIRED, true, str_of(text));
}

bay_err bay_task_ask_auth(bay_task *task, const char *text)
{
    return move_text(task, MOVE_STATUS, A2A_AUTH_REQUIRED, true, str_of(text));
}

bay_err bay_task_reply(bay_task *task, const char *text)
{
    return move_text(task, MOVE_REPLY, A2A_STATE_UNSPECIFIED, true,
                     str_of(text != NULL ? text : ""));
}

bay_err bay_task_replyf(bay_task *task, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bay_err err = vmove(task, MOVE_REPLY, A2A_STATE_UNSPECIFIED, format, arguments);
    va_end(arguments);
    return err;
}

bay_err bay_task_reply_message(bay_task *task, const bay_message *message)
{
    return move_message(task, MOVE_REPLY, A2A_STATE_UNSPECIFIED, true, message);
}

bay_err bay_task_end(bay_task *task, bay_task_state state, const bay_message *message)
{
    a2a_state to = state_of(state);
    bool is_end_state = is_end(to) || to == A2A_AUTH_REQUIRED;
    return is_end_state ? move_message(task, MOVE_STATUS, to, true, message) : BAY_ERR_INVALID;
}

/* The skill stands before the handler's own bytes: further messages of the task go to it. */
bay_err bay_task_remember(bay_task *task, const void *bytes, size_t len)
{
    if (task == NULL) {
        return BAY_ERR_NOMEM;
    }
    if (len + task->skill.len + 2 > A2A_TURN_MEMORY_BYTES) {
        return BAY_ERR_LIMIT;
    }
    buf record;
    buf_init(&record, A2A_TURN_MEMORY_BYTES);
    buf_char(&record, (char)(task->skill.len & 0xff));
    buf_char(&record, (char)(task->skill.len >> 8));
    buf_str(&record, task->skill);
    buf_append(&record, bytes, len);
    bay_err err = record.err != BAY_OK ? record.err
                                       : move_text(task, MOVE_REMEMBER, A2A_STATE_UNSPECIFIED,
                                                   false, buf_view(&record));
    buf_fini(&record);
    return err;
}
