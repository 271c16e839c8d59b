#include "front/forwarded.h"

#include "base/str.h"
#include "wire/header.h"

/* What the fields say, from left to right; the left-most of too many addresses are a fault. */
typedef struct chain {
    bay_str addresses[FORWARDED_HOPS];
    size_t count;
    bay_str host;   /* the right-most; `at` NULL: none */
    bay_str scheme; /* the same */
    size_t bytes;
} chain;

bay_err forwarded_proxies_set(forwarded_proxies *self, const bay_str *texts, size_t count)
{
    if (count > FORWARDED_PROXIES) {
        return BAY_ERR_LIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        bay_err err = network_parse(texts[i], &self->at[i]);
        if (err != BAY_OK) {
            return err;
        }
    }
    self->count = count;
    return BAY_OK;
}

bool forwarded_is_trusted(const forwarded_proxies *self, bay_str text)
{
    net_address address;
    if (address_parse(text, &address) != BAY_OK) {
        return false;
    }
    for (size_t i = 0; i < self->count; i++) {
        if (network_has(&self->at[i], &address)) {
            return true;
        }
    }
    return false;
}

/* ---- one value ------------------------------------------------------------------------------- */

/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]:80" without its port; a name that
 * hides the address (RFC 7239 section 6.3) and "unknown" are empty. False: none of these. */
static bool read_node(bay_str text, bay_str *out)
{
    net_address address;
    uint16_t port;
    bay_str host;
    bool is_hidden = text.len > 1 && text.at[0] == '_';
    if (is_hidden || str_eq_nocase(text, STR("unknown"))) {
        *out = STR("");
        return true;
    }
    if (address_parse(text, &address) == BAY_OK) {
        *out = text;
        return true;
    }
    if (header_host_split(text, &host, &port) != BAY_OK) {
        return false;
    }
    if (host.len > 1 && host.at[0] == '[') {
        host = str_head(str_from(host, 1), host.len - 2);
    }
    *out = host;
    return address_parse(host, &address) == BAY_OK;
}

static bool add_node(chain *self, bay_str text)
{
    return self->count < FORWARDED_HOPS && read_node(text, &self->addresses[self->count]) &&
           ++self->count > 0;
}

static bool set_host(chain *self, bay_str text)
{
    bay_str name;
    uint16_t port;
    self->host = text;
    return header_host_split(text, &name, &port) == BAY_OK;
}

static bool set_scheme(chain *self, bay_str text)
{
    self->scheme = text;
    return str_eq_nocase(text, STR("http")) || str_eq_nocase(text, STR("https"));
}

/* Elements between commas, none of them empty. */
static bool read_list(chain *self, bay_str value, bool (*read)(chain *self, bay_str element))
{
    for (;;) {
        size_t comma = str_find(value, ',');
        if (!read(self, str_trim(str_head(value, comma)))) {
            return false;
        }
        if (comma == value.len) {
            return true;
        }
        value = str_from(value, comma + 1);
    }
}

/* ---- Forwarded ------------------------------------------------------------------------------- */

/* A token or a quoted string; an address needs no escapes, so there are none in what is read. */
static bool take_value(bay_str *rest, bay_str *out)
{
    bool is_quoted = rest->len > 0 && rest->at[0] == '"';
    if (is_quoted) {
        *rest = str_from(*rest, 1);
        size_t end = str_find(*rest, '"');
        bool is_closed = end < rest->len;
        *out = str_head(*rest, end);
        *rest = str_from(*rest, end + 1);
        return is_closed && out->len > 0 && str_find(*out, '\\') == out->len;
    }
    size_t end = 0;
    while (end < rest->len && rest->at[end] != ';' && rest->at[end] != ',' &&
           rest->at[end] != ' ' && rest->at[end] != '\t' && rest->at[end] != '"') {
        end++;
    }
    *out = str_head(*rest, end);
    *rest = str_from(*rest, end);
    return end > 0;
}

typedef struct element {
    bay_str node;
    bay_str host;
    bay_str scheme;
} element;

