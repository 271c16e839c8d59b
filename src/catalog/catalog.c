#include "catalog/catalog.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "catalog/filter.h"
#include "catalog/parts.h"
#include "wire/uri.h"

enum { HIDDEN_COMPLAINTS = 5 };

/* ---- the servers ------------------------------------------------------------------------------
 */

bay_err catalog_servers_init(catalog_servers *self, const catalog_source *sources, size_t count)
{
    *self = (catalog_servers){.count = count};
    map_init(&self->by_name, count + 1);
    self->sources = mem_array(count + 1, sizeof(*self->sources));
    bay_err err = self->sources != NULL ? BAY_OK : BAY_ERR_NOMEM;
    for (size_t i = 0; err == BAY_OK && i < count; i++) {
        self->sources[i] = sources[i];
        err = map_put(&self->by_name, upstream_name(sources[i].upstream), &self->sources[i], NULL);
    }
    if (err != BAY_OK) {
        catalog_servers_fini(self);
    }
    return err;
}

void catalog_servers_fini(catalog_servers *self)
{
    map_fini(&self->by_name);
    mem_free(self->sources);
    *self = (catalog_servers){0};
}

catalog_source *catalog_servers_find(const catalog_servers *self, bay_str server)
{
    return map_get(&self->by_name, server);
}

catalog_source *catalog_servers_split(const catalog_servers *self, bay_str separator, bay_str name,
                                      bay_str *out_rest)
{
    for (size_t at = 1; at <= CONFIG_NAME_BYTES && at < name.len; at++) {
        if (!str_starts(str_from(name, at), separator)) {
            continue;
        }
        catalog_source *found = catalog_servers_find(self, str_head(name, at));
        if (found != NULL) {
            *out_rest = str_from(name, at + separator.len);
            return found;
        }
    }
    return NULL;
}

/* ---- a view -----------------------------------------------------------------------------------
 */

void catalog_view_init(catalog_view *self, listing_kind kind)
{
    *self = (catalog_view){.kind = kind};
    /* while a server is exchanged, both what goes and what comes stand there */
    map_init(&self->by_full, 2 * (size_t)CATALOG_MAX_ITEMS);
    map_init(&self->by_bare, 2 * (size_t)CATALOG_MAX_ITEMS);
}

/* All but the snapshots. */
static void drop_places(catalog_view *self)
{
    for (size_t i = 0; i < self->place_count; i++) {
        catalog_export_free(self->places[i].export);
        catalog_segment_unref(self->places[i].segment);
    }
    mem_free(self->places);
    map_fini(&self->by_full);
    map_fini(&self->by_bare);
}

void catalog_view_fini(catalog_view *self)
{
    drop_places(self);
    catalog_snapshot_free(self->current);
    for (size_t i = 0; i < self->older_count; i++) {
        catalog_snapshot_free(self->older[i]);
    }
    catalog_view_init(self, self->kind);
}

/* What it will show: an export that is to come counts, one that is to go does not. */
static catalog_export *export_to_be(const catalog_place *place)
{
    bool is_exchanged = place->export != NULL && place->export->is_leaving;
    return place->next_export != NULL || is_exchanged ? place->next_export : place->export;
}

static bay_err render(catalog_view *self, size_t index)
{
    catalog_place *place = &self->places[index];
    const catalog_export *export = export_to_be(place);
    catalog_segment *made = catalog_segment_new(self->servers->sources[index].upstream,
                                                export != NULL ? export->from : NULL,
                                                export != NULL ? export->count : 0);
    bay_err err = made != NULL ? BAY_OK : BAY_ERR_NOMEM;
    for (size_t i = 0; err == BAY_OK && export != NULL && i < export->count; i++) {
        const catalog_candidate *candidate = &export->candidates[i];
        catalog_outcome outcome = catalog_candidate_outcome(self, candidate);
        if (outcome != CANDIDATE_HIDDEN) {
            err = catalog_segment_add(made, i, candidate->item,
                                      outcome == CANDIDATE_BARE ? candidate->bare : candidate->full,
                                      candidate->bare, candidate->describe);
        }
    }
    err = err == BAY_OK ? catalog_segment_seal(made) : err;
    if (err != BAY_OK) {
        catalog_segment_unref(made);
        return err;
    }
    place->next_segment = made;
    return BAY_OK;
}

