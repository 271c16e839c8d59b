/* Writes a session as text, and restores it. The text contains the client, its lasting settings,
 * and the streams that it may resume, with the open requests of each:
 *
 *   {"v":1,"revision":"2025-11-25","client":{…},"level":"info","initialized":true,"last":7,
 *   "subscriptions":["file:///a"],"streams":[{"n":1,"get":true},{"n":7,"open":[[3,"tools/call"]]}]}
 *
 * Events are stored one by one as they are sent. Some may have been sent but not stored when the
 * engine died, so the stream numbers of a restored session continue far beyond: no id ever names
 * two events. */
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "mcp/inputs.h"
#include "mcp/server_internal.h"
#include "mcp/session.h"
#include "mcp/stream.h"
#include "mcp/subscription.h"

enum {
    WRITTEN_VERSION = 1,
    JUMP = 1 << 16,      /* more than the number of events that can be sent without being stored */
    MOST_STREAMS = 4096, /* of a written session: further ones are omitted */
    MOST_LOST_BYTES = 65536,
};

void *mcp_session_kept_by(const mcp_session *self)
{
    return self->kept_by;
}

void mcp_session_set_kept_by(mcp_session *self, void *kept)
{
    self->kept_by = kept;
}

uint32_t mcp_session_last_stream(const mcp_session *self)
{
    return self->last_stream;
}

void mcp_session_kept(mcp_session *self, uint32_t through)
{
    LIST_EACH(link, &self->streams)
    {
        stream *one = CONTAINER_OF(link, stream, link);
        if (one->is_held && one->number <= through) {
            stream_show(one);
        }
    }
}

/* ---- writing */

static void write_open(json_writer *out, const stream *from)
{
    json_key_lit(out, "open");
    json_open_array(out);
    LIST_EACH(link, &from->channel->requests)
    {
        const request *one = CONTAINER_OF(link, request, response_channel_link);
        if (!one->is_finished && !one->shown.is_cancelled) {
            json_open_array(out);
            json_put_raw(out, one->shown.message.id);
            json_put_str(out, one->shown.message.method);
            json_close_array(out);
        }
    }
    json_close_array(out);
}

static void write_streams(json_writer *out, const mcp_session *self)
{
    uint32_t count = 0;
    json_key_lit(out, "streams");
    json_open_array(out);
    LIST_EACH(link, &self->streams)
    {
        const stream *one = CONTAINER_OF(link, stream, link);
        if (count++ == MOST_STREAMS) {
            break;
        }
        json_open_object(out);
        json_key_lit(out, "n");
        json_put_uint(out, one->number);
        if (one->is_get) {
            json_key_lit(out, "get");
            json_put_bool(out, true);
        } else if (one->channel != NULL) {
            write_open(out, one);
        }
        json_close_object(out);
    }
    json_close_array(out);
}

void mcp_session_write(const mcp_session *self, buf *to)
{
    json_writer out;
    json_writer_init(&out, to);
    json_open_object(&out);
    json_key_lit(&out, "v");
    json_put_uint(&out, WRITTEN_VERSION);
    json_key_lit(&out, "revision");
    json_put_str(&out, self->revision->text);
    json_key_lit(&out, "client");
    json_put_raw(&out, self->client);
    json_key_lit(&out, "level");
    json_put_uint(&out, self->level);
    json_key_lit(&out, "initialized");
    json_put_bool(&out, self->is_initialized);
    json_key_lit(&out, "last");
    json_put_uint(&out, self->last_stream);
    json_key_lit(&out, "subscriptions");
    json_open_array(&out);
    LIST_EACH(link, &self->subscriptions)
    {
        const topic *of = CONTAINER_OF(link, subscription, owner_link)->of;
        json_put_str(&out, (bay_str){of->uri, of->len});
    }
    json_close_array(&out);
    write_streams(&out, self);
    json_close_object(&out);
}

/* ---- reading */

