/* The SQLite store: one thread takes the waiting operations, runs them as a group in one
 * transaction, and returns them to the loop.
 *
 *   loop: start ──queue──► thread: begin, rules, commit ──finished──► loop: done
 *
 * All operations that one loop iteration starts are passed on together at its end: they are one
 * group, and the thread is woken once.
 *
 * Invariants
 * - Under `lock`: the two queues, is_posted, is_closing, has_ended. Everything else of the file
 *   belongs to the thread from its start to its end.
 * - The message is posted only if is_posted says that it is not under way.
 * - An operation is completed only after the transaction with its change was committed. If a group
 *   fails, each of its operations is tried once more alone, so that none fails because of another.
 */
#include <errno.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/thread.h"
#include "store/sqlite_file.h"

enum {
    GROUP_OPS = 256,         /* in one transaction */
    RESULT_BYTES = 16 << 20, /* held for the loop: above it, the thread runs no further operation */
    BUSY_STEP_MS = 10,       /* at most, between two attempts to lock */
    PATH_BYTES = 4096,
};

typedef struct op_queue {
    store_op *first;
    store_op *last;
} op_queue;

typedef struct sqlite_store {
    store base;
    sqlite_file file;
    net_thread thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    op_queue started; /* in this iteration; used by the loop only */
    op_queue waiting;
    op_queue finished;
    size_t finished_bytes; /* of their results */
    bool is_posted;
    bool is_closing;
    bool has_ended;
    uint64_t give_up_at_ms; /* for the lock of the file; monotonic */
    uint32_t busy_ms;
    const log_target *log; /* the loop's log target, for the thread's lines */
    loop_message message;
    loop_task task;
    bool ends_with_task; /* the thread has ended, and the task has yet to run */
} sqlite_store;

static void queue_push(op_queue *queue, store_op *op)
{
    op->next = NULL;
    if (queue->last != NULL) {
        queue->last->next = op;
    } else {
        queue->first = op;
    }
    queue->last = op;
}

static void queue_push_front(op_queue *queue, store_op *op)
{
    op->next = queue->first;
    queue->first = op;
    queue->last = queue->last != NULL ? queue->last : op;
}

static void queue_append(op_queue *queue, op_queue *more)
{
    if (more->first != NULL) {
        if (queue->last != NULL) {
            queue->last->next = more->first;
        } else {
            queue->first = more->first;
        }
        queue->last = more->last;
        *more = (op_queue){0};
    }
}

static store_op *queue_pop(op_queue *queue)
{
    store_op *op = queue->first;
    if (op != NULL) {
        queue->first = op->next;
        queue->last = queue->first != NULL ? queue->last : NULL;
    }
    return op;
}

/* --- waiting for another process -------------------------------------------------------------- */

static uint64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits on the condition, so that closing need not wait for the time-out. */
static bool wait_for_lock(void *user, int tries)
{
    sqlite_store *self = user;
    uint64_t until_ms =
        monotonic_ms() + (tries < BUSY_STEP_MS ? (uint64_t)tries + 1 : BUSY_STEP_MS);
    struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                             .tv_nsec = (long)(until_ms % 1000) * 1000000};
    if (until_ms > self->give_up_at_ms) {
        return false;
    }
    pthread_mutex_lock(&self->lock);
    while (!self->is_closing &&
           pthread_cond_timedwait(&self->wake, &self->lock, &until) != ETIMEDOUT) {
    }
    bool is_closing = self->is_closing;
    pthread_mutex_unlock(&self->lock);
    return !is_closing;
}

/* --- the thread ------------------------------------------------------------------------------- */

typedef struct op_group {
    store_op *ops[GROUP_OPS];
    size_t count;
    size_t result_bytes;
    bool is_writing;
    bool is_durable;
} op_group;

static void group_add(op_group *group, store_op *op)
{
    group->ops[group->count++] = op;
    group->is_writing |= store_op_writes(op);
    group->is_durable |= store_op_writes(op) && !op->is_relaxed;
}

