/* Where the card of a remote agent may lead: by the guard (net/address_guard.h), whose home is the
 * address that the configuration gives. Key sets are apart. */
#ifndef AGENTS_ADDRESS_FILTER_H
#define AGENTS_ADDRESS_FILTER_H

#include "agents/settings.h"
#include "net/address_guard.h"

typedef struct agents_address_filter {
    const agents_settings *settings;
    address_rules *rules; /* NULL: none */
    address_guard guard;
} agents_address_filter;

/* `settings` is borrowed. Errors: BAY_ERR_SYNTAX with `diag` (one of `allow`), BAY_ERR_LIMIT,
 * BAY_ERR_NOMEM. */
bay_err agents_address_filter_init(agents_address_filter *self, const agents_settings *settings,
                                   bay_diag *diag) BAY_MUST_CHECK;
void agents_address_filter_fini(agents_address_filter *self);

/* A socket_permit; `user` is the filter. */
bool agents_address_filter_permit(void *user, bay_str host, const net_address *address);
/* The same for fetching key sets: only the hosts of those that the configuration names, wherever
 * they are. Apart, so that no card can lead to another port of such a host. */
bool agents_address_filter_permit_keys(void *user, bay_str host, const net_address *address);

#endif
