/* Every allocation failed in turn; none on the success path; one schema under many threads. */
#include "case.h"

#include <pthread.h>

#include "support/failing_memory.h"

/* Something of everything. */
static const char everything[] =
    "{\"$id\":\"https://x/root\",\"$dynamicAnchor\":\"node\",\"type\":\"object\",\"properties\":{"
    "\"name\":{\"type\":\"string\",\"pattern\":\"^[\\\\w-]+$\",\"minLength\":1},"
    "\"when\":{\"format\":\"date-time\"},\"host\":{\"format\":\"hostname\"},"
    "\"kind\":{\"enum\":[\"a\",\"b\",{\"c\":1}]},"
    "\"list\":{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"integer\"}},"
    "\"more\":{\"$dynamicRef\":\"#node\"},\"other\":{\"$ref\":\"part#n\"},"
    "\"meta\":{\"$ref\":\"http://json-schema.org/draft-07/schema#\"}},"
    "\"patternProperties\":{\"^x-\":{\"oneOf\":[{\"type\":\"null\"},{\"const\":1}]}},"
    "\"required\":[\"name\"],\"dependentRequired\":{\"when\":[\"host\"]},"
    "\"allOf\":[{\"properties\":{\"extra\":true}}],\"unevaluatedProperties\":false,"
    "\"$defs\":{\"p\":{\"$id\":\"part\",\"$defs\":{\"n\":{\"$anchor\":\"n\",\"type\":\"number\"}}}}"
    "}";

static const char fitting[] =
    "{\"n\\u0061me\":\"caf\\u0065-1\",\"when\":\"2026-01-31T09:30:00Z\",\"host\":\"xn--bcher-kva."
    "de\","
    "\"kind\":{\"c\":1.0},\"list\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],"
    "\"more\":{\"name\":\"b\",\"extra\":0},\"other\":2.5,\"meta\":{\"type\":\"null\"},\"x-a\":1}";

static void every_allocation_fails_in_turn(void **state)
{
    (void)state;
    arena memory;
    json_doc text;
    json_doc instance;
    arena_init(&memory, 1U << 20);
    assert_int_equal(json_parse(&text, str_of(everything), NULL, &memory, NULL), BAY_OK);
    assert_int_equal(json_parse(&instance, str_of(fitting), NULL, &memory, NULL), BAY_OK);
    bool is_done = false;
    for (size_t at = 0; failing_memory_start(at); at++) {
        schema *compiled = NULL;
        bay_diag diag = {0};
        bay_err err = schema_compile(json_root(&text), NULL, &compiled, &diag);
        if (err != BAY_OK && err != BAY_ERR_NOMEM) {
            print_error("%d: %s\n", (int)err, diag.text);
        }
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        if (err == BAY_OK) {
            schema_failures failures;
            err = schema_check(compiled, json_root(&instance), NULL, &failures);
            if (err != BAY_OK && err != BAY_ERR_NOMEM) {
                print_error("%s\n", failures.item[0].text.at);
            }
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
            is_done |= err == BAY_OK;
            schema_free(compiled);
        } else {
            assert_null(compiled);
        }
        failing_memory_check();
    }
    assert_true(is_done);
    arena_fini(&memory);
}

static void a_warm_state_allocates_nothing(void **state)
{
    (void)state;
    arena memory;
    json_doc instance;
    schema *compiled = must_compile(everything);
    schema_state scratch;
    arena_init(&memory, 1U << 20);
    assert_int_equal(json_parse(&instance, str_of(fitting), NULL, &memory, NULL), BAY_OK);
    schema_state_init(&scratch);
    assert_int_equal(schema_check(compiled, json_root(&instance), &scratch, NULL), BAY_OK);
    assert_true(failing_memory_start(0)); /* from here on there is nothing to be had */
    for (int i = 0; i < 10; i++) {
        assert_int_equal(schema_check(compiled, json_root(&instance), &scratch, NULL), BAY_OK);
    }
    assert_false(failing_memory.has_failed);
    failing_memory_stop();
    schema_state_fini(&scratch);
    schema_free(compiled);
    arena_fini(&memory);
}

typedef struct worker {
    pthread_t thread;
    const schema *compiled;
    size_t wrong;
} worker;

static void *work(void *argument)
{
    worker *self = argument;
    static const char broken[] = "{\"name\":\"a b\",\"list\":[1,1]}";
    arena memory;
    json_doc docs[2];
    schema_state scratch;
    schema_failures failures;
    arena_init(&memory, 1U << 20);
    schema_state_init(&scratch);
    if (json_parse(&docs[0], str_of(fitting), NULL, &memory, NULL) != BAY_OK ||
        json_parse(&docs[1], str_of(broken), NULL, &memory, NULL) != BAY_OK) {
        self->wrong++;
    }
    for (int i = 0; i < 300 && self->wrong == 0; i++) {
        self->wrong +=
            schema_check(self->compiled, json_root(&docs[0]), &scratch, &failures) != BAY_OK;
        self->wrong += schema_check(self->compiled, json_root(&docs[1]), &scratch, &failures) !=
                       BAY_ERR_INVALID;
        self->wrong += failures.count != 2;
    }
    schema_state_fini(&scratch);
    arena_fini(&memory);
    return NULL;
}

static void threads_share_a_schema(void **state)
{
    (void)state;
    enum { WORKERS = 4 };
    worker workers[WORKERS] = {0};
    schema *compiled = must_compile(everything);
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i].compiled = compiled;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].wrong, 0);
    }
    schema_free(compiled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_in_turn),
        cmocka_unit_test(a_warm_state_allocates_nothing),
        cmocka_unit_test(threads_share_a_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
