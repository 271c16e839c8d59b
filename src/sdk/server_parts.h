/* The inside of a bay_server: what was registered, rendered once for the lists, and the calls under
 * way. Shared by the sdk's server files only.
 *
 * Lifetimes: entries live as long as the server. A bay_call is counted: the engine's side holds one
 * reference until the call is finished, a handler on another thread holds one until it returns or
 * finishes. The mcp_request behind it lives until the loop has finished it, so its views stay good
 * while any thread still works on the call. */
#ifndef SDK_SERVER_PARTS_H
#define SDK_SERVER_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/map.h"
#include "mcp/server.h"
#include "net/bell.h"
#include "net/loop.h"
#include "patchbay/server.h"
#include "json/writer.h"

enum {
    SERVER_MAX_ENTRIES = 100000, /* of each kind */
    SERVER_MAX_SCHEMA = 1 << 20, /* bytes of one schema */
    SERVER_MAX_RESULT = 64 << 20,
    SERVER_MAX_ERRORS = 16,        /* registration errors kept */
    SERVER_DRAIN_MS = 10000,       /* for what is under way, when a server is stopped */
    SERVER_SETTINGS = 16,          /* room for bay_setting */
    SERVER_SPARE_KEEPS = 64 << 10, /* larger buffers are not kept between calls */
    SERVER_MAX_UPDATES = 10000,    /* resources whose change is not told yet */
    CALL_MAX_NOTES = 1024,         /* messages of one call on their way to the loop ... */
    CALL_MAX_NOTE_BYTES = 4 << 20, /* ... and their bytes; what is above is dropped */
};

typedef enum entry_kind {
    ENTRY_TOOL,
    ENTRY_RESOURCE,
    ENTRY_TEMPLATE,
    ENTRY_PROMPT,
    ENTRY_COMPLETION,
    ENTRY_KINDS
} entry_kind;

/* What the first check of a tool's arguments looks at, taken out of its schema once. */
typedef struct argument_rule {
    bay_str name;
    bay_str types_raw; /* as the schema says it, for the complaint */
    unsigned types;    /* one bit a json_kind; RULE_INTEGER: no fractions */
    bool is_required;
} argument_rule;

/* One bit a json_kind, and: */
enum { RULE_INTEGER = 1u << 16, RULE_ANY = 1u << 17, SERVER_MAX_RULES = 256 };

/* One registration. bay_tool is the public name of a pointer to one. */
struct bay_tool {
    bay_server *server;
    entry_kind kind;
    bay_str key; /* name, URI or template: owned */
    bay_str title;
    bay_str description;
    bay_str mime_type;
    bay_str schema;        /* input schema, or a prompt's arguments: raw JSON */
    bay_str output_schema; /* raw JSON or empty */
    bay_str annotations;   /* raw JSON or empty */
    bay_str requires;      /* client capability or empty */
    json_doc schema_doc;   /* of `schema` */
    mcp_param_table param_table;
    argument_rule *rules;
    size_t rule_count;
    bay_handler handler;
    void *user;
    bool is_blocking;
};
typedef struct bay_tool entry;

typedef struct entry_list {
    entry **items;
    size_t len;
    size_t cap;
    map by_key;
    bay_str rendered; /* members of the list result: "tools":[…] */
} entry_list;

/* Changes announced from any thread, collected for the loop. */
typedef struct announcements {
    pthread_mutex_t lock; /* guards all of it */
    loop *loop;           /* NULL: not serving */
    unsigned changes;
    struct update *first, *last;
    map by_uri;
    loop_message message;
    bool is_posted;
} announcements;

struct bay_server {
    char *name;
    char *version;
    char *title;
    char *instructions;
    char *website;
    bay_str icons;                     /* raw JSON or empty */
    int64_t settings[SERVER_SETTINGS]; /* server_settings.c; read by sdk_server_setting */
    mcp_revision_id oldest;
    mcp_revision_id newest;
    log_target log; /* no sink: the process's */
    arena memory;   /* everything that was registered */
    entry_list lists[ENTRY_KINDS];
    bay_diag errors[SERVER_MAX_ERRORS];
    size_t error_count; /* may exceed what is kept */
    bool is_out_of_memory;
    loop *loop;              /* while serving */
    mcp_server *engine;      /* while serving; loop only */
    struct serving *serving; /* serving.c; NULL: not being served */
    bell stop;               /* rung by bay_server_stop */
    bool has_served;
    uint32_t drain_ms; /* how long an end may take, twice; tests have less patience */
    announcements announcements;
    size_t calls_under_way; /* loop only */
    bay_call *idle_calls;   /* loop only: to be used again, bounded */
    size_t idle_count;
    buf scratch;   /* the loop's, for results */
    buf spares[2]; /* the loop's: memory of texts and items, lent from call to call */
};

