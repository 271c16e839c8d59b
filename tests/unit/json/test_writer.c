/* The writer: separators, quoting, numbers that read back, splices that change nothing. */
#include "case.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "json/writer.h"

static void errors_stick(void **state)
{
    (void)state;
    buf out;
    json_writer writer;
    buf_init(&out, 4);
    json_writer_init(&writer, &out);
    json_put_str(&writer, STR("too long"));
    assert_int_equal(out.err, BAY_ERR_LIMIT);
    json_put_int(&writer, 1);
    assert_int_equal(out.err, BAY_ERR_LIMIT);
    buf_fini(&out);

    buf_init(&out, 1U << 16); /* one level more than there are bits */
    json_writer_init(&writer, &out);
    for (int i = 0; i < JSON_WRITER_DEPTH; i++) {
        json_open_array(&writer);
        json_put_int(&writer, i);
    }
    assert_int_equal(out.err, BAY_OK);
    json_open_array(&writer);
    assert_int_equal(out.err, BAY_ERR_LIMIT);
    for (int i = 0; i <= JSON_WRITER_DEPTH; i++) {
        json_close_array(&writer);
    }
    assert_int_equal(out.err, BAY_ERR_LIMIT);
    buf_fini(&out);
}

static void separates_at_every_level(void **state)
{
    (void)state;
    buf out;
    json_writer writer;
    buf_init(&out, 1U << 16);
    json_writer_init(&writer, &out);
    json_open_object(&writer);
    json_key_lit(&writer, "a");
    json_open_array(&writer);
    json_put_int(&writer, INT64_MIN);
    json_put_uint(&writer, UINT64_MAX);
    json_open_array(&writer);
    json_close_array(&writer);
    json_open_object(&writer);
    json_close_object(&writer);
    json_put_null(&writer);
    json_close_array(&writer);
    json_key(&writer, STR("b\n"));
    json_put_bool(&writer, true);
    json_key_lit(&writer, "c");
    json_open_object(&writer);
    json_key_lit(&writer, "d");
    json_put_bool(&writer, false);
    json_key_lit(&writer, "e");
    json_put_raw(&writer, STR("1.00"));
    json_close_object(&writer);
    json_key_lit(&writer, "");
    json_put_str(&writer, STR(""));
    json_close_object(&writer);
    assert_str(buf_view(&out), "{\"a\":[-9223372036854775808,18446744073709551615,[],{},null],"
                               "\"b\\n\":true,\"c\":{\"d\":false,\"e\":1.00},\"\":\"\"}");
    buf_fini(&out);
    /* the deepest level has its comma too */
    buf_init(&out, 1U << 16);
    json_writer_init(&writer, &out);
    for (int i = 0; i < JSON_WRITER_DEPTH; i++) {
        json_open_array(&writer);
    }
    json_put_int(&writer, 1);
    json_put_int(&writer, 2);
    for (int i = 0; i < JSON_WRITER_DEPTH; i++) {
        json_close_array(&writer);
    }
    parsed p;
    parse_within(&p, buf_view(&out), NULL);
    assert_int_equal(p.err, BAY_OK);
    assert_int_equal(p.doc.count, JSON_WRITER_DEPTH + 2);
    forget(&p);
    buf_fini(&out);
}

/* A word is what the same text is as a string, wherever it stands; without room nothing of it. */
static void words_are_strings_that_need_no_escapes(void **state)
{
    (void)state;
    static const bay_str words[] = {STR_INIT(""), STR_INIT("a"), STR_INIT("status-update"),
                                    STR_INIT("patchbay/clientTaskId")};
    for (size_t max = 0; max < 128; max++) {
        buf out[2];
        for (int as_word = 0; as_word < 2; as_word++) {
            json_writer writer;
            buf_init(&out[as_word], max);
            json_writer_init(&writer, &out[as_word]);
            json_open_object(&writer);
            for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
                if (as_word) {
                    json_key_word(&writer, words[i]);
                    json_put_word(&writer, words[i]);
                } else {
                    json_key(&writer, words[i]);
                    json_put_str(&writer, words[i]);
                }
            }
            json_close_object(&writer);
        }
        assert_int_equal(out[1].err, out[0].err);
        assert_true(out[1].len <= max);
        assert_true(out[0].err != BAY_OK || str_eq(buf_view(&out[0]), buf_view(&out[1])));
        buf_fini(&out[0]);
        buf_fini(&out[1]);
    }
}

