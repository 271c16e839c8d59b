#include "auth/principal.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "auth/digest.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/utf8.h"

/* A gateway remembers one for each token that is in use: it is small. The texts lie behind the
 * struct: the binding, of which issuer, subject and client are parts, the scopes, the token. */
struct auth_principal {
    atomic_uint references;
    uint8_t proof;
    uint16_t identity_len; /* the identity is the beginning of the binding */
    uint16_t binding_len;
    uint16_t scopes_len;
    uint16_t token_len;
    uint16_t places[3]; /* in the binding: of issuer, subject, client */
    uint16_t lens[3];
    uint64_t expires_at_ms;
    const auth_principal *actor; /* counted */
    json_doc *claims;            /* NULL: none */
    char text[];
};

_Static_assert(PRINCIPAL_IDENTITY_BYTES <= UINT16_MAX && PRINCIPAL_SCOPES_BYTES <= UINT16_MAX,
               "lengths of two bytes");

enum { ISSUER, SUBJECT, CLIENT };

static const char *const proof_names[PRINCIPAL_PROOFS] = {
    [PRINCIPAL_LOCAL] = "local", [PRINCIPAL_PROGRAM] = "program",         [PRINCIPAL_KEY] = "key",
    [PRINCIPAL_TOKEN] = "token", [PRINCIPAL_CERTIFICATE] = "certificate",
};

static unsigned actors_of(const auth_principal *self)
{
    unsigned count = 0;
    for (; self != NULL; self = self->actor) {
        count++;
    }
    return count;
}

static bay_err check_text(bay_str text, size_t most)
{
    if (text.len > most) {
        return BAY_ERR_LIMIT;
    }
    const unsigned char *at = (const unsigned char *)text.at;
    return text.len == 0 || json_utf8_skip(at, at + text.len) == at + text.len ? BAY_OK
                                                                               : BAY_ERR_INVALID;
}

static bay_err check_parts(const principal_parts *parts)
{
    const bay_str texts[] = {parts->issuer, parts->subject, parts->client};
    if (parts->subject.len == 0) {
        return BAY_ERR_INVALID;
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        bay_err err = check_text(texts[i], PRINCIPAL_TEXT_BYTES);
        if (err != BAY_OK) {
            return err;
        }
    }
    if (json_raw(parts->claims).len > PRINCIPAL_CLAIMS_BYTES ||
        actors_of(parts->actor) >= PRINCIPAL_ACTORS || parts->token.len > PRINCIPAL_TOKEN_BYTES) {
        return BAY_ERR_LIMIT;
    }
    if (parts->claims.doc != NULL && !json_is(parts->claims, JSON_OBJECT)) {
        return BAY_ERR_TYPE;
    }
    if (json_is_deeper(parts->claims, PRINCIPAL_CLAIMS_DEPTH)) {
        return BAY_ERR_DEPTH;
    }
    return check_text(parts->scopes, PRINCIPAL_SCOPES_BYTES);
}

/* Appends ":length:text"; the place of the text within `out`. */
static size_t write_part(buf *out, bay_str text)
{
    buf_char(out, ':');
    buf_uint(out, text.len);
    buf_char(out, ':');
    size_t at = out->len;
    buf_str(out, text);
    return at;
}

