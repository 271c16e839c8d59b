/* Tasks in trouble: other processes that take them over, end them or leave inbox; leases that ran
 * out; a store that is full; results that are too large; time that is up; the end of the process.
 * Two processes are two servers with one file. */
#include "base/err.h"
#include "support/failing_memory.h"
#include "unit/sdk/task_bench.h"

static const char task_id[] = "0123456789abcdef0123456789abcdef";

static bay_call *kept; /* by a handler that has deferred */
static int runs;

static void keep(bay_call *call, void *user)
{
    (void)user;
    runs++;
    kept = bay_call_defer(call);
}

static void count_runs(bay_call *call, void *user)
{
    (void)user;
    runs++;
    bay_call_reply(call, "once");
}

static bay_err answer_err;

static void answered(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    answer_err = bay_answer_error(answer);
    if (bay_answer_action(answer) == BAY_ACTION_ACCEPT) {
        bay_call_replyf(call, "ok: %.*s", BAY_STR(bay_answer_str(answer, "ok")));
    } else {
        bay_call_fail(call, "nobody agreed");
    }
}

static void ask(bay_call *call, void *user)
{
    (void)user;
    runs++;
    bay_call_question_key(call, "sure");
    bay_call_elicit_schema(call, "Sure?", form, answered, NULL);
}

/* Asks when the test says so. */
static void become(bay_call *call, void *user)
{
    (void)user;
    kept = bay_call_defer(call);
    assert_true(bay_call_become_task(call));
}

static void say_much(bay_call *call, void *user)
{
    buf text;
    const size_t *bytes = user;
    buf_init(&text, SIZE_MAX);
    while (text.len < *bytes) {
        buf_lit(&text, "0123456789abcdef");
    }
    bay_call_reply_str(call, buf_view(&text));
    buf_fini(&text);
}

static void say_many(bay_call *call, void *user)
{
    buf text;
    (void)user;
    buf_init(&text, SIZE_MAX);
    buf_lit(&text, "{\"a\":[0");
    for (int i = 0; i < (1 << 20) - 10; i++) {
        buf_lit(&text, ",0");
    }
    buf_append(&text, "]}", 3);
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "many");
    bay_result_structured(result, text.at);
    bay_call_finish(call, result);
    buf_fini(&text);
}

static size_t much = 17 << 20;
static size_t enough = 15 << 20;

static bay_tool *add(bay_server *server, const char *name, bay_handler_fn handler, void *user)
{
    bay_tool *tool = bay_server_tool_schema(server, name, "d", none, handler, user);
    bay_tool_task(tool, BAY_TASK_MODE_OPTIONAL);
    return tool;
}

static bay_server *new_server(void)
{
    bay_server *server = bay_server_new("tasks", "1");
    kept = NULL;
    runs = 0;
    add(server, "quick", reply_ok, NULL);
    add(server, "slow", keep, NULL);
    bay_tool_resumable(add(server, "again", keep, NULL));
    bay_tool_resumable(add(server, "once", count_runs, NULL));
    bay_tool_resumable(add(server, "asks", ask, NULL));
    add(server, "much", say_much, &much);
    add(server, "enough", say_much, &enough);
    add(server, "many", say_many, NULL);
    bay_tool_task(bay_server_tool_schema(server, "later", "d", none, become, NULL),
                  BAY_TASK_MODE_BY_HANDLER);
    bay_tool *strict = bay_server_tool_schema(
        server, "strict", "d", "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}",
        keep, NULL);
    bay_tool_task(strict, BAY_TASK_MODE_OPTIONAL);
    bay_tool_resumable(strict);
    return server;
}

static void start(rig *self, bay_server *server)
{
    rig_start(self, server);
    rig_client_with(self, MODERN, EXTENSION ",\"elicitation\":{}");
}

static void start_on_disk(rig *self)
{
    bay_server *server = new_server();
    bay_server_store(server, path);
    start(self, server);
}

