/* Policy: which keys count, which headers are understood, what a token must say. What a peer wrote
 * is read by our own strict JSON and base64 and checked here; OpenSSL (jose_primitive.c) gets
 * members that are base64url and headers that were read.
 *
 * A signature is tried with keys of the algorithm that its header names only, and an algorithm
 * belongs to one kind of key: there is no HMAC, so no public key can be mistaken for a secret. */
#include "auth/jose.h"

#include <stdatomic.h>

#include "auth/digest.h"
#include "auth/jose_internal.h"
#include "auth/jose_primitive.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "wire/base64.h"
#include "json/writer.h"

enum {
    PRIVATE_BYTES = 64 << 10, /* of a private key's text */
    KEY_ID_BYTES = 256,
    RSA_EXPONENT_BYTES = 4,
    SIGNATURE_BYTES = JOSE_RSA_BITS_MOST / 8,
    SCRATCH_BYTES = 4 << 20, /* to read one text with */
};

static const json_limits key_limits = {JOSE_KEYSET_BYTES, 16, 1 << 14};
const json_limits jose_token_limits = {JOSE_TOKEN_BYTES, 16, 1 << 12};

typedef struct jose_entry {
    jose_raw *raw;
    bay_str id;          /* "": it has none; a copy */
    unsigned algorithms; /* one bit each: what it may be used with */
} jose_entry;

struct jose_key {
    jose_entry entry;
};

struct jose_keys {
    atomic_uint references;
    size_t count;
    jose_entry entries[JOSE_KEYS];
};

static void entry_fini(jose_entry *self)
{
    jose_raw_free(self->raw);
    mem_free((void *)(uintptr_t)self->id.at);
}

/* --- members of keys -------------------------------------------------------------------------- */

/* A string of the key's that is written without escapes; empty when it is missing or not that. */
static bay_str plain_member(json_val key, bay_str name)
{
    bay_str text = {"", 0};
    return json_str_plain(json_get(key, name), &text) ? text : (bay_str){"", 0};
}

/* How many bytes the base64url text stands for, and the first and last of them; 0: it is none.
 * Without decoding: there may be a secret in it, and there may be no memory. */
static size_t decoded(bay_str text, unsigned char *out_first, unsigned char *out_last)
{
    for (size_t i = 0; i < text.len; i++) {
        if (base64_digit(text.at[i], true) < 0) {
            return 0;
        }
    }
    if (text.len < 2 || text.len % 4 == 1) {
        return 0;
    }
    int before = base64_digit(text.at[text.len - 2], true);
    int last = base64_digit(text.at[text.len - 1], true);
    int unused_bits = text.len % 4 == 2 ? 4 : text.len % 4 == 3 ? 2 : 0;
    if ((last & ((1 << unused_bits) - 1)) != 0) {
        return 0;
    }
    *out_first =
        (unsigned char)(base64_digit(text.at[0], true) << 2 | base64_digit(text.at[1], true) >> 4);
    *out_last = (unsigned char)(before << (6 - unused_bits) | last >> unused_bits);
    return text.len / 4 * 3 + (text.len % 4 == 0 ? 0 : text.len % 4 - 1);
}

static bool has_bytes(bay_str text, size_t bytes)
{
    unsigned char first = 0;
    unsigned char last = 0;
    return decoded(text, &first, &last) == bytes;
}

static bool is_modulus(bay_str text)
{
    unsigned char first = 0;
    unsigned char last = 0;
    size_t len = decoded(text, &first, &last);
    return len >= JOSE_RSA_BITS_LEAST / 8 && len <= JOSE_RSA_BITS_MOST / 8 && first != 0 &&
           (last & 1) == 1;
}

/* Odd, at least 3, and small: a large one only costs time. */
static bool is_exponent(bay_str text)
{
    unsigned char first = 0;
    unsigned char last = 0;
    size_t len = decoded(text, &first, &last);
    return len >= 1 && len <= RSA_EXPONENT_BYTES && first != 0 && (last & 1) == 1 &&
           (len > 1 || last >= 3);
}

