/* What the files of a guard share. */
#ifndef SDK_GUARD_PARTS_H
#define SDK_GUARD_PARTS_H

#include <stdatomic.h>

#include "sdk/guard.h"

enum { GUARD_SKEW_MS = 60000 };

typedef struct guard_issuer {
    bay_str url;
    bay_str keys; /* a set, or its address; "": as its metadata says */
    bay_str audiences[OAUTH_AUDIENCES];
    size_t audience_count;
    bay_str client_id;
    bay_str client_secret;
    oauth_issuer *issuer; /* once it is sealed */
} guard_issuer;

typedef struct guard_key {
    bay_str id;
    api_key row;
} guard_key;

struct bay_guard {
    atomic_uint references;
    arena memory; /* all texts */
    bay_str url;  /* "": as it listens */
    guard_issuer issuers[OAUTH_ISSUERS];
    size_t issuer_count;
    guard_key keys[SDK_GUARD_KEYS];
    size_t key_count;
    bool has_certificates;
    bay_str scopes;
    oauth_dpop dpop;
    char fault[300]; /* the first mistake; "" */
    oauth_state *state;
    oauth_guard *made; /* NULL: it is not sealed */
};

#endif
