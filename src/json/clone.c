/* One value taken out of its document, with everything below it: text and index in one piece of
 * memory, exactly as large as they are. */
#include <string.h>

#include "base/mem.h"
#include "json/tape.h"

size_t json_clone_bytes(json_val value)
{
    const json_tape *from = &value.doc->tape[value.at];
    /* Both are parts of what was allocated once, so the sum is far from overflowing. */
    return sizeof(json_doc) + (from->next - value.at) * sizeof(json_tape) + from->end - from->start;
}

/* An entry of the tape, as four numbers that are worked on at one time. */
typedef uint32_t four __attribute__((vector_size(16)));
_Static_assert(sizeof(four) == sizeof(json_tape), "an entry is four numbers");

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
    const four moved = {0, base, base, (uint32_t)value.at};
    for (size_t i = 0; i < count; i++) {
        four entry;
        memcpy(&entry, &from[i], sizeof(entry));
        entry -= moved;
        memcpy(&tape[i], &entry, sizeof(entry));
    }
    *doc = (json_doc){{text, text_len}, tape, (uint32_t)count, value.doc->is_deep};
    return doc;
}

bay_err json_clone(json_val value, json_doc **out)
{
    if (value.doc == NULL) {
        return BAY_TYPE;
    }
    void *memory = mem_alloc(json_clone_bytes(value));
    if (memory == NULL) {
        return BAY_NOMEM;
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
        return BAY_NOMEM;
    }
    *out = json_root(json_clone_at(value, room));
    return BAY_OK;
}
