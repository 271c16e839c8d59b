/* The table. An entry is in three places: by its key in the map, and in two lists, each with the
 * least recently used first: its agent's and its owner's at that agent.
 *
 * A key is  agent | NUL | kind | id  and names of agents have no NUL. The key of an agent's mark,
 * which says that it is not open, has the kind '!' and no id. */
#include "agents/owners_parts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    MARK = '!',
    MOST_AGENTS = 1 << 16,
    MOST_ENTRIES = 1 << 26,
    DAY_MS = 86400 * 1000,
    KIND_BYTES = 2, /* the NUL and the kind */
};

#define LIFE_MS ((uint64_t)AGENTS_OWNED_DAYS * DAY_MS)

/* What one owner has at one agent. */
typedef struct owner {
    agents_owned *of;
    list entries; /* by owner_link */
    size_t count;
    size_t tasks;
    bay_str key; /* with the agent's name before it, as in the map of owners */
    size_t prefix;
    char bytes[];
} owner;

typedef struct entry {
    list_link agent_link;
    list_link owner_link;
    owner *owner;
    uint64_t expires_at_ms;
    bay_str key;
    char bytes[];
} entry;

struct agents_owned {
    agents_owners *of;
    atomic_bool is_closed;
    list entries; /* by agent_link */
    size_t count;
    bay_str name;
    char bytes[];
};

struct agents_owners {
    pthread_mutex_t lock; /* guards all but is_closed */
    map agents;
    map owners;        /* by agent, NUL and the owner's key */
    map entries;       /* by their keys */
    owners_rows *rows; /* NULL: nothing outlives the process */
    size_t path_len;
    char path[]; /* of the store; none: "" */
};

/* ---- keys ------------------------------------------------------------------------------------ */

static bool write_key(bay_str agent, char kind, bay_str id, buf *out)
{
    buf_str(out, agent);
    buf_char(out, '\0');
    buf_char(out, kind);
    buf_str(out, id);
    return out->err == BAY_OK;
}

static char kind_of(const entry *self)
{
    return self->key.at[self->owner->of->name.len + 1];
}

static bay_str key_of(const owner *self)
{
    return str_from(self->key, self->prefix);
}

/* ---- owners and entries: the lock is held ---------------------------------------------------- */

static owner *owner_find(const agents_owned *at, bay_str key, bool is_made)
{
    char bytes[1024];
    buf name = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    buf_str(&name, at->name);
    buf_char(&name, '\0');
    size_t prefix = name.len;
    buf_str(&name, key);
    if (name.err != BAY_OK) {
        return NULL; /* without a ring keys may be long: such callers own nothing */
    }
    owner *found = map_get(&at->of->owners, buf_view(&name));
    owner *made = found == NULL && is_made ? mem_zalloc(sizeof(*made) + name.len) : NULL;
    if (made == NULL) {
        return found;
    }
    memcpy(made->bytes, name.at, name.len);
    made->of = (agents_owned *)at;
    made->key = (bay_str){made->bytes, name.len};
    made->prefix = prefix;
    list_init(&made->entries);
    if (map_put(&at->of->owners, made->key, made, NULL) != BAY_OK) {
        mem_free(made);
        return NULL;
    }
    return made;
}

static void owner_drop(owner *self)
{
    if (self->count == 0) {
        map_remove(&self->of->of->owners, self->key);
        mem_free(self);
    }
}

static void join(entry *self, owner *to)
{
    self->owner = to;
    list_push(&to->entries, &self->owner_link);
    to->count++;
    to->tasks += kind_of(self) == OWNED_TASK;
}

/* The owner may be gone then. */
static void leave(entry *self)
{
    owner *from = self->owner;
    list_remove(&self->owner_link);
    from->count--;
    from->tasks -= kind_of(self) == OWNED_TASK;
    self->owner = NULL;
    owner_drop(from);
}

static void entry_free(entry *self)
{
    agents_owned *at = self->owner->of;
    map_remove(&at->of->entries, self->key);
    list_remove(&self->agent_link);
    at->count--;
    leave(self);
    mem_free(self);
}

static void entry_write(const entry *self)
{
    owners_rows *rows = self->owner->of->of->rows;
    if (rows != NULL) {
        owners_rows_change(rows, self->key, key_of(self->owner), self->expires_at_ms);
    }
}

static void entry_forget(entry *self)
{
    owners_rows *rows = self->owner->of->of->rows;
    if (rows != NULL) {
        owners_rows_change(rows, self->key, (bay_str){NULL, 0}, 0);
    }
    entry_free(self);
}

