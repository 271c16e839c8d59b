/* A credential that is not remembered: how it is verified, and what it waits for meanwhile. */
#include "oauth/guard_parts.h"

#include "base/err.h"
#include "base/mem.h"

/* ---- checks ---------------------------------------------------------------------------------- */

void check_free(oauth_check *self)
{
    list_remove(&self->link);
    introspection_leave(self);
    oauth_wait_cancel(&self->wait);
    if (self->question != NULL) {
        self->question->check = NULL;
    }
    self->of->check_count--;
    arena_wipe(&self->memory);
    mem_free(self);
}

void oauth_check_wait(oauth_check *self, oauth_checked done, void *user)
{
    self->done = done;
    self->user = user;
}

/* Of whom an issuer or the store was asked: else leaving before the answer would be a way to have
 * any number of them asked about. */
void oauth_check_cancel(oauth_check *self)
{
    if (self->asked != NULL || self->question != NULL) {
        failure_limit_count(self->of->guard->state->failures, self->place.address,
                            loop_now_ms(self->of->loop));
    }
    check_free(self);
}

void check_go_on(oauth_check *self)
{
    const auth_principal *principal = NULL;
    oauth_refusal refusal = {.status = 0};
    guard_verdict verdict = check_advance(self, &principal, &refusal);
    if (verdict == GUARD_WAIT) {
        return;
    }
    oauth_checked done = self->done;
    void *user = self->user;
    check_free(self);
    done(user, verdict, principal, &refusal);
    principal_unref(principal);
}

void check_on_fetched(void *user)
{
    check_go_on(user);
}

/* Remembers the principal; takes it. */
guard_verdict check_believe(oauth_check *self, const auth_principal *principal, unsigned kind,
                            uint64_t until_ms, const auth_principal **out_principal,
                            oauth_refusal *out_refusal)
{
    oauth_state *state = self->of->guard->state;
    token_entry entry = {principal, until_ms, (unsigned char)kind};
    token_memory_keep(state->tokens, self->digest, self->number, &entry, state->wall());
    return guard_settle(self->of, self->exchange, &self->place, &self->brought, principal, kind,
                        out_principal, out_refusal);
}

/* It was looked at, and is not good: the same text is not looked at again for a while. */
guard_verdict check_disbelieve(oauth_check *self, const char *why, oauth_refusal *out)
{
    oauth_state *state = self->of->guard->state;
    token_memory_refuse(state->tokens, self->digest, self->number, state->wall());
    return guard_refuse_token(self->of, &self->place, "invalid_token", why, out);
}

/* ---- the way of a check ---------------------------------------------------------------------- */

guard_verdict check_advance(oauth_check *self, const auth_principal **out_principal,
                            oauth_refusal *out_refusal)
{
    switch (self->brought.kind) {
    case CREDENTIAL_KEY:
        return check_advance_key(self, out_principal, out_refusal);
    case CREDENTIAL_CERTIFICATE:
        return check_advance_certificate(self, out_principal, out_refusal);
    default:
        arena_reset(&self->memory); /* each time from the token's text */
        return check_advance_token(self, out_principal, out_refusal);
    }
}
