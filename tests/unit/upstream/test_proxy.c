/* A proxy and its owner on two loops and two threads: calls, progress, cancels and ends cross in
 * both directions, and whoever leaves first leaves nothing behind. */
#include "proxy_stage.h"

static void answer_error(stage *self)
{
    fake_error(self->fake, 7, "{'code':7,'message':'m\\u0041'}");
}

static void fail_call(stage *self)
{
    fake_fail(self->fake, BAY_ERR_EXITED, true, "exited with status 3");
}

static void send_progress(stage *self)
{
    fake_notify(self->fake, MCP_N_PROGRESS, "{'progress':0.50}");
    fake_notify(self->fake, MCP_N_MESSAGE, "{'data':1}");
}

static void hear_the_call(stage *self)
{
    const mcp_call_spec *spec = &self->fake->held[0]->spec;
    assert_text(spec->method, "tools/call");
    assert_text(json_raw(spec->params), "{\"name\":\"echo\",\"arguments\":{\"n\":1.0}}");
    assert_text(json_raw(spec->meta), "{\"name\":\"echo\",\"arguments\":{\"n\":1.0}}");
    assert_text(spec->rename, "other");
    assert_text(spec->capabilities, "{}");
    assert_text(spec->client_info, "{\"name\":\"c\"}");
    assert_int_equal(spec->timeout_ms, 77);
    assert_true(spec->wants_progress);
}

/* ---- what crosses ---------------------------------------------------------------------------- */

static void the_proxy_learns_what_the_owner_knows(void **state)
{
    (void)state;
    stage self;
    open_fake(&self);
    assert_int_equal(upstream_state_of(self.proxy), UPSTREAM_READY);
    assert_true(upstream_is_settled(self.proxy));
    assert_true(upstream_has(self.proxy, STR("tools")));
    assert_false(upstream_has(self.proxy, STR("logging.nothing")));
    assert_ptr_equal(upstream_revision(self.proxy), mcp_revision_of(MCP_LATEST));
    close_stage(&self);
}

static void break_owner(stage *self)
{
    upstream_learn_instructions(self->owner, STR("Mind the gap."));
    upstream_set_state(self->owner, UPSTREAM_BACKOFF, "it broke");
    upstream_publish_change(self->owner, MCP_CHANGE_TOOLS);
    upstream_publish_update(self->owner, STR("f:///x"));
    upstream_publish_update(self->owner, STR("f:///y"));
}

static void the_proxy_hears_what_changes(void **state)
{
    (void)state;
    stage self;
    open_fake(&self);
    there(&self, break_owner);
    turn_until(self.here, self.updates > 0);
    assert_int_equal(upstream_state_of(self.proxy), UPSTREAM_BACKOFF);
    assert_string_equal(upstream_error(self.proxy), "it broke");
    assert_text(upstream_instructions(self.proxy), "Mind the gap.");
    assert_true(upstream_has(self.proxy, STR("tools")));
    assert_int_equal(self.changes, MCP_CHANGE_TOOLS);
    assert_int_equal(self.updates, 1);
    close_stage(&self);
}

enum { TOLD = 150 };

static void tell_elicited(stage *self)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&doc, STR("{\"elicitationId\" : \"e\"}"), NULL, &memory, NULL),
                     BAY_OK);
    self->owner->loop = self->there;
    for (int i = 0; i < TOLD; i++) {
        upstream_tell_elicited(self->owner, json_root(&doc));
    }
    arena_fini(&memory);
}

/* Not as many as a server likes. */
static void the_proxy_hears_that_a_url_is_done_with(void **state)
{
    (void)state;
    stage self;
    open_fake(&self);
    there(&self, tell_elicited);
    turn_until(self.here, self.elicited > 0);
    there(&self, nothing);
    assert_true(self.elicited < TOLD);
    close_stage(&self);
}

