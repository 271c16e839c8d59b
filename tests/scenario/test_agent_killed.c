/* An agent with a file of tasks is killed in the middle of its work, several times, and started
 * again on the same file: every task that a client has heard of is completed, once, with its whole
 * artifact, and a client that comes back with the number of the last event it had gets the rest
 * without a gap. So it is with many short tasks and with a few long ones, whose artifacts are kept
 * in pieces. The agent is a process of its own; what clients hear, it writes to a pipe. */
#include "a2a/agent.h" /* before cmocka's macro `fail` */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/err.h"
#include "net/loop.h"
#include "sdk/agent_store.h"
#include "store/store.h"
#include "support/literal_json.h"

enum {
    TASKS = 500, /* at most */
    KILLS = 6,   /* at most */
    CHUNK_BYTES = 1000,
    ID_BYTES = 40,
    TURNS = 200000, /* bounds a broken test, not a working one */
};

typedef struct plan {
    const char *name;
    size_t tasks;
    int chunks;
    int bytes; /* of a chunk, at least */
    size_t kills;
    size_t lines; /* until the first; then so many more each time */
    size_t more;
} plan;

static const plan plans[] = {
    {"many", 500, 10, 1, 4, 150, 300},
    {"long", 5, 300, 700, 6, 60, 20},
};
static const plan *planned = plans;

static const plan *plan_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
        if (strcmp(plans[i].name, name) == 0) {
            return &plans[i];
        }
    }
    CHECK(false);
    return NULL;
}

/* The text of a chunk: its number, and as much behind it as was planned. */
static const char *chunk_text(int number, char out[CHUNK_BYTES])
{
    int len = snprintf(out, CHUNK_BYTES, "%d", number);
    for (; len < planned->bytes; len++) {
        out[len] = (char)('a' + number % 26);
    }
    out[len] = '\0';
    return out;
}

/* ---- the agent: what runs in the other process */

typedef struct stream {
    a2a_call call;
    arena memory;
    json_doc doc;
    char text[256];
    char id[ID_BYTES]; /* of its task; "": not told yet */
    bool is_over;
    bool is_closed;
} stream;

typedef struct work {
    a2a_turn *turn;
    int chunks;
} work;

typedef struct agent {
    loop *loop;
    store *store;
    agent_store *kept;
    a2a_agent *engine;
    a2a_handler handler;
    bool is_loaded;
    bool is_closed;
    size_t count;
    stream streams[TASKS];
    size_t works;
    work work[TASKS * (KILLS + 1)];
} agent;

static agent self;

/* One line a write, so that no line is cut when the process dies. */
static void say(const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    CHECK(write(STDOUT_FILENO, line, (size_t)len) == len);
}

static const char *find_id(const char *json, size_t len, char out[ID_BYTES])
{
    arena memory;
    json_doc doc;
    static const char *const places[] = {"/task/id", "/statusUpdate/taskId",
                                         "/artifactUpdate/taskId"};
    arena_init(&memory, SIZE_MAX);
    CHECK(json_parse(&doc, (bay_str){json, len}, NULL, &memory, NULL) == BAY_OK);
    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        bay_str id;
        if (json_str_plain(json_pointer(json_root(&doc), str_of(places[i])), &id)) {
            snprintf(out, ID_BYTES, "%.*s", (int)id.len, id.at);
        }
    }
    arena_fini(&memory);
    return out;
}

static bay_err on_event(a2a_call *call, a2a_event *event)
{
    stream *at = (stream *)call;
    bay_str json = a2a_event_json(event);
    find_id(json.at, json.len, at->id);
    char kind = str_starts(json, STR("{\"task\"")) ? 'T' : 'E';
    say("%c %s %llu %d\n", kind, at->id, (unsigned long long)a2a_event_sequence(event),
        a2a_event_is_last(event));
    at->is_over = at->is_over || a2a_event_is_last(event);
    return BAY_OK;
}

static void on_end(a2a_call *call)
{
    ((stream *)call)->is_closed = true;
}

static void on_fail(a2a_call *call, const a2a_fault *fault)
{
    stream *at = (stream *)call;
    say("F %s %d %s\n", at->id[0] != '\0' ? at->id : "-", (int)fault->error, fault->text);
    at->is_over = at->is_closed = true;
}

static void on_result(a2a_call *call, bay_str json)
{
    (void)call;
    (void)json;
}

static bay_str on_field(a2a_call *call, bay_str name)
{
    (void)call;
    (void)name;
    return (bay_str){NULL, 0};
}

