/* Reads an A2A request's header fields and query: version, extensions, trace, place in a stream. */
#include "a2a_transport/router_internal.h"
#include "base/str.h"
#include "wire/header.h"

enum { EXTENSION_FIELDS = 16 /* of one request that are joined */ };

/* ---- version --------------------------------------------------------------------------------- */

static bay_str query_value(bay_str query, bay_str name)
{
    while (query.len > 0) {
        bay_str pair = str_head(query, str_find(query, '&'));
        if (pair.len > name.len && pair.at[name.len] == '=' && str_starts(pair, name)) {
            return str_from(pair, name.len + 1);
        }
        query = str_from(query, pair.len + 1);
    }
    return (bay_str){NULL, 0};
}

/* a2a 1.0.1 section 3.6.1: the header, or the query parameter of the same name */
static bay_str version_of(const http_exchange *exchange, bay_str version, size_t count)
{
    if (count > 1) {
        return STR("said twice"); /* ambiguous for readers: not a version */
    }
    return version.at != NULL ? version
                              : query_value(http_exchange_query(exchange), STR("A2A-Version"));
}

bay_str a2a_http_router_version(const http_exchange *exchange)
{
    bay_str name = STR("A2A-Version");
    return version_of(exchange, http_exchange_field(exchange, name),
                      http_exchange_field_count(exchange, name));
}

/* ---- extensions ------------------------------------------------------------------------------ */

static bool is_extensions(bay_str name)
{
    return str_eq_nocase(name, STR("A2A-Extensions")) ||
           str_eq_nocase(name, STR("X-A2A-Extensions"));
}

bay_str a2a_http_router_extensions(http_exchange *exchange)
{
    size_t count = 0;
    const http_field *fields = http_exchange_fields(exchange, &count);
    bay_str found[EXTENSION_FIELDS];
    size_t found_count = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < count && found_count < EXTENSION_FIELDS; i++) {
        if (fields[i].value.len > 0 && is_extensions(fields[i].name)) {
            found[found_count++] = fields[i].value;
            bytes += fields[i].value.len + 1;
        }
    }
    if (found_count < 2) {
        return found_count == 1 ? found[0] : STR("");
    }
    char *joined = arena_alloc(http_exchange_arena(exchange), bytes);
    if (joined == NULL) {
        return found[0];
    }
    size_t len = 0;
    for (size_t i = 0; i < found_count; i++) {
        memcpy(joined + len, found[i].at, found[i].len);
        len += found[i].len;
        joined[len++] = ',';
    }
    return (bay_str){joined, len - 1};
}

/* The next of names separated by commas, without white space; the rest stays in `names`. */
static bay_str next_of(bay_str *names)
{
    size_t comma = str_find(*names, ',');
    bay_str one = str_trim(str_head(*names, comma));
    *names = str_from(*names, comma + 1);
    return one;
}

static bool is_in(bay_str names, bay_str wanted)
{
    while (names.len > 0) {
        if (str_eq(next_of(&names), wanted)) {
            return true;
        }
    }
    return false;
}

bay_str a2a_http_router_activated(bay_str asked, bay_str known, arena *memory)
{
    if (asked.len == 0 || known.len == 0) {
        return STR("");
    }
    char *kept = arena_alloc(memory, asked.len + 1);
    size_t len = 0;
    while (kept != NULL && asked.len > 0) {
        bay_str one = next_of(&asked);
        if (one.len == 0 || !is_in(known, one) || is_in((bay_str){kept, len}, one)) {
            continue;
        }
        if (len > 0) {
            kept[len++] = ',';
        }
        memcpy(kept + len, one.at, one.len);
        len += one.len;
    }
    return len > 0 ? (bay_str){kept, len} : STR("");
}

/* ---- trace ----------------------------------------------------------------------------------- */