static void tick(rig *self)
{
    loop_timer *timer = &self->server->tasks->tick;
    timer->function(timer->argument);
}

/* ---- orphans */

static void mail_to_a_dead_process_is_read_by_the_next(void **state)
{
    rig self;
    (void)state;
    task_record record = record_of(task_id, "asks");
    record.status = TASK_INPUT_REQUIRED;
    record.capabilities = STR("{\"elicitation\":{}}");
    record.requests = STR("\"sure\":{\"method\":\"elicitation/create\",\"params\":{}}");
    record.inbox = STR("\"answers\":{\"sure\":{\"action\":\"accept\",\"content\":{\"ok\":true}},"
                       "\"other\":{\"action\":\"accept\"}}");
    leave_record(&record, "");
    start_on_disk(&self);
    assert_has(wait_status(&self, task_id, "completed"), "\"text\":\"ok: true\"");
    rig_stop(&self);
}

static void a_wrong_answer_in_the_mail_is_asked_for_again(void **state)
{
    rig self;
    (void)state;
    task_record record = record_of(task_id, "asks");
    record.capabilities = STR("{\"elicitation\":{}}");
    record.requests = STR("\"sure\":{\"method\":\"elicitation/create\",\"params\":{}}");
    record.inbox = STR("\"answers\":{\"sure\":{\"action\":\"accept\",\"content\":{\"ok\":5}}}");
    leave_record(&record, "");
    start_on_disk(&self);
    wait_status(&self, task_id, "input_required");
    task_request(
        &self, "tasks/update", task_id,
        "\"inputResponses\":{\"sure\":{\"action\":\"accept\",\"content\":{\"ok\":false}}}");
    assert_has(wait_status(&self, task_id, "completed"), "\"text\":\"ok: false\"");
    rig_stop(&self);
}

static void a_cancel_sent_to_a_dead_process_counts(void **state)
{
    rig self;
    (void)state;
    task_record record = record_of(task_id, "again");
    record.inbox = STR("\"cancel\":true,\"answers\":{}");
    leave_record(&record, "");
    start_on_disk(&self);
    wait_status(&self, task_id, "cancelled");
    assert_int_equal(runs, 0);
    rig_stop(&self);
}

static void arguments_that_fit_no_longer_do_not_reach_a_handler(void **state)
{
    rig self;
    (void)state;
    leave_row(task_id, "strict", "", "");
    start_on_disk(&self);
    assert_has(wait_status(&self, task_id, "failed"), "\"code\":-32602");
    assert_int_equal(runs, 0);
    rig_stop(&self);
}

static void an_orphan_that_many_look_for_runs_once(void **state)
{
    char params[128];
    rig self;
    (void)state;
    leave_row(task_id, "once", "", "");
    start_on_disk(&self);
    (void)snprintf(params, sizeof(params), "\"taskId\":\"%s\"", task_id);
    for (int i = 0; i < 20; i++) {
        rig_send(&self, "tasks/get", params, "");
    }
    wait_for(&self);
    wait_status(&self, task_id, "completed");
    for (int i = 0; i < 5; i++) {
        loop_turn(self.loop, 10);
    }
    assert_int_equal(runs, 1);
    assert_int_equal(self.server->tasks->live_count, 0);
    rig_stop(&self);
}

/* ---- who has it */

typedef struct wanted {
    bay_err err;
    int left;
} wanted;

static void store_done_as(void *user, const store_result *result)
{
    wanted *self = user;
    assert_int_equal(result->err, self->err);
    self->left--;
}

/* Another process took the lease. */
static void steal(rig *self, const char *id)
{
    wanted done = {BAY_OK, 2};
    tasks *of = self->server->tasks;
    bay_str owner = {of->owner, TASK_ID_BYTES};
    bay_str table = STR("task owners");
    assert_int_equal(store_release(of->store, table, str_of(id), owner, store_done_as, &done),
                     BAY_OK);
    assert_int_equal(
        store_claim(of->store, table, str_of(id), STR("thief"), 60000, store_done_as, &done),
        BAY_OK);
    RIG_UNTIL(self, done.left == 0);
}

