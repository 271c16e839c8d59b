/* What a token says, and whom it makes of its bearer. */
#include "auth/access_token.h"

#include "auth/jose_internal.h"
#include "base/check.h"
#include "base/err.h"
#include "base/str.h"

enum { FIELD_BYTES = 64 << 10 };

static bay_err deny(bay_diag *diag, const char *why)
{
    return diag_set(diag, BAY_ERR_DENIED, "the token %s", why);
}

/* ---- single claims --------------------------------------------------------------------------- */

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

static bay_err check_times(json_val claims, const access_rules *rules, uint64_t *out_expires_at_ms,
                           bay_diag *diag)
{
    double now = (double)rules->now_ms;
    double skew = (double)rules->skew_ms;
    double at = 0;
    json_val end = json_get(claims, STR("exp"));
    if (time_of(end, &at) != SAID || !json_is_integer(end)) {
        return deny(diag, "does not say in whole seconds when it expires");
    }
    if (now >= at + skew) {
        return deny(diag, "has expired");
    }
    *out_expires_at_ms = (uint64_t)at;
    double expires = at;
    when said = time_of(json_get(claims, STR("nbf")), &at);
    if (said == NO_TIME || (said == SAID && at > now + skew)) {
        return deny(diag, "is not valid yet");
    }
    said = time_of(json_get(claims, STR("iat")), &at);
    if (said == NO_TIME || (said == SAID && at > now + skew)) {
        return deny(diag, "was issued in the future");
    }
    if (rules->lifetime_ms > 0 && (said != SAID || expires - at > (double)rules->lifetime_ms)) {
        return deny(diag, "is valid for longer than is allowed");
    }
    return BAY_OK;
}

static bool is_among(json_val value, const bay_str *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (json_str_eq(value, texts[i])) {
            return true;
        }
    }
    return false;
}

/* RFC 7519 section 4.1.3: a text, or a list of texts. */
static bay_err check_audience(json_val claims, const access_rules *rules, bay_diag *diag)
{
    json_val audience = json_get(claims, STR("aud"));
    bool is_ours = is_among(audience, rules->audiences, rules->audience_count);
    if (json_is(audience, JSON_ARRAY)) {
        if (json_count(audience) > ACCESS_TOKEN_AUDIENCES) {
            return deny(diag, "names too many audiences");
        }
        for (json_iter it = json_iter_of(audience); !is_ours && json_next(&it);) {
            is_ours = is_among(it.value, rules->audiences, rules->audience_count);
        }
    }
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

/* A text whose scopes are separated by spaces, or a list of scopes. */
static bay_err scopes_of(json_val value, buf *out)
{
    bay_str text = {"", 0};
    if (json_is(value, JSON_STRING)) {
        if (!json_str_plain(value, &text)) {
            return BAY_ERR_DENIED;
        }
        for (size_t i = 0; i < text.len; i++) {
            /* RFC 6749 section 3.3 */
            if (text.at[i] < 0x20 || text.at[i] > 0x7e) {
                return BAY_ERR_DENIED;
            }
        }
        buf_str(out, text);
        return out->err;
    }
    if (!json_is(value, JSON_ARRAY)) {
        return BAY_ERR_DENIED;
    }
    for (json_iter it = json_iter_of(value); out->err == BAY_OK && json_next(&it);) {
        /* A space would make two of one. */
        if (!json_str_plain(it.value, &text) || text.len == 0 || str_find(text, ' ') < text.len) {
            return BAY_ERR_DENIED;
        }
        buf_str(out, out->len > 0 ? STR(" ") : STR(""));
        buf_str(out, text);
    }
    return out->err;
}

static bay_err read_scopes(json_val claims, arena *memory, bay_str *out)
{
    json_val scope = json_get(claims, STR("scope"));
    json_val value = json_is(scope, JSON_MISSING) ? json_get(claims, STR("scp")) : scope;
    buf joined;
    if (json_is(value, JSON_MISSING)) {
        *out = STR("");
        return BAY_OK;
    }
    buf_init(&joined, PRINCIPAL_SCOPES_BYTES);
    bay_err err = scopes_of(value, &joined);
    if (err == BAY_OK) {
        err = arena_dup(memory, buf_view(&joined), out);
    }
    buf_fini(&joined);
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : BAY_ERR_DENIED;
}

/* RFC 7800: whoever brings it must prove more. What is not understood cannot be checked. */
static bay_err read_confirmation(json_val claims, access_claims *out)
{
    json_val confirmation = json_get(claims, STR("cnf"));
    if (json_is(confirmation, JSON_MISSING)) {
        return BAY_OK;
    }
    size_t known = 0;
    static const bay_str names[] = {STR_INIT("jkt"), STR_INIT("x5t#S256")};
    bay_str *const places[] = {&out->dpop_thumbprint, &out->certificate_thumbprint};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_val value = json_get(confirmation, names[i]);
        if (json_is(value, JSON_MISSING)) {
            continue;
        }
        if (!json_str_plain(value, places[i]) || places[i]->len == 0 ||
            places[i]->len > ACCESS_TOKEN_THUMBPRINT_BYTES) {
            return BAY_ERR_DENIED;
        }
        known++;
    }
    return known > 0 && known == json_count(confirmation) ? BAY_OK : BAY_ERR_DENIED;
}

