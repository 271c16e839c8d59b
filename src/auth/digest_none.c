/* The place of digest.c in a library that is built without OpenSSL: nothing can be verified, so
 * whatever needs a digest is refused. */
#include "auth/digest.h"

bay_err digest_sha256(bay_str bytes, char out[DIGEST_TEXT_BYTES + 1])
{
    (void)bytes;
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

bay_err digest_bytes(bay_str bytes, unsigned char out[DIGEST_BYTES])
{
    (void)bytes;
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

bay_err digest_stream_new(digest_stream **out)
{
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

void digest_stream_add(digest_stream *self, bay_str bytes)
{
    (void)self;
    (void)bytes;
}

bay_err digest_stream_end(digest_stream *self, char out[DIGEST_TEXT_BYTES + 1])
{
    (void)self;
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}
