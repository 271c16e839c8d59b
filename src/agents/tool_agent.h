/* An agent made of tools: its skills are tools of the gateway's catalog, and a message calls one.
 *
 *   message ─► which tool? ─► tools/call ─► artifacts, COMPLETED
 *                 │             ├─ progress ─► WORKING, with its words
 *                 │             ├─ a question ─► INPUT_REQUIRED; the next message is the answer
 *                 │             └─ isError ─► FAILED
 *                 └─ none: REJECTED, with the ids there are
 *
 * A message names its tool by a data part {"tool": …, "arguments": {…}}, by metadata (skillId), or
 * by a text that is the id of a skill, and nothing else. */
#ifndef AGENTS_TOOL_AGENT_H
#define AGENTS_TOOL_AGENT_H

#include "a2a/service.h"
#include "agents/card.h"
#include "agents/remote.h"
#include "mcp/server.h"

typedef struct agents_tool_agent agents_tool_agent;

/* What the tools are of: the engine of an endpoint of the gateway, on the same loop. NULL: there is
 * none (yet). */
typedef struct agents_tools {
    mcp_server *(*engine)(void *user);
    void *user;
} agents_tools;

bay_err agents_tool_agent_new(loop *loop, const agents_tools *tools,
                              const agents_settings *settings, const agents_public *public,
                              agents_tool_agent **out, bay_diag *diag) BAY_MUST_CHECK;
void agents_tool_agent_free(agents_tool_agent *self); /* NULL is fine */

a2a_service *agents_tool_agent_service(agents_tool_agent *self);
agents_card *
agents_tool_agent_card(agents_tool_agent *self);       /* NULL: the tools are not known yet */
bool agents_tool_agent_learn(agents_tool_agent *self); /* as agents_remote_learn */
void agents_tool_agent_watch(agents_tool_agent *self, agents_watch *watch);
size_t agents_tool_agent_calls(const agents_tool_agent *self);
size_t agents_tool_agent_skills(const agents_tool_agent *self);

#endif
