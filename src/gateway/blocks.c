#include "gateway/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "auth/block.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

enum { TURN_MS = 50 };

typedef char block_text[DIGEST_TEXT_BYTES];

/* Rows that are being read outlive who asked for them. */
typedef struct reading {
    gateway_blocks *of; /* NULL: it is gone */
    block_text *keys;
    size_t count;
    size_t cap;
} reading;

struct gateway_blocks {
    loop *loop;
    store *rows;
    loop_timer timer;
    block_text *keys; /* in order */
    size_t count;
    bool is_known;
    bool has_failed; /* and the log said so */
    reading *under_way;
    void (*read)(void *user); /* NULL: nobody watches */
    void *user;
};

static int compare(const void *one, const void *other)
{
    return memcmp(one, other, sizeof(block_text));
}

static void reading_free(reading *self)
{
    mem_free(self->keys);
    mem_free(self);
}

static void read_later(gateway_blocks *self)
{
    if (loop_timer_start(self->loop, &self->timer, BLOCKS_READ_MS) != BAY_OK) {
        LOG(LOG_ERROR, "auth", "out of memory: who is blocked is not read again");
    }
}

static void failed(gateway_blocks *self, bay_err err)
{
    if (!self->has_failed) {
        LOG(LOG_ERROR, "auth", "who is blocked cannot be read from the store: %s; %s",
            bay_err_text(err),
            self->is_known ? "those who were stay blocked"
                           : "nobody comes in until it can be read");
    }
    self->has_failed = true;
}

static bool take(reading *self, const store_row *row)
{
    if (row->key.len != sizeof(block_text)) {
        return true; /* none of ours */
    }
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 16 : self->cap * 2;
        block_text *keys = cap <= 2 * BLOCKS ? mem_resize(self->keys, cap * sizeof(*keys)) : NULL;
        if (keys == NULL) {
            return false;
        }
        self->keys = keys;
        self->cap = cap;
    }
    memcpy(self->keys[self->count++], row->key.at, sizeof(block_text));
    return true;
}

static void on_rows(void *user, const store_result *result);

static bay_err read_after(reading *self, bay_str last)
{
    return store_scan(self->of->rows, STR(BLOCK_TABLE), STR(""), last, STORE_READ_ROWS, on_rows,
                      self);
}

static void conclude(reading *self, bay_err err)
{
    gateway_blocks *of = self->of;
    of->under_way = NULL;
    if (err == BAY_OK) {
        mem_free(of->keys);
        of->keys = self->keys;
        of->count = self->count;
        of->is_known = true;
        of->has_failed = false;
        self->keys = NULL;
    } else {
        failed(of, err);
    }
    reading_free(self);
    read_later(of);
    if (err == BAY_OK && of->count > 0 && of->read != NULL) {
        of->read(of->user);
    }
}

static void on_rows(void *user, const store_result *result)
{
    reading *self = user;
    bay_err err = result->err;
    if (self->of == NULL) {
        reading_free(self);
        return;
    }
    for (size_t i = 0; err == BAY_OK && i < result->count; i++) {
        err = take(self, &result->rows[i]) ? BAY_OK : BAY_ERR_LIMIT;
    }
    if (err == BAY_OK && result->has_more) {
        err = read_after(self, result->rows[result->count - 1].key);
        if (err == BAY_OK) {
            return;
        }
    }
    conclude(self, err);
}

void gateway_blocks_refresh(void *argument)
{
    gateway_blocks *self = argument;
    if (self->under_way != NULL) {
        return;
    }
    reading *made = mem_zalloc(sizeof(*made));
    bay_err err = made != NULL ? BAY_OK : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        made->of = self;
        self->under_way = made;
        err = read_after(made, STR(""));
    }
    if (err != BAY_OK) {
        self->under_way = NULL;
        mem_free(made);
        failed(self, err);
        read_later(self);
    }
}

bay_err gateway_blocks_new(loop *on, store *rows, gateway_blocks **out)
{
    gateway_blocks *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = on;
    self->rows = rows;
    loop_timer_init(&self->timer, gateway_blocks_refresh, self);
    gateway_blocks_refresh(self);
    while (self->under_way != NULL) {
        (void)loop_turn(on, TURN_MS);
    }
    *out = self;
    return BAY_OK;
}

void gateway_blocks_watch(gateway_blocks *self, void (*read)(void *user), void *user)
{
    self->read = read;
    self->user = user;
}

void gateway_blocks_free(gateway_blocks *self)
{
    if (self == NULL) {
        return;
    }
    if (self->under_way != NULL) {
        self->under_way->of = NULL;
    }
    loop_timer_stop(self->loop, &self->timer);
    mem_free(self->keys);
    mem_free(self);
}

blocks_answer gateway_blocks_have(const gateway_blocks *self, const auth_principal *who)
{
    char key[DIGEST_TEXT_BYTES + 1];
    if (!self->is_known) {
        return BLOCKS_UNKNOWN;
    }
    if (self->count == 0) {
        return BLOCKS_NO;
    }
    if (block_key(principal_subject(who), key) != BAY_OK) {
        return BLOCKS_UNKNOWN;
    }
    return bsearch(key, self->keys, self->count, sizeof(block_text), compare) != NULL ? BLOCKS_YES
                                                                                      : BLOCKS_NO;
}
