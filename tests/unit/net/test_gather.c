/* Small writes that leave together at the end of the loop's turn: in order, wholly, and whatever
 * becomes of their socket in that turn. The other end is a plain descriptor, looked at while the
 * loop stands still. */
#include "support/net_test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/socket.h"
#include "net/stream_queue.h"
#include "support/failing_memory.h"

typedef struct pair {
    net_socket *socket;
    int peer;
    int drained;
    int eof;
    int closed;
    bay_err reason;
    const char *says_when_drained;
    loop *loop;
    loop_task task;
} pair;

static void on_data(void *user, bay_str bytes)
{
    pair *self = user;
    assert_int_equal(socket_write_one(self->socket, bytes), BAY_OK); /* an echo */
}

static void on_eof(void *user)
{
    ((pair *)user)->eof++;
}

static void on_drained(void *user)
{
    pair *self = user;
    self->drained++;
    if (self->says_when_drained != NULL) {
        bay_err err = socket_write_one(self->socket, str_of(self->says_when_drained));
        assert_true(err == BAY_OK || err == BAY_ERR_AGAIN); /* a block may be landing still */
        self->says_when_drained = NULL;
    }
}

static void on_closed(void *user, bay_err reason, const char *text)
{
    pair *self = user;
    (void)text;
    self->closed++;
    self->reason = reason;
    self->socket = NULL;
}

static const socket_events events = {
    .data = on_data, .eof = on_eof, .drained = on_drained, .closed = on_closed};

