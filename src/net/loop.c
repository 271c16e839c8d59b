/* The loop: posts from other threads, tasks deferred to the end of an iteration, pool work,
 * signals, and the registry of open objects. libuv does the waiting.
 *
 * Invariants
 * - Every helper handle is unreferenced: only what the owner opened keeps loop_run running.
 * - A message that loop_post accepted always runs: at the latest in loop_free.
 * - Deferred tasks run right after the wait and again right before the next one; while any is left
 *   the idle handle is active, so the loop never waits with a task pending. */
#include "net/loop.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/loop_internal.h"

/* --- messages of other threads ---------------------------------------------------------------- */

static bool has_messages(loop *self)
{
    uv_mutex_lock(&self->lock);
    bool has = self->first_message != NULL;
    uv_mutex_unlock(&self->lock);
    return has;
}

/* Only those present at the start: a message that posts another must not starve the loop. */
static void run_messages(loop *self)
{
    uv_mutex_lock(&self->lock);
    loop_message *message = self->first_message;
    self->first_message = self->last_message = NULL;
    uv_mutex_unlock(&self->lock);
    while (message != NULL) {
        loop_message *next = message->next;
        bool is_ours = message->is_loops;
        message->function(message->argument);
        if (is_ours) {
            mem_free(message);
        }
        stream_gather_pace(&self->gather);
        message = next;
    }
}

static void on_wake(uv_async_t *handle)
{
    loop *self = handle->data;
    run_messages(self);
    if (atomic_load(&self->is_stopping)) {
        uv_stop(&self->uv);
    }
}

bay_err loop_post_message(loop *self, loop_message *message)
{
    message->next = NULL;
    uv_mutex_lock(&self->lock);
    if (self->is_closing) {
        uv_mutex_unlock(&self->lock);
        return BAY_ERR_CLOSED;
    }
    if (self->last_message != NULL) {
        self->last_message->next = message;
    } else {
        self->first_message = message;
    }
    self->last_message = message;
    /* With the lock held: loop_free must not close the handle between the check and the wake-up. */
    uv_async_send(&self->wake);
    uv_mutex_unlock(&self->lock);
    return BAY_OK;
}

bay_err loop_post(loop *self, void (*function)(void *argument), void *argument)
{
    loop_message *message = mem_alloc(sizeof(*message));
    if (message == NULL) {
        return BAY_ERR_NOMEM;
    }
    *message = (loop_message){.function = function, .argument = argument, .is_loops = true};
    bay_err err = loop_post_message(self, message);
    if (err != BAY_OK) {
        mem_free(message);
    }
    return err;
}

/* --- deferred tasks --------------------------------------------------------------------------- */

static void on_busy(uv_idle_t *handle)
{
    (void)handle;
}

void loop_defer(loop *self, loop_task *task)
{
    if (task->is_queued) {
        return;
    }
    task->is_queued = true;
    task->next = NULL;
    if (self->last_task != NULL) {
        self->last_task->next = task;
    } else {
        self->first_task = task;
        uv_idle_start(&self->busy, on_busy);
        if (self->turns == 0) {
            uv_async_send(&self->wake); /* a loop around this one may wait for the descriptor */
        }
    }
    self->last_task = task;
}

void loop_undefer(loop *self, loop_task *task)
{
    if (!task->is_queued) {
        return;
    }
    loop_task *previous = NULL;
    loop_task **place = &self->first_task;
    while (*place != task) {
        CHECK(*place != NULL);
        previous = *place;
        place = &previous->next;
    }
    *place = task->next;
    if (self->last_task == task) {
        self->last_task = previous;
    }
    task->is_queued = false;
    task->next = NULL;
    if (self->first_task == NULL) {
        uv_idle_stop(&self->busy);
    }
}

static void end_batch(void *argument)
{
    (void)argument;
}

/* Runs up to a marker at the end, so that tasks deferred meanwhile wait for the next time; the list
 * is not moved, so that a task may undefer another. */
