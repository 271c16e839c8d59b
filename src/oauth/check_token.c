/* Access tokens: JSON Web Tokens by their issuer's keys, all others by asking the issuer. */
#include "base/err.h"
#include "base/str.h"
#include "oauth/guard_parts.h"

/* ---- tokens ---------------------------------------------------------------------------------- */

enum { AUDIENCES = OAUTH_AUDIENCES + 16 };

/* The endpoint's own URL, by each of its names; what it is a part of; what the configuration says.
 * 0: out of memory. */
static size_t audiences_of(oauth_check *self, const oauth_guard_issuer *by, bay_str out[AUDIENCES])
{
    const oauth_place *place = &self->place;
    size_t count = 0;
    for (size_t i = 0; i < place->base_count && count + 2 <= AUDIENCES - OAUTH_AUDIENCES; i++) {
        size_t len = place->bases[i].len + place->endpoint.len;
        char *at = arena_alloc(&self->memory, len + 1);
        if (at == NULL) {
            return 0;
        }
        out[count++] = (bay_str){at, len};
        (void)str_put(&at, place->bases[i]);
        (void)str_put(&at, place->endpoint);
        if (place->is_part) {
            out[count++] = place->bases[i];
        }
    }
    for (size_t i = 0; i < by->audience_count; i++) {
        out[count++] = by->audiences[i];
    }
    return count;
}

static access_rules rules_of(oauth_check *self, const oauth_guard_issuer *by,
                             bay_str audiences[AUDIENCES])
{
    return (access_rules){.issuer = oauth_issuer_url(by->issuer),
                          .audiences = audiences,
                          .audience_count = audiences_of(self, by, audiences),
                          .clients = by->clients,
                          .client_count = by->client_count,
                          .algorithms = by->algorithms,
                          .is_typed = by->is_typed,
                          .now_ms = guard_wall(self->of->guard),
                          .skew_ms = by->skew_ms,
                          .lifetime_ms = by->lifetime_ms};
}

static guard_verdict take_claims(oauth_check *self, const oauth_guard_issuer *by,
                                 access_claims *claims, uint64_t most_ms,
                                 const auth_principal **out_principal, oauth_refusal *out_refusal)
{
    const oauth_guard *guard = self->of->guard;
    const auth_principal *principal = NULL;
    bay_diag diag = {.text = ""};
    uint64_t now_ms = guard_wall(guard);
    /* taken for as long as its times are taken to be ours */
    claims->who.expires_at_ms += by->skew_ms;
    claims->who.token = guard->keeps_tokens ? self->brought.text : STR("");
    bay_err err =
        access_claims_principal(claims, guard->implied, guard->implied_count, &principal, &diag);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM
                   ? guard_refuse_busy(self->of, &self->place, 1000, "out of memory", out_refusal)
                   : check_disbelieve(self, diag.text, out_refusal);
    }
    unsigned kind = (claims->dpop_thumbprint.len > 0 ? KIND_DPOP : 0U) |
                    (claims->certificate_thumbprint.len > 0 ? KIND_CERTIFICATE : 0U);
    uint64_t until_ms = claims->who.expires_at_ms;
    until_ms = most_ms > 0 && now_ms + most_ms < until_ms ? now_ms + most_ms : until_ms;
    return check_believe(self, principal, kind, until_ms, out_principal, out_refusal);
}

static guard_verdict ask_issuer(oauth_check *self, size_t issuer, oauth_refusal *out)
{
    oauth_issuer_link *link = self->of->issuers[issuer];
    uint32_t retry_ms = 1000;
    bay_diag diag = {.text = ""};
    buf url;
    buf_init(&url, OAUTH_URL_BYTES);
    bay_err err = oauth_issuer_link_introspection(link, &url, &retry_ms);
    if (err == BAY_OK) {
        err = introspection_ask(self, issuer, buf_view(&url), &diag);
    } else if (err == BAY_ERR_AGAIN) {
        oauth_issuer_link_wait(link, &self->wait);
        err = BAY_OK;
    }
    buf_fini(&url);
    return err == BAY_OK
               ? GUARD_WAIT
               : guard_refuse_busy(self->of, &self->place, retry_ms,
                                   diag.text[0] != '\0' ? diag.text
                                                        : "its issuer cannot be asked about "
                                                          "tokens",
                                   out);
}

/* What the token says itself of the key or certificate that it is bound to, the answer says as
 * well: else an answer that leaves it out would make a bearer token of a bound one. */
