/* The reader: what it refuses and where, what it accepts, its limits, its failures, the tree. */
#include "case.h"

#include "base/mem.h"
#include "json/canon.h"

typedef struct refused {
    bay_str text;
    bay_err err;
    size_t offset;
} refused;

#define NO(literal, error, offset)                                                                 \
    {                                                                                              \
        STR_INIT(literal), BAY_ERR_##error, offset                                                 \
    }

static const refused refusals[] = {
    NO("", SYNTAX, 0),
    NO(" ", SYNTAX, 1),
    NO("\0", SYNTAX, 0),
    NO("nul", SYNTAX, 3),
    NO("nulL", SYNTAX, 3),
    NO("nullx", SYNTAX, 4),
    NO("True", SYNTAX, 0),
    NO("tru", SYNTAX, 3),
    NO("fals ", SYNTAX, 4),
    NO("1 2", SYNTAX, 2),
    NO("[1]]", SYNTAX, 3),
    NO("{}}", SYNTAX, 2),
    NO("]", SYNTAX, 0),
    NO("}", SYNTAX, 0),
    NO(",", SYNTAX, 0),
    NO("[", SYNTAX, 1),
    NO("[1", SYNTAX, 2),
    NO("[1,", SYNTAX, 3),
    NO("[1,]", SYNTAX, 3),
    NO("[,1]", SYNTAX, 1),
    NO("[1,,2]", SYNTAX, 3),
    NO("[1 2]", SYNTAX, 3),
    NO("[1:2]", SYNTAX, 2),
    NO("[1}", SYNTAX, 2),
    NO("[1\v]", SYNTAX, 2),
    NO("[1\f]", SYNTAX, 2),
    NO("[1\0]", SYNTAX, 2),
    NO("[1\x7f]", SYNTAX, 2),
    NO("[1]/**/", SYNTAX, 3),
    NO("[1]#", SYNTAX, 3),
    NO("{", SYNTAX, 1),
    NO("{]", SYNTAX, 1),
    NO("{,}", SYNTAX, 1),
    NO("{1:1}", SYNTAX, 1),
    NO("{'a':1}", SYNTAX, 1),
    NO("{a:1}", SYNTAX, 1),
    NO("{\"a\"", SYNTAX, 4),
    NO("{\"a\"}", SYNTAX, 4),
    NO("{\"a\",1}", SYNTAX, 4),
    NO("{\"a\"::1}", SYNTAX, 5),
    NO("{\"a\":", SYNTAX, 5),
    NO("{\"a\":}", SYNTAX, 5),
    NO("{\"a\":1", SYNTAX, 6),
    NO("{\"a\":1,", SYNTAX, 7),
    NO("{\"a\":1,}", SYNTAX, 7),
    NO("{\"a\":1 \"b\":2}", SYNTAX, 7),
    NO("{\"a\":1]", SYNTAX, 6),
    NO("{\"a\":{\"b\":[1}]}", SYNTAX, 12),
    NO("\"", SYNTAX, 1),
    NO("\"a", SYNTAX, 2),
    NO("\"a\nb\"", SYNTAX, 2),
    NO("\"a\0b\"", SYNTAX, 2),
    NO("\"\x1f\"", SYNTAX, 1),
    NO("\"0123456789012345678901234567890123456789\t\"", SYNTAX, 41),
    NO("\"\\", SYNTAX, 2),
    NO("\"\\\"", SYNTAX, 3),
    NO("\"\\x\"", SYNTAX, 2),
    NO("\"\\U0041\"", SYNTAX, 2),
    NO("\"\\'\"", SYNTAX, 2),
    NO("\"\\u\"", SYNTAX, 3),
    NO("\"\\u00", SYNTAX, 5),
    NO("\"\\u00g0\"", SYNTAX, 5),
    NO("\"\\u+041\"", SYNTAX, 3),
    NO("-", SYNTAX, 1),
    NO("+1", SYNTAX, 0),
    NO("--1", SYNTAX, 1),
    NO("01", SYNTAX, 1),
    NO("-01", SYNTAX, 2),
    NO(".5", SYNTAX, 0),
    NO("1.", SYNTAX, 2),
    NO("1.e1", SYNTAX, 2),
    NO("1e", SYNTAX, 2),
    NO("1e+", SYNTAX, 3),
    NO("1e1.5", SYNTAX, 3),
    NO("1e1e1", SYNTAX, 3),
    NO("0x10", SYNTAX, 1),
    NO("1_000", SYNTAX, 1),
    NO("-a", SYNTAX, 1),
    NO("NaN", SYNTAX, 0),
    NO("Infinity", SYNTAX, 0),
    NO("-Infinity", SYNTAX, 1),
    NO("\xef\xbb\xbf{}", SYNTAX, 0),
    NO("\xc3\xa9", SYNTAX, 0),
    NO("[\xc2\xa0]", SYNTAX, 1),
    NO("\"\x80\"", UTF8, 1),
    NO("\"\xc3\"", UTF8, 1),
    NO("\"\xc3", UTF8, 1),
    NO("\"\xc0\xaf\"", UTF8, 1),
    NO("\"\xc1\xbf\"", UTF8, 1),
    NO("\"\xe0\x9f\xbf\"", UTF8, 1),
    NO("\"\xf0\x8f\xbf\xbf\"", UTF8, 1),
    NO("\"\xed\xa0\x80\"", UTF8, 1),
    NO("\"\xed\xbf\xbf\"", UTF8, 1),
    NO("\"\xf4\x90\x80\x80\"", UTF8, 1),
    NO("\"\xf5\x80\x80\x80\"", UTF8, 1),
    NO("\"\xff\"", UTF8, 1),
    NO("\"\xe2\x82\"", UTF8, 1),
    NO("\"ok\", \xff", SYNTAX, 4), /* the earlier fault is the one reported */
    NO("\"ok\"\xff", UTF8, 4),
    NO("[1,\xff", UTF8, 3),
    NO("\"\\\xff\"", UTF8, 2),
    NO("\"0123456789012345678901234567890123456789\xe2\x82 0123456789012345678901234\"", UTF8, 41),
};

