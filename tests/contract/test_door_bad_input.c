/* What goes wrong while a call passes the door: a principal that expires before its turn, while its
 * call is under way, while it is suspended; a subscription whose resource is taken out of the view;
 * a client that leaves the queue; two answers to one wait; no memory. The door refuses when it
 * cannot decide, each call has one record, and what is refused reaches no server. */
#define STAGE_DOOR (&door)
#include "call/call.h"

static call_door door;

#include <openssl/opensslv.h> /* states are sealed: not in a build without it */

#include "support/people.h"
#include "unit/endpoint/suspended_call_testing.h"

PEOPLE_FROM_THE_START

static struct {
    bool says;
    int asked;
    int ended;
    call_outcome how;
} seen;

static uint64_t wall_now_ms;
static const auth_principal *until_1000;

static uint64_t wall_ms(void)
{
    return wall_now_ms;
}

static bool on_guard(void *user, const call_context *call, call_refusal *out)
{
    (void)user;
    (void)call;
    (void)out;
    seen.asked++;
    return seen.says;
}

static void on_record(void *user, const call_context *call, call_outcome how)
{
    (void)user;
    (void)call;
    seen.ended++;
    seen.how = how;
}

static void on_wake(void *user)
{
    (void)user;
}

static void open_door(void)
{
    call_door_init(&door);
    door.timeout_ms = 60000;
    door.guard = on_guard;
    door.record = on_record;
    door.wake = on_wake;
    door.wall_ms = wall_ms;
    memset(&seen, 0, sizeof(seen));
    seen.says = true;
    wall_now_ms = 500;
}

/* An endpoint whose stateless client is somebody until 1000. */
static void open_for_a_while(stage *self)
{
    principal_parts parts = {
        .proof = PRINCIPAL_PROGRAM, .subject = STR_INIT("ann"), .expires_at_ms = 1000};
    assert_int_equal(principal_new(&parts, &until_1000), BAY_OK);
    open_door();
    *self = (stage){0};
    open_suspending(self, "workers: 1");
    mcp_connection_identify(self->modern.connection, until_1000);
    open_door();
}

static void close_for_good(stage *self)
{
    close_stage(self);
    principal_unref(until_1000);
}

#define ECHO(id) MODERN(id, "tools/call", "'name':'a.echo','arguments':{}")

static void end_first(stage *self)
{
    mcp_outcome outcome = {.kind = MCP_OUTCOME_RESULT};
    upstream_call *first = self->a->held[0];
    fake_drop(self->a, first);
    fake_end(self->a, first, &outcome, "{\"content\":[]}", false);
}

/* What was admitted goes on to its end; whoever waited meanwhile is refused, and so is the next. */
static void a_principal_expires_before_its_turn(void **state)
{
    stage self;
    (void)state;
    open_for_a_while(&self);
    call_target_set_most(upstream_target(&self.a->base), 1);
    say(&self.modern, ECHO("1"));
    say(&self.modern, ECHO("2"));
    assert_int_equal(self.a->sends, 1);
    wall_now_ms = 1000;
    end_first(&self);
    assert_heard_part(&self.modern, "'id':1,'result':");
    call_door_run(&door);
    assert_heard_part(&self.modern, "The credentials of this call have expired");
    assert_int_equal(seen.how, CALL_TURNED_AWAY);
    say(&self.modern, ECHO("3"));
    assert_heard_part(&self.modern, "The credentials of this call have expired");
    assert_int_equal(self.a->sends, 1);
    assert_int_equal(seen.ended, 3);
    close_for_good(&self);
}

/* Two calls wait; the slot that one who expired cannot take goes to the next. */
static void a_slot_is_not_lost_with_who_expired(void **state)
{
    stage self;
    (void)state;
    open_for_a_while(&self);
    mcp_connection_identify(self.legacy.connection, person("bob"));
    call_target_set_most(upstream_target(&self.a->base), 1);
    say(&self.modern, ECHO("1"));
    say(&self.modern, ECHO("2"));
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'a.echo','arguments':{}"));
    wall_now_ms = 1000;
    end_first(&self);
    call_door_run(&door);
    assert_int_equal(self.a->sends, 2);
    end_first(&self);
    assert_heard_part(&self.legacy, "'id':3,'result':");
    close_for_good(&self);
}

static void a_principal_expires_while_its_call_is_suspended(void **state)
{
    stage self;
    char token[STATE];
    (void)state;
    open_for_a_while(&self);
    suspend_one(&self, token);
    wall_now_ms = 1000;
    retry(&self, "2", token, "{'q1':" ACCEPT "}");
    assert_heard_part(&self.modern, "The credentials of this call have expired");
    assert_int_equal(self.a->answers, 0); /* the server hears nothing of it */
    wall_now_ms = 500;                    /* as if she had come with new ones in time */
    assert_still_good(&self, token);
    close_for_good(&self);
}

/* Two answers to one wait: the first counts. */
static void a_suspended_call_is_answered_once(void **state)
{
    stage self;
    char token[STATE];
    (void)state;
    open_for_a_while(&self);
    suspend_one(&self, token);
    retry(&self, "2", token, "{'q1':" ACCEPT "}");
    retry(&self, "3", token, "{'q1':{'action':'decline'}}");
    assert_refused(&self, "requestState");
    assert_int_equal(self.a->answers, 1);
    end_first(&self);
    assert_heard_part(&self.modern, "'id':2,'result':");
    close_for_good(&self);
}

