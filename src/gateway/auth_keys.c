/* API keys in the store: by their public part, with a digest of the whole key. */
#include "base/err.h"
#include "base/mem.h"
#include "gateway/auth_parts.h"

typedef struct key_lookup {
    oauth_key_done done;
    void *argument;
} key_lookup;

static void on_row(void *user, const store_result *result)
{
    key_lookup *self = user;
    key_lookup asked = *self;
    api_key key;
    arena memory;
    mem_free(self);
    arena_init(&memory, API_KEY_MEMORY_BYTES);
    bay_err err = result->err;
    if (err == BAY_OK) {
        err = api_key_row_read(result->rows[0].value, &memory, &key);
    }
    asked.done(asked.argument, err, err == BAY_OK ? &key : NULL);
    arena_fini(&memory);
}

void auth_key_find(void *user, bay_str id, oauth_key_done done, void *argument)
{
    key_lookup *self = mem_zalloc(sizeof(*self));
    bay_err err = self != NULL ? BAY_OK : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        *self = (key_lookup){.done = done, .argument = argument};
        err = store_get(user, STR(API_KEY_TABLE), id, on_row, self);
    }
    if (err != BAY_OK) {
        mem_free(self);
        done(argument, err, NULL);
    }
}
