/* The door: what is not asked is not admitted, what a stage cannot decide is refused, what waits
 * has its turn in order or hears why not, and each call has one end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "call/target.h"
#include "support/people.h"

typedef struct rig {
    call_door door;
    call_target *target;
    int wakes;
    int records;
    call_outcome last;
    call_context *resumed[8];
    int resumed_count;
    bool guard_says;
} rig;

static rig *current;

static void on_wake(void *user)
{
    ((rig *)user)->wakes++;
}

static void on_record(void *user, const call_context *call, call_outcome how)
{
    rig *self = user;
    assert_int_equal(call->state, CALL_OVER);
    self->records++;
    self->last = how;
}

static bool on_guard(void *user, const call_context *call, call_refusal *out)
{
    (void)call;
    (void)out;
    return ((rig *)user)->guard_says;
}

static void on_resume(call_context *self)
{
    current->resumed[current->resumed_count++] = self;
}

static void rig_init(rig *self, uint32_t most)
{
    memset(self, 0, sizeof(*self));
    call_door_init(&self->door);
    self->door.timeout_ms = 1000;
    self->door.wake = on_wake;
    self->door.record = on_record;
    self->door.guard = on_guard;
    self->door.user = self;
    self->guard_says = true;
    assert_int_equal(call_target_new(STR("weather"), most, &self->target), BAY_OK);
    current = self;
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
}

static call_verdict admit(rig *self, call_context *call)
{
    call_refusal refusal;
    return call_admit(call, self->target, &refusal);
}

static call_context begun(rig *self)
{
    call_context call = {.kind = CALL_TOOL, .method = STR("tools/call"), .resume = on_resume};
    call_begin(&call, &self->door);
    return call;
}

static void test_nobody_asked(void **state)
{
    rig self;
    (void)state;
    rig_init(&self, 0);
    call_context call = begun(&self);
    assert_false(call_is_admitted(&call));
    call_over(&call, CALL_ERROR);
    assert_int_equal(self.records, 1);
    assert_false(call_is_admitted(&call));
    rig_fini(&self);
}

static void test_refused(void **state)
{
    rig self;
    call_refusal refusal;
    (void)state;
    rig_init(&self, 1);
    self.guard_says = false;
    call_context call = begun(&self);
    assert_int_equal(call_admit(&call, self.target, &refusal), CALL_REFUSE);
    assert_int_equal(refusal.reason, CALL_DENIED);
    assert_true(refusal.text[0] != '\0');
    assert_false(call_is_admitted(&call));
    call_over(&call, CALL_ERROR);
    assert_int_equal(self.last, CALL_TURNED_AWAY);
    rig_fini(&self);
}

static const auth_principal *with_scopes(principal_proof proof, const char *scopes)
{
    const auth_principal *made = NULL;
    principal_parts parts = {.proof = proof, .subject = STR_INIT("ann"), .scopes = str_of(scopes)};
    assert_int_equal(principal_new(&parts, &made), BAY_OK);
    return made;
}

/* Words of a list, not parts of them; nobody in particular has none, the user of this process all. */
static void test_scopes(void **state)
{
    static const struct {
        principal_proof proof;
        const char *granted; /* NULL: the anonymous principal */
        const char *needed;
        bool is_enough;
    } cases[] = {
        {PRINCIPAL_TOKEN, NULL, "", true},
        {PRINCIPAL_TOKEN, NULL, "a", false},
        {PRINCIPAL_TOKEN, "", "a", false},
        {PRINCIPAL_TOKEN, "a", "a", true},
        {PRINCIPAL_KEY, "b a", "a b", true},
        {PRINCIPAL_TOKEN, "a", "a b", false},
        {PRINCIPAL_TOKEN, "notes.readonly", "notes.read", false},
        {PRINCIPAL_TOKEN, "xa ax", "a", false},
        {PRINCIPAL_TOKEN, "A", "a", false},
        {PRINCIPAL_LOCAL, "", "a", true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rig self;
        call_refusal refusal;
        rig_init(&self, 0);
        const auth_principal *who =
            cases[i].granted != NULL ? with_scopes(cases[i].proof, cases[i].granted) : NULL;
        call_context call = {.kind = CALL_TOOL,
                             .method = STR("tools/call"),
                             .resume = on_resume,
                             .principal = who,
                             .scopes = str_of(cases[i].needed)};
        call_begin(&call, &self.door);
        call_verdict verdict = call_admit(&call, self.target, &refusal);
        assert_int_equal(verdict, cases[i].is_enough ? CALL_GO : CALL_REFUSE);
        if (!cases[i].is_enough) {
            assert_int_equal(refusal.reason, CALL_SCOPE);
            assert_true(str_eq(refusal.scopes, str_of(cases[i].needed)));
            assert_non_null(strstr(refusal.text, cases[i].needed));
        }
        call_over(&call, CALL_ERROR);
        principal_unref(who);
        rig_fini(&self);
    }
}

static uint64_t at_2000(void)
{
    return 2000;
}

static void test_expired(void **state)
{
    rig self;
    call_refusal refusal;
    const auth_principal *until_1000 = NULL;
    principal_parts parts = {.proof = PRINCIPAL_TOKEN,
                             .issuer = STR_INIT("https://login.example"),
                             .subject = STR_INIT("ann"),
                             .expires_at_ms = 1000};
    (void)state;
    rig_init(&self, 0);
    self.door.wall_ms = at_2000;
    assert_int_equal(principal_new(&parts, &until_1000), BAY_OK);
    call_context call = begun(&self);
    call.principal = until_1000;
    assert_int_equal(call_admit(&call, self.target, &refusal), CALL_REFUSE);
    assert_int_equal(refusal.reason, CALL_EXPIRED);
    call_over(&call, CALL_ERROR);
    principal_unref(until_1000);
    rig_fini(&self);
}

/* Whoever expires while the call waits does not get the slot, and the next in the queue does. */
static void test_expired_while_waiting(void **state)
{
    rig self;
    const auth_principal *until_1000 = NULL;
    principal_parts parts = {
        .proof = PRINCIPAL_PROGRAM, .subject = STR_INIT("ann"), .expires_at_ms = 1000};
    (void)state;
    rig_init(&self, 1);
    assert_int_equal(principal_new(&parts, &until_1000), BAY_OK);
    call_context one = begun(&self);
    call_context two = begun(&self);
    call_context three = begun(&self);
    two.principal = until_1000;
    assert_int_equal(admit(&self, &one), CALL_GO);
    assert_int_equal(admit(&self, &two), CALL_WAIT);
    assert_int_equal(admit(&self, &three), CALL_WAIT);
    self.door.wall_ms = at_2000;
    call_over(&one, CALL_RESULT);
    call_door_run(&self.door);
    assert_int_equal(self.resumed_count, 1);
    assert_ptr_equal(self.resumed[0], &two);
    assert_int_equal(admit(&self, &two), CALL_REFUSE);
    call_door_run(&self.door);
    assert_int_equal(self.resumed_count, 2);
    assert_int_equal(admit(&self, &three), CALL_GO);
    call_over(&two, CALL_ERROR);
    call_over(&three, CALL_RESULT);
    principal_unref(until_1000);
    rig_fini(&self);
}

static void test_admitted_once(void **state)
{
    rig self;
    call_refusal refusal;
    (void)state;
    rig_init(&self, 1);
    call_context call = begun(&self);
    assert_int_equal(admit(&self, &call), CALL_GO);
    assert_int_equal(call.timeout_ms, 1000);
    self.guard_says = false; /* it is not asked again */
    assert_int_equal(admit(&self, &call), CALL_GO);
    /* what is meant has become something else */
    assert_int_equal(call_admit(&call, NULL, &refusal), CALL_REFUSE);
    assert_int_equal(refusal.reason, CALL_CHANGED);
    assert_false(call_is_admitted(&call));
    call_over(&call, CALL_ERROR);
    assert_int_equal(self.last, CALL_TURNED_AWAY);
    assert_int_equal(self.records, 1);
    rig_fini(&self);
}

static void test_in_order(void **state)
{
    rig self;
    (void)state;
    rig_init(&self, 2);
    call_context calls[5];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        calls[i] = begun(&self);
        assert_int_equal(admit(&self, &calls[i]), i < 2 ? CALL_GO : CALL_WAIT);
    }
    assert_int_equal(admit(&self, &calls[2]), CALL_WAIT); /* asked too early */
    call_over(&calls[3], CALL_CANCELLED);                 /* its caller left the queue */
    assert_int_equal(self.wakes, 0);
    call_over(&calls[0], CALL_RESULT);
    call_over(&calls[1], CALL_RESULT);
    assert_int_equal(self.wakes, 1); /* once for both */
    call_door_run(&self.door);
    assert_int_equal(self.resumed_count, 2);
    assert_ptr_equal(self.resumed[0], &calls[2]);
    assert_ptr_equal(self.resumed[1], &calls[4]);
    assert_int_equal(admit(&self, &calls[2]), CALL_GO);
    assert_int_equal(admit(&self, &calls[4]), CALL_GO);
    call_over(&calls[2], CALL_RESULT);
    call_over(&calls[4], CALL_RESULT);
    assert_int_equal(self.records, 5);
    rig_fini(&self);
}

