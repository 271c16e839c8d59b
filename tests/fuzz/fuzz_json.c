/* Any bytes as a document: every scan variant gives the same answer; what is accepted can be
 * walked, decoded, compared, spliced and read again without a change, and its canonical form is
 * final; any bytes can be quoted and read back. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "json/canon.h"
#include "json/scan.h"
#include "json/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool condition)
{
    if (!condition) {
        abort();
    }
}

static const json_limits limits = {1U << 20, 200, 100000};

typedef struct walker {
    arena *memory;
    json_doc *doc;
    size_t numbers;
    bay_str last_number;
} walker;

static void look_at_string(walker *self, json_val value)
{
    bay_str text;
    bay_err err = json_str(value, self->memory, &text);
    expect(err == BAY_OK || err == BAY_ERR_UTF8);
    if (err != BAY_OK) {
        return;
    }
    const unsigned char *at = (const unsigned char *)text.at;
    expect(text.len == 0 || json_scan_portable.utf8(at, at + text.len) == at + text.len);
    expect(json_str_eq(value, text));
    expect(!json_str_eq(value, str_head(text, text.len - 1)) || text.len == 0);
}

static void look_at_number(walker *self, json_val value)
{
    int64_t number = 0;
    uint64_t positive = 0;
    double real = 0;
    bay_err err = json_int64(value, &number);
    bay_err err_positive = json_uint64(value, &positive);
    bay_err err_real = json_double(value, &real);
    bay_str raw = json_raw(value);
    expect(err == BAY_OK || err == BAY_ERR_RANGE);
    expect(err_positive == BAY_OK || err_positive == BAY_ERR_RANGE);
    expect(err_real == BAY_OK || err_real == BAY_ERR_RANGE);
    expect(err != BAY_OK || json_is_integer(value));
    expect(err_positive != BAY_OK || json_is_integer(value));
    expect(err != BAY_OK || err_positive != BAY_OK || (uint64_t)number == positive);
    expect(err_real != BAY_OK || real == strtod(raw.at, NULL)); /* the copy ends in NUL */
    expect(json_number_eq(raw, raw));
    if (err == BAY_OK) {
        buf text;
        buf_init(&text, 64);
        buf_int(&text, number);
        expect(json_number_eq(raw, buf_view(&text)));
        buf_fini(&text);
    }
    if (self->numbers++ > 0) {
        expect(json_number_eq(raw, self->last_number) == json_number_eq(self->last_number, raw));
    }
    self->last_number = raw;
}

static void look_at_container(json_val value)
{
    size_t steps = 0;
    for (json_iter it = json_iter_of(value); json_next(&it); steps++) {
        bay_str raw = json_raw(it.value);
        bay_str around = json_raw(value);
        expect(raw.at > around.at && raw.at + raw.len < around.at + around.len);
        if (it.key.doc == NULL && steps < 16) {
            expect(json_item(value, steps).at == it.value.at);
        }
    }
    expect(steps == json_count(value));
}

static void walk(walker *self)
{
    for (uint32_t i = 0; i < self->doc->count; i++) {
        json_val value = {self->doc, i};
        switch (json_kind_of(value)) {
        case JSON_STRING:
            look_at_string(self, value);
            break;
        case JSON_NUMBER:
            look_at_number(self, value);
            break;
        case JSON_ARRAY:
        case JSON_OBJECT:
            look_at_container(value);
            break;
        case JSON_MISSING:
            abort();
        default:
            break;
        }
    }
}

static void look_up(json_val root, arena *memory)
{
    bay_err unique = json_check_duplicates(root, NULL);
    expect(unique == BAY_OK || unique == BAY_ERR_DUPLICATE);
    size_t steps = 0;
    for (json_iter it = json_iter_of(root); json_next(&it) && steps < 64; steps++) {
        bay_str key;
        if (it.key.doc == NULL || json_str(it.key, memory, &key) != BAY_OK) {
            continue;
        }
        json_val picked = JSON_NONE;
        bay_err err = json_pick(root, &key, 1, &picked, NULL);
        expect(json_get(root, key).doc != NULL);
        expect(err == BAY_OK || (err == BAY_ERR_DUPLICATE && unique == BAY_ERR_DUPLICATE));
        expect(err != BAY_OK || picked.at == it.value.at);
        json_pointer(root, key);
    }
}

/* The root's bytes inside another document are the same document. */
static void splice(json_val root)
{
    buf out;
    json_writer writer;
    buf_init(&out, 4U << 20);
    json_writer_init(&writer, &out);
    json_open_array(&writer);
    json_put_val(&writer, root);
    json_open_object(&writer);
    json_put_members(&writer, root, NULL, 0);
    json_close_object(&writer);
    json_close_array(&writer);
    expect(out.err == BAY_OK);
    arena memory;
    arena_init(&memory, 64U << 20);
    json_doc again;
    json_limits wider = {4U << 20, 201, 200002};
    expect(json_parse(&again, buf_view(&out), &wider, &memory, NULL) == BAY_OK);
    json_val spliced = json_item(json_root(&again), 0);
    expect(str_eq(json_raw(spliced), json_raw(root)));
    json_val members = json_item(json_root(&again), 1);
    expect(json_count(members) == (json_is(root, JSON_OBJECT) ? json_count(root) : 0));
    arena_fini(&memory);
    buf_fini(&out);
}

