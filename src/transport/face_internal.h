/* What the files of the HTTP face share. Internal to the transport floor. */
#ifndef TRANSPORT_FACE_INTERNAL_H
#define TRANSPORT_FACE_INTERNAL_H

#include "base/map.h"
#include "transport/face_back.h"
#include "transport/http_carrier.h"
#include "transport/mcp_http_face.h"
#include "transport/relay_port.h"

struct http_face {
    loop *loop;
    http_face_options options;
    bay_str messages_path; /* empty: HTTP+SSE is not served */
    http_replies replies;
    http_carriers carriers;
    map connections; /* HTTP+SSE, by id */
    list leaving;    /* of them: end once their last answer is sent */
    loop_task leave_task;
    relay_port *port;
    list relayed; /* exchanges of other loops that our engines deal with */
    list waits;   /* calls whose session is being looked for */
    relay_port **peers;
    size_t peer_count;
};

/* One request at an endpoint, of this loop or another. */
typedef struct face_call {
    bay_str path;
    bay_str query;
    mcp_server *engine; /* of the path; NULL: not looked up yet */
    mcp_http_request http;
} face_call;

/* Gives the call to its engine, or to the HTTP+SSE connection it names. `back->engine` is set
 * before the carrier hears anything. When `back->wait` is set afterwards, what the call points to
 * must stay until `back->served` or face_back_gone. */
void face_serve(http_face *self, const face_call *call, face_back *back);
/* The rest of it, once there is nothing to wait for. */
void face_serve_now(http_face *self, const face_call *call, face_back *back);

/* Does the call wait for its session, or was it answered because it cannot? */
bool face_wait_begin(http_face *self, const face_call *call, mcp_server *engine, face_back *back);
/* The face goes: nobody waits any more. */
void face_waits_end(http_face *self);

#endif
