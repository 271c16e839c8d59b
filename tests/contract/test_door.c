/* The door, row by row: whatever stands in the tables of methods as a call passes it once before
 * anything happens and leaves one record at its end, of the principal who made it; and where the
 * door refuses, nothing happens. A row that is new in a table fails here until this file knows how
 * to ask for it. */
#define STAGE_DOOR (&door)
#define STAGE_TASKS (&task_ops)
#include "call/call.h"
#include "tasks/task.h"

static call_door door;

#include "support/door_rows.h"
#include "support/endpoint_testing.h"
#include "support/people.h"

#include "a2a/service.h"
#include "tasks/continuation.h"

/* ---- what the door sees ---------------------------------------------------------------------- */

static struct {
    stage *on;
    int asked;
    int ended;
    bool says;
    const auth_principal *who;
    call_kind kind;
    call_outcome how;
} seen;

static int effects(const stage *on)
{
    return on->a->sends + on->b->sends + on->a->subscribes + on->b->subscribes;
}

static bool on_guard(void *user, const call_context *call, call_refusal *out)
{
    (void)user;
    (void)out;
    if (seen.on != NULL) {
        assert_int_equal(effects(seen.on), 0);
    }
    assert_int_equal(call->state, CALL_NEW);
    assert_ptr_equal(call->principal, seen.who);
    seen.asked++;
    seen.kind = call->kind;
    return seen.says;
}

static void on_record(void *user, const call_context *call, call_outcome how)
{
    (void)user;
    assert_ptr_equal(call->principal, seen.who);
    seen.ended++;
    seen.how = how;
}

static void watch(stage *on, bool says)
{
    call_door_init(&door);
    door.timeout_ms = 60000;
    door.guard = on_guard;
    door.record = on_record;
    memset(&seen, 0, sizeof(seen));
    seen.on = on;
    seen.says = says;
    seen.who = person("ann");
}

/* ---- one endpoint, one row, one revision ----------------------------------------------------- */

static void open_row(stage *self, mcp_revision_id revision)
{
    char who[200];
    mcp_revision_id session = revision <= MCP_LATEST_LEGACY ? revision : MCP_LATEST_LEGACY;
    (void)snprintf(who, sizeof(who), "'protocolVersion':'%.*s','capabilities':{}",
                   BAY_STR(mcp_revision_of(session)->text));
    watch(NULL, true);
    open_on_loop(self, "workers: 1", who);
    fake_learn(&self->a->base, mcp_revision_of(MCP_LATEST),
               STR("{\"tools\":{},\"resources\":{\"subscribe\":true},\"prompts\":{},"
                   "\"completions\":{},\"extensions\":{\"" MCP_EXTENSION_TASKS
                   "\":{},\"" MCP_EXTENSION_SKILLS "\":{}}}"));
    endpoint_server_changed(self->endpoint, NULL);
    mcp_connection_identify(self->legacy.connection, person("ann"));
    mcp_connection_identify(self->modern.connection, person("ann"));
    self->a->sends = self->b->sends = 0; /* the lists */
}

static void write_params(const stage *self, const mcp_method *method, buf *out)
{
    const char *known = door_rows[method->id].params;
    if (known == door_row_listen || known == door_row_subscribe) {
        if (known == door_row_listen) {
            buf_printf(out, DOOR_LISTEN, "f:///a");
        } else {
            buf_printf(out, DOOR_SUBSCRIBE, "f:///a");
        }
        return;
    }
    if (known == door_row_skill || known == door_row_folder) {
        known = "'uri':'f:///a'";
    }
    if (known != door_row_task) {
        buf_str(out, str_of(known));
        return;
    }
    arena memory;
    bay_str name;
    task_home home = method->since == MCP_REV_2025_11_25 ? TASK_AT_LEGACY : TASK_AT_MODERN;
    arena_init(&memory, 1 << 16);
    assert_int_equal(
        task_name_seal(self->endpoint, person("ann"), home, STR("a"), STR("t1"), &memory, &name),
        BAY_OK);
    buf_printf(out, "'taskId':'%.*s'", BAY_STR(name));
    if (method->id == MCP_TASKS_UPDATE) {
        buf_lit(out, ",'inputResponses':{}");
    }
    arena_fini(&memory);
}

