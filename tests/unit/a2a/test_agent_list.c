/* ListTasks: what is refused, order, pages, filters, whose tasks they are. */
#include "agent_rig.h"

#include "a2a/agent_internal.h"

static void refuses_bad_questions(void **state)
{
    static const char *const bad[] = {"{\"pageSize\":0}",
                                      "{\"pageSize\":101}",
                                      "{\"pageSize\":-1}",
                                      "{\"historyLength\":-1}",
                                      "{\"pageToken\":\"x\"}",
                                      ("{\"pageToken\":\"0000000000000000000000000000000000000000"
                                       "000000000000000000000000\"}"),
                                      "{\"statusTimestampAfter\":\"yesterday\"}",
                                      "{\"statusTimestampAfter\":\"2023-13-01T00:00:00Z\"}",
                                      "{\"statusTimestampAfter\":\"2023-11-14T22:13:20\"}"};
    rig *r = rig_new();
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_refused(r, A2A_LIST_TASKS, bad[i], A2A_E_INVALID_PARAMS);
    }
    rig_free(r);
}

static void reads_and_writes_times(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } times[] = {{"1970-01-01T00:00:00.000Z", 0},
                 {"2000-02-29T23:59:59.999Z", UINT64_C(951868799999)},
                 {"2023-11-14T22:13:20.000Z", RIG_NOW},
                 {"2100-03-01T00:00:00.000Z", UINT64_C(4107542400000)},
                 {"9999-12-31T23:59:59.001Z", UINT64_C(253402300799001)}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        uint64_t ms = 1;
        buf out;
        buf_init(&out, 64);
        agent_write_time(&out, times[i].ms);
        assert_true(str_eq(buf_view(&out), str_of(times[i].text)));
        assert_true(agent_read_time(buf_view(&out), &ms));
        assert_true(ms == times[i].ms);
        buf_fini(&out);
    }
    uint64_t ms = 0;
    assert_true(agent_read_time(STR("2023-11-15T00:13:20.5+02:00"), &ms));
    assert_true(ms == RIG_NOW + 500);
    assert_true(agent_read_time(STR("2023-11-14T20:13:20.1234567-02:00"), &ms));
    assert_true(ms == RIG_NOW + 123);
    assert_true(agent_read_time(STR("0000-01-01T00:00:00Z"), &ms));
    assert_true(ms == 0);
    assert_false(agent_read_time(STR("2023-11-14T22:13:20+2:00"), &ms));
    assert_false(agent_read_time(STR("2023-11-14T22:13:20.Zx"), &ms));
    assert_false(agent_read_time(STR(""), &ms));
}

/* Tasks of ann: `count`, one a ms, every third failed; contexts "even" and "odd". */
static void fail_it(rig *r, a2a_turn *turn)
{
    (void)r;
    assert_int_equal(rig_status(turn, A2A_FAILED, NULL), BAY_OK);
    a2a_turn_end(turn);
}

static void make(rig *r, int count)
{
    for (int i = 0; i < count; i++) {
        r->now_ms++;
        r->turn = i % 3 == 2 ? fail_it : rig_complete;
        told_free(rig_send(r, i % 2 == 0 ? RIG_MESSAGE("m", ",\"contextId\":\"even\"")
                                         : RIG_MESSAGE("m", ",\"contextId\":\"odd\"")));
    }
}

/* Reads all pages: the ids in their order; how many pages that were. */
static int read_all(rig *r, const char *filter, char ids[][37], size_t *count, int64_t *total)
{
    char token[80] = "";
    int pages = 0;
    *count = 0;
    do {
        char params[400];
        json_doc doc;
        arena memory;
        bay_str next;
        rig_format(params, sizeof(params), "{%s\"pageToken\":\"%s\"}", filter, token);
        told *call = rig_ask(r, A2A_LIST_TASKS, params);
        assert_answered(call);
        json_val page = rig_json(call->result, &doc, &memory);
        json_iter it = json_iter_of(json_get(page, STR("tasks")));
        while (json_next(&it)) {
            bay_str id;
            assert_true(json_str_plain(json_get(it.value, STR("id")), &id));
            rig_format(ids[(*count)++], 37, "%.*s", (int)id.len, id.at);
        }
        assert_int_equal(json_int64(json_get(page, STR("totalSize")), total), BAY_OK);
        assert_true(json_str_plain(json_get(page, STR("nextPageToken")), &next));
        rig_format(token, sizeof(token), "%.*s", (int)next.len, next.at);
        arena_fini(&memory);
        told_free(call);
        pages++;
    } while (token[0] != '\0');
    return pages;
}

