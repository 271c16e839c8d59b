/* The server engine: all five revisions behind one door, sans I/O.
 *
 *   transport --bytes, now--> engine --mcp_request--> service (an SDK server, a gateway)
 *   transport <--carrier ops-- engine <--result, error, notify-- service
 *
 * One engine per loop and endpoint; single-threaded. Exactly-once: every mcp_request handed to the
 * service is finished exactly once by the service (mcp_request_result… or mcp_request_error), also
 * after `cancelled`; that call frees it. The engine sees to it that the peer gets exactly one
 * answer or, after a cancel or disconnect, none.
 *
 * A dual-era door chooses by what the message carries, never by its method: modern _meta or header
 * -> stateless rules; else the legacy rules of the session's revision. */
#ifndef MCP_SERVER_H
#define MCP_SERVER_H

#include "auth/principal.h"
#include "call/call.h"
#include "mcp/param_header.h"
#include "mcp/protocol.h"
#include "rpc/outline.h"
#include "wire/field.h"

typedef struct mcp_server mcp_server;
typedef struct mcp_session mcp_session;       /* one legacy client */
typedef struct mcp_connection mcp_connection; /* a duplex carrier: stdio, HTTP+SSE, in-process */
typedef struct mcp_request mcp_request;
typedef struct mcp_carrier mcp_carrier;
typedef struct mcp_persistence mcp_persistence; /* mcp/persistence.h */

/* ---- towards the transport ------------------------------------------------------------------- */

/* The way back for one HTTP exchange, or for a whole duplex connection. Embedded first in the
 * transport's own struct. The engine holds a pointer to it until `answer` or `end` was called
 * (HTTP), or until mcp_connection_close (duplex), or until mcp_server_gone. */
typedef struct mcp_carrier_ops {
    /* The whole reply as one JSON body (`json` empty: no body). `session` non-empty: send it as
     * Mcp-Session-Id. `detail` non-empty: with 405 the verbs for Allow, with 403 the scopes for a
     * challenge. Last call on the carrier. HTTP only. */
    void (*answer)(mcp_carrier *self, int status, bay_str json, bay_str session, bay_str detail);
    /* One message on the stream (HTTP: opens text/event-stream first) or line. `event_id` empty:
     * none; `json` empty: a priming event; both empty: opens the stream (the reply's head goes out
     * now) and sends nothing. BAY_ERR_AGAIN: taken, slow down until mcp_server_drained. */
    bay_err (*event)(mcp_carrier *self, bay_str json, bay_str event_id);
    /* The stream ends after what was sent. Last call on the carrier. Duplex (may be NULL): the
     * server is being freed, its connection is closed already. */
    void (*end)(mcp_carrier *self);
    /* `end`, after the client was told to come back for the rest in `retry_ms`. HTTP only; NULL:
     * as `end`. */
    void (*release)(mcp_carrier *self, uint32_t retry_ms);
} mcp_carrier_ops;

struct mcp_carrier {
    const mcp_carrier_ops *ops;
    void *engine; /* the engine's own; NULL it before handing the carrier over */
};

/* One HTTP request at the endpoint, as the transport saw it. The engine copies what it keeps: views
 * are read until its first call on the carrier or the end of mcp_server_http, whichever is first,
 * so the transport may give the request's memory back then. A service may look at its request for
 * as long as it likes, on any thread, also after the peer is gone. */
typedef struct mcp_http_request {
    bay_str verb; /* POST, GET, DELETE … */
    bay_str body;
    const http_field *fields;
    size_t field_count;
    /* Asked for a POST of a single message, once it is indexed and before anything is done: does it
     * belong to another loop's engine? True: the transport has handed the exchange over, and the
     * carrier is gone. NULL: it belongs here. */
    bool (*forward)(const struct mcp_http_request *self, mcp_carrier *carrier, json_val params);
    arena *memory;                   /* lives as long as the carrier's exchange */
    const auth_principal *principal; /* borrowed; the engine takes its own reference */
    bool has_address;                /* of the client; only where rules read it */
    net_address address;
} mcp_http_request;

/* Takes one HTTP request. The carrier hears its answer now or later. Host and Origin were checked
 * by the transport. */
void mcp_server_http(mcp_server *self, const mcp_http_request *request, mcp_carrier *carrier,
                     uint64_t now_ms);
/* The HTTP peer closed the exchange early: modern = cancel; legacy = the stream may be resumed. */
void mcp_server_gone(mcp_server *self, mcp_carrier *carrier, uint64_t now_ms);
void mcp_server_drained(mcp_server *self, mcp_carrier *carrier);
/* The exchange has waited for so long that a proxy may give it up: its reply is begun as a stream,
 * if it can be, so that comments keep it alive. */
