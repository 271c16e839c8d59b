/* Writes HTTP/1.1: heads from checked parts, so that no value can end a line or begin another
 * header, and chunk framing. */
#include "base/check.h"
#include "base/str.h"
#include "wire/chars.h"
#include "wire/header.h"
#include "wire/http1.h"

/* Removes what a failed writer appended. */
static bay_err http1_write_settle(buf *out, size_t start, bay_err err)
{
    if (err == BAY_OK) {
        err = out->err;
    }
    if (err != BAY_OK) {
        out->len = start;
    }
    return err;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* A value without control bytes and without white space at its ends, which a reader would remove.
 */
static bool value_is_valid(bay_str value)
{
    return value.len == 0 || (!is_space(value.at[0]) && !is_space(value.at[value.len - 1]) &&
                              chars_value_is_clean(value));
}

/* Any visible ASCII: uri.h made the target, or it is forwarded. */
static bool target_is_valid(bay_str target)
{
    for (size_t i = 0; i < target.len; i++) {
        if (target.at[i] <= ' ' || target.at[i] > '~') {
            return false;
        }
    }
    return target.len > 0;
}

bay_err http1_write_request_line(buf *out, bay_str method, bay_str target)
{
    if (!header_name_is_valid(method) || !target_is_valid(target)) {
        return BAY_ERR_INVALID;
    }
    size_t start = out->len;
    buf_str(out, method);
    buf_char(out, ' ');
    buf_str(out, target);
    buf_lit(out, " HTTP/1.1\r\n");
    return http1_write_settle(out, start, BAY_OK);
}

bay_err http1_write_status_line(buf *out, int status, bay_str reason)
{
    if (status < 100 || status > 999 || !chars_value_is_clean(reason)) {
        return BAY_ERR_INVALID;
    }
    size_t start = out->len;
    buf_lit(out, "HTTP/1.1 ");
    buf_uint(out, (uint64_t)status);
    buf_char(out, ' ');
    buf_str(out, reason.len > 0 ? reason : http1_reason(status));
    buf_lit(out, "\r\n");
    return http1_write_settle(out, start, BAY_OK);
}

static bay_err write_field(buf *out, bay_str name, bay_str value)
{
    if (!header_name_is_valid(name) || !value_is_valid(value)) {
        return BAY_ERR_INVALID;
    }
    if (!buf_reserve(out, name.len + value.len + 4)) {
        return out->err;
    }
    char *to = out->at + out->len;
    (void)str_put(&to, name);
    (void)str_put(&to, STR(": "));
    (void)str_put(&to, value);
    (void)str_put(&to, STR("\r\n"));
    out->len = (size_t)(to - out->at);
    return BAY_OK;
}

bay_err http1_write_fields(buf *out, const http_field *fields, size_t count)
{
    size_t start = out->len;
    bay_err err = BAY_OK;
    for (size_t i = 0; i < count && err == BAY_OK; i++) {
        err = write_field(out, fields[i].name, fields[i].value);
    }
    return http1_write_settle(out, start, err);
}

bay_err http1_write_content_length(buf *out, uint64_t bytes)
{
    size_t start = out->len;
    buf_lit(out, "Content-Length: ");
    buf_uint(out, bytes);
    buf_lit(out, "\r\n");
    return http1_write_settle(out, start, BAY_OK);
}

bay_err http1_write_end(buf *out)
{
    size_t start = out->len;
    buf_lit(out, "\r\n");
    return http1_write_settle(out, start, BAY_OK);
}

static bay_err write_rest(buf *out, const http_field *fields, size_t count)
{
    bay_err err = http1_write_fields(out, fields, count);
    return err != BAY_OK ? err : http1_write_end(out);
}

bay_err http1_write_request(buf *out, bay_str method, bay_str target, const http_field *fields,
                            size_t count)
{
    size_t start = out->len;
    bay_err err = http1_write_request_line(out, method, target);
    if (err == BAY_OK) {
        err = write_rest(out, fields, count);
    }
    return http1_write_settle(out, start, err);
}

bay_err http1_write_response(buf *out, int status, bay_str reason, const http_field *fields,
                             size_t count)
{
    size_t start = out->len;
    bay_err err = http1_write_status_line(out, status, reason);
    if (err == BAY_OK) {
        err = write_rest(out, fields, count);
    }
    return http1_write_settle(out, start, err);
}

bay_str http1_reason(int status)
{
    static const struct {
        int status;
        bay_str text;
    } reasons[] = {
        {100, STR_INIT("Continue")},
        {101, STR_INIT("Switching Protocols")},
        {200, STR_INIT("OK")},
        {201, STR_INIT("Created")},
        {202, STR_INIT("Accepted")},
        {204, STR_INIT("No Content")},
        {206, STR_INIT("Partial Content")},
        {301, STR_INIT("Moved Permanently")},
        {302, STR_INIT("Found")},
        {303, STR_INIT("See Other")},
        {304, STR_INIT("Not Modified")},
        {307, STR_INIT("Temporary Redirect")},
        {308, STR_INIT("Permanent Redirect")},
        {400, STR_INIT("Bad Request")},
        {401, STR_INIT("Unauthorized")},
        {403, STR_INIT("Forbidden")},
        {404, STR_INIT("Not Found")},
        {405, STR_INIT("Method Not Allowed")},
        {406, STR_INIT("Not Acceptable")},
        {408, STR_INIT("Request Timeout")},
        {409, STR_INIT("Conflict")},
        {410, STR_INIT("Gone")},
        {411, STR_INIT("Length Required")},
        {412, STR_INIT("Precondition Failed")},
        {413, STR_INIT("Content Too Large")},
        {414, STR_INIT("URI Too Long")},
        {415, STR_INIT("Unsupported Media Type")},
        {417, STR_INIT("Expectation Failed")},
        {421, STR_INIT("Misdirected Request")},
        {422, STR_INIT("Unprocessable Content")},
        {426, STR_INIT("Upgrade Required")},
        {428, STR_INIT("Precondition Required")},
        {429, STR_INIT("Too Many Requests")},
        {431, STR_INIT("Request Header Fields Too Large")},
        {500, STR_INIT("Internal Server Error")},
        {501, STR_INIT("Not Implemented")},
        {502, STR_INIT("Bad Gateway")},
        {503, STR_INIT("Service Unavailable")},
        {504, STR_INIT("Gateway Timeout")},
        {505, STR_INIT("HTTP Version Not Supported")},
        {508, STR_INIT("Loop Detected")},
    };
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (reasons[i].status == status) {
            return reasons[i].text;
        }
    }
    return STR("Unknown");
}

size_t http1_chunk_prefix(char out[HTTP1_CHUNK_PREFIX_MAX], size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    size_t len = 0;
    if (bytes == 0) {
        return 0;
    }
    for (size_t rest = bytes; rest > 0; rest >>= 4) {
        len++;
    }
    for (size_t i = len; i > 0; i--, bytes >>= 4) {
        out[i - 1] = digits[bytes & 15];
    }
    out[len] = '\r';
    out[len + 1] = '\n';
    return len + 2;
}

void http1_write_chunk(buf *out, bay_str data)
{
    char prefix[HTTP1_CHUNK_PREFIX_MAX];
    size_t len = http1_chunk_prefix(prefix, data.len);
    if (len == 0 || data.len > SIZE_MAX - HTTP1_CHUNK_PREFIX_MAX - 2 ||
        !buf_reserve(out, len + data.len + 2)) {
        return;
    }
    buf_append(out, prefix, len);
    buf_str(out, data);
    buf_lit(out, HTTP1_CHUNK_END);
}
