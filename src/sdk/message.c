/* Messages of A2A: read where they lie, and written part by part. */
#include "patchbay/message.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "sdk/message_parts.h"
#include "wire/base64.h"
#include "json/writer.h"

/* ---- states ---------------------------------------------------------------------------------- */

const char *bay_task_state_text(bay_task_state state)
{
    static const char *const texts[] = {"unknown",        "submitted", "working",
                                        "completed",      "failed",    "canceled",
                                        "input-required", "rejected",  "auth-required"};
    bool is_known = state >= BAY_TASK_STATE_UNKNOWN && state <= BAY_TASK_STATE_AUTH_REQUIRED;
    return texts[is_known ? state : BAY_TASK_STATE_UNKNOWN];
}

bool bay_task_state_is_final(bay_task_state state)
{
    return state == BAY_TASK_STATE_COMPLETED || state == BAY_TASK_STATE_FAILED ||
           state == BAY_TASK_STATE_CANCELLED || state == BAY_TASK_STATE_REJECTED;
}

/* ---- reading --------------------------------------------------------------------------------- */

void sdk_message_read(bay_message *self, json_val root, arena *memory)
{
    *self = (bay_message){.root = root, .memory = memory};
}

static bay_str text_of(const bay_message *self, json_val value)
{
    bay_str text;
    bool is_text = json_is(value, JSON_STRING) && json_str(value, self->memory, &text) == BAY_OK;
    return is_text ? text : STR("");
}

static json_val member(const bay_message *self, bay_str name)
{
    return self != NULL ? json_get(self->root, name) : JSON_NONE;
}

static json_val part_at(const bay_message *self, size_t index)
{
    return json_item(member(self, STR("parts")), index);
}

/* Decodes once at most when there is but one text part, which is nearly always so. */
bay_str bay_message_text(const bay_message *message)
{
    json_iter parts = json_iter_of(member(message, STR("parts")));
    bay_str whole = STR("");
    while (json_next(&parts)) {
        json_val text = json_get(parts.value, STR("text"));
        if (!json_is(text, JSON_STRING)) {
            continue;
        }
        bay_str more = text_of(message, text);
        if (whole.len == 0) {
            whole = more;
            continue;
        }
        char *joined = arena_alloc(message->memory, whole.len + more.len);
        if (joined == NULL) {
            return whole;
        }
        memcpy(joined, whole.at, whole.len);
        memcpy(joined + whole.len, more.at, more.len);
        whole = (bay_str){joined, whole.len + more.len};
    }
    return whole;
}

bay_str bay_message_data(const bay_message *message)
{
    json_iter parts = json_iter_of(member(message, STR("parts")));
    while (json_next(&parts)) {
        json_val data = json_get(parts.value, STR("data"));
        if (!json_is(data, JSON_MISSING)) {
            return json_raw(data);
        }
    }
    return STR("");
}

size_t bay_message_part_count(const bay_message *message)
{
    return json_count(member(message, STR("parts")));
}

bay_part bay_message_part_kind(const bay_message *message, size_t index)
{
    json_val part = part_at(message, index);
    return !json_is(json_get(part, STR("text")), JSON_MISSING)   ? BAY_PART_TEXT
           : !json_is(json_get(part, STR("raw")), JSON_MISSING)  ? BAY_PART_BYTES
           : !json_is(json_get(part, STR("url")), JSON_MISSING)  ? BAY_PART_URL
           : !json_is(json_get(part, STR("data")), JSON_MISSING) ? BAY_PART_DATA
                                                                 : BAY_PART_NONE;
}

static bay_str decoded(const bay_message *self, bay_str text)
{
    buf bytes;
    buf_init(&bytes, text.len + 1);
    bay_str out = STR("");
    if (base64_decode(&bytes, text, BASE64_STANDARD) != BAY_OK ||
        arena_dup(self->memory, buf_view(&bytes), &out) != BAY_OK) {
        out = STR("");
    }
    buf_fini(&bytes);
    return out;
}

bay_str bay_message_part(const bay_message *message, size_t index)
{
    json_val part = part_at(message, index);
    switch (bay_message_part_kind(message, index)) {
    case BAY_PART_TEXT:
        return text_of(message, json_get(part, STR("text")));
    case BAY_PART_BYTES:
        return decoded(message, text_of(message, json_get(part, STR("raw"))));
    case BAY_PART_URL:
        return text_of(message, json_get(part, STR("url")));
    case BAY_PART_DATA:
        return json_raw(json_get(part, STR("data")));
    case BAY_PART_NONE:
        break;
    }
    return STR("");
}

bay_str bay_message_part_name(const bay_message *message, size_t index)
{
    return text_of(message, json_get(part_at(message, index), STR("filename")));
}

bay_str bay_message_part_type(const bay_message *message, size_t index)
{
    return text_of(message, json_get(part_at(message, index), STR("mediaType")));
}

