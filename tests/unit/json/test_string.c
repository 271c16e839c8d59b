/* Strings: decoding, comparing, and never giving out what is not UTF-8. */
#include "case.h"

static void refuses_lone_surrogates(void **state)
{
    (void)state;
    static const char *const lone[] = {
        "\"\\ud800\"",        "\"\\udfff\"",    "\"\\udc00\\ud800\"",
        "\"\\ud800\\u0041\"", "\"\\ud800\\n\"", "\"\\ud800x\"",
        "\"\\ud800\\ud800\"", "\"a\\uDBFF\"",   "\"\\ud83d\\ude00\\ude00\"",
    };
    EACH_SCAN(s, scans)
    {
        json_scan_use(scans[s]);
        for (size_t i = 0; i < sizeof(lone) / sizeof(lone[0]); i++) {
            parsed p;
            json_val value = must_parse(&p, lone[i]);
            bay_str text = STR("untouched");
            assert_int_equal(json_str(value, &p.memory, &text), BAY_ERR_UTF8);
            assert_str(text, "untouched");
            assert_false(json_str_is_whole(value));
            forget(&p);
        }
    }
    json_scan_use(NULL);
    parsed p;
    json_val value = must_parse(&p, "\"\\ud800\"");
    assert_false(json_str_eq(value, STR("\xed\xa0\x80")));
    assert_false(json_str_eq(value, STR("")));
    forget(&p);
}

static void only_strings_have_text(void **state)
{
    (void)state;
    parsed p;
    json_val root = must_parse(&p, "[1,null,true,[],{}]");
    for (size_t i = 0; i < 5; i++) {
        bay_str text;
        assert_int_equal(json_str(json_item(root, i), &p.memory, &text), BAY_ERR_TYPE);
        assert_false(json_str_eq(json_item(root, i), STR("1")));
        assert_false(json_str_is_whole(json_item(root, i)));
    }
    forget(&p);
}

static void decodes(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        bay_str text;
    } cases[] = {
        {"\"\"", STR_INIT("")},
        {"\"plain\"", STR_INIT("plain")},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", STR_INIT("\"\\/\b\f\n\r\t")},
        {"\"\\u00e9\"", STR_INIT("\xc3\xa9")},
        {"\"\\u00E9\xc3\xa9\"", STR_INIT("\xc3\xa9\xc3\xa9")},
        {"\"a\\u0000b\"", STR_INIT("a\0b")},
        {"\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"",
         STR_INIT("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf")},
        {"\"\\ud7ff\\ue000\"", STR_INIT("\xed\x9f\xbf\xee\x80\x80")},
        {"\"\\ud800\\udc00\\uDBFF\\uDFFF\"", STR_INIT("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")},
        {"\"\\\\u0041\"", STR_INIT("\\u0041")},
        {"\"0123456789012345678901234567890123456789\\n0123456789012345678901234567890123\"",
         STR_INIT("0123456789012345678901234567890123456789\n0123456789012345678901234567890123")},
    };
    EACH_SCAN(s, scans)
    {
        json_scan_use(scans[s]);
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            parsed p;
            json_val value = must_parse(&p, cases[i].json);
            bay_str text;
            assert_int_equal(json_str(value, &p.memory, &text), BAY_OK);
            assert_true(str_eq(text, cases[i].text));
            assert_true(json_str_eq(value, cases[i].text));
            assert_false(json_str_eq(value, STR("something else")));
            bay_str shorter = str_head(cases[i].text, cases[i].text.len - 1);
            assert_true(cases[i].text.len == 0 || !json_str_eq(value, shorter));
            /* the bytes stay what they were */
            assert_true(str_eq(json_raw(value), str_of(cases[i].json)));
            forget(&p);
        }
    }
    json_scan_use(NULL);
}

static void a_plain_string_is_a_view(void **state)
{
    (void)state;
    parsed p;
    json_val value = must_parse(&p, "\"plain\"");
    bay_str text;
    assert_int_equal(json_str(value, NULL, &text), BAY_OK); /* needs no memory */
    assert_ptr_equal(text.at, p.copy + 1);
    forget(&p);
}

