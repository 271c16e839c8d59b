/* What the files of the pins share. */
#ifndef TRUST_PINS_INTERNAL_H
#define TRUST_PINS_INTERNAL_H

#include <pthread.h>
#include <time.h>

#include "base/list.h"
#include "base/map.h"
#include "trust/pins.h"

/* A server or an agent. */
typedef struct pins_section {
    bay_str name; /* of `bytes` */
    bool is_agent;
    uint32_t number;
    trust_policy policy;
    unsigned held; /* TRUST_HELD_… */
    char identity[512];
    bool is_identified;
    trust_standing grade;
    size_t told; /* lines in the log since `told_from`, and those that were left out */
    size_t untold;
    time_t told_from;
    list names; /* pins_name */
    char bytes[];
} pins_section;

/* One item by kind and name. */
typedef struct pins_name {
    list_link link; /* in its section */
    pins_section *section;
    trust_kind kind;
    bay_str name;
    list cells;
    /* Of the digests it was last seen with: the newest first. */
    uint64_t seen[2];
    unsigned turns;
    uint64_t turns_since_ms;
    bool is_turning; /* and the log has been told */
    char bytes[];    /* the key in the map: kind, section, name */
} pins_name;

typedef enum pins_state { PINS_SAME, PINS_NEW, PINS_CHANGED } pins_state;

struct trust_cell {
    struct trust_cell_gate gate; /* the first member: trust_checked_admits */
    trust_pins *pins;
    unsigned references;
    list_link link; /* in its name */
    pins_name *of;
    uint64_t head; /* of the digest */
    char digest[DIGEST_TEXT_BYTES + 1];
    pins_state state;
    bool is_approved; /* exactly this, by somebody */
    bool is_scanned;
    bool is_suspicious;
    char rule[48]; /* the worst of the findings */
    char pointer[SCAN_POINTER_BYTES];
    char why[160];
    pins_state told; /* what the log was told of it … */
    bool is_told;
    size_t raw_at; /* of the definition in the key */
    size_t len;    /* of the key in the map: kind, section, definition */
    size_t canon_len;
    char bytes[]; /* the key, then the definition's canonical form */
};

struct trust_pins {
    atomic_uint references;
    _Atomic uint64_t generation;
    char *path;
    pthread_mutex_t file_mutex; /* of the file: who reads or writes it; taken before `mutex` */
    pthread_mutex_t mutex;      /* of all below; nobody waits for a disk with it */
    trust_lock lock;
    bool is_due; /* something is recorded that the file has not */
    map sections;
    uint32_t section_count;
    map names;
    map cells;
    size_t cell_bytes;
    scanner *scan;
    scan_rule_set *rules;
    trust_silences *silences;
    arena silence_memory;
    arena memory; /* of one canonical form */
    buf key;
    buf canon;
};

/* pins.c; with the mutex. */
pins_section *pins_find_section(const trust_pins *self, bay_str server, bool is_agent);
/* Judges a cell by the lock, the scan and its section. */
void pins_judge(trust_pins *self, trust_cell *cell);
void pins_judge_all(trust_pins *self);
void pins_judge_identities(trust_pins *self);
uint64_t pins_head(const char *digest);

/* pins_lock.c; with the mutex. */
/* Puts the cell's definition into the lock. */
bay_err pins_put(trust_pins *self, const trust_cell *cell, bay_str by);

#endif
