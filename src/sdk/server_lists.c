/* The lists a server shows, and what it is capable of, as each revision knows them.
 *
 * A list is rendered once for each revision that asks for it, in whole, and kept until an entry is
 * switched off or on: a request costs a copy of its page. A cursor names the first entry of its
 * page and carries a keyed hash of the list it was made for, so that one of a list that has changed
 * since, or of nobody's making, is refused; servers with the same registrations agree on them. */
#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/server_parts.h"

static const bay_str list_keys[] = {[ENTRY_TOOL] = STR_INIT("tools"),
                                    [ENTRY_RESOURCE] = STR_INIT("resources"),
                                    [ENTRY_TEMPLATE] = STR_INIT("resourceTemplates"),
                                    [ENTRY_PROMPT] = STR_INIT("prompts"),
                                    [ENTRY_SKILL] = STR_INIT("skills")};

/* ---- one entry */

static void put_member(json_writer *writer, bay_str key, bay_str text)
{
    if (text.len > 0) {
        json_key(writer, key);
        json_put_str(writer, text);
    }
}

static void put_raw_member(json_writer *writer, bay_str key, bay_str raw)
{
    if (raw.len > 0) {
        json_key(writer, key);
        json_put_raw(writer, raw);
    }
}

void sdk_put_annotations(json_writer *writer, json_val annotations, mcp_revision_id revision)
{
    static const bay_str newer[] = {STR_INIT("lastModified")};
    json_key_lit(writer, "annotations");
    if (revision >= MCP_REV_2025_06_18) {
        json_put_val(writer, annotations);
        return;
    }
    json_open_object(writer);
    json_put_members(writer, annotations, newer, ARRAY_LEN(newer));
    json_close_object(writer);
}

static void put_meta(json_writer *writer, const entry *item)
{
    static const bay_str ours[] = {STR_INIT("ui")};
    if (item->ui.len == 0) {
        put_raw_member(writer, STR("_meta"), item->meta);
        return;
    }
    json_key_lit(writer, "_meta");
    json_open_object(writer);
    json_key_lit(writer, "ui");
    json_put_raw(writer, item->ui);
    if (item->meta.len > 0) {
        json_put_members(writer, json_root(&item->meta_doc), ours, ARRAY_LEN(ours));
    }
    json_close_object(writer);
}

static void render_tool(json_writer *writer, const entry *item, mcp_revision_id revision)
{
    put_raw_member(writer, STR("inputSchema"), item->schema);
    if (revision >= (item->has_object_output ? MCP_REV_2025_06_18 : MCP_REV_2026_07_28)) {
        put_raw_member(writer, STR("outputSchema"), item->output_schema);
    }
    if (revision >= MCP_REV_2025_03_26) {
        put_raw_member(writer, STR("annotations"), item->annotations);
    }
}

static void render_resource(json_writer *writer, const entry *item, mcp_revision_id revision)
{
    put_member(writer, STR("mimeType"), item->mime_type);
    if (item->annotations.len > 0) {
        sdk_put_annotations(writer, json_root(&item->annotations_doc), revision);
    }
    if (item->has_size) {
        json_key_lit(writer, "size");
        json_put_uint(writer, item->size);
    }
}

/* Title, outputSchema and _meta came with 2025-06-18, annotations of tools with 2025-03-26, icons
 * with 2025-11-25. */
void sdk_put_entry(json_writer *writer, const entry *item, mcp_revision_id revision)
{
    bool is_tool = item->kind == ENTRY_TOOL;
    bool is_prompt = item->kind == ENTRY_PROMPT;
    if (item->kind == ENTRY_SKILL) {
        json_put_raw(writer, item->schema);
        return;
    }
    json_open_object(writer);
    if (is_tool || is_prompt) {
        put_member(writer, STR("name"), item->key);
    } else {
        put_member(writer, item->kind == ENTRY_RESOURCE ? STR("uri") : STR("uriTemplate"),
                   item->key);
        put_member(writer, STR("name"), item->name);
    }
    if (revision >= MCP_REV_2025_06_18) {
        put_member(writer, STR("title"), item->title);
    }
    put_member(writer, STR("description"), item->description);
    if (is_tool) {
        render_tool(writer, item, revision);
    } else if (is_prompt) {
        put_raw_member(writer, STR("arguments"), item->schema);
    } else {
        render_resource(writer, item, revision);
    }
    if (revision >= MCP_REV_2025_11_25) {
        put_raw_member(writer, STR("icons"), item->icons);
    }
    if (revision >= MCP_REV_2025_06_18) {
        put_meta(writer, item);
    }
    json_close_object(writer);
}

