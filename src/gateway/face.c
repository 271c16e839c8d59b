#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/face_parts.h"
#include "gateway/filter.h"

enum { BOUND_BYTES = 8192 }; /* of what a cursor is bound to */

static const listing_kind kind_of_method[MCP_METHOD_COUNT] = {
    [MCP_TOOLS_LIST] = LISTING_TOOLS,
    [MCP_RESOURCES_LIST] = LISTING_RESOURCES,
    [MCP_RESOURCES_TEMPLATES_LIST] = LISTING_TEMPLATES,
    [MCP_PROMPTS_LIST] = LISTING_PROMPTS,
};

static void answer_list(face *self, mcp_request *request)
{
    listing_kind kind = kind_of_method[request->method->id];
    buf bound;
    buf_init(&bound, BOUND_BYTES);
    buf_str(&bound, str_of(self->only));
    buf_char(&bound, '\0');
    buf_str(&bound, request->principal);
    buf_clear(&self->scratch);
    catalog_cursors cursors = {self->ring, buf_view(&bound)};
    bay_err err = bound.err;
    if (err == BAY_OK) {
        err = catalog_view_page(&self->views[kind], &cursors,
                                json_get(request->message.params, STR("cursor")),
                                self->config->limits.page_size, &self->scratch);
    }
    buf_fini(&bound);
    if (err == BAY_INVALID) {
        mcp_request_error(request, RPC_INVALID_PARAMS, STR("Invalid cursor: list from the start"),
                          (bay_str){NULL, 0});
    } else if (err != BAY_OK) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("The list does not fit into memory"),
                          (bay_str){NULL, 0});
    } else {
        mcp_request_result_members(request, buf_view(&self->scratch));
    }
}

/* Before the servers were heard of, what is not known is not unknown: the request waits. False:
 * they were, or memory is short. */
static bool park(face *self, mcp_request *request)
{
    route *waits = NULL;
    if (!self->is_settled) {
        waits = arena_zalloc(request->memory, sizeof(*waits));
    }
    if (waits == NULL) {
        return false;
    }
    waits->face = self;
    waits->request = request;
    request->user = waits;
    list_push(&self->waiting, &waits->link);
    return true;
}

/* A name nobody listed (yet): the part before the separator may name a server. What would not be
 * shown is nobody's. */
static const catalog_source *source_by_prefix(const face *self, listing_kind kind, bay_str name,
                                              bay_str *out_own)
{
    const catalog_source *source = self->roster.count > 0 ? &self->roster.sources[0] : NULL;
    bay_str rest = name;
    if (self->only == NULL) {
        source = catalog_roster_split(&self->roster, self->config->separator, name, &rest);
    }
    if (source == NULL || rest.len == 0 ||
        !filter_admits(self->views[kind].options.profile, kind, name)) {
        return NULL;
    }
    const config_server *server = upstream_config(source->upstream);
    bool is_shown =
        filter_own_name(server, kind, rest, out_own) && filter_exposes(server, kind, *out_own);
    return is_shown ? source : NULL;
}

static void refuse_name(mcp_request *request, const char *what)
{
    buf text;
    buf_init(&text, 2048);
    buf_printf(&text, "Unknown %s: ", what);
    buf_str(&text, str_head(request->name, 512)); /* may hold a NUL */
    mcp_request_error(request, RPC_INVALID_PARAMS, buf_view(&text), (bay_str){NULL, 0});
    buf_fini(&text);
}

/* Tools and prompts: by the catalog; before a server's list is known, by its prefix. */
static void take_named(face *self, mcp_request *request, listing_kind kind, const char *what)
{
    const catalog_entry *entry = catalog_view_find(&self->views[kind], request->name);
    if (entry != NULL) {
        route_to(self, request, entry->upstream, entry->item->key, entry);
        return;
    }
    bay_str own = {NULL, 0};
    const catalog_source *source = source_by_prefix(self, kind, request->name, &own);
    if (source != NULL && source->listings[kind] == NULL) {
        route_to(self, request, source->upstream, own, NULL);
        return;
    }
    if (!park(self, request)) {
        refuse_name(request, what);
    }
}

