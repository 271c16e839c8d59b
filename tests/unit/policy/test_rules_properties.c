/* Properties of decisions, over random rules, names, principals and arguments. */
#include <stdio.h>
#include <stdlib.h>

#include "support/rules_rig.h"

enum { ROUNDS = 1500, RULES = 8, ASKS = 24 };

static uint32_t seed;

static uint32_t roll(uint32_t most)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % most;
}

static const char *pick(const char *const *from, uint32_t count)
{
    return from[roll(count)];
}

#define PICK(from) pick(from, sizeof(from) / sizeof(from[0]))

static const char *const names[] = {"a.x", "a.y", "b.x", "b.drop_y", "a.drop"};
static const char *const patterns[] = {"*", "a.*", "a.x", "*drop*", "b.?", "*.x"};
static const char *const argument_sets[] = {
    "{}",
    "{\"p\":\"/srv/a\"}",
    "{\"p\":\"/etc/a\",\"n\":5}",
    "{\"p\":\"/srv/a\",\"n\":50}",
    "{\"n\":50,\"N\":1}",
    "{\"p\":[1],\"n\":\"5\"}",
};
static const char *const claim_sets[] = {"{}", "{\"r\":\"ops\"}", "{\"r\":[\"dev\",\"ops\"]}",
                                         "{\"r\":7,\"t\":\"t1\"}"};
static const char *const scope_sets[] = {"", "s1", "s1 s2"};

static void random_condition(rules_rig *self)
{
    switch (roll(7)) {
    case 0:
        rules_if(self, POLICY_ARGUMENT, "/p", "prefix", "/srv/");
        break;
    case 1:
        rules_if(self, POLICY_ARGUMENT, "/n", "gt", "10");
        break;
    case 2:
        rules_if(self, POLICY_CLAIM, "/r", "has", "ops");
        break;
    case 3:
        rules_if(self, POLICY_CLAIM, "/t", "", "t1|t2");
        break;
    case 4:
        rules_if(self, POLICY_SCOPES, "", "", "s2");
        break;
    case 5:
        rules_if(self, POLICY_SUBJECT, "", "", "ann");
        break;
    default:
        rules_if(self, POLICY_ARGUMENT, "/q", "exists", roll(2) == 0 ? "true" : "false");
        break;
    }
}

typedef struct recipe {
    policy_effect effect;
    const char *pattern;
    uint32_t conditions; /* the seed of its conditions; 0: none */
} recipe;

static void add(rules_rig *self, const recipe *from)
{
    uint32_t kept = seed;
    rules_add(self, from->effect, from->pattern);
    seed = from->conditions;
    for (uint32_t i = from->conditions == 0 ? 0 : 1 + roll(2); i > 0; i--) {
        random_condition(self);
    }
    seed = kept;
}

static size_t random_recipes(recipe *out)
{
    size_t count = roll(RULES + 1);
    for (size_t i = 0; i < count; i++) {
        out[i] =
            (recipe){(policy_effect)roll(3), PICK(patterns), roll(3) == 0 ? 0 : 1 + roll(9999)};
    }
    return count;
}

static void make(rules_rig *self, policy_effect fallback, const recipe *from, size_t count,
                 size_t first)
{
    rules_begin(self, fallback);
    for (size_t i = 0; i < count; i++) {
        add(self, &from[(first + i) % count]);
    }
}

static void random_principal(rules_rig *self)
{
    static const char *const subjects[] = {"", "ann", "bob"};
    rules_as(self, roll(2) == 0 ? PRINCIPAL_TOKEN : PRINCIPAL_KEY, PICK(subjects), PICK(scope_sets),
             PICK(claim_sets));
}

/* Callable with any arguments: listed. Not listed: hidden or locked whatever the arguments are, and
 * in the same way. Listed: never hidden. */
