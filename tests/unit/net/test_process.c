/* Child processes: what they say, how they end, and that none is left behind. */
#include "support/net_test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/child.h"
#include "net/process.h"

typedef struct child {
    loop *loop;
    process *process;
    buf out; /* every line, each followed by '|' */
    buf err;
    int lines;
    int drained;
    int overflows;
    int exits;
    int late;
    int status;
    int signal;
    bool frees_on_line;
} child;

static void on_line(void *user, bay_str line)
{
    child *self = user;
    self->lines++;
    self->late += self->exits;
    buf_str(&self->out, line);
    buf_char(&self->out, '|');
    if (self->frees_on_line) {
        process_free(self->process);
        self->process = NULL;
    }
}

static void on_error_line(void *user, bay_str line)
{
    child *self = user;
    self->late += self->exits;
    buf_str(&self->err, line);
    buf_char(&self->err, '|');
}

static void on_drained(void *user)
{
    ((child *)user)->drained++;
}

static void on_overflow(void *user, size_t line_bytes)
{
    assert_true(line_bytes > 0);
    ((child *)user)->overflows++;
}

static void on_exited(void *user, int exit_status, int number)
{
    child *self = user;
    self->exits++;
    self->status = exit_status;
    self->signal = number;
}

static const process_events events = {.line = on_line,
                                      .error_line = on_error_line,
                                      .drained = on_drained,
                                      .overflow = on_overflow,
                                      .exited = on_exited};

static void start_with(child *self, const process_options *options)
{
    *self = (child){.loop = test_loop()};
    buf_init(&self->out, (size_t)64 << 20);
    buf_init(&self->err, (size_t)1 << 20);
    bay_diag diag = {.code = BAY_OK};
    assert_int_equal(process_start(self->loop, options, &events, self, &self->process, &diag),
                     BAY_OK);
    assert_true(process_id(self->process) > 0);
}

static void start(child *self, const char *script)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    start_with(self, &(process_options){.argv = argv});
}

static void finish(child *self)
{
    assert_int_equal(self->late, 0);
    process_free(self->process);
    loop_free(self->loop);
    buf_fini(&self->out);
    buf_fini(&self->err);
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left to reap */
    assert_int_equal(errno, ECHILD);
}

static void expect_out(child *self, const char *text)
{
    assert_int_equal(self->out.len, strlen(text));
    assert_memory_equal(self->out.at, text, self->out.len);
}

/* --- what cannot be started ------------------------------------------------------------------- */

static void what_cannot_be_started_says_why(void **state)
{
    (void)state;
    int before = open_descriptors();
    static const struct {
        const char *command;
        const char *cwd;
        bay_err err;
        const char *needle;
    } cases[] = {
        {"", NULL, BAY_ERR_INVALID, "command"},
        {"patchbay-no-such-program", NULL, BAY_ERR_SPAWN, "is it installed and on PATH?"},
        {"/nonexistent/program", NULL, BAY_ERR_SPAWN, "is it installed"},
        {"/etc/passwd", NULL, BAY_ERR_SPAWN, "ermission"},
        {"/", NULL, BAY_ERR_SPAWN, "\"/\""},
        {"cat", "/nonexistent", BAY_ERR_SPAWN, "/nonexistent"},
    };
    loop *on = test_loop();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *argv[] = {cases[i].command, NULL};
        process_options options = {.argv = argv, .cwd = cases[i].cwd};
        process *made = NULL;
        bay_diag diag = {.code = BAY_OK};
        assert_int_equal(process_start(on, &options, &events, NULL, &made, &diag), cases[i].err);
        assert_non_null(strstr(diag.text, cases[i].needle));
        assert_null(made);
    }
    loop_free(on);
    assert_int_equal(open_descriptors(), before);
}

/* --- what it says ----------------------------------------------------------------------------- */

