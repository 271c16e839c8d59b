/* Results: content is put together element by element, wrapped as the kind of call wants it, and
 * sent from whatever thread finished the call. */
#include <stdarg.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "mcp/older_content.h"
#include "sdk/server_parts.h"
#include "wire/base64.h"

static const char out_of_memory[] = "The result does not fit into memory or its bound";

void sdk_result_init(bay_result *self, bay_call *call)
{
    *self = (bay_result){.call = call, .role = STR_INIT("user")};
    buf_init(&self->items, SERVER_MAX_RESULT);
    arena_init(&self->structured_memory, SIZE_MAX);
    buf_init(&self->meta, SERVER_MAX_RESULT);
}

void sdk_result_fini(bay_result *self)
{
    buf_fini(&self->items);
    arena_fini(&self->structured_memory);
    buf_fini(&self->meta);
}

bay_result *bay_result_new(bay_call *call)
{
    bay_result *self = mem_alloc(sizeof(*self));
    if (self != NULL) {
        sdk_result_init(self, call);
    }
    return self;
}

void bay_result_free(bay_result *self)
{
    if (self != NULL) {
        sdk_result_fini(self);
        mem_free(self);
    }
}

static entry_kind result_kind(const bay_result *self)
{
    return self->call->entry->kind;
}

static bool result_is_resource(const bay_result *self)
{
    return result_kind(self) == ENTRY_RESOURCE || result_kind(self) == ENTRY_TEMPLATE;
}

/* Can this be added to what the call answers with? If not, the handler hears of it by the error
 * that its client gets. */
static bool result_takes(bay_result *self, bool is_right)
{
    if (self == NULL) {
        return false;
    }
    if (!is_right) {
        self->fault = "The handler answered with content that this kind of call cannot carry";
    }
    return is_right;
}

static bool result_takes_content(bay_result *self)
{
    return result_takes(self, self != NULL && (result_kind(self) == ENTRY_TOOL ||
                                               result_kind(self) == ENTRY_PROMPT));
}

/* Opens the next element: a comma, and for prompts the message around the content. */
static void item_open(bay_result *self)
{
    if (self->count++ > 0) {
        buf_char(&self->items, ',');
    }
    if (result_kind(self) == ENTRY_PROMPT) {
        buf_lit(&self->items, "{\"role\":");
        json_quote(&self->items, self->role);
        buf_lit(&self->items, ",\"content\":");
    }
}

/* Closes the element, so that something may still be added to it. */
static void item_close(bay_result *self)
{
    self->brace = self->items.len;
    buf_char(&self->items, '}');
    if (result_kind(self) == ENTRY_PROMPT) {
        buf_char(&self->items, '}');
    }
}

/* Another member of the element added last, raw. */
static void item_extend(bay_result *self, bay_str member)
{
    if (self->items.err != BAY_OK) {
        return;
    }
    self->items.len = self->brace;
    buf_char(&self->items, ',');
    buf_str(&self->items, member);
    item_close(self);
}

static void put_quoted(buf *out, const char *key, bay_str text)
{
    buf_str(out, str_of(key));
    json_quote(out, text);
}

/* {"uri":…,"mimeType":…, as resources/read wants it; the caller adds text or blob */
static void put_resource_head(bay_result *self)
{
    put_quoted(&self->items, "{\"uri\":", self->call->request->name);
    if (self->call->entry->mime_type.len > 0) {
        put_quoted(&self->items, ",\"mimeType\":", self->call->entry->mime_type);
    }
}

void bay_result_text_str(bay_result *self, bay_str text)
{
    if (!result_takes(self, self != NULL &&
                                (result_is_resource(self) || result_kind(self) == ENTRY_TOOL ||
                                 result_kind(self) == ENTRY_PROMPT))) {
        return;
    }
    item_open(self);
    if (result_is_resource(self)) {
        put_resource_head(self);
        put_quoted(&self->items, ",\"text\":", text);
    } else {
        put_quoted(&self->items, "{\"type\":\"text\",\"text\":", text);
    }
    item_close(self);
}

void bay_result_text(bay_result *self, const char *text)
{
    bay_result_text_str(self, str_of(text));
}

void bay_result_textf(bay_result *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    buf text;
    buf_init(&text, SERVER_MAX_RESULT);
    buf_vprintf(&text, format, arguments);
    va_end(arguments);
    if (self != NULL && text.err != BAY_OK) {
        self->fault = out_of_memory;
    }
    bay_result_text_str(self, buf_view(&text));
    buf_fini(&text);
}

