#ifndef GATEWAY_FACE_PARTS_H
#define GATEWAY_FACE_PARTS_H

#include "gateway/face.h"

struct face {
    const config *config;
    char *only;
    loop *loop;
    uint32_t worker;
    const seal_ring *ring;
    mcp_server *engine;
    catalog_roster roster;
    catalog_view views[LISTING_KINDS];
    list waiting; /* requests from before the servers were heard of */
    list early;   /* subscriptions from then */
    bool is_settled;
    buf scratch;
};

/* A request on its way through: in the request's memory until it is finished. */
typedef struct route {
    list_link link; /* in face.waiting */
    face *face;
    mcp_request *request;
    listing *owner; /* keeps the tool's header table; may be NULL */
    upstream_call call;
    json_doc params_doc; /* of rewritten params */
} route;

/* route.c */
void route_to(face *self, mcp_request *request, upstream *to, bay_str rename,
              const catalog_entry *entry);
void route_cancelled(mcp_request *request);
void route_drained(mcp_request *request);
bool route_complete(face *self, mcp_request *request);

#endif
