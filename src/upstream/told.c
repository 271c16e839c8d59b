#include "upstream/told.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define TEXT_SEED UINT64_C(0x9e3779b97f4a7c15)

struct upstream_told {
    atomic_uint references;
    pthread_mutex_t lock;                /* guards what follows */
    unsigned down;                       /* owners that failed and have not been ready since */
    upstream_state last;                 /* of the last line; STARTING: there was none */
    char reason[UPSTREAM_ERROR_BYTES];   /* of the last line about a failure */
    uint64_t repeats;                    /* of it */
    uint64_t texts[UPSTREAM_TOLD_TEXTS]; /* hashes of complaints; 0: free */
    size_t next_text;                    /* the oldest */
};

bay_err upstream_told_new(upstream_told **out)
{
    upstream_told *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    pthread_mutex_init(&self->lock, NULL);
    self->last = UPSTREAM_STARTING;
    *out = self;
    return BAY_OK;
}

upstream_told *upstream_told_ref(upstream_told *self)
{
    atomic_fetch_add(&self->references, 1);
    return self;
}

void upstream_told_unref(upstream_told *self)
{
    if (self != NULL && atomic_fetch_sub(&self->references, 1) == 1) {
        pthread_mutex_destroy(&self->lock);
        mem_free(self);
    }
}

static bool is_bad(upstream_state state)
{
    return state == UPSTREAM_BACKOFF || state == UPSTREAM_OPEN;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* After the word that begins here with a digit. */
static const char *skip_number(const char *at)
{
    while (is_digit(*at) || (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z')) {
        at++;
    }
    return at;
}

static bool is_same_reason(const char *one, const char *other)
{
    while (*one != '\0' && *other != '\0') {
        if (is_digit(*one) && is_digit(*other)) {
            one = skip_number(one);
            other = skip_number(other);
        } else if (*one++ != *other++) {
            return false;
        }
    }
    return *one == *other;
}

static upstream_line tell_failure(upstream_told *self, upstream_state to, const char *reason)
{
    bool is_new = !is_bad(self->last) || !is_same_reason(self->reason, reason);
    if (is_new) {
        snprintf(self->reason, sizeof(self->reason), "%s", reason);
        self->repeats = 0;
    } else {
        self->repeats++;
    }
    self->last = to;
    return (upstream_line){.is_new = is_new};
}

upstream_line upstream_told_step(upstream_told *self, bool *inout_is_down, upstream_state to,
                                 const char *reason)
{
    upstream_line line = {0};
    if (to == UPSTREAM_STARTING) {
        return line; /* each attempt, and no outcome yet */
    }
    pthread_mutex_lock(&self->lock);
    self->down += is_bad(to) && !*inout_is_down;
    self->down -= !is_bad(to) && *inout_is_down;
    *inout_is_down = is_bad(to);
    if (is_bad(to)) {
        line = tell_failure(self, to, reason);
    } else if (self->down == 0 && self->last != to) {
        line = (upstream_line){true, is_bad(self->last) ? self->repeats : 0};
        self->last = to;
        memset(self->texts, 0, sizeof(self->texts));
    }
    pthread_mutex_unlock(&self->lock);
    return line;
}

/* UPSTREAM_TOLD_TEXTS: it is not there. */
static size_t find_text(const upstream_told *self, uint64_t hash)
{
    size_t at = 0;
    while (at < UPSTREAM_TOLD_TEXTS && self->texts[at] != hash) {
        at++;
    }
    return at;
}

static uint64_t hash_text(bay_str text)
{
    uint64_t hash = str_hash(text, TEXT_SEED);
    return hash != 0 ? hash : 1;
}

bool upstream_told_text(upstream_told *self, bay_str text)
{
    if (self == NULL) {
        return true;
    }
    uint64_t hash = hash_text(text);
    pthread_mutex_lock(&self->lock);
    bool is_new = find_text(self, hash) == UPSTREAM_TOLD_TEXTS;
    if (is_new) {
        self->texts[self->next_text] = hash;
        self->next_text = (self->next_text + 1) % UPSTREAM_TOLD_TEXTS;
    }
    pthread_mutex_unlock(&self->lock);
    return is_new;
}

void upstream_told_text_over(upstream_told *self, bay_str text)
{
    if (self == NULL || text.len == 0) {
        return;
    }
    pthread_mutex_lock(&self->lock);
    size_t at = find_text(self, hash_text(text));
    if (at < UPSTREAM_TOLD_TEXTS) {
        self->texts[at] = 0;
    }
    pthread_mutex_unlock(&self->lock);
}