static void refuses_what_is_not_json(void **state)
{
    (void)state;
    EACH_SCAN(s, scans)
    {
        json_scan_use(scans[s]);
        for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
            parsed p;
            parse_within(&p, refusals[i].text, NULL);
            if (p.err != refusals[i].err || p.diag.offset != refusals[i].offset) {
                print_error("%s: case %zu (%.*s): %s at %zu\n", scans[s]->name, i,
                            BAY_STR(refusals[i].text), bay_err_text(p.err), p.diag.offset);
            }
            assert_int_equal(p.err, refusals[i].err);
            assert_int_equal(p.diag.code, refusals[i].err);
            assert_int_equal(p.diag.offset, refusals[i].offset);
            assert_null(p.doc.tape); /* outputs stay untouched */
            forget(&p);
        }
    }
    json_scan_use(NULL);
}

static const char *const accepted[] = {
    "0",
    "-0",
    "-0.0e-0",
    "10",
    "1.5",
    "1E5",
    "1e+5",
    "1e-5",
    "-1.25E-07",
    "123456789012345678901234567890",
    "null",
    "true",
    "false",
    "\"\"",
    "\"a\"",
    "[]",
    "{}",
    " [ ] ",
    "\t{\r\n}\n",
    "[[],{}]",
    "[1,2 , 3]",
    "{\"a\":1}",
    "{ \"a\" : 1 , \"b\" : [ ] }",
    "{\"\":0}",
    "{\"a\":1,\"a\":2}",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\uABCD\\uabcd\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"\x7f\"",
    "\"\xc2\x80\"",
    "\"\xdf\xbf\"",
    "\"\xe0\xa0\x80\"",
    "\"\xed\x9f\xbf\"",
    "\"\xee\x80\x80\"",
    "\"\xef\xbf\xbf\"",
    "\"\xf0\x90\x80\x80\"",
    "\"\xf4\x8f\xbf\xbf\"",
    "\"\xe2\x80\xa8\"",
    "[\"0123456789012345678901234567890123456789\\n\xe2\x82\xac 0123456789012345678901234567\"]",
    "{\n        \"indented\": [\n                1,\n                2\n        ]\n}\n",
};