static void calls_and_answers_cross_byte_for_byte(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_fake(&self);
    probe_init(&call, "echo");
    call.call.spec.meta = call.call.spec.params;
    call.call.spec.rename = STR("other");
    call.call.spec.capabilities = STR("{}");
    call.call.spec.client_info = STR("{\"name\":\"c\"}");
    call.call.spec.timeout_ms = 77;
    probe_send(&call, self.proxy);
    assert_int_equal(upstream_open_calls(self.proxy), 1);
    there(&self, hear_the_call);
    there(&self, send_progress);
    there(&self, answer_good);
    turn_until(self.here, call.dones > 0);
    assert_int_equal(call.dones, 1);
    assert_int_equal(call.notifications, 2);
    assert_string_equal(call.text, "{\"content\":\"good\",\"n\":1.0e2}");
    assert_int_equal(upstream_open_calls(self.proxy), 0);
    probe_fini(&call);

    probe_init(&call, "echo");
    probe_send(&call, self.proxy);
    there(&self, nothing);
    there(&self, answer_error);
    turn_until(self.here, call.dones > 0);
    assert_int_equal(call.kind, MCP_OUTCOME_ERROR);
    assert_string_equal(call.text, "{\"code\":7,\"message\":\"m\\u0041\"}");
    probe_fini(&call);

    probe_init(&call, "echo");
    probe_send(&call, self.proxy);
    there(&self, nothing);
    there(&self, fail_call);
    turn_until(self.here, call.dones > 0);
    assert_failed(&call, BAY_ERR_EXITED, true, "exited with status 3");
    probe_fini(&call);
    close_stage(&self);
}

static void expect_one_pause(stage *self)
{
    assert_int_equal(self->fake->pauses, 1);
    assert_int_equal(self->fake->resumes, 1);
    assert_int_equal(self->fake->subscribes, 2);
    assert_int_equal(self->fake->unsubscribes, 1);
    assert_int_equal(self->fake->level, MCP_LOG_INFO);
    assert_int_equal(self->fake->starts, 1);
}

static void wishes_cross(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_fake(&self);
    probe_init(&call, "echo");
    probe_send(&call, self.proxy);
    upstream_call_pause(&call.call, true);
    there(&self, nothing); /* or it would be paused no more when the owner looks */
    upstream_call_pause(&call.call, false);
    upstream_subscribe(self.proxy, STR(""), STR("f:///x"), true);
    upstream_subscribe(self.proxy, STR(""), STR("f:///y"), true);
    upstream_subscribe(self.proxy, STR(""), STR("f:///x"), false);
    upstream_set_level(self.proxy, MCP_LOG_INFO);
    upstream_set_level(self.proxy, MCP_LOG_ERROR); /* less than was wished before */
    upstream_start(self.proxy);
    there(&self, expect_one_pause);
    there(&self, answer_good);
    turn_until(self.here, call.dones > 0);
    upstream_call_pause(&call.call, true); /* after the end: harmless */
    probe_fini(&call);
    close_stage(&self);
}

/* ---- races ----------------------------------------------------------------------------------- */

static void expect_cancelled(stage *self)
{
    assert_int_equal(self->fake->cancels, 1);
    assert_int_equal(self->fake->held_count, 0);
}

/* ---- questions ------------------------------------------------------------------------------- */

enum { QUESTIONS = 2000 };

static struct {
    atomic_int asked;
    atomic_int withdrawn;
    char last[200]; /* what was asked, or withdrawn, the last time */
    upstream_call *call;
    bool answers; /* at once */
} heard;

static void hear_question(void *user, const rpc_message *request)
{
    (void)user;
    (void)snprintf(heard.last, sizeof(heard.last), "%.*s %.*s %.*s", BAY_STR(request->id),
                   BAY_STR(request->method), BAY_STR(json_raw(request->params)));
    atomic_fetch_add(&heard.asked, 1);
    if (heard.answers) {
        upstream_call_answer(heard.call, request->id, STR("{\"roots\":[1.0]}"), 0, STR(""));
    }
}

static void hear_withdrawn(void *user, bay_str id)
{
    (void)user;
    (void)snprintf(heard.last, sizeof(heard.last), "%.*s", BAY_STR(id));
    atomic_fetch_add(&heard.withdrawn, 1);
}

static const upstream_call_events asking_events = {.notified = probe_notified,
                                                   .asked = hear_question,
                                                   .withdrawn = hear_withdrawn,
                                                   .done = probe_done};

