/* The configured keys, and the one that lives in the store. */
#include "sessions/keys.h"

#include <sys/stat.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "net/loop.h"
#include "store/store.h"

enum { TURN_MS = 50 };

static const bay_str key_table = STR_INIT("keys");
static const bay_str key_name = STR_INIT("seal");

/* ---- the configured ones: the last one that is added is the one that seals */

static bay_err add_configured(seal_ring *ring, const config_list *keys)
{
    bay_err err = BAY_OK;
    for (size_t i = keys->count; err == BAY_OK && i-- > 0;) {
        unsigned char key[SEAL_KEY_BYTES];
        err = seal_key_read(keys->at[i], key) ? BAY_OK : BAY_INVALID;
        if (err == BAY_OK) {
            err = seal_ring_add(ring, (bay_str){(const char *)key, sizeof(key)});
        }
        mem_wipe(key, sizeof(key));
    }
    return err;
}

/* ---- the one in the store */

typedef struct answer {
    bool is_there;
    bay_err err;
    bool has_key;
    unsigned char key[SEAL_KEY_BYTES];
} answer;

static void on_answer(void *user, const store_result *result)
{
    answer *self = user;
    self->is_there = true;
    self->err = result->err;
    if (result->err == BAY_OK && result->count == 1 &&
        result->rows[0].value.len == SEAL_KEY_BYTES) {
        memcpy(self->key, result->rows[0].value.at, SEAL_KEY_BYTES);
        self->has_key = true;
    }
}

/* What was started ends, at the latest when the file has been locked for too long. */
static bay_err await(loop *on, answer *self, bay_err started)
{
    while (started == BAY_OK && !self->is_there) {
        (void)loop_turn(on, TURN_MS);
    }
    return started == BAY_OK ? self->err : started;
}

static bay_err read_kept(loop *on, store *from, answer *out)
{
    *out = (answer){0};
    bay_err err = await(on, out, store_get(from, key_table, key_name, on_answer, out));
    return err == BAY_OK && !out->has_key ? BAY_SYNTAX : err;
}

/* The first of several processes makes it, the others find it. */
static bay_err make_kept(loop *on, store *in)
{
    unsigned char key[SEAL_KEY_BYTES];
    answer put = {0};
    rand_bytes(key, sizeof(key));
    store_put_request request = {.table = key_table,
                                 .key = key_name,
                                 .value = {(const char *)key, sizeof(key)},
                                 .expected = STORE_ABSENT};
    bay_err err = await(on, &put, store_put(in, &request, on_answer, &put));
    mem_wipe(key, sizeof(key));
    return err == BAY_DUPLICATE ? BAY_OK : err;
}

static bay_err add_kept(loop *on, store *from, seal_ring *ring)
{
    answer kept;
    bay_err err = read_kept(on, from, &kept);
    if (err == BAY_NOTFOUND) {
        err = make_kept(on, from);
        err = err == BAY_OK ? read_kept(on, from, &kept) : err;
    }
    if (err == BAY_OK) {
        err = seal_ring_add(ring, (bay_str){(const char *)kept.key, sizeof(kept.key)});
    }
    mem_wipe(&kept, sizeof(kept));
    return err;
}

static void warn_if_open(const char *path)
{
    struct stat about;
    if (stat(path, &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        LOG(LOG_WARN, "gateway",
            "store: %s holds a key and may be read by others than its owner: chmod 600 it", path);
    }
}

static void on_closed(void *user)
{
    *(bool *)user = true;
}

static bay_err add_from_store(seal_ring *ring, bay_str path, bay_diag *diag)
{
    loop *on = NULL;
    store *file = NULL;
    bay_err err = loop_new(&on);
    if (err != BAY_OK) {
        return diag_set(diag, err, "out of memory");
    }
    err = store_open_sqlite(on, path, NULL, &file, diag);
    if (err == BAY_OK) {
        bool is_closed = false;
        warn_if_open(path.at);
        err = add_kept(on, file, ring);
        if (err != BAY_OK) {
            err = diag_set(diag, err, "the key in %.*s: %s", BAY_STR(path), bay_err_text(err));
        }
        store_close(file, on_closed, &is_closed);
        while (!is_closed) {
            (void)loop_turn(on, TURN_MS);
        }
        store_free(file);
    }
    loop_free(on);
    return err;
}

bay_err session_keys_open(const config *settings, seal_ring **out, bay_diag *diag)
{
    seal_ring *ring = NULL;
    bool is_asked_for = settings->keys.count > 0 || settings->store.len > 0;
    bay_err err = seal_ring_new(&ring);
    if (err == BAY_UNSUPPORTED && !is_asked_for) {
        *out = NULL;
        return BAY_OK;
    }
    if (err == BAY_UNSUPPORTED) {
        return diag_set(diag, err,
                        "keys and store need a build with TLS: this one cannot seal anything");
    }
    if (err == BAY_OK && settings->keys.count > 0) {
        err = add_configured(ring, &settings->keys);
    } else if (err == BAY_OK && settings->store.len > 0) {
        err = add_from_store(ring, settings->store, diag);
        if (err != BAY_OK) {
            seal_ring_free(ring);
            return err; /* it said why */
        }
    } else if (err == BAY_OK) {
        err = seal_ring_generate(ring);
    }
    if (err != BAY_OK) {
        seal_ring_free(ring);
        return diag_set(diag, err, "no keys: %s", bay_err_text(err));
    }
    *out = ring;
    return BAY_OK;
}
