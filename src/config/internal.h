/* What the files of the configuration share: the table of keys, the tree both syntaxes become, the
 * memory that is wiped, and the loader that carries them.
 *
 *   bytes --config_yaml / config_json--> tree --config_load (config_env, config_value)--> struct
 *         --config_check--> config, or a report of everything that is wrong */
#ifndef CONFIG_INTERNAL_H
#define CONFIG_INTERNAL_H

#include <stdatomic.h>

#include "base/str.h"
#include "config/config.h"

/* ---- memory ---------------------------------------------------------------------------------- */

/* Holds secrets, so it never grows by copying and is wiped whole at its end. */
typedef struct config_pool {
    struct config_chunk *chunk; /* newest first */
    size_t used;
    size_t max;
    bool is_full;
} config_pool;

void config_pool_init(config_pool *self, size_t max_bytes);
void config_pool_fini(config_pool *self);
/* Zeroed, aligned to 16 bytes; NULL when out of memory or over the maximum (is_full). */
void *config_pool_alloc(config_pool *self, size_t bytes);
/* A copy with a NUL after it; `at` is NULL on failure. */
bay_str config_pool_dup(config_pool *self, bay_str text);
bay_err config_pool_err(const config_pool *self); /* why the last allocation failed */

/* ---- the table of keys ----------------------------------------------------------------------- */

typedef enum config_scope {
    CONFIG_SCOPE_TOP,
    CONFIG_SCOPE_ADMIN,
    CONFIG_SCOPE_SCAN,
    CONFIG_SCOPE_PINS,
    CONFIG_SCOPE_CONTRACTS,
    CONFIG_SCOPE_TLS,
    CONFIG_SCOPE_GROUP,
    CONFIG_SCOPE_POLICY,
    CONFIG_SCOPE_RULE,
    CONFIG_SCOPE_WHO,
    CONFIG_SCOPE_TOOL,
    CONFIG_SCOPE_IDEMPOTENCY,
    CONFIG_SCOPE_RATES,
    CONFIG_SCOPE_RESULT,
    CONFIG_SCOPE_LOG,
    CONFIG_SCOPE_AUDIT,
    CONFIG_SCOPE_METRICS,
    CONFIG_SCOPE_LIMITS,
    CONFIG_SCOPE_TIMEOUTS,
    CONFIG_SCOPE_SERVER,
    CONFIG_SCOPE_RESTART,
    CONFIG_SCOPE_CREDENTIALS,
    CONFIG_SCOPE_IDP,
    CONFIG_SCOPE_SERVER_TLS,
    CONFIG_SCOPE_GRADE,
    CONFIG_SCOPE_OWN_SCAN,
    CONFIG_SCOPE_EXPOSE,
    CONFIG_SCOPE_PROFILE,
    CONFIG_SCOPE_SANDBOX,
    CONFIG_SCOPE_A2A,
    CONFIG_SCOPE_AGENT,
    CONFIG_SCOPE_VERIFY,
    CONFIG_SCOPE_AGENT_EXPOSE,
    CONFIG_SCOPE_AUTH,
    CONFIG_SCOPE_ISSUER,
    CONFIG_SCOPE_INTROSPECTION,
    CONFIG_SCOPE_ISSUER_TLS,
    CONFIG_SCOPE_LOGIN,
    CONFIG_SCOPE_PROXY,
    CONFIG_SCOPE_COUNT
} config_scope;

typedef enum config_type {
    CONFIG_TYPE_TEXT,
    CONFIG_TYPE_BOOL,
    CONFIG_TYPE_INVERSE,
    CONFIG_TYPE_COUNT,
    CONFIG_TYPE_SIZE,
    CONFIG_TYPE_DURATION,
    CONFIG_TYPE_PATIENCE,
    CONFIG_TYPE_CHOICE,
    CONFIG_TYPE_LIST,
    CONFIG_TYPE_HOSTLIST,
    CONFIG_TYPE_LISTEN,
    CONFIG_TYPE_MAP,
    CONFIG_TYPE_SECTION,
    CONFIG_TYPE_NAMED,
    CONFIG_TYPE_SERVERS,
    CONFIG_TYPE_AGENTS,
    CONFIG_TYPE_RULES,
    CONFIG_TYPE_TEXTS,
    CONFIG_TYPE_TESTS,
    CONFIG_TYPE_TOLERATED,
} config_type;