static void test_listed_and_callable(void **state)
{
    recipe from[RULES];
    int callable = 0;
    int hidden = 0;
    (void)state;
    for (seed = 1; seed < ROUNDS; seed++) {
        uint32_t kept = seed;
        rules_rig self;
        size_t count = random_recipes(from);
        make(&self, roll(2) == 0 ? POLICY_ALLOW : POLICY_DENY, from, count, 0);
        random_principal(&self);
        for (int i = 0; i < ASKS; i++) {
            const char *name = PICK(names);
            policy_outcome listed = rules_list(&self, name);
            policy_outcome called = rules_call(&self, name, PICK(argument_sets));
            bool is_there = listed == POLICY_ALLOWED;
            assert_true(is_there || listed == called);
            assert_true(!is_there || called >= POLICY_DENIED);
            callable += called == POLICY_ALLOWED;
            hidden += called == POLICY_HIDDEN;
        }
        rules_end(&self);
        seed = kept;
    }
    assert_true(callable > 1000 && hidden > 1000);
}

/* The order of rules says nothing. */
static void test_order(void **state)
{
    recipe from[RULES];
    (void)state;
    for (seed = 1; seed < ROUNDS / 3; seed++) {
        uint32_t kept = seed;
        rules_rig one;
        rules_rig other;
        size_t count = random_recipes(from);
        policy_effect fallback = roll(2) == 0 ? POLICY_ALLOW : POLICY_DENY;
        make(&one, fallback, from, count, 0);
        make(&other, fallback, from, count, count > 0 ? roll((uint32_t)count) : 0);
        uint32_t who = seed;
        random_principal(&one);
        seed = who;
        random_principal(&other);
        for (int i = 0; i < ASKS; i++) {
            const char *name = PICK(names);
            const char *arguments = PICK(argument_sets);
            assert_int_equal(rules_call(&one, name, arguments),
                             rules_call(&other, name, arguments));
        }
        rules_end(&one);
        rules_end(&other);
        seed = kept;
    }
}

/* A principal of whom less is known, and arguments of which less is known, get no more; a rule that
 * denies or wants an approval widens nothing. */
static void test_unknown_never_widens(void **state)
{
    recipe from[RULES + 1];
    int narrowed = 0;
    (void)state;
    for (seed = 1; seed < ROUNDS / 2; seed++) {
        uint32_t kept = seed;
        rules_rig one;
        rules_rig other;
        size_t count = random_recipes(from);
        policy_effect fallback = roll(2) == 0 ? POLICY_ALLOW : POLICY_DENY;
        const char *name = PICK(names);
        make(&one, fallback, from, count, 0);
        from[count] = (recipe){roll(2) == 0 ? POLICY_DENY : POLICY_APPROVE, PICK(patterns),
                               roll(2) == 0 ? 0 : 1 + roll(9999)};
        make(&other, fallback, from, count + 1, 0);
        for (int i = 0; i < 8; i++) {
            const char *arguments = PICK(argument_sets);
            uint32_t who = seed;
            random_principal(&one);
            seed = who;
            random_principal(&other);
            policy_outcome wide = rules_call(&one, name, arguments);
            policy_outcome narrow = rules_call(&other, name, arguments);
            assert_true(narrow <= wide || (wide == POLICY_HIDDEN && narrow == POLICY_LOCKED));
            narrowed += narrow < wide;
        }
        rules_end(&one);
        rules_end(&other);
        seed = kept;
    }
    assert_true(narrowed > 100);
}

/* What nobody says is never better than any value of it: the arguments without a member of them. */
static void test_missing_argument(void **state)
{
    recipe from[RULES];
    (void)state;
    for (seed = 1; seed < ROUNDS / 2; seed++) {
        uint32_t kept = seed;
        rules_rig self;
        size_t count = random_recipes(from);
        make(&self, roll(2) == 0 ? POLICY_ALLOW : POLICY_DENY, from, count, 0);
        random_principal(&self);
        const char *name = PICK(names);
        policy_outcome without = rules_call(&self, name, "{\"q\":1}");
        bool is_some_allowed = false;
        static const char *const with[] = {
            "{\"q\":1,\"p\":\"/srv/a\",\"n\":5}", "{\"q\":1,\"p\":\"/srv/a\",\"n\":50}",
            "{\"q\":1,\"p\":\"/etc/a\",\"n\":5}", "{\"q\":1,\"p\":\"/etc/a\",\"n\":50}"};
        for (size_t i = 0; i < 4; i++) {
            is_some_allowed |= rules_call(&self, name, with[i]) >= without;
        }
        assert_true(is_some_allowed);
        rules_end(&self);
        seed = kept;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listed_and_callable),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_unknown_never_widens),
        cmocka_unit_test(test_missing_argument),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