/* The canonical form is its own canonical form. */
static void canonicalise(json_val root, arena *memory)
{
    buf out;
    buf again;
    buf_init(&out, 16U << 20);
    buf_init(&again, 16U << 20);
    bay_err err = json_canon(&out, root, memory, NULL);
    expect(err == BAY_OK || err == BAY_ERR_DUPLICATE || err == BAY_ERR_UTF8 ||
           err == BAY_ERR_RANGE);
    expect(err != BAY_ERR_DUPLICATE || json_check_duplicates(root, NULL) == BAY_ERR_DUPLICATE);
    if (err == BAY_OK) {
        json_doc doc;
        expect(json_parse(&doc, buf_view(&out), &limits, memory, NULL) == BAY_OK);
        expect(doc.count == root.doc->count);
        expect(json_canon(&again, json_root(&doc), memory, NULL) == BAY_OK);
        expect(str_eq(buf_view(&out), buf_view(&again)));
    }
    buf_fini(&out);
    buf_fini(&again);
}

static void parse_everywhere(bay_str text)
{
    const json_scan *scans[JSON_SCAN_MAX];
    size_t count = json_scan_list(scans);
    bay_err first_err = BAY_OK;
    bay_diag first = {0};
    json_doc docs[JSON_SCAN_MAX];
    arena memory[JSON_SCAN_MAX];
    for (size_t i = 0; i < count; i++) {
        bay_diag diag = {0};
        json_scan_use(scans[i]);
        arena_init(&memory[i], 64U << 20);
        docs[i] = (json_doc){.count = 0};
        bay_err err = json_parse(&docs[i], text, &limits, &memory[i], &diag);
        first_err = i == 0 ? err : first_err;
        first = i == 0 ? diag : first;
        expect(err == first_err && diag.offset == first.offset && diag.offset <= text.len);
        expect(docs[i].count == docs[0].count);
        expect(err != BAY_OK || memcmp(docs[i].tape, docs[0].tape, docs[0].count * 16U) == 0);
        if (err == BAY_OK) {
            walker self = {.memory = &memory[i], .doc = &docs[i]};
            walk(&self);
            look_up(json_root(&docs[i]), &memory[i]);
            splice(json_root(&docs[i]));
            canonicalise(json_root(&docs[i]), &memory[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        arena_fini(&memory[i]);
    }
}

/* Quoting any bytes gives a string; well-formed ones come back as they were. */
static void quote_everywhere(bay_str text)
{
    const json_scan *scans[JSON_SCAN_MAX];
    size_t count = json_scan_list(scans);
    const unsigned char *at = (const unsigned char *)text.at;
    bool is_valid = json_scan_portable.utf8(at, at + text.len) == at + text.len;
    buf first;
    buf_init(&first, 16U << 20);
    for (size_t i = 0; i < count; i++) {
        json_scan_use(scans[i]);
        buf out;
        buf_init(&out, 16U << 20);
        json_quote(&out, text);
        expect(out.err == BAY_OK);
        if (i == 0) {
            buf_str(&first, buf_view(&out));
        }
        expect(str_eq(buf_view(&out), buf_view(&first)));
        arena memory;
        arena_init(&memory, 64U << 20);
        json_doc doc;
        bay_str back;
        expect(json_parse(&doc, buf_view(&out), NULL, &memory, NULL) == BAY_OK);
        expect(json_str(json_root(&doc), &memory, &back) == BAY_OK);
        expect(str_eq(back, text) == is_valid);
        arena_fini(&memory);
        buf_fini(&out);
    }
    buf_fini(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* a copy of the exact size, then one with a NUL behind it for strtod to stop at */
    char *exact = malloc(size > 0 ? size : 1);
    char *ended = calloc(1, size + 1);
    if (exact != NULL && ended != NULL) {
        if (size > 0) {
            memcpy(exact, data, size);
            memcpy(ended, data, size);
        }
        arena memory;
        arena_init(&memory, 64U << 20);
        json_doc doc;
        json_scan_use(NULL);
        bay_err err = json_parse(&doc, (bay_str){exact, size}, &limits, &memory, NULL);
        expect(err != BAY_ERR_NOMEM && err != BAY_ERR_INTERNAL);
        arena_fini(&memory);
        parse_everywhere((bay_str){ended, size});
        quote_everywhere((bay_str){exact, size});
    }
    free(exact);
    free(ended);
    return 0;
}
