/* The lists of an endpoint: what changes them, who is told, how they are answered. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "endpoint/endpoint_parts.h"

enum {
    BOUND_BYTES = PRINCIPAL_IDENTITY_BYTES + 4096, /* of what a cursor is bound to */
    TELL_MS = 100, /* between two rounds of telling clients of changes */
    MOST_TTL_MS = 24 * 3600 * 1000,
    META_TTL_MS = 3600 * 1000, /* only a reload changes them */
};

static const listing_kind kind_of_method[MCP_METHOD_COUNT] = {
    [MCP_TOOLS_LIST] = LISTING_TOOLS,
    [MCP_RESOURCES_LIST] = LISTING_RESOURCES,
    [MCP_RESOURCES_TEMPLATES_LIST] = LISTING_TEMPLATES,
    [MCP_PROMPTS_LIST] = LISTING_PROMPTS,
};

/* mcp 2026-07-28 server/utilities/caching: what is left of the least time that any of its servers
 * gave; 0 when one gave none. */
static uint32_t ttl_left(const endpoint *self, listing_kind kind)
{
    uint64_t now_ms = endpoint_now_ms(self);
    uint64_t least_ms = UINT64_MAX;
    for (size_t i = 0; i < self->servers.count; i++) {
        uint64_t until_ms = self->servers.sources[i].fresh_until_ms[kind];
        least_ms = until_ms < least_ms ? until_ms : least_ms;
    }
    if (least_ms == UINT64_MAX || least_ms <= now_ms) {
        return 0;
    }
    return least_ms - now_ms < MOST_TTL_MS ? (uint32_t)(least_ms - now_ms) : MOST_TTL_MS;
}

static void refuse_cursor(mcp_request *request)
{
    mcp_request_error(request, RPC_INVALID_PARAMS, STR("Invalid cursor: list from the start"),
                      (bay_str){NULL, 0});
}

typedef struct page_sight {
    const endpoint *endpoint;
    const call_context *call;
    listing_kind kind;
} page_sight;

static bool page_shows(void *user, const catalog_entry *entry)
{
    const page_sight *self = user;
    return endpoint_shows(self->endpoint, self->call, self->kind, entry);
}

static bay_err write_page(endpoint *self, const mcp_request *request, listing_kind kind)
{
    buf bound;
    page_sight page = {self, &request->call, kind};
    catalog_sight sight = {endpoint_has_rules(&request->call) ? page_shows : NULL, &page};
    buf_init(&bound, BOUND_BYTES);
    buf_str(&bound, str_of(self->only));
    buf_char(&bound, '\0');
    buf_str(&bound, str_of(self->profile));
    buf_char(&bound, '\0');
    buf_str(&bound, principal_binding(request->principal));
    buf_clear(&self->scratch);
    catalog_cursors cursors = {self->ring, buf_view(&bound)};
    bool is_older = kind == LISTING_TOOLS && request->revision->era == MCP_LEGACY;
    bay_err err = bound.err;
    if (err == BAY_OK) {
        err = catalog_view_page(own_lists_view(self, request->session, kind), &cursors,
                                json_get(request->message.params, STR("cursor")),
                                self->config->limits.page_size, is_older, sight, &self->scratch);
    }
    buf_fini(&bound);
    return err;
}

static void answer_meta_tools(mcp_request *request)
{
    if (!json_is(json_get(request->message.params, STR("cursor")), JSON_MISSING)) {
        refuse_cursor(request);
        return;
    }
    request->ttl_ms = META_TTL_MS;
    mcp_request_result_members(request, meta_tools_list());
}

void endpoint_answer_list(endpoint *self, mcp_request *request)
{
    listing_kind kind = kind_of_method[request->method->id];
    if (kind == LISTING_TOOLS && self->is_searched) {
        answer_meta_tools(request);
        return;
    }
    bay_err err = write_page(self, request, kind);
    if (err == BAY_ERR_INVALID) {
        refuse_cursor(request);
    } else if (err != BAY_OK) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("The list does not fit into memory"),
                          (bay_str){NULL, 0});
    } else {
        request->ttl_ms = ttl_left(self, kind);
        mcp_request_result_members(request, buf_view(&self->scratch));
    }
}

