/* Streams of legacy sessions.
 *
 *   held ──stored──► attached ──disconnected──► away ──resumed──► attached
 *                       │                         │
 *                       └─────────finish──────────┴──finish──► finished (log kept)
 *                                                                  └──resumed, replayed──► freed
 *
 * Bytes written to a connection may never have been read, because it may break before. So the last
 * events of the last few streams are kept for a while also if the client was connected at their
 * end.
 *
 * A stream is held while its session is being stored with it: a client that knows an event's id
 * must be able to resume there, also at an engine that restores the session after this one died.
 * The log of an attached GET stream is kept short: late notifications are of little use, and an
 * idle session must stay small. */
#include "mcp/stream.h"

#include "base/check.h"
#include "base/mem.h"
#include "mcp/session.h"

enum {
    GET_LOG_EVENTS = 4,
    RETRY_MS = 1000,
    MOST_REFUSAL_BYTES = 65536,
    WRITTEN_STREAMS = 4,   /* of a session, kept after their end was written … */
    WRITTEN_EVENTS = 2,    /* … with this many events each */
    WRITTEN_BYTES = 16384, /* … if the last is not larger */
};

stream *stream_restore(mcp_session *session, uint32_t number, bool is_get)
{
    stream *self = mem_zalloc(sizeof(*self));
    if (self != NULL) {
        self->owner.kind = CARRIER_STREAM;
        self->session = session;
        self->number = number;
        self->is_get = is_get;
        list_push(&session->streams, &self->link);
    }
    return self;
}

stream *stream_new(mcp_session *session, mcp_carrier *carrier, bool is_get)
{
    stream *self = stream_restore(session, session->last_stream + 1, is_get);
    if (self != NULL) {
        session->last_stream++;
        carrier_take(&self->owner, carrier);
        self->is_held = session_changed(session, MCP_KEEP_AWAITED);
    }
    return self;
}

void stream_free(stream *self)
{
    if (self->is_held) {
        self->is_finished = false;
        stream_show(self);
    }
    event_log_trim(&self->session->log, self->number, 0);
    list_remove(&self->link);
    if (self->session->get == self) {
        self->session->get = NULL;
    }
    if (self->channel != NULL) {
        self->channel->stream = NULL;
    }
    if (self->owner.carrier != NULL) {
        carrier_end(&self->owner);
    }
    (void)session_changed(self->session, MCP_KEEP_LATER);
    mem_free(self);
}

static bay_err mcp_stream_send(stream *self, uint32_t seq, bool is_last, bay_str json)
{
    mcp_carrier *carrier = self->owner.carrier;
    char text[32];
    buf id = {.at = text, .cap = sizeof(text), .max = sizeof(text)}; /* fits: never grows */
    buf_uint(&id, self->number);
    buf_char(&id, '-');
    buf_uint(&id, seq);
    if (is_last && self->session->server->options.persistence != NULL) {
        buf_lit(&id, "-end");
    }
    return carrier->ops->event(carrier, json, buf_view(&id));
}

void stream_prime(stream *self)
{
    mcp_carrier *carrier = self->owner.carrier;
    if (carrier == NULL || self->is_held) {
        return;
    }
    if (self->session->revision->id >= MCP_REV_2025_11_25) {
        (void)mcp_stream_send(self, self->seq, false, STR(""));
    } else {
        (void)carrier->ops->event(carrier, STR(""), STR(""));
    }
}

/* Sends what came after `seq`. The carrier may end meanwhile; then the rest waits in the log. */
static uint32_t replay(stream *self, uint32_t seq)
{
    const event *one;
    while (self->owner.carrier != NULL &&
           (one = event_log_after(&self->session->log, self->number, seq)) != NULL) {
        seq = one->seq;
        (void)mcp_stream_send(self, one->seq, one->is_last, event_text(one));
    }
    return seq;
}

/* Its whole answer was written to a connected client. */
static void keep_written(stream *self)
{
    mcp_session *session = self->session;
    const event *last = event_log_after(&session->log, self->number, self->seq - 1);
    stream *oldest = NULL;
    uint32_t count = 0;
    if (self->is_get || self->seq == 0 || last == NULL || last->len > WRITTEN_BYTES) {
        stream_free(self);
        return;
    }
    event_log_trim(&session->log, self->number, WRITTEN_EVENTS);
    self->is_finished = true;
    self->is_written = true;
    carrier_end(&self->owner);
    (void)session_changed(session, MCP_KEEP_LATER);
    LIST_EACH(link, &session->streams)
    {
        stream *one = CONTAINER_OF(link, stream, link);
        if (one->is_written) {
            oldest = oldest == NULL ? one : oldest;
            count++;
        }
    }
    if (count > WRITTEN_STREAMS) {
        stream_free(oldest);
    }
}

