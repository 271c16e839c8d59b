/* URI references as schemas use them: resolved against a base, without their fragment. */
#ifndef SCHEMA_URI_H
#define SCHEMA_URI_H

#include "base/buf.h"
#include "patchbay/types.h"

/* The text before the first '#', and the text after it. */
bay_str schema_uri_without_fragment(bay_str uri);
bay_str schema_uri_fragment(bay_str uri);

/* Appends `reference` resolved against `base`, without its fragment. `base` may be empty or
 * relative: then the result is, too. Source: RFC 3986 section 5.2, strict. */
void schema_uri_resolve(bay_str base, bay_str reference, buf *out);

/* Appends the fragment with its %XX decoded; false: an escape is invalid. */
bool schema_uri_decode(bay_str fragment, buf *out);

#endif
