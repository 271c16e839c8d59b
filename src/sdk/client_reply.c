/* What came back, as views: read once when it is made, so that any thread may read it; members that
 * have to be decoded are, under a lock, when they are asked for. Everything in it is a peer's: a
 * member of another type than expected reads as absent. */
#include "base/mem.h"
#include "base/str.h"
#include "sdk/client_parts.h"
#include "wire/base64.h"

/* ---- making ---------------------------------------------------------------------------------- */

/* Decoded; empty for anything but a string. */
static bay_err take_text(bay_reply *self, json_val value, bay_str *out)
{
    bay_err err = json_str(value, &self->memory, out);
    if (err == BAY_ERR_TYPE) {
        *out = (bay_str){NULL, 0};
        err = BAY_OK;
    }
    return err;
}

static bay_content content_of(json_val item)
{
    static const struct {
        bay_str type;
        bay_content kind;
    } types[] = {
        {STR_INIT("text"), BAY_CONTENT_TEXT},         {STR_INIT("image"), BAY_CONTENT_IMAGE},
        {STR_INIT("audio"), BAY_CONTENT_AUDIO},       {STR_INIT("resource_link"), BAY_CONTENT_LINK},
        {STR_INIT("resource"), BAY_CONTENT_RESOURCE},
    };
    json_val type = json_get(item, STR("type"));
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (json_str_eq(type, types[i].type)) {
            return types[i].kind;
        }
    }
    return BAY_CONTENT_OTHER;
}

static bay_err read_content(bay_reply *self, json_val value, reply_item *out)
{
    out->kind = content_of(value);
    json_val from = out->kind == BAY_CONTENT_RESOURCE ? json_get(value, STR("resource")) : value;
    bay_str data_key = out->kind == BAY_CONTENT_RESOURCE ? STR("blob") : STR("data");
    bay_err err = take_text(self, json_get(from, STR("text")), &out->text);
    err = err == BAY_OK ? take_text(self, json_get(from, STR("mimeType")), &out->mime_type) : err;
    err = err == BAY_OK ? take_text(self, json_get(from, STR("uri")), &out->uri) : err;
    return err == BAY_OK ? take_text(self, json_get(from, data_key), &out->data) : err;
}

/* An item of resources/read stands for itself, without a type. */
static bay_err read_contents(bay_reply *self, json_val value, reply_item *out)
{
    out->kind = BAY_CONTENT_RESOURCE;
    bay_err err = take_text(self, json_get(value, STR("text")), &out->text);
    err = err == BAY_OK ? take_text(self, json_get(value, STR("mimeType")), &out->mime_type) : err;
    err = err == BAY_OK ? take_text(self, json_get(value, STR("uri")), &out->uri) : err;
    return err == BAY_OK ? take_text(self, json_get(value, STR("blob")), &out->data) : err;
}

static bay_err read_message(bay_reply *self, json_val value, reply_item *out)
{
    bay_err err = read_content(self, json_get(value, STR("content")), out);
    return err == BAY_OK ? take_text(self, json_get(value, STR("role")), &out->role) : err;
}

static bay_err read_value(bay_reply *self, json_val value, reply_item *out)
{
    out->kind = BAY_CONTENT_VALUE;
    return take_text(self, value, &out->text);
}

static bay_err read_items(bay_reply *self)
{
    static bay_err (*const readers[])(bay_reply *, json_val, reply_item *) = {
        read_content, read_contents, read_message, read_value};
    json_val lists[] = {
        json_get(self->root, STR("content")),
        json_get(self->root, STR("contents")),
        json_get(self->root, STR("messages")),
        json_get(json_get(self->root, STR("completion")), STR("values")),
    };
    size_t which = 0;
    while (which < ARRAY_LEN(lists) && !json_is(lists[which], JSON_ARRAY)) {
        which++;
    }
    size_t count = which < ARRAY_LEN(lists) ? json_count(lists[which]) : 0;
    if (count == 0) {
        return BAY_OK;
    }
    self->items = arena_array(&self->memory, count, sizeof(*self->items));
    if (self->items == NULL) {
        return self->memory.is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
    }
    json_iter iter = json_iter_of(lists[which]);
    while (json_next(&iter)) {
        reply_item *item = &self->items[self->count];
        item->raw = json_raw(iter.value);
        bay_err err = readers[which](self, iter.value, item);
        if (err != BAY_OK) {
            return err;
        }
        self->count++;
    }
    return BAY_OK;
}

