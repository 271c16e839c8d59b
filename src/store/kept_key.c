#include "store/kept_key.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"

enum { TURN_MS = 50 };

static const bay_str key_table = STR_INIT("keys");
static const bay_str key_name = STR_INIT("seal");

typedef struct answer {
    bool is_there;
    bay_err err;
    bool has_key;
    char key[STORE_KEY_LEN];
} answer;

static void on_answer(void *user, const store_result *result)
{
    answer *self = user;
    self->is_there = true;
    self->err = result->err;
    if (result->err == BAY_OK && result->count == 1 && result->rows[0].value.len == STORE_KEY_LEN) {
        memcpy(self->key, result->rows[0].value.at, STORE_KEY_LEN);
        self->has_key = true;
    }
}

/* The operation ends at the latest when the file was locked for too long. */
static bay_err await(loop *on, answer *self, bay_err started)
{
    while (started == BAY_OK && !self->is_there) {
        (void)loop_turn(on, TURN_MS);
    }
    return started == BAY_OK ? self->err : started;
}

static bay_err read_key(loop *on, store *from, answer *out)
{
    *out = (answer){0};
    bay_err err = await(on, out, store_get(from, key_table, key_name, on_answer, out));
    return err == BAY_OK && !out->has_key ? BAY_ERR_SYNTAX : err;
}

static bay_err make_key(loop *on, store *in)
{
    char key[STORE_KEY_LEN];
    answer put = {0};
    rand_bytes(key, sizeof(key));
    store_put_request request = {
        .table = key_table, .key = key_name, .value = {key, sizeof(key)}, .expected = STORE_ABSENT};
    bay_err err = await(on, &put, store_put(in, &request, on_answer, &put));
    mem_wipe(key, sizeof(key));
    return err == BAY_ERR_DUPLICATE ? BAY_OK : err;
}

static void kept_key_on_closed(void *user)
{
    *(bool *)user = true;
}

bay_err store_kept_key(store_opener open, bay_str path, char out[STORE_KEY_LEN], bay_diag *diag)
{
    loop *on = NULL;
    store *file = NULL;
    answer kept = {0};
    bool is_closed = false;
    bay_err err = loop_new(&on);
    if (err != BAY_OK) {
        return diag_set(diag, err, "out of memory");
    }
    err = open(on, path, NULL, &file, diag);
    if (err != BAY_OK) {
        loop_free(on);
        return err;
    }
    err = read_key(on, file, &kept);
    if (err == BAY_ERR_NOT_FOUND) {
        err = make_key(on, file);
        err = err == BAY_OK ? read_key(on, file, &kept) : err;
    }
    if (err == BAY_OK) {
        memcpy(out, kept.key, STORE_KEY_LEN);
    } else {
        err = diag_set(diag, err, "the key in %.*s: %s", BAY_STR(path), bay_err_text(err));
    }
    mem_wipe(&kept, sizeof(kept));
    store_close(file, kept_key_on_closed, &is_closed);
    while (!is_closed) {
        (void)loop_turn(on, TURN_MS);
    }
    store_free(file);
    loop_free(on);
    return err;
}