static void send_asking(stage *self, probe *one)
{
    probe_init(one, "echo");
    memset(&heard, 0, sizeof(heard));
    heard.call = &one->call;
    one->call.events = &asking_events;
    one->call.is_repeatable = true;
    one->call.affinity = (upstream_affinity){
        .inputs = MCP_INPUT_ROOTS, .identity = STR("the client"), .is_stateless = true};
    probe_send(one, self->proxy);
}

static void ask_there(stage *self)
{
    const upstream_call *call = self->fake->held[0];
    assert_int_equal(call->affinity.inputs, MCP_INPUT_ROOTS);
    assert_text(call->affinity.identity, "the client");
    fake_ask(self->fake, "{'jsonrpc':'2.0','id':'q\\u0041','method':'roots/list',"
                         "'params':{'n' : 1.0}}");
    assert_false(call->is_repeatable); /* nobody is asked twice */
}

static void withdraw_there(stage *self)
{
    fake_withdraw(self->fake, "'q\\u0041'");
}

static void questions_and_answers_cross(void **state)
{
    (void)state;
    stage self;
    probe one;
    open_fake(&self);
    send_asking(&self, &one);
    there(&self, ask_there);
    turn_until(self.here, atomic_load(&heard.asked) == 1);
    assert_text(str_of(heard.last), "\"q\\u0041\" roots/list {\"n\" : 1.0}");
    upstream_call_answer(&one.call, STR("\"q\\u0041\""), STR("{\"roots\" : [1.0]}"), 0, STR(""));
    there(&self, nothing);
    assert_text(str_of(self.fake->answer), "\"q\\u0041\" {\"roots\" : [1.0]}");
    upstream_call_answer(&one.call, STR("7"), STR(""), -32601, STR("no \"roots\""));
    there(&self, nothing);
    assert_text(str_of(self.fake->answer), "7 -32601 no \"roots\"");
    there(&self, withdraw_there);
    turn_until(self.here, atomic_load(&heard.withdrawn) == 1);
    assert_text(str_of(heard.last), "\"q\\u0041\"");
    there(&self, answer_good);
    turn_until(self.here, one.dones == 1);
    upstream_call_answer(&one.call, STR("8"), STR("{}"), 0, STR("")); /* too late: harmless */
    there(&self, nothing);
    assert_int_equal(self.fake->answers, 2);
    probe_fini(&one);
    close_stage(&self);
}

/* Else a question outside of any call would be put to a call that reads a list. */
static void who_cannot_be_asked_cannot_there_either(void **state)
{
    (void)state;
    stage self;
    probe one;
    open_fake(&self);
    probe_init(&one, "echo");
    assert_null(one.call.events->asked);
    probe_send(&one, self.proxy);
    there(&self, nothing);
    assert_null(self.fake->held[0]->events->asked);
    there(&self, answer_good);
    turn_until(self.here, one.dones == 1);
    probe_fini(&one);
    close_stage(&self);
}

static void ask_often(stage *self)
{
    char text[200];
    for (int i = 0; i < QUESTIONS && self->fake->held_count > 0; i++) {
        (void)snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':%d,'method':'roots/list'}", i);
        fake_ask(self->fake, text);
        if (i % 3 == 0) {
            (void)snprintf(text, sizeof(text), "%d", i);
            fake_withdraw(self->fake, text);
        }
    }
}

static void cancel_here(void *argument)
{
    upstream_call_cancel(argument, STR("enough"));
}

/* Answers on their way there, questions on their way back, and a cancel in between. */
static void questions_that_meet_a_cancel(void **state)
{
    (void)state;
    stage self;
    probe one;
    open_fake(&self);
    send_asking(&self, &one);
    heard.answers = true;
    there(&self, nothing);
    self.work = ask_often;
    atomic_store(&self.is_done_there, false);
    assert_int_equal(loop_post(self.there, work_there, &self), BAY_OK);
    turn_until(self.here, atomic_load(&heard.asked) > 10);
    cancel_here(&one.call);
    turn_until(self.here, atomic_load(&self.is_done_there));
    there(&self, nothing);
    int asked = atomic_load(&heard.asked);
    there(&self, nothing);
    assert_int_equal(atomic_load(&heard.asked), asked); /* nothing after the cancel */
    assert_int_equal(one.dones, 0);
    assert_int_equal(self.fake->cancels, 1);
    probe_fini(&one);
    close_stage(&self);
}

