#include "policy/outcomes_internal.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"

static bay_str key_of(const unsigned char key[OUTCOME_KEY_BYTES])
{
    return (bay_str){(const char *)key, OUTCOME_KEY_BYTES};
}

bay_err outcomes_new(const outcomes_options *options, outcomes **out)
{
    outcomes *self = mem_zalloc(sizeof(*self));
    if (self == NULL || pthread_mutex_init(&self->lock, NULL) != 0) {
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    self->options = *options;
    outcomes_options *set = &self->options;
    set->rows = set->rows == 0 ? OUTCOMES_ROWS : set->rows;
    set->owner_rows = set->owner_rows == 0 ? OUTCOMES_OWNER_ROWS : set->owner_rows;
    set->bytes = set->bytes == 0 ? OUTCOMES_TOTAL_BYTES : set->bytes;
    map_init(&self->keys, set->rows);
    map_init(&self->owners, set->rows);
    list_init(&self->rows);
    *out = self;
    return BAY_OK;
}

void outcomes_free(outcomes *self)
{
    list_link *link;
    if (self == NULL) {
        return;
    }
    while ((link = list_first(&self->rows)) != NULL) {
        outcome_row *row = CONTAINER_OF(link, outcome_row, link);
        CHECK(row->claim == NULL && row->operations == 0);
        outcome_row_drop(self, row);
    }
    map_fini(&self->keys);
    map_fini(&self->owners);
    (void)pthread_mutex_destroy(&self->lock);
    mem_free(self);
}

void outcomes_lock(outcomes *self)
{
    (void)pthread_mutex_lock(&self->lock);
}

void outcomes_unlock(outcomes *self)
{
    (void)pthread_mutex_unlock(&self->lock);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void forget_outcome(outcomes *self, outcome_row *row)
{
    self->bytes -= row->bytes;
    row->bytes = 0;
    mem_free(row->outcome);
    row->outcome = NULL;
}

static void tell_waiters(outcome_row *row)
{
    list_link *link;
    while ((link = list_pop(&row->waiters)) != NULL) {
        outcome_claim *claim = CONTAINER_OF(link, outcome_claim, link);
        claim->row = NULL;
        claim->ready(claim);
    }
}

void outcome_row_end(outcome_row *row, outcome_state state)
{
    row->state = (uint8_t)state;
    tell_waiters(row);
}

void outcome_row_keep(outcomes *self, outcome_row *row, outcome_kind kind, json_val value)
{
    size_t bytes = json_clone_bytes(value);
    forget_outcome(self, row);
    row->kind = (uint8_t)kind;
    if (json_raw(value).len > OUTCOME_BYTES || self->bytes + bytes > self->options.bytes ||
        json_clone(value, &row->outcome) != BAY_OK) {
        row->outcome = NULL;
        row->kind = OUTCOME_TOO_LARGE;
        return;
    }
    row->bytes = (uint32_t)bytes;
    self->bytes += bytes;
}

void outcome_row_drop(outcomes *self, outcome_row *row)
{
    if (!row->is_gone) {
        row->is_gone = true;
        list_remove(&row->link);
        (void)map_remove(&self->keys, key_of(row->key));
        tell_waiters(row);
        forget_outcome(self, row);
        if (--row->owner->count == 0) {
            (void)map_remove(&self->owners, key_of(row->owner->key));
            mem_free(row->owner);
        }
        row->owner = NULL;
    }
    if (row->operations == 0) {
        mem_free(row);
    }
}

void outcome_row_release(outcomes *self, outcome_row *row)
{
    row->operations--;
    if (row->is_gone) {
        outcome_row_drop(self, row);
    }
}

static outcome_owner *owner_of(outcomes *self, const unsigned char key[OUTCOME_KEY_BYTES])
{
    outcome_owner *owner = map_get(&self->owners, key_of(key));
    if (owner != NULL) {
        return owner;
    }
    owner = mem_zalloc(sizeof(*owner));
    if (owner == NULL) {
        return NULL;
    }
    memcpy(owner->key, key, OUTCOME_KEY_BYTES);
    if (map_put(&self->owners, key_of(owner->key), owner, NULL) != BAY_OK) {
        mem_free(owner);
        return NULL;
    }
    return owner;
}

static outcomes_answer add(outcomes *self, outcome_claim *claim, const outcome_key *key,
                           uint64_t now_ms)
{
    if (self->keys.len >= self->options.rows) {
        return OUTCOMES_FULL;
    }
    outcome_row *row = mem_zalloc(sizeof(*row));
    outcome_owner *owner = row != NULL ? owner_of(self, key->owner) : NULL;
    bool is_full = owner != NULL && owner->count >= self->options.owner_rows;
    if (row != NULL) {
        memcpy(row->key, key->key, OUTCOME_KEY_BYTES);
        memcpy(row->fingerprint, key->fingerprint, OUTCOME_KEY_BYTES);
    }
    if (owner == NULL || is_full || map_put(&self->keys, key_of(row->key), row, NULL) != BAY_OK) {
        if (owner != NULL && owner->count == 0) {
            (void)map_remove(&self->owners, key_of(owner->key));
            mem_free(owner);
        }
        mem_free(row);
        return is_full ? OUTCOMES_FULL : OUTCOMES_NOMEM;
    }
    owner->count++;
    row->owner = owner;
    row->expires_at_ms = now_ms + key->keep_ms;
    list_init(&row->waiters);
    list_push(&self->rows, &row->link);
    row->claim = claim;
    claim->row = row;
    claim->is_owner = true;
    return OUTCOMES_OWNER;
}

static outcomes_answer take_known(const outcome_row *row, arena *memory, outcome_view *out)
{
    out->kind = (outcome_kind)row->kind;
    out->value = JSON_NONE;
    return row->outcome == NULL ||
                   json_clone_in(json_root(row->outcome), memory, &out->value) == BAY_OK
               ? OUTCOMES_KNOWN
               : OUTCOMES_NOMEM;
}

static outcomes_answer enter(outcomes *self, outcome_claim *claim, const outcome_key *key,
                             uint64_t now_ms, arena *memory, outcome_view *out)
{
    outcome_row *row = map_get(&self->keys, key_of(key->key));
    bool is_over =
        row != NULL && row->claim == NULL && row->operations == 0 && row->expires_at_ms <= now_ms;
    if (is_over) {
        outcome_row_drop(self, row);
        row = NULL;
    }
    if (row == NULL) {
        return add(self, claim, key, now_ms);
    }
    if (memcmp(row->fingerprint, key->fingerprint, OUTCOME_KEY_BYTES) != 0) {
        return OUTCOMES_CONFLICT;
    }
    bool is_retry = row->state == OUTCOME_DONE && row->kind == OUTCOME_QUESTION && key->is_retry;
    if (is_retry || (row->state == OUTCOME_UNKNOWN && key->may_repeat)) {
        row->state = OUTCOME_CLAIMED;
        row->claim = claim;
        claim->row = row;
        claim->is_owner = true;
        return OUTCOMES_OWNER;
    }
    if (row->state == OUTCOME_UNKNOWN) {
        return OUTCOMES_LOST;
    }
    if (row->state == OUTCOME_DONE) {
        return take_known(row, memory, out);
    }
    claim->row = row;
    claim->is_owner = false;
    list_push(&row->waiters, &claim->link);
    return OUTCOMES_JOINED;
}

/* ---- what calls do --------------------------------------------------------------------------- */

outcomes_answer outcomes_enter(outcomes *self, outcome_claim *claim, const outcome_key *key,
                               uint64_t now_ms, arena *memory, outcome_view *out)
{
    CHECK(claim->row == NULL);
    outcomes_lock(self);
    outcomes_answer answer = enter(self, claim, key, now_ms, memory, out);
    outcomes_unlock(self);
    return answer;
}

outcomes_answer outcomes_part(outcomes *self, const outcome_claim *claim)
{
    outcomes_lock(self);
    outcomes_answer part = claim->row == NULL ? OUTCOMES_KNOWN
                           : claim->is_owner  ? OUTCOMES_OWNER
                                              : OUTCOMES_JOINED;
    outcomes_unlock(self);
    return part;
}

void outcomes_send(outcomes *self, outcome_claim *claim)
{
    outcomes_lock(self);
    claim->row->state = OUTCOME_SENT;
    outcomes_unlock(self);
}

void outcomes_unsend(outcomes *self, outcome_claim *claim)
{
    outcomes_lock(self);
    if (claim->row != NULL && claim->is_owner && claim->row->state == OUTCOME_SENT) {
        claim->row->state = OUTCOME_CLAIMED;
    }
    outcomes_unlock(self);
}

static void let_go(outcome_claim *claim)
{
    claim->row->claim = NULL;
    claim->row = NULL;
    claim->is_owner = false;
}

outcome_row *outcome_claim_settle(outcomes *self, outcome_claim *claim, outcome_kind kind,
                                  json_val value)
{
    outcome_row *row = claim->row;
    let_go(claim);
    outcome_row_keep(self, row, kind, value);
    outcome_row_end(row, OUTCOME_DONE);
    return row;
}

void outcomes_settle(outcomes *self, outcome_claim *claim, outcome_kind kind, json_val value)
{
    outcomes_lock(self);
    (void)outcome_claim_settle(self, claim, kind, value);
    outcomes_unlock(self);
}

outcome_row *outcome_claim_leave(outcome_claim *claim, bool may_repeat)
{
    outcome_row *row = claim->row;
    if (row != NULL && !claim->is_owner) {
        list_remove(&claim->link);
        claim->row = NULL;
    } else if (row != NULL) {
        let_go(claim);
        if (row->state == OUTCOME_CLAIMED || may_repeat) {
            return row;
        }
        outcome_row_end(row, OUTCOME_UNKNOWN);
    }
    return NULL;
}

void outcomes_leave(outcomes *self, outcome_claim *claim, bool may_repeat)
{
    outcomes_lock(self);
    outcome_row *over = outcome_claim_leave(claim, may_repeat);
    if (over != NULL) {
        outcome_row_drop(self, over);
    }
    outcomes_unlock(self);
}

void outcomes_tick(outcomes *self, uint64_t now_ms)
{
    outcomes_lock(self);
    size_t most = self->keys.len < OUTCOMES_SWEEP ? self->keys.len : OUTCOMES_SWEEP;
    for (size_t i = 0; i < most; i++) {
        list_link *link = list_pop(&self->rows);
        outcome_row *row = CONTAINER_OF(link, outcome_row, link);
        list_push(&self->rows, link);
        if (row->expires_at_ms <= now_ms && row->claim == NULL && row->operations == 0) {
            outcome_row_drop(self, row);
        }
    }
    outcomes_unlock(self);
}

outcomes_count outcomes_count_of(outcomes *self)
{
    outcomes_lock(self);
    outcomes_count count = {self->keys.len, self->bytes};
    outcomes_unlock(self);
    return count;
}
