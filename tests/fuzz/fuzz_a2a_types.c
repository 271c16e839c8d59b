/* Any JSON as any of A2A's messages: what is taken has a normal form, which is taken as it stands;
 * what is refused says where; and what is in normal form fits into protobuf and comes back as the
 * same. The first byte picks the type. */
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

/* The normal form of `text` in `out`; false: refused. `must`: it is one. */
static bool normalise(a2a_type type, bay_str text, bool must, buf *out)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 1U << 26);
    bool is_taken = false;
    if (json_parse(&doc, text, &a2a_json_limits, &memory, NULL) == BAY_OK) {
        a2a_fault fault = {0};
        bool is_normal = false;
        bay_err err = a2a_normalise(type, json_root(&doc), out, &is_normal, &fault);
        is_taken = err == BAY_OK;
        expect(is_taken || (err == BAY_ERR_PROTOCOL && fault.error == A2A_E_INVALID_PARAMS &&
                            fault.text[0] != '\0' && json_is_utf8(str_of(fault.text))));
        expect(is_taken || out->len == 0);
        if (is_normal) {
            expect(out->len == 0);
            buf_str(out, json_raw(json_root(&doc)));
        }
        expect(!must || is_normal);
        expect(out->len == 0 || memchr(out->at, '\n', out->len) == NULL);
    } else {
        expect(!must);
    }
    arena_fini(&memory);
    return is_taken;
}

/* To protobuf; false: it does not fit (lone surrogates and numbers beyond doubles in free values).
 */
static bool encode(a2a_type type, bay_str text, buf *out)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 1U << 26);
    expect(json_parse(&doc, text, &a2a_json_limits, &memory, NULL) == BAY_OK);
    a2a_fault fault = {0};
    bay_err err = a2a_to_protobuf(type, json_root(&doc), out, &fault);
    expect(err == BAY_OK || (err == BAY_ERR_PROTOCOL && fault.text[0] != '\0' && out->len == 0));
    arena_fini(&memory);
    return err == BAY_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    a2a_type type = (a2a_type)(1 + data[0] % (A2A_TYPES - 1));
    buf normal;
    buf again;
    buf bytes;
    buf back;
    buf_init(&normal, 1U << 26);
    buf_init(&again, 1U << 26);
    buf_init(&bytes, 1U << 26);
    buf_init(&back, 1U << 26);
    if (normalise(type, (bay_str){(const char *)data + 1, size - 1}, false, &normal)) {
        expect(normalise(type, buf_view(&normal), true, &again));
        if (encode(type, buf_view(&normal), &bytes)) {
            expect(a2a_from_protobuf(type, buf_view(&bytes), &back, NULL) == BAY_OK);
            buf_clear(&again);
            expect(normalise(type, buf_view(&back), true, &again));
            buf_clear(&again);
            expect(encode(type, buf_view(&back), &again));
            buf_clear(&normal);
            expect(a2a_from_protobuf(type, buf_view(&again), &normal, NULL) == BAY_OK);
            expect(str_eq(buf_view(&normal), buf_view(&back)));
        }
    }
    buf_fini(&normal);
    buf_fini(&again);
    buf_fini(&bytes);
    buf_fini(&back);
    return 0;
}