/* Granted, and its caller leaves before the door runs: the slot goes on to the next. */
static void test_granted_and_gone(void **state)
{
    rig self;
    (void)state;
    rig_init(&self, 1);
    call_context one = begun(&self);
    call_context two = begun(&self);
    call_context three = begun(&self);
    assert_int_equal(admit(&self, &one), CALL_GO);
    assert_int_equal(admit(&self, &two), CALL_WAIT);
    assert_int_equal(admit(&self, &three), CALL_WAIT);
    call_over(&one, CALL_RESULT);
    call_over(&two, CALL_CANCELLED);
    call_door_run(&self.door);
    assert_int_equal(self.resumed_count, 1);
    assert_ptr_equal(self.resumed[0], &three);
    call_over(&three, CALL_CANCELLED);
    rig_fini(&self);
}

static void test_too_late(void **state)
{
    rig self;
    call_refusal refusal;
    (void)state;
    rig_init(&self, 1);
    call_context one = begun(&self);
    call_context two = begun(&self);
    two.began_ms = 500;
    assert_int_equal(admit(&self, &one), CALL_GO);
    assert_int_equal(admit(&self, &two), CALL_WAIT);
    call_door_tick(&self.door, 1499);
    assert_int_equal(self.resumed_count, 0);
    call_door_tick(&self.door, 1500);
    assert_int_equal(self.resumed_count, 1);
    assert_int_equal(call_admit(&two, self.target, &refusal), CALL_REFUSE);
    assert_int_equal(refusal.reason, CALL_BUSY);
    call_over(&two, CALL_ERROR);
    call_over(&one, CALL_RESULT);
    assert_int_equal(self.wakes, 0); /* nobody is in the queue any more */
    rig_fini(&self);
}

