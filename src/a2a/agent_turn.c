/* Turns: a handler's references to the engine. */
#include "a2a/agent_internal.h"
#include "base/mem.h"

/* ---- making */

typedef struct block {
    bay_str *to;
    bay_str from;
} block;

bay_err agent_turn_new(a2a_agent *of, agent_task *task, json_val request,
                       const agent_turn_fields *fields, a2a_turn **out)
{
    bay_str context_id = task->context->id;
    if (json_is(request, JSON_MISSING)) {
        return BAY_ERR_TYPE;
    }
    /* one block of memory: the struct, the request, the texts */
    size_t request_bytes = json_clone_bytes(request);
    a2a_turn *self = mem_alloc(sizeof(*self) + request_bytes + task->id.len + context_id.len +
                               fields->traceparent.len + fields->tracestate.len +
                               fields->extensions.len + fields->via.len);
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    *self = (a2a_turn){.request = json_clone_at(request, self + 1),
                       .principal = principal_ref(fields->principal)};
    block blocks[] = {{&self->task_id, task->id},
                      {&self->context_id, context_id},
                      {&self->traceparent, fields->traceparent},
                      {&self->tracestate, fields->tracestate},
                      {&self->extensions, fields->extensions},
                      {&self->via, fields->via}};
    char *at = (char *)(self + 1) + request_bytes;
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        if (blocks[i].from.len > 0) {
            memcpy(at, blocks[i].from.at, blocks[i].from.len);
        }
        *blocks[i].to = (bay_str){at, blocks[i].from.len};
        at += blocks[i].from.len;
    }
    self->message = json_get(json_root(self->request), STR("message"));
    self->refs = 1;
    self->of = of;
    self->task = task;
    list_push(&of->turns, &self->in_agent);
    *out = self;
    return BAY_OK;
}

a2a_turn *a2a_turn_ref(a2a_turn *self)
{
    self->refs++;
    return self;
}

void a2a_turn_unref(a2a_turn *self)
{
    if (self != NULL && --self->refs == 0) {
        list_remove(&self->in_agent);
        agent_overflow_unref(self->overflow);
        principal_unref(self->principal);
        mem_free(self);
    }
}

/* ---- its life */

/* Removes it from its task and drops the engine's reference. Once. */
static void part(a2a_turn *self)
{
    agent_task *task = self->task;
    if (task == NULL) {
        return;
    }
    self->task = NULL;
    agent_overflow_unref(self->overflow);
    self->overflow = NULL;
    if (list_holds(&self->link)) {
        list_remove(&self->link);
        task->waiting_count--;
    }
    if (task->turn == self) {
        task->turn = NULL;
        self->of->running--;
    }
    agent_replies_release(task, self);
    a2a_turn_unref(self);
}

void agent_turn_forget(a2a_turn *self)
{
    self->is_canceled = true;
    part(self);
}

/* The agent is freed. */
void agent_turn_close(a2a_turn *self)
{
    a2a_turn_ref(self);
    agent_turn_forget(self);
    self->of = NULL;
    list_remove(&self->in_agent);
    a2a_turn_unref(self);
}

bay_err agent_turn_begin(a2a_turn *self)
{
    a2a_agent *of = self->of;
    agent_task *task = self->task;
    if (task->is_open && a2a_state_is_interrupted(task->state) && !self->is_resumed) {
        bay_err err = agent_task_set_state(task, A2A_WORKING, NULL, (bay_str){NULL, 0});
        if (err != BAY_OK) {
            return err;
        }
    }
    if (list_holds(&self->link)) {
        list_remove(&self->link);
        task->waiting_count--;
    }
    task->turn = self;
    self->is_begun = true;
    of->running++;
    agent_task_touch(task);
    a2a_turn_ref(self);
    agent_task_pin(task);
    of->options.handler->turn(of->options.user, self);
    agent_task_unpin(task);
    a2a_turn_unref(self);
    return BAY_OK;
}

