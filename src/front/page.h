/* Pages for people: HTML without scripts, in the style of the console, and the cookies of the
 * browsers that show them. A page cannot be framed, loads nothing, is not stored and sends its
 * Referer to nobody else; what comes from elsewhere is escaped, and hidden characters of it are shown.
 *
 * Cookies are for this host alone. Over https their names begin with `__Host-`, so that no other
 * host and no path can set one; over http, which is for loopback addresses, a name has the port, so
 * that two programs of one machine keep their own.
 *
 * For the whole header: Threads: any. Source: RFC 6265bis sections 4.1.3.2 and 5.2; CSP level 3. */
#ifndef FRONT_PAGE_H
#define FRONT_PAGE_H

#include "base/buf.h"
#include "http/http_server.h"

enum {
    PAGE_BYTES = 64 << 10,    /* of one page */
    PAGE_FIELDS = 4,          /* of a reply, besides its own */
    PAGE_COOKIE_BYTES = 3800, /* of one cookie's value: browsers take 4,096 with its name */
    PAGE_COOKIE_NAME_BYTES = 64,
    PAGE_COOKIE_FIELD_BYTES = PAGE_COOKIE_BYTES + 256, /* of one Set-Cookie */
};

/* Appends `text` so that it is only text, in an element or between quotes. */
void page_text(buf *out, bay_str text);

/* Replies with a page: `body` is HTML, `title` is text. `leads_away`: a form of it may end at
 * another host (Chromium counts redirects behind a form, too); else forms are for this host. */
typedef struct page_spec {
    int status;
    bay_str title;
    bay_str body;
    bool leads_away;
    const http_field *fields; /* besides; borrowed for the call, like the rest */
    size_t field_count;       /* PAGE_FIELDS at most */
} page_spec;
void page_reply(http_exchange *exchange, const page_spec *spec);
/* A page of one sentence, with a link (a path of `base`; "": none). All are text. */
void page_say(http_exchange *exchange, int status, bay_str title, bay_str sentence, bay_str link,
              bay_str link_text);
/* 303 See Other, which turns a form into GET. */
void page_lead(http_exchange *exchange, bay_str url, const http_field *fields, size_t count);

/* ---- cookies --------------------------------------------------------------------------------- */

/* Writes the name of a cookie at that address ("https://tools.example"); "" if it is too long. */
bay_str page_cookie_name(bay_str base, const char *name, char out[PAGE_COOKIE_NAME_BYTES]);
/* The value of the request's cookie of that name; "" without, and if there are two: another program
 * may have set one of them. */
bay_str page_cookie(const http_exchange *exchange, bay_str name);
/* Appends the value of Set-Cookie; `value` empty: it is removed. `max_age_s` 0: with the browser's
 * session. */
void page_cookie_write(buf *out, bay_str base, bay_str name, bay_str value, uint64_t max_age_s);

#endif
