/* Handlers on threads: many tasks, many threads of one task, cancels from outside, ends in the
 * middle. For ThreadSanitizer more than for its assertions. */
#include "agent_rig.h"

enum { TASKS = 24, EMITTERS = 4, CHUNKS = 20 };

#define SEND_NOW(id, text)                                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":{"           \
    "\"messageId\":\"" id "\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"" text "\"}]},"        \
    "\"configuration\":{\"returnImmediately\":true}}}"

#define STREAM_NOW(id, text)                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendStreamingMessage\",\"params\":{\"message\":{"  \
    "\"messageId\":\"" id "\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"" text "\"}]}}}"

/* ---- what handlers do ------------------------------------------------------------------------ */

typedef struct emitter {
    pthread_t id;
    bay_task *task;
    int number;
} emitter;

static void *emit(void *argument)
{
    emitter *self = argument;
    char name[32];
    snprintf(name, sizeof(name), "part-%d", self->number);
    bay_artifact *artifact = bay_task_artifact(self->task, name, "text/plain");
    for (int i = 0; i < CHUNKS; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%d,", i);
        if (bay_artifact_append(artifact, text) != BAY_OK) {
            break;
        }
        (void)bay_task_status(self->task, BAY_TASK_STATE_WORKING, text);
    }
    (void)bay_artifact_close(artifact);
    bay_task_release(self->task);
    return NULL;
}

/* Several threads of the program's own write artifacts of one task. */
static void write_together(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    (void)user;
    emitter emitters[EMITTERS];
    for (int i = 0; i < EMITTERS; i++) {
        emitters[i] = (emitter){.task = bay_task_defer(task), .number = i};
        assert_int_equal(pthread_create(&emitters[i].id, NULL, emit, &emitters[i]), 0);
    }
    for (int i = 0; i < EMITTERS; i++) {
        pthread_join(emitters[i].id, NULL);
    }
    (void)bay_task_complete(task, "together");
}

/* Cuts "one" and "two", and waits after each until the test has seen it. */
static void wait_for_reader(bay_task *task, const bay_message *message, void *user)
{
    atomic_int *seen = user;
    static const char *const words[] = {"one", "two"};
    (void)message;
    bay_artifact *artifact = bay_task_artifact(task, "log", NULL);
    for (int i = 0; i < 2; i++) {
        (void)bay_artifact_append(artifact, words[i]);
        while (atomic_load(seen) <= i && bay_task_sleep(task, 1)) {
        }
    }
    (void)bay_artifact_close(artifact);
    (void)bay_task_complete(task, "cut");
}

/* Closes each artifact before the loop has its chunk. */
static void close_at_once(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    (void)user;
    bay_artifact *first = bay_task_artifact(task, "first", NULL);
    bay_artifact *second = bay_task_artifact(task, "second", NULL);
    (void)bay_artifact_append(first, "one");
    (void)bay_artifact_append(second, "two");
    (void)bay_task_status(task, BAY_TASK_STATE_WORKING, "between");
    (void)bay_artifact_append(second, "three");
    (void)bay_artifact_close(second);
    (void)bay_artifact_append(first, "four");
    (void)bay_task_complete(task, "cut");
}

static void *finish_later(void *argument)
{
    bay_task *task = argument;
    (void)bay_task_status(task, BAY_TASK_STATE_WORKING, NULL);
    (void)bay_task_sleep(task, 1);
    (void)bay_task_complete(task, "later");
    bay_task_release(task);
    return NULL;
}

static void hand_over(bay_task *task, const bay_message *message, void *user)
{
    pthread_t *ids = user;
    static atomic_int next;
    (void)message;
    assert_int_equal(
        pthread_create(&ids[atomic_fetch_add(&next, 1)], NULL, finish_later, bay_task_defer(task)),
        0);
}

static void wait_to_be_cancelled(bay_task *task, const bay_message *message, void *user)
{
    atomic_int *cancelled = user;
    (void)message;
    (void)bay_task_status(task, BAY_TASK_STATE_WORKING, NULL);
    if (!bay_task_sleep(task, 3600000)) {
        assert_true(bay_task_is_cancelled(task));
        bay_err err = bay_task_complete(task, "too late");
        assert_true(err == BAY_ERR_STATE || err == BAY_ERR_CLOSED);
        atomic_fetch_add(cancelled, 1);
    }
}

