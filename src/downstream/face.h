/* A face of the gateway: an MCP server engine at one path, showing all servers or one of them. It
 * answers lists from its catalog and routes everything else to the server that owns the name or
 * URI.
 *
 * One face per path and loop. The face does not own its upstreams: the worker does. */
#ifndef DOWNSTREAM_FACE_H
#define DOWNSTREAM_FACE_H

#include "auth/seal.h"
#include "catalog/catalog.h"
#include "mcp/server.h"
#include "sessions/keeper.h"

typedef struct face face;
struct route;

/* What stands between a face and its tasks (tasks/task.h), which are built on faces. */
typedef struct face_tasks {
    /* What a face declares: the capability of the core, for an open capabilities object; and the
     * extension, for the object of that name inside it. */
    void (*put_capability)(const face *self, const mcp_revision *revision, json_writer *out);
    void (*put_extension)(const face *self, const mcp_revision *revision, json_writer *out);
    /* Takes a request of tasks/get, tasks/update, tasks/cancel, tasks/result or tasks/list. */
    void (*request)(face *self, mcp_request *request);
    /* Before a request goes to `to`: what it needs of tasks is noted in `way`. 0, or the code of
     * the JSON-RPC error that refuses it; `out_text` says why. */
    int (*admit)(struct route *way, upstream *to, const catalog_entry *entry, bay_str *out_text);
    /* Of a route that was noted: an answer to the server's question as the server is to get it.
     * The view lives as long as the route. */
    bay_str (*answer)(struct route *way, bay_str result);
    /* Of a route that was noted: it ends. */
    void (*end)(struct route *way);
    /* The face goes, and what was remembered for it. */
    void (*forget)(face *self);
    /* How many tasks are remembered for it. */
    size_t (*count)(const face *self);
} face_tasks;

typedef struct face_options {
    const config *config; /* borrowed; replaced by face_set_sources */
    bay_str only;         /* name of the one server it shows; empty: all, with prefixes */
    bay_str profile;      /* name of the part of the catalog it shows; empty: all of it */
    uint32_t worker;
    bool has_one_client; /* it serves stdin and stdout */
    loop *loop;
    const seal_ring *ring;   /* borrowed; NULL: nothing can be sealed (a build without TLS) */
    session_store *sessions; /* borrowed; NULL: none is kept */
    const face_tasks *tasks; /* NULL: it knows of none */
    call_door *door;         /* what its calls pass, borrowed; NULL: none */
} face_options;

bay_err face_new(const face_options *options, face **out) BAY_MUST_CHECK;
void face_free(face *self);
mcp_server *face_engine(face *self);
bay_str face_profile(const face *self);  /* empty: none */
session_keeper *face_keeper(face *self); /* NULL: ids are random, nothing is kept */
/* Other keys from now on. */
void face_set_ring(face *self, const seal_ring *ring);

/* The servers it shows, in order; copied. Lists, and what is not known yet, wait until face_settle.
 * On failure the face shows nothing rather than servers that may be about to leave. */
bay_err face_set_sources(face *self, const config *config, const catalog_source *sources,
                         size_t count) BAY_MUST_CHECK;
void face_forget_sources(face *self, const config *config);
/* The listings of one kind of these servers changed: bring that view up to date, tell the clients.
 */
void face_refresh(face *self, listing_kind kind, const catalog_source *sources, size_t count);
/* The list was read and is what it was, for longer. */
void face_keep_fresh(face *self, listing_kind kind, const catalog_source *source);
/* The server told of a change of that list, and reading it again brought the same: its clients are
 * told all the same. */
void face_announced(face *self, listing_kind kind, const catalog_source *source);
/* This server, or each (NULL), may have other capabilities now. */
void face_server_changed(face *self, const upstream *server);
/* Nothing more is to be waited for: requests and subscriptions that wait are taken up. */
void face_settle(face *self);
/* The servers that it has woken have been heard of. Harmless when it has woken none. */
void face_awake(face *self);
/* Once a second. */
void face_tick(face *self, uint64_t now_ms);
void face_updated(face *self, bay_str uri);
/* A server says that what a URL was for is done: the client that was asked to open it hears so. */
void face_elicitation_done(face *self, bay_str server, json_val params);
size_t face_count(const face *self, listing_kind kind);
/* What its clients have just now. */
typedef struct face_figures {
    size_t sessions;
    size_t parked_calls; /* calls that wait for their client to come back */
    size_t tasks;
} face_figures;
face_figures face_figures_of(face *self);
bay_str face_shown(const face *self, listing_kind kind, size_t index);

#endif