static void run_tasks(loop *self)
{
    if (self->first_task == NULL) {
        return;
    }
    self->batch_end.function = end_batch;
    loop_defer(self, &self->batch_end);
    while (self->batch_end.is_queued) {
        loop_task *task = self->first_task;
        loop_undefer(self, task);
        task->function(task->argument);
        stream_gather_pace(&self->gather);
    }
}

static void on_before_wait(uv_prepare_t *handle)
{
    run_tasks(handle->data);
}

static void on_after_wait(uv_check_t *handle)
{
    run_tasks(handle->data);
}

/* --- making ----------------------------------------------------------------------------------- */

/* A disconnected peer must be an error of write(2), not the end of the process. An embedding
 * program's own handler is not replaced. */
static void ignore_broken_pipes(void)
{
    struct sigaction action;
    if (sigaction(SIGPIPE, NULL, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
        action.sa_handler == SIG_DFL) {
        action.sa_handler = SIG_IGN;
        sigaction(SIGPIPE, &action, NULL);
    }
}

/* Only uv_async_init can fail, so it comes first. */
static int init_handles(loop *self)
{
    int failure = uv_async_init(&self->uv, &self->wake, on_wake);
    if (failure != 0) {
        return failure;
    }
    uv_prepare_init(&self->uv, &self->before_wait);
    uv_check_init(&self->uv, &self->after_wait);
    uv_idle_init(&self->uv, &self->busy);
    uv_timer_init(&self->uv, &self->turn_timer);
    self->wake.data = self->before_wait.data = self->after_wait.data = self;
    uv_prepare_start(&self->before_wait, on_before_wait);
    uv_check_start(&self->after_wait, on_after_wait);
    uv_unref((uv_handle_t *)&self->wake);
    uv_unref((uv_handle_t *)&self->before_wait);
    uv_unref((uv_handle_t *)&self->after_wait);
    return 0;
}

bay_err loop_new(loop **out)
{
    bay_err err = BAY_ERR_NOMEM;
    loop *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    ignore_broken_pipes();
    list_init(&self->objects);
    stream_gather_init(&self->gather, self);
    self->thread = pthread_self();
    self->read_buffer = mem_alloc(LOOP_READ_BYTES);
    if (self->read_buffer == NULL) {
        goto free_self;
    }
    err = BAY_ERR_IO;
    if (uv_mutex_init(&self->lock) != 0) {
        goto free_buffer;
    }
    if (uv_loop_init(&self->uv) != 0) {
        goto free_lock;
    }
    self->uv.data = self;
    if (init_handles(self) != 0) {
        goto free_loop;
    }
    err = loop_timers_init(self);
    if (err != BAY_OK) {
        loop_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;

free_loop:
    uv_loop_close(&self->uv);
free_lock:
    uv_mutex_destroy(&self->lock);
free_buffer:
    mem_free(self->read_buffer);
free_self:
    mem_free(self);
    return err;
}

/* --- whose thread, whose log ------------------------------------------------------------------ */

bool loop_is_turning(const loop *self)
{
    return self->turns > 0;
}

void loop_refresh(loop *self)
{
    uv_update_time(&self->uv);
}

bool loop_is_here(const loop *self)
{
    return pthread_equal(self->thread, pthread_self()) != 0;
}

void loop_set_log(loop *self, const log_target *target)
{
    self->log = target;
}

const log_target *loop_log(const loop *self)
{
    return self->log;
}

/* From here to `leave` this thread works for the loop. */
static const log_target *enter(loop *self)
{
    if (!loop_is_here(self)) {
        self->thread = pthread_self();
    }
    self->turns++;
    return log_direct(self->log);
}

static void leave(loop *self, const log_target *before)
{
    stream_gather_leave(&self->gather);
    self->turns--;
    log_direct(before);
}

/* --- ending ----------------------------------------------------------------------------------- */

static void end_objects(loop *self)
{
    /* An `end` may close other objects, too, so the list is always taken from its front. */
    list open;
    list_init(&open);
    list_link *link;
    while ((link = list_pop(&self->objects)) != NULL) {
        list_push(&open, link);
    }
    while ((link = list_pop(&open)) != NULL) {
        loop_object *object = CONTAINER_OF(link, loop_object, link);
        list_push(&self->objects, link);
        object->end(object);
    }
}

static void close_if_open(uv_handle_t *handle, void *argument)
{
    (void)argument;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

void loop_free(loop *self)
{
    if (self == NULL) {
        return;
    }
    const log_target *before = enter(self);
    uv_mutex_lock(&self->lock);
    self->is_closing = true;
    uv_mutex_unlock(&self->lock);
    /* Neither timers nor a hold delay the end; objects and pool work do. */
    uv_unref((uv_handle_t *)&self->timers.handle);
    uv_unref((uv_handle_t *)&self->wake);
    /* Callbacks of ending objects may open or defer something new: until nothing is left. */
    do {
        run_messages(self);
        end_objects(self);
        run_tasks(self);
        uv_run(&self->uv, UV_RUN_ONCE);
    } while (!list_is_empty(&self->objects) || has_messages(self) || uv_loop_alive(&self->uv));

    uv_walk(&self->uv, close_if_open, NULL);
    while (uv_loop_close(&self->uv) == UV_EBUSY) {
        uv_run(&self->uv, UV_RUN_ONCE);
    }
    loop_timers_fini(self);
    while (self->signals != NULL) {
        loop_signal *next = self->signals->next;
        mem_free(self->signals);
        self->signals = next;
    }
    uv_mutex_destroy(&self->lock);
    stream_gather_fini(&self->gather);
    mem_free(self->read_buffer);
    mem_free(self->plain_buffer);
    mem_free(self->cipher_buffer);
    mem_free(self);
    log_direct(before);
}

void loop_add(loop *self, loop_object *object)
{
    list_push(&self->objects, &object->link);
}

void loop_remove(loop_object *object)
{
    list_remove(&object->link);
}

bay_err loop_tls_buffers(loop *self)
{
    if (self->plain_buffer == NULL) {
        self->plain_buffer = mem_alloc(LOOP_PLAIN_BYTES);
    }
    if (self->cipher_buffer == NULL) {
        self->cipher_buffer = mem_alloc(LOOP_CIPHER_BYTES);
    }
    return self->plain_buffer != NULL && self->cipher_buffer != NULL ? BAY_OK : BAY_ERR_NOMEM;
}

/* --- running ---------------------------------------------------------------------------------- */

void loop_run(loop *self)
{
    bool is_alive = true;
    const log_target *before = enter(self);
    while (is_alive && !atomic_load(&self->is_stopping)) {
        run_messages(self);
        is_alive = uv_run(&self->uv, UV_RUN_DEFAULT) != 0 || has_messages(self);
    }
    atomic_store(&self->is_stopping, false);
    leave(self, before);
}

void loop_stop(loop *self)
{
    atomic_store(&self->is_stopping, true);
    uv_mutex_lock(&self->lock);
    if (!self->is_closing) {
        uv_async_send(&self->wake);
    }
    uv_mutex_unlock(&self->lock);
}

static void on_turn_timer(uv_timer_t *handle)
{
    (void)handle; /* its only purpose was to end the wait */
}

bool loop_turn(loop *self, int64_t timeout_ms)
{
    const log_target *before = enter(self);
    if (timeout_ms > 0) {
        uv_update_time(&self->uv);
        /* Repeated: if the messages take longer than that, libuv runs it before it waits. */
        uv_timer_start(&self->turn_timer, on_turn_timer, (uint64_t)timeout_ms,
                       (uint64_t)timeout_ms);
    }
    run_messages(self);
    uv_run(&self->uv, timeout_ms == 0 ? UV_RUN_NOWAIT : UV_RUN_ONCE);
    uv_timer_stop(&self->turn_timer);
    leave(self, before);
    return uv_loop_alive(&self->uv) != 0 || has_messages(self);
}

int loop_fd(const loop *self)
{
    return uv_backend_fd(&self->uv);
}

int loop_wait_ms(loop *self)
{
    if (has_messages(self)) {
        return 0;
    }
    uv_update_time(&self->uv); /* otherwise timers would seem as far away as after the last one */
    return uv_backend_timeout(&self->uv);
}

void loop_hold(loop *self)
{
    if (self->holds++ == 0) {
        uv_ref((uv_handle_t *)&self->wake);
    }
}

void loop_release(loop *self)
{
    CHECK(self->holds > 0);
    if (--self->holds == 0) {
        uv_unref((uv_handle_t *)&self->wake);
    }
}

uint64_t loop_now_ms(const loop *self)
{
    return uv_now(&self->uv);
}

uint64_t loop_time_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uv_loop_t *loop_uv(loop *self)
{
    return &self->uv;
}

/* --- the pool --------------------------------------------------------------------------------- */

typedef struct pool_work {
    uv_work_t request;
    const log_target *log;
    void (*work)(void *argument);
    void (*done)(void *argument);
    void *argument;
} pool_work;

static void on_pool_work(uv_work_t *request)
{
    pool_work *self = CONTAINER_OF(request, pool_work, request);
    const log_target *before = log_direct(self->log);
    self->work(self->argument);
    log_direct(before);
}

static void on_pool_done(uv_work_t *request, int status)
{
    (void)status; /* never cancelled: both functions always run */
    pool_work *self = CONTAINER_OF(request, pool_work, request);
    void (*done)(void *argument) = self->done;
    void *argument = self->argument;
    mem_free(self);
    done(argument);
}

bay_err loop_work(loop *self, void (*work)(void *argument), void (*done)(void *argument),
                  void *argument)
{
    pool_work *item = mem_alloc(sizeof(*item));
    if (item == NULL) {
        return BAY_ERR_NOMEM;
    }
    *item = (pool_work){.log = self->log, .work = work, .done = done, .argument = argument};
    int failure = uv_queue_work(&self->uv, &item->request, on_pool_work, on_pool_done);
    if (failure != 0) {
        mem_free(item);
        return loop_error_of(failure);
    }
    return BAY_OK;
}

/* --- signals ---------------------------------------------------------------------------------- */

static void on_signal(uv_signal_t *handle, int number)
{
    loop_signal *self = CONTAINER_OF(handle, loop_signal, handle);
    self->function(self->argument, number);
}

bay_err loop_on_signal(loop *self, int number, void (*function)(void *argument, int number),
                       void *argument)
{
    loop_signal *entry = mem_zalloc(sizeof(*entry));
    if (entry == NULL) {
        return BAY_ERR_NOMEM;
    }
    entry->function = function;
    entry->argument = argument;
    int failure = uv_signal_init(&self->uv, &entry->handle);
    if (failure != 0) {
        mem_free(entry);
        return loop_error_of(failure);
    }
    /* From here the loop owns the handle: freed after loop_free has closed it. */
    entry->next = self->signals;
    self->signals = entry;
    failure = uv_signal_start(&entry->handle, on_signal, number);
    if (failure != 0) {
        return loop_error_of(failure);
    }
    uv_unref((uv_handle_t *)&entry->handle);
    return BAY_OK;
}

bay_err loop_error_of(int uv_error)
{
    switch (uv_error) {
    case 0:
        return BAY_OK;
    case UV_ENOMEM:
    case UV_EAI_MEMORY:
        return BAY_ERR_NOMEM;
    case UV_EINVAL:
        return BAY_ERR_INVALID;
    case UV_EOF:
        return BAY_ERR_EOF;
    case UV_ETIMEDOUT:
        return BAY_ERR_TIMEOUT;
    case UV_ECONNRESET:
    case UV_EPIPE:
    case UV_ECONNABORTED:
    case UV_ENOTCONN:
        return BAY_ERR_CLOSED;
    case UV_ECANCELED:
        return BAY_ERR_CANCELLED;
    case UV_EAGAIN:
        return BAY_ERR_AGAIN;
    default:
        return BAY_ERR_IO;
    }
}
