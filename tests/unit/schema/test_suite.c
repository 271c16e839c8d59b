/* JSON-Schema-Test-Suite: every case of every required file of 2020-12 and draft-07 passes; every
 * optional one passes too, or stands in known_differences.txt with its reason. A case that stands
 * there and passes is a failure as well. */
#include "suite.h"
#include "support/skipped.h"

static suite all;

static known_difference *known(const char *path, bay_str group, bay_str name)
{
    for (size_t i = 0; i < all.known_count; i++) {
        known_difference *one = &all.known[i];
        if (strcmp(one->part[0], path) == 0 && str_eq(str_of(one->part[1]), group) &&
            (str_eq(str_of(one->part[2]), name) || strcmp(one->part[2], "*") == 0)) {
            return one;
        }
    }
    return NULL;
}

static bay_str text_of(json_val value, arena *memory)
{
    bay_str text = {"", 0};
    assert_int_equal(json_str(value, memory, &text), BAY_OK);
    return text;
}

/* Does one case differ from what it expects? */
static bool differs(const schema *compiled, bay_err compile_err, json_val one, schema_state *state)
{
    static schema_failures failures;
    bool is_expected = json_true(json_get(one, STR("valid")));
    if (compile_err != BAY_OK) {
        return true;
    }
    json_val data = json_get(one, STR("data"));
    bay_err err = schema_check(compiled, data, state, &failures);
    assert_int_equal(schema_check(compiled, data, NULL, NULL), err);
    if (err == BAY_ERR_INVALID) {
        assert_true(failures.count > 0);
        assert_true(failures.item[0].text.len > 0);
    }
    return err != (is_expected ? BAY_OK : BAY_ERR_INVALID);
}

/* The required files hold that it is an annotation. */
static bool asserts_format(const suite_file *file)
{
    return strstr(file->path, "/format/") != NULL || strstr(file->path, "ecmascript-regex") != NULL;
}

static size_t run_group(const suite_file *file, json_val group, schema_state *state)
{
    arena memory;
    arena_init(&memory, 1U << 20);
    const schema_options options = {.dialect = file->dialect,
                                    .ignores_format = !asserts_format(file),
                                    .documents = all.remotes,
                                    .document_count = all.remote_count};
    schema *compiled = NULL;
    bay_diag diag = {0};
    bay_err err = schema_compile(json_get(group, STR("schema")), &options, &compiled, &diag);
    bay_str title = text_of(json_get(group, STR("description")), &memory);
    size_t wrong = 0;
    for (json_iter it = json_iter_of(json_get(group, STR("tests"))); json_next(&it);) {
        bay_str name = text_of(json_get(it.value, STR("description")), &memory);
        bool is_different = differs(compiled, err, it.value, state);
        known_difference *listed = known(file->path, title, name);
        if (listed != NULL) {
            listed->is_met = true;
        }
        if (is_different != (listed != NULL)) {
            wrong++;
            print_error("%s | %.*s | %.*s | %s\n", file->path, BAY_STR(title), BAY_STR(name),
                        err != BAY_OK  ? diag.text
                        : is_different ? "differs"
                                       : "is listed, but passes");
        }
    }
    schema_free(compiled);
    arena_fini(&memory);
    return wrong;
}

static void passes(void **state)
{
    const suite_file *file = *state;
    schema_state scratch;
    schema_state_init(&scratch);
    size_t wrong = 0;
    for (json_iter it = json_iter_of(json_root(&file->doc)); json_next(&it);) {
        wrong += run_group(file, it.value, &scratch);
    }
    schema_state_fini(&scratch);
    assert_int_equal(wrong, 0);
}

/* What is listed and in no file: the list has not kept up. Debian's suite has fewer files. */
static void every_difference_is_met(void **state)
{
    (void)state;
    size_t unmet = 0;
    if (!all.has_2020_12) {
        SKIP("not all files of the suite are here");
    }
    for (size_t i = 0; i < all.known_count; i++) {
        if (!all.known[i].is_met) {
            unmet++;
            print_error("listed, but in no file: %s | %s | %s\n", all.known[i].part[0],
                        all.known[i].part[1], all.known[i].part[2]);
        }
    }
    assert_int_equal(unmet, 0);
}

static void is_there(void **state)
{
    (void)state;
    if (!all.is_found && getenv("BAY_SCHEMA_SUITE") == NULL) {
        SKIP("JSON-Schema-Test-Suite is not here: neither BAY_SCHEMA_SUITE nor Debian's package "
             "json-schema-test-suite; nothing of it was run");
    }
    assert_true(all.is_found);
    assert_true(all.file_count > 40);
}

static void has_the_newest_draft(void **state)
{
    (void)state;
    if (!all.has_2020_12) {
        SKIP("JSON-Schema-Test-Suite of 2020-12 is not here: Debian's package ends with draft-07, "
             "and BAY_SCHEMA_SUITE names no other; nothing of it was run");
    }
    assert_true(all.file_count > 80);
}

int main(void)
{
    static struct CMUnitTest tests[SUITE_MAX_FILES + 3];
    size_t count = 0;
    all.is_found = suite_find(&all);
    if (all.is_found) {
        suite_load(&all);
        char newer[400];
        snprintf(newer, sizeof(newer), "%s/draft2020-12", all.tests);
        all.has_2020_12 = suite_is_folder(newer);
        suite_read_known(&all, BAY_TEST_SOURCE_DIR "/tests/unit/schema/known_differences.txt");
    }
    tests[count++] = (struct CMUnitTest){"the suite is there", is_there, NULL, NULL, NULL};
    tests[count++] = (struct CMUnitTest){"it has 2020-12", has_the_newest_draft, NULL, NULL, NULL};
    for (size_t i = 0; i < all.file_count; i++) {
        tests[count++] = (struct CMUnitTest){all.files[i].path, passes, NULL, NULL, &all.files[i]};
    }
    tests[count++] =
        (struct CMUnitTest){"every difference is met", every_difference_is_met, NULL, NULL, NULL};
    int failed = _cmocka_run_group_tests("json-schema-test-suite", tests, count, NULL, NULL);
    arena_fini(&all.memory);
    return failed;
}
