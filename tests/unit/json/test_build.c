/* A document that is built has the index that reading its text would give, entry by entry, and
 * whatever goes wrong while it is written ends as an error. */
#include "case.h"

#include "base/check.h"
#include "json/build.h"
#include "json/tape.h"

#include "support/failing_memory.h"

enum { PLENTY = 1 << 20 };

static void assert_reads_alike(json_val built)
{
    parsed read;
    parse_within(&read, built.doc->text, &json_any_depth);
    assert_int_equal(read.err, BAY_OK);
    assert_int_equal(built.at, 0);
    assert_int_equal(built.doc->count, read.doc.count);
    assert_memory_equal(built.doc->tape, read.doc.tape, read.doc.count * sizeof(json_tape));
    forget(&read);
}

static bay_err build_everything(arena *memory, json_val source, json_val *out)
{
    static const bay_str dropped[] = {STR_INIT("gone"), STR_INIT("esc\"aped")};
    json_builder made;
    json_writer *to = json_builder_init(&made, memory, PLENTY);
    json_open_object(to);
    json_key(to, STR("n\n"));
    json_open_array(to);
    json_put_int(to, INT64_MIN);
    json_put_uint(to, UINT64_MAX);
    json_put_double(to, -0.5);
    json_put_double(to, 1e300 * 1e300);
    json_put_bool(to, true);
    json_put_bool(to, false);
    json_put_null(to);
    json_put_str(to, STR(""));
    json_put_str(to, STR("a\\b\xff"));
    json_put_word(to, STR("word"));
    json_open_array(to);
    json_close_array(to);
    json_open_object(to);
    json_close_object(to);
    json_close_array(to);
    json_key_word(to, STR("whole"));
    json_put_val(to, source);
    json_put_members(to, source, dropped, ARRAY_LEN(dropped));
    json_put_members(to, JSON_NONE, NULL, 0);
    json_key_lit(to, "inner");
    json_open_object(to);
    json_put_members(to, json_get(source, STR("o")), NULL, 0);
    json_close_object(to);
    json_key_lit(to, "raw");
    json_put_raw(to, STR(" {\"x\":[1, {\"\\u0079\":2}]} "));
    json_key_lit(to, "end");
    json_put_val(to, json_get(source, STR("o")));
    json_close_object(to);
    return json_builder_end(&made, out);
}

static const char source_text[] =
    " { \"o\" : { \"a\" : 1e999 , \"a\" : [ ] } , \"gone\" : \"\\\\\" , \"esc\\u0022aped\":0,\n"
    "\"k\\u00e9\" : [ 123456789012345678901234567890 , [ true , \"x\" ] , { } ], \"\" : null } ";

static void has_the_index_that_reading_gives(void **state)
{
    (void)state;
    parsed source;
    arena memory;
    json_val built = JSON_NONE;
    json_val again = JSON_NONE;
    json_val root = must_parse(&source, source_text);
    arena_init(&memory, SIZE_MAX);
    assert_int_equal(build_everything(&memory, root, &built), BAY_OK);
    assert_int_equal(build_everything(&memory, built, &again), BAY_OK); /* of one that was built */
    assert_int_equal(json_count(json_get(root, STR("o"))), 2);
    forget(&source); /* it borrows nothing */
    assert_reads_alike(built);
    assert_reads_alike(again);
    assert_str(json_raw(json_pointer(built, STR("/whole/o/a"))), "1e999");
    assert_str(json_raw(json_pointer(built, STR("/raw/x/1/y"))), "2");
    assert_true(json_is(json_get(built, STR("gone")), JSON_MISSING));
    assert_true(json_is(json_pointer(built, STR("/whole/gone")), JSON_STRING));
    assert_int_equal(json_check_duplicates(built, NULL), BAY_ERR_DUPLICATE);
    arena_fini(&memory);
}

/* A member twice, once from each of two sources, is twice there, as in the text. */
static void keeps_what_stands_twice(void **state)
{
    (void)state;
    parsed source;
    arena memory;
    json_builder made;
    json_val built = JSON_NONE;
    json_val root = must_parse(&source, "{\"a\":1}");
    arena_init(&memory, SIZE_MAX);
    json_writer *to = json_builder_init(&made, &memory, PLENTY);
    json_open_object(to);
    json_put_members(to, root, NULL, 0);
    json_key_lit(to, "a");
    json_put_int(to, 2);
    json_close_object(to);
    assert_int_equal(json_builder_end(&made, &built), BAY_OK);
    assert_reads_alike(built);
    assert_int_equal(json_count(built), 2);
    assert_str(json_raw(json_get(built, STR("a"))), "1");
    assert_int_equal(json_pick(built, (const bay_str[]){STR_INIT("a")}, 1, &root, NULL),
                     BAY_ERR_DUPLICATE);
    forget(&source);
    arena_fini(&memory);
}