static atomic_int said;

static void *never_stop(void *argument)
{
    bay_task *task = argument;
    bay_err err = BAY_OK;
    while (err == BAY_OK || err == BAY_ERR_LIMIT) { /* too many wait already */
        err = bay_task_status(task, BAY_TASK_STATE_WORKING, "and on");
        atomic_fetch_add(&said, err == BAY_OK);
    }
    bay_task_release(task);
    return NULL;
}

/* Says more than can be told until somebody cancels it. */
static void say_without_end(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    (void)user;
    pthread_t ids[EMITTERS];
    for (int i = 0; i < EMITTERS; i++) {
        assert_int_equal(pthread_create(&ids[i], NULL, never_stop, bay_task_defer(task)), 0);
    }
    for (int i = 0; i < EMITTERS; i++) {
        pthread_join(ids[i], NULL);
    }
}

static void be_quick(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    (void)user;
    for (int i = 0; i < 5; i++) {
        (void)bay_task_status(task, BAY_TASK_STATE_WORKING, "going on");
    }
    (void)bay_task_complete(task, NULL);
}

static bay_agent *serve(bay_task_handler_fn handler, void *user)
{
    bay_agent *agent = bay_agent_new("threads", "1", "Runs threads.");
    bay_agent_skill(agent, "one", "One", "The only one.", handler, user);
    bay_agent_set(agent, BAY_AGENT_SETTING_THREADS, 4);
    agent_listen(agent);
    return agent;
}

/* ---- callers --------------------------------------------------------------------------------- */

static void send_many(bay_agent *agent, wire_client *clients, size_t count, const char *format)
{
    for (size_t i = 0; i < count; i++) {
        char body[512];
        snprintf(body, sizeof(body), format, i);
        wire_request(&clients[i], agent_loop(agent), bay_agent_port(agent), "POST", "/", AGENT_JSON,
                     body);
    }
}

static void await_all(bay_agent *agent, wire_client *clients, size_t count, const char *part)
{
    for (size_t i = 0; i < count; i++) {
        TURN_UNTIL(agent_loop(agent), wire_pump(&clients[i]), clients[i].is_complete);
        if (!wire_body_has(&clients[i], part)) {
            fail_msg("%.*s", BAY_STR(buf_view(&clients[i].body)));
        }
        wire_close(&clients[i]);
    }
}

static void many_tasks_run_at_once(void **state)
{
    (void)state;
    wire_client clients[TASKS];
    bay_agent *agent = serve(be_quick, NULL);
    send_many(agent, clients, TASKS, AGENT_SEND("m%zu", "x", ""));
    await_all(agent, clients, TASKS, "TASK_STATE_COMPLETED");
    bay_agent_free(agent);
}

static void threads_of_one_task_lose_no_chunk(void **state)
{
    (void)state;
    wire_client client;
    bay_agent *agent = serve(write_together, NULL);
    agent_ask(agent, &client, "POST", "/", AGENT_JSON, AGENT_SEND("m", "x", ""));
    assert_true(wire_body_has(&client, "TASK_STATE_COMPLETED"));
    json_doc doc;
    arena memory;
    arena_init(&memory, 1 << 24);
    assert_int_equal(json_parse(&doc, buf_view(&client.body), NULL, &memory, NULL), BAY_OK);
    json_val artifacts = json_pointer(json_root(&doc), STR("/result/task/artifacts"));
    assert_int_equal(json_count(artifacts), EMITTERS);
    json_iter it = json_iter_of(artifacts);
    while (json_next(&it)) {
        json_iter parts = json_iter_of(json_get(it.value, STR("parts")));
        int next = 0;
        while (json_next(&parts)) {
            char text[32];
            snprintf(text, sizeof(text), "%d,", next++);
            assert_true(json_str_eq(json_get(parts.value, STR("text")), str_of(text)));
        }
        assert_int_equal(next, CHUNKS);
    }
    arena_fini(&memory);
    wire_close(&client);
    bay_agent_free(agent);
}

static void append_texts(json_val parts, buf *out)
{
    json_iter it = json_iter_of(parts);
    while (json_next(&it)) {
        buf_str(out, json_raw(json_get(it.value, STR("text"))));
    }
}

