/* What a server of the session revisions says, outside of any call, to the client that one of its
 * sessions serves alone (upstream_events.client_told and the two after it). */
#ifndef ENDPOINT_CLIENT_SESSION_H
#define ENDPOINT_CLIENT_SESSION_H

#include "base/list.h"
#include "mcp/server.h"
#include "upstream/upstream.h"

struct endpoint;

/* Nothing happens where this endpoint has no such client. */
void endpoint_client_told(struct endpoint *self, const upstream *from,
                          const upstream_client_message *what);
/* False: there is no such client here, or it cannot be asked this. */
bool endpoint_client_asked(struct endpoint *self, upstream *from, bay_str identity, uint64_t number,
                           const rpc_message *request);
void endpoint_client_withdrawn(struct endpoint *self, const upstream *from, uint64_t number);

#endif
