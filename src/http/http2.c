/* Shared by both sides of HTTP/2: memory for nghttp2, fields, output. */
#include "http/http2.h"

#include "base/mem.h"
#include "wire/chars.h"
#include "wire/header.h"

enum { GOAWAY_BYTES = 17 };

/* --- memory ----------------------------------------------------------------------------------- */

/* Precedes each block, and keeps the block aligned. */
typedef struct heap_block {
    _Alignas(16) list_link link;
} heap_block;

static void *http2_take(size_t bytes, void *user)
{
    http2_heap *self = user;
    heap_block *block =
        bytes <= SIZE_MAX - sizeof(heap_block) ? mem_alloc(sizeof(heap_block) + bytes) : NULL;
    if (block == NULL) {
        self->has_failed = true;
        return NULL;
    }
    list_push(&self->blocks, &block->link);
    return block + 1;
}

static void give(void *old, void *user)
{
    (void)user;
    if (old != NULL) {
        heap_block *block = (heap_block *)old - 1;
        list_remove(&block->link);
        mem_free(block);
    }
}

static void *take_zeroed(size_t count, size_t size, void *user)
{
    bool is_possible = size == 0 || count <= SIZE_MAX / size;
    void *at = http2_take(is_possible ? count * size : SIZE_MAX, user);
    if (at != NULL) {
        memset(at, 0, count * size);
    }
    return at;
}

static void *resize(void *old, size_t bytes, void *user)
{
    http2_heap *self = user;
    if (old == NULL) {
        return http2_take(bytes, user);
    }
    heap_block *block = (heap_block *)old - 1;
    list_remove(&block->link);
    heap_block *moved = bytes <= SIZE_MAX - sizeof(heap_block)
                            ? mem_resize(block, sizeof(heap_block) + bytes)
                            : NULL;
    self->has_failed = self->has_failed || moved == NULL;
    list_push(&self->blocks, moved != NULL ? &moved->link : &block->link);
    return moved != NULL ? moved + 1 : NULL;
}

void http2_heap_init(http2_heap *self)
{
    self->mem = (nghttp2_mem){self, http2_take, give, take_zeroed, resize};
    list_init(&self->blocks);
    self->has_failed = false;
}

void http2_heap_fini(http2_heap *self, nghttp2_session *session)
{
    if (!self->has_failed) {
        nghttp2_session_del(session);
    }
    for (list_link *link; (link = list_pop(&self->blocks)) != NULL;) {
        mem_free(CONTAINER_OF(link, heap_block, link));
    }
}

/* --- fields ----------------------------------------------------------------------------------- */

void http2_fields_init(http2_fields *self)
{
    buf_init(&self->values, SIZE_MAX / 2); /* as many as the caller has */
}

void http2_fields_fini(http2_fields *self)
{
    buf_fini(&self->values);
}

void http2_fields_clear(http2_fields *self)
{
    buf_clear(&self->values);
}

void http2_fields_add(http2_fields *self, bay_str name, bay_str value)
{
    /* nghttp2's type has no const; it copies both. */
    nghttp2_nv field = {.name = (uint8_t *)(uintptr_t)name.at,
                        .value = (uint8_t *)(uintptr_t)value.at,
                        .namelen = name.len,
                        .valuelen = value.len,
                        .flags = NGHTTP2_NV_FLAG_NONE};
    buf_append(&self->values, &field, sizeof(field));
}

/* RFC 9113 section 8.2.2: connection-specific fields are not allowed in HTTP/2. */
static bool is_of_connection(bay_str name)
{
    return exchange_field_is_ours(name) || str_eq_nocase(name, STR("proxy-connection")) ||
           str_eq_nocase(name, STR("upgrade"));
}

bay_err http2_fields_add_all(http2_fields *self, const http_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bay_str value = fields[i].value;
        if (!header_name_is_valid(fields[i].name) || !chars_value_is_clean(value) ||
            str_trim(value).len != value.len) {
            return BAY_ERR_INVALID;
        }
        if (!is_of_connection(fields[i].name)) {
            http2_fields_add(self, fields[i].name, value);
        }
    }
    return self->values.err;
}

const nghttp2_nv *http2_fields_at(const http2_fields *self)
{
    return (const nghttp2_nv *)(const void *)self->values.at;
}

size_t http2_fields_count(const http2_fields *self)
{
    return self->values.len / sizeof(nghttp2_nv);
}

/* --- what a peer's frames cost ---------------------------------------------------------------- */

void http2_meter_init(http2_meter *self, bool is_server)
{
    *self = (http2_meter){.skip = is_server ? NGHTTP2_CLIENT_MAGIC_LEN : 0};
}

