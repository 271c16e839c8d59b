/* Names that clients gave their tasks: found by whoever gave them, replaced by newer ones, bounded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "agents/proxy_params.h" /* cmocka takes the word "fail" */

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "support/failing_memory.h"

static bool is_known(agents_aliases *self, const char *agent, const char *principal,
                     const char *client_id, const char *id)
{
    buf out;
    buf_init(&out, 2048);
    bool found =
        agents_aliases_find(self, str_of(agent), str_of(principal), str_of(client_id), &out) &&
        str_eq(buf_view(&out), str_of(id));
    buf_fini(&out);
    return found;
}

static void names_belong_to_whoever_gave_them(void **state)
{
    (void)state;
    agents_aliases *self = NULL;
    assert_int_equal(agents_aliases_new(&self), BAY_OK);
    assert_false(is_known(self, "a", "me", "mine", "1"));
    agents_aliases_put(self, STR("a"), STR("me"), STR("mine"), STR("1"));
    assert_true(is_known(self, "a", "me", "mine", "1"));
    assert_false(is_known(self, "b", "me", "mine", "1"));
    assert_false(is_known(self, "a", "you", "mine", "1"));
    assert_false(is_known(self, "a", "m", "emine", "1"));
    agents_aliases_put(self, STR("a"), STR("me"), STR("mine"), STR("2"));
    assert_true(is_known(self, "a", "me", "mine", "2"));
    agents_aliases_free(self);
}

static void the_oldest_is_forgotten_and_long_ones_are_not_kept(void **state)
{
    (void)state;
    char id[24];
    static char long_id[AGENTS_ALIAS_BYTES + 2];
    agents_aliases *self = NULL;
    memset(long_id, 'x', AGENTS_ALIAS_BYTES + 1);
    assert_int_equal(agents_aliases_new(&self), BAY_OK);
    for (int i = 0; i <= AGENTS_ALIASES; i++) {
        (void)snprintf(id, sizeof(id), "%d", i);
        agents_aliases_put(self, STR("a"), STR(""), str_of(id), str_of(id));
    }
    (void)snprintf(id, sizeof(id), "%d", AGENTS_ALIASES);
    assert_false(is_known(self, "a", "", "0", "0"));
    assert_true(is_known(self, "a", "", "1", "1"));
    assert_true(is_known(self, "a", "", id, id));
    agents_aliases_put(self, STR("a"), STR(""), str_of(long_id), STR("1"));
    assert_false(is_known(self, "a", "", long_id, "1"));
    assert_true(is_known(self, "a", "", "1", "1")); /* nothing went for it */
    agents_aliases_free(self);
}

static void a_lack_of_memory_forgets_and_nothing_else(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        agents_aliases *self = NULL;
        if (agents_aliases_new(&self) == BAY_OK) {
            agents_aliases_put(self, STR("a"), STR("me"), STR("mine"), STR("1"));
            agents_aliases_put(self, STR("a"), STR("me"), STR("mine"), STR("2"));
            assert_false(is_known(self, "a", "you", "mine", "2"));
        }
        agents_aliases_free(self);
        failing_memory_check();
    }
}

static void a_skill_is_named_by_message_or_request(void **state)
{
    (void)state;
    static const struct {
        const char *params;
        const char *skill; /* NULL: none */
    } rows[] = {
        {"{}", NULL},
        {"{\"message\":{\"metadata\":{\"skillId\":1}}}", NULL},
        {"{\"message\":{\"parts\":[{\"text\":\"a\"}]}}", NULL},
        {"{\"message\":{\"metadata\":{\"skillId\":\"a\"}}}", "a"},
        {"{\"message\":{\"metadata\":{\"skill\":\"a\"}}}", "a"},
        {"{\"metadata\":{\"skillId\":\"a\"},\"message\":{}}", "a"},
        {"{\"metadata\":{\"skillId\":\"b\"},\"message\":{\"metadata\":{\"skill\":\"a\"}}}", "a"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_doc doc;
        arena memory;
        arena_init(&memory, 1 << 16);
        assert_int_equal(json_parse(&doc, str_of(rows[i].params), NULL, &memory, NULL), BAY_OK);
        json_val found = agents_proxy_skill_of(json_root(&doc));
        if (rows[i].skill != NULL) {
            assert_true(json_str_eq(found, str_of(rows[i].skill)));
        } else {
            assert_true(json_is(found, JSON_MISSING));
        }
        arena_fini(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_skill_is_named_by_message_or_request),
        cmocka_unit_test(names_belong_to_whoever_gave_them),
        cmocka_unit_test(the_oldest_is_forgotten_and_long_ones_are_not_kept),
        cmocka_unit_test(a_lack_of_memory_forgets_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