/* ---- whom it makes of its bearer ------------------------------------------------------------- */

/* A client's own token may lack `sub`; the prefix tells it from a user who is called the same (RFC
 * 9068 section 5). */
static bay_err subject_of(const principal_parts *who, arena *memory, bay_str *out)
{
    buf text;
    buf_init(&text, PRINCIPAL_TEXT_BYTES);
    buf_lit(&text, "client_id:");
    buf_str(&text, who->client);
    bay_err err = text.err != BAY_OK ? text.err : arena_dup(memory, buf_view(&text), out);
    buf_fini(&text);
    return err == BAY_ERR_LIMIT ? BAY_ERR_DENIED : err;
}

static bay_err read_who(json_val claims, arena *memory, principal_parts *out)
{
    bool has_client_id = !json_is(json_get(claims, STR("client_id")), JSON_MISSING);
    bay_err err = text_claim(claims, STR("iss"), memory, &out->issuer);
    if (err == BAY_OK) {
        err = text_claim(claims, STR("sub"), memory, &out->subject);
    }
    if (err == BAY_OK) {
        err =
            text_claim(claims, has_client_id ? STR("client_id") : STR("azp"), memory, &out->client);
    }
    if (err == BAY_OK) {
        err = read_scopes(claims, memory, &out->scopes);
    }
    if (err == BAY_OK && out->subject.len == 0) {
        err = out->client.len > 0 ? subject_of(out, memory, &out->subject) : BAY_ERR_DENIED;
    }
    return err;
}

static bool has(json_val claims, bay_str name)
{
    return !json_is(json_get(claims, name), JSON_MISSING);
}

/* Other tokens of the same issuer, by what only they hold: ID tokens (OpenID Connect Core section
 * 3.1.3.3), logout tokens; and what issuers write into the payload because they have no `typ`. */
static bool is_other_token(json_val claims)
{
    static const bay_str marks[] = {STR_INIT("nonce"), STR_INIT("at_hash"), STR_INIT("c_hash"),
                                    STR_INIT("s_hash"), STR_INIT("events")};
    static const bay_str others[] = {STR_INIT("ID"), STR_INIT("Refresh"), STR_INIT("Offline"),
                                     STR_INIT("Logout")};
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        if (has(claims, marks[i])) {
            return true;
        }
    }
    json_val use = json_get(claims, STR("token_use"));
    return is_among(json_get(claims, STR("typ")), others, ARRAY_LEN(others)) ||
           (!json_is(use, JSON_MISSING) && !json_str_eq(use, STR("access")));
}

static bay_err check_client(const principal_parts *who, const access_rules *rules, bay_diag *diag)
{
    bool is_ours = rules->client_count == 0;
    for (size_t i = 0; i < rules->client_count && !is_ours; i++) {
        is_ours = str_eq(who->client, rules->clients[i]);
    }
    return is_ours ? BAY_OK : deny(diag, "was given to another client");
}

