/* Tasks: created, opened, moved, removed. One function changes the state, by one table. */
#include "a2a/agent_internal.h"
#include "base/err.h"
#include "base/mem.h"
#include "json/writer.h"

/* ---- states */

#define BIT(state) (1U << (state))
enum {
    TERMINAL = BIT(A2A_COMPLETED) | BIT(A2A_FAILED) | BIT(A2A_CANCELED) | BIT(A2A_REJECTED),
    STOPPED = TERMINAL | BIT(A2A_INPUT_REQUIRED) | BIT(A2A_AUTH_REQUIRED),
};

/* The states that may follow; a state may be repeated, with another message. */
static const unsigned next_states[A2A_STATES] = {
    [A2A_SUBMITTED] = BIT(A2A_SUBMITTED) | BIT(A2A_WORKING) | STOPPED,
    [A2A_WORKING] = BIT(A2A_WORKING) | STOPPED,
    [A2A_INPUT_REQUIRED] = BIT(A2A_SUBMITTED) | BIT(A2A_WORKING) | STOPPED,
    [A2A_AUTH_REQUIRED] = BIT(A2A_SUBMITTED) | BIT(A2A_WORKING) | STOPPED,
};

bool agent_state_may_follow(a2a_state from, a2a_state to)
{
    return from < A2A_STATES && to < A2A_STATES && (next_states[from] & BIT(to)) != 0;
}

/* ---- texts */

agent_text *agent_text_new(bay_str json)
{
    if (json.len > UINT32_MAX) {
        return NULL;
    }
    agent_text *self = mem_alloc(sizeof(*self) + json.len);
    if (self != NULL) {
        *self = (agent_text){.refs = 1, .len = (uint32_t)json.len};
        if (json.len > 0) {
            memcpy(self->at, json.at, json.len);
        }
    }
    return self;
}

agent_text *agent_text_ref(agent_text *self)
{
    self->refs += self != NULL;
    return self;
}

void agent_text_unref(agent_text *self)
{
    if (self != NULL && --self->refs == 0) {
        agent_overflow_unref(self->overflow);
        if (!self->is_inside) {
            mem_free(self);
        }
    }
}

/* ---- counting */

void agent_task_count(agent_task *self, size_t more, size_t less)
{
    self->bytes += more - less;
    self->of->bytes += more - less;
}

/* The terminal task with the oldest change, except `except`. */
static agent_task *oldest_terminal(a2a_agent *of, const agent_task *except)
{
    LIST_EACH(link, &of->terminal)
    {
        agent_task *task = CONTAINER_OF(link, agent_task, in_terminal);
        if (task != except && task->pins == 0) {
            return task;
        }
    }
    return NULL;
}

static bay_err room_within(agent_task *self, size_t bytes, size_t most)
{
    a2a_agent *of = self->of;
    if (bytes > most || self->bytes > most - bytes) {
        return BAY_ERR_LIMIT;
    }
    while (bytes > of->limits.total_bytes || of->bytes > of->limits.total_bytes - bytes) {
        agent_task *oldest = oldest_terminal(of, self);
        if (oldest == NULL) {
            return self->is_restoring ? BAY_OK : BAY_ERR_LIMIT;
        }
        agent_task_remove(oldest, NULL, true);
    }
    return BAY_OK;
}

bay_err agent_task_room(agent_task *self, size_t bytes)
{
    return room_within(self, bytes, agent_task_most(self));
}

/* ---- making and removing */

/* The next two tasks to be removed are not in the cache: they are prefetched during this request.
 */
static void warm_oldest(const a2a_agent *of)
{
    enum { LINE_BYTES = 64, TEXT_BYTES = 384 };
    const list_link *first = of->terminal.head.next;
    if (first == &of->terminal.head || first->next == &of->terminal.head) {
        return;
    }
    const agent_task *next = CONTAINER_OF(first, agent_task, in_terminal);
    map_warm(&of->tasks, next->hash);
    __builtin_prefetch(next->status, 1);
    const char *later = (const char *)CONTAINER_OF(first->next, agent_task, in_terminal);
    for (size_t at = 0; at < sizeof(agent_task) + TEXT_BYTES; at += LINE_BYTES) {
        __builtin_prefetch(later + at, 1);
    }
}

static bay_err make_place(a2a_agent *of)
{
    if (of->task_count < of->limits.tasks) {
        return BAY_OK;
    }
    agent_task *oldest = oldest_terminal(of, NULL);
    if (oldest == NULL) {
        return BAY_ERR_BUSY;
    }
    agent_task_remove(oldest, NULL, true);
    warm_oldest(of);
    return BAY_OK;
}

enum { TASK_KEY = sizeof("\"taskId\":") - 1, CONTEXT_KEY = sizeof("\"contextId\":") - 1 };