size_t endpoint_count(const endpoint *self, listing_kind kind)
{
    return catalog_view_count(&self->views[kind]);
}

endpoint_figures endpoint_figures_of(endpoint *self)
{
    endpoint_figures out = {.sessions = mcp_server_session_count(endpoint_engine(self)),
                            .tasks = self->tasks != NULL ? self->tasks->count(self) : 0};
    LIST_EACH(at, &self->suspended.order)
    {
        out.suspended_calls++;
    }
    return out;
}

bay_str endpoint_shown(const endpoint *self, listing_kind kind, size_t index)
{
    return catalog_view_at(&self->views[kind], index)->shown;
}

/* ---- telling of changes ------------------------------------------------------------------------
 */

void endpoint_tell_now(void *argument)
{
    endpoint *self = argument;
    mcp_change change = (mcp_change)self->changes_due;
    self->changes_due = 0;
    self->told_ms = endpoint_now_ms(self);
    mcp_server_changed(self->engine, change);
}

/* At once, or together with others a moment after the last time: with many servers that come at
 * once each client is told ten times a second and no more. */
static void tell_changed(endpoint *self, listing_kind kind)
{
    if (!self->is_settled || (kind == LISTING_TOOLS && self->is_searched)) {
        return; /* the meta tools stay as they are */
    }
    bool is_waiting = self->changes_due != 0;
    self->changes_due |= listing_change(kind);
    uint64_t due_ms = self->told_ms + TELL_MS;
    if (is_waiting) {
        return;
    }
    if (self->loop == NULL || self->told_ms == 0 || due_ms <= loop_now_ms(self->loop) ||
        loop_timer_start(self->loop, &self->tell, due_ms - loop_now_ms(self->loop)) != BAY_OK) {
        endpoint_tell_now(self);
    }
}

/* ---- servers -----------------------------------------------------------------------------------
 */

static void say_stays(listing_kind kind, bay_err err)
{
    LOG(LOG_ERROR, "catalog", "the list of %.*s could not be rebuilt: %s; the earlier one stays",
        BAY_STR(listing_result_key(kind)), bay_err_text(err));
}

/* NULL: it is on its way in or out. */
static catalog_source *known_source(const endpoint *self, const catalog_source *like)
{
    catalog_source *known = catalog_servers_find(&self->servers, upstream_name(like->upstream));
    return known != NULL && known->upstream == like->upstream ? known : NULL;
}

static void set_config(endpoint *self, const config *settings)
{
    self->config = settings;
    self->part =
        self->profile != NULL ? config_profile_find(settings, str_of(self->profile)) : NULL;
}

catalog_options endpoint_catalog_options(const endpoint *self)
{
    return (catalog_options){
        .separator = self->only != NULL ? (bay_str){NULL, 0} : self->config->separator,
        .bare_names = self->config->bare_names,
        .profile = self->part,
        .page_size = self->config->limits.page_size,
        .is_quiet = self->worker > 0 || self->only != NULL || self->profile != NULL,
    };
}

/* A view that could not be built when the servers became others is built now. */
static bay_err bring_up_to_date(endpoint *self, catalog_view *view, size_t index)
{
    if (view->servers != NULL) {
        return catalog_view_refresh(view, index, endpoint_now_ms(self));
    }
    catalog_options options = endpoint_catalog_options(self);
    return catalog_view_reset(view, &self->servers, &options, endpoint_now_ms(self));
}