void mcp_server_quiet(mcp_server *self, mcp_carrier *carrier, uint64_t now_ms);
/* The stream has lasted long enough: it ends if nothing is lost by that. A listen gets its final
 * result, a session's client is told to come back for the rest. */
void mcp_server_end_stream(mcp_server *self, mcp_carrier *carrier, uint64_t now_ms);

/* Duplex carriers. `receive` takes one whole message (no line end). */
bay_err mcp_connection_open(mcp_server *self, mcp_carrier *carrier,
                            mcp_connection **out) BAY_MUST_CHECK;
/* Who speaks on this connection from now on: requests read before keep theirs, and a session keeps
 * the principal that began it. The engine takes a reference of its own. */
void mcp_connection_identify(mcp_connection *self, const auth_principal *principal);
void mcp_connection_receive(mcp_connection *self, bay_str message, uint64_t now_ms);
/* A message that is too large to be handed over, as far as it shows what it is: it is answered. */
void mcp_connection_overlong(mcp_connection *self, const rpc_outline *outline, uint64_t now_ms);
/* The peer says nothing any more, but still listens: what was asked of it ends (BAY_ERR_CLOSED),
 * and nothing more is asked. */
void mcp_connection_input_ended(mcp_connection *self);
void mcp_connection_drained(mcp_connection *self);
/* The peer is gone: open requests are cancelled; no more calls on the carrier. */
void mcp_connection_close(mcp_connection *self);
/* Requests not yet answered (a stdio server waits for them at end of input). */
size_t mcp_connection_pending(const mcp_connection *self);

/* Expires idle sessions, asks that time out. Returns when to call again (UINT64_MAX: no need). */
uint64_t mcp_server_tick(mcp_server *self, uint64_t now_ms);

/* ---- towards the service --------------------------------------------------------------------- */

struct mcp_request {
    /* For the service to read: */
    mcp_server *server;
    mcp_session *session; /* NULL for modern requests */
    const mcp_revision *revision;
    const mcp_method
        *method;         /* NULL for a method outside the table (see mcp_service.request_other) */
    rpc_message message; /* views live until the request is finished */
    json_val meta;       /* params._meta, or missing */
    bay_str name;        /* the method's name_field, decoded */
    bay_str progress_token; /* raw JSON, empty when none */
    json_val client_info;   /* missing when unknown */
    json_val client_capabilities;
    mcp_log_level log_level; /* least severe the client wants for this request; NONE = nothing */
    const auth_principal *principal; /* counted by the request, until it is finished */
    bay_str via;                     /* the field of that name, over HTTP; "" */
    arena *memory;
    uint64_t arrived_ms;
    bool is_cancelled;
    /* Its way past the door; `resume` and what call_admit takes are the service's to give. */
    call_context call;
    /* For the service to use: */
    void *user;
    uint32_t ttl_ms; /* cache hint added to cacheable modern results that carry none */
    bool is_cache_public;
    bay_str result_meta; /* for mcp_request_result_members: members of _meta, raw, without braces;
                            lives until the request is finished */
};

/* What mcp_service.param_table returns for a tool that it does not know yet. */
extern const mcp_param_table mcp_params_pending;

typedef struct mcp_service {
    /* A request of a method that is not the engine's own. `request->method` is NULL when the method
     * is in no table but `knows_method` said yes. */
    void (*request)(void *self, mcp_request *request);
    /* The peer cancelled or is gone. The service stops what it can and still finishes the request
     * (now or later); nothing more reaches the peer. */
    void (*cancelled)(void *self, mcp_request *request);
    /* After mcp_request_notify said BAY_ERR_AGAIN. May be NULL. */
    void (*drained)(void *self, mcp_request *request);
    /* Members of the `capabilities` object for a client of this revision (inside an open object).
     * What they admit is remembered until mcp_server_changed. */
    void (*capabilities)(void *self, const mcp_revision *revision, json_writer *out);
    /* x-mcp-header table of a tool; NULL: none. &mcp_params_pending: not known yet; once it is, the
     * service asks mcp_request_check_params. May be NULL. */
    const mcp_param_table *(*param_table)(void *self, bay_str tool);
    /* Methods outside the table that the service answers (extensions). May be NULL: none. */
    bool (*knows_method)(void *self, bay_str method, const mcp_revision *revision);
    /* A subscriber asks for a resource, perhaps one that others listen to already. The service
     * says, without effects, what the URI (call->shown) is part of, and in call->about what rules
     * decide on: NULL is the service itself.
     * BAY_ERR_NOT_FOUND makes the subscription fail (legacy) or be left out of the acknowledgement
     * (modern). May be NULL: everything may be subscribed to. */
    bay_err (*resolve_subscription)(void *self, call_context *call, call_target **out);
    /* The first listener of a resource came, or the last one left. May be NULL. Fails as above. */
    bay_err (*subscribe)(void *self, bay_str uri, bool is_wanted);
    /* A notification of the client that is not the engine's own (roots/list_changed …). May be
     * NULL. */
    void (*notified)(void *self, mcp_session *session, const rpc_message *message);
    /* Appends what the client of this request is told as `instructions`, in the place of the
     * option's; nothing: that one. May be NULL. */
    void (*instructions)(void *self, const mcp_request *request, buf *out);
    /* A legacy session began or ended. May be NULL. */
    void (*session_changed)(void *self, mcp_session *session, bool is_open);
} mcp_service;

