/* Calls that are carried out once, at the door: the first goes, equal ones wait or get its outcome,
 * and each refusal says what became of the call. Negative cases first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/opensslv.h> /* a build that cannot digest leaves this out */
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "call/target.h"
#include "gateway/once.h"
#include "support/people.h"

typedef struct rig {
    call_door door;
    call_once once;
    call_target *target;
    arena memory;
    int wakes;
} rig;

static void on_wake(void *user)
{
    ((rig *)user)->wakes++;
}

static void on_resume(call_context *self)
{
    call_refusal why;
    call_verdict verdict = call_admit(self, self->target, &why);
    assert_true(verdict != CALL_GO || self->state == CALL_ADMITTED);
}

static void rig_init(rig *self, uint32_t most)
{
    policy_tools *tools = NULL;
    size_t other;
    policy_idempotency how = {.argument = STR_INIT("/ref"), .derive = false};
    *self = (rig){0};
    arena_init(&self->memory, 1 << 20);
    call_door_init(&self->door);
    self->door.timeout_ms = 1000;
    self->door.wake = on_wake;
    self->door.user = self;
    gateway_once_init(&self->once);
    assert_int_equal(outcomes_new(&(outcomes_options){0}, &self->once.table), BAY_OK);
    assert_int_equal(policy_tools_new(&tools), BAY_OK);
    assert_int_equal(
        policy_tools_add(tools, STR("bank.pay"), &(policy_tool){.idempotency = &how}, &other),
        BAY_OK);
    policy_tools_index_set(&self->door.tools, tools);
    policy_tools_unref(tools);
    self->door.once = &self->once;
    assert_int_equal(call_target_new(STR("bank"), most, &self->target), BAY_OK);
}

static void rig_fini(rig *self)
{
    uint32_t used;
    uint32_t waiting;
    call_target_count(self->target, &used, &waiting);
    assert_int_equal(used, 0);
    assert_int_equal(waiting, 0);
    assert_true(list_is_empty(&self->door.waiting));
    assert_true(list_is_empty(&self->door.granted));
    call_target_unref(self->target);
    policy_tools_index_fini(&self->door.tools);
    outcomes_free(self->once.table);
    arena_fini(&self->memory);
}

static call_context *begun(rig *self, const char *who, const char *params)
{
    call_context *call = arena_zalloc(&self->memory, sizeof(*call));
    json_doc *doc = arena_alloc(&self->memory, sizeof(*doc));
    assert_int_equal(json_parse(doc, str_of(params), NULL, &self->memory, NULL), BAY_OK);
    *call = (call_context){
        .kind = CALL_TOOL,
        .method = STR("tools/call"),
        .principal = person(who),
        .params = json_root(doc),
        .about = {.kind = POLICY_TOOL, .server = STR_INIT("bank"), .name = STR_INIT("bank.pay")},
        .memory = &self->memory,
        .resume = on_resume};
    call_begin(call, &self->door);
    return call;
}

static call_verdict admit(rig *self, call_context *call, call_refusal *out)
{
    return call_admit(call, self->target, out);
}

#define PAY(n) "{\"arguments\":{\"ref\":\"a\",\"n\":" n "}}"

static void finish(rig *self, call_context *call, const char *result)
{
    json_doc *doc = arena_alloc(&self->memory, sizeof(*doc));
    assert_int_equal(json_parse(doc, str_of(result), NULL, &self->memory, NULL), BAY_OK);
    call->is_sent = true;
    call_set_outcome(call, OUTCOME_RESULT, json_root(doc));
    call_over(call, CALL_RESULT);
}

static void the_anonymous_have_no_key_unless_they_are_local(void **state)
{
    rig self;
    call_refusal why;
    (void)state;
    for (int is_local = 0; is_local < 2; is_local++) {
        rig_init(&self, 0);
        self.once.is_local = is_local == 1;
        call_context *first = begun(&self, "", PAY("1"));
        call_context *second = begun(&self, "", PAY("1"));
        assert_int_equal(admit(&self, first, &why), CALL_GO);
        assert_int_equal(admit(&self, second, &why), is_local == 1 ? CALL_WAIT : CALL_GO);
        call_over(second, CALL_CANCELLED);
        call_over(first, CALL_CANCELLED);
        rig_fini(&self);
    }
}

