/* Shared by the files of the client engine. Nothing outside src/mcp/client*.c includes this.
 *
 * Every request is an mcp_call, also the engine's own (probe, initialize, listen …); a GET stream
 * is a call without a message. A call is in exactly one list:
 *
 *   WAITING --sent--> OPEN --answer--> DONE (its `done` runs) --> LINGERING --> spare
 *      ^                |  \--stream cut, event id known--> RESUMING --GET--> OPEN
 *      \--to be resent--/   (LINGERING: HTTP only, until the transport says the exchange ended)
 *
 * The table finds a call by its exchange (HTTP) and by its id; one counter assigns both.
 *
 * Callbacks may start and cancel calls, pass in more input, or free the client. Therefore every
 * entry runs between mcp_client_enter and mcp_client_leave (the outermost leave releases a freed
 * client), nothing is read from a call after its callback, and working memory is taken from the
 * client while it is used. */
#ifndef MCP_CLIENT_INTERNAL_H
#define MCP_CLIENT_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "mcp/client.h"

enum {
    CLIENT_MAX_GARBAGE = 100,     /* unreadable messages in a row */
    CLIENT_MAX_RESENDS = 2,       /* of one call */
    CLIENT_MAX_RESUMES = 5,       /* GETs in a row without an event */
    CLIENT_MAX_SPARE = 256,       /* call structs kept for reuse */
    CLIENT_MAX_KEPT_BYTES = 4096, /* of a spare call's buffer */
    CLIENT_MAX_EVENT_ID = 1024,   /* longer ids are not stored */
    CLIENT_MAX_SESSION = 1024,
    CLIENT_MAX_SUBSCRIPTIONS = 1024,
    CLIENT_MAX_URI = 8192,
    CLIENT_MAX_CLOGGED = 1000, /* small messages sent while the link is slow */
    CLIENT_MAX_PROBES = 3,     /* server/discover in one detection */
    CLIENT_LINGER_MS = 2000,   /* an answered exchange may stay open for this time */
    CLIENT_BACKOFF_MS = 1000,
    CLIENT_MAX_BACKOFF_MS = 60000,
    CLIENT_MIN_RETRY_MS = 100,
    CLIENT_MAX_RETRY_MS = 600000,
    CLIENT_STEADY_MS = 10000,      /* a stream that lasted this long resets its back-off */
    CLIENT_DOUBT_PAUSE_MS = 60000, /* between unfounded doubts about the era */
    CLIENT_TEXT = 240,
    CLIENT_LABEL = 128,
    CLIENT_MAX_OPTION_BYTES = 1 << 20,  /* clientInfo, capabilities */
    CLIENT_MAX_SCRATCH_BYTES = 1 << 16, /* kept between messages */
};

typedef enum call_purpose {
    CALL_USER,
    CALL_PROBE,    /* server/discover that decides the era */
    CALL_DISCOVER, /* server/discover for its content only */
    CALL_INITIALIZE,
    CALL_LISTEN, /* subscriptions/listen */
    CALL_QUIET,  /* subscribe, unsubscribe, setLevel: a failure is only logged */
    CALL_STREAM, /* legacy GET stream; no message */
} call_purpose;

typedef enum call_phase {
    PHASE_SPARE,
    PHASE_WAITING,
    PHASE_OPEN,
    PHASE_RESUMING,
    PHASE_DONE,
    PHASE_LINGERING,
} call_phase;

/* The parts of a call, so that it can be written again for another id, session or era. */
typedef struct call_kept {
    buf bytes; /* method, params, rename, meta, capabilities, client_info, then the fields */
    size_t len[6];
    size_t field_count; /* "Name\0value\0" each */
} call_kept;

enum { KEPT_METHOD, KEPT_PARAMS, KEPT_RENAME, KEPT_META, KEPT_CAPABILITIES, KEPT_CLIENT_INFO };