/* … or wrote the row. */
static void overwrite(rig *self, const char *id, task_status status, bay_str outcome)
{
    wanted done = {BAY_OK, 1};
    buf row;
    task_record record = record_of(id, "slow");
    record.status = status;
    record.outcome = outcome;
    buf_init(&row, 65536);
    sdk_task_write_row(&record, NULL, &row);
    store_put_request put = {.table = STR("tasks"),
                             .key = record.id,
                             .value = buf_view(&row),
                             .expires_at_ms = record.created_ms + record.ttl_ms,
                             .expected = STORE_ANY};
    assert_int_equal(store_put(self->server->tasks->store, &put, store_done_as, &done), BAY_OK);
    RIG_UNTIL(self, done.left == 0);
    buf_fini(&row);
}

static void who_lost_its_task_lets_go_of_it(void **state)
{
    char id[40];
    rig self;
    (void)state;
    start_on_disk(&self);
    begin_task(&self, "slow", id);
    steal(&self, id);
    tick(&self);
    RIG_UNTIL(&self, bay_call_is_cancelled(kept));
    assert_has(task_request(&self, "tasks/cancel", id, ""), "\"resultType\":\"complete\"");
    bay_call_reply(kept, "not mine");
    RIG_UNTIL(&self, self.server->tasks->live_count == 0);
    for (int i = 0; i < 3; i++) {
        wait_status(&self, id, "working"); /* the thief has the last word */
    }
    rig_stop(&self);
}

static void a_lease_that_ran_out_is_taken_again(void **state)
{
    char id[40];
    wanted done = {BAY_OK, 1};
    rig self;
    (void)state;
    start_on_disk(&self);
    begin_task(&self, "slow", id);
    tasks *of = self.server->tasks;
    bay_str owner = {of->owner, TASK_ID_BYTES};
    assert_int_equal(
        store_release(of->store, STR("task owners"), str_of(id), owner, store_done_as, &done),
        BAY_OK);
    RIG_UNTIL(&self, done.left == 0);
    tick(&self);
    done = (wanted){BAY_ERR_BUSY, 1};
    assert_int_equal(store_claim(of->store, STR("task owners"), str_of(id), STR("thief"), 1000,
                                 store_done_as, &done),
                     BAY_OK);
    RIG_UNTIL(&self, done.left == 0);
    assert_false(bay_call_is_cancelled(kept));
    bay_call_reply(kept, "still mine");
    assert_has(wait_status(&self, id, "completed"), "still mine");
    rig_stop(&self);
}

static void an_end_is_not_overwritten(void **state)
{
    static const bool by_tick[] = {false, true};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(by_tick); i++) {
        char id[40];
        rig self;
        start_on_disk(&self);
        begin_task(&self, "slow", id);
        overwrite(&self, id, TASK_FAILED, STR("{\"code\":-32603,\"message\":\"given up\"}"));
        if (by_tick[i]) {
            tick(&self);
            RIG_UNTIL(&self, bay_call_is_cancelled(kept));
        }
        bay_call_reply(kept, "late");
        RIG_UNTIL(&self, self.server->tasks->live_count == 0);
        assert_has(wait_status(&self, id, "failed"), "given up");
        rig_stop(&self);
    }
}

static void the_row_of_a_task_that_can_go_on_waits_for_its_handler(void **state)
{
    char id[40];
    rig first;
    rig second;
    (void)state;
    start_on_disk(&first);
    begin_task(&first, "again", id);
    bay_call *old = kept;
    sdk_tasks_stop(first.server);
    assert_true(bay_call_is_cancelled(old));
    assert_has(task_request(&first, "tasks/get", id, ""), "-32603");
    start_on_disk(&second);
    for (int i = 0; i < 10; i++) {
        wait_status(&second, id, "working");
    }
    assert_null(kept); /* two at once would be one too many */
    bay_call_reply(old, "dropped");
    rig_stop(&first);
    wait_status(&second, id, "working");
    RIG_UNTIL(&second, kept != NULL);
    bay_call_reply(kept, "done");
    assert_has(wait_status(&second, id, "completed"), "\"text\":\"done\"");
    rig_stop(&second);
}

