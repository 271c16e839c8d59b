/* The configuration of the gateway: read from YAML or JSON once, checked whole, then never changed.
 * A reload loads a second object and compares. The keys stand in keys.def, which also makes
 * docs/config.md and docs/config.schema.json.
 *
 * Threads: a loaded config is immutable and may be read from any thread that holds a reference; the
 * count is atomic. Every string ends in a NUL that its length does not count and holds no other.
 * Secrets (values of env and headers, and whatever came from the environment) live only in the
 * object, which wipes its memory at the end; no message of the report ever quotes a value. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "base/buf.h"
#include "base/log.h"
#include "mcp/protocol.h"
#include "patchbay/types.h"
#include "policy/limits.h"
#include "policy/rules.h"
#include "policy/scan.h"
#include "policy/tools.h"

enum {
    CONFIG_FILE_BYTES = 4 * 1024 * 1024,
    CONFIG_DEPTH = 32,
    CONFIG_ADDRESSES = 16, /* listened on */
    CONFIG_ADMIN_ADDRESSES = 4,
    CONFIG_SERVERS = 1024,
    CONFIG_PROFILES = 256,
    CONFIG_AGENTS = 256,
    CONFIG_ISSUERS = 32, /* of one `auth` */
    CONFIG_GROUPS = 256,
    CONFIG_ITEMS = 4096, /* of one list or map */
    CONFIG_NAME_BYTES = 64,
    CONFIG_SHOWN_BYTES = 256, /* of a name that is given to a tool or prompt */
    CONFIG_ERRORS = 20,       /* kept in a report, and as many warnings; the others are counted */
};

typedef struct config_list {
    const bay_str *at;
    size_t count;
} config_list;

typedef struct config_pair {
    bay_str name;
    bay_str value;
} config_pair;

typedef struct config_map { /* in the order of the file */
    const config_pair *at;
    size_t count;
} config_map;

typedef enum config_transport {
    CONFIG_TRANSPORT_AUTO, /* a url: Streamable HTTP, then HTTP+SSE if the server has only that */
    CONFIG_TRANSPORT_STDIO,
    CONFIG_TRANSPORT_HTTP,
    CONFIG_TRANSPORT_SSE,
} config_transport;

/* Which protocol is spoken to a server; from FIRST_REVISION on: that mcp_revision_id and no other.
 */
typedef enum config_protocol {
    CONFIG_PROTOCOL_AUTO,
    CONFIG_PROTOCOL_LEGACY,
    CONFIG_PROTOCOL_MODERN,
    CONFIG_PROTOCOL_FIRST_REVISION,
} config_protocol;

typedef enum config_log_format { CONFIG_LOG_TEXT, CONFIG_LOG_JSON } config_log_format;

typedef struct config_admin {
    config_list listen; /* unix:/FOLDER/NAME each; `at` NULL: where the program listens by itself */
} config_admin;

/* What looks at definitions; its rules are read by scan_rule_set_add. */
typedef enum config_scan_mode {
    CONFIG_SCAN_OFF,
    CONFIG_SCAN_WARN,
    CONFIG_SCAN_HOLD
} config_scan_mode;

/* What becomes of results that look like an attack on the model that reads them. */
typedef enum config_scan_results {
    CONFIG_RESULTS_AUTO, /* of a server or agent: as scan.results */
    CONFIG_RESULTS_OFF,
    CONFIG_RESULTS_MARK,
} config_scan_results;

typedef struct config_scan {
    config_map rules; /* id, rule */
    config_scan_mode definitions;
    config_scan_results results; /* never AUTO */
} config_scan;

/* Of one server or agent. */
typedef struct config_own_scan {
    config_scan_results results;
} config_own_scan;

/* What becomes of definitions that are not as the lock has them. */
typedef enum config_pin {
    CONFIG_PIN_AUTO, /* of a server or agent: as pins.mode */
    CONFIG_PIN_OFF,
    CONFIG_PIN_RECORD,
    CONFIG_PIN_WARN,
    CONFIG_PIN_HOLD,
} config_pin;

typedef struct config_pins {
    bay_str file;
    config_pin mode; /* never AUTO */
    uint32_t line;   /* 0: the defaults */
} config_pins;

