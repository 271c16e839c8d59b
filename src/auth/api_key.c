#include "auth/api_key.h"

#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "wire/base64.h"
#include "json/writer.h"

enum { ID_RANDOM_BYTES = 8, SECRET_BYTES = 32 };

static const bay_str prefix = STR_INIT("pbk_");

bool api_key_id(bay_str text, bay_str *out_id)
{
    bay_str rest = str_from(text, prefix.len);
    size_t end = str_find(rest, '_');
    if (!str_starts(text, prefix) || end == 0 || end == rest.len || end > API_KEY_ID_BYTES) {
        return false;
    }
    *out_id = str_head(rest, end);
    return true;
}

bay_err api_key_make(api_key *row, char out[API_KEY_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char id[ID_RANDOM_BYTES];
    unsigned char secret[SECRET_BYTES];
    buf text = {.at = out, .cap = API_KEY_BYTES, .max = API_KEY_BYTES};
    rand_bytes(id, sizeof(id));
    rand_bytes(secret, sizeof(secret));
    buf_str(&text, prefix);
    for (size_t i = 0; i < sizeof(id); i++) {
        buf_char(&text, digits[id[i] >> 4]);
        buf_char(&text, digits[id[i] & 15]);
    }
    buf_char(&text, '_');
    base64_encode(&text, (bay_str){(const char *)secret, sizeof(secret)}, BASE64_URL);
    mem_wipe(secret, sizeof(secret));
    bay_err err = text.err == BAY_OK ? digest_bytes(buf_view(&text), row->digest) : text.err;
    buf_char(&text, '\0');
    err = err == BAY_OK ? text.err : err;
    if (err != BAY_OK) {
        mem_wipe(out, API_KEY_BYTES);
    }
    return err;
}

void api_key_row_write(const api_key *self, buf *out)
{
    char bytes[64];
    buf digest = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    json_writer writer;
    base64_encode(&digest, (bay_str){(const char *)self->digest, DIGEST_BYTES}, BASE64_URL);
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "name");
    json_put_str(&writer, self->name);
    json_key_lit(&writer, "scopes");
    json_put_str(&writer, self->scopes);
    json_key_lit(&writer, "madeAt");
    json_put_uint(&writer, self->made_at_ms);
    json_key_lit(&writer, "expiresAt");
    json_put_uint(&writer, self->expires_at_ms);
    json_key_lit(&writer, "digest");
    json_put_str(&writer, buf_view(&digest));
    json_close_object(&writer);
}

static bay_err read_digest(json_val from, arena *memory, unsigned char out[DIGEST_BYTES])
{
    bay_str text;
    char bytes[DIGEST_BYTES] = {0};
    buf digest = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    bay_err err = json_str(from, memory, &text);
    if (err == BAY_OK) {
        err = base64_decode(&digest, text, BASE64_URL);
    }
    if (err != BAY_OK || digest.len != DIGEST_BYTES) {
        return err == BAY_ERR_NOMEM ? err : BAY_ERR_SYNTAX;
    }
    memcpy(out, bytes, DIGEST_BYTES);
    return BAY_OK;
}

bay_err api_key_row_read(bay_str row, arena *memory, api_key *out)
{
    json_doc document;
    api_key key = {.expires_at_ms = 0};
    bay_err err = row.len <= API_KEY_ROW_BYTES ? json_parse(&document, row, NULL, memory, NULL)
                                               : BAY_ERR_SYNTAX;
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? err : BAY_ERR_SYNTAX;
    }
    json_val root = json_root(&document);
    err = json_str(json_get(root, STR("name")), memory, &key.name);
    err = err == BAY_OK ? json_str(json_get(root, STR("scopes")), memory, &key.scopes) : err;
    err = err == BAY_OK ? json_uint64(json_get(root, STR("madeAt")), &key.made_at_ms) : err;
    err = err == BAY_OK ? json_uint64(json_get(root, STR("expiresAt")), &key.expires_at_ms) : err;
    err = err == BAY_OK ? read_digest(json_get(root, STR("digest")), memory, key.digest) : err;
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? err : BAY_ERR_SYNTAX;
    }
    *out = key;
    return BAY_OK;
}
