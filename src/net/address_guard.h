/* Which addresses a peer's document may lead to. The author of a document that names addresses (an
 * agent's card, an authorization server's metadata) may be outside of the networks that this
 * machine is in. A document from a public address leads to public addresses only, and none leads to
 * metadata services of clouds. What the configuration itself names, the *home*, may be anywhere.
 * Called for each address immediately before connecting, so that the result of resolving a name
 * cannot change in between. */
#ifndef NET_ADDRESS_GUARD_H
#define NET_ADDRESS_GUARD_H

#include "net/address.h"

/* From near to far: a document from farther away is trusted less. */
typedef enum address_reach {
    ADDRESS_UNSEEN,
    ADDRESS_SAME_MACHINE,
    ADDRESS_SAME_NETWORK,
    ADDRESS_ELSEWHERE,
} address_reach;

/* Embedded in its owner. Threads: one loop's. */
typedef struct address_guard {
    bay_str home;               /* a URL; borrowed */
    const address_rules *rules; /* permitted in addition; NULL: nothing; borrowed */
    address_reach reach;        /* the farthest address that the home had */
} address_guard;

/* Whether the home was reached, and on this machine only. */
bool address_guard_is_here(const address_guard *self);
/* A socket_permit; `user` is the guard. */
bool address_guard_permit(void *user, bay_str host, const net_address *address);
/* Whether this is the home's host. Case is ignored. */
bool address_guard_is_home(const address_guard *self, bay_str host);

#endif