bool jose_list_has(json_val list, bay_str word)
{
    json_iter it = json_iter_of(json_is(list, JSON_ARRAY) ? list : JSON_NONE);
    while (json_next(&it)) {
        if (json_str_eq(it.value, word)) {
            return true;
        }
    }
    return false;
}

/* The algorithms of a kind of key. */
static unsigned algorithms_of(jose_kind kind)
{
    unsigned all = 0;
    for (jose_algorithm at = JOSE_ES256; at < JOSE_ALGORITHMS; at++) {
        all |= jose_algorithm_kind(at) == kind ? 1U << at : 0;
    }
    return all;
}

/* RFC 7517 sections 4.2 to 4.4: what the key says that it is for; 0: nothing of ours. */
static unsigned purposes_of(json_val key, jose_kind kind, bay_str operation)
{
    json_val use = json_get(key, STR("use"));
    json_val operations = json_get(key, STR("key_ops"));
    json_val named = json_get(key, STR("alg"));
    bay_str name;
    jose_algorithm algorithm;
    bool is_for_us = (json_is(use, JSON_MISSING) || json_str_eq(use, STR("sig"))) &&
                     (json_is(operations, JSON_MISSING) || jose_list_has(operations, operation));
    if (!is_for_us || json_is(named, JSON_MISSING)) {
        return is_for_us ? algorithms_of(kind) : 0;
    }
    return json_str_plain(named, &name) && jose_algorithm_find(name, &algorithm) &&
                   jose_algorithm_kind(algorithm) == kind
               ? 1U << algorithm
               : 0;
}

static bool id_is_fine(bay_str id)
{
    for (size_t i = 0; i < id.len; i++) {
        if ((unsigned char)id.at[i] < 0x20 || id.at[i] == 0x7f) {
            return false;
        }
    }
    return id.len <= KEY_ID_BYTES;
}

static void take_member(jose_member *members, size_t *count, const char *name, bay_str value)
{
    if (value.len > 0) {
        members[(*count)++] = (jose_member){name, value};
    }
}

/* Of "kty" and "crv". False: none of ours. */
static bool kind_of(json_val key, jose_kind *out)
{
    static const jose_kind curves[] = {JOSE_P256, JOSE_P384, JOSE_P521, JOSE_ED25519};
    json_val type = json_get(key, STR("kty"));
    json_val curve = json_get(key, STR("crv"));
    *out = JOSE_RSA;
    if (json_str_eq(type, STR("RSA"))) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(curves); i++) {
        bool is_okp = curves[i] == JOSE_ED25519;
        if (json_str_eq(type, is_okp ? STR("OKP") : STR("EC")) &&
            json_str_eq(curve, str_of(jose_kind_curve(curves[i])))) {
            *out = curves[i];
            return true;
        }
    }
    return false;
}

/* The members of a key of that kind: their number, 0 when they are none of ours. */
static size_t members_of(json_val key, jose_kind kind, bool is_private,
                         jose_member members[JOSE_MEMBERS])
{
    static const char *const factors[] = {"p", "q", "dp", "dq", "qi"};
    size_t count = 0;
    size_t width = jose_kind_bytes(kind);
    bay_str secret = plain_member(key, STR("d"));
    if (is_private ? secret.len == 0 : !json_is(json_get(key, STR("d")), JSON_MISSING)) {
        return 0; /* a private key that was published is nobody's any more */
    }
    if (kind == JOSE_RSA) {
        bay_str n = plain_member(key, STR("n"));
        bay_str e = plain_member(key, STR("e"));
        if (!is_modulus(n) || !is_exponent(e) ||
            !json_is(json_get(key, STR("oth")), JSON_MISSING)) {
            return 0;
        }
        take_member(members, &count, "n", n);
        take_member(members, &count, "e", e);
        for (size_t i = 0; is_private && i < ARRAY_LEN(factors); i++) {
            take_member(members, &count, factors[i], plain_member(key, str_of(factors[i])));
        }
    } else {
        bay_str x = plain_member(key, STR("x"));
        bay_str y = kind != JOSE_ED25519 ? plain_member(key, STR("y")) : STR("");
        if (!has_bytes(x, width) || (kind != JOSE_ED25519 && !has_bytes(y, width)) ||
            (is_private && !has_bytes(secret, width))) {
            return 0;
        }
        take_member(members, &count, "x", x);
        take_member(members, &count, "y", y);
    }
    if (is_private) {
        take_member(members, &count, "d", secret);
    }
    return count;
}

