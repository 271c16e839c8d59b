/* What a relay reads of requests, and changes in them: the skill they are for; and the ids of tasks
 * for a client that makes them itself (0.1), in front of an agent that does: what goes out names
 * the agent's task, what comes back the client's. */
#ifndef AGENTS_RELAY_PARAMS_H
#define AGENTS_RELAY_PARAMS_H

#include "a2a/service.h"
#include "agents/aliases.h"
#include "base/arena.h"

typedef struct relay_alias {
    agents_aliases *among; /* NULL: ids are passed through */
    bay_str agent;
    char *principal; /* owned, as is … */
    size_t principal_len;
    char *client_id; /* … what the client calls its task */
    size_t client_id_len;
} relay_alias;

/* For a call that needs it; one that names no task stays as it is. */
void relay_alias_init(relay_alias *self, agents_aliases *among, bay_str agent,
                      const a2a_call *call);
void relay_alias_fini(relay_alias *self);
/* The params with the agent's id in place of the client's; without tenant. */
void relay_alias_write(const relay_alias *self, a2a_method method, json_val params, buf *out);
/* A result or event with the client's id; its own text, where there is nothing to change. */
bay_str relay_alias_read(const relay_alias *self, json_val value, arena *scratch, buf *out);

/* The id of the skill that a SendMessageRequest is for, where it says so: `skillId` or `skill` in
 * the metadata of the message, else of the request. JSON_NONE: it does not. */
json_val relay_skill_of(json_val params);

enum { RELAY_TRACE_BYTES = 55 };
/* The same trace, a span of ours; empty: there is none, or it is not well formed. */
bay_str relay_child_span(bay_str traceparent, char out[RELAY_TRACE_BYTES]);

#endif
