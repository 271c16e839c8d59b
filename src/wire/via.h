/* The Via field: the gateways that a request came through. A gateway that finds its own name there
 * has received its own request. Pure; any text of peers is read within limits. Source: RFC 9110
 * section 7.6.3. */
#ifndef WIRE_VIA_H
#define WIRE_VIA_H

#include "base/buf.h"

enum {
    VIA_ENTRIES = 10, /* gateways and proxies between a client and this process */
    VIA_BYTES = 2048, /* of all their entries */
};

typedef enum via_verdict { VIA_FINE, VIA_LOOP, VIA_TOO_LONG } via_verdict;

/* What was read of a request's Via fields; zeroed at first. */
typedef struct via_seen {
    size_t entries;
    size_t bytes;
} via_seen;

/* Reads one field's value. VIA_LOOP: an entry is `name`'s (a pseudonym; case ignored). A malformed
 * entry names no gateway, but counts. */
via_verdict via_read(via_seen *seen, bay_str value, bay_str name);

/* Whether it may be forwarded: plain, not empty, at most VIA_BYTES. */
bool via_is_fine(bay_str value);

/* Appends the forwarded value: the received one, followed by an entry for `name`. Errors stick in
 * `out`. */
void via_write(buf *out, bay_str received, bay_str name);

#endif
