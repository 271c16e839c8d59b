/* A server that is served, for clients in its process: the loop it lives on and the engine that
 * speaks for it. */
#ifndef SDK_SERVING_H
#define SDK_SERVING_H

#include "mcp/server.h"
#include "net/loop.h"
#include "patchbay/server.h"

/* Checks and renders the registrations, makes loop and engine if there are none yet, and counts one
 * more user. The errors of bay_server_check; BAY_ERR_NOMEM; BAY_ERR_IO: no loop. */
bay_err sdk_serving_open(bay_server *server, bay_diag *diag) BAY_MUST_CHECK;
/* One user less; the last one ends engine and loop, after handlers on other threads let go: they
 * have 10 seconds, in which the loop is turned; after that both stay, for bay_server_free to try
 * again. Never inside a turn that the last user makes. */
void sdk_serving_close(bay_server *server);

/* Both NULL while nobody has it open. The user turns the loop as it likes (loop_turn, loop_run);
 * the engine's clock is ticked by a timer of the loop. */
loop *sdk_serving_loop(bay_server *server);
mcp_server *sdk_serving_engine(bay_server *server);

#endif