/* The first candidate in a chain that is of neither the export that comes nor the one that goes. */
static const catalog_candidate *first_other(const catalog_view *self, const catalog_candidate *at,
                                            catalog_chain which)
{
    while (at != NULL && (at->of->is_leaving || at->of != self->places[at->of->order].export)) {
        at = at->next[which];
    }
    return at;
}

static void mark_candidate(catalog_view *self, const catalog_candidate *candidate)
{
    catalog_place *place = &self->places[candidate->of->order];
    if (!place->is_dirty) {
        place->is_dirty = catalog_candidate_outcome(self, candidate) !=
                          catalog_candidate_rendered(self, candidate);
    }
}

/* Of the candidates of others one alone can win or lose by an exchange: to a full name the first,
 * to a bare one the only. Its place becomes dirty. */
static void mark_touched(catalog_view *self, const catalog_export *export)
{
    for (size_t i = 0; export != NULL && i < export->count; i++) {
        const catalog_candidate *candidate = &export->candidates[i];
        const catalog_candidate *other =
            first_other(self, map_get(&self->by_full, candidate->full), CHAIN_FULL);
        if (other != NULL) {
            mark_candidate(self, other);
        }
        other = first_other(self, map_get(&self->by_bare, candidate->bare), CHAIN_BARE);
        if (other != NULL && first_other(self, other->next[CHAIN_BARE], CHAIN_BARE) == NULL) {
            mark_candidate(self, other);
        }
    }
}

static size_t items_of(const catalog_export *export)
{
    return export != NULL ? export->count : 0;
}

static size_t bytes_of(const catalog_segment *segment)
{
    return segment != NULL ? segment->text.len : 0;
}

static void complain(const catalog_view *self, const catalog_place *place)
{
    size_t said = 0;
    const catalog_export *export = place->export;
    for (size_t i = 0; i < export->count && said < HIDDEN_COMPLAINTS; i++) {
        if (place->segment->places[i] == 0) {
            LOG(LOG_WARN, "catalog", "\"%.*s\" is offered twice; the one of %s is not shown",
                BAY_STR(str_head(export->candidates[i].full, 300)),
                upstream_name(self->servers->sources[export->order].upstream).at);
            said++;
        }
    }
}

/* Every place that was rendered shows it from now on. */
static size_t commit_places(catalog_view *self)
{
    size_t stale_bytes = 0;
    size_t more_hidden = 0;
    for (size_t i = 0; i < self->place_count; i++) {
        catalog_place *place = &self->places[i];
        catalog_export *to_be = export_to_be(place);
        if (!place->is_dirty) {
            continue;
        }
        size_t hidden_before =
            place->segment != NULL ? items_of(place->export) - place->segment->count : 0;
        stale_bytes += bytes_of(place->segment);
        self->bytes += bytes_of(place->next_segment) - bytes_of(place->segment);
        self->candidates += items_of(to_be) - items_of(place->export);
        if (to_be != place->export) {
            catalog_export_unlink(self, place->export);
            catalog_export_free(place->export);
        }
        catalog_segment_unref(place->segment);
        place->export = to_be;
        place->segment = place->next_segment;
        place->next_export = NULL;
        place->next_segment = NULL;
        place->is_dirty = false;
        size_t hidden = items_of(place->export) - place->segment->count;
        self->hidden += hidden - hidden_before;
        if (hidden > place->told && !self->options.is_quiet) {
            more_hidden += hidden - place->told;
            complain(self, place);
        }
        place->told = hidden;
    }
    if (more_hidden > HIDDEN_COMPLAINTS) {
        LOG(LOG_WARN, "catalog", "%zu more items are not shown because they are offered twice",
            more_hidden);
    }
    return stale_bytes;
}

static void roll_back(catalog_view *self)
{
    for (size_t i = 0; i < self->place_count; i++) {
        catalog_place *place = &self->places[i];
        if (place->is_dirty) {
            catalog_segment_unref(place->next_segment);
            place->next_segment = NULL;
            place->is_dirty = false;
        }
    }
}

