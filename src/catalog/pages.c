/* Snapshots of a view, and the pages that clients turn in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "catalog/older_tools.h"
#include "catalog/parts.h"
#include "wire/base64.h"

enum {
    CURSOR_BYTES = 256,
    CURSOR_PLAIN_BYTES = 64,
    CURSOR_BOUND_BYTES = PRINCIPAL_IDENTITY_BYTES + 8192
};

static const catalog_segment *segment_to_be(const catalog_place *place)
{
    return place->next_segment != NULL ? place->next_segment : place->segment;
}

/* Order matters: the same segments in another order are another list. */
static uint64_t mix(uint64_t id, uint64_t hash)
{
    uint64_t both[2] = {id, hash};
    return str_hash((bay_str){(const char *)both, sizeof(both)}, 0);
}

catalog_snapshot *catalog_snapshot_new(const catalog_view *view)
{
    size_t count = 0;
    for (size_t i = 0; i < view->place_count; i++) {
        const catalog_segment *segment = segment_to_be(&view->places[i]);
        count += segment != NULL && segment->count > 0;
    }
    catalog_snapshot *self = mem_zalloc(sizeof(*self) + count * sizeof(self->parts[0]));
    if (self == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < view->place_count; i++) {
        catalog_place *place = &view->places[i];
        catalog_segment *segment =
            place->next_segment != NULL ? place->next_segment : place->segment;
        if (segment != NULL && segment->count > 0) {
            self->parts[self->count++] = (catalog_part){catalog_segment_ref(segment), self->total};
            self->total += segment->count;
            self->bytes += segment->text.len;
            self->id = mix(self->id, segment->hash);
        }
    }
    return self;
}

void catalog_snapshot_free(catalog_snapshot *self)
{
    for (size_t i = 0; self != NULL && i < self->count; i++) {
        catalog_segment_unref(self->parts[i].segment);
    }
    mem_free(self);
}

static void drop_oldest(catalog_view *view)
{
    catalog_snapshot_free(view->older[--view->older_count]);
}

static size_t stale_bytes_of(const catalog_view *view)
{
    size_t sum = 0;
    for (size_t i = 0; i < view->older_count; i++) {
        sum += view->older[i]->stale_bytes;
    }
    return sum;
}

/* Nobody can be half-way through it. */
static bool is_one_page(const catalog_view *view, const catalog_snapshot *of)
{
    return of->total <= view->options.page_size && of->bytes <= CATALOG_PAGE_BYTES;
}

void catalog_snapshot_swap(catalog_view *view, catalog_snapshot *next, size_t stale_bytes,
                           uint64_t now_ms)
{
    catalog_snapshot *old = view->current;
    view->current = next;
    if (old == NULL || old->id == next->id || is_one_page(view, old)) {
        catalog_snapshot_free(old);
        return;
    }
    if (view->older_count == CATALOG_OLDER) {
        drop_oldest(view);
    }
    memmove(&view->older[1], &view->older[0], view->older_count * sizeof(view->older[0]));
    view->older[0] = old;
    view->older_count++;
    old->stale_bytes = stale_bytes;
    old->until_ms = now_ms + CATALOG_OLDER_MS;
    while (view->older_count > 0 && stale_bytes_of(view) > CATALOG_OLDER_BYTES) {
        drop_oldest(view);
    }
}

void catalog_view_tick(catalog_view *self, uint64_t now_ms)
{
    while (self->older_count > 0 && self->older[self->older_count - 1]->until_ms <= now_ms) {
        drop_oldest(self);
    }
}

uint64_t catalog_view_id(const catalog_view *self)
{
    return self->current != NULL ? self->current->id : 0;
}

size_t catalog_view_count(const catalog_view *self)
{
    return self->current != NULL ? self->current->total : 0;
}

/* ---- cursors: "ID:POSITION", the id in hexadecimal --------------------------------------------
 */

static bay_err bind(const catalog_view *self, const catalog_cursors *cursors, buf *out)
{
    buf_lit(out, "cursor");
    buf_char(out, (char)('0' + self->kind));
    buf_str(out, cursors->bound);
    return out->err;
}