static bay_err check_claims(json_val claims, const access_rules *rules, arena *memory,
                            access_claims *out, bay_diag *diag)
{
    access_claims read = {.who = {.proof = PRINCIPAL_TOKEN}, .all = claims};
    bay_err err = check_times(claims, rules, &read.who.expires_at_ms, diag);
    if (err == BAY_OK) {
        err = check_audience(claims, rules, diag);
    }
    if (err != BAY_OK) {
        return err;
    }
    err = read_who(claims, memory, &read.who);
    if (err == BAY_OK) {
        err = read_confirmation(claims, &read);
    }
    if (err != BAY_OK) {
        return err == BAY_ERR_DENIED ? deny(diag, "has a claim of another type, or names nobody")
                                     : err;
    }
    err = check_client(&read.who, rules, diag);
    if (err == BAY_OK) {
        read.who.claims = claims;
        *out = read;
    }
    return err;
}

static bool is_typed_access(const access_token *self)
{
    bay_str typ = {"", 0};
    (void)json_str_plain(json_get(json_root(&self->header->doc), STR("typ")), &typ);
    return str_eq_nocase(typ, STR("at+jwt")) || str_eq_nocase(typ, STR("application/at+jwt"));
}

/* RFC 9068 section 2.2; `iss`, `exp`, `aud` and `sub` are looked at anyway. */
static bool is_whole(const access_token *self)
{
    return is_typed_access(self) && has(self->claims, STR("sub")) &&
           has(self->claims, STR("iat")) && has(self->claims, STR("jti")) &&
           has(self->claims, STR("client_id"));
}

bay_err access_token_check(const access_token *self, const access_rules *rules, arena *memory,
                           access_claims *out, bay_diag *diag)
{
    if (rules->algorithms != 0 && (rules->algorithms & 1U << self->header->algorithm) == 0) {
        return deny(diag, "is signed by an algorithm that its issuer does not use");
    }
    if (!str_eq(self->issuer, rules->issuer)) {
        return deny(diag, "is of another issuer");
    }
    if (is_other_token(self->claims)) {
        return deny(diag, "is no access token");
    }
    if (rules->is_typed && !is_whole(self)) {
        return deny(diag, "is not typed at+jwt with the claims that RFC 9068 demands");
    }
    return check_claims(self->claims, rules, memory, out, diag);
}

/* `aud` may name others as well if `azp` says that it was given to this client. */
static bool is_given_to(json_val claims, bay_str client)
{
    json_val audience = json_get(claims, STR("aud"));
    json_val party = json_get(claims, STR("azp"));
    bool is_alone = !json_is(audience, JSON_ARRAY) || json_count(audience) == 1;
    return json_is(party, JSON_MISSING) ? is_alone : json_str_eq(party, client);
}

bay_err id_token_check(const access_token *self, const access_rules *rules, bay_str nonce,
                       arena *memory, access_claims *out, bay_diag *diag)
{
    json_val claims = self->claims;
    access_claims read = {.who = {.proof = PRINCIPAL_TOKEN, .claims = claims}, .all = claims};
    if (rules->algorithms != 0 && (rules->algorithms & 1U << self->header->algorithm) == 0) {
        return deny(diag, "is signed by an algorithm that its issuer does not use");
    }
    if (!str_eq(self->issuer, rules->issuer)) {
        return deny(diag, "is of another issuer");
    }
    if (is_typed_access(self) || has(claims, STR("events"))) {
        return deny(diag, "is no ID token");
    }
    if (nonce.len == 0 || !json_str_eq(json_get(claims, STR("nonce")), nonce)) {
        return deny(diag, "is not of this login: its nonce is another one");
    }
    if (!has(claims, STR("iat"))) {
        return deny(diag, "does not say when it was issued");
    }
    bay_err err = check_times(claims, rules, &read.who.expires_at_ms, diag);
    if (err == BAY_OK) {
        err = check_audience(claims, rules, diag);
    }
    if (err == BAY_OK && !is_given_to(claims, rules->audiences[0])) {
        err = deny(diag, "was given to another client");
    }
    if (err != BAY_OK) {
        return err;
    }
    err = text_claim(claims, STR("iss"), memory, &read.who.issuer);
    if (err == BAY_OK) {
        err = text_claim(claims, STR("sub"), memory, &read.who.subject);
    }
    if (err != BAY_OK || read.who.subject.len == 0) {
        return err == BAY_ERR_NOMEM ? err : deny(diag, "names nobody");
    }
    read.who.client = rules->audiences[0];
    *out = read;
    return BAY_OK;
}