/* Stops early if the results become large: operations beyond `count` were not run. */
static bay_err group_attempt(sqlite_store *self, op_group *group)
{
    group->result_bytes = 0;
    self->give_up_at_ms = monotonic_ms() + self->busy_ms;
    bay_err err = sqlite_file_begin(&self->file, group->is_writing, group->is_durable);
    if (err != BAY_OK) {
        return err;
    }
    for (size_t i = 0; i < group->count && self->file.broken == BAY_OK; i++) {
        store_rules_run(&self->file.engine, group->ops[i]);
        group->result_bytes += group->ops[i]->memory.used;
        if (group->result_bytes > RESULT_BYTES) {
            group->count = i + 1;
        }
    }
    if (self->file.broken != BAY_OK) {
        err = self->file.broken;
        sqlite_file_roll_back(&self->file);
        return err;
    }
    return sqlite_file_commit(&self->file);
}

static void group_run(sqlite_store *self, op_group *group)
{
    bay_err err = group_attempt(self, group);
    if (err == BAY_OK) {
        return;
    }
    for (size_t i = 0; i < group->count; i++) {
        bay_err alone = err;
        /* The lock's holder would not release it for a single operation either. */
        if (err != BAY_ERR_TIMEOUT && group->count > 1) {
            op_group one = {.count = 0};
            group_add(&one, group->ops[i]);
            alone = group_attempt(self, &one);
        }
        if (alone != BAY_OK) {
            store_rules_fail(group->ops[i], alone);
        }
    }
}

/* Checks without a write lock whether a sweep has anything to remove. */
static void run_sweep(sqlite_store *self, store_op *op)
{
    store_cell cell;
    op_group group = {.count = 0};
    group_add(&group, op);
    self->give_up_at_ms = monotonic_ms() + self->busy_ms;
    bay_err err = sqlite_file_begin(&self->file, false, false);
    bool has_expired = err == BAY_OK &&
                       self->file.engine.calls->soonest(&self->file.engine, &cell) == BAY_OK &&
                       cell.expires_at_ms <= op->now_ms;
    if (err == BAY_OK) {
        sqlite_file_roll_back(&self->file);
    }
    store_rules_fail(op, err != BAY_OK ? err : self->file.broken);
    if (has_expired) {
        group.is_writing = true;
        group_run(self, &group);
    }
}

/* A sweep is a group of its own. */
static void take_group(sqlite_store *self, op_group *group)
{
    *group = (op_group){.count = 0};
    while (self->waiting.first != NULL && group->count < GROUP_OPS &&
           (group->count == 0 ||
            (self->waiting.first->kind != STORE_SWEEP && group->ops[0]->kind != STORE_SWEEP))) {
        group_add(group, queue_pop(&self->waiting));
    }
}

/* With the lock held. The loop outlives the store, so the message always arrives. */
static void post(sqlite_store *self)
{
    if (!self->is_posted) {
        self->is_posted = true;
        err_ignore(loop_post_message(self->base.loop, &self->message));
    }
}

static void thread_main(void *argument)
{
    sqlite_store *self = argument;
    op_group group;
    log_direct(self->log);
    pthread_mutex_lock(&self->lock);
    for (;;) {
        while ((self->waiting.first == NULL || self->finished_bytes > RESULT_BYTES) &&
               !self->is_closing) {
            pthread_cond_wait(&self->wake, &self->lock);
        }
        if (self->is_closing) {
            break;
        }
        take_group(self, &group);
        size_t taken = group.count;
        pthread_mutex_unlock(&self->lock);
        if (group.ops[0]->kind == STORE_SWEEP) {
            run_sweep(self, group.ops[0]);
        } else {
            group_run(self, &group);
        }
        pthread_mutex_lock(&self->lock);
        for (size_t i = 0; i < group.count; i++) {
            queue_push(&self->finished, group.ops[i]);
        }
        for (size_t i = taken; i > group.count; i--) {
            queue_push_front(&self->waiting, group.ops[i - 1]);
        }
        self->finished_bytes += group.result_bytes;
        post(self);
    }
    pthread_mutex_unlock(&self->lock);
    sqlite_file_close(&self->file);
    pthread_mutex_lock(&self->lock);
    self->has_ended = true;
    post(self);
    pthread_mutex_unlock(&self->lock);
}

/* --- the loop's side -------------------------------------------------------------------------- */

static void end(sqlite_store *self)
{
    net_thread_join(&self->thread);
    store_back_closed(&self->base);
}

