/* The owner of a link with a real child behind it: every call ends once, whatever the child does,
 * and nothing is left behind. */
#include "support/upstream_testing.h"

#include <signal.h>

#include "http/http_client.h"

typedef struct stage {
    loop *loop;
    const config *config;
    upstream *server;
    int descriptors;
    bool is_closed;
} stage;

#define QUICK ",'restart':{'minDelay':'10ms','maxDelay':'20ms'}"

static void open_config(stage *self, const config *settings)
{
    *self = (stage){.descriptors = open_descriptors(), .config = settings};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    upstream_options options = {.loop = self->loop,
                                .config = settings,
                                .server = &settings->servers[0],
                                .events = &fake_events};
    assert_int_equal(upstream_new(&options, &self->server), BAY_OK);
    tally_open();
}

static void open_stage(stage *self, const char *kind_of_bad, const char *more, const char *top)
{
    open_config(self, server_config(kind_of_bad, more, top));
}

static void closed(void *user)
{
    *(bool *)user = true;
}

/* Frees at once, whatever the state; nothing may be left. */
static void drop_stage(stage *self)
{
    upstream_free(self->server);
    loop_free(self->loop);
    config_free(self->config);
    tally_close();
    assert_int_equal(count_children(), 0);
    assert_int_equal(open_descriptors(), self->descriptors);
}

static void close_stage(stage *self)
{
    upstream_close(self->server, closed, &self->is_closed);
    turn_until(self->loop, self->is_closed);
    assert_int_equal(upstream_state_of(self->server), UPSTREAM_CLOSED);
    assert_int_equal(count_children(), 0);
    drop_stage(self);
}

static void wait_ready(stage *self)
{
    upstream_start(self->server);
    turn_until(self->loop, upstream_state_of(self->server) == UPSTREAM_READY);
}

/* Sends one call and waits for its end. */
static void call_tool(stage *self, probe *call, const char *tool)
{
    probe_init(call, tool);
    probe_send(call, self->server);
    turn_until(self->loop, call->dones > 0);
    probe_fini(call);
}

static void a_program_that_is_not_there(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_config(&self,
                testing_config("{\"mcpServers\":{\"s\":{\"command\":\"/no/such/program\","
                               "\"restart\":{\"minDelay\":\"10s\",\"maxDelay\":\"10s\"}}}}"));
    call_tool(&self, &call, "echo");
    assert_failed(&call, BAY_ERR_SPAWN, false, "/no/such/program");
    assert_int_equal(upstream_state_of(self.server), UPSTREAM_BACKOFF);
    assert_true(upstream_is_settled(self.server));
    assert_non_null(strstr(upstream_error(self.server), "/no/such/program"));
    call_tool(&self, &call, "echo"); /* the next start is far: refused at once, by name */
    assert_failed(&call, BAY_ERR_CLOSED, false, "/no/such/program");
    close_stage(&self);
}

static void a_program_that_ends_at_once_is_tried_again(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_stage(&self, "exit", QUICK, "");
    call_tool(&self, &call, "echo");
    assert_failed(&call, BAY_ERR_EXITED, false, "status 7: cannot start");
    turn_until(self.loop, upstream_restarts(self.server) >= 3);
    assert_int_equal(tally_count(), 0);
    close_stage(&self);
}

static void a_crash_in_a_call_ends_it_and_is_repaired(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_stage(&self, "good", QUICK, "");
    call_tool(&self, &call, "exit");
    assert_failed(&call, BAY_ERR_EXITED, true, "status 3: going down");
    assert_int_equal(tally_count(), 1);
    call_tool(&self, &call, "echo"); /* waits for the restart */
    assert_good(&call);
    assert_int_equal(upstream_restarts(self.server), 1);
    call_tool(&self, &call, "kill");
    assert_failed(&call, BAY_ERR_EXITED, true, "killed by signal 9");
    call_tool(&self, &call, "half_line");
    assert_failed(&call, BAY_ERR_EXITED, true, "status 0");
    call_tool(&self, &call, "shut");
    assert_int_equal(call.kind, MCP_OUTCOME_FAILED);
    assert_true(call.was_sent);
    call_tool(&self, &call, "echo");
    assert_good(&call);
    assert_int_equal(tally_count(), 6); /* none ran twice */
    close_stage(&self);
}

