/* Claims to names. Those of one name stand in a chain in the order of the servers; the first has
 * the name. The hash holds the head of each chain under the head's own copy of the name.
 *
 * During a refresh the claims that go (of an offer that is leaving) and those that come stand in
 * the chains together; outcomes are those of the claims that stay. */
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

static bay_err full_name(catalog_offer *offer, bay_str server, bay_str separator, bay_str bare,
                         bay_str *out)
{
    size_t len = server.len + separator.len + bare.len;
    char *at = arena_alloc(&offer->memory, len + 1);
    if (at == NULL) {
        return BAY_NOMEM;
    }
    memcpy(at, server.at, server.len);
    memcpy(at + server.len, separator.at, separator.len);
    memcpy(at + server.len + separator.len, bare.at, bare.len);
    *out = (bay_str){at, len};
    return BAY_OK;
}

/* What the configuration gives is copied: a reload may replace it below the claim. */
static bay_err keep(catalog_offer *offer, bay_str text, bay_str *out)
{
    return text.at != NULL ? arena_dup(&offer->memory, text, out) : BAY_OK;
}

static bay_err offer_add(const catalog_view *view, catalog_offer *offer,
                         const catalog_source *source, const listing_item *item)
{
    const config_server *server = upstream_config(source->upstream);
    catalog_claim claim = {.item = item, .of = offer, .bare = item->key};
    bay_str name = filter_rename(server, view->kind, item->key);
    bay_err err = name.at != item->key.at ? keep(offer, name, &claim.bare) : BAY_OK;
    if (err == BAY_OK) {
        err = keep(offer, filter_description(server, view->kind, item->key), &claim.describe);
    }
    claim.full = claim.bare;
    if (err == BAY_OK && is_prefixed(view)) {
        err = full_name(offer, upstream_name(source->upstream), view->options.separator, claim.bare,
                        &claim.full);
    }
    if (err == BAY_OK &&
        filter_shows(view->options.profile, server, view->kind, item->key, claim.full)) {
        offer->claims[offer->count++] = claim;
    }
    return err;
}

