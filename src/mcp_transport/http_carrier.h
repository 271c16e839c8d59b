/* The engine's carrier over one exchange of this loop. */
#ifndef MCP_TRANSPORT_HTTP_CARRIER_H
#define MCP_TRANSPORT_HTTP_CARRIER_H

#include "front/http_reply.h"
#include "mcp/server.h"
#include "mcp_transport/http_exchange_reply.h"

typedef struct http_carrier {
    mcp_http_exchange back; /* first */
    http_reply reply;
    struct http_carriers *home;
} http_carrier;

/* The carriers of one router. They are reused, so that requests allocate none in steady state. */
typedef struct http_carriers {
    http_replies *replies;
    list spare;
    uint32_t spare_count;
    mcp_server *closed_last; /* the engine whose streams were told to end last */
} http_carriers;

void http_carriers_init(http_carriers *self, http_replies *replies);
void http_carriers_fini(http_carriers *self); /* after http_replies_fini */

/* NULL: out of memory. It is released by itself after its last call, or when the peer disconnects.
 */
http_carrier *http_carrier_new(http_carriers *home, http_exchange *exchange,
                               const auth_principal *principal);

/* The home of a carrier that was made here. */
http_carriers *http_carrier_home(mcp_carrier *carrier);
/* Returns the exchange without its carrier, which is not called any more. Only before any output.
 */
http_exchange *http_carrier_take(mcp_carrier *carrier);

#endif
