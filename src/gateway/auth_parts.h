/* What the files of gateway/auth.h share. */
#ifndef GATEWAY_AUTH_PARTS_H
#define GATEWAY_AUTH_PARTS_H

#include <stdatomic.h>

#include "gateway/auth.h"

struct gateway_auth {
    atomic_uint references;
    const config *config;
    oauth_state *state;
    /* The file's, then those of profiles in its order: the file's once more where a profile has no
     * `auth`. NULL: everybody comes in. */
    oauth_guard **guards;
    /* Of `auth.login`; both NULL without. */
    oauth_issuer *login_issuer;
    struct login_sessions *sessions;
    struct gateway_proxy *proxy; /* of `auth.proxy`; NULL: it is off */
};

/* The bits of an issuer's algorithms, as access_rules. */
unsigned auth_algorithms(const config_issuer *from);

/* Looks an API key up in the store: oauth_key_find; `user` is the store. */
void auth_key_find(void *user, bay_str id, oauth_key_done done, void *argument);

#endif
