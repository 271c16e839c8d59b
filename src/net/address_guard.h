/* Where a peer may lead us. Whoever writes a document that names addresses (an agent's card, an
 * authorization server's metadata) is a stranger to the networks this machine is in: one that comes
 * from a public address leads to public addresses, and none leads to where clouds tell machines
 * their secrets. What the configuration names itself, the *home*, may be anywhere. Asked for each
 * address in the moment before it is connected to, so that what a name resolves to cannot change in
 * between. */
#ifndef NET_ADDRESS_GUARD_H
#define NET_ADDRESS_GUARD_H

#include "net/address.h"

/* From near to far: who is seen farther away is trusted with less. */
typedef enum address_reach {
    ADDRESS_UNSEEN,
    ADDRESS_SAME_MACHINE,
    ADDRESS_SAME_NETWORK,
    ADDRESS_ELSEWHERE,
} address_reach;

/* Embedded in its owner. Threads: one loop's. */
typedef struct address_guard {
    bay_str home;               /* a URL; borrowed */
    const address_rules *rules; /* what is permitted besides; NULL: nothing; borrowed */
    address_reach reach;        /* how far away the home was seen, at its farthest */
} address_guard;

/* Has the home been seen, and on no other machine? */
bool address_guard_is_here(const address_guard *self);
/* A socket_permit; `user` is the guard. */
bool address_guard_permit(void *user, bay_str host, const net_address *address);
/* Is that the host of the home? Any case. */
bool address_guard_is_home(const address_guard *self, bay_str host);

#endif
