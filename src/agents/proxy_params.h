/* What a relay reads of requests, and changes in them: the skill they are for; and the ids of tasks
 * for a client that makes them itself (0.1), in front of an agent that does: what goes out names
 * the agent's task, what comes back the client's. */
#ifndef AGENTS_PROXY_PARAMS_H
#define AGENTS_PROXY_PARAMS_H

#include "a2a/service.h"
#include "agents/aliases.h"
#include "base/arena.h"

typedef struct agents_proxy_alias {
    agents_aliases *among; /* NULL: ids are passed through */
    bay_str agent;
    char *principal; /* owned, as is … */
    size_t principal_len;
    char *client_id; /* … what the client calls its task */
    size_t client_id_len;
} agents_proxy_alias;

/* For a call that needs it; one that names no task stays as it is. */
void agents_proxy_alias_init(agents_proxy_alias *self, agents_aliases *among, bay_str agent,
                             const a2a_call *call);
void agents_proxy_alias_fini(agents_proxy_alias *self);
/* The params with the agent's id in place of the client's, in `memory`; without tenant. */
bay_err agents_proxy_alias_write(const agents_proxy_alias *self, a2a_method method, json_val params,
                                 arena *memory, json_val *out) BAY_MUST_CHECK;
/* A result or event with the client's id, in `memory`; itself, where there is nothing to change. */
bay_err agents_proxy_alias_read(const agents_proxy_alias *self, json_val value, arena *memory,
                                json_val *out) BAY_MUST_CHECK;

/* The id of the skill that a SendMessageRequest is for, where it says so: `skillId` or `skill` in
 * the metadata of the message, else of the request. JSON_NONE: it does not. */
json_val agents_proxy_skill_of(json_val params);

enum { PROXY_TRACE_BYTES = 55 };
/* The same trace, a span of ours; empty: there is none, or it is not well formed. */
bay_str agents_proxy_child_span(bay_str traceparent, char out[PROXY_TRACE_BYTES]);

#endif
