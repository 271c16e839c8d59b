/* The response side of one POST or one duplex message. When the first message is sent, it decides
 * the form of the reply: a JSON body or an event stream. A batch collects its answers until the
 * last one.
 *
 * HTTP:  waiting ──answer──► answered            (one body)
 *           └──event──► streaming ──answer──► ended
 * A legacy channel that streams passes its carrier to a stream object, which outlives it while the
 * client is disconnected. */
#include "base/check.h"
#include "base/mem.h"
#include "mcp/server_internal.h"
#include "mcp/session.h"
#include "mcp/stream.h"

void carrier_take(carrier_owner *self, mcp_carrier *carrier)
{
    self->carrier = carrier;
    if (carrier != NULL) {
        carrier->engine = self;
    }
}

static mcp_carrier *carrier_drop(carrier_owner *self)
{
    mcp_carrier *carrier = self->carrier;
    self->carrier = NULL;
    carrier->engine = NULL;
    return carrier;
}

void carrier_answer(carrier_owner *self, int status, bay_str json, bay_str session, bay_str allow)
{
    mcp_carrier *carrier = carrier_drop(self);
    carrier->ops->answer(carrier, status, json, session, allow);
}

void carrier_end(carrier_owner *self)
{
    mcp_carrier *carrier = carrier_drop(self);
    carrier->ops->end(carrier);
}

void carrier_release(carrier_owner *self, uint32_t retry_ms)
{
    mcp_carrier *carrier = carrier_drop(self);
    if (carrier->ops->release != NULL) {
        carrier->ops->release(carrier, retry_ms);
    } else {
        carrier->ops->end(carrier);
    }
}

void response_channel_init(response_channel *self, mcp_server *server)
{
    *self = (response_channel){.owner.kind = CARRIER_RESPONSE_CHANNEL, .server = server};
    list_init(&self->requests);
}

response_channel *response_channel_new_batch(mcp_server *server)
{
    response_channel *self = mem_alloc(sizeof(*self));
    if (self != NULL) {
        response_channel_init(self, server);
        self->is_batch = true;
        self->open = 1;
        buf_init(&self->answers, server->out.max);
    }
    return self;
}

/* Line ends outside of JSON strings are white space; a line and an event must be one line. */
static void flatten(buf *json)
{
    char *at = json->at;
    char *end = json->at + json->len;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        *at++ = ' ';
    }
    at = json->at;
    while (at != NULL && at < end && (at = memchr(at, '\r', (size_t)(end - at))) != NULL) {
        *at++ = ' ';
    }
}

static void collect(response_channel *self, bay_str json)
{
    size_t before = self->answers.len;
    buf_char(&self->answers, self->has_answers ? ',' : '[');
    buf_str(&self->answers, json);
    if (self->answers.err != BAY_OK) {
        /* If there is no memory for one answer, the others are still sent. */
        self->answers.len = before;
        self->answers.err = BAY_OK;
        return;
    }
    self->has_answers = true;
}

