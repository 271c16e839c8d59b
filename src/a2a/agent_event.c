/* The events of a task that may still be read: by subscribers that are behind, and by clients that
 * reconnect. Events that are stored and sent stay until their place is needed, the oldest of all
 * tasks first. */
#include "a2a/agent_internal.h"
#include "base/mem.h"

static void count(agent_event *self, size_t bytes)
{
    self->task->event_bytes += bytes - self->bytes;
    self->task->of->event_bytes += bytes - self->bytes;
    self->bytes = bytes;
}

void agent_event_take(agent_task *self, agent_event *event)
{
    event->task = self;
    list_push(&self->events, &event->in_task);
    self->event_count++;
    count(event, sizeof(*event) + a2a_event_bytes(event->event));
}

bay_err agent_event_add(agent_task *self, bay_str json, bool is_last)
{
    /* Only events that the persister has not confirmed can accumulate this far. */
    if (self->event_bytes > self->of->limits.task_bytes) {
        return BAY_ERR_LIMIT;
    }
    agent_event *made = mem_zalloc(sizeof(*made));
    a2a_event *event = made != NULL ? a2a_event_new(json, self->revision, is_last) : NULL;
    if (event == NULL) {
        mem_free(made);
        return BAY_ERR_NOMEM;
    }
    made->event = event;
    agent_event_take(self, made);
    agent_event_forget_snapshot(self); /* it is unchanged */
    return BAY_OK;
}

void agent_event_forget_snapshot(agent_task *self)
{
    a2a_event_unref(self->snapshot);
    self->snapshot = NULL;
}

void agent_event_drop(agent_event *self)
{
    agent_task *task = self->task;
    task->dropped = a2a_event_sequence(self->event);
    task->event_count--;
    count(self, 0);
    list_remove(&self->in_task);
    list_remove(&self->in_agent);
    a2a_event_unref(self->event);
    mem_free(self);
}

static bool may_go(const agent_task *task, const agent_event *event)
{
    uint64_t sequence = a2a_event_sequence(event->event);
    return agent_task_is_kept(task, sequence) &&
           (task->config_count == 0 || task->pushed >= sequence);
}

void agent_event_release(agent_task *self)
{
    a2a_agent *of = self->of;
    /* From the end back to those released before. */
    list_link *link = self->events.head.prev;
    while (link != &self->events.head &&
           !list_holds(&CONTAINER_OF(link, agent_event, in_task)->in_agent)) {
        link = link->prev;
    }
    for (link = link->next; link != &self->events.head; link = link->next) {
        agent_event *event = CONTAINER_OF(link, agent_event, in_task);
        if (!may_go(self, event)) {
            break;
        }
        count(event, sizeof(*event) + a2a_event_bytes(event->event)); /* with its forms */
        list_push(&of->events, &event->in_agent);
    }
    while (self->event_count > of->limits.replay_events ||
           self->event_bytes > of->limits.replay_bytes) {
        agent_event *oldest = CONTAINER_OF(list_first(&self->events), agent_event, in_task);
        if (!list_holds(&oldest->in_agent)) {
            break;
        }
        agent_event_drop(oldest);
    }
    while (of->event_bytes > of->limits.replay_total_bytes && !list_is_empty(&of->events)) {
        agent_event_drop(CONTAINER_OF(list_first(&of->events), agent_event, in_agent));
    }
}

/* Readers are near the end, so the search starts there. */
agent_event *agent_event_after(const agent_task *self, uint64_t sequence)
{
    const list_link *head = &self->events.head;
    list_link *link = head->prev;
    while (link != head &&
           a2a_event_sequence(CONTAINER_OF(link, agent_event, in_task)->event) > sequence) {
        link = link->prev;
    }
    link = link->next;
    return link != head ? CONTAINER_OF(link, agent_event, in_task) : NULL;
}

static a2a_event *snapshot_new(const agent_task *self, int64_t history_length, bool is_last)
{
    buf out = agent_buffer(self->of);
    buf_lit(&out, "{\"task\":");
    agent_write_task(self, history_length, true, &out);
    buf_char(&out, '}');
    a2a_event *made =
        out.err == BAY_OK ? a2a_event_new(buf_view(&out), self->revision, is_last) : NULL;
    agent_buffer_back(self->of, &out);
    return made;
}

a2a_event *agent_event_last_snapshot(agent_task *self, int64_t history_length)
{
    return snapshot_new(self, history_length, true);
}

a2a_event *agent_event_snapshot(agent_task *self, int64_t history_length)
{
    bool is_last = a2a_state_is_terminal(self->state);
    if (history_length >= 0 && history_length < self->history_count) {
        return snapshot_new(self, history_length, is_last);
    }
    if (self->snapshot == NULL || self->snapshot_at != self->revision) {
        a2a_event *made = snapshot_new(self, -1, is_last);
        if (made == NULL) {
            return NULL;
        }
        a2a_event_unref(self->snapshot);
        self->snapshot = made;
        self->snapshot_at = self->revision;
    }
    return a2a_event_ref(self->snapshot);
}
