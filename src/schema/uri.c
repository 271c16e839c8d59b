/* RFC 3986's algorithm for resolving a reference, on text: only the dots of the path are
 * normalised, so two URIs are the same if their bytes are. */
#include "schema/uri.h"

#include "base/str.h"

typedef struct parts {
    bool has_scheme, has_authority, has_query;
    bay_str scheme, authority, path, query;
} parts;

bay_str schema_uri_without_fragment(bay_str uri)
{
    return str_head(uri, str_find(uri, '#'));
}

bay_str schema_uri_fragment(bay_str uri)
{
    return str_from(uri, str_find(uri, '#') + 1);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The length of the scheme before a ':', or 0. */
static size_t scheme_len(bay_str uri)
{
    if (uri.len == 0 || !is_letter(uri.at[0])) {
        return 0;
    }
    for (size_t i = 1; i < uri.len; i++) {
        char c = uri.at[i];
        if (c == ':') {
            return i;
        }
        if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '+' && c != '-' && c != '.') {
            return 0;
        }
    }
    return 0;
}

static parts split(bay_str uri)
{
    parts self = {0};
    uri = schema_uri_without_fragment(uri);
    size_t len = scheme_len(uri);
    if (len > 0) {
        self.has_scheme = true;
        self.scheme = str_head(uri, len);
        uri = str_from(uri, len + 1);
    }
    if (str_starts(uri, STR("//"))) {
        uri = str_from(uri, 2);
        size_t end = 0;
        while (end < uri.len && uri.at[end] != '/' && uri.at[end] != '?') {
            end++;
        }
        self.has_authority = true;
        self.authority = str_head(uri, end);
        uri = str_from(uri, end);
    }
    size_t query = str_find(uri, '?');
    self.has_query = query < uri.len;
    self.path = str_head(uri, query);
    self.query = str_from(uri, query + 1);
    return self;
}

/* Drops the last segment of what was appended to `out` after `start`, with its slash. */
static void drop_segment(buf *out, size_t start)
{
    while (out->len > start && out->at[out->len - 1] != '/') {
        out->len--;
    }
    if (out->len > start) {
        out->len--;
    }
}

/* RFC 3986 5.2.4 */
static void put_without_dots(bay_str path, buf *out)
{
    size_t start = out->len;
    while (path.len > 0 && out->err == BAY_OK) {
        if (str_starts(path, STR("../"))) {
            path = str_from(path, 3);
        } else if (str_starts(path, STR("./")) || str_starts(path, STR("/./"))) {
            path = str_from(path, 2);
        } else if (str_eq(path, STR("/."))) {
            path = STR("/");
        } else if (str_starts(path, STR("/../")) || str_eq(path, STR("/.."))) {
            path = path.len == 3 ? STR("/") : str_from(path, 3);
            drop_segment(out, start);
        } else if (str_eq(path, STR(".")) || str_eq(path, STR(".."))) {
            path = str_from(path, path.len);
        } else {
            size_t len = 1 + str_find(str_from(path, 1), '/');
            buf_str(out, str_head(path, len));
            path = str_from(path, len);
        }
    }
}

/* RFC 3986 5.2.3 */
static void put_merged(const parts *base, bay_str path, buf *out)
{
    buf merged;
    buf_init(&merged, out->max);
    size_t slash = str_find_last(base->path, '/');
    if (base->has_authority && base->path.len == 0) {
        buf_char(&merged, '/');
    } else if (slash < base->path.len) {
        buf_str(&merged, str_head(base->path, slash + 1));
    }
    buf_str(&merged, path);
    put_without_dots(buf_view(&merged), out);
    if (merged.err != BAY_OK && out->err == BAY_OK) {
        out->err = merged.err;
    }
    buf_fini(&merged);
}

void schema_uri_resolve(bay_str base, bay_str reference, buf *out)
{
    parts from = split(base);
    parts to = split(reference);
    bool is_own = to.has_scheme || to.has_authority;
    const parts *scheme = to.has_scheme ? &to : &from;
    const parts *authority = is_own ? &to : &from;
    if (scheme->has_scheme) {
        buf_str(out, scheme->scheme);
        buf_char(out, ':');
    }
    if (authority->has_authority) {
        buf_lit(out, "//");
        buf_str(out, authority->authority);
    }
    bool keeps_path = !is_own && to.path.len == 0;
    if (keeps_path) {
        buf_str(out, from.path);
    } else if (is_own || to.path.at[0] == '/') {
        put_without_dots(to.path, out);
    } else {
        put_merged(&from, to.path, out);
    }
    const parts *query = keeps_path && !to.has_query ? &from : &to;
    if (query->has_query) {
        buf_char(out, '?');
        buf_str(out, query->query);
    }
}

static int hex(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool schema_uri_decode(bay_str fragment, buf *out)
{
    for (size_t i = 0; i < fragment.len; i++) {
        if (fragment.at[i] != '%') {
            buf_char(out, fragment.at[i]);
            continue;
        }
        if (i + 2 >= fragment.len || hex(fragment.at[i + 1]) < 0 || hex(fragment.at[i + 2]) < 0) {
            return false;
        }
        buf_char(out, (char)(hex(fragment.at[i + 1]) * 16 + hex(fragment.at[i + 2])));
        i += 2;
    }
    return true;
}
