#include "agents/aliases.h"

#include <pthread.h>
#include <string.h>

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"

typedef struct alias {
    list_link link; /* oldest first */
    bay_str key;
    bay_str id;
    char bytes[];
} alias;

struct agents_aliases {
    pthread_mutex_t lock; /* guards all of it */
    map by_key;
    list all;
    size_t count;
};

bay_err agents_aliases_new(agents_aliases **out)
{
    agents_aliases *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    pthread_mutex_init(&self->lock, NULL);
    map_init(&self->by_key, AGENTS_ALIASES + 1);
    list_init(&self->all);
    *out = self;
    return BAY_OK;
}

static void drop(agents_aliases *self, alias *old)
{
    if (map_get(&self->by_key, old->key) == old) {
        map_remove(&self->by_key, old->key);
    }
    list_remove(&old->link);
    self->count--;
    mem_free(old);
}

void agents_aliases_free(agents_aliases *self)
{
    list_link *at;
    if (self == NULL) {
        return;
    }
    while ((at = list_first(&self->all)) != NULL) {
        drop(self, CONTAINER_OF(at, alias, link));
    }
    map_fini(&self->by_key);
    pthread_mutex_destroy(&self->lock);
    mem_free(self);
}

/* Unambiguous: names hold no NUL, and an identity tells its own length or is empty. */
static void write_key(bay_str agent, bay_str principal, bay_str client_id, buf *out)
{
    buf_str(out, agent);
    buf_char(out, '\0');
    buf_str(out, principal);
    buf_char(out, '\0');
    buf_str(out, client_id);
}

void agents_aliases_put(agents_aliases *self, bay_str agent, bay_str principal, bay_str client_id,
                        bay_str id)
{
    buf key;
    if (client_id.len > AGENTS_ALIAS_BYTES || id.len > AGENTS_ALIAS_BYTES) {
        return;
    }
    buf_init(&key, 64 << 10);
    write_key(agent, principal, client_id, &key);
    alias *made = key.err == BAY_OK ? mem_zalloc(sizeof(*made) + key.len + id.len) : NULL;
    if (made != NULL) {
        memcpy(made->bytes, key.at, key.len);
        memcpy(made->bytes + key.len, id.at, id.len);
        made->key = (bay_str){made->bytes, key.len};
        made->id = (bay_str){made->bytes + key.len, id.len};
        pthread_mutex_lock(&self->lock);
        alias *old = map_get(&self->by_key, made->key);
        if (old != NULL) {
            drop(self, old);
        }
        if (self->count == AGENTS_ALIASES) {
            drop(self, CONTAINER_OF(list_first(&self->all), alias, link));
        }
        if (map_put(&self->by_key, made->key, made, NULL) == BAY_OK) {
            list_push(&self->all, &made->link);
            self->count++;
        } else {
            mem_free(made);
        }
        pthread_mutex_unlock(&self->lock);
    }
    buf_fini(&key);
}

bool agents_aliases_find(agents_aliases *self, bay_str agent, bay_str principal, bay_str client_id,
                         buf *out)
{
    buf key;
    bool is_known = false;
    buf_init(&key, 64 << 10);
    write_key(agent, principal, client_id, &key);
    if (key.err == BAY_OK) {
        pthread_mutex_lock(&self->lock);
        const alias *found = map_get(&self->by_key, buf_view(&key));
        is_known = found != NULL;
        if (is_known) {
            buf_str(out, found->id);
        }
        pthread_mutex_unlock(&self->lock);
    }
    buf_fini(&key);
    return is_known && out->err == BAY_OK;
}
