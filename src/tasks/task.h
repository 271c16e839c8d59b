/* Tasks through the gateway: what outlives the call that began it, in the words of either era.
 *
 *   client \ server   extension (2026-07-28)       core (2025-11-25)            neither
 *   extension         as it is                     `task` added, results        as it is
 *                                                  fetched and inlined
 *   core, `task`      the extension declared,      as it is                     run plainly, the
 * result polled by tasks/result                                    kept for the client without run
 * by the gateway where the tool requires a task         as it is
 *
 * The task ids that clients see are tokens (sessions/token.h) of the server's name and its own id,
 * bound to the principal: nothing has to be remembered to route them, and they survive a restart
 * with the keys. What is remembered is in the registry (registry.h), bounded: what tasks/list
 * shows, results kept, questions of a server that wait for a stateless client.
 *
 * A task's part in a route is a continuation (continuation.h): what the next outcome of the route's
 * call means. */
#ifndef TASKS_TASK_H
#define TASKS_TASK_H

#include "endpoint/endpoint.h"

/* For endpoint_options. */
extern const endpoint_tasks task_ops;

#endif
