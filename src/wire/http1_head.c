/* Reads the head of an HTTP/1.1 message, line by line.
 *
 * A line is read when it is complete, so the result does not depend on how the bytes were split.
 * `line_at` is the start of the first unread line, `scan_at` the end of the searched part: each
 * byte is searched once and read once. Views in the table are pointers, which are moved if the
 * caller's run of bytes has moved.
 *
 *     START ──empty line──► START_AFTER_EMPTY ──line──► FIELDS ──empty line──► DONE
 *       └───────────────────────line─────────────────────┘ ▲└──field──┘ */
#include "wire/chars.h"
#include "wire/header.h"
#include "wire/http1.h"

enum { STAGE_START, STAGE_START_AFTER_EMPTY, STAGE_FIELDS, STAGE_DONE };
enum { LONGEST_METHOD = 32, VERSION_LEN = 8 };

const http1_limits http1_default_limits = {
    .head_bytes = 32768,
    .target_bytes = 8192,
    .fields = 100,
    .body_bytes = 16777216,
    .framing_bytes = 64 * 1024,
    .chunk_extension_bytes = 1024,
    .trailer_bytes = 8192,
};

void http1_parser_init(http1_parser *self, http1_kind kind, const http1_limits *limits,
                       http_field *fields, bool answers_head)
{
    *self = (http1_parser){.limits = limits, .kind = kind, .answers_head = answers_head};
    self->head.fields = fields;
}

static bay_err http1_head_refuse(http1_parser *self, bay_err err, int status, const char *text)
{
    self->refusal = (http1_refusal){
        .status = self->kind == HTTP1_RESPONSE ? 502 : status,
        .text = text,
        .offset = self->line_at,
    };
    return err;
}

static bay_err refuse_syntax(http1_parser *self, const char *text)
{
    return http1_head_refuse(self, BAY_ERR_SYNTAX, 400, text);
}

/* `lower` is in lower case and of the same length. */
static bool name_is(bay_str name, const char *lower)
{
    for (size_t i = 0; i < name.len; i++) {
        if (char_lower(name.at[i]) != lower[i]) {
            return false;
        }
    }
    return true;
}

static bay_err read_content_length(http1_parser *self, bay_str value)
{
    if (self->head.has_content_length) {
        return refuse_syntax(self, "Content-Length is given twice");
    }
    if (!str_uint(value, &self->head.content_length)) {
        return refuse_syntax(self, "Content-Length is not one decimal number");
    }
    self->head.has_content_length = true;
    return BAY_OK;
}

/* RFC 9112 section 6.1: an unknown coding is answered with 501. */
static bay_err read_transfer_encoding(http1_parser *self, bay_str value)
{
    if (self->head.is_chunked) {
        return refuse_syntax(self, "Transfer-Encoding is given twice");
    }
    if (str_eq_nocase(value, STR("chunked"))) {
        self->head.is_chunked = true;
        return BAY_OK;
    }
    size_t token = chars_span(value, CHAR_TOKEN);
    if (token == 0 || str_eq_nocase(str_head(value, token), STR("chunked"))) {
        return refuse_syntax(self, "Transfer-Encoding is not exactly one chunked");
    }
    return http1_head_refuse(self, BAY_ERR_UNSUPPORTED, 501, "the transfer coding is not known");
}

static bay_err read_host(http1_parser *self, bay_str value)
{
    bay_str host;
    uint16_t port;
    if (self->has_host) {
        return refuse_syntax(self, "Host is given twice");
    }
    self->has_host = true;
    self->host = value;
    if (self->kind == HTTP1_REQUEST && header_host_split(value, &host, &port) != BAY_OK) {
        return refuse_syntax(self, "Host is not a host with an optional port");
    }
    return BAY_OK;
}

