/* The catalog of one endpoint: what its servers offer, merged in the order of the configuration,
 * under the names the endpoint shows. One view per kind.
 *
 *   listing --export--> candidates: one an item, in a hash by name, in the order of the servers
 *           --render-> segment: the candidates of a server that won, as text
 *   view = candidates + one segment a server + the snapshot: the row of segments that clients page
 *
 * A refresh of one server exchanges its candidates and renders its segment; the segment of another
 * is rendered anew only where a candidate of it won or lost by that. So the work is that of one
 * server, however many there are, and the outcome is the one of a view built from scratch.
 *
 * A name offered twice is shown once: the first server in the order of the configuration has it,
 * within a server the first item. The others are counted and logged once.
 *
 * Snapshots that were replaced stay for a while, so that a client pages through one consistent
 * list; they share their segments with what came after. A cursor names its snapshot by what is in
 * it, so that it is good on every loop that sees the same. */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "auth/seal.h"
#include "base/map.h"
#include "catalog/segment.h"

enum {
    CATALOG_MAX_ITEMS = 1000000,
    CATALOG_MAX_BYTES = 1 << 30,
    CATALOG_PAGE_BYTES = 16 << 20,  /* a page that has this much ends, however few its items */
    CATALOG_OLDER = 8,              /* replaced snapshots that are kept … */
    CATALOG_OLDER_BYTES = 64 << 20, /* … with at most this much that nothing newer shows … */
    CATALOG_OLDER_MS = 60000,       /* … for this long */
};

/* A server as the catalog sees it; `listings` are the fetched ones, or NULL before that. */
typedef struct catalog_source {
    upstream *upstream;
    listing *listings[LISTING_KINDS]; /* borrowed: whoever fetches holds them */
    unsigned abilities;               /* the endpoint's own: what the server can */
    unsigned read;                    /* one bit a kind: reading it has ended once, well or not */
    uint64_t fresh_until_ms[LISTING_KINDS]; /* 0: nobody says; UINT64_MAX: without end */
    trust_pins *pins;           /* what its items are held against; borrowed; NULL: nothing */
    const trust_checked *about; /* its instructions held against the pins; NULL: they are not */
    bool
        is_held; /* what is not listed of it cannot be reached, either: it is held against the pins */
} catalog_source;

/* The servers of an endpoint, in the order of the configuration; its views share it. */
typedef struct catalog_servers {
    catalog_source *sources;
    size_t count;
    map by_name;
} catalog_servers;

bay_err catalog_servers_init(catalog_servers *self, const catalog_source *sources,
                             size_t count) BAY_MUST_CHECK;
void catalog_servers_fini(catalog_servers *self);
/* NULL: no server of that name. */
catalog_source *catalog_servers_find(const catalog_servers *self, bay_str server);
/* The server whose name and the separator `name` begins with, and what follows; NULL: none. */
catalog_source *catalog_servers_split(const catalog_servers *self, bay_str separator, bay_str name,
                                      bay_str *out_rest);

typedef struct catalog_options {
    bay_str separator; /* empty: names are shown as they are (an endpoint of one server) */
    bool bare_names;   /* with a separator: the bare name instead where only one server has it */
    const config_profile *profile; /* NULL: everything; read as long as the view lasts */
    uint32_t page_size;            /* lists that fit on one page need not be kept; 0: all are */
    bool is_quiet; /* another view of the same items tells the log what is not shown */
} catalog_options;

typedef struct catalog_part {
    catalog_segment *segment;
    size_t before; /* items of the parts before it */
} catalog_part;

/* What clients see of a view at one moment. */
typedef struct catalog_snapshot {
    uint64_t id; /* a hash of what is in it */
    uint64_t until_ms;
    size_t stale_bytes; /* once replaced: of segments that the next one does not show */
    size_t total;       /* items */
    size_t bytes;       /* of their text */
    size_t count;       /* parts, none of them empty */
    catalog_part parts[];
} catalog_snapshot;

typedef struct catalog_view {
    listing_kind kind;
    catalog_options options;
    const catalog_servers *servers;
    uint64_t part;                /* filter_part of the options' profile */
    struct catalog_place *places; /* one a server */
    size_t place_count;
    map by_full; /* candidates by the name with its server's, the first of each name */
    map by_bare; /* with bare_names: by the name without */
    size_t candidates;
    size_t bytes;
    size_t hidden;                          /* offered twice */
    catalog_snapshot *current;              /* NULL: empty */
    catalog_snapshot *older[CATALOG_OLDER]; /* newest first */
    size_t older_count;
} catalog_view;

/* An empty view. Owns: nothing yet. */
void catalog_view_init(catalog_view *self, listing_kind kind);
void catalog_view_fini(catalog_view *self);

/* The servers or their settings became others. With the same servers in the same order only those
 * that changed are taken up again, else the view is built anew. It borrows the servers; the one
 * before must still be there. A server that would be too much is left out, and the log says so. On
 * failure the view is as it was, or shows some of the changes.
 * Owns: references to the listings. Errors: BAY_ERR_NOMEM. Units: ms. Threads: the endpoint's
 * loop. */
bay_err catalog_view_reset(catalog_view *self, const catalog_servers *servers,
                           const catalog_options *options, uint64_t now_ms) BAY_MUST_CHECK;
/* One server's listing became another: servers->sources[index].listings. On failure the view is as
 * it was. Errors: BAY_ERR_NOMEM; BAY_ERR_LIMIT: too many items in all. */
bay_err catalog_view_refresh(catalog_view *self, size_t index, uint64_t now_ms) BAY_MUST_CHECK;
/* Lets go of snapshots whose time is over. */
void catalog_view_tick(catalog_view *self, uint64_t now_ms);

/* Tells what is shown from what is not; equal on every loop that shows the same. */
uint64_t catalog_view_id(const catalog_view *self);
size_t catalog_view_count(const catalog_view *self);
const catalog_entry *catalog_view_at(const catalog_view *self, size_t index);
/* Does it show anything of that server, or has the server nothing to show? */
bool catalog_view_shows(const catalog_view *self, size_t index);
/* By the name that is shown, and by the full one where the bare one is. */
const catalog_entry *catalog_view_find(const catalog_view *self, bay_str shown);
/* The item as it is shown. `entry` is one of the current entries. */
bay_str catalog_view_text(const catalog_view *self, const catalog_entry *entry);
/* The first template that the URI may be an expansion of. */
const catalog_entry *catalog_view_match(const catalog_view *self, bay_str uri);

/* How cursors are made: sealed for whoever pages, or, where nothing can be sealed, legible. */
typedef struct catalog_cursors {
    const seal_ring *ring; /* may be NULL */
    bay_str bound; /* endpoint and principal: a cursor is good there and for that one alone */
} catalog_cursors;

/* Which entries a page shows; the others are passed over, and say nothing of themselves. */
typedef struct catalog_sight {
    bool (*shows)(void *user, const catalog_entry *entry); /* NULL: all */
    void *user;
} catalog_sight;

/* Writes the members of a list result: the page after `cursor` (missing: from the start) and
 * nextCursor. The cursor of a snapshot that is gone leads to its position in the current one.
 * `is_older`: for a client of the session revisions (older_tools.h). BAY_ERR_INVALID: no cursor of
 * ours. */
bay_err catalog_view_page(const catalog_view *self, const catalog_cursors *cursors, json_val cursor,
                          uint32_t page_size, bool is_older, catalog_sight sight,
                          buf *out) BAY_MUST_CHECK;

#endif
