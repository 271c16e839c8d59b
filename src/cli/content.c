#include "cli/content.h"

#include "base/str.h"
#include "cli/say.h"
#include "wire/base64.h"

/* Bytes that a text in base64 stands for; its raw form has quotes. */
static size_t decoded_bytes(json_val data)
{
    bay_str raw = json_raw(data);
    size_t characters = 0;
    for (size_t i = 1; i + 1 < raw.len; i++) {
        characters += raw.at[i] != '=' && raw.at[i] != '\\'; /* "\/" is one character */
    }
    return characters / 4 * 3 + (characters % 4 > 1 ? characters % 4 - 1 : 0);
}

static bay_err put_string(buf *out, json_val value, const char *otherwise)
{
    arena memory;
    bay_str text;
    bay_err err = BAY_OK;
    if (!json_is(value, JSON_STRING)) {
        output_line(out, str_of(otherwise));
        return BAY_OK;
    }
    arena_init(&memory, CLI_CONTENT_MEMORY);
    err = json_str(value, &memory, &text);
    if (err == BAY_OK) {
        output_line(out, text);
    }
    arena_fini(&memory);
    return err;
}

/* "[image/png, 1,234 bytes]" */
static bay_err put_blob(buf *out, json_val mime_type, json_val data)
{
    buf_char(out, '[');
    bay_err err = put_string(out, mime_type, "application/octet-stream");
    if (json_is(data, JSON_STRING)) {
        size_t bytes = decoded_bytes(data);
        buf_lit(out, ", ");
        cli_put_count(out, bytes);
        buf_str(out, bytes == 1 ? STR(" byte") : STR(" bytes"));
    }
    buf_char(out, ']');
    return err;
}

static bay_err put_text(const output *device, buf *out, json_val value)
{
    arena memory;
    bay_str text;
    arena_init(&memory, CLI_CONTENT_MEMORY);
    bay_err err = json_str(value, &memory, &text);
    if (err == BAY_OK) {
        output_text(device, out, text);
    }
    arena_fini(&memory);
    return err;
}

static void end_line(buf *out, size_t start)
{
    if (out->len == start || out->at[out->len - 1] != '\n') {
        buf_char(out, '\n');
    }
}

static bay_err put_resource(const output *device, buf *out, json_val resource)
{
    json_val text = json_get(resource, STR("text"));
    if (json_is(text, JSON_STRING)) {
        return put_text(device, out, text);
    }
    bay_err err =
        put_blob(out, json_get(resource, STR("mimeType")), json_get(resource, STR("blob")));
    buf_char(out, ' ');
    return err == BAY_OK ? put_string(out, json_get(resource, STR("uri")), "") : err;
}

/* "[link] uri name" */
static bay_err put_link(buf *out, json_val block)
{
    buf_lit(out, "[link] ");
    bay_err err = put_string(out, json_get(block, STR("uri")), "");
    json_val name = json_get(block, STR("name"));
    if (err == BAY_OK && json_is(name, JSON_STRING)) {
        buf_lit(out, " (");
        err = put_string(out, name, "");
        buf_char(out, ')');
    }
    return err;
}

bay_err cli_content_write(const output *device, buf *out, json_val block)
{
    json_val type = json_get(block, STR("type"));
    size_t start = out->len;
    bay_err err = BAY_OK;
    if (json_str_eq(type, STR("text")) && json_is(json_get(block, STR("text")), JSON_STRING)) {
        err = put_text(device, out, json_get(block, STR("text")));
    } else if (json_str_eq(type, STR("image")) || json_str_eq(type, STR("audio"))) {
        err = put_blob(out, json_get(block, STR("mimeType")), json_get(block, STR("data")));
    } else if (json_str_eq(type, STR("resource"))) {
        err = put_resource(device, out, json_get(block, STR("resource")));
    } else if (json_str_eq(type, STR("resource_link"))) {
        err = put_link(out, block);
    } else {
        buf_lit(out, "[unknown content: ");
        err = put_string(out, type, "without a type");
        buf_char(out, ']');
    }
    end_line(out, start);
    return err == BAY_OK ? out->err : err;
}

bay_err cli_content_write_resource(const output *device, buf *out, json_val contents,
                                   bool *out_is_hidden)
{
    json_val text = json_get(contents, STR("text"));
    json_val blob = json_get(contents, STR("blob"));
    arena memory;
    bay_str encoded;
    if (json_is(text, JSON_STRING)) {
        bay_err err = put_text(device, out, text);
        return err == BAY_OK ? out->err : err;
    }
    if (!json_is(blob, JSON_STRING)) {
        return BAY_ERR_PROTOCOL;
    }
    if (device->is_terminal) {
        bay_err err = put_blob(out, json_get(contents, STR("mimeType")), blob);
        buf_char(out, '\n');
        *out_is_hidden = true;
        return err == BAY_OK ? out->err : err;
    }
    arena_init(&memory, CLI_CONTENT_MEMORY);
    bay_err err = json_str(blob, &memory, &encoded);
    if (err == BAY_OK) {
        err = base64_decode(out, encoded, BASE64_STANDARD_LOOSE);
        err = err == BAY_ERR_SYNTAX ? BAY_ERR_PROTOCOL : err;
    }
    arena_fini(&memory);
    return err;
}

bay_err cli_content_write_message(const output *device, buf *out, json_val message)
{
    json_val content = json_get(message, STR("content"));
    output_color(device, out, OUTPUT_BOLD);
    bay_err err = put_string(out, json_get(message, STR("role")), "?");
    buf_lit(out, ":");
    output_color(device, out, OUTPUT_PLAIN);
    buf_char(out, ' ');
    return err == BAY_OK ? cli_content_write(device, out, content) : err;
}
