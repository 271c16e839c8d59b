/* A token's parts and its signature. What it says is access_claims.c's. */
#include "auth/access_token.h"

#include "auth/jose_internal.h"
#include "auth/jose_primitive.h"
#include "base/err.h"
#include "wire/base64.h"

static bay_err deny(bay_diag *diag, const char *why)
{
    return diag_set(diag, BAY_ERR_DENIED, "the token %s", why);
}

bool access_token_is_jwt(bay_str token)
{
    size_t first = str_find(token, '.');
    bay_str rest = str_from(token, first + 1);
    size_t second = str_find(rest, '.');
    /* base64url of '{"' and of '{' with white space behind it */
    return first < token.len && second < rest.len && token.len > 2 && token.at[0] == 'e';
}

/* RFC 7519 section 5.1, RFC 9068 section 2.1. Tokens of other uses (a DPoP proof, an ID-JAG, a
 * signed card) are none of ours, whoever signed them. */
static bool type_is_fine(json_val header)
{
    json_val typ = json_get(header, STR("typ"));
    bay_str text = {"", 0};
    if (json_is(typ, JSON_MISSING)) {
        return true;
    }
    return json_str_plain(typ, &text) &&
           (str_eq_nocase(text, STR("JWT")) || str_eq_nocase(text, STR("at+jwt")) ||
            str_eq_nocase(text, STR("application/at+jwt")));
}

/* The payload: its bytes, then what they say. */
static bay_err read_payload(bay_str encoded, arena *memory, json_doc **out, bay_diag *diag)
{
    buf text;
    bay_str copy = {NULL, 0};
    buf_init(&text, ACCESS_TOKEN_BYTES);
    bay_err err = base64_decode(&text, encoded, BASE64_URL);
    if (err == BAY_OK) {
        err = arena_dup(memory, buf_view(&text), &copy);
    }
    buf_fini(&text);
    json_doc *doc = err == BAY_OK ? arena_alloc(memory, sizeof(*doc)) : NULL;
    if (err == BAY_OK && doc == NULL) {
        err = BAY_ERR_NOMEM;
    }
    if (err == BAY_OK) {
        err = jose_read_object(doc, copy, &jose_token_limits, memory, "the token", diag);
    }
    if (err == BAY_OK) {
        *out = doc;
    }
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err
                                                 : deny(diag, "is no JSON object in base64url");
}

bay_err access_token_read(bay_str token, arena *memory, access_token *out, bay_diag *diag)
{
    if (token.len > ACCESS_TOKEN_BYTES) {
        return deny(diag, "is too long");
    }
    size_t first = str_find(token, '.');
    bay_str rest = str_from(token, first + 1);
    size_t second = str_find(rest, '.');
    access_token read = {.header_text = str_head(token, first),
                         .payload_text = str_head(rest, second),
                         .signature_text = str_from(rest, second + 1)};
    if (first == token.len || second == rest.len || read.signature_text.len == 0 ||
        str_find(read.signature_text, '.') < read.signature_text.len) {
        return deny(diag, "is no signed JSON Web Token");
    }
    jose_header *header = arena_alloc(memory, sizeof(*header));
    if (header == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = jose_read_header(read.header_text, memory, header);
    if (err != BAY_OK) {
        return err == BAY_ERR_DENIED ? deny(diag, "has a header that is not understood") : err;
    }
    if (!type_is_fine(json_root(&header->doc))) {
        return deny(diag, "is of another type");
    }
    json_doc *doc = NULL;
    err = read_payload(read.payload_text, memory, &doc, diag);
    if (err != BAY_OK) {
        return err;
    }
    read.header = header;
    read.key_id = header->key_id;
    read.claims = json_root(doc);
    /* an issuer is a URL: it needs no escapes */
    if (!json_str_plain(json_get(read.claims, STR("iss")), &read.issuer)) {
        return deny(diag, "names no issuer");
    }
    *out = read;
    return BAY_OK;
}

bay_err access_token_verify(const access_token *self, const jose_keys *keys, bay_diag *diag)
{
    size_t fitting = jose_keys_named(keys, self->header);
    if (fitting == 0) {
        return diag_set(diag, BAY_ERR_NOT_FOUND,
                        "the token names a key that its issuer does not have");
    }
    if (fitting > 1 && self->key_id.len == 0) {
        return deny(diag, "does not say which key of its issuer signed it");
    }
    bay_err err = jose_verify_encoded(keys, self->header, self->header_text, self->payload_text,
                                      self->signature_text);
    return err == BAY_ERR_DENIED ? deny(diag, "has a signature that its key did not make") : err;
}

unsigned access_algorithm(bay_str name)
{
    jose_algorithm algorithm;
    return jose_algorithm_find(name, &algorithm) ? 1U << algorithm : 0;
}