/* Contracts that the gateway runs by itself, and what becomes of a server whose contracts fail. */
typedef enum config_contracts_mode {
    CONFIG_CONTRACTS_OFF,
    CONFIG_CONTRACTS_WARN,
    CONFIG_CONTRACTS_HOLD
} config_contracts_mode;

typedef struct config_contracts {
    bay_str path; /* a folder or a file */
    config_contracts_mode mode;
    uint32_t every_ms; /* 0: only when something changes */
} config_contracts;

/* What a server must have to be shown; the order of "none", then E to A. */
typedef struct config_grade {
    unsigned min;
} config_grade;

typedef struct config_tls {
    bay_str certificate;
    bay_str key;
    bay_str client_ca;
    bool require_client_certificate;
    uint32_t line; /* 0: there is no TLS */
} config_tls;

typedef enum config_access {
    CONFIG_ACCESS_AUTO,
    CONFIG_ACCESS_ON,
    CONFIG_ACCESS_OFF
} config_access;

typedef struct config_log {
    log_level level;
    config_log_format format;
    config_access access; /* a line for each call */
    bay_str access_file;  /* "": with the others, to stderr */
} config_log;

typedef enum config_on_failure { CONFIG_FAILURE_REFUSE, CONFIG_FAILURE_CONTINUE } config_on_failure;

/* Counters and histograms of calls. */
typedef struct config_metrics {
    bool is_enabled;
    bay_str listen; /* "": on the admin socket alone */
} config_metrics;

/* The audit: a record of each call in a file. */
typedef struct config_audit {
    bay_str file;       /* "": there is none */
    unsigned arguments; /* arguments_form */
    size_t part_bytes;
    uint32_t keep_hours; /* 0: for ever */
    config_on_failure on_failure;
} config_audit;

typedef struct config_limits {
    size_t head_bytes;
    uint32_t head_fields;
    size_t body_bytes;
    size_t held_bytes; /* 0: no bound */
    size_t reply_bytes;
    uint32_t connections;
    uint32_t connections_per_ip; /* 0: no bound of its own */
    uint32_t head_timeout_ms;
    uint32_t body_timeout_ms;
    uint32_t body_total_ms;
    uint32_t idle_timeout_ms;
    uint32_t write_timeout_ms;
    size_t stream_bytes;
    uint32_t stream_idle_ms;  /* 0: no bound */
    uint32_t stream_total_ms; /* 0: no bound */
    uint32_t sessions;
    uint32_t session_idle_ms;
    uint32_t requests_per_session;
    uint32_t subscriptions;
    uint32_t event_log_events;
    size_t event_log_bytes;
    size_t message_bytes;
    uint32_t json_depth;
    uint32_t json_values;
    uint32_t page_size;
    uint32_t suspended_calls;
    uint32_t origin_connections;
    uint32_t failed_credentials; /* of one address, a minute; 0: no bound */
    uint32_t tokens;
    uint32_t proofs;
} config_limits;

typedef struct config_timeouts {
    uint32_t call_ms;
    uint32_t call_total_ms;
    uint32_t connect_ms;
    uint32_t probe_ms;
    uint32_t start_ms; /* 0: by whether the server has been ready before */
    uint32_t list_ms;
    uint32_t settle_ms;     /* 0: by what is waited for: config_settle_ms */
    uint32_t keep_alive_ms; /* 0: none */
    uint32_t drain_ms;
    uint32_t terminate_ms;
    uint32_t kill_ms;
    uint32_t answer_ms;
} config_timeouts;

typedef struct config_restart {
    uint32_t min_delay_ms;
    uint32_t max_delay_ms;
    uint32_t attempts; /* crashes within the window that open the circuit; 0: it never opens */
    uint32_t window_ms;
    uint32_t cool_off_ms;
} config_restart;

typedef enum config_start { CONFIG_START_EAGER, CONFIG_START_LAZY } config_start;

/* Who shares a session with a server of the session revisions. */
typedef enum config_share {
    CONFIG_SHARE_AUTO,
    CONFIG_SHARE_ALWAYS,
    CONFIG_SHARE_SESSION
} config_share;

/* What of a server is shown: globs over its own names and URIs; `at` NULL: all. */
typedef struct config_expose {
    config_list tools;
    config_list resources;
    config_list prompts;
    config_list hide; /* of whatever kind; wins */
} config_expose;

