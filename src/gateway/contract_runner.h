/* Runs the contracts of one server (contracts.h) over its main session, one after the other:
 *
 *   IDLE ─the list of tools was read, and a run is due─► RUNNING ─the last was judged─► IDLE
 *
 * A run is due when the server starts or reconnects, when its list of tools changed, after a reload, by
 * `contracts.every`, and a while after a run with a failure. Its end sets the verdict and, in the mode `hold`, holds or
 * releases what the server lists. It lives on the loop of its server; there is one in a process. */
#ifndef GATEWAY_CONTRACT_RUNNER_H
#define GATEWAY_CONTRACT_RUNNER_H

#include "gateway/worker.h"

typedef struct contract_runner contract_runner;

enum {
    CONTRACT_RETRY_MS = 60 * 1000, /* after a failure; `contracts.every` if that is less */
    CONTRACT_LEAST_MS = 1000, /* between two runs; a smaller `contracts.every` counts as this */
};

/* BAY_ERR_NOMEM. A run is due. */
bay_err contract_runner_new(worker_upstream *of, gateway_contracts *contracts,
                            contract_runner **out) BAY_MUST_CHECK;
void contract_runner_free(contract_runner *self); /* NULL is fine */
/* Other contracts of the same server: a run is due, and begins if it can. */
void contract_runner_set(contract_runner *self, gateway_contracts *contracts);
/* The server's state changed. A new session: a run is due once its tools have been read. The server ended during a run:
 * the run ends, and the next one waits for the timer. */
void contract_runner_state(contract_runner *self, upstream_state state);
/* Its list of tools was read, or could not be. */
void contract_runner_listed(contract_runner *self, bool is_good, bool is_changed);
/* The server leaves: no further run. NULL is fine. */
void contract_runner_stop(contract_runner *self);

#endif
