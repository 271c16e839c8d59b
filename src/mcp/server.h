/* The server engine: all five revisions, sans I/O.
 *
 *   transport --bytes, now--> engine --mcp_request--> service (an SDK server, a gateway)
 *   transport <--carrier ops-- engine <--result, error, notify-- service
 *
 * One engine per loop and endpoint; single-threaded. Exactly once: the service finishes every
 * mcp_request exactly once (mcp_request_result… or mcp_request_error), also after `cancelled`; that
 * call frees it. The engine sends the peer exactly one answer or, after a cancellation or
 * disconnection, none.
 *
 * A server of both eras decides by the content of a message, never by its method: modern _meta or
 * header: the stateless rules; otherwise the rules of the session's revision. */
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
typedef struct mcp_connection mcp_connection; /* a duplex carrier: stdio, HTTP+SSE, in process */
typedef struct mcp_request mcp_request;
typedef struct mcp_carrier mcp_carrier;
typedef struct mcp_persistence mcp_persistence; /* mcp/persistence.h */

/* ---- towards the transport ------------------------------------------------------------------- */

/* The response side of one HTTP exchange, or of a whole duplex connection. The first member of the
 * transport's own struct. The engine holds a pointer to it until it has called `answer` or `end`
 * (HTTP), until mcp_connection_close (duplex), or until mcp_server_gone. */
typedef struct mcp_carrier_ops {
    /* The whole reply as one JSON body (`json` empty: no body). `session` non-empty: send it as
     * Mcp-Session-Id. `detail` non-empty: with 405 the verbs for Allow, with 403 the scopes for a
     * challenge, with 429 the seconds for Retry-After. Last call on the carrier. HTTP only. */
    void (*answer)(mcp_carrier *self, int status, bay_str json, bay_str session, bay_str detail);
    /* One message on the stream (HTTP: opens text/event-stream first) or line. `event_id` empty:
     * none; `json` empty: a priming event; both empty: sends only the reply's head. BAY_ERR_AGAIN:
     * sent, but stop until mcp_server_drained. */
    bay_err (*event)(mcp_carrier *self, bay_str json, bay_str event_id);
    /* The stream ends after the messages sent so far. Last call on the carrier. Duplex (may be
     * NULL): the server is being freed, its connection is closed already. */
    void (*end)(mcp_carrier *self);
    /* Like `end`, after telling the client to reconnect in `retry_ms`. HTTP only; NULL: like `end`.
     */
    void (*release)(mcp_carrier *self, uint32_t retry_ms);
} mcp_carrier_ops;

struct mcp_carrier {
    const mcp_carrier_ops *ops;
    void *engine; /* the engine's; set it to NULL before passing the carrier */
};

/* One HTTP request at the endpoint. The engine copies what it needs longer: views are read until
 * its first call on the carrier or the end of mcp_server_http, whichever is first, so the transport
 * may then free the request's memory. A service may read its request at any time and on any thread,
 * also after the peer has disconnected. */
typedef struct mcp_http_request {
    bay_str verb; /* POST, GET, DELETE … */
    bay_str body;
    const http_field *fields;
    size_t field_count;
    /* Called for a POST of a single message after it is indexed, before anything else: does it
     * belong to another loop's engine? True: the transport has forwarded the exchange, and the
     * carrier is not used any more. NULL: it belongs here. */
    bool (*forward)(const struct mcp_http_request *self, mcp_carrier *carrier, json_val params);
    arena *memory;                   /* lives as long as the carrier's exchange */
    const auth_principal *principal; /* borrowed; the engine takes its own reference */
    bool has_address;                /* of the client; only where rules or limits read it */
    net_address address;
} mcp_http_request;

/* Takes one HTTP request. The carrier gets the answer now or later. The transport has checked Host
 * and Origin. */
void mcp_server_http(mcp_server *self, const mcp_http_request *request, mcp_carrier *carrier,
                     uint64_t now_ms);
