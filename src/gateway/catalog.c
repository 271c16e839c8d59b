#include "gateway/catalog.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/base64.h"
#include "wire/uri.h"

enum { HIDDEN_COMPLAINTS = 5 };

/* Resources and templates keep their URIs: those are routed, not renamed. */
static bool is_renamed(listing_kind kind)
{
    return kind == LISTING_TOOLS || kind == LISTING_PROMPTS;
}

static bay_err shown_name(catalog_view *view, const catalog_source *source, bay_str key,
                          bay_str separator, bay_str *out)
{
    bay_str server = upstream_name(source->upstream);
    size_t len = server.len + separator.len + key.len;
    char *at = arena_alloc(&view->memory, len);
    if (at == NULL) {
        return BAY_NOMEM;
    }
    memcpy(at, server.at, server.len);
    memcpy(at + server.len, separator.at, separator.len);
    memcpy(at + server.len + separator.len, key.at, key.len);
    *out = (bay_str){at, len};
    return BAY_OK;
}

/* The item with its name replaced in place; everything else byte for byte. */
static void write_renamed(buf *out, const listing_item *item, bay_str shown)
{
    bay_str old = json_raw(item->key_val);
    size_t before = (size_t)(old.at - item->raw.at);
    buf_append(out, item->raw.at, before);
    json_quote(out, shown);
    buf_append(out, old.at + old.len, item->raw.len - before - old.len);
}

/* For bare names: how many servers of the face offer a name; a name that reads like another's full
 * one counts as taken. */
static char seen_once;
static char seen_often;

static bool reads_as_full(const catalog_source *sources, size_t count, bay_str separator,
                          bay_str key)
{
    for (size_t i = 0; i < count; i++) {
        bay_str server = upstream_name(sources[i].upstream);
        if (str_starts(key, server) && str_starts(str_from(key, server.len), separator)) {
            return true;
        }
    }
    return false;
}

static bay_err count_names(listing_kind kind, const catalog_source *sources, size_t count,
                           bay_str separator, map *seen)
{
    for (size_t i = 0; i < count; i++) {
        const listing *from = sources[i].listings[kind];
        for (size_t k = 0; from != NULL && k < from->count; k++) {
            bay_str key = from->items[k].key;
            bool is_taken =
                map_get(seen, key) != NULL || reads_as_full(sources, count, separator, key);
            bay_err err = map_put(seen, key, is_taken ? &seen_often : &seen_once, NULL);
            if (err != BAY_OK) {
                return err;
            }
        }
    }
    return BAY_OK;
}

static bay_err view_add(catalog_view *view, const catalog_source *source, const listing_item *item,
                        bay_str shown, bool is_named_anew)
{
    if (map_get(&view->by_shown, shown) != NULL) {
        if (view->hidden++ < HIDDEN_COMPLAINTS) {
            LOG(LOG_WARN, "catalog", "\"%.*s\" is offered twice; the one of %s is not shown",
                BAY_STR(str_head(shown, 300)), upstream_name(source->upstream).at);
        }
        return BAY_OK;
    }
    catalog_entry *entry = &view->entries[view->count];
    *entry =
        (catalog_entry){shown, item, source->upstream, listing_ref(source->listings[view->kind])};
    bay_err err = map_put(&view->by_shown, shown, entry, NULL);
    if (err != BAY_OK) {
        listing_unref(entry->owner);
        return err;
    }
    if (view->count > 0) {
        buf_char(&view->text, ',');
    }
    view->starts[view->count++] = view->text.len;
    if (is_named_anew) {
        write_renamed(&view->text, item, shown);
    } else {
        buf_str(&view->text, item->raw);
    }
    return view->text.err;
}

