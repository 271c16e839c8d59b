/* Cards between implementations, for cards.mjs:
 *   card_tool sign KEY ID < card        the signed card (KEY: a PEM or JWK file)
 *   card_tool keys KEY ID               its public half as a key set
 *   card_tool verify KEYS < card        exit 0: good under a key of the set; 1: not
 *   card_tool canon < value             its canonical form */
#include <stdio.h>
#include <string.h>

#include "auth/card_signature.h"
#include "base/str.h"
#include "json/canon.h"

enum { BYTES = 8 << 20 };

static bool read_all(FILE *from, buf *out)
{
    char bytes[65536];
    size_t got;
    while (from != NULL && (got = fread(bytes, 1, sizeof(bytes), from)) > 0) {
        buf_append(out, bytes, got);
    }
    return from != NULL && out->err == BAY_OK;
}

static bool read_file(const char *name, buf *out)
{
    FILE *from = fopen(name, "r");
    bool is_read = read_all(from, out);
    if (from != NULL) {
        fclose(from);
    }
    return is_read;
}

static bay_err with_key(const char *what, bay_str key_text, bay_str id, json_val card, buf *out,
                        bay_diag *diag)
{
    jose_key *key = NULL;
    bay_err err = jose_key_new(key_text, id, &key, diag);
    if (err == BAY_OK) {
        err = strcmp(what, "keys") == 0 ? jose_key_public(key, out)
                                        : card_sign(card, key, STR(""), out, diag);
    }
    jose_key_free(key);
    return err;
}

static bay_err verify(bay_str keys_text, json_val card, bay_diag *diag)
{
    jose_keys *keys = NULL;
    bay_err err = jose_keys_new(keys_text, &keys, diag);
    if (err == BAY_OK) {
        err = card_verify(card, keys, diag);
    }
    jose_keys_free(keys);
    return err;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    bool is_value_needed = strcmp(what, "keys") != 0;
    arena memory;
    buf text;
    buf file;
    buf out;
    json_doc doc;
    bay_diag diag = {.text = ""};
    json_val value = JSON_NONE;
    bay_err err = BAY_OK;
    arena_init(&memory, (size_t)64 << 20);
    buf_init(&text, BYTES);
    buf_init(&file, BYTES);
    buf_init(&out, BYTES);
    if (is_value_needed) {
        err = read_all(stdin, &text) ? json_parse(&doc, buf_view(&text), NULL, &memory, &diag)
                                     : BAY_ERR_IO;
        value = err == BAY_OK ? json_root(&doc) : JSON_NONE;
    }
    if (err == BAY_OK && argc > 2 && !read_file(argv[2], &file)) {
        err = BAY_ERR_IO;
    }
    if (err == BAY_OK && argc > 3) {
        err = with_key(what, buf_view(&file), str_of(argv[3]), value, &out, &diag);
    } else if (err == BAY_OK && argc > 2) {
        err = verify(buf_view(&file), value, &diag);
    } else if (err == BAY_OK) {
        err = json_canon(&out, value, &memory, &diag);
    }
    if (err == BAY_OK) {
        fwrite(out.at != NULL ? out.at : "", 1, out.len, stdout);
    } else {
        fprintf(stderr, "card_tool: %s: %s\n", bay_err_text(err), diag.text);
    }
    buf_fini(&out);
    buf_fini(&file);
    buf_fini(&text);
    arena_fini(&memory);
    return err == BAY_OK ? 0 : 1;
}
