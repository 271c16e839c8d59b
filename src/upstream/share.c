#include "upstream/share.h"

#include "base/str.h"

/* Lists and completions ask nobody; a task of the session revisions outlives its call, so it lives
 * in the session that is always there. */
static bool is_for_all(const mcp_call_spec *spec)
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
    return str_starts(spec->method, STR("tasks/")) ||
           !json_is(json_get(spec->params, STR("task")), JSON_MISSING);
}

/* A session that one caller's credential opened is his: not even lists go through another's. */
static share_key key_of_caller(const share_server *server, const mcp_call_spec *spec,
                               const upstream_affinity *affinity)
{
    bool has_roots = (affinity->inputs & MCP_INPUT_ROOTS) != 0;
    bool is_single = server->share == CONFIG_SHARE_SESSION && affinity->identity.len > 0;
    if (!is_single && (affinity->inputs == 0 || is_for_all(spec))) {
        return (share_key){SHARE_SHARED, MCP_INPUT_EVERYTHING, false, true};
    }
    bool is_shared = is_single || (server->ties && !(has_roots && affinity->is_stateless));
    return (share_key){is_shared ? SHARE_SHARED : SHARE_EXCLUSIVE, affinity->inputs,
                       is_single || has_roots, true};
}

share_key upstream_share_key(const share_server *server, const mcp_call_spec *spec,
                             const upstream_affinity *affinity)
{
    share_key shared_by_all = {.kind = SHARE_MAIN, .inputs = MCP_INPUT_EVERYTHING};
    bool is_modern = server->revision != NULL && server->revision->era == MCP_MODERN;
    /* until it is known how the server is spoken to, everything waits for the one link */
    if (server->revision == NULL || is_modern) {
        return shared_by_all;
    }
    if (server->are_callers && !affinity->is_own) {
        return key_of_caller(server, spec, affinity);
    }
    if (server->share == CONFIG_SHARE_ALWAYS) {
        return shared_by_all;
    }
    if (server->share == CONFIG_SHARE_SESSION && affinity->identity.len > 0) {
        return (share_key){SHARE_SHARED, affinity->inputs, true, false};
    }
    if (affinity->inputs == 0 || is_for_all(spec)) {
        return shared_by_all;
    }
    /* roots are told once and kept: whose they are matters beyond the call */
    bool has_roots = (affinity->inputs & MCP_INPUT_ROOTS) != 0;
    bool is_shared = server->ties && !(has_roots && affinity->is_stateless);
    return (share_key){is_shared ? SHARE_SHARED : SHARE_EXCLUSIVE, affinity->inputs, has_roots,
                       false};
}