static bool read_number(json_val value, uint32_t most, uint32_t *out)
{
    uint64_t number;
    if (json_uint64(value, &number) != BAY_OK || number > most) {
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

typedef struct reader {
    mcp_server *server;
    mcp_session *session;
    const mcp_kept_event *events;
    size_t count;
    json_val *read; /* what event_read has parsed; NULL before */
    arena memory;
    json_doc doc;
} reader;

static const mcp_revision *read_revision(const reader *self)
{
    bay_str text;
    json_val root = json_root(&self->doc);
    uint32_t version;
    if (!json_is(root, JSON_OBJECT) || !json_is(json_get(root, STR("client")), JSON_OBJECT) ||
        !read_number(json_get(root, STR("v")), WRITTEN_VERSION, &version) ||
        !json_str_plain(json_get(root, STR("revision")), &text)) {
        return NULL;
    }
    const mcp_revision *revision = mcp_revision_find(text);
    bool is_served = revision != NULL && revision->era == MCP_LEGACY &&
                     server_offers(self->server, revision->id);
    return is_served ? revision : NULL;
}

static void read_state(reader *self)
{
    json_val root = json_root(&self->doc);
    mcp_session *session = self->session;
    uint32_t level;
    if (read_number(json_get(root, STR("level")), MCP_LOG_NONE, &level)) {
        session->level = (mcp_log_level)level;
    }
    session->is_initialized = json_true(json_get(root, STR("initialized")));
    if (!read_number(json_get(root, STR("last")), UINT32_MAX - JUMP, &session->last_stream)) {
        session->last_stream = 0;
    }
    /* ids of streams that were begun and not stored are not reused */
    session->last_stream += JUMP;
}

/* A resource that the service does not have any more is not subscribed to; the client notices when
 * it reads it. */
static void read_subscriptions(reader *self)
{
    subscriber by = {.session = self->session, .principal = self->session->principal};
    json_iter it = json_iter_of(json_get(json_root(&self->doc), STR("subscriptions")));
    while (json_next(&it)) {
        bay_str uri;
        if (json_str(it.value, &self->memory, &uri) == BAY_OK) {
            err_ignore(subscription_add(self->server, uri, &by));
        }
    }
}

/* Adds its events to the log; true: its last one was among them. */
static bool read_events(reader *self, stream *to)
{
    const mcp_server_options *options = &self->server->options;
    event_log_limits limits = {options->log_bytes, options->log_events};
    bool is_over = false;
    for (size_t i = 0; i < self->count; i++) {
        const mcp_kept_event *one = &self->events[i];
        if (one->stream != to->number || one->seq <= to->seq) {
            continue;
        }
        to->seq = one->seq;
        if (event_log_add(&self->session->log, &limits, one->stream, one->seq, one->text) &&
            one->is_last) {
            event_log_mark_last(&self->session->log);
        }
        is_over = is_over || one->is_last;
    }
    return is_over;
}

static bool is_answer_to(json_val message, bay_str id)
{
    return str_eq(json_raw(json_get(message, STR("id"))), id) &&
           json_is(json_get(message, STR("method")), JSON_MISSING);
}

/* An event, parsed once; JSON_NONE: not JSON, or out of memory. */
static json_val event_read(reader *self, size_t index)
{
    if (self->read == NULL) {
        self->read = arena_array(&self->memory, self->count, sizeof(*self->read));
    }
    if (self->read != NULL && self->read[index].doc == NULL) {
        json_doc *doc = arena_alloc(&self->memory, sizeof(*doc));
        bool is_read = doc != NULL && json_parse(doc, self->events[index].text, &json_any_depth,
                                                 &self->memory, NULL) == BAY_OK;
        self->read[index] = is_read ? json_root(doc) : JSON_NONE;
    }
    return self->read != NULL ? self->read[index] : JSON_NONE;
}

/* Whether one of the stream's events answers the request with this id. */
static bool has_answer(reader *self, uint32_t number, bay_str id)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->events[i].stream != number) {
            continue;
        }
        json_val root = event_read(self, i);
        json_iter it = json_iter_of(root);
        bool is_found = json_is(root, JSON_OBJECT) && is_answer_to(root, id);
        while (!is_found && json_is(root, JSON_ARRAY) && json_next(&it)) {
            is_found = is_answer_to(it.value, id);
        }
        if (is_found) {
            return true;
        }
    }
    return false;
}

