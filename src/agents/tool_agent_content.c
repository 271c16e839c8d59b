/* The content of a tool's result as parts. */
#include "agents/tool_agent_parts.h"
#include "base/err.h"
#include "json/canon.h"

static void put_member(json_writer *to, bay_str key, json_val value)
{
    if (json_is(value, JSON_STRING) && json_raw(value).len > 2) {
        json_key(to, key);
        json_put_val(to, value);
    }
}

static void put_resource(json_writer *to, json_val resource)
{
    json_val text = json_get(resource, STR("text"));
    json_val blob = json_get(resource, STR("blob"));
    bool is_text = json_is(text, JSON_STRING);
    json_open_object(to);
    json_key(to, is_text ? STR("text") : STR("raw"));
    json_put_val(to, is_text ? text : blob);
    put_member(to, STR("filename"), json_get(resource, STR("uri")));
    put_member(to, STR("mediaType"), json_get(resource, STR("mimeType")));
    json_close_object(to);
}

/* One item of content; nothing for kinds that are not known. */
static bool put_part(json_writer *to, json_val item)
{
    json_val type = json_get(item, STR("type"));
    json_val value = JSON_NONE;
    bay_str key = {"", 0};
    json_val resource = json_get(item, STR("resource"));
    bool is_embedded = json_str_eq(type, STR("resource")) &&
                       (json_is(json_get(resource, STR("text")), JSON_STRING) ||
                        json_is(json_get(resource, STR("blob")), JSON_STRING));
    if (json_str_eq(type, STR("text"))) {
        key = STR("text");
        value = json_get(item, STR("text"));
    } else if (json_str_eq(type, STR("image")) || json_str_eq(type, STR("audio"))) {
        key = STR("raw");
        value = json_get(item, STR("data"));
    } else if (json_str_eq(type, STR("resource_link"))) {
        key = STR("url");
        value = json_get(item, STR("uri"));
    }
    if (!is_embedded && !json_is(value, JSON_STRING)) {
        return false;
    }
    if (is_embedded) {
        put_resource(to, resource);
        return true;
    }
    json_open_object(to);
    json_key(to, key);
    json_put_val(to, value);
    put_member(to, STR("filename"), json_get(item, STR("name")));
    put_member(to, STR("mediaType"), json_get(item, STR("mimeType")));
    json_close_object(to);
    return true;
}

/* ---- texts that repeat the structured content ------------------------------------------------- */

/* Empty: there is no such form, or it is too long. */
static void put_canon(buf *out, json_val value)
{
    arena memory;
    buf_init(out, TOOL_AGENT_COMPARED_BYTES);
    arena_init(&memory, TOOL_AGENT_COMPARED_MEMORY);
    err_ignore(json_canon(out, value, &memory, NULL));
    arena_fini(&memory);
}

static bool is_text_of(bay_str text, bay_str canon)
{
    arena memory;
    json_doc doc;
    buf found;
    arena_init(&memory, TOOL_AGENT_COMPARED_MEMORY);
    bool is_json = json_parse(&doc, text, NULL, &memory, NULL) == BAY_OK;
    put_canon(&found, is_json ? json_root(&doc) : JSON_NONE);
    bool is_same = str_eq(buf_view(&found), canon);
    buf_fini(&found);
    arena_fini(&memory);
    return is_same;
}

/* mcp 2025-06-18 server/tools, structured content: for older clients it stands in a text, too. */
static bool repeats(json_val item, bay_str canon)
{
    arena memory;
    bay_str text;
    json_val value = json_get(item, STR("text"));
    if (canon.len == 0 || !json_is(value, JSON_STRING) ||
        !json_str_eq(json_get(item, STR("type")), STR("text"))) {
        return false;
    }
    arena_init(&memory, TOOL_AGENT_COMPARED_BYTES);
    bool is_same = json_str(value, &memory, &text) == BAY_OK && is_text_of(text, canon);
    arena_fini(&memory);
    return is_same;
}

bool tool_agent_put_parts(json_writer *to, json_val result)
{
    json_val structured = json_get(result, STR("structuredContent"));
    bool has_parts = false;
    buf canon;
    put_canon(&canon, structured);
    for (json_iter at = json_iter_of(json_get(result, STR("content"))); json_next(&at);) {
        if (!repeats(at.value, buf_view(&canon))) {
            has_parts = put_part(to, at.value) || has_parts;
        }
    }
    buf_fini(&canon);
    if (!json_is(structured, JSON_MISSING)) {
        json_open_object(to);
        json_key_lit(to, "data");
        json_put_val(to, structured);
        json_key_lit(to, "mediaType");
        json_put_str(to, STR("application/json"));
        json_close_object(to);
        has_parts = true;
    }
    return has_parts;
}