/* One byte anywhere in a short text: what the reader makes of it is the byte, or U+FFFD. */
static void quotes_every_byte_at_every_place(void **state)
{
    (void)state;
    enum { LONGEST = 40 };
    char text[LONGEST];
    for (size_t len = 1; len <= LONGEST; len++) {
        for (size_t at = 0; at < len; at++) {
            for (int byte = 0; byte < 256; byte++) {
                memset(text, 'x', len);
                text[at] = (char)byte;
                arena memory;
                arena_init(&memory, 1 << 16);
                buf out;
                buf_init(&out, 1024);
                json_quote(&out, (bay_str){text, len});
                json_doc doc;
                bay_str read;
                assert_int_equal(json_parse(&doc, buf_view(&out), NULL, &memory, NULL), BAY_OK);
                assert_int_equal(json_str(json_root(&doc), &memory, &read), BAY_OK);
                assert_int_equal(read.len, byte < 0x80 ? len : len + 2);
                assert_memory_equal(read.at, text, at);
                assert_memory_equal(read.at + at, byte < 0x80 ? &text[at] : "\xef\xbf\xbd",
                                    byte < 0x80 ? 1 : 3);
                assert_memory_equal(read.at + read.len - (len - at - 1), text + at + 1,
                                    len - at - 1);
                buf_fini(&out);
                arena_fini(&memory);
            }
        }
    }
}

