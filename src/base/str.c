#include "base/str.h"

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* Eight characters in lower case; bytes above 0x7f stay as they are. */
static uint64_t lower_eight(const char *at)
{
    const uint64_t ones = 0x0101010101010101U;
    const uint64_t tops = ones * 0x80;
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    uint64_t low = word & ~tops;
    uint64_t is_from_a = low + ones * (0x80 - 'A');
    uint64_t is_above_z = low + ones * (0x7f - 'Z');
    return word | ((is_from_a & ~is_above_z & ~word & tops) >> 2);
}

__attribute__((noinline)) static bool is_same_lower(const char *a, const char *b, size_t len)
{
    size_t i = 0;
    for (; len - i >= sizeof(uint64_t); i += sizeof(uint64_t)) {
        if (lower_eight(a + i) != lower_eight(b + i)) {
            return false;
        }
    }
    for (; i < len; i++) {
        if (lower(a[i]) != lower(b[i])) {
            return false;
        }
    }
    return true;
}

bool str_eq_nocase(bay_str a, bay_str b)
{
    if (a.len != b.len) {
        return false;
    }
    if (a.len == 0 || a.at == b.at) {
        return true;
    }
    /* Most names that are compared differ in their first or last character, bit 5 aside. */
    if ((((a.at[0] ^ b.at[0]) | (a.at[a.len - 1] ^ b.at[a.len - 1])) & ~0x20) != 0) {
        return false;
    }
    return memcmp(a.at, b.at, a.len) == 0 || is_same_lower(a.at, b.at, a.len);
}

static unsigned char next_folded(bay_str text, size_t *at)
{
    if ((unsigned char)text.at[*at] < 0x80) {
        return lower(text.at[(*at)++]);
    }
    bay_str rest = str_from(text, *at);
    bool is_s = str_starts(rest, STR("\xc5\xbf"));
    bool is_k = str_starts(rest, STR("\xe2\x84\xaa"));
    *at += is_s ? 2 : is_k ? 3 : 1;
    return is_s ? 's' : is_k ? 'k' : lower(rest.at[0]);
}

bool str_eq_folded(bay_str a, bay_str b)
{
    size_t left = 0;
    size_t right = 0;
    while (left < a.len && right < b.len) {
        if (next_folded(a, &left) != next_folded(b, &right)) {
            return false;
        }
    }
    return left == a.len && right == b.len;
}

int str_cmp(bay_str a, bay_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.at, b.at, len) : 0;
    if (order != 0) {
        return order;
    }
    return a.len < b.len ? -1 : a.len > b.len;
}

bay_str str_trim(bay_str text)
{
    while (text.len > 0 && (text.at[0] == ' ' || text.at[0] == '\t')) {
        text.at++;
        text.len--;
    }
    while (text.len > 0 && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t')) {
        text.len--;
    }
    return text;
}

size_t str_find(bay_str text, char c)
{
    const char *at = text.len > 0 ? memchr(text.at, c, text.len) : NULL;
    return at != NULL ? (size_t)(at - text.at) : text.len;
}

size_t str_find_last(bay_str text, char c)
{
    for (size_t i = text.len; i > 0; i--) {
        if (text.at[i - 1] == c) {
            return i - 1;
        }
    }
    return text.len;
}

bool str_uint(bay_str text, uint64_t *out)
{
    uint64_t number = 0;
    if (text.len == 0) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') {
            return false;
        }
        if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text.at[i] - '0'), &number)) {
            return false;
        }
    }
    *out = number;
    return true;
}

bool str_eq_secret(bay_str a, bay_str b)
{
    if (a.len != b.len) {
        return false;
    }
    volatile unsigned char difference = 0;
    for (size_t i = 0; i < a.len; i++) {
        difference |= (unsigned char)(a.at[i] ^ b.at[i]);
    }
    return difference == 0;
}

/* SipHash-1-3 with a 64-bit seed spread over both key halves. */
#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = ROTL(v[1], 13) ^ v[0];
    v[0] = ROTL(v[0], 32);
    v[2] += v[3];
    v[3] = ROTL(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = ROTL(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = ROTL(v[1], 17) ^ v[2];
    v[2] = ROTL(v[2], 32);
}

uint64_t str_hash(bay_str text, uint64_t seed)
{
    uint64_t other = seed * 0x9e3779b97f4a7c15U + 1;
    uint64_t v[4] = {seed ^ 0x736f6d6570736575U, other ^ 0x646f72616e646f6dU,
                     seed ^ 0x6c7967656e657261U, other ^ 0x7465646279746573U};
    size_t i = 0;
    for (; i + 8 <= text.len; i += 8) {
        uint64_t word;
        memcpy(&word, text.at + i, sizeof(word));
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)text.len << 56;
    for (size_t shift = 0; i < text.len; i++, shift += 8) {
        last |= (uint64_t)(unsigned char)text.at[i] << shift;
    }
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

size_t str_distance(bay_str a, bay_str b)
{
    enum { LONGEST = 64 };
    if (a.len > LONGEST || b.len > LONGEST) {
        return LONGEST;
    }
    size_t row[LONGEST + 1];
    for (size_t j = 0; j <= b.len; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t change = diagonal + (lower(a.at[i - 1]) != lower(b.at[j - 1]));
            diagonal = row[j];
            size_t least = row[j] + 1 < row[j - 1] + 1 ? row[j] + 1 : row[j - 1] + 1;
            row[j] = change < least ? change : least;
        }
    }
    return row[b.len];
}

static size_t next_character(bay_str text, size_t at)
{
    at++;
    while (at < text.len && ((unsigned char)text.at[at] & 0xc0) == 0x80) {
        at++;
    }
    return at;
}

/* Only the last star is ever tried anew: an earlier one that took less can take no more. */
bool str_glob(bay_str pattern, bay_str text)
{
    size_t p = 0;
    size_t t = 0;
    size_t star = pattern.len; /* none yet */
    size_t star_end = 0;       /* of what it has taken */
    while (t < text.len) {
        if (p < pattern.len && pattern.at[p] == '*') {
            star = p++;
            star_end = t;
        } else if (p < pattern.len && pattern.at[p] == '?') {
            t = next_character(text, t);
            p++;
        } else if (p < pattern.len && pattern.at[p] == text.at[t]) {
            p++;
            t++;
        } else if (star < pattern.len) {
            star_end = next_character(text, star_end);
            t = star_end;
            p = star + 1;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.at[p] == '*') {
        p++;
    }
    return p == pattern.len;
}
