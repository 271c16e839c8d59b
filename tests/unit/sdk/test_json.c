/* JSON of programs: whatever is written is valid or an error, and says what the program said; what
 * is read is what stands there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>

#include "base/check.h"
#include "base/str.h"
#include "patchbay/json.h"
#include "patchbay/library.h"
#include "sdk/json_parts.h"
#include "support/failing_memory.h"
#include "json/json.h"

static char last_line[1024];

static void note_line(bay_log_level level, const char *component, const char *text, void *user)
{
    (void)user;
    assert_int_equal(level, BAY_LOG_LEVEL_ERROR);
    assert_string_equal(component, "json");
    strncpy(last_line, text, sizeof(last_line) - 1);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void second_root(bay_json *json)
{
    bay_json_int(json, NULL, 1);
    bay_json_int(json, NULL, 2);
}

static void second_root_behind_an_object(bay_json *json)
{
    bay_json_object(json, NULL);
    bay_json_end(json);
    bay_json_object(json, NULL);
}

static void member_outside(bay_json *json)
{
    bay_json_int(json, "a", 1);
}

static void member_in_array(bay_json *json)
{
    bay_json_array(json, NULL);
    bay_json_text(json, "a", "x");
}

static void member_without_name(bay_json *json)
{
    bay_json_object(json, NULL);
    bay_json_int(json, NULL, 1);
}

static void end_of_nothing(bay_json *json)
{
    bay_json_end(json);
}

static void end_twice(bay_json *json)
{
    bay_json_object(json, NULL);
    bay_json_end(json);
    bay_json_end(json);
}

static void end_behind_a_name(bay_json *json)
{
    bay_json_object(json, NULL);
    bay_json_name(json, STR("a"));
    bay_json_end(json);
}

static void name_in_array(bay_json *json)
{
    bay_json_array(json, NULL);
    bay_json_name(json, STR("a"));
}

static void name_at_the_root(bay_json *json)
{
    bay_json_name(json, STR("a"));
}

static void two_names(bay_json *json)
{
    bay_json_object(json, NULL);
    bay_json_name(json, STR("a"));
    bay_json_name(json, STR("b"));
}

static void named_twice(bay_json *json)
{
    bay_json_object(json, NULL);
    bay_json_name(json, STR("a"));
    bay_json_int(json, "b", 1);
}

static void raw_that_is_none(bay_json *json)
{
    bay_json_object(json, NULL);
    bay_json_raw(json, "a", "1,\"b\":2");
}

static void raw_that_closes(bay_json *json)
{
    bay_json_object(json, NULL);
    bay_json_raw(json, "a", "1}");
}

static void raw_of_nothing(bay_json *json)
{
    bay_json_raw(json, NULL, NULL);
}

static void absent_value(bay_json *json)
{
    bay_json_value(json, NULL, (bay_value){NULL, 0});
}

static void too_deep(bay_json *json)
{
    for (int i = 0; i < 65; i++) {
        bay_json_array(json, NULL);
    }
}

static void each_mistake_is_an_error_at_once(void **state)
{
    (void)state;
    static const struct {
        void (*make)(bay_json *json);
        bay_err err;
        const char *line;
    } cases[] = {
        {second_root, BAY_ERR_STATE, "bay_json_int: the value before it is whole"},
        {second_root_behind_an_object, BAY_ERR_STATE, "bay_json_object: the value before it is"},
        {member_outside, BAY_ERR_STATE, "bay_json_int \"a\": what has a name stands in an object"},
        {member_in_array, BAY_ERR_STATE, "bay_json_text_str \"a\": what has a name stands in an"},
        {member_without_name, BAY_ERR_STATE, "bay_json_int: a member of an object needs a name"},
        {end_of_nothing, BAY_ERR_STATE, "bay_json_end: nothing is open"},
        {end_twice, BAY_ERR_STATE, "bay_json_end: nothing is open"},
        {end_behind_a_name, BAY_ERR_STATE, "bay_json_end: the name before it has no value"},
        {name_in_array, BAY_ERR_STATE, "bay_json_name: what has a name stands in an object"},
        {name_at_the_root, BAY_ERR_STATE, "bay_json_name: what has a name stands in an object"},
        {two_names, BAY_ERR_STATE, "bay_json_name: the name before it has no value"},
        {named_twice, BAY_ERR_STATE, "bay_json_int \"b\": bay_json_name gave it a name already"},
        {raw_that_is_none, BAY_ERR_SYNTAX, "bay_json_raw_str \"a\": the text is no JSON"},
        {raw_that_closes, BAY_ERR_SYNTAX, "bay_json_raw_str \"a\": the text is no JSON"},
        {raw_of_nothing, BAY_ERR_SYNTAX, "bay_json_raw_str: the text is no JSON"},
        {absent_value, BAY_ERR_NOT_FOUND, "bay_json_value: the value is absent"},
        {too_deep, BAY_ERR_DEPTH, "bay_json_array: there are more than 64 levels"},
    };
    bay_log_to(BAY_LOG_LEVEL_DEBUG, note_line, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        last_line[0] = '\0';
        bay_json *json = bay_json_new();
        cases[i].make(json);
        if (strncmp(last_line, cases[i].line, strlen(cases[i].line)) != 0) {
            fail_msg("\"%s\" is not \"%s\"", last_line, cases[i].line);
        }
        last_line[0] = '\0';
        bay_json_end(json); /* nothing more is written, and nothing more said */
        bay_json_int(json, "later", 1);
        bay_json_int(json, NULL, 1);
        assert_int_equal(bay_json_error(json), cases[i].err);
        assert_int_equal(bay_json_view(json).len, 0);
        assert_int_equal(bay_value_type(bay_json_root(json)), BAY_TYPE_NONE);
        assert_string_equal(last_line, "");
        bay_json_free(json);
    }
    bay_log_to(BAY_LOG_LEVEL_ERROR, NULL, NULL);
}