/* BAY_ERR_INVALID: a key that does not count. */
static bay_err read_key(json_val key, bool is_private, arena *memory, jose_entry *out)
{
    jose_member members[JOSE_MEMBERS];
    jose_kind kind = JOSE_RSA;
    json_val id = json_get(key, STR("kid"));
    bay_str id_text = {"", 0};
    if (json_is(id, JSON_STRING) && json_str(id, memory, &id_text) == BAY_ERR_NOMEM) {
        return BAY_ERR_NOMEM;
    }
    size_t count = kind_of(key, &kind) ? members_of(key, kind, is_private, members) : 0;
    unsigned algorithms = purposes_of(key, kind, is_private ? STR("sign") : STR("verify"));
    if (count == 0 || algorithms == 0 || (!json_is(id, JSON_MISSING) && id_text.len == 0) ||
        !id_is_fine(id_text)) {
        return BAY_ERR_INVALID;
    }
    jose_entry entry = {.algorithms = algorithms};
    bay_err err = jose_raw_new(kind, members, count, &entry.raw);
    if (err != BAY_OK) {
        return err;
    }
    entry.id = (bay_str){mem_dup(id_text.at, id_text.len), id_text.len};
    if (entry.id.at == NULL) {
        entry_fini(&entry);
        return BAY_ERR_NOMEM;
    }
    *out = entry;
    return BAY_OK;
}

/* A JSON object without a member twice, at any level. */
bay_err jose_read_object(json_doc *out, bay_str text, const json_limits *limits, arena *memory,
                         const char *what, bay_diag *diag)
{
    bay_err err = json_parse(out, text, limits, memory, diag);
    if (err == BAY_ERR_NOMEM) {
        return err;
    }
    if (err == BAY_OK) {
        err = json_check_duplicates(json_root(out), diag);
    }
    if (err == BAY_OK && !json_is(json_root(out), JSON_OBJECT)) {
        err = BAY_ERR_TYPE;
    }
    return err == BAY_OK ? BAY_OK
                         : diag_set(diag, BAY_ERR_SYNTAX, "%s is no JSON object: %s", what,
                                    bay_err_text(err));
}

/* --- private keys ----------------------------------------------------------------------------- */

/* By which a private key signs: the first of those that it may be used with. */
static jose_algorithm algorithm_of(const jose_entry *self)
{
    jose_algorithm usual = jose_kind_algorithm(jose_raw_kind(self->raw));
    if ((self->algorithms & 1U << usual) != 0) {
        return usual;
    }
    jose_algorithm at = JOSE_ES256;
    while ((self->algorithms & 1U << at) == 0) {
        at++;
    }
    return at;
}

/* A private key whose halves do not belong together signs what nobody can verify. */
static bay_err try_pair(const jose_entry *entry)
{
    buf signature;
    buf_init(&signature, 4 * SIGNATURE_BYTES);
    jose_algorithm by = algorithm_of(entry);
    bay_err err = jose_raw_sign(entry->raw, by, STR("e30"), STR("YWJj"), &signature);
    if (err == BAY_OK) {
        err = jose_raw_verify(entry->raw, by, STR("e30"), STR("YWJj"), buf_view(&signature));
    }
    buf_fini(&signature);
    return err == BAY_ERR_DENIED ? BAY_ERR_INVALID : err;
}

