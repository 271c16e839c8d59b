/* The agents of a gateway, as one loop sees them: which there are, their paths on its listener, and
 * what an operator is told of them.
 *
 *   /a2a                 which agents there are
 *   /a2a/NAME/…          an agent, in all versions and bindings (a2a_transport/router)
 *   /a2a/NAME/push/…     where an agent tells webhooks in the gateway's place (agents/webhook_receiver)
 *   /a2a/keys.json       the public key that signs the cards
 *   /lf.a2a.v1…, /a2a.v1…   gRPC; the tenant says which agent
 *
 * An agent is a remote one (agents/remote) or one made of tools (agents/tool_agent). */
#ifndef AGENTS_AGENTS_H
#define AGENTS_AGENTS_H

#include "agents/remote.h"
#include "agents/skills.h"
#include "agents/tool_agent.h"
#include "agents/webhook_receiver.h"
#include "front/front.h"
#include "json/writer.h"

typedef struct agents agents;

typedef struct agents_options {
    loop *loop;
    bool is_lenient;
    uint32_t keep_alive_ms;
    uint32_t drain_ms;       /* an agent that was replaced may still have calls for so long */
    agents_tools tools;      /* what made agents are made of */
    agents_aliases *aliases; /* of all loops; borrowed, or NULL */
    call_door *door;         /* what calls pass, borrowed; NULL: none */
    agents_owners *owners;   /* of all loops; borrowed, or NULL */
    /* What rules read of where an exchange comes from; NULL: nothing. */
    const policy_origin *(*origin)(void *user, http_exchange *exchange);
    void *origin_user;
    /* The keys of webhooks' addresses and of callers as they are at the time; borrowed. NULL, or of
     * NULL: none. */
    const seal_ring *const *ring;
} agents_options;

/* What is given for one agent. `hold` keeps `settings` and `public` alive; it is released when the
 * agent is gone. `is_kept`: the agent of that name is the same and stays; `hold` is released at
 * once. */
typedef struct agents_entry {
    const agents_settings *settings;
    const agents_public *public;
    void *hold;
    void (*release)(void *hold);
    bool is_kept;
} agents_entry;

bay_err agents_new(const agents_options *options, agents **out) BAY_MUST_CHECK;
/* After the http_server and before the loop, the client and what tools are of. NULL is fine. */
void agents_free(agents *self);
/* These agents and no others. Takes every `hold`, also on failure; what could not be set up is left
 * out, and `diag` says why of the first. */
bay_err agents_set(agents *self, const agents_entry *entries, size_t count,
                   bay_diag *diag) BAY_MUST_CHECK;

/* Lets the objects of several loops share the agents that live on one. Before any loop runs; every
 * loop gives the same row. */
bay_err agents_set_peers(agents *self, agents *const *all, size_t count) BAY_MUST_CHECK;

/* Where notifications for webhooks of the gateway's own go; borrowed. Before agents_set, which
 * opens it on its home loop. Without it callers' webhooks are told by agents alone. */
void agents_set_push_queue(agents *self, agents_push_queue *post);

/* What a front hands over, guarded and identified. False: there is no such thing for this
 * principal, and it is not answered. */
bool agents_serve_index(agents *self, http_exchange *exchange, const auth_principal *principal);
bool agents_serve_keys(agents *self, http_exchange *exchange);
/* A card of the agent of that name; `rest` is the path behind it. Nobody is identified for it: it
 * is there if rules show the agent to everybody. */
bool agents_serve_card(agents *self, http_exchange *exchange, bay_str name, bay_str rest);
/* A notification for one of the gateway's webhooks; its address and token prove who sends it. */
bool agents_serve_webhook(agents *self, http_exchange *exchange, bay_str name, bay_str sealed);
/* An operation, by JSON-RPC or HTTP+JSON, and by gRPC. `principal` is who calls, borrowed. */
bool agents_serve(agents *self, http_exchange *exchange, bay_str name, bay_str rest,
                  const auth_principal *principal);
bool agents_serve_grpc(agents *self, http_exchange *exchange, const auth_principal *principal);
/* What the front refuses at a path of theirs, in A2A's words. */
void agents_refuse(agents *self, http_exchange *exchange, bay_str rest,
                   const front_refusal *refusal);
/* The open streams of callers of whom this says true end. */
void agents_end_streams(agents *self, principal_test is_over, void *user);
/* Open streams end (before a drain). */
void agents_close_streams(agents *self);
/* The engine whose tools are the skills of a remote agent; NULL: there is no such agent, or no
 * memory. It goes with the agent, and its links break then. */
mcp_server *agents_skills_of(agents *self, bay_str name);
size_t agents_count(const agents *self);
bay_str agents_name(const agents *self, size_t index);
/* Elements of an array: one object an agent. `has_errors`: with why one is not ready. */
void agents_write_state(agents *self, bool has_errors, json_writer *out);

#endif
