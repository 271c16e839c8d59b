#include "catalog/listing.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "catalog/older_tools.h"
#include "mcp/icons.h"
#include "upstream/told.h"
#include "json/build.h"

enum {
    CURSOR_SEED = 0xc5,
    COMPLAINT_BYTES = 600,
    CURSOR_PARAMS = 1 << 20, /* bytes of {"cursor":…} */
};

static const struct {
    bay_str result_key;
    bay_str item_key;
    bay_str capability;
    mcp_method_id method;
    mcp_change change;
    mcp_shape_id shape; /* of an item */
    trust_kind pinned;
} kinds[LISTING_KINDS] = {
    [LISTING_TOOLS] = {STR_INIT("tools"), STR_INIT("name"), STR_INIT("tools"), MCP_TOOLS_LIST,
                       MCP_CHANGE_TOOLS, MCP_SHAPE_TOOL, TRUST_TOOL},
    [LISTING_RESOURCES] = {STR_INIT("resources"), STR_INIT("uri"), STR_INIT("resources"),
                           MCP_RESOURCES_LIST, MCP_CHANGE_RESOURCES, MCP_SHAPE_RESOURCE,
                           TRUST_RESOURCE},
    [LISTING_TEMPLATES] = {STR_INIT("resourceTemplates"), STR_INIT("uriTemplate"),
                           STR_INIT("resources"), MCP_RESOURCES_TEMPLATES_LIST,
                           MCP_CHANGE_RESOURCES, MCP_SHAPE_TEMPLATE, TRUST_TEMPLATE},
    [LISTING_PROMPTS] = {STR_INIT("prompts"), STR_INIT("name"), STR_INIT("prompts"),
                         MCP_PROMPTS_LIST, MCP_CHANGE_PROMPTS, MCP_SHAPE_PROMPT, TRUST_PROMPT},
};

mcp_change listing_change(listing_kind kind)
{
    return kinds[kind].change;
}

bay_str listing_result_key(listing_kind kind)
{
    return kinds[kind].result_key;
}

static listing *listing_new(void)
{
    listing *self = mem_zalloc(sizeof(*self));
    if (self != NULL) {
        self->references = 1;
        arena_init(&self->memory, LISTING_MAX_BYTES);
    }
    return self;
}

listing *listing_ref(listing *self)
{
    self->references++;
    return self;
}

void listing_unref(listing *self)
{
    if (self != NULL && --self->references == 0) {
        for (size_t i = 0; i < self->count; i++) {
            trust_checked_drop(&self->items[i].checked);
        }
        arena_fini(&self->memory);
        mem_free(self->items);
        mem_free(self);
    }
}

bool listing_equal(const listing *a, const listing *b)
{
    if (a == NULL || b == NULL || a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (!str_eq(a->items[i].raw, b->items[i].raw) ||
            a->items[i].gains_tasks != b->items[i].gains_tasks) {
            return false;
        }
    }
    return true;
}

static bay_err listing_push(listing *self, listing_item item)
{
    if (self->count >= LISTING_MAX_ITEMS) {
        return BAY_ERR_LIMIT;
    }
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 16 : self->cap * 2;
        listing_item *items = mem_resize(self->items, cap * sizeof(*items));
        if (items == NULL) {
            return BAY_ERR_NOMEM;
        }
        self->items = items;
        self->cap = cap;
    }
    self->items[self->count++] = item;
    return BAY_OK;
}

static bool is_named(listing_kind kind)
{
    return kind == LISTING_TOOLS || kind == LISTING_PROMPTS;
}

/* Every loop reads the list, and reads it again: what the log says already goes to the debug level.
 * `detail` may differ each time. True: it was not logged before. */
static bool complain(const listing_fetch *fetch, const char *text, const char *detail)
{
    bool is_new = upstream_told_text(upstream_told_of(fetch->upstream), str_of(text));
    LOG(is_new ? LOG_WARN : LOG_DEBUG, "catalog", "%s: %s%s", upstream_name(fetch->upstream).at,
        text, detail);
    return is_new;
}

/* Says which and why, the first few times. */
static bay_err leave_out(listing_fetch *fetch, bay_str key, const char *why)
{
    if (fetch->left_out++ < LISTING_COMPLAINTS) {
        char text[COMPLAINT_BYTES];
        (void)snprintf(text, sizeof(text), "an item of %.*s was left out: \"%.*s\": %s",
                       BAY_STR(kinds[fetch->kind].result_key), BAY_STR(str_head(key, 100)), why);
        (void)complain(fetch, text, "");
    }
    return BAY_OK;
}

