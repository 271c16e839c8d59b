#include "http/reply_account.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"
#include "base/mem.h"

struct reply_book {
    list_link link; /* of all books */
    loop *loop;
    const reply_book_ops *ops;
    size_t most;
    list still;    /* debts without a step, oldest first */
    list stepping; /* the others, by their last step */
    /* `since_ms` of the first of either list, UINT64_MAX: none; for other threads. */
    _Atomic uint64_t still_ms;
    _Atomic uint64_t stepping_ms;
    loop_message message; /* "end your oldest"; under `books_lock` except its function */
    bool is_posted;
    bool is_freed; /* the message frees the book */
};

static pthread_mutex_t books_lock = PTHREAD_MUTEX_INITIALIZER;
static list books = {.head = {&books.head, &books.head}};

/* --- who ends --------------------------------------------------------------------------------- */

static bool is_spared(const reply_book *self, const reply_debt *debt, uint64_t now)
{
    size_t all = reply_account_bytes();
    if (all - debt->bytes < self->most / 2) {
        return true; /* a single one may have any size */
    }
    bool is_read =
        debt->since_ms >= debt->began_ms + REPLY_GRACE_MS && now < debt->since_ms + REPLY_STEP_MS;
    if (is_read || debt->bytes < REPLY_SMALL_BYTES) {
        return all / REPLY_READERS <= self->most;
    }
    return now < debt->began_ms + REPLY_GRACE_MS && all <= self->most + self->most / 4;
}

static reply_debt *first_of(const reply_book *self, const list *among, const reply_debt *newest,
                            uint64_t now)
{
    for (list_link *link = among->head.next; link != &among->head; link = link->next) {
        reply_debt *debt = CONTAINER_OF(link, reply_debt, link);
        if (debt != newest && !is_spared(self, debt, now)) {
            return debt;
        }
    }
    return NULL;
}

static void publish(reply_book *self)
{
    list_link *still = list_first(&self->still);
    list_link *stepping = list_first(&self->stepping);
    atomic_store_explicit(&self->still_ms,
                          still != NULL ? CONTAINER_OF(still, reply_debt, link)->since_ms
                                        : UINT64_MAX,
                          memory_order_relaxed);
    atomic_store_explicit(&self->stepping_ms,
                          stepping != NULL ? CONTAINER_OF(stepping, reply_debt, link)->since_ms
                                           : UINT64_MAX,
                          memory_order_relaxed);
}

/* Whether its peer has made a step since the last check. If so, the debt counts as younger. */
static bool notice_step(reply_book *self, reply_debt *debt, uint64_t now)
{
    uint64_t taken = self->ops->taken(debt);
    if (taken < debt->taken + REPLY_STEP_BYTES) {
        return false;
    }
    debt->taken = taken;
    debt->since_ms = now;
    debt->has_stepped = true;
    list_remove(&debt->link);
    list_push(&self->stepping, &debt->link);
    publish(self);
    return true;
}

/* The next debt of this book to be ended; NULL: none. */
static reply_debt *find_oldest(reply_book *self, const reply_debt *newest, uint64_t now)
{
    for (;;) {
        reply_debt *still = first_of(self, &self->still, newest, now);
        reply_debt *stepping = first_of(self, &self->stepping, newest, now);
        reply_debt *oldest = still == NULL || (stepping != NULL && //
                                               stepping->since_ms < still->since_ms)
                                 ? stepping
                                 : still;
        if (oldest == NULL || !notice_step(self, oldest, now)) {
            return oldest;
        }
    }
}

static uint64_t age_mark(const reply_book *self, uint64_t now)
{
    uint64_t still = atomic_load_explicit(&self->still_ms, memory_order_relaxed);
    uint64_t stepping = atomic_load_explicit(&self->stepping_ms, memory_order_relaxed);
    bool is_reading = stepping == UINT64_MAX || now < stepping + REPLY_STEP_MS;
    return !is_reading && stepping < still ? stepping : still;
}

/* Notifies the book of another loop whose oldest debt is older than `than_ms`, if there is one.
 * False: none, or it was notified already and the account cannot wait (that loop may not be
 * running). */
