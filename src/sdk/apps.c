/* Extension io.modelcontextprotocol/ui: pages for the host to show, and the tools they belong to.
 * A page is a resource like any other; what makes it one is its scheme and its type. */
#include "base/str.h"
#include "sdk/server_parts.h"

#define PAGE_TYPE "text/html;profile=mcp-app"

typedef struct page {
    bay_str html;
    bay_str meta; /* {"ui":…} or empty */
} page;

static void read_page(bay_call *call, void *user)
{
    const page *self = user;
    bay_result *result = bay_result_new(call);
    bay_result_text_str(result, self->html);
    if (result != NULL) {
        sdk_result_element_meta(result, self->meta);
    }
    bay_call_finish(call, result);
}

static void declare(bay_server *self)
{
    sdk_server_declare(self, MCP_EXTENSION_UI, STR("{\"mimeTypes\":[\"" PAGE_TYPE "\"]}"));
}

static bay_str keep_buf(bay_server *self, buf *text)
{
    bay_str kept = {NULL, 0};
    if (text->err != BAY_OK || arena_dup(&self->memory, buf_view(text), &kept) != BAY_OK) {
        self->is_out_of_memory = true;
        kept = (bay_str){NULL, 0};
    }
    buf_fini(text);
    return kept;
}

static void keep_settings(entry *item, page *of, const char *settings)
{
    json_doc doc;
    item->ui = sdk_entry_keep_json(item, "settings of the page", settings, JSON_OBJECT, &doc);
    if (item->ui.len > 0) {
        buf text;
        buf_init(&text, SERVER_MAX_SCHEMA + 64);
        buf_lit(&text, "{\"ui\":");
        buf_str(&text, item->ui);
        buf_char(&text, '}');
        of->meta = keep_buf(item->server, &text);
    }
}

bay_resource *bay_server_ui(bay_server *self, const char *uri, const char *name, const char *html,
                            const char *settings)
{
    page *user = self != NULL ? arena_zalloc(&self->memory, sizeof(*user)) : NULL;
    bay_resource *resource = bay_server_resource(self, uri, name, NULL, PAGE_TYPE, read_page, user);
    entry *item = (entry *)resource;
    if (item == NULL || user == NULL) {
        if (self != NULL) {
            self->is_out_of_memory = true;
        }
        return resource;
    }
    if (item->key.len > 0 && !str_starts(item->key, STR("ui://"))) {
        sdk_entry_error(item, "the address of a page begins with ui://");
    }
    if (html == NULL) {
        sdk_entry_error(item, "the page has no HTML");
    }
    user->html = sdk_server_keep(self, html);
    keep_settings(item, user, settings);
    declare(self);
    return resource;
}

static void render_tool(bay_tool *tool)
{
    buf text;
    json_writer writer;
    buf_init(&text, 1 << 20);
    json_writer_init(&writer, &text);
    json_open_object(&writer);
    if (tool->ui_uri.len > 0) {
        json_key_lit(&writer, "resourceUri");
        json_put_str(&writer, tool->ui_uri);
    }
    if (tool->visibility.len > 0) {
        json_key_lit(&writer, "visibility");
        json_put_raw(&writer, tool->visibility);
    }
    json_close_object(&writer);
    tool->ui = keep_buf(tool->server, &text);
    declare(tool->server);
}

void bay_tool_ui(bay_tool *tool, const char *uri)
{
    if (tool == NULL) {
        return;
    }
    tool->ui_uri = sdk_server_keep(tool->server, uri);
    if (!str_starts(tool->ui_uri, STR("ui://"))) {
        sdk_entry_error(tool, "the address of a page begins with ui://");
    }
    render_tool(tool);
}

void bay_tool_visibility(bay_tool *tool, const char *visibility)
{
    static const struct {
        bay_str given;
        bay_str raw;
    } known[] = {{STR_INIT("model"), STR_INIT("[\"model\"]")},
                 {STR_INIT("app"), STR_INIT("[\"app\"]")},
                 {STR_INIT("model,app"), STR_INIT("[\"model\",\"app\"]")},
                 {STR_INIT("app,model"), STR_INIT("[\"model\",\"app\"]")}};
    if (tool == NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (str_eq(str_of(visibility), known[i].given)) {
            tool->visibility = known[i].raw;
            render_tool(tool);
            return;
        }
    }
    sdk_entry_error(tool, "a tool is visible to \"model\", \"app\" or \"model,app\"");
}

void sdk_apps_complete(bay_server *self)
{
    const entry_list *tools = &self->lists[ENTRY_TOOL];
    for (size_t i = 0; i < tools->len; i++) {
        const entry *tool = tools->items[i];
        if (tool->ui_uri.len > 0 &&
            map_get(&self->lists[ENTRY_RESOURCE].by_key, tool->ui_uri) == NULL) {
            sdk_entry_error(tool, "there is no page \"%.*s\"", BAY_STR(tool->ui_uri));
        }
    }
}