typedef enum config_grant {
    CONFIG_GRANT_CLIENT,
    CONFIG_GRANT_WORKLOAD,
    CONFIG_GRANT_EXCHANGE,
    CONFIG_GRANT_ID_JAG,
    CONFIG_GRANT_USER,
} config_grant;

/* Who the gateway is at the identity provider. */
typedef struct config_idp {
    bay_str issuer; /* "": there is none */
    bay_str client_id;
    bay_str client_secret;
    bay_str key; /* as config_credentials.key */
} config_idp;

/* As whom lists are read where each caller has credentials of his own. */
typedef enum config_lists { CONFIG_LISTS_CLIENT, CONFIG_LISTS_NONE } config_lists;

/* As whom the gateway calls: an OAuth client. Nothing of it given: it has no such credentials. */
typedef struct config_credentials {
    unsigned grant;    /* config_grant */
    bay_str client_id; /* "": none */
    bay_str client_secret;
    bay_str key; /* the text of a private key, PEM or JWK; "": none */
    bay_str key_id;
    bay_str token_file; /* of the platform's token */
    bay_str issuer;     /* "": the server's metadata names it */
    config_idp idp;
    unsigned lists; /* config_lists */
    bay_str scope;
    config_map parameters;
    bool dpop;
    config_list allow; /* rules of net/address: where metadata may lead as well */
} config_credentials;

typedef struct config_server_tls {
    bay_str ca;
    bay_str certificate;
    bay_str key;
} config_server_tls;

/* The order of sandbox_bubblewrap (net/sandbox.h). */
typedef struct config_sandbox {
    bool is_enabled; /* the section is there and does not say otherwise */
    config_list fs;  /* PATH, PATH:ro, PATH:rw; first "none": without the defaults */
    bool net;
    bool unix_sockets;
    bool attributes;
    size_t memory_bytes;
    uint32_t cpus;
    uint32_t cpu_time_ms;
    uint32_t processes;
    uint32_t files;
    bay_str user;
    unsigned bubblewrap;
    bool best_effort;
} config_sandbox;

typedef struct config_server {
    bay_str name;
    uint32_t line;
    bay_str command; /* empty: it is reached by `url` */
    config_list args;
    config_map env; /* added to the inherited environment */
    bay_str cwd;    /* empty: inherited */
    bay_str url;
    bay_str agent; /* of the agent whose skills it stands for: made by the loader, in process */
    config_map headers;
    config_transport transport; /* AUTO only with a url */
    config_protocol protocol;
    bool is_disabled;
    uint32_t timeout_ms;   /* of a call; 0: timeouts.call */
    uint32_t concurrency;  /* calls at once; 0: no bound */
    uint32_t idle_stop_ms; /* 0: never stopped for idling */
    config_start start;
    config_share share;
    uint32_t processes; /* besides the one that all share */
    uint32_t sessions;
    config_restart restart;
    config_credentials credentials;
    config_server_tls tls;
    config_sandbox sandbox;
    /* What only the catalog reads: a server stays as it is where nothing else differs. */
    config_expose expose;
    config_list include_tools; /* as desktop hosts write it; `at` NULL: all */
    config_list exclude_tools;
    config_map rename;   /* tools and prompts: own name, name shown */
    config_map describe; /* tools and prompts: own name, description */
    config_pin pin;
    config_own_scan scan;
    config_grade grade;
    bool trust_hints;    /* its readOnlyHint and idempotentHint decide whether a call is retried */
    uint32_t refresh_ms; /* of lists whose changes nobody tells; 0: never */
} config_server;

typedef struct config_introspection {
    bay_str client_id; /* "": no token is asked about */
    bay_str client_secret;
    bool always;
} config_introspection;

typedef struct config_issuer_tls {
    bay_str ca;
} config_issuer_tls;

typedef enum config_token_type { CONFIG_TOKEN_ANY, CONFIG_TOKEN_AT_JWT } config_token_type;

