/* The public server object: registration. Nothing here fails loudly: what is wrong with a
 * registration is kept and told, all of it, before the server serves. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/server_parts.h"

static const char *const entry_nouns[ENTRY_KINDS] = {"tool", "resource", "resource template",
                                                     "prompt", "completion"};

void sdk_server_error(bay_server *self, const char *format, ...)
{
    if (self->error_count < SERVER_MAX_ERRORS) {
        bay_diag *diag = &self->errors[self->error_count];
        *diag = (bay_diag){.code = BAY_INVALID};
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(diag->text, sizeof(diag->text), format, arguments);
        va_end(arguments);
    }
    self->error_count++;
}

/* A copy in the server's memory; empty on failure, which is remembered. */
static bay_str server_keep(bay_server *self, const char *text)
{
    bay_str copy = {NULL, 0};
    if (text != NULL && arena_dup(&self->memory, str_of(text), &copy) != BAY_OK) {
        self->is_out_of_memory = true;
    }
    return copy;
}

bay_server *bay_server_new(const char *name, const char *version)
{
    bay_server *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    arena_init(&self->memory, SIZE_MAX);
    buf_init(&self->scratch, SERVER_MAX_RESULT);
    for (size_t i = 0; i < ENTRY_KINDS; i++) {
        map_init(&self->lists[i].by_key, SERVER_MAX_ENTRIES);
    }
    bay_str kept_name = server_keep(self, name);
    bay_str kept_version = server_keep(self, version);
    if (kept_name.len == 0) {
        sdk_server_error(self, "bay_server_new: a server needs a name");
    }
    self->name = (char *)kept_name.at;
    self->version = (char *)kept_version.at;
    return self;
}

void bay_server_free(bay_server *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < ENTRY_KINDS; i++) {
        map_fini(&self->lists[i].by_key);
        mem_free(self->lists[i].items);
    }
    sdk_calls_free(self);
    buf_fini(&self->scratch);
    buf_fini(&self->spares[0]);
    buf_fini(&self->spares[1]);
    arena_fini(&self->memory);
    mem_free(self);
}

void bay_server_title(bay_server *self, const char *title)
{
    self->title = (char *)server_keep(self, title).at;
}

void bay_server_instructions(bay_server *self, const char *text)
{
    self->instructions = (char *)server_keep(self, text).at;
}

static bool list_push_entry(entry_list *list, entry *item)
{
    if (list->len == list->cap) {
        size_t cap = list->cap == 0 ? 8 : list->cap * 2;
        entry **items = mem_resize(list->items, cap * sizeof(*items));
        if (items == NULL) {
            return false;
        }
        list->items = items;
        list->cap = cap;
    }
    if (map_put(&list->by_key, item->key, item, NULL) != BAY_OK) {
        return false;
    }
    list->items[list->len++] = item;
    return true;
}

/* Makes an entry and lists it. Never NULL but for lack of memory: a bad one is kept out of the
 * list, yet its setters work. */
static entry *server_add(bay_server *self, entry_kind kind, const char *key,
                         const char *description, bay_handler handler, void *user)
{
    entry *item = arena_zalloc(&self->memory, sizeof(*item));
    if (item == NULL) {
        self->is_out_of_memory = true;
        return NULL;
    }
    item->server = self;
    item->kind = kind;
    item->key = server_keep(self, key);
    item->description = server_keep(self, description);
    item->handler = handler;
    item->user = user;
    const char *noun = entry_nouns[kind];
    if (item->key.len == 0 && kind != ENTRY_COMPLETION) {
        sdk_server_error(self, "a %s was registered without a name", noun);
    } else if (handler == NULL) {
        sdk_server_error(self, "%s \"%s\": the handler is NULL", noun, key);
    } else if (map_get(&self->lists[kind].by_key, item->key) != NULL) {
        sdk_server_error(self, "%s \"%s\" was registered twice", noun,
                         item->key.len > 0 ? key : "");
    } else if (!list_push_entry(&self->lists[kind], item)) {
        self->is_out_of_memory = true;
    }
    return item;
}