static void put_base64(bay_result *self, const void *bytes, size_t len)
{
    buf_char(&self->items, '"');
    base64_encode(&self->items, (bay_str){bytes, len}, BASE64_STANDARD);
    buf_char(&self->items, '"');
}

/* Media content must say what it is. */
static bay_str mime_or_bytes(const char *mime_type)
{
    return mime_type != NULL ? str_of(mime_type) : STR("application/octet-stream");
}

static void put_media(bay_result *self, const char *type, const void *bytes, size_t len,
                      const char *mime_type)
{
    if (!result_takes_content(self)) {
        return;
    }
    item_open(self);
    put_quoted(&self->items, "{\"type\":", str_of(type));
    put_quoted(&self->items, ",\"mimeType\":", mime_or_bytes(mime_type));
    buf_lit(&self->items, ",\"data\":");
    put_base64(self, bytes, len);
    item_close(self);
}

void bay_result_image(bay_result *self, const void *bytes, size_t len, const char *mime_type)
{
    put_media(self, "image", bytes, len, mime_type);
}

/* An element written whole, by a writer; something may still be added to it. */
static void item_close_written(bay_result *self, json_writer *writer)
{
    json_close_object(writer);
    if (self->items.err == BAY_OK) {
        self->items.len--; /* the brace is written anew */
    }
    item_close(self);
}

/* Audio content exists since 2025-03-26; before that the bytes travel as an embedded resource. */
void bay_result_audio(bay_result *self, const void *bytes, size_t len, const char *mime_type)
{
    if (!result_takes_content(self)) {
        return;
    }
    if (self->call->request->revision->id >= MCP_REV_2025_03_26) {
        put_media(self, "audio", bytes, len, mime_type);
        return;
    }
    buf mime;
    json_writer writer;
    buf_init(&mime, SERVER_MAX_RESULT);
    json_quote(&mime, mime_or_bytes(mime_type));
    item_open(self);
    json_writer_init(&writer, &self->items);
    json_open_object(&writer);
    mcp_older_open_audio(&writer, (unsigned)self->count, buf_view(&mime));
    size_t opened = json_open_word(&writer);
    base64_encode(&self->items, (bay_str){bytes, len}, BASE64_STANDARD);
    json_close_word(&writer, opened);
    json_close_object(&writer);
    item_close_written(self, &writer);
    buf_fini(&mime);
}

static void open_embedded(bay_result *self, const char *uri, const char *mime_type)
{
    item_open(self);
    put_quoted(&self->items, "{\"type\":\"resource\",\"resource\":{\"uri\":", str_of(uri));
    if (mime_type != NULL) {
        put_quoted(&self->items, ",\"mimeType\":", str_of(mime_type));
    }
}

void bay_result_resource(bay_result *self, const char *uri, const char *mime_type, const char *text)
{
    if (!result_takes_content(self)) {
        return;
    }
    open_embedded(self, uri, mime_type);
    put_quoted(&self->items, ",\"text\":", str_of(text));
    buf_char(&self->items, '}');
    item_close(self);
}

void bay_result_resource_blob(bay_result *self, const char *uri, const char *mime_type,
                              const void *bytes, size_t len)
{
    if (!result_takes_content(self)) {
        return;
    }
    open_embedded(self, uri, mime_type);
    buf_lit(&self->items, ",\"blob\":");
    put_base64(self, bytes, len);
    buf_char(&self->items, '}');
    item_close(self);
}

/* For clients that know no links; each part as between the quotes of a JSON string. */
static void put_older_link(bay_result *self, bay_str uri, bay_str name, const char *mime_type)
{
    const bay_str parts[] = {uri, name, str_of(mime_type)};
    bay_str inside[ARRAY_LEN(parts)];
    size_t ends[ARRAY_LEN(parts)];
    buf text;
    json_writer writer;
    buf_init(&text, SERVER_MAX_RESULT);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        json_quote(&text, parts[i]);
        ends[i] = text.len;
    }
    for (size_t i = 0; text.err == BAY_OK && i < ARRAY_LEN(parts); i++) {
        size_t start = i > 0 ? ends[i - 1] : 0;
        inside[i] = (bay_str){text.at + start + 1, ends[i] - start - 2};
    }
    if (text.err == BAY_OK) {
        mcp_older_link link = {.uri = inside[0], .name = inside[1], .mime_type = inside[2]};
        item_open(self);
        json_writer_init(&writer, &self->items);
        json_open_object(&writer);
        mcp_older_put_link(&writer, &link);
        json_key_lit(&writer, "name");
        json_put_str(&writer, name);
        if (mime_type != NULL) {
            json_key_lit(&writer, "mimeType");
            json_put_str(&writer, str_of(mime_type));
        }
        item_close_written(self, &writer);
    } else {
        self->fault = out_of_memory;
    }
    buf_fini(&text);
}

