/* URIs as a server reads them. A file behind "%73ecret", "a/../secret" or "file://localhost/secret"
 * is the same as behind "secret": what is hidden by one spelling must not be read by another. */
#ifndef WIRE_URI_PLAIN_H
#define WIRE_URI_PLAIN_H

#include "base/buf.h"

/* Appends the URI with percent-encoding undone, without dot segments and fragment, a file as
 * "file:///…". Errors stick in `out`. */
void uri_plain(buf *out, bay_str text);
/* A glob over URIs in the same form; its stars and question marks stay what they are. */
void uri_plain_pattern(buf *out, bay_str pattern);

#endif