/* The HTTP peer closed the exchange early: modern: cancels; legacy: the stream may be resumed. */
void mcp_server_gone(mcp_server *self, mcp_carrier *carrier, uint64_t now_ms);
void mcp_server_drained(mcp_server *self, mcp_carrier *carrier);
/* The exchange has been silent for so long that a proxy may close it: begins its reply as a stream,
 * if possible, so that comments keep it open. */
void mcp_server_quiet(mcp_server *self, mcp_carrier *carrier, uint64_t now_ms);
/* The stream has reached its maximum time: it ends if nothing is lost. A listen gets its final
 * result; a session's client is told to reconnect for the rest. */
void mcp_server_end_stream(mcp_server *self, mcp_carrier *carrier, uint64_t now_ms);

/* Duplex carriers. `receive` takes one whole message (without line end). */
bay_err mcp_connection_open(mcp_server *self, mcp_carrier *carrier,
                            mcp_connection **out) BAY_MUST_CHECK;
/* Sets the connection's principal: requests read before keep theirs, and a session keeps the
 * principal that began it. The engine takes a reference of its own. */
void mcp_connection_identify(mcp_connection *self, const auth_principal *principal);
void mcp_connection_receive(mcp_connection *self, bay_str message, uint64_t now_ms);
/* A message that is too large to be handed over, as far as it shows what it is: it is answered. */
void mcp_connection_overlong(mcp_connection *self, const rpc_outline *outline, uint64_t now_ms);
/* The peer sends no more but still reads: open asks end (BAY_ERR_CLOSED), and no new ones are sent.
 */
void mcp_connection_input_ended(mcp_connection *self);
void mcp_connection_drained(mcp_connection *self);
/* The peer has disconnected: open requests are cancelled; no more calls on the carrier. */
void mcp_connection_close(mcp_connection *self);
/* Requests without an answer (a stdio server waits for them at the end of input). */
size_t mcp_connection_pending(const mcp_connection *self);

/* Expires idle sessions and asks. Returns when to call again (UINT64_MAX: never). */
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
    mcp_log_level log_level;         /* the least severe wanted for this request; NONE: none */
    const auth_principal *principal; /* the request holds a reference until it is finished */
    bay_str via;                     /* the field of that name, over HTTP; "": none */
    arena *memory;
    uint64_t arrived_ms;
    bool is_cancelled;
    /* Its call at the door; the service sets `resume` and what call_admit reads. */
    call_context call;
    /* For the service to use: */
    void *user;
    uint32_t ttl_ms; /* cache hint for cacheable modern results without one */
    bool is_cache_public;
    bool is_cache_private; /* whatever the result says: it is for this principal */
    bay_str result_meta;   /* for mcp_request_result_members: members of _meta, raw */
};

/* What mcp_service.param_table returns for a tool that is not known yet. */
extern const mcp_param_table mcp_params_pending;