static upstream *owner_by_list(const face *self, bay_str address)
{
    const catalog_entry *entry = catalog_view_find(&self->views[LISTING_RESOURCES], address);
    if (entry != NULL) {
        return entry->upstream;
    }
    entry = catalog_view_match(&self->views[LISTING_TEMPLATES], address);
    if (entry == NULL ||
        filter_hides(upstream_config(entry->upstream), LISTING_RESOURCES, address)) {
        return NULL;
    }
    return entry->upstream;
}

static upstream *owner_of_resource(const face *self, bay_str address)
{
    const config_profile *profile = self->views[LISTING_RESOURCES].options.profile;
    if (!filter_admits(profile, LISTING_RESOURCES, address)) {
        return NULL;
    }
    upstream *owner = owner_by_list(self, address);
    if (owner != NULL) {
        return owner;
    }
    /* Unlisted resources exist (links in results): with one server there is no doubt whose it is.
     */
    upstream *only = NULL;
    for (size_t i = 0; i < self->roster.count; i++) {
        upstream *candidate = self->roster.sources[i].upstream;
        if (upstream_has(candidate, STR("resources")) &&
            filter_exposes(upstream_config(candidate), LISTING_RESOURCES, address)) {
            if (only != NULL) {
                return NULL;
            }
            only = candidate;
        }
    }
    return only;
}

static void take_resource(face *self, mcp_request *request)
{
    if (owner_by_list(self, request->name) == NULL && park(self, request)) {
        return;
    }
    upstream *owner = owner_of_resource(self, request->name);
    if (owner != NULL) {
        route_to(self, request, owner, (bay_str){NULL, 0}, NULL);
        return;
    }
    mcp_request_resource_not_found(request);
}