static bay_err open_cursor(const catalog_view *self, const catalog_cursors *cursors, bay_str text,
                           buf *out)
{
    if (cursors->ring == NULL) {
        return base64_decode(out, text, BASE64_URL);
    }
    buf bound;
    buf_init(&bound, CURSOR_BOUND_BYTES);
    bay_err err = bind(self, cursors, &bound);
    err = err == BAY_OK ? seal_open(cursors->ring, text, buf_view(&bound), 0, out) : err;
    buf_fini(&bound);
    return err;
}

static bool read_hex(bay_str text, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'f')) {
            return false;
        }
        value = value << 4 | (uint64_t)(is_digit ? c - '0' : c - 'a' + 10);
    }
    *out = value;
    return text.len > 0 && text.len <= 16;
}

static bay_err read_cursor(const catalog_view *self, const catalog_cursors *cursors,
                           json_val cursor, uint64_t *out_id, size_t *out_position)
{
    bay_str text;
    char plain_bytes[CURSOR_PLAIN_BYTES];
    buf plain = {.at = plain_bytes, .cap = sizeof(plain_bytes), .max = sizeof(plain_bytes)};
    uint64_t id;
    uint64_t position;
    if (!json_str_plain(cursor, &text) || text.len > CURSOR_BYTES) {
        return BAY_ERR_INVALID;
    }
    bay_err err = open_cursor(self, cursors, text, &plain);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? BAY_ERR_NOMEM : BAY_ERR_INVALID;
    }
    size_t colon = str_find(buf_view(&plain), ':');
    if (!read_hex(str_head(buf_view(&plain), colon), &id) ||
        !str_uint(str_from(buf_view(&plain), colon + 1), &position) ||
        position > CATALOG_MAX_ITEMS) {
        return BAY_ERR_INVALID;
    }
    *out_id = id;
    *out_position = (size_t)position;
    return BAY_OK;
}

static bay_err write_cursor(const catalog_view *self, const catalog_cursors *cursors, uint64_t id,
                            size_t position, buf *out)
{
    char text[CURSOR_PLAIN_BYTES];
    int len = snprintf(text, sizeof(text), "%llx:%zu", (unsigned long long)id, position);
    bay_str plain = {text, (size_t)len};
    if (cursors->ring == NULL) {
        base64_encode(out, plain, BASE64_URL);
        return out->err;
    }
    buf bound;
    buf_init(&bound, CURSOR_BOUND_BYTES);
    bay_err err = bind(self, cursors, &bound);
    err = err == BAY_OK ? seal_value(cursors->ring, plain, buf_view(&bound), 0, out) : err;
    buf_fini(&bound);
    return err;
}

/* ---- pages ------------------------------------------------------------------------------------
 */

static const catalog_snapshot *snapshot_of(const catalog_view *self, uint64_t id)
{
    for (size_t i = 0; i < self->older_count; i++) {
        if (self->older[i]->id == id && self->current->id != id) {
            return self->older[i];
        }
    }
    return self->current;
}

