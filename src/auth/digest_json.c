/* The digest of a JSON value. */
#include "auth/digest.h"
#include "base/buf.h"
#include "json/canon.h"

bay_err digest_json(json_val value, char out[DIGEST_TEXT_BYTES + 1])
{
    buf text;
    arena memory;
    if (json_count(value) == 0) {
        return digest_sha256(STR("{}"), out);
    }
    buf_init(&text, DIGEST_CANON_BYTES);
    arena_init(&memory, SIZE_MAX / 2);
    bay_err err = json_canon(&text, value, &memory, NULL);
    arena_fini(&memory);
    if (err != BAY_ERR_NOMEM) {
        err = digest_sha256(err == BAY_OK ? buf_view(&text) : json_raw(value), out);
    }
    buf_fini(&text);
    return err;
}
