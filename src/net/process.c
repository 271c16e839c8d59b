/* A child process that exchanges lines.
 *
 *     running --stdin or stdout ends / process_close--> closing --term_ms--> SIGTERM
 *        |                                                 |            --kill_ms--> SIGKILL
 *        +------------------ it died ----------------------+
 *                               |
 *                 dead: reads what is left, at most GRACE_MS
 *                               |
 *           group killed, reaped, descendants killed, `exited` called --process_free--> freed
 *
 * Invariants
 * - The child is reaped only after its group was killed: until then the zombie keeps the number of
 *   the group from being reused.
 * - process_free never waits: what is still alive is killed, and the object remains without an
 *   owner until it is reaped (loop_free waits for that).
 * - `exited` is the last event and comes from the loop. */
#include "net/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "net/child.h"
#include "net/descendants.h"
#include "net/line_stream.h"
#include "net/loop_internal.h"

#define GRACE_MS 250    /* for what is left in the pipes of a dead child */
#define LAST_LOOK_MS 50 /* after its group was killed */
#define ORPHAN_MS 2000  /* a child that closed stdin or stdout: to SIGTERM, then to SIGKILL */
#define ERROR_LINE_BYTES 4096
#define QUEUE_BYTES ((size_t)64 * 1024 * 1024)
#define QUEUE_HIGH_BYTES ((size_t)256 * 1024)

struct process {
    loop_object object;
    loop *loop;
    const process_events *events; /* NULL: the owner has freed it */
    void *user;
    line_writer *input;
    line_reader *output;
    line_reader *errors;
    child_watch watch;
    loop_timer close_timer;
    loop_timer grace_timer;
    pid_t pid;
    uint64_t mark; /* of its descendants */
    int folder;    /* of a sandboxed child in /proc: held, so that its rule stays; -1: none */
    uint32_t kill_ms;
    int exit_status;
    int exit_signal;
    bool is_output_end;
    bool is_errors_end;
    bool is_closing;
    bool is_terminated; /* SIGTERM was sent */
    bool is_dead;
    bool is_group_killed;
    bool is_reaped;
};

static void kill_group(process *self, int number)
{
    /* A child may have moved itself to another group; then only the child can be signalled. */
    if (!self->is_reaped && kill(-self->pid, number) != 0) {
        (void)kill(self->pid, number);
    }
}

/* --- the end ---------------------------------------------------------------------------------- */

static void close_streams(process *self)
{
    line_writer_free(self->input);
    line_reader_free(self->output);
    line_reader_free(self->errors);
    self->input = NULL;
    self->output = self->errors = NULL;
}

/* See sandbox_landlock.c. */
static void hold_folder(process *self)
{
    char path[40];
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)self->pid);
    self->folder = open(path, O_PATH | O_CLOEXEC); /* without it only a convenience is missing */
}

static void release_folder(process *self)
{
    if (self->folder >= 0) {
        close(self->folder);
    }
    self->folder = -1;
}

static void reap(process *self)
{
    kill_group(self, SIGKILL);
    child_reap(self->pid, &self->exit_status, &self->exit_signal);
    descendants_kill(self->mark);
    release_folder(self);
    self->is_reaped = true;
}

static void on_watch_closed(void *user)
{
    process *self = user;
    loop_remove(&self->object);
    mem_free(self);
}

static void release(process *self)
{
    loop_timer_stop(self->loop, &self->close_timer);
    loop_timer_stop(self->loop, &self->grace_timer);
    child_watch_stop(&self->watch, on_watch_closed);
}

static void say_exited(process *self)
{
    loop_timer_stop(self->loop, &self->close_timer);
    loop_timer_stop(self->loop, &self->grace_timer);
    close_streams(self);
    reap(self);
    const process_events *events = self->events;
    self->events = NULL;
    if (events != NULL && events->exited != NULL) {
        events->exited(self->user, self->exit_status, self->exit_signal);
    }
}

static void say_exited_if_done(process *self)
{
    if (self->is_dead && !self->is_reaped && self->is_output_end && self->is_errors_end) {
        say_exited(self);
    }
}

/* A descendant holds a pipe open: it is killed; if the pipe is then still open, another process got
 * it through a socket. If the owner has paused, its lines are not dropped: it is waited for. */
