/* An endpoint as a server engine's service: requests, and whom they are for. Its lists stand in
 * endpoint_lists.c, what it declares in endpoint_about.c, subscriptions in
 * endpoint_subscriptions.c. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "catalog/filter.h"
#include "endpoint/endpoint_parts.h"
#include "endpoint/skills.h"

enum {
    NEAREST_EDITS = 3,   /* at most, and a third of the name: from it to what was meant */
    NEAREST_NAMES = 500, /* an endpoint with more does not look for it */
};

bool endpoint_request_defer(endpoint *self, mcp_request *request)
{
    route *waits = NULL;
    bool is_waking = endpoint_wake(self);
    if (!self->is_settled || is_waking) {
        waits = arena_zalloc(request->memory, sizeof(*waits));
    }
    if (waits == NULL) {
        return false;
    }
    waits->endpoint = self;
    waits->request = request;
    request->user = waits;
    list_push(&self->waiting, &waits->link);
    return true;
}

/* The server whose the name may be, because its list has not been read: the part before the
 * separator names it. NULL: there is none, or it would not show such a name to the request's
 * principal. */
static const catalog_source *find_unread(const endpoint *self, const mcp_request *request,
                                         listing_kind kind, bay_str name)
{
    const catalog_source *source = self->servers.count > 0 ? &self->servers.sources[0] : NULL;
    bay_str rest = name;
    bay_str own;
    if (self->only == NULL) {
        source = catalog_servers_split(&self->servers, self->config->separator, name, &rest);
    }
    if (source == NULL || rest.len == 0 || source->listings[kind] != NULL) {
        return NULL;
    }
    const config_server *server = upstream_config(source->upstream);
    bool is_shown = filter_own_name(server, kind, rest, &own) &&
                    filter_shows(self->part, server, kind, own, name) &&
                    endpoint_may_show(self, &request->call, kind, source->upstream, rest);
    return is_shown ? source : NULL;
}

bool endpoint_knows_tool(const endpoint *self, mcp_request *request, bay_str name)
{
    return endpoint_find_seen(self, request, LISTING_TOOLS, name) != NULL ||
           find_unread(self, request, LISTING_TOOLS, name) != NULL;
}

/* What the caller may have meant, of what it may see; empty: nothing is near. */
static bay_str nearest_name(const endpoint *self, const mcp_request *request, listing_kind kind)
{
    bay_str name = request->name;
    bay_str nearest = {"", 0};
    size_t least = (name.len / 3 < NEAREST_EDITS ? name.len / 3 : NEAREST_EDITS) + 1;
    size_t count = catalog_view_count(&self->views[kind]);
    for (size_t i = 0; count <= NEAREST_NAMES && i < count; i++) {
        const catalog_entry *entry = catalog_view_at(&self->views[kind], i);
        size_t more =
            entry->shown.len > name.len ? entry->shown.len - name.len : name.len - entry->shown.len;
        size_t distance = more < least ? str_distance(name, entry->shown) : more;
        if (distance < least && listing_item_passes(entry->item) &&
            endpoint_shows(self, &request->call, kind, entry)) {
            least = distance;
            nearest = entry->shown;
        }
    }
    return nearest;
}

static void refuse_name(const endpoint *self, mcp_request *request, listing_kind kind,
                        const char *what)
{
    buf text;
    bay_str nearest = nearest_name(self, request, kind);
    buf_init(&text, 2048);
    buf_printf(&text, "Unknown %s: ", what);
    buf_str(&text, str_head(request->name, 512)); /* may hold a NUL */
    if (nearest.len > 0) {
        buf_lit(&text, "; did you mean ");
        buf_str(&text, nearest);
        buf_char(&text, '?');
    }
    mcp_request_error(request, RPC_INVALID_PARAMS, buf_view(&text), (bay_str){NULL, 0});
    buf_fini(&text);
}

