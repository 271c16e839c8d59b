/* Listings made of literals, as a fake upstream would have given them. */
#ifndef SUPPORT_FAKE_LISTING_H
#define SUPPORT_FAKE_LISTING_H

#include "support/fake_upstream.h"

#include "catalog/listing.h"

static inline void listing_fetched(void *user, listing_fetch *fetch, bool is_changed)
{
    (void)fetch;
    if (user != NULL) {
        *(int *)user += is_changed ? 1 : 100;
    }
}

/* `items`: the array, quotes as they are. The caller unrefs. */
static inline listing *listing_of(fake *from, listing_kind kind, const char *items)
{
    listing_fetch fetch;
    size_t size = strlen(items) + 64;
    char *text = malloc(size);
    assert_non_null(text);
    (void)snprintf(text, size, "{\"%.*s\":%s}", BAY_STR(listing_result_key(kind)), items);
    listing_fetch_init(&fetch, &from->base, kind, listing_fetched, NULL);
    listing_fetch_start(&fetch, 1000);
    mcp_outcome outcome = {.kind = MCP_OUTCOME_RESULT};
    fake_end(from, fake_take(from), &outcome, text, false);
    free(text);
    assert_non_null(fetch.current);
    listing *made = listing_ref(fetch.current);
    listing_fetch_fini(&fetch);
    return made;
}

#endif
