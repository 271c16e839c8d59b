#include "upstream/share.h"

#include "base/str.h"

/* Lists and completions ask nobody. */
static bool asks_nobody(const mcp_call_spec *spec)
{
    static const bay_str methods[] = {
        STR_INIT("tools/list"),
        STR_INIT("resources/list"),
        STR_INIT("resources/templates/list"),
        STR_INIT("prompts/list"),
        STR_INIT("completion/complete"),
        STR_INIT("ping"),
    };
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (str_eq(spec->method, methods[i])) {
            return true;
        }
    }
    return false;
}

/* A task of the session revisions outlives its call, so it lives in the session that is always
 * there. */
static bool is_task(const mcp_call_spec *spec)
{
    return str_starts(spec->method, STR("tasks/")) ||
           !json_is(json_get(spec->params, STR("task")), JSON_MISSING);
}

/* Which session it is, if all were opened by one credential. */
static share_key key_of(const share_server *server, const mcp_call_spec *spec,
                        const upstream_affinity *affinity)
{
    share_key shared_by_all = {.kind = SHARE_MAIN, .inputs = server->main_inputs};
    share_key own = {SHARE_SHARED, affinity->inputs, true, false};
    bool is_named = affinity->identity.len > 0;
    if (server->share == CONFIG_SHARE_ALWAYS) {
        return shared_by_all;
    }
    if (server->has_one_client && !server->are_callers &&
        (affinity->inputs == server->main_inputs || asks_nobody(spec) || is_task(spec))) {
        return shared_by_all;
    }
    if (server->share == CONFIG_SHARE_SESSION && is_named) {
        return own;
    }
    if (affinity->inputs == 0 || is_task(spec)) {
        return shared_by_all;
    }
    if (is_named && !affinity->is_stateless) {
        return own; /* its lists and completions, too: they may depend on what it did before */
    }
    if (asks_nobody(spec)) {
        return shared_by_all;
    }
    /* roots are told once and kept: whose they are matters beyond the call */
    bool has_roots = (affinity->inputs & MCP_INPUT_ROOTS) != 0;
    bool is_shared = server->ties && !(has_roots && affinity->is_stateless);
    return (share_key){is_shared ? SHARE_SHARED : SHARE_EXCLUSIVE, affinity->inputs, has_roots,
                       false};
}

share_key upstream_share_key(const share_server *server, const mcp_call_spec *spec,
                             const upstream_affinity *affinity)
{
    bool is_modern = server->revision != NULL && server->revision->era == MCP_MODERN;
    /* until it is known how the server is spoken to, everything waits for the one link */
    if (server->revision == NULL || is_modern) {
        return (share_key){.kind = SHARE_MAIN, .inputs = server->main_inputs};
    }
    share_key key = key_of(server, spec, affinity);
    if (server->are_callers && !affinity->is_own) {
        /* the main session is the gateway's: not even lists of a caller go through it */
        key.kind = key.kind == SHARE_MAIN ? SHARE_SHARED : key.kind;
        key.has_rights = true;
    }
    return key;
}
