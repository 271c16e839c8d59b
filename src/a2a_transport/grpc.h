/* gRPC for A2A services: HTTP/2 exchanges with protobuf of package lf.a2a.v1 (1.0) and a2a.v1 (0.3)
 * become calls of a service. The HTTP router (a2a_transport/router) passes on every exchange for
 * which a2a_grpc_is_request is true; all of them are answered here.
 *
 * Status and details: a fault is grpc-status with its message, and ErrorInfo in
 * grpc-status-details-bin; before the first message of an answer as one head without a body
 * ("trailers only"), after it as trailers. grpc-timeout is enforced: the service then gets `gone`.
 * Compressed messages, more than one message in a request and messages above the server's
 * body_bytes are refused. */
#ifndef A2A_TRANSPORT_GRPC_H
#define A2A_TRANSPORT_GRPC_H

#include "a2a_transport/router.h"
#include "front/http_reply.h"

/* The owner of an exchange (front/http_reply.h). */
typedef http_owner_ops a2a_exchange_ops;

typedef struct a2a_grpc a2a_grpc;

/* `options` (agent, admit, their user) is borrowed until a2a_grpc_free. `agent` is called with the
 * tenant of the request (form 0.3 has none: the metadata a2a-tenant, or ""). */
bay_err a2a_grpc_new(loop *loop, const a2a_http_router_options *options,
                     a2a_grpc **out) BAY_MUST_CHECK;
/* After its http_server (so that no exchange remains) and before services and loop. */
void a2a_grpc_free(a2a_grpc *self);

/* HTTP/2, POST, content-type application/grpc, application/grpc+proto or any other +FORMAT of it
 * (which is then refused in gRPC's form). */
bool a2a_grpc_is_request(const http_exchange *exchange);
/* Takes the exchange: answers it before it returns, or later. From then on its user pointer begins
 * with a2a_exchange_ops, or is NULL if it is answered already. `principal` is the caller, borrowed.
 */
void a2a_grpc_request(a2a_grpc *self, http_exchange *exchange, const auth_principal *principal);
/* The open streams of callers of whom this says true end with PERMISSION_DENIED. NULL: all of them,
 * with UNAVAILABLE (before a drain); clients reconnect. */
void a2a_grpc_end_streams(a2a_grpc *self, principal_test is_over, void *user);

/* A gRPC answer to a request that a2a_grpc_request does not get (Host, Origin, identification). */
void a2a_grpc_refuse(http_exchange *exchange, const a2a_fault *fault,
                     const front_challenge *challenge);
/* For a path without a method: UNIMPLEMENTED. */
void a2a_grpc_refuse_path(http_exchange *exchange);

#endif
