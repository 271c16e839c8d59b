/* Server-sent events: however the bytes are cut, the same blocks come out and the same error; and
 * what is written comes back. How they are cut follows from the bytes themselves. */
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "wire/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 64 };

static void tell(buf *out, bay_str text)
{
    buf_printf(out, "%zu:", text.len);
    buf_str(out, text);
}

static void run(buf *out, bay_str bytes, unsigned step, uint32_t seed)
{
    sse_decoder decoder;
    bay_err err = BAY_OK;
    sse_decoder_init(&decoder, MOST);
    for (size_t at = 0; err == BAY_OK && at < bytes.len;) {
        seed = seed * 1664525U + 1013904223U;
        size_t len = step == 0 ? bytes.len : 1 + (seed >> 16) % step;
        len = len < bytes.len - at ? len : bytes.len - at;
        char *piece = mem_alloc(len);
        CHECK(piece != NULL);
        memcpy(piece, bytes.at + at, len);
        bay_str rest = {piece, len};
        sse_block block = {.kind = SSE_EVENT};
        while (err == BAY_OK && block.kind != SSE_MORE) {
            size_t consumed = 0;
            err = sse_decoder_feed(&decoder, rest, &consumed, &block);
            CHECK(consumed <= rest.len);
            rest = str_from(rest, consumed);
            if (err == BAY_OK && block.kind != SSE_MORE) {
                CHECK(block.data.len <= MOST);
                buf_printf(out, "%d %d %lld", (int)block.kind, block.has_id,
                           (long long)block.retry_ms);
                tell(out, block.name);
                tell(out, block.id);
                tell(out, block.data);
            }
        }
        mem_free(piece);
        at += len;
    }
    buf_printf(out, "%d", (int)err);
    sse_decoder_fini(&decoder);
}

static void round_trip(bay_str data)
{
    sse_event event = {.name = STR("e"), .id = STR("1"), .data = data, .retry_ms = 5};
    sse_decoder decoder;
    sse_block block;
    size_t consumed;
    buf bytes;
    buf_init(&bytes, SIZE_MAX);
    sse_decoder_init(&decoder, SIZE_MAX);
    CHECK(sse_write_event(&bytes, &event) == BAY_OK);
    CHECK(sse_decoder_feed(&decoder, buf_view(&bytes), &consumed, &block) == BAY_OK);
    CHECK(consumed == bytes.len && block.kind == SSE_EVENT && block.retry_ms == 5);
    CHECK(str_eq(block.id, STR("1")) && str_eq(block.name, STR("e")));
    size_t at = 0; /* every line end comes back as LF */
    for (size_t i = 0; i < data.len; i++, at++) {
        bool is_cr = data.at[i] == '\r';
        CHECK(at < block.data.len && block.data.at[at] == (is_cr ? '\n' : data.at[i]));
        i += is_cr && i + 1 < data.len && data.at[i + 1] == '\n';
    }
    CHECK(at == block.data.len);
    sse_decoder_fini(&decoder);
    buf_fini(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bay_str bytes = {(const char *)data, size};
    uint32_t seed = (uint32_t)str_hash(bytes, 0);
    buf whole;
    buf cut;
    buf_init(&whole, SIZE_MAX);
    buf_init(&cut, SIZE_MAX);
    run(&whole, bytes, 0, 0);
    run(&cut, bytes, 1 + seed % 20, seed);
    CHECK(str_eq(buf_view(&whole), buf_view(&cut)));
    round_trip(bytes);
    buf_fini(&whole);
    buf_fini(&cut);
    return 0;
}