static bay_err read_private(bay_str text, jose_entry *out, bay_diag *diag)
{
    bay_str start = text;
    while (start.len > 0 && (unsigned char)start.at[0] <= ' ') {
        start = str_from(start, 1);
    }
    if (start.len == 0 || start.at[0] != '{') {
        bay_err err = jose_raw_from_pem(text, &out->raw);
        if (err == BAY_ERR_SYNTAX) {
            return diag_set(diag, err, "no private key in PEM without a passphrase, and no JWK");
        }
        out->algorithms = err == BAY_OK ? algorithms_of(jose_raw_kind(out->raw)) : 0;
        return err;
    }
    arena memory;
    json_doc doc;
    arena_init(&memory, SCRATCH_BYTES);
    bay_err err = jose_read_object(&doc, text, &key_limits, &memory, "the private key", diag);
    if (err == BAY_OK) {
        err = read_key(json_root(&doc), true, &memory, out);
    }
    arena_fini(&memory);
    return err;
}

static bay_err name_key(jose_entry *entry, bay_str key_id)
{
    buf id;
    buf_init(&id, KEY_ID_BYTES);
    bay_err err = BAY_OK;
    if (key_id.len > 0) {
        buf_str(&id, key_id);
        err = id.err;
    } else if (entry->id.len > 0) {
        buf_str(&id, entry->id);
    } else {
        err = jose_raw_thumbprint(entry->raw, &id);
    }
    mem_free((void *)(uintptr_t)entry->id.at);
    entry->id = (bay_str){NULL, 0};
    if (err == BAY_OK && id.err == BAY_OK) {
        entry->id.at = mem_dup(id.at, id.len);
        entry->id.len = id.len;
    }
    buf_fini(&id);
    return entry->id.at != NULL ? BAY_OK : err == BAY_OK ? BAY_ERR_NOMEM : err;
}

