#include "net/reply_room.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"
#include "base/mem.h"

static _Atomic size_t account;
static _Atomic size_t peak; /* two threads at a peak may miss one of them */

struct reply_rooms {
    loop *loop;
    size_t most;
    void (*granted)(reply_room *room);
    list told;            /* rooms that may continue and whose owner does not know yet */
    loop_message message; /* notifies them */
    bool is_posted;
    bool is_freed; /* the message frees this */
};

/* Guards everything below, every list of rooms, `bytes` and `wanted` of every waiting room, and the
 * flags of every receiver. */
static pthread_mutex_t rooms_lock = PTHREAD_MUTEX_INITIALIZER;
static list waiting = {.head = {&waiting.head, &waiting.head}};
static _Atomic uint32_t waiting_count;
static reply_room *first; /* the one that always continues; NULL: none */
static uint64_t first_ms; /* when it last asked for more */

size_t reply_account_bytes(void)
{
    return atomic_load_explicit(&account, memory_order_relaxed);
}

void reply_account_add(size_t bytes)
{
    size_t all = atomic_fetch_add_explicit(&account, bytes, memory_order_relaxed) + bytes;
    if (all > atomic_load_explicit(&peak, memory_order_relaxed)) {
        atomic_store_explicit(&peak, all, memory_order_relaxed);
    }
}

void reply_account_subtract(size_t bytes)
{
    atomic_fetch_sub_explicit(&account, bytes, memory_order_relaxed);
}

size_t reply_account_take_peak(void)
{
    return atomic_exchange_explicit(&peak, reply_account_bytes(), memory_order_relaxed);
}

static bool has_room(const reply_room *self)
{
    size_t all = reply_account_bytes();
    return all <= self->of->most && self->wanted - self->bytes <= self->of->most - all;
}

static void enter(reply_room *self)
{
    reply_account_add(self->wanted - self->bytes);
    self->bytes = self->wanted;
}

/* Whether it may continue although the account is full. */
static bool is_first(reply_room *self, uint64_t now)
{
    bool is_free = first == NULL || now >= first_ms + REPLY_ROOM_TURN_MS;
    if (first != self && !is_free) {
        return false;
    }
    first = self;
    first_ms = now;
    return true;
}

/* With the lock held. A loop that is ending gets no notification: its receivers are freed with it.
 */
static void grant(reply_room *self)
{
    reply_rooms *of = self->of;
    atomic_fetch_sub_explicit(&waiting_count, 1, memory_order_relaxed);
    list_remove(&self->link);
    list_push(&of->told, &self->link);
    enter(self);
    if (!of->is_posted) {
        of->is_posted = loop_post_message(of->loop, &of->message) == BAY_OK;
    }
}

static void wake(uint64_t now)
{
    for (list_link *link; (link = list_first(&waiting)) != NULL;) {
        reply_room *room = CONTAINER_OF(link, reply_room, link);
        if (!has_room(room) && !is_first(room, now)) {
            return;
        }
        grant(room);
    }
}

bool reply_rooms_wake(uint64_t now)
{
    if (atomic_load_explicit(&waiting_count, memory_order_relaxed) == 0) {
        return false;
    }
    pthread_mutex_lock(&rooms_lock);
    wake(now);
    bool is_more = !list_is_empty(&waiting);
    pthread_mutex_unlock(&rooms_lock);
    return is_more;
}

bool reply_room_ask(reply_rooms *of, reply_room *self, size_t bytes, uint64_t now)
{
    if (self->is_waiting || bytes <= self->bytes) {
        return !self->is_waiting;
    }
    pthread_mutex_lock(&rooms_lock);
    self->of = of;
    self->wanted = bytes;
    bool is_turn = first == self || list_is_empty(&waiting);
    if (is_turn && ((first != self && has_room(self)) || is_first(self, now))) {
        enter(self);
    } else {
        self->is_waiting = true;
        list_push(&waiting, &self->link);
        atomic_fetch_add_explicit(&waiting_count, 1, memory_order_relaxed);
        wake(now);
    }
    pthread_mutex_unlock(&rooms_lock);
    return !self->is_waiting;
}

void reply_room_release(reply_room *self, uint64_t now)
{
    if (self->bytes == 0 && !self->is_waiting) {
        return;
    }
    pthread_mutex_lock(&rooms_lock);
    if (self->is_waiting && self->bytes < self->wanted) {
        atomic_fetch_sub_explicit(&waiting_count, 1, memory_order_relaxed);
    }
    list_remove(&self->link);
    reply_account_subtract(self->bytes);
    first = first == self ? NULL : first;
    *self = (reply_room){.bytes = 0};
    wake(now);
    pthread_mutex_unlock(&rooms_lock);
}

static void on_posted(void *argument)
{
    reply_rooms *self = argument;
    pthread_mutex_lock(&rooms_lock);
    self->is_posted = false;
    bool is_freed = self->is_freed;
    /* One round: a room that waits again is notified in the next. */
    list round;
    list_init(&round);
    for (list_link *link; (link = list_pop(&self->told)) != NULL;) {
        list_push(&round, link);
    }
    pthread_mutex_unlock(&rooms_lock);
    if (is_freed) {
        mem_free(self);
        return;
    }
    /* A notification may release others of the round, which then leave it. */
    for (;;) {
        pthread_mutex_lock(&rooms_lock);
        list_link *link = list_pop(&round);
        reply_room *room = link != NULL ? CONTAINER_OF(link, reply_room, link) : NULL;
        if (room != NULL) {
            room->is_waiting = false;
        }
        pthread_mutex_unlock(&rooms_lock);
        if (room == NULL) {
            return;
        }
        self->granted(room);
    }
}

bay_err reply_rooms_new(loop *runs_on, size_t most, void (*granted)(reply_room *room),
                        reply_rooms **out)
{
    reply_rooms *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = runs_on;
    self->most = most;
    self->granted = granted;
    self->message = (loop_message){.function = on_posted, .argument = self};
    list_init(&self->told);
    *out = self;
    return BAY_OK;
}

void reply_rooms_free(reply_rooms *self)
{
    if (self == NULL) {
        return;
    }
    pthread_mutex_lock(&rooms_lock);
    CHECK(list_is_empty(&self->told));
    self->is_freed = self->is_posted;
    pthread_mutex_unlock(&rooms_lock);
    if (!self->is_freed) {
        mem_free(self);
    }
}
