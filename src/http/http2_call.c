/* One call over HTTP/2: its request, its reply, its events. */
#include "base/err.h"
#include "base/mem.h"
#include "http/http2.h"
#include "http/http2_line.h"

enum {
    INTERIM_MAX = 16,
    PART_LENGTHS = 2 * sizeof(uint32_t),
};

/* --- what a call says ------------------------------------------------------------------------- */

static void put_part(buf *out, bay_str name, bay_str value)
{
    uint32_t lengths[2] = {(uint32_t)name.len, (uint32_t)value.len};
    buf_append(out, lengths, PART_LENGTHS);
    buf_str(out, name);
    buf_str(out, value);
}

static bay_err put_authority(buf *scratch, buf *out, const http_call_spec *spec, const uri *url)
{
    bay_str host = http1_field_find(spec->fields, spec->field_count, STR("host"));
    if (host.at == NULL) {
        buf_clear(scratch);
        buf_printf(scratch, url->is_ip_literal ? "[%.*s]" : "%.*s", BAY_STR(url->host));
        if (url->port != 0) {
            buf_char(scratch, ':');
            buf_uint(scratch, url->port);
        }
        host = buf_view(scratch);
    }
    put_part(out, STR(":authority"), host);
    return scratch->err;
}

static bay_err put_target(buf *scratch, buf *out, const uri *url)
{
    buf_clear(scratch);
    buf_str(scratch, url->path.len > 0 ? url->path : STR("/"));
    if (url->has_query) {
        buf_char(scratch, '?');
        buf_str(scratch, url->query);
    }
    put_part(out, STR(":path"), buf_view(scratch));
    return scratch->err;
}

/* Checked here, so that stored fields need no checks when they are sent. */
static bay_err put_fields(buf *out, const http_call_spec *spec)
{
    http2_fields checked;
    http2_fields_init(&checked);
    bay_err err = http2_fields_add_all(&checked, spec->fields, spec->field_count);
    const nghttp2_nv *fields = http2_fields_at(&checked);
    for (size_t i = 0; i < http2_fields_count(&checked) && err == BAY_OK; i++) {
        bay_str name = {(const char *)fields[i].name, fields[i].namelen};
        if (!str_eq_nocase(name, STR("host"))) {
            put_part(out, name, (bay_str){(const char *)fields[i].value, fields[i].valuelen});
        }
    }
    http2_fields_fini(&checked);
    return err;
}

static void block_init(http2_block *self)
{
    buf_init(&self->text, SIZE_MAX / 2); /* on_header bounds them */
    buf_init(&self->lengths, SIZE_MAX / 2);
}

static void block_clear(http2_block *self)
{
    buf_clear(&self->text);
    buf_clear(&self->lengths);
}

static void block_fini(http2_block *self)
{
    buf_fini(&self->text);
    buf_fini(&self->lengths);
}

bay_err http2_call_prepare(http_call *self, const http_call_spec *spec, const uri *url, bool is_tls)
{
    buf *out = &self->request;
    buf *scratch = &self->client->key;
    buf_clear(out);
    http2_call *more = mem_zalloc(sizeof(http2_call));
    if (more == NULL) {
        return BAY_ERR_NOMEM;
    }
    more->call = self;
    block_init(&more->head);
    block_init(&more->trailers);
    buf_init(&more->held, SIZE_MAX / 2); /* flow control bounds it, and body_bytes */
    self->http2 = more;
    put_part(out, STR(":method"), spec->method);
    put_part(out, STR(":scheme"), is_tls ? STR("https") : STR("http"));
    bay_err err = put_authority(scratch, out, spec, url);
    if (err == BAY_OK) {
        err = put_target(scratch, out, url);
    }
    if (err == BAY_OK) {
        err = put_fields(out, spec);
    }
    if (err == BAY_OK && (spec->has_body || spec->body.len > 0)) {
        buf_clear(scratch);
        buf_uint(scratch, spec->body.len);
        put_part(out, STR("content-length"), buf_view(scratch));
        err = scratch->err;
    }
    more->fields_end = out->len;
    buf_str(out, spec->body);
    return err != BAY_OK ? err : out->err;
}

