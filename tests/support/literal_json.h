/* The value of a JSON literal. It stays in memory until the process ends. A test that makes
 * allocations fail asks for it once before, so that nothing is allocated later. */
#ifndef SUPPORT_LITERAL_JSON_H
#define SUPPORT_LITERAL_JSON_H

#include "base/check.h"
#include "base/str.h"
#include "json/json.h"

static inline json_val literal_json(const char *text)
{
    static arena memory;
    static const char *known;
    static json_val value;
    if (text != known) {
        if (known == NULL) {
            arena_init(&memory, 1 << 20);
        }
        json_doc *doc = arena_alloc(&memory, sizeof(*doc));
        CHECK(doc != NULL && json_parse(doc, str_of(text), NULL, &memory, NULL) == BAY_OK);
        value = json_root(doc);
        known = text;
    }
    return value;
}

#endif
