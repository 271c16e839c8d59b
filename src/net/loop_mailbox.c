/* A pointer to a loop behind a lock: posting and closing exclude each other, so no thread posts to
 * a loop that is being freed. */
#include "net/loop_mailbox.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"

struct loop_mailbox {
    atomic_uint references;
    pthread_mutex_t lock;
    loop *loop; /* NULL: closed */
    void *user; /* the loop's thread only */
};

bay_err loop_mailbox_new(loop *runs_on, void *user, loop_mailbox **out)
{
    loop_mailbox *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    self->loop = runs_on;
    self->user = user;
    *out = self;
    return BAY_OK;
}

loop_mailbox *loop_mailbox_ref(loop_mailbox *self)
{
    atomic_fetch_add(&self->references, 1);
    return self;
}

void loop_mailbox_unref(loop_mailbox *self)
{
    if (self != NULL && atomic_fetch_sub(&self->references, 1) == 1) {
        pthread_mutex_destroy(&self->lock);
        mem_free(self);
    }
}

bool loop_mailbox_post(loop_mailbox *self, loop_message *message)
{
    pthread_mutex_lock(&self->lock);
    bool is_taken = self->loop != NULL && loop_post_message(self->loop, message) == BAY_OK;
    pthread_mutex_unlock(&self->lock);
    return is_taken;
}

void *loop_mailbox_user(const loop_mailbox *self)
{
    return self->user;
}

void loop_mailbox_close(loop_mailbox *self)
{
    self->user = NULL;
    pthread_mutex_lock(&self->lock);
    self->loop = NULL;
    pthread_mutex_unlock(&self->lock);
}
