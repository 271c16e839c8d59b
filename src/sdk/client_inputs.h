/* What one result asks for: all its input requests, put to the client's handlers at once, and their
 * answers under the same keys. Rounds and tasks are made of these. */
#ifndef SDK_CLIENT_INPUTS_H
#define SDK_CLIENT_INPUTS_H

#include "sdk/client_parts.h"

enum { INPUTS_MAX = 64 }; /* of one result */

typedef struct inputs inputs;
/* All have been answered, or (an error in `diag`) one of them was not. The last thing an `inputs`
 * does: it may be freed inside. */
typedef void (*inputs_done)(void *user, const bay_diag *diag);

/* Asks whatever of `requests` is not in `known` (raw keys as members of a map; NULL: none). `done`
 * runs exactly once, inside or later, unless the inputs are freed before; it does not run when this
 * fails: BAY_ERR_PROTOCOL (not a map of requests that a server may make, or one that this client
 * did not declare), BAY_ERR_LIMIT, BAY_ERR_NOMEM. `*out` is set before anybody is asked. */
bay_err inputs_ask(bay_client *client, json_val requests, const map *known, inputs_done done,
                   void *user, inputs **out, bay_diag *diag) BAY_MUST_CHECK;
size_t inputs_count(const inputs *self);
bay_str inputs_key(const inputs *self, size_t index); /* raw, with its quotes */
/* Writes the answers as the value of inputResponses. */
void inputs_write(const inputs *self, json_writer *out);
void inputs_free(inputs *self); /* NULL is fine; open questions become pointless */

#endif
