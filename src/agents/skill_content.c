/* Artifacts of an agent as content of a tool's result. */
#include <string.h>

#include "agents/skills_parts.h"
#include "base/mem.h"

void skill_content_init(skill_content *self, bay_str agent)
{
    *self = (skill_content){.agent = agent};
}

void skill_content_fini(skill_content *self)
{
    skill_artifact *at = self->first;
    while (at != NULL) {
        skill_artifact *next = at->next;
        json_builder_drop(&at->items);
        buf_fini(&at->text);
        mem_free(at->id);
        mem_free(at);
        at = next;
    }
    mem_free(self->structured);
}

/* Without anything. */
static void artifact_begin(skill_artifact *self)
{
    json_open_array(json_builder_init(&self->items, NULL, SKILL_CONTENT_BYTES));
    buf_init(&self->text, SKILL_CONTENT_BYTES);
    self->has_text = false;
}

static skill_artifact *artifact_new(skill_content *self, bay_str id)
{
    skill_artifact *made = NULL;
    if (self->count == SKILL_ARTIFACTS) {
        self->err = BAY_ERR_LIMIT;
        return NULL;
    }
    made = mem_zalloc(sizeof(*made));
    char *kept = made != NULL ? mem_dup(id.at, id.len) : NULL;
    if (kept == NULL) {
        mem_free(made);
        self->err = BAY_ERR_NOMEM;
        return NULL;
    }
    made->id = kept;
    made->id_len = id.len;
    artifact_begin(made);
    if (self->last != NULL) {
        self->last->next = made;
    } else {
        self->first = made;
    }
    self->last = made;
    self->count++;
    return made;
}

static skill_artifact *artifact_find(const skill_content *self, bay_str id)
{
    for (skill_artifact *at = self->first; at != NULL; at = at->next) {
        if (str_eq((bay_str){at->id, at->id_len}, id)) {
            return at;
        }
    }
    return NULL;
}

/* The last text ends. */
static json_writer *end_text(skill_artifact *to)
{
    json_writer *writer = &to->items.writer;
    if (to->has_text) {
        json_open_object(writer);
        json_key_lit(writer, "type");
        json_put_str(writer, STR("text"));
        json_key_lit(writer, "text");
        size_t opened = json_open_word(writer);
        buf_str(writer->out, buf_view(&to->text));
        json_close_word(writer, opened);
        json_close_object(writer);
        to->has_text = false;
        if (writer->out->err == BAY_OK) {
            writer->out->err = to->text.err;
        }
        buf_clear(&to->text);
    }
    return writer;
}

/* `quoted`: a raw string with its quotes. */
static void put_text(skill_artifact *to, bay_str quoted)
{
    to->has_text = true;
    buf_str(&to->text, (bay_str){quoted.at + 1, quoted.len - 2});
}

static void put_pair(json_writer *to, bay_str key, bay_str value)
{
    json_key(to, key);
    json_put_str(to, value);
}

static void put_member(json_writer *to, bay_str key, json_val value)
{
    if (json_is(value, JSON_STRING)) {
        json_key(to, key);
        json_put_val(to, value);
    }
}

static bool is_kind(json_val media_type, const char *kind)
{
    bay_str text;
    return json_str_plain(media_type, &text) && str_starts(text, str_of(kind));
}

/* A URI has no spaces and the like. */
static void put_path(buf *out, bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        bool is_safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_' || c == '/';
        if (is_safe) {
            buf_char(out, (char)c);
        } else {
            buf_printf(out, "%%%02X", c);
        }
    }
}

static void put_uri(const skill_content *self, json_writer *to, json_val name)
{
    bay_str plain;
    buf uri;
    buf_init(&uri, SKILL_CONTENT_BYTES);
    buf_lit(&uri, "a2a://");
    buf_str(&uri, self->agent);
    buf_char(&uri, '/');
    put_path(&uri,
             json_is(name, JSON_STRING) && json_str_plain(name, &plain) ? plain : STR("artifact"));
    put_pair(to, STR("uri"), buf_view(&uri));
    if (to->out->err == BAY_OK) {
        to->out->err = uri.err;
    }
    buf_fini(&uri);
}