typedef struct mcp_server_options {
    bay_str name;  /* serverInfo */
    bay_str title; /* "" = none */
    bay_str version;
    bay_str instructions; /* "" = none */
    bay_str website;      /* "" = none; since 2025-11-25 */
    bay_str icons;        /* raw JSON array, "" = none; since 2025-11-25 */
    mcp_revision_id
        oldest; /* revisions offered, inclusive; oldest > MCP_LATEST_LEGACY: modern only */
    mcp_revision_id newest;     /* < MCP_REV_2026_07_28: legacy only */
    uint32_t max_sessions;      /* 0: 10,000 */
    uint32_t session_idle_ms;   /* 0: 30 minutes; open streams and calls keep a session alive */
    uint32_t max_requests;      /* under way per session or connection; 0: 1,024 */
    uint32_t max_subscriptions; /* listens, and resources per listener; 0: 1,024 */
    size_t log_bytes;           /* event log for resumption, per session; 0: 256 KiB */
    uint32_t log_events;        /* 0: 256 */
    uint32_t ask_timeout_ms;    /* server-to-client requests; 0: 10 minutes */
    uint32_t worker;            /* stands in session ids: which loop owns the session */
    const mcp_persistence *persistence; /* of sessions; NULL: they end with the engine */
    void *persistence_user;
    json_limits json; /* all zero: 64 MiB, 64 levels, 1 Mi values */
    call_door *door;  /* what requests pass, borrowed; NULL: none, and all count as admitted */
} mcp_server_options;

/* The service has found out what a request means, and asks the door. True: go on. False: the
 * request waits, or was refused and is gone. A request that waited comes again by
 * mcp_service.request, so that the service finds out anew what is meant. True at once of a request
 * that was admitted to `to` before. */
bool mcp_request_admit(mcp_request *self, call_target *to) BAY_MUST_CHECK;

bay_err mcp_server_new(const mcp_server_options *options, const mcp_service *service, void *user,
                       mcp_server **out) BAY_MUST_CHECK;
/* Ends every session, listen and request; the service hears `cancelled` for what is open and must
 * finish it before this returns or keep only a detached request. */
void mcp_server_free(mcp_server *self);

/* Graceful end: open listens get their final result, standing streams end; sessions that are kept
 * go on elsewhere. */
void mcp_server_close_streams(mcp_server *self);
/* Ends the sessions that have no connection of their own, with what is under way in them: nobody
 * can come back to them once HTTP is no longer served. */
void mcp_server_end_http_sessions(mcp_server *self);

/* Ends those of them, for good, of which this says true. */
void mcp_server_end_sessions_if(mcp_server *self,
                                bool (*is_over)(void *user, const mcp_session *session),
                                void *user);

/* Which worker owns the session of this id; false when it does not look like one of ours. */
bool mcp_session_worker(bay_str session_id, uint32_t *out_worker);
bay_str mcp_session_id(const mcp_session *self);
const auth_principal *mcp_session_principal(const mcp_session *self);
const mcp_revision *mcp_session_revision(const mcp_session *self);
unsigned mcp_session_inputs(const mcp_session *self); /* what its client can be asked */
/* Whoever it belongs to: for what a server says to a client that it knows by this id. NULL: there is
 * none here. */
mcp_session *mcp_server_session(const mcp_server *self, bay_str session_id);
size_t mcp_server_session_count(const mcp_server *self);

/* Finishing. `result` is a whole JSON object. The engine dresses it for the client's revision: adds
 * resultType, ttlMs, cacheScope and serverInfo where the revision wants them and they are absent;
 * strips resultType, ttlMs and cacheScope where it has none. Everything else goes byte for byte. */
