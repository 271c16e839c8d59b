/* When lists are read anew. */
#include "support/fake_upstream.h"

#include "catalog/freshness.h"

enum { DICE = 1000 };

static const freshness_facts usual = {.is_good = true, .has_kind = true, .every_ms = 300000};

/* Between which bounds the next reading falls, whatever the dice say. */
static void assert_again(freshness_facts facts, uint64_t least_ms, uint64_t most_ms)
{
    uint64_t lowest = UINT64_MAX;
    uint64_t highest = 0;
    for (uint64_t dice = 0; dice < DICE; dice++) {
        uint64_t again_ms = freshness_plan_of(&facts, dice * 0x9e3779b97f4a7c15u).again_ms;
        lowest = again_ms < lowest ? again_ms : lowest;
        highest = again_ms > highest ? again_ms : highest;
    }
    assert_true(lowest >= least_ms);
    assert_true(highest <= most_ms);
    assert_true(highest - lowest >= (most_ms - least_ms) / 2); /* they are spread */
}

static uint64_t fresh_of(freshness_facts facts)
{
    return freshness_plan_of(&facts, 0).fresh_ms;
}

static void nobody_reads_what_is_told_or_not_there(void **state)
{
    (void)state;
    freshness_facts facts = usual;
    facts.tells = true;
    assert_again(facts, 0, 0);
    assert_int_equal(fresh_of(facts), 0); /* it may change any moment */
    facts = usual;
    facts.every_ms = 0;
    assert_again(facts, 0, 0);
    assert_int_equal(fresh_of(facts), 0);
    facts = usual;
    facts.has_kind = false;
    assert_again(facts, 0, 0);
    assert_true(fresh_of(facts) == UINT64_MAX);
    facts = usual;
    facts.may_idle = true;
    facts.ttl_ms = 5000;
    assert_again(facts, 0, 0);
    assert_int_equal(fresh_of(facts), 5000);
}

static void the_server_s_own_time_goes_first(void **state)
{
    (void)state;
    freshness_facts facts = usual;
    facts.ttl_ms = 20000;
    assert_again(facts, 18000, 22000);
    assert_int_equal(fresh_of(facts), 20000);
    facts.tells = true;
    assert_again(facts, 18000, 22000);
    facts.ttl_ms = 5; /* nobody is asked more than once a second */
    assert_again(facts, 900, 1100);
    assert_int_equal(fresh_of(facts), 5);
    facts.ttl_ms = UINT32_MAX;
    assert_again(facts, FRESHNESS_MOST_MS - FRESHNESS_MOST_MS / 10,
                 FRESHNESS_MOST_MS + FRESHNESS_MOST_MS / 10);
}

static void without_it_every_so_often(void **state)
{
    (void)state;
    assert_again(usual, 270000, 330000);
    assert_int_equal(fresh_of(usual), 300000);
}

static void what_may_get_lost_is_read_all_the_same(void **state)
{
    (void)state;
    freshness_facts facts = usual;
    facts.tells = true;
    facts.may_miss = true;
    assert_again(facts, 270000, 330000);
    assert_int_equal(fresh_of(facts), 0); /* it may change any moment */
    facts.every_ms = 0;
    assert_again(facts, 0, 0);
}

static void a_reading_that_failed_is_tried_again(void **state)
{
    (void)state;
    freshness_facts facts = {.is_good = false, .has_kind = true, .tells = true, .may_idle = true};
    assert_again(facts, 27000, 33000);
    assert_int_equal(fresh_of(facts), 0);
}

/* ---- on a loop ---------------------------------------------------------------------------------
 */

typedef struct stage {
    loop *loop;
    freshness freshness;
    int reads[LISTING_KINDS];
} stage;

static void stage_reads(void *user, listing_kind kind)
{
    stage *self = user;
    self->reads[kind]++;
    freshness_started(&self->freshness, kind);
}

static void begin(stage *self)
{
    *self = (stage){0};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    freshness_init(&self->freshness, self->loop, stage_reads, self);
}

static void finish(stage *self)
{
    freshness_stop(&self->freshness);
    loop_free(self->loop);
}

static void a_storm_of_changes_is_read_once_and_once_more(void **state)
{
    (void)state;
    stage self;
    begin(&self);
    for (int i = 0; i < 100000; i++) {
        freshness_told(&self.freshness, LISTING_TOOLS);
    }
    assert_int_equal(self.reads[LISTING_TOOLS], 1);
    freshness_told(&self.freshness, LISTING_PROMPTS);
    assert_int_equal(self.reads[LISTING_PROMPTS], 1); /* each kind by itself */
    /* a reading that ends meanwhile puts nothing off */
    freshness_ended(&self.freshness, LISTING_TOOLS, &usual);
    while (self.reads[LISTING_TOOLS] < 2) {
        loop_turn(self.loop, 1000);
    }
    assert_int_equal(self.reads[LISTING_PROMPTS], 1);
    assert_int_equal(self.freshness.due_ms[LISTING_TOOLS], 0);
    finish(&self);
}

static void what_is_due_is_read_by_itself(void **state)
{
    (void)state;
    stage self;
    begin(&self);
    freshness_facts facts = usual;
    facts.ttl_ms = 1;
    freshness_started(&self.freshness, LISTING_RESOURCES);
    freshness_ended(&self.freshness, LISTING_RESOURCES, &facts);
    freshness_ended(&self.freshness, LISTING_TEMPLATES, &usual);
    while (self.reads[LISTING_RESOURCES] < 1) {
        loop_turn(self.loop, 2000);
    }
    assert_int_equal(self.reads[LISTING_TEMPLATES], 0);
    assert_true(self.freshness.due_ms[LISTING_TEMPLATES] > 0);
    freshness_stop(&self.freshness);
    assert_int_equal(self.freshness.due_ms[LISTING_TEMPLATES], 0);
    finish(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_reads_what_is_told_or_not_there),
        cmocka_unit_test(the_server_s_own_time_goes_first),
        cmocka_unit_test(without_it_every_so_often),
        cmocka_unit_test(what_may_get_lost_is_read_all_the_same),
        cmocka_unit_test(a_reading_that_failed_is_tried_again),
        cmocka_unit_test(a_storm_of_changes_is_read_once_and_once_more),
        cmocka_unit_test(what_is_due_is_read_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
