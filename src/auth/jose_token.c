/* JSON Web Tokens: the signature first, then what the token says of itself. */
#include "auth/jose.h"
#include "auth/jose_internal.h"
#include "auth/jose_primitive.h"
#include "base/err.h"
#include "wire/base64.h"

static bay_err deny(bay_diag *diag, const char *why)
{
    return diag_set(diag, BAY_ERR_DENIED, "the token %s", why);
}

/* RFC 7519 section 5.1, RFC 9068 section 2.1. Tokens of other uses (a DPoP proof, a signed card)
 * are none of ours, whoever signed them. */
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

typedef enum when { ABSENT, SAID, NO_TIME } when;

/* A NumericDate in ms: seconds since 1970, perhaps with a fraction. */
static when time_of(json_val value, double *out_ms)
{
    double seconds = 0;
    if (json_is(value, JSON_MISSING)) {
        return ABSENT;
    }
    if (!json_is(value, JSON_NUMBER) || json_double(value, &seconds) != BAY_OK || seconds < 0 ||
        seconds > 1e12) {
        return NO_TIME;
    }
    *out_ms = seconds * 1000;
    return SAID;
}

static bay_err check_times(json_val claims, const jose_expected *expected,
                           uint64_t *out_expires_at_ms, bay_diag *diag)
{
    double now = (double)expected->now_ms;
    double leeway = (double)expected->leeway_ms;
    double at = 0;
    if (time_of(json_get(claims, STR("exp")), &at) != SAID) {
        return deny(diag, "does not say when it expires");
    }
    if (now >= at + leeway) {
        return deny(diag, "has expired");
    }
    *out_expires_at_ms = (uint64_t)at;
    when said = time_of(json_get(claims, STR("nbf")), &at);
    if (said == NO_TIME || (said == SAID && at > now + leeway)) {
        return deny(diag, "is not valid yet");
    }
    said = time_of(json_get(claims, STR("iat")), &at);
    if (said == NO_TIME || (said == SAID && at > now + leeway)) {
        return deny(diag, "was issued in the future");
    }
    return BAY_OK;
}

static bay_err check_audience(json_val claims, bay_str expected, bay_diag *diag)
{
    json_val audience = json_get(claims, STR("aud"));
    bool is_ours = expected.len == 0
                       ? json_is(audience, JSON_MISSING)
                       : json_str_eq(audience, expected) || jose_list_has(audience, expected);
    return is_ours ? BAY_OK : deny(diag, "is for another audience");
}

