/* Shared by the files of the server engine: the objects behind mcp/server.h and their owners.
 *
 *   mcp_server ── sessions (HTTP, by id) ── streams, log, subscriptions
 *      │      ├── connections (duplex)   ── at most one session, listens
 *      │      └── listens                ── subscriptions
 *      └── requests: each in an arena of its own, from its arrival until the service has finished
 *          it, also if its carrier, session or server ends before
 *
 * A request reaches its client through a channel: the response side of one POST, or of one message
 * on a duplex carrier. The requests of a batch share one. A request without a channel has no
 * waiting client.
 *
 * A carrier's `engine` points to its current owner; NULL: none. */
#ifndef MCP_SERVER_INTERNAL_H
#define MCP_SERVER_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "mcp/event_log.h"
#include "mcp/http_head.h"
#include "mcp/persistence.h"
#include "mcp/server.h"

typedef struct request request;
typedef struct stream stream;
typedef struct listen listen_stream;

enum {
    STREAM_EXPIRY_GRACE_MS = 60000, /* after the credentials of a listen or GET stream expire */
    STREAM_EXPIRY_LOOK_MS = 1000,   /* between two checks for such streams */
};

typedef enum carrier_owner_kind {
    CARRIER_RESPONSE_CHANNEL,
    CARRIER_STREAM,
    CARRIER_LISTEN,
    CARRIER_LAST_WORD, /* only prevents the use of a carrier that has ended */
} carrier_owner_kind;

/* First in every object that may own an HTTP carrier. */
typedef struct carrier_owner {
    carrier_owner_kind kind;
    mcp_carrier *carrier; /* NULL: the peer has disconnected or has its whole answer */
} carrier_owner;

/* The scope of request ids and of answers to asks: a session or a connection. */
typedef struct peer {
    list requests; /* open ones, by peer_link; cancelled ones until the service has finished */
    list asks;
    bool is_deaf; /* no answer can come any more: nothing is asked */
    uint32_t count;
} peer;

/* Memory of one message; arenas keep their memory for reuse. */
typedef struct arena_pool_entry {
    list_link link;
    arena memory;
} arena_pool_entry;

typedef struct response_channel {
    carrier_owner owner;
    mcp_server *server;
    mcp_connection *connection; /* duplex */
    mcp_session *session;       /* HTTP, legacy */
    stream *stream;             /* HTTP, legacy: opened by a first notification or ask */
    list requests;              /* by response_channel_link */
    uint32_t open;              /* of them without an answer; a batch being read counts as one */
    bool is_batch;              /* then it is on the heap, otherwise inside its request */
    bool is_streaming;          /* HTTP, modern: events were sent */
    bool wants_stream;          /* HTTP, legacy: the answer is sent as an event, too */
    bool has_answers;
    bool is_legacy;
    buf answers;        /* batch: the answers that go out as one array */
    bay_str session_id; /* of a session just begun */
    bay_str needs;      /* with 403 the scopes that the caller lacks, with 429 seconds */
} response_channel;

/* The parts of params and _meta that the engine reads, found in one pass each. */
typedef struct envelope {
    json_val meta;
    json_val name;
    json_val uri;
    json_val version;
    json_val client_info;
    json_val client_capabilities;
    json_val log_level;
    json_val progress_token;
} envelope;

/* Mcp-Param fields of a call whose tool is not known yet, in the request's memory. */
typedef struct kept_params {
    http_field *at;
    size_t count;
} kept_params;

struct request {
    mcp_request shown; /* first */
    arena_pool_entry *home;
    list_link server_link;
    list_link peer_link;
    list_link response_channel_link;
    peer *peer;                /* NULL: modern over HTTP, or the peer has disconnected */
    response_channel *channel; /* NULL: nothing can reach the client any more */
    response_channel own_channel;
    envelope envelope;
    json_doc doc;
    json_doc client_doc;
    kept_params *params; /* NULL: checked, or there are none to check */
    uint32_t hold;       /* > 0: in use by the engine */
    bool is_finished;
    bool has_part;    /* the client has its answer */
    call_outcome how; /* the outcome, once it is finished or answered */
    bool has_progress;
    double progress;
};

struct mcp_session {
    mcp_server *server;
    mcp_connection *connection; /* NULL: over HTTP, by id */
    peer own_peer;              /* HTTP; a connection has its own */
    const mcp_revision *revision;
    const auth_principal *principal; /* counted, like that of a connection */
    const auth_principal *seen;      /* counted: of a later request with other scopes; NULL: none */
    bay_str id;                      /* these two are stored after the struct */
    bay_str client;   /* {"clientInfo":…,"capabilities":…} as the client sent them */
    void *kept_by;    /* the persister's pointer */
    uint64_t told_ms; /* when the persister was last notified */
    uint64_t active_ms;
    list_link idle_link; /* in server->idle, longest idle first */
    list streams;
    stream *get; /* the standalone stream; also in `streams` */
    event_log log;
    list subscriptions;
    uint32_t subscription_count;
    uint32_t last_stream;
    unsigned inputs; /* what its client can be asked: mcp_inputs */
    mcp_log_level level;
    bool is_initialized;
    bool is_ended;
};

