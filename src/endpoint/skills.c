#include "endpoint/skills.h"

#include "base/log.h"
#include "base/str.h"
#include "catalog/filter.h"
#include "endpoint/endpoint_parts.h"
#include "sessions/token.h"
#include "json/build.h"

enum { CURSOR_BYTES = 16 * 1024, PAGE_BYTES = 1 << 30 };

/* A request on its way from server to server; in the request's memory. */
typedef struct skill_walk {
    route *way;
    bay_str server; /* who is asked now */
    bay_str uri;    /* that is looked for; empty: a list is read */
    bay_str owner;  /* who was asked first, because its resource it is; empty: nobody */
    bool asks_owner;
} skill_walk;

static bool has_skills(const upstream *of)
{
    return upstream_has(of, STR("extensions." MCP_EXTENSION_SKILLS));
}

static void skills_refuse(mcp_request *request, int code, const char *text)
{
    mcp_request_error(request, code, str_of(text), (bay_str){NULL, 0});
}

static bool shows(mcp_request *request, const upstream *of, bay_str uri)
{
    return uri.len == 0 || (filter_shows(NULL, upstream_config(of), LISTING_RESOURCES, uri, uri) &&
                            endpoint_sees_skill(&request->call, of, uri));
}

/* The first server with skills that stands behind `after` (empty: the first of all). `uri`: and
 * may show it. */
static catalog_source *next_source(const endpoint *self, mcp_request *request, bay_str after,
                                   bay_str except, bay_str uri)
{
    bool is_behind = after.len == 0;
    for (size_t i = 0; i < self->servers.count; i++) {
        catalog_source *source = &self->servers.sources[i];
        bay_str name = upstream_name(source->upstream);
        if (is_behind && has_skills(source->upstream) && shows(request, source->upstream, uri) &&
            !(except.len > 0 && str_eq(name, except))) {
            return source;
        }
        is_behind = is_behind || str_eq(name, after);
    }
    return NULL;
}

/* ---- cursors: a server's name and its own cursor --------------------------------------------- */

static bay_err write_cursor(const endpoint *self, const mcp_request *request, bay_str server,
                            json_val own, buf *out)
{
    buf plain;
    buf_init(&plain, CURSOR_BYTES);
    buf_str(&plain, server);
    buf_char(&plain, '\0');
    buf_str(&plain, json_raw(own));
    bay_err err = plain.err;
    if (err == BAY_OK) {
        err = self->ring != NULL
                  ? token_seal(self->ring, "skills", self->worker,
                               principal_binding(request->principal), buf_view(&plain), 0, out)
                  : BAY_ERR_UNSUPPORTED;
    }
    buf_fini(&plain);
    return err;
}

