/* Reading and writing header values. */
#include "wire/header.h"

#include <arpa/inet.h>

#include "base/str.h"
#include "wire/base64.h"
#include "wire/chars.h"
#include "wire/uri.h"

#define SENTINEL_BEGIN STR("=?base64?")
#define SENTINEL_END STR("?=")

bool header_name_is_valid(bay_str name)
{
    return name.len > 0 && chars_are(name, CHAR_TOKEN);
}

bool header_is_token68(bay_str text)
{
    size_t len = text.len;
    while (len > 0 && text.at[len - 1] == '=') {
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        if (!char_is(text.at[i], CHAR_UNRESERVED) && text.at[i] != '+' && text.at[i] != '/') {
            return false;
        }
    }
    return len > 0;
}

bool header_value_is_plain(bay_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        if (c != '\t' && (c < ' ' || c > '~')) {
            return false;
        }
    }
    return true;
}

/* mcp 2026-07-28 basic/transports/streamable-http: a plain value that matches the sentinel pattern
 * must be encoded too. */
static bool looks_encoded(bay_str text)
{
    return str_starts(text, SENTINEL_BEGIN) && str_ends(text, SENTINEL_END);
}

void header_value_encode(buf *out, bay_str text)
{
    if (header_value_is_plain(text) && str_trim(text).len == text.len && !looks_encoded(text)) {
        buf_str(out, text);
        return;
    }
    buf_str(out, SENTINEL_BEGIN);
    base64_encode(out, text, BASE64_STANDARD);
    buf_str(out, SENTINEL_END);
}

/* The length of the UTF-8 sequence at the front; 0: none. RFC 3629. */
static size_t utf8_len(const unsigned char *at, size_t left)
{
    unsigned char first = at[0];
    if (first < 0x80) {
        return 1;
    }
    size_t len = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || len > left) {
        return 0;
    }
    unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < low || at[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < len; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return len;
}

static bool is_utf8(bay_str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t len = utf8_len((const unsigned char *)text.at + i, text.len - i);
        if (len == 0) {
            return false;
        }
        i += len;
    }
    return true;
}

bay_err header_value_decode(buf *out, bay_str value)
{
    size_t around = SENTINEL_BEGIN.len + SENTINEL_END.len;
    if (value.len < around || !looks_encoded(value)) {
        if (!header_value_is_plain(value)) {
            return BAY_ERR_SYNTAX;
        }
        buf_str(out, value);
        return out->err;
    }
    size_t start = out->len;
    bay_str text = {value.at + SENTINEL_BEGIN.len, value.len - around};
    bay_err err = base64_decode(out, text, BASE64_STANDARD);
    if (err == BAY_OK && !is_utf8(str_from(buf_view(out), start))) {
        err = BAY_ERR_UTF8;
    }
    if (err != BAY_OK) {
        out->len = start;
    }
    return err;
}

/* Removes the text up to `separator` from the front of `rest`; ignores separators inside quotes. */
static bay_str cut(bay_str *rest, char separator)
{
    bool is_quoted = false;
    size_t end = 0;
    for (; end < rest->len; end++) {
        char c = rest->at[end];
        if (is_quoted && c == '\\') {
            end += end + 1 < rest->len;
        } else if (c == '"') {
            is_quoted = !is_quoted;
        } else if (!is_quoted && c == separator) {
            break;
        }
    }
    bay_str piece = str_head(*rest, end);
    *rest = str_from(*rest, end + 1);
    return str_trim(piece);
}

bool header_content_type_is(bay_str value, bay_str type)
{
    if (str_eq(value, type)) {
        return true;
    }
    value = str_trim(value);
    bay_str behind = str_trim(str_from(value, type.len));
    return str_eq_nocase(str_head(value, type.len), type) &&
           (behind.len == 0 || behind.at[0] == ';');
}

