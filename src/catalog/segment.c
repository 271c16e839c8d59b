#include "catalog/segment.h"

#include "base/mem.h"
#include "base/str.h"

enum { HASH_SEED = 0x5e67 };

catalog_segment *catalog_segment_new(upstream *of, listing *from, size_t candidates)
{
    catalog_segment *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->references = 1;
    arena_init(&self->memory, SEGMENT_MAX_BYTES);
    buf_init(&self->text, SEGMENT_MAX_BYTES);
    self->entries = arena_array(&self->memory, candidates + 1, sizeof(*self->entries));
    self->places = arena_array(&self->memory, candidates + 1, sizeof(*self->places));
    self->starts = arena_array(&self->memory, candidates + 1, sizeof(*self->starts));
    if (self->entries == NULL || self->places == NULL || self->starts == NULL ||
        arena_dup(&self->memory, upstream_name(of), &self->server) != BAY_OK ||
        arena_dup(&self->memory, upstream_config(of)->agent, &self->agent) != BAY_OK) {
        catalog_segment_unref(self);
        return NULL;
    }
    self->upstream = of;
    self->from = from != NULL ? listing_ref(from) : NULL;
    return self;
}

catalog_segment *catalog_segment_ref(catalog_segment *self)
{
    self->references++;
    return self;
}

void catalog_segment_unref(catalog_segment *self)
{
    if (self != NULL && --self->references == 0) {
        listing_unref(self->from);
        buf_fini(&self->text);
        arena_fini(&self->memory);
        mem_free(self);
    }
}

/* The item with its name and its description replaced in place; everything else byte for byte. */
static void write_edited(buf *out, const listing_item *item, bay_str shown, bay_str describe)
{
    static const bay_str description = STR_INIT("description");
    const char *done = item->raw.at;
    bool is_described = describe.at == NULL;
    bool is_renamed = shown.at == NULL;
    json_iter iter = json_iter_of(item->value);
    while (json_next(&iter)) {
        bay_str old = json_raw(iter.value);
        if (!is_renamed && old.at == json_raw(item->key_val).at) {
            buf_append(out, done, (size_t)(old.at - done));
            json_quote(out, shown);
            is_renamed = true;
        } else if (describe.at != NULL && json_str_eq(iter.key, description)) {
            buf_append(out, done, (size_t)(old.at - done));
            json_quote(out, describe);
            is_described = true;
        } else {
            continue;
        }
        done = old.at + old.len;
    }
    const char *end = item->raw.at + item->raw.len;
    if (is_described) {
        buf_append(out, done, (size_t)(end - done));
        return;
    }
    buf_append(out, done, (size_t)(end - 1 - done)); /* up to the closing brace */
    buf_lit(out, ",\"description\":");
    json_quote(out, describe);
    buf_char(out, '}');
}

bay_err catalog_segment_add(catalog_segment *self, size_t candidate, const listing_item *item,
                            bay_str shown, bay_str bare, bay_str describe)
{
    bay_str name;
    bay_str words = {NULL, 0};
    bay_err err = arena_dup(&self->memory, shown, &name);
    if (err == BAY_OK && describe.at != NULL) {
        err = arena_dup(&self->memory, describe, &words);
    }
    if (err != BAY_OK) {
        return err;
    }
    if (self->count > 0) {
        buf_char(&self->text, ',');
    }
    self->starts[self->count] = self->text.len;
    bool is_same_name = str_eq(shown, item->key);
    if (is_same_name && describe.at == NULL) {
        buf_str(&self->text, item->raw);
    } else {
        write_edited(&self->text, item, is_same_name ? (bay_str){NULL, 0} : shown, describe);
    }
    if (item->gains_tasks && self->text.err == BAY_OK) {
        self->text.len--; /* the closing brace */
        buf_lit(&self->text, ",\"execution\":{\"taskSupport\":\"optional\"}}");
    }
    if (self->text.err != BAY_OK) {
        return self->text.err;
    }
    self->entries[self->count++] = (catalog_entry){.shown = name,
                                                   .bare = str_from(name, name.len - bare.len),
                                                   .item = item,
                                                   .upstream = self->upstream,
                                                   .owner = self->from,
                                                   .segment = self,
                                                   .describe = words};
    self->places[candidate] = (uint32_t)self->count;
    return BAY_OK;
}

bay_err catalog_segment_seal(catalog_segment *self)
{
    self->starts[self->count] = self->text.len + 1;
    self->hash = str_hash(buf_view(&self->text), HASH_SEED);
    return self->text.err;
}