void mcp_request_result(mcp_request *self, json_val result);
/* The same for a result just written by us: members without braces, with none of the dressing. */
void mcp_request_result_members(mcp_request *self, bay_str members);
/* A tool call failed in a way that its model can act on: a result with isError, `text` and `meta`
 * (members of _meta, raw, without braces; "": none). For failures of ours, also of calls that were
 * not admitted. */
void mcp_request_tool_error(mcp_request *self, bay_str text, bay_str meta);
void mcp_request_error(mcp_request *self, int code, bay_str message, bay_str data);
/* Checks the Mcp-Param fields that a call came with when its table was pending; the first table
 * asked about decides. False: they differ from the arguments, and the request has been finished
 * with that error. True for every other request. */
bool mcp_request_check_params(mcp_request *self, const mcp_param_table *table) BAY_MUST_CHECK;
/* resources/read of a URI (request->name) that does not exist, as each revision says it. */
void mcp_request_resource_not_found(mcp_request *self);
/* An upstream's error object, byte for byte, but for codes the revision must not emit. */
void mcp_request_error_object(mcp_request *self, json_val error);

/* The client gets its answer now, and nothing after it; the request itself lasts, cancelled (the
 * service hears of it), until it is finished like any other: somebody still reads it. Nothing
 * happens to one that was cancelled before. */
void mcp_request_part_result(mcp_request *self, json_val result);
void mcp_request_part_error(mcp_request *self, int code, bay_str message, bay_str data);

/* A notification that belongs to this request, on its own stream. `params` is a raw object.
 * BAY_ERR_AGAIN: taken, wait for `drained`. BAY_ERR_CANCELLED: the peer is gone. */
bay_err mcp_request_notify(mcp_request *self, mcp_method_id method, bay_str params);
/* The same for a log message; `level` is the one that `params` name. One below the wanted level is
 * dropped here. */
bay_err mcp_request_log(mcp_request *self, mcp_log_level level, bay_str params);
/* Progress with the client's own token; no-op without one or when it does not increase. `members`:
 * the notification's other members ("progress":1,"total":2), raw, without braces. */
bay_err mcp_request_progress(mcp_request *self, double progress, bay_str members);

/* Ends the exchange that carries this request, not the request: what is sent from now on waits for
 * a client that comes back with Last-Event-ID. Sessions over HTTP since 2025-11-25; elsewhere
 * nothing happens. */
void mcp_request_release_stream(mcp_request *self, uint32_t retry_ms);

/* A request of ours to the client, on this request's stream (legacy only; BAY_ERR_UNSUPPORTED for
 * modern clients: answer input_required instead; and for a client that lacks the capability).
 * `answered` runs exactly once: `response` NULL with an error when the client is gone, cancelled or
 * too slow. */
bay_err mcp_request_ask(mcp_request *self, mcp_method_id method, bay_str params,
                        void (*answered)(void *user, bay_err err, const rpc_message *response),
                        void *user, uint64_t now_ms) BAY_MUST_CHECK;

/* Takes back what was asked for `user`, who hears no more of it; the client is told. Harmless when
 * nothing is open. */
void mcp_request_withdraw(mcp_request *self, const void *user, bay_str reason);

/* To one session, on whatever stream of it is open: a notification of its revision that belongs to
 * no request under way. */
void mcp_session_notify(mcp_session *self, mcp_method_id method, bay_str params);
/* The same for a log message of this level, where the session's admits it; and for an update of a
 * resource, where the session has subscribed to it. */
void mcp_session_log(mcp_session *self, mcp_log_level level, bay_str params);
void mcp_session_resource_updated(mcp_session *self, bay_str uri);
/* A request of ours that belongs to none of its own: as mcp_request_ask. BAY_ERR_CLOSED: no stream
 * of it is open. */
bay_err mcp_session_ask(mcp_session *self, mcp_method_id method, bay_str params,
                        void (*answered)(void *user, bay_err err, const rpc_message *response),
                        void *user, uint64_t now_ms) BAY_MUST_CHECK;
/* As mcp_request_withdraw, for what mcp_session_ask asked. */
void mcp_server_withdraw(mcp_server *self, const void *user, bay_str reason);

/* To everybody who asked for it: list_changed to legacy sessions and modern listeners … */
void mcp_server_changed(mcp_server *self, mcp_change change);
/* … and updates of one resource to its subscribers. `meta` raw or empty. */
void mcp_server_resource_updated(mcp_server *self, bay_str uri);
/* A log message to every legacy session whose level admits it (not tied to a request). */
void mcp_server_log(mcp_server *self, mcp_log_level level, bay_str params);

#endif