static void what_a_client_tells_crosses(void **state)
{
    (void)state;
    stage self;
    open_fake(&self);
    upstream_tell(self.proxy, STR("me"), STR("notifications/roots/list_changed"), STR("{}"));
    there(&self, nothing);
    assert_text(str_of(self.fake->told), "me notifications/roots/list_changed {}");
    upstream_identity_gone(self.proxy, STR("me"));
    there(&self, nothing);
    assert_text(str_of(self.fake->told), "me");
    close_stage(&self);
}

static void a_cancel_before_the_answer(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_fake(&self);
    probe_init(&call, "echo");
    probe_send(&call, self.proxy);
    upstream_call_cancel(&call.call, STR("no more"));
    there(&self, expect_cancelled);
    assert_int_equal(call.dones, 0);
    assert_int_equal(upstream_open_calls(self.proxy), 0);
    probe_fini(&call);
    close_stage(&self);
}

static void a_cancel_that_meets_the_answer(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_fake(&self);
    probe_init(&call, "echo");
    probe_send(&call, self.proxy);
    self.work = answer_good;
    atomic_store(&self.is_done_there, false);
    assert_int_equal(loop_post(self.there, work_there, &self), BAY_OK);
    while (!atomic_load(&self.is_done_there)) { /* not turned: the answer is on its way */
    }
    upstream_call_cancel(&call.call, STR("no more"));
    probe_fini(&call); /* its memory may go now */
    there(&self, nothing);
    assert_int_equal(call.dones, 0);
    close_stage(&self);
}

static void answer_later(fake *self, upstream_call *call)
{
    mcp_outcome outcome = {.kind = MCP_OUTCOME_FAILED, .err = BAY_ERR_TIMEOUT, .text = "none"};
    self->cancels += call->attempts;
    fake_end(self, call, &outcome, NULL, false); /* from inside send */
}

static void storm(stage *self)
{
    self->fake->on_send = answer_later;
}

static void a_thousand_calls_of_which_every_other_is_cancelled(void **state)
{
    (void)state;
    enum { CALLS = 1000 };
    stage self;
    static probe calls[CALLS];
    open_fake(&self);
    there(&self, storm);
    for (int i = 0; i < CALLS; i++) {
        probe_init(&calls[i], "echo");
        probe_send(&calls[i], self.proxy);
        if (i % 16 == 15) {
            loop_turn(self.here, 0);
        }
        if (i % 2 == 1) {
            upstream_call_cancel(&calls[i - 1].call, STR("no more"));
        }
    }
    turn_until(self.here, upstream_open_calls(self.proxy) == 0);
    for (int i = 0; i < CALLS; i++) {
        assert_true(calls[i].dones <= 1);
        assert_true(i % 2 == 0 || calls[i].dones == 1);
        probe_fini(&calls[i]);
    }
    close_stage(&self);
}

static void a_proxy_that_closes_fails_its_calls(void **state)
{
    (void)state;
    stage self;
    probe call;
    probe late;
    open_fake(&self);
    probe_init(&call, "echo");
    probe_send(&call, self.proxy);
    close_proxy(&self);
    assert_failed(&call, BAY_ERR_CLOSED, true, "leaving");
    there(&self, expect_cancelled);
    there(&self, break_owner); /* nobody is told any more */
    probe_init(&late, "echo");
    probe_send(&late, self.proxy);
    assert_failed(&late, BAY_ERR_CLOSED, false, "leaving");
    assert_int_equal(self.changes, 0);
    probe_fini(&call);
    probe_fini(&late);
    close_stage(&self);
}

static void a_proxy_that_closes_before_it_was_heard_of(void **state)
{
    (void)state;
    stage self;
    open_loops(&self, NULL);
    self.fake = fake_new("s", false);
    fake_move_to(self.fake, self.there);
    self.owner = &self.fake->base;
    open_proxy(&self, &self.fake->server);
    close_stage(&self);
}

