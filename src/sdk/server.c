/* The public server object: registration. Nothing here fails loudly: what is wrong with a
 * registration is kept and told, all of it, before the server serves. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/guard.h"
#include "sdk/server_parts.h"
#include "wire/uri.h"

static const char *const entry_nouns[ENTRY_KINDS] = {
    "tool", "resource", "resource template", "prompt", "skill", "completion", "method"};

void sdk_server_error(bay_server *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    registration_error(&self->errors, format, arguments);
    va_end(arguments);
}

bay_str sdk_server_keep(bay_server *self, const char *text)
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
    if (sdk_announcements_init(&self->announcements) != BAY_OK) {
        mem_free(self);
        return NULL;
    }
    if (pthread_mutex_init(&self->asking, NULL) != 0) {
        sdk_announcements_fini(&self->announcements);
        mem_free(self);
        return NULL;
    }
    arena_init(&self->memory, SIZE_MAX);
    schema_state_init(&self->checks);
    buf_init(&self->scratch, SERVER_MAX_RESULT);
    self->newest = MCP_LATEST;
    for (size_t i = 0; i < ENTRY_KINDS; i++) {
        map_init(&self->lists[i].by_key, SERVER_MAX_ENTRIES);
    }
    bay_str kept_name = sdk_server_keep(self, name);
    bay_str kept_version = sdk_server_keep(self, version);
    const host_owner owner = {self, &self->memory, &self->errors, &self->is_out_of_memory,
                              &self->log};
    host_init(&self->host, &sdk_server_kind, &owner);
    if (kept_name.len == 0 && !self->is_out_of_memory) {
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
    if (!host_abandon(&self->host)) {
        SERVER_LOG(self, LOG_ERROR, "server",
                   "bay_server_free: the server is still in use; it stays");
        return;
    }
    for (size_t i = 0; i < ENTRY_KINDS; i++) {
        map_fini(&self->lists[i].by_key);
        mem_free(self->lists[i].items);
        sdk_list_forget(&self->lists[i]);
    }
    sdk_calls_free(self);
    sdk_skills_free(self);
    sdk_arguments_free(self);
    sdk_mrtr_state_free(self->rounds);
    bay_guard_free(self->guard);
    pthread_mutex_destroy(&self->asking);
    buf_fini(&self->scratch);
    buf_fini(&self->free_list[0]);
    buf_fini(&self->free_list[1]);
    sdk_announcements_fini(&self->announcements);
    host_fini(&self->host);
    arena_fini(&self->memory);
    mem_free(self);
}

static bay_err list_push_entry(entry_list *among, entry *item)
{
    if (among->len == among->cap) {
        size_t cap = among->cap == 0 ? 8 : among->cap * 2;
        entry **items = mem_resize(among->items, cap * sizeof(*items));
        if (items == NULL) {
            return BAY_ERR_NOMEM;
        }
        among->items = items;
        among->cap = cap;
    }
    bay_err err = map_put(&among->by_key, item->key, item, NULL);
    if (err == BAY_OK) {
        among->items[among->len++] = item;
    }
    return err;
}

/* For messages: what the registration is called. */
static const char *entry_name(const entry *self)
{
    return self->key.at != NULL ? self->key.at : "";
}

entry *sdk_server_add(bay_server *self, entry_kind kind, const char *key, const char *description,
                      bay_handler_fn handler, void *user)
{
    if (self == NULL) {
        return NULL;
    }
    entry *item = arena_zalloc(&self->memory, sizeof(*item));
    if (item == NULL) {
        self->is_out_of_memory = true;
        return NULL;
    }
    item->server = self;
    item->kind = kind;
    item->key = sdk_server_keep(self, key);
    item->description = sdk_server_keep(self, description);
    item->handler = handler;
    item->user = user;
    const char *noun = entry_nouns[kind];
    if (item->key.len == 0 && kind != ENTRY_COMPLETION) {
        sdk_server_error(self, "a %s was registered without a name", noun);
        return item;
    }
    if (handler == NULL) {
        sdk_server_error(self, "%s \"%s\": the handler is NULL", noun, entry_name(item));
    }
    if (map_get(&self->lists[kind].by_key, item->key) != NULL) {
        sdk_server_error(self, "%s \"%s\" was registered twice", noun, entry_name(item));
        return item;
    }
    bay_err err = list_push_entry(&self->lists[kind], item);
    if (err == BAY_ERR_NOMEM) {
        self->is_out_of_memory = true;
    } else if (err != BAY_OK) {
        sdk_server_error(self, "%s \"%s\": there are more than %d", noun, entry_name(item),
                         SERVER_MAX_ENTRIES);
    }
    return item;
}