static void read_tasks(listing_item *item, json_val tool, const upstream *from)
{
    const mcp_revision *revision = upstream_revision(from);
    json_val execution = json_get(tool, STR("execution"));
    json_val support = json_get(execution, STR("taskSupport"));
    item->gains_tasks = json_is(execution, JSON_MISSING) && revision != NULL &&
                        revision->era == MCP_MODERN &&
                        upstream_has(from, STR("extensions." MCP_EXTENSION_TASKS));
    item->tasks = json_str_eq(support, STR("required")) ? LISTING_TASKS_REQUIRED
                  : json_str_eq(support, STR("optional")) || item->gains_tasks
                      ? LISTING_TASKS_OPTIONAL
                      : LISTING_TASKS_FORBIDDEN;
}

/* By the server's own word, which counts where the configuration trusts it. */
static bool is_repeatable(json_val tool)
{
    json_val hints = json_get(tool, STR("annotations"));
    return json_true(json_get(hints, STR("readOnlyHint"))) ||
           json_true(json_get(hints, STR("idempotentHint")));
}

/* A client that reads strictly would refuse the list over it, whosever the other items are. */
static bool is_misshapen(const listing_fetch *fetch, json_val value, char *out_why, size_t size)
{
    mcp_shape_fault fault;
    const mcp_revision *revision = upstream_revision(fetch->upstream);
    mcp_revision_id spoken = revision != NULL ? revision->id : MCP_LATEST;
    if (mcp_shape_item(kinds[fetch->kind].shape, spoken, value, &fault)) {
        return false;
    }
    (void)snprintf(out_why, size, "%s%s%s", fault.place, fault.place[0] != '\0' ? " " : "",
                   fault.text);
    return true;
}

/* mcp 2025-11-25 basic, Icons: some sources must not be shown. The icon is left out, not the item. */
static bay_err leave_out_icons(listing_fetch *fetch, json_val sent, json_val *out)
{
    char text[COMPLAINT_BYTES];
    json_builder made;
    if (mcp_icons_are_safe(sent)) {
        *out = sent;
        return BAY_OK;
    }
    (void)snprintf(
        text, sizeof(text),
        "an icon of %.*s was left out: %.*s: it is neither an https: URL nor a data: URI of "
        "an image",
        BAY_STR(kinds[fetch->kind].result_key),
        BAY_STR(str_head(json_raw(json_get(sent, STR("name"))), 100)));
    (void)complain(fetch, text, "");
    mcp_icons_put_safe(json_builder_init(&made, &fetch->next->memory, LISTING_MAX_BYTES), sent);
    return json_builder_end(&made, out);
}

/* One item of a page. */
static bay_err listing_add(listing_fetch *fetch, json_val sent)
{
    json_val value;
    listing *into = fetch->next;
    bay_err err = leave_out_icons(fetch, sent, &value);
    if (err != BAY_OK) {
        return err;
    }
    listing_item item = {.sent = sent, .value = value, .raw = json_raw(value)};
    err = json_pick(value, &kinds[fetch->kind].item_key, 1, &item.key_val, NULL);
    if (err == BAY_ERR_DUPLICATE) {
        return leave_out(fetch, (bay_str){"", 0}, "it has two names");
    }
    err = err == BAY_OK ? json_str(item.key_val, &into->memory, &item.key) : err;
    if (err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT) {
        return err;
    }
    if (err != BAY_OK || item.key.len == 0) {
        return leave_out(fetch, (bay_str){"", 0}, "it has no name");
    }
    if (item.key.len > (is_named(fetch->kind) ? LISTING_NAME_BYTES : LISTING_URI_BYTES)) {
        return leave_out(fetch, item.key, "its name is too long");
    }
    char why[MCP_PLACE_BYTES + MCP_SHAPE_TEXT_BYTES];
    if (is_misshapen(fetch, value, why, sizeof(why))) {
        return leave_out(fetch, item.key, why);
    }
    if (fetch->kind == LISTING_TOOLS) {
        bay_diag diag = {0};
        into->free_outputs += older_tools_is_free(value);
        read_tasks(&item, value, fetch->upstream);
        item.is_repeatable = is_repeatable(value);
        err = mcp_param_table_read(&item.params, json_get(value, STR("inputSchema")), &into->memory,
                                   &diag);
        if (err == BAY_ERR_PROTOCOL) {
            /* mcp 2026-07-28 basic/transports/streamable-http, Schema Extension: a client leaves
             * such a tool out, not the list. A stdio client MAY keep it, but the gateway's clients
             * come over HTTP whatever its server speaks, and their header fields are checked by
             * this table. */
            return leave_out(fetch, item.key, diag.text);
        }
    }
    return err == BAY_OK ? listing_push(into, item) : err;
}

