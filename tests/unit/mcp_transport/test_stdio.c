/* A server on two descriptors: lines in, lines out, and when it is over. */
#include <signal.h>

#include "mcp_transport/stdio.h"
#include "support/server_rig.h"

typedef struct lines {
    loop *loop;
    test_service service;
    mcp_stdio *stdio;
    int in;  /* what the server reads */
    int out; /* what it writes */
    char got[65536];
    size_t got_len;
    bool is_over;
    int done;
    bool frees_when_done;
} lines;

#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
#define HOLD                                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"hold\"}}\n"

static void on_done(void *user)
{
    lines *self = user;
    self->done++;
    if (self->frees_when_done) {
        mcp_stdio_free(self->stdio);
        self->stdio = NULL;
    }
}

static void start(lines *self, uint32_t linger_ms)
{
    int in[2];
    int out[2];
    *self = (lines){0};
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    self->in = in[1];
    self->out = out[0];
    assert_int_equal(fcntl(self->out, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    service_open(&self->service, 0);
    assert_int_equal(mcp_stdio_new(self->loop, self->service.engine, in[0], out[1], linger_ms,
                                   on_done, self, &self->stdio),
                     BAY_OK);
}

static void say(lines *self, const char *text)
{
    assert_int_equal(write(self->in, text, strlen(text)), strlen(text));
}

static void pump(lines *self)
{
    ssize_t got;
    while (self->out >= 0 && (got = read(self->out, self->got + self->got_len,
                                         sizeof(self->got) - 1 - self->got_len)) >= 0) {
        self->is_over = got == 0;
        self->got_len += (size_t)got;
        if (self->is_over) {
            return;
        }
    }
}

static bool has(const lines *self, const char *text)
{
    return strstr(self->got, text) != NULL;
}

static void close_end(int *end)
{
    if (*end >= 0) {
        close(*end);
    }
    *end = -1;
}

static void stop(lines *self)
{
    mcp_stdio_free(self->stdio);
    while (self->service.held_count > 0) {
        service_finish(&self->service);
    }
    mcp_server_free(self->service.engine);
    loop_free(self->loop);
    close_end(&self->in);
    close_end(&self->out);
}

static void begin(lines *self)
{
    say(self, WIRE_INITIALIZE "\n" INITIALIZED);
    TURN_UNTIL(self->loop, pump(self), has(self, "\"id\":0,\"result\""));
}

static void it_is_over_when_the_input_is(void **state)
{
    lines self;
    (void)state;
    start(&self, 60000);
    close_end(&self.in);
    TURN_UNTIL(self.loop, (void)0, self.done == 1);
    for (int i = 0; i < 10; i++) {
        (void)loop_turn(self.loop, 0);
    }
    assert_int_equal(self.done, 1);
    stop(&self);
}

static void answers_are_written_before_the_end(void **state)
{
    lines self;
    (void)state;
    start(&self, 60000);
    self.frees_when_done = true;
    begin(&self);
    say(&self, HOLD);
    close_end(&self.in);
    TURN_UNTIL(self.loop, (void)0, self.service.held_count == 1);
    for (int i = 0; i < 10; i++) {
        (void)loop_turn(self.loop, 0);
    }
    assert_int_equal(self.done, 0);
    service_finish(&self.service);
    TURN_UNTIL(self.loop, (void)0, self.done == 1);
    /* The loop is never turned again: what was written is in the pipe by now. */
    pump(&self);
    assert_true(has(&self, "was held"));
    stop(&self);
}

static void an_answer_larger_than_the_pipe_is_waited_for(void **state)
{
    lines self;
    (void)state;
    start(&self, 60000);
    begin(&self);
    say(&self, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
               "\"large\"}}\n");
    close_end(&self.in);
    for (int i = 0; i < 50; i++) {
        (void)loop_turn(self.loop, 0);
    }
    assert_int_equal(self.done, 0); /* a pipe takes 64 KiB, the answer has 5 MiB */
    size_t read_bytes = 0;
    TURN_UNTIL(self.loop, (pump(&self), read_bytes += self.got_len, self.got_len = 0),
               self.done == 1);
    pump(&self);
    assert_true(read_bytes + self.got_len > LARGE_BYTES);
    stop(&self);
}

static void a_call_that_never_ends_is_left_after_the_linger(void **state)
{
    lines self;
    (void)state;
    start(&self, 1);
    begin(&self);
    say(&self, HOLD);
    TURN_UNTIL(self.loop, (void)0, self.service.held_count == 1);
    close_end(&self.in);
    TURN_UNTIL(self.loop, (void)0, self.done == 1);
    assert_int_equal(self.service.cancelled, 1);
    stop(&self);
}

static void a_broken_output_ends_it(void **state)
{
    lines self;
    (void)state;
    start(&self, 60000);
    begin(&self);
    say(&self, HOLD);
    TURN_UNTIL(self.loop, (void)0, self.service.held_count == 1);
    close_end(&self.out);
    say(&self, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n");
    TURN_UNTIL(self.loop, (void)0, self.done == 1);
    assert_int_equal(self.service.cancelled, 1);
    stop(&self);
}

static void a_line_is_a_message_however_it_ends(void **state)
{
    lines self;
    (void)state;
    start(&self, 60000);
    begin(&self);
    say(&self, "\n  \r\n\t\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\r\n");
    TURN_UNTIL(self.loop, pump(&self), has(&self, "\"id\":2"));
    assert_false(has(&self, "-32700"));
    say(&self, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}"); /* the last has no end */
    close_end(&self.in);
    TURN_UNTIL(self.loop, pump(&self), self.done == 1);
    pump(&self);
    assert_true(has(&self, "\"id\":3,\"result\":{}}\n"));
    stop(&self);
}

static void no_line_end_stands_inside_a_message(void **state)
{
    lines self;
    (void)state;
    start(&self, 60000);
    begin(&self);
    mcp_server_log(self.service.engine, MCP_LOG_ERROR,
                   STR("{\"level\":\"error\",\r\n\"data\":\n\"two\"}"));
    TURN_UNTIL(self.loop, pump(&self), has(&self, "two"));
    assert_true(has(&self, "{\"level\":\"error\",  \"data\": \"two\"}"));
    stop(&self);
}

static void the_engine_may_go_first(void **state)
{
    lines self;
    (void)state;
    start(&self, 60000);
    begin(&self);
    mcp_server_free(self.service.engine);
    self.service.engine = NULL;
    TURN_UNTIL(self.loop, (void)0, self.done == 1);
    stop(&self);
}

static void bad_descriptors_are_refused(void **state)
{
    loop *made;
    test_service service;
    mcp_stdio *stdio = NULL;
    (void)state;
    assert_int_equal(loop_new(&made), BAY_OK);
    service_open(&service, 0);
    assert_int_not_equal(mcp_stdio_new(made, service.engine, -1, -1, 1, on_done, NULL, &stdio),
                         BAY_OK);
    assert_null(stdio);
    mcp_server_free(service.engine);
    loop_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_descriptors_are_refused),
        cmocka_unit_test(a_broken_output_ends_it),
        cmocka_unit_test(a_call_that_never_ends_is_left_after_the_linger),
        cmocka_unit_test(it_is_over_when_the_input_is),
        cmocka_unit_test(answers_are_written_before_the_end),
        cmocka_unit_test(an_answer_larger_than_the_pipe_is_waited_for),
        cmocka_unit_test(a_line_is_a_message_however_it_ends),
        cmocka_unit_test(no_line_end_stands_inside_a_message),
        cmocka_unit_test(the_engine_may_go_first),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