void http2_call_free(http_call *self)
{
    http2_call *more = self->http2;
    if (more == NULL) {
        return;
    }
    block_fini(&more->head);
    block_fini(&more->trailers);
    buf_fini(&more->held);
    mem_free(more);
    self->http2 = NULL;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *at, size_t cap,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)id;
    (void)user;
    http2_call *more = source->ptr;
    bay_str left = str_from(buf_view(&more->call->request), more->fields_end + more->body_from);
    size_t len = left.len < cap ? left.len : cap;
    if (len > 0) {
        memcpy(at, left.at, len);
    }
    more->body_from += len;
    if (len == left.len) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t)len;
}

bay_err http2_call_submit(http2_line *line, http2_call *more)
{
    http2_fields fields;
    http2_fields_init(&fields);
    const char *at = more->call->request.at;
    for (size_t i = 0; i < more->fields_end;) {
        uint32_t lengths[2];
        memcpy(lengths, at + i, PART_LENGTHS);
        i += PART_LENGTHS;
        http2_fields_add(&fields, (bay_str){at + i, lengths[0]},
                         (bay_str){at + i + lengths[0], lengths[1]});
        i += lengths[0] + lengths[1];
    }
    bay_err err = fields.values.err;
    if (err == BAY_OK) {
        nghttp2_data_provider body = {.source = {.ptr = more}, .read_callback = read_body};
        bool has_body = more->call->request.len > more->fields_end;
        more->body_from = 0;
        int32_t id =
            nghttp2_submit_request(line->session, NULL, http2_fields_at(&fields),
                                   http2_fields_count(&fields), has_body ? &body : NULL, more);
        more->id = id;
        more->has_stream = id > 0;
        err = id > 0 ? BAY_OK : BAY_ERR_NOMEM;
    }
    http2_fields_fini(&fields);
    return err;
}

/* --- what comes ------------------------------------------------------------------------------- */

void http2_call_due(http2_line *line, http2_call *more)
{
    if (!list_holds(&more->turn)) {
        list_push(&line->due, &more->turn);
    }
}

static http2_call *call_of(nghttp2_session *session, int32_t id)
{
    http2_call *more = nghttp2_session_get_stream_user_data(session, id);
    return more != NULL && more->err == BAY_OK ? more : NULL;
}

