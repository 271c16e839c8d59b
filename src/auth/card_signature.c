/* Two payloads of one card, by the two rules; every signature is tried with both. */
#include "auth/card_signature.h"

#include "base/err.h"
#include "wire/base64.h"
#include "json/build.h"
#include "json/canon.h"

enum { SCRATCH_BYTES = 16 << 20, HEADER_BYTES = 32 << 10 };

static const bay_str signatures_key = STR_INIT("signatures");

/* --- payloads --------------------------------------------------------------------------------- */

/* Is there nothing in it, however deep? At most CARD_DEPTH levels. */
static bool is_empty(json_val value)
{
    switch (json_kind_of(value)) {
    case JSON_MISSING:
    case JSON_NULL:
        return true;
    case JSON_STRING:
        return json_raw(value).len == 2;
    case JSON_ARRAY:
    case JSON_OBJECT:
        for (json_iter it = json_iter_of(value); json_next(&it);) {
            if (!is_empty(it.value)) {
                return false;
            }
        }
        return true;
    default:
        return false;
    }
}

/* A container without what is empty, or the value. */
static void put_filled(json_writer *out, json_val value)
{
    bool is_object = json_is(value, JSON_OBJECT);
    if (!is_object && !json_is(value, JSON_ARRAY)) {
        json_put_val(out, value);
        return;
    }
    (is_object ? json_open_object : json_open_array)(out);
    for (json_iter it = json_iter_of(value); json_next(&it);) {
        if (is_empty(it.value)) {
            continue;
        }
        if (is_object) {
            json_key_val(out, it.key);
        }
        put_filled(out, it.value);
    }
    (is_object ? json_close_object : json_close_array)(out);
}

static void put_bare(json_writer *out, json_val card)
{
    json_open_object(out);
    json_put_members(out, card, &signatures_key, 1);
    json_close_object(out);
}

/* What signatures are over, in canonical form. */
typedef struct payloads {
    buf literal; /* the card without its signatures */
    buf filled;  /* … and without what is empty; empty: the same */
} payloads;

static void payloads_fini(payloads *self)
{
    buf_fini(&self->filled);
    buf_fini(&self->literal);
}

static bay_err write_payloads(payloads *self, json_val card, json_builder *bare,
                              json_builder *filled, bay_diag *diag)
{
    arena memory;
    json_val literal;
    json_val without;
    put_bare(json_builder_init(bare, NULL, CARD_SIGNED_BYTES), card);
    bay_err err = json_builder_view(bare, &literal);
    if (err != BAY_OK) {
        return diag_set(diag, err, "the card is too large to be signed");
    }
    if (json_is_deeper(literal, CARD_DEPTH)) {
        return diag_set(diag, BAY_ERR_DEPTH, "the card nests deeper than %d levels", CARD_DEPTH);
    }
    put_filled(json_builder_init(filled, NULL, CARD_SIGNED_BYTES), literal);
    arena_init(&memory, SCRATCH_BYTES);
    err = json_canon(&self->literal, literal, &memory, diag);
    if (err == BAY_OK) {
        err = json_builder_view(filled, &without);
    }
    if (err == BAY_OK) {
        err = json_canon(&self->filled, without, &memory, diag);
    }
    if (err == BAY_OK && str_eq(buf_view(&self->filled), buf_view(&self->literal))) {
        buf_clear(&self->filled);
    }
    arena_fini(&memory);
    return err;
}

static bay_err payloads_init(payloads *self, json_val card, bay_diag *diag)
{
    json_builder bare = {0};
    json_builder filled = {0};
    buf_init(&self->literal, CARD_SIGNED_BYTES);
    buf_init(&self->filled, CARD_SIGNED_BYTES);
    if (!json_is(card, JSON_OBJECT)) {
        return diag_set(diag, BAY_ERR_TYPE, "an agent's card is an object");
    }
    bay_err err = write_payloads(self, card, &bare, &filled, diag);
    json_builder_drop(&filled);
    json_builder_drop(&bare);
    return err;
}

/* --- signing ---------------------------------------------------------------------------------- */

static void put_signature(json_writer *writer, bay_str header, bay_str signature)
{
    json_open_object(writer);
    json_key_lit(writer, "protected");
    json_put_str(writer, header);
    json_key_lit(writer, "signature");
    json_put_str(writer, signature);
    json_close_object(writer);
}

static bay_err sign_payload(json_writer *writer, bay_str payload, const jose_key *key, bay_str jku)
{
    buf header;
    buf signature;
    buf_init(&header, HEADER_BYTES);
    buf_init(&signature, HEADER_BYTES);
    bay_err err = jose_sign(key, payload, STR("JOSE"), jku, &header, &signature);
    if (err == BAY_OK) {
        put_signature(writer, buf_view(&header), buf_view(&signature));
        err = writer->out->err;
    }
    buf_fini(&signature);
    buf_fini(&header);
    return err;
}

