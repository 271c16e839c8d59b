/* A loop behind a lock, for as long as it is there. */
#include "transport/relay_port.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"

struct relay_port {
    atomic_uint refs;
    pthread_mutex_t lock;
    loop *loop; /* NULL: closed */
    void *face; /* the loop's thread only */
};

bay_err relay_port_new(loop *runs_on, void *face, relay_port **out)
{
    relay_port *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        mem_free(self);
        return BAY_NOMEM;
    }
    atomic_init(&self->refs, 1);
    self->loop = runs_on;
    self->face = face;
    *out = self;
    return BAY_OK;
}

relay_port *relay_port_ref(relay_port *self)
{
    atomic_fetch_add(&self->refs, 1);
    return self;
}

void relay_port_unref(relay_port *self)
{
    if (self != NULL && atomic_fetch_sub(&self->refs, 1) == 1) {
        pthread_mutex_destroy(&self->lock);
        mem_free(self);
    }
}

bool relay_port_post(relay_port *self, loop_message *message)
{
    pthread_mutex_lock(&self->lock);
    bool is_taken = self->loop != NULL && loop_post_message(self->loop, message) == BAY_OK;
    pthread_mutex_unlock(&self->lock);
    return is_taken;
}

void *relay_port_face(const relay_port *self)
{
    return self->face;
}

void relay_port_close(relay_port *self)
{
    self->face = NULL;
    pthread_mutex_lock(&self->lock);
    self->loop = NULL;
    pthread_mutex_unlock(&self->lock);
}
