/* The response side of one exchange, of this loop or another, and the call that waits for its
 * session to be found before an engine gets it. Internal to the HTTP router. */
#ifndef MCP_TRANSPORT_HTTP_EXCHANGE_REPLY_H
#define MCP_TRANSPORT_HTTP_EXCHANGE_REPLY_H

#include "mcp/server.h"

typedef struct mcp_session_wait mcp_session_wait;

typedef struct mcp_http_exchange mcp_http_exchange;
struct mcp_http_exchange {
    mcp_carrier carrier;    /* first */
    mcp_server *engine;     /* NULL: the router itself answers */
    mcp_session_wait *wait; /* NULL: the call does not wait */
    void (*served)(
        mcp_http_exchange *self); /* a call that waited was passed to its engine; may be NULL */
};

/* The exchange has ended: nothing more is reported. */
void mcp_http_exchange_gone(mcp_http_exchange *self, uint64_t now_ms);

#endif
