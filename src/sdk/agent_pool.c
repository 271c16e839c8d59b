/* Threads for handlers: started when they are needed, at most so many, ended together. */
#include "base/check.h"
#include "base/mem.h"
#include "net/thread.h"
#include "sdk/agent_parts.h"

struct agent_pool {
    pthread_mutex_t lock; /* guards all but `log` */
    pthread_cond_t is_due;
    const log_target *log;
    list jobs;
    size_t job_count;
    uint32_t idle;
    uint32_t count;
    uint32_t most;
    bool is_ending;
    net_thread threads[];
};

static void work(void *argument)
{
    agent_pool *self = argument;
    (void)log_direct(self->log);
    pthread_mutex_lock(&self->lock);
    for (;;) {
        list_link *link = list_pop(&self->jobs);
        if (link != NULL) {
            self->job_count--;
            pthread_mutex_unlock(&self->lock);
            agent_job *job = CONTAINER_OF(link, agent_job, link);
            job->run(job->argument);
            pthread_mutex_lock(&self->lock);
            continue;
        }
        if (self->is_ending) {
            break;
        }
        self->idle++;
        pthread_cond_wait(&self->is_due, &self->lock);
        self->idle--;
    }
    pthread_mutex_unlock(&self->lock);
}

bay_err agent_pool_new(uint32_t threads, const log_target *log, agent_pool **out)
{
    agent_pool *self = mem_zalloc(sizeof(*self) + threads * sizeof(self->threads[0]));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->most = threads;
    self->log = log;
    list_init(&self->jobs);
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    if (pthread_cond_init(&self->is_due, NULL) != 0) {
        pthread_mutex_destroy(&self->lock);
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    *out = self;
    return BAY_OK;
}

void agent_pool_free(agent_pool *self)
{
    if (self == NULL) {
        return;
    }
    pthread_mutex_lock(&self->lock);
    self->is_ending = true;
    pthread_cond_broadcast(&self->is_due);
    pthread_mutex_unlock(&self->lock);
    for (uint32_t i = 0; i < self->count; i++) {
        net_thread_join(&self->threads[i]);
    }
    pthread_cond_destroy(&self->is_due);
    pthread_mutex_destroy(&self->lock);
    mem_free(self);
}

bay_err agent_pool_run(agent_pool *self, agent_job *job)
{
    pthread_mutex_lock(&self->lock);
    bool is_short = self->job_count >= self->idle; /* those that wait will take the jobs there */
    if (is_short && self->count < self->most &&
        net_thread_start(&self->threads[self->count], work, self) == BAY_OK) {
        self->count++;
    }
    bay_err err = self->count > 0 ? BAY_OK : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        list_push(&self->jobs, &job->link);
        self->job_count++;
        pthread_cond_signal(&self->is_due);
    }
    pthread_mutex_unlock(&self->lock);
    return err;
}