static bay_err read_expect(http1_parser *self, bay_str value)
{
    if (self->kind == HTTP1_RESPONSE) {
        return BAY_OK;
    }
    if (!str_eq_nocase(value, STR("100-continue"))) {
        return http1_head_refuse(self, BAY_ERR_UNSUPPORTED, 417, "the expectation is not known");
    }
    self->head.expects_continue = self->head.minor > 0; /* RFC 9110 section 10.1.1 */
    return BAY_OK;
}

static bay_err read_known_field(http1_parser *self, bay_str name, bay_str value)
{
    switch (name.len) {
    case 4:
        return name_is(name, "host") ? read_host(self, value) : BAY_OK;
    case 6:
        return name_is(name, "expect") ? read_expect(self, value) : BAY_OK;
    case 10:
        if (name_is(name, "connection")) {
            self->asks_close = self->asks_close || http1_list_holds(value, STR("close"));
            self->asks_keep_alive =
                self->asks_keep_alive || http1_list_holds(value, STR("keep-alive"));
        }
        return BAY_OK;
    case 14:
        return name_is(name, "content-length") ? read_content_length(self, value) : BAY_OK;
    case 17:
        return name_is(name, "transfer-encoding") ? read_transfer_encoding(self, value) : BAY_OK;
    default:
        return BAY_OK;
    }
}

static bay_err refuse_name(http1_parser *self, bay_str line, size_t name_len)
{
    char stop = name_len < line.len ? line.at[name_len] : '\0';
    bool is_space = stop == ' ' || stop == '\t';
    if (name_len == 0 && is_space) {
        return refuse_syntax(self, "a header line begins with white space");
    }
    if (name_len == 0 && stop == ':') {
        return refuse_syntax(self, "a header has no name");
    }
    if (is_space) {
        return refuse_syntax(self, "white space before the colon of a header");
    }
    return refuse_syntax(self, "a header name is malformed");
}

static bay_err read_field(http1_parser *self, bay_str line)
{
    size_t name_len = chars_span(line, CHAR_TOKEN);
    if (name_len == 0 || name_len == line.len || line.at[name_len] != ':') {
        return refuse_name(self, line, name_len);
    }
    bay_str value = str_trim(str_from(line, name_len + 1));
    if (!chars_value_is_clean(value)) {
        return refuse_syntax(self, "a header value holds a control byte");
    }
    if (self->head.field_count >= self->limits->fields) {
        return http1_head_refuse(self, BAY_ERR_LIMIT, 431, "too many headers");
    }
    bay_str name = str_head(line, name_len);
    self->head.fields[self->head.field_count++] = (http_field){name, value};
    return read_known_field(self, name, value);
}

static bay_err read_path(http1_parser *self, bay_str text)
{
    if (!chars_are(text, CHAR_PATH) ||
        (memchr(text.at, '%', text.len) != NULL && !chars_escapes_are_whole(text))) {
        return refuse_syntax(self, "the request target holds a character it may not");
    }
    size_t mark = str_find(text, '?');
    self->head.path = str_head(text, mark);
    if (mark < text.len) {
        self->head.query = str_from(text, mark + 1);
    }
    return BAY_OK;
}

/* absolute-form: `http://authority/path?query`. */
static bay_err read_absolute_target(http1_parser *self, bay_str target)
{
    size_t scheme = str_find(target, ':');
    bay_str rest = str_from(target, scheme);
    bool is_https = str_eq_nocase(str_head(target, scheme), STR("https"));
    bool is_http = str_eq_nocase(str_head(target, scheme), STR("http"));
    if ((!is_http && !is_https) || !str_starts(rest, STR("://"))) {
        return refuse_syntax(self, "the request target is neither a path nor an http URI");
    }
    rest = str_from(rest, 3);
    size_t end = 0;
    while (end < rest.len && rest.at[end] != '/' && rest.at[end] != '?') {
        end++;
    }
    bay_str host;
    uint16_t port;
    self->head.authority = str_head(rest, end);
    self->has_authority_target = true;
    if (header_host_split(self->head.authority, &host, &port) != BAY_OK) {
        return refuse_syntax(self, "the authority of the request target is malformed");
    }
    rest = str_from(rest, end);
    if (rest.len > 0) {
        bay_err err = read_path(self, rest);
        if (err != BAY_OK || self->head.path.len > 0) {
            return err;
        }
    }
    /* RFC 9112 section 3.2.4: OPTIONS for a whole server. */
    bool is_server = rest.len == 0 && str_eq(self->head.method, STR("OPTIONS"));
    self->head.path = is_server ? STR("*") : STR("/");
    return BAY_OK;
}