bay_err sdk_reply_new(json_val result, bay_reply **out)
{
    if (json_raw(result).len > CLIENT_MAX_REPLY) {
        return BAY_ERR_LIMIT;
    }
    bay_reply *self = mem_zalloc(sizeof(*self));
    if (self == NULL || pthread_mutex_init(&self->lock, NULL) != 0) {
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    arena_init(&self->memory, CLIENT_MAX_PARSED);
    bay_err err = json_is(result, JSON_MISSING) ? BAY_ERR_SYNTAX
                                                : json_clone_in(result, &self->memory, &self->root);
    if (err == BAY_OK) {
        self->structured = json_get(self->root, STR("structuredContent"));
        self->is_error = json_true(json_get(self->root, STR("isError")));
        self->document =
            (bay_document){.doc = *self->root.doc, .memory = &self->memory, .lock = &self->lock};
        err = read_items(self);
    }
    if (err != BAY_OK) {
        bay_reply_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void bay_reply_free(bay_reply *reply)
{
    if (reply != NULL) {
        arena_fini(&reply->memory);
        pthread_mutex_destroy(&reply->lock);
        mem_free(reply);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static const reply_item *item_at(const bay_reply *reply, size_t index)
{
    static const reply_item none = {.kind = BAY_CONTENT_NONE};
    return reply != NULL && index < reply->count ? &reply->items[index] : &none;
}

bool bay_reply_is_error(const bay_reply *reply)
{
    return reply != NULL && reply->is_error;
}

size_t bay_reply_count(const bay_reply *reply)
{
    return reply != NULL ? reply->count : 0;
}

bay_content bay_reply_kind(const bay_reply *reply, size_t index)
{
    return item_at(reply, index)->kind;
}

bay_str bay_reply_text(const bay_reply *reply, size_t index)
{
    return item_at(reply, index)->text;
}

bay_str bay_reply_mime_type(const bay_reply *reply, size_t index)
{
    return item_at(reply, index)->mime_type;
}

bay_str bay_reply_uri(const bay_reply *reply, size_t index)
{
    return item_at(reply, index)->uri;
}

bay_str bay_reply_role(const bay_reply *reply, size_t index)
{
    return item_at(reply, index)->role;
}

bay_err bay_reply_bytes(const bay_reply *reply, size_t index, void **out, size_t *out_len)
{
    const reply_item *item = item_at(reply, index);
    if (item->kind == BAY_CONTENT_NONE) {
        return BAY_ERR_NOT_FOUND;
    }
    if (out == NULL || out_len == NULL) {
        return BAY_ERR_INVALID;
    }
    if (item->data.at == NULL) { /* text is bytes, too */
        void *copy = item->text.at != NULL ? mem_dup(item->text.at, item->text.len) : NULL;
        if (copy != NULL) {
            *out = copy;
            *out_len = item->text.len;
        }
        return item->text.at == NULL ? BAY_ERR_TYPE : copy != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    buf bytes;
    buf_init(&bytes, CLIENT_MAX_REPLY);
    bay_err err = base64_decode(&bytes, item->data, BASE64_STANDARD);
    if (err == BAY_OK && bytes.at == NULL && !buf_reserve(&bytes, 1)) {
        err = bytes.err;
    }
    if (err != BAY_OK) {
        buf_fini(&bytes);
        return err;
    }
    *out = buf_take(&bytes, out_len);
    return BAY_OK;
}

bay_str bay_reply_item(const bay_reply *reply, size_t index)
{
    return item_at(reply, index)->raw;
}

bay_str bay_reply_structured(const bay_reply *reply)
{
    return reply != NULL ? json_raw(reply->structured) : (bay_str){NULL, 0};
}

bay_str bay_reply_json(const bay_reply *reply)
{
    return reply != NULL ? json_raw(reply->root) : (bay_str){NULL, 0};
}

bay_str bay_reply_str(const bay_reply *reply, const char *name)
{
    return name != NULL ? bay_value_str(bay_reply_value(reply, name)) : (bay_str){NULL, 0};
}

bay_value bay_reply_value(const bay_reply *reply, const char *name)
{
    if (reply == NULL) {
        return (bay_value){NULL, 0};
    }
    json_val value = reply->structured;
    if (name != NULL) {
        value = json_get(reply->structured, str_of(name));
        value = json_is(value, JSON_MISSING) ? json_get(reply->root, str_of(name)) : value;
    } else if (json_is(value, JSON_MISSING)) {
        value = reply->root;
    }
    return sdk_value(&reply->document, value);
}