bay_err jose_key_new(bay_str text, bay_str key_id, jose_key **out, bay_diag *diag)
{
    if (text.len == 0 || text.len > PRIVATE_BYTES || !id_is_fine(key_id)) {
        return diag_set(diag, BAY_ERR_INVALID, "the private key or its id is empty or too long");
    }
    jose_entry entry = {.raw = NULL};
    bay_err err = read_private(text, &entry, diag);
    if (err == BAY_OK) {
        err = try_pair(&entry);
    }
    if (err == BAY_ERR_INVALID) {
        err = diag_set(diag, err,
                       "the private key is none of EC (P-256, P-384, P-521), Ed25519 and RSA of "
                       "%d to %d bits",
                       JOSE_RSA_BITS_LEAST, JOSE_RSA_BITS_MOST);
    }
    if (err == BAY_OK) {
        err = name_key(&entry, key_id);
    }
    jose_key *self = err == BAY_OK ? mem_alloc(sizeof(*self)) : NULL;
    if (self == NULL) {
        entry_fini(&entry);
        return err != BAY_OK && err != BAY_ERR_NOMEM
                   ? err
                   : diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->entry = entry;
    *out = self;
    return BAY_OK;
}

void jose_key_free(jose_key *self)
{
    if (self != NULL) {
        entry_fini(&self->entry);
        mem_free(self);
    }
}

bay_str jose_key_id(const jose_key *self)
{
    return self->entry.id;
}

bay_str jose_key_algorithm(const jose_key *self)
{
    return str_of(jose_algorithm_name(algorithm_of(&self->entry)));
}

bay_err jose_key_public(const jose_key *self, buf *out)
{
    buf_lit(out, "{\"keys\":[{");
    jose_raw_write_public(self->entry.raw, out);
    buf_printf(out,
               ",\"use\":\"sig\",\"alg\":\"%.*s\",\"kid\":", BAY_STR(jose_key_algorithm(self)));
    json_quote(out, self->entry.id);
    buf_lit(out, "}]}");
    return out->err;
}

/* --- sets of public keys ---------------------------------------------------------------------- */

static bay_err add_key(jose_keys *self, json_val key, arena *memory)
{
    jose_entry entry;
    bay_err err = read_key(key, false, memory, &entry);
    if (err == BAY_ERR_INVALID) {
        return BAY_OK;
    }
    if (err == BAY_OK) {
        self->entries[self->count++] = entry;
    }
    return err;
}

static bay_err add_keys(jose_keys *self, json_val root, arena *memory, bay_diag *diag)
{
    json_val list = json_get(root, STR("keys"));
    if (json_is(list, JSON_MISSING)) {
        return json_is(json_get(root, STR("kty")), JSON_STRING)
                   ? add_key(self, root, memory)
                   : diag_set(diag, BAY_ERR_SYNTAX, "neither a key set nor a key");
    }
    if (!json_is(list, JSON_ARRAY)) {
        return diag_set(diag, BAY_ERR_SYNTAX, "the keys of a key set are a list");
    }
    /* those that do not count as well: to find that out takes time */
    if (json_count(list) > JOSE_KEYS) {
        return diag_set(diag, BAY_ERR_LIMIT, "a key set of more than %d keys", JOSE_KEYS);
    }
    bay_err err = BAY_OK;
    for (json_iter it = json_iter_of(list); err == BAY_OK && json_next(&it);) {
        err = add_key(self, it.value, memory);
    }
    return err;
}

bay_err jose_keys_new(bay_str text, jose_keys **out, bay_diag *diag)
{
    if (text.len > JOSE_KEYSET_BYTES) {
        return diag_set(diag, BAY_ERR_LIMIT, "a key set of more than %d bytes", JOSE_KEYSET_BYTES);
    }
    jose_keys *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    atomic_init(&self->references, 1);
    arena memory;
    json_doc doc;
    arena_init(&memory, SCRATCH_BYTES);
    bay_err err = jose_read_object(&doc, text, &key_limits, &memory, "the key set", diag);
    if (err == BAY_OK) {
        err = add_keys(self, json_root(&doc), &memory, diag);
    }
    arena_fini(&memory);
    if (err != BAY_OK) {
        jose_keys_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

jose_keys *jose_keys_ref(jose_keys *self)
{
    if (self != NULL) {
        atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    }
    return self;
}

void jose_keys_free(jose_keys *self)
{
    if (self == NULL ||
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < self->count; i++) {
        entry_fini(&self->entries[i]);
    }
    mem_free(self);
}

static bool has_entry(const jose_keys *self, const jose_entry *entry)
{
    static const char *const names[] = {"x", "y", "n", "e"};
    for (size_t i = 0; i < self->count; i++) {
        const jose_entry *own = &self->entries[i];
        bool is_same = jose_raw_kind(own->raw) == jose_raw_kind(entry->raw) &&
                       str_eq(own->id, entry->id) && own->algorithms == entry->algorithms;
        for (size_t k = 0; is_same && k < ARRAY_LEN(names); k++) {
            is_same =
                str_eq(jose_raw_member(own->raw, names[k]), jose_raw_member(entry->raw, names[k]));
        }
        if (is_same) {
            return true;
        }
    }
    return false;
}

bool jose_keys_have_all(const jose_keys *self, const jose_keys *older)
{
    for (size_t i = 0; i < older->count; i++) {
        if (!has_entry(self, &older->entries[i])) {
            return false;
        }
    }
    return true;
}

size_t jose_keys_count(const jose_keys *self)
{
    return self->count;
}

/* --- signing ---------------------------------------------------------------------------------- */

static void write_header(const jose_key *key, bay_str typ, bay_str jku, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "alg");
    json_put_str(&writer, jose_key_algorithm(key));
    json_key_lit(&writer, "kid");
    json_put_str(&writer, key->entry.id);
    if (typ.len > 0) {
        json_key_lit(&writer, "typ");
        json_put_str(&writer, typ);
    }
    if (jku.len > 0) {
        json_key_lit(&writer, "jku");
        json_put_str(&writer, jku);
    }
    json_close_object(&writer);
}

bay_err jose_sign(const jose_key *key, bay_str payload, bay_str typ, bay_str jku,
                  buf *out_protected, buf *out_signature)
{
    buf header;
    buf encoded;
    buf text;
    buf_init(&header, JOSE_TOKEN_BYTES);
    buf_init(&encoded, 2 * JOSE_TOKEN_BYTES);
    buf_init(&text, SIZE_MAX / 2);
    write_header(key, typ, jku, &header);
    bay_err err = header.err;
    if (err == BAY_OK) {
        base64_encode(&encoded, buf_view(&header), BASE64_URL);
        base64_encode(&text, payload, BASE64_URL);
        err = encoded.err != BAY_OK ? encoded.err : text.err;
    }
    if (err == BAY_OK) {
        err = jose_raw_sign(key->entry.raw, algorithm_of(&key->entry), buf_view(&encoded),
                            buf_view(&text), out_signature);
    }
    if (err == BAY_OK) {
        buf_str(out_protected, buf_view(&encoded));
        err = out_protected->err;
    }
    buf_fini(&text);
    buf_fini(&encoded);
    buf_fini(&header);
    return err;
}

static void write_token_header(const jose_key *key, bay_str typ, bool shows_key, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "typ");
    json_put_str(&writer, typ);
    json_key_lit(&writer, "alg");
    json_put_str(&writer, jose_key_algorithm(key));
    if (shows_key) {
        buf public;
        buf_init(&public, JOSE_TOKEN_BYTES);
        buf_char(&public, '{');
        jose_raw_write_public(key->entry.raw, &public);
        buf_char(&public, '}');
        json_key_lit(&writer, "jwk");
        json_put_raw(&writer, buf_view(&public));
        out->err = out->err != BAY_OK ? out->err : public.err;
        buf_fini(&public);
    } else {
        json_key_lit(&writer, "kid");
        json_put_str(&writer, key->entry.id);
    }
    json_close_object(&writer);
}

bay_err jose_token_sign(const jose_key *key, bay_str typ, bool shows_key, bay_str claims, buf *out)
{
    buf header, first, second;
    buf_init(&header, JOSE_TOKEN_BYTES);
    buf_init(&first, 2 * JOSE_TOKEN_BYTES);
    buf_init(&second, 2 * JOSE_TOKEN_BYTES);
    write_token_header(key, typ, shows_key, &header);
    base64_encode(&first, buf_view(&header), BASE64_URL);
    base64_encode(&second, claims, BASE64_URL);
    bay_err err = header.err != BAY_OK ? header.err : first.err != BAY_OK ? first.err : second.err;
    if (err == BAY_OK) {
        buf_str(out, buf_view(&first));
        buf_char(out, '.');
        buf_str(out, buf_view(&second));
        buf_char(out, '.');
        err = jose_raw_sign(key->entry.raw, algorithm_of(&key->entry), buf_view(&first),
                            buf_view(&second), out);
    }
    buf_fini(&second);
    buf_fini(&first);
    buf_fini(&header);
    return err == BAY_OK ? out->err : err;
}

bay_err jose_hash(bay_str bytes, buf *out)
{
    unsigned char digest[DIGEST_BYTES];
    if (digest_bytes(bytes, digest) != BAY_OK) {
        return BAY_ERR_NOMEM;
    }
    base64_encode(out, (bay_str){(const char *)digest, sizeof(digest)}, BASE64_URL);
    return out->err;
}

bay_err jose_key_generate(buf *out)
{
    return jose_raw_generate(out);
}

/* --- verifying -------------------------------------------------------------------------------- */

/* RFC 7515 section 4.1: what is critical is understood or refused; we understand no extension, and
 * `b64` (RFC 7797) would be one. `jwk`, `jku` and `x5c` choose no key here: keys are those given.
 */
bay_err jose_read_header(bay_str encoded, arena *memory, jose_header *out)
{
    buf text;
    buf_init(&text, JOSE_TOKEN_BYTES);
    bay_str copy = {NULL, 0};
    bay_err err = encoded.len > 2 * JOSE_TOKEN_BYTES ? BAY_ERR_SYNTAX
                                                     : base64_decode(&text, encoded, BASE64_URL);
    if (err == BAY_OK) {
        err = arena_dup(memory, buf_view(&text), &copy);
    }
    buf_fini(&text);
    if (err == BAY_OK) {
        err = jose_read_object(&out->doc, copy, &jose_token_limits, memory, "the header", NULL);
    }
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? err : BAY_ERR_DENIED;
    }
    json_val root = json_root(&out->doc);
    json_val id = json_get(root, STR("kid"));
    json_val algorithm = json_get(root, STR("alg"));
    bay_str name;
    if (!json_str_plain(algorithm, &name) || !jose_algorithm_find(name, &out->algorithm) ||
        !json_is(json_get(root, STR("crit")), JSON_MISSING) ||
        !json_is(json_get(root, STR("b64")), JSON_MISSING) ||
        (!json_is(id, JSON_MISSING) && !json_is(id, JSON_STRING))) {
        return BAY_ERR_DENIED;
    }
    out->key_id = (bay_str){"", 0};
    err = json_is(id, JSON_STRING) ? json_str(id, memory, &out->key_id) : BAY_OK;
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : BAY_ERR_DENIED;
}

