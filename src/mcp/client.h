/* The client engine: the connection to one server of any revision, sans I/O.
 *
 *   user --mcp_client_call--> engine --link ops--> transport
 *   user <--mcp_call_events-- engine <--bytes, now-- transport
 *
 * States (one setter, one table):
 *   IDLE -> OPENING (the link is opened) -> PROBING (server/discover) -> READY modern
 *                                                     \-> INITIALIZING (initialize) -> READY legacy
 *   any -> BROKEN (with a reason; the owner opens a new link or frees it); READY -> PROBING if
 * the server turns out to have another era (an upgraded or downgraded server). Calls that are made
 * before READY wait (bounded) and are sent in order.
 *
 * Exactly once: every call ends with exactly one `done`, unless mcp_call_cancel ended it first. */
#ifndef MCP_CLIENT_H
#define MCP_CLIENT_H

#include "auth/principal.h"
#include "mcp/param_header.h"
#include "mcp/protocol.h"
#include "mcp/shape.h"
#include "rpc/outline.h"

typedef struct mcp_client mcp_client;
typedef struct mcp_call mcp_call;

/* ---- towards the transport ------------------------------------------------------------------- */

typedef struct mcp_field {
    bay_str name;
    bay_str value;
} mcp_field;

enum { MCP_MAX_FIELDS = MCP_MAX_PARAM_HEADERS + 8 };

typedef enum mcp_link_kind {
    MCP_LINK_DUPLEX,   /* stdio, in-process: one shared channel, no header fields */
    MCP_LINK_HTTP,     /* Streamable HTTP: one exchange per message */
    MCP_LINK_SSE_2024, /* HTTP+SSE: duplex, always legacy */
} mcp_link_kind;

typedef struct mcp_link_ops {
    /* Sends one message; views are borrowed for the call. For requests `exchange` is not 0: the
     * transport passes it to every mcp_client_* call about that exchange. BAY_OK; BAY_ERR_AGAIN
     * (sent, but the link is slow); other errors: not sent. Must not call back into the engine
     * before it returns. timeout_ms: the latest time at which the engine gives up; 0: none.
     * mcp_client_sends_for has the principal. */
    bay_err (*send)(void *link, uint64_t exchange, bay_str message, const mcp_field *fields,
                    size_t count, uint32_t timeout_ms);
    /* HTTP: closes that exchange; no more calls about it follow. May be called from inside any
     * mcp_client_* function, also one about that exchange. */
    void (*abandon)(void *link, uint64_t exchange);
    /* HTTP, legacy: GET with these fields (session, version, Last-Event-ID), as `exchange`. */
    bay_err (*listen)(void *link, uint64_t exchange, const mcp_field *fields, size_t count);
    /* HTTP, legacy: DELETE of the session, without waiting for the response. */
    void (*end_session)(void *link, const mcp_field *fields, size_t count);
    /* HTTP: neither era answered at this URL: try the HTTP+SSE transport. The transport then calls
     * mcp_client_relinked (now MCP_LINK_SSE_2024) or mcp_client_broken. May be NULL. */
    void (*fall_back)(void *link);
    /* Stops or resumes reading (a call's receiver is slow); exchange 0: the whole link. */
    void (*pause)(void *link, uint64_t exchange, bool is_paused);
} mcp_link_ops;

/* The link can carry messages: begins detection. */
void mcp_client_opened(mcp_client *self, uint64_t now_ms);
void mcp_client_relinked(mcp_client *self, mcp_link_kind kind, uint64_t now_ms);
/* The head of an HTTP response. `session`: its Mcp-Session-Id, or empty. */
void mcp_client_head(mcp_client *self, uint64_t exchange, int status, bay_str session,
                     uint64_t now_ms);
/* One whole message: a line, an SSE event's data, or a JSON body (also of an error status).
 * exchange 0 on shared channels. `event_id` empty: none. */