static void what_is_not_whole_is_no_value(void **state)
{
    (void)state;
    bay_json *json = bay_json_new();
    assert_int_equal(bay_json_error(json), BAY_ERR_STATE);
    assert_null(bay_json_view(json).at);
    bay_json_object(json, NULL);
    bay_json_array(json, "a");
    assert_int_equal(bay_json_error(json), BAY_ERR_STATE);
    bay_json_end(json); /* asking is no mistake: it goes on */
    bay_json_end(json);
    assert_int_equal(bay_json_error(json), BAY_OK);
    assert_true(bay_str_eq_c(bay_json_view(json), "{\"a\":[]}"));
    bay_json_free(json);
}

static void a_name_stands_once(void **state)
{
    (void)state;
    bay_json *json = bay_json_new();
    bay_json_object(json, NULL);
    bay_json_int(json, "a", 1);
    bay_json_object(json, "o");
    bay_json_int(json, "a", 1); /* of another object */
    bay_json_end(json);
    bay_json_name(json, STR("a"));
    bay_json_int(json, NULL, 2);
    bay_json_end(json);
    assert_int_equal(bay_json_error(json), BAY_ERR_DUPLICATE);
    assert_null(bay_json_view(json).at);
    bay_json_free(json);
    json = bay_json_of("{\"a\":1,\"\\u0061\":2}");
    assert_int_equal(bay_json_error(json), BAY_ERR_DUPLICATE);
    bay_json_free(json);
}

