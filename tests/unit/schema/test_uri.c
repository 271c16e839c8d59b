/* References, resolved: RFC 3986 section 5.4's examples, and bases that are no full URIs. */
#include "case.h"

#include "schema/uri.h"

typedef struct resolution {
    const char *base;
    const char *reference;
    const char *out;
} resolution;

#define BASE "http://a/b/c/d;p?q"

static const resolution resolutions[] = {
    {BASE, "g:h", "g:h"},
    {BASE, "g", "http://a/b/c/g"},
    {BASE, "./g", "http://a/b/c/g"},
    {BASE, "g/", "http://a/b/c/g/"},
    {BASE, "/g", "http://a/g"},
    {BASE, "//g", "http://g"},
    {BASE, "?y", "http://a/b/c/d;p?y"},
    {BASE, "g?y", "http://a/b/c/g?y"},
    {BASE, "#s", "http://a/b/c/d;p?q"},
    {BASE, "g#s/../x", "http://a/b/c/g"},
    {BASE, ";x", "http://a/b/c/;x"},
    {BASE, "", "http://a/b/c/d;p?q"},
    {BASE, ".", "http://a/b/c/"},
    {BASE, "..", "http://a/b/"},
    {BASE, "../g", "http://a/b/g"},
    {BASE, "../../..", "http://a/"},
    {BASE, "../../../g", "http://a/g"},
    {BASE, "/./g", "http://a/g"},
    {BASE, "/../g", "http://a/g"},
    {BASE, "g.", "http://a/b/c/g."},
    {BASE, "..g", "http://a/b/c/..g"},
    {BASE, "./g/.", "http://a/b/c/g/"},
    {BASE, "g/../h", "http://a/b/c/h"},
    {BASE, "g;x=1/../y", "http://a/b/c/y"},
    {BASE, "http:g", "http:g"},
    {"http://a", "b", "http://a/b"},
    {"urn:x:y", "#z", "urn:x:y"},
    {"", "a/b", "a/b"},
    {"", "", ""},
    {"a/b", "c", "a/c"},
    {"a", "b", "b"},
};

static void resolves(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(resolutions) / sizeof(resolutions[0]); i++) {
        buf out;
        buf_init(&out, 1024);
        schema_uri_resolve(str_of(resolutions[i].base), str_of(resolutions[i].reference), &out);
        buf_char(&out, '\0');
        assert_int_equal(out.err, BAY_OK);
        assert_string_equal(out.at, resolutions[i].out);
        buf_fini(&out);
    }
}

static void decodes_fragments(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 64);
    assert_false(schema_uri_decode(STR("%"), &out));
    assert_false(schema_uri_decode(STR("%4"), &out));
    assert_false(schema_uri_decode(STR("%g0"), &out));
    buf_clear(&out);
    assert_true(schema_uri_decode(STR("/a%25%2fb"), &out));
    assert_true(str_eq(buf_view(&out), STR("/a%/b")));
    buf_fini(&out);
    assert_true(str_eq(schema_uri_fragment(STR("a#b#c")), STR("b#c")));
    assert_int_equal(schema_uri_fragment(STR("a")).len, 0);
    assert_true(str_eq(schema_uri_without_fragment(STR("a#b")), STR("a")));
}

static void respects_its_bound(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 8);
    schema_uri_resolve(STR("http://example.com/a/b"), STR("c"), &out);
    assert_int_equal(out.err, BAY_ERR_LIMIT);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolves),
        cmocka_unit_test(decodes_fragments),
        cmocka_unit_test(respects_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
