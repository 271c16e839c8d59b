/* Owners as rows of a store. Any loop leaves a change in a queue; the home loop takes what is there
 * and gives it to the store, in order.
 *
 *   changed ──► queue ──message──► home: put, remove ──done──► next
 *
 * A store that fails keeps nobody from being served: it is said once, and what was to be kept
 * belongs to nobody in the next process. */
#include <pthread.h>
#include <string.h>

#include "agents/owners_parts.h"
#include "base/check.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"

enum {
    TURN_MS = 20,
    IN_FLIGHT = 256,  /* changes that the store is working on */
    READ_ROWS = 1000, /* of one scan */
};

static const bay_str table = STR_INIT("owners");

typedef struct change {
    list_link link;
    uint64_t expires_at_ms;
    size_t key_len;
    size_t value_len;
    bool is_removal;
    char bytes[];
} change;

struct owners_rows {
    loop *home;
    store *store; /* NULL: not opened yet */
    size_t in_flight;
    bool has_failed; /* and it was said */
    loop_message message;
    pthread_mutex_t lock; /* guards what follows */
    list waiting;
    size_t count;
    bool is_posted;
    bool is_full; /* and it was said */
    size_t path_len;
    char path[];
};

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct reading {
    owners_row read;
    void *user;
    char last[STORE_KEY_BYTES];
    size_t last_len;
    bool is_over;
    bool has_more;
    bay_err err;
} reading;

static void on_rows(void *user, const store_result *result)
{
    reading *self = user;
    self->is_over = true;
    self->has_more = result->has_more;
    self->err = result->err;
    for (size_t i = 0; result->err == BAY_OK && i < result->count; i++) {
        const store_row *row = &result->rows[i];
        self->read(self->user, row->key, row->value, row->expires_at_ms);
        memcpy(self->last, row->key.at, row->key.len);
        self->last_len = row->key.len;
    }
}

static void owners_rows_on_closed(void *user)
{
    *(bool *)user = true;
}

static void close_store(loop *on, store *file)
{
    bool is_closed = false;
    store_close(file, owners_rows_on_closed, &is_closed);
    while (!is_closed) {
        (void)loop_turn(on, TURN_MS);
    }
    store_free(file);
}

