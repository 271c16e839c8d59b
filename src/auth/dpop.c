#include "auth/dpop.h"

#include "auth/jose_internal.h"
#include "auth/jose_primitive.h"
#include "base/check.h"
#include "base/err.h"
#include "base/str.h"
#include "wire/base64.h"

enum { SCRATCH_BYTES = 4 << 20, DIGEST_CHARS = 43, SEEN_BYTES = 1024 };

static bay_err deny(bay_diag *diag, const char *why)
{
    return diag_set(diag, BAY_ERR_DENIED, "the DPoP proof %s", why);
}

/* ---- the proof's own parts ------------------------------------------------------------------- */

typedef struct proof {
    bay_str header_text;
    bay_str payload_text;
    bay_str signature_text;
    jose_header header;
    json_doc payload;
    bay_str id; /* `jti` */
    uint64_t issued_ms;
} proof;

static bay_err read_proof(bay_str text, arena *memory, proof *out, bay_diag *diag)
{
    size_t first = str_find(text, '.');
    bay_str rest = str_from(text, first + 1);
    size_t second = str_find(rest, '.');
    bay_str type = {"", 0};
    bay_str copy = {NULL, 0};
    buf bytes;
    *out = (proof){.header_text = str_head(text, first),
                   .payload_text = str_head(rest, second),
                   .signature_text = str_from(rest, second + 1)};
    if (text.len > DPOP_PROOF_BYTES || first == text.len || second == rest.len ||
        str_find(out->signature_text, '.') < out->signature_text.len) {
        return deny(diag, "is no signed JSON Web Token");
    }
    bay_err err = jose_read_header(out->header_text, memory, &out->header);
    (void)(err == BAY_OK &&
           json_str_plain(json_get(json_root(&out->header.doc), STR("typ")), &type));
    if (err != BAY_OK || !str_eq_nocase(type, STR("dpop+jwt"))) {
        return err == BAY_ERR_NOMEM ? err : deny(diag, "has a header that is none of a proof");
    }
    buf_init(&bytes, DPOP_PROOF_BYTES);
    err = base64_decode(&bytes, out->payload_text, BASE64_URL);
    err = err == BAY_OK ? arena_dup(memory, buf_view(&bytes), &copy) : err;
    buf_fini(&bytes);
    err = err == BAY_OK
              ? jose_read_object(&out->payload, copy, &jose_token_limits, memory, "the proof", NULL)
              : err;
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err
                                                 : deny(diag, "is no JSON object in base64url");
}

/* RFC 9449 section 4.2: the public key that signed it. */
static bay_err read_key(const proof *self, jose_keys **out, bay_diag *diag)
{
    static const bay_str secrets[] = {STR_INIT("d"),  STR_INIT("p"),  STR_INIT("q"), STR_INIT("dp"),
                                      STR_INIT("dq"), STR_INIT("qi"), STR_INIT("k")};
    json_val key = json_get(json_root(&self->header.doc), STR("jwk"));
    if (!json_is(key, JSON_OBJECT)) {
        return deny(diag, "brings no key");
    }
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
        if (!json_is(json_get(key, secrets[i]), JSON_MISSING)) {
            return deny(diag, "brings a private key");
        }
    }
    jose_keys *keys = NULL;
    bay_err err = jose_keys_new(json_raw(key), &keys, NULL);
    if (err == BAY_OK && jose_keys_count(keys) != 1) {
        err = BAY_ERR_DENIED;
    }
    if (err != BAY_OK) {
        jose_keys_free(keys);
        return err == BAY_ERR_NOMEM ? err : deny(diag, "brings a key that is none");
    }
    *out = keys;
    return BAY_OK;
}

/* ---- URLs ------------------------------------------------------------------------------------ */

/* Takes a URL apart as far as it is compared. False: it is none, or has a query or a fragment. */
static bool split(bay_str url, bay_str *out_scheme, bay_str *out_authority, bay_str *out_path)
{
    static const bay_str mark = STR_INIT("://");
    size_t colon = str_find(url, ':');
    bay_str rest = str_from(url, colon);
    if (!str_starts(rest, mark) || str_find(url, '?') < url.len || str_find(url, '#') < url.len) {
        return false;
    }
    rest = str_from(rest, mark.len);
    *out_scheme = str_head(url, colon);
    *out_authority = str_head(rest, str_find(rest, '/'));
    *out_path = str_from(rest, out_authority->len);
    bay_str port = str_eq_nocase(*out_scheme, STR("https"))  ? STR(":443")
                   : str_eq_nocase(*out_scheme, STR("http")) ? STR(":80")
                                                             : STR("");
    if (port.len > 0 && str_ends(*out_authority, port)) {
        *out_authority = str_head(*out_authority, out_authority->len - port.len);
    }
    *out_path = out_path->len > 0 ? *out_path : STR("/"); /* RFC 3986 section 6.2.3 */
    return out_authority->len > 0 && str_find(*out_authority, '@') == out_authority->len;
}

bool dpop_url_is(bay_str one, bay_str other)
{
    bay_str schemes[2];
    bay_str authorities[2];
    bay_str paths[2];
    return split(one, &schemes[0], &authorities[0], &paths[0]) &&
           split(other, &schemes[1], &authorities[1], &paths[1]) &&
           str_eq_nocase(schemes[0], schemes[1]) && str_eq_nocase(authorities[0], authorities[1]) &&
           str_eq(paths[0], paths[1]);
}

static bool is_this_url(bay_str said, const dpop_expected *expected)
{
    for (size_t i = 0; i < expected->url_count; i++) {
        if (dpop_url_is(said, expected->urls[i])) {
            return true;
        }
    }
    return false;
}

