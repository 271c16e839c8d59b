/* Input of HTTP/2 streams: heads, bodies, and refusals. What nghttp2 checks is not checked again:
 * field names in lower case, valid values, pseudo-header fields once and first, no
 * connection-specific fields, as many bytes as content-length says (a stream that violates these is
 * reset). */
#include "http/http2.h"
#include "http/pace.h"
#include "wire/chars.h"

enum {
    FIELD_COST = 32, /* RFC 9113 section 6.5.2 */
    FIRST_INPUT = 512
};

static const http_server_limits *limits_of(const http2_stream *self)
{
    return &self->connection->server->options.limits;
}

/* --- the head --------------------------------------------------------------------------------- */

int http2_on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    http2_connection *self = user;
    uint32_t timeout = self->connection->server->options.limits.head_timeout_ms;
    self->head_end_ms = timeout > 0 ? http2_now(self) + timeout : 0;
    http2_meter_earn(&self->meter);
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST || self->is_failing) {
        return 0;
    }
    http2_stream *stream = http2_stream_new(self, frame->hd.stream_id);
    if (stream == NULL ||
        nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream) != 0) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return 0;
}

static void refuse_later(http2_stream *self, uint16_t status, const char *text)
{
    if (self->refusal == NULL) {
        self->refused = status;
        self->refusal = text;
    }
}

/* Appends text to the head; all views into it are moved along. */
static bool http2_request_keep(http2_stream *self, bay_str text, bay_str *out)
{
    http_memory *memory = self->exchange.memory;
    const char *before = memory->input.at;
    size_t from = memory->input.len;
    buf_str(&memory->input, text);
    if (memory->input.err != BAY_OK) {
        refuse_later(self, 503, "no memory for the request\n");
        return false;
    }
    http_memory_rebase(memory, before);
    memory->head_len = memory->input.len;
    *out = (bay_str){memory->input.at + from, text.len};
    return true;
}

static void keep_pseudo(http2_stream *self, bay_str name, bay_str value)
{
    http1_head *head = &self->exchange.memory->head;
    bay_str kept;
    if (str_eq(name, STR(":scheme")) || !http2_request_keep(self, value, &kept)) {
        return;
    }
    if (str_eq(name, STR(":method"))) {
        head->method = kept;
    } else if (str_eq(name, STR(":path"))) {
        head->target = kept;
    } else if (str_eq(name, STR(":authority"))) {
        head->authority = kept;
    } else {
        refuse_later(self, 501, "this protocol inside HTTP/2 is not served\n");
    }
}

static void keep_field(http2_stream *self, bay_str name, bay_str value)
{
    http1_head *head = &self->exchange.memory->head;
    if (head->field_count >= limits_of(self)->head_fields) {
        refuse_later(self, 431, "too many header fields\n");
        return;
    }
    http_field kept;
    if (!http2_request_keep(self, name, &kept.name)) {
        return;
    }
    size_t name_at = (size_t)(kept.name.at - self->exchange.memory->input.at);
    if (!http2_request_keep(self, value, &kept.value)) {
        return;
    }
    kept.name.at = self->exchange.memory->input.at + name_at; /* it may have moved */
    head->fields[head->field_count++] = kept;
}