static void accepts_what_is(void **state)
{
    (void)state;
    EACH_SCAN(s, scans)
    {
        json_scan_use(scans[s]);
        for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
            parsed p;
            json_val root = must_parse(&p, accepted[i]);
            size_t before = strspn(accepted[i], " \t\r\n");
            bay_str raw = json_raw(root);
            assert_int_equal(json_offset(root), before);
            assert_memory_equal(raw.at, accepted[i] + before, raw.len);
            assert_int_equal(strspn(accepted[i] + before + raw.len, " \t\r\n"),
                             strlen(accepted[i]) - before - raw.len);
            forget(&p);
        }
    }
    json_scan_use(NULL);
}

static const char whole[] =
    "{\"jsonrpc\":\"2.0\", \"id\" : -12.50e+3,\"r\\u00e9sult\":[true,false,null,{},[],"
    "\"caf\xc3\xa9 \\ud83d\\ude00 \xf0\x9f\x98\x80 0123456789012345678901234567890123456789\"]}";

static void every_truncation_is_refused(void **state)
{
    (void)state;
    EACH_SCAN(s, scans)
    {
        json_scan_use(scans[s]);
        for (size_t len = 0; len < sizeof(whole) - 1; len++) {
            parsed p;
            parse_within(&p, (bay_str){whole, len}, NULL);
            assert_true(p.err == BAY_ERR_SYNTAX || p.err == BAY_ERR_UTF8);
            assert_true(p.diag.offset <= len && p.diag.offset + 4 > len);
            forget(&p);
        }
        for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
            for (size_t len = 0; len < strlen(accepted[i]); len++) {
                parsed p; /* a truncated number may be a number: only ASan judges here */
                parse_within(&p, (bay_str){accepted[i], len}, NULL);
                forget(&p);
            }
        }
    }
    json_scan_use(NULL);
}

/* A faulty byte at every place of a long string, in every position of the vectors. */
static void finds_a_fault_wherever_it_stands(void **state)
{
    (void)state;
    static const refused faults[] = {
        NO("\n", SYNTAX, 0),         NO("\xff", UTF8, 0),
        NO("\x80", UTF8, 0),         NO("\xe2\x82", UTF8, 0),
        NO("\xed\xa0\x80", UTF8, 0), NO("\\q", SYNTAX, 1),
        NO("\xf0\x9f\x98", UTF8, 0), NO("\xf4\x90\x80\x80", UTF8, 0),
        NO("\xc3\xa9\xa9", UTF8, 2),
    };
    static const char *const fills[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    EACH_SCAN(s, scans)
    {
        json_scan_use(scans[s]);
        for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++) {
            for (size_t fill = 0; fill < 4; fill++) {
                for (size_t place = 0; place < 140; place++) {
                    buf text;
                    buf_init(&text, 4096);
                    buf_char(&text, '"');
                    for (size_t i = 0; i < place; i++) {
                        buf_str(&text, str_of(i % 7 == 3 ? "-" : fills[fill]));
                    }
                    size_t offset = text.len + faults[f].offset;
                    buf_str(&text, faults[f].text);
                    for (size_t i = 0; i < 40; i++) {
                        buf_str(&text, str_of(fills[fill]));
                    }
                    buf_char(&text, '"');
                    parsed p;
                    parse_within(&p, buf_view(&text), NULL);
                    assert_int_equal(p.err, faults[f].err);
                    assert_int_equal(p.diag.offset, offset);
                    forget(&p);
                    buf_fini(&text);
                }
            }
        }
    }
    json_scan_use(NULL);
}

/* Every pair of bytes, followed by none, one or two continuations or by another lead, at every
 * place around a vector's edge: a variant that misses one kind of error is found out. */
static void scans_agree_on_all_pairs(void **state)
{
    (void)state;
    static const char *const followers[] = {"aa",
                                            "\x80"
                                            "a",
                                            "\x80\x80", "\xbf\xbf", "\xc3\xa9"};
    const json_scan *scans[JSON_SCAN_MAX];
    size_t count = json_scan_list(scans);
    unsigned char text[160];
    for (size_t place = 59; place < 66; place++) {
        memset(text, 'a', sizeof(text));
        for (size_t f = 0; f < sizeof(followers) / sizeof(followers[0]); f++) {
            memcpy(text + place + 2, followers[f], 2);
            for (unsigned pair = place == 60 ? 0 : 0x8000; pair < 0x10000; pair++) {
                text[place] = (unsigned char)(pair >> 8);
                text[place + 1] = (unsigned char)pair;
                const unsigned char *end = text + sizeof(text);
                const unsigned char *expected = scans[0]->utf8(text, end);
                const unsigned char *expected_stop = scans[0]->string(text, end);
                for (size_t s = 1; s < count; s++) {
                    assert_ptr_equal(scans[s]->utf8(text, end), expected);
                    assert_ptr_equal(scans[s]->string(text, end), expected_stop);
                }
            }
        }
    }
}