static bay_err read_target(http1_parser *self, bay_str target)
{
    self->head.target = target;
    if (target.len > self->limits->target_bytes) {
        return http1_head_refuse(self, BAY_ERR_LIMIT, 414, "the request target is too long");
    }
    if (target.len == 0) {
        return refuse_syntax(self, "the request line is malformed");
    }
    if (target.at[0] == '/') {
        return read_path(self, target);
    }
    if (str_eq(target, STR("*"))) {
        self->head.path = target;
        return str_eq(self->head.method, STR("OPTIONS"))
                   ? BAY_OK
                   : refuse_syntax(self, "only OPTIONS may ask for *");
    }
    return read_absolute_target(self, target);
}

static bay_err read_version(http1_parser *self, bay_str text)
{
    if (text.len != VERSION_LEN || memcmp(text.at, "HTTP/", 5) != 0 ||
        !char_is(text.at[5], CHAR_DIGIT) || text.at[6] != '.' || !char_is(text.at[7], CHAR_DIGIT)) {
        return refuse_syntax(self, "the first line names no HTTP version");
    }
    if (text.at[5] != '1' || text.at[7] > '1') {
        return http1_head_refuse(self, BAY_ERR_VERSION, 505,
                                 "only HTTP/1.0 and HTTP/1.1 are spoken here");
    }
    self->head.minor = (uint8_t)(text.at[7] - '0');
    return BAY_OK;
}

static bay_err read_request_line(http1_parser *self, bay_str line)
{
    size_t method = 0;
    while (method < line.len && char_is(line.at[method], CHAR_TOKEN) &&
           !char_is(line.at[method], CHAR_LOWER)) {
        method++;
    }
    if (method == 0 || method == line.len || line.at[method] != ' ') {
        return refuse_syntax(self, "the method is malformed");
    }
    if (method > LONGEST_METHOD) {
        return http1_head_refuse(self, BAY_ERR_UNSUPPORTED, 501, "the method is not known");
    }
    bay_str rest = str_from(line, method + 1);
    size_t space = str_find(rest, ' ');
    bay_err err = read_version(self, str_from(rest, space + 1));
    if (err != BAY_OK) {
        return err;
    }
    self->head.method = str_head(line, method);
    if (str_eq(self->head.method, STR("CONNECT"))) {
        return http1_head_refuse(self, BAY_ERR_UNSUPPORTED, 501, "CONNECT is not spoken here");
    }
    return read_target(self, str_head(rest, space));
}

static bay_err read_status_line(http1_parser *self, bay_str line)
{
    bay_err err = read_version(self, str_head(line, VERSION_LEN));
    if (err != BAY_OK) {
        return err;
    }
    bay_str rest = str_from(line, VERSION_LEN);
    uint64_t status = 0;
    if (rest.len < 4 || rest.at[0] != ' ' || !str_uint((bay_str){rest.at + 1, 3}, &status) ||
        status < 100) {
        return refuse_syntax(self, "the status is not three digits");
    }
    self->head.status = (int)status;
    rest = str_from(rest, 4);
    if (rest.len == 0) {
        return BAY_OK; /* the space before an empty reason is often omitted; unambiguous */
    }
    if (rest.at[0] != ' ' || !chars_value_is_clean(rest)) {
        return refuse_syntax(self, "the reason phrase is malformed");
    }
    self->head.reason = str_from(rest, 1);
    return BAY_OK;
}