static const a2a_call_ops ops = {on_result, on_event, on_end, on_fail, on_field};

static void start(stream *at, a2a_method method, uint64_t last_event_id)
{
    arena_init(&at->memory, 1 << 20);
    CHECK(json_parse(&at->doc, str_of(at->text), NULL, &at->memory, NULL) == BAY_OK);
    at->call = (a2a_call){.ops = &ops,
                          .method = method,
                          .version = A2A_1_0,
                          .params = json_root(&at->doc),
                          .memory = &at->memory,
                          .last_event_id = last_event_id};
    a2a_service *service = a2a_agent_service(self.engine);
    service->call(service, &at->call);
}

static size_t count_chunks(a2a_turn *turn)
{
    buf text;
    arena memory;
    json_doc doc;
    buf_init(&text, SIZE_MAX / 2);
    arena_init(&memory, SIZE_MAX);
    CHECK(a2a_turn_task(turn, &text) == BAY_OK);
    CHECK(json_parse(&doc, buf_view(&text), NULL, &memory, NULL) == BAY_OK);
    size_t count = json_count(json_pointer(json_root(&doc), STR("/artifacts/0/parts")));
    arena_fini(&memory);
    buf_fini(&text);
    return count;
}

static void on_turn(void *user, a2a_turn *turn)
{
    (void)user;
    CHECK(self.works < ARRAY_LEN(self.work));
    work *at = &self.work[self.works++];
    *at = (work){.turn = a2a_turn_ref(turn)};
    if (a2a_turn_is_resumed(turn)) {
        at->chunks = (int)count_chunks(turn); /* what is kept need not be done again */
    } else {
        CHECK(a2a_turn_status(turn, A2A_WORKING, JSON_NONE, JSON_NONE) == BAY_OK);
    }
}

/* One step of one task. */
static void step(work *at)
{
    arena memory;
    json_doc doc;
    char words[CHUNK_BYTES];
    char text[CHUNK_BYTES + 100];
    if (at->turn == NULL) {
        return;
    }
    if (at->chunks == planned->chunks) {
        CHECK(a2a_turn_status(at->turn, A2A_COMPLETED, JSON_NONE, JSON_NONE) == BAY_OK);
        a2a_turn_end(at->turn);
        a2a_turn_unref(at->turn);
        at->turn = NULL;
        return;
    }
    snprintf(text, sizeof(text), "{\"artifactId\":\"a\",\"parts\":[{\"text\":\"%s\"}]}",
             chunk_text(at->chunks, words));
    arena_init(&memory, SIZE_MAX);
    CHECK(json_parse(&doc, str_of(text), NULL, &memory, NULL) == BAY_OK);
    CHECK(a2a_turn_artifact(at->turn, json_root(&doc), at->chunks > 0,
                            at->chunks == planned->chunks - 1) == BAY_OK);
    at->chunks++;
    arena_fini(&memory);
}

static uint64_t now(void *user)
{
    (void)user;
    return loop_time_ms();
}

static void wake(void *user, uint64_t at_ms)
{
    (void)user;
    (void)at_ms;
}

static void loaded(void *user, const agent_store_loaded *told)
{
    (void)user;
    CHECK(told->err == BAY_OK && told->refused == 0);
    self.is_loaded = true;
}

static void closed(void *user)
{
    (void)user;
    self.is_closed = true;
}

static void open_agent(const char *path)
{
    static const char card[] = "{\"capabilities\":{\"streaming\":true}}";
    store_options options = agent_store_suits();
    bay_diag diag;
    CHECK(loop_new(&self.loop) == BAY_OK);
    CHECK(store_open_sqlite(self.loop, str_of(path), &options, &self.store, &diag) == BAY_OK);
    CHECK(agent_store_new(self.store, STR("killed"), &self.kept) == BAY_OK);
    self.handler = (a2a_handler){.turn = on_turn};
    a2a_agent_options agent_options = {.handler = &self.handler,
                                       .persistence = agent_store_persistence(self.kept),
                                       .card = literal_json(card),
                                       .extended_card = {"", 0},
                                       .now = now,
                                       .wake = wake};
    CHECK(a2a_agent_new(&agent_options, &self.engine) == BAY_OK);
    CHECK(agent_store_load(self.kept, self.engine, true, loaded, NULL) == BAY_OK);
    while (!self.is_loaded) {
        loop_turn(self.loop, 20);
    }
}