/* Every code point: exactly the scalar values are well formed. */
static void every_code_point(void **state)
{
    (void)state;
    EACH_SCAN(s, scans)
    {
        unsigned char text[66];
        for (uint32_t code = 0x80; code < 0x120000; code += code < 0x11000 ? 1 : 37) {
            memset(text, 'x', sizeof(text));
            size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
            unsigned char *at = text + 30;
            for (size_t i = len; i-- > 1;) {
                at[i] = (unsigned char)(0x80 | (code >> (6 * (len - 1 - i)) & 0x3f));
            }
            at[0] = (unsigned char)((0xf0 << (4 - len) & 0xff) | code >> (6 * (len - 1)));
            bool is_scalar = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
            assert_ptr_equal(scans[s]->utf8(text, text + sizeof(text)),
                             is_scalar ? text + sizeof(text) : at);
        }
    }
}

static void depth_is_bounded_without_recursion(void **state)
{
    (void)state;
    enum { BRACKETS = 100000 };
    char *text = malloc(BRACKETS * 2);
    assert_non_null(text);
    memset(text, '[', BRACKETS);
    memset(text + BRACKETS, ']', BRACKETS);
    parsed p;
    parse_within(&p, (bay_str){text, BRACKETS}, NULL);
    assert_int_equal(p.err, BAY_ERR_DEPTH);
    assert_int_equal(p.diag.offset, 128);
    forget(&p);

    json_limits limits = json_default_limits;
    limits.max_depth = BRACKETS;
    parse_within(&p, (bay_str){text, BRACKETS * 2}, &limits);
    assert_int_equal(p.err, BAY_OK);
    assert_int_equal(p.doc.count, BRACKETS);
    assert_int_equal(json_check_duplicates(json_root(&p.doc), NULL), BAY_OK);
    forget(&p);
    limits.max_depth = BRACKETS - 1;
    parse_within(&p, (bay_str){text, BRACKETS * 2}, &limits);
    assert_int_equal(p.err, BAY_ERR_DEPTH);
    forget(&p);
    limits.max_depth = 0;
    parse_within(&p, STR("[]"), &limits);
    assert_int_equal(p.err, BAY_ERR_DEPTH);
    forget(&p);
    parse_within(&p, STR("1"), &limits);
    assert_int_equal(p.err, BAY_OK);
    forget(&p);
    free(text);
}

static void limits_hold_exactly(void **state)
{
    (void)state;
    const bay_str text = STR(" {\"a\":[1,2],\"b\":{}} "); /* {, "a", [, 1, 2, "b", {} */
    json_limits limits = {text.len, 2, 7};
    parsed p;
    parse_within(&p, text, &limits);
    assert_int_equal(p.err, BAY_OK);
    assert_int_equal(p.doc.count, 7);
    forget(&p);
    json_limits shorter = {text.len - 1, 2, 7};
    parse_within(&p, text, &shorter);
    assert_int_equal(p.err, BAY_ERR_LIMIT);
    forget(&p);
    json_limits shallower = {text.len, 1, 7};
    parse_within(&p, text, &shallower);
    assert_int_equal(p.err, BAY_ERR_DEPTH);
    assert_int_equal(p.diag.offset, 6);
    forget(&p);
    for (uint32_t values = 0; values < 7; values++) {
        json_limits fewer = {text.len, 2, values};
        parse_within(&p, text, &fewer);
        assert_int_equal(p.err, BAY_ERR_LIMIT);
        assert_true(p.diag.offset < text.len);
        forget(&p);
    }
}

