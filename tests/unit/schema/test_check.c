/* Every keyword, by cases of our own: for each, what must fail before what must hold. */
#include "case.h"

typedef struct verdict {
    const char *text;
    const char *fails; /* instances, with a ` between them */
    const char *holds;
} verdict;

#define D07 "\"$schema\":\"http://json-schema.org/draft-07/schema#\","

static const verdict verdicts[] = {
    {"false", "null`1`{}", ""},
    {"true", "", "null`[]"},
    {"{}", "", "null`1"},
    {"{\"type\":\"integer\"}", "1.5`\"1\"`1e-1`null",
     "1`1.0`1e2`-0`123456789012345678901234567890"},
    {"{\"type\":\"number\"}", "\"1\"`true", "1`1.5`1e400"},
    {"{\"type\":[\"null\",\"boolean\"]}", "0`\"null\"`[]", "null`true`false"},
    {"{\"minimum\":1.5}", "1`1.4999999999999999999999`-2e400", "1.5`15e-1`2`\"1\""},
    {"{\"maximum\":9007199254740993}", "9007199254740994`1e17",
     "9007199254740993`9007199254740992"},
    {"{\"exclusiveMinimum\":0}", "0`-0.0`0e5`-1", "1e-400`1"},
    {"{\"exclusiveMaximum\":0.1}", "0.1`0.10`1e-1`1", "0.09999999999999999999`-1"},
    {"{\"multipleOf\":0.01}", "0.001`1.005", "19.99`0`1e300`4.35"},
    {"{\"multipleOf\":7}", "8`1e3", "7`-14`0`7.0`\"8\""},
    {"{\"minLength\":2}", "\"\"`\"\\u00e9\"`\"\\ud83d\\ude00\"", "\"ab\"`\"\\u00e9\\u00e9\"`7"},
    {"{\"maxLength\":1}", "\"ab\"`\"\\u0061\\u0062\"", "\"\"`\"\\ud83d\\ude00\"`\"\xc3\xa9\""},
    {"{\"maxLength\":1e0}", "\"ab\"", "\"a\""},
    {"{\"minLength\":1e400}", "\"ab\"", "7"},
    {"{\"enum\":[1,\"a\",{\"a\":[1,2],\"b\":null},[]]}", "2`\"A\"`{\"a\":[2,1],\"b\":null}`[[]]`{}",
     "1.0`10e-1`\"\\u0061\"`{\"b\":null,\"a\":[1,2.0]}`[]"},
    {"{\"enum\":[]}", "1`null", ""},
    {"{\"const\":false}", "0`null`\"false\"", "false"},
    {"{\"const\":[{\"a\":0}]}", "[{\"a\":false}]`[{}]", "[{\"a\":-0.0}]"},
    {"{\"minItems\":1}", "[]", "[0]`{}"},
    {"{\"maxItems\":1}", "[0,0]", "[0]`[]"},
    {"{\"uniqueItems\":true}",
     "[1,1.0]`[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]`[[1],[1e0]]`[\"a\",\"\\u0061\"]",
     "[1,true]`[0,false]`[[1],[2]]`[]`[\"1\",1]"},
    {"{\"uniqueItems\":false}", "", "[1,1]"},
    {"{\"items\":{\"type\":\"null\"}}", "[1]`[null,1]", "[]`[null]`{\"0\":1}"},
    {"{\"prefixItems\":[{\"type\":\"null\"},{\"type\":\"integer\"}],\"items\":false}",
     "[1]`[null,null]`[null,1,2]", "[]`[null]`[null,1]"},
    {"{\"contains\":{\"const\":1}}", "[]`[2]", "[1]`[2,1.0]`1"},
    {"{\"contains\":{\"const\":1},\"minContains\":2,\"maxContains\":3}", "[1]`[1,1,1,1]`[]",
     "[1,1]`[1,2,1,1]"},
    {"{\"contains\":{\"const\":1},\"minContains\":0}", "", "[]`[2]"},
    {"{\"minContains\":5}", "", "[]"},
    {"{\"minProperties\":1}", "{}", "{\"a\":1}`[]"},
    {"{\"maxProperties\":1}", "{\"a\":1,\"b\":1}", "{\"a\":1}"},
    {"{\"required\":[\"a\",\"b\"]}", "{}`{\"a\":1}", "{\"b\":1,\"\\u0061\":1}`[]"},
    {"{\"properties\":{\"a\":{\"type\":\"null\"},\"b\":false}}",
     "{\"a\":1}`{\"b\":1}`{\"\\u0061\":1}", "{}`{\"a\":null}`{\"c\":1}"},
    {"{\"properties\":{\"a\":true},\"patternProperties\":{\"^x\":{\"type\":\"integer\"},\"y$\":{"
     "\"minimum\":5}},\"additionalProperties\":{\"type\":\"null\"}}",
     "{\"x\":null}`{\"xy\":1}`{\"b\":1}`{\"\\u0078\":null}",
     "{\"a\":0}`{\"xy\":5}`{\"y\":9}`{\"b\":null}"},
    {"{\"propertyNames\":{\"pattern\":\"^[a-z]+$\"}}", "{\"A\":1}`{\"\":1}", "{\"a\":1}`{}"},
    {"{\"dependentRequired\":{\"a\":[\"b\"],\"c\":[]}}", "{\"a\":1}",
     "{\"a\":1,\"b\":1}`{\"c\":1}`{}"},
    {"{\"dependentSchemas\":{\"a\":{\"required\":[\"b\"]}}}", "{\"a\":1}",
     "{\"a\":1,\"b\":1}`{\"c\":1}"},
    {"{\"dependencies\":{\"a\":[\"b\"],\"c\":{\"maxProperties\":1}}}",
     "{\"a\":1}`{\"c\":1,\"d\":1}", "{\"a\":1,\"b\":1}`{\"c\":1}"},
    {"{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}", "0`3", "1`2"},
    {"{\"anyOf\":[{\"minimum\":2},{\"type\":\"string\"}]}", "1", "2`\"a\""},
    {"{\"oneOf\":[{\"minimum\":2},{\"maximum\":4}]}", "3`\"a\"", "1`5"},
    {"{\"not\":{\"type\":\"integer\"}}", "1", "1.5`\"a\""},
    {"{\"if\":{\"type\":\"integer\"},\"then\":{\"minimum\":1},\"else\":{\"type\":\"string\"}}",
     "0`null", "1`\"a\""},
    {"{\"then\":false,\"else\":false}", "", "1"},
    {"{\"$ref\":\"#/$defs/a~1b%25\",\"maximum\":3,\"$defs\":{\"a/b%\":{\"type\":\"integer\"}}}",
     "1.5`4", "3"},
    {"{\"properties\":{\"next\":{\"$ref\":\"#\"}},\"additionalProperties\":false}",
     "{\"next\":{\"last\":1}}", "{\"next\":{\"next\":{}}}"},
    {"{\"$id\":\"http://x/a/b\",\"$ref\":\"../c#n\",\"$defs\":{\"c\":{\"$id\":\"/"
     "c\",\"$defs\":{\"n\":{"
     "\"$anchor\":\"n\",\"type\":\"null\"}}}}}",
     "1", "null"},
    {"{\"$id\":\"http://x/"
     "tree\",\"$dynamicAnchor\":\"node\",\"$ref\":\"base\",\"required\":[\"v\"],"
     "\"$defs\":{\"b\":{\"$id\":\"base\",\"$dynamicAnchor\":\"node\",\"properties\":{\"child\":{"
     "\"$dynamicRef\":\"#node\"}}}}}",
     "{}`{\"v\":1,\"child\":{}}", "{\"v\":1,\"child\":{\"v\":2}}"},
    {"{\"allOf\":[{\"properties\":{\"a\":true}}],\"properties\":{\"b\":true},"
     "\"unevaluatedProperties\":false}",
     "{\"c\":1}`{\"a\":1,\"c\":1}", "{\"a\":1,\"b\":2}`{}"},
    {"{\"anyOf\":[{\"properties\":{\"a\":{\"const\":1}},\"required\":[\"a\"]},{\"properties\":{"
     "\"b\":true}"
     "}],\"unevaluatedProperties\":{\"type\":\"null\"}}",
     "{\"a\":2}`{\"a\":1,\"c\":0}", "{\"a\":1,\"b\":2}`{\"a\":null}`{\"c\":null}"},
    {"{\"if\":{\"properties\":{\"a\":{\"const\":1}},\"required\":[\"a\"]},\"else\":{\"properties\":"
     "{\"b\":"
     "true}},\"unevaluatedProperties\":false}",
     "{\"a\":2}`{\"a\":1,\"b\":1}", "{\"a\":1}`{\"b\":1}"},
    {"{\"not\":{\"properties\":{\"a\":false}},\"unevaluatedProperties\":false}", "{\"a\":1}`{}",
     ""},
    {"{\"prefixItems\":[true],\"contains\":{\"type\":\"null\"},\"unevaluatedItems\":false}",
     "[1]`[1,2,null]", "[1,null]`[null,null]"},
    {"{\"allOf\":[{\"items\":{\"type\":\"integer\"}}],\"unevaluatedItems\":false}", "[null]",
     "[1,2]"},
    {"{\"unevaluatedItems\":false}", "[1]", "[]`1`{\"a\":1}"},
    {"{" D07 "\"items\":[{\"type\":\"null\"}],\"additionalItems\":false}", "[1]`[null,null]",
     "[null]"},
    {"{" D07 "\"prefixItems\":[false],\"unevaluatedItems\":false}", "", "[1]"},
    {"{" D07
     "\"$ref\":\"#/definitions/a\",\"minimum\":9,\"definitions\":{\"a\":{\"type\":\"number\"}}}",
     "null", "1"},
    {"{" D07 "\"definitions\":{\"a\":{\"$id\":\"#here\",\"type\":\"null\"}},\"allOf\":[{\"$ref\":"
     "\"#here\"}]}",
     "1", "null"},
    {"{" D07 "\"format\":\"uuid\"}", "", "\"no\""},
    {"{\"contentEncoding\":\"base64\",\"title\":1,\"x-own\":{\"type\":7}}", "", "\"%\""},
};