/* Writes one answer for each request without one; the last of them is the stream's last event. */
static void answer_lost(reader *self, stream *to, json_val open)
{
    const mcp_server_options *options = &self->server->options;
    json_val lost = JSON_NONE;
    json_iter it = json_iter_of(open);
    buf text;
    buf_init(&text, MOST_LOST_BYTES);
    for (bool has_more = true; has_more;) {
        has_more = json_next(&it);
        if (has_more && (!json_is(it.value, JSON_ARRAY) ||
                         has_answer(self, to->number, json_raw(json_item(it.value, 0))))) {
            continue;
        }
        bay_str method;
        if (options->persistence != NULL && json_is(lost, JSON_ARRAY) &&
            json_str_plain(json_item(lost, 1), &method)) {
            buf_clear(&text);
            options->persistence->lost(options->persistence_user, json_raw(json_item(lost, 0)),
                                       method, &text);
            if (text.err == BAY_OK) {
                (void)stream_event(to, buf_view(&text), !has_more);
            }
        }
        lost = has_more ? it.value : JSON_NONE;
    }
    buf_fini(&text);
}

static bay_err read_stream(reader *self, json_val written)
{
    uint32_t number;
    if (!read_number(json_get(written, STR("n")), UINT32_MAX, &number)) {
        return BAY_OK;
    }
    bool is_get = json_true(json_get(written, STR("get")));
    stream *one = stream_restore(self->session, number, is_get);
    if (one == NULL) {
        return BAY_ERR_NOMEM;
    }
    bool is_over = read_events(self, one);
    if (one->seq > UINT32_MAX - 2 * JUMP) {
        stream_free(one);
        return BAY_OK;
    }
    one->seq += JUMP;
    if (is_get) {
        self->session->get = one;
        return BAY_OK;
    }
    if (!is_over) {
        answer_lost(self, one, json_get(written, STR("open")));
    }
    stream_finish(one);
    return BAY_OK;
}

static bay_err read_streams(reader *self)
{
    json_iter it = json_iter_of(json_get(json_root(&self->doc), STR("streams")));
    bay_err err = BAY_OK;
    while (err == BAY_OK && json_next(&it)) {
        err = read_stream(self, it.value);
    }
    return err;
}

static bay_err restore(reader *self, bay_str id, const auth_principal *principal, void *kept_by)
{
    const mcp_revision *revision = read_revision(self);
    if (revision == NULL) {
        return BAY_ERR_SYNTAX;
    }
    json_val client = json_get(json_root(&self->doc), STR("client"));
    session_about about = {id, principal, json_raw(client), revision,
                           mcp_inputs_of(revision, json_get(client, STR("capabilities")))};
    bay_err err = session_make(self->server, NULL, &about, &self->session);
    if (err != BAY_OK) {
        return err;
    }
    self->session->kept_by = kept_by;
    read_state(self);
    err = read_streams(self);
    if (err == BAY_OK) {
        session_began(self->session);
        read_subscriptions(self);
    } else {
        session_undo(self->session);
    }
    return err;
}

bay_err mcp_session_restore(mcp_server *server, bay_str id, const auth_principal *principal,
                            bay_str written, const mcp_kept_event *events, size_t count,
                            void *kept_by, uint64_t now_ms)
{
    server_advance(server, now_ms);
    (void)sessions_tick(server);
    if (mcp_server_holds(server, id)) {
        return BAY_OK;
    }
    reader self = {.server = server, .events = events, .count = count};
    const json_limits *json = &server->options.json;
    arena_init(&self.memory, SIZE_MAX / 2);
    bay_err err = json_parse(&self.doc, written, json, &self.memory, NULL);
    if (err == BAY_OK) {
        err = restore(&self, id, principal, kept_by);
    } else if (err != BAY_ERR_NOMEM) {
        err = BAY_ERR_SYNTAX;
    }
    arena_fini(&self.memory);
    return err;
}