void agent_turn_cancel(a2a_turn *self)
{
    a2a_agent *of = self->of;
    self->is_canceled = true;
    if (of->options.handler->canceled != NULL) {
        a2a_turn_ref(self);
        of->options.handler->canceled(of->options.user, self);
        a2a_turn_unref(self);
    }
}

/* Another process must not repeat a turn that has ended. */
static void note_end(agent_task *task)
{
    if (task->of->options.persistence == NULL || !task->is_open ||
        a2a_state_is_terminal(task->state)) {
        return;
    }
    task->revision++;
    if (!agent_task_has_readers(task)) {
        task->dropped = task->revision;
    }
}

void a2a_turn_end(a2a_turn *self)
{
    a2a_agent *of = self->of;
    agent_task *task = self->task;
    bool was_ended = self->is_ended;
    self->is_ended = true;
    if (was_ended || task == NULL) {
        return;
    }
    agent_enter(of);
    agent_task_touch(task);
    part(self);
    note_end(task);
    agent_leave(of);
}

/* ---- what it is about */

json_val a2a_turn_message(const a2a_turn *self)
{
    return self->message;
}

json_val a2a_turn_request(const a2a_turn *self)
{
    return json_root(self->request);
}

bay_str a2a_turn_task_id(const a2a_turn *self)
{
    return self->task_id;
}

bay_str a2a_turn_context_id(const a2a_turn *self)
{
    return self->context_id;
}

const auth_principal *a2a_turn_principal(const a2a_turn *self)
{
    return self->principal;
}

bay_str a2a_turn_traceparent(const a2a_turn *self)
{
    return self->traceparent;
}

bay_str a2a_turn_tracestate(const a2a_turn *self)
{
    return self->tracestate;
}

bay_str a2a_turn_via(const a2a_turn *self)
{
    return self->via;
}

bay_str a2a_turn_extensions(const a2a_turn *self)
{
    return self->extensions;
}

bool a2a_turn_is_new(const a2a_turn *self)
{
    return self->is_new;
}

bool a2a_turn_is_resumed(const a2a_turn *self)
{
    return self->is_resumed;
}

bool a2a_turn_is_canceled(const a2a_turn *self)
{
    return self->is_canceled;
}

bay_err a2a_turn_task(const a2a_turn *self, buf *out)
{
    if (self->task == NULL) {
        return self->of == NULL ? BAY_ERR_CLOSED : BAY_ERR_STATE;
    }
    agent_write_task(self->task, -1, true, out);
    return out->err;
}

bay_str a2a_turn_remembered(const a2a_turn *self)
{
    return self->task != NULL ? agent_text_view(self->task->memory) : (bay_str){"", 0};
}

bay_str a2a_agent_remembered(const a2a_agent *self, bay_str task, bay_str principal)
{
    const agent_task *found = agent_task_find(self, task, principal);
    return found != NULL ? agent_text_view(found->memory) : (bay_str){"", 0};
}

/* ---- moves */

static bay_err may_move(const a2a_turn *self)
{
    if (self->of == NULL) {
        return BAY_ERR_CLOSED;
    }
    return self->task == NULL || self->is_canceled || self->is_ended || self->task->answer != NULL
               ? BAY_ERR_STATE
               : BAY_OK;
}

/* A handler's output: a message, a text, or nothing. */
typedef struct saying {
    json_val message;
    bay_str text; /* .at NULL: the message is used */
} saying;

static bool says_something(const saying *what)
{
    return what->text.at != NULL || json_kind_of(what->message) > JSON_NULL;
}

static bay_err write_message(a2a_turn *self, const saying *what, bool with_task, agent_text **out)
{
    const agent_task *task = self->task;
    bay_str ids = with_task ? task->ids : str_from(task->ids, task->context_at);
    buf written = agent_buffer(self->of);
    bay_err err = what->text.at != NULL
                      ? agent_write_text(self->of, what->text, ids, &written)
                      : agent_write_message(self->of, what->message, ids, &written);
    agent_text *made = err == BAY_OK ? agent_text_new(buf_view(&written)) : NULL;
    agent_buffer_back(self->of, &written);
    if (err == BAY_OK && made == NULL) {
        err = BAY_ERR_NOMEM;
    }
    if (err == BAY_OK) {
        *out = made;
    }
    return err;
}