static bay_str many(buf *text, size_t values)
{
    buf_init(text, 1U << 20);
    buf_char(text, '[');
    for (size_t i = 1; i < values; i++) {
        buf_str(text, i > 1 ? STR(",1") : STR("1"));
    }
    buf_char(text, ']');
    return buf_view(text);
}

static void the_index_grows_at_every_size(void **state)
{
    (void)state;
    for (size_t values = 120; values < 140; values++) {
        buf text;
        bay_str all = many(&text, values);
        json_limits limits = {1U << 20, 1, (uint32_t)values};
        parsed p;
        parse_within(&p, all, &limits);
        assert_int_equal(p.err, BAY_OK);
        assert_int_equal(json_count(json_root(&p.doc)), values - 1);
        forget(&p);
        limits.max_values--;
        parse_within(&p, all, &limits);
        assert_int_equal(p.err, BAY_ERR_LIMIT);
        forget(&p);
        buf_fini(&text);
    }
}

static void the_arena_bounds_the_index(void **state)
{
    (void)state;
    buf text;
    bay_str all = many(&text, 1000);
    arena memory;
    json_doc doc;
    bay_diag diag;
    arena_init(&memory, 1000 * 16);
    assert_int_equal(json_parse(&doc, all, NULL, &memory, &diag), BAY_OK);
    arena_fini(&memory);
    arena_init(&memory, 1000 * 16 - 1);
    assert_int_equal(json_parse(&doc, all, NULL, &memory, &diag), BAY_ERR_LIMIT);
    assert_int_equal(json_parse(&doc, all, NULL, &memory, NULL), BAY_ERR_LIMIT);
    arena_fini(&memory);
    buf_fini(&text);
}

typedef struct failing {
    size_t left; /* allocations that still succeed */
    size_t live;
} failing;

static void *failing_resize(void *old, size_t bytes, void *user)
{
    failing *self = user;
    if (self->left == 0) {
        return NULL;
    }
    self->left--;
    self->live += old == NULL;
    return realloc(old, bytes);
}

static void *failing_alloc(size_t bytes, void *user)
{
    return failing_resize(NULL, bytes, user);
}

static void failing_release(void *old, void *user)
{
    failing *self = user;
    self->live -= old != NULL;
    free(old);
}

static void *libc_alloc(size_t bytes, void *user)
{
    (void)user;
    return malloc(bytes);
}

static void *libc_resize(void *old, size_t bytes, void *user)
{
    (void)user;
    return realloc(old, bytes);
}

static void libc_release(void *old, void *user)
{
    (void)user;
    free(old);
}

static const mem_hooks libc_hooks = {libc_alloc, libc_resize, libc_release, NULL};

/* Reads, looks for duplicates, decodes, makes canonical: the first failure, or BAY_OK. */
static bay_err use_all(bay_str text)
{
    arena memory;
    arena_init(&memory, 1U << 20);
    json_doc doc;
    bay_diag diag;
    bay_err err = json_parse(&doc, text, NULL, &memory, &diag);
    if (err == BAY_OK) {
        err = json_check_duplicates(json_root(&doc), &diag);
    }
    json_iter iter = err == BAY_OK ? json_iter_of(json_root(&doc)) : (json_iter){0};
    while (err == BAY_OK && json_next(&iter)) {
        bay_str key;
        err = json_str(iter.key, &memory, &key);
    }
    buf out;
    buf_init(&out, 1U << 20);
    if (err == BAY_OK) {
        err = json_canon(&out, json_root(&doc), &memory, &diag);
    }
    buf_fini(&out);
    arena_fini(&memory);
    return err;
}

static void survives_each_failed_allocation(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 1U << 20);
    buf_char(&text, '{');
    for (int i = 0; i < 300; i++) {
        buf_printf(&text, "%s\"\\u00e9%d\":%d", i > 0 ? "," : "", i, i);
    }
    buf_char(&text, '}');
    failing user = {0};
    const mem_hooks hooks = {failing_alloc, failing_resize, failing_release, &user};
    bay_err err = BAY_ERR_NOMEM;
    size_t failures = 0;
    mem_set_hooks(&hooks);
    for (size_t allowed = 0; err != BAY_OK && allowed < 100; allowed++) {
        user = (failing){allowed, 0};
        err = use_all(buf_view(&text));
        failures += err == BAY_ERR_NOMEM;
        if (user.live != 0 || (err != BAY_OK && err != BAY_ERR_NOMEM)) {
            break;
        }
    }
    mem_set_hooks(&libc_hooks);
    assert_int_equal(err, BAY_OK);
    assert_int_equal(user.live, 0);
    assert_true(failures >= 5); /* growth twice, the arena's chunks, the two of the set */
    buf_fini(&text);
}