int http2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                    size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                    void *user)
{
    http2_connection *http2 = user;
    (void)flags;
    http2_stream *self = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (self == NULL) {
        return 0;
    }
    size_t most = limits_of(self)->head_bytes;
    self->head_bytes += name_len + value_len + FIELD_COST;
    if (self->head_bytes > most) {
        refuse_later(self, 431, "the header fields are larger than this server takes\n");
    }
    if (self->head_bytes / HTTP2_HEAD_TIMES > most) {
        http2->is_failing = true;
        http2->code = NGHTTP2_ENHANCE_YOUR_CALM;
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (self->refusal != NULL || self->state != HTTP_HEAD) {
        return 0; /* of a refused request; trailers, which are not read here */
    }
    bay_str field = {(const char *)name, name_len};
    bay_str content = {(const char *)value, value_len};
    if (name_len > 0 && name[0] == ':') {
        keep_pseudo(self, field, content);
    } else {
        keep_field(self, field, content);
    }
    return 0;
}

/* --- what a whole head says ------------------------------------------------------------------- */

static void remove_field(http1_head *head, uint32_t at)
{
    for (uint32_t i = at + 1; i < head->field_count; i++) {
        head->fields[i - 1] = head->fields[i];
    }
    head->field_count--;
}

/* RFC 9113 section 8.2.3: parts of Cookie are joined before anyone reads them. */
static void join_cookies(http2_stream *self)
{
    http1_head *head = &self->exchange.memory->head;
    if (http1_field_count(head->fields, head->field_count, STR("cookie")) < 2) {
        return;
    }
    buf joined;
    buf_init_secret(&joined, limits_of(self)->head_bytes * 2);
    for (uint32_t i = 0; i < head->field_count;) {
        if (!str_eq(head->fields[i].name, STR("cookie"))) {
            i++;
            continue;
        }
        if (joined.len > 0) {
            buf_lit(&joined, "; ");
        }
        buf_str(&joined, head->fields[i].value);
        remove_field(head, i);
    }
    bay_str kept;
    if (joined.err != BAY_OK) {
        refuse_later(self, 503, "no memory for the request\n");
    } else if (http2_request_keep(self, buf_view(&joined), &kept)) {
        head->fields[head->field_count++] = (http_field){STR("cookie"), kept};
    }
    buf_fini(&joined);
}

/* Host gets the value of :authority, for code that knows HTTP/1.1's fields. */
static void settle_host(http2_stream *self)
{
    http1_head *head = &self->exchange.memory->head;
    size_t count = http1_field_count(head->fields, head->field_count, STR("host"));
    bay_str host = http1_field_find(head->fields, head->field_count, STR("host"));
    if (count > 1 ||
        (count == 1 && head->authority.at != NULL && !str_eq_nocase(host, head->authority))) {
        refuse_later(self, 400, "it is not clear which host is meant\n");
    } else if (count == 1) {
        head->authority = host;
    } else if (head->authority.len == 0) {
        refuse_later(self, 400, "the request names no host\n");
    } else if (head->field_count >= limits_of(self)->head_fields) {
        refuse_later(self, 431, "too many header fields\n");
    } else {
        head->fields[head->field_count++] = (http_field){STR("host"), head->authority};
    }
}

static bool method_is_valid(bay_str method)
{
    return method.len > 0 && chars_are(method, CHAR_TOKEN) && !str_eq(method, STR("CONNECT")) &&
           str_find(method, ':') == method.len;
}

/* The same targets as in HTTP/1.1: a path, or '*' of OPTIONS. */
static void split_target(http2_stream *self)
{
    http1_head *head = &self->exchange.memory->head;
    bay_str target = head->target;
    size_t mark = str_find(target, '?');
    head->path = str_head(target, mark);
    head->query = mark < target.len ? str_from(target, mark + 1) : (bay_str){NULL, 0};
    bool is_star = str_eq(target, STR("*")) && str_eq(head->method, STR("OPTIONS"));
    if (!method_is_valid(head->method)) {
        refuse_later(self, 400, "the method is not valid\n");
    } else if (target.len > self->connection->server->limits.target_bytes) {
        refuse_later(self, 414, "the request target is too long\n");
    } else if (!is_star && (target.len == 0 || target.at[0] != '/' ||
                            !chars_are(target, CHAR_PATH) || !chars_escapes_are_whole(target))) {
        refuse_later(self, 400, "the request target is not valid\n");
    }
}

static void read_length(http2_stream *self)
{
    http1_head *head = &self->exchange.memory->head;
    bay_str length = http1_field_find(head->fields, head->field_count, STR("content-length"));
    head->has_content_length = length.at != NULL && str_uint(length, &head->content_length);
    if (head->has_content_length && head->content_length > limits_of(self)->body_bytes) {
        refuse_later(self, 413, "the body is larger than this server takes\n");
    } else if (head->has_content_length &&
               !server_admits(self->connection->server, head->content_length)) {
        refuse_later(self, 503, "too much is being received at once\n");
    }
}

static void invite_body(http2_connection *http2, http2_stream *self)
{
    http1_head *head = &self->exchange.memory->head;
    bay_str expects = http1_field_find(head->fields, head->field_count, STR("expect"));
    if (expects.at == NULL) {
        return;
    }
    if (!str_eq_nocase(expects, STR("100-continue"))) {
        refuse_later(self, 417, "this expectation cannot be met\n");
        return;
    }
    http2_fields_clear(&http2->fields);
    http2_fields_add(&http2->fields, STR(":status"), STR("100"));
    /* Without memory for it the peer sends the body after its own time-out. */
    (void)nghttp2_submit_headers(http2->session, NGHTTP2_FLAG_NONE, self->id, NULL,
                                 http2_fields_at(&http2->fields),
                                 http2_fields_count(&http2->fields), NULL);
}

/* `bytes` more of the body have arrived. */
static void set_body_deadline(http2_stream *self, size_t bytes)
{
    uint64_t now = http2_now(self->connection->http2);
    uint32_t within = limits_of(self)->body_timeout_ms;
    self->deadline_ms =
        within > 0 ? pace_until(self->deadline_ms, now, within, bytes, 1) : self->body_end_ms;
    if (self->body_end_ms > 0 && self->body_end_ms < self->deadline_ms) {
        self->deadline_ms = self->body_end_ms;
    }
}

static void end_head(http2_connection *http2, http2_stream *self, bool is_whole)
{
    if (self->refusal == NULL) {
        split_target(self);
        settle_host(self);
        join_cookies(self);
        read_length(self);
    }
    if (self->refusal == NULL && !is_whole) {
        invite_body(http2, self);
    }
    http2_stream_set_state(self, HTTP_BODY);
    uint32_t total = limits_of(self)->body_total_ms;
    self->body_end_ms = total > 0 ? http2_now(http2) + total : 0;
    set_body_deadline(self, 0);
}

/* --- the body --------------------------------------------------------------------------------- */

static void take_body(http2_stream *self, bay_str bytes)
{
    http_memory *memory = self->exchange.memory;
    http_server *server = self->connection->server;
    size_t so_far = memory->input.len - memory->head_len;
    if (bytes.len > limits_of(self)->body_bytes - so_far) {
        refuse_later(self, 413, "the body is larger than this server takes\n");
        return;
    }
    if (!server_admits(server, bytes.len)) {
        refuse_later(self, 503, "too much is being received at once\n");
        return;
    }
    const char *before = memory->input.at;
    buf_str(&memory->input, bytes);
    if (memory->input.err != BAY_OK) {
        refuse_later(self, 503, "no memory for the request\n");
        return;
    }
    http_memory_rebase(memory, before);
    http_memory_charge(server, memory);
    set_body_deadline(self, bytes.len);
}

int http2_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *at,
                  size_t len, void *user)
{
    (void)flags;
    (void)user;
    http2_stream *self = nghttp2_session_get_stream_user_data(session, id);
    if (self == NULL || self->state != HTTP_BODY || self->refusal != NULL) {
        return 0;
    }
    take_body(self, (bay_str){(const char *)at, len});
    if (self->refusal != NULL) {
        http2_refuse(self, self->refused, self->refusal);
    }
    return 0;
}

/* A body in single bytes is no accident: such streams count like resets. */
static void count_framing(http2_connection *http2, http2_stream *self, const nghttp2_frame *frame)
{
    http2_meter_data(&http2->meter, frame, &self->excess);
    if (self->refusal == NULL && self->excess > self->connection->server->limits.framing_bytes) {
        refuse_later(self, 413, "the body is mostly framing: send larger frames\n");
        http2->meter.resets++;
    }
}

void http2_request_frame(http2_connection *self, const nghttp2_frame *frame)
{
    http2_stream *stream = nghttp2_session_get_stream_user_data(self->session, frame->hd.stream_id);
    bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_HEADERS) {
        self->head_end_ms = 0;
    }
    if (stream == NULL) {
        return;
    }
    stream->is_whole = stream->is_whole || is_end;
    if (stream->state == HTTP_HEAD) {
        end_head(self, stream, is_end);
    }
    if (stream->state != HTTP_BODY) {
        return;
    }
    if (frame->hd.type == NGHTTP2_DATA) {
        count_framing(self, stream, frame);
    }
    if (stream->refusal != NULL) {
        http2_refuse(stream, stream->refused, stream->refusal);
    } else if (is_end) {
        list_push(&self->ready, &stream->turn);
    }
}