static void test_cannot_wait(void **state)
{
    rig self;
    call_refusal refusal;
    (void)state;
    rig_init(&self, 1);
    call_context one = begun(&self);
    call_context two = begun(&self);
    two.resume = NULL;
    assert_int_equal(admit(&self, &one), CALL_GO);
    assert_int_equal(call_admit(&two, self.target, &refusal), CALL_REFUSE);
    assert_int_equal(refusal.reason, CALL_BUSY);
    call_over(&two, CALL_ERROR);
    call_over(&one, CALL_RESULT);
    rig_fini(&self);
}

/* A reload gives the target more room, or none to bound. */
static void test_bound_changes(void **state)
{
    rig self;
    (void)state;
    rig_init(&self, 1);
    call_context one = begun(&self);
    call_context two = begun(&self);
    call_context three = begun(&self);
    assert_int_equal(admit(&self, &one), CALL_GO);
    assert_int_equal(admit(&self, &two), CALL_WAIT);
    call_target_set_most(self.target, 0);
    call_door_run(&self.door);
    assert_ptr_equal(self.resumed[0], &two);
    assert_int_equal(admit(&self, &two), CALL_GO);
    assert_int_equal(admit(&self, &three), CALL_GO);
    call_target_set_most(self.target, 1); /* more than one are under way until they end */
    call_over(&one, CALL_RESULT);
    call_context four = begun(&self);
    assert_int_equal(admit(&self, &four), CALL_WAIT);
    call_over(&two, CALL_RESULT);
    call_door_run(&self.door);
    assert_int_equal(admit(&self, &four), CALL_GO);
    call_over(&three, CALL_RESULT);
    call_over(&four, CALL_RESULT);
    rig_fini(&self);
}

