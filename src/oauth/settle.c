/* The end of a check: the refusals, and what a good credential is bound to. */
#include "base/err.h"
#include "base/log.h"
#include "oauth/guard_parts.h"

uint64_t guard_wall(const oauth_guard *self)
{
    return self->state->wall();
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Why is for the log: whoever sent it learns no more than the code. */
static void log_refusal(oauth_guard_link *self, const oauth_place *place, const char *why)
{
    uint64_t now = loop_now_ms(self->loop);
    if (now - self->logged_since_ms >= 1000) {
        if (self->logged > LOGGED_REFUSALS) {
            LOG(LOG_INFO, "auth", "%u further requests were refused",
                self->logged - LOGGED_REFUSALS);
        }
        self->logged_since_ms = now;
        self->logged = 0;
    }
    if (self->logged++ < LOGGED_REFUSALS) {
        LOG(LOG_INFO, "auth", "a request from %.*s to %.*s is refused: %s",
            BAY_STR(str_head(place->address, 64)), BAY_STR(str_head(place->endpoint, 128)), why);
    }
}

guard_verdict guard_refuse(oauth_guard_link *self, const oauth_place *place, int status,
                           const char *error, const char *why, oauth_refusal *out)
{
    *out = (oauth_refusal){.status = status, .error = error, .description = ""};
    if (why != NULL) {
        log_refusal(self, place, why);
    }
    return GUARD_REFUSED;
}

/* A credential that is not good: it counts against its address. */
guard_verdict guard_refuse_token(oauth_guard_link *self, const oauth_place *place,
                                 const char *error, const char *why, oauth_refusal *out)
{
    failure_limit_count(self->guard->state->failures, place->address, loop_now_ms(self->loop));
    return guard_refuse(self, place, 401, error, why, out);
}

guard_verdict guard_refuse_busy(oauth_guard_link *self, const oauth_place *place, uint32_t retry_ms,
                                const char *why, oauth_refusal *out)
{
    guard_verdict verdict = guard_refuse(self, place, 503, "", why, out);
    out->retry_s = retry_ms / 1000 + 1;
    return verdict;
}

bool guard_admits(oauth_guard_link *self, const oauth_place *place, oauth_refusal *out)
{
    uint32_t retry_ms = 0;
    if (failure_limit_admits(self->guard->state->failures, place->address, loop_now_ms(self->loop),
                             &retry_ms)) {
        return true;
    }
    (void)guard_refuse(self, place, 429, "", "too many credentials of its address were not good",
                       out);
    out->retry_s = retry_ms / 1000 + 1;
    return false;
}

/* ---- what a good credential is bound to ------------------------------------------------------ */

static bay_str bound_to(const auth_principal *principal, bay_str pointer)
{
    bay_str text = {"", 0};
    (void)json_str_plain(principal_claim(principal, pointer), &text);
    return text;
}

static guard_verdict refuse_proof(oauth_guard_link *self, const oauth_place *place, bay_err err,
                                  const bay_diag *why, oauth_refusal *out)
{
    guard_verdict verdict = GUARD_REFUSED;
    if (err == BAY_ERR_NOT_FOUND) { /* good, but for a nonce of this time */
        verdict = guard_refuse(self, place, 401, "use_dpop_nonce", NULL, out);
        if (dpop_nonce_write(place->ring, guard_wall(self->guard), out->nonce) != BAY_OK) {
            out->nonce[0] = '\0';
        }
    } else if (err == BAY_ERR_LIMIT || err == BAY_ERR_NOMEM) {
        verdict = guard_refuse_busy(self, place, 1000, why->text, out);
    } else {
        verdict = guard_refuse_token(self, place, "invalid_dpop_proof", why->text, out);
    }
    out->is_dpop = true;
    return verdict;
}

static bay_err check_proof(oauth_guard_link *self, http_exchange *exchange,
                           const oauth_place *place, const credentials *brought, bay_str thumbprint,
                           bay_diag *diag)
{
    enum { BASES = 8 };
    const oauth_guard *guard = self->guard;
    arena *memory = http_exchange_arena(exchange);
    bay_str path = http_exchange_path(exchange);
    bay_str urls[BASES];
    size_t count = place->base_count < BASES ? place->base_count : BASES;
    for (size_t i = 0; i < count; i++) {
        char *at = arena_alloc(memory, place->bases[i].len + path.len + 1);
        if (at == NULL) {
            return BAY_ERR_NOMEM;
        }
        urls[i] = (bay_str){at, place->bases[i].len + path.len};
        (void)str_put(&at, place->bases[i]);
        (void)str_put(&at, path);
    }
    dpop_expected expected = {.method = http_exchange_method(exchange),
                              .urls = urls,
                              .url_count = count,
                              .thumbprint = thumbprint,
                              .token = brought->text,
                              .ring = guard->has_nonces ? place->ring : NULL,
                              .now_ms = guard_wall(guard)};
    if (guard->has_nonces && place->ring == NULL) {
        return diag_set(diag, BAY_ERR_LIMIT, "there is no key to make nonces with");
    }
    return dpop_check(brought->proof, &expected, guard->state->proofs, diag);
}

static guard_verdict prove_key(oauth_guard_link *self, http_exchange *exchange,
                               const oauth_place *place, const credentials *brought,
                               const auth_principal *principal, oauth_refusal *out)
{
    bay_diag diag = {.text = "out of memory"};
    if (!brought->is_dpop) {
        guard_verdict verdict = guard_refuse_token(
            self, place, "invalid_token", "a token that is bound to a key came without proof", out);
        out->is_dpop = self->guard->dpop != OAUTH_DPOP_OFF;
        return verdict;
    }
    if (brought->proof.at == NULL) {
        (void)diag_set(&diag, BAY_ERR_DENIED, "there is no DPoP proof, or more than one");
        return refuse_proof(self, place, BAY_ERR_DENIED, &diag, out);
    }
    if (!guard_admits(self, place, out)) {
        return GUARD_REFUSED;
    }
    bay_err err =
        check_proof(self, exchange, place, brought, bound_to(principal, STR("/cnf/jkt")), &diag);
    return err == BAY_OK ? GUARD_GOOD : refuse_proof(self, place, err, &diag, out);
}

static guard_verdict prove(oauth_guard_link *self, http_exchange *exchange,
                           const oauth_place *place, const credentials *brought,
                           const auth_principal *principal, unsigned kind, oauth_refusal *out)
{
    if ((kind & KIND_DPOP) != 0) {
        guard_verdict verdict = prove_key(self, exchange, place, brought, principal, out);
        if (verdict != GUARD_GOOD) {
            return verdict;
        }
    } else if (brought->is_dpop ||
               (self->guard->dpop == OAUTH_DPOP_REQUIRED && brought->kind == CREDENTIAL_TOKEN)) {
        guard_verdict verdict =
            guard_refuse_token(self, place, "invalid_token",
                               "a token that is bound to no key came where one that "
                               "is bound is needed",
                               out);
        out->is_dpop = true;
        return verdict;
    }
    if ((kind & KIND_CERTIFICATE) != 0 &&
        !str_eq_secret(http_exchange_client_certificate(exchange, TLS_SHA256),
                       bound_to(principal, STR("/cnf/x5t#S256")))) {
        return guard_refuse_token(self, place, "invalid_token",
                                  "a token that is bound to a certificate came without it", out);
    }
    return GUARD_GOOD;
}

guard_verdict guard_settle(oauth_guard_link *self, http_exchange *exchange,
                           const oauth_place *place, const credentials *brought,
                           const auth_principal *principal, unsigned kind,
                           const auth_principal **out_principal, oauth_refusal *out_refusal)
{
    guard_verdict verdict = GUARD_GOOD;
    const oauth_guard *guard = self->guard;
    if (kind != KIND_TOKEN || brought->is_dpop || guard->dpop == OAUTH_DPOP_REQUIRED) {
        verdict = prove(self, exchange, place, brought, principal, kind, out_refusal);
    }
    if (verdict == GUARD_GOOD && guard->scopes.len > 0 &&
        !principal_has_scopes(principal, guard->scopes)) {
        verdict = guard_refuse(self, place, 403, "insufficient_scope",
                               "it lacks a scope that everybody needs", out_refusal);
    }
    if (verdict == GUARD_GOOD) {
        *out_principal = principal;
    } else {
        principal_unref(principal);
    }
    return verdict;
}