static bool take_pair(bay_str *rest, element *out)
{
    size_t equals = str_find(*rest, '=');
    bay_str name = str_head(*rest, equals);
    bay_str value;
    if (equals == rest->len || !header_name_is_valid(name)) {
        return false;
    }
    *rest = str_from(*rest, equals + 1);
    if (!take_value(rest, &value)) {
        return false;
    }
    bay_str *into = str_eq_nocase(name, STR("for"))     ? &out->node
                    : str_eq_nocase(name, STR("host"))  ? &out->host
                    : str_eq_nocase(name, STR("proto")) ? &out->scheme
                                                        : NULL;
    bool is_twice = into != NULL && into->at != NULL; /* section 4: at most once in an element */
    if (into != NULL) {
        *into = value;
    }
    return !is_twice;
}

static bool add_element(chain *self, const element *one)
{
    return add_node(self, one->node.at != NULL ? one->node : STR("unknown")) &&
           (one->host.at == NULL || set_host(self, one->host)) &&
           (one->scheme.at == NULL || set_scheme(self, one->scheme));
}

static bool read_forwarded(chain *self, bay_str value)
{
    bay_str rest = str_trim(value);
    element one = {.node = {NULL, 0}};
    while (take_pair(&rest, &one)) {
        rest = str_trim(rest);
        char next = rest.len > 0 ? rest.at[0] : ',';
        bool is_last = rest.len == 0;
        rest = str_trim(str_from(rest, 1));
        if (next == ',') {
            if (!add_element(self, &one)) {
                return false;
            }
            one = (element){.node = {NULL, 0}};
        } else if (next != ';') {
            return false;
        }
        if (is_last) {
            return true;
        }
    }
    return false;
}

/* ---- the fields of a request ----------------------------------------------------------------- */

typedef enum field_kind {
    FIELD_OTHER,
    FIELD_FORWARDED,
    FIELD_FOR,
    FIELD_PROTO,
    FIELD_HOST
} field_kind;

static field_kind kind_of(bay_str name)
{
    return str_eq_nocase(name, STR("Forwarded"))           ? FIELD_FORWARDED
           : str_eq_nocase(name, STR("X-Forwarded-For"))   ? FIELD_FOR
           : str_eq_nocase(name, STR("X-Forwarded-Proto")) ? FIELD_PROTO
           : str_eq_nocase(name, STR("X-Forwarded-Host"))  ? FIELD_HOST
                                                           : FIELD_OTHER;
}

static bool read_field(chain *self, field_kind kind, bay_str value)
{
    self->bytes += value.len;
    return self->bytes <= FORWARDED_BYTES &&
           (kind == FIELD_FORWARDED ? read_forwarded(self, value)
            : kind == FIELD_FOR     ? read_list(self, value, add_node)
            : kind == FIELD_PROTO   ? read_list(self, value, set_scheme)
                                    : read_list(self, value, set_host));
}

/* False: there is nothing, or nothing to go by. */
static bool read_chain(const http_exchange *exchange, chain *out)
{
    size_t count = 0;
    const http_field *fields = http_exchange_fields(exchange, &count);
    bool has[2] = {false, false};
    for (size_t i = 0; i < count; i++) {
        field_kind kind = kind_of(fields[i].name);
        if (kind == FIELD_OTHER) {
            continue;
        }
        has[kind == FIELD_FORWARDED] = true;
        if (!read_field(out, kind, fields[i].value)) {
            return false;
        }
    }
    return has[0] != has[1];
}

void forwarded_read(const forwarded_proxies *proxies, const http_exchange *exchange,
                    forwarded_request *out)
{
    chain said = {.count = 0};
    if (!forwarded_is_trusted(proxies, out->address) || !read_chain(exchange, &said)) {
        return;
    }
    for (size_t i = said.count; i > 0 && forwarded_is_trusted(proxies, out->address); i--) {
        bay_str before = said.addresses[i - 1];
        if (before.len == 0) {
            break; /* hidden: what is known is whom it came through */
        }
        out->address = before;
    }
    out->host = said.host.at != NULL ? said.host : out->host;
    out->is_https = str_eq_nocase(said.scheme, STR("https"));
}