bay_err access_introspected_check(json_val response, const access_rules *rules, arena *memory,
                                  access_claims *out, bay_diag *diag)
{
    json_val issuer = json_get(response, STR("iss"));
    bay_str type = STR("access_token");
    access_claims read;
    if (!json_is(json_get(response, STR("active")), JSON_TRUE)) {
        return deny(diag, "is not active, says its issuer");
    }
    if (!json_is(issuer, JSON_MISSING) && !json_str_eq(issuer, rules->issuer)) {
        return deny(diag, "is of another issuer");
    }
    (void)json_str_plain(json_get(response, STR("token_type")), &type);
    if (str_eq_nocase(type, STR("refresh_token")) || is_other_token(response)) {
        return deny(diag, "is no access token");
    }
    bay_err err = check_claims(response, rules, memory, &read, diag);
    if (err == BAY_OK) {
        read.who.issuer = rules->issuer;
        *out = read;
    }
    return err;
}

/* ---- the principal --------------------------------------------------------------------------- */

/* RFC 8693 section 4.1: `act` is who acts for the subject; its own `act` is who acted before, and
 * only for information, so it becomes no principal. */
static bay_err actor_of(json_val claims, bay_str issuer, arena *memory, const auth_principal **out)
{
    json_val act = json_get(claims, STR("act"));
    principal_parts who = {.proof = PRINCIPAL_TOKEN, .issuer = issuer};
    if (json_is(act, JSON_MISSING)) {
        *out = NULL;
        return BAY_OK;
    }
    bay_err err = json_is(act, JSON_OBJECT) ? text_claim(act, STR("sub"), memory, &who.subject)
                                            : BAY_ERR_DENIED;
    if (err == BAY_OK && has(act, STR("iss"))) {
        err = text_claim(act, STR("iss"), memory, &who.issuer);
    }
    return err == BAY_OK ? principal_new(&who, out) : err;
}

/* Scopes that a scope includes, and those that these include, each once. */
static bay_err add_implied(bay_str scopes, const access_implied *implied, size_t count, buf *out)
{
    buf_str(out, scopes);
    for (size_t at = 0; at < out->len && out->err == BAY_OK;) {
        bay_str rest = str_from(buf_view(out), at);
        bay_str one = str_head(rest, str_find(rest, ' '));
        at += one.len + 1;
        for (size_t i = 0; i < count; i++) {
            bay_str more = implied[i].includes;
            /* `one` may move while the text grows: what it equals does not */
            if (!str_eq(implied[i].scope, one)) {
                continue;
            }
            while (more.len > 0) {
                bay_str next = str_head(more, str_find(more, ' '));
                more = str_from(more, next.len + 1);
                if (next.len > 0 && !scopes_have(buf_view(out), next)) {
                    buf_char(out, ' ');
                    buf_str(out, next);
                }
            }
            break;
        }
    }
    return out->err;
}

bay_err access_claims_principal(const access_claims *self, const access_implied *implied,
                                size_t implied_count, const auth_principal **out, bay_diag *diag)
{
    principal_parts who = self->who;
    arena memory;
    buf scopes;
    arena_init(&memory, FIELD_BYTES);
    buf_init(&scopes, PRINCIPAL_SCOPES_BYTES);
    bay_err err = actor_of(self->all, who.issuer, &memory, &who.actor);
    if (err == BAY_OK && implied_count > 0 && who.scopes.len > 0) {
        err = add_implied(who.scopes, implied, implied_count, &scopes);
        who.scopes = buf_view(&scopes);
    }
    err = err == BAY_OK ? principal_new(&who, out) : err;
    principal_unref(who.actor);
    buf_fini(&scopes);
    arena_fini(&memory);
    return err == BAY_OK || err == BAY_ERR_NOMEM
               ? err
               : deny(diag, "has a claim of another type, or one that is too large");
}