bay_str bay_message_part_metadata(const bay_message *message, size_t index)
{
    return json_raw(json_get(part_at(message, index), STR("metadata")));
}

bay_str bay_message_id(const bay_message *message)
{
    return text_of(message, member(message, STR("messageId")));
}

bool bay_message_is_users(const bay_message *message)
{
    return json_str_eq(member(message, STR("role")), STR("ROLE_USER"));
}

bay_str bay_message_metadata(const bay_message *message)
{
    return json_raw(member(message, STR("metadata")));
}

bay_str bay_message_metadata_str(const bay_message *message, const char *name)
{
    return text_of(message, json_get(member(message, STR("metadata")), str_of(name)));
}

bay_str bay_message_reference(const bay_message *message, size_t index)
{
    return text_of(message, json_item(member(message, STR("referenceTaskIds")), index));
}

bay_str bay_message_json(const bay_message *message)
{
    return message != NULL ? json_raw(message->root) : STR("");
}

/* ---- parts ----------------------------------------------------------------------------------- */

bay_err sdk_json_check(bay_str text, json_kind wanted)
{
    arena memory;
    arena_init(&memory, 256 << 20);
    json_doc doc;
    bay_err err = json_parse(&doc, text, NULL, &memory, NULL);
    if (err == BAY_OK && wanted != JSON_MISSING && !json_is(json_root(&doc), wanted)) {
        err = BAY_ERR_INVALID;
    }
    arena_fini(&memory);
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : BAY_ERR_INVALID;
}

static void put_names(buf *out, bay_str name, bay_str media_type)
{
    if (name.len > 0) {
        buf_lit(out, ",\"filename\":");
        json_quote(out, name);
    }
    if (media_type.len > 0) {
        buf_lit(out, ",\"mediaType\":");
        json_quote(out, media_type);
    }
    buf_char(out, '}');
}

void sdk_part_text(buf *out, bay_str text, bay_str name, bay_str media_type)
{
    buf_lit(out, "{\"text\":");
    json_quote(out, text);
    put_names(out, name, media_type);
}

void sdk_part_bytes(buf *out, bay_str bytes, bay_str name, bay_str media_type)
{
    buf_lit(out, "{\"raw\":\"");
    base64_encode(out, bytes, BASE64_STANDARD);
    buf_char(out, '"');
    put_names(out, name, media_type);
}

void sdk_part_url(buf *out, bay_str url, bay_str name, bay_str media_type)
{
    buf_lit(out, "{\"url\":");
    json_quote(out, url);
    put_names(out, name, media_type);
}

