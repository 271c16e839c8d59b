/* A guard on one loop: a request comes in. What is remembered is decided at once and without
 * memory; everything else is a check, which may wait. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "oauth/guard_parts.h"

/* ---- requests -------------------------------------------------------------------------------- */

static void start_timeout(oauth_guard_link *self, uint64_t after_ms)
{
    if (loop_timer_start(self->loop, &self->timeout_timer, after_ms) != BAY_OK) {
        LOG(LOG_WARN, "auth",
            "out of memory: a request that waits for its check has no time limit "
            "but its client's");
    }
}

/* The oldest come first. */
static void on_timeout(void *user)
{
    oauth_guard_link *self = user;
    uint64_t now = loop_now_ms(self->loop);
    list_link *link;
    while ((link = list_first(&self->checks)) != NULL) {
        oauth_check *check = CONTAINER_OF(link, oauth_check, link);
        oauth_refusal refusal;
        if (now - check->began_ms < self->guard->check_ms) {
            start_timeout(self, self->guard->check_ms - (now - check->began_ms));
            return;
        }
        oauth_checked done = check->done;
        void *to = check->user;
        (void)guard_refuse_busy(self, &check->place, 1000,
                                "its credential could not be checked in time", &refusal);
        check_free(check);
        done(to, GUARD_REFUSED, NULL, &refusal);
    }
}

static oauth_check *check_new(oauth_guard_link *self, http_exchange *exchange,
                              const oauth_place *place, const credentials *brought)
{
    oauth_check *check = self->check_count < OAUTH_CHECKS ? mem_zalloc(sizeof(*check)) : NULL;
    if (check == NULL) {
        return NULL;
    }
    check->of = self;
    check->exchange = exchange;
    check->place = *place;
    check->brought = *brought;
    check->began_ms = loop_now_ms(self->loop);
    check->wait = (oauth_wait){.done = check_on_fetched, .user = check};
    arena_init(&check->memory, CHECK_MEMORY_BYTES);
    if (list_is_empty(&self->checks)) {
        start_timeout(self, self->guard->check_ms);
    }
    list_push(&self->checks, &check->link);
    self->check_count++;
    return check;
}

/* Where a credential is remembered as good: at this endpoint of this guard, brought in this way. A
 * token that only a proxy may bring is not good in anybody's Authorization, and no text is good
 * because a certificate has that digest. */
static uint64_t number_of(const oauth_guard *guard, const oauth_place *place,
                          const credentials *brought)
{
    uint64_t way = ((uint64_t)brought->kind << 32) + brought->by_field;
    return str_hash(place->endpoint, guard->seed + way * 0x9e3779b97f4a7c15U);
}

static guard_verdict begin(oauth_guard_link *self, http_exchange *exchange,
                           const oauth_place *place, const credentials *brought, uint64_t number,
                           const unsigned char digest[DIGEST_BYTES],
                           const auth_principal **out_principal, oauth_refusal *out_refusal,
                           oauth_check **out_check)
{
    if (!guard_admits(self, place, out_refusal)) {
        return GUARD_REFUSED;
    }
    oauth_check *check = check_new(self, exchange, place, brought);
    if (check == NULL) {
        return guard_refuse_busy(self, place, 1000, "too many requests wait for their check",
                                 out_refusal);
    }
    check->number = number;
    memcpy(check->digest, digest, DIGEST_BYTES);
    guard_verdict verdict = check_advance(check, out_principal, out_refusal);
    if (verdict == GUARD_WAIT) {
        *out_check = check;
    } else {
        check_free(check);
    }
    return verdict;
}

guard_verdict oauth_guard_check(oauth_guard_link *self, http_exchange *exchange,
                                const oauth_place *place, const auth_principal **out_principal,
                                oauth_refusal *out_refusal, oauth_check **out_check)
{
    const oauth_guard *guard = self->guard;
    unsigned char digest[DIGEST_BYTES];
    credentials brought;
    token_entry entry;
    *out_principal = NULL;
    *out_check = NULL;
    credentials_read(guard, exchange, place, &brought);
    if (brought.fault != NULL) {
        guard_verdict verdict =
            guard_refuse(self, place, 400, "invalid_request", brought.fault, out_refusal);
        out_refusal->description = brought.fault;
        return verdict;
    }
    if (brought.kind == CREDENTIAL_NONE) {
        return guard_refuse(self, place, 401, "", NULL, out_refusal);
    }
    if (digest_bytes(brought.text, digest) != BAY_OK) {
        return guard_refuse_busy(self, place, 1000, "no digest of its credential can be made",
                                 out_refusal);
    }
    uint64_t number = number_of(guard, place, &brought);
    switch (token_memory_find(guard->state->tokens, digest, number, guard_wall(guard), &entry)) {
    case TOKEN_GOOD:
        return guard_settle(self, exchange, place, &brought, entry.principal, entry.kind,
                            out_principal, out_refusal);
    case TOKEN_REFUSED:
        return guard_admits(self, place, out_refusal)
                   ? guard_refuse_token(self, place, "invalid_token", NULL, out_refusal)
                   : GUARD_REFUSED;
    default:
        break;
    }
    return begin(self, exchange, place, &brought, number, digest, out_principal, out_refusal,
                 out_check);
}

/* ---- links ----------------------------------------------------------------------------------- */

bay_err oauth_guard_link_new(loop *on, oauth_guard *guard, oauth_key_find find, void *user,
                             oauth_guard_link **out, bay_diag *diag)
{
    oauth_guard_link *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->guard = oauth_guard_ref(guard);
    self->loop = on;
    self->find_key = find;
    self->key_user = user;
    list_init(&self->checks);
    list_init(&self->introspections);
    loop_timer_init(&self->timeout_timer, on_timeout, self);
    self->issuers = mem_array(guard->issuer_count + 1, sizeof(oauth_issuer_link *));
    bay_err err = self->issuers != NULL ? BAY_OK : BAY_ERR_NOMEM;
    for (size_t i = 0; err == BAY_OK && i < guard->issuer_count; i++) {
        err = oauth_issuer_link_new(on, guard->issuers[i].issuer, &self->issuers[i], diag);
    }
    if (err == BAY_OK && guard->has_keys && find == NULL) {
        err =
            diag_set(diag, BAY_ERR_INVALID, "API keys are demanded, and there is nowhere to look");
    }
    if (err != BAY_OK) {
        oauth_guard_link_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void oauth_guard_link_free(oauth_guard_link *self)
{
    if (self == NULL) {
        return;
    }
    list_link *link;
    while ((link = list_first(&self->checks)) != NULL) {
        check_free(CONTAINER_OF(link, oauth_check, link));
    }
    introspections_end(self);
    loop_timer_stop(self->loop, &self->timeout_timer);
    for (size_t i = 0; self->issuers != NULL && i < self->guard->issuer_count; i++) {
        oauth_issuer_link_free(self->issuers[i]);
    }
    mem_free(self->issuers);
    oauth_guard_unref(self->guard);
    mem_free(self);
}

oauth_guard *oauth_guard_link_guard(const oauth_guard_link *self)
{
    return self->guard;
}
