/* HTTP/1.1 against http_parser 2.9.4: a message that http_parser refuses, ours does not complete;
 * one that ours completes, http_parser completes too and reads alike: method, target, status,
 * fields, body, keep-alive. What begins with HTTP/ is read as a response.
 *
 * Differences that are meant:
 * - Methods that http_parser does not know: it refuses them, ours reads any token without
 *   lower-case letters; what to answer is up to the caller (405 or 501).
 * - Keep-alive: http_parser takes Proxy-Connection for Connection, and with HTTP/1.0 lets
 *   `keep-alive` win over `close`. Ours knows no Proxy-Connection, and `close` wins.
 * - A Connection list with an empty or malformed element: http_parser overlooks what stands behind
 *   it; RFC 9110 section 5.6.1 has a recipient skip empty elements, and so does ours.
 * - A field whose name begins with Transfer-Encoding and goes on (Transfer-Encodings) is taken for
 *   Transfer-Encoding by http_parser; to ours it is a field like any other. Such messages are left
 *   out.
 * - A tab behind a chunk size: http_parser takes a space there and no tab, RFC 9112 section 7.1.1
 *   either, and so does ours. Chunked messages with a tab in their body are left out.
 * - A response without a body by its status (1xx, 204, 304): http_parser wants to be told so.
 * All else that differs is ours refusing more. */
#include <http_parser.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/header.h"
#include "wire/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 64 };

/* What either reader says of the first message. */
typedef struct reading {
    bool is_complete;
    bool is_refused;
    bool keep_alive;
    bool has_proxy_connection;
    buf first; /* method and target, or status */
    buf fields;
    buf body;
} reading;

static void reading_init(reading *self)
{
    *self = (reading){.is_complete = false};
    buf_init(&self->first, SIZE_MAX);
    buf_init(&self->fields, SIZE_MAX);
    buf_init(&self->body, SIZE_MAX);
}

static void reading_fini(reading *self)
{
    buf_fini(&self->first);
    buf_fini(&self->fields);
    buf_fini(&self->body);
}

typedef struct theirs {
    reading *out;
    buf url;
    buf name;
    buf value;
    bool has_value;
    bool is_past_head;
} theirs;

static void end_field(theirs *self)
{
    if (self->has_value && !self->is_past_head) {
        bay_str value = str_trim(buf_view(&self->value));
        buf_printf(&self->out->fields, "%zu %zu ", self->name.len, value.len);
        buf_str(&self->out->fields, buf_view(&self->name));
        buf_str(&self->out->fields, value);
        self->out->has_proxy_connection =
            self->out->has_proxy_connection ||
            str_eq_nocase(buf_view(&self->name), STR("proxy-connection"));
    }
    if (self->has_value) {
        buf_clear(&self->name);
        buf_clear(&self->value);
        self->has_value = false;
    }
}

static int on_url(http_parser *parser, const char *at, size_t len)
{
    buf_append(&((theirs *)parser->data)->url, at, len);
    return 0;
}

static int on_name(http_parser *parser, const char *at, size_t len)
{
    theirs *self = parser->data;
    end_field(self);
    buf_append(&self->name, at, len);
    return 0;
}

static int on_value(http_parser *parser, const char *at, size_t len)
{
    theirs *self = parser->data;
    self->has_value = true;
    buf_append(&self->value, at, len);
    return 0;
}

static int on_head(http_parser *parser)
{
    theirs *self = parser->data;
    end_field(self);
    self->is_past_head = true;
    self->out->keep_alive = http_should_keep_alive(parser) != 0; /* trailers may not change it */
    if (parser->type == HTTP_REQUEST) {
        buf_printf(&self->out->first, "%s ", http_method_str((enum http_method)parser->method));
        buf_str(&self->out->first, buf_view(&self->url));
        return 0;
    }
    unsigned status = parser->status_code;
    buf_printf(&self->out->first, "%u", status);
    return status < 200 || status == 204 || status == 304;
}

static int on_body(http_parser *parser, const char *at, size_t len)
{
    buf_append(&((theirs *)parser->data)->out->body, at, len);
    return 0;
}

static int on_end(http_parser *parser)
{
    theirs *self = parser->data;
    self->out->is_complete = true;
    http_parser_pause(parser, 1);
    return 0;
}

static enum http_errno read_theirs(reading *out, bool is_request, bay_str bytes)
{
    http_parser_settings settings;
    http_parser_settings_init(&settings);
    settings.on_url = on_url;
    settings.on_header_field = on_name;
    settings.on_header_value = on_value;
    settings.on_headers_complete = on_head;
    settings.on_body = on_body;
    settings.on_message_complete = on_end;
    theirs self = {.out = out};
    buf_init(&self.url, SIZE_MAX);
    buf_init(&self.name, SIZE_MAX);
    buf_init(&self.value, SIZE_MAX);
    http_parser parser;
    http_parser_init(&parser, is_request ? HTTP_REQUEST : HTTP_RESPONSE);
    parser.data = &self;
    http_parser_execute(&parser, &settings, bytes.at, bytes.len);
    if (HTTP_PARSER_ERRNO(&parser) == HPE_OK && !out->is_complete && self.is_past_head &&
        http_body_is_final(&parser) == 0) {
        http_parser_execute(&parser, &settings, "", 0);
    }
    enum http_errno err = HTTP_PARSER_ERRNO(&parser);
    out->is_refused = !out->is_complete && err != HPE_OK && err != HPE_INVALID_EOF_STATE;
    buf_fini(&self.url);
    buf_fini(&self.name);
    buf_fini(&self.value);
    return err;
}

