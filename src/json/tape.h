/* The tape: one 16-byte entry for each value and each key, in document order. A container's entry
 * precedes its members; `next` is the entry after the whole value, so a walk skips subtrees.
 * Private to json/.
 *
 * While a container is open, its `end` counts members and its `next` is the entry of the container
 * around it, so nesting needs no stack. */
#ifndef JSON_TAPE_H
#define JSON_TAPE_H

#include <string.h>

#include "json/json.h"

struct json_tape {
    uint32_t head;  /* kind, flags, and the members of a container (saturated) */
    uint32_t start; /* offset of the first byte */
    uint32_t end;   /* offset after the last byte */
    uint32_t next;
};

enum {
    TAPE_KIND = 0x07,
    TAPE_ESCAPED = 0x08, /* a string with at least one backslash */
    TAPE_COUNT_SHIFT = 8,
    TAPE_COUNT_MAX = 0xffffff, /* this many or more: count by walking */
};

static inline json_kind tape_kind(const json_tape *entry)
{
    return (json_kind)(entry->head & TAPE_KIND);
}

static inline bool tape_is_escaped(const json_tape *entry)
{
    return (entry->head & TAPE_ESCAPED) != 0;
}

/* The bytes between a string's quotes. */
static inline bay_str tape_inside(const json_doc *doc, const json_tape *entry)
{
    return (bay_str){doc->text.at + entry->start + 1, entry->end - entry->start - 2};
}

/* An entry as four numbers that one instruction processes. */
typedef uint32_t tape_four __attribute__((vector_size(16)));
_Static_assert(sizeof(tape_four) == sizeof(json_tape), "an entry is four numbers");

/* Copies the entries of whole values for a text that is `bytes` earlier and a first entry that is
 * `entries` earlier; modulo 2^32, so that "earlier" may be later. */
static inline void json_tape_move(json_tape *to, const json_tape *from, size_t count,
                                  uint32_t bytes, uint32_t entries)
{
    const tape_four moved = {0, bytes, bytes, entries};
    for (size_t i = 0; i < count; i++) {
        tape_four entry;
        memcpy(&entry, &from[i], sizeof(entry));
        entry -= moved;
        memcpy(&to[i], &entry, sizeof(entry));
    }
}

/* Closes an open container after its last member; returns the container around it. */
static inline uint32_t json_tape_close(json_tape *entry, uint32_t end, uint32_t next)
{
    uint32_t parent = entry->next;
    uint32_t members = entry->end < TAPE_COUNT_MAX ? entry->end : TAPE_COUNT_MAX;
    entry->head |= members << TAPE_COUNT_SHIFT;
    entry->end = end;
    entry->next = next;
    return parent;
}

#endif
