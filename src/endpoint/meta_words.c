/* Words, and how well they fit. A word is a run of letters, digits and bytes beyond ASCII; a
 * capital after a small letter begins another one, so that getWeather is two. */
#include <string.h>

#include "endpoint/meta_tools.h"

#include "base/str.h"

enum { NAME_WEIGHT = 8, TITLE_WEIGHT = 4, DESCRIPTION_WEIGHT = 1, WORD_WEIGHT = 1 << 12 };

static bool is_small(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80;
}

static bool is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

static char small(char c)
{
    return is_capital(c) ? (char)(c + 32) : c;
}

/* The next word at or after `*at`; `*at` goes behind it. A backslash and what it escapes part
 * words. */
static bool next_word(bay_str text, size_t *at, bay_str *out)
{
    size_t i = *at;
    while (i < text.len && !is_small(text.at[i]) && !is_capital(text.at[i])) {
        bool is_escape = text.at[i] == '\\' && i + 1 < text.len;
        i += !is_escape ? 1 : text.at[i + 1] == 'u' ? 6 : 2;
    }
    if (i >= text.len) {
        return false;
    }
    size_t start = i;
    for (i++; i < text.len; i++) {
        bool is_next = is_capital(text.at[i]) && is_small(text.at[i - 1]);
        if (is_next || (!is_small(text.at[i]) && !is_capital(text.at[i]))) {
            break;
        }
    }
    *out = (bay_str){text.at + start, i - start};
    *at = i;
    return true;
}

void meta_query_read(meta_query *out, bay_str text)
{
    size_t at = 0;
    size_t used = 0;
    bay_str word;
    out->count = 0;
    while (out->count < META_WORDS && next_word(text, &at, &word) &&
           word.len <= sizeof(out->bytes) - used) {
        char *copy = out->bytes + used;
        for (size_t i = 0; i < word.len; i++) {
            copy[i] = small(word.at[i]);
        }
        bool is_known = false;
        for (size_t i = 0; i < out->count; i++) {
            is_known = is_known || str_eq(out->words[i], (bay_str){copy, word.len});
        }
        if (!is_known) {
            out->words[out->count++] = (bay_str){copy, word.len};
            used += word.len;
        }
    }
}

/* 3: the same; 2: the word begins with what is looked for; 1: the other way round ("forecasts"
 * finds "forecast"); 0. */
static uint32_t fit(bay_str wanted, bay_str word)
{
    enum { LEAST_STEM = 4 };
    size_t common = wanted.len < word.len ? wanted.len : word.len;
    for (size_t i = 0; i < common; i++) {
        if (small(word.at[i]) != wanted.at[i]) {
            return 0;
        }
    }
    if (wanted.len == word.len) {
        return 3;
    }
    if (wanted.len < word.len) {
        return wanted.len > 1 ? 2 : 0;
    }
    return word.len >= LEAST_STEM ? 1 : 0;
}

static void look_at(const meta_query *self, bay_str text, uint32_t weight, uint32_t *best)
{
    size_t at = 0;
    bay_str word;
    while (next_word(text, &at, &word)) {
        for (size_t i = 0; i < self->count; i++) {
            uint32_t score = weight * fit(self->words[i], word);
            best[i] = score > best[i] ? score : best[i];
        }
    }
}

uint32_t meta_query_score(const meta_query *self, bay_str name, bay_str title, bay_str description)
{
    uint32_t best[3][META_WORDS] = {0};
    uint32_t score = 0;
    look_at(self, name, NAME_WEIGHT, best[0]);
    look_at(self, title, TITLE_WEIGHT, best[1]);
    look_at(self, str_head(description, META_DESCRIPTION_BYTES), DESCRIPTION_WEIGHT, best[2]);
    for (size_t i = 0; i < self->count; i++) {
        uint32_t of_word = best[0][i] + best[1][i] + best[2][i];
        score += of_word > 0 ? WORD_WEIGHT + of_word : 0; /* more words before better ones */
    }
    return score;
}