struct mcp_connection {
    mcp_server *server;
    mcp_carrier *carrier; /* NULL once closed */
    mcp_session *session;
    const auth_principal *principal;
    peer peer;
    list listens;
    uint32_t listen_count;
    list_link server_link;
    uint32_t hold;
};

/* A server-to-client request. */
typedef struct ask {
    list_link peer_link;
    list_link server_link; /* oldest deadline first */
    request *owner;        /* NULL: of a session, outside of any request */
    mcp_session *session;  /* that one, else NULL */
    uint64_t number;
    uint64_t deadline_ms;
    void (*answered)(void *user, bay_err err, const rpc_message *response);
    void *user;
} ask;

/* What the service declares for a revision, as the engine needs it. */
typedef struct declared {
    bool is_known;
    bool has_subscribe;
    unsigned changes; /* mcp_change: listChanged */
    uint64_t methods; /* by mcp_method_id: permitted by the capabilities */
} declared;
_Static_assert(MCP_METHOD_COUNT <= 64, "declared.methods has a bit for each method");

struct mcp_server {
    mcp_server_options options;
    const mcp_service *service;
    void *user;
    char *texts;         /* memory of the options' strings */
    bay_str infos[3];    /* {"name":…}, oldest form first; see server_info */
    bay_str modern_list; /* ["2026-07-28"]: the versions that _meta may have */
    declared declared[MCP_REVISION_COUNT];
    buf out;
    list arenas; /* kept for reuse */
    uint32_t request_arena_count;
    list requests;
    list connections;
    list listens;
    list asks;
    list idle;
    map sessions;
    map topics;
    uint32_t session_count; /* including those of connections */
    uint32_t listen_count;
    uint64_t last_ask;
    uint64_t now_ms;
    uint64_t expiry_ms; /* wall clock: when to check for expired streams; 0: there are none */
    uint32_t walking;   /* > 0: `idle` is being walked and keeps its order */
    bool is_closing;
};

/* ---- server.c */
void server_advance(mcp_server *self, uint64_t now_ms); /* its time never goes back */
bool server_offers(const mcp_server *self, mcp_revision_id revision);
bool server_has_modern(const mcp_server *self);
bool server_has_legacy(const mcp_server *self);
/* serverInfo as this revision has it, raw. */
bay_str server_info(const mcp_server *self, const mcp_revision *revision);
/* NULL when out of memory. */
const declared *server_declared(mcp_server *self, const mcp_revision *revision);
/* Appends {"tools":…}. */
/* Appends `,"instructions":…`, or nothing. */
void server_write_instructions(mcp_server *self, const mcp_request *from, buf *out);
void server_write_capabilities(mcp_server *self, const mcp_revision *revision, json_writer *out);
/* The engine's buffer, emptied; valid until the next call that sends. */
buf *server_out(mcp_server *self);
/* Its content has been sent: a large buffer is freed now, not at its next use. */
void server_out_sent(mcp_server *self);
arena_pool_entry *request_arena_take(mcp_server *self); /* NULL when out of memory */
void request_arena_release(mcp_server *self,
                           arena_pool_entry *one); /* self NULL: the server has been freed */

/* ---- request.c */
/* Reads a request into an arena of its own: `text` is copied. BAY_ERR_PROTOCOL with the fault,
 * BAY_ERR_UNSUPPORTED (a batch; *out is set), BAY_ERR_NOMEM. The fault's id lives as long as
 * `text`. */
bay_err request_read(mcp_server *server, bay_str text, request **out,
                     rpc_fault *fault) BAY_MUST_CHECK;
/* Frees what was read but never became an open request. */
void request_discard(request *self);
/* Reads params and _meta. BAY_ERR_PROTOCOL: a member that the engine reads occurs twice. */
bay_err request_read_envelope(request *self) BAY_MUST_CHECK;
/* Decodes the method's name_field. BAY_ERR_PROTOCOL: missing or not a string. BAY_ERR_NOMEM. */
bay_err request_read_name(request *self) BAY_MUST_CHECK;
const char *request_name_fault(const mcp_method *method); /* of a BAY_ERR_PROTOCOL of that */
/* Opens it: from now on it is answered exactly once. `peer` may be NULL. */
void request_open(request *self, peer *of, response_channel *through);
/* The open request with this raw id that is not cancelled. */
request *peer_find(const peer *self, bay_str id);
void peer_init(peer *self);
/* Nothing more reaches the client; the service is notified. */
void request_cancel(request *self);
/* The client gets this error, then as request_cancel. Not with a status on which clients send the
 * request again (404: in a new session, 503: later): the service has already received it. */
