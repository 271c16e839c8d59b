/* What the files of the catalog share: candidates and places. */
#ifndef CATALOG_PARTS_H
#define CATALOG_PARTS_H

#include "catalog/catalog.h"

/* One item of one server, under the name it would be shown by. */
typedef struct catalog_candidate {
    bay_str full; /* with its server's name, where the endpoint writes that */
    bay_str bare; /* without */
    bay_str describe;
    const listing_item *item;
    struct catalog_export *of;
    struct catalog_candidate *next[2]; /* of the same name, see catalog_chain */
    struct catalog_candidate *previous[2];
    bool is_twice; /* within its own server: in no chain */
} catalog_candidate;

/* All candidates of one server. */
typedef struct catalog_export {
    size_t order; /* of the server */
    bool is_leaving;
    listing *from;
    uint64_t rules; /* filter_rules of its server */
    arena memory;   /* names */
    catalog_candidate *candidates;
    size_t count;
} catalog_export;

/* A server's place in a view. Invariant: export and segment belong together, or are both NULL. */
typedef struct catalog_place {
    upstream *upstream; /* whose it was when it was last taken up */
    catalog_export *export;
    catalog_segment *segment;
    catalog_export *next_export; /* while a refresh is under way */
    catalog_segment *next_segment;
    bool is_dirty; /* to be rendered */
    size_t told;   /* items of it that the log has called hidden */
} catalog_place;

/* Candidates to the same full name stand in the order of the servers, those to the same bare one as
 * they came. */
typedef enum catalog_chain { CHAIN_FULL, CHAIN_BARE } catalog_chain;

typedef enum catalog_outcome { CANDIDATE_HIDDEN, CANDIDATE_FULL, CANDIDATE_BARE } catalog_outcome;

/* candidates.c */
bay_err catalog_export_new(const catalog_view *view, size_t index,
                           catalog_export **out) BAY_MUST_CHECK;
void catalog_export_free(catalog_export *self); /* NULL is fine; its candidates are in no chain */
/* Puts all candidates into the view's chains, or none. `old`: what it takes the place of; may be
 * NULL.
 */
bay_err catalog_export_link(catalog_view *view, catalog_export *self,
                            const catalog_export *old) BAY_MUST_CHECK;
/* Takes them out again; needs no memory. NULL is fine. */
void catalog_export_unlink(catalog_view *view, catalog_export *self);
/* What becomes of a candidate among those that are not leaving. */
catalog_outcome catalog_candidate_outcome(const catalog_view *view, const catalog_candidate *self);
/* What the segment of its place shows of it. */
catalog_outcome catalog_candidate_rendered(const catalog_view *view, const catalog_candidate *self);

/* pages.c */
/* The snapshot of the places as they will be; NULL: out of memory. */
catalog_snapshot *catalog_snapshot_new(const catalog_view *view);
void catalog_snapshot_free(catalog_snapshot *self); /* NULL is fine */
/* `next` becomes the current one, the one before one of the older. */
void catalog_snapshot_swap(catalog_view *view, catalog_snapshot *next, size_t stale_bytes,
                           uint64_t now_ms);

#endif
