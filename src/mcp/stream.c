/* Streams of legacy sessions.
 *
 *   attached ──gone──► away ──resumed──► attached
 *      │                 │
 *      └──finish──► freed└──finish──► finished (log kept) ──resumed, replayed──► freed
 *
 * The log of a GET stream that is attached is kept short: list_changed and the like are worth
 * little when late, and an idle session must stay small. */
#include "mcp/stream.h"

#include "base/check.h"
#include "base/mem.h"

enum { MAX_FINISHED = 16, GET_LOG_EVENTS = 4 };

stream *stream_new(mcp_session *session, mcp_carrier *carrier, bool is_get)
{
    stream *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->holder.kind = HOLDER_STREAM;
    carrier_take(&self->holder, carrier);
    self->session = session;
    self->number = ++session->last_stream;
    self->is_get = is_get;
    list_push(&session->streams, &self->link);
    return self;
}

void stream_free(stream *self)
{
    event_log_trim(&self->session->log, self->number, 0);
    list_remove(&self->link);
    if (self->session->get == self) {
        self->session->get = NULL;
    }
    if (self->outlet != NULL) {
        self->outlet->stream = NULL;
    }
    if (self->holder.carrier != NULL) {
        carrier_end(&self->holder);
    }
    mem_free(self);
}

static bay_err send(stream *self, uint32_t seq, bay_str json)
{
    mcp_carrier *carrier = self->holder.carrier;
    char text[24];
    buf id = {.at = text, .cap = sizeof(text), .max = sizeof(text)}; /* fits: never grows */
    buf_uint(&id, self->number);
    buf_char(&id, '-');
    buf_uint(&id, seq);
    return carrier->ops->event(carrier, json, buf_view(&id));
}

void stream_prime(stream *self)
{
    mcp_carrier *carrier = self->holder.carrier;
    if (carrier == NULL) {
        return;
    }
    if (self->session->revision->id >= MCP_REV_2025_11_25) {
        (void)send(self, self->seq, STR(""));
    } else {
        (void)carrier->ops->event(carrier, STR(""), STR(""));
    }
}

bay_err stream_event(stream *self, bay_str json)
{
    mcp_session *session = self->session;
    event_log_limits limits = {session->server->options.log_bytes,
                               session->server->options.log_events};
    uint32_t seq = ++self->seq;
    /* Not kept (no memory, or larger than the log): delivered all the same, only not again. */
    (void)event_log_add(&session->log, &limits, self->number, seq, json);
    if (self->holder.carrier == NULL) {
        return BAY_OK;
    }
    if (self->is_get) {
        event_log_trim(&session->log, self->number, GET_LOG_EVENTS);
    }
    return send(self, seq, json);
}

/* Finished streams nobody asked for again make room for newer ones. */
static void forget_oldest(mcp_session *session)
{
    uint32_t finished = 0;
    stream *oldest = NULL;
    LIST_EACH(link, &session->streams)
    {
        stream *one = CONTAINER_OF(link, stream, link);
        if (one->is_finished) {
            oldest = oldest == NULL ? one : oldest;
            finished++;
        }
    }
    if (finished > MAX_FINISHED) {
        stream_free(oldest);
    }
}

void stream_finish(stream *self)
{
    if (self->holder.carrier != NULL ||
        event_log_after(&self->session->log, self->number, 0) == NULL) {
        stream_free(self);
        return;
    }
    self->is_finished = true;
    forget_oldest(self->session);
}

static bool number_of(bay_str text, uint32_t *out)
{
    uint64_t number;
    if (!str_uint(text, &number) || number > UINT32_MAX) {
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

stream *stream_find(mcp_session *session, bay_str event_id, uint32_t *out_seq)
{
    size_t dash = str_find(event_id, '-');
    uint32_t number;
    uint32_t seq;
    if (!number_of(str_head(event_id, dash), &number) ||
        !number_of(str_from(event_id, dash + 1), &seq)) {
        return NULL;
    }
    LIST_EACH(link, &session->streams)
    {
        stream *one = CONTAINER_OF(link, stream, link);
        if (one->number == number && seq <= one->seq) {
            *out_seq = seq;
            return one;
        }
    }
    return NULL;
}

void stream_resume(stream *self, mcp_carrier *carrier, uint32_t seq)
{
    if (self->holder.carrier != NULL) {
        carrier_end(&self->holder);
    }
    carrier_take(&self->holder, carrier);
    event_log_trim(&self->session->log, self->number, self->seq - seq);
    const event *one;
    uint32_t sent = seq;
    /* The carrier may go in the middle of it; then the rest waits in the log. */
    while (self->holder.carrier != NULL &&
           (one = event_log_after(&self->session->log, self->number, sent)) != NULL) {
        sent = one->seq;
        (void)send(self, one->seq, event_text(one));
    }
    if (self->holder.carrier == NULL) {
        return;
    }
    if (self->is_finished) {
        stream_free(self);
    } else if (sent == seq) {
        stream_prime(self); /* opens the reply even when there is nothing to repeat */
    }
}