static bool signature_is_whole(bay_str text, jose_algorithm algorithm)
{
    jose_kind kind = jose_algorithm_kind(algorithm);
    unsigned char first = 0;
    unsigned char last = 0;
    size_t len = text.len <= 2 * SIGNATURE_BYTES ? decoded(text, &first, &last) : 0;
    return kind == JOSE_RSA ? len >= JOSE_RSA_BITS_LEAST / 8 && len <= JOSE_RSA_BITS_MOST / 8
                            : len == 2 * jose_kind_bytes(kind);
}

/* May this key have made a signature whose header says so? */
static bool is_meant(const jose_entry *entry, const jose_header *header)
{
    bool is_named =
        header->key_id.len == 0 || entry->id.len == 0 || str_eq(entry->id, header->key_id);
    return is_named && (entry->algorithms & 1U << header->algorithm) != 0;
}

bay_err jose_verify_encoded(const jose_keys *keys, const jose_header *header, bay_str encoded,
                            bay_str payload, bay_str signature)
{
    unsigned char first = 0;
    unsigned char last = 0;
    /* Whatever is no base64url goes no further. */
    if (!signature_is_whole(signature, header->algorithm) ||
        (payload.len > 0 && decoded(payload, &first, &last) == 0)) {
        return BAY_ERR_DENIED;
    }
    bay_err err = BAY_ERR_DENIED;
    for (size_t i = 0; i < keys->count && err == BAY_ERR_DENIED; i++) {
        const jose_entry *entry = &keys->entries[i];
        if (is_meant(entry, header)) {
            err = jose_raw_verify(entry->raw, header->algorithm, encoded, payload, signature);
        }
    }
    return err;
}

