/* What the configuration says of single tools, prompts and resources: whether they are shown, under
 * which name, with which description. Patterns are globs (str_glob). */
#ifndef CATALOG_FILTER_H
#define CATALOG_FILTER_H

#include "catalog/listing.h"

/* Does a pattern match the URI when both are read so? `otherwise`: the answer when there is no
 * memory to tell, or it is too long. */
bool filter_uri_matches(const config_list *globs, bay_str text, bool otherwise);

/* By the server's own name, URI or template. */
bool filter_exposes(const config_server *server, listing_kind kind, bay_str key);
/* The same as far as it is about being hidden by name: for URIs that a template admitted. */
bool filter_hides(const config_server *server, listing_kind kind, bay_str key);
/* The name to show for the server's own; the same where none is given. */
bay_str filter_rename(const config_server *server, listing_kind kind, bay_str key);
/* The other way round; false when the server shows nothing by that name. */
bool filter_own_name(const config_server *server, listing_kind kind, bay_str shown, bay_str *out);
/* `at` NULL: the server's own stays. */
bay_str filter_description(const config_server *server, listing_kind kind, bay_str key);

/* `profile` may be NULL: everything. `shown`: with the server's name before it, or a URI. */
bool filter_admits(const config_profile *profile, listing_kind kind, bay_str shown);
bool filter_has_server(const config_profile *profile, bay_str server);

/* Whether an endpoint of that profile shows a server's item: lists are filtered and names are
 * looked up by this one function, so what is not listed cannot be called. `own` as the server names
 * it. */
bool filter_shows(const config_profile *profile, const config_server *server, listing_kind kind,
                  bay_str own, bay_str shown);

/* Numbers that differ where the functions above may answer otherwise: for a reload that looks for
 * what has changed. */
uint64_t filter_rules(const config_server *server);
uint64_t filter_part(const config_profile *profile);

#endif