/* Keeps `text` if it is JSON of the wanted kind. */
static bay_str server_keep_json(bay_server *self, const entry *item, const char *what,
                                const char *text, json_kind wanted, json_doc *out_doc)
{
    bay_str kept = server_keep(self, text);
    if (text == NULL) {
        return kept;
    }
    static const json_limits limits = {SERVER_MAX_SCHEMA, 64, 1 << 18};
    bay_diag diag = {0};
    bay_err err = json_parse(out_doc, kept, &limits, &self->memory, &diag);
    if (err == BAY_OK && json_kind_of(json_root(out_doc)) == wanted) {
        return kept;
    }
    if (err == BAY_OK) {
        sdk_server_error(self, "%s \"%s\": the %s must be a JSON %s", entry_nouns[item->kind],
                         item->key.at, what, wanted == JSON_OBJECT ? "object" : "array");
    } else {
        sdk_server_error(self, "%s \"%s\": the %s is not JSON: %s at byte %zu",
                         entry_nouns[item->kind], item->key.at, what, diag.text, diag.offset);
    }
    *out_doc = (json_doc){0};
    return (bay_str){NULL, 0};
}

/* Tool names: 1 to 128 of A-Z a-z 0-9 _ - . (mcp 2025-11-25 server/tools, "Tool Names"). */
static bool tool_name_is_good(bay_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
        if (!is_good) {
            return false;
        }
    }
    return name.len >= 1 && name.len <= 128;
}

bay_tool *bay_server_tool(bay_server *self, const char *name, const char *description,
                          const char *input_schema, bay_handler handler, void *user)
{
    entry *tool = server_add(self, ENTRY_TOOL, name, description, handler, user);
    if (tool == NULL) {
        return NULL;
    }
    if (tool->key.len > 0 && !tool_name_is_good(tool->key)) {
        sdk_server_error(self, "tool \"%s\": a name has 1 to 128 letters, digits, '_', '-' or '.'",
                         name);
    }
    const char *schema = input_schema != NULL ? input_schema : "{\"type\":\"object\"}";
    tool->schema =
        server_keep_json(self, tool, "input schema", schema, JSON_OBJECT, &tool->schema_doc);
    if (tool->schema.len == 0) {
        return tool;
    }
    json_val root = json_root(&tool->schema_doc);
    if (!json_str_eq(json_get(root, STR("type")), STR("object"))) {
        sdk_server_error(self, "tool \"%s\": the input schema must have \"type\":\"object\"", name);
    }
    bay_diag diag = {0};
    if (sdk_arguments_compile(tool) != BAY_OK) {
        sdk_server_error(self, "tool \"%s\": the names in its input schema cannot be read", name);
    }
    if (mcp_param_table_read(&tool->param_table, root, &self->memory, &diag) != BAY_OK) {
        sdk_server_error(self, "tool \"%s\": x-mcp-header: %s", name, diag.text);
    }
    return tool;
}

void bay_tool_title(bay_tool *tool, const char *title)
{
    if (tool != NULL) {
        tool->title = server_keep(tool->server, title);
    }
}

void bay_tool_output_schema(bay_tool *tool, const char *schema)
{
    json_doc doc;
    if (tool != NULL) {
        tool->output_schema =
            server_keep_json(tool->server, tool, "output schema", schema, JSON_OBJECT, &doc);
    }
}

void bay_tool_annotations(bay_tool *tool, const char *json)
{
    json_doc doc;
    if (tool != NULL) {
        tool->annotations =
            server_keep_json(tool->server, tool, "annotations", json, JSON_OBJECT, &doc);
    }
}

void bay_tool_blocking(bay_tool *tool)
{
    if (tool != NULL) {
        tool->is_blocking = true;
    }
}