/* Makes room for one more of `by`, who counts it already: its own goes before anybody else's. */
static void make_room(agents_owned *at, const owner *by)
{
    while (by->count > AGENTS_OWNED_BY_ONE) {
        entry_forget(CONTAINER_OF(list_first(&by->entries), entry, owner_link));
    }
    while (at->count >= AGENTS_OWNED) {
        entry_forget(CONTAINER_OF(list_first(&at->entries), entry, agent_link));
    }
}

static entry *entry_new(agents_owned *at, bay_str key, bay_str owner_key, uint64_t expires_at_ms)
{
    entry *made = mem_zalloc(sizeof(*made) + key.len);
    owner *by = made != NULL ? owner_find(at, owner_key, true) : NULL;
    if (by == NULL) {
        mem_free(made);
        return NULL;
    }
    memcpy(made->bytes, key.at, key.len);
    made->key = (bay_str){made->bytes, key.len};
    made->expires_at_ms = expires_at_ms;
    by->count++; /* so that making room does not drop it */
    make_room(at, by);
    by->count--;
    if (map_put(&at->of->entries, made->key, made, NULL) != BAY_OK) {
        mem_free(made);
        owner_drop(by);
        return NULL;
    }
    list_push(&at->entries, &made->agent_link);
    at->count++;
    made->owner = by;
    join(made, by);
    return made;
}

/* NULL: there is none, or it is too old. */
static entry *entry_find(const agents_owned *at, bay_str key, uint64_t now_ms)
{
    entry *found = map_get(&at->of->entries, key);
    if (found != NULL && found->expires_at_ms <= now_ms) {
        entry_forget(found);
        return NULL;
    }
    return found;
}

static bool is_caller(const owner *self, const agents_caller *caller)
{
    bool is_its = str_eq_secret(key_of(self), caller->key);
    if (!is_its && principal_key_count(caller->ring) > 1 &&
        principal_has_key(caller->principal, caller->ring, key_of(self), &is_its) != BAY_OK) {
        is_its = false;
    }
    return is_its;
}

/* The caller's, and used: it goes last. An entry of an older key is written with the newest. */
static void use(entry *self, const agents_caller *caller, uint64_t now_ms)
{
    agents_owned *at = self->owner->of;
    bool is_due = self->expires_at_ms - now_ms < LIFE_MS / 2;
    owner *by = owner_find(at, caller->key, true);
    list_remove(&self->agent_link);
    list_push(&at->entries, &self->agent_link);
    if (by != NULL && by != self->owner) {
        leave(self);
        self->owner = by;
        join(self, by);
        is_due = true;
    } else {
        list_remove(&self->owner_link);
        list_push(&self->owner->entries, &self->owner_link);
    }
    if (is_due) {
        self->expires_at_ms = now_ms + LIFE_MS;
        entry_write(self);
    }
}

/* ---- agents ---------------------------------------------------------------------------------- */

static agents_owned *agent_of(agents_owners *self, bay_str name)
{
    agents_owned *found = map_get(&self->agents, name);
    agents_owned *made = found == NULL ? mem_zalloc(sizeof(*made) + name.len) : NULL;
    if (made == NULL) {
        return found;
    }
    memcpy(made->bytes, name.at, name.len);
    made->of = self;
    made->name = (bay_str){made->bytes, name.len};
    list_init(&made->entries);
    if (map_put(&self->agents, made->name, made, NULL) != BAY_OK) {
        mem_free(made);
        return NULL;
    }
    return made;
}

agents_owned *agents_owners_of(agents_owners *self, bay_str agent)
{
    pthread_mutex_lock(&self->lock);
    agents_owned *found = agent_of(self, agent);
    pthread_mutex_unlock(&self->lock);
    return found;
}

bool agents_owned_is_open(const agents_owned *self)
{
    return !atomic_load_explicit(&self->is_closed, memory_order_acquire);
}

void agents_owned_close(agents_owned *self)
{
    buf key;
    if (atomic_exchange(&self->is_closed, true) || self->of->rows == NULL) {
        return;
    }
    buf_init(&key, STORE_KEY_BYTES);
    if (write_key(self->name, MARK, STR(""), &key)) {
        owners_rows_change(self->of->rows, buf_view(&key), STR(""), 0);
    }
    buf_fini(&key);
}

/* ---- what is asked --------------------------------------------------------------------------- */

