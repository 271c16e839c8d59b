/* Copies one value of a document with everything below it: text and index in one allocation of
 * their exact size. */
#include <string.h>

#include "base/mem.h"
#include "json/tape.h"

size_t json_clone_bytes(json_val value)
{
    const json_tape *from = &value.doc->tape[value.at];
    /* Both are parts of one existing allocation, so the sum cannot overflow. */
    return sizeof(json_doc) + (from->next - value.at) * sizeof(json_tape) + from->end - from->start;
}

json_doc *json_clone_at(json_val value, void *memory)
{
    const json_tape *from = &value.doc->tape[value.at];
    uint32_t base = from->start;
    size_t text_len = from->end - base;
    size_t count = from->next - value.at;
    json_doc *doc = memory;
    json_tape *tape = (json_tape *)(doc + 1);
    char *text = (char *)(tape + count);
    memcpy(text, value.doc->text.at + base, text_len);
    json_tape_move(tape, from, count, base, (uint32_t)value.at);
    *doc = (json_doc){{text, text_len}, tape, (uint32_t)count, value.doc->is_deep};
    return doc;
}

bay_err json_clone(json_val value, json_doc **out)
{
    if (value.doc == NULL) {
        return BAY_ERR_TYPE;
    }
    void *memory = mem_alloc(json_clone_bytes(value));
    if (memory == NULL) {
        return BAY_ERR_NOMEM;
    }
    *out = json_clone_at(value, memory);
    return BAY_OK;
}

bay_err json_clone_in(json_val value, arena *memory, json_val *out)
{
    if (value.doc == NULL) {
        *out = JSON_NONE;
        return BAY_OK;
    }
    void *room = arena_alloc(memory, json_clone_bytes(value));
    if (room == NULL) {
        return BAY_ERR_NOMEM;
    }
    *out = json_root(json_clone_at(value, room));
    return BAY_OK;
}

/* The places of `cut`, in order; the last entry is beyond all text. */
static bay_err find_cuts(bay_str text, bay_str cut, arena *memory, uint32_t **out,
                         size_t *out_count)
{
    size_t count = 0;
    const char *end = text.at + text.len;
    const char *at = text.at;
    while ((at = memmem(at, (size_t)(end - at), cut.at, cut.len)) != NULL) {
        at += cut.len;
        count++;
    }
    uint32_t *cuts = arena_alloc(memory, (count + 1) * sizeof(*cuts));
    if (cuts == NULL) {
        return memory->is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
    }
    at = text.at;
    for (size_t i = 0; i < count; i++) {
        at = memmem(at, (size_t)(end - at), cut.at, cut.len);
        cuts[i] = (uint32_t)(at - text.at);
        at += cut.len;
    }
    *out = cuts;
    *out_count = count;
    return BAY_OK;
}

/* The place of `at` after the cuts before it. */
static uint32_t place_after(const uint32_t *cuts, size_t count, size_t len, uint32_t at)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cuts[middle] < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return at - (uint32_t)(low * len);
}

bay_err json_clone_without(json_val value, bay_str cut, arena *memory, json_val *out)
{
    uint32_t *cuts;
    size_t count;
    json_val made;
    bay_err err = json_clone_in(value, memory, &made);
    if (err == BAY_OK && made.doc != NULL && cut.len > 0) {
        err = find_cuts(made.doc->text, cut, memory, &cuts, &count);
    }
    if (err != BAY_OK || made.doc == NULL || cut.len == 0) {
        *out = err == BAY_OK ? made : *out;
        return err;
    }
    json_doc *doc = (json_doc *)made.doc; /* a copy made here, like its index and its text */
    json_tape *tape = (json_tape *)doc->tape;
    char *text = (char *)doc->text.at;
    for (uint32_t i = 0; i < doc->count; i++) {
        tape[i].start = place_after(cuts, count, cut.len, tape[i].start);
        tape[i].end = place_after(cuts, count, cut.len, tape[i].end);
    }
    for (size_t i = 0; i < count; i++) {
        size_t from = cuts[i] + cut.len;
        size_t to = i + 1 < count ? cuts[i + 1] : doc->text.len;
        memmove(text + cuts[i] - i * cut.len, text + from, to - from);
    }
    doc->text.len -= count * cut.len;
    *out = made;
    return BAY_OK;
}