/* Renders what is dirty and puts it in the place of what was; all of it, or nothing. */
static bay_err render_dirty(catalog_view *self, uint64_t now_ms)
{
    bay_err err = BAY_OK;
    size_t bytes = self->bytes;
    for (size_t i = 0; err == BAY_OK && i < self->place_count; i++) {
        catalog_place *place = &self->places[i];
        if (place->is_dirty) {
            err = render(self, i);
            bytes += bytes_of(place->next_segment) - bytes_of(place->segment);
        }
    }
    if (err == BAY_OK && bytes > CATALOG_MAX_BYTES) {
        err = BAY_ERR_LIMIT;
    }
    catalog_snapshot *next = err == BAY_OK ? catalog_snapshot_new(self) : NULL;
    if (next == NULL) {
        roll_back(self);
        return err == BAY_OK ? BAY_ERR_NOMEM : err;
    }
    catalog_snapshot_swap(self, next, commit_places(self), now_ms);
    return BAY_OK;
}

bay_err catalog_view_refresh(catalog_view *self, size_t index, uint64_t now_ms)
{
    catalog_place *place = &self->places[index];
    const listing *from = self->servers->sources[index].listings[self->kind];
    if (from != NULL &&
        from->count + self->candidates - items_of(place->export) > CATALOG_MAX_ITEMS) {
        return BAY_ERR_LIMIT;
    }
    catalog_export *export = NULL;
    bay_err err = from != NULL ? catalog_export_new(self, index, &export) : BAY_OK;
    if (err != BAY_OK) {
        return err;
    }
    if (place->export != NULL) {
        place->export->is_leaving = true;
    }
    err = export != NULL ? catalog_export_link(self, export, place->export) : BAY_OK;
    if (err == BAY_OK) {
        place->next_export = export;
        place->is_dirty = true;
        mark_touched(self, place->export);
        mark_touched(self, export);
        err = render_dirty(self, now_ms);
        if (err == BAY_OK) {
            place->upstream = self->servers->sources[index].upstream;
        } else {
            place->next_export = NULL;
            catalog_export_unlink(self, export);
        }
    }
    if (err != BAY_OK) {
        catalog_export_free(export);
        if (place->export != NULL) {
            place->export->is_leaving = false;
        }
    }
    return err;
}

/* All candidates first, then all segments: each is rendered once. */
static bay_err fill(catalog_view *self, uint64_t now_ms)
{
    for (size_t i = 0; i < self->place_count; i++) {
        const catalog_source *source = &self->servers->sources[i];
        const listing *from = source->listings[self->kind];
        catalog_place *place = &self->places[i];
        place->upstream = source->upstream;
        size_t count = from != NULL ? from->count : 0;
        if (count + self->candidates > CATALOG_MAX_ITEMS) {
            LOG(LOG_ERROR, "catalog", "%s is left out: more than %d items of %.*s in all",
                upstream_name(source->upstream).at, CATALOG_MAX_ITEMS,
                BAY_STR(listing_result_key(self->kind)));
        } else if (from != NULL) {
            bay_err err = catalog_export_new(self, i, &place->export);
            err = err == BAY_OK ? catalog_export_link(self, place->export, NULL) : err;
            if (err != BAY_OK) {
                return err;
            }
            self->candidates += place->export->count;
            place->is_dirty = true;
        }
    }
    return render_dirty(self, now_ms);
}

static bay_err build_anew(catalog_view *self, const catalog_servers *servers,
                          const catalog_options *options, uint64_t now_ms)
{
    catalog_view next;
    catalog_view_init(&next, self->kind);
    next.options = *options;
    next.servers = servers;
    next.part = filter_part(options->profile);
    next.places = mem_array(servers->count + 1, sizeof(*next.places));
    next.place_count = next.places != NULL ? servers->count : 0;
    bay_err err = next.places != NULL ? fill(&next, now_ms) : BAY_ERR_NOMEM;
    if (err != BAY_OK) {
        catalog_view_fini(&next);
        return err;
    }
    /* clients that are in the middle of the earlier one go on with it */
    catalog_snapshot *current = next.current;
    size_t stale_bytes = self->bytes;
    drop_places(self);
    next.current = self->current;
    next.older_count = self->older_count;
    memcpy(next.older, self->older, sizeof(next.older));
    *self = next;
    catalog_snapshot_swap(self, current, stale_bytes, now_ms);
    return BAY_OK;
}

