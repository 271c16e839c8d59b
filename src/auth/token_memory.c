/* Shards, each with its lock and an open-addressed table: linear probing, entries behind a removed
 * one move up, and a hand that goes round (CLOCK) finds one that was not used since it came by. A
 * digest is its own hash: nobody can put one here without a token that was signed. */
#include "auth/token_memory.h"

#include <pthread.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

enum { FIRST_SLOTS = 16, PREFIX_BYTES = 16 };

typedef struct token_slot {
    unsigned char digest[DIGEST_BYTES];
    uint64_t place;
    uint64_t until_ms;
    unsigned char kind;
    bool was_used;                   /* since the hand came by */
    const auth_principal *principal; /* counted; NULL: the slot is empty */
} token_slot;

typedef struct token_refusal {
    unsigned char prefix[PREFIX_BYTES]; /* of the digest */
    uint64_t place;
    uint64_t until_ms;
} token_refusal;

typedef struct token_shard {
    pthread_mutex_t lock;
    token_slot *slots;
    size_t cap; /* a power of two, or 0 */
    size_t len;
    size_t hand;
    token_refusal refused[TOKEN_MEMORY_REFUSED / TOKEN_MEMORY_SHARDS];
} token_shard;

struct token_memory {
    size_t most; /* of one shard */
    token_shard shards[TOKEN_MEMORY_SHARDS];
};

/* ---- one shard, under its lock --------------------------------------------------------------- */

static uint64_t hash_of(const unsigned char *digest, uint64_t place)
{
    return bytes_get_u64((const char *)digest) + place * UINT64_C(0x9e3779b97f4a7c15);
}

static bool is_entry(const token_slot *slot, const unsigned char *digest, uint64_t place)
{
    return slot->place == place && memcmp(slot->digest, digest, DIGEST_BYTES) == 0;
}

/* Where it is, or the empty slot where it belongs. `cap` is not 0, and a slot is empty. */
static size_t slot_of(const token_shard *self, const unsigned char *digest, uint64_t place)
{
    size_t at = (size_t)hash_of(digest, place) & (self->cap - 1);
    while (self->slots[at].principal != NULL && !is_entry(&self->slots[at], digest, place)) {
        at = (at + 1) & (self->cap - 1);
    }
    return at;
}

/* Entries behind it that were pushed there by it move up. */
static void slot_clear(token_shard *self, size_t at)
{
    size_t mask = self->cap - 1;
    principal_unref(self->slots[at].principal);
    self->slots[at].principal = NULL;
    self->len--;
    for (size_t next = (at + 1) & mask; self->slots[next].principal != NULL;
         next = (next + 1) & mask) {
        const token_slot *slot = &self->slots[next];
        size_t home = (size_t)hash_of(slot->digest, slot->place) & mask;
        if (((next - home) & mask) >= ((next - at) & mask)) {
            self->slots[at] = *slot;
            self->slots[next].principal = NULL;
            at = next;
        }
    }
}

