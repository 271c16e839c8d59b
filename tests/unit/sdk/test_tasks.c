/* Tasks as their clients see them: begun, looked at, asked, cancelled, found again after the end of
 * the process, refused to strangers. */
#include <stdio.h>

#include "sdk/task_parts.h"
#include "support/failing_memory.h"
#include "unit/sdk/task_bench.h"

static bay_call *kept; /* by a handler that has deferred */

static void keep(bay_call *call, void *user)
{
    (void)user;
    kept = bay_call_defer(call);
}

static void break_down(bay_call *call, void *user)
{
    (void)user;
    bay_call_error_json(call, -32000, "broken", bay_json_of("{\"part\":7}"));
}

static void fail_softly(bay_call *call, void *user)
{
    (void)user;
    bay_call_fail(call, "no");
}

static int unanswered; /* questions that were cancelled */

static void answered(bay_call *call, const bay_answer *answer, void *user)
{
    int *left = user;
    if (bay_answer_action(answer) != BAY_ACTION_ACCEPT) {
        unanswered += bay_answer_error(answer) == BAY_ERR_CANCELLED;
        bay_call_fail(call, "nobody agreed");
    } else if (--*left == 0) {
        bay_call_replyf(call, "ok: %.*s", BAY_STR(bay_answer_str(answer, "ok")));
    }
}

static int questions_left;

static void ask_two(bay_call *call, void *user)
{
    (void)user;
    questions_left = 2;
    bay_call_question_key(call, "first");
    bay_call_elicit_schema(call, "One?", form, answered, &questions_left);
    bay_call_question_key(call, "second");
    bay_call_elicit_schema(call, "Two?", form, answered, &questions_left);
}

static void go_on(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    (void)answer;
    if (bay_call_become_task(call)) {
        assert_int_equal(bay_call_task(call).len, TASK_ID_BYTES);
        bay_call_reply(call, "as a task");
    } else {
        bay_call_reply(call, "plainly");
    }
}

static void ask_then_become(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "sure");
    bay_call_elicit_schema(call, "Sure?", form, go_on, NULL);
}

static bay_server *new_server(void)
{
    bay_server *server = bay_server_new("tasks", "1");
    bay_tool_task(bay_server_tool_schema(server, "quick", "d", none, reply_ok, NULL),
                  BAY_TASK_MODE_OPTIONAL);
    bay_tool_task(bay_server_tool_schema(server, "slow", "d", none, keep, NULL),
                  BAY_TASK_MODE_REQUIRED);
    bay_tool_task(bay_server_tool_schema(server, "broken", "d", none, break_down, NULL),
                  BAY_TASK_MODE_OPTIONAL);
    bay_tool_task(bay_server_tool_schema(server, "soft", "d", none, fail_softly, NULL),
                  BAY_TASK_MODE_OPTIONAL);
    bay_tool_task(bay_server_tool_schema(server, "asks", "d", none, ask_two, NULL),
                  BAY_TASK_MODE_OPTIONAL);
    bay_tool_task(bay_server_tool_schema(server, "later", "d", none, ask_then_become, NULL),
                  BAY_TASK_MODE_BY_HANDLER);
    bay_tool *again = bay_server_tool_schema(server, "again", "d", none, keep, NULL);
    bay_tool_task(again, BAY_TASK_MODE_OPTIONAL);
    bay_tool_resumable(again);
    bay_server_tool_schema(server, "plain", "d", none, reply_ok, NULL);
    return server;
}

static void clients_without_the_extension_get_no_task(void **state)
{
    rig self;
    (void)state;
    rig_start(&self, new_server());
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig_client_with(&self, all_revisions[i], "");
        assert_has(get_tool(&self, "quick"), "\"text\":\"ok\"");
        assert_lacks(last_event(&self.way), "taskId");
    }
    const char *text = get_tool(&self, "slow");
    assert_has(text, "-32021");
    assert_has(text, "\"requiredCapabilities\":{\"extensions\":{\"io.modelcontextprotocol/tasks\":"
                     "{}}}");
    assert_has(task_request(&self, "tasks/get", "00000000000000000000000000000000", ""), "-32021");
    rig_client_with(&self, "2025-11-25", EXTENSION);
    assert_has(get_tool(&self, "slow"), "\"isError\":true");
    assert_has(task_request(&self, "tasks/get", "00000000000000000000000000000000", ""), "-32601");
    rig_stop(&self);
}