void mcp_client_receive(mcp_client *self, uint64_t exchange, bay_str message, bay_str event_id,
                        uint64_t now_ms);
/* Duplex: a message that is too large to be handed over, as far as it shows what it is: the call
 * that it answers fails with `text`, a request is refused. False: it shows nothing. */
bool mcp_client_overlong(mcp_client *self, const rpc_outline *outline, const char *text,
                         uint64_t now_ms);
/* SSE `retry:`, or an id without data. */
void mcp_client_event_hint(mcp_client *self, uint64_t exchange, bay_str event_id,
                           uint32_t retry_ms);
/* An exchange ended: BAY_OK: its body is complete. was_sent as in http/http_client.h. HTTP+SSE: the
 * POST of a request ended; a failure or a status of 400 and above (see mcp_client_head) fails its
 * call. */
void mcp_client_ended(mcp_client *self, uint64_t exchange, bay_err err, bool was_sent,
                      const char *text, uint64_t now_ms);
/* The whole link has ended (the process exited, the SSE stream broke). Every open call fails; the
 * state becomes BROKEN. */
void mcp_client_broken(mcp_client *self, bay_err err, const char *text, uint64_t now_ms);
/* Duplex: the server exited while server/discover was open, and has been started again. True: the
 * engine continues with initialize, and waiting calls go on waiting. False: not such a case (the
 * transport then calls mcp_client_broken). Once in a client's life. */
bool mcp_client_restarted(mcp_client *self, uint64_t now_ms);
void mcp_client_drained(mcp_client *self);
/* Time-outs and back-off. Returns when to call again (UINT64_MAX: never). */
uint64_t mcp_client_tick(mcp_client *self, uint64_t now_ms);
/* An exchange begins, or ends, to wait for its authorization: until every one that began has ended,
 * no call is given up for being idle. May be called inside mcp_link_ops.send. */
void mcp_client_hold(mcp_client *self, bool is_held, uint64_t now_ms);

/* Inside mcp_link_ops.send: the principal for whom the message is sent; NULL: none. */
const auth_principal *mcp_client_sends_for(const mcp_client *self);

/* ---- towards the user ------------------------------------------------------------------------ */

typedef enum mcp_client_state {
    MCP_CLIENT_IDLE,
    MCP_CLIENT_OPENING,
    MCP_CLIENT_PROBING,
    MCP_CLIENT_INITIALIZING,
    MCP_CLIENT_READY,
    MCP_CLIENT_BROKEN,
} mcp_client_state;

typedef enum mcp_outcome_kind {
    MCP_OUTCOME_RESULT,
    MCP_OUTCOME_ERROR,
    MCP_OUTCOME_FAILED
} mcp_outcome_kind;

/* Who can provide the credentials that the server demands. */
typedef enum mcp_login {
    MCP_LOGIN_NONE,     /* they are not what failed */
    MCP_LOGIN_OPERATOR, /* whoever configures this client */
    MCP_LOGIN_CALLER,   /* whoever makes the call: his own token was to be exchanged */
    MCP_LOGIN_USER,     /* the same, by a login at the server */
} mcp_login;

typedef struct mcp_outcome {
    mcp_outcome_kind kind;
    json_val result; /* RESULT; views are valid during the callback only */
    json_val error;  /* ERROR: the server's error object */
    int error_code;
    bay_err err; /* FAILED: TIMEOUT, CLOSED, EXITED, CONNECT, PROTOCOL, LIMIT, BUSY, VERSION … */
    bool was_sent;   /* FAILED: the server may have executed it */
    mcp_login login; /* FAILED: for want of credentials that the server accepts */
    const char *text;
    char place[MCP_PLACE_BYTES]; /* FAILED: where in the result, as a JSON pointer; "": see text */
    uint64_t progress_token;     /* RESULT: of this call's progress, also of a task it began */
} mcp_outcome;

