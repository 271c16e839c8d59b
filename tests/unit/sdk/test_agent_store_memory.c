/* A long task on a store with each allocation failing in turn, first all from that one on, then
 * that one alone: what another agent reads afterwards is the task as it was at some time, never one
 * that is damaged, and nothing leaks. */
#include "a2a/agent.h" /* before cmocka's macro `fail` */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "sdk/agent_store.h"
#include "support/failing_memory.h"
#include "support/literal_json.h"

enum { CHUNKS = 7, CHUNK = 1500, TURNS = 1000 };

typedef struct day {
    loop *loop;
    store *store;
    agent_store *kept;
    a2a_agent *agent;
    a2a_handler handler;
    a2a_turn *held;
    agent_store_loaded loaded;
    bool is_loaded;
    bool is_closed;
    int ended;
    bool is_whole; /* as the answer says */
    int chunks;    /* in it */
    int added;
} day;

static day *self; /* of the run */

#define turn_until(condition)                                                                      \
    do {                                                                                           \
        for (int turns = 0; !(condition) && turns < TURNS; turns++) {                              \
            loop_turn(self->loop, 5);                                                              \
        }                                                                                          \
        assert_true(condition);                                                                    \
    } while (0)

/* ---- calls */

/* Chunks in order, each whole. */
static void read_task(json_val task)
{
    json_iter it = json_iter_of(json_pointer(task, STR("/artifacts/0/parts")));
    self->is_whole = true;
    for (self->chunks = 0; json_next(&it); self->chunks++) {
        bay_str text = {"", 0};
        self->is_whole = self->is_whole && json_str_plain(json_get(it.value, STR("text")), &text) &&
                         text.len == CHUNK && text.at[0] == 'a' + self->chunks &&
                         text.at[CHUNK - 1] == text.at[0];
    }
}

static void on_result(a2a_call *call, bay_str json)
{
    arena memory;
    json_doc doc;
    (void)call;
    self->ended++;
    arena_init(&memory, SIZE_MAX);
    if (json_parse(&doc, json, NULL, &memory, NULL) == BAY_OK) {
        read_task(json_root(&doc));
    }
    arena_fini(&memory);
}

static bay_err on_event(a2a_call *call, a2a_event *event)
{
    (void)call;
    (void)event;
    return BAY_OK;
}

static void on_end(a2a_call *call)
{
    (void)call;
    self->ended++;
}

static void on_fail(a2a_call *call, const a2a_fault *fault)
{
    (void)call;
    (void)fault;
    self->ended++;
}

static bay_str on_field(a2a_call *call, bay_str name)
{
    (void)call;
    (void)name;
    return (bay_str){NULL, 0};
}

static const a2a_call_ops ops = {on_result, on_event, on_end, on_fail, on_field};

/* The call must stay until it is ended, which it is when the agent is freed. */
static void ask(a2a_call *call, arena *memory, json_doc *doc, a2a_method method, const char *params)
{
    arena_init(memory, SIZE_MAX);
    if (json_parse(doc, str_of(params), NULL, memory, NULL) == BAY_OK) {
        *call = (a2a_call){.ops = &ops,
                           .method = method,
                           .version = A2A_1_0,
                           .params = json_root(doc),
                           .tenant = {"", 0},
                           .extensions = {"", 0},
                           .traceparent = {"", 0},
                           .memory = memory};
        a2a_service *service = a2a_agent_service(self->agent);
        service->call(service, call);
    }
}

/* ---- the agent */

static void on_turn(void *user, a2a_turn *turn)
{
    (void)user;
    a2a_turn_unref(self->held);
    self->held = a2a_turn_ref(turn);
}

static uint64_t now(void *user)
{
    (void)user;
    return UINT64_C(1700000000000);
}

static void make_id(void *user, char out[37])
{
    (void)user;
    snprintf(out, 37, "00000000-0000-4000-8000-000000000001");
}

static void wake(void *user, uint64_t at_ms)
{
    (void)user;
    (void)at_ms;
}

static void on_loaded(void *user, const agent_store_loaded *loaded)
{
    (void)user;
    self->is_loaded = true;
    self->loaded = *loaded;
}

static const char card[] = "{\"capabilities\":{\"streaming\":true}}";

