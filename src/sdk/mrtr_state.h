/* What a server remembers of the rounds of all its calls: the keys that seal them, and which of
 * them came back already. Loop only.
 *
 * Each sealed state has a number: which process sealed it (`instance`), and the how many-th it was.
 * One bit a number says that it came back; a page of bits is forgotten when the last one that came
 * back in it has expired, since from then on its expiry keeps it out. So single use is exact, and
 * costs memory by the states that were used within one BAY_SERVER_SETTING_STATE_TTL_MS. At
 * ROUNDS_MAX_PAGES further states are refused until a page is free. */
#ifndef SDK_MRTR_STATE_H
#define SDK_MRTR_STATE_H

#include "auth/seal.h"
#include "base/list.h"
#include "base/map.h"

enum {
    ROUNDS_MAX = 16,         /* of one call; a further one ends it with an error */
    ROUNDS_PAGE_BITS = 4096, /* states on a page */
    ROUNDS_MAX_PAGES = 4096, /* pages of 0.5 KiB */
};

typedef struct rounds {
    seal_ring *ring;
    bool has_given_keys; /* by bay_server_key */
    uint64_t (*clock)(void);
    uint64_t instance;
    uint64_t sequence;
    map pages;  /* by instance and number */
    list order; /* oldest first */
} rounds;

/* The server's; NULL when out of memory. Made, and given a random key, when first needed. */
struct bay_server;
rounds *sdk_mrtr_state_of(struct bay_server *server);
/* The keys that the program gave; NULL: none. They live as long as the server. */
const seal_ring *sdk_mrtr_state_keys(const struct bay_server *server);

#endif