bay_str sdk_server_keep_json(bay_server *self, const char *whose, const char *what,
                             const char *text, json_kind wanted, json_doc *out_doc)
{
    bay_str kept = sdk_server_keep(self, text);
    *out_doc = (json_doc){0};
    if (text == NULL || self->is_out_of_memory) {
        return (bay_str){NULL, 0};
    }
    static const json_limits limits = {SERVER_MAX_SCHEMA, 64, 1 << 18};
    bay_diag diag = {0};
    bay_err err = json_parse(out_doc, kept, &limits, &self->memory, &diag);
    if (err == BAY_OK && json_kind_of(json_root(out_doc)) == wanted) {
        err = json_check_duplicates(json_root(out_doc), &diag);
        if (err == BAY_OK) {
            return kept;
        }
    }
    if (err == BAY_ERR_NOMEM) {
        self->is_out_of_memory = true;
    } else if (err == BAY_ERR_DUPLICATE) {
        sdk_server_error(self, "%s: the %s has a member twice, at byte %zu", whose, what,
                         diag.offset);
    } else if (err == BAY_OK) {
        sdk_server_error(self, "%s: the %s must be a JSON %s", whose, what,
                         wanted == JSON_OBJECT ? "object" : "array");
    } else {
        sdk_server_error(self, "%s: the %s is not JSON: %s at byte %zu", whose, what, diag.text,
                         diag.offset);
    }
    *out_doc = (json_doc){0};
    return (bay_str){NULL, 0};
}

bay_str sdk_entry_keep_json(entry *self, const char *what, const char *text, json_kind wanted,
                            json_doc *out_doc)
{
    char whose[256];
    snprintf(whose, sizeof(whose), "%s \"%s\"", entry_nouns[self->kind], entry_name(self));
    return sdk_server_keep_json(self->server, whose, what, text, wanted, out_doc);
}

