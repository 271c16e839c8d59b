/* All timers of a loop: one binary heap of pointers, one kernel timer armed for the first.
 *
 * Invariants: at[1] is due first; a timer knows its place (heap_index, 0: not armed); timers due at
 * the same millisecond run in the order they were armed. Stopping the first timer does not change
 * the kernel timer: it wakes once too often instead of being set at every stop, because most
 * time-outs are stopped. */
#include "base/mem.h"
#include "net/loop_internal.h"

#define TIMERS_MAX ((size_t)1 << 24)

static bool is_before(const loop_timer *a, const loop_timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->sequence < b->sequence;
}

static void put(timer_heap *heap, size_t index, loop_timer *timer)
{
    heap->at[index] = timer;
    timer->heap_index = index;
}

static void sift_up(timer_heap *heap, size_t index, loop_timer *timer)
{
    while (index > 1 && is_before(timer, heap->at[index / 2])) {
        put(heap, index, heap->at[index / 2]);
        index /= 2;
    }
    put(heap, index, timer);
}

static void sift_down(timer_heap *heap, size_t index, loop_timer *timer)
{
    for (;;) {
        size_t child = index * 2;
        if (child > heap->len) {
            break;
        }
        if (child < heap->len && is_before(heap->at[child + 1], heap->at[child])) {
            child++;
        }
        if (!is_before(heap->at[child], timer)) {
            break;
        }
        put(heap, index, heap->at[child]);
        index = child;
    }
    put(heap, index, timer);
}

static void take_out(timer_heap *heap, loop_timer *timer)
{
    size_t index = timer->heap_index;
    timer->heap_index = 0;
    loop_timer *last = heap->at[heap->len--];
    if (last == timer) {
        return;
    }
    if (index > 1 && is_before(last, heap->at[index / 2])) {
        sift_up(heap, index, last);
    } else {
        sift_down(heap, index, last);
    }
}

static void on_due(uv_timer_t *handle);

static void arm(loop *self)
{
    timer_heap *heap = &self->timers;
    if (heap->len == 0) {
        uv_timer_stop(&heap->handle);
        return;
    }
    uint64_t now = uv_now(&self->uv);
    uint64_t due = heap->at[1]->due_ms;
    uv_timer_start(&heap->handle, on_due, due > now ? due - now : 0, 0);
}

static void on_due(uv_timer_t *handle)
{
    loop *self = handle->data;
    timer_heap *heap = &self->timers;
    if (self->is_closing) {
        return; /* the loop is ending or freed; only this thread writes it, so no lock is needed */
    }
    uint64_t now = uv_now(&self->uv);
    /* Timers armed in these callbacks wait for the next iteration, also those without a delay. */
    uint64_t end = heap->next_sequence;
    while (heap->len > 0 && heap->at[1]->due_ms <= now && heap->at[1]->sequence < end) {
        loop_timer *timer = heap->at[1];
        take_out(heap, timer);
        timer->function(timer->argument);
    }
    arm(self);
}

static bool grow(timer_heap *heap)
{
    if (heap->len + 1 < heap->cap) {
        return true;
    }
    size_t cap = heap->cap == 0 ? 64 : heap->cap * 2;
    if (cap > TIMERS_MAX) {
        return false;
    }
    loop_timer **at = mem_resize(heap->at, cap * sizeof(loop_timer *));
    if (at == NULL) {
        return false;
    }
    heap->at = at;
    heap->cap = cap;
    return true;
}

bay_err loop_timers_init(loop *self)
{
    uv_timer_init(&self->uv, &self->timers.handle);
    self->timers.handle.data = self;
    /* Memory from the start, so that the first time-outs of a loop cannot fail. */
    return grow(&self->timers) ? BAY_OK : BAY_ERR_NOMEM;
}

void loop_timers_fini(loop *self)
{
    mem_free(self->timers.at);
    self->timers = (timer_heap){.at = NULL};
}

void loop_timer_init(loop_timer *self, void (*function)(void *argument), void *argument)
{
    *self = (loop_timer){.function = function, .argument = argument};
}

bay_err loop_timer_start(loop *on_loop, loop_timer *self, uint64_t after_ms)
{
    timer_heap *heap = &on_loop->timers;
    if (self->heap_index != 0) {
        take_out(heap, self);
    } else if (!grow(heap)) {
        return BAY_ERR_NOMEM;
    }
    uint64_t now = uv_now(&on_loop->uv);
    self->due_ms = after_ms > UINT64_MAX - now ? UINT64_MAX : now + after_ms;
    self->sequence = heap->next_sequence++;
    sift_up(heap, ++heap->len, self);
    if (self->heap_index == 1) {
        arm(on_loop);
    }
    return BAY_OK;
}

void loop_timer_stop(loop *on_loop, loop_timer *self)
{
    if (self->heap_index == 0) {
        return;
    }
    take_out(&on_loop->timers, self);
    if (on_loop->timers.len == 0) {
        uv_timer_stop(&on_loop->timers.handle);
    }
}