static void ask(stage *self, const mcp_method *method, mcp_revision_id revision)
{
    buf text;
    bool is_modern = mcp_revision_of(revision)->era == MCP_MODERN;
    buf_init(&text, 1 << 16);
    buf_printf(&text, "{'jsonrpc':'2.0','id':7,'method':'%.*s','params':{", BAY_STR(method->text));
    size_t before = text.len;
    write_params(self, method, &text);
    if (is_modern) {
        buf_printf(&text, "%s%s}", text.len > before ? "," : "",
                   META_OF("{'extensions':{'" MCP_EXTENSION_TASKS "':{}}}"));
    }
    buf_lit(&text, "}}");
    buf_char(&text, '\0');
    assert_int_equal(text.err, BAY_OK);
    say(is_modern ? &self->modern : &self->legacy, text.at);
    buf_fini(&text);
}

/* Whatever is under way is answered, until nothing is. */
static void answer_all(stage *self)
{
    fake *both[] = {self->a, self->b};
    for (int round = 0; round < 10; round++) {
        for (size_t i = 0; i < ARRAY_LEN(both); i++) {
            while (both[i]->held_count > 0) {
                mcp_outcome outcome = {.kind = MCP_OUTCOME_RESULT};
                upstream_call *call = both[i]->held[0];
                fake_drop(both[i], call);
                fake_end(both[i], call, &outcome,
                         "{\"taskId\":\"t1\",\"status\":\"completed\",\"result\":{\"content\":[]},"
                         "\"content\":[],\"skills\":[]}",
                         false);
            }
        }
    }
}

static void try_admitted(const mcp_method *method, mcp_revision_id revision)
{
    stage self;
    open_row(&self, revision);
    watch(method->id == MCP_LISTEN ? NULL : &self, true);
    ask(&self, method, revision);
    assert_int_equal(seen.asked, door_calls_of(method));
    assert_int_equal(seen.kind, method->call);
    answer_all(&self);
    assert_int_equal(seen.asked, door_calls_of(method));
    if (seen.ended != door_calls_of(method) || seen.how == CALL_TURNED_AWAY) {
        const peer *to = mcp_revision_of(revision)->era == MCP_MODERN ? &self.modern : &self.legacy;
        fail_msg("%.*s in %.*s: %d ends, outcome %d: %s", BAY_STR(method->text),
                 BAY_STR(mcp_revision_of(revision)->text), seen.ended, (int)seen.how,
                 to->count > 0 ? to->lines[to->count - 1] : "nothing heard");
    }
    close_stage(&self);
    assert_int_equal(seen.ended, door_calls_of(method));
}

static void try_refused(const mcp_method *method, mcp_revision_id revision)
{
    stage self;
    open_row(&self, revision);
    watch(&self, false);
    ask(&self, method, revision);
    assert_int_equal(seen.asked, 1); /* a listen that is refused asks for no URI */
    assert_int_equal(seen.ended, 1);
    assert_int_equal(seen.how, CALL_TURNED_AWAY);
    assert_int_equal(effects(&self), 0);
    peer *to = mcp_revision_of(revision)->era == MCP_MODERN ? &self.modern : &self.legacy;
    assert_int_equal(to->count, 1);
    bool is_tool = method->call == CALL_TOOL;
    const char *wanted = is_tool ? "\"isError\":true" : "\"error\":{";
    if (strstr(to->lines[0], wanted) == NULL || strstr(to->lines[0], "echo") != NULL) {
        fail_msg("%.*s: %s", BAY_STR(method->text), to->lines[0]);
    }
    close_stage(&self);
    assert_int_equal(seen.ended, 1);
}

static void every_mcp_call_passes_once(void **state)
{
    (void)state;
    assert_true(door_each_row(try_admitted) > 50);
}

static void a_refusal_refuses_every_mcp_call(void **state)
{
    (void)state;
    assert_true(door_each_row(try_refused) > 50);
}

/* ---- who is asked for, and what there is not ------------------------------------------------- */

/* Nothing is admitted that does not resolve, and what is hidden resolves like an invented name. */
static void the_unknown_is_not_admitted(void **state)
{
    stage self;
    (void)state;
    open_row(&self, MCP_LATEST);
    watch(&self, true);
    say(&self.modern, MODERN("1", "tools/call", "'name':'a.invented','arguments':{}"));
    say(&self.modern, MODERN("2", "prompts/get", "'name':'nobody'"));
    say(&self.modern, MODERN("3", "resources/read", "'uri':'h:///'"));
    assert_int_equal(seen.asked, 0);
    assert_int_equal(seen.ended, 3); /* and yet each leaves a record */
    assert_int_equal(seen.how, CALL_ERROR);
    assert_int_equal(effects(&self), 0);
    close_stage(&self);
}

