/* A2A over HTTP, behind a front (front/front.h), which has guarded the exchange and knows its
 * caller: all bindings and versions of an agent, and its cards. One per loop.
 *
 *   POST PATH, PATH/            JSON-RPC
 *   PATH/message:send … , PATH/v1/…          HTTP+JSON of 1.0 and of 0.3
 *   POST /lf.a2a.v1.A2AService/…, /a2a.v1.A2AService/…    gRPC (HTTP/2); metadata or tenant choose
 *                                            the agent where several stand behind one address
 *   GET PATH/.well-known/agent-card.json, PATH/.well-known/agent.json */
#ifndef A2A_TRANSPORT_ROUTER_H
#define A2A_TRANSPORT_ROUTER_H

#include "a2a/inbound.h"
#include "a2a/service.h"
#include "front/front.h"
#include "http/http_server.h"

typedef struct a2a_http_router a2a_http_router;

/* One agent as it is found. Views live until the next turn of the loop. */
typedef struct a2a_http_agent {
    a2a_service *service;
    /* Cards, rendered: 1.0 and hybrid for agent-card.json, 0.3 for agent.json; with their ETags. */
    bay_str card_1_0;
    bay_str card_hybrid;
    bay_str card_0_3;
    bay_str etag_1_0;
    bay_str etag_hybrid;
    bay_str etag_0_3;
    bay_str extensions;     /* that it has, separated by commas: those a request names are echoed */
    bool is_hybrid_default; /* without A2A-Version: the hybrid; else the pure one */
    uint32_t card_max_age_s;
} a2a_http_agent;

typedef struct a2a_http_router_options {
    uint32_t keep_alive_ms; /* comment on quiet streams; 0: 15,000 */
    a2a_inbound_settings inbound;
    /* For gRPC, whose paths name no agent: the one that `tenant` says. False: there is none. */
    bool (*agent)(void *user, bay_str tenant, a2a_http_agent *out);
    /* Asked once a call was read and before a service has it: may it be made? `call` has all but
     * its ops and service. BAY_OK; else it fails with `fault`, at HTTP status 401 and 403 for
     * A2A_E_UNAUTHENTICATED (with `out_challenge`) and A2A_E_FORBIDDEN. NULL: every call. */
    bay_err (*admit)(void *user, const a2a_http_agent *agent, http_exchange *exchange,
                     const a2a_call *call, front_challenge *out_challenge, a2a_fault *fault);
    void *user;
} a2a_http_router_options;

bay_err a2a_http_router_new(loop *loop, const a2a_http_router_options *options,
                            a2a_http_router **out) BAY_MUST_CHECK;
/* After its http_server and before services and loop. */
void a2a_http_router_free(a2a_http_router *self);
/* What a preflight of its paths is answered. */
extern const http_cors a2a_http_router_cors;

/* An exchange at an agent's path, of which `path` is what follows the agent's own; answered in any
 * case. `principal` is who sent it (NULL: nobody in particular), borrowed. */
void a2a_http_router_serve(a2a_http_router *self, http_exchange *exchange,
                           const a2a_http_agent *agent, bay_str path,
                           const auth_principal *principal);
/* One at a path of gRPC's services; false: it is not gRPC, and not answered. */
bool a2a_http_router_serve_grpc(a2a_http_router *self, http_exchange *exchange,
                                const auth_principal *principal);
/* GET and HEAD of a card; false: `path` is that of none. */
bool a2a_http_router_serve_card(http_exchange *exchange, const a2a_http_agent *agent, bay_str path);
/* There is nothing at this path of an agent: 404. */
void a2a_http_router_serve_nothing(http_exchange *exchange);
/* What the front refuses, in the words of the request: gRPC's, JSON-RPC's or HTTP+JSON's. */
void a2a_http_router_refuse(a2a_http_router *self, http_exchange *exchange, bay_str path,
                            const front_refusal *refusal);
/* For front_options.identify: a fault as the refusal that a2a_http_router_refuse makes it again.
 * Returns FRONT_REFUSE. */
front_verdict a2a_http_router_refused(http_exchange *exchange, const a2a_fault *fault,
                                      const front_challenge *challenge, front_refusal *out);
/* Is gRPC among what a router serves? Not in a library without HTTP/2. */
bool a2a_http_router_has_grpc(void);
/* The url of the gRPC interface of an agent at `base` ("https://127.0.0.1:8443"), appended:
 * "host:port" where the port says whether it is TLS (a2a_transport/grpc_link.h), else with its
 * scheme. Nothing without gRPC, or if `base` is no URL. */
void a2a_http_router_write_grpc(bay_str base, buf *out);
/* Open streams end (before a drain); clients come back. */
void a2a_http_router_close_streams(a2a_http_router *self);

#endif
