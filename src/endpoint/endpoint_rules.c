/* What the rules of the door make of an endpoint: which entries a principal sees, and by which name
 * rules decide on them. Lists are filtered and names are looked up by endpoint_shows, which asks the
 * function that admits the call. What it hides is looked up as if it were not there. */
#include "base/str.h"
#include "catalog/filter.h"
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

/* Rules name tools and prompts as "/mcp" shows them, whatever this endpoint shows. */
static bool write_full(const endpoint *self, listing_kind kind, const catalog_entry *entry,
                       buf *out)
{
    const config_server *server = upstream_config(entry->upstream);
    buf_str(out, upstream_name(entry->upstream));
    buf_str(out, self->config->separator);
    buf_str(out, filter_rename(server, kind, entry->item->key));
    return out->err == BAY_OK;
}

static policy_name name_of(const endpoint *self, listing_kind kind, const catalog_entry *entry,
                           buf *scratch)
{
    bool is_named = kind == LISTING_TOOLS || kind == LISTING_PROMPTS;
    bool is_full = !is_named || (self->only == NULL && !self->config->bare_names);
    buf_clear(scratch);
    /* a name that is too long has none, and is hidden */
    bay_str name = is_full                                  ? entry->shown
                   : write_full(self, kind, entry, scratch) ? buf_view(scratch)
                                                            : STR("");
    return (policy_name){kinds[kind].kind, upstream_name(entry->upstream), name};
}

/* A skill of an agent is a tool, and its call a message to the agent: both have to be there. */
static policy_outcome outcome_of(const call_context *call, const upstream *of,
                                 const policy_name *name, bay_str method)
{
    bay_str agent = upstream_config(of)->agent;
    policy_outcome outcome =
        name->name.len > 0 ? call_shows(call->door, name, method, call->principal, call->origin)
                           : POLICY_HIDDEN;
    if (outcome == POLICY_HIDDEN || agent.len == 0) {
        return outcome;
    }
    policy_name whose = {POLICY_AGENT, agent, agent};
    policy_outcome other =
        call_shows(call->door, &whose, STR("SendMessage"), call->principal, call->origin);
    return other < outcome ? other : outcome;
}

bool endpoint_shows(const endpoint *self, const call_context *call, listing_kind kind,
                    const catalog_entry *entry)
{
    char text[ENDPOINT_FULL_BYTES];
    buf scratch = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    if (!endpoint_has_rules(call)) {
        return true;
    }
    policy_name name = name_of(self, kind, entry, &scratch);
    return outcome_of(call, entry->upstream, &name, kinds[kind].method) != POLICY_HIDDEN;
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
    const catalog_entry *entry = endpoint_find(self, kind, shown);
    if (entry == NULL || !endpoint_has_rules(&request->call)) {
        return entry;
    }
    policy_name name = name_of(self, kind, entry, &scratch);
    if (outcome_of(&request->call, entry->upstream, &name, kinds[kind].method) == POLICY_HIDDEN) {
        return NULL;
    }
    if (kind == LISTING_TEMPLATES) { /* completion of a URI: about the template as it is written */
        name.kind = POLICY_TEMPLATE;
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
    call->about = (policy_name){POLICY_RESOURCE, server, call->shown};
    return call_shows(call->door, &call->about, kinds[LISTING_RESOURCES].method, call->principal,
                      call->origin) != POLICY_HIDDEN;
}

bool endpoint_sees_skill(call_context *call, const upstream *of, bay_str uri)
{
    if (!endpoint_has_rules(call)) {
        return true;
    }
    policy_name about = {POLICY_SKILL, upstream_name(of), uri};
    return call_shows(call->door, &about, STR("skills/get"), call->principal, call->origin) !=
           POLICY_HIDDEN;
}

void endpoint_about_method(mcp_request *request)
{
    request->call.about = (policy_name){.kind = POLICY_METHOD};
}