static bay_err write_signed(json_val card, const payloads *made, const jose_key *key, bay_str jku,
                            buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_put_members(&writer, card, &signatures_key, 1);
    json_key_lit(&writer, "signatures");
    json_open_array(&writer);
    for (json_iter it = json_iter_of(json_get(card, signatures_key)); json_next(&it);) {
        json_put_val(&writer, it.value);
    }
    bay_err err = sign_payload(&writer, buf_view(&made->literal), key, jku);
    if (err == BAY_OK && made->filled.len > 0) {
        err = sign_payload(&writer, buf_view(&made->filled), key, jku);
    }
    json_close_array(&writer);
    json_close_object(&writer);
    return err != BAY_OK ? err : out->err;
}

bay_err card_sign(json_val card, const jose_key *key, bay_str jku, buf *out, bay_diag *diag)
{
    json_val old = json_get(card, signatures_key);
    if (!json_is(old, JSON_MISSING) && !json_is(old, JSON_ARRAY)) {
        return diag_set(diag, BAY_ERR_TYPE, "the signatures of a card are a list");
    }
    if (json_count(old) + 2 > CARD_SIGNATURES) {
        return diag_set(diag, BAY_ERR_LIMIT, "a card of more than %d signatures", CARD_SIGNATURES);
    }
    size_t before = out->len;
    payloads made;
    bay_err err = payloads_init(&made, card, diag);
    if (err == BAY_OK) {
        err = write_signed(card, &made, key, jku, out);
    }
    payloads_fini(&made);
    if (err != BAY_OK && out->len > before) {
        out->len = before;
    }
    return err;
}

/* --- verifying -------------------------------------------------------------------------------- */

static bay_err verify_one(json_val entry, const payloads *made, const jose_keys *keys)
{
    bay_str header;
    bay_str signature;
    if (!json_str_plain(json_get(entry, STR("protected")), &header) ||
        !json_str_plain(json_get(entry, STR("signature")), &signature)) {
        return BAY_ERR_DENIED;
    }
    bay_err err = jose_verify(keys, header, buf_view(&made->literal), signature);
    if (err == BAY_ERR_DENIED && made->filled.len > 0) {
        err = jose_verify(keys, header, buf_view(&made->filled), signature);
    }
    return err;
}

bay_err card_verify(json_val card, const jose_keys *keys, bay_diag *diag)
{
    json_val list = json_get(card, signatures_key);
    if (!json_is(list, JSON_ARRAY) || json_count(list) == 0) {
        return diag_set(diag, BAY_ERR_NOT_FOUND, "the card is not signed");
    }
    payloads made;
    bay_err err = payloads_init(&made, card, diag);
    bool is_read = err == BAY_OK;
    size_t tried = 0;
    if (is_read) {
        err = BAY_ERR_DENIED;
        for (json_iter it = json_iter_of(list);
             err == BAY_ERR_DENIED && tried < CARD_SIGNATURES && json_next(&it); tried++) {
            err = verify_one(it.value, &made, keys);
        }
    }
    payloads_fini(&made);
    if (is_read && err == BAY_ERR_DENIED) {
        return diag_set(diag, err, "no signature of the card is good under a key that is trusted");
    }
    /* What has no canonical form was never signed. */
    return is_read || err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT
               ? err
               : diag_set(diag, BAY_ERR_DENIED, "the card has no canonical form: %s",
                          bay_err_text(err));
}

/* --- who signed ------------------------------------------------------------------------------- */

static bool read_signer(json_val entry, arena *memory, card_signer *out)
{
    static const json_limits limits = {HEADER_BYTES, 16, 1 << 12};
    bay_str encoded;
    bay_str copy = {NULL, 0};
    json_doc doc;
    buf text;
    buf_init(&text, JOSE_TOKEN_BYTES);
    bool is_read = json_str_plain(json_get(entry, STR("protected")), &encoded) &&
                   encoded.len <= HEADER_BYTES &&
                   base64_decode(&text, encoded, BASE64_URL) == BAY_OK &&
                   arena_dup(memory, buf_view(&text), &copy) == BAY_OK &&
                   json_parse(&doc, copy, &limits, memory, NULL) == BAY_OK &&
                   json_check_duplicates(json_root(&doc), NULL) == BAY_OK;
    buf_fini(&text);
    if (!is_read) {
        return false;
    }
    *out = (card_signer){.key_id = {"", 0}, .jku = {"", 0}};
    json_val root = json_root(&doc);
    (void)!json_str(json_get(root, STR("kid")), memory, &out->key_id); /* else none */
    (void)!json_str(json_get(root, STR("jku")), memory, &out->jku);
    return true;
}

size_t card_signers(json_val card, arena *memory, card_signer *out, size_t max)
{
    json_val list = json_get(card, signatures_key);
    size_t count = 0;
    size_t looked_at = 0;
    json_iter it = json_iter_of(json_is(list, JSON_ARRAY) ? list : JSON_NONE);
    while (count < max && looked_at++ < CARD_SIGNATURES && json_next(&it)) {
        count += read_signer(it.value, memory, &out[count]) ? 1 : 0;
    }
    return count;
}