typedef struct mcp_call_events {
    /* A progress notification (by token) or log message that belongs to this call; params is an
     * object. May be NULL. */
    void (*notified)(void *user, mcp_call *call, const mcp_method *method, json_val params);
    /* A request of the server during this call (legacy). True: mcp_client_answer will answer it;
     * false or NULL: refused with an error. While one is open, no call times out for being idle,
     * because the server is waiting. */
    bool (*asked)(void *user, mcp_call *call, const rpc_message *request);
    void (*done)(void *user, mcp_call *call, const mcp_outcome *outcome);
} mcp_call_events;

typedef struct mcp_call_spec {
    bay_str method;
    const auth_principal *principal; /* the caller; the engine takes a reference */
    json_val params; /* copied unchanged except `_meta` and the renamed member; may be missing */
    bay_str rename;  /* new value of the method's name_field; empty: as in params */
    json_val
        meta; /* the caller's _meta: copied except the keys that the engine owns; may be missing */
    bay_str capabilities;    /* raw object for clientCapabilities; empty: the client's own */
    bay_str client_info;     /* raw object; empty: the client's own */
    mcp_log_level log_level; /* MCP_LOG_NONE: none */
    bool wants_progress;
    uint64_t progress_of; /* of an earlier call: its progress is this call's, too; 0: none */
    const mcp_param_table *param_table; /* of the tool; may be NULL */
    uint32_t timeout_ms;                /* 0: the client's default */
    uint32_t max_total_ms; /* limit that progress does not extend; 0: the client's default */
} mcp_call_spec;

typedef struct mcp_client_events {
    /* READY, with the server's description of itself (views live as long as the state). */
    void (*ready)(void *user);
    void (*broken)(void *user, bay_err err, const char *text);
    /* list_changed of the server, or MAYBE: one may have been missed. The engine keeps a GET stream
     * or a listen open for it. */
    void (*changed)(void *user, mcp_change change);
    void (*updated)(void *user, bay_str uri);
    /* A log message that belongs to no call. */
    void (*logged)(void *user, json_val params);
    /* A request of the server outside any call (legacy). As in mcp_call_events. */
    bool (*asked)(void *user, const rpc_message *request);
    /* The server cancels one of its own requests (legacy): no answer is expected. `id` is raw;
     * perhaps no request with it is open. May be NULL. */
    void (*withdrawn)(void *user, bay_str id);
    /* The interaction at a URL has ended (notifications/elicitation/complete): `params` name it.
     * The elicitation may belong to another call than the one on whose stream this came. NULL: that
     * call's `notified` gets it. */
    void (*elicited)(void *user, json_val params);
    /* Every message on the wire, for `step` and recording; may be NULL. */
    void (*traced)(void *user, bool is_outgoing, bay_str message, const mcp_field *fields,
                   size_t count);
} mcp_client_events;

typedef struct mcp_client_options {
    bay_str name, title, version; /* clientInfo */
    bay_str capabilities;         /* raw object; empty: {} */
    mcp_link_kind link_kind;
    mcp_revision_id oldest, newest; /* the revisions to use; equal: this one only */
    const mcp_revision *remembered; /* skip the probe: the revision used last time; NULL: probe */
    uint32_t probe_timeout_ms;      /* duplex: no answer to server/discover = legacy; 0: 3,000 */
    uint32_t start_timeout_ms;      /* probe and handshake together; 0: as a call, each */
    uint32_t call_timeout_ms;       /* 0: 60,000 */
    uint32_t max_total_ms;          /* 0: 600,000 */
    uint32_t max_calls;             /* open and waiting; 0: 10,000 */
    size_t max_message_bytes;       /* 0: 64 MiB */
    uint32_t max_depth;             /* arrays and objects inside each other in a message; 0: 128 */
    bool wants_changes;             /* keep a GET stream or listen open */
    bay_str label;                  /* the server's name in the log; "": "a server" */
    bay_str via;                    /* our name in the Via of calls over HTTP; "": no Via */
} mcp_client_options;

