/* The structs behind the client's opaque types. client.c draws the life of a client; what belongs
 * to one file alone is said at the member. */
#ifndef SDK_CLIENT_OBJECTS_H
#define SDK_CLIENT_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "http/http_client.h"
#include "mcp/client.h"
#include "mcp_transport/link.h"
#include "net/loop.h"
#include "patchbay/client.h"
#include "schema/schema.h"
#include "sdk/asker.h"
#include "sdk/json_parts.h"

enum {
    CLIENT_IDLE_MS = 60000,
    CLIENT_TOTAL_MS = 600000,
    CLIENT_RECONNECT_ATTEMPTS = 8,
    CLIENT_RECONNECT_FIRST_MS = 250,
    CLIENT_RECONNECT_LONGEST_MS = 30000,
    CLIENT_MOST_REPEATS = 2,     /* of a request that may have been executed and may be again */
    CLIENT_MAX_REQUESTS = 10000, /* open at one time */
    CLIENT_MAX_SETTINGS = 1024,  /* header fields, variables, roots, extensions: of each */
    CLIENT_MAX_WORDS = 4096,     /* of a command */
    CLIENT_MAX_TEXT = 1 << 20,   /* of a command; what is read or written for one request */
    CLIENT_MAX_PAGES = 10000,
    CLIENT_MAX_ENTRIES = 1000000,  /* of a list */
    CLIENT_MAX_LIST = 64 << 20,    /* bytes of a list */
    CLIENT_MAX_REPLY = 64 << 20,   /* bytes of a result */
    CLIENT_MAX_PARSED = 256 << 20, /* memory of what is read from a reply or a list */
    CLIENT_MAX_SUBSCRIPTIONS = 1024,
    CLIENT_MAX_ABOUTS = 16,       /* descriptions of the server whose views are still good */
    CLIENT_MAX_TTL_MS = 86400000, /* a list is kept for a day at most */
    CLIENT_MAX_LISTINGS = 1024,   /* lists asked for without waiting, at one time */
    CLIENT_KINDS = 5,
};

/* ---- options --------------------------------------------------------------------------------- */

struct bay_client_options {
    asker_options base;
    char *name, *version;
    asker_settings env;        /* name: the whole assignment */
    asker_settings extensions; /* id, settings object */
    asker_settings roots;      /* uri, name or NULL */
    char *directory;
    mcp_revision_id oldest, newest;
    bay_transport transport;
    bay_output_check output_check;
    uint32_t idle_ms, total_ms;
    uint32_t attempts, longest_ms;
    bool has_no_cache;
    bool trusts_hints; /* readOnlyHint and idempotentHint decide what is sent again */
    bool has_roots;
    unsigned elicitation_modes; /* 0: no handler */
    bay_asked_fn elicitation_asked;
    void *elicitation_user;
    char *sampling_capability;   /* raw object; NULL: {} */
    bool has_sampling_tools;     /* it has a member `tools` */
    bay_asked_fn sampling_asked; /* NULL: no sampling */
    void *sampling_user;
    void (*changed)(bay_client *client, bay_kind kind, void *user);
    void *changed_user;
    void (*updated)(bay_client *client, bay_str uri, void *user);
    void *updated_user;
    void (*logged)(bay_client *client, bay_str params, void *user);
    void *logged_user;
    void (*traced)(bay_client *client, bool is_outgoing, bay_str message, void *user);
    void *traced_user;
};

/* ---- the client ------------------------------------------------------------------------------ */

typedef enum client_phase {
    CLIENT_LOST,    /* no link; the next need makes one */
    CLIENT_PAUSING, /* no link, or nobody answers on it; `retry` says when it goes on */
    CLIENT_OPENING, /* the server is being asked what it speaks */
    CLIENT_READY,
    CLIENT_CLOSING,
} client_phase;

/* What the server said of itself; older ones are kept, views into them were given away. */
typedef struct client_about {
    struct client_about *older;
    buf text; /* server info, capabilities, instructions, one behind the other */
    bay_str info, capabilities, instructions;
    const mcp_revision *revision;
    arena memory;
    json_val can; /* the capabilities */
} client_about;