static void missing_is_harmless(void **state)
{
    (void)state;
    json_val none = JSON_NONE;
    bay_str text = STR("untouched");
    int64_t number = 5;
    double real = 5;
    json_val picked[1];
    json_iter iter = json_iter_of(none);
    assert_int_equal(json_kind_of(none), JSON_MISSING);
    assert_int_equal(json_raw(none).len, 0);
    assert_int_equal(json_count(none), 0);
    assert_int_equal(json_offset(none), 0);
    assert_int_equal(json_kind_of(json_get(none, STR("a"))), JSON_MISSING);
    assert_int_equal(json_kind_of(json_item(none, 0)), JSON_MISSING);
    assert_int_equal(json_kind_of(json_pointer(none, STR("/a"))), JSON_MISSING);
    assert_int_equal(json_kind_of(json_pointer(none, STR(""))), JSON_MISSING);
    assert_false(json_next(&iter));
    assert_int_equal(json_str(none, NULL, &text), BAY_ERR_TYPE);
    assert_str(text, "untouched");
    assert_int_equal(json_int64(none, &number), BAY_ERR_TYPE);
    assert_int_equal(json_double(none, &real), BAY_ERR_TYPE);
    assert_int_equal(number, 5);
    assert_false(json_true(none));
    assert_false(json_is_integer(none));
    assert_false(json_str_eq(none, STR("")));
    assert_int_equal(json_pick(none, &text, 1, picked, NULL), BAY_ERR_TYPE);
    assert_int_equal(json_check_duplicates(none, NULL), BAY_OK);
}

static void walks_the_tree(void **state)
{
    (void)state;
    parsed p;
    json_val root = must_parse(&p, " {\"a\":[1, [2,3] ,{\"x\":null}],\"b\" : \"t\",\"c\":true} ");
    assert_int_equal(json_offset(root), 1);
    assert_int_equal(json_count(root), 3);
    json_val a = json_get(root, STR("a"));
    assert_str(json_raw(a), "[1, [2,3] ,{\"x\":null}]");
    assert_int_equal(json_count(a), 3);
    assert_str(json_raw(json_item(a, 0)), "1");
    assert_str(json_raw(json_item(a, 1)), "[2,3]");
    assert_str(json_raw(json_item(json_item(a, 1), 1)), "3");
    assert_int_equal(json_kind_of(json_item(a, 3)), JSON_MISSING);
    assert_int_equal(json_kind_of(json_item(root, 0)), JSON_MISSING);
    assert_int_equal(json_kind_of(json_get(a, STR("x"))), JSON_MISSING);
    assert_int_equal(json_kind_of(json_get(root, STR("x"))), JSON_MISSING); /* not the inner one */
    assert_int_equal(json_kind_of(json_get(root, STR(""))), JSON_MISSING);
    assert_true(json_true(json_get(root, STR("c"))));
    assert_false(json_true(json_get(root, STR("b"))));
    const char *const keys[] = {"a", "b", "c"};
    size_t steps = 0;
    for (json_iter it = json_iter_of(root); json_next(&it); steps++) {
        assert_true(json_str_eq(it.key, str_of(keys[steps])));
    }
    assert_int_equal(steps, 3);
    steps = 0;
    for (json_iter it = json_iter_of(a); json_next(&it); steps++) {
        assert_int_equal(json_kind_of(it.key), JSON_MISSING);
    }
    assert_int_equal(steps, 3);
    forget(&p);
}