static void the_same_key_with_other_arguments_is_a_conflict(void **state)
{
    rig self;
    call_refusal why;
    (void)state;
    rig_init(&self, 0);
    call_context *first = begun(&self, "ann", PAY("1"));
    call_context *other = begun(&self, "ann", PAY("2"));
    assert_int_equal(admit(&self, first, &why), CALL_GO);
    assert_int_equal(admit(&self, other, &why), CALL_REFUSE);
    assert_int_equal(why.reason, CALL_CONFLICT);
    assert_false(why.may_have_run);
    assert_non_null(strstr(why.text, "new key"));
    call_over(other, CALL_ERROR);
    call_over(first, CALL_CANCELLED);
    rig_fini(&self);
}

static void two_principals_with_one_key_do_not_meet(void **state)
{
    rig self;
    call_refusal why;
    (void)state;
    rig_init(&self, 0);
    call_context *ann = begun(&self, "ann", PAY("1"));
    call_context *bob = begun(&self, "bob", PAY("2"));
    assert_int_equal(admit(&self, ann, &why), CALL_GO);
    assert_int_equal(admit(&self, bob, &why), CALL_GO);
    call_over(ann, CALL_CANCELLED);
    call_over(bob, CALL_CANCELLED);
    rig_fini(&self);
}

static void what_left_and_has_no_outcome_is_unknown(void **state)
{
    rig self;
    call_refusal why;
    (void)state;
    rig_init(&self, 0);
    call_context *first = begun(&self, "ann", PAY("1"));
    assert_int_equal(admit(&self, first, &why), CALL_GO);
    first->is_sent = true;
    assert_true(call_outlives_caller(first));
    call_over(first, CALL_ERROR);
    call_context *again = begun(&self, "ann", PAY("1"));
    assert_int_equal(admit(&self, again, &why), CALL_REFUSE);
    assert_int_equal(why.reason, CALL_UNKNOWN);
    assert_true(why.may_have_run);
    call_over(again, CALL_ERROR);
    /* a hint that is trusted: it may be carried out twice */
    call_context *twice = begun(&self, "ann", PAY("1"));
    twice->is_repeatable = true;
    assert_int_equal(admit(&self, twice, &why), CALL_GO);
    finish(&self, twice, "{}");
    rig_fini(&self);
}

static void what_did_not_leave_may_be_called_again(void **state)
{
    rig self;
    call_refusal why;
    (void)state;
    rig_init(&self, 0);
    for (int times = 0; times < 3; times++) {
        call_context *call = begun(&self, "ann", PAY("1"));
        assert_int_equal(admit(&self, call, &why), CALL_GO);
        assert_false(call_outlives_caller(call));
        call_over(call, CALL_ERROR);
    }
    rig_fini(&self);
}

static void an_equal_call_waits_for_the_outcome(void **state)
{
    rig self;
    call_refusal why;
    (void)state;
    rig_init(&self, 1); /* and takes no slot of the server */
    call_context *first = begun(&self, "ann", PAY("1"));
    call_context *second = begun(&self, "ann", PAY("1"));
    call_context *left = begun(&self, "ann", PAY("1"));
    assert_int_equal(admit(&self, first, &why), CALL_GO);
    assert_int_equal(admit(&self, second, &why), CALL_WAIT);
    assert_int_equal(admit(&self, left, &why), CALL_WAIT);
    call_over(left, CALL_CANCELLED);
    finish(&self, first, "{\"paid\":1}");
    assert_int_equal(self.wakes, 1);
    call_door_run(&self.door);
    assert_int_equal(second->state, CALL_ADMITTED);
    assert_true(str_eq(json_raw(second->answer.value), STR("{\"paid\":1}")));
    call_over(second, CALL_RESULT);
    rig_fini(&self);
}

