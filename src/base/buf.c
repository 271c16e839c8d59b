#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void buf_init(buf *self, size_t max_bytes)
{
    *self = (buf){.max = max_bytes};
}

void buf_init_secret(buf *self, size_t max_bytes)
{
    *self = (buf){.max = max_bytes, .is_secret = true};
}

static void release(buf *self)
{
    if (self->is_secret && self->at != NULL) {
        mem_wipe(self->at, self->cap);
    }
    mem_free(self->at);
}

/* NULL: out of memory; nothing has changed. */
static char *resize(buf *self, size_t cap)
{
    if (!self->is_secret) {
        return mem_resize(self->at, cap);
    }
    char *at = mem_alloc(cap);
    if (at != NULL && self->len > 0) {
        memcpy(at, self->at, self->len);
    }
    if (at != NULL) {
        release(self);
    }
    return at;
}

void buf_fini(buf *self)
{
    if (self->at != NULL) {
        release(self);
    }
    *self = (buf){.max = self->max, .is_secret = self->is_secret};
}

void buf_clear(buf *self)
{
    self->len = 0;
    self->err = BAY_OK;
}

bool buf_reserve(buf *self, size_t bytes)
{
    if (self->err != BAY_OK) {
        return false;
    }
    if (bytes <= self->cap - self->len) {
        return true;
    }
    if (bytes > self->max || self->len > self->max - bytes) {
        self->err = BAY_ERR_LIMIT;
        return false;
    }
    size_t needed = self->len + bytes;
    size_t cap = self->cap < 64 ? 64 : self->cap;
    while (cap < needed) {
        cap = cap > SIZE_MAX / 2 ? needed : cap * 2;
    }
    if (cap > self->max) {
        cap = self->max;
    }
    char *at = resize(self, cap);
    if (at == NULL) {
        self->err = BAY_ERR_NOMEM;
        return false;
    }
    self->at = at;
    self->cap = cap;
    return true;
}

void buf_uint(buf *self, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);
    for (; number >= 100; number /= 100) { /* two digits at a time: the division costs most */
        at -= 2;
        digits[at] = (char)('0' + number % 100 / 10);
        digits[at + 1] = (char)('0' + number % 10);
    }
    if (number >= 10) {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    }
    digits[--at] = (char)('0' + number);
    buf_append(self, digits + at, sizeof(digits) - at);
}

void buf_int(buf *self, int64_t number)
{
    if (number < 0) {
        buf_char(self, '-');
        buf_uint(self, (uint64_t)0 - (uint64_t)number);
        return;
    }
    buf_uint(self, (uint64_t)number);
}

void buf_vprintf(buf *self, const char *format, va_list arguments)
{
    char text[256];
    va_list again;
    format = format != NULL ? format : "";
    va_copy(again, arguments);
    int len = vsnprintf(text, sizeof(text), format, arguments);
    if (len >= 0 && (size_t)len < sizeof(text)) {
        buf_append(self, text, (size_t)len);
    } else if (len >= 0 && buf_reserve(self, (size_t)len)) {
        /* The NUL that it writes does not fit if the text fills the buffer to its maximum. */
        char *whole = mem_alloc((size_t)len + 1);
        if (whole == NULL) {
            self->err = BAY_ERR_NOMEM;
        } else {
            vsnprintf(whole, (size_t)len + 1, format, again);
            buf_append(self, whole, (size_t)len);
            mem_free(whole);
        }
    }
    va_end(again);
}

void buf_printf(buf *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    buf_vprintf(self, format, arguments);
    va_end(arguments);
}

void buf_consume(buf *self, size_t len)
{
    if (len >= self->len) {
        self->len = 0;
        return;
    }
    if (len == 0) {
        return;
    }
    memmove(self->at, self->at + len, self->len - len);
    self->len -= len;
}

char *buf_take(buf *self, size_t *out_len)
{
    char *at = self->at;
    *out_len = self->len;
    *self = (buf){.max = self->max, .is_secret = self->is_secret};
    return at;
}
