/* A queue under a lock. `is_woken`: the loop has a post under way that will drain it; without
 * memory for that post the messages wait for the next one. */
#include "transport/relay_port.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"

struct relay_port {
    atomic_uint refs;
    pthread_mutex_t lock;
    loop *loop; /* NULL: closed */
    void *face; /* the loop's thread only */
    relay_message *first;
    relay_message *last;
    bool is_woken;
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

static void on_wake(void *argument)
{
    relay_port *self = argument;
    relay_port_drain(self);
    relay_port_unref(self);
}

bool relay_port_post(relay_port *self, relay_message *message)
{
    message->next = NULL;
    pthread_mutex_lock(&self->lock);
    bool is_open = self->loop != NULL;
    if (is_open) {
        if (self->last != NULL) {
            self->last->next = message;
        } else {
            self->first = message;
        }
        self->last = message;
        if (!self->is_woken) {
            (void)relay_port_ref(self);
            self->is_woken = loop_post(self->loop, on_wake, self) == BAY_OK;
            if (!self->is_woken) {
                atomic_fetch_sub(&self->refs, 1); /* never the last: the caller has one */
            }
        }
    }
    pthread_mutex_unlock(&self->lock);
    return is_open;
}

void *relay_port_face(const relay_port *self)
{
    return self->face;
}

void relay_port_drain(relay_port *self)
{
    pthread_mutex_lock(&self->lock);
    relay_message *message = self->first;
    self->first = self->last = NULL;
    self->is_woken = false;
    pthread_mutex_unlock(&self->lock);
    while (message != NULL) {
        relay_message *next = message->next; /* running it may free or post it again */
        message->run(message);
        message = next;
    }
}

void relay_port_close(relay_port *self)
{
    self->face = NULL;
    pthread_mutex_lock(&self->lock);
    self->loop = NULL;
    pthread_mutex_unlock(&self->lock);
    relay_port_drain(self);
}