static void shows_it_without_a_copy(void **state)
{
    (void)state;
    json_builder made;
    json_val built = JSON_NONE;
    json_writer *to = json_builder_init_secret(&made, NULL, PLENTY);
    json_open_object(to);
    json_key_lit(to, "a");
    assert_int_equal(json_builder_view(&made, &built), BAY_ERR_SYNTAX);
    json_put_int(to, 1);
    json_close_object(to);
    assert_int_equal(json_builder_view(&made, &built), BAY_OK);
    assert_reads_alike(built);
    json_builder_drop(&made);
}

static void takes_any_one_value(void **state)
{
    static const char *const values[] = {"null", "0",       "-1.5e-7", "\"\"", "\"\\n\"",
                                         "[]",   "[[],[]]", "{}",      "true", "false"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        for (int raw = 0; raw < 2; raw++) {
            parsed source;
            arena memory;
            json_builder made;
            json_val built = JSON_NONE;
            json_val root = must_parse(&source, values[i]);
            arena_init(&memory, SIZE_MAX);
            json_writer *to = json_builder_init(&made, &memory, PLENTY);
            if (raw != 0) {
                json_put_raw(to, str_of(values[i]));
            } else {
                json_put_val(to, root);
            }
            assert_int_equal(json_builder_end(&made, &built), BAY_OK);
            assert_reads_alike(built);
            forget(&source);
            arena_fini(&memory);
        }
    }
    assert_reads_alike(json_empty_object());
    assert_int_equal(json_count(json_empty_object()), 0);
}

static void refuses_what_is_not_one_value(void **state)
{
    (void)state;
    enum { NOTHING, TWO, OPEN, KEY, MISSING, MEMBER_MISSING, RAW_EMPTY, RAW_BAD, RAW_TWO, KINDS };
    for (int kind = 0; kind < KINDS; kind++) {
        arena memory;
        json_builder made;
        json_val built = JSON_NONE;
        bay_err expected = BAY_ERR_SYNTAX;
        arena_init(&memory, SIZE_MAX);
        json_writer *to = json_builder_init(&made, &memory, PLENTY);
        if (kind == TWO) {
            json_put_int(to, 1);
            json_put_int(to, 2);
        } else if (kind == OPEN) {
            json_open_object(to);
        } else if (kind == KEY) {
            json_open_object(to);
            json_key_lit(to, "a");
        } else if (kind == MISSING) {
            json_put_val(to, JSON_NONE);
            expected = BAY_ERR_TYPE;
        } else if (kind == MEMBER_MISSING) {
            json_open_object(to);
            json_key_lit(to, "a");
            json_put_val(to, JSON_NONE);
            json_close_object(to);
            expected = BAY_ERR_TYPE;
        } else if (kind != NOTHING) {
            json_put_raw(to, kind == RAW_EMPTY ? STR("")
                             : kind == RAW_BAD ? STR("{\"a\":}")
                                               : STR("1 2"));
        }
        assert_int_equal(json_builder_end(&made, &built), expected);
        assert_true(json_is(built, JSON_MISSING));
        arena_fini(&memory);
    }
}

static void stays_within_its_bounds(void **state)
{
    (void)state;
    arena memory;
    json_builder made;
    json_val built = JSON_NONE;
    arena_init(&memory, SIZE_MAX);
    for (size_t most = 0; most < 6; most++) { /* of 6: ["abc"] has 7 */
        json_writer *to = json_builder_init(&made, &memory, most);
        json_open_array(to);
        json_put_str(to, STR("abc"));
        json_close_array(to);
        assert_int_equal(json_builder_end(&made, &built), BAY_ERR_LIMIT);
    }
    json_writer *to = json_builder_init(&made, &memory, PLENTY); /* deeper than the writer goes */
    for (int i = 0; i <= JSON_WRITER_DEPTH; i++) {
        json_open_array(to);
    }
    for (int i = 0; i <= JSON_WRITER_DEPTH; i++) {
        json_close_array(to);
    }
    assert_int_equal(json_builder_end(&made, &built), BAY_ERR_LIMIT);
    arena_fini(&memory);

    arena_init(&memory, 64); /* an arena without room for it */
    to = json_builder_init(&made, &memory, PLENTY);
    json_put_str(to, STR("0123456789012345678901234567890123456789"));
    assert_int_equal(json_builder_end(&made, &built), BAY_ERR_LIMIT);
    json_builder_init(&made, &memory, PLENTY);
    json_builder_drop(&made);
    arena_fini(&memory);
    assert_true(json_is(built, JSON_MISSING));
}

static void knows_that_a_part_is_deep(void **state)
{
    static const json_limits three = {PLENTY, 3 | JSON_MARK_DEPTH, 100};
    static const char *const texts[] = {"[[[1]]]", "[[[[1]]]]"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        parsed source;
        arena memory;
        json_builder made;
        json_val built = JSON_NONE;
        arena_init(&memory, SIZE_MAX);
        parse_within(&source, str_of(texts[i]), &three);
        assert_int_equal(source.err, BAY_OK);
        json_writer *to = json_builder_init(&made, &memory, PLENTY);
        json_open_object(to);
        json_key_lit(to, "a");
        json_put_val(to, json_root(&source.doc));
        json_close_object(to);
        assert_int_equal(json_builder_end(&made, &built), BAY_OK);
        assert_int_equal(built.doc->is_deep, i == 1);
        forget(&source);
        arena_fini(&memory);
    }
}

