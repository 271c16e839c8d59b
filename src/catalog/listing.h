/* What one server offers, fetched whole: every page of its tools, resources, templates and prompts.
 * A listing is immutable and counted (by one loop); a new fetch makes a new one.
 *
 * The fetch is bounded in pages, items and bytes. */
#ifndef CATALOG_LISTING_H
#define CATALOG_LISTING_H

#include "trust/pins.h"
#include "upstream/upstream.h"

typedef enum listing_kind {
    LISTING_TOOLS,
    LISTING_RESOURCES,
    LISTING_TEMPLATES,
    LISTING_PROMPTS,
    LISTING_KINDS
} listing_kind;

enum {
    LISTING_MAX_PAGES = 1000,
    LISTING_MAX_ITEMS = 100000,
    LISTING_MAX_BYTES = 256 << 20,
    LISTING_NAME_BYTES = 1024, /* of a tool or prompt; the catalog may double the work of each */
    LISTING_URI_BYTES = 8192,
    LISTING_COMPLAINTS = 5, /* logged of one fetch; the others are counted */
};

/* What a tool says of being called as a task (execution.taskSupport, 2025-11-25). */
typedef enum listing_tasks {
    LISTING_TASKS_FORBIDDEN, /* or it says nothing */
    LISTING_TASKS_OPTIONAL,
    LISTING_TASKS_REQUIRED,
} listing_tasks;

typedef struct listing_item {
    bay_str key;            /* decoded name, URI or template */
    json_val sent;          /* as the server sent it: what is pinned, scanned and graded */
    json_val value;         /* the item, without icons that nobody may show */
    json_val key_val;       /* where it stands in the item's bytes */
    bay_str raw;            /* the item, byte for byte */
    mcp_param_table params; /* tools: the header fields that mirror arguments */
    listing_tasks tasks;    /* tools */
    bool gains_tasks;       /* it says nothing of tasks, but its server has the extension: clients
                               of 2025-11-25 are told that it may be one */
    bool is_repeatable;     /* tools: a second execution does no harm, says the server */
    trust_checked checked;  /* against the pins: what does not pass is not shown */
} listing_item;

/* Does the item pass just now? It may pass later, or no longer. */
static inline bool listing_item_passes(const listing_item *self)
{
    return trust_checked_admits(&self->checked);
}

typedef struct listing {
    unsigned references;
    arena memory;
    listing_item *items;
    size_t count;
    size_t cap;
    size_t free_outputs; /* tools whose outputSchema is of no object, as 2026-07-28 allows */
} listing;

listing *listing_ref(listing *self);
void listing_unref(listing *self); /* NULL is fine */
/* Do clients see the same? NULL equals nothing. */
bool listing_equal(const listing *a, const listing *b);
/* The member of the result that holds the items. */
bay_str listing_result_key(listing_kind kind);

/* Items that have not been held against the pins are now. `server`: whose they are. */
void listing_check(listing *self, listing_kind kind, trust_pins *pins, bay_str server,
                   uint64_t now_ms);

/* What clients are told when such a list changes. */
mcp_change listing_change(listing_kind kind);

/* Fetches all pages of one kind. A server whose capabilities do not name it has none. One at a
 * time; a demand while one is under way makes it start over when it ends. A list that does not end
 * is cut where it becomes too long or where its cursors turn in a circle. */
typedef struct listing_fetch {
    upstream *upstream;
    listing_kind kind;
    upstream_call call;
    listing *next;       /* being filled */
    listing *current;    /* the last complete one, or NULL */
    arena params_memory; /* {"cursor":…} */
    unsigned pages;
    uint64_t *cursors; /* hashes of those there have been: one that comes again leads nowhere new */
    size_t left_out;   /* items that cannot be shown */
    uint32_t ttl_ms;   /* the least that a page of the last fetch said; 0: nothing */
    char *failure;     /* what the log was told of the last fetch; NULL: it was good */
    bool is_good;      /* the last fetch ended well */
    bool is_under_way;
    bool is_stale;     /* asked for again meanwhile */
    bool is_announced; /* the server told of a change, and no reading has begun since */
    trust_pins *pins;  /* borrowed; NULL: items are held against nothing */
    uint64_t (*now_ms)(void *user); /* with pins */
    bool answers; /* the last reading that began: it began after the server told of a change */
    /* After every end, good or bad; is_changed: `current` is a new one. */
    void (*done)(void *user, struct listing_fetch *self, bool is_changed);
    void *user;
} listing_fetch;

void listing_fetch_init(listing_fetch *self, upstream *from, listing_kind kind,
                        void (*done)(void *user, listing_fetch *self, bool is_changed), void *user);
void listing_fetch_fini(listing_fetch *self);
void listing_fetch_start(listing_fetch *self, uint32_t timeout_ms);
/* The server told of a change: the next reading that begins answers that. */
void listing_fetch_announced(listing_fetch *self);

#endif
