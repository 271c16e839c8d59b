/* Ids that clients made: a client of 0.1 names its task itself, agents of later versions do that.
 * Which task of the agent is meant is remembered here, for all loops of a gateway, the newest
 * AGENTS_ALIASES of them. Any thread. */
#ifndef AGENTS_ALIASES_H
#define AGENTS_ALIASES_H

#include "base/buf.h"
#include "patchbay/types.h"

enum { AGENTS_ALIASES = 10000, AGENTS_ALIAS_BYTES = 512 /* of one id; a longer one is not kept */ };

typedef struct agents_aliases agents_aliases;

bay_err agents_aliases_new(agents_aliases **out) BAY_MUST_CHECK;
void agents_aliases_free(agents_aliases *self); /* NULL is fine */

/* `agent`, `principal` and `client_id` together are the key. Without memory nothing is kept: the
 * client's next request does not find its task. */
void agents_aliases_put(agents_aliases *self, bay_str agent, bay_str principal, bay_str client_id,
                        bay_str id);
/* Appends the agent's id; false: not known. */
bool agents_aliases_find(agents_aliases *self, bay_str agent, bay_str principal, bay_str client_id,
                         buf *out);

#endif
