/* Lists: fetched page by page, kept as immutable snapshots, given out while they are fresh.
 *
 * A list is fresh until its first page's time to live is over (2026-07-28), or for as long as a
 * change would be heard of (sessions); a list_changed ends both. Whatever its age, the latest list
 * of tools also says which arguments travel in header fields (Mcp-Param-*) and which tools may be
 * called twice. Over HTTP with 2026-07-28 it is fetched before the first call of a tool, because
 * the header fields of annotated arguments are a MUST there and nothing else tells of them.
 *
 * One fetch of a kind is under way at a time; it belongs to its cache. */
#include <stdio.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "mcp/icons.h"
#include "sdk/client_parts.h"
#include "json/build.h"

/* What one sync caller waits for. */
typedef struct list_wait {
    bool is_done;
    bay_list *list; /* its own reference */
    bay_diag diag;
} list_wait;

/* … and what one who does not wait. In client->listings until `listed` runs. */
typedef struct listing {
    list_link link;
    client_cache *cache;
    bay_listed_fn listed;
    void *user;
    bool is_due;
    bay_list *list; /* due: its own reference, or NULL */
    bay_diag diag;
} listing;

typedef struct fetch {
    bay_client *client;
    client_cache *cache;
    bay_kind kind;
    json_builder entries; /* an array, open until the last page */
    map cursors;          /* that led to a page: a server that repeats one would never end */
    size_t pages;
    size_t count;
    uint64_t fresh_until;
    uint64_t hearing;
    uint32_t generation;
    list_wait *waiter; /* NULL: requests only */
} fetch;

static const struct {
    bay_kind kind;
    const char *method;
    bay_str member;
    mcp_change change;
} kinds[CLIENT_KINDS] = {
    {BAY_KIND_TOOLS, "tools/list", STR_INIT("tools"), MCP_CHANGE_TOOLS},
    {BAY_KIND_PROMPTS, "prompts/list", STR_INIT("prompts"), MCP_CHANGE_PROMPTS},
    {BAY_KIND_RESOURCES, "resources/list", STR_INIT("resources"), MCP_CHANGE_RESOURCES},
    {BAY_KIND_TEMPLATES, "resources/templates/list", STR_INIT("resourceTemplates"),
     MCP_CHANGE_RESOURCES},
    {BAY_KIND_SKILLS, "skills/list", STR_INIT("skills"), MCP_CHANGE_RESOURCES},
};