void bay_tool_requires(bay_tool *tool, const char *capability)
{
    if (tool != NULL) {
        tool->requires = server_keep(tool->server, capability);
    }
}

static void server_add_resource(bay_server *self, entry_kind kind, const char *uri,
                                const char *name, const char *description, const char *mime_type,
                                bay_handler handler, void *user)
{
    entry *item = server_add(self, kind, uri, description, handler, user);
    if (item == NULL) {
        return;
    }
    item->title = server_keep(self, name);
    item->mime_type = server_keep(self, mime_type);
    if (item->title.len == 0) {
        sdk_server_error(self, "%s \"%s\" needs a name", entry_nouns[kind], uri != NULL ? uri : "");
    }
    if (str_find(item->key, ':') == item->key.len && item->key.len > 0) {
        sdk_server_error(self, "%s \"%s\" is no URI: it has no scheme", entry_nouns[kind], uri);
    }
}

void bay_server_resource(bay_server *self, const char *uri, const char *name,
                         const char *description, const char *mime_type, bay_handler handler,
                         void *user)
{
    server_add_resource(self, ENTRY_RESOURCE, uri, name, description, mime_type, handler, user);
}

void bay_server_template(bay_server *self, const char *uri_template, const char *name,
                         const char *description, const char *mime_type, bay_handler handler,
                         void *user)
{
    server_add_resource(self, ENTRY_TEMPLATE, uri_template, name, description, mime_type, handler,
                        user);
}

void bay_server_prompt(bay_server *self, const char *name, const char *description,
                       const char *arguments, bay_handler handler, void *user)
{
    entry *prompt = server_add(self, ENTRY_PROMPT, name, description, handler, user);
    if (prompt != NULL) {
        prompt->schema = server_keep_json(self, prompt, "argument list", arguments, JSON_ARRAY,
                                          &prompt->schema_doc);
    }
}

void bay_server_completion(bay_server *self, bay_handler handler, void *user)
{
    server_add(self, ENTRY_COMPLETION, "", NULL, handler, user);
}

bay_err bay_server_check(bay_server *self, bay_diag *diag)
{
    if (self == NULL || self->is_out_of_memory) {
        return diag_set(diag, BAY_NOMEM, "out of memory while the server was set up");
    }
    if (self->error_count > 0) {
        return diag_set(diag, BAY_INVALID, "%s", self->errors[0].text);
    }
    return BAY_OK;
}

static void announce(void *argument)
{
    bay_server *self = argument;
    unsigned changes = atomic_exchange(&self->changes, 0);
    for (unsigned bit = 1; bit <= MCP_CHANGE_RESOURCES; bit <<= 1) {
        if ((changes & bit) != 0 && self->engine != NULL) {
            mcp_server_changed(self->engine, (mcp_change)bit);
        }
    }
}

void bay_server_changed(bay_server *self, bay_change change)
{
    /* One announcement in flight carries every change made until it runs. */
    if (atomic_fetch_or(&self->changes, (unsigned)change) == 0 && self->loop != NULL &&
        loop_post(self->loop, announce, self) != BAY_OK) {
        atomic_store(&self->changes, 0);
    }
}

typedef struct update {
    bay_server *server;
    char *uri;
} update;

static void announce_update(void *argument)
{
    update *self = argument;
    if (self->server->engine != NULL) {
        mcp_server_resource_updated(self->server->engine, str_of(self->uri));
    }
    mem_free(self->uri);
    mem_free(self);
}

void bay_server_updated(bay_server *self, const char *uri)
{
    update *note = self->loop != NULL ? mem_alloc(sizeof(*note)) : NULL;
    if (note == NULL) {
        return;
    }
    *note = (update){self, mem_dup(uri, strlen(uri))};
    if (note->uri == NULL || loop_post(self->loop, announce_update, note) != BAY_OK) {
        mem_free(note->uri);
        mem_free(note);
    }
}