void listing_check(listing *self, listing_kind kind, trust_pins *pins, bay_str server,
                   uint64_t now_ms)
{
    for (size_t i = 0; self != NULL && pins != NULL && i < self->count; i++) {
        listing_item *item = &self->items[i];
        if (item->checked.cell == NULL) {
            trust_pins_check(pins, server, false, kinds[kind].pinned, item->key, item->sent, now_ms,
                             &item->checked);
        }
    }
}

/* What the last fetch failed of; `is_over`: for other loops, too. */
static void forget_failure(listing_fetch *self, bool is_over)
{
    if (self->failure != NULL && is_over) {
        upstream_told_text_over(upstream_told_of(self->upstream), str_of(self->failure));
    }
    mem_free(self->failure);
    self->failure = NULL;
}

static void fetch_end(listing_fetch *self, bool is_good)
{
    bool is_changed = is_good && !listing_equal(self->current, self->next);
    bool is_again = self->is_stale;
    if (is_good && self->pins != NULL) { /* also where it is the same: what turns is noticed */
        listing_check(self->next, self->kind, self->pins, upstream_name(self->upstream),
                      self->now_ms(self->user));
    }
    if (is_good) {
        forget_failure(self, true);
    }
    if (self->left_out > LISTING_COMPLAINTS) {
        char text[COMPLAINT_BYTES];
        (void)snprintf(text, sizeof(text), "%zu items of %.*s were left out in all", self->left_out,
                       BAY_STR(kinds[self->kind].result_key));
        (void)complain(self, text, "");
    }
    if (is_changed) {
        listing_unref(self->current);
        self->current = self->next;
        self->next = NULL;
    }
    listing_unref(self->next);
    self->next = NULL;
    self->is_under_way = false;
    self->is_stale = false;
    self->is_good = is_good;
    uint32_t timeout_ms = self->call.spec.timeout_ms;
    self->done(self->user, self, is_changed);
    if (is_again && !self->is_under_way) {
        listing_fetch_start(self, timeout_ms);
    }
}

static void fetch_fail(listing_fetch *self, const char *why)
{
    char text[COMPLAINT_BYTES];
    (void)snprintf(text, sizeof(text), "%.*s could not be read: %s",
                   BAY_STR(mcp_method_of(kinds[self->kind].method)->text), why);
    const char *left = self->current != NULL ? "; the earlier list stays" : "; it shows none";
    bool is_new = complain(self, text, left);
    forget_failure(self, is_new);
    self->failure = mem_dup(text, strlen(text)); /* without memory it may be said again */
    fetch_end(self, false);
}

/* Has a cursor come before in this fetch? Without memory for it the number of pages is the bound.
 */
static bool is_circle(listing_fetch *self, bay_str cursor)
{
    uint64_t hash = str_hash(cursor, CURSOR_SEED);
    if (self->cursors == NULL) {
        self->cursors = mem_array(LISTING_MAX_PAGES, sizeof(*self->cursors));
    }
    for (unsigned i = 1; self->cursors != NULL && i < self->pages; i++) {
        if (self->cursors[i] == hash) {
            return true;
        }
    }
    if (self->cursors != NULL && self->pages < LISTING_MAX_PAGES) {
        self->cursors[self->pages] = hash;
    }
    return false;
}

/* False: there is no going on from here. */
static bool fetch_ask(listing_fetch *self, json_val cursor)
{
    self->call.spec.params = JSON_NONE;
    if (!json_is(cursor, JSON_MISSING)) {
        bay_str raw = json_raw(cursor);
        if (is_circle(self, raw)) {
            return false;
        }
        json_builder made;
        arena_reset(&self->params_memory);
        json_writer *out = json_builder_init(&made, &self->params_memory, CURSOR_PARAMS);
        json_open_object(out);
        json_key_lit(out, "cursor");
        json_put_val(out, cursor);
        json_close_object(out);
        if (json_builder_end(&made, &self->call.spec.params) != BAY_OK) {
            return false;
        }
    }
    upstream_send(self->upstream, &self->call);
    return true;
}

/* mcp 2026-07-28 server/utilities/caching: positive, or immediately stale. */
static void take_hint(listing_fetch *self, json_val value)
{
    uint64_t ttl_ms = 0;
    const mcp_revision *revision = upstream_revision(self->upstream);
    if (revision == NULL || revision->era != MCP_MODERN || json_uint64(value, &ttl_ms) != BAY_OK) {
        ttl_ms = 0;
    }
    if (self->pages == 0 || ttl_ms < self->ttl_ms) {
        self->ttl_ms = ttl_ms < UINT32_MAX ? (uint32_t)ttl_ms : UINT32_MAX;
    }
}

