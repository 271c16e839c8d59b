/* The contracts that a gateway runs: read from files when the configuration is loaded, and what the last run of each
 * server's contracts said. One counted object for all loops. The documents do not change; the verdicts have a lock.
 *
 * A *contract runner* (contract_runner.c) calls the tools of one server, on one loop. */
#ifndef GATEWAY_CONTRACTS_H
#define GATEWAY_CONTRACTS_H

#include "config/config.h"
#include "trust/contract.h"
#include "json/writer.h"

enum {
    CONTRACT_VERDICT_BYTES = 400,
    CONTRACT_MEMORY = 64 << 20, /* of all files of a configuration */
};

typedef struct gateway_contracts gateway_contracts;

/* Those of one server, in the order of the files. */
typedef struct contract_set {
    bay_str server;
    const trust_contract **at;
    size_t count;
} contract_set;

typedef struct contract_verdict {
    bool is_judged; /* the contracts have been run to their end */
    size_t holding;
    size_t failing;
    char text[CONTRACT_VERDICT_BYTES]; /* the first that fails, and why; harmless on a terminal */
} contract_verdict;

/* Reads what `contracts` of the configuration names. `*out` is NULL where its mode is off. `before` (may be NULL): the
 * verdicts of servers that it has are taken over.
 * Errors: BAY_ERR_INVALID (a file is wrong, or is about a server that the configuration does not have), BAY_ERR_IO,
 * BAY_ERR_NOT_FOUND, BAY_ERR_LIMIT, BAY_ERR_NOMEM, with `diag`. */
bay_err gateway_contracts_new(const config *settings, gateway_contracts *before,
                              gateway_contracts **out, bay_diag *diag) BAY_MUST_CHECK;
/* Any thread; NULL is fine. */
gateway_contracts *gateway_contracts_ref(gateway_contracts *self);
void gateway_contracts_unref(gateway_contracts *self);

/* Everything below: any thread; `self` may be NULL. */

/* NULL: the server has none. As long as `self`. */
const contract_set *gateway_contracts_of(const gateway_contracts *self, bay_str server);
config_contracts gateway_contracts_settings(const gateway_contracts *self);
contract_verdict gateway_contracts_verdict(gateway_contracts *self, bay_str server);
/* Returns what was there before. */
contract_verdict gateway_contracts_set_verdict(gateway_contracts *self, bay_str server,
                                               const contract_verdict *verdict);
/* Is the server to be held: its contracts fail, or nobody knows yet whether they hold? */
bool gateway_contracts_hold(gateway_contracts *self, bay_str server);
/* Is it held only because they have not been run yet? */
bool gateway_contracts_await(gateway_contracts *self, bay_str server);
/* The member "contracts" of a server's status, if it has any. `has_text`: with the first failure. */
void gateway_contracts_write(gateway_contracts *self, bay_str server, bool has_text,
                             json_writer *out);

#endif