static void respects_the_arena(void **state)
{
    (void)state;
    parsed p;
    json_val value = must_parse(&p, "\"0123456789abcdef0123456789abcdef\\n\"");
    arena small;
    arena_init(&small, 16);
    bay_str text;
    assert_int_equal(json_str(value, &small, &text), BAY_ERR_LIMIT);
    arena_fini(&small);
    forget(&p);
}

static void strings_compare_as_they_read(void **state)
{
    (void)state;
    parsed p;
    json_val root = must_parse(&p, "[\"caf\u00e9\",\"caf\\u00e9\",\"cafe\",7,\"\\ud83d\\ude00\"]");
    json_val plain = json_item(root, 0);
    json_val escaped = json_item(root, 1);
    bay_str text;
    assert_false(json_str_same(plain, json_item(root, 2)));
    assert_false(json_str_same(json_item(root, 3), json_item(root, 3)));
    assert_false(json_str_plain(escaped, &text));
    assert_false(json_str_plain(json_item(root, 3), &text));
    assert_int_not_equal(json_hash(plain, 1), json_hash(json_item(root, 2), 1));
    assert_true(json_str_is_whole(plain));
    assert_true(json_str_is_whole(escaped));
    assert_true(json_str_same(plain, escaped));
    assert_int_equal(json_hash(plain, 1), json_hash(escaped, 1));
    assert_true(json_str_plain(plain, &text));
    assert_int_equal(text.len, 5);
    assert_int_equal(json_str_length(plain), 4);
    assert_int_equal(json_str_length(escaped), 4);
    assert_int_equal(json_str_length(json_item(root, 3)), 0);
    assert_int_equal(json_str_length(json_item(root, 4)), 1);
    forget(&p);
}

static void any_bytes_are_utf8_or_not(void **state)
{
    (void)state;
    assert_false(json_is_utf8(STR("a\xff")));
    assert_false(json_is_utf8(STR("\xed\xa0\x80")));
    assert_false(json_is_utf8(STR("\xc3")));
    assert_true(json_is_utf8(STR("a\xc3\xa9\n")));
    assert_true(json_is_utf8((bay_str){NULL, 0}));
}

/* Wherever a string is cut, its parts are whole, and together they are the string. */
static void parts_are_whole(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "\"plain\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
        "\"\\n\\\\\\\\\\u00e9\\\"u0041\"",
        "\"\\ud83d\\ude00\\ud83d\\ude00x\\\\ud83d\\\\\\ud83d\\ude00\"",
        "\"\\u0041\\u0042\xe2\x82\xac\\u0043\\\\\"",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        parsed p;
        bay_str whole;
        json_val value = must_parse(&p, texts[i]);
        assert_int_equal(json_str(value, &p.memory, &whole), BAY_OK);
        for (size_t at = 0; at <= json_raw(value).len + 1; at++) {
            bay_str head;
            bay_str tail;
            assert_int_equal(json_str_part(value, 0, at, &p.memory, &head), BAY_OK);
            assert_int_equal(json_str_part(value, at, SIZE_MAX, &p.memory, &tail), BAY_OK);
            assert_true(json_is_utf8(head) && json_is_utf8(tail));
            assert_true(str_eq(head, str_head(whole, head.len)));
            assert_true(str_eq(tail, str_from(whole, head.len)));
            assert_int_equal(json_str_part(value, at, 0, &p.memory, &head), BAY_OK);
            assert_int_equal(head.len, 0);
        }
        forget(&p);
    }
    parsed p;
    bay_str text;
    assert_int_equal(json_str_part(must_parse(&p, "7"), 0, 1, &p.memory, &text), BAY_ERR_TYPE);
    forget(&p);
    json_val lone = must_parse(&p, "\"ab\\ud800cd\"");
    assert_int_equal(json_str_part(lone, 0, 2, &p.memory, &text), BAY_OK);
    assert_str(text, "ab");
    assert_int_equal(json_str_part(lone, 0, 3, &p.memory, &text), BAY_ERR_UTF8);
    forget(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_lone_surrogates),
        cmocka_unit_test(only_strings_have_text),
        cmocka_unit_test(decodes),
        cmocka_unit_test(parts_are_whole),
        cmocka_unit_test(a_plain_string_is_a_view),
        cmocka_unit_test(respects_the_arena),
        cmocka_unit_test(strings_compare_as_they_read),
        cmocka_unit_test(any_bytes_are_utf8_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
