#include "evidence/journal.h"

#include <pthread.h>
#include <time.h>

#include "base/mem.h"
#include "net/thread.h"

struct journal {
    journal_sink sink;
    net_thread thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by `lock`. */
    buf ready;
    uint64_t dropped;
    uint64_t dropped_ever;
    bool is_failing;
    bool is_ending;
};

/* ---- the thread ------------------------------------------------------------------------------- */

static void wait_for_lines(journal *self)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += JOURNAL_RETRY_MS / 1000;
    bool is_late = false;
    while (!self->is_ending && !is_late && (self->ready.len == 0 || self->is_failing)) {
        is_late = pthread_cond_timedwait(&self->changed, &self->lock, &until) != 0;
    }
}

static void journal_run(void *argument)
{
    journal *self = argument;
    buf lines;
    buf_init(&lines, JOURNAL_BYTES);
    pthread_mutex_lock(&self->lock);
    for (bool is_over = false; !is_over;) {
        wait_for_lines(self);
        bool is_last = self->is_ending;
        uint64_t dropped = 0;
        if (!self->is_failing) {
            buf empty = lines;
            lines = self->ready;
            self->ready = empty;
            dropped = self->dropped;
            self->dropped = 0;
        }
        pthread_mutex_unlock(&self->lock);
        bool is_done = self->sink.write(self->sink.user, buf_view(&lines), dropped);
        buf_clear(&lines);
        if (self->sink.idle != NULL) {
            self->sink.idle(self->sink.user);
        }
        pthread_mutex_lock(&self->lock);
        self->is_failing = !is_done;
        is_over = is_last && (self->is_failing || self->ready.len == 0);
    }
    pthread_mutex_unlock(&self->lock);
    buf_fini(&lines);
}

static bay_err init_waiting(journal *self)
{
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        return BAY_ERR_NOMEM;
    }
    if (pthread_condattr_init(&attributes) != 0) {
        pthread_mutex_destroy(&self->lock);
        return BAY_ERR_NOMEM;
    }
    bool is_good = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                   pthread_cond_init(&self->changed, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    if (!is_good) {
        pthread_mutex_destroy(&self->lock);
    }
    return is_good ? BAY_OK : BAY_ERR_NOMEM;
}

bay_err journal_new(const journal_sink *sink, journal **out)
{
    journal *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->sink = *sink;
    buf_init(&self->ready, JOURNAL_BYTES);
    if (init_waiting(self) != BAY_OK) {
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    if (net_thread_start(&self->thread, journal_run, self) != BAY_OK) {
        pthread_cond_destroy(&self->changed);
        pthread_mutex_destroy(&self->lock);
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    *out = self;
    return BAY_OK;
}

void journal_free(journal *self)
{
    if (self == NULL) {
        return;
    }
    pthread_mutex_lock(&self->lock);
    self->is_ending = true;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
    net_thread_join(&self->thread);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    buf_fini(&self->ready);
    mem_free(self);
}

uint64_t journal_dropped(journal *self)
{
    if (self == NULL) {
        return 0;
    }
    pthread_mutex_lock(&self->lock);
    uint64_t dropped = self->dropped_ever;
    pthread_mutex_unlock(&self->lock);
    return dropped;
}

/* ---- a lane ----------------------------------------------------------------------------------- */

static void lane_late(void *argument)
{
    journal_lane *self = argument;
    self->is_timed = false;
    journal_lane_flush(self);
}

void journal_lane_open(journal_lane *self, journal *to, loop *on)
{
    *self = (journal_lane){.journal = to, .loop = on};
    loop_timer_init(&self->timer, lane_late, self);
    buf_init(&self->lines, LANE_BYTES);
}

void journal_lane_close(journal_lane *self)
{
    if (self->journal == NULL) {
        return;
    }
    loop_timer_stop(self->loop, &self->timer);
    journal_lane_flush(self);
    if (self->lines.len > 0) { /* no room: its lines are counted as dropped */
        for (size_t i = 0; i < self->lines.len; i++) {
            self->dropped += self->lines.at[i] == '\n';
        }
        buf_clear(&self->lines);
        journal_lane_flush(self);
    }
    buf_fini(&self->lines);
    self->journal = NULL;
}

buf *journal_lane_begin(journal_lane *self)
{
    self->begun = self->lines.len;
    return &self->lines;
}

static void lane_time(journal_lane *self)
{
    if (!self->is_timed) {
        self->is_timed = loop_timer_start(self->loop, &self->timer, JOURNAL_DELAY_MS) == BAY_OK;
    }
}

void journal_lane_end(journal_lane *self)
{
    buf *lines = &self->lines;
    buf_char(lines, '\n');
    if (lines->err != BAY_OK) {
        lines->len = self->begun;
        lines->err = BAY_OK;
        self->dropped++;
        self->is_failing = true;
    }
    if (lines->len >= LANE_BATCH_BYTES || (!self->is_timed && self->dropped > 0)) {
        journal_lane_flush(self);
    } else {
        lane_time(self);
    }
}

void journal_lane_flush(journal_lane *self)
{
    journal *to = self->journal;
    if (to == NULL) {
        return;
    }
    pthread_mutex_lock(&to->lock);
    bool is_empty = to->ready.len == 0;
    bool fits = buf_reserve(&to->ready, self->lines.len);
    if (fits) {
        buf_str(&to->ready, buf_view(&self->lines));
    } else {
        to->ready.err = BAY_OK; /* what is in it stays */
    }
    to->dropped += self->dropped;
    to->dropped_ever += self->dropped;
    self->is_failing = to->is_failing || !fits || self->dropped > 0;
    if (is_empty && to->ready.len > 0) {
        pthread_cond_signal(&to->changed);
    }
    pthread_mutex_unlock(&to->lock);
    self->dropped = 0;
    if (fits) {
        buf_clear(&self->lines);
    } else {
        lane_time(self);
    }
}
