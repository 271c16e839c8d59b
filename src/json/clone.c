/* One value taken out of its document, with everything below it: text and index in one piece of
 * memory, exactly as large as they are. */
#include <string.h>

#include "base/mem.h"
#include "json/tape.h"

bay_err json_clone(json_val value, json_doc **out)
{
    if (value.doc == NULL) {
        return BAY_TYPE;
    }
    const json_tape *from = &value.doc->tape[value.at];
    uint32_t base = from->start;
    size_t text_len = from->end - base;
    size_t count = from->next - value.at;
    /* Both are parts of what was allocated once, so the sum is far from overflowing. */
    char *memory = mem_alloc(sizeof(json_doc) + count * sizeof(json_tape) + text_len);
    if (memory == NULL) {
        return BAY_NOMEM;
    }
    json_doc *doc = (json_doc *)memory;
    json_tape *tape = (json_tape *)(memory + sizeof(json_doc));
    char *text = memory + sizeof(json_doc) + count * sizeof(json_tape);
    memcpy(text, value.doc->text.at + base, text_len);
    for (size_t i = 0; i < count; i++) {
        tape[i] = (json_tape){from[i].head, from[i].start - base, from[i].end - base,
                              from[i].next - (uint32_t)value.at};
    }
    *doc = (json_doc){{text, text_len}, tape, (uint32_t)count};
    *out = doc;
    return BAY_OK;
}
