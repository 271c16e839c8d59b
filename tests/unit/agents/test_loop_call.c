/* Calls between two loops, turned by one thread: results, streams in their order, slow readers,
 * ends of either side, and memory failing anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "agents/loop_call.h" /* cmocka takes the word "fail" */

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "support/failing_memory.h"
#include "support/people.h"

PEOPLE_FROM_THE_START

enum { EVENTS = 1000, MOST_TURNS = 5000 };

/* ---- an agent that counts ----------------------------------------------------------------------
 */

typedef struct agent {
    a2a_service service; /* first */
    a2a_call *call;      /* a stream that goes on; NULL: none */
    int sent;
    int calls;
    int gone;
    bool is_there;
    char tracestate[100]; /* of the last call */
    char via[100];
} agent;

static void say_more(agent *self)
{
    a2a_call *call = self->call;
    bay_err err = BAY_OK;
    while (err == BAY_OK && self->sent < EVENTS) {
        char text[80];
        (void)snprintf(text, sizeof(text), "{\"message\":{\"messageId\":\"%d\"}}", self->sent + 1);
        a2a_event *event = a2a_event_new(str_of(text), (uint64_t)self->sent + 1, false);
        call->context.labels |= self->sent == EVENTS / 2 ? CALL_SUSPICIOUS : CALL_UNLABELLED;
        err = event != NULL ? a2a_call_event(call, event) : BAY_ERR_NOMEM;
        a2a_event_unref(event);
        self->sent += err == BAY_OK || err == BAY_ERR_AGAIN;
    }
    if (err == BAY_ERR_AGAIN) {
        return;
    }
    self->call = NULL;
    a2a_call_end(call);
}

static void on_call(a2a_service *service, a2a_call *call)
{
    agent *self = CONTAINER_OF(service, agent, service);
    a2a_fault fault = {.error = A2A_E_TASK_NOT_FOUND, .text = "no such task"};
    self->calls++;
    bay_str trace = a2a_call_tracestate(call);
    (void)snprintf(self->tracestate, sizeof(self->tracestate), "%.*s", BAY_STR(trace));
    bay_str via = a2a_call_via(call);
    (void)snprintf(self->via, sizeof(self->via), "%.*s", BAY_STR(via));
    if (call->method == A2A_GET_TASK) {
        call->context.labels |= CALL_UNTRUSTED;
        a2a_call_result(call, json_raw(call->params));
    } else if (call->method == A2A_CANCEL_TASK) {
        a2a_call_fail(call, &fault);
    } else {
        self->call = call;
        if (call->method == A2A_SEND_STREAMING_MESSAGE) {
            say_more(self);
        } /* else nothing, for ever */
    }
}

static void on_gone(a2a_service *service, a2a_call *call)
{
    agent *self = CONTAINER_OF(service, agent, service);
    self->gone++;
    self->call = NULL;
    a2a_call_end(call);
}

static void on_drained(a2a_service *service, a2a_call *call)
{
    agent *self = CONTAINER_OF(service, agent, service);
    (void)call;
    if (self->call != NULL) {
        say_more(self);
    }
}

static a2a_service *find(void *endpoint, bay_str name)
{
    agent *self = endpoint;
    return self->is_there && str_eq(name, STR("far")) ? &self->service : NULL;
}

/* ---- a caller ----------------------------------------------------------------------------------
 */

typedef struct caller {
    a2a_call call; /* first */
    arena memory;
    json_doc params;
    int ended;
    int events;
    bool is_in_order;
    bool is_slow;
    bool leaves; /* inside its first event */
    const char *tracestate;
    char result[200];
    a2a_error error;
} caller;

static void caller_result(a2a_call *call, bay_str json)
{
    caller *self = CONTAINER_OF(call, caller, call);
    self->ended++;
    (void)snprintf(self->result, sizeof(self->result), "%.*s", BAY_STR(json));
}

static bay_err caller_event(a2a_call *call, a2a_event *event)
{
    caller *self = CONTAINER_OF(call, caller, call);
    self->events++;
    self->is_in_order = self->is_in_order && a2a_event_sequence(event) == (uint64_t)self->events;
    if (self->leaves) {
        agents_loop_call_gone(call);
        return BAY_ERR_CLOSED;
    }
    return self->is_slow ? BAY_ERR_AGAIN : BAY_OK;
}

static void caller_end(a2a_call *call)
{
    CONTAINER_OF(call, caller, call)->ended++;
}

static void caller_fail(a2a_call *call, const a2a_fault *fault)
{
    caller *self = CONTAINER_OF(call, caller, call);
    self->ended++;
    self->error = fault->error;
}

static bay_str caller_field(a2a_call *call, bay_str name)
{
    const caller *self = CONTAINER_OF(call, caller, call);
    return str_eq(name, STR("tracestate")) ? str_of(self->tracestate)
           : str_eq(name, STR("via"))      ? STR("1.0 fred")
                                           : (bay_str){NULL, 0};
}