static int kind_index(bay_kind kind)
{
    for (int i = 0; i < CLIENT_KINDS; i++) {
        if (kinds[i].kind == kind) {
            return i;
        }
    }
    return -1;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static bay_list *list_ref(bay_list *self)
{
    atomic_fetch_add(&self->references, 1);
    return self;
}

void bay_list_free(bay_list *self)
{
    if (self != NULL && atomic_fetch_sub(&self->references, 1) == 1) {
        for (size_t i = 0; self->has_outputs && i < self->count; i++) {
            schema_free(self->entries[i].output);
        }
        arena_fini(&self->memory);
        pthread_mutex_destroy(&self->lock);
        mem_free(self);
    }
}

static bay_err take_text(bay_list *self, json_val value, bay_str *out)
{
    bay_err err = json_str(value, &self->memory, out);
    if (err == BAY_ERR_TYPE) {
        *out = (bay_str){NULL, 0};
        err = BAY_OK;
    }
    return err;
}

static bay_err reject(bay_list *self, bay_str name, const char *why)
{
    buf text;
    buf_init(&text, CLIENT_MAX_TEXT);
    buf_str(&text, name.len > 0 ? str_head(name, 200) : STR("(without a name)"));
    buf_lit(&text, ": ");
    buf_str(&text, str_of(why));
    bay_err err = text.err;
    if (err == BAY_OK) {
        err = arena_dup(&self->memory, buf_view(&text), &self->rejected[self->rejected_count]);
    }
    buf_fini(&text);
    if (err == BAY_OK) {
        bay_str told = self->rejected[self->rejected_count];
        LOG(LOG_WARN, "client", "left out of the list: %.*s", BAY_STR(str_head(told, 400)));
        self->rejected_names[self->rejected_count++] = name;
    }
    return err;
}

/* The name, title and so on of one entry. */
static bay_err read_texts(bay_list *self, json_val value, list_entry *out)
{
    bool is_skill = self->kind == BAY_KIND_SKILLS;
    bool is_template = self->kind == BAY_KIND_TEMPLATES;
    json_val about = is_skill ? json_get(value, STR("frontmatter")) : value;
    json_val title = json_get(value, STR("title"));
    if (self->kind == BAY_KIND_TOOLS && !json_is(title, JSON_STRING)) {
        title = json_get(json_get(value, STR("annotations")), STR("title"));
    }
    json_val meta = json_get(value, STR("_meta"));
    json_val ui = json_get(json_get(meta, STR("ui")), STR("resourceUri"));
    if (!json_is(ui, JSON_STRING)) {
        ui = json_get(meta, STR("ui/resourceUri")); /* as earlier drafts of the extension had it */
    }
    bay_err err = take_text(self, json_get(about, STR("name")), &out->name);
    err = err == BAY_OK ? take_text(self, title, &out->title) : err;
    err = err == BAY_OK ? take_text(self, json_get(about, STR("description")), &out->description)
                        : err;
    err = err == BAY_OK
              ? take_text(self, json_get(value, is_template ? STR("uriTemplate") : STR("uri")),
                          &out->uri)
              : err;
    err = err == BAY_OK ? take_text(self, ui, &out->ui) : err;
    out->title = out->title.len > 0 ? out->title : out->name;
    out->json = json_raw(value);
    out->value = value;
    return err;
}

static mcp_shape_id shape_of_kind(bay_kind kind)
{
    return kind == BAY_KIND_TOOLS       ? MCP_SHAPE_TOOL
           : kind == BAY_KIND_PROMPTS   ? MCP_SHAPE_PROMPT
           : kind == BAY_KIND_RESOURCES ? MCP_SHAPE_RESOURCE
           : kind == BAY_KIND_TEMPLATES ? MCP_SHAPE_TEMPLATE
                                        : MCP_SHAPE_NONE;
}

static bool has_output(const list_entry *entry)
{
    return !json_is(json_get(entry->value, STR("outputSchema")), JSON_MISSING);
}

/* mcp 2026-07-28 server/tools, x-mcp-header: a tool that breaks the rules is left out */
static bay_err read_entry(bay_list *self, json_val value, bool checks_headers)
{
    bay_diag diag = {0};
    list_entry *entry = &self->entries[self->count];
    bay_err err = read_texts(self, value, entry);
    if (err != BAY_OK) {
        return err;
    }
    if (!json_is(value, JSON_OBJECT) || (entry->name.len == 0 && entry->uri.len == 0)) {
        return reject(self, entry->name, "it has neither a name nor a URI");
    }
    mcp_shape_fault fault;
    if (!mcp_shape_item(shape_of_kind(self->kind), MCP_LATEST, value, &fault)) {
        char why[MCP_PLACE_BYTES + MCP_SHAPE_TEXT_BYTES];
        snprintf(why, sizeof(why), "%s%s%s", fault.place, fault.place[0] != '\0' ? " " : "",
                 fault.text);
        return reject(self, entry->name.len > 0 ? entry->name : entry->uri, why);
    }
    if (self->kind == BAY_KIND_TOOLS) {
        json_val hints = json_get(value, STR("annotations"));
        entry->may_repeat = json_true(json_get(hints, STR("readOnlyHint"))) ||
                            json_true(json_get(hints, STR("idempotentHint")));
        self->has_outputs = self->has_outputs || has_output(entry);
    }
    if (checks_headers) {
        err = mcp_param_table_read(&entry->params, json_get(value, STR("inputSchema")),
                                   &self->memory, &diag);
        if (err == BAY_ERR_PROTOCOL) {
            return reject(self, entry->name, diag.text);
        }
    }
    self->count += err == BAY_OK;
    return err;
}

/* Of the entries, an array, which the list keeps a copy of. */
static bay_err list_new(bay_kind kind, json_builder *entries, bool checks_headers, bay_list **out)
{
    bay_list *self = mem_zalloc(sizeof(*self));
    if (self == NULL || pthread_mutex_init(&self->lock, NULL) != 0) {
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    self->kind = kind;
    arena_init(&self->memory, CLIENT_MAX_PARSED);
    json_val root = JSON_NONE;
    bay_err err = json_builder_view(entries, &root);
    err = err == BAY_OK ? json_clone_in(root, &self->memory, &root) : err;
    size_t count = json_count(root);
    if (count > 0) {
        self->document =
            (bay_document){.doc = *root.doc, .memory = &self->memory, .lock = &self->lock};
        self->entries = arena_array(&self->memory, count, sizeof(*self->entries));
        self->rejected = arena_array(&self->memory, count, sizeof(*self->rejected));
        self->rejected_names = arena_array(&self->memory, count, sizeof(*self->rejected_names));
        if (self->entries == NULL || self->rejected == NULL || self->rejected_names == NULL) {
            err = self->memory.is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
        }
    }
    json_iter iter = json_iter_of(root);
    while (err == BAY_OK && json_next(&iter)) {
        err = read_entry(self, iter.value, checks_headers);
    }
    if (err != BAY_OK) {
        bay_list_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

/* ---- fetching -------------------------------------------------------------------------------- */

static void fetch_free(fetch *self)
{
    size_t cursor = 0;
    bay_str key;
    void *value;
    while (map_next(&self->cursors, &cursor, &key, &value)) {
        mem_free(value);
    }
    map_fini(&self->cursors);
    json_builder_drop(&self->entries);
    mem_free(self);
}

static void listing_conclude(listing *self, bay_list *made, const bay_diag *diag)
{
    self->is_due = true;
    self->list = made != NULL ? list_ref(made) : NULL;
    self->diag = *diag;
}

/* Whoever waits for this list without waiting: told at the end of the turn. */
static void listings_conclude(bay_client *client, const client_cache *cache, bay_list *made,
                              const bay_diag *diag)
{
    LIST_EACH(link, &client->listings)
    {
        listing *one = CONTAINER_OF(link, listing, link);
        if (one->cache == cache && !one->is_due) {
            listing_conclude(one, made, diag);
        }
    }
    asker_settle_soon(&client->base);
}

/* The end of a fetch: a list (taken) or a diag. */
static void fetch_end(fetch *self, bay_list *made, const bay_diag *diag)
{
    bay_client *client = self->client;
    client_cache *cache = self->cache;
    list_wait *waiter = self->waiter;
    cache->fetching = NULL;
    if (made != NULL) {
        bay_list_free(cache->list);
        cache->list = made;
        cache->fresh_until = self->fresh_until;
        cache->hearing = self->hearing;
        cache->is_stale = cache->generation != self->generation;
    } else {
        cache->is_stale = true;
        cache->refused_on = diag->code == BAY_ERR_REMOTE ? client->links : 0;
    }
    if (waiter != NULL) {
        waiter->is_done = true;
        waiter->diag = *diag;
        waiter->list = made != NULL ? list_ref(made) : NULL;
    }
    listings_conclude(client, cache, made, diag);
    bool is_tools = self->kind == BAY_KIND_TOOLS;
    fetch_free(self);
    if (is_tools) {
        sdk_requests_tools_arrived(client);
    }
}

static void fetch_fail(fetch *self, bay_err err, const char *text)
{
    bay_diag diag = {0};
    (void)diag_set(&diag, err, "%s at %.100s: %s", kinds[kind_index(self->kind)].method,
                   self->client->base.shown, text);
    fetch_end(self, NULL, &diag);
}

static void fetch_done(fetch *self)
{
    bay_list *made = NULL;
    bay_diag diag = {0};
    const bay_client *client = self->client;
    mcp_client *engine = sdk_client_engine(self->client);
    /* other carriers have no header fields, earlier revisions no annotations */
    bool checks_headers = self->kind == BAY_KIND_TOOLS && engine != NULL &&
                          mcp_client_link_kind(engine) == MCP_LINK_HTTP &&
                          client->about->revision->era == MCP_MODERN;
    json_close_array(&self->entries.writer);
    bay_err err = list_new(self->kind, &self->entries, checks_headers, &made);
    if (err != BAY_OK) {
        fetch_fail(self, err, bay_err_text(err));
        return;
    }
    fetch_end(self, made, &diag);
}

static bay_err take_entries(fetch *self, json_val entries, const char **out_why)
{
    json_iter iter = json_iter_of(entries);
    if (!json_is(entries, JSON_ARRAY)) {
        *out_why = "the result has no such list";
        return BAY_ERR_PROTOCOL;
    }
    while (json_next(&iter)) {
        if (++self->count > CLIENT_MAX_ENTRIES) {
            *out_why = "too many entries";
            return BAY_ERR_LIMIT;
        }
        if (mcp_icons_are_safe(iter.value)) {
            json_put_val(&self->entries.writer, iter.value);
        } else {
            LOG(LOG_WARN, "client",
                "an icon was left out of %s: %.*s: it is neither an https: URL nor a data: URI of "
                "an "
                "image",
                kinds[kind_index(self->kind)].method,
                BAY_STR(str_head(json_raw(json_get(iter.value, STR("name"))), 200)));
            mcp_icons_put_safe(&self->entries.writer, iter.value);
        }
    }
    bay_err err = self->entries.text.err;
    *out_why = err == BAY_ERR_LIMIT ? "the list is too large" : "out of memory";
    return err;
}

/* mcp 2026-07-28 server/utilities/caching: absent or negative is 0; each page has its own clock */
static void take_ttl(fetch *self, json_val result)
{
    int64_t ttl = 0;
    if (json_int64(json_get(result, STR("ttlMs")), &ttl) != BAY_OK || ttl < 0) {
        ttl = 0;
    }
    ttl = ttl < CLIENT_MAX_TTL_MS ? ttl : CLIENT_MAX_TTL_MS;
    uint64_t until = ttl > 0 ? loop_now_ms(self->client->base.loop) + (uint64_t)ttl : 0;
    if (self->pages == 1 || until < self->fresh_until) {
        self->fresh_until = until;
    }
}

/* JSON_NONE: this was the last page. */
static bay_err take_cursor(fetch *self, json_val cursor, json_val *out, const char **out_why)
{
    bay_str raw = json_raw(cursor);
    *out = JSON_NONE;
    if (json_is(cursor, JSON_MISSING) || json_is(cursor, JSON_NULL)) {
        return BAY_OK;
    }
    *out_why = "nextCursor is no string";
    if (!json_is(cursor, JSON_STRING)) {
        return BAY_ERR_PROTOCOL;
    }
    *out_why = "a cursor came back that had led to a page before: the list would never end";
    if (map_get(&self->cursors, raw) != NULL) {
        return BAY_ERR_PROTOCOL;
    }
    *out_why = "too many pages";
    if (self->pages >= CLIENT_MAX_PAGES) {
        return BAY_ERR_LIMIT;
    }
    *out_why = "out of memory";
    char *copy = mem_dup(raw.at, raw.len);
    bay_err err = copy != NULL ? map_put(&self->cursors, (bay_str){copy, raw.len}, copy, NULL)
                               : BAY_ERR_NOMEM;
    if (err != BAY_OK) {
        mem_free(copy);
        return err;
    }
    *out = cursor;
    return BAY_OK;
}

static bay_err fetch_page(fetch *self, json_val cursor, bay_diag *diag);

static void page_done(bay_request *request, bay_reply *reply, const bay_diag *diag, void *user)
{
    fetch *self = user;
    const char *why = "";
    json_val cursor = JSON_NONE;
    (void)request;
    if (diag->code != BAY_OK) {
        bay_reply_free(reply);
        fetch_end(self, NULL, diag);
        return;
    }
    self->pages++;
    take_ttl(self, reply->root);
    bay_err err =
        take_entries(self, json_get(reply->root, kinds[kind_index(self->kind)].member), &why);
    if (err == BAY_OK) {
        err = take_cursor(self, json_get(reply->root, STR("nextCursor")), &cursor, &why);
    }
    bay_diag next = {0};
    if (err == BAY_OK && cursor.doc != NULL) {
        err = fetch_page(self, cursor, &next);
        if (err != BAY_OK) {
            fetch_end(self, NULL, &next);
        }
    } else if (err == BAY_OK) {
        fetch_done(self);
    } else {
        fetch_fail(self, err, why);
    }
    bay_reply_free(reply);
}

/* `cursor` missing: the first page. */
static bay_err fetch_page(fetch *self, json_val cursor, bay_diag *diag)
{
    bay_request *request =
        bay_request_new(self->client, kinds[kind_index(self->kind)].method, NULL);
    if (request != NULL && cursor.doc != NULL) {
        json_builder made;
        json_writer *to = json_builder_init(&made, NULL, CLIENT_MAX_TEXT);
        json_open_object(to);
        json_key_lit(to, "cursor");
        json_put_val(to, cursor);
        json_close_object(to);
        sdk_request_set_params(request, &made);
    }
    if (request != NULL) {
        request->is_internal = true;
    }
    return bay_request_start(request, diag, page_done, self);
}

static uint64_t hearing_now(bay_client *self, int index)
{
    mcp_client *engine = self->phase == CLIENT_READY ? sdk_client_engine(self) : NULL;
    uint64_t hearing = engine != NULL ? mcp_client_hearing(engine, kinds[index].change) : 0;
    return hearing != 0 ? (uint64_t)self->links << 48 | (hearing & 0xffffffffffff) : 0;
}

/* From now on it is worth to hear of changes. */
static void watch(bay_client *self)
{
    mcp_client *engine = self->phase == CLIENT_READY ? sdk_client_engine(self) : NULL;
    bool is_legacy = self->about != NULL && self->about->revision->era == MCP_LEGACY;
    if (self->options.has_no_cache || (!is_legacy && self->options.changed == NULL)) {
        return;
    }
    self->wants_changes = true;
    if (engine != NULL) {
        mcp_client_watch(engine, loop_now_ms(self->base.loop));
    }
}

/* Joins the fetch under way, or starts one. */
static bay_err fetch_start(bay_client *self, int index, list_wait *waiter, bay_diag *diag)
{
    client_cache *cache = &self->caches[index];
    if (cache->fetching != NULL) {
        CHECK(waiter == NULL || cache->fetching->waiter == NULL);
        cache->fetching->waiter = waiter != NULL ? waiter : cache->fetching->waiter;
        return BAY_OK;
    }
    fetch *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    *made = (fetch){.client = self,
                    .cache = cache,
                    .kind = kinds[index].kind,
                    .generation = cache->generation,
                    .hearing = hearing_now(self, index),
                    .waiter = waiter};
    json_open_array(json_builder_init(&made->entries, NULL, CLIENT_MAX_LIST));
    map_init(&made->cursors, CLIENT_MAX_PAGES);
    cache->fetching = made;
    bay_err err = fetch_page(made, JSON_NONE, diag);
    if (err != BAY_OK) {
        cache->fetching = NULL;
        fetch_free(made);
    }
    return err;
}

void sdk_lists_changed(bay_client *self, bay_kind kind)
{
    for (int i = 0; i < CLIENT_KINDS; i++) {
        bool is_meant = kinds[i].kind == kind ||
                        (kind == BAY_KIND_RESOURCES && kinds[i].change == MCP_CHANGE_RESOURCES);
        if (is_meant) {
            self->caches[i].is_stale = true;
            self->caches[i].generation++;
        }
    }
}

void sdk_lists_fini(bay_client *self)
{
    for (int i = 0; i < CLIENT_KINDS; i++) {
        bay_list_free(self->caches[i].list);
        self->caches[i].list = NULL;
    }
}

/* ---- asking for a list ----------------------------------------------------------------------- */

static bool is_fresh(bay_client *self, int index)
{
    const client_cache *cache = &self->caches[index];
    if (cache->list == NULL || cache->is_stale || self->options.has_no_cache) {
        return false;
    }
    if (cache->fresh_until > 0) {
        return loop_now_ms(self->base.loop) < cache->fresh_until;
    }
    return cache->hearing != 0 && cache->hearing == hearing_now(self, index);
}

bay_err bay_client_list(bay_client *client, bay_kind kind, bay_list **out, bay_diag *diag)
{
    int index = kind_index(kind);
    if (client == NULL || index < 0 || out == NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "a list of one kind is asked for");
    }
    if (!asker_is_inside(&client->base)) {
        (void)loop_turn(client->base.loop, 0); /* a change may have been told meanwhile */
    }
    asker_touch(&client->base);
    if (is_fresh(client, index)) {
        *out = list_ref(client->caches[index].list);
        return BAY_OK;
    }
    list_wait waiter = {0};
    bay_err err = asker_check_waiting(&client->base, diag);
    if (err != BAY_OK) {
        return err;
    }
    watch(client);
    err = fetch_start(client, index, &waiter, diag);
    while (err == BAY_OK && !waiter.is_done) {
        (void)loop_turn(client->base.loop, -1);
    }
    if (err != BAY_OK) {
        return err;
    }
    if (waiter.list == NULL) {
        if (diag != NULL) {
            *diag = waiter.diag;
        }
        return waiter.diag.code;
    }
    *out = waiter.list;
    return BAY_OK;
}

bay_err bay_client_list_start(bay_client *client, bay_kind kind, bay_diag *diag,
                              bay_listed_fn listed, void *user)
{
    int index = kind_index(kind);
    if (client == NULL || index < 0 || listed == NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "a list of one kind is asked for, and who takes it");
    }
    if (client->listing_count >= CLIENT_MAX_LISTINGS) {
        return diag_set(diag, BAY_ERR_BUSY, "%zu lists are asked for", client->listing_count);
    }
    listing *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    client_cache *cache = &client->caches[index];
    *made = (listing){.cache = cache, .listed = listed, .user = user};
    asker_touch(&client->base);
    bay_err err = BAY_OK;
    if (client->phase != CLIENT_CLOSING && is_fresh(client, index)) {
        listing_conclude(made, cache->list, &(bay_diag){0});
        asker_settle_soon(&client->base);
    } else {
        watch(client);
        err = fetch_start(client, index, NULL, diag);
    }
    if (err != BAY_OK) {
        mem_free(made);
        return err;
    }
    list_push(&client->listings, &made->link);
    client->listing_count++;
    return BAY_OK;
}

static listing *next_due(const bay_client *client)
{
    LIST_EACH(link, &client->listings)
    {
        listing *one = CONTAINER_OF(link, listing, link);
        if (one->is_due) {
            return one;
        }
    }
    return NULL;
}

void sdk_lists_finish(bay_client *self)
{
    listing *one;
    while ((one = next_due(self)) != NULL) {
        list_remove(&one->link);
        self->listing_count--;
        one->listed(self, one->list, &one->diag, one->user);
        mem_free(one);
    }
}

/* ---- what the tools say of a call ------------------------------------------------------------ */

static bool is_modern_http(bay_client *self)
{
    mcp_client *engine = sdk_client_engine(self);
    return engine != NULL && self->about != NULL && self->about->revision->era == MCP_MODERN &&
           mcp_client_link_kind(engine) == MCP_LINK_HTTP;
}

bool sdk_lists_needs_tools(const bay_request *request)
{
    bay_client *client = request->client;
    const client_cache *cache = &client->caches[kind_index(BAY_KIND_TOOLS)];
    return cache->list == NULL && cache->refused_on != client->links &&
           str_eq(sdk_request_round_method(request), STR("tools/call")) && is_modern_http(client) &&
           bay_client_has(client, "tools");
}

bool sdk_lists_fetch_tools_for(bay_request *request)
{
    bay_client *client = request->client;
    if (!str_eq(sdk_request_round_method(request), STR("tools/call")) || !is_modern_http(client)) {
        return false;
    }
    if (fetch_start(client, kind_index(BAY_KIND_TOOLS), NULL, NULL) != BAY_OK) {
        return false;
    }
    sdk_request_wait_for_tools(request);
    return true;
}

static list_entry *known_tool(const bay_client *self, json_val name)
{
    const bay_list *known = self->caches[kind_index(BAY_KIND_TOOLS)].list;
    for (size_t i = 0; known != NULL && i < known->count; i++) {
        if (json_str_eq(name, known->entries[i].name)) {
            return &known->entries[i];
        }
    }
    return NULL;
}

list_entry *sdk_lists_output_of(const bay_client *self, json_val name)
{
    const bay_list *known = self->caches[kind_index(BAY_KIND_TOOLS)].list;
    bool has_outputs = known != NULL && known->has_outputs && self->about->revision->structured;
    list_entry *tool = has_outputs ? known_tool(self, name) : NULL;
    return tool != NULL && has_output(tool) ? tool : NULL;
}

bool sdk_lists_tool_may_repeat(const bay_request *request)
{
    json_val name = json_get(sdk_request_round_params(request), STR("name"));
    const list_entry *tool = known_tool(request->client, name);
    return tool != NULL && tool->may_repeat;
}

bay_err sdk_lists_tool_params(bay_client *self, json_val name, const mcp_param_table **out,
                              bay_diag *diag)
{
    const bay_list *known = self->caches[kind_index(BAY_KIND_TOOLS)].list;
    if (!is_modern_http(self)) {
        return BAY_OK;
    }
    const list_entry *tool = known_tool(self, name);
    if (tool != NULL) {
        *out = tool->params.count > 0 ? &tool->params : NULL;
        return BAY_OK;
    }
    for (size_t i = 0; known != NULL && i < known->rejected_count; i++) {
        if (json_str_eq(name, known->rejected_names[i])) {
            return diag_set(diag, BAY_ERR_PROTOCOL, "the server must mend this tool. %.*s",
                            BAY_STR(str_head(known->rejected[i], 180)));
        }
    }
    return BAY_OK;
}

/* ---- reading a list -------------------------------------------------------------------------- */

static const list_entry *entry_at(const bay_list *self, size_t index)
{
    static const list_entry none = {0};
    return self != NULL && index < self->count ? &self->entries[index] : &none;
}

size_t bay_list_count(const bay_list *self)
{
    return self != NULL ? self->count : 0;
}

bay_str bay_list_name(const bay_list *self, size_t index)
{
    return entry_at(self, index)->name;
}

bay_str bay_list_title(const bay_list *self, size_t index)
{
    return entry_at(self, index)->title;
}

bay_str bay_list_description(const bay_list *self, size_t index)
{
    return entry_at(self, index)->description;
}

bay_str bay_list_uri(const bay_list *self, size_t index)
{
    return entry_at(self, index)->uri;
}

bay_str bay_list_json(const bay_list *self, size_t index)
{
    return entry_at(self, index)->json;
}

bay_value bay_list_value(const bay_list *self, size_t index)
{
    return self != NULL ? sdk_value(&self->document, entry_at(self, index)->value)
                        : (bay_value){NULL, 0};
}

bay_str bay_list_ui(const bay_list *self, size_t index)
{
    return entry_at(self, index)->ui;
}

size_t bay_list_find_str(const bay_list *self, bay_str name)
{
    size_t count = bay_list_count(self);
    for (size_t i = 0; name.at != NULL && i < count; i++) {
        if (str_eq(self->entries[i].name, name) || str_eq(self->entries[i].uri, name)) {
            return i;
        }
    }
    return count;
}

size_t bay_list_find(const bay_list *self, const char *name)
{
    return bay_list_find_str(self, str_of(name));
}

size_t bay_list_rejected_count(const bay_list *self)
{
    return self != NULL ? self->rejected_count : 0;
}

bay_str bay_list_rejected(const bay_list *self, size_t index)
{
    return self != NULL && index < self->rejected_count ? self->rejected[index]
                                                        : (bay_str){NULL, 0};
}
