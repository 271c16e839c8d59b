/* Who may name this server: Host and Origin against what is allowed, and CORS preflight. */
#ifndef FRONT_ORIGIN_CHECK_H
#define FRONT_ORIGIN_CHECK_H

#include "front/listen_address.h"
#include "http/http_server.h"

/* Lists of one front; the configuration bounds them before. */
enum { TEXTS_MAX_BYTES = 16 << 20 };

typedef struct http_origin_check {
    const bay_str *hosts;
    size_t host_count;
    const bay_str *origins;
    size_t origin_count;
    bool is_loopback;
    const listen_names *names; /* what else is loopback; NULL: nothing; borrowed */
    /* The Host that was let through last: clients name the same one all day. */
    char passed[64];
    size_t passed_len;
} http_origin_check;

/* A guard with copies of the lists of `from`, in `memory`. BAY_ERR_NOMEM. */
bay_err http_origin_check_copy(http_origin_check *self, const http_origin_check *from,
                               arena *memory) BAY_MUST_CHECK;

/* What a request says of where it comes from. Views live as long as the exchange. */
typedef struct http_origin_check_fields {
    bay_str host;   /* what it asks for */
    bay_str origin; /* the last of `origin_count` */
    size_t origin_count;
    bool has_via;
} http_origin_check_fields;

void http_origin_check_fields_read(const http_exchange *exchange, http_origin_check_fields *out);

/* NULL: the request may go on. Else why not, in words for a person (static).
 * Threads: any. Source: mcp 2026-07-28 basic/transports/streamable-http, Security Warning: Origin
 * must be validated. */
const char *http_origin_check_refusal(http_origin_check *self,
                                      const http_origin_check_fields *fields);

/* What pages of an allowed origin may send to a path. */
typedef struct http_cors {
    bay_str verbs;
    bay_str fields; /* always allowed, in lower case */
    /* Beginning of further names ("mcp-param-"), which cannot be listed beforehand; "": any name.
     * Of these the ones that a preflight asks for are allowed. */
    bay_str further;
} http_cors;

/* Answers OPTIONS for a path of ours; the guard has let it through.
 * Source: the Fetch standard, CORS protocol. */
void http_origin_check_preflight(http_exchange *exchange, const http_cors *cors);

#endif