static void a_server_without_such_tools_has_no_tasks(void **state)
{
    rig self;
    (void)state;
    bay_server *server = bay_server_new("plain", "1");
    bay_server_tool_schema(server, "plain", "d", none, reply_ok, NULL);
    rig_start(&self, server);
    rig_client_with(&self, MODERN, EXTENSION);
    assert_has(task_request(&self, "tasks/get", "00000000000000000000000000000000", ""), "-32601");
    assert_lacks(get_answer(&self, "server/discover", ""), "extensions");
    rig_stop(&self);
}

static void what_is_no_task_is_unknown(void **state)
{
    static const char *const ids[] = {"", "x", "00000000000000000000000000000000",
                                      "../../../../etc/passwd",
                                      "000000000000000000000000000000000000000000000000000000"};
    static const char *const methods[] = {"tasks/get", "tasks/cancel"};
    rig self;
    (void)state;
    rig_start(&self, new_server());
    rig_client_with(&self, MODERN, EXTENSION);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        for (size_t k = 0; k < ARRAY_LEN(methods); k++) {
            assert_has(task_request(&self, methods[k], ids[i], ""), "-32602");
        }
        assert_has(task_request(&self, "tasks/update", ids[i], "\"inputResponses\":{}"), "-32602");
    }
    assert_has(get_answer(&self, "tasks/get", ""), "-32602");
    assert_has(get_answer(&self, "tasks/get", "\"taskId\":7"), "-32602");
    char id[40];
    begin_task(&self, "quick", id);
    assert_has(task_request(&self, "tasks/update", id, ""), "-32602");
    assert_has(task_request(&self, "tasks/update", id, "\"inputResponses\":[]"), "-32602");
    assert_has(task_request(&self, "tasks/result", id, ""), "-32601");
    assert_has(task_request(&self, "tasks/list", id, ""), "-32601");
    rig_stop(&self);
}

static void a_task_ends_with_its_result(void **state)
{
    char id[40];
    rig self;
    (void)state;
    rig_start(&self, new_server());
    rig_client_with(&self, MODERN, EXTENSION);
    assert_has(get_answer(&self, "server/discover", ""),
               "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}");
    begin_task(&self, "quick", id);
    const char *text = last_event(&self.way);
    assert_has(text, "\"status\":\"working\"");
    assert_has(text, "\"ttlMs\":3600000");
    assert_has(text, "\"pollIntervalMs\":1000");
    assert_has(text, "\"createdAt\":\"20");
    assert_lacks(text, "\"result\":{\"resultType\":\"complete\"");
    assert_lacks(text, "requestState");
    text = wait_status(&self, id, "completed");
    assert_has(text, "\"resultType\":\"complete\"");
    assert_has(text, "\"text\":\"ok\"");
    begin_task(&self, "soft", id);
    text = wait_status(&self, id, "completed");
    assert_has(text, "\"isError\":true");
    begin_task(&self, "broken", id);
    text = wait_status(&self, id, "failed");
    assert_has(text, "\"error\":{\"code\":-32000,\"message\":\"broken\",\"data\":{\"part\":7}}");
    assert_lacks(text, "\"result\":{\"content\"");
    assert_has(get_tool(&self, "plain"), "\"text\":\"ok\"");
    rig_stop(&self);
}

static void a_task_is_cancelled_once_and_for_all(void **state)
{
    char id[40];
    rig self;
    (void)state;
    rig_start(&self, new_server());
    rig_client_with(&self, MODERN, EXTENSION);
    begin_task(&self, "slow", id);
    assert_false(bay_call_is_cancelled(kept));
    bay_call_task_status(kept, "half way");
    assert_has(wait_status(&self, id, "working"), "\"statusMessage\":\"half way\"");
    assert_has(task_request(&self, "tasks/cancel", id, ""), "\"resultType\":\"complete\"");
    assert_true(bay_call_is_cancelled(kept));
    wait_status(&self, id, "cancelled");
    assert_has(task_request(&self, "tasks/cancel", id, ""), "\"resultType\":\"complete\"");
    bay_call_reply(kept, "too late");
    assert_lacks(wait_status(&self, id, "cancelled"), "too late");
    rig_stop(&self);
}

