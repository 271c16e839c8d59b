#include "auth/principal_key.h"

#include "base/str.h"

void principal_key_digits(bay_str bytes, buf *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char byte = (unsigned char)bytes.at[i];
        buf_char(out, digits[byte >> 4]);
        buf_char(out, digits[byte & 15]);
    }
}

size_t principal_key_count(const seal_ring *ring)
{
    size_t count = seal_ring_count(ring);
    return count > 0 ? count : 1;
}

bay_err principal_key(const auth_principal *self, const seal_ring *ring, size_t nth, buf *out)
{
    bay_str identity = principal_identity(self);
    if (identity.len == 0) {
        return BAY_OK;
    }
    if (seal_ring_count(ring) == 0) {
        principal_key_digits(identity, out);
        return out->err;
    }
    unsigned char digest[SEAL_DIGEST_BYTES];
    bay_err err = seal_digest(ring, nth, SEAL_PRINCIPAL, identity, digest);
    if (err != BAY_OK) {
        return err;
    }
    principal_key_digits((bay_str){(const char *)digest, sizeof(digest)}, out);
    return out->err;
}

bay_err principal_has_key(const auth_principal *self, const seal_ring *ring, bay_str key, bool *out)
{
    buf own;
    bool is_found = false;
    bay_err err = BAY_OK;
    buf_init(&own, PRINCIPAL_KEY_BYTES);
    for (size_t i = 0; err == BAY_OK && !is_found && i < principal_key_count(ring); i++) {
        buf_clear(&own);
        err = principal_key(self, ring, i, &own);
        is_found = err == BAY_OK && str_eq_secret(buf_view(&own), key);
    }
    buf_fini(&own);
    if (err == BAY_OK) {
        *out = is_found;
    }
    return err;
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum { BOUND_BYTES = 8 << 10 };

static bay_err write_bound(bay_str row, buf *out)
{
    buf_lit(out, "principal of row");
    buf_char(out, '\0');
    buf_str(out, row);
    return out->err;
}

bay_err principal_row_write(bay_str identity, const seal_ring *ring, bay_str row, buf *out)
{
    buf bound;
    if (identity.len == 0 || seal_ring_count(ring) == 0 ||
        str_eq(identity, STR(PRINCIPAL_ROW_OF_NOBODY))) {
        buf_str(out, identity);
        return out->err;
    }
    buf_init(&bound, BOUND_BYTES);
    bay_err err = write_bound(row, &bound);
    err = err == BAY_OK ? seal_value(ring, identity, buf_view(&bound), 0, out) : err;
    buf_fini(&bound);
    return err;
}

bay_err principal_row_read(bay_str text, const seal_ring *ring, bay_str row, buf *out)
{
    buf bound;
    /* every identity has a colon, no sealed text has one */
    if (text.len == 0 || str_find(text, ':') < text.len) {
        buf_str(out, text);
        return out->err;
    }
    buf_init(&bound, BOUND_BYTES);
    bay_err err = write_bound(row, &bound);
    if (err == BAY_OK) {
        err = seal_ring_count(ring) > 0 ? seal_open(ring, text, buf_view(&bound), 0, out)
                                        : BAY_ERR_DENIED;
    }
    buf_fini(&bound);
    if (err == BAY_ERR_DENIED) {
        buf_lit(out, PRINCIPAL_ROW_OF_NOBODY);
        err = out->err;
    }
    return err;
}