/* One block of memory: the struct, room for a text, the ids as JSON members, which the caller
 * writes, and the id again if it differs there (`other` bytes). */
static agent_task *task_alloc(size_t room, size_t ids_len, size_t other)
{
    enum { ALIGNED = 8 };
    size_t text = (room + ALIGNED - 1) / ALIGNED * ALIGNED;
    agent_task *self =
        room <= UINT32_MAX ? mem_alloc(sizeof(*self) + text + ids_len + other) : NULL;
    if (self == NULL) {
        return NULL;
    }
    memset(self, 0, sizeof(*self));
    self->ids = (bay_str){(char *)(self + 1) + text, ids_len};
    self->room = (uint32_t)room;
    self->history = self->first_texts;
    self->history_cap = ARRAY_LEN(self->first_texts);
    list_init(&self->configs);
    list_init(&self->events);
    list_init(&self->replies);
    list_init(&self->subscribers);
    list_init(&self->waiting);
    list_init(&self->overflows);
    list_init(&self->gone);
    return self;
}

/* Both ids are UUIDs. */
static agent_task *task_plainly_named(bay_str id, bay_str context_id, size_t room)
{
    agent_task *self = task_alloc(room, TASK_KEY + CONTEXT_KEY + id.len + context_id.len + 5, 0);
    if (self == NULL) {
        return NULL;
    }
    buf ids = {.at = (char *)self->ids.at, .cap = self->ids.len, .max = self->ids.len};
    buf_lit(&ids, "\"taskId\":\"");
    self->id = (bay_str){ids.at + ids.len, id.len};
    buf_str(&ids, id);
    buf_lit(&ids, "\",");
    self->context_at = (uint32_t)ids.len;
    buf_lit(&ids, "\"contextId\":\"");
    buf_str(&ids, context_id);
    buf_char(&ids, '"');
    return self;
}

static agent_task *task_named(a2a_agent *of, bay_str id, bay_str context_id, size_t room)
{
    buf ids = agent_buffer(of);
    buf_lit(&ids, "\"taskId\":");
    json_quote(&ids, id);
    buf_char(&ids, ',');
    size_t context_at = ids.len;
    buf_lit(&ids, "\"contextId\":");
    json_quote(&ids, context_id);
    bool is_plain = context_at == TASK_KEY + id.len + 3; /* two quotes, a comma */
    agent_task *self = ids.err == BAY_OK ? task_alloc(room, ids.len, is_plain ? 0 : id.len) : NULL;
    if (self != NULL) {
        char *at = (char *)self->ids.at;
        memcpy(at, ids.at, ids.len);
        char *own = is_plain ? at + TASK_KEY + 1 : at + ids.len;
        memcpy(own, id.at, id.len);
        self->id = (bay_str){own, id.len};
        self->context_at = (uint32_t)context_at;
    }
    agent_buffer_back(of, &ids);
    return self;
}

