/* What "ADDRESS:PORT" says about who can reach it. */
#ifndef SDK_LISTEN_ADDRESS_H
#define SDK_LISTEN_ADDRESS_H

#include "patchbay/types.h"

/* Only programs of this machine: "127.0.0.1:8080", "[::1]:0", "localhost:80". */
bool listen_address_is_loopback(bay_str address);

#endif
