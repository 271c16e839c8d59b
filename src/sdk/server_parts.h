/* The inside of a bay_server: what was registered, rendered once for the lists, and the calls under
 * way. Shared by the sdk's server files only.
 *
 * Lifetimes: entries live as long as the server; for those of calls see call_parts.h. */
#ifndef SDK_SERVER_PARTS_H
#define SDK_SERVER_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/map.h"
#include "front/front.h"
#include "front/listen_address.h"
#include "mcp/server.h"
#include "mcp_transport/http_router.h"
#include "net/loop.h"
#include "patchbay/guard.h"
#include "patchbay/server.h"
#include "schema/schema.h"
#include "sdk/call_parts.h"
#include "sdk/host.h"
#include "sdk/registration.h"
#include "store/store.h"
#include "json/build.h"

enum {
    SERVER_MAX_ENTRIES = 100000, /* of each kind */
    SERVER_MAX_SCHEMA = 1 << 20, /* bytes of one schema */
    SERVER_MAX_RESULT = 64 << 20,
    COMPLETION_CONTEXT_BYTES = 1 << 20, /* of context.arguments, as JSON */
    SERVER_SETTINGS = 16,               /* room for bay_server_setting */
    SERVER_SPARE_KEEPS = 64 << 10,      /* larger buffers are not kept between calls */
    SERVER_MAX_UPDATES = 10000,         /* resources whose change is not told yet */
    SERVER_MAX_LINES = 1024,            /* log messages of bay_server_log that are not told yet */
};

typedef enum entry_kind {
    ENTRY_TOOL,
    ENTRY_RESOURCE,
    ENTRY_TEMPLATE,
    ENTRY_PROMPT,
    ENTRY_SKILL,
    ENTRY_COMPLETION,
    ENTRY_METHOD, /* of an extension */
    ENTRY_KINDS
} entry_kind;

/* One argument of a prompt. */
typedef struct argument_rule {
    bay_str name;
    bool is_required;
} argument_rule;

/* One registration. bay_tool is the public name of a pointer to one. */
struct bay_tool {
    bay_server *server;
    entry_kind kind;
    bay_str key;  /* name, URI or template: owned */
    bay_str name; /* of a resource or template */
    bay_str title;
    bay_str description;
    bay_str mime_type;
    bay_str schema;         /* input schema, or a prompt's arguments: raw JSON */
    bay_str output_schema;  /* raw JSON or empty */
    bool has_object_output; /* else only 2026-07-28 knows such a schema, and its results */
    bay_str annotations;    /* raw JSON or empty */
    bay_str icons;          /* raw JSON or empty */
    bay_str meta;           /* raw JSON or empty */
    bay_str ui;             /* _meta.ui: raw JSON or empty */
    bay_str ui_uri;         /* apps.c */
    bay_str visibility;     /* apps.c: raw JSON or empty */
    json_doc annotations_doc;
    json_doc meta_doc;
    uint64_t size;
    bool has_size;
    atomic_bool is_off;
    bay_str requires;    /* client capability or empty */
    bay_str scopes;      /* that its callers must have; or empty */
    json_doc schema_doc; /* of `schema` */
    json_doc output_doc; /* of `output_schema` */
    json_val wanted;     /* whose defaults and choices are applied; missing: of none */
    mcp_param_table param_table;
    argument_rule *rules;
    size_t rule_count;
    schema *input_check;           /* NULL: any object */
    schema *output_check;          /* NULL: anything */
    struct bay_tool *next_checked; /* the server frees the two above */
    bay_handler_fn handler;
    void *user;
    uint32_t timeout_ms; /* 0: the server's */
    bay_task_mode task_mode;
    bool is_blocking;
    bool is_resumable;
};
typedef struct bay_tool entry;

/* A list as clients of one revision see it. */
typedef struct list_view {
    char *text; /* members of the list result: "tools":[…]; NULL: not rendered */
    size_t len;
    size_t *starts; /* of its elements, and one after the last */
    size_t count;
    uint64_t hash;
} list_view;

typedef struct entry_list {
    entry **items;
    size_t len;
    size_t cap;
    map by_key;
    list_view views[MCP_REVISION_COUNT]; /* loop only */
} entry_list;

/* Declared in capabilities. */
typedef struct extension {
    struct extension *next;
    bay_str id;
    bay_str settings; /* raw JSON */
} extension;

