/* A segment of a catalog: what one server shows of one kind on one endpoint, rendered. Immutable
 * and counted (by one loop): a refresh of one server makes one segment anew and leaves all others
 * as they are; a list that a client is in the middle of keeps the segments it began with. */
#ifndef CATALOG_SEGMENT_H
#define CATALOG_SEGMENT_H

#include "catalog/listing.h"

enum { SEGMENT_MAX_BYTES = 2 * LISTING_MAX_BYTES };

typedef struct catalog_entry {
    bay_str shown; /* the name, URI or template clients use */
    bay_str bare;  /* the same without its server's name */
    const listing_item *item;
    upstream *upstream; /* of a current entry only: that of an older snapshot may have left */
    listing *owner;     /* keeps `item` */
    const struct catalog_segment *segment; /* that it is in */
    bay_str describe;                      /* in place of its description; `at` NULL: none */
} catalog_entry;

typedef struct catalog_segment {
    unsigned references;
    uint64_t hash;      /* of `text`; the same on every loop */
    upstream *upstream; /* see catalog_entry */
    bay_str server;     /* its name … */
    bay_str agent;      /* … and whose skills it stands for, also once it has left */
    listing *from;
    arena memory;           /* everything below but the text */
    catalog_entry *entries; /* what is shown, in the server's order */
    uint32_t *places;       /* for each of the server's candidates: 1 + its entry; 0: not shown */
    size_t *starts;         /* count + 1 of them, as if a comma followed the last item */
    size_t count;
    buf text; /* the items as shown, separated by commas */
} catalog_segment;

/* For a listing of `candidates` items, none shown yet. NULL: out of memory. */
catalog_segment *catalog_segment_new(upstream *of, listing *from, size_t candidates);
catalog_segment *catalog_segment_ref(catalog_segment *self);
void catalog_segment_unref(catalog_segment *self); /* NULL is fine */

/* While it is being made: shows the candidate under `shown`, which ends with `bare` and is copied.
 * `describe` with `at` NULL: the description stays as it is. Everything else goes byte for byte. */
bay_err catalog_segment_add(catalog_segment *self, size_t candidate, const listing_item *item,
                            bay_str shown, bay_str bare, bay_str describe) BAY_MUST_CHECK;
/* The end of it. */
bay_err catalog_segment_seal(catalog_segment *self) BAY_MUST_CHECK;

#endif