static bay_err open_stream(response_channel *self)
{
    stream *opened = stream_new(self->session, self->owner.carrier, false);
    if (opened == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->owner.carrier = NULL;
    self->stream = opened;
    opened->channel = self;
    stream_prime(opened);
    if (self->has_answers) {
        buf_char(&self->answers, ']');
        flatten(&self->answers);
        (void)stream_event(opened, buf_view(&self->answers), false);
        buf_clear(&self->answers);
        self->has_answers = false;
    }
    return BAY_OK;
}

bool response_channel_may_challenge(const response_channel *self)
{
    return self != NULL && self->connection == NULL && self->owner.carrier != NULL &&
           self->stream == NULL && !self->is_streaming && !self->is_batch && !self->wants_stream;
}

void response_channel_answer(response_channel *self, int status, bay_str id, buf *json)
{
    if (self->connection != NULL) {
        mcp_carrier *carrier = self->connection->carrier;
        if (self->is_batch) {
            collect(self, buf_view(json));
        } else if (carrier != NULL) {
            flatten(json);
            (void)carrier->ops->event(carrier, buf_view(json), STR(""));
        }
        return;
    }
    if (self->wants_stream && self->stream == NULL && self->owner.carrier != NULL) {
        (void)open_stream(self); /* out of memory: a body is sent instead */
    }
    if (self->stream != NULL) {
        flatten(json);
        (void)stream_answer(self->stream, buf_view(json), id, self->open == 1);
    } else if (self->is_batch) {
        collect(self, buf_view(json));
    } else if (self->owner.carrier != NULL && self->is_streaming) {
        flatten(json);
        mcp_carrier *carrier = self->owner.carrier;
        (void)carrier->ops->event(carrier, buf_view(json), STR(""));
    } else if (self->owner.carrier != NULL) {
        carrier_answer(&self->owner, status, buf_view(json), self->session_id, self->needs);
    }
}

bay_err response_channel_event(response_channel *self, buf *json)
{
    if (json->err != BAY_OK) {
        return json->err;
    }
    flatten(json);
    if (self->connection != NULL) {
        mcp_carrier *carrier = self->connection->carrier;
        return carrier != NULL ? carrier->ops->event(carrier, buf_view(json), STR(""))
                               : BAY_ERR_CANCELLED;
    }
    if (self->session != NULL && self->stream == NULL && self->owner.carrier != NULL) {
        bay_err err = open_stream(self);
        if (err != BAY_OK) {
            return err;
        }
    }
    if (self->stream != NULL) {
        return stream_event(self->stream, buf_view(json), false);
    }
    if (self->owner.carrier == NULL || self->is_legacy) {
        return BAY_ERR_CANCELLED;
    }
    self->is_streaming = true;
    mcp_carrier *carrier = self->owner.carrier;
    return carrier->ops->event(carrier, buf_view(json), STR(""));
}

void response_channel_release(response_channel *self, uint32_t retry_ms)
{
    if (self->session == NULL || self->connection != NULL ||
        (self->stream == NULL && (self->owner.carrier == NULL || open_stream(self) != BAY_OK))) {
        return;
    }
    if (self->stream != NULL && self->stream->is_held) {
        stream_show(self->stream);
    }
    /* Opening may have found that the client disconnected. */
    if (self->stream != NULL && self->stream->owner.carrier != NULL) {
        carrier_release(&self->stream->owner, retry_ms);
        session_touch(self->session);
    }
}

void response_channel_open_stream(response_channel *self)
{
    if (self->connection != NULL || self->owner.carrier == NULL || self->is_streaming) {
        return;
    }
    if (self->session != NULL) {
        (void)open_stream(self); /* out of memory: it goes on waiting */
    } else if (!self->is_legacy) {
        self->is_streaming = true;
        mcp_carrier *carrier = self->owner.carrier;
        (void)carrier->ops->event(carrier, STR(""), STR(""));
    }
}

static void close_batch(response_channel *self)
{
    if (!self->has_answers) {
        return;
    }
    buf_char(&self->answers, ']');
    if (self->answers.err != BAY_OK) {
        self->answers.len = 0;
    }
    if (self->connection != NULL) {
        mcp_carrier *carrier = self->connection->carrier;
        if (carrier != NULL) {
            flatten(&self->answers);
            (void)carrier->ops->event(carrier, buf_view(&self->answers), STR(""));
        }
    } else if (self->owner.carrier != NULL) {
        carrier_answer(&self->owner, 200, buf_view(&self->answers), STR(""), STR(""));
    }
}

void response_channel_detach(response_channel *self)
{
    CHECK(self->open > 0);
    if (--self->open > 0) {
        return;
    }
    if (self->stream != NULL) {
        stream *finished = self->stream;
        self->stream = NULL;
        finished->channel = NULL;
        stream_finish(finished);
    }
    if (self->is_batch) {
        close_batch(self);
    }
    if (self->owner.carrier != NULL && self->is_streaming) {
        carrier_end(&self->owner);
    } else if (self->owner.carrier != NULL) {
        /* Every message in it was cancelled or needs no answer. */
        carrier_answer(&self->owner, 202, STR(""), STR(""), STR(""));
    }
    if (self->is_batch) {
        buf_fini(&self->answers);
        mem_free(self);
    }
}
