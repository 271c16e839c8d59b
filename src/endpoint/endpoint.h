/* An endpoint of the gateway: an MCP server engine at one path, showing all servers or one of them.
 * It answers lists from its catalog and routes everything else to the server that owns the name or
 * URI.
 *
 * One endpoint per path and loop. The endpoint does not own its upstreams: the worker does. */
#ifndef ENDPOINT_ENDPOINT_H
#define ENDPOINT_ENDPOINT_H

#include "auth/seal.h"
#include "catalog/catalog.h"
#include "mcp/server.h"
#include "sessions/persister.h"

typedef struct endpoint endpoint;
struct route;

/* What stands between an endpoint and its tasks (tasks/task.h), which are built on endpoints. */
typedef struct endpoint_tasks {
    /* What an endpoint declares: the capability of the core, for an open capabilities object; and
     * the extension, for the object of that name inside it. */
    void (*put_capability)(const endpoint *self, const mcp_revision *revision, json_writer *out);
    void (*put_extension)(const endpoint *self, const mcp_revision *revision, json_writer *out);
    /* Takes a request of tasks/get, tasks/update, tasks/cancel, tasks/result or tasks/list. */
    void (*request)(endpoint *self, mcp_request *request);
    /* Before a request goes to `to`: what it needs of tasks is noted in `way`. 0, or the code of
     * the JSON-RPC error that refuses it; `out_text` says why. */
    int (*admit)(struct route *way, upstream *to, const catalog_entry *entry, bay_str *out_text);
    /* Of a route that was noted: an answer to the server's question as the server is to get it.
     * The view lives as long as the route. */
    json_val (*answer)(struct route *way, json_val result);
    /* Of a route that was noted: it ends. */
    void (*end)(struct route *way);
    /* The endpoint goes, and what was remembered for it. */
    void (*forget)(endpoint *self);
    /* How many tasks are remembered for it. */
    size_t (*count)(const endpoint *self);
} endpoint_tasks;

/* Where users log in at servers that are called in their name. */
typedef struct endpoint_user_login {
    /* Appends the link to the page where `who` logs in at that server; `id`: of the elicitation that
     * endpoint_elicitation_done tells of afterwards, or "". Errors: BAY_ERR_UNSUPPORTED: there is no
     * such page; BAY_ERR_DENIED: `who` has no login for browsers; BAY_ERR_NOMEM. */
    bay_err (*link)(void *user, const auth_principal *who, bay_str server, bay_str id, buf *out);
    void *user;
} endpoint_user_login;

typedef struct endpoint_options {
    const config *config; /* borrowed; replaced by endpoint_set_sources */
    bay_str only;         /* name of the one server it shows; empty: all, with prefixes */
    bay_str profile;      /* name of the part of the catalog it shows; empty: all of it */
    uint32_t worker;
    bool has_one_client; /* it serves stdin and stdout */
    /* That client has said what it can be asked (mcp_inputs); once. May be NULL. */
    void (*introduced)(void *user, unsigned inputs);
    void *user;
    loop *loop;
    const seal_ring *ring;       /* borrowed; NULL: nothing can be sealed (a build without TLS) */
    session_store *sessions;     /* borrowed; NULL: none is kept */
    const endpoint_tasks *tasks; /* NULL: it knows of none */
    call_door *door;             /* what its calls pass, borrowed; NULL: none */
    const endpoint_user_login *user_login; /* borrowed; NULL: there is no such page */
} endpoint_options;

bay_err endpoint_new(const endpoint_options *options, endpoint **out) BAY_MUST_CHECK;
void endpoint_free(endpoint *self);
mcp_server *endpoint_engine(endpoint *self);
bay_str endpoint_profile(const endpoint *self);        /* empty: none */
session_persister *endpoint_persister(endpoint *self); /* NULL: ids are random, nothing is kept */
/* Other keys from now on. */
void endpoint_set_ring(endpoint *self, const seal_ring *ring);

/* The servers it shows, in order; copied. Lists, and what is not known yet, wait until
 * endpoint_lists_ready. On failure the endpoint shows nothing rather than servers that may be about
 * to leave. */
bay_err endpoint_set_sources(endpoint *self, const config *config, const catalog_source *sources,
                             size_t count) BAY_MUST_CHECK;
void endpoint_forget_sources(endpoint *self, const config *config);
/* The listings of one kind of these servers changed: bring that view up to date, tell the clients.
 */
void endpoint_refresh(endpoint *self, listing_kind kind, const catalog_source *sources,
                      size_t count);
/* The list was read and is what it was, for longer. */
void endpoint_keep_fresh(endpoint *self, listing_kind kind, const catalog_source *source);
/* The server told of a change of that list, and reading it again brought the same: its clients are
 * told all the same. */
void endpoint_announced(endpoint *self, listing_kind kind, const catalog_source *source);
/* This server, or each (NULL), may have other capabilities now. */
void endpoint_server_changed(endpoint *self, const upstream *server);
/* Nothing more is to be waited for: requests and subscriptions that wait are taken up. */
void endpoint_lists_ready(endpoint *self);
/* The servers that it has woken have been heard of. Harmless when it has woken none. */
void endpoint_awake(endpoint *self);
/* Once a second. */
void endpoint_tick(endpoint *self, uint64_t now_ms);
/* Over the session that clients share: not for those with a session of their own with that server. */
void endpoint_updated(endpoint *self, const upstream *from, bay_str uri);
/* A server says that what a URL was for is done: the client that was asked to open it hears so. */
void endpoint_elicitation_done(endpoint *self, bay_str server, json_val params);
size_t endpoint_count(const endpoint *self, listing_kind kind);
/* What its clients have just now. */
typedef struct endpoint_figures {
    size_t sessions;
    size_t suspended_calls; /* calls that wait for their client to come back */
    size_t tasks;
} endpoint_figures;
endpoint_figures endpoint_figures_of(endpoint *self);
bay_str endpoint_shown(const endpoint *self, listing_kind kind, size_t index);

#endif
