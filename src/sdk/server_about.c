/* What a server says of itself: names and pictures, where its log goes, the extensions it has and
 * their methods. */
#include <stdio.h>

#include "base/check.h"
#include "base/str.h"
#include "mcp/icons.h"
#include "sdk/server_parts.h"

void bay_server_title(bay_server *self, const char *title)
{
    if (self != NULL) {
        self->title = (char *)sdk_server_keep(self, title).at;
    }
}

void bay_server_instructions(bay_server *self, const char *text)
{
    if (self != NULL) {
        self->instructions = (char *)sdk_server_keep(self, text).at;
    }
}

void bay_server_website(bay_server *self, const char *url)
{
    if (self != NULL) {
        self->website = (char *)sdk_server_keep(self, url).at;
    }
}

const char *sdk_icons_fault(json_val icons)
{
    json_iter iter = json_iter_of(icons);
    while (json_next(&iter)) {
        json_kind mime = json_kind_of(json_get(iter.value, STR("mimeType")));
        json_kind sizes = json_kind_of(json_get(iter.value, STR("sizes")));
        if (!json_is(json_get(iter.value, STR("src")), JSON_STRING) ||
            (mime != JSON_MISSING && mime != JSON_STRING) ||
            (sizes != JSON_MISSING && sizes != JSON_ARRAY)) {
            return "an icon is an object with the string \"src\", and \"mimeType\" (a string) and "
                   "\"sizes\" (an array) if wanted";
        }
        if (!mcp_icon_is_safe(iter.value)) {
            return "the \"src\" of an icon must be an https: URL, or a data: URI of an image";
        }
    }
    return NULL;
}

void bay_server_icons(bay_server *self, const char *json)
{
    json_doc doc;
    if (self == NULL) {
        return;
    }
    self->icons = sdk_server_keep_json(self, "bay_server_icons", "list", json, JSON_ARRAY, &doc);
    const char *fault = self->icons.len > 0 ? sdk_icons_fault(json_root(&doc)) : NULL;
    if (fault != NULL) {
        sdk_server_error(self, "bay_server_icons: %s", fault);
    }
}

void bay_server_log_to(bay_server *self, bay_log_level most_verbose, bay_log_fn sink, void *user)
{
    if (self != NULL) {
        self->log = (log_target){sink, user, most_verbose};
    }
}

void bay_server_on_subscribe(bay_server *self, bay_subscribed_fn subscribed, void *user)
{
    if (self != NULL) {
        self->subscribed = subscribed;
        self->subscribed_user = user;
    }
}

/* ---- extensions */

/* mcp 2026-07-28 basic, _meta key naming: a prefix of labels, a slash, a name. */
static bool is_extension_id(bay_str id)
{
    size_t slash = str_find(id, '/');
    if (slash == 0 || slash + 1 >= id.len) {
        return false;
    }
    for (size_t i = 0; i < id.len; i++) {
        char c = id.at[i];
        bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || (i > slash && c == '_') ||
                       (i == slash && c == '/') || (i > slash && c == '/');
        if (!is_good) {
            return false;
        }
    }
    return true;
}

static extension *find_extension(const bay_server *self, bay_str id)
{
    for (extension *at = self->extensions; at != NULL; at = at->next) {
        if (str_eq(at->id, id)) {
            return at;
        }
    }
    return NULL;
}

void sdk_server_declare(bay_server *self, const char *id, bay_str settings)
{
    if (find_extension(self, str_of(id)) != NULL) {
        return;
    }
    extension *item = arena_zalloc(&self->memory, sizeof(*item));
    if (item == NULL) {
        self->is_out_of_memory = true;
        return;
    }
    item->id = sdk_server_keep(self, id);
    item->settings = settings;
    extension **last = &self->extensions;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = item;
}

void bay_server_extension(bay_server *self, const char *id, const char *settings)
{
    json_doc doc;
    if (self == NULL) {
        return;
    }
    if (!is_extension_id(str_of(id))) {
        sdk_server_error(self, "bay_server_extension: \"%.100s\" is not of the form prefix/name",
                         id != NULL ? id : "");
        return;
    }
    if (find_extension(self, str_of(id)) != NULL) {
        sdk_server_error(self, "bay_server_extension: \"%s\" is declared already", id);
        return;
    }
    char whose[256];
    (void)snprintf(whose, sizeof(whose), "extension \"%.200s\"", id);
    bay_str kept = sdk_server_keep_json(self, whose, "settings", settings != NULL ? settings : "{}",
                                        JSON_OBJECT, &doc);
    if (kept.len > 0) {
        sdk_server_declare(self, id, kept);
    }
}

static bool is_taken(bay_str method)
{
    for (size_t i = 0; i < MCP_METHOD_COUNT; i++) {
        if (str_eq(mcp_method_of((mcp_method_id)i)->text, method)) {
            return true;
        }
    }
    return str_starts(method, STR("rpc.")) || str_starts(method, STR("notifications/"));
}

void bay_server_method(bay_server *self, const char *method, bay_handler_fn handler, void *user)
{
    entry *item = sdk_server_add(self, ENTRY_METHOD, method, NULL, handler, user);
    if (item != NULL && (is_taken(item->key) || item->key.len > RPC_MAX_METHOD_BYTES)) {
        sdk_entry_error(item, "the name belongs to the protocol, or is too long");
    }
}