static void nothing_is_taken_of_null(void **state)
{
    (void)state;
    bay_json_free(NULL);
    bay_json_object(NULL, NULL);
    bay_json_array(NULL, "a");
    bay_json_end(NULL);
    bay_json_name(NULL, STR("a"));
    bay_json_text(NULL, "a", NULL);
    bay_json_textf(NULL, "a", "%s", "x");
    bay_json_text_str(NULL, "a", STR("x"));
    bay_json_int(NULL, "a", 1);
    bay_json_uint(NULL, "a", 1);
    bay_json_double(NULL, "a", 1);
    bay_json_bool(NULL, "a", true);
    bay_json_null(NULL, "a");
    bay_json_raw(NULL, "a", "1");
    bay_json_raw_str(NULL, "a", STR("1"));
    bay_json_value(NULL, "a", (bay_value){NULL, 0});
    assert_int_equal(bay_json_error(NULL), BAY_ERR_NOMEM);
    assert_null(bay_json_view(NULL).at);
    assert_null(bay_json_root(NULL).document);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void everything_can_be_written(void **state)
{
    (void)state;
    bay_document *read = NULL;
    bay_str source = STR("{\"v\": {\"n\":1.50,\"s\":\"\\u00e9\"}}");
    assert_int_equal(bay_document_new(source, &read, NULL), BAY_OK);
    bay_json *json = bay_json_new();
    bay_json_object(json, NULL);
    bay_json_text(json, "text", "a\"b\\c\n\x01");
    bay_json_text(json, "none", NULL);
    bay_json_textf(json, "format", "%d %s", 7, "\"");
    bay_json_text_str(json, "view", (bay_str){"a\0b\xff", 4});
    bay_json_text_str(json, "empty", (bay_str){NULL, 0});
    bay_json_int(json, "least", INT64_MIN);
    bay_json_uint(json, "most", UINT64_MAX);
    bay_json_double(json, "half", 0.5);
    bay_json_double(json, "nan", NAN);
    bay_json_double(json, "infinite", INFINITY);
    bay_json_bool(json, "yes", true);
    bay_json_null(json, "null");
    bay_json_raw(json, "raw", " [1, 2.0e1] ");
    bay_json_value(json, "value", bay_value_get(bay_document_root(read), "v"));
    bay_json_array(json, "list");
    bay_json_int(json, NULL, 1);
    bay_json_object(json, NULL);
    bay_json_end(json);
    bay_json_end(json);
    bay_json_name(json, (bay_str){"n\"\0", 3});
    bay_json_bool(json, NULL, false);
    bay_json_end(json);
    assert_int_equal(bay_json_error(json), BAY_OK);
    static const char expected[] =
        "{\"text\":\"a\\\"b\\\\c\\n\\u0001\",\"none\":null,\"format\":\"7 \\\"\","
        "\"view\":\"a\\u0000b\xef\xbf\xbd\",\"empty\":\"\",\"least\":-9223372036854775808,"
        "\"most\":18446744073709551615,\"half\":0.5,\"nan\":null,\"infinite\":null,\"yes\":true,"
        "\"null\":null,\"raw\": [1, 2.0e1] ,\"value\":{\"n\":1.50,\"s\":\"\\u00e9\"},"
        "\"list\":[1,{}],\"n\\\"\\u0000\":false}";
    if (!bay_str_eq_c(bay_json_view(json), expected)) {
        fail_msg("%.*s", BAY_STR(bay_json_view(json)));
    }
    /* it can be read at once */
    assert_true(bay_str_eq(bay_value_str(bay_value_get(bay_json_root(json), "view")),
                           (bay_str){"a\0b\xef\xbf\xbd", 6}));
    bay_json_free(json);
    bay_document_free(read);
}

static void a_root_may_be_anything(void **state)
{
    (void)state;
    static const char *const roots[] = {"1", "\"x\"", "null", "[]", "{}", "true", "-0.0e-5"};
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        bay_json *json = bay_json_of(roots[i]);
        assert_true(bay_str_eq_c(bay_json_view(json), roots[i]));
        bay_json_free(json);
    }
    bay_json *json = bay_json_of_str((bay_str){"[1]trailing", 3});
    assert_true(bay_str_eq_c(bay_json_view(json), "[1]"));
    bay_json_free(json);
    static const char *const bad[] = {"", " ", "{", "[1,]", "1 2", "nul", "{\"a\":}", "\"\xff\""};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        json = bay_json_of(bad[i]);
        assert_true(bay_json_error(json) != BAY_OK);
        assert_null(bay_json_view(json).at);
        bay_json_free(json);
    }
}

static void given_text_may_not_be_too_deep(void **state)
{
    (void)state;
    char text[301];
    memset(text, '[', 150);
    memset(text + 150, ']', 150);
    text[300] = '\0';
    bay_json *json = bay_json_of(text);
    assert_int_equal(bay_json_error(json), BAY_ERR_DEPTH);
    bay_json_free(json);
}

