/* Base64, strictly. */
#include "wire/base64.h"

#include "base/str.h"
#include "wire/chars.h"

static bool is_url(base64_form form)
{
    return form == BASE64_URL || form == BASE64_URL_PADDED || form == BASE64_URL_LOOSE;
}

static bool is_padded(base64_form form)
{
    return form == BASE64_STANDARD || form == BASE64_STANDARD_LOOSE || form == BASE64_URL_PADDED;
}

size_t base64_encoded_len(size_t bytes, base64_form form)
{
    size_t rest = bytes % 3;
    size_t tail = rest == 0 ? 0 : is_padded(form) ? 4 : rest + 1;
    return bytes / 3 * 4 + tail;
}

void base64_encode(buf *out, bay_str bytes, base64_form form)
{
    static const char alphabets[2][65] = {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
    };
    const char *alphabet = alphabets[is_url(form)];
    size_t len = base64_encoded_len(bytes.len, form);
    if (len == 0 || !buf_reserve(out, len)) {
        return;
    }
    char *to = out->at + out->len;
    for (size_t i = 0, left = len; left > 0; i += 3) {
        uint32_t group = 0;
        for (size_t j = 0; j < 3; j++) {
            group = group << 8 | (i + j < bytes.len ? (unsigned char)bytes.at[i + j] : 0U);
        }
        for (size_t j = 0; j < 4 && left > 0; j++, left--) {
            bool is_pad = i + j > bytes.len;
            *to++ = is_pad ? '=' : alphabet[group >> (18 - 6 * j) & 63];
        }
    }
    out->len += len;
}

int base64_digit(char c, bool url)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    if (c == (url ? '-' : '+')) {
        return 62;
    }
    return c == (url ? '_' : '/') ? 63 : -1;
}

/* Removes the padding; false: too much, too little, or not allowed in this form. */
static bool cut_padding(bay_str *text, base64_form form)
{
    size_t pads = 0;
    while (pads < 2 && pads < text->len && text->at[text->len - 1 - pads] == '=') {
        pads++;
    }
    bool is_loose = form == BASE64_STANDARD_LOOSE || form == BASE64_URL_LOOSE;
    bool must_pad = is_padded(form) && !is_loose;
    bool is_whole = text->len % 4 == 0;
    if (pads > 0 ? (!is_whole || (!must_pad && !is_loose)) : (must_pad && !is_whole)) {
        return false;
    }
    text->len -= pads;
    return text->len % 4 != 1;
}

bay_err base64_decode(buf *out, bay_str text, base64_form form)
{
    if (!cut_padding(&text, form)) {
        return BAY_ERR_SYNTAX;
    }
    if (!buf_reserve(out, text.len / 4 * 3 + text.len % 4 * 3 / 4)) {
        return out->err;
    }
    size_t start = out->len;
    uint32_t bits = 0;
    unsigned count = 0;
    for (size_t i = 0; i < text.len; i++) {
        int digit = base64_digit(text.at[i], is_url(form));
        if (digit < 0) {
            out->len = start;
            return BAY_ERR_SYNTAX;
        }
        bits = bits << 6 | (uint32_t)digit;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out->at[out->len++] = (char)(bits >> count & 255);
        }
    }
    if ((bits & ((1U << count) - 1)) != 0) {
        out->len = start;
        return BAY_ERR_SYNTAX; /* RFC 4648 section 3.5: two texts would encode the same bytes */
    }
    return BAY_OK;
}