/* … and a retry that the door refuses answers nothing. */
static void a_refused_retry_leaves_the_call_suspended(void **state)
{
    stage self;
    char token[STATE];
    (void)state;
    open_for_a_while(&self);
    suspend_one(&self, token);
    seen.says = false;
    retry(&self, "2", token, "{'q1':" ACCEPT "}");
    assert_heard_part(&self.modern, "'patchbay/reason':'denied'");
    assert_int_equal(self.a->answers, 0);
    seen.says = true;
    assert_still_good(&self, token);
    close_for_good(&self);
}

/* The call that waits is resumed twice, and its client leaves: one record, and no slot is lost. */
static void a_client_leaves_while_its_call_waits(void **state)
{
    stage self;
    uint32_t used, waiting;
    (void)state;
    open_for_a_while(&self);
    call_target *target = upstream_target(&self.a->base);
    call_target_set_most(target, 1);
    say(&self.modern, ECHO("1"));
    say(&self.modern, ECHO("2"));
    end_first(&self); /* its turn has come, and its loop has not seen that yet */
    say(&self.modern,
        "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':2}}");
    call_door_run(&door);
    call_door_run(&door);
    assert_int_equal(self.a->sends, 1);
    assert_int_equal(seen.ended, 2);
    assert_int_equal(seen.how, CALL_CANCELLED);
    call_target_count(target, &used, &waiting);
    assert_int_equal(used + waiting, 0);
    close_for_good(&self);
}

/* Subscribed, and then out of the view: nothing more is told of it, also to who asks anew. */
static void a_subscription_ends_with_its_view(void **state)
{
    stage self;
    (void)state;
    open_for_a_while(&self);
    fake_learn(&self.a->base, mcp_revision_of(MCP_LATEST),
               STR("{\"tools\":{},\"resources\":{\"subscribe\":true}}"));
    endpoint_server_changed(self.endpoint, NULL);
    forget(&self.modern);
    say(&self.modern, MODERN("9", "subscriptions/listen",
                             "'notifications':{'resourceSubscriptions':['f:///a']}"));
    assert_heard_part(&self.modern, "acknowledged");
    endpoint_updated(self.endpoint, &self.a->base, STR("f:///a"));
    assert_heard_part(&self.modern, "'uri':'f:///a'");
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, self.sources, 0), BAY_OK);
    forget(&self.modern);
    endpoint_updated(self.endpoint, &self.a->base, STR("f:///a"));
    assert_int_equal(self.modern.count, 0);
    close_for_good(&self);
}

/* A listen ends by its result a minute after the credentials; the call beside it goes on. */
static void a_principal_expires_while_it_listens(void **state)
{
    stage self;
    (void)state;
    open_for_a_while(&self);
    forget(&self.modern);
    say(&self.modern,
        MODERN("9", "subscriptions/listen", "'notifications':{'toolsListChanged':true}"));
    say(&self.modern, ECHO("1"));
    forget(&self.modern);
    wall_now_ms = 60999;
    (void)mcp_server_tick(endpoint_engine(self.endpoint), 2000);
    assert_int_equal(self.modern.count, 0);
    wall_now_ms = 61000;
    (void)mcp_server_tick(endpoint_engine(self.endpoint), 3000);
    assert_heard_part(&self.modern, "'id':9,'result':{'resultType':'complete'");
    end_first(&self);
    assert_heard_part(&self.modern, "'id':1,'result':");
    close_for_good(&self);
}

/* Each allocation of a call fails in turn: where the door refuses nothing is sent, and where it could
 * not be asked neither. */
static void without_memory_nothing_passes(void **state)
{
    (void)state;
    for (int says = 0; says < 2; says++) {
        for (size_t at = 0; failing_memory_start(at); at++) {
            stage self;
            failing_memory.allowed = SIZE_MAX;
            open_door();
            self = (stage){0};
            open_suspending(&self, "workers: 1");
            mcp_connection_identify(self.modern.connection, person("ann"));
            open_door();
            seen.says = says == 1;
            char *text = testing_quotes(ECHO("1"));
            failing_memory.allowed = at;
            mcp_connection_receive(self.modern.connection, str_of(text), 1000);
            bool has_failed = failing_memory.has_failed;
            failing_memory.allowed = SIZE_MAX;
            assert_true(self.a->sends == 0 || (seen.asked == 1 && says == 1));
            assert_true(has_failed || self.a->sends == says);
            assert_true(seen.asked <= 1);
            while (self.a->held_count > 0) {
                end_first(&self);
            }
            assert_true(seen.ended >= seen.asked && seen.ended <= 1);
            mem_free(text);
            close_stage(&self);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_principal_expires_before_its_turn),
        cmocka_unit_test(a_slot_is_not_lost_with_who_expired),
        cmocka_unit_test(a_principal_expires_while_its_call_is_suspended),
        cmocka_unit_test(a_principal_expires_while_it_listens),
        cmocka_unit_test(a_suspended_call_is_answered_once),
        cmocka_unit_test(a_refused_retry_leaves_the_call_suspended),
        cmocka_unit_test(a_client_leaves_while_its_call_waits),
        cmocka_unit_test(a_subscription_ends_with_its_view),
        cmocka_unit_test(without_memory_nothing_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