static void cat_gives_back_each_line_and_ends_with_its_stdin(void **state)
{
    (void)state;
    child self;
    const char *argv[] = {"cat", NULL};
    start_with(&self, &(process_options){.argv = argv});
    assert_int_equal(process_write(self.process, STR("one")), BAY_OK);
    assert_int_equal(process_write(self.process, STR("")), BAY_OK);
    assert_int_equal(process_write(self.process, STR("{\"a\":\"\xff\"}")), BAY_OK);
    turn_until(self.loop, self.lines == 3);
    expect_out(&self, "one||{\"a\":\"\xff\"}|");
    process_close(self.process, 60000, 60000);
    process_close(self.process, 0, 0);
    assert_int_equal(process_write(self.process, STR("x")), BAY_ERR_CLOSED);
    turn_until(self.loop, self.exits == 1);
    assert_int_equal(self.status, 0);
    assert_int_equal(self.signal, 0);
    finish(&self);
    assert_int_equal(self.exits, 1);
}

static void stderr_comes_line_by_line_and_overlong_lines_are_cut(void **state)
{
    (void)state;
    child self;
    start(&self, "echo first >&2; head -c 10000 /dev/zero | tr '\\0' x >&2; echo >&2; "
                 "printf last >&2; exit 3");
    turn_until(self.loop, self.exits == 1);
    assert_int_equal(self.status, 3);
    assert_int_equal(self.err.len, 6 + 4097 + 5);
    assert_memory_equal(self.err.at + 6 + 4097, "last|", 5);
    finish(&self);
}

static void garbage_is_only_lines(void **state)
{
    (void)state;
    child self;
    start(&self, "printf 'a\\000b\\n\\377\\n\\r\\n'; head -c 30000 /dev/urandom; echo; echo end");
    turn_until(self.loop, self.exits == 1);
    assert_true(self.lines >= 5);
    assert_memory_equal(self.out.at, "a\0b|\xff||", 7);
    assert_memory_equal(self.out.at + self.out.len - 4, "end|", 4);
    finish(&self);
}

static void one_line_above_the_bound_ends_the_process(void **state)
{
    (void)state;
    child self;
    const char *argv[] = {"sh", "-c", "echo ok; while :; do printf 123456789; done", NULL};
    start_with(&self, &(process_options){.argv = argv, .line_bytes = 1000});
    turn_until(self.loop, self.exits == 1);
    assert_int_equal(self.overflows, 1);
    assert_int_equal(self.signal, SIGKILL);
    expect_out(&self, "ok|");
    finish(&self);
}

static void its_environment_and_directory_are_what_was_asked(void **state)
{
    (void)state;
    child self;
    const char *argv[] = {"/bin/sh", "-c", "pwd; echo $WORD; echo ${HOME-none}; ls /proc/self/fd",
                          NULL};
    const char *env[] = {"WORD=green", "PATH=/bin:/usr/bin", NULL};
    start_with(&self, &(process_options){.argv = argv, .env = env, .cwd = "/"});
    turn_until(self.loop, self.exits == 1);
    expect_out(&self, "/|green|none|0|1|2|3|"); /* 3 is of ls itself */
    finish(&self);
}

static void a_child_that_does_not_read_holds_the_writer_back(void **state)
{
    (void)state;
    child self;
    const char *argv[] = {"sh", "-c", "read go; wc -c", NULL};
    start_with(&self, &(process_options){.argv = argv, .queue_bytes = 300000});
    char line[10000];
    memset(line, 'x', sizeof(line));
    kill(process_id(self.process), SIGSTOP);
    int sent = 0;
    bay_err err = BAY_OK;
    bool was_asked_to_stop = false;
    for (int i = 0; i < 200 && err != BAY_ERR_LIMIT; i++) {
        err = process_write(self.process, (bay_str){line, sizeof(line)});
        was_asked_to_stop |= err == BAY_ERR_AGAIN;
        sent += err != BAY_ERR_LIMIT;
    }
    assert_int_equal(err, BAY_ERR_LIMIT);
    assert_true(was_asked_to_stop);
    kill(process_id(self.process), SIGCONT);
    turn_until(self.loop, self.drained == 1);
    process_close(self.process, 60000, 60000);
    turn_until(self.loop, self.exits == 1);
    char expected[32];
    snprintf(expected, sizeof(expected), "%d|", (sent - 1) * 10001);
    expect_out(&self, expected);
    finish(&self);
}

