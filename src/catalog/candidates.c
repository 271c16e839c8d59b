/* Candidates to names. Those of one name stand in a chain in the order of the servers; the first
 * has the name. The hash holds the head of each chain under the head's own copy of the name.
 *
 * During a refresh the candidates that go (of an export that is leaving) and those that come stand
 * in the chains together; outcomes are those of the candidates that stay. */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "catalog/filter.h"
#include "catalog/parts.h"

/* Resources and templates keep their URIs: those are routed, not renamed. */
static bool is_renamed(listing_kind kind)
{
    return kind == LISTING_TOOLS || kind == LISTING_PROMPTS;
}

static bool is_prefixed(const catalog_view *view)
{
    return is_renamed(view->kind) && view->options.separator.len > 0;
}

static bool has_bare(const catalog_view *view)
{
    return is_prefixed(view) && view->options.bare_names;
}

static bay_err full_name(catalog_export *export, bay_str server, bay_str separator, bay_str bare,
                         bay_str *out)
{
    size_t len = server.len + separator.len + bare.len;
    char *at = arena_alloc(&export->memory, len + 1);
    if (at == NULL) {
        return BAY_ERR_NOMEM;
    }
    memcpy(at, server.at, server.len);
    memcpy(at + server.len, separator.at, separator.len);
    memcpy(at + server.len + separator.len, bare.at, bare.len);
    *out = (bay_str){at, len};
    return BAY_OK;
}

/* What the configuration gives is copied: a reload may replace it below the candidate. */
static bay_err candidates_keep(catalog_export *export, bay_str text, bay_str *out)
{
    return text.at != NULL ? arena_dup(&export->memory, text, out) : BAY_OK;
}

static bay_err export_add(const catalog_view *view, catalog_export *export,
                          const catalog_source *source, const listing_item *item)
{
    const config_server *server = upstream_config(source->upstream);
    catalog_candidate candidate = {.item = item, .of = export, .bare = item->key};
    bay_str name = filter_rename(server, view->kind, item->key);
    bay_err err = name.at != item->key.at ? candidates_keep(export, name, &candidate.bare) : BAY_OK;
    if (err == BAY_OK) {
        err = candidates_keep(export, filter_description(server, view->kind, item->key),
                              &candidate.describe);
    }
    candidate.full = candidate.bare;
    if (err == BAY_OK && is_prefixed(view)) {
        err = full_name(export, upstream_name(source->upstream), view->options.separator,
                        candidate.bare, &candidate.full);
    }
    if (err == BAY_OK &&
        filter_shows(view->options.profile, server, view->kind, item->key, candidate.full)) {
        export->candidates[export->count++] = candidate;
    }
    return err;
}