void stream_show(stream *self)
{
    uint32_t seq = self->seq;
    self->is_held = false;
    self->seq = 0;
    stream_prime(self);
    self->seq = seq;
    (void)replay(self, 0);
    if (self->is_finished && self->owner.carrier != NULL) {
        keep_written(self);
    }
}

static bool stream_keep(stream *self, uint32_t seq, bool is_last, bay_str json)
{
    mcp_session *session = self->session;
    const mcp_server_options *options = &session->server->options;
    event_log_limits limits = {options->log_bytes, options->log_events};
    if (self->is_held && !event_log_has_room(&session->log, &limits, json.len)) {
        stream_show(self); /* events that the client has not received must not be dropped */
    }
    if (!event_log_add(&session->log, &limits, self->number, seq, json)) {
        return false;
    }
    if (is_last) {
        event_log_mark_last(&session->log);
    }
    if (options->persistence != NULL && !session->is_ended) {
        options->persistence->logged(options->persistence_user, session, self->number, seq, is_last,
                                     json);
    }
    return true;
}

/* An answer that is too large to store for its client: without this error the client would wait
 * without end, or repeat a call that was executed. */
static void keep_refusal(stream *self, uint32_t seq, bool is_last, bay_str id)
{
    buf text;
    buf_init(&text, MOST_REFUSAL_BYTES);
    rpc_write_error(&text, id, RPC_INTERNAL_ERROR,
                    STR("The answer came while the client was away, and is larger than what "
                        "is kept for it. The request has been carried out."),
                    STR(""));
    if (text.err == BAY_OK) {
        (void)stream_keep(self, seq, is_last, buf_view(&text));
    }
    buf_fini(&text);
}

bay_err stream_event(stream *self, bay_str json, bool is_last)
{
    return stream_answer(self, json, STR(""), is_last);
}

bay_err stream_answer(stream *self, bay_str json, bay_str id, bool is_last)
{
    mcp_session *session = self->session;
    uint32_t seq = self->seq + 1;
    /* Not stored (no memory, or larger than the log): it is sent, but cannot be repeated. */
    bool is_kept = stream_keep(self, seq, is_last, json);
    if (!is_kept && self->is_held) {
        stream_show(self);
    }
    self->seq = seq;
    if (self->owner.carrier == NULL && !is_kept && id.len > 0) {
        keep_refusal(self, seq, is_last, id);
    }
    if (self->owner.carrier == NULL || self->is_held) {
        return BAY_OK;
    }
    if (self->is_get) {
        event_log_trim(&session->log, self->number, GET_LOG_EVENTS);
    }
    return mcp_stream_send(self, seq, is_last, json);
}

bool stream_release(stream *self)
{
    /* before 2025-11-25 a stream can be resumed only after its first event */
    bool is_known = self->session->revision->id >= MCP_REV_2025_11_25 || self->seq > 0;
    if (self->owner.carrier == NULL || self->is_held || !(self->is_get || is_known)) {
        return false;
    }
    carrier_release(&self->owner, RETRY_MS);
    session_touch(self->session);
    return true;
}

/* Finished streams that were not resumed make room for newer ones. Each has an event in the log at
 * first: streams beyond the number of events have nothing to repeat. */
static void forget_oldest(mcp_session *session)
{
    uint32_t finished = 0;
    stream *oldest = NULL;
    LIST_EACH(link, &session->streams)
    {
        stream *one = CONTAINER_OF(link, stream, link);
        if (one->is_finished && !one->is_held) {
            oldest = oldest == NULL ? one : oldest;
            finished++;
        }
    }
    if (finished > session->server->options.log_events) {
        stream_free(oldest);
    }
}

void stream_finish(stream *self)
{
    if (self->is_held && self->owner.carrier != NULL) {
        self->is_finished = true;
        return;
    }
    if (self->owner.carrier != NULL) {
        keep_written(self);
        return;
    }
    if (event_log_after(&self->session->log, self->number, 0) == NULL) {
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

stream *stream_find(mcp_session *session, bay_str event_id, uint32_t *out_seq, bool *out_is_over)
{
    static const bay_str end = STR_INIT("-end");
    *out_is_over = str_ends(event_id, end);
    if (*out_is_over) {
        event_id.len -= end.len;
    }
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
        if (one->number == number && seq <= one->seq && !one->is_held) {
            *out_seq = seq;
            return one;
        }
    }
    return NULL;
}

void stream_resume(stream *self, mcp_carrier *carrier, uint32_t seq)
{
    if (self->owner.carrier != NULL) {
        carrier_end(&self->owner);
    }
    carrier_take(&self->owner, carrier);
    event_log_trim_to(&self->session->log, self->number, seq);
    uint32_t sent = replay(self, seq);
    if (self->owner.carrier == NULL) {
        return;
    }
    if (sent == seq) {
        stream_prime(self); /* opens the reply even if there is nothing to repeat */
    }
    if (self->is_finished && self->owner.carrier != NULL) {
        stream_free(self);
    }
}