/* Changes announced from any thread, collected for the loop. */
typedef struct announcements {
    pthread_mutex_t lock; /* guards all of it */
    loop *loop;           /* NULL: not serving */
    unsigned changes;
    struct update *first, *last;
    struct log_line *first_line, *last_line;
    size_t lines;
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
    extension *extensions; /* in the order they were declared */
    struct skill *skills;  /* likewise */
    bay_subscribed_fn subscribed;
    void *subscribed_user;
    registration_errors errors;
    bool is_out_of_memory;
    bool is_complete;   /* what only all registrations together tell was looked at */
    loop *loop;         /* while serving */
    mcp_server *engine; /* while serving; loop only */
    loop_timer tick;    /* the engine's; while serving */
    sdk_host host;      /* what serves it */
    announcements announcements;
    struct bay_tool *checked; /* tools and prompts with schemas */
    struct bay_tool *choices; /* completes arguments with choices; NULL: there are none */
    schema_state checks;      /* loop only: scratch */
    size_t calls_under_way;   /* loop only */
    bay_call *idle_calls;     /* loop only: to be used again, bounded */
    size_t idle_count;
    bay_str store_path; /* empty: in memory */
    /* NULL: in memory. Named only where it is asked for, so that a program without it need not
     * hold SQLite. */
    bay_err (*open_store)(loop *on_loop, bay_str path, const store_options *options, store **out,
                          bay_diag *diag);
    struct bay_tasks *tasks;  /* while serving; NULL: no tool may be one */
    pthread_mutex_t asking;   /* guards what calls have just asked, and what they remember */
    bay_identify_fn identify; /* NULL: everybody is nobody in particular */
    void *identify_user;
    bay_guard *guard;      /* NULL: none; one reference */
    struct sdk_gate *gate; /* of the guard, while it serves */
    struct rounds *rounds; /* NULL: nothing was sealed yet, and no key given */
    buf scratch;           /* the loop's, for results */
    buf free_list[2];      /* the loop's: memory of texts and items, lent from call to call */
};

struct bay_result {
    bay_call *call;
    buf items;            /* content, contents, messages or values: elements without brackets */
    buf meta;             /* _meta, or empty */
    bay_str role;         /* of prompt messages */
    bay_json *structured; /* any JSON; NULL: there is none */
    size_t count;
    size_t brace; /* where the brace stands that closes the element added last; 0: none to add to */
    bool is_annotated; /* the element added last ... */
    bool has_item_meta;
    size_t total; /* completion: bay_result_more */
    uint32_t ttl_ms;
    bool has_cache;
    bool is_public;
    bool is_error;
    const char *fault; /* what the handler did wrong; NULL: nothing */
};

/* A line that may be said outside a turn of the server's loop, on whatever thread. */
#define SERVER_LOG(server, level, ...)                                                             \
    do {                                                                                           \
        const log_target *log_before =                                                             \
            log_direct((server)->log.sink != NULL ? &(server)->log : NULL);                        \
        LOG(level, __VA_ARGS__);                                                                   \
        log_direct(log_before);                                                                    \
    } while (0)

/* server.c */
listen_policy sdk_server_policy(const bay_server *self);
void sdk_server_error(bay_server *self, const char *format, ...) BAY_PRINTF(2, 3);
void sdk_entry_error(const entry *self, const char *format, ...) BAY_PRINTF(2, 3);
/* A tool whose input schema is not set yet; NULL: no memory, or no server. */
entry *sdk_server_add_tool(bay_server *self, const char *name, const char *description,
                           bay_handler_fn handler, void *user);
/* Its schemas, which stand in its server's memory. */
void sdk_tool_schema(entry *tool, bay_str text, const json_doc *document);
void sdk_tool_output(entry *tool, bay_str text, const json_doc *document);

/* server_fields.c: arguments with the defaults that they lack. BAY_ERR_NOMEM; BAY_ERR_LIMIT: they
 * are too large with them. */
bay_err sdk_arguments_fill(const entry *item, arena *memory, json_val *arguments) BAY_MUST_CHECK;
/* Does this entry complete the argument of that name itself? */
bool sdk_has_choices(const entry *prompt, json_val argument);
/* Words of schemas that mean nothing, into the log. */
void sdk_server_warn(const bay_server *self);
/* A copy in the server's memory; empty on failure, which is remembered. */
bay_str sdk_server_keep(bay_server *self, const char *text);
/* Keeps `text` if it is JSON of the wanted kind; else empty, and an error that says `whose`. */
bay_str sdk_server_keep_json(bay_server *self, const char *whose, const char *what,
                             const char *text, json_kind wanted, json_doc *out_doc);
bay_str sdk_entry_keep_json(entry *self, const char *what, const char *text, json_kind wanted,
                            json_doc *out_doc);
/* Makes an entry and lists it. NULL without a server, or for lack of memory: a bad one is kept out
 * of the list, yet its setters work. */
entry *sdk_server_add(bay_server *self, entry_kind kind, const char *key, const char *description,
                      bay_handler_fn handler, void *user);

/* skills.c: reads them, and lists what they are made of. */
void sdk_skills_complete(bay_server *self);
void sdk_skills_free(bay_server *self);
/* skill_methods.c: skills/list, skills/get, resources/directory/read. */
void sdk_skills_request(bay_server *self, mcp_request *request);

/* apps.c: what can only be said once everything is registered. */
void sdk_apps_complete(bay_server *self);