bool header_content_type_may_be_json(bay_str value)
{
    static const bay_str types[] = {STR_INIT("application/json"), STR_INIT("text/json"),
                                    STR_INIT("text/plain"), STR_INIT("application/octet-stream")};
    static const bay_str suffix = STR_INIT("+json");
    bool is_one = str_find(value, ',') == value.len;
    bay_str type = cut(&value, ';');
    bool is_known = type.len == 0 || (type.len > suffix.len &&
                                      str_eq_nocase(str_from(type, type.len - suffix.len), suffix));
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        is_known = is_known || str_eq_nocase(type, types[i]);
    }
    return is_one && is_known;
}

/* W3C Trace Context section 3.3.1.3: simple-key, or tenant@system. */
static bool is_tracestate_key(bay_str key)
{
    enum { KEY_BYTES = 256 };
    size_t ats = 0;
    for (size_t i = 0; i < key.len; i++) {
        char c = key.at[i];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool is_inner = c == '_' || c == '-' || c == '*' || c == '/';
        bool is_first = i == 0 || key.at[i - 1] == '@';
        ats += c == '@';
        if (!is_word && (is_first || (!is_inner && c != '@'))) {
            return false;
        }
    }
    return key.len > 0 && key.len <= KEY_BYTES && ats <= 1 && key.at[key.len - 1] != '@';
}

static bool is_tracestate_value(bay_str value)
{
    enum { VALUE_BYTES = 256 };
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        if (c < ' ' || c > '~' || c == '=') {
            return false;
        }
    }
    return value.len > 0 && value.len <= VALUE_BYTES;
}

bool header_tracestate_is_valid(bay_str value)
{
    enum { MEMBERS = 32 };
    size_t members = 0;
    if (value.len > HEADER_TRACESTATE_BYTES) {
        return false;
    }
    while (value.len > 0) {
        size_t end = str_find(value, ',');
        bay_str member = str_trim(str_head(value, end));
        size_t sign = str_find(member, '=');
        if (member.len > 0 && (!is_tracestate_key(str_head(member, sign)) ||
                               !is_tracestate_value(str_from(member, sign + 1)))) {
            return false;
        }
        members += member.len > 0;
        value = str_from(value, end + 1);
    }
    return members > 0 && members <= MEMBERS;
}

/* RFC 9110 section 12.4.2: 0 to 1 with up to three decimals. */
static bool weight_is_valid(bay_str text)
{
    if (text.len == 0 || text.len > 5 || (text.at[0] != '0' && text.at[0] != '1')) {
        return false;
    }
    if (text.len > 1 && text.at[1] != '.') {
        return false;
    }
    for (size_t i = 2; i < text.len; i++) {
        if (!char_is(text.at[i], CHAR_DIGIT) || (text.at[0] == '1' && text.at[i] != '0')) {
            return false;
        }
    }
    return true;
}

static bool weight_is_zero(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] != '0' && text.at[i] != '.') {
            return false;
        }
    }
    return true;
}

/* How specifically a media range names the type: 3 in full, 2 by its first half, 1 by * / *, 0 not
 * at all. */
static int range_rank(bay_str range, bay_str type)
{
    if (str_eq_nocase(range, type)) {
        return 3;
    }
    if (str_eq(range, STR("*/*"))) {
        return 1;
    }
    size_t slash = str_find(type, '/');
    bool is_half = range.len == slash + 2 && str_ends(range, STR("/*")) &&
                   str_eq_nocase(str_head(range, slash), str_head(type, slash));
    return is_half ? 2 : 0;
}

/* Reads the parameters of one range; false: malformed weight. */
static bool read_weight(bay_str parameters, bool *out_is_admitted)
{
    *out_is_admitted = true;
    while (parameters.len > 0) {
        bay_str parameter = cut(&parameters, ';');
        if (parameter.len < 2 || char_lower(parameter.at[0]) != 'q' || parameter.at[1] != '=') {
            continue;
        }
        bay_str weight = str_from(parameter, 2);
        if (!weight_is_valid(weight)) {
            return false;
        }
        *out_is_admitted = !weight_is_zero(weight);
    }
    return true;
}

