/* What a client sees of servers that have a session for it alone (upstream_events.own_session): the
 * lists are read over that session. Where they differ from those that everybody sees, the client has
 * a catalog of its own, under the same rules; what it sees there, its calls reach.
 *
 *   no such session            the endpoint's views
 *   … whose lists are the same the endpoint's views
 *   … whose lists differ       views of its own, kind by kind
 *
 * A client that would need more views than there may be sees the endpoint's. */
#ifndef ENDPOINT_OWN_LISTS_H
#define ENDPOINT_OWN_LISTS_H

#include "catalog/catalog.h"
#include "mcp/server.h"

struct endpoint;

enum {
    OWN_LISTS_CLIENTS = 256,    /* of an endpoint, that have views of their own … */
    OWN_LISTS_BYTES = 64 << 20, /* … with so much text in all */
};

void own_lists_init(struct endpoint *self);
void own_lists_fini(struct endpoint *self); /* its sessions are gone */
/* A server's session for that client alone began, or is over; nothing happens where this endpoint
 * has no such client. */
void endpoint_own_session(struct endpoint *self, upstream *from, bay_str identity, uint64_t number,
                          bool is_open);
/* Has that server a session for this client? `session` may be NULL. */
bool own_lists_has(const struct endpoint *self, const mcp_session *session, const upstream *from);
/* That server's own session told of a change: its lists are read again, and then the client is told.
 * False: there is no such session. */
bool own_lists_announced(struct endpoint *self, const mcp_session *session, const upstream *from,
                         mcp_change change);
/* What everybody sees became another, or its servers did. */
void own_lists_follow(struct endpoint *self);
/* The client's session is over. */
void own_lists_forget(struct endpoint *self, const mcp_session *session);
/* What that client sees. */
const catalog_view *own_lists_view(const struct endpoint *self, const mcp_session *session,
                                   listing_kind kind);

#endif