static bool ask_older(const reply_book *self, uint64_t than_ms, uint64_t now)
{
    bool can_wait = reply_account_bytes() <= self->most + self->most / 4;
    reply_book *oldest = NULL;
    pthread_mutex_lock(&books_lock);
    for (list_link *link = books.head.next; link != &books.head; link = link->next) {
        reply_book *other = CONTAINER_OF(link, reply_book, link);
        uint64_t mark = other != self ? age_mark(other, now) : UINT64_MAX;
        if (mark < than_ms) {
            than_ms = mark;
            oldest = other;
        }
    }
    bool is_asked = oldest != NULL && oldest->is_posted && can_wait;
    if (oldest != NULL && !oldest->is_posted) {
        is_asked = loop_post_message(oldest->loop, &oldest->message) == BAY_OK;
        oldest->is_posted = is_asked;
    }
    pthread_mutex_unlock(&books_lock);
    return is_asked;
}

/* Brings the account within its limit, as far as this loop can. */
static void reply_account_settle(reply_book *self, const reply_debt *newest, bool may_ask,
                                 uint64_t now)
{
    while (reply_account_bytes() > self->most) {
        reply_debt *oldest = find_oldest(self, newest, now);
        uint64_t since = oldest != NULL ? oldest->since_ms : UINT64_MAX;
        if ((may_ask && ask_older(self, since, now)) || oldest == NULL) {
            return;
        }
        self->ops->end(oldest);
        CHECK(oldest->bytes == 0);
    }
}

static void on_asked(void *argument)
{
    reply_book *self = argument;
    pthread_mutex_lock(&books_lock);
    self->is_posted = false;
    bool is_freed = self->is_freed;
    pthread_mutex_unlock(&books_lock);
    if (is_freed) {
        mem_free(self);
    } else {
        reply_account_settle(self, NULL, false, loop_now_ms(self->loop));
    }
}

/* --- debts ------------------------------------------------------------------------------------ */

void reply_debt_set(reply_book *book, reply_debt *self, size_t bytes, uint64_t now)
{
    size_t before = self->bytes;
    self->bytes = bytes;
    if (bytes > before) {
        reply_account_add(bytes - before);
    } else if (bytes < before) {
        reply_account_subtract(before - bytes);
        (void)reply_rooms_wake(now);
    }
    if (bytes == 0) {
        list_remove(&self->link);
        self->has_stepped = false;
        publish(book);
        return;
    }
    if (!list_holds(&self->link)) {
        self->began_ms = self->since_ms = now;
        self->taken = book->ops->taken(self);
        list_push(&book->still, &self->link);
        publish(book);
    } else {
        (void)notice_step(book, self, now);
    }
    if (bytes > before && reply_account_bytes() > book->most) {
        reply_account_settle(book, self, true, now);
    }
}

bool reply_debt_is_read(reply_book *book, reply_debt *self, uint64_t now)
{
    if (self->bytes > 0) {
        (void)notice_step(book, self, now);
    }
    return self->has_stepped && now < self->since_ms + REPLY_STEP_MS;
}

/* --- books ------------------------------------------------------------------------------------ */

bay_err reply_book_new(loop *runs_on, size_t most, const reply_book_ops *ops, reply_book **out)
{
    reply_book *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = runs_on;
    self->most = most;
    self->ops = ops;
    self->message = (loop_message){.function = on_asked, .argument = self};
    list_init(&self->still);
    list_init(&self->stepping);
    publish(self);
    pthread_mutex_lock(&books_lock);
    list_push(&books, &self->link);
    pthread_mutex_unlock(&books_lock);
    *out = self;
    return BAY_OK;
}

void reply_book_free(reply_book *self)
{
    if (self == NULL) {
        return;
    }
    CHECK(list_is_empty(&self->still) && list_is_empty(&self->stepping));
    pthread_mutex_lock(&books_lock);
    list_remove(&self->link);
    self->is_freed = self->is_posted;
    pthread_mutex_unlock(&books_lock);
    if (!self->is_freed) {
        mem_free(self);
    }
}
