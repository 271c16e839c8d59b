/* Where the card of a remote agent may lead. Whoever writes a card is a stranger to the gateway's
 * network: one that comes from a public address leads to public addresses, and none leads to where
 * clouds tell machines their secrets. What the configuration names itself may be anywhere. Asked
 * for each address in the moment before it is connected to. */
#ifndef AGENTS_ADDRESS_FILTER_H
#define AGENTS_ADDRESS_FILTER_H

#include "agents/settings.h"

typedef struct agents_address_filter {
    const agents_settings *settings;
    address_rules *rules; /* NULL: none */
    int reach;            /* how far away the agent itself was seen; 0: not yet */
} agents_address_filter;

/* `settings` is borrowed. Errors: BAY_SYNTAX with `diag` (one of `allow`), BAY_LIMIT, BAY_NOMEM. */
bay_err agents_address_filter_init(agents_address_filter *self, const agents_settings *settings,
                                   bay_diag *diag) BAY_MUST_CHECK;
void agents_address_filter_fini(agents_address_filter *self);

/* Has the agent been seen, and on no other machine? */
bool agents_address_filter_is_here(const agents_address_filter *self);
/* A socket_permit; `user` is the filter. */
bool agents_address_filter_permit(void *user, bay_str host, const net_address *address);
/* The same for fetching key sets: only the hosts of those that the configuration names, wherever
 * they are. Apart, so that no card can lead to another port of such a host. */
bool agents_address_filter_permit_keys(void *user, bay_str host, const net_address *address);

#endif