typedef struct config_key {
    config_scope scope;
    config_type type;
    bay_str name;
    size_t offset; /* of the field in the scope's struct */
    const char *extra;
    bay_str fallback;
    uint64_t min;
    uint64_t max;
    const char *doc;
} config_key;

typedef struct config_scope_row {
    const char *title; /* as SECTION rows name it */
    const char *path;  /* as a person names it */
    size_t size;       /* of its struct */
} config_scope_row;

/* What NAMED makes: each struct begins so. */
typedef struct config_row {
    bay_str name;
    uint32_t line;
} config_row;
/* The field of such a key, and of the number behind it. */
typedef struct config_rows {
    const void *at;
    size_t count;
} config_rows;

extern const config_key config_keys[];
extern const size_t config_key_count;
extern const config_scope_row config_scopes[CONFIG_SCOPE_COUNT];

const config_key *config_key_find(config_scope scope, bay_str name); /* NULL when unknown */
/* The key of `scope` that `name` was probably meant to be, or NULL. */
const config_key *config_key_nearest(config_scope scope, bay_str name);
config_scope config_key_section(const config_key *key); /* of a SECTION, SERVERS … row */
/* The index of `word` among "a|b|c", or -1; and the word of an index. */
int config_choice_find(const char *choices, bay_str word);
bay_str config_choice_at(const char *choices, size_t index); /* empty past the end */

/* ---- the tree -------------------------------------------------------------------------------- */

typedef enum config_kind {
    CONFIG_NODE_NULL,
    CONFIG_NODE_SCALAR,
    CONFIG_NODE_LIST,
    CONFIG_NODE_MAP,
} config_kind;

typedef struct config_node {
    config_kind kind;
    uint32_t line;  /* of the key when it has one */
    bool is_quoted; /* a scalar that is a text whatever it looks like */
    bay_str key;
    bay_str text;              /* of a scalar; empty otherwise */
    struct config_node *first; /* of a list or map, in the order of the file */
    struct config_node *last;
    struct config_node *next;
    size_t count;
} config_node;

enum { CONFIG_NODES = 256 * 1024 };

typedef struct config_loader {
    config_report *report;
    config_lookup lookup;
    void *context;
    config_pool tree; /* freed after loading */
    config_pool kept; /* becomes the config's */
    size_t nodes;
    char path[256]; /* of the key at hand: mcpServers.weather.args */
    size_t path_len;
    bool is_host_file; /* nothing but a desktop host's mcpServers and its own affairs */
    bool is_left_out;  /* inside a disabled server: an unset variable is only a warning */
    bool is_served;    /* a gateway will serve it: what it names on this machine is looked for */
    struct config_secret *secrets;
    size_t secret_count;
    bay_err err; /* what stops loading at once: BAY_ERR_NOMEM */
} config_loader;

/* NULL after saying why, or with loader->err set. */
config_node *config_node_new(config_loader *loader, config_kind kind, uint32_t line);
void config_node_add(config_node *parent, config_node *child);
/* NULL: said in the report, or loader->err. */
config_node *config_yaml_parse(config_loader *loader, bay_str text);
config_node *config_json_parse(config_loader *loader, bay_str text);

/* ---- reports --------------------------------------------------------------------------------- */

void config_error(config_loader *loader, uint32_t line, const char *format, ...) BAY_PRINTF(3, 4);
void config_warn(config_loader *loader, uint32_t line, const char *format, ...) BAY_PRINTF(3, 4);
void config_report_init(config_report *self, bay_str name);
/* Room for a name from the file in a message: cut, control bytes replaced. */
typedef struct config_quoted {
    char text[CONFIG_NAME_BYTES + 8];
} config_quoted;
config_quoted config_quote(bay_str name);

/* ---- secrets from outside ----------------------------------------------------------------------- */

enum {
    CONFIG_SECRET_BYTES = 64 * 1024, /* of one */
    CONFIG_SECRET_MS = 10000,        /* of its program */
    CONFIG_SECRETS = 1024,           /* different ones of one file */
};

/* One that was read, so that each is read once for a file; in loader->kept. */
typedef struct config_secret {
    struct config_secret *next;
    bay_str source;
    bay_str value;
} config_secret;

/* What `${SOURCE}` stands for, where SOURCE is "file:PATH" or "exec:PROGRAM ARGUMENT …". False after
 * saying why. */
bool config_secret_read(config_loader *loader, uint32_t line, bay_str source, bay_str *out);

/* ---- values ---------------------------------------------------------------------------------- */

