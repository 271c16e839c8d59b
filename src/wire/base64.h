/* Strict base64: each run of bytes has one text; nothing is skipped. */
#ifndef WIRE_BASE64_H
#define WIRE_BASE64_H

#include "base/buf.h"
#include "patchbay/types.h"

typedef enum base64_form {
    BASE64_STANDARD,       /* '+' and '/', padded */
    BASE64_URL,            /* '-' and '_', without padding */
    BASE64_URL_PADDED,     /* '-' and '_', padded */
    BASE64_STANDARD_LOOSE, /* '+' and '/'; decoding accepts it with or without padding */
    BASE64_URL_LOOSE,      /* '-' and '_'; decoding accepts it with or without padding */
} base64_form;

/* The length of the text (loose forms: standard padded, URL unpadded); `bytes` at most SIZE_MAX /
 * 2. */
size_t base64_encoded_len(size_t bytes, base64_form form);

/* The value of one character, 0 to 63; -1: not a digit. `url`: '-' and '_' are the last two,
 * otherwise '+' and '/'. */
int base64_digit(char c, bool url);

/* Appends the text. Errors stick in `out`. Source: RFC 4648 sections 4 and 5. */
void base64_encode(buf *out, bay_str bytes, base64_form form);

/* Appends the bytes. Incomplete padding, unused bits that are not zero, and any other character are
 * errors. Errors: BAY_ERR_SYNTAX; BAY_ERR_NOMEM, BAY_ERR_LIMIT from `out`; `out` is then as long as
 * before. Threads: any. Source: RFC 4648 sections 3, 4 and 5. */
bay_err base64_decode(buf *out, bay_str text, base64_form form) BAY_MUST_CHECK;

#endif