static void test_without_a_door(void **state)
{
    call_refusal refusal;
    call_context call = {.kind = CALL_TOOL};
    (void)state;
    call_begin(&call, NULL);
    assert_true(call_is_admitted(&call));
    assert_int_equal(call_admit(&call, NULL, &refusal), CALL_GO);
    call_over(&call, CALL_RESULT);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void set_rules(rig *self, policy_effect fallback, policy_effect effect, const char *about)
{
    policy_rules *rules;
    policy_rule *rule;
    assert_int_equal(policy_rules_new(fallback, false, &rules), BAY_OK);
    assert_int_equal(policy_rules_add(rules, effect, 1, STR(""), &rule), BAY_OK);
    assert_int_equal(policy_rule_about(rules, rule, str_of(about), STR("."), NULL), BAY_OK);
    policy_index_set(&self->door.policy, rules);
    policy_rules_unref(rules);
}

static call_reason refused(rig *self, call_context *call)
{
    call_refusal refusal;
    assert_int_equal(call_admit(call, self->target, &refusal), CALL_REFUSE);
    assert_true(refusal.text[0] != '\0');
    call_over(call, CALL_ERROR);
    return refusal.reason;
}

/* A service that does not say what a call is about must not get it past the rules. */
static void test_rules_need_a_name(void **state)
{
    static const call_kind kinds[] = {CALL_TOOL,       CALL_PROMPT,       CALL_RESOURCE,
                                      CALL_COMPLETION, CALL_SUBSCRIPTION, CALL_SKILL};
    rig self;
    (void)state;
    rig_init(&self, 0);
    set_rules(&self, POLICY_ALLOW, POLICY_DENY, "x");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        call_context call = begun(&self);
        call.kind = kinds[i];
        call.shown = STR("weather.now");
        assert_int_equal(refused(&self, &call), CALL_DENIED);
    }
    policy_index_fini(&self.door.policy);
    rig_fini(&self);
}

static policy_name name_of(bay_str server, bay_str tool)
{
    return (policy_name){.kind = POLICY_TOOL, .server = server, .name = tool};
}

static void test_rules(void **state)
{
    rig self;
    (void)state;
    rig_init(&self, 0);
    set_rules(&self, POLICY_DENY, POLICY_ALLOW, "weather.*");
    call_context call = begun(&self);
    call.about = name_of(STR("weather"), STR("weather.now"));
    assert_int_equal(admit(&self, &call), CALL_GO);
    call_over(&call, CALL_RESULT);
    call = begun(&self);
    call.about = name_of(STR("mail"), STR("mail.send"));
    assert_int_equal(refused(&self, &call), CALL_DENIED);
    call = begun(&self);
    call.kind = CALL_LIST;
    assert_int_equal(admit(&self, &call), CALL_GO); /* it holds what may be called */
    call_over(&call, CALL_RESULT);
    set_rules(&self, POLICY_ALLOW, POLICY_APPROVE, "*");
    call = begun(&self);
    call.about = name_of(STR("mail"), STR("mail.send"));
    assert_int_equal(refused(&self, &call), CALL_APPROVAL);
    policy_index_fini(&self.door.policy);
    rig_fini(&self);
}