/* True if both name the same server; the scheme's default port equals no port. */
static bool authority_is(bay_str target, bay_str authority, bay_str host_field)
{
    bay_str hosts[2];
    uint16_t ports[2];
    uint16_t usual = target.len > 4 && char_lower(target.at[4]) == 's' ? 443 : 80;
    if (header_host_split(authority, &hosts[0], &ports[0]) != BAY_OK ||
        header_host_split(host_field, &hosts[1], &ports[1]) != BAY_OK) {
        return false;
    }
    return str_eq_nocase(hosts[0], hosts[1]) &&
           (ports[0] != 0 ? ports[0] : usual) == (ports[1] != 0 ? ports[1] : usual);
}

static bay_err finish_request(http1_parser *self)
{
    http1_head *head = &self->head;
    if (head->minor > 0 && !self->has_host) {
        return refuse_syntax(self, "Host is missing"); /* RFC 9112 section 3.2 */
    }
    if (self->has_authority_target && self->has_host &&
        !authority_is(head->target, head->authority, self->host)) {
        return refuse_syntax(self, "Host and the request target name different servers");
    }
    if (self->has_host) {
        head->authority = self->host;
    }
    if (head->is_chunked) {
        head->framing = HTTP1_FRAMING_CHUNKED;
    } else if (head->content_length > 0) {
        head->framing = HTTP1_FRAMING_LENGTH;
    }
    return BAY_OK;
}

static bay_err finish_response(http1_parser *self)
{
    http1_head *head = &self->head;
    bool is_bare = head->status < 200 || head->status == 204;
    if (is_bare && (head->is_chunked || head->content_length > 0)) {
        return refuse_syntax(self, "a response without a body announces one");
    }
    if (is_bare || head->status == 304 || self->answers_head) {
        return BAY_OK;
    }
    if (head->is_chunked) {
        head->framing = HTTP1_FRAMING_CHUNKED;
    } else if (!head->has_content_length) {
        head->framing = HTTP1_FRAMING_CLOSE;
    } else if (head->content_length > 0) {
        head->framing = HTTP1_FRAMING_LENGTH;
    }
    return BAY_OK;
}

/* RFC 9112 section 6.3 (framing) and 9.3 (persistence). */
static bay_err http1_head_finish(http1_parser *self)
{
    http1_head *head = &self->head;
    if (head->is_chunked && head->has_content_length) {
        return refuse_syntax(self, "Content-Length and Transfer-Encoding together");
    }
    if (head->is_chunked && head->minor == 0) {
        return refuse_syntax(self, "Transfer-Encoding in HTTP/1.0");
    }
    bay_err err = self->kind == HTTP1_REQUEST ? finish_request(self) : finish_response(self);
    if (err != BAY_OK) {
        return err;
    }
    if (head->framing == HTTP1_FRAMING_LENGTH && head->content_length > self->limits->body_bytes) {
        return http1_head_refuse(self, BAY_ERR_LIMIT, 413, "the body is too long");
    }
    head->keep_alive = !self->asks_close && (head->minor > 0 || self->asks_keep_alive) &&
                       head->framing != HTTP1_FRAMING_CLOSE;
    self->stage = STAGE_DONE;
    return BAY_OK;
}

/* `line` ends in the byte before its LF. */
static bay_err read_line(http1_parser *self, bay_str line)
{
    if (line.len == 0 || line.at[line.len - 1] != '\r') {
        return refuse_syntax(self, "a line ends without CR");
    }
    line.len--;
    if (self->stage == STAGE_FIELDS) {
        return line.len > 0 ? read_field(self, line) : http1_head_finish(self);
    }
    if (line.len == 0 && self->stage == STAGE_START && self->kind == HTTP1_REQUEST) {
        self->stage = STAGE_START_AFTER_EMPTY; /* RFC 9112 section 2.2 */
        return BAY_OK;
    }
    self->stage = STAGE_FIELDS;
    return self->kind == HTTP1_REQUEST ? read_request_line(self, line)
                                       : read_status_line(self, line);
}