static void an_owner_that_crashes_ends_the_call(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_real(&self, "good", ",'restart':{'minDelay':'10ms','maxDelay':'20ms'}");
    static const char *const tools[] = {"echo", "exit", "echo", "kill", "echo"};
    for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
        probe_init(&call, tools[i]);
        probe_send(&call, self.proxy);
        turn_until(self.here, call.dones > 0);
        if (i % 2 == 0) {
            assert_good(&call);
        } else {
            assert_failed(&call, BAY_ERR_EXITED, true, "");
        }
        probe_fini(&call);
    }
    turn_until(self.here, upstream_restarts(self.proxy) == 2);
    turn_until(self.here, upstream_process_id(self.proxy) > 0);
    assert_int_equal(tally_count(), 5);
    close_stage(&self);
}

static void owner_closed(void *user)
{
    (void)user;
}

static void close_owner(stage *self)
{
    upstream_close(self->owner, owner_closed, NULL);
}

static void an_owner_that_closes_first_ends_the_call(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_real(&self, "good", "");
    probe_init(&call, "hang");
    probe_send(&call, self.proxy);
    turn_until(self.here, tally_count() == 1);
    there(&self, close_owner);
    turn_until(self.here, call.dones > 0);
    assert_int_equal(call.kind, MCP_OUTCOME_FAILED);
    assert_true(call.was_sent);
    probe_fini(&call);
    probe_init(&call, "echo");
    probe_send(&call, self.proxy);
    turn_until(self.here, call.dones > 0);
    assert_failed(&call, BAY_ERR_CLOSED, false, "leaving");
    probe_fini(&call);
    close_stage(&self);
}

/* ---- both loops on this thread: what happens in between is told by the test -------------------
 */

static void open_still(stage *self)
{
    open_loops(self, NULL);
    self->fake = fake_new("s", false);
    fake_move_to(self->fake, self->there);
    self->owner = &self->fake->base;
    upstream_options options = {
        .loop = self->here, .server = &self->fake->server, .events = &proxy_events, .user = self};
    assert_int_equal(upstream_new_proxy(&options, self->owner, &self->proxy), BAY_OK);
}

static void turn_both(const stage *self)
{
    for (int i = 0; i < 4; i++) {
        loop_turn(self->there, 0);
        loop_turn(self->here, 0);
    }
}

static void close_still(stage *self)
{
    upstream_close(self->proxy, closed, self);
    turn_both(self);
    assert_true(self->is_closed);
    upstream_free(self->proxy);
    loop_release(self->there);
    loop_free(self->there);
    loop_release(self->here);
    loop_free(self->here);
    fake_free(self->fake);
}

static void an_end_needs_no_memory(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_still(&self);
    probe_init(&call, "echo");
    probe_send(&call, self.proxy);
    turn_both(&self);
    assert_true(failing_memory_start(0));
    fake_fail(self.fake, BAY_ERR_EXITED, true, "exited with status 3");
    turn_both(&self);
    failing_memory_stop();
    assert_failed(&call, BAY_ERR_EXITED, true, "");
    probe_fini(&call);
    close_still(&self);
}

/* A call that stays paused never ends. */
static void a_resume_and_a_start_need_no_memory(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_still(&self);
    probe_init(&call, "echo");
    probe_send(&call, self.proxy);
    upstream_call_pause(&call.call, true);
    turn_both(&self);
    assert_int_equal(self.fake->pauses, 1);
    assert_true(failing_memory_start(0));
    upstream_call_pause(&call.call, false);
    upstream_start(self.proxy);
    turn_both(&self);
    failing_memory_stop();
    assert_int_equal(self.fake->resumes, 1);
    assert_int_equal(self.fake->starts, 1);
    fake_fail(self.fake, BAY_ERR_EXITED, true, "");
    turn_both(&self);
    probe_fini(&call);
    close_still(&self);
}

/* Whoever was exclusive something for it gets it back. */
static void a_cancel_needs_no_memory(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_still(&self);
    probe_init(&call, "echo");
    probe_send(&call, self.proxy);
    turn_both(&self);
    assert_true(failing_memory_start(0));
    upstream_call_cancel(&call.call, STR(""));
    turn_both(&self);
    failing_memory_stop();
    assert_int_equal(self.fake->cancels, 1);
    assert_int_equal(call.dones, 0);
    probe_fini(&call);
    close_still(&self);
}