static void two_processes_share_their_tasks(void **state)
{
    char id[40];
    rig first;
    rig second;
    (void)state;
    start_on_disk(&first);
    start_on_disk(&second);
    begin_task(&first, "asks", id);
    wait_status(&second, id, "input_required");
    assert_int_equal(runs, 1);
    task_request(&second, "tasks/update", id,
                 "\"inputResponses\":{\"sure\":{\"action\":\"accept\",\"content\":{\"ok\":true}}}");
    tick(&first);
    RIG_UNTIL(&first, first.server->tasks->live_count == 0);
    assert_has(wait_status(&second, id, "completed"), "ok: true");
    begin_task(&first, "slow", id);
    task_request(&second, "tasks/cancel", id, "");
    tick(&first);
    RIG_UNTIL(&first, bay_call_is_cancelled(kept));
    wait_status(&second, id, "cancelled");
    bay_call_reply(kept, "too late");
    rig_stop(&second);
    rig_stop(&first);
}

/* ---- a store with no room */

/* Rows and leases of a server with one task at a time: what has ended fills them. */
static void fill(rig *self)
{
    bay_server *server = new_server();
    bay_server_set(server, BAY_SERVER_SETTING_MAX_TASKS, 1);
    start(self, server);
    for (int i = 0; i < 1000; i++) {
        if (strstr(get_tool(self, "quick"), "taskId") == NULL) {
            break;
        }
        loop_turn(self->loop, 0);
    }
    assert_has(last_event(&self->way), "-32603");
    assert_has(last_event(&self->way), "cannot be stored");
    RIG_UNTIL(self, self->server->tasks->live_count == 0);
}

static void a_call_that_cannot_be_stored_goes_on_as_it_was(void **state)
{
    rig self;
    (void)state;
    fill(&self);
    rig_send(&self, "tools/call", "\"name\":\"later\"", "");
    RIG_UNTIL(&self, self.server->tasks->live_count == 0);
    bay_call_reply(kept, "plainly");
    assert_has(wait_for(&self), "\"text\":\"plainly\"");
    rig_send(&self, "tools/call", "\"name\":\"later\"", "");
    RIG_UNTIL(&self, self.server->tasks->live_count == 0);
    bay_result *result = bay_result_new(kept);
    bay_result_text(result, "with more");
    bay_result_meta(result, "{\"mine\":1}");
    bay_call_finish(kept, result);
    const char *meta = strstr(wait_for(&self), "\"_meta\":{");
    assert_non_null(meta);
    assert_has(meta, "\"mine\":1");
    assert_null(strstr(meta + 1, "\"_meta\"")); /* not twice */
    /* It ends before the store has said no. */
    rig_send(&self, "tools/call", "\"name\":\"later\"", "");
    bay_call_reply(kept, "ended first");
    assert_has(wait_for(&self), "\"text\":\"ended first\"");
    rig_send(&self, "tools/call", "\"name\":\"later\"", "");
    bay_call_error(kept, -32000, "failed first");
    assert_has(wait_for(&self), "\"error\":{\"code\":-32000,\"message\":\"failed first\"");
    /* Asked of a task that then was none. */
    rig_send(&self, "tools/call", "\"name\":\"later\"", "");
    answer_err = BAY_OK;
    bay_call_elicit_schema(kept, "Sure?", form, answered, NULL);
    assert_has(wait_for(&self), "nobody agreed");
    assert_int_equal(answer_err, BAY_ERR_IO);
    rig_stop(&self);
}