/* Its server's list could not be read: whether there is such a thing nobody can say. */
static void refuse_unread(mcp_request *request, const catalog_source *source, const char *what)
{
    buf text;
    bay_str server = upstream_name(source->upstream);
    const char *why = upstream_error(source->upstream);
    buf_init(&text, 4096);
    buf_printf(&text, "The server \"%.*s\" has no %s list that could be read", BAY_STR(server),
               what);
    buf_printf(&text, "%s%.1000s. The call was not carried out; it can be tried again.",
               why[0] != '\0' ? ": " : "", why);
    route_refuse(request, server, "server_unavailable", RPC_INTERNAL_ERROR, buf_view(&text), false);
    buf_fini(&text);
}

/* Tools and prompts, by the catalog alone: what a server does not list cannot be called. */
static void take_named(endpoint *self, mcp_request *request, listing_kind kind, const char *what)
{
    const catalog_entry *entry = endpoint_find_seen(self, request, kind, request->name);
    if (entry != NULL) {
        /* mcp 2026-07-28 server/tools: annotations of a server that nobody trusts are untrusted */
        request->call.is_repeatable =
            entry->item->is_repeatable && upstream_config(entry->upstream)->trust_hints;
        if (endpoint_admits(request, entry->upstream)) {
            route_to(self, request, entry->upstream, entry->item->key, entry);
        }
        return;
    }
    const catalog_source *unread = find_unread(self, request, kind, request->name);
    if (unread != NULL ? endpoint_await(self, request, unread, kind)
                       : endpoint_request_defer(self, request)) {
        return;
    }
    if (unread != NULL) {
        refuse_unread(request, unread, what);
    } else {
        refuse_name(self, request, kind, what);
    }
}

bool endpoint_has_server(const endpoint *self, const upstream *server)
{
    for (size_t i = 0; i < self->servers.count; i++) {
        if (self->servers.sources[i].upstream == server) {
            return true;
        }
    }
    return false;
}

upstream *endpoint_owner_by_list(const endpoint *self, const mcp_session *session, bay_str address)
{
    const catalog_entry *entry =
        endpoint_find_in(own_lists_view(self, session, LISTING_RESOURCES), address);
    if (entry != NULL) {
        return entry->upstream;
    }
    entry = catalog_view_match(own_lists_view(self, session, LISTING_TEMPLATES), address);
    if (entry == NULL || !listing_item_passes(entry->item) ||
        filter_hides(upstream_config(entry->upstream), LISTING_RESOURCES, address)) {
        return NULL;
    }
    return entry->upstream;
}

static bool is_unread(const catalog_source *source)
{
    return source->listings[LISTING_RESOURCES] == NULL &&
           source->listings[LISTING_TEMPLATES] == NULL;
}

upstream *endpoint_owner_of_resource(const endpoint *self, const mcp_session *session,
                                     bay_str address)
{
    const listing_kind kind = LISTING_RESOURCES;
    if (!filter_admits(self->part, kind, address)) {
        return NULL;
    }
    upstream *owner = endpoint_owner_by_list(self, session, address);
    if (owner != NULL) {
        return owner;
    }
    /* Unlisted resources exist (links in results): with one server there is no doubt whose it is.
     * Not of one whose lists could not be read, or whose items are held against the pins. */
    upstream *only = NULL;
    for (size_t i = 0; i < self->servers.count; i++) {
        const catalog_source *source = &self->servers.sources[i];
        upstream *candidate = source->upstream;
        if (upstream_has(candidate, STR("resources")) && !is_unread(source) && !source->is_held &&
            filter_shows(self->part, upstream_config(candidate), kind, address, address)) {
            if (only != NULL) {
                return NULL;
            }
            only = candidate;
        }
    }
    return only;
}