struct mcp_call {
    list_link link;
    mcp_client *client;
    call_purpose purpose;
    call_phase phase;
    const mcp_method *method; /* NULL: a method outside the tables */
    mcp_call_events events;
    void *user;
    call_kept kept;
    const auth_principal *principal; /* counted */
    mcp_log_level log_level;
    bool wants_progress;
    uint64_t progress_of; /* 0: no other call */
    uint64_t seq;         /* order of creation, and of the queue */
    uint64_t id;          /* JSON-RPC id and progress token; 0: never sent */
    uint64_t exchange;    /* HTTP; 0: none */
    bool is_exchange_open;
    bool was_sent;
    bool is_paused;
    bool is_acknowledged; /* LISTEN */
    bool is_superseded;   /* LISTEN: a newer one has replaced it */
    bool used_session;    /* the last sending named a session */
    uint32_t session_serial;
    uint32_t resends;
    uint32_t attempts; /* RESUMING and STREAM: since the last event */
    uint32_t retry_ms; /* requested by the server; 0: none */
    uint32_t garbage;
    int status;             /* of the current exchange; 0: not known */
    bay_err fault;          /* the error if the exchange ends without an answer */
    const char *fault_text; /* static; NULL: no specific text */
    uint32_t timeout_ms;
    uint64_t deadline_ms; /* end of the time without progress; RESUMING and back-off: see wake_ms */
    uint64_t end_ms;
    uint64_t wake_ms; /* RESUMING: when to GET; LINGERING: when to abandon */
    uint64_t opened_ms;
    uint32_t asked; /* open requests on its stream */
    bool has_answered;
    uint64_t answered_ms;
    buf event_id;
};

typedef struct id_slot {
    uint64_t key; /* 0: free */
    mcp_call *call;
} id_slot;

/* Open addressing over keys from a counter. */
typedef struct id_table {
    id_slot *slots;
    size_t cap;
    size_t len;
} id_table;

/* Working memory of one send or one receive. */
typedef struct client_scratch {
    buf message;
    buf name;
    arena memory;
} client_scratch;

struct mcp_client {
    mcp_client_events events;
    void *user;
    mcp_link_ops ops;
    void *link;
    const auth_principal *sends_for; /* of the message that is being sent */
    mcp_link_kind kind;
    mcp_revision_id oldest, newest;
    uint32_t probe_timeout_ms, start_timeout_ms, call_timeout_ms, max_total_ms, max_calls;
    uint64_t start_by_ms; /* while it probes or shakes hands */
    size_t max_message_bytes;
    uint32_t max_depth;
    bool wants_changes;
    const mcp_revision *remembered;
    char label[CLIENT_LABEL]; /* the server's name in the log */
    buf via;                  /* our entry of Via; empty: no Via */
    buf client_info;          /* raw objects */
    buf capabilities;

    mcp_client_state state;
    bay_err broken_err;
    char broken_text[CLIENT_TEXT];
    const mcp_revision *revision; /* in use; valid from INITIALIZING on */
    bool is_confirmed;            /* the server itself has shown its era */
    bool has_probed;              /* in this detection */
    bool is_probe_unheard;        /* it was not answered in time */
    bool fears_probe;             /* a server on a duplex link exited because of it */
    uint32_t probes;
    uint32_t proposals; /* initialize, in this detection */
    uint64_t doubt_after_ms;
    const mcp_revision *probed_version;
    buf session;
    buf next_session;
    uint32_t session_serial;
    uint32_t streamed_serial; /* the session whose GET was answered with a stream; 0: none */

    json_val about; /* the DiscoverResult or InitializeResult */
    arena about_memory;
    bool is_about_known;
    bay_str instructions;

    uint64_t now_ms;
    uint64_t next_wake_ms;
    uint64_t next_id;
    uint64_t next_seq;
    id_table table;
    list waiting, open, lingering, spare;
    list expired; /* what a tick found due */
    list failing; /* calls that a broken link leaves */
    size_t spare_count;
    size_t waiting_count; /* WAITING */
    size_t user_count;    /* of users: WAITING, OPEN, RESUMING */
    size_t open_users;    /* of users: OPEN, RESUMING */
    size_t paused_count;
    size_t progress_calls; /* open calls with progress_of */
    uint32_t garbage;
    const char *unread_text; /* why the last invalid message could not be read; static */
    uint64_t unread_ms;      /* and when */
    list asked;              /* requests on calls' own streams, see client_asked.c */
    size_t asked_rows;
    bool has_answered_loosely;
    uint32_t held_count;  /* exchanges that wait for their authorization */
    uint64_t held_ms;     /* when the last of them ended to wait */
    uint32_t asked_count; /* requests of the server that a user has taken and not answered */
    bool has_answered;    /* one, since the time was last read */
    uint64_t answered_ms; /* from then on the server's time runs again */
    uint32_t clogged_count;
    bool is_clogged;