/* The last part that begins at or before the position. */
static size_t part_at(const catalog_snapshot *from, size_t position)
{
    size_t low = 0;
    size_t high = from->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (from->parts[middle].before <= position) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

const catalog_entry *catalog_view_at(const catalog_view *self, size_t index)
{
    const catalog_snapshot *shown = self->current;
    if (shown == NULL || index >= shown->total) {
        return NULL;
    }
    const catalog_part *part = &shown->parts[part_at(shown, index)];
    return &part->segment->entries[index - part->before];
}

/* As many of the part's items from `first` on as fit, one at least while the page is empty. */
static size_t count_fitting(const catalog_segment *segment, size_t first, size_t most, size_t room)
{
    size_t count = 0;
    while (count < most && segment->starts[first + count + 1] - segment->starts[first] <= room) {
        count++;
    }
    return count;
}

/* `count` items of the segment from `first` on; for clients of the session revisions without the
 * output schemas that they would refuse. */
static void write_slice(const catalog_segment *segment, size_t first, size_t count, bool is_older,
                        buf *out)
{
    size_t done = first;
    for (size_t i = first; is_older && i < first + count; i++) {
        const catalog_entry *entry = &segment->entries[i];
        if (older_tools_is_free(entry->item->value)) {
            json_writer writer;
            json_writer_init(&writer, out);
            buf_append(out, segment->text.at + segment->starts[done],
                       segment->starts[i] - segment->starts[done]);
            older_tools_put(&writer, entry->item->value, entry->shown, entry->describe,
                            entry->item->gains_tasks);
            buf_str(out, i + 1 < first + count ? STR(",") : STR(""));
            done = i + 1;
        }
    }
    if (done < first + count) {
        buf_append(out, segment->text.at + segment->starts[done],
                   segment->starts[first + count] - 1 - segment->starts[done]);
    }
}

/* Copies whole slices; returns the position after the last item. */
static size_t write_items(const catalog_snapshot *from, size_t position, size_t to, bool is_older,
                          buf *out)
{
    size_t start = out->len;
    for (size_t i = part_at(from, position); i < from->count && position < to; i++) {
        const catalog_part *part = &from->parts[i];
        const catalog_segment *segment = part->segment;
        size_t first = position - part->before;
        size_t most =
            segment->count - first < to - position ? segment->count - first : to - position;
        size_t used = out->len - start;
        size_t room = used < CATALOG_PAGE_BYTES ? CATALOG_PAGE_BYTES - used : 0;
        size_t count = segment->starts[first + most] - segment->starts[first] <= room
                           ? most
                           : count_fitting(segment, first, most, room);
        if (count == 0 && used == 0) {
            count = 1;
        }
        if (count == 0) {
            break;
        }
        if (used > 0) {
            buf_char(out, ',');
        }
        bool has_free = segment->from != NULL && segment->from->free_outputs > 0;
        write_slice(segment, first, count, is_older && has_free, out);
        position += count;
        if (count < most) {
            break;
        }
    }
    return position;
}

/* The position of the next entry that is shown; `total` of the snapshot: there is none. */
static size_t next_shown(const catalog_snapshot *from, size_t position, catalog_sight sight)
{
    for (size_t i = part_at(from, position); i < from->count; i++) {
        const catalog_part *part = &from->parts[i];
        while (position - part->before < part->segment->count) {
            if (sight.shows(sight.user, &part->segment->entries[position - part->before])) {
                return position;
            }
            position++;
        }
    }
    return from->total;
}

/* As write_items, for a client that does not see everything: at most `most` items; returns the
 * position of the next one that is shown, so that pages do not tell of what is not. */
static size_t write_shown(const catalog_snapshot *from, size_t position, size_t most, bool is_older,
                          catalog_sight sight, buf *out)
{
    size_t start = out->len;
    position = position < from->total ? next_shown(from, position, sight) : position;
    for (size_t count = 0; position < from->total && count < most && out->err == BAY_OK; count++) {
        const catalog_part *part = &from->parts[part_at(from, position)];
        const catalog_segment *segment = part->segment;
        size_t index = position - part->before;
        size_t used = out->len - start;
        if (used > 0 &&
            used + segment->starts[index + 1] - segment->starts[index] > CATALOG_PAGE_BYTES) {
            break;
        }
        if (used > 0) {
            buf_char(out, ',');
        }
        bool has_free = segment->from != NULL && segment->from->free_outputs > 0;
        write_slice(segment, index, 1, is_older && has_free, out);
        position = position + 1 < from->total ? next_shown(from, position + 1, sight) : from->total;
    }
    return position;
}

bay_err catalog_view_page(const catalog_view *self, const catalog_cursors *cursors, json_val cursor,
                          uint32_t page_size, bool is_older, catalog_sight sight, buf *out)
{
    uint64_t id = catalog_view_id(self);
    size_t from = 0;
    if (!json_is(cursor, JSON_MISSING)) {
        bay_err err = read_cursor(self, cursors, cursor, &id, &from);
        if (err != BAY_OK) {
            return err;
        }
    }
    const catalog_snapshot *shown = snapshot_of(self, id);
    size_t total = shown != NULL ? shown->total : 0;
    from = from < total ? from : total;
    size_t to = page_size > 0 && page_size < total - from ? from + page_size : total;
    json_quote(out, listing_result_key(self->kind));
    buf_lit(out, ":[");
    size_t end = total == 0            ? 0
                 : sight.shows == NULL ? write_items(shown, from, to, is_older, out)
                                       : write_shown(shown, from, page_size > 0 ? page_size : total,
                                                     is_older, sight, out);
    buf_char(out, ']');
    if (end < total) {
        buf_lit(out, ",\"nextCursor\":\"");
        bay_err err = write_cursor(self, cursors, shown->id, end, out);
        buf_char(out, '"');
        return err == BAY_OK ? out->err : err;
    }
    return out->err;
}