/* The texts of an artifact's parts, one behind the other. */
static void expect_texts(bay_agent *agent, const char *task, const char *pointer,
                         const char *expected)
{
    json_doc doc;
    arena memory;
    buf texts;
    char body[256];
    wire_client client;
    snprintf(body, sizeof(body),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":{\"id\":\"%s\"}}",
             task);
    agent_ask(agent, &client, "POST", "/", AGENT_JSON, body);
    arena_init(&memory, 1 << 20);
    buf_init(&texts, 4096);
    assert_int_equal(json_parse(&doc, buf_view(&client.body), NULL, &memory, NULL), BAY_OK);
    append_texts(json_pointer(json_root(&doc), str_of(pointer)), &texts);
    assert_true(str_eq(buf_view(&texts), str_of(expected)));
    buf_fini(&texts);
    arena_fini(&memory);
    wire_close(&client);
}

static void a_chunk_is_sent_before_the_next_one_is_made(void **state)
{
    (void)state;
    atomic_int seen = 0;
    char task[64];
    wire_client client;
    bay_agent *agent = serve(wait_for_reader, &seen);
    wire_request(&client, agent_loop(agent), bay_agent_port(agent), "POST", "/", AGENT_JSON,
                 STREAM_NOW("m", "go"));
    TURN_UNTIL(agent_loop(agent), wire_pump(&client),
               wire_body_has(&client, "[{\"text\":\"one\"}]"));
    assert_false(wire_body_has(&client, "two"));
    atomic_store(&seen, 1);
    TURN_UNTIL(agent_loop(agent), wire_pump(&client),
               wire_body_has(&client, "[{\"text\":\"two\"}]"));
    assert_false(wire_body_has(&client, "lastChunk"));
    atomic_store(&seen, 2);
    TURN_UNTIL(agent_loop(agent), wire_pump(&client), client.is_complete);
    assert_true(
        wire_body_has(&client, "\"parts\":[{\"text\":\"\"}]},\"append\":true,\"lastChunk\":true"));
    agent_find(&client, "taskId", task, sizeof(task));
    wire_close(&client);
    expect_texts(agent, task, "/result/artifacts/0/parts", "\"one\"\"two\"");
    bay_agent_free(agent);
}

static void a_chunk_that_waits_is_the_last_one_itself(void **state)
{
    (void)state;
    char task[64];
    wire_client client;
    bay_agent *agent = bay_agent_new("loop", "1", "Runs on the loop.");
    bay_agent_skill(agent, "one", "One", "The only one.", close_at_once, NULL);
    bay_agent_on_loop(agent);
    agent_listen(agent);
    agent_ask(agent, &client, "POST", "/", AGENT_JSON, STREAM_NOW("m", "go"));
    assert_true(
        wire_body_has(&client, "[{\"text\":\"three\"}]},\"append\":true,\"lastChunk\":true"));
    assert_true(
        wire_body_has(&client, "[{\"text\":\"four\"}]},\"append\":true,\"lastChunk\":true"));
    assert_false(wire_body_has(&client, "{\"text\":\"\"}"));
    agent_find(&client, "taskId", task, sizeof(task));
    wire_close(&client);
    expect_texts(agent, task, "/result/artifacts/0/parts", "\"one\"\"four\"");
    expect_texts(agent, task, "/result/artifacts/1/parts", "\"two\"\"three\"");
    bay_agent_free(agent);
}

static void a_task_may_be_finished_by_another_thread(void **state)
{
    (void)state;
    wire_client clients[TASKS];
    pthread_t ids[TASKS];
    bay_agent *agent = serve(hand_over, ids);
    send_many(agent, clients, TASKS, AGENT_SEND("m%zu", "x", ""));
    await_all(agent, clients, TASKS, "later");
    for (int i = 0; i < TASKS; i++) {
        pthread_join(ids[i], NULL);
    }
    bay_agent_free(agent);
}

static void cancel(bay_agent *agent, const char *id, const char *part)
{
    char body[256];
    snprintf(body, sizeof(body),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"CancelTask\",\"params\":{\"id\":\"%s\"}}",
             id);
    agent_expect(agent, "/", AGENT_JSON, body, 200, part);
}

