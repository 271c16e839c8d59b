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
#ifndef AGENTS_MADE_H
#define AGENTS_MADE_H

#include "a2a/service.h"
#include "agents/card.h"
#include "agents/remote.h"
#include "mcp/server.h"

typedef struct agents_made agents_made;

/* What the tools are of: the engine of a face of the gateway, on the same loop. NULL: there is none
 * (yet). */
typedef struct agents_tools {
    mcp_server *(*engine)(void *user);
    void *user;
} agents_tools;

bay_err agents_made_new(loop *loop, const agents_tools *tools, const agents_settings *settings,
                        const agents_public *public, agents_made **out,
                        bay_diag *diag) BAY_MUST_CHECK;
void agents_made_free(agents_made *self); /* NULL is fine */

a2a_service *agents_made_service(agents_made *self);
agents_card *agents_made_card(agents_made *self); /* NULL: the tools are not known yet */
bool agents_made_learn(agents_made *self);        /* as agents_remote_learn */
void agents_made_watch(agents_made *self, agents_watch *watch);
size_t agents_made_calls(const agents_made *self);
size_t agents_made_skills(const agents_made *self);

#endif