static void pages_through(void **state)
{
    rig *r = rig_new();
    char ids[130][37];
    size_t count;
    int64_t total;
    (void)state;
    make(r, 120);
    assert_int_equal(read_all(r, "", ids, &count, &total), 3); /* 50, 50, 20 */
    assert_int_equal(count, 120);
    assert_int_equal(total, 120);
    for (size_t i = 1; i < count; i++) {
        assert_true(strcmp(ids[i - 1], ids[i]) > 0); /* the rig's ids grow: newest first */
    }
    assert_int_equal(
        read_all(r, "\"pageSize\":100,\"status\":\"TASK_STATE_FAILED\",", ids, &count, &total), 1);
    assert_int_equal(count, 40);
    assert_int_equal(total, 40);
    assert_int_equal(read_all(r, "\"pageSize\":7,\"contextId\":\"odd\",", ids, &count, &total), 9);
    assert_int_equal(count, 60);
    assert_int_equal(total, 60);
    assert_int_equal(
        read_all(r, "\"contextId\":\"odd\",\"status\":\"TASK_STATE_FAILED\",", ids, &count, &total),
        1);
    assert_int_equal(count, 20);
    assert_int_equal(read_all(r, "\"status\":\"TASK_STATE_WORKING\",", ids, &count, &total), 1);
    assert_int_equal(count + (size_t)total, 0);
    assert_int_equal(read_all(r, "\"contextId\":\"none\",", ids, &count, &total), 1);
    assert_int_equal(count + (size_t)total, 0);
    /* From a time on, that time included: RIG_NOW + 111 … + 120. */
    assert_int_equal(
        read_all(r, "\"pageSize\":4,\"statusTimestampAfter\":\"2023-11-14T22:13:20.111Z\",", ids,
                 &count, &total),
        3);
    assert_int_equal(count, 10);
    assert_int_equal(total, 10);
    rig_free(r);
}

static void binds_its_tokens(void **state)
{
    rig *r = rig_new();
    char params[300];
    char token[80];
    (void)state;
    make(r, 5);
    told *call = rig_ask(r, A2A_LIST_TASKS, "{\"pageSize\":2}");
    assert_holds(call->result, "\"pageSize\":2,\"totalSize\":5}");
    assert_lacks(call->result, "artifacts");
    const char *at = strstr(call->result, "\"nextPageToken\":\"");
    assert_non_null(at);
    rig_format(token, sizeof(token), "%.64s", at + strlen("\"nextPageToken\":\""));
    told_free(call);
    /* Another filter, another caller, a changed digit, too late. */
    assert_refused(r, A2A_LIST_TASKS,
                   rig_format(params, sizeof(params),
                              "{\"status\":\"TASK_STATE_FAILED\",\"pageToken\":\"%s\"}", token),
                   A2A_E_INVALID_PARAMS);
    rig_format(params, sizeof(params), "{\"pageToken\":\"%s\"}", token);
    call = rig_call(r, A2A_LIST_TASKS, params);
    call->call.principal = person("bob");
    rig_start(call);
    assert_failed(call, A2A_E_INVALID_PARAMS);
    told_free(call);
    for (size_t i = 0; i < 64; i++) {
        char before = token[i];
        token[i] = before == '0' ? '1' : '0';
        assert_refused(r, A2A_LIST_TASKS,
                       rig_format(params, sizeof(params), "{\"pageToken\":\"%s\"}", token),
                       A2A_E_INVALID_PARAMS);
        token[i] = before;
    }
    rig_format(params, sizeof(params), "{\"pageToken\":\"%s\"}", token);
    call = rig_ask(r, A2A_LIST_TASKS, params);
    assert_answered(call);
    told_free(call);
    r->now_ms += AGENT_CURSOR_MS;
    assert_refused(r, A2A_LIST_TASKS, params, A2A_E_INVALID_PARAMS);
    rig_free(r);
}

/* Somebody else's are not counted either; what changes moves to the front; a page in the middle
 * stays where it is. */
static void shows_what_is_ones_own(void **state)
{
    rig *r = rig_new();
    char ids[10][37];
    size_t count;
    int64_t total;
    (void)state;
    make(r, 3);
    told *call = rig_call(r, A2A_SEND_MESSAGE, RIG_MESSAGE("m", ",\"contextId\":\"even\""));
    call->call.principal = person("bob");
    rig_start(call);
    told_free(call);
    r->turn = rig_hold;
    told *open = rig_send(r, RIG_MESSAGE("m", ",\"contextId\":\"odd\""));
    assert_int_equal(read_all(r, "", ids, &count, &total), 1);
    assert_int_equal(count, 3); /* nobody knows of the fourth one yet */
    assert_int_equal(rig_artifact(r->held, "a", "x", false, false), BAY_OK);
    a2a_turn *first = a2a_turn_ref(r->held);
    told *other = rig_send(r, RIG_MESSAGE("n", ""));
    assert_int_equal(rig_status(r->held, A2A_WORKING, NULL), BAY_OK);
    read_all(r, "", ids, &count, &total);
    assert_int_equal(count, 5);
    bay_str id = a2a_turn_task_id(first);
    assert_memory_equal(ids[1], id.at, id.len);
    assert_int_equal(rig_status(first, A2A_WORKING, NULL), BAY_OK);
    read_all(r, "\"status\":\"TASK_STATE_WORKING\",", ids, &count, &total);
    assert_int_equal(total, 2);
    assert_memory_equal(ids[0], id.at, id.len);
    told *with = rig_ask(r, A2A_LIST_TASKS, "{\"includeArtifacts\":true,\"historyLength\":0}");
    assert_holds(with->result, "\"artifacts\":[{\"artifactId\":\"a\"");
    assert_lacks(with->result, "history");
    told_free(with);
    for (int i = 0; i < 1000; i++) { /* holes are tidied away */
        assert_int_equal(rig_status(first, A2A_WORKING, NULL), BAY_OK);
    }
    read_all(r, "", ids, &count, &total);
    assert_int_equal(count, 5);
    a2a_turn_unref(first);
    rig_leave(open);
    rig_leave(other);
    told_free(open);
    told_free(other);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_bad_questions),  cmocka_unit_test(reads_and_writes_times),
        cmocka_unit_test(pages_through),          cmocka_unit_test(binds_its_tokens),
        cmocka_unit_test(shows_what_is_ones_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
