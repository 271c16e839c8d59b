#include "net/thread.h"

#include <signal.h>

static void *thread_main(void *argument)
{
    net_thread *self = argument;
    self->function(self->argument);
    return NULL;
}

bay_err net_thread_start(net_thread *self, void (*function)(void *argument), void *argument)
{
    sigset_t all;
    sigset_t before;
    self->function = function;
    self->argument = argument;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    self->is_running = pthread_create(&self->id, NULL, thread_main, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return self->is_running ? BAY_OK : BAY_ERR_NOMEM;
}

void net_thread_join(net_thread *self)
{
    if (self->is_running) {
        pthread_join(self->id, NULL);
        self->is_running = false;
    }
}