static const a2a_call_ops ops = {caller_result, caller_event, caller_end, caller_fail,
                                 caller_field};

static bool caller_init(caller *self, a2a_method method)
{
    *self = (caller){.is_in_order = true, .tracestate = "a=1,b=2"};
    arena_init(&self->memory, 1 << 20);
    if (json_parse(&self->params, STR("{\"id\":\"t\"}"), NULL, &self->memory, NULL) != BAY_OK) {
        arena_fini(&self->memory);
        return false;
    }
    self->call = (a2a_call){.ops = &ops,
                            .method = method,
                            .params = json_root(&self->params),
                            .tenant = STR(""),
                            .principal = person("me"),
                            .extensions = STR(""),
                            .traceparent = STR(""),
                            .memory = &self->memory};
    return true;
}

/* ---- two loops ---------------------------------------------------------------------------------
 */

typedef struct rig {
    loop *here;
    loop *there;
    loop_mailbox *port_here;
    loop_mailbox *port_there;
    agents_loop_calls loop_calls;
    agent agent;
} rig;

static bay_err rig_open(rig *self)
{
    *self = (rig){.agent = {.service = {.call = on_call, .gone = on_gone, .drained = on_drained},
                            .is_there = true}};
    bay_err err = loop_new(&self->here);
    err = err == BAY_OK ? loop_new(&self->there) : err;
    err = err == BAY_OK ? loop_mailbox_new(self->here, self, &self->port_here) : err;
    err = err == BAY_OK ? loop_mailbox_new(self->there, &self->agent, &self->port_there) : err;
    if (err == BAY_OK) {
        agents_loop_calls_init(&self->loop_calls, self->port_here);
    }
    return err;
}

static void turn(rig *self)
{
    loop_turn(self->there, 0);
    loop_turn(self->here, 0);
}

static void turn_until(rig *self, const int *count, int wanted)
{
    for (int i = 0; i < MOST_TURNS && *count < wanted; i++) {
        turn(self);
    }
    assert_int_equal(*count, wanted);
}

static void rig_close(rig *self)
{
    if (self->loop_calls.mailbox != NULL) {
        agents_loop_calls_end(&self->loop_calls);
    }
    loop_mailbox *ports[] = {self->port_here, self->port_there};
    for (size_t i = 0; i < 2; i++) {
        if (ports[i] != NULL) {
            loop_mailbox_close(ports[i]);
            loop_mailbox_unref(ports[i]);
        }
    }
    loop_free(self->there); /* runs what was posted */
    loop_free(self->here);
}

static void begin(rig *self, caller *one)
{
    agents_loop_call_begin(&self->loop_calls, self->port_there, STR("far"), find, &one->call);
}

/* ---- cases -------------------------------------------------------------------------------------
 */

static void results_and_faults_come_back(void **state)
{
    (void)state;
    rig self;
    caller get, cancel;
    assert_int_equal(rig_open(&self), BAY_OK);
    assert_true(caller_init(&get, A2A_GET_TASK));
    assert_true(caller_init(&cancel, A2A_CANCEL_TASK));
    begin(&self, &get);
    begin(&self, &cancel);
    assert_int_equal(get.ended, 0); /* nothing happens inside */
    turn_until(&self, &cancel.ended, 1);
    assert_int_equal(get.ended, 1);
    assert_string_equal(get.result, "{\"id\":\"t\"}");
    assert_int_equal(get.call.context.labels, CALL_UNTRUSTED);
    assert_int_equal(cancel.call.context.labels, CALL_UNLABELLED);
    assert_int_equal(cancel.error, A2A_E_TASK_NOT_FOUND);
    assert_int_equal(self.loop_calls.count, 0);
    arena_fini(&get.memory);
    arena_fini(&cancel.memory);
    rig_close(&self);
}

