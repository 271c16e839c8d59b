/* A server role on stdin and stdout: one line, one message. */
#ifndef MCP_TRANSPORT_STDIO_H
#define MCP_TRANSPORT_STDIO_H

#include "mcp/server.h"
#include "net/loop.h"

typedef struct mcp_stdio mcp_stdio;

/* Serves `server` on two descriptors. `done` runs once: the input ended (and every request that was
 * under way has been answered or `linger_ms` have passed) or the output broke. */
bay_err mcp_stdio_new(loop *loop, mcp_server *server, int in, int out_descriptor,
                      uint32_t linger_ms, void (*done)(void *user), void *user,
                      mcp_stdio **out) BAY_MUST_CHECK;
/* As if the input ended now: what is under way is answered, for at most `linger_ms`, then `done`.
 */
void mcp_stdio_end(mcp_stdio *self, uint32_t linger_ms);
void mcp_stdio_free(mcp_stdio *self);

#endif