static void face_request(void *user, mcp_request *request)
{
    face *self = user;
    if (parked_resume(self, request)) {
        return;
    }
    switch (request->method != NULL ? request->method->id : MCP_METHOD_COUNT) {
    case MCP_TOOLS_LIST:
    case MCP_RESOURCES_LIST:
    case MCP_RESOURCES_TEMPLATES_LIST:
    case MCP_PROMPTS_LIST:
        if (!park(self, request)) {
            answer_list(self, request);
        }
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
        if (!route_complete(self, request) && !park(self, request)) {
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
        task_request(self, request);
        return;
    default:
        mcp_request_error(request, RPC_METHOD_NOT_FOUND, STR("Method not found"),
                          (bay_str){NULL, 0});
    }
}

static void face_cancelled(void *user, mcp_request *request)
{
    (void)user;
    route_cancelled(request);
}

static void face_drained(void *user, mcp_request *request)
{
    (void)user;
    route_drained(request);
}

/* Everything a server may have: what none has answers with empty lists. */
static void face_capabilities(void *user, const mcp_revision *revision, json_writer *out)
{
    const face *self = user;
    json_key_lit(out, "tools");
    json_put_raw(out, STR("{\"listChanged\":true}"));
    json_key_lit(out, "resources");
    json_put_raw(out, STR("{\"subscribe\":true,\"listChanged\":true}"));
    json_key_lit(out, "prompts");
    json_put_raw(out, STR("{\"listChanged\":true}"));
    if (revision->id >= MCP_REV_2025_03_26) {
        json_key_lit(out, "completions");
        json_put_raw(out, STR("{}"));
    }
    json_key_lit(out, "logging");
    json_put_raw(out, STR("{}"));
    task_put_capability(self, revision, out);
    if (revision->era == MCP_MODERN) {
        json_key_lit(out, "extensions");
        json_open_object(out);
        task_put_extension(self, revision, out);
        json_close_object(out);
    }
}

static const mcp_param_table *face_param_table(void *user, bay_str tool)
{
    face *self = user;
    const catalog_entry *entry = catalog_view_find(&self->views[LISTING_TOOLS], tool);
    return entry != NULL ? &entry->item->params : NULL;
}

/* A subscription from before the servers were heard of. */
typedef struct early {
    list_link link; /* in face.early */
    size_t len;
    char uri[];
} early;

static early *early_find(const face *self, bay_str address)
{
    LIST_EACH(at, &self->early)
    {
        early *one = CONTAINER_OF(at, early, link);
        if (str_eq((bay_str){one->uri, one->len}, address)) {
            return one;
        }
    }
    return NULL;
}

static bay_err early_add(face *self, bay_str address)
{
    early *one = mem_zalloc(sizeof(*one) + address.len);
    if (one == NULL) {
        return BAY_NOMEM;
    }
    one->len = address.len;
    memcpy(one->uri, address.at, address.len);
    list_push(&self->early, &one->link);
    return BAY_OK;
}

static void early_end(early *one)
{
    list_remove(&one->link);
    mem_free(one);
}

static bay_err face_subscribe(void *user, bay_str address, bool is_wanted)
{
    face *self = user;
    early *waits = early_find(self, address);
    if (waits != NULL && !is_wanted) {
        early_end(waits);
        return BAY_OK;
    }
    if (is_wanted && !self->is_settled && owner_by_list(self, address) == NULL) {
        return early_add(self, address);
    }
    upstream *owner = owner_of_resource(self, address);
    if (owner == NULL) {
        return BAY_NOTFOUND;
    }
    upstream_subscribe(owner, address, is_wanted);
    return BAY_OK;
}

void face_settle(face *self)
{
    list_link *link;
    self->is_settled = true;
    while ((link = list_first(&self->early)) != NULL) {
        early *one = CONTAINER_OF(link, early, link);
        bay_str address = {one->uri, one->len};
        upstream *owner = owner_of_resource(self, address);
        if (owner != NULL) {
            upstream_subscribe(owner, address, true);
        }
        early_end(one);
    }
    while ((link = list_pop(&self->waiting)) != NULL) {
        mcp_request *request = CONTAINER_OF(link, route, link)->request;
        request->user = NULL;
        face_request(self, request);
    }
}

static const mcp_service face_service = {
    .request = face_request,
    .cancelled = face_cancelled,
    .drained = face_drained,
    .capabilities = face_capabilities,
    .param_table = face_param_table,
    .subscribe = face_subscribe,
};

static bay_err keep_sessions(face *self, const face_options *options, mcp_server_options *engine)
{
    session_keeper_options keeper = {.face = options->only,
                                     .worker = options->worker,
                                     .loop = options->loop,
                                     .ring = options->ring,
                                     .store = options->sessions};
    bay_err err = options->ring != NULL ? session_keeper_new(&keeper, &self->keeper) : BAY_OK;
    if (self->keeper != NULL) {
        engine->keeper = &session_keeper_ops;
        engine->keeper_user = self->keeper;
    }
    return err;
}

bay_err face_new(const face_options *options, face **out)
{
    face *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    const config_limits *limits = &options->config->limits;
    self->config = options->config;
    self->loop = options->loop;
    self->worker = options->worker;
    self->ring = options->ring;
    list_init(&self->waiting);
    list_init(&self->early);
    parked_init(self);
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
        .json = {limits->message_bytes, limits->json_depth, limits->json_values},
    };
    bay_err err = keep_sessions(self, options, &engine);
    if (err == BAY_OK) {
        err = mcp_server_new(&engine, &face_service, self, &self->engine);
    }
    if (err == BAY_OK && options->only.len > 0) {
        self->only = mem_dup(options->only.at, options->only.len);
        err = self->only != NULL ? BAY_OK : BAY_NOMEM;
    }
    if (err != BAY_OK) {
        face_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void face_free(face *self)
{
    if (self == NULL) {
        return;
    }
    if (self->engine != NULL) {
        mcp_server_free(self->engine);
    }
    session_keeper_free(self->keeper);
    parked_fini(self);
    task_book_free(self->tasks);
    list_link *link;
    while ((link = list_first(&self->early)) != NULL) {
        early_end(CONTAINER_OF(link, early, link));
    }
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        catalog_view_fini(&self->views[kind]);
    }
    catalog_roster_fini(&self->roster);
    buf_fini(&self->scratch);
    mem_free(self->only);
    mem_free(self);
}

mcp_server *face_engine(face *self)
{
    return self->engine;
}

session_keeper *face_keeper(face *self)
{
    return self->keeper;
}

void face_set_ring(face *self, const seal_ring *ring)
{
    self->ring = ring;
    if (self->keeper != NULL && ring != NULL) {
        session_keeper_set_ring(self->keeper, ring, self->engine);
    }
}

size_t face_count(const face *self, listing_kind kind)
{
    return catalog_view_count(&self->views[kind]);
}

bay_str face_shown(const face *self, listing_kind kind, size_t index)
{
    return catalog_view_at(&self->views[kind], index)->shown;
}

void face_updated(face *self, bay_str address)
{
    mcp_server_resource_updated(self->engine, address);
}

static uint64_t now_of(const face *self)
{
    return self->loop != NULL ? loop_now_ms(self->loop) : 0;
}

static void tell_changed(face *self, listing_kind kind)
{
    static const mcp_change changes[LISTING_KINDS] = {
        [LISTING_TOOLS] = MCP_CHANGE_TOOLS,
        [LISTING_RESOURCES] = MCP_CHANGE_RESOURCES,
        [LISTING_TEMPLATES] = MCP_CHANGE_RESOURCES,
        [LISTING_PROMPTS] = MCP_CHANGE_PROMPTS,
    };
    if (self->is_settled) {
        mcp_server_changed(self->engine, changes[kind]);
    }
}

static void say_stays(listing_kind kind, bay_err err)
{
    LOG(LOG_ERROR, "catalog", "the list of %.*s could not be rebuilt: %s; the earlier one stays",
        BAY_STR(listing_result_key(kind)), bay_err_text(err));
}

void face_refresh(face *self, listing_kind kind, const catalog_source *sources, size_t count)
{
    catalog_view *view = &self->views[kind];
    uint64_t before = catalog_view_id(view);
    for (size_t i = 0; i < count; i++) {
        catalog_source *known =
            catalog_roster_find(&self->roster, upstream_name(sources[i].upstream));
        if (known == NULL || known->upstream != sources[i].upstream) {
            continue; /* it is on its way in or out */
        }
        known->listings[kind] = sources[i].listings[kind];
        bay_err err =
            catalog_view_refresh(view, (size_t)(known - self->roster.sources), now_of(self));
        if (err != BAY_OK) {
            say_stays(kind, err);
        }
    }
    if (catalog_view_id(view) != before) {
        tell_changed(self, kind);
    }
}

void face_forget_sources(face *self, const config *settings)
{
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        catalog_view_fini(&self->views[kind]);
    }
    catalog_roster_fini(&self->roster);
    self->config = settings;
}

bay_err face_set_sources(face *self, const config *settings, const catalog_source *sources,
                         size_t count)
{
    catalog_roster next;
    bay_err err = catalog_roster_init(&next, sources, count);
    if (err != BAY_OK) {
        face_forget_sources(self, settings);
        return err;
    }
    catalog_roster old = self->roster;
    self->roster = next;
    self->config = settings;
    catalog_options options = {
        .separator = self->only != NULL ? (bay_str){NULL, 0} : settings->separator,
        .bare_names = settings->bare_names,
    };
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        uint64_t before = catalog_view_id(&self->views[kind]);
        bay_err kind_err =
            catalog_view_reset(&self->views[kind], &self->roster, &options, now_of(self));
        if (kind_err != BAY_OK) {
            say_stays(kind, kind_err);
            catalog_view_fini(&self->views[kind]); /* its servers may be about to leave */
            err = kind_err;
        }
        if (catalog_view_id(&self->views[kind]) != before) {
            tell_changed(self, kind);
        }
    }
    catalog_roster_fini(&old);
    return err;
}

void face_tick(face *self, uint64_t now_ms)
{
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        catalog_view_tick(&self->views[kind], now_ms);
    }
    mcp_server_tick(self->engine, now_ms);
}
