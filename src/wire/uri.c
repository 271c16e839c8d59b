/* URIs by the grammar of RFC 3986, without any repair. */
#include "wire/uri.h"

#include <arpa/inet.h>

#include "base/str.h"
#include "wire/chars.h"

static bool is_ipv6(bay_str text)
{
    char copy[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (text.len == 0 || text.len >= sizeof(copy) || memchr(text.at, '\0', text.len) != NULL) {
        return false;
    }
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    return inet_pton(AF_INET6, copy, &address) == 1;
}

static bool has_only(bay_str text, unsigned classes, char also, char also_too)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (!char_is(c, classes) && c != also && c != also_too) {
            return false;
        }
    }
    return chars_escapes_are_whole(text);
}

static bay_err parse_port(uri *out, bay_str text)
{
    uint64_t port = 0;
    if (text.len == 0) {
        return BAY_OK; /* RFC 3986 section 3.2.3: the port may be empty */
    }
    if (!chars_are(text, CHAR_DIGIT)) {
        return BAY_ERR_SYNTAX;
    }
    if (!str_uint(text, &port) || port == 0 || port > UINT16_MAX) {
        return BAY_ERR_RANGE;
    }
    out->port = (uint16_t)port;
    return BAY_OK;
}

bay_err uri_authority_parse(uri *out, bay_str text)
{
    size_t sign = str_find(text, '@');
    out->authority = text;
    out->has_userinfo = sign < text.len;
    out->userinfo = (bay_str){NULL, 0};
    out->port = 0;
    if (out->has_userinfo) {
        out->userinfo = str_head(text, sign);
        text = str_from(text, sign + 1);
        if (!has_only(out->userinfo, CHAR_REG_NAME, ':', '%')) {
            return BAY_ERR_SYNTAX;
        }
    }
    out->is_ip_literal = text.len > 0 && text.at[0] == '[';
    size_t end;
    if (out->is_ip_literal) {
        end = str_find(text, ']');
        if (end == text.len) {
            return BAY_ERR_SYNTAX;
        }
        out->host = (bay_str){text.at + 1, end - 1};
        end++;
    } else {
        end = str_find(text, ':');
        out->host = str_head(text, end);
    }
    if (out->is_ip_literal ? !is_ipv6(out->host) : !has_only(out->host, CHAR_REG_NAME, '%', '%')) {
        return BAY_ERR_SYNTAX;
    }
    if (end == text.len) {
        return BAY_OK;
    }
    return text.at[end] == ':' ? parse_port(out, str_from(text, end + 1)) : BAY_ERR_SYNTAX;
}

static bool scheme_is_valid(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool is_later = char_is(c, CHAR_DIGIT) || c == '+' || c == '-' || c == '.';
        if (!char_is(c, CHAR_ALPHA) && (i == 0 || !is_later)) {
            return false;
        }
    }
    return text.len > 0;
}

/* The length of the scheme, or text.len without one. A colon in the first segment that ends no
 * scheme is an error: RFC 3986 section 4.2. */
static bay_err find_scheme(bay_str text, size_t *out_len)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '/' || c == '?' || c == '#') {
            break;
        }
        if (c == ':') {
            *out_len = i;
            return scheme_is_valid(str_head(text, i)) ? BAY_OK : BAY_ERR_SYNTAX;
        }
    }
    *out_len = text.len;
    return BAY_OK;
}

bay_err uri_parse(uri *out, bay_str text)
{
    uri parts = {.path = text};
    size_t scheme;
    bay_err err = find_scheme(text, &scheme);
    if (err != BAY_OK) {
        return err;
    }
    if (scheme < text.len) {
        parts.scheme = str_head(text, scheme);
        text = str_from(text, scheme + 1);
    }
    size_t mark = str_find(text, '#');
    parts.has_fragment = mark < text.len;
    parts.fragment = str_from(text, mark + 1);
    text = str_head(text, mark);
    mark = str_find(text, '?');
    parts.has_query = mark < text.len;
    parts.query = str_from(text, mark + 1);
    text = str_head(text, mark);
    if (str_starts(text, STR("//"))) {
        text = str_from(text, 2);
        size_t end = str_find(text, '/');
        parts.has_authority = true;
        err = uri_authority_parse(&parts, str_head(text, end));
        if (err != BAY_OK) {
            return err;
        }
        text = str_from(text, end);
    }
    parts.path = text;
    if (!has_only(parts.path, CHAR_PATH, '/', '/') || !has_only(parts.query, CHAR_PATH, '/', '/') ||
        !has_only(parts.fragment, CHAR_PATH, '/', '/')) {
        return BAY_ERR_SYNTAX;
    }
    *out = parts;
    return BAY_OK;
}

uint16_t uri_port(const uri *self)
{
    if (self->port != 0) {
        return self->port;
    }
    if (str_eq_nocase(self->scheme, STR("https")) || str_eq_nocase(self->scheme, STR("wss"))) {
        return 443;
    }
    bool is_http =
        str_eq_nocase(self->scheme, STR("http")) || str_eq_nocase(self->scheme, STR("ws"));
    return is_http ? 80 : 0;
}