static void what_is_too_large_has_failed(void **state)
{
    char id[40];
    rig self;
    (void)state;
    start(&self, new_server());
    begin_task(&self, "much", id);
    assert_has(wait_status(&self, id, "failed"), "larger than a task may be");
    begin_task(&self, "enough", id);
    assert_has(wait_status(&self, id, "completed"), "0123456789abcdef");
    begin_task(&self, "many", id);
    assert_has(wait_status(&self, id, "completed"), "\"text\":\"many\"");
    rig_stop(&self);
}

static void answers_without_end_are_refused(void **state)
{
    char id[40];
    buf text;
    rig self;
    (void)state;
    start(&self, new_server());
    begin_task(&self, "asks", id);
    buf_init(&text, 1 << 20);
    buf_lit(&text, "\"inputResponses\":{\"a\":1");
    for (int i = 0; i < TASK_MAX_ANSWERS; i++) {
        buf_printf(&text, ",\"%d\":1", i);
    }
    buf_printf(&text, "},\"taskId\":\"%s\"", id);
    buf_char(&text, '\0');
    assert_has(get_answer(&self, "tasks/update", text.at), "-32602");
    buf_fini(&text);
    wait_status(&self, id, "input_required");
    rig_stop(&self);
}

static void a_status_may_be_any_bytes(void **state)
{
    char id[40];
    char large[5000];
    rig self;
    (void)state;
    start(&self, new_server());
    begin_task(&self, "slow", id);
    bay_call_task_status(kept, "\xff\xfe \"\\\x01");
    assert_has(wait_status(&self, id, "working"),
               "\"statusMessage\":\"\xef\xbf\xbd\xef\xbf\xbd \\\"\\\\\\u0001\"");
    memset(large, 'x', sizeof(large));
    for (size_t i = 1; i + 1 < sizeof(large); i += 2) {
        memcpy(large + i, "\xc3\xa4", 2); /* no boundary at an even place */
    }
    large[sizeof(large) - 1] = '\0';
    bay_call_task_status(kept, large);
    const char *shown = wait_status(&self, id, "working");
    assert_has(shown, "\"statusMessage\":\"x\xc3\xa4");
    assert_lacks(shown, "\xef\xbf\xbd");
    bay_call_task_status(kept, NULL);
    bay_call_task_status(kept, "");
    assert_lacks(wait_status(&self, id, "working"), "statusMessage");
    bay_call_reply(kept, "done");
    rig_stop(&self);
}

/* ---- time */

static void what_outlives_its_time_is_let_go(void **state)
{
    char id[40];
    rig self;
    (void)state;
    bay_server *server = new_server();
    bay_server_set(server, BAY_SERVER_SETTING_TASK_TTL_MS, 50);
    bay_tool *patient = add(server, "patient", keep, NULL);
    bay_tool_timeout(patient, 3600000);
    start(&self, server);
    begin_task(&self, "patient", id);
    for (int i = 0; i < 1000; i++) {
        if (strstr(task_request(&self, "tasks/get", id, ""), "-32602") != NULL) {
            break;
        }
        loop_turn(self.loop, 5);
    }
    assert_has(last_event(&self.way), "Unknown task");
    bay_call_reply(kept, "too late");
    RIG_UNTIL(&self, self.server->tasks->live_count == 0);
    rig_stop(&self);
}

static void a_call_that_becomes_a_task_has_the_time_of_one(void **state)
{
    rig self;
    (void)state;
    bay_server *server = new_server();
    bay_server_set(server, BAY_SERVER_SETTING_CALL_TIMEOUT_MS, 1000);
    bay_tool *slowly = bay_server_tool_schema(server, "slowly", "d", none, keep, NULL);
    bay_tool_task(slowly, BAY_TASK_MODE_BY_HANDLER);
    start(&self, server);
    rig_send(&self, "tools/call", "\"name\":\"slowly\"", "");
    uint64_t begun = kept->started_ms;
    assert_int_equal(kept->timer.due_ms, begun + 1000);
    assert_true(bay_call_time_left_ms(kept) <= 1000);
    assert_true(bay_call_become_task(kept));
    assert_int_equal(kept->timer.due_ms, begun + 3600000);
    assert_true(bay_call_time_left_ms(kept) > 1000);
    assert_has(wait_for(&self), "taskId");
    bay_call_reply(kept, "done");
    rig_stop(&self);
}