bool agents_owned_is(agents_owned *self, owned_kind kind, bay_str id, const agents_caller *caller)
{
    buf key;
    bool is_its = false;
    uint64_t now_ms = loop_time_ms();
    buf_init(&key, STORE_KEY_BYTES);
    if (write_key(self->name, (char)kind, id, &key)) {
        pthread_mutex_lock(&self->of->lock);
        entry *found = entry_find(self, buf_view(&key), now_ms);
        is_its = found != NULL && is_caller(found->owner, caller);
        if (is_its) {
            use(found, caller, now_ms);
        }
        pthread_mutex_unlock(&self->of->lock);
    }
    buf_fini(&key);
    return is_its;
}

bay_err agents_owned_claim(agents_owned *self, owned_kind kind, bay_str id,
                           const agents_caller *caller)
{
    buf key;
    uint64_t now_ms = loop_time_ms();
    if (id.len == 0 || id.len > AGENTS_OWNED_ID_BYTES) {
        return BAY_ERR_LIMIT;
    }
    buf_init(&key, STORE_KEY_BYTES);
    (void)write_key(self->name, (char)kind, id, &key);
    bay_err err = key.err;
    if (err == BAY_OK) {
        pthread_mutex_lock(&self->of->lock);
        entry *found = entry_find(self, buf_view(&key), now_ms);
        if (found == NULL) {
            found = entry_new(self, buf_view(&key), caller->key, now_ms + LIFE_MS);
            err = found != NULL ? BAY_OK : BAY_ERR_NOMEM;
            if (found != NULL) {
                entry_write(found);
            }
        } else if (is_caller(found->owner, caller)) {
            use(found, caller, now_ms);
        } else {
            err = BAY_ERR_DENIED;
        }
        pthread_mutex_unlock(&self->of->lock);
    }
    buf_fini(&key);
    return err;
}

size_t agents_owned_count(agents_owned *self, const agents_caller *caller)
{
    pthread_mutex_lock(&self->of->lock);
    const owner *found = owner_find(self, caller->key, false);
    size_t count = found != NULL ? found->tasks : 0;
    pthread_mutex_unlock(&self->of->lock);
    return count;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* A row of an earlier process. */
static void on_row(void *user, bay_str key, bay_str value, uint64_t expires_at_ms)
{
    agents_owners *self = user;
    size_t name = str_find(key, '\0');
    if (name + KIND_BYTES > key.len) {
        return;
    }
    agents_owned *at = agent_of(self, str_head(key, name));
    if (at == NULL) {
        return;
    }
    atomic_store(&at->is_closed, true);
    if (key.at[name + 1] != MARK && at->count < AGENTS_OWNED) {
        (void)entry_new(at, key, value, expires_at_ms);
    }
}

bay_err agents_owners_new(bay_str path, agents_owners **out, bay_diag *diag)
{
    agents_owners *self = mem_zalloc(sizeof(*self) + path.len);
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    if (path.len > 0) {
        memcpy(self->path, path.at, path.len);
        self->path_len = path.len;
    }
    pthread_mutex_init(&self->lock, NULL);
    map_init(&self->agents, MOST_AGENTS);
    map_init(&self->owners, MOST_ENTRIES);
    map_init(&self->entries, MOST_ENTRIES);
    bay_err err = path.len > 0 ? owners_rows_read(path, on_row, self, diag) : BAY_OK;
    if (err != BAY_OK) {
        agents_owners_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

bay_err agents_owners_write_on(agents_owners *self, loop *home)
{
    bay_str path = {self->path, self->path_len};
    return path.len > 0 ? owners_rows_new(home, path, &self->rows) : BAY_OK;
}

void agents_owners_close(agents_owners *self)
{
    if (self != NULL) {
        owners_rows_free(self->rows);
        self->rows = NULL;
    }
}

void agents_owners_free(agents_owners *self)
{
    bay_str name;
    void *value;
    size_t cursor = 0;
    if (self == NULL) {
        return;
    }
    while (map_next(&self->agents, &cursor, &name, &value)) {
        agents_owned *at = value;
        list_link *link;
        while ((link = list_first(&at->entries)) != NULL) {
            entry_free(CONTAINER_OF(link, entry, agent_link));
        }
        mem_free(at);
    }
    map_fini(&self->entries);
    map_fini(&self->owners);
    map_fini(&self->agents);
    pthread_mutex_destroy(&self->lock);
    mem_free(self);
}
