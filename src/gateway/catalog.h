/* The catalog of one face: what its servers offer, merged in the order of the configuration, under
 * the names it shows. One view per kind, replaced whole when a listing changes; pages are slices of
 * one buffer, so a list costs a copy and a look-up one hash.
 *
 * Cursors are opaque: a position in the view, told apart by the view's serial number. A cursor of
 * an older view still leads to its position in the newer one. */
#ifndef GATEWAY_CATALOG_H
#define GATEWAY_CATALOG_H

#include "base/map.h"
#include "gateway/listing.h"

enum { CATALOG_MAX_ITEMS = 1000000, CATALOG_MAX_BYTES = 1 << 30 };

/* A server as the catalog sees it; `listings` are the fetched ones, or NULL before that. */
typedef struct catalog_source {
    upstream *upstream;
    listing *listings[LISTING_KINDS]; /* borrowed: whoever fetches holds them */
} catalog_source;

typedef struct catalog_entry {
    bay_str shown; /* the name, URI or template clients use */
    const listing_item *item;
    upstream *upstream;
    listing *owner; /* keeps `item` */
} catalog_entry;

typedef struct catalog_view {
    listing_kind kind;
    uint32_t serial;
    arena memory;   /* shown names */
    buf text;       /* items as shown, separated by commas */
    size_t *starts; /* count + 1 of them */
    catalog_entry *entries;
    size_t count;
    size_t hidden; /* offered twice */
    map by_shown;
} catalog_view;

typedef struct catalog_options {
    bay_str separator; /* empty: names are shown as they are (a face of one server) */
    bool bare_names;   /* with a separator: the bare name instead where only one server has it */
} catalog_options;

/* Builds the view of one kind. Owns: the view holds references to the listings it shows. */
bay_err catalog_view_build(catalog_view *out, listing_kind kind, const catalog_source *sources,
                           size_t count, const catalog_options *options,
                           uint32_t serial) BAY_MUST_CHECK;
void catalog_view_fini(catalog_view *self);

const catalog_entry *catalog_view_find(const catalog_view *self, bay_str shown);
/* The first template that the URI may be an expansion of. */
const catalog_entry *catalog_view_match(const catalog_view *self, bay_str uri);

/* Writes the members of a list result: the page after `cursor` (missing: from the start) and
 * nextCursor. BAY_INVALID: no cursor of ours. */
bay_err catalog_view_page(const catalog_view *self, json_val cursor, uint32_t page_size,
                          buf *out) BAY_MUST_CHECK;

#endif
