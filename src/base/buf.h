/* A growable run of bytes with a maximum. Errors stick: after a failure appends do nothing and
 * `err` holds the first error, so a writer checks once at its end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>

#include "base/str.h"
#include "patchbay/types.h"

typedef struct buf {
    char *at;
    size_t len;
    size_t cap;
    size_t max;
    bay_err err; /* BAY_OK, BAY_ERR_NOMEM or BAY_ERR_LIMIT */
    bool is_secret;
} buf;

void buf_init(buf *self, size_t max_bytes);
/* Like buf_init, for secrets: memory that the buffer grows out of or frees is wiped. */
void buf_init_secret(buf *self, size_t max_bytes);
void buf_fini(buf *self);

/* Empties the buffer and clears an error; keeps the memory. */
void buf_clear(buf *self);

/* Room for `bytes` more; false (and `err` set) when there is none. */
bool buf_reserve(buf *self, size_t bytes);

/* Inline: writing JSON consists mostly of this. */
static inline void buf_append(buf *self, const void *at, size_t len)
{
    if (len == 0 ||
        ((self->err != BAY_OK || len > self->cap - self->len) && !buf_reserve(self, len))) {
        return;
    }
    memcpy(self->at + self->len, at, len);
    self->len += len;
}

static inline void buf_str(buf *self, bay_str text)
{
    buf_append(self, text.at, text.len);
}

static inline void buf_char(buf *self, char c)
{
    buf_append(self, &c, 1);
}

void buf_int(buf *self, int64_t number);
void buf_uint(buf *self, uint64_t number);
void buf_printf(buf *self, const char *format, ...) BAY_PRINTF(2, 3);
void buf_vprintf(buf *self, const char *format, va_list arguments) BAY_PRINTF(2, 0);
#define buf_lit(self, literal) buf_append((self), "" literal "", sizeof(literal) - 1)

/* Drops `len` bytes from the front. */
void buf_consume(buf *self, size_t len);

/* The bytes so far; valid until the next change. */
static inline bay_str buf_view(const buf *self)
{
    return (bay_str){self->at, self->len};
}

/* Passes the memory to the caller (mem_free; wipe it first if it is a secret) and empties the
 * buffer. */
char *buf_take(buf *self, size_t *out_len);

#endif