void endpoint_refresh(endpoint *self, listing_kind kind, const catalog_source *sources,
                      size_t count)
{
    catalog_view *view = &self->views[kind];
    uint64_t before = catalog_view_id(view);
    for (size_t i = 0; i < count; i++) {
        catalog_source *known = known_source(self, &sources[i]);
        if (known == NULL) {
            continue;
        }
        known->listings[kind] = sources[i].listings[kind];
        known->fresh_until_ms[kind] = sources[i].fresh_until_ms[kind];
        known->read = sources[i].read;
        known->is_held = sources[i].is_held;
        bay_err err = bring_up_to_date(self, view, (size_t)(known - self->servers.sources));
        if (err != BAY_OK) {
            say_stays(kind, err);
        }
    }
    own_lists_follow(self);
    if (catalog_view_id(view) != before) {
        tell_changed(self, kind);
        endpoint_subscriptions_settle(self);
    }
    endpoint_awaited(self);
}

void endpoint_keep_fresh(endpoint *self, listing_kind kind, const catalog_source *source)
{
    catalog_source *known = known_source(self, source);
    if (known != NULL) {
        known->fresh_until_ms[kind] = source->fresh_until_ms[kind];
        known->read = source->read;
    }
    endpoint_awaited(self);
}

void endpoint_announced(endpoint *self, listing_kind kind, const catalog_source *source)
{
    const catalog_source *known = known_source(self, source);
    for (listing_kind at = 0; known != NULL && at < LISTING_KINDS; at++) {
        if (listing_change(at) == listing_change(kind) &&
            catalog_view_shows(&self->views[at], (size_t)(known - self->servers.sources))) {
            tell_changed(self, kind);
            return;
        }
    }
}

void endpoint_forget_sources(endpoint *self, const config *settings)
{
    user_logins_end(self);
    endpoint_subscriptions_forget(self);
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        catalog_view_fini(&self->views[kind]);
    }
    catalog_servers_fini(&self->servers);
    set_config(self, settings);
    own_lists_follow(self);
    endpoint_server_changed(self, NULL);
}

static void set_mode(endpoint *self, const config_profile *profile)
{
    bool was_searched = self->is_searched;
    config_tool_mode mode = profile != NULL      ? profile->tool_mode
                            : self->only != NULL ? CONFIG_TOOLS_ALL
                                                 : self->config->tool_mode;
    self->is_searched = false;
    if (was_searched != (mode == CONFIG_TOOLS_SEARCH)) {
        tell_changed(self, LISTING_TOOLS);
    }
    self->is_searched = mode == CONFIG_TOOLS_SEARCH;
}

bay_err endpoint_set_sources(endpoint *self, const config *settings, const catalog_source *sources,
                             size_t count)
{
    catalog_servers next;
    bay_err err = catalog_servers_init(&next, sources, count);
    if (err != BAY_OK) {
        endpoint_forget_sources(self, settings);
        return err;
    }
    user_logins_end(self);
    catalog_servers old = self->servers;
    bool has_other_rules =
        policy_rules_hash(self->config->rules) != policy_rules_hash(settings->rules);
    self->servers = next;
    set_config(self, settings);
    catalog_options options = endpoint_catalog_options(self);
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        uint64_t before = catalog_view_id(&self->views[kind]);
        bay_err kind_err =
            catalog_view_reset(&self->views[kind], &self->servers, &options, endpoint_now_ms(self));
        if (kind_err != BAY_OK) {
            say_stays(kind, kind_err);
            catalog_view_fini(&self->views[kind]); /* its servers may be about to leave */
            err = kind_err;
        }
        if (catalog_view_id(&self->views[kind]) != before || has_other_rules) {
            tell_changed(self, kind); /* what clients see of it, too */
        }
    }
    own_lists_follow(self);
    catalog_servers_fini(&old);
    set_mode(self, self->part);
    endpoint_server_changed(self, NULL);
    endpoint_subscriptions_move(self);
    return err;
}

void endpoint_tick(endpoint *self, uint64_t now_ms)
{
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        catalog_view_tick(&self->views[kind], now_ms);
    }
    mcp_server_tick(self->engine, now_ms);
}
