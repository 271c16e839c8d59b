/* What ties the agents of one loop (agents/agents) to the gateway: the configuration in their
 * words, the endpoints whose tools they are made of, the servers that stand for their skills. */
#ifndef GATEWAY_AGENTS_H
#define GATEWAY_AGENTS_H

#include "gateway/worker.h"

/* Of a worker that has its HTTP client. */
bay_err worker_agents_init(worker *self, bay_diag *diag) BAY_MUST_CHECK;
/* The agents of the worker's configuration; those that did not change stay. Called again when the
 * listener has its port. */
bay_err worker_agents_set(worker *self, bay_diag *diag) BAY_MUST_CHECK;
/* Whether the agent of that name is the same in `next` as in what was set last: its settings, what
 * all agents share, and the files they name. */
bool worker_agent_stays(const worker *self, const config *next, bay_str name);
void worker_agents_forget(worker *self); /* the configuration that was set last; at the end */
/* The engine of the tools of an agent, for an upstream in process. NULL: there is no such agent. */
mcp_server *worker_agents_engine(void *user, bay_str name);

#endif