bay_err catalog_offer_new(const catalog_view *view, size_t index, catalog_offer **out)
{
    const catalog_source *source = &view->roster->sources[index];
    listing *from = source->listings[view->kind];
    catalog_offer *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    arena_init(&self->memory, LISTING_MAX_BYTES);
    self->order = index;
    self->from = listing_ref(from);
    self->rules = filter_rules(upstream_config(source->upstream));
    self->claims = mem_array(from->count + 1, sizeof(*self->claims));
    bay_err err = self->claims != NULL ? BAY_OK : BAY_NOMEM;
    for (size_t i = 0; err == BAY_OK && i < from->count; i++) {
        err = offer_add(view, self, source, &from->items[i]);
    }
    if (err != BAY_OK) {
        catalog_offer_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void catalog_offer_free(catalog_offer *self)
{
    if (self != NULL) {
        listing_unref(self->from);
        mem_free(self->claims);
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

static bay_str name_in(catalog_chain which, const catalog_claim *claim)
{
    return which == CHAIN_FULL ? claim->full : claim->bare;
}

/* `before` NULL: at the end, behind `after`; both NULL: alone. */
static bay_err chain_insert(catalog_view *view, catalog_chain which, catalog_claim *claim,
                            catalog_claim *after, catalog_claim *before)
{
    if (after == NULL) {
        bay_err err = map_put(heads_of(view, which), name_in(which, claim), claim, NULL);
        if (err != BAY_OK) {
            return err;
        }
    } else {
        after->next[which] = claim;
    }
    if (before != NULL) {
        before->previous[which] = claim;
    }
    claim->next[which] = before;
    claim->previous[which] = after;
    return BAY_OK;
}

static void chain_remove(catalog_view *view, catalog_chain which, catalog_claim *claim)
{
    catalog_claim *next = claim->next[which];
    catalog_claim *previous = claim->previous[which];
    if (next != NULL) {
        next->previous[which] = previous;
    }
    if (previous != NULL) {
        previous->next[which] = next;
    } else if (next != NULL) {
        /* the entry is there: nothing is allocated */
        err_ignore(map_put(heads_of(view, which), name_in(which, next), next, NULL));
    } else {
        map_remove(heads_of(view, which), name_in(which, claim));
    }
    claim->next[which] = NULL;
    claim->previous[which] = NULL;
}

/* The first in the chain that a claim of this offer comes before: one of a later server, or the one
 * of its own server that goes. */
static bool stands_behind(const catalog_claim *at, const catalog_offer *offer)
{
    return at->of->order > offer->order || (at->of->order == offer->order && at->of->is_leaving);
}

/* `like`: the claim of the same name that it takes the place of, when that is known: then nothing
 * is searched, however many servers offer the name. */
static bay_err link_full(catalog_view *view, catalog_claim *claim, catalog_claim *like)
{
    catalog_claim *after = NULL;
    catalog_claim *before = like;
    if (like != NULL) {
        after = like->previous[CHAIN_FULL];
    } else {
        before = map_get(&view->by_full, claim->full);
        while (before != NULL && !stands_behind(before, claim->of)) {
            after = before;
            before = before->next[CHAIN_FULL];
        }
    }
    if (after != NULL && after->of == claim->of) {
        claim->is_twice = true;
        return BAY_OK;
    }
    return chain_insert(view, CHAIN_FULL, claim, after, before);
}

static bay_err claim_link(catalog_view *view, catalog_claim *claim, catalog_claim *like)
{
    bay_err err = link_full(view, claim, like);
    if (err == BAY_OK && !claim->is_twice && has_bare(view)) {
        err = chain_insert(view, CHAIN_BARE, claim, NULL, map_get(&view->by_bare, claim->bare));
        if (err != BAY_OK) {
            chain_remove(view, CHAIN_FULL, claim);
        }
    }
    return err;
}

static void claim_unlink(catalog_view *view, catalog_claim *claim)
{
    if (claim->is_twice) {
        return;
    }
    chain_remove(view, CHAIN_FULL, claim);
    if (has_bare(view)) {
        chain_remove(view, CHAIN_BARE, claim);
    }
}

bay_err catalog_offer_link(catalog_view *view, catalog_offer *self, const catalog_offer *old)
{
    for (size_t i = 0; i < self->count; i++) {
        catalog_claim *like = old != NULL && i < old->count ? &old->claims[i] : NULL;
        bool is_same = like != NULL && !like->is_twice && str_eq(like->full, self->claims[i].full);
        bay_err err = claim_link(view, &self->claims[i], is_same ? like : NULL);
        if (err != BAY_OK) {
            while (i > 0) {
                claim_unlink(view, &self->claims[--i]);
            }
            return err;
        }
    }
    return BAY_OK;
}

void catalog_offer_unlink(catalog_view *view, catalog_offer *self)
{
    for (size_t i = 0; self != NULL && i < self->count; i++) {
        claim_unlink(view, &self->claims[i]);
    }
}

/* ---- outcomes ---------------------------------------------------------------------------------
 */

/* A bare name that reads like another's full one is never shown: the full one would be meant. */
static bool reads_as_full(const catalog_view *view, bay_str bare)
{
    bay_str rest;
    return catalog_roster_split(view->roster, view->options.separator, bare, &rest) != NULL;
}

static bool is_alone(const catalog_view *view, const catalog_claim *self)
{
    const catalog_claim *at = map_get(&view->by_bare, self->bare);
    for (; at != NULL; at = at->next[CHAIN_BARE]) {
        if (at != self && !at->of->is_leaving) {
            return false;
        }
    }
    return true;
}

catalog_outcome catalog_claim_outcome(const catalog_view *view, const catalog_claim *self)
{
    const catalog_claim *head = map_get(&view->by_full, self->full);
    while (head != NULL && head->of->is_leaving) {
        head = head->next[CHAIN_FULL];
    }
    if (self->is_twice || head != self) {
        return CLAIM_HIDDEN;
    }
    return has_bare(view) && is_alone(view, self) && !reads_as_full(view, self->bare) ? CLAIM_BARE
                                                                                      : CLAIM_FULL;
}

catalog_outcome catalog_claim_rendered(const catalog_view *view, const catalog_claim *self)
{
    const catalog_segment *segment = view->places[self->of->order].segment;
    uint32_t place = segment->places[self - self->of->claims];
    if (place == 0) {
        return CLAIM_HIDDEN;
    }
    return has_bare(view) && segment->entries[place - 1].shown.len == self->bare.len ? CLAIM_BARE
                                                                                     : CLAIM_FULL;
}
