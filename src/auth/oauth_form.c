#include "auth/oauth_form.h"

#include "base/str.h"
#include "wire/chars.h"

/* ---- writing --------------------------------------------------------------------------------- */

void oauth_form_encode(buf *out, bay_str text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (char_is((char)c, CHAR_UNRESERVED) && c != '~') {
            buf_char(out, (char)c);
        } else if (c == ' ') {
            buf_char(out, '+');
        } else {
            char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
            buf_append(out, escape, sizeof(escape));
        }
    }
}

void oauth_form_put(buf *out, size_t start, bay_str name, bay_str value)
{
    if (out->len > start) {
        buf_char(out, '&');
    }
    oauth_form_encode(out, name);
    buf_char(out, '=');
    oauth_form_encode(out, value);
}

void oauth_form_put_some(buf *out, size_t start, bay_str name, bay_str value)
{
    if (value.len > 0) {
        oauth_form_put(out, start, name, value);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static bay_err form_decode(bay_str text, arena *memory, bay_str *out)
{
    char *at = arena_alloc(memory, text.len + 1);
    if (at == NULL) {
        return BAY_ERR_NOMEM;
    }
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            int high = text.len - i > 2 ? char_hex(text.at[i + 1]) : -1;
            int low = text.len - i > 2 ? char_hex(text.at[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return BAY_ERR_SYNTAX;
            }
            c = (char)(high << 4 | low);
            i += 2;
        }
        if ((unsigned char)c < 0x20 || c == 0x7f) {
            return BAY_ERR_SYNTAX; /* no parameter of OAuth has a control character */
        }
        at[len++] = c;
    }
    at[len] = '\0';
    *out = (bay_str){at, len};
    return BAY_OK;
}

bay_err oauth_form_read(bay_str text, arena *memory, oauth_form *out)
{
    out->count = 0;
    if (text.len > OAUTH_FORM_BYTES) {
        return BAY_ERR_LIMIT;
    }
    while (text.len > 0) {
        size_t end = str_find(text, '&');
        bay_str part = str_head(text, end);
        text = str_from(text, end + 1);
        if (part.len == 0) {
            continue;
        }
        if (out->count == OAUTH_FORM_FIELDS) {
            return BAY_ERR_LIMIT;
        }
        size_t equals = str_find(part, '=');
        oauth_form_field *field = &out->fields[out->count];
        bay_err err = form_decode(str_head(part, equals), memory, &field->name);
        if (err == BAY_OK) {
            err = form_decode(str_from(part, equals + 1), memory, &field->value);
        }
        if (err != BAY_OK) {
            return err;
        }
        if (oauth_form_get(out, field->name).at != NULL) {
            return BAY_ERR_DUPLICATE;
        }
        out->count++;
    }
    return BAY_OK;
}

bay_str oauth_form_get(const oauth_form *self, bay_str name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (str_eq(self->fields[i].name, name)) {
            return self->fields[i].value;
        }
    }
    return (bay_str){NULL, 0};
}