static bool pair_open(pair *self, loop *on)
{
    int ends[2];
    *self = (pair){.peer = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    self->peer = ends[0];
    if (socket_open(on, ends[1], &events, self, &self->socket) != BAY_OK) {
        close(self->peer);
        return false;
    }
    socket_gather(self->socket);
    return true;
}

static void pair_close(pair *self, loop *on)
{
    socket_abort(self->socket);
    turn_until(on, self->closed == 1);
    close(self->peer);
}

static void say(pair *self, const char *text)
{
    assert_int_equal(socket_write_one(self->socket, str_of(text)), BAY_OK);
}

/* What the peer has got by now; -1: nothing, and it may still come. */
static ssize_t got(const pair *self, char *at, size_t cap)
{
    ssize_t count = recv(self->peer, at, cap - 1, MSG_DONTWAIT);
    assert_true(count >= 0 || errno == EAGAIN);
    at[count > 0 ? count : 0] = '\0';
    return count;
}

static void assert_got(const pair *self, const char *text)
{
    char at[256];
    assert_int_equal(got(self, at, sizeof(at)), strlen(text));
    assert_string_equal(at, text);
}

static void assert_silent(const pair *self)
{
    char at[256];
    assert_int_equal(got(self, at, sizeof(at)), -1);
}

static void assert_over(const pair *self)
{
    char at[256];
    assert_int_equal(got(self, at, sizeof(at)), 0);
}

static void writes_of_a_turn_leave_together_at_its_end(void **state)
{
    (void)state;
    loop *on = test_loop();
    pair self;
    assert_true(pair_open(&self, on));
    say(&self, "one ");
    say(&self, "two ");
    assert_silent(&self);
    assert_int_equal(socket_queued_bytes(self.socket), 0); /* it counts as taken */
    (void)loop_turn(on, 0);
    assert_got(&self, "one two ");
    assert_int_equal(self.drained, 0);
    say(&self, "three");
    assert_silent(&self);
    (void)loop_turn(on, 0);
    assert_got(&self, "three");
    pair_close(&self, on);
    loop_free(on);
}

/* One of several sockets that become readable in one turn, each with work to do for its answer. */
typedef struct worker {
    pair pair;
    struct worker *all;
    size_t *called;
    size_t *in_time; /* answers of this turn that had left when the last worker was called */
} worker;

enum { WORKERS = 5 }; /* the clock is read at every second answer */

static void work(void *user, bay_str bytes)
{
    worker *self = user;
    char at[64];
    if (++*self->called == WORKERS) {
        for (size_t i = 0; i < WORKERS; i++) {
            *self->in_time += got(&self->all[i].pair, at, sizeof(at)) > 0;
        }
    }
    uint64_t end = uv_hrtime() + (uint64_t)STREAM_GATHER_WAIT_US * 1000;
    while (uv_hrtime() < end) {
    }
    assert_int_equal(socket_write_one(self->pair.socket, bytes), BAY_OK);
}

static void an_answer_does_not_wait_for_all_other_handlers(void **state)
{
    (void)state;
    static const socket_events working = {.data = work, .closed = on_closed};
    loop *on = test_loop();
    worker all[WORKERS];
    size_t called = 0;
    size_t in_time = 0;
    for (size_t i = 0; i < WORKERS; i++) {
        assert_true(pair_open(&all[i].pair, on));
        all[i].all = all;
        all[i].called = &called;
        all[i].in_time = &in_time;
        socket_set_events(all[i].pair.socket, &working, &all[i]);
        socket_read_start(all[i].pair.socket);
        assert_int_equal(send(all[i].pair.peer, "work", 4, 0), 4);
    }
    (void)loop_turn(on, 0);
    assert_int_equal(called, WORKERS);
    assert_int_equal(in_time, WORKERS - 1);
    for (size_t i = 0; i < WORKERS; i++) {
        pair_close(&all[i].pair, on);
    }
    loop_free(on);
}

static void an_answer_leaves_before_the_loop_waits_again(void **state)
{
    (void)state;
    loop *on = test_loop();
    pair self;
    assert_true(pair_open(&self, on));
    socket_read_start(self.socket);
    assert_int_equal(write(self.peer, "hello", 5), 5);
    (void)loop_turn(on, 20); /* one event; it is not the answer's leaving */
    assert_got(&self, "hello");
    pair_close(&self, on);
    loop_free(on);
}

static void on_late(void *argument)
{
    say(argument, "late");
}

static void says_late_and_stops(void *argument)
{
    pair *self = argument;
    say(self, "late");
    loop_stop(self->loop);
}

static void defers_it(void *argument)
{
    pair *self = argument;
    loop_defer(self->loop, &self->task);
    loop_stop(self->loop);
}

/* Whoever turned the loop may never do it again. */
static void nothing_stays_when_the_loop_returns(void **state)
{
    (void)state;
    loop *on = test_loop();
    loop_timer timer;
    pair self;
    assert_true(pair_open(&self, on));
    self.loop = on;
    loop_timer_init(&timer, on_late, &self);
    assert_int_equal(loop_timer_start(on, &timer, 1), BAY_OK);
    turn_until(on, timer.heap_index == 0); /* a turn may end with its timers */
    assert_got(&self, "late");
    void (*const ways[])(void *) = {says_late_and_stops, on_late};
    for (size_t i = 0; i < 2; i++) {
        self.task = (loop_task){.function = ways[i], .argument = &self};
        assert_int_equal(loop_post(on, defers_it, &self), BAY_OK);
        loop_run(on);
        assert_got(&self, "late");
    }
    pair_close(&self, on);
    loop_free(on);
}

static void it_leaves_when_the_socket_is_aborted(void **state)
{
    (void)state;
    loop *on = test_loop();
    pair self;
    assert_true(pair_open(&self, on));
    say(&self, "last words");
    socket_abort(self.socket);
    assert_got(&self, "last words");
    turn_until(on, self.closed == 1);
    assert_int_equal(self.reason, BAY_OK);
    assert_over(&self);
    close(self.peer);
    loop_free(on);
}

static void it_leaves_when_the_loop_is_freed(void **state)
{
    (void)state;
    loop *on = test_loop();
    pair self;
    assert_true(pair_open(&self, on));
    say(&self, "last words");
    loop_free(on);
    assert_int_equal(self.closed, 1);
    assert_got(&self, "last words");
    assert_over(&self);
    close(self.peer);
}

static void it_leaves_before_our_half_ends(void **state)
{
    (void)state;
    loop *on = test_loop();
    pair self;
    assert_true(pair_open(&self, on));
    socket_read_start(self.socket);
    say(&self, "all of it");
    socket_shutdown(self.socket);
    assert_int_equal(socket_write_one(self.socket, STR("more")), BAY_ERR_CLOSED);
    (void)loop_turn(on, 0);
    assert_got(&self, "all of it");
    assert_over(&self);
    assert_int_equal(self.closed, 0); /* the other half goes on */
    close(self.peer);
    turn_until(on, self.eof == 1);
    self.peer = -1;
    socket_abort(self.socket);
    turn_until(on, self.closed == 1);
    loop_free(on);
}

static void it_leaves_before_a_graceful_end(void **state)
{
    (void)state;
    loop *on = test_loop();
    pair self;
    assert_true(pair_open(&self, on));
    say(&self, "all of it");
    socket_close(self.socket, 0);
    (void)loop_turn(on, 0);
    assert_got(&self, "all of it");
    assert_over(&self);
    close(self.peer);
    turn_until(on, self.closed == 1);
    assert_int_equal(self.reason, BAY_OK);
    loop_free(on);
}

static void more_than_is_gathered_goes_at_once_and_in_order(void **state)
{
    (void)state;
    static char block[STREAM_GATHER_BYTES];
    static char at[2 * STREAM_GATHER_BYTES];
    memset(block, 'b', sizeof(block));
    loop *on = test_loop();
    pair self;
    assert_true(pair_open(&self, on));
    say(&self, "a");
    assert_silent(&self);
    assert_int_equal(socket_write_one(self.socket, (bay_str){block, sizeof(block)}), BAY_OK);
    assert_int_equal(got(&self, at, sizeof(at)), 1 + sizeof(block));
    assert_int_equal(at[0], 'a');
    assert_int_equal(at[sizeof(block)], 'b');
    assert_int_equal(socket_write_one(self.socket, (bay_str){block, sizeof(block)}), BAY_OK);
    assert_silent(&self); /* it just fits */
    say(&self, "c");
    assert_int_equal(got(&self, at, sizeof(at)), sizeof(block) + 1);
    assert_int_equal(at[sizeof(block)], 'c');
    pair_close(&self, on);
    loop_free(on);
}

static void only_so_many_sockets_are_gathered(void **state)
{
    (void)state;
    static pair pairs[STREAM_GATHER_QUEUES + 1];
    loop *on = test_loop();
    for (size_t i = 0; i <= STREAM_GATHER_QUEUES; i++) {
        assert_true(pair_open(&pairs[i], on));
        say(&pairs[i], "x");
    }
    assert_silent(&pairs[0]);
    assert_silent(&pairs[STREAM_GATHER_QUEUES - 1]);
    assert_got(&pairs[STREAM_GATHER_QUEUES], "x");
    socket_abort(pairs[0].socket); /* makes room */
    say(&pairs[STREAM_GATHER_QUEUES], "y");
    assert_silent(&pairs[STREAM_GATHER_QUEUES]);
    (void)loop_turn(on, 0);
    for (size_t i = 0; i < STREAM_GATHER_QUEUES; i++) {
        assert_got(&pairs[i], "x");
    }
    assert_got(&pairs[STREAM_GATHER_QUEUES], "y");
    for (size_t i = 0; i <= STREAM_GATHER_QUEUES; i++) {
        pair_close(&pairs[i], on);
    }
    loop_free(on);
}

/* The kernel takes a part of what was gathered: the rest follows, in order, and is told of. */
static void what_the_kernel_does_not_take_follows_in_order(void **state)
{
    (void)state;
    enum { BLOCK = 1000, WRITES = 4000 };
    static char at[BLOCK * WRITES];
    loop *on = test_loop();
    pair self;
    assert_true(pair_open(&self, on));
    socket_set_limits(self.socket, 1, sizeof(at) + 1);
    char block[BLOCK];
    size_t sent = 0;
    bay_err err = BAY_OK;
    while (err == BAY_OK && sent < WRITES) { /* until the peer's buffer is full */
        memset(block, 'a' + (int)(sent % 26), sizeof(block));
        err = socket_write_one(self.socket, (bay_str){block, sizeof(block)});
        sent++;
        (void)loop_turn(on, 0);
        if (socket_queued_bytes(self.socket) > 0) {
            break;
        }
    }
    assert_true(socket_queued_bytes(self.socket) > 0);
    for (int i = 0; i < 3; i++) { /* behind what flies nothing is gathered */
        memset(block, 'a' + (int)(sent % 26), sizeof(block));
        assert_int_equal(socket_write_one(self.socket, (bay_str){block, sizeof(block)}),
                         BAY_ERR_AGAIN);
        sent++;
    }
    self.says_when_drained = "end";
    size_t len = 0;
    for (int turns = 0; turns < NET_TEST_TURNS && len < sent * BLOCK + 3; turns++) {
        ssize_t count = recv(self.peer, at + len, sizeof(at) - len, MSG_DONTWAIT);
        len += count > 0 ? (size_t)count : 0;
        (void)loop_turn(on, 0);
    }
    assert_int_equal(len, sent * BLOCK + 3);
    for (size_t i = 0; i < sent * BLOCK; i++) {
        assert_int_equal(at[i], 'a' + (int)(i / BLOCK % 26));
    }
    assert_memory_equal(at + sent * BLOCK, "end", 3);
    assert_true(self.drained >= 1);
    pair_close(&self, on);
    loop_free(on);
}

static void a_peer_that_is_gone_is_noticed_when_it_leaves(void **state)
{
    (void)state;
    loop *on = test_loop();
    pair self, other;
    assert_true(pair_open(&self, on));
    assert_true(pair_open(&other, on));
    close(self.peer);
    say(&self, "nobody hears");
    say(&other, "heard");
    (void)loop_turn(on, 0);
    assert_got(&other, "heard"); /* one's end is not the other's */
    turn_until(on, self.closed == 1);
    assert_int_equal(self.reason, BAY_ERR_CLOSED);
    pair_close(&other, on);
    loop_free(on);
}

static void without_memory_it_goes_at_once(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        loop *on = NULL;
        pair self;
        if (loop_new(&on) == BAY_OK) {
            if (pair_open(&self, on)) {
                say(&self, "one ");
                say(&self, "two");
                (void)loop_turn(on, 0);
                assert_got(&self, "one two");
                pair_close(&self, on);
            }
            loop_free(on);
        }
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_of_a_turn_leave_together_at_its_end),
        cmocka_unit_test(an_answer_does_not_wait_for_all_other_handlers),
        cmocka_unit_test(an_answer_leaves_before_the_loop_waits_again),
        cmocka_unit_test(nothing_stays_when_the_loop_returns),
        cmocka_unit_test(it_leaves_when_the_socket_is_aborted),
        cmocka_unit_test(it_leaves_when_the_loop_is_freed),
        cmocka_unit_test(it_leaves_before_our_half_ends),
        cmocka_unit_test(it_leaves_before_a_graceful_end),
        cmocka_unit_test(more_than_is_gathered_goes_at_once_and_in_order),
        cmocka_unit_test(only_so_many_sockets_are_gathered),
        cmocka_unit_test(what_the_kernel_does_not_take_follows_in_order),
        cmocka_unit_test(a_peer_that_is_gone_is_noticed_when_it_leaves),
        cmocka_unit_test(without_memory_it_goes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
