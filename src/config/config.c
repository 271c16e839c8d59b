/* The loaded object: its memory, its references, look-up and comparison. */
#include "config/config.h"

#include "base/check.h"
#include "base/mem.h"
#include "config/internal.h"

enum { CHUNK_BYTES = 16 * 1024, ALIGNMENT = 16 };

typedef struct config_chunk {
    struct config_chunk *next;
    size_t cap;
    size_t len;
    _Alignas(ALIGNMENT) char bytes[];
} config_chunk;

void config_pool_init(config_pool *self, size_t max_bytes)
{
    *self = (config_pool){.max = max_bytes};
}

void config_pool_fini(config_pool *self)
{
    config_chunk *chunk = self->chunk;
    while (chunk != NULL) {
        config_chunk *next = chunk->next;
        mem_wipe(chunk, sizeof(*chunk) + chunk->cap);
        mem_free(chunk);
        chunk = next;
    }
    *self = (config_pool){.max = self->max};
}

void *config_pool_alloc(config_pool *self, size_t bytes)
{
    if (bytes > self->max - self->used) {
        self->is_full = true;
        return NULL;
    }
    size_t needed = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    config_chunk *chunk = self->chunk;
    if (chunk == NULL || needed > chunk->cap - chunk->len) {
        size_t cap = needed > CHUNK_BYTES ? needed : CHUNK_BYTES;
        chunk = mem_zalloc(sizeof(*chunk) + cap);
        if (chunk == NULL) {
            return NULL;
        }
        chunk->cap = cap;
        chunk->next = self->chunk;
        self->chunk = chunk;
    }
    void *at = chunk->bytes + chunk->len;
    chunk->len += needed;
    self->used += bytes;
    return at;
}

bay_str config_pool_dup(config_pool *self, bay_str text)
{
    char *copy = config_pool_alloc(self, text.len + 1);
    if (copy == NULL) {
        return (bay_str){NULL, 0};
    }
    if (text.len > 0) {
        memcpy(copy, text.at, text.len);
    }
    return (bay_str){copy, text.len};
}

bay_err config_pool_err(const config_pool *self)
{
    return self->is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
}

const config *config_ref(const config *self)
{
    config_object *object = CONTAINER_OF(self, config_object, public);
    atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
    return self;
}

void config_free(const config *self)
{
    if (self == NULL) {
        return;
    }
    config_object *object = CONTAINER_OF(self, config_object, public);
    if (atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    policy_rules_unref(object->public.rules);
    policy_tools_unref(object->public.tools);
    config_pool_fini(&object->pool);
    mem_free(object);
}

bay_err config_scan_rules(const config *self, scan_rule_set **out)
{
    scan_rule_set *made = NULL;
    bay_err err = scan_rule_set_new(&made);
    for (size_t i = 0; err == BAY_OK && i < self->scan.rules.count; i++) {
        const config_pair *rule = &self->scan.rules.at[i];
        err = scan_rule_set_add(made, rule->name, rule->value, NULL);
    }
    if (err != BAY_OK) {
        scan_rule_set_free(made);
        return err;
    }
    *out = made;
    return BAY_OK;
}

const config_server *config_server_find(const config *self, bay_str name)
{
    for (size_t i = 0; i < self->server_count; i++) {
        if (str_eq(self->servers[i].name, name)) {
            return &self->servers[i];
        }
    }
    return NULL;
}

const config_profile *config_profile_find(const config *self, bay_str name)
{
    for (size_t i = 0; i < self->profile_count; i++) {
        if (str_eq(self->profiles[i].name, name)) {
            return &self->profiles[i];
        }
    }
    return NULL;
}

const config_agent *config_agent_find(const config *self, bay_str name)
{
    for (size_t i = 0; i < self->agent_count; i++) {
        if (str_eq(self->agents[i].name, name)) {
            return &self->agents[i];
        }
    }
    return NULL;
}

static bool equal_list(const config_list *a, const config_list *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (!str_eq(a->at[i], b->at[i])) {
            return false;
        }
    }
    return true;
}

