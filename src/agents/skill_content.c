/* Artifacts of an agent as content of a tool's result. */
#include <string.h>

#include "agents/skills_parts.h"
#include "base/mem.h"

void skill_content_init(skill_content *self, bay_str agent)
{
    *self = (skill_content){.agent = agent};
    buf_init(&self->structured, SKILL_CONTENT_BYTES);
}

void skill_content_fini(skill_content *self)
{
    skill_artifact *at = self->first;
    while (at != NULL) {
        skill_artifact *next = at->next;
        buf_fini(&at->items);
        mem_free(at->id);
        mem_free(at);
        at = next;
    }
    buf_fini(&self->structured);
}

static skill_artifact *artifact_new(skill_content *self, bay_str id)
{
    skill_artifact *made = NULL;
    if (self->count == SKILL_ARTIFACTS) {
        self->err = BAY_LIMIT;
        return NULL;
    }
    made = mem_zalloc(sizeof(*made));
    char *kept = made != NULL ? mem_dup(id.at, id.len) : NULL;
    if (kept == NULL) {
        mem_free(made);
        self->err = BAY_NOMEM;
        return NULL;
    }
    made->id = kept;
    made->id_len = id.len;
    buf_init(&made->items, SKILL_CONTENT_BYTES);
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

static void separate(skill_artifact *to)
{
    if (to->count++ > 0) {
        buf_char(&to->items, ',');
    }
    to->text_end = 0;
}

/* `quoted`: a raw string with its quotes. */
static void put_text(skill_artifact *to, bay_str quoted)
{
    bay_str inside = {quoted.at + 1, quoted.len - 2};
    if (to->text_end > 0) {
        to->items.len = to->text_end; /* "}: it goes on */
        buf_str(&to->items, inside);
    } else {
        separate(to);
        buf_lit(&to->items, "{\"type\":\"text\",\"text\":\"");
        buf_str(&to->items, inside);
    }
    to->text_end = to->items.len;
    buf_lit(&to->items, "\"}");
}

static void put_member(buf *out, const char *key, json_val value)
{
    if (json_is(value, JSON_STRING)) {
        buf_printf(out, ",\"%s\":", key);
        buf_str(out, json_raw(value));
    }
}

static bool is_kind(json_val media_type, const char *kind)
{
    bay_str text;
    return json_str_plain(media_type, &text) && str_starts(text, str_of(kind));
}

static void put_raw(skill_content *self, skill_artifact *to, json_val part, json_val raw)
{
    json_val type = json_get(part, STR("mediaType"));
    bool is_image = is_kind(type, "image/");
    separate(to);
    if (is_image || is_kind(type, "audio/")) {
        buf_str(&to->items, is_image ? STR("{\"type\":\"image\",\"data\":")
                                     : STR("{\"type\":\"audio\",\"data\":"));
        buf_str(&to->items, json_raw(raw));
        put_member(&to->items, "mimeType", type);
        buf_char(&to->items, '}');
        return;
    }
    json_val name = json_get(part, STR("filename"));
    bay_str plain;
    buf_lit(&to->items, "{\"type\":\"resource\",\"resource\":{\"uri\":\"a2a://");
    buf_str(&to->items, self->agent);
    buf_char(&to->items, '/');
    if (json_is(name, JSON_STRING) && json_str_plain(name, &plain)) {
        for (size_t i = 0; i < plain.len; i++) { /* a URI has no spaces and the like */
            unsigned char c = (unsigned char)plain.at[i];
            bool is_safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' || c == '/';
            if (is_safe) {
                buf_char(&to->items, (char)c);
            } else {
                buf_printf(&to->items, "%%%02X", c);
            }
        }
    } else {
        buf_lit(&to->items, "artifact");
    }
    buf_char(&to->items, '"');
    put_member(&to->items, "mimeType", type);
    buf_lit(&to->items, ",\"blob\":");
    buf_str(&to->items, json_raw(raw));
    buf_lit(&to->items, "}}");
}

static void put_link(skill_artifact *to, json_val part, json_val url)
{
    json_val name = json_get(part, STR("filename"));
    separate(to);
    buf_lit(&to->items, "{\"type\":\"resource_link\",\"uri\":");
    buf_str(&to->items, json_raw(url));
    buf_lit(&to->items, ",\"name\":");
    buf_str(&to->items, json_raw(json_is(name, JSON_STRING) ? name : url));
    put_member(&to->items, "mimeType", json_get(part, STR("mediaType")));
    buf_char(&to->items, '}');
}

static void put_data(skill_content *self, skill_artifact *to, json_val data)
{
    bay_str raw = json_raw(data);
    separate(to);
    buf_lit(&to->items, "{\"type\":\"text\",\"text\":");
    json_quote(&to->items, raw);
    buf_char(&to->items, '}');
    if (json_is(data, JSON_OBJECT) && self->structured.len == 0) {
        buf_str(&self->structured, raw);
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
    size_t before = to->items.len;
    for (json_iter at = json_iter_of(parts); json_next(&at);) {
        put_part(self, to, at.value);
    }
    if (to->items.len > before) {
        self->bytes += to->items.len - before;
    }
    bay_err err = to->items.err != BAY_OK ? to->items.err : self->structured.err;
    err = self->bytes > SKILL_CONTENT_BYTES ? BAY_LIMIT : err;
    self->err = self->err == BAY_OK ? err : self->err;
}

void skill_content_add(skill_content *self, json_val artifact, bool is_append)
{
    bay_str id = json_raw(json_get(artifact, STR("artifactId")));
    skill_artifact *to = artifact_find(self, id);
    if (to != NULL && !is_append) {
        self->bytes -= to->items.len < self->bytes ? to->items.len : self->bytes;
        buf_clear(&to->items);
        to->count = 0;
        to->text_end = 0;
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
        separate(to);
        buf_lit(&to->items, "{\"type\":\"text\",\"text\":");
        json_quote(&to->items, text);
        buf_char(&to->items, '}');
        self->err = self->err == BAY_OK ? to->items.err : self->err;
    }
}

void skill_content_write(const skill_content *self, buf *out)
{
    bool is_first = true;
    for (const skill_artifact *at = self->first; at != NULL; at = at->next) {
        if (at->items.len > 0) {
            buf_str(out, is_first ? STR("") : STR(","));
            buf_str(out, buf_view(&at->items));
            is_first = false;
        }
    }
}