bool uri_same_origin(const uri *a, const uri *b)
{
    return a->has_authority && b->has_authority && a->is_ip_literal == b->is_ip_literal &&
           a->host.len > 0 && str_eq_nocase(a->scheme, b->scheme) &&
           str_eq_nocase(a->host, b->host) && uri_port(a) == uri_port(b);
}

/* The length up to the last '/' of what was written. */
static size_t pop_segment(const char *path, size_t len)
{
    while (len > 0) {
        len--;
        if (path[len] == '/') {
            break;
        }
    }
    return len;
}

/* RFC 3986 section 5.2.4, in place; returns the new length. */
static size_t remove_dot_segments(char *path, size_t len)
{
    size_t to = 0;
    bay_str rest = {path, len};
    while (rest.len > 0) {
        if (str_starts(rest, STR("../"))) {
            rest = str_from(rest, 3);
        } else if (str_starts(rest, STR("./"))) {
            rest = str_from(rest, 2);
        } else if (str_starts(rest, STR("/./"))) {
            rest = str_from(rest, 2);
        } else if (str_eq(rest, STR("/."))) {
            rest = STR("/");
        } else if (str_starts(rest, STR("/../"))) {
            rest = str_from(rest, 3);
            to = pop_segment(path, to);
        } else if (str_eq(rest, STR("/.."))) {
            rest = STR("/");
            to = pop_segment(path, to);
        } else if (str_eq(rest, STR(".")) || str_eq(rest, STR(".."))) {
            break;
        } else {
            size_t end = 1 + str_find(str_from(rest, 1), '/');
            memmove(path + to, rest.at, end);
            to += end;
            rest = str_from(rest, end);
        }
    }
    return to;
}

static void write_path(buf *out, const uri *base, const uri *reference)
{
    size_t start = out->len;
    bool is_absolute = reference->path.len > 0 && reference->path.at[0] == '/';
    if (reference->scheme.len == 0 && !reference->has_authority && !is_absolute) {
        if (base->has_authority && base->path.len == 0) {
            buf_char(out, '/');
        }
        size_t slash = str_find_last(base->path, '/');
        buf_str(out, str_head(base->path, slash < base->path.len ? slash + 1 : 0));
    }
    buf_str(out, reference->path);
    if (out->err == BAY_OK && out->len > start) {
        out->len = start + remove_dot_segments(out->at + start, out->len - start);
    }
}

/* RFC 3986 sections 5.2.2 and 5.3. */
static void write_resolved(buf *out, const uri *base, const uri *reference)
{
    bool is_own = reference->scheme.len > 0;
    const uri *authority = is_own || reference->has_authority ? reference : base;
    const uri *query = reference;
    buf_str(out, is_own ? reference->scheme : base->scheme);
    buf_char(out, ':');
    if (authority->has_authority) {
        buf_lit(out, "//");
        buf_str(out, authority->authority);
    }
    if (authority == base && reference->path.len == 0) {
        buf_str(out, base->path);
        query = reference->has_query ? reference : base;
    } else {
        write_path(out, base, reference);
    }
    if (query->has_query) {
        buf_char(out, '?');
        buf_str(out, query->query);
    }
    if (reference->has_fragment) {
        buf_char(out, '#');
        buf_str(out, reference->fragment);
    }
}

bay_err uri_resolve(buf *out, bay_str base, bay_str reference, bool *out_is_same_origin)
{
    uri base_parts;
    uri parts;
    bay_err err = uri_parse(&base_parts, base);
    if (err == BAY_OK) {
        err = uri_parse(&parts, reference);
    }
    if (err != BAY_OK || base_parts.scheme.len == 0) {
        return err != BAY_OK ? err : BAY_ERR_SYNTAX;
    }
    size_t start = out->len;
    write_resolved(out, &base_parts, &parts);
    err = out->err;
    uri result;
    if (err == BAY_OK) {
        err = uri_parse(&result, str_from(buf_view(out), start));
    }
    bool should_have = parts.scheme.len > 0 ? parts.has_authority
                                            : parts.has_authority || base_parts.has_authority;
    if (err == BAY_OK && result.has_authority != should_have) {
        err = BAY_ERR_SYNTAX; /* removing dots made a path begin with "//", like an authority */
    }
    if (err != BAY_OK) {
        out->len = start;
        return err;
    }
    if (out_is_same_origin != NULL) {
        *out_is_same_origin = uri_same_origin(&base_parts, &result);
    }
    return BAY_OK;
}

void uri_encode(buf *out, bay_str text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (char_is(text.at[i], CHAR_UNRESERVED)) {
            buf_char(out, text.at[i]);
        } else {
            buf_append(out, (char[]){'%', digits[c >> 4], digits[c & 15]}, 3);
        }
    }
}

bay_err uri_decode(buf *out, bay_str text)
{
    if (!chars_escapes_are_whole(text)) {
        return BAY_ERR_SYNTAX;
    }
    size_t start = out->len;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '%') {
            c = (char)(char_hex(text.at[i + 1]) << 4 | char_hex(text.at[i + 2]));
            i += 2;
        }
        buf_char(out, c);
    }
    if (out->err != BAY_OK) {
        out->len = start;
    }
    return out->err;
}