/* A resource that somebody listens to already is no way around the door. */
static void further_subscribers_pass_too(void **state)
{
    stage self;
    (void)state;
    open_row(&self, MCP_LATEST_LEGACY);
    watch(NULL, true);
    ask(&self, mcp_method_of(MCP_RESOURCES_SUBSCRIBE), MCP_LATEST_LEGACY);
    assert_int_equal(self.a->subscribes, 1);
    assert_int_equal(seen.asked, 1);
    seen.who = person("bob");
    seen.says = false;
    mcp_connection_identify(self.modern.connection, seen.who);
    say(&self.modern, MODERN("9", "subscriptions/listen",
                             "'notifications':{'resourceSubscriptions':['f:///a']}"));
    assert_int_equal(seen.asked, 2);
    assert_int_equal(seen.how, CALL_TURNED_AWAY);
    assert_int_equal(self.modern.count, 1);
    endpoint_updated(self.endpoint, &self.a->base, STR("f:///a"));
    assert_int_equal(self.modern.count, 1); /* bob hears nothing */
    seen.who = person("ann");
    close_stage(&self);
}

/* The client leaves in the middle: one end, and it says so. */
static void a_call_that_is_abandoned_has_one_end(void **state)
{
    stage self;
    (void)state;
    open_row(&self, MCP_LATEST);
    watch(&self, true);
    ask(&self, mcp_method_of(MCP_TOOLS_CALL), MCP_LATEST);
    assert_int_equal(seen.ended, 0);
    say(&self.modern, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':"
                      "{'requestId':7}}");
    assert_int_equal(seen.ended, 1);
    assert_int_equal(seen.how, CALL_CANCELLED);
    assert_int_equal(self.a->cancels, 1);
    close_stage(&self);
    assert_int_equal(seen.ended, 1);
}

/* ---- calls that wait ------------------------------------------------------------------------- */

static int wakes;

static void on_wake(void *user)
{
    (void)user;
    wakes++;
}

static bool says_yes(void *user, const call_context *call, call_refusal *out)
{
    (void)user;
    (void)call;
    (void)out;
    return true;
}

static void open_narrow(stage *self)
{
    open_row(self, MCP_LATEST);
    watch(self, true);
    door.guard = says_yes;
    door.wake = on_wake;
    wakes = 0;
    call_target_set_most(upstream_target(&self->a->base), 1);
    say(&self->modern, MODERN("1", "tools/call", "'name':'a.echo','arguments':{}"));
    say(&self->modern, MODERN("2", "tools/call", "'name':'a.echo','arguments':{}"));
    assert_int_equal(self->a->held_count, 1);
    assert_int_equal(seen.ended, 0);
}

static void a_call_that_waits_has_its_turn(void **state)
{
    stage self;
    (void)state;
    open_narrow(&self);
    mcp_outcome outcome = {.kind = MCP_OUTCOME_RESULT};
    upstream_call *first = self.a->held[0];
    fake_drop(self.a, first);
    fake_end(self.a, first, &outcome, "{\"content\":[]}", false);
    assert_int_equal(wakes, 1);
    assert_int_equal(self.a->held_count, 0);
    call_door_run(&door);
    assert_int_equal(self.a->held_count, 1);
    answer_all(&self);
    assert_int_equal(seen.ended, 2);
    assert_int_equal(seen.how, CALL_RESULT);
    close_stage(&self);
}

static void a_caller_that_leaves_the_queue_costs_nothing(void **state)
{
    stage self;
    (void)state;
    open_narrow(&self);
    say(&self.modern,
        "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':2}}");
    assert_int_equal(seen.ended, 1);
    assert_int_equal(seen.how, CALL_CANCELLED);
    answer_all(&self);
    assert_int_equal(wakes, 0);
    assert_int_equal(seen.ended, 2);
    assert_int_equal(self.a->sends, 1);
    close_stage(&self);
}

static void a_connection_that_breaks_empties_its_queue(void **state)
{
    stage self;
    (void)state;
    open_narrow(&self);
    mcp_connection_close(self.modern.connection);
    assert_int_equal(seen.ended, 2);
    assert_int_equal(self.a->held_count, 0);
    peer_open(&self.modern, self.endpoint);
    mcp_connection_identify(self.modern.connection, person("ann"));
    say(&self.modern, MODERN("3", "tools/call", "'name':'a.echo','arguments':{}"));
    assert_int_equal(self.a->held_count, 1); /* the slot is free */
    answer_all(&self);
    close_stage(&self);
}

/* What is waited for is not there any more when the turn comes. */
static void a_tool_that_goes_meanwhile_is_unknown(void **state)
{
    stage self;
    (void)state;
    open_narrow(&self);
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, &self.sources[1], 1), BAY_OK);
    forget(&self.modern);
    answer_all(&self); /* the first */
    forget(&self.modern);
    call_door_run(&door);
    assert_heard_part(&self.modern, "Unknown tool");
    assert_int_equal(seen.ended, 2);
    assert_int_equal(self.a->sends, 1);
    close_stage(&self);
}