bay_err mcp_client_new(const mcp_client_options *options, const mcp_client_events *events,
                       void *user, const mcp_link_ops *ops, void *link,
                       mcp_client **out) BAY_MUST_CHECK;
void mcp_client_free(mcp_client *self); /* open calls fail with BAY_ERR_CANCELLED first */

const char *mcp_client_label(const mcp_client *self);
mcp_client_state mcp_client_state_of(const mcp_client *self);
/* As given, or HTTP+SSE since the transport fell back to it. */
mcp_link_kind mcp_client_link_kind(const mcp_client *self);
const mcp_revision *mcp_client_revision(const mcp_client *self); /* NULL before READY */
json_val mcp_client_server_info(const mcp_client *self);
json_val mcp_client_server_capabilities(const mcp_client *self);
bay_str mcp_client_instructions(const mcp_client *self);
bool mcp_client_has(const mcp_client *self,
                    bay_str capability); /* "tools", "resources.subscribe" */
size_t mcp_client_open_calls(const mcp_client *self);

/* Starts a call; no event runs before it returns. BAY_ERR_BUSY: at the limit; BAY_ERR_CLOSED:
 * BROKEN; BAY_ERR_UNSUPPORTED: the server's revision has no such method. */
bay_err mcp_client_call(mcp_client *self, const mcp_call_spec *spec, const mcp_call_events *events,
                        void *user, uint64_t now_ms, mcp_call **out, bay_diag *diag) BAY_MUST_CHECK;
/* Notifies the server (notifications/cancelled, or by closing the stream) and ends the call without
 * `done`. */
void mcp_call_cancel(mcp_call *self, bay_str reason);
void mcp_call_pause(mcp_call *self, bool is_paused); /* its receiver is slow */

/* Answers a request that `asked` has taken. `id`: the request's raw id; `result`: a raw object, or
 * empty: an error. */
void mcp_client_answer(mcp_client *self, bay_str id, bay_str result, int code, bay_str message);

/* Subscribes to updates of a resource, as the server's revision does it (resources/subscribe or a
 * listen). */
bay_err mcp_client_subscribe(mcp_client *self, bay_str uri, bool is_wanted,
                             uint64_t now_ms) BAY_MUST_CHECK;
/* Legacy: logging/setLevel for the whole link; modern: sent with each call. */
void mcp_client_set_level(mcp_client *self, mcp_log_level level, uint64_t now_ms);
/* Like the two above without notifying the server, which the owner did with a call of its own:
 * repeated in later sessions. */
bay_err mcp_client_note_subscription(mcp_client *self, bay_str uri, bool is_wanted,
                                     uint64_t now_ms) BAY_MUST_CHECK;
void mcp_client_note_level(mcp_client *self, mcp_log_level level);
/* As if `wants_changes` had been set from the start. */
void mcp_client_watch(mcp_client *self, uint64_t now_ms);
/* Legacy: not 0 while a change of that list would be received; a different number after each time
 * in which it would not have been. */
uint64_t mcp_client_hearing(const mcp_client *self, mcp_change change);
/* Modern: the state of subscriptions/listen. */
typedef enum mcp_listening {
    MCP_LISTENS_NOT,
    MCP_LISTEN_PENDING, /* sent, not yet acknowledged */
    MCP_LISTENS,
    MCP_LISTEN_REFUSED,
} mcp_listening;
mcp_listening mcp_client_listening(const mcp_client *self);
/* Sends a notification of the owner; `params`: a raw object, or empty. BAY_ERR_CLOSED: not READY;
 * BAY_ERR_UNSUPPORTED: of another revision; BAY_ERR_INVALID. */
bay_err mcp_client_tell(mcp_client *self, bay_str method, bay_str params, uint64_t now_ms,
                        bay_diag *diag) BAY_MUST_CHECK;
/* Ends cleanly: DELETE of a legacy session, listens closed. */
void mcp_client_close(mcp_client *self);

#endif