/* An authorization server whose tokens are taken. */
typedef struct config_issuer {
    bay_str name;
    uint32_t line;
    bay_str url;
    bay_str keys; /* file, or URL; "": as its metadata says */
    config_list audience;
    config_list clients;
    config_list algorithms;
    unsigned type; /* config_token_type */
    uint32_t skew_ms;
    uint32_t lifetime_ms;
    config_introspection introspection;
    bay_str header;
    config_list allow;
    config_issuer_tls tls;
} config_issuer;

/* How people log in with a browser, to the gateway's own pages. */
typedef struct config_login {
    bay_str issuer; /* one of `issuers`, by its name; "": nobody logs in */
    bay_str client_id;
    bay_str client_secret;
    bay_str scope;
    uint32_t session_ms;
} config_login;

/* The gateway as an authorization server in front of the provider of `login`. */
typedef struct config_proxy {
    bool is_on;
    config_list scopes;
    config_list schemes;
    uint32_t access_ms;
    uint32_t refresh_ms;
} config_proxy;

typedef enum config_dpop { CONFIG_DPOP_OFF, CONFIG_DPOP_ACCEPT, CONFIG_DPOP_REQUIRE } config_dpop;

/* Who comes in. Nothing of it given: everybody. */
typedef struct config_auth {
    bool none; /* everybody, though the file says otherwise for all others */
    const config_issuer *issuers;
    size_t issuer_count;
    bool api_keys;
    bool certificates;
    config_list scopes;
    config_map implies;
    unsigned dpop; /* config_dpop */
    bool dpop_nonces;
    config_login login; /* of the file's `auth` alone, like the next one */
    config_proxy proxy;
} config_auth;

typedef enum config_tool_mode { CONFIG_TOOLS_ALL, CONFIG_TOOLS_SEARCH } config_tool_mode;

/* A named part of the catalog, at /mcp/@NAME. */
typedef struct config_profile {
    bay_str name;
    uint32_t line;
    config_list servers; /* `at` NULL: all */
    config_list tools;   /* globs over names as /mcp shows them; `at` NULL: all */
    config_list hide;    /* globs over names and URIs of whatever kind; wins */
    config_tool_mode tool_mode;
    config_auth auth; /* in place of the file's, where something of it is given */
} config_profile;

/* A condition of a rule or group: {KEY: value or values}, or {KEY: {OPERATOR: value or values}}. */
typedef struct config_test {
    uint32_t line;
    bay_str key; /* a JSON pointer, or the name of a header field */
    bay_str op;  /* "": one of the values */
    config_list values;
} config_test;

typedef struct config_tests {
    const config_test *at;
    size_t count;
} config_tests;

typedef struct config_group {
    bay_str name;
    uint32_t line;
    config_list subject;
    config_tests claims;
} config_group;

typedef struct config_groups {
    const config_group *at;
    size_t count;
} config_groups;

typedef struct config_who {
    config_list subject;
    config_list issuer;
    config_list client;
    config_list scopes;
    config_list group;
    config_tests claims;
    config_list certificate;
    config_list address;
    config_tests header;
} config_who;

typedef struct config_rule {
    uint32_t line;
    config_list allow; /* `at` of exactly one of these is not NULL */
    config_list deny;
    config_list approve;
    bay_str by;
    config_who who;
    config_list server;
    config_list method;
    config_tests args;
} config_rule;

typedef struct config_rules {
    const config_rule *at;
    size_t count;
} config_rules;

typedef enum config_default { CONFIG_DENY, CONFIG_ALLOW } config_default;
typedef enum config_locked { CONFIG_LOCKED_SHOW, CONFIG_LOCKED_HIDE } config_locked;

/* What of a tool's result is passed on. */
typedef struct config_result {
    size_t bytes;
} config_result;

/* How tools are called whose shown names match a pattern. */
typedef struct config_tool {
    bay_str name; /* the pattern */
    uint32_t line;
    policy_idempotency idempotency;
    bay_str rate;
    bay_str total;
    uint32_t cost;
    config_result result;
} config_tool;

typedef struct config_tools {
    const config_tool *at;
    size_t count;
} config_tools;

typedef struct config_rates {
    bay_str address;
    bay_str principal;
    bay_str tool;
    bay_str server;
} config_rates;

typedef struct config_policy {
    config_default fallback;
    config_locked locked;
    config_rates rates;
    config_rules rules;
    config_tools tools;
} config_policy;