/* ---- no memory */

static void ignore(void *user, const store_result *result)
{
    (void)user;
    (void)result;
}

static void leave_orphan(rig *self, const task_record *record)
{
    buf row;
    buf_init(&row, 65536);
    sdk_task_write_row(record, NULL, &row);
    store_put_request put = {.table = STR("tasks"),
                             .key = record->id,
                             .value = buf_view(&row),
                             .expires_at_ms = record->created_ms + record->ttl_ms,
                             .expected = STORE_ANY};
    if (row.err == BAY_OK) {
        err_ignore(store_put(self->server->tasks->store, &put, ignore, NULL));
    }
    buf_fini(&row);
}

static void turn(rig *self)
{
    for (int i = 0; i < 12; i++) {
        loop_turn(self->loop, 0);
    }
}

/* A store in memory that is treated like one of many processes. */
static void take_over(rig *self)
{
    task_record asking = record_of(task_id, "asks");
    asking.capabilities = STR("{\"elicitation\":{}}");
    asking.requests = STR("\"sure\":{\"method\":\"elicitation/create\",\"params\":{}}");
    asking.inbox = STR("\"answers\":{\"sure\":{\"action\":\"accept\",\"content\":{\"ok\":5}}}");
    task_record answering = record_of("0123456789abcdef0123456789abcde0", "once");
    task_record failing = record_of("0123456789abcdef0123456789abcde1", "slow");
    task_record cancelled = record_of("0123456789abcdef0123456789abcde2", "once");
    cancelled.inbox = STR("\"cancel\":true");
    self->server->tasks->is_shared = true;
    leave_orphan(self, &asking);
    leave_orphan(self, &answering);
    leave_orphan(self, &failing);
    leave_orphan(self, &cancelled);
    sdk_tasks_scan(self->server->tasks);
    turn(self);
    asking.status = TASK_INPUT_REQUIRED;
    asking.inbox = STR("\"answers\":{\"sure\":{\"action\":\"decline\"}}");
    leave_orphan(self, &asking); /* a letter now */
    tick(self);
    turn(self);
}

static void lack_of_memory_is_survived_by_orphans(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        rig self;
        bay_diag diag;
        bay_server *server = new_server();
        if (server == NULL || bay_server_check(server, &diag) != BAY_OK) {
            bay_server_free(server);
        } else if (rig_try_start(&self, server)) {
            take_over(&self);
            rig_stop(&self);
        }
        failing_memory_check();
    }
}

#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, set_path, remove_path)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(mail_to_a_dead_process_is_read_by_the_next),
        ON_DISK(a_wrong_answer_in_the_mail_is_asked_for_again),
        ON_DISK(a_cancel_sent_to_a_dead_process_counts),
        ON_DISK(arguments_that_fit_no_longer_do_not_reach_a_handler),
        ON_DISK(an_orphan_that_many_look_for_runs_once),
        ON_DISK(who_lost_its_task_lets_go_of_it),
        ON_DISK(a_lease_that_ran_out_is_taken_again),
        ON_DISK(an_end_is_not_overwritten),
        ON_DISK(the_row_of_a_task_that_can_go_on_waits_for_its_handler),
        ON_DISK(two_processes_share_their_tasks),
        cmocka_unit_test(a_call_that_cannot_be_stored_goes_on_as_it_was),
        cmocka_unit_test(what_is_too_large_has_failed),
        cmocka_unit_test(answers_without_end_are_refused),
        cmocka_unit_test(a_status_may_be_any_bytes),
        cmocka_unit_test(what_outlives_its_time_is_let_go),
        cmocka_unit_test(a_call_that_becomes_a_task_has_the_time_of_one),
        cmocka_unit_test(lack_of_memory_is_survived_by_orphans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