/* ---- a list */

static void view_fini(list_view *self)
{
    mem_free(self->text);
    mem_free(self->starts);
    *self = (list_view){0};
}

void sdk_list_forget(entry_list *self)
{
    for (size_t i = 0; i < MCP_REVISION_COUNT; i++) {
        view_fini(&self->views[i]);
    }
}

static bool is_listed(const entry *item)
{
    return !atomic_load(&item->is_off);
}

static size_t count_listed(const entry_list *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->len; i++) {
        count += is_listed(self->items[i]) ? 1 : 0;
    }
    return count;
}

/* "tools":[…] with the places where its elements begin; the last place is that of the bracket. */
static bay_err view_render(list_view *self, const entry_list *from, bay_str key,
                           mcp_revision_id revision)
{
    buf out;
    buf_init(&out, SERVER_MAX_RESULT);
    json_quote(&out, key);
    buf_lit(&out, ":[");
    size_t room = count_listed(from); /* others may be switched on meanwhile: not in this one */
    self->starts = mem_array(room + 1, sizeof(*self->starts));
    for (size_t i = 0; i < from->len && self->starts != NULL && self->count < room; i++) {
        if (!is_listed(from->items[i])) {
            continue;
        }
        if (self->count > 0) {
            buf_char(&out, ',');
        }
        self->starts[self->count++] = out.len;
        json_writer writer;
        json_writer_init(&writer, &out);
        sdk_put_entry(&writer, from->items[i], revision);
    }
    bay_err err = self->starts == NULL ? BAY_ERR_NOMEM : out.err;
    if (err == BAY_OK) {
        self->starts[self->count] = out.len + 1; /* where an element after a comma would begin */
        buf_char(&out, ']');
        err = out.err;
    }
    if (err == BAY_OK) {
        self->hash = str_hash(buf_view(&out), (uint64_t)revision);
        self->text = buf_take(&out, &self->len);
    } else {
        view_fini(self);
    }
    buf_fini(&out);
    return err;
}

bay_err sdk_server_render(bay_server *self)
{
    for (entry_kind kind = ENTRY_TOOL; kind <= ENTRY_SKILL; kind++) {
        sdk_list_forget(&self->lists[kind]);
        bay_err err = view_render(&self->lists[kind].views[MCP_LATEST], &self->lists[kind],
                                  list_keys[kind], MCP_LATEST);
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

/* ---- pages */

enum { TAG_DIGITS = 16, CURSOR_BYTES = 48 };

static bay_str cursor_write(const list_view *view, size_t from, char *into, size_t size)
{
    int len = snprintf(into, size, "%zx-", from);
    uint64_t tag = str_hash((bay_str){into, (size_t)len}, view->hash);
    len += snprintf(into + len, size - (size_t)len, "%0*llx", TAG_DIGITS, (unsigned long long)tag);
    return (bay_str){into, (size_t)len};
}

/* Only the start of a page that is not the first was ever given out. */
static bool cursor_read(const list_view *view, size_t page, bay_str cursor, size_t *out)
{
    size_t from = 0;
    size_t dash = str_find(cursor, '-');
    if (dash == cursor.len || dash > 8 || page == 0) {
        return false;
    }
    for (size_t i = 0; i < dash; i++) {
        char c = cursor.at[i];
        bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'f')) {
            return false;
        }
        from = from * 16 + (size_t)(is_digit ? c - '0' : c - 'a' + 10);
    }
    char text[CURSOR_BYTES];
    if (from == 0 || from >= view->count || from % page != 0 ||
        !str_eq(cursor_write(view, from, text, sizeof(text)), cursor)) {
        return false;
    }
    *out = from;
    return true;
}