/* Input that is not HTTP at all (a TLS hello, for example) is refused at its first byte. */
static bool may_begin(const http1_parser *self, bay_str bytes)
{
    if (self->stage > STAGE_START_AFTER_EMPTY || self->line_at >= bytes.len) {
        return true;
    }
    char first = bytes.at[self->line_at];
    if (self->kind == HTTP1_RESPONSE) {
        return first == 'H';
    }
    return char_is(first, CHAR_TOKEN) || (first == '\r' && self->stage == STAGE_START);
}

static void move_view(bay_str *view, uintptr_t old_base, size_t old_len, const char *base)
{
    uintptr_t at = (uintptr_t)view->at;
    if (at >= old_base && at - old_base <= old_len && view->at != NULL) {
        view->at = base + (at - old_base); /* otherwise a static string */
    }
}

static void move_views(http1_parser *self, const char *base)
{
    uintptr_t old = self->base;
    self->base = (uintptr_t)base;
    if (old == self->base || self->line_at == 0) {
        return;
    }
    bay_str *views[] = {&self->head.method, &self->head.target,    &self->head.path,
                        &self->head.query,  &self->head.authority, &self->head.reason,
                        &self->host};
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        move_view(views[i], old, self->line_at, base);
    }
    for (uint32_t i = 0; i < self->head.field_count; i++) {
        move_view(&self->head.fields[i].name, old, self->line_at, base);
        move_view(&self->head.fields[i].value, old, self->line_at, base);
    }
}

static bay_err refuse_length(http1_parser *self)
{
    if (self->kind == HTTP1_REQUEST && self->stage != STAGE_FIELDS) {
        return http1_head_refuse(self, BAY_ERR_LIMIT, 414, "the request line is too long");
    }
    return http1_head_refuse(self, BAY_ERR_LIMIT, 431, "the headers are too long");
}

bay_err http1_head_parse(http1_parser *self, bay_str bytes, http1_head *out, size_t *out_consumed)
{
    bay_str window = str_head(bytes, self->limits->head_bytes);
    move_views(self, bytes.at);
    while (may_begin(self, window)) {
        if (self->scan_at >= window.len) {
            break;
        }
        const char *end = memchr(window.at + self->scan_at, '\n', window.len - self->scan_at);
        if (end == NULL) {
            break;
        }
        size_t next = (size_t)(end - window.at) + 1;
        bay_err err =
            read_line(self, (bay_str){window.at + self->line_at, next - 1 - self->line_at});
        if (err != BAY_OK) {
            return err;
        }
        self->line_at = self->scan_at = next;
        if (self->stage == STAGE_DONE) {
            *out = self->head;
            *out_consumed = next;
            return BAY_OK;
        }
    }
    if (!may_begin(self, window)) {
        return refuse_syntax(self, "this is not HTTP");
    }
    self->scan_at = window.len;
    return bytes.len >= self->limits->head_bytes ? refuse_length(self) : BAY_ERR_AGAIN;
}

bay_str http1_field_find(const http_field *fields, size_t count, bay_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (fields[i].name.len == name.len && str_eq_nocase(fields[i].name, name)) {
            return fields[i].value;
        }
    }
    return (bay_str){NULL, 0};
}

size_t http1_field_count(const http_field *fields, size_t count, bay_str name)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += fields[i].name.len == name.len && str_eq_nocase(fields[i].name, name);
    }
    return found;
}

bool http1_list_holds(bay_str value, bay_str token)
{
    for (;;) {
        size_t comma = str_find(value, ',');
        if (str_eq_nocase(str_trim(str_head(value, comma)), token)) {
            return true;
        }
        if (comma == value.len) {
            return false;
        }
        value = str_from(value, comma + 1);
    }
}