static bay_err view_add_source(catalog_view *view, const catalog_source *source,
                               const catalog_options *options, map *seen)
{
    const listing *from = source->listings[view->kind];
    for (size_t i = 0; from != NULL && i < from->count; i++) {
        const listing_item *item = &from->items[i];
        bay_str shown = item->key;
        bool is_named_anew = is_renamed(view->kind) && options->separator.len > 0 &&
                             !(options->bare_names && map_get(seen, item->key) == &seen_once);
        bay_err err = is_named_anew
                          ? shown_name(view, source, item->key, options->separator, &shown)
                          : BAY_OK;
        if (err == BAY_OK) {
            err = view_add(view, source, item, shown, is_named_anew);
        }
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

bay_err catalog_view_build(catalog_view *out, listing_kind kind, const catalog_source *sources,
                           size_t count, const catalog_options *options, uint32_t serial)
{
    catalog_view view = {.kind = kind, .serial = serial};
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += sources[i].listings[kind] != NULL ? sources[i].listings[kind]->count : 0;
    }
    if (total > CATALOG_MAX_ITEMS) {
        return BAY_LIMIT;
    }
    map seen;
    arena_init(&view.memory, CATALOG_MAX_BYTES);
    buf_init(&view.text, CATALOG_MAX_BYTES);
    map_init(&view.by_shown, CATALOG_MAX_ITEMS);
    map_init(&seen, CATALOG_MAX_ITEMS);
    view.entries = mem_array(total + 1, sizeof(*view.entries));
    view.starts = mem_array(total + 1, sizeof(*view.starts));
    bay_err err = view.entries != NULL && view.starts != NULL ? BAY_OK : BAY_NOMEM;
    if (err == BAY_OK && options->bare_names && is_renamed(kind)) {
        err = count_names(kind, sources, count, options->separator, &seen);
    }
    for (size_t i = 0; err == BAY_OK && i < count; i++) {
        err = view_add_source(&view, &sources[i], options, &seen);
    }
    map_fini(&seen);
    if (view.hidden > HIDDEN_COMPLAINTS) {
        LOG(LOG_WARN, "catalog", "%zu items are not shown because they are offered twice",
            view.hidden);
    }
    if (err != BAY_OK) {
        catalog_view_fini(&view);
        return err;
    }
    view.starts[view.count] = view.text.len + 1; /* as if a comma followed */
    *out = view;
    return BAY_OK;
}

void catalog_view_fini(catalog_view *self)
{
    for (size_t i = 0; i < self->count; i++) {
        listing_unref(self->entries[i].owner);
    }
    mem_free(self->entries);
    mem_free(self->starts);
    map_fini(&self->by_shown);
    buf_fini(&self->text);
    arena_fini(&self->memory);
    *self = (catalog_view){.kind = self->kind};
}

const catalog_entry *catalog_view_find(const catalog_view *self, bay_str shown)
{
    return map_get(&self->by_shown, shown);
}

const catalog_entry *catalog_view_match(const catalog_view *self, bay_str address)
{
    for (size_t i = 0; i < self->count; i++) {
        if (uri_template_matches(self->entries[i].shown, address)) {
            return &self->entries[i];
        }
    }
    return NULL;
}

/* A cursor is base64url of "SERIAL:POSITION". */
static bay_err cursor_read(json_val cursor, size_t *out_position)
{
    if (json_is(cursor, JSON_MISSING)) {
        *out_position = 0;
        return BAY_OK;
    }
    char text_bytes[64];
    buf text = {.at = text_bytes, .cap = sizeof(text_bytes), .max = sizeof(text_bytes)};
    bay_str raw = json_raw(cursor);
    uint64_t serial;
    uint64_t position;
    if (!json_is(cursor, JSON_STRING) || raw.len > 64 ||
        base64_decode(&text, (bay_str){raw.at + 1, raw.len - 2}, BASE64_URL) != BAY_OK) {
        return BAY_INVALID;
    }
    bay_str plain = buf_view(&text);
    size_t colon = str_find(plain, ':');
    if (!str_uint(str_head(plain, colon), &serial) ||
        !str_uint(str_from(plain, colon + 1), &position) || position > CATALOG_MAX_ITEMS) {
        return BAY_INVALID;
    }
    *out_position = (size_t)position;
    return BAY_OK;
}

static void cursor_write(buf *out, uint32_t serial, size_t position)
{
    char text[48];
    int len = snprintf(text, sizeof(text), "%u:%zu", serial, position);
    base64_encode(out, (bay_str){text, (size_t)len}, BASE64_URL);
}

bay_err catalog_view_page(const catalog_view *self, json_val cursor, uint32_t page_size, buf *out)
{
    size_t from;
    bay_err err = cursor_read(cursor, &from);
    if (err != BAY_OK) {
        return err;
    }
    if (from > self->count) {
        from = self->count;
    }
    size_t to = page_size > 0 && page_size < self->count - from ? from + page_size : self->count;
    json_quote(out, listing_result_key(self->kind));
    buf_lit(out, ":[");
    if (to > from) {
        buf_append(out, self->text.at + self->starts[from],
                   self->starts[to] - 1 - self->starts[from]);
    }
    buf_char(out, ']');
    if (to < self->count) {
        buf_lit(out, ",\"nextCursor\":\"");
        cursor_write(out, self->serial, to);
        buf_char(out, '"');
    }
    return out->err;
}
