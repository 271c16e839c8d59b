/* A guard in front of an agent: what it takes is declared in the card, and nothing else is. */
#include <stdio.h>

#include "sdk/agent_parts.h"
#include "sdk/guard_parts.h"

#include "base/err.h"
#include "base/str.h"

enum { NAME_BYTES = 32 };

/* Callers need one of the schemes; those of issuers with the scopes of everybody. */
static void declare(bay_agent *self, const char *name, const char *kind,
                    const char *const members[4], const char *scopes)
{
    if (sdk_agent_scheme_simple(self, "bay_agent_guard", name, kind, members) != NULL) {
        sdk_agent_requirement(self, &self->requirements, name, scopes);
    }
}

static void declare_issuer(bay_agent *self, const bay_guard *guard, size_t index)
{
    char name[NAME_BYTES];
    char url[OAUTH_URL_BYTES + 64];
    (void)snprintf(url, sizeof(url), "%.*s/.well-known/openid-configuration",
                   BAY_STR(str_head(guard->issuers[index].url, OAUTH_URL_BYTES)));
    (void)snprintf(name, sizeof(name), index == 0 ? "oauth" : "oauth%zu", index + 1);
    const char *const members[4] = {"openIdConnectUrl", url};
    declare(self, name, "openIdConnectSecurityScheme", members,
            guard->scopes.len > 0 ? guard->scopes.at : NULL);
}

void bay_agent_guard(bay_agent *agent, bay_guard *guard)
{
    if (agent == NULL) {
        return;
    }
    const char *fault = guard == NULL            ? "out of memory"
                        : agent->guard != NULL   ? "the agent has a guard"
                        : agent->schemes != NULL ? "the agent declares schemes of its own: a guard "
                                                   "declares what it takes"
                                                 : sdk_guard_seal(guard);
    if (fault != NULL) {
        sdk_agent_error(agent, "bay_agent_guard: %s", fault);
        return;
    }
    agent->guard = sdk_guard_ref(guard);
    for (size_t i = 0; i < guard->issuer_count; i++) {
        declare_issuer(agent, guard, i);
    }
    if (guard->key_count > 0) {
        const char *const members[4] = {"location", "header", "name", "X-API-Key"};
        declare(agent, "key", "apiKeySecurityScheme", members, NULL);
    }
    if (guard->has_certificates) {
        const char *const members[4] = {NULL};
        declare(agent, "certificate", "mtlsSecurityScheme", members, NULL);
    }
}

void bay_skill_scope(bay_skill *skill, const char *scopes)
{
    if (skill == NULL) {
        return;
    }
    bay_agent *agent = skill->agent;
    skill->scopes = sdk_agent_keep(agent, scopes);
    if (agent->guard == NULL || skill->scopes.len == 0) {
        sdk_agent_error(agent, "bay_skill_scope \"%.*s\": %s", BAY_STR(str_head(skill->id, 100)),
                        skill->scopes.len == 0 ? "the scope has no name"
                                               : "scopes are a guard's: bay_agent_guard before");
        return;
    }
    for (const agent_scheme *at = agent->schemes; at != NULL; at = at->next) {
        sdk_agent_requirement(agent, &skill->requirements, at->name.at, scopes);
    }
}

bay_err sdk_agent_guard_admits(const bay_agent *self, http_exchange *exchange,
                               const auth_principal *who, const bay_skill *skill,
                               front_challenge *out_challenge, a2a_fault *fault)
{
    if (principal_has_scopes(who, skill->scopes)) {
        return BAY_OK;
    }
    sdk_gate_challenge(self->gate, exchange, skill->scopes, out_challenge);
    return a2a_fault_set(fault, A2A_E_FORBIDDEN, "the skill needs the scope %.*s",
                         BAY_STR(str_head(skill->scopes, 160)));
}
