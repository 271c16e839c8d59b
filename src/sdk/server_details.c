/* What may be said of a tool, a resource or a prompt once it is registered, and switching it off
 * and on. */
#include "base/check.h"
#include "base/str.h"
#include "sdk/server_parts.h"

/* The public names of one struct. */
static entry *of_resource(bay_resource *resource)
{
    return (entry *)resource;
}

static entry *of_prompt(bay_prompt *prompt)
{
    return (entry *)prompt;
}

static void set_title(entry *self, const char *title)
{
    if (self != NULL) {
        self->title = sdk_server_keep(self->server, title);
    }
}

static void set_icons(entry *self, const char *json)
{
    json_doc doc;
    if (self == NULL) {
        return;
    }
    self->icons = sdk_entry_keep_json(self, "list of icons", json, JSON_ARRAY, &doc);
    const char *fault = self->icons.len > 0 ? sdk_icons_fault(json_root(&doc)) : NULL;
    if (fault != NULL) {
        sdk_entry_error(self, "%s", fault);
    }
}

static void set_meta(entry *self, const char *json)
{
    if (self != NULL) {
        self->meta = sdk_entry_keep_json(self, "_meta", json, JSON_OBJECT, &self->meta_doc);
    }
}

static void set_blocking(entry *self)
{
    if (self != NULL) {
        self->is_blocking = true;
    }
}

/* Clients list anew; until they do, calls of what is off find nothing. */
static void enable(entry *self, bay_kind kind, bool is_enabled)
{
    if (self != NULL && atomic_exchange(&self->is_off, !is_enabled) == is_enabled) {
        bay_server_changed(self->server, kind);
    }
}

/* ---- tools */

void bay_tool_title(bay_tool *tool, const char *title)
{
    set_title(tool, title);
}

void bay_tool_annotations(bay_tool *tool, const char *json)
{
    static const bay_str hints[] = {STR_INIT("readOnlyHint"), STR_INIT("destructiveHint"),
                                    STR_INIT("idempotentHint"), STR_INIT("openWorldHint")};
    if (tool == NULL) {
        return;
    }
    json_doc *doc = &tool->annotations_doc;
    tool->annotations = sdk_entry_keep_json(tool, "annotations", json, JSON_OBJECT, doc);
    for (size_t i = 0; i < ARRAY_LEN(hints) && tool->annotations.len > 0; i++) {
        json_kind kind = json_kind_of(json_get(json_root(doc), hints[i]));
        if (kind != JSON_MISSING && kind != JSON_TRUE && kind != JSON_FALSE) {
            sdk_entry_error(tool, "the annotation %s must be true or false", hints[i].at);
        }
    }
}

void bay_tool_icons(bay_tool *tool, const char *json)
{
    set_icons(tool, json);
}

void bay_tool_meta(bay_tool *tool, const char *json)
{
    set_meta(tool, json);
}

void bay_tool_blocking(bay_tool *tool)
{
    set_blocking(tool);
}

void bay_tool_enable(bay_tool *tool, bool is_enabled)
{
    enable(tool, BAY_KIND_TOOLS, is_enabled);
}

/* ---- resources */

void bay_resource_title(bay_resource *resource, const char *title)
{
    set_title(of_resource(resource), title);
}

/* mcp 2025-11-25 server/resources, Annotations. */
const char *sdk_annotations_fault(json_val annotations)
{
    json_val audience = json_get(annotations, STR("audience"));
    json_val priority = json_get(annotations, STR("priority"));
    json_val modified = json_get(annotations, STR("lastModified"));
    double number = 0;
    if (!json_is(audience, JSON_MISSING) && !json_is(audience, JSON_ARRAY)) {
        return "the annotation audience must be an array of \"user\" and \"assistant\"";
    }
    json_iter iter = json_iter_of(audience);
    while (json_next(&iter)) {
        if (!json_str_eq(iter.value, STR("user")) && !json_str_eq(iter.value, STR("assistant"))) {
            return "the annotation audience must be an array of \"user\" and \"assistant\"";
        }
    }
    if (!json_is(priority, JSON_MISSING) &&
        (json_double(priority, &number) != BAY_OK || !(number >= 0 && number <= 1))) {
        return "the annotation priority must be a number from 0 to 1";
    }
    if (!json_is(modified, JSON_MISSING) && !json_is(modified, JSON_STRING)) {
        return "the annotation lastModified must be a time as text (ISO 8601)";
    }
    return NULL;
}

void bay_resource_annotations(bay_resource *resource, const char *json)
{
    entry *self = of_resource(resource);
    if (self == NULL) {
        return;
    }
    json_doc *doc = &self->annotations_doc;
    self->annotations = sdk_entry_keep_json(self, "annotations", json, JSON_OBJECT, doc);
    const char *fault = self->annotations.len > 0 ? sdk_annotations_fault(json_root(doc)) : NULL;
    if (fault != NULL) {
        sdk_entry_error(self, "%s", fault);
    }
}

void bay_resource_icons(bay_resource *resource, const char *json)
{
    set_icons(of_resource(resource), json);
}

void bay_resource_meta(bay_resource *resource, const char *json)
{
    set_meta(of_resource(resource), json);
}

void bay_resource_size(bay_resource *resource, uint64_t bytes)
{
    entry *self = of_resource(resource);
    if (self == NULL) {
        return;
    }
    if (self->kind != ENTRY_RESOURCE || bytes > INT64_MAX) {
        sdk_entry_error(self, "only a resource at one URI has a size, of at most 2^63 - 1 bytes");
        return;
    }
    self->size = bytes;
    self->has_size = true;
}

void bay_resource_blocking(bay_resource *resource)
{
    set_blocking(of_resource(resource));
}

void bay_resource_enable(bay_resource *resource, bool is_enabled)
{
    enable(of_resource(resource), BAY_KIND_RESOURCES, is_enabled);
}

/* ---- prompts */

void bay_prompt_title(bay_prompt *prompt, const char *title)
{
    set_title(of_prompt(prompt), title);
}

void bay_prompt_icons(bay_prompt *prompt, const char *json)
{
    set_icons(of_prompt(prompt), json);
}

void bay_prompt_meta(bay_prompt *prompt, const char *json)
{
    set_meta(of_prompt(prompt), json);
}

void bay_prompt_blocking(bay_prompt *prompt)
{
    set_blocking(of_prompt(prompt));
}

void bay_prompt_enable(bay_prompt *prompt, bool is_enabled)
{
    enable(of_prompt(prompt), BAY_KIND_PROMPTS, is_enabled);
}
