/* "HOST:PORT" as servers, agents and the gateway listen on it: who can reach it, whether it may be
 * served there, and how it is written in a URL. */
#ifndef FRONT_LISTEN_ADDRESS_H
#define FRONT_LISTEN_ADDRESS_H

#include "base/buf.h"
#include "patchbay/types.h"

/* How callers are held off, or that they are not. The texts name it in errors. */
typedef struct listen_policy {
    bool is_protected;          /* every caller is authenticated */
    bool is_open;               /* opened on purpose: anybody may call */
    const char *authentication; /* "bay_server_identify" */
    const char *opening;        /* "bay_server_open_on_purpose" */
    /* Tokens are taken, and nobody said the address that they must be for: what says it; NULL: it
     * is said, or none are taken. From this machine it is the address that is listened on. */
    const char *missing_url;
} listen_policy;

/* Opening admits those whom authentication would refuse: both together are a mistake.
 * Errors: BAY_ERR_INVALID. Threads: any. */
bay_err listen_policy_check(const listen_policy *self, bay_diag *diag) BAY_MUST_CHECK;

/* Whether `address` may be served under the policy: one that only this machine reaches always, any
 * other if it is protected or open. `out_is_local` tells which it is; listen with `is_local_only`
 * where it is true, since a name may resolve to another address by then.
 * Errors: as listen_policy_check; BAY_ERR_DENIED; BAY_ERR_INVALID: no address, or `missing_url`;
 * BAY_ERR_RESOLVE.
 * Threads: any; a host name that is no literal address blocks. */
bay_err listen_policy_admit(const listen_policy *self, bay_str address, bool *out_is_local,
                            bay_diag *diag) BAY_MUST_CHECK;
/* The same for an address that is listened on, so that nothing is resolved. */
bay_err listen_policy_decide(const listen_policy *self, bay_str address, bool is_local,
                             bay_diag *diag) BAY_MUST_CHECK;

enum { LISTEN_NAMES = 16, LISTEN_NAME_BYTES = 253 };

/* Names of this machine that it listens on, and that only a look-up tells to be loopback: requests
 * for them are as honest as those for "localhost". */
typedef struct listen_names {
    char at[LISTEN_NAMES][LISTEN_NAME_BYTES + 1];
    size_t count;
} listen_names;

/* Adds the host of a local address unless it is known, or known to be loopback by its text. More
 * than LISTEN_NAMES are left out. */
void listen_names_add(listen_names *self, bay_str address);
bool listen_names_have(const listen_names *self, bay_str name); /* NULL: none */

/* HOST:PORT of a listener, with the port that it was given: as it was written ("[::]" for ":PORT"
 * and "*:PORT"), and as callers reach it: the name of this machine in place of every address. */
void listen_address_write(bay_str address, uint16_t port, buf *out);
void listen_address_write_reachable(bay_str address, uint16_t port, buf *out);

#endif
