#include "auth/vault.h"

#include "base/str.h"

/* With its length, so that no two rows are the same bytes. */
static void put_text(buf *out, bay_str text)
{
    buf_uint(out, text.len);
    buf_char(out, ':');
    buf_str(out, text);
}

static bool take_text(bay_str *rest, bay_str *out)
{
    uint64_t len;
    size_t colon = str_find(*rest, ':');
    if (colon == rest->len || !str_uint(str_head(*rest, colon), &len)) {
        return false;
    }
    bay_str from = str_from(*rest, colon + 1);
    if (len > from.len) {
        return false;
    }
    *out = str_head(from, (size_t)len);
    *rest = str_from(from, (size_t)len);
    return true;
}

bay_err vault_keys_new(const seal_ring *ring, seal_ring **out)
{
    return seal_ring_derive(ring, SEAL_VAULT, out);
}

bay_err vault_name(const seal_ring *keys, size_t nth, bay_str identity, bay_str server,
                   char out[VAULT_NAME_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[SEAL_DIGEST_BYTES];
    buf text;
    buf_init(&text, PRINCIPAL_IDENTITY_BYTES + VAULT_SERVER_BYTES + 64);
    put_text(&text, server);
    put_text(&text, identity);
    bay_err err = text.err;
    if (err == BAY_OK) {
        err = seal_digest(keys, nth, SEAL_VAULT, buf_view(&text), digest);
    }
    buf_fini(&text);
    for (size_t i = 0; err == BAY_OK && i < sizeof(digest); i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    return err;
}

bay_err vault_seal(const seal_ring *keys, bay_str name, const vault_row *row, buf *out)
{
    buf plain;
    buf_init_secret(&plain, VAULT_PLAIN_BYTES);
    put_text(&plain, row->identity);
    put_text(&plain, row->server);
    put_text(&plain, row->record);
    bay_err err = plain.err;
    if (err == BAY_OK) {
        err = seal_value(keys, buf_view(&plain), name, 0, out);
    }
    buf_fini(&plain);
    return err;
}

bay_err vault_open(const seal_ring *keys, bay_str name, bay_str value, buf *plain, vault_row *out)
{
    buf_clear(plain);
    bay_err err = seal_open(keys, value, name, 0, plain);
    bay_str rest = buf_view(plain);
    if (err == BAY_OK && !(take_text(&rest, &out->identity) && take_text(&rest, &out->server) &&
                           take_text(&rest, &out->record) && rest.len == 0)) {
        err = BAY_ERR_DENIED;
    }
    return err;
}
