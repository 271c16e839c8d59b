/* Policy: which keys count, which headers are understood, what a token must say. What a peer wrote
 * is read by our own strict JSON and base64 and checked here; OpenSSL (jose_primitive.c) gets
 * members that are base64url and headers that were read.
 *
 * A signature is tried with keys of the algorithm its header names only, and a key has one
 * algorithm, by its kind: there is no HMAC, so no public key can be mistaken for a secret. */
#include "auth/jose.h"

#include "auth/jose_internal.h"
#include "auth/jose_primitive.h"
#include "base/err.h"
#include "base/mem.h"
#include "wire/base64.h"
#include "json/writer.h"

enum {
    PRIVATE_BYTES = 64 << 10, /* of a private key's text */
    KEY_ID_BYTES = 256,
    RSA_EXPONENT_BYTES = 4,
    RECENT_TOKENS = 256, /* whose signatures are not checked again */
    SIGNATURE_BYTES = JOSE_RSA_BITS_MOST / 8,
    SCRATCH_BYTES = 4 << 20, /* to read one text with */
};

static const json_limits key_limits = {JOSE_KEYSET_BYTES, 16, 1 << 14};
const json_limits jose_token_limits = {JOSE_TOKEN_BYTES, 16, 1 << 12};

typedef struct jose_entry {
    jose_raw *raw;
    bay_str id; /* "": it has none; a copy */
} jose_entry;

struct jose_key {
    jose_entry entry;
};

/* Tokens come with every request of their bearer; checking a signature costs as much as the rest of
 * a request. A digest's first byte says where it is remembered. */
typedef struct jose_recent {
    unsigned char digests[RECENT_TOKENS][JOSE_DIGEST_BYTES];
    bool is_used[RECENT_TOKENS];
} jose_recent;