bay_err catalog_export_new(const catalog_view *view, size_t index, catalog_export **out)
{
    const catalog_source *source = &view->servers->sources[index];
    listing *from = source->listings[view->kind];
    catalog_export *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    arena_init(&self->memory, LISTING_MAX_BYTES);
    self->order = index;
    self->from = listing_ref(from);
    self->rules = filter_rules(upstream_config(source->upstream));
    self->candidates = mem_array(from->count + 1, sizeof(*self->candidates));
    bay_err err = self->candidates != NULL ? BAY_OK : BAY_ERR_NOMEM;
    for (size_t i = 0; err == BAY_OK && i < from->count; i++) {
        if (listing_item_passes(&from->items[i])) {
            err = export_add(view, self, source, &from->items[i]);
        }
    }
    if (err != BAY_OK) {
        catalog_export_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void catalog_export_free(catalog_export *self)
{
    if (self != NULL) {
        listing_unref(self->from);
        mem_free(self->candidates);
        arena_fini(&self->memory);
        mem_free(self);
    }
}

/* ---- chains ------------------------------------------------------------------------------------
 */

static map *heads_of(catalog_view *view, catalog_chain which)
{
    return which == CHAIN_FULL ? &view->by_full : &view->by_bare;
}

static bay_str name_in(catalog_chain which, const catalog_candidate *candidate)
{
    return which == CHAIN_FULL ? candidate->full : candidate->bare;
}

/* `before` NULL: at the end, behind `after`; both NULL: alone. */
static bay_err chain_insert(catalog_view *view, catalog_chain which, catalog_candidate *candidate,
                            catalog_candidate *after, catalog_candidate *before)
{
    if (after == NULL) {
        bay_err err = map_put(heads_of(view, which), name_in(which, candidate), candidate, NULL);
        if (err != BAY_OK) {
            return err;
        }
    } else {
        after->next[which] = candidate;
    }
    if (before != NULL) {
        before->previous[which] = candidate;
    }
    candidate->next[which] = before;
    candidate->previous[which] = after;
    return BAY_OK;
}

static void chain_remove(catalog_view *view, catalog_chain which, catalog_candidate *candidate)
{
    catalog_candidate *next = candidate->next[which];
    catalog_candidate *previous = candidate->previous[which];
    if (next != NULL) {
        next->previous[which] = previous;
    }
    if (previous != NULL) {
        previous->next[which] = next;
    } else if (next != NULL) {
        /* the entry is there: nothing is allocated */
        err_ignore(map_put(heads_of(view, which), name_in(which, next), next, NULL));
    } else {
        map_remove(heads_of(view, which), name_in(which, candidate));
    }
    candidate->next[which] = NULL;
    candidate->previous[which] = NULL;
}

/* The first in the chain that a candidate of this export comes before: one of a later server, or
 * the one of its own server that goes. */
static bool stands_behind(const catalog_candidate *at, const catalog_export *export)
{
    return at->of->order > export->order || (at->of->order == export->order && at->of->is_leaving);
}

/* `like`: the candidate of the same name that it takes the place of, when that is known: then
 * nothing is searched, however many servers offer the name. */
static bay_err link_full(catalog_view *view, catalog_candidate *candidate, catalog_candidate *like)
{
    catalog_candidate *after = NULL;
    catalog_candidate *before = like;
    if (like != NULL) {
        after = like->previous[CHAIN_FULL];
    } else {
        before = map_get(&view->by_full, candidate->full);
        while (before != NULL && !stands_behind(before, candidate->of)) {
            after = before;
            before = before->next[CHAIN_FULL];
        }
    }
    if (after != NULL && after->of == candidate->of) {
        candidate->is_twice = true;
        return BAY_OK;
    }
    return chain_insert(view, CHAIN_FULL, candidate, after, before);
}

static bay_err candidate_link(catalog_view *view, catalog_candidate *candidate,
                              catalog_candidate *like)
{
    bay_err err = link_full(view, candidate, like);
    if (err == BAY_OK && !candidate->is_twice && has_bare(view)) {
        err = chain_insert(view, CHAIN_BARE, candidate, NULL,
                           map_get(&view->by_bare, candidate->bare));
        if (err != BAY_OK) {
            chain_remove(view, CHAIN_FULL, candidate);
        }
    }
    return err;
}

static void candidate_unlink(catalog_view *view, catalog_candidate *candidate)
{
    if (candidate->is_twice) {
        return;
    }
    chain_remove(view, CHAIN_FULL, candidate);
    if (has_bare(view)) {
        chain_remove(view, CHAIN_BARE, candidate);
    }
}

bay_err catalog_export_link(catalog_view *view, catalog_export *self, const catalog_export *old)
{
    for (size_t i = 0; i < self->count; i++) {
        catalog_candidate *like = old != NULL && i < old->count ? &old->candidates[i] : NULL;
        bool is_same =
            like != NULL && !like->is_twice && str_eq(like->full, self->candidates[i].full);
        bay_err err = candidate_link(view, &self->candidates[i], is_same ? like : NULL);
        if (err != BAY_OK) {
            while (i > 0) {
                candidate_unlink(view, &self->candidates[--i]);
            }
            return err;
        }
    }
    return BAY_OK;
}

void catalog_export_unlink(catalog_view *view, catalog_export *self)
{
    for (size_t i = 0; self != NULL && i < self->count; i++) {
        candidate_unlink(view, &self->candidates[i]);
    }
}

/* ---- outcomes ---------------------------------------------------------------------------------
 */

/* A bare name that reads like another's full one is never shown: the full one would be meant. */
static bool reads_as_full(const catalog_view *view, bay_str bare)
{
    bay_str rest;
    return catalog_servers_split(view->servers, view->options.separator, bare, &rest) != NULL;
}

static bool is_alone(const catalog_view *view, const catalog_candidate *self)
{
    const catalog_candidate *at = map_get(&view->by_bare, self->bare);
    for (; at != NULL; at = at->next[CHAIN_BARE]) {
        if (at != self && !at->of->is_leaving) {
            return false;
        }
    }
    return true;
}

catalog_outcome catalog_candidate_outcome(const catalog_view *view, const catalog_candidate *self)
{
    const catalog_candidate *head = map_get(&view->by_full, self->full);
    while (head != NULL && head->of->is_leaving) {
        head = head->next[CHAIN_FULL];
    }
    if (self->is_twice || head != self) {
        return CANDIDATE_HIDDEN;
    }
    return has_bare(view) && is_alone(view, self) && !reads_as_full(view, self->bare)
               ? CANDIDATE_BARE
               : CANDIDATE_FULL;
}

catalog_outcome catalog_candidate_rendered(const catalog_view *view, const catalog_candidate *self)
{
    const catalog_segment *segment = view->places[self->of->order].segment;
    uint32_t place = segment->places[self - self->of->candidates];
    if (place == 0) {
        return CANDIDATE_HIDDEN;
    }
    return has_bare(view) && segment->entries[place - 1].shown.len == self->bare.len
               ? CANDIDATE_BARE
               : CANDIDATE_FULL;
}