bay_err sdk_part_data(buf *out, bay_str json, bay_str name, bay_str media_type)
{
    bay_err err = sdk_json_check(json, JSON_MISSING);
    if (err != BAY_OK) {
        return err;
    }
    buf_lit(out, "{\"data\":");
    buf_str(out, json);
    put_names(out, name, media_type);
    return BAY_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

bay_message *bay_message_new(void)
{
    bay_message *self = mem_zalloc(sizeof(*self));
    if (self != NULL) {
        buf_init(&self->parts, MESSAGE_MAX_BYTES);
        buf_init(&self->metadata, MESSAGE_MAX_BYTES);
        buf_init(&self->extensions, MESSAGE_MAX_BYTES);
        buf_init(&self->references, MESSAGE_MAX_BYTES);
    }
    return self;
}

void bay_message_free(bay_message *message)
{
    if (message != NULL) {
        buf_fini(&message->parts);
        buf_fini(&message->metadata);
        buf_fini(&message->extensions);
        buf_fini(&message->references);
        mem_free(message);
    }
}

/* False: nothing can be added any more, or at all. */
static bool message_begin(bay_message *self, buf *among)
{
    if (self == NULL || self->err != BAY_OK) {
        return false;
    }
    if (self->memory != NULL) { /* one to be read */
        self->err = BAY_ERR_STATE;
        return false;
    }
    if (among == &self->parts && ++self->part_count > MESSAGE_MAX_PARTS) {
        self->err = BAY_ERR_LIMIT;
        return false;
    }
    if (among->len > 0) {
        buf_char(among, ',');
    }
    return true;
}

static void end(bay_message *self, const buf *among, bay_err err)
{
    self->err = err != BAY_OK ? err : among->err;
}

void bay_message_add_text_str(bay_message *message, bay_str text)
{
    if (message_begin(message, message != NULL ? &message->parts : NULL)) {
        sdk_part_text(&message->parts, text, STR(""), STR(""));
        end(message, &message->parts, BAY_OK);
    }
}

void bay_message_add_text(bay_message *message, const char *text)
{
    bay_message_add_text_str(message, str_of(text));
}

void bay_message_add_textf(bay_message *message, const char *format, ...)
{
    buf text;
    buf_init(&text, MESSAGE_MAX_BYTES);
    va_list arguments;
    va_start(arguments, format);
    buf_vprintf(&text, format, arguments);
    va_end(arguments);
    if (text.err == BAY_OK) {
        bay_message_add_text_str(message, buf_view(&text));
    } else if (message != NULL && message->err == BAY_OK) {
        message->err = text.err;
    }
    buf_fini(&text);
}

void bay_message_add_bytes(bay_message *message, const void *bytes, size_t len, const char *name,
                           const char *media_type)
{
    if (message_begin(message, message != NULL ? &message->parts : NULL)) {
        sdk_part_bytes(&message->parts, (bay_str){bytes, len}, str_of(name), str_of(media_type));
        end(message, &message->parts, BAY_OK);
    }
}

void bay_message_add_url(bay_message *message, const char *url, const char *name,
                         const char *media_type)
{
    if (message_begin(message, message != NULL ? &message->parts : NULL)) {
        sdk_part_url(&message->parts, str_of(url), str_of(name), str_of(media_type));
        end(message, &message->parts, BAY_OK);
    }
}

void bay_message_add_data(bay_message *message, const char *json)
{
    if (message_begin(message, message != NULL ? &message->parts : NULL)) {
        bay_err err = sdk_part_data(&message->parts, str_of(json), STR(""), STR(""));
        end(message, &message->parts, err);
    }
}

/* Does the metadata have a member of that name? */
static bool has_meta(const bay_message *self, bay_str name)
{
    bool has_it = false;
    buf text;
    arena memory;
    json_doc doc;
    buf_init(&text, MESSAGE_MAX_BYTES + 2);
    arena_init(&memory, 256 << 20);
    buf_char(&text, '{');
    buf_str(&text, buf_view(&self->metadata));
    buf_char(&text, '}');
    if (text.err == BAY_OK && json_parse(&doc, buf_view(&text), NULL, &memory, NULL) == BAY_OK) {
        has_it = !json_is(json_get(json_root(&doc), name), JSON_MISSING);
    }
    arena_fini(&memory);
    buf_fini(&text);
    return has_it;
}

static void add_meta(bay_message *self, bay_str name, bay_str value, bool is_json)
{
    if (self != NULL && self->err == BAY_OK && has_meta(self, name)) {
        self->err = BAY_ERR_DUPLICATE;
        return;
    }
    if (!message_begin(self, self != NULL ? &self->metadata : NULL)) {
        return;
    }
    json_quote(&self->metadata, name);
    buf_char(&self->metadata, ':');
    bay_err err = BAY_OK;
    if (!is_json) {
        json_quote(&self->metadata, value);
    } else if ((err = sdk_json_check(value, JSON_MISSING)) == BAY_OK) {
        buf_str(&self->metadata, value);
    }
    end(self, &self->metadata, err);
}

void bay_message_add_metadata(bay_message *message, const char *name, const char *value)
{
    add_meta(message, str_of(name), str_of(value), false);
}

void bay_message_add_metadata_json(bay_message *message, const char *name, const char *json)
{
    add_meta(message, str_of(name), str_of(json), true);
}

static void add_quoted(bay_message *self, buf *among, const char *text)
{
    if (message_begin(self, among)) {
        json_quote(among, str_of(text));
        end(self, among, BAY_OK);
    }
}

void bay_message_add_extension(bay_message *message, const char *uri)
{
    add_quoted(message, message != NULL ? &message->extensions : NULL, uri);
}

void bay_message_add_reference(bay_message *message, const char *task_id)
{
    add_quoted(message, message != NULL ? &message->references : NULL, task_id);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_copy(const bay_message *self, bay_str name, buf *out)
{
    json_val value = json_get(self->root, name);
    if (!json_is(value, JSON_MISSING)) {
        buf_lit(out, ",\"");
        buf_str(out, name);
        buf_lit(out, "\":");
        buf_str(out, json_raw(value));
    }
}

static bay_err write_read(const bay_message *self, buf *out)
{
    buf_lit(out, "\"parts\":");
    buf_str(out, json_raw(json_get(self->root, STR("parts"))));
    put_copy(self, STR("metadata"), out);
    put_copy(self, STR("extensions"), out);
    put_copy(self, STR("referenceTaskIds"), out);
    return out->err;
}

static void put_row(buf *out, const char *before, const buf *items, const char *after)
{
    if (items->len > 0) {
        buf_str(out, str_of(before));
        buf_str(out, buf_view(items));
        buf_str(out, str_of(after));
    }
}

bay_err sdk_message_write(const bay_message *self, buf *out)
{
    if (self->memory != NULL) {
        return write_read(self, out);
    }
    if (self->err != BAY_OK || self->part_count == 0) {
        return self->err != BAY_OK ? self->err : BAY_ERR_INVALID;
    }
    put_row(out, "\"parts\":[", &self->parts, "]");
    put_row(out, ",\"metadata\":{", &self->metadata, "}");
    put_row(out, ",\"extensions\":[", &self->extensions, "]");
    put_row(out, ",\"referenceTaskIds\":[", &self->references, "]");
    return out->err;
}