static void what_a_cancelled_task_asked_is_answered_by_nobody(void **state)
{
    char id[40];
    rig self;
    (void)state;
    rig_start(&self, new_server());
    rig_client_with(&self, MODERN, EXTENSION ",\"elicitation\":{}");
    begin_task(&self, "asks", id);
    wait_status(&self, id, "input_required");
    unanswered = 0;
    task_request(&self, "tasks/cancel", id, "");
    assert_lacks(wait_status(&self, id, "cancelled"), "inputRequests");
    assert_int_equal(unanswered, 1); /* with the first the handler ended its call */
    task_request(&self, "tasks/update", id,
                 "\"inputResponses\":{\"first\":{\"action\":\"decline\"}}");
    assert_has(last_event(&self.way), "\"resultType\":\"complete\"");
    assert_int_equal(self.server->calls_under_way, 0);
    rig_stop(&self);
}

static void a_client_that_leaves_does_not_end_its_task(void **state)
{
    char id[40];
    rig self;
    (void)state;
    rig_start(&self, new_server());
    rig_client_with(&self, MODERN, EXTENSION);
    begin_task(&self, "slow", id);
    rig_client_with(&self, MODERN, EXTENSION); /* another connection */
    assert_false(bay_call_is_cancelled(kept));
    bay_call_reply(kept, "done");
    assert_has(wait_status(&self, id, "completed"), "\"text\":\"done\"");
    rig_stop(&self);
}

static void a_task_asks_and_is_answered_in_parts(void **state)
{
    char id[40];
    rig self;
    (void)state;
    rig_start(&self, new_server());
    rig_client_with(&self, MODERN, EXTENSION ",\"elicitation\":{}");
    begin_task(&self, "asks", id);
    const char *text = wait_status(&self, id, "input_required");
    assert_has(text, "\"first\":{\"method\":\"elicitation/create\"");
    assert_has(text, "\"second\":{\"method\":\"elicitation/create\"");
    static const char *const wrong[] = {
        "\"inputResponses\":{\"third\":{\"action\":\"accept\",\"content\":{\"ok\":true}}}",
        "\"inputResponses\":{\"first\":12345}",
        "\"inputResponses\":{\"first\":{\"action\":\"maybe\"}}",
        "\"inputResponses\":{}",
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_has(task_request(&self, "tasks/update", id, wrong[i]),
                   "\"resultType\":\"complete\"");
        assert_has(wait_status(&self, id, "input_required"), "\"first\"");
    }
    task_request(
        &self, "tasks/update", id,
        "\"inputResponses\":{\"first\":{\"action\":\"accept\",\"content\":{\"ok\":true}}}");
    for (int i = 0; i < 100; i++) {
        text = wait_status(&self, id, "input_required");
        if (strstr(text, "\"first\"") == NULL) {
            break;
        }
    }
    assert_lacks(text, "\"first\"");
    assert_has(text, "\"second\"");
    task_request(
        &self, "tasks/update", id,
        "\"inputResponses\":{\"second\":{\"action\":\"accept\",\"content\":{\"ok\":false}}}");
    assert_has(wait_status(&self, id, "completed"), "\"text\":\"ok: false\"");
    rig_stop(&self);
}

