/* Tasks through the gateway: what outlives the call that began it, in the words of either era.
 *
 *   client \ server   extension (2026-07-28)       core (2025-11-25)            neither
 *   extension         as it is                     `task` added, results        as it is
 *                                                  fetched and inlined
 *   core, `task`      the extension declared,      as it is                     run plainly, the
 * result polled by tasks/result                                    kept for the client without run
 * by the gateway where the tool requires a task         as it is
 *
 * The task ids that clients see are tokens (gateway/token.h) of the server's name and its own id,
 * bound to the principal: nothing has to be remembered to route them, and they survive a restart
 * with the keys. What is remembered is in the book (task_book.h), bounded: what tasks/list shows,
 * results kept, questions of a server that wait for a stateless client.
 *
 * A task's part in a route is a plan (task_plan.h): what the next outcome of the route's call
 * means. */
#ifndef GATEWAY_TASK_H
#define GATEWAY_TASK_H

#include "gateway/catalog.h"
#include "gateway/task_book.h"
#include "mcp/server.h"

struct face;
struct route;
typedef struct task_plan task_plan;

/* What a face declares: the capability of the core, for an open capabilities object; and the
 * extension, for the object of that name inside it. Nothing where no token can be made. */
void task_put_capability(const struct face *self, const mcp_revision *revision, json_writer *out);
void task_put_extension(const struct face *self, const mcp_revision *revision, json_writer *out);

/* Takes a request of tasks/get, tasks/update, tasks/cancel, tasks/result or tasks/list. */
void task_request(struct face *self, mcp_request *request);

/* Before a tools/call goes to `to`: makes its plan, if it needs one. 0, or the code of the JSON-RPC
 * error that refuses it; `out_text` says why. */
int task_admit(struct route *way, upstream *to, const catalog_entry *entry, bay_str *out_text);
/* An answer to the server's question, which names the task as the server does; `result` raw, and as
 * it is where the route waits for no task. The view lives as long as the route. */
bay_str task_answer(struct route *way, bay_str result);
/* The route ends, and its plan with it: a task that ran for this client alone is cancelled. NULL
 * plans are fine. */
void task_end(struct route *way);

#endif