bay_err agent_task_new(a2a_agent *of, bay_str id, uint64_t hash, bay_str principal,
                       bay_str context_id, agent_naming naming, size_t room, agent_task **out)
{
    bay_err err = make_place(of);
    if (err != BAY_OK) {
        return err;
    }
    agent_task *self = naming == AGENT_CONTEXT_OWN ? task_plainly_named(id, context_id, room)
                                                   : task_named(of, id, context_id, room);
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->of = of;
    self->hash = hash;
    self->state = self->placed_state = A2A_SUBMITTED;
    void *same = NULL;
    if (agent_context_join(self, principal, context_id, naming) != BAY_OK ||
        map_put_hashed(&of->tasks, self->id, hash, self, &same) != BAY_OK) {
        agent_context_drop(of, self->context);
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    CHECK(same == NULL); /* ids made here are never reused */
    list_push(&of->all, &self->in_agent);
    of->task_count++;
    agent_task_count(self, sizeof(*self) + self->ids.len, 0);
    *out = self;
    return BAY_OK;
}

agent_task *agent_task_find(const a2a_agent *of, bay_str id, bay_str principal)
{
    agent_task *self = map_get(&of->tasks, id);
    /* a2a 1.0 section 13.1: another caller's task does not exist for this one */
    return self != NULL && self->is_open && str_eq(self->context->owner->name, principal) ? self
                                                                                          : NULL;
}

static void forget_turns(agent_task *self)
{
    if (self->turn != NULL) {
        agent_turn_cancel(self->turn);
    }
    if (self->turn != NULL) {
        agent_turn_forget(self->turn);
    }
    for (list_link *link; (link = list_first(&self->waiting)) != NULL;) {
        agent_turn_forget(CONTAINER_OF(link, a2a_turn, link));
    }
}

static void tell_all(agent_task *self, const a2a_fault *fault)
{
    a2a_fault gone;
    if (fault == NULL) {
        err_ignore(a2a_fault_set(&gone, A2A_E_TASK_NOT_FOUND, "the task is no longer kept"));
        fault = &gone;
    }
    for (list_link *link; (link = list_first(&self->replies)) != NULL;) {
        agent_reply_fail(CONTAINER_OF(link, agent_reply, link), fault);
    }
    for (list_link *link; (link = list_first(&self->subscribers)) != NULL;) {
        agent_reply_fail(CONTAINER_OF(link, agent_reply, link), fault);
    }
}

static void drop_content(agent_task *self)
{
    for (list_link *link; (link = list_first(&self->events)) != NULL;) {
        agent_event_drop(CONTAINER_OF(link, agent_event, in_task));
    }
    for (list_link *link; (link = list_pop(&self->configs)) != NULL;) {
        agent_config_free(CONTAINER_OF(link, agent_config, link));
    }
    for (uint32_t i = 0; i < self->history_count; i++) {
        agent_text_unref(self->history[i]);
    }
    for (uint32_t i = 0; i < self->artifact_count; i++) {
        agent_artifact_fini(&self->artifacts[i]);
    }
    agent_text_unref(self->status);
    agent_text_unref(self->memory);
    agent_text_unref(self->answer);
    agent_overflow_drop(self);
    agent_event_forget_snapshot(self);
    if (self->history != self->first_texts) {
        mem_free(self->history);
    }
    mem_free(self->artifacts);
    self->history = self->first_texts;
    self->artifacts = NULL;
    self->status = NULL;
    self->history_count = self->artifact_count = self->config_count = 0;
}

void agent_task_unpin(agent_task *self)
{
    if (--self->pins == 0 && self->is_removed && self->putting == 0) {
        mem_free(self);
    }
}

void agent_task_remove(agent_task *self, const a2a_fault *fault, bool is_for_good)
{
    if (self->is_removed) {
        return;
    }
    a2a_agent *of = self->of;
    a2a_persistence *persistence = of->options.persistence;
    agent_task_pin(self);
    self->is_removed = true;
    self->is_open = false;
    map_remove_hashed(&of->tasks, self->id, self->hash);
    agent_order_leave(self);
    list_remove(&self->in_agent);
    list_remove(&self->in_terminal);
    list_remove(&self->in_failed);
    forget_turns(self);
    tell_all(self, fault);
    list_remove(&self->in_work);
    drop_content(self);
    if (is_for_good && persistence != NULL && self->put > 0) {
        persistence->ops->remove(persistence, self->id);
    }
    agent_context_drop(of, self->context);
    self->context = NULL;
    of->task_count--;
    of->bytes -= self->bytes;
    if (!is_for_good) {
        self->of = NULL;
    }
    agent_task_unpin(self);
}

void agent_task_touch(agent_task *self)
{
    if (!self->is_removed && !list_holds(&self->in_work)) {
        list_push(&self->of->work, &self->in_work);
    }
}

void agent_task_evict(a2a_agent *of, uint64_t now_ms)
{
    for (list_link *link; (link = list_first(&of->terminal)) != NULL;) {
        agent_task *task = CONTAINER_OF(link, agent_task, in_terminal);
        if (task->status_ms + of->limits.task_ttl_ms > now_ms) {
            return;
        }
        agent_task_remove(task, NULL, true);
    }
}

/* ---- history */

static bay_err grow_history(agent_task *self)
{
    if (self->history_count < self->history_cap) {
        return BAY_OK;
    }
    uint32_t cap = self->history_cap * 2;
    bool is_first = self->history == self->first_texts;
    agent_text **history = mem_resize(is_first ? NULL : self->history, cap * sizeof(*history));
    if (history == NULL) {
        return BAY_ERR_NOMEM;
    }
    if (is_first) {
        memcpy(history, self->first_texts, sizeof(self->first_texts));
    }
    self->history = history;
    self->history_cap = cap;
    return BAY_OK;
}

/* The first message says what the task is about, so the second oldest is dropped. */
static void shorten_history(agent_task *self)
{
    uint32_t at = self->history_count > 1 ? 1 : 0;
    agent_text *text = self->history[at];
    agent_task_count(self, 0, text->len);
    memmove(self->history + at, self->history + at + 1,
            (self->history_count - at - 1) * sizeof(agent_text *));
    self->history_count--;
    agent_text_unref(text);
}

static bay_err remember_within(agent_task *self, agent_text *text, size_t most)
{
    bay_err err = room_within(self, text->len, most);
    if (err == BAY_OK) {
        err = grow_history(self);
    }
    if (err != BAY_OK) {
        agent_text_unref(text);
        return err;
    }
    agent_task_count(self, text->len, 0);
    self->history[self->history_count++] = text;
    return BAY_OK;
}

bay_err agent_task_remember(agent_task *self, agent_text *text)
{
    return remember_within(self, text, agent_task_most(self));
}

/* Into the task's own memory. */
static agent_text *receive_in_room(agent_task *self, json_val message, bool has_ids)
{
    agent_text *text = (agent_text *)(self + 1);
    size_t most = self->room - sizeof(*text);
    buf out = {.at = text->at, .cap = most, .max = most};
    self->room = 0;
    agent_write_received(message, has_ids, self->ids, &out);
    if (out.err != BAY_OK) {
        return NULL;
    }
    *text = (agent_text){.refs = 1, .is_inside = 1, .len = (uint32_t)out.len};
    return text;
}

bay_err agent_task_receive(agent_task *self, json_val message, bool has_ids)
{
    bool has_room = self->room >= agent_received_bytes(message, self->ids.len);
    if (has_room) {
        agent_text *text = receive_in_room(self, message, has_ids);
        return text != NULL ? agent_task_remember(self, text) : BAY_ERR_INTERNAL;
    }
    buf out = agent_buffer(self->of);
    agent_write_received(message, has_ids, self->ids, &out);
    agent_text *text = out.err == BAY_OK ? agent_text_new(buf_view(&out)) : NULL;
    bay_err err = out.err == BAY_OK && text == NULL ? BAY_ERR_NOMEM : out.err;
    agent_buffer_back(self->of, &out);
    return err == BAY_OK ? agent_task_remember(self, text) : err;
}

/* A full task can still end with a short message. */
static bay_err remember_status(agent_task *self, agent_text *text, a2a_state state)
{
    size_t spare = a2a_state_is_terminal(state) ? AGENT_FINAL_STATUS_BYTES : 0;
    return remember_within(self, text, self->of->limits.task_bytes + spare);
}

/* ---- moving */

/* The event of the change just made; `is_last` ends streams after it. */
static bay_err tell_state(agent_task *self, bay_str metadata)
{
    if (!agent_task_has_readers(self)) {
        self->dropped = self->revision;
        return BAY_OK;
    }
    buf out = agent_buffer(self->of);
    agent_write_status_event(self, metadata, &out);
    /* a2a 1.0 sections 3.1.2 and 7.6: AUTH_REQUIRED keeps streams open */
    bool is_last = a2a_state_is_terminal(self->state) || self->state == A2A_INPUT_REQUIRED;
    bay_err err = out.err == BAY_OK ? agent_event_add(self, buf_view(&out), is_last) : out.err;
    agent_buffer_back(self->of, &out);
    return err;
}

bay_err agent_task_set_state(agent_task *self, a2a_state state, agent_text *message,
                             bay_str metadata)
{
    if (!agent_state_may_follow(self->state, state)) {
        agent_text_unref(message);
        return BAY_ERR_STATE;
    }
    if (message != NULL) {
        bay_err err = remember_status(self, agent_text_ref(message), state);
        if (err != BAY_OK) {
            agent_text_unref(message);
            return err;
        }
    }
    a2a_state state_before = self->state;
    agent_text *status_before = self->status;
    uint64_t status_ms_before = self->status_ms;
    self->state = state;
    self->status = message;
    self->status_ms = agent_now(self->of);
    self->revision++;
    bay_err err = tell_state(self, metadata);
    if (err != BAY_OK) {
        self->state = state_before;
        self->status = status_before;
        self->status_ms = status_ms_before;
        self->revision--;
        if (message != NULL) {
            agent_task_count(self, 0, message->len);
            agent_text_unref(self->history[--self->history_count]);
            agent_text_unref(message);
        }
        return err;
    }
    agent_text_unref(status_before);
    if (self->history_count > self->of->limits.history) {
        shorten_history(self);
    }
    self->is_placed_stale = true;
    if (a2a_state_is_terminal(state)) {
        list_push(&self->of->terminal, &self->in_terminal);
        agent_wake_at(self->of, self->status_ms + self->of->limits.task_ttl_ms);
    }
    agent_task_touch(self);
    return BAY_OK;
}

bay_err agent_task_open(agent_task *self)
{
    if (self->is_open) {
        return BAY_OK;
    }
    bay_err err = agent_order_reserve(self->context->owner);
    if (err != BAY_OK) {
        return err;
    }
    self->status_ms = agent_now(self->of);
    self->revision = 1;
    if (agent_task_has_readers(self)) {
        a2a_event *snapshot = agent_event_snapshot(self, -1);
        err = snapshot != NULL ? agent_event_add(self, a2a_event_json(snapshot), false)
                               : BAY_ERR_NOMEM;
        a2a_event_unref(snapshot);
        if (err != BAY_OK) {
            self->revision = 0;
            return err;
        }
    } else {
        self->dropped = 1;
    }
    self->is_open = true;
    agent_stream_opened(self);
    agent_order_place(self, 0);
    agent_task_touch(self);
    return BAY_OK;
}