static void a_call_becomes_a_task_after_its_rounds(void **state)
{
    rig self;
    (void)state;
    rig_start(&self, new_server());
    rig_client_with(&self, MODERN, EXTENSION ",\"elicitation\":{}");
    const char *text = get_tool(&self, "later");
    assert_has(text, "\"resultType\":\"input_required\"");
    assert_lacks(text, "taskId");
    const char *at = strstr(text, "\"requestState\":\"");
    assert_non_null(at);
    char params[4096];
    at += strlen("\"requestState\":\"");
    (void)snprintf(params, sizeof(params),
                   "\"name\":\"later\",\"requestState\":\"%.*s\",\"inputResponses\":{\"sure\":{"
                   "\"action\":\"accept\",\"content\":{\"ok\":true}}}",
                   (int)strcspn(at, "\""), at);
    text = get_answer(&self, "tools/call", params);
    assert_has(text, "\"resultType\":\"task\"");
    assert_lacks(text, "requestState");
    char id[40];
    at = strstr(text, "\"taskId\":\"");
    assert_non_null(at);
    memcpy(id, at + 10, TASK_ID_BYTES);
    id[TASK_ID_BYTES] = '\0';
    assert_has(wait_status(&self, id, "completed"), "\"text\":\"as a task\"");
    rig_client_with(&self, MODERN, "\"elicitation\":{}");
    text = get_tool(&self, "later");
    at = strstr(text, "\"requestState\":\"") + strlen("\"requestState\":\"");
    (void)snprintf(params, sizeof(params),
                   "\"name\":\"later\",\"requestState\":\"%.*s\",\"inputResponses\":{\"sure\":{"
                   "\"action\":\"accept\",\"content\":{\"ok\":true}}}",
                   (int)strcspn(at, "\""), at);
    assert_has(get_answer(&self, "tools/call", params), "\"text\":\"plainly\"");
    rig_stop(&self);
}

static void there_are_only_so_many_tasks(void **state)
{
    char id[40];
    rig self;
    (void)state;
    bay_server *server = new_server();
    bay_server_set(server, BAY_SERVER_SETTING_MAX_TASKS, 1);
    rig_start(&self, server);
    rig_client_with(&self, MODERN, EXTENSION);
    begin_task(&self, "slow", id);
    bay_call *first = kept;
    assert_has(get_tool(&self, "slow"), "\"isError\":true");
    assert_has(last_event(&self.way), "as many tasks as it can hold");
    bay_call_reply(first, "done");
    wait_status(&self, id, "completed");
    rig_stop(&self);
}

static void a_task_expires(void **state)
{
    char id[40];
    rig self;
    (void)state;
    bay_server *server = new_server();
    bay_server_set(server, BAY_SERVER_SETTING_TASK_TTL_MS, 1000);
    rig_start(&self, server);
    rig_client_with(&self, MODERN, EXTENSION);
    begin_task(&self, "quick", id);
    assert_has(last_event(&self.way), "\"ttlMs\":1000");
    wait_status(&self, id, "completed");
    for (int i = 0; i < 200 && strstr(task_request(&self, "tasks/get", id, ""), "-32602") == NULL;
         i++) {
        loop_turn(self.loop, 20);
    }
    assert_has(last_event(&self.way), "-32602");
    rig_stop(&self);
}

/* ---- on disk */

static void start_on_disk(rig *self)
{
    bay_server *server = new_server();
    bay_server_store(server, path);
    rig_start(self, server);
    rig_client_with(self, MODERN, EXTENSION ",\"elicitation\":{}");
}

static void what_ended_outlives_the_process(void **state)
{
    char id[40];
    rig self;
    (void)state;
    start_on_disk(&self);
    begin_task(&self, "quick", id);
    wait_status(&self, id, "completed");
    rig_stop(&self);
    start_on_disk(&self);
    assert_has(wait_status(&self, id, "completed"), "\"text\":\"ok\"");
    rig_stop(&self);
}

static void what_was_under_way_fails_or_runs_again(void **state)
{
    char failing[40];
    char resumed[40];
    rig self;
    (void)state;
    start_on_disk(&self);
    begin_task(&self, "slow", failing);
    bay_call *slow = kept;
    begin_task(&self, "again", resumed);
    bay_call *again = kept;
    rig_hang_up(&self);
    sdk_tasks_stop(self.server);
    assert_true(bay_call_is_cancelled(slow) && bay_call_is_cancelled(again));
    bay_call_reply(slow, "too late");
    bay_call_reply(again, "too late");
    rig_stop(&self);
    kept = NULL;
    start_on_disk(&self);
    assert_has(wait_status(&self, failing, "failed"), "\"code\":-32603");
    RIG_UNTIL(&self, kept != NULL);
    assert_true(str_eq(bay_call_task(kept), str_of(resumed)));
    assert_true(str_eq(bay_call_name(kept), STR("again")));
    bay_call_reply(kept, "once more");
    assert_has(wait_status(&self, resumed, "completed"), "\"text\":\"once more\"");
    rig_stop(&self);
}