static bool keeps_binding(const access_claims *token, const access_claims *answer)
{
    return (token->dpop_thumbprint.len == 0 ||
            str_eq(token->dpop_thumbprint, answer->dpop_thumbprint)) &&
           (token->certificate_thumbprint.len == 0 ||
            str_eq(token->certificate_thumbprint, answer->certificate_thumbprint));
}

/* `token`: what the token said itself; NULL: it is opaque. */
static guard_verdict take_answer(oauth_check *self, size_t issuer, const access_claims *token,
                                 const auth_principal **out_principal, oauth_refusal *out)
{
    const oauth_guard_issuer *by = &self->of->guard->issuers[issuer];
    bay_str audiences[AUDIENCES];
    access_claims claims;
    bay_diag diag = {.text = ""};
    if (self->answer != BAY_OK) {
        /* unreachable is not allowed, and not forbidden either */
        return guard_refuse_busy(
            self->of, &self->place, 1000,
            self->answer == BAY_ERR_DENIED
                ? "its issuer does not let us ask about tokens: check clientId and "
                  "clientSecret of its introspection"
                : "its issuer gave no answer about the token",
            out);
    }
    access_rules rules = rules_of(self, by, audiences);
    bay_err err = access_introspected_check(self->response, &rules, &self->memory, &claims, &diag);
    if (err == BAY_OK && token != NULL && !keeps_binding(token, &claims)) {
        err = diag_set(&diag, BAY_ERR_DENIED,
                       "the token is bound to a key, and its issuer's answer does not say so");
    }
    if (err == BAY_OK) {
        return take_claims(self, by, &claims, OAUTH_INTROSPECTED_MS, out_principal, out);
    }
    return err == BAY_ERR_NOMEM
               ? guard_refuse_busy(self->of, &self->place, 1000, "out of memory", out)
               : check_disbelieve(self, diag.text, out);
}

/* By exactly what it names itself; nothing is fetched for one that nobody here knows. */
static size_t issuer_of(const oauth_check *self, bay_str name)
{
    const oauth_guard *guard = self->of->guard;
    size_t at = self->brought.by_field;
    if (at < guard->issuer_count) {
        return str_eq(oauth_issuer_url(guard->issuers[at].issuer), name) ? at : guard->issuer_count;
    }
    for (at = 0; at < guard->issuer_count; at++) {
        if (guard->issuers[at].field.len == 0 &&
            str_eq(oauth_issuer_url(guard->issuers[at].issuer), name)) {
            break;
        }
    }
    return at;
}

static guard_verdict wait_for_keys(oauth_check *self, size_t issuer)
{
    oauth_issuer_link_wait(self->of->issuers[issuer], &self->wait);
    return GUARD_WAIT;
}

/* Its signature, when its claims are good. BAY_ERR_AGAIN: the check waits. */
static bay_err verify(oauth_check *self, const access_token *token, size_t issuer,
                      uint32_t *out_retry_ms, bay_diag *diag)
{
    oauth_issuer_link *link = self->of->issuers[issuer];
    jose_keys *keys = NULL;
    bay_err err = oauth_issuer_link_keys(link, &keys, out_retry_ms);
    if (err != BAY_OK) {
        return err;
    }
    err = access_token_verify(token, keys, diag);
    jose_keys_free(keys);
    if (err == BAY_ERR_NOT_FOUND) {
        bool has_waited = self->has_waited;
        err = oauth_issuer_link_refresh(link, token->key_id, has_waited);
        self->has_waited = err == BAY_ERR_AGAIN;
        err = err == BAY_ERR_NOT_FOUND ? BAY_ERR_DENIED : err;
    }
    return err;
}

