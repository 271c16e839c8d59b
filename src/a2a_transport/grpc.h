/* gRPC in front of A2A services: HTTP/2 exchanges whose content is protobuf, of package lf.a2a.v1
 * (1.0) and a2a.v1 (0.3), as calls of a service. The HTTP router (a2a_transport/router) hands over
 * what a2a_grpc_is_request says is gRPC's; all of it is answered here.
 *
 * Status and details: a fault is grpc-status with its message, and ErrorInfo in
 * grpc-status-details-bin; before the first message of an answer as one head without a body
 * ("trailers only"), behind it as trailers. grpc-timeout is kept: the call of the service is then
 * gone. Compressed messages, more than one message in a request and messages above the server's
 * body_bytes are refused. */
#ifndef A2A_TRANSPORT_GRPC_H
#define A2A_TRANSPORT_GRPC_H

#include "a2a_transport/router.h"
#include "front/http_reply.h"

/* Who looks after an exchange (front/http_reply.h). */
typedef http_owner_ops a2a_exchange_ops;

typedef struct a2a_grpc a2a_grpc;

/* `options` (agent, admit, their user) is borrowed until a2a_grpc_free. `agent` is asked with the
 * tenant of the request (form 0.3 has none: of metadata a2a-tenant, or ""). */
bay_err a2a_grpc_new(loop *loop, const a2a_http_router_options *options,
                     a2a_grpc **out) BAY_MUST_CHECK;
/* After its http_server (so that no exchange is left) and before services and loop. */
void a2a_grpc_free(a2a_grpc *self);

/* HTTP/2, POST, content-type application/grpc, application/grpc+proto or any other +FORMAT of it
 * (which is then refused as gRPC wants it). */
bool a2a_grpc_is_request(const http_exchange *exchange);
/* Takes the exchange: answers it before it returns, or later; its user pointer begins as
 * a2a_exchange_ops says from then on, or is NULL when it is answered already. `principal` is who
 * sent it, borrowed. */
void a2a_grpc_request(a2a_grpc *self, http_exchange *exchange, const auth_principal *principal);
/* Open streams end with UNAVAILABLE (before a drain); clients come back. */
void a2a_grpc_close_streams(a2a_grpc *self);

/* An answer of gRPC to a request that never got as far as a2a_grpc_request (Host, Origin, who
 * calls). */
void a2a_grpc_refuse(http_exchange *exchange, const a2a_fault *fault,
                     const front_challenge *challenge);
/* At a path that is no method's: UNIMPLEMENTED. */
void a2a_grpc_refuse_path(http_exchange *exchange);

#endif
