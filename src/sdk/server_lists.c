/* The lists a server shows, rendered once before it serves: a list request costs a copy. */
#include "base/str.h"
#include "sdk/server_parts.h"

static void put_member(json_writer *writer, bay_str key, bay_str text)
{
    if (text.len > 0) {
        json_key(writer, key);
        json_put_str(writer, text);
    }
}

static void put_raw_member(json_writer *writer, bay_str key, bay_str raw)
{
    if (raw.len > 0) {
        json_key(writer, key);
        json_put_raw(writer, raw);
    }
}

static void render_entry(json_writer *writer, const entry *item)
{
    json_open_object(writer);
    switch (item->kind) {
    case ENTRY_TOOL:
        put_member(writer, STR("name"), item->key);
        put_member(writer, STR("title"), item->title);
        put_member(writer, STR("description"), item->description);
        put_raw_member(writer, STR("inputSchema"), item->schema);
        put_raw_member(writer, STR("outputSchema"), item->output_schema);
        put_raw_member(writer, STR("annotations"), item->annotations);
        break;
    case ENTRY_RESOURCE:
    case ENTRY_TEMPLATE:
        put_member(writer, item->kind == ENTRY_RESOURCE ? STR("uri") : STR("uriTemplate"),
                   item->key);
        put_member(writer, STR("name"), item->title);
        put_member(writer, STR("description"), item->description);
        put_member(writer, STR("mimeType"), item->mime_type);
        break;
    case ENTRY_PROMPT:
        put_member(writer, STR("name"), item->key);
        put_member(writer, STR("description"), item->description);
        put_raw_member(writer, STR("arguments"), item->schema);
        break;
    default:
        break;
    }
    json_close_object(writer);
}

static bay_err render_list(bay_server *self, entry_kind kind, bay_str key)
{
    entry_list *among = &self->lists[kind];
    buf out;
    buf_init(&out, SERVER_MAX_RESULT);
    json_quote(&out, key);
    buf_char(&out, ':');
    json_writer writer;
    json_writer_init(&writer, &out);
    json_open_array(&writer);
    for (size_t i = 0; i < among->len; i++) {
        render_entry(&writer, among->items[i]);
    }
    json_close_array(&writer);
    bay_err err = out.err;
    if (err == BAY_OK) {
        err = arena_dup(&self->memory, buf_view(&out), &among->rendered);
    }
    buf_fini(&out);
    return err;
}

bay_err sdk_server_render(bay_server *self)
{
    static const bay_str keys[ENTRY_COMPLETION] = {STR_INIT("tools"), STR_INIT("resources"),
                                                   STR_INIT("resourceTemplates"),
                                                   STR_INIT("prompts")};
    for (entry_kind kind = 0; kind < ENTRY_COMPLETION; kind++) {
        bay_err err = render_list(self, kind, keys[kind]);
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

void sdk_server_write_capabilities(void *user, const mcp_revision *revision, json_writer *out)
{
    const bay_server *self = user;
    if (self->lists[ENTRY_TOOL].len > 0) {
        json_key_lit(out, "tools");
        json_put_raw(out, STR("{\"listChanged\":true}"));
    }
    if (self->lists[ENTRY_RESOURCE].len + self->lists[ENTRY_TEMPLATE].len > 0) {
        json_key_lit(out, "resources");
        json_put_raw(out, STR("{\"subscribe\":true,\"listChanged\":true}"));
    }
    if (self->lists[ENTRY_PROMPT].len > 0) {
        json_key_lit(out, "prompts");
        json_put_raw(out, STR("{\"listChanged\":true}"));
    }
    if (self->lists[ENTRY_COMPLETION].len > 0 && revision->id >= MCP_REV_2025_03_26) {
        json_key_lit(out, "completions");
        json_put_raw(out, STR("{}"));
    }
    json_key_lit(out, "logging");
    json_put_raw(out, STR("{}"));
}
