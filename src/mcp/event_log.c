/* The bounded event log. One list holds the events of all streams of a session in the order in
 * which they were sent; it is short (hundreds at most), so look-ups walk it. */
#include "mcp/event_log.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"

void event_log_init(event_log *self)
{
    list_init(&self->events);
    self->bytes = 0;
    self->count = 0;
}

static void event_drop(event_log *self, event *one)
{
    list_remove(&one->link);
    self->bytes -= one->len + sizeof(event);
    self->count--;
    mem_free(one);
}

void event_log_fini(event_log *self)
{
    LIST_EACH(link, &self->events)
    {
        event_drop(self, CONTAINER_OF(link, event, link));
    }
}

/* Drops the oldest event; an answer only if there is nothing else. */
static void drop_one(event_log *self)
{
    LIST_EACH(link, &self->events)
    {
        event *one = CONTAINER_OF(link, event, link);
        if (!one->is_last) {
            event_drop(self, one);
            return;
        }
    }
    event_drop(self, CONTAINER_OF(list_first(&self->events), event, link));
}

bool event_log_add(event_log *self, const event_log_limits *limits, uint32_t stream, uint32_t seq,
                   bay_str text)
{
    if (limits->events == 0 || limits->bytes < sizeof(event) ||
        text.len > limits->bytes - sizeof(event) || text.len > UINT32_MAX) {
        return false;
    }
    size_t cost = text.len + sizeof(event);
    event *one = mem_alloc(cost);
    if (one == NULL) {
        return false;
    }
    while (self->count >= limits->events || self->bytes > limits->bytes - cost) {
        drop_one(self);
    }
    *one = (event){.stream = stream, .seq = seq, .len = (uint32_t)text.len};
    memcpy(one->text, text.at, text.len);
    list_push(&self->events, &one->link);
    self->bytes += cost;
    self->count++;
    return true;
}

bool event_log_has_room(const event_log *self, const event_log_limits *limits, size_t len)
{
    size_t cost = len + sizeof(event);
    return self->count < limits->events && cost <= limits->bytes &&
           self->bytes <= limits->bytes - cost;
}

void event_log_mark_last(event_log *self)
{
    if (!list_is_empty(&self->events)) {
        CONTAINER_OF(self->events.head.prev, event, link)->is_last = true;
    }
}

const event *event_log_after(const event_log *self, uint32_t stream, uint32_t seq)
{
    LIST_EACH(link, &self->events)
    {
        const event *one = CONTAINER_OF(link, event, link);
        if (one->stream == stream && one->seq > seq) {
            return one;
        }
    }
    return NULL;
}

void event_log_trim(event_log *self, uint32_t stream, uint32_t keep)
{
    uint32_t have = 0;
    LIST_EACH(link, &self->events)
    {
        have += CONTAINER_OF(link, event, link)->stream == stream ? 1 : 0;
    }
    LIST_EACH(link, &self->events)
    {
        event *one = CONTAINER_OF(link, event, link);
        if (one->stream == stream && have > keep) {
            have--;
            event_drop(self, one);
        }
    }
}

void event_log_trim_to(event_log *self, uint32_t stream, uint32_t seq)
{
    LIST_EACH(link, &self->events)
    {
        event *one = CONTAINER_OF(link, event, link);
        if (one->stream == stream && one->seq <= seq) {
            event_drop(self, one);
        }
    }
}
