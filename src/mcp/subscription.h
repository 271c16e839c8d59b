/* Subscriptions: updates of single resources (legacy resources/subscribe and modern listens share
 * one table) and the listens themselves. Internal to the server engine. */
#ifndef MCP_SUBSCRIPTION_H
#define MCP_SUBSCRIPTION_H

#include "mcp/server_internal.h"

/* One URI with subscriptions. */
typedef struct topic {
    list subscriptions;
    uint32_t hold; /* > 0: being walked */
    size_t len;
    char uri[];
} topic;

typedef struct subscription {
    list_link topic_link;
    list_link owner_link;
    topic *of;
    mcp_session *session; /* or … */
    listen_stream *listen;
} subscription;

/* An open subscriptions/listen. */
struct listen {
    carrier_owner owner; /* first; the carrier over HTTP */
    list_link server_link;
    list_link connection_link;
    mcp_server *server;
    mcp_connection *connection;
    unsigned changes;
    list subscriptions;
    uint32_t subscription_count;
    bool is_acknowledged;
    uint64_t expires_ms; /* wall clock: when the stream ends; 0: never */
    uint32_t id_len;
    char id[]; /* raw JSON */
};

/* The owner of the subscription: one of the two. */
typedef struct subscriber {
    mcp_session *session;
    listen_stream *listen;
    const auth_principal *principal;
    const policy_origin *origin; /* NULL: unknown, as of a session that is restored */
    call_refusal *refusal;       /* BAY_ERR_DENIED: why; NULL: not needed */
} subscriber;

/* Adds the subscriber to a URI; a second time is not an error. Each subscriber passes the door for
 * each URI, also if others have subscribed to it. Errors: BAY_ERR_NOT_FOUND (or the service's
 * error); BAY_ERR_DENIED: the door refused; BAY_ERR_NOMEM; BAY_ERR_LIMIT. */
bay_err subscription_add(mcp_server *server, bay_str uri, const subscriber *by) BAY_MUST_CHECK;
void subscription_remove(mcp_server *server, bay_str uri, mcp_session *session);
/* Ends all of a list. */
void subscriptions_end(mcp_server *server, list *owned);

/* Makes an open subscriptions/listen request a listen, or refuses it. */
void listen_open(request *self);
listen_stream *listen_find(mcp_connection *connection, bay_str id);
void listen_free(listen_stream *self); /* an HTTP carrier, if any, ends */
/* Ends one listen whose principal has expired by `wall_ms`. False: there is none. */
bool listen_expire(mcp_server *server, uint64_t wall_ms);
/* Sends one message on it; dropped before the acknowledgement. */
void listen_send(listen_stream *self, buf *json);
void listens_changed(mcp_server *server, mcp_change change);
/* Sends the final result, then frees it. */
void listen_complete(listen_stream *self);

#endif