static void a_call_to_a_process_that_just_died_runs_once_or_says_so(void **state)
{
    (void)state;
    stage self;
    probe call;
    siginfo_t about;
    open_stage(&self, "good", QUICK, "");
    wait_ready(&self);
    pid_t pid = upstream_process_id(self.server);
    assert_true(pid > 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &about, WEXITED | WNOWAIT), 0);
    call_tool(&self, &call, "echo"); /* its pipe is broken, and we have not looked yet */
    if (call.kind == MCP_OUTCOME_RESULT) {
        assert_good(&call); /* known not to be sent: tried once more */
        assert_int_equal(tally_count(), 1);
    } else {
        assert_failed(&call, BAY_ERR_EXITED, true, "killed by signal 9");
        assert_int_equal(tally_count(), 0);
    }
    call_tool(&self, &call, "echo");
    assert_good(&call);
    close_stage(&self);
}

static void a_server_that_reads_no_more_is_replaced(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_stage(&self, "good", QUICK ",'timeout':'300ms'", "");
    call_tool(&self, &call, "deafen"); /* it answers, closes its stdin and lives on */
    assert_good(&call);
    int pid = upstream_process_id(self.server);
    for (int i = 0; i < 5; i++) {
        call_tool(&self, &call, "echo");
        assert_int_equal(call.dones, 1);
        if (call.kind == MCP_OUTCOME_RESULT) {
            break;
        }
    }
    assert_good(&call);
    assert_int_not_equal(upstream_process_id(self.server), pid);
    assert_int_equal(tally_count(), 2);
    close_stage(&self);
}

static void all_open_calls_fail_once_when_it_dies(void **state)
{
    (void)state;
    enum { CALLS = 50 };
    stage self;
    static probe calls[CALLS];
    open_stage(&self, "good", QUICK, "");
    wait_ready(&self);
    for (int i = 0; i < CALLS; i++) {
        probe_init(&calls[i], "hang");
        probe_send(&calls[i], self.server);
    }
    assert_int_equal(upstream_open_calls(self.server), CALLS);
    turn_until(self.loop, tally_count() == CALLS);
    assert_int_equal(kill(upstream_process_id(self.server), SIGKILL), 0);
    turn_until(self.loop, calls[CALLS - 1].dones > 0);
    for (int i = 0; i < CALLS; i++) {
        assert_failed(&calls[i], BAY_ERR_EXITED, true, "killed by signal 9");
        probe_fini(&calls[i]);
    }
    assert_int_equal(upstream_open_calls(self.server), 0);
    assert_int_equal(tally_count(), CALLS);
    close_stage(&self);
}

static void a_call_from_inside_a_failure_goes_to_the_next_process(void **state)
{
    (void)state;
    stage self;
    probe first;
    probe second;
    open_stage(&self, "good", QUICK, "");
    wait_ready(&self);
    probe_init(&first, "exit");
    probe_init(&second, "echo");
    first.next = &second;
    first.next_to = self.server;
    probe_send(&first, self.server);
    turn_until(self.loop, second.dones > 0);
    assert_failed(&first, BAY_ERR_EXITED, true, "status 3");
    assert_good(&second);
    probe_fini(&first);
    probe_fini(&second);
    close_stage(&self);
}

static void during_a_short_back_off_calls_wait(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_stage(&self, "good", ",'restart':{'minDelay':'200ms','maxDelay':'200ms'}", "");
    call_tool(&self, &call, "exit");
    turn_until(self.loop, upstream_state_of(self.server) == UPSTREAM_BACKOFF);
    probe cancelled;
    probe_init(&cancelled, "echo");
    probe_send(&cancelled, self.server);
    probe_init(&call, "echo");
    probe_send(&call, self.server);
    assert_int_equal(call.dones, 0);
    upstream_call_cancel(&cancelled.call, STR("no more"));
    upstream_call_cancel(&cancelled.call, STR("twice does no harm"));
    turn_until(self.loop, call.dones > 0);
    assert_good(&call);
    assert_int_equal(cancelled.dones, 0);
    assert_int_equal(tally_count(), 2);
    probe_fini(&call);
    probe_fini(&cancelled);
    close_stage(&self);
}

