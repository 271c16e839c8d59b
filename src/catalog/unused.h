/* What the configuration says of names that a server does not have: most often one that is spelt
 * wrongly. */
#ifndef CATALOG_UNUSED_H
#define CATALOG_UNUSED_H

#include "catalog/listing.h"

enum {
    UNUSED_SHOWN = 5,           /* named; the others are counted */
    UNUSED_MOST_LOOKS = 1000000 /* entries by items; above it nothing is looked for */
};

/* Appends `expose.tools "git_lgo", policy.rules.2.deny "git.dif"` and the like; nothing where each
 * entry matches something. Of rules and profiles, those patterns of tools and prompts count that
 * begin with the server's name, written out. `listings`: what the server offers; NULL: nothing of the kind. Returns how many match
 * nothing. */
size_t unused_find(const config *settings, const config_server *server,
                   listing *const listings[LISTING_KINDS], buf *out);

#endif
