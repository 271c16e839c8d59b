/* DNS rebinding: a page of a foreign site reaches a server on the user's machine under the site's
 * own name, so the browser lets it. Only Host and Origin tell it from an honest request. */
#include "front/origin_check.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "wire/header.h"

enum { PREFLIGHT_BYTES = 2048 };

static bay_err copy_texts(const bay_str *from, size_t count, arena *memory, const bay_str **out)
{
    bay_str *texts = arena_array(memory, count, sizeof(*texts));
    bay_err err = texts != NULL || count == 0 ? BAY_OK : BAY_ERR_NOMEM;
    for (size_t i = 0; i < count && err == BAY_OK; i++) {
        err = arena_dup(memory, from[i], &texts[i]);
    }
    *out = texts;
    return err;
}

bay_err http_origin_check_copy(http_origin_check *self, const http_origin_check *from,
                               arena *memory)
{
    *self = *from;
    bay_err err = copy_texts(from->hosts, from->host_count, memory, &self->hosts);
    return err == BAY_OK ? copy_texts(from->origins, from->origin_count, memory, &self->origins)
                         : err;
}

static bool is_any(bay_str allowed)
{
    return str_eq(allowed, STR("*"));
}

static bool is_own(const http_origin_check *self, bay_str name)
{
    return header_host_is_loopback(name) || listen_names_have(self->names, name);
}

static bool host_is_listed(const http_origin_check *self, bay_str host)
{
    bay_str name;
    uint16_t port;
    if (self->host_count == 0) {
        return !self->is_loopback ||
               (header_host_split(host, &name, &port) == BAY_OK && is_own(self, name));
    }
    for (size_t i = 0; i < self->host_count; i++) {
        if (is_any(self->hosts[i]) || header_host_is(host, self->hosts[i])) {
            return true;
        }
    }
    return false;
}

static bool host_is_allowed(http_origin_check *self, bay_str host)
{
    if (self->passed_len > 0 && str_eq(host, (bay_str){self->passed, self->passed_len})) {
        return true;
    }
    if (!host_is_listed(self, host)) {
        return false;
    }
    if (host.len <= sizeof(self->passed)) {
        memcpy(self->passed, host.at != NULL ? host.at : "", host.len);
        self->passed_len = host.len;
    }
    return true;
}

/* The origin is what Host names; without a port both mean the scheme's. */
static bool is_same_origin(bay_str origin, bay_str host)
{
    bay_str scheme;
    bay_str names[2];
    uint16_t ports[2];
    if (header_origin_split(origin, &scheme, &names[0], &ports[0]) != BAY_OK ||
        header_host_split(host, &names[1], &ports[1]) != BAY_OK) {
        return false;
    }
    if (ports[1] == 0) {
        ports[1] = str_eq_nocase(scheme, STR("https")) ? 443 : 80;
    }
    return str_eq_nocase(names[0], names[1]) && ports[0] == ports[1];
}

static bool origin_is_allowed(const http_origin_check *self, const http_origin_check_fields *fields)
{
    bay_str origin = fields->origin;
    bay_str scheme;
    bay_str name;
    uint16_t port;
    if (fields->origin_count == 0) {
        return true;
    }
    if (fields->origin_count > 1) {
        return false;
    }
    for (size_t i = 0; i < self->origin_count; i++) {
        if (is_any(self->origins[i]) || header_origin_is(origin, self->origins[i])) {
            return true;
        }
    }
    if (self->origin_count > 0) {
        return false;
    }
    if (self->is_loopback) {
        return header_origin_split(origin, &scheme, &name, &port) == BAY_OK && is_own(self, name);
    }
    return is_same_origin(origin, fields->host);
}

/* One walk, since every request is asked; a field's length says which one it may be. */
void http_origin_check_fields_read(const http_exchange *exchange, http_origin_check_fields *out)
{
    enum { VIA = 3, HOST = 4, ORIGIN = 6 };
    size_t count = 0;
    const http_field *fields = http_exchange_fields(exchange, &count);
    *out = (http_origin_check_fields){.origin_count = 0};
    for (size_t i = 0; i < count; i++) {
        bay_str name = fields[i].name;
        if (name.len == HOST && out->host.at == NULL && str_eq_nocase(name, STR("Host"))) {
            out->host = fields[i].value;
        } else if (name.len == ORIGIN && str_eq_nocase(name, STR("Origin"))) {
            out->origin = fields[i].value;
            out->origin_count++;
        } else if (name.len == VIA && str_eq_nocase(name, STR("Via"))) {
            out->has_via = true;
        }
    }
}

const char *http_origin_check_refusal(http_origin_check *self,
                                      const http_origin_check_fields *fields)
{
    if (!host_is_allowed(self, fields->host)) {
        return "This server is not served under the name in the Host header";
    }
    return origin_is_allowed(self, fields) ? NULL : "The Origin is not allowed";
}

static void write_asked_fields(buf *out, bay_str requested, bay_str beginning)
{
    while (requested.len > 0) {
        size_t comma = str_find(requested, ',');
        bay_str name = str_trim(str_head(requested, comma));
        if (name.len > beginning.len && str_eq_nocase(str_head(name, beginning.len), beginning) &&
            header_name_is_valid(name)) {
            buf_lit(out, ", ");
            buf_str(out, name);
        }
        requested = str_from(requested, comma + 1);
    }
}

void http_origin_check_preflight(http_exchange *exchange, const http_cors *cors)
{
    bay_str origin = http_exchange_field(exchange, STR("Origin"));
    char text[PREFLIGHT_BYTES];
    buf names = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    buf_str(&names, cors->fields);
    size_t fixed = names.len;
    write_asked_fields(&names, http_exchange_field(exchange, STR("Access-Control-Request-Headers")),
                       cors->further);
    if (names.err != BAY_OK) {
        names.len = fixed;
    }
    http_field fields[] = {
        {STR("Allow"), cors->verbs},
        {STR("Access-Control-Allow-Origin"), origin},
        {STR("Access-Control-Allow-Methods"), cors->verbs},
        {STR("Access-Control-Allow-Headers"), buf_view(&names)},
        {STR("Access-Control-Max-Age"), STR("600")},
        {STR("Vary"), STR("Origin, Access-Control-Request-Headers")},
    };
    http_exchange_reply(exchange, 204, fields,
                        origin.at != NULL ? sizeof(fields) / sizeof(fields[0]) : 1, STR(""));
}