/* Resource links exist since 2025-06-18; before that the link is an embedded text. */
void bay_result_link(bay_result *self, const char *uri, const char *name, const char *mime_type)
{
    if (!result_takes_content(self)) {
        return;
    }
    const char *shown = name != NULL ? name : uri != NULL ? uri : "";
    if (self->call->request->revision->id < MCP_REV_2025_06_18) {
        put_older_link(self, str_of(uri), str_of(shown), mime_type);
        return;
    }
    item_open(self);
    put_quoted(&self->items, "{\"type\":\"resource_link\",\"uri\":", str_of(uri));
    put_quoted(&self->items, ",\"name\":", str_of(shown));
    if (mime_type != NULL) {
        put_quoted(&self->items, ",\"mimeType\":", str_of(mime_type));
    }
    item_close(self);
}

void bay_result_blob(bay_result *self, const void *bytes, size_t len)
{
    if (!result_takes(self, self != NULL && result_is_resource(self))) {
        return;
    }
    item_open(self);
    put_resource_head(self);
    buf_lit(&self->items, ",\"blob\":");
    put_base64(self, bytes, len);
    item_close(self);
}

/* What is no JSON object would break the message around it, or say something else in its place. */
static bay_err parse_object(json_doc *out, bay_str json, arena *memory)
{
    static const json_limits limits = {SERVER_MAX_RESULT, 64, 1 << 20};
    bay_err err = json_parse(out, json, &limits, memory, NULL);
    return err == BAY_OK && !json_is(json_root(out), JSON_OBJECT) ? BAY_ERR_TYPE : err;
}

static void set_fault(bay_result *self, bay_err err, const char *what)
{
    self->fault = err == BAY_ERR_NOMEM ? out_of_memory : what;
}

void bay_result_structured(bay_result *self, const char *json)
{
    if (!result_takes(self, self != NULL && result_kind(self) == ENTRY_TOOL)) {
        return;
    }
    bay_str kept;
    arena_reset(&self->structured_memory);
    json_doc *doc = arena_alloc(&self->structured_memory, sizeof(*doc));
    bay_err err =
        doc != NULL ? arena_dup(&self->structured_memory, str_of(json), &kept) : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        err = parse_object(doc, kept, &self->structured_memory);
    }
    self->structured = err == BAY_OK ? json_root(doc) : JSON_NONE;
    if (err != BAY_OK) {
        set_fault(self, err, "The handler's structured content is no JSON object");
    }
}

/* ---- what is said of content and of the result ----------------------------------------------- */

/* What `writer` has written, without the braces of its object. */
static bay_str inside(const buf *object)
{
    bay_str text = buf_view(object);
    return text.len >= 2 ? (bay_str){text.at + 1, text.len - 2} : (bay_str){NULL, 0};
}

void bay_result_annotate(bay_result *self, const char *json)
{
    bool is_content =
        self != NULL && (result_kind(self) == ENTRY_TOOL || result_kind(self) == ENTRY_PROMPT);
    if (!result_takes(self, is_content)) {
        return;
    }
    arena memory;
    json_doc doc;
    arena_init(&memory, SIZE_MAX);
    bay_err err = parse_object(&doc, str_of(json), &memory);
    const char *fault = err == BAY_OK ? sdk_annotations_fault(json_root(&doc)) : NULL;
    if (err != BAY_OK) {
        set_fault(self, err, "The handler's annotations are no JSON object");
    } else if (self->brace == 0 || fault != NULL) {
        self->fault = fault != NULL ? fault : "The handler annotated nothing, or the same twice";
    } else {
        buf text;
        json_writer writer;
        buf_init(&text, SERVER_MAX_RESULT);
        json_writer_init(&writer, &text);
        json_open_object(&writer);
        sdk_put_annotations(&writer, json_root(&doc), self->call->request->revision->id);
        json_close_object(&writer);
        self->items.err = text.err != BAY_OK ? text.err : self->items.err;
        item_extend(self, inside(&text));
        self->brace = 0;
        buf_fini(&text);
    }
    arena_fini(&memory);
}

void sdk_result_element_meta(bay_result *self, bay_str meta)
{
    if (self->brace == 0 || meta.len == 0 ||
        self->call->request->revision->id < MCP_REV_2025_06_18) {
        return;
    }
    buf text;
    buf_init(&text, SERVER_MAX_RESULT);
    buf_lit(&text, "\"_meta\":");
    buf_str(&text, meta);
    self->items.err = text.err != BAY_OK ? text.err : self->items.err;
    item_extend(self, buf_view(&text));
    buf_fini(&text);
}

