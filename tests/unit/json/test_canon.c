/* RFC 8785: the canonical form, and what has none. */
#include "case.h"

#include <stdio.h>

#include "json/canon.h"

static void refuses_what_has_no_canonical_form(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bay_err err;
        size_t offset;
    } cases[] = {
        {"{\"a\":1,\"a\":1}", BAY_ERR_DUPLICATE, 7},
        {"[{\"b\":1,\"a\":1,\"\\u0062\":1}]", BAY_ERR_DUPLICATE, 14},
        {"[1,\"\\ud800\"]", BAY_ERR_UTF8, 3},
        {"{\"\\udc00\":1}", BAY_ERR_UTF8, 1},
        {"[1e400]", BAY_ERR_RANGE, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        parsed p;
        buf out;
        bay_diag diag = {0};
        buf_init(&out, 1024);
        buf_lit(&out, "before");
        json_val root = must_parse(&p, cases[i].text);
        assert_int_equal(json_canon(&out, root, &p.memory, &diag), cases[i].err);
        assert_int_equal(diag.offset, cases[i].offset);
        assert_str(buf_view(&out), "before");
        buf_fini(&out);
        forget(&p);
    }
    arena memory;
    arena_init(&memory, 1024);
    assert_int_equal(json_canon(NULL, JSON_NONE, &memory, NULL), BAY_ERR_INVALID);
    arena_fini(&memory);
}

static void bounds_hold(void **state)
{
    (void)state;
    parsed p;
    json_val root = must_parse(&p, "{\"a\":[1,2,3,4,5,6,7,8],\"b\":\"x\"}");
    buf out;
    arena memory;
    buf_init(&out, 12);
    arena_init(&memory, 1U << 16);
    assert_int_equal(json_canon(&out, root, &memory, NULL), BAY_ERR_LIMIT);
    assert_int_equal(out.len, 0);
    buf_fini(&out);
    arena_fini(&memory);
    buf_init(&out, 1024);
    bay_err err = BAY_ERR_LIMIT;
    size_t bytes = 0;
    for (; err == BAY_ERR_LIMIT && bytes < 4096; bytes += 16) {
        arena_init(&memory, bytes);
        err = json_canon(&out, root, &memory, NULL);
        arena_fini(&memory);
    }
    assert_int_equal(err, BAY_OK);
    assert_true(bytes > 2 * 13 * 4 + 2 * 24); /* thirteen entries, two names */
    assert_true(out.len > 0);
    buf_fini(&out);
    forget(&p);
}

static void has_one_form(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {" null ", "null"},
        {"-0", "0"},
        {"1.0e2", "100"},
        {"[]", "[]"},
        {"{ }", "{}"},
        {"[ [ ] , { } , [ { } , 1 ] ]", "[[],{},[{},1]]"},
        {"{\"b\":{\"d\":1,\"c\":[{\"z\":1,\"y\":2},3]},\"a\":[]}",
         "{\"a\":[],\"b\":{\"c\":[{\"y\":2,\"z\":1},3],\"d\":1}}"},
        {"{\"aa\":1,\"a\":2,\"\":3}", "{\"\":3,\"a\":2,\"aa\":1}"},
        {"\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\"",
         "\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\""},
        {"[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001]",
         "[333333333.3333333,1e+30,4.5,0.002,1e-27]"},
        /* section 3.2.2, as a whole */
        {"{\"numbers\":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"
         "\"string\":\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\","
         "\"literals\":[null,true,false]}",
         "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
         "\"string\":\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}"},
        /* UTF-16 order: the pair d83d de00 comes before fb33 */
        {"{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,\"\\ud83d\\ude00\":5,\"\\u0080\":6,"
         "\"\\u00f6\":7}",
         "{\"\\r\":2,\"1\":4,\"\xc2\x80\":6,\"\xc3\xb6\":7,\"\xe2\x82\xac\":1,"
         "\"\xf0\x9f\x98\x80\":5,\"\xef\xac\xb3\":3}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        parsed p;
        parsed again;
        buf out;
        buf_init(&out, 1024);
        json_val root = must_parse(&p, cases[i][0]);
        assert_int_equal(json_canon(&out, root, &p.memory, NULL), BAY_OK);
        if (!str_eq(buf_view(&out), str_of(cases[i][1]))) {
            print_error("%s became %.*s\n", cases[i][0], BAY_STR(buf_view(&out)));
        }
        assert_true(str_eq(buf_view(&out), str_of(cases[i][1])));
        /* a value inside a document has the same form as alone; the form is its own form */
        buf text;
        buf_init(&text, 1024);
        buf_printf(&text, "[0,{\"x\":%.*s}]", BAY_STR(buf_view(&out)));
        parse_within(&again, buf_view(&text), NULL);
        buf_clear(&out);
        assert_int_equal(
            json_canon(&out, json_pointer(json_root(&again.doc), STR("/1/x")), &again.memory, NULL),
            BAY_OK);
        assert_true(str_eq(buf_view(&out), str_of(cases[i][1])));
        forget(&again);
        forget(&p);
        buf_fini(&text);
        buf_fini(&out);
    }
}