/* The reply cannot be received: the stream ends, the owner will be told. */
static int spoil(http2_line *line, http2_call *more, bay_err err)
{
    more->err = err;
    http2_call_due(line, more);
    return nghttp2_submit_rst_stream(line->session, NGHTTP2_FLAG_NONE, more->id, NGHTTP2_CANCEL) ==
                   NGHTTP2_ERR_NOMEM
               ? NGHTTP2_ERR_CALLBACK_FAILURE
               : 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    http2_line *line = user;
    http2_call *more = call_of(session, frame->hd.stream_id);
    line->in_head = more != NULL && !more->has_head ? more : NULL;
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user)
{
    (void)flags;
    http2_line *line = user;
    http2_call *more = call_of(session, frame->hd.stream_id);
    if (more == NULL) {
        return 0;
    }
    const http_client_limits *limits = &line->client->limits;
    http2_block *block = more->has_head ? &more->trailers : &more->head;
    more->head_bytes += name_len + value_len;
    if (more->head_bytes > limits->head_bytes ||
        block->lengths.len / PART_LENGTHS >= limits->head_fields) {
        return spoil(line, more, BAY_ERR_LIMIT);
    }
    if (name_len > 0 && name[0] == ':') {
        uint64_t status = 0;
        if (!str_uint((bay_str){(const char *)value, value_len}, &status) || status > 999) {
            return spoil(line, more, BAY_ERR_PROTOCOL);
        }
        more->status = (int)status;
        return 0;
    }
    uint32_t lengths[2] = {(uint32_t)name_len, (uint32_t)value_len};
    buf_append(&block->lengths, lengths, PART_LENGTHS);
    buf_append(&block->text, name, name_len);
    buf_append(&block->text, value, value_len);
    bool is_kept = block->text.err == BAY_OK && block->lengths.err == BAY_OK;
    return is_kept ? 0 : spoil(line, more, BAY_ERR_NOMEM);
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *at,
                         size_t len, void *user)
{
    (void)flags;
    http2_line *line = user;
    http2_call *more = call_of(session, id);
    /* All calls share the connection's window, which is opened at once; a call's own window limits
     * what it leaves unread. */
    if (nghttp2_session_consume_connection(session, len) == NGHTTP2_ERR_NOMEM) {
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (more == NULL) {
        return 0;
    }
    const http_client_limits *limits = &line->client->limits;
    size_t most = limits->body_bytes;
    uint64_t now = loop_now_ms(line->client->loop);
    if (now - more->heard_ms >= limits->framing_rest_ms) {
        more->excess = 0;
    }
    more->heard_ms = now;
    call_moved(more->call, len);
    more->body_bytes += len;
    if (most > 0 && more->body_bytes > most) {
        return spoil(line, more, BAY_ERR_LIMIT);
    }
    buf_append(&more->held, at, len);
    http2_call_due(line, more);
    return more->held.err == BAY_OK ? 0 : spoil(line, more, BAY_ERR_NOMEM);
}

static int end_head(http2_line *line, http2_call *more)
{
    http_call *call = more->call;
    if (more->has_head) {
        return 0;
    }
    more->head_bytes = 0;
    if (more->status >= 200) {
        more->has_head = more->is_head_due = true;
        http2_call_due(line, more);
        return 0;
    }
    block_clear(&more->head);
    call_end_head(call);
    return ++call->interim > INTERIM_MAX ? spoil(line, more, BAY_ERR_PROTOCOL) : 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    http2_line *line = user;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        line->is_ending = true;
        return 0;
    }
    if (frame->hd.type == NGHTTP2_HEADERS) {
        line->in_head = NULL;
    }
    http2_call *more = call_of(session, frame->hd.stream_id);
    if (more == NULL) {
        return 0;
    }
    if (frame->hd.type == NGHTTP2_HEADERS) {
        http2_meter_earn(&line->meter);
        return end_head(line, more);
    }
    if (frame->hd.type == NGHTTP2_DATA) {
        http2_meter_data(&line->meter, frame, &more->excess);
        if (more->excess > line->client->wire_limits.framing_bytes) {
            return spoil(line, more, BAY_ERR_LIMIT);
        }
    }
    return 0;
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    http2_line *line = user;
    http2_call *more = call_of(session, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) {
        http2_meter_earn(&line->meter); /* WINDOW_UPDATE frames answer these */
    }
    if (frame->hd.type == NGHTTP2_HEADERS && more != NULL) {
        more->call->was_sent = true;
    }
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    http2_line *line = user;
    http2_call *more = nghttp2_session_get_stream_user_data(session, id);
    if (more == NULL) {
        return 0;
    }
    (void)nghttp2_session_set_stream_user_data(session, id, NULL);
    more->has_stream = false;
    more->is_over = true;
    more->failure = code;
    http2_call_due(line, more);
    return 0;
}

void http2_client_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
}

bool http2_call_is_whole(const http2_call *more)
{
    return more->is_over && more->failure == NGHTTP2_NO_ERROR && more->has_head;
}

/* --- telling owners --------------------------------------------------------------------------- */

static void detach(http2_call *more)
{
    http2_line *line = more->line;
    list_remove(&more->turn);
    list_remove(&more->link);
    more->line = NULL;
    if (line == NULL) {
        return;
    }
    line->in_head = line->in_head == more ? NULL : line->in_head;
    line->call_count--;
    line->idle_since_ms = loop_now_ms(line->client->loop);
    if (more->has_stream && !line->heap.has_failed) {
        (void)nghttp2_session_set_stream_user_data(line->session, more->id, NULL);
        (void)nghttp2_submit_rst_stream(line->session, NGHTTP2_FLAG_NONE, more->id, NGHTTP2_CANCEL);
    }
    more->has_stream = false;
    if (!line->is_dropped) {
        loop_defer(line->client->loop, &line->task); /* free capacity, and events that are due */
    }
}

void http2_call_leave(http_call *self)
{
    detach(self->http2);
}

/* Sends it once more, from the start. */
void http2_call_send_again(http2_call *more)
{
    http_call *call = more->call;
    detach(more);
    call_end_head(call);
    block_clear(&more->head);
    block_clear(&more->trailers);
    buf_clear(&more->held);
    more->tries++;
    more->is_over = false;
    more->failure = 0;
    bay_err err = http2_call_start(call);
    if (err != BAY_OK) {
        http_call_fail(call, err, bay_err_text(err));
    }
}