static void each(const verdict *one, const char *instances, bay_err expected)
{
    schema *compiled = must_compile(one->text);
    const char *at = instances;
    while (*at != '\0') {
        size_t len = strcspn(at, "`");
        char instance[256];
        assert_true(len < sizeof(instance));
        memcpy(instance, at, len);
        instance[len] = '\0';
        bay_err err = check_text_of(compiled, instance, NULL);
        if (err != expected) {
            print_error("%s\n%s\n", one->text, instance);
        }
        assert_int_equal(err, expected);
        at += len + (at[len] == '`');
    }
    schema_free(compiled);
}

static void keywords(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
        each(&verdicts[i], verdicts[i].fails, BAY_ERR_INVALID);
        each(&verdicts[i], verdicts[i].holds, BAY_OK);
    }
}

#define FORMAT(name, fails, holds)                                                                 \
    {                                                                                              \
        "{\"format\":\"" name "\"}", fails, holds                                                  \
    }

static const verdict formats[] = {
    FORMAT("date", "\"2026-02-29\"`\"2026-1-01\"`\"2026-13-01\"`\"20260101\"`\"2026-01-01 \"",
           "\"2024-02-29\"`7`\"2026-12-31\""),
    FORMAT("time", "\"24:00:00Z\"`\"12:00:00\"`\"12:00:60Z\"`\"12:00:00+24:00\"`\"12:00:00.Z\"",
           "\"12:00:00z\"`\"23:59:60Z\"`\"00:59:60+01:00\"`\"12:00:00.123-08:00\""),
    FORMAT("date-time", "\"2026-01-31 09:30:00Z\"`\"2026-01-31T09:30Z\"`\"2026-01-31\"",
           "\"2026-01-31T09:30:00Z\"`\"2026-01-31t09:30:00.5+01:30\""),
    FORMAT("duration", "\"P\"`\"PT\"`\"P1D1Y\"`\"P1H\"`\"P1WT1H\"`\"PT1H1S\"`\"W\"`\"PW\"",
           "\"P1Y2M3DT4H5M6S\"`\"P2W\"`\"PT0S\""),
    FORMAT("email", "\"joe\"`\"@x\"`\"joe@\"`\"a..b@x\"`\"a b@x\"`\"joe@[1.2.3]\"`\"a@-x\"",
           "\"joe@x.org\"`\"\\\"a b\\\"@x\"`\"joe@[IPv6:::1]\"`\"joe@[127.0.0.1]\""),
    FORMAT("idn-email", "\"\xc3\xa9\"`\"\xc3\xa9@\xcc\x80\"", "\"\xc3\xa9@\xc3\xa9.org\""),
    FORMAT("hostname", "\"\"`\"a.\"`\"a..b\"`\"-a\"`\"a-\"`\"a_b\"`\"xn--X\"`\"xn--zzzz-\"",
           "\"a\"`\"a-b.C\"`\"1.x\"`\"xn--bcher-kva.de\"`\"a--b\""),
    FORMAT("idn-hostname",
           "\"\"`\"b\xc3\xbc..x\"`\"\xcc\x80x\"`\"a\xd7\x90\"`\"xn--bcher-\"`\"ab--c\"",
           "\"b\xc3\xbc"
           "cher.de\"`\"a\xe3\x80\x82"
           "b\"`\"xn--bcher-kva.de\""),
    FORMAT("ipv4", "\"1.2.3\"`\"1.2.3.256\"`\"01.2.3.4\"`\"1.2.3.4.5\"`\"1.2.3.\"`\"\"",
           "\"0.0.0.0\"`\"255.255.255.255\""),
    FORMAT("ipv6",
           "\"1:2:3:4:5:6:7\"`\"1::2::3\"`\":1:2:3:4:5:6:7\"`\"::12345\"`\"::1.2.3\"`\":::\"`\"\"",
           "\"::\"`\"1:2:3:4:5:6:7:8\"`\"::ffff:1.2.3.4\"`\"1::\""),
    FORMAT(
        "uri",
        "\"a/b\"`\"//x\"`\"http://x y\"`\"http://x/%zz\"`\"http://[::1\"`\"1a:b\"`\"http://x:a\"",
        "\"http://u@[::1]:80/p?q#f\"`\"urn:a:b\"`\"a:\"`\"http://[v1.x]/\""),
    FORMAT("uri-reference", "\"\\\\\\\\a\"`\"/%\"`\"1:b\"`\"\xc3\xa9\"",
           "\"\"`\"../a?b#c\"`\"//x\"`\"./a:b\""),
    FORMAT("iri", "\"\xc3\xa9\"`\"http://x/\\n\"", "\"http://\xc3\xa9/\xc3\xa9?\xc3\xa9\""),
    FORMAT("iri-reference", "\"a b\"`\"\xee\x80\x80\"", "\"\xc3\xa9/..\"`\"?\xee\x80\x80\""),
    FORMAT("uri-template", "\"{\"`\"{}\"`\"}\"`\"{a:0}\"`\"{a:10000}\"`\"{a b}\"`\"a b\"`\"%4\"",
           "\"\"`\"/{a}/{+b,c*}{?d:3}\"`\"%41\""),
    FORMAT("json-pointer", "\"a\"`\"/~\"`\"/~2\"", "\"\"`\"/\"`\"/a~0~1/0\""),
    FORMAT("relative-json-pointer", "\"\"`\"/a\"`\"01\"`\"0##\"`\"-1\"", "\"0\"`\"1#\"`\"10/a\""),
    FORMAT("uuid",
           "\"2eb8aa08aa9811eab4aa73b441d16380\"`\"\"`\"2eb8aa08-aa98-11ea-b4aa-73b441d1638g\"",
           "\"2EB8AA08-aa98-11ea-b4aa-73b441d16380\""),
    FORMAT("regex",
           "\"(\"`\"a**\"`\"\\\\a\"`\"[b-a]\"`\"\\\\_\"`\"{\"`\"(?<1>a)\"`\"\\\\u{110000}\"`\"]\"",
           "\"\"`\"^(?<a>b)\\\\k<a>$\"`\"(?<=a+)b\"`\"[^]\"`\"\\\\p{Lu}\""),
};

