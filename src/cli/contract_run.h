/* Contracts of one server, called over one session. */
#ifndef CLI_CONTRACT_RUN_H
#define CLI_CONTRACT_RUN_H

#include "cli/inventory.h"
#include "trust/contract.h"

enum { CLI_CONTRACT_TEXT_BYTES = 64 << 10 }; /* of what one contract fails of */

typedef struct cli_contract_outcome {
    bool is_wanted; /* it is to be run */
    bool holds;
    bool reads_only; /* its tool claims readOnlyHint … */
    bool is_closed;  /* … and openWorldHint: false */
    uint64_t latency_ms;
    buf failures; /* a sentence a line */
} cli_contract_outcome;

typedef struct cli_contract_run {
    const trust_contracts *contracts;
    cli_contract_outcome *outcomes; /* one each */
} cli_contract_run;

/* One outcome for each contract, each wanted. BAY_ERR_NOMEM. */
bay_err cli_contract_run_init(cli_contract_run *self,
                              const trust_contracts *contracts) BAY_MUST_CHECK;
void cli_contract_run_fini(cli_contract_run *self);

/* Runs the wanted contracts at the TARGET. A tool that does not claim to be read-only is called only if its contract
 * says `writes: true`. A server that ends is started again for the next contract. CLI_EXIT_OK: each was judged; else
 * no session could be opened (what failed was said), or a signal came. */
cli_exit cli_contract_run_all(cli_contract_run *self, const cli_arguments *arguments);

/* Every *.yaml and *.json of a folder, by name, or one file: calls `each`, until one is not CLI_EXIT_OK. What is wrong
 * with a file is said with its line. */
typedef cli_exit (*cli_contract_file)(void *user, const char *path,
                                      const trust_contracts *contracts);
cli_exit cli_contracts_each(const char *path, cli_contract_file each, void *user);

#endif