static void nesting_needs_no_stack(void **state)
{
    (void)state;
    enum { LEVELS = 100000 };
    buf text;
    buf out;
    buf_init(&text, 4U << 20);
    buf_init(&out, 4U << 20);
    for (int i = 0; i < LEVELS; i++) {
        buf_str(&text, i % 2 == 0 ? STR("[") : STR("{\"a\":"));
    }
    buf_char(&text, '1');
    for (int i = LEVELS; i-- > 0;) {
        buf_char(&text, i % 2 == 0 ? ']' : '}');
    }
    json_limits limits = json_default_limits;
    limits.max_depth = LEVELS;
    parsed p;
    parse_within(&p, buf_view(&text), &limits);
    assert_int_equal(p.err, BAY_OK);
    assert_int_equal(json_canon(&out, json_root(&p.doc), &p.memory, NULL), BAY_OK);
    assert_true(str_eq(buf_view(&out), buf_view(&text)));
    forget(&p);
    buf_fini(&text);
    buf_fini(&out);
}

/* RFC 8785, appendix B: doubles by their bits. */
static void numbers_are_ecmascript(void **state)
{
    (void)state;
    static const struct {
        uint64_t bits;
        const char *text;
    } cases[] = {
        {0x0000000000000000, "0"},
        {0x8000000000000000, "-0"}, /* the writer keeps the sign; the canonical form does not */
        {0x0000000000000001, "5e-324"},
        {0x8000000000000001, "-5e-324"},
        {0x7fefffffffffffff, "1.7976931348623157e+308"},
        {0xffefffffffffffff, "-1.7976931348623157e+308"},
        {0x4340000000000000, "9007199254740992"},
        {0xc340000000000000, "-9007199254740992"},
        {0x4340000000000001, "9007199254740994"},
        {0x4340000000000002, "9007199254740996"},
        {0x4430000000000000, "295147905179352830000"},
        {0x7fffffffffffffff, "null"},
        {0x7ff0000000000000, "null"},
        {0x44b52d02c7e14af5, "9.999999999999997e+22"},
        {0x44b52d02c7e14af6, "1e+23"},
        {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
        {0x444b1ae4d6e2ef4e, "999999999999999700000"},
        {0x444b1ae4d6e2ef4f, "999999999999999900000"},
        {0x444b1ae4d6e2ef50, "1e+21"},
        {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
        {0x3eb0c6f7a0b5ed8d, "0.000001"},
        {0x41b3de4355555553, "333333333.3333332"},
        {0x41b3de4355555554, "333333333.33333325"},
        {0x41b3de4355555555, "333333333.3333333"},
        {0x41b3de4355555556, "333333333.3333334"},
        {0x41b3de4355555557, "333333333.33333343"},
        {0xbecbf647612f3696, "-0.0000033333333333333333"},
        {0x43143ff3c1cb0959, "1424953923781206.2"},
        {0x3e70000000000000, "5.960464477539063e-8"}, /* 2^-24: the nearest digits fall short */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double number;
        buf out;
        json_writer writer;
        memcpy(&number, &cases[i].bits, sizeof(number));
        buf_init(&out, 64);
        json_writer_init(&writer, &out);
        json_put_double(&writer, number);
        if (!str_eq(buf_view(&out), str_of(cases[i].text))) {
            print_error("%s became %.*s\n", cases[i].text, BAY_STR(buf_view(&out)));
        }
        assert_true(str_eq(buf_view(&out), str_of(cases[i].text)));
        buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_has_no_canonical_form),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(has_one_form),
        cmocka_unit_test(nesting_needs_no_stack),
        cmocka_unit_test(numbers_are_ecmascript),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
