/* Each allocation of this module fails once, in turn: nothing crashes, hangs or leaks, and each
 * object that reported its beginning reports its end. */
#include "support/net_test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/line_stream.h"
#include "net/process.h"
#include "net/socket.h"

static bool is_counting;
static long left_until_failure; /* negative: none fails */
static bool has_failed;

static bool fails_now(void)
{
    if (is_counting && left_until_failure-- == 0) {
        has_failed = true;
        return true;
    }
    return false;
}

static void *failing_alloc(size_t bytes, void *user)
{
    (void)user;
    return fails_now() ? NULL : malloc(bytes);
}

static void *failing_resize(void *old, size_t bytes, void *user)
{
    (void)user;
    return fails_now() ? NULL : realloc(old, bytes);
}

static void plain_release(void *old, void *user)
{
    (void)user;
    free(old);
}

/* Runs the story with the first, the second, … allocation failing, until none is left to fail. */
static void fail_each(void (*story)(void))
{
    long number = 0;
    do {
        left_until_failure = number++;
        has_failed = false;
        is_counting = true;
        story();
        is_counting = false;
        assert_true(number < 1000);
    } while (has_failed);
    assert_true(number > 3);
}

/* --- sockets ---------------------------------------------------------------------------------- */

typedef struct end {
    net_socket *socket;
    size_t got;
    int begun;
    int closed;
} end;

static char block[1 << 20];

static void on_connected(void *user)
{
    end *self = user;
    socket_read_start(self->socket);
    (void)socket_write_one(self->socket, (bay_str){block, sizeof(block)});
    (void)socket_write_one(self->socket, (bay_str){block, 10});
}

static void on_data(void *user, bay_str bytes)
{
    end *self = user;
    self->got += bytes.len;
    if (self->got == sizeof(block) + 10) {
        socket_close(self->socket, 1000);
    }
}

static void on_eof(void *user)
{
    socket_close(((end *)user)->socket, 1000);
}

static void on_closed(void *user, bay_err reason, const char *text)
{
    (void)reason;
    assert_non_null(text);
    end *self = user;
    self->socket = NULL;
    self->closed++;
}

static const socket_events events = {
    .connected = on_connected, .data = on_data, .eof = on_eof, .closed = on_closed};

static void on_accepted(void *user, net_socket *socket)
{
    end *self = user;
    self->socket = socket;
    self->begun++;
    socket_set_events(socket, &events, self);
}

static void socket_story(void)
{
    loop *on = NULL;
    if (loop_new(&on) != BAY_OK) {
        return;
    }
    end server = {.got = 0};
    end client = {.got = 0};
    socket_listener *listener = NULL;
    if (socket_listen(on, STR("127.0.0.1:0"), NULL, on_accepted, &server, &listener, NULL) ==
            BAY_OK &&
        socket_connect(on, STR("localhost"), socket_listener_port(listener), NULL, STR(""), 5000,
                       &events, &client, &client.socket) == BAY_OK) {
        client.begun++;
        turn_until(on, client.closed == 1 && server.closed == server.begun);
    }
    loop_free(on);
    assert_int_equal(client.closed, client.begun);
    assert_int_equal(server.closed, server.begun);
}

static void sockets_survive_every_failed_allocation(void **state)
{
    (void)state;
    fail_each(socket_story);
}

/* --- processes -------------------------------------------------------------------------------- */

typedef struct child {
    process *process;
    int lines;
    int exits;
} child;

static void on_line(void *user, bay_str line)
{
    (void)line;
    child *self = user;
    self->lines++;
    process_close(self->process, 1000, 1000);
}

static void on_exited(void *user, int exit_status, int number)
{
    (void)exit_status;
    (void)number;
    ((child *)user)->exits++;
}

static const process_events child_events = {.line = on_line, .exited = on_exited};

static void process_story(void)
{
    loop *on = NULL;
    if (loop_new(&on) != BAY_OK) {
        return;
    }
    child self = {.lines = 0};
    const char *argv[] = {"cat", NULL};
    process_options options = {.argv = argv};
    bay_diag diag = {.code = BAY_OK};
    if (process_start(on, &options, &child_events, &self, &self.process, &diag) == BAY_OK) {
        bay_err err = process_write(self.process, (bay_str){block, 300000});
        if (err != BAY_OK && err != BAY_ERR_AGAIN) {
            process_close(self.process, 0, 0);
        }
        turn_until(on, self.exits == 1);
        process_free(self.process);
    } else {
        assert_int_not_equal(diag.code, BAY_OK);
    }
    loop_free(on);
}

static void processes_survive_every_failed_allocation(void **state)
{
    (void)state;
    memset(block, 'x', sizeof(block));
    fail_each(process_story);
}

/* --- the loop --------------------------------------------------------------------------------- */

static void count(void *argument)
{
    (*(int *)argument)++;
}

static void note_signal(void *argument, int number)
{
    *(int *)argument = number;
}

static void loop_story(void)
{
    loop *on = NULL;
    if (loop_new(&on) != BAY_OK) {
        return;
    }
    int expected = 0;
    int runs = 0;
    loop_timer timers[200];
    for (size_t i = 0; i < 200; i++) {
        loop_timer_init(&timers[i], count, &runs);
        expected += loop_timer_start(on, &timers[i], 0) == BAY_OK;
    }
    expected += loop_post(on, count, &runs) == BAY_OK;
    int worked = 0;
    int expected_work = loop_work(on, count, count, &worked) == BAY_OK ? 2 : 0;
    int seen = 0;
    bool listens = loop_on_signal(on, SIGUSR1, note_signal, &seen) == BAY_OK;
    loop_run(on);
    if (listens) {
        kill(getpid(), SIGUSR1);
        turn_until(on, seen == SIGUSR1);
    }
    loop_free(on);
    assert_int_equal(runs, expected);
    assert_int_equal(worked, expected_work);
}

static void loops_survive_every_failed_allocation(void **state)
{
    (void)state;
    fail_each(loop_story);
}

int main(void)
{
    const mem_hooks hooks = {failing_alloc, failing_resize, plain_release, NULL};
    mem_set_hooks(&hooks);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_survive_every_failed_allocation),
        cmocka_unit_test(sockets_survive_every_failed_allocation),
        cmocka_unit_test(processes_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
