/* What an endpoint remembers of tasks: whose it is, how long, how much; and that nobody's tasks
 * make another's go. */
#include "support/fake_upstream.h"

#include "base/mem.h"
#include "tasks/registry.h"
#include "json/build.h"

static task_registry *open_registry(void)
{
    task_registry *registry = NULL;
    assert_int_equal(task_registry_new(NULL, 1000, &registry), BAY_OK);
    return registry;
}

static task_entry *add(task_registry *registry, const char *who, const char *token, uint64_t now_ms)
{
    task_entry *entry = NULL;
    assert_int_equal(task_entry_add(registry, str_of(who), str_of(token), 1000, now_ms, &entry),
                     BAY_OK);
    return entry;
}

static void assert_listed(const task_registry *registry, const char *who, const char *wanted)
{
    buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(task_registry_list(registry, str_of(who), JSON_NONE, &out), BAY_OK);
    assert_text(buf_view(&out), wanted);
    buf_fini(&out);
}

static void a_note_is_its_owners_until_its_time_is_over(void **state)
{
    (void)state;
    task_registry *registry = open_registry();
    task_entry *entry = add(registry, "a", "t1", 0);
    add(registry, "b", "t2", 500);
    assert_int_equal(task_entry_show(entry, STR("{\"n\":1.0}")), BAY_OK);
    assert_ptr_equal(task_entry_find(registry, STR("a"), STR("t1")), entry);
    assert_null(task_entry_find(registry, STR("b"), STR("t1")));
    assert_null(task_entry_find(registry, STR(""), STR("t1")));
    assert_null(task_entry_find(NULL, STR("a"), STR("t1")));
    assert_listed(registry, "a", "\"tasks\":[{\"n\":1.0}]");
    assert_listed(registry, "b", "\"tasks\":[]"); /* nothing to show of it */
    assert_listed(registry, "nobody", "\"tasks\":[]");
    assert_listed(NULL, "a", "\"tasks\":[]");
    task_registry_expire(registry, 999);
    assert_non_null(task_entry_find(registry, STR("a"), STR("t1")));
    task_registry_expire(registry, 1000);
    assert_null(task_entry_find(registry, STR("a"), STR("t1")));
    assert_non_null(task_entry_find(registry, STR("b"), STR("t2")));
    /* a time without end has one all the same */
    task_entry *longest = NULL;
    assert_int_equal(task_entry_add(registry, STR("a"), STR("t3"), UINT64_MAX, 1000, &longest),
                     BAY_OK);
    assert_int_equal(longest->expires_at_ms, 1000 + (uint64_t)TASK_MAX_TTL_MS);
    task_registry_free(registry);
    task_registry_free(NULL);
}

static void a_long_task_is_not_listed(void **state)
{
    (void)state;
    task_registry *registry = open_registry();
    task_entry *entry = add(registry, "a", "t1", 0);
    char *text = calloc(1, TASK_ENTRY_BYTES + 2);
    assert_non_null(text);
    memset(text, '1', TASK_ENTRY_BYTES + 1);
    assert_int_equal(task_entry_show(entry, (bay_str){text, TASK_ENTRY_BYTES + 1}), BAY_ERR_LIMIT);
    assert_listed(registry, "a", "\"tasks\":[]");
    assert_int_equal(task_entry_show(entry, (bay_str){text, TASK_ENTRY_BYTES}), BAY_OK);
    assert_int_equal(entry->shown_len, TASK_ENTRY_BYTES);
    free(text);
    task_registry_free(registry);
}

static void one_owners_many_make_only_its_own_go(void **state)
{
    (void)state;
    task_registry *registry = open_registry();
    char token[40];
    add(registry, "quiet", "q", 0);
    for (int i = 0; i < TASK_ENTRIES_EACH + 5; i++) {
        (void)snprintf(token, sizeof(token), "t%d", i);
        add(registry, "loud", token, 0);
    }
    assert_non_null(task_entry_find(registry, STR("quiet"), STR("q")));
    assert_null(task_entry_find(registry, STR("loud"), STR("t4")));
    assert_non_null(task_entry_find(registry, STR("loud"), STR("t5")));
    assert_int_equal(registry->entries.len, TASK_ENTRIES_EACH + 1);
    task_registry_free(registry);
}