static void on_message(void *argument)
{
    sqlite_store *self = argument;
    pthread_mutex_lock(&self->lock);
    op_queue finished = self->finished;
    self->finished = (op_queue){0};
    self->finished_bytes = 0;
    pthread_cond_signal(&self->wake);
    self->is_posted = false;
    bool has_ended = self->has_ended;
    pthread_mutex_unlock(&self->lock);
    store_op *op;
    while ((op = queue_pop(&finished)) != NULL) {
        store_op_done(&self->base, op);
    }
    if (has_ended && self->task.is_queued) {
        self->ends_with_task = true; /* the task cannot be cancelled any more */
    } else if (has_ended) {
        end(self);
    }
}

static void hand_over(void *argument)
{
    sqlite_store *self = argument;
    if (self->ends_with_task) {
        end(self);
        return;
    }
    pthread_mutex_lock(&self->lock);
    queue_append(&self->waiting, &self->started);
    pthread_cond_signal(&self->wake);
    pthread_mutex_unlock(&self->lock);
}

static void sqlite_start(store *base, store_op *op)
{
    sqlite_store *self = (sqlite_store *)base;
    queue_push(&self->started, op);
    loop_defer(base->loop, &self->task);
}

static void sqlite_close(store *base)
{
    sqlite_store *self = (sqlite_store *)base;
    pthread_mutex_lock(&self->lock);
    self->is_closing = true;
    pthread_cond_signal(&self->wake);
    pthread_mutex_unlock(&self->lock);
}

static void sqlite_free(store *base)
{
    sqlite_store *self = (sqlite_store *)base;
    pthread_cond_destroy(&self->wake);
    pthread_mutex_destroy(&self->lock);
    mem_free(self);
}

/* --- opening ---------------------------------------------------------------------------------- */

static bay_err make_lock(sqlite_store *self)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return BAY_ERR_NOMEM;
    }
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bay_err err = BAY_ERR_NOMEM;
    if (pthread_cond_init(&self->wake, &attributes) == 0) {
        err = pthread_mutex_init(&self->lock, NULL) == 0 ? BAY_OK : BAY_ERR_NOMEM;
        if (err != BAY_OK) {
            pthread_cond_destroy(&self->wake);
        }
    }
    pthread_condattr_destroy(&attributes);
    return err;
}

/* SQLite gives these names a meaning of their own: they are not files. */
static bool is_path(bay_str path)
{
    return path.len > 0 && path.len < PATH_BYTES && memchr(path.at, '\0', path.len) == NULL &&
           !str_starts(path, STR(":")) && !str_starts(path, STR("file:"));
}

static bay_err open_file(sqlite_store *self, bay_str path, bay_diag *diag)
{
    char text[PATH_BYTES];
    memcpy(text, path.at, path.len);
    text[path.len] = '\0';
    self->file.wait = wait_for_lock;
    self->file.wait_user = self;
    self->file.engine.bounds = store_bounds_of(&self->base);
    self->busy_ms = self->base.options.busy_ms;
    self->give_up_at_ms = monotonic_ms() + self->busy_ms;
    return sqlite_file_open(&self->file, text, diag);
}

bay_err store_open_sqlite(loop *on_loop, bay_str path, const store_options *options, store **out,
                          bay_diag *diag)
{
    static const store_back back = {sqlite_start, sqlite_close, sqlite_free};
    if (!is_path(path)) {
        return diag_set(diag, BAY_ERR_INVALID, "not the path of a file: %.*s", BAY_STR(path));
    }
    sqlite_store *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->base.options = store_options_of(options);
    self->message = (loop_message){.function = on_message, .argument = self};
    self->task = (loop_task){.function = hand_over, .argument = self};
    self->log = loop_log(on_loop);
    bay_err err = make_lock(self);
    if (err != BAY_OK) {
        mem_free(self);
        return diag_set(diag, err, "out of memory");
    }
    err = open_file(self, path, diag);
    if (err != BAY_OK) {
        goto free_store;
    }
    err = store_init(&self->base, &back, on_loop, options);
    if (err != BAY_OK) {
        diag_set(diag, err, "out of memory");
        goto close_file;
    }
    err = net_thread_start(&self->thread, thread_main, self);
    if (err != BAY_OK) {
        loop_timer_stop(on_loop, &self->base.sweep_timer);
        diag_set(diag, err, "no thread for the store");
        goto close_file;
    }
    *out = &self->base;
    return BAY_OK;

close_file:
    sqlite_file_close(&self->file);
free_store:
    sqlite_free(&self->base);
    return err;
}
