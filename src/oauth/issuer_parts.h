/* What issuer.c (the state that loops share) and issuer_link.c (fetching, on a loop) share. */
#ifndef OAUTH_ISSUER_PARTS_H
#define OAUTH_ISSUER_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "oauth/issuer.h"
#include "oauth/metadata.h"

typedef struct unknown_key {
    uint64_t hash;
    uint64_t until_ms;
} unknown_key;

struct oauth_issuer {
    atomic_uint references;
    oauth_issuer_options options; /* its texts are in `memory` */
    arena memory;
    bool has_fixed_keys;
    uint64_t seed; /* of hashes of names */
    pthread_mutex_t lock;
    /* under the lock: */
    jose_keys *keys; /* NULL: none yet */
    uint64_t fresh_until_ms;
    uint64_t usable_until_ms;
    uint64_t next_fetch_ms;
    uint32_t failures;          /* in a row */
    oauth_issuer_link *fetcher; /* who fetches; NULL: nobody does */
    bool has_metadata;
    bool is_suspect; /* its metadata is to be fetched anew: its keys were not where it says */
    buf keys_url;    /* of its metadata */
    buf introspection_url;
    unknown_key unknown[OAUTH_UNKNOWN_KEYS];
    list links;
    size_t fetches;
    uint64_t events; /* ends of fetches, good or bad */
};

typedef enum issuer_need { ISSUER_KEYS, ISSUER_METADATA } issuer_need;

struct oauth_issuer_link {
    list_link link; /* in issuer.links, under the lock */
    oauth_issuer *issuer;
    loop *loop;
    tls_context *tls; /* NULL: the system's trust */
    oauth_source *source;
    oauth_metadata metadata;
    oauth_document document;
    buf keys_url;     /* that is being fetched */
    issuer_need need; /* what it fetches for, since `began_ms` */
    uint64_t began_ms;
    list waits;
    uint64_t asked;    /* issuer.events when it was told to wait; under the lock */
    loop_message told; /* holds a reference while it is posted */
    bool is_told;      /* posted and not run; under the lock */
    bool is_dead;      /* freed by its owner; its thread's */
    atomic_uint references;
};

/* issuer.c: all take the lock. */

/* May this link fetch, because what is there is missing or old? It must, then. */
bool issuer_claim(oauth_issuer *self, oauth_issuer_link *link, issuer_need need, uint64_t now_ms);
/* The same because a key is missing. BAY_ERR_AGAIN: a fetch is under way, with *out_claimed by this
 * link; BAY_ERR_NOT_FOUND. */
bay_err issuer_claim_key(oauth_issuer *self, oauth_issuer_link *link, bay_str key_id,
                         bool has_waited, uint64_t now_ms, bool *out_claimed) BAY_MUST_CHECK;
bay_err issuer_keys(oauth_issuer *self, oauth_issuer_link *link, uint64_t now_ms, jose_keys **out,
                    uint32_t *out_retry_ms) BAY_MUST_CHECK;
bay_err issuer_introspection(oauth_issuer *self, oauth_issuer_link *link, uint64_t now_ms, buf *out,
                             uint32_t *out_retry_ms) BAY_MUST_CHECK;
/* The link waits for the end of the fetch that it was told of (BAY_ERR_AGAIN) last; returns
 * which. */
uint64_t issuer_wait(oauth_issuer *self, oauth_issuer_link *link);
/* Copies where its keys are; false: its metadata has to be fetched first. */
bool issuer_keys_url(oauth_issuer *self, buf *out);
bay_err issuer_set_metadata(oauth_issuer *self, bay_str keys_url,
                            bay_str introspection_url) BAY_MUST_CHECK;
/* The end of a fetch. */
typedef struct issuer_outcome {
    jose_keys *keys; /* taken; NULL: none were fetched */
    uint64_t fresh_ms;
    bool is_good;
    uint64_t began_ms;
} issuer_outcome;
/* Returns how long until the next one, ms. */
uint64_t issuer_fetched(oauth_issuer *self, const issuer_outcome *outcome, uint64_t now_ms);
void issuer_join(oauth_issuer *self, oauth_issuer_link *link);
/* Tells the other links, if this one was fetching. */
void issuer_leave(oauth_issuer *self, oauth_issuer_link *link);

/* issuer_link.c: a message's function. */
void issuer_link_tell(void *argument);

#endif
