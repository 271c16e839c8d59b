/* One call to an agent over gRPC: what a2a_transport/link sends for interfaces with binding
 * A2A_GRPC. There is no link object: connections are shared in the http_client, and one HTTP/2
 * connection carries many calls. The caller resumes interrupted streams.
 *
 * The interface's url is "host:port" or "host" (port 443), with TLS exactly if the port is 443; or
 * it names the scheme: "https://host[:port]" (TLS, 443), "http://host[:port]" (clear text with
 * prior knowledge, 80). Anything after the authority except "/" is BAY_ERR_INVALID: gRPC has no
 * paths of its own. */
#ifndef A2A_TRANSPORT_GRPC_LINK_H
#define A2A_TRANSPORT_GRPC_LINK_H

#include "a2a_transport/link.h"

typedef struct a2a_grpc_sent a2a_grpc_sent;

/* Sends it, in the form of the interface's version (1.0: lf.a2a.v1, else a2a.v1), with its
 * extension fields and `fields` as metadata (names in lower case; A2A-Version is added, and
 * a2a-tenant for 0.3). It ends exactly once, by result, end or failed of `events`, unless
 * a2a_grpc_cancel ended it first; nothing runs inside a function of this header. `event_id` of
 * events is 0, `is_last` what the form says.
 *   failed: BAY_ERR_REMOTE with a fault for any grpc-status of the agent; BAY_ERR_PROTOCOL with
 *   A2A_E_INVALID_AGENT_RESPONSE for what is no gRPC or no A2A; BAY_ERR_LIMIT; BAY_ERR_TIMEOUT
 *   (A2A_E_DEADLINE); else what the connection says (A2A_E_UNAVAILABLE).
 * limits: answer_bytes, timeout_ms (also sent as grpc-timeout of calls that are no stream) and
 * idle_ms count.
 * Owns: copies the request; `http` and `events` outlive the call. Errors: BAY_ERR_UNSUPPORTED with
 * `fault` (the form has no such method; no HTTP/2 in this build), BAY_ERR_INVALID (the url, a
 * field), BAY_ERR_BUSY, BAY_ERR_NOMEM, BAY_ERR_LIMIT. Units: ms, bytes. Threads: the loop's.
 * Source: A2A 1.0.1 section 10; gRPC over HTTP/2. */
bay_err a2a_grpc_send(http_client *http, const a2a_interface *to, const a2a_link_limits *limits,
                      const a2a_link_request *request, const a2a_link_events *events, void *user,
                      a2a_grpc_sent **out, a2a_fault *fault) BAY_MUST_CHECK;
void a2a_grpc_cancel(a2a_grpc_sent *self); /* ends it without an event: the agent gets a reset */
void a2a_grpc_pause(a2a_grpc_sent *self);  /* no more events until resumed */
void a2a_grpc_resume(a2a_grpc_sent *self);

#endif