static void put_page(buf *out, const list_view *view, bay_str key, size_t from, size_t page)
{
    size_t to = page == 0 || view->count - from <= page ? view->count : from + page;
    json_quote(out, key);
    buf_lit(out, ":[");
    buf_append(out, view->text + view->starts[from], view->starts[to] - 1 - view->starts[from]);
    buf_char(out, ']');
    if (to < view->count) {
        char cursor[CURSOR_BYTES];
        buf_lit(out, ",\"nextCursor\":");
        json_quote(out, cursor_write(view, to, cursor, sizeof(cursor)));
    }
}

static void refuse_cursor(mcp_request *request)
{
    mcp_request_error(request, RPC_INVALID_PARAMS,
                      STR("Invalid cursor: the list has changed, or it is none of this server's; "
                          "list from the start"),
                      (bay_str){NULL, 0});
}

void sdk_list_answer(bay_server *self, entry_kind kind, mcp_request *request)
{
    entry_list *from = &self->lists[kind];
    list_view *view = &from->views[request->revision->id];
    json_val given = json_get(request->message.params, STR("cursor"));
    size_t page = sdk_server_setting(self, BAY_SERVER_SETTING_PAGE_SIZE);
    size_t begin = 0;
    bay_str cursor = {NULL, 0};
    if (view->text == NULL &&
        view_render(view, from, list_keys[kind], request->revision->id) != BAY_OK) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"), (bay_str){NULL, 0});
        return;
    }
    if (!json_is(given, JSON_MISSING) && (json_str(given, request->memory, &cursor) != BAY_OK ||
                                          !cursor_read(view, page, cursor, &begin))) {
        refuse_cursor(request);
        return;
    }
    request->ttl_ms = (uint32_t)sdk_server_setting(self, BAY_SERVER_SETTING_LIST_TTL_MS);
    request->is_cache_public = true;
    if (page == 0 || view->count <= page) {
        mcp_request_result_members(request, (bay_str){view->text, view->len});
        return;
    }
    buf out;
    buf_init(&out, SERVER_MAX_RESULT);
    put_page(&out, view, list_keys[kind], begin, page);
    if (out.err == BAY_OK) {
        mcp_request_result_members(request, buf_view(&out));
    } else {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"), (bay_str){NULL, 0});
    }
    buf_fini(&out);
}

/* ---- capabilities */

/* mcp 2026-07-28 basic/index, Extensions: under "extensions", which hosts of 2025-11-25 look for as
 * well; before that, "experimental" is the place for what is not in the protocol. */
static void put_extensions(const bay_server *self, const mcp_revision *revision, json_writer *out)
{
    bool has_tasks = sdk_tasks_are_offered(self, revision);
    if (self->extensions == NULL && !has_tasks) {
        return;
    }
    json_key(out, revision->id >= MCP_REV_2025_11_25 ? STR("extensions") : STR("experimental"));
    json_open_object(out);
    for (const extension *at = self->extensions; at != NULL; at = at->next) {
        json_key(out, at->id);
        json_put_raw(out, at->settings);
    }
    if (has_tasks) {
        json_key_lit(out, MCP_EXTENSION_TASKS);
        json_put_raw(out, STR("{}"));
    }
    json_close_object(out);
}

void sdk_server_write_capabilities(void *user, const mcp_revision *revision, json_writer *out)
{
    const bay_server *self = user;
    if (self->lists[ENTRY_TOOL].len > 0) {
        json_key_lit(out, "tools");
        json_put_raw(out, STR("{\"listChanged\":true}"));
    }
    if (self->lists[ENTRY_RESOURCE].len + self->lists[ENTRY_TEMPLATE].len > 0) {
        json_key_lit(out, "resources");
        json_put_raw(out, STR("{\"subscribe\":true,\"listChanged\":true}"));
    }
    if (self->lists[ENTRY_PROMPT].len > 0) {
        json_key_lit(out, "prompts");
        json_put_raw(out, STR("{\"listChanged\":true}"));
    }
    bool completes = self->lists[ENTRY_COMPLETION].len > 0 || self->choices != NULL;
    if (completes && revision->id >= MCP_REV_2025_03_26) {
        json_key_lit(out, "completions");
        json_put_raw(out, STR("{}"));
    }
    json_key_lit(out, "logging");
    json_put_raw(out, STR("{}"));
    put_extensions(self, revision, out);
}
