#include "catalog/older_tools.h"

#include "base/check.h"

enum { PAGE_BYTES = 1 << 30 };

static const json_limits any_size = {(size_t)PAGE_BYTES, 1024, 64u << 20};

bool older_tools_is_free(json_val tool)
{
    json_val schema = json_get(tool, STR("outputSchema"));
    return !json_is(schema, JSON_MISSING) &&
           !json_str_eq(json_get(schema, STR("type")), STR("object"));
}

static void write_tools(json_writer *out, json_val tools)
{
    static const bay_str schema = STR_INIT("outputSchema");
    json_iter iter = json_iter_of(tools);
    json_open_array(out);
    while (json_next(&iter)) {
        if (!older_tools_is_free(iter.value)) {
            json_put_val(out, iter.value);
            continue;
        }
        json_open_object(out);
        json_put_members(out, iter.value, &schema, 1);
        json_close_object(out);
    }
    json_close_array(out);
}

static void write_members(buf *out, json_val page)
{
    static const bay_str tools = STR_INIT("tools");
    buf text;
    json_writer writer;
    buf_init(&text, PAGE_BYTES);
    json_writer_init(&writer, &text);
    json_open_object(&writer);
    json_key(&writer, tools);
    write_tools(&writer, json_get(page, tools));
    json_put_members(&writer, page, &tools, 1);
    json_close_object(&writer);
    if (text.err == BAY_OK) {
        buf_append(out, text.at + 1, text.len - 2); /* without the braces */
    } else {
        out->err = text.err;
    }
    buf_fini(&text);
}

bay_err older_tools_write(buf *out, bay_str members)
{
    buf whole;
    arena memory;
    json_doc doc;
    buf_init(&whole, PAGE_BYTES);
    arena_init(&memory, PAGE_BYTES);
    buf_char(&whole, '{');
    buf_str(&whole, members);
    buf_char(&whole, '}');
    bay_err err = whole.err;
    err = err == BAY_OK ? json_parse(&doc, buf_view(&whole), &any_size, &memory, NULL) : err;
    if (err == BAY_OK) {
        write_members(out, json_root(&doc));
        err = out->err;
    }
    arena_fini(&memory);
    buf_fini(&whole);
    return err;
}
