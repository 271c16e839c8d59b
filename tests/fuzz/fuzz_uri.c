/* URIs, templates, base64 and header values: nothing is read beyond its end, parts lie inside the
 * text, a resolved reference is a URI, an encoded text comes back. The first byte says where the
 * input is cut into two. */
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "wire/base64.h"
#include "wire/header.h"
#include "wire/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parts(bay_str text)
{
    uri parts;
    if (uri_parse(&parts, text) != BAY_OK) {
        return;
    }
    bay_str views[] = {parts.scheme, parts.authority, parts.path, parts.query, parts.fragment};
    size_t sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(views); i++) {
        CHECK(views[i].len == 0 ||
              (views[i].at >= text.at && views[i].at + views[i].len <= text.at + text.len));
        sum += views[i].len;
    }
    sum += (parts.scheme.len > 0) + (parts.has_query) + (parts.has_fragment);
    CHECK(sum + (parts.has_authority ? 2U : 0U) == text.len);
}

static void check_resolve(bay_str base, bay_str reference)
{
    buf out;
    bool is_same = false;
    uri parts;
    uri base_parts;
    buf_init(&out, SIZE_MAX);
    if (uri_resolve(&out, base, reference, &is_same) == BAY_OK) {
        CHECK(uri_parse(&parts, buf_view(&out)) == BAY_OK && parts.scheme.len > 0);
        CHECK(uri_parse(&base_parts, base) == BAY_OK);
        CHECK(is_same == uri_same_origin(&base_parts, &parts));
    } else {
        CHECK(out.len == 0);
    }
    buf_fini(&out);
}

static void check_codecs(bay_str text)
{
    buf coded;
    buf back;
    buf_init(&coded, SIZE_MAX);
    buf_init(&back, SIZE_MAX);
    uri_encode(&coded, text);
    CHECK(uri_decode(&back, buf_view(&coded)) == BAY_OK && str_eq(buf_view(&back), text));
    for (base64_form form = BASE64_STANDARD; form <= BASE64_URL_LOOSE; form++) {
        buf_clear(&coded);
        buf_clear(&back);
        base64_encode(&coded, text, form);
        CHECK(base64_decode(&back, buf_view(&coded), form) == BAY_OK);
        CHECK(str_eq(buf_view(&back), text));
        buf_clear(&back);
        buf_clear(&coded);
        if (base64_decode(&back, text, form) == BAY_OK && form <= BASE64_URL_PADDED) {
            base64_encode(&coded, buf_view(&back), form);
            CHECK(str_eq(buf_view(&coded), text)); /* one text for each run of bytes */
        }
    }
    buf_clear(&coded);
    buf_clear(&back);
    header_value_encode(&coded, text);
    CHECK(header_value_is_plain(buf_view(&coded)));
    bay_err err = header_value_decode(&back, buf_view(&coded));
    CHECK(err == BAY_ERR_UTF8 || (err == BAY_OK && str_eq(buf_view(&back), text)));
    buf_clear(&back);
    (void)!header_value_decode(&back, text);
    buf_fini(&coded);
    buf_fini(&back);
}

static void check_values(bay_str value, bay_str type)
{
    bay_str scheme;
    bay_str host;
    uint16_t port;
    (void)header_accepts(value, STR("application/json"));
    (void)header_accepts(value, type);
    (void)header_content_type_is(value, type);
    (void)header_host_is_loopback(value);
    if (header_host_split(value, &host, &port) == BAY_OK) {
        CHECK(host.len > 0 && header_host_is(value, value));
        (void)header_host_is_loopback(host);
    }
    if (header_origin_split(value, &scheme, &host, &port) == BAY_OK) {
        CHECK(header_origin_is(value, value));
    }
    CHECK(!header_accepts_named(value, type) || header_accepts(value, type));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    size_t cut = data[0] % size;
    char *first = mem_dup((const char *)data + 1, cut);
    char *second = mem_alloc(size - 1 - cut);
    CHECK(first != NULL && second != NULL);
    memcpy(second, data + 1 + cut, size - 1 - cut);
    bay_str a = {first, cut};
    bay_str b = {second, size - 1 - cut};
    check_parts(a);
    check_parts(b);
    check_resolve(a, b);
    check_codecs(b);
    check_values(b, a);
    bool is_template = uri_template_check(a) == BAY_OK;
    CHECK(is_template || !uri_template_matches(a, b));
    CHECK(!uri_template_matches(a, b) || a.len > 0 || b.len == 0);
    mem_free(first);
    mem_free(second);
    return 0;
}