bay_err principal_new(const principal_parts *parts, const auth_principal **out)
{
    char text[PRINCIPAL_IDENTITY_BYTES];
    buf binding = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    bay_err err = check_parts(parts);
    if (err != BAY_OK) {
        return err;
    }
    buf_str(&binding, str_of(proof_names[parts->proof]));
    const bay_str texts[] = {parts->issuer, parts->subject, parts->client};
    size_t places[ARRAY_LEN(texts)];
    size_t identity_len = 0;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        places[i] = write_part(&binding, texts[i]);
        identity_len = i == SUBJECT ? binding.len : identity_len;
    }
    CHECK(binding.err == BAY_OK);
    json_doc *claims = NULL;
    if (!json_is(parts->claims, JSON_MISSING)) {
        err = json_clone(parts->claims, &claims);
    }
    auth_principal *self =
        err == BAY_OK
            ? mem_zalloc(sizeof(*self) + binding.len + parts->scopes.len + parts->token.len)
            : NULL;
    if (self == NULL) {
        mem_free(claims);
        return BAY_ERR_NOMEM;
    }
    char *at = self->text;
    str_put(&at, buf_view(&binding));
    str_put(&at, parts->scopes);
    str_put(&at, parts->token);
    atomic_init(&self->references, 1);
    self->proof = (uint8_t)parts->proof;
    self->identity_len = (uint16_t)identity_len;
    self->binding_len = (uint16_t)binding.len;
    self->scopes_len = (uint16_t)parts->scopes.len;
    self->token_len = (uint16_t)parts->token.len;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        self->places[i] = (uint16_t)places[i];
        self->lens[i] = (uint16_t)texts[i].len;
    }
    self->expires_at_ms = parts->expires_at_ms;
    self->actor = principal_ref(parts->actor);
    self->claims = claims;
    *out = self;
    return BAY_OK;
}

/* Takes ":length:text" off the front. */
static bool read_part(bay_str *rest, bay_str *out)
{
    uint64_t len;
    if (rest->len == 0 || rest->at[0] != ':') {
        return false;
    }
    bay_str from = str_from(*rest, 1);
    size_t colon = str_find(from, ':');
    if (colon == from.len || !str_uint(str_head(from, colon), &len)) {
        return false;
    }
    from = str_from(from, colon + 1);
    if (len > from.len) {
        return false;
    }
    *out = str_head(from, (size_t)len);
    *rest = str_from(from, (size_t)len);
    return true;
}

bay_err principal_of_identity(bay_str identity, const auth_principal **out)
{
    if (identity.len == 0) {
        *out = NULL;
        return BAY_OK;
    }
    principal_parts parts = {.proof = PRINCIPAL_PROOFS};
    size_t colon = str_find(identity, ':');
    for (int proof = 0; proof < PRINCIPAL_PROOFS; proof++) {
        if (str_eq(str_head(identity, colon), str_of(proof_names[proof]))) {
            parts.proof = (principal_proof)proof;
        }
    }
    bay_str rest = str_from(identity, colon);
    if (parts.proof == PRINCIPAL_PROOFS || !read_part(&rest, &parts.issuer) ||
        !read_part(&rest, &parts.subject) || rest.len > 0) {
        return BAY_ERR_SYNTAX;
    }
    const auth_principal *found;
    bay_err err = principal_new(&parts, &found);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? err : BAY_ERR_SYNTAX;
    }
    /* Another spelling of a length would be another owner of the same name. */
    if (!str_eq(principal_identity(found), identity)) {
        principal_unref(found);
        return BAY_ERR_SYNTAX;
    }
    *out = found;
    return BAY_OK;
}

const auth_principal *principal_local(void)
{
    char text[24];
    buf subject = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    const auth_principal *self;
    buf_uint(&subject, geteuid());
    principal_parts parts = {.proof = PRINCIPAL_LOCAL, .subject = buf_view(&subject)};
    return principal_new(&parts, &self) == BAY_OK ? self : NULL;
}

const auth_principal *principal_ref(const auth_principal *self)
{
    if (self != NULL) {
        atomic_fetch_add_explicit(&((auth_principal *)self)->references, 1, memory_order_relaxed);
    }
    return self;
}

void principal_unref(const auth_principal *self)
{
    while (self != NULL) {
        auth_principal *mine = (auth_principal *)self;
        if (atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) != 1) {
            return;
        }
        self = mine->actor;
        mem_free(mine->claims);
        mem_wipe(mine->text + mine->binding_len + mine->scopes_len, mine->token_len);
        mem_free(mine);
    }
}

static const bay_str nothing = STR_INIT("");

