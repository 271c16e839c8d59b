/* What the tests of A2A's protobuf share: bytes as hex digits. */
#ifndef TEST_A2A_PROTOBUF_CASE_H
#define TEST_A2A_PROTOBUF_CASE_H

#include "types_case.h"

static inline void put_hex(buf *out, const char *hex)
{
    for (; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
        while (*hex == ' ') {
            hex++;
        }
        char digits[3] = {hex[0], hex[1], '\0'};
        buf_char(out, (char)strtoul(digits, NULL, 16));
    }
}

static inline bay_err from_hex(a2a_type type, const char *hex, buf *out, a2a_fault *fault)
{
    buf bytes;
    buf_init(&bytes, 1U << 20);
    put_hex(&bytes, hex);
    char *exact = malloc(bytes.len > 0 ? bytes.len : 1); /* a read beyond it is seen */
    assert_non_null(exact);
    memcpy(exact, bytes.at != NULL ? bytes.at : "", bytes.len);
    bay_err err = a2a_from_protobuf(type, (bay_str){exact, bytes.len}, out, fault);
    free(exact);
    buf_fini(&bytes);
    return err;
}

static inline bay_err to_protobuf(a2a_type type, const char *json, buf *out, a2a_fault *fault)
{
    text_doc doc;
    json_val value = text_doc_parse(&doc, str_of(json));
    bay_err err = a2a_to_protobuf(type, value, out, fault);
    text_doc_forget(&doc);
    return err;
}

#endif
