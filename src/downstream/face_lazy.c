/* Servers that are started when somebody first needs their lists: until then they delay nobody, and
 * the first request that would show them waits for them, as the first requests of all wait for the
 * others. */
#include "base/err.h"
#include "downstream/face_parts.h"

bool face_wake(face *self)
{
    bool is_pending = false;
    if (self->loop == NULL) {
        return false;
    }
    for (size_t i = 0; i < self->roster.count; i++) {
        upstream *server = self->roster.sources[i].upstream;
        if (upstream_is_asleep(server)) {
            upstream_start(server);
            is_pending = is_pending || !upstream_is_settled(server); /* else it has failed */
        }
    }
    if (is_pending && !self->is_waking) {
        /* without a timer nobody waits: the lists are announced when they are there */
        self->is_waking =
            loop_timer_start(self->loop, &self->waking, self->config->timeouts.settle_ms) == BAY_OK;
    }
    return self->is_waking;
}

void face_awake(face *self)
{
    if (self->is_waking) {
        self->is_waking = false;
        loop_timer_stop(self->loop, &self->waking);
        if (self->is_settled) {
            face_resume(self);
        }
    }
}

void face_waited(void *argument)
{
    face_awake(argument);
}