/* BAY_OK: it has all that is kept. */
static bay_err open_agent(void)
{
    self->handler = (a2a_handler){.turn = on_turn};
    self->is_loaded = false;
    bay_err err = agent_store_new(self->store, STR("tasks"), &self->kept);
    if (err != BAY_OK) {
        return err;
    }
    a2a_agent_options options = {.handler = &self->handler,
                                 .persistence = agent_store_persistence(self->kept),
                                 .card = literal_json(card),
                                 .extended_card = {"", 0},
                                 .now = now,
                                 .id = make_id,
                                 .wake = wake};
    err = a2a_agent_new(&options, &self->agent);
    if (err == BAY_OK) {
        err = agent_store_load(self->kept, self->agent, true, on_loaded, NULL);
    }
    if (err != BAY_OK) {
        return err;
    }
    turn_until(self->is_loaded);
    assert_int_equal(self->loaded.refused, 0);
    return self->loaded.err;
}

static void close_agent(void)
{
    a2a_agent_free(self->agent);
    self->agent = NULL;
    a2a_turn_unref(self->held);
    self->held = NULL;
    if (self->kept != NULL) {
        turn_until(agent_store_is_idle(self->kept));
        agent_store_free(self->kept);
        self->kept = NULL;
    }
}

static void add_chunk(int number)
{
    char words[CHUNK + 1];
    char text[CHUNK + 100];
    arena memory;
    json_doc doc;
    memset(words, 'a' + number, CHUNK);
    words[CHUNK] = '\0';
    snprintf(text, sizeof(text), "{\"artifactId\":\"a\",\"parts\":[{\"text\":\"%s\"}]}", words);
    arena_init(&memory, SIZE_MAX);
    if (json_parse(&doc, str_of(text), NULL, &memory, NULL) == BAY_OK) {
        bay_err err = a2a_turn_artifact(self->held, json_root(&doc), number > 0, false);
        self->added += err == BAY_OK;
    }
    arena_fini(&memory);
}

/* Each chunk that was added follows the one before; after a failure no more are. */
static void work(void)
{
    arena memory;
    json_doc doc;
    a2a_call call;
    ask(&call, &memory, &doc, A2A_SEND_MESSAGE,
        "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]},"
        "\"configuration\":{\"returnImmediately\":true}}");
    for (int i = 0; self->held != NULL && i < CHUNKS && self->added == i; i++) {
        add_chunk(i);
        turn_until(agent_store_is_idle(self->kept));
    }
    close_agent();
    arena_fini(&memory);
}

static void look(int most)
{
    arena memory;
    json_doc doc;
    a2a_call call;
    self->chunks = 0;
    self->is_whole = true;
    ask(&call, &memory, &doc, A2A_GET_TASK, "{\"id\":\"00000000-0000-4000-8000-000000000001\"}");
    turn_until(agent_store_is_idle(self->kept));
    assert_true(self->is_whole);
    assert_in_range(self->chunks, 0, most);
    close_agent();
    arena_fini(&memory);
}

static void on_closed(void *user)
{
    (void)user;
    self->is_closed = true;
}

static void run(bool may_fail)
{
    day today = {.chunks = 0};
    self = &today;
    if (loop_new(&today.loop) != BAY_OK) {
        return;
    }
    store_options options = agent_store_suits();
    if (store_open_memory(today.loop, &options, &today.store) == BAY_OK) {
        bay_err err = open_agent();
        int most = 0;
        if (err == BAY_OK) {
            work();
            most = today.added;
            err = open_agent();
        }
        if (err == BAY_OK) {
            look(most);
        }
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        assert_true(may_fail || (most == CHUNKS && today.chunks == CHUNKS));
        close_agent();
        store_close(today.store, on_closed, NULL);
        turn_until(today.is_closed);
        store_free(today.store);
    }
    loop_free(today.loop);
}

static void survives_the_lack_of_memory(void **state)
{
    (void)state;
    run(false);
    (void)literal_json(card);
    for (size_t at = 0; failing_memory_start(at); at++) {
        run(true);
        failing_memory_check();
    }
    for (size_t at = 0; failing_memory_start_single(at); at++) {
        run(true);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(survives_the_lack_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