static bay_err agent_turn_answer(a2a_turn *self, const saying *what)
{
    bay_err err = may_move(self);
    if (err != BAY_OK || self->task->is_open) {
        return err != BAY_OK ? err : BAY_ERR_STATE;
    }
    agent_enter(self->of);
    a2a_agent *of = self->of;
    err = write_message(self, what, false, &self->task->answer);
    if (err == BAY_OK) {
        agent_task_touch(self->task);
    }
    agent_leave(of);
    return err;
}

bay_err a2a_turn_reply(a2a_turn *self, json_val message)
{
    return agent_turn_answer(self, &(saying){.message = message});
}

bay_err a2a_turn_reply_text(a2a_turn *self, bay_str text)
{
    return agent_turn_answer(self, &(saying){.text = {text.len > 0 ? text.at : "", text.len}});
}

static bay_err move_state(a2a_turn *self, a2a_state state, const saying *what, json_val metadata)
{
    agent_text *text = NULL;
    bool has_metadata = json_kind_of(metadata) > JSON_NULL;
    if (has_metadata && !json_is(metadata, JSON_OBJECT)) {
        return BAY_ERR_INVALID;
    }
    /* Before anything is opened or written. */
    if (!agent_state_may_follow(self->task->state, state)) {
        return BAY_ERR_STATE;
    }
    bay_err err = says_something(what) ? write_message(self, what, true, &text) : BAY_OK;
    if (err == BAY_OK) {
        err = agent_task_open(self->task);
        if (err != BAY_OK) {
            agent_text_unref(text);
        }
    }
    return err == BAY_OK
               ? agent_task_set_state(self->task, state, text,
                                      has_metadata ? json_raw(metadata) : (bay_str){"", 0})
               : err;
}

static bay_err move(a2a_turn *self, a2a_state state, const saying *what, json_val metadata)
{
    bay_err err = may_move(self);
    if (err != BAY_OK) {
        return err;
    }
    a2a_agent *of = self->of;
    agent_enter(of);
    err = move_state(self, state, what, metadata);
    agent_leave(of);
    return err;
}

bay_err a2a_turn_status(a2a_turn *self, a2a_state state, json_val message, json_val metadata)
{
    return move(self, state, &(saying){.message = message}, metadata);
}

bay_err a2a_turn_status_text(a2a_turn *self, a2a_state state, bay_str text)
{
    return move(self, state, &(saying){.text = {text.len > 0 ? text.at : "", text.len}}, JSON_NONE);
}

bay_err a2a_turn_artifact(a2a_turn *self, json_val artifact, bool append, bool is_last_chunk)
{
    bay_err err = may_move(self);
    if (err != BAY_OK || a2a_state_is_terminal(self->task->state)) {
        return err != BAY_OK ? err : BAY_ERR_STATE;
    }
    a2a_agent *of = self->of;
    agent_enter(of);
    err = agent_artifact_add(self->task, artifact, append, is_last_chunk);
    agent_leave(of);
    return err;
}

/* Stored with the task's next change; without one it is not needed. */
bay_err a2a_turn_remember(a2a_turn *self, bay_str bytes)
{
    bay_err err = may_move(self);
    if (err == BAY_OK && bytes.len > A2A_TURN_MEMORY_BYTES) {
        err = BAY_ERR_LIMIT;
    }
    if (err != BAY_OK) {
        return err;
    }
    a2a_agent *of = self->of;
    agent_task *task = self->task;
    agent_text *made = agent_text_new(bytes);
    if (made == NULL) {
        return BAY_ERR_NOMEM;
    }
    agent_enter(of);
    err = agent_task_room(task, bytes.len);
    if (err == BAY_OK) {
        agent_task_count(task, bytes.len, agent_text_view(task->memory).len);
        agent_text_unref(task->memory);
        task->memory = made;
        agent_task_touch(task);
    } else {
        agent_text_unref(made);
    }
    agent_leave(of);
    return err;
}
