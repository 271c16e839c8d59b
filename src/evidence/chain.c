#include "evidence/chain.h"

#include <string.h>

#include "auth/principal_key.h"
#include "base/str.h"
#include "wire/chars.h"

enum { LENGTH_BYTES = 8, BEFORE_BYTES = DIGEST_BYTES + LENGTH_BYTES };

static const bay_str seq_begin = STR_INIT("{\"seq\":");
static const bay_str previous_begin = STR_INIT("\"previous\":\"");
static const bay_str hash_begin = STR_INIT(",\"hash\":\"");
static const bay_str hash_end = STR_INIT("\"}");

static void put_digits(const unsigned char hash[DIGEST_BYTES], buf *out)
{
    principal_key_digits((bay_str){(const char *)hash, DIGEST_BYTES}, out);
}

/* As put_digits writes them: in lower case alone. */
static bool read_digits(bay_str text, unsigned char out[DIGEST_BYTES])
{
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        int high = char_hex(text.at[2 * i]);
        int low = char_hex(text.at[2 * i + 1]);
        if (high < 0 || low < 0 || char_lower(text.at[2 * i]) != text.at[2 * i] ||
            char_lower(text.at[2 * i + 1]) != text.at[2 * i + 1]) {
            return false;
        }
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static void put_before(const audit_chain *self, size_t length, buf *out)
{
    unsigned char bytes[LENGTH_BYTES];
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        bytes[i] = (unsigned char)((uint64_t)length >> (8 * (LENGTH_BYTES - 1 - i)));
    }
    buf_append(out, self->head, DIGEST_BYTES);
    buf_append(out, bytes, sizeof(bytes));
}

/* The hash of `record`, which stands in `whole` behind room for what is before it. */
static bay_err hash_of(const audit_chain *self, char *whole, size_t record_bytes,
                       unsigned char out[DIGEST_BYTES])
{
    buf before = {.at = whole, .cap = BEFORE_BYTES, .max = BEFORE_BYTES};
    put_before(self, record_bytes, &before);
    return digest_bytes((bay_str){whole, BEFORE_BYTES + record_bytes}, out);
}

bay_err audit_chain_append(audit_chain *self, bay_str members, bool is_opening, buf *out)
{
    char whole[BEFORE_BYTES + AUDIT_LINE_BYTES];
    unsigned char hash[DIGEST_BYTES];
    size_t tail_bytes = hash_begin.len + AUDIT_HASH_DIGITS + hash_end.len + 1;
    buf record = {.at = whole + BEFORE_BYTES,
                  .cap = AUDIT_LINE_BYTES - tail_bytes,
                  .max = AUDIT_LINE_BYTES - tail_bytes};
    buf_str(&record, seq_begin);
    buf_uint(&record, self->seq + 1);
    buf_char(&record, ',');
    if (is_opening) {
        buf_str(&record, previous_begin);
        put_digits(self->head, &record);
        buf_lit(&record, "\",");
    }
    buf_str(&record, members);
    bay_err err = record.err == BAY_OK ? hash_of(self, whole, record.len, hash) : record.err;
    if (err != BAY_OK || !buf_reserve(out, record.len + tail_bytes)) {
        return err != BAY_OK ? err : out->err;
    }
    buf_str(out, buf_view(&record));
    buf_str(out, hash_begin);
    put_digits(hash, out);
    buf_str(out, hash_end);
    buf_char(out, '\n');
    self->seq++;
    memcpy(self->head, hash, sizeof(hash));
    return BAY_OK;
}

void audit_chain_head(const audit_chain *self, char out[AUDIT_HASH_DIGITS + 1])
{
    buf text = {.at = out, .cap = AUDIT_HASH_DIGITS, .max = AUDIT_HASH_DIGITS};
    put_digits(self->head, &text);
    out[AUDIT_HASH_DIGITS] = '\0';
}

/* A line taken apart. */
typedef struct line_parts {
    bay_str record; /* what the hash covers */
    uint64_t seq;
    bool is_opening;
    unsigned char previous[DIGEST_BYTES];
    unsigned char hash[DIGEST_BYTES];
} line_parts;

static bool take_apart(bay_str line, line_parts *out)
{
    size_t tail_bytes = hash_begin.len + AUDIT_HASH_DIGITS + hash_end.len;
    if (line.len >= AUDIT_LINE_BYTES || line.len < seq_begin.len + 2 + tail_bytes ||
        !str_starts(line, seq_begin)) {
        return false;
    }
    bay_str tail = str_from(line, line.len - tail_bytes);
    if (!str_starts(tail, hash_begin) || !str_ends(tail, hash_end) ||
        !read_digits(str_from(tail, hash_begin.len), out->hash)) {
        return false;
    }
    out->record = str_head(line, line.len - tail_bytes);
    bay_str rest = str_from(out->record, seq_begin.len);
    size_t digits = str_find(rest, ',');
    if (digits == 0 || rest.at[0] == '0' || !str_uint(str_head(rest, digits), &out->seq)) {
        return false;
    }
    rest = str_from(rest, digits + 1);
    out->is_opening = str_starts(rest, previous_begin);
    return !out->is_opening || (rest.len > previous_begin.len + AUDIT_HASH_DIGITS &&
                                read_digits(str_from(rest, previous_begin.len), out->previous));
}

static bool follows(const audit_chain *self, const line_parts *parts)
{
    if (self->seq == 0) {
        return parts->is_opening;
    }
    return parts->seq == self->seq + 1 &&
           (!parts->is_opening || memcmp(parts->previous, self->head, DIGEST_BYTES) == 0);
}

bay_err audit_chain_check(audit_chain *self, bay_str line, audit_fault *out)
{
    char whole[BEFORE_BYTES + AUDIT_LINE_BYTES];
    unsigned char hash[DIGEST_BYTES];
    line_parts parts;
    audit_chain at = *self;
    *out = AUDIT_NO_RECORD;
    if (!take_apart(line, &parts)) {
        return BAY_OK;
    }
    if (!follows(self, &parts)) {
        *out = AUDIT_GAP;
        return BAY_OK;
    }
    if (self->seq == 0) {
        memcpy(at.head, parts.previous, DIGEST_BYTES);
    }
    memcpy(whole + BEFORE_BYTES, parts.record.at, parts.record.len);
    bay_err err = hash_of(&at, whole, parts.record.len, hash);
    if (err != BAY_OK) {
        return err;
    }
    if (memcmp(hash, parts.hash, DIGEST_BYTES) != 0) {
        *out = AUDIT_CHANGED;
        return BAY_OK;
    }
    *out = AUDIT_GOOD;
    self->seq = parts.seq;
    memcpy(self->head, hash, sizeof(hash));
    return BAY_OK;
}

bool audit_chain_read(bay_str line, audit_chain *out)
{
    line_parts parts;
    if (!take_apart(line, &parts)) {
        return false;
    }
    out->seq = parts.seq;
    memcpy(out->head, parts.hash, sizeof(out->head));
    return true;
}