typedef struct mcp_service {
    /* A request of a method that the engine does not answer itself. `request->method` is NULL if
     * the method is in no table and `knows_method` returned true. */
    void (*request)(void *self, mcp_request *request);
    /* The peer cancelled or disconnected. The service stops what it can and still finishes the
     * request (now or later); nothing more reaches the peer. */
    void (*cancelled)(void *self, mcp_request *request);
    /* After mcp_request_notify returned BAY_ERR_AGAIN. May be NULL. */
    void (*drained)(void *self, mcp_request *request);
    /* Writes the members of the `capabilities` object for a client of this revision (into an open
     * object). The engine stores what they permit until mcp_server_changed. */
    void (*capabilities)(void *self, const mcp_revision *revision, json_writer *out);
    /* The x-mcp-header table of a tool; NULL: none. &mcp_params_pending: not known yet; when it is,
     * the service calls mcp_request_check_params. May be NULL. */
    const mcp_param_table *(*param_table)(void *self, bay_str tool);
    /* Methods outside the table that the service answers (extensions). May be NULL: none. */
    bool (*knows_method)(void *self, bay_str method, const mcp_revision *revision);
    /* A subscriber asks for a resource, perhaps one that others listen to already. The service
     * says, without effects, what the URI (call->shown) is part of, and in call->about what rules
     * decide on: NULL is the service itself.
     * BAY_ERR_NOT_FOUND makes the subscription fail (legacy) or be left out of the acknowledgement
     * (modern). May be NULL: everything may be subscribed to. `session`: who asks; NULL: a modern
     * client. */
    bay_err (*resolve_subscription)(void *self, mcp_session *session, call_context *call,
                                    call_target **out);
    /* The first subscriber of a resource was added, or the last one removed. May be NULL. Fails as
     * above. */
    bay_err (*subscribe)(void *self, bay_str uri, bool is_wanted);
    /* A legacy session has subscribed, or is about to end its subscription; not told when the
     * session ends. May be NULL. */
    void (*subscribed)(void *self, mcp_session *session, bay_str uri, bool is_wanted);
    /* A notification of the client that the engine does not handle itself (roots/list_changed …).
     * May be NULL. */
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
    uint32_t worker;            /* part of session ids: the loop that owns the session */
    const mcp_persistence *persistence; /* of sessions; NULL: they end with the engine */
    void *persistence_user;
    json_limits json; /* all zero: 64 MiB, 64 levels, 1 Mi values */
    call_door *door;  /* the door of its calls, borrowed; NULL: all calls count as admitted */
} mcp_server_options;

/* The service has resolved the name and asks the door. True: continue. False: the request waits, or
 * was refused and is freed. A request that waited comes again through mcp_service.request, so that
 * the service resolves it again. True at once for a request that was admitted to `to` before. */
bool mcp_request_admit(mcp_request *self, call_target *to) BAY_MUST_CHECK;

bay_err mcp_server_new(const mcp_server_options *options, const mcp_service *service, void *user,
                       mcp_server **out) BAY_MUST_CHECK;
/* Ends every session, listen and request; the service gets `cancelled` for open requests and must
 * finish them before this returns or keep them as detached requests. */
void mcp_server_free(mcp_server *self);

/* Ends open listens with their final result, and standalone streams; stored sessions continue
 * elsewhere. */
void mcp_server_close_streams(mcp_server *self);
/* Ends the sessions without a connection of their own, with their open requests: no client can
 * return to them once HTTP is not served any more. */
void mcp_server_end_http_sessions(mcp_server *self);

/* Permanently ends those of them for which the function returns true. */
void mcp_server_end_sessions_if(mcp_server *self,
                                bool (*is_over)(void *user, const mcp_session *session),
                                void *user);

/* The worker that owns the session of this id; false: not the form of our ids. */
bool mcp_session_worker(bay_str session_id, uint32_t *out_worker);
bay_str mcp_session_id(const mcp_session *self);
const auth_principal *mcp_session_principal(const mcp_session *self);
const mcp_revision *mcp_session_revision(const mcp_session *self);
unsigned mcp_session_inputs(const mcp_session *self); /* what its client can be asked */
/* Whoever it belongs to: for what a server says to a client that it knows by this id. NULL: there is
 * none here. */
mcp_session *mcp_server_session(const mcp_server *self, bay_str session_id);
size_t mcp_server_session_count(const mcp_server *self);

/* Finishing. `result` is a whole JSON object. The engine adapts it to the client's revision: adds
 * resultType, ttlMs, cacheScope and serverInfo where the revision requires them and they are
 * absent; removes resultType, ttlMs and cacheScope where it has none. Everything else is copied
 * unchanged. */
void mcp_request_result(mcp_request *self, json_val result);
/* The same for a result that this process has just written: members without braces, none of which
 * is adapted. */
