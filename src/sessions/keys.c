/* The configured keys, and the one that lives in the store. */
#include "sessions/keys.h"

#include <sys/stat.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/kept_key.h"

/* ---- the configured ones: the last one that is added is the one that seals */

static bay_err add_configured(seal_ring *ring, const config_list *keys)
{
    bay_err err = BAY_OK;
    for (size_t i = keys->count; err == BAY_OK && i-- > 0;) {
        unsigned char key[SEAL_KEY_BYTES];
        err = seal_key_read(keys->at[i], key) ? BAY_OK : BAY_ERR_INVALID;
        if (err == BAY_OK) {
            err = seal_ring_add(ring, (bay_str){(const char *)key, sizeof(key)});
        }
        mem_wipe(key, sizeof(key));
    }
    return err;
}

/* ---- the one in the store */

static void warn_if_open(const char *path)
{
    struct stat about;
    if (stat(path, &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        LOG(LOG_WARN, "gateway",
            "store: %s holds a key and may be read by others than its owner: chmod 600 it", path);
    }
}

static bay_err add_from_store(seal_ring *ring, bay_str path, bay_diag *diag)
{
    char key[STORE_KEY_LEN];
    bay_err err = store_kept_key(store_open_sqlite, path, key, diag);
    if (err == BAY_OK) {
        warn_if_open(path.at);
        err = seal_ring_add(ring, (bay_str){key, sizeof(key)});
        err = err == BAY_OK ? err : diag_set(diag, err, "no keys: %s", bay_err_text(err));
    }
    mem_wipe(key, sizeof(key));
    return err;
}

bay_err session_keys_open(const config *settings, seal_ring **out, bay_diag *diag)
{
    seal_ring *ring = NULL;
    bool is_asked_for = settings->keys.count > 0 || settings->store.len > 0;
    bay_err err = seal_ring_new(&ring);
    if (err == BAY_ERR_UNSUPPORTED && !is_asked_for) {
        *out = NULL;
        return BAY_OK;
    }
    if (err == BAY_ERR_UNSUPPORTED) {
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