static void take_resource(endpoint *self, mcp_request *request)
{
    upstream *listed = endpoint_owner_by_list(self, request->session, request->name);
    if ((listed == NULL || !endpoint_sees_resource(&request->call, listed)) &&
        endpoint_request_defer(self, request)) {
        return;
    }
    upstream *owner = endpoint_owner_of_resource(self, request->session, request->name);
    if (owner != NULL && endpoint_sees_resource(&request->call, owner)) {
        if (endpoint_admits(request, owner)) {
            route_to(self, request, owner, (bay_str){NULL, 0}, NULL);
        }
        return;
    }
    for (size_t i = 0; i < self->servers.count; i++) {
        const catalog_source *source = &self->servers.sources[i];
        if (is_unread(source) && upstream_has(source->upstream, STR("resources")) &&
            endpoint_await(self, request, source, LISTING_RESOURCES)) {
            return;
        }
    }
    mcp_request_resource_not_found(request);
}

static void refuse_method(mcp_request *request)
{
    mcp_request_error(request, RPC_METHOD_NOT_FOUND, STR("Method not found"), (bay_str){NULL, 0});
}

static void take_task(endpoint *self, mcp_request *request)
{
    if (self->tasks != NULL) {
        self->tasks->request(self, request);
    } else {
        refuse_method(request);
    }
}

/* The tools of search mode are there at once. */
static void take_list(endpoint *self, mcp_request *request)
{
    bool is_searched = self->is_searched && request->method->id == MCP_TOOLS_LIST;
    if ((is_searched || !endpoint_request_defer(self, request)) &&
        mcp_request_admit(request, NULL)) {
        endpoint_answer_list(self, request);
    }
}

/* Has the object each of these members at most once, in whatever case? False also without memory. */
static bool has_once(json_val object, const bay_str *names, size_t count, arena *memory)
{
    uint32_t seen = 0;
    for (json_iter at = json_iter_of(object); json_next(&at);) {
        bay_str key;
        if (json_str(at.key, memory, &key) != BAY_OK) {
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            if (str_eq_folded(key, names[i])) {
                if (!str_eq(key, names[i]) || (seen & 1u << i) != 0) {
                    return false;
                }
                seen |= 1u << i;
            }
        }
    }
    return true;
}

/* Of two members of one name servers read the first or the last, and some take one in another case
 * for the same: what rules decide on has to be what the server reads. */
static bool is_ambiguous(const mcp_request *request)
{
    static const bay_str in_params[] = {
        STR_INIT("name"),   STR_INIT("uri"),          STR_INIT("arguments"),     STR_INIT("ref"),
        STR_INIT("taskId"), STR_INIT("requestState"), STR_INIT("inputResponses")};
    static const bay_str in_reference[] = {STR_INIT("type"), STR_INIT("name"), STR_INIT("uri")};
    json_val params = request->message.params;
    return !has_once(params, in_params, ARRAY_LEN(in_params), request->memory) ||
           !has_once(json_get(params, STR("ref")), in_reference, ARRAY_LEN(in_reference),
                     request->memory);
}

static void endpoint_request(void *user, mcp_request *request)
{
    endpoint *self = user;
    bool has_rules = endpoint_has_rules(&request->call);
    request->is_cache_private = has_rules;
    if (self->has_one_client && !self->is_introduced) {
        bool may_ask = self->ring != NULL && self->config->limits.suspended_calls > 0;
        endpoint_introduce(
            self, may_ask ? mcp_inputs_of(request->revision, request->client_capabilities) : 0);
    }
    if (has_rules && is_ambiguous(request)) {
        mcp_request_error(request, RPC_INVALID_PARAMS,
                          STR("A member of the params stands twice, or in another case"),
                          (bay_str){NULL, 0});
        return;
    }
    if (self->is_searched && request->method != NULL && request->method->id == MCP_TOOLS_CALL &&
        meta_tools_request(self, request)) {
        return;
    }
    if (suspended_call_resume(self, request)) {
        return;
    }
    switch (request->method != NULL ? request->method->id : MCP_METHOD_COUNT) {
    case MCP_TOOLS_LIST:
    case MCP_RESOURCES_LIST:
    case MCP_RESOURCES_TEMPLATES_LIST:
    case MCP_PROMPTS_LIST:
        take_list(self, request);
        return;
    case MCP_TOOLS_CALL:
        take_named(self, request, LISTING_TOOLS, "tool");
        return;
    case MCP_PROMPTS_GET:
        take_named(self, request, LISTING_PROMPTS, "prompt");
        return;
    case MCP_RESOURCES_READ:
        take_resource(self, request);
        return;
    case MCP_COMPLETE:
        if (!route_complete(self, request) && !endpoint_request_defer(self, request)) {
            mcp_request_error(request, RPC_INVALID_PARAMS,
                              STR("completion/complete: no such prompt or resource"),
                              (bay_str){NULL, 0});
        }
        return;
    case MCP_TASKS_GET:
    case MCP_TASKS_UPDATE:
    case MCP_TASKS_CANCEL:
    case MCP_TASKS_LEGACY_GET:
    case MCP_TASKS_LEGACY_CANCEL:
    case MCP_TASKS_RESULT:
    case MCP_TASKS_LIST:
        take_task(self, request);
        return;
    case MCP_SKILLS_LIST:
    case MCP_SKILLS_GET:
    case MCP_DIRECTORY_READ:
        skills_request(self, request);
        return;
    default:
        refuse_method(request);
    }
}