/* "" when it is missing; BAY_ERR_DENIED when it is no text that can stand in a header or a log. */
static bay_err text_claim(json_val claims, bay_str name, arena *memory, bay_str *out)
{
    json_val value = json_get(claims, name);
    bay_str text = {"", 0};
    if (json_is(value, JSON_MISSING)) {
        *out = text;
        return BAY_OK;
    }
    bay_err err = json_is(value, JSON_STRING) ? json_str(value, memory, &text) : BAY_ERR_DENIED;
    for (size_t i = 0; err == BAY_OK && i < text.len; i++) {
        if ((unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f) {
            err = BAY_ERR_DENIED;
        }
    }
    if (err == BAY_OK) {
        *out = text;
    }
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : BAY_ERR_DENIED;
}

static bay_err read_scopes(json_val claims, arena *memory, bay_str *out)
{
    json_val list = json_get(claims, STR("scp"));
    if (!json_is(json_get(claims, STR("scope")), JSON_MISSING) || !json_is(list, JSON_ARRAY)) {
        bool has_scope = !json_is(json_get(claims, STR("scope")), JSON_MISSING);
        return text_claim(claims, has_scope ? STR("scope") : STR("scp"), memory, out);
    }
    buf joined;
    buf_init(&joined, JOSE_TOKEN_BYTES);
    bay_err err = BAY_OK;
    for (json_iter it = json_iter_of(list); err == BAY_OK && json_next(&it);) {
        bay_str one = {"", 0};
        /* A space would make two of one. */
        if (!json_str_plain(it.value, &one) || str_find(one, ' ') < one.len) {
            err = BAY_ERR_DENIED;
            break;
        }
        if (joined.len > 0) {
            buf_char(&joined, ' ');
        }
        buf_str(&joined, one);
        err = joined.err;
    }
    if (err == BAY_OK) {
        err = arena_dup(memory, buf_view(&joined), out);
    }
    buf_fini(&joined);
    return err;
}

/* The header is in the claims' arena as well: it goes with it. */
static bay_err check_claims(json_val claims, const jose_expected *expected, arena *memory,
                            jose_claims *out, bay_diag *diag)
{
    jose_claims read = {.all = claims};
    bay_err err = check_times(claims, expected, &read.expires_at_ms, diag);
    if (err == BAY_OK) {
        err = check_audience(claims, expected->audience, diag);
    }
    if (err != BAY_OK) {
        return err;
    }
    err = text_claim(claims, STR("iss"), memory, &read.issuer);
    if (err == BAY_OK) {
        err = text_claim(claims, STR("sub"), memory, &read.subject);
    }
    if (err == BAY_OK) {
        bool has_client_id = !json_is(json_get(claims, STR("client_id")), JSON_MISSING);
        err =
            text_claim(claims, has_client_id ? STR("client_id") : STR("azp"), memory, &read.client);
    }
    if (err == BAY_OK) {
        err = read_scopes(claims, memory, &read.scopes);
    }
    if (err != BAY_OK) {
        return err == BAY_ERR_DENIED ? deny(diag, "has a claim of another type") : err;
    }
    if (expected->issuer.len > 0 && !str_eq(read.issuer, expected->issuer)) {
        return deny(diag, "is of another issuer");
    }
    *out = read;
    return BAY_OK;
}

static bay_err check_signature(const jose_keys *keys, bay_str token, const jose_header *header,
                               bay_str header_text, bay_str payload, bay_str signature)
{
    unsigned char digest[JOSE_DIGEST_BYTES];
    bool has_digest = jose_raw_digest(token, digest);
    if (has_digest && jose_keys_recall(keys, digest)) {
        return BAY_OK;
    }
    bay_err err = jose_verify_encoded(keys, header, header_text, payload, signature);
    if (err == BAY_OK && has_digest) {
        jose_keys_remember(keys, digest);
    }
    return err;
}

bay_err jose_token_verify(const jose_keys *keys, bay_str token, const jose_expected *expected,
                          arena *memory, jose_claims *out, bay_diag *diag)
{
    if (token.len > JOSE_TOKEN_BYTES) {
        return diag_set(diag, BAY_ERR_LIMIT, "a token of more than %d bytes", JOSE_TOKEN_BYTES);
    }
    size_t first = str_find(token, '.');
    bay_str header_text = str_head(token, first);
    bay_str rest = str_from(token, first + 1);
    size_t second = str_find(rest, '.');
    bay_str payload = str_head(rest, second);
    bay_str signature = str_from(rest, second + 1);
    if (first == token.len || second == rest.len || str_find(signature, '.') < signature.len) {
        return diag_set(diag, BAY_ERR_SYNTAX, "this is no compact JSON Web Token");
    }
    jose_header header;
    bay_err err = jose_read_header(header_text, memory, &header);
    if (err == BAY_OK && !type_is_fine(json_root(&header.doc))) {
        err = BAY_ERR_DENIED;
    }
    if (err == BAY_OK) {
        err = check_signature(keys, token, &header, header_text, payload, signature);
    }
    if (err != BAY_OK) {
        return err == BAY_ERR_DENIED ? deny(diag, "is signed by no key that is known here") : err;
    }
    buf text;
    bay_str copy = {NULL, 0};
    buf_init(&text, JOSE_TOKEN_BYTES);
    err = base64_decode(&text, payload, BASE64_URL);
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
    return err == BAY_OK ? check_claims(json_root(doc), expected, memory, out, diag) : err;
}