static void a_paused_owner_loses_no_line_of_a_dead_child(void **state)
{
    (void)state;
    child self;
    start(&self, "echo 1; echo 2; echo 3");
    process_pause(self.process);
    siginfo_t about = {.si_pid = 0};
    assert_int_equal(waitid(P_PID, (id_t)process_id(self.process), &about, WEXITED | WNOWAIT), 0);
    for (int i = 0; i < 20; i++) {
        loop_turn(self.loop, 0);
    }
    assert_int_equal(self.exits, 0);
    assert_int_equal(self.lines, 0);
    process_resume(self.process);
    turn_until(self.loop, self.exits == 1);
    expect_out(&self, "1|2|3|");
    finish(&self);
}

/* --- how it ends ------------------------------------------------------------------------------ */

/* It lives on and reads no more: whoever waits for its answer hears of its end instead. */
static void a_child_that_closed_its_stdin_is_ended(void **state)
{
    (void)state;
    child self;
    start(&self, "exec <&-; echo deaf; sleep 100");
    turn_until(self.loop, self.lines == 1);
    assert_int_equal(process_write(self.process, STR("hello")), BAY_OK); /* leaves with the turn */
    turn_until(self.loop, self.exits == 1);
    assert_int_equal(self.signal, SIGTERM);
    finish(&self);
}

static void a_child_deaf_to_its_stdin_gets_sigterm(void **state)
{
    (void)state;
    child self;
    start(&self, "echo up; exec sleep 1000");
    turn_until(self.loop, self.lines == 1);
    process_close(self.process, 5, 60000);
    turn_until(self.loop, self.exits == 1);
    assert_int_equal(self.signal, SIGTERM);
    finish(&self);
}

static void a_child_deaf_to_sigterm_gets_sigkill(void **state)
{
    (void)state;
    child self;
    start(&self, "trap '' TERM; echo up; while :; do sleep 1000; done");
    turn_until(self.loop, self.lines == 1);
    process_close(self.process, 5, 5);
    turn_until(self.loop, self.exits == 1);
    assert_int_equal(self.signal, SIGKILL);
    finish(&self);
}

static void a_child_killed_from_outside_is_noticed(void **state)
{
    (void)state;
    for (int by_signal = 0; by_signal < 2; by_signal++) {
        child_watch_prefer_signals(by_signal == 1);
        child self;
        start(&self, "echo up; exec sleep 1000");
        turn_until(self.loop, self.lines == 1);
        kill(process_id(self.process), SIGKILL);
        turn_until(self.loop, self.exits == 1);
        assert_int_equal(self.signal, SIGKILL);
        assert_int_equal(self.status, -1);
        finish(&self);
        child_watch_prefer_signals(false);
    }
}

static void a_child_that_ends_its_stdout_is_closed(void **state)
{
    (void)state;
    child self;
    start(&self, "exec >&-; read line; exit 7"); /* the end of its stdin lets it go */
    turn_until(self.loop, self.exits == 1);
    assert_int_equal(self.status, 7);
    finish(&self);
}

static bool is_gone(pid_t pid)
{
    char path[64];
    char text[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return true;
    }
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[len] = '\0';
    const char *state_at = strrchr(text, ')');
    return state_at == NULL || state_at[2] == 'Z' || state_at[2] == 'X';
}

static void a_grandchild_that_holds_the_pipe_goes_with_its_group(void **state)
{
    (void)state;
    child self;
    start(&self, "sleep 1000 & echo $!; exit 5");
    turn_until(self.loop, self.exits == 1);
    assert_int_equal(self.status, 5);
    buf_char(&self.out, '\0');
    pid_t grandchild = (pid_t)strtol(self.out.at, NULL, 10);
    assert_true(grandchild > 0);
    turn_until(self.loop, is_gone(grandchild));
    finish(&self);
}

static void a_grandchild_that_left_the_group_goes_too(void **state)
{
    (void)state;
    child self;
    start(&self, "setsid sh -c 'echo $$; exec sleep 1000' & read go; exit 0");
    turn_until(self.loop, self.lines == 1);
    buf_char(&self.out, '\0');
    pid_t grandchild = (pid_t)strtol(self.out.at, NULL, 10);
    assert_int_equal(process_write(self.process, STR("go")), BAY_OK);
    turn_until(self.loop, self.exits == 1);
    turn_until(self.loop, is_gone(grandchild));
    finish(&self);
}