static bool accepts(bay_str value, bay_str type, int least_rank)
{
    int best = 0;
    bool is_admitted = false;
    while (value.len > 0) {
        bay_str parameters = cut(&value, ',');
        int rank = range_rank(cut(&parameters, ';'), type);
        bool admits;
        if (rank < least_rank || rank < best || !read_weight(parameters, &admits)) {
            continue;
        }
        is_admitted = rank > best ? admits : is_admitted || admits;
        best = rank;
    }
    return is_admitted;
}

bool header_accepts(bay_str value, bay_str type)
{
    return accepts(value, type, 1);
}

bool header_accepts_named(bay_str value, bay_str type)
{
    return accepts(value, type, 3);
}

bay_err header_host_split(bay_str value, bay_str *out_host, uint16_t *out_port)
{
    uri parts;
    if (uri_authority_parse(&parts, value) != BAY_OK || parts.host.len == 0 || parts.has_userinfo) {
        return BAY_ERR_SYNTAX;
    }
    if (str_find(parts.host, ',') < parts.host.len) {
        return BAY_ERR_SYNTAX; /* the grammar allows it, but two joined fields look like this */
    }
    *out_host = parts.host;
    *out_port = parts.port;
    return BAY_OK;
}

bay_err header_origin_split(bay_str value, bay_str *out_scheme, bay_str *out_host,
                            uint16_t *out_port)
{
    uri parts;
    if (str_eq(value, STR("null"))) {
        return BAY_ERR_NOT_FOUND;
    }
    if (uri_parse(&parts, value) != BAY_OK || parts.scheme.len == 0 || parts.host.len == 0 ||
        parts.has_userinfo || parts.path.len > 0 || parts.has_query || parts.has_fragment) {
        return BAY_ERR_SYNTAX;
    }
    *out_scheme = parts.scheme;
    *out_host = parts.host;
    *out_port = uri_port(&parts);
    return BAY_OK;
}

bool header_host_is_loopback(bay_str host)
{
    static const bay_str below = STR_INIT(".localhost");
    if (str_eq_nocase(host, STR("localhost")) ||
        (host.len > below.len && str_eq_nocase(str_from(host, host.len - below.len), below))) {
        return true;
    }
    char copy[INET6_ADDRSTRLEN];
    unsigned char address[sizeof(struct in6_addr)];
    if (host.len == 0 || host.len >= sizeof(copy) || memchr(host.at, '\0', host.len) != NULL) {
        return false;
    }
    memcpy(copy, host.at, host.len);
    copy[host.len] = '\0';
    if (inet_pton(AF_INET, copy, address) == 1) {
        return address[0] == 127;
    }
    static const unsigned char mapped[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    return inet_pton(AF_INET6, copy, address) == 1 &&
           (memcmp(address, &in6addr_loopback, sizeof(in6addr_loopback)) == 0 ||
            memcmp(address, mapped, sizeof(mapped)) == 0);
}

bool header_host_is(bay_str value, bay_str allowed)
{
    bay_str hosts[2];
    uint16_t ports[2];
    return header_host_split(value, &hosts[0], &ports[0]) == BAY_OK &&
           header_host_split(allowed, &hosts[1], &ports[1]) == BAY_OK &&
           str_eq_nocase(hosts[0], hosts[1]) && (ports[1] == 0 || ports[0] == ports[1]);
}

bool header_origin_is(bay_str value, bay_str allowed)
{
    bay_str schemes[2];
    bay_str hosts[2];
    uint16_t ports[2];
    if (header_origin_split(value, &schemes[0], &hosts[0], &ports[0]) != BAY_OK) {
        return false;
    }
    if (header_origin_split(allowed, &schemes[1], &hosts[1], &ports[1]) == BAY_OK) {
        return str_eq_nocase(schemes[0], schemes[1]) && str_eq_nocase(hosts[0], hosts[1]) &&
               ports[0] == ports[1];
    }
    return header_host_split(allowed, &hosts[1], &ports[1]) == BAY_OK &&
           str_eq_nocase(hosts[0], hosts[1]) && (ports[1] == 0 || ports[0] == ports[1]);
}