static void endpoint_cancelled(void *user, mcp_request *request)
{
    if (meta_tools_cancelled(user, request)) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Cancelled"), (bay_str){NULL, 0});
        return;
    }
    route_cancelled(request);
}

static void endpoint_drained(void *user, mcp_request *request)
{
    (void)user;
    route_drained(request);
}

static const mcp_param_table *endpoint_param_table(void *user, bay_str tool)
{
    endpoint *self = user;
    if (self->is_searched && meta_tools_are(tool)) {
        return NULL;
    }
    if (self->door != NULL && self->door->policy.rules != NULL) {
        return &mcp_params_pending; /* whether the tool is there depends on who asks */
    }
    const catalog_entry *entry = endpoint_find(self, LISTING_TOOLS, tool);
    return entry != NULL ? &entry->item->params : &mcp_params_pending;
}

bay_str endpoint_profile(const endpoint *self)
{
    return str_of(self->profile);
}

void endpoint_resume(endpoint *self)
{
    list now; /* who has to wait for yet another server stands in the queue again */
    list_link *link;
    list_init(&now);
    while ((link = list_pop(&self->waiting)) != NULL) {
        list_push(&now, link);
    }
    while ((link = list_pop(&now)) != NULL) {
        const route *waits = CONTAINER_OF(link, route, link);
        mcp_request *request = waits->request;
        self->resumed_until_ms = waits->until_ms;
        request->user = NULL;
        endpoint_request(self, request);
        self->resumed_until_ms = 0;
    }
}

void endpoint_lists_ready(endpoint *self)
{
    self->is_settled = true;
    endpoint_subscriptions_settle(self);
    if (!self->is_waking) {
        endpoint_resume(self);
    }
}

static const mcp_service endpoint_service = {
    .request = endpoint_request,
    .cancelled = endpoint_cancelled,
    .drained = endpoint_drained,
    .capabilities = endpoint_capabilities,
    .instructions = endpoint_instructions,
    .param_table = endpoint_param_table,
    .resolve_subscription = endpoint_resolve_subscription,
    .subscribe = endpoint_subscribe,
    .subscribed = endpoint_subscribed,
    .notified = endpoint_notified,
    .session_changed = endpoint_session_changed,
};

static bay_err keep_sessions(endpoint *self, const endpoint_options *options,
                             mcp_server_options *engine)
{
    char text[CONFIG_NAME_BYTES + 2];
    buf name = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    if (options->profile.len > 0) {
        buf_char(&name, '@'); /* as in its path: no server is called so */
    }
    buf_str(&name, options->profile.len > 0 ? options->profile : options->only);
    session_persister_options persister = {.endpoint = buf_view(&name),
                                           .worker = options->worker,
                                           .loop = options->loop,
                                           .ring = options->ring,
                                           .store = options->sessions};
    bay_err err =
        options->ring != NULL ? session_persister_new(&persister, &self->persister) : BAY_OK;
    if (self->persister != NULL) {
        engine->persistence = &session_persister_ops;
        engine->persistence_user = self->persister;
    }
    return err;
}

