/* The engine's way back over one exchange of this loop. */
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

/* Carriers of one router. They are recycled, so a request in steady state allocates none. */
typedef struct http_carriers {
    http_replies *replies;
    list spare;
    uint32_t spare_count;
    mcp_server *closed_last; /* the engine whose streams were just told to end */
} http_carriers;

void http_carriers_init(http_carriers *self, http_replies *replies);
void http_carriers_fini(http_carriers *self); /* after http_replies_fini */

/* NULL when out of memory. It goes back by itself when its last call was made or the peer left. */
http_carrier *http_carrier_new(http_carriers *home, http_exchange *exchange);

/* Of one that was made here. */
http_carriers *http_carrier_home(mcp_carrier *carrier);
/* The exchange, from now on without its carrier, which hears nothing more. Nothing was said yet. */
http_exchange *http_carrier_take(mcp_carrier *carrier);

#endif