static void cancelled_handlers_learn_of_it(void **state)
{
    (void)state;
    atomic_int cancelled = 0;
    bay_agent *agent = serve(wait_to_be_cancelled, &cancelled);
    for (int i = 0; i < 8; i++) {
        wire_client client;
        char id[40] = "";
        char body[512];
        snprintf(body, sizeof(body), SEND_NOW("c%d", "x"), i);
        agent_ask(agent, &client, "POST", "/", AGENT_JSON, body);
        const char *at = memmem(client.body.at, client.body.len, "\"task\":{\"id\":\"", 14);
        assert_non_null(at);
        snprintf(id, sizeof(id), "%.36s", at + 14);
        wire_close(&client);
        cancel(agent, id, "TASK_STATE_CANCELED");
        cancel(agent, id, "-32002");
    }
    TURN_UNTIL(agent_loop(agent), (void)0, atomic_load(&cancelled) == 8);
    bay_agent_free(agent);
}

/* A cancel and an answer at one time: one of them wins, and both know it. */
static void a_cancel_races_with_an_answer(void **state)
{
    (void)state;
    bay_agent *agent = serve(be_quick, NULL);
    for (int i = 0; i < 20; i++) {
        wire_client client;
        char id[40] = "";
        char body[512];
        snprintf(body, sizeof(body), SEND_NOW("r%d", "x"), i);
        agent_ask(agent, &client, "POST", "/", AGENT_JSON, body);
        const char *at = memmem(client.body.at, client.body.len, "\"task\":{\"id\":\"", 14);
        assert_non_null(at);
        snprintf(id, sizeof(id), "%.36s", at + 14);
        wire_close(&client);
        snprintf(body, sizeof(body),
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"CancelTask\",\"params\":{\"id\":"
                 "\"%s\"}}",
                 id);
        agent_ask(agent, &client, "POST", "/", AGENT_JSON, body);
        assert_true(wire_body_has(&client, "TASK_STATE_CANCELED") ||
                    wire_body_has(&client, "-32002"));
        wire_close(&client);
    }
    bay_agent_free(agent);
}

static void an_agent_is_freed_while_handlers_run(void **state)
{
    (void)state;
    atomic_int cancelled = 0;
    wire_client clients[8];
    bay_agent *agent = serve(wait_to_be_cancelled, &cancelled);
    send_many(agent, clients, 8, AGENT_SEND("m%zu", "x", ""));
    for (int i = 0; i < 20; i++) {
        (void)loop_turn(agent_loop(agent), 1);
    }
    bay_agent_free(agent);
    for (int i = 0; i < 8; i++) {
        wire_close(&clients[i]);
    }
    assert_true(atomic_load(&cancelled) > 0);
}

/* A task that has always more to say takes no more than its share of the loop. */
static void a_task_that_never_stops_is_cancelled(void **state)
{
    (void)state;
    char id[64];
    char body[256];
    wire_client client;
    bay_agent *agent = serve(say_without_end, NULL);
    agent_ask(agent, &client, "POST", "/", AGENT_JSON, SEND_NOW("m", "go"));
    agent_find(&client, "id", id, sizeof(id));
    wire_close(&client);
    while (atomic_load(&said) < 5000) {
        agent_expect(agent, "/tasks?historyLength=0", "A2A-Version: 1.0\r\n", NULL, 200, id);
    }
    snprintf(body, sizeof(body),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"CancelTask\",\"params\":{\"id\":\"%s\"}}",
             id);
    agent_expect(agent, "/", AGENT_JSON, body, 200, "TASK_STATE_CANCELED");
    bay_agent_free(agent);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_never_stops_is_cancelled),
        cmocka_unit_test(many_tasks_run_at_once),
        cmocka_unit_test(threads_of_one_task_lose_no_chunk),
        cmocka_unit_test(a_chunk_is_sent_before_the_next_one_is_made),
        cmocka_unit_test(a_chunk_that_waits_is_the_last_one_itself),
        cmocka_unit_test(a_task_may_be_finished_by_another_thread),
        cmocka_unit_test(cancelled_handlers_learn_of_it),
        cmocka_unit_test(a_cancel_races_with_an_answer),
        cmocka_unit_test(an_agent_is_freed_while_handlers_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
