/* A thread for a loop. Only this floor starts threads. */
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

/* `self` must stay where it is until the join. All signals are blocked in the new thread: they
 * belong to the loop that asked for them. BAY_ERR_NOMEM when the system has no thread left. */
bay_err net_thread_start(net_thread *self, void (*function)(void *argument),
                         void *argument) BAY_MUST_CHECK;
void net_thread_join(net_thread *self); /* harmless when it never started */

#endif