/* serverInfo is the engine's to say. */
void bay_result_meta(bay_result *self, const char *json)
{
    static const bay_str ours[] = {STR_INIT(MCP_META_SERVER_INFO)};
    if (self == NULL) {
        return;
    }
    arena memory;
    json_doc doc;
    arena_init(&memory, SIZE_MAX);
    bay_err err = parse_object(&doc, str_of(json), &memory);
    if (err == BAY_OK) {
        json_writer writer;
        buf_clear(&self->meta);
        json_writer_init(&writer, &self->meta);
        json_open_object(&writer);
        json_put_members(&writer, json_root(&doc), ours, ARRAY_LEN(ours));
        json_close_object(&writer);
    } else {
        set_fault(self, err, "The handler's _meta is no JSON object");
    }
    arena_fini(&memory);
}

void bay_result_cache(bay_result *self, uint32_t ttl_ms, bool is_public)
{
    if (result_takes(self, self != NULL && result_is_resource(self))) {
        self->ttl_ms = ttl_ms;
        self->is_public = is_public;
        self->has_cache = true;
    }
}

void bay_result_error(bay_result *self)
{
    if (self != NULL) {
        self->is_error = true;
    }
}

void bay_result_message(bay_result *self, const char *role)
{
    if (self != NULL) {
        self->role = str_eq(str_of(role), STR("assistant")) ? STR("assistant") : STR("user");
    }
}

enum { MOST_VALUES = 100 }; /* mcp server/utilities/completion: at most 100 */

void bay_result_value(bay_result *self, const char *value)
{
    if (!result_takes(self, self != NULL && result_kind(self) == ENTRY_COMPLETION) ||
        self->count++ >= MOST_VALUES) {
        return;
    }
    if (self->count > 1) {
        buf_char(&self->items, ',');
    }
    json_quote(&self->items, str_of(value));
}

void bay_result_more(bay_result *self, size_t total)
{
    if (result_takes(self, self != NULL && result_kind(self) == ENTRY_COMPLETION)) {
        self->total = total;
    }
}

const char *sdk_result_fault(const bay_result *self)
{
    bool is_short = self->items.err != BAY_OK || self->meta.err != BAY_OK;
    return self->fault == NULL && is_short ? out_of_memory : self->fault;
}

/* mcp 2025-06-18 server/tools: structured content SHOULD also come as text, which is all that
 * earlier revisions have. */
static void write_tool(const bay_result *self, const mcp_revision *revision, buf *out)
{
    buf_lit(out, "\"content\":[");
    buf_str(out, buf_view(&self->items));
    bay_str structured = json_raw(self->structured);
    if (self->count == 0 && structured.len > 0) {
        put_quoted(out, "{\"type\":\"text\",\"text\":", structured);
        buf_char(out, '}');
    }
    buf_char(out, ']');
    if (structured.len > 0 && revision->structured) {
        buf_lit(out, ",\"structuredContent\":");
        buf_str(out, structured);
    }
    if (self->is_error) {
        buf_lit(out, ",\"isError\":true");
    }
}

static void write_completion(const bay_result *self, buf *out)
{
    size_t total = self->total > self->count ? self->total : self->count;
    size_t sent = self->count < MOST_VALUES ? self->count : MOST_VALUES;
    buf_lit(out, "\"completion\":{\"values\":[");
    buf_str(out, buf_view(&self->items));
    buf_printf(out, "],\"total\":%zu,\"hasMore\":%s}", total, total > sent ? "true" : "false");
}

bay_str sdk_result_meta(const bay_result *self)
{
    return inside(&self->meta);
}

void sdk_result_write_members(const bay_result *self, const mcp_revision *revision, buf *out)
{
    switch (result_kind(self)) {
    case ENTRY_TOOL:
        write_tool(self, revision, out);
        break;
    case ENTRY_PROMPT:
        if (self->call->entry->description.len > 0) {
            put_quoted(out, "\"description\":", self->call->entry->description);
            buf_char(out, ',');
        }
        buf_lit(out, "\"messages\":[");
        buf_str(out, buf_view(&self->items));
        buf_char(out, ']');
        break;
    case ENTRY_COMPLETION:
        write_completion(self, out);
        break;
    default:
        buf_lit(out, "\"contents\":[");
        buf_str(out, buf_view(&self->items));
        buf_char(out, ']');
    }
    if (self->has_cache && !atomic_load(&self->call->is_task)) { /* a task has no request left */
        self->call->request->ttl_ms = self->ttl_ms;
        self->call->request->is_cache_public = self->is_public;
    }
}
