/* An agent's skills as MCP tools: a server engine of the stateless revision, in process, whose
 * tools are the skills of the agent's card. It stands behind the gateway's catalog like any other
 * server, so that names, filters, eras and questions are the gateway's affair.
 *
 *   tools/list ─► the card, fetched if need be
 *   tools/call ─► a message to the agent; its events are progress, its artifacts content;
 *                 INPUT_REQUIRED is a question to the client, or an error that names the task where
 *                 the client cannot be asked */
#ifndef AGENTS_SKILLS_H
#define AGENTS_SKILLS_H

#include "agents/remote.h"
#include "mcp/server.h"

typedef struct agents_skills agents_skills;

/* `remote` outlives it. */
bay_err agents_skills_new(loop *loop, agents_remote *remote, agents_skills **out) BAY_MUST_CHECK;
void agents_skills_free(agents_skills *self); /* NULL is fine */
mcp_server *agents_skills_engine(agents_skills *self);

#endif