static void a_call_that_waits_too_long_is_refused(void **state)
{
    stage self;
    (void)state;
    open_narrow(&self);
    forget(&self.modern);
    call_door_tick(&door, 1000 + 60000 - 1);
    assert_int_equal(self.modern.count, 0);
    call_door_tick(&door, 1000 + 60000);
    assert_heard_part(&self.modern, "'patchbay/reason':'busy','patchbay/mayHaveRun':false");
    assert_int_equal(seen.how, CALL_TURNED_AWAY);
    answer_all(&self);
    assert_int_equal(self.a->sends, 1);
    close_stage(&self);
}

/* ---- A2A ------------------------------------------------------------------------------------- */

typedef struct operation {
    a2a_call call;
    int results;
    int failures;
    a2a_error error;
} operation;

static int served;
static bool is_held;

static void on_call(a2a_service *self, a2a_call *call)
{
    (void)self;
    assert_int_equal(seen.asked, 1);
    served++;
    if (!is_held) {
        a2a_call_result(call, STR("{}"));
    }
}

static void on_gone(a2a_service *self, a2a_call *call)
{
    static const a2a_fault left = {A2A_E_UNAVAILABLE, "left"};
    (void)self;
    a2a_call_fail(call, &left);
}

static void on_result(a2a_call *call, bay_str json)
{
    (void)json;
    CONTAINER_OF(call, operation, call)->results++;
}

static void on_fail(a2a_call *call, const a2a_fault *fault)
{
    operation *self = CONTAINER_OF(call, operation, call);
    self->failures++;
    self->error = fault->error;
}

static const a2a_call_ops operation_ops = {.result = on_result, .fail = on_fail};

static operation run_operation(int method, bool says)
{
    a2a_service service = {.call = on_call, .gone = on_gone, .door = &door};
    operation self = {
        .call = {.ops = &operation_ops, .method = (a2a_method)method, .principal = person("ann")}};
    watch(NULL, says);
    served = 0;
    a2a_service_call(&service, &self.call);
    if (is_held) {
        self.call.is_gone = true;
        a2a_service_gone(&service, &self.call);
    }
    return self;
}

static void every_a2a_operation_passes_once(void **state)
{
    (void)state;
    is_held = false;
    for (int i = 0; i < A2A_METHODS; i++) {
        assert_int_not_equal(a2a_methods[i].call, CALL_NONE);
        operation made = run_operation(i, true);
        assert_int_equal(seen.asked, 1);
        assert_int_equal(seen.ended, 1);
        assert_int_equal(seen.kind, a2a_methods[i].call);
        assert_int_equal(seen.how, CALL_RESULT);
        assert_int_equal(made.results, 1);
        assert_int_equal(served, 1);
    }
}

static void a_refusal_refuses_every_a2a_operation(void **state)
{
    (void)state;
    is_held = false;
    for (int i = 0; i < A2A_METHODS; i++) {
        operation made = run_operation(i, false);
        assert_int_equal(seen.asked, 1);
        assert_int_equal(seen.ended, 1);
        assert_int_equal(seen.how, CALL_TURNED_AWAY);
        assert_int_equal(made.failures, 1);
        assert_int_equal(made.error, A2A_E_FORBIDDEN);
        assert_int_equal(served, 0);
    }
}

static void an_abandoned_operation_has_one_end(void **state)
{
    (void)state;
    is_held = true;
    operation made = run_operation(A2A_SEND_MESSAGE, true);
    assert_int_equal(made.failures, 1);
    assert_int_equal(seen.ended, 1);
    assert_int_equal(seen.how, CALL_CANCELLED);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mcp_call_passes_once),
        cmocka_unit_test(a_refusal_refuses_every_mcp_call),
        cmocka_unit_test(the_unknown_is_not_admitted),
        cmocka_unit_test(further_subscribers_pass_too),
        cmocka_unit_test(a_call_that_is_abandoned_has_one_end),
        cmocka_unit_test(a_call_that_waits_has_its_turn),
        cmocka_unit_test(a_caller_that_leaves_the_queue_costs_nothing),
        cmocka_unit_test(a_connection_that_breaks_empties_its_queue),
        cmocka_unit_test(a_tool_that_goes_meanwhile_is_unknown),
        cmocka_unit_test(a_call_that_waits_too_long_is_refused),
        cmocka_unit_test(every_a2a_operation_passes_once),
        cmocka_unit_test(a_refusal_refuses_every_a2a_operation),
        cmocka_unit_test(an_abandoned_operation_has_one_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