static void picks_members(void **state)
{
    (void)state;
    parsed p;
    json_val root =
        must_parse(&p, "{\"id\":1,\"m\\u0065thod\":\"x\",\"x\":{\"id\":9},\"y\":1,\"y\":2}");
    const bay_str keys[] = {STR("method"), STR("params"), STR("id")};
    json_val out[3];
    assert_int_equal(json_pick(root, keys, 3, out, NULL), BAY_OK);
    assert_str(json_raw(out[0]), "\"x\"");
    assert_int_equal(json_kind_of(out[1]), JSON_MISSING);
    assert_str(json_raw(out[2]), "1");
    const bay_str twice[] = {STR("id"), STR("y")};
    size_t which = 7;
    json_val before = out[0];
    assert_int_equal(json_pick(root, twice, 2, out, &which), BAY_ERR_DUPLICATE);
    assert_int_equal(which, 1);
    assert_int_equal(out[0].at, before.at);
    assert_int_equal(json_pick(root, twice, 2, out, NULL), BAY_ERR_DUPLICATE);
    assert_int_equal(json_pick(root, keys, 33, out, NULL), BAY_ERR_INVALID);
    assert_int_equal(json_pick(root, keys, 0, out, NULL), BAY_OK);
    assert_str(json_raw(json_get(root, STR("y"))), "1"); /* the first */
    forget(&p);
    /* the same name in two spellings */
    root = must_parse(&p, "{\"id\":1,\"\\u0069d\":2}");
    assert_int_equal(json_pick(root, &keys[2], 1, out, &which), BAY_ERR_DUPLICATE);
    forget(&p);
}

static void finds_duplicates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t offset; /* 0: none */
    } cases[] = {
        {"{}", 0},
        {"{\"a\":1,\"b\":1}", 0},
        {"{\"a\":1,\"A\":1}", 0},
        {"{\"a\":{\"b\":1},\"b\":{\"a\":1}}", 0},
        {"[\"a\",\"a\"]", 0},
        {"{\"a\":1,\"a\":1}", 7},
        {"{\"a\":1,\"\\u0061\":1}", 7},
        {"{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":1}", 18},
        {"{\"\\ud800\":1,\"\\uD800\":1}", 12},
        {"{\"\\ud800\":1,\"\\ud801\":1}", 0},
        {"{\"\":1,\"\":1}", 6},
        {"[1,{\"a\":[{\"x\":0,\"x\":0}]}]", 16},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        parsed p;
        json_val root = must_parse(&p, cases[i].text);
        bay_diag diag = {0};
        assert_int_equal(json_check_duplicates(root, &diag),
                         cases[i].offset > 0 ? BAY_ERR_DUPLICATE : BAY_OK);
        assert_int_equal(diag.offset, cases[i].offset);
        forget(&p);
    }
}

static void finds_duplicates_among_many(void **state)
{
    (void)state;
    enum { MEMBERS = 200000 };
    buf text;
    buf_init(&text, 16U << 20);
    buf_char(&text, '{');
    for (int i = 0; i < MEMBERS; i++) {
        buf_printf(&text, "\"k%d\":0,", i);
    }
    size_t offset = text.len;
    buf_lit(&text, "\"\\u006b777\":0}");
    parsed p;
    parse_within(&p, buf_view(&text), NULL);
    assert_int_equal(p.err, BAY_OK);
    bay_diag diag;
    assert_int_equal(json_check_duplicates(json_root(&p.doc), &diag), BAY_ERR_DUPLICATE);
    assert_int_equal(diag.offset, offset);
    assert_int_equal(json_count(json_root(&p.doc)), MEMBERS + 1);
    forget(&p);
    text.at[offset + 6] = 'c'; /* \u006c777: another name */
    parse_within(&p, buf_view(&text), NULL);
    assert_int_equal(json_check_duplicates(json_root(&p.doc), &diag), BAY_OK);
    forget(&p);
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_is_not_json),
        cmocka_unit_test(accepts_what_is),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(finds_a_fault_wherever_it_stands),
        cmocka_unit_test(scans_agree_on_all_pairs),
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(depth_is_bounded_without_recursion),
        cmocka_unit_test(limits_hold_exactly),
        cmocka_unit_test(the_index_grows_at_every_size),
        cmocka_unit_test(the_arena_bounds_the_index),
        cmocka_unit_test(survives_each_failed_allocation),
        cmocka_unit_test(missing_is_harmless),
        cmocka_unit_test(walks_the_tree),
        cmocka_unit_test(picks_members),
        cmocka_unit_test(finds_duplicates),
        cmocka_unit_test(finds_duplicates_among_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