typedef enum config_agent_version {
    CONFIG_AGENT_VERSION_AUTO, /* then a2a_version, one higher */
} config_agent_version;

typedef struct config_agent_verify {
    bay_str keys; /* file with a JWK set; empty: none */
    config_list jku;
    bool is_required;
} config_agent_verify;

typedef struct config_agent_expose {
    bool tools;         /* its skills are tools of the catalog */
    config_list skills; /* globs over ids; `at` NULL: all */
    config_list hide;   /* wins */
} config_agent_expose;

/* An agent at /a2a/NAME: one that is elsewhere (url or card), or one made of tools. */
typedef struct config_agent {
    bay_str name;
    uint32_t line;
    bay_str url;       /* its base: the card lies below it */
    bay_str card;      /* the card itself */
    config_list tools; /* globs over the names of /mcp; `at` NULL: it is elsewhere */
    bay_str title;     /* of an agent made of tools */
    bay_str description;
    config_map headers;
    unsigned version;  /* config_agent_version */
    unsigned binding;  /* 0: auto; then a2a_binding, one higher */
    config_list allow; /* rules of net/address: where its card may lead as well */
    config_agent_verify verify;
    config_agent_expose expose;
    config_credentials credentials;
    config_server_tls tls;
    config_pin pin;
    config_own_scan scan;
    uint32_t timeout_ms;
    uint32_t stream_idle_ms;
    uint32_t refresh_ms;
    uint32_t failures; /* within the window that open the circuit; 0: never */
    uint32_t window_ms;
    uint32_t cool_off_ms;
    bool is_disabled;
} config_agent;

/* The A2A side of the gateway. */
typedef struct config_a2a {
    bay_str public_url; /* empty: of the first address */
    bay_str key;        /* file with what signs the cards; empty: they are not signed */
    bool hybrid;        /* the card for who names no version */
    bool lenient;
    uint32_t card_max_age_ms;
    config_list webhooks; /* rules of net/address: where webhooks may be as well */
    bool relay_webhooks;
} config_a2a;

typedef struct config {
    config_list listen;   /* at least one host:port */
    uint32_t listen_line; /* 0: the default */
    bool is_open;         /* anybody may call, from wherever the addresses are reached */
    uint32_t workers;     /* 0: one per core */
    config_list keys;     /* what seals; the first seals, all open */
    bay_str store;        /* empty: nothing outlives the process */
    bay_str public_url;   /* "": by the addresses listened on */
    bay_str separator;
    bay_str conversation; /* a key of `_meta`; empty: none counts */
    bool bare_names;
    config_admin admin;
    config_scan scan;
    config_pins pins;
    config_contracts contracts;
    config_map silence; /* rule and item, reason */
    config_tls tls;
    config_list allowed_hosts;
    config_list allowed_origins;
    config_list trusted_proxies;
    config_log log;
    config_audit audit;
    config_metrics metrics;
    config_limits limits;
    config_timeouts timeouts;
    const config_server *servers; /* in the order of the file, disabled ones included */
    size_t server_count;
    config_tool_mode tool_mode; /* of /mcp */
    const config_profile *profiles;
    size_t profile_count;
    config_auth auth;
    config_a2a a2a;
    const config_agent *agents; /* in the order of the file, disabled ones included */
    size_t agent_count;
    config_groups groups;
    config_policy policy;
    policy_rules *rules; /* the same, ready to decide; NULL: there are no rules */
    policy_tools *tools; /* and policy.tools; NULL: there are none */
    policy_rates rates;  /* and policy.rates */
    bool has_rates;      /* in one of them */
} config;

/* What loading found. `line` is 0 where no line is to blame. */
typedef struct config_message {
    uint32_t line;
    bool is_warning;
    char text[300];
} config_message;

typedef struct config_report {
    char name[256];                             /* of the file, for messages */
    config_message messages[2 * CONFIG_ERRORS]; /* by line */
    size_t count;
    size_t errors; /* also those that were not kept */
    size_t warnings;
} config_report;

/* Appends one line per message, by line of the file: `patchbay.yaml:12: unknown key "lisen": did
 * you mean "listen"?`; warnings say so; a last line counts what was not kept. */
void config_report_write(const config_report *self, buf *out);

/* False when `name` is not set. The text is borrowed until the next call. */
typedef bool (*config_lookup)(void *context, bay_str name, bay_str *out);