/* Takes a page into `next`: the bytes are copied once, the items are views into the copy. */
static bay_err fetch_take(listing_fetch *self, json_val result, json_val *out_cursor)
{
    json_val page;
    bay_err err = json_clone_in(result, &self->next->memory, &page);
    if (err != BAY_OK) {
        return err;
    }
    json_val items = json_get(page, kinds[self->kind].result_key);
    if (!json_is(items, JSON_ARRAY)) {
        return BAY_ERR_PROTOCOL;
    }
    json_iter iter = json_iter_of(items);
    while (err == BAY_OK && json_next(&iter)) {
        err = listing_add(self, iter.value);
    }
    json_val cursor = json_get(page, STR("nextCursor"));
    *out_cursor = json_is(cursor, JSON_STRING) ? cursor : JSON_NONE;
    take_hint(self, json_get(page, STR("ttlMs")));
    return err;
}

static void fetch_done(void *user, const mcp_outcome *outcome)
{
    listing_fetch *self = user;
    json_val cursor = JSON_NONE;
    if (outcome->kind == MCP_OUTCOME_ERROR && outcome->error_code == RPC_METHOD_NOT_FOUND) {
        fetch_end(self, true); /* it has none of these */
        return;
    }
    if (outcome->kind != MCP_OUTCOME_RESULT) {
        fetch_fail(self, outcome->kind == MCP_OUTCOME_FAILED ? outcome->text
                                                             : "the server answered with an error");
        return;
    }
    bay_err err = fetch_take(self, outcome->result, &cursor);
    if (err != BAY_OK && (err != BAY_ERR_LIMIT || self->next->count == 0)) {
        fetch_fail(self, bay_err_text(err));
        return;
    }
    if (err == BAY_OK && json_is(cursor, JSON_MISSING)) {
        fetch_end(self, true);
        return;
    }
    if (err == BAY_ERR_LIMIT || ++self->pages >= LISTING_MAX_PAGES || !fetch_ask(self, cursor)) {
        char text[COMPLAINT_BYTES];
        char cut[40];
        (void)snprintf(text, sizeof(text), "its list of %.*s does not end",
                       BAY_STR(kinds[self->kind].result_key));
        (void)snprintf(cut, sizeof(cut), "; cut after %zu items", self->next->count);
        (void)complain(self, text, cut);
        fetch_end(self, true);
    }
}

static void fetch_notified(void *user, mcp_method_id method, json_val params)
{
    (void)user;
    (void)method;
    (void)params;
}

static const upstream_call_events fetch_events = {.notified = fetch_notified, .done = fetch_done};

void listing_fetch_init(listing_fetch *self, upstream *from, listing_kind kind,
                        void (*done)(void *user, listing_fetch *self, bool is_changed), void *user)
{
    *self = (listing_fetch){.upstream = from, .kind = kind, .done = done, .user = user};
    arena_init(&self->params_memory, 4 * (size_t)CURSOR_PARAMS);
    self->call.events = &fetch_events;
    self->call.user = self;
    self->call.affinity.is_own = true;
}

void listing_fetch_fini(listing_fetch *self)
{
    upstream_call_cancel(&self->call, STR("the gateway is closing"));
    listing_unref(self->next);
    listing_unref(self->current);
    mem_free(self->cursors);
    mem_free(self->failure);
    arena_fini(&self->params_memory);
}

void listing_fetch_start(listing_fetch *self, uint32_t timeout_ms)
{
    if (self->is_under_way) {
        self->is_stale = true;
        return;
    }
    self->is_under_way = true;
    self->answers = self->is_announced;
    self->is_announced = false;
    self->pages = 0;
    self->left_out = 0;
    self->ttl_ms = 0;
    self->next = listing_new();
    if (self->next == NULL) {
        fetch_fail(self, bay_err_text(BAY_ERR_NOMEM));
        return;
    }
    if (!upstream_has(self->upstream, kinds[self->kind].capability)) {
        fetch_end(self, true);
        return;
    }
    self->call.spec = (mcp_call_spec){.method = mcp_method_of(kinds[self->kind].method)->text,
                                      .log_level = MCP_LOG_NONE,
                                      .timeout_ms = timeout_ms};
    (void)fetch_ask(self, JSON_NONE);
}

void listing_fetch_announced(listing_fetch *self)
{
    self->is_announced = true;
}