/* The owner forgets it, and does not tell who is gone. */
static void a_farewell_needs_no_memory(void **state)
{
    (void)state;
    stage self;
    open_still(&self);
    turn_both(&self);
    assert_true(failing_memory_start(0));
    upstream_close(self.proxy, closed, &self);
    turn_both(&self);
    failing_memory_stop();
    assert_true(self.is_closed);
    assert_true(list_is_empty(&self.fake->base.proxies));
    upstream_free(self.proxy);
    upstream_set_state(&self.fake->base, UPSTREAM_BACKOFF, "it broke");
    loop_turn(self.here, 0);
    loop_release(self.there);
    loop_free(self.there);
    loop_release(self.here);
    loop_free(self.here);
    fake_free(self.fake);
}

/* A loop that is busy for a while finds some updates, and the state after them. */
static void updates_of_resources_do_not_pile_up(void **state)
{
    (void)state;
    enum { FLOOD = 100000 };
    stage self;
    open_still(&self);
    turn_both(&self);
    for (int i = 0; i < FLOOD; i++) {
        upstream_publish_update(&self.fake->base, STR("f:///x"));
    }
    upstream_set_state(&self.fake->base, UPSTREAM_BACKOFF, "it broke");
    turn_both(&self);
    assert_true(self.updates > 0);
    assert_true(self.updates < FLOOD / 2);
    assert_int_equal(upstream_state_of(self.proxy), UPSTREAM_BACKOFF);
    int before = self.updates;
    upstream_publish_update(&self.fake->base, STR("f:///x")); /* there is room again */
    turn_both(&self);
    assert_int_equal(self.updates, before + 1);
    close_still(&self);
}

/* A loop that is busy for a while finds some of it, and all else. */
static void what_is_told_of_a_call_does_not_pile_up(void **state)
{
    (void)state;
    enum { FLOOD = 100000 };
    stage self;
    probe call;
    open_still(&self);
    probe_init(&call, "echo");
    probe_send(&call, self.proxy);
    turn_both(&self);
    for (int i = 0; i < FLOOD; i++) {
        fake_notify(self.fake, MCP_N_PROGRESS, "{'progress':1,'message':'0123456789012345678901'}");
    }
    loop_turn(self.here, 0);
    assert_in_range(call.notifications, 1000, FLOOD / 2);
    int before = call.notifications;
    fake_notify(self.fake, MCP_N_PROGRESS, "{'progress':2}"); /* there is room again */
    fake_result(self.fake, "{'content':'good'}");
    turn_both(&self);
    assert_int_equal(call.notifications, before + 1);
    assert_good(&call);
    probe_fini(&call);
    close_still(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_proxy_learns_what_the_owner_knows),
        cmocka_unit_test(the_proxy_hears_what_changes),
        cmocka_unit_test(the_proxy_hears_that_a_url_is_done_with),
        cmocka_unit_test(calls_and_answers_cross_byte_for_byte),
        cmocka_unit_test(wishes_cross),
        cmocka_unit_test(questions_and_answers_cross),
        cmocka_unit_test(who_cannot_be_asked_cannot_there_either),
        cmocka_unit_test(questions_that_meet_a_cancel),
        cmocka_unit_test(what_a_client_tells_crosses),
        cmocka_unit_test(a_cancel_before_the_answer),
        cmocka_unit_test(a_cancel_that_meets_the_answer),
        cmocka_unit_test(a_thousand_calls_of_which_every_other_is_cancelled),
        cmocka_unit_test(a_proxy_that_closes_fails_its_calls),
        cmocka_unit_test(a_proxy_that_closes_before_it_was_heard_of),
        cmocka_unit_test(an_owner_that_crashes_ends_the_call),
        cmocka_unit_test(an_owner_that_closes_first_ends_the_call),
        cmocka_unit_test(an_end_needs_no_memory),
        cmocka_unit_test(a_resume_and_a_start_need_no_memory),
        cmocka_unit_test(updates_of_resources_do_not_pile_up),
        cmocka_unit_test(a_cancel_needs_no_memory),
        cmocka_unit_test(a_farewell_needs_no_memory),
        cmocka_unit_test(what_is_told_of_a_call_does_not_pile_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