typedef enum note_kind {
    NOTE_RESULT,
    NOTE_ERROR,
    NOTE_NOT_FOUND,
    NOTE_PROGRESS,
    NOTE_LOG,
} note_kind;

struct bay_call {
    atomic_int references;
    atomic_bool is_cancelled;
    atomic_bool is_finished; /* answered; earlier messages may still be on their way to the loop */
    bool is_delivered;       /* loop only: the answer is with the engine, the request is gone */
    atomic_bool is_slow;     /* the client does not keep up: nothing but the answer is sent */
    atomic_size_t notes;     /* on their way to the loop */
    atomic_size_t note_bytes;
    bool is_deferred;
    bay_call *next_idle;
    bay_server *server;
    const entry *entry;
    mcp_request *request;
    json_val arguments;
    arena memory; /* decoded strings: the thread that has the call */
    /* The answer of another thread, on its way to the loop without allocating. */
    loop_message message;
    note_kind answer;
    int answer_code;
    bay_str answer_text; /* in answer_bytes, or static */
    buf answer_bytes;
};

struct bay_result {
    bay_call *call;
    buf items;      /* content, contents, messages or values: elements without brackets */
    buf structured; /* raw object or empty */
    bay_str role;   /* of prompt messages */
    size_t count;
    bool is_error;
    const char *fault; /* what the handler did wrong; NULL: nothing */
};

/* server.c */
void sdk_server_error(bay_server *self, const char *format, ...) BAY_PRINTF(2, 3);

/* server_settings.c: what was set, or the default. */
uint64_t sdk_server_setting(const bay_server *self, bay_setting setting);

/* serving.c: everything served ends at once. False: clients in process, a turn of the loop that is
 * under way, or handlers that do not end still need it. */
typedef struct serving serving;
bool sdk_serving_abandon(bay_server *server);

/* announce.c: any thread may announce between open and close. */
bay_err sdk_announcements_init(announcements *self) BAY_MUST_CHECK;
void sdk_announcements_open(bay_server *server, loop *on);
void sdk_announcements_close(bay_server *server);
void sdk_announcements_fini(announcements *self);

/* server_lists.c: renders every list; BAY_NOMEM. */
bay_err sdk_server_render(bay_server *self);
void sdk_server_write_capabilities(void *self, const mcp_revision *revision, json_writer *out);

/* server_service.c: what the engine calls. */
extern const mcp_service sdk_server_service;

/* call.c */
bay_err sdk_call_new(bay_server *server, const entry *entry, mcp_request *request,
                     bay_call **out) BAY_MUST_CHECK;
void sdk_call_run(bay_call *self);
void sdk_call_unref(bay_call *self);
void sdk_calls_free(bay_server *server);
bool sdk_call_on_loop(const bay_call *self);

/* An empty buffer: on the loop with memory that was used before, which is returned there. */
void sdk_buf_borrow(bay_call *call, buf *out);
void sdk_buf_return(bay_server *server, buf *used); /* on the loop only */

/* arguments.c: a first check of required members and primitive types against the top level of the
 * input schema. On failure writes a text a model can act on (if it fits) and returns false. */
bay_err sdk_arguments_compile(entry *tool) BAY_MUST_CHECK;
/* The same for a prompt's list of arguments. BAY_TYPE, BAY_DUPLICATE, BAY_NOMEM. */
bay_err sdk_arguments_compile_prompt(entry *prompt) BAY_MUST_CHECK;
/* The first required argument of a prompt that is missing; NULL: none. */
const argument_rule *sdk_arguments_missing(const entry *prompt, json_val arguments);
bool sdk_arguments_check(const entry *tool, json_val arguments, buf *out_text);

/* result.c: the members of the wire result. */
void sdk_result_write_members(const bay_result *self, const mcp_revision *revision, buf *out);
const char *sdk_result_fault(const bay_result *self); /* NULL: it can be sent */
void sdk_result_init(bay_result *self, bay_call *call);
void sdk_result_fini(bay_result *self);
/* Sends it, from whatever thread, exactly once; the call is gone afterwards. NULL: no memory. */
void sdk_call_send(bay_call *call, const bay_result *result);

#endif
