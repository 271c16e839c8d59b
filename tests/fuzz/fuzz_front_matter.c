/* Front matter: nothing is read beyond its end, a refusal says why, and what was read writes JSON
 * that compares equal to it. */
#include <stdint.h>

#include "base/check.h"
#include "base/str.h"
#include "sdk/front_matter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const matter *root, arena *memory)
{
    buf out;
    json_writer writer;
    json_doc doc;
    buf_init(&out, 1 << 22);
    json_writer_init(&writer, &out);
    matter_write(root, &writer);
    /* Bytes that are no UTF-8 are replaced when they are written: then it is another text. */
    if (out.err == BAY_OK && json_parse(&doc, buf_view(&out), NULL, memory, NULL) == BAY_OK &&
        memmem(out.at, out.len, "\xef\xbf\xbd", 3) == NULL) {
        CHECK(matter_compare(root, json_root(&doc), NULL) == BAY_OK);
    }
    CHECK(out.err != BAY_OK || out.at[0] == '{');
    buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena memory;
    const matter *root = NULL;
    bay_diag diag = {0};
    arena_init(&memory, 64 << 20);
    bay_err err = matter_read((bay_str){(const char *)data, size}, &memory, &root, &diag);
    if (err == BAY_OK) {
        CHECK(root->kind == MATTER_MAPPING && root->first != NULL);
        check_written(root, &memory);
    } else {
        CHECK(diag.code == err && diag.text[0] != '\0' && diag.offset <= size);
    }
    arena_fini(&memory);
    return 0;
}
