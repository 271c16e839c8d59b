/* The table of keys as data, and the questions asked of it. */
#include "base/check.h"
#include "config/internal.h"
#include "policy/scan.h"

static const char config_transports[] =
    "auto|stdio|http|sse|local|streamable-http|streamableHttp|streamable_http";

/* The order of config_protocol, then of mcp_revision_id. */
static const char config_protocols[] = "auto|legacy|modern"
#define MCP_REVISION(symbol, text, era, batches, structured) "|" text
#include "mcp/revisions.def"
#undef MCP_REVISION
    ;

#define CONFIG_TRANSPORTS config_transports
#define CONFIG_PROTOCOLS config_protocols

#define CONFIG_STRUCT_TOP config
#define CONFIG_STRUCT_ADMIN config_admin
#define CONFIG_STRUCT_SCAN config_scan
#define CONFIG_STRUCT_PINS config_pins
#define CONFIG_STRUCT_CONTRACTS config_contracts
#define CONFIG_STRUCT_TLS config_tls
#define CONFIG_STRUCT_GROUP config_group
#define CONFIG_STRUCT_POLICY config_policy
#define CONFIG_STRUCT_RULE config_rule
#define CONFIG_STRUCT_WHO config_who
#define CONFIG_STRUCT_TOOL config_tool
#define CONFIG_STRUCT_IDEMPOTENCY policy_idempotency
#define CONFIG_STRUCT_RATES config_rates
#define CONFIG_STRUCT_RESULT config_result
#define CONFIG_STRUCT_LOG config_log
#define CONFIG_STRUCT_AUDIT config_audit
#define CONFIG_STRUCT_METRICS config_metrics
#define CONFIG_STRUCT_LIMITS config_limits
#define CONFIG_STRUCT_TIMEOUTS config_timeouts
#define CONFIG_STRUCT_SERVER config_server
#define CONFIG_STRUCT_RESTART config_restart
#define CONFIG_STRUCT_CREDENTIALS config_credentials
#define CONFIG_STRUCT_IDP config_idp
#define CONFIG_STRUCT_SERVER_TLS config_server_tls
#define CONFIG_STRUCT_GRADE config_grade
#define CONFIG_STRUCT_OWN_SCAN config_own_scan
#define CONFIG_STRUCT_EXPOSE config_expose
#define CONFIG_STRUCT_PROFILE config_profile
#define CONFIG_STRUCT_SANDBOX config_sandbox
#define CONFIG_STRUCT_A2A config_a2a
#define CONFIG_STRUCT_AGENT config_agent
#define CONFIG_STRUCT_VERIFY config_agent_verify
#define CONFIG_STRUCT_AGENT_EXPOSE config_agent_expose
#define CONFIG_STRUCT_AUTH config_auth
#define CONFIG_STRUCT_ISSUER config_issuer
#define CONFIG_STRUCT_INTROSPECTION config_introspection
#define CONFIG_STRUCT_ISSUER_TLS config_issuer_tls
#define CONFIG_STRUCT_LOGIN config_login
#define CONFIG_STRUCT_PROXY config_proxy

