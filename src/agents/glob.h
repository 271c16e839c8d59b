/* Names by pattern, as the configuration writes them: `*` any text, `?` one character. */
#ifndef AGENTS_GLOB_H
#define AGENTS_GLOB_H

#include "base/str.h"

/* Time grows with pattern × text at worst. */
static inline bool agents_glob(bay_str pattern, bay_str text)
{
    size_t p = 0, t = 0;
    size_t star = pattern.len, resume = 0; /* the last `*`, and where its text may end next */
    while (t < text.len) {
        if (p < pattern.len && pattern.at[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.len && (pattern.at[p] == '?' || pattern.at[p] == text.at[t])) {
            p++;
            t++;
        } else if (star < pattern.len) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.at[p] == '*') {
        p++;
    }
    return p == pattern.len;
}

#endif
