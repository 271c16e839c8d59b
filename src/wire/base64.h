/* Base64, strictly: one text for each run of bytes, nothing skipped, nothing guessed. */
#ifndef WIRE_BASE64_H
#define WIRE_BASE64_H

#include "base/buf.h"
#include "patchbay/types.h"

typedef enum base64_form {
    BASE64_STANDARD,       /* '+' and '/', padded */
    BASE64_URL,            /* '-' and '_', without padding */
    BASE64_URL_PADDED,     /* '-' and '_', padded */
    BASE64_STANDARD_LOOSE, /* '+' and '/'; decoding takes it with or without padding */
    BASE64_URL_LOOSE,      /* '-' and '_'; decoding takes it with or without padding */
} base64_form;

/* The length of the text (the loose forms: standard padded, URL bare); `bytes` at most SIZE_MAX
 * / 2. */
size_t base64_encoded_len(size_t bytes, base64_form form);

/* What one character stands for, 0 to 63; -1: it stands for nothing. `url`: '-' and '_' are the
 * last two, else '+' and '/'. */
int base64_digit(char c, bool url);

/* Appends the text. Errors stick in `out`. Source: RFC 4648 sections 4 and 5. */
void base64_encode(buf *out, bay_str bytes, base64_form form);

/* Appends the bytes. Half padding, unused bits that are not zero, and any other character are
 * errors. Owns: nothing. Errors: BAY_ERR_SYNTAX; BAY_ERR_NOMEM, BAY_ERR_LIMIT from `out`; `out` is
 * then as long as before. Threads: any. Source: RFC 4648 sections 3, 4 and 5. */
bay_err base64_decode(buf *out, bay_str text, base64_form form) BAY_MUST_CHECK;

#endif