static void on_grace_over(void *argument)
{
    process *self = argument;
    bool is_paused = !self->is_output_end && line_reader_is_paused(self->output);
    if (self->is_group_killed && !is_paused) {
        say_exited(self);
        return;
    }
    kill_group(self, SIGKILL);
    descendants_kill(self->mark);
    self->is_group_killed = true;
    if (loop_timer_start(self->loop, &self->grace_timer, is_paused ? GRACE_MS : LAST_LOOK_MS) !=
        BAY_OK) {
        say_exited(self);
    }
}

static void on_died(void *user)
{
    process *self = user;
    self->is_dead = true;
    if (self->events == NULL) {
        reap(self);
        release(self);
        return;
    }
    loop_timer_stop(self->loop, &self->close_timer);
    if (self->is_output_end && self->is_errors_end) {
        say_exited(self);
    } else if (loop_timer_start(self->loop, &self->grace_timer, GRACE_MS) != BAY_OK) {
        say_exited(self);
    }
}

static void on_close_timer(void *argument)
{
    process *self = argument;
    bool is_first = !self->is_terminated;
    self->is_terminated = true;
    kill_group(self, is_first ? SIGTERM : SIGKILL);
    if (is_first && loop_timer_start(self->loop, &self->close_timer, self->kill_ms) != BAY_OK) {
        kill_group(self, SIGKILL);
    }
}

void process_close(process *self, uint32_t term_ms, uint32_t kill_ms)
{
    if (self->is_closing || self->is_dead) {
        return;
    }
    self->is_closing = true;
    self->kill_ms = kill_ms;
    line_writer_close(self->input, term_ms);
    self->input = NULL;
    if (loop_timer_start(self->loop, &self->close_timer, term_ms) != BAY_OK) {
        kill_group(self, SIGKILL);
    }
}

void process_free(process *self)
{
    if (self == NULL) {
        return;
    }
    self->events = NULL;
    close_streams(self);
    if (self->is_dead && !self->is_reaped) {
        reap(self);
    }
    if (self->is_reaped) {
        release(self);
        return;
    }
    loop_timer_stop(self->loop, &self->close_timer);
    kill_group(self, SIGKILL); /* on_died does the rest */
}

static void end_object(loop_object *object)
{
    process_free(CONTAINER_OF(object, process, object));
}

/* --- lines ------------------------------------------------------------------------------------ */

static void on_line(void *user, bay_str line)
{
    process *self = user;
    if (self->events != NULL && self->events->line != NULL) {
        self->events->line(self->user, line);
    }
}

static void on_overflow(void *user, size_t line_bytes)
{
    process *self = user;
    kill_group(self, SIGKILL);
    if (self->events != NULL && self->events->overflow != NULL) {
        self->events->overflow(self->user, line_bytes);
    }
}

static void on_output_end(void *user, bay_err err)
{
    (void)err;
    process *self = user;
    self->is_output_end = true;
    if (!self->is_dead) {
        process_close(self, ORPHAN_MS, ORPHAN_MS); /* it cannot be used any more */
    }
    say_exited_if_done(self);
}

static void on_error_line(void *user, bay_str line)
{
    process *self = user;
    if (self->events != NULL && self->events->error_line != NULL) {
        self->events->error_line(self->user, line);
    }
}

static void on_errors_end(void *user, bay_err err)
{
    (void)err;
    process *self = user;
    self->is_errors_end = true;
    say_exited_if_done(self);
}

static void on_drained(void *user)
{
    process *self = user;
    if (self->events != NULL && self->events->drained != NULL) {
        self->events->drained(self->user);
    }
}

/* Callers whose requests it did not read would wait without end. */
static void on_input_closed(void *user, bay_err err)
{
    (void)err;
    process_close(user, ORPHAN_MS, ORPHAN_MS);
}

static void on_piece(void *user, bay_str piece, bool is_last)
{
    process *self = user;
    if (self->events != NULL) {
        self->events->piece(self->user, piece, is_last);
    }
}

static const line_reader_events output_events = {
    .line = on_line, .overflow = on_overflow, .end = on_output_end};
static const line_reader_events pieced_events = {
    .line = on_line, .piece = on_piece, .end = on_output_end};
static const line_reader_events error_events = {.line = on_error_line, .end = on_errors_end};
static const line_writer_events input_events = {.drained = on_drained, .closed = on_input_closed};

bay_err process_write(process *self, bay_str line)
{
    return self->input != NULL ? line_writer_write(self->input, line) : BAY_ERR_CLOSED;
}