const config_key config_keys[] = {
#define CONFIG_KEY(scope, name, type, field, extra, fallback, min, max, doc)                       \
    {CONFIG_SCOPE_##scope,                                                                         \
     CONFIG_TYPE_##type,                                                                           \
     STR_INIT(name),                                                                               \
     offsetof(CONFIG_STRUCT_##scope, field),                                                       \
     extra,                                                                                        \
     STR_INIT(fallback),                                                                           \
     min,                                                                                          \
     max,                                                                                          \
     doc},
#define CONFIG_TOLERATED(scope, name, doc)                                                         \
    {CONFIG_SCOPE_##scope, CONFIG_TYPE_TOLERATED, STR_INIT(name), 0, "", STR_INIT(""), 0, 0, doc},
#include "config/keys.def"
};

const size_t config_key_count = sizeof(config_keys) / sizeof(config_keys[0]);

#define SCOPE(scope, path) [CONFIG_SCOPE_##scope] = {#scope, path, sizeof(CONFIG_STRUCT_##scope)}
const config_scope_row config_scopes[CONFIG_SCOPE_COUNT] = {
    SCOPE(TOP, ""),
    SCOPE(ADMIN, "admin"),
    SCOPE(SCAN, "scan"),
    SCOPE(PINS, "pins"),
    SCOPE(CONTRACTS, "contracts"),
    SCOPE(TLS, "tls"),
    SCOPE(GROUP, "groups.NAME"),
    SCOPE(POLICY, "policy"),
    SCOPE(RULE, "policy.rules.N"),
    SCOPE(WHO, "policy.rules.N.who"),
    SCOPE(TOOL, "policy.tools.PATTERN"),
    SCOPE(IDEMPOTENCY, "policy.tools.PATTERN.idempotency"),
    SCOPE(RATES, "policy.rates"),
    SCOPE(RESULT, "policy.tools.PATTERN.result"),
    SCOPE(LOG, "log"),
    SCOPE(AUDIT, "audit"),
    SCOPE(METRICS, "metrics"),
    SCOPE(LIMITS, "limits"),
    SCOPE(TIMEOUTS, "timeouts"),
    SCOPE(SERVER, "mcpServers.NAME"),
    SCOPE(RESTART, "mcpServers.NAME.restart"),
    SCOPE(CREDENTIALS, "mcpServers.NAME.credentials"),
    SCOPE(IDP, "mcpServers.NAME.credentials.idp"),
    SCOPE(SERVER_TLS, "mcpServers.NAME.tls"),
    SCOPE(GRADE, "mcpServers.NAME.grade"),
    SCOPE(OWN_SCAN, "mcpServers.NAME.scan"),
    SCOPE(EXPOSE, "mcpServers.NAME.expose"),
    SCOPE(PROFILE, "profiles.NAME"),
    SCOPE(SANDBOX, "mcpServers.NAME.sandbox"),
    SCOPE(A2A, "a2a"),
    SCOPE(AGENT, "agents.NAME"),
    SCOPE(VERIFY, "agents.NAME.verify"),
    SCOPE(AGENT_EXPOSE, "agents.NAME.expose"),
    SCOPE(AUTH, "auth"),
    SCOPE(ISSUER, "auth.issuers.NAME"),
    SCOPE(INTROSPECTION, "auth.issuers.NAME.introspection"),
    SCOPE(ISSUER_TLS, "auth.issuers.NAME.tls"),
    SCOPE(LOGIN, "auth.login"),
    SCOPE(PROXY, "auth.proxy"),
};
#undef SCOPE

const config_key *config_key_find(config_scope scope, bay_str name)
{
    for (size_t i = 0; i < config_key_count; i++) {
        if (config_keys[i].scope == scope && str_eq(config_keys[i].name, name)) {
            return &config_keys[i];
        }
    }
    return NULL;
}

static bool contains_nocase(bay_str text, bay_str part)
{
    for (size_t at = 0; at + part.len <= text.len; at++) {
        if (str_eq_nocase((bay_str){text.at + at, part.len}, part)) {
            return true;
        }
    }
    return false;
}

/* A slip of the keyboard, or a word with a part left out ("servers"), and nothing farther. */
const config_key *config_key_nearest(config_scope scope, bay_str name)
{
    const config_key *nearest = NULL;
    size_t allowed = name.len <= 4 ? 1 : name.len <= 8 ? 2 : 3;
    size_t least = allowed + 1;
    for (size_t i = 0; i < config_key_count; i++) {
        const config_key *key = &config_keys[i];
        if (key->scope != scope || key->type == CONFIG_TYPE_TOLERATED) {
            continue;
        }
        size_t apart =
            key->name.len > name.len ? key->name.len - name.len : name.len - key->name.len;
        size_t distance = apart > allowed ? apart : str_distance(key->name, name);
        if (name.len >= 4 && distance > allowed && contains_nocase(key->name, name)) {
            distance = allowed;
        }
        if (distance < least) {
            least = distance;
            nearest = key;
        }
    }
    return nearest;
}

config_scope config_key_section(const config_key *key)
{
    for (size_t i = 0; i < CONFIG_SCOPE_COUNT; i++) {
        if (str_eq(str_of(config_scopes[i].title), str_of(key->extra))) {
            return (config_scope)i;
        }
    }
    CHECK(key->type == CONFIG_TYPE_SERVERS);
    return CONFIG_SCOPE_SERVER;
}

bay_str config_choice_at(const char *choices, size_t index)
{
    bay_str rest = str_of(choices);
    for (size_t i = 0; rest.len > 0; i++) {
        size_t end = str_find(rest, '|');
        if (i == index) {
            return str_head(rest, end);
        }
        rest = str_from(rest, end + 1);
    }
    return (bay_str){NULL, 0};
}

int config_choice_find(const char *choices, bay_str word)
{
    for (size_t i = 0;; i++) {
        bay_str choice = config_choice_at(choices, i);
        if (choice.len == 0) {
            return -1;
        }
        if (str_eq(choice, word)) {
            return (int)i;
        }
    }
}
