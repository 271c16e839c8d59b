/* Two texts word by word: equal ends are set aside, what is between them is compared by the longest
 * common sequence, where it is not too long for that. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "trust/diff.h"

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* A word with the blanks behind it. */
static size_t word_at(bay_str text, size_t at)
{
    size_t end = at;
    while (end < text.len && !is_blank(text.at[end])) {
        end++;
    }
    while (end < text.len && is_blank(text.at[end])) {
        end++;
    }
    return end - at;
}

static bay_err split(bay_str text, arena *memory, bay_str **out, size_t *out_count)
{
    size_t count = 0;
    for (size_t at = 0; at < text.len; at += word_at(text, at)) {
        count++;
    }
    *out = arena_array(memory, count + 1, sizeof(**out));
    *out_count = count;
    if (*out == NULL) {
        return BAY_ERR_NOMEM;
    }
    size_t place = 0;
    for (size_t at = 0; at < text.len;) {
        size_t len = word_at(text, at);
        (*out)[place++] = (bay_str){text.at + at, len};
        at += len;
    }
    return BAY_OK;
}

typedef struct pieces {
    trust_piece *at;
    size_t count;
} pieces;

/* Neighbours of one kind are one piece. */
static void put(pieces *self, trust_piece_kind kind, bay_str text)
{
    trust_piece *last = self->count > 0 ? &self->at[self->count - 1] : NULL;
    if (last != NULL && last->kind == kind && last->text.at + last->text.len == text.at) {
        last->text.len += text.len;
    } else {
        self->at[self->count++] = (trust_piece){kind, text};
    }
}

/* lengths[i][k]: of the longest common sequence of what follows there. */
static bay_err compare(const bay_str *before, size_t before_count, const bay_str *after,
                       size_t after_count, arena *memory, pieces *out)
{
    size_t width = after_count + 1;
    uint16_t *lengths = arena_array(memory, (before_count + 1) * width, sizeof(*lengths));
    if (lengths == NULL) {
        return BAY_ERR_NOMEM;
    }
    memset(lengths, 0, (before_count + 1) * width * sizeof(*lengths));
    for (size_t i = before_count; i-- > 0;) {
        for (size_t k = after_count; k-- > 0;) {
            uint16_t down = lengths[(i + 1) * width + k];
            uint16_t right = lengths[i * width + k + 1];
            lengths[i * width + k] = str_eq(before[i], after[k])
                                         ? (uint16_t)(lengths[(i + 1) * width + k + 1] + 1)
                                     : down > right ? down
                                                    : right;
        }
    }
    size_t i = 0;
    size_t k = 0;
    while (i < before_count || k < after_count) {
        if (i < before_count && k < after_count && str_eq(before[i], after[k])) {
            put(out, TRUST_KEPT, after[k]);
            i++;
            k++;
        } else if (k == after_count || (i < before_count && lengths[(i + 1) * width + k] >=
                                                                lengths[i * width + k + 1])) {
            put(out, TRUST_CUT, before[i++]);
        } else {
            put(out, TRUST_PUT, after[k++]);
        }
    }
    return BAY_OK;
}

bay_err trust_words(bay_str before, bay_str after, arena *memory, trust_piece **out,
                    size_t *out_count)
{
    bay_str *left;
    bay_str *right;
    size_t left_count;
    size_t right_count;
    size_t start = 0;
    size_t end = 0;
    bay_err err = split(before, memory, &left, &left_count);
    err = err == BAY_OK ? split(after, memory, &right, &right_count) : err;
    if (err != BAY_OK) {
        return err;
    }
    pieces all = {arena_array(memory, left_count + right_count + 1, sizeof(trust_piece)), 0};
    if (all.at == NULL) {
        return BAY_ERR_NOMEM;
    }
    size_t least = left_count < right_count ? left_count : right_count;
    while (start < least && str_eq(left[start], right[start])) {
        put(&all, TRUST_KEPT, right[start++]);
    }
    while (end < least - start &&
           str_eq(left[left_count - 1 - end], right[right_count - 1 - end])) {
        end++;
    }
    size_t cut = left_count - start - end;
    size_t new = right_count - start - end;
    if (cut <= TRUST_WORDS && new <= TRUST_WORDS) {
        err = compare(left + start, cut, right + start, new, memory, &all);
    } else {
        for (size_t i = 0; i < cut; i++) {
            put(&all, TRUST_CUT, left[start + i]);
        }
        for (size_t i = 0; i < new; i++) {
            put(&all, TRUST_PUT, right[start + i]);
        }
    }
    for (size_t i = right_count - end; err == BAY_OK && i < right_count; i++) {
        put(&all, TRUST_KEPT, right[i]);
    }
    *out = all.at;
    *out_count = all.count;
    return err;
}