static bool equal_map(const config_map *a, const config_map *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (!str_eq(a->at[i].name, b->at[i].name) || !str_eq(a->at[i].value, b->at[i].value)) {
            return false;
        }
    }
    return true;
}

static bool equal_scope(config_scope scope, const char *a, const char *b);

static bool equal_rows(config_scope scope, const config_rows *a, const config_rows *b)
{
    size_t size = config_scopes[scope].size;
    bool is_equal = a->count == b->count;
    for (size_t i = 0; is_equal && i < a->count; i++) {
        const char *one = (const char *)a->at + i * size;
        const char *other = (const char *)b->at + i * size;
        is_equal = str_eq(((const config_row *)(const void *)one)->name,
                          ((const config_row *)(const void *)other)->name) &&
                   equal_scope(scope, one, other);
    }
    return is_equal;
}

static bool equal_field(const config_key *key, const char *a, const char *b)
{
    switch (key->type) {
    case CONFIG_TYPE_TEXT:
        return str_eq(*(const bay_str *)a, *(const bay_str *)b);
    case CONFIG_TYPE_BOOL:
    case CONFIG_TYPE_INVERSE:
        return *(const bool *)a == *(const bool *)b;
    case CONFIG_TYPE_COUNT:
    case CONFIG_TYPE_DURATION:
    case CONFIG_TYPE_PATIENCE:
        return *(const uint32_t *)a == *(const uint32_t *)b;
    case CONFIG_TYPE_CHOICE:
        return *(const unsigned *)a == *(const unsigned *)b;
    case CONFIG_TYPE_SIZE:
        return *(const size_t *)a == *(const size_t *)b;
    case CONFIG_TYPE_LIST:
    case CONFIG_TYPE_HOSTLIST:
    case CONFIG_TYPE_LISTEN:
    case CONFIG_TYPE_TEXTS:
        return equal_list((const config_list *)a, (const config_list *)b);
    case CONFIG_TYPE_MAP:
        return equal_map((const config_map *)a, (const config_map *)b);
    case CONFIG_TYPE_SECTION:
        return equal_scope(config_key_section(key), a, b);
    case CONFIG_TYPE_NAMED:
        return equal_rows(config_key_section(key), (const config_rows *)a, (const config_rows *)b);
    case CONFIG_TYPE_SERVERS:
    case CONFIG_TYPE_AGENTS:
    case CONFIG_TYPE_RULES:
    case CONFIG_TYPE_TESTS:
    case CONFIG_TYPE_TOLERATED:
        return true;
    }
    return false;
}

/* A change of these makes other lists, and no other server. */
static bool is_of_catalog(const config_key *key)
{
    return key->scope == CONFIG_SCOPE_SERVER && key->offset >= offsetof(config_server, expose) &&
           key->offset <= offsetof(config_server, refresh_ms);
}

static bool equal_scope(config_scope scope, const char *a, const char *b)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const config_key *key = &config_keys[i];
        if (key->scope == scope && !is_of_catalog(key) &&
            !equal_field(key, a + key->offset, b + key->offset)) {
            return false;
        }
    }
    return true;
}

char config_least_grade(const config_server *self)
{
    static const char letters[] = {0, 'E', 'D', 'C', 'B', 'A'};
    return letters[self->grade.min];
}

bool config_equal_server(const config_server *a, const config_server *b)
{
    return str_eq(a->name, b->name) && str_eq(a->agent, b->agent) &&
           equal_scope(CONFIG_SCOPE_SERVER, (const char *)a, (const char *)b);
}

bool config_equal_agent(const config_agent *a, const config_agent *b)
{
    return str_eq(a->name, b->name) &&
           equal_scope(CONFIG_SCOPE_AGENT, (const char *)a, (const char *)b);
}

bool config_equal_auth(const config_auth *a, const config_auth *b)
{
    return equal_scope(CONFIG_SCOPE_AUTH, (const char *)a, (const char *)b);
}

bool config_equal_a2a(const config_a2a *a, const config_a2a *b)
{
    return equal_scope(CONFIG_SCOPE_A2A, (const char *)a, (const char *)b);
}
