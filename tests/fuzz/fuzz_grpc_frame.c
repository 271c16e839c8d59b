/* gRPC's frames, status text, time-outs and details: the same messages wherever the bytes are cut,
 * text that is UTF-8 and round again, details that read back as they were written. */
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/grpc_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LONGEST = 64 };

static void read_frames(bay_str bytes, size_t step, buf *out)
{
    grpc_reader reader;
    bay_err err = BAY_ERR_AGAIN;
    grpc_reader_init(&reader, LONGEST);
    for (size_t at = 0; at < bytes.len && err == BAY_ERR_AGAIN; at += step) {
        size_t len = bytes.len - at < step ? bytes.len - at : step;
        char *piece = mem_dup(bytes.at + at, len);
        CHECK(piece != NULL);
        bay_str rest = {piece, len};
        do {
            size_t used = 0;
            bay_str message = {NULL, 0};
            err = grpc_reader_next(&reader, rest, &used, &message);
            if (err == BAY_OK) {
                CHECK(used <= rest.len && message.len <= LONGEST);
                buf_printf(out, "%zu:", message.len);
                buf_str(out, message);
                rest = str_from(rest, used);
            }
        } while (err == BAY_OK);
        mem_free(piece);
    }
    buf_printf(out, " %d %d", (int)err, err == BAY_ERR_AGAIN && grpc_reader_is_between(&reader));
    grpc_reader_fini(&reader);
}

static void check_frames(bay_str bytes)
{
    buf whole;
    buf cut;
    buf_init(&whole, SIZE_MAX / 2);
    read_frames(bytes, bytes.len + 1, &whole);
    for (size_t step = 1; step < 9; step += 2) {
        buf_init(&cut, SIZE_MAX / 2);
        read_frames(bytes, step, &cut);
        CHECK(str_eq(buf_view(&whole), buf_view(&cut)));
        buf_fini(&cut);
    }
    buf_fini(&whole);
}

static void check_message(bay_str bytes)
{
    buf text;
    buf wire;
    buf again;
    buf_init(&text, SIZE_MAX / 2);
    buf_init(&wire, SIZE_MAX / 2);
    buf_init(&again, SIZE_MAX / 2);
    grpc_message_decode(&text, bytes);
    CHECK(text.len <= bytes.len);
    grpc_message_encode(&wire, buf_view(&text));
    CHECK(wire.len <= GRPC_MESSAGE_BYTES);
    grpc_message_decode(&again, buf_view(&wire));
    CHECK(str_starts(buf_view(&text), buf_view(&again))); /* cut, not changed */
    buf_fini(&text);
    buf_fini(&wire);
    buf_fini(&again);
}

static void check_details(bay_str bytes)
{
    arena memory;
    grpc_status read;
    grpc_status again;
    buf wire;
    arena_init(&memory, 1 << 20);
    buf_init(&wire, SIZE_MAX / 2);
    if (grpc_details_read(bytes, &memory, &read) == BAY_OK) {
        grpc_details_write(&wire, &read);
        if (wire.err == BAY_OK) {
            CHECK(grpc_details_read(buf_view(&wire), &memory, &again) == BAY_OK);
            CHECK(again.code == read.code && str_eq(again.message, read.message));
            CHECK(str_eq(again.reason, read.reason));
            CHECK(read.reason.len == 0 || (str_eq(again.domain, read.domain) &&
                                           again.metadata_count == read.metadata_count));
        }
    }
    buf_fini(&wire);
    arena_fini(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t ms = 0;
    if (size == 0) {
        return 0;
    }
    bay_str bytes = {(const char *)data + 1, size - 1};
    switch (data[0] % 4) {
    case 0:
        check_frames(bytes);
        break;
    case 1:
        check_message(bytes);
        break;
    case 2:
        check_details(bytes);
        break;
    default:
        CHECK(grpc_timeout_read(bytes, &ms) != BAY_OK || ms > 0);
        break;
    }
    return 0;
}
