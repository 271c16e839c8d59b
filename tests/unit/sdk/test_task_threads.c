/* Tasks whose handlers run on other threads: they become tasks there, tell, ask and answer there,
 * while their clients leave, cancel and look, the store has no room, or the server ends. */
#include <pthread.h>

#include "net/thread.h"
#include "unit/sdk/task_bench.h"

enum { CROWD = 24, WORDS = 20 };

static struct {
    pthread_mutex_t lock; /* of the gate: `may_go_on` */
    pthread_cond_t gate;
    bool may_go_on;
    atomic_int arrived;
    atomic_int refused; /* became no task */
    bay_call *held[CROWD];
    int held_count;
} desk = {.lock = PTHREAD_MUTEX_INITIALIZER, .gate = PTHREAD_COND_INITIALIZER};

static void open_gate(bool is_open)
{
    pthread_mutex_lock(&desk.lock);
    desk.may_go_on = is_open;
    pthread_cond_broadcast(&desk.gate);
    pthread_mutex_unlock(&desk.lock);
}

static void arrive_and_wait(void)
{
    atomic_fetch_add(&desk.arrived, 1);
    pthread_mutex_lock(&desk.lock);
    while (!desk.may_go_on) {
        pthread_cond_wait(&desk.gate, &desk.lock);
    }
    pthread_mutex_unlock(&desk.lock);
}

static void talk(bay_call *call)
{
    for (int i = 0; i < WORDS; i++) {
        bay_call_task_status(call, i % 2 == 0 ? "even" : "odd");
        bay_call_progress(call, i, WORDS, "on");
        (void)bay_call_time_left_ms(call);
        (void)bay_call_is_cancelled(call);
        (void)bay_call_task(call);
    }
}

static void work(bay_call *call, void *user)
{
    (void)user;
    if (!bay_call_become_task(call)) {
        atomic_fetch_add(&desk.refused, 1);
    }
    talk(call);
    arrive_and_wait();
    talk(call);
    bay_call_replyf(call, "task \"%.*s\"", BAY_STR(bay_call_task(call)));
}

static void work_without_waiting(bay_call *call, void *user)
{
    (void)user;
    (void)bay_call_become_task(call);
    bay_call_reply(call, "at once");
}

static void answered(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_task_status(call, "asked");
    if (bay_answer_action(answer) == BAY_ACTION_ACCEPT) {
        bay_call_reply(call, "agreed");
    } else {
        bay_call_failf(call, "nobody agreed: %s", bay_err_text(bay_answer_error(answer)));
    }
}

static void become_and_ask(bay_call *call, void *user)
{
    (void)user;
    (void)bay_call_become_task(call);
    bay_call_question_key(call, "sure");
    bay_call_elicit_schema(call, "Sure?", form, answered, NULL);
}

static void hand_over(bay_call *call, void *user)
{
    (void)user;
    desk.held[desk.held_count++] = bay_call_defer(call);
}

static void start(rig *self, bay_server *server)
{
    static const struct {
        const char *name;
        bay_handler_fn handler;
        bool is_blocking;
    } tools[] = {{"work", work, true},
                 {"swift", work_without_waiting, true},
                 {"asks", become_and_ask, true},
                 {"held", hand_over, false},
                 {"quick", reply_ok, false}};
    for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
        bay_tool *tool =
            bay_server_tool_schema(server, tools[i].name, "d", none, tools[i].handler, NULL);
        bay_tool_task(tool, strcmp(tools[i].name, "quick") == 0 ? BAY_TASK_MODE_OPTIONAL
                                                                : BAY_TASK_MODE_BY_HANDLER);
        if (tools[i].is_blocking) {
            bay_tool_blocking(tool);
        }
    }
    atomic_store(&desk.arrived, 0);
    open_gate(false);
    atomic_store(&desk.refused, 0);
    desk.held_count = 0;
    rig_start(self, server);
    rig_client_with(self, MODERN, EXTENSION ",\"elicitation\":{}");
}

static void send_calls_with(rig *self, const char *name, int count, const char *meta)
{
    char params[64];
    (void)snprintf(params, sizeof(params), "\"name\":\"%s\"", name);
    for (int i = 0; i < count; i++) {
        rig_send(self, "tools/call", params, meta);
    }
}

static void send_calls(rig *self, const char *name, int count)
{
    send_calls_with(self, name, count, "\"progressToken\":1");
}

static int count_events(const rig *self, const char *part)
{
    int count = 0;
    for (int i = 0; i < self->way.events; i++) {
        count += strstr(self->way.event[i], part) != NULL;
    }
    return count;
}

static void all_are_gone(rig *self)
{
    RIG_UNTIL(self, self->server->calls_under_way == 0 && self->server->tasks->live_count == 0);
}

static void calls_become_tasks_on_the_pool(void **state)
{
    rig self;
    (void)state;
    start(&self, bay_server_new("s", "1"));
    send_calls(&self, "work", CROWD);
    RIG_UNTIL(&self, count_events(&self, "\"resultType\":\"task\"") > 0);
    open_gate(true);
    RIG_UNTIL(&self, count_events(&self, "\"resultType\":\"task\"") == CROWD);
    all_are_gone(&self);
    assert_int_equal(atomic_load(&desk.refused), 0);
    send_calls(&self, "swift", CROWD);
    RIG_UNTIL(&self, count_events(&self, "\"resultType\":\"task\"") == 2 * CROWD);
    all_are_gone(&self);
    rig_stop(&self);
}

