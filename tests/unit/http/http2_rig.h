/* A client of HTTP/2 for the rig: nghttp2 over a raw connection for what is good, frames written by
 * hand for what is not. Driven by the test's own thread, like everything of the rig. */
#ifndef TESTS_HTTP2_RIG_H
#define TESTS_HTTP2_RIG_H

#include "http_rig.h"

#include <nghttp2/nghttp2.h>

#include "wire/field.h"

enum { PEER_STREAMS = 128 };

typedef struct peer_stream {
    int32_t id;
    int frames; /* HEADERS and DATA */
    char status[8];
    buf head; /* "name: value\n" each; of the last head */
    buf trailers;
    buf body;
    bool has_head;
    bool is_end; /* END_STREAM came */
    bool is_closed;
    uint32_t code;
} peer_stream;

typedef struct peer {
    raw raw;
    nghttp2_session *session;
    peer_stream streams[PEER_STREAMS];
    size_t count;
    size_t fed; /* of raw.got */
    uint32_t goaway;
    int goaways;
    int pongs;
    bool is_broken;
    const char *upload;
    size_t upload_len;
} peer;

static inline peer_stream *peer_find(peer *self, int32_t id)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->streams[i].id == id) {
            return &self->streams[i];
        }
    }
    return NULL;
}

static inline int peer_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                                 const uint8_t *name, size_t name_len, const uint8_t *value,
                                 size_t value_len, uint8_t flags, void *user)
{
    (void)session;
    (void)flags;
    peer_stream *stream = peer_find(user, frame->hd.stream_id);
    assert_non_null(stream);
    if (name_len == 7 && memcmp(name, ":status", 7) == 0) {
        snprintf(stream->status, sizeof(stream->status), "%.*s", (int)value_len, value);
        buf_clear(&stream->head);
        return 0;
    }
    buf *out = stream->has_head ? &stream->trailers : &stream->head;
    buf_printf(out, "%.*s: %.*s\n", (int)name_len, name, (int)value_len, value);
    return 0;
}

static inline int peer_on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                               const uint8_t *at, size_t len, void *user)
{
    (void)session;
    (void)flags;
    buf_append(&peer_find(user, id)->body, at, len);
    return 0;
}

static inline int peer_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)session;
    peer *self = user;
    peer_stream *stream = peer_find(self, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        self->goaway = frame->goaway.error_code;
        self->goaways++;
    } else if (frame->hd.type == NGHTTP2_PING) {
        self->pongs++;
    }
    if (stream != NULL && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA)) {
        stream->frames++;
        stream->has_head = stream->has_head || stream->status[0] != '1';
        stream->is_end = stream->is_end || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    }
    return 0;
}

static inline int peer_on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    (void)session;
    peer_stream *stream = peer_find(user, id);
    if (stream != NULL) {
        stream->is_closed = true;
        stream->code = code;
    }
    return 0;
}

static inline void peer_begin(peer *self, const nghttp2_settings_entry *settings, size_t count,
                              bool reads_by_hand)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    assert_int_equal(nghttp2_option_new(&option), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, peer_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, peer_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, peer_on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, peer_on_close);
    nghttp2_option_set_no_auto_window_update(option, reads_by_hand);
    assert_int_equal(nghttp2_session_client_new2(&self->session, callbacks, self, option), 0);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    assert_int_equal(nghttp2_submit_settings(self->session, NGHTTP2_FLAG_NONE, settings, count), 0);
}

static inline void peer_open_with(peer *self, rig *on, const nghttp2_settings_entry *settings,
                                  size_t count, bool reads_by_hand)
{
    memset(self, 0, sizeof(*self));
    raw_open(&self->raw, on);
    peer_begin(self, settings, count, reads_by_hand);
}

static inline void peer_open(peer *self, rig *on)
{
    peer_open_with(self, on, NULL, 0, false);
}

static inline void peer_close(peer *self)
{
    nghttp2_session_del(self->session);
    raw_close(&self->raw);
    for (size_t i = 0; i < self->count; i++) {
        buf_fini(&self->streams[i].head);
        buf_fini(&self->streams[i].trailers);
        buf_fini(&self->streams[i].body);
    }
}

/* What nghttp2 wants to say is sent, what came is given to it, the loop turns once. */
static inline void peer_turn(peer *self, rig *on)
{
    for (;;) {
        const uint8_t *at = NULL;
        ssize_t len = nghttp2_session_mem_send(self->session, &at);
        assert_true(len >= 0);
        if (len == 0 || !raw_send(&self->raw, on, (const char *)at, (size_t)len)) {
            break;
        }
    }
    raw_pump(&self->raw);
    size_t fresh = self->raw.got.len - self->fed;
    if (fresh > 0 && !self->is_broken) {
        ssize_t used = nghttp2_session_mem_recv(
            self->session, (const uint8_t *)self->raw.got.at + self->fed, fresh);
        self->is_broken = used < 0;
        self->fed = self->raw.got.len;
    }
    (void)loop_turn(on->loop, 1);
}