/* server_service.c: the other arguments of a completion; JSON_MISSING: the client named none. */
json_val sdk_completion_context(const mcp_request *request);

/* server_about.c: `settings` raw, in the server's memory or static. Again is no error. */
void sdk_server_declare(bay_server *self, const char *id, bay_str settings);
/* server_about.c, server_details.c: what is wrong with it; NULL: nothing. */
const char *sdk_icons_fault(json_val icons);
const char *sdk_annotations_fault(json_val annotations);

/* server_settings.c: what was set, or the default. */
uint64_t sdk_server_setting(const bay_server *self, bay_server_setting setting);

/* serving.c */
extern const host_kind sdk_server_kind;

/* announce.c: any thread may announce between open and close. */
bay_err sdk_announcements_init(announcements *self) BAY_MUST_CHECK;
void sdk_announcements_open(bay_server *server, loop *on);
void sdk_announcements_close(bay_server *server);
void sdk_announcements_fini(announcements *self);

/* server_lists.c: loop only. Renders every list anew; BAY_ERR_NOMEM. */
bay_err sdk_server_render(bay_server *self);
void sdk_list_forget(entry_list *self);
/* One entry as the revision knows it. */
void sdk_put_entry(json_writer *writer, const entry *item, mcp_revision_id revision);
void sdk_list_answer(bay_server *self, entry_kind kind, mcp_request *request);
/* "annotations":…, as the revision knows them. */
void sdk_put_annotations(json_writer *writer, json_val annotations, mcp_revision_id revision);
void sdk_server_write_capabilities(void *self, const mcp_revision *revision, json_writer *out);

/* server_service.c: the entry that a request names; NULL: none, or it is off. */
const entry *sdk_server_find(const bay_server *self, entry_kind kind, bay_str key);
/* … what the engine calls. */
extern const mcp_service sdk_server_service;

/* arguments.c: what goes into a handler and what comes out of it, held against the schemas. */
/* Compiles the input schema of a tool or prompt, or a tool's output schema. False: it is none, which
 * was told as an error of registration. */
bool sdk_arguments_compile(entry *item, json_val schema, bool is_output);
/* The names of a prompt's arguments. BAY_ERR_NOMEM. */
bay_err sdk_arguments_compile_prompt(entry *prompt) BAY_MUST_CHECK;
void sdk_arguments_free(bay_server *server);
/* The first required argument of a prompt that is missing; NULL: none. */
const argument_rule *sdk_arguments_missing(const entry *prompt, json_val arguments);
/* Loop only. BAY_ERR_INVALID with a text that a model can act on; BAY_ERR_NOMEM. */
bay_err sdk_arguments_check(const entry *tool, json_val arguments, buf *out_text) BAY_MUST_CHECK;
/* Any thread. BAY_ERR_INVALID: the structured content (missing: there is none) breaks the output
 * schema, and the log says how; BAY_ERR_NOMEM. */
bay_err sdk_output_check(const bay_call *call, json_val structured) BAY_MUST_CHECK;

/* peer.c: asks the program who sent it. */
front_verdict sdk_peer_identify(const bay_server *server, http_exchange *exchange,
                                const auth_principal **out_principal, front_refusal *out);

/* result.c: the members of the wire result. */
void sdk_result_write_members(const bay_result *self, const mcp_revision *revision, buf *out);
bay_str sdk_result_meta(const bay_result *self);      /* members of _meta; empty: none */
const char *sdk_result_fault(const bay_result *self); /* NULL: it can be sent */
/* The structured content, which was checked when it was given; missing: there is none. */
json_val sdk_result_structured(const bay_result *self);
/* What bay_call_reply_json is given. */
void sdk_result_json(bay_result *self, bay_json *json);
void sdk_result_init(bay_result *self, bay_call *call);
/* _meta of the element added last, a raw object; revisions without it go without. */
void sdk_result_element_meta(bay_result *self, bay_str meta);
void sdk_result_fini(bay_result *self);

/* tasks.c: on the loop. */
/* Opens the store if any tool may be a task. `diag` is not NULL. */
bay_err sdk_tasks_open(bay_server *server, bay_diag *diag) BAY_MUST_CHECK;
/* Ends what is under way: it fails, or is left to the next process if it can be run again. */
void sdk_tasks_stop(bay_server *server);
/* Not inside a turn: turns the loop until everything is stored. */
void sdk_tasks_free(bay_server *server);
bool sdk_tasks_are_offered(const bay_server *server, const mcp_revision *revision);
/* Can this request's client look after a task? */
bool sdk_task_is_wanted(const mcp_request *request);
/* Loop only: what bay_call_become_task said on another thread, if it did and it is not done yet. */
void sdk_task_become(bay_call *call);
/* In place of sdk_call_run: runs once the task is stored, or ends the call. */
void sdk_task_start(bay_call *call);

/* task_methods.c: tasks/get, tasks/update, tasks/cancel. */
void sdk_tasks_request(bay_server *server, mcp_request *request);

#endif