bay_err owners_rows_read(bay_str path, owners_row read, void *user, bay_diag *diag)
{
    loop *on = NULL;
    store *file = NULL;
    reading rows = {.read = read, .user = user, .has_more = true};
    bay_err err = loop_new(&on);
    if (err != BAY_OK) {
        return diag_set(diag, err, "out of memory");
    }
    err = store_open_sqlite(on, path, NULL, &file, diag);
    if (err != BAY_OK) {
        loop_free(on);
        return err;
    }
    while (err == BAY_OK && rows.has_more) {
        rows.is_over = false;
        rows.has_more = false;
        err = store_scan(file, table, STR(""), (bay_str){rows.last, rows.last_len}, READ_ROWS,
                         on_rows, &rows);
        while (err == BAY_OK && !rows.is_over) {
            (void)loop_turn(on, TURN_MS);
        }
        err = err == BAY_OK ? rows.err : err;
    }
    if (err != BAY_OK) {
        err = diag_set(diag, err, "store: who owns the agents' tasks could not be read: %s",
                       bay_err_text(err));
    }
    close_store(on, file);
    loop_free(on);
    return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_next(owners_rows *self);

static void on_written(void *user, const store_result *result)
{
    owners_rows *self = user;
    self->in_flight--;
    bool is_fine = result->err == BAY_OK || result->err == BAY_ERR_NOT_FOUND;
    if (!is_fine && !self->has_failed) {
        LOG(LOG_WARN, "agents",
            "store: who owns a task could not be written: %s; after a restart such tasks belong to "
            "nobody",
            bay_err_text(result->err));
    }
    self->has_failed = !is_fine;
    write_next(self);
}

/* The store is opened when an identified caller comes, and not before. */
static bay_err start(owners_rows *self, const change *one)
{
    if (self->store == NULL) {
        bay_err err = store_open_sqlite(self->home, (bay_str){self->path, self->path_len}, NULL,
                                        &self->store, NULL);
        if (err != BAY_OK) {
            return err;
        }
    }
    bay_str key = {one->bytes, one->key_len};
    if (one->is_removal) {
        return store_remove(self->store, table, key, STORE_ANY, on_written, self);
    }
    store_put_request put = {.table = table,
                             .key = key,
                             .value = {one->bytes + one->key_len, one->value_len},
                             .expires_at_ms = one->expires_at_ms,
                             .expected = STORE_ANY,
                             .is_relaxed = true};
    return store_put(self->store, &put, on_written, self);
}

static change *take_next(owners_rows *self)
{
    pthread_mutex_lock(&self->lock);
    list_link *link = list_pop(&self->waiting);
    self->count -= link != NULL;
    self->is_full = self->is_full && self->count > AGENTS_OWNED_CHANGES / 2;
    pthread_mutex_unlock(&self->lock);
    return link != NULL ? CONTAINER_OF(link, change, link) : NULL;
}

static void write_next(owners_rows *self)
{
    change *one;
    while (self->in_flight < IN_FLIGHT && (one = take_next(self)) != NULL) {
        bay_err err = start(self, one);
        self->in_flight += err == BAY_OK;
        if (err != BAY_OK && !self->has_failed) {
            self->has_failed = true;
            LOG(LOG_WARN, "agents", "store: who owns a task cannot be written: %s",
                bay_err_text(err));
        }
        mem_free(one);
    }
}

static void on_message(void *argument)
{
    owners_rows *self = argument;
    pthread_mutex_lock(&self->lock);
    self->is_posted = false;
    pthread_mutex_unlock(&self->lock);
    write_next(self);
}

void owners_rows_change(owners_rows *self, bay_str key, bay_str value, uint64_t expires_at_ms)
{
    change *made = mem_zalloc(sizeof(*made) + key.len + value.len);
    if (made != NULL) {
        made->expires_at_ms = expires_at_ms;
        made->is_removal = value.at == NULL;
        made->key_len = key.len;
        made->value_len = value.len;
        memcpy(made->bytes, key.at, key.len);
        if (value.len > 0) {
            memcpy(made->bytes + key.len, value.at, value.len);
        }
    }
    pthread_mutex_lock(&self->lock);
    if (made != NULL && self->count < AGENTS_OWNED_CHANGES) {
        list_push(&self->waiting, &made->link);
        self->count++;
        made = NULL;
    } else if (!self->is_full) {
        self->is_full = true;
        LOG(LOG_WARN, "agents",
            "store: too many tasks are begun at once to write whose they are; after a restart such "
            "tasks belong to nobody");
    }
    if (!self->is_posted && self->count > 0) {
        self->message = (loop_message){.function = on_message, .argument = self};
        self->is_posted = loop_post_message(self->home, &self->message) == BAY_OK;
    }
    pthread_mutex_unlock(&self->lock);
    mem_free(made);
}

bay_err owners_rows_new(loop *home, bay_str path, owners_rows **out)
{
    owners_rows *self = mem_zalloc(sizeof(*self) + path.len);
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->home = home;
    self->path_len = path.len;
    memcpy(self->path, path.at, path.len);
    list_init(&self->waiting);
    pthread_mutex_init(&self->lock, NULL);
    *out = self;
    return BAY_OK;
}

void owners_rows_free(owners_rows *self)
{
    if (self == NULL) {
        return;
    }
    write_next(self);
    while (self->in_flight > 0 || self->is_posted) { /* no other thread uses it any more */
        (void)loop_turn(self->home, TURN_MS);
    }
    if (self->store != NULL) {
        close_store(self->home, self->store);
    }
    CHECK(list_is_empty(&self->waiting));
    pthread_mutex_destroy(&self->lock);
    mem_free(self);
}
