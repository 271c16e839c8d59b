/* Handlers on threads: many tasks, many threads of one task, cancels from outside, ends in the
 * middle. For ThreadSanitizer more than for its assertions. */
#include "agent_rig.h"

enum { TASKS = 24, EMITTERS = 4, CHUNKS = 20 };

#define SEND_NOW(id, text)                                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":{"           \
    "\"messageId\":\"" id "\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"" text "\"}]},"        \
    "\"configuration\":{\"returnImmediately\":true}}}"

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
        cmocka_unit_test(a_task_may_be_finished_by_another_thread),
        cmocka_unit_test(cancelled_handlers_learn_of_it),
        cmocka_unit_test(a_cancel_races_with_an_answer),
        cmocka_unit_test(an_agent_is_freed_while_handlers_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
