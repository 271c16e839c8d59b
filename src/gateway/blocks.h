/* Who is blocked, as one worker knows it: the rows of `patchbay block`, read again every few seconds.
 * What cannot be read stays as it was; before anything could be read nobody comes in. */
#ifndef GATEWAY_BLOCKS_H
#define GATEWAY_BLOCKS_H

#include "auth/principal.h"
#include "net/loop.h"
#include "store/store.h"

enum { BLOCKS_READ_MS = 5000 };

typedef struct gateway_blocks gateway_blocks;

/* `rows` outlives it. The loop does not turn yet: this turns it until the rows were read.
 * Owns: the caller. Errors: BAY_ERR_NOMEM. */
bay_err gateway_blocks_new(loop *on, store *rows, gateway_blocks **out) BAY_MUST_CHECK;
void gateway_blocks_free(gateway_blocks *self); /* NULL is fine; before the store closes */

/* `read` runs after each time that somebody is found to be blocked: streams that are open have to
 * end. */
void gateway_blocks_watch(gateway_blocks *self, void (*read)(void *user), void *user);
/* Reads the rows again, unless it does already: a timer's function. */
void gateway_blocks_refresh(void *self);

typedef enum blocks_answer { BLOCKS_NO, BLOCKS_YES, BLOCKS_UNKNOWN } blocks_answer;
blocks_answer gateway_blocks_have(const gateway_blocks *self, const auth_principal *who);

#endif
