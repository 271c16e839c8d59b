/* Parts of a loop that the files of this module share: its registry of open objects and the buffers
 * that its connections use in turn. */
#ifndef NET_LOOP_INTERNAL_H
#define NET_LOOP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/list.h"
#include "net/loop.h"
#include "net/stream_queue.h"

#define LOOP_READ_BYTES ((size_t)64 * 1024)
#define LOOP_PLAIN_BYTES ((size_t)16 * 1024)  /* one TLS record */
#define LOOP_CIPHER_BYTES ((size_t)96 * 1024) /* outgoing records, flushed above 64 KiB */

/* An object that owns handles of the loop. loop_free calls `end` of each remaining one: it must
 * begin closing, and the object must leave the list no later than its last handle closes. */
typedef struct loop_object {
    list_link link;
    void (*end)(struct loop_object *self);
} loop_object;

typedef struct loop_signal {
    uv_signal_t handle;
    void (*function)(void *argument, int signal);
    void *argument;
    struct loop_signal *next;
} loop_signal;

typedef struct timer_heap {
    loop_timer **at; /* at[1] is due first; at[0] is not used */
    size_t len;
    size_t cap;
    uint64_t next_sequence;
    uv_timer_t handle;
} timer_heap;

struct loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t before_wait;
    uv_check_t after_wait;
    uv_idle_t busy; /* active while tasks are deferred: the loop then does not wait */
    uv_timer_t turn_timer;
    timer_heap timers;
    loop_signal *signals;
    loop_task *first_task;
    loop_task *last_task;
    loop_task batch_end;  /* the marker of the batch that is running */
    stream_gather gather; /* what its sockets wrote in this iteration */
    list objects;
    uint32_t holds;
    uint32_t turns;        /* inside loop_run, loop_turn or loop_free */
    pthread_t thread;      /* changed only when another thread begins to run it */
    const log_target *log; /* NULL: the process's */

    uv_mutex_t lock; /* guards the three below */
    loop_message *first_message;
    loop_message *last_message;
    bool is_closing;
    atomic_bool is_stopping;

    char *read_buffer;   /* LOOP_READ_BYTES */
    char *plain_buffer;  /* LOOP_PLAIN_BYTES; made with the first TLS connection */
    char *cipher_buffer; /* LOOP_CIPHER_BYTES; likewise */
};

bay_err loop_timers_init(loop *self) BAY_MUST_CHECK;
void loop_timers_fini(loop *self); /* after its handle has closed */

void loop_add(loop *self, loop_object *object);
void loop_remove(loop_object *object);

/* The TLS buffers, allocated at first use. */
bay_err loop_tls_buffers(loop *self) BAY_MUST_CHECK;

/* This project's error for an error of libuv or the kernel (negative errno). */
bay_err loop_error_of(int uv_error);

#endif
