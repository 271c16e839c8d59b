/* A store under test: a loop, a clock that the test turns, a folder for the file, and answers that
 * are waited for. */
#ifndef SUPPORT_STORE_RIG_H
#define SUPPORT_STORE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "net/loop.h"
#include "store/store.h"

#ifdef BAY_NO_SQLITE
#define RIG_HAS_SQLITE false
#else
#define RIG_HAS_SQLITE true
#endif
#define RIG_NOW UINT64_C(1700000000000)
#define RIG_TURNS 100000 /* bounds a broken test, not a working one */

typedef struct store_rig {
    bool is_sqlite;
    loop *loop;
    store *store;
    store_options options;
    uint64_t now_ms;
    char folder[64];
    char path[128];
    int closed;
} store_rig;

/* A result, kept: rows as "key=value@version " with versions left out when `is_short`. */
typedef struct answer {
    int calls;
    bay_err err;
    uint64_t version;
    bool has_more;
    size_t count;
    uint64_t held_rows;
    uint64_t held_bytes;
    uint64_t last_version; /* of the last row */
    uint64_t expires_at_ms;
    bay_str last_key;
    buf text;
    int *order; /* counts the completions of all that share it */
    int place;
} answer;

static inline void answer_clear(answer *self)
{
    buf_fini(&self->text);
    *self = (answer){0};
}

static inline void on_answer(void *user, const store_result *result)
{
    answer *self = user;
    self->calls++;
    self->err = result->err;
    self->version = result->version;
    self->has_more = result->has_more;
    self->count = result->count;
    self->held_rows = result->held_rows;
    self->held_bytes = result->held_bytes;
    self->place = self->order != NULL ? (*self->order)++ : 0;
    buf_init(&self->text, SIZE_MAX / 2);
    for (size_t i = 0; i < result->count; i++) {
        const store_row *row = &result->rows[i];
        buf_str(&self->text, row->key);
        buf_char(&self->text, '=');
        buf_str(&self->text, row->value);
        buf_char(&self->text, ' ');
        self->last_version = row->version;
        self->expires_at_ms = row->expires_at_ms;
    }
}

static inline uint64_t rig_now(void *user)
{
    return ((store_rig *)user)->now_ms;
}

static inline bay_err rig_try_open(store_rig *self, bay_diag *diag)
{
    self->options.now = rig_now;
    self->options.now_user = self;
    return self->is_sqlite
               ? store_open_sqlite(self->loop, (bay_str){self->path, strlen(self->path)},
                                   &self->options, &self->store, diag)
               : store_open_memory(self->loop, &self->options, &self->store);
}

static inline void rig_open(store_rig *self)
{
    bay_diag diag = {0};
    bay_err err = rig_try_open(self, &diag);
    if (err != BAY_OK) {
        fail_msg("%s: %s", bay_err_text(err), diag.text);
    }
}

static inline void rig_remove_file(store_rig *self)
{
    char other[160];
    unlink(self->path);
    snprintf(other, sizeof(other), "%s-wal", self->path);
    unlink(other);
    snprintf(other, sizeof(other), "%s-shm", self->path);
    unlink(other);
}

static inline store_rig *rig_new(bool is_sqlite)
{
    store_rig *self = calloc(1, sizeof(*self));
    assert_non_null(self);
    self->is_sqlite = is_sqlite;
    self->now_ms = RIG_NOW;
    self->options.sweep_ms = 3600000; /* not while a test looks, unless it asks for it */
    strncpy(self->folder, "/tmp/patchbay-store-XXXXXX", sizeof(self->folder) - 1);
    assert_non_null(mkdtemp(self->folder));
    snprintf(self->path, sizeof(self->path), "%s/state.db", self->folder);
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    return self;
}

static inline void rig_on_closed(void *user)
{
    ((store_rig *)user)->closed++;
}

#define rig_turn_until(self, condition)                                                            \
    do {                                                                                           \
        int turns_left = RIG_TURNS;                                                                \
        while (!(condition) && turns_left-- > 0) {                                                 \
            loop_turn((self)->loop, 20);                                                           \
        }                                                                                          \
        assert_true(condition);                                                                    \
    } while (0)

static inline void rig_close(store_rig *self)
{
    if (self->store != NULL) {
        int before = self->closed;
        store_close(self->store, rig_on_closed, self);
        assert_int_equal(self->closed, before);
        rig_turn_until(self, self->closed == before + 1);
        assert_true(store_is_closed(self->store));
        store_free(self->store);
        self->store = NULL;
    }
}

static inline void rig_reopen(store_rig *self)
{
    rig_close(self);
    rig_open(self);
}

/* The same store, opened anew with other options (a file keeps what is in it: nothing yet). */
static inline void reopen_with(store_rig *rig, store_options options)
{
    rig->options = options;
    if (rig->options.sweep_ms == 0) {
        rig->options.sweep_ms = 3600000;
    }
    rig_reopen(rig);
}

static inline void rig_free(store_rig *self)
{
    rig_close(self);
    loop_free(self->loop);
    rig_remove_file(self);
    rmdir(self->folder);
    free(self);
}

/* Waits for what `started` began; fails when it was refused, came too early or came twice. */
static inline bay_err rig_wait(store_rig *self, answer *out, bay_err started)
{
    assert_int_equal(started, BAY_OK);
    assert_int_equal(out->calls, 0);
    rig_turn_until(self, out->calls > 0);
    assert_int_equal(out->calls, 1);
    return out->err;
}

/* ask(rig, answer, get, table, key): starts it on the rig's store and waits. */
#define ask(self, out, verb, ...)                                                                  \
    (answer_clear(out),                                                                            \
     rig_wait((self), (out), store_##verb((self)->store, __VA_ARGS__, on_answer, (out))))

static inline bool answer_is(const answer *self, const char *text)
{
    bool is_same = self->text.len == strlen(text) &&
                   (self->text.len == 0 || memcmp(self->text.at, text, self->text.len) == 0);
    if (!is_same) {
        print_error("found '%.*s', not '%s'\n", (int)self->text.len, self->text.at, text);
    }
    return is_same;
}

/* A put that names everything; the version it made. */
static inline bay_err rig_put(store_rig *self, answer *out, const char *key, const char *value,
                              uint64_t expected, uint64_t expires_at_ms)
{
    store_put_request request = {.table = {"t", 1},
                                 .key = {key, strlen(key)},
                                 .value = {value, strlen(value)},
                                 .expected = expected,
                                 .expires_at_ms = expires_at_ms};
    return ask(self, out, put, &request);
}

static inline uint64_t rig_set(store_rig *self, const char *key, const char *value)
{
    answer a = {0};
    assert_int_equal(rig_put(self, &a, key, value, STORE_ANY, 0), BAY_OK);
    uint64_t version = a.version;
    answer_clear(&a);
    return version;
}

static inline bay_err rig_append(store_rig *self, answer *out, const char *stream,
                                 const char *value, uint64_t keep_events, uint64_t keep_bytes)
{
    store_append_request request = {.stream = {stream, strlen(stream)},
                                    .value = {value, strlen(value)},
                                    .keep_events = keep_events,
                                    .keep_bytes = keep_bytes};
    return ask(self, out, append, &request);
}

/* For cmocka: the state of a case is an open rig. */
static inline int rig_setup_memory(void **state)
{
    *state = rig_new(false);
    rig_open(*state);
    return 0;
}

static inline int rig_setup_sqlite(void **state)
{
    *state = rig_new(true);
    rig_open(*state);
    return 0;
}

static inline int rig_teardown(void **state)
{
    rig_free(*state);
    return 0;
}

#endif