static guard_verdict advance_jwt(oauth_check *self, const auth_principal **out_principal,
                                 oauth_refusal *out)
{
    const oauth_guard *guard = self->of->guard;
    bay_str audiences[AUDIENCES];
    access_token token;
    access_claims claims;
    bay_diag diag = {.text = ""};
    uint32_t retry_ms = 1000;
    bay_err err = access_token_read(self->brought.text, &self->memory, &token, &diag);
    size_t issuer = err == BAY_OK ? issuer_of(self, token.issuer) : guard->issuer_count;
    if (err == BAY_OK && issuer == guard->issuer_count) {
        err = diag_set(&diag, BAY_ERR_DENIED, "the token is of an issuer that is not known here");
    }
    const oauth_guard_issuer *by = &guard->issuers[issuer];
    if (err == BAY_OK) {
        access_rules rules = rules_of(self, by, audiences);
        err = access_token_check(&token, &rules, &self->memory, &claims, &diag);
    }
    if (err == BAY_OK && self->is_answered) { /* its signature was verified before that */
        return take_answer(self, issuer, &claims, out_principal, out);
    }
    if (err == BAY_OK) {
        err = verify(self, &token, issuer, &retry_ms, &diag);
    }
    if (err == BAY_ERR_AGAIN) {
        return wait_for_keys(self, issuer);
    }
    if (err == BAY_OK) {
        return by->introspects_all && by->client_id.len > 0
                   ? ask_issuer(self, issuer, out)
                   : take_claims(self, by, &claims, 0, out_principal, out);
    }
    return err == BAY_ERR_DENIED
               ? check_disbelieve(self, diag.text, out)
               : guard_refuse_busy(self->of, &self->place, retry_ms,
                                   err == BAY_ERR_NOMEM ? "out of memory"
                                                        : "the keys of its issuer cannot be had",
                                   out);
}

/* ---- tokens that this process gave out ------------------------------------------------------- */

/* Good at the resource that it was given out for, by one of the names of the place. */
static bool is_for_place(const oauth_place *place, bay_str resource)
{
    for (size_t i = 0; i < place->base_count; i++) {
        bay_str base = place->bases[i];
        bay_str rest = str_from(resource, base.len);
        if (str_starts(resource, base) &&
            (str_eq(rest, place->endpoint) || (place->is_part && rest.len == 0))) {
            return true;
        }
    }
    return false;
}

/* With the scopes that others imply here. Takes `principal`; NULL: out of memory. */
static const auth_principal *with_implied(const oauth_guard *guard, const auth_principal *principal)
{
    const auth_principal *more = NULL;
    if (guard->implied_count == 0 || principal_scopes(principal).len == 0) {
        return principal;
    }
    access_claims claims = {.who = {.proof = PRINCIPAL_TOKEN,
                                    .issuer = principal_issuer(principal),
                                    .subject = principal_subject(principal),
                                    .client = principal_client(principal),
                                    .scopes = principal_scopes(principal),
                                    .claims = principal_claim(principal, STR("")),
                                    .expires_at_ms = principal_expires_at(principal)}};
    bay_err err =
        access_claims_principal(&claims, guard->implied, guard->implied_count, &more, NULL);
    principal_unref(principal);
    return err == BAY_OK ? more : NULL;
}

/* It is looked up each time, so that it ends at once. */
static guard_verdict take_given(oauth_check *self, const auth_principal **out_principal,
                                oauth_refusal *out)
{
    const oauth_guard *guard = self->of->guard;
    const auth_principal *principal = NULL;
    buf resource;
    buf_init(&resource, OAUTH_GRANT_TEXT);
    bool is_good = oauth_grants_find(guard->grants, self->brought.text, guard_wall(guard),
                                     &principal, &resource);
    bool is_here = is_good && is_for_place(&self->place, buf_view(&resource));
    buf_fini(&resource);
    if (!is_here) {
        principal_unref(principal);
        return guard_refuse_token(self->of, &self->place, "invalid_token",
                                  is_good ? "the token is for another audience"
                                          : "the token was not given out here, or is over",
                                  out);
    }
    principal = with_implied(guard, principal);
    return principal != NULL
               ? guard_settle(self->of, self->exchange, &self->place, &self->brought, principal,
                              KIND_TOKEN, out_principal, out)
               : guard_refuse_busy(self->of, &self->place, 1000, "out of memory", out);
}

guard_verdict check_advance_token(oauth_check *self, const auth_principal **out_principal,
                                  oauth_refusal *out)
{
    const oauth_guard *guard = self->of->guard;
    if (self->brought.text.len > ACCESS_TOKEN_BYTES) {
        return check_disbelieve(self, "the token is too long", out);
    }
    if (guard->grants != NULL && oauth_grants_is_token(self->brought.text)) {
        return take_given(self, out_principal, out);
    }
    if (access_token_is_jwt(self->brought.text)) {
        return advance_jwt(self, out_principal, out);
    }
    if (guard->introspector == guard->issuer_count) {
        return check_disbelieve(self, "the token is no JSON Web Token, and no issuer introspects",
                                out);
    }
    return self->is_answered ? take_answer(self, guard->introspector, NULL, out_principal, out)
                             : ask_issuer(self, guard->introspector, out);
}