/* An operation of A2A is about the agent that it is for. */
static void test_rules_of_agents(void **state)
{
    rig self;
    (void)state;
    rig_init(&self, 0);
    set_rules(&self, POLICY_DENY, POLICY_ALLOW, "agent:other");
    call_context call = begun(&self);
    call.protocol = CALL_A2A;
    call.kind = CALL_MESSAGE;
    assert_int_equal(refused(&self, &call), CALL_DENIED);
    set_rules(&self, POLICY_DENY, POLICY_ALLOW, "agent:weather");
    call = begun(&self);
    call.protocol = CALL_A2A;
    call.kind = CALL_MESSAGE;
    assert_int_equal(admit(&self, &call), CALL_GO);
    call_over(&call, CALL_RESULT);
    policy_index_fini(&self.door.policy);
    rig_fini(&self);
}

static call_labels on_label(void *user, const call_target *of, json_val answer)
{
    const rig *self = user;
    assert_ptr_equal(of, self->target);
    return json_is(answer, JSON_MISSING) ? CALL_UNTRUSTED : CALL_UNTRUSTED | CALL_SUSPICIOUS;
}

/* What a call was answered is known when it is recorded; what nobody else answered has no label. */
static void test_labels(void **state)
{
    rig self;
    json_doc doc;
    arena memory;
    (void)state;
    rig_init(&self, 0);
    arena_init(&memory, 1 << 16);
    assert_int_equal(json_parse(&doc, STR("{}"), NULL, &memory, NULL), BAY_OK);
    call_context call = begun(&self);
    assert_int_equal(admit(&self, &call), CALL_GO);
    call_label(&call, json_root(&doc));
    assert_int_equal(call.labels, CALL_UNLABELLED); /* the door has no such callback */
    self.door.label = on_label;
    call_label(&call, JSON_NONE);
    assert_int_equal(call.labels, CALL_UNTRUSTED);
    call_label(&call, json_root(&doc));
    call_label(&call, JSON_NONE);
    assert_int_equal(call.labels, CALL_UNTRUSTED | CALL_SUSPICIOUS);
    call_over(&call, CALL_RESULT);
    call_refusal refusal;
    call_context own = begun(&self);
    assert_int_equal(call_admit(&own, NULL, &refusal), CALL_GO);
    call_label(&own, json_root(&doc)); /* nobody else answers it */
    assert_int_equal(own.labels, CALL_UNLABELLED);
    call_over(&own, CALL_RESULT);
    call_context listing = begun(&self);
    listing.kind = CALL_LIST;
    assert_int_equal(admit(&self, &listing), CALL_GO);
    call_label(&listing, json_root(&doc));
    assert_int_equal(listing.labels, CALL_UNLABELLED);
    call_over(&listing, CALL_RESULT);
    call_context free_one = {.kind = CALL_TOOL};
    call_begin(&free_one, NULL);
    call_label(&free_one, json_root(&doc));
    assert_int_equal(free_one.labels, CALL_UNLABELLED);
    arena_fini(&memory);
    rig_fini(&self);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_asked),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_expired),           cmocka_unit_test(test_expired_while_waiting),
        cmocka_unit_test(test_admitted_once),     cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_granted_and_gone),  cmocka_unit_test(test_too_late),
        cmocka_unit_test(test_cannot_wait),       cmocka_unit_test(test_bound_changes),
        cmocka_unit_test(test_without_a_door),    cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_rules_need_a_name), cmocka_unit_test(test_rules),
        cmocka_unit_test(test_rules_of_agents),   cmocka_unit_test(test_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
