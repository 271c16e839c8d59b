#include "sdk/row_keys.h"

#include "base/err.h"
#include "base/mem.h"

bay_err sdk_row_keys_open(store_opener open, bay_str path, seal_ring **out, bay_diag *diag)
{
    char key[STORE_KEY_LEN];
    seal_ring *ring = NULL;
    bay_err err = seal_ring_new(&ring);
    if (err == BAY_ERR_UNSUPPORTED) {
        *out = NULL;
        return BAY_OK;
    }
    if (err != BAY_OK) {
        return diag_set(diag, err, "%s", bay_err_text(err));
    }
    err = store_kept_key(open, path, key, diag);
    if (err == BAY_OK) {
        err = seal_ring_add(ring, (bay_str){key, sizeof(key)});
        err = err == BAY_OK ? err : diag_set(diag, err, "%s", bay_err_text(err));
    }
    mem_wipe(key, sizeof(key));
    if (err != BAY_OK) {
        seal_ring_free(ring);
        return err;
    }
    *out = ring;
    return BAY_OK;
}
