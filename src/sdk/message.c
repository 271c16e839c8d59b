/* Messages of A2A: read where they lie, and written part by part. */
#include "patchbay/message.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "sdk/format.h"
#include "sdk/message_parts.h"
#include "wire/base64.h"

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

static json_val data_of(const bay_message *self)
{
    json_iter parts = json_iter_of(member(self, STR("parts")));
    while (json_next(&parts)) {
        json_val data = json_get(parts.value, STR("data"));
        if (!json_is(data, JSON_MISSING)) {
            return data;
        }
    }
    return JSON_NONE;
}

bay_str bay_message_data(const bay_message *message)
{
    return json_raw(data_of(message));
}

static bay_value value_of(const bay_message *message, json_val value)
{
    bay_message *self = (bay_message *)message; /* the document is only a way to read it */
    if (value.doc == NULL) {
        return (bay_value){NULL, 0};
    }
    if (self->document == NULL) {
        self->document = arena_zalloc(self->memory, sizeof(*self->document));
        if (self->document == NULL) {
            return (bay_value){NULL, 0};
        }
        *self->document = (bay_document){.doc = *value.doc, .memory = self->memory};
    }
    return sdk_value(self->document, value);
}

bay_value bay_message_value(const bay_message *message)
{
    return value_of(message, data_of(message));
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

bay_value bay_message_metadata_value(const bay_message *message, const char *name)
{
    json_val all = member(message, STR("metadata"));
    return value_of(message, name != NULL ? json_get(all, str_of(name)) : all);
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

static void put_names(json_writer *out, bay_str name, bay_str media_type)
{
    if (name.len > 0) {
        json_key_lit(out, "filename");
        json_put_str(out, name);
    }
    if (media_type.len > 0) {
        json_key_lit(out, "mediaType");
        json_put_str(out, media_type);
    }
    json_close_object(out);
}

void sdk_part_text(json_writer *out, bay_str text, bay_str name, bay_str media_type)
{
    json_open_object(out);
    json_key_lit(out, "text");
    json_put_str(out, text);
    put_names(out, name, media_type);
}

void sdk_part_bytes(json_writer *out, bay_str bytes, bay_str name, bay_str media_type)
{
    json_open_object(out);
    json_key_lit(out, "raw");
    size_t opened = json_open_word(out);
    base64_encode(out->out, bytes, BASE64_STANDARD);
    json_close_word(out, opened);
    put_names(out, name, media_type);
}

void sdk_part_url(json_writer *out, bay_str url, bay_str name, bay_str media_type)
{
    json_open_object(out);
    json_key_lit(out, "url");
    json_put_str(out, url);
    put_names(out, name, media_type);
}

void sdk_part_data(json_writer *out, json_val data, bay_str name, bay_str media_type)
{
    json_open_object(out);
    json_key_lit(out, "data");
    json_put_val(out, data);
    put_names(out, name, media_type);
}

/* ---- making ---------------------------------------------------------------------------------- */

typedef enum message_list { PARTS, METADATA, EXTENSIONS, REFERENCES, MESSAGE_LISTS } message_list;

struct message_made {
    bay_message message;
    json_builder lists[MESSAGE_LISTS]; /* containers that stay open; nothing: an empty one */
    size_t part_count;
    bay_err err; /* what could not be added; BAY_OK */
};

bay_message *bay_message_new(void)
{
    message_made *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->message.made = self;
    for (int i = 0; i < MESSAGE_LISTS; i++) {
        (void)json_builder_init(&self->lists[i], NULL, MESSAGE_MAX_BYTES);
    }
    return &self->message;
}

void bay_message_free(bay_message *message)
{
    if (message != NULL && message->made != NULL) {
        for (int i = 0; i < MESSAGE_LISTS; i++) {
            json_builder_drop(&message->made->lists[i]);
        }
        mem_free(message->made);
    }
}

/* NULL: nothing can be added any more, or at all. */
static json_writer *message_begin(bay_message *message, message_list which)
{
    message_made *self = message != NULL ? message->made : NULL;
    if (self == NULL || self->err != BAY_OK) {
        return NULL;
    }
    if (which == PARTS && ++self->part_count > MESSAGE_MAX_PARTS) {
        self->err = BAY_ERR_LIMIT;
        return NULL;
    }
    json_writer *out = &self->lists[which].writer;
    if (out->depth == 0) {
        (which == METADATA ? json_open_object : json_open_array)(out);
    }
    return out;
}

static void end(bay_message *message, const json_writer *out, bay_err err)
{
    message->made->err = err != BAY_OK ? err : out->out->err;
}

void bay_message_add_text_str(bay_message *message, bay_str text)
{
    json_writer *out = message_begin(message, PARTS);
    if (out != NULL) {
        sdk_part_text(out, text, STR(""), STR(""));
        end(message, out, BAY_OK);
    }
}

void bay_message_add_text(bay_message *message, const char *text)
{
    bay_message_add_text_str(message, str_of(text));
}

void bay_message_add_textf(bay_message *message, const char *format, ...)
{
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    if (text.err == BAY_OK) {
        bay_message_add_text_str(message, buf_view(&text));
    } else if (message != NULL && message->made != NULL && message->made->err == BAY_OK) {
        message->made->err = text.err;
    }
    buf_fini(&text);
}

void bay_message_add_bytes(bay_message *message, const void *bytes, size_t len, const char *name,
                           const char *media_type)
{
    json_writer *out = message_begin(message, PARTS);
    if (out != NULL) {
        sdk_part_bytes(out, (bay_str){bytes, len}, str_of(name), str_of(media_type));
        end(message, out, BAY_OK);
    }
}

void bay_message_add_url_str(bay_message *message, bay_str url, bay_str name, bay_str media_type)
{
    json_writer *out = message_begin(message, PARTS);
    if (out != NULL) {
        sdk_part_url(out, url, name, media_type);
        end(message, out, BAY_OK);
    }
}

void bay_message_add_url(bay_message *message, const char *url, const char *name,
                         const char *media_type)
{
    bay_message_add_url_str(message, str_of(url), str_of(name), str_of(media_type));
}

/* Whole JSON of the program's; what it is not, the message is refused for. */
static bay_err take_json(bay_json *json, json_val *out)
{
    bay_err err = sdk_json_val(json, JSON_MISSING, out);
    return err == BAY_OK || err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT ? err : BAY_ERR_INVALID;
}

void bay_message_add_data_json(bay_message *message, bay_json *json)
{
    json_writer *out = message_begin(message, PARTS);
    if (out != NULL) {
        json_val data = JSON_NONE;
        bay_err err = take_json(json, &data);
        if (err == BAY_OK) {
            sdk_part_data(out, data, STR(""), STR(""));
        }
        end(message, out, err);
    }
    bay_json_free(json);
}

void bay_message_add_data(bay_message *message, const char *json)
{
    bay_message_add_data_json(message, bay_json_of(json));
}

/* A name that the metadata has is refused. */
static json_writer *begin_meta(bay_message *message, bay_str name)
{
    json_writer *out = message_begin(message, METADATA);
    if (out != NULL && json_builder_get(&message->made->lists[METADATA], name).doc != NULL) {
        message->made->err = BAY_ERR_DUPLICATE;
        out = NULL;
    }
    if (out != NULL) {
        json_key(out, name);
    }
    return out;
}

void bay_message_add_metadata_str(bay_message *message, const char *name, bay_str value)
{
    json_writer *out = begin_meta(message, str_of(name));
    if (out != NULL) {
        json_put_str(out, value);
        end(message, out, BAY_OK);
    }
}

void bay_message_add_metadata(bay_message *message, const char *name, const char *value)
{
    bay_message_add_metadata_str(message, name, str_of(value));
}

void bay_message_add_metadata_json(bay_message *message, const char *name, bay_json *json)
{
    json_val value = JSON_NONE;
    bay_err err = take_json(json, &value);
    json_writer *out = begin_meta(message, str_of(name));
    if (out != NULL) {
        if (err == BAY_OK) {
            json_put_val(out, value);
        }
        end(message, out, err);
    }
    bay_json_free(json);
}

static void add_text(bay_message *message, message_list which, bay_str text)
{
    json_writer *out = message_begin(message, which);
    if (out != NULL) {
        json_put_str(out, text);
        end(message, out, BAY_OK);
    }
}

void bay_message_add_extension(bay_message *message, const char *uri)
{
    add_text(message, EXTENSIONS, str_of(uri));
}

void bay_message_add_reference_str(bay_message *message, bay_str task_id)
{
    add_text(message, REFERENCES, task_id);
}

void bay_message_add_reference(bay_message *message, const char *task_id)
{
    bay_message_add_reference_str(message, str_of(task_id));
}

/* ---- writing --------------------------------------------------------------------------------- */

static const bay_str list_names[MESSAGE_LISTS] = {
    [PARTS] = STR_INIT("parts"),
    [METADATA] = STR_INIT("metadata"),
    [EXTENSIONS] = STR_INIT("extensions"),
    [REFERENCES] = STR_INIT("referenceTaskIds"),
};

static bay_err write_read(const bay_message *self, json_writer *out)
{
    for (int i = 0; i < MESSAGE_LISTS; i++) {
        json_val value = json_get(self->root, list_names[i]);
        if (!json_is(value, JSON_MISSING)) {
            json_key(out, list_names[i]);
            json_put_val(out, value);
        }
    }
    return out->out->err;
}

bay_err sdk_message_write(const bay_message *message, json_writer *out)
{
    const message_made *self = message->made;
    if (self == NULL) {
        return write_read(message, out);
    }
    if (self->err != BAY_OK || self->part_count == 0) {
        return self->err != BAY_OK ? self->err : BAY_ERR_INVALID;
    }
    for (int i = 0; i < MESSAGE_LISTS; i++) {
        if (self->lists[i].writer.depth > 0) {
            json_key(out, list_names[i]);
            (i == METADATA ? json_open_object : json_open_array)(out);
            json_put_partial(out, &self->lists[i]);
            (i == METADATA ? json_close_object : json_close_array)(out);
        }
    }
    return out->out->err;
}