/* Calls `use` with a table of the block's fields. BAY_ERR_NOMEM: not called. */
static bay_err tell_block(http2_call *more, http2_block *block, bool is_trailers)
{
    http_call *call = more->call;
    size_t count = block->lengths.len / PART_LENGTHS;
    http_field *fields = count > 0 ? mem_array(count, sizeof(http_field)) : NULL;
    if (count > 0 && fields == NULL) {
        return BAY_ERR_NOMEM;
    }
    buf text = block->text; /* the owner may end the call inside */
    buf_init(&block->text, SIZE_MAX / 2);
    const char *at = text.at;
    for (size_t i = 0; i < count; i++) {
        uint32_t lengths[2];
        memcpy(lengths, block->lengths.at + i * PART_LENGTHS, PART_LENGTHS);
        fields[i] = (http_field){{at, lengths[0]}, {at + lengths[0], lengths[1]}};
        at += lengths[0] + lengths[1];
    }
    if (is_trailers && call->events->trailers != NULL) {
        call->events->trailers(call->user, fields, count);
    } else if (!is_trailers) {
        call_begin_body(call, fields, count);
        if (call->events->head != NULL) {
            call->events->head(call->user, more->status, fields, count);
        }
    }
    mem_free(fields);
    buf_fini(&text);
    return BAY_OK;
}

/* Each of these returns false when the call is over. */
static bool tell_head(http2_call *more)
{
    http_call *call = more->call;
    if (!more->is_head_due) {
        return true;
    }
    more->is_head_due = false;
    if (tell_block(more, &more->head, false) != BAY_OK) {
        http_call_fail(call, BAY_ERR_NOMEM, bay_err_text(BAY_ERR_NOMEM));
    }
    return call->state != CALL_OVER;
}

static bool tell_body(http2_call *more)
{
    http_call *call = more->call;
    if (more->held.len == 0) {
        return true;
    }
    buf held = more->held;
    buf_init(&more->held, SIZE_MAX / 2);
    if (more->has_stream && !more->line->heap.has_failed) {
        (void)nghttp2_session_consume_stream(more->line->session, more->id, held.len);
    }
    if (call->events->body != NULL) {
        call->events->body(call->user, buf_view(&held));
    }
    bool goes_on = call->state != CALL_OVER;
    if (goes_on) {
        call_ask(call, more->body_bytes, 0);
    }
    if (goes_on && more->held.cap == 0) {
        more->held = held; /* its memory is reused */
        buf_clear(&more->held);
    } else {
        buf_fini(&held);
    }
    return goes_on;
}

static void tell_end(http2_call *more)
{
    http_call *call = more->call;
    if (more->failure == NGHTTP2_REFUSED_STREAM && !more->has_head && more->tries < HTTP2_TRIES) {
        http2_call_send_again(more);
        return;
    }
    if (more->failure != NGHTTP2_NO_ERROR || !more->has_head) {
        bool is_refused = more->failure == NGHTTP2_REFUSED_STREAM;
        call->was_sent = call->was_sent && !is_refused;
        http_call_fail(call, is_refused ? BAY_ERR_BUSY : BAY_ERR_CLOSED,
                       is_refused ? "the peer refuses further calls"
                                  : "the peer ended the call before its reply was whole");
        return;
    }
    if (more->trailers.lengths.len > 0 && tell_block(more, &more->trailers, true) != BAY_OK) {
        http_call_fail(call, BAY_ERR_NOMEM, bay_err_text(BAY_ERR_NOMEM));
        return;
    }
    if (call->state == CALL_OVER) {
        return;
    }
    if (more->line != NULL) {
        more->line->has_served = true;
    }
    call_leave(call);
    if (call->events->end != NULL) {
        call->events->end(call->user);
    }
}

void http2_call_tell(http2_call *more)
{
    http_call *call = more->call;
    if (more->err != BAY_OK) {
        const char *text = more->err == BAY_ERR_LIMIT
                               ? "the reply, or its framing, is larger than it may be"
                           : more->err == BAY_ERR_PROTOCOL ? "the reply is no HTTP"
                                                           : bay_err_text(more->err);
        http_call_fail(call, more->err, text);
        return;
    }
    if (tell_head(more) && !call_rests(call) && tell_body(more) && !call_rests(call) &&
        more->is_over) {
        tell_end(more);
    }
}

void http2_call_resume(http_call *self)
{
    http2_call *more = self->http2;
    if (more->line != NULL && self->state != CALL_OVER) {
        http2_call_due(more->line, more);
        loop_defer(self->client->loop, &more->line->task);
    }
}
