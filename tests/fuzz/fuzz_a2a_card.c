/* Bytes become cards. Checked: what is taken is normal form, can be written pure, hybrid and for
 * 0.x, and each of them is taken again; its interfaces can be chosen from; nothing leaks. */
#include <stdint.h>
#include <stdlib.h>

#include "a2a/outbound.h"
#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_BYTES = 256 << 20, TEXT_BYTES = 64 << 20 };

static void take_again(bay_str text, arena *memory)
{
    json_doc doc;
    buf out;
    a2a_version version;
    a2a_fault fault = {0};
    CHECK(json_parse(&doc, text, NULL, memory, NULL) == BAY_OK);
    buf_init(&out, TEXT_BYTES);
    bay_err err = a2a_card_read(json_root(&doc), &out, &version, &fault);
    /* What was deep becomes deeper on the way; nothing else may be lost. */
    CHECK(err == BAY_OK || err == BAY_ERR_DEPTH ||
          (err == BAY_ERR_PROTOCOL && strstr(fault.text, "deep") != NULL));
    buf_fini(&out);
}

static void write_all(bay_str ours, arena *memory)
{
    json_doc doc;
    a2a_interface found[8];
    size_t count;
    CHECK(json_parse(&doc, ours, NULL, memory, NULL) == BAY_OK);
    for (size_t form = A2A_CARD_1_0; form <= A2A_CARD_0_3; form++) {
        buf out;
        buf_init(&out, TEXT_BYTES);
        bay_err err = a2a_card_write((a2a_card_form)form, json_root(&doc), &out);
        CHECK(err == BAY_OK || (err == BAY_ERR_VERSION && form == A2A_CARD_0_3));
        if (err == BAY_OK) {
            take_again(buf_view(&out), memory);
        }
        buf_clear(&out);
        err = a2a_result_write(form == A2A_CARD_1_0 ? A2A_FORM_0_3_PROTO : A2A_FORM_0_3,
                               A2A_GET_EXTENDED_CARD, json_root(&doc), &out);
        CHECK(err == BAY_OK || err == BAY_ERR_PROTOCOL);
        buf_fini(&out);
    }
    bay_err err = a2a_interfaces_of(json_root(&doc), memory, found, 8, &count, NULL);
    CHECK(err == BAY_ERR_VERSION || (err == BAY_OK && count > 0 && count <= 8));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena memory;
    buf out;
    json_doc doc;
    a2a_version version;
    a2a_fault fault = {0};
    arena_init(&memory, MEMORY_BYTES);
    buf_init(&out, TEXT_BYTES);
    bay_str text = {(const char *)data, size};
    if (json_parse(&doc, text, &a2a_json_limits, &memory, NULL) == BAY_OK) {
        bay_err err = a2a_card_read(json_root(&doc), &out, &version, &fault);
        CHECK(err == BAY_OK || err == BAY_ERR_DEPTH ||
              (err == BAY_ERR_PROTOCOL && fault.text[0] != '\0'));
        if (err == BAY_OK) {
            CHECK(version < A2A_VERSIONS);
            write_all(buf_view(&out), &memory);
        }
    }
    buf_fini(&out);
    arena_fini(&memory);
    return 0;
}
