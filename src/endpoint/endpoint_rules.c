/* What the rules of the door make of an endpoint: which entries a principal sees, and by which name
 * rules decide on them. Lists are filtered and names are looked up by endpoint_shows, which asks the
 * function that admits the call. What it hides is looked up as if it were not there. */
#include "base/str.h"
#include "endpoint/endpoint_parts.h"

static const struct {
    policy_kind kind;
    bay_str method; /* that an entry is listed for */
} kinds[LISTING_KINDS] = {
    [LISTING_TOOLS] = {POLICY_TOOL, STR_INIT("tools/call")},
    [LISTING_PROMPTS] = {POLICY_PROMPT, STR_INIT("prompts/get")},
    [LISTING_RESOURCES] = {POLICY_RESOURCE, STR_INIT("resources/read")},
    [LISTING_TEMPLATES] = {POLICY_TEMPLATE, STR_INIT("resources/read")},
};

bool endpoint_has_rules(const call_context *call)
{
    return call->door != NULL && call->door->policy.rules != NULL;
}

bool endpoint_has_settings(const call_context *call)
{
    const call_door *door = call->door;
    return door != NULL &&
           (door->limits != NULL || (door->tools.tools != NULL && call->kind == CALL_TOOL));
}

/* Rules name tools and prompts as "/mcp" shows them, whatever this endpoint shows. A name that is
 * too long is "", and hidden. */
static policy_name name_of(const endpoint *self, listing_kind kind, bay_str server, bay_str bare,
                           buf *scratch)
{
    policy_name name = {.kind = kinds[kind].kind, .server = server, .name = bare};
    if (kind == LISTING_TOOLS || kind == LISTING_PROMPTS) {
        buf_clear(scratch);
        buf_str(scratch, server);
        buf_str(scratch, self->config->separator);
        buf_str(scratch, bare);
        name.name = scratch->err == BAY_OK ? buf_view(scratch) : STR("");
    }
    return name;
}

/* A skill of an agent is a tool, and its call a message to the agent: both have to be there.
 * `agent`: "": it is no skill. */
static bool is_hidden(const call_context *call, const policy_name *name, bay_str method,
                      bay_str agent)
{
    policy_name whose = {.kind = POLICY_AGENT, .server = agent, .name = agent};
    return name->name.len == 0 || call_shows(call, name, method) == POLICY_HIDDEN ||
           (agent.len > 0 && call_shows(call, &whose, STR("SendMessage")) == POLICY_HIDDEN);
}

bool endpoint_shows(const endpoint *self, const call_context *call, listing_kind kind,
                    const catalog_entry *entry)
{
    char text[ENDPOINT_FULL_BYTES];
    buf scratch = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    if (!endpoint_has_rules(call)) {
        return true;
    }
    const catalog_segment *of = entry->segment;
    policy_name name = name_of(self, kind, of->server, entry->bare, &scratch);
    return !is_hidden(call, &name, kinds[kind].method, of->agent);
}

bool endpoint_may_show(const endpoint *self, const call_context *call, listing_kind kind,
                       const upstream *of, bay_str bare)
{
    char text[ENDPOINT_FULL_BYTES];
    buf scratch = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    if (!endpoint_has_rules(call)) {
        return true;
    }
    policy_name name = name_of(self, kind, upstream_name(of), bare, &scratch);
    name.is_unlisted = true;
    return !is_hidden(call, &name, kinds[kind].method, upstream_config(of)->agent);
}

static bool sees_any(const endpoint *self, const call_context *call, listing_kind kind,
                     const upstream *of)
{
    const catalog_snapshot *shown = self->views[kind].current;
    for (size_t i = 0; shown != NULL && i < shown->count; i++) {
        const catalog_segment *segment = shown->parts[i].segment;
        for (size_t k = 0; k < segment->count && segment->entries[k].upstream == of; k++) {
            if (endpoint_shows(self, call, kind, &segment->entries[k])) {
                return true;
            }
        }
    }
    return false;
}

bool endpoint_sees_server(const endpoint *self, const mcp_request *request, const upstream *of)
{
    call_context call = {
        .door = self->door, .principal = request->principal, .origin = request->call.origin};
    bool is_seen = !endpoint_has_rules(&call);
    for (listing_kind kind = 0; kind < LISTING_KINDS && !is_seen; kind++) {
        is_seen = sees_any(self, &call, kind, of);
    }
    return is_seen;
}

const catalog_entry *endpoint_find_seen(const endpoint *self, mcp_request *request,
                                        listing_kind kind, bay_str shown)
{
    char text[ENDPOINT_FULL_BYTES];
    buf scratch = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    const catalog_entry *entry =
        endpoint_find_in(own_lists_view(self, request->session, kind), shown);
    bool is_named = endpoint_has_rules(&request->call) || endpoint_has_settings(&request->call) ||
                    call_is_measured(&request->call);
    if (entry == NULL || !is_named) {
        return entry;
    }
    const catalog_segment *of = entry->segment;
    policy_name name = name_of(self, kind, of->server, entry->bare, &scratch);
    if (is_hidden(&request->call, &name, kinds[kind].method, of->agent)) {
        return NULL;
    }
    bay_err err = arena_dup(request->memory, name.name, &name.name);
    request->call.about = name;
    return err == BAY_OK ? entry : NULL;
}

bool endpoint_sees_resource(call_context *call, const upstream *owner)
{
    if (!endpoint_has_rules(call)) {
        return true;
    }
    bay_str server = owner != NULL ? upstream_name(owner) : STR("");
    call->about = (policy_name){.kind = POLICY_RESOURCE, .server = server, .name = call->shown};
    return call_shows(call, &call->about, kinds[LISTING_RESOURCES].method) != POLICY_HIDDEN;
}

bool endpoint_sees_skill(call_context *call, const upstream *of, bay_str uri)
{
    if (!endpoint_has_rules(call)) {
        return true;
    }
    policy_name about = {.kind = POLICY_SKILL, .server = upstream_name(of), .name = uri};
    return call_shows(call, &about, STR("skills/get")) != POLICY_HIDDEN;
}

void endpoint_about_method(mcp_request *request)
{
    request->call.about = (policy_name){.kind = POLICY_METHOD};
}