static void read_our_body(reading *out, http1_kind kind, const http1_head *head, bay_str rest)
{
    http1_body body;
    http1_body_event event = HTTP1_BODY_DATA;
    http1_body_init(&body, kind, head, &http1_default_limits);
    while (event == HTTP1_BODY_DATA) {
        size_t consumed;
        bay_str span;
        if (http1_body_feed(&body, rest, &consumed, &span, &event) != BAY_OK) {
            out->is_refused = true;
            return;
        }
        buf_str(&out->body, span);
        rest = str_from(rest, consumed);
    }
    out->is_complete = http1_body_finish(&body) == BAY_OK;
}

static bool is_known_method(bay_str method)
{
    for (unsigned i = 0; i <= HTTP_SOURCE; i++) {
        if (i != HTTP_CONNECT && str_eq(method, str_of(http_method_str((enum http_method)i)))) {
            return true;
        }
    }
    return false;
}

/* True when a Connection list has an element that is no token. */
static bool has_odd_connection(const http_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!str_eq_nocase(fields[i].name, STR("connection"))) {
            continue;
        }
        bay_str rest = fields[i].value;
        while (rest.len > 0) {
            size_t comma = str_find(rest, ',');
            if (!header_name_is_valid(str_trim(str_head(rest, comma)))) {
                return true;
            }
            rest = str_from(rest, comma + 1);
        }
    }
    return false;
}

static bool has_long_transfer_encoding(const http_field *fields, uint32_t count)
{
    static const bay_str known = STR_INIT("transfer-encoding");
    for (uint32_t i = 0; i < count; i++) {
        bay_str name = fields[i].name;
        if (name.len > known.len && str_eq_nocase(str_head(name, known.len), known)) {
            return true;
        }
    }
    return false;
}

/* False when the two cannot be compared. `out_differs`: keep-alive may be read differently. */
static bool read_ours(reading *out, bool is_request, bay_str bytes, bool *out_differs)
{
    http_field fields[FIELDS];
    http1_limits limits = http1_default_limits;
    http1_kind kind = is_request ? HTTP1_REQUEST : HTTP1_RESPONSE;
    http1_parser parser;
    http1_head head;
    size_t consumed;
    limits.fields = FIELDS;
    http1_parser_init(&parser, kind, &limits, fields, false);
    bay_err err = http1_head_parse(&parser, bytes, &head, &consumed);
    out->is_refused = err != BAY_OK && err != BAY_ERR_AGAIN;
    if (err != BAY_OK) {
        return true;
    }
    if (is_request) {
        buf_printf(&out->first, "%.*s %.*s", BAY_STR(head.method), BAY_STR(head.target));
    } else {
        buf_printf(&out->first, "%d", head.status);
    }
    for (uint32_t i = 0; i < head.field_count; i++) {
        buf_printf(&out->fields, "%zu %zu ", fields[i].name.len, fields[i].value.len);
        buf_str(&out->fields, fields[i].name);
        buf_str(&out->fields, fields[i].value);
    }
    out->keep_alive = head.keep_alive;
    *out_differs = (parser.asks_close && parser.asks_keep_alive) ||
                   has_odd_connection(fields, head.field_count);
    bay_str rest = str_from(bytes, consumed);
    read_our_body(out, kind, &head, rest);
    bool has_tab = head.is_chunked && str_find(rest, '\t') < rest.len;
    return (!is_request || is_known_method(head.method)) && !has_tab &&
           !has_long_transfer_encoding(fields, head.field_count);
}

/* Ours looks at a line once it is whole, so a message that http_parser takes for complete although
 * its last line has no proper end is refused as soon as that end comes. */
static bool is_refused_at_line_end(bool is_request, bay_str bytes)
{
    reading ours;
    buf longer;
    bool may_differ = false;
    reading_init(&ours);
    buf_init(&longer, SIZE_MAX);
    buf_str(&longer, bytes);
    buf_lit(&longer, "\r\n\r\n");
    (void)read_ours(&ours, is_request, buf_view(&longer), &may_differ);
    bool is_refused = ours.is_refused;
    buf_fini(&longer);
    reading_fini(&ours);
    return is_refused;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bay_str bytes = {(const char *)data, size};
    bool is_request = !str_starts(bytes, STR("HTTP/"));
    bool may_differ = false;
    reading ours;
    reading other;
    reading_init(&ours);
    reading_init(&other);
    bool is_comparable = read_ours(&ours, is_request, bytes, &may_differ);
    read_theirs(&other, is_request, bytes);
    if (ours.is_complete && is_comparable) {
        CHECK(!other.is_refused);
        CHECK(other.is_complete);
        CHECK(str_eq(buf_view(&ours.first), buf_view(&other.first)));
        CHECK(str_eq(buf_view(&ours.fields), buf_view(&other.fields)));
        CHECK(str_eq(buf_view(&ours.body), buf_view(&other.body)));
        CHECK(ours.keep_alive == other.keep_alive || may_differ || other.has_proxy_connection);
    } else if (other.is_complete && is_comparable && !ours.is_refused) {
        CHECK(is_refused_at_line_end(is_request, bytes));
    }
    reading_fini(&ours);
    reading_fini(&other);
    return 0;
}
