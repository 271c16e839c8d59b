/* Proofs that were seen, and nonces. A proof is 16 bytes of a digest and the second in which it is
 * too old to be taken anyway; shards have a lock each, and throw the old ones out when they
 * grow. */
#include <pthread.h>
#include <string.h>

#include "auth/dpop.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/base64.h"

enum { SHARDS = 16, FIRST_SLOTS = 16, ID_BYTES = 16 };

/* ---- proofs ---------------------------------------------------------------------------------- */

typedef struct replay_slot {
    unsigned char id[ID_BYTES];
    uint64_t until_s; /* 0: the slot is empty */
} replay_slot;

typedef struct replay_shard {
    pthread_mutex_t lock;
    replay_slot *slots;
    size_t cap; /* a power of two, or 0 */
    size_t len;
} replay_shard;

struct dpop_replays {
    size_t most; /* of one shard */
    replay_shard shards[SHARDS];
};

bay_err dpop_replays_new(size_t most, dpop_replays **out)
{
    dpop_replays *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->most = (most + SHARDS - 1) / SHARDS;
    for (size_t i = 0; i < SHARDS; i++) {
        pthread_mutex_init(&self->shards[i].lock, NULL);
    }
    *out = self;
    return BAY_OK;
}

void dpop_replays_free(dpop_replays *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < SHARDS; i++) {
        mem_free(self->shards[i].slots);
        pthread_mutex_destroy(&self->shards[i].lock);
    }
    mem_free(self);
}

/* Where it is, or the empty slot where it belongs; a slot is empty. */
static replay_slot *slot_of(const replay_shard *self, const unsigned char *id)
{
    size_t at = (size_t)bytes_get_u64((const char *)id) & (self->cap - 1);
    while (self->slots[at].until_s != 0 && memcmp(self->slots[at].id, id, ID_BYTES) != 0) {
        at = (at + 1) & (self->cap - 1);
    }
    return &self->slots[at];
}

/* Into a table of that size, without those that are over. */
static bay_err rebuild(replay_shard *self, size_t cap, uint64_t now_s)
{
    replay_slot *old = self->slots;
    size_t old_cap = self->cap;
    replay_slot *slots = mem_array(cap, sizeof(*slots));
    if (slots == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->slots = slots;
    self->cap = cap;
    self->len = 0;
    for (size_t i = 0; i < old_cap; i++) {
        if (old[i].until_s > now_s) {
            *slot_of(self, old[i].id) = old[i];
            self->len++;
        }
    }
    mem_free(old);
    return BAY_OK;
}

static bay_err make_room(replay_shard *self, size_t most, uint64_t now_s)
{
    if (self->len < most && self->len < self->cap / 4 * 3) {
        return BAY_OK;
    }
    bay_err err = rebuild(self, self->cap > 0 ? self->cap : FIRST_SLOTS, now_s);
    /* more than half are of this time: twice the room, or the same work comes soon again */
    if (err == BAY_OK && self->len > self->cap / 2) {
        err = rebuild(self, self->cap * 2, now_s);
    }
    return err != BAY_OK ? err : self->len < most ? BAY_OK : BAY_ERR_LIMIT;
}

bay_err dpop_replays_take(dpop_replays *self, const unsigned char digest[DIGEST_BYTES],
                          uint64_t until_ms, uint64_t now_ms)
{
    replay_shard *shard = &self->shards[digest[DIGEST_BYTES - 1] % SHARDS];
    uint64_t now_s = now_ms / 1000;
    pthread_mutex_lock(&shard->lock);
    bool is_seen = shard->cap > 0 && slot_of(shard, digest)->until_s > now_s;
    bay_err err = is_seen ? BAY_ERR_DUPLICATE : make_room(shard, self->most, now_s);
    if (err == BAY_OK) {
        replay_slot *slot = slot_of(shard, digest);
        shard->len += slot->until_s == 0 ? 1 : 0;
        memcpy(slot->id, digest, ID_BYTES);
        slot->until_s = until_ms / 1000 + 1;
    }
    pthread_mutex_unlock(&shard->lock);
    return err;
}

/* ---- nonces ---------------------------------------------------------------------------------- */

static bay_err write_nonce(const seal_ring *ring, size_t nth, uint64_t epoch,
                           char out[DPOP_NONCE_BYTES])
{
    char number[BYTES_U64];
    unsigned char digest[SEAL_DIGEST_BYTES];
    buf text = {.at = out, .cap = DPOP_NONCE_BYTES - 1, .max = DPOP_NONCE_BYTES - 1};
    bytes_put_u64(number, epoch);
    bay_err err = seal_digest(ring, nth, SEAL_NONCE, (bay_str){number, sizeof(number)}, digest);
    if (err == BAY_OK) {
        base64_encode(&text, (bay_str){(const char *)digest, sizeof(digest)}, BASE64_URL);
        err = text.err;
    }
    if (err == BAY_OK) {
        out[text.len] = '\0';
    }
    return err;
}

bay_err dpop_nonce_write(const seal_ring *ring, uint64_t now_ms, char out[DPOP_NONCE_BYTES])
{
    return write_nonce(ring, 0, now_ms / DPOP_NONCE_MS, out);
}

bool dpop_nonce_is_good(const seal_ring *ring, uint64_t now_ms, bay_str nonce)
{
    uint64_t epoch = now_ms / DPOP_NONCE_MS;
    char text[DPOP_NONCE_BYTES];
    for (size_t nth = 0; nth < seal_ring_count(ring); nth++) {
        for (uint64_t back = 0; back < 2 && back <= epoch; back++) {
            if (write_nonce(ring, nth, epoch - back, text) == BAY_OK &&
                str_eq_secret(str_of(text), nonce)) {
                return true;
            }
        }
    }
    return false;
}
