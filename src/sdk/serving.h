/* A server while it is being served: the loop it lives on and the engine that speaks for it. Made
 * by the first listen, pipe, run or attach; ended with the last user's close. */
#ifndef SDK_SERVING_H
#define SDK_SERVING_H

#include "mcp/server.h"
#include "net/loop.h"
#include "patchbay/server.h"

/* Checks and renders the registrations, makes loop and engine if there are none yet, and counts one
 * more user. The errors of bay_server_check; BAY_NOMEM. */
bay_err sdk_serving_open(bay_server *server, bay_diag *diag) BAY_MUST_CHECK;
/* One user less; the last one ends engine and loop, after handlers on other threads let go. */
void sdk_serving_close(bay_server *server);

loop *sdk_serving_loop(bay_server *server);
mcp_server *sdk_serving_engine(bay_server *server);

#endif