static void quotes(void **state)
{
    (void)state;
    static const struct {
        bay_str text;
        bay_str quoted;
    } cases[] = {
        {STR_INIT("\x80"), STR_INIT("\"\xef\xbf\xbd\"")},
        {STR_INIT("a\xff\xfe"
                  "b"),
         STR_INIT("\"a\xef\xbf\xbd\xef\xbf\xbd"
                  "b\"")},
        {STR_INIT("\xe2\x82"), STR_INIT("\"\xef\xbf\xbd\"")},
        {STR_INIT("\xe2\x82\""), STR_INIT("\"\xef\xbf\xbd\\\"\"")},
        {STR_INIT("\xf0\x9f\x98x"), STR_INIT("\"\xef\xbf\xbdx\"")},
        {STR_INIT("\xed\xa0\x80"), STR_INIT("\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"")},
        {STR_INIT("\xc0\xaf"), STR_INIT("\"\xef\xbf\xbd\xef\xbf\xbd\"")},
        {STR_INIT("\xf4\x90"), STR_INIT("\"\xef\xbf\xbd\xef\xbf\xbd\"")},
        {STR_INIT(""), STR_INIT("\"\"")},
        {STR_INIT("\"\\/"), STR_INIT("\"\\\"\\\\/\"")},
        {STR_INIT("\b\t\n\v\f\r"), STR_INIT("\"\\b\\t\\n\\u000b\\f\\r\"")},
        {STR_INIT("\0\x1f\x7f"), STR_INIT("\"\\u0000\\u001f\x7f\"")},
        {STR_INIT("caf\xc3\xa9 \xf0\x9f\x98\x80 \xe2\x80\xa8"),
         STR_INIT("\"caf\xc3\xa9 \xf0\x9f\x98\x80 \xe2\x80\xa8\"")},
    };
    EACH_SCAN(s, scans)
    {
        json_scan_use(scans[s]);
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            buf out;
            buf_init(&out, 1024);
            json_quote(&out, cases[i].text);
            assert_int_equal(out.err, BAY_OK);
            assert_true(str_eq(buf_view(&out), cases[i].quoted));
            buf_fini(&out);
        }
    }
    json_scan_use(NULL);
}

/* Every code point survives being quoted and read. */
static void every_character_survives(void **state)
{
    (void)state;
    buf text;
    buf out;
    buf_init(&text, 8U << 20);
    buf_init(&out, 16U << 20);
    for (uint32_t code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 97) {
        parsed p;
        char escape[16];
        if (code < 0xd800 || code > 0xdfff) {
            uint32_t above = code - 0x10000;
            snprintf(escape, sizeof(escape), code < 0x10000 ? "\"\\u%04x\"" : "\"\\u%04x\\u%04x\"",
                     code < 0x10000 ? code : 0xd800 + (above >> 10), 0xdc00 + (above & 0x3ff));
            bay_str decoded;
            assert_int_equal(json_str(must_parse(&p, escape), &p.memory, &decoded), BAY_OK);
            buf_str(&text, decoded);
            forget(&p);
        }
    }
    json_quote(&out, buf_view(&text));
    assert_int_equal(out.err, BAY_OK);
    parsed p;
    parse_within(&p, buf_view(&out), NULL);
    bay_str decoded;
    assert_int_equal(p.err, BAY_OK);
    assert_int_equal(json_str(json_root(&p.doc), &p.memory, &decoded), BAY_OK);
    assert_true(str_eq(decoded, buf_view(&text)));
    forget(&p);
    buf_fini(&text);
    buf_fini(&out);
}

static void put_double(double number, char *text, size_t size)
{
    buf out;
    json_writer writer;
    buf_init(&out, 1024);
    json_writer_init(&writer, &out);
    json_put_double(&writer, number);
    assert_int_equal(out.err, BAY_OK);
    assert_true(out.len < size);
    memcpy(text, out.at, out.len);
    text[out.len] = '\0';
    buf_fini(&out);
}

static void doubles_are_short(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {NAN, "null"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {100, "100"},
        {123456789012, "123456789012"},
        {9007199254740993.0, "9007199254740992"},
        {1e20, "100000000000000000000"},
        {1e21, "1e+21"},
        {1.5e21, "1.5e+21"},
        {1e-6, "0.000001"},
        {1.25e-5, "0.0000125"},
        {1e-7, "1e-7"},
        {1.25e-7, "1.25e-7"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {5e-324, "5e-324"},
        {1.5e-323, "1.5e-323"},
        {9.5367431640625e-7, "9.5367431640625e-7"},
        {42.5, "42.5"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64];
        put_double(cases[i].number, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

static void doubles_read_back(void **state)
{
    (void)state;
    uint64_t bits = 0x9e3779b97f4a7c15U;
    for (int i = 0; i < 20000; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double number;
        memcpy(&number, &bits, sizeof(number));
        if (!isfinite(number)) {
            continue;
        }
        char text[64];
        put_double(number, text, sizeof(text));
        parsed p;
        double again;
        assert_int_equal(json_double(must_parse(&p, text), &again), BAY_OK);
        assert_memory_equal(&again, &number, sizeof(number));
        forget(&p);
    }
}

static void splices_members(void **state)
{
    (void)state;
    parsed p;
    json_val root =
        must_parse(&p, "{ \"id\" : 1.0, \"r\\u00e9\" : [1 , 2],\"name\":\"x\",\"n\":0.1000}");
    buf out;
    json_writer writer;
    buf_init(&out, 1024);
    json_writer_init(&writer, &out);
    json_open_object(&writer);
    json_put_members(&writer, root, NULL, 0);
    json_put_members(&writer, json_get(root, STR("id")), NULL, 0); /* no object: nothing */
    json_put_members(&writer, JSON_NONE, NULL, 0);
    json_close_object(&writer);
    assert_str(buf_view(&out), "{\"id\":1.0,\"r\\u00e9\":[1 , 2],\"name\":\"x\",\"n\":0.1000}");
    buf_clear(&out);
    const bay_str except[] = {STR("name"), STR("r\xc3\xa9")};
    json_writer_init(&writer, &out);
    json_open_object(&writer);
    json_key_lit(&writer, "name");
    json_put_str(&writer, STR("y"));
    json_put_members(&writer, root, except, 2);
    json_key_lit(&writer, "v");
    json_put_val(&writer, json_get(root, STR("r\xc3\xa9")));
    json_close_object(&writer);
    assert_str(buf_view(&out), "{\"name\":\"y\",\"id\":1.0,\"n\":0.1000,\"v\":[1 , 2]}");
    buf_fini(&out);
    forget(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stick),
        cmocka_unit_test(separates_at_every_level),
        cmocka_unit_test(words_are_strings_that_need_no_escapes),
        cmocka_unit_test(quotes),
        cmocka_unit_test(quotes_every_byte_at_every_place),
        cmocka_unit_test(every_character_survives),
        cmocka_unit_test(doubles_are_short),
        cmocka_unit_test(doubles_read_back),
        cmocka_unit_test(splices_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