static void a_trace_comes_along(void **state)
{
    (void)state;
    static const struct {
        const char *parent, *sent, *seen;
    } cases[] = {{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1,b=2", "a=1,b=2"},
                 {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1,B=2", ""},
                 {"", "a=1,b=2", ""}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rig self;
        caller one;
        assert_int_equal(rig_open(&self), BAY_OK);
        assert_true(caller_init(&one, A2A_GET_TASK));
        one.call.traceparent = str_of(cases[i].parent);
        one.tracestate = cases[i].sent;
        begin(&self, &one);
        turn_until(&self, &one.ended, 1);
        assert_string_equal(self.agent.tracestate, cases[i].seen);
        assert_string_equal(self.agent.via, "1.0 fred");
        arena_fini(&one.memory);
        rig_close(&self);
    }
}

static void who_is_not_there_is_said_so(void **state)
{
    (void)state;
    rig self;
    caller one;
    assert_int_equal(rig_open(&self), BAY_OK);
    self.agent.is_there = false;
    assert_true(caller_init(&one, A2A_GET_TASK));
    begin(&self, &one);
    turn_until(&self, &one.ended, 1);
    assert_int_equal(one.error, A2A_E_UNAVAILABLE);
    arena_fini(&one.memory);
    rig_close(&self);
}

static void streams_keep_their_order_and_wait_for_slow_readers(void **state)
{
    (void)state;
    rig self;
    caller one;
    assert_int_equal(rig_open(&self), BAY_OK);
    assert_true(caller_init(&one, A2A_SEND_STREAMING_MESSAGE));
    one.is_slow = true;
    begin(&self, &one);
    for (int i = 0; i < 50; i++) {
        turn(&self);
    }
    assert_int_equal(one.ended, 0);
    assert_true(self.agent.sent <= AGENTS_LOOP_CALL_EVENTS); /* the agent waits */
    assert_int_equal(one.events, self.agent.sent);
    assert_int_equal(one.call.context.labels, CALL_UNLABELLED);
    agents_loop_call_drained(&one.call); /* and again, since it stays slow */
    for (int i = 0; i < MOST_TURNS && one.ended == 0; i++) {
        turn(&self);
        one.is_slow = i < 20;
        if (one.ended == 0) {
            agents_loop_call_drained(&one.call);
        }
    }
    assert_int_equal(one.ended, 1);
    assert_int_equal(one.events, EVENTS);
    assert_true(one.is_in_order);
    assert_int_equal(one.call.context.labels, CALL_SUSPICIOUS); /* of an event in its middle */
    arena_fini(&one.memory);
    rig_close(&self);
}

static void whoever_leaves_is_ended_and_the_agent_hears(void **state)
{
    (void)state;
    rig self;
    caller early, late;
    assert_int_equal(rig_open(&self), BAY_OK);
    assert_true(caller_init(&early, A2A_SEND_MESSAGE));
    begin(&self, &early);
    agents_loop_call_gone(&early.call); /* before the agent heard of it */
    assert_int_equal(early.ended, 1);
    turn_until(&self, &self.agent.gone, 1);
    assert_true(caller_init(&late, A2A_SEND_MESSAGE));
    begin(&self, &late);
    turn_until(&self, &self.agent.calls, 2);
    agents_loop_call_gone(&late.call);
    assert_int_equal(late.ended, 1);
    turn_until(&self, &self.agent.gone, 2);
    arena_fini(&early.memory);
    arena_fini(&late.memory);
    rig_close(&self);
}

static void a_caller_that_leaves_inside_an_event_ends_once(void **state)
{
    (void)state;
    rig self;
    caller one;
    assert_int_equal(rig_open(&self), BAY_OK);
    assert_true(caller_init(&one, A2A_SEND_STREAMING_MESSAGE));
    one.leaves = true;
    begin(&self, &one);
    turn_until(&self, &self.agent.gone, 1);
    assert_int_equal(one.ended, 1);
    assert_int_equal(one.events, 1);
    arena_fini(&one.memory);
    rig_close(&self);
}

static void an_end_of_the_loop_ends_what_is_open(void **state)
{
    (void)state;
    rig self;
    caller one;
    assert_int_equal(rig_open(&self), BAY_OK);
    assert_true(caller_init(&one, A2A_SEND_MESSAGE));
    begin(&self, &one);
    turn_until(&self, &self.agent.calls, 1);
    agents_loop_calls_end(&self.loop_calls);
    assert_int_equal(one.ended, 1);
    arena_fini(&one.memory);
    rig_close(&self);
    assert_int_equal(self.agent.gone, 1);
}

static void every_failing_allocation_ends_the_call_once(void **state)
{
    (void)state;
    static const a2a_method methods[] = {A2A_GET_TASK, A2A_CANCEL_TASK, A2A_SEND_STREAMING_MESSAGE};
    for (size_t at = 0; failing_memory_start(at); at++) {
        for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
            rig self;
            caller one;
            if (rig_open(&self) == BAY_OK && caller_init(&one, methods[i])) {
                begin(&self, &one);
                for (int k = 0; k < 200 && one.ended == 0; k++) {
                    turn(&self);
                }
                assert_int_equal(one.ended, 1);
                assert_true(one.is_in_order);
                arena_fini(&one.memory);
            }
            rig_close(&self);
        }
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_comes_along),
        cmocka_unit_test(who_is_not_there_is_said_so),
        cmocka_unit_test(results_and_faults_come_back),
        cmocka_unit_test(streams_keep_their_order_and_wait_for_slow_readers),
        cmocka_unit_test(whoever_leaves_is_ended_and_the_agent_hears),
        cmocka_unit_test(a_caller_that_leaves_inside_an_event_ends_once),
        cmocka_unit_test(an_end_of_the_loop_ends_what_is_open),
        cmocka_unit_test(every_failing_allocation_ends_the_call_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
