/* Results: content is put together element by element, wrapped as the kind of call wants it, and
 * sent from whatever thread finished the call. */
#include <stdarg.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
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
    buf_init(&self->meta, SERVER_MAX_RESULT);
}

void sdk_result_fini(bay_result *self)
{
    buf_fini(&self->items);
    bay_json_free(self->structured);
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
    self->is_annotated = self->has_item_meta = false;
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
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
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

static void open_embedded(bay_result *self, bay_str uri, bay_str mime_type)
{
    item_open(self);
    put_quoted(&self->items, "{\"type\":\"resource\",\"resource\":{\"uri\":", uri);
    if (mime_type.at != NULL) {
        put_quoted(&self->items, ",\"mimeType\":", mime_type);
    }
}

void bay_result_resource_str(bay_result *self, bay_str uri, bay_str mime_type, bay_str text)
{
    if (!result_takes_content(self)) {
        return;
    }
    open_embedded(self, uri, mime_type);
    put_quoted(&self->items, ",\"text\":", text);
    buf_char(&self->items, '}');
    item_close(self);
}

void bay_result_resource(bay_result *self, const char *uri, const char *mime_type, const char *text)
{
    bay_result_resource_str(self, str_of(uri), str_of(mime_type), str_of(text));
}

void bay_result_resource_blob(bay_result *self, const char *uri, const char *mime_type,
                              const void *bytes, size_t len)
{
    if (!result_takes_content(self)) {
        return;
    }
    open_embedded(self, str_of(uri), str_of(mime_type));
    buf_lit(&self->items, ",\"blob\":");
    put_base64(self, bytes, len);
    buf_char(&self->items, '}');
    item_close(self);
}

/* For clients that know no links; each part as between the quotes of a JSON string. */
static void put_older_link(bay_result *self, bay_str uri, bay_str name, bay_str mime_type)
{
    const bay_str parts[] = {uri, name, mime_type};
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
        if (mime_type.at != NULL) {
            json_key_lit(&writer, "mimeType");
            json_put_str(&writer, mime_type);
        }
        item_close_written(self, &writer);
    } else {
        self->fault = out_of_memory;
    }
    buf_fini(&text);
}

/* Resource links exist since 2025-06-18; before that the link is an embedded text. */
void bay_result_link_str(bay_result *self, bay_str uri, bay_str name, bay_str mime_type)
{
    if (!result_takes_content(self)) {
        return;
    }
    bay_str shown = name.at != NULL ? name : uri;
    if (self->call->request->revision->id < MCP_REV_2025_06_18) {
        put_older_link(self, uri, shown, mime_type);
        return;
    }
    item_open(self);
    put_quoted(&self->items, "{\"type\":\"resource_link\",\"uri\":", uri);
    put_quoted(&self->items, ",\"name\":", shown);
    if (mime_type.at != NULL) {
        put_quoted(&self->items, ",\"mimeType\":", mime_type);
    }
    item_close(self);
}