static void it_stops_when_it_idles_and_starts_with_the_next_call(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_stage(&self, "good", ",'idleStop':'30ms'", "");
    call_tool(&self, &call, "echo");
    assert_good(&call);
    turn_until(self.loop, upstream_state_of(self.server) == UPSTREAM_STOPPED);
    assert_int_equal(upstream_process_id(self.server), 0);
    call_tool(&self, &call, "echo"); /* at once: the old one is still on its way out */
    assert_good(&call);
    turn_until(self.loop, upstream_state_of(self.server) == UPSTREAM_STOPPED);
    turn_until(self.loop, count_children() == 0);
    call_tool(&self, &call, "echo");
    assert_good(&call);
    assert_int_equal(upstream_restarts(self.server), 0);
    turn_until(self.loop, upstream_state_of(self.server) == UPSTREAM_STOPPED);
    close_stage(&self); /* while the old one is on its way out */
}

static void a_long_call_is_not_idling(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_stage(&self, "good", ",'idleStop':'20ms','timeout':'300ms'", "");
    call_tool(&self, &call, "hang");
    assert_failed(&call, BAY_ERR_TIMEOUT, true, "");
    close_stage(&self);
}

static void a_server_that_does_not_answer_times_out(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_stage(&self, "good", ",'timeout':'200ms'", "");
    wait_ready(&self);
    int pid = upstream_process_id(self.server);
    call_tool(&self, &call, "hang");
    assert_failed(&call, BAY_ERR_TIMEOUT, true, "");
    call_tool(&self, &call, "echo"); /* the same process serves on */
    assert_good(&call);
    assert_int_equal(upstream_process_id(self.server), pid);
    assert_int_equal(upstream_state_of(self.server), UPSTREAM_READY);
    close_stage(&self);
}

static void a_cancelled_call_has_no_end(void **state)
{
    (void)state;
    stage self;
    probe first;
    probe second;
    open_stage(&self, "good", "", "");
    wait_ready(&self);
    probe_init(&first, "hang");
    probe_init(&second, "echo");
    probe_send(&first, self.server);
    turn_until(self.loop, tally_count() == 1);
    upstream_call_cancel(&first.call, STR("no more"));
    probe_send(&second, self.server);
    turn_until(self.loop, second.dones > 0);
    assert_good(&second);
    assert_int_equal(first.dones, 0);
    assert_int_equal(upstream_open_calls(self.server), 0);
    probe_fini(&first);
    probe_fini(&second);
    close_stage(&self);
}

static void closing_while_it_starts(void **state)
{
    (void)state;
    stage self;
    probe waits;
    probe late;
    open_stage(&self, "silent", "", "'timeouts':{'probe':'20s'},");
    probe_init(&waits, "echo");
    probe_init(&late, "echo");
    probe_send(&waits, self.server);
    turn_until(self.loop, upstream_process_id(self.server) > 0);
    assert_int_equal(upstream_state_of(self.server), UPSTREAM_STARTING);
    upstream_close(self.server, closed, &self.is_closed);
    turn_until(self.loop, self.is_closed);
    assert_int_equal(waits.dones, 1);
    assert_int_equal(waits.kind, MCP_OUTCOME_FAILED);
    assert_false(waits.was_sent);
    probe_send(&late, self.server);
    assert_failed(&late, BAY_ERR_CLOSED, false, "leaving");
    upstream_start(self.server);
    assert_int_equal(upstream_state_of(self.server), UPSTREAM_CLOSED);
    probe_fini(&waits);
    probe_fini(&late);
    drop_stage(&self);
}

static void closing_twice_tells_the_second(void **state)
{
    (void)state;
    stage self;
    bool is_first_told = false;
    open_stage(&self, "good", "", "");
    wait_ready(&self);
    upstream_close(self.server, closed, &is_first_told);
    close_stage(&self);
    assert_false(is_first_told);
}