static void freeing_kills_and_says_nothing(void **state)
{
    (void)state;
    int before = open_descriptors();
    child self;
    start(&self, "trap '' TERM; echo up; while :; do sleep 1000; done");
    self.frees_on_line = true;
    pid_t pid = process_id(self.process);
    turn_until(self.loop, self.lines == 1);
    turn_until(self.loop, is_gone(pid));
    finish(&self);
    assert_int_equal(self.exits, 0);
    start(&self, "exec sleep 1000");
    pid = process_id(self.process);
    self.process = NULL; /* left to the loop */
    finish(&self);
    assert_true(is_gone(pid));
    assert_int_equal(self.exits, 0);
    assert_int_equal(open_descriptors(), before);
}

/* A stand-in for our own process: starts a child, tells its number, waits to be killed. */
static _Noreturn void be_parent(int report_fd)
{
    loop *on = NULL;
    process *made = NULL;
    const char *argv[] = {"sh", "-c", "trap '' TERM HUP; exec sleep 1000", NULL};
    process_options options = {.argv = argv};
    if (loop_new(&on) != BAY_OK ||
        process_start(on, &options, &events, NULL, &made, NULL) != BAY_OK) {
        _exit(1);
    }
    int pid = process_id(made);
    if (write(report_fd, &pid, sizeof(pid)) != (ssize_t)sizeof(pid)) {
        _exit(1);
    }
    for (;;) {
        pause();
    }
}

static void when_we_are_killed_our_child_is_gone(void **state)
{
    (void)state;
    /* The orphan comes to us, so that its death can be waited for rather than polled. */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        be_parent(ends[1]);
    }
    int orphan = 0;
    assert_int_equal(read(ends[0], &orphan, sizeof(orphan)), sizeof(orphan));
    assert_int_equal(kill(parent, SIGKILL), 0);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    int status = 0;
    assert_int_equal(waitpid(orphan, &status, 0), orphan);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

static void many_processes_leave_no_descriptor_behind(void **state)
{
    (void)state;
    int before = open_descriptors();
    for (int i = 0; i < 20; i++) {
        child_watch_prefer_signals(i % 2 == 1);
        child self;
        start(&self, "read line; echo $line");
        assert_int_equal(process_write(self.process, STR("hello")), BAY_OK);
        turn_until(self.loop, self.exits == 1);
        expect_out(&self, "hello|");
        finish(&self);
    }
    child_watch_prefer_signals(false);
    assert_int_equal(open_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cat_gives_back_each_line_and_ends_with_its_stdin),
        cmocka_unit_test(what_cannot_be_started_says_why),
        cmocka_unit_test(stderr_comes_line_by_line_and_overlong_lines_are_cut),
        cmocka_unit_test(garbage_is_only_lines),
        cmocka_unit_test(one_line_above_the_bound_ends_the_process),
        cmocka_unit_test(its_environment_and_directory_are_what_was_asked),
        cmocka_unit_test(a_child_that_does_not_read_holds_the_writer_back),
        cmocka_unit_test(a_paused_owner_loses_no_line_of_a_dead_child),
        cmocka_unit_test(a_child_that_closed_its_stdin_is_ended),
        cmocka_unit_test(a_child_deaf_to_its_stdin_gets_sigterm),
        cmocka_unit_test(a_child_deaf_to_sigterm_gets_sigkill),
        cmocka_unit_test(a_child_killed_from_outside_is_noticed),
        cmocka_unit_test(a_child_that_ends_its_stdout_is_closed),
        cmocka_unit_test(a_grandchild_that_holds_the_pipe_goes_with_its_group),
        cmocka_unit_test(a_grandchild_that_left_the_group_goes_too),
        cmocka_unit_test(freeing_kills_and_says_nothing),
        cmocka_unit_test(when_we_are_killed_our_child_is_gone),
        cmocka_unit_test(many_processes_leave_no_descriptor_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
