/* The admin API of a running gateway: a listener of its own, for the people and programs that
 * operate it. It is no part of what clients reach.
 *
 * It listens on Unix sockets. Who may connect is decided when a connection is accepted
 * (net/peer_process): processes of this user and of root that the gateway did not start; a server
 * behind the gateway must not operate it. Each route names the roles that may use it
 * (admin_routes.def).
 *
 * Threads: worker 0's. What is asked of other loops goes there as a message and comes back as one;
 * a loop that does not answer in time is named in the answer, not waited for. */
#ifndef GATEWAY_ADMIN_H
#define GATEWAY_ADMIN_H

#include "gateway/worker.h"

typedef struct admin admin;

/* Listens where the configuration says, or else where gateway_options do. Before any loop runs;
 * sets gateway.admin, which stays NULL where nothing is listened on. Errors: as socket_listen for
 * what the configuration names. */
bay_err admin_open(gateway *owner, bay_diag *diag) BAY_MUST_CHECK;
/* Ends the listener and its connections; no loop runs any more. NULL is fine. */
void admin_close(admin *self);
/* After the loops: messages of it may have been in their queues. NULL is fine. */
void admin_free(admin *self);

#endif