/* `out_own`: raw, or empty. BAY_ERR_DENIED: none of ours. */
static bay_err read_cursor(const endpoint *self, const mcp_request *request, json_val cursor,
                           bay_str *out_server, bay_str *out_own)
{
    bay_str text;
    bay_str plain;
    buf opened;
    if (!json_str_plain(cursor, &text) || self->ring == NULL || text.len > 4 * CURSOR_BYTES) {
        return BAY_ERR_DENIED;
    }
    buf_init(&opened, CURSOR_BYTES);
    bay_err err = token_open(self->ring, "skills", principal_binding(request->principal), text,
                             loop_time_ms(), &opened);
    err = err == BAY_OK ? arena_dup(request->memory, buf_view(&opened), &plain) : err;
    buf_fini(&opened);
    if (err == BAY_OK) {
        *out_server = str_head(plain, str_find(plain, '\0'));
        *out_own = str_from(plain, out_server->len + 1);
    }
    return err;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void walk_end(skill_walk *self, const mcp_outcome *outcome)
{
    endpoint *of = self->way->endpoint;
    mcp_request *request = self->way->request;
    route_end(self->way);
    route_answer(of, request, self->server, outcome);
}

static void walk_to(skill_walk *self, const catalog_source *to)
{
    self->server = upstream_name(to->upstream);
    mcp_outcome outcome = {
        .kind = MCP_OUTCOME_FAILED, .err = BAY_ERR_NOMEM, .text = "out of memory"};
    /* a copy: the server may leave while it is asked */
    if (arena_dup(self->way->request->memory, self->server, &self->server) != BAY_OK) {
        self->server = STR("");
        walk_end(self, &outcome);
        return;
    }
    route_send(self->way, to->upstream);
}

static void walk_notified(void *user, mcp_method_id method, json_val params)
{
    (void)user; /* lists and look-ups report nothing */
    (void)method;
    (void)params;
}

/* ---- skills/list ----------------------------------------------------------------------------- */

/* The page with where to go on; `result` missing: an empty page. */
static bay_err write_page(skill_walk *self, json_val result, bay_str server, json_val own,
                          json_val *out)
{
    static const bay_str cursor = STR_INIT("nextCursor");
    route *way = self->way;
    buf token;
    json_builder made;
    buf_init(&token, 4 * CURSOR_BYTES);
    bay_err err = write_cursor(way->endpoint, way->request, server, own, &token);
    if (err == BAY_OK) {
        json_writer *to = json_builder_init(&made, way->request->memory, PAGE_BYTES);
        json_open_object(to);
        if (json_is(result, JSON_MISSING)) {
            json_key_lit(to, "skills");
            json_open_array(to);
            json_close_array(to);
        }
        json_put_members(to, result, &cursor, 1);
        json_key(to, cursor);
        json_put_str(to, buf_view(&token));
        json_close_object(to);
        err = json_builder_end(&made, out);
    }
    buf_fini(&token);
    return err;
}

static bool is_shown(mcp_request *request, const catalog_source *of, json_val skill)
{
    bay_str uri;
    json_val value = json_get(skill, STR("uri"));
    if (!json_is(value, JSON_STRING)) {
        return !endpoint_has_rules(&request->call); /* on which rules could not decide */
    }
    return json_str(value, request->memory, &uri) == BAY_OK && shows(request, of->upstream, uri);
}

/* The page without the items whose URIs are not to be shown; as it is where there are none. */
static bay_err drop_hidden(skill_walk *self, bay_str items, json_val *inout)
{
    mcp_request *request = self->way->request;
    arena *memory = request->memory;
    const catalog_source *of = catalog_servers_find(&self->way->endpoint->servers, self->server);
    bool is_whole = of != NULL; /* who has left shows nothing */
    json_builder made;
    json_iter it = json_iter_of(json_get(*inout, items));
    json_writer *out = json_builder_init(&made, memory, PAGE_BYTES);
    json_open_object(out);
    json_key(out, items);
    json_open_array(out);
    while (of != NULL && json_next(&it)) {
        if (is_shown(request, of, it.value)) {
            json_put_val(out, it.value);
        } else {
            is_whole = false;
        }
    }
    json_close_array(out);
    json_put_members(out, *inout, &items, 1);
    json_close_object(out);
    if (is_whole) {
        json_builder_drop(&made);
        return BAY_OK;
    }
    return json_builder_end(&made, inout);
}

static void list_done(void *user, const mcp_outcome *outcome)
{
    skill_walk *self = user;
    mcp_outcome told = *outcome;
    bool is_page = outcome->kind == MCP_OUTCOME_RESULT;
    json_val own = is_page ? json_get(outcome->result, STR("nextCursor")) : JSON_NONE;
    bool has_own = json_is(own, JSON_STRING);
    catalog_source *next = has_own
                               ? NULL
                               : next_source(self->way->endpoint, self->way->request, self->server,
                                             (bay_str){NULL, 0}, (bay_str){NULL, 0});
    mcp_request *request = self->way->request;
    /* one server that fails does not take the others along; and rules may hide who that was */
    bool is_passed = !json_is(json_get(request->message.params, STR("cursor")), JSON_MISSING) ||
                     endpoint_has_rules(&request->call);
    if (!is_page && (is_passed || next != NULL)) {
        LOG(LOG_WARN, "catalog", "%.*s: its skills could not be listed", BAY_STR(self->server));
    }
    if (!is_page && is_passed && next == NULL) {
        route_end(self->way);
        mcp_request_result_members(request, STR("\"skills\":[]"));
        return;
    }
    bay_err err = is_page ? drop_hidden(self, STR("skills"), &told.result) : BAY_OK;
    if (err == BAY_OK && (has_own || next != NULL)) {
        told.kind = MCP_OUTCOME_RESULT;
        err = write_page(self, is_page ? told.result : JSON_NONE,
                         has_own ? self->server : upstream_name(next->upstream), own, &told.result);
    }
    if (err != BAY_OK) {
        told.kind = MCP_OUTCOME_FAILED;
        told.err = err;
        told.text = bay_err_text(err);
    }
    walk_end(self, &told);
}

static const upstream_call_events list_events = {.notified = walk_notified, .done = list_done};

/* The server's own cursor in place of ours, as our token brought it back. */
static bay_err rewrite_cursor(skill_walk *self, bay_str own)
{
    static const bay_str cursor = STR_INIT("cursor");
    mcp_call_spec *spec = &self->way->call.spec;
    json_builder made;
    json_writer *out = json_builder_init(&made, self->way->request->memory, PAGE_BYTES);
    json_open_object(out);
    json_put_members(out, spec->params, &cursor, 1);
    if (own.len > 0) {
        json_key(out, cursor);
        json_put_raw(out, own);
    }
    json_close_object(out);
    return json_builder_end(&made, &spec->params);
}

static void begin_list(skill_walk *self)
{
    route *way = self->way;
    endpoint *of = way->endpoint;
    mcp_request *request = way->request;
    json_val cursor = json_get(request->message.params, STR("cursor"));
    bay_str server = {NULL, 0};
    bay_str own = {NULL, 0};
    catalog_source *source = NULL;
    bay_err err = BAY_OK;
    if (json_is(cursor, JSON_MISSING)) {
        source =
            next_source(of, request, (bay_str){NULL, 0}, (bay_str){NULL, 0}, (bay_str){NULL, 0});
    } else {
        err = read_cursor(of, request, cursor, &server, &own);
        source = err == BAY_OK ? catalog_servers_find(&of->servers, server) : NULL;
        err = err == BAY_OK && source != NULL ? rewrite_cursor(self, own) : err;
    }
    if (err == BAY_OK && source != NULL) {
        way->call.events = &list_events;
        walk_to(self, source);
        return;
    }
    route_end(way);
    if (err == BAY_OK) { /* nobody has any, or the server has left meanwhile */
        mcp_request_result_members(request, STR("\"skills\":[]"));
    } else if (err == BAY_ERR_NOMEM) {
        endpoint_refuse_memory(request);
    } else {
        skills_refuse(request, RPC_INVALID_PARAMS, "Invalid cursor: list from the start");
    }
}

/* ---- skills/get and resources/directory/read ------------------------------------------------- */

static void find_done(void *user, const mcp_outcome *outcome)
{
    skill_walk *self = user;
    bool is_unknown =
        outcome->kind == MCP_OUTCOME_ERROR && (outcome->error_code == RPC_INVALID_PARAMS ||
                                               outcome->error_code == MCP_RESOURCE_NOT_FOUND ||
                                               outcome->error_code == RPC_METHOD_NOT_FOUND);
    catalog_source *next = NULL;
    if (is_unknown) {
        bay_str after = self->asks_owner ? (bay_str){NULL, 0} : self->server;
        next = next_source(self->way->endpoint, self->way->request, after, self->owner, self->uri);
    }
    self->asks_owner = false;
    mcp_outcome told = *outcome;
    if (next == NULL && outcome->kind == MCP_OUTCOME_RESULT &&
        json_is(json_get(outcome->result, STR("resources")), JSON_ARRAY) &&
        drop_hidden(self, STR("resources"), &told.result) != BAY_OK) {
        told = (mcp_outcome){
            .kind = MCP_OUTCOME_FAILED, .err = BAY_ERR_NOMEM, .text = "out of memory"};
    }
    if (next != NULL) {
        walk_to(self, next);
    } else {
        walk_end(self, &told);
    }
}

static const upstream_call_events find_events = {.notified = walk_notified, .done = find_done};

static void begin_find(skill_walk *self)
{
    route *way = self->way;
    mcp_request *request = way->request;
    bay_str uri;
    if (json_str(json_get(request->message.params, STR("uri")), request->memory, &uri) != BAY_OK) {
        route_end(way);
        skills_refuse(request, RPC_INVALID_PARAMS, "uri is not a string");
        return;
    }
    self->uri = uri;
    const catalog_entry *entry = endpoint_find(way->endpoint, LISTING_RESOURCES, uri);
    const catalog_source *source = NULL;
    if (entry != NULL && has_skills(entry->upstream) && shows(request, entry->upstream, uri)) {
        source = catalog_servers_find(&way->endpoint->servers, upstream_name(entry->upstream));
    }
    if (source != NULL) {
        self->asks_owner =
            arena_dup(request->memory, upstream_name(source->upstream), &self->owner) == BAY_OK;
    }
    source = self->asks_owner
                 ? source
                 : next_source(way->endpoint, request, (bay_str){NULL, 0}, (bay_str){NULL, 0}, uri);
    if (source == NULL) {
        route_end(way);
        skills_refuse(request, RPC_INVALID_PARAMS, "No server of this gateway knows the URI");
        return;
    }
    way->call.events = &find_events;
    walk_to(self, source);
}

bool skills_are_shown(const endpoint *self)
{
    if (self->profile != NULL) {
        return false; /* it names what it shows, and skills have no names in it */
    }
    for (size_t i = 0; i < self->servers.count; i++) {
        if (has_skills(self->servers.sources[i].upstream)) {
            return true;
        }
    }
    return false;
}

void skills_request(endpoint *self, mcp_request *request)
{
    endpoint_about_method(request);
    if (!mcp_request_admit(request, NULL)) { /* which servers know of it is found out by asking */
        return;
    }
    route *way = route_new(self, request);
    if (way == NULL) {
        return;
    }
    skill_walk *walk = arena_zalloc(request->memory, sizeof(*walk));
    if (walk == NULL) {
        route_end(way);
        endpoint_refuse_memory(request);
        return;
    }
    walk->way = way;
    way->call.user = walk;
    way->call.affinity.inputs = 0; /* nothing is asked meanwhile */
    if (request->method->id == MCP_SKILLS_LIST) {
        begin_list(walk);
    } else {
        begin_find(walk);
    }
}