static void grows_to_many_values(void **state)
{
    (void)state;
    arena memory;
    json_builder made;
    json_val built = JSON_NONE;
    arena_init(&memory, SIZE_MAX);
    json_writer *to = json_builder_init(&made, &memory, PLENTY);
    json_open_array(to);
    for (int i = 0; i < 10000; i++) {
        json_put_int(to, i);
    }
    json_close_array(to);
    assert_int_equal(json_builder_end(&made, &built), BAY_OK);
    assert_reads_alike(built);
    assert_int_equal(json_count(built), 10000);
    arena_fini(&memory);
}

static void a_part_goes_where_its_kind_is_open(void **state)
{
    json_builder object;
    json_builder array;
    json_builder whole;
    json_val out;
    (void)state;
    json_builder_init(&object, NULL, PLENTY);
    json_builder_init(&array, NULL, PLENTY);
    json_writer *to = json_builder_init(&whole, NULL, PLENTY);
    json_open_object(to);
    json_put_partial(to, &object); /* nothing is open there */
    json_open_object(&object.writer);
    json_put_partial(to, &object); /* nothing is in it */
    json_key(&object.writer, STR("a\"b"));
    json_put_raw(&object.writer, STR("{\"x\":[1]}"));
    json_key(&object.writer, STR("c"));
    json_put_int(&object.writer, 2);
    json_put_partial(to, &object);
    json_open_array(json_builder_init(&array, NULL, PLENTY));
    json_put_raw(&array.writer, STR("[[]]"));
    json_put_null(&array.writer);
    json_key(to, STR("d"));
    json_open_array(to);
    json_put_partial(to, &array);
    json_put_partial(to, &array); /* it stays as it is */
    json_close_array(to);
    json_close_object(to);
    assert_int_equal(json_builder_view(&whole, &out), BAY_OK);
    assert_true(str_eq(json_raw(out), STR("{\"a\\\"b\":{\"x\":[1]},\"c\":2,\"d\":[[[]],null,[[]],"
                                          "null]}")));
    assert_reads_alike(out);
    json_builder_drop(&whole);
    json_builder_drop(&array);
    json_builder_drop(&object);
}

static void a_part_that_failed_is_an_error(void **state)
{
    json_builder part;
    json_builder whole;
    json_val out;
    (void)state;
    json_open_array(json_builder_init(&part, NULL, 8));
    json_put_str(&part.writer, STR("more than there is room for"));
    json_writer *to = json_builder_init(&whole, NULL, PLENTY);
    json_open_array(to);
    json_put_partial(to, &part);
    json_close_array(to);
    assert_int_equal(json_builder_view(&whole, &out), BAY_ERR_LIMIT);
    json_builder_drop(&whole);
    json_builder_drop(&part);
}

static bool has(json_builder *made, const char *key)
{
    return !json_is(json_builder_get(made, str_of(key)), JSON_MISSING);
}

static void knows_the_members_so_far(void **state)
{
    json_builder made;
    (void)state;
    json_writer *to = json_builder_init(&made, NULL, PLENTY);
    assert_false(has(&made, "a"));
    json_open_object(to);
    assert_false(has(&made, "a"));
    json_key(to, STR("b"));
    json_put_raw(to, STR("{\"a\":{\"c\":1}}"));
    json_key_raw(to, STR("\"\\u0064\""));
    json_open_object(to);
    assert_false(has(&made, "b")); /* that is the object around it */
    json_close_object(to);
    assert_false(has(&made, "a"));
    assert_false(has(&made, "c"));
    assert_true(str_eq(json_raw(json_builder_get(&made, STR("b"))), STR("{\"a\":{\"c\":1}}")));
    json_val found = json_get(json_get(json_builder_get(&made, STR("b")), STR("a")), STR("c"));
    assert_true(str_eq(json_raw(found), STR("1")));
    assert_true(str_eq(json_raw(json_builder_get(&made, STR("d"))), STR("{}")));
    json_builder_drop(&made);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    parsed source;
    json_val root = must_parse(&source, source_text);
    for (size_t at = 0; failing_memory_start(at); at++) {
        arena memory;
        json_val built = JSON_NONE;
        arena_init(&memory, SIZE_MAX);
        bay_err err = build_everything(&memory, root, &built);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        assert_int_equal(json_is(built, JSON_MISSING), err != BAY_OK);
        arena_fini(&memory);
        failing_memory_check();
    }
    forget(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_index_that_reading_gives),
        cmocka_unit_test(keeps_what_stands_twice),
        cmocka_unit_test(shows_it_without_a_copy),
        cmocka_unit_test(takes_any_one_value),
        cmocka_unit_test(refuses_what_is_not_one_value),
        cmocka_unit_test(stays_within_its_bounds),
        cmocka_unit_test(knows_that_a_part_is_deep),
        cmocka_unit_test(grows_to_many_values),
        cmocka_unit_test(a_part_goes_where_its_kind_is_open),
        cmocka_unit_test(a_part_that_failed_is_an_error),
        cmocka_unit_test(knows_the_members_so_far),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