    mcp_call *probe;      /* PROBE or INITIALIZE under way */
    mcp_call *stream;     /* the GET stream */
    bool has_no_stream;   /* the server has none */
    mcp_call *listen;     /* newest LISTEN */
    mcp_call *old_listen; /* kept until the newest is acknowledged */
    bool is_listen_due;
    bool has_listen_gap; /* no listen was open for a while */
    bool has_no_listen;
    uint64_t listen_at_ms;
    uint32_t listen_attempts;
    map subscriptions; /* uri -> its own copy */
    mcp_log_level level;

    client_scratch send_scratch;
    client_scratch receive_scratch;
    uint32_t depth;
    bool is_dead;
    bool is_flushing;
};

/* ---- client.c */
void mcp_client_enter(mcp_client *self, uint64_t now_ms);
void mcp_client_leave(mcp_client *self);
void mcp_client_set_state(mcp_client *self, mcp_client_state state);
/* Fails every call and notifies the owner. `is_link_gone`: no exchange is to be abandoned. */
void mcp_client_break(mcp_client *self, bay_err err, const char *text, bool is_link_gone);
/* READY: sends the waiting calls, opens the streams for notifications, notifies the owner. */
void mcp_client_become_ready(mcp_client *self);
void mcp_client_wake(mcp_client *self, uint64_t at_ms);
uint64_t mcp_client_backoff(uint32_t attempts);
bool mcp_client_is_http(const mcp_client *self);
bool mcp_client_is_modern(const mcp_client *self); /* the current revision */

/* ---- client_about.c */
void mcp_client_scratch_init(const mcp_client *self, client_scratch *scratch);
void mcp_client_scratch_fini(client_scratch *scratch);
/* Borrows working memory; a nested use gets other memory. */
client_scratch mcp_client_scratch_take(const mcp_client *self, client_scratch *slot);
void mcp_client_scratch_put(client_scratch *slot, client_scratch *scratch);
void mcp_client_unlearn(mcp_client *self);
/* Stores a server's description of itself. */
bay_err mcp_client_learn(mcp_client *self, json_val result) BAY_MUST_CHECK;

/* ---- client_table.c */
mcp_call *mcp_id_table_get(const id_table *self, uint64_t key);
bay_err mcp_id_table_put(id_table *self, uint64_t key, mcp_call *call) BAY_MUST_CHECK;
void mcp_id_table_remove(id_table *self, uint64_t key);
void mcp_id_table_fini(id_table *self);

/* ---- client_asked.c */
typedef struct asked asked;
/* A request is about to be passed to a user; `owner`: the call on whose stream it came, or NULL.
 * False: too many. */
bool mcp_client_asked(mcp_client *self, mcp_call *owner, bay_str id);
/* It was answered, or will not be. */
void mcp_client_asked_end(mcp_client *self, bay_str id, bool is_answered);
void mcp_call_forget_asked(mcp_call *call);
void mcp_client_asked_tick(mcp_client *self);
uint64_t mcp_call_asked_deadline(const mcp_call *call);

/* ---- client_queue.c */
void mcp_client_flush(mcp_client *self);

/* ---- client_call.c */
mcp_call *mcp_call_new(mcp_client *self, call_purpose purpose);
/* Creates and sends a call of the engine. NULL: failed (out_err says why). */
mcp_call *mcp_call_start(mcp_client *self, call_purpose purpose, mcp_method_id method,
                         json_val params, const mcp_revision *revision, uint32_t timeout_ms,
                         bay_err *out_err);
/* Gives the call a new id and sends it. On failure it is in no list. */
bay_err mcp_call_open(mcp_call *call, const mcp_revision *revision, json_val params,
                      json_val meta) BAY_MUST_CHECK;
/* Adds it to the queue, in the order of creation. */
void mcp_call_wait(mcp_call *call);
void mcp_call_unpause(mcp_call *call);
void mcp_call_finish(mcp_call *call, const mcp_outcome *outcome);
void mcp_call_fail(mcp_call *call, bay_err err, bool was_sent, const char *text);
/* Frees a call that is in no list and whose exchange is closed. */
void mcp_call_recycle(mcp_call *call);
/* Removes it from every list, without `done`. */
void mcp_call_detach(mcp_call *call);
/* Puts it back in the queue, in its old place. False: it was resent too often. */
bool mcp_call_requeue(mcp_call *call);
/* HTTP: closes its exchange, if any. */
void mcp_call_abandon(mcp_call *call);
/* Notifies the server of the cancellation, as link and era require. */
void mcp_call_tell_cancelled(mcp_call *call, bay_str reason);
mcp_call *mcp_call_by_id(const mcp_client *self, bay_str raw_id);
mcp_call *mcp_call_by_exchange(const mcp_client *self, uint64_t exchange);
/* The only open call of a user, or NULL. */
mcp_call *mcp_call_only_open(const mcp_client *self);
void mcp_call_expire(mcp_call *call);
/* Gives the exchange an entry in the table. */
bay_err mcp_call_enter_exchange(mcp_call *call, uint64_t exchange) BAY_MUST_CHECK;
bay_str mcp_call_kept_part(const mcp_call *call, int part);