/* No value adds or changes a member: random ones, written and read back. */
static void what_is_written_is_what_is_read(void **state)
{
    (void)state;
    uint32_t seed = 1;
    static const char alphabet[] = "a\"\\,:{}[]\0\n\x1f\xc3\xa9\xff \x7f/u";
    for (int round = 0; round < 2000; round++) {
        char bytes[16];
        size_t len = 0;
        for (size_t i = 0; i < sizeof(bytes); i++) {
            seed = seed * 1664525 + 1013904223;
            bytes[i] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
        }
        len = (seed >> 8) % sizeof(bytes);
        bay_str value = {bytes, len};
        bay_json *json = bay_json_new();
        bay_json_object(json, NULL);
        bay_json_text_str(json, "a", value);
        bay_json_name(json, value);
        bay_json_text(json, NULL, "b");
        bay_json_int(json, "last", 7);
        bay_json_end(json);
        bay_err err = bay_json_error(json);
        bool is_twice = bay_str_eq_c(value, "a");
        assert_int_equal(err, is_twice ? BAY_ERR_DUPLICATE : BAY_OK);
        bay_value root = bay_json_root(json);
        assert_int_equal(bay_value_count(root), is_twice ? 0 : 3);
        if (!is_twice && json_is_utf8(value)) {
            assert_true(bay_str_eq(bay_value_str(bay_value_get(root, "a")), value));
            assert_true(bay_str_eq_c(bay_value_str(bay_value_get_str(root, value)), "b"));
        }
        assert_int_equal(bay_value_int_or(bay_value_get(root, "last"), 0), is_twice ? 0 : 7);
        bay_json_free(json);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static void what_is_absent_is_taken_by_all(void **state)
{
    (void)state;
    bay_value none = {NULL, 0};
    int64_t number = 7;
    double real = 7;
    bool truth = true;
    bay_iter each = {0};
    assert_int_equal(bay_value_type(none), BAY_TYPE_NONE);
    assert_int_equal(bay_value_count(none), 0);
    assert_null(bay_value_str(none).at);
    assert_null(bay_value_json(none).at);
    assert_true(bay_str_eq_c(bay_value_str_or(none, "x"), "x"));
    assert_null(bay_value_str_or(none, NULL).at);
    assert_null(bay_value_get(none, "a").document);
    assert_null(bay_value_get(none, NULL).document);
    assert_null(bay_value_item(none, 0).document);
    assert_null(bay_value_pointer(none, "/a").document);
    assert_null(bay_value_pointer(none, NULL).document);
    assert_false(bay_value_next(none, &each));
    assert_false(bay_value_next(none, NULL));
    assert_int_equal(bay_value_int(none, &number), BAY_ERR_NOT_FOUND);
    assert_int_equal(bay_value_double(none, &real), BAY_ERR_NOT_FOUND);
    assert_int_equal(bay_value_bool(none, &truth), BAY_ERR_NOT_FOUND);
    assert_int_equal(number, 7);
    assert_true(truth);
    assert_null(bay_document_root(NULL).document);
    bay_document_free(NULL);
    assert_int_equal(bay_document_new(STR("1"), NULL, NULL), BAY_ERR_INVALID);
}

static void text_that_is_none_is_refused(void **state)
{
    (void)state;
    static const struct {
        bay_str text;
        bay_err err;
    } cases[] = {
        {STR_INIT(""), BAY_ERR_SYNTAX},       {STR_INIT("{"), BAY_ERR_SYNTAX},
        {STR_INIT("[1}"), BAY_ERR_SYNTAX},    {STR_INIT("1 1"), BAY_ERR_SYNTAX},
        {STR_INIT("\"\xff\""), BAY_ERR_UTF8}, {{NULL, 0}, BAY_ERR_SYNTAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bay_document *document = NULL;
        bay_diag diag = {0};
        assert_int_equal(bay_document_new(cases[i].text, &document, &diag), cases[i].err);
        assert_null(document);
        assert_int_equal(diag.code, cases[i].err);
    }
}

static const bay_str everything =
    STR_INIT("{\"s\":\"a\\u0000\\ud83d\\ude00\",\"p\":\"plain\",\"i\":42,\"r\":1.5,\"e\":1e2,"
             "\"big\":9223372036"
             "854775808,\"huge\":1e999,\"t\":true,\"f\":false,\"n\":null,\"l\":[1,\"\\n\",[]],"
             "\"o\":{\"k\\u0065y\":{\"deep\":7}},\"i\":43}");

static void values_are_read_where_they_stand(void **state)
{
    (void)state;
    bay_document *document = NULL;
    assert_int_equal(bay_document_new(everything, &document, NULL), BAY_OK);
    bay_value root = bay_document_root(document);
    static const struct {
        const char *name;
        bay_type type;
        const char *text;
        bay_err as_int, as_double, as_bool;
    } cases[] = {
        {"p", BAY_TYPE_STRING, "plain", BAY_ERR_TYPE, BAY_ERR_TYPE, BAY_ERR_TYPE},
        {"i", BAY_TYPE_NUMBER, "42", BAY_OK, BAY_OK, BAY_ERR_TYPE},
        {"r", BAY_TYPE_NUMBER, "1.5", BAY_ERR_RANGE, BAY_OK, BAY_ERR_TYPE},
        {"e", BAY_TYPE_NUMBER, "1e2", BAY_OK, BAY_OK, BAY_ERR_TYPE},
        {"big", BAY_TYPE_NUMBER, "9223372036854775808", BAY_ERR_RANGE, BAY_OK, BAY_ERR_TYPE},
        {"huge", BAY_TYPE_NUMBER, "1e999", BAY_ERR_RANGE, BAY_ERR_RANGE, BAY_ERR_TYPE},
        {"t", BAY_TYPE_BOOLEAN, "true", BAY_ERR_TYPE, BAY_ERR_TYPE, BAY_OK},
        {"f", BAY_TYPE_BOOLEAN, "false", BAY_ERR_TYPE, BAY_ERR_TYPE, BAY_OK},
        {"n", BAY_TYPE_NULL, "null", BAY_ERR_TYPE, BAY_ERR_TYPE, BAY_ERR_TYPE},
        {"l", BAY_TYPE_ARRAY, "[1,\"\\n\",[]]", BAY_ERR_TYPE, BAY_ERR_TYPE, BAY_ERR_TYPE},
        {"o", BAY_TYPE_OBJECT, "{\"k\\u0065y\":{\"deep\":7}}", BAY_ERR_TYPE, BAY_ERR_TYPE,
         BAY_ERR_TYPE},
        {"absent", BAY_TYPE_NONE, NULL, BAY_ERR_NOT_FOUND, BAY_ERR_NOT_FOUND, BAY_ERR_NOT_FOUND},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t number = -1;
        double real = -1;
        bool truth = false;
        bay_value value = bay_value_get(root, cases[i].name);
        assert_int_equal(bay_value_type(value), cases[i].type);
        assert_true(bay_str_eq_c(bay_value_str(value), cases[i].text));
        assert_int_equal(bay_value_int(value, &number), cases[i].as_int);
        assert_int_equal(bay_value_double(value, &real), cases[i].as_double);
        assert_int_equal(bay_value_bool(value, &truth), cases[i].as_bool);
        assert_int_equal(bay_value_int_or(value, -5), cases[i].as_int == BAY_OK ? number : -5);
        assert_true(bay_value_double_or(value, -5) == (cases[i].as_double == BAY_OK ? real : -5));
        assert_int_equal(bay_value_bool_or(value, true), cases[i].as_bool == BAY_OK ? truth : true);
        assert_int_equal(bay_value_int(value, NULL),
                         cases[i].type == BAY_TYPE_NONE ? BAY_ERR_NOT_FOUND : BAY_ERR_INVALID);
    }
    assert_int_equal(bay_value_int_or(bay_value_get(root, "e"), 0), 100);
    assert_true(
        bay_str_eq(bay_value_str(bay_value_get(root, "s")), (bay_str){"a\0\xf0\x9f\x98\x80", 6}));
    assert_true(bay_str_eq_c(bay_value_json(bay_value_get(root, "p")), "\"plain\""));
    assert_int_equal(bay_value_int_or(bay_value_pointer(root, "/o/key/deep"), 0), 7);
    assert_int_equal(bay_value_type(bay_value_pointer(root, "/o/no")), BAY_TYPE_NONE);
    assert_int_equal(bay_value_type(bay_value_pointer(root, "")), BAY_TYPE_OBJECT);
    assert_int_equal(bay_value_count(bay_value_get(root, "l")), 3);
    assert_true(bay_str_eq_c(bay_value_str(bay_value_item(bay_value_get(root, "l"), 1)), "\n"));
    assert_null(bay_value_item(bay_value_get(root, "l"), 3).document);
    assert_null(bay_value_item(root, 0).document);
    assert_null(bay_value_get(bay_value_get(root, "l"), "0").document);
    bay_document_free(document);
}

static void containers_are_walked(void **state)
{
    (void)state;
    bay_document *document = NULL;
    assert_int_equal(
        bay_document_new(STR("{\"a\":[1,2,3],\"\\u0062\":{},\"c\":[]}"), &document, NULL), BAY_OK);
    bay_value root = bay_document_root(document);
    char told[64] = "";
    bay_iter member = {0};
    while (bay_value_next(root, &member)) {
        strncat(told, member.name.at, member.name.len);
        bay_iter item = {0};
        while (bay_value_next(member.value, &item)) {
            assert_int_equal(item.name.len, 0);
            strncat(told, bay_value_json(item.value).at, 1);
        }
    }
    assert_string_equal(told, "a123bc");
    /* one that is used again in another container, or after its end, begins anew */
    bay_iter each = {0};
    assert_true(bay_value_next(bay_value_get(root, "a"), &each));
    assert_true(bay_value_next(root, &each));
    assert_true(bay_str_eq_c(each.name, "a"));
    assert_false(bay_value_next(bay_value_get(root, "c"), &each));
    assert_true(bay_value_next(bay_value_get(root, "a"), &each));
    assert_int_equal(bay_value_int_or(each.value, 0), 1);
    assert_false(bay_value_next(each.value, &each)); /* a number has no items */
    each.reserved[0] = UINT64_MAX; /* a program must not, and nothing bad comes of it */
    each.reserved[1] = 0;
    assert_true(bay_value_next(root, &each));
    bay_document_free(document);
}

/* Reading is not bounded by how often it is done: what was decoded is kept. */
static void a_text_is_decoded_once(void **state)
{
    (void)state;
    bay_document *document = NULL;
    assert_int_equal(bay_document_new(STR("[\"\\u0041\",\"\\u0042\"]"), &document, NULL), BAY_OK);
    bay_value root = bay_document_root(document);
    bay_str first = bay_value_str(bay_value_item(root, 0));
    assert_true(bay_str_eq_c(first, "A"));
    for (int i = 0; i < 1000; i++) {
        assert_true(bay_value_str(bay_value_item(root, 0)).at == first.at);
        assert_true(bay_str_eq_c(bay_value_str(bay_value_item(root, 1)), "B"));
    }
    bay_document_free(document);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bay_err write_and_read(void)
{
    bay_json *json = bay_json_new();
    bay_json_object(json, NULL);
    bay_json_textf(json, "f", "%060d", 7);
    bay_json_array(json, "l");
    for (int i = 0; i < 100; i++) {
        bay_json_text(json, NULL, "\n");
    }
    bay_json_end(json);
    for (int i = 0; i < 20; i++) { /* enough names that a table is needed to compare them */
        char name[8];
        snprintf(name, sizeof(name), "n%d", i);
        bay_json_int(json, name, i);
    }
    bay_json_raw(json, "raw", "[[1],[2]]");
    bay_json_end(json);
    bay_err err = bay_json_error(json);
    if (err == BAY_OK) {
        bay_value list = bay_value_get(bay_json_root(json), "l");
        bay_str text = bay_value_str(bay_value_item(list, 5));
        err = text.at == NULL ? BAY_ERR_NOMEM : BAY_OK;
    }
    bay_json_free(json);
    bay_document *document = NULL;
    bay_err read_err = bay_document_new(everything, &document, NULL);
    bay_document_free(document);
    return err != BAY_OK ? err : read_err;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        bay_err err = write_and_read();
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        failing_memory_check();
    }
    for (size_t at = 0; failing_memory_start_single(at); at++) {
        bay_err err = write_and_read();
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        failing_memory_check();
    }
}

static void a_large_text_is_an_error(void **state)
{
    (void)state;
    size_t half = JSON_MAX_BYTES / 2 + 1;
    char *text = malloc(half);
    memset(text, 'x', half);
    bay_json *json = bay_json_new();
    bay_json_array(json, NULL);
    bay_json_text_str(json, NULL, (bay_str){text, half});
    bay_json_text_str(json, NULL, (bay_str){text, half});
    bay_json_end(json);
    assert_int_equal(bay_json_error(json), BAY_ERR_LIMIT);
    bay_json_free(json);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mistake_is_an_error_at_once),
        cmocka_unit_test(what_is_not_whole_is_no_value),
        cmocka_unit_test(a_name_stands_once),
        cmocka_unit_test(nothing_is_taken_of_null),
        cmocka_unit_test(everything_can_be_written),
        cmocka_unit_test(a_root_may_be_anything),
        cmocka_unit_test(given_text_may_not_be_too_deep),
        cmocka_unit_test(what_is_written_is_what_is_read),
        cmocka_unit_test(what_is_absent_is_taken_by_all),
        cmocka_unit_test(text_that_is_none_is_refused),
        cmocka_unit_test(values_are_read_where_they_stand),
        cmocka_unit_test(containers_are_walked),
        cmocka_unit_test(a_text_is_decoded_once),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_large_text_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
