/* What belongs to the process: the allocator, before anything else, and where lines go: to the sink
 * of the object whose loop turns, else to that of the process. */
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "net/thread.h"
#include "patchbay/library.h"
#include "unit/sdk/sdk_bench.h"

static atomic_size_t taken;
static atomic_size_t given;

static void *count_alloc(size_t bytes, void *user)
{
    assert_ptr_equal(user, &taken);
    atomic_fetch_add(&taken, 1);
    return malloc(bytes);
}

static void *count_resize(void *old, size_t bytes, void *user)
{
    assert_ptr_equal(user, &taken);
    if (old == NULL) {
        atomic_fetch_add(&taken, 1);
    }
    return realloc(old, bytes);
}

static void count_release(void *old, void *user)
{
    assert_ptr_equal(user, &taken);
    atomic_fetch_add(&given, old != NULL);
    free(old);
}

static const bay_allocator counting = {sizeof(counting), count_alloc, count_resize, count_release,
                                       &taken};

/* The first of all: the process is still without an object. */
static void an_allocator_that_is_not_whole_is_refused(void **state)
{
    (void)state;
    bay_allocator bad[] = {counting, counting, counting, counting};
    bad[0].size--;
    bad[1].alloc = NULL;
    bad[2].resize = NULL;
    bad[3].release = NULL;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(bay_set_allocator(&bad[i]), BAY_ERR_INVALID);
    }
    assert_int_equal(bay_set_allocator(NULL), BAY_ERR_INVALID);
}

static void everything_comes_from_it_and_goes_back(void **state)
{
    (void)state;
    rig on;
    assert_int_equal(bay_set_allocator(&counting), BAY_OK);
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, reply_ok, NULL);
    assert_true(atomic_load(&taken) > 0);
    rig_start(&on, server);
    rig_client(&on, "2025-11-25");
    assert_has(rig_call(&on, "t"), "ok");
    rig_stop(&on);
    assert_int_equal(atomic_load(&taken), atomic_load(&given));
}

static void it_cannot_be_changed_under_way(void **state)
{
    (void)state;
    assert_int_equal(bay_set_allocator(&counting), BAY_ERR_STATE);
}

/* ---- the log */

typedef struct heard {
    atomic_int lines;
    char text[1024];
} heard;

static void listen_in(bay_log_level level, const char *component, const char *text, void *user)
{
    heard *self = user;
    (void)level;
    assert_true(strlen(component) > 0);
    snprintf(self->text, sizeof(self->text), "%s", text);
    atomic_fetch_add(&self->lines, 1);
}

static void forget_to_answer(bay_call *call, void *user)
{
    (void)call;
    (void)user; /* the server says so in its log */
}

static bay_server *forgetful(heard *into, bool is_blocking)
{
    bay_server *server = bay_server_new("s", "1");
    bay_tool *tool = bay_server_tool_schema(server, "t", NULL, NULL, forget_to_answer, NULL);
    if (is_blocking) {
        bay_tool_blocking(tool);
    }
    if (into != NULL) {
        bay_server_log_to(server, BAY_LOG_LEVEL_DEBUG, listen_in, into);
    }
    return server;
}