#define PEER_UNTIL(peer, rig, condition)                                                           \
    do {                                                                                           \
        int64_t peer_end = rig_now_ms() + RIG_GIVE_UP_MS;                                          \
        while (!(condition)) {                                                                     \
            assert_true(rig_now_ms() < peer_end);                                                  \
            peer_turn((peer), (rig));                                                              \
        }                                                                                          \
    } while (0)

static inline ssize_t peer_upload(nghttp2_session *session, int32_t id, uint8_t *at, size_t cap,
                                  uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)id;
    (void)user;
    bay_str *left = source->ptr;
    size_t len = left->len < cap ? left->len : cap;
    memcpy(at, left->at, len);
    *left = str_from(*left, len);
    if (left->len == 0) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t)len;
}

static inline nghttp2_nv peer_nv(bay_str name, bay_str value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.at, (uint8_t *)(uintptr_t)value.at, name.len,
                        value.len, NGHTTP2_NV_FLAG_NONE};
}

/* Asks; `body` NULL: none, else what is left of it lives until it is sent. */
static inline peer_stream *peer_ask(peer *self, const char *method, const char *path,
                                    const http_field *fields, size_t count, bay_str *body)
{
    nghttp2_nv nvs[300] = {
        peer_nv(STR(":method"), str_of(method)), peer_nv(STR(":scheme"), STR("http")),
        peer_nv(STR(":authority"), STR("a.example:1")), peer_nv(STR(":path"), str_of(path))};
    assert_true(count < 290);
    for (size_t i = 0; i < count; i++) {
        nvs[4 + i] = peer_nv(fields[i].name, fields[i].value);
    }
    nghttp2_data_provider provider = {.source = {.ptr = body}, .read_callback = peer_upload};
    assert_true(self->count < PEER_STREAMS);
    peer_stream *stream = &self->streams[self->count++];
    memset(stream, 0, sizeof(*stream));
    buf_init(&stream->head, SIZE_MAX / 2);
    buf_init(&stream->trailers, SIZE_MAX / 2);
    buf_init(&stream->body, SIZE_MAX / 2);
    stream->id = nghttp2_submit_request(self->session, NULL, nvs, 4 + count,
                                        body != NULL ? &provider : NULL, NULL);
    assert_true(stream->id > 0);
    return stream;
}

static inline peer_stream *peer_get(peer *self, const char *path)
{
    return peer_ask(self, "GET", path, NULL, 0, NULL);
}

static inline bool buf_has(const buf *self, const char *text)
{
    return self->len > 0 && memmem(self->at, self->len, text, strlen(text)) != NULL;
}

/* --- by hand ---------------------------------------------------------------------------------- */

#define MAGIC "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static inline void frame_put(buf *out, uint8_t type, uint8_t flags, uint32_t id, const void *at,
                             size_t len)
{
    const uint8_t head[9] = {
        (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len,       type,       flags,
        (uint8_t)(id >> 24),  (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id};
    buf_append(out, head, sizeof(head));
    buf_append(out, at, len);
}

/* The preface and empty SETTINGS. */
static inline void hand_open(raw *self, rig *on, buf *out)
{
    raw_open(self, on);
    buf_init(out, SIZE_MAX / 2);
    buf_lit(out, MAGIC);
    frame_put(out, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

/* GET / of host a, HPACK by hand: static entries and one literal. */
#define HPACK_GET                                                                                  \
    "\x82\x86\x84\x41\x01"                                                                         \
    "a"

static inline bool hand_send(raw *self, rig *on, buf *out)
{
    bool is_sent = raw_send(self, on, out->at, out->len);
    buf_clear(out);
    return is_sent;
}

/* The error code of the last GOAWAY that came; -1: none. */
static inline int64_t hand_goaway(const raw *self)
{
    const uint8_t *at = (const uint8_t *)self->got.at;
    size_t left = self->got.len;
    int64_t code = -1;
    while (left >= 9) {
        size_t len = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
        if (len > left - 9) {
            break;
        }
        if (at[3] == NGHTTP2_GOAWAY && len >= 8) {
            code = (int64_t)at[13] << 24 | at[14] << 16 | at[15] << 8 | at[16];
        }
        at += 9 + len;
        left -= 9 + len;
    }
    return code;
}

/* How many frames of that type came (of stream `id`, 0: any). */
static inline int hand_frames(const raw *self, uint8_t type, uint32_t id)
{
    const uint8_t *at = (const uint8_t *)self->got.at;
    size_t left = self->got.len;
    int count = 0;
    while (left >= 9) {
        size_t len = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
        uint32_t of = (uint32_t)at[5] << 24 | (uint32_t)at[6] << 16 | (uint32_t)at[7] << 8 | at[8];
        if (len > left - 9) {
            break;
        }
        count += at[3] == type && (id == 0 || of == id);
        at += 9 + len;
        left -= 9 + len;
    }
    return count;
}

#endif