static void count_frame(http2_meter *self)
{
    const uint8_t *head = self->head;
    bool has_stream = (head[5] & 0x7f) != 0 || head[6] != 0 || head[7] != 0 || head[8] != 0;
    self->skip = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | (uint32_t)head[2];
    self->have = 0;
    /* RFC 9113 section 6.3: PRIORITY of stream 0 MUST be a connection error. nghttp2 does not check
     * these frames after SETTINGS_NO_RFC7540_PRIORITIES was sent. */
    self->is_broken = self->is_broken || (head[3] == NGHTTP2_PRIORITY && !has_stream);
    if (head[3] == NGHTTP2_RST_STREAM) {
        self->resets++;
    } else {
        self->useless++;
    }
}

void http2_meter_read(http2_meter *self, bay_str bytes, uint64_t now, uint32_t window_ms)
{
    if (now >= self->window_end_ms) {
        self->window_end_ms = now + window_ms;
        self->resets = 0;
        self->useless = 0;
    }
    for (size_t at = 0; at < bytes.len;) {
        if (self->skip > 0) {
            size_t len = bytes.len - at < self->skip ? bytes.len - at : self->skip;
            self->skip -= (uint32_t)len;
            at += len;
            continue;
        }
        self->head[self->have++] = (uint8_t)bytes.at[at++];
        if (self->have == sizeof(self->head)) {
            count_frame(self);
        }
    }
}

static void earn(http2_meter *self, uint32_t frames)
{
    self->useless -= self->useless < frames ? self->useless : frames;
}

void http2_meter_earn(http2_meter *self)
{
    earn(self, HTTP2_EARNED);
}

void http2_meter_data(http2_meter *self, const nghttp2_frame *frame, size_t *excess)
{
    bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    size_t framing = HTTP2_FRAME_HEAD + frame->data.padlen;
    size_t data = frame->hd.length - frame->data.padlen;
    *excess += framing;
    *excess -= data < *excess ? data : *excess;
    if (data >= framing || is_end) {
        earn(self, HTTP2_EARNED + 1);
    } else if (data > 0) {
        earn(self, 1); /* it is useful itself, but makes up for no other frame */
    }
}

/* --- output ----------------------------------------------------------------------------------- */

static bay_err write_batch(net_socket *socket, buf *scratch, uint64_t *written)
{
    bay_err err = socket_write_one(socket, buf_view(scratch));
    *written += scratch->len;
    buf_clear(scratch);
    return err;
}

bay_err http2_pump(nghttp2_session *session, net_socket *socket, buf *scratch, uint64_t *written)
{
    buf_clear(scratch);
    for (;;) {
        const uint8_t *at = NULL;
        ssize_t len = nghttp2_session_mem_send(session, &at);
        if (len < 0) {
            return len == NGHTTP2_ERR_NOMEM ? BAY_ERR_NOMEM : BAY_ERR_INTERNAL;
        }
        if (len > 0) {
            buf_append(scratch, at, (size_t)len);
        }
        if (scratch->err != BAY_OK) {
            return scratch->err;
        }
        /* in a server's session the data frames are there already: http2_on_send_data */
        bool is_batch = scratch->len >= HTTP2_BATCH_BYTES;
        if (is_batch) {
            bay_err err = write_batch(socket, scratch, written);
            if (err != BAY_OK) {
                return err;
            }
        }
        if (len == 0 && !is_batch) {
            break;
        }
    }
    return scratch->len > 0 ? write_batch(socket, scratch, written) : BAY_OK;
}

static void put_u32(uint8_t at[4], uint32_t number)
{
    for (int i = 3; i >= 0; i--, number >>= 8) {
        at[i] = (uint8_t)(number & 0xff);
    }
}

void http2_write_goaway(net_socket *socket, int32_t last_stream, uint32_t code)
{
    uint8_t frame[GOAWAY_BYTES] = {0, 0, 8, NGHTTP2_GOAWAY};
    put_u32(frame + 9, (uint32_t)last_stream);
    put_u32(frame + 13, code);
    (void)socket_write_one(socket, (bay_str){(const char *)frame, sizeof(frame)});
}

uint32_t http2_code_of(int failure)
{
    switch (failure) {
    case NGHTTP2_ERR_NOMEM:
        return NGHTTP2_INTERNAL_ERROR;
    case NGHTTP2_ERR_FLOODED:
        return NGHTTP2_ENHANCE_YOUR_CALM;
    default:
        return NGHTTP2_PROTOCOL_ERROR;
    }
}