/* The text with its ${NAME}s replaced, in loader->kept; false after saying why. */
bool config_expand(config_loader *loader, const config_node *node, bay_str *out);

/* Reads the text of a scalar row. BAY_ERR_SYNTAX: not of the type; BAY_ERR_RANGE: outside min..max.
 * out_is_bare (may be NULL): a number without a unit. */
bay_err config_value_parse(const config_key *key, bay_str text, uint64_t *out,
                           bool *out_is_bare) BAY_MUST_CHECK;
/* Puts a value that config_value_parse gave into the field. */
void config_value_store(const config_key *key, void *base, uint64_t value);
/* What the row takes: `a size from 1K to 1G, such as 512K or 16M`. */
void config_value_describe(const config_key *key, buf *out);
void config_write_size(buf *out, uint64_t bytes);
void config_write_duration(buf *out, uint64_t milliseconds);

/* ---- checks across keys ---------------------------------------------------------------------- */

/* `is_whole`: each key was read; else only what one key alone is wrong about is told, since others
 * have their defaults. */
void config_check_top(config_loader *loader, const config_node *node, const config *self,
                      bool is_whole);
void config_check_server(config_loader *loader, const config_node *node, config_server *server,
                         bool is_whole);
/* files.c: what is named and is not there. Nothing unless loader->is_served. */
void config_check_top_files(config_loader *loader, const config_node *node, const config *self);
void config_check_server_files(config_loader *loader, const config_node *node,
                               const config_server *server);
void config_check_agent_files(config_loader *loader, const config_node *node,
                              const config_agent *agent);
/* The transport a word of the `type` row stands for. */
config_transport config_transport_of(unsigned word);
/* Makes a server's name out of its key, in place; says so when they differ. */
void config_fit_name(config_loader *loader, const config_node *node, char *name);
void config_check_names(config_loader *loader, const config *self);
void config_check_profiles(config_loader *loader, const config *self);
/* auth.c: once the section is read; and once all of the file is. */
void config_check_auth(config_loader *loader, const config_node *node, const config_auth *auth);
void config_check_access(config_loader *loader, const config_node *node, const config *self);
/* What servers and agents that get a token for each caller need of the rest. */
void config_check_callers(config_loader *loader, const config *self);
/* Also of what a file alone can be wrong about. */
/* A list of rules of net/address. */
void config_check_rules(config_loader *loader, uint32_t line, const char *section, const char *key,
                        config_list list);
/* `section` of the server or agent at the path, which is reached by `url` ("": by none) with
 * `headers`. */
void config_check_credentials(config_loader *loader, const config_node *node, bay_str url,
                              config_map headers, const config_credentials *credentials);
void config_check_agent(config_loader *loader, const config_node *node, config_agent *agent);
void config_check_agents(config_loader *loader, const config_node *node, const config *self);

/* ---- what the files of the loader share ------------------------------------------------------ */

uint32_t config_line_of(const config_node *map, const char *name);
/* The member of a map; NULL: there is none, or it is no map. */
const config_node *config_member(const config_node *map, const char *name);
bool config_is_name(bay_str name);
/* False after saying why `pair` cannot be a header field of requests. */
bool config_check_header(config_loader *loader, uint32_t line, const config_pair *pair);
size_t config_path_enter(config_loader *loader, bay_str name);
void config_path_leave(config_loader *loader, size_t before);
void config_set_defaults(config_scope scope, void *base);
bool config_check_twice(config_loader *loader, const config_node *node);
void config_apply_map(config_loader *loader, config_scope scope, const config_node *node,
                      void *base);
/* `count` + `extra` items of `size` bytes in loader->kept, zeroed. NULL: loader->err. */
void *config_keep_array(config_loader *loader, size_t count, size_t size);
/* agents.c: reads `agents`, and puts the servers that stand for their skills behind the
 * others. */
void config_apply_agents(config_loader *loader, const config_node *node, config *self);

void config_apply_list(config_loader *loader, const config_key *key, const config_node *node,
                       config_list *field);
/* policy.c */
void config_apply_tests(config_loader *loader, const config_key *key, const config_node *node,
                        config_tests *field);
void config_apply_rules(config_loader *loader, const config_key *key, const config_node *node,
                        config_rules *field);
/* After all else: makes self->rules and self->tools. */
void config_check_policy(config_loader *loader, const config_node *root, config *self);

typedef struct config_object {
    config public;
    config_pool pool;
    atomic_uint references;
} config_object;

#endif
