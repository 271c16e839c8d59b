/* The HTTP face of agents: one http_server in front of A2A services, all bindings and versions at
 * one address, and their cards.
 *
 *   POST PATH, PATH/            JSON-RPC
 *   PATH/message:send … , PATH/v1/…          HTTP+JSON of 1.0 and of 0.3
 *   POST /lf.a2a.v1.A2AService/…, /a2a.v1.A2AService/…    gRPC (HTTP/2); metadata or tenant choose
 *                                            the agent where several stand behind one address
 *   GET PATH/.well-known/agent-card.json, PATH/.well-known/agent.json
 *   (of the agent at "", also GET /.well-known/agent-card.json)
 *
 * Host and Origin are checked as MCP's face does (transport/http_guard). */
#ifndef TRANSPORT_A2A_FACE_H
#define TRANSPORT_A2A_FACE_H

#include "a2a/inbound.h"
#include "a2a/service.h"
#include "net/http_server.h"
#include "transport/listen_address.h"

typedef struct a2a_face a2a_face;

/* One agent as the face finds it. Views live until the next turn of the loop. */
typedef struct a2a_face_agent {
    a2a_service *service;
    bay_str path; /* of the request, what is the agent's own: "" or "/a2a/NAME" */
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
} a2a_face_agent;

/* Who sent it. */
typedef struct a2a_face_identity {
    const auth_principal *principal; /* one reference, which the face gives back */
    bay_str challenge; /* of a refusal: WWW-Authenticate; lives as the exchange's arena does */
} a2a_face_identity;

typedef struct a2a_face_options {
    const bay_str *hosts; /* as http_face_options */
    size_t host_count;
    const bay_str *origins;
    size_t origin_count;
    bool is_loopback;
    const listen_names *names;
    uint32_t keep_alive_ms; /* comment on quiet streams; 0: 15,000 */
    a2a_inbound_settings inbound;
    /* The agent whose path `path` begins with; for gRPC `path` is "" and `tenant` what the request
     * says. False: 404. */
    bool (*agent)(void *user, bay_str path, bay_str tenant, a2a_face_agent *out);
    /* May this request do that? BAY_OK with the principal; BAY_DENIED with `fault` and a challenge.
     * Asked before the body is read as A2A (skill ""), cards aside. NULL: everybody is nobody in
     * particular. */
    bay_err (*identify)(void *user, const a2a_face_agent *agent, http_exchange *exchange,
                        a2a_face_identity *out, a2a_fault *fault);
    /* Asked once a call was read and before a service has it: may it be made? `call` has all but
     * its ops and service. BAY_OK; else it fails with `fault`, at HTTP status 401 and 403 for
     * A2A_E_UNAUTHENTICATED (with `out_challenge`) and A2A_E_FORBIDDEN. NULL: every call. */
    bay_err (*admit)(void *user, const a2a_face_agent *agent, http_exchange *exchange,
                     const a2a_call *call, bay_str *out_challenge, a2a_fault *fault);
    /* Any other path; as http_face_options.plain. May be NULL. */
    bool (*plain)(void *user, http_exchange *exchange);
    void *user;
} a2a_face_options;

bay_err a2a_face_new(loop *loop, const a2a_face_options *options, a2a_face **out) BAY_MUST_CHECK;
/* After its http_server and before services and loop. */
void a2a_face_free(a2a_face *self);
/* For http_server_options: handler and user. */
extern const http_handler a2a_face_handler;
/* For a face in front of it (the gateway's "plain"): true when the path is an agent's. It answers
 * before it returns or later; the exchange's user pointer is the face's from then on: `closed` and
 * `drained` of such exchanges are http_owner_closed and http_owner_drained, which MCP's face calls
 * as well. */
bool a2a_face_take(a2a_face *self, http_exchange *exchange);
/* Is gRPC among what a face serves? Not in a library without HTTP/2. */
bool a2a_face_has_grpc(void);
/* Open streams end (before a drain); clients come back. */
void a2a_face_close_streams(a2a_face *self);

#endif