/* A number of lower-case hexadecimal digits; out_is_zero: all of them are 0. */
static bool is_hex(bay_str text, size_t at, size_t len, bool *out_is_zero)
{
    *out_is_zero = true;
    for (size_t i = at; i < at + len; i++) {
        char c = text.at[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
        *out_is_zero = *out_is_zero && c == '0';
    }
    return true;
}

/* W3C trace context, section 3.2: version-trace-parent-flags; later versions may append more */
static bool is_traceparent(bay_str text)
{
    bool is_zero[4];
    if (text.len < 55 || text.at[2] != '-' || text.at[35] != '-' || text.at[52] != '-') {
        return false;
    }
    if (!is_hex(text, 0, 2, &is_zero[0]) || !is_hex(text, 3, 32, &is_zero[1]) ||
        !is_hex(text, 36, 16, &is_zero[2]) || !is_hex(text, 53, 2, &is_zero[3])) {
        return false;
    }
    bool is_known = is_zero[0];
    bool is_forbidden = text.at[0] == 'f' && text.at[1] == 'f';
    bool has_end = text.len == 55 || (!is_known && text.at[55] == '-');
    return !is_zero[1] && !is_zero[2] && !is_forbidden && has_end && text.len <= 256;
}

bay_str a2a_http_router_traceparent(const http_exchange *exchange)
{
    bay_str text = http_exchange_field(exchange, STR("traceparent"));
    bool is_one = http_exchange_field_count(exchange, STR("traceparent")) == 1;
    return is_one && is_traceparent(text) ? text : STR("");
}

/* ---- the rest -------------------------------------------------------------------------------- */

static uint64_t event_id_of(bay_str text)
{
    uint64_t id = 0;
    return str_uint(text, &id) ? id : 0;
}

uint64_t a2a_http_router_last_event_id(const http_exchange *exchange)
{
    return event_id_of(http_exchange_field(exchange, STR("Last-Event-ID")));
}

bool a2a_http_router_is_json(bay_str type)
{
    return type.len == 0 || header_content_type_is(type, STR("application/json")) ||
           header_content_type_is(type, STR("application/a2a+json"));
}

/* ---- all at once ----------------------------------------------------------------------------- */

/* The first of several; counts them. */
static void router_fields_take(const http_field *field, bay_str name, bay_str *first, size_t *count)
{
    if (str_eq_nocase(field->name, name)) {
        *first = *count == 0 ? field->value : *first;
        ++*count;
    }
}

/* A field's length selects the only candidate, so most names are compared with one, or none. */
void a2a_http_router_fields_read(const http_exchange *exchange, a2a_http_router_fields *out)
{
    enum { ACCEPT = 6, VERSION = 11, CONTENT_TYPE = 12, LAST_ID = 13, EXTENSIONS = 14, OLD = 16 };
    size_t field_count = 0;
    const http_field *fields = http_exchange_fields(exchange, &field_count);
    a2a_http_router_fields said = {.traceparent = STR("")};
    bay_str version = {NULL, 0};
    bay_str traceparent = {NULL, 0};
    bay_str last_id = {NULL, 0};
    size_t versions = 0;
    size_t traceparents = 0;
    size_t others[3] = {0}; /* only the first of these is used */
    for (size_t i = 0; i < field_count; i++) {
        switch (fields[i].name.len) {
        case ACCEPT:
            router_fields_take(&fields[i], STR("Accept"), &said.accept, &others[0]);
            break;
        case VERSION:
            router_fields_take(&fields[i], STR("A2A-Version"), &version, &versions);
            router_fields_take(&fields[i], STR("traceparent"), &traceparent, &traceparents);
            break;
        case CONTENT_TYPE:
            router_fields_take(&fields[i], STR("Content-Type"), &said.content_type, &others[1]);
            break;
        case LAST_ID:
            router_fields_take(&fields[i], STR("Last-Event-ID"), &last_id, &others[2]);
            break;
        case EXTENSIONS:
        case OLD:
            said.has_extensions = said.has_extensions || is_extensions(fields[i].name);
            break;
        default:
            break;
        }
    }
    said.version = version_of(exchange, version, versions);
    said.last_event_id = event_id_of(last_id);
    if (traceparents == 1 && is_traceparent(traceparent)) {
        said.traceparent = traceparent;
    }
    *out = said;
}
