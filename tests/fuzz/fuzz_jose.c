/* Keys, headers and tokens from strangers. Four things are made of an input: a key set, a protected
 * header, a token, and what an authorization server says of one; signatures are genuine where the
 * first byte says so, made by a key that is known, so that what is behind the signature is reached.
 * Nothing crashes; what is believed was signed by us over just these bytes, and a token that is
 * believed says when it ends. */
#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "auth/access_token.h"
#include "auth/card_signature.h"
#include "auth/jose.h"
#include "auth/jose_primitive.h"
#include "base/check.h"
#include "base/str.h"
#include "wire/base64.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 4 << 20 };

#define X "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
#define Y "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
#define D "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"

static jose_raw *signer(void)
{
    static jose_raw *made;
    if (made == NULL) {
        const jose_member members[] = {{"x", STR(X)}, {"y", STR(Y)}, {"d", STR(D)}};
        CHECK(jose_raw_new(JOSE_P256, members, 3, &made) == BAY_OK);
    }
    return made;
}

static const jose_keys *known(void)
{
    static jose_keys *made;
    if (made == NULL) {
        CHECK(
            jose_keys_new(STR("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" X "\",\"y\":\"" Y "\"}"),
                          &made, NULL) == BAY_OK);
    }
    return made;
}

static void try_keys(bay_str text)
{
    jose_keys *keys = NULL;
    jose_key *key = NULL;
    if (jose_keys_new(text, &keys, NULL) == BAY_OK) {
        CHECK(jose_keys_count(keys) <= JOSE_KEYS);
        CHECK(jose_verify(keys, STR("eyJhbGciOiJFUzI1NiJ9"), STR("x"), STR("AAAA")) != BAY_OK);
    }
    jose_keys_free(keys);
    if (jose_key_new(text, STR(""), &key, NULL) == BAY_OK) {
        buf out;
        buf_init(&out, ROOM);
        CHECK(jose_key_public(key, &out) == BAY_OK);
        CHECK(jose_keys_new(buf_view(&out), &keys, NULL) == BAY_OK);
        CHECK(jose_keys_count(keys) == 1);
        jose_keys_free(keys);
        buf_fini(&out);
    }
    jose_key_free(key);
}

/* "HEADER.PAYLOAD.SIGNATURE" of what the input says, signed when it can be. */
static void write_token(bay_str header, bay_str payload, buf *out)
{
    buf parts[2];
    buf_init(&parts[0], ROOM);
    buf_init(&parts[1], ROOM);
    base64_encode(&parts[0], header, BASE64_URL);
    base64_encode(&parts[1], payload, BASE64_URL);
    buf_str(out, buf_view(&parts[0]));
    buf_char(out, '.');
    buf_str(out, buf_view(&parts[1]));
    buf_char(out, '.');
    /* Our headers name their key's algorithm. */
    (void)!jose_raw_sign(signer(), JOSE_ES256, buf_view(&parts[0]), buf_view(&parts[1]), out);
    buf_fini(&parts[0]);
    buf_fini(&parts[1]);
}

static void try_token(bay_str text)
{
    static const bay_str audience = STR_INIT("a");
    const access_rules rules[] = {{.issuer = STR("i"),
                                   .audiences = &audience,
                                   .audience_count = 1,
                                   .now_ms = 1000000,
                                   .skew_ms = 1000},
                                  {.issuer = STR("i"), .now_ms = 1000000}};
    for (size_t i = 0; i < 2; i++) {
        arena memory;
        access_token token;
        access_claims claims;
        const auth_principal *made = NULL;
        bay_diag diag = {.text = ""};
        arena_init(&memory, ROOM);
        bay_err err = access_token_read(text, &memory, &token, &diag);
        err = err == BAY_OK ? access_token_check(&token, &rules[i], &memory, &claims, &diag) : err;
        err = err == BAY_OK ? access_token_verify(&token, known(), &diag) : err;
        err = err == BAY_OK ? access_claims_principal(&claims, NULL, 0, &made, &diag) : err;
        if (err == BAY_OK) {
            double ends = 0;
            bay_str subject = principal_subject(made);
            CHECK(i == 0); /* no audience, no token */
            CHECK(json_double(json_get(claims.all, STR("exp")), &ends) == BAY_OK);
            CHECK(ends * 1000 + 1000 > 1000000);
            CHECK(str_eq(principal_issuer(made), STR("i")));
            CHECK(subject.len > 0 && memchr(subject.at, '\n', subject.len) == NULL);
        } else {
            CHECK(err == BAY_ERR_DENIED || err == BAY_ERR_NOT_FOUND);
            CHECK(diag.code == err && made == NULL);
        }
        principal_unref(made);
        arena_fini(&memory);
    }
}

/* The input as what an authorization server answers. */
static void try_introspection(bay_str text)
{
    static const bay_str audience = STR_INIT("a");
    const access_rules rules = {
        .issuer = STR("i"), .audiences = &audience, .audience_count = 1, .now_ms = 1000000};
    arena memory;
    json_doc doc;
    access_claims claims;
    arena_init(&memory, ROOM);
    if (json_parse(&doc, text, NULL, &memory, NULL) == BAY_OK &&
        access_introspected_check(json_root(&doc), &rules, &memory, &claims, NULL) == BAY_OK) {
        CHECK(json_is(json_get(json_root(&doc), STR("active")), JSON_TRUE));
        CHECK(claims.who.expires_at_ms > 1000000 && claims.who.subject.len > 0);
        CHECK(str_eq(claims.who.issuer, STR("i")));
    }
    arena_fini(&memory);
}

static void try_card(bay_str text)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, (size_t)64 << 20);
    if (json_parse(&doc, text, NULL, &memory, NULL) == BAY_OK) {
        card_signer signers[CARD_SIGNATURES];
        jose_key *key = NULL;
        buf out;
        buf_init(&out, ROOM);
        CHECK(card_verify(json_root(&doc), known(), NULL) != BAY_OK);
        CHECK(card_signers(json_root(&doc), &memory, signers, CARD_SIGNATURES) <= CARD_SIGNATURES);
        CHECK(jose_key_new(STR("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" X "\",\"y\":\"" Y
                               "\",\"d\":\"" D "\"}"),
                           STR("k"), &key, NULL) == BAY_OK);
        if (card_sign(json_root(&doc), key, STR(""), &out, NULL) == BAY_OK) {
            json_doc again;
            CHECK(json_parse(&again, buf_view(&out), NULL, &memory, NULL) == BAY_OK);
            CHECK(card_verify(json_root(&again), known(), NULL) == BAY_OK);
        } else {
            CHECK(out.len == 0);
        }
        jose_key_free(key);
        buf_fini(&out);
    }
    arena_fini(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    bay_str rest = {(const char *)data + 2, size - 2};
    size_t cut = rest.len > 0 ? data[1] % (rest.len + 1) : 0;
    buf token;
    switch (data[0] % 5) {
    case 0:
        try_keys(rest);
        break;
    case 1:
        try_token(rest);
        break;
    case 2:
        buf_init(&token, ROOM);
        write_token(str_head(rest, cut), str_from(rest, cut), &token);
        try_token(buf_view(&token));
        buf_fini(&token);
        break;
    case 3:
        try_card(rest);
        break;
    default:
        try_introspection(rest);
        break;
    }
    return 0;
}
