/* A thread for a loop. Only this module starts threads. */
#ifndef NET_THREAD_H
#define NET_THREAD_H

#include <pthread.h>

#include "patchbay/types.h"

typedef struct net_thread {
    pthread_t id;
    void (*function)(void *argument);
    void *argument;
    bool is_running;
} net_thread;

/* `self` must not move until the join. All signals are blocked in the new thread: they belong to
 * the loop that registered them. BAY_ERR_NOMEM: the system has no more threads. */
bay_err net_thread_start(net_thread *self, void (*function)(void *argument),
                         void *argument) BAY_MUST_CHECK;
void net_thread_join(net_thread *self); /* no effect if it never started */

#endif