static void close_agent(void)
{
    a2a_agent_free(self.engine);
    store_close(self.store, closed, NULL);
    while (!self.is_closed) {
        loop_turn(self.loop, 20);
    }
    agent_store_free(self.kept);
    store_free(self.store);
    for (size_t i = 0; i < self.count; i++) {
        arena_fini(&self.streams[i].memory);
    }
    loop_free(self.loop);
}

/* Its input names the tasks that clients know, each with the last event that they had. */
static void resume_streams(void)
{
    char line[128];
    unsigned long long last;
    while (self.count < TASKS && fgets(line, sizeof(line), stdin) != NULL) {
        stream *at = &self.streams[self.count++];
        char id[ID_BYTES];
        CHECK(sscanf(line, "%39s %llu", id, &last) == 2);
        snprintf(at->id, sizeof(at->id), "%s", id);
        snprintf(at->text, sizeof(at->text), "{\"id\":\"%s\"}", id);
        start(at, A2A_SUBSCRIBE_TO_TASK, last);
    }
}

static bool is_busy(void)
{
    bool busy = !agent_store_is_idle(self.kept);
    for (size_t i = 0; i < self.count; i++) {
        busy = busy || !self.streams[i].is_over;
    }
    for (size_t i = 0; i < self.works; i++) {
        busy = busy || self.work[i].turn != NULL;
    }
    return busy;
}

static int run_agent(const char *path)
{
    open_agent(path);
    resume_streams();
    a2a_agent_tick(self.engine);
    for (int turns = 0; turns < TURNS && (turns == 0 || self.count < planned->tasks || is_busy());
         turns++) {
        for (int i = 0; i < 20 && self.count < planned->tasks; i++) {
            stream *at = &self.streams[self.count++];
            snprintf(at->text, sizeof(at->text),
                     "{\"message\":{\"messageId\":\"%d-%zu\",\"role\":\"ROLE_USER\",\"parts\":[{"
                     "\"text\":\"hi\"}]}}",
                     (int)getpid(), self.count);
            start(at, A2A_SEND_STREAMING_MESSAGE, 0);
        }
        for (size_t i = 0; i < self.works; i++) {
            step(&self.work[i]);
        }
        loop_turn(self.loop, 1);
    }
    CHECK(!is_busy());
    close_agent();
    return 0;
}

/* ---- its clients */

typedef struct known {
    char id[ID_BYTES];
    unsigned long long last;
    int ends;
} known;

typedef struct clients {
    char path[64];
    size_t count;
    known tasks[TASKS * (KILLS + 1)];
    size_t lines;
} clients;

static known *client_of(clients *all, const char *id)
{
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->tasks[i].id, id) == 0) {
            return &all->tasks[i];
        }
    }
    assert_true(all->count < ARRAY_LEN(all->tasks));
    known *made = &all->tasks[all->count++];
    *made = (known){.last = 0};
    snprintf(made->id, sizeof(made->id), "%s", id);
    return made;
}

static void hear(clients *all, const char *line)
{
    char kind;
    char id[ID_BYTES];
    unsigned long long sequence;
    int is_last;
    if (sscanf(line, "%c %39s %llu %d", &kind, id, &sequence, &is_last) != 4 || kind == 'F') {
        fail_msg("the agent says: %s", line);
    }
    known *task = client_of(all, id);
    all->lines++;
    if (kind == 'T') {
        assert_int_equal(task->last, 0); /* who comes back gets what it missed, not the task */
        assert_int_equal(sequence, 1);
    } else {
        assert_int_equal(sequence, task->last + 1);
    }
    task->last = sequence;
    task->ends += is_last;
    assert_true(task->ends <= 1);
}

