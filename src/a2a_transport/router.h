/* A2A over HTTP, behind a front (front/front.h), which has checked the exchange and identified its
 * caller: all bindings and versions of an agent, and its cards. One per loop.
 *
 *   POST PATH, PATH/                         JSON-RPC
 *   PATH/message:send … , PATH/v1/…          HTTP+JSON of 1.0 and of 0.3
 *   POST /lf.a2a.v1.A2AService/…, /a2a.v1.A2AService/…
 *                                            gRPC (HTTP/2); metadata or tenant select the
 *                                            agent if several have one address
 *   GET PATH/.well-known/agent-card.json, PATH/.well-known/agent.json */
#ifndef A2A_TRANSPORT_ROUTER_H
#define A2A_TRANSPORT_ROUTER_H

#include "a2a/inbound.h"
#include "a2a/service.h"
#include "front/front.h"
#include "http/http_server.h"

typedef struct a2a_http_router a2a_http_router;

/* One agent. Views live until the next loop iteration. */
typedef struct a2a_http_agent {
    a2a_service *service;
    /* Rendered cards: 1.0 and hybrid for agent-card.json, 0.3 for agent.json; with their ETags. */
    bay_str card_1_0;
    bay_str card_hybrid;
    bay_str card_0_3;
    bay_str etag_1_0;
    bay_str etag_hybrid;
    bay_str etag_0_3;
    bay_str extensions;     /* supported ones, with commas: those in the request are echoed */
    bool is_hybrid_default; /* without A2A-Version: the hybrid; otherwise the pure one */
    uint32_t card_max_age_s;
} a2a_http_agent;

typedef struct a2a_http_router_options {
    uint32_t keep_alive_ms; /* comment on quiet streams; 0: 15,000 */
    a2a_inbound_settings inbound;
    /* For gRPC, whose paths name no agent: the agent of `tenant`. False: none for this principal. */
    bool (*agent)(void *user, bay_str tenant, http_exchange *exchange,
                  const auth_principal *principal, a2a_http_agent *out);
    /* What rules read of where an exchange comes from, in its memory; NULL, or of NULL: nothing. */
    const policy_origin *(*origin)(void *user, http_exchange *exchange);
    /* Called after a call was read and before its service gets it: is it allowed? `call` has
     * everything except its ops and service. BAY_OK; otherwise the call fails with `fault`, with
     * HTTP status 401 and 403 for A2A_E_UNAUTHENTICATED (with `out_challenge`) and A2A_E_FORBIDDEN.
     * NULL: every call is allowed. */
    bay_err (*admit)(void *user, const a2a_http_agent *agent, http_exchange *exchange,
                     const a2a_call *call, front_challenge *out_challenge, a2a_fault *fault);
    void *user;
} a2a_http_router_options;

bay_err a2a_http_router_new(loop *loop, const a2a_http_router_options *options,
                            a2a_http_router **out) BAY_MUST_CHECK;
/* After its http_server and before services and loop. */
void a2a_http_router_free(a2a_http_router *self);
/* The answer to a preflight of its paths. */
extern const http_cors a2a_http_router_cors;

/* An exchange at an agent's path; `path` is the part after the agent's own. Always answered.
 * `principal` is the caller (NULL: anonymous), borrowed. */
void a2a_http_router_serve(a2a_http_router *self, http_exchange *exchange,
                           const a2a_http_agent *agent, bay_str path,
                           const auth_principal *principal);
/* One at a path of gRPC's services; false: it is not gRPC, and not answered. */
bool a2a_http_router_serve_grpc(a2a_http_router *self, http_exchange *exchange,
                                const auth_principal *principal);
/* GET and HEAD of a card; false: `path` is not a card's. */
bool a2a_http_router_serve_card(http_exchange *exchange, const a2a_http_agent *agent, bay_str path);
/* An unknown path of an agent: 404. */
void a2a_http_router_serve_nothing(http_exchange *exchange);
/* A refusal of the front, in the form of the request: gRPC, JSON-RPC or HTTP+JSON. */
void a2a_http_router_refuse(a2a_http_router *self, http_exchange *exchange, bay_str path,
                            const front_refusal *refusal);
/* For front_options.identify: a fault as the refusal that a2a_http_router_refuse makes it again.
 * Returns FRONT_REFUSE. */
front_verdict a2a_http_router_refused(http_exchange *exchange, const a2a_fault *fault,
                                      const front_challenge *challenge, front_refusal *out);
/* Whether a router serves gRPC; not in a library without HTTP/2. */
bool a2a_http_router_has_grpc(void);
/* Appends the url of the gRPC interface of an agent at `base` ("https://127.0.0.1:8443"):
 * "host:port" if the port decides about TLS (a2a_transport/grpc_link.h), otherwise with its scheme.
 * Nothing without gRPC, or if `base` is not a URL. */
void a2a_http_router_write_grpc(bay_str base, buf *out);
/* The open streams of callers of whom this says true end. Tasks go on. */
void a2a_http_router_end_streams(a2a_http_router *self, principal_test is_over, void *user);
/* Open streams end (before a drain); clients reconnect. */
void a2a_http_router_close_streams(a2a_http_router *self);

#endif