/* Appends `text` with its ${NAME}s replaced as in a file. BAY_ERR_SYNTAX (why is in `diag`),
 * BAY_ERR_NOMEM, BAY_ERR_LIMIT. The caller wipes `out`. */
bay_err config_expand_text(bay_str text, config_lookup lookup, void *context, buf *out,
                           bay_diag *diag) BAY_MUST_CHECK;

/* The environment of the process, as a lookup. */
bool config_lookup_process(void *context, bay_str name, bay_str *out);

/* Loads a text: JSON when its first byte that is no white space is '{', else YAML. `name` stands in
 * the messages. `lookup` resolves ${NAME}; NULL: nothing is set. `report` is overwritten; it may
 * hold warnings on success.
 * Owns: the caller gets one reference. Errors: BAY_ERR_SYNTAX: the report says what, all of it;
 * BAY_ERR_LIMIT: longer than CONFIG_FILE_BYTES (also in the report); BAY_ERR_NOMEM. Threads:
 * any. */
bay_err config_load_text(bay_str text, bay_str name, config_lookup lookup, void *context,
                         const config **out, config_report *report) BAY_MUST_CHECK;

/* The same for a file, or a pipe, with the environment of the process. `is_served`: a gateway will
 * listen for it, so that what it names on this machine is looked for as well: certificates, keys,
 * folders, programs.
 * Errors: also BAY_ERR_NOT_FOUND, BAY_ERR_IO (both in the report). */
bay_err config_load_file(const char *path, bool is_served, const config **out,
                         config_report *report) BAY_MUST_CHECK;
/* Adds to the report of a loaded configuration what only its gateway can find. */
void config_report_error(config_report *self, uint32_t line, const char *text);

/* The rules of scan.rules, checked when the configuration was loaded. BAY_ERR_NOMEM. */
bay_err config_scan_rules(const config *self, scan_rule_set **out) BAY_MUST_CHECK;

const config *config_ref(const config *self);
void config_free(const config *self); /* gives one reference back; NULL is fine */

/* The server of that name, or NULL. */
const config_server *config_server_find(const config *self, bay_str name);

/* The profile of that name, or NULL. */
const config_profile *config_profile_find(const config *self, bay_str name);

/* Is anything demanded of who comes in by it? */
bool config_auth_is_given(const config_auth *self);
bool config_equal_auth(const config_auth *a, const config_auth *b);
/* Is there anything in it? */
bool config_credentials_are_given(const config_credentials *self);
/* Somebody may bring a token: of the file's issuers, or of a profile's. */
bool config_auth_has_issuers(const config *self);
/* Each caller has a token of his own, for which his own is exchanged. */
bool config_credentials_exchange(const config_credentials *self);
/* Each caller has a token of his own: so obtained, or from the vault. */
bool config_credentials_are_callers(const config_credentials *self);

/* The agent of that name, or NULL. */
const config_agent *config_agent_find(const config *self, bay_str name);

/* True when nothing but the place in the file differs. As config_equal_server. */
bool config_equal_agent(const config_agent *a, const config_agent *b);
bool config_equal_a2a(const config_a2a *a, const config_a2a *b);

/* The least grade of a server, 'A' to 'E'; 0: none is asked for. */
char config_least_grade(const config_server *self);

/* True when nothing but the place in the file and what only the catalog reads differs: the upstream
 * may stay as it is. Time depends on where secrets differ: for objects of the same owner only. */
bool config_equal_server(const config_server *a, const config_server *b);

/* docs/config.md and docs/config.schema.json, from the table. Errors stick in `out`. */
void config_write_markdown(buf *out);
void config_write_schema(buf *out);

/* How long lists wait for servers that are starting; `is_program`: one of them is a program, which
 * may have to be fetched first (npx, uvx). */
enum { CONFIG_SETTLE_MS = 3000, CONFIG_SETTLE_PROGRAM_MS = 20000 };

static inline uint32_t config_settle_ms(const config *self, bool is_program)
{
    uint32_t own = self->timeouts.settle_ms;
    return own > 0 ? own : is_program ? CONFIG_SETTLE_PROGRAM_MS : CONFIG_SETTLE_MS;
}

#endif
