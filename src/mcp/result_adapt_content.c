/* Converts content that a client's revision does not have: audio (since 2025-03-26) to an embedded
 * blob, a resource link (since 2025-06-18) to an embedded text, structured content (since
 * 2025-06-18; since 2026-07-28 it need not be an object) to text if there is none. A strict client
 * would otherwise refuse the whole result. All other members are copied unchanged: no revision
 * forbids unknown members. */
#include "base/check.h"
#include "mcp/older_content.h"
#include "mcp/result_adapt.h"

/* The member with the content, or "" if results of this method have none. */
static bay_str content_key(const request *to)
{
    mcp_method_id method = to->shown.method != NULL ? to->shown.method->id : MCP_METHOD_COUNT;
    return method == MCP_TOOLS_CALL    ? STR("content")
           : method == MCP_PROMPTS_GET ? STR("messages")
                                       : STR("");
}

/* The content of a prompt's message; anything else itself. */
static json_val content_of(const request *to, json_val item)
{
    return to->shown.method->id == MCP_PROMPTS_GET ? json_get(item, STR("content")) : item;
}

static bool is_new_audio(const request *to, json_val content)
{
    return to->shown.revision->id < MCP_REV_2025_03_26 &&
           json_str_eq(json_get(content, STR("type")), STR("audio")) &&
           json_is(json_get(content, STR("data")), JSON_STRING) &&
           json_is(json_get(content, STR("mimeType")), JSON_STRING);
}

static bool is_new_link(const request *to, json_val content)
{
    return to->shown.revision->id < MCP_REV_2025_06_18 &&
           json_str_eq(json_get(content, STR("type")), STR("resource_link")) &&
           json_is(json_get(content, STR("uri")), JSON_STRING) &&
           json_is(json_get(content, STR("name")), JSON_STRING);
}

static bool has_text(json_val content)
{
    json_iter iter = json_iter_of(content);
    while (json_is(content, JSON_ARRAY) && json_next(&iter)) {
        if (json_str_eq(json_get(iter.value, STR("type")), STR("text"))) {
            return true;
        }
    }
    return false;
}

static bool has_newer_kind(const request *to, json_val content)
{
    json_iter iter = json_iter_of(content);
    while (json_next(&iter)) {
        json_val item = content_of(to, iter.value);
        if (is_new_audio(to, item) || is_new_link(to, item)) {
            return true;
        }
    }
    return false;
}

result_adapt_newer result_adapt_newer_content(const request *to, json_val result)
{
    result_adapt_newer newer = {.content = STR("")};
    const mcp_revision *revision = to->shown.revision;
    bay_str key = revision->era == MCP_LEGACY ? content_key(to) : STR("");
    if (key.len == 0) {
        return newer;
    }
    json_val content = json_get(result, key);
    json_val structured = to->shown.method->id == MCP_TOOLS_CALL
                              ? json_get(result, STR("structuredContent"))
                              : JSON_NONE;
    if (!json_is(structured, JSON_MISSING)) {
        bool is_list = json_is(content, JSON_ARRAY) || json_is(content, JSON_MISSING);
        newer.is_no_object = !json_is(structured, JSON_OBJECT);
        newer.lacks_text =
            (newer.is_no_object || !revision->structured) && is_list && !has_text(content);
    }
    if (newer.lacks_text || (revision->id < MCP_REV_2025_06_18 && has_newer_kind(to, content))) {
        newer.content = key;
    }
    return newer;
}

/* What stands between a string's quotes, escapes and all; empty: it is no string. */
static bay_str inside(json_val string)
{
    bay_str raw = json_raw(string);
    return json_is(string, JSON_STRING) ? (bay_str){raw.at + 1, raw.len - 2} : STR("");
}

static void put_audio(json_writer *writer, json_val content, unsigned number)
{
    static const bay_str replaced[] = {STR_INIT("type"), STR_INIT("data"), STR_INIT("mimeType")};
    json_open_object(writer);
    mcp_older_open_audio(writer, number, json_raw(json_get(content, STR("mimeType"))));
    json_put_val(writer, json_get(content, STR("data")));
    json_close_object(writer);
    json_put_members(writer, content, replaced, ARRAY_LEN(replaced));
    json_close_object(writer);
}

static void put_link(json_writer *writer, json_val content)
{
    static const bay_str replaced[] = {STR_INIT("type"), STR_INIT("uri")};
    json_val size = json_get(content, STR("size"));
    mcp_older_link link = {
        .uri = inside(json_get(content, STR("uri"))),
        .name = inside(json_get(content, STR("name"))),
        .title = inside(json_get(content, STR("title"))),
        .description = inside(json_get(content, STR("description"))),
        .mime_type = inside(json_get(content, STR("mimeType"))),
        .size = json_is(size, JSON_NUMBER) ? json_raw(size) : STR(""),
    };
    json_open_object(writer);
    mcp_older_put_link(writer, &link);
    json_put_members(writer, content, replaced, ARRAY_LEN(replaced));
    json_close_object(writer);
}

/* `number`: its place in the result, from 1 on. */
static void put_content(json_writer *writer, const request *to, json_val content, unsigned number)
{
    if (is_new_audio(to, content)) {
        put_audio(writer, content, number);
    } else if (is_new_link(to, content)) {
        put_link(writer, content);
    } else {
        json_put_val(writer, content);
    }
}

static void put_structured(json_writer *writer, json_val structured)
{
    json_open_object(writer);
    json_key_lit(writer, "type");
    json_put_str(writer, STR("text"));
    json_key_lit(writer, "text");
    json_put_str(writer, json_raw(structured));
    json_close_object(writer);
}

void result_adapt_put_content(json_writer *writer, const request *to,
                              const result_adapt_newer *newer, json_val result)
{
    static const bay_str replaced[] = {STR_INIT("content")};
    json_key(writer, newer->content);
    json_open_array(writer);
    json_iter iter = json_iter_of(json_get(result, newer->content));
    for (unsigned number = 1; json_next(&iter); number++) {
        if (to->shown.method->id == MCP_TOOLS_CALL || !json_is(iter.value, JSON_OBJECT)) {
            put_content(writer, to, iter.value, number);
            continue;
        }
        json_open_object(writer);
        json_put_members(writer, iter.value, replaced, ARRAY_LEN(replaced));
        if (!json_is(content_of(to, iter.value), JSON_MISSING)) {
            json_key_lit(writer, "content");
            put_content(writer, to, content_of(to, iter.value), number);
        }
        json_close_object(writer);
    }
    if (newer->lacks_text) {
        put_structured(writer, json_get(result, STR("structuredContent")));
    }
    json_close_array(writer);
}
