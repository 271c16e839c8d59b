/* Content that a client's revision does not know yet, said in kinds that it does: audio (since
 * 2025-03-26) as an embedded resource, a resource link (since 2025-06-18) as a text. A client that
 * reads strictly would refuse the whole result otherwise. All other members stay, byte for byte. */
#include "base/check.h"
#include "mcp/dress.h"

/* The member that holds the content, or "" when the result of this method has none. */
static bay_str content_key(const request *to)
{
    mcp_method_id method = to->shown.method != NULL ? to->shown.method->id : MCP_METHOD_COUNT;
    return method == MCP_TOOLS_CALL    ? STR("content")
           : method == MCP_PROMPTS_GET ? STR("messages")
                                       : STR("");
}

/* Of a prompt's message the content, of anything else itself. */
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

bay_str dress_newer_content(const request *to, json_val result)
{
    bay_str key = to->shown.revision->id < MCP_REV_2025_06_18 ? content_key(to) : STR("");
    json_iter iter = json_iter_of(key.len > 0 ? json_get(result, key) : JSON_NONE);
    while (json_next(&iter)) {
        json_val content = content_of(to, iter.value);
        if (is_new_audio(to, content) || is_new_link(to, content)) {
            return key;
        }
    }
    return STR("");
}

static void put_audio(json_writer *writer, json_val content)
{
    static const bay_str replaced[] = {STR_INIT("type"), STR_INIT("data"), STR_INIT("mimeType")};
    json_open_object(writer);
    json_key_lit(writer, "type");
    json_put_str(writer, STR("resource"));
    json_key_lit(writer, "resource");
    json_open_object(writer);
    json_key_lit(writer, "uri");
    json_put_str(writer, STR("data:audio"));
    json_key_lit(writer, "mimeType");
    json_put_val(writer, json_get(content, STR("mimeType")));
    json_key_lit(writer, "blob");
    json_put_val(writer, json_get(content, STR("data")));
    json_close_object(writer);
    json_put_members(writer, content, replaced, ARRAY_LEN(replaced));
    json_close_object(writer);
}

/* What stands between a string's quotes, escapes and all. */
static bay_str inside(json_val string)
{
    bay_str raw = json_raw(string);
    return (bay_str){raw.at + 1, raw.len - 2};
}

static void put_link(json_writer *writer, json_val content)
{
    static const bay_str replaced[] = {STR_INIT("type"), STR_INIT("name"), STR_INIT("uri")};
    json_open_object(writer);
    json_key_lit(writer, "type");
    json_put_str(writer, STR("text"));
    json_key_lit(writer, "text");
    json_put_raw(writer, STR("\""));
    buf_str(writer->out, inside(json_get(content, STR("name"))));
    buf_lit(writer->out, ": ");
    buf_str(writer->out, inside(json_get(content, STR("uri"))));
    buf_char(writer->out, '"');
    json_put_members(writer, content, replaced, ARRAY_LEN(replaced));
    json_close_object(writer);
}

static void put_content(json_writer *writer, const request *to, json_val content)
{
    if (is_new_audio(to, content)) {
        put_audio(writer, content);
    } else if (is_new_link(to, content)) {
        put_link(writer, content);
    } else {
        json_put_val(writer, content);
    }
}

void dress_put_content(json_writer *writer, const request *to, bay_str key, json_val result)
{
    static const bay_str replaced[] = {STR_INIT("content")};
    json_key(writer, key);
    json_open_array(writer);
    json_iter iter = json_iter_of(json_get(result, key));
    while (json_next(&iter)) {
        if (to->shown.method->id == MCP_TOOLS_CALL || !json_is(iter.value, JSON_OBJECT)) {
            put_content(writer, to, iter.value);
            continue;
        }
        json_open_object(writer);
        json_put_members(writer, iter.value, replaced, ARRAY_LEN(replaced));
        if (!json_is(content_of(to, iter.value), JSON_MISSING)) {
            json_key_lit(writer, "content");
            put_content(writer, to, content_of(to, iter.value));
        }
        json_close_object(writer);
    }
    json_close_array(writer);
}