/* The same servers by name, in the same order, under the same rules for names. */
static bool is_same_shape(const catalog_view *self, const catalog_servers *servers,
                          const catalog_options *options)
{
    if (self->servers == NULL || self->place_count != servers->count ||
        !str_eq(self->options.separator, options->separator) ||
        self->options.bare_names != options->bare_names ||
        self->part != filter_part(options->profile)) {
        return false;
    }
    for (size_t i = 0; i < servers->count; i++) {
        if (!str_eq(upstream_name(self->places[i].upstream),
                    upstream_name(servers->sources[i].upstream))) {
            return false;
        }
    }
    return true;
}

static bool is_as_it_was(const catalog_view *self, const catalog_source *now,
                         const catalog_place *place)
{
    const listing *shown = place->export != NULL ? place->export->from : NULL;
    return place->upstream == now->upstream && shown == now->listings[self->kind] &&
           (shown == NULL || place->export->rules == filter_rules(upstream_config(now->upstream)));
}

bay_err catalog_view_reset(catalog_view *self, const catalog_servers *servers,
                           const catalog_options *options, uint64_t now_ms)
{
    if (!is_same_shape(self, servers, options)) {
        return build_anew(self, servers, options, now_ms);
    }
    bay_err err = BAY_OK;
    self->servers = servers;
    self->options = *options;
    for (size_t i = 0; err == BAY_OK && i < servers->count; i++) {
        if (!is_as_it_was(self, &servers->sources[i], &self->places[i])) {
            err = catalog_view_refresh(self, i, now_ms);
        }
    }
    return err == BAY_OK ? BAY_OK : build_anew(self, servers, options, now_ms);
}

bool catalog_view_shows(const catalog_view *self, size_t index)
{
    if (self->servers == NULL || index >= self->place_count) {
        return false;
    }
    const listing *from = self->servers->sources[index].listings[self->kind];
    const catalog_segment *shown = self->places[index].segment;
    return from == NULL || from->count == 0 || (shown != NULL && shown->count > 0);
}

static const catalog_entry *entry_of(const catalog_view *self, const catalog_candidate *candidate)
{
    const catalog_segment *segment = self->places[candidate->of->order].segment;
    uint32_t place = segment->places[candidate - candidate->of->candidates];
    return place > 0 ? &segment->entries[place - 1] : NULL;
}

const catalog_entry *catalog_view_find(const catalog_view *self, bay_str shown)
{
    const catalog_candidate *candidate = map_get(&self->by_full, shown);
    if (candidate != NULL) {
        return entry_of(self, candidate);
    }
    candidate = map_get(&self->by_bare, shown);
    bool is_bare =
        candidate != NULL && catalog_candidate_rendered(self, candidate) == CANDIDATE_BARE;
    return is_bare ? entry_of(self, candidate) : NULL;
}

bay_str catalog_view_text(const catalog_view *self, const catalog_entry *entry)
{
    const catalog_source *source =
        catalog_servers_find(self->servers, upstream_name(entry->upstream));
    const catalog_segment *segment = self->places[source - self->servers->sources].segment;
    size_t at = (size_t)(entry - segment->entries);
    return (bay_str){segment->text.at + segment->starts[at],
                     segment->starts[at + 1] - 1 - segment->starts[at]};
}

const catalog_entry *catalog_view_match(const catalog_view *self, bay_str address)
{
    const catalog_snapshot *shown = self->current;
    for (size_t i = 0; shown != NULL && i < shown->count; i++) {
        const catalog_segment *segment = shown->parts[i].segment;
        for (size_t k = 0; k < segment->count; k++) {
            bay_str template = segment->entries[k].shown;
            bay_str literal = str_head(template, str_find(template, '{')); /* rules most out */
            if (str_starts(address, literal) && uri_template_matches(template, address)) {
                return &segment->entries[k];
            }
        }
    }
    return NULL;
}