size_t jose_keys_named(const jose_keys *keys, const jose_header *header)
{
    size_t count = 0;
    for (size_t i = 0; i < keys->count; i++) {
        const jose_entry *entry = &keys->entries[i];
        count += (entry->algorithms & 1U << header->algorithm) != 0 &&
                         (header->key_id.len == 0 || str_eq(entry->id, header->key_id))
                     ? 1
                     : 0;
    }
    return count;
}

bay_err jose_keys_thumbprint(const jose_keys *keys, buf *out)
{
    return keys->count == 1 ? jose_raw_thumbprint(keys->entries[0].raw, out) : BAY_ERR_INVALID;
}

bay_err jose_verify(const jose_keys *keys, bay_str protected_header, bay_str payload,
                    bay_str signature)
{
    arena memory;
    jose_header header;
    buf text;
    arena_init(&memory, SCRATCH_BYTES);
    buf_init(&text, SIZE_MAX / 2);
    bay_err err = jose_read_header(protected_header, &memory, &header);
    if (err == BAY_OK) {
        base64_encode(&text, payload, BASE64_URL);
        err = text.err;
    }
    if (err == BAY_OK) {
        err = jose_verify_encoded(keys, &header, protected_header, buf_view(&text), signature);
    }
    buf_fini(&text);
    arena_fini(&memory);
    return err;
}