/* ---- what it must say ------------------------------------------------------------------------ */

static bay_err check_hash(json_val claims, const dpop_expected *expected, bay_diag *diag)
{
    unsigned char digest[DIGEST_BYTES];
    char text[DIGEST_CHARS + 1];
    buf hash = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    bay_err err = digest_bytes(expected->token, digest);
    if (err != BAY_OK) {
        return err;
    }
    base64_encode(&hash, (bay_str){(const char *)digest, sizeof(digest)}, BASE64_URL);
    CHECK(hash.err == BAY_OK);
    return json_str_eq(json_get(claims, STR("ath")), buf_view(&hash))
               ? BAY_OK
               : deny(diag, "is for another token");
}

static bay_err check_claims(proof *self, const dpop_expected *expected, arena *memory,
                            bay_diag *diag)
{
    json_val claims = json_root(&self->payload);
    bay_str url = {"", 0};
    double issued_s = 0;
    double now_ms = (double)expected->now_ms;
    if (!json_str_eq(json_get(claims, STR("htm")), expected->method)) {
        return deny(diag, "is for another method");
    }
    json_val said = json_get(claims, STR("htu"));
    bay_err err = json_is(said, JSON_STRING) ? json_str(said, memory, &url) : BAY_ERR_DENIED;
    if (err == BAY_ERR_NOMEM) {
        return err;
    }
    if (err != BAY_OK || !is_this_url(url, expected)) {
        return deny(diag, "is for another URL");
    }
    json_val issued = json_get(claims, STR("iat"));
    if (!json_is(issued, JSON_NUMBER) || json_double(issued, &issued_s) != BAY_OK ||
        !(issued_s >= 0 && issued_s < 1e12) || issued_s * 1000 < now_ms - DPOP_WINDOW_MS ||
        issued_s * 1000 > now_ms + DPOP_WINDOW_MS) {
        return deny(diag, "was not made just now");
    }
    self->issued_ms = (uint64_t)(issued_s * 1000);
    json_val id = json_get(claims, STR("jti"));
    if (!json_is(id, JSON_STRING) || json_raw(id).len > DPOP_ID_BYTES ||
        json_str(id, memory, &self->id) != BAY_OK || self->id.len == 0) {
        return deny(diag, "has no id, or one that is too long");
    }
    return check_hash(claims, expected, diag);
}

static bay_err check_key(const proof *self, const jose_keys *keys, const dpop_expected *expected,
                         bay_diag *diag)
{
    char text[DIGEST_CHARS + 1];
    buf thumbprint = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    bay_err err = jose_keys_thumbprint(keys, &thumbprint);
    if (err != BAY_OK) {
        return err;
    }
    if (!str_eq_secret(buf_view(&thumbprint), expected->thumbprint)) {
        return deny(diag, "is of another key than the token's");
    }
    jose_header header = self->header;
    header.key_id = STR(""); /* the key is the one that it brings, whatever it is called */
    err = jose_verify_encoded(keys, &header, self->header_text, self->payload_text,
                              self->signature_text);
    return err == BAY_ERR_DENIED ? deny(diag, "has a signature that its key did not make") : err;
}

static bay_err check_nonce(const proof *self, const dpop_expected *expected, arena *memory,
                           bay_diag *diag)
{
    json_val said = json_get(json_root(&self->payload), STR("nonce"));
    bay_str nonce = {"", 0};
    if (expected->ring == NULL) {
        return BAY_OK;
    }
    if (json_is(said, JSON_STRING) && json_str(said, memory, &nonce) == BAY_ERR_NOMEM) {
        return BAY_ERR_NOMEM;
    }
    return dpop_nonce_is_good(expected->ring, expected->now_ms, nonce)
               ? BAY_OK
               : diag_set(diag, BAY_ERR_NOT_FOUND, "the DPoP proof has no nonce of this time");
}

/* Of one key: what another key calls its proofs is its own affair. */
static bay_err check_replay(const proof *self, const dpop_expected *expected, dpop_replays *replays,
                            bay_diag *diag)
{
    unsigned char digest[DIGEST_BYTES];
    char text[SEEN_BYTES];
    buf seen = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    buf_str(&seen, expected->thumbprint);
    buf_char(&seen, '\0');
    buf_str(&seen, self->id);
    bay_err err = seen.err != BAY_OK ? seen.err : digest_bytes(buf_view(&seen), digest);
    if (err == BAY_OK) {
        err =
            dpop_replays_take(replays, digest, self->issued_ms + DPOP_WINDOW_MS, expected->now_ms);
    }
    return err == BAY_ERR_DUPLICATE ? diag_set(diag, err, "the DPoP proof was used before")
           : err == BAY_ERR_LIMIT
               ? diag_set(diag, err, "so many DPoP proofs are remembered that no other can be")
               : err;
}

bay_err dpop_check(bay_str text, const dpop_expected *expected, dpop_replays *replays,
                   bay_diag *diag)
{
    arena memory;
    proof read;
    jose_keys *keys = NULL;
    arena_init(&memory, SCRATCH_BYTES);
    bay_err err = read_proof(text, &memory, &read, diag);
    err = err == BAY_OK ? check_claims(&read, expected, &memory, diag) : err;
    err = err == BAY_OK ? read_key(&read, &keys, diag) : err;
    err = err == BAY_OK ? check_key(&read, keys, expected, diag) : err;
    err = err == BAY_OK ? check_nonce(&read, expected, &memory, diag) : err;
    err = err == BAY_OK ? check_replay(&read, expected, replays, diag) : err;
    jose_keys_free(keys);
    arena_fini(&memory);
    return err;
}
