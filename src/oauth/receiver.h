/* Receives the redirect that ends a login in the browser of this machine: a listener on a loopback
 * address for one login. It takes GET at one path, under its own name only, and answers with a page
 * that repeats nothing of the request. Source: RFC 8252 section 7.3; mcp 2025-11-25
 * basic/authorization. */
#ifndef OAUTH_RECEIVER_H
#define OAUTH_RECEIVER_H

#include "net/loop.h"
#include "patchbay/types.h"

typedef struct oauth_receiver oauth_receiver;

/* `query` of a redirect, without '?'. True: it was what is waited for. */
typedef bool (*oauth_received)(void *user, bay_str query);

/* Listens at `preferred` (http://127.0.0.1:PORT/PATH, of an earlier login) if it is one and free,
 * else at a free port.
 * Owns: the caller. Errors: BAY_ERR_IO, BAY_ERR_NOMEM with `diag`. Threads: the loop's. */
bay_err oauth_receiver_new(loop *loop, bay_str preferred, oauth_received received, void *user,
                           oauth_receiver **out, bay_diag *diag) BAY_MUST_CHECK;
/* "http://127.0.0.1:PORT/callback". Lives as long as the receiver. */
bay_str oauth_receiver_uri(const oauth_receiver *self);
/* Takes no further connection; an answer that is under way goes on. */
void oauth_receiver_stop(oauth_receiver *self);
/* Stops listening; an answer that is under way is cut. Not from `received`. */
void oauth_receiver_free(oauth_receiver *self); /* NULL is fine */

#endif