void bay_result_link(bay_result *self, const char *uri, const char *name, const char *mime_type)
{
    bay_result_link_str(self, str_of(uri), str_of(name), str_of(mime_type));
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

/* ---- JSON that the handler gives ------------------------------------------------------------- */

/* What is not of the kind would break the message around it, or say something else in its place.
 * JSON_MISSING: any kind. False: the call fails with `fault`; the log has the reason. */
static bool takes_json(bay_result *self, bay_json *json, json_kind wanted, const char *fault,
                       json_val *out)
{
    bay_err err = sdk_call_json(self->call, fault, json, wanted, out);
    if (err != BAY_OK) {
        self->fault = err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT ? out_of_memory : fault;
    }
    return err == BAY_OK;
}

void bay_result_structured_json(bay_result *self, bay_json *json)
{
    json_val any;
    bool is_tool = result_takes(self, self != NULL && result_kind(self) == ENTRY_TOOL);
    if (!is_tool || !takes_json(self, json, JSON_MISSING,
                                "The handler's structured content is no JSON", &any)) {
        bay_json_free(json);
        return;
    }
    bay_json_free(self->structured);
    self->structured = json;
}

void bay_result_structured(bay_result *self, const char *json)
{
    bay_result_structured_json(self, bay_json_of(json));
}

json_val sdk_result_structured(const bay_result *self)
{
    json_val any = JSON_NONE;
    if (self->structured != NULL) {
        err_ignore(sdk_json_val(self->structured, JSON_MISSING, &any)); /* it was good before */
    }
    return any;
}

void sdk_result_json(bay_result *self, bay_json *json)
{
    json_val any;
    if (!result_is_resource(self)) {
        bay_result_structured_json(self, json);
        return;
    }
    if (sdk_call_json(self->call, "what it read", json, JSON_MISSING, &any) == BAY_OK) {
        bay_result_text_str(self, json_raw(any));
    } else {
        self->fault = "The handler's JSON is none, or does not fit into memory or its bound";
    }
    bay_json_free(json);
}

/* ---- what is said of content and of the result ----------------------------------------------- */

/* What `writer` has written, without the braces of its object. */
static bay_str inside(const buf *object)
{
    bay_str text = buf_view(object);
    return text.len >= 2 ? (bay_str){text.at + 1, text.len - 2} : (bay_str){NULL, 0};
}

static void annotate(bay_result *self, json_val annotations)
{
    const char *fault = sdk_annotations_fault(annotations);
    if (self->brace == 0 || self->is_annotated || fault != NULL) {
        self->fault = fault != NULL ? fault : "The handler annotated nothing, or the same twice";
        return;
    }
    buf text;
    json_writer writer;
    buf_init(&text, SERVER_MAX_RESULT);
    json_writer_init(&writer, &text);
    json_open_object(&writer);
    sdk_put_annotations(&writer, annotations, self->call->request->revision->id);
    json_close_object(&writer);
    self->items.err = text.err != BAY_OK ? text.err : self->items.err;
    item_extend(self, inside(&text));
    self->is_annotated = true;
    buf_fini(&text);
}

void bay_result_annotate(bay_result *self, const char *json)
{
    bool is_content =
        self != NULL && (result_kind(self) == ENTRY_TOOL || result_kind(self) == ENTRY_PROMPT);
    if (!result_takes(self, is_content)) {
        return;
    }
    json_val object;
    bay_json *read = bay_json_of(json);
    if (takes_json(self, read, JSON_OBJECT, "The handler's annotations are no JSON object",
                   &object)) {
        annotate(self, object);
    }
    bay_json_free(read);
}

void sdk_result_element_meta(bay_result *self, bay_str meta)
{
    self->has_item_meta = true;
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

void bay_result_item_meta(bay_result *self, const char *json)
{
    json_val object;
    bay_json *read = bay_json_of(json);
    if (self != NULL && takes_json(self, read, JSON_OBJECT,
                                   "The handler's _meta of content is no JSON object", &object)) {
        if (self->brace == 0 || self->has_item_meta) {
            self->fault = "The handler gave _meta to no content, or twice to the same";
        } else {
            sdk_result_element_meta(self, json_raw(object));
        }
    }
    bay_json_free(read);
}

/* serverInfo is the engine's to say. */
void bay_result_meta_json(bay_result *self, bay_json *json)
{
    static const bay_str ours[] = {STR_INIT(MCP_META_SERVER_INFO)};
    json_val object;
    if (self != NULL &&
        takes_json(self, json, JSON_OBJECT, "The handler's _meta is no JSON object", &object)) {
        json_writer writer;
        buf_clear(&self->meta);
        json_writer_init(&writer, &self->meta);
        json_open_object(&writer);
        json_put_members(&writer, object, ours, ARRAY_LEN(ours));
        json_close_object(&writer);
    }
    bay_json_free(json);
}

void bay_result_meta(bay_result *self, const char *json)
{
    bay_result_meta_json(self, bay_json_of(json));
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

void bay_result_value_str(bay_result *self, bay_str value)
{
    if (!result_takes(self, self != NULL && result_kind(self) == ENTRY_COMPLETION) ||
        self->count++ >= MOST_VALUES) {
        return;
    }
    if (self->count > 1) {
        buf_char(&self->items, ',');
    }
    json_quote(&self->items, value);
}

void bay_result_value(bay_result *self, const char *value)
{
    bay_result_value_str(self, str_of(value));
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
 * earlier revisions have. Up to 2025-11-25 it is an object; 2026-07-28 (SEP-2106): any JSON. */
static void write_tool(const bay_result *self, const mcp_revision *revision, buf *out)
{
    json_val value = sdk_result_structured(self);
    bay_str structured = json_raw(value);
    bool is_known =
        revision->structured && (json_is(value, JSON_OBJECT) || revision->id >= MCP_REV_2026_07_28);
    buf_lit(out, "\"content\":[");
    buf_str(out, buf_view(&self->items));
    if (self->count == 0 && structured.len > 0) {
        put_quoted(out, "{\"type\":\"text\",\"text\":", structured);
        buf_char(out, '}');
    }
    buf_char(out, ']');
    if (structured.len > 0 && is_known) {
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