bay_err endpoint_new(const endpoint_options *options, endpoint **out)
{
    endpoint *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    const config_limits *limits = &options->config->limits;
    self->config = options->config;
    self->loop = options->loop;
    self->worker = options->worker;
    self->ring = options->ring;
    self->has_one_client = options->has_one_client;
    self->introduced = options->introduced;
    self->user = options->user;
    self->tasks = options->tasks;
    self->door = options->door;
    self->user_login = options->user_login;
    list_init(&self->waiting);
    list_init(&self->searches);
    endpoint_subscriptions_init(self);
    loop_timer_init(&self->tell, endpoint_tell_now, self);
    loop_timer_init(&self->waking, endpoint_waited, self);
    loop_timer_init(&self->awaiting, endpoint_awaited, self);
    suspended_calls_init(self);
    user_logins_init(self);
    endpoint_clients_init(self);
    own_lists_init(self);
    buf_init(&self->scratch, CATALOG_MAX_BYTES);
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        catalog_view_init(&self->views[kind], kind);
    }
    mcp_server_options engine = {
        .name = STR("patchbay"),
        .title = STR("Patchbay"),
        .version = str_of(bay_version()),
        .oldest = MCP_REV_2024_11_05,
        .newest = MCP_LATEST,
        .max_sessions = limits->sessions,
        .session_idle_ms = limits->session_idle_ms,
        .max_requests = limits->requests_per_session,
        .max_subscriptions = limits->subscriptions,
        .log_bytes = limits->event_log_bytes,
        .log_events = limits->event_log_events,
        .ask_timeout_ms = options->config->timeouts.answer_ms,
        .worker = options->worker,
        .door = options->door,
        .json = {limits->message_bytes, limits->json_depth, limits->json_values},
    };
    bay_err err = keep_sessions(self, options, &engine);
    if (err == BAY_OK) {
        err = mcp_server_new(&engine, &endpoint_service, self, &self->engine);
    }
    if (err == BAY_OK && options->only.len > 0) {
        self->only = mem_dup(options->only.at, options->only.len);
        err = self->only != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    if (err == BAY_OK && options->profile.len > 0) {
        self->profile = mem_dup(options->profile.at, options->profile.len);
        err = self->profile != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    if (err != BAY_OK) {
        endpoint_free(self);
        return err;
    }
    endpoint_server_changed(self, NULL);
    *out = self;
    return BAY_OK;
}

void endpoint_free(endpoint *self)
{
    if (self == NULL) {
        return;
    }
    self->is_ending = true;
    user_logins_end(self);
    if (self->engine != NULL) {
        mcp_server_free(self->engine);
    }
    if (self->loop != NULL) {
        loop_timer_stop(self->loop, &self->tell);
        loop_timer_stop(self->loop, &self->waking);
        loop_timer_stop(self->loop, &self->awaiting);
    }
    session_persister_free(self->persister);
    suspended_calls_fini(self);
    own_lists_fini(self);
    endpoint_clients_fini(self);
    if (self->tasks != NULL) {
        self->tasks->forget(self);
    }
    endpoint_subscriptions_fini(self);
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        catalog_view_fini(&self->views[kind]);
    }
    catalog_servers_fini(&self->servers);
    buf_fini(&self->scratch);
    mem_free(self->only);
    mem_free(self->profile);
    mem_free(self);
}

mcp_server *endpoint_engine(endpoint *self)
{
    return self->engine;
}

session_persister *endpoint_persister(endpoint *self)
{
    return self->persister;
}

void endpoint_set_ring(endpoint *self, const seal_ring *ring)
{
    self->ring = ring;
    if (self->persister != NULL && ring != NULL) {
        session_persister_set_ring(self->persister, ring, self->engine);
    }
}