static void put_raw(const skill_content *self, skill_artifact *artifact, json_val part,
                    json_val raw)
{
    json_val type = json_get(part, STR("mediaType"));
    bool is_image = is_kind(type, "image/");
    json_writer *to = end_text(artifact);
    json_open_object(to);
    if (is_image || is_kind(type, "audio/")) {
        put_pair(to, STR("type"), is_image ? STR("image") : STR("audio"));
        put_member(to, STR("data"), raw);
        put_member(to, STR("mimeType"), type);
    } else {
        put_pair(to, STR("type"), STR("resource"));
        json_key_lit(to, "resource");
        json_open_object(to);
        put_uri(self, to, json_get(part, STR("filename")));
        put_member(to, STR("mimeType"), type);
        put_member(to, STR("blob"), raw);
        json_close_object(to);
    }
    json_close_object(to);
}

static void put_link(skill_artifact *artifact, json_val part, json_val url)
{
    json_val name = json_get(part, STR("filename"));
    json_writer *to = end_text(artifact);
    json_open_object(to);
    put_pair(to, STR("type"), STR("resource_link"));
    put_member(to, STR("uri"), url);
    put_member(to, STR("name"), json_is(name, JSON_STRING) ? name : url);
    put_member(to, STR("mimeType"), json_get(part, STR("mediaType")));
    json_close_object(to);
}

static void put_data(skill_content *self, skill_artifact *artifact, json_val data)
{
    json_writer *to = end_text(artifact);
    json_open_object(to);
    put_pair(to, STR("type"), STR("text"));
    put_pair(to, STR("text"), json_raw(data));
    json_close_object(to);
    if (json_is(data, JSON_OBJECT) && self->structured == NULL) {
        bay_err err = json_clone(data, &self->structured);
        self->err = self->err == BAY_OK ? err : self->err;
    }
}

static void put_part(skill_content *self, skill_artifact *to, json_val part)
{
    static const bay_str keys[] = {STR_INIT("text"), STR_INIT("raw"), STR_INIT("url"),
                                   STR_INIT("data")};
    json_val found[4];
    if (json_pick(part, keys, 4, found, NULL) != BAY_OK) {
        return;
    }
    if (json_is(found[0], JSON_STRING)) {
        put_text(to, json_raw(found[0]));
    } else if (json_is(found[1], JSON_STRING)) {
        put_raw(self, to, part, found[1]);
    } else if (json_is(found[2], JSON_STRING)) {
        put_link(to, part, found[2]);
    } else if (!json_is(found[3], JSON_MISSING)) {
        put_data(self, to, found[3]);
    }
}

static void put_parts(skill_content *self, skill_artifact *to, json_val parts)
{
    size_t before = to->items.text.len + to->text.len;
    for (json_iter at = json_iter_of(parts); json_next(&at);) {
        put_part(self, to, at.value);
    }
    size_t after = to->items.text.len + to->text.len;
    self->bytes += after > before ? after - before : 0;
    bay_err err = to->items.text.err != BAY_OK ? to->items.text.err : to->text.err;
    err = self->bytes > SKILL_CONTENT_BYTES ? BAY_ERR_LIMIT : err;
    self->err = self->err == BAY_OK ? err : self->err;
}

void skill_content_add(skill_content *self, json_val artifact, bool is_append)
{
    bay_str id = json_raw(json_get(artifact, STR("artifactId")));
    skill_artifact *to = artifact_find(self, id);
    if (to != NULL && !is_append) {
        size_t bytes = to->items.text.len + to->text.len;
        self->bytes -= bytes < self->bytes ? bytes : self->bytes;
        json_builder_drop(&to->items);
        buf_fini(&to->text);
        artifact_begin(to);
    }
    to = to != NULL ? to : artifact_new(self, id);
    if (to != NULL) {
        put_parts(self, to, json_get(artifact, STR("parts")));
    }
}

void skill_content_parts(skill_content *self, json_val parts)
{
    skill_artifact *to = artifact_new(self, STR(""));
    if (to != NULL) {
        put_parts(self, to, parts);
    }
}

void skill_content_text(skill_content *self, bay_str text)
{
    skill_artifact *to = artifact_new(self, STR(""));
    if (to != NULL) {
        json_writer *writer = &to->items.writer;
        json_open_object(writer);
        put_pair(writer, STR("type"), STR("text"));
        put_pair(writer, STR("text"), text);
        json_close_object(writer);
        self->err = self->err == BAY_OK ? to->items.text.err : self->err;
    }
}

void skill_content_write(const skill_content *self, json_writer *to)
{
    for (skill_artifact *at = self->first; at != NULL; at = at->next) {
        json_val items;
        json_close_array(end_text(at));
        bay_err err = json_builder_view(&at->items, &items);
        if (err != BAY_OK) {
            to->out->err = to->out->err == BAY_OK ? err : to->out->err;
            return;
        }
        for (json_iter it = json_iter_of(items); json_next(&it);) {
            json_put_val(to, it.value);
        }
    }
}
