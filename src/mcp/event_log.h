/* The recent events of a session's streams, so that a client that lost a stream can get the rest:
 * bounded by events and by bytes. The oldest are dropped first; the last events of streams, their
 * answers, after all others. Internal to the server engine. */
#ifndef MCP_EVENT_LOG_H
#define MCP_EVENT_LOG_H

#include "base/list.h"
#include "patchbay/types.h"

typedef struct event {
    list_link link;
    uint32_t stream;
    uint32_t seq;
    uint32_t len;
    bool is_last; /* of its stream */
    char text[];
} event;

typedef struct event_log {
    list events; /* oldest first, of all streams */
    size_t bytes;
    uint32_t count;
} event_log;

typedef struct event_log_limits {
    size_t bytes;
    uint32_t events;
} event_log_limits;

void event_log_init(event_log *self);
void event_log_fini(event_log *self);

/* Stores a copy, dropping others until it fits. False: not stored, because it is larger than the
 * whole log or there is no memory. */
bool event_log_add(event_log *self, const event_log_limits *limits, uint32_t stream, uint32_t seq,
                   bay_str text);

/* Whether one more fits without dropping any. */
bool event_log_has_room(const event_log *self, const event_log_limits *limits, size_t len);
/* Marks the newest as the last of its stream. */
void event_log_mark_last(event_log *self);

/* The first event of the stream later than `seq`; NULL: none. Valid until the log changes. */
const event *event_log_after(const event_log *self, uint32_t stream, uint32_t seq);

/* Drops all but the newest `keep` events of a stream. */
void event_log_trim(event_log *self, uint32_t stream, uint32_t keep);

/* Drops those of a stream up to and including `seq`. */
void event_log_trim_to(event_log *self, uint32_t stream, uint32_t seq);

static inline bay_str event_text(const event *self)
{
    return (bay_str){self->text, self->len};
}

#endif