static void waiting_is_bounded(void **state)
{
    rig self;
    call_refusal why;
    (void)state;
    rig_init(&self, 0);
    call_context *first = begun(&self, "ann", PAY("1"));
    call_context *second = begun(&self, "ann", PAY("1"));
    assert_int_equal(admit(&self, first, &why), CALL_GO);
    assert_int_equal(admit(&self, second, &why), CALL_WAIT);
    call_door_tick(&self.door, 999);
    assert_int_equal(second->state, CALL_WAITING);
    call_door_tick(&self.door, 1000);
    assert_int_equal(second->state, CALL_REFUSED);
    call_over(second, CALL_ERROR);
    call_context *late = begun(&self, "ann", PAY("1"));
    late->is_late = true;
    assert_int_equal(admit(&self, late, &why), CALL_REFUSE);
    assert_int_equal(why.reason, CALL_IN_FLIGHT);
    assert_in_range(why.retry_after_ms, 1000, 1200);
    call_over(late, CALL_ERROR);
    finish(&self, first, "{}");
    rig_fini(&self);
}

/* A turn that came while the call ended is not kept: the call is gone. */
static void a_call_that_ends_loses_its_turn(void **state)
{
    rig self;
    call_refusal why;
    (void)state;
    rig_init(&self, 0);
    call_context *first = begun(&self, "ann", PAY("1"));
    call_context *second = begun(&self, "ann", PAY("1"));
    assert_int_equal(admit(&self, first, &why), CALL_GO);
    assert_int_equal(admit(&self, second, &why), CALL_WAIT);
    finish(&self, first, "{}");
    call_over(second, CALL_CANCELLED);
    call_door_run(&self.door);
    rig_fini(&self);
}

/* The first is refused further down: who waits is carried out in its place. */
static void a_first_call_that_is_refused_lets_the_next_go(void **state)
{
    rig self;
    call_refusal why;
    (void)state;
    rig_init(&self, 1);
    call_context *slot = begun(&self, "ann", "{}");
    assert_int_equal(admit(&self, slot, &why), CALL_GO);
    call_context *first = begun(&self, "ann", PAY("1"));
    call_context *second = begun(&self, "ann", PAY("1"));
    assert_int_equal(admit(&self, first, &why), CALL_WAIT);  /* for the slot */
    assert_int_equal(admit(&self, second, &why), CALL_WAIT); /* for the first */
    call_over(first, CALL_CANCELLED);
    call_over(slot, CALL_RESULT);
    call_door_run(&self.door);
    assert_int_equal(second->state, CALL_ADMITTED);
    finish(&self, second, "{}");
    rig_fini(&self);
}

static void one_digest_of_the_arguments_is_made(void **state)
{
    rig self;
    bay_str one;
    bay_str other;
    (void)state;
    rig_init(&self, 0);
    call_context *call = begun(&self, "ann", PAY("1"));
    assert_int_equal(call_arguments_digest(call, &one), BAY_OK);
    assert_int_equal(call_arguments_digest(call, &other), BAY_OK);
    assert_ptr_equal(one.at, other.at);
    call_over(call, CALL_CANCELLED);
    rig_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_anonymous_have_no_key_unless_they_are_local),
        cmocka_unit_test(the_same_key_with_other_arguments_is_a_conflict),
        cmocka_unit_test(two_principals_with_one_key_do_not_meet),
        cmocka_unit_test(what_left_and_has_no_outcome_is_unknown),
        cmocka_unit_test(what_did_not_leave_may_be_called_again),
        cmocka_unit_test(an_equal_call_waits_for_the_outcome),
        cmocka_unit_test(waiting_is_bounded),
        cmocka_unit_test(a_call_that_ends_loses_its_turn),
        cmocka_unit_test(a_first_call_that_is_refused_lets_the_next_go),
        cmocka_unit_test(one_digest_of_the_arguments_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