static void all_together_have_a_bound_too(void **state)
{
    (void)state;
    task_registry *registry = open_registry();
    char token[40];
    char who[40];
    task_entry *entry = NULL;
    for (int i = 0; i < TASK_ENTRIES; i++) {
        (void)snprintf(token, sizeof(token), "t%d", i);
        (void)snprintf(who, sizeof(who), "w%d", i / 100);
        add(registry, who, token, 0);
    }
    assert_int_equal(task_entry_add(registry, STR("late"), STR("x"), 1000, 0, &entry),
                     BAY_ERR_LIMIT);
    assert_null(map_get(&registry->owners, STR("late")));
    /* what is over makes room by itself */
    assert_int_equal(task_entry_add(registry, STR("late"), STR("x"), 1000, 1000, &entry), BAY_OK);
    assert_int_equal(registry->entries.len, 1);
    task_registry_free(registry);
}

/* A value that takes `bytes` with its index. */
static json_val sized(arena *memory, size_t bytes)
{
    size_t len = bytes - json_clone_bytes(json_empty_object()); /* of as many characters, {} */
    json_builder made;
    json_val value = JSON_NONE;
    char *text = mem_alloc(len);
    assert_non_null(text);
    memset(text, 'x', len);
    json_put_str(json_builder_init(&made, memory, SIZE_MAX), (bay_str){text, len});
    assert_int_equal(json_builder_end(&made, &value), BAY_OK);
    assert_int_equal(json_clone_bytes(value), bytes);
    mem_free(text);
    return value;
}

static void kept_results_have_bounds(void **state)
{
    (void)state;
    enum { HALF = TASK_KEPT_EACH / 2, LITTLE = 100 };
    arena memory;
    arena_init(&memory, SIZE_MAX);
    json_val half = sized(&memory, HALF);
    task_registry *registry = open_registry();
    task_entry *first = add(registry, "a", "1", 0);
    assert_int_equal(
        task_entry_keep(registry, first, sized(&memory, (size_t)TASK_KEPT_EACH + 1), false),
        BAY_ERR_LIMIT);
    assert_false(first->is_own);
    assert_int_equal(task_entry_keep(registry, first, half, false), BAY_OK);
    assert_int_equal(task_entry_keep(registry, add(registry, "a", "2", 0), half, false), BAY_OK);
    assert_non_null(task_entry_find(registry, STR("a"), STR("1")));
    assert_int_equal(
        task_entry_keep(registry, add(registry, "a", "3", 0), sized(&memory, LITTLE), true),
        BAY_OK);
    assert_null(task_entry_find(registry, STR("a"), STR("1"))); /* its oldest made room */
    assert_true(task_entry_find(registry, STR("a"), STR("3"))->is_failure);
    assert_int_equal(registry->kept_bytes, HALF + LITTLE);
    for (int i = 0; i < TASK_KEPT_BYTES / HALF - 1; i++) {
        char who[8];
        (void)snprintf(who, sizeof(who), "b%d", i);
        bay_err err = task_entry_keep(registry, add(registry, who, who, 0), half, false);
        assert_int_equal(err, i < TASK_KEPT_BYTES / HALF - 2 ? BAY_OK : BAY_ERR_LIMIT);
    }
    assert_non_null(task_entry_find(registry, STR("a"), STR("2"))); /* nobody else's went */
    arena_fini(&memory);
    task_registry_free(registry);
}

static void farewells_have_a_bound(void **state)
{
    (void)state;
    task_registry *registry = open_registry();
    fake *server = fake_new("s", false);
    upstream_affinity affinity = {.identity = STR("who")};
    for (int i = 0; i < TASK_CANCELS + 3; i++) {
        task_cancel_send(registry, &server->base, STR("t"), &affinity);
    }
    assert_int_equal(server->sends, TASK_CANCELS);
    assert_text(server->held[0]->spec.method, "tasks/cancel");
    assert_text(server->held[0]->spec.rename, "t");
    fake_result(server, "{}");
    task_cancel_send(registry, &server->base, STR("t"), &affinity);
    assert_int_equal(server->sends, TASK_CANCELS + 1);
    task_registry_free(registry); /* takes back what is open */
    assert_int_equal(server->held_count, 0);
    fake_free(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_is_its_owners_until_its_time_is_over),
        cmocka_unit_test(a_long_task_is_not_listed),
        cmocka_unit_test(one_owners_many_make_only_its_own_go),
        cmocka_unit_test(all_together_have_a_bound_too),
        cmocka_unit_test(kept_results_have_bounds),
        cmocka_unit_test(farewells_have_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