/* The latest list of one kind, and whether it may still be given out. */
typedef struct client_cache {
    bay_list *list;         /* NULL: never fetched */
    uint64_t fresh_until;   /* ms of the loop; 0: no ttl */
    uint64_t hearing;       /* mcp_client_hearing when it was fetched; 0: nobody would tell */
    uint32_t generation;    /* counts list_changed */
    bool is_stale;          /* it changed since */
    uint32_t refused_on;    /* the link on which the server refused it; 0: none */
    struct fetch *fetching; /* under way */
} client_cache;

struct bay_client {
    asker base;
    bay_client_options options; /* its own copy */
    client_phase phase;
    struct bay_server *attached; /* NULL: a loop of its own */
    char *url;                   /* NULL: a command, or attached */
    char **argv;                 /* NULL: a URL, or attached */
    mcp_link *link;
    bool is_link_broken; /* to be freed outside its callbacks */
    bool was_ready;      /* at least once */
    bool is_closed;      /* its link has ended politely */
    bool has_given_up;
    bool broke_in_use; /* the last failure was of a link that had been ready */
    uint32_t links;    /* made so far */
    uint32_t failures; /* to reach the server, in a row */
    uint64_t retry_at_ms;
    loop_timer retry;
    bay_diag fault; /* why it is not there */
    void (*connected)(bay_client *client, const bay_diag *diag, void *user);
    void *connected_user;
    client_about *about;
    const mcp_revision *remembered; /* of the session revisions: a new link is not probed */
    client_cache caches[CLIENT_KINDS];
    list listings; /* client_lists.c: asked for without waiting */
    size_t listing_count;
    map subscriptions; /* uri -> its own copy */
    mcp_log_level level;
    json_doc *roots; /* {"roots":[…]} */
    buf remote_error;
    bool wants_changes;
    list questions;      /* client_questions.c: open ones */
    list refused_skills; /* client_skills.c */
    size_t refused_skill_count;
};

/* ---- a request ------------------------------------------------------------------------------- */

struct bay_request {
    asker_item item; /* its answer is a bay_reply */
    bay_client *client;
    bool is_pausing; /* sdk_request_later: goes on when `timer` is over */
    bool keeps_task;
    bool follows_task; /* its results are looks at a task */
    bool is_internal;  /* a page of a list: no tool, no rounds */
    bool has_fetched;  /* the list of tools was asked for on its behalf */
    bool was_refetched;
    bool waits_for_tools;
    uint32_t losses;  /* of the link, in this round ... */
    uint32_t repeats; /* ... after which it may have been executed */
    uint32_t idle_ms, total_ms;
    uint64_t end_ms; /* of the loop: no later than this */
    bay_err err;     /* the first fault of its making … */
    const char *fault;
    arena memory;   /* of the next three */
    bay_str method; /* as first given … */
    json_val params;
    json_val meta;
    bay_str round_method;   /* … and of the round under way */
    json_doc *round_params; /* owned; NULL: the first round */
    mcp_log_level log_level;
    mcp_call *call;   /* with the engine; NULL: it waits, pauses, or rounds or a task have it */
    loop_timer timer; /* without a call: gives up; pausing: goes on */
    bay_request_progress_fn progressed;
    void *progressed_user;
    bay_request_logged_fn logged;
    void *logged_user;
    void *held;
    void (*release)(void *held);
    bay_request_done_fn done;
    void *user;
};

/* ---- what came back -------------------------------------------------------------------------- */

typedef struct reply_item {
    bay_content kind;
    bay_str raw;
    bay_str text;
    bay_str mime_type;
    bay_str uri;
    bay_str role;
    bay_str data; /* base64 */
} reply_item;

struct bay_reply {
    arena memory;
    json_val root; /* the whole result */
    json_val structured;
    bool is_error;
    reply_item *items;
    size_t count;
    pthread_mutex_t lock;
    bay_document document; /* of the root */
};

typedef struct list_entry {
    bay_str json, name, title, description, uri, ui;
    json_val value;
    mcp_param_table params; /* tools: for Mcp-Param-* */
    bool may_repeat;        /* tools: readOnlyHint or idempotentHint, by the server's word */
    schema *output;         /* client_output.c: compiled by the client's thread; NULL: not yet */
} list_entry;

struct bay_list {
    atomic_int references;
    bay_kind kind;
    arena memory;
    pthread_mutex_t lock;
    bay_document document; /* of all entries */
    list_entry *entries;
    size_t count;
    bool has_outputs; /* tools: one has an outputSchema */
    bay_str *rejected;
    bay_str *rejected_names;
    size_t rejected_count;
};

#endif
