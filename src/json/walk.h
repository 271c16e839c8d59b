/* Access to the index without function calls, for walks over every message. A place is the number
 * of a value in its document. */
#ifndef JSON_WALK_H
#define JSON_WALK_H

#include <string.h>

#include "json/tape.h"

static inline json_kind json_walk_kind(const json_doc *doc, uint32_t place)
{
    return tape_kind(&doc->tape[place]);
}

/* The place after the value: of the next value in its container, or the container's end. */
static inline uint32_t json_walk_after(const json_doc *doc, uint32_t place)
{
    return doc->tape[place].next;
}

/* A string's bytes between its quotes; false: it has escapes. */
static inline bool json_walk_text(const json_doc *doc, uint32_t place, bay_str *out)
{
    const json_tape *entry = &doc->tape[place];
    *out = tape_inside(doc, entry);
    return !tape_is_escaped(entry);
}

static inline uint32_t json_walk_four(const char *at)
{
    uint32_t four;
    memcpy(&four, at, sizeof(four));
    return four;
}

/* Whether it is this name. Comparing two words decides for most names, without a call. */
static inline bool json_walk_same(bay_str text, const char *name, size_t len)
{
    if (text.len != len || len < 4) {
        return text.len == len && (len == 0 || memcmp(text.at, name, len) == 0);
    }
    return json_walk_four(text.at) == json_walk_four(name) &&
           json_walk_four(text.at + len - 4) == json_walk_four(name + len - 4) &&
           (len <= 8 || memcmp(text.at, name, len) == 0);
}

#endif
