/* Any bytes as the protobuf of any of A2A's messages: what is taken becomes JSON in normal form,
 * which becomes protobuf that means the same; what is refused says why. The first byte picks the
 * type. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "a2a/types.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_json(a2a_type type, bay_str text, buf *bytes)
{
    arena memory;
    json_doc doc;
    buf out;
    a2a_fault fault;
    bool is_normal = false;
    arena_init(&memory, 1U << 28);
    buf_init(&out, 1U << 28);
    expect(json_parse(&doc, text, &a2a_json_limits, &memory, NULL) == BAY_OK);
    expect(json_check_duplicates(json_root(&doc), NULL) == BAY_OK);
    expect(a2a_normalise(type, json_root(&doc), &out, &is_normal, &fault) == BAY_OK);
    expect(is_normal);
    expect(a2a_to_protobuf(type, json_root(&doc), bytes, &fault) == BAY_OK);
    buf_fini(&out);
    arena_fini(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    a2a_type type = (a2a_type)(1 + data[0] % (A2A_TYPES - 1));
    buf json;
    buf bytes;
    buf again;
    buf_init(&json, 1U << 28);
    buf_init(&bytes, 1U << 28);
    buf_init(&again, 1U << 28);
    a2a_fault fault = {0};
    bay_err err =
        a2a_from_protobuf(type, (bay_str){(const char *)data + 1, size - 1}, &json, &fault);
    if (err == BAY_OK) {
        check_json(type, buf_view(&json), &bytes);
        expect(a2a_from_protobuf(type, buf_view(&bytes), &again, &fault) == BAY_OK);
        expect(str_eq(buf_view(&again), buf_view(&json)));
    } else {
        expect(err == BAY_ERR_PROTOCOL && fault.error == A2A_E_INVALID_PARAMS);
        expect(fault.text[0] != '\0' && json_is_utf8(str_of(fault.text)) && json.len == 0);
    }
    buf_fini(&json);
    buf_fini(&bytes);
    buf_fini(&again);
    return 0;
}
