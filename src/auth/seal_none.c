/* The place of seal.c in a library that is built without OpenSSL: there is no ring, so nothing is
 * sealed and nothing that claims to be sealed is believed. */
#include "auth/seal.h"

bay_err seal_ring_new(seal_ring **out)
{
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

void seal_ring_free(seal_ring *self)
{
    (void)self; /* NULL: there is none */
}

bay_err seal_ring_add(seal_ring *self, bay_str key)
{
    (void)self;
    (void)key;
    return BAY_ERR_UNSUPPORTED;
}

bay_err seal_ring_generate(seal_ring *self)
{
    (void)self;
    return BAY_ERR_UNSUPPORTED;
}

bay_err seal_value(const seal_ring *self, bay_str plain, bay_str associated, uint64_t expires_at_ms,
                   buf *out)
{
    (void)self;
    (void)plain;
    (void)associated;
    (void)expires_at_ms;
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

bay_err seal_open(const seal_ring *self, bay_str text, bay_str associated, uint64_t now_ms,
                  buf *out)
{
    (void)self;
    (void)text;
    (void)associated;
    (void)now_ms;
    (void)out;
    return BAY_ERR_DENIED;
}

size_t seal_ring_count(const seal_ring *self)
{
    (void)self;
    return 0;
}

bay_err seal_ring_derive(const seal_ring *self, seal_purpose purpose, seal_ring **out)
{
    (void)self;
    (void)purpose;
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

bay_err seal_digest(const seal_ring *self, size_t nth, seal_purpose purpose, bay_str text,
                    unsigned char out[SEAL_DIGEST_BYTES])
{
    (void)self;
    (void)nth;
    (void)purpose;
    (void)text;
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}