/* Serves one call from two descriptors. */
static void serve_one(bay_server *server)
{
    int in[2];
    int out[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":"
                               "{\"name\":\"t\"," META "}}}\n";
    assert_int_equal(write(in[1], line, strlen(line)), (ssize_t)strlen(line));
    close(in[1]);
    assert_int_equal(bay_server_pipe(server, in[0], out[1], NULL), BAY_OK);
    assert_int_equal(bay_server_run(server, NULL), BAY_OK);
    bay_server_free(server);
    close(in[0]);
    close(out[0]);
    close(out[1]);
}

static void lines_of_a_server_go_to_its_own_sink(void **state)
{
    (void)state;
    heard process = {.lines = 0};
    bay_log_to(BAY_LOG_LEVEL_DEBUG, listen_in, &process);
    for (int is_blocking = 0; is_blocking < 2; is_blocking++) {
        heard first = {.lines = 0};
        heard second = {.lines = 0};
        serve_one(forgetful(&first, is_blocking != 0));
        serve_one(forgetful(&second, is_blocking != 0));
        assert_int_equal(atomic_load(&first.lines), 1);
        assert_has(first.text, "returned without an answer");
        assert_int_equal(atomic_load(&second.lines), 1);
    }
    assert_int_equal(atomic_load(&process.lines), 0);
    bay_log_to(BAY_LOG_LEVEL_DEBUG, NULL, NULL);
}

static void others_go_to_that_of_the_process(void **state)
{
    (void)state;
    heard process = {.lines = 0};
    heard own = {.lines = 0};
    bay_log_to(BAY_LOG_LEVEL_DEBUG, listen_in, &process);
    serve_one(forgetful(NULL, false));
    assert_int_equal(atomic_load(&process.lines), 1);
    /* Also after a server with a sink of its own has run on this thread. */
    serve_one(forgetful(&own, false));
    LOG(LOG_ERROR, "test", "outside any loop");
    assert_int_equal(atomic_load(&process.lines), 2);
    assert_string_equal(process.text, "outside any loop");
    bay_log_to(BAY_LOG_LEVEL_DEBUG, NULL, NULL);
    serve_one(forgetful(NULL, false));
    assert_int_equal(atomic_load(&process.lines), 2);
}

static void answer_badly(void *argument)
{
    bay_call_error_json(argument, -32001, "no", bay_json_of("{"));
}

static bay_call *held;

static void hold(bay_call *call, void *user)
{
    (void)user;
    held = bay_call_defer(call);
}

/* What a thread of the program's own is told of belongs to the server as well. */
static void lines_of_other_threads_go_there_too(void **state)
{
    (void)state;
    rig on;
    net_thread thread;
    heard own = {.lines = 0};
    bay_server *server = bay_server_new("s", "1");
    bay_server_log_to(server, BAY_LOG_LEVEL_DEBUG, listen_in, &own);
    bay_server_tool_schema(server, "t", NULL, NULL, hold, NULL);
    rig_start(&on, server);
    rig_client(&on, "2025-11-25");
    rig_send(&on, "tools/call", "\"name\":\"t\"", "");
    assert_int_equal(net_thread_start(&thread, answer_badly, held), BAY_OK);
    net_thread_join(&thread);
    rig_stop(&on);
    assert_int_equal(atomic_load(&own.lines), 1);
    assert_has(own.text, "is no JSON");
}

static void levels_are_each_sinks_own(void **state)
{
    (void)state;
    heard own = {.lines = 0};
    bay_server *server = forgetful(&own, false);
    bay_server_log_to(server, BAY_LOG_LEVEL_ERROR, listen_in, &own);
    bay_server_log_to(NULL, BAY_LOG_LEVEL_ERROR, listen_in, &own);
    const log_target *before = log_direct(&server->log);
    assert_null(before);
    assert_true(log_wants(LOG_ERROR));
    assert_false(log_wants(LOG_WARN));
    assert_ptr_equal(log_direct(before), &server->log);
    assert_false(log_wants(LOG_ERROR));
    bay_server_free(server);
}

static void a_terminal_is_told_of_what_it_would_obey(void **state)
{
    (void)state;
    const bay_str text = STR("a\x1b[2J\n\xe2\x80\xae\xff\xc3\xa9");
    char got[200];
    int outer;
    int inner;
    assert_int_equal(openpty(&outer, &inner, NULL, NULL, NULL), 0);
    FILE *terminal = fdopen(inner, "w");
    bay_print(terminal, text);
    fflush(terminal);
    static const char shown[] = "a\\u{1b}[2J\r\n\\u{202e}\\x{ff}\xc3\xa9"; /* CR: the terminal's */
    size_t len = 0;
    while (len < sizeof(shown) - 1) { /* a terminal hands on what it has so far */
        ssize_t part = read(outer, got + len, sizeof(got) - len);
        assert_true(part > 0);
        len += (size_t)part;
    }
    assert_int_equal(len, sizeof(shown) - 1);
    assert_memory_equal(got, shown, sizeof(shown) - 1);
    fclose(terminal);
    close(outer);
    FILE *file = tmpfile();
    bay_print(file, (bay_str){NULL, 0});
    bay_print(file, text);
    rewind(file);
    assert_int_equal(fread(got, 1, sizeof(got), file), text.len);
    assert_memory_equal(got, text.at, text.len);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocator_that_is_not_whole_is_refused),
        cmocka_unit_test(everything_comes_from_it_and_goes_back),
        cmocka_unit_test(it_cannot_be_changed_under_way),
        cmocka_unit_test(lines_of_a_server_go_to_its_own_sink),
        cmocka_unit_test(others_go_to_that_of_the_process),
        cmocka_unit_test(lines_of_other_threads_go_there_too),
        cmocka_unit_test(levels_are_each_sinks_own),
        cmocka_unit_test(a_terminal_is_told_of_what_it_would_obey),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