struct jose_keys {
    size_t count;
    jose_entry entries[JOSE_KEYS];
    jose_recent *recent;
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

static bool is_coordinate(bay_str text)
{
    unsigned char first = 0;
    unsigned char last = 0;
    return decoded(text, &first, &last) == JOSE_EC_BYTES;
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

/* RFC 7517 sections 4.2 to 4.4: what the key says that it is for. */
static bool may(json_val key, bay_str operation, bay_str algorithm)
{
    json_val use = json_get(key, STR("use"));
    json_val operations = json_get(key, STR("key_ops"));
    json_val named = json_get(key, STR("alg"));
    return (json_is(use, JSON_MISSING) || json_str_eq(use, STR("sig"))) &&
           (json_is(operations, JSON_MISSING) || jose_list_has(operations, operation)) &&
           (json_is(named, JSON_MISSING) || json_str_eq(named, algorithm));
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

/* The members of the key's kind: its number, 0 when it is none of ours. */
static size_t members_of(json_val key, bool is_private, jose_algorithm *out_algorithm,
                         jose_member members[JOSE_MEMBERS])
{
    static const char *const factors[] = {"p", "q", "dp", "dq", "qi"};
    size_t count = 0;
    bay_str secret = plain_member(key, STR("d"));
    if (is_private ? secret.len == 0 : !json_is(json_get(key, STR("d")), JSON_MISSING)) {
        return 0; /* a private key that was published is nobody's any more */
    }
    if (json_str_eq(json_get(key, STR("kty")), STR("EC"))) {
        bay_str x = plain_member(key, STR("x"));
        bay_str y = plain_member(key, STR("y"));
        if (!json_str_eq(json_get(key, STR("crv")), STR("P-256")) || !is_coordinate(x) ||
            !is_coordinate(y) || (is_private && !is_coordinate(secret))) {
            return 0;
        }
        *out_algorithm = JOSE_ES256;
        take_member(members, &count, "x", x);
        take_member(members, &count, "y", y);
    } else if (json_str_eq(json_get(key, STR("kty")), STR("RSA"))) {
        bay_str n = plain_member(key, STR("n"));
        bay_str e = plain_member(key, STR("e"));
        if (!is_modulus(n) || !is_exponent(e) ||
            !json_is(json_get(key, STR("oth")), JSON_MISSING)) {
            return 0;
        }
        *out_algorithm = JOSE_RS256;
        take_member(members, &count, "n", n);
        take_member(members, &count, "e", e);
        for (size_t i = 0; is_private && i < sizeof(factors) / sizeof(factors[0]); i++) {
            take_member(members, &count, factors[i], plain_member(key, str_of(factors[i])));
        }
    } else {
        return 0;
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
    jose_algorithm algorithm = JOSE_ES256;
    json_val id = json_get(key, STR("kid"));
    bay_str id_text = {"", 0};
    if (json_is(id, JSON_STRING) && json_str(id, memory, &id_text) == BAY_ERR_NOMEM) {
        return BAY_ERR_NOMEM;
    }
    size_t count = members_of(key, is_private, &algorithm, members);
    if (count == 0 || (!json_is(id, JSON_MISSING) && id_text.len == 0) || !id_is_fine(id_text) ||
        !may(key, is_private ? STR("sign") : STR("verify"),
             algorithm == JOSE_ES256 ? STR("ES256") : STR("RS256"))) {
        return BAY_ERR_INVALID;
    }
    jose_entry entry = {.raw = NULL};
    bay_err err = jose_raw_new(algorithm, members, count, &entry.raw);
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

/* A private key whose halves do not belong together signs what nobody can verify. */
static bay_err try_pair(const jose_raw *raw)
{
    static const bay_str header[] = {STR_INIT("eyJhbGciOiJFUzI1NiJ9"),
                                     STR_INIT("eyJhbGciOiJSUzI1NiJ9")};
    buf signature;
    buf_init(&signature, 4 * SIGNATURE_BYTES);
    bay_str by = header[jose_raw_algorithm(raw)];
    bay_err err = jose_raw_sign(raw, by, STR("YWJj"), &signature);
    if (err == BAY_OK) {
        err = jose_raw_verify(raw, by, STR("YWJj"), buf_view(&signature));
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
        err = try_pair(entry.raw);
    }
    if (err == BAY_ERR_INVALID) {
        err = diag_set(diag, err, "the private key is neither EC P-256 nor RSA of %d to %d bits",
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

bay_err jose_key_public(const jose_key *self, buf *out)
{
    static const char *const members[][2] = {{"x", "y"}, {"n", "e"}};
    const jose_raw *raw = self->entry.raw;
    jose_algorithm algorithm = jose_raw_algorithm(raw);
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "keys");
    json_open_array(&writer);
    json_open_object(&writer);
    json_key_lit(&writer, "kty");
    json_put_str(&writer, algorithm == JOSE_ES256 ? STR("EC") : STR("RSA"));
    if (algorithm == JOSE_ES256) {
        json_key_lit(&writer, "crv");
        json_put_str(&writer, STR("P-256"));
    }
    for (size_t i = 0; i < 2; i++) {
        json_key(&writer, str_of(members[algorithm][i]));
        json_put_str(&writer, jose_raw_member(raw, members[algorithm][i]));
    }
    json_key_lit(&writer, "use");
    json_put_str(&writer, STR("sig"));
    json_key_lit(&writer, "alg");
    json_put_str(&writer, algorithm == JOSE_ES256 ? STR("ES256") : STR("RS256"));
    json_key_lit(&writer, "kid");
    json_put_str(&writer, self->entry.id);
    json_close_object(&writer);
    json_close_array(&writer);
    json_close_object(&writer);
    return out->err;
}

/* --- sets of public keys ---------------------------------------------------------------------- */

static bay_err add_key(jose_keys *self, json_val key, arena *memory, bay_diag *diag)
{
    jose_entry entry;
    bay_err err = read_key(key, false, memory, &entry);
    if (err == BAY_ERR_INVALID) {
        return BAY_OK;
    }
    if (err == BAY_OK && self->count == JOSE_KEYS) {
        entry_fini(&entry);
        return diag_set(diag, BAY_ERR_LIMIT, "a key set of more than %d keys", JOSE_KEYS);
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
                   ? add_key(self, root, memory, diag)
                   : diag_set(diag, BAY_ERR_SYNTAX, "neither a key set nor a key");
    }
    if (!json_is(list, JSON_ARRAY)) {
        return diag_set(diag, BAY_ERR_SYNTAX, "the keys of a key set are a list");
    }
    bay_err err = BAY_OK;
    for (json_iter it = json_iter_of(list); err == BAY_OK && json_next(&it);) {
        err = add_key(self, it.value, memory, diag);
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
    self->recent = mem_zalloc(sizeof(*self->recent));
    if (self->recent == NULL) {
        jose_keys_free(self);
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
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

void jose_keys_free(jose_keys *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->count; i++) {
        entry_fini(&self->entries[i]);
    }
    mem_free(self->recent);
    mem_free(self);
}

bool jose_keys_recall(const jose_keys *self, const unsigned char digest[JOSE_DIGEST_BYTES])
{
    const jose_recent *recent = self->recent;
    return recent->is_used[digest[0]] &&
           memcmp(recent->digests[digest[0]], digest, JOSE_DIGEST_BYTES) == 0;
}

void jose_keys_remember(const jose_keys *self, const unsigned char digest[JOSE_DIGEST_BYTES])
{
    memcpy(self->recent->digests[digest[0]], digest, JOSE_DIGEST_BYTES);
    self->recent->is_used[digest[0]] = true;
}

size_t jose_keys_count(const jose_keys *self)
{
    return self->count;
}

/* --- signing ---------------------------------------------------------------------------------- */

static void write_header(const jose_key *key, bay_str typ, bay_str jku, buf *out)
{
    bool is_ec = jose_raw_algorithm(key->entry.raw) == JOSE_ES256;
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "alg");
    json_put_str(&writer, is_ec ? STR("ES256") : STR("RS256"));
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
        err = jose_raw_sign(key->entry.raw, buf_view(&encoded), buf_view(&text), out_signature);
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
    bool is_ec = json_str_eq(algorithm, STR("ES256"));
    if ((!is_ec && !json_str_eq(algorithm, STR("RS256"))) ||
        !json_is(json_get(root, STR("crit")), JSON_MISSING) ||
        !json_is(json_get(root, STR("b64")), JSON_MISSING) ||
        (!json_is(id, JSON_MISSING) && !json_is(id, JSON_STRING))) {
        return BAY_ERR_DENIED;
    }
    out->algorithm = is_ec ? JOSE_ES256 : JOSE_RS256;
    out->key_id = (bay_str){"", 0};
    err = json_is(id, JSON_STRING) ? json_str(id, memory, &out->key_id) : BAY_OK;
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : BAY_ERR_DENIED;
}

static bool signature_is_whole(bay_str text, jose_algorithm algorithm)
{
    unsigned char first = 0;
    unsigned char last = 0;
    size_t len = text.len <= 2 * SIGNATURE_BYTES ? decoded(text, &first, &last) : 0;
    return algorithm == JOSE_ES256
               ? len == (size_t)2 * JOSE_EC_BYTES
               : len >= JOSE_RSA_BITS_LEAST / 8 && len <= JOSE_RSA_BITS_MOST / 8;
}

/* `payload` in base64url. */
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
        bool is_named =
            header->key_id.len == 0 || entry->id.len == 0 || str_eq(entry->id, header->key_id);
        if (is_named && jose_raw_algorithm(entry->raw) == header->algorithm) {
            err = jose_raw_verify(entry->raw, encoded, payload, signature);
        }
    }
    return err;
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
