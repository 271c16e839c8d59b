/* A link's embedded text reads
 *
 *     The note (note.txt)
 *     What was said.
 *     file:///note.txt, text/plain, 16 bytes
 *
 * and its own MIME type is that of a plain text: it is what the link says, not what the resource
 * holds. Audio has no URI of its own; `cid:` (RFC 2392) names a part of the message that it is in. */
#include "mcp/older_content.h"

#include "base/str.h"

#define LINE_END "\\n"

static void open_resource(json_writer *out)
{
    json_key_lit(out, "type");
    json_put_str(out, STR("resource"));
    json_key_lit(out, "resource");
    json_open_object(out);
    json_key_lit(out, "uri");
}

/* In place of what its parts' escapes stand for: they go on as they are. */
static void put_link_text(json_writer *out, const mcp_older_link *link)
{
    bool has_title = link->title.len > 0;
    size_t opened = json_open_word(out);
    buf_str(out->out, has_title ? link->title : link->name);
    if (has_title && !str_eq(link->title, link->name)) {
        buf_lit(out->out, " (");
        buf_str(out->out, link->name);
        buf_char(out->out, ')');
    }
    if (link->description.len > 0) {
        buf_lit(out->out, LINE_END);
        buf_str(out->out, link->description);
    }
    buf_lit(out->out, LINE_END);
    buf_str(out->out, link->uri);
    if (link->mime_type.len > 0) {
        buf_lit(out->out, ", ");
        buf_str(out->out, link->mime_type);
    }
    if (link->size.len > 0) {
        buf_lit(out->out, ", ");
        buf_str(out->out, link->size);
        buf_lit(out->out, " bytes");
    }
    json_close_word(out, opened);
}

void mcp_older_put_link(json_writer *out, const mcp_older_link *link)
{
    open_resource(out);
    size_t opened = json_open_word(out);
    buf_str(out->out, link->uri);
    json_close_word(out, opened);
    json_key_lit(out, "mimeType");
    json_put_str(out, STR("text/plain"));
    json_key_lit(out, "text");
    put_link_text(out, link);
    json_close_object(out);
}

void mcp_older_open_audio(json_writer *out, unsigned number, bay_str mime_type)
{
    open_resource(out);
    size_t opened = json_open_word(out);
    buf_lit(out->out, "cid:audio-");
    buf_uint(out->out, number);
    buf_lit(out->out, "@patchbay");
    json_close_word(out, opened);
    json_key_lit(out, "mimeType");
    json_put_raw(out, mime_type);
    json_key_lit(out, "blob");
}