/* Room for one more: at most 7/8 of the slots are taken. */
static bool shard_grow(token_shard *self)
{
    if (self->len < self->cap / 8 * 7) {
        return true;
    }
    size_t cap = self->cap > 0 ? self->cap * 2 : FIRST_SLOTS;
    token_slot *old = self->slots;
    size_t old_cap = self->cap;
    token_slot *slots = mem_array(cap, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    self->slots = slots;
    self->cap = cap;
    for (size_t i = 0; i < old_cap; i++) {
        if (old[i].principal != NULL) {
            slots[slot_of(self, old[i].digest, old[i].place)] = old[i];
        }
    }
    mem_free(old);
    return true;
}

/* One that expired, or that was not used since the hand came by last. */
static void shard_make_room(token_shard *self, uint64_t now_ms)
{
    for (size_t steps = 0; steps < 2 * self->cap; steps++) {
        self->hand = (self->hand + 1) & (self->cap - 1);
        token_slot *slot = &self->slots[self->hand];
        if (slot->principal == NULL) {
            continue;
        }
        if (slot->until_ms <= now_ms || !slot->was_used) {
            slot_clear(self, self->hand);
            return;
        }
        slot->was_used = false;
    }
}

static token_refusal *refusal_of(token_shard *self, const unsigned char *digest)
{
    size_t count = sizeof(self->refused) / sizeof(self->refused[0]);
    return &self->refused[hash_of(digest + 8, 0) % count];
}

static bool is_refused(token_shard *self, const unsigned char *digest, uint64_t place,
                       uint64_t now_ms)
{
    const token_refusal *refusal = refusal_of(self, digest);
    return refusal->until_ms > now_ms && refusal->place == place &&
           memcmp(refusal->prefix, digest, PREFIX_BYTES) == 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static token_shard *shard_of(token_memory *self, const unsigned char *digest)
{
    return &self->shards[digest[DIGEST_BYTES - 1] % TOKEN_MEMORY_SHARDS];
}

bay_err token_memory_new(size_t most, token_memory **out)
{
    token_memory *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->most = (most + TOKEN_MEMORY_SHARDS - 1) / TOKEN_MEMORY_SHARDS;
    for (size_t i = 0; i < TOKEN_MEMORY_SHARDS; i++) {
        pthread_mutex_init(&self->shards[i].lock, NULL);
    }
    *out = self;
    return BAY_OK;
}

void token_memory_free(token_memory *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < TOKEN_MEMORY_SHARDS; i++) {
        token_shard *shard = &self->shards[i];
        for (size_t at = 0; at < shard->cap; at++) {
            principal_unref(shard->slots[at].principal);
        }
        mem_free(shard->slots);
        pthread_mutex_destroy(&shard->lock);
    }
    mem_free(self);
}

token_verdict token_memory_find(token_memory *self, const unsigned char digest[DIGEST_BYTES],
                                uint64_t place, uint64_t now_ms, token_entry *out)
{
    token_shard *shard = shard_of(self, digest);
    token_verdict verdict = TOKEN_UNKNOWN;
    pthread_mutex_lock(&shard->lock);
    size_t at = shard->cap > 0 ? slot_of(shard, digest, place) : 0;
    token_slot *slot = shard->cap > 0 ? &shard->slots[at] : NULL;
    if (slot != NULL && slot->principal != NULL && slot->until_ms > now_ms) {
        slot->was_used = true;
        *out = (token_entry){principal_ref(slot->principal), slot->until_ms, slot->kind};
        verdict = TOKEN_GOOD;
    } else if (slot != NULL && slot->principal != NULL) {
        slot_clear(shard, at);
    } else if (is_refused(shard, digest, place, now_ms)) {
        verdict = TOKEN_REFUSED;
    }
    pthread_mutex_unlock(&shard->lock);
    return verdict;
}

void token_memory_keep(token_memory *self, const unsigned char digest[DIGEST_BYTES], uint64_t place,
                       const token_entry *entry, uint64_t now_ms)
{
    token_shard *shard = shard_of(self, digest);
    pthread_mutex_lock(&shard->lock);
    if (shard->len >= self->most && self->most > 0) {
        shard_make_room(shard, now_ms);
    }
    if (shard->len < self->most && shard_grow(shard)) {
        token_slot *slot = &shard->slots[slot_of(shard, digest, place)];
        if (slot->principal == NULL) {
            shard->len++;
        }
        principal_unref(slot->principal);
        memcpy(slot->digest, digest, DIGEST_BYTES);
        slot->place = place;
        slot->kind = entry->kind;
        slot->was_used = false; /* one that never comes again goes first */
        slot->until_ms = entry->until_ms;
        slot->principal = principal_ref(entry->principal);
    }
    pthread_mutex_unlock(&shard->lock);
}

void token_memory_refuse(token_memory *self, const unsigned char digest[DIGEST_BYTES],
                         uint64_t place, uint64_t now_ms)
{
    token_shard *shard = shard_of(self, digest);
    pthread_mutex_lock(&shard->lock);
    token_refusal *refusal = refusal_of(shard, digest);
    memcpy(refusal->prefix, digest, PREFIX_BYTES);
    refusal->place = place;
    refusal->until_ms = now_ms + TOKEN_MEMORY_REFUSED_MS;
    pthread_mutex_unlock(&shard->lock);
}

static void shard_forget(token_shard *self, bool (*is_gone)(void *user, const token_entry *entry),
                         void *user)
{
    for (size_t at = 0; at < self->cap;) {
        const token_slot *slot = &self->slots[at];
        const token_entry entry = {slot->principal, slot->until_ms, slot->kind};
        if (slot->principal != NULL && is_gone(user, &entry)) {
            slot_clear(self, at); /* another may have moved here */
        } else {
            at++;
        }
    }
    memset(self->refused, 0, sizeof(self->refused));
}

void token_memory_forget(token_memory *self, bool (*is_gone)(void *user, const token_entry *entry),
                         void *user)
{
    for (size_t i = 0; i < TOKEN_MEMORY_SHARDS; i++) {
        pthread_mutex_lock(&self->shards[i].lock);
        shard_forget(&self->shards[i], is_gone, user);
        pthread_mutex_unlock(&self->shards[i].lock);
    }
}

size_t token_memory_count(token_memory *self)
{
    size_t count = 0;
    for (size_t i = 0; i < TOKEN_MEMORY_SHARDS; i++) {
        pthread_mutex_lock(&self->shards[i].lock);
        count += self->shards[i].len;
        pthread_mutex_unlock(&self->shards[i].lock);
    }
    return count;
}