static void freed_in_every_state(void **state)
{
    (void)state;
    stage self;
    probe call;
    open_stage(&self, "good", "", ""); /* STOPPED */
    drop_stage(&self);

    open_stage(&self, "silent", "", ""); /* STARTING, with a call */
    probe_init(&call, "echo");
    probe_send(&call, self.server);
    assert_int_equal(upstream_state_of(self.server), UPSTREAM_STARTING);
    drop_stage(&self);
    assert_int_equal(call.dones, 1);
    assert_int_equal(call.kind, MCP_OUTCOME_FAILED);
    probe_fini(&call);

    open_stage(&self, "good", ",'idleStop':'1s'", ""); /* READY, with a call */
    wait_ready(&self);
    probe_init(&call, "hang");
    probe_send(&call, self.server);
    turn_until(self.loop, tally_count() == 1);
    drop_stage(&self);
    assert_failed(&call, BAY_ERR_CLOSED, true, "leaving the gateway");
    probe_fini(&call);

    open_stage(&self, "exit", ",'restart':{'minDelay':'1s','maxDelay':'1s'}", ""); /* BACKOFF */
    upstream_start(self.server);
    turn_until(self.loop, upstream_state_of(self.server) == UPSTREAM_BACKOFF);
    drop_stage(&self);

    open_stage(&self, "good", "", ""); /* on its way out */
    wait_ready(&self);
    upstream_close(self.server, closed, &self.is_closed);
    drop_stage(&self);
    assert_false(self.is_closed);

    open_stage(&self, "good", ",'idleStop':'10ms'", ""); /* STOPPED, on its way out */
    wait_ready(&self);
    turn_until(self.loop, upstream_state_of(self.server) == UPSTREAM_STOPPED);
    drop_stage(&self);
}

static void nobody_at_the_url(void **state)
{
    (void)state;
    stage self;
    probe call;
    http_client *http = NULL;
    self = (stage){.descriptors = open_descriptors()};
    self.config = testing_config("{\"mcpServers\":{\"s\":{\"url\":\"http://127.0.0.1:1/mcp\","
                                 "\"restart\":{\"minDelay\":\"5s\",\"maxDelay\":\"5s\"}}}}");
    assert_int_equal(loop_new(&self.loop), BAY_OK);
    http_client_options client = {.limits = http_client_default_limits};
    assert_int_equal(http_client_new(self.loop, &client, &http), BAY_OK);
    upstream_options options = {.loop = self.loop,
                                .http = http,
                                .config = self.config,
                                .server = &self.config->servers[0],
                                .events = &fake_events};
    assert_int_equal(upstream_new(&options, &self.server), BAY_OK);
    call_tool(&self, &call, "echo");
    assert_int_equal(call.kind, MCP_OUTCOME_FAILED);
    assert_false(call.was_sent);
    assert_int_equal(upstream_state_of(self.server), UPSTREAM_BACKOFF);
    assert_string_not_equal(upstream_error(self.server), "");
    upstream_free(self.server);
    http_client_free(http);
    loop_free(self.loop);
    config_free(self.config);
    assert_int_equal(open_descriptors(), self.descriptors);
}

/* What libuv opens once for the process is open before anything is counted. */
static int warm_up(void **state)
{
    (void)state;
    loop *made = NULL;
    bay_err err = loop_new(&made);
    loop_free(made);
    return err;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_is_not_there),
        cmocka_unit_test(a_program_that_ends_at_once_is_tried_again),
        cmocka_unit_test(a_crash_in_a_call_ends_it_and_is_repaired),
        cmocka_unit_test(a_call_to_a_process_that_just_died_runs_once_or_says_so),
        cmocka_unit_test(a_server_that_reads_no_more_is_replaced),
        cmocka_unit_test(all_open_calls_fail_once_when_it_dies),
        cmocka_unit_test(a_call_from_inside_a_failure_goes_to_the_next_process),
        cmocka_unit_test(during_a_short_back_off_calls_wait),
        cmocka_unit_test(it_stops_when_it_idles_and_starts_with_the_next_call),
        cmocka_unit_test(a_long_call_is_not_idling),
        cmocka_unit_test(a_server_that_does_not_answer_times_out),
        cmocka_unit_test(a_cancelled_call_has_no_end),
        cmocka_unit_test(closing_while_it_starts),
        cmocka_unit_test(closing_twice_tells_the_second),
        cmocka_unit_test(freed_in_every_state),
        cmocka_unit_test(nobody_at_the_url),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
