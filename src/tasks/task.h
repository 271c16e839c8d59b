/* Tasks through the gateway, between the revisions of client and server.
 *
 *   client \ server   extension (2026-07-28)       core (2025-11-25)         neither
 *   extension         unchanged                    `task` added, results     unchanged
 *                                                  fetched and inlined
 *   core, `task`      the extension declared,      unchanged                 run as a call, the
 *                     result polled by                                       result stored for
 *                     tasks/result                                           the client
 *   without           run by the gateway if the    unchanged                 unchanged
 *                     tool requires a task
 *
 * The task ids that clients see are tokens (sessions/token.h) of the server's name and its own id,
 * bound to the principal: routing needs no table, and tokens survive a restart if the keys do. What
 * is stored is in the registry (registry.h), bounded: what tasks/list shows, stored results, and
 * input requests of a server that wait for a stateless client.
 *
 * A route that involves a task has a continuation (continuation.h), which handles the next outcome
 * of the route's call. */
#ifndef TASKS_TASK_H
#define TASKS_TASK_H

#include "endpoint/endpoint.h"

/* For endpoint_options. */
extern const endpoint_tasks task_ops;

#endif