void sdk_entry_error(const entry *self, const char *format, ...)
{
    char text[sizeof(((bay_diag *)NULL)->text)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    sdk_server_error(self->server, "%s \"%s\": %s", entry_nouns[self->kind], entry_name(self),
                     text);
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

void sdk_tool_schema(entry *tool, bay_str text, const json_doc *document)
{
    bay_server *self = tool->server;
    tool->schema = text;
    tool->schema_doc = *document;
    if (!sdk_arguments_compile(tool, json_root(&tool->schema_doc), false)) {
        return;
    }
    if (!json_str_eq(json_get(json_root(document), STR("type")), STR("object"))) {
        sdk_server_error(self, "tool \"%s\": the input schema must have \"type\":\"object\"",
                         entry_name(tool));
    }
    bay_diag diag = {0};
    bay_err err = mcp_param_table_read(&tool->param_table, json_root(&tool->schema_doc),
                                       &self->memory, &diag);
    if (err == BAY_ERR_NOMEM) {
        self->is_out_of_memory = true;
    } else if (err != BAY_OK) {
        sdk_server_error(self, "tool \"%s\": x-mcp-header: %s", entry_name(tool), diag.text);
    }
}

static const char any_object[] = "{\"type\":\"object\"}";

entry *sdk_server_add_tool(bay_server *self, const char *name, const char *description,
                           bay_handler_fn handler, void *user)
{
    entry *tool = sdk_server_add(self, ENTRY_TOOL, name, description, handler, user);
    if (tool != NULL && tool->key.len > 0 && !tool_name_is_good(tool->key)) {
        sdk_server_error(self, "tool \"%s\": a name has 1 to 128 letters, digits, '_', '-' or '.'",
                         entry_name(tool));
    }
    return tool;
}

bay_tool *bay_server_tool_schema(bay_server *self, const char *name, const char *description,
                                 const char *input_schema, bay_handler_fn handler, void *user)
{
    json_doc doc;
    entry *tool = sdk_server_add_tool(self, name, description, handler, user);
    if (tool == NULL) {
        return NULL;
    }
    bay_str text = sdk_entry_keep_json(
        tool, "input schema", input_schema != NULL ? input_schema : any_object, JSON_OBJECT, &doc);
    if (text.len > 0 && input_schema != NULL) {
        sdk_tool_schema(tool, text, &doc);
    } else if (text.len > 0) { /* anything goes: nothing is compiled */
        tool->schema = text;
        tool->schema_doc = doc;
    }
    return tool;
}

void bay_tool_output_schema(bay_tool *tool, const char *json)
{
    json_doc doc;
    if (tool != NULL) {
        bay_str text = sdk_entry_keep_json(tool, "output schema", json, JSON_OBJECT, &doc);
        sdk_tool_output(tool, text, &doc);
    }
}

void sdk_tool_output(entry *tool, bay_str text, const json_doc *document)
{
    tool->output_schema = text;
    if (text.len > 0 && sdk_arguments_compile(tool, json_root(document), true)) {
        tool->output_doc = *document;
        tool->has_object_output =
            json_str_eq(json_get(json_root(document), STR("type")), STR("object"));
    }
}

void bay_server_guard(bay_server *server, bay_guard *guard)
{
    if (server == NULL) {
        return;
    }
    const char *fault = guard == NULL           ? "out of memory"
                        : server->guard != NULL ? "the server has a guard"
                                                : sdk_guard_seal(guard);
    if (fault != NULL) {
        sdk_server_error(server, "bay_server_guard: %s", fault);
        return;
    }
    server->guard = sdk_guard_ref(guard);
}

void bay_tool_scope(bay_tool *tool, const char *scopes)
{
    if (tool == NULL) {
        return;
    }
    tool->scopes = sdk_server_keep(tool->server, scopes);
    if (tool->scopes.len == 0 && !tool->server->is_out_of_memory) {
        sdk_server_error(tool->server, "tool \"%s\": the scope it needs has no name", tool->key.at);
    }
}

void bay_tool_requires(bay_tool *tool, const char *capability)
{
    if (tool == NULL) {
        return;
    }
    tool->requires = sdk_server_keep(tool->server, capability);
    if (tool->requires.len == 0 && !tool->server->is_out_of_memory) {
        sdk_server_error(tool->server, "tool \"%s\": the capability it requires has no name",
                         entry_name(tool));
    }
}

static bool uri_is_whole(bay_str text)
{
    uri parts;
    return uri_parse(&parts, text) == BAY_OK && parts.scheme.len > 0;
}

/* RFC 6570 level 1, which is what bay_call_variable reads. */
static bool template_is_simple(bay_str text)
{
    if (uri_template_check(text) != BAY_OK) {
        return false;
    }
    for (size_t at = str_find(text, '{'); at < text.len; at = str_find(text, '{')) {
        bay_str name = str_head(str_from(text, at + 1), str_find(str_from(text, at + 1), '}'));
        for (size_t i = 0; i < name.len; i++) {
            if (strchr("+#./;?&,:*", name.at[i]) != NULL) {
                return false;
            }
        }
        text = str_from(text, at + name.len + 2);
    }
    return true;
}

static entry *server_add_resource(bay_server *self, entry_kind kind, const char *address,
                                  const char *name, const char *description, const char *mime_type,
                                  bay_handler_fn handler, void *user)
{
    entry *item = sdk_server_add(self, kind, address, description, handler, user);
    if (item == NULL) {
        return NULL;
    }
    item->name = sdk_server_keep(self, name);
    item->mime_type = sdk_server_keep(self, mime_type);
    if (item->name.len == 0) {
        sdk_server_error(self, "%s \"%s\" needs a name", entry_nouns[kind], entry_name(item));
    }
    if (item->key.len == 0) {
        return item;
    }
    if (str_find(item->key, ':') == item->key.len) {
        sdk_server_error(self, "%s \"%s\" is no URI: it has no scheme", entry_nouns[kind],
                         entry_name(item));
    } else if (kind == ENTRY_RESOURCE && !uri_is_whole(item->key)) {
        sdk_server_error(self, "resource \"%s\" is no URI", entry_name(item));
    } else if (kind == ENTRY_TEMPLATE && !template_is_simple(item->key)) {
        sdk_server_error(self,
                         "resource template \"%s\" is not of literals and {name} expressions "
                         "(RFC 6570 level 1), at most %d in %d bytes",
                         entry_name(item), URI_TEMPLATE_EXPRESSIONS, URI_TEMPLATE_BYTES);
    }
    return item;
}

bay_resource *bay_server_resource(bay_server *self, const char *address, const char *name,
                                  const char *description, const char *mime_type,
                                  bay_handler_fn handler, void *user)
{
    return (bay_resource *)server_add_resource(self, ENTRY_RESOURCE, address, name, description,
                                               mime_type, handler, user);
}

bay_resource *bay_server_template(bay_server *self, const char *uri_template, const char *name,
                                  const char *description, const char *mime_type,
                                  bay_handler_fn handler, void *user)
{
    return (bay_resource *)server_add_resource(self, ENTRY_TEMPLATE, uri_template, name,
                                               description, mime_type, handler, user);
}

void bay_server_completion(bay_server *self, bay_handler_fn handler, void *user)
{
    sdk_server_add(self, ENTRY_COMPLETION, "", NULL, handler, user);
}

listen_policy sdk_server_policy(const bay_server *self)
{
    return (listen_policy){
        .is_protected = self->identify != NULL || self->guard != NULL,
        .is_open = self->host.is_open,
        .authentication = self->guard != NULL ? "bay_server_guard" : "bay_server_identify",
        .opening = "bay_server_open_on_purpose (--open)",
        .missing_url = sdk_guard_missing_url(self->guard),
    };
}

bay_err bay_server_check(bay_server *self, bay_diag *diag)
{
    if (self != NULL && !self->is_complete && !self->is_out_of_memory) {
        self->is_complete = true;
        sdk_apps_complete(self);
        sdk_skills_complete(self);
        sdk_server_warn(self);
    }
    if (self == NULL || self->is_out_of_memory) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory while the server was set up");
    }
    if (self->errors.count > 0) {
        return diag_set(diag, BAY_ERR_INVALID, "%s", self->errors.kept[0].text);
    }
    if (self->guard != NULL && self->identify != NULL) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "bay_server_guard and bay_server_identify: each would say who calls; keep "
                        "one of them");
    }
    listen_policy policy = sdk_server_policy(self);
    return listen_policy_check(&policy, diag);
}