void process_pause(process *self)
{
    if (self->output != NULL) {
        line_reader_pause(self->output);
    }
}

void process_resume(process *self)
{
    if (self->output != NULL) {
        line_reader_resume(self->output);
    }
}

int process_id(const process *self)
{
    return (int)self->pid;
}

/* --- starting --------------------------------------------------------------------------------- */

/* Three pipes; out_ours gets this process's ends, plan->fds the child's. */
static bay_err open_pipes(child_plan *plan, int out_ours[3])
{
    for (int i = 0; i < 3; i++) {
        int ends[2];
        if (child_pipe(ends) != BAY_OK) {
            return BAY_ERR_IO;
        }
        plan->fds[i] = ends[i == 0 ? 0 : 1];
        out_ours[i] = ends[i == 0 ? 1 : 0];
    }
    return BAY_OK;
}

static void close_all(int fds[3])
{
    for (int i = 0; i < 3; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
            fds[i] = -1;
        }
    }
}

static int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

static bay_err open_streams(process *self, const process_options *options, int ours[3])
{
    size_t queue_bytes = options->queue_bytes > 0 ? options->queue_bytes : QUEUE_BYTES;
    size_t high_bytes = queue_bytes / 2 < QUEUE_HIGH_BYTES ? queue_bytes / 2 : QUEUE_HIGH_BYTES;
    line_reader_options output = {.line_bytes = options->line_bytes,
                                  .reply_bytes = options->reply_bytes};
    line_reader_options errors = {.line_bytes = ERROR_LINE_BYTES, .cuts_overlong = true};
    bay_err err = line_writer_new(self->loop, take_fd(&ours[0]), high_bytes, queue_bytes,
                                  &input_events, self, &self->input);
    if (err == BAY_OK) {
        err = line_reader_new(self->loop, take_fd(&ours[1]), &output,
                              self->events->piece != NULL ? &pieced_events : &output_events, self,
                              &self->output);
    }
    if (err == BAY_OK) {
        err = line_reader_new(self->loop, take_fd(&ours[2]), &errors, &error_events, self,
                              &self->errors);
    }
    return err;
}

/* Everything that may fail for lack of memory precedes the fork. */
static bay_err start_child(process *self, const process_options *options, bay_diag *diag)
{
    child_plan plan = {
        .argv = options->argv,
        .env = options->env,
        .cwd = options->cwd,
        .fds = {-1, -1, -1},
        .sandbox = options->sandbox,
        .outlives_thread = options->outlives_thread,
        .mark = self->mark,
    };
    int ours[3] = {-1, -1, -1};
    bay_err err = open_pipes(&plan, ours);
    if (err == BAY_OK) {
        err = open_streams(self, options, ours);
    }
    if (err != BAY_OK) {
        (void)diag_set(diag, err, "cannot start \"%.100s\": no pipes or memory for it",
                       options->argv[0]);
    } else {
        err = child_start(&plan, &self->pid, diag);
    }
    if (err == BAY_OK && options->sandbox != NULL) {
        hold_folder(self);
    }
    close_all(plan.fds);
    close_all(ours);
    return err;
}

bay_err process_start(loop *on_loop, const process_options *options, const process_events *events,
                      void *user, process **out, bay_diag *diag)
{
    if (options->argv == NULL || options->argv[0] == NULL || options->argv[0][0] == '\0') {
        return diag_set(diag, BAY_ERR_INVALID, "a process needs a command");
    }
    process *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory for a process");
    }
    self->loop = on_loop;
    self->events = events;
    self->user = user;
    self->folder = -1;
    self->mark = descendants_mark();
    self->object.end = end_object;
    loop_timer_init(&self->close_timer, on_close_timer, self);
    loop_timer_init(&self->grace_timer, on_grace_over, self);
    bay_err err = start_child(self, options, diag);
    if (err == BAY_OK) {
        err = child_watch_start(on_loop, &self->watch, self->pid, on_died, self);
        if (err != BAY_OK) {
            reap(self);
            (void)diag_set(diag, err, "cannot watch \"%.100s\"", options->argv[0]);
        }
    }
    if (err != BAY_OK) {
        close_streams(self);
        mem_free(self);
        return err;
    }
    loop_add(on_loop, &self->object);
    line_reader_resume(self->output);
    line_reader_resume(self->errors);
    *out = self;
    return BAY_OK;
}
