/* One lock guards the queues of all targets and doors. It is taken only for targets with a limit.
 */
#include "call/target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct call_target {
    atomic_uint references;
    atomic_uint most; /* 0: no limit */
    uint32_t used;    /* from here on: guarded by the lock */
    uint32_t queued;
    list queue; /* calls, by target_link */
    size_t len;
    char name[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bay_err call_target_new(bay_str name, uint32_t most, call_target **out)
{
    call_target *self = mem_zalloc(sizeof(*self) + name.len);
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    atomic_init(&self->most, most);
    list_init(&self->queue);
    self->len = name.len;
    memcpy(self->name, name.at, name.len);
    *out = self;
    return BAY_OK;
}

call_target *call_target_ref(call_target *self)
{
    if (self != NULL) {
        atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    }
    return self;
}

void call_target_unref(call_target *self)
{
    if (self != NULL &&
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) == 1) {
        mem_free(self);
    }
}

bay_str call_target_name(const call_target *self)
{
    return self != NULL ? (bay_str){self->name, self->len} : (bay_str){"", 0};
}

/* With the lock held. */
static void push_granted(call_context *call)
{
    call_door *door = call->door;
    list_push(&door->granted, &call->target_link);
    if (!door->is_awake) {
        door->is_awake = true;
        door->wake(door->user);
    }
}

/* With the lock held: gives the first call of the queue a slot and notifies its door. */
static void grant(call_target *self)
{
    uint32_t most = atomic_load_explicit(&self->most, memory_order_relaxed);
    list_link *link;
    while ((most == 0 || self->used < most) && (link = list_pop(&self->queue)) != NULL) {
        call_context *call = CONTAINER_OF(link, call_context, target_link);
        self->queued--;
        self->used++;
        call->has_slot = true;
        push_granted(call);
    }
}

void call_target_set_most(call_target *self, uint32_t most)
{
    pthread_mutex_lock(&lock);
    atomic_store_explicit(&self->most, most, memory_order_relaxed);
    grant(self);
    pthread_mutex_unlock(&lock);
}

void call_target_count(call_target *self, uint32_t *out_used, uint32_t *out_waiting)
{
    pthread_mutex_lock(&lock);
    *out_used = self->used;
    *out_waiting = self->queued;
    pthread_mutex_unlock(&lock);
}

static call_verdict refuse_busy(const call_target *self, call_refusal *out, const char *what)
{
    out->reason = CALL_BUSY;
    snprintf(out->text, sizeof(out->text),
             "\"%.*s\" is busy: %s. The call was not carried out; it can be tried again.",
             (int)(self->len < 64 ? self->len : 64), self->name, what);
    return CALL_REFUSE;
}

/* With the lock held. */
static call_verdict target_take(call_target *self, call_context *call, uint32_t most,
                                call_refusal *out)
{
    if (call->has_slot) { /* granted while it waited */
        return CALL_GO;
    }
    if (call->is_late) {
        return refuse_busy(self, out, "no other call ended in the time that this one may take");
    }
    if (call->has_queued) {
        return CALL_WAIT;
    }
    if (most == 0 || (self->used < most && list_is_empty(&self->queue))) {
        self->used++;
        call->has_slot = true;
        return CALL_GO;
    }
    if (call->resume == NULL || call->door->wake == NULL || self->queued >= CALL_TARGET_WAITING) {
        return refuse_busy(self, out, "too many calls wait for it");
    }
    self->queued++;
    call->has_queued = true;
    list_push(&self->queue, &call->target_link);
    return CALL_WAIT;
}

call_verdict call_target_take(call_target *self, call_context *call, call_refusal *out)
{
    uint32_t most = atomic_load_explicit(&self->most, memory_order_relaxed);
    if (most == 0 && !call->has_queued) {
        return CALL_GO;
    }
    pthread_mutex_lock(&lock);
    call_verdict verdict = target_take(self, call, most, out);
    pthread_mutex_unlock(&lock);
    return verdict;
}

void call_target_leave(call_target *self, call_context *call)
{
    pthread_mutex_lock(&lock);
    bool is_listed = list_holds(&call->target_link); /* its door has not resumed it yet */
    list_remove(&call->target_link);
    if (call->has_slot) {
        call->has_slot = false;
        self->used--;
    } else if (is_listed && call->has_queued) {
        self->queued--;
    }
    if (self != NULL) {
        grant(self);
    }
    pthread_mutex_unlock(&lock);
}

void call_ready(call_context *self)
{
    pthread_mutex_lock(&lock);
    if (!list_holds(&self->target_link)) {
        push_granted(self);
    }
    pthread_mutex_unlock(&lock);
}

call_context *call_door_next(call_door *self)
{
    pthread_mutex_lock(&lock);
    list_link *link = list_pop(&self->granted);
    if (link == NULL) {
        self->is_awake = false;
    }
    pthread_mutex_unlock(&lock);
    return link != NULL ? CONTAINER_OF(link, call_context, target_link) : NULL;
}