void mcp_request_result_members(mcp_request *self, bay_str members);
/* A tool call failed in a way that its model can act on: a result with isError, `text` and `meta`
 * (members of _meta, raw, without braces; "": none). For failures of the gateway or server itself,
 * also for calls that were not admitted. */
void mcp_request_tool_error(mcp_request *self, bay_str text, bay_str meta);
void mcp_request_error(mcp_request *self, int code, bay_str message, bay_str data);
/* Checks the Mcp-Param fields of a call whose table was pending; the first table passed decides.
 * False: they differ from the arguments, and the request has been finished with that error. True
 * for every other request. */
bool mcp_request_check_params(mcp_request *self, const mcp_param_table *table) BAY_MUST_CHECK;
/* resources/read of a URI (request->name) that does not exist, in the form of the client's
 * revision. */
void mcp_request_resource_not_found(mcp_request *self);
/* An upstream's error object, copied unchanged except for codes that the revision must not emit. */
void mcp_request_error_object(mcp_request *self, json_val error);

/* The client gets its answer now, and nothing after it. The request itself lasts, cancelled (the
 * service is notified), until it is finished like any other, because it may still be read. No
 * effect on a request that was cancelled before. */
void mcp_request_part_result(mcp_request *self, json_val result);
void mcp_request_part_error(mcp_request *self, int code, bay_str message, bay_str data);

/* A notification that belongs to this request, on its own stream. `params` is a raw object.
 * BAY_ERR_AGAIN: sent, wait for `drained`. BAY_ERR_CANCELLED: the peer has disconnected. */
bay_err mcp_request_notify(mcp_request *self, mcp_method_id method, bay_str params);
/* The same for a log message; `level` is the one in `params`. A message below the wanted level is
 * dropped. */
bay_err mcp_request_log(mcp_request *self, mcp_log_level level, bay_str params);
/* Progress with the client's token; no effect without a token or if progress does not increase.
 * `members`: the notification's other members ("progress":1,"total":2), raw, without braces. */
bay_err mcp_request_progress(mcp_request *self, double progress, bay_str members);

/* Ends the exchange that carries this request, not the request: later messages wait for a client
 * that reconnects with Last-Event-ID. For sessions over HTTP since 2025-11-25; no effect elsewhere.
 */
void mcp_request_release_stream(mcp_request *self, uint32_t retry_ms);

/* A request to the client on this request's stream (legacy only; BAY_ERR_UNSUPPORTED for modern
 * clients, which get input_required instead, and for a client without the capability). `answered`
 * runs exactly once: `response` NULL with an error if the client disconnected, cancelled or was too
 * slow. */
bay_err mcp_request_ask(mcp_request *self, mcp_method_id method, bay_str params,
                        void (*answered)(void *user, bay_err err, const rpc_message *response),
                        void *user, uint64_t now_ms) BAY_MUST_CHECK;

/* Withdraws what was asked for `user`, without calling `answered`; the client is notified. No
 * effect if nothing is open. */
void mcp_request_withdraw(mcp_request *self, const void *user, bay_str reason);

/* Sends one session, on any open stream of it, a notification of its revision that belongs to no
 * open request. */
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

/* Sends list_changed to legacy sessions and to modern listens that want it … */
void mcp_server_changed(mcp_server *self, mcp_change change);
/* … and updates of one resource to its subscribers. */
void mcp_server_resource_updated(mcp_server *self, bay_str uri);
/* … but not to the sessions that `skips` names; NULL: there are none. */
void mcp_server_resource_updated_but(mcp_server *self, bay_str uri,
                                     bool (*skips)(void *user, mcp_session *session), void *user);
/* The sessions that have subscribed to it. */
void mcp_server_each_subscriber(mcp_server *self, bay_str uri,
                                void (*visit)(void *user, mcp_session *session), void *user);
/* A log message to every legacy session whose level admits it (for no request). */
void mcp_server_log(mcp_server *self, mcp_log_level level, bay_str params);

#endif
