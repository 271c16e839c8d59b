/* Results and messages: which of their bytes are texts. */
#include "base/shown.h"
#include "policy/scan_internal.h"
#include "wire/base64.h"
#include "wire/chars.h"

enum {
    FILE_LEAST = 256, /* characters of base64; shorter ones are read like any text */
    FILE_HEAD = 64,   /* of these: by what they say a file is told from a text */
};

/* Do the first characters say bytes that no text has? */
static bool begins_like_a_file(bay_str digits)
{
    char bytes[FILE_HEAD] = {0};
    size_t len = 0;
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < FILE_HEAD; i++) {
        bits = bits << 6 | (uint32_t)base64_digit(digits.at[i], false);
        held += 6;
        if (held >= 8) {
            held -= 8;
            bytes[len++] = (char)(bits >> held & 0xff);
        }
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c < ' ' && c != '\t' && c != '\n' && c != '\r') {
            return true;
        }
    }
    bay_str head = {bytes, len - 3}; /* a character may be cut at the end */
    return !json_is_utf8(shown_whole(head));
}

/* Every byte counts: behind a beginning of base64 there could be a text. */
static bool is_base64(bay_str text)
{
    while (text.len > 0 && text.at[text.len - 1] == '=') {
        text.len--;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (!char_is(c, CHAR_ALPHA | CHAR_DIGIT) && c != '+' && c != '/') {
            return false;
        }
    }
    return true;
}

bool scan_content_is_file(bay_str pointer, bay_str key, json_val value)
{
    static const bay_str keys[] = {STR_INIT("data"), STR_INIT("blob"), STR_INIT("raw")};
    bay_str text;
    bool is_one = false;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        is_one = is_one || str_eq(key, keys[i]);
    }
    return is_one && json_str_plain(value, &text) && text.len >= FILE_LEAST &&
           !str_starts(pointer, STR("/structuredContent")) && /* a model reads it as it is */
           is_base64(text) && begins_like_a_file(text);
}

static size_t bytes_of(json_val value, bay_str pointer, unsigned depth)
{
    if (json_is(value, JSON_STRING)) {
        return json_raw(value).len - 2;
    }
    json_iter iter = json_iter_of(value);
    bool is_object = json_is(value, JSON_OBJECT);
    size_t bytes = 0;
    while (depth < SCAN_DEPTH && json_next(&iter)) {
        bay_str key = {"", 0};
        bool is_plain = !is_object || json_str_plain(iter.key, &key);
        bool is_structured = depth == 0 && str_eq(key, STR("structuredContent"));
        if (is_object && scan_content_is_file(pointer, key, iter.value)) {
            continue;
        }
        bytes += is_object && (!is_plain || key.len > SCAN_LONG_KEY_BYTES)
                     ? json_raw(iter.key).len - 2
                     : 0;
        bytes +=
            bytes_of(iter.value, is_structured ? STR("/structuredContent") : pointer, depth + 1);
    }
    return bytes;
}

size_t scan_content_bytes(json_val content)
{
    return bytes_of(content, STR(""), 0);
}