static void an_orphan_is_taken_over(void **state)
{
    rig self;
    (void)state;
    leave_row("0123456789abcdef0123456789abcdef", "again", "", "");
    leave_row("0123456789abcdef0123456789abcde0", "slow", "", "");
    leave_row("0123456789abcdef0123456789abcde1", "gone", "", "");
    kept = NULL;
    start_on_disk(&self);
    RIG_UNTIL(&self, kept != NULL);
    assert_true(str_eq(bay_call_arguments(kept), STR("{\"a\":1.50}")));
    wait_status(&self, "0123456789abcdef0123456789abcde0", "failed");
    wait_status(&self, "0123456789abcdef0123456789abcde1", "failed");
    bay_call_reply(kept, "done");
    wait_status(&self, "0123456789abcdef0123456789abcdef", "completed");
    rig_stop(&self);
}

#ifndef BAY_NO_TLS

/* Whose it is, is sealed with the program's key: the handler knows it again. */
static void an_orphan_knows_its_caller(void **state)
{
    static const char key[] = "0123456789abcdef0123456789abcdef";
    static const char identity[] = "program:0::7:mallory";
    rig self;
    seal_ring *ring = NULL;
    buf row;
    arena memory;
    task_record record = record_of("0123456789abcdef0123456789abcdef", "again");
    task_record read;
    (void)state;
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_add(ring, str_of(key)), BAY_OK);
    record.principal = str_of(identity);
    buf_init(&row, 1 << 16);
    arena_init(&memory, 1 << 20);
    sdk_task_write_row(&record, ring, &row);
    assert_null(memmem(row.at, row.len, "mallory", 7));
    assert_int_equal(sdk_task_read_row(buf_view(&row), ring, &memory, &read), BAY_OK);
    assert_true(str_eq(read.principal, str_of(identity)));
    /* moved to another row, or without its key, it is nobody's */
    bay_str name = STR("0123456789abcdef0123456789abcdef");
    char *at = memmem(row.at, row.len, name.at, name.len);
    assert_non_null(at);
    at[0] = '1';
    assert_int_equal(sdk_task_read_row(buf_view(&row), ring, &memory, &read), BAY_OK);
    assert_true(str_eq(read.principal, STR(PRINCIPAL_ROW_OF_NOBODY)));
    at[0] = '0';
    assert_int_equal(sdk_task_read_row(buf_view(&row), NULL, &memory, &read), BAY_OK);
    assert_true(str_eq(read.principal, STR(PRINCIPAL_ROW_OF_NOBODY)));
    row_ring = ring;
    leave_record(&record, "");
    row_ring = NULL;
    kept = NULL;
    bay_server *server = new_server();
    bay_server_store(server, path);
    bay_server_key(server, key, SEAL_KEY_BYTES);
    rig_start(&self, server);
    rig_client_with(&self, MODERN, EXTENSION);
    RIG_UNTIL(&self, kept != NULL);
    assert_true(str_eq(bay_call_principal(kept), STR("mallory")));
    assert_has(task_request(&self, "tasks/get", "0123456789abcdef0123456789abcdef", ""), "-32602");
    bay_call_reply(kept, "done");
    rig_stop(&self);
    buf_fini(&row);
    arena_fini(&memory);
    seal_ring_free(ring);
}

#endif

static void row_read(void *user, const store_result *result)
{
    char *text = user;
    assert_int_equal(result->err, BAY_OK);
    (void)snprintf(text, 4096, "%.*s", BAY_STR(result->rows[0].value));
}

static void what_another_process_works_on_gets_a_letter(void **state)
{
    static const char id[] = "0123456789abcdef0123456789abcdef";
    char row[4096] = "";
    rig self;
    (void)state;
    leave_row(id, "again", "somebody else", "");
    kept = NULL;
    start_on_disk(&self);
    wait_status(&self, id, "working");
    task_request(&self, "tasks/update", id, "\"inputResponses\":{\"k\":{\"action\":\"decline\"}}");
    assert_has(last_event(&self.way), "\"resultType\":\"complete\"");
    task_request(
        &self, "tasks/update", id,
        "\"inputResponses\":{\"k\":{\"action\":\"cancel\"},\"m\":{\"action\":\"cancel\"}}");
    assert_has(task_request(&self, "tasks/cancel", id, ""), "\"resultType\":\"complete\"");
    assert_int_equal(store_get(self.server->tasks->store, STR("tasks"), str_of(id), row_read, row),
                     BAY_OK);
    RIG_UNTIL(&self, row[0] != '\0');
    assert_has(row, "\"mail\":{\"cancel\":true,\"answers\":{\"k\":{\"action\":\"decline\"},\"m\":{"
                    "\"action\":\"cancel\"}}}");
    wait_status(&self, id, "working");
    assert_null(kept);
    rig_stop(&self);
}