static void the_client_leaves_while_calls_become_tasks(void **state)
{
    static const char *const names[] = {"work", "swift", "asks"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        rig self;
        start(&self, bay_server_new("s", "1"));
        send_calls(&self, names[i], CROWD);
        rig_hang_up(&self); /* nobody has heard of any of them */
        open_gate(true);
        all_are_gone(&self);
        rig_stop(&self);
    }
}

static void a_task_is_cancelled_while_its_thread_works(void **state)
{
    char id[40];
    rig self;
    (void)state;
    start(&self, bay_server_new("s", "1"));
    begin_task(&self, "work", id);
    RIG_UNTIL(&self, atomic_load(&desk.arrived) == 1);
    task_request(&self, "tasks/cancel", id, "");
    wait_status(&self, id, "cancelled");
    open_gate(true);
    all_are_gone(&self);
    assert_lacks(wait_status(&self, id, "cancelled"), "even");
    rig_stop(&self);
}

static void a_thread_asks_as_a_task(void **state)
{
    char id[40];
    rig self;
    (void)state;
    start(&self, bay_server_new("s", "1"));
    begin_task(&self, "asks", id);
    wait_status(&self, id, "input_required");
    task_request(&self, "tasks/update", id,
                 "\"inputResponses\":{\"sure\":{\"action\":\"accept\",\"content\":{\"ok\":true}}}");
    assert_has(wait_status(&self, id, "completed"), "agreed");
    begin_task(&self, "asks", id);
    wait_status(&self, id, "input_required");
    task_request(&self, "tasks/cancel", id, "");
    wait_status(&self, id, "cancelled");
    all_are_gone(&self);
    rig_stop(&self);
}

static void the_server_ends_while_threads_work(void **state)
{
    static const char *const names[] = {"work", "swift", "asks"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        rig self;
        start(&self, bay_server_new("s", "1"));
        send_calls(&self, names[i], CROWD);
        loop_turn(self.loop, 0);
        sdk_tasks_stop(self.server);
        open_gate(true);
        rig_stop(&self);
    }
}

/* Deferred, and then its own thread's: it becomes a task there, and asks. */
static void become_elsewhere(void *argument)
{
    bay_call *call = argument;
    arrive_and_wait();
    (void)bay_call_become_task(call);
    talk(call);
    bay_call_elicit_schema(call, "Sure?", form, answered, NULL);
}

static void reply_elsewhere(void *argument)
{
    bay_call *call = argument;
    arrive_and_wait();
    (void)bay_call_become_task(call);
    talk(call);
    bay_call_reply(call, "from elsewhere");
}

static void deferred_calls_become_tasks(void **state)
{
    static void (*const ways[])(void *argument) = {become_elsewhere, reply_elsewhere};
    (void)state;
    for (size_t k = 0; k < 2 * ARRAY_LEN(ways); k++) {
        net_thread threads[CROWD];
        rig self;
        start(&self, bay_server_new("s", "1"));
        send_calls(&self, "held", CROWD);
        for (int i = 0; i < CROWD; i++) {
            assert_int_equal(net_thread_start(&threads[i], ways[k / 2], desk.held[i]), BAY_OK);
        }
        open_gate(true);
        if (k % 2 == 0) {
            RIG_UNTIL(&self, count_events(&self, "\"resultType\":\"task\"") == CROWD);
        } else {
            rig_hang_up(&self);
        }
        for (int i = 0; i < CROWD; i++) {
            net_thread_join(&threads[i]);
        }
        if (k == 0) {
            RIG_UNTIL(&self, self.server->tasks->live_count == CROWD);
            sdk_tasks_stop(self.server); /* nobody will answer */
        }
        all_are_gone(&self);
        rig_stop(&self);
    }
}

static void there_is_no_room_for_what_becomes_a_task(void **state)
{
    rig self;
    (void)state;
    bay_server *server = bay_server_new("s", "1");
    bay_server_set(server, BAY_SERVER_SETTING_MAX_TASKS, 1);
    start(&self, server);
    for (int i = 0; i < 200; i++) { /* what has ended fills the store */
        (void)get_tool(&self, "quick");
        RIG_UNTIL(&self, self.server->tasks->live_count == 0);
    }
    assert_has(last_event(&self.way), "-32603");
    int before = self.way.events;
    send_calls_with(&self, "work", CROWD, "");
    RIG_UNTIL(&self, atomic_load(&desk.arrived) > 0);
    open_gate(true);
    RIG_UNTIL(&self, count_events(&self, "task \\\"") == CROWD); /* as plain calls */
    assert_true(self.way.events > before);
    send_calls(&self, "asks", 1);
    RIG_UNTIL(&self, self.server->calls_under_way == 0);
    rig_stop(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_become_tasks_on_the_pool),
        cmocka_unit_test(the_client_leaves_while_calls_become_tasks),
        cmocka_unit_test(a_task_is_cancelled_while_its_thread_works),
        cmocka_unit_test(a_thread_asks_as_a_task),
        cmocka_unit_test(the_server_ends_while_threads_work),
        cmocka_unit_test(deferred_calls_become_tasks),
        cmocka_unit_test(there_is_no_room_for_what_becomes_a_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
