/* When the lists of a server are read anew: as soon as it tells of a change, when the time is over
 * that it gave them (`ttlMs`), every so often where it does neither. Told changes are gathered, so
 * that a server that tells of them without end has its lists read five times a second and no more.
 *
 * One per server and loop; it has a timer and says which list is due, its owner reads. */
#ifndef CATALOG_FRESHNESS_H
#define CATALOG_FRESHNESS_H

#include "catalog/listing.h"
#include "net/loop.h"

enum {
    FRESHNESS_LEAST_MS = 1000,  /* between two readings that nobody asked for */
    FRESHNESS_GATHER_MS = 200,  /* between two that were */
    FRESHNESS_RETRY_MS = 30000, /* after one that failed */
    FRESHNESS_MOST_MS = 24 * 3600 * 1000,
};

/* What is known when a reading has ended. */
typedef struct freshness_facts {
    bool is_good;
    bool has_kind;     /* the server has such lists at all */
    bool tells;        /* it tells of changes */
    bool may_miss;     /* what it tells may get lost on the way: a stream over HTTP breaks */
    uint32_t ttl_ms;   /* 0: it gave none */
    uint32_t every_ms; /* as configured; 0: never */
    bool may_idle;     /* it is stopped when it idles: nothing is read unasked */
} freshness_facts;

typedef struct freshness_plan {
    uint64_t fresh_ms; /* 0: nobody says how long; UINT64_MAX: without end */
    uint64_t again_ms; /* 0: not before something is told */
} freshness_plan;

/* `dice`: a random number, which moves `again_ms` by up to a tenth either way. */
freshness_plan freshness_plan_of(const freshness_facts *facts, uint64_t dice);

typedef struct freshness {
    loop *loop;
    loop_timer timer;
    uint64_t due_ms[LISTING_KINDS];     /* 0: not due */
    uint64_t started_ms[LISTING_KINDS]; /* 0: never */
    uint64_t until_ms[LISTING_KINDS];   /* how long the list is fresh, see freshness_plan */
    void (*read)(void *user, listing_kind kind);
    void *user;
} freshness;

void freshness_init(freshness *self, loop *on, void (*read)(void *user, listing_kind kind),
                    void *user);
void freshness_stop(freshness *self); /* nothing is due any more */
/* The server tells of a change: its list is read at once, or a moment after the last reading. */
void freshness_told(freshness *self, listing_kind kind);
/* A reading begins, for whatever reason. */
void freshness_started(freshness *self, listing_kind kind);
void freshness_ended(freshness *self, listing_kind kind, const freshness_facts *facts);
/* Other settings: the plan of the last reading is made anew, unless a told change is due. */
void freshness_replan(freshness *self, listing_kind kind, const freshness_facts *facts);

#endif