bay_str principal_identity(const auth_principal *self)
{
    return self != NULL ? (bay_str){self->text, self->identity_len} : nothing;
}

bay_str principal_binding(const auth_principal *self)
{
    return self != NULL ? (bay_str){self->text, self->binding_len} : nothing;
}

static bay_str part_of(const auth_principal *self, int part)
{
    return self != NULL ? (bay_str){self->text + self->places[part], self->lens[part]} : nothing;
}

bay_str principal_issuer(const auth_principal *self)
{
    return part_of(self, ISSUER);
}

bay_str principal_subject(const auth_principal *self)
{
    return part_of(self, SUBJECT);
}

bay_str principal_client(const auth_principal *self)
{
    return part_of(self, CLIENT);
}

bay_str principal_scopes(const auth_principal *self)
{
    return self != NULL ? (bay_str){self->text + self->binding_len, self->scopes_len} : nothing;
}

bay_str principal_token(const auth_principal *self)
{
    return self != NULL
               ? (bay_str){self->text + self->binding_len + self->scopes_len, self->token_len}
               : nothing;
}

/* With its length, so that no two lists of texts are the same bytes. */
static void rights_put(buf *out, bay_str text)
{
    buf_uint(out, text.len);
    buf_char(out, ':');
    buf_str(out, text);
}

bay_err principal_rights(const auth_principal *self, unsigned char out[PRINCIPAL_RIGHTS_BYTES])
{
    buf text;
    buf_init(&text, PRINCIPAL_ACTORS * (PRINCIPAL_IDENTITY_BYTES + PRINCIPAL_SCOPES_BYTES + 64));
    for (const auth_principal *at = self; at != NULL; at = at->actor) {
        rights_put(&text, principal_binding(at));
        rights_put(&text, principal_scopes(at));
    }
    bay_err err = text.err == BAY_OK ? digest_bytes(buf_view(&text), out) : text.err;
    buf_fini(&text);
    return err;
}

const auth_principal *principal_actor(const auth_principal *self)
{
    return self != NULL ? self->actor : NULL;
}

const char *principal_proof_name(const auth_principal *self)
{
    return self != NULL ? proof_names[self->proof] : "anonymous";
}

bool principal_has_proof(const auth_principal *self, principal_proof proof)
{
    return self != NULL && self->proof == proof;
}

uint64_t principal_expires_at(const auth_principal *self)
{
    return self != NULL ? self->expires_at_ms : 0;
}

bool principal_is_same(const auth_principal *one, const auth_principal *other)
{
    return str_eq_secret(principal_identity(one), principal_identity(other));
}

bool scopes_have(bay_str scopes, bay_str scope)
{
    while (scopes.len > 0) {
        size_t space = str_find(scopes, ' ');
        if (scope.len > 0 && str_eq(str_head(scopes, space), scope)) {
            return true;
        }
        scopes = str_from(scopes, space < scopes.len ? space + 1 : space);
    }
    return false;
}

bool principal_has_scope(const auth_principal *self, bay_str scope)
{
    return scopes_have(principal_scopes(self), scope);
}

bool principal_has_scopes(const auth_principal *self, bay_str scopes)
{
    if (self != NULL && self->proof == PRINCIPAL_LOCAL) {
        return true;
    }
    while (scopes.len > 0) {
        bay_str one = str_head(scopes, str_find(scopes, ' '));
        scopes = str_from(scopes, one.len + 1);
        if (one.len > 0 && !principal_has_scope(self, one)) {
            return false;
        }
    }
    return true;
}

json_val principal_claim(const auth_principal *self, bay_str pointer)
{
    bool has_claims = self != NULL && self->claims != NULL;
    return has_claims ? json_pointer(json_root(self->claims), pointer) : JSON_NONE;
}

bool principal_is_expired(const auth_principal *self, uint64_t now_ms)
{
    for (; self != NULL; self = self->actor) {
        if (self->expires_at_ms != 0 && self->expires_at_ms <= now_ms) {
            return true;
        }
    }
    return false;
}