void request_abandon(request *self, const char *text);
/* Ends it without an answer. */
void request_drop(request *self);
/* The peer has ended: every request of it is abandoned, or (text NULL) cancelled. */
void peer_close(peer *self, const char *text);
/* The server ends: open requests are abandoned and, if the service keeps them, detached. */
void requests_detach(mcp_server *server);
/* Passes it to the service if the revision, the capabilities and the service have the method,
 * otherwise answers -32601. */
void request_dispatch(request *self);
/* An open request of a method that is a call, and that the engine answers itself: begins the call.
 */
void request_begin_call(request *self);
void request_refuse(request *self, int status, int code, const char *text, bay_str data);
/* Answers with the door's refusal. */
void request_answer_refusal(mcp_request *self, const call_refusal *why);
/* Sends the answer in the server's buffer. */
void request_answer(request *self, int status);
static inline request *request_of(mcp_request *self)
{
    return (request *)self;
}

/* ---- response_channel.c */
void response_channel_init(response_channel *self, mcp_server *server);
response_channel *response_channel_new_batch(mcp_server *server);
/* Can it still say 403, and the scopes that are needed? Not on a stream, nor for one of many. */
bool response_channel_may_challenge(const response_channel *self);
void response_channel_answer(response_channel *self, int status, bay_str id, buf *json);
/* Opens a stream if necessary. BAY_ERR_CANCELLED: the client has disconnected. */
bay_err response_channel_event(response_channel *self, buf *json);
/* Begins the reply as a stream, before there is a message. */
void response_channel_open_stream(response_channel *self);
/* Ends the exchange, if the client can reconnect for the rest. */
void response_channel_release(response_channel *self, uint32_t retry_ms);
void response_channel_detach(
    response_channel *self); /* one request fewer; the last one closes it */
/* Ends a carrier's exchange; it has no owner afterwards. */
void carrier_answer(carrier_owner *self, int status, bay_str json, bay_str session, bay_str allow);
void carrier_end(carrier_owner *self);
void carrier_release(carrier_owner *self, uint32_t retry_ms);
void carrier_take(carrier_owner *self, mcp_carrier *carrier);
/* A request in the session: tells its client of lists that may be others, where its caller has other
 * scopes than before (a step-up) and rules decide on what he sees. */
void session_note_scopes(mcp_session *self, const auth_principal *who);
/* When a stream that this principal opened ends: its expiry and STREAM_EXPIRY_GRACE_MS. Wall clock;
 * 0: never. The server checks for expired streams from the first such time on. */
uint64_t stream_expiry(mcp_server *server, const auth_principal *principal);

/* ---- ask.c */
void ask_response(peer *from, const rpc_message *response);
/* The same for one that cannot be read: `id` is what it shows of its id, or empty. */
void ask_unreadable(peer *from, bay_str id);
void asks_end(request *self, bay_err err);
void asks_close(peer *self);              /* no answer can come any more */
void asks_end_session(mcp_session *self); /* what it was asked outside of any request */
uint64_t asks_tick(mcp_server *self);

/* ---- server_modern.c */
bool modern_is_marked(const request *self);
/* Checks an open request by the rules of the stateless revision and dispatches it. `http` NULL:
 * duplex, no header fields to check. */
void modern_request(request *self, const http_head *http);

/* ---- server_legacy.c */
/* A message of a client with a session: a request is opened on `through`, any other message is
 * handled and freed. */
void legacy_message(request *self, mcp_session *session, response_channel *through);
/* An open `initialize`. `connection` NULL: over HTTP. */
void legacy_initialize(request *self, mcp_connection *connection);
/* notifications/cancelled, in either era: finds the request or listen that it names. */
void peer_cancelled(peer *self, mcp_connection *connection, const rpc_message *message);
/* BAY_ERR_DUPLICATE: the id is in use; BAY_ERR_BUSY: too many open requests. */
bay_err peer_admits(mcp_server *server, const peer *self, mcp_connection *connection,
                    bay_str id) BAY_MUST_CHECK;
void request_not_admitted(request *self, bay_err why);

/* ---- batch.c */
enum { BATCH_MAX = 256 };
/* Checks every message of the array in `read`, which is then freed. The channel is a batch's and is
 * closed after the last answer. BAY_ERR_LIMIT: more than BATCH_MAX; BAY_ERR_PROTOCOL: none. On an
 * error nothing was done. */
bay_err batch_check(const request *read) BAY_MUST_CHECK;
void batch_receive(request *read, mcp_session *session, response_channel *through);

#endif
