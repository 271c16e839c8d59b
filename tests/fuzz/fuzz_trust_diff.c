/* Two recordings, with a line feed between them, compared: the diff ends, is empty where both are the same, is written
 * as JSON that can be read, and its text holds nothing that a terminal obeys. */
#include <stdint.h>

#include "base/check.h"
#include "base/str.h"
#include "trust/diff.h"
#include "trust/lint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_BYTES = 64 << 20 };

static scanner *scan;

typedef struct side {
    arena memory;
    json_doc doc;
    trust_definitions all;
} side;

static bool side_open(side *self, bay_str text)
{
    arena_init(&self->memory, 64 << 20);
    trust_definitions_init(&self->all, STR("s"));
    bool is_good = json_parse(&self->doc, text, NULL, &self->memory, NULL) == BAY_OK &&
                   trust_definitions_add_object(&self->all, json_root(&self->doc), NULL) == BAY_OK;
    trust_definitions_sort(&self->all);
    return is_good;
}

static void side_close(side *self)
{
    trust_definitions_fini(&self->all);
    arena_fini(&self->memory);
}

static void check_written(const trust_diff *diff, const side *before, const side *after)
{
    buf out;
    arena memory;
    json_doc doc;
    buf_init(&out, OUT_BYTES);
    arena_init(&memory, OUT_BYTES);
    trust_diff_write_text(diff, &out);
    for (size_t i = 0; out.err == BAY_OK && i < out.len; i++) {
        CHECK((unsigned char)out.at[i] >= 0x20 || out.at[i] == '\n');
    }
    buf_clear(&out);
    trust_diff_write_json(diff, &before->all, &after->all, &out);
    CHECK(out.err != BAY_OK || json_parse(&doc, buf_view(&out), NULL, &memory, NULL) == BAY_OK);
    arena_fini(&memory);
    buf_fini(&out);
}

static void compare(const side *before, const side *after)
{
    trust_diff diff;
    trust_diff_init(&diff);
    bay_err err = trust_diff_run(&diff, &before->all, &after->all, scan);
    CHECK(err == BAY_OK || err == BAY_ERR_LIMIT || err == BAY_ERR_NOMEM);
    CHECK(before != after || diff.worst == TRUST_SAME);
    if (err == BAY_OK) {
        check_written(&diff, before, after);
    }
    trust_diff_fini(&diff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    side before;
    side after;
    bay_str text = {(const char *)data, size};
    size_t cut = str_find(text, '\n');
    CHECK(scan != NULL || scanner_new(&scan) == BAY_OK);
    bool is_good = side_open(&before, str_head(text, cut));
    is_good = side_open(&after, str_from(text, cut + 1)) && is_good;
    if (is_good) {
        trust_findings found;
        compare(&before, &after);
        compare(&before, &before);
        trust_findings_init(&found);
        CHECK(trust_lint_run(&found, &after.all, NULL) == BAY_OK);
        trust_findings_fini(&found);
    }
    side_close(&before);
    side_close(&after);
    return 0;
}