/* Starts the agent; `enough` lines later it is killed (0: it may end by itself). */
static void play(clients *all, size_t enough)
{
    int in[2];
    int out[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        close(out[0]);
        execl("/proc/self/exe", "agent", all->path, planned->name, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    for (size_t i = 0; i < all->count; i++) {
        if (all->tasks[i].ends == 0) {
            dprintf(in[1], "%s %llu\n", all->tasks[i].id, all->tasks[i].last);
        }
    }
    close(in[1]);
    FILE *lines = fdopen(out[0], "r");
    assert_non_null(lines);
    char line[256];
    bool is_killed = false;
    for (size_t heard = 0; fgets(line, sizeof(line), lines) != NULL; heard++) {
        hear(all, line);
        if (enough > 0 && heard >= enough && !is_killed) {
            is_killed = true; /* what it said before is still read */
            kill(child, SIGKILL);
        }
    }
    fclose(lines);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (is_killed) {
        assert_true(WIFSIGNALED(status));
    } else {
        assert_true(enough == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* What is in the file at the end, read by an agent in this process. */
static void check_task(const clients *all, json_val task, size_t *found)
{
    char words[CHUNK_BYTES];
    int number = 0;
    assert_true(json_str_eq(json_pointer(task, STR("/status/state")), STR("TASK_STATE_COMPLETED")));
    assert_int_equal(json_count(json_get(task, STR("artifacts"))), 1);
    json_iter it = json_iter_of(json_pointer(task, STR("/artifacts/0/parts")));
    for (; json_next(&it); number++) {
        assert_true(
            json_str_eq(json_get(it.value, STR("text")), str_of(chunk_text(number, words))));
    }
    assert_int_equal(number, planned->chunks);
    for (size_t i = 0; i < all->count; i++) {
        *found += json_str_eq(json_get(task, STR("id")), str_of(all->tasks[i].id));
    }
}

typedef struct listing {
    stream stream;
    const clients *all;
    size_t found;
    char token[80];
    bool is_over;
} listing;

static void on_page(a2a_call *call, bay_str json)
{
    listing *at = (listing *)call;
    arena memory;
    json_doc doc;
    bay_str token;
    arena_init(&memory, SIZE_MAX);
    assert_int_equal(json_parse(&doc, json, NULL, &memory, NULL), BAY_OK);
    json_iter it = json_iter_of(json_get(json_root(&doc), STR("tasks")));
    while (json_next(&it)) {
        check_task(at->all, it.value, &at->found);
    }
    assert_true(json_str_plain(json_get(json_root(&doc), STR("nextPageToken")), &token));
    snprintf(at->token, sizeof(at->token), "%.*s", (int)token.len, token.at);
    at->is_over = token.len == 0;
    arena_fini(&memory);
}

static size_t look_at_all(const clients *all)
{
    static const a2a_call_ops list_ops = {on_page, on_event, on_end, on_fail, on_field};
    listing at = {.all = all};
    open_agent(all->path);
    a2a_agent_tick(self.engine);
    assert_int_equal(self.works, 0); /* nothing is left to do */
    while (!at.is_over) {
        stream *call = &at.stream;
        snprintf(call->text, sizeof(call->text),
                 "{\"pageSize\":100,\"includeArtifacts\":true,\"pageToken\":\"%s\"}", at.token);
        arena_init(&call->memory, 1 << 20);
        assert_int_equal(json_parse(&call->doc, str_of(call->text), NULL, &call->memory, NULL),
                         BAY_OK);
        call->call = (a2a_call){.ops = &list_ops,
                                .method = A2A_LIST_TASKS,
                                .version = A2A_1_0,
                                .params = json_root(&call->doc),
                                .memory = &call->memory};
        a2a_service *service = a2a_agent_service(self.engine);
        service->call(service, &call->call);
        arena_fini(&call->memory);
    }
    close_agent();
    return at.found;
}

static void remove_file(const char *path)
{
    char other[80];
    unlink(path);
    snprintf(other, sizeof(other), "%s-wal", path);
    unlink(other);
    snprintf(other, sizeof(other), "%s-shm", path);
    unlink(other);
}

static void survive(const char *name)
{
    static clients all;
    memset(&all, 0, sizeof(all));
    memset(&self, 0, sizeof(self));
    planned = plan_of(name);
    strncpy(all.path, "/tmp/patchbay-killed-XXXXXX", sizeof(all.path) - 1);
    int file = mkstemp(all.path);
    assert_true(file >= 0);
    close(file);
    for (size_t i = 0; i < planned->kills; i++) {
        play(&all, planned->lines + planned->more * i);
    }
    play(&all, 0);
    size_t completed = 0;
    for (size_t i = 0; i < all.count; i++) {
        completed += all.tasks[i].ends == 1;
        assert_int_equal(all.tasks[i].last, 2 + planned->chunks + 1);
    }
    assert_true(completed >= planned->tasks);
    assert_int_equal(completed, all.count);
    assert_int_equal(look_at_all(&all), all.count);
    remove_file(all.path);
}

static void many_tasks_survive(void **state)
{
    (void)state;
    survive("many");
}

static void long_tasks_survive(void **state)
{
    (void)state;
    survive("long");
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[0], "agent") == 0) {
        planned = plan_of(argv[2]);
        return run_agent(argv[1]);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_tasks_survive),
                                       cmocka_unit_test(long_tasks_survive)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