/* ---- client_write.c */
bay_err mcp_call_keep(call_kept *kept, const mcp_call_spec *spec, bool wants_fields,
                      arena *memory) BAY_MUST_CHECK;
/* Writes and sends a call whose id is set; `params` and `meta` missing: read from its stored parts.
 */
bay_err mcp_call_send(mcp_call *call, const mcp_revision *revision, json_val params,
                      json_val meta) BAY_MUST_CHECK;
/* A notification or a response. BAY_OK also if the link has ended. */
bay_err mcp_client_post(mcp_client *self, bay_str message);
void mcp_client_notify(mcp_client *self, mcp_method_id method, bay_str params);
size_t mcp_client_legacy_fields(const mcp_client *self, bay_str event_id, mcp_field *out);

void mcp_client_trace(mcp_client *self, bool is_outgoing, bay_str message, const mcp_field *fields,
                      size_t count);

/* ---- client_detect.c */
void mcp_client_detect_begin(mcp_client *self);
/* How long a message of the handshake is waited for: what is left of the start's time, or as a call.
 */
uint32_t mcp_client_start_left(const mcp_client *self);
void mcp_client_detect_probe(mcp_client *self, const mcp_revision *version);
void mcp_client_detect_probed(mcp_client *self, mcp_call *call, const mcp_outcome *outcome);
void mcp_client_detect_initialized(mcp_client *self, mcp_call *call, const mcp_outcome *outcome);
/* An error answer to a user's call may mean another era. True: the call was taken back and the
 * server is probed again. `error_code` 0: the exchange failed without a JSON-RPC error. */
bool mcp_client_detect_doubts(mcp_call *call, int error_code, json_val error);
void mcp_client_detect_doubt_silence(mcp_client *self);
const mcp_revision *mcp_client_detect_pick(const mcp_client *self, json_val versions, mcp_era era);
bay_err mcp_client_detect_status_err(int status);
void mcp_client_detect_status_text(int status, char *out, size_t size);

/* ---- client_legacy.c */
void mcp_client_legacy_initialize(mcp_client *self, const mcp_revision *proposal);
void mcp_client_legacy_ready(mcp_client *self);
/* The exchange of `call` (or the GET stream) showed that its session has ended. */
void mcp_client_legacy_session_lost(mcp_client *self, uint32_t serial);
bool mcp_client_legacy_lost_session(
    const mcp_call *call); /* a 404 to a request that named a session */
/* The stream of a call was cut. True: it will be resumed. */
bool mcp_client_legacy_resume(mcp_call *call);
void mcp_client_legacy_listen(mcp_call *call); /* GET now */
void mcp_client_legacy_open_stream(mcp_client *self);
void mcp_client_legacy_stream_ended(mcp_client *self, bay_err err);
void mcp_client_legacy_close_stream(mcp_client *self);
void mcp_client_legacy_subscribe(mcp_client *self, bay_str uri, bool is_wanted);
void mcp_client_legacy_send_level(mcp_client *self);

/* ---- client_modern.c */
void mcp_client_modern_ready(mcp_client *self);
void mcp_client_modern_listen_due(mcp_client *self);
void mcp_client_modern_tick(mcp_client *self);
void mcp_client_modern_acknowledged(mcp_client *self, mcp_call *call);
void mcp_client_modern_listen_ended(mcp_client *self, mcp_call *call, const mcp_outcome *outcome);
void mcp_client_modern_close_listens(mcp_client *self, bool is_link_gone);
/* -32022 to a user's call. True: it will be sent again. */
bool mcp_client_modern_retry_version(mcp_call *call, json_val error);

/* ---- client_receive.c */
/* Whether it is the raw id of a request of this engine. */
bool mcp_client_is_id(bay_str raw, uint64_t *out);

/* ---- client_exchange.c */
void mcp_call_remember_event(mcp_call *call, bay_str event_id);

#endif