static void every_format(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        each(&formats[i], formats[i].fails, BAY_ERR_INVALID);
        each(&formats[i], formats[i].holds, BAY_OK);
    }
}

#define PATTERN(text, fails, holds)                                                                \
    {                                                                                              \
        "{\"pattern\":\"" text "\"}", fails, holds                                                 \
    }

static const verdict patterns[] = {
    PATTERN("^abc$", "\"abc\\n\"`\"xabc\"", "\"abc\"`7"),
    PATTERN("b", "\"a\"", "\"abc\""),
    PATTERN("", "", "\"\""),
    PATTERN("^.$", "\"\\n\"`\"\\r\"`\"\\u2028\"`\"\"", "\"a\"`\"\\u0085\"`\"\\ud83d\\ude00\""),
    PATTERN("^\\\\d$", "\"\\u09ea\"", "\"4\""),
    PATTERN("^[^\\\\d]$", "\"4\"", "\"\\u09ea\""),
    PATTERN("^[\\\\D]$", "\"4\"", "\"a\"`\"\\u09ea\""),
    PATTERN("^[\\\\W\\\\d]$", "\"a\"`\"_\"", "\"4\"`\"-\"`\"\\u00e9\""),
    PATTERN("^[\\\\S]$", "\" \"`\"\\ufeff\"`\"\\u3000\"", "\"a\"`\"\\u200b\""),
    PATTERN("^\\\\w\\\\b-$", "\"\\u00e9-\"", "\"a-\""),
    PATTERN("^[[:alpha:]]$", "\"a\"", "\":]\"`\"a]\""),
    PATTERN("^\\\\cJ\\\\x41\\\\u0042\\\\u{43}\\\\0$", "\"ABC\"", "\"\\nABC\\u0000\""),
    PATTERN("^\\\\ud83d\\\\ude00$", "\"a\"", "\"\\ud83d\\ude00\""),
    PATTERN("^\\\\p{Letter}\\\\p{Script=Greek}\\\\P{gc=Lu}$", "\"aaA\"`\"a\\u03b1A\"",
            "\"a\\u03b1a\""),
    PATTERN("^[]$", "\"\"`\"a\"", ""),
    PATTERN("^[^]$", "\"\"", "\"\\n\""),
    PATTERN("^(a)?\\\\1b$", "\"ab\"", "\"b\"`\"aab\""),
    PATTERN("^a{,2}$", "\"a\"`\"aa\"", "\"a{,2}\""),
    PATTERN("^{a}]\\\\-$", "\"a\"", "\"{a}]-\""),
    PATTERN("^a+?b{2}c{1,}d{0,1}$", "\"abc\"", "\"aabbcc\""),
    PATTERN("^(?:a|b)(?=c)(?!d)c(?<=c)(?<!d)$", "\"c\"", "\"bc\""),
    PATTERN("^[\\\\w-.]+$", "\"a b\"", "\"a-b.c\""),
    PATTERN("^#( )x$", "\"#x\"", "\"# x\""),
};

static void expressions_mean_what_ecma_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        each(&patterns[i], patterns[i].fails, BAY_ERR_INVALID);
        each(&patterns[i], patterns[i].holds, BAY_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keywords),
        cmocka_unit_test(every_format),
        cmocka_unit_test(expressions_mean_what_ecma_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