static void strangers_do_not_see_it(void **state)
{
    static const char id[] = "0123456789abcdef0123456789abcdef";
    rig self;
    (void)state;
    leave_row(id, "slow", "somebody else", "program:0::5:alice");
    start_on_disk(&self);
    assert_has(task_request(&self, "tasks/get", id, ""), "-32602");
    assert_has(task_request(&self, "tasks/cancel", id, ""), "-32602");
    assert_has(task_request(&self, "tasks/update", id, "\"inputResponses\":{}"), "-32602");
    rig_stop(&self);
}

static void a_file_that_is_none_is_told(void **state)
{
    bay_diag diag = {.code = BAY_OK};
    (void)state;
    bay_server *server = new_server();
    bay_server_store(server, "/nowhere/at/all/tasks.db");
    bay_err err = bay_server_listen(server, "127.0.0.1:0", &diag);
    assert_int_equal(err, BAY_ERR_NOT_FOUND);
    assert_has(diag.text, "/nowhere/at/all");
    bay_server_free(server);
}

/* ---- no memory */

static void lack_of_memory_is_survived(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        rig self;
        bay_server *server = new_server();
        bay_diag diag;
        if (server == NULL || bay_server_check(server, &diag) != BAY_OK) {
            bay_server_free(server);
        } else if (rig_try_start(&self, server)) {
            wire_init(&self.way, &self.on);
            if (mcp_connection_open(self.server->engine, &self.way.carrier, &self.way.connection) ==
                BAY_OK) {
                self.revision = MODERN;
                self.capabilities = EXTENSION ",\"elicitation\":{}";
                rig_send(&self, "tools/call", "\"name\":\"asks\"", "");
                for (int i = 0; i < 20; i++) {
                    loop_turn(self.loop, 0);
                }
                rig_send(&self, "tools/call", "\"name\":\"quick\"", "");
                rig_send(&self, "tools/call", "\"name\":\"broken\"", "");
                for (int i = 0; i < 20; i++) {
                    loop_turn(self.loop, 0);
                }
            }
            rig_stop(&self);
        }
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_without_the_extension_get_no_task),
        cmocka_unit_test(a_server_without_such_tools_has_no_tasks),
        cmocka_unit_test(what_is_no_task_is_unknown),
        cmocka_unit_test(a_task_ends_with_its_result),
        cmocka_unit_test(a_task_is_cancelled_once_and_for_all),
        cmocka_unit_test(what_a_cancelled_task_asked_is_answered_by_nobody),
        cmocka_unit_test(a_client_that_leaves_does_not_end_its_task),
        cmocka_unit_test(a_task_asks_and_is_answered_in_parts),
        cmocka_unit_test(a_call_becomes_a_task_after_its_rounds),
        cmocka_unit_test(there_are_only_so_many_tasks),
        cmocka_unit_test(a_task_expires),
        cmocka_unit_test_setup_teardown(what_ended_outlives_the_process, set_path, remove_path),
        cmocka_unit_test_setup_teardown(what_was_under_way_fails_or_runs_again, set_path,
                                        remove_path),
        cmocka_unit_test_setup_teardown(an_orphan_is_taken_over, set_path, remove_path),
#ifndef BAY_NO_TLS
        cmocka_unit_test_setup_teardown(an_orphan_knows_its_caller, set_path, remove_path),
#endif
        cmocka_unit_test_setup_teardown(what_another_process_works_on_gets_a_letter, set_path,
                                        remove_path),
        cmocka_unit_test_setup_teardown(strangers_do_not_see_it, set_path, remove_path),
        cmocka_unit_test(a_file_that_is_none_is_told),
        cmocka_unit_test(lack_of_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
